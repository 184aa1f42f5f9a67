/* SPDX-License-Identifier: Apache-2.0 */
/* One journal on a simulated disk: what a commit costs, when disk space comes back, and what
 * remains after bits, blocks or files were spoiled. */
#include "src/journal/journal_names.h"
#include "src/journal/journal_reader.h"
#include "src/journal/journal_store.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/core/batch.h"
#include "tests/support/simulated_disk.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cmocka.h>

enum { RECORDS_MAX = 200000, RECORD_BYTES = 700 };

static struct budget disk_bytes;
static struct budget memory;
static struct journal_store *store;
static size_t exporter;
static uint64_t disk_max;
static uint64_t came_ns; /* of records, Unix time */
static bool is_lost[RECORDS_MAX];
static uint64_t losses;
static uint64_t reports;

static void open_store(void)
{
    struct error error = {.text = ""};
    const struct journal_store_settings settings = {
        .directory = "/disk",
        .segment_bytes = JOURNAL_SEGMENT_BYTES_MIN,
        .disk = &disk_bytes,
        .is_synced = true,
        .directory_mode = 0700,
    };
    budget_init(&disk_bytes, disk_max);
    store = journal_store_open(&settings, &error);
    assert_string_equal(error.text, "");
    assert_non_null(store);
    exporter = (size_t)journal_store_exporter(store, "traces/otlp_http");
}

static void close_store(void)
{
    journal_store_close(store);
    assert_int_equal(budget_used(&disk_bytes), 0);
    budget_fini(&disk_bytes);
    disk_kill();
}

static int set_up(void **state)
{
    (void)state;
    disk_start(11);
    disk_max = UINT64_MAX;
    came_ns = 99;
    budget_init(&memory, UINT64_MAX);
    clock_fake_start(NS_PER_S, (uint64_t)1700000000 * NS_PER_S);
    open_store();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_store();
    budget_fini(&memory);
    clock_fake_stop();
    disk_stop();
    return 0;
}

static int append_group(size_t count, size_t bytes)
{
    struct journal_record *records = calloc(count, sizeof(*records));
    uint64_t *metas = calloc(count, sizeof(*metas));
    static uint64_t serial;
    for (size_t i = 0; i < count; i++) {
        struct buffer *buffer = buffer_create(NULL, bytes);
        metas[i] = ++serial;
        memset(buffer->data, (int)(metas[i] % 251), bytes);
        buffer->size = bytes;
        struct batch *batch = batch_create(LOGS, 1);
        batch_append(batch, buffer, buffer_slice(buffer));
        batch->items = 3;
        buffer_unref(buffer);
        records[i] = (struct journal_record){.next = i + 1 < count ? &records[i + 1] : NULL,
                                             .batch = batch,
                                             .meta = slice_of(&metas[i], sizeof(metas[i])),
                                             .wall_ns = came_ns};
    }
    for (struct journal_record *left = records; left != NULL;)
        left = journal_store_commit(store, left);
    int error = 0;
    for (size_t i = 0; i < count; i++) {
        error = records[i].error != 0 ? records[i].error : error;
        batch_unref((struct batch *)(uintptr_t)records[i].batch);
    }
    free(records);
    free(metas);
    return error;
}

static void on_damage(const struct journal_damage *damage, void *arg)
{
    (void)arg;
    reports++;
    losses += damage->records;
    for (uint64_t i = 0; i < damage->records; i++)
        is_lost[damage->first + i] = true;
}

/* Reads all; returns how many came. */
static size_t read_all(void)
{
    size_t count = 0;
    uint64_t low = journal_store_low(store, exporter);
    struct journal_reader *reader = journal_reader_create(store, low, on_damage, NULL);
    struct journal_stored stored;
    memset(is_lost, 0, sizeof(is_lost));
    losses = reports = 0;
    while (journal_reader_next(reader, &memory, &stored) == JOURNAL_READ) {
        assert_int_equal(stored.head.items, 3);
        assert_int_equal(stored.head.signal, LOGS);
        assert_int_equal(stored.head.wall_ns, 99);
        assert_int_equal(stored.head.meta_bytes, 8);
        uint64_t serial;
        memcpy(&serial, stored.payload->data, sizeof(serial));
        for (size_t i = sizeof(serial); i < stored.payload->size; i++)
            assert_int_equal(stored.payload->data[i], serial % 251);
        assert_false(is_lost[stored.head.id]);
        buffer_unref(stored.payload);
        count++;
    }
    journal_reader_destroy(reader);
    return count;
}

static void restart(void)
{
    close_store();
    open_store();
}

/* Beyond the first segments, in which files are made: one write and one flush. */
static void a_group_is_one_write_and_one_flush(void **state)
{
    (void)state;
    assert_int_equal(append_group(1, RECORD_BYTES), 0);
    uint64_t writes = disk_writes();
    uint64_t flushes = disk_flushes();
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(append_group(4, RECORD_BYTES), 0);
    assert_int_equal(disk_writes() - writes, 5);
    assert_int_equal(disk_flushes() - flushes, 5);
    assert_int_equal(read_all(), 21);
}

/* Segments are used again: no file grows, and all space but one segment comes back. */
static void space_comes_back(void **state)
{
    (void)state;
    uint64_t most = 0;
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(append_group(8, RECORD_BYTES), 0);
        uint64_t end = journal_store_figures(store).next_id;
        journal_store_done(store, exporter, journal_store_low(store, exporter), end);
        assert_int_equal(journal_store_keep(store), 0);
        most =
            journal_store_figures(store).bytes > most ? journal_store_figures(store).bytes : most;
    }
    assert_true(most <= 4 * JOURNAL_SEGMENT_BYTES_MIN);
    /* A backlog, delivered at once. */
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(append_group(8, RECORD_BYTES), 0);
    assert_true(journal_store_figures(store).bytes > 8 * JOURNAL_SEGMENT_BYTES_MIN);
    journal_store_done(store, exporter, journal_store_low(store, exporter),
                       journal_store_figures(store).next_id);
    journal_store_commit(store, NULL);
    assert_int_equal(journal_store_keep(store), 0);
    assert_true(journal_store_figures(store).bytes <= 3 * JOURNAL_SEGMENT_BYTES_MIN);
    assert_int_equal(budget_used(&disk_bytes), journal_store_figures(store).bytes);
    restart();
    assert_int_equal(read_all(), 0);
}

/* A backlog comes and goes. Returns what the files take then. */
static uint64_t grow_and_drain(void)
{
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(append_group(8, RECORD_BYTES), 0);
    journal_store_done(store, exporter, journal_store_low(store, exporter),
                       journal_store_figures(store).next_id);
    journal_store_commit(store, NULL);
    assert_int_equal(journal_store_keep(store), 0);
    assert_int_equal(budget_used(&disk_bytes), journal_store_figures(store).bytes);
    return journal_store_figures(store).bytes;
}

/* Files that were deleted and then missed are kept the next time, for some seconds, and only while
 * max_size has room for as much again. */
static void files_that_are_missed_are_kept_for_a_while(void **state)
{
    (void)state;
    assert_true(grow_and_drain() <= 3 * JOURNAL_SEGMENT_BYTES_MIN);
    uint64_t kept = grow_and_drain();
    assert_true(kept > 5 * JOURNAL_SEGMENT_BYTES_MIN);
    for (size_t i = 0; i < 10; i++) {
        clock_fake_advance(1 * NS_PER_S);
        assert_int_equal(journal_store_keep(store), 0);
    }
    assert_true(journal_store_figures(store).bytes <= 3 * JOURNAL_SEGMENT_BYTES_MIN);
    /* Missed after a long while, which tells nothing. */
    assert_true(grow_and_drain() <= 3 * JOURNAL_SEGMENT_BYTES_MIN);
    assert_true(grow_and_drain() >= kept);
    assert_true(budget_try_take(&disk_bytes, UINT64_MAX / 2));
    budget_lower(&disk_bytes, budget_used(&disk_bytes) + 1);
    assert_int_equal(journal_store_keep(store), 0);
    budget_return(&disk_bytes, UINT64_MAX / 2);
    assert_true(journal_store_figures(store).bytes <= 3 * JOURNAL_SEGMENT_BYTES_MIN);
}

/* A commit waits for what is on its way to the disk: never a whole new file. */
static void a_file_is_made_in_pieces(void **state)
{
    (void)state;
    assert_int_equal(append_group(1, RECORD_BYTES), 0);
    uint64_t flushes = disk_flushes();
    assert_int_equal(append_group(1, 6 << 20), 0);
    assert_true(disk_flushes() - flushes >= 6);
}

/* What a segment held before it was used again is no damage. */
static void old_records_behind_the_end_are_no_damage(void **state)
{
    (void)state;
    for (size_t i = 0; i < 100; i++) {
        for (size_t j = 0; j < 3 + i % 11; j++)
            assert_int_equal(append_group(8, RECORD_BYTES), 0);
        journal_store_done(store, exporter, journal_store_low(store, exporter),
                           journal_store_figures(store).next_id);
        assert_int_equal(journal_store_keep(store), 0);
        journal_store_commit(store, NULL);
        restart();
        assert_int_equal(journal_store_tail(store).records, 0);
    }
}

static void pay_all(size_t of, uint64_t first, uint64_t end)
{
    for (uint64_t id = first; id < end; id++)
        journal_store_pay(store, of, id, (struct journal_amount){.items = 3, .bytes = 700});
}

static void assert_backlog(size_t of, uint64_t records, uint64_t wall_ns)
{
    struct journal_backlog backlog;
    assert_true(journal_store_backlog(store, of, &backlog));
    assert_int_equal(backlog.records, records);
    assert_int_equal(backlog.amount.items, 3 * records);
    assert_int_equal(backlog.amount.bytes, RECORD_BYTES * records);
    assert_int_equal(backlog.oldest_wall_ns, wall_ns);
}

