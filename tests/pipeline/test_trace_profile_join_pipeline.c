/* SPDX-License-Identifier: Apache-2.0 */
/* trace_profile_join in pipelines, on the fake clock: profiles wait for their spans and learn what
 * they say; spans are marked; nothing is lost on a stop, a refusal or for want of room. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/batch.h"
#include "src/budget.h"
#include "src/buffer.h"
#include "src/join/join_limits.h"
#include "src/mem.h"
#include "src/otlp/wire.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/profile_oracle.h"
#include "tests/support/profile_sketch.h"

static void a_sample_learns_its_span_at_once_when_the_span_is_there(void **state)
{
    (void)state;
    struct harness *h =
        join_start(JOIN("attributes: [span_name, http.route, status_class, duration_bucket, "
                        "span.http.response.status_code, resource.container.id]"));
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_HOLD);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    struct test_request *request = join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_int_equal(exporter->held_count, 1);
    assert_false(request->is_answered);
    assert_int_equal(join_metric(h, JOIN_METRIC "hits{"), 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "enriched_samples{"), 1);
    assert_true(join_says(exporter, 0, 0, "span_name"));
    assert_true(join_says(exporter, 0, 0, "checkout"));
    assert_true(join_says(exporter, 0, 0, "/cart/{id}"));
    assert_true(join_says(exporter, 0, 0, "5xx"));
    assert_true(join_says(exporter, 0, 0, "<1s"));
    assert_true(join_says(exporter, 0, 0, "503"));
    assert_true(join_says(exporter, 0, 0, "c1"));
    join_let_go(exporter);
    harness_destroy(h);
}

static void a_profile_waits_for_its_span_and_goes_on_when_that_comes(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_HOLD);
    struct test_request *request = join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_true(request->is_answered); /* it is ours now */
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(exporter->held_count, 0);
    assert_int_equal(join_metric(h, JOIN_METRIC "held_requests{"), 1);
    assert_true(join_metric(h, JOIN_METRIC "held_bytes{") > 0);
    assert_int_equal(harness_books(h, PROFILES).in_flight, 1);
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
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_HOLD);
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
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_OK);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_int_equal(exporter->delivered_items, 1);
    harness_destroy(h);
}

static void what_is_held_goes_on_when_the_service_stops(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_OK);
    for (int i = 0; i < 40; i++)
        join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_int_equal(exporter->delivered_items, 0);
    exporter->answer = ANSWER_HOLD;
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
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_OK);
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
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_OK);
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
    assert_true(budget_used(budget) >= used + (WAITING + COMPLETE) * sizeof(struct batch));
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

static void nothing_waits_while_memory_is_scarce(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_OK);
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

static uint64_t limit_with(const char *yaml)
{
    struct harness *h = join_start(yaml);
    uint64_t limit = budget_limit(harness_receiver(h, "test", 0)->budget);
    harness_destroy(h);
    return limit;
}

static void the_index_is_set_aside_from_the_budget(void **state)
{
    (void)state;
    assert_int_equal(limit_with(JOIN("index: {bytes: 8MiB}")) -
                         limit_with(JOIN("index: {bytes: 24MiB}")),
                     16 << 20);
}

/* It takes half of a small budget, unless that is too little for each lane. */
static void an_index_that_does_not_fit_is_smaller(void **state)
{
    static const char small[] = "processors: {trace_profile_join: {index: {bytes: 8MiB}}}\n"
                                "exporters: {test: }\n"
                                "service: {budget_mib: 1, pipelines: {profiles: {receivers: "
                                "[test], processors: [trace_profile_join], exporters: [test]}}}\n";
    (void)state;
    struct harness *h = harness_try_build(small, 1);
    assert_non_null(h);
    assert_int_equal(budget_limit(harness_receiver(h, "test", 0)->budget), 512 << 10);
    harness_destroy(h);
    assert_null(harness_try_build(small, 4));
}

