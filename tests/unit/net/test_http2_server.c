/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 server over loopback sockets, on a hand-turned lane and a fake clock. */
#include "src/net/server/http_server.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "tests/support/h2_peer.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TURNS_MAX = 3000, HELD_MAX = 300, STREAMS_MAX = 4 };

enum mode { READ_AND_RESPOND, RESPOND_AT_ONCE, READ_AND_HOLD, HOLD_AT_ONCE, STREAM, ASK_FIRST };

static struct lane *lane;
static struct budget budget;
static struct http_server *server;
static char address[64];
static enum mode mode;
static struct http_request *held[HELD_MAX];
static unsigned held_count;
static unsigned requests_count;
static unsigned bodies_count;
static unsigned ended_count;
static unsigned failures_count;
static enum http_failure last_failure;
static bool is_stopped;
static size_t last_body_size;
static struct slice reply; /* the body of responses */
static bool is_lent;       /* it is not copied */
static unsigned releases;
static uint64_t work_ns; /* the clock moves so far for each complete request */
static char last_path[128];
static char last_query[128];
static char last_header[64];

static const char *const get_fields[] = {":method", "GET",        ":scheme", "http", ":path",
                                         "/x?a=b",  ":authority", "host",    NULL};
static const char *const post_fields[] = {":method", "POST",       ":scheme", "http",   ":path",
                                          "/p",      ":authority", "host",    "x-test", "one",
                                          "x-test",  "two",        NULL};

static void on_release(void *arg)
{
    assert_ptr_equal(arg, &releases);
    releases++;
}

static void respond(struct http_request *request)
{
    http_respond(request, &(struct http_response){
                              .status = 200,
                              .headers = {{"content-type", "text/plain"}},
                              .body = reply,
                              .release = is_lent ? on_release : NULL,
                              .release_arg = &releases,
                          });
}

static void hold(struct http_request *request)
{
    assert_true(held_count < HELD_MAX);
    held[held_count++] = request;
}

static void begin_stream(struct http_request *request)
{
    hold(request);
    http_respond(request, &(struct http_response){
                              .status = 200,
                              .headers = {{"content-type", "text/event-stream"}},
                              .is_stream = true,
                          });
}

static void copy_text(char *target, size_t size, struct slice text)
{
    snprintf(target, size, "%.*s", (int)text.size, (const char *)text.data);
}

static uint64_t body_max = 1 << 20;

static void on_request(struct http_request *request, void *arg)
{
    const struct http_body_plan plan = {.max_bytes = body_max};
    (void)arg;
    requests_count++;
    copy_text(last_path, sizeof(last_path), http_request_path(request));
    copy_text(last_query, sizeof(last_query), http_request_query(request));
    copy_text(last_header, sizeof(last_header), http_request_header(request, "x-test"));
    if (mode == RESPOND_AT_ONCE)
        respond(request);
    else if (mode == HOLD_AT_ONCE)
        hold(request);
    else if (mode == STREAM)
        begin_stream(request);
    else if (mode == ASK_FIRST) {
        hold(request);
        assert_ptr_equal(http_request_hold(request), server);
    } else
        http_request_read_body(request, &plan);
}

static void on_body(struct http_request *request, void *arg)
{
    (void)arg;
    bodies_count++;
    clock_fake_advance(work_ns);
    last_body_size = http_request_body(request)->size;
    if (mode == READ_AND_HOLD)
        hold(request);
    else
        respond(request);
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    (void)arg;
    failures_count++;
    last_failure = failure;
    respond(request);
}

static void on_end(struct http_request *request, void *arg)
{
    (void)request;
    (void)arg;
    ended_count++;
}

static void on_stopped(void *arg)
{
    (void)arg;
    is_stopped = true;
}

static const struct http_handler handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = on_body_failed,
    .on_end = on_end,
};

static void on_page(struct http_request *request, void *arg)
{
    (void)arg;
    requests_count++;
    clock_fake_advance(work_ns);
    respond(request);
}

static const struct http_handler page_handler = {.on_request = on_page, .on_end = on_end};

static void listen_with(const struct http_server_settings *extra)
{
    struct http_server_settings settings = *extra;
    struct error error;
    settings.lane = lane;
    settings.budget = &budget;
    settings.has_http2 = true;
    if (settings.handler == NULL)
        settings.handler = &handler;
    server = http_server_create(&settings);
    if (!http_server_listen(&server, 1, "tcp", "127.0.0.1:0", &error))
        fail_msg("%s", error.text);
    snprintf(address, sizeof(address), "%s", http_server_address(server));
}

static int set_up(void **state)
{
    (void)state;
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 1000 * (uint64_t)NS_PER_S);
    random_fix(0.5);
    lane = lane_create(0);
    budget_init(&budget, 64 * MIB);
    mode = READ_AND_RESPOND;
    reply = slice_of_text("hello");
    is_lent = false;
    releases = 0;
    work_ns = 0;
    held_count = requests_count = bodies_count = ended_count = failures_count = 0;
    is_stopped = false;
    server = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (server != NULL && !is_stopped) {
        http_server_stop(server, on_stopped, NULL);
        http_server_abort(server);
    }
    for (unsigned i = 0; i < TURNS_MAX && server != NULL && !is_stopped; i++)
        lane_turn(lane);
    assert_int_equal(requests_count, ended_count + held_count);
    http_server_destroy(server);
    assert_int_equal(budget_used(&budget), 0);
    lane_destroy(lane);
    budget_fini(&budget);
    random_fix(-1);
    clock_fake_stop();
    return 0;
}

static void turn(struct h2_peer *peer, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        h2_peer_turn(peer);
        lane_turn(lane);
    }
    h2_peer_turn(peer);
}

static void turn_until_closed(struct h2_peer *peer, int32_t id)
{
    for (unsigned i = 0; i < TURNS_MAX && !h2_peer_response(peer, id)->is_closed; i++)
        turn(peer, 1);
    assert_true(h2_peer_response(peer, id)->is_closed);
}

static void turn_until_end(struct h2_peer *peer)
{
    for (unsigned i = 0; i < TURNS_MAX && !peer->has_ended; i++)
        turn(peer, 1);
    assert_true(peer->has_ended);
}

/* Moves the clock in steps, so that each deadline on the way fires. */
static void advance(struct h2_peer *peer, uint64_t by_ns)
{
    for (uint64_t passed = 0; passed < by_ns; passed += NS_PER_S) {
        clock_fake_advance(by_ns - passed < NS_PER_S ? by_ns - passed : NS_PER_S);
        turn(peer, 2);
    }
    turn(peer, 5);
}

static void a_request_without_body_gets_a_response(void **state)
{
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    int32_t id = h2_peer_request(peer, get_fields, NULL, 0, true);
    turn_until_closed(peer, id);
    struct h2_response *got = h2_peer_response(peer, id);
    assert_int_equal(got->status, 200);
    assert_int_equal(got->body_size, 5);
    assert_memory_equal(got->body, "hello", 5);
    assert_string_equal(got->headers, "date: Thu, 01 Jan 1970 00:16:40 GMT\ncontent-length: 5\n"
                                      "content-type: text/plain\n");
    assert_string_equal(last_path, "/x");
    assert_string_equal(last_query, "a=b");
    assert_int_equal(got->close_code, NGHTTP2_NO_ERROR);
    assert_int_equal(ended_count, 1);
    h2_peer_close(peer);
}

static void a_large_body_arrives_whole(void **state)
{
    enum { SIZE = 1 << 20 };
    uint8_t *body = mem_zalloc(SIZE);
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    int32_t id = h2_peer_request(peer, post_fields, body, SIZE, true);
    turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->status, 200);
    assert_int_equal(last_body_size, SIZE);
    assert_string_equal(last_header, "one");
    h2_peer_close(peer);
    mem_free(body);
}

static void a_body_above_its_limit_fails_and_the_stream_is_reset_gently(void **state)
{
    enum { SIZE = (1 << 20) + 1 };
    uint8_t *body = mem_zalloc(SIZE);
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    int32_t id = h2_peer_request(peer, post_fields, body, SIZE, false);
    for (unsigned i = 0; i < TURNS_MAX && failures_count == 0; i++)
        turn(peer, 1);
    assert_int_equal(failures_count, 1);
    assert_int_equal(last_failure, HTTP_BODY_TOO_LARGE);
    advance(peer, HTTP2_DISCARD_NS);
    turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->status, 200);
    assert_int_equal(h2_peer_response(peer, id)->close_code, NGHTTP2_NO_ERROR);
    /* The connection lives on, with its window credited. */
    id = h2_peer_request(peer, get_fields, NULL, 0, true);
    turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->status, 200);
    h2_peer_close(peer);
    mem_free(body);
}

static void a_short_budget_fails_the_body_at_once(void **state)
{
    (void)state;
    budget_fini(&budget);
    budget_init(&budget, 100);
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    uint8_t body[1000] = {0};
    int32_t id = h2_peer_request(peer, post_fields, body, sizeof(body), true);
    turn_until_closed(peer, id);
    assert_int_equal(failures_count, 1);
    assert_int_equal(last_failure, HTTP_BODY_NO_BUDGET);
    h2_peer_close(peer);
}

static void many_streams_share_one_connection(void **state)
{
    enum { COUNT = 90 };
    int32_t ids[COUNT];
    uint8_t body[3000] = {0};
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    for (unsigned i = 0; i < COUNT; i++)
        ids[i] = h2_peer_request(peer, post_fields, body, sizeof(body), true);
    for (unsigned i = 0; i < COUNT; i++) {
        turn_until_closed(peer, ids[i]);
        assert_int_equal(h2_peer_response(peer, ids[i])->status, 200);
    }
    assert_int_equal(bodies_count, COUNT);
    h2_peer_close(peer);
}

