/* SPDX-License-Identifier: Apache-2.0 */
/* Entries are read from the wire when a map is, their values when they are asked for. Arrays grow
 * by moving to twice the room, so that n entries cost O(n) memory. Runs on the owner's thread. */
#include "src/ottl/ottl_map.h"

#include <assert.h>

#include "src/base/random.h"
#include "src/otlp/wire.h"
#include "src/ottl/ottl_limits.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    CAPACITY_FIRST = 16,
    KEY = 1,
    VALUE = 2,
    ITEMS = 1,        /* of ArrayValue and KeyValueList */
    INDEXED_MIN = 25, /* entries of a map with an index */
};

/* AnyValue's fields. */
enum { TEXT = 1, BOOLEAN, INTEGER, REAL, ARRAY, KEY_VALUES, RAW_BYTES, TEXT_INDEX };

void ottl_container_touch(struct ottl_container *container)
{
    assert(!container->is_constant);
    for (; container != NULL && !container->has_changed; container = container->parent)
        container->has_changed = true;
}

struct ottl_map *ottl_map_create(struct ottl_memory *memory)
{
    struct ottl_map *map = ottl_memory_room(memory, sizeof(*map));
    if (map != NULL)
        *map = (struct ottl_map){.base.memory = memory};
    return map;
}

struct ottl_list *ottl_list_create(struct ottl_memory *memory)
{
    struct ottl_list *list = ottl_memory_room(memory, sizeof(*list));
    if (list != NULL)
        *list = (struct ottl_list){.base.memory = memory, .base.is_list = true};
    return list;
}

/* Moves an array to twice the room. */
static void *grown(struct ottl_memory *memory, const void *items, uint32_t count,
                   uint32_t *capacity, size_t item_bytes)
{
    uint32_t more = *capacity > 0 ? 2 * *capacity : CAPACITY_FIRST;
    void *moved = more > *capacity ? ottl_memory_room(memory, more * item_bytes) : NULL;
    if (moved == NULL)
        return NULL;
    if (count > 0)
        memcpy(moved, items, count * item_bytes);
    *capacity = more;
    return moved;
}

struct ottl_entry *ottl_map_grow(struct ottl_map *map)
{
    struct ottl_entry *moved =
        grown(map->base.memory, map->entries, map->count, &map->capacity, sizeof(*map->entries));
    if (moved == NULL)
        return NULL;
    map->entries = moved;
    return &map->entries[map->count++];
}

bool ottl_map_reserve(struct ottl_map *map, uint32_t capacity)
{
    assert(map->count == 0);
    if (capacity <= map->capacity)
        return true;
    struct ottl_entry *room = ottl_memory_room(map->base.memory, capacity * sizeof(*room));
    if (room == NULL)
        return false;
    map->entries = room;
    map->capacity = capacity;
    return true;
}

static struct ottl_value *add_item(struct ottl_list *list)
{
    if (list->count == list->capacity) {
        struct ottl_value *moved = grown(list->base.memory, list->items, list->count,
                                         &list->capacity, sizeof(*list->items));
        if (moved == NULL)
            return NULL;
        list->items = moved;
    }
    return &list->items[list->count++];
}

/* Of a value that comes twice the last that is not empty counts, as after merging. */
static void read_fields(struct slice content, struct slice *ret_key, struct slice *ret_value)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    *ret_key = *ret_value = slice_of(content.data, 0);
    while (wire_next_field(&reader, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == KEY)
            *ret_key = field.bytes;
        else if (field.number == VALUE && field.bytes.size > 0)
            *ret_value = field.bytes;
    }
}

void ottl_entry_read(struct ottl_entry *entry, struct slice whole, struct slice content)
{
    struct slice value;
    if (!ottl_entry_is_plain(content, &entry->key, &value))
        read_fields(content, &entry->key, &value);
    entry->value = ottl_bytes_of(OTTL_ENCODED, value);
    entry->whole = whole;
    entry->ready = NULL;
    entry->is_new = false;
    entry->slot = 0;
}

