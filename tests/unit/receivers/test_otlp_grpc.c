/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP over gRPC: what a call must look like and which status it gets. */
#include "tests/unit/receivers/otlp_fixture.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/codec/codec.h"
#include "src/core/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

enum { FRAME_MAX = 1 << 16, FIELDS_MAX = 40 };

static const char traces_path[] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
static const char protocols[] = "{protocols: {grpc: {endpoint: 'localhost:0'}}}";

static uint8_t frame[FRAME_MAX];

static int set_up(void **state)
{
    (void)state;
    fixture_start(protocols);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_stop();
    return 0;
}

/* Prefixes what lies in frame + 5. */
static size_t frame_up(unsigned flag, size_t size)
{
    frame[0] = (uint8_t)flag;
    for (unsigned i = 0; i < 4; i++)
        frame[1 + i] = (uint8_t)(size >> (24 - 8 * i));
    return size + 5;
}

static size_t frame_traces(unsigned spans)
{
    return frame_up(0, fixture_traces(frame + 5, spans));
}

static size_t frame_gzip(unsigned spans)
{
    uint8_t plain[FRAME_MAX];
    size_t size = fixture_traces(plain, spans);
    z_stream stream = {.next_in = plain, .avail_in = (uInt)size};
    deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, 0);
    stream.next_out = frame + 5;
    stream.avail_out = FRAME_MAX - 5;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return frame_up(1, stream.total_out);
}

/* A call's headers; pairs of extra replace those of the same name, an empty value drops it. */
static int32_t call(struct h2_peer *peer, const char *const *extra, const void *body, size_t size,
                    bool is_complete)
{
    static const char *const standard[] = {":method",
                                           "POST",
                                           ":scheme",
                                           "http",
                                           ":path",
                                           traces_path,
                                           ":authority",
                                           "collector:4317",
                                           "content-type",
                                           "application/grpc",
                                           "te",
                                           "trailers",
                                           NULL};
    const char *fields[FIELDS_MAX];
    size_t count = 0;
    for (size_t i = 0; standard[i] != NULL; i += 2) {
        const char *value = standard[i + 1];
        for (size_t j = 0; extra != NULL && extra[j] != NULL; j += 2)
            if (strcmp(extra[j], standard[i]) == 0)
                value = extra[j + 1];
        if (value[0] == '\0')
            continue;
        fields[count++] = standard[i];
        fields[count++] = value;
    }
    for (size_t j = 0; extra != NULL && extra[j] != NULL; j += 2) {
        bool is_new = true;
        for (size_t i = 0; standard[i] != NULL; i += 2)
            is_new &= strcmp(extra[j], standard[i]) != 0;
        if (!is_new)
            continue;
        fields[count++] = extra[j];
        fields[count++] = extra[j + 1];
    }
    fields[count] = NULL;
    return h2_peer_request(peer, fields, body, size, is_complete);
}

static void assert_status(struct h2_peer *peer, int32_t id, const char *what, unsigned http_status,
                          unsigned code, const char *message)
{
    char expected[64];
    fixture_turn_until_closed(peer, id);
    struct h2_response *response = h2_peer_response(peer, id);
    const char *trailers = response->header_blocks > 1 ? response->trailers : response->headers;
    snprintf(expected, sizeof(expected), "grpc-status: %u\n", code);
    if (response->status != http_status || strstr(trailers, expected) == NULL ||
        strstr(trailers, message) == NULL)
        fail_msg("%s: found %u\n%s%s", what, response->status, response->headers,
                 response->trailers);
}

/* A request that got its response but was never completed is closed after this. */
static void pass_the_discard(struct h2_peer *peer)
{
    fixture_turn(peer, 10);
    clock_fake_advance(HTTP2_DISCARD_NS);
}

