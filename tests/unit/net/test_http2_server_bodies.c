/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies over HTTP/2 are whole, wherever their frames were read to: in order, mixed, padded,
 * shorter and longer than announced, cut by the socket anywhere. Over loopback, on a hand-turned
 * lane. */
#include "src/net/server/http_server.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "tests/support/h2_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    FRAME_BYTES = 16384,
    STREAMS_MAX = 400,
    BODY_BYTES_MAX = 1 << 20,
    SIZE_BYTES = 4, /* of a body, which announce it */
    TURNS_MAX = 2000,
    PADDING_MAX = 200,
};

/* What the client sends on a stream. */
struct sending {
    size_t announced;
    size_t size;
    size_t sent;
};

static struct lane *lane;
static struct budget budget;
static struct http_server *server;
static struct h2_peer *peer;
static struct sending sendings[STREAMS_MAX];
static unsigned streams;
static unsigned bodies;
static bool is_stopped;
static size_t read_in_pieces;

/* The one of the C library is this, less the count. */
ssize_t readv(int fd, const struct iovec *rows, int count)
{
    ssize_t size = syscall(SYS_readv, fd, rows, count);
    read_in_pieces += size > 0 ? (size_t)size : 0;
    return size;
}

static uint8_t content_of(size_t stream, size_t at)
{
    const struct sending *sending = &sendings[stream];
    if (at < SIZE_BYTES)
        return (uint8_t)(sending->announced >> (24 - 8 * at));
    return (uint8_t)(at * 131 + (at >> 8) + stream * 29);
}

static uint64_t on_peek(struct http_request *request, const uint8_t *data, void *arg)
{
    (void)request;
    (void)arg;
    return (uint64_t)data[0] << 24 | (uint64_t)data[1] << 16 | (uint64_t)data[2] << 8 | data[3];
}

static void on_request(struct http_request *request, void *arg)
{
    struct http_body_plan plan = {.max_bytes = BODY_BYTES_MAX};
    (void)arg;
    struct slice path = http_request_path(request);
    uintptr_t stream = 0;
    for (size_t i = 2; i < path.size; i++)
        stream = 10 * stream + path.data[i] - '0';
    http_request_set_context(request, (void *)stream);
    if (path.data[1] == 'p') {
        plan.peek_bytes = SIZE_BYTES;
        plan.on_peek = on_peek;
    }
    http_request_read_body(request, &plan);
}

static void on_body(struct http_request *request, void *arg)
{
    size_t stream = (size_t)(uintptr_t)http_request_context(request);
    const struct buffer *body = http_request_body(request);
    (void)arg;
    assert_int_equal(body->size, sendings[stream].size);
    for (size_t i = 0; i < body->size; i++)
        if (body->data[i] != content_of(stream, i))
            fail_msg("stream %zu: byte %zu of %zu is wrong", stream, i, body->size);
    bodies++;
    http_respond(request, &(struct http_response){.status = 204});
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    (void)request;
    (void)arg;
    fail_msg("the body failed: %u", (unsigned)failure);
}

static const struct http_handler handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = on_body_failed,
};

static void on_stopped(void *arg)
{
    (void)arg;
    is_stopped = true;
}

