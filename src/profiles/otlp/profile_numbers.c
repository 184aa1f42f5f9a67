/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated numbers of profiles messages. Pure functions; any thread. */
#include "src/profiles/otlp/profile_numbers.h"

#include <assert.h>
#include <endian.h>

#include "src/otlp/wire.h"

/* The bytes of the elements in one field. */
static struct slice elements_of(const struct wire_field *found)
{
    if (found->type == WIRE_BYTES)
        return found->bytes;
    size_t tag_bytes = 1;
    while (found->whole.data[tag_bytes - 1] >= 0x80)
        tag_bytes++;
    assert(tag_bytes < found->whole.size);
    return slice_of(found->whole.data + tag_bytes, found->whole.size - tag_bytes);
}

void profile_numbers_add(struct profile_numbers *numbers, struct slice parent,
                         const struct wire_field *found)
{
    struct slice elements = elements_of(found);
    assert(numbers->number == 0 || numbers->number == found->number);
    numbers->number = found->number;
    if (elements.size == 0)
        return;
    if (numbers->packed.size == 0 && numbers->parent.data == NULL) {
        numbers->packed = elements;
        return;
    }
    numbers->packed = (struct slice){0};
    numbers->parent = parent;
}

struct profile_numbers_reader profile_numbers_read(const struct profile_numbers *numbers)
{
    const uint8_t *begin = numbers->packed.data;
    assert(numbers->packed.size == 0 || numbers->parent.data == NULL);
    return (struct profile_numbers_reader){
        .at = begin,
        .end = numbers->packed.size > 0 ? begin + numbers->packed.size : begin,
        .rest = numbers->parent,
        .number = numbers->number,
        .is_fixed64 = numbers->is_fixed64,
    };
}

/* Advances to the next field that has elements. */
static bool find_elements(struct profile_numbers_reader *reader)
{
    struct wire_reader fields = wire_reader_of(reader->rest);
    struct wire_field found;
    while (wire_next_field(&fields, &found)) {
        struct slice elements = {0};
        if (found.number == reader->number)
            elements = elements_of(&found);
        if (elements.size == 0)
            continue;
        reader->at = elements.data;
        reader->end = elements.data + elements.size;
        reader->rest = slice_of(fields.at, (size_t)(fields.end - fields.at));
        return true;
    }
    assert(fields.failure == NULL);
    reader->rest = (struct slice){0};
    return false;
}

bool profile_numbers_next_any(struct profile_numbers_reader *reader, uint64_t *ret_number)
{
    uint64_t number = 0;
    if (reader->at == reader->end && !find_elements(reader))
        return false;
    if (reader->is_fixed64) {
        assert(reader->end - reader->at >= 8);
        memcpy(&number, reader->at, sizeof(number));
        reader->at += sizeof(number);
        *ret_number = le64toh(number);
        return true;
    }
    unsigned shift = 0;
    for (; *reader->at >= 0x80; shift += 7)
        number |= (uint64_t)(*reader->at++ & 0x7f) << shift;
    number |= (uint64_t)*reader->at++ << shift;
    assert(reader->at <= reader->end);
    *ret_number = number;
    return true;
}

size_t profile_numbers_count(const struct profile_numbers *numbers)
{
    struct profile_numbers_reader reader = profile_numbers_read(numbers);
    size_t count = 0;
    assert(numbers->packed.size == 0 || numbers->packed.data != NULL);
    if (numbers->is_fixed64 && numbers->parent.data == NULL)
        return numbers->packed.size / 8;
    while (reader.at < reader.end || find_elements(&reader)) {
        if (numbers->is_fixed64)
            reader.at += 8;
        else
            while (*reader.at++ >= 0x80) {
            }
        count++;
    }
    return count;
}

/* Sixteen bytes side by side; a comparison yields 0 or 0xff in each. */
typedef uint8_t profile_lanes __attribute__((vector_size(16)));
typedef int8_t profile_signed_lanes __attribute__((vector_size(16)));

enum { LANES = sizeof(profile_lanes) };

static inline profile_lanes load_lanes(const uint8_t *at)
{
    profile_lanes lanes;
    memcpy(&lanes, at, sizeof(lanes));
    return lanes;
}

/* What varints are compared with. */
struct bounds {
    int8_t one_max; /* a varint of one byte */
    uint8_t high;   /* the second byte of one of two, and where that is equal */
    uint8_t low;    /* the first */
};

/* The lanes that end a varint of one or two bytes that is not below the bounds, that end one longer
 * than its shortest form, or that continue one beyond two bytes: such a second byte is above
 * `high`, or both are 0x80. before: the lanes that begin one byte earlier. */
static inline profile_lanes find_beyond(const struct bounds *bounds, profile_lanes lanes,
                                        profile_lanes before)
{
    profile_lanes is_second = (profile_lanes)((profile_signed_lanes)before < 0);
    /* A second byte of 0 wraps around. */
    profile_lanes is_beyond = (profile_lanes)(lanes - 1 >= bounds->high);
    is_beyond |= (profile_lanes)(lanes == bounds->high) & (profile_lanes)(before >= bounds->low);
    profile_lanes is_one_beyond = (profile_lanes)((profile_signed_lanes)lanes > bounds->one_max);
    return (is_beyond & is_second) | (is_one_beyond & ~is_second);
}

static inline bool is_zero(profile_lanes lanes)
{
    uint64_t halves[2];
    memcpy(halves, &lanes, sizeof(halves));
    return (halves[0] | halves[1]) == 0;
}

/* For at most 16 bytes; the last one ends a varint. */
static bool __attribute__((noinline)) few_are_below(struct slice packed, struct bounds bounds)
{
    uint8_t few[1 + LANES] = {0}; /* zeros after the last */
    assert(packed.size <= LANES);
    memcpy(few + 1, packed.data, packed.size);
    return is_zero(find_beyond(&bounds, load_lanes(few + 1), load_lanes(few)));
}

bool profile_indices_are_below(struct slice packed, uint32_t count)
{
    profile_lanes found = {0};
    if (packed.size == 0)
        return true;
    if (count == 0 || packed.data[packed.size - 1] >= 0x80)
        return false;
    const struct bounds bounds = {
        .one_max = count < 0x80 ? (int8_t)(count - 1) : 0x7f,
        .high = count < 1 << 14 ? (uint8_t)(count >> 7) : 0x80,
        .low = count < 1 << 14 ? 0x80 | (count & 0x7f) : 0x80,
    };
    if (packed.size <= LANES)
        return few_are_below(packed, bounds);
    if ((int8_t)packed.data[0] > bounds.one_max)
        return false;
    const uint8_t *last = packed.data + packed.size - LANES;
    for (const uint8_t *from = packed.data + 1; from < last; from += LANES)
        found |= find_beyond(&bounds, load_lanes(from), load_lanes(from - 1));
    /* These overlap with the last ones of the loop. */
    found |= find_beyond(&bounds, load_lanes(last), load_lanes(last - 1));
    return is_zero(found);
}