static void spans_arrive_byte_for_byte(void **state)
{
    uint8_t expected[FRAME_MAX];
    (void)state;
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    size_t size = frame_traces(100);
    int32_t id = call(peer, NULL, frame, size, true);
    assert_status(peer, id, "traces", 200, 0, "");
    struct h2_response *response = h2_peer_response(peer, id);
    assert_string_equal(response->headers, "content-type: application/grpc\n");
    assert_int_equal(response->body_size, 7);
    assert_memory_equal(response->body, "\0\0\0\0\2\x0a\0", 7);
    assert_int_equal(fixture.offers, 1);
    assert_int_equal(fixture.last.items, 100);
    assert_int_equal(fixture.last.size, fixture_traces(expected, 100));
    assert_memory_equal(fixture.last.bytes, expected, fixture.last.size);
    assert_string_equal(fixture.last.address, "127.0.0.1");
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "grpc", TRACES), 100);
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "http", TRACES), 0);
    h2_peer_close(peer);
}

static void gzip_is_inflated(void **state)
{
    static const char *const gzip[] = {"grpc-encoding", "gzip", NULL};
    (void)state;
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    assert_status(peer, call(peer, gzip, frame, frame_gzip(1000), true), "gzip", 200, 0, "");
    assert_int_equal(fixture.last.items, 1000);
    /* The encoding is an offer: a message may come plain all the same. */
    assert_status(peer, call(peer, gzip, frame, frame_traces(3), true), "plain", 200, 0, "");
    assert_int_equal(fixture.last.items, 3);
    h2_peer_close(peer);
}

static void snappy_and_zstd_are_inflated(void **state)
{
    static const struct {
        const char *extra[3];
        enum codec codec;
    } rows[] = {
        {{"grpc-encoding", "snappy"}, CODEC_SNAPPY_FRAMED},
        {{"grpc-encoding", "zstd"}, CODEC_ZSTD},
    };
    uint8_t plain[FRAME_MAX];
    struct codec_box *box = codec_box_create(NULL);
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buffer *packed = NULL;
        struct batch_part part = {.bytes =
                                      slice_of(plain, fixture_traces(plain, 10 + (unsigned)i))};
        struct codec_input input = {.parts = &part, .parts_count = 1, .level = -1};
        assert_int_equal(codec_deflate(box, rows[i].codec, &input, &packed), CODEC_OK);
        memcpy(frame + 5, packed->data, packed->size);
        assert_status(peer, call(peer, rows[i].extra, frame, frame_up(1, packed->size), true),
                      rows[i].extra[1], 200, 0, "");
        assert_int_equal(fixture.last.items, 10 + i);
        assert_status(peer, call(peer, rows[i].extra, "\1\0\0\0\5abcde", 10, true), "no stream",
                      200, 13, "grpc: failed to read decompressed data: ");
        buffer_unref(packed);
    }
    h2_peer_close(peer);
    codec_box_destroy(box);
}

