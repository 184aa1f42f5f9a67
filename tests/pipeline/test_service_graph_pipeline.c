/* SPDX-License-Identifier: Apache-2.0 */
/* service_graph between two pipelines: when its metrics are sent and in which pieces, what lanes
 * share, what a stop and a full budget do, and which configurations are refused. */
#include "tests/support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/metrics/metric_reader.h"
#include "src/otlp/wire.h"
#include "src/pipeline/pipeline_limits.h"
#include "src/service/service_parts.h"
#include "tests/support/random_otlp.h"

#define WITH(keys)                                                                                 \
    "connectors: {service_graph: {" keys "}}\n"                                                    \
    "exporters: {test/a: {sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}}\n" \
    "service: {pipelines: {traces: {receivers: [test], exporters: [service_graph]},"               \
    " metrics: {receivers: [service_graph], exporters: [test/a]}}}\n"

#define TOTAL  "traces_service_graph_request_total"
#define FAILED "traces_service_graph_request_failed_total"
#define ONCE   "metrics_flush_interval: 0"

enum { SERVER = 2, CLIENT = 3 };

/* A request of one span. The ids of client and server have the same number. */
static void send_span(struct harness *h, unsigned lane, unsigned kind, uint64_t id,
                      const char *service, unsigned status)
{
    uint8_t rooms[4][512];
    struct wire_writer out = wire_writer_of(rooms[0], sizeof(rooms[0]));
    const uint64_t trace[2] = {7, 8};
    wire_write_bytes(&out, 1, slice_of(trace, sizeof(trace)));
    wire_write_bytes(&out, kind == CLIENT ? 2 : 4, slice_of(&id, sizeof(id)));
    wire_write_number(&out, 6, kind);
    wire_write_fixed64(&out, 7, 1000);
    wire_write_fixed64(&out, 8, 1000 + 3 * MS);
    wire_write_header(&out, 15, 2);
    wire_write_number(&out, 3, status);
    struct wire_writer scope = wire_writer_of(rooms[1], sizeof(rooms[1]));
    wire_write_bytes(&scope, 2, wire_written(&out));
    struct wire_writer key = wire_writer_of(rooms[2], sizeof(rooms[2]));
    wire_write_bytes(&key, 1, slice_of_text("service.name"));
    wire_write_header(&key, 2, wire_field_size(1, strlen(service)));
    wire_write_bytes(&key, 1, slice_of_text(service));
    struct wire_writer message = wire_writer_of(rooms[3], sizeof(rooms[3]));
    struct slice attribute = wire_written(&key);
    size_t resource = wire_field_size(1, attribute.size);
    size_t whole = wire_field_size(1, resource) + wire_field_size(2, wire_written(&scope).size);
    wire_write_header(&message, 1, whole);
    wire_write_header(&message, 1, resource);
    wire_write_bytes(&message, 1, attribute);
    wire_write_bytes(&message, 2, wire_written(&scope));
    assert_false(message.has_failed);
    struct test_request *request = harness_offer_bytes(h, lane, TRACES, wire_written(&message), 1);
    assert_true(request->is_resolved);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
}

static void send_edge(struct harness *h, uint64_t id, const char *from, const char *to)
{
    send_span(h, 0, CLIENT, id, from, 0);
    send_span(h, h->lanes_count - 1, SERVER, id, to, 0);
}

/* Of data points: found in the batches that the exporter holds. */
struct sums {
    const char *metric;
    const char *client; /* NULL: any */
    uint64_t points;
    uint64_t value;
    uint64_t start_ns;
    uint64_t time_ns;
};

static bool has_client(struct slice point, uint32_t field, const char *client)
{
    struct metric_items attributes = metric_items_of(point, field);
    struct slice encoded;
    char wanted[64];
    size_t size = (size_t)snprintf(wanted, sizeof(wanted), "\n\006client\022%c\n%c%s",
                                   (int)strlen(client) + 2, (int)strlen(client), client);
    while (metric_items_next(&attributes, &encoded))
        if (slice_equal(encoded, slice_of(wanted, size)))
            return true;
    return false;
}

