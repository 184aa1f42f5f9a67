/* SPDX-License-Identifier: Apache-2.0 */
/* The connection pool of the HTTP/1.1 client. An exchange waits until it gets an idle connection or
 * may open one, then runs until its response, failure or deadline. A connection is idle or has one
 * running exchange. On the client's lane. */
#include "src/net/client/http1_client.h"

#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/core/batch.h"
#include "src/net/client/backend_addresses.h"
#include "src/net/client/client_socket.h"
#include "src/net/client/http1_client_conn.h"
#include "src/net/client/http_post.h"
#include "src/net/syntax/http_url.h"
#include "src/net/syntax/retry_after.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { ERROR_BYTES_MAX = 512, HEAD_BUFFERS = 3 };

struct exchange {
    struct http1_client *client;
    struct http_post post;
    struct exchange *next; /* in client->waiting or client->running */
    struct exchange *prev;
    struct http1_client_conn *connection; /* NULL while it waits */
    struct timer deadline;
    bool was_repeated; /* its first connection was stale */
    size_t tried;      /* addresses that were unreachable */
    char *credentials; /* a header line; NULL: none */
    char *head;        /* the whole head, instead of all others; NULL: the usual one */
    size_t tail_size;
    char tail[REQUEST_HEAD_TAIL_MAX];
};

struct exchange_list {
    struct exchange *first;
    struct exchange *last;
};