static void headers_are_checked(void **state)
{
    static const struct {
        const char *extra[5];
        unsigned http_status;
        unsigned code;
        const char *message;
    } rows[] = {
        {{":method", "PUT"}, 405, 13, "POST"},
        {{"content-type", "text/plain"},
         415,
         3,
         "invalid gRPC request content-type \"text/plain\""},
        {{"content-type", ""}, 415, 3, "invalid gRPC request content-type"},
        {{"content-type", "application/grpcx"}, 415, 3, "invalid gRPC"},
        {{"content-type", "application/grpc+proto"}, 200, 0, ""},
        {{"content-type", "application/grpc+json"}, 200, 0, ""},
        {{"content-type", "application/grpc; charset=utf-8"}, 200, 0, ""},
        {{"te", ""}, 200, 0, ""},
        {{":authority", "", "host", "collector:4317"}, 200, 0, ""},
        {{"grpc-timeout", "1"}, 400, 13, "malformed grpc-timeout"},
        {{"grpc-timeout", "123456789S"}, 400, 13, "malformed grpc-timeout"},
        {{"grpc-timeout", "1x"}, 400, 13, "malformed grpc-timeout"},
        {{"grpc-timeout", "-1S"}, 400, 13, "malformed grpc-timeout"},
        {{"grpc-timeout", "0S"}, 200, 4, "context deadline exceeded"},
        {{"grpc-timeout", "99999999H"}, 200, 0, ""},
        {{"x-trace-bin", "%%%"}, 400, 13, "malformed binary metadata"},
        {{"x-trace-bin", "YWI"}, 200, 0, ""},
        {{"x-trace-bin", "YWI="}, 200, 0, ""},
        {{"grpc-encoding", "identity"}, 200, 0, ""},
        {{"grpc-encoding", "deflate"}, 200, 12, "grpc-accept-encoding: identity,gzip,snappy,zstd"},
        {{"grpc-encoding", "snoppy"},
         200,
         12,
         "grpc: Decompressor is not installed for grpc-encoding \"snoppy\""},
        {{":path", "/opentelemetry.proto.collector.logs.v1.LogsService/Export"},
         200,
         12,
         "unknown service opentelemetry.proto.collector.logs.v1.LogsService"},
        {{":path", "/opentelemetry.proto.collector.trace.v1.TraceService/Import"},
         200,
         12,
         "unknown method Import for service "
         "opentelemetry.proto.collector.trace.v1.TraceService"},
        {{":path", "/x"}, 200, 12, "malformed method name: \"/x\""},
        {{":path", "/grpc.health.v1.Health/Check"}, 200, 12, "unknown service grpc.health"},
    };
    (void)state;
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_status(peer, call(peer, rows[i].extra, frame, frame_traces(1), true),
                      rows[i].extra[1], rows[i].http_status, rows[i].code, rows[i].message);
    h2_peer_close(peer);
}

/* No gRPC client sent it: the response is plain HTTP, with a body that people can read. */
static void another_type_gets_a_plain_http_response(void **state)
{
    static const char *const extra[] = {"content-type", "application/json", NULL};
    static const char text[] = "invalid gRPC request content-type \"application/json\"\nThis port "
                               "accepts only gRPC; send OTLP over HTTP ";
    (void)state;
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    int32_t id = call(peer, extra, "{}", 2, true);
    assert_status(peer, id, "json", 415, 3, "content-type: text/plain; charset=utf-8\n");
    const struct h2_response *response = h2_peer_response(peer, id);
    assert_int_equal(response->header_blocks, 1);
    assert_true(response->body_size > sizeof(text));
    assert_memory_equal(response->body, text, sizeof(text) - 1);
    h2_peer_close(peer);
}

static void messages_are_checked(void **state)
{
    static const struct {
        const char *what;
        const char *bytes;
        size_t size;
        unsigned code;
        const char *message;
    } rows[] = {
        {"empty message", "\0\0\0\0\0", 5, 0, ""},
        {"no message", "", 0, 2, "EOF"},
        {"half a prefix", "\0\0\0", 3, 2, "unexpected EOF"},
        {"cut message", "\0\0\0\0\7\n\5", 7, 2, "unexpected EOF"},
        {"flag without encoding", "\1\0\0\0\0", 5, 13,
         "grpc: compressed flag set with identity or empty encoding"},
        {"unknown flag", "\2\0\0\0\0", 5, 13, "grpc: received unexpected payload format"},
        {"undecodable", "\0\0\0\0\2\n\5", 7, 3, "grpc: error unmarshalling request: "},
        {"too large", "\0\0\x40\0\1", 5, 8,
         "grpc: received message larger than max (4194305 vs. 4194304)"},
        {"two messages", "\0\0\0\0\0\0\0\0\0\0", 10, 0, ""},
        {"trailing bytes", "\0\0\0\0\0xyz", 8, 0, ""},
    };
    (void)state;
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_status(peer, call(peer, NULL, rows[i].bytes, rows[i].size, true), rows[i].what, 200,
                      rows[i].code, rows[i].message);
    assert_int_equal(fixture.offers, 0);
    assert_status(peer, call(peer, NULL, NULL, 0, true), "no body at all", 200, 13,
                  "missing request message");
    h2_peer_close(peer);
}

