/* SPDX-License-Identifier: Apache-2.0 */
/* Indexing a ProfilesDictionary and reading its entries. Several dictionaries in one request are
 * one, as protobuf has it: their tables follow one another. Pure functions; any thread. */
#include "src/profiles/otlp/profile_dictionary.h"

#include <assert.h>

#include "src/base/arena.h"
#include "src/otlp/wire.h"

enum { DICTIONARY = 2 };

/* Notes consecutive entries of one table with lengths of one or two bytes, as nearly all have, up
 * to the first other field. entries may be NULL. Returns how many there are. */
static uint32_t note_run(struct profile_entry *entries, const uint8_t *request,
                         struct wire_reader *tables)
{
    enum { HEADER_BYTES_MAX = 3 };
    const uint8_t *at = tables->at;
    const uint8_t tag = *at;
    uint32_t count = 0;
    assert(tables->failure == NULL);
    for (; tables->end - at >= HEADER_BYTES_MAX && *at == tag; count++) {
        const uint8_t *content = at + 2;
        uint32_t size = at[1];
        wire_fetch_ahead(at);
        if (size >= 0x80) {
            size = (size & 0x7f) | (uint32_t)*content << 7;
            if (*content++ >= 0x80)
                break;
        }
        if (size > (size_t)(tables->end - content))
            break;
        if (entries != NULL)
            entries[count] = (struct profile_entry){(uint32_t)(content - request), size};
        at = content + size;
    }
    tables->at = at;
    return count;
}

/* Counts the entries; notes them as well when there is room for them. */
static void index_entries(struct profile_dictionary *dictionary, bool has_room)
{
    struct wire_reader request = wire_reader_of(dictionary->request);
    struct wire_field field;
    struct wire_field entry;
    while (wire_next_field(&request, &field)) {
        struct wire_reader tables = wire_reader_of(field.bytes);
        if (field.number != DICTIONARY)
            continue;
        while (tables.at < tables.end) {
            uint32_t table = (*tables.at >> 3) - 1u;
            uint32_t count = 0;
            if ((*tables.at & 7) == WIRE_BYTES && table < PROFILE_TABLES) {
                struct profile_entry *entries = dictionary->entries[table];
                count = note_run(has_room ? entries + dictionary->counts[table] : NULL,
                                 dictionary->request.data, &tables);
                dictionary->counts[table] += count;
            }
            if (count > 0)
                continue;
            bool is_there = wire_next_field(&tables, &entry);
            assert(is_there);
            if (entry.number > PROFILE_TABLES)
                continue;
            uint32_t at = dictionary->counts[entry.number - 1]++;
            if (has_room)
                dictionary->entries[entry.number - 1][at] = (struct profile_entry){
                    .offset = (uint32_t)(entry.bytes.data - dictionary->request.data),
                    .size = (uint32_t)entry.bytes.size,
                };
        }
    }
    assert(request.failure == NULL);
}

bool profile_dictionary_open(struct profile_dictionary *dictionary, struct arena *arena,
                             struct slice request)
{
    assert(request.data != NULL || request.size == 0);
    *dictionary = (struct profile_dictionary){.request = request};
    if (request.size > UINT32_MAX)
        return false;
    index_entries(dictionary, false);
    for (unsigned i = 0; i < PROFILE_TABLES; i++) {
        size_t size = dictionary->counts[i] * sizeof(struct profile_entry);
        dictionary->entries[i] = arena_try_alloc(arena, size);
        if (dictionary->entries[i] == NULL)
            return false;
        dictionary->counts[i] = 0;
    }
    index_entries(dictionary, true);
    return true;
}

struct slice profile_entry_at(const struct profile_dictionary *dictionary, enum profile_table table,
                              struct profile_index index)
{
    assert(table < PROFILE_TABLES);
    uint32_t place = profile_place(dictionary, table, index);
    bool is_null = table == PROFILE_LINKS || table == PROFILE_MAPPINGS;
    if (place == 0 && (is_null || dictionary->counts[table] == 0))
        return slice_of("", 0);
    struct profile_entry entry = dictionary->entries[table][place];
    return slice_of(dictionary->request.data + entry.offset, entry.size);
}

