/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP over HTTP: the responses that the contract asks for, byte by byte. */
#include "tests/unit/receivers/otlp_fixture.h"

#include "receivers/otlp/otlp_receiver.h"
#include "receivers/shared/request_pieces.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/codec/codec.h"
#include "src/core/batch.h"
#include "src/net/server/http_server.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "tests/support/cpu_share.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

enum { REQUEST_MAX = 1 << 16, TURNS = 8 };

static uint8_t body[REQUEST_MAX];
static char response[REQUEST_MAX];

static int set_up(void **state)
{
    (void)state;
    fixture_start("{protocols: {http: {endpoint: 'localhost:0', max_request_body_size: 20000}}}");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_stop();
    return 0;
}

static size_t gzip_body(const uint8_t *plain, size_t size)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)plain, .avail_in = (uInt)size};
    deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, 0);
    stream.next_out = body;
    stream.avail_out = REQUEST_MAX;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return stream.total_out;
}

static void keep_response(const struct h2_peer *peer)
{
    assert_true(peer->raw_size < REQUEST_MAX);
    if (peer->raw_size > 0)
        memcpy(response, peer->raw_input, peer->raw_size);
    response[peer->raw_size] = '\0';
}

/* One request on a connection of its own; what comes back is in response. */
static void ask(const char *line, const char *headers, const void *data, size_t size)
{
    char head[REQUEST_MAX];
    struct h2_peer *peer = h2_peer_connect_raw(fixture.http_address);
    int used = snprintf(head, sizeof(head),
                        "%s HTTP/1.1\r\nHost: collector\r\n%s"
                        "Content-Length: %zu\r\n\r\n",
                        line, headers, size);
    h2_peer_write(peer, head, (size_t)used);
    if (size > 0)
        h2_peer_write(peer, data, size);
    fixture_turn(peer, TURNS);
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

static const char protobuf[] = "Content-Type: application/x-protobuf\r\n";

static void spans_arrive_byte_for_byte(void **state)
{
    uint8_t expected[REQUEST_MAX];
    (void)state;
    size_t size = fixture_traces(body, 100);
    ask("POST /v1/traces", protobuf, body, size);
    assert_response("traces", "200 OK", "content-length: 2\r\n");
    assert_non_null(strcasestr(response, "content-type: application/x-protobuf\r\n"));
    assert_non_null(strcasestr(response, "\r\n\r\n\x0a"));
    assert_int_equal(fixture.last.items, 100);
    assert_int_equal(fixture.last.signal, TRACES);
    assert_int_equal(fixture.last.size, fixture_traces(expected, 100));
    assert_memory_equal(fixture.last.bytes, expected, fixture.last.size);
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "http", TRACES), 100);
}

/* Field 1000, deprecated_scope_spans, with a span; before it a Resource, behind it field 2. */
static void former_scopes_arrive_as_those_of_today(void **state)
{
    (void)state;
    assert_int_equal(fixture.offers, 0);
    ask("POST /v1/traces", protobuf, "\x0a\x09\x0a\x02\x10\x05\xc2\x3e\x02\x12\x00", 11);
    assert_response("alone", "200 OK", "content-length: 2\r\n");
    assert_int_equal(fixture.last.items, 1);
    assert_int_equal(fixture.last.size, 10);
    assert_memory_equal(fixture.last.bytes, "\x0a\x08\x0a\x02\x10\x05\x12\x02\x12\x00", 10);
    ask("POST /v1/traces", protobuf, "\x0a\x0b\xc2\x3e\x02\x12\x00\x12\x04\x12\x00\x12\x00", 13);
    assert_response("beside others", "200 OK", "content-length: 2\r\n");
    assert_int_equal(fixture.last.items, 2);
    assert_int_equal(fixture.last.size, 8);
    assert_memory_equal(fixture.last.bytes, "\x0a\x06\x12\x04\x12\x00\x12\x00", 8);
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "http", TRACES), 3);
}

