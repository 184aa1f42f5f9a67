/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that wait for their spans: how long, how many, and what becomes of them on a stop, a
 * refusal or for want of room. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/join/join_limits.h"
#include "src/join/profiles/profile_links.h"

static void a_profile_waits_for_its_span_and_goes_on_when_that_comes(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    struct test_request *request = join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_true(request->is_resolved); /* it is ours now */
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(exporter->held_count, 0);
    assert_int_equal(join_metric(h, JOIN_METRIC "held_requests{"), 1);
    assert_true(join_metric(h, JOIN_METRIC "held_bytes{") > 0);
    assert_int_equal(harness_totals(h, PROFILES).in_flight, 1);
    harness_advance(h, 3 * S);
    assert_int_equal(exporter->held_count, 0);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    harness_advance(h, 250 * MS);
    assert_int_equal(exporter->held_count, 1);
    assert_true(join_says(exporter, 0, 0, "checkout"));
    assert_true(join_says(exporter, 0, 0, "77")); /* its time is what it was */
    assert_int_equal(join_metric(h, JOIN_METRIC "held_requests{"), 0);
    join_let_go(exporter);
    harness_turn(h);
    assert_int_equal(join_metric(h, JOIN_METRIC "held_bytes{"), 0);
    harness_destroy(h);
}

static void after_its_time_a_profile_goes_on_as_it_came(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("hold: 2s"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    harness_advance(h, 2 * S - MS);
    assert_int_equal(exporter->held_count, 0);
    harness_advance(h, MS);
    assert_int_equal(exporter->held_count, 1);
    assert_false(join_says(exporter, 0, 0, "span_name"));
    assert_int_equal(join_metric(h, JOIN_METRIC "late_spans{"), 0);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "late_spans{"), 1);
    join_let_go(exporter);
    harness_destroy(h);
}

static void nothing_waits_for_spans_that_cannot_come(void **state)
{
    (void)state;
    struct harness *h = join_start(
        "processors: {trace_profile_join: {}, trace_profile_join/2: {}}\n"
        "exporters: {test: {sending_queue: {enabled: false}}}\n"
        "service: {pipelines: {traces: {receivers: [test], processors: [trace_profile_join/2], "
        "exporters: [test]}, profiles: {receivers: [test], processors: [trace_profile_join], "
        "exporters: [test]}}}\n");
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_int_equal(exporter->delivered_items, 1);
    harness_destroy(h);
}

static void what_is_held_goes_on_when_the_service_stops(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    for (int i = 0; i < 40; i++)
        join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_int_equal(exporter->delivered_items, 0);
    exporter->result = RESULT_HOLD;
    harness_stop(h);
    harness_advance(h, 100 * MS);
    assert_int_equal(exporter->held_count, 16);
    assert_false(h->has_stopped);
    join_let_go(exporter);
    harness_advance(h, 100 * MS);
    assert_true(h->has_stopped);
    assert_int_equal(exporter->delivered_items, 40);
    harness_destroy(h);
}

