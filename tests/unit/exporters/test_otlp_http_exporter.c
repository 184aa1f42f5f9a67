/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_http against a scripted back-end: what is sent, what each response means, what is refused in
 * the configuration. */
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/codec/codec.h"
#include "src/codec/gzip.h"
#include "src/config/config.h"
#include "src/core/component.h"
#include "tests/support/scripted_backend.h"
#include "tests/unit/exporters/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern const struct component_factory otlp_http_exporter_factory;

static const struct slice hello = {.data = (const uint8_t *)"hello", .size = 5};

struct fixture {
    struct lane *lane;
    struct scripted_backend *backend;
    struct exporter_fixture exporter;
};

static void set_up(struct fixture *fixture, const struct backend_step *steps, size_t count,
                   const char *options, enum signal_kind signal)
{
    char yaml[1024];
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 1136214245 * (uint64_t)NS_PER_S);
    fixture->lane = lane_create(0);
    fixture->backend = scripted_backend_create(fixture->lane, steps, count);
    snprintf(yaml, sizeof(yaml), "{endpoint: '%s', %s}", scripted_backend_url(fixture->backend),
             options);
    exporter_open(&fixture->exporter, fixture->lane, &otlp_http_exporter_factory, yaml, signal);
}

static void tear_down(struct fixture *fixture)
{
    exporter_close(&fixture->exporter);
    scripted_backend_destroy(fixture->backend);
    lane_destroy(fixture->lane);
    clock_fake_stop();
}

#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

static void bodies_are_gzipped_by_default(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    size_t size;
    (void)state;
    set_up(&fixture, steps, 1, "", TRACES);
    exporter_export(&fixture.exporter, hello, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    const char *head = scripted_backend_head(fixture.backend);
    assert_non_null(strstr(head, "POST /v1/traces HTTP/1.1\r\n"));
    assert_non_null(strstr(head, "Content-Encoding: gzip\r\n"));
    assert_non_null(strstr(head, "Content-Type: application/x-protobuf\r\n"));
    assert_non_null(strstr(head, "User-Agent: spanflame/" SPANFLAME_VERSION " (linux/"));
    const char *body = scripted_backend_body(fixture.backend, &size);
    struct gzip *gzip = gzip_create();
    struct buffer *output;
    assert_int_equal(gzip_inflate(gzip, NULL, (const uint8_t *)body, size, 100, &output), GZIP_OK);
    assert_true(slice_equal(buffer_slice(output), hello));
    buffer_unref(output);
    gzip_destroy(gzip);
    tear_down(&fixture);
}

/* Each under the name that the user gave it. */
static void every_compression_is_announced_and_applied(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    static const char *const names[] = {"zlib",   "deflate",         "zstd",
                                        "snappy", "x-snappy-framed", "lz4"};
    struct codec_box *box = codec_box_create(NULL);
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct fixture fixture;
        struct buffer *output;
        char text[64];
        size_t size;
        snprintf(text, sizeof(text), "compression: %s", names[i]);
        set_up(&fixture, steps, 1, text, TRACES);
        exporter_export(&fixture.exporter, hello, 1);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        snprintf(text, sizeof(text), "Content-Encoding: %s\r\n", names[i]);
        assert_non_null(strstr(scripted_backend_head(fixture.backend), text));
        const char *body = scripted_backend_body(fixture.backend, &size);
        enum codec codec = codec_of_http(slice_of_text(names[i]));
        assert_int_equal(codec_inflate(box, codec, slice_of(body, size), 100, &output), CODEC_OK);
        assert_true(slice_equal(buffer_slice(output), hello));
        buffer_unref(output);
        tear_down(&fixture);
    }
    codec_box_destroy(box);
}

