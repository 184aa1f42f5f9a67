/* SPDX-License-Identifier: Apache-2.0 */
/* One accepted connection: socket, sniffing, writes, deadlines, closing. uv_close is the first
 * phase; the second, in its callback, tells the protocol, and the memory goes with the last request
 * that refers to it. On the server's lane. */
#include "src/net/server/http_connection.h"

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/server/http_secure.h"
#include "src/net/server/http_server_state.h"
#include "src/net/socket/endpoint.h"

#include <assert.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* What the socket did not take at once. */
struct late_write {
    uv_write_t request;
    struct http_connection *connection;
    size_t size;
    char data[];
};

static uv_stream_t *stream_of(struct http_connection *connection)
{
    return (uv_stream_t *)&connection->tcp;
}

static void arm_timer(struct http_connection *connection)
{
    assert(!connection->is_closing);
    uint64_t due_ns = connection->deadline_ns < connection->write_deadline_ns
                          ? connection->deadline_ns
                          : connection->write_deadline_ns;
    if (due_ns == UINT64_MAX)
        return;
    if (timer_is_running(&connection->timer) && connection->timer.deadline_ns <= due_ns)
        return;
    timer_start(lane_timers(connection->server->settings.lane), &connection->timer, due_ns);
}

/* A write deadline that the user set is for the whole answer; ours asks for progress only. */
static void start_write_deadline(struct http_connection *connection)
{
    assert(connection->writes_waiting > 0);
    uint64_t delay_ns = connection->server->settings.write_deadline_ns;
    connection->write_deadline_ns = clock_now_ns() + (delay_ns == 0 ? WRITE_STALL_NS : delay_ns);
    connection->write_waiting_bytes = uv_stream_get_write_queue_size(stream_of(connection));
    arm_timer(connection);
}

static void expire_write(struct http_connection *connection)
{
    assert(connection->writes_waiting > 0);
    size_t waiting = uv_stream_get_write_queue_size(stream_of(connection));
    bool is_stall_only = connection->server->settings.write_deadline_ns == 0;
    if (is_stall_only && waiting < connection->write_waiting_bytes)
        start_write_deadline(connection);
    else
        http_connection_abort(connection);
}

static void expire(struct http_connection *connection)
{
    assert(!connection->is_closing);
    if (connection->protocol != NULL) {
        connection->protocol->expire(connection->state);
        return;
    }
    if (connection->tls != NULL)
        http_secure_expire(connection);
    http_connection_abort(connection);
}

/* The timer may be early: deadlines that move away do not move it. */
static void on_timer(struct timer *timer, void *arg)
{
    struct http_connection *connection = arg;
    assert(timer == &connection->timer);
    assert(!connection->is_closing);
    uint64_t now_ns = clock_now_ns();
    if (connection->write_deadline_ns <= now_ns)
        expire_write(connection);
    if (!connection->is_closing && connection->deadline_ns <= now_ns) {
        connection->deadline_ns = UINT64_MAX;
        expire(connection);
    }
    if (!connection->is_closing)
        arm_timer(connection);
}

bool http_connection_choose(struct http_connection *connection,
                            const struct http_protocol *protocol)
{
    assert(protocol->create != NULL);
    assert(connection->protocol == NULL);
    connection->state = protocol->create(connection);
    if (connection->state == NULL) {
        http_connection_abort(connection);
        return false;
    }
    connection->protocol = protocol;
    return true;
}

static void stop(struct http_connection *connection)
{
    assert(!connection->is_closing);
    if (connection->protocol == NULL)
        http_connection_close(connection);
    else
        connection->protocol->stop(connection->state);
}

void http_connection_input_taken(struct http_connection *connection)
{
    assert(connection->refs > 0);
    if (!connection->is_stopping || connection->is_closing)
        return;
    connection->is_stopping = false;
    stop(connection);
}

static void on_late_write(uv_write_t *request, int status)
{
    struct late_write *late = request->data;
    struct http_connection *connection = late->connection;
    mem_free(late);
    assert(connection->writes_waiting > 0);
    connection->writes_waiting--;
    if (connection->is_closing)
        return;
    if (status < 0) {
        http_connection_close(connection);
        return;
    }
    if (connection->writes_waiting > 0)
        return;
    connection->write_deadline_ns = UINT64_MAX;
    if (connection->tls != NULL && !http_secure_flush(connection))
        return;
    if (connection->protocol != NULL)
        connection->protocol->written(connection->state);
}

static void on_closed(uv_handle_t *handle)
{
    struct http_connection *connection = handle->data;
    assert(connection->is_closing);
    if (connection->protocol != NULL)
        connection->protocol->closed(connection->state);
    http_secure_end_all(connection);
    http_server_unlink(connection->server, connection);
    connection->server = NULL;
    http_connection_unref(connection);
}

static size_t parts_size(const uv_buf_t *parts, unsigned count)
{
    size_t size = 0;
    for (unsigned i = 0; i < count; i++)
        size += parts[i].len;
    return size;
}

/* Copies what stands behind the first skip bytes. */
static void copy_parts(char *target, const uv_buf_t *parts, unsigned count, size_t skip)
{
    assert(target != NULL);
    for (unsigned i = 0; i < count; i++) {
        size_t skipped = skip < parts[i].len ? skip : parts[i].len;
        size_t rest = parts[i].len - skipped;
        if (rest > 0)
            memcpy(target, parts[i].base + skipped, rest);
        target += rest;
        skip -= skipped;
    }
}

