/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer for writing profiles, with protobuf messages whose size is known only at
 * their end. Callers make room once for the worst case, then write through a plain pointer. Charged
 * to a budget, beyond its limit if need be: this completes requests that were accepted. One owner.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/slice.h"
#include "src/otlp/wire.h"

struct budget;

struct profile_bytes {
    uint8_t *data;
    size_t size;
    size_t capacity;
    struct budget *budget; /* NULL: not charged */
};

void profile_bytes_fini(struct profile_bytes *bytes);
/* The slow path of _room. */
uint8_t *profile_bytes_grow(struct profile_bytes *bytes, size_t more)
    __attribute__((returns_nonnull));
/* Makes room for `more` bytes. Returns where they go. */
static inline uint8_t *profile_bytes_room(struct profile_bytes *bytes, size_t more)
{
    if (more > bytes->capacity - bytes->size || bytes->data == NULL)
        return profile_bytes_grow(bytes, more);
    return bytes->data + bytes->size;
}
/* What has been written; valid until more is. */
static inline struct slice profile_bytes_slice(const struct profile_bytes *bytes)
{
    return slice_of(bytes->data, bytes->size);
}
/* What making room for `more` bytes charges to the budget, at its peak. */
uint64_t profile_bytes_growth(const struct profile_bytes *bytes, uint64_t more);
void profile_bytes_add(struct profile_bytes *bytes, struct slice more);
/* Appends a varint field, whose number is below 16; proto3 omits it when it is 0. */
void profile_bytes_number(struct profile_bytes *bytes, uint32_t number, uint64_t value);
/* Appends a field of bytes. */
void profile_bytes_field(struct profile_bytes *bytes, uint32_t number, struct slice content);
/* Inserts tag and length before what was added since `begin`. */
void profile_bytes_wrap(struct profile_bytes *bytes, size_t begin, uint32_t number);

/* The header of a nested message or packed field with a one-byte tag, before its length is known:
 * as if the length took one byte. */
enum { PROFILE_HEADER_BYTES = 2, PROFILE_HEADER_BYTES_MAX = 1 + WIRE_SHORT_VARINT_BYTES_MAX };

/* Writes the header of the content from header + PROFILE_HEADER_BYTES up to end; moves the content
 * if its length takes more than one byte, for which there must be room. Returns the new end. */
uint8_t *profile_close(uint8_t *header, uint8_t *end, uint32_t number);
/* The same with the common case inline. */
static inline uint8_t *profile_close_short(uint8_t *header, uint8_t *end, uint32_t number)
{
    size_t content_bytes = (size_t)(end - header) - PROFILE_HEADER_BYTES;
    if (content_bytes >= 0x80)
        return profile_close(header, end, number);
    header[0] = (uint8_t)wire_tag(number, WIRE_BYTES);
    header[1] = (uint8_t)content_bytes;
    return end;
}
/* The same, but writes nothing when there is no content. */
static inline uint8_t *profile_close_filled(uint8_t *header, uint8_t *end, uint32_t number)
{
    return end == header + PROFILE_HEADER_BYTES ? header : profile_close_short(header, end, number);
}

enum { PROFILE_SHORT_BYTES = 64, PROFILE_UNIT_BYTES = 16 };

/* memcpy without a call for 16 to 64 bytes, as most stacks have. May copy the last bytes twice. */
static inline void profile_copy(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size < PROFILE_UNIT_BYTES || size > PROFILE_SHORT_BYTES) {
        memcpy(to, from, size);
        return;
    }
    for (size_t at = 0; at < size - PROFILE_UNIT_BYTES; at += PROFILE_UNIT_BYTES)
        memcpy(to + at, from + at, PROFILE_UNIT_BYTES);
    memcpy(to + size - PROFILE_UNIT_BYTES, from + size - PROFILE_UNIT_BYTES, PROFILE_UNIT_BYTES);
}

static inline uint8_t *profile_put_varint(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* A varint field with a one-byte tag; proto3 omits it when it is 0. */
static inline uint8_t *profile_put_number(uint8_t *at, uint32_t number, uint64_t value)
{
    if (value == 0)
        return at;
    *at++ = (uint8_t)wire_tag(number, WIRE_VARINT);
    return profile_put_varint(at, value);
}