/* The header block of a GET without dynamic table: RFC 7541 indices 2, 6, 4 and a literal. */
static const uint8_t get_block[] = {0x82, 0x86, 0x84, 0x01, 0x04, 'h', 'o', 's', 't'};
/* The same as POST, index 3. */
static const uint8_t post_block[] = {0x83, 0x86, 0x84, 0x01, 0x04, 'h', 'o', 's', 't'};

static void raw_request(struct h2_peer *peer, uint32_t id, bool is_complete)
{
    h2_peer_frame(peer, NGHTTP2_HEADERS,
                  NGHTTP2_FLAG_END_HEADERS | (is_complete ? NGHTTP2_FLAG_END_STREAM : 0), id,
                  is_complete ? get_block : post_block, sizeof(get_block));
}

static void raw_reset(struct h2_peer *peer, uint32_t id)
{
    static const uint8_t code[] = {0, 0, 0, NGHTTP2_CANCEL};
    h2_peer_frame(peer, NGHTTP2_RST_STREAM, 0, id, code, sizeof(code));
}

static void assert_reset(struct h2_peer *peer, uint32_t id, uint32_t code)
{
    uint32_t size = 0;
    uint32_t got_id = 0;
    const uint8_t *payload = h2_peer_find_frame(peer, NGHTTP2_RST_STREAM, &size, &got_id);
    assert_non_null(payload);
    assert_int_equal(size, 4);
    assert_int_equal(got_id, id);
    assert_int_equal(payload[3], code);
}

/* Checks the GOAWAY of a raw peer: code, and its text. */
static void assert_goaway(struct h2_peer *peer, uint32_t code, const char *text)
{
    uint32_t size = 0;
    uint32_t id = 0;
    const uint8_t *payload = h2_peer_find_frame(peer, NGHTTP2_GOAWAY, &size, &id);
    assert_non_null(payload);
    assert_int_equal(payload[7], code);
    assert_int_equal(size - 8, strlen(text));
    assert_memory_equal(payload + 8, text, strlen(text));
}

static void the_limit_of_streams_is_advertised(void **state)
{
    uint32_t size = 0;
    uint32_t id = 0;
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = STREAMS_MAX});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    turn(peer, 5);
    const uint8_t *settings = h2_peer_find_frame(peer, NGHTTP2_SETTINGS, &size, &id);
    assert_non_null(settings);
    assert_int_equal(settings[1], NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    assert_int_equal(settings[2] | settings[3] | settings[4], 0);
    assert_int_equal(settings[5], STREAMS_MAX);
    h2_peer_close(peer);
}

static void a_stream_too_many_is_refused_alone(void **state)
{
    (void)state;
    mode = HOLD_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = STREAMS_MAX});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    h2_peer_frame(peer, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
    turn(peer, 5);
    for (uint32_t i = 0; i <= STREAMS_MAX; i++)
        raw_request(peer, 2 * i + 1, true);
    turn(peer, 5);
    assert_int_equal(requests_count, STREAMS_MAX);
    assert_reset(peer, 2 * STREAMS_MAX + 1, NGHTTP2_REFUSED_STREAM);
    assert_int_equal(http_server_figures(server).reset_total, 1);
    while (held_count > 0)
        respond(held[--held_count]);
    turn(peer, 5);
    assert_int_equal(ended_count, STREAMS_MAX);
    raw_request(peer, 2 * STREAMS_MAX + 3, true);
    turn(peer, 5);
    assert_int_equal(requests_count, STREAMS_MAX + 1);
    respond(held[--held_count]);
    turn(peer, 5);
    h2_peer_close(peer);
}

/* Reset by the client, but still with the pipeline: the slot is not free. */
static void a_reset_request_keeps_its_slot_until_it_is_let_go(void **state)
{
    (void)state;
    mode = HOLD_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = STREAMS_MAX});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    for (uint32_t i = 0; i < STREAMS_MAX; i++) {
        raw_request(peer, 2 * i + 1, true);
        raw_reset(peer, 2 * i + 1);
    }
    raw_request(peer, 2 * STREAMS_MAX + 1, true);
    turn(peer, 5);
    assert_int_equal(requests_count, STREAMS_MAX);
    assert_reset(peer, 2 * STREAMS_MAX + 1, NGHTTP2_REFUSED_STREAM);
    assert_int_equal(ended_count, 0);
    assert_true(http_request_is_gone(held[0]));
    while (held_count > 0)
        respond(held[--held_count]);
    assert_int_equal(ended_count, STREAMS_MAX);
    h2_peer_close(peer);
}

static void a_client_that_leaves_ends_its_requests(void **state)
{
    static const enum mode modes[] = {READ_AND_RESPOND, READ_AND_HOLD, HOLD_AT_ONCE};
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    for (unsigned i = 0; i < 3; i++) {
        mode = modes[i];
        requests_count = ended_count = 0;
        struct h2_peer *peer = h2_peer_connect_raw(address);
        h2_peer_greet(peer);
        raw_request(peer, 1, true);
        raw_request(peer, 3, false); /* a body that never comes */
        turn(peer, 5);
        h2_peer_close(peer);
        for (unsigned j = 0; j < 10; j++)
            lane_turn(lane);
        while (held_count > 0)
            respond(held[--held_count]);
        assert_int_equal(requests_count, 2);
        assert_int_equal(ended_count, 2);
        assert_int_equal(http_server_figures(server).connections, 0);
    }
}

/* Between uv_close and its callback the stream is still open, but nothing can be written. */
static void a_response_while_the_connection_closes_is_dropped(void **state)
{
    (void)state;
    mode = HOLD_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    raw_request(peer, 1, true);
    raw_request(peer, 3, true);
    turn(peer, 5);
    assert_int_equal(held_count, 2);
    http_server_stop(server, on_stopped, NULL);
    http_server_abort(server);
    assert_true(http_request_is_gone(held[0]));
    while (held_count > 0)
        respond(held[--held_count]);
    for (unsigned i = 0; i < TURNS_MAX && !is_stopped; i++)
        lane_turn(lane);
    assert_true(is_stopped);
    assert_int_equal(ended_count, 2);
    h2_peer_close(peer);
}

static void responses_given_after_the_turn_are_written(void **state)
{
    (void)state;
    mode = READ_AND_HOLD;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    int32_t id = h2_peer_request(peer, get_fields, NULL, 0, true);
    turn(peer, 5);
    assert_int_equal(held_count, 1);
    assert_false(h2_peer_response(peer, id)->is_closed);
    respond(held[--held_count]);
    turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->status, 200);
    h2_peer_close(peer);
}

/* A stream with its request, which is held. */
static int32_t open_stream(struct h2_peer *peer)
{
    int32_t id = h2_peer_request(peer, get_fields, NULL, 0, true);
    turn(peer, 5);
    assert_int_equal(held_count, 1);
    assert_int_equal(h2_peer_response(peer, id)->status, 200);
    return id;
}

static void a_stream_is_sent_in_pieces_however_long_it_pauses(void **state)
{
    (void)state;
    mode = STREAM;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    int32_t id = open_stream(peer);
    struct h2_response *got = h2_peer_response(peer, id);
    assert_null(strstr(got->headers, "content-length"));
    assert_true(http_stream_send(held[0], slice_of_text("id: 1\n\n")));
    turn(peer, 5);
    assert_int_equal(got->body_size, 7);
    advance(peer, 2 * HTTP2_WINDOW_STALL_NS); /* nothing waits: this is no stall */
    assert_false(peer->has_ended);
    assert_true(http_stream_send(held[0], slice_of_text("id: 2\n\n")));
    assert_false(http_stream_send(held[0], slice_of_text("id: 3\n\n"))); /* not taken yet */
    turn(peer, 5);
    assert_int_equal(got->body_size, 14);
    assert_memory_equal(got->body, "id: 1\n\nid: 2\n\n", 14);
    http_stream_end(held[--held_count], true);
    turn_until_closed(peer, id);
    assert_int_equal(got->close_code, NGHTTP2_NO_ERROR);
    assert_int_equal(ended_count, 1);
    h2_peer_close(peer);
}

static void a_stream_is_cut_off_alone(void **state)
{
    (void)state;
    mode = STREAM;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    int32_t id = open_stream(peer);
    assert_true(http_stream_send(held[0], slice_of_text("id: 1\n\n")));
    http_stream_end(held[--held_count], true); /* the piece still waits */
    turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->close_code, NGHTTP2_CANCEL);
    assert_int_equal(ended_count, 1);
    assert_false(peer->has_ended);
    h2_peer_close(peer);
}

