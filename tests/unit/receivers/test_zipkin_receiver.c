/* SPDX-License-Identifier: Apache-2.0 */
/* The zipkin receiver over HTTP: paths, types, responses, limits. */
#include "tests/unit/receivers/otlp_fixture.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/otlp/check.h"
#include "tests/support/cpu_share.h"
#include "tests/support/gzip_zeros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

enum { TEXT_MAX = 1 << 16, TURNS = 8, TURNS_MAX = 5000, LARGE_SPANS = 30000 };

#define LITERAL(text) (text), sizeof(text) - 1

static const char span_v2[] = "[{\"traceId\":\"1\",\"id\":\"2\",\"name\":\"n\"}]";
static const char span_v1[] = "[{\"traceId\":\"0000000000000001\",\"id\":\"0000000000000002\"}]";
static const char span_thrift[] = "\x0c\0\0\0\x01\0";
static const char span_proto[] = "\x0a\x1c\x0a\x10"
                                 "0123456789abcdef\x1a\x08"
                                 "01234567";

static char response[TEXT_MAX];

static int set_up(void **state)
{
    (void)state;
    fixture_start_zipkin("{endpoint: 'localhost:0', max_request_body_size: 20000}");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_stop();
    return 0;
}

static void keep_response(const struct h2_peer *peer)
{
    assert_true(peer->raw_size < TEXT_MAX);
    if (peer->raw_size > 0)
        memcpy(response, peer->raw_input, peer->raw_size);
    response[peer->raw_size] = '\0';
}

/* One request on a connection of its own; what comes back is in response. */
static void ask(const char *line, const char *headers, const void *data, size_t size)
{
    char head[TEXT_MAX];
    struct h2_peer *peer = h2_peer_connect_raw(fixture.http_address);
    int used = snprintf(head, sizeof(head),
                        "%s HTTP/1.1\r\nHost: collector\r\n%s"
                        "Content-Length: %zu\r\n\r\n",
                        line, headers, size);
    h2_peer_write(peer, head, (size_t)used);
    if (size > 0)
        h2_peer_write(peer, data, size);
    fixture_turn(peer, TURNS);
    for (unsigned i = 0; i < TURNS_MAX && peer->raw_size == 0 && !fixture.holds; i++)
        fixture_turn(peer, 1);
    keep_response(peer);
    h2_peer_close(peer);
    for (unsigned i = 0; i < TURNS; i++)
        lane_turn(fixture.lane);
}

static void assert_response(const char *what, const char *status, const char *part)
{
    char line[64];
    snprintf(line, sizeof(line), "HTTP/1.1 %s", status);
    if (strncmp(response, line, strlen(line)) != 0 || strcasestr(response, part) == NULL)
        fail_msg("%s: expected %s and \"%s\", found\n%s", what, status, part, response);
}

/* ---- Forms ---- */

static const struct {
    const char *line;
    const char *headers;
    const char *data;
    size_t size;
    const char *transport;
} forms[] = {
    {"POST /api/v2/spans", "", LITERAL(span_v2), "http_v2_json"},
    {"POST /api/v2/spans", "Content-Type: application/json\r\n", LITERAL(span_v2), "http_v2_json"},
    {"POST /", "Content-Type: application/x-thrift\r\n", LITERAL(span_v2), "http_v2_json"},
    {"PUT /anything?else", "", LITERAL(span_v2), "http_v2_json"},
    {"POST /api/v2/spans", "Content-Type: application/x-protobuf\r\n", LITERAL(span_proto),
     "http_v2_proto"},
    {"POST /", "Content-Type: Application/X-Protobuf; v=2\r\n", LITERAL(span_proto),
     "http_v2_proto"},
    {"POST /api/v1/spans", "", LITERAL(span_v1), "http_v1_json"},
    {"POST /x/api/v1/spans/y", "Content-Type: application/x-protobuf\r\n", LITERAL(span_v1),
     "http_v1_json"},
    {"POST /api/v%31/spans", "", LITERAL(span_v1), "http_v1_json"},
    {"POST /api/v1/spans", "Content-Type: application/x-thrift\r\n", LITERAL(span_thrift),
     "http_v1_thrift"},
};

