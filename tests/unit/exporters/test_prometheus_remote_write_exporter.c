/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus_remote_write against a scripted back-end: what is sent, what each response means, what
 * is refused in the configuration. test_remote_write_writer.c has the series themselves. */
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/codec/codec.h"
#include "src/config/config.h"
#include "src/core/component.h"
#include "src/otlp/wire.h"
#include "tests/support/scripted_backend.h"
#include "tests/unit/exporters/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern const struct component_factory prometheus_remote_write_exporter_factory;

struct fixture {
    struct lane *lane;
    struct scripted_backend *backend;
    struct exporter_fixture exporter;
};

static void set_up(struct fixture *fixture, const struct backend_step *steps, size_t count,
                   const char *options)
{
    char yaml[1024];
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 1136214245 * (uint64_t)NS_PER_S);
    fixture->lane = lane_create(0);
    fixture->backend = scripted_backend_create(fixture->lane, steps, count);
    snprintf(yaml, sizeof(yaml), "{endpoint: '%s/api/v1/write', %s}",
             scripted_backend_url(fixture->backend), options);
    exporter_open(&fixture->exporter, fixture->lane, &prometheus_remote_write_exporter_factory,
                  yaml, METRICS);
}

static void tear_down(struct fixture *fixture)
{
    exporter_close(&fixture->exporter);
    scripted_backend_destroy(fixture->backend);
    lane_destroy(fixture->lane);
    clock_fake_stop();
}

#define HEAD(status, extra, size) "HTTP/1.1 " status "\r\n" extra "Content-Length: " size "\r\n\r\n"
#define OK_EMPTY                  HEAD("204 No Content", "", "0")

/* Gauges named aa, ab, … with a point each, of which the first `deltas` are sums of deltas. */
static struct slice gauges(size_t count, size_t deltas, size_t attribute_bytes)
{
    enum { METRIC_BYTES_MAX = 96 };
    size_t room = count * (METRIC_BYTES_MAX + attribute_bytes) + METRIC_BYTES_MAX;
    char *filler = mem_zalloc(attribute_bytes + 1);
    memset(filler, 'v', attribute_bytes);
    uint8_t *memory = mem_alloc(room);
    struct wire_writer metrics = wire_writer_of(memory, room);
    for (size_t i = 0; i < count; i++) {
        const char name[] = {(char)('a' + i / 26), (char)('a' + i % 26), '\0'};
        size_t value = wire_field_size(1, attribute_bytes);
        size_t attribute = wire_field_size(1, 1) + wire_field_size(2, value);
        size_t point = 2 * 9 + (attribute_bytes > 0 ? wire_field_size(7, attribute) : 0);
        size_t data = wire_field_size(1, point) + (i < deltas ? 2 : 0);
        size_t metric = wire_field_size(1, strlen(name)) + wire_field_size(5, data);
        wire_write_header(&metrics, 2, metric);
        wire_write_bytes(&metrics, 1, slice_of_text(name));
        wire_write_header(&metrics, i < deltas ? 7 : 5, data);
        wire_write_header(&metrics, 1, point);
        wire_write_fixed64(&metrics, 3, 5000000);
        wire_write_fixed64(&metrics, 6, 7);
        if (attribute_bytes > 0) {
            wire_write_header(&metrics, 7, attribute);
            wire_write_bytes(&metrics, 1, slice_of_text("k"));
            wire_write_header(&metrics, 2, value);
            wire_write_bytes(&metrics, 1, slice_of(filler, attribute_bytes));
        }
        if (i < deltas)
            wire_write_number(&metrics, 2, 1);
    }
    mem_free(filler);
    struct slice list = wire_written(&metrics);
    size_t scope = wire_field_size(2, list.size);
    struct wire_writer whole = wire_writer_of(mem_alloc(room + 64), room + 64);
    wire_write_header(&whole, 1, scope);
    wire_write_bytes(&whole, 2, list);
    mem_free(memory);
    return wire_written(&whole);
}

static void release(struct slice request)
{
    mem_free((void *)(uintptr_t)request.data);
}