static void a_backlog_is_counted_and_dated_over_restarts(void **state)
{
    (void)state;
    const uint64_t day_ns = (uint64_t)86400 * NS_PER_S;
    const uint64_t start_ns = clock_wall_ns();
    size_t other = (size_t)journal_store_exporter(store, "traces/other");
    assert_backlog(exporter, 0, 0);
    /* Over several segments, a day apart. */
    for (uint64_t day = 1; day <= 10; day++) {
        came_ns = start_ns + day * day_ns;
        clock_fake_advance(day_ns);
        assert_int_equal(append_group(50, RECORD_BYTES), 0);
    }
    pay_all(exporter, 1, 101);
    pay_all(exporter, 110, 120);
    assert_backlog(exporter, 390, start_ns + 3 * day_ns);
    assert_backlog(other, 500, start_ns + day_ns);
    assert_int_equal(journal_store_figures(store).oldest_wall_ns, start_ns + day_ns);
    assert_int_equal(journal_store_figures(store).written.items, 1500);
    journal_store_commit(store, NULL);
    restart();
    other = (size_t)journal_store_exporter(store, "traces/other");
    struct journal_backlog unknown;
    assert_false(journal_store_backlog(store, other + 1, &unknown));
    assert_backlog(other, 500, start_ns + day_ns);
    /* Of a segment that no start reads, the time is that of its first record, until it is read. */
    struct journal_backlog backlog;
    assert_true(journal_store_backlog(store, exporter, &backlog));
    assert_true(backlog.oldest_wall_ns > start_ns &&
                backlog.oldest_wall_ns <= start_ns + 3 * day_ns);
    pay_all(other, 1, 501);
    assert_backlog(other, 0, 0);
    pay_all(exporter, 101, 110);
    journal_store_commit(store, NULL);
    restart();
    other = (size_t)journal_store_exporter(store, "traces/other");
    assert_backlog(exporter, 381, start_ns + 3 * day_ns);
    assert_backlog(other, 0, 0);
    /* What was finished but not written is owed again. */
    pay_all(exporter, 120, 501);
    assert_backlog(exporter, 0, 0);
    restart();
    assert_backlog(exporter, 381, start_ns + 3 * day_ns);
}

static void what_was_lost_to_damage_does_not_count_for_ever(void **state)
{
    (void)state;
    assert_int_equal(append_group(20, RECORD_BYTES), 0);
    /* The reader passes over five that it could not read. */
    journal_store_done(store, exporter, 1, 6);
    pay_all(exporter, 6, 20);
    struct journal_backlog backlog;
    assert_true(journal_store_backlog(store, exporter, &backlog));
    assert_int_equal(backlog.records, 1);
    assert_int_equal(backlog.amount.items, 6 * 3);
    pay_all(exporter, 20, 21);
    assert_backlog(exporter, 0, 0);
    journal_store_commit(store, NULL);
    restart();
    assert_backlog(exporter, 0, 0);
}

/* More notes than are kept: a checkpoint behind the records of the same group replaces them. */
static void a_checkpoint_in_a_group_counts_the_records_of_the_group(void **state)
{
    (void)state;
    enum { GROUPS = 18, GROUP = 500, SMALL_BYTES = 16, LAST = 10 };
    for (size_t i = 0; i < GROUPS; i++)
        assert_int_equal(append_group(GROUP, SMALL_BYTES), 0);
    for (uint64_t id = 1; id <= GROUPS * GROUP; id += 2)
        journal_store_pay(store, exporter, id, (struct journal_amount){3, SMALL_BYTES});
    assert_int_equal(append_group(LAST, SMALL_BYTES), 0);
    restart();
    const uint64_t records = GROUPS * GROUP / 2 + LAST;
    struct journal_backlog backlog;
    assert_true(journal_store_backlog(store, exporter, &backlog));
    assert_int_equal(backlog.records, records);
    assert_int_equal(backlog.amount.items, 3 * records);
    assert_int_equal(backlog.amount.bytes, SMALL_BYTES * records);
}

static void one_that_was_given_up_takes_no_ids_along(void **state)
{
    (void)state;
    size_t other = (size_t)journal_store_exporter(store, "traces/other");
    came_ns = clock_wall_ns();
    assert_int_equal(append_group(20, RECORD_BYTES), 0);
    journal_store_done(store, other, 1, UINT64_MAX);
    assert_backlog(other, 0, 0);
    assert_int_equal(append_group(20, RECORD_BYTES), 0);
    assert_backlog(other, 0, 0);
    restart();
    assert_int_equal(journal_store_figures(store).next_id, 41);
    assert_backlog(exporter, 40, came_ns);
}

static void a_full_disk_refuses_and_recovers(void **state)
{
    (void)state;
    close_store();
    disk_max = 6 * JOURNAL_SEGMENT_BYTES_MIN;
    open_store();
    size_t taken = 0;
    while (append_group(1, RECORD_BYTES) == 0)
        taken++;
    assert_int_equal(append_group(1, RECORD_BYTES), -EDQUOT);
    assert_int_equal(read_all(), taken);
    assert_true(taken > 60);
    /* Reading and delivering goes on without a place to note it, and makes room. */
    journal_store_done(store, exporter, 1, journal_store_figures(store).next_id);
    clock_fake_advance((uint64_t)2 * NS_PER_S);
    journal_store_commit(store, NULL);
    journal_store_keep(store);
    assert_int_equal(append_group(1, RECORD_BYTES), 0);
    assert_int_equal(read_all(), 1);
}

static void records_may_be_larger_than_a_segment(void **state)
{
    (void)state;
    assert_int_equal(append_group(1, 3 * JOURNAL_SEGMENT_BYTES_MIN), 0);
    assert_int_equal(append_group(3, RECORD_BYTES), 0);
    assert_int_equal(append_group(1, JOURNAL_SEGMENT_BYTES_MIN - JOURNAL_BLOCK_BYTES), 0);
    restart();
    assert_int_equal(read_all(), 5);
    assert_int_equal(losses, 0);
}

/* The files are whole blocks, so that padding a group never makes one grow. */
static void no_file_grows(void **state)
{
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(append_group(1, 2 * JOURNAL_SEGMENT_BYTES_MIN + 1000 * i + 1), 0);
        for (size_t more = 0; more < 4; more++)
            assert_int_equal(append_group(1, RECORD_BYTES), 0);
    }
    uint64_t bytes = journal_store_figures(store).bytes;
    restart();
    assert_int_equal(journal_store_figures(store).bytes, bytes);
}

/* Only its mark is damaged, and the budget has room at the second try. */
static void a_record_that_found_no_room_is_read_later(void **state)
{
    (void)state;
    assert_int_equal(append_group(2, RECORD_BYTES), 0);
    restart();
    size_t size;
    uint8_t *file = disk_file("0000000000000001.journal", &size);
    struct journal_place place = {.segment = 1, .offset = JOURNAL_BLOCK_BYTES};
    struct journal_segment_header header;
    struct journal_head head;
    assert_true(journal_segment_header_read(file, &header));
    place.key = header.key;
    for (bool is_second = false; !is_second; place.offset += journal_record_bytes(head.bytes)) {
        assert_true(journal_head_read(file + place.offset, &place, &head));
        is_second = head.type == JOURNAL_DATA && head.id == 2;
        if (is_second)
            file[place.offset] ^= 1;
    }
    struct budget none;
    budget_init(&none, 1);
    struct journal_reader *reader = journal_reader_create(store, 2, on_damage, NULL);
    struct journal_stored stored;
    losses = 0;
    assert_int_equal(journal_reader_next(reader, &none, &stored), JOURNAL_READ_BUSY);
    assert_int_equal(journal_reader_next(reader, &memory, &stored), JOURNAL_READ);
    assert_int_equal(stored.head.id, 2);
    assert_int_equal(losses, 0);
    buffer_unref(stored.payload);
    journal_reader_destroy(reader);
    budget_fini(&none);
}

/* Some records over several segments; the first of each segment is noted. */
static size_t fill(void)
{
    size_t count = 0;
    for (size_t i = 0; i < 40; i++, count += 9)
        assert_int_equal(append_group(9, RECORD_BYTES), 0);
    restart();
    return count;
}

static char names[256][64];
static size_t names_count;

static void note_name(const char *name, void *arg)
{
    uint64_t number;
    (void)arg;
    if (journal_segment_number(name, &number))
        snprintf(names[names_count++], sizeof(names[0]), "%s", name);
}

static void list_names(size_t least)
{
    names_count = 0;
    disk_each(note_name, NULL);
    assert_true(names_count >= least);
}

