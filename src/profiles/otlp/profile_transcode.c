/* SPDX-License-Identifier: Apache-2.0 */
/* Converting layouts. From 1.8 and 1.9 to 1.10 only numbers changed, and both old and new fit into
 * a tag of the same length: tags are replaced in a copy. Fields that are gone (1.8: comments) get
 * an unused number. 1.7 is decoded and rewritten. Pure functions; any thread. */
#include "src/profiles/otlp/profile_transcode.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_set.h"

enum { NUMBERS = 16, GONE = 15, PATH_DEPTH = 4 };

/* New numbers by old ones. */
static const uint8_t sample_numbers[NUMBERS] = {[1] = 1, [2] = 4, [3] = 2, [4] = 3, [5] = 5};
/* And back to 1.9. */
static const uint8_t sample_1_9_numbers[NUMBERS] = {[1] = 1, [2] = 3, [3] = 4, [4] = 2, [5] = 5};
static const uint8_t profile_1_8_numbers[NUMBERS] = {
    [1] = 1,    [2] = 2, [3] = 3, [4] = 4,  [5] = 5,   [6] = 6,
    [7] = GONE, [8] = 7, [9] = 8, [10] = 9, [11] = 10, [12] = 11,
};

/* The numbers of the fields that lead from a request to its samples. */
static const uint8_t path[PATH_DEPTH] = {1, 2, 2, 2};

static void renumber(uint8_t *tag, const uint8_t numbers[NUMBERS], uint32_t old)
{
    assert((*tag >> 3 & 0xf) == (old & 0xf));
    uint32_t new = old < NUMBERS &&numbers[old] != 0 ? numbers[old] : old;
    if (old < NUMBERS)
        *tag = (uint8_t)((*tag & 0x87) | new << 3);
}

/* New numbers by old ones; NULL: they stay. */
struct renumbering {
    const uint8_t *samples;
    const uint8_t *profiles;
};

/* Renumbers the fields of a message `depth` steps on the path below the request. The recursion ends
 * at PATH_DEPTH. */
static void renumber_message(const struct renumbering *numbers, uint8_t *data, size_t size,
                             unsigned depth)
{
    struct wire_reader reader = wire_reader_of(slice_of(data, size));
    struct wire_field field;
    assert(depth <= PATH_DEPTH);
    while (wire_read_field(&reader, &field)) {
        uint8_t *tag = data + (field.whole.data - data);
        if (depth < PATH_DEPTH && field.number == path[depth] && field.type == WIRE_BYTES)
            renumber_message(numbers, data + (field.bytes.data - data), field.bytes.size,
                             depth + 1);
        if (depth == PATH_DEPTH)
            renumber(tag, numbers->samples, field.number);
        else if (depth == PATH_DEPTH - 1 && numbers->profiles != NULL)
            renumber(tag, numbers->profiles, field.number);
    }
}

static struct buffer *renumbered_copy(const struct renumbering *numbers, struct slice request,
                                      struct budget *budget)
{
    struct buffer *buffer = buffer_try_create(budget, request.size);
    if (buffer == NULL)
        return NULL;
    if (request.size > 0)
        memcpy(buffer->data, request.data, request.size);
    buffer->size = request.size;
    renumber_message(numbers, buffer->data, buffer->size, 0);
    return buffer;
}

/* Layout 1.7, which async-profiler 4.1 and 4.2 write. Its samples have ranges of one list of
 * locations instead of stacks, a value for each of several types, and attributes with strings as
 * keys. Its links and mappings are optional, so that their entry 0 is a real one: both tables get a
 * zero element in front, and their indices grow by one. A sample whose range is broken gets a stack
 * that does not exist, which profile_check finds. */