bool ottl_map_load(struct ottl_map *map, struct slice message, uint32_t number)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number != number || field.type != WIRE_BYTES)
            continue;
        struct ottl_entry *entry = ottl_map_room(map);
        if (entry == NULL)
            return false;
        ottl_entry_read(entry, field.whole, field.bytes);
    }
    return true;
}

static bool load_list(struct ottl_list *list, struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number != ITEMS || field.type != WIRE_BYTES)
            continue;
        struct ottl_value *item = add_item(list);
        if (item == NULL)
            return false;
        *item = ottl_bytes_of(OTTL_ENCODED, field.bytes);
    }
    return true;
}

static bool decode_container(struct ottl_memory *memory, struct ottl_container *parent,
                             const struct wire_field *field, struct ottl_value *ret)
{
    struct ottl_container *made;
    if (field->number == KEY_VALUES) {
        struct ottl_map *map = ottl_map_create(memory);
        if (map == NULL || !ottl_map_load(map, field->bytes, ITEMS))
            return false;
        *ret = ottl_map_value(map);
        made = &map->base;
    } else {
        struct ottl_list *list = ottl_list_create(memory);
        if (list == NULL || !load_list(list, field->bytes))
            return false;
        *ret = ottl_list_value(list, OTTL_FORM_PDATA);
        made = &list->base;
    }
    made->parent = parent;
    made->encoded = field->bytes;
    return true;
}

bool ottl_value_decode(struct ottl_memory *memory, struct ottl_container *parent,
                       struct slice encoded, struct ottl_value *ret)
{
    struct wire_reader reader = wire_reader_of(encoded);
    struct wire_field field;
    struct wire_field container = {.number = 0};
    struct ottl_value value = ottl_bytes_of(OTTL_ENCODED, encoded);
    if (ottl_is_plain_text(&value)) {
        *ret = ottl_plain_text(&value);
        return true;
    }
    value = ottl_nil();
    while (wire_next_field(&reader, &field)) {
        switch (field.number) {
        case TEXT:
            value = ottl_string(field.bytes);
            break;
        case BOOLEAN:
            value = ottl_bool(field.number_value != 0);
            break;
        case INTEGER:
            value = ottl_int((int64_t)field.number_value);
            break;
        case REAL:
            value.type = OTTL_DOUBLE;
            memcpy(&value.real, &field.number_value, sizeof(value.real));
            break;
        case ARRAY:
        case KEY_VALUES:
            container = field;
            value.type = field.number == ARRAY ? OTTL_LIST : OTTL_MAP;
            break;
        case RAW_BYTES:
            value = ottl_bytes_of(OTTL_BYTES, field.bytes);
            if (field.bytes.size == 0)
                value.bytes = NULL; /* Go gives a nil slice */
            break;
        case TEXT_INDEX:
            value = ottl_nil();
            break;
        default:
            break;
        }
    }
    if (value.type == OTTL_LIST || value.type == OTTL_MAP)
        return decode_container(memory, parent, &container, ret);
    *ret = value;
    return true;
}

bool ottl_map_read(struct ottl_map *map, struct ottl_entry *entry, struct ottl_value *ret)
{
    if (entry->value.type == OTTL_ENCODED &&
        !ottl_value_decode(map->base.memory, &map->base, ottl_slice(&entry->value), &entry->value))
        return false;
    *ret = entry->value;
    return true;
}

bool ottl_list_read(struct ottl_list *list, uint32_t index, struct ottl_value *ret)
{
    assert(index < list->count);
    struct ottl_value *item = &list->items[index];
    if (item->type == OTTL_ENCODED &&
        !ottl_value_decode(list->base.memory, &list->base, ottl_slice(item), item))
        return false;
    *ret = *item;
    return true;
}

/* With a seed, so that clients cannot choose keys that collide. */
static uint32_t hash_of(const struct ottl_map *map, struct slice key)
{
    return (uint32_t)XXH3_64bits_withSeed(key.data, key.size, map->index_seed);
}

/* Puts the entries that are not there yet into the index, which has room for twice the entries.
 * False: memory is refused. */
