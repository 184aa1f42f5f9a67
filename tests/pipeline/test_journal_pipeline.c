/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines behind a journal, on a real directory and with the journal's threads: when clients get
 * their OK, what each exporter gets and when, what is kept over a stop, a kill and a restart, and
 * that the ledger adds up meanwhile. */
#include "tests/support/harness.h"
#include "tests/support/trace_sketch.h"

#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/core/client_info.h"
#include "src/journal/journal.h"
#include "src/pipeline/downstream_retry.h"
#include "src/pipeline/pipeline_limits.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { YAML_MAX = 2048, REQUESTS = 50, LARGE_BYTES = 1 << 20, MEDIUM = 3 };

static char directory[] = "/tmp/test_journal_pipeline_XXXXXX";

/* The disk's behaviour, for the threads of the journal. */
static const struct fileops *real;
static _Atomic int write_error;
static _Atomic bool is_stuck;
static bool is_child;
static sem_t unstuck;

static ssize_t test_pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    int error = atomic_load(&write_error);
    return error != 0 ? error : real->pwritev(fd, parts, count, offset);
}

/* Writes fail to paths that contain this; NULL: to none. */
static const char *_Atomic full_journal;

static ssize_t pwritev_unless_full(int fd, const struct iovec *parts, int count, off_t offset)
{
    char link[64];
    char path[PATH_MAX] = "";
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    const char *full = atomic_load(&full_journal);
    bool is_full = size > 0 && full != NULL && strstr(path, full) != NULL;
    return is_full ? -ENOSPC : real->pwritev(fd, parts, count, offset);
}

static int test_fdatasync(int fd)
{
    if (atomic_load(&is_stuck))
        sem_wait(&unstuck);
    int error = atomic_load(&write_error);
    return error != 0 ? error : real->fdatasync(fd);
}

static int set_up(void **state)
{
    static struct fileops ops;
    (void)state;
    strcpy(directory + sizeof(directory) - 7, "XXXXXX");
    if (mkdtemp(directory) == NULL)
        return -1;
    real = fileops();
    ops = *real;
    ops.pwritev = test_pwritev;
    ops.fdatasync = test_fdatasync;
    fileops_replace(&ops);
    atomic_store(&write_error, 0);
    atomic_store(&is_stuck, false);
    return sem_init(&unstuck, 0, 0);
}

static int tear_down(void **state)
{
    char command[64];
    (void)state;
    /* An assertion failed there. */
    if (is_child)
        _exit(2);
    fileops_replace(NULL);
    sem_destroy(&unstuck);
    snprintf(command, sizeof(command), "rm -r %s", directory);
    return system(command);
}

/* One pipeline of traces with these exporters and processors: YAML in braces and brackets. */
struct setting {
    const char *max_size;   /* of file_storage; NULL: 16MiB */
    const char *exporters;  /* "test/a: {…}, test/b: {…}" */
    const char *processors; /* "batch: {…}" */
    const char *names;      /* of exporters in the pipeline */
    const char *through;    /* processors in the pipeline */
    const char *service;    /* further keys of service */
    unsigned lanes;
};

#define STORES  "sending_queue: {storage: file_storage}"
#define AT_ONCE STORES ", retry_on_failure: {enabled: false}"

static struct harness *start(const struct setting *setting)
{
    char yaml[YAML_MAX];
    snprintf(yaml, sizeof(yaml),
             "extensions: {file_storage: {directory: %s, fsync: true, max_size: %s}}\n"
             "processors: {%s}\nexporters: {%s}\n"
             "service: {extensions: [file_storage], drain_timeout: 5s, %s%spipelines: {traces: "
             "{receivers: [test], processors: [%s], exporters: [%s]}}}\n",
             directory, setting->max_size != NULL ? setting->max_size : "16MiB",
             setting->processors != NULL ? setting->processors : "", setting->exporters,
             setting->service != NULL ? setting->service : "", setting->service != NULL ? ", " : "",
             setting->through != NULL ? setting->through : "",
             setting->names != NULL ? setting->names : "test");
    return harness_create_on(yaml, setting->lanes > 0 ? setting->lanes : 1);
}

static bool all_are_resolved(void *arg)
{
    const struct harness *h = arg;
    for (size_t i = 0; i < h->requests_count; i++)
        if (!h->requests[i]->is_resolved)
            return false;
    return true;
}

static void await_results(struct harness *h)
{
    harness_await(h, all_are_resolved, h, "every request has its result");
}

/* Sends so many requests of one item each and waits for their OKs. */
static void send_all(struct harness *h, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        harness_send(h, 1);
    await_results(h);
    for (size_t i = 0; i < h->requests_count; i++)
        assert_int_equal(h->requests[i]->outcome.verdict, ACCEPTED);
}

struct expectation {
    struct test_exporter *exporter;
    uint64_t items;
};

static bool has_delivered(void *arg)
{
    const struct expectation *expected = arg;
    return expected->exporter->delivered_items >= expected->items;
}

static void await_items(struct harness *h, struct test_exporter *exporter, uint64_t items)
{
    struct expectation expected = {exporter, items};
    harness_await(h, has_delivered, &expected, "the items are delivered");
    assert_int_equal(exporter->delivered_items, items);
}

/* Items first to end came once each. */
static void check_items(const struct test_exporter *exporter, uint64_t first, uint64_t end)
{
    assert_int_equal(exporter->doubled_items, 0);
    for (uint64_t i = first; i < end; i++)
        assert_int_equal(exporter->seen[i], 1);
}

struct lanes_expectation {
    struct test_exporter *const *exporters; /* of two lanes */
    uint64_t items;
};

static bool have_delivered(void *arg)
{
    const struct lanes_expectation *expected = arg;
    return expected->exporters[0]->delivered_items + expected->exporters[1]->delivered_items >=
           expected->items;
}

static void await_on_lanes(struct harness *h, struct test_exporter *const *exporters,
                           uint64_t items)
{
    struct lanes_expectation expected = {exporters, items};
    harness_await(h, have_delivered, &expected, "the items are delivered on both lanes");
}

static bool has_tried(void *arg)
{
    const struct expectation *expected = arg;
    return expected->exporter->attempts_count >= expected->items;
}

static void await_attempts(struct harness *h, struct test_exporter *exporter, size_t count)
{
    struct expectation expected = {exporter, count};
    harness_await(h, has_tried, &expected, "the exporter tries");
}

static bool has_come_to_rest(void *arg)
{
    return harness_totals(arg, TRACES).in_flight == 0;
}

static void stop(struct harness *h)
{
    harness_destroy(h);
}

/* Stops without letting anything go. */
static bool is_stopped(void *arg)
{
    const struct harness *h = arg;
    return h->has_stopped;
}

static void stop_as_it_is(struct harness *h)
{
    harness_stop(h);
    harness_await(h, is_stopped, h, "it stops");
    assert_false(h->was_forced);
    harness_discard(h);
}

/* After a restart, what is sent now is the first thing that its exporter gets. */
static void check_nothing_is_left(const struct setting *setting, const char *id)
{
    struct harness *h = start(setting);
    struct test_exporter *exporter = harness_exporter(h, id);
    send_all(h, 1);
    await_items(h, exporter, 1);
    assert_int_equal(exporter->attempts_count, 1);
    stop(h);
}

static const struct setting plain = {.exporters = "test: {" STORES "}"};

static void the_ok_comes_after_the_commit(void **state)
{
    (void)state;
    struct harness *h = start(&plain);
    struct test_exporter *exporter = harness_exporter(h, "test");
    send_all(h, 1); /* its segment is ready now */
    await_items(h, exporter, 1);
    atomic_store(&is_stuck, true);
    struct test_request *request = harness_send(h, 1);
    for (int i = 0; i < 20; i++)
        harness_advance(h, 100 * MS);
    assert_false(request->is_resolved);
    assert_int_equal(exporter->attempts_count, 1);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 1);
    atomic_store(&is_stuck, false);
    sem_post(&unstuck);
    await_items(h, exporter, 2);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    stop(h);
    check_nothing_is_left(&plain, "test");
}

/* The journal rests for a while after a failure, or until it has prepared a new file. */
static void pause_requests(struct harness *h)
{
    poll(NULL, 0, 10);
    harness_advance(h, 20 * MS);
}

/* Sends one request after the other. */
static bool is_taken_again(void *arg)
{
    struct harness *h = arg;
    const struct test_request *last = h->requests[h->requests_count - 1];
    if (last->is_resolved && last->outcome.verdict == ACCEPTED)
        return true;
    if (!last->is_resolved)
        return false;
    pause_requests(h);
    harness_send(h, 1);
    return false;
}

