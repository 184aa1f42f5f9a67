/* SPDX-License-Identifier: Apache-2.0 */
/* keep of trace_profile_join, on the fake clock: which samples stay, what the ledger shows of the
 * others, and that rules may change while requests wait. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/join/index/join_store.h"
#include "src/join/join_limits.h"

enum { STATUS_ERROR = 2, FIRST = 1, SECOND = 2, THIRD = 4, FOURTH = 8 };

#define SPAN(id, duration, ...)                                                                    \
    {                                                                                              \
        .trace_id = TRACE_A, .span_id = id, .name = id, .start_ns = S, .end_ns = S + (duration),   \
        __VA_ARGS__                                                                                \
    }

/* Two requests: one is slow in all, though the span in it is not; one has failed. */
static const struct sketch_span spans[] = {
    SPAN("slow----", 2 * S, .kind = KIND_SERVER),
    SPAN("in-slow-", 10 * MS, .kind = KIND_INTERNAL, .parent_id = "slow----"),
    SPAN("failed--", 10 * MS, .kind = KIND_SERVER, .status = STATUS_ERROR),
};
enum { SPANS = sizeof(spans) / sizeof(spans[0]) };

#define SAMPLE(function, id)                                                                       \
    {                                                                                              \
        .stack = function ";main", .values_count = 1, .values = {5}, .trace_id = TRACE_A,          \
        .span_id = id                                                                              \
    }

static const struct sketch_sample samples[] = {
    SAMPLE("waits", "slow----"),
    SAMPLE("works", "in-slow-"),
    SAMPLE("fails", "failed--"),
    {.stack = "idles;main", .values_count = 1, .values = {5}},
};
enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static const char *const functions[SAMPLES] = {"waits", "works", "fails", "idles"};

static void check_kept(const struct test_exporter *exporter, size_t held, unsigned kept)
{
    size_t index = 0;
    for (size_t i = 0; i < SAMPLES; i++)
        if ((kept >> i & 1) != 0)
            assert_true(join_says(exporter, held, index++, functions[i]));
    assert_int_equal(exporter->held[held].batch->items, index);
}

static void check_ledger(const struct harness *h, uint64_t received, uint64_t unwanted)
{
    struct harness_totals totals = harness_totals(h, PROFILES);
    assert_int_equal(totals.received, received);
    assert_int_equal(totals.by_reason[LOSS_UNWANTED], unwanted);
    assert_int_equal(totals.received,
                     totals.delivered + totals.rejected + totals.dropped + totals.in_flight);
    assert_int_equal(join_metric(h, JOIN_METRIC "unwanted_samples{"), unwanted);
}

static void rules_say_which_samples_stay(void **state)
{
    static const struct {
        const char *keys;
        unsigned kept;
    } rows[] = {
        {"keep: []", FIRST | SECOND | THIRD | FOURTH},
        {"keep: [], keep_unlinked: false", FIRST | SECOND | THIRD | FOURTH},
        {"keep: [slow: 1s]", FIRST | SECOND | FOURTH},
        {"keep: [slow: 1s], keep_unlinked: false", FIRST | SECOND},
        {"keep: [slow: 2s], keep_unlinked: false", FIRST | SECOND},
        {"keep: [slow: 2001ms, error], keep_unlinked: false", THIRD},
        {"keep: [error], keep_unlinked: false", THIRD},
        {"keep: [slow: 1s, error]", FIRST | SECOND | THIRD | FOURTH},
        {"keep: [sampled], keep_unlinked: false", FIRST | SECOND | THIRD},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct harness *h = join_start_with(rows[i].keys);
        struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
        join_offer_spans(h, 0, join_shop, spans, SPANS);
        struct test_request *request =
            join_offer_samples(h, 0, "service.name=shop", samples, SAMPLES);
        assert_int_equal(exporter->held_count, 1);
        check_kept(exporter, 0, rows[i].kept);
        join_let_go(exporter);
        assert_int_equal(request->outcome.verdict, ACCEPTED);
        check_ledger(h, SAMPLES, SAMPLES - (uint64_t)__builtin_popcount(rows[i].kept));
        harness_destroy(h);
    }
}

