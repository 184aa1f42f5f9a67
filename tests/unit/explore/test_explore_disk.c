/* SPDX-License-Identifier: Apache-2.0 */
/* The explore directory: what is written is read back in order, within its limit, and a disk that
 * fails or was torn costs no more than what it did not take. */
#include "src/explore/explore_disk.h"

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/otlp/nested_output.h"
#include "tests/unit/explore/span_request.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { TIMES_MAX = 64 };

struct place {
    char directory[64];
    uint64_t times[TIMES_MAX]; /* of what was read */
    size_t count;
};

static int set_up(void **state)
{
    struct place *place = mem_zalloc(sizeof(*place));
    strcpy(place->directory, "/tmp/explore-disk-XXXXXX");
    assert_non_null(mkdtemp(place->directory));
    *state = place;
    return 0;
}

static void remove_name(const char *name, void *arg)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", (const char *)arg, name);
    unlink(path);
}

static int tear_down(void **state)
{
    struct place *place = *state;
    fileops()->list(place->directory, remove_name, place->directory);
    rmdir(place->directory);
    mem_free(place);
    return 0;
}

static struct explore_disk *open_disk(struct place *place, uint64_t max_bytes)
{
    struct error error;
    const struct explore_disk_settings settings = {.directory = place->directory,
                                                   .max_bytes = max_bytes};
    struct explore_disk *disk = explore_disk_open(&settings, &error);
    if (disk == NULL)
        fail_msg("%s", error.text);
    return disk;
}

static bool write_one(struct explore_disk *disk, uint64_t serial, bool is_open)
{
    struct buffer *request = span_request(
        &(struct test_span){.trace = serial, .span = 1, .service = "a", .name = "n", .start_ns = 1},
        1);
    bool is_written = explore_disk_write(
        disk, EXPLORE_KEPT_TRACES,
        &(struct explore_disk_request){.bytes = buffer_slice(request), .time_ns = serial}, 1,
        is_open);
    buffer_unref(request);
    return is_written;
}

static bool on_request(void *arg, enum explore_kept kind, struct buffer *request,
                       struct slice bytes, uint64_t time_ns)
{
    struct place *place = arg;
    assert_int_equal(kind, EXPLORE_KEPT_TRACES);
    assert_non_null(request);
    assert_true(bytes.size > 0);
    assert_true(place->count < TIMES_MAX);
    place->times[place->count++] = time_ns;
    return true;
}

static void load(struct place *place)
{
    struct explore_disk *disk = open_disk(place, UINT64_MAX);
    place->count = 0;
    explore_disk_load(disk, on_request, place);
    explore_disk_close(disk);
}

static void what_is_written_is_read_in_order(void **state)
{
    struct place *place = *state;
    struct explore_disk *disk = open_disk(place, UINT64_MAX);
    struct error error;
    const struct explore_disk_settings same = {.directory = place->directory, .max_bytes = 1};
    for (uint64_t serial = 1; serial <= 3; serial++) {
        /* The open file is replaced by the one that is written once. */
        assert_true(write_one(disk, 100 + serial, true));
        assert_true(write_one(disk, 200 + serial, true));
        assert_true(write_one(disk, serial, false));
    }
    assert_true(write_one(disk, 4, true));
    assert_null(explore_disk_open(&same, &error));
    assert_non_null(strstr(error.text, "another process uses it"));
    explore_disk_close(disk);
    load(place);
    assert_int_equal(place->count, 4);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(place->times[i], i + 1);
}

static void the_oldest_files_go_beyond_the_limit(void **state)
{
    struct place *place = *state;
    struct explore_disk *disk = open_disk(place, 1000);
    for (uint64_t serial = 1; serial <= 50; serial++)
        assert_true(write_one(disk, serial, false));
    explore_disk_close(disk);
    load(place);
    assert_in_range(place->count, 1, 20);
    assert_int_equal(place->times[place->count - 1], 50);
    assert_int_equal(place->times[0], 51 - place->count);
}