static bool update_index(struct ottl_map *map)
{
    enum { SIZE_FIRST = 64 };
    uint32_t size = map->index != NULL ? map->index_mask + 1 : SIZE_FIRST;
    if (map->index == NULL || map->indexed_moves != map->moves || map->count > size / 2) {
        while (size < 2 * map->count)
            size *= 2;
        if (map->index == NULL || size > map->index_mask + 1)
            map->index = ottl_memory_room(map->base.memory, size * sizeof(*map->index));
        if (map->index == NULL)
            return false;
        map->index_seed = (uint64_t)(random_uniform() * 0x1p53);
        memset(map->index, 0, size * sizeof(*map->index));
        map->index_mask = size - 1;
        ottl_memory_work(map->base.memory, map->indexed);
        map->indexed = 0;
        map->indexed_moves = map->moves;
        map->has_duplicates = false;
    }
    for (; map->indexed < map->count; map->indexed++) {
        struct slice key = map->entries[map->indexed].key;
        uint32_t at = hash_of(map, key);
        while (map->index[at & map->index_mask] != 0 &&
               !slice_equal(map->entries[map->index[at & map->index_mask] - 1].key, key))
            at++;
        if (map->index[at & map->index_mask] == 0)
            map->index[at & map->index_mask] = map->indexed + 1;
        else
            map->has_duplicates = true;
    }
    return true;
}

/* Whether the index is there and has all entries. */
static inline bool has_index(const struct ottl_map *map)
{
    return map->index != NULL && map->indexed == map->count && map->indexed_moves == map->moves;
}

/* Where the index has the place of an entry, which is the only one of its key. */
static uint32_t cell_of(const struct ottl_map *map, uint32_t place)
{
    uint32_t at = hash_of(map, map->entries[place].key);
    for (; map->index[at & map->index_mask] != place + 1; at++)
        assert(map->index[at & map->index_mask] != 0);
    return at & map->index_mask;
}

/* Frees a cell: those behind it that would not be found any more move up. */
static void free_cell(struct ottl_map *map, uint32_t cell)
{
    const uint32_t mask = map->index_mask;
    for (uint32_t at = (cell + 1) & mask; map->index[at] != 0; at = (at + 1) & mask) {
        const uint32_t home = hash_of(map, map->entries[map->index[at] - 1].key);
        if (((at - home) & mask) < ((at - cell) & mask))
            continue;
        map->index[cell] = map->index[at];
        cell = at;
    }
    map->index[cell] = 0;
}

bool ottl_map_index(struct ottl_map *map)
{
    return map->count < INDEXED_MIN || has_index(map) || update_index(map);
}

struct ottl_entry *ottl_map_find(struct ottl_map *map, struct slice key)
{
    if (map->count >= INDEXED_MIN && (has_index(map) || update_index(map))) {
        for (uint32_t at = hash_of(map, key);; at++) {
            uint32_t place = map->index[at & map->index_mask];
            if (place == 0)
                return NULL;
            if (slice_equal(map->entries[place - 1].key, key))
                return &map->entries[place - 1];
        }
    }
    if (map->count >= INDEXED_MIN)
        ottl_memory_work(map->base.memory, map->count);
    for (uint32_t i = 0; i < map->count; i++)
        if (slice_equal(map->entries[i].key, key))
            return &map->entries[i];
    return NULL;
}

bool ottl_value_is_storable(const struct ottl_value *value)
{
    return value->type <= OTTL_BYTES || value->type == OTTL_MAP ||
           (value->type == OTTL_LIST && value->form < OTTL_FORM_UINTS) ||
           value->type == OTTL_ENCODED;
}

