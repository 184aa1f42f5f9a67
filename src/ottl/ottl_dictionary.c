/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tables once, and finds equal entries by hash tables that are made when the first entry
 * is put. Runs on the processor's thread. */
#include "src/ottl/ottl_dictionary.h"

#include <assert.h>
#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/random.h"
#include "src/core/batch.h"
#include "src/otlp/rope.h"
#include "src/ottl/ottl_compare.h"
#include "src/ottl/ottl_edit.h"
#include "src/ottl/ottl_limits.h"
#include "src/ottl/ottl_map.h"

enum { DICTIONARY = 2, LINKS = 4, STRINGS = 5, ATTRIBUTES = 6 };
/* Of KeyValueAndUnit. */
enum { KEY = 1, VALUE = 2, UNIT = 3 };
enum { INDEX_SIZE_FIRST = 64, CAPACITY_FIRST = 16, DEPTH_MAX = 64, ATTRIBUTE_BYTES_MAX = 32 };

void ottl_dictionary_init(struct ottl_dictionary *dictionary, struct budget *budget)
{
    *dictionary = (struct ottl_dictionary){.batch = NULL};
    ottl_memory_init(&dictionary->memory, OTTL_DICTIONARY_BYTES_MAX, budget);
}

void ottl_dictionary_fini(struct ottl_dictionary *dictionary)
{
    ottl_memory_fini(&dictionary->memory);
}

void ottl_dictionary_open(struct ottl_dictionary *dictionary, struct batch *batch)
{
    ottl_memory_reset(&dictionary->memory);
    dictionary->batch = batch;
    dictionary->is_read = dictionary->exists = false;
    dictionary->links = 0;
    dictionary->strings = dictionary->attributes = (struct ottl_table){.count = 0};
}

/* The content of a Dictionary message in one piece. No data: memory is refused. */
static struct slice content_of(struct ottl_dictionary *dictionary, const struct rope_field *field)
{
    struct slice content = rope_contiguous(&field->content, field->content_bytes);
    if (content.size == field->content_bytes)
        return content;
    uint8_t *room = ottl_memory_room(&dictionary->memory, (size_t)field->content_bytes);
    if (room != NULL)
        rope_copy(field->content, field->content_bytes, room);
    return slice_of(room, (size_t)field->content_bytes);
}

static bool make_room(struct ottl_dictionary *dictionary, struct ottl_table *table, uint32_t more)
{
    if (more <= table->capacity - table->count)
        return true;
    uint32_t capacity = table->capacity > 0 ? 2 * table->capacity : CAPACITY_FIRST;
    if (capacity < table->count + more)
        capacity = table->count + more;
    struct slice *entries =
        ottl_memory_room(&dictionary->memory, (size_t)capacity * sizeof(*entries));
    if (entries == NULL)
        return false;
    if (table->count > 0)
        memcpy(entries, table->entries, table->count * sizeof(*entries));
    table->entries = entries;
    table->capacity = capacity;
    return true;
}

static bool read_tables(struct ottl_dictionary *dictionary, struct slice content)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    uint32_t strings = 0;
    uint32_t attributes = 0;
    while (wire_next_field(&reader, &field)) {
        strings += field.number == STRINGS;
        attributes += field.number == ATTRIBUTES;
        dictionary->links += field.number == LINKS;
    }
    if (!make_room(dictionary, &dictionary->strings, strings) ||
        !make_room(dictionary, &dictionary->attributes, attributes))
        return false;
    reader = wire_reader_of(content);
    while (wire_next_field(&reader, &field)) {
        if (field.number != STRINGS && field.number != ATTRIBUTES)
            continue;
        struct ottl_table *table =
            field.number == STRINGS ? &dictionary->strings : &dictionary->attributes;
        table->entries[table->count++] = field.bytes;
    }
    return true;
}

