/* SPDX-License-Identifier: Apache-2.0 */
/* Files of records: whole records only, rotation, and what a failing disk leaves behind. */
#include "exporters/file/output_file.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/log.h"
#include "src/base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { WALL_S = 1714979289 }; /* 2024-05-06T07:08:09Z */

static const struct logger logger = {.component_id = "file"};

struct fixture {
    char directory[64];
    char path[96];
    struct output_file_settings settings;
};

/* ---- a disk that fails ---- */

static struct fileops failing;
static size_t room;       /* bytes that writev takes before it fails */
static int write_failure; /* then; 0: the disk is all right */
static bool truncate_fails;

static ssize_t limited_writev(int fd, const struct iovec *parts, int count)
{
    struct iovec part = parts[0];
    (void)count;
    if (write_failure != 0 && room == 0)
        return write_failure;
    if (write_failure != 0 && part.iov_len > room)
        part.iov_len = room;
    ssize_t put = writev(fd, &part, 1);
    room -= write_failure != 0 && put > 0 ? (size_t)put : 0;
    return put;
}

static int maybe_truncate(int fd, off_t size)
{
    if (truncate_fails)
        return -EPERM;
    return ftruncate(fd, size) == 0 ? 0 : -errno;
}

static void set_up(struct fixture *fixture)
{
    *fixture = (struct fixture){.settings = {.has_lines = true, .logger = &logger}};
    clock_fake_start(1000 * (uint64_t)NS_PER_S, WALL_S * (uint64_t)NS_PER_S);
    snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/spanflame-test-file-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->path, sizeof(fixture->path), "%s/t.json", fixture->directory);
    failing = *fileops();
    failing.writev = limited_writev;
    failing.truncate = maybe_truncate;
    write_failure = 0;
    truncate_fails = false;
    fileops_replace(&failing);
}

static void remove_entry(const char *name, void *arg)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", (const char *)arg, name);
    if (unlink(path) != 0)
        rmdir(path);
}

static void tear_down(struct fixture *fixture)
{
    fileops_replace(NULL);
    clock_fake_stop();
    fileops()->list(fixture->directory, remove_entry, fixture->directory);
    rmdir(fixture->directory);
}

static struct output_file *open_file(const struct fixture *fixture)
{
    struct error error = {.text = ""};
    int failed;
    struct output_file *file = output_file_open(fixture->path, &fixture->settings, &error, &failed);
    if (file == NULL)
        fail_msg("%s", error.text);
    assert_int_equal(failed, 0);
    return file;
}

static struct output_record record_of(const char *text)
{
    size_t size = strlen(text);
    return (struct output_record){
        .parts = {{.iov_base = (void *)(uintptr_t)text, .iov_len = size},
                  {.iov_base = (void *)(uintptr_t) "\n", .iov_len = 1}},
        .parts_count = 2,
        .bytes = size + 1,
    };
}

static int put(struct output_file *file, const char *text)
{
    struct error error = {.text = ""};
    struct output_record record = record_of(text);
    int failed;
    size_t written = output_file_write(file, &record, 1, &error, &failed);
    assert_int_equal(written, failed == 0);
    assert_int_equal(error.text[0] == '\0', failed == 0);
    if (failed != 0)
        print_message("   %s\n", error.text);
    return failed;
}

static void check_content(const char *path, const char *expected)
{
    char *text;
    size_t size;
    assert_int_equal(file_read_whole(path, 8 << 20, &text, &size), 0);
    assert_string_equal(text, expected);
    mem_free(text);
}

static unsigned mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