static void what_the_disk_refuses_may_be_sent_again(void **state)
{
    (void)state;
    static const int errors[] = {-EIO, -ENOSPC, -EROFS, -EDQUOT};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        print_message("  %s\n", strerror(-errors[i]));
        struct harness *h = start(&plain);
        struct test_exporter *exporter = harness_exporter(h, "test");
        send_all(h, 1);
        await_items(h, exporter, 1);
        atomic_store(&write_error, errors[i]);
        struct test_request *request = harness_send(h, MEDIUM);
        await_results(h);
        assert_int_equal(request->outcome.verdict, REFUSED);
        assert_int_equal(request->outcome.code, STATUS_UNAVAILABLE);
        assert_false(request->outcome.is_permanent);
        assert_true(request->outcome.retry_after_ns > 0);
        assert_non_null(strstr(request->text, "journal"));
        struct harness_totals totals = harness_totals(h, TRACES);
        assert_int_equal(totals.rejected, MEDIUM);
        assert_int_equal(totals.by_reason[LOSS_BUSY], MEDIUM);
        assert_int_equal(exporter->delivered_items, 1);
        /* It goes on when the disk does. */
        atomic_store(&write_error, 0);
        harness_await(h, is_taken_again, h, "requests are taken again");
        await_items(h, exporter, 2);
        stop(h);
    }
}

static uint8_t large[LARGE_BYTES];

/* Sends a large request again until it is taken. */
static bool is_large_taken(void *arg)
{
    struct harness *h = arg;
    const struct test_request *last = h->requests[h->requests_count - 1];
    if (last->is_resolved && last->outcome.verdict == ACCEPTED)
        return true;
    if (!last->is_resolved)
        return false;
    pause_requests(h);
    harness_put_bytes(h, 0, TRACES, slice_of(large, sizeof(large)), 1);
    return false;
}

static void a_full_journal_refuses_until_the_back_end_returns(void **state)
{
    (void)state;
    struct harness *h = start(&(struct setting){.exporters = "test: {" AT_ONCE "}"});
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->has_own_items = true;
    exporter->result = RESULT_BUSY;
    unsigned accepted = 0;
    struct test_request *request = NULL;
    do {
        request = harness_put_bytes(h, 0, TRACES, slice_of(large, sizeof(large)), 1);
        await_results(h);
        accepted += request->outcome.verdict == ACCEPTED;
    } while (request->outcome.verdict == ACCEPTED && accepted < 100);
    /* Four segments of 4 MiB, less what they need themselves. */
    assert_in_range(accepted, 8, 16);
    assert_int_equal(request->outcome.code, STATUS_UNAVAILABLE);
    assert_true(request->outcome.retry_after_ns > 0);
    assert_non_null(strstr(request->text, "max_size"));
    exporter->result = RESULT_OK;
    await_items(h, exporter, accepted);
    harness_put_bytes(h, 0, TRACES, slice_of(large, sizeof(large)), 1);
    harness_await(h, is_large_taken, h, "there is room in the journal");
    await_items(h, exporter, accepted + 1);
    stop(h);
}

static void what_can_never_fit_is_refused_for_good(void **state)
{
    (void)state;
    enum { MOST = 16 << 20, LESS = 5 << 20 };
    uint8_t *bytes = calloc(1, MOST);
    struct harness *h = start(&plain);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->has_own_items = true;
    struct test_request *request = harness_put_bytes(h, 0, TRACES, slice_of(bytes, MOST), 1);
    await_results(h);
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_true(request->outcome.is_permanent);
    assert_int_equal(request->outcome.code, STATUS_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(request->text, "max_size"));
    request = harness_put_bytes(h, 0, TRACES, slice_of(bytes, LESS), 1);
    await_items(h, exporter, 1);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    stop(h);
    free(bytes);
}

static void an_exporter_that_does_not_store_holds_nothing(void **state)
{
    (void)state;
    const struct setting setting = {
        .exporters = "test/a: {" STORES "}, test/b: {}",
        .names = "test/b, test/a",
    };
    struct harness *h = start(&setting);
    struct test_exporter *other = harness_exporter(h, "test/b");
    other->result = RESULT_HOLD;
    send_all(h, 5);
    await_items(h, harness_exporter(h, "test/a"), 5);
    await_attempts(h, other, 5);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 5);
    /* Those five are lost to it, not to the other, which has finished them. */
    stop(h);
    h = start(&setting);
    send_all(h, 1);
    await_items(h, harness_exporter(h, "test/a"), 1);
    await_items(h, harness_exporter(h, "test/b"), 1);
    assert_int_equal(harness_exporter(h, "test/a")->attempts_count, 1);
    stop(h);
}

/* Without a queue it takes everything at once and keeps it. */
static void an_exporter_without_a_queue_holds_nothing(void **state)
{
    (void)state;
    struct harness *h = start(&(struct setting){
        .exporters = "test/a: {" STORES "}, test/b: {sending_queue: {enabled: false}}",
        .names = "test/a, test/b",
    });
    struct test_exporter *storing = harness_exporter(h, "test/a");
    struct test_exporter *other = harness_exporter(h, "test/b");
    storing->has_own_items = other->has_own_items = true;
    other->result = RESULT_HOLD;
    /* More than the journal has room for, unless records are released. */
    for (unsigned taken = 0; taken < 30; taken++) {
        harness_put_bytes(h, 0, TRACES, slice_of(large, sizeof(large)), 1);
        harness_await(h, is_large_taken, h, "there is room in the journal");
        await_items(h, storing, taken + 1);
    }
    assert_int_equal(other->held_count, 30);
    stop(h);
}

static void one_that_does_not_store_is_given_nothing_again(void **state)
{
    (void)state;
    const struct setting setting = {
        .exporters = "test/a: {" AT_ONCE "}, test/b: {}",
        .names = "test/a, test/b",
    };
    struct harness *h = start(&setting);
    struct test_exporter *storing = harness_exporter(h, "test/a");
    storing->result = RESULT_BUSY;
    send_all(h, 5);
    await_items(h, harness_exporter(h, "test/b"), 5);
    stop_as_it_is(h);
    h = start(&setting);
    await_items(h, harness_exporter(h, "test/a"), 5);
    check_items(harness_exporter(h, "test/a"), 0, 5);
    assert_int_equal(harness_exporter(h, "test/b")->attempts_count, 0);
    stop(h);
}

static void one_that_refuses_gets_its_records_later_and_in_order(void **state)
{
    (void)state;
    const struct setting setting = {
        .exporters = "test/a: {" AT_ONCE "}, test/b: {sending_queue: {storage: file_storage, "
                     "num_consumers: 1}, retry_on_failure: {enabled: false}}",
        .names = "test/a, test/b",
    };
    struct harness *h = start(&setting);
    struct test_exporter *fine = harness_exporter(h, "test/a");
    struct test_exporter *away = harness_exporter(h, "test/b");
    away->result = RESULT_BUSY;
    uint64_t items = 0;
    for (unsigned i = 1; i <= REQUESTS; i++) {
        harness_send(h, i);
        items += i;
        await_results(h);
    }
    await_items(h, fine, items);
    harness_await(h, has_come_to_rest, h, "the journal has what is owed");
    assert_true(harness_totals(h, TRACES).deferred >= items);
    away->result = RESULT_OK;
    size_t first = away->attempts_count;
    await_items(h, away, items);
    check_items(away, 0, items);
    check_items(fine, 0, items);
    for (size_t i = first; i < away->attempts_count; i++)
        assert_int_equal(away->attempts[i].items, i - first + 1);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.delivered, 2 * items);
    assert_int_equal(totals.received, totals.delivered + totals.deferred);
    assert_int_equal(totals.in_flight, 0);
    /* It keeps up again. */
    send_all(h, 1);
    await_items(h, away, items + 1);
    stop(h);
    check_nothing_is_left(&setting, "test/a");
}

