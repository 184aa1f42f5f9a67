/* SPDX-License-Identifier: Apache-2.0 */
/* Collects one request body in one buffer, charged to the byte budget before it is read: its
 * declared size, or growing with the input. Embedded in struct http_request, on its lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/net/server/http_server.h"

#define HTTP_SIZE_UNKNOWN UINT64_MAX

struct http_body {
    struct http_body_plan plan;
    struct budget *budget;
    struct buffer *buffer; /* NULL until the first bytes */
    bool has_peeked;
};

/* Allocates size_declared bytes (checked against the plan); of HTTP_SIZE_UNKNOWN a first piece, or
 * nothing when the first bytes will announce the size. False: *ret_failure has the reason, nothing
 * is allocated. */
bool http_body_begin(struct http_body *body, struct budget *budget,
                     const struct http_body_plan *plan, uint64_t size_declared,
                     enum http_failure *ret_failure);
/* Appends bytes, growing the buffer if the size was not known; data may be http_body_room itself.
 * False: *ret_failure has the reason; the buffer stays until http_body_clear. */
bool http_body_append(struct http_body *body, const uint8_t *data, size_t size,
                      enum http_failure *ret_failure);
/* The free end of the buffer, to read straight into; http_body_advance then adds what was read. */
uint8_t *http_body_room(struct http_body *body, size_t *ret_size);
void http_body_advance(struct http_body *body, size_t size);
/* Makes room for the announced size_total. */
bool http_body_announce(struct http_body *body, uint64_t size_total,
                        enum http_failure *ret_failure);
/* True after peeking: the room is final if the size is known. */
bool http_body_is_announced(const struct http_body *body);
/* True once, when the first size bytes are enough for the plan to peek at. */
bool http_body_wants_peek(struct http_body *body, size_t size);
/* The body is complete: returns unused room to the budget. */
void http_body_finish(struct http_body *body);
/* Bytes collected so far. */
size_t http_body_size(const struct http_body *body);
/* Drops the buffer. Idempotent. */
void http_body_clear(struct http_body *body);