static void a_size_over_the_limit_is_refused_before_it_comes(void **state)
{
    (void)state;
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    int32_t id = call(peer, NULL, "\0\x7f\0\0\0", 5, false);
    pass_the_discard(peer);
    assert_status(peer, id, "never completed", 200, 8, "grpc: received message larger than max");
    assert_int_equal(h2_peer_response(peer, id)->close_code, NGHTTP2_NO_ERROR);
    h2_peer_close(peer);
}

static void a_bomb_is_refused(void **state)
{
    static const char *const gzip[] = {"grpc-encoding", "gzip", NULL};
    enum { PLAIN = 5 << 20 };
    uint8_t *zeros = mem_zalloc(PLAIN);
    (void)state;
    z_stream stream = {.next_in = zeros, .avail_in = PLAIN};
    deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, 0);
    stream.next_out = frame + 5;
    stream.avail_out = FRAME_MAX - 5;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    assert_status(peer, call(peer, gzip, frame, frame_up(1, stream.total_out), true), "bomb", 200,
                  8, "larger than max");
    assert_status(peer, call(peer, gzip, "\1\0\0\0\3abc", 8, true), "no gzip", 200, 13,
                  "grpc: failed to decompress");
    h2_peer_close(peer);
    mem_free(zeros);
}

static void the_pipelines_result_is_the_status_of_the_call(void **state)
{
    static const struct {
        struct outcome outcome;
        unsigned code;
        const char *message;
        bool has_details;
    } rows[] = {
        {{.verdict = REFUSED,
          .code = STATUS_UNAVAILABLE,
          .retry_after_ns = NS_PER_S,
          .message = "full"},
         14,
         "grpc-message: full",
         true},
        {{.verdict = LOST, .code = STATUS_INTERNAL, .is_permanent = true, .message = "100% \n"},
         13,
         "grpc-message: 100%25 %0A",
         false},
        {{.verdict = LOST, .code = STATUS_PERMISSION_DENIED, .message = "no"},
         7,
         "grpc-message: no",
         false},
        /* Several exporters: each may have lost the same items. */
        {{.verdict = ACCEPTED, .rejected_items = 300}, 0, "", false},
    };
    (void)state;
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fixture.outcome = rows[i].outcome;
        int32_t id = call(peer, NULL, frame, frame_traces(2), true);
        assert_status(peer, id, rows[i].message, 200, rows[i].code, rows[i].message);
        struct h2_response *response = h2_peer_response(peer, id);
        assert_int_equal(strstr(response->headers, "grpc-status-details-bin: ") != NULL,
                         rows[i].has_details);
        if (rows[i].code == 0)
            assert_memory_equal(response->body, "\0\0\0\0\4\x0a\2\x08\2", 9);
    }
    assert_int_equal(fixture_count("otelcol_receiver_refused_%s", "grpc", TRACES), 6);
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "grpc", TRACES), 2);
    h2_peer_close(peer);
}

/* RetryInfo of 1.5 s (1 s and the fixed jitter): base64 of the message, put together by hand from
 * the field numbers of google.rpc.Status. */
static void a_refusal_carries_retry_info(void **state)
{
    (void)state;
    fixture.outcome = outcome_busy("b");
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    int32_t id = call(peer, NULL, frame, frame_traces(1), true);
    assert_status(peer, id, "busy", 200, 14,
                  "grpc-status-details-bin: CA4SAWIaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBj"
                  "LlJldHJ5SW5mbxIKCggIARCAyrXuAQ\n");
    h2_peer_close(peer);
}