static void sum_metric(struct sums *sums, struct slice bytes)
{
    struct metric metric = metric_read(bytes);
    struct metric_items points = metric_items_of(metric.data, 1);
    struct slice encoded;
    if (!slice_equal_text(metric.name, sums->metric))
        return;
    while (metric_items_next(&points, &encoded)) {
        struct metric_point point = metric_point_read(metric.kind, encoded);
        if (sums->client != NULL &&
            !has_client(encoded, metric_point_attributes(metric.kind), sums->client))
            continue;
        sums->points++;
        sums->value += metric.kind == METRIC_SUM ? (uint64_t)point.integer : point.count;
        sums->start_ns = point.start_ns;
        sums->time_ns = point.time_ns;
    }
}

static struct sums sum(const struct test_exporter *exporter, const char *metric, const char *client)
{
    struct sums sums = {.metric = metric, .client = client};
    for (size_t i = 0; i < exporter->held_count; i++) {
        struct slice request = joined_parts(exporter->held[i].batch);
        struct metric_items resources = metric_items_of(request, 1);
        struct slice resource;
        while (metric_items_next(&resources, &resource)) {
            struct metric_items scopes = metric_items_of(resource, 2);
            struct slice scope;
            while (metric_items_next(&scopes, &scope)) {
                struct metric_items metrics = metric_items_of(scope, 2);
                struct slice one;
                while (metric_items_next(&metrics, &one))
                    sum_metric(&sums, one);
            }
        }
        mem_free((void *)(uintptr_t)request.data);
    }
    return sums;
}

/* It holds what it gets. */
static struct test_exporter *holder(const struct harness *h)
{
    struct test_exporter *exporter = harness_exporter_on(h, "test/a", 0, METRICS);
    exporter->has_own_items = true;
    exporter->result = RESULT_HOLD;
    return exporter;
}

/* The next time it holds again. */
static void let_go(struct harness *h, struct test_exporter *exporter)
{
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
}

static void metrics_come_at_the_interval_and_stay(void **state)
{
    (void)state;
    struct harness *h = harness_create(WITH("metrics_flush_interval: 10s"));
    struct test_exporter *a = holder(h);
    uint64_t begin_ns = clock_wall_ns();
    harness_advance(h, 10 * S);
    assert_int_equal(a->held_count, 0); /* there is nothing to send */
    send_edge(h, 1, "a", "b");
    send_edge(h, 2, "a", "b");
    assert_int_equal(a->held_count, 0);
    harness_advance(h, 10 * S);
    assert_int_equal(a->held_count, 1);
    struct sums total = sum(a, TOTAL, "a");
    assert_int_equal(total.points, 1);
    assert_int_equal(total.value, 2);
    assert_int_equal(total.start_ns, begin_ns);
    assert_int_equal(total.time_ns, begin_ns + 20 * S);
    assert_int_equal(sum(a, FAILED, NULL).points, 0);
    assert_int_equal(sum(a, "traces_service_graph_request_client", "a").value, 2);
    assert_int_equal(sum(a, "traces_service_graph_request_server", "a").value, 2);
    let_go(h, a);
    send_span(h, 0, CLIENT, 3, "a", 2);
    send_span(h, 0, SERVER, 3, "b", 0);
    harness_advance(h, 10 * S); /* cumulative: the old one is there again */
    assert_int_equal(sum(a, TOTAL, NULL).points, 2);
    assert_int_equal(sum(a, TOTAL, NULL).value, 3);
    assert_int_equal(sum(a, FAILED, NULL).value, 1);
    harness_destroy(h);
}

