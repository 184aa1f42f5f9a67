/* SPDX-License-Identifier: Apache-2.0 */
/* span_metrics between two pipelines: what is sent when, over several lanes, when what is behind it
 * refuses, and at a stop. */
#include "tests/support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "opentelemetry/proto/collector/metrics/v1/metrics_service.pb-c.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/wire.h"
#include "src/pipeline/pipeline_limits.h"
#include "src/service/service_parts.h"

#define PIPELINES                                                                                  \
    "service: {pipelines: {traces: {receivers: [test], exporters: [span_metrics]},"                \
    " metrics: {receivers: [span_metrics], exporters: [test/a]}}}\n"
#define NO_QUEUE                                                                                   \
    "exporters: {test/a: {sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}}\n"
#define CUMULATIVE "connectors: {span_metrics: {metrics_flush_interval: 10s}}\n" NO_QUEUE PIPELINES
#define DELTA                                                                                      \
    "connectors: {span_metrics: {metrics_flush_interval: 10s,"                                     \
    " aggregation_temporality: AGGREGATION_TEMPORALITY_DELTA}}\n" NO_QUEUE PIPELINES

#define SHORT_QUEUE                                                                                \
    "connectors: {span_metrics: {metrics_flush_interval: 10s,"                                     \
    " aggregation_temporality: AGGREGATION_TEMPORALITY_DELTA}}\n"                                  \
    "exporters: {test/a: {sending_queue: {queue_size: 1}}}\n" PIPELINES

typedef Opentelemetry__Proto__Collector__Metrics__V1__ExportMetricsServiceRequest request;
typedef Opentelemetry__Proto__Metrics__V1__ResourceMetrics resource_metrics;
typedef Opentelemetry__Proto__Metrics__V1__Metric metric_message;

/* Spans of one service with the names first, first + 1 …, without a turn. */
static struct test_request *put_spans(struct harness *h, unsigned lane, const char *service,
                                      unsigned first, unsigned spans)
{
    static uint8_t room[1 << 20];
    static uint8_t rooms[6][1 << 19];
    struct wire_writer value = wire_writer_of(rooms[0], sizeof(rooms[0]));
    struct wire_writer pair = wire_writer_of(rooms[1], sizeof(rooms[1]));
    struct wire_writer resource = wire_writer_of(rooms[2], sizeof(rooms[2]));
    struct wire_writer scope = wire_writer_of(rooms[3], sizeof(rooms[3]));
    struct wire_writer all = wire_writer_of(rooms[5], sizeof(rooms[5]));
    struct wire_writer whole = wire_writer_of(room, sizeof(room));
    wire_write_bytes(&value, 1, slice_of_text(service));
    wire_write_bytes(&pair, 1, slice_of_text("service.name"));
    wire_write_bytes(&pair, 2, wire_written(&value));
    wire_write_bytes(&resource, 1, wire_written(&pair));
    for (unsigned i = 0; i < spans; i++) {
        char name[32];
        struct wire_writer span = wire_writer_of(rooms[4], sizeof(rooms[4]));
        snprintf(name, sizeof(name), "GET /%u", first + i);
        wire_write_bytes(&span, 5, slice_of_text(name));
        wire_write_fixed64(&span, 7, 1000);
        wire_write_fixed64(&span, 8, 1000 + 3 * MS);
        wire_write_bytes(&scope, 2, wire_written(&span));
    }
    wire_write_bytes(&all, 1, wire_written(&resource));
    wire_write_bytes(&all, 2, wire_written(&scope));
    wire_write_bytes(&whole, 1, wire_written(&all));
    return harness_put_bytes(h, lane, TRACES, wire_written(&whole), spans);
}