static void files_are_replaced_or_appended_to(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    umask(022);
    struct output_file *file = open_file(&fixture);
    assert_int_equal(put(file, "one"), 0);
    output_file_close(file);
    assert_int_equal(mode_of(fixture.path), 0644);
    fixture.settings.appends = true;
    file = open_file(&fixture);
    assert_int_equal(put(file, "two"), 0);
    output_file_close(file);
    check_content(fixture.path, "one\ntwo\n");
    fixture.settings.appends = false;
    file = open_file(&fixture);
    assert_int_equal(put(file, "three"), 0);
    output_file_close(file);
    check_content(fixture.path, "three\n");
    tear_down(&fixture);
}

/* A group's file that was closed to make room is continued, one of an earlier run is replaced. */
static void files_of_this_run_are_continued(void **state)
{
    struct fixture fixture;
    struct stat info;
    (void)state;
    set_up(&fixture);
    struct output_file *file = open_file(&fixture);
    assert_int_equal(put(file, "one"), 0);
    output_file_close(file);
    assert_int_equal(stat(fixture.path, &info), 0);
    fixture.settings.is_kept_since = true;
    fixture.settings.since_ns = (int64_t)info.st_mtim.tv_sec * NS_PER_S + info.st_mtim.tv_nsec;
    file = open_file(&fixture);
    assert_int_equal(put(file, "two"), 0);
    output_file_close(file);
    check_content(fixture.path, "one\ntwo\n");
    fixture.settings.since_ns += 3600 * (int64_t)NS_PER_S;
    file = open_file(&fixture);
    assert_int_equal(put(file, "three"), 0);
    output_file_close(file);
    check_content(fixture.path, "three\n");
    tear_down(&fixture);
}

static void many_records_go_in_at_once(void **state)
{
    enum { RECORDS = 600, LINE_BYTES = 16 };
    static char lines[RECORDS][LINE_BYTES];
    static char expected[RECORDS * LINE_BYTES + 1];
    struct output_record records[RECORDS];
    struct fixture fixture;
    struct error error;
    int failed;
    (void)state;
    set_up(&fixture);
    expected[0] = '\0';
    for (int i = 0; i < RECORDS; i++) {
        snprintf(lines[i], sizeof(lines[i]), "r%d", i);
        records[i] = record_of(lines[i]);
        snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "r%d\n", i);
    }
    struct output_file *file = open_file(&fixture);
    assert_int_equal(output_file_write(file, records, RECORDS, &error, &failed), RECORDS);
    assert_int_equal(failed, 0);
    output_file_close(file);
    check_content(fixture.path, expected);
    tear_down(&fixture);
}

static void a_full_disk_leaves_whole_records(void **state)
{
    struct fixture fixture;
    struct error error = {.text = ""};
    int failed;
    (void)state;
    set_up(&fixture);
    struct output_file *file = open_file(&fixture);
    struct output_record records[] = {record_of("one"), record_of("two"), record_of("three")};
    write_failure = -ENOSPC;
    room = strlen("one\ntwo\nth");
    assert_int_equal(output_file_write(file, records, 3, &error, &failed), 2);
    assert_int_equal(failed, -ENOSPC);
    assert_non_null(strstr(error.text, "No space left on device"));
    assert_non_null(strstr(error.text, fixture.path));
    check_content(fixture.path, "one\ntwo\n");
    assert_int_equal(put(file, "three"), -ENOSPC);
    write_failure = 0;
    assert_int_equal(put(file, "three"), 0);
    check_content(fixture.path, "one\ntwo\nthree\n");
    output_file_close(file);
    tear_down(&fixture);
}

/* What cannot be removed is at least no part of the next line. */
static void a_torn_line_ends_before_the_next(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    struct output_file *file = open_file(&fixture);
    write_failure = -EIO;
    truncate_fails = true;
    room = 3;
    assert_int_equal(put(file, "first"), -EIO);
    check_content(fixture.path, "fir");
    assert_int_equal(put(file, "second"), -EIO);
    write_failure = 0;
    assert_int_equal(put(file, "third"), 0);
    assert_int_equal(put(file, "fourth"), 0);
    check_content(fixture.path, "fir\nthird\nfourth\n");
    output_file_close(file);
    tear_down(&fixture);
}

