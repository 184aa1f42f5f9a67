/* SPDX-License-Identifier: Apache-2.0 */
/* Collects one request body into one buffer: charged to the byte budget before bytes are read, by
 * its declared size or growing as they come. Embedded in struct http_request, on its lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/net/server/http_server.h"

#define HTTP_SIZE_UNKNOWN UINT64_MAX

struct http_body {
    struct http_body_plan plan;
    struct budget *budget;
    struct buffer *buffer; /* NULL until there is something to put in */
    bool has_peeked;
};

/* Takes the plan and allocates: size_declared bytes (checked against the plan), or a first piece
 * when it is HTTP_SIZE_UNKNOWN; but nothing when the first bytes will announce the size. False:
 * *ret_failure says why, nothing is held. */
bool http_body_begin(struct http_body *body, struct budget *budget,
                     const struct http_body_plan *plan, uint64_t size_declared,
                     enum http_failure *ret_failure);
/* Copies bytes in, unless they were read into http_body_room already, growing the buffer where its
 * size was not known. False: *ret_failure says why; what had come is kept until http_body_clear. */
bool http_body_append(struct http_body *body, const uint8_t *data, size_t size,
                      enum http_failure *ret_failure);
/* The free end of the buffer, for a read straight into it; http_body_advance says how much came. */
uint8_t *http_body_room(struct http_body *body, size_t *ret_size);
void http_body_advance(struct http_body *body, size_t size);
/* Makes room for size_total bytes in all, now that the body has announced its size. */
bool http_body_announce(struct http_body *body, uint64_t size_total,
                        enum http_failure *ret_failure);
/* True when nothing has to be peeked at any more: its room is what it is said to need. */
bool http_body_is_announced(const struct http_body *body);
/* True once, when the bytes that the plan wants to peek at are there: the body has begun with so
 * many. */
bool http_body_wants_peek(struct http_body *body, size_t size);
/* The body is whole: room that it did not need is given back. */
void http_body_finish(struct http_body *body);
/* Bytes collected so far. */
size_t http_body_size(const struct http_body *body);
/* Drops the buffer. Idempotent. */
void http_body_clear(struct http_body *body);