static void each_has_its_own_progress_over_a_restart(void **state)
{
    (void)state;
    const struct setting setting = {
        .exporters = "test/a: {" AT_ONCE "}, test/b: {" AT_ONCE "}",
        .names = "test/a, test/b",
        .lanes = 2,
    };
    struct harness *h = start(&setting);
    for (unsigned lane = 0; lane < 2; lane++)
        harness_exporter_on(h, "test/b", lane, TRACES)->result = RESULT_BUSY;
    for (unsigned i = 0; i < REQUESTS; i++)
        harness_offer(h, (struct harness_offer){.lane = i % 2, .items = 1});
    await_results(h);
    harness_await(h, has_come_to_rest, h, "the journal has what is owed");
    stop_as_it_is(h);
    h = start(&setting);
    harness_await(h, has_come_to_rest, h, "it rests");
    struct test_exporter *parts[] = {harness_exporter_on(h, "test/b", 0, TRACES),
                                     harness_exporter_on(h, "test/b", 1, TRACES)};
    struct expectation expected = {parts[0], REQUESTS / 2};
    harness_await(h, has_delivered, &expected, "half of the records");
    expected.exporter = parts[1];
    harness_await(h, has_delivered, &expected, "the other half");
    for (unsigned i = 0; i < REQUESTS; i++)
        assert_int_equal(parts[0]->seen[i] + parts[1]->seen[i], 1);
    for (unsigned lane = 0; lane < 2; lane++)
        assert_int_equal(harness_exporter_on(h, "test/a", lane, TRACES)->attempts_count, 0);
    harness_await(h, has_come_to_rest, h, "it rests");
    assert_int_equal(harness_totals(h, TRACES).received, REQUESTS);
    stop(h);
}

struct in_flight {
    const struct harness *h;
    uint64_t items;
};

static bool has_in_flight(void *arg)
{
    const struct in_flight *expected = arg;
    return harness_totals(expected->h, TRACES).in_flight == expected->items;
}

static bool holds_a_trace(void *arg)
{
    char *page = harness_metrics(arg);
    const char *found = strstr(page, "sampling_traces_on_memory{");
    bool is_held = found != NULL && strncmp(strchr(found, '}') + 1, " 1", 2) == 0;
    free(page);
    return is_held;
}

/* A trace whose spans are owed to different exporters goes on as several messages. What is behind
 * may be done with the first at once, and with its requests, before the second is made. */
static void parts_of_a_trace_may_end_at_once(void **state)
{
    (void)state;
    const struct setting before = {
        .exporters = "test/a: {" AT_ONCE "}, test/b: {" AT_ONCE "}",
        .names = "test/a, test/b",
    };
    const struct setting setting = {
        .exporters = before.exporters,
        .names = before.names,
        .processors = "tail_sampling: {decision_wait: 1s, policies: [{name: busy, type: "
                      "rate_limiting, rate_limiting: {spans_per_second: 9}}]}, filter: "
                      "{trace_conditions: ['span.end_time_unix_nano == 0']}",
        .through = "tail_sampling, filter",
    };
    const struct trace_span first = {.trace = 1, .span = 1};
    const struct trace_span second = {.trace = 1, .span = 2};
    struct harness *h = start(&before);
    harness_exporter(h, "test/a")->has_own_items = true;
    harness_exporter(h, "test/b")->has_own_items = true;
    harness_exporter(h, "test/b")->result = RESULT_BUSY;
    trace_offer(h, 0, NULL, &first, 1);
    await_results(h);
    harness_await(h, has_come_to_rest, h, "the journal has what is owed to one");
    stop_as_it_is(h);
    h = start(&setting);
    harness_exporter(h, "test/a")->has_own_items = true;
    harness_exporter(h, "test/b")->has_own_items = true;
    harness_await(h, holds_a_trace, h, "the journal gives it again");
    assert_int_equal(harness_totals(h, TRACES).in_flight, 1);
    trace_offer(h, 0, NULL, &second, 1);
    await_results(h);
    harness_await(h, has_in_flight, &(struct in_flight){h, 3}, "the second span is owed to both");
    harness_advance(h, 3 * S);
    harness_await(h, has_come_to_rest, h, "nothing is left");
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_UNWANTED], 3);
    assert_int_equal(harness_totals(h, TRACES).delivered, 0);
    stop(h);
    check_nothing_is_left(&before, "test/b");
}

/* A record that statements fail on is not kept: it would fail again each time, and fill the
 * journal.
 */
static void what_statements_fail_on_is_dropped(void **state)
{
    (void)state;
    const struct setting setting = {
        .exporters = "test: {" STORES "}",
        .processors = "transform: {error_mode: propagate, trace_statements: "
                      "['set(span.name, 1) where span.end_time_unix_nano == 0']}",
        .through = "transform",
    };
    const struct trace_span failing = {.trace = 1, .span = 1};
    const struct trace_span fine = {.trace = 1, .span = 2, .end_ms = 1};
    struct harness *h = start(&setting);
    harness_exporter(h, "test")->has_own_items = true;
    trace_offer(h, 0, NULL, &failing, 1);
    trace_offer(h, 0, NULL, &fine, 1);
    await_results(h);
    await_items(h, harness_exporter(h, "test"), 1);
    harness_await(h, has_come_to_rest, h, "nothing is left");
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_INVALID], 1);
    assert_int_equal(harness_totals(h, TRACES).dropped, 1);
    assert_int_equal(harness_totals(h, TRACES).deferred, 0);
    stop(h);
    check_nothing_is_left(&plain, "test");
}

static void one_goes_on_while_the_other_retries(void **state)
{
    (void)state;
    /* Memory for 8 MiB of records for each. */
    const struct setting setting = {
        .exporters =
            "test/a: {" STORES "}, test/b: {" STORES ", retry_on_failure: {max_elapsed_time: 0}}",
        .names = "test/a, test/b",
        .service = "budget_mib: 64",
        .max_size = "128MiB",
    };
    struct harness *h = start(&setting);
    struct test_exporter *fine = harness_exporter(h, "test/a");
    struct test_exporter *away = harness_exporter(h, "test/b");
    fine->has_own_items = away->has_own_items = true;
    away->result = RESULT_BUSY;
    for (unsigned taken = 0; taken < 30; taken++) {
        harness_put_bytes(h, 0, TRACES, slice_of(large, sizeof(large)), 1);
        await_results(h);
        await_items(h, fine, taken + 1);
    }
    assert_int_equal(away->delivered_items, 0);
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    /* An attempt that does not end is no different, as long as there is room beside it. */
    away->result = RESULT_HOLD;
    for (unsigned taken = 30; taken < 40; taken++) {
        harness_put_bytes(h, 0, TRACES, slice_of(large, sizeof(large)), 1);
        await_results(h);
        await_items(h, fine, taken + 1);
    }
    away->result = RESULT_OK;
    test_exporter_release(away, RESULT_OK);
    await_items(h, away, 40);
    stop(h);
}

/* More than the processors of two lanes may have out. */
static bool is_much_under_way(void *arg)
{
    return harness_totals(arg, TRACES).in_flight >= (uint64_t)2 * DOWNSTREAM_STORED_BATCHES_MAX;
}

static struct test_exporter *on_lane(struct harness *h, const char *id, unsigned lane)
{
    return harness_exporter_on(h, id, lane, TRACES);
}

static void let_both(struct test_exporter *const *exporters, enum test_result result)
{
    for (unsigned lane = 0; lane < 2; lane++) {
        exporters[lane]->result = result;
        if (result != RESULT_HOLD)
            test_exporter_release(exporters[lane], result);
    }
}

/* One that is read back to takes more than the processors have places for, and is gone again. */
static void one_that_is_away_again_holds_up_nothing(void **state)
{
    (void)state;
    static const char *const queues[] = {
        "{storage: file_storage}",
        "{storage: file_storage, num_consumers: 1}",
        "{storage: file_storage, num_consumers: 1000}",
        "{storage: file_storage, batch: {flush_timeout: 1s, min_size: 2, max_size: 2}}",
    };
    enum { BACKLOG = 1200, LATER = 40 };
    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
        char exporters[256];
        print_message("  %s\n", queues[i]);
        snprintf(exporters, sizeof(exporters),
                 "test/a: {" STORES "}, test/b: {sending_queue: %s, "
                 "retry_on_failure: {max_elapsed_time: 0}}",
                 queues[i]);
        const struct setting setting = {
            .exporters = exporters,
            .names = "test/a, test/b",
            .processors = "batch: {timeout: 10ms, send_batch_size: 1}",
            .through = "batch",
            .lanes = 2,
        };
        struct harness *h = start(&setting);
        struct test_exporter *fine[] = {on_lane(h, "test/a", 0), on_lane(h, "test/a", 1)};
        struct test_exporter *away[] = {on_lane(h, "test/b", 0), on_lane(h, "test/b", 1)};
        let_both(away, RESULT_BUSY);
        for (unsigned j = 0; j < BACKLOG; j++)
            harness_offer(h, (struct harness_offer){.lane = j % 2, .items = 1});
        await_on_lanes(h, fine, BACKLOG);
        stop_as_it_is(h);
        h = start(&setting);
        for (unsigned lane = 0; lane < 2; lane++) {
            fine[lane] = on_lane(h, "test/a", lane);
            away[lane] = on_lane(h, "test/b", lane);
        }
        let_both(away, RESULT_HOLD);
        harness_await(h, is_much_under_way, h, "the processors' places are taken");
        let_both(away, RESULT_BUSY);
        for (unsigned j = 0; j < LATER; j++)
            harness_offer(h, (struct harness_offer){.lane = j % 2, .items = 1});
        await_on_lanes(h, fine, LATER);
        assert_int_equal(harness_totals(h, TRACES).dropped, 0);
        let_both(away, RESULT_OK);
        await_on_lanes(h, away, BACKLOG + LATER);
        stop(h);
    }
}