static void beyond_hold_bytes_the_oldest_go_on(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("hold_bytes: 1KiB"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    for (uint64_t i = 1; i <= 20; i++) {
        join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
        assert_int_equal(exporter->delivered_items + join_metric(h, JOIN_METRIC "held_requests{"),
                         i);
        assert_true(join_metric(h, JOIN_METRIC "held_bytes{") <= 1024);
    }
    assert_true(exporter->delivered_items > 10);
    assert_int_equal(join_metric(h, "reason=\"pressure\""), exporter->delivered_items);
    harness_destroy(h);
}

/* Those whose spans never come are older, so that each of the others stands behind all of them. */
static void many_go_on_in_turns_and_are_looked_at_once(void **state)
{
    enum { WAITING = 600, COMPLETE = 200, ID_ROOM = 16 };
    struct sketch_span *spans = mem_zalloc(COMPLETE * sizeof(*spans));
    char(*ids)[ID_ROOM] = mem_zalloc((size_t)(WAITING + COMPLETE) * ID_ROOM);
    (void)state;
    struct harness *h = join_start(JOIN("hold: 60s"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    const struct budget *budget = harness_receiver(h, "test", 0)->budget;
    uint64_t used = budget_used(budget);
    for (size_t i = 0; i < WAITING + COMPLETE; i++) {
        struct sketch_sample sample = join_work;
        snprintf(ids[i], ID_ROOM, "id%06zu", i);
        sample.span_id = ids[i];
        join_offer_samples(h, 0, "service.name=shop", &sample, 1);
        if (i < WAITING)
            continue;
        spans[i - WAITING] = join_checkout;
        spans[i - WAITING].span_id = ids[i];
    }
    uint64_t each = sizeof(struct batch) + 2 * sizeof(struct join_link); /* one is the null link */
    assert_true(budget_used(budget) >= used + (WAITING + COMPLETE) * each);
    for (size_t i = 0; i < COMPLETE; i += 8)
        join_offer_spans(h, 0, join_shop, &spans[i], 8);
    harness_advance(h, 250 * MS);
    assert_int_equal(exporter->delivered_items, JOIN_TURN_REQUESTS_MAX);
    harness_advance(h, MS);
    assert_int_equal(exporter->delivered_items, COMPLETE);
    assert_int_equal(join_metric(h, "reason=\"complete\""), COMPLETE);
    harness_stop(h);
    for (int turn = 0; turn < WAITING / JOIN_TURN_REQUESTS_MAX + 1; turn++)
        harness_advance(h, MS);
    assert_true(h->has_stopped);
    assert_int_equal(exporter->delivered_items, WAITING + COMPLETE);
    mem_free(spans);
    mem_free(ids);
    harness_destroy(h);
}

/* What was found when a profile came stays with it, whatever the index forgets meanwhile. */
static void a_span_that_was_found_is_not_looked_up_again(void **state)
{
    enum { FILLERS = 16, BATCHES = 2000, ID_ROOM = 9 };
    static struct sketch_span fillers[FILLERS];
    static char ids[FILLERS][ID_ROOM];
    (void)state;
    struct harness *h = join_start(JOIN("hold: 60s, index: {bytes: 1MiB}"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    struct sketch_sample samples[] = {join_work, join_work};
    struct sketch_span late = join_checkout;
    samples[1].span_id = late.span_id = "span---2";
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    join_offer_samples(h, 0, "service.name=shop", samples, 2);
    assert_int_equal(join_metric(h, JOIN_METRIC "held_requests{"), 1);
    for (unsigned k = 0; k < BATCHES; k++) {
        for (unsigned i = 0; i < FILLERS; i++) {
            snprintf(ids[i], ID_ROOM, "%08u", k * FILLERS + i);
            fillers[i] = join_checkout;
            fillers[i].span_id = ids[i];
        }
        join_offer_spans(h, 0, join_shop, fillers, FILLERS);
    }
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "held_requests{"), 2); /* it is forgotten */
    join_offer_spans(h, 0, join_shop, &late, 1);
    harness_advance(h, 250 * MS);
    assert_int_equal(exporter->delivered_items, 2);
    assert_int_equal(join_metric(h, JOIN_METRIC "hits{"), 2);
    harness_destroy(h);
}

/* Where they go without a queue, each costs what the exporter does with it, debug for example. */
static void a_turn_ends_when_its_time_is_over(void **state)
{
    enum { WAITING = 60 };
    (void)state;
    struct harness *h = join_start(JOIN("hold: 2s"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    for (size_t i = 0; i < WAITING; i++)
        join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_int_equal(exporter->delivered_items, 0);
    exporter->cost_ns = JOIN_TURN_WORK_NS / 2;
    clock_fake_advance(2 * S);
    for (unsigned turn = 0; turn < WAITING && exporter->delivered_items < WAITING; turn++) {
        clock_fake_advance(MS);
        harness_turn(h);
    }
    assert_int_equal(exporter->delivered_items, WAITING);
    assert_int_equal(exporter->most_in_turn, 2);
    harness_destroy(h);
}

static void nothing_waits_while_memory_is_scarce(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    struct budget *budget = harness_receiver(h, "test", 0)->budget;
    uint64_t most = budget_limit(budget) / 10 * 8;
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    harness_advance(h, 1 * S);
    assert_int_equal(exporter->delivered_items, 0);
    budget_take(budget, most);
    harness_advance(h, 250 * MS);
    assert_int_equal(exporter->delivered_items, 1);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_int_equal(exporter->delivered_items, 2);
    assert_int_equal(join_metric(h, "reason=\"pressure\""), 1);
    budget_return(budget, most);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "held_requests{"), 1);
    harness_destroy(h);
}

static void what_the_next_stage_refuses_for_now_is_offered_again(void **state)
{
    (void)state;
    struct harness *h =
        join_start("processors: {trace_profile_join: {hold: 1s, hold_bytes: 4KiB}}\n"
                   "exporters: {test: {sending_queue: {queue_size: 1, "
                   "num_consumers: 1}}}\n" JOIN_BOTH_PIPELINES);
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    unsigned accepted = 0;
    for (int i = 0; i < 5; i++)
        accepted += join_offer_samples(h, 0, "service.name=shop", &join_work, 1)->outcome.verdict ==
                    ACCEPTED;
    assert_int_equal(accepted, 5);
    harness_advance(h, 5 * S);
    assert_int_equal(exporter->held_count, 1);
    assert_true(join_metric(h, JOIN_METRIC "held_bytes{") > 0); /* three of them */
    join_let_go(exporter);
    harness_advance(h, 1 * S);
    assert_int_equal(exporter->delivered_items, 5);
    assert_int_equal(join_metric(h, JOIN_METRIC "held_bytes{"), 0);
    harness_destroy(h);
}

static void what_the_next_stage_will_never_take_is_in_the_ledger(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("hold: 1s"));
    join_profiles_sink(h, RESULT_PERMANENT);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    harness_advance(h, 2 * S);
    struct harness_totals totals = harness_totals(h, PROFILES);
    assert_int_equal(totals.dropped, 1);
    assert_int_equal(totals.in_flight, 0);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_profile_waits_for_its_span_and_goes_on_when_that_comes),
        cmocka_unit_test(after_its_time_a_profile_goes_on_as_it_came),
        cmocka_unit_test(nothing_waits_for_spans_that_cannot_come),
        cmocka_unit_test(what_is_held_goes_on_when_the_service_stops),
        cmocka_unit_test(beyond_hold_bytes_the_oldest_go_on),
        cmocka_unit_test(many_go_on_in_turns_and_are_looked_at_once),
        cmocka_unit_test(a_span_that_was_found_is_not_looked_up_again),
        cmocka_unit_test(a_turn_ends_when_its_time_is_over),
        cmocka_unit_test(nothing_waits_while_memory_is_scarce),
        cmocka_unit_test(what_the_next_stage_refuses_for_now_is_offered_again),
        cmocka_unit_test(what_the_next_stage_will_never_take_is_in_the_ledger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