static void lanes_share_edges_and_series(void **state)
{
    (void)state;
    struct harness *h = harness_create_on(WITH(ONCE), 3);
    struct test_exporter *a = holder(h);
    send_span(h, 1, CLIENT, 1, "a", 0);
    assert_int_equal(a->held_count, 0);
    send_span(h, 2, SERVER, 1, "b", 0);
    assert_int_equal(a->held_count, 1); /* by lane 0 */
    assert_int_equal(sum(a, TOTAL, "a").value, 1);
    let_go(h, a);
    for (unsigned lane = 0; lane < 3; lane++) {
        send_span(h, lane, SERVER, 10 + lane, "b", 0);
        let_go(h, a);
        send_span(h, (lane + 1) % 3, CLIENT, 10 + lane, "a", 0);
        assert_int_equal(sum(a, TOTAL, "a").value, 2 + lane);
        let_go(h, a);
    }
    char *page = harness_metrics(h);
    assert_non_null(
        strstr(page, "otelcol_connector_servicegraph_total_edges{connector=\"service_graph\"} 4"));
    assert_non_null(
        strstr(page, "spanflame_connector_consumed_spans{connector=\"service_graph\"} 8"));
    free(page);
    harness_destroy(h);
}

static void one_flush_at_a_time(void **state)
{
    (void)state;
    struct harness *h = harness_create_on(WITH(ONCE), 2);
    struct test_exporter *a = holder(h);
    for (uint64_t i = 1; i <= 5; i++)
        send_edge(h, i, "a", "b");
    assert_int_equal(a->held_count, 1); /* the others wait for its end … */
    assert_int_equal(sum(a, TOTAL, NULL).value, 1);
    let_go(h, a);
    assert_int_equal(a->held_count, 1); /* … and become one */
    assert_int_equal(sum(a, TOTAL, NULL).value, 5);
    let_go(h, a);
    assert_int_equal(a->held_count, 0);
    harness_destroy(h);
}

static void many_series_go_in_pieces(void **state)
{
    (void)state;
    struct harness *h = harness_create(WITH("metrics_flush_interval: 10s"));
    struct test_exporter *a = holder(h);
    char name[16];
    for (uint64_t i = 1; i <= 600; i++) {
        snprintf(name, sizeof(name), "s%u", (unsigned)i);
        send_edge(h, i, name, "b");
    }
    harness_advance(h, 10 * S);
    assert_int_equal(a->held_count, 3);
    assert_int_equal(sum(a, TOTAL, NULL).points, 600);
    assert_int_equal(sum(a, "traces_service_graph_request_server", NULL).points, 600);
    assert_int_equal(harness_totals(h, METRICS).received, 1800);
    let_go(h, a);
    harness_destroy(h);
}

static void series_beyond_the_limit_become_one(void **state)
{
    (void)state;
    struct harness *h =
        harness_create(WITH("metrics_flush_interval: 10s, aggregation_cardinality_limit: 2"));
    struct test_exporter *a = holder(h);
    send_edge(h, 1, "a", "b");
    send_edge(h, 2, "b", "c");
    send_edge(h, 3, "c", "d");
    send_edge(h, 4, "e", "f");
    harness_advance(h, 10 * S);
    assert_int_equal(sum(a, TOTAL, NULL).points, 3);
    assert_int_equal(sum(a, TOTAL, NULL).value, 4);
    assert_int_equal(sum(a, TOTAL, "c").points, 0);
    struct slice request = joined_parts(a->held[0].batch);
    static const char overflow[] = "\n\024otel.metric.overflow\022\002\020\001";
    assert_non_null(memmem(request.data, request.size, overflow, sizeof(overflow) - 1));
    mem_free((void *)(uintptr_t)request.data);
    let_go(h, a);
    harness_destroy(h);
}

