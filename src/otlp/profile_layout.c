/* SPDX-License-Identifier: Apache-2.0 */
/* Telling layouts apart. Sample has, by version:
 *     field   1.7                1.8, 1.9            1.10, 1.11
 *     1       location start     stack               stack
 *     2       location count     values, repeated    attributes, repeated
 *     3       values, repeated   attributes, rep.    link
 *     4       attributes, rep.   link                values, repeated
 *     5       link               timestamps          timestamps
 *     6       timestamps
 * Writers exist that do not pack a repeated field of one element: a lone varint in 3 or 4 proves
 * nothing by itself. Pure functions; any thread. */
#include "src/otlp/profile_layout.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/otlp/wire.h"

enum { SAMPLE_FIELDS = 7, ID_BYTES = 16 };

/* What was seen in the whole request. */
struct evidence {
    bool has_dictionary;
    bool has_samples;
    bool has_1_7;       /* what only 1.7 has */
    bool has_old_table; /* in a Profile: 1.6 or older */
    bool has_1_8;
    bool has_1_9; /* tells from 1.8 */
    bool has_old; /* proof of 1.8 or 1.9 */
    bool has_new; /* proof of 1.10 */
    uint64_t old_votes;
    uint64_t new_votes;
    uint64_t attributes; /* entries of the table */
    uint64_t links;
    uint64_t old_violations; /* when samples are read so */
    uint64_t new_violations;
};

/* Which fields a sample has. */
struct sample_shape {
    unsigned counts[SAMPLE_FIELDS];
    bool is_packed[SAMPLE_FIELDS];
};

static bool read_shape(struct slice sample, struct sample_shape *shape)
{
    struct wire_reader reader = wire_reader_of(sample);
    struct wire_field field;
    *shape = (struct sample_shape){0};
    while (wire_next_field(&reader, &field)) {
        if (field.number >= SAMPLE_FIELDS)
            continue;
        shape->counts[field.number]++;
        shape->is_packed[field.number] |= field.type == WIRE_BYTES;
    }
    return reader.failure == NULL;
}

static bool is_repeated(const struct sample_shape *shape, unsigned number)
{
    assert(number < SAMPLE_FIELDS);
    return shape->is_packed[number] || shape->counts[number] > 1;
}

/* Elements of a field that may be packed, and how many of them are not below `bound`. */
struct elements {
    uint64_t count;
    uint64_t beyond;
};

static void count_element(struct elements *elements, uint64_t element, uint64_t bound)
{
    elements->count++;
    elements->beyond += element > 0 && element >= bound;
}

static struct elements elements_of(struct slice sample, unsigned number, uint64_t bound)
{
    struct elements elements = {0};
    struct wire_reader reader = wire_reader_of(sample);
    struct wire_field field;
    assert(number < SAMPLE_FIELDS);
    while (wire_next_field(&reader, &field)) {
        if (field.number != number)
            continue;
        if (field.type == WIRE_FIXED64)
            elements.count++;
        else if (field.type != WIRE_BYTES)
            count_element(&elements, field.number_value, bound);
        else if (number == 5)
            elements.count += field.bytes.size / 8;
        else {
            struct wire_reader packed = wire_reader_of(field.bytes);
            while (packed.at < packed.end && packed.failure == NULL)
                count_element(&elements, wire_read_varint(&packed, WIRE_VARINT_BYTES_MAX), bound);
        }
    }
    return elements;
}

/* What does not make sense when the fields mean this. */
static uint64_t violations(const struct evidence *seen, struct slice sample, unsigned attributes,
                           unsigned link, unsigned values)
{
    struct elements events = elements_of(sample, 5, UINT64_MAX);
    struct elements found = elements_of(sample, values, UINT64_MAX);
    uint64_t sum = elements_of(sample, attributes, seen->attributes).beyond +
                   elements_of(sample, link, seen->links).beyond;
    sum += found.count > 0 && events.count > 0 && found.count != events.count;
    sum += found.count == 0 && events.count == 0;
    return sum;
}

/* The combinations that tell, where no field of its own does. */
static void vote(struct evidence *seen, const struct sample_shape *shape, struct slice sample)
{
    bool has_2 = shape->counts[2] > 0;
    bool has_3 = shape->counts[3] > 0;
    bool has_4 = shape->counts[4] > 0;
    bool has_5 = shape->counts[5] > 0;
    if (shape->is_packed[2] && has_4)
        seen->old_votes++;
    else if (has_4)
        seen->new_votes++;
    else if (has_2 && !has_5)
        seen->old_votes++; /* 1.10 would have neither value nor time */
    else if (has_2 && has_5 && !has_3 && elements_of(sample, 2, seen->attributes).beyond == 0)
        seen->new_votes++; /* times alone, as the eBPF profiler writes them */
    else if (has_2 && has_5 && !has_3)
        seen->old_votes++;
}