struct expectation_of_all {
    struct harness *h;
    uint64_t items;
};

static bool have_passed(void *arg)
{
    const struct expectation_of_all *expected = arg;
    return harness_totals(expected->h, TRACES).delivered >= expected->items;
}

/* Requests that the back-end will never take, as those of one tenant over its limit, take all
 * places of retries: the others pass, in time those are dropped, and nothing else is. */
static void requests_that_are_refused_for_ever_hold_up_no_others(void **state)
{
    (void)state;
    static const struct {
        const char *queue;
        unsigned refused;
        unsigned lanes;
    } rows[] = {
        {"{storage: file_storage}", 7, 1},
        {"{storage: file_storage}", 8, 1},
        {"{storage: file_storage}", 8, 2},
        {"{storage: file_storage}", 12, 1},
        {"{storage: file_storage, num_consumers: 1}", 1, 1},
        {"{storage: file_storage, num_consumers: 1}", 1, 2},
        {"{storage: file_storage, num_consumers: 4}", 4, 1},
    };
    enum { OTHERS = 60, DROPPED_WITHIN_S = 5000 };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char exporters[256];
        print_message("  %s, %u, %u lanes\n", rows[i].queue, rows[i].refused, rows[i].lanes);
        snprintf(exporters, sizeof(exporters), "test: {sending_queue: %s}", rows[i].queue);
        const struct setting setting = {.exporters = exporters, .lanes = rows[i].lanes};
        struct harness *h = start(&setting);
        unsigned sent = 0;
        for (unsigned lane = 0; lane < rows[i].lanes; lane++) {
            on_lane(h, "test", lane)->has_poison = true;
            on_lane(h, "test", lane)->poison = rows[i].refused - 1;
        }
        for (; sent < rows[i].refused + OTHERS; sent++) {
            harness_offer(h, (struct harness_offer){.lane = sent % rows[i].lanes, .items = 1});
            harness_advance(h, sent < rows[i].refused ? 0 : 5 * S);
        }
        await_results(h);
        harness_await(h, have_passed, &(struct expectation_of_all){h, OTHERS}, "the others pass");
        uint64_t end_ns = clock_now_ns() + DROPPED_WITHIN_S * S;
        while (clock_now_ns() < end_ns && harness_totals(h, TRACES).dropped < rows[i].refused) {
            harness_offer(h, (struct harness_offer){.lane = sent % rows[i].lanes, .items = 1});
            sent++;
            harness_await_long(h, have_passed,
                               &(struct expectation_of_all){h, sent - rows[i].refused},
                               "one more passes", 200 * MS);
            harness_advance(h, 5 * S);
        }
        assert_int_equal(harness_totals(h, TRACES).dropped, rows[i].refused);
        harness_await(h, have_passed, &(struct expectation_of_all){h, sent - rows[i].refused},
                      "nothing else is dropped");
        stop(h);
    }
}

/* The same of one that batch merges with others: those of later batches pass. */
static void a_batch_that_is_refused_for_ever_holds_up_no_others(void **state)
{
    (void)state;
    static const char *const others[] = {"{}", "{" STORES "}"};
    enum { MERGED = 20, LATER = 40 };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        char exporters[256];
        snprintf(exporters, sizeof(exporters), "test: {" STORES "}, test/b: %s", others[i]);
        const struct setting setting = {
            .exporters = exporters,
            .names = "test, test/b",
            .processors = "batch: {timeout: 200ms, send_batch_size: 8192}",
            .through = "batch",
        };
        struct harness *h = start(&setting);
        struct test_exporter *exporter = harness_exporter(h, "test");
        exporter->has_poison = true; /* the first item */
        for (unsigned j = 0; j < MERGED; j++)
            harness_send(h, 1);
        for (unsigned j = 0; j < LATER; j++) {
            harness_send(h, 1);
            harness_advance(h, 5 * S);
        }
        await_results(h);
        struct expectation expected = {exporter, LATER};
        harness_await(h, has_delivered, &expected, "the others pass");
        exporter->has_poison = false;
        stop(h);
    }
}

/* What is acknowledged is in memory alone for the other one: it is not to wait there. */
static void one_that_is_away_holds_up_none_without_storage(void **state)
{
    (void)state;
    enum { MANY = 600 };
    struct harness *h = start(&(struct setting){
        .exporters = "test/a: {" STORES ", retry_on_failure: {max_elapsed_time: 0}}, test/b: {}",
        .names = "test/a, test/b",
        .processors = "batch: {timeout: 10ms, send_batch_size: 1}",
        .through = "batch",
    });
    struct test_exporter *away = harness_exporter(h, "test/a");
    struct test_exporter *other = harness_exporter(h, "test/b");
    away->result = RESULT_BUSY;
    for (unsigned i = 0; i < MANY; i++)
        harness_send(h, 1);
    await_items(h, other, MANY);
    away->result = RESULT_OK;
    await_items(h, away, MANY);
    check_items(other, 0, MANY);
    stop(h);
}

/* What memory keeps out for too long stays in the journal, for those that have storage. */
static void a_batch_that_is_given_up_for_memory_comes_again(void **state)
{
    (void)state;
    struct harness *h = start(&(struct setting){
        .exporters = "test/a: {" STORES "}, test/b: {}",
        .names = "test/a, test/b",
        .processors =
            "batch: {timeout: 1s}, attributes: {actions: [{key: k, value: v, action: insert}]}",
        .through = "batch, attributes",
        .service = "budget_mib: 32",
    });
    struct budget *budget = &h->service->budget;
    struct test_exporter *stores = harness_exporter(h, "test/a");
    stores->has_own_items = true;
    harness_send(h, 3);
    await_results(h);
    uint64_t taken = budget_limit(budget);
    budget_take(budget, taken);
    harness_advance(h, DOWNSTREAM_KEPT_OUT_MAX_NS + 2 * NS_PER_S);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_MEMORY], 3);
    budget_return(budget, taken);
    await_items(h, stores, 3);
    assert_int_equal(harness_exporter(h, "test/b")->delivered_items, 0);
    stop(h);
}

static void a_permanent_refusal_ends_it(void **state)
{
    (void)state;
    struct harness *h = start(&plain);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_PERMANENT;
    send_all(h, 3);
    await_attempts(h, exporter, 3);
    harness_turn(h);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_PERMANENT], 3);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 0);
    stop(h);
    check_nothing_is_left(&plain, "test");
}

static void the_end_of_retries_keeps_what_the_back_end_refuses(void **state)
{
    (void)state;
    struct harness *h = start(&(struct setting){
        .exporters = "test: {" STORES ", retry_on_failure: {initial_interval: 100ms, "
                     "max_interval: 1s, max_elapsed_time: 2s}}"});
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_BUSY;
    send_all(h, 5);
    harness_advance(h, 60 * S);
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    exporter->result = RESULT_OK;
    await_items(h, exporter, 5);
    check_items(exporter, 0, 5);
    stop(h);
}

#define TWO_SECONDS                                                                                \
    "retry_on_failure: {initial_interval: 1s, randomization_factor: 0, max_interval: 1s, "         \
    "max_elapsed_time: 2s}"

/* Some were delivered while these were under way, and then the back-end was gone for long. */
static void the_end_of_retries_keeps_what_was_under_way(void **state)
{
    (void)state;
    for (unsigned count = 1; count <= MEDIUM; count += 2) {
        struct harness *h =
            start(&(struct setting){.exporters = "test: {" STORES ", " TWO_SECONDS "}"});
        struct test_exporter *exporter = harness_exporter(h, "test");
        exporter->result = RESULT_HOLD;
        for (unsigned i = 0; i < count; i++)
            harness_send(h, 1);
        await_attempts(h, exporter, count);
        exporter->result = RESULT_OK;
        harness_send(h, 1);
        await_items(h, exporter, 1);
        exporter->result = RESULT_BUSY;
        test_exporter_release(exporter, RESULT_BUSY);
        harness_advance(h, 60 * S);
        assert_int_equal(harness_totals(h, TRACES).dropped, 0);
        exporter->result = RESULT_OK;
        await_items(h, exporter, count + 1);
        check_items(exporter, 0, count + 1);
        stop(h);
    }
}