static void a_stream_whose_client_leaves_is_gone(void **state)
{
    (void)state;
    mode = STREAM;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    int32_t id = open_stream(peer);
    nghttp2_submit_rst_stream(peer->nghttp2, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    turn(peer, 5);
    assert_true(http_request_is_gone(held[0]));
    assert_false(http_stream_send(held[0], slice_of_text("id: 1\n\n")));
    assert_int_equal(ended_count, 0);
    http_stream_end(held[--held_count], false);
    assert_int_equal(ended_count, 1);
    h2_peer_close(peer);
}

/* Calls on_request again for the request that was held last. */
static void go_on(void)
{
    mode = READ_AND_RESPOND;
    requests_count--;
    http_request_again(held[--held_count], server);
    mode = ASK_FIRST;
}

static void data_of_a_request_that_is_held_is_kept(void **state)
{
    enum { SIZE = 300000 };
    static const size_t sizes[] = {5, SIZE};
    uint8_t *body = mem_zalloc(SIZE);
    (void)state;
    mode = ASK_FIRST;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int32_t id = h2_peer_request(peer, post_fields, body, sizes[i], true);
        turn(peer, 50);
        assert_int_equal(held_count, 1);
        assert_int_equal(bodies_count, i);
        assert_true(budget_used(&budget) > sizes[i]);
        go_on();
        turn_until_closed(peer, id);
        assert_int_equal(h2_peer_response(peer, id)->status, 200);
        assert_int_equal(last_body_size, sizes[i]);
    }
    /* Its end comes later. */
    int32_t id = h2_peer_request(peer, post_fields, body, SIZE, false);
    turn(peer, 50);
    go_on();
    assert_int_equal(bodies_count, 2);
    nghttp2_submit_rst_stream(peer->nghttp2, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    turn(peer, 5);
    h2_peer_close(peer);
    mem_free(body);
}

/* The connection waits with it, until the request is held no longer or its stream has gone. */
static void a_long_body_of_a_request_that_is_held_waits(void **state)
{
    enum { SIZE = 2 * HTTP2_STREAM_WINDOW_BYTES, KEPT_MAX = 4 * HTTP2_EARLY_BYTES };
    uint8_t *body = mem_zalloc(SIZE);
    (void)state;
    mode = ASK_FIRST;
    body_max = SIZE;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    int32_t id = h2_peer_request(peer, post_fields, body, SIZE, true);
    turn(peer, 200);
    assert_int_equal(held_count, 1);
    assert_in_range(budget_used(&budget), HTTP2_EARLY_BYTES, KEPT_MAX);
    go_on();
    turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->status, 200);
    assert_int_equal(last_body_size, SIZE);
    /* The response comes before the body: the rest of it is read and dropped. */
    id = h2_peer_request(peer, post_fields, body, SIZE, true);
    turn(peer, 200);
    mode = RESPOND_AT_ONCE;
    requests_count--;
    http_request_again(held[--held_count], server);
    turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->status, 200);
    id = h2_peer_request(peer, get_fields, NULL, 0, true);
    turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->status, 200);
    h2_peer_close(peer);
    mem_free(body);
    body_max = 1 << 20;
}

static void the_server_stops_after_what_is_held(void **state)
{
    (void)state;
    mode = ASK_FIRST;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    h2_peer_request(peer, post_fields, "early", 5, true);
    turn(peer, 20);
    assert_int_equal(held_count, 1);
    h2_peer_close(peer);
    http_server_stop(server, on_stopped, NULL);
    http_server_abort(server);
    for (unsigned i = 0; i < 20; i++)
        lane_turn(lane);
    assert_false(is_stopped);
    assert_int_equal(ended_count, 0);
    http_request_again(held[--held_count], server);
    assert_int_equal(ended_count, 1);
    lane_turn(lane);
    assert_true(is_stopped);
}

static void data_before_the_handler_decides_is_refused(void **state)
{
    (void)state;
    mode = HOLD_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    int32_t id = h2_peer_request(peer, post_fields, "early", 5, true);
    turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->close_code, NGHTTP2_REFUSED_STREAM);
    assert_int_equal(ended_count, 0);
    respond(held[--held_count]);
    assert_int_equal(ended_count, 1);
    h2_peer_close(peer);
}

static void trailers_follow_the_body_or_stand_alone(void **state)
{
    (void)state;
    mode = HOLD_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    int32_t first = h2_peer_request(peer, get_fields, NULL, 0, true);
    int32_t second = h2_peer_request(peer, get_fields, NULL, 0, true);
    turn(peer, 5);
    assert_int_equal(held_count, 2);
    http_respond(held[0], &(struct http_response){
                              .status = 200,
                              .headers = {{"content-type", "application/grpc"}},
                              .body = slice_of("\0\0\0\0\0", 5),
                              .trailers = {{"grpc-status", "0"}, {"grpc-message", ""}},
                          });
    http_respond(held[1], &(struct http_response){
                              .status = 200,
                              .headers = {{"content-type", "application/grpc"}},
                              .trailers = {{"grpc-status", "14"}, {"grpc-message", "busy"}},
                          });
    held_count = 0;
    turn_until_closed(peer, first);
    turn_until_closed(peer, second);
    struct h2_response *got = h2_peer_response(peer, first);
    assert_int_equal(got->header_blocks, 2);
    assert_string_equal(got->headers, "content-type: application/grpc\n");
    assert_string_equal(got->trailers, "grpc-status: 0\ngrpc-message: \n");
    assert_int_equal(got->body_size, 5);
    got = h2_peer_response(peer, second);
    assert_int_equal(got->header_blocks, 1);
    assert_string_equal(got->headers,
                        "content-type: application/grpc\ngrpc-status: 14\ngrpc-message: busy\n");
    h2_peer_close(peer);
}

static void too_many_headers_reset_the_stream_alone(void **state)
{
    static char large[9000];
    static const char *many[2 * (HTTP_HEADERS_MAX + 6) + 1];
    static const char *one[] = {":method",    "GET", ":scheme", "http", ":path", "/",
                                ":authority", "h",   "x-large", large,  NULL};
    static const char *several[] = {
        ":method", "GET",        ":scheme", "http",       ":path", "/",          "a", large + 4000,
        "b",       large + 4000, "c",       large + 4000, "d",     large + 4000, NULL};
    (void)state;
    memset(large, 'x', sizeof(large) - 1);
    memcpy(many, get_fields, 8 * sizeof(*many));
    for (size_t i = 8; i < sizeof(many) / sizeof(many[0]) - 1; i++)
        many[i] = "a";
    const char *const *const rows[] = {one, several, many};
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    for (unsigned i = 0; i < 3; i++) {
        int32_t id = h2_peer_request(peer, rows[i], NULL, 0, true);
        turn_until_closed(peer, id);
        assert_int_equal(h2_peer_response(peer, id)->close_code, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    assert_int_equal(requests_count, 0);
    int32_t id = h2_peer_request(peer, get_fields, NULL, 0, true);
    turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->status, 200);
    h2_peer_close(peer);
}

/* HPACK lets a client repeat long fields for one byte each. */
static void headers_are_charged_while_their_streams_are_open(void **state)
{
    enum { LIMIT = 256 * 1024, STREAMS = 90, VALUE_BYTES = 7000 };
    static char large[VALUE_BYTES + 1];
    static const char *fields[] = {":method",    "GET", ":scheme", "http", ":path", "/",
                                   ":authority", "h",   "x-large", large,  NULL};
    (void)state;
    memset(large, 'x', VALUE_BYTES);
    budget_fini(&budget);
    budget_init(&budget, LIMIT);
    mode = HOLD_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    int32_t ids[STREAMS];
    for (unsigned i = 0; i < STREAMS; i++) {
        ids[i] = h2_peer_request(peer, fields, NULL, 0, true);
        turn(peer, 2);
        assert_true(budget_used(&budget) >= (uint64_t)held_count * VALUE_BYTES);
        assert_true(budget_used(&budget) <= LIMIT + LIMIT / 16 + 256 * KIB);
    }
    assert_true(held_count >= LIMIT / VALUE_BYTES / 3);
    assert_true(held_count < STREAMS);
    turn_until_closed(peer, ids[STREAMS - 1]);
    assert_int_equal(h2_peer_response(peer, ids[STREAMS - 1])->close_code, NGHTTP2_REFUSED_STREAM);
    while (held_count > 0)
        respond(held[--held_count]);
    turn_until_closed(peer, ids[0]);
    assert_int_equal(h2_peer_response(peer, ids[0])->status, 200);
    mode = READ_AND_RESPOND;
    int32_t id = h2_peer_request(peer, fields, NULL, 0, true);
    turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->status, 200);
    h2_peer_close(peer);
}

/* A request whose fields, of a byte each, go to the table of header fields. */
static void raw_request_for_the_table(struct h2_peer *peer, uint32_t id)
{
    enum { FIELDS = 62 };
    uint8_t block[sizeof(get_block) + 4 * FIELDS];
    memcpy(block, get_block, sizeof(get_block));
    for (unsigned i = 0; i < FIELDS; i++)
        memcpy(block + sizeof(get_block) + 4 * i, (uint8_t[]){0x40, 1, (uint8_t)('a' + i % 26), 0},
               4);
    h2_peer_frame(peer, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, id,
                  block, sizeof(block));
}

/* nghttp2 keeps 54 KB for such a client, without its frame buffer 37. */
static void tables_of_header_fields_are_charged(void **state)
{
    enum { LIMIT = 128 * 1024, TABLE_BYTES = 27000, PEERS = 16 };
    struct h2_peer *peers[PEERS];
    unsigned alive = 0;
    (void)state;
    budget_fini(&budget);
    budget_init(&budget, LIMIT);
    mode = RESPOND_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    peers[0] = h2_peer_connect_raw(address);
    h2_peer_greet(peers[0]);
    turn(peers[0], 5);
    uint64_t before = budget_used(&budget);
    assert_true(before >= 10 * KIB);
    raw_request_for_the_table(peers[0], 1);
    raw_request_for_the_table(peers[0], 3);
    turn(peers[0], 5);
    assert_int_equal(ended_count, 2);
    assert_true(budget_used(&budget) >= before + TABLE_BYTES);
    for (unsigned i = 1; i < PEERS; i++) {
        peers[i] = h2_peer_connect_raw(address);
        h2_peer_greet(peers[i]);
        raw_request_for_the_table(peers[i], 1);
        raw_request_for_the_table(peers[i], 3);
        turn(peers[i], 5);
        assert_true(budget_used(&budget) <= LIMIT + LIMIT / 16 + 256 * KIB);
    }
    for (unsigned i = 0; i < PEERS; i++) {
        uint32_t size;
        uint32_t id;
        alive += h2_peer_find_frame(peers[i], NGHTTP2_GOAWAY, &size, &id) == NULL &&
                 !peers[i]->has_ended;
    }
    assert_true(alive > 2);
    assert_true(alive < PEERS);
    for (unsigned i = 0; i < PEERS; i++)
        h2_peer_close(peers[i]);
}