/* Whether an encoded AnyValue has at most so many levels. Recursion is bounded by them. */
static bool has_levels(struct slice encoded, unsigned most)
{
    struct wire_reader reader = wire_reader_of(encoded);
    struct wire_field field;
    struct wire_field item;
    while (wire_next_field(&reader, &field)) {
        if (field.type != WIRE_BYTES || (field.number != ARRAY && field.number != KEY_VALUES))
            continue;
        unsigned levels = field.number == KEY_VALUES ? OTTL_MAP_LEVELS : OTTL_LIST_LEVELS;
        if (levels > most)
            return false;
        struct wire_reader items = wire_reader_of(field.bytes);
        while (wire_next_field(&items, &item)) {
            if (item.number != ITEMS || item.type != WIRE_BYTES)
                continue;
            if (field.number == ARRAY) {
                if (!has_levels(item.bytes, most - levels))
                    return false;
                continue;
            }
            struct wire_reader entry = wire_reader_of(item.bytes);
            struct wire_field value;
            while (wire_next_field(&entry, &value))
                if (value.number == VALUE && value.type == WIRE_BYTES &&
                    !has_levels(value.bytes, most - levels))
                    return false;
        }
    }
    return true;
}

/* How many levels values in a container may have. NULL: values that belong to nobody. */
static unsigned levels_left(const struct ottl_container *container)
{
    unsigned levels = 0;
    /* The outermost is a record, or what a converter makes. */
    for (; container != NULL && container->parent != NULL; container = container->parent)
        levels += container->is_list ? OTTL_LIST_LEVELS : OTTL_MAP_LEVELS;
    return levels < OTTL_VALUE_LEVELS_MAX ? OTTL_VALUE_LEVELS_MAX - levels : 0;
}

bool ottl_container_takes(struct ottl_container *container, unsigned levels)
{
    if (levels <= levels_left(container))
        return true;
    container->memory->is_too_deep = true;
    return false;
}

static bool copy_bytes(struct ottl_memory *memory, struct slice *bytes)
{
    if (!memory->copies_text || bytes->size == 0)
        return true;
    uint8_t *room = ottl_memory_room(memory, bytes->size);
    if (room == NULL)
        return false;
    memcpy(room, bytes->data, bytes->size);
    bytes->data = room;
    return true;
}

static bool copy_value(struct ottl_memory *memory, struct ottl_container *parent,
                       const struct ottl_value *from, struct ottl_value *ret, unsigned left);

/* What is copied from another record is counted. */
static void note_copy(const struct ottl_container *target, const struct ottl_container *source,
                      uint64_t entries)
{
    enum { COPY_ENTRIES = 4 }; /* that can be looked at while one is copied */
    if (source->memory != target->memory)
        ottl_memory_work(target->memory, COPY_ENTRIES * entries);
}

/* left: the levels that each entry's value may have. Recursion is bounded by them. */
static bool copy_map(struct ottl_map *target, const struct ottl_map *source, unsigned left)
{
    note_copy(&target->base, &source->base, source->count);
    for (uint32_t i = 0; i < source->count; i++) {
        struct ottl_entry copy = {.key = source->entries[i].key, .is_new = true};
        if (!copy_bytes(target->base.memory, &copy.key) ||
            !copy_value(target->base.memory, &target->base, &source->entries[i].value, &copy.value,
                        left))
            return false;
        struct ottl_entry *entry = ottl_map_room(target);
        if (entry == NULL)
            return false;
        *entry = copy;
    }
    return true;
}

/* The same of items. */
static bool copy_list(struct ottl_list *target, const struct ottl_list *source, unsigned left)
{
    note_copy(&target->base, &source->base, source->count);
    for (uint32_t i = 0; i < source->count; i++) {
        struct ottl_value copy;
        if (!copy_value(target->base.memory, &target->base, &source->items[i], &copy, left))
            return false;
        struct ottl_value *item = add_item(target);
        if (item == NULL)
            return false;
        *item = copy;
    }
    return true;
}