static void a_deadline_ends_the_call_while_the_pipeline_still_works(void **state)
{
    static const char *const timeout[] = {"grpc-timeout", "500m", NULL};
    (void)state;
    fixture.holds = true;
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    int32_t id = call(peer, timeout, frame, frame_traces(1), true);
    fixture_turn(peer, 5);
    assert_non_null(fixture.held);
    clock_fake_advance(499 * (uint64_t)NS_PER_MS);
    fixture_turn(peer, 5);
    assert_false(h2_peer_response(peer, id)->is_closed);
    clock_fake_advance(2 * (uint64_t)NS_PER_MS);
    assert_status(peer, id, "late", 200, 4, "context deadline exceeded");
    receipt_resolve(fixture.held, &outcome_accepted);
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "grpc", TRACES), 1);
    /* The same while the body is still awaited. */
    id = call(peer, timeout, frame, 3, false);
    fixture_turn(peer, 5);
    clock_fake_advance(NS_PER_S);
    pass_the_discard(peer);
    assert_status(peer, id, "late body", 200, 4, "context deadline exceeded");
    h2_peer_close(peer);
}

/* In nanoseconds these hours are 19 * 2^64 + 200 s or so. */
static void a_deadline_beyond_the_clock_never_comes(void **state)
{
    static const char *const timeout[] = {"grpc-timeout", "97357816H", NULL};
    (void)state;
    fixture.holds = true;
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    int32_t id = call(peer, timeout, frame, frame_traces(1), true);
    fixture_turn(peer, 5);
    assert_non_null(fixture.held);
    clock_fake_advance(3600 * (uint64_t)NS_PER_S);
    fixture_turn(peer, 5);
    assert_false(h2_peer_response(peer, id)->is_closed);
    receipt_resolve(fixture.held, &outcome_accepted);
    assert_status(peer, id, "in time", 200, 0, "");
    h2_peer_close(peer);
}

static void a_client_that_leaves_is_forgotten(void **state)
{
    (void)state;
    fixture.holds = true;
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    call(peer, NULL, frame, frame_traces(1), true);
    call(peer, NULL, frame, 7, false);
    fixture_turn(peer, 5);
    assert_int_equal(fixture.offers, 1);
    h2_peer_close(peer);
    for (unsigned i = 0; i < 10; i++)
        lane_turn(fixture.lane);
    receipt_resolve(fixture.held, &outcome_accepted);
    assert_int_equal(budget_used(&fixture.budget), 0);
}

/* What breaks HTTP/2 never becomes a request: it is counted on its own, and no item is. */
static void protocol_errors_have_their_own_counters(void **state)
{
    static char large[9000];
    static const char *const no_path[] = {":path", "", NULL};
    const char *const large_header[] = {"x-large", large, NULL};
    (void)state;
    memset(large, 'x', sizeof(large) - 1);
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    int32_t id = call(peer, NULL, frame, frame_traces(2), true);
    fixture_turn_until_closed(peer, id);
    assert_int_equal(fixture_count("spanflame_receiver_streams_reset", "", TRACES), 0);
    id = call(peer, no_path, frame, frame_traces(2), true);
    fixture_turn_until_closed(peer, id);
    assert_int_equal(fixture_count("spanflame_receiver_streams_reset", "", TRACES), 1);
    id = call(peer, large_header, frame, frame_traces(2), true);
    fixture_turn_until_closed(peer, id);
    assert_int_equal(fixture_count("spanflame_receiver_streams_reset", "", TRACES), 2);
    assert_int_equal(fixture_count("spanflame_receiver_connections_aborted", "", TRACES), 0);
    h2_peer_close(peer);
    struct h2_peer *other = h2_peer_connect_raw(fixture.grpc_address);
    static const uint8_t window_of_0[4];
    h2_peer_greet(other);
    h2_peer_frame(other, NGHTTP2_WINDOW_UPDATE, 0, 0, window_of_0, sizeof(window_of_0));
    for (unsigned i = 0; i < 100 && !other->has_ended; i++)
        fixture_turn(other, 1);
    assert_true(other->has_ended);
    h2_peer_close(other);
    for (unsigned i = 0; i < 10; i++)
        lane_turn(fixture.lane);
    assert_int_equal(fixture_count("spanflame_receiver_connections_aborted", "", TRACES), 1);
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "grpc", TRACES), 2);
    assert_int_equal(fixture_count("otelcol_receiver_refused_%s", "grpc", TRACES), 0);
    assert_int_equal(fixture.offers, 1);
}

