/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that lead to profiles: which of them are marked, and for which services. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/base/stop_latch.h"
#include "src/core/batch.h"
#include "src/join/join_limits.h"
#include "src/join/spans/span_reader.h"
#include "src/otlp/wire.h"
#include "tests/support/random_otlp.h"
#include "tests/support/telemetry_bytes.h"

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
        exporter->result = RESULT_HOLD;
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
    exporter->result = RESULT_HOLD;
    join_offer_spans(h, 0, late, &join_checkout, 1);
    assert_int_equal(count_marks(exporter), 1);
    join_let_go(exporter);
    grow_old(h, late, &join_checkout);
    assert_int_equal(join_metric(h, JOIN_METRIC "skipped_spans{"), 0);
    exporter->result = RESULT_HOLD;
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
        exporter->result = RESULT_HOLD;
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
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
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

/* A request that is read in several turns: each resource is a service in a container of its own,
 * with two scopes. Its spans follow each other, 10 s apart. */
enum {
    LARGE_RESOURCES = 4,
    LARGE_SCOPE_SPANS = 7000,
    LARGE_RESOURCE_SPANS = 2 * LARGE_SCOPE_SPANS,
    LARGE_SPANS = LARGE_RESOURCES * LARGE_RESOURCE_SPANS,
    LARGE_PROBES = 16, /* spans of a resource that samples ask for */
    LARGE_SPAN_BYTES = 64,
};
_Static_assert((int)LARGE_SPANS > 3 * (int)JOIN_TURN_SPANS_MAX, "it takes more than three turns");

struct texts {
    char service[32];
    char container[32];
    char region[32];
    const char *resource[7];
};

static void name_resource(struct texts *texts, const char *prefix, unsigned index)
{
    snprintf(texts->service, sizeof(texts->service), "%s-service-%u", prefix, index);
    snprintf(texts->container, sizeof(texts->container), "%s-container-%u", prefix, index);
    snprintf(texts->region, sizeof(texts->region), "%s-region-%u", prefix, index);
    const char *const resource[] = {"service.name",   texts->service, "container.id",
                                    texts->container, "region",       texts->region};
    memcpy(texts->resource, resource, sizeof(resource));
    texts->resource[6] = NULL;
}

static uint64_t large_start_ns(unsigned index)
{
    return (100 + 10 * (uint64_t)index) * S;
}

/* The strings are valid until the next call. */
static struct sketch_span large_span(unsigned index)
{
    static char id[16];
    static char name[16];
    snprintf(id, sizeof(id), "%08u", index + 1);
    snprintf(name, sizeof(name), "op-%u.", index);
    return (struct sketch_span){.trace_id = TRACE_A,
                                .span_id = id,
                                .name = name,
                                .start_ns = large_start_ns(index),
                                .end_ns = large_start_ns(index) + 5 * S};
}

/* Freed with free(). */
static struct slice large_request(void)
{
    size_t room = 2 * LARGE_SPANS * LARGE_SPAN_BYTES;
    uint8_t *rooms[3];
    unsigned index = 0;
    for (size_t i = 0; i < 3; i++)
        rooms[i] = malloc(room);
    struct wire_writer request = wire_writer_of(rooms[0], room);
    for (unsigned i = 0; i < LARGE_RESOURCES; i++) {
        uint8_t content_room[256];
        struct texts texts;
        struct wire_writer content = wire_writer_of(content_room, sizeof(content_room));
        struct wire_writer message = wire_writer_of(rooms[1], room);
        name_resource(&texts, "large", i);
        join_put_resource(&content, texts.resource);
        wire_write_bytes(&message, 1, wire_written(&content));
        for (unsigned k = 0; k < 2; k++) {
            struct wire_writer scope = wire_writer_of(rooms[2], room);
            for (unsigned n = 0; n < LARGE_SCOPE_SPANS; n++) {
                const struct sketch_span span = large_span(index++);
                join_put_span(&scope, &span);
            }
            wire_write_bytes(&message, 2, wire_written(&scope));
        }
        wire_write_bytes(&request, 1, wire_written(&message));
    }
    assert_int_equal(index, LARGE_SPANS);
    assert_false(request.has_failed);
    free(rooms[1]);
    free(rooms[2]);
    return wire_written(&request);
}

/* What span_reader_read makes of the request in one go. Freed with mem_free. */
static struct slice marked_at_once(struct harness *h, struct slice bytes)
{
    struct span_reader reader;
    struct span_figures figures;
    struct batch *batch = plain_request(NULL, TRACES, bytes, LARGE_SPANS);
    span_reader_init(&reader, harness_shared(h, "trace_profile_join"), 0,
                     harness_exporter(h, "test")->base.budget);
    struct batch *marked = span_reader_read(&reader, batch, clock_now_ns(), &figures);
    assert_int_equal(figures.marked, LARGE_SPANS);
    struct slice joined = joined_parts(marked);
    batch_unref(marked);
    batch_unref(batch);
    span_reader_fini(&reader);
    return joined;
}

/* NULL: it has not arrived yet. */
static const struct batch *held_large(const struct harness *h)
{
    const struct test_exporter *exporter = harness_exporter(h, "test");
    for (size_t i = 0; i < exporter->held_count; i++)
        if (exporter->held[i].batch->items == LARGE_SPANS)
            return exporter->held[i].batch;
    return NULL;
}

/* Offers a small request after each part of the large one that is read, and some while the helper
 * writes that one. */
struct meanwhile {
    struct harness *h;
    unsigned count;
    struct lane_job job;
};

