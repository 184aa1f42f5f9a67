/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes, the worker and questions at once: what lanes bring is kept or counted, every question is
 * answered, and what the budget was charged comes back. Runs under the thread sanitizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/log.h"
#include "src/base/reload_state.h"
#include "src/core/batch.h"
#include "src/explore/explore_hub.h"
#include "tests/unit/explore/span_request.h"

enum { PRODUCERS = 3, BATCHES = 400, SPANS = 5, SPANS_MAX = 300, QUESTIONS = 40 };

static struct explore_hub *hub;
static struct budget budget;

/* A trace with so many spans. Returns its bytes. */
static size_t offer_trace(unsigned lane, uint64_t trace, unsigned count, unsigned padding)
{
    struct test_span spans[SPANS_MAX];
    assert_true(count <= SPANS_MAX);
    for (unsigned i = 0; i < count; i++)
        spans[i] = (struct test_span){.trace = trace,
                                      .span = 1 + i,
                                      .parent = i > 0 ? 1 : 0,
                                      .service = "a",
                                      .name = "n",
                                      .start_ns = 1000 + trace,
                                      .duration_ns = 10,
                                      .padding = padding};
    struct buffer *request = span_request(spans, count);
    size_t bytes = request->size;
    struct batch *batch = batch_create(TRACES, 1);
    batch_append(batch, request, buffer_slice(request));
    batch->items = count;
    explore_hub_offer(hub, lane, batch);
    batch_unref(batch);
    buffer_unref(request);
    return bytes;
}

static void *produce(void *arg)
{
    unsigned lane = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; i < BATCHES; i++)
        offer_trace(lane, 1 + lane * 1000000u + i, SPANS, 0);
    return NULL;
}

struct asked {
    struct explore_job job;
    struct lane *lane;
    unsigned left; /* questions to come */
    uint64_t traces;
};

static const char *const questions[][2] = {
    {"traces", "limit=5&service=a"}, {"services", ""}, {"scatter", ""}, {"spans", "service=a"},
    {"flame", "service=a"},          {"nothing", ""},  {"status", ""},
};

static void ask(struct asked *asked)
{
    size_t which = asked->left % (sizeof(questions) / sizeof(questions[0]));
    if (asked->left == 1)
        which = sizeof(questions) / sizeof(questions[0]) - 1;
    asked->job.path = (char *)(uintptr_t)questions[which][0];
    asked->job.query = (char *)(uintptr_t)questions[which][1];
    assert_true(explore_hub_ask(hub, &asked->job));
}

static void on_answer(struct explore_job *job)
{
    struct asked *asked = (struct asked *)job;
    bool is_unknown = strcmp(job->path, "nothing") == 0;
    assert_int_equal(job->status, is_unknown ? 404 : 200);
    assert_non_null(job->body);
    assert_int_equal(job->body->data[0], '{');
    assert_int_equal(job->body->data[job->body->size - 1], '}');
    buffer_unref(job->body);
    if (--asked->left > 0)
        ask(asked);
    else
        lane_end(asked->lane);
}

static void keeps_or_counts_what_lanes_bring(void **state)
{
    (void)state;
    struct error error;
    struct logger logger = {.component_id = "explore"};
    pthread_t threads[PRODUCERS];
    struct lane *lane = lane_create(0);
    budget_init(&budget, UINT64_MAX);
    hub = explore_hub_get(&budget, "explore");
    assert_ptr_equal(explore_hub_get(&budget, "explore"), hub);
    explore_hub_release(hub);
    struct explore_settings settings = {
        .max_bytes = 64 * MIB, .budget = &budget, .version = "1", .logger = &logger};
    assert_true(explore_hub_start(hub, &settings, &error));
    for (uintptr_t i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, produce, (void *)i), 0);
    struct asked asked = {.lane = lane, .left = QUESTIONS};
    asked.job.lane = lane;
    asked.job.done = on_answer;
    ask(&asked);
    lane_run(lane);
    for (unsigned i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    /* The last question takes in what was left, unless that takes too long. */
    asked.left = 1;
    ask(&asked);
    lane_run(lane);
    explore_hub_stop(hub);
    struct explore_figures figures = explore_hub_figures(hub);
    uint64_t lost = 0;
    for (size_t i = 0; i < EXPLORE_LOSSES; i++)
        lost += figures.lost[i];
    assert_int_equal(figures.spans + lost, PRODUCERS * BATCHES * SPANS);
    assert_true(figures.spans > 0);
    assert_int_equal(budget_used(&budget), 0);
    explore_hub_release(hub);
    lane_destroy(lane);
    budget_fini(&budget);
}