struct profile_mapping profile_mapping_at(const struct profile_dictionary *dictionary,
                                          struct profile_index index)
{
    struct slice bytes = profile_entry_at(dictionary, PROFILE_MAPPINGS, index);
    struct profile_mapping mapping = {0};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == 1)
            mapping.memory_start = field.number_value;
        else if (field.number == 2)
            mapping.memory_limit = field.number_value;
        else if (field.number == 3)
            mapping.file_offset = field.number_value;
        else if (field.number == 4)
            mapping.filename = profile_index_of(field.number_value);
        else if (field.number == 5)
            profile_numbers_add(&mapping.attributes.numbers, bytes, &field);
    }
    assert(reader.failure == NULL);
    return mapping;
}

struct profile_location profile_location_at(const struct profile_dictionary *dictionary,
                                            struct profile_index index)
{
    struct slice bytes = profile_entry_at(dictionary, PROFILE_LOCATIONS, index);
    struct profile_location location = {.bytes = bytes};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == 1)
            location.mapping = profile_index_of(field.number_value);
        else if (field.number == 2)
            location.address = field.number_value;
        else if (field.number == 3)
            location.lines_count++;
        else if (field.number == 4)
            profile_numbers_add(&location.attributes.numbers, bytes, &field);
    }
    assert(reader.failure == NULL);
    return location;
}

bool profile_next_line(struct wire_reader *reader, struct profile_line *ret_line)
{
    struct wire_field field;
    struct profile_line line = {0};
    do {
        if (!wire_next_field(reader, &field)) {
            assert(reader->failure == NULL);
            return false;
        }
    } while (field.number != 3);
    struct wire_reader message = wire_reader_of(field.bytes);
    while (wire_next_field(&message, &field)) {
        if (field.number == 1)
            line.function = profile_index_of(field.number_value);
        else if (field.number == 2)
            line.line = (int64_t)field.number_value;
        else if (field.number == 3)
            line.column = (int64_t)field.number_value;
    }
    assert(message.failure == NULL);
    *ret_line = line;
    return true;
}

struct profile_function profile_function_at(const struct profile_dictionary *dictionary,
                                            struct profile_index index)
{
    struct profile_function function = {0};
    struct wire_reader reader =
        wire_reader_of(profile_entry_at(dictionary, PROFILE_FUNCTIONS, index));
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == 1)
            function.name = profile_index_of(field.number_value);
        else if (field.number == 2)
            function.system_name = profile_index_of(field.number_value);
        else if (field.number == 3)
            function.filename = profile_index_of(field.number_value);
        else if (field.number == 4)
            function.start_line = (int64_t)field.number_value;
    }
    assert(reader.failure == NULL);
    return function;
}

struct profile_link profile_link_at(const struct profile_dictionary *dictionary,
                                    struct profile_index index)
{
    struct profile_link link = {0};
    struct wire_reader reader = wire_reader_of(profile_entry_at(dictionary, PROFILE_LINKS, index));
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == 1)
            link.trace_id = field.bytes;
        else if (field.number == 2)
            link.span_id = field.bytes;
    }
    assert(reader.failure == NULL);
    return link;
}

struct slice profile_string_at(const struct profile_dictionary *dictionary,
                               struct profile_index index)
{
    return profile_entry_at(dictionary, PROFILE_STRINGS, index);
}

struct profile_attribute profile_attribute_at(const struct profile_dictionary *dictionary,
                                              struct profile_index index)
{
    struct profile_attribute attribute = {0};
    struct wire_reader reader =
        wire_reader_of(profile_entry_at(dictionary, PROFILE_ATTRIBUTES, index));
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == 1)
            attribute.key = profile_index_of(field.number_value);
        else if (field.number == 2)
            attribute.value = field.bytes;
        else if (field.number == 3)
            attribute.unit = profile_index_of(field.number_value);
    }
    assert(reader.failure == NULL);
    return attribute;
}

struct profile_stack profile_stack_at(const struct profile_dictionary *dictionary,
                                      struct profile_index index)
{
    struct slice bytes = profile_entry_at(dictionary, PROFILE_STACKS, index);
    struct profile_stack stack = {0};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == 1)
            profile_numbers_add(&stack.locations.numbers, bytes, &field);
    assert(reader.failure == NULL);
    return stack;
}
