/* SPDX-License-Identifier: Apache-2.0 */
/* window_fallback in pipelines: samples that name no span get the only one that they can have been
 * taken in. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/clock.h"

#define ON "window_fallback: true, hold: 2s"

static const char *const thread_a[] = {"thread.name", "worker-1", NULL};

static struct sketch_span span_on(const char *id, const char *name, const char *const *thread)
{
    struct sketch_span span = {
        .trace_id = TRACE_A, .span_id = id, .name = name, .start_ns = 100 * S, .end_ns = 110 * S};
    for (unsigned i = 0; thread != NULL && i < 2; i++)
        span.attributes[i] = thread[i];
    return span;
}

static const struct sketch_sample timed = {.stack = "work;main",
                                           .values_count = 1,
                                           .values = {5},
                                           .timestamps_count = 2,
                                           .time_ns = 105 * S};

/* Sends the spans, then the sample; what holds it is the sink's. */
static struct test_exporter *join_by_time(struct harness *h, const struct sketch_span *spans,
                                          size_t count, const struct sketch_sample *sample)
{
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, join_shop, spans, count);
    join_offer_samples(h, 0, "container.id=c1", sample, 1);
    harness_advance(h, 2 * S);
    assert_int_equal(exporter->held_count, 1);
    return exporter;
}

static void a_sample_gets_the_only_span_at_its_time(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN(ON));
    const struct sketch_span span = span_on("span---1", "checkout", NULL);
    struct test_exporter *exporter = join_by_time(h, &span, 1, &timed);
    assert_true(join_says(exporter, 0, 0, "checkout"));
    assert_true(join_says(exporter, 0, 0, "span---1"));
    assert_true(join_says(exporter, 0, 0, TRACE_A));
    assert_int_equal(join_metric(h, JOIN_METRIC "window_samples{"), 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "enriched_samples{"), 1);
    join_let_go(exporter);
    harness_destroy(h);
}

static void it_waits_for_spans_that_would_make_the_choice_a_guess(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN(ON));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    const struct sketch_span first = span_on("span---1", "alpha-op", NULL);
    const struct sketch_span second = span_on("span---2", "beta-op", NULL);
    join_offer_spans(h, 0, join_shop, &first, 1);
    join_offer_samples(h, 0, "container.id=c1", &timed, 1);
    harness_advance(h, 1 * S);
    assert_int_equal(exporter->held_count, 0);
    join_offer_spans(h, 0, join_shop, &second, 1);
    harness_advance(h, 1 * S);
    assert_int_equal(exporter->held_count, 1);
    assert_false(join_says(exporter, 0, 0, "alpha-op"));
    assert_false(join_says(exporter, 0, 0, "beta-op"));
    assert_int_equal(join_metric(h, JOIN_METRIC "window_samples{"), 0);
    join_let_go(exporter);
    harness_destroy(h);
}

static void the_thread_decides_where_both_sides_name_it(void **state)
{
    static const char *const thread_b[] = {"thread.name", "worker-2", NULL};
    (void)state;
    struct harness *h = join_start(JOIN(ON));
    const struct sketch_span spans[] = {span_on("span---1", "alpha-op", thread_a),
                                        span_on("span---2", "beta-op", thread_b)};
    struct sketch_sample sample = timed;
    sample.attributes[0] = "thread.name=worker-2";
    struct test_exporter *exporter = join_by_time(h, spans, 2, &sample);
    assert_true(join_says(exporter, 0, 0, "beta-op"));
    join_let_go(exporter);
    harness_destroy(h);
}