static void lonely_spans_expire(void **state)
{
    (void)state;
    struct harness *h =
        harness_create(WITH("store: {ttl: 3s}, store_expiration_loop: 1s, "
                            "metrics_flush_interval: 1s, virtual_node_extra_label: true"));
    struct test_exporter *a = holder(h);
    send_span(h, 0, CLIENT, 1, "a", 0);
    send_span(h, 0, SERVER, 0, "root", 0);
    send_span(h, 0, SERVER, 9, "orphan", 0);
    harness_advance(h, 3 * S);
    assert_int_equal(a->held_count, 0);
    harness_advance(h, 2 * S);
    assert_int_equal(sum(a, TOTAL, NULL).value, 2);
    assert_int_equal(sum(a, TOTAL, "a").value, 1);
    assert_int_equal(sum(a, TOTAL, "user").value, 1);
    char *page = harness_metrics(h);
    assert_non_null(strstr(
        page, "otelcol_connector_servicegraph_expired_edges{connector=\"service_graph\"} 3"));
    free(page);
    let_go(h, a);
    harness_destroy(h);
}

static void more_edges_than_max_items_are_dropped(void **state)
{
    (void)state;
    struct harness *h = harness_create(WITH("store: {max_items: 2}"));
    for (uint64_t i = 1; i <= 5; i++)
        send_span(h, 0, CLIENT, i, "a", 0);
    char *page = harness_metrics(h);
    assert_non_null(strstr(
        page, "otelcol_connector_servicegraph_dropped_spans{connector=\"service_graph\"} 3"));
    free(page);
    holder(h);
    harness_destroy(h);
}

static void old_series_end(void **state)
{
    (void)state;
    struct harness *h = harness_create(WITH("metrics_flush_interval: 1m, cache_loop: 30s"));
    struct test_exporter *a = holder(h);
    uint64_t begin_ns = clock_wall_ns();
    send_edge(h, 1, "a", "b");
    for (unsigned i = 0; i < 15; i++) {
        harness_advance(h, 60 * S);
        assert_int_equal(sum(a, TOTAL, NULL).points, 1);
        let_go(h, a);
    }
    harness_advance(h, 60 * S);
    assert_int_equal(a->held_count, 0);
    send_edge(h, 2, "a", "b");
    harness_advance(h, 60 * S);
    struct sums total = sum(a, TOTAL, NULL);
    assert_int_equal(total.value, 1);
    assert_in_range(total.start_ns, begin_ns + 900 * S, begin_ns + 960 * S);
    let_go(h, a);
    harness_destroy(h);
}

static void a_stop_sends_what_is_new(void **state)
{
    (void)state;
    struct harness *h = harness_create_on(WITH(""), 2);
    struct test_exporter *a = holder(h);
    send_edge(h, 1, "a", "b");
    harness_stop(h);
    harness_turn(h);
    assert_int_equal(a->held_count, 1);
    assert_int_equal(sum(a, TOTAL, NULL).value, 1);
    assert_false(h->has_stopped);
    harness_destroy(h);
    h = harness_create(WITH(""));
    a = holder(h);
    harness_stop(h);
    harness_turn(h);
    assert_int_equal(a->held_count, 0);
    harness_destroy(h);
}

/* A client span with an attribute of more than a megabyte, and one of the server without. */
static void large_requests_go_through_the_helper(void **state)
{
    (void)state;
    enum { TEXT_BYTES = 1100 * 1024 };
    struct harness *h = harness_create_on(WITH(ONCE), 2);
    struct test_exporter *a = holder(h);
    uint8_t *room = mem_zalloc(TEXT_BYTES + 256);
    uint8_t *text = mem_zalloc(TEXT_BYTES);
    memset(text, 'x', TEXT_BYTES);
    static const uint8_t resource[] = "\x0a\x15\x0a\x13\x0a\x0cservice.name\x12\x03\x0a\x01"
                                      "a";
    static const uint8_t span[] = "\x0a\x10\x07\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0"
                                  "\x12\x08\x01\0\0\0\0\0\0\0\x30\x03";
    size_t inner = sizeof(span) - 1 + wire_field_size(5, TEXT_BYTES); /* its name */
    struct wire_writer out = wire_writer_of(room, TEXT_BYTES + 256);
    wire_write_header(&out, 1,
                      sizeof(resource) - 1 + wire_field_size(2, wire_field_size(2, inner)));
    wire_write_raw(&out, slice_of(resource, sizeof(resource) - 1));
    wire_write_header(&out, 2, wire_field_size(2, inner));
    wire_write_header(&out, 2, inner);
    wire_write_raw(&out, slice_of(span, sizeof(span) - 1));
    wire_write_bytes(&out, 5, slice_of(text, TEXT_BYTES));
    assert_false(out.has_failed);
    struct test_request *request = harness_offer_bytes(h, 1, TRACES, wire_written(&out), 1);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    send_span(h, 0, SERVER, 1, "b", 0);
    assert_int_equal(sum(a, TOTAL, "a").value, 1);
    let_go(h, a);
    /* And at the stop. */
    request = harness_put_bytes(h, 1, TRACES, wire_written(&out), 1);
    harness_stop(h);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    mem_free(text);
    mem_free(room);
    harness_destroy(h);
}