/* left: the levels that it may have. Recursion is bounded by them. */
static bool copy_value(struct ottl_memory *memory, struct ottl_container *parent,
                       const struct ottl_value *from, struct ottl_value *ret, unsigned left)
{
    enum { FIELD_BYTES = 2 }; /* of the shortest that has_levels looks at */
    *ret = *from;
    if (from->type == OTTL_ENCODED && !ottl_is_plain_text(from))
        ottl_memory_work(memory, from->size / FIELD_BYTES);
    if (from->type == OTTL_ENCODED && !has_levels(ottl_slice(from), left)) {
        memory->is_too_deep = true;
        return false;
    }
    if (from->type == OTTL_STRING || from->type == OTTL_BYTES || from->type == OTTL_ENCODED) {
        struct slice bytes = ottl_slice(from);
        if (!copy_bytes(memory, &bytes))
            return false;
        ret->bytes = bytes.data;
        return true;
    }
    if (from->type != OTTL_MAP && from->type != OTTL_LIST)
        return true;
    unsigned levels = from->type == OTTL_MAP ? OTTL_MAP_LEVELS : OTTL_LIST_LEVELS;
    if (levels > left) {
        memory->is_too_deep = true;
        return false;
    }
    ret->form = OTTL_FORM_PDATA;
    if (from->type == OTTL_MAP) {
        struct ottl_map *map = ottl_map_create(memory);
        if (map == NULL || !copy_map(map, from->map, left - levels))
            return false;
        map->base.parent = parent;
        map->base.has_changed = true;
        ret->map = map;
        return true;
    }
    struct ottl_list *list = ottl_list_create(memory);
    if (list == NULL || !copy_list(list, from->list, left - levels))
        return false;
    list->base.parent = parent;
    list->base.has_changed = true;
    ret->list = list;
    return true;
}

bool ottl_value_copy(struct ottl_memory *memory, struct ottl_container *parent,
                     const struct ottl_value *value, struct ottl_value *ret)
{
    return copy_value(memory, parent, value, ret, levels_left(parent));
}

bool ottl_map_set(struct ottl_map *map, struct ottl_entry *entry, const struct ottl_value *value)
{
    assert(entry >= map->entries && entry < map->entries + map->count);
    assert(ottl_value_is_storable(value));
    struct ottl_value copy;
    if (!copy_value(map->base.memory, &map->base, value, &copy, levels_left(&map->base)))
        return false;
    entry->value = copy;
    entry->is_new = true;
    ottl_container_touch(&map->base);
    return true;
}

struct ottl_entry *ottl_map_append(struct ottl_map *map, struct slice key)
{
    if (!copy_bytes(map->base.memory, &key))
        return NULL;
    struct ottl_entry *entry = ottl_map_room(map);
    if (entry == NULL)
        return NULL;
    *entry = (struct ottl_entry){.key = key, .value = ottl_nil(), .is_new = true};
    ottl_container_touch(&map->base);
    return entry;
}

bool ottl_map_put(struct ottl_map *map, struct slice key, const struct ottl_value *value)
{
    if (!ottl_map_index(map))
        return false;
    struct ottl_entry *entry = ottl_map_find(map, key);
    if (entry == NULL)
        entry = ottl_map_append(map, key);
    return entry != NULL && ottl_map_set(map, entry, value);
}

void ottl_map_remove(struct ottl_map *map, struct ottl_entry *entry)
{
    assert(entry >= map->entries && entry < map->entries + map->count);
    const uint32_t place = (uint32_t)(entry - map->entries);
    const uint32_t last = map->count - 1;
    const bool keeps_index = has_index(map) && !map->has_duplicates;
    if (keeps_index) {
        free_cell(map, cell_of(map, place));
        if (last != place)
            map->index[cell_of(map, last)] = place + 1;
    }
    *entry = map->entries[last];
    map->count--;
    map->moves++;
    if (keeps_index) {
        map->indexed = map->count;
        map->indexed_moves = map->moves;
    }
    ottl_container_touch(&map->base);
}

void ottl_map_keep(struct ottl_map *map, bool (*keeps)(void *arg, struct ottl_entry *entry),
                   void *arg)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < map->count; i++)
        if (keeps(arg, &map->entries[i]))
            map->entries[kept++] = map->entries[i];
    if (kept == map->count)
        return;
    map->count = kept;
    map->moves++;
    ottl_container_touch(&map->base);
}

void ottl_map_clear(struct ottl_map *map)
{
    if (map->count == 0)
        return;
    map->count = 0;
    map->moves++;
    ottl_container_touch(&map->base);
}