/* Large bodies are written as JSON by the lane's helper. */
static void stopping_waits_for_the_helper(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct buffer *body = buffer_try_create(NULL, HELPED_BYTES_MIN + 1);
    struct fixture fixture;
    (void)state;
    /* Resources without content. */
    for (body->size = 0; body->size < HELPED_BYTES_MIN; body->size += 2)
        memcpy(body->data + body->size, "\x0a\x00", 2);
    set_up(&fixture, steps, 1, "encoding: json", TRACES);
    exporter_offer(&fixture.exporter, buffer_slice(body), 1);
    exporter_close(&fixture.exporter);
    assert_int_equal(fixture.exporter.results, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_false(fixture.exporter.outcome.is_permanent);
    scripted_backend_destroy(fixture.backend);
    lane_destroy(fixture.lane);
    clock_fake_stop();
    buffer_unref(body);
}

static void bodies_may_be_json(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    static const char span[] = "\x0a\x07\x12\x05\x12\x03\x2a\x01"
                               "a";
    static const char expected[] =
        "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},"
        "\"spans\":[{\"name\":\"a\",\"status\":{}}]}]}]}";
    static const char *const options[] = {"encoding: json, compression: none",
                                          "encoding: json, compression: gzip"};
    struct codec_box *box = codec_box_create(NULL);
    (void)state;
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        struct fixture fixture;
        struct buffer *plain = NULL;
        size_t size;
        set_up(&fixture, steps, 1, options[i], TRACES);
        exporter_export(&fixture.exporter, slice_of(span, sizeof(span) - 1), 1);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        const char *head = scripted_backend_head(fixture.backend);
        assert_non_null(strstr(head, "Content-Type: application/json\r\n"));
        struct slice body = {(const uint8_t *)scripted_backend_body(fixture.backend, &size), 0};
        body.size = size;
        assert_int_equal(strstr(head, "Content-Encoding: gzip") != NULL, i == 1);
        if (i == 1) {
            assert_int_equal(codec_inflate(box, CODEC_GZIP, body, 1000, &plain), CODEC_OK);
            body = buffer_slice(plain);
        }
        assert_true(slice_equal_text(body, expected));
        buffer_unref(plain);
        assert_int_equal(budget_used(&fixture.exporter.budget), 0);
        tear_down(&fixture);
    }
    codec_box_destroy(box);
}

struct target_case {
    enum signal_kind signal;
    const char *options;
    const char *request_line;
};

static const struct target_case targets[] = {
    {TRACES, "compression: none", "POST /v1/traces HTTP/1.1\r\n"},
    {METRICS, "compression: ''", "POST /v1/metrics HTTP/1.1\r\n"},
    {LOGS, "compression: none", "POST /v1/logs HTTP/1.1\r\n"},
    {PROFILES, "compression: none", "POST /v1development/profiles HTTP/1.1\r\n"},
};

static void each_signal_has_its_path(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    static const char message[] = "\xfa\x01\x05hello"; /* an unknown field of any request */
    (void)state;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        struct fixture fixture;
        size_t size;
        set_up(&fixture, steps, 1, targets[i].options, targets[i].signal);
        exporter_export(&fixture.exporter, slice_of_text(message), 1);
        assert_non_null(strstr(scripted_backend_head(fixture.backend), targets[i].request_line));
        assert_null(strstr(scripted_backend_head(fixture.backend), "Content-Encoding"));
        assert_memory_equal(scripted_backend_body(fixture.backend, &size), message, 8);
        assert_int_equal(size, 8);
        tear_down(&fixture);
    }
}

struct outcome_case {
    const char *name;
    struct backend_step step;
    enum verdict verdict;
    enum status_code code;
    bool is_permanent;
    uint64_t retry_after_s;
    uint64_t rejected_items;
    const char *message; /* behind "error exporting items, request to URL/v1/traces " */
};

#define HEAD(status, extra, size) "HTTP/1.1 " status "\r\n" extra "Content-Length: " size "\r\n\r\n"
#define PROTOBUF                  "Content-Type: application/x-protobuf\r\n"
#define JSON                      "Content-Type: application/json; charset=utf-8\r\n"
#define RESPONDED                 "responded with HTTP Status Code "