static void a_flipped_bit_costs_its_record_at_most(void **state)
{
    (void)state;
    size_t count = fill();
    list_names(4);
    size_t hits = 0;
    for (unsigned trial = 0; trial < 1500; trial++) {
        size_t size;
        const char *name = names[disk_random(names_count)];
        uint8_t *bytes = disk_file(name, &size);
        /* Half of them where the heads are. */
        size_t bit = disk_random(2) == 0 ? disk_random(8 * size) : 0;
        if (bit == 0) {
            size_t record = disk_random(8);
            bit = 8 * (disk_random(8) * 8192 % size + record * 760 % size) +
                  disk_random((uint64_t)8 * JOURNAL_HEAD_BYTES);
            bit %= 8 * size;
        }
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        restart();
        size_t read = read_all();
        uint64_t tail = journal_store_tail(store).records;
        if (read + 1 < count || read + losses + tail != count)
            print_error("%s, byte %zu: %zu of %zu came, %d lost, %d torn\n", name, bit / 8, read,
                        count, (int)losses, (int)tail);
        assert_true(read >= count - 1);
        assert_int_equal(read + losses + tail, count);
        hits += count - read;
        bytes = disk_file(name, &size);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(hits > 300);
}

static void a_zeroed_block_costs_what_lay_in_it(void **state)
{
    (void)state;
    size_t count = fill();
    list_names(4);
    for (unsigned trial = 0; trial < 200; trial++) {
        size_t size;
        uint8_t kept[JOURNAL_BLOCK_BYTES];
        const char *name = names[disk_random(names_count)];
        uint8_t *block = disk_file(name, &size);
        block += disk_random(size / JOURNAL_BLOCK_BYTES) * JOURNAL_BLOCK_BYTES;
        memcpy(kept, block, sizeof(kept));
        memset(block, 0, sizeof(kept));
        restart();
        size_t read = read_all();
        /* A block has room for so many records, or parts of them. */
        assert_true(read >= count - 7);
        bool is_end = read + losses < count;
        /* What is missing at the very end was maybe never there. */
        assert_true(!is_end || strcmp(name, names[names_count - 1]) == 0 || losses == 0);
        memcpy(block, kept, sizeof(kept));
    }
}

static void a_deleted_or_cut_file_costs_what_lay_in_it(void **state)
{
    (void)state;
    size_t count = fill();
    list_names(4);
    assert_int_equal(read_all(), count);
    disk_truncate(names[1], JOURNAL_SEGMENT_BYTES_MIN / 2);
    restart();
    size_t left = read_all();
    assert_true(left < count && left > count - 80);
    assert_int_equal(left + losses, count);
    disk_remove(names[2]);
    restart();
    left = read_all();
    assert_int_equal(left + losses, count);
    assert_true(left > count - 160);
    /* It goes on. */
    assert_int_equal(append_group(5, RECORD_BYTES), 0);
    assert_int_equal(read_all(), left + 5);
}

static void a_segment_of_a_later_version_is_left_alone(void **state)
{
    (void)state;
    size_t count = fill();
    list_names(4);
    size_t size;
    uint8_t *block = disk_file(names[1], &size);
    struct journal_segment_header header;
    assert_true(journal_segment_header_read(block, &header));
    header.version = JOURNAL_VERSION + 1;
    journal_segment_header_write(block, &header);
    restart();
    size_t left = read_all();
    assert_int_equal(left + losses, count);
    journal_store_done(store, exporter, 1, journal_store_figures(store).next_id);
    assert_int_equal(append_group(1, RECORD_BYTES), 0);
    assert_int_equal(journal_store_keep(store), 0);
    assert_non_null(disk_file(names[1], &size));
}

static void a_second_process_is_locked_out(void **state)
{
    (void)state;
    struct error error = {.text = ""};
    const struct journal_store_settings settings = {.directory = "/disk",
                                                    .segment_bytes = JOURNAL_SEGMENT_BYTES_MIN,
                                                    .disk = &disk_bytes,
                                                    .is_synced = true};
    assert_null(journal_store_open(&settings, &error));
    assert_string_equal(error.text, "/disk is in use by another process");
}

/* After a failed flush the same pages would pretend to be clean. */
static void a_failed_flush_moves_the_group_to_a_new_segment(void **state)
{
    (void)state;
    assert_int_equal(append_group(2, RECORD_BYTES), 0);
    disk_fail(2, 1, -EIO);
    assert_int_equal(append_group(3, RECORD_BYTES), 0);
    disk_fail(0, 0, 0);
    close_store();
    disk_cut();
    open_store();
    assert_int_equal(read_all(), 5);
    assert_int_equal(losses, 0);
}

/* An exporter finishes a backlog, and the process is killed while it flushes that. */
static uint64_t finish_without_flush(void)
{
    for (size_t i = 0; i < 48; i++)
        assert_int_equal(append_group(1, RECORD_BYTES), 0);
    journal_store_keep(store);
    uint64_t end = journal_store_figures(store).next_id;
    journal_store_done(store, exporter, journal_store_low(store, exporter), end);
    uint64_t flushes = disk_flushes();
    disk_fail(2, 1000, -EIO);
    journal_store_commit(store, NULL);
    disk_fail(0, 0, 0);
    assert_true(disk_flushes() > flushes);
    restart();
    assert_int_equal(journal_store_low(store, exporter), end);
    return end;
}

/* What a killed process wrote of its exporters' progress is read from the kernel's memory, but a
 * power cut may still take it back: nothing is freed before a checkpoint is on the disk. */
static void progress_that_was_not_flushed_frees_nothing(void **state)
{
    (void)state;
    size_t taken_back = 0;
    for (size_t i = 0; i < 20; i++) {
        uint64_t end = finish_without_flush();
        assert_int_equal(journal_store_keep(store), 0);
        close_store();
        disk_cut();
        open_store();
        uint64_t left = end - journal_store_low(store, exporter);
        assert_int_equal(read_all(), left);
        assert_int_equal(losses, 0);
        taken_back += left > 0;
    }
    assert_true(taken_back > 0);
    finish_without_flush();
    assert_true(journal_store_has_news(store));
    journal_store_commit(store, NULL);
    assert_int_equal(journal_store_keep(store), 0);
    assert_true(journal_store_figures(store).bytes <= 3 * JOURNAL_SEGMENT_BYTES_MIN);
    close_store();
    disk_cut();
    open_store();
    assert_int_equal(read_all(), 0);
    assert_int_equal(losses, 0);
}

/* max_size is used up by what was finished before a kill: the first request takes its place. */
static void a_start_without_room_uses_what_is_finished(void **state)
{
    (void)state;
    close_store();
    disk_max = 4 * JOURNAL_SEGMENT_BYTES_MIN;
    open_store();
    finish_without_flush();
    assert_int_equal(budget_used(&disk_bytes), disk_max);
    assert_int_equal(append_group(1, RECORD_BYTES), 0);
    assert_int_equal(read_all(), 1);
    close_store();
    disk_cut();
    open_store();
    assert_int_equal(read_all(), 1);
    assert_int_equal(losses, 0);
}

/* Fills max_size, but for one block, maybe until a request is refused, and finishes all of it
 * without saying so on the disk. */
static uint64_t fill_and_finish(uint64_t seed, bool is_refused)
{
    enum { SEGMENTS = 3, GROUPS = JOURNAL_SEGMENT_BYTES_MIN / JOURNAL_BLOCK_BYTES - 1 };
    close_store();
    disk_stop();
    disk_start(seed);
    disk_max = SEGMENTS * JOURNAL_SEGMENT_BYTES_MIN;
    open_store();
    for (size_t i = 0; i < SEGMENTS * GROUPS - 1; i++)
        assert_int_equal(append_group(1, RECORD_BYTES), 0);
    assert_int_equal(budget_used(&disk_bytes), disk_max);
    if (is_refused)
        assert_int_equal(append_group(1, 2 * JOURNAL_BLOCK_BYTES), -EDQUOT);
    uint64_t end = journal_store_figures(store).next_id;
    journal_store_done(store, exporter, journal_store_low(store, exporter), end);
    return end;
}

/* max_size is used up, and what has just been finished is to take its own place: after a power cut
 * nobody misses it. */
static void what_makes_room_is_not_missed(void **state)
{
    (void)state;
    enum { OPERATIONS = 12 };
    for (unsigned n = 0; n < OPERATIONS; n++) {
        uint64_t end = fill_and_finish(n + 1, n == 1);
        if (n <= 1) {
            journal_store_keep(store);
        } else {
            disk_fail(n, 1000, -EIO);
            append_group(1, 2 * JOURNAL_BLOCK_BYTES);
            disk_fail(0, 0, 0);
        }
        close_store();
        disk_cut();
        open_store();
        read_all();
        for (uint64_t id = 1; id < end; id++)
            assert_false(is_lost[id]);
    }
}

/* A group that fails takes the news of exporters along: they are told again. */
static void news_outlives_a_failed_group(void **state)
{
    (void)state;
    assert_int_equal(append_group(2, RECORD_BYTES), 0);
    uint64_t end = journal_store_figures(store).next_id;
    journal_store_done(store, exporter, journal_store_low(store, exporter), end);
    disk_fail(1, 1000, -EIO);
    assert_int_equal(append_group(1, RECORD_BYTES), -EIO);
    disk_fail(0, 0, 0);
    assert_true(journal_store_has_news(store));
    clock_fake_advance((uint64_t)2 * NS_PER_S);
    journal_store_commit(store, NULL);
    restart();
    assert_true(journal_store_low(store, exporter) >= end);
}

/* More news than there is room for, of exporters that take turns: a checkpoint tells it, in a
 * segment of its own where the last one is too full. */
static void a_full_segment_holds_no_news_back(void **state)
{
    (void)state;
    enum { GROUP = 64, GROUPS = 40, FILLS = 16 };
    size_t other = (size_t)journal_store_exporter(store, "traces/other");
    for (size_t fill = 0; fill < FILLS; fill++) {
        for (size_t i = 0; i < GROUPS; i++)
            assert_int_equal(append_group(GROUP, 1), 0);
        for (size_t i = 0; i < fill; i++)
            assert_int_equal(append_group(1, RECORD_BYTES), 0);
        uint64_t end = journal_store_figures(store).next_id;
        for (uint64_t id = journal_store_low(store, exporter); id < end; id++) {
            journal_store_done(store, exporter, id, id + 1);
            journal_store_done(store, other, id, id + 1);
        }
        journal_store_commit(store, NULL);
        assert_false(journal_store_has_news(store));
        journal_store_keep(store);
    }
}

/* One that is further behind than its window has ids to pass over that no record ever got. */
static void ids_of_failed_groups_hold_nobody_up(void **state)
{
    (void)state;
    enum { GROUP = 64, GROUPS = 1040 };
    for (size_t i = 0; i < GROUPS; i++)
        assert_int_equal(append_group(GROUP, 1), 0);
    uint64_t end = journal_store_figures(store).next_id;
    disk_fail(1, 1000, -EIO);
    assert_int_equal(append_group(3, 1), -EIO);
    disk_fail(0, 0, 0);
    for (uint64_t id = journal_store_low(store, exporter); id < end; id++)
        journal_store_done(store, exporter, id, id + 1);
    assert_int_equal(journal_store_low(store, exporter), end);
    assert_int_equal(journal_store_pass_unused(store, exporter, end), end + 3);
    assert_int_equal(journal_store_low(store, exporter), end + 3);
    clock_fake_advance((uint64_t)2 * NS_PER_S);
    assert_int_equal(append_group(1, 1), 0);
    assert_int_equal(journal_store_pass_unused(store, exporter, end + 3), end + 3);
    assert_int_equal(read_all(), 1);
}

static void any_failing_operation_is_survived(void **state)
{
    (void)state;
    size_t taken = 0;
    for (uint64_t nth = 1; nth < 60; nth++) {
        disk_fail(nth % 30 + 1, 1 + nth / 30 * 5, nth % 2 == 0 ? -EIO : -ENOSPC);
        for (size_t i = 0; i < 12; i++) {
            taken += append_group(2, 3000) == 0 ? 2 : 0;
            journal_store_keep(store);
            clock_fake_advance(NS_PER_S / 4);
        }
        disk_fail(0, 0, 0);
        clock_fake_advance((uint64_t)2 * NS_PER_S);
        assert_int_equal(append_group(1, 10), 0);
        taken++;
        if (nth % 3 == 0)
            restart();
        assert_true(read_all() >= taken);
    }
}

/* The head of the newest request is damaged, but behind it lies a note that it is finished, or that
 * another one is: its id is not used again, for that would be taken as finished. */
static void a_damaged_last_request_is_counted_and_its_id_not_used_again(void **state)
{
    (void)state;
    for (unsigned is_finished = 0; is_finished < 2; is_finished++) {
        assert_int_equal(append_group(3, RECORD_BYTES), 0);
        uint64_t next_id = journal_store_figures(store).next_id;
        uint64_t done = is_finished ? next_id - 1 : next_id - 3;
        journal_store_done(store, exporter, done, done + 1);
        journal_store_commit(store, NULL);
        char name[JOURNAL_NAME_BYTES];
        size_t size;
        journal_segment_name(name, is_finished + 1);
        uint8_t *file = disk_file(name, &size);
        struct journal_segment_header header;
        struct journal_head head;
        assert_true(journal_segment_header_read(file, &header));
        struct journal_place place = {
            .key = header.key, .segment = is_finished + 1, .offset = JOURNAL_BLOCK_BYTES};
        while (!journal_head_read(file + place.offset, &place, &head) ||
               head.type != JOURNAL_DATA || head.id != next_id - 1) {
            place.offset += JOURNAL_ALIGN_BYTES;
            assert_true(place.offset < size);
        }
        file[place.offset + 30] ^= 1;
        restart();
        struct journal_damage tail = journal_store_tail(store);
        assert_int_equal(tail.records, is_finished ? 0 : 1);
        assert_true(is_finished || tail.offset == place.offset);
        size_t waited = read_all();
        assert_int_equal(losses, is_finished); /* which no exporter waits for */
        assert_int_equal(append_group(1, RECORD_BYTES), 0);
        assert_int_equal(read_all(), waited + 1);
    }
}

/* The file of the newest segment ends where a group began: nothing but its size says so. */
static void a_newest_segment_that_was_cut_off_is_damaged(void **state)
{
    (void)state;
    struct journal_stored last = {.offset = 0};
    struct journal_stored stored;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(append_group(1, RECORD_BYTES), 0);
    struct journal_reader *reader = journal_reader_create(store, 1, on_damage, NULL);
    while (journal_reader_next(reader, &memory, &stored) == JOURNAL_READ) {
        buffer_unref(stored.payload);
        last = stored;
    }
    journal_reader_destroy(reader);
    assert_int_equal(last.offset % JOURNAL_BLOCK_BYTES, 0);
    char name[JOURNAL_NAME_BYTES];
    journal_segment_name(name, last.segment);
    close_store();
    disk_truncate(name, last.offset);
    open_store();
    struct journal_damage tail = journal_store_tail(store);
    assert_int_equal(tail.segment, last.segment);
    assert_int_equal(tail.offset, last.offset);
    assert_int_equal(tail.records, 1);
    assert_int_equal(read_all(), 2);
}

/* Another process looks into the directory. */
static struct journal_store *open_read_only(struct budget *bytes)
{
    struct error error = {.text = ""};
    budget_init(bytes, UINT64_MAX);
    struct journal_store *looked_at =
        journal_store_open(&(struct journal_store_settings){.directory = "/disk",
                                                            .segment_bytes = JOURNAL_SEGMENT_BYTES,
                                                            .disk = bytes,
                                                            .is_synced = true,
                                                            .is_read_only = true},
                           &error);
    assert_string_equal(error.text, "");
    assert_non_null(looked_at);
    return looked_at;
}

static struct journal_damage damage_seen;

static void note_damage(const struct journal_damage *damage, void *arg)
{
    (void)arg;
    if (reports++ == 0)
        damage_seen = *damage;
    losses += damage->records;
}

/* Reads all at a depth; returns how many came. */
static size_t look_through(struct journal_store *looked_at, enum journal_depth depth)
{
    struct journal_reader *reader = journal_reader_create(looked_at, 0, note_damage, NULL);
    struct journal_stored stored;
    size_t count = 0;
    losses = reports = 0;
    journal_reader_set_depth(reader, depth);
    while (journal_reader_next(reader, &memory, &stored) == JOURNAL_READ) {
        assert_int_equal(stored.head.items, 3);
        assert_true((stored.payload != NULL) == (depth == JOURNAL_PAYLOADS));
        buffer_unref(stored.payload);
        count++;
    }
    journal_reader_destroy(reader);
    return count;
}

static void looking_changes_nothing_and_needs_no_lock(void **state)
{
    (void)state;
    for (size_t i = 0; i < 30; i++)
        assert_int_equal(append_group(9, RECORD_BYTES), 0);
    journal_store_done(store, exporter, 1, 101);
    journal_store_commit(store, NULL);
    uint64_t operations = disk_operations();
    struct budget bytes;
    struct journal_store *looked_at = open_read_only(&bytes);
    assert_int_equal(disk_operations(), operations);
    assert_string_equal(journal_store_exporter_name(looked_at, 0), "traces/otlp_http");
    assert_null(journal_store_exporter_name(looked_at, 1));
    assert_int_equal(journal_store_low(looked_at, 0), 101);
    assert_true(journal_store_has_key_file(looked_at));
    struct journal_file file;
    uint64_t total = 0;
    for (size_t i = 0; journal_store_file(looked_at, i, &file); total += file.bytes, i++)
        assert_true(!file.is_foreign && (file.is_free || file.version == JOURNAL_VERSION));
    assert_int_equal(total, journal_store_figures(store).bytes);
    /* What comes now is not looked at. */
    assert_int_equal(append_group(4, RECORD_BYTES), 0);
    operations = disk_operations();
    for (unsigned depth = JOURNAL_PAYLOADS; depth <= JOURNAL_CHECKS; depth++) {
        assert_int_equal(look_through(looked_at, depth), 270);
        assert_int_equal(reports, 0);
    }
    journal_store_close(looked_at);
    assert_int_equal(disk_operations(), operations);
    budget_fini(&bytes);
    assert_int_equal(read_all(), 174);
}

static void a_segment_that_is_freed_while_it_is_looked_at_is_no_damage(void **state)
{
    (void)state;
    size_t count = fill();
    struct budget bytes;
    struct journal_store *looked_at = open_read_only(&bytes);
    journal_store_done(store, exporter, 1, journal_store_figures(store).next_id);
    assert_int_equal(append_group(1, RECORD_BYTES), 0);
    assert_int_equal(journal_store_keep(store), 0);
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(append_group(9, RECORD_BYTES), 0);
    assert_true(look_through(looked_at, JOURNAL_CHECKS) < count);
    assert_int_equal(reports, 0);
    journal_store_close(looked_at);
    budget_fini(&bytes);
}

/* What the daemon does after the files were listed, and before they are read. */
static struct fileops watched;
static const struct fileops *simulated;

static int list_and_go_on(const char *path, void (*each)(const char *name, void *arg), void *arg)
{
    int failed = simulated->list(path, each, arg);
    fileops_replace(simulated);
    /* A new segment, in which it is noted that older ones are not needed. */
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(append_group(9, RECORD_BYTES), 0);
    journal_store_done(store, exporter, 1, journal_store_figures(store).next_id - 20);
    assert_int_equal(append_group(1, RECORD_BYTES), 0);
    journal_store_keep(store);
    return failed;
}

static void segments_that_are_freed_while_a_directory_is_opened_are_no_damage(void **state)
{
    (void)state;
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(append_group(9, RECORD_BYTES), 0);
    simulated = fileops();
    watched = *simulated;
    watched.list = list_and_go_on;
    for (unsigned depth = JOURNAL_PAYLOADS; depth <= JOURNAL_CHECKS; depth++) {
        fileops_replace(&watched);
        struct budget bytes;
        struct journal_store *looked_at = open_read_only(&bytes);
        look_through(looked_at, depth);
        assert_int_equal(reports, 0);
        journal_store_close(looked_at);
        budget_fini(&bytes);
    }
}

/* Every byte that counts, with the record that it belongs to; the bytes of padding do not. */
static bool is_used_byte(const uint8_t *file, uint64_t number, size_t size, size_t byte)
{
    struct journal_segment_header header;
    struct journal_head head;
    struct journal_place place = {.segment = number, .offset = JOURNAL_BLOCK_BYTES};
    assert_true(journal_segment_header_read(file, &header));
    place.key = header.key;
    if (byte < 40)
        return true;
    while (place.offset < size) {
        if (!journal_head_read(file + place.offset, &place, &head)) {
            if (place.offset % JOURNAL_BLOCK_BYTES == 0)
                return false;
            place.offset = (place.offset / JOURNAL_BLOCK_BYTES + 1) * JOURNAL_BLOCK_BYTES;
            continue;
        }
        if (byte < place.offset)
            return false;
        if (byte < place.offset + JOURNAL_HEAD_BYTES + head.bytes)
            return byte >= place.offset + 4; /* the mark is for searching only */
        place.offset += journal_record_bytes(head.bytes);
    }
    return false;
}

static void any_flipped_bit_is_seen_and_placed(void **state)
{
    (void)state;
    size_t count = 0;
    for (size_t i = 0; i < 40; i++, count += 9) {
        assert_int_equal(append_group(9, RECORD_BYTES), 0);
        if (i == 5 || i == 38)
            journal_store_done(store, exporter, 100 + i, 110 + i);
    }
    restart();
    list_names(4);
    size_t seen = 0;
    for (unsigned trial = 0; trial < 1500; trial++) {
        size_t size;
        const char *name = names[disk_random(names_count)];
        uint8_t *file = disk_file(name, &size);
        uint64_t number;
        assert_true(journal_segment_number(name, &number));
        size_t byte = disk_random(disk_random(2) == 0 ? size : 2 * JOURNAL_BLOCK_BYTES);
        if (!is_used_byte(file, number, size, byte))
            continue;
        file[byte] ^= (uint8_t)(1 << trial % 8);
        struct budget bytes;
        struct journal_store *looked_at = open_read_only(&bytes);
        size_t read = look_through(looked_at, JOURNAL_CHECKS);
        struct journal_damage tail = journal_store_tail(looked_at);
        assert_true(reports + tail.records == 1);
        if (reports == 0)
            damage_seen = tail;
        assert_int_equal(damage_seen.segment, number);
        assert_true(damage_seen.offset <= byte && byte < damage_seen.offset + 2000);
        assert_int_equal(read + losses + tail.records, count);
        journal_store_close(looked_at);
        budget_fini(&bytes);
        disk_file(name, &size)[byte] ^= (uint8_t)(1 << trial % 8);
        seen++;
    }
    assert_true(seen > 700);
    struct budget bytes;
    struct journal_store *looked_at = open_read_only(&bytes);
    assert_int_equal(look_through(looked_at, JOURNAL_CHECKS), count);
    assert_int_equal(reports, 0);
    journal_store_close(looked_at);
    budget_fini(&bytes);
}

/* Not even records; what is missing is known by the segments around it. */
static void a_zeroed_block_and_a_deleted_file_are_seen(void **state)
{
    (void)state;
    size_t count = fill();
    list_names(4);
    size_t size;
    uint8_t *file = disk_file(names[1], &size);
    memset(file + (size_t)4 * JOURNAL_BLOCK_BYTES, 0, JOURNAL_BLOCK_BYTES);
    struct budget bytes;
    struct journal_store *looked_at = open_read_only(&bytes);
    size_t read = look_through(looked_at, JOURNAL_CHECKS);
    assert_int_equal(reports, 1);
    assert_int_equal(read + losses, count);
    assert_in_range(damage_seen.offset, 3 * JOURNAL_BLOCK_BYTES, 4 * JOURNAL_BLOCK_BYTES);
    journal_store_close(looked_at);
    budget_fini(&bytes);
    disk_remove(names[0]);
    looked_at = open_read_only(&bytes);
    read = look_through(looked_at, JOURNAL_CHECKS);
    assert_int_equal(reports, 2);
    assert_int_equal(read + losses, count);
    assert_int_equal(damage_seen.first, 1);
    journal_store_close(looked_at);
    budget_fini(&bytes);
}

/* Files of freed segments go away in any order; only what somebody waits for is missed. */
static void a_freed_segment_between_others_is_not_missed(void **state)
{
    (void)state;
    size_t count = fill();
    list_names(4);
    journal_store_done(store, exporter, 1, 201);
    journal_store_commit(store, NULL);
    disk_remove(names[1]);
    struct budget bytes;
    struct journal_store *looked_at = open_read_only(&bytes);
    assert_true(look_through(looked_at, JOURNAL_CHECKS) < count);
    assert_int_equal(reports, 0);
    journal_store_close(looked_at);
    budget_fini(&bytes);
    disk_remove(names[names_count - 2]);
    looked_at = open_read_only(&bytes);
    look_through(looked_at, JOURNAL_CHECKS);
    assert_int_equal(reports, 1);
    assert_true(losses > 10 && damage_seen.first > 200);
    journal_store_close(looked_at);
    budget_fini(&bytes);
}

static void a_directory_without_a_key_is_not_read_as_empty(void **state)
{
    (void)state;
    assert_int_equal(append_group(4, RECORD_BYTES), 0);
    size_t size;
    disk_file("0000000000000001.journal", &size)[3] ^= 1;
    disk_remove("key");
    struct error error = {.text = ""};
    struct budget bytes;
    budget_init(&bytes, UINT64_MAX);
    assert_null(
        journal_store_open(&(struct journal_store_settings){.directory = "/disk",
                                                            .segment_bytes = JOURNAL_SEGMENT_BYTES,
                                                            .disk = &bytes,
                                                            .is_read_only = true},
                           &error));
    assert_non_null(strstr(error.text, "neither the file \"key\" nor"));
    assert_null(disk_file("key", &size));
    budget_fini(&bytes);
}

/* Reads until there is nothing more; returns how many came. */
static size_t read_on(struct journal_reader *reader, enum journal_read wanted_end)
{
    struct journal_stored stored;
    enum journal_read read;
    size_t count = 0;
    while ((read = journal_reader_next(reader, &memory, &stored)) == JOURNAL_READ) {
        buffer_unref(stored.payload);
        count++;
    }
    assert_int_equal(read, wanted_end);
    return count;
}

static void wait_seconds(uint64_t seconds)
{
    clock_fake_advance(seconds * NS_PER_S);
}

/* The process has no descriptor left for hours, or a cable is loose for a few seconds. */
static void what_cannot_be_read_for_now_is_read_later(void **state)
{
    (void)state;
    const struct {
        int error;
        uint64_t seconds;
    } troubles[] = {{-EMFILE, 36000}, {-ENOMEM, 36000}, {-EACCES, 36000}, {-EIO, 29}};
    size_t count = fill();
    for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++) {
        struct journal_reader *reader = journal_reader_create(store, 1, on_damage, NULL);
        struct journal_stored stored;
        uint64_t segment;
        losses = reports = 0;
        /* Before the first segment is opened, and in the middle of the next. */
        size_t before = i % 2 == 0 ? 0 : 100;
        for (size_t n = 0; n < before; n++) {
            assert_int_equal(journal_reader_next(reader, &memory, &stored), JOURNAL_READ);
            buffer_unref(stored.payload);
        }
        disk_fail_reads(troubles[i].error);
        size_t more = read_on(reader, JOURNAL_READ_FAILED);
        assert_int_equal(journal_reader_failure(reader, &segment), troubles[i].error);
        assert_in_range(segment, 1, 10);
        wait_seconds(troubles[i].seconds);
        more += read_on(reader, JOURNAL_READ_FAILED);
        disk_fail_reads(0);
        assert_int_equal(before + more + read_on(reader, JOURNAL_READ_END), count);
        assert_int_equal(losses, 0);
        journal_reader_destroy(reader);
    }
}

