/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of a client, and the TLS in front of it. What the kernel takes at once is written with
 * writev, which libuv cuts at IOV_MAX parts; libuv writes the rest, and holds references to its
 * bytes. With TLS, ciphertext waits in the channel while the socket takes no more. On the owner's
 * lane. */
#include "src/net/client/client_socket.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/net/socket/endpoint.h"
#include "src/net/socket/socket_part.h"
#include "src/net/tls/tls_channel.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include <uv.h>

enum {
    READ_BYTES = 16 * 1024,
    RECORD_BYTES = 16 * 1024, /* the largest record of TLS */
    WRITE_PARTS_MAX = 1024,
    ERROR_BYTES_MAX = 512,
    RECORD_ALERT = 21,
    RECORD_HANDSHAKE = 22,
};

/* Shared by all sockets of a thread: each read is processed before the next. */
static _Thread_local char read_buffer[READ_BYTES];

enum client_socket_state {
    SOCKET_CONNECTING,
    SOCKET_HANDSHAKE, /* of TLS */
    SOCKET_OPEN,
    SOCKET_ENDED, /* on_end was called */
    SOCKET_CLOSING,
};

struct client_socket {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    };
    struct lane *lane;
    struct budget *budget; /* NULL: none */
    const struct client_socket_events *events;
    void *owner;
    enum client_socket_state state;
    uv_connect_t connect;
    int connect_error; /* found at once, reported later */
    struct sockaddr_storage address;
    struct timer timer;      /* of connecting and the handshake */
    bool is_writing;         /* libuv has waiting bytes */
    bool has_waiting_writer; /* on_drained is due */
    struct tls_context *tls; /* NULL: cleartext */
    const char *server_name;
    struct tls_channel *channel;
    struct lane_job tls_job; /* goes on with input that the channel has kept */
    bool has_heard;          /* a byte of the handshake was received */
};

/* Parts that libuv will write. */
struct waiting_write {
    uv_write_t request;
    struct client_socket *socket;
    struct budget *budget; /* charged for what is copied */
    size_t copied_size;
    size_t owners_count;
    struct buffer **owners;
    uint8_t copied[]; /* bytes of parts without owner */
};

void client_socket_dial_error(const struct sockaddr *address, int error, char *text, size_t size)
{
    assert(error < 0);
    bool is_late = error == UV_ETIMEDOUT;
    const char *step = is_late ? "" : "connect: ";
    const char *reason = is_late ? "i/o timeout" : uv_strerror(error);
    char where[ENDPOINT_TEXT_MAX];
    if (address->sa_family == AF_UNIX) {
        snprintf(text, size, "dial unix %s: %s%s", ((const struct sockaddr_un *)address)->sun_path,
                 step, reason);
        return;
    }
    endpoint_print(address, where);
    snprintf(text, size, "dial tcp %s: %s%s", where, step, reason);
}

static void socket_end(struct client_socket *socket, const char *reason)
{
    assert(socket->state != SOCKET_CLOSING);
    if (socket->state == SOCKET_ENDED)
        return;
    socket->state = SOCKET_ENDED;
    lane_timer_stop(socket->lane, &socket->timer);
    socket->events->on_end(socket->owner, reason);
}

static void socket_opened(struct client_socket *socket)
{
    assert(socket->state < SOCKET_OPEN);
    lane_timer_stop(socket->lane, &socket->timer);
    socket->state = SOCKET_OPEN;
    socket->events->on_connected(socket->owner);
}

static void waiting_free(struct waiting_write *waiting)
{
    for (size_t i = 0; i < waiting->owners_count; i++)
        buffer_unref(waiting->owners[i]);
    mem_free((void *)waiting->owners);
    if (waiting->budget != NULL)
        budget_return(waiting->budget, waiting->copied_size);
    mem_free(waiting);
}

static void on_waiting_written(uv_write_t *request, int status);