static void path_and_type_choose_the_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        uint64_t before = fixture_count("otelcol_receiver_accepted_%s", forms[i].transport, TRACES);
        struct otlp_figures figures;
        const char *reason;
        ask(forms[i].line, forms[i].headers, forms[i].data, forms[i].size);
        assert_response(forms[i].line, "202 Accepted", "content-length: 0\r\n");
        assert_int_equal(fixture.offers, i + 1);
        assert_int_equal(fixture.last.signal, TRACES);
        assert_int_equal(fixture.last.items, 1);
        assert_true(
            otlp_check(TRACES, slice_of(fixture.last.bytes, fixture.last.size), &figures, &reason));
        assert_int_equal(figures.items, 1);
        assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", forms[i].transport, TRACES),
                         before + 1);
    }
}

static void a_request_without_spans_is_accepted_and_goes_nowhere(void **state)
{
    (void)state;
    ask("POST /api/v2/spans", "", LITERAL("[]"));
    assert_response("v2", "202", "");
    ask("POST /api/v2/spans", "Content-Type: application/x-protobuf\r\n", "", 0);
    assert_response("proto", "202", "");
    ask("POST /api/v1/spans", "Content-Type: application/x-thrift\r\n", LITERAL("\x0c\0\0\0\0"));
    assert_response("thrift", "202", "");
    assert_int_equal(fixture.offers, 0);
}

/* ---- Refusals ---- */

static const struct {
    const char *line;
    const char *headers;
    const char *data;
    size_t size;
    const char *status;
    const char *part;
} refusals[] = {
    {"POST /", "", "", 0, "400",
     "\r\n\r\nJSON at byte 0: found the end of the text, expected a list\n"},
    {"POST /", "", LITERAL("{}"), "400", "content-type: text/plain; charset=utf-8\r\n"},
    {"POST /", "", LITERAL("[{\"id\": 1}]"), "400",
     "JSON at byte 8, in Span: found 1, expected a string in quotes\n"},
    {"POST /api/v1/spans", "", LITERAL("[{}]"), "400",
     "JSON at byte 1, in Span: found {, expected a span with traceId and id\n"},
    {"POST /", "Content-Type: application/x-protobuf\r\n", LITERAL("\x0a\x02\x0a\x00"), "400",
     "protobuf at byte 2, in Span.trace_id: found 0 bytes, expected 16\n"},
    {"POST /api/v1/spans", "Content-Type: application/x-thrift\r\n",
     LITERAL("\x0c\x7f\xff\xff\xff\0"), "400",
     "Thrift at byte 1, in the list: found 2147483647 spans in 1 bytes, expected"},
    {"POST /", "Content-Encoding: br\r\n", LITERAL("[]"), "400",
     "unsupported Content-Encoding: br\n"},
    {"POST /", "Content-Encoding: gzip\r\n", LITERAL("not gzip at all, but long enough"), "400",
     "gzip: invalid header\n"},
};

static void broken_requests_get_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        ask(refusals[i].line, refusals[i].headers, refusals[i].data, refusals[i].size);
        assert_response(refusals[i].line, refusals[i].status, refusals[i].part);
    }
    assert_int_equal(fixture.offers, 0);
}

static void a_body_over_the_limit_gets_413(void **state)
{
    char *large = mem_zalloc(20001);
    (void)state;
    ask("POST /", "", large, 20001);
    assert_response("large", "413", "http: request body too large\n");
    assert_int_equal(fixture.offers, 0);
    mem_free(large);
}

static void a_pipeline_without_room_gets_503_with_a_hint(void **state)
{
    (void)state;
    fixture.outcome = outcome_busy("the queue is full");
    ask("POST /", "", LITERAL(span_v2));
    assert_response("busy", "503", "retry-after: ");
    assert_response("busy", "503", "\r\n\r\nthe queue is full\n");
    assert_int_equal(fixture_count("otelcol_receiver_refused_%s", "http_v2_json", TRACES), 1);
    fixture.outcome = outcome_refused(STATUS_INVALID_ARGUMENT, "never");
    ask("POST /", "", LITERAL(span_v2));
    assert_response("permanent", "400", "\r\n\r\nnever\n");
    fixture.outcome = outcome_too_large("more than the budget");
    ask("POST /", "", LITERAL(span_v2));
    assert_response("too large", "413", "more than the budget\n");
}

static void a_budget_without_room_gets_503(void **state)
{
    (void)state;
    uint64_t all = 64 * MIB - 1024;
    assert_true(budget_try_take(&fixture.budget, all));
    char *body = mem_zalloc(15000);
    ask("POST /", "", body, 15000);
    budget_return(&fixture.budget, all);
    mem_free(body);
    assert_response("no budget", "503", "the memory budget is used up, try again later\n");
    ask("POST /", "", LITERAL(span_v2));
    assert_response("again", "202", "");
}