static int set_up(void **state)
{
    struct error error;
    (void)state;
    lane = lane_create(0);
    budget_init(&budget, 64 * MIB);
    server = http_server_create(&(struct http_server_settings){
        .lane = lane, .budget = &budget, .has_http2 = true, .handler = &handler});
    assert_true(http_server_listen(&server, 1, "tcp", "127.0.0.1:0", &error));
    peer = h2_peer_connect_raw(http_server_address(server));
    h2_peer_greet(peer);
    /* The server's windows count once its SETTINGS are acknowledged. */
    uint32_t size;
    uint32_t id;
    for (unsigned i = 0; i < TURNS_MAX; i++) {
        if (h2_peer_find_frame(peer, NGHTTP2_SETTINGS, &size, &id) != NULL)
            break;
        h2_peer_turn(peer);
        lane_turn(lane);
    }
    h2_peer_frame(peer, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
    streams = bodies = 0;
    is_stopped = false;
    read_in_pieces = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    h2_peer_close(peer);
    http_server_stop(server, on_stopped, NULL);
    for (unsigned i = 0; i < TURNS_MAX && !is_stopped; i++)
        lane_turn(lane);
    assert_true(is_stopped);
    http_server_destroy(server);
    assert_int_equal(budget_used(&budget), 0);
    lane_destroy(lane);
    budget_fini(&budget);
    return 0;
}

static uint32_t id_of(size_t stream)
{
    return (uint32_t)(2 * stream + 1);
}

/* POST with the path "/<kind><stream>": of kind p announces its size, of kind o does not. */
static size_t open_stream(char kind, size_t announced, size_t size)
{
    uint8_t block[32] = {0x83, 0x86, 0x01, 1, 'h', 0x04}; /* POST, http, :authority, :path */
    size_t stream = streams++;
    assert_true(stream < STREAMS_MAX);
    sendings[stream] = (struct sending){.announced = announced, .size = size};
    int path = snprintf((char *)block + 7, sizeof(block) - 7, "/%c%zu", kind, stream);
    block[6] = (uint8_t)path;
    h2_peer_frame(peer, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id_of(stream), block,
                  7 + (size_t)path);
    return stream;
}

/* One DATA frame of the stream, the last one with END_STREAM. */
static void send_frame(size_t stream, size_t size, size_t padding)
{
    uint8_t content[1 + FRAME_BYTES + PADDING_MAX] = {(uint8_t)padding};
    struct sending *sending = &sendings[stream];
    size_t at = padding > 0 ? 1 : 0;
    size = size < sending->size - sending->sent ? size : sending->size - sending->sent;
    for (size_t i = 0; i < size; i++)
        content[at + i] = content_of(stream, sending->sent + i);
    sending->sent += size;
    memset(content + at + size, 0, padding);
    unsigned flags = sending->sent == sending->size ? NGHTTP2_FLAG_END_STREAM : 0;
    h2_peer_frame(peer, NGHTTP2_DATA, flags | (padding > 0 ? NGHTTP2_FLAG_PADDED : 0),
                  id_of(stream), content, at + size + padding);
}

static bool is_sent(size_t stream)
{
    return sendings[stream].sent == sendings[stream].size;
}

static void turn_until(unsigned wanted)
{
    for (unsigned i = 0; i < TURNS_MAX && bodies < wanted; i++) {
        h2_peer_turn(peer);
        lane_turn(lane);
    }
    assert_int_equal(bodies, wanted);
}

/* All that the client has to send is read, but for the last bytes. */
static void turn_but(size_t kept)
{
    uint8_t rest[FRAME_BYTES];
    assert_in_range(kept, 1, sizeof(rest));
    assert_in_range(peer->raw_output_size, kept, SIZE_MAX);
    peer->raw_output_size -= kept;
    memcpy(rest, peer->raw_output + peer->raw_output_size, kept);
    for (unsigned i = 0; i < TURNS_MAX && peer->raw_output_size > 0; i++) {
        h2_peer_turn(peer);
        lane_turn(lane);
    }
    assert_int_equal(peer->raw_output_size, 0);
    lane_turn(lane);
    h2_peer_write(peer, rest, kept);
}

static void frames_in_a_row_are_read_into_their_body(void **state)
{
    enum { SIZE = 600000, BODIES = 8 };
    (void)state;
    for (unsigned i = 0; i < BODIES; i++) {
        size_t stream = open_stream('p', SIZE, SIZE);
        while (!is_sent(stream))
            send_frame(stream, FRAME_BYTES, 0);
    }
    turn_until(BODIES);
    assert_in_range(read_in_pieces, BODIES * SIZE / 2, BODIES * (SIZE + FRAME_BYTES));
}

static void small_bodies_are_read_in_one_piece(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        size_t stream = open_stream('p', 3000, 3000);
        send_frame(stream, FRAME_BYTES, 0);
    }
    turn_until(50);
    assert_int_equal(read_in_pieces, 0);
}