static void no_budget_is_a_refusal_with_a_hint(void **state)
{
    (void)state;
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    assert_true(budget_try_take(&fixture.budget, 64 * MIB - 10000));
    int32_t id = call(peer, NULL, "\0\0\x20\0\0", 5, false);
    pass_the_discard(peer);
    assert_status(peer, id, "short", 200, 14, "grpc-status-details-bin: ");
    budget_return(&fixture.budget, 64 * MIB - 10000);
    assert_status(peer, call(peer, NULL, frame, frame_traces(1), true), "again", 200, 0, "");
    h2_peer_close(peer);
}

static void empty_requests_are_not_forwarded(void **state)
{
    (void)state;
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    assert_status(peer, call(peer, NULL, frame, frame_traces(0), true), "no spans", 200, 0, "");
    assert_int_equal(fixture.offers, 0);
    h2_peer_close(peer);
}

static void metadata_is_kept_when_asked_for(void **state)
{
    static const char *const tenant[] = {"x-tenant", "acme", NULL};
    (void)state;
    fixture_stop();
    fixture_start("{protocols: {grpc: {endpoint: 'localhost:0', include_metadata: true}}}");
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    assert_status(peer, call(peer, tenant, frame, frame_traces(1), true), "tenant", 200, 0, "");
    assert_string_equal(fixture.last.tenant, "acme");
    assert_string_equal(fixture.last.host, "collector:4317");
    assert_string_equal(fixture.last.authority, "collector:4317");
    assert_false(fixture.last.has_te);
    assert_true(fixture.last.is_client_charged);
    assert_string_equal(fixture.last.address, "127.0.0.1");
    h2_peer_close(peer);
}

static void stopping_awaits_the_pipeline(void **state)
{
    (void)state;
    fixture.holds = true;
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    int32_t id = call(peer, NULL, frame, frame_traces(1), true);
    fixture_turn(peer, 5);
    fixture_begin_stop();
    fixture_turn(peer, 20);
    assert_false(fixture.is_stopped);
    receipt_resolve(fixture.held, &outcome_accepted);
    assert_status(peer, id, "late", 200, 0, "");
    for (unsigned i = 0; i < 200 && !fixture.is_stopped; i++) {
        clock_fake_advance(10 * (uint64_t)NS_PER_MS);
        fixture_turn(peer, 1);
    }
    assert_true(fixture.is_stopped);
    h2_peer_close(peer);
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ROW(spans_arrive_byte_for_byte),
        ROW(gzip_is_inflated),
        ROW(snappy_and_zstd_are_inflated),
        ROW(headers_are_checked),
        ROW(another_type_gets_a_plain_http_response),
        ROW(messages_are_checked),
        ROW(a_size_over_the_limit_is_refused_before_it_comes),
        ROW(a_bomb_is_refused),
        ROW(the_pipelines_result_is_the_status_of_the_call),
        ROW(a_refusal_carries_retry_info),
        ROW(a_deadline_ends_the_call_while_the_pipeline_still_works),
        ROW(a_deadline_beyond_the_clock_never_comes),
        ROW(a_client_that_leaves_is_forgotten),
        ROW(no_budget_is_a_refusal_with_a_hint),
        ROW(protocol_errors_have_their_own_counters),
        ROW(empty_requests_are_not_forwarded),
        ROW(metadata_is_kept_when_asked_for),
        ROW(stopping_awaits_the_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