static const struct {
    const char *line;
    const char *headers;
    const char *data;
    size_t size;
    const char *status;
    const char *part;
} responses[] = {
    {"POST /v1/traces", "Content-Type: APPLICATION/X-PROTOBUF; a=b\r\n", "", 0, "200", ""},
    {"POST /v1/metrics", "Content-Type: application/x-protobuf\r\n", "", 0, "200", ""},
    {"POST /v1/traces?x=y", "Content-Type: application/x-protobuf;\r\n", "", 0, "200", ""},
    {"POST /v1/%74races", "Content-Type: application/x-protobuf\r\n", "", 0, "200", ""},
    {"POST http://host/v1/traces", "Content-Type: application/x-protobuf\r\n", "", 0, "200", ""},
    {"POST http://host", "", "", 0, "307", "location: /\r\n"},
    {"POST http://host?a=b", "", "", 0, "307", "location: /?a=b\r\n"},
    {"POST /v1%2Ftraces", "Content-Type: application/x-protobuf\r\n", "", 0, "404",
     "404 page not found\n"},
    {"POST /v1/%2ftraces", "Content-Type: application/x-protobuf\r\n", "", 0, "404", ""},
    {"POST /v1/%2e/traces", "Content-Type: application/x-protobuf\r\n", "", 0, "404", ""},
    {"GET /v1/traces", "", "", 0, "405", "405 method not allowed, supported: [POST]"},
    {"PUT /v1/traces", "", "", 0, "405", "content-type: text/plain\r\n"},
    {"POST /v1/traces", "", "", 0, "415", "415 unsupported media type, supported: ["},
    {"POST /v1/traces", "Content-Type: application/protobuf\r\n", "", 0, "415", "415 unsup"},
    {"POST /v1/traces", "Content-Type: application/grpc\r\n", "", 0, "415", "415 unsup"},
    {"POST /v1/traces", "Content-Type: application/x-protobuf; a\r\n", "", 0, "415", "415"},
    {"POST /v1/traces", "Content-Type: application/x-protobuf; a=b; a=c\r\n", "", 0, "415", "415"},
    {"POST /v1/traces", "Content-Type: application/json\r\n", "{}", 2, "200",
     "\r\n\r\n{\"partialSuccess\":{}}"},
    {"POST /v1/traces", "Content-Type: Application/JSON; charset=utf-8\r\n", " null ", 6, "200",
     "content-type: application/json\r\n"},
    {"POST /v1/metrics", "Content-Type: application/json;\r\n", "{}", 2, "200", ""},
    {"POST /v1/traces", "Content-Type: application/json\r\n", "", 0, "400",
     "{\"code\":3,\"message\":\"JSON at byte 0: found the end of the text, expected"},
    {"POST /v1/traces", "Content-Type: application/json\r\n", "{}{}", 4, "400",
     "{\"code\":3,\"message\":\"JSON at byte 2: found {, expected nothing after"},
    {"POST /v1/traces", "Content-Type: application/json\r\n", "\n\x02\n\0", 4, "400",
     "content-type: application/json\r\n"},
    {"POST /v1/logs", "Content-Type: application/x-protobuf\r\n", "", 0, "404",
     "404 page not found\n"},
    {"POST /v1/traces/", "Content-Type: application/x-protobuf\r\n", "", 0, "404",
     "x-content-type-options: nosniff\r\n"},
    {"GET /", "", "", 0, "404", "content-type: text/plain; charset=utf-8\r\n"},
    {"POST //v1/traces?a=b", "", "", 0, "307", "location: /v1/traces?a=b\r\n"},
    {"POST /v1//traces", "", "", 0, "307", "location: /v1/traces\r\n"},
    {"POST /x/../v1/./traces", "", "", 0, "307", "location: /v1/traces\r\n"},
    {"POST /v1/traces", "Content-Type: application/x-protobuf\r\nContent-Encoding: identity\r\n",
     "", 0, "400", "unsupported Content-Encoding: identity"},
    {"POST /v1/traces", "Content-Type: application/json\r\nContent-Encoding: x-gzip\r\n", "", 0,
     "400", "{\"code\":3,\"message\":\"unsupported Content-Encoding: x-gzip\"}"},
    {"POST /v1/traces", "Content-Encoding: GZIP\r\n", "", 0, "400",
     "content-type: application/json\r\n"},
    {"GET /nowhere", "Content-Encoding: gzip, gzip\r\n", "", 0, "400",
     "unsupported Content-Encoding: gzip, gzip"},
    {"POST /v1/traces", "Content-Type: text/html\r\nContent-Encoding: br\r\n", "", 0, "500",
     "{\"code\": 13, \"message\": \"failed to marshal error message\"}"},
    {"POST /v1/traces", "Content-Type: application/x-protobuf\r\n", "\n\5", 2, "400",
     "content-type: application/x-protobuf\r\n"},
    {"POST /v1/traces", "Content-Type: application/x-protobuf\r\n", "\xff", 1, "400",
     "\r\n\r\n\x08\x03\x12"},
    {"POST /v1/traces", "Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n", "", 0,
     "400",
     "\x08\x03\x12\x03"
     "EOF"},
    {"POST /v1/traces", "Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n",
     "not gzip at all, but long enough", 32, "400", "gzip: invalid header"},
};

static void responses_are_those_of_the_contract(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(responses) / sizeof(responses[0]); i++) {
        ask(responses[i].line, responses[i].headers, responses[i].data, responses[i].size);
        assert_response(responses[i].line, responses[i].status, responses[i].part);
    }
    assert_int_equal(fixture.offers, 0);
}

