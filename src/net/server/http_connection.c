/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server of one lane and its connections: accepting, choosing the protocol, reading,
 * writing, deadlines, closing and stopping. A connection closes in two phases: uv_close first; its
 * callback tells the protocol, and the memory is freed with the last request that refers to it.
 * Requests are in http_exchange.c. On the server's lane. */
#include "src/net/server/http_connection.h"

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/socket/endpoint.h"
#include "src/net/socket/socket_part.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

/* Begins HTTP/2 (RFC 9113 §3.4); not a valid HTTP/1 request. */
static const char preface_text[] = NGHTTP2_CLIENT_MAGIC;

/* Output that the socket did not take at once, charged to the server's budget. */
struct late_write {
    uv_write_t request;
    struct http_connection *connection;
    struct budget *budget; /* NULL: none */
    size_t size;
    char data[];
};

/* The server is done once it neither listens nor has connections or requests that are held; done()
 * is called at the end of the turn. */
static void check_done(struct http_server *server)
{
    if (!server->is_stopping || server->is_done)
        return;
    if (server->connections == NULL && server->member.listener == NULL && server->held == 0)
        lane_defer(server->settings.lane, &server->done_job);
}

void http_server_release(struct http_server *server)
{
    assert(lane_is_current(server->settings.lane));
    assert(server->held > 0);
    server->held--;
    check_done(server);
}

void http_server_count_abort(struct http_server *server)
{
    assert(lane_is_current(server->settings.lane));
    server->figures.aborted_total++;
    if (server->settings.counters != NULL)
        counter_add(&server->settings.counters->connections_aborted, 1);
}

void http_server_count_reset(struct http_server *server)
{
    assert(lane_is_current(server->settings.lane));
    server->figures.reset_total++;
    if (server->settings.counters != NULL)
        counter_add(&server->settings.counters->streams_reset, 1);
}

