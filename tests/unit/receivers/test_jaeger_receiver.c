/* SPDX-License-Identifier: Apache-2.0 */
/* The jaeger receiver over gRPC and HTTP: paths, types, responses, limits; packets of UDP. */
#include "tests/unit/receivers/otlp_fixture.h"

#include "receivers/jaeger/jaeger_receiver.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/net/socket/packet_socket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEXT_MAX = 1 << 16, TURNS = 8, TURNS_MAX = 5000 };

#define LITERAL(text) (text), sizeof(text) - 1

/* A batch of the process "s" with one span of zeros. */
static const char thrift_batch[] =
    "\x0c\0\x01\x0b\0\x01\0\0\0\x01s\0\x0f\0\x02\x0c\0\0\0\x01"
    "\x0a\0\x01\0\0\0\0\0\0\0\x01\x0a\0\x02\0\0\0\0\0\0\0\0\x0a\0\x03\0\0\0\0\0\0\0\x02"
    "\x0a\0\x04\0\0\0\0\0\0\0\0\x0b\0\x05\0\0\0\x01n\x08\0\x07\0\0\0\x01"
    "\x0a\0\x08\0\0\0\0\0\0\0\x01\x0a\0\x09\0\0\0\0\0\0\0\x01\0\0";
static const char proto_message[] = "\0\0\0\0\x07\x0a\x05\x0a\x03\x1a\x01n";
static const char broken_message[] = "\0\0\0\0\x04\x0a\x05\x0a\x03";

static char response[TEXT_MAX];

static int set_up(void **state)
{
    (void)state;
    fixture_start_jaeger("{protocols: {grpc: {endpoint: 'localhost:0'}, thrift_http: {endpoint: "
                         "'localhost:0', max_request_body_size: 20000}}}");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_stop();
    return 0;
}

/* One request on a connection of its own; what comes back is in response. */
static void ask(const char *line, const char *headers, const void *data, size_t size)
{
    char head[1024];
    struct h2_peer *peer = h2_peer_connect_raw(fixture.http_address);
    int used = snprintf(head, sizeof(head),
                        "%s HTTP/1.1\r\nHost: collector\r\n%s"
                        "Content-Length: %zu\r\n\r\n",
                        line, headers, size);
    h2_peer_write(peer, head, (size_t)used);
    if (size > 0)
        h2_peer_write(peer, data, size);
    fixture_turn(peer, TURNS);
    for (unsigned i = 0; i < TURNS_MAX && peer->raw_size == 0; i++)
        fixture_turn(peer, 1);
    assert_true(peer->raw_size < TEXT_MAX);
    memcpy(response, peer->raw_input, peer->raw_size);
    response[peer->raw_size] = '\0';
    h2_peer_close(peer);
    for (unsigned i = 0; i < TURNS; i++)
        lane_turn(fixture.lane);
}

static void assert_response(const char *what, const char *status, const char *part)
{
    char line[64];
    snprintf(line, sizeof(line), "HTTP/1.1 %s", status);
    if (strncmp(response, line, strlen(line)) != 0 || strstr(response, part) == NULL)
        fail_msg("%s: expected %s and \"%s\", found\n%s", what, status, part, response);
}

#define THRIFT "Content-Type: application/x-thrift\r\n"

static void http_requests_get_their_responses(void **state)
{
    static const struct {
        const char *line;
        const char *headers;
        const char *data;
        size_t size;
        const char *status;
        const char *part;
    } rows[] = {
        {"POST /api/traces", THRIFT, LITERAL(thrift_batch), "202", ""},
        {"POST /api/traces?format=jaeger.thrift",
         "Content-Type: application/vnd.apache.thrift.binary\r\n", LITERAL(thrift_batch), "202",
         ""},
        {"POST /api/traces", "", LITERAL(thrift_batch), "400",
         "Cannot parse content type: mime: no media type"},
        {"POST /api/traces", "Content-Type: application/json\r\n", LITERAL(thrift_batch), "400",
         "Unsupported content type"},
        {"POST /api/traces", THRIFT, LITERAL("\0"), "400",
         "Unable to process request body: Thrift at byte 1"},
        {"POST /other", THRIFT, LITERAL(thrift_batch), "404", "404 page not found"},
        {"GET /api/traces", THRIFT, LITERAL(""), "405", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ask(rows[i].line, rows[i].headers, rows[i].data, rows[i].size);
        assert_response(rows[i].line, rows[i].status, rows[i].part);
    }
    assert_int_equal(fixture.offers, 2);
    assert_int_equal(fixture.last.items, 1);
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "collector_http", TRACES), 2);
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "grpc", TRACES), 0);
}