static void offer_meanwhile(void *arg)
{
    struct meanwhile *meanwhile = arg;
    uint8_t room[JOIN_ROOM];
    char id[16];
    char name[16];
    struct texts texts;
    if (held_large(meanwhile->h) != NULL || meanwhile->count == LARGE_PROBES)
        return;
    unsigned index = meanwhile->count++;
    snprintf(id, sizeof(id), "small%03u", index);
    snprintf(name, sizeof(name), "small-%u.", index);
    const struct sketch_span span = {.trace_id = TRACE_B,
                                     .span_id = id,
                                     .name = name,
                                     .start_ns = large_start_ns(index),
                                     .end_ns = large_start_ns(index) + 5 * S};
    name_resource(&texts, "small", index);
    harness_put_bytes(meanwhile->h, 0, TRACES, join_spans_request(room, texts.resource, &span, 1),
                      1);
    lane_defer(meanwhile->h->lanes[0], &meanwhile->job);
}

/* Samples that name no span find those that ran then, which `first` and `step` number, in the
 * container of that resource. */
static void samples_find_their_spans(struct harness *h, const char *prefix, unsigned resource,
                                     unsigned first, unsigned step, unsigned count)
{
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    struct sketch_sample samples[LARGE_PROBES];
    struct texts texts;
    char container[64];
    name_resource(&texts, prefix, resource);
    snprintf(container, sizeof(container), "container.id=%s", texts.container);
    for (unsigned i = 0; i < count; i++)
        samples[i] = (struct sketch_sample){.stack = "work;main",
                                            .values_count = 1,
                                            .values = {1},
                                            .timestamps_count = 1,
                                            .time_ns = large_start_ns(first + i * step) + 2 * S};
    join_offer_samples(h, 0, container, samples, count);
    harness_advance(h, 2 * S);
    assert_int_equal(exporter->held_count, 1);
    for (unsigned i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%s-%u.", strcmp(prefix, "large") == 0 ? "op" : prefix,
                 first + i * step);
        assert_true(join_says(exporter, 0, i, name));
        assert_true(join_says(exporter, 0, i, texts.region));
        assert_true(join_says(exporter, 0, i, texts.service));
    }
    join_let_go(exporter);
}

static void a_large_request_is_read_in_parts_and_others_pass_meanwhile(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("mark: all, window_fallback: true, hold: 2s, attributes: "
                                        "[span_name, resource.region, resource.service.name]"));
    struct test_exporter *exporter = harness_exporter(h, "test");
    struct slice bytes = large_request();
    struct meanwhile meanwhile = {.h = h};
    exporter->result = RESULT_HOLD;
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    harness_advance(h, 2 * S);
    const struct test_request *request = harness_put_bytes(h, 0, TRACES, bytes, LARGE_SPANS);
    meanwhile.job = (struct lane_job){.fn = offer_meanwhile, .arg = &meanwhile};
    lane_defer(h->lanes[0], &meanwhile.job);
    harness_turn(h);
    assert_non_null(held_large(h));
    assert_in_range(meanwhile.count, 3, LARGE_PROBES);
    assert_int_equal(exporter->held_count, 1 + meanwhile.count);
    assert_int_equal(join_metric(h, JOIN_METRIC "indexed_spans{"), LARGE_SPANS + meanwhile.count);
    assert_int_equal(join_metric(h, JOIN_METRIC "marked_spans{"), LARGE_SPANS + meanwhile.count);
    for (unsigned i = 0; i < LARGE_RESOURCES; i++)
        samples_find_their_spans(h, "large", i, i * LARGE_RESOURCE_SPANS,
                                 (LARGE_RESOURCE_SPANS - 1) / (LARGE_PROBES - 1), LARGE_PROBES);
    for (unsigned i = 0; i < meanwhile.count; i++)
        samples_find_their_spans(h, "small", i, i, 1, 1);
    struct slice marked = joined_parts(held_large(h));
    struct slice expected = marked_at_once(h, bytes);
    assert_true(slice_equal(marked, expected));
    mem_free((void *)(uintptr_t)marked.data);
    mem_free((void *)(uintptr_t)expected.data);
    assert_false(request->is_resolved);
    join_let_go(exporter);
    assert_true(request->is_resolved);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    harness_destroy(h);
    free((void *)(uintptr_t)bytes.data);
}

static void on_stopped(void *arg)
{
    *(bool *)arg = true;
}

static void stopping_waits_for_a_large_request(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct component *join = harness_processor(h, "trace_profile_join", TRACES);
    bool has_stopped = false;
    struct stop_latch latch = {.fn = on_stopped, .arg = &has_stopped};
    struct slice bytes = large_request();
    const struct test_request *request = harness_put_bytes(h, 0, TRACES, bytes, LARGE_SPANS);
    assert_true(lane_turn(h->lanes[0]));
    assert_false(request->is_resolved);
    join->stopping = &latch;
    stop_latch_hold(&latch);
    join->factory->stop(join);
    while (!request->is_resolved) {
        assert_false(has_stopped);
        assert_true(lane_turn(h->lanes[0]));
    }
    assert_true(has_stopped);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    join->is_started = false; /* the harness does not stop it again */
    harness_destroy(h);
    free((void *)(uintptr_t)bytes.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_marked),
        cmocka_unit_test(a_new_service_is_heeded_until_its_first_profile_should_have_come),
        cmocka_unit_test(spans_are_marked_that_profiles_of_another_name_have_named),
        cmocka_unit_test(a_batch_job_gets_its_trace_even_when_others_are_long_known),
        cmocka_unit_test(a_large_request_is_read_in_parts_and_others_pass_meanwhile),
        cmocka_unit_test(stopping_waits_for_a_large_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
