/* SPDX-License-Identifier: Apache-2.0 */
/* The back-end. Requests are not understood beyond where they end; responses are random. */
#include "tests/attack/sink.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/base/slice.h"
#include "tests/attack/mutate.h"

enum {
    FRAME_HEAD_BYTES = 9,
    INPUT_BYTES_MAX = 64 << 20,
    DATA = 0,
    HEADERS = 1,
    SETTINGS = 4,
    PING = 6,
    WINDOW_UPDATE = 8,
    END_STREAM = 1,
    ACK = 1,
};

struct sink_connection {
    int fd; /* -1: free */
    bool is_http2;
    bool is_silent; /* sends no more responses */
    bool closes;    /* when all is written */
    struct bytes_out in;
    size_t taken; /* of `in`; it goes at the end of each turn */
    struct bytes_out out;
    size_t written;
};

struct sink {
    int listener;
    uint16_t port;
    unsigned hostile;
    struct world world;
    struct sink_connection connections[SINK_CONNECTIONS_MAX];
};

static uint64_t below(struct sink *sink, uint64_t bound)
{
    return random_below(&sink->world.random, bound);
}

static bool is_hostile(struct sink *sink)
{
    return below(sink, 16) < sink->hostile;
}

struct sink *sink_create(void)
{
    struct sink *sink = mem_zalloc(sizeof(*sink));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    sink->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert(sink->listener >= 0);
    if (bind(sink->listener, (struct sockaddr *)&address, size) != 0 ||
        listen(sink->listener, SINK_CONNECTIONS_MAX) != 0 ||
        getsockname(sink->listener, (struct sockaddr *)&address, &size) != 0)
        abort();
    sink->port = ntohs(address.sin_port);
    for (size_t i = 0; i < SINK_CONNECTIONS_MAX; i++)
        sink->connections[i].fd = -1;
    return sink;
}

static void drop(struct sink_connection *connection)
{
    if (connection->fd >= 0)
        close(connection->fd);
    bytes_fini(&connection->in);
    bytes_fini(&connection->out);
    *connection = (struct sink_connection){.fd = -1};
}

void sink_begin(struct sink *sink, uint64_t seed, unsigned hostile)
{
    for (size_t i = 0; i < SINK_CONNECTIONS_MAX; i++)
        drop(&sink->connections[i]);
    sink->world.random.state = seed;
    sink->hostile = hostile;
}

void sink_destroy(struct sink *sink)
{
    sink_begin(sink, 0, 0);
    close(sink->listener);
    mem_free(sink);
}

uint16_t sink_port(const struct sink *sink)
{
    return sink->port;
}

static void put_number(struct bytes_out *out, uint64_t number, unsigned size)
{
    for (unsigned i = size; i-- > 0;)
        bytes_add(out, &(uint8_t){(uint8_t)(number >> 8 * i)}, 1);
}

static void put_frame(struct bytes_out *out, unsigned type, unsigned flags, uint32_t stream,
                      const void *payload, size_t size)
{
    put_number(out, size, 3);
    put_number(out, type, 1);
    put_number(out, flags, 1);
    put_number(out, stream, 4);
    bytes_add(out, payload, size);
}

static void put_window_update(struct bytes_out *out, uint32_t bytes)
{
    const uint8_t payload[] = {(uint8_t)(bytes >> 24), (uint8_t)(bytes >> 16),
                               (uint8_t)(bytes >> 8), (uint8_t)bytes};
    put_frame(out, WINDOW_UPDATE, 0, 0, payload, sizeof(payload));
}

static void put_field(struct bytes_out *block, const char *name, const char *value)
{
    put_number(block, 0, 1);
    put_number(block, strlen(name), 1);
    bytes_add_text(block, name);
    put_number(block, strlen(value), 1);
    bytes_add_text(block, value);
}

/* A partial success: field 1 of the response, with a count and a message. */
static const uint8_t partial[] = {0x0a, 0x07, 0x08, 0x02, 0x12, 0x03, 'b', 'a', 'd'};
static const uint8_t partial_odd[] = {0x0a, 0x0b, 0x08, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0x01};

