/* SPDX-License-Identifier: Apache-2.0 */
/* Maps and lists of OTTL, with the rules of Go's pcommon.Map and Slice: keys may occur twice and
 * lookups find the first; removal moves the last entry into the gap. They are read from the wire
 * one level at a time, when asked, and remember whether they have changed. Each belongs to one
 * parent, a record or nobody; putting one into another copies it. One thread; valid until the
 * record's memory is reset. Functions that take memory return false (NULL) when it is refused, and
 * when values would be nested too deep (is_too_deep of the memory). */
#pragma once

#include "src/ottl/ottl_memory.h"
#include "src/ottl/ottl_value.h"

/* First member of maps and lists. */
struct ottl_container {
    struct ottl_memory *memory;    /* of its entries and of what is put into it */
    struct ottl_container *parent; /* NULL: a record, or none */
    struct slice encoded;   /* the ArrayValue or KeyValueList it was read from; no data: none */
    uint32_t encoded_bytes; /* of ottl_value_encoded_size */
    bool has_changed;       /* it, or something in it */
    bool is_list;           /* of struct ottl_list */
    bool is_constant;       /* of ottl_value_fix: read by several threads */
};

/* A KeyValue that statements set as it is: constant, outlives every record. So many bytes behind
 * what is encoded can be read, too: a field whose tag, of one byte, depends on the message. */
enum { OTTL_READY_SLACK = 16 };
struct ottl_ready {
    struct slice key;
    struct ottl_value value; /* no map, no list */
    struct slice encoded;
};

struct ottl_entry {
    struct slice key;
    struct ottl_value value;        /* ENCODED until ottl_map_read */
    struct slice whole;             /* the field it was read from; no data when it was not */
    const struct ottl_ready *ready; /* as long as key and value are its own; or NULL */
    bool is_new;                    /* its value is not that of the field */
    uint32_t slot; /* of the key in the record's index, plus 1; 0: none, or not indexed */
};

struct ottl_map {
    struct ottl_container base;
    struct ottl_entry *entries;
    uint32_t count;
    uint32_t capacity;
    /* Of a map with many entries: a hash table of places, plus 1, of the first of each key. */
    uint32_t *index;
    uint32_t indexed; /* entries that are in it */
    uint32_t indexed_moves;
    bool has_duplicates; /* the index has met a key again */
    /* Counts what moves entries to other places: removals, and copies of whole maps. */
    uint32_t moves;
    uint32_t index_mask;
    uint64_t index_seed;
};

struct ottl_list {
    struct ottl_container base;
    struct ottl_value *items; /* ENCODED until ottl_list_read */
    uint32_t count;
    uint32_t capacity;
};

/* Empty ones; NULL: refused. */
struct ottl_map *ottl_map_create(struct ottl_memory *memory) __attribute__((warn_unused_result));
struct ottl_list *ottl_list_create(struct ottl_memory *memory) __attribute__((warn_unused_result));

/* Appends the KeyValues that are field `number` of an encoded message. Nothing counts as changed.
 */
bool ottl_map_load(struct ottl_map *map, struct slice message, uint32_t number)
    __attribute__((warn_unused_result));

/* Whether a KeyValue has the usual form: key and value once, in this order, both with a short
 * length. */
static inline bool ottl_entry_is_plain(struct slice content, struct slice *ret_key,
                                       struct slice *ret_value)
{
    enum { KEY_TAG = 1 << 3 | 2, VALUE_TAG = 2 << 3 | 2, HEADERS = 4, SHORT = 0x80 };
    const uint8_t *data = content.data;
    if (content.size < HEADERS || data[0] != KEY_TAG || data[1] >= SHORT ||
        (size_t)data[1] + HEADERS > content.size)
        return false;
    const uint8_t *value = data + 2 + data[1];
    if (value[0] != VALUE_TAG || value[1] >= SHORT ||
        (size_t)data[1] + value[1] + HEADERS != content.size)
        return false;
    *ret_key = slice_of(data + 2, data[1]);
    *ret_value = slice_of(value + 2, value[1]);
    return true;
}
/* Room for so many entries at once, in a map that has none. False: refused. */
bool ottl_map_reserve(struct ottl_map *map, uint32_t capacity) __attribute__((warn_unused_result));
/* Room for another entry, which the caller fills. NULL: refused. */
struct ottl_entry *ottl_map_grow(struct ottl_map *map) __attribute__((warn_unused_result));
static inline __attribute__((warn_unused_result)) struct ottl_entry *ottl_map_room(
    struct ottl_map *map)
{
    return map->count < map->capacity ? &map->entries[map->count++] : ottl_map_grow(map);
}
/* Reads key and value of a KeyValue, `content`, that is the field `whole`. */
void ottl_entry_read(struct ottl_entry *entry, struct slice whole, struct slice content);
/* Appends an entry that was read. Nothing counts as changed. */
static inline __attribute__((warn_unused_result)) bool ottl_map_add_read(
    struct ottl_map *map, const struct ottl_entry *entry)
{
    struct ottl_entry *added = ottl_map_room(map);
    if (added == NULL)
        return false;
    *added = *entry;
    return true;
}