static void start(struct lane **ret_lane, struct logger *logger, uint64_t max_bytes)
{
    struct error error;
    *logger = (struct logger){.component_id = "explore"};
    *ret_lane = lane_create(0);
    budget_init(&budget, UINT64_MAX);
    hub = explore_hub_get(&budget, "explore");
    struct explore_settings settings = {
        .max_bytes = max_bytes, .budget = &budget, .version = "1", .logger = logger};
    assert_true(explore_hub_start(hub, &settings, &error));
}

enum { ROUNDS = 8, SMALL = 500, ROOMY_BYTES = 64 * 1024 };

/* Small requests in buffers that hold far more: the queue counts what it keeps, which is little. */
static void keeps_small_requests_of_large_buffers(void **state)
{
    (void)state;
    struct logger logger;
    struct lane *lane;
    start(&lane, &logger, 8 * MIB);
    struct asked asked = {.lane = lane};
    asked.job.lane = lane;
    asked.job.done = on_answer;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < SMALL; i++) {
            struct test_span span = {.trace = 1 + round * SMALL + i,
                                     .span = 1,
                                     .service = "a",
                                     .name = "n",
                                     .start_ns = 1000,
                                     .duration_ns = 10};
            struct buffer *request = span_request(&span, 1);
            struct buffer *roomy = buffer_try_create(&budget, ROOMY_BYTES);
            assert_non_null(roomy);
            memcpy(roomy->data, request->data, request->size);
            roomy->size = request->size;
            struct batch *batch = batch_create(TRACES, 1);
            batch_append(batch, roomy, buffer_slice(roomy));
            batch->items = 1;
            explore_hub_offer(hub, 0, batch);
            batch_unref(batch);
            buffer_unref(roomy);
            buffer_unref(request);
        }
        /* The worker takes what waits before it answers. */
        asked.left = 1;
        ask(&asked);
        lane_run(lane);
        /* Nothing but what is kept, or waits, is charged. */
        assert_true(budget_used(&budget) < 4 * MIB);
    }
    struct explore_figures figures = explore_hub_figures(hub);
    for (size_t i = 0; i < EXPLORE_LOSSES; i++)
        assert_int_equal(figures.lost[i], 0);
    explore_hub_stop(hub);
    assert_int_equal(budget_used(&budget), 0);
    explore_hub_release(hub);
    lane_destroy(lane);
    budget_fini(&budget);
}

enum { BURST_BATCHES = 400, BURST_PADDING = 128, BURST_ASKS_MAX = 4000 };

#define BURST_STORE (64 * MIB)