static bool send_parts(struct client_socket *socket, const struct batch_part *parts, size_t count)
{
    assert(!socket->is_writing);
    assert(count > 0 && count <= WRITE_PARTS_MAX);
    uv_buf_t *buffers = mem_alloc(count * sizeof(*buffers));
    for (size_t i = 0; i < count; i++)
        buffers[i] = socket_part(parts[i].bytes.data, parts[i].bytes.size);
    int written = uv_try_write(&socket->stream, buffers, (unsigned)count);
    mem_free(buffers);
    if (written < 0 && written != UV_EAGAIN)
        return false;
    size_t skip = written > 0 ? (size_t)written : 0;
    while (count > 0 && skip >= parts->bytes.size) {
        skip -= parts->bytes.size;
        parts++;
        count--;
    }
    if (count > 0) {
        /* The rest is libuv's. Errors are left to the reading side, which first gets what the peer
         * has sent. */
        size_t ownerless = 0;
        for (size_t i = 0; i < count; i++)
            ownerless += parts[i].owner == NULL ? parts[i].bytes.size : 0;
        /* Beyond the limit if need be: it is what makes room again. */
        if (socket->budget != NULL)
            budget_take(socket->budget, ownerless);
        struct waiting_write *waiting = mem_alloc(sizeof(*waiting) + ownerless);
        waiting->budget = socket->budget;
        waiting->copied_size = ownerless;
        buffers = mem_alloc(count * sizeof(*buffers));
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
            buffers[i] = socket_part(bytes.data, bytes.size);
        }
        int error = uv_write(&waiting->request, &socket->stream, buffers, (unsigned)count,
                             on_waiting_written);
        mem_free(buffers);
        if (error != 0)
            waiting_free(waiting);
        socket->is_writing = true;
    }
    return count == 0;
}

static void fail_handshake(struct client_socket *socket, const char *reason, const char *advice)
{
    char message[ERROR_BYTES_MAX];
    assert(socket->state == SOCKET_HANDSHAKE);
    snprintf(message, sizeof(message), "transport: authentication handshake failed: %s%s", reason,
             advice);
    socket_end(socket, message);
}

static void give_up_handshake(struct client_socket *socket, const char *reason)
{
    fail_handshake(socket, reason,
                   socket->has_heard
                       ? ""
                       : ": the server does not shake hands; if it speaks cleartext, set tls: "
                         "{insecure: true}");
}

static bool tls_flush(struct client_socket *socket)
{
    if (socket->is_writing)
        return false;
    struct slice output = tls_channel_output(socket->channel);
    if (output.size == 0)
        return true;
    const struct batch_part part = {.bytes = output};
    bool is_sent = send_parts(socket, &part, 1);
    tls_channel_sent(socket->channel, output.size);
    return is_sent;
}

/* Hands on what the channel decrypts. What it leaves for a later turn comes before the socket is
 * read on. */
static void tls_pump(struct client_socket *socket)
{
    uint8_t *room = mem_alloc(RECORD_BYTES);
    ptrdiff_t count = 1;
    while (count > 0 && (socket->state == SOCKET_HANDSHAKE || socket->state == SOCKET_OPEN)) {
        count = tls_channel_read(socket->channel, room, RECORD_BYTES);
        if (socket->state == SOCKET_HANDSHAKE && tls_channel_is_open(socket->channel)) {
            if (strcmp(tls_channel_protocol(socket->channel), "h2") == 0)
                socket_opened(socket);
            else
                fail_handshake(socket,
                               "credentials: cannot check peer: missing selected ALPN property",
                               ": the server speaks TLS, but not HTTP/2, which gRPC needs");
        }
        if (count > 0 && socket->state == SOCKET_OPEN)
            socket->events->on_bytes(socket->owner, room, (size_t)count);
    }
    mem_free(room);
    if (socket->state >= SOCKET_ENDED)
        return;
    tls_flush(socket);
    if (count == TLS_CLOSED) {
        socket_end(socket, "EOF");
    } else if (count == TLS_FAILED && socket->state == SOCKET_HANDSHAKE) {
        fail_handshake(socket, tls_channel_error(socket->channel), "");
    } else if (count == TLS_FAILED) {
        socket_end(socket, tls_channel_error(socket->channel));
    } else if (!tls_channel_keep(socket->channel)) {
        socket_end(socket, "out of memory for TLS");
    } else if (tls_channel_has_input(socket->channel)) {
        uv_read_stop(&socket->stream);
        lane_defer(socket->lane, &socket->tls_job);
    }
}