static void a_request_of_which_nothing_stays_ends_there(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("keep: [slow: 1h], keep_unlinked: false"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, join_shop, spans, SPANS);
    struct test_request *request = join_offer_samples(h, 0, "service.name=shop", samples, SAMPLES);
    assert_int_equal(exporter->held_count, 0);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    check_ledger(h, SAMPLES, SAMPLES);
    harness_destroy(h);
}

static void what_is_refused_is_not_in_the_ledger_yet(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("keep: [error], keep_unlinked: false"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_BUSY);
    join_offer_spans(h, 0, join_shop, spans, SPANS);
    struct test_request *request = join_offer_samples(h, 0, "service.name=shop", samples, SAMPLES);
    assert_true(request->is_resolved);
    assert_int_not_equal(request->outcome.verdict, ACCEPTED);
    struct harness_totals totals = harness_totals(h, PROFILES);
    assert_int_equal(totals.received, totals.rejected);
    join_let_go(exporter);
    harness_destroy(h);
}

static void a_sample_waits_for_the_request_that_may_yet_be_slow(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("keep: [slow: 1s], keep_unlinked: false"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, join_shop, &spans[1], 1);
    join_offer_samples(h, 0, "service.name=shop", &samples[1], 1);
    assert_int_equal(exporter->held_count, 0);
    join_offer_spans(h, 0, join_shop, &spans[0], 1);
    harness_advance(h, S);
    assert_int_equal(exporter->held_count, 1);
    check_kept(exporter, 0, SECOND);
    join_let_go(exporter);
    check_ledger(h, 1, 0);
    harness_destroy(h);
}

static void a_span_that_never_comes_is_no_link(void **state)
{
    static const char *const rows[] = {"true", "false"};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[1024];
        snprintf(
            yaml, sizeof(yaml),
            "processors: {trace_profile_join: {keep: [error], keep_unlinked: %s}}\n" JOIN_PIPELINES,
            rows[i]);
        struct harness *h = join_start(yaml);
        struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
        join_offer_samples(h, 0, "service.name=shop", samples, 1);
        harness_advance(h, 8 * S);
        assert_int_equal(exporter->held_count, i == 0 ? 1 : 0);
        join_let_go(exporter);
        check_ledger(h, 1, i);
        harness_destroy(h);
    }
}