static void write_later(struct http_connection *connection, const uv_buf_t *parts, unsigned count,
                        size_t skip)
{
    assert(!connection->is_closing);
    assert(skip < parts_size(parts, count));
    size_t size = parts_size(parts, count) - skip;
    struct late_write *late = mem_try_alloc(sizeof(*late) + size);
    if (late == NULL) {
        http_connection_close(connection);
        return;
    }
    late->connection = connection;
    late->size = size;
    late->request.data = late;
    copy_parts(late->data, parts, count, skip);
    uv_buf_t rest = uv_buf_init(late->data, (unsigned)size);
    if (uv_write(&late->request, stream_of(connection), &rest, 1, on_late_write) != 0) {
        mem_free(late);
        http_connection_close(connection);
        return;
    }
    connection->writes_waiting++;
    if (connection->writes_waiting == 1)
        start_write_deadline(connection);
}

void http_connection_begin(struct http_connection *connection, const struct http_protocol *protocol)
{
    assert(connection->protocol == NULL);
    const struct http_server_settings *settings = &connection->server->settings;
    http_connection_set_deadline(connection, settings->header_deadline_ns);
    if (protocol == NULL && !settings->has_http1)
        protocol = &http2_protocol;
    if (protocol == NULL && !settings->has_http2)
        protocol = &http1_protocol;
    if (protocol != NULL && !http_connection_choose(connection, protocol))
        return;
    http_connection_resume(connection);
}

void http_connection_open(struct http_server *server, int fd, const struct sockaddr *peer)
{
    assert(fd >= 0);
    assert(lane_is_current(server->settings.lane));
    struct http_connection *connection = mem_zalloc(sizeof(*connection));
    connection->server = server;
    connection->refs = 1;
    connection->deadline_ns = UINT64_MAX;
    connection->write_deadline_ns = UINT64_MAX;
    timer_init(&connection->timer, on_timer, connection);
    endpoint_print_host(peer, connection->peer);
    http_server_link(server, connection);
    int failed = uv_tcp_init(lane_loop(server->settings.lane), &connection->tcp);
    assert(failed == 0);
    connection->tcp.data = connection;
    failed = uv_tcp_open(&connection->tcp, fd);
    if (failed != 0)
        close(fd);
    if (failed != 0 || server->is_stopping)
        http_connection_close(connection);
    else if (server->settings.tls != NULL)
        http_secure_begin(connection);
    else
        http_connection_begin(connection, NULL);
}

const struct http_server_settings *http_connection_settings(
    const struct http_connection *connection)
{
    assert(connection->server != NULL);
    return &connection->server->settings;
}

bool http_connection_send(struct http_connection *connection, uv_buf_t *parts, unsigned count)
{
    assert(count > 0);
    assert(!connection->is_closing);
    int written = 0;
    if (connection->writes_waiting == 0)
        written = uv_try_write(stream_of(connection), parts, count);
    if (written == UV_EAGAIN)
        written = 0;
    if (written < 0) {
        http_connection_close(connection);
        return false;
    }
    if ((size_t)written == parts_size(parts, count))
        return true;
    write_later(connection, parts, count, (size_t)written);
    return false;
}

bool http_connection_write(struct http_connection *connection, uv_buf_t *parts, unsigned count)
{
    assert(count > 0);
    if (connection->is_closing)
        return false;
    if (connection->tls != NULL)
        return http_secure_write(connection, parts, count);
    return http_connection_send(connection, parts, count);
}

bool http_connection_is_blocked(const struct http_connection *connection)
{
    return connection->writes_waiting > 0;
}

void http_connection_shutdown(struct http_connection *connection)
{
    assert(connection->writes_waiting == 0);
    uv_os_fd_t fd;
    if (connection->tls != NULL && !connection->is_closing && !http_secure_end(connection))
        return;
    if (!connection->is_closing && uv_fileno((uv_handle_t *)&connection->tcp, &fd) == 0)
        shutdown(fd, SHUT_WR);
}

void http_connection_set_deadline(struct http_connection *connection, uint64_t delay_ns)
{
    assert(connection->refs > 0);
    if (connection->is_closing)
        return;
    connection->deadline_ns = delay_ns == UINT64_MAX ? UINT64_MAX : clock_now_ns() + delay_ns;
    arm_timer(connection);
}

static bool has_input(const struct http_connection *connection)
{
    uv_os_fd_t fd;
    int size = 0;
    assert(!connection->is_closing);
    if (connection->is_reading && connection->tls != NULL && http_secure_has_input(connection))
        return true;
    return connection->is_reading && uv_fileno((const uv_handle_t *)&connection->tcp, &fd) == 0 &&
           ioctl(fd, FIONREAD, &size) == 0 && size > 0;
}

void http_connection_stop(struct http_connection *connection)
{
    assert(lane_is_current(connection->server->settings.lane));
    if (connection->is_closing)
        return;
    connection->is_stopping = has_input(connection);
    if (!connection->is_stopping)
        stop(connection);
}

void http_connection_close(struct http_connection *connection)
{
    assert(connection->refs > 0);
    if (connection->is_closing)
        return;
    if (connection->tls != NULL)
        http_secure_close(connection);
    connection->is_closing = true;
    timer_stop(lane_timers(connection->server->settings.lane), &connection->timer);
    uv_close((uv_handle_t *)&connection->tcp, on_closed);
}

void http_connection_abort(struct http_connection *connection)
{
    assert(connection->refs > 0);
    if (connection->is_closing)
        return;
    http_server_count_abort(connection->server);
    http_connection_close(connection);
}

bool http_connection_is_closing(const struct http_connection *connection)
{
    return connection->is_closing;
}

void http_connection_ref(struct http_connection *connection)
{
    assert(connection->refs > 0);
    connection->refs++;
}

void http_connection_unref(struct http_connection *connection)
{
    assert(connection->refs > 0);
    connection->refs--;
    if (connection->refs > 0)
        return;
    if (connection->protocol != NULL)
        connection->protocol->destroy(connection->state);
    mem_free(connection);
}