static void tls_receive(struct client_socket *socket, struct slice ciphertext)
{
    assert(ciphertext.size > 0);
    bool is_record = socket->has_heard || ciphertext.data[0] == RECORD_HANDSHAKE ||
                     ciphertext.data[0] == RECORD_ALERT;
    socket->has_heard = true;
    if (!is_record) {
        fail_handshake(socket, "tls: first record does not look like a TLS handshake",
                       ": the server speaks cleartext; to send to it without TLS, set tls: "
                       "{insecure: true}");
        return;
    }
    tls_channel_feed(socket->channel, ciphertext);
    tls_pump(socket);
}

static void end_reading(struct client_socket *socket, const char *reason)
{
    if (socket->state == SOCKET_HANDSHAKE)
        give_up_handshake(socket, reason);
    else
        socket_end(socket, reason);
}

static void on_waiting_written(uv_write_t *request, int status)
{
    struct waiting_write *waiting = (struct waiting_write *)request;
    struct client_socket *socket = waiting->socket;
    waiting_free(waiting);
    socket->is_writing = false;
    if (socket->state != SOCKET_OPEN && socket->state != SOCKET_HANDSHAKE)
        return;
    if (status != 0) {
        end_reading(socket, uv_strerror(status));
    } else if ((socket->channel == NULL || tls_flush(socket)) && socket->has_waiting_writer) {
        socket->has_waiting_writer = false;
        socket->events->on_drained(socket->owner);
    }
}

static void end_dialling(struct client_socket *socket, int error)
{
    assert(socket->state == SOCKET_CONNECTING);
    char message[ERROR_BYTES_MAX];
    client_socket_dial_error((const struct sockaddr *)&socket->address, error, message,
                             sizeof(message));
    socket_end(socket, message);
}

static void on_timer(struct timer *timer, void *arg)
{
    struct client_socket *socket = arg;
    assert(timer == &socket->timer);
    if (socket->state == SOCKET_HANDSHAKE)
        give_up_handshake(socket, "context deadline exceeded");
    else
        end_dialling(socket, socket->connect_error != 0 ? socket->connect_error : UV_ETIMEDOUT);
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    (void)handle;
    (void)suggested;
    *ret_buffer = uv_buf_init(read_buffer, sizeof(read_buffer));
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct client_socket *socket = stream->data;
    bool is_open = socket->state == SOCKET_OPEN || socket->state == SOCKET_HANDSHAKE;
    if (!is_open || size == 0)
        return;
    if (size < 0)
        end_reading(socket, size == UV_EOF ? "EOF" : uv_strerror((int)size));
    else if (socket->channel != NULL)
        tls_receive(socket, slice_of(buffer->base, (size_t)size));
    else
        socket->events->on_bytes(socket->owner, (const uint8_t *)buffer->base, (size_t)size);
}

static void on_tls_job(void *arg)
{
    struct client_socket *socket = arg;
    if (socket->state != SOCKET_OPEN && socket->state != SOCKET_HANDSHAKE)
        return;
    tls_pump(socket);
    if (socket->state >= SOCKET_ENDED || socket->tls_job.is_queued)
        return;
    int error = uv_read_start(&socket->stream, on_allocate, on_read);
    if (error != 0)
        end_reading(socket, uv_strerror(error));
}