/* A span of a resource with an attribute of so many bytes. */
static void put_large_resource(struct harness *h, size_t bytes)
{
    enum { DEPTH = 6, MORE_BYTES = 256 };
    enum { VALUE, PAIR, RESOURCE, SPAN, SCOPE, ALL };
    struct wire_writer writers[DEPTH];
    uint8_t *rooms[DEPTH];
    uint8_t *text = mem_alloc(bytes);
    memset(text, 'x', bytes);
    for (size_t i = 0; i < DEPTH; i++) {
        rooms[i] = mem_alloc(bytes + MORE_BYTES);
        writers[i] = wire_writer_of(rooms[i], bytes + MORE_BYTES);
    }
    wire_write_bytes(&writers[VALUE], 1, slice_of(text, bytes));
    wire_write_bytes(&writers[PAIR], 1, slice_of_text("x"));
    wire_write_bytes(&writers[PAIR], 2, wire_written(&writers[VALUE]));
    wire_write_bytes(&writers[RESOURCE], 1, wire_written(&writers[PAIR]));
    wire_write_bytes(&writers[RESOURCE], 1,
                     slice_of_text("\x0a\x0cservice.name\x12\x06\x0a\x04shop"));
    wire_write_bytes(&writers[SPAN], 5, slice_of_text("GET /"));
    wire_write_fixed64(&writers[SPAN], 7, 1000);
    wire_write_fixed64(&writers[SPAN], 8, 1000 + 3 * MS);
    wire_write_bytes(&writers[SCOPE], 2, wire_written(&writers[SPAN]));
    wire_write_bytes(&writers[ALL], 1, wire_written(&writers[RESOURCE]));
    wire_write_bytes(&writers[ALL], 2, wire_written(&writers[SCOPE]));
    struct wire_writer whole = wire_writer_of(rooms[VALUE], bytes + MORE_BYTES);
    wire_write_bytes(&whole, 1, wire_written(&writers[ALL]));
    harness_put_bytes(h, 0, TRACES, wire_written(&whole), 1);
    for (size_t i = 0; i < DEPTH; i++)
        mem_free(rooms[i]);
    mem_free(text);
}

static void send_spans(struct harness *h, unsigned lane, const char *service, unsigned first,
                       unsigned spans)
{
    put_spans(h, lane, service, first, spans);
    harness_turn(h);
}

static struct test_exporter *exporter_of(struct harness *h)
{
    struct test_exporter *exporter = harness_exporter_on(h, "test/a", 0, METRICS);
    exporter->has_own_items = true;
    return exporter;
}

static struct harness *start(const char *yaml, unsigned lanes)
{
    struct harness *h = harness_create_on(yaml, lanes);
    exporter_of(h)->result = RESULT_HOLD;
    return h;
}

/* What the held requests have together. */
struct sums {
    size_t requests;
    size_t calls_points;
    int64_t calls;
    size_t duration_points;
    uint64_t durations;
    uint64_t buckets;
    uint64_t first_start_ns; /* of calls */
    uint64_t last_start_ns;
    uint64_t time_ns;
    size_t overflows;
};

static void add_metric(struct sums *sums, const metric_message *metric)
{
    bool is_sum = metric->data_case == OPENTELEMETRY__PROTO__METRICS__V1__METRIC__DATA_SUM;
    for (size_t i = 0; is_sum && i < metric->sum->n_data_points; i++) {
        const Opentelemetry__Proto__Metrics__V1__NumberDataPoint *point =
            metric->sum->data_points[i];
        bool is_first = sums->calls_points++ == 0;
        sums->calls += point->as_int;
        if (is_first || point->start_time_unix_nano < sums->first_start_ns)
            sums->first_start_ns = point->start_time_unix_nano;
        if (point->start_time_unix_nano > sums->last_start_ns)
            sums->last_start_ns = point->start_time_unix_nano;
        sums->time_ns = point->time_unix_nano;
        sums->overflows += strcmp(point->attributes[0]->key, "otel.metric.overflow") == 0;
        assert_true(point->start_time_unix_nano <= point->time_unix_nano);
    }
    for (size_t i = 0; !is_sum && i < metric->histogram->n_data_points; i++) {
        const Opentelemetry__Proto__Metrics__V1__HistogramDataPoint *point =
            metric->histogram->data_points[i];
        sums->duration_points++;
        sums->durations += point->count;
        for (size_t j = 0; j < point->n_bucket_counts; j++)
            sums->buckets += point->bucket_counts[j];
    }
}

