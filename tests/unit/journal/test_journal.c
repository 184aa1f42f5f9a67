/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's threads on a real directory: records are committed and given to a lane, come back
 * from the disk to an exporter that refused or was not there, and are delivered once each
 * otherwise. */
#include "src/journal/journal.h"
#include "src/journal/journal_reader.h"
#include "src/journal/journal_store.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/journal/journal_format.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { RECORDS = 3000, EXPORTERS = 2, ALL = 3 };

/* As a pipeline would have it. */
struct request {
    struct journal_entry entry;
    uint64_t serial;
    struct batch *batch;
};

/* By how much the wall clock that the journal reads is ahead of the kernel's, as if that had been
 * set back since. */
static _Atomic time_t ahead_s;

/* Where the journal's other clock stands still. 0: it goes. */
static _Atomic uint64_t standing_ns;

int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    int failed = __real_clock_gettime(id, now);
    uint64_t ns = atomic_load(&standing_ns);
    if (id == CLOCK_MONOTONIC && ns > 0)
        *now =
            (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    if (id == CLOCK_REALTIME)
        now->tv_sec += ahead_s;
    return failed;
}

/* The next commit returns only after an exporter has caught up by reading. */
static atomic_bool is_commit_held;
static atomic_uint readers_ended;

struct journal_record *__real_journal_store_commit(struct journal_store *store,
                                                   struct journal_record *records);
struct journal_record *__wrap_journal_store_commit(struct journal_store *store,
                                                   struct journal_record *records);
void __real_journal_reader_destroy(struct journal_reader *reader);
void __wrap_journal_reader_destroy(struct journal_reader *reader);

struct journal_record *__wrap_journal_store_commit(struct journal_store *store,
                                                   struct journal_record *records)
{
    unsigned ended = readers_ended;
    struct journal_record *left = __real_journal_store_commit(store, records);
    uint64_t until_ns = clock_now_ns() + (uint64_t)30 * NS_PER_S;
    if (records != NULL && atomic_exchange(&is_commit_held, false))
        while (readers_ended == ended && clock_now_ns() < until_ns)
            sched_yield();
    return left;
}

void __wrap_journal_reader_destroy(struct journal_reader *reader)
{
    __real_journal_reader_destroy(reader);
    readers_ended += reader != NULL;
}

/* The n-th record that is read back finds no room in the memory budget; 0: each finds some. */
static atomic_uint reads;
static unsigned read_without_room;

struct buffer *__real_buffer_try_create(struct budget *budget, size_t capacity);
struct buffer *__wrap_buffer_try_create(struct budget *budget, size_t capacity);

struct buffer *__wrap_buffer_try_create(struct budget *budget, size_t capacity)
{
    bool has_room = ++reads != read_without_room;
    return has_room ? __real_buffer_try_create(budget, capacity) : NULL;
}

static char directory[] = "/tmp/test_journal_XXXXXX";
static struct lane *lane;
static struct journal *journal;
static struct budget disk;
static struct budget memory;
static unsigned delivered[EXPORTERS][RECORDS + 1];
static size_t acknowledged;
static size_t refused;
static bool may_refuse;
static size_t delivered_count;
static size_t wanted_count;
static uint64_t last_serial[EXPORTERS];
static bool is_in_order;
static uint32_t refusing; /* exporters that refuse now */
static unsigned asked;    /* how often one that refuses was asked */
static struct timer deadline;
static uint64_t given_max[EXPORTERS]; /* 0: no limit */
static uint64_t held_from;            /* serials from here on are held, not delivered */
static struct journal_entry *held[RECORDS];
static size_t held_count;

static void on_deadline(struct timer *timer, void *arg)
{
    (void)timer;
    (void)arg;
    fail_msg("%zu of %zu deliveries in time", delivered_count, wanted_count);
}

/* Delivers to those exporters that do not refuse. */
static void deliver(struct journal_entry *entry, uint64_t serial)
{
    if (serial >= held_from) {
        held[held_count++] = entry;
        return;
    }
    entry->owed = entry->given & refusing;
    asked += entry->owed != 0;
    for (size_t i = 0; i < EXPORTERS; i++)
        if ((entry->given & ~entry->owed) >> i & 1) {
            delivered[i][serial]++;
            is_in_order &= serial > last_serial[i];
            last_serial[i] = serial;
            delivered_count++;
        }
    if (delivered_count >= wanted_count)
        lane_end(lane);
    journal_settle(entry);
}

