/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns: Go's syntax, named groups, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/error.h"
#include "src/base/pattern.h"

static void a_pattern_is_searched_anywhere(void **state)
{
    static const struct {
        const char *pattern;
        const char *text;
        bool matches;
    } rows[] = {
        {"b+", "abbc", true},
        {"^b", "abbc", false},
        {"(?i)ABC", "xabcx", true},
        {"", "anything", true},
        {"^k8s\\.", "k8s.pod", true},
        {"\\d{3}$", "a12", false},
        {"^$", "", true},
        /* Pieces of text, which need no automaton. */
        {"^GET", "GET /", true},
        {"^GET", "a GET", false},
        {"^GET", "GE", false},
        {"GET$", "a GET", true},
        {"GET$", "GET\n", false},
        {"^GET$", "GET", true},
        {"^GET$", "GET ", false},
        {"b c", "ab cd", true},
        {"b c", "abc", false},
        {"^", "", true},
        {"$", "x", true},
        {"a\\.b$", "xa.b", true},
        {"a\\.b$", "xa-b", false},
        {"a\\$", "a$b", true},
        {"a$b", "a$b", false},
        {"\\^a", "x^a", true},
        {"a\\d", "a1", true},
        {"caf\xc3\xa9$", "un caf\xc3\xa9", true},
        {"b",
         "\xff\xfe"
         "b",
         true},
    };
    struct error error;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pattern *pattern = pattern_create(rows[i].pattern, &error);
        assert_non_null(pattern);
        assert_int_equal(pattern_matches(pattern, slice_of_text(rows[i].text)), rows[i].matches);
        pattern_destroy(pattern);
    }
}

static void groups_have_names_and_content(void **state)
{
    struct slice groups[3];
    struct error error;
    (void)state;
    struct pattern *pattern = pattern_create("(?P<year>\\d+)-(x)?(?<rest>.*)", &error);
    assert_non_null(pattern);
    assert_int_equal(pattern_groups(pattern), 3);
    assert_string_equal(pattern_group_name(pattern, 1), "year");
    assert_null(pattern_group_name(pattern, 2));
    assert_string_equal(pattern_group_name(pattern, 3), "rest");
    assert_true(pattern_find(pattern, slice_of_text("in 2026-11"), groups, 3));
    assert_true(slice_equal_text(groups[0], "2026"));
    assert_int_equal(groups[1].size, 0);
    assert_true(slice_equal_text(groups[2], "11"));
    assert_false(pattern_find(pattern, slice_of_text("never"), groups, 3));
    pattern_destroy(pattern);
}

/* What Go's Regexp.Expand makes of it. */
static void a_template_is_expanded_with_what_was_found(void **state)
{
    static const struct {
        const char *form;
        const char *expanded;
        size_t groups;
    } rows[] = {
        {"", "", 0},
        {"plain", "plain", 0},
        {"$0", "2026-x", 1},
        {"$1", "2026", 2},
        {"${1}_", "2026_", 2},
        {"$1_", "", 0},
        {"$year", "2026", 2},
        {"${year}.$2", "2026.x", 3},
        {"$3", "", 4},
        {"$4", "", 0},
        {"$none", "", 0},
        {"$$1", "$1", 0},
        {"$", "$", 0},
        {"a$ b", "a$ b", 0},
        {"${1", "${1", 0},
        {"${}", "${}", 0},
        {"$01", "", 0},
        {"${ye ar}", "${ye ar}", 0},
        {"$year\xc3\xa9x", "", 0},
        {"${1}\xc3\xa9", "2026\xc3\xa9", 2},
        {"$99999999999", "", 0},
    };
    struct slice groups[4];
    struct error error;
    (void)state;
    struct pattern *pattern = pattern_create("(?P<year>\\d+)-(x)(y)?", &error);
    assert_non_null(pattern);
    struct slice text = slice_of_text("2025-z 2026-x");
    assert_true(pattern_find_from(pattern, text, 3, groups, 4));
    assert_true(groups[0].data == text.data + 7);
    assert_false(pattern_find_from(pattern, text, 12, groups, 4));
    assert_true(pattern_find_from(pattern, text, 0, groups, 4));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char room[32];
        struct pattern_template *form = pattern_template_create(pattern, rows[i].form);
        assert_int_equal(pattern_template_groups(form), rows[i].groups);
        size_t size = pattern_template_expand(form, groups, room, sizeof(room));
        if (!slice_equal_text(slice_of(room, size), rows[i].expanded))
            fail_msg("%s: %.*s", rows[i].form, (int)size, room);
        /* Where there is no room, only the size is told. */
        assert_int_equal(pattern_template_expand(form, groups, room, 0), size);
        pattern_template_destroy(form);
    }
    pattern_template_destroy(NULL);
    pattern_destroy(pattern);
}