enum {
    TIME_GROWTH = 8, /* a varint of one byte becomes a fixed64 */
    SAMPLE_MORE_BYTES = 64,
    SAMPLE_ROOM_BYTES = 64 * 1024, /* first allocations of what a sample is decoded into */
    SAMPLE_KEPT_BYTES = 16 * 1024, /* each, for the next sample */
    FIELD_MORE_BYTES = 16,         /* of a field with another number, or with a time */
    TYPES_BYTES_MAX = 256,         /* of a Profile, besides, for each of its types */
    TYPES_MAX = 16,
    /* Of the request, all stacks. Those that write 1.7 append each stack that is new, and name its
     * range again for samples like it, so that stacks are no longer than the list: the rest is for
     * ranges that overlap. */
    SPELT_GROWTH_MAX = 16,
    DICTIONARY = 2, /* field numbers */
    STRINGS = 5,
    STACKS = 7,
};
#define NO_STACK ((uint64_t)INT32_MAX)

/* A sample of 1.7, decoded. */
struct old_sample {
    uint64_t begin;
    uint64_t count;
    uint64_t link; /* index + 1; 0: none */
    struct profile_bytes values;
    struct profile_bytes attributes;
    struct profile_bytes times; /* fixed64 */
};

struct transcoding {
    struct profile_bytes out;
    struct old_sample sample; /* the one at hand, whose room is used again */
    struct profile_set stacks;
    struct profile_set keys; /* of attributes: they go after the strings of the request */
    uint64_t strings;        /* of the request */
    uint64_t spelt_bytes;    /* of all stacks, each range counted once */
    uint64_t spelt_max;
    struct budget_reserve reserve;
    bool has_failed; /* no memory */
};

/* A sample that the Profile of each type gets, with another value. Behind this are the new fields
 * in front of the value, all values as varints, and the new fields behind it. */
struct wide_sample {
    size_t head_bytes;
    size_t values_bytes;
    size_t value_at; /* of the next type, in the values */
    size_t tail_bytes;
};

/* One of a Profile's locations. Samples with the same stack name the same range of them. */
struct old_location {
    const uint8_t *begin;
    uint32_t count; /* of the last range that begins here; 0: none yet */
    uint32_t stack; /* which that became */
};

/* What the samples of a Profile share, and what each of the new ones gets: found once, however many
 * types there are. */
struct old_profile {
    struct slice bytes;
    struct slice types[TYPES_MAX];
    size_t types_count;
    struct profile_bytes wide_samples; /* those with a value for each type: see wide_sample */
    struct profile_bytes shared;       /* new fields, of all Profiles */
    struct profile_bytes first;        /* and of the first one only: id and payload */
    struct old_location *locations;    /* and one more, which begins at the end */
    size_t locations_count;
};

/* Reserves budget for output_bytes of output, and for working_bytes besides. Must come before
 * anything is written. Sets has_failed when there is none. */
static bool reserve_room(struct transcoding *work, uint64_t output_bytes, uint64_t working_bytes)
{
    struct budget_reserve *reserve = &work->reserve;
    uint64_t wanted = profile_bytes_growth(&work->out, output_bytes) + working_bytes;
    if (!work->has_failed && reserve->budget != NULL && reserve->left < wanted)
        work->has_failed = !budget_reserve_more(reserve, wanted - reserve->left);
    return !work->has_failed;
}

static void put_varint(struct profile_bytes *out, uint64_t value)
{
    uint8_t *at = profile_bytes_room(out, WIRE_VARINT_BYTES_MAX);
    out->size += (size_t)(profile_put_varint(at, value) - at);
}

static void put_fixed64(struct profile_bytes *out, uint64_t value)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    profile_bytes_add(out, slice_of(bytes, sizeof(bytes)));
}

/* The field with another number below 16. */
static void put_field(struct profile_bytes *out, uint32_t number, const struct wire_field *field)
{
    struct wire_reader tag = wire_reader_of(field->whole);
    wire_read_varint(&tag, WIRE_SHORT_VARINT_BYTES_MAX);
    put_varint(out, wire_tag(number, field->type));
    profile_bytes_add(out, slice_of(tag.at, (size_t)(tag.end - tag.at)));
}

