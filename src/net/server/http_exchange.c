/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a request between its protocol and its handler, and the handler's accessors. On the
 * connection's lane. */
#include "src/net/server/http_exchange.h"

#include "src/base/buffer.h"
#include "src/net/server/http_connection.h"

#include <assert.h>
#include <string.h>

bool http_response_sends_common(const struct http_response *response, size_t index)
{
    assert(index < response->common.count);
    const char *name = response->common.rows[index].name;
    if (strcmp(name, "vary") == 0)
        return true;
    for (size_t i = 0; i < HTTP_RESPONSE_HEADERS_MAX && response->headers[i].name != NULL; i++)
        if (strcmp(response->headers[i].name, name) == 0)
            return false;
    return true;
}

static void request_finish(struct http_request *request)
{
    assert(request->is_ended);
    assert(!request->is_with_handler);
    struct http_connection *connection = request->connection;
    http_body_clear(&request->body);
    if (request->handler->on_end != NULL)
        request->handler->on_end(request, request->arg);
    if (request->release != NULL)
        request->release(request->release_arg);
    request->ops->destroy(request);
    http_connection_unref(connection);
}

/* Lets the handler peek at the first bytes. False: the handler has responded, or the announced size
 * is too large. */
static bool peek(struct http_request *request, const uint8_t *data, size_t size)
{
    assert(request->is_reading);
    if (!http_body_wants_peek(&request->body, size))
        return true;
    request->is_peeking = true;
    uint64_t size_total = request->body.plan.on_peek(request, data, request->arg);
    request->is_peeking = false;
    if (request->is_ended) {
        request_finish(request);
        return false;
    }
    if (request->has_responded)
        return false;
    enum http_failure failure;
    if (http_body_announce(&request->body, size_total, &failure))
        return true;
    http_exchange_fail_body(request, failure);
    return false;
}

void http_exchange_init(struct http_request *request, const struct http_request_ops *ops,
                        struct http_connection *connection)
{
    const struct http_server_settings *settings = http_connection_settings(connection);
    *request = (struct http_request){
        .ops = ops,
        .handler = settings->handler,
        .arg = settings->arg,
        .connection = connection,
        .size_declared = HTTP_SIZE_UNKNOWN,
    };
    http_connection_ref(connection);
}

void http_exchange_begin(struct http_request *request)
{
    assert(!request->is_with_handler);
    assert(!request->is_ended);
    request->connection->server->figures.requests_total++;
    request->is_with_handler = true;
    request->handler->on_request(request, request->arg);
}

bool http_exchange_receive(struct http_request *request, const uint8_t *data, size_t size)
{
    assert(request->is_reading);
    assert(!request->has_responded);
    enum http_failure failure;
    /* Before the buffer exists, so that it gets its final size at once. */
    if (http_body_size(&request->body) == 0 && !peek(request, data, size))
        return false;
    if (http_body_append(&request->body, data, size, &failure))
        return peek(request, request->body.buffer->data, request->body.buffer->size);
    http_exchange_fail_body(request, failure);
    return false;
}

bool http_exchange_received(struct http_request *request, size_t size)
{
    assert(request->is_reading);
    assert(!request->has_responded);
    http_body_advance(&request->body, size);
    return peek(request, request->body.buffer->data, request->body.buffer->size);
}

void http_exchange_finish_body(struct http_request *request)
{
    assert(request->is_reading);
    assert(!request->has_responded);
    http_body_finish(&request->body);
    request->is_reading = false;
    request->is_with_handler = true;
    request->handler->on_body(request, request->arg);
}

void http_exchange_fail_body(struct http_request *request, enum http_failure failure)
{
    assert(request->is_reading);
    assert(!request->has_responded);
    http_body_clear(&request->body);
    request->is_reading = false;
    request->is_with_handler = true;
    request->handler->on_body_failed(request, failure, request->arg);
}

void http_exchange_end(struct http_request *request)
{
    assert(!request->is_ended);
    request->is_ended = true;
    request->is_reading = false;
    if (!request->is_with_handler && !request->is_peeking)
        request_finish(request);
}