static const struct outcome_case outcomes[] = {
    {"200 with garbage",
     {.response = HEAD("200 OK", PROTOBUF, "4") "\377\377\377\377"},
     .verdict = ACCEPTED},
    {"200 with text",
     {.response = HEAD("200 OK", "Content-Type: text/plain\r\n", "2") "hi"},
     .verdict = ACCEPTED},
    {"202", {.response = HEAD("202 Accepted", "", "0")}, .verdict = ACCEPTED},
    {"empty partial success",
     {.response = HEAD("200 OK", PROTOBUF, "2") "\012\000",
      .response_size = sizeof(HEAD("200 OK", PROTOBUF, "2")) - 1 + 2},
     .verdict = ACCEPTED},
    {"partial success: 3 of 7",
     {.response = HEAD("200 OK", PROTOBUF, "8") "\012\006\010\003\022\002no"},
     .verdict = ACCEPTED,
     .rejected_items = 3},
    {"partial success beyond all",
     {.response = HEAD("200 OK", PROTOBUF, "4") "\012\002\010\143"},
     .verdict = ACCEPTED,
     .rejected_items = 7},
    {"partial success in JSON",
     {.response = HEAD("200 OK", JSON, "58") "{\"partialSuccess\":{\"rejectedSpans\":\"3\","
                                             "\"errorMessage\":\"\"}}"},
     .verdict = ACCEPTED,
     .rejected_items = 3},
    {"200 with broken JSON", {.response = HEAD("200 OK", JSON, "2") "{["}, .verdict = ACCEPTED},
    {"reset after the head of 200",
     {.response = HEAD("200 OK", PROTOBUF, "4"), .resets = true},
     .verdict = ACCEPTED},
    {"503",
     {.response = HEAD("503 S", "", "0")},
     .verdict = REFUSED,
     .code = STATUS_UNAVAILABLE,
     .message = RESPONDED "503, Message=, Details=[]"},
    {"503 in seconds",
     {.response = HEAD("503 S", "Retry-After: 5\r\n", "0")},
     .verdict = REFUSED,
     .code = STATUS_UNAVAILABLE,
     .retry_after_s = 5},
    {"503 with +2",
     {.response = HEAD("503 S", "Retry-After: +2\r\n", "0")},
     .verdict = REFUSED,
     .code = STATUS_UNAVAILABLE,
     .retry_after_s = 2},
    {"503 at a date",
     {.response = HEAD("503 S", "Retry-After: Mon, 02 Jan 2006 15:05:05 GMT\r\n", "0")},
     .verdict = REFUSED,
     .code = STATUS_UNAVAILABLE,
     .retry_after_s = 60},
    {"503 with a fraction",
     {.response = HEAD("503 S", "Retry-After: 2.5\r\n", "0")},
     .verdict = REFUSED,
     .code = STATUS_UNAVAILABLE},
    {"503 with 0",
     {.response = HEAD("503 S", "Retry-After: 0\r\n", "0")},
     .verdict = REFUSED,
     .code = STATUS_UNAVAILABLE},
    {"503 negative",
     {.response = HEAD("503 S", "Retry-After: -1\r\n", "0")},
     .verdict = REFUSED,
     .code = STATUS_UNAVAILABLE},
    {"429",
     {.response = HEAD("429 T", "Retry-After: 1\r\n", "0")},
     .verdict = REFUSED,
     .code = STATUS_RESOURCE_EXHAUSTED,
     .retry_after_s = 1},
    {"502", {.response = HEAD("502 B", "", "0")}, .verdict = REFUSED, .code = STATUS_UNAVAILABLE},
    {"504", {.response = HEAD("504 T", "", "0")}, .verdict = REFUSED, .code = STATUS_UNAVAILABLE},
    {"500",
     {.response = HEAD("500 E", "", "0")},
     .verdict = REFUSED,
     .code = STATUS_UNKNOWN,
     .is_permanent = true,
     .message = RESPONDED "500, Message=, Details=[]"},
    {"400 with a status",
     {.response = HEAD("400 B", PROTOBUF, "7") "\010\003\022\003bad"},
     .verdict = REFUSED,
     .code = STATUS_INVALID_ARGUMENT,
     .is_permanent = true,
     .message = RESPONDED "400, Message=bad, Details=[]"},
    {"400 with a status in JSON",
     {.response = HEAD("400 B", JSON, "44") "{\"code\":3,\"message\":\"bad\",\"details\":[{}, 5]}"},
     .verdict = REFUSED,
     .code = STATUS_INVALID_ARGUMENT,
     .is_permanent = true,
     .message = RESPONDED "400, Message=bad, Details=[]"},
    {"400 with text",
     {.response = HEAD("400 B", "", "4") "oops"},
     .verdict = REFUSED,
     .code = STATUS_INVALID_ARGUMENT,
     .is_permanent = true,
     .message = RESPONDED "400: oops"},
    {"400 with several lines of HTML",
     {.response = HEAD("400 B", "Content-Type: text/html\r\n",
                       "22") "\r\n<p>\tno\x1b[1m\n\n \xc3\xa9</p>\n"},
     .verdict = REFUSED,
     .code = STATUS_INVALID_ARGUMENT,
     .is_permanent = true,
     .message = RESPONDED "400: <p> no?[1m ?"
                          "?</p>"},
    {"400 in JSON that is no status",
     {.response = HEAD("400 B", JSON,
                       "59") "{\"code\":\"invalid_argument\",\"message\":\"invalid metric name\"}"},
     .verdict = REFUSED,
     .code = STATUS_INVALID_ARGUMENT,
     .is_permanent = true,
     .message =
         RESPONDED "400: {\"code\":\"invalid_argument\",\"message\":\"invalid metric name\"}"},
    {"400 with bytes that are no text",
     {.response = HEAD("400 B", "Content-Encoding: gzip\r\n", "8") "\x1f\x8b\x08\x02\x03\x04"
                                                                   "ab"},
     .verdict = REFUSED,
     .code = STATUS_INVALID_ARGUMENT,
     .is_permanent = true,
     .message = RESPONDED "400"},
    {"301 without an address",
     {.response = HEAD("301 M", "", "5") "moved"},
     .verdict = REFUSED,
     .code = STATUS_UNKNOWN,
     .is_permanent = true,
     .message = RESPONDED "301: moved"},
    {"garbage instead of a response",
     {.response = "garbage\r\n\r\n", .closes = true},
     .verdict = REFUSED,
     .code = STATUS_UNAVAILABLE},
    {"401",
     {.response = HEAD("401 U", "", "0")},
     .verdict = REFUSED,
     .code = STATUS_UNAUTHENTICATED,
     .is_permanent = true},
    {"403",
     {.response = HEAD("403 F", "", "0")},
     .verdict = REFUSED,
     .code = STATUS_PERMISSION_DENIED,
     .is_permanent = true},
    {"404",
     {.response = HEAD("404 N", "", "0")},
     .verdict = REFUSED,
     .code = STATUS_UNIMPLEMENTED,
     .is_permanent = true},
    {"413",
     {.response = HEAD("413 L", "", "0")},
     .verdict = REFUSED,
     .code = STATUS_UNKNOWN,
     .is_permanent = true},
    {"304",
     {.response = HEAD("304 N", "", "0")},
     .verdict = REFUSED,
     .code = STATUS_UNKNOWN,
     .is_permanent = true,
     .message = RESPONDED "304"},
    {"closed without a response",
     {.closes_unheard = true},
     .verdict = REFUSED,
     .code = STATUS_UNAVAILABLE},
};

