/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP/1 request from its first byte: gathers the head, parses it, and is the struct
 * http_request that the handler sees. On the connection's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/net/server/http1_parser.h"
#include "src/net/server/http_exchange.h"

struct budget;
struct buffer;
struct http_connection;

struct http1_exchange {
    struct http_request request; /* first; set up once the head is whole */
    void *protocol;              /* of the connection, for its request ops */
    struct buffer *head;         /* what came of it, or all of it; names in lower case */
    bool has_begun;              /* the request is set up: it ends by http_exchange_end */
    struct http1_parser parser;
};

/* NULL when there is no memory. */
struct http1_exchange *http1_exchange_try_create(void *protocol);
/* Frees it. One that has begun is freed by its request's destroy. */
void http1_exchange_destroy(struct http1_exchange *exchange);
/* Takes bytes up to the end of the head; *ret_used says how many. Refused also when there is no
 * budget to keep them; parser.status says the answer. */
enum http1_result http1_exchange_feed(struct http1_exchange *exchange, struct budget *budget,
                                      const uint8_t *data, size_t size, size_t *ret_used);
/* After HTTP1_COMPLETE: sets up the request. */
void http1_exchange_begin(struct http1_exchange *exchange, const struct http_request_ops *ops,
                          struct http_connection *connection);
struct http1_exchange *http1_exchange_of(const struct http_request *request);
/* For request ops. */
bool http1_exchange_header_at(const struct http_request *request, size_t index,
                              struct slice *ret_name, struct slice *ret_value);
/* A charged copy of bytes that wait; a few are kept even when the budget is short. NULL: refused.
 */
struct buffer *http1_keep(struct budget *budget, const uint8_t *data, size_t size);
