/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of a client. What the kernel takes at once goes out in calls of writev, which libuv
 * cuts at IOV_MAX parts; the rest is libuv's to send, and holds references to its bytes. Runs on
 * its owner's lane. */
#include "src/net/client/client_socket.h"

#include "src/base/buffer.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/net/client/client_socket_state.h"
#include "src/net/socket/endpoint.h"
#include "src/net/tls/tls_channel.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

/* Reads of all sockets of a thread end in one buffer: each read is used up before the next. */
enum { READ_BYTES = 16 * 1024, WRITE_PARTS_MAX = 1024, WORDS_MAX = 256 };
static _Thread_local char read_buffer[READ_BYTES];

/* Parts that libuv has yet to write. */
struct waiting_write {
    uv_write_t request;
    struct client_socket *socket;
    size_t owners_count;
    struct buffer **owners;
    uint8_t copied[]; /* the bytes of parts without owner */
};

void client_socket_dial_words(const struct sockaddr *address, int error, char *text, size_t size)
{
    assert(address != NULL);
    assert(error < 0);
    bool is_late = error == UV_ETIMEDOUT;
    const char *step = is_late ? "" : "connect: ";
    const char *words = is_late ? "i/o timeout" : uv_strerror(error);
    char where[ENDPOINT_TEXT_MAX];
    if (address->sa_family == AF_UNIX) {
        snprintf(text, size, "dial unix %s: %s%s", ((const struct sockaddr_un *)address)->sun_path,
                 step, words);
        return;
    }
    endpoint_print(address, where);
    snprintf(text, size, "dial tcp %s: %s%s", where, step, words);
}

void client_socket_end(struct client_socket *socket, const char *reason)
{
    assert(reason != NULL);
    assert(socket->state != SOCKET_CLOSING);
    if (socket->state == SOCKET_ENDED)
        return;
    socket->state = SOCKET_ENDED;
    lane_timer_stop(socket->lane, &socket->timer);
    socket->events->on_end(socket->owner, reason);
}

static void end_dialling(struct client_socket *socket, int error)
{
    assert(socket->state == SOCKET_CONNECTING);
    char words[WORDS_MAX];
    client_socket_dial_words((const struct sockaddr *)&socket->address, error, words,
                             sizeof(words));
    client_socket_end(socket, words);
}

static void on_timer(struct timer *timer, void *arg)
{
    struct client_socket *socket = arg;
    assert(timer == &socket->timer);
    (void)timer;
    if (socket->state == SOCKET_SHAKING)
        client_secure_give_up(socket, "context deadline exceeded");
    else
        end_dialling(socket, socket->connect_error != 0 ? socket->connect_error : UV_ETIMEDOUT);
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    assert(ret_buffer != NULL);
    (void)handle;
    (void)suggested;
    *ret_buffer = uv_buf_init(read_buffer, sizeof(read_buffer));
}

static void end_reading(struct client_socket *socket, const char *reason)
{
    if (socket->state == SOCKET_SHAKING)
        client_secure_give_up(socket, reason);
    else
        client_socket_end(socket, reason);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct client_socket *socket = stream->data;
    assert(socket->events != NULL);
    bool is_open = socket->state == SOCKET_OPEN || socket->state == SOCKET_SHAKING;
    if (!is_open || size == 0)
        return;
    if (size < 0)
        end_reading(socket, size == UV_EOF ? "EOF" : uv_strerror((int)size));
    else if (socket->channel != NULL)
        client_secure_receive(socket, slice_of(buffer->base, (size_t)size));
    else
        socket->events->on_bytes(socket->owner, (const uint8_t *)buffer->base, (size_t)size);
}

void client_socket_opened(struct client_socket *socket)
{
    assert(socket->state < SOCKET_OPEN);
    lane_timer_stop(socket->lane, &socket->timer);
    socket->state = SOCKET_OPEN;
    socket->events->on_connected(socket->owner);
}

static void on_connect(uv_connect_t *request, int status)
{
    struct client_socket *socket = request->data;
    assert(request == &socket->connect);
    if (socket->state != SOCKET_CONNECTING)
        return;
    if (status == 0)
        status = uv_read_start(&socket->stream, on_allocate, on_read);
    if (status != 0)
        end_dialling(socket, status);
    else if (socket->tls != NULL)
        client_secure_begin(socket);
    else
        client_socket_opened(socket);
}

static void on_closed(uv_handle_t *handle)
{
    struct client_socket *socket = handle->data;
    assert(socket->state == SOCKET_CLOSING);
    socket->events->on_closed(socket->owner);
    tls_channel_destroy(socket->channel);
    mem_free(socket);
}

static void waiting_free(struct waiting_write *waiting)
{
    assert(waiting->owners != NULL);
    for (size_t i = 0; i < waiting->owners_count; i++)
        buffer_unref(waiting->owners[i]);
    mem_free((void *)waiting->owners);
    mem_free(waiting);
}

static void on_waiting_written(uv_write_t *request, int status)
{
    struct waiting_write *waiting = (struct waiting_write *)request;
    struct client_socket *socket = waiting->socket;
    assert(socket != NULL);
    waiting_free(waiting);
    socket->is_writing = false;
    if (socket->state != SOCKET_OPEN && socket->state != SOCKET_SHAKING)
        return;
    if (status != 0)
        end_reading(socket, uv_strerror(status));
    else if ((socket->channel == NULL || client_secure_flush(socket)) &&
             socket->has_waiting_writer) {
        socket->has_waiting_writer = false;
        socket->events->on_drained(socket->owner);
    }
}

static size_t ownerless_bytes(const struct batch_part *parts, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        if (parts[i].owner == NULL)
            bytes += parts[i].bytes.size;
    return bytes;
}