static void respond_http2(struct sink *sink, struct sink_connection *connection, uint32_t stream)
{
    static const char *const statuses[] = {"0",  "14", "8", "13", "3", "4",
                                           "16", "99", "",  "-1", "x"};
    static const uint8_t details[] = "CAgSBGJ1c3k"; /* google.rpc.Status in base64 */
    struct bytes_out block = {.size = 0};
    struct bytes_out *out = &connection->out;
    bool is_bad = is_hostile(sink);
    uint64_t how = is_bad ? below(sink, 10) : 0;
    if (how == 1) {
        connection->is_silent = true;
        return;
    }
    if (how == 2) {
        put_frame(out, 3, 0, stream, (const uint8_t[]){0, 0, 0, (uint8_t)below(sink, 14)}, 4);
        return;
    }
    if (how == 3) {
        put_frame(out, 7, 0, 0, (const uint8_t[]){0, 0, 0, 0, 0, 0, 0, 0}, 8);
        connection->closes = true;
        return;
    }
    put_number(&block, 0x88, 1); /* :status 200 */
    put_field(&block, "content-type", how == 4 ? "text/html" : "application/grpc");
    put_frame(out, HEADERS, 4, stream, block.data, block.size);
    bytes_clear(&block);
    if (how == 5)
        put_frame(out, DATA, 0, stream, "\1\xff\xff\xff\xffgarbage", 12);
    else if (how == 6) {
        put_number(&block, sizeof(partial), 5);
        bytes_add(&block, partial, sizeof(partial));
        put_frame(out, DATA, 0, stream, block.data, block.size);
        bytes_clear(&block);
    } else
        put_frame(out, DATA, 0, stream, "\0\0\0\0\0", 5);
    put_field(&block, "grpc-status", statuses[is_bad ? below(sink, 11) : 0]);
    if (how == 7)
        put_field(&block, "grpc-message", "%zz%00%e2%28");
    if (how == 8)
        put_field(&block, "grpc-status-details-bin", (const char *)details);
    put_frame(out, HEADERS, 5, stream, block.data, block.size);
    bytes_fini(&block);
    if (how == 9)
        mutate_bytes(&sink->world, out, connection->written);
}

#define LATE "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n"