bool ottl_dictionary_read(struct ottl_dictionary *dictionary)
{
    struct rope rope = rope_of(dictionary->batch);
    struct rope_field field;
    if (dictionary->is_read)
        return true;
    while (rope_read_field(&rope, dictionary->batch->bytes, &field)) {
        if (field.number != DICTIONARY)
            continue;
        struct slice content = content_of(dictionary, &field);
        if ((content.data == NULL && content.size > 0) || !read_tables(dictionary, content))
            return false;
        dictionary->exists = true;
        dictionary->header_at = field.begin.at;
        dictionary->content_at = field.content.at;
        dictionary->content_bytes = field.content_bytes;
    }
    dictionary->strings.loaded = dictionary->strings.count;
    dictionary->attributes.loaded = dictionary->attributes.count;
    dictionary->seed = (uint64_t)(random_uniform() * 0x1p53);
    dictionary->is_read = true;
    return true;
}

bool ottl_dictionary_string(const struct ottl_dictionary *dictionary, int64_t index,
                            struct slice *ret)
{
    const struct ottl_table *table = &dictionary->strings;
    if (index < 0 || index >= table->count)
        return false;
    *ret = table->entries[index];
    return true;
}

static struct ottl_dictionary_attribute read_attribute(struct slice entry)
{
    struct ottl_dictionary_attribute attribute = {.value = slice_of(NULL, 0)};
    struct wire_reader reader = wire_reader_of(entry);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == KEY)
            attribute.key = (int32_t)field.number_value;
        else if (field.number == VALUE)
            attribute.value = field.bytes;
        else if (field.number == UNIT)
            attribute.unit = (int32_t)field.number_value;
    return attribute;
}

bool ottl_dictionary_attribute(const struct ottl_dictionary *dictionary, int64_t index,
                               struct ottl_dictionary_attribute *ret)
{
    const struct ottl_table *table = &dictionary->attributes;
    if (index < 0 || index >= table->count)
        return false;
    *ret = read_attribute(table->entries[index]);
    return true;
}

/* Equal values have the same hash, whatever the order of a map's entries. Of equal keys in a map
 * the first counts, as in Go's Map.Equal. Recursion is bounded by DEPTH_MAX. */
static uint64_t hash_value(const struct ottl_dictionary *dictionary, const struct ottl_value *value,
                           unsigned depth)
{
    uint64_t hash = value->type;
    double real;
    switch (value->type) {
    case OTTL_STRING:
    case OTTL_BYTES:
        return hash + XXH3_64bits_withSeed(value->bytes, value->size, dictionary->seed);
    case OTTL_BOOL:
        return hash + 0x100 * (uint64_t)value->boolean;
    case OTTL_INT:
        return hash +
               XXH3_64bits_withSeed(&value->integer, sizeof(value->integer), dictionary->seed);
    case OTTL_DOUBLE:
        real = value->real + 0.0; /* -0 is equal to 0 */
        return hash + XXH3_64bits_withSeed(&real, sizeof(real), dictionary->seed);
    case OTTL_LIST:
        for (uint32_t i = 0; depth > 0 && i < value->list->count; i++) {
            struct ottl_value item;
            if (!ottl_list_read(value->list, i, &item))
                break;
            const uint64_t parts[] = {hash, hash_value(dictionary, &item, depth - 1)};
            hash = XXH3_64bits_withSeed(parts, sizeof(parts), dictionary->seed);
        }
        return hash;
    case OTTL_MAP:
        for (uint32_t i = 0; depth > 0 && i < value->map->count; i++) {
            struct ottl_entry *entry = &value->map->entries[i];
            struct ottl_value item;
            if (!ottl_map_read(value->map, entry, &item))
                break;
            const uint64_t parts[] = {
                XXH3_64bits_withSeed(entry->key.data, entry->key.size, dictionary->seed),
                hash_value(dictionary, &item, depth - 1)};
            hash += XXH3_64bits_withSeed(parts, sizeof(parts), dictionary->seed);
        }
        return hash;
    default:
        return hash;
    }
}

/* What is looked for in a table: a string, or an attribute without a unit. */
struct wanted {
    uint64_t hash;
    struct slice text;
    int32_t key;
    const struct ottl_value *value; /* NULL: a string */
};

static struct wanted wanted_string(const struct ottl_dictionary *dictionary, struct slice text)
{
    return (struct wanted){.hash = XXH3_64bits_withSeed(text.data, text.size, dictionary->seed),
                           .text = text};
}