static struct sums sums_of(struct harness *h)
{
    const struct test_exporter *exporter = exporter_of(h);
    struct sums sums = {.requests = exporter->held_count};
    for (size_t i = 0; i < exporter->held_count; i++) {
        struct batch_part whole;
        assert_true(batch_join(exporter->held[i].batch, NULL, &whole));
        request *read =
            opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__unpack(
                NULL, whole.bytes.size, whole.bytes.data);
        assert_non_null(read);
        for (size_t j = 0; j < read->n_resource_metrics; j++) {
            const resource_metrics *resource = read->resource_metrics[j];
            for (size_t k = 0; k < resource->scope_metrics[0]->n_metrics; k++)
                add_metric(&sums, resource->scope_metrics[0]->metrics[k]);
        }
        opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__free_unpacked(
            read, NULL);
        buffer_unref(whole.owner);
    }
    assert_true(sums.durations == sums.buckets);
    return sums;
}

static struct sums flush(struct harness *h, enum test_result result)
{
    harness_advance(h, 10 * S);
    struct sums sums = sums_of(h);
    test_exporter_release(exporter_of(h), result);
    harness_turn(h);
    return sums;
}

static void new_series_are_sent_as_zero_first(void **state)
{
    (void)state;
    struct harness *h = start(CUMULATIVE, 1);
    harness_advance(h, 1 * S);
    uint64_t start_ns = clock_wall_ns();
    send_spans(h, 0, "shop", 0, 3);
    assert_int_equal(harness_totals(h, TRACES).delivered, 3);
    harness_advance(h, 9 * S);
    struct sums sums = sums_of(h);
    test_exporter_release(exporter_of(h), RESULT_OK);
    assert_int_equal(sums.requests, 1);
    assert_int_equal(sums.calls_points, 3);
    assert_int_equal(sums.calls, 0);
    assert_int_equal(sums.durations, 3);
    assert_true(sums.first_start_ns == start_ns);
    assert_true(sums.time_ns == start_ns + 9 * S);
    send_spans(h, 0, "shop", 0, 4);
    sums = flush(h, RESULT_OK);
    assert_int_equal(sums.calls_points, 4);
    assert_int_equal(sums.calls, 6); /* the fourth is new */
    assert_int_equal(sums.durations, 7);
    sums = flush(h, RESULT_OK);
    assert_int_equal(sums.calls, 7);
    assert_true(sums.first_start_ns == start_ns);
    /* The last flush comes with the stop. */
    send_spans(h, 0, "shop", 0, 1);
    harness_stop(h);
    harness_turn(h);
    sums = sums_of(h);
    assert_int_equal(sums.calls, 8);
    test_exporter_release(exporter_of(h), RESULT_OK);
    harness_turn(h);
    assert_true(h->has_stopped);
    harness_destroy(h);
}

static void a_clock_that_is_set_back_holds_nothing_up(void **state)
{
    (void)state;
    struct harness *h = start(CUMULATIVE, 1);
    send_spans(h, 0, "shop", 0, 3);
    clock_fake_start(clock_now_ns(), clock_wall_ns() - 3600 * S);
    assert_int_equal(flush(h, RESULT_OK).durations, 3);
    assert_int_equal(flush(h, RESULT_OK).calls, 3);
    harness_destroy(h);
}

static void refused_metrics_lose_no_counts(void **state)
{
    (void)state;
    struct harness *h = start(CUMULATIVE, 1);
    send_spans(h, 0, "shop", 0, 3);
    assert_int_equal(flush(h, RESULT_BUSY).calls, 0);
    /* The zeros come again. */
    struct sums sums = flush(h, RESULT_OK);
    assert_int_equal(sums.calls_points, 3);
    assert_int_equal(sums.calls, 0);
    assert_int_equal(flush(h, RESULT_BUSY).calls, 3);
    send_spans(h, 0, "shop", 0, 1);
    assert_int_equal(flush(h, RESULT_OK).calls, 4);
    assert_int_equal(harness_totals(h, METRICS).rejected, 12);
    harness_destroy(h);
}

