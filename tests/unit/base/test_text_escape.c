/* SPDX-License-Identifier: Apache-2.0 */
/* Names from profiles cannot break out of JSON, XML or a terminal's line; values are readable. */
#include "src/base/text_escape.h"

#include "src/cli/profile/value_unit.h"
#include "tests/unit/cli/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *text;
    const char *json;
    const char *xml;
    const char *terminal;
} escapes[] = {
    {"main.work", "\"main.work\"", "main.work", "main.work"},
    {"", "\"\"", "", ""},
    {"</text><script>alert('x')</script>", "\"</text><script>alert('x')</script>\"",
     "&lt;/text&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;",
     "</text><script>alert('x')</script>"},
    {"a&b\"c\\d", "\"a&b\\\"c\\\\d\"", "a&amp;b&quot;c\\d", "a&b\"c\\d"},
    {"]]>", "\"]]>\"", "]]&gt;", "]]>"},
    {"tab\tline\n\x01", "\"tab\\tline\\n\\u0001\"", "tab?line??", "tab?line??"},
    {"\x1b[31mred", "\"\\u001b[31mred\"", "?[31mred", "?[31mred"},
    {"\xc2\x9b"
     "31m",
     "\"\xc2\x9b"
     "31m\"",
     "?31m", "?31m"},
    {"K\xc3\xb6ln \xe2\x82\xac", "\"K\xc3\xb6ln \xe2\x82\xac\"", "K\xc3\xb6ln \xe2\x82\xac",
     "K\xc3\xb6ln \xe2\x82\xac"},
    {"\xff\xc3", "\"??\"", "??", "??"},
    {"\xef\xbf\xbe", "\"\xef\xbf\xbe\"", "?", "\xef\xbf\xbe"},
};

static void check(void (*escape)(FILE *out, struct slice text), const char *text, const char *want)
{
    struct captured captured;
    captured_open(&captured);
    escape(captured.out, slice_of_text(text));
    assert_string_equal(captured_text(&captured), want);
    free(captured.text);
}

static void what_a_place_cannot_hold_is_escaped_or_replaced(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
        check(text_escape_json, escapes[i].text, escapes[i].json);
        check(text_escape_xml, escapes[i].text, escapes[i].xml);
        check(text_escape_terminal, escapes[i].text, escapes[i].terminal);
    }
}

static const struct {
    int64_t value;
    const char *unit;
    const char *text;
} values[] = {
    {0, "nanoseconds", "0"},
    {999, "nanoseconds", "999ns"},
    {1500, "ns", "1.50us"},
    {2500000, "microseconds", "2.50s"},
    {1230000000, "nanoseconds", "1.23s"},
    {-1230000000, "nanoseconds", "-1.23s"},
    {90, "seconds", "1.50min"},
    {5400000, "ms", "1.50h"},
    {1023, "bytes", "1023B"},
    {1536, "bytes", "1.50KiB"},
    {INT64_C(5) << 40, "By", "5.00TiB"},
    {INT64_C(5) << 50, "bytes", "5120.00TiB"},
    {17, "count", "17"},
    {17, "", "17"},
    {INT64_MIN, "objects", "-9223372036854775808"},
};

static void values_are_scaled_by_their_unit(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        assert_string_equal(value_unit_text(values[i].value, slice_of_text(values[i].unit)).text,
                            values[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_place_cannot_hold_is_escaped_or_replaced),
        cmocka_unit_test(values_are_scaled_by_their_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
