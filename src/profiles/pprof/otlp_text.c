/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and values of OTLP profiles. Pure functions; any thread. */
#include "src/profiles/pprof/otlp_text.h"

#include <assert.h>

#include "src/base/arena.h"
#include "src/base/utf8.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_dictionary.h"

enum {
    VALUE_STRINDEX = 8,
    KEY_STRINDEX = 3,
    LISTS_IN_LISTS_MAX = 4,
    CHARACTER_BYTES_MAX = 4,
};

size_t otlp_text_valid(struct slice text)
{
    size_t at = 0;
    while (at < text.size) {
        size_t size = utf8_size(slice_of(text.data + at, text.size - at));
        if (size == 0)
            break;
        at += size;
    }
    return at;
}

struct slice otlp_text_repaired(struct slice text, uint8_t *room)
{
    size_t at = otlp_text_valid(text);
    if (at == text.size)
        return text;
    memcpy(room, text.data, text.size);
    while (at < text.size) {
        room[at++] = '?';
        at += otlp_text_valid(slice_of(text.data + at, text.size - at));
    }
    return slice_of(room, text.size);
}

struct slice otlp_text_cut(struct slice text, size_t bytes_max)
{
    assert(bytes_max > 0);
    size_t size = text.size;
    if (size <= bytes_max)
        return text;
    size = bytes_max;
    while (size > 0 && text.data[size] >> 6 == 2)
        size--;
    return slice_of(text.data, size);
}

bool otlp_text_of_value(struct arena *arena, const struct profile_dictionary *dictionary,
                        struct slice encoded, size_t bytes_max, struct slice *ret_text)
{
    struct slice text = {.size = 0};
    struct value value = value_read(encoded);
    struct wire_field field;
    /* A list of one counts as its element. */
    for (unsigned i = 0; value.type == VALUE_LIST && i < LISTS_IN_LISTS_MAX; i++) {
        struct wire_reader list = wire_reader_of(value.bytes);
        struct slice element = {.size = 0};
        unsigned count = 0;
        while (wire_read_field(&list, &field)) {
            if (field.number != 1 || field.type != WIRE_BYTES)
                continue;
            element = field.bytes;
            count++;
        }
        if (count != 1)
            break;
        encoded = element;
        value = value_read(encoded);
    }
    if (value.type == VALUE_STRING) {
        text = value.bytes;
    } else if (value.type == VALUE_EMPTY) { /* it may refer to a string of the dictionary */
        struct wire_reader reader = wire_reader_of(encoded);
        bool is_found = false;
        while (wire_read_field(&reader, &field)) {
            is_found =
                field.number == VALUE_STRINDEX && field.type == WIRE_VARINT &&
                profile_has(dictionary, PROFILE_STRINGS, profile_index_of(field.number_value));
            if (is_found)
                text = profile_string_at(dictionary, profile_index_of(field.number_value));
        }
        if (!is_found)
            return false;
    } else if (!value_to_string(arena, encoded, &text)) {
        return false;
    }
    /* What is cut off is not looked at, but for the rest of the last character. */
    if (text.size > bytes_max + CHARACTER_BYTES_MAX)
        text.size = bytes_max + CHARACTER_BYTES_MAX;
    bool is_valid = otlp_text_valid(text) == text.size;
    uint8_t *room = is_valid ? NULL : arena_try_alloc(arena, text.size);
    if (!is_valid && room == NULL)
        return false;
    if (!is_valid)
        text = otlp_text_repaired(text, room);
    *ret_text = otlp_text_cut(text, bytes_max);
    return ret_text->size > 0;
}

struct otlp_pair otlp_text_pair(const struct profile_dictionary *dictionary, struct slice key_value)
{
    struct otlp_pair pair = {.key = {.size = 0}};
    struct wire_reader reader = wire_reader_of(key_value);
    struct wire_field field;
    struct profile_index reference = profile_index_of(0);
    while (wire_read_field(&reader, &field)) {
        if (field.number == 1 && field.type == WIRE_BYTES)
            pair.key = field.bytes;
        else if (field.number == 2 && field.type == WIRE_BYTES)
            pair.value = field.bytes;
        else if (field.number == KEY_STRINDEX)
            reference = profile_index_of(field.number_value);
    }
    if (pair.key.size == 0 && profile_has(dictionary, PROFILE_STRINGS, reference))
        pair.key = profile_string_at(dictionary, reference);
    return pair;
}

bool otlp_text_next_pair(const struct profile_dictionary *dictionary,
                         struct profile_indices_reader *reader, struct profile_index *ret_index,
                         struct otlp_pair *ret_pair)
{
    while (profile_indices_next(reader, ret_index)) {
        if (!profile_has(dictionary, PROFILE_ATTRIBUTES, *ret_index))
            continue;
        struct profile_attribute attribute = profile_attribute_at(dictionary, *ret_index);
        if (!profile_has(dictionary, PROFILE_STRINGS, attribute.key))
            continue;
        *ret_pair = (struct otlp_pair){.key = profile_string_at(dictionary, attribute.key),
                                       .value = attribute.value};
        return true;
    }
    return false;
}