static void check_outcome(const struct outcome_case *row)
{
    struct fixture fixture;
    char expected[512];
    set_up(&fixture, &row->step, 1, "compression: none", TRACES);
    exporter_export(&fixture.exporter, hello, 7);
    const struct outcome *outcome = &fixture.exporter.outcome;
    print_message("   %s %s\n", row->name, fixture.exporter.message);
    assert_int_equal(outcome->verdict, row->verdict);
    assert_int_equal(outcome->code, row->code);
    assert_int_equal(outcome->is_permanent, row->is_permanent);
    assert_int_equal(outcome->retry_after_ns, row->retry_after_s * NS_PER_S);
    assert_int_equal(outcome->rejected_items, row->rejected_items);
    snprintf(expected, sizeof(expected), "error exporting items, request to %s/v1/traces %s",
             scripted_backend_url(fixture.backend), row->message == NULL ? "" : row->message);
    if (row->message != NULL)
        assert_string_equal(fixture.exporter.message, expected);
    tear_down(&fixture);
}

static void responses_are_classified_as_the_contract_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
        check_outcome(&outcomes[i]);
}

static void messages_hold_no_credentials(void **state)
{
    static const struct backend_step steps[] = {{.response = HEAD("500 E", "", "0")}};
    struct exporter_fixture exporter;
    char yaml[512];
    (void)state;
    struct lane *lane = lane_create(0);
    struct scripted_backend *backend = scripted_backend_create(lane, steps, 1);
    snprintf(yaml, sizeof(yaml), "{traces_endpoint: 'http://user:hunter2@%s/in?key=hunter2'}",
             scripted_backend_url(backend) + strlen("http://"));
    exporter_open(&exporter, lane, &otlp_http_exporter_factory, yaml, TRACES);
    exporter_export(&exporter, hello, 1);
    assert_null(strstr(exporter.component->destination, "hunter2"));
    assert_non_null(strstr(scripted_backend_head(backend), "POST /in?key=hunter2 HTTP/1.1"));
    assert_non_null(strstr(exporter.message, "/in responded with"));
    assert_null(strstr(exporter.message, "hunter2"));
    exporter_close(&exporter);
    scripted_backend_destroy(backend);
    lane_destroy(lane);
}

