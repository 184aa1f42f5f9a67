/* SPDX-License-Identifier: Apache-2.0 */
/* Reading whole files: sizes, refusals, and a failing disk. */
#include "src/base/fileops.h"

#include "src/base/machine.h"
#include "src/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/test_fileops_XXXXXX";

static int set_up(void **state)
{
    (void)state;
    strcpy(path + sizeof(path) - 7, "XXXXXX");
    int fd = mkstemp(path);
    ssize_t put = fd >= 0 ? write(fd, "twelve bytes", 12) : -1;
    close(fd);
    return put == 12 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    fileops_replace(NULL);
    return unlink(path);
}

static void a_file_is_read_whole_up_to_a_limit(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(file_read_whole(path, 12, &text, &size), 0);
    assert_int_equal(size, 12);
    assert_string_equal(text, "twelve bytes");
    mem_free(text);
    assert_int_equal(file_read_whole(path, 11, &text, &size), -EFBIG);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(file_read_whole(path, 0, &text, &size), 0);
    assert_int_equal(size, 0);
    assert_string_equal(text, "");
    mem_free(text);
}

static void only_regular_files_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int error;
    } rows[] = {
        {"/tmp", -EISDIR}, {"/dev/null", -EINVAL}, {"/tmp/no/such/file", -ENOENT}, {"", -ENOENT}};
    char *text = NULL;
    size_t size = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(file_read_whole(rows[i].path, 100, &text, &size), rows[i].error);
    assert_null(text);
}

/* A disk that gives one byte at a time, with a few interruptions, and then what the test wants. */
static unsigned reads;
static unsigned opened;
static ssize_t end_result;

static int slow_open(const char *name, int flags, mode_t mode)
{
    assert_string_equal(name, path);
    assert_int_equal(flags, O_RDONLY);
    opened++;
    return open(name, flags, mode);
}

static int slow_close(int fd)
{
    opened--;
    return close(fd);
}

static ssize_t slow_read(int fd, void *data, size_t size)
{
    assert_true(size > 0);
    if (++reads % 3 == 0)
        return -EINTR;
    ssize_t got = read(fd, data, 1);
    return got > 0 || end_result < 0 ? (got > 0 ? got : end_result)
                                     : (end_result > 0 ? (memset(data, 'x', 1), 1) : 0);
}

static int slow_stat(const char *name, struct stat *ret_stat)
{
    return stat(name, ret_stat) == 0 ? 0 : -errno;
}

static const struct fileops slow = {
    .open = slow_open, .close = slow_close, .read = slow_read, .stat = slow_stat};

static void short_reads_and_interruptions_are_no_error(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    fileops_replace(&slow);
    end_result = 0;
    assert_int_equal(file_read_whole(path, 100, &text, &size), 0);
    assert_string_equal(text, "twelve bytes");
    assert_int_equal(opened, 0);
    mem_free(text);
}

static void an_error_of_the_disk_is_handed_on_and_the_file_closed(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    fileops_replace(&slow);
    end_result = -EIO;
    assert_int_equal(file_read_whole(path, 100, &text, &size), -EIO);
    assert_int_equal(opened, 0);
    end_result = 1; /* it grows while it is read */
    assert_int_equal(file_read_whole(path, 100, &text, &size), -EFBIG);
    assert_int_equal(opened, 0);
    assert_null(text);
}

static void the_machine_says_what_it_has(void **state)
{
    (void)state;
    assert_true(machine_cores() >= 1);
    assert_true(machine_memory_bytes() > 1 << 20);
    assert_true(machine_process().rss_bytes > 0);
    assert_true(machine_process().cpu_seconds >= 0);
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(a_file_is_read_whole_up_to_a_limit),
        FILE_TEST(only_regular_files_are_read),
        FILE_TEST(short_reads_and_interruptions_are_no_error),
        FILE_TEST(an_error_of_the_disk_is_handed_on_and_the_file_closed),
        FILE_TEST(the_machine_says_what_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
