/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of profiles messages: indices into the tables of a ProfilesDictionary, and repeated
 * numbers in any of the forms that protobuf allows: packed in one field (nearly always), one field
 * per element, or both mixed. Reads without allocating. Input has passed otlp_check. Plain values,
 * any thread; valid as long as the bytes are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/otlp/wire.h"

/* An index into a table, as the client sent it. A type of its own, so that no array is subscripted
 * with a number from the network: profile_index_of is the only way from a varint to an index,
 * profile_place (profile_dictionary.h) the only way from there to a subscript. The fields are
 * int32, but a varint has 64 bits: all of them count, so that a negative number or one above
 * INT32_MAX is in no table. */
struct profile_index {
    int64_t number; /* for messages; compare with profile_has */
};

static inline struct profile_index profile_index_of(uint64_t varint)
{
    return (struct profile_index){.number = (int64_t)varint};
}

/* 0 means "not set", whatever the entry 0 of the table is. */
static inline bool profile_index_is_set(struct profile_index index)
{
    return index.number != 0;
}

struct profile_numbers {
    struct slice packed; /* the elements, when they stand in one place */
    struct slice parent; /* else, with data: the message whose fields `number` hold them */
    uint32_t number;
    bool is_fixed64; /* eight bytes each; else varints */
};

struct profile_numbers_reader {
    const uint8_t *at;
    const uint8_t *end;
    struct slice rest; /* of the parent */
    uint32_t number;
    bool is_fixed64;
};

/* Adds one occurrence of the field, found in parent. Initially only is_fixed64 is set. */
void profile_numbers_add(struct profile_numbers *numbers, struct slice parent,
                         const struct wire_field *found);
struct profile_numbers_reader profile_numbers_read(const struct profile_numbers *numbers);
/* False at the end. */
bool profile_numbers_next_any(struct profile_numbers_reader *reader, uint64_t *ret_number);
size_t profile_numbers_count(const struct profile_numbers *numbers);
/* Whether packed holds whole varints of one or two bytes, in their shortest form, that are all
 * below count. Compares 16 bytes at a time. Accepts any bytes. */
bool profile_indices_are_below(struct slice packed, uint32_t count);

/* The same with the common cases inline: varints of one or two bytes, and the end. */
static inline bool profile_numbers_next(struct profile_numbers_reader *reader, uint64_t *ret_number)
{
    const uint8_t *at = reader->at;
    if (at == reader->end && reader->rest.data == NULL)
        return false;
    if (reader->is_fixed64 || at == reader->end)
        return profile_numbers_next_any(reader, ret_number);
    if (at[0] < 0x80) {
        *ret_number = at[0];
        reader->at = at + 1;
        return true;
    }
    if (at[1] >= 0x80)
        return profile_numbers_next_any(reader, ret_number);
    *ret_number = (at[0] & 0x7fu) | (uint64_t)at[1] << 7;
    reader->at = at + 2;
    return true;
}

/* Numbers that are indices. */
struct profile_indices {
    struct profile_numbers numbers;
};

struct profile_indices_reader {
    struct profile_numbers_reader numbers;
};

static inline struct profile_indices_reader profile_indices_read(
    const struct profile_indices *indices)
{
    return (struct profile_indices_reader){profile_numbers_read(&indices->numbers)};
}

/* False at the end. */
static inline bool profile_indices_next(struct profile_indices_reader *reader,
                                        struct profile_index *ret_index)
{
    uint64_t varint;
    bool is_there = profile_numbers_next(&reader->numbers, &varint);
    if (is_there)
        *ret_index = profile_index_of(varint);
    return is_there;
}

/* An upper bound of the count, in constant time. */
static inline size_t profile_numbers_count_max(const struct profile_numbers *numbers)
{
    return numbers->parent.data != NULL ? numbers->parent.size : numbers->packed.size;
}

/* Reads a varint of unchecked bytes. Returns where the next field begins; NULL when the varint is
 * truncated or too long. */
static inline const uint8_t *profile_number_at(const uint8_t *at, const uint8_t *end,
                                               uint64_t *ret_number)
{
    uint64_t number = 0;
    if (at < end && at[0] < 0x80) {
        *ret_number = at[0];
        return at + 1;
    }
    for (unsigned i = 0; at < end && i < WIRE_VARINT_BYTES_MAX; i++, at++) {
        number |= (uint64_t)(*at & 0x7f) << 7 * i;
        if (*at >= 0x80)
            continue;
        *ret_number = number;
        return at + 1;
    }
    return NULL;
}

/* Reads a length and that many bytes. False when they are truncated. */
static inline bool profile_content_at(const uint8_t *at, const uint8_t *end,
                                      struct slice *ret_content)
{
    uint64_t size = 0;
    const uint8_t *content = profile_number_at(at, end, &size);
    if (content == NULL || content - at > WIRE_SHORT_VARINT_BYTES_MAX ||
        size > (uint64_t)(end - content))
        return false;
    *ret_content = slice_of(content, (size_t)size);
    return true;
}

/* Sums saturate. */
static inline int64_t saturated_sum(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return a > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}