static void on_committed(struct journal_entry *entry)
{
    struct request *request = (struct request *)entry;
    if (may_refuse && entry->record.error != 0) {
        refused++;
        batch_unref(request->batch);
        mem_free(request);
        lane_end(lane);
        return;
    }
    assert_int_equal(entry->record.error, 0);
    acknowledged++;
    batch_unref(request->batch);
    if (entry->given == 0)
        mem_free(request);
    else
        deliver(entry, request->serial);
    if (delivered_count >= wanted_count && acknowledged > 0)
        lane_end(lane);
}

static void on_replay(struct journal_entry *entry, void *arg)
{
    uint64_t serial;
    (void)arg;
    assert_int_equal(entry->stored.payload->size, 2 * sizeof(serial));
    memcpy(&serial, entry->stored.payload->data, sizeof(serial));
    deliver(entry, serial);
}

static void append(uint64_t serial)
{
    struct request *request = mem_zalloc(sizeof(*request));
    struct buffer *buffer = buffer_create(NULL, sizeof(serial));
    memcpy(buffer->data, &serial, sizeof(serial));
    buffer->size = sizeof(serial);
    request->serial = serial;
    request->batch = batch_create(TRACES, 1);
    batch_append(request->batch, buffer, buffer_slice(buffer));
    request->batch->items = 1;
    buffer_unref(buffer);
    request->entry.record.batch = request->batch;
    request->entry.record.meta = slice_of(&request->serial, sizeof(serial));
    request->entry.bytes = sizeof(serial);
    request->entry.lane = lane;
    request->entry.fn = on_committed;
    journal_append(journal, &request->entry);
}

static void start(void)
{
    struct error error = {.text = ""};
    const char *exporters[EXPORTERS] = {"traces/a", "traces/b"};
    journal = journal_create(
        &(struct journal_settings){
            .store = {.directory = directory,
                      .segment_bytes = JOURNAL_SEGMENT_BYTES_MIN,
                      .disk = &disk,
                      .is_synced = true,
                      .directory_mode = 0700},
            .exporters = exporters,
            .exporters_count = EXPORTERS,
            .given_max = given_max,
            .memory = &memory,
            .given_bytes_max = 1 << 20,
            .entry_bytes = sizeof(struct request),
        },
        &error);
    assert_string_equal(error.text, "");
    journal_add_lane(journal, lane, on_replay, NULL);
    assert_true(journal_start(journal, &error));
}

static void stop(void)
{
    journal_pause(journal);
    while (!journal_is_idle(journal))
        lane_turn(lane);
    journal_stop(journal);
    journal_destroy(journal);
    journal = NULL;
}

static struct fileops ops;
static ssize_t (*real_pwritev)(int fd, const struct iovec *parts, int count, off_t offset);
static _Atomic int write_error;

static ssize_t test_pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    int error = atomic_load(&write_error);
    return error != 0 ? error : real_pwritev(fd, parts, count, offset);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(directory + sizeof(directory) - 7, "XXXXXX");
    if (mkdtemp(directory) == NULL)
        return -1;
    budget_init(&disk, UINT64_MAX);
    budget_init(&memory, UINT64_MAX);
    lane = lane_create(0);
    memset(delivered, 0, sizeof(delivered));
    memset(last_serial, 0, sizeof(last_serial));
    acknowledged = delivered_count = refused = 0;
    may_refuse = false;
    is_in_order = true;
    refusing = asked = 0;
    held_from = UINT64_MAX;
    held_count = 0;
    memset(given_max, 0, sizeof(given_max));
    atomic_store(&write_error, 0);
    ops = *fileops();
    real_pwritev = ops.pwritev;
    ops.pwritev = test_pwritev;
    fileops_replace(&ops);
    is_commit_held = false;
    ahead_s = 0;
    timer_init(&deadline, on_deadline, NULL);
    start();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[64];
    if (journal != NULL)
        stop();
    fileops_replace(NULL);
    lane_destroy(lane);
    budget_fini(&disk);
    budget_fini(&memory);
    snprintf(command, sizeof(command), "rm -r %s", directory);
    return system(command);
}

static void run_until(size_t deliveries)
{
    wanted_count = deliveries;
    lane_timer_start(lane, &deadline, (uint64_t)60 * NS_PER_S);
    lane_run(lane);
    lane_timer_stop(lane, &deadline);
}

static void records_go_on_from_memory_in_order(void **state)
{
    (void)state;
    for (uint64_t serial = 1; serial <= RECORDS; serial++)
        append(serial);
    run_until((size_t)EXPORTERS * RECORDS);
    assert_int_equal(acknowledged, RECORDS);
    assert_true(is_in_order);
    assert_int_equal(counter_read(&journal_counters(journal)->replayed), 0);
    /* They came in groups. */
    assert_true(counter_read(&journal_counters(journal)->commits) < RECORDS / 2);
}

