/* SPDX-License-Identifier: Apache-2.0 */
/* zipkin against a scripted back-end: what is sent, what each response means, what is refused in
 * the configuration. test_zipkin_writer.c has the spans themselves. */
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
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

extern const struct component_factory zipkin_exporter_factory;

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
    snprintf(yaml, sizeof(yaml), "{endpoint: '%s/api/v2/spans', %s}",
             scripted_backend_url(fixture->backend), options);
    exporter_open(&fixture->exporter, fixture->lane, &zipkin_exporter_factory, yaml, TRACES);
}

static void tear_down(struct fixture *fixture)
{
    exporter_close(&fixture->exporter);
    scripted_backend_destroy(fixture->backend);
    lane_destroy(fixture->lane);
    clock_fake_stop();
}

#define OK_EMPTY "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
#define IDS                                                                                        \
    "\x0a\x10"                                                                                     \
    "0123456789abcdef\x12\x08"                                                                     \
    "01234567"

/* One span; two, of which the first has no ids; one without. */
#define SPAN "\x0a\x20\x12\x1e\x12\x1c" IDS
static const char one_span[] = SPAN;
static const char two_spans[] = "\x0a\x22\x12\x20\x12\x00\x12\x1c" IDS;
static const char no_ids[] = "\x0a\x04\x12\x02\x12\x00";
static const char json_of_one[] =
    "[{\"traceId\":\"30313233343536373839616263646566\",\"id\":\"3031323334353637\","
    "\"localEndpoint\":{\"serviceName\":\"otlpresourcenoservicename\"}}]";

static void check_body(const struct fixture *fixture, struct slice expected)
{
    size_t size;
    const char *body = scripted_backend_body(fixture->backend, &size);
    assert_true(slice_equal(slice_of(body, size), expected));
}

static void spans_are_posted_as_json(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1, "");
    exporter_export(&fixture.exporter, slice_of(one_span, sizeof(one_span) - 1), 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 0);
    const char *head = scripted_backend_head(fixture.backend);
    assert_non_null(strstr(head, "POST /api/v2/spans HTTP/1.1\r\n"));
    assert_non_null(strstr(head, "Content-Type: application/json\r\n"));
    assert_null(strstr(head, "Content-Encoding"));
    check_body(&fixture, slice_of_text(json_of_one));
    tear_down(&fixture);
}

static void spans_may_be_protobuf_and_compressed(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    static const char expected[] = "\x0a\x39\x0a\x10"
                                   "0123456789abcdef\x1a\x08"
                                   "01234567\x42\x1b\x0a\x19OTLPResourceNoServiceName";
    struct codec_box *box = codec_box_create(NULL);
    struct buffer *output;
    struct fixture fixture;
    size_t size;
    (void)state;
    set_up(&fixture, steps, 1, "format: proto, compression: gzip, headers: {X-Scope: a}");
    exporter_export(&fixture.exporter, slice_of(one_span, sizeof(one_span) - 1), 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    const char *head = scripted_backend_head(fixture.backend);
    assert_non_null(strstr(head, "Content-Type: application/x-protobuf\r\n"));
    assert_non_null(strstr(head, "Content-Encoding: gzip\r\n"));
    assert_non_null(strstr(head, "X-Scope: a\r\n"));
    const char *body = scripted_backend_body(fixture.backend, &size);
    assert_int_equal(codec_inflate(box, CODEC_GZIP, slice_of(body, size), 1000, &output), CODEC_OK);
    assert_true(slice_equal(buffer_slice(output), slice_of(expected, sizeof(expected) - 1)));
    buffer_unref(output);
    codec_box_destroy(box);
    tear_down(&fixture);
}

static void spans_without_ids_are_counted(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1, "");
    exporter_export(&fixture.exporter, slice_of(two_spans, sizeof(two_spans) - 1), 2);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 1);
    assert_int_equal(fixture.exporter.outcome.invalid_items, 1);
    check_body(&fixture, slice_of_text(json_of_one));
    /* Nothing is left of this one: no request. */
    exporter_export(&fixture.exporter, slice_of(no_ids, sizeof(no_ids) - 1), 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.exporter.outcome.invalid_items, 1);
    assert_int_equal(scripted_backend_requests(fixture.backend), 1);
    tear_down(&fixture);
}

