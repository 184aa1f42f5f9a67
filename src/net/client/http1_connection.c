/* SPDX-License-Identifier: Apache-2.0 */
/* The socket side of the HTTP/1.1 writer. What the socket takes at once goes out in calls of
 * writev, which libuv cuts at IOV_MAX parts; the rest is libuv's to send. Runs on its owner's lane.
 */
#include "src/net/client/http1_connection.h"

#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

#include <assert.h>

/* Reads of all connections of a thread end in one buffer: each read is parsed before the next. */
enum { READ_BYTES = 16 * 1024 };
static _Thread_local char read_buffer[READ_BYTES];

static void on_timer(struct timer *timer, void *arg)
{
    struct http1_connection *connection = arg;
    assert(timer == &connection->timer);
    (void)timer;
    if (connection->state == HTTP1_CONNECTING)
        connection->events->on_connected(
            connection, connection->connect_error != 0 ? connection->connect_error : UV_ETIMEDOUT);
    else if (connection->state == HTTP1_IDLE)
        connection->events->on_idle_end(connection);
    else if (connection->state == HTTP1_BUSY) {
        /* The head came and the body does not: what it says counts. */
        connection->answer.is_cut = true;
        connection->answer.keeps_alive = false;
        connection->events->on_answer(connection);
    }
}

static void on_connect(uv_connect_t *request, int status)
{
    struct http1_connection *connection = request->data;
    assert(request == &connection->connect);
    if (connection->state != HTTP1_CONNECTING)
        return;
    lane_timer_stop(connection->lane, &connection->timer);
    connection->events->on_connected(connection, status);
}

static void on_write(uv_write_t *request, int status)
{
    struct http1_connection *connection = request->data;
    assert(request == &connection->write);
    /* A failed write is not the end: an early answer (413, then close) may still be read, and if
     * none comes the reading side breaks too. */
    connection->is_written = status == 0;
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    assert(ret_buffer != NULL);
    (void)handle;
    (void)suggested;
    *ret_buffer = uv_buf_init(read_buffer, sizeof(read_buffer));
}

static void take_bytes(struct http1_connection *connection, const char *data, size_t size)
{
    assert(size > 0);
    struct http_answer *answer = &connection->answer;
    bool had_head = answer->status != 0;
    connection->has_heard = true;
    size_t taken = http_answer_feed(answer, (const uint8_t *)data, size);
    /* More than the answer: nobody asked for it, and what follows cannot be trusted. */
    if (taken < size)
        answer->keeps_alive = false;
    if (answer->state == ANSWER_DONE || (answer->state == ANSWER_FAILED && answer->status != 0))
        connection->events->on_answer(connection);
    else if (answer->state == ANSWER_FAILED)
        connection->events->on_broken(connection, answer->failure);
    else if (!had_head && answer->status != 0)
        lane_timer_start(connection->lane, &connection->timer, RESPONSE_BODY_DEADLINE_NS);
}

static void take_end(struct http1_connection *connection, int status)
{
    assert(status < 0);
    struct http_answer *answer = &connection->answer;
    if (status == UV_EOF)
        http_answer_end(answer);
    if (answer->status != 0) {
        answer->is_cut |= answer->state != ANSWER_DONE;
        answer->keeps_alive = false;
        connection->events->on_answer(connection);
    } else {
        connection->events->on_broken(connection, status == UV_EOF ? "EOF" : uv_strerror(status));
    }
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct http1_connection *connection = stream->data;
    assert(connection->events != NULL);
    if (connection->state == HTTP1_CLOSING || size == 0)
        return;
    if (connection->state != HTTP1_BUSY)
        connection->events->on_broken(connection, size > 0 ? "unasked bytes" : "closed by peer");
    else if (size > 0)
        take_bytes(connection, buffer->base, (size_t)size);
    else
        take_end(connection, (int)size);
}