static void an_exporter_that_refuses_gets_its_records_from_the_disk(void **state)
{
    (void)state;
    refusing = 1 << 1;
    for (uint64_t serial = 1; serial <= RECORDS; serial++)
        append(serial);
    run_until(RECORDS);
    refusing = 0;
    run_until((size_t)EXPORTERS * RECORDS);
    for (uint64_t serial = 1; serial <= RECORDS; serial++)
        for (size_t i = 0; i < EXPORTERS; i++)
            assert_int_equal(delivered[i][serial], 1);
    /* The other one has kept its order and was not held up. */
    assert_true(counter_read(&journal_counters(journal)->replayed) >= RECORDS / 2);
    /* It has caught up: what comes now goes on from memory. */
    uint64_t replayed = counter_read(&journal_counters(journal)->replayed);
    append(RECORDS);
    run_until((size_t)EXPORTERS * (RECORDS + 1));
    assert_true(counter_read(&journal_counters(journal)->replayed) <= replayed + 1);
}

/* The pauses are of 100, 200 and 400 ms, so the third question comes no sooner than after 700. */
static void one_that_refuses_is_asked_with_a_few_records(void **state)
{
    enum { QUESTIONS = 3, PAUSES_MS = 700 };
    (void)state;
    refusing = ALL;
    for (uint64_t serial = 1; serial <= RECORDS; serial++)
        append(serial);
    lane_timer_start(lane, &deadline, (uint64_t)60 * NS_PER_S);
    while (acknowledged < RECORDS)
        lane_turn(lane);
    uint64_t since_ns = clock_now_ns();
    unsigned first = asked;
    while (asked < first + QUESTIONS * EXPORTERS * JOURNAL_PROBES)
        lane_turn(lane);
    lane_timer_stop(lane, &deadline);
    assert_true(clock_now_ns() - since_ns > (uint64_t)PAUSES_MS / 2 * NS_PER_MS);
    refusing = 0;
    run_until((size_t)EXPORTERS * RECORDS);
    for (uint64_t serial = 1; serial <= RECORDS; serial++)
        for (size_t i = 0; i < EXPORTERS; i++)
            assert_int_equal(delivered[i][serial], 1);
}

/* It is on the disk before the committing thread tells that it is. */
static void what_is_read_back_at_once_is_given_once(void **state)
{
    (void)state;
    refusing = 1 << 1;
    append(1);
    lane_timer_start(lane, &deadline, (uint64_t)60 * NS_PER_S);
    while (asked == 0)
        lane_turn(lane);
    refusing = 0;
    is_commit_held = true;
    append(2);
    lane_timer_stop(lane, &deadline);
    run_until((size_t)EXPORTERS * 2);
    if (is_commit_held) {
        print_message("skipped: link-time optimization has put the commit where it is not held\n");
        skip();
    }
    assert_int_equal(acknowledged, 2);
    assert_int_equal(counter_read(&journal_counters(journal)->replayed), 2);
    for (uint64_t serial = 1; serial <= 2; serial++)
        for (size_t i = 0; i < EXPORTERS; i++)
            assert_int_equal(delivered[i][serial], 1);
}

static void a_wall_clock_that_is_set_back_stops_nothing(void **state)
{
    (void)state;
    ahead_s = 3600;
    refusing = ALL;
    for (uint64_t serial = 1; serial <= RECORDS; serial++)
        append(serial);
    while (acknowledged < RECORDS)
        lane_turn(lane);
    refusing = 0;
    run_until((size_t)EXPORTERS * RECORDS);
}

static void what_was_not_finished_comes_back_after_a_restart(void **state)
{
    (void)state;
    refusing = 1 << 1;
    for (uint64_t serial = 1; serial <= RECORDS; serial++)
        append(serial);
    run_until(RECORDS);
    stop();
    start();
    refusing = 0;
    run_until((size_t)EXPORTERS * RECORDS);
    for (uint64_t serial = 1; serial <= RECORDS; serial++)
        for (size_t i = 0; i < EXPORTERS; i++)
            assert_int_equal(delivered[i][serial], 1);
    stop();
    start();
    assert_int_equal(journal_backlog(journal, 0), 0);
    assert_int_equal(journal_backlog(journal, 1), 0);
}

