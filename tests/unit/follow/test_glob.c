/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns: the expectations are what the Go collector's matcher (doublestar) says. */
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/follow/glob.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct match_case {
    const char *pattern;
    const char *path;
    bool is_match;
};

static const struct match_case matches[] = {
    {"a", "a", true},
    {"a", "ab", false},
    {"*", "a", true},
    {"*", "a/b", false},
    {"*", "", true},
    {"*.json", ".json", true},
    {"*.json", "x.json.gz", false},
    {"a*b*c", "axbybzc", true},
    {"a*b*c", "axbyb", false},
    {"?", "é", true},
    {"?", "ab", false},
    {"[a-c]x", "bx", true},
    {"[!a-c]x", "bx", false},
    {"[^a-c]x", "dx", true},
    {"[\\]]", "]", true},
    {"[a-]", "-", true},
    {"\\*", "*", true},
    {"\\*", "a", false},
    {"{a,b}.json", "b.json", true},
    {"{a,b}.json", "c.json", false},
    {"{a,{b,c}}x", "cx", true},
    {"{a/b,c}/d", "a/b/d", true},
    {"x{,y}", "x", true},
    {"**", "a/b/c", true},
    {"a/**", "a/b/c", true},
    {"a/**", "a", true},
    {"a/**/b", "a/b", true},
    {"a/**/b", "a/x/y/b", true},
    {"a/**/b", "a/x/y/c", false},
    {"**/b", "b", true},
    {"**/b/*.json", "x/b/b/1.json", true},
    {"a**", "abc", true},
    {"a**", "a/b", false},
    {"/var/log/*.log", "/var/log/a.log", true},
    {"/var/log/*.log", "/var/log/a/b.log", false},
};

static void paths_match_patterns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++) {
        const char *reason;
        struct glob *glob = glob_create(matches[i].pattern, false, &reason);
        print_message("   %s %s\n", matches[i].pattern, matches[i].path);
        assert_non_null(glob);
        assert_int_equal(glob_match(glob, matches[i].path), matches[i].is_match);
        glob_destroy(glob);
    }
}

static void malformed_patterns_are_refused(void **state)
{
    static const char *const patterns[] = {"[",  "[]",  "[a",     "[!]",  "{a",
                                           "a}", "a\\", "{a,{b}", "[a\\", "{a/../b}"};
    char many[GLOB_PATTERN_BYTES_MAX] = "";
    static char large[GLOB_PATTERN_BYTES_MAX + 2];
    const char *reason;
    (void)state;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        print_message("   %s\n", patterns[i]);
        assert_null(glob_create(patterns[i], true, &reason));
        assert_string_equal(reason, "syntax error in pattern");
    }
    for (int i = 0; i < 9; i++)
        strcat(many, "{a,b}");
    assert_null(glob_create(many, true, &reason));
    assert_string_equal(reason, "it stands for more than 256 patterns");
    memset(large, 'a', sizeof(large) - 1);
    assert_null(glob_create(large, true, &reason));
    assert_string_equal(reason, "it is longer than 4095 bytes");
}

/* Long patterns and names take no exponential time. */
static void matching_ends_soon(void **state)
{
    static char pattern[2001];
    static char name[4001];
    const char *reason;
    (void)state;
    for (size_t i = 0; i < 1000; i++)
        memcpy(pattern + 2 * i, "a*", 2);
    memset(name, 'a', 4000);
    name[3999] = 'b';
    pattern[1999] = 'c';
    struct glob *glob = glob_create(pattern, false, &reason);
    assert_non_null(glob);
    assert_false(glob_match(glob, name));
    glob_destroy(glob);
    for (size_t i = 0; i < 250; i++)
        memcpy(pattern + 5 * i, "**/a/", 5);
    pattern[1250] = 'x';
    pattern[1251] = '\0';
    for (size_t i = 0; i < 2000; i++)
        memcpy(name + 2 * i, "a/", 2);
    name[3999] = '\0';
    glob = glob_create(pattern, false, &reason);
    assert_non_null(glob);
    assert_false(glob_match(glob, name));
    glob_destroy(glob);
}

