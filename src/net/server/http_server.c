/* SPDX-License-Identifier: Apache-2.0 */
/* The server object: its settings, its connections, and how it stops. On its lane. */
#include "src/net/server/http_server.h"

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/server/http_connection.h"
#include "src/net/server/http_server_state.h"
#include "src/net/socket/listener.h"

#include <assert.h>
#include <string.h>

/* Done once nothing listens and no connection is open; told from the end of a turn. */
static void check_done(struct http_server *server)
{
    assert(server != NULL);
    if (!server->is_stopping || server->is_done)
        return;
    if (server->connections == NULL && server->member.listener == NULL)
        lane_defer(server->settings.lane, &server->done_job);
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

static void adopt(void *arg, int fd, const struct sockaddr *peer)
{
    assert(arg != NULL);
    http_connection_open(arg, fd, peer);
}

struct http_server *http_server_create(const struct http_server_settings *settings)
{
    assert(settings->lane != NULL);
    assert(settings->has_http1 || settings->has_http2);
    assert(settings->handler->on_request != NULL);
    struct http_server *server = mem_zalloc(sizeof(*server));
    server->settings = *settings;
    if (server->settings.header_deadline_ns == 0)
        server->settings.header_deadline_ns = HTTP_HEADER_DEADLINE_NS;
    if (server->settings.idle_ns == 0)
        server->settings.idle_ns = HTTP1_IDLE_NS;
    server->member.lane = settings->lane;
    server->member.adopt = adopt;
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
    assert(server->member.listener == NULL);
    lane_defer_cancel(server->settings.lane, &server->done_job);
    mem_free(server->read_buffer);
    mem_free(server->cipher_buffer);
    mem_free(server);
}

bool http_server_listen(struct http_server *const *servers, size_t count, const char *transport,
                        const char *endpoint, struct error *error)
{
    assert(error != NULL);
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
    assert(server->member.listener != NULL);
    return listener_address(server->member.listener);
}

void http_server_stop(struct http_server *server, void (*done)(void *arg), void *arg)
{
    assert(lane_is_current(server->settings.lane));
    assert(!server->is_stopping);
    assert(done != NULL);
    server->is_stopping = true;
    server->done = done;
    server->done_arg = arg;
    if (server->member.listener != NULL)
        listener_leave(&server->member);
    for (struct http_connection *c = server->connections; c != NULL; c = c->next)
        http_connection_stop(c);
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
    assert(server != NULL);
    time_t second = (time_t)(clock_wall_ns() / NS_PER_S);
    if (second == server->date_second)
        return server->date_text;
    struct tm utc;
    gmtime_r(&second, &utc);
    size_t size = strftime(server->date_text, HTTP_DATE_SIZE, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    assert(size == HTTP_DATE_SIZE - 1);
    (void)size;
    server->date_second = second;
    return server->date_text;
}

void http_server_link(struct http_server *server, struct http_connection *connection)
{
    assert(connection->next == NULL);
    assert(connection->prev == NULL);
    if (server->read_buffer == NULL)
        server->read_buffer = mem_alloc(LANE_READ_BYTES);
    connection->next = server->connections;
    if (connection->next != NULL)
        connection->next->prev = connection;
    server->connections = connection;
    server->figures.connections++;
    server->figures.connections_total++;
}

void http_server_unlink(struct http_server *server, struct http_connection *connection)
{
    assert(server->figures.connections > 0);
    if (connection->prev != NULL)
        connection->prev->next = connection->next;
    else
        server->connections = connection->next;
    if (connection->next != NULL)
        connection->next->prev = connection->prev;
    connection->next = NULL;
    connection->prev = NULL;
    server->figures.connections--;
    atomic_fetch_sub_explicit(&server->member.open_count, 1, memory_order_relaxed);
    check_done(server);
}