static void delta_metrics_follow_each_other(void **state)
{
    (void)state;
    struct harness *h = start(DELTA, 1);
    send_spans(h, 0, "shop", 0, 3);
    struct sums sums = flush(h, RESULT_OK);
    assert_int_equal(sums.calls, 3);
    uint64_t time_ns = sums.time_ns;
    harness_advance(h, 1 * S);
    send_spans(h, 0, "shop", 0, 2);
    send_spans(h, 0, "shop", 10, 1);
    uint64_t new_ns = clock_wall_ns();
    harness_advance(h, 9 * S);
    sums = sums_of(h);
    test_exporter_release(exporter_of(h), RESULT_OK);
    assert_int_equal(sums.calls, 3);
    assert_true(sums.first_start_ns == time_ns);
    assert_true(sums.last_start_ns == new_ns);
    assert_int_equal(flush(h, RESULT_OK).requests, 0);
    harness_destroy(h);
}

static void refused_delta_metrics_are_offered_again(void **state)
{
    (void)state;
    struct harness *h = start(SHORT_QUEUE, 1);
    send_spans(h, 0, "shop", 0, 3);
    harness_advance(h, 10 * S); /* the exporter is at it, and the queue is full */
    send_spans(h, 0, "shop", 0, 4);
    harness_advance(h, 15 * S);
    assert_int_equal(sums_of(h).calls, 3);
    assert_int_equal(harness_totals(h, METRICS).received, 14);
    assert_int_equal(harness_totals(h, METRICS).in_flight, 14);
    test_exporter_release(exporter_of(h), RESULT_OK);
    harness_advance(h, 2 * S);
    struct sums sums = sums_of(h);
    assert_int_equal(sums.requests, 1);
    assert_int_equal(sums.calls, 4);
    test_exporter_release(exporter_of(h), RESULT_OK);
    harness_turn(h);
    assert_int_equal(harness_totals(h, METRICS).received, 14);
    assert_int_equal(harness_totals(h, METRICS).delivered, 14);
    harness_destroy(h);
}

static void what_is_refused_at_a_stop_is_counted(void **state)
{
    (void)state;
    struct harness *h = start(DELTA, 1);
    send_spans(h, 0, "shop", 0, 3);
    assert_int_equal(flush(h, RESULT_BUSY).calls, 3);
    exporter_of(h)->result = RESULT_BUSY;
    send_spans(h, 0, "shop", 0, 2);
    harness_stop(h);
    harness_turn(h);
    assert_true(h->has_stopped);
    assert_int_equal(harness_totals(h, METRICS).rejected, 10);
    harness_discard(h);
}