static struct wanted wanted_attribute(const struct ottl_dictionary *dictionary, int32_t key,
                                      const struct ottl_value *value)
{
    return (struct wanted){.hash = hash_value(dictionary, value, DEPTH_MAX) +
                                   (uint64_t)(uint32_t)key * 0x9e3779b97f4a7c15u,
                           .key = key,
                           .value = value};
}

/* False: memory is refused. */
static bool is_wanted(const struct wanted *wanted, struct slice entry, struct ottl_memory *scratch,
                      bool *ret)
{
    *ret = false;
    if (wanted->value == NULL) {
        *ret = slice_equal(entry, wanted->text);
        return true;
    }
    const struct ottl_dictionary_attribute attribute = read_attribute(entry);
    struct ottl_value value;
    if (attribute.key != wanted->key)
        return true;
    if (!ottl_value_decode(scratch, NULL, attribute.value, &value))
        return false;
    *ret = ottl_values_are_equal(&value, wanted->value);
    return true;
}

static uint32_t mark_of(const struct wanted *wanted)
{
    return (uint32_t)(wanted->hash >> 32);
}

/* Where it is in the index, or, with entry 0, where it would be. NULL: memory is refused. */
static struct ottl_index_place *find_place(struct ottl_table *table, const struct wanted *wanted,
                                           struct ottl_memory *scratch)
{
    for (uint32_t at = (uint32_t)wanted->hash;; at++) {
        struct ottl_index_place *place = &table->index[at & table->mask];
        bool is_it = place->entry == 0;
        if (!is_it && place->mark == mark_of(wanted) &&
            !is_wanted(wanted, table->entries[place->entry - 1], scratch, &is_it))
            return NULL;
        if (is_it)
            return place;
    }
}

/* Entries that are never found have no place: of equal ones all but the first, those with a unit,
 * and what is not equal to itself. However many a request has of them, lookups stay short. */
static bool index_entry(struct ottl_dictionary *dictionary, struct ottl_table *table,
                        uint32_t entry, struct ottl_memory *scratch)
{
    struct wanted wanted;
    struct ottl_value value;
    if (table == &dictionary->strings) {
        wanted = wanted_string(dictionary, table->entries[entry]);
    } else {
        const struct ottl_dictionary_attribute attribute = read_attribute(table->entries[entry]);
        if (attribute.unit != 0)
            return true;
        if (!ottl_value_decode(scratch, NULL, attribute.value, &value))
            return false;
        if (!ottl_values_are_equal(&value, &value))
            return true;
        wanted = wanted_attribute(dictionary, attribute.key, &value);
    }
    struct ottl_index_place *place = find_place(table, &wanted, scratch);
    if (place != NULL && place->entry == 0)
        *place = (struct ottl_index_place){.entry = entry + 1, .mark = mark_of(&wanted)};
    return place != NULL;
}

/* Looks at the entries that are new. False: memory is refused. */
static bool update_index(struct ottl_dictionary *dictionary, struct ottl_table *table,
                         struct ottl_memory *scratch)
{
    uint32_t size = table->index != NULL ? table->mask + 1 : INDEX_SIZE_FIRST;
    if (table->index == NULL || table->count > size / 2) {
        while (size < 4 * (uint64_t)table->count)
            size *= 2;
        table->index = ottl_memory_room(&dictionary->memory, size * sizeof(*table->index));
        if (table->index == NULL)
            return false;
        memset(table->index, 0, size * sizeof(*table->index));
        table->mask = size - 1;
        table->indexed = 0;
    }
    for (; table->indexed < table->count; table->indexed++)
        if (!index_entry(dictionary, table, table->indexed, scratch))
            return false;
    return true;
}

/* UINT32_MAX: there is none. */
static bool find_entry(struct ottl_dictionary *dictionary, struct ottl_table *table,
                       const struct wanted *wanted, struct ottl_memory *scratch, uint32_t *ret)
{
    if (!update_index(dictionary, table, scratch))
        return false;
    const struct ottl_index_place *place = find_place(table, wanted, scratch);
    if (place != NULL)
        *ret = place->entry - 1;
    return place != NULL;
}

