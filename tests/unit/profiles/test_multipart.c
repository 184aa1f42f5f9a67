/* SPDX-License-Identifier: Apache-2.0 */
/* Forms: their parts, and bodies that are not forms. */
#include "src/profiles/pyroscope/multipart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* "name=content;…" and how it ended. */
static void describe(const char *type, struct slice body, char *to, size_t size)
{
    struct multipart form = multipart_of(slice_of_text(type), body);
    struct multipart_part part;
    size_t used = 0;
    to[0] = '\0';
    while (multipart_next(&form, &part))
        used += (size_t)snprintf(to + used, size - used, "%.*s=%.*s;", (int)part.name.size,
                                 part.name.size > 0 ? (const char *)part.name.data : "",
                                 (int)part.content.size,
                                 part.content.size > 0 ? (const char *)part.content.data : "");
    snprintf(to + used, size - used, "%s", form.failure != NULL ? form.failure : ".");
}

#define TYPE           "multipart/form-data; boundary=XY"
#define NAMED(name)    "Content-Disposition: form-data; name=\"" name "\"; filename=\"f\"\r\n"
#define PART(name, is) "--XY\r\n" NAMED(name) "\r\n" is "\r\n"

static void parts_are_found_where_they_lie(void **state)
{
    static const char *const cases[][3] = {
        {TYPE, PART("a", "1") "--XY--\r\n", "a=1;."},
        {TYPE, PART("a", "1") PART("b", "2\r\n--X\r\n3") "--XY--", "a=1;b=2\r\n--X\r\n3;."},
        {TYPE, "preamble\r\n" PART("a", "") "--XY--", "a=;."},
        {"Multipart/Form-Data ; charset=x; boundary=\"XY\"", PART("a", "1") "--XY--", "a=1;."},
        {"multipart/form-data;boundary=XY;charset=utf-8", PART("a", "1") "--XY--", "a=1;."},
        {TYPE, "--XY\ncontent-disposition:form-data;name=a\n\n1\n--XY--", "a=1;."},
        {TYPE, "--XY\r\nX: y\r\n\r\n1\r\n--XY--", "=1;."},
        {TYPE, "--XY--", "."},
        {"multipart/form-data", "",
         "malformed multipart content type header: expected a boundary "
         "of 1 to 70 characters"},
        {"multipart/form-data; boundary=", "",
         "malformed multipart content type header: expected "
         "a boundary of 1 to 70 characters"},
        {TYPE, "", "multipart: NextPart: EOF: the body does not contain the boundary"},
        {TYPE, "--ZZ\r\n\r\n1\r\n--ZZ--",
         "multipart: NextPart: EOF: the body does not contain the boundary"},
        {TYPE, PART("a", "1"), "multipart: unexpected EOF: the closing boundary is missing"},
        {TYPE, "--XY\r\n" NAMED("a"),
         "multipart: a part's headers are truncated, or larger than 4096 bytes"},
        {"multipart/form-data; boundary=-", "---\r\n\r\nx-----\r\n--\r\n-----", "=x-----\r\n--;."},
        {"multipart/form-data; boundary=-", "-----", "."},
        {TYPE, "--XYZ\r\n\r\n1\r\n--XY--", "multipart: expected a line end after the boundary"},
    };
    char found[512];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        describe(cases[i][0], slice_of_text(cases[i][1]), found, sizeof(found));
        assert_string_equal(found, cases[i][2]);
    }
}

static void parts_and_their_headers_are_bounded(void **state)
{
    static char body[1 << 16];
    static char found[1 << 16];
    size_t used = 0;
    (void)state;
    for (unsigned i = 0; i < 33; i++)
        used += (size_t)snprintf(body + used, sizeof(body) - used, "%s", PART("a", ""));
    snprintf(body + used, sizeof(body) - used, "--XY--");
    describe(TYPE, slice_of_text(body), found, sizeof(found));
    assert_non_null(strstr(found, "more than 32 parts"));
    used = (size_t)snprintf(body, sizeof(body), "--XY\r\nX: ");
    memset(body + used, 'x', 5000);
    snprintf(body + used + 5000, 100, "\r\n\r\n1\r\n--XY--");
    describe(TYPE, slice_of_text(body), found, sizeof(found));
    assert_non_null(strstr(found, "larger than 4096 bytes"));
}

static void content_types_of_forms_are_known(void **state)
{
    (void)state;
    assert_true(multipart_is_form(slice_of_text("multipart/form-data")));
    assert_true(multipart_is_form(slice_of_text("MULTIPART/form-data; boundary=x")));
    assert_false(multipart_is_form(slice_of_text("multipart/form-datax")));
    assert_false(multipart_is_form(slice_of_text("multipart/mixed; boundary=x")));
    assert_false(multipart_is_form(slice_of(NULL, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_found_where_they_lie),
        cmocka_unit_test(parts_and_their_headers_are_bounded),
        cmocka_unit_test(content_types_of_forms_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