const char *http_server_date(struct http_server *server)
{
    time_t second = (time_t)(clock_wall_ns() / NS_PER_S);
    if (second == server->date_second)
        return server->date_text;
    struct tm utc;
    gmtime_r(&second, &utc);
    size_t size = strftime(server->date_text, HTTP_DATE_SIZE, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    assert(size == HTTP_DATE_SIZE - 1);
    server->date_second = second;
    return server->date_text;
}

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

/* A configured write deadline is for the whole response; the default one is for progress. Who makes
 * none, or little, does not hold up a stop. */
static void start_write_deadline(struct http_connection *connection)
{
    assert(connection->writes_waiting > 0);
    uint64_t delay_ns = connection->server->settings.write_deadline_ns;
    if (delay_ns == 0)
        delay_ns = connection->server->is_stopping ? HTTP_STOP_WRITE_NS : WRITE_STALL_NS;
    connection->write_deadline_ns = clock_now_ns() + delay_ns;
    if (connection->server->is_stopping && connection->write_until_ns == UINT64_MAX)
        connection->write_until_ns = clock_now_ns() + HTTP_STOP_READ_NS;
    if (connection->write_deadline_ns > connection->write_until_ns)
        connection->write_deadline_ns = connection->write_until_ns;
    connection->write_waiting_bytes = uv_stream_get_write_queue_size(stream_of(connection));
    arm_timer(connection);
}

static void expire(struct http_connection *connection)
{
    assert(!connection->is_closing);
    if (connection->protocol != NULL) {
        connection->protocol->expire(connection->state);
        return;
    }
    if (connection->tls != NULL)
        server_tls_expire(connection);
    http_connection_abort(connection);
}

/* The timer may fire early: a deadline that moves later does not restart it. */
static void on_timer(struct timer *timer, void *arg)
{
    struct http_connection *connection = arg;
    assert(timer == &connection->timer);
    assert(!connection->is_closing);
    uint64_t now_ns = clock_now_ns();
    if (connection->write_deadline_ns <= now_ns) {
        assert(connection->writes_waiting > 0);
        size_t waiting = uv_stream_get_write_queue_size(stream_of(connection));
        bool is_stall_only = connection->server->settings.write_deadline_ns == 0 &&
                             now_ns < connection->write_until_ns;
        if (is_stall_only && waiting < connection->write_waiting_bytes)
            start_write_deadline(connection);
        else
            http_connection_abort(connection);
    }
    if (!connection->is_closing && connection->deadline_ns <= now_ns) {
        connection->deadline_ns = UINT64_MAX;
        expire(connection);
    }
    if (!connection->is_closing)
        arm_timer(connection);
}

/* Creates the protocol's state. False: the connection is closed instead. */
static bool choose(struct http_connection *connection, const struct http_protocol *protocol)
{
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

/* Charges from the margin too: those who are refused for lack of budget are told so. NULL: no room.
 */
static struct late_write *late_write_create(struct http_connection *connection, size_t size)
{
    struct budget *budget = connection->server->settings.budget;
    const size_t bytes = sizeof(struct late_write) + size;
    if (budget != NULL && !budget_try_take_margin(budget, bytes))
        return NULL;
    struct late_write *late = mem_try_alloc_large(bytes);
    if (late == NULL && budget != NULL)
        budget_return(budget, bytes);
    if (late == NULL)
        return NULL;
    late->connection = connection;
    late->budget = budget;
    late->size = size;
    late->request.data = late;
    return late;
}

static void late_write_destroy(struct late_write *late)
{
    const size_t bytes = sizeof(*late) + late->size;
    if (late->budget != NULL)
        budget_return(late->budget, bytes);
    mem_free_large(late, bytes);
}

static void on_late_write(uv_write_t *request, int status)
{
    struct late_write *late = request->data;
    struct http_connection *connection = late->connection;
    late_write_destroy(late);
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
    /* The rest of a response keeps its deadline. */
    const uint64_t due_ns = connection->rest != NULL ? connection->write_deadline_ns : UINT64_MAX;
    connection->write_deadline_ns = UINT64_MAX;
    if (connection->tls != NULL && !server_tls_flush(connection)) {
        bool is_whole = connection->server->settings.write_deadline_ns > 0;
        if (!connection->is_closing && is_whole && due_ns < connection->write_deadline_ns) {
            connection->write_deadline_ns = due_ns;
            arm_timer(connection);
        }
        return;
    }
    if (connection->protocol != NULL)
        connection->protocol->written(connection->state);
}

static void on_closed(uv_handle_t *handle)
{
    struct http_connection *connection = handle->data;
    assert(connection->is_closing);
    if (connection->protocol != NULL)
        connection->protocol->closed(connection->state);
    server_tls_closed(connection);
    struct http_server *server = connection->server;
    if (connection->prev != NULL)
        connection->prev->next = connection->next;
    else
        server->connections = connection->next;
    if (connection->next != NULL)
        connection->next->prev = connection->prev;
    connection->server = NULL;
    server->figures.connections--;
    atomic_fetch_sub_explicit(&server->member.open_count, 1, memory_order_relaxed);
    check_done(server);
    http_connection_unref(connection);
}

const struct http_server_settings *http_connection_settings(
    const struct http_connection *connection)
{
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
    size_t skip = (size_t)written;
    size_t size = 0;
    for (unsigned i = 0; i < count; i++)
        size += parts[i].len;
    assert(skip <= size);
    if (skip == size)
        return true;
    /* libuv writes a copy of the rest. */
    size -= skip;
    struct late_write *late = late_write_create(connection, size);
    if (late == NULL) {
        http_connection_close(connection);
        return false;
    }
    char *target = late->data;
    for (unsigned i = 0; i < count; i++) {
        size_t skipped = skip < parts[i].len ? skip : parts[i].len;
        size_t rest = parts[i].len - skipped;
        if (rest > 0)
            memcpy(target, parts[i].base + skipped, rest);
        target += rest;
        skip -= skipped;
    }
    uv_buf_t rest = socket_part(late->data, size);
    if (uv_write(&late->request, stream_of(connection), &rest, 1, on_late_write) != 0) {
        late_write_destroy(late);
        http_connection_close(connection);
        return false;
    }
    connection->writes_waiting++;
    if (connection->writes_waiting == 1)
        start_write_deadline(connection);
    return false;
}

bool http_connection_write(struct http_connection *connection, uv_buf_t *parts, unsigned count)
{
    assert(count > 0);
    if (connection->is_closing)
        return false;
    if (connection->tls != NULL)
        return server_tls_write(connection, parts, count);
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
    if (connection->tls != NULL && !connection->is_closing && !server_tls_end(connection))
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

void http_connection_close(struct http_connection *connection)
{
    assert(connection->refs > 0);
    if (connection->is_closing)
        return;
    if (connection->tls != NULL)
        server_tls_close(connection);
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
    if (connection->budget != NULL)
        budget_return(connection->budget, HTTP_CONNECTION_BYTES);
    mem_free(connection);
}

void http_connection_room(struct http_connection *connection, uv_buf_t *ret_room)
{
    bool offers_room = connection->protocol != NULL && connection->protocol->room != NULL;
    uint8_t *data = NULL;
    size_t size = 0;
    if (offers_room)
        connection->protocol->room(connection->state, &data, &size);
    if (size == 0) {
        /* Body bytes that are read along with a head must be copied: read few of them. */
        bool is_head = offers_room || connection->protocol == NULL;
        data = connection->server->read_buffer;
        size = is_head ? HTTP1_HEAD_READ_BYTES : LANE_READ_BYTES;
    }
    *ret_room = uv_buf_init((char *)data, (unsigned)(size > INT32_MAX ? INT32_MAX : size));
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_room)
{
    struct http_connection *connection = handle->data;
    (void)suggested;
    if (connection->protocol != NULL && connection->tls == NULL &&
        connection->protocol->expects != NULL && !connection->is_closing &&
        connection->protocol->expects(connection->state))
        *ret_room = uv_buf_init(NULL, 0);
    else if (connection->tls != NULL)
        *ret_room = uv_buf_init((char *)connection->server->cipher_buffer, TLS_READ_BYTES);
    else
        http_connection_room(connection, ret_room);
}

/* Gives the protocol the bytes by which it was chosen and those after them at once: after the first
 * it may take no more until its response is written. */
static void receive_first(struct http_connection *connection, const uint8_t *data, size_t size)
{
    const size_t seen = connection->preface_size;
    uint8_t *whole = mem_alloc(seen + size);
    memcpy(whole, preface_text, seen);
    memcpy(whole + seen, data, size);
    connection->protocol->receive(connection->state, whole, seen + size);
    mem_free(whole);
}

void http_connection_take(struct http_connection *connection, const uint8_t *data, size_t size)
{
    assert(!connection->is_closing);
    if (connection->protocol == NULL) {
        /* Chooses the protocol by the first bytes. */
        assert(size > 0);
        size_t seen = connection->preface_size;
        size_t wanted = NGHTTP2_CLIENT_MAGIC_LEN - seen;
        size_t fresh = size < wanted ? size : wanted;
        bool is_http2 = memcmp(preface_text + seen, data, fresh) == 0;
        if (is_http2 && fresh < wanted) {
            connection->preface_size = (uint8_t)(seen + fresh);
        } else if (choose(connection, is_http2 ? &http2_protocol : &http1_protocol)) {
            if (seen > 0)
                receive_first(connection, data, size);
            else
                connection->protocol->receive(connection->state, data, size);
        }
    } else {
        connection->protocol->receive(connection->state, data, size);
    }
}

void http_connection_end_input(struct http_connection *connection)
{
    assert(!connection->is_closing);
    if (connection->protocol == NULL) {
        http_connection_close(connection);
        return;
    }
    http_connection_pause(connection);
    connection->protocol->end_of_input(connection->state);
}

static void read_expected(struct http_connection *connection)
{
    uv_os_fd_t fd;
    int failed = uv_fileno((const uv_handle_t *)&connection->tcp, &fd);
    assert(failed == 0);
    ssize_t count = connection->protocol->read_expected(connection->state, fd);
    if (count == 0 && !connection->is_closing)
        http_connection_end_input(connection);
    else if (count < 0 && count != -EAGAIN)
        http_connection_close(connection);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *room)
{
    struct http_connection *connection = stream->data;
    struct lane *lane;
    assert(connection->is_closing || connection->server != NULL);
    if (connection->is_closing || count == 0)
        return;
    lane = connection->server->settings.lane;
    if (count == UV_ENOBUFS)
        read_expected(connection); /* on_alloc gave no buffer */
    else if (count == UV_EOF)
        http_connection_end_input(connection);
    else if (count < 0)
        http_connection_close(connection);
    else if (connection->tls != NULL)
        server_tls_receive(connection, (const uint8_t *)room->base, (size_t)count);
    else
        http_connection_take(connection, (const uint8_t *)room->base, (size_t)count);
    if (!connection->tls_job.is_queued) /* else it does this */
        http_connection_input_taken(connection);
    lane_catch_up(lane);
}

void http_connection_pause(struct http_connection *connection)
{
    assert(connection->refs > 0);
    if (!connection->is_reading)
        return;
    connection->is_reading = false;
    uv_read_stop(stream_of(connection));
}

void http_connection_read_on(struct http_connection *connection)
{
    assert(connection->is_reading);
    if (connection->is_closing)
        return;
    int failed = uv_read_start(stream_of(connection), on_alloc, on_read);
    if (failed != 0 && failed != UV_EALREADY)
        http_connection_close(connection);
}

void http_connection_resume(struct http_connection *connection)
{
    assert(connection->refs > 0);
    if (connection->is_reading || connection->is_closing)
        return;
    connection->is_reading = true;
    if (connection->tls == NULL || !server_tls_resume(connection))
        http_connection_read_on(connection);
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
    if (protocol != NULL && !choose(connection, protocol))
        return;
    http_connection_resume(connection);
}

static void on_refused(void *arg)
{
    struct http_server *server = arg;
    assert(lane_is_current(server->settings.lane));
    if (server->settings.counters != NULL)
        counter_add(&server->settings.counters->connections_refused, 1);
}

/* Charges a connection, within the budget's margin. */
static bool charge(const struct http_server *server)
{
    struct budget *budget = server->settings.budget;
    return budget == NULL || budget_try_take_margin(budget, HTTP_CONNECTION_BYTES);
}

/* A request that is in the socket already is read first: closing would reset the connection, and
 * the client could not know what became of the request. */
static void stop_after_input(struct http_connection *connection)
{
    uv_os_fd_t fd;
    int size = 0;
    if (connection->is_reading && connection->tls != NULL && server_tls_has_input(connection))
        connection->is_stopping = true;
    else
        connection->is_stopping = connection->is_reading &&
                                  uv_fileno((const uv_handle_t *)&connection->tcp, &fd) == 0 &&
                                  ioctl(fd, FIONREAD, &size) == 0 && size > 0;
    if (!connection->is_stopping)
        stop(connection);
}

/* The listener's callback: takes over an accepted socket, and closes it on failure. After a stop
 * one may still come that was accepted on another lane meanwhile. */
static void adopt(void *arg, int fd, const struct sockaddr *peer)
{
    struct http_server *server = arg;
    assert(fd >= 0);
    assert(lane_is_current(server->settings.lane));
    if (!charge(server)) {
        on_refused(server);
        close(fd);
        atomic_fetch_sub_explicit(&server->member.open_count, 1, memory_order_relaxed);
        return;
    }
    struct http_connection *connection = mem_zalloc(sizeof(*connection));
    connection->server = server;
    connection->budget = server->settings.budget;
    connection->refs = 1;
    connection->deadline_ns = UINT64_MAX;
    connection->write_deadline_ns = UINT64_MAX;
    connection->write_until_ns = UINT64_MAX;
    timer_init(&connection->timer, on_timer, connection);
    endpoint_print_host(peer, connection->peer);
    if (server->read_buffer == NULL)
        server->read_buffer = mem_alloc(LANE_READ_BYTES);
    connection->next = server->connections;
    if (connection->next != NULL)
        connection->next->prev = connection;
    server->connections = connection;
    server->figures.connections++;
    server->figures.connections_total++;
    int failed = uv_tcp_init(lane_loop(server->settings.lane), &connection->tcp);
    assert(failed == 0);
    connection->tcp.data = connection;
    failed = uv_tcp_open(&connection->tcp, fd);
    if (failed != 0)
        close(fd);
    if (failed != 0)
        http_connection_close(connection);
    else if (server->settings.tls != NULL)
        server_tls_begin(connection);
    else
        http_connection_begin(connection, NULL);
    if (server->is_stopping && !connection->is_closing)
        stop_after_input(connection);
}

static void on_done_job(void *arg)
{
    struct http_server *server = arg;
    assert(server->is_stopping && !server->is_done);
    server->is_done = true;
    server->done(server->done_arg);
}

static void on_left(void *arg)
{
    check_done(arg);
}

struct http_server *http_server_create(const struct http_server_settings *settings)
{
    assert(settings->has_http1 || settings->has_http2);
    struct http_server *server = mem_zalloc(sizeof(*server));
    server->settings = *settings;
    if (server->settings.header_deadline_ns == 0)
        server->settings.header_deadline_ns = HTTP_HEADER_DEADLINE_NS;
    if (server->settings.idle_ns == 0)
        server->settings.idle_ns = HTTP1_IDLE_NS;
    server->member.lane = settings->lane;
    server->member.adopt = adopt;
    server->member.refused = on_refused;
    server->member.left = on_left;
    server->member.arg = server;
    server->done_job.fn = on_done_job;
    server->done_job.arg = server;
    server->date_second = -1;
    return server;
}

void http_server_destroy(struct http_server *server)
{
    if (server == NULL)
        return;
    assert(server->connections == NULL);
    assert(server->held == 0);
    assert(server->member.listener == NULL);
    lane_defer_cancel(server->settings.lane, &server->done_job);
    mem_free(server->read_buffer);
    mem_free(server->cipher_buffer);
    mem_free(server);
}

bool http_server_listen(struct http_server *const *servers, size_t count, const char *transport,
                        const char *endpoint, struct error *error)
{
    assert(count > 0 && count <= LANES_MAX);
    struct listener_member *members[LANES_MAX];
    for (size_t i = 0; i < count; i++) {
        assert(!servers[i]->is_stopping);
        members[i] = &servers[i]->member;
    }
    return listener_open(members, count, CONNECTIONS_MAX, transport, endpoint, error);
}

const char *http_server_address(const struct http_server *server)
{
    return listener_address(server->member.listener);
}

void http_server_stop(struct http_server *server, void (*done)(void *arg), void *arg)
{
    assert(lane_is_current(server->settings.lane));
    assert(!server->is_stopping);
    server->is_stopping = true;
    server->done = done;
    server->done_arg = arg;
    if (server->member.listener != NULL)
        listener_leave(&server->member);
    for (struct http_connection *c = server->connections; c != NULL; c = c->next) {
        if (c->is_closing)
            continue;
        stop_after_input(c);
        if (c->writes_waiting > 0 && !c->is_closing && server->settings.write_deadline_ns == 0)
            start_write_deadline(c);
    }
    check_done(server);
}

void http_server_abort(struct http_server *server)
{
    assert(lane_is_current(server->settings.lane));
    for (struct http_connection *c = server->connections; c != NULL; c = c->next)
        http_connection_close(c);
}

struct http_server_figures http_server_figures(const struct http_server *server)
{
    assert(lane_is_current(server->settings.lane));
    struct http_server_figures figures = server->figures;
    if (server->member.listener != NULL)
        figures.refused_total = listener_refused(server->member.listener);
    return figures;
}