/* A dictionary with nothing but its zero elements. */
#define DICTIONARY     "\x12\x0e\x0a\x00\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x3a\x00"
#define GOOD_PROFILE   "\x12\x09\x0a\x00\x12\x03\x22\x01\x05\x2a\x00"
#define BROKEN_PROFILE "\x12\x0b\x0a\x00\x12\x05\x08\x09\x22\x01\x05\x2a\x00"
#define TEXT(text)     (text), sizeof(text) - 1

static const char profiles_line[] = "POST /v1development/profiles";

static void broken_profiles_are_reported_and_the_rest_goes_on(void **state)
{
    static const char mixed[] = "\x0a\x1a\x12\x18" GOOD_PROFILE BROKEN_PROFILE DICTIONARY;
    static const char broken[] = "\x0a\x0f\x12\x0d" BROKEN_PROFILE DICTIONARY;
    (void)state;
    ask(profiles_line, protobuf, TEXT(mixed));
    assert_response("mixed", "200 OK", "\x08\x01\x12");
    assert_non_null(strstr(response, "profile 1: stack_index 9 is outside of the stack_table"));
    assert_int_equal(fixture.offers, 1);
    assert_int_equal(fixture.last.signal, PROFILES);
    assert_int_equal(fixture.last.items, 1);
    ask(profiles_line, protobuf, TEXT(broken));
    assert_response("broken", "200 OK", "\x08\x01\x12");
    assert_int_equal(fixture.offers, 1); /* nothing is left to offer */
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "http", PROFILES), 1);
    assert_int_equal(fixture_count("otelcol_receiver_refused_%s", "http", PROFILES), 2);
    assert_int_equal(fixture_count("spanflame_profiles_rejected", "", TRACES), 2);
}

static void older_layouts_of_profiles_arrive_as_the_new_one(void **state)
{
    static const char old[] = "\x0a\x10\x12\x0e\x12\x0c\x0a\x00\x12\x06\x12\x01\x05\x1a\x01\x00"
                              "\x2a\x00" DICTIONARY;
    static const char new[] = "\x0a\x10\x12\x0e\x12\x0c\x0a\x00\x12\x06\x22\x01\x05\x12\x01\x00"
                              "\x2a\x00" DICTIONARY;
    (void)state;
    ask(profiles_line, protobuf, TEXT(old));
    assert_response("1.9", "200 OK", "");
    assert_int_equal(fixture.last.size, sizeof(new) - 1);
    assert_memory_equal(fixture.last.bytes, new, sizeof(new) - 1);
    assert_int_equal(fixture_count("spanflame_profiles_received", "1.9", TRACES), 1);
    ask(profiles_line, protobuf, TEXT("\x0a\x08\x12\x06\x12\x04\x12\x02\x08\x01"));
    assert_response("1.6", "400", "the layout of OTLP 1.6 or older");
    assert_int_equal(fixture_count("spanflame_profiles_received", "1.6", TRACES), 1);
    assert_int_equal(fixture.offers, 1);
}

/* Values alone in field 2: by themselves they tell 1.9. */
static void the_layout_of_profiles_is_detected(void **state)
{
    static const char request[] =
        "\x0a\x0d\x12\x0b\x12\x09\x0a\x00\x12\x03\x12\x01\x00\x2a\x00" DICTIONARY;
    (void)state;
    fixture_stop();
    fixture_start("{protocols: {http: {endpoint: 'localhost:0'}}, profiles_layout: '1.10'}");
    ask(profiles_line, protobuf, TEXT(request));
    assert_response("warned", "200 OK", "");
    assert_memory_equal(fixture.last.bytes, request, sizeof(request) - 1);
    assert_int_equal(fixture_count("spanflame_profiles_received", "1.10", TRACES), 1);
    fixture_stop();
    fixture_start("{protocols: {http: {endpoint: 'localhost:0'}}, profiles_layout: auto}");
    ask(profiles_line, protobuf, TEXT(request));
    assert_int_equal(fixture_count("spanflame_profiles_received", "1.9", TRACES), 1);
}

static void profiles_without_samples_go_on_if_there_are_any(void **state)
{
    static const char payload[] = "\x0a\x0f\x12\x0d\x12\x0b\x0a\x00\x2a\x00\x4a\x01"
                                  "f\x52\x02pp" DICTIONARY;
    (void)state;
    ask(profiles_line, protobuf, TEXT(payload));
    assert_response("payload", "200 OK", "");
    assert_int_equal(fixture.offers, 1);
    assert_int_equal(fixture.last.items, 0);
    assert_int_equal(fixture.last.size, sizeof(payload) - 1);
    ask(profiles_line, protobuf, TEXT(DICTIONARY));
    assert_response("no profiles", "200 OK", "");
    assert_int_equal(fixture.offers, 1);
}