#define HEAD(status, extra, size) "HTTP/1.1 " status "\r\n" extra "Content-Length: " size "\r\n\r\n"

static void all_but_bad_requests_are_tried_again(void **state)
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
        {{.response = HEAD("204 N", "", "0")}, .verdict = ACCEPTED},
        {{.response = HEAD("503 S", "Retry-After: 5\r\n", "0")},
         REFUSED,
         STATUS_UNAVAILABLE,
         false,
         5,
         "503"},
        {{.response = HEAD("429 T", "", "0")}, REFUSED, STATUS_RESOURCE_EXHAUSTED, false, 0, "429"},
        {{.response = HEAD("500 E", "", "4") "down"},
         REFUSED,
         STATUS_UNKNOWN,
         false,
         0,
         "500: down"},
        {{.response = HEAD("404 N", "", "0")}, REFUSED, STATUS_UNIMPLEMENTED, false, 0, "404"},
        {{.response = HEAD("401 U", "", "0")}, REFUSED, STATUS_UNAUTHENTICATED, false, 0, "401"},
        {{.response = HEAD("400 B", "", "3") "bad"},
         REFUSED,
         STATUS_INVALID_ARGUMENT,
         true,
         0,
         "400: bad"},
        {{.response = HEAD("413 L", "", "0")}, REFUSED, STATUS_UNKNOWN, true, 0, "413"},
        {{.closes_unheard = true}, REFUSED, STATUS_UNAVAILABLE, false, 0, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        char expected[256];
        set_up(&fixture, &rows[i].step, 1, "");
        exporter_export(&fixture.exporter, slice_of(one_span, sizeof(one_span) - 1), 1);
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

/* A resource with an attribute of that size, and so many spans. */
static struct slice repeated(size_t attribute_bytes, size_t spans)
{
    enum { SPAN_BYTES = sizeof(IDS) - 1, HEADERS_MAX = 64 };
    size_t value = wire_field_size(1, attribute_bytes);
    size_t attribute = wire_field_size(1, 1) + wire_field_size(2, value);
    size_t resource = wire_field_size(1, attribute);
    size_t scope = spans * wire_field_size(2, SPAN_BYTES);
    size_t content = wire_field_size(1, resource) + wire_field_size(2, scope);
    size_t room = content + HEADERS_MAX;
    char *filler = mem_alloc(attribute_bytes);
    memset(filler, 'v', attribute_bytes);
    struct wire_writer writer = wire_writer_of(mem_alloc(room), room);
    wire_write_header(&writer, 1, content);
    wire_write_header(&writer, 1, resource);
    wire_write_header(&writer, 1, attribute);
    wire_write_bytes(&writer, 1, slice_of("k", 1));
    wire_write_header(&writer, 2, value);
    wire_write_bytes(&writer, 1, slice_of(filler, attribute_bytes));
    wire_write_header(&writer, 2, scope);
    for (size_t i = 0; i < spans; i++)
        wire_write_bytes(&writer, 2, slice_of(IDS, SPAN_BYTES));
    mem_free(filler);
    return wire_written(&writer);
}

/* Large requests, and small ones with large bodies, are the helper's work. */
static void large_bodies_are_written_by_the_helper(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    static const struct {
        size_t attribute_bytes;
        size_t spans;
    } rows[] = {{HELPED_BYTES_MIN, 1}, {50000, 100}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        size_t size;
        struct slice request = repeated(rows[i].attribute_bytes, rows[i].spans);
        set_up(&fixture, steps, 1, "timeout: 0");
        exporter_offer(&fixture.exporter, request, rows[i].spans);
        assert_int_equal(fixture.exporter.results, 0);
        exporter_wait(&fixture.exporter, 1);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        scripted_backend_body(fixture.backend, &size);
        assert_true(size > rows[i].attribute_bytes * rows[i].spans);
        tear_down(&fixture);
        mem_free((void *)(uintptr_t)request.data);
    }
}

static void stopping_waits_for_the_helper(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct slice request = repeated(HELPED_BYTES_MIN, 1);
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
    mem_free((void *)(uintptr_t)request.data);
}

/* Beyond a quarter of the budget no later attempt could succeed. */
static void bodies_that_never_fit_are_refused_for_good(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct slice request = repeated(50000, 100);
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1, "");
    budget_lower(&fixture.exporter.budget, 16 << 20);
    exporter_export(&fixture.exporter, request, 100);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_true(outcome_is_too_large(&fixture.exporter.outcome));
    assert_non_null(strstr(fixture.exporter.message, "sending_queue::batch::max_size"));
    assert_int_equal(scripted_backend_requests(fixture.backend), 0);
    tear_down(&fixture);
    mem_free((void *)(uintptr_t)request.data);
}

