/* SPDX-License-Identifier: Apache-2.0 */
/* The join on lanes that are threads, where the thread sanitizer looks on: each lane sends spans,
 * and profiles that name those of all lanes, or none; the index, the sets, what is known of
 * processes and what is held are shared. */
#include "tests/support/join_fixture.h"

#include "src/batch.h"
#include "src/buffer.h"
#include "src/lane.h"
#include "src/mem.h"
#include "src/service.h"
#include "tests/support/telemetry_bytes.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 2, ROUNDS = 200, BURST = 10, SPANS = 5, SAMPLES = 4, SERVICES = 8 };
/* Of a round. */
enum { LINKED, UNLINKED, OF_SPANS, REQUESTS };

/* Offers a request of spans and two of profiles per round, a burst at a time, and reports to lane 0
 * when all are answered. */
struct pump {
    struct lane_task task;
    struct harness *harness;
    struct component *receiver;
    struct timer timer;
    unsigned lane;
    size_t sent;
    struct test_request requests[ROUNDS][REQUESTS];
};

static struct pump pumps[THREADS];
static unsigned pumps_done; /* on lane 0 */

static void on_end(struct lane_task *task)
{
    struct pump *pump = (struct pump *)task;
    lane_end(pump->receiver->lane);
}

static void on_stopped(bool is_forced, void *arg)
{
    struct harness *h = arg;
    h->has_stopped = true;
    h->was_forced = is_forced;
    for (unsigned i = 0; i < THREADS; i++) {
        pumps[i].task.fn = on_end;
        lane_post(pumps[i].receiver->lane, &pumps[i].task);
    }
}

static void on_pump_done(struct lane_task *task)
{
    struct pump *pump = (struct pump *)task;
    if (++pumps_done == THREADS)
        service_stop(pump->harness->service, on_stopped, pump->harness);
}

/* The first span of a lane's round. */
static uint64_t first_span(unsigned lane, size_t round)
{
    return 1 + ((uint64_t)lane * ROUNDS + round) * SPANS;
}

static struct batch *batch_of(struct component *receiver, const struct sketch *sketch)
{
    struct slice bytes = sketch_request(sketch);
    struct buffer *buffer = buffer_create(receiver->budget, bytes.size);
    struct batch *batch = batch_create(PROFILES, 1);
    memcpy(buffer->data, bytes.data, bytes.size);
    buffer->size = bytes.size;
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = sketch->profiles[0].samples_count;
    buffer_unref(buffer);
    mem_free((void *)(uintptr_t)bytes.data);
    return batch;
}

/* Samples in spans of this round on both lanes, so that many have yet to come. */
static struct batch *linked_profiles(struct component *receiver, size_t round)
{
    char ids[SAMPLES][9];
    struct sketch_sample samples[SAMPLES];
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = SAMPLES, .samples = samples};
    const struct sketch sketch = {
        .resource = {"container.id=c1"}, .profiles_count = 1, .profiles = &profile};
    for (unsigned i = 0; i < SAMPLES; i++) {
        uint64_t span = first_span(i % THREADS, round) + i;
        memset(ids[i], 0, sizeof(ids[i]));
        for (unsigned k = 0; k < 8; k++)
            ids[i][k] = (char)(span >> (8 * k));
        samples[i] = (struct sketch_sample){
            .stack = "work;main", .values_count = 1, .values = {5}, .span_id = ids[i]};
    }
    return batch_of(receiver, &sketch);
}

/* Of services that may be batch jobs, all unknown at first. */
static struct batch *unlinked_profiles(struct component *receiver, size_t round)
{
    static const struct sketch_sample sample = {
        .stack = "step;main", .values_count = 1, .values = {5}};
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .time_ns = 1, .samples_count = 1, .samples = &sample};
    char service[32];
    const struct sketch sketch = {.resource = {service}, .profiles_count = 1, .profiles = &profile};
    snprintf(service, sizeof(service), "service.name=job-%zu", round % SERVICES);
    return batch_of(receiver, &sketch);
}