/* One was refused when others passed; but then nothing did any more, whether others were sent or
 * not. */
static void the_end_of_retries_keeps_what_was_refused_before_an_outage(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        unsigned failures = 1 + i / 2; /* of the first item, before another passes */
        unsigned others = i % 2;       /* that are sent during the outage */
        struct harness *h =
            start(&(struct setting){.exporters = "test: {" STORES ", " TWO_SECONDS "}"});
        struct test_exporter *exporter = harness_exporter(h, "test");
        exporter->has_poison = true; /* the first item */
        harness_send(h, 1);
        await_attempts(h, exporter, 1);
        if (failures > 1)
            harness_advance(h, 1 * S);
        assert_int_equal(exporter->poisoned, failures);
        harness_send(h, 1);
        await_items(h, exporter, 1);
        exporter->result = RESULT_BUSY;
        for (unsigned j = 0; j < others; j++)
            harness_send(h, 1);
        await_attempts(h, exporter, failures + 1 + others);
        harness_advance(h, 60 * S);
        assert_int_equal(harness_totals(h, TRACES).dropped, 0);
        exporter->has_poison = false;
        exporter->result = RESULT_OK;
        await_items(h, exporter, 2 + others);
        check_items(exporter, 0, 2 + others);
        stop(h);
    }
}

static void the_end_of_retries_drops_what_alone_is_refused(void **state)
{
    (void)state;
    struct harness *h =
        start(&(struct setting){.exporters = "test: {" STORES ", " TWO_SECONDS "}"});
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->has_poison = true; /* the first item */
    harness_send(h, MEDIUM);
    await_attempts(h, exporter, 1);
    for (unsigned i = 1; i <= 2; i++) {
        harness_send(h, 1);
        await_items(h, exporter, i);
        harness_advance(h, 1 * S);
    }
    assert_int_equal(exporter->poisoned, 3);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_RETRIES_OVER], MEDIUM);
    send_all(h, 1);
    await_items(h, exporter, 3);
    stop(h);
}

/* One that a back-end never takes does not stop the others: at a quiet time, beside another
 * exporter that stores, without retries, and with endless ones. */
static void what_is_refused_alone_holds_up_nothing(void **state)
{
    (void)state;
    static const struct setting settings[] = {
        {.exporters = "test: {" STORES ", " TWO_SECONDS "}"},
        {.exporters = "test: {" STORES ", " TWO_SECONDS "}, test/b: {" STORES "}",
         .names = "test, test/b"},
        {.exporters = "test: {" AT_ONCE "}"},
        {.exporters =
             "test: {" STORES ", retry_on_failure: {max_elapsed_time: 0}}, test/b: {" STORES "}",
         .names = "test, test/b"},
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        print_message("  %zu\n", i);
        struct harness *h = start(&settings[i]);
        struct test_exporter *exporter = harness_exporter(h, "test");
        exporter->has_poison = true; /* the first item */
        send_all(h, 1);
        harness_advance(h, 10 * S);
        for (unsigned j = 0; j < REQUESTS; j++)
            harness_send(h, 1);
        await_items(h, exporter, REQUESTS);
        exporter->has_poison = false;
        stop(h);
    }
}

static void batches_are_made_of_records_and_finish_them_all(void **state)
{
    (void)state;
    static const struct setting settings[] = {
        {.exporters = "test: {" STORES "}",
         .processors = "batch: {timeout: 1s, send_batch_size: 20, send_batch_max_size: 20}",
         .through = "batch"},
        {.exporters = "test: {sending_queue: {storage: file_storage, batch: {flush_timeout: 1s, "
                      "min_size: 20, max_size: 20}}}"},
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        struct harness *h = start(&settings[i]);
        struct test_exporter *exporter = harness_exporter(h, "test");
        /* 17 requests of 7: six batches, of which most end within a request. */
        for (unsigned j = 0; j < 17; j++)
            harness_send(h, 7);
        await_results(h);
        await_items(h, exporter, 119);
        check_items(exporter, 0, 119);
        assert_int_equal(exporter->attempts_count, 6);
        stop(h);
        h = start(&settings[i]);
        exporter = harness_exporter(h, "test");
        send_all(h, 1);
        await_items(h, exporter, 1);
        assert_int_equal(exporter->attempts_count, 1);
        /* They come back one by one and are merged again. */
        exporter->result = RESULT_BUSY;
        for (unsigned j = 0; j < 17; j++)
            harness_send(h, 7);
        await_results(h);
        stop_as_it_is(h);
        h = start(&settings[i]);
        exporter = harness_exporter(h, "test");
        await_items(h, exporter, 119);
        check_items(exporter, 1, 120);
        assert_int_equal(exporter->attempts_count, 6);
        stop(h);
    }
}

static void a_full_queue_loses_nothing(void **state)
{
    (void)state;
    static const char *const queues[] = {"queue_size: 2, num_consumers: 1",
                                         "queue_size: 5, sizer: items, num_consumers: 2",
                                         "queue_size: 100, sizer: bytes"};
    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
        char exporters[256];
        print_message("  %s\n", queues[i]);
        snprintf(exporters, sizeof(exporters), "test: {sending_queue: {storage: file_storage, %s}}",
                 queues[i]);
        struct harness *h = start(&(struct setting){.exporters = exporters});
        struct test_exporter *exporter = harness_exporter(h, "test");
        exporter->result = RESULT_HOLD;
        for (unsigned j = 0; j < REQUESTS; j++)
            harness_send(h, 1 + j % 5);
        await_results(h);
        for (size_t j = 0; j < h->requests_count; j++)
            assert_int_equal(h->requests[j]->outcome.verdict, ACCEPTED);
        exporter->result = RESULT_OK;
        test_exporter_release(exporter, RESULT_OK);
        await_items(h, exporter, REQUESTS / 5 * 15);
        check_items(exporter, 0, REQUESTS / 5 * 15);
        stop(h);
    }
}

static void more_than_a_queue_holds_goes_through_it_alone(void **state)
{
    (void)state;
    struct harness *h = start(&(struct setting){
        .exporters = "test: {sending_queue: {storage: file_storage, queue_size: 5, sizer: items}}",
        .processors = "batch: {timeout: 1s, send_batch_size: 20}",
        .through = "batch",
    });
    struct test_exporter *exporter = harness_exporter(h, "test");
    send_all(h, 20);
    await_items(h, exporter, 20);
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    stop(h);
}

static void a_stop_before_a_dead_back_end_keeps_everything(void **state)
{
    (void)state;
    const struct setting setting = {
        .exporters = "test: {" STORES "}",
        .processors = "batch: {timeout: 1h, send_batch_size: 1000}",
        .through = "batch",
    };
    struct harness *h = start(&setting);
    harness_exporter(h, "test")->result = RESULT_BUSY;
    send_all(h, REQUESTS); /* held by batch */
    harness_send(h, 1);    /* not committed yet */
    stop_as_it_is(h);
    h = start(&plain);
    await_items(h, harness_exporter(h, "test"), REQUESTS + 1);
    check_items(harness_exporter(h, "test"), 0, REQUESTS + 1);
    stop(h);
}