/* Exports so many metrics and waits for the result. */
static void export(struct fixture *fixture, size_t count, size_t deltas)
{
    struct slice request = gauges(count, deltas, 0);
    exporter_export(&fixture->exporter, request, count);
    release(request);
}

static void check_body(const struct fixture *fixture, struct slice expected)
{
    struct codec_box *box = codec_box_create(NULL);
    struct buffer *output;
    size_t size;
    const char *body = scripted_backend_body(fixture->backend, &size);
    assert_int_equal(codec_inflate(box, CODEC_SNAPPY, slice_of(body, size), 100000, &output),
                     CODEC_OK);
    assert_true(slice_equal(buffer_slice(output), expected));
    buffer_unref(output);
    codec_box_destroy(box);
}

#define SAMPLE "\x12\x0b\x09\x00\x00\x00\x00\x00\x00\x1c\x40\x10\x05"

static void metrics_are_posted(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    static const char expected[] = "\x0a\x1d\x0a\x0e\x0a\x08__name__\x12\x02"
                                   "aa" SAMPLE;
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1, "");
    export(&fixture, 1, 0);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 0);
    const char *head = scripted_backend_head(fixture.backend);
    assert_non_null(strstr(head, "POST /api/v1/write HTTP/1.1\r\n"));
    assert_non_null(strstr(head, "Content-Type: application/x-protobuf\r\n"));
    assert_non_null(strstr(head, "Content-Encoding: snappy\r\n"));
    assert_non_null(strstr(head, "X-Prometheus-Remote-Write-Version: 0.1.0\r\n"));
    check_body(&fixture, slice_of(expected, sizeof(expected) - 1));
    tear_down(&fixture);
}

static const char version_2[] = "protobuf_message: io.prometheus.write.v2.Request";

static uint64_t counted(const struct fixture *fixture, const char *name)
{
    const struct component *exporter = fixture->exporter.component;
    for (const struct counter_row *row = exporter->factory->counters; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return counter_read(
                (const counter *)(const void *)((const char *)exporter->counters + row->offset));
    fail_msg("no counter %s", name);
    return 0;
}

static void version_2_is_posted(void **state)
{
#define WRITTEN "X-Prometheus-Remote-Write-"
    static const struct backend_step steps[] = {
        {.response = HEAD("204 No Content",
                          WRITTEN "Samples-Written: 3\r\n" WRITTEN "Samples-Written: 8\r\n" WRITTEN
                                  "histograms-written: 0\r\n" WRITTEN "Exemplars-Written: 2\r\n",
                          "0")},
        /* What was written counts in a failure, too; what is no number does not. */
        {.response =
             HEAD("400 Bad Request",
                  WRITTEN "Samples-Written: 4\r\n" WRITTEN "Histograms-Written: 1x\r\n" WRITTEN
                          "Exemplars-Written: 12345678901234567890123456\r\n",
                  "0")},
        {.response = HEAD("204 No Content", WRITTEN "Samples-Written: -4\r\n", "0")},
    };
    static const char expected[] = "\x22\x00\x22\x08__name__\x22\x02"
                                   "aa"
                                   "\x2a\x15\x0a\x02\x01\x02" SAMPLE "\x2a\x02\x08\x02";
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 3, version_2);
    export(&fixture, 1, 0);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    const char *head = scripted_backend_head(fixture.backend);
    assert_non_null(strstr(
        head, "Content-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request\r\n"));
    assert_non_null(strstr(head, "Content-Encoding: snappy\r\n"));
    assert_non_null(strstr(head, "X-Prometheus-Remote-Write-Version: 2.0.0\r\n"));
    check_body(&fixture, slice_of(expected, sizeof(expected) - 1));
#define COUNTED(what) counted(&fixture, "otelcol_exporter_prometheusremotewrite_written_" what)
    assert_int_equal(COUNTED("samples"), 3);
    assert_int_equal(COUNTED("histograms"), 0);
    assert_int_equal(COUNTED("exemplars"), 2);
    export(&fixture, 1, 0);
    assert_true(fixture.exporter.outcome.is_permanent);
    export(&fixture, 1, 0);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(COUNTED("samples"), 7);
    assert_int_equal(COUNTED("histograms"), 0);
    assert_int_equal(COUNTED("exemplars"), 2);
#undef COUNTED
#undef WRITTEN
    tear_down(&fixture);
}