static void bodies_are_limited(void **state)
{
    static const char zeros[20001];
    (void)state;
    ask("POST /api/traces", THRIFT, zeros, sizeof(zeros));
    assert_response("too large", "413", "http: request body too large");
}

static void refusals_reach_http_clients(void **state)
{
    (void)state;
    fixture.outcome = outcome_busy("full");
    ask("POST /api/traces", THRIFT, LITERAL(thrift_batch));
    assert_response("busy", "503", "full");
    fixture.outcome = outcome_refused(STATUS_INVALID_ARGUMENT, "never");
    ask("POST /api/traces", THRIFT, LITERAL(thrift_batch));
    assert_response("permanent", "500", "Cannot submit Jaeger batch: never");
    assert_int_equal(fixture_count("otelcol_receiver_refused_%s", "collector_http", TRACES), 2);
}

static void assert_status(const char *path, const char *data, size_t size, unsigned code,
                          const char *message)
{
    const char *const fields[] = {
        ":method",   "POST",         ":scheme",          "http", ":path",    path, ":authority",
        "collector", "content-type", "application/grpc", "te",   "trailers", NULL};
    char expected[64];
    struct h2_peer *peer = h2_peer_connect(fixture.grpc_address, 0);
    int32_t id = h2_peer_request(peer, fields, data, size, true);
    fixture_turn_until_closed(peer, id);
    struct h2_response *found = h2_peer_response(peer, id);
    const char *trailers = found->header_blocks > 1 ? found->trailers : found->headers;
    snprintf(expected, sizeof(expected), "grpc-status: %u\n", code);
    if (strstr(trailers, expected) == NULL || strstr(trailers, message) == NULL)
        fail_msg("%s: expected %u %s, found\n%s%s", path, code, message, found->headers,
                 found->trailers);
    h2_peer_close(peer);
}

static void calls_get_their_status(void **state)
{
    static const char path[] = "/jaeger.api_v2.CollectorService/PostSpans";
    (void)state;
    assert_status(path, LITERAL(proto_message), 0, "");
    assert_int_equal(fixture.offers, 1);
    assert_int_equal(fixture.last.items, 1);
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "grpc", TRACES), 1);
    assert_status(path, LITERAL("\0\0\0\0\0"), 0, "");
    assert_status(path, LITERAL(broken_message), 3, "grpc: error unmarshalling request: protobuf");
    assert_status("/jaeger.api_v2.CollectorService/Other", LITERAL(proto_message), 12,
                  "unknown method Other for service jaeger.api_v2.CollectorService");
    assert_status("/jaeger.api_v2.QueryService/Get", LITERAL(proto_message), 12,
                  "unknown service jaeger.api_v2.QueryService");
    assert_int_equal(fixture.offers, 1);
    fixture.outcome = outcome_busy("full");
    assert_status(path, LITERAL(proto_message), 14, "full");
}

/* ---- Packets ---- */

/* The batch as a call in the binary protocol, and one like it in the compact one. */
#define CALL_HEAD                                                                                  \
    "\x80\x01\0\x04\0\0\0\x09"                                                                     \
    "emitBatch"                                                                                    \
    "\0\0\0\x01\x0c\0\x01"
static const char compact_call[] =
    "\x82\x81\x01\x09"
    "emitBatch"
    "\x1c\x1c\x18\x01s\0\x19\x1c"
    "\x16\x02\x16\0\x16\x04\x16\0\x18\x01n\x25\x02\x16\x02\x16\x02\0\0";

static char binary_call[sizeof(CALL_HEAD) + sizeof(thrift_batch)];
static const size_t binary_call_bytes = sizeof(CALL_HEAD) - 1 + sizeof(thrift_batch);

static int set_up_packets(void **state)
{
    (void)state;
    memcpy(binary_call, CALL_HEAD, sizeof(CALL_HEAD) - 1);
    /* With the zero at its end, which ends the arguments. */
    memcpy(binary_call + sizeof(CALL_HEAD) - 1, thrift_batch, sizeof(thrift_batch));
    fixture_start_jaeger("{protocols: {thrift_compact: {endpoint: '127.0.0.1:0', queue_size: 1, "
                         "workers: 1}, thrift_binary: {endpoint: '127.0.0.1:0', "
                         "max_packet_size: 200, socket_buffer_size: 100000}}}");
    return 0;
}