/* From the first refusal until something is taken again. */
/* It was finished after a write had failed, when nothing is written for a second. */
static void what_is_finished_just_before_a_stop_is_not_given_again(void **state)
{
    (void)state;
    held_from = 1;
    append(1);
    lane_timer_start(lane, &deadline, (uint64_t)60 * NS_PER_S);
    while (held_count == 0)
        lane_turn(lane);
    /* However slow the machine is, that second is not over. */
    atomic_store(&standing_ns, clock_now_ns());
    atomic_store(&write_error, -EIO);
    may_refuse = true;
    append(2);
    lane_run(lane);
    lane_timer_stop(lane, &deadline);
    assert_int_equal(refused, 1);
    atomic_store(&write_error, 0);
    journal_settle(held[0]);
    stop();
    atomic_store(&standing_ns, 0);
    start();
    for (size_t i = 0; i < EXPORTERS; i++)
        assert_int_equal(journal_backlog(journal, i), 0);
}

/* For a start that finds no checkpoint. */
static void the_names_of_the_exporters_are_on_disk(void **state)
{
    static const char names[] = "traces/a\0traces/b";
    char path[sizeof(directory) + sizeof("/exporters")];
    char *text;
    size_t size;
    (void)state;
    snprintf(path, sizeof(path), "%s/exporters", directory);
    assert_int_equal(file_read_whole(path, 1024, &text, &size), 0);
    assert_int_equal(size, 4 + sizeof(names));
    assert_memory_equal(text + 4, names, sizeof(names));
    mem_free(text);
}

