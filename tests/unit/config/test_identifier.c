/* SPDX-License-Identifier: Apache-2.0 */
/* src/config/identifier.c and suggest.c: names and near misses. */
#include "src/config/identifier.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "src/config/suggest.h"

static const struct {
    const char *text;
    const char *id; /* NULL: problem is expected */
    const char *problem;
} rows[] = {
    {"otlp", "otlp", NULL},
    {"otlp/a", "otlp/a", NULL},
    {" otlp / a ", "otlp/a", NULL},
    {"otlp/a/b", "otlp/a/b", NULL},
    {"otlp/\xc3\xa4-1.2_3:4", "otlp/\xc3\xa4-1.2_3:4", NULL},
    {"", NULL, "id must not be empty"},
    {"  ", NULL, "id must not be empty"},
    {"/x", NULL, "the part before / should not be empty"},
    {"otlp/", NULL, "in \"otlp/\" id: the part after / should not be empty"},
    {"otlp/ ", NULL, "the part after / should not be empty"},
    {"9lp", NULL, "invalid character(s) in type \"9lp\""},
    {"ot-lp", NULL, "invalid character(s) in type"},
    {"otlp/a b", NULL, "invalid character(s) in name"},
    {"otlp/a$b", NULL, "invalid character(s) in name"},
    {"otlp/a+b", NULL, "invalid character(s) in name"},
    {"otlp/a\tb", NULL, "invalid character(s) in name"},
    {"otlp/a\xe2\x82\xac", NULL, "invalid character(s) in name"},     /* euro sign */
    {"otlp/a\xf0\x9f\x94\xa5", NULL, "invalid character(s) in name"}, /* an emoji */
    {"otlp/a\xff", NULL, "invalid character(s) in name"},
    {"a123456789012345678901234567890123456789012345678901234567890123", NULL,
     "invalid character(s) in type"},
};

static void identifiers_are_trimmed_and_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct identifier identifier;
        struct error error;
        bool is_fine = text_to_identifier(rows[i].text, &identifier, &error);
        if (is_fine != (rows[i].id != NULL))
            fail_msg("\"%s\": %d", rows[i].text, is_fine);
        if (is_fine)
            assert_string_equal(identifier.id, rows[i].id);
        else if (strstr(error.text, rows[i].problem) == NULL)
            fail_msg("\"%s\": %s", rows[i].text, error.text);
    }
}

static void a_name_has_at_most_1024_bytes(void **state)
{
    char text[5 + 1025 + 1] = "otlp/";
    struct identifier identifier;
    struct error error;
    (void)state;
    memset(text + 5, 'x', 1025);
    assert_false(text_to_identifier(text, &identifier, &error));
    assert_non_null(strstr(error.text, "the name is longer than 1024 bytes"));
    text[5 + 1024] = '\0';
    assert_true(text_to_identifier(text, &identifier, &error));
    assert_string_equal(identifier.id, text);
    assert_string_equal(identifier.type, "otlp");
}

static const struct {
    const char *found;
    const char *candidate;
    bool is_near;
} slips[] = {
    {"protocolls", "protocols", true},
    {"otpl", "otlp", true},
    {"recievers", "receivers", true},
    {"ENDPOINT", "endpoint", true},
    {"tls", "headers", false},
    {"endpoint", "timeout", false},
    {"x", "y", false},
    {"gprc", "grpc", true},
};

static void only_near_names_are_suggested(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++) {
        struct suggestion suggestion = suggestion_for(slips[i].found);
        suggestion_consider(&suggestion, slips[i].candidate);
        if ((suggestion.nearest != NULL) != slips[i].is_near)
            fail_msg("%s, %s", slips[i].found, slips[i].candidate);
    }
}

static void the_nearest_name_wins(void **state)
{
    struct suggestion suggestion = suggestion_for("exportes");
    (void)state;
    suggestion_consider(&suggestion, "extensions");
    suggestion_consider(&suggestion, "exporters");
    suggestion_consider(&suggestion, "processors");
    assert_string_equal(suggestion_to_text(&suggestion).text, " (did you mean \"exporters\"?)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identifiers_are_trimmed_and_checked),
        cmocka_unit_test(a_name_has_at_most_1024_bytes),
        cmocka_unit_test(only_near_names_are_suggested),
        cmocka_unit_test(the_nearest_name_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
