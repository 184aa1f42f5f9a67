/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 server and the gRPC layer behind it, over a socket pair. The first byte says what the
 * handler does and how the rest is cut; then the client disconnects at any point. */
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/random.h"
#include "src/net/server/grpc.h"
#include "src/net/server/http_connection.h"
#include "src/net/server/http_server.h"

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

enum { HELD_MAX = HTTP2_STREAMS_MAX, BODY_MAX = 10000, TURNS = 4, CLOSING_TURNS_MAX = 100 };

/* CUTS_GROW: each piece is twice as large as the one before. */
enum {
    HOLDS = 1,
    HOLDS_EARLY = 2,
    CUTS_SMALL = 4,
    PASSES_TIME = 8,
    CUTS_LARGE = 16,
    CUTS_GROW = 32,
};

static struct lane *lane;
static struct budget budget;
static struct http_server *server;
static unsigned mode;
static struct http_request *held[HELD_MAX];
static size_t held_count;
static unsigned begun;
static unsigned ended;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void respond(struct http_request *request)
{
    struct grpc_call call = {.timeout_ns = GRPC_NO_TIMEOUT};
    grpc_respond(request, &call, slice_of_text("reply"));
}

static void hold(struct http_request *request)
{
    assert(held_count < HELD_MAX);
    held[held_count++] = request;
}

static uint64_t on_peek(struct http_request *request, const uint8_t *data, void *arg)
{
    char text[GRPC_TEXT_MAX];
    uint64_t size = grpc_body_size(data, BODY_MAX - GRPC_PREFIX_BYTES, text);
    (void)arg;
    if (size == 0)
        respond(request);
    return size;
}

static void on_request(struct http_request *request, void *arg)
{
    struct grpc_call call;
    struct slice service;
    struct slice method;
    (void)arg;
    begun++;
    if ((mode & HOLDS_EARLY) != 0)
        hold(request);
    else if (grpc_accept(request, &call) && grpc_split_path(request, &call, &service, &method))
        http_request_read_body(request, &(struct http_body_plan){
                                            .max_bytes = BODY_MAX,
                                            .peek_bytes = GRPC_PREFIX_BYTES,
                                            .on_peek = on_peek,
                                        });
}

static void on_body(struct http_request *request, void *arg)
{
    struct grpc_call call = {.codec = CODEC_GZIP};
    struct grpc_message message;
    (void)arg;
    assert(http_request_body(request)->size <= BODY_MAX);
    if (!grpc_unframe(request, &call, buffer_slice(http_request_body(request)), &message))
        grpc_respond_status(request, &call, &message.refusal);
    else if ((mode & HOLDS) != 0)
        hold(request);
    else
        respond(request);
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    (void)failure;
    (void)arg;
    respond(request);
}

static void on_end(struct http_request *request, void *arg)
{
    (void)request;
    (void)arg;
    ended++;
}

static const struct http_handler handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = on_body_failed,
    .on_end = on_end,
};

static void prepare(void)
{
    clock_fake_start(NS_PER_S, NS_PER_S);
    random_fix(0.5);
    budget_init(&budget, MIB);
    lane = lane_create(0);
    assert(lane != NULL);
    server = http_server_create(&(struct http_server_settings){
        .lane = lane, .budget = &budget, .has_http2 = true, .handler = &handler});
}

static void turn(int fd)
{
    uint8_t replies[4096];
    for (unsigned i = 0; i < TURNS; i++) {
        lane_turn(lane);
        while (read(fd, replies, sizeof(replies)) > 0)
            continue;
    }
}

static void send_pieces(int fd, const uint8_t *data, size_t size)
{
    size_t piece = (mode & CUTS_SMALL) != 0 ? 7 : (mode & CUTS_LARGE) != 0 ? 3000 : size;
    for (size_t at = 0; at < size;) {
        size_t part = size - at < piece ? size - at : piece;
        if (send(fd, data + at, part, MSG_NOSIGNAL) != (ssize_t)part)
            return;
        at += part;
        if ((mode & CUTS_GROW) != 0)
            piece *= 2;
        turn(fd);
        if ((mode & PASSES_TIME) != 0)
            clock_fake_advance(NS_PER_S);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int pair[2];
    if (size == 0)
        return 0;
    if (lane == NULL)
        prepare();
    mode = data[0];
    begun = ended = 0;
    int failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
    assert(failed == 0);
    server->member.adopt(server, pair[0], &(struct sockaddr){.sa_family = AF_UNIX});
    (void)send(pair[1], NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN, MSG_NOSIGNAL);
    turn(pair[1]);
    send_pieces(pair[1], data + 1, size - 1);
    if ((mode & PASSES_TIME) != 0)
        while (held_count > 0)
            respond(held[--held_count]);
    turn(pair[1]);
    close(pair[1]);
    for (unsigned i = 0; i < CLOSING_TURNS_MAX && http_server_figures(server).connections > 0; i++)
        lane_turn(lane);
    assert(http_server_figures(server).connections == 0);
    while (held_count > 0)
        respond(held[--held_count]);
    assert(begun == ended);
    assert(budget_used(&budget) == 0);
    return 0;
}
