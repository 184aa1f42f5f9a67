/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf's wire format (protobuf.dev, "Encoding"): a reader and a writer over the caller's bytes,
 * both with a sticky error. They allocate nothing. Plain values, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP_BEGIN = 3, /* groups are refused everywhere */
    WIRE_GROUP_END = 4,
    WIRE_FIXED32 = 5,
};

enum {
    WIRE_VARINT_BYTES_MAX = 10,
    /* Tags and lengths fit in 32 bits. Longer encodings of them are refused, as in protobuf's C++
     * and C decoders: a back-end would refuse the whole batch. */
    WIRE_SHORT_VARINT_BYTES_MAX = 5,
};

/* Number and type are not adjacent: compilers would compare both with one load, which must wait for
 * both stores to leave the store buffer. That costs more than reading the field. */
struct wire_field {
    uint32_t number;
    uint64_t number_value; /* VARINT, FIXED64, FIXED32 */
    enum wire_type type;
    struct slice bytes; /* BYTES: the content */
    struct slice whole; /* tag and all */
};

struct wire_reader {
    const uint8_t *at;
    const uint8_t *end;
    const char *failure; /* sticky: NULL, or the error at `at`; then nothing more is read */
};

/* Borrows bytes, which may be empty with NULL. */
struct wire_reader wire_reader_of(struct slice bytes);
/* False at the end, or when the next field is malformed: failure is set then, and ret_field is
 * undefined. */
bool wire_read_field(struct wire_reader *reader, struct wire_field *ret_field);
/* The same, with the plain cases inline: a one-byte tag, number or length of up to four bytes. */
static inline bool wire_next_field(struct wire_reader *reader, struct wire_field *ret_field)
{
    enum { HEADER_BYTES_MIN = 2, HEADER_BYTES_MAX = 5 };
    const uint8_t *at = reader->at;
    size_t left = (size_t)(reader->end - at);
    size_t most = left < HEADER_BYTES_MAX ? left : HEADER_BYTES_MAX;
    enum wire_type type = left < HEADER_BYTES_MIN ? WIRE_GROUP_END : (enum wire_type)(at[0] & 7);
    if ((type != WIRE_BYTES && type != WIRE_VARINT) || at[0] >= 0x80 || at[0] < 8 ||
        reader->failure != NULL)
        return wire_read_field(reader, ret_field);
    size_t used = 2;
    uint32_t number = at[1] & 0x7f;
    for (; at[used - 1] >= 0x80 && used < most; used++)
        number |= (uint32_t)(at[used] & 0x7f) << 7 * (used - 1);
    size_t content = type == WIRE_BYTES ? number : 0;
    if (at[used - 1] >= 0x80 || content > left - used)
        return wire_read_field(reader, ret_field);
    ret_field->number = at[0] >> 3;
    ret_field->type = type;
    ret_field->number_value = type == WIRE_VARINT ? number : 0;
    ret_field->bytes = slice_of(at + used, content);
    ret_field->whole = slice_of(at, used + content);
    reader->at = at + used + content;
    return true;
}
/* For a reader that goes from field to field of a large message, each of which begins where the
 * length of the one before says: fetches what it will come to, so that it need not wait for memory.
 */
static inline void wire_fetch_ahead(const uint8_t *at)
{
    enum { AHEAD_BYTES = 1024 };
    __builtin_prefetch((const void *)((uintptr_t)at + AHEAD_BYTES));
}
/* 0 when it fails. bytes_max: WIRE_VARINT_BYTES_MAX or WIRE_SHORT_VARINT_BYTES_MAX. */
uint64_t wire_read_varint(struct wire_reader *reader, unsigned bytes_max);

static inline uint32_t wire_tag(uint32_t number, enum wire_type type)
{
    return number << 3 | (uint32_t)type;
}

static inline size_t wire_varint_size(uint64_t value)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    return (bits * 9 + 64) / 64; /* as (bits + 6) / 7, up to 64 */
}

/* The size of a length-delimited field with that much content. */
static inline size_t wire_field_size(uint32_t number, size_t content_bytes)
{
    return wire_varint_size(wire_tag(number, WIRE_BYTES)) + wire_varint_size(content_bytes) +
           content_bytes;
}

struct wire_writer {
    uint8_t *begin;
    uint8_t *at;
    uint8_t *end;
    bool has_failed; /* sticky: something did not fit; nothing more is written */
};

/* Borrows room. */
struct wire_writer wire_writer_of(void *room, size_t size);
/* The bytes written so far; the writer must not have failed. */
struct slice wire_written(const struct wire_writer *writer);
/* Each of these writes all or nothing. */
void wire_write_varint(struct wire_writer *writer, uint64_t value);
void wire_write_raw(struct wire_writer *writer, struct slice bytes);
void wire_write_fixed64(struct wire_writer *writer, uint32_t number, uint64_t value);
void wire_write_number(struct wire_writer *writer, uint32_t number, uint64_t value);
/* Tag and length; the caller writes the content. */
void wire_write_header(struct wire_writer *writer, uint32_t number, size_t content_bytes);
void wire_write_bytes(struct wire_writer *writer, uint32_t number, struct slice bytes);
