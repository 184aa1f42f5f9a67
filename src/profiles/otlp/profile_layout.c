/* SPDX-License-Identifier: Apache-2.0 */
/* Detecting layouts. Sample has, by version:
 *     field   1.7                1.8, 1.9            1.10, 1.11
 *     1       location start     stack               stack
 *     2       location count     values, repeated    attributes, repeated
 *     3       values, repeated   attributes, rep.    link
 *     4       attributes, rep.   link                values, repeated
 *     5       link               timestamps          timestamps
 *     6       timestamps
 * A field that is packed or comes more than once is repeated, which in 3 and 4 is proof. Some
 * writers do not pack, so a single varint there proves nothing: then both readings are tried on all
 * samples of the request. Pure functions; any thread. */
#include "src/profiles/otlp/profile_layout.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/otlp/wire.h"

enum { SAMPLE_FIELDS = 7, ID_BYTES = 16 };

/* Evidence against reading samples in one layout. */
struct reading {
    uint64_t strays;   /* indices outside of their tables */
    uint64_t oddities; /* samples without values and times, or with different numbers of them */
    uint64_t votes;    /* samples that known writers of the other layout would write */
};

/* Evidence in the whole request. */
struct evidence {
    bool has_dictionary;
    bool has_samples;
    bool has_1_7;       /* something that only 1.7 has */
    bool has_old_table; /* in a Profile: 1.6 or older */
    bool has_1_8;
    bool has_1_9;        /* rather than 1.8 */
    bool has_old;        /* proof of 1.8 or 1.9 */
    bool has_new;        /* proof of 1.10 */
    uint64_t attributes; /* entries of the table */
    uint64_t links;
    struct reading old;
    struct reading new;
};

/* One field of a sample, all its occurrences. */
struct sample_field {
    uint64_t count;         /* of its elements */
    uint64_t no_attributes; /* elements that are indices of no attribute */
    uint64_t no_links;
    bool is_packed; /* at least one occurrence */
    bool is_repeated;
};

static void count_element(const struct evidence *seen, struct sample_field *field, uint64_t element)
{
    field->count++;
    field->no_attributes += element > 0 && element >= seen->attributes;
    field->no_links += element > 0 && element >= seen->links;
}

/* Reads the sample in a layout that has attributes, link, values and times in these fields. */
static void judge_reading(struct reading *reading, const struct sample_field *attributes,
                          const struct sample_field *link, const struct sample_field *values,
                          const struct sample_field *times)
{
    reading->strays += attributes->no_attributes + link->no_links;
    reading->oddities += values->count > 0 && times->count > 0 && values->count != times->count;
    reading->oddities += values->count == 0 && times->count == 0;
}

static void look_at_sample(struct evidence *seen, struct slice sample)
{
    enum { TIMES = 5 };
    struct sample_field fields[SAMPLE_FIELDS] = {{.count = 0}};
    struct wire_reader reader = wire_reader_of(sample);
    struct wire_field found;
    seen->has_samples = true;
    /* Times, field 5 since 1.8, are fixed64; all others are varints. */
    while (wire_next_field(&reader, &found)) {
        if (found.number >= SAMPLE_FIELDS)
            continue;
        struct sample_field *field = &fields[found.number];
        bool is_another = field->count > 0 || field->is_packed;
        field->is_packed |= found.type == WIRE_BYTES;
        field->is_repeated |= is_another || field->is_packed;
        if (found.type != WIRE_BYTES)
            count_element(seen, field, found.number_value);
        else if (found.number == TIMES)
            field->count += found.bytes.size / 8;
        else {
            struct wire_reader packed = wire_reader_of(found.bytes);
            while (packed.at < packed.end && packed.failure == NULL)
                count_element(seen, field, wire_read_varint(&packed, WIRE_VARINT_BYTES_MAX));
        }
    }
    if (reader.failure != NULL)
        return; /* otlp_check reports it */
    if (fields[6].count > 0 || fields[6].is_packed) {
        seen->has_1_7 = true;
        return;
    }
    seen->has_old |= fields[3].is_repeated;
    seen->has_new |= fields[4].is_repeated;
    if (seen->has_old || seen->has_new)
        return;
    judge_reading(&seen->old, &fields[3], &fields[4], &fields[2], &fields[5]);
    judge_reading(&seen->new, &fields[2], &fields[3], &fields[4], &fields[5]);
    /* Where both readings make sense, the likelier one, given what known writers do. */
    bool has_2 = fields[2].count > 0;
    if (fields[4].count > 0) /* values and a link; or attribute and value (async-profiler) */
        *(fields[2].is_packed ? &seen->new.votes : &seen->old.votes) += 1;
    else if (has_2 && fields[5].count > 0 && fields[3].count == 0) /* attributes, times (eBPF) */
        seen->old.votes++;
    else if (has_2 && fields[5].count == 0)
        seen->new.votes++;
}

