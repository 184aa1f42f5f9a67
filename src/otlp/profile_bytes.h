/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that grow while profiles are written, with the pieces of protobuf that need a place before
 * their size is known. Room is made once for the worst case; then a plain pointer runs. Charged to
 * a budget beyond its limit if need be: they finish what was already taken. One owner. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/otlp/wire.h"
#include "src/slice.h"

struct budget;

struct profile_bytes {
    uint8_t *data;
    size_t size;
    size_t capacity;
    struct budget *budget; /* NULL: not charged */
};

void profile_bytes_fini(struct profile_bytes *bytes);
/* Makes room for so many more bytes; where they go. */
uint8_t *profile_bytes_room(struct profile_bytes *bytes, size_t more)
    __attribute__((returns_nonnull));
void profile_bytes_add(struct profile_bytes *bytes, struct slice more);
/* Puts tag and length before what was added since `begin`. */
void profile_bytes_wrap(struct profile_bytes *bytes, size_t begin, uint32_t number);

/* Where a nested message or packed field of one-byte tag goes on whose header stands at `header`:
 * as if its length took one byte. */
enum { PROFILE_HEADER_BYTES = 2, PROFILE_HEADER_BYTES_MAX = 1 + WIRE_SHORT_VARINT_BYTES_MAX };

/* Writes the header of what stands from header + PROFILE_HEADER_BYTES up to end, moving that if its
 * length takes more than one byte (room for which must be there). Returns the new end. */
uint8_t *profile_close(uint8_t *header, uint8_t *end, uint32_t number);
/* The same, but nothing is written when there is no content. */
static inline uint8_t *profile_close_filled(uint8_t *header, uint8_t *end, uint32_t number)
{
    return end == header + PROFILE_HEADER_BYTES ? header : profile_close(header, end, number);
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

/* A field with a one-byte tag; nothing when it is 0, as proto3 has it. */
static inline uint8_t *profile_put_number(uint8_t *at, uint32_t number, uint64_t value)
{
    if (value == 0)
        return at;
    *at++ = (uint8_t)wire_tag(number, WIRE_VARINT);
    return profile_put_varint(at, value);
}