/* What each flood sends, frame number i. */
static void flood_resets(struct h2_peer *peer, uint32_t i)
{
    raw_request(peer, 2 * i + 1, false);
    raw_reset(peer, 2 * i + 1);
}

static void flood_made_resets(struct h2_peer *peer, uint32_t i)
{
    static const uint8_t overflow[] = {0x7f, 0xff, 0xff, 0xff};
    raw_request(peer, 2 * i + 1, false);
    h2_peer_frame(peer, NGHTTP2_WINDOW_UPDATE, 0, 2 * i + 1, overflow, sizeof(overflow));
}

static void flood_refusals(struct h2_peer *peer, uint32_t i)
{
    raw_request(peer, 2 * i + 1, false);
}

static void flood_settings(struct h2_peer *peer, uint32_t i)
{
    (void)i;
    h2_peer_frame(peer, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

static void flood_pings(struct h2_peer *peer, uint32_t i)
{
    uint8_t data[8] = {(uint8_t)i};
    h2_peer_frame(peer, NGHTTP2_PING, 0, 0, data, sizeof(data));
}

static void flood_priority(struct h2_peer *peer, uint32_t i)
{
    uint8_t data[5] = {0, 0, 0, 0, (uint8_t)i};
    h2_peer_frame(peer, NGHTTP2_PRIORITY, 0, 2 * i + 1, data, sizeof(data));
}

static void flood_window_updates(struct h2_peer *peer, uint32_t i)
{
    static const uint8_t one[] = {0, 0, 0, 1};
    (void)i;
    h2_peer_frame(peer, NGHTTP2_WINDOW_UPDATE, 0, 0, one, sizeof(one));
}

static void flood_empty_data(struct h2_peer *peer, uint32_t i)
{
    if (i == 0)
        raw_request(peer, 1, false);
    h2_peer_frame(peer, NGHTTP2_DATA, 0, 1, NULL, 0);
}

static void flood_unknown_frames(struct h2_peer *peer, uint32_t i)
{
    (void)i;
    h2_peer_frame(peer, 0xbe, 0, 0, "junk", 4);
}

static void flood_continuations(struct h2_peer *peer, uint32_t i)
{
    static const uint8_t literal[] = {0x00, 0x01, 'a', 0x01, 'b'};
    if (i == 0)
        h2_peer_frame(peer, NGHTTP2_HEADERS, 0, 1, get_block, sizeof(get_block));
    h2_peer_frame(peer, NGHTTP2_CONTINUATION, 0, 1, literal, sizeof(literal));
}

static void flood_late_data(struct h2_peer *peer, uint32_t i)
{
    if (i == 0)
        flood_resets(peer, 0);
    h2_peer_frame(peer, NGHTTP2_DATA, 0, 1, "late", 4);
}

static void every_flood_ends_in_goaway(void **state)
{
    static const struct {
        void (*flood)(struct h2_peer *peer, uint32_t i);
        uint32_t frames; /* so many are tolerated, one more is not */
        const char *text;
    } rows[] = {
        {flood_resets, HTTP2_RESETS_BURST, "too_many_resets"},
        {flood_made_resets, HTTP2_RESETS_BURST, "too_many_resets"},
        {flood_refusals, HTTP2_STREAMS_MAX + HTTP2_RESETS_BURST, "too_many_resets"},
        {flood_settings, HTTP2_SETTINGS_BURST - 1, "too_many_settings"},
        {flood_pings, HTTP2_PING_STRIKES_MAX + 1, "too_many_pings"},
        {flood_priority, HTTP2_GLITCHES_BURST, "too_many_empty_frames"},
        {flood_window_updates, HTTP2_GLITCHES_BURST, "too_many_empty_frames"},
        {flood_empty_data, HTTP2_GLITCHES_BURST, "too_many_empty_frames"},
        {flood_unknown_frames, HTTP2_GLITCHES_BURST, "too_many_empty_frames"},
        {flood_late_data, HTTP2_RESETS_BURST - 1, "too_many_resets"},
        {flood_continuations, HTTP2_CONTINUATIONS_MAX, "too_many_continuations"},
    };
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t size;
        uint32_t id;
        struct h2_peer *peer = h2_peer_connect_raw(address);
        h2_peer_greet(peer);
        for (uint32_t j = 0; j < rows[i].frames; j++)
            rows[i].flood(peer, j);
        turn(peer, 20);
        if (h2_peer_find_frame(peer, NGHTTP2_GOAWAY, &size, &id) != NULL)
            fail_msg("row %zu: ended too early", i);
        for (uint32_t j = 0; j < 3; j++)
            rows[i].flood(peer, rows[i].frames + j);
        turn(peer, 20);
        if (h2_peer_find_frame(peer, NGHTTP2_GOAWAY, &size, &id) == NULL)
            fail_msg("row %zu: not ended", i);
        assert_goaway(peer, NGHTTP2_ENHANCE_YOUR_CALM, rows[i].text);
        turn_until_end(peer);
        h2_peer_close(peer);
    }
}

/* Behind a block, which may be empty, a field of 4000 bytes, and so often again for a byte each. */
static void raw_fields(struct h2_peer *peer, uint32_t id, const uint8_t *block, size_t size,
                       uint8_t last, unsigned repeats)
{
    enum { FIELD_BYTES = 4000 };
    static const uint8_t head[] = {0x40, 1, 'x', 0x7f, 0xa1, 0x1e};
    uint8_t payload[64 + FIELD_BYTES + 64];
    assert_true(size + sizeof(head) <= 64 && repeats <= 64);
    memcpy(payload, block, size);
    memcpy(payload + size, head, sizeof(head));
    size += sizeof(head);
    memset(payload + size, 'v', FIELD_BYTES);
    size += FIELD_BYTES;
    payload[size - 1] = last;
    memset(payload + size, 0xbe, repeats);
    h2_peer_frame(peer, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, id,
                  payload, size + repeats);
}

static void fields_of_a_refused_stream(struct h2_peer *peer, unsigned repeats)
{
    raw_request(peer, 1, false);
    raw_request(peer, 3, false);
    raw_fields(peer, 5, get_block, sizeof(get_block), 'v', repeats);
}

static void fields_of_trailers(struct h2_peer *peer, unsigned repeats)
{
    raw_request(peer, 1, false);
    raw_fields(peer, 1, get_block, 0, 'v', repeats);
}

static void fields_beyond_the_limit_of_a_request(struct h2_peer *peer, unsigned repeats)
{
    raw_fields(peer, 1, get_block, sizeof(get_block), 'v', repeats);
}

static void fields_that_are_not_valid(struct h2_peer *peer, unsigned repeats)
{
    raw_fields(peer, 1, get_block, sizeof(get_block), '\n', repeats);
}

static void fields_that_nobody_reads_are_bounded(void **state)
{
    static void (*const rows[])(struct h2_peer * peer, unsigned repeats) = {
        fields_of_a_refused_stream, fields_of_trailers, fields_beyond_the_limit_of_a_request,
        fields_that_are_not_valid};
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 2});
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (unsigned is_flood = 0; is_flood < 2; is_flood++) {
            uint32_t size;
            uint32_t id;
            struct h2_peer *peer = h2_peer_connect_raw(address);
            h2_peer_greet(peer);
            rows[i](peer, is_flood != 0 ? 30 : 10);
            turn(peer, 20);
            if (is_flood != 0)
                assert_goaway(peer, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_header_fields");
            else if (h2_peer_find_frame(peer, NGHTTP2_GOAWAY, &size, &id) != NULL)
                fail_msg("row %zu: ended too early", i);
            h2_peer_close(peer);
        }
    }
}

static void refusals_of_one_turn_are_few(void **state)
{
    enum { COUNT = 3000 };
    (void)state;
    mode = HOLD_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = 1});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    for (uint32_t i = 0; i < COUNT; i++)
        raw_request(peer, 2 * i + 1, true);
    turn(peer, 20);
    assert_goaway(peer, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_resets");
    uint64_t resets = http_server_figures(server).reset_total;
    if (resets > HTTP2_RESETS_BURST + HTTP2_WAITING_FREE)
        fail_msg("%" PRIu64 " streams were reset", resets);
    assert_int_equal(requests_count, 1);
    turn_until_end(peer);
    respond(held[--held_count]);
    h2_peer_close(peer);
}