static void ask_encoded(const char *encoding, const void *data, size_t size)
{
    char headers[200];
    snprintf(headers, sizeof(headers),
             "Content-Type: application/x-protobuf\r\nContent-Encoding: %s\r\n", encoding);
    ask("POST /v1/traces", headers, data, size);
}

static void gzip_is_inflated(void **state)
{
    uint8_t plain[REQUEST_MAX];
    (void)state;
    size_t size = gzip_body(plain, fixture_traces(plain, 500));
    ask_encoded("gzip", body, size);
    assert_response("gzip", "200", "");
    assert_int_equal(fixture.last.items, 500);
}

static void every_encoding_is_inflated(void **state)
{
    static const struct {
        const char *name;
        enum codec codec;  /* that makes the body */
        const char *empty; /* the status for an empty body */
    } rows[] = {
        {"gzip", CODEC_GZIP, "400"},
        {"zlib", CODEC_ZLIB, "400"},
        {"deflate", CODEC_ZLIB, "400"},
        {"zstd", CODEC_ZSTD, "200"},
        {"snappy", CODEC_SNAPPY, "400"},
        {"snappy", CODEC_SNAPPY_FRAMED, "400"}, /* what old collectors call so */
        {"x-snappy-framed", CODEC_SNAPPY_FRAMED, "200"},
        {"lz4", CODEC_LZ4, "200"},
    };
    uint8_t plain[REQUEST_MAX];
    struct codec_box *box = codec_box_create(NULL);
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buffer *packed = NULL;
        struct batch_part part = {.bytes =
                                      slice_of(plain, fixture_traces(plain, 100 + (unsigned)i))};
        struct codec_input input = {.parts = &part, .parts_count = 1, .level = -1};
        assert_int_equal(codec_deflate(box, rows[i].codec, &input, &packed), CODEC_OK);
        ask_encoded(rows[i].name, packed->data, packed->size);
        assert_response(rows[i].name, "200", "");
        assert_int_equal(fixture.last.items, 100 + i);
        buffer_unref(packed);
        ask_encoded(rows[i].name, "", 0);
        assert_response(rows[i].name, rows[i].empty, "");
        ask_encoded(rows[i].name, "this is in no format at all", 27);
        assert_response(rows[i].name, "400", "content-type: application/x-protobuf\r\n");
    }
    codec_box_destroy(box);
}

static void sizes_are_limited_before_and_after_inflating(void **state)
{
    uint8_t plain[20001] = {0};
    (void)state;
    ask("POST /v1/traces", protobuf, plain, sizeof(plain));
    assert_response("declared", "413", "http: request body too large");
    size_t size = gzip_body(plain, sizeof(plain));
    ask("POST /v1/traces", "Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n",
        body, size);
    assert_response("inflated", "413", "http: request body too large");
}

static void the_pipelines_result_is_the_response(void **state)
{
    static const struct {
        enum status_code code;
        const char *status;
    } rows[] = {
        {STATUS_CANCELLED, "503"},
        {STATUS_UNKNOWN, "500"},
        {STATUS_INVALID_ARGUMENT, "400"},
        {STATUS_DEADLINE_EXCEEDED, "503"},
        {STATUS_NOT_FOUND, "500"},
        {STATUS_ALREADY_EXISTS, "500"},
        {STATUS_PERMISSION_DENIED, "403"},
        {STATUS_RESOURCE_EXHAUSTED, "429"},
        {STATUS_FAILED_PRECONDITION, "500"},
        {STATUS_ABORTED, "503"},
        {STATUS_OUT_OF_RANGE, "503"},
        {STATUS_UNIMPLEMENTED, "404"},
        {STATUS_INTERNAL, "500"},
        {STATUS_UNAVAILABLE, "503"},
        {STATUS_DATA_LOSS, "503"},
        {STATUS_UNAUTHENTICATED, "401"},
    };
    char expected[] = "\x08?\x12\4text";
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fixture.outcome =
            (struct outcome){.verdict = LOST, .code = rows[i].code, .message = "text"};
        expected[1] = (char)rows[i].code;
        ask("POST /v1/traces", protobuf, body, fixture_traces(body, 1));
        assert_response(rows[i].status, rows[i].status, expected);
        assert_null(strcasestr(response, "retry-after"));
    }
    assert_int_equal(fixture_count("otelcol_receiver_refused_%s", "http", TRACES), 16);
    assert_int_equal(fixture_count("otelcol_receiver_failed_%s", "http", TRACES), 0);
}