static void look_at_profile(struct evidence *seen, struct slice profile)
{
    struct wire_reader reader = wire_reader_of(profile);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        bool is_bytes = field.type == WIRE_BYTES;
        switch (field.number) {
        case 2:
            /* Not once there is proof: otlp_check finds what contradicts it. */
            if (is_bytes && !seen->has_old && !seen->has_new && !seen->has_1_7)
                look_at_sample(seen, field.bytes);
            break;
        case 3:
            seen->has_1_7 |= field.type != WIRE_FIXED64;
            seen->has_old_table |= is_bytes;
            break;
        case 7:
            seen->has_1_8 |= !is_bytes || (field.bytes.size != ID_BYTES && field.bytes.size > 0);
            break;
        case 8:
            seen->has_1_8 |= is_bytes;
            seen->has_1_9 |= !is_bytes;
            break;
        case 9:
            seen->has_1_8 |= !is_bytes;
            seen->has_1_9 |= is_bytes;
            break;
        case 11:
            seen->has_1_9 |= !is_bytes;
            break;
        case 12:
            seen->has_1_8 = true;
            break;
        default:
            break;
        }
    }
}

/* Whether the message has a field of that number and type. */
static bool has_field(struct slice message, uint32_t number, enum wire_type type)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == number && field.type == type)
            return true;
    return false;
}

enum profile_layout profile_layout_of(struct slice request)
{
    struct evidence seen = {0};
    const struct reading *old = &seen.old, *new = &seen.new;
    struct wire_field field;
    struct wire_field entry;
    struct wire_field scope;
    struct wire_field profile;
    struct wire_reader reader = wire_reader_of(request);
    while (wire_next_field(&reader, &field)) {
        if (field.number != 2 || field.type != WIRE_BYTES)
            continue;
        /* In the dictionary of 1.7 attributes have strings as keys, and AttributeUnits (which have
         * a field 2) are where stacks are now. */
        struct wire_reader entries = wire_reader_of(field.bytes);
        seen.has_dictionary = true;
        while (wire_next_field(&entries, &entry)) {
            if (entry.type != WIRE_BYTES)
                continue;
            seen.links += entry.number == 4;
            seen.attributes += entry.number == 6;
            if ((entry.number == 6 && !seen.has_1_7 && has_field(entry.bytes, 1, WIRE_BYTES)) ||
                (entry.number == 7 && entry.bytes.size > 2 && entry.bytes.size <= 12 &&
                 has_field(entry.bytes, 2, WIRE_VARINT)))
                seen.has_1_7 = true;
        }
    }
    reader = wire_reader_of(request);
    while (wire_next_field(&reader, &field)) {
        if (field.number != 1 || field.type != WIRE_BYTES)
            continue;
        struct wire_reader scopes = wire_reader_of(field.bytes);
        while (wire_next_field(&scopes, &scope)) {
            if (scope.number != 2 || scope.type != WIRE_BYTES)
                continue;
            struct wire_reader profiles = wire_reader_of(scope.bytes);
            while (wire_next_field(&profiles, &profile))
                if (profile.number == 2 && profile.type == WIRE_BYTES)
                    look_at_profile(&seen, profile.bytes);
        }
    }
    if (!seen.has_dictionary)
        return seen.has_samples || seen.has_old_table ? LAYOUT_1_6 : LAYOUT_1_10;
    if (seen.has_1_7)
        return LAYOUT_1_7;
    if (seen.has_old && seen.has_new)
        return LAYOUT_UNKNOWN;
    /* An index outside of its table is the strongest evidence, the habits of writers the weakest.
     */
    bool is_old_likelier = old->strays != new->strays       ? old->strays < new->strays
                           : old->oddities != new->oddities ? old->oddities < new->oddities
                                                            : old->votes < new->votes;
    bool is_old = seen.has_old || (!seen.has_new && is_old_likelier);
    if (seen.has_1_8 && !seen.has_1_9 && (is_old || !seen.has_samples))
        return LAYOUT_1_8;
    return is_old ? LAYOUT_1_9 : LAYOUT_1_10;
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