/* As much as the socket takes comes in one turn, before anything is written. */
static void resets_of_one_turn_are_few(void **state)
{
    enum { COUNT = 3000 };
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    for (uint32_t i = 0; i < COUNT; i++)
        flood_late_data(peer, i);
    turn(peer, 20);
    assert_goaway(peer, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_waiting_frames");
    uint64_t resets = http_server_figures(server).reset_total;
    if (resets > HTTP2_WAITING_FREE + HTTP2_WAITING_MAX + HTTP2_WAITING_PER_REQUEST + 1)
        fail_msg("%" PRIu64 " streams were reset", resets);
    turn_until_end(peer);
    h2_peer_close(peer);
}

/* Takes all that the budget has, its margin included. Returns how much that was. */
static uint64_t exhaust_budget(void)
{
    uint64_t taken = 0;
    while (budget_try_take_margin(&budget, KIB))
        taken += KIB;
    return taken;
}

static void resets_that_wait_are_charged(void **state)
{
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    for (uint32_t i = 0; i < HTTP2_WAITING_FREE; i++)
        flood_late_data(peer, i);
    turn(peer, 5);
    assert_int_equal(http_server_figures(server).reset_total, HTTP2_WAITING_FREE);
    uint64_t taken = exhaust_budget();
    for (uint32_t i = HTTP2_WAITING_FREE; i < 4 * HTTP2_WAITING_FREE; i++)
        flood_late_data(peer, i);
    turn(peer, 5);
    budget_return(&budget, taken);
    assert_goaway(peer, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_waiting_frames");
    turn_until_end(peer);
    h2_peer_close(peer);
}

/* As many as a client may have open, in one turn. */
static void streams_without_budget_are_refused_alone(void **state)
{
    uint32_t size;
    uint32_t id;
    (void)state;
    mode = RESPOND_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    turn(peer, 5);
    uint64_t taken = exhaust_budget();
    for (uint32_t i = 0; i < HTTP2_STREAMS_MAX; i++)
        raw_request(peer, 2 * i + 1, true);
    turn(peer, 5);
    assert_int_equal(http_server_figures(server).reset_total, HTTP2_STREAMS_MAX);
    assert_reset(peer, 1, NGHTTP2_REFUSED_STREAM);
    budget_return(&budget, taken);
    raw_request(peer, 2 * HTTP2_STREAMS_MAX + 1, true);
    turn(peer, 5);
    assert_null(h2_peer_find_frame(peer, NGHTTP2_GOAWAY, &size, &id));
    assert_int_equal(requests_count, 1);
    assert_int_equal(ended_count, 1);
    h2_peer_close(peer);
}

/* Enough of them that refusals are written while their header fields are read. */
static void raw_refused_requests(struct h2_peer *peer, uint32_t count)
{
    for (uint32_t i = 1; i <= count; i++)
        raw_request(peer, 2 * i + 1, true);
}

/* The last block has come whole: no deadline of header blocks runs. */
static void refused_streams_do_not_end_others(void **state)
{
    (void)state;
    mode = HOLD_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = 1});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    turn(peer, 5);
    raw_request(peer, 1, true);
    raw_refused_requests(peer, HTTP2_WAITING_FREE / 2);
    turn(peer, 5);
    assert_int_equal(http_server_figures(server).reset_total, HTTP2_WAITING_FREE / 2);
    clock_fake_advance(2 * HTTP_HEADER_DEADLINE_NS);
    turn(peer, 5);
    assert_int_equal(http_server_figures(server).aborted_total, 0);
    assert_int_equal(held_count, 1);
    respond(held[--held_count]);
    turn(peer, 5);
    assert_int_equal(ended_count, 1);
    h2_peer_close(peer);
}

/* Trailers of one field, behind a refused stream that has none to pause at. */
static void trailers_behind_refused_streams_end_a_request(void **state)
{
    static const uint8_t invalid[] = {0, 1, 'x', 2, 'v', '\n'};
    static const uint8_t trailer[] = {0, 1, 'x', 1, 'v'};
    enum { COUNT = HTTP2_WAITING_FREE / 2 };
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 1});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    turn(peer, 5);
    raw_request(peer, 1, false);
    raw_refused_requests(peer, COUNT - 1);
    h2_peer_frame(peer, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
                  2 * COUNT + 1, invalid, sizeof(invalid));
    h2_peer_frame(peer, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1,
                  trailer, sizeof(trailer));
    turn(peer, 5);
    assert_int_equal(bodies_count, 1);
    assert_int_equal(ended_count, 1);
    h2_peer_close(peer);
}