/* The journal of the pipeline behind refuses at once what is larger than it may get. */
static void what_is_refused_at_once_at_a_stop_is_counted(void **state)
{
    enum { LARGE_BYTES = 17 << 20 };
    char directory[] = "/tmp/spanflame-span-metrics-XXXXXX";
    char yaml[1024];
    char command[64];
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(yaml, sizeof(yaml),
             "extensions: {file_storage: {directory: %s, max_size: 16MiB}}\n"
             "connectors: {span_metrics: {metrics_flush_interval: 10s,"
             " histogram: {disable: true}}}\n"
             "exporters: {test/a: {sending_queue: {storage: file_storage}}}\n"
             "service: {extensions: [file_storage], budget_mib: 2048, pipelines: {"
             "traces: {receivers: [test], exporters: [span_metrics]},"
             " metrics: {receivers: [span_metrics], exporters: [test/a]}}}\n",
             directory);
    for (unsigned lanes = 1; lanes <= 2; lanes++) {
        struct harness *h = harness_create_on(yaml, lanes);
        exporter_of(h);
        put_large_resource(h, LARGE_BYTES);
        harness_turn(h);
        harness_stop(h);
        harness_turn(h);
        assert_true(h->has_stopped);
        struct harness_totals totals = harness_totals(h, METRICS);
        assert_int_equal(totals.received, 1); /* one flush */
        assert_int_equal(totals.rejected, 1);
        harness_discard(h);
    }
    snprintf(command, sizeof(command), "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

static void lanes_make_one_series(void **state)
{
    (void)state;
    struct harness *h = start(CUMULATIVE, 3);
    send_spans(h, 0, "shop", 0, 3);
    send_spans(h, 1, "shop", 0, 3);
    send_spans(h, 2, "shop", 1, 3);
    send_spans(h, 2, "cart", 0, 1);
    struct sums sums = flush(h, RESULT_OK);
    assert_int_equal(sums.calls_points, 5);
    assert_int_equal(sums.calls, 0);
    assert_int_equal(sums.durations, 10);
    send_spans(h, 1, "shop", 0, 5);
    sums = flush(h, RESULT_OK);
    assert_int_equal(sums.calls_points, 6);
    assert_int_equal(sums.calls, 14);
    send_spans(h, 2, "shop", 0, 1);
    harness_stop(h);
    harness_turn(h);
    assert_int_equal(sums_of(h).calls, 16);
    test_exporter_release(exporter_of(h), RESULT_OK);
    harness_turn(h);
    harness_destroy(h);
}

/* Names that never come twice, on one lane, while known ones come on another. */
static void a_flood_of_names_leaves_known_series_alone(void **state)
{
    (void)state;
    for (unsigned lanes = 1; lanes <= 2; lanes++) {
        struct harness *h = start("connectors: {span_metrics: {metrics_flush_interval: 10s,"
                                  " aggregation_cardinality_limit: 20}}\n" NO_QUEUE PIPELINES,
                                  lanes);
        send_spans(h, 0, "shop", 0, 10);
        flush(h, RESULT_OK);
        for (unsigned round = 1; round <= 3; round++) {
            for (unsigned i = 0; i < 10; i++)
                send_spans(h, lanes - 1, "shop", 1000 * round + 50 * i, 50);
            send_spans(h, lanes - 1, "shop", 0, 10);
            struct sums sums = flush(h, RESULT_OK);
            assert_int_equal(sums.overflows, 1);
            assert_int_equal(sums.calls_points, 21);
            assert_int_equal(sums.durations, 10 + 510 * round);
        }
        /* All of the known ones counted as themselves. */
        struct sums sums = flush(h, RESULT_OK);
        assert_int_equal(sums.calls, 10 + 510 * 3);
        harness_destroy(h);
    }
}

static void many_series_go_in_several_requests(void **state)
{
    (void)state;
    struct harness *h = start(CUMULATIVE, 1);
    for (unsigned i = 0; i < 20; i++)
        send_spans(h, 0, "shop", 400 * i, 400);
    struct sums sums = flush(h, RESULT_OK);
    assert_int_equal(sums.calls_points, 8000);
    assert_int_equal(sums.durations, 8000);
    assert_true(sums.requests > 2);
    sums = flush(h, RESULT_OK);
    assert_int_equal(sums.calls, 8000);
    harness_destroy(h);
}

static void wrong_keys_are_refused(void **state)
{
    static const struct {
        const char *keys;
        const char *text;
    } rows[] = {
        {"metrics_flush_interval: 0", "metrics_flush_interval"},
        {"metrics_flush_interval: -1s", "metrics_flush_interval"},
        {"metrics_expiration: -1s", "metrics_expiration"},
        {"dimensions: [{name: a}, {name: span.kind}]",
         "dimensions::1: failed validating dimensions: duplicate dimension name \"span.kind\""},
        {"dimensions: [{}]", "dimension entry must set one of `name` or `glob`"},
        {"dimensions: [{name: a, glob: b}]", "must set only one of `name` or `glob`"},
        {"dimensions: [{glob: a, default: b}]", "`default` is not supported on `glob`"},
        {"dimensions: [{glob: 'span.*'}]", "conflicting with glob \"span.*\""},
        {"dimensions: [{glob: '['}]", "invalid dimension glob \"[\""},
        {"dimensions: [{name: a, default: 5}]", "has to be a string"},
        {"calls_dimensions: [{name: a}, {name: a}]", "failed validating calls dimensions"},
        {"histogram: {dimensions: [{name: a}, {name: a}]}", "failed validating histogram"},
        {"events: {enabled: true}", "no dimensions configured for events"},
        {"histogram: {explicit: {}, exponential: {}}", "use either `explicit` or `exponential`"},
        {"histogram: {explicit: {buckets: [1x]}}", "buckets::0"},
        {"histogram: {unit: h}", "unit"},
        {"exemplars: {enabled: true, max_per_data_point: -1}", "invalid max_per_data_point: -1"},
        {"aggregation_cardinality_limit: -1", "aggregation_cardinality_limit"},
        {"resource_metrics_cache_size: 0", "resource_metrics_cache_size"},
        {"aggregation_temporality: AGGREGATION_TEMPORALITY_DELTA, metric_timestamp_cache_size: 0",
         "invalid delta timestamp cache size: 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[1024];
        snprintf(yaml, sizeof(yaml), "connectors: {span_metrics: {%s}}\n" NO_QUEUE PIPELINES,
                 rows[i].keys);
        if (!harness_is_wrong(yaml, rows[i].text))
            fail_msg("%s", rows[i].keys);
    }
}

/* Requests wait behind a large one; those that then follow share the lane's turns as spans do. */
static void requests_that_waited_are_added_in_turns(void **state)
{
    enum { LARGE = 9000, REQUESTS = 100, SPANS = 1000, TURNS_MAX = 100 };
    /* A turn by hand may be as many as three of the loop. */
    enum { TURN_MAX = 3 * 9 };
    struct test_request *requests[REQUESTS];
    (void)state;
    struct harness *h = start(CUMULATIVE, 1);
    put_spans(h, 0, "large", 0, LARGE);
    for (unsigned i = 0; i < REQUESTS; i++)
        requests[i] = put_spans(h, 0, "shop", 0, SPANS);
    unsigned before = 0;
    for (unsigned turn = 0; before < REQUESTS && turn < TURNS_MAX; turn++) {
        unsigned resolved = 0;
        lane_turn(h->lanes[0]);
        for (unsigned i = 0; i < REQUESTS; i++)
            resolved += requests[i]->is_resolved;
        assert_true(resolved - before <= TURN_MAX);
        before = resolved;
    }
    assert_int_equal(before, REQUESTS);
    harness_destroy(h);
}

/* Of what batch has acknowledged: it would not be counted otherwise. */
static void acknowledged_spans_may_use_the_margin(void **state)
{
    enum { SPANS = 3, EXCESS_KIB = 16 };
    (void)state;
    struct harness *h = start("processors: {batch: {timeout: 1s}}\n"
                              "connectors: {span_metrics: {metrics_flush_interval: 1h}}\n" NO_QUEUE
                              "service: {budget_mib: 8, pipelines: {traces: {receivers: [test], "
                              "processors: [batch], exporters: [span_metrics]}, metrics: "
                              "{receivers: [span_metrics], exporters: [test/a]}}}\n",
                              1);
    struct budget *budget = &h->service->budget;
    send_spans(h, 0, "shop", 0, SPANS);
    const uint64_t others = budget_limit(budget) - budget_used(budget) + (EXCESS_KIB << 10);
    budget_take(budget, others);
    harness_advance(h, 2 * DOWNSTREAM_SHUT_IN_MAX_NS);
    budget_return(budget, others);
    assert_int_equal(harness_totals(h, TRACES).delivered, SPANS);
    char *page = harness_metrics(h);
    assert_non_null(
        strstr(page, "spanflame_span_metrics_uncounted_spans{connector=\"span_metrics\"} 0"));
    free(page);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_series_are_sent_as_zero_first),
        cmocka_unit_test(a_clock_that_is_set_back_holds_nothing_up),
        cmocka_unit_test(refused_metrics_lose_no_counts),
        cmocka_unit_test(delta_metrics_follow_each_other),
        cmocka_unit_test(refused_delta_metrics_are_offered_again),
        cmocka_unit_test(what_is_refused_at_a_stop_is_counted),
        cmocka_unit_test(what_is_refused_at_once_at_a_stop_is_counted),
        cmocka_unit_test(lanes_make_one_series),
        cmocka_unit_test(a_flood_of_names_leaves_known_series_alone),
        cmocka_unit_test(many_series_go_in_several_requests),
        cmocka_unit_test(wrong_keys_are_refused),
        cmocka_unit_test(requests_that_waited_are_added_in_turns),
        cmocka_unit_test(acknowledged_spans_may_use_the_margin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