static void configured_headers_win(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1,
           "headers: {X-Scope-OrgID: a, Content-Type: text/x, content-encoding: own, "
           "x-prometheus-remote-write-version: '9'}");
    export(&fixture, 1, 0);
    const char *head = scripted_backend_head(fixture.backend);
    assert_non_null(strstr(head, "X-Scope-OrgID: a\r\n"));
    assert_non_null(strstr(head, "Content-Type: text/x\r\n"));
    assert_non_null(strstr(head, "content-encoding: own\r\n"));
    assert_non_null(strstr(head, "x-prometheus-remote-write-version: 9\r\n"));
    assert_null(strstr(head, "snappy"));
    assert_null(strstr(head, "Version: 0.1.0"));
    tear_down(&fixture);
}

static void deltas_are_counted(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1, "");
    export(&fixture, 3, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 1);
    assert_int_equal(fixture.exporter.outcome.invalid_items, 1);
    assert_int_equal(scripted_backend_requests(fixture.backend), 1);
    /* Nothing is left of this one: no request. */
    export(&fixture, 1, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.exporter.outcome.invalid_items, 1);
    assert_int_equal(scripted_backend_requests(fixture.backend), 1);
    tear_down(&fixture);
}

static uint64_t unusable_deltas(const struct fixture *fixture)
{
    return counted(fixture, "spanflame_remote_write_unusable_points");
}