static void send_round(struct pump *pump)
{
    struct test_request *requests = pump->requests[pump->sent];
    uint64_t first = first_span(pump->lane, pump->sent);
    struct batch *spans = numbered_request(pump->receiver->budget, TRACES, first, SPANS);
    struct batch *linked = linked_profiles(pump->receiver, pump->sent);
    struct batch *unlinked = unlinked_profiles(pump->receiver, pump->sent);
    assert(spans != NULL);
    test_receiver_offer(pump->receiver, linked, &requests[LINKED]);
    test_receiver_offer(pump->receiver, unlinked, &requests[UNLINKED]);
    test_receiver_offer(pump->receiver, spans, &requests[OF_SPANS]);
    batch_unref(spans);
    batch_unref(linked);
    batch_unref(unlinked);
    pump->sent++;
}

static bool is_all_answered(const struct pump *pump)
{
    for (size_t i = 0; i < ROUNDS; i++)
        for (size_t k = 0; k < REQUESTS; k++)
            if (!pump->requests[i][k].is_answered)
                return false;
    return true;
}

static void on_pump(struct timer *timer, void *arg)
{
    struct pump *pump = arg;
    for (unsigned i = 0; i < BURST && pump->sent < ROUNDS; i++)
        send_round(pump);
    free(harness_metrics(pump->harness)); /* which reads the other lane's counters */
    if (pump->sent < ROUNDS || !is_all_answered(pump)) {
        lane_timer_start(pump->receiver->lane, timer, 100 * NS_PER_US);
        return;
    }
    pump->task.fn = on_pump_done;
    lane_post(pump->harness->lanes[0], &pump->task);
}

static void start_pump(struct harness *h, unsigned lane)
{
    struct pump *pump = &pumps[lane];
    memset(pump, 0, sizeof(*pump));
    pump->harness = h;
    pump->lane = lane;
    pump->receiver = harness_receiver(h, "test", lane);
    timer_init(&pump->timer, on_pump, pump);
    lane_timer_start(h->lanes[lane], &pump->timer, 0);
}

static void check_books(const struct harness *h, enum signal_kind signal, uint64_t items)
{
    struct harness_books books = harness_books(h, signal);
    assert_int_equal(books.received, items);
    assert_int_equal(books.delivered, items);
}

static void run_on_threads(const char *yaml)
{
    struct harness *h = join_start_on(yaml, THREADS);
    clock_fake_stop();
    pumps_done = 0;
    for (unsigned i = 0; i < THREADS; i++)
        start_pump(h, i);
    assert_int_equal(lane_spawn(h->lanes[1]), 0);
    lane_run(h->lanes[0]);
    lane_join(h->lanes[1]);
    assert_true(h->has_stopped);
    assert_false(h->was_forced);
    assert_true(join_metric(h, JOIN_METRIC "hits{") > 0);
    assert_int_equal(join_metric(h, JOIN_METRIC "indexed_spans{"), THREADS * ROUNDS * SPANS);
    assert_int_equal(join_metric(h, JOIN_METRIC "held_bytes{"), 0);
    check_books(h, TRACES, THREADS * ROUNDS * SPANS);
    check_books(h, PROFILES, THREADS * ROUNDS * (SAMPLES + 1));
    assert_int_equal(harness_budget_used(h), 0);
    harness_discard(h);
}

static void lanes_that_are_threads_share_the_join(void **state)
{
    static const char *const yamls[] = {
        JOIN("mark: all"),
        JOIN("mark: observed, span_id: root, window_fallback: true, cap: 3"),
        JOIN("hold: 0s, index: {entries: 1000, bytes: 1MiB}"),
        JOIN("hold_bytes: 8KiB"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof(yamls) / sizeof(yamls[0]); i++) {
        print_message("  %s", yamls[i]);
        run_on_threads(yamls[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_that_are_threads_share_the_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