/* Appends the varints of a field that may be packed to out, up to the first malformed one. */
static void add_varints(struct profile_bytes *out, const struct wire_field *field)
{
    struct wire_reader reader = wire_reader_of(field->bytes);
    if (field->type != WIRE_BYTES) {
        put_varint(out, field->number_value);
        return;
    }
    while (reader.at < reader.end) {
        uint64_t value = wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX);
        if (reader.failure != NULL)
            return;
        put_varint(out, value);
    }
}

/* The same as fixed64. */
static void add_times(struct profile_bytes *out, const struct wire_field *field)
{
    struct wire_reader reader = wire_reader_of(field->bytes);
    if (field->type != WIRE_BYTES) {
        put_fixed64(out, field->number_value);
        return;
    }
    while (reader.at < reader.end) {
        uint64_t value = wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX);
        if (reader.failure != NULL)
            return;
        put_fixed64(out, value);
    }
}

/* Nothing in it is needed any more. */
static void rest(struct profile_bytes *bytes)
{
    bytes->size = 0;
    if (bytes->capacity > SAMPLE_KEPT_BYTES)
        profile_bytes_fini(bytes);
}

static size_t count_varints(struct slice packed)
{
    size_t count = 0;
    for (size_t i = 0; i < packed.size; i++)
        count += packed.data[i] < 0x80;
    return count;
}

/* An index into a table that gets a zero element in front. One that is invalid stays invalid. */
static uint64_t one_more(uint64_t index)
{
    return index < INT32_MAX ? index + 1 : UINT64_MAX;
}

static uint64_t stack_of(struct transcoding *work, const struct old_profile *profile,
                         const struct old_sample *sample)
{
    if (sample->count == 0)
        return 0;
    if (sample->begin >= profile->locations_count ||
        sample->count > profile->locations_count - sample->begin)
        return NO_STACK;
    struct old_location *first = &profile->locations[sample->begin];
    if (first->count == sample->count)
        return first->stack;
    size_t size = (size_t)(first[sample->count].begin - first->begin);
    work->spelt_bytes += size;
    if (work->spelt_bytes > work->spelt_max)
        return NO_STACK; /* few bytes can refer to many long stacks */
    if (!reserve_room(work, 0, profile_set_growth(&work->stacks, size)))
        return NO_STACK;
    first->stack = profile_set_add(&work->stacks, slice_of(first->begin, size));
    first->count = (uint32_t)sample->count; /* fits: each takes a byte of those spelt */
    return first->stack;
}

/* Fields of 1.7: 1 start, 2 count, 3 values, 4 attributes, 5 link, 6 times (varints). */
static void read_sample(struct old_sample *sample, struct slice bytes)
{
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    sample->begin = sample->count = sample->link = 0;
    rest(&sample->values);
    rest(&sample->attributes);
    rest(&sample->times);
    while (wire_read_field(&reader, &field)) {
        if (field.number == 1)
            sample->begin = field.number_value;
        else if (field.number == 2)
            sample->count = field.number_value;
        else if (field.number == 3)
            add_varints(&sample->values, &field);
        else if (field.number == 4)
            add_varints(&sample->attributes, &field);
        else if (field.number == 5)
            sample->link = one_more(field.number_value);
        else if (field.number == 6)
            add_times(&sample->times, &field);
    }
}

/* Its first value, as varint. */
static struct slice first_value(struct slice values)
{
    size_t size = 0;
    while (values.data[size++] >= 0x80) {
    }
    assert(size <= values.size);
    return slice_of(values.data, size);
}

static void put_value(struct profile_bytes *out, struct slice head, struct slice values,
                      struct slice tail)
{
    size_t begin = out->size;
    profile_bytes_add(out, head);
    if (values.size > 0)
        profile_bytes_field(out, 4, values);
    profile_bytes_add(out, tail);
    profile_bytes_wrap(out, begin, 2);
}