static void retries_count_deltas_once(void **state)
{
    static const struct backend_step steps[] = {{.response = HEAD("503 S", "", "0")},
                                                {.response = HEAD("503 S", "", "0")},
                                                {.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 3, "");
    for (unsigned i = 0; i < 3; i++)
        export(&fixture, 3, 1);
    assert_int_equal(scripted_backend_requests(fixture.backend), 3);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(unusable_deltas(&fixture), 1);
    assert_int_equal(
        counted(&fixture, "otelcol_exporter_prometheusremotewrite_failed_translations"), 1);
    tear_down(&fixture);
}

static void server_errors_are_tried_again(void **state)
{
    static const struct {
        struct backend_step step;
        enum verdict verdict;
        enum status_code code;
        bool is_permanent;
        uint64_t retry_after_s;
        const char *message;
    } rows[] = {
        {{.response = HEAD("200 OK", "", "4") "junk"}, .verdict = ACCEPTED},
        {{.response = HEAD("503 S", "Retry-After: 5\r\n", "0")},
         REFUSED,
         STATUS_UNAVAILABLE,
         false,
         5,
         "503"},
        {{.response = HEAD("429 T", "Retry-After: 7\r\n", "0")},
         REFUSED,
         STATUS_RESOURCE_EXHAUSTED,
         false,
         7,
         "429"},
        {{.response = HEAD("500 E", "", "4") "down"},
         REFUSED,
         STATUS_UNKNOWN,
         false,
         0,
         "500: down"},
        {{.response = HEAD("404 N", "", "0")}, REFUSED, STATUS_UNIMPLEMENTED, true, 0, "404"},
        {{.response = HEAD("401 U", "", "0")}, REFUSED, STATUS_UNAUTHENTICATED, true, 0, "401"},
        {{.response = HEAD("400 B", "", "12") "out of order"},
         REFUSED,
         STATUS_INVALID_ARGUMENT,
         true,
         0,
         "400: out of order"},
        {{.response = HEAD("302 F", "", "0")}, REFUSED, STATUS_UNKNOWN, true, 0, "302"},
        {{.closes_unheard = true}, REFUSED, STATUS_UNAVAILABLE, false, 0, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        char expected[256];
        set_up(&fixture, &rows[i].step, 1, "");
        export(&fixture, 1, 0);
        const struct outcome *outcome = &fixture.exporter.outcome;
        print_message("   %zu %s\n", i, fixture.exporter.message);
        assert_int_equal(outcome->verdict, rows[i].verdict);
        assert_int_equal(outcome->code, rows[i].code);
        assert_int_equal(outcome->is_permanent, rows[i].is_permanent);
        assert_int_equal(outcome->retry_after_ns, rows[i].retry_after_s * NS_PER_S);
        snprintf(expected, sizeof(expected), "responded with HTTP Status Code %s",
                 rows[i].message != NULL ? rows[i].message : "");
        if (rows[i].message != NULL)
            assert_non_null(strstr(fixture.exporter.message, expected));
        tear_down(&fixture);
    }
}

static void redirects_are_followed(void **state)
{
    static const struct backend_step steps[] = {
        {.response = HEAD("307 T", "Location: /other\r\n", "0")}, {.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 2, "timeout: 0");
    export(&fixture, 1, 0);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(scripted_backend_requests(fixture.backend), 2);
    assert_non_null(strstr(scripted_backend_head(fixture.backend), "POST /other HTTP/1.1\r\n"));
    tear_down(&fixture);
}

/* Requests of one batch, and their responses. */
static void parts_of_a_batch_have_one_result(void **state)
{
#define REFUSAL HEAD("400 B", "", "3") "bad"
#define BUSY    HEAD("503 S", "Retry-After: 9\r\n", "0")
    static const struct {
        struct backend_step steps[3];
        enum verdict verdict;
        bool is_permanent;
        uint64_t rejected;
        uint64_t retry_after_s;
    } rows[] = {
        {.steps = {{.response = OK_EMPTY}, {.response = OK_EMPTY}, {.response = OK_EMPTY}},
         .verdict = ACCEPTED},
        {.steps = {{.response = OK_EMPTY}, {.response = REFUSAL}, {.response = OK_EMPTY}},
         .verdict = ACCEPTED,
         .rejected = 1},
        {.steps = {{.response = REFUSAL}, {.response = REFUSAL}, {.response = REFUSAL}},
         .verdict = REFUSED,
         .is_permanent = true},
        {.steps = {{.response = REFUSAL}, {.response = BUSY}, {.response = OK_EMPTY}},
         .verdict = REFUSED,
         .retry_after_s = 9},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        set_up(&fixture, rows[i].steps, 3,
               "max_batch_size_bytes: 1, remote_write_queue: "
               "{num_consumers: 1}");
        export(&fixture, 3, 0);
        const struct outcome *outcome = &fixture.exporter.outcome;
        assert_int_equal(scripted_backend_requests(fixture.backend), 3);
        assert_int_equal(scripted_backend_connections(fixture.backend), 1);
        assert_int_equal(outcome->verdict, rows[i].verdict);
        assert_int_equal(outcome->is_permanent, rows[i].is_permanent);
        assert_int_equal(outcome->rejected_items, rows[i].rejected);
        assert_int_equal(outcome->retry_after_ns, rows[i].retry_after_s * NS_PER_S);
        tear_down(&fixture);
    }
}

static void parts_of_a_batch_are_sent_side_by_side(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    static const struct {
        const char *options;
        unsigned connections;
    } rows[] = {
        {"", 5},
        {"max_batch_request_parallelism: 2", 2},
        {"remote_write_queue: {num_consumers: 3}", 3},
        {"remote_write_queue: {num_consumers: 0}", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char options[128];
        struct fixture fixture;
        snprintf(options, sizeof(options), "max_batch_size_bytes: 1, %s", rows[i].options);
        set_up(&fixture, steps, 1, options);
        export(&fixture, 20, 0);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        assert_int_equal(scripted_backend_requests(fixture.backend), 20);
        assert_int_equal(scripted_backend_connections(fixture.backend), rows[i].connections);
        tear_down(&fixture);
    }
}

/* Large requests, and small ones of which much becomes, are the helper's work. */
static void large_requests_are_translated_by_the_helper(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    static const struct {
        size_t metrics;
        size_t attribute_bytes;
    } rows[] = {{1, HELPED_BYTES_MIN}, {9, 100000}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        struct slice request = gauges(rows[i].metrics, 0, rows[i].attribute_bytes);
        set_up(&fixture, steps, 1, "timeout: 0, max_batch_size_bytes: 250000");
        exporter_offer(&fixture.exporter, request, rows[i].metrics);
        assert_int_equal(fixture.exporter.results, 0);
        exporter_wait(&fixture.exporter, 1);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        assert_int_equal(scripted_backend_requests(fixture.backend), i == 0 ? 1 : 5);
        tear_down(&fixture);
        release(request);
    }
}

static void stopping_waits_for_the_helper(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct slice request = gauges(1, 0, HELPED_BYTES_MIN);
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1, "");
    exporter_offer(&fixture.exporter, request, 1);
    exporter_close(&fixture.exporter);
    assert_int_equal(fixture.exporter.results, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_false(fixture.exporter.outcome.is_permanent);
    scripted_backend_destroy(fixture.backend);
    lane_destroy(fixture.lane);
    clock_fake_stop();
    release(request);
}

/* What is not sent when the exporter stops may be sent by the next one. */
static void stopping_ends_batches_between_requests(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct slice request = gauges(50, 0, 0);
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1, "max_batch_size_bytes: 1");
    exporter_offer(&fixture.exporter, request, 50);
    assert_int_equal(fixture.exporter.results, 0);
    exporter_close(&fixture.exporter);
    assert_int_equal(fixture.exporter.results, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_false(fixture.exporter.outcome.is_permanent);
    scripted_backend_destroy(fixture.backend);
    lane_destroy(fixture.lane);
    clock_fake_stop();
    release(request);
}

/* Beyond a quarter of the budget no later attempt could succeed. */
static void what_never_fits_is_refused_for_good(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct slice request = gauges(60, 0, 100000);
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1, "");
    budget_lower(&fixture.exporter.budget, 16 << 20);
    exporter_export(&fixture.exporter, request, 60);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_true(outcome_is_too_large(&fixture.exporter.outcome));
    assert_non_null(strstr(fixture.exporter.message, "send_batch_max_size"));
    assert_int_equal(scripted_backend_requests(fixture.backend), 0);
    tear_down(&fixture);
    release(request);
}

static void without_memory_the_batch_may_come_again(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1, "");
    budget_lower(&fixture.exporter.budget, 100);
    export(&fixture, 1, 0);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_int_equal(fixture.exporter.outcome.code, STATUS_UNAVAILABLE);
    assert_false(fixture.exporter.outcome.is_permanent);
    tear_down(&fixture);
}

/* Else nothing that waits would ever come free. */
static void a_budget_that_the_queue_fills_does_not_keep_it_waiting(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1, "");
    const uint64_t limit = budget_limit(&fixture.exporter.budget);
    const uint64_t all = limit + limit / BUDGET_MARGIN_PART;
    budget_take(&fixture.exporter.budget, all);
    export(&fixture, 1, 0);
    exporter_wait_for_memory(&fixture.exporter);
    export(&fixture, 1, 0);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    budget_return(&fixture.exporter.budget, all);
    tear_down(&fixture);
}

/* Whichever allocation fails, the batch has a result, and may come again. */
static void each_allocation_may_fail(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    bool is_done = false;
    (void)state;
    for (uint64_t n = 2; !is_done; n++) { /* the first is the test's own */
        struct fixture fixture;
        struct slice request = gauges(4, 0, 0);
        set_up(&fixture, steps, 1, "max_batch_size_bytes: 1");
        exporter_offer(&fixture.exporter, slice_of(NULL, 0), 0); /* makes what is kept */
        exporter_wait(&fixture.exporter, 1);
        uint64_t before = mem_tries();
        mem_refuse_nth(n);
        exporter_offer(&fixture.exporter, request, 4);
        is_done = mem_tries() - before < n;
        mem_refuse_nth(0);
        exporter_wait(&fixture.exporter, 2);
        if (is_done)
            assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        else
            assert_false(fixture.exporter.outcome.is_permanent);
        tear_down(&fixture);
        release(request);
    }
}

static void mistakes_in_the_configuration_are_found(void **state)
{
    static const struct {
        const char *yaml;
        const char *problem; /* NULL: none */
    } rows[] = {
        {"{endpoint: 'http://a:9090/api/v1/write', namespace: x, external_labels: {a: b}, "
         "remote_write_queue: {enabled: true, queue_size: 5, num_consumers: 2}, timeout: 1s, "
         "resource_to_telemetry_conversion: {enabled: true, exclude_service_attributes: true}, "
         "target_info: {enabled: false}, disable_scope_info: true, add_metric_suffixes: false, "
         "translation_strategy: UnderscoreEscapingWithoutSuffixes, send_metadata: true, "
         "max_batch_size_bytes: 0, max_batch_request_parallelism: 3, compression: snappy, "
         "protobuf_message: prometheus.WriteRequest, tls: {insecure_skip_verify: true}, "
         "write_buffer_size: 5, retry_on_failure: {enabled: false}}",
         NULL},
        {"{}", NULL},
        {"{remote_write_queue: {enabled: false, queue_size: 0}}", NULL},
        {"{endpoint: ''}", "invalid endpoint"},
        {"{endpoint: 'ftp://a'}", "endpoint must be a valid URL"},
        {"{remote_write_queue: {queue_size: 0}}", "a 0 size queue will drop all the data"},
        {"{remote_write_queue: {queue_size: -1}}", "queue_size"},
        {"{remote_write_queue: {num_consumers: -1}}", "num_consumers"},
        {"{max_batch_request_parallelism: 0}", "max_batch_request_parallelism"},
        {"{max_batch_size_bytes: -1}", "max_batch_size_bytes"},
        {"{compression: gzip}", "compression type must be snappy"},
        {"{protobuf_message: io.prometheus.write.v2.Request}", NULL},
        {"{protobuf_message: io.prometheus.write.v2.Request, translation_strategy: NoTranslation}",
         NULL},
        {"{protobuf_message: io.prometheus.write.v2.Request, "
         "translation_strategy: NoUTF8EscapingWithSuffixes}",
         NULL},
        {"{protobuf_message: x}", "protobuf_message"},
        {"{translation_strategy: NoTranslation}",
         "translation strategy NoTranslation requires Prometheus Remote Write 2.0"},
        {"{translation_strategy: x}", "translation_strategy"},
        {"{wal: {directory: /tmp/a, buffer_size: -1, truncate_frequency: -1s, "
         "lag_record_frequency: 1h}}",
         NULL},
        {"{wal: {}}", NULL},
        {"{wal: {directory: /tmp/a}, remote_write_queue: {enabled: false}}", NULL},
        {"{wal: {buffer_size: x}}", "buffer_size"},
        {"{wal: {size: 1}}", "size"},
        {"{external_labels: {a: ''}}", "contains an empty key or value"},
        {"{external_labels: {____: a}}", "contains only underscores"},
        {"{retry_on_failure: {multiplier: -1}}", "'multiplier' must be non-negative"},
        {"{sending_queue: {queue_size: 1}}", "sending_queue"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config *config = NULL;
        char problems[2048] = "";
        bool is_good = exporter_try_load(&prometheus_remote_write_exporter_factory, rows[i].yaml,
                                         &config, problems, sizeof(problems));
        print_message("   %s: %s\n", rows[i].yaml, problems);
        assert_int_equal(is_good, rows[i].problem == NULL);
        if (rows[i].problem != NULL)
            assert_non_null(strstr(problems, rows[i].problem));
        config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_are_posted),
        cmocka_unit_test(version_2_is_posted),
        cmocka_unit_test(configured_headers_win),
        cmocka_unit_test(deltas_are_counted),
        cmocka_unit_test(retries_count_deltas_once),
        cmocka_unit_test(server_errors_are_tried_again),
        cmocka_unit_test(redirects_are_followed),
        cmocka_unit_test(parts_of_a_batch_have_one_result),
        cmocka_unit_test(parts_of_a_batch_are_sent_side_by_side),
        cmocka_unit_test(large_requests_are_translated_by_the_helper),
        cmocka_unit_test(stopping_waits_for_the_helper),
        cmocka_unit_test(stopping_ends_batches_between_requests),
        cmocka_unit_test(what_never_fits_is_refused_for_good),
        cmocka_unit_test(without_memory_the_batch_may_come_again),
        cmocka_unit_test(a_budget_that_the_queue_fills_does_not_keep_it_waiting),
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(mistakes_in_the_configuration_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