static void on_closed(uv_handle_t *handle)
{
    struct http1_connection *connection = handle->data;
    assert(connection->state == HTTP1_CLOSING);
    connection->events->on_closed(connection);
    http_answer_fini(&connection->answer);
    mem_free(connection);
}

/* Takes size bytes off the front of the buffers; returns how many of them are done with. */
static size_t skip_bytes(uv_buf_t *buffers, size_t count, size_t size)
{
    size_t done = 0;
    while (done < count && size >= buffers[done].len)
        size -= buffers[done++].len;
    if (size > 0) {
        assert(done < count);
        buffers[done].base += size;
        buffers[done].len -= size;
    }
    return done;
}

/* Returns 0 or a libuv error. A socket that refuses the bytes is no error here: on_write says why
 * it is the reading side's to tell. */
static int write_parts(struct http1_connection *connection, uv_buf_t *buffers, size_t count)
{
    assert(connection->state == HTTP1_BUSY);
    uv_stream_t *stream = (uv_stream_t *)&connection->tcp;
    while (count > 0) {
        int written = uv_try_write(stream, buffers, (unsigned)count);
        if (written == UV_EAGAIN)
            return uv_write(&connection->write, stream, buffers, (unsigned)count, on_write);
        if (written < 0)
            return 0;
        size_t done = skip_bytes(buffers, count, (size_t)written);
        buffers += done;
        count -= done;
    }
    connection->is_written = true;
    return 0;
}

struct http1_connection *http1_connection_create(struct lane *lane, const struct sockaddr *address,
                                                 const struct http1_connection_events *events)
{
    assert(address != NULL);
    assert(lane_is_current(lane));
    assert(events != NULL);
    struct http1_connection *connection = mem_zalloc(sizeof(*connection));
    int error = uv_tcp_init(lane_loop(lane), &connection->tcp);
    assert(error == 0);
    connection->lane = lane;
    connection->events = events;
    connection->tcp.data = connection;
    connection->connect.data = connection;
    connection->write.data = connection;
    http_answer_init(&connection->answer);
    timer_init(&connection->timer, on_timer, connection);
    (void)uv_tcp_nodelay(&connection->tcp, 1);
    error = uv_tcp_connect(&connection->connect, &connection->tcp, address, on_connect);
    /* What is refused at once comes to on_connected through the timer: one path for the owner. */
    connection->connect_error = error;
    lane_timer_start(lane, &connection->timer, error == 0 ? CONNECT_TIMEOUT_NS : 0);
    return connection;
}

int http1_connection_send(struct http1_connection *connection, uv_buf_t *buffers, size_t count)
{
    assert(buffers != NULL);
    assert(connection->state == HTTP1_CONNECTING || connection->state == HTTP1_IDLE);
    assert(count > 0);
    bool is_first = connection->state == HTTP1_CONNECTING;
    lane_timer_stop(connection->lane, &connection->timer);
    connection->state = HTTP1_BUSY;
    connection->is_reused = !is_first;
    connection->is_written = false;
    connection->has_heard = false;
    http_answer_reset(&connection->answer);
    int error = 0;
    if (is_first)
        error = uv_read_start((uv_stream_t *)&connection->tcp, on_allocate, on_read);
    return error != 0 ? error : write_parts(connection, buffers, count);
}

void http1_connection_rest(struct http1_connection *connection, uint64_t timeout_ns)
{
    assert(connection->state == HTTP1_BUSY);
    assert(connection->is_written);
    connection->state = HTTP1_IDLE;
    lane_timer_stop(connection->lane, &connection->timer);
    if (timeout_ns > 0)
        lane_timer_start(connection->lane, &connection->timer, timeout_ns);
}

void http1_connection_close(struct http1_connection *connection)
{
    assert(connection != NULL);
    if (connection->state == HTTP1_CLOSING)
        return;
    connection->state = HTTP1_CLOSING;
    lane_timer_stop(connection->lane, &connection->timer);
    uv_close((uv_handle_t *)&connection->tcp, on_closed);
}
