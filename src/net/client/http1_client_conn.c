/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of the HTTP/1.1 client. What the kernel takes at once is written with writev, which
 * libuv cuts at IOV_MAX parts; libuv writes the rest. On the owner's lane. */
#include "src/net/client/http1_client_conn.h"

#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

#include <assert.h>

/* Shared by all connections of a thread: each read is parsed before the next. */
enum { READ_BYTES = 16 * 1024 };
static _Thread_local char read_buffer[READ_BYTES];

static void on_timer(struct timer *timer, void *arg)
{
    struct http1_client_conn *connection = arg;
    assert(timer == &connection->timer);
    if (connection->state == HTTP1_CONNECTING) {
        connection->events->on_connected(
            connection, connection->connect_error != 0 ? connection->connect_error : UV_ETIMEDOUT);
    } else if (connection->state == HTTP1_IDLE) {
        connection->events->on_idle_end(connection);
    } else if (connection->state == HTTP1_BUSY) {
        /* The head is complete and the body is late: the head counts. */
        connection->response.is_cut = true;
        connection->response.keeps_alive = false;
        connection->events->on_response(connection);
    }
}

static void on_connect(uv_connect_t *request, int status)
{
    struct http1_client_conn *connection = request->data;
    assert(request == &connection->connect);
    if (connection->state != HTTP1_CONNECTING)
        return;
    lane_timer_stop(connection->lane, &connection->timer);
    connection->events->on_connected(connection, status);
}

static void on_write(uv_write_t *request, int status)
{
    struct http1_client_conn *connection = request->data;
    assert(request == &connection->write);
    /* A failed write is not the end: an early response (413, then close) may still be read; if
     * there is none, reading fails, too. */
    connection->is_written = status == 0;
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    (void)handle;
    (void)suggested;
    *ret_buffer = uv_buf_init(read_buffer, sizeof(read_buffer));
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct http1_client_conn *connection = stream->data;
    struct http1_response *response = &connection->response;
    if (connection->state == HTTP1_CLOSING || size == 0)
        return;
    if (connection->state != HTTP1_BUSY) {
        connection->events->on_broken(connection, size > 0 ? "unexpected bytes" : "closed by peer");
        return;
    }
    if (size < 0) {
        if (size == UV_EOF)
            http1_response_end(response);
        if (response->status != 0) {
            response->is_cut |= response->state != RESPONSE_DONE;
            response->keeps_alive = false;
            connection->events->on_response(connection);
        } else {
            connection->events->on_broken(connection,
                                          size == UV_EOF ? "EOF" : uv_strerror((int)size));
        }
        return;
    }
    bool had_head = response->status != 0;
    connection->has_heard = true;
    size_t taken = http1_response_feed(response, (const uint8_t *)buffer->base, (size_t)size);
    /* More than the response: what follows cannot be trusted. */
    if (taken < (size_t)size)
        response->keeps_alive = false;
    if (response->state == RESPONSE_DONE ||
        (response->state == RESPONSE_FAILED && response->status != 0))
        connection->events->on_response(connection);
    else if (response->state == RESPONSE_FAILED)
        connection->events->on_broken(connection, response->failure);
    else if (!had_head && response->status != 0 && response->body.sink.take == NULL)
        lane_timer_start(connection->lane, &connection->timer, RESPONSE_BODY_DEADLINE_NS);
}

static void on_closed(uv_handle_t *handle)
{
    struct http1_client_conn *connection = handle->data;
    assert(connection->state == HTTP1_CLOSING);
    connection->events->on_closed(connection);
    http1_response_fini(&connection->response);
    mem_free(connection);
}

struct http1_client_conn *http1_client_conn_create(struct lane *lane, struct budget *budget,
                                                   const struct sockaddr *address,
                                                   const struct http1_client_conn_events *events)
{
    assert(lane_is_current(lane));
    struct http1_client_conn *connection = mem_zalloc(sizeof(*connection));
    int error = uv_tcp_init(lane_loop(lane), &connection->tcp);
    assert(error == 0);
    connection->lane = lane;
    connection->events = events;
    connection->tcp.data = connection;
    connection->connect.data = connection;
    connection->write.data = connection;
    http1_response_init(&connection->response, budget);
    timer_init(&connection->timer, on_timer, connection);
    (void)uv_tcp_nodelay(&connection->tcp, 1);
    error = uv_tcp_connect(&connection->connect, &connection->tcp, address, on_connect);
    /* Immediate failures are reported by the timer, too: one path for the owner. */
    connection->connect_error = error;
    lane_timer_start(lane, &connection->timer, error == 0 ? CONNECT_TIMEOUT_NS : 0);
    return connection;
}

int http1_client_conn_send(struct http1_client_conn *connection, uv_buf_t *buffers, size_t count,
                           const struct response_sink *sink, const char *const *noted)
{
    assert(connection->state == HTTP1_CONNECTING || connection->state == HTTP1_IDLE);
    assert(count > 0);
    bool is_first = connection->state == HTTP1_CONNECTING;
    lane_timer_stop(connection->lane, &connection->timer);
    connection->state = HTTP1_BUSY;
    connection->is_reused = !is_first;
    connection->is_written = false;
    connection->has_heard = false;
    http1_response_reset(&connection->response);
    connection->response.sink = *sink;
    response_notes_begin(&connection->response.notes, noted);
    int error = 0;
    if (is_first)
        error = uv_read_start((uv_stream_t *)&connection->tcp, on_allocate, on_read);
    if (error != 0)
        return error;
    uv_stream_t *stream = (uv_stream_t *)&connection->tcp;
    while (count > 0) {
        int written = uv_try_write(stream, buffers, (unsigned)count);
        if (written == UV_EAGAIN)
            return uv_write(&connection->write, stream, buffers, (unsigned)count, on_write);
        if (written < 0)
            return 0;
        size_t left = (size_t)written;
        for (; count > 0 && left >= buffers->len; count--)
            left -= buffers++->len;
        assert(left == 0 || count > 0);
        if (count > 0) {
            buffers->base += left;
            buffers->len -= left;
        }
    }
    connection->is_written = true;
    return 0;
}

void http1_client_conn_rest(struct http1_client_conn *connection, uint64_t timeout_ns)
{
    assert(connection->state == HTTP1_BUSY);
    assert(connection->is_written);
    connection->state = HTTP1_IDLE;
    lane_timer_stop(connection->lane, &connection->timer);
    if (timeout_ns > 0)
        lane_timer_start(connection->lane, &connection->timer, timeout_ns);
}

void http1_client_conn_close(struct http1_client_conn *connection)
{
    if (connection->state == HTTP1_CLOSING)
        return;
    connection->state = HTTP1_CLOSING;
    lane_timer_stop(connection->lane, &connection->timer);
    uv_close((uv_handle_t *)&connection->tcp, on_closed);
}