/* In a child, which ends without cleaning up; its exit code is what `life` returns. */
static void in_child(int (*life)(const struct setting *setting), const struct setting *setting,
                     int expected_signal)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    is_child = child == 0;
    if (is_child)
        _exit(life(setting));
    assert_int_equal(waitpid(child, &status, 0), child);
    if (expected_signal != 0) {
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), expected_signal);
    } else {
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static int stop_by_force(const struct setting *setting)
{
    struct harness *h = start(setting);
    struct test_exporter *exporter = harness_exporter(h, "test");
    send_all(h, 1);
    await_items(h, exporter, 1);
    exporter->result = RESULT_HOLD;
    send_all(h, REQUESTS);
    harness_stop(h);
    harness_await(h, is_stopped, h, "it stops");
    return h->was_forced ? 0 : 1;
}

static void a_forced_stop_keeps_what_is_under_way(void **state)
{
    (void)state;
    in_child(stop_by_force, &plain, 0);
    struct harness *h = start(&plain);
    struct test_exporter *exporter = harness_exporter(h, "test");
    struct expectation expected = {exporter, REQUESTS};
    harness_await(h, has_delivered, &expected, "the items are delivered");
    check_items(exporter, 1, REQUESTS + 1);
    stop(h);
}

static int be_killed(const struct setting *setting)
{
    struct harness *h = start(setting);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_HOLD;
    send_all(h, REQUESTS);
    return raise(SIGKILL);
}

#define WAITING_TRACES                                                                             \
    "tail_sampling: {decision_wait: 1h, policies: [{name: n, type: span_count, span_count: "       \
    "{min_spans: 1000}}]}"

static void a_kill_keeps_what_was_acknowledged(void **state)
{
    (void)state;
    static const struct setting settings[] = {
        {.exporters = "test: {" STORES "}"},
        {.exporters = "test: {" STORES "}",
         .processors = "batch: {timeout: 1h, send_batch_size: 30}",
         .through = "batch"},
        {.exporters = "test: {" STORES "}",
         .processors = WAITING_TRACES,
         .through = "tail_sampling"},
        {.exporters = "test: {" STORES "}",
         .processors = WAITING_TRACES,
         .through = "tail_sampling",
         .lanes = 2},
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        in_child(be_killed, &settings[i], SIGKILL);
        struct harness *h = start(&plain);
        await_items(h, harness_exporter(h, "test"), REQUESTS);
        check_items(harness_exporter(h, "test"), 0, REQUESTS);
        stop(h);
        check_nothing_is_left(&plain, "test");
    }
}

static bool has_finished_all(void *arg)
{
    return journal_backlog(arg, 0) == 0;
}

/* Whether traces are sampled or not, their requests are finished once they are decided; before that
 * a restart gives them to the policies again. */
static void traces_are_finished_when_they_are_decided(void **state)
{
    static const struct {
        const char *processors;
        uint64_t delivered;
    } rows[] = {
        {"tail_sampling: {decision_wait: 1s, policies: [{name: n, type: span_count, span_count: "
         "{min_spans: 20, max_spans: 1000}}]}",
         REQUESTS},
        {"tail_sampling: {decision_wait: 1s, policies: [{name: n, type: span_count, span_count: "
         "{min_spans: 2000}}]}",
         0},
        /* Nothing that may come changes that. */
        {"tail_sampling: {decision_wait: 1h, policies: [{name: n, type: always_sample}]}",
         REQUESTS},
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned lanes = 1 + (unsigned)(i & 1);
        const struct setting setting = {.exporters = "test: {" AT_ONCE "}",
                                        .processors = rows[i / 2].processors,
                                        .through = "tail_sampling",
                                        .lanes = lanes};
        struct harness *h = start(&setting);
        for (unsigned k = 0; k < REQUESTS; k++)
            harness_offer(h, (struct harness_offer){.items = 1, .lane = k % lanes});
        await_results(h);
        harness_await_long(h, has_finished_all, harness_journal(h, 0), "all are finished",
                           100 * MS);
        uint64_t delivered = 0;
        for (unsigned lane = 0; lane < lanes; lane++)
            delivered += harness_exporter_on(h, "test", lane, TRACES)->delivered_items;
        assert_int_equal(delivered, rows[i / 2].delivered);
        stop(h);
        check_nothing_is_left(&plain, "test");
    }
}

/* A request goes out in two parts. One is refused for good, the other is under way when the process
 * stops: that one is not lost with it. */
static void a_part_that_is_refused_takes_no_other_along(void **state)
{
    (void)state;
    const struct setting setting = {
        .exporters = "test: {sending_queue: {storage: file_storage, batch: {flush_timeout: 1s, "
                     "min_size: 10, max_size: 10, sizer: items}}}",
    };
    struct harness *h = start(&setting);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->script[0] = RESULT_PERMANENT;
    exporter->script_count = 1;
    exporter->result = RESULT_BUSY;
    harness_send(h, 20);
    await_results(h);
    assert_int_equal(h->requests[0]->outcome.verdict, ACCEPTED);
    await_attempts(h, exporter, 2);
    stop_as_it_is(h);
    h = start(&setting);
    exporter = harness_exporter(h, "test");
    await_items(h, exporter, 20);
    check_items(exporter, 10, 20);
    stop(h);
}

static int be_killed_while_one_retries(const struct setting *setting)
{
    struct harness *h = start(setting);
    struct test_exporter *fine = harness_exporter(h, "test/a");
    harness_exporter(h, "test/b")->result = RESULT_BUSY;
    send_all(h, REQUESTS);
    await_items(h, fine, REQUESTS);
    harness_await(h, has_finished_all, harness_journal(h, 0), "the journal knows");
    /* What is finished goes with the next group. */
    send_all(h, 1);
    return raise(SIGKILL);
}

static void what_one_has_finished_is_known_after_a_kill(void **state)
{
    (void)state;
    const struct setting setting = {
        .exporters = "test/a: {" STORES "}, test/b: {sending_queue: {storage: file_storage, "
                     "queue_size: 1}, retry_on_failure: {max_elapsed_time: 0}}",
        .names = "test/a, test/b",
    };
    in_child(be_killed_while_one_retries, &setting, SIGKILL);
    struct harness *h = start(&setting);
    await_items(h, harness_exporter(h, "test/b"), REQUESTS + 1);
    /* The last one, if at all. */
    assert_true(harness_exporter(h, "test/a")->attempts_count <= 1);
    stop(h);
}

static void clients_come_back_without_their_credentials(void **state)
{
    (void)state;
    const struct client_metadata rows[] = {
        {"authorization", "Bearer not-for-disks"},
        {"cookie", "not-for-disks"},
        {"x-api-key", "not-for-disks"},
        {"Private-Token", "not-for-disks"},
        {"x-scope-orgid", "one"},
        {"x-other", "seen"},
    };
    const struct client_metadata others[] = {{"x-scope-orgid", "two"}};
    const struct setting setting = {
        .exporters = "test: {" AT_ONCE "}",
        .processors = "batch: {timeout: 100ms, metadata_keys: [x-scope-orgid]}",
        .through = "batch",
    };
    struct client_info *clients[] = {
        client_info_create("10.1.2.3", rows, sizeof(rows) / sizeof(rows[0])),
        client_info_create("10.1.2.4", others, 1)};
    struct harness *h = start(&setting);
    harness_exporter(h, "test")->result = RESULT_BUSY;
    for (unsigned i = 0; i < 10; i++)
        harness_offer(h, (struct harness_offer){.items = 1 + i % 2, .client = clients[i % 2]});
    await_results(h);
    stop_as_it_is(h);
    for (size_t i = 0; i < 2; i++)
        client_info_unref(clients[i]);
    char command[128];
    snprintf(command, sizeof(command), "grep -rq seen %s", directory);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof(command), "grep -rq not-for-disks %s", directory);
    assert_int_not_equal(system(command), 0);
    h = start(&setting);
    struct test_exporter *exporter = harness_exporter(h, "test");
    await_items(h, exporter, 15);
    uint64_t items[2] = {0};
    for (size_t i = 0; i < exporter->attempts_count; i++) {
        const struct test_attempt *attempt = &exporter->attempts[i];
        bool is_second = strcmp(attempt->client, "two") == 0;
        if (!is_second)
            assert_string_equal(attempt->client, "one");
        items[is_second] += attempt->items;
    }
    assert_int_equal(items[0], 5);
    assert_int_equal(items[1], 10);
    stop(h);
}

/* More than the journal has room for at once. */
static void send_much(struct harness *h, struct test_exporter *exporter)
{
    uint64_t before = exporter->delivered_items;
    exporter->has_own_items = true;
    for (unsigned taken = 0; taken < 30; taken++) {
        harness_put_bytes(h, 0, TRACES, slice_of(large, sizeof(large)), 1);
        harness_await(h, is_large_taken, h, "there is room in the journal");
        await_items(h, exporter, before + taken + 1);
    }
}

static void one_that_is_gone_holds_nothing_that_comes(void **state)
{
    (void)state;
    const struct setting first = {.exporters = "test/a: {" AT_ONCE "}", .names = "test/a"};
    const struct setting second = {
        .exporters = "test/b: {" STORES "}",
        .names = "test/b",
    };
    struct harness *h = start(&first);
    send_all(h, 5);
    await_items(h, harness_exporter(h, "test/a"), 5);
    stop(h);
    h = start(&second);
    send_much(h, harness_exporter(h, "test/b"));
    stop(h);
    h = start(&first);
    send_all(h, 1);
    await_items(h, harness_exporter(h, "test/a"), 1);
    stop(h);
}

static void what_waits_for_it_is_given_up_when_the_disk_is_full(void **state)
{
    (void)state;
    const struct setting first = {.exporters = "test/a: {" AT_ONCE "}", .names = "test/a"};
    const struct setting second = {
        .exporters = "test/b: {" STORES "}",
        .names = "test/b",
    };
    /* It comes back in time. */
    struct harness *h = start(&first);
    harness_exporter(h, "test/a")->result = RESULT_BUSY;
    send_all(h, 5);
    stop_as_it_is(h);
    h = start(&second);
    send_all(h, 1);
    await_items(h, harness_exporter(h, "test/b"), 1);
    stop(h);
    h = start(&first);
    await_items(h, harness_exporter(h, "test/a"), 6);
    harness_exporter(h, "test/a")->result = RESULT_BUSY;
    send_all(h, 5);
    stop_as_it_is(h);
    /* Too late. */
    h = start(&second);
    send_much(h, harness_exporter(h, "test/b"));
    stop(h);
    h = start(&first);
    send_all(h, 1);
    await_items(h, harness_exporter(h, "test/a"), 1);
    stop(h);
}

