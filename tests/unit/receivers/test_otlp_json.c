/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP/JSON over HTTP: it arrives as protobuf, and its responses are JSON. */
#include "tests/unit/receivers/otlp_fixture.h"

#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

enum { RESPONSE_MAX = 4096, TURNS = 8 };

static char response[RESPONSE_MAX];

static int set_up(void **state)
{
    (void)state;
    fixture_start("{protocols: {http: {endpoint: 'localhost:0'}}}");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_stop();
    return 0;
}

static void post(const char *path, const char *headers, struct slice body)
{
    char head[512];
    struct h2_peer *peer = h2_peer_connect_raw(fixture.http_address);
    int used = snprintf(head, sizeof(head),
                        "POST %s HTTP/1.1\r\nHost: collector\r\nContent-Type: application/json\r\n"
                        "%sContent-Length: %zu\r\n\r\n",
                        path, headers, body.size);
    h2_peer_write(peer, head, (size_t)used);
    h2_peer_write(peer, body.data, body.size);
    fixture_turn(peer, TURNS);
    assert_true(peer->raw_size < RESPONSE_MAX);
    if (peer->raw_size > 0)
        memcpy(response, peer->raw_input, peer->raw_size);
    response[peer->raw_size] = '\0';
    h2_peer_close(peer);
    for (unsigned i = 0; i < TURNS; i++)
        lane_turn(fixture.lane);
}

static void assert_response(const char *status, const char *body)
{
    char line[64];
    const char *found = strstr(response, "\r\n\r\n");
    snprintf(line, sizeof(line), "HTTP/1.1 %s", status);
    bool is_json = strcasestr(response, "\r\ncontent-type: application/json\r\n") != NULL;
    if (!is_json || strncmp(response, line, strlen(line)) != 0 || found == NULL ||
        strncmp(found + 4, body, strlen(body)) != 0)
        fail_msg("expected %s in JSON, which begins %s, found\n%s", status, body, response);
}

static const char spans[] =
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"a\"},{\"name\":\"b\"}]}]}]}";

static void json_arrives_as_protobuf(void **state)
{
    static const char expected[] = "\x0a\x0c\x12\x0a\x12\x03\x2a\x01"
                                   "a\x12\x03\x2a\x01"
                                   "b";
    (void)state;
    post("/v1/traces", "", slice_of_text(spans));
    assert_response("200 OK", "{\"partialSuccess\":{}}");
    assert_int_equal(fixture.last.items, 2);
    assert_int_equal(fixture.last.size, sizeof(expected) - 1);
    assert_memory_equal(fixture.last.bytes, expected, sizeof(expected) - 1);
    assert_int_equal(fixture_count("otelcol_receiver_accepted_%s", "http", TRACES), 2);
}

static void json_may_be_compressed(void **state)
{
    uint8_t packed[512];
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)spans,
                       .avail_in = sizeof(spans) - 1,
                       .next_out = packed,
                       .avail_out = sizeof(packed)};
    (void)state;
    deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, 0);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    post("/v1/traces", "Content-Encoding: gzip\r\n", slice_of(packed, stream.total_out));
    assert_response("200 OK", "{\"partialSuccess\":{}}");
    assert_int_equal(fixture.last.items, 2);
}

static void bodies_without_items_are_fine_but_not_offered(void **state)
{
    static const char *const bodies[] = {"{}", " null ", "{\"resourceSpans\":[]}", "{\"x\":[{}]}"};
    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        post("/v1/traces", "", slice_of_text(bodies[i]));
        assert_response("200 OK", "{\"partialSuccess\":{}}");
    }
    assert_int_equal(fixture.offers, 0);
}

static void refusals_are_json(void **state)
{
    static const struct {
        const char *body;
        const char *response;
    } rows[] = {
        {"", "{\"code\":3,\"message\":\"JSON at byte 0: found the end of the text, expected"},
        {"{}{}", "{\"code\":3,\"message\":\"JSON at byte 2: found {, expected nothing after"},
        {"\n\x02\n\x01", "{\"code\":3,\"message\":\"JSON at byte 1: found the byte 0x02"},
        {"{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":\"00ff\"}]}]}]}",
         "{\"code\":3,\"message\":\"JSON at byte 54, in Span.traceId: found \\\"00ff\\\", expected "
         "an"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        post("/v1/traces", "", slice_of_text(rows[i].body));
        assert_response("400 Bad Request", rows[i].response);
    }
    fixture.outcome = outcome_busy("the queue is full");
    post("/v1/traces", "", slice_of_text(spans));
    assert_response("503", "{\"code\":14,\"message\":\"the queue is full\"");
    assert_int_equal(fixture_count("otelcol_receiver_refused_%s", "http", TRACES), 2);
}

static void without_memory_the_client_is_asked_to_retry(void **state)
{
    (void)state;
    unsigned refusals = 0;
    uint64_t before = mem_tries();
    post("/v1/traces", "", slice_of_text(spans));
    uint64_t tries = mem_tries() - before;
    assert_in_range(tries, 2, 100);
    for (uint64_t n = 1; n <= tries; n++) {
        mem_refuse_nth(n);
        post("/v1/traces", "", slice_of_text(spans));
        mem_refuse_nth(0);
        if (response[0] == '\0' || strstr(response, "200 OK") != NULL)
            continue; /* before the body, or after the request was taken */
        assert_response("503", "{\"code\":14,\"message\":\"the memory budget is used up");
        refusals++;
    }
    assert_in_range(refusals, 1, tries);
}

static void profiles_have_the_current_layout(void **state)
{
    static const char body[] =
        "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":["
        "{\"samples\":[{\"attributeIndices\":[0]}]},{\"samples\":[{\"stackIndex\":9}]}]}]}],"
        "\"dictionary\":{\"mappingTable\":[{}],\"locationTable\":[{}],\"functionTable\":[{}],"
        "\"linkTable\":[{}],\"stringTable\":[\"\"],\"attributeTable\":[{}],\"stackTable\":[{}]}}";
    (void)state;
    post("/v1development/profiles", "", slice_of_text(body));
    assert_response("200 OK",
                    "{\"partialSuccess\":{\"rejectedProfiles\":\"1\",\"errorMessage\":\"");
    assert_non_null(strstr(response, "profile 1: stack_index 9"));
    assert_int_equal(fixture.last.signal, PROFILES);
    assert_int_equal(fixture.last.items, 1);
    assert_int_equal(fixture_count("spanflame_profiles_received", "1.10", TRACES), 1);
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ROW(json_arrives_as_protobuf),
        ROW(json_may_be_compressed),
        ROW(bodies_without_items_are_fine_but_not_offered),
        ROW(refusals_are_json),
        ROW(without_memory_the_client_is_asked_to_retry),
        ROW(profiles_have_the_current_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
