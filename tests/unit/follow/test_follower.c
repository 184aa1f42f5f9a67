/* SPDX-License-Identifier: Apache-2.0 */
/* Files that grow, are renamed, truncated, compressed, deleted, and read on after a restart. */
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/follow/follow_offsets.h"
#include "src/follow/followed_file.h"
#include "src/follow/follower.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

static const struct logger logger = {.component_id = "otlp_json_file"};

struct fixture {
    char directory[64];
    char pattern[96];
    char offsets[96];
    const char *include[1];
    const char *exclude[1];
    struct budget budget;
    struct follow_settings settings;
    struct follower *follower;
    char taken[65536]; /* the lines since the last check, each with its number and a blank */
    bool refuses;      /* lines are not taken */
    bool keeps;        /* they are taken, but never through */
    bool is_stopping;
};

static bool on_line(const struct follow_line *line, void *arg)
{
    struct fixture *fixture = arg;
    if (fixture->refuses)
        return false;
    if (line->bytes.size > 0)
        snprintf(fixture->taken + strlen(fixture->taken),
                 sizeof(fixture->taken) - strlen(fixture->taken), "%.*s@%d ", (int)line->bytes.size,
                 (const char *)line->bytes.data, (int)line->number);
    if (!fixture->keeps)
        follower_done(fixture->follower, line->end);
    return true;
}

static void on_settle(void *arg)
{
    (void)arg;
}

static bool is_stopping(void *arg)
{
    return ((struct fixture *)arg)->is_stopping;
}

static void open_follower(struct fixture *fixture)
{
    struct error error = {.text = ""};
    fixture->settings.budget = &fixture->budget;
    fixture->is_stopping = false;
    fixture->follower = follower_create(&fixture->settings, &error);
    if (fixture->follower == NULL || !follower_load(fixture->follower, &error))
        fail_msg("%s", error.text);
}

static void close_follower(struct fixture *fixture)
{
    follower_destroy(fixture->follower);
    fixture->follower = NULL;
    assert_int_equal(budget_used(&fixture->budget), 0);
}

/* Everything as the receiver has it, but from the beginning. */
static void prepare(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 1714979289 * (uint64_t)NS_PER_S);
    snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/spanflame-test-follow-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->pattern, sizeof(fixture->pattern), "%s/*.log", fixture->directory);
    snprintf(fixture->offsets, sizeof(fixture->offsets), "%s/offsets", fixture->directory);
    fixture->include[0] = fixture->pattern;
    budget_init(&fixture->budget, 64 << 20);
    fixture->settings = (struct follow_settings){
        .include = fixture->include,
        .include_count = 1,
        .fingerprint_size = 16,
        .line_bytes_max = 1 << 20,
        .flush_ns = 500 * (uint64_t)NS_PER_MS,
        .files_max = 1024,
        .logger = &logger,
        .take = on_line,
        .settle = on_settle,
        .is_stopping = is_stopping,
        .arg = fixture,
    };
}

static void set_up(struct fixture *fixture)
{
    prepare(fixture);
    open_follower(fixture);
}

static void remove_entry(const char *name, void *arg)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", (const char *)arg, name);
    unlink(path);
}

static void tear_down(struct fixture *fixture)
{
    if (fixture->follower != NULL)
        close_follower(fixture);
    budget_fini(&fixture->budget);
    fileops()->list(fixture->directory, remove_entry, fixture->directory);
    rmdir(fixture->directory);
    clock_fake_stop();
}

static const char *path_of(const struct fixture *fixture, const char *name)
{
    static char paths[2][256];
    static unsigned next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof(paths[0]), "%s/%s", fixture->directory, name);
    return path;
}