/* It costs the records in it, not those that are read together with it. */
static void a_block_that_is_gone_counts_as_damaged_after_a_while(void **state)
{
    (void)state;
    size_t count = fill();
    list_names(4);
    for (size_t offset = JOURNAL_BLOCK_BYTES; offset < JOURNAL_SEGMENT_BYTES_MIN;
         offset += JOURNAL_BLOCK_BYTES) {
        struct journal_reader *reader = journal_reader_create(store, 1, on_damage, NULL);
        losses = reports = 0;
        disk_fail_blocks(names[1], offset, 1);
        size_t come = read_on(reader, JOURNAL_READ_FAILED);
        wait_seconds(31);
        come += read_on(reader, JOURNAL_READ_END);
        assert_true(come >= count - 7);
        journal_reader_destroy(reader);
    }
    disk_fail_blocks(NULL, 0, 0);
}

/* Nothing that is only unreadable now is taken for an empty file and used again. */
static void a_start_that_cannot_read_costs_nothing(void **state)
{
    (void)state;
    struct error error = {.text = ""};
    const struct journal_store_settings settings = {.directory = "/disk",
                                                    .segment_bytes = JOURNAL_SEGMENT_BYTES_MIN,
                                                    .disk = &disk_bytes,
                                                    .is_synced = true};
    size_t count = fill();
    close_store();
    const int errors[] = {-EMFILE, -EIO};
    for (size_t i = 0; i < 2; i++) {
        budget_init(&disk_bytes, UINT64_MAX);
        disk_fail_reads(errors[i]);
        assert_null(journal_store_open(&settings, &error));
        assert_non_null(
            strstr(error.text, i == 0 ? "cannot open /disk/0000" : "cannot read the file"));
        assert_non_null(strstr(error.text, strerror(-errors[i])));
        disk_kill();
        budget_fini(&disk_bytes);
    }
    disk_fail_reads(0);
    open_store();
    list_names(4);
    assert_int_equal(read_all(), count);
    /* Each block, and each file as a whole: an old one, and the newest with records in it. */
    const size_t blocks = JOURNAL_SEGMENT_BYTES_MIN / JOURNAL_BLOCK_BYTES;
    for (size_t trial = 0; trial < 2 * (blocks + 1); trial++) {
        size_t newest = 0;
        size_t block = trial / 2;
        list_names(4);
        for (size_t i = 0; i < names_count; i++)
            newest = strcmp(names[i], names[newest]) > 0 ? i : newest;
        const char *name = names[trial % 2 == 0 ? 1 : newest];
        if (block < blocks)
            disk_fail_blocks(name, block * JOURNAL_BLOCK_BYTES, 1);
        else
            disk_fail_blocks(name, 0, JOURNAL_SEGMENT_BYTES_MIN);
        restart();
        journal_store_keep(store);
        for (size_t i = 0; i < 4; i++, count += 7)
            assert_int_equal(append_group(7, RECORD_BYTES), 0);
        disk_fail_blocks(NULL, 0, 0);
        assert_int_equal(read_all(), count);
        restart();
        assert_int_equal(read_all(), count);
    }
    /* The key can be read, but no segment. */
    close_store();
    list_names(4);
    for (size_t i = 0; i < names_count; i++)
        if (i > 0)
            disk_remove(names[i]);
    disk_fail_blocks(names[0], 0, JOURNAL_SEGMENT_BYTES_MIN);
    budget_init(&disk_bytes, UINT64_MAX);
    assert_null(journal_store_open(&settings, &error));
    assert_string_equal(error.text,
                        "cannot read any segment of the journal /disk: Input/output error");
    disk_kill();
    budget_fini(&disk_bytes);
    disk_fail_blocks(NULL, 0, 0);
    open_store();
}