static void rules_change_while_requests_wait(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("hold: 10s"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    struct join_store *store = harness_shared(h, "trace_profile_join");
    const struct keep_rules errors = {.keeps_errors = true};
    join_offer_samples(h, 0, "service.name=shop", samples, SAMPLES);
    assert_int_equal(exporter->held_count, 0);
    keep_switch_set(&store->keep, &errors);
    join_offer_spans(h, 0, join_shop, spans, SPANS);
    harness_advance(h, S);
    assert_int_equal(exporter->held_count, 1);
    check_kept(exporter, 0, THIRD);
    join_let_go(exporter);
    check_ledger(h, SAMPLES, SAMPLES - 1);
    harness_destroy(h);
}

static void a_stop_lets_go_what_is_wanted_and_counts_the_rest(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("keep: [error], hold: 60s"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    join_offer_spans(h, 0, join_shop, &spans[1], 1);
    join_offer_samples(h, 0, "service.name=shop", samples, SAMPLES);
    assert_int_equal(exporter->attempts_count, 0);
    harness_stop(h);
    harness_turn(h);
    assert_int_equal(exporter->attempts_count, 1);
    assert_int_equal(exporter->attempts[0].items, 3); /* one has a span, which did not fail */
    check_ledger(h, SAMPLES, 1);
    harness_destroy(h);
}

/* More than one turn releases, and none of it goes on: no later stage calls back. */
static void a_stop_ends_though_nothing_goes_on(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("keep: [error], keep_unlinked: false, hold: 60s"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    for (int i = 0; i < 2 * JOIN_TURN_REQUESTS_MAX + 1; i++)
        join_offer_samples(h, 0, "service.name=shop", samples, 1);
    harness_stop(h);
    for (int i = 0; i < 10 && !h->has_stopped; i++)
        harness_advance(h, MS);
    assert_true(h->has_stopped);
    assert_int_equal(exporter->attempts_count, 0);
    check_ledger(h, 2 * JOIN_TURN_REQUESTS_MAX + 1, 2 * JOIN_TURN_REQUESTS_MAX + 1);
    harness_destroy(h);
}

/* Whatever is free: the entries that nothing refers to any longer stay rather than take more. */
static void what_stays_is_written_within_the_budget(void **state)
{
    enum { MANY = 40000, STACK_BYTES = 24, LARGE_BYTES = 10 << 20, FREE_STEPS = 12 };
    char(*stacks)[STACK_BYTES] = mem_alloc(MANY * sizeof(stacks[0]));
    struct sketch_sample *many = mem_alloc(MANY * sizeof(many[0]));
    uint64_t shrunk = 0;
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        many[i] = samples[i % 2 == 0 ? 2 : 3];
        snprintf(stacks[i], STACK_BYTES, "function-%zu;main", i);
        many[i].stack = stacks[i];
    }
    char *const large = mem_alloc(LARGE_BYTES + sizeof(";main"));
    memset(large, 'x', LARGE_BYTES);
    memcpy(large + LARGE_BYTES, ";main", sizeof(";main"));
    many[0].stack = large;
    for (unsigned free_mib = 0; free_mib < FREE_STEPS; free_mib++) {
        struct harness *h = join_start(
            "processors: {trace_profile_join: {keep: [error], keep_unlinked: false, index: {bytes: "
            "1MiB}}}\n"
            "exporters: {test: {sending_queue: {enabled: false}}}\n"
            "service: {budget_mib: 64, pipelines: {traces: {receivers: [test], processors: "
            "[trace_profile_join], exporters: [test]}, profiles: {receivers: [test], processors: "
            "[trace_profile_join], exporters: [test]}}}\n");
        struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
        struct budget *budget = harness_receiver(h, "test", 0)->budget;
        const uint64_t limit = budget_limit(budget);
        join_offer_spans(h, 0, join_shop, spans, SPANS);
        uint64_t taken = limit - budget_used(budget) - 4 * free_mib * MIB;
        budget_take(budget, taken);
        join_offer_samples(h, 0, "service.name=shop", many, MANY);
        assert_in_range(harness_budget_peak(h), 0, limit + limit / BUDGET_MARGIN_PART);
        if (exporter->held_count > 0 && exporter->held[0].batch->items == MANY / 2)
            shrunk++;
        budget_return(budget, taken);
        join_let_go(exporter);
        harness_destroy(h);
    }
    assert_in_range(shrunk, 1, FREE_STEPS);
    mem_free(large);
    mem_free(stacks);
    mem_free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_say_which_samples_stay),
        cmocka_unit_test(a_request_of_which_nothing_stays_ends_there),
        cmocka_unit_test(what_is_refused_is_not_in_the_ledger_yet),
        cmocka_unit_test(a_sample_waits_for_the_request_that_may_yet_be_slow),
        cmocka_unit_test(a_span_that_never_comes_is_no_link),
        cmocka_unit_test(rules_change_while_requests_wait),
        cmocka_unit_test(a_stop_lets_go_what_is_wanted_and_counts_the_rest),
        cmocka_unit_test(a_stop_ends_though_nothing_goes_on),
        cmocka_unit_test(what_stays_is_written_within_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