static void refusals_say_when_to_come_back(void **state)
{
    (void)state;
    fixture.outcome = outcome_busy("full");
    ask("POST /v1/traces", protobuf, body, fixture_traces(body, 1));
    assert_response("busy", "503", "retry-after: 1\r\n");
    assert_true(budget_try_take(&fixture.budget, 64 * MIB - 100));
    ask("POST /v1/traces", protobuf, body, fixture_traces(body, 1));
    assert_response("no budget", "503", "retry-after: 1\r\n");
    budget_return(&fixture.budget, 64 * MIB - 100);
}

/* More than the budget's margin. */
static char long_name[5 * MIB];

static enum auth_verdict grant(struct authenticator *authenticator,
                               const struct auth_request *request, struct auth_result *ret_result)
{
    (void)authenticator;
    (void)request;
    ret_result->attributes_count = 1;
    ret_result->attributes[0] = (struct auth_attribute){"username", long_name};
    return AUTH_GRANTED;
}

static void leave(struct authenticator *authenticator)
{
    (void)authenticator;
}

/* The response is written, and its request has ended, before the headers are through. */
static void a_known_client_is_refused_without_memory_for_it(void **state)
{
    static const struct authenticator_ops ops = {.authenticate = grant, .destroy = leave};
    struct authenticator authenticator = {.ops = &ops};
    struct otlp_receiver *receiver = (struct otlp_receiver *)fixture.receiver;
    (void)state;
    memset(long_name, 'n', sizeof(long_name) - 1);
    receiver->servers[OTLP_HTTP].auth.authenticator = &authenticator;
    assert_true(budget_try_take(&fixture.budget, 64 * MIB - 100));
    ask("POST /v1/traces", protobuf, body, fixture_traces(body, 1));
    assert_response("no budget", "503", "retry-after: 1\r\n");
    assert_int_equal(fixture.offers, 0);
    budget_return(&fixture.budget, 64 * MIB - 100);
    ask("POST /v1/traces", protobuf, body, fixture_traces(body, 1));
    assert_response("budget", "200", "");
    receiver->servers[OTLP_HTTP].auth.authenticator = NULL;
}

static void the_response_waits_for_the_receipt(void **state)
{
    char head[256];
    (void)state;
    fixture.holds = true;
    struct h2_peer *peer = h2_peer_connect_raw(fixture.http_address);
    size_t size = fixture_traces(body, 3);
    int used = snprintf(head, sizeof(head),
                        "POST /v1/traces HTTP/1.1\r\nHost: a\r\n%sContent-Length: %zu\r\n\r\n",
                        protobuf, size);
    h2_peer_write(peer, head, (size_t)used);
    h2_peer_write(peer, body, size);
    fixture_turn(peer, TURNS);
    assert_int_equal(fixture.offers, 1);
    assert_int_equal(peer->raw_size, 0);
    receipt_resolve(fixture.held, &outcome_accepted);
    fixture_turn(peer, TURNS);
    keep_response(peer);
    assert_response("late", "200", "");
    h2_peer_close(peer);
}

/* With the standard limit of bodies. */
static void start_large(void)
{
    fixture_stop();
    fixture_start("{protocols: {http: {endpoint: 'localhost:0'}}}");
}

/* Spans of no bytes in one scope. */
static size_t empty_spans(struct profile_bytes *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        profile_bytes_add(out, slice_of("\x12\0", 2));
    profile_bytes_wrap(out, 0, 2);
    profile_bytes_wrap(out, 0, 1);
    return gzip_body(out->data, out->size);
}

static const char gzipped[] = "Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n";

/* Sends what empty_spans made; each turn takes so long. Returns how many offers one turn made at
 * most. */
static unsigned ask_dense_at(const char *path, size_t size, uint64_t turn_ns)
{
    char head[256];
    unsigned most = 0;
    struct h2_peer *peer = h2_peer_connect_raw(fixture.http_address);
    int used =
        snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nHost: h\r\n%sContent-Length: %zu\r\n\r\n",
                 path, gzipped, size);
    h2_peer_write(peer, head, (size_t)used);
    h2_peer_write(peer, body, size);
    for (unsigned i = 0; i < 10 * TURNS && peer->raw_size == 0; i++) {
        unsigned before = fixture.offers;
        fixture_turn(peer, 1);
        clock_fake_advance(turn_ns);
        if (fixture.offers - before > most)
            most = fixture.offers - before;
    }
    keep_response(peer);
    h2_peer_close(peer);
    fixture_turn_alone();
    return most;
}

static unsigned ask_dense(size_t size)
{
    return ask_dense_at("/v1/traces", size, DENSE_REST_NS);
}