/* Damages the record on the disk, so many bytes before its payload. */
static void spoil(uint64_t serial, size_t before)
{
    char path[sizeof(directory) + JOURNAL_NAME_BYTES + 1];
    char name[JOURNAL_NAME_BYTES];
    uint64_t pair[] = {serial, serial};
    journal_segment_name(name, 1);
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    uint8_t *bytes = mem_alloc(JOURNAL_SEGMENT_BYTES_MIN);
    size_t size = fread(bytes, 1, JOURNAL_SEGMENT_BYTES_MIN, file);
    uint8_t *found = memmem(bytes, size, pair, sizeof(pair));
    assert_non_null(found);
    assert_int_equal(fseek(file, found - bytes - (ssize_t)before, SEEK_SET), 0);
    assert_int_equal(fwrite("spoilt", 6, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    mem_free(bytes);
}

/* Its copy on the disk is damaged meanwhile, and is passed over. */
static void what_is_given_is_not_finished_by_damage(void **state)
{
    enum { FIRST = 1, SPOILT, NEXT, LAST };
    const counter *corrupt = &journal_counters(journal)->corrupt;
    (void)state;
    held_from = FIRST;
    lane_timer_start(lane, &deadline, (uint64_t)60 * NS_PER_S);
    for (uint64_t serial = FIRST; serial <= NEXT; serial++) {
        append(serial);
        while (held_count < serial)
            lane_turn(lane);
    }
    spoil(SPOILT, JOURNAL_HEAD_BYTES);
    held_from = LAST;
    held[FIRST - 1]->owed = held[FIRST - 1]->given;
    journal_settle(held[FIRST - 1]);
    while (delivered_count < EXPORTERS || counter_read(corrupt) == 0)
        lane_turn(lane);
    journal_settle(held[NEXT - 1]);
    append(LAST);
    while (acknowledged < LAST)
        lane_turn(lane);
    lane_timer_stop(lane, &deadline);
    /* What was settled was so before that commit. */
    for (size_t i = 0; i < EXPORTERS; i++) {
        assert_int_equal(delivered[i][FIRST], 1);
        assert_int_equal(journal_backlog(journal, i), 2);
    }
    held_from = UINT64_MAX;
    journal_settle(held[SPOILT - 1]);
    for (size_t i = NEXT; i < held_count; i++)
        journal_settle(held[i]);
}

static void a_journal_that_is_full_says_so_until_it_is_not(void **state)
{
    (void)state;
    stop();
    budget_fini(&disk);
    budget_init(&disk, 3 * JOURNAL_SEGMENT_BYTES_MIN);
    start();
    const counter *refusals = journal_counters(journal)->refusals;
    assert_false(journal_health(journal).is_refusing);
    may_refuse = true;
    refusing = ALL;
    wanted_count = SIZE_MAX;
    lane_timer_start(lane, &deadline, (uint64_t)60 * NS_PER_S);
    size_t serial = 0;
    while (refused == 0) {
        /* One after the other: each is a group, of a block. */
        size_t before = acknowledged;
        append(++serial);
        while (refused == 0 && acknowledged == before)
            lane_turn(lane);
    }
    struct journal_health health = journal_health(journal);
    assert_true(health.is_refusing && health.is_full);
    assert_int_equal(health.last_error, -EDQUOT);
    assert_true(health.last_wall_ns > 0);
    assert_int_equal(counter_read(&refusals[JOURNAL_MAX_SIZE]), 1);
    assert_int_equal(counter_read(&refusals[JOURNAL_DISK_FULL]), 0);
    struct journal_backlog backlog = journal_backlog_of(journal, 0);
    assert_string_equal(backlog.name, "traces/a");
    assert_int_equal(backlog.records, acknowledged);
    assert_int_equal(backlog.amount.items, acknowledged);
    assert_int_equal(backlog.amount.bytes, acknowledged * sizeof(uint64_t));
    refusing = 0;
    size_t taken = acknowledged;
    while (acknowledged == taken) {
        size_t before = refused;
        append(serial);
        while (refused == before && acknowledged == taken)
            lane_turn(lane);
    }
    lane_timer_stop(lane, &deadline);
    health = journal_health(journal);
    assert_false(health.is_refusing || health.is_full);
    assert_int_equal(health.last_error, -EDQUOT);
    assert_int_equal(counter_read(&refusals[JOURNAL_MAX_SIZE]), refused);
    assert_int_equal(journal_figures(journal).written_records, acknowledged);
}

/* Memory is short just when a damaged record has been passed: that one counts as finished
 * nevertheless, or the exporter's progress would end there. */
static void a_read_without_room_forgets_no_damage(void **state)
{
    (void)state;
    refusing = ALL;
    for (uint64_t serial = 1; serial <= 3; serial++)
        append(serial);
    lane_timer_start(lane, &deadline, (uint64_t)60 * NS_PER_S);
    while (acknowledged < 3 || asked < 2)
        lane_turn(lane);
    stop();
    spoil(2, 0);
    refusing = 0;
    reads = 0;
    read_without_room = 3; /* behind the damaged one */
    start();
    lane_timer_stop(lane, &deadline);
    run_until(4);
    read_without_room = 0;
    append(4);
    run_until(6);
    lane_timer_start(lane, &deadline, (uint64_t)60 * NS_PER_S);
    while (journal_backlog(journal, 0) + journal_backlog(journal, 1) > 0)
        lane_turn(lane);
    lane_timer_stop(lane, &deadline);
    assert_int_equal(counter_read(&journal_counters(journal)->corrupt), 1);
}

/* Entries that are held for an exporter now. */
static size_t held_for(size_t exporter)
{
    size_t count = 0;
    for (size_t i = 0; i < held_count; i++)
        count += held[i]->given >> exporter & 1;
    return count;
}

static void an_exporter_holds_no_more_than_its_limit(void **state)
{
    enum { LIMIT = 20, APPENDED = 500 };
    (void)state;
    stop();
    given_max[0] = LIMIT;
    start();
    held_from = 1;
    for (uint64_t serial = 1; serial <= APPENDED; serial++)
        append(serial);
    lane_timer_start(lane, &deadline, (uint64_t)60 * NS_PER_S);
    while (acknowledged < APPENDED)
        lane_turn(lane);
    assert_in_range(held_for(0), 1, LIMIT);
    assert_int_equal(held_for(1), APPENDED);
    /* What one has finished makes room for the next, which comes from the disk. */
    held_from = UINT64_MAX;
    delivered_count = held_for(0) + held_for(1);
    wanted_count = (size_t)EXPORTERS * APPENDED;
    for (size_t i = 0; i < held_count; i++)
        journal_settle(held[i]);
    while (delivered_count < wanted_count)
        lane_turn(lane);
    lane_timer_stop(lane, &deadline);
    assert_true(counter_read(&journal_counters(journal)->replayed) >= APPENDED - LIMIT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(records_go_on_from_memory_in_order),
        TEST(an_exporter_that_refuses_gets_its_records_from_the_disk),
        TEST(an_exporter_holds_no_more_than_its_limit),
        TEST(one_that_refuses_is_asked_with_a_few_records),
        TEST(what_is_read_back_at_once_is_given_once),
        TEST(a_wall_clock_that_is_set_back_stops_nothing),
        TEST(what_was_not_finished_comes_back_after_a_restart),
        TEST(what_is_finished_just_before_a_stop_is_not_given_again),
        TEST(the_names_of_the_exporters_are_on_disk),
        TEST(what_is_given_is_not_finished_by_damage),
        TEST(a_journal_that_is_full_says_so_until_it_is_not),
        TEST(a_read_without_room_forgets_no_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