static void times_can_lie_in_the_past(void **state)
{
    (void)state;
    struct harness *h = harness_create(WITH(ONCE ", metrics_timestamp_offset: 1h"));
    struct test_exporter *a = holder(h);
    uint64_t begin_ns = clock_wall_ns();
    harness_advance(h, 5 * S);
    send_edge(h, 1, "a", "b");
    struct sums total = sum(a, TOTAL, NULL);
    assert_int_equal(total.start_ns, begin_ns - 3600 * S);
    assert_int_equal(total.time_ns, begin_ns + 5 * S - 3600 * S);
    let_go(h, a);
    harness_destroy(h);
}

static void a_full_budget_delays_metrics(void **state)
{
    (void)state;
    struct harness *h = harness_create(WITH("metrics_flush_interval: 10s"));
    struct test_exporter *a = holder(h);
    send_edge(h, 1, "a", "b");
    struct budget *budget = &h->service->budget;
    uint64_t taken = budget_limit(budget) - budget_used(budget);
    budget_take(budget, taken);
    harness_advance(h, 10 * S);
    assert_int_equal(a->held_count, 0);
    budget_return(budget, taken);
    harness_advance(h, 10 * S);
    assert_int_equal(sum(a, TOTAL, NULL).value, 1);
    let_go(h, a);
    harness_destroy(h);
}

/* Of what batch has acknowledged: it would not be counted otherwise. */
static void acknowledged_spans_may_use_the_margin(void **state)
{
    enum { EXCESS_KIB = 16 };
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1s}}\n"
        "connectors: {service_graph: {dimensions: [service.name], metrics_flush_interval: 1h}}\n"
        "exporters: {test/a: {sending_queue: {enabled: false}}}\n"
        "service: {budget_mib: 8, pipelines: {traces: {receivers: [test], processors: [batch], "
        "exporters: [service_graph]}, metrics: {receivers: [service_graph], exporters: "
        "[test/a]}}}\n");
    struct test_exporter *a = holder(h);
    struct budget *budget = &h->service->budget;
    send_edge(h, 1, "a", "b");
    const uint64_t others = budget_limit(budget) - budget_used(budget) + (EXCESS_KIB << 10);
    budget_take(budget, others);
    harness_advance(h, 2 * DOWNSTREAM_SHUT_IN_MAX_NS);
    budget_return(budget, others);
    assert_int_equal(harness_totals(h, TRACES).delivered, 2);
    harness_stop(h);
    harness_turn(h);
    assert_int_equal(sum(a, TOTAL, NULL).value, 1);
    let_go(h, a);
    harness_destroy(h);
}

static void refused_metrics_come_again(void **state)
{
    (void)state;
    struct harness *h = harness_create(WITH("metrics_flush_interval: 10s"));
    struct test_exporter *a = holder(h);
    send_edge(h, 1, "a", "b");
    a->result = RESULT_PERMANENT;
    harness_advance(h, 10 * S);
    assert_int_equal(harness_totals(h, METRICS).delivered, 0);
    a->result = RESULT_HOLD;
    harness_advance(h, 10 * S);
    assert_int_equal(sum(a, TOTAL, NULL).value, 1);
    let_go(h, a);
    harness_destroy(h);
}