/* Writes the sample for the first type: the first value of a wide one, else all. Keeps a wide one
 * for the other types. */
static void put_sample(struct transcoding *work, struct old_profile *profile, struct slice bytes)
{
    struct profile_bytes *out = &work->out;
    struct old_sample *sample = &work->sample;
    uint64_t more = TIME_GROWTH * bytes.size + SAMPLE_MORE_BYTES;
    if (!reserve_room(work, more, 4 * more + SAMPLE_ROOM_BYTES))
        return;
    read_sample(sample, bytes);
    struct slice values = profile_bytes_slice(&sample->values);
    bool is_wide = profile->types_count >= 2 && count_varints(values) == profile->types_count;
    size_t begin = out->size;
    profile_bytes_number(out, 1, stack_of(work, profile, sample));
    if (sample->attributes.size > 0)
        profile_bytes_field(out, 2, profile_bytes_slice(&sample->attributes));
    profile_bytes_number(out, 3, sample->link);
    struct wide_sample wide = {.head_bytes = out->size - begin, .values_bytes = values.size};
    struct slice first = is_wide ? first_value(values) : values;
    if (first.size > 0)
        profile_bytes_field(out, 4, first);
    size_t tail = out->size;
    if (sample->times.size > 0)
        profile_bytes_field(out, 5, profile_bytes_slice(&sample->times));
    wide.tail_bytes = out->size - tail;
    wide.value_at = first.size;
    struct profile_bytes *kept = &profile->wide_samples;
    if (is_wide && reserve_room(work, 0, profile_bytes_growth(kept, sizeof(wide) + more))) {
        profile_bytes_add(kept, slice_of(&wide, sizeof(wide)));
        profile_bytes_add(kept, slice_of(out->data + begin, wide.head_bytes));
        profile_bytes_add(kept, values);
        profile_bytes_add(kept, slice_of(out->data + tail, wide.tail_bytes));
    }
    profile_bytes_wrap(out, begin, 2);
}

/* Writes the wide samples for the next type. */
static void put_wide_samples(struct transcoding *work, struct old_profile *profile)
{
    struct profile_bytes *kept = &profile->wide_samples;
    struct wide_sample wide;
    for (size_t at = 0; at < kept->size;
         at += sizeof(wide) + wide.head_bytes + wide.values_bytes + wide.tail_bytes) {
        memcpy(&wide, kept->data + at, sizeof(wide));
        const uint8_t *head = kept->data + at + sizeof(wide);
        const uint8_t *values = head + wide.head_bytes;
        struct slice value =
            first_value(slice_of(values + wide.value_at, wide.values_bytes - wide.value_at));
        if (!reserve_room(work, wide.head_bytes + value.size + wide.tail_bytes + SAMPLE_MORE_BYTES,
                          0))
            return;
        put_value(&work->out, slice_of(head, wide.head_bytes), value,
                  slice_of(values + wide.values_bytes, wide.tail_bytes));
        wide.value_at += value.size;
        memcpy(kept->data + at, &wide, sizeof(wide));
    }
}

/* Finds the fields besides types, samples and locations that 1.10 has, with its numbers. */
static void read_rest(struct transcoding *work, struct old_profile *profile)
{
    /* Of fields that 1.10 has with other numbers. */
    static const uint8_t numbers[NUMBERS] = {
        [5] = 4, [6] = 5, [7] = 6, [10] = 7, [11] = 8, [12] = 9, [13] = 10, [14] = 11};
    struct wire_reader reader = wire_reader_of(profile->bytes);
    struct wire_field field;
    while (!work->has_failed && wire_read_field(&reader, &field)) {
        /* Id and payload stay with the first type. */
        bool is_for_one = field.number == 10 || field.number == 12 || field.number == 13;
        struct profile_bytes *out = is_for_one ? &profile->first : &profile->shared;
        bool is_time = field.number == 4 && field.type == WIRE_VARINT;
        bool is_kept = is_time || (field.number < NUMBERS && numbers[field.number] != 0);
        if (!is_kept ||
            !reserve_room(work, 0, profile_bytes_growth(out, field.whole.size + FIELD_MORE_BYTES)))
            continue;
        if (is_time) {
            put_varint(out, wire_tag(3, WIRE_FIXED64));
            put_fixed64(out, field.number_value);
        } else {
            put_field(out, numbers[field.number], &field);
        }
    }
}