static void what_the_next_stage_refuses_for_now_is_offered_again(void **state)
{
    (void)state;
    struct harness *h =
        join_start("processors: {trace_profile_join: {hold: 1s, hold_bytes: 4KiB}}\n"
                   "exporters: {test: {sending_queue: {queue_size: 1, "
                   "num_consumers: 1}}}\n" JOIN_BOTH_PIPELINES);
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_HOLD);
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

static void what_the_next_stage_will_never_take_is_in_the_books(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("hold: 1s"));
    join_profiles_sink(h, ANSWER_PERMANENT);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    harness_advance(h, 2 * S);
    struct harness_books books = harness_books(h, PROFILES);
    assert_int_equal(books.dropped, 1);
    assert_int_equal(books.in_flight, 0);
    harness_destroy(h);
}

static void labels_of_profilers_become_links(void **state)
{
    static const struct sketch_sample samples[] = {
        {.stack = "a;main",
         .values_count = 1,
         .values = {1},
         .attributes = {"profile_id=7370616e2d2d2d31", "thread=t1"}},
        {.stack = "b;main",
         .values_count = 1,
         .values = {2},
         .attributes = {"trace_id=41414141414141414141414141414141", "span_id=7370616e2d2d2d31",
                        "span_name=mine"}},
        {.stack = "c;main",
         .values_count = 1,
         .values = {3},
         .attributes = {"trace_id=4242424242424242424242424242424242", "span_id=00"}},
    };
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_HOLD);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    join_offer_samples(h, 0, "service.name=shop", samples, 3);
    assert_int_equal(exporter->held_count, 1);
    assert_true(join_says(exporter, 0, 0, "checkout"));
    assert_true(join_says(exporter, 0, 0, "t1"));
    assert_false(join_says(exporter, 0, 0, "profile_id"));
    assert_true(join_says(exporter, 0, 1, "mine"));
    assert_false(join_says(exporter, 0, 1, "checkout"));
    assert_false(join_says(exporter, 0, 1, "trace_id"));
    assert_true(join_says(exporter, 0, 2, "trace_id"));
    assert_false(join_says(exporter, 0, 2, "checkout"));
    join_let_go(exporter);
    harness_destroy(h);
}

static void two_spans_with_one_id_are_not_guessed_at(void **state)
{
    static const struct sketch_span spans[] = {
        {.trace_id = TRACE_A, .span_id = "span---1", .name = "one"},
        {.trace_id = TRACE_B, .span_id = "span---1", .name = "other"},
    };
    static const struct sketch_sample sample = {.stack = "a;main",
                                                .values_count = 1,
                                                .values = {1},
                                                .attributes = {"profile_id=7370616e2d2d2d31"}};
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_HOLD);
    join_offer_spans(h, 0, join_shop, spans, 2);
    join_offer_samples(h, 0, "service.name=shop", &sample, 1);
    assert_int_equal(exporter->held_count, 1); /* waiting would not help */
    assert_true(join_says(exporter, 0, 0, "profile_id"));
    assert_false(join_says(exporter, 0, 0, "span_name"));
    assert_int_equal(join_metric(h, "reason=\"ambiguous\""), 1);
    join_let_go(exporter);
    harness_destroy(h);
}

static void a_sample_may_get_the_id_of_the_local_root(void **state)
{
    static const struct sketch_span spans[] = {
        {.trace_id = TRACE_A,
         .span_id = "span---1",
         .parent_id = "span---2",
         .name = "query",
         .kind = KIND_INTERNAL,
         .flags = 0x100},
        {.trace_id = TRACE_A,
         .span_id = "span---2",
         .parent_id = "span---3",
         .name = "handle",
         .kind = KIND_SERVER,
         .flags = 0x300},
    };
    (void)state;
    struct harness *h = join_start(JOIN("span_id: root"));
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_HOLD);
    join_offer_spans(h, 0, join_shop, spans, 2);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_int_equal(exporter->held_count, 1);
    assert_true(join_says(exporter, 0, 0, "handle"));
    assert_false(join_says(exporter, 0, 0, "query"));
    join_let_go(exporter);
    harness_destroy(h);
}

