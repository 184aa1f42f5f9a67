/* SPDX-License-Identifier: Apache-2.0 */
/* What comes in on a connection: where it is read to, what the first bytes say about the protocol,
 * and when to read at all. On the server's lane. */
#include "src/net/server/http_connection.h"

#include "src/base/limits.h"
#include "src/net/server/http_secure.h"
#include "src/net/server/http_server_state.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* RFC 9113 §3.4. */
static const char preface_text[HTTP_PREFACE_SIZE + 1] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* The first bytes: HTTP/2 begins with a preface that is no HTTP/1 request. */
static void sniff(struct http_connection *connection, const uint8_t *data, size_t size)
{
    assert(size > 0);
    assert(connection->protocol == NULL);
    size_t seen = connection->preface_size;
    size_t wanted = HTTP_PREFACE_SIZE - seen;
    size_t fresh = size < wanted ? size : wanted;
    bool is_http2 = memcmp(preface_text + seen, data, fresh) == 0;
    if (is_http2 && fresh < wanted) {
        connection->preface_size = (uint8_t)(seen + fresh);
        return;
    }
    if (!http_connection_choose(connection, is_http2 ? &http2_protocol : &http1_protocol))
        return;
    if (seen > 0)
        connection->protocol->receive(connection->state, (const uint8_t *)preface_text, seen);
    if (!connection->is_closing)
        connection->protocol->receive(connection->state, data, size);
}

void http_connection_room(struct http_connection *connection, uv_buf_t *ret_room)
{
    assert(ret_room != NULL);
    bool offers_room = connection->protocol != NULL && connection->protocol->room != NULL;
    uint8_t *data = NULL;
    size_t size = 0;
    if (offers_room)
        connection->protocol->room(connection->state, &data, &size);
    if (size == 0) {
        /* A head comes first, and what of the body is read along with it has to be copied. */
        bool is_head = offers_room || connection->protocol == NULL;
        data = connection->server->read_buffer;
        size = is_head ? HTTP1_HEAD_READ_BYTES : LANE_READ_BYTES;
    }
    *ret_room = uv_buf_init((char *)data, (unsigned)(size > INT32_MAX ? INT32_MAX : size));
}

/* The protocol reads itself, and gets what does not come in pieces from us, too. */
static bool is_expecting(const struct http_connection *connection)
{
    return connection->protocol != NULL && connection->tls == NULL &&
           connection->protocol->expects != NULL && !connection->is_closing &&
           connection->protocol->expects(connection->state);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_room)
{
    struct http_connection *connection = handle->data;
    assert(ret_room != NULL);
    (void)suggested;
    if (is_expecting(connection))
        *ret_room = uv_buf_init(NULL, 0);
    else if (connection->tls != NULL)
        *ret_room = uv_buf_init((char *)connection->server->cipher_buffer, TLS_READ_BYTES);
    else
        http_connection_room(connection, ret_room);
}

void http_connection_take(struct http_connection *connection, const uint8_t *data, size_t size)
{
    assert(!connection->is_closing);
    if (connection->protocol == NULL)
        sniff(connection, data, size);
    else
        connection->protocol->receive(connection->state, data, size);
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
        read_expected(connection); /* as on_alloc wanted it */
    else if (count == UV_EOF)
        http_connection_end_input(connection);
    else if (count < 0)
        http_connection_close(connection);
    else if (connection->tls != NULL)
        http_secure_receive(connection, (const uint8_t *)room->base, (size_t)count);
    else
        http_connection_take(connection, (const uint8_t *)room->base, (size_t)count);
    http_connection_input_taken(connection);
    lane_catch_up(lane);
}

void http_connection_pause(struct http_connection *connection)
{
    assert(connection->refs > 0);
    if (!connection->is_reading)
        return;
    connection->is_reading = false;
    uv_read_stop((uv_stream_t *)&connection->tcp);
}

void http_connection_resume(struct http_connection *connection)
{
    assert(connection->refs > 0);
    if (connection->is_reading || connection->is_closing)
        return;
    if (uv_read_start((uv_stream_t *)&connection->tcp, on_alloc, on_read) == 0)
        connection->is_reading = true;
    else
        http_connection_close(connection);
    if (connection->tls != NULL && !connection->is_closing)
        http_secure_resume(connection);
}
