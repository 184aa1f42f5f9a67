/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of JSON that the explore page's answers are made of. On the explore worker. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "src/base/hex.h"
#include "src/otlp/json/json_output.h"

static inline void put_raw(struct json_output *out, const char *text)
{
    json_output_put(out, text, strlen(text));
}

/* "name": with a comma before it unless it comes first in its object. */
static inline void put_key(struct json_output *out, const char *name)
{
    const struct buffer *buffer = out->buffer;
    if (out->has_failed)
        return;
    uint8_t last = buffer->size > 0 ? buffer->data[buffer->size - 1] : '{';
    put_raw(out, last == '{' ? "\"" : ",\"");
    put_raw(out, name);
    put_raw(out, "\":");
}

/* A comma, unless the list is empty so far. */
static inline void put_comma(struct json_output *out)
{
    const struct buffer *buffer = out->buffer;
    if (!out->has_failed && buffer->size > 0 && buffer->data[buffer->size - 1] != '[')
        json_output_put_byte(out, ',');
}

static inline void put_unsigned(struct json_output *out, const char *name, uint64_t number)
{
    put_key(out, name);
    json_output_put_unsigned(out, number);
}

/* As a string, since it may have more than 53 bits. */
static inline void put_wide(struct json_output *out, const char *name, uint64_t number)
{
    put_key(out, name);
    json_output_put_byte(out, '"');
    json_output_put_unsigned(out, number);
    json_output_put_byte(out, '"');
}

/* With three digits behind the point. */
static inline void put_real(struct json_output *out, double number)
{
    char text[64];
    snprintf(text, sizeof(text), "%.3f", number);
    put_raw(out, text);
}

static inline void put_bool(struct json_output *out, const char *name, bool value)
{
    put_key(out, name);
    put_raw(out, value ? "true" : "false");
}

static inline void put_string(struct json_output *out, const char *name, struct slice text)
{
    put_key(out, name);
    json_output_put_string(out, text);
}

static inline void put_hex_value(struct json_output *out, const void *bytes, size_t size)
{
    uint8_t *room = json_output_reserve(out, 2 * size + 2);
    if (room == NULL)
        return;
    room[0] = '"';
    hex_write(bytes, size, room + 1);
    room[2 * size + 1] = '"';
    out->buffer->size += 2 * size + 2;
}

static inline void put_hex(struct json_output *out, const char *name, const void *bytes,
                           size_t size)
{
    put_key(out, name);
    put_hex_value(out, bytes, size);
}