/* Then it is not known what was finished: everything is delivered again. */
static void without_a_checkpoint_everything_comes(void **state)
{
    (void)state;
    size_t size;
    assert_int_equal(append_group(9, RECORD_BYTES), 0);
    close_store();
    list_names(1);
    disk_file(names[0], &size)[JOURNAL_BLOCK_BYTES + 20] ^= 1;
    open_store();
    assert_int_equal(read_all(), 9);
    assert_int_equal(append_group(9, RECORD_BYTES), 0);
    assert_int_equal(read_all(), 18);
    assert_int_equal(losses, 0);
}

static void a_prepared_file_that_is_gone_is_made_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(append_group(9, RECORD_BYTES), 0);
    assert_int_equal(journal_store_keep(store), 0);
    list_names(2);
    disk_remove(names[names_count - 1]);
    size_t refused = 0;
    for (size_t i = 0; i < 9; i++, wait_seconds(2))
        refused += append_group(9, RECORD_BYTES) != 0;
    assert_int_equal(refused, 1);
}

/* The process that made the directory may have been killed before it was flushed. */
static void every_start_flushes_the_entry_of_its_directory(void **state)
{
    (void)state;
    close_store();
    uint64_t flushes = disk_flushes();
    open_store();
    assert_int_equal(disk_flushes() - flushes, 1);
}