/* Below and above what the lane reads itself. The first turn reads the request as well. */
static void a_request_of_many_small_messages_does_not_hold_the_lane(void **state)
{
    static const size_t counts[] = {300000, 1200000};
    struct profile_bytes out = {0};
    (void)state;
    start_large();
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        uint64_t before = fixture_count("otelcol_receiver_accepted_%s", "http", TRACES);
        out.size = 0;
        fixture.offers = 0;
        unsigned most = ask_dense(empty_spans(&out, counts[i]));
        assert_response("dense", "200 OK", "");
        assert_in_range(most, 1, 2);
        assert_in_range(fixture.offers, counts[i] / DENSE_MESSAGES_MAX,
                        counts[i] / DENSE_MESSAGES_MAX * 2);
        assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "http", TRACES) - before,
                         counts[i]);
    }
    profile_bytes_fini(&out);
}

/* Empty Profile messages: nothing is counted for them. */
static void a_request_of_many_small_profiles_does_not_hold_the_lane(void **state)
{
    static const size_t counts[] = {100000, 400000};
    struct profile_bytes out = {0};
    (void)state;
    start_large();
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        out.size = 0;
        fixture.offers = 0;
        unsigned most =
            ask_dense_at("/v1development/profiles", empty_spans(&out, counts[i]), DENSE_REST_NS);
        assert_response("dense", "200 OK", "");
        assert_int_equal(most, 1);
        assert_int_equal(fixture.offers, (counts[i] + DENSE_PROFILES_MAX - 1) / DENSE_PROFILES_MAX);
    }
    profile_bytes_fini(&out);
}

static void resources_without_items_go_nowhere(void **state)
{
    enum { COUNT = 300000 };
    struct profile_bytes out = {0};
    (void)state;
    start_large();
    for (size_t i = 0; i < COUNT; i++)
        profile_bytes_add(&out, slice_of("\x0a\0", 2));
    profile_bytes_add(&out, slice_of("\x0a\4\x12\2\x12\0", 6));
    ask_dense(gzip_body(out.data, out.size));
    assert_response("dense", "200 OK", "");
    assert_int_equal(fixture.offers, 1);
    assert_int_equal(fixture.last.items, 1);
    profile_bytes_fini(&out);
}

/* The worst result of the pieces is the request's. */
static void a_dense_request_is_refused_when_a_piece_is(void **state)
{
    struct profile_bytes out = {0};
    (void)state;
    start_large();
    fixture.outcome = outcome_busy("full");
    ask_dense(empty_spans(&out, 200000));
    assert_response("busy", "503", "full");
    profile_bytes_fini(&out);
}

/* Once a piece is taken: the client would send all of them again. */
static void refused_pieces_of_a_dense_request_wait_for_room(void **state)
{
    enum { COUNT = 200000, PIECES = 4, BUSY = 4, TRIES_MAX = 20 };
    struct profile_bytes out = {0};
    (void)state;
    start_large();
    size_t size = empty_spans(&out, COUNT);
    fixture.busy_first = 2;
    fixture.busy_count = BUSY;
    ask_dense_at("/v1/traces", size, REQUEST_PIECES_WAIT_NS_FIRST);
    assert_response("room later", "200 OK", "");
    assert_int_equal(fixture.taken, COUNT);
    assert_in_range(fixture.offers, PIECES + BUSY, 2 * PIECES + BUSY);

    /* Those behind one that was taken do not wait long. */
    fixture.offers = 0;
    fixture.busy_count = PIECES - 1;
    const uint64_t before_ns = clock_now_ns();
    ask_dense_at("/v1/traces", size, DENSE_REST_NS);
    assert_response("room again", "200 OK", "");
    assert_true(clock_now_ns() - before_ns < 2 * REQUEST_PIECES_WAIT_NS_FIRST);

    fixture.offers = 0;
    fixture.busy_count = UINT_MAX;
    ask_dense_at("/v1/traces", size, REQUEST_PIECES_WAIT_NS_FIRST);
    assert_response("no room", "503", "full");
    assert_true(fixture.given_up >= PIECES - 1);
    assert_in_range(fixture.offers, PIECES + 1, TRIES_MAX);
    profile_bytes_fini(&out);
}

/* The helper still reads it when the client is gone. */
static void a_client_that_leaves_meanwhile_leaves_nothing_behind(void **state)
{
    struct profile_bytes out = {0};
    char head[256];
    (void)state;
    start_large();
    size_t size = empty_spans(&out, 1200000);
    int used = snprintf(head, sizeof(head),
                        "POST /v1/traces HTTP/1.1\r\nHost: h\r\n%sContent-Length: %zu\r\n\r\n",
                        gzipped, size);
    struct h2_peer *peer = h2_peer_connect_raw(fixture.http_address);
    h2_peer_write(peer, head, (size_t)used);
    h2_peer_write(peer, body, size);
    h2_peer_close(peer);
    fixture_turn_alone();
    profile_bytes_fini(&out);
}