static void what_others_append_is_not_removed(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    fixture.settings.appends = true;
    struct output_file *file = open_file(&fixture);
    struct output_file *other = open_file(&fixture);
    assert_int_equal(put(file, "one"), 0);
    assert_int_equal(put(other, "two"), 0);
    write_failure = -ENOSPC;
    room = 2;
    assert_int_equal(put(file, "three"), -ENOSPC);
    write_failure = 0;
    check_content(fixture.path, "one\ntwo\nth");
    assert_int_equal(put(file, "three"), 0);
    check_content(fixture.path, "one\ntwo\nth\nthree\n");
    output_file_close(other);
    output_file_close(file);
    tear_down(&fixture);
}

static void a_path_that_cannot_be_opened_is_an_error(void **state)
{
    struct fixture fixture;
    struct error error = {.text = ""};
    int failed;
    (void)state;
    set_up(&fixture);
    assert_null(output_file_open("/nowhere/t.json", &fixture.settings, &error, &failed));
    assert_int_equal(failed, -ENOENT);
    assert_string_equal(error.text, "cannot open /nowhere/t.json: No such file or directory");
    tear_down(&fixture);
}

/* ---- rotation ---- */

static size_t entries;
static char names[16][256];

static void note_entry(const char *name, void *arg)
{
    (void)arg;
    assert_true(entries < 16);
    snprintf(names[entries++], sizeof(names[0]), "%s", name);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(left, right);
}

static void check_names(const struct fixture *fixture, const char *const *expected)
{
    entries = 0;
    assert_int_equal(fileops()->list(fixture->directory, note_entry, NULL), 0);
    qsort(names, entries, sizeof(names[0]), by_text);
    size_t i = 0;
    for (; expected[i] != NULL; i++) {
        print_message("   %s\n", i < entries ? names[i] : "(nothing)");
        assert_true(i < entries);
        assert_string_equal(names[i], expected[i]);
    }
    assert_int_equal(entries, i);
}

static void set_up_rotation(struct fixture *fixture)
{
    set_up(fixture);
    fixture->settings.is_rotated = true;
    fixture->settings.bytes_max = 10;
    fixture->settings.backups_max = 2;
}

static void files_that_are_full_are_renamed(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up_rotation(&fixture);
    umask(077);
    struct output_file *file = open_file(&fixture);
    assert_int_equal(access(fixture.path, F_OK), -1); /* made by the first record */
    assert_int_equal(put(file, "1234"), 0);
    assert_int_equal(put(file, "5678"), 0);
    check_content(fixture.path, "1234\n5678\n");
    assert_int_equal(mode_of(fixture.path), 0640); /* whatever the umask */
    assert_int_equal(chmod(fixture.path, 0604), 0);
    assert_int_equal(put(file, "9"), 0);
    assert_int_equal(mode_of(fixture.path), 0604);
    check_content(fixture.path, "9\n");
    output_file_close(file);
    check_names(&fixture,
                (const char *const[]){"t-2024-05-06T07-08-09.000-size.json", "t.json", NULL});
    umask(022);
    tear_down(&fixture);
}

static void two_rotations_of_one_moment_keep_both_files(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up_rotation(&fixture);
    struct output_file *file = open_file(&fixture);
    assert_int_equal(put(file, "12345678"), 0);
    assert_int_equal(put(file, "abcdefgh"), 0);
    assert_int_equal(put(file, "ABCDEFGH"), 0);
    output_file_close(file);
    check_names(&fixture,
                (const char *const[]){"t-2024-05-06T07-08-09.000-size.json",
                                      "t-2024-05-06T07-08-09.001-size.json", "t.json", NULL});
    tear_down(&fixture);
}

