/* SPDX-License-Identifier: Apache-2.0 */
/* Moves bytes between a socket, a TLS channel and a protocol. While the socket takes no more, the
 * plaintext of a response waits; replies to the client's records wait in the channel, which bounds
 * them. While the protocol has paused, what was read last, TLS_READ_BYTES at most, waits there too:
 * the socket is read again once it is used up. On the server's lane. */
#include "src/net/server/http_connection.h"

#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/socket/socket_part.h"
#include "src/net/tls/tls_channel.h"
#include "src/net/tls/tls_context.h"

#include <assert.h>
#include <string.h>

/* RFC 8446 §6. */
enum { ALERT_FATAL = 2, ALERT_INTERNAL_ERROR = 80 };

/* As Go's HTTP server responds to cleartext requests. */
static const char cleartext_response[] = "HTTP/1.0 400 Bad Request\r\n\r\n"
                                         "Client sent an HTTP request to an HTTPS server.\n";

static void report(struct http_connection *connection, const char *reason)
{
    struct http_server *server = connection->server;
    server->figures.handshakes_failed_total++;
    tls_context_handshake_failed(server->settings.tls, connection->peer, reason);
}

/* Raises, with take, or lowers the connection's charge. False: the budget has no room. */
static bool charge(struct http_connection *connection, uint64_t bytes,
                   bool (*take)(struct budget *budget, uint64_t amount))
{
    const struct http_server_settings *settings = &connection->server->settings;
    uint64_t held = connection->tls_charge;
    if (bytes > held && !take(settings->budget, bytes - held))
        return false;
    if (bytes < held)
        budget_return(settings->budget, held - bytes);
    connection->tls_charge = bytes;
    return true;
}

/* The same during the handshake. All unauthenticated handshakes share a part of the budget, so that
 * they cannot starve requests. Returns NULL, or why not. */
static const char *charge_handshake(struct http_connection *connection, uint64_t bytes)
{
    struct http_server *server = connection->server;
    uint64_t more = bytes - connection->tls_charge;
    assert(bytes >= connection->tls_charge);
    uint64_t part = budget_limit(server->settings.budget) / TLS_HANDSHAKES_PART;
    if (server->handshakes_charge + more > part)
        return "too many handshakes at once";
    if (!charge(connection, bytes, budget_try_take))
        return "the memory budget is used up";
    server->handshakes_charge += more;
    return NULL;
}

static void end_handshake(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    assert(server->handshakes_charge >= connection->tls_charge);
    server->handshakes_charge -= connection->tls_charge;
}

/* After an alert clients retry later; without one they suspect the network. */
static void refuse(struct http_connection *connection, const char *reason, bool sends_alert)
{
    char alert[] = {21, 3, 1, 0, 2, ALERT_FATAL, ALERT_INTERNAL_ERROR};
    uv_buf_t part = socket_part(alert, sizeof(alert));
    report(connection, reason);
    if (sends_alert)
        http_connection_send(connection, &part, 1);
    http_connection_abort(connection);
}

/* Plaintext that is encrypted once the socket has taken what came before it. */
struct plain_rest {
    size_t size;
    size_t at; /* what is encrypted already */
    uint8_t data[];
};

static void free_rest(struct http_connection *connection)
{
    struct plain_rest *rest = connection->rest;
    if (rest == NULL)
        return;
    budget_return(connection->budget, sizeof(*rest) + rest->size);
    mem_free_large(rest, sizeof(*rest) + rest->size);
    connection->rest = NULL;
}

/* Keeps what the socket does not take now, behind what is kept already. Charges from the margin,
 * too, as for output in cleartext. */
static void keep_rest(struct http_connection *connection, const uv_buf_t *parts, unsigned count)
{
    struct plain_rest *old = connection->rest;
    size_t size = old != NULL ? old->size - old->at : 0;
    size_t used = size;
    assert(connection->writes_waiting > 0);
    for (unsigned i = 0; i < count; i++)
        size += parts[i].len;
    if (size == used)
        return;
    const size_t bytes = sizeof(*old) + size;
    struct plain_rest *rest = NULL;
    if (budget_try_take_margin(connection->budget, bytes)) {
        rest = mem_try_alloc_large(bytes);
        if (rest == NULL)
            budget_return(connection->budget, bytes);
    }
    if (rest == NULL) {
        http_connection_close(connection);
        return;
    }
    rest->size = size;
    rest->at = 0;
    if (used > 0)
        memcpy(rest->data, old->data + old->at, used);
    for (unsigned i = 0; i < count; i++) {
        if (parts[i].len > 0)
            memcpy(rest->data + used, parts[i].base, parts[i].len);
        used += parts[i].len;
    }
    free_rest(connection);
    connection->rest = rest;
}