static void large_requests_are_refused_as_small_ones(void **state)
{
    struct profile_bytes out = {0};
    (void)state;
    start_large();
    for (size_t i = 0; i < 600000; i++)
        profile_bytes_add(&out, slice_of("\x0a\0", 2));
    profile_bytes_add(&out, slice_of("\x0a\5", 2));
    ask_dense(gzip_body(out.data, out.size));
    assert_response("torn", "400", "ExportTraceServiceRequest");
    assert_int_equal(fixture.offers, 0);
    profile_bytes_fini(&out);
}

/* Nothing but zeros, which are no protobuf: inflating them is all there is to do. */
static void the_helper_inflates_what_may_be_large(void **state)
{
    enum { ZEROS = 16 << 20 };
    uint8_t *zeros = mem_zalloc(ZEROS);
    (void)state;
    start_large();
    size_t size = gzip_body(zeros, ZEROS);
    struct cpu_share share = cpu_share_begin();
    ask_dense(size);
    assert_in_range(cpu_share_percent(&share), 0, 50);
    assert_response("zeros", "400", "");
    /* The helper's refusals are those of the lane. */
    body[size - 5] ^= 1; /* the checksum */
    ask_dense(size);
    assert_response("damaged", "400", "gzip: invalid checksum");
    fixture_stop();
    fixture_start("{protocols: {http: {endpoint: 'localhost:0', max_request_body_size: 8000000}}}");
    ask_dense(size);
    assert_response("too large", "413", "http: request body too large");
    mem_free(zeros);
}

static void http2_takes_the_same_requests(void **state)
{
    static const char *const fields[] = {
        ":method",    "POST",       ":scheme",   "http",         ":path",
        "/v1/traces", ":authority", "collector", "content-type", "application/x-protobuf",
        NULL};
    (void)state;
    struct h2_peer *peer = h2_peer_connect(fixture.http_address, 0);
    int32_t id = h2_peer_request(peer, fields, body, fixture_traces(body, 7), true);
    fixture_turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->status, 200);
    assert_int_equal(fixture.last.items, 7);
    h2_peer_close(peer);
}

static void keys_change_what_is_taken(void **state)
{
    (void)state;
    fixture_stop();
    fixture_start("{protocols: {http: {endpoint: 'localhost:0', traces_url_path: "
                  "'http://h/in/spans?x', compression_algorithms: [gzip], include_metadata: true, "
                  "response_headers: {X-Extra: yes please, Content-Type: text/odd}}}}");
    size_t size = gzip_body(body, 0);
    ask("POST /in/spans", protobuf, "", 0);
    assert_response("plain", "400", "unsupported Content-Encoding: ");
    assert_non_null(strcasestr(response, "x-extra: yes please\r\n"));
    assert_null(strstr(response, "text/odd"));
    ask("POST /v1/traces", "Content-Encoding: gzip\r\n", body, size);
    assert_response("other path", "404", "x-extra: yes please\r\n");
    uint8_t plain[100];
    size = gzip_body(plain, fixture_traces(plain, 1));
    ask("POST /in/spans",
        "Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\nX-Tenant: acme\r\n",
        body, size);
    assert_response("gzip", "200", "x-extra: yes please\r\n");
    assert_string_equal(fixture.last.tenant, "acme");
    assert_string_equal(fixture.last.host, "collector");
    assert_true(fixture.last.is_client_charged);
}

/* As many as a server may have; the response's own Content-Type stays. */
static void each_response_has_all_response_headers(void **state)
{
    static const char *const fields[] = {
        ":method",    "POST",       ":scheme",   "http",         ":path",
        "/v1/traces", ":authority", "collector", "content-type", "application/x-protobuf",
        NULL};
    char yaml[2048] = "{protocols: {http: {endpoint: 'localhost:0', response_headers: {";
    (void)state;
    for (size_t i = 0, used = strlen(yaml); i < HTTP_COMMON_HEADERS_MAX - 1; i++)
        used += (size_t)snprintf(yaml + used, sizeof(yaml) - used, "X-%02zu: v, ", i);
    strcat(yaml, "content-type: text/odd}}}}");
    fixture_stop();
    fixture_start(yaml);
    ask("POST /v1/traces", protobuf, body, fixture_traces(body, 1));
    struct h2_peer *peer = h2_peer_connect(fixture.http_address, 0);
    int32_t id = h2_peer_request(peer, fields, body, fixture_traces(body, 1), true);
    fixture_turn_until_closed(peer, id);
    for (size_t i = 0; i < HTTP_COMMON_HEADERS_MAX - 1; i++) {
        char name[8];
        snprintf(name, sizeof(name), "x-%02zu: ", i);
        assert_non_null(strcasestr(response, name));
        assert_non_null(strstr(h2_peer_response(peer, id)->headers, name));
    }
    assert_null(strstr(response, "text/odd"));
    assert_null(strstr(h2_peer_response(peer, id)->headers, "text/odd"));
    h2_peer_close(peer);
}