/* Whether a value is a text that is encoded in the usual form: that field alone, and short. */
static inline bool ottl_is_plain_text(const struct ottl_value *value)
{
    enum { TAG = 1 << 3 | 2, SHORT = 0x80 };
    return value->type == OTTL_ENCODED && value->size >= 2 && value->bytes[0] == TAG &&
           value->bytes[1] == value->size - 2 && value->bytes[1] < SHORT;
}
static inline struct ottl_value ottl_plain_text(const struct ottl_value *value)
{
    return ottl_string(slice_of(value->bytes + 2, value->size - 2));
}
/* Decodes an AnyValue. Maps and lists are read one level deep, into memory, as children of parent.
 */
bool ottl_value_decode(struct ottl_memory *memory, struct ottl_container *parent,
                       struct slice encoded, struct ottl_value *ret)
    __attribute__((warn_unused_result));
/* A deep copy, as a child of parent. Bytes are copied if memory copies_text. */
bool ottl_value_copy(struct ottl_memory *memory, struct ottl_container *parent,
                     const struct ottl_value *value, struct ottl_value *ret)
    __attribute__((warn_unused_result));
/* The bytes that the value takes as the content of an AnyValue; and writes them. NIL is the empty
 * value. Only what set accepts: no times, ids, messages. */
size_t ottl_value_encoded_size(const struct ottl_value *value);
uint8_t *ottl_value_encode(const struct ottl_value *value, uint8_t *at);

/* Makes the index of a map with many entries, before lookups that are as many. False: refused; each
 * lookup then looks at all entries. */
bool ottl_map_index(struct ottl_map *map) __attribute__((warn_unused_result));
/* The first with that key, or NULL. */
struct ottl_entry *ottl_map_find(struct ottl_map *map, struct slice key);
/* The entry's value, decoded in place. */
bool ottl_map_read(struct ottl_map *map, struct ottl_entry *entry, struct ottl_value *ret)
    __attribute__((warn_unused_result));
bool ottl_list_read(struct ottl_list *list, uint32_t index, struct ottl_value *ret)
    __attribute__((warn_unused_result));

/* Replaces the entry's value by a copy of value, which ottl_value_is_storable: callers ask first.
 */
bool ottl_map_set(struct ottl_map *map, struct ottl_entry *entry, const struct ottl_value *value)
    __attribute__((warn_unused_result));
/* Sets the first with that key, or appends one. Bytes are copied if the map's memory copies_text.
 */
bool ottl_map_put(struct ottl_map *map, struct slice key, const struct ottl_value *value)
    __attribute__((warn_unused_result));
/* Appends without looking for the key. */
struct ottl_entry *ottl_map_append(struct ottl_map *map, struct slice key)
    __attribute__((warn_unused_result));
/* The last entry takes its place. */
void ottl_map_remove(struct ottl_map *map, struct ottl_entry *entry);
/* Keeps the entries for which keeps returns true, in their order. */
void ottl_map_keep(struct ottl_map *map, bool (*keeps)(void *arg, struct ottl_entry *entry),
                   void *arg);
void ottl_map_clear(struct ottl_map *map);
/* Makes target a copy of source, which may be target. */
bool ottl_map_copy(struct ottl_map *target, struct ottl_map *source)
    __attribute__((warn_unused_result));

bool ottl_list_append(struct ottl_list *list, const struct ottl_value *value)
    __attribute__((warn_unused_result));
bool ottl_list_set(struct ottl_list *list, uint32_t index, const struct ottl_value *value)
    __attribute__((warn_unused_result));
void ottl_list_clear(struct ottl_list *list);

/* These take the value itself: what it holds is new, lives in the same memory and belongs to nobody
 * yet. */
bool ottl_list_adopt(struct ottl_list *list, const struct ottl_value *value)
    __attribute__((warn_unused_result));
void ottl_map_adopt(struct ottl_map *map, struct ottl_entry *entry, const struct ottl_value *value);

/* Whether pcommon.Value holds such values: nil, bool, int, double, string, bytes, map, list of
 * such. */
bool ottl_value_is_storable(const struct ottl_value *value);
/* Makes beforehand what reading a value would make, indexes and sizes. From then on nothing writes
 * to it, so that several threads may read it. Its containers are decoded. False: memory is refused.
 */
bool ottl_value_fix(struct ottl_value *value) __attribute__((warn_unused_result));
/* Whether values with so many levels, of OTTL_VALUE_LEVELS_MAX, may be put into the container. */
bool ottl_container_takes(struct ottl_container *container, unsigned levels);
/* After a change to a container's content other than by these functions. */
void ottl_container_touch(struct ottl_container *container);