/* False: the connection is closing, since the channel has failed. */
static bool encrypt(struct http_connection *connection, const void *data, size_t size)
{
    const struct slice plaintext = {.data = data, .size = size};
    if (!tls_channel_write(connection->tls, plaintext))
        http_connection_close(connection);
    return !connection->is_closing;
}

/* Writes ciphertext. False: some of it waits, or the connection is closing. */
static bool send_output(struct http_connection *connection)
{
    assert(!connection->is_closing);
    if (connection->writes_waiting > 0)
        return false;
    struct slice output = tls_channel_output(connection->tls);
    if (output.size == 0)
        return true;
    uv_buf_t part = socket_part(output.data, output.size);
    bool is_written = http_connection_send(connection, &part, 1);
    tls_channel_sent(connection->tls, output.size);
    return is_written;
}

bool server_tls_flush(struct http_connection *connection)
{
    bool is_written = send_output(connection);
    while (is_written && connection->rest != NULL) {
        struct plain_rest *rest = connection->rest;
        size_t left = rest->size - rest->at;
        size_t step = left < TLS_WRITE_BYTES ? left : TLS_WRITE_BYTES;
        if (!encrypt(connection, rest->data + rest->at, step))
            return false;
        rest->at += step;
        if (rest->at == rest->size)
            free_rest(connection);
        is_written = send_output(connection);
    }
    return is_written;
}

/* Input that is left takes its turn behind that of others: a step of a handshake takes about a
 * millisecond, and any number of clients may be at one. */
static void wait_for_turn(struct http_connection *connection)
{
    http_connection_pause(connection);
    http_connection_resume(connection);
    assert(connection->tls_job.is_queued);
}

/* Decrypts what was fed and hands it to the protocol, which the handshake chooses. */
static void pump(struct http_connection *connection)
{
    struct tls_channel *tls = connection->tls;
    bool has_http1 = connection->server->settings.has_http1;
    ptrdiff_t count = 1;
    assert(!connection->is_closing);
    while (count > 0 && !connection->is_closing && connection->is_reading) {
        uv_buf_t room;
        bool was_open = tls_channel_is_open(tls);
        http_connection_room(connection, &room);
        count = tls_channel_read(tls, room.base, room.len);
        if (!was_open && tls_channel_is_open(tls)) {
            end_handshake(connection);
            charge(connection, TLS_CONNECTION_BYTES, budget_try_take);
            /* Like grpc-go, a server without HTTP/1 requires that ALPN has chosen h2. */
            const char *name = tls_channel_protocol(tls);
            assert(connection->protocol == NULL);
            if (strcmp(name, "h2") == 0) {
                http_connection_begin(connection, &http2_protocol);
            } else if (strcmp(name, "http/1.1") == 0) {
                http_connection_begin(connection, &http1_protocol);
            } else if (has_http1) {
                http_connection_begin(connection, NULL);
            } else {
                report(connection,
                       "the client does not offer the protocol h2 (ALPN), which gRPC needs");
                http_connection_abort(connection);
            }
        }
        if (count > 0 && !connection->is_closing)
            http_connection_take(connection, (const uint8_t *)room.base, (size_t)count);
    }
    if (connection->is_closing)
        return;
    if (count == TLS_FAILED) {
        if (!tls_channel_is_open(tls))
            report(connection, tls_channel_error(tls));
        if (tls_channel_met_http(tls) && has_http1) {
            uv_buf_t part = socket_part(cleartext_response, sizeof(cleartext_response) - 1);
            http_connection_send(connection, &part, 1);
        } else {
            server_tls_flush(connection); /* the alert */
        }
        http_connection_abort(connection);
    } else if (count == TLS_CLOSED) {
        http_connection_end_input(connection);
    }
    if (!connection->is_closing)
        server_tls_flush(connection);
    if (connection->is_closing)
        return;
    /* From the margin too, as for input that HTTP/1 keeps. */
    bool is_kept = tls_channel_keep(tls);
    if (is_kept && tls_channel_is_open(tls))
        is_kept = charge(connection, TLS_CONNECTION_BYTES + tls_channel_kept(tls),
                         budget_try_take_margin);
    if (!is_kept)
        http_connection_abort(connection);
    else if (connection->is_reading && tls_channel_has_input(tls))
        wait_for_turn(connection);
}