static void an_empty_list_of_compressions_leaves_bodies_alone(void **state)
{
    uint8_t plain[REQUEST_MAX];
    (void)state;
    fixture_stop();
    fixture_start("{protocols: {http: {endpoint: 'localhost:0', compression_algorithms: []}}}");
    ask_encoded("gzip", plain, fixture_traces(plain, 3));
    assert_response("plain, whatever the header says", "200", "");
    assert_int_equal(fixture.last.items, 3);
}

/* Whatever "*" stands for, the origin begins and ends as the pattern does. */
static void origins_match_at_both_ends(void **state)
{
    static const struct {
        const char *origin;
        bool is_allowed;
    } rows[] = {
        {"http://a.example.com", true},
        {"HTTP://A.B.EXAMPLE.COM", true},
        {"http://.example.com", true},
        {"http://example.com", false},
        {"http://evil.example.org", false},
        {"http://a.example.com.evil.org", false},
        {"http://a.example.com.a-long-way-from-it.evil.example.org", false},
        {"https://a.example.com", false},
        {"evil://a.b.c.d.e.f.example.com", false},
    };
    static const char allowed[] = "access-control-allow-origin: ";
    (void)state;
    fixture_stop();
    fixture_start("{protocols: {http: {endpoint: 'localhost:0', cors: {allowed_origins: "
                  "['http://*.example.com']}}}}");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char headers[256];
        snprintf(headers, sizeof(headers), "Origin: %s\r\nAccess-Control-Request-Method: POST\r\n",
                 rows[i].origin);
        ask("OPTIONS /v1/traces", headers, "", 0);
        assert_response(rows[i].origin, "204", rows[i].is_allowed ? allowed : "vary: ");
        if (!rows[i].is_allowed)
            assert_null(strcasestr(response, allowed));
    }
}

/* The process has no file descriptor left for them. */
static void refused_connections_are_counted(void **state)
{
    enum { WAITING = 3, TURNS_MAX = 1000 };
    struct h2_peer *peers[WAITING];
    struct rlimit before;
    unsigned ended = 0;
    (void)state;
    for (unsigned i = 0; i < WAITING; i++)
        peers[i] = h2_peer_connect_raw(fixture.http_address);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next_fd = dup(0);
    close(next_fd);
    const struct rlimit none = {.rlim_cur = (rlim_t)next_fd, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (unsigned turn = 0; turn < TURNS_MAX && ended < WAITING; turn++) {
        ended = 0;
        for (unsigned i = 0; i < WAITING; i++) {
            fixture_turn(peers[i], 1);
            ended += peers[i]->has_ended;
        }
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(ended, WAITING);
    assert_int_equal(fixture_count("spanflame_receiver_connections_refused", "", TRACES), WAITING);
    assert_int_equal(fixture_count("spanflame_receiver_connections_aborted", "", TRACES), 0);
    for (unsigned i = 0; i < WAITING; i++)
        h2_peer_close(peers[i]);
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ROW(spans_arrive_byte_for_byte),
        ROW(former_scopes_arrive_as_those_of_today),
        ROW(responses_are_those_of_the_contract),
        ROW(broken_profiles_are_reported_and_the_rest_goes_on),
        ROW(older_layouts_of_profiles_arrive_as_the_new_one),
        ROW(the_layout_of_profiles_is_detected),
        ROW(profiles_without_samples_go_on_if_there_are_any),
        ROW(gzip_is_inflated),
        ROW(every_encoding_is_inflated),
        ROW(sizes_are_limited_before_and_after_inflating),
        ROW(the_pipelines_result_is_the_response),
        ROW(refusals_say_when_to_come_back),
        ROW(a_known_client_is_refused_without_memory_for_it),
        ROW(the_response_waits_for_the_receipt),
        ROW(a_request_of_many_small_messages_does_not_hold_the_lane),
        ROW(resources_without_items_go_nowhere),
        ROW(a_request_of_many_small_profiles_does_not_hold_the_lane),
        ROW(a_dense_request_is_refused_when_a_piece_is),
        ROW(refused_pieces_of_a_dense_request_wait_for_room),
        ROW(a_client_that_leaves_meanwhile_leaves_nothing_behind),
        ROW(large_requests_are_refused_as_small_ones),
        ROW(the_helper_inflates_what_may_be_large),
        ROW(http2_takes_the_same_requests),
        ROW(keys_change_what_is_taken),
        ROW(each_response_has_all_response_headers),
        ROW(origins_match_at_both_ends),
        ROW(an_empty_list_of_compressions_leaves_bodies_alone),
        ROW(refused_connections_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
