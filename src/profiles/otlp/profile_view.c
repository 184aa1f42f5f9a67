/* SPDX-License-Identifier: Apache-2.0 */
/* Iterating over profiles requests. Pure functions; any thread. */
#include "src/profiles/otlp/profile_view.h"

#include <assert.h>

/* The next field of that number, which holds a message or string. */
static bool next_message(struct wire_reader *reader, uint32_t number, struct slice *ret_bytes)
{
    struct wire_field field;
    while (wire_next_field(reader, &field)) {
        if (field.number != number)
            continue;
        *ret_bytes = field.bytes;
        return true;
    }
    assert(reader->failure == NULL);
    return false;
}

bool profile_next_resource(struct wire_reader *request, struct profile_resource *ret_resource)
{
    struct profile_resource found = {0};
    struct wire_field field;
    if (!next_message(request, 1, &found.bytes))
        return false;
    struct wire_reader reader = wire_reader_of(found.bytes);
    while (wire_next_field(&reader, &field)) {
        if (field.number == 1)
            found.resource = field.bytes;
        else if (field.number == 3)
            found.schema_url = field.bytes;
    }
    assert(reader.failure == NULL);
    *ret_resource = found;
    return true;
}

bool profile_next_scope(struct wire_reader *resource, struct profile_scope *ret_scope)
{
    struct profile_scope found = {0};
    struct wire_field field;
    if (!next_message(resource, 2, &found.bytes))
        return false;
    struct wire_reader reader = wire_reader_of(found.bytes);
    while (wire_next_field(&reader, &field)) {
        if (field.number == 1)
            found.scope = field.bytes;
        else if (field.number == 2)
            found.profiles_count++;
        else if (field.number == 3)
            found.schema_url = field.bytes;
    }
    assert(reader.failure == NULL);
    *ret_scope = found;
    return true;
}

static struct profile_value_type value_type_of(struct slice bytes)
{
    struct profile_value_type type = {.is_set = true};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == 1)
            type.type = profile_index_of(field.number_value);
        else if (field.number == 2)
            type.unit = profile_index_of(field.number_value);
    }
    assert(reader.failure == NULL);
    return type;
}

/* Passes samples that stand next to each other, each of less than 128 bytes, but for the last ones
 * of the profile. Returns how many. */
static uint64_t pass_samples(struct wire_reader *profile)
{
    enum { TAG = 2 << 3 | WIRE_BYTES, HEADER_BYTES = 2, BYTES_MAX = HEADER_BYTES + 0x7f };
    const uint8_t *at = profile->at;
    uint64_t count = 0;
    for (; profile->end - at >= BYTES_MAX && at[0] == TAG && at[1] < 0x80; count++) {
        wire_fetch_ahead(at);
        at += HEADER_BYTES + at[1];
    }
    profile->at = at;
    return count;
}

struct profile profile_of(struct slice bytes)
{
    struct profile profile = {.bytes = bytes};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    for (;;) {
        profile.samples_count += pass_samples(&reader);
        if (!wire_next_field(&reader, &field))
            break;
        switch (field.number) {
        case 1:
            profile.sample_type = value_type_of(field.bytes);
            break;
        case 2:
            profile.samples_count++;
            break;
        case 3:
            profile.time_unix_ns = field.number_value;
            break;
        case 4:
            profile.duration_ns = field.number_value;
            break;
        case 5:
            profile.period_type = value_type_of(field.bytes);
            break;
        case 6:
            profile.period = (int64_t)field.number_value;
            break;
        case 7:
            profile.id = field.bytes;
            break;
        case 8:
            profile.dropped_attributes = (uint32_t)field.number_value;
            break;
        case 9:
            profile.payload_format = field.bytes;
            break;
        case 10:
            profile.payload = field.bytes;
            break;
        case 11:
            profile_numbers_add(&profile.attributes.numbers, bytes, &field);
            break;
        default:
            break;
        }
    }
    assert(reader.failure == NULL);
    return profile;
}

bool profile_next_profile(struct wire_reader *scope, struct profile *ret_profile)
{
    struct slice bytes;
    if (!next_message(scope, 2, &bytes))
        return false;
    *ret_profile = profile_of(bytes);
    return true;
}

struct profile_iterator profile_iterator_of(struct slice request)
{
    return (struct profile_iterator){.resources = wire_reader_of(request)};
}

struct profile_iterator profile_iterator_of_resource(struct slice resource_profiles)
{
    return (struct profile_iterator){.scopes = wire_reader_of(resource_profiles)};
}