static size_t exporter_of(const char *name)
{
    return (size_t)journal_store_exporter(store, name);
}

/* Another start, with these exporters. */
static void restart_with(const char *const pair[2])
{
    restart();
    journal_store_forget_finished(store);
    for (size_t i = 0; i < 2; i++)
        exporter_of(pair[i]);
}

static void append_groups(size_t count, size_t records)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(append_group(records, RECORD_BYTES), 0);
}

/* Reads for one exporter, as the journal does. Returns how many come that it has not finished. */
static size_t read_for(const char *name)
{
    size_t index = exporter_of(name);
    size_t count = 0;
    uint64_t low = journal_store_low(store, index);
    struct journal_reader *reader = journal_reader_create(store, low, on_damage, NULL);
    struct journal_stored stored;
    losses = reports = 0;
    while (journal_reader_next(reader, &memory, &stored) == JOURNAL_READ) {
        count += !journal_store_is_done(store, index, stored.head.id);
        buffer_unref(stored.payload);
    }
    journal_reader_destroy(reader);
    return count;
}

/* A sector of the checkpoint that the segment begins with. */
static void spoil_checkpoint(const char *name)
{
    enum { SECTOR_BYTES = 512 };
    size_t size;
    uint8_t *file = disk_file(name, &size);
    assert_non_null(file);
    memset(file + JOURNAL_BLOCK_BYTES, 0x55, SECTOR_BYTES);
}

static const char *const a_and_b[] = {"a", "b"};

/* They count exporters as that checkpoint does, in another order than the one before it. */
static void notes_of_a_damaged_checkpoint_finish_nothing(void **state)
{
    static const char *const b_and_c[] = {"b", "c"};
    (void)state;
    restart_with(a_and_b);
    append_groups(1, 20);
    journal_store_done(store, exporter_of("traces/otlp_http"), 1, 21);
    journal_store_done(store, exporter_of("a"), 1, 21);
    journal_store_commit(store, NULL);
    restart_with(b_and_c);
    append_groups(5, 5);
    pay_all(exporter_of("c"), 21, 46);
    journal_store_commit(store, NULL);
    assert_int_equal(read_for("b"), 45);
    assert_int_equal(read_for("c"), 0);
    close_store();
    spoil_checkpoint("0000000000000002.journal");
    open_store();
    assert_int_equal(read_for("b") + losses, 45);
    assert_true(losses <= 1);
    /* What it has finished comes again. */
    assert_true(read_for("c") >= 24);
}

static void one_that_was_new_loses_a_damaged_record_at_most(void **state)
{
    (void)state;
    append_groups(1, 20);
    restart_with(a_and_b);
    append_groups(5, 5);
    assert_int_equal(read_for("b"), 25);
    close_store();
    spoil_checkpoint("0000000000000002.journal");
    open_store();
    assert_true(read_for("b") >= 24);
    assert_true(losses <= 1);
    /* It takes part in what is freed. */
    journal_store_done(store, exporter, 1, 46);
    journal_store_done(store, exporter_of("a"), 1, 46);
    append_groups(1, 1);
    assert_int_equal(journal_store_keep(store), 0);
    assert_true(read_for("b") >= 25);
}

static void losses_are_counted_for_each_exporter(void **state)
{
    (void)state;
    restart_with(a_and_b);
    append_groups(40, 9);
    journal_store_done(store, exporter_of("a"), 1, 40);
    journal_store_commit(store, NULL);
    close_store();
    size_t size;
    uint8_t *file = disk_file("0000000000000001.journal", &size);
    memset(file + JOURNAL_BLOCK_BYTES, 0x55, size - JOURNAL_BLOCK_BYTES);
    open_store();
    memset(is_lost, 0, sizeof(is_lost));
    uint64_t came = read_for("a");
    uint64_t lost = losses;
    assert_true(lost > 0);
    assert_int_equal(came + lost, 360 - 39);
    came = read_for("b");
    assert_int_equal(losses, 39);
    assert_int_equal(came + lost + losses, 360);
    read_for("b");
    assert_int_equal(reports, 0);
}

static const struct fileops *simulated;
static int calls;
static int failing_from;
static int failing_end;

static bool fails_now(void)
{
    calls++;
    return calls >= failing_from && calls < failing_end;
}

static ssize_t failing_pread(int fd, void *data, size_t size, off_t offset)
{
    return fails_now() ? -EIO : simulated->pread(fd, data, size, offset);
}

static int failing_stat(const char *path, struct stat *ret_stat)
{
    return fails_now() ? -EIO : simulated->stat(path, ret_stat);
}

static const char *disk_fail_file;

static int open_but_one(const char *path, int flags, mode_t mode)
{
    return strstr(path, disk_fail_file) != NULL ? -EIO : simulated->open(path, flags, mode);
}

/* Opens the store with a disk of which some calls fail. False: it could not be opened. */
static bool open_with(const struct fileops *ops)
{
    struct error error = {.text = ""};
    simulated = fileops();
    calls = 0;
    budget_init(&disk_bytes, disk_max);
    fileops_replace(ops);
    store = journal_store_open(
        &(struct journal_store_settings){.directory = "/disk",
                                         .segment_bytes = JOURNAL_SEGMENT_BYTES_MIN,
                                         .disk = &disk_bytes,
                                         .is_synced = true,
                                         .directory_mode = 0700},
        &error);
    fileops_replace(simulated);
    if (store == NULL)
        assert_non_null(strstr(error.text, "/disk"));
    return store != NULL;
}

/* Whichever calls of a start fail, one or several in a row: everything comes, at once or after the
 * next start, and nothing is taken for finished. */
static void a_start_whose_calls_fail_for_a_moment_drops_nothing(void **state)
{
    enum { IN_A_ROW_MAX = 4, OLD = 20, NEW = 10, SINCE = 1 };
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int in_a_row = 1; in_a_row <= IN_A_ROW_MAX; in_a_row++)
            for (failing_from = 1, calls = INT_MAX; failing_from <= calls; failing_from++) {
                tear_down(NULL);
                set_up(NULL);
                append_groups(1, OLD);
                restart();
                append_groups(2, NEW / 2);
                close_store();
                struct fileops ops = *fileops();
                ops.pread = kind == 0 ? failing_pread : ops.pread;
                ops.stat = kind == 1 ? failing_stat : ops.stat;
                failing_end = failing_from + in_a_row;
                if (open_with(&ops)) {
                    journal_store_forget_finished(store);
                    exporter = exporter_of("traces/otlp_http");
                    assert_int_equal(read_all(), OLD + NEW);
                    assert_int_equal(losses, 0);
                    append_groups(1, SINCE);
                    restart();
                    assert_int_equal(read_all(), OLD + NEW + SINCE);
                } else {
                    budget_fini(&disk_bytes);
                    disk_kill();
                    open_store();
                    assert_int_equal(read_all(), OLD + NEW);
                }
            }
}

