/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the file exporter's files. The expectations of the first two tables are what the Go
 * collector does. */
#include "exporters/file/file_paths.h"
#include "src/base/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void paths_are_cleaned(void **state)
{
    static const char *const rows[][2] = {
        {"", "."},
        {"/", "/"},
        {".", "."},
        {"a", "a"},
        {"a/", "a"},
        {"//a//b/", "/a/b"},
        {"a/./b", "a/b"},
        {"a/../b", "b"},
        {"../a", "../a"},
        {"../../a", "../../a"},
        {"a/../../b", "../b"},
        {"/../a", "/a"},
        {"a/..", "."},
        {"/a/..", "/"},
        {"./a", "a"},
        {"a/b/../../..", ".."},
        {"..a/.b", "..a/.b"},
        {"/...//x", "/.../x"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char path[64];
        snprintf(path, sizeof(path), "%s", rows[i][0]);
        file_path_clean(path);
        assert_string_equal(path, rows[i][1]);
    }
}

static void directories_are_those_of_paths(void **state)
{
    static const char *const rows[][2] = {
        {"a", "."}, {"/a", "/"}, {"d/a", "d"}, {"/d//e/../a", "/d"}, {"d/", "d"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char directory[FILE_PATH_BYTES_MAX];
        file_path_directory(rows[i][0], directory);
        assert_string_equal(directory, rows[i][1]);
    }
}

static void groups_stay_below_their_directory(void **state)
{
    static const char *const rows[][3] = {
        {"/data/*.json", "shop", "/data/shop.json"},
        {"/data/*.json", "a/b", "/data/a/b.json"},
        {"/data/*.json", "../../etc/passwd", "/data/etc/passwd.json"},
        {"/data/*.json", "../x", "/data/x.json"},
        {"/data/*.json", "./x", "/data/x.json"},
        {"/data/*.json", "a/../../x", "/data/x.json"},
        {"/data/*.json", "", "/data/.json"},
        {"/data/*.json", "..", "/data/...json"},
        {"/data/*", "..", "/data"},
        {"/data/*/out", "..", "/data/out"},
        {"/data/*", "/etc/x", "/data/etc/x"},
        {"data/x*", "../y", "data/x/y"},
        {"./*.json", "../../z", "z.json"},
        {"../d/*", "../../../z", "../d/z"},
        {"//d/./*", "z", "/d/z"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct file_group_path pattern;
        char path[FILE_PATH_BYTES_MAX];
        file_group_path_init(&pattern, rows[i][0]);
        assert_int_equal(file_group_path_of(&pattern, slice_of_text(rows[i][1]), path), 0);
        print_message("   %s %s\n", rows[i][0], rows[i][1]);
        assert_string_equal(path, rows[i][2]);
    }
}

static void groups_that_make_no_path_are_refused(void **state)
{
    static char name[FILE_PATH_BYTES_MAX * 2];
    struct file_group_path pattern;
    char path[FILE_PATH_BYTES_MAX];
    (void)state;
    file_group_path_init(&pattern, "/data/*.json");
    assert_int_equal(file_group_path_of(&pattern, slice_of("a\0b", 3), path), -EINVAL);
    memset(name, 'n', sizeof(name));
    for (size_t size = FILE_PATH_BYTES_MAX - 20; size < sizeof(name); size++) {
        int failed = file_group_path_of(&pattern, slice_of(name, size), path);
        assert_true(failed == 0 || failed == -ENAMETOOLONG);
        assert_true(failed != 0 || strlen(path) == size + strlen("/data/.json"));
        assert_true(failed == 0 || size + strlen("/data/.json") + 4 > FILE_PATH_BYTES_MAX);
    }
}

static const uint64_t wall_ns = 1714979289123 * (uint64_t)NS_PER_MS; /* 2024-05-06T07:08:09.123Z */

static void rotated_files_have_their_time_in_their_names(void **state)
{
    static const char *const rows[][2] = {
        {"/d/traces.json", "/d/traces-2024-05-06T07-08-09.123-size.json"},
        {"traces", "traces-2024-05-06T07-08-09.123-size"},
        {"a.b/t.tar.zst", "a.b/t.tar-2024-05-06T07-08-09.123-size.zst"},
        {"d/.hidden", "d/-2024-05-06T07-08-09.123-size.hidden"},
    };
    char path[FILE_PATH_BYTES_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(file_backup_path(rows[i][0], wall_ns, false, path));
        assert_string_equal(path, rows[i][1]);
    }
    setenv("TZ", "Asia/Kolkata", 1);
    tzset();
    assert_true(file_backup_path("t.json", wall_ns, true, path));
    unsetenv("TZ");
    tzset();
    assert_string_equal(path, "t-2024-05-06T12-38-09.123-size.json");
}

static void names_of_rotated_files_are_told_from_others(void **state)
{
    static const struct {
        const char *name;
        bool is_backup;
    } rows[] = {
        {"t-2024-05-06T07-08-09.123-size.json", true},
        {"t-2024-05-06T07-08-09.123-time.json", true},
        {"t-2024-05-06T07-08-09.123-size.json.gz", true},
        {"t-2024-05-06T07-08-09.123-size.json.zst", true},
        {"t.json", false},
        {"t-.json", false},
        {"t-2024-05-06T07-08-09.123.json", false},
        {"t-2024-05-06T07-08-09-size.json", false},
        {"t-2024-04-31T07-08-09.123-size.json", false},
        {"t-2024-05-06T24-08-09.123-size.json", false},
        {"t-2024-05-06T07-08-09.1234-size.json", false},
        {"t-x-2024-05-06T07-08-09.123-size.json", false},
        {"tt-2024-05-06T07-08-09.123-size.json", false},
        {"t-2024-05-06T07-08-09.123-size.log", false},
        {"t-2024-05-06T07-08-09.123-size.json.bz2", false},
    };
    struct file_backup_name backup = file_backup_name_of("/d/t.json");
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t found_ns = 0;
        print_message("   %s\n", rows[i].name);
        assert_int_equal(file_backup_wall_ns(&backup, rows[i].name, false, &found_ns),
                         rows[i].is_backup);
        assert_true(!rows[i].is_backup || (uint64_t)found_ns == wall_ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_cleaned),
        cmocka_unit_test(directories_are_those_of_paths),
        cmocka_unit_test(groups_stay_below_their_directory),
        cmocka_unit_test(groups_that_make_no_path_are_refused),
        cmocka_unit_test(rotated_files_have_their_time_in_their_names),
        cmocka_unit_test(names_of_rotated_files_are_told_from_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