/* Writes one new Profile for one type of the old one; that of type 0 first. */
static void put_profile(struct transcoding *work, struct old_profile *profile, size_t type)
{
    struct profile_bytes *out = &work->out;
    size_t begin = out->size;
    struct slice shared = profile_bytes_slice(&profile->shared);
    struct slice first = profile_bytes_slice(&profile->first);
    struct wire_reader reader = wire_reader_of(profile->bytes);
    struct wire_field field;
    uint64_t type_bytes = type < profile->types_count ? profile->types[type].size : 0;
    if (!reserve_room(work, type_bytes + TYPES_BYTES_MAX, 0))
        return;
    if (type < profile->types_count)
        profile_bytes_field(out, 1, profile->types[type]);
    while (type == 0 && !work->has_failed && wire_read_field(&reader, &field))
        if (field.number == 2 && field.type == WIRE_BYTES)
            put_sample(work, profile, field.bytes);
    if (type > 0)
        put_wide_samples(work, profile);
    if (!reserve_room(work, shared.size + first.size + TYPES_BYTES_MAX, 0))
        return;
    profile_bytes_add(out, shared);
    if (type == 0)
        profile_bytes_add(out, first);
    profile_bytes_wrap(out, begin, 2);
}

/* Finds the locations in the packed list. The caller frees them. */
static bool read_locations(struct transcoding *work, struct old_profile *profile,
                           struct slice packed)
{
    const uint8_t *at = packed.data;
    profile->locations_count = count_varints(packed);
    size_t bytes = (profile->locations_count + 1) * sizeof(profile->locations[0]);
    if (!reserve_room(work, 0, bytes))
        return false;
    if (work->out.budget != NULL)
        budget_take(work->out.budget, bytes);
    profile->locations = mem_try_alloc(bytes);
    work->has_failed = profile->locations == NULL;
    for (size_t i = 0; !work->has_failed && i <= profile->locations_count; i++) {
        profile->locations[i] = (struct old_location){.begin = at};
        while (i < profile->locations_count && *at++ >= 0x80) {
        }
    }
    if (work->has_failed && work->out.budget != NULL)
        budget_return(work->out.budget, bytes);
    return !work->has_failed;
}

static void transcode_profile(struct transcoding *work, struct slice bytes)
{
    struct budget *budget = work->out.budget;
    struct old_profile profile = {.bytes = bytes,
                                  .wide_samples.budget = budget,
                                  .shared.budget = budget,
                                  .first.budget = budget};
    struct profile_bytes locations = {.budget = budget};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    /* For a copy of the list of locations, which doubles. */
    if (!reserve_room(work, 0, 4 * bytes.size + SAMPLE_ROOM_BYTES))
        return;
    profile_bytes_room(&locations, 1);
    while (wire_read_field(&reader, &field)) {
        if (field.number == 1 && field.type == WIRE_BYTES && profile.types_count < TYPES_MAX)
            profile.types[profile.types_count++] = field.bytes;
        else if (field.number == 3)
            add_varints(&locations, &field);
    }
    if (read_locations(work, &profile, profile_bytes_slice(&locations))) {
        read_rest(work, &profile);
        for (size_t type = 0; !work->has_failed && (type == 0 || type < profile.types_count);
             type++)
            put_profile(work, &profile, type);
        mem_free(profile.locations);
        if (budget != NULL)
            budget_return(budget, (profile.locations_count + 1) * sizeof(profile.locations[0]));
    }
    profile_bytes_fini(&profile.wide_samples);
    profile_bytes_fini(&profile.shared);
    profile_bytes_fini(&profile.first);
    profile_bytes_fini(&locations);
}