struct http1_client {
    const struct http_client_settings *settings;
    const struct http_url *url;
    struct lane *lane;
    char *head;
    size_t head_size;
    size_t method_size; /* of the head, up to the target */
    size_t line_size;   /* up to the end of the target */
    struct backend_addresses addresses;
    struct exchange_list waiting;
    struct exchange_list running;
    struct http1_client_conn *idle; /* most recently used first */
    uint64_t idle_count;
    uint64_t open_count;    /* connections, including idle ones */
    uint64_t closing_count; /* connections waiting for on_closed */
    struct lane_job job;    /* serves waiting exchanges, or ends closing */
    bool is_closing;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void list_append(struct exchange_list *list, struct exchange *exchange)
{
    assert(exchange->connection == NULL);
    exchange->next = NULL;
    exchange->prev = list->last;
    *(exchange->prev == NULL ? &list->first : &exchange->prev->next) = exchange;
    list->last = exchange;
}

static void list_remove(struct exchange_list *list, struct exchange *exchange)
{
    *(exchange->prev == NULL ? &list->first : &exchange->prev->next) = exchange->next;
    *(exchange->next == NULL ? &list->last : &exchange->next->prev) = exchange->prev;
}

static void idle_remove(struct http1_client *client, struct http1_client_conn *connection)
{
    assert(client->idle_count > 0);
    *(connection->prev == NULL ? &client->idle : &connection->prev->next) = connection->next;
    if (connection->next != NULL)
        connection->next->prev = connection->prev;
    client->idle_count--;
}

/* Another connection may be opened at once. */
static void connection_end(struct http1_client *client, struct http1_client_conn *connection)
{
    assert(connection->state != HTTP1_CLOSING);
    assert(client->open_count > 0);
    if (connection->state == HTTP1_IDLE)
        idle_remove(client, connection);
    client->open_count--;
    client->closing_count++;
    http1_client_conn_close(connection);
    lane_defer(client->lane, &client->job);
}

/* Takes the exchange off its connection, which the caller closes or keeps idle. */
static struct http1_client_conn *exchange_detach(struct exchange *exchange)
{
    struct http1_client_conn *connection = exchange->connection;
    assert(connection->exchange == exchange);
    connection->exchange = NULL;
    exchange->connection = NULL;
    list_remove(&exchange->client->running, exchange);
    return connection;
}

static void exchange_wait_again(struct exchange *exchange)
{
    connection_end(exchange->client, exchange_detach(exchange));
    list_append(&exchange->client->waiting, exchange);
}

/* Frees an exchange, which is in no list any more, and calls done, which may post or close. */
static void exchange_end(struct exchange *exchange, const struct http_result *result)
{
    struct http1_client *client = exchange->client;
    struct http_post post = exchange->post;
    assert(exchange->connection == NULL);
    lane_timer_stop(client->lane, &exchange->deadline);
    secret_free(exchange->credentials);
    secret_free(exchange->head);
    mem_free(exchange);
    lane_defer(client->lane, &client->job);
    post.done(result, post.arg);
}

static void exchange_fail_with(struct exchange *exchange, const struct http_result *result)
{
    struct http1_client *client = exchange->client;
    if (exchange->connection != NULL)
        connection_end(client, exchange_detach(exchange));
    else
        list_remove(&client->waiting, exchange);
    exchange_end(exchange, result);
}

static void exchange_fail(struct exchange *exchange, const char *reason)
{
    exchange_fail_with(exchange, &(struct http_result){.error = reason});
}

static void on_response(struct http1_client_conn *connection)
{
    struct http1_client *client = connection->owner;
    struct exchange *exchange = connection->exchange;
    const struct http_client_settings *settings = client->settings;
    const struct http1_response *response = &connection->response;
    struct http_result result = {
        .status = response->status,
        .content_type = slice_of_text(response->content_type),
        .content_encoding = slice_of_text(response->content_encoding),
        .body = http1_response_body(response),
        .is_cut = response->is_cut,
        .location = response->location,
        .notes = &response->notes,
    };
    if ((response->status == 429 || response->status == 503) && response->has_retry_after)
        result.has_retry_after =
            retry_after_parse(response->retry_after, clock_wall_ns(), &result.retry_after_ns);
    bool is_kept = response->keeps_alive && connection->is_written && settings->has_keep_alive &&
                   client->idle_count < settings->idle_connections_max;
    exchange_detach(exchange);
    if (is_kept) {
        http1_client_conn_rest(connection, settings->idle_timeout_ns);
        connection->prev = NULL;
        connection->next = client->idle;
        if (connection->next != NULL)
            connection->next->prev = connection;
        client->idle = connection;
        client->idle_count++;
    } else {
        connection_end(client, connection);
    }
    /* The response is still valid: it is reset by the next use of the connection, or freed later.
     */
    exchange_end(exchange, &result);
}

/* The peer may have closed an idle connection while the request was being sent. If no byte of a
 * response was received, the request is sent once more, on a new connection. */
static void on_broken(struct http1_client_conn *connection, const char *reason)
{
    struct exchange *exchange = connection->exchange;
    if (exchange == NULL) {
        connection_end(connection->owner, connection);
    } else if (connection->is_reused && !connection->has_heard && !exchange->was_repeated) {
        exchange->was_repeated = true;
        exchange_wait_again(exchange);
    } else {
        exchange_fail(exchange, reason);
    }
}

static void on_idle_end(struct http1_client_conn *connection)
{
    assert(connection->exchange == NULL);
    connection_end(connection->owner, connection);
}

static void on_closed(struct http1_client_conn *connection)
{
    struct http1_client *client = connection->owner;
    assert(client->closing_count > 0);
    client->closing_count--;
    if (client->is_closing)
        lane_defer(client->lane, &client->job);
}

static void exchange_send(struct exchange *exchange)
{
    const struct http_post *post = &exchange->post;
    uv_buf_t *buffers = mem_alloc((HEAD_BUFFERS + 2 + post->parts_count) * sizeof(*buffers));
    /* Method, target and the constant headers. */
    const struct http1_client *client = exchange->client;
    size_t count = 0;
    if (exchange->head != NULL) {
        buffers[count++] = (uv_buf_t){.base = exchange->head, .len = strlen(exchange->head)};
    } else if (post->target == NULL) {
        buffers[count++] = (uv_buf_t){.base = client->head, .len = client->head_size};
    } else {
        assert(post->target[0] == '/');
        buffers[count++] = (uv_buf_t){.base = client->head, .len = client->method_size};
        buffers[count++] =
            (uv_buf_t){.base = (char *)(uintptr_t)post->target, .len = strlen(post->target)};
        buffers[count++] = (uv_buf_t){.base = client->head + client->line_size,
                                      .len = client->head_size - client->line_size};
    }
    if (exchange->credentials != NULL)
        buffers[count++] =
            (uv_buf_t){.base = exchange->credentials, .len = strlen(exchange->credentials)};
    if (exchange->tail_size > 0)
        buffers[count++] = (uv_buf_t){.base = exchange->tail, .len = exchange->tail_size};
    for (size_t i = 0; i < post->parts_count; i++) {
        struct slice bytes = post->parts[i].bytes;
        /* uv_buf_t is not const because it is for reading, too. */
        buffers[count++] = (uv_buf_t){.base = (char *)(uintptr_t)bytes.data, .len = bytes.size};
    }
    int error =
        http1_client_conn_send(exchange->connection, buffers, count, &post->sink, post->noted);
    mem_free(buffers);
    if (error != 0)
        exchange_fail(exchange, uv_strerror(error));
}

static void on_connected(struct http1_client_conn *connection, int result)
{
    struct http1_client *client = connection->owner;
    struct exchange *exchange = connection->exchange;
    /* A look-up in between may have found fewer addresses. */
    size_t last = client->addresses.count - 1;
    size_t tried = exchange->tried < last ? exchange->tried : last;
    if (result == 0) {
        backend_address_is_good(&client->addresses, tried);
        exchange_send(exchange);
    } else if (tried < last) {
        exchange->tried = tried + 1;
        exchange_wait_again(exchange);
    } else {
        char message[ERROR_BYTES_MAX];
        client_socket_dial_error(backend_address(&client->addresses, tried), result, message,
                                 sizeof(message));
        backend_addresses_forget(&client->addresses);
        exchange_fail(exchange, message);
    }
}

static const struct http1_client_conn_events connection_events = {
    .on_connected = on_connected,
    .on_response = on_response,
    .on_broken = on_broken,
    .on_idle_end = on_idle_end,
    .on_closed = on_closed,
};

static void exchange_run(struct exchange *exchange, struct http1_client_conn *connection)
{
    assert(connection->exchange == NULL);
    list_remove(&exchange->client->waiting, exchange);
    list_append(&exchange->client->running, exchange);
    exchange->connection = connection;
    connection->exchange = exchange;
}

static void on_resolved(int result, void *arg)
{
    struct http1_client *client = arg;
    char message[ERROR_BYTES_MAX];
    lane_defer(client->lane, &client->job);
    if (result == 0 || client->is_closing)
        return;
    bool is_unknown = result == UV_EAI_NONAME || result == UV_EAI_NODATA;
    snprintf(message, sizeof(message), "dial tcp: lookup %s: %s", client->addresses.host,
             is_unknown ? "no such host" : uv_strerror(result));
    /* Requests posted by done wait for another look-up. */
    struct exchange *last = client->waiting.last;
    for (bool is_last = last == NULL; !is_last && client->waiting.first != NULL;) {
        is_last = client->waiting.first == last;
        exchange_fail(client->waiting.first, message);
    }
}

/* Starts the oldest waiting exchange, or the look-up it needs. False: it must wait. */
static bool serve_first(struct http1_client *client)
{
    struct exchange *exchange = client->waiting.first;
    bool wants_new = exchange->was_repeated || exchange->tried > 0;
    struct http1_client_conn *connection = client->idle;
    if (connection != NULL && !wants_new) {
        idle_remove(client, connection);
        exchange_run(exchange, connection);
        exchange_send(exchange);
        return true;
    }
    assert(client->idle_count <= client->open_count);
    uint64_t max = client->settings->connections_max;
    if (max != 0 && client->open_count >= max && client->idle != NULL)
        connection_end(client, client->idle);
    if ((max != 0 && client->open_count >= max) || client->addresses.is_resolving)
        return false;
    if (backend_addresses_are_fresh(&client->addresses)) {
        size_t last = client->addresses.count - 1;
        size_t tried = exchange->tried < last ? exchange->tried : last;
        connection = http1_client_conn_create(client->lane, client->settings->budget,
                                              backend_address(&client->addresses, tried),
                                              &connection_events);
        connection->owner = client;
        client->open_count++;
        exchange_run(exchange, connection);
        return true;
    }
    int error = backend_addresses_resolve(&client->addresses, on_resolved, client);
    if (error != 0)
        exchange_fail(exchange, uv_strerror(error));
    return error != 0;
}

static void on_job(void *arg)
{
    struct http1_client *client = arg;
    assert(lane_is_current(client->lane));
    if (!client->is_closing) {
        while (client->waiting.first != NULL && serve_first(client))
            continue;
        return;
    }
    bool is_closed = client->closing_count == 0 && !client->addresses.is_resolving;
    void (*closed)(void *arg) = client->closed;
    if (is_closed && closed != NULL) {
        client->closed = NULL;
        closed(client->closed_arg);
    }
}

static void on_deadline(struct timer *timer, void *arg)
{
    struct exchange *exchange = arg;
    struct http1_client_conn *connection = exchange->connection;
    (void)timer;
    if (connection != NULL && connection->response.status != 0) {
        connection->response.is_cut = true;
        connection->response.keeps_alive = false;
        on_response(connection);
    } else {
        exchange_fail_with(exchange, &(struct http_result){
                                         .error = "context deadline exceeded (Client.Timeout "
                                                  "exceeded while awaiting headers)",
                                         .is_late = true,
                                     });
    }
}

struct http1_client *http1_client_create(const struct http_client_settings *settings,
                                         const struct http_url *url)
{
    assert(!url->is_https);
    struct http1_client *client = mem_zalloc(sizeof(*client));
    client->settings = settings;
    client->url = url;
    client->lane = settings->lane;
    client->head = request_head_text(settings, url);
    client->head_size = strlen(client->head);
    client->method_size = strlen(request_method(settings)) + 1;
    client->line_size = client->method_size + strlen(url->target);
    client->job = (struct lane_job){.fn = on_job, .arg = client};
    backend_addresses_init(&client->addresses, settings->lane, url->host, url->port);
    return client;
}

void http1_client_post(struct http1_client *client, const struct http_post *post)
{
    assert(lane_is_current(client->lane));
    assert(!client->is_closing);
    struct exchange *exchange = mem_zalloc(sizeof(*exchange));
    exchange->client = client;
    exchange->post = *post;
    if (post->edits != NULL) {
        exchange->head = request_head_edited(client->settings, client->url, post);
    } else {
        exchange->credentials = request_head_credentials(client->settings);
        exchange->tail_size = request_head_tail(client->settings, post, exchange->tail);
    }
    timer_init(&exchange->deadline, on_deadline, exchange);
    if (client->settings->timeout_ns > 0)
        lane_timer_start(client->lane, &exchange->deadline,
                         request_timeout_ns(client->settings, post));
    list_append(&client->waiting, exchange);
    lane_defer(client->lane, &client->job);
}

void http1_client_close(struct http1_client *client, void (*closed)(void *arg), void *arg)
{
    assert(lane_is_current(client->lane));
    assert(!client->is_closing);
    client->is_closing = true;
    client->closed = closed;
    client->closed_arg = arg;
    while (client->running.first != NULL)
        exchange_fail(client->running.first, "the client is shutting down");
    while (client->waiting.first != NULL)
        exchange_fail(client->waiting.first, "the client is shutting down");
    while (client->idle != NULL)
        connection_end(client, client->idle);
    lane_defer(client->lane, &client->job);
}

void http1_client_destroy(struct http1_client *client)
{
    if (client == NULL)
        return;
    assert(client->open_count == 0);
    assert(client->closing_count == 0);
    assert(client->waiting.first == NULL);
    lane_defer_cancel(client->lane, &client->job);
    mem_free(client->head);
    mem_free(client);
}
