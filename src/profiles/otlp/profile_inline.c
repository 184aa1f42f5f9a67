/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing references by strings. A table says which message holds which; the recursion is as deep
 * as otlp_check lets values be (WIRE_DEPTH_MAX). Pure functions; any thread. */
#include "src/profiles/otlp/profile_inline.h"

#include <assert.h>

#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_dictionary.h"

enum { KEY = 1, KEY_INDEX = 3, STRING = 1, STRING_INDEX = 8, NUMBERS = 9 };

static const uint8_t children[INLINE_KINDS][NUMBERS] = {
    [INLINE_RESOURCE] = {[1] = INLINE_KEY_VALUE},
    [INLINE_SCOPE] = {[3] = INLINE_KEY_VALUE},
    [INLINE_KEY_VALUE] = {[2] = INLINE_ANY_VALUE},
    [INLINE_ANY_VALUE] = {[5] = INLINE_ARRAY, [6] = INLINE_KEY_VALUES},
    [INLINE_ARRAY] = {[1] = INLINE_ANY_VALUE},
    [INLINE_KEY_VALUES] = {[1] = INLINE_KEY_VALUE},
};

static enum profile_inline_kind child_of(enum profile_inline_kind kind,
                                         const struct wire_field *field)
{
    assert(kind < INLINE_KINDS);
    if (field->number >= NUMBERS || field->type != WIRE_BYTES)
        return INLINE_NOTHING;
    return (enum profile_inline_kind)children[kind][field->number];
}

static bool is_reference(enum profile_inline_kind kind, const struct wire_field *field)
{
    return (kind == INLINE_KEY_VALUE && field->number == KEY_INDEX) ||
           (kind == INLINE_ANY_VALUE && field->number == STRING_INDEX);
}

bool profile_has_references(enum profile_inline_kind kind, struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        enum profile_inline_kind child = child_of(kind, &field);
        if (is_reference(kind, &field) ||
            (child != INLINE_NOTHING && profile_has_references(child, field.bytes)))
            return true;
    }
    assert(reader.failure == NULL);
    return false;
}

/* With the header of the string. */
static uint64_t string_growth(const struct profile_dictionary *dictionary,
                              struct profile_index index)
{
    if (!profile_has(dictionary, PROFILE_STRINGS, index))
        return 0;
    return profile_string_at(dictionary, index).size + PROFILE_HEADER_BYTES_MAX;
}

uint64_t profile_inline_growth(const struct profile_dictionary *dictionary,
                               enum profile_inline_kind kind, struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    bool has_key = false;
    uint64_t key_growth = 0;
    uint64_t growth = 0;
    while (wire_next_field(&reader, &field)) {
        enum profile_inline_kind child = child_of(kind, &field);
        if (kind == INLINE_KEY_VALUE && field.number == KEY)
            has_key = field.bytes.size > 0;
        else if (kind == INLINE_KEY_VALUE && field.number == KEY_INDEX)
            key_growth = string_growth(dictionary, profile_index_of(field.number_value));
        else if (is_reference(kind, &field))
            growth += string_growth(dictionary, profile_index_of(field.number_value));
        else if (child != INLINE_NOTHING)
            growth += profile_inline_growth(dictionary, child, field.bytes);
    }
    assert(reader.failure == NULL);
    growth += has_key ? 0 : key_growth;
    return growth == 0 ? 0 : growth + PROFILE_HEADER_BYTES_MAX;
}

static bool add_string(const struct profile_dictionary *dictionary, struct profile_index index,
                       struct profile_bytes *out)
{
    if (!profile_has(dictionary, PROFILE_STRINGS, index))
        return false;
    profile_bytes_field(out, STRING, profile_string_at(dictionary, index));
    return true;
}

bool profile_inline(const struct profile_dictionary *dictionary, enum profile_inline_kind kind,
                    struct slice message, struct profile_bytes *out, uint64_t *dropped)
{
    size_t begin = out->size;
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    bool is_whole = true;
    if (kind == INLINE_KEY_VALUE) {
        /* The key comes first: its string, or that of its index when it has none. */
        struct slice key = {0};
        struct profile_index index = profile_index_of(0);
        while (wire_next_field(&reader, &field)) {
            if (field.number == KEY)
                key = field.bytes;
            else if (field.number == KEY_INDEX)
                index = profile_index_of(field.number_value);
        }
        if (key.size == 0 && profile_index_is_set(index))
            is_whole = add_string(dictionary, index, out);
        else
            profile_bytes_field(out, KEY, key);
        assert(reader.failure == NULL);
        reader = wire_reader_of(message);
    }
    while (is_whole && wire_next_field(&reader, &field)) {
        enum profile_inline_kind child = child_of(kind, &field);
        if (kind == INLINE_KEY_VALUE && (field.number == KEY || field.number == KEY_INDEX))
            continue;
        if (is_reference(kind, &field))
            is_whole = add_string(dictionary, profile_index_of(field.number_value), out);
        else if (child == INLINE_NOTHING)
            profile_bytes_add(out, field.whole);
        else {
            size_t child_begin = out->size;
            uint64_t none = 0;
            if (profile_inline(dictionary, child, field.bytes, out, &none)) {
                profile_bytes_wrap(out, child_begin, field.number);
            } else {
                is_whole = kind == INLINE_RESOURCE || kind == INLINE_SCOPE;
                *dropped += is_whole;
            }
        }
    }
    assert(reader.failure == NULL);
    if (!is_whole)
        out->size = begin;
    return is_whole;
}