/* A resource or scope: its children, field 2, are transcoded, the rest is copied. */
static void transcode_children(struct transcoding *work, struct slice message, bool are_profiles)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        size_t begin = work->out.size;
        if (!reserve_room(work, field.whole.size + SAMPLE_MORE_BYTES, 0))
            return;
        if (field.number != 2 || field.type != WIRE_BYTES) {
            profile_bytes_add(&work->out, field.whole);
        } else if (are_profiles) {
            transcode_profile(work, field.bytes);
        } else {
            transcode_children(work, field.bytes, true);
            profile_bytes_wrap(&work->out, begin, 2);
        }
    }
    assert(work->out.size <= work->out.capacity);
}

/* KeyValue to KeyValueAndUnit: the key, of which the last one counts, becomes an index after the
 * request's strings. */
static void put_attribute(struct transcoding *work, struct slice pair)
{
    struct profile_bytes *out = &work->out;
    struct wire_reader parts = wire_reader_of(pair);
    struct wire_field part;
    struct slice key = {0};
    size_t begin = out->size;
    while (wire_read_field(&parts, &part))
        if (part.number == 1 && part.type == WIRE_BYTES)
            key = part.bytes;
    if (key.size > 0)
        profile_bytes_number(out, 1, work->strings + profile_set_add(&work->keys, key) - 1);
    parts = wire_reader_of(pair);
    while (wire_read_field(&parts, &part))
        if (part.number == 2)
            profile_bytes_add(out, part.whole);
    profile_bytes_wrap(out, begin, 6);
}

/* Drops units: they are a hint, and belong to keys in 1.7. */
static void put_tables(struct transcoding *work, struct slice dictionary)
{
    static const uint8_t mapping_numbers[NUMBERS] = {[1] = 1, [2] = 2, [3] = 3, [4] = 4, [5] = 5};
    static const uint8_t location_numbers[NUMBERS] = {[2] = 2, [3] = 3, [5] = 4};
    struct profile_bytes *out = &work->out;
    struct wire_reader reader = wire_reader_of(dictionary);
    struct wire_field field;
    struct wire_field part;
    while (wire_read_field(&reader, &field)) {
        if (field.type != WIRE_BYTES || field.number == STACKS)
            continue;
        if (!reserve_room(work, 2 * field.whole.size + SAMPLE_MORE_BYTES,
                          profile_set_growth(&work->keys, field.whole.size)))
            return;
        size_t begin = out->size;
        struct wire_reader parts = wire_reader_of(field.bytes);
        if (field.number == 6) {
            put_attribute(work, field.bytes);
        } else if (field.number == 1 || field.number == 2) {
            /* A mapping or location; both tables get a zero element in front. */
            const uint8_t *numbers = field.number == 1 ? mapping_numbers : location_numbers;
            while (wire_read_field(&parts, &part)) {
                if (field.number == 2 && part.number == 1)
                    profile_bytes_number(out, 1, one_more(part.number_value)); /* the mapping */
                else if (part.number < NUMBERS && numbers[part.number] != 0)
                    put_field(out, numbers[part.number], &part);
            }
            profile_bytes_wrap(out, begin, field.number);
        } else {
            profile_bytes_add(out, field.whole);
        }
    }
}