/* A back-end may repeat what we sent: the log and the client get its message without that. */
static void what_a_back_end_says_is_shown_without_our_secrets(void **state)
{
    static const struct {
        const char *response;
        const char *said; /* behind the status */
    } rows[] = {
        {"text/plain\r\nContent-Length: 47\r\n\r\nno Bearer tok-12345 hunter2 dXM6aHVudGVyMg== ab",
         ": no [REDACTED] [REDACTED] [REDACTED] ab"},
        {"text/plain\r\nContent-Length: 14\r\n\r\nkey=tok-12345;!", ": key=[REDACTED];"},
        {"application/x-protobuf\r\nContent-Length: 14\r\n\r\n\022\014ha tok-12345",
         ", Message=ha [REDACTED], Details=[]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char response[512];
        snprintf(response, sizeof(response), "HTTP/1.1 400 B\r\nContent-Type: %s",
                 rows[i].response);
        const struct backend_step step = {.response = response};
        struct fixture fixture;
        set_up(&fixture, &step, 1,
               "headers: {X-Key: 'Bearer tok-12345', X-Short: ab, "
               "Authorization: 'Basic dXM6aHVudGVyMg=='}",
               TRACES);
        exporter_export(&fixture.exporter, hello, 1);
        const char *said = strstr(fixture.exporter.message, "Code 400");
        assert_non_null(said);
        assert_string_equal(said + strlen("Code 400"), rows[i].said);
        tear_down(&fixture);
    }
}

/* As much of it as a log line can hold. */
static void at_most_256_bytes_of_a_body_are_shown(void **state)
{
    enum { BODY = 3000 };
    static char response[BODY + 100];
    struct fixture fixture;
    (void)state;
    int head =
        snprintf(response, sizeof(response), "HTTP/1.1 500 E\r\nContent-Length: %d\r\n\r\n", BODY);
    memset(response + head, 'x', BODY);
    const struct backend_step step = {.response = response};
    set_up(&fixture, &step, 1, "", TRACES);
    exporter_export(&fixture.exporter, hello, 1);
    const char *said = strstr(fixture.exporter.message, "Code 500: ");
    assert_non_null(said);
    assert_int_equal(strlen(said + strlen("Code 500: ")), 256);
    tear_down(&fixture);
}

static void short_budget_refuses_instead_of_compressing(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1, "", TRACES);
    uint64_t limit = budget_limit(&fixture.exporter.budget);
    uint64_t taken = limit + limit / BUDGET_MARGIN_PART;
    budget_take(&fixture.exporter.budget, taken);
    exporter_export(&fixture.exporter, hello, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_false(fixture.exporter.outcome.is_permanent);
    assert_int_equal(scripted_backend_requests(fixture.backend), 0);
    budget_return(&fixture.exporter.budget, taken);
    tear_down(&fixture);
}

/* Else nothing that waits would ever come free. */
static void a_budget_that_the_queue_fills_does_not_keep_it_waiting(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    static const char span[] = "\x0a\x07\x12\x05\x12\x03\x2a\x01"
                               "a";
    static const char *const options[] = {"", "encoding: json"};
    (void)state;
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        struct fixture fixture;
        set_up(&fixture, steps, 1, options[i], TRACES);
        const uint64_t limit = budget_limit(&fixture.exporter.budget);
        const uint64_t all = limit + limit / BUDGET_MARGIN_PART;
        budget_take(&fixture.exporter.budget, all);
        exporter_export(&fixture.exporter, slice_of(span, sizeof(span) - 1), 1);
        exporter_wait_for_memory(&fixture.exporter);
        exporter_export(&fixture.exporter, slice_of(span, sizeof(span) - 1), 1);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        budget_return(&fixture.exporter.budget, all);
        tear_down(&fixture);
    }
}