static void count_name(const char *name, void *arg)
{
    (void)name;
    ++*(size_t *)arg;
}

static ssize_t no_room(int fd, const struct iovec *parts, int count, off_t offset)
{
    (void)fd;
    (void)parts;
    (void)count;
    (void)offset;
    return -ENOSPC;
}

static void a_full_disk_leaves_nothing_half_written(void **state)
{
    struct place *place = *state;
    struct explore_disk *disk = open_disk(place, UINT64_MAX);
    struct fileops full = *fileops();
    size_t names = 0;
    full.pwritev = no_room;
    assert_true(write_one(disk, 1, false));
    fileops_replace(&full);
    assert_false(write_one(disk, 2, false));
    fileops_replace(NULL);
    assert_true(write_one(disk, 3, false));
    explore_disk_close(disk);
    fileops()->list(place->directory, count_name, &names);
    assert_int_equal(names, 2);
    load(place);
    assert_int_equal(place->count, 2);
    assert_int_equal(place->times[1], 3);
}

/* Every length that a crash may leave, and every byte turned over. */
static void broken_files_cost_what_they_held(void **state)
{
    struct place *place = *state;
    struct explore_disk *disk = open_disk(place, UINT64_MAX);
    char path[128];
    char *whole;
    size_t size;
    assert_true(write_one(disk, 1, false));
    assert_true(write_one(disk, 2, false));
    explore_disk_close(disk);
    snprintf(path, sizeof(path), "%s/0000000000000001.traces", place->directory);
    assert_int_equal(file_read_whole(path, 1 << 20, &whole, &size), 0);
    for (size_t i = 0; i < 2 * size; i++) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        if (i >= size)
            whole[i - size] ^= 1;
        fwrite(whole, 1, i < size ? i : size, file);
        fclose(file);
        load(place);
        /* A file that ends behind its head lost its only record and is whole. */
        assert_int_equal(place->count, 1);
        assert_int_equal(place->times[0], 2);
        if (i >= size)
            whole[i - size] ^= 1;
    }
    mem_free(whole);
}

static int no_list(const char *path, void (*each)(const char *name, void *arg), void *arg)
{
    (void)path;
    (void)each;
    (void)arg;
    return -EIO;
}

static bool is_kept_file(const char *path)
{
    return strstr(path, ".traces") != NULL;
}

static int no_stat(const char *path, struct stat *ret_stat)
{
    if (is_kept_file(path))
        return -EIO;
    return stat(path, ret_stat) == 0 ? 0 : -errno;
}

/* What cannot be seen is not written over. */
static void files_that_cannot_be_seen_stay(void **state)
{
    struct place *place = *state;
    struct fileops broken = *fileops();
    const struct explore_disk_settings settings = {.directory = place->directory,
                                                   .max_bytes = UINT64_MAX};
    struct error error;
    struct explore_disk *disk = open_disk(place, UINT64_MAX);
    assert_true(write_one(disk, 1, false));
    explore_disk_close(disk);
    broken.list = no_list;
    fileops_replace(&broken);
    disk = explore_disk_open(&settings, &error);
    if (disk != NULL)
        write_one(disk, 2, false);
    explore_disk_close(disk);
    fileops_replace(NULL);
    broken = *fileops();
    broken.stat = no_stat;
    fileops_replace(&broken);
    disk = open_disk(place, UINT64_MAX);
    fileops_replace(NULL);
    assert_true(write_one(disk, 3, false));
    explore_disk_close(disk);
    load(place);
    assert_int_equal(place->count, 2);
    assert_int_equal(place->times[0], 1);
    assert_int_equal(place->times[1], 3);
}

enum { MANY_FILES = 70000, MANY_REQUESTS = 5000 };