static void look_at_sample(struct evidence *seen, struct slice sample)
{
    struct sample_shape shape;
    seen->has_samples = true;
    if (!read_shape(sample, &shape))
        return;
    if (shape.counts[6] > 0) {
        seen->has_1_7 = true;
        return;
    }
    seen->has_old |= is_repeated(&shape, 3);
    seen->has_new |= is_repeated(&shape, 4);
    if (seen->has_old || seen->has_new)
        return;
    vote(seen, &shape, sample);
    seen->old_violations += violations(seen, sample, 3, 4, 2);
    seen->new_violations += violations(seen, sample, 2, 3, 4);
}

/* Fields of a Profile that not all versions have, or not so. */
static void look_at_field(struct evidence *seen, const struct wire_field *field)
{
    bool is_bytes = field->type == WIRE_BYTES;
    switch (field->number) {
    case 3:
        seen->has_1_7 |= field->type != WIRE_FIXED64;
        seen->has_old_table |= is_bytes;
        break;
    case 7:
        seen->has_1_8 |= !is_bytes || field->bytes.size != ID_BYTES;
        break;
    case 8:
        seen->has_1_8 |= is_bytes;
        seen->has_1_9 |= !is_bytes;
        break;
    case 9:
        seen->has_1_8 |= !is_bytes;
        seen->has_1_9 |= is_bytes;
        break;
    case 12:
        seen->has_1_8 = true;
        break;
    default:
        break;
    }
}

/* Stops when there is proof: what then contradicts it the walker finds. */
static void look_at_profile(struct evidence *seen, struct slice profile)
{
    struct wire_reader reader = wire_reader_of(profile);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number != 2)
            look_at_field(seen, &field);
        else if (field.type == WIRE_BYTES && !seen->has_old && !seen->has_new && !seen->has_1_7)
            look_at_sample(seen, field.bytes);
    }
}

static void look_at_profiles(struct evidence *seen, struct slice resource)
{
    struct wire_reader scopes = wire_reader_of(resource);
    struct wire_field scope;
    struct wire_field profile;
    while (wire_next_field(&scopes, &scope)) {
        if (scope.number != 2 || scope.type != WIRE_BYTES)
            continue;
        struct wire_reader profiles = wire_reader_of(scope.bytes);
        while (wire_next_field(&profiles, &profile))
            if (profile.number == 2 && profile.type == WIRE_BYTES)
                look_at_profile(seen, profile.bytes);
    }
}

/* A field of that number and type in a message. */
static bool has_field(struct slice message, uint32_t number, enum wire_type type)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    assert(number > 0);
    while (wire_next_field(&reader, &field))
        if (field.number == number && field.type == type)
            return true;
    return false;
}

/* In 1.7 attributes have texts as keys, and AttributeUnits (which have a field 2) are where the
 * stacks are now. */
static void look_at_dictionary(struct evidence *seen, struct slice dictionary)
{
    struct wire_reader reader = wire_reader_of(dictionary);
    struct wire_field field;
    seen->has_dictionary = true;
    while (wire_next_field(&reader, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        seen->links += field.number == 4;
        seen->attributes += field.number == 6;
        if ((field.number == 6 && !seen->has_1_7 && has_field(field.bytes, 1, WIRE_BYTES)) ||
            (field.number == 7 && field.bytes.size > 2 && field.bytes.size <= 12 &&
             has_field(field.bytes, 2, WIRE_VARINT)))
            seen->has_1_7 = true;
    }
}

static enum profile_layout judge(const struct evidence *seen)
{
    bool is_old = seen->has_old;
    if (!seen->has_dictionary)
        return seen->has_samples || seen->has_old_table ? LAYOUT_1_6 : LAYOUT_1_10;
    if (seen->has_1_7)
        return LAYOUT_1_7;
    if (seen->has_old && seen->has_new)
        return LAYOUT_UNKNOWN;
    if (!seen->has_old && !seen->has_new) {
        if ((seen->old_votes > 0) != (seen->new_votes > 0))
            is_old = seen->old_votes > 0;
        else
            is_old = seen->old_violations < seen->new_violations;
    }
    if (seen->has_1_8 && !seen->has_1_9 && (is_old || !seen->has_samples))
        return LAYOUT_1_8;
    return is_old ? LAYOUT_1_9 : LAYOUT_1_10;
}

enum profile_layout profile_layout_of(struct slice request)
{
    struct evidence seen = {0};
    struct wire_field field;
    assert(request.data != NULL || request.size == 0);
    struct wire_reader reader = wire_reader_of(request);
    while (wire_next_field(&reader, &field))
        if (field.number == 2 && field.type == WIRE_BYTES)
            look_at_dictionary(&seen, field.bytes);
    reader = wire_reader_of(request);
    while (wire_next_field(&reader, &field))
        if (field.number == 1 && field.type == WIRE_BYTES)
            look_at_profiles(&seen, field.bytes);
    return judge(&seen);
}

const char *profile_layout_name(enum profile_layout layout)
{
    static const char *const names[PROFILE_LAYOUTS] = {
        [LAYOUT_1_10] = "1.10", [LAYOUT_1_9] = "1.9", [LAYOUT_1_8] = "1.8",
        [LAYOUT_1_7] = "1.7",   [LAYOUT_1_6] = "1.6", [LAYOUT_UNKNOWN] = "unknown",
    };
    assert(layout < PROFILE_LAYOUTS);
    return names[layout];
}
