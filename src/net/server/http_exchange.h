/* SPDX-License-Identifier: Apache-2.0 */
/* What an HTTP/1 and an HTTP/2 request share: struct http_request, which each protocol embeds first
 * in a struct of its own, and the one life cycle between protocol and handler. On the connection's
 * lane.
 *
 * A request is with the handler (after on_request, on_body, on_body_failed) or with the protocol
 * (while the body is read, and after http_respond). It ends when the protocol says so with
 * http_exchange_end, once the answer is written or the client has gone. If the handler has it at
 * that moment, it lives on, gone, until the handler gives it back with http_respond or
 * http_request_read_body, which then only end it. on_end is always the last call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/net/server/http_body.h"
#include "src/net/server/http_server.h"

struct http_connection;

/* What a protocol does for its requests. */
struct http_request_ops {
    bool is_http2;
    bool (*header_at)(const struct http_request *request, size_t index, struct slice *ret_name,
                      struct slice *ret_value);
    /* The plan stands and its bytes are charged: let the body come (100 Continue, WINDOW_UPDATE,
     * read on). A body that is there already may be completed from inside. */
    void (*read_body)(struct http_request *request);
    /* Sends the answer. Calls http_exchange_end when it is written, now or later; what is left of
     * the body is the protocol's to discard. */
    void (*respond)(struct http_request *request, const struct http_response *response);
    /* The very end: frees the struct that embeds the request. Its connection may have closed; the
     * memory of the connection is still there. */
    void (*destroy)(struct http_request *request);
};

struct http_request {
    const struct http_request_ops *ops;
    const struct http_handler *handler;
    void *arg; /* the handler's */
    struct http_connection *connection;
    struct slice method;
    struct slice path;
    struct slice query;
    struct slice host;
    uint64_t size_declared; /* Content-Length, or HTTP_SIZE_UNKNOWN */
    struct http_body body;
    void *context;
    bool is_with_handler;
    bool is_reading;  /* between http_request_read_body and the end of the body */
    bool is_peeking;  /* inside on_peek */
    bool is_answered; /* http_respond was called */
    bool is_ended;    /* http_exchange_end was called: answer written, or client gone */
};

/* Whether row index of response->common is sent: headers has none of that name. */
bool http_response_sends_common(const struct http_response *response, size_t index);

/* Clears the struct and holds a reference to the connection until destroy has returned. The
 * protocol then fills method, path, query, host and size_declared. */
void http_exchange_init(struct http_request *request, const struct http_request_ops *ops,
                        struct http_connection *connection);
/* Headers are complete: counts the request and calls on_request. The request may be freed when this
 * returns, as after each function below. */
void http_exchange_begin(struct http_request *request);
/* Body bytes came: collects them, peeks. False when that ended the reading: failed, answered from
 * on_peek, or gone; the caller then touches the request no more. */
bool http_exchange_receive(struct http_request *request, const uint8_t *data, size_t size)
    __attribute__((warn_unused_result));
/* The same for size bytes that were read straight into http_body_room. */
bool http_exchange_received(struct http_request *request, size_t size)
    __attribute__((warn_unused_result));
/* The body is whole: on_body. */
void http_exchange_finish_body(struct http_request *request);
/* The body will not become whole: on_body_failed. */
void http_exchange_fail_body(struct http_request *request, enum http_failure failure);
/* The exchange is over on the wire. Ends the request, at once or when the handler gives it back. */
void http_exchange_end(struct http_request *request);