static void old_files_are_deleted_by_number_and_age(void **state)
{
    struct fixture fixture;
    char path[256];
    (void)state;
    set_up_rotation(&fixture);
    fixture.settings.days_max = 3;
    static const char *const there[] = {"t-2024-05-01T00-00-00.000-size.json",
                                        "t-2024-05-04T00-00-00.000-size.json.gz",
                                        "t-2024-05-05T00-00-00.000-size.json", "t-other.json"};
    for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", fixture.directory, there[i]);
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    struct output_file *file = open_file(&fixture);
    assert_int_equal(put(file, "12345678"), 0); /* looks around first */
    check_names(&fixture,
                (const char *const[]){there[1], there[2], "t-other.json", "t.json", NULL});
    assert_int_equal(put(file, "12345678"), 0);
    check_names(&fixture, (const char *const[]){there[2], "t-2024-05-06T07-08-09.000-size.json",
                                                "t-other.json", "t.json", NULL});
    clock_fake_advance(48 * 3600 * (uint64_t)NS_PER_S);
    assert_int_equal(put(file, "12345678"), 0);
    check_names(&fixture, (const char *const[]){"t-2024-05-06T07-08-09.000-size.json",
                                                "t-2024-05-08T07-08-09.000-size.json",
                                                "t-other.json", "t.json", NULL});
    output_file_close(file);
    tear_down(&fixture);
}

static void a_file_that_is_there_is_continued_if_it_has_room(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up_rotation(&fixture);
    struct output_file *file = open_file(&fixture);
    assert_int_equal(put(file, "12"), 0);
    output_file_close(file);
    file = open_file(&fixture);
    assert_int_equal(put(file, "34"), 0);
    check_content(fixture.path, "12\n34\n");
    output_file_close(file);
    file = open_file(&fixture);
    assert_int_equal(put(file, "567"), 0); /* it would be just full */
    check_content(fixture.path, "567\n");
    output_file_close(file);
    tear_down(&fixture);
}

static void a_record_larger_than_a_file_is_refused(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up_rotation(&fixture);
    struct output_file *file = open_file(&fixture);
    assert_int_equal(put(file, "1234567890"), -EFBIG);
    assert_int_equal(put(file, "123456789"), 0);
    check_content(fixture.path, "123456789\n");
    output_file_close(file);
    tear_down(&fixture);
}

static int refuse_rename(const char *from, const char *to)
{
    (void)from;
    (void)to;
    return -EACCES;
}

static void a_file_that_cannot_be_renamed_stays(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up_rotation(&fixture);
    struct output_file *file = open_file(&fixture);
    assert_int_equal(put(file, "12345678"), 0);
    failing.rename = refuse_rename;
    assert_int_equal(put(file, "abcdefgh"), -EACCES);
    check_content(fixture.path, "12345678\n");
    assert_int_equal(put(file, "abcdefgh"), -EACCES);
    check_content(fixture.path, "12345678\n");
    failing.rename = rename;
    assert_int_equal(put(file, "abcdefgh"), 0);
    check_content(fixture.path, "abcdefgh\n");
    output_file_close(file);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_replaced_or_appended_to),
        cmocka_unit_test(files_of_this_run_are_continued),
        cmocka_unit_test(many_records_go_in_at_once),
        cmocka_unit_test(a_full_disk_leaves_whole_records),
        cmocka_unit_test(a_torn_line_ends_before_the_next),
        cmocka_unit_test(what_others_append_is_not_removed),
        cmocka_unit_test(a_path_that_cannot_be_opened_is_an_error),
        cmocka_unit_test(files_that_are_full_are_renamed),
        cmocka_unit_test(two_rotations_of_one_moment_keep_both_files),
        cmocka_unit_test(old_files_are_deleted_by_number_and_age),
        cmocka_unit_test(a_file_that_is_there_is_continued_if_it_has_room),
        cmocka_unit_test(a_record_larger_than_a_file_is_refused),
        cmocka_unit_test(a_file_that_cannot_be_renamed_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