struct slice http_request_method(const struct http_request *request)
{
    return request->method;
}

struct slice http_request_path(const struct http_request *request)
{
    return request->path;
}

struct slice http_request_query(const struct http_request *request)
{
    return request->query;
}

struct slice http_request_header(const struct http_request *request, const char *name)
{
    struct slice wanted = slice_of_text(name);
    struct slice found;
    struct slice value;
    for (size_t i = 0; http_request_header_at(request, i, &found, &value); i++)
        if (slice_equal(found, wanted))
            return value;
    return (struct slice){.data = NULL};
}

bool http_request_header_at(const struct http_request *request, size_t index,
                            struct slice *ret_name, struct slice *ret_value)
{
    return request->ops->header_at(request, index, ret_name, ret_value);
}

uint64_t http_request_size_declared(const struct http_request *request)
{
    return request->size_declared;
}

struct slice http_request_host(const struct http_request *request)
{
    return request->host;
}

const char *http_request_peer_address(const struct http_request *request)
{
    return request->connection->peer;
}

bool http_request_is_http2(const struct http_request *request)
{
    return request->ops->is_http2;
}

bool http_request_is_gone(const struct http_request *request)
{
    return request->is_ended || http_connection_is_closing(request->connection);
}

void http_request_set_context(struct http_request *request, void *context)
{
    request->context = context;
}

void *http_request_context(const struct http_request *request)
{
    return request->context;
}

struct http_server *http_request_hold(struct http_request *request)
{
    struct http_server *server = request->connection->server;
    assert(request->is_with_handler);
    assert(!request->has_responded);
    assert(!request->is_held);
    request->is_held = true;
    server->held++;
    return server;
}

void http_request_again(struct http_request *request, struct http_server *server)
{
    assert(request->is_held);
    request->is_held = false;
    if (request->is_ended) {
        request->is_with_handler = false;
        request_finish(request);
    } else {
        request->handler->on_request(request, request->arg);
    }
    http_server_release(server);
}

void http_request_read_body(struct http_request *request, const struct http_body_plan *plan)
{
    assert(request->is_with_handler);
    assert(!request->has_responded);
    request->is_with_handler = false;
    if (request->is_ended) {
        request_finish(request);
        return;
    }
    request->is_reading = true;
    enum http_failure failure;
    const struct http_server_settings *settings = http_connection_settings(request->connection);
    struct budget *budget = plan->budget != NULL ? plan->budget : settings->budget;
    if (!http_body_begin(&request->body, budget, plan, request->size_declared, &failure))
        http_exchange_fail_body(request, failure);
    else if (!http_connection_is_closing(request->connection))
        request->ops->read_body(request);
}

struct buffer *http_request_body(const struct http_request *request)
{
    return request->body.buffer;
}

void http_respond(struct http_request *request, const struct http_response *response)
{
    assert(request->is_with_handler || request->is_reading);
    assert(!request->has_responded);
    assert(response->status >= 200 && response->status <= 599);
    assert(!response->is_stream || (request->is_with_handler && response->body.size == 0 &&
                                    !slice_equal_text(request->method, "HEAD")));
    assert(response->release == NULL ||
           (!response->is_stream && response->trailers[0].name == NULL));
    request->has_responded = true;
    request->release = response->release;
    request->release_arg = response->release_arg;
    request->is_streaming = response->is_stream;
    request->is_with_handler = response->is_stream;
    request->is_reading = false;
    if (request->is_ended && !response->is_stream)
        request_finish(request);
    else if (!http_request_is_gone(request))
        request->ops->respond(request, response);
}

bool http_stream_send(struct http_request *request, struct slice piece)
{
    assert(request->is_streaming);
    assert(piece.size > 0);
    return !http_request_is_gone(request) && request->ops->stream_send(request, piece);
}

void http_stream_end(struct http_request *request, bool is_whole)
{
    assert(request->is_streaming);
    assert(request->is_with_handler);
    request->is_streaming = false;
    request->is_with_handler = false;
    if (request->is_ended)
        request_finish(request);
    else if (!http_connection_is_closing(request->connection))
        request->ops->stream_end(request, is_whole);
}
