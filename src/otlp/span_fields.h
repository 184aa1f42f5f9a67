/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the fields of an encoded Span (opentelemetry/proto/trace/v1/trace.proto), which otlp_check
 * has passed, in one walk. Fields in the usual layout are read in place, all others by the generic
 * reader. Inline: a reader pays only for the fields that it uses. Plain values; any thread. */
#pragma once

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/base/slice.h"
#include "src/otlp/key_value.h"
#include "src/otlp/wire.h"

enum span_field {
    SPAN_TRACE_ID = 1,
    SPAN_ID = 2,
    SPAN_TRACE_STATE = 3,
    SPAN_PARENT_ID = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_EVENTS = 11,
    SPAN_STATUS = 15,
    SPAN_FLAGS = 16,
};

enum { SPAN_STATUS_CODE = 3 };
enum { SPAN_TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8 };

/* Of each field the last one; slices without data: it has none. */
struct span_fields {
    struct slice trace_id; /* of any size, as all ids */
    struct slice span_id;
    struct slice parent_id;
    struct slice trace_state;
    struct slice name;
    uint64_t kind;
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t status; /* its code */
    uint64_t flags;
    struct slice events; /* from the first one to the end of the last one, tags and all */
    bool has_status;
};

/* Takes an attribute; value: an encoded AnyValue, no data: absent. Of the fields those are set that
 * came before it. */
typedef void span_attribute_fn(void *arg, const struct span_fields *fields, struct slice key,
                               struct slice value);

/* Once more for each status, which together are one. */
static void __attribute__((noinline, unused)) span_status_read(struct slice status, uint64_t *code)
{
    struct wire_reader reader = wire_reader_of(status);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == SPAN_STATUS_CODE)
            *code = field.number_value;
    assert(reader.failure == NULL);
}

/* Adds an event that ends there. */
static inline void span_fields_put_event(struct span_fields *fields, struct slice whole)
{
    if (fields->events.data == NULL)
        fields->events.data = whole.data;
    fields->events.size = (size_t)(whole.data + whole.size - fields->events.data);
}

/* Two bytes at the end of a usual field's header. */
static inline uint16_t span_read_header(const uint8_t *at)
{
    uint16_t header;
    memcpy(&header, at, sizeof(header));
    return le16toh(header);
}

enum { SPAN_HEADER_BYTES = 2, SPAN_SHORT_MAX = 0x7f };

/* Each of these reads one field if it is the next one, in the usual layout: a tag of one byte, and
 * a length or number below 128. Returns what follows. */

static inline __attribute__((always_inline)) const uint8_t *span_id_read(const uint8_t *at,
                                                                         const uint8_t *end,
                                                                         enum span_field number,
                                                                         size_t size,
                                                                         struct slice *ret_id)
{
    if ((size_t)(end - at) < SPAN_HEADER_BYTES + size ||
        span_read_header(at) != ((unsigned)number << 3 | WIRE_BYTES | size << 8))
        return at;
    *ret_id = slice_of(at + SPAN_HEADER_BYTES, size);
    return at + SPAN_HEADER_BYTES + size;
}

static inline __attribute__((always_inline)) const uint8_t *span_bytes_read(const uint8_t *at,
                                                                            const uint8_t *end,
                                                                            enum span_field number,
                                                                            struct slice *ret_bytes)
{
    const size_t left = (size_t)(end - at);
    if (left < SPAN_HEADER_BYTES || at[0] != ((unsigned)number << 3 | WIRE_BYTES) ||
        at[1] > SPAN_SHORT_MAX || at[1] > left - SPAN_HEADER_BYTES)
        return at;
    *ret_bytes = slice_of(at + SPAN_HEADER_BYTES, at[1]);
    return at + SPAN_HEADER_BYTES + at[1];
}

static inline __attribute__((always_inline)) const uint8_t *span_time_read(const uint8_t *at,
                                                                           const uint8_t *end,
                                                                           enum span_field number,
                                                                           uint64_t *ret_ns)
{
    if ((size_t)(end - at) < 1 + sizeof(*ret_ns) || at[0] != ((unsigned)number << 3 | WIRE_FIXED64))
        return at;
    memcpy(ret_ns, at + 1, sizeof(*ret_ns));
    *ret_ns = le64toh(*ret_ns);
    return at + 1 + sizeof(*ret_ns);
}

static inline __attribute__((always_inline)) const uint8_t *span_kind_read(const uint8_t *at,
                                                                           const uint8_t *end,
                                                                           uint64_t *ret_kind)
{
    if (end - at < SPAN_HEADER_BYTES || at[0] != (SPAN_KIND << 3 | WIRE_VARINT) ||
        at[1] > SPAN_SHORT_MAX)
        return at;
    *ret_kind = at[1];
    return at + SPAN_HEADER_BYTES;
}

static inline __attribute__((always_inline)) const uint8_t *span_usual_status_read(
    const uint8_t *at, const uint8_t *end, struct span_fields *fields)
{
    struct slice status;
    const uint8_t *next = span_bytes_read(at, end, SPAN_STATUS, &status);
    if (next == at)
        return at;
    fields->has_status = true;
    if (status.size == 2 && status.data[0] == (SPAN_STATUS_CODE << 3 | WIRE_VARINT) &&
        status.data[1] <= SPAN_SHORT_MAX)
        fields->status = status.data[1];
    else
        span_status_read(status, &fields->status);
    return next;
}