static void a_profile_without_service_takes_that_of_its_container(void **state)
{
    static const struct sketch_sample unlinked = {
        .stack = "work;main", .values_count = 1, .values = {5}};
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_HOLD);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    join_offer_samples(h, 0, "container.id=c1", &unlinked, 1);
    join_offer_samples(h, 0, "container.id=c2", &unlinked, 1);
    assert_int_equal(exporter->held_count, 2);
    assert_true(join_says(exporter, 0, 0, "shop"));
    assert_false(join_says(exporter, 1, 0, "shop"));
    assert_int_equal(join_metric(h, JOIN_METRIC "repaired_resources{"), 1);
    join_let_go(exporter);
    harness_destroy(h);
}

static size_t count_marks(const struct test_exporter *exporter)
{
    const struct batch *batch = exporter->held[0].batch;
    uint8_t *room = mem_alloc(batch->bytes);
    size_t used = 0;
    size_t count = 0;
    for (size_t i = 0; i < batch->parts_count; i++) {
        memcpy(room + used, batch->parts[i].bytes.data, batch->parts[i].bytes.size);
        used += batch->parts[i].bytes.size;
    }
    assert_true(oracle_decodes(TRACES, slice_of(room, used)));
    const uint8_t *at = room;
    while ((at = memmem(at, used - (size_t)(at - room), "pyroscope.profile.id", 20)) != NULL) {
        count++;
        at++;
    }
    mem_free(room);
    return count;
}

static void spans_are_marked(void **state)
{
    static const struct {
        const char *yaml;
        size_t marks;
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

static void lanes_share_the_index(void **state)
{
    (void)state;
    struct harness *h = join_start_on(JOIN(""), 2);
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_HOLD);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    join_offer_spans(h, 1, join_shop, &join_checkout, 1);
    harness_advance(h, 1 * S);
    assert_int_equal(exporter->held_count, 1);
    assert_true(join_says(exporter, 0, 0, "checkout"));
    join_let_go(exporter);
    harness_destroy(h);
}

static void values_beyond_the_cap_are_other(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("cap: 2"));
    struct test_exporter *exporter = join_profiles_sink(h, ANSWER_HOLD);
    for (unsigned i = 0; i < 4; i++) {
        char id[32];
        char name[32];
        snprintf(id, sizeof(id), "span--%02u", i);
        snprintf(name, sizeof(name), "name-%u", i);
        struct sketch_span span = {.trace_id = TRACE_A, .span_id = id, .name = name};
        struct sketch_sample sample = join_work;
        sample.span_id = id;
        join_offer_spans(h, 0, join_shop, &span, 1);
        join_offer_samples(h, 0, "service.name=shop", &sample, 1);
        assert_int_equal(exporter->held_count, i + 1);
        assert_true(join_says(exporter, i, 0, i < 2 ? name : "other"));
    }
    join_let_go(exporter);
    harness_destroy(h);
}