/* More at once than may wait beside a full store, and more than the worker's share of a core. */
static void keeps_a_burst_that_the_store_has_room_for(void **state)
{
    (void)state;
    struct logger logger;
    struct lane *lane;
    start(&lane, &logger, BURST_STORE);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < BURST_BATCHES; i++)
        bytes += offer_trace(0, 1 + i, SPANS_MAX, BURST_PADDING);
    assert_true(bytes > BURST_STORE / EXPLORE_RAW_PART);
    struct asked asked = {.lane = lane};
    asked.job.lane = lane;
    asked.job.done = on_answer;
    /* Before it answers, the worker indexes for a while. */
    struct explore_figures figures = explore_hub_figures(hub);
    for (unsigned i = 0; i < BURST_ASKS_MAX && figures.spans < BURST_BATCHES * SPANS_MAX; i++) {
        asked.left = 1;
        ask(&asked);
        lane_run(lane);
        figures = explore_hub_figures(hub);
        for (size_t loss = 0; loss < EXPLORE_LOSSES; loss++)
            assert_int_equal(figures.lost[loss], 0);
    }
    assert_int_equal(figures.spans, BURST_BATCHES * SPANS_MAX);
    explore_hub_stop(hub);
    explore_hub_release(hub);
    lane_destroy(lane);
    budget_fini(&budget);
}

enum { LARGE_PADDING = 60 * 1024 };

/* One batch with more than twice of all that may be kept: room is made while it is indexed. */
static void a_batch_may_be_larger_than_the_store(void **state)
{
    (void)state;
    struct logger logger;
    struct lane *lane;
    start(&lane, &logger, 8 * MIB);
    assert_true(offer_trace(0, 1, SPANS_MAX, LARGE_PADDING) > 16 * MIB);
    struct asked asked = {.lane = lane, .left = 1};
    asked.job.lane = lane;
    asked.job.done = on_answer;
    ask(&asked);
    lane_run(lane);
    explore_hub_stop(hub);
    struct explore_figures figures = explore_hub_figures(hub);
    assert_in_range(figures.spans, 1, SPANS_MAX - 1); /* those of its end */
    assert_in_range(atomic_load(&budget.high_water), 4 * MIB, 12 * MIB);
    explore_hub_release(hub);
    lane_destroy(lane);
    budget_fini(&budget);
}

enum { WAITING = 20 };

static struct fileops slow_disk;
static const struct fileops *real_disk;
static sem_t is_reading;
static sem_t may_read;

/* The first file of the directory keeps its reader waiting. */
static int open_slowly(const char *path, int flags, mode_t mode)
{
    if (strstr(path, "0000000000000001.traces") != NULL && strstr(path, ".part") == NULL) {
        sem_post(&is_reading);
        sem_wait(&may_read);
    }
    return real_disk->open(path, flags, mode);
}

static void remove_name(const char *name, void *arg)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", (const char *)arg, name);
    unlink(path);
}

static void on_ended(struct lane_task *task)
{
    struct asked *asked = (struct asked *)task;
    lane_end(asked->lane);
}

/* Runs the hub with that directory. The batches come while the worker reads the directory, and
 * so_late after the end has begun it goes on. */
static struct explore_figures run_until_the_end(const char *directory, bool has_files,
                                                uint64_t so_late_ns)
{
    struct error error;
    struct logger logger = {.component_id = "explore"};
    struct asked ended = {.lane = lane_create(0)};
    budget_init(&budget, UINT64_MAX);
    hub = explore_hub_get(&budget, "explore");
    struct explore_settings settings = {.max_bytes = 64 * MIB,
                                        .budget = &budget,
                                        .version = "1",
                                        .logger = &logger,
                                        .directory = directory};
    assert_true(explore_hub_start(hub, &settings, &error));
    if (has_files)
        sem_wait(&is_reading);
    for (unsigned i = 0; i < WAITING; i++)
        offer_trace(0, 1 + i, SPANS, 0);
    ended.job.task.fn = on_ended;
    explore_hub_end(hub, ended.lane, &ended.job.task);
    clock_fake_advance(so_late_ns);
    sem_post(&may_read);
    lane_run(ended.lane); /* until the worker has ended, which nothing here waits for */
    struct explore_figures figures = explore_hub_figures(hub);
    explore_hub_stop(hub);
    assert_int_equal(budget_used(&budget), 0);
    explore_hub_release(hub);
    lane_destroy(ended.lane);
    budget_fini(&budget);
    if (!has_files)
        sem_wait(&may_read);
    return figures;
}