static void what_waits_for_it_is_kept_if_dropping_it_frees_nothing(void **state)
{
    (void)state;
    const struct setting both = {.exporters = "test/a: {" AT_ONCE "}, test/b: {" AT_ONCE "}",
                                 .names = "test/a, test/b"};
    const struct setting one = {.exporters = "test/b: {" AT_ONCE "}", .names = "test/b"};
    struct harness *h = start(&both);
    harness_exporter(h, "test/a")->result = harness_exporter(h, "test/b")->result = RESULT_BUSY;
    send_all(h, 5);
    stop_as_it_is(h);
    h = start(&one);
    harness_exporter(h, "test/b")->result = RESULT_BUSY;
    harness_exporter(h, "test/b")->has_own_items = true;
    unsigned accepted = 5;
    for (unsigned refused = 0; refused < 5;) {
        struct test_request *request =
            harness_put_bytes(h, 0, TRACES, slice_of(large, sizeof(large)), 1);
        await_results(h);
        accepted += request->outcome.verdict == ACCEPTED;
        refused += request->outcome.verdict != ACCEPTED;
        if (refused > 0)
            poll(NULL, 0, 5); /* for the thread that prepares segments */
    }
    assert_int_equal(counter_read(&journal_counters(harness_journal(h, 0))->abandoned), 0);
    stop_as_it_is(h);
    h = start(&both);
    struct test_exporter *gone = harness_exporter(h, "test/a");
    gone->has_own_items = harness_exporter(h, "test/b")->has_own_items = true;
    await_items(h, harness_exporter(h, "test/b"), accepted);
    await_items(h, gone, accepted);
    stop(h);
}

/* Two storages, a without fsync and b with it; the pipeline has these exporters. */
static struct harness *start_on_two(const char *exporters, const char *names)
{
    char yaml[YAML_MAX];
    snprintf(yaml, sizeof(yaml),
             "extensions: {file_storage/a: {directory: %s/a, create_directory: true}, "
             "file_storage/b: {directory: %s/b, create_directory: true, fsync: true}, "
             "file_storage/c: {directory: %s/b/../a/}}\n"
             "exporters: {%s}\nservice: {extensions: [file_storage/a, file_storage/b, "
             "file_storage/c], pipelines: {traces: {receivers: [test], "
             "exporters: [%s]}}}\n",
             directory, directory, directory, exporters, names);
    return harness_create_on(yaml, 1);
}

/* How many records and journals the page shows that no pipeline uses. */
static void check_unused(const struct harness *h, const char *journal, unsigned records)
{
    char row[PATH_MAX];
    char *page = harness_metrics(h);
    unsigned rows = 0;
    for (const char *next = page; (next = strstr(next, "\nspanflame_journal_unused_records{"));
         next++)
        rows++;
    assert_int_equal(rows, records > 0);
    snprintf(row, sizeof(row),
             "spanflame_journal_unused_records{directory=\"%s/%s\",extension=\"file_storage/a\"",
             directory, journal);
    const char *found = strstr(page, row);
    assert_int_equal(found != NULL, records > 0);
    if (found != NULL)
        assert_int_equal(strtoul(strstr(found, "} ") + 2, NULL, 10), records);
    free(page);
}