/* A file for one large record, or of a time with other settings, is not used for ever when others
 * need the room. */
static void large_files_go_when_room_is_short(void **state)
{
    (void)state;
    assert_int_equal(append_group(1, 6 * JOURNAL_SEGMENT_BYTES_MIN), 0);
    append_groups(20, 9);
    journal_store_done(store, exporter, 1, journal_store_figures(store).next_id);
    journal_store_commit(store, NULL);
    assert_int_equal(journal_store_keep(store), 0);
    assert_true(journal_store_figures(store).bytes > 6 * JOURNAL_SEGMENT_BYTES_MIN);
    /* Another journal has taken the rest. */
    assert_true(budget_try_take(&disk_bytes, UINT64_MAX / 2));
    budget_lower(&disk_bytes, budget_used(&disk_bytes) + 1);
    for (size_t i = 0; i < 3; i++)
        journal_store_keep(store);
    assert_true(journal_store_figures(store).bytes <= 4 * JOURNAL_SEGMENT_BYTES_MIN);
    budget_return(&disk_bytes, UINT64_MAX / 2);
}

/* Whatever is free and too small makes room for it. */
static void a_request_gets_all_of_max_size(void **state)
{
    enum { SEGMENTS = 8 };
    (void)state;
    close_store();
    disk_max = SEGMENTS * JOURNAL_SEGMENT_BYTES_MIN;
    open_store();
    for (size_t i = 0; i < 30; i++) {
        append_groups(1, 9);
        journal_store_done(store, exporter, 1, journal_store_figures(store).next_id);
        journal_store_keep(store);
    }
    int failed = -EDQUOT;
    for (size_t tries = 0; tries < 3 && failed != 0; tries++) {
        failed = append_group(1, (SEGMENTS - 2) * JOURNAL_SEGMENT_BYTES_MIN);
        journal_store_done(store, exporter, 1, journal_store_figures(store).next_id);
        clock_fake_advance(2 * (uint64_t)NS_PER_S);
        journal_store_commit(store, NULL);
        journal_store_keep(store);
    }
    assert_int_equal(failed, 0);
}

static void a_segment_of_another_journal_stops_the_start(void **state)
{
    struct error error = {.text = ""};
    size_t size;
    (void)state;
    append_groups(20, 9);
    close_store();
    uint8_t *key = disk_file("key", &size);
    key[0] ^= 1;
    journal_put_u32(key + 8, journal_crc(0, slice_of(key, 8)));
    budget_init(&disk_bytes, disk_max);
    assert_null(journal_store_open(
        &(struct journal_store_settings){.directory = "/disk",
                                         .segment_bytes = JOURNAL_SEGMENT_BYTES_MIN,
                                         .disk = &disk_bytes,
                                         .directory_mode = 0700},
        &error));
    assert_non_null(strstr(error.text, "0000000000000001.journal is a segment of another journal"));
    assert_int_equal(budget_used(&disk_bytes), 0);
    budget_fini(&disk_bytes);
    disk_kill();
    key = disk_file("key", &size);
    key[0] ^= 1;
    journal_put_u32(key + 8, journal_crc(0, slice_of(key, 8)));
    open_store();
    assert_int_equal(read_all(), 180);
}

/* Which would be followed by number 0. */
static void a_file_with_the_highest_number_changes_nothing(void **state)
{
    (void)state;
    close_store();
    disk_create("ffffffffffffffff.journal", 0);
    open_store();
    append_groups(1, 20);
    restart();
    append_groups(3, 1);
    restart();
    assert_int_equal(read_all(), 23);
}

/* It cannot be read for a moment, and the other one's checkpoint is damaged. */
static void what_lies_before_the_first_record_found_is_wanted(void **state)
{
    (void)state;
    append_groups(1, 20);
    restart();
    append_groups(1, 19);
    close_store();
    spoil_checkpoint("0000000000000002.journal");
    disk_fail_file = "0000000000000001.journal";
    struct fileops ops = *fileops();
    ops.open = open_but_one;
    assert_true(open_with(&ops));
    journal_store_forget_finished(store);
    exporter = exporter_of("traces/otlp_http");
    assert_true(read_all() >= 38);
}

/* A request that is larger than what is left of max_size is refused alone, however often it comes:
 * small ones are taken all the while. */
static void a_large_request_without_room_costs_small_ones_nothing(void **state)
{
    (void)state;
    enum { TRIES = 12 };
    close_store();
    disk_max = 8 * JOURNAL_SEGMENT_BYTES_MIN;
    open_store();
    assert_int_equal(append_group(1, 100), 0);
    for (size_t i = 0; i < TRIES; i++) {
        assert_int_equal(append_group(1, 7 * JOURNAL_SEGMENT_BYTES_MIN), -EDQUOT);
        assert_int_equal(append_group(1, 100), 0);
        journal_store_keep(store);
    }
    assert_int_equal(read_all(), 1 + TRIES);
}

/* A group that does not fit into the rest of the segment finds no room for another; a smaller one
 * behind it does, and nothing is missed between them. Until there is room nothing is taken
 * unwritten. */
static void a_group_without_room_leaves_no_gap(void **state)
{
    (void)state;
    enum { SEGMENTS = 3, GROUPS = JOURNAL_SEGMENT_BYTES_MIN / JOURNAL_BLOCK_BYTES - 1 };
    close_store();
    disk_max = SEGMENTS * JOURNAL_SEGMENT_BYTES_MIN;
    open_store();
    for (size_t i = 0; i < SEGMENTS * GROUPS - 2; i++)
        assert_int_equal(append_group(1, RECORD_BYTES), 0);
    assert_int_equal(append_group(1, 3 * JOURNAL_BLOCK_BYTES), -EDQUOT);
    assert_int_equal(append_group(1, RECORD_BYTES), -EDQUOT); /* rests */
    clock_fake_advance((uint64_t)2 * NS_PER_S);
    assert_int_equal(append_group(1, RECORD_BYTES), 0);
    size_t count = SEGMENTS * GROUPS - 1;
    assert_int_equal(read_all(), count);
    assert_int_equal(losses, 0);
    /* What is finished ends the rest; what is taken then is there. */
    assert_int_equal(append_group(1, 3 * JOURNAL_BLOCK_BYTES), -EDQUOT);
    journal_store_done(store, exporter, 1, journal_store_figures(store).next_id);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(append_group(1, RECORD_BYTES), 0);
    assert_int_equal(read_all(), 3);
    close_store();
    disk_cut();
    open_store();
    assert_true(read_all() >= 3);
    assert_int_equal(losses, 0);
}

/* It takes the place of as many small segments as it needs, at once. */
static void a_large_request_takes_the_place_of_many_segments(void **state)
{
    (void)state;
    close_store();
    disk_max = 24 * JOURNAL_SEGMENT_BYTES_MIN;
    open_store();
    while (journal_store_figures(store).bytes < 22 * JOURNAL_SEGMENT_BYTES_MIN)
        assert_int_equal(append_group(9, RECORD_BYTES), 0);
    journal_store_done(store, exporter, 1, journal_store_figures(store).next_id);
    assert_int_equal(append_group(1, 20 * JOURNAL_SEGMENT_BYTES_MIN), 0);
}

/* Groups cannot be written, though files can be made. */
static ssize_t group_pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    return count > 1 ? -ENOSPC : simulated->pwritev(fd, parts, count, offset);
}

static void segments_of_failed_writes_take_no_room(void **state)
{
    (void)state;
    close_store();
    disk_max = 16 * JOURNAL_SEGMENT_BYTES_MIN;
    open_store();
    assert_int_equal(append_group(1, 100), 0);
    simulated = fileops();
    struct fileops failing = *simulated;
    failing.pwritev = group_pwritev;
    fileops_replace(&failing);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(append_group(1, 100), -ENOSPC);
        clock_fake_advance((uint64_t)2 * NS_PER_S);
        journal_store_keep(store);
    }
    fileops_replace(simulated);
    assert_true(journal_store_figures(store).bytes <= 4 * JOURNAL_SEGMENT_BYTES_MIN);
    assert_int_equal(append_group(1, 100), 0);
}

/* The last record of a segment is damaged, and of the next one only its header was written. */
static void the_end_before_an_empty_segment_is_counted(void **state)
{
    (void)state;
    append_groups(3, 1);
    close_store();
    size_t size;
    uint8_t *file = disk_file("0000000000000001.journal", &size);
    struct journal_segment_header header;
    assert_true(journal_segment_header_read(file, &header));
    struct journal_place place = {.segment = 1, .key = header.key};
    struct journal_head head;
    for (place.offset = JOURNAL_BLOCK_BYTES; place.offset < size; place.offset += 8)
        if (journal_head_read(file + place.offset, &place, &head) && head.id == 3)
            file[place.offset + 30] ^= 1;
    uint8_t *next = disk_file("0000000000000002.journal", &size);
    if (next == NULL)
        next = disk_create("0000000000000002.journal", JOURNAL_SEGMENT_BYTES_MIN);
    header.number = 2;
    journal_segment_header_write(next, &header);
    open_store();
    size_t come = read_all();
    assert_int_equal(come + losses + journal_store_tail(store).records, 3);
}