static void wrong_configurations_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {WITH("exponential_histogram_max_size: -1"),
         "`exponential_histogram_max_size` can not be negative"},
        {WITH("exponential_histogram_max_size: 3, latency_histogram_buckets: [1s]"),
         "use either `latency_histogram_buckets` or `exponential_histogram_max_size`"},
        {WITH("latency_histogram_buckets: [1s, 2 s]"),
         "latency_histogram_buckets::1: expected a duration"},
        {WITH("latency_histogram_buckets: 1s"),
         "latency_histogram_buckets: expected a list of at most 1024 durations"},
        {WITH("latency_histogram_buckets: [true]"),
         "latency_histogram_buckets::0: expected a duration"},
        {WITH("metrics_timestamp_offset: -1s"), "metrics_timestamp_offset"},
        {WITH("dimension: [a]"), "dimension"},
        {WITH("store: {ttl: 1s, wait: 1s}"), "wait"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_true(harness_is_wrong(wrong[i][0], wrong[i][1]));
}

static void too_many_attributes_are_refused(void **state)
{
    (void)state;
    char yaml[4096];
    size_t size =
        (size_t)snprintf(yaml, sizeof(yaml), "connectors: {service_graph: {dimensions: [");
    for (unsigned i = 0; i < 64; i++)
        size += (size_t)snprintf(yaml + size, sizeof(yaml) - size, "d%u, ", i);
    snprintf(yaml + size, sizeof(yaml) - size,
             "]}}\nexporters: {test/a: {}}\n"
             "service: {pipelines: {traces: {receivers: [test], exporters: [service_graph]},"
             " metrics: {receivers: [service_graph], exporters: [test/a]}}}\n");
    assert_true(harness_is_wrong(yaml, "name more than 63 different attributes"));
}

static void odd_configurations_work(void **state)
{
    (void)state;
    static const char *const odd[] = {
        WITH(ONCE ", latency_histogram_buckets: []"),
        WITH(ONCE ", latency_histogram_buckets: [5000000, 2ms]"),
        WITH(ONCE ", latency_histogram_buckets: null, exponential_histogram_max_size: 1"),
        WITH(ONCE ", latency_histogram_buckets: [1s], exponential_histogram_max_size: -1"),
        WITH(ONCE ", exponential_histogram_max_size: 100000"),
        WITH(ONCE ", cache_loop: -1s, store_expiration_loop: 0, store: {ttl: -1s}"),
        WITH("metrics_flush_interval: -5s, dimensions: [a, a, ''], virtual_node_peer_attributes: "
             "[]"),
    };
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        struct harness *h = harness_create(odd[i]);
        struct test_exporter *a = holder(h);
        send_edge(h, 1, "a", "b");
        assert_int_equal(sum(a, "traces_service_graph_request_client", "a").value, 1);
        let_go(h, a);
        harness_destroy(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_come_at_the_interval_and_stay),
        cmocka_unit_test(lanes_share_edges_and_series),
        cmocka_unit_test(one_flush_at_a_time),
        cmocka_unit_test(many_series_go_in_pieces),
        cmocka_unit_test(series_beyond_the_limit_become_one),
        cmocka_unit_test(lonely_spans_expire),
        cmocka_unit_test(more_edges_than_max_items_are_dropped),
        cmocka_unit_test(old_series_end),
        cmocka_unit_test(a_stop_sends_what_is_new),
        cmocka_unit_test(large_requests_go_through_the_helper),
        cmocka_unit_test(times_can_lie_in_the_past),
        cmocka_unit_test(a_full_budget_delays_metrics),
        cmocka_unit_test(acknowledged_spans_may_use_the_margin),
        cmocka_unit_test(refused_metrics_come_again),
        cmocka_unit_test(wrong_configurations_are_refused),
        cmocka_unit_test(too_many_attributes_are_refused),
        cmocka_unit_test(odd_configurations_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