/* Clients that grant no window leave their responses with us. */
static void large_responses_stay_within_the_budget(void **state)
{
    enum { LIMIT = 1 << 20, SIZE = 400 * 1024, FITTING = 3, COUNT = 12 };
    static const uint8_t no_window[] = {0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0, 0, 0, 0};
    static const uint8_t window[] = {0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0, 0, 1, 0};
    (void)state;
    budget_fini(&budget);
    budget_init(&budget, LIMIT);
    mode = RESPOND_AT_ONCE;
    reply = slice_of(mem_zalloc(SIZE), SIZE);
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_write(peer, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    h2_peer_frame(peer, NGHTTP2_SETTINGS, 0, 0, no_window, sizeof(no_window));
    for (uint32_t i = 0; i < COUNT; i++)
        raw_request(peer, 2 * i + 1, true);
    turn(peer, 20);
    assert_int_equal(requests_count, COUNT);
    assert_true(budget_used(&budget) >= LIMIT);
    assert_true(budget_used(&budget) <= LIMIT + LIMIT / 16 + 256 * KIB);
    /* Those that had no room are short, and are written with little window. */
    assert_int_equal(ended_count, 0);
    h2_peer_frame(peer, NGHTTP2_SETTINGS, 0, 0, window, sizeof(window));
    turn(peer, 20);
    assert_int_equal(ended_count, COUNT - FITTING);
    h2_peer_close(peer);
    mem_free((void *)(uintptr_t)reply.data);
}

static void nothing_is_read_while_output_waits(void **state)
{
    enum { COUNT = 90, SIZE = 128 * 1024 }; /* more than sockets hold */
    static const uint8_t window[] = {0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0x7f, 0, 0, 0};
    (void)state;
    mode = RESPOND_AT_ONCE;
    reply = slice_of(mem_zalloc(SIZE), SIZE);
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    peer->is_deaf = true;
    h2_peer_write(peer, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    h2_peer_frame(peer, NGHTTP2_SETTINGS, 0, 0, window, sizeof(window));
    h2_peer_frame(peer, NGHTTP2_WINDOW_UPDATE, 0, 0, (const uint8_t[]){0x7f, 0, 0, 0}, 4);
    for (uint32_t i = 0; i < COUNT; i++)
        raw_request(peer, 2 * i + 1, true);
    turn(peer, 20);
    assert_int_equal(requests_count, COUNT);
    assert_true(ended_count < COUNT);
    raw_request(peer, 2 * COUNT + 1, true);
    turn(peer, 20);
    assert_int_equal(requests_count, COUNT);
    /* Nothing is lost: the client reads, and the server does, too. */
    peer->is_deaf = false;
    for (unsigned i = 0; i < TURNS_MAX && ended_count <= COUNT; i++)
        turn(peer, 1);
    assert_int_equal(ended_count, COUNT + 1);
    h2_peer_close(peer);
    mem_free((void *)(uintptr_t)reply.data);
}

/* It takes no memory while it waits for the client, and is released once that has it, or leaves. */
static void a_lent_body_is_not_copied(void **state)
{
    enum { WINDOW = 1000, CHARGED_MAX = 1000 };
    static uint8_t body[H2_BODY_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (uint8_t)(i / WINDOW);
    mode = HOLD_AT_ONCE;
    is_lent = true;
    reply = slice_of(body, sizeof(body));
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, WINDOW);
    for (unsigned round = 0; round < 2; round++) {
        int32_t id = h2_peer_request(peer, get_fields, NULL, 0, true);
        for (unsigned i = 0; i < TURNS_MAX && held_count == 0; i++)
            turn(peer, 1);
        const uint64_t before = budget_used(&budget);
        respond(held[--held_count]);
        assert_in_range(budget_used(&budget), before, before + CHARGED_MAX);
        lane_turn(lane);
        assert_int_equal(releases, round);
        if (round == 1) {
            h2_peer_close(peer);
            break;
        }
        turn_until_closed(peer, id);
        struct h2_response *got = h2_peer_response(peer, id);
        assert_int_equal(got->body_size, sizeof(body));
        assert_memory_equal(got->body, body, sizeof(body));
        assert_int_equal(releases, 1);
    }
    for (unsigned i = 0; i < TURNS_MAX && releases < 2; i++)
        lane_turn(lane);
    assert_int_equal(releases, 2);
}

static void raw_post(struct h2_peer *peer, uint32_t id)
{
    raw_request(peer, id, false);
    h2_peer_frame(peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, id, "x", 1);
}

/* Each request takes as long as a turn may. One that is reset meanwhile is forgotten. */
static void requests_that_came_together_take_turns(void **state)
{
    enum { COUNT = 20, RESET = 7 };
    (void)state;
    work_ns = HTTP_TURN_NS + 1;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    struct h2_peer *other = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    h2_peer_greet(other);
    turn(peer, 5);
    turn(other, 5);
    for (uint32_t i = 0; i < COUNT; i++)
        if (i % 2 == 0)
            raw_post(peer, 2 * i + 1);
        else
            raw_request(peer, 2 * i + 1, true);
    h2_peer_turn(peer);
    lane_turn(lane);
    assert_int_equal(bodies_count, 1);
    raw_reset(peer, 2 * RESET + 1);
    raw_reset(peer, 2 * COUNT - 1);
    raw_post(other, 1);
    h2_peer_turn(peer);
    h2_peer_turn(other);
    unsigned turns = 0;
    for (unsigned before = 1; bodies_count < COUNT - 1 && turns < TURNS_MAX; turns++) {
        turn(other, 1);
        assert_in_range(bodies_count - before, 0, 4); /* lane_turn runs jobs up to three times */
        before = bodies_count;
        if (turns == 3) /* it does not wait for all of them */
            assert_true(other->raw_size > 0);
    }
    assert_int_equal(bodies_count, COUNT - 2 + 1);
    turn(peer, 5);
    assert_int_equal(ended_count, requests_count);
    h2_peer_close(peer);
    h2_peer_close(other);
}

/* A handler that reads no bodies responds before they have come. What comes of them is dropped. */
static void requests_whose_bodies_are_not_read_take_turns(void **state)
{
    enum { COUNT = 20, UNFINISHED = 5 };
    (void)state;
    work_ns = HTTP_TURN_NS + 1;
    listen_with(&(struct http_server_settings){.handler = &page_handler});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    turn(peer, 5);
    for (uint32_t i = 0; i < COUNT; i++)
        if (i == UNFINISHED)
            raw_request(peer, 2 * i + 1, false);
        else
            raw_post(peer, 2 * i + 1);
    h2_peer_turn(peer);
    lane_turn(lane);
    assert_int_equal(requests_count, 1);
    unsigned before = requests_count;
    for (unsigned i = 0; i < TURNS_MAX && requests_count < COUNT; i++) {
        turn(peer, 1);
        assert_in_range(requests_count - before, 0, 4); /* lane_turn runs jobs up to three times */
        before = requests_count;
    }
    assert_int_equal(requests_count, COUNT);
    turn(peer, 5);
    assert_int_equal(ended_count, COUNT - 1);
    assert_int_equal(http_server_figures(server).reset_total, 0);
    h2_peer_frame(peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 2 * UNFINISHED + 1, "x", 1);
    turn(peer, 5);
    assert_int_equal(ended_count, COUNT);
    h2_peer_close(peer);
}

static void a_client_that_leaves_takes_what_is_due_along(void **state)
{
    enum { COUNT = 20 };
    (void)state;
    work_ns = HTTP_TURN_NS + 1;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    turn(peer, 5);
    for (uint32_t i = 0; i < COUNT; i++)
        raw_post(peer, 2 * i + 1);
    h2_peer_turn(peer);
    lane_turn(lane);
    assert_int_equal(bodies_count, 1);
    h2_peer_close(peer);
    for (unsigned i = 0; i < 2 * COUNT; i++)
        lane_turn(lane);
    assert_in_range(bodies_count, 1, 5);
    assert_int_equal(ended_count, requests_count);
}

static void budgets_fill_again_with_time(void **state)
{
    uint32_t size;
    uint32_t id;
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    for (uint32_t i = 0; i < 3 * HTTP2_RESETS_BURST; i++) {
        flood_resets(peer, i);
        if (i % HTTP2_RESETS_PER_S == 0) {
            turn(peer, 3);
            clock_fake_advance(NS_PER_S);
        }
    }
    turn(peer, 20);
    assert_null(h2_peer_find_frame(peer, NGHTTP2_GOAWAY, &size, &id));
    h2_peer_close(peer);
}

static void pings_beside_requests_are_no_strikes(void **state)
{
    uint32_t size;
    uint32_t id;
    (void)state;
    mode = RESPOND_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    for (uint32_t i = 0; i < 100; i++) {
        raw_request(peer, 2 * i + 1, true);
        flood_pings(peer, i);
    }
    turn(peer, 20);
    assert_null(h2_peer_find_frame(peer, NGHTTP2_GOAWAY, &size, &id));
    assert_int_equal(ended_count, 100);
    h2_peer_close(peer);
}

/* What each broken rule looks like. The server has responded to what came before each turn. */
static void send_data_of_a_closed_stream(struct h2_peer *peer)
{
    raw_request(peer, 1, true);
    turn(peer, 5);
    h2_peer_frame(peer, NGHTTP2_DATA, 0, 1, "late", 4);
}

static void send_headers_of_a_closed_stream(struct h2_peer *peer)
{
    raw_request(peer, 1, true);
    turn(peer, 5);
    raw_request(peer, 1, true);
}

static void send_data_behind_a_reset(struct h2_peer *peer)
{
    raw_request(peer, 1, false);
    raw_reset(peer, 1);
    turn(peer, 5);
    h2_peer_frame(peer, NGHTTP2_DATA, 0, 1, "late", 4);
}

static void send_headers_behind_a_reset(struct h2_peer *peer)
{
    raw_request(peer, 1, false);
    raw_reset(peer, 1);
    turn(peer, 5);
    raw_request(peer, 1, true);
}

static void send_a_lower_stream_id(struct h2_peer *peer)
{
    raw_request(peer, 5, true);
    raw_request(peer, 3, true);
}

static void send_priority_on_itself(struct h2_peer *peer)
{
    h2_peer_frame(peer, NGHTTP2_PRIORITY, 0, 1, (const uint8_t[]){0, 0, 0, 1, 255}, 5);
}

static void send_priority_on_stream_0(struct h2_peer *peer)
{
    h2_peer_frame(peer, NGHTTP2_PRIORITY, 0, 0, (const uint8_t[]){0, 0, 0, 1, 255}, 5);
}

/* "content-length: 1" is a literal whose name is number 28 of the static table. */
static void raw_request_of_one_byte(struct h2_peer *peer)
{
    static const uint8_t block[] = {0x83, 0x86, 0x84, 0x01, 0x04, 'h', 'o',
                                    's',  't',  0x0f, 0x0d, 0x01, '1'};
    h2_peer_frame(peer, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, block, sizeof(block));
    turn(peer, 5);
}

static void send_more_than_declared(struct h2_peer *peer)
{
    raw_request_of_one_byte(peer);
    h2_peer_frame(peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, "four", 4);
}

static void send_more_than_declared_in_two_frames(struct h2_peer *peer)
{
    raw_request_of_one_byte(peer);
    h2_peer_frame(peer, NGHTTP2_DATA, 0, 1, "a", 1);
    turn(peer, 5);
    h2_peer_frame(peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, "b", 1);
}

static void send_less_than_declared(struct h2_peer *peer)
{
    raw_request_of_one_byte(peer);
    h2_peer_frame(peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, NULL, 0);
}

static void send_pseudo_headers_as_trailers(struct h2_peer *peer)
{
    raw_request(peer, 1, false);
    turn(peer, 5);
    h2_peer_frame(peer, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1,
                  (const uint8_t[]){0x84}, 1);
}

static void overflow_the_window_of_a_stream(struct h2_peer *peer)
{
    raw_request(peer, 1, false);
    h2_peer_frame(peer, NGHTTP2_WINDOW_UPDATE, 0, 1, (const uint8_t[]){0x7f, 255, 255, 255}, 4);
}

static void overflow_the_window_of_the_connection(struct h2_peer *peer)
{
    h2_peer_frame(peer, NGHTTP2_WINDOW_UPDATE, 0, 0, (const uint8_t[]){0x7f, 255, 255, 255}, 4);
}

/* The server reports a row's fault as RFC 9113 says, both while it waits for the body and after its
 * response. */
static void broken_rules_get_their_error(void **state)
{
    static const struct {
        void (*send)(struct h2_peer *peer);
        uint32_t stream_id; /* reset; 0: the connection ends */
        uint32_t code;
    } rows[] = {
        {send_data_of_a_closed_stream, 0, NGHTTP2_STREAM_CLOSED},
        {send_headers_of_a_closed_stream, 0, NGHTTP2_STREAM_CLOSED},
        {send_data_behind_a_reset, 1, NGHTTP2_STREAM_CLOSED},
        {send_headers_behind_a_reset, 1, NGHTTP2_STREAM_CLOSED},
        {send_a_lower_stream_id, 0, NGHTTP2_PROTOCOL_ERROR},
        {send_priority_on_itself, 0, NGHTTP2_PROTOCOL_ERROR},
        {send_priority_on_stream_0, 0, NGHTTP2_PROTOCOL_ERROR},
        {send_more_than_declared, 1, NGHTTP2_PROTOCOL_ERROR},
        {send_more_than_declared_in_two_frames, 1, NGHTTP2_PROTOCOL_ERROR},
        {send_less_than_declared, 1, NGHTTP2_PROTOCOL_ERROR},
        {send_pseudo_headers_as_trailers, 1, NGHTTP2_PROTOCOL_ERROR},
        {overflow_the_window_of_a_stream, 1, NGHTTP2_FLOW_CONTROL_ERROR},
        {overflow_the_window_of_the_connection, 0, NGHTTP2_FLOW_CONTROL_ERROR},
    };
    static const enum mode modes[] = {READ_AND_RESPOND, RESPOND_AT_ONCE};
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) * 2; i++) {
        const unsigned row = (unsigned)i / 2;
        uint32_t size;
        uint32_t id;
        mode = modes[i % 2];
        struct h2_peer *peer = h2_peer_connect_raw(address);
        h2_peer_greet(peer);
        rows[row].send(peer);
        turn(peer, 10);
        const uint8_t *goaway = h2_peer_find_frame(peer, NGHTTP2_GOAWAY, &size, &id);
        if ((goaway != NULL) != (rows[row].stream_id == 0))
            fail_msg("row %u: GOAWAY is %s", row, goaway != NULL ? "unexpected" : "missing");
        if (goaway != NULL) {
            assert_int_equal(goaway[7], rows[row].code);
            turn_until_end(peer);
        } else {
            assert_reset(peer, rows[row].stream_id, rows[row].code);
            /* Other connections are not affected. */
            unsigned before = ended_count;
            raw_request(peer, 99, true);
            turn(peer, 10);
            assert_int_equal(ended_count, before + 1);
        }
        h2_peer_close(peer);
    }
}