static void put_bytes(const struct fixture *fixture, const char *name, const void *data,
                      size_t size, int flags)
{
    int fd = open(path_of(fixture, name), O_WRONLY | O_CREAT | flags, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    close(fd);
}

static void append(const struct fixture *fixture, const char *name, const char *text)
{
    put_bytes(fixture, name, text, strlen(text), O_APPEND);
}

static void replace(const struct fixture *fixture, const char *name, const char *text)
{
    put_bytes(fixture, name, text, strlen(text), O_TRUNC);
}

static void move(const struct fixture *fixture, const char *from, const char *to)
{
    assert_int_equal(rename(path_of(fixture, from), path_of(fixture, to)), 0);
}

static void check(struct fixture *fixture, const char *expected)
{
    fixture->taken[0] = '\0';
    follower_poll(fixture->follower);
    print_message("   %s\n", fixture->taken);
    assert_string_equal(fixture->taken, expected);
}

static void new_lines_are_read_once(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    check(&fixture, "");
    append(&fixture, "a.log", "one\ntwo\n");
    append(&fixture, "b.log", "b1\n");
    check(&fixture, "one@1 two@2 b1@1 ");
    check(&fixture, "");
    append(&fixture, "a.log", "three\n\nfour\n");
    check(&fixture, "three@3 four@5 ");
    append(&fixture, "a.txt", "other\n");
    append(&fixture, "c.log", "");
    check(&fixture, "");
    assert_int_equal(follower_open_files(fixture.follower), 2);
    tear_down(&fixture);
}

static void start_at_end_passes_over_what_is_there(void **state)
{
    struct fixture fixture;
    (void)state;
    prepare(&fixture);
    fixture.settings.starts_at_end = true;
    open_follower(&fixture);
    append(&fixture, "a.log", "old\n");
    check(&fixture, "");
    append(&fixture, "a.log", "new\n");
    append(&fixture, "b.log", "b1\n"); /* it was not there */
    check(&fixture, "new@1 b1@1 ");
    tear_down(&fixture);
}

static void excluded_files_are_not_read(void **state)
{
    struct fixture fixture;
    char pattern[96];
    (void)state;
    prepare(&fixture);
    snprintf(pattern, sizeof(pattern), "%s/b*", fixture.directory);
    fixture.exclude[0] = pattern;
    fixture.settings.exclude = fixture.exclude;
    fixture.settings.exclude_count = 1;
    open_follower(&fixture);
    append(&fixture, "a.log", "a1\n");
    append(&fixture, "b.log", "b1\n");
    check(&fixture, "a1@1 ");
    tear_down(&fixture);
}

static void a_last_line_without_an_end_waits(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    append(&fixture, "a.log", "one\nhal");
    check(&fixture, "one@1 ");
    clock_fake_advance(400 * (uint64_t)NS_PER_MS);
    append(&fixture, "a.log", "f");
    check(&fixture, ""); /* it has grown */
    clock_fake_advance(400 * (uint64_t)NS_PER_MS);
    check(&fixture, "");
    clock_fake_advance(200 * (uint64_t)NS_PER_MS);
    check(&fixture, "half@2 ");
    append(&fixture, "a.log", "\nnext\n");
    check(&fixture, "next@4 ");
    tear_down(&fixture);
}

static void a_renamed_file_is_read_on(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    append(&fixture, "a.log", "a1: sixteen bytes\na2\n");
    check(&fixture, "a1: sixteen bytes@1 a2@2 ");
    append(&fixture, "a.log", "a3\n");
    move(&fixture, "a.log", "a.1.log");
    append(&fixture, "a.log", "new: sixteen bytes\n");
    check(&fixture, "a3@3 new: sixteen bytes@1 ");
    append(&fixture, "a.1.log", "a4\n");
    append(&fixture, "a.log", "new2\n");
    check(&fixture, "a4@4 new2@2 ");
    tear_down(&fixture);
}

/* Out of what the patterns name: it is still open. */
static void a_file_that_was_moved_away_is_read_to_its_end(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    append(&fixture, "a.log", "a1: sixteen bytes\n");
    check(&fixture, "a1: sixteen bytes@1 ");
    append(&fixture, "a.log", "a2\n");
    move(&fixture, "a.log", "gone");
    append(&fixture, "a.log", "new: sixteen bytes\n");
    check(&fixture, "a2@2 new: sixteen bytes@1 ");
    /* It comes back within three polls. */
    append(&fixture, "gone", "a3\n");
    check(&fixture, "");
    move(&fixture, "gone", "b.log");
    check(&fixture, "a3@3 ");
    assert_int_equal(unlink(path_of(&fixture, "b.log")), 0);
    for (int i = 0; i < 6; i++)
        check(&fixture, "");
    assert_int_equal(follower_known(fixture.follower), 1);
    tear_down(&fixture);
}

/* cp a a.1; : > a */
static void a_file_that_is_copied_and_truncated_is_read_on(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    append(&fixture, "a.log", "a1: sixteen bytes\n");
    check(&fixture, "a1: sixteen bytes@1 ");
    replace(&fixture, "a.1.log", "a1: sixteen bytes\n");
    check(&fixture, ""); /* the same beginning: the same file */
    replace(&fixture, "a.log", "");
    append(&fixture, "a.log", "new: sixteen bytes\n");
    check(&fixture, "new: sixteen bytes@1 ");
    append(&fixture, "a.log", "new2\n");
    check(&fixture, "new2@2 ");
    tear_down(&fixture);
}

static void a_shorter_file_with_the_same_beginning(void **state)
{
    static const struct {
        enum follow_truncation truncation;
        const char *at_once;
        const char *later;
    } rows[] = {
        {FOLLOW_IGNORE, "", ""},
        {FOLLOW_READ_WHOLE, "same: sixteen bytes@4 b@5 ", "c@6 "},
        {FOLLOW_READ_NEW, "", "c@4 "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        prepare(&fixture);
        fixture.settings.truncation = (int)rows[i].truncation;
        open_follower(&fixture);
        append(&fixture, "a.log", "same: sixteen bytes\nlonger\nlonger\n");
        check(&fixture, "same: sixteen bytes@1 longer@2 longer@3 ");
        replace(&fixture, "a.log", "same: sixteen bytes\nb\n");
        check(&fixture, rows[i].at_once);
        append(&fixture, "a.log", "c\n");
        check(&fixture, rows[i].later);
        tear_down(&fixture);
    }
}

/* What a consumer has not taken is read again. */
static void what_was_not_taken_is_read_again(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    append(&fixture, "a.log", "one\ntwo\n");
    fixture.refuses = true;
    check(&fixture, "");
    fixture.refuses = false;
    fixture.keeps = true;
    check(&fixture, "one@1 two@2 ");
    fixture.keeps = false;
    check(&fixture, "one@1 two@2 ");
    check(&fixture, "");
    tear_down(&fixture);
}

static void long_lines_are_cut(void **state)
{
    struct fixture fixture;
    (void)state;
    for (int truncates = 0; truncates < 2; truncates++) {
        prepare(&fixture);
        fixture.settings.line_bytes_max = 4;
        fixture.settings.truncates_lines = truncates != 0;
        open_follower(&fixture);
        append(&fixture, "a.log", "123456");
        check(&fixture, "1234@1 ");
        append(&fixture, "a.log", "7\nab\n");
        check(&fixture, truncates != 0 ? "ab@2 " : "567@2 ab@3 ");
        tear_down(&fixture);
    }
}

/* A line of several read buffers. */
static void large_lines_are_read_whole(void **state)
{
    enum { BYTES = 900000 };
    static char line[BYTES + 2];
    static char text[sizeof(line) + 8];
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    memset(line, 'x', BYTES);
    snprintf(text, sizeof(text), "%s\nend\n", line);
    fixture.settings.take = on_line;
    append(&fixture, "a.log", text);
    fixture.taken[0] = '\0';
    follower_poll(fixture.follower);
    assert_int_equal(strspn(fixture.taken, "x"), sizeof(fixture.taken) - 1); /* cut by the test */
    append(&fixture, "a.log", "more\n");
    check(&fixture, "more@3 ");
    tear_down(&fixture);
}

static void a_whole_file_may_be_one_line(void **state)
{
    struct fixture fixture;
    (void)state;
    prepare(&fixture);
    fixture.settings.takes_all = true;
    open_follower(&fixture);
    append(&fixture, "a.log", "{\n \"a\": 1\n}\n");
    check(&fixture, "{\n \"a\": 1\n}@1 ");
    tear_down(&fixture);
}

/* ---- compressed files ---- */

static size_t gzip(const char *text, uint8_t *room, size_t room_size)
{
    struct isal_zstream stream;
    isal_deflate_stateless_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.next_in = (uint8_t *)(uintptr_t)text;
    stream.avail_in = (uint32_t)strlen(text);
    stream.next_out = room;
    stream.avail_out = (uint32_t)room_size;
    assert_int_equal(isal_deflate_stateless(&stream), COMP_OK);
    return stream.total_out;
}

static void gzip_members_are_read_as_they_come(void **state)
{
    struct fixture fixture;
    uint8_t room[512];
    (void)state;
    prepare(&fixture);
    fixture.settings.compression = FOLLOW_AUTO;
    open_follower(&fixture);
    size_t size = gzip("one: sixteen bytes\ntwo\n", room, sizeof(room));
    put_bytes(&fixture, "a.log", room, size, O_APPEND);
    append(&fixture, "b.log", "plain: sixteen bytes\n");
    check(&fixture, "one: sixteen bytes@1 two@2 plain: sixteen bytes@1 ");
    check(&fixture, "");
    size = gzip("three\nfour", room, sizeof(room));
    put_bytes(&fixture, "a.log", room, size / 2, O_APPEND); /* it is being written */
    check(&fixture, "");
    put_bytes(&fixture, "a.log", room + size / 2, size - size / 2, O_APPEND);
    check(&fixture, "three@3 four@4 ");
    check(&fixture, "");
    tear_down(&fixture);
}

/* a.log becomes a.log.gz: the lines that were read are not read again. */
static void a_file_that_is_compressed_is_read_on(void **state)
{
    struct fixture fixture;
    uint8_t room[512];
    (void)state;
    prepare(&fixture);
    snprintf(fixture.pattern, sizeof(fixture.pattern), "%s/*.log*", fixture.directory);
    fixture.settings.compression = FOLLOW_AUTO;
    open_follower(&fixture);
    append(&fixture, "a.log", "one: sixteen bytes\ntwo\n");
    check(&fixture, "one: sixteen bytes@1 two@2 ");
    size_t size = gzip("one: sixteen bytes\ntwo\nthree\n", room, sizeof(room));
    put_bytes(&fixture, "a.log.gz", room, size, O_APPEND);
    assert_int_equal(unlink(path_of(&fixture, "a.log")), 0);
    check(&fixture, "three@3 ");
    check(&fixture, "");
    tear_down(&fixture);
}

static void damaged_gzip_is_given_up_until_it_grows(void **state)
{
    struct fixture fixture;
    uint8_t room[512];
    (void)state;
    prepare(&fixture);
    fixture.settings.compression = FOLLOW_GZIP;
    open_follower(&fixture);
    size_t size = gzip("one: sixteen bytes\n", room, sizeof(room));
    room[size - 8] ^= 1; /* the checksum */
    put_bytes(&fixture, "a.log", room, size, O_APPEND);
    fixture.taken[0] = '\0';
    follower_poll(fixture.follower);
    follower_poll(fixture.follower);
    assert_true(strlen(fixture.taken) <= strlen("one: sixteen bytes@1 "));
    tear_down(&fixture);
}

/* ---- deletion, locks, replays ---- */

static void files_are_deleted_when_they_are_through(void **state)
{
    struct fixture fixture;
    (void)state;
    prepare(&fixture);
    fixture.settings.deletes = true;
    open_follower(&fixture);
    append(&fixture, "a.log", "one\ntwo");
    fixture.keeps = true;
    check(&fixture, "one@1 two@2 ");
    assert_int_equal(access(path_of(&fixture, "a.log"), F_OK), 0);
    fixture.keeps = false;
    check(&fixture, "one@1 two@2 ");
    assert_int_equal(access(path_of(&fixture, "a.log"), F_OK), -1);
    check(&fixture, "");
    tear_down(&fixture);
}

static void locked_files_wait(void **state)
{
    struct fixture fixture;
    (void)state;
    prepare(&fixture);
    fixture.settings.locks = true;
    open_follower(&fixture);
    append(&fixture, "a.log", "one\n");
    int fd = open(path_of(&fixture, "a.log"), O_RDONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    check(&fixture, "");
    assert_int_equal(flock(fd, LOCK_UN), 0);
    check(&fixture, "one@1 ");
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);
    tear_down(&fixture);
}

static void replays_read_everything_again(void **state)
{
    struct fixture fixture;
    (void)state;
    prepare(&fixture);
    fixture.settings.replays = true;
    open_follower(&fixture);
    append(&fixture, "a.log", "one\ntwo\n");
    check(&fixture, "one@1 two@2 ");
    check(&fixture, "one@1 two@2 ");
    assert_int_equal(follower_known(fixture.follower), 0);
    tear_down(&fixture);
}

static void batches_bound_the_open_files(void **state)
{
    struct fixture fixture;
    (void)state;
    prepare(&fixture);
    fixture.settings.files_max = 2;
    fixture.settings.batches_max = 2;
    open_follower(&fixture);
    append(&fixture, "a.log", "a1: sixteen bytes\n");
    append(&fixture, "b.log", "b1: sixteen bytes\n");
    append(&fixture, "c.log", "c1: sixteen bytes\n");
    check(&fixture, "a1: sixteen bytes@1 b1: sixteen bytes@1 ");
    assert_int_equal(follower_open_files(fixture.follower), 1);
    fixture.settings.batches_max = 0;
    tear_down(&fixture);
}

/* ---- restarts ---- */

static void offsets_are_kept_over_a_restart(void **state)
{
    struct fixture fixture;
    (void)state;
    prepare(&fixture);
    fixture.settings.offsets_path = fixture.offsets;
    fixture.settings.starts_at_end = true; /* not after a restart */
    open_follower(&fixture);
    check(&fixture, "");
    append(&fixture, "a.log", "one: sixteen bytes\ntwo\n");
    check(&fixture, "one: sixteen bytes@1 two@2 ");
    close_follower(&fixture);
    append(&fixture, "a.log", "three\n");
    move(&fixture, "a.log", "b.log");
    append(&fixture, "a.log", "new: sixteen bytes\n");
    open_follower(&fixture);
    check(&fixture, "new: sixteen bytes@1 three@3 ");
    tear_down(&fixture);
}

static void damaged_offsets_prevent_the_start(void **state)
{
    static const char *const damages[] = {"", "x", "spanflame file offsets 1\n",
                                          ("spanflame file offsets 1\nfile 1 0 1 0 6f6e 61\n"
                                           "sum 0123456789abcdef\n")};
    struct fixture fixture;
    struct error error;
    (void)state;
    prepare(&fixture);
    fixture.settings.offsets_path = fixture.offsets;
    open_follower(&fixture);
    append(&fixture, "a.log", "one\n");
    check(&fixture, "one@1 ");
    close_follower(&fixture);
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        replace(&fixture, "offsets", damages[i]);
        fixture.follower = follower_create(&fixture.settings, &error);
        assert_non_null(fixture.follower);
        assert_false(follower_load(fixture.follower, &error));
        print_message("   %s\n", error.text);
        assert_non_null(strstr(error.text, "is damaged"));
        close_follower(&fixture);
    }
    tear_down(&fixture);
}

static size_t written_bytes;
static size_t longest_write;

static ssize_t count_bytes(int fd, const struct iovec *parts, int count)
{
    (void)fd;
    assert_int_equal(count, 1);
    written_bytes += parts->iov_len;
    longest_write = parts->iov_len > longest_write ? parts->iov_len : longest_write;
    return (ssize_t)parts->iov_len;
}

/* What is saved can be loaded, and takes the memory of one file at a time. */
static void offsets_of_very_many_files_are_cut(void **state)
{
    enum { FILES = 200, LINE_BYTES = 2 * FOLLOW_FINGERPRINT_BYTES_MAX + 256 };
    struct followed_file *files[FILES];
    struct followed_file *file = followed_file_create(NULL, FOLLOW_FINGERPRINT_BYTES_MAX);
    struct fileops counting = *fileops();
    struct fixture fixture;
    struct error error;
    size_t kept;
    (void)state;
    prepare(&fixture);
    followed_file_set_path(file, "a.log");
    file->first_size = FOLLOW_FINGERPRINT_BYTES_MAX;
    for (size_t i = 0; i < FILES; i++)
        files[i] = file;
    counting.writev = count_bytes;
    fileops_replace(&counting);
    assert_true(follow_offsets_save(fixture.offsets, files, FILES, false, &kept, &error));
    fileops_replace(NULL);
    assert_int_equal(kept, FOLLOW_OFFSETS_BYTES_MAX / LINE_BYTES);
    assert_in_range(written_bytes, kept * 2 * FOLLOW_FINGERPRINT_BYTES_MAX,
                    FOLLOW_OFFSETS_BYTES_MAX);
    assert_true(longest_write <= LINE_BYTES);
    followed_file_destroy(NULL, file);
    tear_down(&fixture);
}

static void a_smaller_fingerprint_is_taken_over(void **state)
{
    struct fixture fixture;
    (void)state;
    prepare(&fixture);
    fixture.settings.offsets_path = fixture.offsets;
    fixture.settings.fingerprint_size = 100;
    open_follower(&fixture);
    append(&fixture, "a.log", "one: more than sixteen bytes\n");
    check(&fixture, "one: more than sixteen bytes@1 ");
    close_follower(&fixture);
    fixture.settings.fingerprint_size = 16;
    open_follower(&fixture);
    append(&fixture, "a.log", "two\n");
    check(&fixture, "two@2 ");
    tear_down(&fixture);
}

/* ---- failures ---- */

static void every_allocation_may_fail(void **state)
{
    struct fixture fixture;
    (void)state;
    for (uint64_t n = 1; n < 12; n++) {
        set_up(&fixture);
        append(&fixture, "a.log", "one: sixteen bytes\ntwo\n");
        append(&fixture, "b.log", "bee: sixteen bytes\n");
        mem_refuse_nth(n);
        follower_poll(fixture.follower);
        mem_refuse_nth(0);
        follower_poll(fixture.follower);
        assert_non_null(strstr(fixture.taken, "two@2 "));
        assert_non_null(strstr(fixture.taken, "bee: sixteen bytes@1 "));
        tear_down(&fixture);
    }
}

static void a_full_budget_delays(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    append(&fixture, "a.log", "one\n");
    uint64_t all = budget_limit(&fixture.budget) - budget_used(&fixture.budget);
    assert_true(budget_try_take(&fixture.budget, all));
    check(&fixture, "");
    budget_return(&fixture.budget, all);
    check(&fixture, "one@1 ");
    tear_down(&fixture);
}

static void wrong_patterns_are_refused(void **state)
{
    struct fixture fixture;
    struct error error = {.text = ""};
    const char *reason;
    (void)state;
    prepare(&fixture);
    fixture.include[0] = "[";
    assert_null(follower_create(&fixture.settings, &error));
    assert_string_equal(error.text, "\"[\": syntax error in pattern");
    assert_false(follow_pattern_check("[", &reason));
    assert_true(follow_pattern_check("/var/log/**/*.log", &reason));
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_lines_are_read_once),
        cmocka_unit_test(start_at_end_passes_over_what_is_there),
        cmocka_unit_test(excluded_files_are_not_read),
        cmocka_unit_test(a_last_line_without_an_end_waits),
        cmocka_unit_test(a_renamed_file_is_read_on),
        cmocka_unit_test(a_file_that_was_moved_away_is_read_to_its_end),
        cmocka_unit_test(a_file_that_is_copied_and_truncated_is_read_on),
        cmocka_unit_test(a_shorter_file_with_the_same_beginning),
        cmocka_unit_test(what_was_not_taken_is_read_again),
        cmocka_unit_test(long_lines_are_cut),
        cmocka_unit_test(large_lines_are_read_whole),
        cmocka_unit_test(a_whole_file_may_be_one_line),
        cmocka_unit_test(gzip_members_are_read_as_they_come),
        cmocka_unit_test(a_file_that_is_compressed_is_read_on),
        cmocka_unit_test(damaged_gzip_is_given_up_until_it_grows),
        cmocka_unit_test(files_are_deleted_when_they_are_through),
        cmocka_unit_test(locked_files_wait),
        cmocka_unit_test(replays_read_everything_again),
        cmocka_unit_test(batches_bound_the_open_files),
        cmocka_unit_test(offsets_are_kept_over_a_restart),
        cmocka_unit_test(damaged_offsets_prevent_the_start),
        cmocka_unit_test(offsets_of_very_many_files_are_cut),
        cmocka_unit_test(a_smaller_fingerprint_is_taken_over),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_full_budget_delays),
        cmocka_unit_test(wrong_patterns_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