static void the_end_counts_what_it_has_no_time_for(void **state)
{
    char directory[] = "/tmp/explore-hub-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(directory));
    sem_init(&is_reading, 0, 0);
    sem_init(&may_read, 0, 0);
    real_disk = fileops();
    slow_disk = *real_disk;
    slow_disk.open = open_slowly;
    fileops_replace(&slow_disk);
    clock_fake_start(NS_PER_S, NS_PER_S);
    /* What waits at the end is kept and saved, if there is time. */
    struct explore_figures figures = run_until_the_end(directory, false, 0);
    assert_int_equal(figures.spans, WAITING * SPANS);
    figures = run_until_the_end(directory, true, EXPLORE_END_NS - 1);
    assert_int_equal(figures.spans, 2 * WAITING * SPANS);
    assert_int_equal(figures.lost[EXPLORE_LOST_RAW], 0);
    /* Of two files by now one is being read when the end begins: the other stays where it is. */
    figures = run_until_the_end(directory, true, EXPLORE_END_NS);
    assert_int_equal(figures.spans, WAITING * SPANS);
    assert_int_equal(figures.lost[EXPLORE_LOST_RAW], WAITING * SPANS);
    clock_fake_stop();
    fileops_replace(NULL);
    sem_destroy(&is_reading);
    sem_destroy(&may_read);
    fileops()->list(directory, remove_name, directory);
    rmdir(directory);
}

/* A reload that comes while the directory is read does not lose sight of the rest. */
static void a_reload_reads_what_was_not_read(void **state)
{
    char directory[] = "/tmp/explore-hub-XXXXXX";
    struct error error;
    struct logger logger = {.component_id = "explore"};
    (void)state;
    assert_non_null(mkdtemp(directory));
    sem_init(&is_reading, 0, 0);
    sem_init(&may_read, 0, 0);
    real_disk = fileops();
    slow_disk = *real_disk;
    slow_disk.open = open_slowly;
    fileops_replace(&slow_disk);
    clock_fake_start(NS_PER_S, NS_PER_S);
    run_until_the_end(directory, false, 0);
    run_until_the_end(directory, true, EXPLORE_END_NS - 1);
    /* One of two files is being read. */
    reload_state_begin();
    struct explore_figures figures = run_until_the_end(directory, true, EXPLORE_END_NS);
    assert_int_equal(figures.spans, WAITING * SPANS);
    clock_fake_stop();
    fileops_replace(NULL);
    struct asked asked = {.lane = lane_create(0), .left = 1};
    budget_init(&budget, UINT64_MAX);
    hub = explore_hub_get(&budget, "explore");
    struct explore_settings settings = {.max_bytes = 64 * MIB,
                                        .budget = &budget,
                                        .version = "1",
                                        .logger = &logger,
                                        .directory = directory};
    assert_true(explore_hub_start(hub, &settings, &error));
    reload_state_end();
    asked.job.lane = asked.lane;
    asked.job.done = on_answer;
    ask(&asked); /* answered when all is read */
    lane_run(asked.lane);
    figures = explore_hub_figures(hub);
    assert_int_equal(figures.spans, 2 * WAITING * SPANS);
    explore_hub_stop(hub);
    explore_hub_release(hub);
    lane_destroy(asked.lane);
    budget_fini(&budget);
    sem_destroy(&is_reading);
    sem_destroy(&may_read);
    fileops()->list(directory, remove_name, directory);
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_or_counts_what_lanes_bring),
        cmocka_unit_test(keeps_small_requests_of_large_buffers),
        cmocka_unit_test(keeps_a_burst_that_the_store_has_room_for),
        cmocka_unit_test(a_batch_may_be_larger_than_the_store),
        cmocka_unit_test(the_end_counts_what_it_has_no_time_for),
        cmocka_unit_test(a_reload_reads_what_was_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