static uint64_t count(const char *metric, enum jaeger_transport transport)
{
    return fixture_count(
        metric, transport == JAEGER_COMPACT ? "udp_thrift_compact" : "udp_thrift_binary", TRACES);
}

#define ACCEPTED_SPANS "otelcol_receiver_accepted_%s"
#define REFUSED_SPANS  "otelcol_receiver_refused_%s"
#define DROPPED        "spanflame_jaeger_dropped_packets"

/* Sends a packet and turns the lane until that metric, or the offers, have changed. */
static void send_packet(enum jaeger_transport transport, const char *data, size_t size)
{
    const struct jaeger_receiver *receiver = (struct jaeger_receiver *)fixture.receiver;
    const char *address =
        packet_socket_address(receiver->packets[transport - JAEGER_SERVERS].socket);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint64_t before = count(DROPPED, transport) + fixture.offers;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(sendto(fd, data, size, 0, (struct sockaddr *)&to, sizeof(to)), size);
    close(fd);
    for (unsigned i = 0; i < TURNS_MAX && count(DROPPED, transport) + fixture.offers == before; i++)
        lane_turn(fixture.lane);
    assert_int_equal(count(DROPPED, transport) + fixture.offers, before + 1);
}

static void packets_reach_the_pipelines(void **state)
{
    (void)state;
    send_packet(JAEGER_COMPACT, compact_call, sizeof(compact_call));
    assert_int_equal(fixture.last.items, 1);
    size_t size = fixture.last.size;
    uint8_t *bytes = mem_copy(fixture.last.bytes, size);
    send_packet(JAEGER_BINARY, binary_call, binary_call_bytes);
    assert_int_equal(fixture.last.size, size);
    assert_memory_equal(fixture.last.bytes, bytes, size);
    mem_free(bytes);
    assert_int_equal(fixture.offers, 2);
    assert_int_equal(count(ACCEPTED_SPANS, JAEGER_COMPACT), 1);
    assert_int_equal(count(ACCEPTED_SPANS, JAEGER_BINARY), 1);
    fixture.outcome = outcome_busy("full");
    send_packet(JAEGER_COMPACT, compact_call, sizeof(compact_call));
    assert_int_equal(count(REFUSED_SPANS, JAEGER_COMPACT), 1);
    assert_int_equal(count(DROPPED, JAEGER_COMPACT), 0);
}

static void what_cannot_be_taken_is_counted(void **state)
{
    static const char zeros[201];
    (void)state;
    send_packet(JAEGER_COMPACT, binary_call, binary_call_bytes);
    send_packet(JAEGER_COMPACT, "", 0);
    assert_int_equal(count(DROPPED, JAEGER_COMPACT), 2);
    send_packet(JAEGER_BINARY, zeros, sizeof(zeros));
    send_packet(JAEGER_BINARY, zeros, sizeof(zeros) - 1);
    assert_int_equal(count(DROPPED, JAEGER_BINARY), 2);
    assert_int_equal(fixture.offers, 0);
    fixture.holds = true;
    send_packet(JAEGER_COMPACT, compact_call, sizeof(compact_call));
    struct receipt *first = fixture.held;
    send_packet(JAEGER_COMPACT, compact_call, sizeof(compact_call));
    struct receipt *second = fixture.held;
    send_packet(JAEGER_COMPACT, compact_call, sizeof(compact_call)); /* one waits, one is read */
    assert_int_equal(count(DROPPED, JAEGER_COMPACT), 3);
    receipt_resolve(first, &outcome_accepted);
    send_packet(JAEGER_COMPACT, compact_call, sizeof(compact_call));
    assert_int_equal(fixture.offers, 3);
    fixture_begin_stop(); /* which waits for what is under way */
    for (unsigned i = 0; i < TURNS; i++)
        lane_turn(fixture.lane);
    assert_false(fixture.is_stopped);
    receipt_resolve(second, &outcome_accepted);
    receipt_resolve(fixture.held, &outcome_accepted);
    assert_int_equal(count(ACCEPTED_SPANS, JAEGER_COMPACT), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(http_requests_get_their_responses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bodies_are_limited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refusals_reach_http_clients, set_up, tear_down),
        cmocka_unit_test_setup_teardown(calls_get_their_status, set_up, tear_down),
        cmocka_unit_test_setup_teardown(packets_reach_the_pipelines, set_up_packets, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_taken_is_counted, set_up_packets, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