static void without_memory_the_batch_may_come_again(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1, "");
    budget_lower(&fixture.exporter.budget, 100);
    exporter_export(&fixture.exporter, slice_of(one_span, sizeof(one_span) - 1), 1);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_int_equal(fixture.exporter.outcome.code, STATUS_UNAVAILABLE);
    assert_false(fixture.exporter.outcome.is_permanent);
    tear_down(&fixture);
}

/* Else nothing that waits would ever come free. */
static void a_budget_that_the_queue_fills_does_not_keep_it_waiting(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}, {.response = OK_EMPTY}};
    struct slice request = repeated(HELPED_BYTES_MIN, 1);
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 2, "compression: gzip");
    const uint64_t limit = budget_limit(&fixture.exporter.budget);
    const uint64_t all = limit + limit / BUDGET_MARGIN_PART;
    budget_take(&fixture.exporter.budget, all);
    exporter_export(&fixture.exporter, slice_of(one_span, sizeof(one_span) - 1), 1);
    exporter_wait_for_memory(&fixture.exporter);
    exporter_export(&fixture.exporter, slice_of(one_span, sizeof(one_span) - 1), 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    exporter_export(&fixture.exporter, request, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    budget_return(&fixture.exporter.budget, all);
    tear_down(&fixture);
    mem_free((void *)(uintptr_t)request.data);
}

static void mistakes_in_the_configuration_are_found(void **state)
{
    static const struct {
        const char *yaml;
        const char *problem; /* NULL: none */
    } rows[] = {
        {"{endpoint: 'http://a:9411/api/v2/spans', format: proto, default_service_name: x, "
         "timeout: 1s, write_buffer_size: 5, tls: {insecure_skip_verify: true}, "
         "sending_queue: {queue_size: 5}, retry_on_failure: {enabled: false}}",
         NULL},
        {"{}", "endpoint required"},
        {"{endpoint: 'ftp://a'}", "endpoint must be a valid URL"},
        {"{endpoint: 'http://a', format: thrift}", "format"},
        {"{endpoint: 'http://a', compression: brotli}", "compression"},
        {"{endpoint: 'http://a', compression: snappy, compression_params: {level: 3}}",
         "unsupported parameters"},
        {"{endpoint: 'http://a', proxy_url: 'proxy:3128'}", "proxy_url does not begin with"},
        {"{endpoint: 'http://a', encoding: json}", "encoding"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config *config = NULL;
        char problems[2048] = "";
        bool is_good = exporter_try_load(&zipkin_exporter_factory, rows[i].yaml, &config, problems,
                                         sizeof(problems));
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
        cmocka_unit_test(spans_are_posted_as_json),
        cmocka_unit_test(spans_may_be_protobuf_and_compressed),
        cmocka_unit_test(spans_without_ids_are_counted),
        cmocka_unit_test(all_but_bad_requests_are_tried_again),
        cmocka_unit_test(large_bodies_are_written_by_the_helper),
        cmocka_unit_test(stopping_waits_for_the_helper),
        cmocka_unit_test(bodies_that_never_fit_are_refused_for_good),
        cmocka_unit_test(without_memory_the_batch_may_come_again),
        cmocka_unit_test(a_budget_that_the_queue_fills_does_not_keep_it_waiting),
        cmocka_unit_test(mistakes_in_the_configuration_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