static void a_journal_is_shown_that_another_storage_has_replaced(void **state)
{
    (void)state;
    static const char in_a[] = "test: {sending_queue: {storage: file_storage/a}}";
    static const char in_b[] = "test: {sending_queue: {storage: file_storage/b}}";
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/a", directory);
    assert_int_equal(real->mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/b", directory);
    assert_int_equal(real->mkdir(path, 0700), 0);
    struct harness *h = start_on_two(in_a, "test");
    check_unused(h, "a/traces", 0);
    harness_exporter(h, "test")->result = RESULT_BUSY;
    send_all(h, MEDIUM);
    stop_as_it_is(h);
    h = start_on_two(in_b, "test");
    check_unused(h, "a/traces", MEDIUM);
    send_all(h, 1);
    await_items(h, harness_exporter(h, "test"), 1);
    stop(h);
    h = start_on_two(in_a, "test");
    check_unused(h, "a/traces", 0);
    await_items(h, harness_exporter(h, "test"), MEDIUM);
    stop(h);
}

static _Atomic unsigned flushes;

static int count_fdatasync(int fd)
{
    atomic_fetch_add(&flushes, 1);
    return real->fdatasync(fd);
}

static void a_journal_is_flushed_if_one_of_its_storages_says_so(void **state)
{
    (void)state;
    struct fileops ops = *real;
    ops.fdatasync = count_fdatasync;
    fileops_replace(&ops);
    static const char exporters[] = "test/a: {sending_queue: {storage: file_storage/a}}, "
                                    "test/b: {sending_queue: {storage: file_storage/b}}";
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/b", directory);
    assert_int_equal(real->mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/a", directory);
    assert_int_equal(real->mkdir(path, 0700), 0);
    static const char *const names[] = {"test/a", "test/a, test/b", "test/b, test/a"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct harness *h = start_on_two(exporters, names[i]);
        atomic_store(&flushes, 0);
        send_all(h, 1);
        await_items(h, harness_exporter(h, "test/a"), 1);
        assert_int_equal(atomic_load(&flushes) > 0, i > 0);
        stop(h);
    }
    fileops_replace(NULL);
}

/* Three pipelines behind a connector: two have journals, and one is full. */
static void print_with_connector(char yaml[static YAML_MAX])
{
    snprintf(yaml, YAML_MAX,
             "extensions: {file_storage: {directory: %s}}\nconnectors: {forward: {}}\n"
             "exporters: {test/b: {" STORES "}, test/c: {" STORES "}, test/d: {}, test/e: {" STORES
             "}}\n"
             "service: {extensions: [file_storage], pipelines: {"
             "traces/a: {receivers: [test], exporters: [forward, test/e]}, "
             "traces/b: {receivers: [forward], exporters: [test/b]}, "
             "traces/c: {receivers: [forward], exporters: [test/c]}, "
             "traces/d: {receivers: [forward], exporters: [test/d]}}}\n",
             directory);
}

static struct harness *start_with_connector(void)
{
    char yaml[YAML_MAX];
    print_with_connector(yaml);
    return harness_create_on(yaml, 1);
}

static struct harness *try_build_with_connector(void)
{
    char yaml[YAML_MAX];
    print_with_connector(yaml);
    return harness_try_build(yaml, 1);
}

static bool has_the_last_requests(void *arg)
{
    const struct test_exporter *exporter = arg;
    bool has_all = true;
    for (size_t i = MEDIUM + REQUESTS; i < MEDIUM + 2 * REQUESTS; i++)
        has_all &= exporter->seen[i] > 0;
    return has_all;
}

static void pipelines_behind_a_connector_have_progress_of_their_own(void **state)
{
    (void)state;
    static const char *const ids[] = {"test/b", "test/c", "test/d", "test/e"};
    struct fileops ops = *real;
    ops.pwritev = pwritev_unless_full;
    fileops_replace(&ops);
    struct harness *h = start_with_connector();
    send_all(h, MEDIUM);
    for (size_t i = 0; i < 4; i++)
        await_items(h, harness_exporter(h, ids[i]), MEDIUM);
    atomic_store(&full_journal, "traces~002Fc/");
    send_all(h, REQUESTS);
    for (size_t i = 0; i < 4; i++)
        if (i != 1)
            await_items(h, harness_exporter(h, ids[i]), MEDIUM + REQUESTS);
    assert_int_equal(harness_exporter(h, "test/c")->delivered_items, MEDIUM);
    /* It may be full for long. */
    harness_advance(h, 60 * S);
    harness_await(h, has_come_to_rest, h, "the journal has what is owed");
    atomic_store(&full_journal, NULL);
    await_items(h, harness_exporter(h, "test/c"), MEDIUM + REQUESTS);
    atomic_store(&full_journal, "traces~002Fc/");
    send_all(h, REQUESTS);
    for (size_t i = 0; i < 4; i++)
        if (i != 1)
            await_items(h, harness_exporter(h, ids[i]), MEDIUM + 2 * REQUESTS);
    for (size_t i = 0; i < 4; i++)
        check_items(harness_exporter(h, ids[i]), 0, MEDIUM + REQUESTS);
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    stop_as_it_is(h);
    atomic_store(&full_journal, NULL);
    h = start_with_connector();
    /* What was finished just before its journal was full could not be noted: that comes again. */
    harness_await(h, has_the_last_requests, harness_exporter(h, "test/c"), "they come");
    for (size_t i = 0; i < 4; i++)
        if (i != 1)
            assert_int_equal(harness_exporter(h, ids[i])->attempts_count, 0);
    stop(h);
    fileops_replace(NULL);
}

static bool has_made_metrics(void *arg)
{
    const struct harness_totals totals = harness_totals(arg, METRICS);
    return totals.delivered + totals.dropped > 0 || harness_totals(arg, TRACES).dropped > 0;
}

/* Behind a connector that does not store nothing comes again, whatever the journal has. */
static void counts_of_stored_requests_may_use_the_margin(void **state)
{
    char yaml[YAML_MAX];
    (void)state;
    snprintf(yaml, YAML_MAX,
             "extensions: {file_storage: {directory: %s}}\nconnectors: {count: {}}\n"
             "exporters: {test/e: {" STORES "}, test/m: {}}\n"
             "service: {extensions: [file_storage], budget_mib: 4, pipelines: {"
             "traces: {receivers: [test], exporters: [count, test/e]}, "
             "metrics: {receivers: [count], exporters: [test/m]}}}\n",
             directory);
    struct harness *h = harness_create_on(yaml, 1);
    struct budget *budget = &h->service->budget;
    harness_exporter_on(h, "test/m", 0, METRICS)->has_own_items = true;
    harness_send(h, 1);
    budget_take(budget, budget_limit(budget));
    await_results(h);
    harness_await(h, has_made_metrics, h, "it is counted, or lost");
    budget_return(budget, budget_limit(budget));
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    assert_true(harness_totals(h, METRICS).delivered > 0);
    stop(h);
}

/* What the first journal would read back passes the connector, behind which nothing runs. */
static void a_start_that_fails_loses_nothing_behind_a_connector(void **state)
{
    (void)state;
    struct error error = {.text = ""};
    char commands[2][256];
    struct fileops ops = *real;
    ops.pwritev = pwritev_unless_full;
    fileops_replace(&ops);
    struct harness *h = start_with_connector();
    atomic_store(&full_journal, "traces~002Fc/");
    send_all(h, MEDIUM);
    await_items(h, harness_exporter(h, "test/e"), MEDIUM);
    stop_as_it_is(h);
    atomic_store(&full_journal, NULL);
    snprintf(commands[0], sizeof(commands[0]),
             "cd %s && mv traces~002Fc away && touch traces~002Fc", directory);
    snprintf(commands[1], sizeof(commands[1]), "cd %s && rm traces~002Fc && mv away traces~002Fc",
             directory);
    assert_int_equal(system(commands[0]), 0);
    struct harness *failed = try_build_with_connector();
    assert_non_null(failed);
    assert_false(service_start(failed->service, &error));
    assert_non_null(strstr(error.text, "traces/c"));
    harness_exporter(failed, "test/c")->result = RESULT_BUSY;
    stop_as_it_is(failed);
    assert_int_equal(system(commands[1]), 0);
    h = start_with_connector();
    await_items(h, harness_exporter(h, "test/c"), MEDIUM);
    check_items(harness_exporter(h, "test/c"), 0, MEDIUM);
    stop(h);
    fileops_replace(NULL);
}

static void a_directory_in_use_is_reported(void **state)
{
    (void)state;
    struct error error = {.text = ""};
    char yaml[YAML_MAX];
    struct harness *h = start(&plain);
    snprintf(yaml, sizeof(yaml),
             "extensions: {file_storage: {directory: %s}}\nexporters: {test: {" STORES "}}\n"
             "service: {extensions: [file_storage], pipelines: {traces: {receivers: [test], "
             "exporters: [test]}}}\n",
             directory);
    struct harness *second = harness_try_build(yaml, 1);
    assert_non_null(second);
    assert_false(service_start(second->service, &error));
    assert_non_null(strstr(error.text, "another process"));
    assert_non_null(strstr(error.text, directory));
    uint64_t now_ns = clock_now_ns();
    uint64_t wall_ns = clock_wall_ns();
    stop(second);
    clock_fake_start(now_ns, wall_ns);
    stop(h);
}

/* Of the directories that are made, and of what is in them. */
static char flushed[16][PATH_MAX];
static size_t flushed_count;

static int note_fsync(int fd)
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (flushed_count < sizeof(flushed) / sizeof(flushed[0])) {
        ssize_t size = readlink(link, flushed[flushed_count], PATH_MAX - 1);
        flushed[flushed_count++][size > 0 ? size : 0] = '\0';
    }
    return real->fsync(fd);
}

static bool was_flushed(const char *below)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s%s", directory, below);
    for (size_t i = 0; i < flushed_count; i++)
        if (strcmp(flushed[i], path) == 0)
            return true;
    return false;
}

static void directories_that_are_made_survive_a_power_cut(void **state)
{
    (void)state;
    char yaml[YAML_MAX];
    struct fileops ops = *real;
    ops.fsync = note_fsync;
    flushed_count = 0;
    fileops_replace(&ops);
    snprintf(yaml, sizeof(yaml),
             "extensions: {file_storage: {directory: %s/a/b, create_directory: true, "
             "fsync: true}}\nexporters: {test: {" STORES "}}\n"
             "service: {extensions: [file_storage], pipelines: {traces: {receivers: [test], "
             "exporters: [test]}}}\n",
             directory);
    struct harness *h = harness_create_on(yaml, 1);
    stop(h);
    fileops_replace(NULL);
    assert_true(was_flushed(""));
    assert_true(was_flushed("/a"));
    assert_true(was_flushed("/a/b"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_ok_comes_after_the_commit),
        TEST(what_the_disk_refuses_may_be_sent_again),
        TEST(a_full_journal_refuses_until_the_back_end_returns),
        TEST(what_can_never_fit_is_refused_for_good),
        TEST(an_exporter_that_does_not_store_holds_nothing),
        TEST(an_exporter_without_a_queue_holds_nothing),
        TEST(one_that_does_not_store_is_given_nothing_again),
        TEST(one_that_refuses_gets_its_records_later_and_in_order),
        TEST(each_has_its_own_progress_over_a_restart),
        TEST(parts_of_a_trace_may_end_at_once),
        TEST(what_statements_fail_on_is_dropped),
        TEST(one_goes_on_while_the_other_retries),
        TEST(what_one_has_finished_is_known_after_a_kill),
        TEST(one_that_is_away_again_holds_up_nothing),
        TEST(requests_that_are_refused_for_ever_hold_up_no_others),
        TEST(a_batch_that_is_refused_for_ever_holds_up_no_others),
        TEST(one_that_is_away_holds_up_none_without_storage),
        TEST(a_batch_that_is_given_up_for_memory_comes_again),
        TEST(a_permanent_refusal_ends_it),
        TEST(the_end_of_retries_keeps_what_the_back_end_refuses),
        TEST(the_end_of_retries_keeps_what_was_under_way),
        TEST(the_end_of_retries_keeps_what_was_refused_before_an_outage),
        TEST(the_end_of_retries_drops_what_alone_is_refused),
        TEST(what_is_refused_alone_holds_up_nothing),
        TEST(batches_are_made_of_records_and_finish_them_all),
        TEST(a_full_queue_loses_nothing),
        TEST(more_than_a_queue_holds_goes_through_it_alone),
        TEST(a_stop_before_a_dead_back_end_keeps_everything),
        TEST(a_forced_stop_keeps_what_is_under_way),
        TEST(a_kill_keeps_what_was_acknowledged),
        TEST(traces_are_finished_when_they_are_decided),
        TEST(a_part_that_is_refused_takes_no_other_along),
        TEST(clients_come_back_without_their_credentials),
        TEST(one_that_is_gone_holds_nothing_that_comes),
        TEST(what_waits_for_it_is_given_up_when_the_disk_is_full),
        TEST(what_waits_for_it_is_kept_if_dropping_it_frees_nothing),
        TEST(a_journal_is_shown_that_another_storage_has_replaced),
        TEST(a_journal_is_flushed_if_one_of_its_storages_says_so),
        TEST(pipelines_behind_a_connector_have_progress_of_their_own),
        TEST(counts_of_stored_requests_may_use_the_margin),
        TEST(a_start_that_fails_loses_nothing_behind_a_connector),
        TEST(a_directory_in_use_is_reported),
        TEST(directories_that_are_made_survive_a_power_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