/* ---- searching ---- */

static char root[64];

static void touch(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    close(open(path, O_CREAT | O_WRONLY, 0644));
}

static void remove_all(const char *name, void *arg)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", (const char *)arg, name);
    if (unlink(path) != 0) {
        fileops()->list(path, remove_all, path);
        rmdir(path);
    }
}

static const char *const searches[][2] = {
    {"*.json", "a.json b.json"},
    {"./x/../*.json", "a.json b.json"},
    {"*", "a.json b.json"},
    {"*/*", "d/.hidden d/a.json l/.hidden l/a.json"},
    {"d/**", "d/.hidden d/a.json d/e/c.json d/e/f/c.json"},
    {"**/c.json", "d/e/c.json d/e/f/c.json l/e/c.json l/e/f/c.json"},
    {"**/**/f/*", "d/e/f/c.json l/e/f/c.json"},
    {"{a,b}.json", "a.json b.json"},
    {"{a,*}.json", "a.json b.json"},
    {"a.json", "a.json"},
    {"d", ""},
    {"nothing/*", ""},
    {"[a]*", "a.json"},
};

static void files_are_found(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/spanflame-test-glob-XXXXXX");
    assert_non_null(mkdtemp(root));
    touch("a.json");
    touch("b.json");
    touch("d/a.json");
    touch("d/.hidden");
    touch("d/e/c.json");
    touch("d/e/f/c.json");
    char link[128];
    snprintf(link, sizeof(link), "%s/l", root);
    assert_int_equal(symlink("d", link), 0);
    for (size_t i = 0; i < sizeof(searches) / sizeof(searches[0]); i++) {
        char pattern[256];
        char found[1024] = "";
        const char *reason;
        struct glob_paths paths = {.paths = NULL};
        snprintf(pattern, sizeof(pattern), "%s/%s", root, searches[i][0]);
        struct glob *glob = glob_create(pattern, true, &reason);
        assert_non_null(glob);
        glob_find(glob, &paths);
        glob_paths_sort(&paths);
        for (size_t j = 0; j < paths.count; j++) {
            strcat(found, j > 0 ? " " : "");
            strcat(found, paths.paths[j] + strlen(root) + 1);
        }
        print_message("   %s: %s\n", searches[i][0], found);
        assert_string_equal(found, searches[i][1]);
        assert_false(paths.is_cut);
        glob_paths_clear(&paths);
        glob_destroy(glob);
    }
    fileops()->list(root, remove_all, root);
    rmdir(root);
}

/* A link to a directory above ends with the limits. */
static void links_in_a_circle_end(void **state)
{
    const char *reason;
    char pattern[128];
    char link[128];
    struct glob_paths paths = {.paths = NULL};
    (void)state;
    snprintf(root, sizeof(root), "/tmp/spanflame-test-glob-XXXXXX");
    assert_non_null(mkdtemp(root));
    touch("d/a");
    snprintf(link, sizeof(link), "%s/d/up", root);
    assert_int_equal(symlink("..", link), 0);
    snprintf(pattern, sizeof(pattern), "%s/**/a", root);
    struct glob *glob = glob_create(pattern, true, &reason);
    glob_find(glob, &paths);
    glob_paths_sort(&paths);
    assert_true(paths.count > 0 && paths.count < 100);
    glob_paths_clear(&paths);
    glob_destroy(glob);
    unlink(link);
    fileops()->list(root, remove_all, root);
    rmdir(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_match_patterns),  cmocka_unit_test(malformed_patterns_are_refused),
        cmocka_unit_test(matching_ends_soon),    cmocka_unit_test(files_are_found),
        cmocka_unit_test(links_in_a_circle_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