static void what_is_not_sure_stays_as_it_came(void **state)
{
    static const struct {
        const char *yaml;
        const char *container;
        struct sketch_sample sample;
    } rows[] = {
        {JOIN("hold: 2s"), "container.id=c1", {.timestamps_count = 1, .time_ns = 105 * S}},
        {JOIN(ON), "container.id=c2", {.timestamps_count = 1, .time_ns = 105 * S}},
        {JOIN(ON), "service.name=shop", {.timestamps_count = 1, .time_ns = 105 * S}},
        {JOIN(ON), "container.id=c1", {.timestamps_count = 0}},
        {JOIN(ON), "container.id=c1", {.timestamps_count = 1, .time_ns = 120 * S}},
        {JOIN(ON),
         "container.id=c1",
         {.timestamps_count = 1, .time_ns = 105 * S, .attributes = {"thread.name=other"}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct harness *h = join_start(rows[i].yaml);
        struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
        const struct sketch_span span = span_on("span---1", "checkout", thread_a);
        struct sketch_sample sample = rows[i].sample;
        sample.stack = "work;main";
        sample.values_count = 1;
        sample.values[0] = 7;
        join_offer_spans(h, 0, join_shop, &span, 1);
        join_offer_samples(h, 0, rows[i].container, &sample, 1);
        harness_advance(h, 2 * S);
        assert_int_equal(exporter->held_count, 1);
        assert_false(join_says(exporter, 0, 0, "checkout"));
        assert_int_equal(join_metric(h, JOIN_METRIC "window_samples{"), 0);
        join_let_go(exporter);
        harness_destroy(h);
    }
}

/* Here some samples name a span and some do not. */
static void samples_that_name_a_span_keep_it(void **state)
{
    static const struct sketch_sample samples[] = {
        {.stack = "a;main",
         .values_count = 1,
         .values = {1},
         .timestamps_count = 1,
         .time_ns = 105 * S},
        {.stack = "b;main",
         .values_count = 1,
         .values = {2},
         .timestamps_count = 1,
         .time_ns = 105 * S,
         .trace_id = TRACE_B,
         .span_id = "span---9"},
        {.stack = "c;main",
         .values_count = 1,
         .values = {3},
         .timestamps_count = 1,
         .time_ns = 105 * S,
         .attributes = {"span_id=7370616e2d2d2d31"}},
        {.stack = "d;main",
         .values_count = 1,
         .values = {4},
         .timestamps_count = 1,
         .time_ns = 106 * S},
    };
    (void)state;
    struct harness *h = join_start(JOIN(ON));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    const struct sketch_span span = span_on("span---1", "checkout", NULL);
    join_offer_spans(h, 0, join_shop, &span, 1);
    join_offer_samples(h, 0, "container.id=c1", samples, 4);
    harness_advance(h, 2 * S);
    assert_int_equal(exporter->held_count, 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "window_samples{"), 2);
    assert_int_equal(join_metric(h, JOIN_METRIC "enriched_samples{"), 3);
    join_let_go(exporter);
    harness_destroy(h);
}

/* At times of today, which are far beyond those of the monotonic clock. */
static void an_evicted_span_may_have_been_the_one(void **state)
{
    enum { FILLERS = 50, BATCHES = 30 };
    static struct sketch_span fillers[FILLERS];
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct harness *h = join_start(JOIN(ON ", index: {entries: 1000}"));
        const uint64_t begin_ns = clock_wall_ns() - 100 * S;
        struct sketch_span first = span_on("span---1", "alpha-op", NULL);
        struct sketch_span second = span_on("span---2", "beta-op", NULL);
        struct sketch_sample sample = timed;
        first.start_ns = second.start_ns = begin_ns;
        first.end_ns = second.end_ns = begin_ns + 10 * S;
        sample.time_ns = begin_ns + 5 * S;
        for (unsigned k = 0; k < FILLERS; k++) {
            fillers[k] = span_on("span---3", "filler", NULL);
            fillers[k].start_ns = begin_ns - 50 * S;
            fillers[k].end_ns = begin_ns - 49 * S;
        }
        if (i == 1)
            join_offer_spans(h, 0, join_shop, &first, 1);
        for (unsigned k = 0; k < BATCHES; k++)
            join_offer_spans(h, 0, join_shop, fillers, FILLERS);
        struct test_exporter *exporter = join_by_time(h, &second, 1, &sample);
        assert_int_equal(join_says(exporter, 0, 0, "beta-op"), i == 0);
        assert_int_equal(join_metric(h, JOIN_METRIC "window_samples{"), i == 0);
        join_let_go(exporter);
        harness_destroy(h);
    }
}

static void its_memory_is_set_aside_too(void **state)
{
    uint64_t limits[2];
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct harness *h = join_start(i == 0 ? JOIN("index: {entries: 100000}")
                                              : JOIN("index: {entries: 100000}, " ON));
        limits[i] = budget_limit(harness_receiver(h, "test", 0)->budget);
        harness_destroy(h);
    }
    assert_true(limits[0] - limits[1] > 80 * 100000);
    assert_true(limits[0] - limits[1] < 95 * 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_gets_the_only_span_at_its_time),
        cmocka_unit_test(it_waits_for_spans_that_would_make_the_choice_a_guess),
        cmocka_unit_test(the_thread_decides_where_both_sides_name_it),
        cmocka_unit_test(what_is_not_sure_stays_as_it_came),
        cmocka_unit_test(samples_that_name_a_span_keep_it),
        cmocka_unit_test(an_evicted_span_may_have_been_the_one),
        cmocka_unit_test(its_memory_is_set_aside_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