static int list_many(const char *path, void (*each)(const char *name, void *arg), void *arg)
{
    char name[64];
    (void)path;
    for (unsigned i = 1; i <= MANY_FILES; i++) {
        snprintf(name, sizeof(name), "%016u.traces", i);
        each(name, arg);
    }
    return 0;
}

static int stat_any(const char *path, struct stat *ret_stat)
{
    *ret_stat = (struct stat){.st_mode = S_IFREG, .st_size = 1};
    return is_kept_file(path) || stat(path, ret_stat) == 0 ? 0 : -errno;
}

static void a_full_directory_is_not_written_over(void **state)
{
    struct place *place = *state;
    struct fileops many = *fileops();
    char path[128];
    many.list = list_many;
    many.stat = stat_any;
    fileops_replace(&many);
    struct explore_disk *disk = open_disk(place, UINT64_MAX);
    fileops_replace(NULL);
    assert_true(write_one(disk, 1, false));
    explore_disk_close(disk);
    snprintf(path, sizeof(path), "%s/%016u.traces", place->directory, MANY_FILES + 1);
    assert_int_equal(access(path, F_OK), 0);
}

static bool count_request(void *arg, enum explore_kept kind, struct buffer *request,
                          struct slice bytes, uint64_t time_ns)
{
    (void)kind;
    (void)request;
    (void)bytes;
    (void)time_ns;
    ++*(size_t *)arg;
    return true;
}

/* Before they are a block they may be as many as have its bytes. */
static void many_small_requests_are_kept(void **state)
{
    struct place *place = *state;
    size_t count = 0;
    struct buffer *request = span_request(
        &(struct test_span){.trace = 1, .span = 1, .service = "a", .name = "n", .start_ns = 1}, 1);
    struct explore_disk_request *requests = mem_alloc(MANY_REQUESTS * sizeof(requests[0]));
    for (size_t i = 0; i < MANY_REQUESTS; i++)
        requests[i] =
            (struct explore_disk_request){.bytes = buffer_slice(request), .time_ns = 1 + i};
    struct explore_disk *disk = open_disk(place, UINT64_MAX);
    assert_true(explore_disk_write(disk, EXPLORE_KEPT_TRACES, requests, MANY_REQUESTS, true));
    explore_disk_close(disk);
    disk = open_disk(place, UINT64_MAX);
    explore_disk_load(disk, count_request, &count);
    explore_disk_close(disk);
    assert_int_equal(count, MANY_REQUESTS);
    mem_free(requests);
    buffer_unref(request);
}

/* A request of which no profile can be used is not normalized. */
static void profiles_that_are_all_broken_are_not_given(void **state)
{
    struct place *place = *state;
    size_t count = 0;
    struct nested_output output = {.budget = NULL};
    struct nested_message messages[4];
    for (uint32_t i = 0; i < 4; i++)
        messages[i] = nested_put_begin(&output, i == 0 || i == 3 ? 1 : 2, 1);
    nested_put_number(&output, 1, 99); /* the type: a string that is not there */
    for (size_t i = 4; i > 0; i--)
        nested_put_end(&output, messages[i - 1]);
    const struct explore_disk_request request = {.bytes = buffer_slice(output.buffer),
                                                 .time_ns = 1};
    struct explore_disk *disk = open_disk(place, UINT64_MAX);
    assert_true(explore_disk_write(disk, EXPLORE_KEPT_PROFILES, &request, 1, false));
    explore_disk_close(disk);
    disk = open_disk(place, UINT64_MAX);
    explore_disk_load(disk, count_request, &count);
    explore_disk_close(disk);
    assert_int_equal(count, 0);
    nested_output_fini(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_read_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_oldest_files_go_beyond_the_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_disk_leaves_nothing_half_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_files_cost_what_they_held, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_that_cannot_be_seen_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_directory_is_not_written_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_small_requests_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(profiles_that_are_all_broken_are_not_given, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests_name("explore_disk", tests, NULL, NULL);
}