static void on_connect(uv_connect_t *request, int status)
{
    struct client_socket *socket = request->data;
    assert(request == &socket->connect);
    if (socket->state != SOCKET_CONNECTING)
        return;
    if (status == 0)
        status = uv_read_start(&socket->stream, on_allocate, on_read);
    if (status != 0) {
        end_dialling(socket, status);
    } else if (socket->tls != NULL) {
        struct error error;
        assert(socket->channel == NULL);
        socket->state = SOCKET_HANDSHAKE;
        socket->channel = tls_channel_create(socket->tls, socket->server_name, &error);
        if (socket->channel == NULL)
            fail_handshake(socket, error.text, "");
        else
            tls_flush(socket);
    } else {
        socket_opened(socket);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct client_socket *socket = handle->data;
    assert(socket->state == SOCKET_CLOSING);
    socket->events->on_closed(socket->owner);
    tls_channel_destroy(socket->channel);
    mem_free(socket);
}

bool client_socket_write(struct client_socket *socket, const struct batch_part *parts, size_t count)
{
    assert(count > 0 && count <= WRITE_PARTS_MAX);
    assert(!socket->has_waiting_writer);
    if (socket->state != SOCKET_OPEN)
        return false;
    if (socket->channel == NULL) {
        bool is_sent = send_parts(socket, parts, count);
        socket->has_waiting_writer = !is_sent;
        return is_sent;
    }
    /* Fills TLS records, whatever the sizes of the parts. */
    uint8_t *room = mem_alloc(RECORD_BYTES);
    size_t used = 0;
    bool is_well = true;
    for (size_t i = 0; i < count && is_well; i++) {
        struct slice left = parts[i].bytes;
        while (left.size > 0 && is_well) {
            size_t step = RECORD_BYTES - used < left.size ? RECORD_BYTES - used : left.size;
            memcpy(room + used, left.data, step);
            left = slice_of(left.data + step, left.size - step);
            used += step;
            if (used < RECORD_BYTES)
                continue;
            is_well = tls_channel_write(socket->channel, slice_of(room, used));
            used = 0;
        }
    }
    if (is_well && used > 0)
        is_well = tls_channel_write(socket->channel, slice_of(room, used));
    mem_free(room);
    /* The reading side reports a failed channel. */
    bool is_sent = tls_flush(socket) && is_well;
    socket->has_waiting_writer = !is_sent;
    return is_sent;
}

struct client_socket *client_socket_create(const struct client_socket_settings *settings)
{
    assert(lane_is_current(settings->lane));
    struct client_socket *socket = mem_zalloc(sizeof(*socket));
    socket->lane = settings->lane;
    socket->budget = settings->budget;
    socket->events = settings->events;
    socket->owner = settings->owner;
    socket->tls = settings->tls;
    socket->server_name = settings->server_name;
    socket->connect.data = socket;
    size_t size = settings->address->sa_family == AF_UNIX    ? sizeof(struct sockaddr_un)
                  : settings->address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                             : sizeof(struct sockaddr_in);
    assert(size <= sizeof(socket->address));
    memcpy(&socket->address, settings->address, size);
    timer_init(&socket->timer, on_timer, socket);
    socket->tls_job = (struct lane_job){.fn = on_tls_job, .arg = socket};
    uv_loop_t *loop = lane_loop(socket->lane);
    if (settings->address->sa_family == AF_UNIX) {
        int error = uv_pipe_init(loop, &socket->pipe, 0);
        assert(error == 0);
        uv_pipe_connect(&socket->connect, &socket->pipe,
                        ((const struct sockaddr_un *)&socket->address)->sun_path, on_connect);
    } else {
        int error = uv_tcp_init(loop, &socket->tcp);
        assert(error == 0);
        (void)uv_tcp_nodelay(&socket->tcp, 1);
        error = uv_tcp_connect(&socket->connect, &socket->tcp,
                               (const struct sockaddr *)&socket->address, on_connect);
        socket->connect_error = error;
    }
    socket->handle.data = socket;
    /* Immediate failures are reported by the timer, too: one path for the owner. */
    lane_timer_start(socket->lane, &socket->timer,
                     socket->connect_error == 0 ? settings->connect_timeout_ns : 0);
    return socket;
}

void client_socket_close(struct client_socket *socket)
{
    if (socket->state == SOCKET_CLOSING)
        return;
    if (socket->channel != NULL) {
        tls_channel_end(socket->channel);
        struct slice output = tls_channel_output(socket->channel);
        uv_buf_t part = socket_part(output.data, output.size);
        if (output.size > 0 && !socket->is_writing)
            (void)uv_try_write(&socket->stream, &part, 1);
    }
    socket->state = SOCKET_CLOSING;
    lane_timer_stop(socket->lane, &socket->timer);
    lane_defer_cancel(socket->lane, &socket->tls_job);
    uv_close(&socket->handle, on_closed);
}
