/* SPDX-License-Identifier: Apache-2.0 */
/* Request paths: decoding, cleaning, escaping. */
#include "src/net/syntax/http_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void escapes_are_decoded(void **state)
{
    static const struct {
        const char *path;
        const char *decoded; /* NULL: refused */
    } rows[] = {
        {"/v1/traces", "/v1/traces"},
        {"/v1/%74races", "/v1/traces"},
        {"/%2F%2f", "/%2F%2F"},
        {"/v1%2ftraces", "/v1%2Ftraces"},
        {"/%", NULL},
        {"/%4", NULL},
        {"/%zz", NULL},
        {"/%00", NULL},
        {"", ""},
        {"*", "*"},
    };
    char room[HTTP_PATH_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool is_fine = http_path_decode(slice_of_text(rows[i].path), room);
        assert_int_equal(is_fine, rows[i].decoded != NULL);
        if (is_fine)
            assert_string_equal(room, rows[i].decoded);
    }
    assert_true(http_percent_decode(slice_of_text("a%20b%2Fc"), room));
    assert_string_equal(room, "a b/c");
    assert_false(http_percent_decode(slice_of_text("%00"), room));
}

static void paths_are_cleaned_as_go_does(void **state)
{
    static const struct {
        const char *path;
        const char *clean;
    } rows[] = {
        {"/", "/"},           {"", "/"},
        {"/a", "/a"},         {"a", "/a"},
        {"/a/", "/a/"},       {"//a", "/a"},
        {"/a//b", "/a/b"},    {"/a/./b", "/a/b"},
        {"/a/../b", "/b"},    {"/../../a", "/a"},
        {"/a/b/..", "/a"},    {"/a/b/../", "/a/"},
        {"/..", "/"},         {"/.../a", "/.../a"},
        {"/a/.", "/a"},       {"///", "/"},
        {"/%2e/a", "/%2e/a"}, {"/a%2F../b", "/a%2F../b"},
    };
    char room[HTTP_PATH_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        http_path_clean(rows[i].path, room);
        assert_string_equal(room, rows[i].clean);
    }
}

static void locations_are_escaped(void **state)
{
    static char longest[HTTP_PATH_ESCAPED_MAX];
    char room[HTTP_PATH_ESCAPED_MAX];
    (void)state;
    assert_true(http_path_escape("/a b\r\n\xff", slice_of_text("x=%20"), room));
    assert_string_equal(room, "/a%20b%0D%0A%FF?x=%20");
    memset(longest, 'x', sizeof(longest) - 1);
    assert_false(http_path_escape("/a", slice_of_text(longest), room));
}

static void the_longest_path_fits(void **state)
{
    static char path[HTTP_PATH_MAX + 1];
    char room[HTTP_PATH_MAX];
    char clean[HTTP_PATH_MAX];
    char escaped[HTTP_PATH_ESCAPED_MAX];
    (void)state;
    memset(path, '\x01', HTTP_PATH_MAX);
    path[0] = '/';
    assert_false(http_path_decode(slice_of(path, HTTP_PATH_MAX), room));
    assert_true(http_path_decode(slice_of(path, HTTP_PATH_MAX - 1), room));
    http_path_clean(room, clean);
    assert_true(strlen(clean) < HTTP_PATH_MAX);
    assert_true(http_path_escape(clean, slice_of("", 0), escaped));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_are_decoded),
        cmocka_unit_test(paths_are_cleaned_as_go_does),
        cmocka_unit_test(locations_are_escaped),
        cmocka_unit_test(the_longest_path_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