bool profile_iterator_next(struct profile_iterator *at)
{
    while (!profile_next_profile(&at->profiles, &at->profile)) {
        while (!profile_next_scope(&at->scopes, &at->scope)) {
            if (!profile_next_resource(&at->resources, &at->resource))
                return false;
            at->scopes = wire_reader_of(at->resource.bytes);
        }
        at->profiles = wire_reader_of(at->scope.bytes);
    }
    return true;
}

/* Reads fields as nearly all samples have them: a number of one or two bytes, or packed numbers of
 * less than 128 bytes that come once. Returns where anything else begins. */
static const uint8_t *read_usual_fields(struct profile_sample *sample, const uint8_t *at,
                                        const uint8_t *end)
{
    enum { TAG_STACK = 1 << 3, TAG_LINK = 3 << 3, HEADER_BYTES = 2, LEFT_MIN = 3 };
    while (end - at >= LEFT_MIN) {
        const uint8_t tag = at[0];
        if (tag == TAG_STACK || tag == TAG_LINK) {
            bool is_short = at[1] < 0x80;
            if (!is_short && at[2] >= 0x80)
                break;
            uint32_t index = is_short ? at[1] : (at[1] & 0x7fu) | (uint32_t)at[2] << 7;
            *(tag == TAG_STACK ? &sample->stack : &sample->link) = profile_index_of(index);
            at += is_short ? HEADER_BYTES : HEADER_BYTES + 1;
            continue;
        }
        struct profile_numbers *numbers = NULL;
        if (tag == (2 << 3 | WIRE_BYTES))
            numbers = &sample->attributes.numbers;
        else if (tag == (4 << 3 | WIRE_BYTES))
            numbers = &sample->values;
        else if (tag == (5 << 3 | WIRE_BYTES))
            numbers = &sample->timestamps;
        if (numbers == NULL || at[1] >= 0x80 || at[1] > end - at - HEADER_BYTES ||
            numbers->number != 0)
            break;
        numbers->number = tag >> 3;
        numbers->packed = slice_of(at + HEADER_BYTES, at[1]);
        at += HEADER_BYTES + at[1];
    }
    assert(at <= end);
    return at;
}

void profile_read_sample(struct slice bytes, struct profile_sample *ret_sample)
{
    struct profile_sample *sample = ret_sample;
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    /* Field by field: clearing all of it first costs as much as reading it. */
    sample->bytes = bytes;
    sample->stack = profile_index_of(0);
    sample->link = profile_index_of(0);
    sample->attributes = (struct profile_indices){.numbers = {.is_fixed64 = false}};
    sample->values = (struct profile_numbers){.is_fixed64 = false};
    sample->timestamps = (struct profile_numbers){.is_fixed64 = true};
    for (;;) {
        reader.at = read_usual_fields(sample, reader.at, reader.end);
        if (reader.at == reader.end || !wire_next_field(&reader, &field))
            break;
        if (field.number == 1)
            sample->stack = profile_index_of(field.number_value);
        else if (field.number == 2)
            profile_numbers_add(&sample->attributes.numbers, bytes, &field);
        else if (field.number == 3)
            sample->link = profile_index_of(field.number_value);
        else if (field.number == 4)
            profile_numbers_add(&sample->values, bytes, &field);
        else if (field.number == 5)
            profile_numbers_add(&sample->timestamps, bytes, &field);
    }
    assert(reader.failure == NULL);
}

struct profile_index profile_link_of_sample(struct slice bytes)
{
    enum { LINK = 3, HEADER_BYTES = 2 };
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    struct profile_index link = profile_index_of(0);
    for (;;) {
        /* Fields with a length come first, nearly always, and are short. */
        while (reader.end - reader.at > HEADER_BYTES && (reader.at[0] & 7) == WIRE_BYTES &&
               reader.at[0] < 0x80 && reader.at[1] < 0x80 &&
               reader.at[1] <= reader.end - reader.at - HEADER_BYTES)
            reader.at += HEADER_BYTES + reader.at[1];
        if (!wire_next_field(&reader, &field))
            break;
        if (field.number == LINK)
            link = profile_index_of(field.number_value);
    }
    assert(reader.failure == NULL);
    return link;
}

bool profile_next_sample(struct wire_reader *profile, struct profile_sample *ret_sample)
{
    struct slice bytes;
    if (!next_message(profile, 2, &bytes))
        return false;
    profile_read_sample(bytes, ret_sample);
    return true;
}

bool profile_next_sample_bytes(struct wire_reader *profile, struct slice *ret_bytes)
{
    return next_message(profile, 2, ret_bytes);
}