static void bad_patterns_are_refused_with_the_reason(void **state)
{
    static const char *const rows[] = {"(",   "a**", "(?P<x>a)(?P<x>b)", "[z-a]", "(?=x)",
                                       "\\1", "a\\C"};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error error = {.text = ""};
        assert_null(pattern_create(rows[i], &error));
        assert_non_null(strstr(error.text, rows[i]));
    }
    pattern_destroy(NULL);
}

static void hard_patterns_take_linear_time(void **state)
{
    char text[4096];
    struct error error;
    (void)state;
    memset(text, 'a', sizeof(text));
    struct pattern *pattern = pattern_create("(a*)*(a*)*(a*)*b", &error);
    assert_non_null(pattern);
    assert_false(pattern_matches(pattern, slice_of(text, sizeof(text))));
    pattern_destroy(pattern);
}

static void small_patterns_have_small_programs(void **state)
{
    static const struct {
        const char *text;
        bool is_small;
        uint64_t least; /* of the cost before and after, together, in nanoseconds */
        uint64_t most;
    } rows[] = {
        {"^/api/v[0-9]+/", true, 10 * 1000, 40 * 1000},
        {"\\w+@\\w+\\.com", true, 10 * 1000, 40 * 1000},
        {"\\pL+", true, 600 * 1000, 1000 * 1000},
        {"\\pL{100}", false, 1300 * 1000, 2000 * 1000},
        {"(?:(?:\\pL|\\pN){20}){20}", false, 1300 * 1000, 2000 * 1000},
        {"x{0,1000}", true, 1000 * 1000, 2000 * 1000},
        {"(?:x{2,20}){50}", true, 500 * 1000, 1500 * 1000},
        {"(?<name>a)", true, 5 * 1000, 40 * 1000},
        {"a{", true, 5 * 1000, 40 * 1000},
    };
    struct error error;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t cost = 0;
        struct pattern *pattern = pattern_create_small(rows[i].text, &cost, &error);
        assert_int_equal(pattern != NULL, rows[i].is_small);
        if (pattern == NULL)
            assert_non_null(strstr(error.text, "too large"));
        else
            assert_true(pattern_steps(pattern) > 0);
        pattern_destroy(pattern);
        assert_in_range(cost + pattern_cost(slice_of_text(rows[i].text)), rows[i].least,
                        rows[i].most);
    }
}

static void matches_are_replaced_with_groups_in_them(void **state)
{
    static const struct {
        const char *pattern;
        const char *replacement;
        const char *text;
        const char *result; /* NULL: nothing matches */
    } rows[] = {
        {"b+", "x", "abbcb", "axcx"},
        {"^b", "x", "ab", NULL},
        {"(\\w+)@(\\w+)", "$2 at ${1}", "me@home", "home at me"},
        {"(?P<user>\\w+)@", "<${user}>", "me@home", "<me>home"},
        {"a", "$$1\\", "bab", "b$1\\b"},
        {"a|b", "", "cab", "c"},
        {".*", "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", "x",
         "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"},
        /* An empty match right behind another one is none. */
        {"x*", "-", "abxc", "-a-b-c-"},
        {"x*", "-", "", "-"},
        {"a|$", "-", "ba", "b-"},
        {"x*", "-", "\xe2\x82\xac", "-\xe2\x82\xac-"},
        {"x*", "-", "\xe2\x82", "-\xe2-\x82-"},
        {"x*", "-", "\xed\xa0\x80", "-\xed\xa0\x80-"},
        /* Of ten bytes, and cut to as many: in a replacement, in a group, in what is between two
         * matches, before the first one. */
        {"a", "bc", "aaaaa", "bcbcbcbcbc"},
        {"a", "bc", "aaaaaa", "bcbcbcbcbc"},
        {"a", "bcd", "aaaaaaaa", "bcdbcdbcdb"},
        {"(a+)(b)?", "<$1>$1$2", "aaaaaa", "<aaaaaa>aa"},
        {"a", "", "abbbbbbbbbbbbba", "bbbbbbbbbb"},
        {"a$", "", "bbbbbbbbbbbbbba", "bbbbbbbbbb"},
        {"^a", "a", "aaaaaaaa\xc3\xa9", "aaaaaaaa\xc3\xa9"},
        {"^a", "a", "aaaaaaaaa\xc3\xa9", "aaaaaaaaa"},
        {"^a", "a", "aaaaaaaaaa\xc3\xa9", "aaaaaaaaaa"},
        {"b", "\xc3\xa9", "aaaaaaaaab", "aaaaaaaaa"},
    };
    struct error error;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char room[11] = "";
        size_t size = 0;
        struct pattern *pattern = pattern_create(rows[i].pattern, &error);
        struct pattern_replacement *replacement =
            pattern_replacement_create(pattern, rows[i].replacement, &error);
        assert_non_null(replacement);
        bool matches = pattern_replace(pattern, replacement, slice_of_text(rows[i].text), room,
                                       sizeof(room) - 1, &size);
        assert_int_equal(matches, rows[i].result != NULL);
        if (matches)
            assert_true(slice_equal_text(slice_of(room, size), rows[i].result));
        pattern_replacement_destroy(replacement);
        pattern_destroy(pattern);
    }
}