/* ---- Bodies ---- */

static size_t gzip(const char *plain, size_t size, uint8_t *room, size_t room_size, int window)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)plain, .avail_in = (uInt)size};
    deflateInit2(&stream, 9, Z_DEFLATED, window, 8, 0);
    stream.next_out = room;
    stream.avail_out = (uInt)room_size;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return stream.total_out;
}

static void compressed_bodies_are_inflated(void **state)
{
    enum { GZIP = 31, ZLIB = 15 };
    uint8_t room[512];
    (void)state;
    ask("POST /", "Content-Encoding: gzip\r\n", room,
        gzip(LITERAL(span_v2), room, sizeof(room), GZIP));
    assert_response("gzip", "202", "");
    ask("POST /", "Content-Encoding: deflate\r\n", room,
        gzip(LITERAL(span_v2), room, sizeof(room), ZLIB));
    assert_response("deflate", "202", "");
    char *large = mem_zalloc(20001);
    memset(large, ' ', 20001);
    ask("POST /", "Content-Encoding: gzip\r\n", room, gzip(large, 20001, room, sizeof(room), GZIP));
    assert_response("bomb", "413", "");
    mem_free(large);
    assert_int_equal(fixture.offers, 2);
}

static void gzip_is_inflated_even_without_algorithms(void **state)
{
    enum { GZIP = 31 };
    uint8_t room[512];
    (void)state;
    fixture_start_zipkin("{endpoint: 'localhost:0', compression_algorithms: []}");
    ask("POST /", "Content-Encoding: gzip\r\n", room,
        gzip(LITERAL(span_v2), room, sizeof(room), GZIP));
    assert_response("gzip", "202", "");
    ask("POST /", "Content-Encoding: snappy\r\n", LITERAL(span_v2));
    assert_response("taken as it is", "202", "");
    assert_int_equal(fixture.offers, 2);
}

static char *large_body(size_t *ret_size)
{
    static const char one[] = "{\"traceId\":\"1\",\"id\":\"2\",\"name\":\"a name of a span\"},";
    size_t size = 1 + (sizeof(one) - 1) * LARGE_SPANS;
    char *body = mem_alloc(size + 1);
    body[0] = '[';
    for (size_t i = 0; i < LARGE_SPANS; i++)
        memcpy(body + 1 + i * (sizeof(one) - 1), one, sizeof(one));
    body[size - 1] = ']';
    *ret_size = size;
    return body;
}

static void the_helper_reads_what_is_large(void **state)
{
    size_t size;
    char *body = large_body(&size);
    (void)state;
    assert_true(size > HELPED_SPANS_BYTES_MIN);
    fixture_start_zipkin("{endpoint: 'localhost:0'}");
    fixture.keeps_no_bytes = true;
    ask("POST /", "", body, size);
    assert_response("large", "202", "");
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "http_v2_json", TRACES),
                     LARGE_SPANS);
    body[size - 1] = '}';
    ask("POST /", "", body, size);
    assert_response("large and broken", "400", "expected a");
    mem_free(body);
}

/* Each byte is a span; what follows the list is ignored. */
static void the_helper_reads_many_spans_of_a_short_body(void **state)
{
    enum { SPANS = 60000 };
    uint8_t *body = mem_zalloc(HELPED_SPANS_BYTES_MIN);
    (void)state;
    body[0] = 12; /* a list of structs */
    body[3] = SPANS >> 8;
    body[4] = SPANS & 0xff;
    fixture_start_zipkin("{endpoint: 'localhost:0'}");
    fixture.keeps_no_bytes = true;
    struct cpu_share share = cpu_share_begin();
    ask("POST /api/v1/spans", "Content-Type: application/x-thrift\r\n", body,
        HELPED_SPANS_BYTES_MIN);
    assert_in_range(cpu_share_percent(&share), 0, 50);
    assert_response("spans", "202", "");
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "http_v1_thrift", TRACES),
                     SPANS);
    mem_free(body);
}

static void the_helper_inflates_what_may_be_large(void **state)
{
    struct buffer *packed = gzip_zeros(16 << 20);
    (void)state;
    fixture_start_zipkin("{endpoint: 'localhost:0'}");
    struct cpu_share share = cpu_share_begin();
    ask("POST /", "Content-Encoding: gzip\r\n", packed->data, packed->size);
    assert_in_range(cpu_share_percent(&share), 0, 50);
    assert_response("zeros", "400", "");
    packed->data[packed->size - 5] ^= 1; /* the checksum */
    ask("POST /", "Content-Encoding: gzip\r\n", packed->data, packed->size);
    assert_response("damaged", "400", "gzip: invalid checksum");
    buffer_unref(packed);
}

