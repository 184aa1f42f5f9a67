/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer of one request body: charged before it is filled, doubled while its size is unknown,
 * shrunk when it is complete. On the connection's lane. */
#include "src/net/server/http_body.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"

#include <assert.h>
#include <string.h>

/* The first allocation of a body of unknown size; smaller if its first bytes announce the size. */
enum { FIRST_PIECE_BYTES = 4096, FIRST_PEEK_BYTES = 64 };

static bool fail(enum http_failure *ret_failure, enum http_failure failure)
{
    *ret_failure = failure;
    return false;
}

size_t http_body_size(const struct http_body *body)
{
    return body->buffer == NULL ? 0 : body->buffer->size;
}

static bool grow(struct http_body *body, uint64_t capacity, enum http_failure *ret_failure)
{
    assert(body->buffer == NULL || capacity >= body->buffer->capacity);
    struct buffer *grown = body->buffer == NULL ? buffer_try_create(body->budget, (size_t)capacity)
                                                : buffer_try_grow(body->buffer, (size_t)capacity);
    if (grown == NULL)
        return fail(ret_failure, HTTP_BODY_NO_BUDGET);
    body->buffer = grown;
    return true;
}

bool http_body_begin(struct http_body *body, struct budget *budget,
                     const struct http_body_plan *plan, uint64_t size_declared,
                     enum http_failure *ret_failure)
{
    assert(body->buffer == NULL);
    assert(plan->max_bytes < HTTP_SIZE_UNKNOWN);
    assert(plan->peek_bytes == 0 || plan->on_peek != NULL);
    body->plan = *plan;
    body->budget = budget;
    body->has_peeked = false;
    uint64_t capacity = size_declared;
    if (size_declared == HTTP_SIZE_UNKNOWN) {
        if (plan->peek_bytes > 0)
            return true;
        capacity = plan->max_bytes < FIRST_PIECE_BYTES ? plan->max_bytes : FIRST_PIECE_BYTES;
    }
    if (capacity > plan->max_bytes)
        return fail(ret_failure, HTTP_BODY_TOO_LARGE);
    return grow(body, capacity, ret_failure);
}

bool http_body_append(struct http_body *body, const uint8_t *data, size_t size,
                      enum http_failure *ret_failure)
{
    assert(data != NULL || size == 0);
    uint64_t needed = (uint64_t)http_body_size(body) + size;
    if (needed > body->plan.max_bytes)
        return fail(ret_failure, HTTP_BODY_TOO_LARGE);
    bool has_room = body->buffer != NULL && needed <= body->buffer->capacity;
    if (!has_room) {
        uint64_t doubled =
            body->buffer == NULL ? FIRST_PEEK_BYTES : (uint64_t)body->buffer->capacity * 2;
        uint64_t capacity = doubled > needed ? doubled : needed;
        if (!grow(body, capacity < body->plan.max_bytes ? capacity : body->plan.max_bytes,
                  ret_failure))
            return false;
    }
    /* The bytes may have been read there. */
    uint8_t *room = body->buffer->data + body->buffer->size;
    if (size > 0 && data != room)
        memmove(room, data, size);
    body->buffer->size += size;
    return true;
}

uint8_t *http_body_room(struct http_body *body, size_t *ret_size)
{
    *ret_size = 0;
    if (body->buffer == NULL)
        return NULL;
    *ret_size = body->buffer->capacity - body->buffer->size;
    return body->buffer->data + body->buffer->size;
}

void http_body_advance(struct http_body *body, size_t size)
{
    assert(size <= body->buffer->capacity - body->buffer->size);
    body->buffer->size += size;
}

bool http_body_announce(struct http_body *body, uint64_t size_total, enum http_failure *ret_failure)
{
    assert(body->has_peeked);
    if (size_total > body->plan.max_bytes)
        return fail(ret_failure, HTTP_BODY_TOO_LARGE);
    if (body->buffer != NULL && size_total <= body->buffer->capacity)
        return true;
    return grow(body, size_total, ret_failure);
}

bool http_body_is_announced(const struct http_body *body)
{
    return body->has_peeked || body->plan.peek_bytes == 0;
}

bool http_body_wants_peek(struct http_body *body, size_t size)
{
    if (http_body_is_announced(body) || size < body->plan.peek_bytes)
        return false;
    body->has_peeked = true;
    return true;
}

void http_body_finish(struct http_body *body)
{
    if (body->buffer == NULL)
        body->buffer = buffer_create(body->budget, 0);
    assert(body->buffer->size <= body->buffer->capacity);
    /* The body may wait in a queue: unused room of more than a quarter of it is returned. */
    if (body->buffer->capacity - body->buffer->size > body->buffer->size / 4)
        body->buffer = buffer_shrink(body->buffer);
}

void http_body_clear(struct http_body *body)
{
    buffer_unref(body->buffer);
    body->buffer = NULL;
}