/* Two bodies take turns: what is expected of one never comes. */
static void frames_that_alternate_are_put_right(void **state)
{
    enum { SIZE = 400000 };
    (void)state;
    size_t calm = open_stream('p', SIZE, SIZE);
    while (!is_sent(calm))
        send_frame(calm, FRAME_BYTES, 0);
    size_t first = open_stream('p', SIZE, SIZE);
    size_t second = open_stream('p', SIZE, SIZE);
    while (!is_sent(first)) {
        send_frame(first, FRAME_BYTES, 0);
        send_frame(second, FRAME_BYTES, 0);
    }
    turn_until(3);
}

static void bodies_that_break_their_word_are_whole(void **state)
{
    enum { LONG = 500000, SHORT = 8 * FRAME_BYTES };
    static const size_t sizes[][2] = {{LONG, SHORT}, {SHORT, LONG}, {LONG, LONG}};
    (void)state;
    for (unsigned i = 0; i < 3 * 3; i++) {
        size_t stream = open_stream('p', sizes[i % 3][0], sizes[i % 3][1]);
        while (!is_sent(stream))
            send_frame(stream, FRAME_BYTES, 0);
    }
    turn_until(9);
}

/* Behind that frame nothing is expected: the body has gone, and its room with it. */
static void nothing_is_read_into_a_body_that_ends(void **state)
{
    (void)state;
    size_t first = open_stream('p', 500000, 3 * FRAME_BYTES);
    while (!is_sent(first))
        send_frame(first, FRAME_BYTES, 0);
    turn_but(FRAME_BYTES / 2);
    size_t second = open_stream('p', 6 * FRAME_BYTES, 6 * FRAME_BYTES);
    while (!is_sent(second))
        send_frame(second, FRAME_BYTES, 0);
    turn_until(2);
}

static unsigned random_below(unsigned limit)
{
    static uint32_t seed = 1;
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % limit;
}

/* Mostly full ones, as clients send them. */
static void send_random_frame(size_t stream)
{
    bool is_odd = random_below(12) == 0;
    size_t padding = random_below(40) == 0 ? 1 + random_below(PADDING_MAX) : 0;
    size_t size = is_odd ? random_below(FRAME_BYTES - PADDING_MAX) : FRAME_BYTES;
    if (padding > 0 && size + padding >= FRAME_BYTES)
        size = FRAME_BYTES - padding - 1;
    send_frame(stream, size, padding);
    if (random_below(30) == 0)
        h2_peer_frame(peer, NGHTTP2_PING, 0, 0, "12345678", 8);
}

static size_t open_random_stream(void)
{
    size_t size = 1 + random_below(random_below(2) == 0 ? 3000 : 300000);
    size_t announced = random_below(10) == 0 ? SIZE_BYTES + random_below(300000) : size;
    return open_stream(random_below(4) == 0 ? 'o' : 'p', announced, size);
}

/* Up to three streams at a time; mostly the one of the frame before goes on. */
static void any_mix_of_frames_arrives_whole(void **state)
{
    size_t open[3] = {open_random_stream(), open_random_stream(), open_random_stream()};
    (void)state;
    for (size_t which = 0; streams < STREAMS_MAX - 3;) {
        which = random_below(20) == 0 ? random_below(3) : which;
        send_random_frame(open[which]);
        if (is_sent(open[which]))
            open[which] = open_random_stream();
        if (random_below(4) == 0)
            h2_peer_turn(peer);
        if (random_below(3) == 0)
            lane_turn(lane);
    }
    for (size_t i = 0; i < 3; i++)
        while (!is_sent(open[i]))
            send_random_frame(open[i]);
    turn_until(streams);
    assert_in_range(read_in_pieces, 1 << 20, SIZE_MAX);
}

static void a_client_that_leaves_in_a_body_takes_it_along(void **state)
{
    (void)state;
    size_t stream = open_stream('p', 600000, 600000);
    for (unsigned i = 0; i < 20; i++)
        send_frame(stream, FRAME_BYTES, 0);
    for (unsigned i = 0; i < 20; i++) {
        h2_peer_turn(peer);
        lane_turn(lane);
    }
    assert_int_equal(bodies, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frames_in_a_row_are_read_into_their_body, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(small_bodies_are_read_in_one_piece, set_up, tear_down),
        cmocka_unit_test_setup_teardown(frames_that_alternate_are_put_right, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bodies_that_break_their_word_are_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_read_into_a_body_that_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(any_mix_of_frames_arrives_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_leaves_in_a_body_takes_it_along, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