/* ---- Clients ---- */

static void metadata_of_clients_is_kept_on_demand(void **state)
{
    (void)state;
    fixture_start_zipkin("{endpoint: 'localhost:0', include_metadata: true}");
    ask("POST /", "X-Tenant: blue\r\n", LITERAL(span_v2));
    assert_string_equal(fixture.last.tenant, "blue");
    assert_true(fixture.last.is_client_charged);
    assert_string_equal(fixture.last.address, "127.0.0.1");
}

static void browsers_get_cors_headers(void **state)
{
    (void)state;
    fixture_start_zipkin("{endpoint: 'localhost:0', cors: {allowed_origins: ['http://page']}}");
    ask("OPTIONS /api/v2/spans",
        "Origin: http://page\r\nAccess-Control-Request-Method: POST\r\n"
        "Access-Control-Request-Headers: content-type\r\n",
        "", 0);
    assert_response("preflight", "204", "access-control-allow-origin: http://page\r\n");
    ask("POST /api/v2/spans", "Origin: http://page\r\n", LITERAL(span_v2));
    assert_response("request", "202", "access-control-allow-origin: http://page\r\n");
    assert_int_equal(fixture.offers, 1);
}

static void tags_are_parsed_on_demand(void **state)
{
    static const char body[] = "[{\"traceId\":\"1\",\"id\":\"2\",\"timestamp\":1,"
                               "\"tags\":{\"k\":\"7\"}}]";
    static const char integer[] = "\x4a\x07\x0a\x01k\x12\x02\x18\x07";
    static const char string[] = "\x4a\x08\x0a\x01k\x12\x03\x0a\x01"
                                 "7";
    (void)state;
    ask("POST /", "", LITERAL(body));
    assert_non_null(memmem(fixture.last.bytes, fixture.last.size, LITERAL(string)));
    fixture_stop();
    fixture_start_zipkin("{endpoint: 'localhost:0', parse_string_tags: true}");
    ask("POST /", "", LITERAL(body));
    assert_non_null(memmem(fixture.last.bytes, fixture.last.size, LITERAL(integer)));
}

/* The client waits for the pipeline, and may go before it responds. */
static void a_stop_waits_for_the_pipeline(void **state)
{
    (void)state;
    fixture.holds = true;
    struct h2_peer *peer = h2_peer_connect_raw(fixture.http_address);
    static const char request[] = "POST / HTTP/1.1\r\nHost: c\r\nContent-Length: 37\r\n\r\n";
    assert_int_equal(strlen(span_v2), 37);
    h2_peer_write(peer, LITERAL(request));
    h2_peer_write(peer, LITERAL(span_v2));
    fixture_turn(peer, TURNS);
    assert_int_equal(fixture.offers, 1);
    assert_int_equal(peer->raw_size, 0);
    fixture_begin_stop();
    fixture_turn(peer, TURNS);
    assert_false(fixture.is_stopped);
    h2_peer_close(peer);
    for (unsigned i = 0; i < TURNS; i++)
        lane_turn(fixture.lane);
    assert_false(fixture.is_stopped);
    receipt_resolve(fixture.held, &outcome_accepted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(path_and_type_choose_the_form, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_request_without_spans_is_accepted_and_goes_nowhere,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_requests_get_a_reason, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_body_over_the_limit_gets_413, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pipeline_without_room_gets_503_with_a_hint, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_budget_without_room_gets_503, set_up, tear_down),
        cmocka_unit_test_setup_teardown(compressed_bodies_are_inflated, set_up, tear_down),
        cmocka_unit_test_teardown(gzip_is_inflated_even_without_algorithms, tear_down),
        cmocka_unit_test_teardown(the_helper_reads_what_is_large, tear_down),
        cmocka_unit_test_teardown(the_helper_reads_many_spans_of_a_short_body, tear_down),
        cmocka_unit_test_teardown(the_helper_inflates_what_may_be_large, tear_down),
        cmocka_unit_test_teardown(metadata_of_clients_is_kept_on_demand, tear_down),
        cmocka_unit_test_teardown(browsers_get_cors_headers, tear_down),
        cmocka_unit_test_setup_teardown(tags_are_parsed_on_demand, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stop_waits_for_the_pipeline, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
