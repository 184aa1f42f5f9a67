/* SPDX-License-Identifier: Apache-2.0 */
/* The join on lanes that are threads, where the thread sanitizer looks on: each lane sends spans,
 * and profiles that name those of all lanes, or none; the index, the sets, what is known of
 * processes and what is held are shared. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/mem.h"
#include "src/core/batch.h"
#include "tests/support/pumps.h"
#include "tests/support/telemetry_bytes.h"

enum { ROUNDS = 200, BURST = 10, SPANS = 5, SAMPLES = 4, SERVICES = 8 };
/* Of a round. */
enum { LINKED, UNLINKED, OF_SPANS, REQUESTS };

/* The first span of a lane's round. */
static uint64_t first_span(unsigned lane, size_t round)
{
    return 1 + ((uint64_t)lane * ROUNDS + round) * SPANS;
}

static struct batch *batch_of(struct component *receiver, const struct sketch *sketch)
{
    struct slice bytes = sketch_request(sketch);
    struct batch *batch =
        plain_request(receiver->budget, PROFILES, bytes, sketch->profiles[0].samples_count);
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
        uint64_t span = first_span(i % PUMPS, round) + i;
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

static void offer_round(struct component *receiver, unsigned lane, size_t round,
                        struct test_request *requests)
{
    struct batch *batches[REQUESTS] = {
        [LINKED] = linked_profiles(receiver, round),
        [UNLINKED] = unlinked_profiles(receiver, round),
        [OF_SPANS] = numbered_request(receiver->budget, TRACES, first_span(lane, round), SPANS),
    };
    for (unsigned i = 0; i < REQUESTS; i++) {
        assert_non_null(batches[i]);
        test_receiver_offer(receiver, batches[i], &requests[i]);
        batch_unref(batches[i]);
    }
}

static void check_ledger(const struct harness *h, enum signal_kind signal, uint64_t items)
{
    struct harness_totals totals = harness_totals(h, signal);
    assert_int_equal(totals.received, items);
    assert_int_equal(totals.delivered, items);
}

static void run_on_threads(const char *yaml)
{
    static const struct pump_plan plan = {
        .rounds = ROUNDS, .burst = BURST, .round_requests = REQUESTS, .offer = offer_round};
    struct harness *h = join_start_on(yaml, PUMPS);
    pumps_run(h, &plan);
    assert_true(join_metric(h, JOIN_METRIC "hits{") > 0);
    assert_int_equal(join_metric(h, JOIN_METRIC "indexed_spans{"), PUMPS * ROUNDS * SPANS);
    assert_int_equal(join_metric(h, JOIN_METRIC "held_bytes{"), 0);
    check_ledger(h, TRACES, PUMPS * ROUNDS * SPANS);
    check_ledger(h, PROFILES, PUMPS * ROUNDS * (SAMPLES + 1));
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