static void put_dictionary(struct transcoding *work, struct slice request)
{
    size_t begin = work->out.size;
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    uint64_t sets_bytes = work->stacks.encoded_bytes + work->stacks.count * SAMPLE_MORE_BYTES +
                          work->keys.encoded_bytes;
    if (!reserve_room(work, request.size + sets_bytes, 0))
        return;
    profile_bytes_field(&work->out, 1,
                        slice_of("", 0)); /* the zero elements of mappings and links */
    profile_bytes_field(&work->out, 4, slice_of("", 0));
    while (wire_read_field(&reader, &field))
        if (field.number == DICTIONARY && field.type == WIRE_BYTES)
            put_tables(work, field.bytes);
    sets_bytes += work->keys.encoded_bytes; /* which have been added meanwhile */
    if (!reserve_room(work, sets_bytes + SAMPLE_MORE_BYTES, 0))
        return;
    for (uint32_t i = 1; i < work->keys.count; i++)
        profile_bytes_field(&work->out, STRINGS, profile_set_at(&work->keys, i));
    for (uint32_t i = 0; i < work->stacks.count; i++) {
        size_t stack = work->out.size;
        if (i > 0)
            profile_bytes_field(&work->out, 1, profile_set_at(&work->stacks, i));
        profile_bytes_wrap(&work->out, stack, STACKS);
    }
    profile_bytes_wrap(&work->out, begin, DICTIONARY);
}

struct buffer *profile_transcode(enum profile_layout from, struct slice request,
                                 struct budget *budget)
{
    assert(from == LAYOUT_1_9 || from == LAYOUT_1_8 || from == LAYOUT_1_7);
    if (from != LAYOUT_1_7)
        return renumbered_copy(
            &(const struct renumbering){
                .samples = sample_numbers,
                .profiles = from == LAYOUT_1_8 ? profile_1_8_numbers : NULL,
            },
            request, budget);
    struct transcoding work = {
        .out.budget = budget,
        .sample = {.values.budget = budget, .attributes.budget = budget, .times.budget = budget},
        .spelt_max = SPELT_GROWTH_MAX * request.size + PROFILE_SPELT_BYTES_MORE};
    if (work.spelt_max > PROFILE_SPELT_BYTES_MAX)
        work.spelt_max = PROFILE_SPELT_BYTES_MAX;
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    struct wire_field entry;
    struct buffer *buffer = NULL;
    if (budget_reserve(&work.reserve, budget, SAMPLE_ROOM_BYTES) != BUDGET_GIVEN)
        return NULL;
    profile_set_init(&work.stacks, budget);
    profile_set_init(&work.keys, budget);
    while (wire_read_field(&reader, &field)) {
        struct wire_reader tables = wire_reader_of(field.bytes);
        if (field.number == DICTIONARY && field.type == WIRE_BYTES)
            while (wire_read_field(&tables, &entry))
                work.strings += entry.number == STRINGS && entry.type == WIRE_BYTES;
    }
    reader = wire_reader_of(request);
    while (!work.has_failed && wire_read_field(&reader, &field)) {
        size_t begin = work.out.size;
        if (field.number != 1 || field.type != WIRE_BYTES)
            continue;
        transcode_children(&work, field.bytes, false);
        profile_bytes_wrap(&work.out, begin, 1);
    }
    if (!work.has_failed)
        put_dictionary(&work, request);
    if (!work.has_failed)
        buffer = buffer_try_create(budget, work.out.size);
    if (buffer != NULL) {
        if (work.out.size > 0)
            memcpy(buffer->data, work.out.data, work.out.size);
        buffer->size = work.out.size;
    }
    profile_bytes_fini(&work.out);
    profile_bytes_fini(&work.sample.values);
    profile_bytes_fini(&work.sample.attributes);
    profile_bytes_fini(&work.sample.times);
    profile_set_fini(&work.stacks);
    profile_set_fini(&work.keys);
    budget_release(&work.reserve);
    return buffer;
}

struct buffer *profile_transcode_back(struct slice request, struct budget *budget)
{
    const struct renumbering numbers = {.samples = sample_1_9_numbers};
    return renumbered_copy(&numbers, request, budget);
}