static void the_rest_of_a_body_may_follow_the_response(void **state)
{
    static uint8_t rest[HTTP_DISCARD_BYTES_MAX / 4];
    enum { FRAMES = HTTP_DISCARD_BYTES_MAX / sizeof(rest) };
    uint32_t size;
    uint32_t id;
    (void)state;
    mode = RESPOND_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    raw_request(peer, 1, false);
    turn(peer, 5);
    assert_int_equal(ended_count, 0);
    for (unsigned i = 0; i < FRAMES; i++)
        h2_peer_frame(peer, NGHTTP2_DATA, i + 1 == FRAMES ? NGHTTP2_FLAG_END_STREAM : 0, 1, rest,
                      sizeof(rest));
    turn(peer, 20);
    assert_null(h2_peer_find_frame(peer, NGHTTP2_RST_STREAM, &size, &id));
    assert_int_equal(ended_count, 1);
    h2_peer_close(peer);
}

static void declare_much(struct h2_peer *peer)
{
    static const uint8_t block[] = {0x83, 0x86, 0x84, 0x01, 0x04, 'h', 'o', 's', 't',
                                    0x0f, 0x0d, 0x06, '9',  '9',  '9', '9', '9', '9'};
    h2_peer_frame(peer, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, block, sizeof(block));
}

static void send_much(struct h2_peer *peer)
{
    static uint8_t rest[HTTP_DISCARD_BYTES_MAX / 4];
    raw_request(peer, 1, false);
    turn(peer, 5);
    for (unsigned i = 0; i < 4; i++)
        h2_peer_frame(peer, NGHTTP2_DATA, 0, 1, rest, sizeof(rest));
    h2_peer_frame(peer, NGHTTP2_DATA, 0, 1, "x", 1);
}

static void send_late(struct h2_peer *peer)
{
    uint32_t size;
    uint32_t id;
    raw_request(peer, 1, false);
    turn(peer, 5);
    assert_null(h2_peer_find_frame(peer, NGHTTP2_RST_STREAM, &size, &id));
    advance(peer, HTTP2_DISCARD_NS);
}

static void a_long_rest_is_not_awaited(void **state)
{
    static void (*const rows[])(struct h2_peer * peer) = {declare_much, send_much, send_late};
    (void)state;
    mode = RESPOND_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct h2_peer *peer = h2_peer_connect_raw(address);
        h2_peer_greet(peer);
        rows[i](peer);
        turn(peer, 20);
        assert_reset(peer, 1, NGHTTP2_NO_ERROR);
        assert_int_equal(ended_count, i + 1);
        h2_peer_close(peer);
    }
}

static void a_protocol_error_ends_in_goaway(void **state)
{
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    raw_request(peer, 2, true); /* an even stream is not the client's to open */
    for (unsigned i = 0; i < 1000; i++)
        raw_request(peer, 2 * i + 1, true);
    turn(peer, 10);
    uint32_t size;
    uint32_t id;
    const uint8_t *payload = h2_peer_find_frame(peer, NGHTTP2_GOAWAY, &size, &id);
    assert_non_null(payload);
    assert_int_equal(payload[7], NGHTTP2_PROTOCOL_ERROR);
    assert_int_equal(requests_count, 0);
    turn_until_end(peer);
    h2_peer_close(peer);
}

static void no_preface_is_closed(void **state)
{
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_write(peer, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
    turn_until_end(peer);
    h2_peer_close(peer);
}

static void silence_is_ended_by_deadlines(void **state)
{
    static const char half_block[] = {(char)0x82, (char)0x86};
    static const struct {
        const char *what;
        bool greets;
        bool begins_headers;
        bool continues;
        uint64_t not_before_s;
        uint64_t within_s; /* of that */
    } rows[] = {
        {"nothing at all", false, false, false, 9, 2},
        {"a header block without end", true, true, false, 9, 2},
        {"a continued header block without end", true, true, true, 9, 2},
        {"an idle connection", true, false, false, 299, 35},
    };
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct h2_peer *peer = h2_peer_connect_raw(address);
        if (rows[i].greets)
            h2_peer_greet(peer);
        if (rows[i].begins_headers)
            h2_peer_frame(peer, NGHTTP2_HEADERS, 0, 1, half_block, sizeof(half_block));
        if (rows[i].continues)
            h2_peer_frame(peer, NGHTTP2_CONTINUATION, 0, 1, half_block, 1);
        turn(peer, 5);
        advance(peer, rows[i].not_before_s * NS_PER_S);
        if (peer->has_ended)
            fail_msg("%s: ended too early", rows[i].what);
        advance(peer, rows[i].within_s * NS_PER_S);
        if (!peer->has_ended)
            fail_msg("%s: not ended", rows[i].what);
        h2_peer_close(peer);
    }
}

static void a_dribbling_body_fails(void **state)
{
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    raw_request(peer, 1, false);
    for (unsigned second = 0; second < 10; second++) {
        h2_peer_frame(peer, NGHTTP2_DATA, 0, 1, "x", 1);
        advance(peer, NS_PER_S);
    }
    assert_int_equal(failures_count, 0);
    advance(peer, 3 * (uint64_t)NS_PER_S);
    assert_int_equal(failures_count, 1);
    assert_int_equal(last_failure, HTTP_BODY_TOO_SLOW);
    assert_int_equal(ended_count, 1);
    h2_peer_close(peer);
}

/* Nothing else happens on the connection once the handler asks for it. */
static void a_body_that_never_comes_fails_after_its_request_was_held(void **state)
{
    (void)state;
    mode = ASK_FIRST;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    raw_request(peer, 1, false);
    turn(peer, 5);
    advance(peer, NS_PER_S);
    assert_int_equal(held_count, 1);
    go_on();
    advance(peer, 60 * (uint64_t)NS_PER_S);
    assert_int_equal(failures_count, 1);
    assert_int_equal(last_failure, HTTP_BODY_TOO_SLOW);
    h2_peer_close(peer);
}

static void a_steady_body_is_awaited(void **state)
{
    static const uint8_t piece[1030];
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    raw_request(peer, 1, false);
    for (unsigned second = 0; second < 60; second++) {
        h2_peer_frame(peer, NGHTTP2_DATA, 0, 1, piece, sizeof(piece));
        advance(peer, NS_PER_S);
    }
    assert_int_equal(failures_count, 0);
    h2_peer_frame(peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, NULL, 0);
    turn(peer, 5);
    assert_int_equal(bodies_count, 1);
    assert_int_equal(last_body_size, 60 * sizeof(piece));
    h2_peer_close(peer);
}

