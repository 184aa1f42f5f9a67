/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated numbers of profiles messages. Pure functions; any thread. */
#include "src/otlp/profile_numbers.h"

#include <assert.h>
#include <endian.h>

#include "src/otlp/wire.h"

/* The element or elements that one field holds. */
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

/* Goes on to the next field that has elements. */
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

/* Eight bytes side by side, the first being the lowest. */
static inline uint64_t load_lanes(const uint8_t *at)
{
    uint64_t lanes;
    memcpy(&lanes, at, sizeof(lanes));
    return le64toh(lanes);
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* What is compared with: a varint of one byte with `one`, of two with `high` and, where that is
 * equal, `low`. Adding it sets the top bit of a lane whose seven bits are as large or larger. */
struct bounds {
    uint64_t one;
    uint64_t high;
    uint64_t above_high;
    uint64_t low;
};

static struct bounds bounds_of(uint32_t count)
{
    uint32_t high = count < 1 << 14 ? count >> 7 : 0x80;
    uint32_t low = count < 1 << 14 ? count & 0x7f : 0;
    assert(count > 0);
    return (struct bounds){
        .one = EACH(0x80 - (count < 0x80 ? count : 0x80)),
        .high = EACH(0x80 - high),
        .above_high = EACH(high < 0x80 ? 0x7f - high : 0),
        .low = EACH(0x80 - low),
    };
}

/* Top bits of the lanes that end a varint of one or two bytes that is not below the bounds, that
 * end one needlessly long, or that continue one beyond two bytes. before: the eight lanes that
 * begin one byte earlier. */
static inline uint64_t find_beyond(const struct bounds *bounds, uint64_t lanes, uint64_t before)
{
    const uint64_t top = EACH(0x80);
    uint64_t bits = lanes & ~top;
    uint64_t bits_before = before & ~top;
    uint64_t is_second = before & top;
    uint64_t is_beyond = (bits + bounds->above_high) |
                         ((bits + bounds->high) & (bits_before + bounds->low)) |
                         ~(bits + EACH(0x7f));
    return (is_beyond & is_second & ~lanes) | ((bits + bounds->one) & ~is_second & ~lanes & top) |
           (lanes & is_second);
}

bool profile_indices_are_below(struct slice packed, uint32_t count)
{
    enum { LANES = 8 };
    uint64_t last = 0; /* the byte before */
    uint64_t found = 0;
    size_t at = 0;
    if (count == 0 || packed.size < LANES || packed.data[packed.size - 1] >= 0x80)
        return packed.size == 0;
    const struct bounds bounds = bounds_of(count);
    for (; at + LANES <= packed.size; at += LANES) {
        uint64_t lanes = load_lanes(packed.data + at);
        found |= find_beyond(&bounds, lanes, lanes << 8 | last);
        last = lanes >> 56;
    }
    if (at < packed.size) {
        /* The last eight bytes, some of which have been seen; lanes beyond the end are 0. */
        unsigned seen = (unsigned)(LANES - (packed.size - at)) * 8;
        uint64_t lanes = load_lanes(packed.data + packed.size - LANES) >> seen;
        found |= find_beyond(&bounds, lanes, lanes << 8 | last);
    }
    return found == 0;
}