struct config_case {
    const char *yaml;
    const char *problem; /* part of it; NULL: it loads */
};

static const struct config_case configs[] = {
    {"{endpoint: 'http://h:4318'}", NULL},
    {"{logs_endpoint: 'https://h/x?y=z'}", NULL},
    {"{endpoint: 'http://h', compression: none, headers: {a: b}, timeout: 0, tls: {insecure: true},"
     " proxy_url: 'http://p:1', read_buffer_size: 1, write_buffer_size: 2, max_idle_conns: 3,"
     " max_idle_conns_per_host: 4, max_conns_per_host: 5, idle_conn_timeout: 6s,"
     " disable_keep_alives: true, force_attempt_http2: false, http2_read_idle_timeout: 7s,"
     " http2_ping_timeout: 8s, compression_params: {level: 3}, middlewares: [], encoding: proto,"
     " sending_queue: {batch: }, retry_on_failure: {max_elapsed_time: 0}}",
     NULL},
    {"{endpoint: 'http://h', read_buffer_size: '1'}", "read_buffer_size: found the string \"1\""},
    {"{endpoint: 'http://h', http2_ping_timeout: x}", "http2_ping_timeout: found the string \"x\""},
    {"{}", "at least one endpoint must be specified"},
    {"{endpoint: 'localhost:4318'}", NULL},
    {"{endpoint: //localhost:4318/x}", NULL},
    {"{traces_endpoint: collector/v1/traces}", NULL},
    {"{endpoint: '127.0.0.1:4318'}", "write the scheme"},
    {"{endpoint: 'ftp://localhost'}", "write the scheme"},
    {"{endpoint: /v1}", "write the scheme"},
    {"{endpoint: 'localhost:x'}", "endpoint must be a valid URL"},
    {"{endpoint: 'http://h:99999'}", "endpoint must be a valid URL"},
    {"{endpoint: 'http://h', metrics_endpoint: 'http://'}", "metrics_endpoint must be a valid URL"},
    {"{endpoint: 'http://h', encoding: json}", NULL},
    {"{endpoint: 'http://h', encoding: xml}", "xml"},
    {"{endpoint: 'http://h', encoding: xml}", "xml"},
    {"{endpoint: 'http://h', compression: zstd, compression_params: {level: 22}}", NULL},
    {"{endpoint: 'http://h', compression: deflate, compression_params: {level: -2}}", NULL},
    {"{endpoint: 'http://h', compression: none, compression_params: {level: 77}}", NULL},
    {"{endpoint: 'http://h', compression: snappy}", NULL},
    {"{endpoint: 'http://h', compression: gzip, compression_params: {level: 10}}",
     "unsupported parameters {Level:10} for compression type \"gzip\": expected a level of -2 to "
     "9"},
    {"{endpoint: 'http://h', compression: lz4, compression_params: {level: -1}}",
     "unsupported parameters {Level:-1} for compression type \"lz4\": expected no level"},
    {"{endpoint: 'http://h', compression: br}", "br"},
    {"{endpoint: 'http://h', auth: {authenticator: basicauth}}",
     "failed to resolve authenticator \"basicauth\": authenticator not found"},
    {"{endpoint: 'http://h', cookies: {enabled: true}, max_idle_conns: -1,"
     " max_idle_conns_per_host: -1, max_conns_per_host: -1, proxy_url: 'HTTP://p:1'}",
     NULL},
    {"{endpoint: 'http://h', middlewares: [{id: x}]}", "not supported by this build yet"},
    {"{endpoint: 'http://h', proxy_url: 'p:3128'}", "proxy_url"},
    {"{endpoint: 'http://h', tls: {ca_file: a, ca_pem: b}}", "either a CA file or"},
    {"{endpoint: 'http://h', tls: {cert_file: a}}", "both certificate and key"},
    {"{endpoint: 'http://h', tls: {min_version: '1.3', max_version: '1.2'}}", "min_version"},
    {"{endpoint: 'http://h', tls: {min_version: '1.4'}}", "1.4"},
    {"{endpoint: 'http://h', sending_queue: {storage: file_storage}}",
     "failed to resolve storage client extension \"file_storage\": storage client extension not "
     "found"},
    {"{endpoint: 'http://h', sending_queue: {queue_size: 0}}", "queue_size"},
    {"{endpoint: 'http://h', sending_queue: {sizer: items, queue_size: 10, batch: {min_size: 11}}}",
     "`min_size` must be less than or equal to `queue_size`"},
    {"{endpoint: 'http://h', sending_queue: {batch: {min_size: 5, max_size: 4}}}",
     "`max_size` (4) must be greater or equal to `min_size` (5)"},
    {"{endpoint: 'http://h', sending_queue: {sizer: requests, batch: {min_size: 1}}}",
     "supports only `items` or `bytes`"},
    {"{endpoint: 'http://h', sending_queue: {batch: {flush_timeout: 0s}}}", "flush_timeout"},
    {"{endpoint: 'http://h', sending_queue: {batch: {partition: {metadata_keys: [A, a]}}}}",
     "duplicate entry in metadata_keys"},
    {"{endpoint: 'http://h', retry_on_failure: {randomization_factor: 1.5}}",
     "randomization_factor"},
    {"{endpoint: 'http://h', retry_on_failure: {max_elapsed_time: 1s}}",
     "'max_elapsed_time' must not be less than 'initial_interval'"},
    {"{endpoint: 'http://h', retry_on_failure: {max_elapsed_time: 20s}}",
     "'max_elapsed_time' must not be less than 'max_interval'"},
};

