/* SPDX-License-Identifier: Apache-2.0 */
/* Writing protobuf messages for the shapes, field by field. */
#pragma once

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/profiles/otlp/profile_bytes.h"

static inline void put_number(struct profile_bytes *out, uint32_t number, uint64_t value)
{
    uint8_t *at = profile_bytes_room(out, 32);
    uint8_t *end = profile_put_varint(at, wire_tag(number, WIRE_VARINT));
    end = profile_put_varint(end, value);
    out->size += (size_t)(end - at);
}

static inline void put_bytes(struct profile_bytes *out, uint32_t number, const void *data,
                             size_t size)
{
    profile_bytes_field(out, number, slice_of(data, size));
}

static inline void put_text(struct profile_bytes *out, uint32_t number, const char *text)
{
    put_bytes(out, number, text, strlen(text));
}

static inline void put_varint(struct profile_bytes *out, uint64_t value)
{
    uint8_t *at = profile_bytes_room(out, 16);
    out->size += (size_t)(profile_put_varint(at, value) - at);
}

/* "k17": `width` digits at least. */
static inline const char *name_of(char text[32], size_t number)
{
    snprintf(text, 32, "k%06zu", number);
    return text;
}

/* KeyValue {key, value {string}} as field `number`. */
static inline void put_attribute(struct profile_bytes *out, uint32_t number, const char *key,
                                 const char *value)
{
    size_t begin = out->size;
    put_text(out, 1, key);
    size_t inner = out->size;
    put_text(out, 1, value);
    profile_bytes_wrap(out, inner, 2);
    profile_bytes_wrap(out, begin, number);
}

/* The same with a map of n entries. */
static inline void put_map_attribute(struct profile_bytes *out, uint32_t number, const char *key,
                                     size_t n)
{
    enum { MAP_VALUE = 6 };
    char name[32];
    size_t begin = out->size;
    put_text(out, 1, key);
    size_t map = out->size;
    for (size_t i = n; i > 0; i--)
        put_attribute(out, 1, name_of(name, i), "x");
    profile_bytes_wrap(out, map, MAP_VALUE);
    profile_bytes_wrap(out, map, 2);
    profile_bytes_wrap(out, begin, number);
}

/* The same with a list of n strings and NaN, which has no text. */
static inline void put_list_attribute(struct profile_bytes *out, uint32_t number, const char *key,
                                      size_t n)
{
    enum { LIST_VALUE = 5 };
    static const uint8_t nan[] = {4 << 3 | WIRE_FIXED64, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
    size_t begin = out->size;
    put_text(out, 1, key);
    size_t list = out->size;
    for (size_t i = 0; i < n; i++) {
        size_t value = out->size;
        put_text(out, 1, "x");
        profile_bytes_wrap(out, value, 1);
    }
    put_bytes(out, 1, nan, sizeof(nan));
    profile_bytes_wrap(out, list, LIST_VALUE);
    profile_bytes_wrap(out, list, 2);
    profile_bytes_wrap(out, begin, number);
}

static inline struct slice message_done(struct profile_bytes *out)
{
    profile_bytes_room(out, 1);
    return slice_of(out->data, out->size);
}

/* head, n times text, tail. */
static inline struct slice repeat(const char *head, const char *text, size_t n, const char *tail)
{
    struct profile_bytes out = {0};
    profile_bytes_add(&out, slice_of_text(head));
    for (size_t i = 0; i < n; i++)
        profile_bytes_add(&out, slice_of_text(text));
    profile_bytes_add(&out, slice_of_text(tail));
    return message_done(&out);
}

/* The same with a name between two strings, which differs each time. */
static inline struct slice numbered(const char *head, const char *format_head, size_t n,
                                    const char *format_tail, const char *tail)
{
    struct profile_bytes out = {0};
    char name[32];
    profile_bytes_add(&out, slice_of_text(head));
    for (size_t i = 0; i < n; i++) {
        profile_bytes_add(&out, slice_of_text(format_head));
        profile_bytes_add(&out, slice_of_text(name_of(name, i)));
        profile_bytes_add(&out, slice_of_text(format_tail));
    }
    profile_bytes_add(&out, slice_of_text(tail));
    return message_done(&out);
}

/* A copy of the request, as the door lets it in. */
static inline struct batch *message_batch(enum signal_kind signal, struct slice request)
{
    struct otlp_figures figures;
    const char *reason;
    bool is_sound = otlp_check(signal, request, &figures, &reason);
    if (!is_sound)
        fprintf(stderr, "%s\n", reason);
    assert(is_sound);
    struct buffer *buffer = buffer_create(NULL, request.size);
    if (request.size > 0)
        memcpy(buffer->data, request.data, request.size);
    buffer->size = request.size;
    struct batch *batch = batch_create(signal, 1);
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = figures.items;
    buffer_unref(buffer);
    return batch;
}