static void on_job(void *arg)
{
    struct http_connection *connection = arg;
    assert(!connection->is_closing);
    if (connection->is_reading)
        pump(connection);
    if (connection->tls_job.is_queued)
        return;
    /* If that has paused the connection, what is left must be used up first. */
    if (connection->is_reading)
        http_connection_read_on(connection);
    http_connection_input_taken(connection);
}

void server_tls_begin(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    struct error error;
    assert(connection->tls == NULL);
    /* All that the handshake takes but its input: who is let in can go on, however many come. */
    const char *reason = charge_handshake(connection, TLS_HANDSHAKE_BYTES);
    if (reason != NULL) {
        refuse(connection, reason, true);
        return;
    }
    if (server->cipher_buffer == NULL)
        server->cipher_buffer = mem_alloc(TLS_READ_BYTES);
    connection->tls_job = (struct lane_job){.fn = on_job, .arg = connection};
    connection->tls = tls_channel_create(server->settings.tls, NULL, &error);
    if (connection->tls == NULL) {
        report(connection, error.text);
        http_connection_close(connection);
        return;
    }
    http_connection_set_deadline(connection, TLS_HANDSHAKE_NS);
    http_connection_resume(connection);
}

void server_tls_receive(struct http_connection *connection, const uint8_t *data, size_t size)
{
    assert(size > 0);
    if (!tls_channel_is_open(connection->tls)) {
        if (connection->tls_input > TLS_HANDSHAKE_INPUT_MAX) {
            report(connection, "the client sends more than a handshake needs");
            http_connection_abort(connection);
            return;
        }
        bool is_first = connection->tls_input == 0;
        connection->tls_input += size;
        const char *reason =
            charge_handshake(connection, TLS_HANDSHAKE_BYTES + connection->tls_input);
        if (reason != NULL) {
            refuse(connection, reason, is_first);
            return;
        }
    }
    tls_channel_feed(connection->tls, (struct slice){.data = data, .size = size});
    if (tls_channel_is_open(connection->tls))
        pump(connection);
    else if (tls_channel_keep(connection->tls))
        wait_for_turn(connection);
    else
        http_connection_abort(connection);
}

bool server_tls_write(struct http_connection *connection, uv_buf_t *parts, unsigned count)
{
    assert(!connection->is_closing);
    size_t unsent = 0;
    bool is_written = connection->writes_waiting == 0;
    /* The head of a response is sent with the beginning of its body. */
    for (; is_written && count > 0; parts++, count--) {
        while (is_written && parts->len > 0) {
            size_t room = TLS_WRITE_BYTES - unsent;
            size_t step = parts->len < room ? parts->len : room;
            if (!encrypt(connection, parts->base, step))
                return false;
            parts->base += step;
            parts->len -= step;
            unsent += step;
            if (unsent < TLS_WRITE_BYTES)
                continue;
            unsent = 0;
            is_written = send_output(connection);
        }
        if (!is_written)
            break;
    }
    if (is_written)
        return send_output(connection);
    if (!connection->is_closing)
        keep_rest(connection, parts, count);
    return false;
}

bool server_tls_end(struct http_connection *connection)
{
    assert(!connection->is_closing);
    assert(connection->rest == NULL);
    tls_channel_end(connection->tls);
    return server_tls_flush(connection);
}

bool server_tls_resume(struct http_connection *connection)
{
    assert(connection->is_reading);
    if (!tls_channel_has_input(connection->tls))
        return false;
    lane_defer(connection->server->settings.lane, &connection->tls_job);
    return true;
}

bool server_tls_has_input(const struct http_connection *connection)
{
    return tls_channel_has_input(connection->tls);
}

void server_tls_expire(struct http_connection *connection)
{
    assert(connection->protocol == NULL);
    if (!tls_channel_is_open(connection->tls))
        report(connection, "the client did not finish the handshake in time");
}

void server_tls_close(struct http_connection *connection)
{
    assert(!connection->is_closing);
    lane_defer_cancel(connection->server->settings.lane, &connection->tls_job);
    tls_channel_end(connection->tls);
    struct slice output = tls_channel_output(connection->tls);
    uv_buf_t part = socket_part(output.data, output.size);
    if (output.size > 0 && connection->writes_waiting == 0)
        uv_try_write((uv_stream_t *)&connection->tcp, &part, 1);
}

void server_tls_closed(struct http_connection *connection)
{
    assert(connection->is_closing);
    free_rest(connection);
    if (connection->tls_charge == 0)
        return;
    if (connection->tls == NULL || !tls_channel_is_open(connection->tls))
        end_handshake(connection);
    tls_channel_destroy(connection->tls);
    connection->tls = NULL;
    charge(connection, 0, budget_try_take);
}