bool ottl_map_copy(struct ottl_map *target, struct ottl_map *source)
{
    if (target == source)
        return true;
    /* source may be inside target: what it holds stays in memory. */
    struct ottl_map fresh = {.base.memory = target->base.memory};
    if (!copy_map(&fresh, source, levels_left(&target->base)))
        return false;
    target->entries = fresh.entries;
    target->count = fresh.count;
    target->capacity = fresh.capacity;
    target->moves++;
    for (uint32_t i = 0; i < target->count; i++) {
        struct ottl_value *value = &target->entries[i].value;
        if (value->type == OTTL_MAP)
            value->map->base.parent = &target->base;
        else if (value->type == OTTL_LIST)
            value->list->base.parent = &target->base;
    }
    ottl_container_touch(&target->base);
    return true;
}

bool ottl_list_append(struct ottl_list *list, const struct ottl_value *value)
{
    struct ottl_value copy;
    if (!copy_value(list->base.memory, &list->base, value, &copy, levels_left(&list->base)))
        return false;
    struct ottl_value *item = add_item(list);
    if (item == NULL)
        return false;
    *item = copy;
    ottl_container_touch(&list->base);
    return true;
}

bool ottl_list_set(struct ottl_list *list, uint32_t index, const struct ottl_value *value)
{
    assert(index < list->count);
    struct ottl_value copy;
    if (!copy_value(list->base.memory, &list->base, value, &copy, levels_left(&list->base)))
        return false;
    list->items[index] = copy;
    ottl_container_touch(&list->base);
    return true;
}

void ottl_list_clear(struct ottl_list *list)
{
    list->count = 0;
    ottl_container_touch(&list->base);
}

static struct ottl_container *container_of(const struct ottl_value *value)
{
    return value->type == OTTL_MAP ? &value->map->base : &value->list->base;
}

static void become_child(struct ottl_container *parent, const struct ottl_value *value)
{
    if (value->type == OTTL_MAP || value->type == OTTL_LIST) {
        container_of(value)->parent = parent;
        container_of(value)->has_changed = true;
    }
    ottl_container_touch(parent);
}

bool ottl_list_adopt(struct ottl_list *list, const struct ottl_value *value)
{
    struct ottl_value *item = add_item(list);
    if (item == NULL)
        return false;
    *item = *value;
    become_child(&list->base, value);
    return true;
}

void ottl_map_adopt(struct ottl_map *map, struct ottl_entry *entry, const struct ottl_value *value)
{
    assert(entry >= map->entries && entry < map->entries + map->count);
    entry->value = *value;
    entry->is_new = true;
    entry->ready = NULL;
    become_child(&map->base, value);
}

/* Recursion is bounded: no value has more than OTTL_VALUE_LEVELS_MAX. */
static size_t container_size(struct ottl_container *container, const struct ottl_value *value)
{
    if (!container->has_changed && container->encoded.data != NULL)
        return container->encoded.size;
    if (container->is_constant)
        return container->encoded_bytes;
    size_t size = 0;
    if (value->type == OTTL_MAP) {
        const struct ottl_map *map = value->map;
        for (uint32_t i = 0; i < map->count; i++) {
            const struct ottl_entry *entry = &map->entries[i];
            size += wire_field_size(
                ITEMS, wire_field_size(KEY, entry->key.size) +
                           wire_field_size(VALUE, ottl_value_encoded_size(&entry->value)));
        }
    } else {
        const struct ottl_list *list = value->list;
        for (uint32_t i = 0; i < list->count; i++)
            size += wire_field_size(ITEMS, ottl_value_encoded_size(&list->items[i]));
    }
    container->encoded_bytes = (uint32_t)size;
    return size;
}

size_t ottl_value_encoded_size(const struct ottl_value *value)
{
    switch (value->type) {
    case OTTL_BOOL:
        return 2;
    case OTTL_INT:
        return 1 + wire_varint_size((uint64_t)value->integer);
    case OTTL_DOUBLE:
        return 1 + sizeof(double);
    case OTTL_STRING:
    case OTTL_BYTES:
        return wire_field_size(TEXT, value->size);
    case OTTL_ENCODED:
        return value->size;
    case OTTL_MAP:
    case OTTL_LIST:
        return wire_field_size(ARRAY, container_size(container_of(value), value));
    default:
        return 0;
    }
}