static void wrong_settings_are_told(void **state)
{
    static const char *const rows[][2] = {
        {"{attributes: [span_nam]}", ":2:47: processors::trace_profile_join::attributes: found "
                                     "\"span_nam\", expected span_name"},
        {"{attributes: [span.]}", "attributes: found \"span.\""},
        {"{attributes: [span.a, resource.a]}", "give samples the same attribute"},
        {"{attributes: [http.route, span.http.route]}", "give samples the same attribute"},
        {"{duration_buckets: [1s, 1s]}", "expected more than the bound before"},
        {"{duration_buckets: [x]}", "duration_buckets: found \"x\""},
        {"{duration_buckets: []}", "found 0 bounds, expected 1"},
        {"{hold: -1s}", "expected a duration from 0s to 5m"},
        {"{hold_bytes: lots}", "expected a number of bytes from 0 to 64GiB, such as \"64MiB\""},
        {"{mark: roots}", "expected one of"},
        {"{cap: 0}", "expected a whole number from 1 to 100000"},
        {"{count_for: [span, roots]}", "count_for: found \"roots\", expected span, root or"},
        {"{count_for: [span, root, root]}", "count_for: \"root\" stands there twice"},
        {"{count_for: [root]}", "count_for: span is missing"},
        {"{count_for: []}", "count_for: span is missing"},
        {"{keep: error}", "keep: expected a list"},
        {"{keep: [errors]}", "keep: found \"errors\", expected slow: <duration>, error or sampled"},
        {"{keep: [error, error]}", "keep: \"error\" stands there twice"},
        {"{keep: [slow: 1s, slow: 2s]}", "keep: slow stands there twice"},
        {"{keep: [slow: 1]}", "keep: slow: expected a duration with its unit"},
        {"{keep: [slow: fast]}", "keep: slow: found \"fast\""},
        {"{keep: [slow: 0s]}", "keep: slow: found \"0s\", expected a duration above 0"},
        {"{keep: [{slow: 1s, error: 1}]}", "keep: expected a list"},
        {"{control: {endpoint: \"0.0.0.0:1\"}}", "trace_profile_join::control: token is missing"},
        {"{control: {endpoint: \":1\"}}", "trace_profile_join::control: token is missing"},
        {"{control: {endpoint: localhost}}",
         ":2:55: processors::trace_profile_join::control::endpoint"},
        {"{control: {token: x}}", "control: token is of no use without control::endpoint"},
        {"{links: {profile: x}}", "links::profile: byte 0: expected a URL that begins with"},
        {"{links: {profile: \"http://g/{spam_id}\"}}",
         "links::profile: byte 9: found {spam_id}, expected one of {service_name}"},
        {"{links: {profile: \"http://g/{profile_type}\"}}", "byte 9: found {profile_type}"},
        {"{holds: 1s}", "hold"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[1024];
        snprintf(yaml, sizeof(yaml), "processors: {trace_profile_join: %s}\n" JOIN_PIPELINES,
                 rows[i][0]);
        assert_true(harness_is_wrong(yaml, rows[i][1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_learns_its_span_at_once_when_the_span_is_there),
        cmocka_unit_test(a_profile_waits_for_its_span_and_goes_on_when_that_comes),
        cmocka_unit_test(after_its_time_a_profile_goes_on_as_it_came),
        cmocka_unit_test(nothing_waits_for_spans_that_cannot_come),
        cmocka_unit_test(what_is_held_goes_on_when_the_service_stops),
        cmocka_unit_test(beyond_hold_bytes_the_oldest_go_on),
        cmocka_unit_test(many_go_on_in_turns_and_are_looked_at_once),
        cmocka_unit_test(nothing_waits_while_memory_is_scarce),
        cmocka_unit_test(the_index_is_set_aside_from_the_budget),
        cmocka_unit_test(an_index_that_does_not_fit_is_smaller),
        cmocka_unit_test(what_the_next_stage_refuses_for_now_is_offered_again),
        cmocka_unit_test(what_the_next_stage_will_never_take_is_in_the_books),
        cmocka_unit_test(labels_of_profilers_become_links),
        cmocka_unit_test(two_spans_with_one_id_are_not_guessed_at),
        cmocka_unit_test(a_sample_may_get_the_id_of_the_local_root),
        cmocka_unit_test(a_profile_without_service_takes_that_of_its_container),
        cmocka_unit_test(spans_are_marked),
        cmocka_unit_test(a_new_service_is_heeded_until_its_first_profile_should_have_come),
        cmocka_unit_test(spans_are_marked_that_profiles_of_another_name_have_named),
        cmocka_unit_test(a_batch_job_gets_its_trace_even_when_others_are_long_known),
        cmocka_unit_test(lanes_share_the_index),
        cmocka_unit_test(values_beyond_the_cap_are_other),
        cmocka_unit_test(wrong_settings_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
