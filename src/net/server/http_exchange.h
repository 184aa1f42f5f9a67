/* SPDX-License-Identifier: Apache-2.0 */
/* What HTTP/1 and HTTP/2 requests share: struct http_request, the first member of each protocol's
 * own struct, and its life cycle between protocol and handler. On the connection's lane.
 *
 * The handler owns a request after on_request, on_body and on_body_failed; the protocol owns it
 * while the body is read, and after http_respond. It ends with http_exchange_end, once the response
 * is written or the client has gone. If the handler owns it at that moment, it stays valid until
 * the handler calls http_respond or http_request_read_body, which then only end it. on_end is
 * always the last call. */
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
    /* The body's memory is charged: receive it (100 Continue, WINDOW_UPDATE, read on). May complete
     * a body that was received already. */
    void (*read_body)(struct http_request *request);
    /* Sends the response, and calls http_exchange_end when it is written, now or later. The
     * protocol discards the rest of the body. */
    void (*respond)(struct http_request *request, const struct http_response *response);
    /* As http_stream_send and http_stream_end; the client has not gone. */
    bool (*stream_send)(struct http_request *request, struct slice piece);
    void (*stream_end)(struct http_request *request, bool is_whole);
    /* Frees the struct that embeds the request. The connection may be closed, but is still valid.
     */
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
    void (*release)(void *arg); /* see struct http_response; NULL: the body was copied */
    void *release_arg;
    bool is_with_handler;
    bool is_held;       /* between http_request_hold and http_request_again */
    bool is_reading;    /* between http_request_read_body and the end of the body */
    bool is_peeking;    /* inside on_peek */
    bool has_responded; /* http_respond was called */
    bool is_streaming;  /* … with a stream, which has not ended: it is with the handler */
    bool is_ended;      /* http_exchange_end was called: response written, or client gone */
};

/* Whether response->common.rows[index] is sent: not if headers has one of that name. */
bool http_response_sends_common(const struct http_response *response, size_t index);

/* Clears the struct, and references the connection until destroy has returned. The protocol then
 * sets method, path, query, host and size_declared. */
void http_exchange_init(struct http_request *request, const struct http_request_ops *ops,
                        struct http_connection *connection);
/* The headers are complete: counts the request and calls on_request. This and each function below
 * may free the request. */
void http_exchange_begin(struct http_request *request);
/* Collects bytes of the body, and peeks. False: reading has ended (failed, response sent from
 * on_peek, or client gone), and the request must not be used any more. */
bool http_exchange_receive(struct http_request *request, const uint8_t *data, size_t size)
    __attribute__((warn_unused_result));
/* The same for bytes that were read straight into http_body_room. */
bool http_exchange_received(struct http_request *request, size_t size)
    __attribute__((warn_unused_result));
/* The body is complete: on_body. */
void http_exchange_finish_body(struct http_request *request);
/* The body cannot be completed: on_body_failed. */
void http_exchange_fail_body(struct http_request *request, enum http_failure failure);
/* The exchange is over on the wire. Ends the request, now or when the handler returns it. */
void http_exchange_end(struct http_request *request);
