/* SPDX-License-Identifier: Apache-2.0 */
/* Globs; the expected columns were printed by github.com/gobwas/glob, but for one: it does not find
 * a character of several bytes for ? between others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "connectors/span_metrics/name_glob.h"
#include "src/base/error.h"
#include "src/base/pattern.h"

static void globs_match_as_in_go(void **state)
{
    static const struct {
        const char *glob;
        const char *text;
        bool is_match;
    } rows[] = {
        {"http.*", "http.method", true},
        {"http.*", "http.request.size", false},
        {"http.**", "http.request.size", true},
        {"*", "a.b", false},
        {"**", "a.b", true},
        {"?", "a", true},
        {"?", ".", false},
        {"a?c",
         "a\xc3\xa9"
         "c",
         true},
        {"[abc]x", "bx", true},
        {"[!abc]x", "bx", false},
        {"[!abc]x", "dx", true},
        {"x[0-9]", "x5", true},
        {"x[!0-9]", "x5", false},
        {"{a,b}.c", "b.c", true},
        {"{a,b}.c", "c.c", false},
        {"{a,b*}.c", "bcd.c", true},
        {"{a,{b,c}}", "c", true},
        {"{a,b", "b", true},
        {"a,b", "a,b", true},
        {"a}b", "a}b", true},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"a.b", "axb", false},
        {"a+b(c)^$|", "a+b(c)^$|", true},
        {"", "", true},
        {"a", "aa", false},
        {"\xc3\xa4*", "\xc3\xa4x", true},
        {"[\xc3\xa4\xc3\xb6]", "\xc3\xb6", true},
        {"a*", "a\nb", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error error;
        struct pattern *pattern = name_glob_create(rows[i].glob, &error);
        if (pattern == NULL)
            fail_msg("%s: %s", rows[i].glob, error.text);
        if (pattern_matches(pattern, slice_of_text(rows[i].text)) != rows[i].is_match)
            fail_msg("%s and %s", rows[i].glob, rows[i].text);
        pattern_destroy(pattern);
    }
}

static void broken_globs_are_refused(void **state)
{
    static const char *const globs[] = {"[",      "[]",    "[a", "[a-", "[a-b",
                                        "[a-bc]", "[b-a]", "[!", "\xff"};
    (void)state;
    for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++) {
        struct error error = {.text = ""};
        if (name_glob_create(globs[i], &error) != NULL)
            fail_msg("%s", globs[i]);
        assert_true(error.text[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs_match_as_in_go),
        cmocka_unit_test(broken_globs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