#if defined(__SANITIZE_ADDRESS__)
typedef void free_hook(const volatile void *block);
typedef void malloc_hook(const volatile void *block, size_t size);
int __sanitizer_install_malloc_and_free_hooks(malloc_hook *on_malloc, free_hook *on_free);

static size_t largest_block;

static void on_malloc(const volatile void *block, size_t size)
{
    (void)block;
    if (size > largest_block)
        largest_block = size;
}

static void on_free(const volatile void *block)
{
    (void)block;
}
#endif

/* What the rows would make otherwise has more than 4 MB. */
static void only_what_is_kept_of_a_replacement_is_made(void **state)
{
    enum { BYTES = 1 << 18, KEPT = 4096, TIMES = 16 };
    static const struct {
        const char *pattern;
        const char *part; /* the replacement is this, many times */
        char first;       /* byte of the result */
    } rows[] = {{"a", "$0", 'a'}, {"a+", "$0", 'a'}, {"(a*)b?", "$1", 'a'}, {"b?", "cd", 'c'}};
    static char text[BYTES];
    struct error error;
    (void)state;
    memset(text, 'a', BYTES);
#if defined(__SANITIZE_ADDRESS__)
    assert_true(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0);
#endif
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char form[2 * TIMES + 1] = "";
        char room[KEPT];
        size_t size = 0;
        for (size_t k = 0; k < TIMES; k++)
            strcat(form, rows[i].part);
        struct pattern *pattern = pattern_create(rows[i].pattern, &error);
        struct pattern_replacement *replacement = pattern_replacement_create(pattern, form, &error);
        assert_non_null(replacement);
#if defined(__SANITIZE_ADDRESS__)
        largest_block = 0;
#endif
        assert_true(
            pattern_replace(pattern, replacement, slice_of(text, BYTES), room, KEPT, &size));
        assert_int_equal(size, KEPT);
        assert_int_equal(room[0], rows[i].first);
#if defined(__SANITIZE_ADDRESS__)
        assert_in_range(largest_block, 0, BYTES / 2);
#endif
        pattern_replacement_destroy(replacement);
        pattern_destroy(pattern);
    }
}

static void a_replacement_names_groups_that_there_are(void **state)
{
    static const char *const wrong[] = {"$2", "${name}", "$", "${1", "$1x"};
    struct error error;
    (void)state;
    struct pattern *pattern = pattern_create("(a)", &error);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_null(pattern_replacement_create(pattern, wrong[i], &error));
        assert_non_null(strstr(error.text, wrong[i]));
    }
    pattern_destroy(pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_are_replaced_with_groups_in_them),
        cmocka_unit_test(only_what_is_kept_of_a_replacement_is_made),
        cmocka_unit_test(a_replacement_names_groups_that_there_are),
        cmocka_unit_test(a_pattern_is_searched_anywhere),
        cmocka_unit_test(groups_have_names_and_content),
        cmocka_unit_test(a_template_is_expanded_with_what_was_found),
        cmocka_unit_test(bad_patterns_are_refused_with_the_reason),
        cmocka_unit_test(hard_patterns_take_linear_time),
        cmocka_unit_test(small_patterns_have_small_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
