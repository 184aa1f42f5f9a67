/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of token endpoints: what is read, and what is refused, as golang.org/x/oauth2 does. */
#include "extensions/oauth2_response.h"

#include "extensions/oauth2_form.h"
#include "src/base/secret.h"
#include "src/config/field.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* "token|type|seconds|error|description|uri", or NULL for what cannot be read. */
struct row {
    const char *body;
    const char *result;
};

static const struct row json_rows[] = {
    {"{\"access_token\":\"a\",\"token_type\":\"bearer\",\"expires_in\":3600}", "a|bearer|3600|||"},
    {" { \"access_token\" : \"a\\u0041\\n\" } ", "aA\n||0|||"},
    {"{\"Access_Token\":\"a\",\"EXPIRES_IN\":\"60\"}", "a||60|||"},
    {"{\"access_token\":\"a\",\"access_token\":\"b\"}", "b||0|||"},
    {"{\"access_token\":\"a\",\"access_token\":null,\"expires_in\":null}", "a||0|||"},
    {"{\"access_token\":\"a\",\"more\":{\"deep\":[1,{\"x\":[]}]},\"expires_in\":-5}", "a||-5|||"},
    {"{\"error\":\"invalid_client\",\"error_description\":\"no\",\"error_uri\":\"u\"}",
     "||0|invalid_client|no|u"},
    {"{}", "||0|||"},
    {"null", "||0|||"},
    {"{\"access_token\":1}", NULL},
    {"{\"access_token\":\"a\",\"expires_in\":3600.5}", NULL},
    {"{\"access_token\":\"a\",\"expires_in\":\"\"}", NULL},
    {"{\"access_token\":\"a\",\"expires_in\":\"soon\"}", NULL},
    {"{\"access_token\":\"a\",\"expires_in\":\"+5\"}", NULL},
    {"{\"access_token\":\"a\",\"expires_in\":\"07\"}", NULL},
    {"{\"access_token\":\"a\",\"expires_in\":99999999999999999999}", NULL},
    {"{\"access_token\":\"a\",\"expires_in\":[1]}", NULL},
    {"{\"access_token\":\"a\"", NULL},
    {"{\"access_token\":\"a\"} x", NULL},
    {"[]", NULL},
    {"", NULL},
    {"access_token=a", NULL},
};

static const struct row form_rows[] = {
    {"access_token=a&token_type=mac&expires_in=60", "a|mac|60|||"},
    {"access_token=a%41+%2b&x=y", "aA +||0|||"},
    {"access_token=a&access_token=b", "a||0|||"},
    {"access_token=a&expires_in=soon", "a||0|||"},
    {"access_token=a&expires_in=5&expires_in=6", "a||5|||"},
    {"&&error=e&error_description=d=d&error_uri", "||0|e|d=d|"},
    {"", "||0|||"},
    {"access_token=%4", NULL},
    {"access_token=%zz", NULL},
    {"access_token=a;b", NULL},
};

static void check(const struct row *rows, size_t count, enum oauth2_format format)
{
    for (size_t i = 0; i < count; i++) {
        struct oauth2_response response;
        char text[256];
        bool is_read = oauth2_response_read(slice_of_text(rows[i].body), format, &response);
        snprintf(text, sizeof(text), "%s|%s|%lld|%s|%s|%s", response.access_token,
                 response.token_type, (long long)response.expires_in_s, response.error,
                 response.error_description, response.error_uri);
        if (is_read != (rows[i].result != NULL) || (is_read && strcmp(text, rows[i].result) != 0))
            fail_msg("%s: %s", rows[i].body, is_read ? text : "not read");
        oauth2_response_fini(&response);
    }
}

static void responses_are_read_as_go_does(void **state)
{
    (void)state;
    check(json_rows, sizeof(json_rows) / sizeof(json_rows[0]), OAUTH2_JSON);
    check(form_rows, sizeof(form_rows) / sizeof(form_rows[0]), OAUTH2_FORM);
    assert_int_equal(oauth2_format_of(slice_of_text("text/plain; charset=utf-8")), OAUTH2_FORM);
    assert_int_equal(oauth2_format_of(slice_of_text("application/x-www-form-urlencoded")),
                     OAUTH2_FORM);
    assert_int_equal(oauth2_format_of(slice_of_text("application/json")), OAUTH2_JSON);
    assert_int_equal(oauth2_format_of(slice_of_text("")), OAUTH2_JSON);
}

static void the_type_of_a_token_is_written_as_go_does(void **state)
{
    static const char *const rows[][3] = {
        {"", "t", "Bearer t"},     {"BEARER", "t", "Bearer t"}, {"mac", "t", "MAC t"},
        {"bAsIc", "t", "Basic t"}, {"DPoP", "t", "DPoP t"},     {"", "a\nb", NULL},
        {"a\rb", "t", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct oauth2_response response = {.access_token = (char *)(uintptr_t)rows[i][1],
                                                 .token_type = (char *)(uintptr_t)rows[i][0]};
        char *value = oauth2_response_authorization(&response);
        if (rows[i][2] == NULL)
            assert_null(value);
        else
            assert_string_equal(value, rows[i][2]);
        secret_free(value);
    }
}

static void forms_are_written_as_go_does(void **state)
{
    static const char *const texts[] = {"a", "b/c"};
    struct oauth2_form form = {.count = 0};
    (void)state;
    oauth2_form_add(&form, "scope", "a b");
    oauth2_form_add(&form, "audience", "x&=%\xc3\xa4-_.~");
    oauth2_form_add(&form, "scope", "");
    oauth2_form_add(&form, "gone", "x");
    oauth2_form_remove(&form, "gone");
    char *text = oauth2_form_text(&form);
    assert_string_equal(text, "audience=x%26%3D%25%C3%A4-_.~&scope=a+b&scope=");
    secret_free(text);
    oauth2_form_fini(&form);
    text = oauth2_scopes_text(&(struct config_texts){.count = 2, .texts = texts});
    assert_string_equal(text, "a b/c");
    secret_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses_are_read_as_go_does),
        cmocka_unit_test(the_type_of_a_token_is_written_as_go_does),
        cmocka_unit_test(forms_are_written_as_go_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