static void respond_http1(struct sink *sink, struct sink_connection *connection)
{
    static const char *const responses[] = {
        "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 429 Slow\r\nRetry-After: 99999999999999999999\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n" LATE "\r\n",
        "HTTP/1.1 400 Bad\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nno\x00\x1b[31m!",
        "HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.1 307 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 Moved\r\nLocation: http://[::::/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 13\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{\"a\":",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 404 Gone\r\nContent-Length: 18446744073709551615\r\n\r\n",
        "HTTP/1.1 204 None\r\n\r\n",
        "HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n",
        "garbage\r\n\r\n",
        "HTTP/1.1 200",
        "",
    };
    struct bytes_out *out = &connection->out;
    if (!is_hostile(sink)) {
        bytes_add_text(out, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    uint64_t which = below(sink, sizeof(responses) / sizeof(responses[0]) + 4);
    if (which < sizeof(responses) / sizeof(responses[0])) {
        bytes_add_text(out, responses[which]);
        if (which == 8)
            bytes_add(out, partial_odd, sizeof(partial_odd));
        connection->closes = below(sink, 4) == 0;
        return;
    }
    connection->is_silent = which % 3 == 0;
    connection->closes = which % 3 == 1;
    if (which % 3 == 2)
        bytes_add_format(out,
                         "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n"
                         "Content-Length: %zu\r\n\r\n%.*s",
                         sizeof(partial), (int)sizeof(partial), (const char *)partial);
}

/* What came and is not taken yet. */
static struct slice rest_of(const struct sink_connection *connection)
{
    const size_t size = connection->in.size - connection->taken;
    return slice_of(size == 0 ? NULL : connection->in.data + connection->taken, size);
}

/* The end of the first HTTP/1.1 request in `in`, or 0. */
static size_t request_end(struct slice in)
{
    const uint8_t *head_end = in.size == 0 ? NULL : memmem(in.data, in.size, "\r\n\r\n", 4);
    if (head_end == NULL)
        return 0;
    size_t head = (size_t)(head_end - in.data) + 4;
    char text[4096];
    size_t kept = head < sizeof(text) - 1 ? head : sizeof(text) - 1;
    memcpy(text, in.data, kept);
    text[kept] = 0;
    const char *length = strcasestr(text, "\r\ncontent-length:");
    if (length != NULL) {
        size_t size = (size_t)strtoull(length + 17, NULL, 10);
        return in.size - head >= size ? head + size : 0;
    }
    if (strcasestr(text, "\r\ntransfer-encoding:") == NULL)
        return head;
    const uint8_t *end = memmem(head_end, in.size - head + 4, "\r\n0\r\n\r\n", 7);
    return end == NULL ? 0 : (size_t)(end - in.data) + 7;
}

static void take(struct sink_connection *connection, size_t size)
{
    assert(size > 0 && size <= connection->in.size - connection->taken);
    connection->taken += size;
}

static void drop_taken(struct sink_connection *connection)
{
    struct bytes_out *in = &connection->in;
    if (connection->taken == 0)
        return;
    memmove(in->data, in->data + connection->taken, in->size - connection->taken);
    in->size -= connection->taken;
    connection->taken = 0;
}

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

static void greet_http2(struct sink_connection *connection)
{
    struct bytes_out *out = &connection->out;
    connection->is_http2 = true;
    take(connection, sizeof(preface) - 1);
    put_frame(out, SETTINGS, 0, 0, "\0\4\x7f\xff\xff\xff", 6); /* streams' windows never close */
    put_window_update(out, 0x7fff0000);
}

/* Handles one frame; false: there is no whole one. */
static bool read_frame(struct sink *sink, struct sink_connection *connection)
{
    const struct slice in = rest_of(connection);
    if (in.size < FRAME_HEAD_BYTES)
        return false;
    size_t size = (size_t)in.data[0] << 16 | (size_t)in.data[1] << 8 | in.data[2];
    unsigned type = in.data[3];
    unsigned flags = in.data[4];
    uint32_t stream = (uint32_t)in.data[5] << 24 | (uint32_t)in.data[6] << 16 |
                      (uint32_t)in.data[7] << 8 | in.data[8];
    if (in.size - FRAME_HEAD_BYTES < size)
        return false;
    if (type == SETTINGS && (flags & ACK) == 0)
        put_frame(&connection->out, SETTINGS, ACK, 0, "", 0);
    if (type == PING && (flags & ACK) == 0)
        put_frame(&connection->out, PING, ACK, 0, in.data + FRAME_HEAD_BYTES, size);
    if (type == DATA && size > 0) /* a connection's closes after 2 GiB */
        put_window_update(&connection->out, (uint32_t)size);
    if ((type == DATA || type == HEADERS) && (flags & END_STREAM) != 0)
        respond_http2(sink, connection, stream);
    take(connection, FRAME_HEAD_BYTES + size);
    return true;
}

static void understand(struct sink *sink, struct sink_connection *connection)
{
    const struct slice in = rest_of(connection);
    if (connection->is_silent) {
        bytes_clear(&connection->in);
        return;
    }
    if (!connection->is_http2 && in.size >= sizeof(preface) - 1 &&
        memcmp(in.data, preface, sizeof(preface) - 1) == 0)
        greet_http2(connection);
    if (connection->is_http2) {
        while (!connection->is_silent && read_frame(sink, connection))
            continue;
        return;
    }
    for (size_t end; (end = request_end(rest_of(connection))) > 0;) {
        take(connection, end);
        respond_http1(sink, connection);
    }
}

static void turn_connection(struct sink *sink, struct sink_connection *connection, short events)
{
    static uint8_t piece[1 << 16];
    ssize_t got = 0;
    while ((events & (POLLIN | POLLHUP | POLLERR)) != 0 &&
           (got = read(connection->fd, piece, sizeof(piece))) > 0)
        bytes_add(&connection->in, piece, (size_t)got);
    bool has_ended = got == 0 && (events & (POLLIN | POLLHUP | POLLERR)) != 0;
    has_ended |= got < 0 && errno != EAGAIN;
    understand(sink, connection);
    drop_taken(connection);
    struct bytes_out *out = &connection->out;
    if (out->size > connection->written) {
        ssize_t sent = send(connection->fd, out->data + connection->written,
                            out->size - connection->written, MSG_NOSIGNAL);
        connection->written += sent > 0 ? (size_t)sent : 0;
    }
    bool is_written = connection->written == out->size;
    if (is_written) {
        bytes_clear(out);
        connection->written = 0;
    }
    if (has_ended || (connection->closes && is_written) || connection->in.size > INPUT_BYTES_MAX)
        drop(connection);
}

static void accept_one(struct sink *sink)
{
    int fd = accept4(sink->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    for (size_t i = 0; i < SINK_CONNECTIONS_MAX && sink->hostile != SINK_IS_AWAY; i++)
        if (sink->connections[i].fd < 0) {
            sink->connections[i].fd = fd;
            return;
        }
    close(fd);
}

size_t sink_polls(const struct sink *sink, struct pollfd *polls)
{
    size_t count = 0;
    polls[count++] = (struct pollfd){.fd = sink->listener, .events = POLLIN};
    for (size_t i = 0; i < SINK_CONNECTIONS_MAX; i++) {
        const struct sink_connection *connection = &sink->connections[i];
        short events = POLLIN;
        if (connection->out.size > connection->written)
            events |= POLLOUT;
        if (connection->fd >= 0)
            polls[count++] = (struct pollfd){.fd = connection->fd, .events = events};
    }
    return count;
}

void sink_turn(struct sink *sink, const struct pollfd *polls, size_t count)
{
    for (size_t at = 1; at < count; at++)
        for (size_t i = 0; i < SINK_CONNECTIONS_MAX && polls[at].revents != 0; i++)
            if (sink->connections[i].fd == polls[at].fd) {
                turn_connection(sink, &sink->connections[i], polls[at].revents);
                break;
            }
    if ((polls[0].revents & POLLIN) != 0)
        accept_one(sink);
}
