/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text on its way into one growing buffer; the error is sticky: without memory nothing more is
 * written. One owner, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/slice.h"

struct json_out {
    struct buffer *buffer;
    bool has_failed;
};

/* Room for so many more bytes, which the caller then counts in buffer->size. NULL: failed. */
uint8_t *json_out_grow(struct json_out *out, size_t bytes);
/* Quoted; what is not UTF-8 becomes U+FFFD. */
void json_out_string(struct json_out *out, struct slice text);
/* Quoted, lower case. */
void json_out_hex(struct json_out *out, struct slice bytes);
/* Quoted. */
void json_out_base64(struct json_out *out, struct slice bytes);
/* Without quotes. */
void json_out_unsigned(struct json_out *out, uint64_t number);
void json_out_signed(struct json_out *out, int64_t number);
/* "NaN" and infinities as strings. */
void json_out_double(struct json_out *out, double real);

static inline uint8_t *json_out_room(struct json_out *out, size_t bytes)
{
    struct buffer *buffer = out->buffer;
    if (buffer->capacity - buffer->size >= bytes && !out->has_failed)
        return buffer->data + buffer->size;
    return json_out_grow(out, bytes);
}

static inline void json_out_raw(struct json_out *out, const char *text, size_t size)
{
    uint8_t *room = json_out_room(out, size);
    if (room == NULL)
        return;
    memcpy(room, text, size);
    out->buffer->size += size;
}

static inline void json_out_byte(struct json_out *out, char byte)
{
    json_out_raw(out, &byte, 1);
}