static bool append(struct ottl_dictionary *dictionary, struct ottl_table *table, struct slice entry,
                   int32_t *ret)
{
    if (!make_room(dictionary, table, 1))
        return false;
    *ret = (int32_t)table->count;
    table->entries[table->count++] = entry;
    return true;
}

bool ottl_dictionary_put_string(struct ottl_dictionary *dictionary, struct slice text, int32_t *ret)
{
    struct ottl_table *table = &dictionary->strings;
    const struct wanted wanted = wanted_string(dictionary, text);
    uint32_t found;
    if (!find_entry(dictionary, table, &wanted, &dictionary->memory, &found))
        return false;
    *ret = (int32_t)found;
    if (found != UINT32_MAX)
        return true;
    uint8_t *room = ottl_memory_room(&dictionary->memory, text.size);
    if (room == NULL)
        return false;
    if (text.size > 0)
        memcpy(room, text.data, text.size);
    return append(dictionary, table, slice_of(room, text.size), ret);
}

bool ottl_dictionary_put_attribute(struct ottl_dictionary *dictionary, struct ottl_memory *scratch,
                                   int32_t key, const struct ottl_value *value, int32_t *ret)
{
    struct ottl_table *table = &dictionary->attributes;
    const struct wanted wanted = wanted_attribute(dictionary, key, value);
    uint32_t found;
    if (!find_entry(dictionary, table, &wanted, scratch, &found))
        return false;
    *ret = (int32_t)found;
    if (found != UINT32_MAX)
        return true;
    const size_t size = ottl_value_encoded_size(value);
    const size_t bytes = ATTRIBUTE_BYTES_MAX + size;
    uint8_t *room = ottl_memory_room(&dictionary->memory, bytes);
    if (room == NULL)
        return false;
    struct wire_writer writer = wire_writer_of(room, bytes);
    if (key != 0)
        wire_write_number(&writer, KEY, (uint64_t)(int64_t)key);
    wire_write_header(&writer, VALUE, size);
    uint8_t *end = ottl_value_encode(value, writer.at);
    return append(dictionary, table, slice_of(room, (size_t)(end - room)), ret);
}

static bool write_entries(const struct ottl_table *table, uint32_t number, struct ottl_edits *edits,
                          size_t *bytes)
{
    for (uint32_t i = table->loaded; i < table->count; i++) {
        const size_t whole = wire_field_size(number, table->entries[i].size);
        uint8_t *room = ottl_edits_room(edits, whole);
        if (room == NULL)
            return false;
        struct wire_writer writer = wire_writer_of(room, whole);
        wire_write_bytes(&writer, number, table->entries[i]);
        *bytes += whole;
    }
    return true;
}

void ottl_dictionary_finish(struct ottl_dictionary *dictionary, struct ottl_edits *edits)
{
    const size_t count = edits->count;
    const size_t used = edits->used_bytes;
    size_t bytes = 0;
    if (!dictionary->is_read || (dictionary->strings.count == dictionary->strings.loaded &&
                                 dictionary->attributes.count == dictionary->attributes.loaded))
        return;
    if (!write_entries(&dictionary->strings, STRINGS, edits, &bytes) ||
        !write_entries(&dictionary->attributes, ATTRIBUTES, edits, &bytes))
        return;
    if (dictionary->exists) {
        ottl_edits_add_message(edits, dictionary->header_at, dictionary->content_at,
                               dictionary->content_bytes, DICTIONARY);
        ottl_edits_add(edits, dictionary->content_at + dictionary->content_bytes, 0, bytes);
    } else {
        const size_t whole = wire_field_size(DICTIONARY, bytes);
        if (ottl_edits_room(edits, whole - bytes) == NULL)
            return;
        uint8_t *at = (uint8_t *)edits->bytes.memory + used;
        memmove(at + (whole - bytes), at, bytes);
        struct wire_writer writer = wire_writer_of(at, whole);
        wire_write_header(&writer, DICTIONARY, bytes);
        ottl_edits_add(edits, 0, 0, whole);
    }
    ottl_edits_settle(edits, count);
}