/* Consecutive attributes, which are most of a span, with less than 128 bytes, key and value once
 * and in this order. */
static inline __attribute__((always_inline)) const uint8_t *span_attributes_read(
    const uint8_t *at, const uint8_t *end, const struct span_fields *fields,
    span_attribute_fn *attribute, void *arg)
{
    enum { HEADERS_BYTES = 4, KEY_TAG = 1 << 3 | WIRE_BYTES, VALUE_TAG = 2 << 3 | WIRE_BYTES };
    /* The tag, a length below 128, and the tag of the key; its length may be any. */
    const uint32_t mask = 0x00ff80ff;
    const uint32_t usual = SPAN_ATTRIBUTES << 3 | WIRE_BYTES | KEY_TAG << 16;
    uint32_t headers;
    while (end - at >= HEADERS_BYTES) {
        memcpy(&headers, at, sizeof(headers));
        headers = le32toh(headers);
        const size_t size = headers >> 8 & SPAN_SHORT_MAX;
        const size_t key = headers >> 24;
        if ((headers & mask) != usual || size > (size_t)(end - at) - SPAN_HEADER_BYTES)
            break;
        if (attribute != NULL) {
            const uint8_t *const value = at + HEADERS_BYTES + key;
            if (key + HEADERS_BYTES > size ||
                span_read_header(value) != (VALUE_TAG | (size - HEADERS_BYTES - key) << 8))
                break;
            attribute(arg, fields, slice_of(at + HEADERS_BYTES, key),
                      slice_of(value + SPAN_HEADER_BYTES, size - HEADERS_BYTES - key));
        }
        at += SPAN_HEADER_BYTES + size;
    }
    return at;
}

/* Any field. Returns NULL if there is none. */
static inline __attribute__((always_inline)) const uint8_t *span_any_field_read(
    const uint8_t *at, const uint8_t *end, struct span_fields *fields, span_attribute_fn *attribute,
    void *arg)
{
    struct wire_reader reader = wire_reader_of(slice_of(at, (size_t)(end - at)));
    struct wire_field field;
    struct key_value pair;
    if (!wire_next_field(&reader, &field)) {
        assert(reader.failure == NULL);
        return NULL;
    }
    switch ((enum span_field)field.number) {
    case SPAN_TRACE_ID:
        fields->trace_id = field.bytes;
        break;
    case SPAN_ID:
        fields->span_id = field.bytes;
        break;
    case SPAN_TRACE_STATE:
        fields->trace_state = field.bytes;
        break;
    case SPAN_PARENT_ID:
        fields->parent_id = field.bytes;
        break;
    case SPAN_NAME:
        fields->name = field.bytes;
        break;
    case SPAN_KIND:
        fields->kind = field.number_value;
        break;
    case SPAN_START:
        fields->start_ns = field.number_value;
        break;
    case SPAN_END:
        fields->end_ns = field.number_value;
        break;
    case SPAN_ATTRIBUTES:
        if (attribute == NULL)
            break;
        pair = key_value_of(field.bytes);
        attribute(arg, fields, pair.key, pair.value);
        break;
    case SPAN_EVENTS:
        span_fields_put_event(fields, field.whole);
        break;
    case SPAN_STATUS:
        fields->has_status = true;
        span_status_read(field.bytes, &fields->status);
        break;
    case SPAN_FLAGS:
        fields->flags = field.number_value;
        break;
    default:
        break;
    }
    return reader.at;
}

/* content: of the Span. attribute may be NULL. */
static inline __attribute__((always_inline)) void span_fields_read(struct slice content,
                                                                   struct span_fields *ret_fields,
                                                                   span_attribute_fn *attribute,
                                                                   void *arg)
{
    const struct slice none = {.data = NULL};
    const uint8_t *at = content.data;
    const uint8_t *const end = at + content.size;
    /* One by one: what is not used costs nothing. */
    ret_fields->trace_id = ret_fields->span_id = ret_fields->parent_id = none;
    ret_fields->trace_state = ret_fields->name = ret_fields->events = none;
    ret_fields->kind = ret_fields->start_ns = ret_fields->end_ns = 0;
    ret_fields->status = ret_fields->flags = 0;
    ret_fields->has_status = false;
    while (at != end) {
        /* In the order in which they nearly always come. */
        const uint8_t *const before = at;
        at = span_id_read(at, end, SPAN_TRACE_ID, SPAN_TRACE_ID_BYTES, &ret_fields->trace_id);
        at = span_id_read(at, end, SPAN_ID, SPAN_ID_BYTES, &ret_fields->span_id);
        at = span_id_read(at, end, SPAN_PARENT_ID, SPAN_ID_BYTES, &ret_fields->parent_id);
        at = span_bytes_read(at, end, SPAN_NAME, &ret_fields->name);
        at = span_kind_read(at, end, &ret_fields->kind);
        at = span_time_read(at, end, SPAN_START, &ret_fields->start_ns);
        at = span_time_read(at, end, SPAN_END, &ret_fields->end_ns);
        at = span_attributes_read(at, end, ret_fields, attribute, arg);
        at = span_usual_status_read(at, end, ret_fields);
        if (at == before)
            at = span_any_field_read(at, end, ret_fields, attribute, arg);
        if (at == NULL)
            break;
    }
}