static void configurations_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        char problems[4096];
        struct config *config;
        bool is_loaded = exporter_try_load(&otlp_http_exporter_factory, configs[i].yaml, &config,
                                           problems, sizeof(problems));
        print_message("   %s\n", is_loaded ? configs[i].yaml : problems);
        if (configs[i].problem == NULL) {
            assert_string_equal(problems, "");
            assert_true(is_loaded);
        } else {
            assert_false(is_loaded);
            assert_non_null(strstr(problems, configs[i].problem));
        }
        config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_gzipped_by_default),
        cmocka_unit_test(every_compression_is_announced_and_applied),
        cmocka_unit_test(bodies_may_be_json),
        cmocka_unit_test(stopping_waits_for_the_helper),
        cmocka_unit_test(each_signal_has_its_path),
        cmocka_unit_test(responses_are_classified_as_the_contract_says),
        cmocka_unit_test(messages_hold_no_credentials),
        cmocka_unit_test(what_a_back_end_says_is_shown_without_our_secrets),
        cmocka_unit_test(at_most_256_bytes_of_a_body_are_shown),
        cmocka_unit_test(short_budget_refuses_instead_of_compressing),
        cmocka_unit_test(a_budget_that_the_queue_fills_does_not_keep_it_waiting),
        cmocka_unit_test(configurations_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
