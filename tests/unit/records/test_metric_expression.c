/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions that choose metrics: what they say of one data point, as the Go collector's filter
 * has it, and which are refused. */
#include "src/records/metric_expression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/error.h"
#include "src/otlp/attributes/attribute_list.h"

enum { ARENA_BYTES = 4096 };

/* KeyValues: host: "web-1"; n: 5; empty: "". */
static const char host[] = "\x0a\x04host\x12\x07\x0a\x05web-1";
static const char number[] = "\x0a\x01n\x12\x02\x18\x05";
static const char empty[] = "\x0a\x05"
                            "empty\x12\x02\x0a\x00";

/* Of a Sum "http.server.Duration" with those labels. */
static bool takes(const char *text)
{
    struct error error;
    struct attribute_list labels;
    struct metric_expression *expression = metric_expression_create(text, &error);
    if (expression == NULL)
        fail_msg("%s: %s", text, error.text);
    attribute_list_init(&labels, ARENA_BYTES, NULL);
    attribute_list_add(&labels, slice_of(host, sizeof(host) - 1));
    attribute_list_add(&labels, slice_of(number, sizeof(number) - 1));
    attribute_list_add(&labels, slice_of(empty, sizeof(empty) - 1));
    const struct metric_expression_point point = {.name = slice_of_text("http.server.Duration"),
                                                  .kind = METRIC_SUM,
                                                  .labels = &labels,
                                                  .arena = &labels.arena};
    bool result = metric_expression_takes(expression, &point);
    attribute_list_fini(&labels);
    metric_expression_destroy(expression);
    return result;
}