/* Refusals make the journal read again and again; what cannot be read counts as damaged all the
 * same. */
static void patience_goes_on_with_the_next_reader(void **state)
{
    (void)state;
    fill();
    list_names(4);
    disk_fail_blocks(names[1], 5 * JOURNAL_BLOCK_BYTES, 1);
    struct journal_patience patience = {.segment = 0};
    enum journal_read read = JOURNAL_READ;
    for (size_t i = 0; i < 5 && read != JOURNAL_READ_END; i++) {
        struct journal_reader *reader = journal_reader_create(store, 1, on_damage, NULL);
        struct journal_stored stored;
        journal_reader_set_patience(reader, patience);
        while ((read = journal_reader_next(reader, &memory, &stored)) == JOURNAL_READ)
            buffer_unref(stored.payload);
        patience = journal_reader_patience(reader);
        journal_reader_destroy(reader);
        wait_seconds(10);
    }
    assert_int_equal(read, JOURNAL_READ_END);
    disk_fail_blocks(NULL, 0, 0);
}

/* A segment of a later version stays where it is, and holds nothing else. */
static void a_segment_of_a_later_version_holds_no_room(void **state)
{
    (void)state;
    append_groups(1, 20);
    close_store();
    size_t size;
    uint8_t *file = disk_file("0000000000000001.journal", &size);
    struct journal_segment_header header;
    assert_true(journal_segment_header_read(file, &header));
    header.version = JOURNAL_VERSION + 1;
    journal_segment_header_write(file, &header);
    disk_max = 16 * JOURNAL_SEGMENT_BYTES_MIN;
    open_store();
    for (size_t i = 0; i < 400; i++) {
        assert_int_equal(append_group(9, RECORD_BYTES), 0);
        journal_store_done(store, exporter, 1, journal_store_figures(store).next_id);
        journal_store_commit(store, NULL);
        journal_store_keep(store);
    }
    close_store();
    assert_non_null(disk_file("0000000000000001.journal", &size));
    open_store();
}

static int open_nothing(const char *path, int flags, mode_t mode)
{
    (void)path;
    (void)flags;
    (void)mode;
    return -ENOENT;
}

/* The directory is moved away for a moment. */
static void files_that_are_away_for_a_moment_are_not_lost(void **state)
{
    (void)state;
    size_t count = fill();
    struct journal_reader *reader = journal_reader_create(store, 1, on_damage, NULL);
    losses = reports = 0;
    simulated = fileops();
    struct fileops away = *simulated;
    away.open = open_nothing;
    fileops_replace(&away);
    size_t come = read_on(reader, JOURNAL_READ_FAILED);
    fileops_replace(simulated);
    come += read_on(reader, JOURNAL_READ_END);
    journal_reader_destroy(reader);
    assert_int_equal(come, count);
    assert_int_equal(losses, 0);
}

static bool backlog_of(const char *name, struct journal_backlog *ret_backlog)
{
    for (size_t i = 0; journal_store_backlog(store, i, ret_backlog); i++)
        if (strcmp(ret_backlog->name, name) == 0)
            return true;
    return false;
}

/* Nothing but the file of names tells of it. */
static void one_that_is_gone_is_known_without_a_checkpoint(void **state)
{
    static const char *const damaged[] = {NULL, "exporters"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct journal_backlog backlog;
        size_t size;
        exporter_of("gone");
        journal_names_write(store);
        append_groups(1, 20);
        pay_all(exporter, 1, 21);
        close_store();
        list_names(1);
        disk_file(names[0], &size)[JOURNAL_BLOCK_BYTES + 20] ^= 1;
        if (damaged[i] != NULL)
            disk_file(damaged[i], &size)[9] ^= 1;
        open_store();
        journal_store_forget_finished(store);
        assert_int_equal(read_all(), 20);
        assert_int_equal(backlog_of("gone", &backlog), damaged[i] == NULL);
        if (damaged[i] == NULL) {
            assert_false(backlog.is_configured);
            assert_int_equal(backlog.records, 20);
            assert_int_equal(backlog.amount.bytes, 20 * RECORD_BYTES);
            pay_all(exporter, 1, 21);
            journal_store_commit(store, NULL);
            assert_int_equal(read_for("gone"), 20);
        }
        close_store();
        disk_stop();
        disk_start(12);
        open_store();
    }
}

/* "new" is first known by the second segment, whose checkpoint is damaged, and records before it
 * cannot be read: it gets what came since all the same. */
static void one_that_was_new_behind_what_cannot_be_read_gets_its_records(void **state)
{
    (void)state;
    enum { NEW = 9 };
    exporter_of("old");
    append_groups(4, 5);
    restart();
    journal_store_forget_finished(store);
    exporter_of("old");
    exporter_of("new");
    append_groups(1, NEW);
    assert_int_equal(read_for("new"), NEW);
    close_store();
    spoil_checkpoint("0000000000000002.journal");
    disk_fail_blocks("0000000000000001.journal", 3 * JOURNAL_BLOCK_BYTES, 1);
    open_store();
    journal_store_forget_finished(store);
    exporter_of("old");
    exporter_of("new");
    disk_fail_blocks(NULL, 0, 0);
    size_t come = read_for("new");
    assert_true(come >= NEW - 1);
    assert_true(come + losses >= NEW);
}

/* The file "key" cannot be opened while no segment has the key yet: no other key takes its place.
 */
static void a_key_that_cannot_be_read_is_not_replaced(void **state)
{
    (void)state;
    close_store();
    disk_fail_file = "/key";
    struct fileops failing = *fileops();
    failing.open = open_but_one;
    assert_false(open_with(&failing));
    budget_fini(&disk_bytes);
    disk_kill();
    open_store();
    append_groups(1, 20);
    restart();
    assert_int_equal(read_all(), 20);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_group_is_one_write_and_one_flush),
        TEST(space_comes_back),
        TEST(files_that_are_missed_are_kept_for_a_while),
        TEST(a_file_is_made_in_pieces),
        TEST(old_records_behind_the_end_are_no_damage),
        TEST(a_backlog_is_counted_and_dated_over_restarts),
        TEST(what_was_lost_to_damage_does_not_count_for_ever),
        TEST(a_checkpoint_in_a_group_counts_the_records_of_the_group),
        TEST(one_that_was_given_up_takes_no_ids_along),
        TEST(a_full_disk_refuses_and_recovers),
        TEST(records_may_be_larger_than_a_segment),
        TEST(no_file_grows),
        TEST(a_record_that_found_no_room_is_read_later),
        TEST(a_flipped_bit_costs_its_record_at_most),
        TEST(a_zeroed_block_costs_what_lay_in_it),
        TEST(a_deleted_or_cut_file_costs_what_lay_in_it),
        TEST(a_segment_of_a_later_version_is_left_alone),
        TEST(a_second_process_is_locked_out),
        TEST(a_failed_flush_moves_the_group_to_a_new_segment),
        TEST(progress_that_was_not_flushed_frees_nothing),
        TEST(a_start_without_room_uses_what_is_finished),
        TEST(what_makes_room_is_not_missed),
        TEST(news_outlives_a_failed_group),
        TEST(a_full_segment_holds_no_news_back),
        TEST(ids_of_failed_groups_hold_nobody_up),
        TEST(any_failing_operation_is_survived),
        TEST(a_damaged_last_request_is_counted_and_its_id_not_used_again),
        TEST(a_newest_segment_that_was_cut_off_is_damaged),
        TEST(what_cannot_be_read_for_now_is_read_later),
        TEST(a_block_that_is_gone_counts_as_damaged_after_a_while),
        TEST(a_start_that_cannot_read_costs_nothing),
        TEST(without_a_checkpoint_everything_comes),
        TEST(a_prepared_file_that_is_gone_is_made_again),
        TEST(every_start_flushes_the_entry_of_its_directory),
        TEST(looking_changes_nothing_and_needs_no_lock),
        TEST(a_segment_that_is_freed_while_it_is_looked_at_is_no_damage),
        TEST(segments_that_are_freed_while_a_directory_is_opened_are_no_damage),
        TEST(any_flipped_bit_is_seen_and_placed),
        TEST(a_zeroed_block_and_a_deleted_file_are_seen),
        TEST(a_freed_segment_between_others_is_not_missed),
        TEST(a_directory_without_a_key_is_not_read_as_empty),
        TEST(notes_of_a_damaged_checkpoint_finish_nothing),
        TEST(one_that_was_new_loses_a_damaged_record_at_most),
        TEST(losses_are_counted_for_each_exporter),
        TEST(a_start_whose_calls_fail_for_a_moment_drops_nothing),
        TEST(large_files_go_when_room_is_short),
        TEST(a_request_gets_all_of_max_size),
        TEST(a_segment_of_another_journal_stops_the_start),
        TEST(a_file_with_the_highest_number_changes_nothing),
        TEST(what_lies_before_the_first_record_found_is_wanted),
        TEST(a_large_request_without_room_costs_small_ones_nothing),
        TEST(a_group_without_room_leaves_no_gap),
        TEST(a_large_request_takes_the_place_of_many_segments),
        TEST(segments_of_failed_writes_take_no_room),
        TEST(the_end_before_an_empty_segment_is_counted),
        TEST(patience_goes_on_with_the_next_reader),
        TEST(a_segment_of_a_later_version_holds_no_room),
        TEST(files_that_are_away_for_a_moment_are_not_lost),
        TEST(one_that_is_gone_is_known_without_a_checkpoint),
        TEST(one_that_was_new_behind_what_cannot_be_read_gets_its_records),
        TEST(a_key_that_cannot_be_read_is_not_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
