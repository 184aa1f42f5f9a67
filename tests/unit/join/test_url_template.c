/* SPDX-License-Identifier: Apache-2.0 */
/* URL templates: filling values in, and errors. */
#include "src/join/url_template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/error.h"

enum { ALL = (1 << URL_VALUES) - 1, WITHOUT_TYPE = ALL & ~(1 << URL_PROFILE_TYPE) };

static struct url_values some_values(void)
{
    return (struct url_values){.texts = {
                                   [URL_SERVICE_NAME] = slice_of_text("my shop/ü&?"),
                                   [URL_SERVICE_NAMESPACE] = slice_of_text(""),
                                   [URL_TRACE_ID] = slice_of_text("0af7"),
                                   [URL_SPAN_ID] = slice_of_text("b7ad"),
                                   [URL_FROM_MS] = slice_of_text("1"),
                                   [URL_UNTIL_MS] = slice_of_text("2"),
                               }};
}

static void values_are_filled_in_and_encoded(void **state)
{
    static const char *const rows[][2] = {
        {"http://g", "http://g"},
        {"https://g/{trace_id}", "https://g/0af7"},
        {"https://g/{trace_id}/{span_id}?f={from_ms}&u={until_ms}#x",
         "https://g/0af7/b7ad?f=1&u=2#x"},
        {"http://g/{service_name}", "http://g/my%20shop%2F%C3%BC%26%3F"},
        {"http://g/[{service_namespace}]", "http://g/[]"},
        {"http://g/{{{span_id}}}", "http://g/{b7ad}"},
        {"http://g/%7B{{trace_id}}%7D", "http://g/%7B{trace_id}%7D"},
        {"http://g/{profile_type}", NULL}, /* missing */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct url_template template;
        struct url_values values = some_values();
        struct error error;
        uint8_t room[URL_BYTES_MAX];
        assert_true(url_template_read(rows[i][0], ALL, &template, &error));
        struct slice url = url_template_write(&template, &values, room);
        assert_int_equal(url.data == NULL, rows[i][1] == NULL);
        assert_true(rows[i][1] == NULL || slice_equal_text(url, rows[i][1]));
    }
}

static void mistakes_are_reported_with_their_place(void **state)
{
    static const char *const rows[][2] = {
        {"ftp://g", "byte 0: expected a URL that begins with https:// or http://"},
        {"http://g/{x}", "byte 9: found {x}, expected one of {service_name}, {service_namespace}, "
                         "{trace_id}, {span_id}, {from_ms}, {until_ms}; {{ is a brace"},
        {"http://g/{Trace_id}", "byte 9: found {Trace_id}"},
        {"http://g/{}", "byte 9: found {}, expected one of"},
        {"http://g/{profile_type}", "byte 9: found {profile_type}, expected one of"},
        {"http://g/a{trace_id", "byte 10: found { without }"},
        {"http://g/a}b", "byte 10: found } without {, expected }}"},
        {"http://g/a b", "byte 10: found a space"},
        {"http://g/\xc3\xbc", "byte 9: found a space or a byte that is not ASCII"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct url_template template;
        struct error error;
        assert_false(url_template_read(rows[i][0], WITHOUT_TYPE, &template, &error));
        if (strstr(error.text, rows[i][1]) == NULL)
            fail_msg("%s: %s", rows[i][0], error.text);
    }
}

static void an_empty_template_is_none(void **state)
{
    struct url_template template;
    struct error error;
    (void)state;
    assert_true(url_template_read("", ALL, &template, &error));
    assert_int_equal(template.count, 0);
}

static void limits_hold(void **state)
{
    struct url_template template;
    struct url_values values = some_values();
    struct error error;
    uint8_t room[URL_BYTES_MAX];
    char text[URL_PIECES_MAX * 2 * sizeof("{trace_id}/")] = "http://g/";
    char *long_name = malloc(URL_BYTES_MAX);
    (void)state;
    assert_true(url_template_read("http://g/{service_name}", ALL, &template, &error));
    memset(long_name, 'x', URL_BYTES_MAX);
    values.texts[URL_SERVICE_NAME] = slice_of(long_name, URL_BYTES_MAX - 9);
    assert_int_equal(url_template_write(&template, &values, room).size, URL_BYTES_MAX);
    values.texts[URL_SERVICE_NAME].size++;
    assert_null(url_template_write(&template, &values, room).data);
    for (unsigned i = 0; i < URL_PIECES_MAX; i++)
        strcat(text, "{trace_id}");
    assert_false(url_template_read(text, ALL, &template, &error));
    assert_non_null(strstr(error.text, "expected a shorter URL"));
    free(long_name);
}

static void times_are_milliseconds(void **state)
{
    char room[URL_MS_BYTES];
    (void)state;
    assert_true(slice_equal_text(url_ms(0, room), "0"));
    assert_true(slice_equal_text(url_ms(1999999, room), "1"));
    assert_true(slice_equal_text(url_ms(UINT64_MAX, room), "18446744073709"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_filled_in_and_encoded),
        cmocka_unit_test(mistakes_are_reported_with_their_place),
        cmocka_unit_test(an_empty_template_is_none),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(times_are_milliseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
