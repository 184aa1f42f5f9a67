/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 connections: the bytes go through a real connection over a socket pair, once whole and
 * once cut as the first bytes of the input say. Both ways must give the same responses, and leave
 * nothing behind. */
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/net/server/http_connection.h"
#include "src/net/server/http_server.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CUTS_MAX = 8,
    INPUT_MAX = 40000,
    OUTPUT_MAX = 256 * 1024,
    BODY_MAX = 16 * 1024,
    BUDGET_BYTES = 1 << 20,
    TURNS_MAX = 1000,
};

struct conversation {
    size_t size;
    uint8_t text[OUTPUT_MAX];
};

static struct lane *lane;
static struct http_server *server;
static struct budget budget;
static unsigned requests;
static unsigned ends;

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* Looks at everything that a handler can see, so that the sanitizer does. */
static size_t weigh(const struct http_request *request)
{
    struct slice name;
    struct slice value;
    size_t weight = http_request_path(request).size + http_request_query(request).size;
    for (size_t i = 0; http_request_header_at(request, i, &name, &value); i++) {
        for (size_t j = 0; j < name.size; j++)
            weight += name.data[j];
        for (size_t j = 0; j < value.size; j++)
            weight += value.data[j];
    }
    return weight;
}

static void respond(struct http_request *request, unsigned status, size_t size)
{
    char text[64];
    int length = snprintf(text, sizeof(text), "%zu %zu", size, weigh(request));
    http_respond(request,
                 &(struct http_response){.status = status, .body = slice_of(text, (size_t)length)});
}

static uint64_t on_peek(struct http_request *request, const uint8_t *data, void *arg)
{
    (void)arg;
    if (data[0] == '!')
        respond(request, 400, data[1]);
    return data[1];
}

static void on_request(struct http_request *request, void *arg)
{
    (void)arg;
    requests++;
    struct http_body_plan plan = {.max_bytes = BODY_MAX};
    if (http_request_query(request).size > 0) {
        plan.peek_bytes = 2;
        plan.on_peek = on_peek;
    }
    if (slice_equal_text(http_request_method(request), "PUT"))
        respond(request, 405, 0);
    else
        http_request_read_body(request, &plan);
}

static void on_body(struct http_request *request, void *arg)
{
    (void)arg;
    respond(request, 200, http_request_body(request)->size);
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    (void)arg;
    respond(request, 400, failure);
}

static void on_end(struct http_request *request, void *arg)
{
    (void)arg;
    require(http_request_method(request).size > 0, "a request without method");
    ends++;
}

static const struct http_handler handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = on_body_failed,
    .on_end = on_end,
};

static void create_server(void)
{
    clock_fake_start(NS_PER_S, NS_PER_S);
    budget_init(&budget, BUDGET_BYTES);
    lane = lane_create(0);
    server = http_server_create(&(struct http_server_settings){
        .lane = lane,
        .budget = &budget,
        .has_http1 = true,
        .has_keep_alive = true,
        .handler = &handler,
    });
}

static void take(int fd, struct conversation *output)
{
    ssize_t count;
    while (output->size < OUTPUT_MAX && (count = recv(fd, output->text + output->size,
                                                      OUTPUT_MAX - output->size, MSG_DONTWAIT)) > 0)
        output->size += (size_t)count;
}

static void turn(int fd, struct conversation *output)
{
    lane_turn(lane);
    take(fd, output);
}

static void send_piece(int fd, const uint8_t *data, size_t size, struct conversation *output)
{
    for (int turns = 0; size > 0 && turns < TURNS_MAX; turns++) {
        ssize_t count = send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count > 0) {
            data += count;
            size -= (size_t)count;
        }
        turn(fd, output);
    }
}

/* cuts: offsets, ascending or not; what lies behind is one piece. */
static void converse(const uint8_t *data, size_t size, const uint16_t *cuts, size_t cuts_count,
                     struct conversation *output)
{
    int pair[2];
    struct sockaddr unspecified = {.sa_family = AF_UNSPEC};
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "no socket pair");
    output->size = 0;
    server->member.adopt(server, pair[0], &unspecified);
    size_t at = 0;
    for (size_t i = 0; i < cuts_count; i++) {
        size_t piece = size - at == 0 ? 0 : cuts[i] % (size - at + 1);
        send_piece(pair[1], data + at, piece, output);
        at += piece;
    }
    send_piece(pair[1], data + at, size - at, output);
    shutdown(pair[1], SHUT_WR);
    for (int i = 0; i < TURNS_MAX && http_server_figures(server).connections > 0; i++)
        turn(pair[1], output);
    take(pair[1], output);
    close(pair[1]);
    require(http_server_figures(server).connections == 0, "a connection stays");
    require(requests == ends, "a request has not ended");
    require(budget_used(&budget) == 0, "budget is not returned");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct conversation whole;
    static struct conversation in_pieces;
    uint16_t cuts[CUTS_MAX];
    if (size < sizeof(cuts) || size > INPUT_MAX)
        return 0;
    if (server == NULL)
        create_server();
    memcpy(cuts, data, sizeof(cuts));
    data += sizeof(cuts);
    size -= sizeof(cuts);
    converse(data, size, cuts, 0, &whole);
    converse(data, size, cuts, CUTS_MAX, &in_pieces);
    require(whole.size == in_pieces.size && memcmp(whole.text, in_pieces.text, whole.size) == 0,
            "the responses depend on the cuts");
    return 0;
}
