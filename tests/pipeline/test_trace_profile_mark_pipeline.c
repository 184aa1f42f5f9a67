/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that lead to profiles: which of them are marked, and of which services they are heeded. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "src/join/join_limits.h"

static unsigned count_marks(const struct test_exporter *exporter)
{
    return join_count(exporter, "pyroscope.profile.id");
}

static void spans_are_marked(void **state)
{
    static const struct {
        const char *yaml;
        unsigned marks;
    } rows[] = {
        {JOIN("mark: off"), 1},
        {JOIN(""), 3},
        {JOIN("mark: all"), 4},
        {JOIN("mark: observed"), 2},
    };
    static const struct sketch_span spans[] = {
        {.trace_id = TRACE_A, .span_id = "span---1", .name = "root"},
        {.trace_id = TRACE_A,
         .span_id = "span---2",
         .parent_id = "span---1",
         .name = "child",
         .kind = KIND_SERVER,
         .flags = 0x100},
        {.trace_id = TRACE_A,
         .span_id = "span---3",
         .parent_id = "span---9",
         .name = "remote",
         .flags = 0x300},
        {.trace_id = TRACE_B,
         .span_id = "span---4",
         .name = "marked",
         .attributes = {"pyroscope.profile.id", "0123456789abcdef"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct harness *h = join_start(rows[i].yaml);
        struct test_exporter *exporter = harness_exporter_on(h, "test", 0, TRACES);
        exporter->answer = ANSWER_HOLD;
        join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
        harness_advance(h, 8 * S);
        join_offer_spans(h, 0, join_shop, spans, 4);
        assert_int_equal(exporter->held_count, 1);
        assert_int_equal(count_marks(exporter), rows[i].marks);
        assert_int_equal(join_metric(h, JOIN_METRIC "marked_spans{"), rows[i].marks - 1);
        join_let_go(exporter);
        harness_destroy(h);
    }
}

/* Spans of the resource go by for so long that it is not new any more. */
static void grow_old(struct harness *h, const char *const *resource, const struct sketch_span *span)
{
    for (uint64_t at_ns = 0; at_ns <= JOIN_WARM_UP_NS; at_ns += 40 * S) {
        join_offer_spans(h, 0, resource, span, 1);
        harness_advance(h, 40 * S);
    }
}

static void a_new_service_is_heeded_until_its_first_profile_should_have_come(void **state)
{
    static const char *const late[] = {"service.name", "late", NULL};
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, TRACES);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    harness_advance(h, 2 * JOIN_WARM_UP_NS);
    exporter->answer = ANSWER_HOLD;
    join_offer_spans(h, 0, late, &join_checkout, 1);
    assert_int_equal(count_marks(exporter), 1);
    join_let_go(exporter);
    grow_old(h, late, &join_checkout);
    assert_int_equal(join_metric(h, JOIN_METRIC "skipped_spans{"), 0);
    exporter->answer = ANSWER_HOLD;
    join_offer_spans(h, 0, late, &join_checkout, 1);
    assert_int_equal(count_marks(exporter), 0);
    assert_int_equal(join_metric(h, JOIN_METRIC "skipped_spans{"), 1);
    join_let_go(exporter);
    harness_destroy(h);
}

/* Profilers and SDKs are named apart from each other. */
static void spans_are_marked_that_profiles_of_another_name_have_named(void **state)
{
    static const char *const resources[][3] = {{"service.name", "shop"}, {"service.name", "list"}};
    (void)state;
    struct harness *h = join_start(JOIN(""));
    join_offer_spans(h, 0, resources[0], &join_checkout, 1);
    join_offer_samples(h, 0, "service.name=shop-profiler", &join_work, 1);
    grow_old(h, resources[1], &join_checkout);
    for (unsigned i = 0; i < 2; i++) {
        struct test_exporter *exporter = harness_exporter_on(h, "test", 0, TRACES);
        exporter->answer = ANSWER_HOLD;
        join_offer_spans(h, 0, resources[i], &join_checkout, 1);
        assert_int_equal(count_marks(exporter), i == 0);
        join_let_go(exporter);
    }
    harness_destroy(h);
}

static void a_batch_job_gets_its_trace_even_when_others_are_long_known(void **state)
{
    static const char *const job[] = {"service.name", "job", NULL};
    static const struct sketch_span rows = {.trace_id = TRACE_B,
                                            .span_id = "rows---1",
                                            .parent_id = "nightly-",
                                            .name = "rows",
                                            .kind = KIND_INTERNAL,
                                            .start_ns = 10,
                                            .end_ns = 20};
    static const struct sketch_sample step = {
        .stack = "step;main", .values_count = 1, .values = {5}};
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_HOLD);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    grow_old(h, job, &rows);
    join_offer_spans(h, 0, job, &rows, 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "skipped_spans{"), 1);
    join_offer_samples(h, 0, "service.name=job", &step, 1);
    assert_int_equal(exporter->held_count, 2);
    assert_false(join_says(exporter, 0, 0, "trace_id"));
    assert_true(join_says(exporter, 1, 0, "trace_id"));
    assert_true(join_says(exporter, 1, 0, "42424242424242424242424242424242"));
    assert_true(join_says(exporter, 1, 0, "root_span_id"));
    assert_true(join_says(exporter, 1, 0, "6e696768746c792d"));
    assert_int_equal(join_metric(h, JOIN_METRIC "labelled_resources{"), 1);
    join_let_go(exporter);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_marked),
        cmocka_unit_test(a_new_service_is_heeded_until_its_first_profile_should_have_come),
        cmocka_unit_test(spans_are_marked_that_profiles_of_another_name_have_named),
        cmocka_unit_test(a_batch_job_gets_its_trace_even_when_others_are_long_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