/* Leaves the parts to libuv, less the first `skip` bytes. A socket that refuses them is told by the
 * reading side, which first sees what the peer had to say. */
static void write_later(struct client_socket *socket, const struct batch_part *parts, size_t count,
                        size_t skip)
{
    assert(count > 0 && count <= WRITE_PARTS_MAX);
    struct waiting_write *waiting = mem_alloc(sizeof(*waiting) + ownerless_bytes(parts, count));
    uv_buf_t *buffers = mem_alloc(count * sizeof(*buffers));
    size_t copied = 0;
    waiting->socket = socket;
    waiting->owners_count = 0;
    waiting->owners = (struct buffer **)mem_alloc(count * sizeof(struct buffer *));
    for (size_t i = 0; i < count; i++) {
        struct slice bytes = slice_of(parts[i].bytes.data + skip, parts[i].bytes.size - skip);
        skip = 0;
        if (parts[i].owner != NULL) {
            waiting->owners[waiting->owners_count++] = buffer_ref(parts[i].owner);
        } else {
            memcpy(waiting->copied + copied, bytes.data, bytes.size);
            bytes.data = waiting->copied + copied;
            copied += bytes.size;
        }
        buffers[i] = uv_buf_init((char *)(uintptr_t)bytes.data, (unsigned)bytes.size);
    }
    int error =
        uv_write(&waiting->request, &socket->stream, buffers, (unsigned)count, on_waiting_written);
    mem_free(buffers);
    if (error != 0)
        waiting_free(waiting);
    socket->is_writing = true;
}

/* How many bytes the kernel takes now, or a libuv error. */
static int write_now(struct client_socket *socket, const struct batch_part *parts, size_t count)
{
    assert(count > 0 && count <= WRITE_PARTS_MAX);
    uv_buf_t *buffers = mem_alloc(count * sizeof(*buffers));
    for (size_t i = 0; i < count; i++)
        /* libuv's buffers serve reading too, hence no const; writing leaves the bytes alone. */
        buffers[i] =
            uv_buf_init((char *)(uintptr_t)parts[i].bytes.data, (unsigned)parts[i].bytes.size);
    int written = uv_try_write(&socket->stream, buffers, (unsigned)count);
    mem_free(buffers);
    return written == UV_EAGAIN ? 0 : written;
}

bool client_socket_send(struct client_socket *socket, const struct batch_part *parts, size_t count)
{
    assert(parts != NULL);
    assert(!socket->is_writing);
    int written = write_now(socket, parts, count);
    if (written < 0)
        return false;
    size_t skip = (size_t)written;
    while (count > 0 && skip >= parts->bytes.size) {
        skip -= parts->bytes.size;
        parts++;
        count--;
    }
    if (count > 0)
        write_later(socket, parts, count, skip);
    return count == 0;
}

bool client_socket_write(struct client_socket *socket, const struct batch_part *parts, size_t count)
{
    assert(count > 0 && count <= WRITE_PARTS_MAX);
    assert(!socket->has_waiting_writer);
    if (socket->state != SOCKET_OPEN)
        return false;
    bool is_sent = socket->channel != NULL ? client_secure_write(socket, parts, count)
                                           : client_socket_send(socket, parts, count);
    socket->has_waiting_writer = !is_sent;
    return is_sent;
}

static void copy_address(struct client_socket *socket, const struct sockaddr *address)
{
    size_t size = address->sa_family == AF_UNIX    ? sizeof(struct sockaddr_un)
                  : address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                   : sizeof(struct sockaddr_in);
    assert(size <= sizeof(socket->address));
    memcpy(&socket->address, address, size);
}

static int connect_unix(struct client_socket *socket)
{
    int error = uv_pipe_init(lane_loop(socket->lane), &socket->pipe, 0);
    assert(error == 0);
    (void)error;
    uv_pipe_connect(&socket->connect, &socket->pipe,
                    ((const struct sockaddr_un *)&socket->address)->sun_path, on_connect);
    return 0;
}

static int connect_tcp(struct client_socket *socket)
{
    int error = uv_tcp_init(lane_loop(socket->lane), &socket->tcp);
    assert(error == 0);
    (void)uv_tcp_nodelay(&socket->tcp, 1);
    error = uv_tcp_connect(&socket->connect, &socket->tcp,
                           (const struct sockaddr *)&socket->address, on_connect);
    return error;
}

struct client_socket *client_socket_create(const struct client_socket_settings *settings)
{
    assert(lane_is_current(settings->lane));
    assert(settings->address != NULL);
    assert(settings->events != NULL);
    struct client_socket *socket = mem_zalloc(sizeof(*socket));
    socket->lane = settings->lane;
    socket->events = settings->events;
    socket->owner = settings->owner;
    socket->tls = settings->tls;
    socket->server_name = settings->server_name;
    socket->connect.data = socket;
    copy_address(socket, settings->address);
    timer_init(&socket->timer, on_timer, socket);
    socket->connect_error =
        settings->address->sa_family == AF_UNIX ? connect_unix(socket) : connect_tcp(socket);
    socket->handle.data = socket;
    /* What is refused at once comes to on_end through the timer: one path for the owner. */
    lane_timer_start(socket->lane, &socket->timer,
                     socket->connect_error == 0 ? settings->connect_timeout_ns : 0);
    return socket;
}

void client_socket_close(struct client_socket *socket)
{
    assert(socket != NULL);
    if (socket->state == SOCKET_CLOSING)
        return;
    client_secure_close(socket);
    socket->state = SOCKET_CLOSING;
    lane_timer_stop(socket->lane, &socket->timer);
    uv_close(&socket->handle, on_closed);
}