static void a_response_that_gets_no_window_ends_the_connection(void **state)
{
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    static const uint8_t no_window[] = {0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0, 0, 0, 0};
    h2_peer_write(peer, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    h2_peer_frame(peer, NGHTTP2_SETTINGS, 0, 0, no_window, sizeof(no_window));
    raw_request(peer, 1, true);
    turn(peer, 5);
    assert_int_equal(requests_count, 1);
    advance(peer, 4 * (uint64_t)NS_PER_S);
    assert_false(peer->has_ended);
    advance(peer, 2 * (uint64_t)NS_PER_S);
    assert_true(peer->has_ended);
    assert_int_equal(ended_count, 1);
    assert_int_equal(http_server_figures(server).aborted_total, 1);
    h2_peer_close(peer);
}

static void greet_without_window(struct h2_peer *peer)
{
    static const uint8_t no_window[] = {0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0, 0, 0, 0};
    h2_peer_write(peer, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    h2_peer_frame(peer, NGHTTP2_SETTINGS, 0, 0, no_window, sizeof(no_window));
}

static void grant(struct h2_peer *peer, uint32_t id, uint8_t bytes)
{
    const uint8_t window[] = {0, 0, 0, bytes};
    h2_peer_frame(peer, NGHTTP2_WINDOW_UPDATE, 0, id, window, sizeof(window));
}

/* However long others on its connection go on. */
static void a_response_that_gets_no_window_is_reset_among_others(void **state)
{
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    greet_without_window(peer);
    raw_request(peer, 1, true);
    turn(peer, 5);
    for (unsigned i = 1; i <= 3; i++) {
        raw_request(peer, 2 * i + 1, true);
        grant(peer, 2 * i + 1, 5);
        advance(peer, 2 * (uint64_t)NS_PER_S);
    }
    assert_int_equal(requests_count, 4);
    assert_int_equal(ended_count, 4);
    assert_false(peer->has_ended);
    h2_peer_close(peer);
}

/* A byte now and then does not extend the time for the whole response. */
static void a_response_of_little_window_is_reset_after_the_write_deadline(void **state)
{
    (void)state;
    listen_with(&(struct http_server_settings){.write_deadline_ns = 6 * (uint64_t)NS_PER_S});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    greet_without_window(peer);
    raw_request(peer, 1, true);
    turn(peer, 5);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(ended_count, 0);
        grant(peer, 1, 1);
        advance(peer, 2 * (uint64_t)NS_PER_S - (i == 2 ? NS_PER_MS : 0));
    }
    assert_int_equal(ended_count, 1);
    assert_false(peer->has_ended);
    h2_peer_close(peer);
}

static size_t resident_bytes(void)
{
    unsigned long total = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &total, &resident), 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* nghttp2's frame buffer alone takes a page of each. */
static void idle_connections_return_memory(void **state)
{
    enum { COUNT = 200, PAGE_BYTES = 4096 };
    struct h2_peer *peers[COUNT];
    (void)state;
    mode = RESPOND_AT_ONCE;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    for (unsigned i = 0; i < COUNT; i++) {
        peers[i] = h2_peer_connect_raw(address);
        h2_peer_greet(peers[i]);
        raw_request(peers[i], 1, true);
        turn(peers[i], 5);
    }
    assert_int_equal(ended_count, COUNT);
    size_t before = resident_bytes();
    clock_fake_advance(HTTP2_REST_NS);
    for (unsigned i = 0; i < 10; i++)
        lane_turn(lane);
    size_t after = resident_bytes();
    if (after + (size_t)COUNT * PAGE_BYTES * 3 / 4 > before)
        fail_msg("%zu bytes before, %zu after", before, after);
    for (unsigned i = 0; i < COUNT; i++) {
        raw_request(peers[i], 3, true);
        turn(peers[i], 5);
    }
    assert_int_equal(ended_count, 2 * COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        h2_peer_close(peers[i]);
}

static void an_old_connection_is_drained(void **state)
{
    (void)state;
    mode = READ_AND_HOLD;
    listen_with(&(struct http_server_settings){
        .connection_age_max_ns = 60 * (uint64_t)NS_PER_S,
        .connection_age_grace_ns = 30 * (uint64_t)NS_PER_S,
    });
    struct h2_peer *peer = h2_peer_connect(address, 0);
    int32_t id = h2_peer_request(peer, get_fields, NULL, 0, true);
    turn(peer, 5);
    advance(peer, 59 * (uint64_t)NS_PER_S);
    assert_false(peer->has_goaway);
    advance(peer, 2 * (uint64_t)NS_PER_S);
    assert_true(peer->has_goaway);
    assert_int_equal(peer->goaway_code, NGHTTP2_NO_ERROR);
    assert_int_equal(peer->goaway_last_id, id);
    assert_false(peer->has_ended);
    respond(held[--held_count]);
    turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->status, 200);
    turn_until_end(peer);
    h2_peer_close(peer);
}

static void grace_ends_an_old_connection(void **state)
{
    (void)state;
    mode = READ_AND_HOLD;
    listen_with(&(struct http_server_settings){
        .connection_age_max_ns = 60 * (uint64_t)NS_PER_S,
        .connection_age_grace_ns = 30 * (uint64_t)NS_PER_S,
    });
    struct h2_peer *peer = h2_peer_connect(address, 0);
    h2_peer_request(peer, get_fields, NULL, 0, true);
    turn(peer, 5);
    advance(peer, 88 * (uint64_t)NS_PER_S);
    assert_false(peer->has_ended);
    advance(peer, 4 * (uint64_t)NS_PER_S);
    assert_true(peer->has_ended);
    respond(held[--held_count]);
    h2_peer_close(peer);
}

static void stopping_lets_requests_finish(void **state)
{
    (void)state;
    mode = READ_AND_HOLD;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    struct h2_peer *idle = h2_peer_connect(address, 0);
    int32_t id = h2_peer_request(peer, get_fields, NULL, 0, true);
    turn(peer, 5);
    turn(idle, 5);
    http_server_stop(server, on_stopped, NULL);
    turn(idle, 10);
    assert_true(idle->has_goaway);
    turn_until_end(idle);
    h2_peer_close(idle);
    turn(peer, 10);
    assert_true(peer->has_goaway);
    assert_false(is_stopped);
    respond(held[--held_count]);
    turn_until_closed(peer, id);
    assert_int_equal(h2_peer_response(peer, id)->status, 200);
    turn_until_end(peer);
    h2_peer_close(peer);
    for (unsigned i = 0; i < TURNS_MAX && !is_stopped; i++)
        lane_turn(lane);
    assert_true(is_stopped);
}

static void a_slow_body_cannot_delay_the_stop(void **state)
{
    static const uint8_t body[1 << 14];
    (void)state;
    mode = READ_AND_HOLD;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect(address, 0);
    h2_peer_request(peer, post_fields, body, sizeof(body), false);
    turn(peer, 5);
    http_server_stop(server, on_stopped, NULL);
    turn(peer, 10);
    clock_fake_advance(HTTP_STOP_READ_NS - 1);
    turn(peer, 10);
    assert_false(is_stopped);
    clock_fake_advance(1);
    turn_until_end(peer);
    h2_peer_close(peer);
    for (unsigned i = 0; i < TURNS_MAX && !is_stopped; i++)
        lane_turn(lane);
    assert_true(is_stopped);
}

static void a_deaf_client_cannot_delay_the_stop(void **state)
{
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    h2_peer_greet(peer);
    turn(peer, 5);
    http_server_stop(server, on_stopped, NULL);
    advance(peer, HTTP2_DRAIN_PING_NS + HTTP2_LINGER_NS + NS_PER_S);
    assert_true(is_stopped);
    h2_peer_close(peer);
}

static void a_response_of_little_window_cannot_delay_the_stop(void **state)
{
    (void)state;
    static uint8_t body[64];
    reply = slice_of(body, sizeof(body));
    listen_with(&(struct http_server_settings){.streams_max = 0});
    struct h2_peer *peer = h2_peer_connect_raw(address);
    greet_without_window(peer);
    raw_request(peer, 1, true);
    turn(peer, 5);
    http_server_stop(server, on_stopped, NULL);
    for (uint64_t passed = 0; passed < HTTP_STOP_READ_NS + 2 * NS_PER_S; passed += 2 * NS_PER_S) {
        if (!peer->has_ended)
            grant(peer, 1, 1);
        advance(peer, 2 * (uint64_t)NS_PER_S);
    }
    assert_true(is_stopped);
    assert_int_equal(ended_count, 1);
    h2_peer_close(peer);
}

/* Every allocation on the way is refused once: nothing leaks, nothing crashes. */
static void refused_allocations_end_requests_or_connections(void **state)
{
    uint8_t body[5000] = {0};
    (void)state;
    listen_with(&(struct http_server_settings){.streams_max = 0});
    for (uint64_t n = 1; n < 200; n++) {
        struct h2_peer *peer = h2_peer_connect(address, 0);
        int32_t id = h2_peer_request(peer, post_fields, body, sizeof(body), true);
        uint64_t tries = mem_tries();
        mem_refuse_nth(n);
        turn(peer, 10);
        bool is_over = mem_tries() - tries < n;
        mem_refuse_nth(0);
        if (is_over)
            assert_int_equal(h2_peer_response(peer, id)->status, 200);
        h2_peer_close(peer);
        for (unsigned i = 0; i < 5; i++)
            lane_turn(lane);
        if (is_over)
            return;
    }
    fail_msg("the end was not reached");
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ROW(a_request_without_body_gets_a_response),
        ROW(a_large_body_arrives_whole),
        ROW(a_lent_body_is_not_copied),
        ROW(a_body_above_its_limit_fails_and_the_stream_is_reset_gently),
        ROW(a_short_budget_fails_the_body_at_once),
        ROW(many_streams_share_one_connection),
        ROW(the_limit_of_streams_is_advertised),
        ROW(a_stream_too_many_is_refused_alone),
        ROW(a_reset_request_keeps_its_slot_until_it_is_let_go),
        ROW(a_client_that_leaves_ends_its_requests),
        ROW(a_response_while_the_connection_closes_is_dropped),
        ROW(responses_given_after_the_turn_are_written),
        ROW(a_stream_is_sent_in_pieces_however_long_it_pauses),
        ROW(a_stream_is_cut_off_alone),
        ROW(a_stream_whose_client_leaves_is_gone),
        ROW(data_before_the_handler_decides_is_refused),
        ROW(data_of_a_request_that_is_held_is_kept),
        ROW(a_long_body_of_a_request_that_is_held_waits),
        ROW(the_server_stops_after_what_is_held),
        ROW(trailers_follow_the_body_or_stand_alone),
        ROW(too_many_headers_reset_the_stream_alone),
        ROW(headers_are_charged_while_their_streams_are_open),
        ROW(every_flood_ends_in_goaway),
        ROW(fields_that_nobody_reads_are_bounded),
        ROW(refusals_of_one_turn_are_few),
        ROW(resets_of_one_turn_are_few),
        ROW(resets_that_wait_are_charged),
        ROW(streams_without_budget_are_refused_alone),
        ROW(refused_streams_do_not_end_others),
        ROW(trailers_behind_refused_streams_end_a_request),
        ROW(large_responses_stay_within_the_budget),
        ROW(nothing_is_read_while_output_waits),
        ROW(requests_that_came_together_take_turns),
        ROW(requests_whose_bodies_are_not_read_take_turns),
        ROW(a_client_that_leaves_takes_what_is_due_along),
        ROW(budgets_fill_again_with_time),
        ROW(tables_of_header_fields_are_charged),
        ROW(pings_beside_requests_are_no_strikes),
        ROW(broken_rules_get_their_error),
        ROW(the_rest_of_a_body_may_follow_the_response),
        ROW(a_long_rest_is_not_awaited),
        ROW(a_protocol_error_ends_in_goaway),
        ROW(no_preface_is_closed),
        ROW(silence_is_ended_by_deadlines),
        ROW(a_dribbling_body_fails),
        ROW(a_body_that_never_comes_fails_after_its_request_was_held),
        ROW(a_steady_body_is_awaited),
        ROW(a_response_that_gets_no_window_ends_the_connection),
        ROW(a_response_that_gets_no_window_is_reset_among_others),
        ROW(a_response_of_little_window_is_reset_after_the_write_deadline),
        ROW(idle_connections_return_memory),
        ROW(an_old_connection_is_drained),
        ROW(grace_ends_an_old_connection),
        ROW(stopping_lets_requests_finish),
        ROW(a_slow_body_cannot_delay_the_stop),
        ROW(a_deaf_client_cannot_delay_the_stop),
        ROW(a_response_of_little_window_cannot_delay_the_stop),
        ROW(refused_allocations_end_requests_or_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