static void points_are_compared_as_the_language_says(void **state)
{
    static const struct {
        const char *text;
        bool takes;
    } rows[] = {
        {"true", true},
        {"not false", true},
        {"!!false", false},
        {"MetricName == 'http.server.Duration'", true},
        {"MetricName != `http.server.Duration`", false},
        {"MetricType == \"Sum\"", true},
        {"Label('host') == 'web-1'", true},
        {"Label('none') == ''", true},
        /* Numbers are labels without a string. */
        {"HasLabel('n') && Label('n') == ''", true},
        {"HasLabel('empty') and not HasLabel('none')", true},
        {"Label('hos' ) == ''", true},
        {"Label(MetricType) == '' or false", true},
        /* `and` binds tighter than `or`, comparisons tighter than both. */
        {"true or false and false", true},
        {"(true || false) && false", false},
        {"false or false or true", true},
        {"true and true and false", false},
        {"not false == true", true},
        {"MetricName startsWith 'http.'", true},
        {"MetricName not startsWith 'http.'", false},
        {"MetricName endsWith 'Duration'", true},
        {"MetricName contains 'server'", true},
        {"MetricName not contains 'client'", true},
        {"'a' contains ''", true},
        {"'' contains 'a'", false},
        {"MetricName matches '^http[.]s'", true},
        {"MetricName matches `(?i)DURATION$`", true},
        {"MetricName not matches '^x'", true},
        {"Label('host') in ['a', 'web-1',]", true},
        {"Label('host') not in ['a', 'web-1']", false},
        {"Label('host') in []", false},
        {"Label('host') in [Label('none'), lower('WEB-1')]", true},
        {"len(MetricName) == 20", true},
        {"len('\xc3\xa9!') == 2", true},
        {"len(Label('host')) in [4, 5]", true},
        {"1 < len(Label('host')) <= 5", true},
        {"1 < len(Label('host')) < 5", false},
        {"len(Label('none')) > -1", true},
        {"'a' < 'b'", true},
        {"'b' >= 'b'", true},
        {"'b' > 'bb'", false},
        {"lower(MetricName) == 'http.server.duration'", true},
        {"upper('\xc3\xa9') == '\xc3\x89'", true},
        /* Go knows only when it runs that these are of different types. */
        {"Label('n') == 5", false},
        {"Label('n') != 5", true},
        {"Label('none') == nil", false},
        {"nil == nil", true},
        {"HasLabel('n') == true", true},
        {"'\\x41\\u00e9\\U0001F600\\u{1f600}\\101\\n\\'' == "
         "'A\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80"
         "A\\n\\''",
         true},
        {"'\\xe9' == '\xc3\xa9'", true},
        {"`a``b` == 'a`b'", true},
        {"// a comment\n true /* and another */ and true", true},
        {"1_000 == 1000", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (takes(rows[i].text) != rows[i].takes)
            fail_msg("%s: not %d", rows[i].text, rows[i].takes);
}

static void the_rest_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
        bool is_unsupported; /* the whole language has it */
    } rows[] = {
        {"", "column 1: expected a condition, found the end", false},
        {"MetricName ==", "column 14: expected a condition, found the end", false},
        {"MetricName", "column 1: expected a condition, which is true or false", false},
        {"'a", "column 1: a string without its end", false},
        {"'a\nb' == ''", "column 1: a string without its end", false},
        {"'\\d' == ''", "column 2: an invalid escape", false},
        {"'\\u{110000}' == ''", "column 2: an invalid escape", false},
        {"true /* and", "column 5: a comment without its end", false},
        {"99999999999999999999 == 1", "column 1: the number is too large", false},
        {"1.5 == 1", "column 1: expected a whole number in decimal digits", true},
        {"attributes['a'] == 'b'", "column 1: expected MetricName, MetricType, Label", true},
        {"Label('a').b == 'b'", "column 11: expected and, or, a comparison or the end, found .",
         true},
        {"Label('a') + 'b' == 'b'", "column 12: expected and, or, a comparison or the end", true},
        {"true ? true : false", "column 6: expected and, or, a comparison or the end, found ?",
         true},
        {"not MetricName == 'a'", "column 1: not (or !) takes a boolean, and only what follows",
         false},
        {"true and MetricName", "column 10: expected a condition on each side", false},
        {"MetricName < 5", "column 12: expected two strings, or two numbers", false},
        {"true < false", "column 6: expected two strings, or two numbers", false},
        {"'a' == 1", "column 5: values of different types are never equal", false},
        {"true matches 'a'", "column 1: expected a string", false},
        {"MetricName contains 1", "column 21: expected a string", false},
        {"MetricName matches '('", "column 20: invalid pattern", false},
        {"MetricName matches MetricType", "column 20: expected a regular expression", true},
        {"MetricName not == 'a'", "column 16: expected in, matches, contains", false},
        {"MetricName in 'a'", "column 15: expected a list", false},
        {"MetricName in ['a', 1]", "column 21: in takes a string and a list of strings", false},
        {"HasLabel('a') in [true]", "column 19: in takes a string and a list", false},
        {"MetricName in ['a' 'b']", "column 20: expected ',' or ']', found 'b'", false},
        {"HasLabel(1)", "column 10: expected a string", false},
        {"HasLabel('a', 'b')", "column 15: expected ')', found 'b'", false},
        {"HasLabel == true", "column 10: expected '(' and one string, found ==", false},
        {"(true", "column 6: expected ')', found the end", false},
        {"true true", "column 6: expected and, or, a comparison or the end, found true", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error error = {.is_unsupported = false};
        struct metric_expression *expression = metric_expression_create(rows[i].text, &error);
        if (expression != NULL)
            fail_msg("%s is taken", rows[i].text);
        if (strstr(error.text, rows[i].expected) == NULL)
            fail_msg("%s: %s", rows[i].text, error.text);
        assert_int_equal(error.is_unsupported, rows[i].is_unsupported);
    }
}

/* count times the part, between begin and end. */
static char *repeat(const char *begin, const char *part, size_t count, const char *end)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fputs(begin, out);
    for (size_t i = 0; i < count; i++)
        fputs(part, out);
    fputs(end, out);
    fclose(out);
    return text;
}

static void depth_and_length_are_bounded(void **state)
{
    static const struct {
        const char *begin;
        const char *part;
        size_t count;
        const char *end;
        const char *expected; /* NULL: it is fine, and true */
    } rows[] = {
        {"", "false or ", 3000, "true", NULL},
        {"MetricType in [", "'a',", 9000, "'Sum']", NULL},
        {"", "(", 90, "true", "expected ')'"},
        {"", "(", 200, "true", "nested too deeply"},
        {"", "!", 200, "true", "nested too deeply"},
        {"true", " == true", 200, "", "nested too deeply"},
        {"", "false or ", 10000, "true", "too many parts"},
        {"0", " < 1", 20000, "", "too many parts"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error error;
        char *text = repeat(rows[i].begin, rows[i].part, rows[i].count, rows[i].end);
        if (rows[i].expected == NULL) {
            assert_true(takes(text));
        } else {
            assert_null(metric_expression_create(text, &error));
            if (strstr(error.text, rows[i].expected) == NULL)
                fail_msg("row %zu: %s", i, error.text);
        }
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_compared_as_the_language_says),
        cmocka_unit_test(the_rest_is_refused),
        cmocka_unit_test(depth_and_length_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
