/* SPDX-License-Identifier: Apache-2.0 */
/* Output that grows in one charged buffer: bytes, numbers and JSON strings. The error is sticky:
 * once there is no memory, or the limit is met, nothing more is written. One owner, one thread at a
 * time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/slice.h"

struct json_output {
    struct buffer *buffer; /* NULL only if its creation failed */
    size_t bytes_max;
    bool has_failed;
    bool is_too_large; /* it failed because it would have grown beyond bytes_max */
};

/* capacity: bytes to begin with. bytes_max: SIZE_MAX for none. budget may be NULL. */
void json_output_init(struct json_output *output, size_t capacity, size_t bytes_max,
                      struct budget *budget);
/* Ends the output: returns what was written, or NULL if it failed. */
struct buffer *json_output_take(struct json_output *output) __attribute__((warn_unused_result));

/* json_output_reserve when the buffer is too small. */
uint8_t *json_output_grow(struct json_output *output, size_t bytes);
/* Makes room for that many more bytes; the caller adds what it uses to buffer->size. NULL: failed.
 */
static inline uint8_t *json_output_reserve(struct json_output *output, size_t bytes)
{
    struct buffer *buffer = output->buffer;
    if (!output->has_failed && buffer->capacity - buffer->size >= bytes)
        return buffer->data + buffer->size;
    return json_output_grow(output, bytes);
}

static inline void json_output_put(struct json_output *output, const void *bytes, size_t size)
{
    uint8_t *room = json_output_reserve(output, size);
    if (room == NULL || size == 0)
        return;
    memcpy(room, bytes, size);
    output->buffer->size += size;
}

static inline void json_output_put_byte(struct json_output *output, char byte)
{
    json_output_put(output, &byte, 1);
}

/* Quoted; invalid UTF-8 becomes U+FFFD. */
void json_output_put_string(struct json_output *output, struct slice text);
/* In decimal. */
void json_output_put_unsigned(struct json_output *output, uint64_t number);
void json_output_put_signed(struct json_output *output, int64_t number);