/* Recursion is bounded by the levels of values. */
static bool fix_value(struct ottl_value *value)
{
    bool is_fine = true;
    if (value->type == OTTL_MAP) {
        struct ottl_map *map = value->map;
        for (uint32_t i = 0; i < map->count && is_fine; i++)
            is_fine = fix_value(&map->entries[i].value);
        is_fine = is_fine && (map->count < INDEXED_MIN || update_index(map));
    } else if (value->type == OTTL_LIST) {
        for (uint32_t i = 0; i < value->list->count && is_fine; i++)
            is_fine = fix_value(&value->list->items[i]);
    } else {
        assert(value->type != OTTL_ENCODED);
        return true;
    }
    container_of(value)->is_constant = true;
    return is_fine;
}

bool ottl_value_fix(struct ottl_value *value)
{
    (void)ottl_value_encoded_size(value);
    return fix_value(value);
}

static uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static uint8_t *put_bytes(uint8_t *at, struct slice bytes)
{
    if (bytes.size > 0)
        memcpy(at, bytes.data, bytes.size);
    return at + bytes.size;
}

static uint8_t *put_header(uint8_t *at, uint32_t number, size_t bytes)
{
    return put_varint(put_varint(at, wire_tag(number, WIRE_BYTES)), bytes);
}

/* What ottl_value_encoded_size said, without measuring again. */
static size_t known_size(const struct ottl_value *value)
{
    if (value->type != OTTL_MAP && value->type != OTTL_LIST)
        return ottl_value_encoded_size(value);
    const struct ottl_container *container = container_of(value);
    return wire_field_size(ARRAY, !container->has_changed && container->encoded.data != NULL
                                      ? container->encoded.size
                                      : container->encoded_bytes);
}

/* Recursion is bounded by the levels of values. */
static uint8_t *put_container(const struct ottl_value *value, uint8_t *at)
{
    const struct ottl_container *container = container_of(value);
    uint32_t number = value->type == OTTL_MAP ? KEY_VALUES : ARRAY;
    if (!container->has_changed && container->encoded.data != NULL)
        return put_bytes(put_header(at, number, container->encoded.size), container->encoded);
    at = put_header(at, number, container->encoded_bytes);
    if (value->type == OTTL_MAP) {
        const struct ottl_map *map = value->map;
        for (uint32_t i = 0; i < map->count; i++) {
            const struct ottl_entry *entry = &map->entries[i];
            size_t size = known_size(&entry->value);
            at = put_header(at, ITEMS,
                            wire_field_size(KEY, entry->key.size) + wire_field_size(VALUE, size));
            at = put_bytes(put_header(at, KEY, entry->key.size), entry->key);
            at = ottl_value_encode(&entry->value, put_header(at, VALUE, size));
        }
        return at;
    }
    for (uint32_t i = 0; i < value->list->count; i++) {
        const struct ottl_value *item = &value->list->items[i];
        at = ottl_value_encode(item, put_header(at, ITEMS, known_size(item)));
    }
    return at;
}

uint8_t *ottl_value_encode(const struct ottl_value *value, uint8_t *at)
{
    switch (value->type) {
    case OTTL_BOOL:
        *at++ = (uint8_t)wire_tag(BOOLEAN, WIRE_VARINT);
        *at++ = value->boolean;
        return at;
    case OTTL_INT:
        *at++ = (uint8_t)wire_tag(INTEGER, WIRE_VARINT);
        return put_varint(at, (uint64_t)value->integer);
    case OTTL_DOUBLE:
        *at++ = (uint8_t)wire_tag(REAL, WIRE_FIXED64);
        memcpy(at, &value->real, sizeof(value->real));
        return at + sizeof(value->real);
    case OTTL_STRING:
        return put_bytes(put_header(at, TEXT, value->size), ottl_slice(value));
    case OTTL_BYTES:
        return put_bytes(put_header(at, RAW_BYTES, value->size), ottl_slice(value));
    case OTTL_ENCODED:
        return put_bytes(at, ottl_slice(value));
    case OTTL_MAP:
    case OTTL_LIST:
        return put_container(value, at);
    default:
        return at;
    }
}
