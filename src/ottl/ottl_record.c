/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over a message notes its fields and, if statements name any, its attributes with their
 * slots. Runs on the owner's thread. */
#include "src/ottl/ottl_record.h"

#include <assert.h>
#include <endian.h>

#include "src/base/mem.h"
#include "src/base/short_bytes.h"
#include "src/otlp/wire.h"
#include "src/ottl/ottl_limits.h"

enum {
    KEY = 1,
    VALUE = 2,
    ALL_BYTES_MAX =
        4096, /* of messages all of whose attributes are read before they are asked for */
};

void ottl_record_init(struct ottl_record *record, const struct ottl_context_type *type,
                      const struct ottl_keys *keys, struct budget *budget)
{
    enum { KEPT_MAX = 256 }; /* 16 KiB */
    const uint32_t kept = keys->count < KEPT_MAX ? keys->count : KEPT_MAX;
    *record = (struct ottl_record){
        .type = type,
        .keys = keys,
        .slots = mem_zalloc((keys->count + 1) * sizeof(*record->slots)),
        .turn = 1,
        .kept_count = kept,
        .kept = mem_alloc((kept + 1) * sizeof(*record->kept)),
        .attributes.base.memory = &record->memory,
        .body = {.base.memory = &record->memory, .base.is_list = true},
    };
    ottl_memory_init(&record->memory, OTTL_RECORD_BYTES_MAX, budget);
}

void ottl_record_fini(struct ottl_record *record)
{
    mem_free(record->slots);
    mem_free(record->kept);
    ottl_memory_fini(&record->memory);
}

static inline void free_slots(struct ottl_record *record)
{
    if (++record->turn > 0)
        return;
    memset(record->slots, 0, record->keys->count * sizeof(*record->slots));
    record->turn = 1;
}

static inline void take_slot(struct ottl_record *record, uint32_t slot, uint32_t place)
{
    record->slots[slot] = (struct ottl_slot){.turn = record->turn, .place = place};
}

static inline void free_slot(struct ottl_record *record, uint32_t slot)
{
    record->slots[slot].turn = 0;
}

static inline __attribute__((always_inline)) uint32_t hash_of(struct slice key)
{
    uint64_t first = 0;
    uint64_t last = 0;
    if (key.size >= 8) {
        memcpy(&first, key.data, 8);
        memcpy(&last, key.data + key.size - 8, 8);
    } else if (key.size >= 4) {
        uint32_t half;
        memcpy(&half, key.data, 4);
        first = half;
        memcpy(&half, key.data + key.size - 4, 4);
        last = half;
    } else if (key.size > 0) {
        first = key.data[0] | (uint64_t)key.data[key.size / 2] << 8 |
                (uint64_t)key.data[key.size - 1] << 16;
    }
    uint64_t mixed = (first ^ key.size * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    mixed = (mixed ^ mixed >> 32 ^ last) * 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(mixed >> 32);
}

void ottl_keys_finish(struct ottl_keys *keys)
{
    uint32_t size = 8;
    while (size < 4 * keys->count)
        size *= 2;
    keys->table = mem_alloc(size * sizeof(*keys->table));
    keys->mask = size - 1;
    for (uint32_t i = 0; i < size; i++)
        keys->table[i] = -1;
    for (uint32_t i = 0; i < keys->count; i++) {
        const struct slice key = keys->keys[i];
        uint32_t at = hash_of(key);
        uint8_t *mark =
            &keys->marks[ottl_key_mark(key.size, key.size > 0 ? key.data[key.size - 1] : 0)];
        keys->sizes |= (uint64_t)1 << (key.size & 63);
        *mark = *mark == 0 && i + 1 < OTTL_KEYS_OF_MARK ? (uint8_t)(i + 1) : OTTL_KEYS_OF_MARK;
        while (keys->table[at & keys->mask] >= 0)
            at++;
        keys->table[at & keys->mask] = (int32_t)i;
    }
}

static __attribute__((noinline)) int32_t find_in_table(const struct ottl_keys *keys,
                                                       struct slice key)
{
    for (uint32_t at = hash_of(key);; at++) {
        int32_t slot = keys->table[at & keys->mask];
        if (slot < 0 || slice_equal(keys->keys[slot], key))
            return slot;
    }
}

/* The slot of a key with this mark, which some key has; or -1. */
static inline int32_t find_marked(const struct ottl_keys *keys, uint8_t mark, struct slice key)
{
    if (mark == OTTL_KEYS_OF_MARK)
        return find_in_table(keys, key);
    const struct slice only = keys->keys[mark - 1];
    return only.size == key.size && short_equal(only.data, key.data, key.size) ? mark - 1 : -1;
}

int32_t ottl_keys_find(const struct ottl_keys *keys, struct slice key)
{
    const uint8_t mark =
        keys->marks[ottl_key_mark(key.size, key.size > 0 ? key.data[key.size - 1] : 0)];
    return mark == 0 ? -1 : find_marked(keys, mark, key);
}

/* Notes a field that is no attribute. */
static inline void note_field(struct ottl_record *record, const struct wire_field *field)
{
    if (field->number == 0 || field->number >= OTTL_RECORD_FIELDS ||
        (record->keys->fields >> field->number & 1) == 0)
        return;
    uint32_t bit = 1u << field->number;
    record->repeated |= record->present & bit;
    record->present |= bit;
    record->fields[field->number] = (struct ottl_field){.whole = field->whole,
                                                        .bytes = field->bytes,
                                                        .number = field->number_value,
                                                        .wire = (uint8_t)field->type};
}

/* Which attributes become entries. */
enum wanted { WANT_NONE, WANT_SLOTS, WANT_ALL };

/* Whether a key has a slot (-1: none) that no entry has yet. */
static inline bool is_free(const struct ottl_record *record, int32_t slot)
{
    return slot >= 0 && record->slots[slot].turn != record->turn;
}

/* Makes the attribute an entry if its key has a slot that is free, since the first of a key counts,
 * or if all are wanted. */
static inline bool note_attribute(struct ottl_record *record, const struct ottl_entry *entry,
                                  enum wanted wanted)
{
    const int32_t slot = ottl_keys_find(record->keys, entry->key);
    bool is_first = is_free(record, slot);
    if (is_first)
        take_slot(record, (uint32_t)slot, record->attributes.count);
    record->has_duplicates = record->has_duplicates || (slot >= 0 && !is_first);
    if (!is_first && wanted != WANT_ALL)
        return true;
    struct ottl_entry *added = ottl_map_room(&record->attributes);
    if (added == NULL)
        return false;
    *added = *entry;
    added->slot = (uint32_t)(slot + 1);
    return true;
}

/* An attribute in the usual form: key and value once, in this order, and all lengths in one byte,
 * so that one word has tags and lengths. No such attribute, nor what is looked at of other fields,
 * reaches FAR bytes. */
enum {
    SHORT_TAGS = 16,
    SHORT = 0x80,
    HEADERS = 4,
    VALUE_AT = 4,
    WORDS = 6,
    FAR = 2 + 0x7f + WORDS
};

/* Its size, and that of its key; 0: it is another field, or has another form. */
static inline size_t plain_attribute_size(const uint8_t *at, uint32_t head, size_t *ret_key)
{
    uint32_t word;
    memcpy(&word, at, sizeof(word));
    word = le32toh(word) ^ head;
    const size_t size = at[1]; /* the next attribute waits for it: no shift */
    const size_t key = word >> 24;
    *ret_key = key;
    if ((word & UINT32_C(0x80ff80ff)) != 0 || at[VALUE_AT + key] != wire_tag(VALUE, WIRE_BYTES) ||
        HEADERS + key + at[VALUE_AT + 1 + key] != size)
        return 0;
    return 2 + size;
}

/* Whether all that plain_attribute_size looks at is among the bytes that are left. */
static inline bool may_be_plain(const uint8_t *at, size_t left)
{
    return left >= WORDS && at[1] + 2u <= left && at[3] + (size_t)HEADERS <= at[1];
}

static inline void fill_plain(struct ottl_entry *entry, const uint8_t *at, size_t size, size_t key,
                              uint32_t slot)
{
    entry->key = slice_of(at + VALUE_AT, key);
    entry->value =
        ottl_bytes_of(OTTL_ENCODED, slice_of(at + VALUE_AT + key + 2, size - key - WORDS));
    entry->whole = slice_of(at, size);
    entry->ready = NULL;
    entry->is_new = false;
    entry->slot = slot;
}

/* Notes one whose key may have a slot, or that is wanted anyway. */
static inline __attribute__((always_inline)) bool note_plain_attribute(struct ottl_record *record,
                                                                       const uint8_t *at,
                                                                       size_t size, size_t key,
                                                                       enum wanted wanted)
{
    struct ottl_map *map = &record->attributes;
    /* Before an empty key stands its length, 0. */
    const uint8_t mark = record->keys->marks[ottl_key_mark(key, at[VALUE_AT + key - 1])];
    const int32_t slot =
        mark != 0 ? find_marked(record->keys, mark, slice_of(at + VALUE_AT, key)) : -1;
    const bool is_first = is_free(record, slot);
    record->has_duplicates = record->has_duplicates || (slot >= 0 && !is_first);
    if (!is_first && wanted != WANT_ALL)
        return true;
    struct ottl_entry *entry = ottl_map_room(map);
    if (entry == NULL)
        return false;
    fill_plain(entry, at, size, key, (uint32_t)(slot + 1));
    if (is_first)
        take_slot(record, (uint32_t)slot, map->count - 1);
    return true;
}

/* Steps over such attributes whose keys have none of the sizes. *ret_size, *ret_key: of one that
 * stands before `far`, behind them; 0: there is none. */
static inline const uint8_t *step_over_attributes(const uint8_t *at, const uint8_t *far,
                                                  uint32_t head, uint64_t sizes, size_t *ret_size,
                                                  size_t *ret_key)
{
    for (*ret_size = 0; at < far; at += *ret_size) {
        *ret_size = plain_attribute_size(at, head, ret_key);
        if (*ret_size == 0)
            break;
        if ((sizes >> (*ret_key & 63) & 1) != 0)
            break;
    }
    return at;
}

/* Such attributes that follow one another. Returns where something else begins; NULL: memory is
 * refused. */
static inline __attribute__((always_inline)) const uint8_t *scan_attributes(
    struct ottl_record *record, const uint8_t *at, const uint8_t *far, enum wanted wanted)
{
    const uint8_t *const end = record->bytes.data + record->bytes.size;
    const uint32_t head = wire_tag(record->attributes_field, WIRE_BYTES) |
                          wire_tag(KEY, WIRE_BYTES) << 16; /* the lengths are 0 */
    const uint64_t sizes = wanted == WANT_ALL    ? UINT64_MAX
                           : wanted == WANT_NONE ? 0
                                                 : record->keys->sizes;
    size_t size;
    size_t key = 0;
    assert(record->attributes_field < SHORT_TAGS);
    for (;; at += size) {
        at = step_over_attributes(at, far, head, sizes, &size, &key);
        if (at >= far && may_be_plain(at, (size_t)(end - at)))
            size = plain_attribute_size(at, head, &key);
        else if (at >= far)
            return at;
        if (size == 0)
            return at;
        if ((sizes >> (key & 63) & 1) != 0 && !note_plain_attribute(record, at, size, key, wanted))
            return NULL;
    }
}

/* The size of a field whose tag has one byte and whose number or length has one; 0: others. At
 * least FAR bytes can be read. */
static inline size_t plain_field_size(const uint8_t *at)
{
    enum { FIXED64_SIZE = 9, HEADER = 2 };
    const unsigned type = at[0] & 7;
    if (type == WIRE_FIXED64)
        return FIXED64_SIZE;
    if (at[1] >= SHORT)
        return 0;
    return type == WIRE_BYTES ? HEADER + (size_t)at[1] : type == WIRE_VARINT ? HEADER : 0;
}

/* Steps over such fields whose numbers are not among `stops`. */
static inline const uint8_t *step_over(const uint8_t *at, const uint8_t *far, uint32_t stops)
{
    size_t size;
    for (; at < far && (stops >> (at[0] >> 3) & 1) == 0; at += size)
        if ((size = plain_field_size(at)) == 0)
            break;
    return at;
}

/* Notes where such a field is, which is no attribute. */
static inline void note_plain_field(struct ottl_record *record, const uint8_t *at, size_t size)
{
    const size_t number = at[0] >> 3;
    const uint32_t bit = 1u << number;
    const uint8_t type = at[0] & 7;
    struct ottl_field *field = &record->fields[number];
    if ((record->present & bit) != 0)
        record->repeated |= bit;
    record->present |= bit;
    field->whole = slice_of(at, size);
    field->wire = type;
    if (type == WIRE_BYTES) {
        field->bytes = slice_of(at + 2, size - 2);
        field->number = 0;
        return;
    }
    field->bytes = slice_of(NULL, 0);
    field->number = at[1];
    if (type == WIRE_FIXED64) {
        memcpy(&field->number, at + 1, sizeof(field->number));
        field->number = le64toh(field->number);
    }
}

/* The same, and notes those that are among `wants`. */
static inline const uint8_t *note_fields(struct ottl_record *record, const uint8_t *at,
                                         const uint8_t *far, uint32_t stops, uint32_t wants)
{
    size_t size;
    for (; at < far && (stops >> (at[0] >> 3) & 1) == 0; at += size) {
        if ((size = plain_field_size(at)) == 0)
            break;
        if ((wants >> (at[0] >> 3) & 1) != 0)
            note_plain_field(record, at, size);
    }
    return at;
}

/* Attributes lie there. */
static inline void extend_attributes(struct ottl_record *record, const uint8_t *begin,
                                     const uint8_t *end)
{
    if (record->attributes_end == 0)
        record->attributes_begin = (uint32_t)(begin - record->bytes.data);
    record->attributes_end = (uint32_t)(end - record->bytes.data);
}

/* A field of any form. Returns its end; NULL: memory is refused. */
static __attribute__((noinline)) const uint8_t *scan_field(struct ottl_record *record,
                                                           const uint8_t *at, const uint8_t *end,
                                                           enum wanted wanted)
{
    struct wire_reader reader = wire_reader_of(slice_of(at, (size_t)(end - at)));
    struct wire_field field;
    struct ottl_entry entry;
    bool is_read = wire_next_field(&reader, &field);
    assert(is_read); /* the batch was checked */
    if (field.number != record->attributes_field) {
        note_field(record, &field);
        return reader.at;
    }
    extend_attributes(record, at, reader.at);
    if (wanted == WANT_NONE || field.type != WIRE_BYTES)
        return reader.at;
    ottl_entry_read(&entry, field.whole, field.bytes);
    return note_attribute(record, &entry, wanted) ? reader.at : NULL;
}

/* One pass over the message. What statements do not name is stepped over with as little work as can
 * be. */
static inline __attribute__((always_inline)) bool scan(struct ottl_record *record,
                                                       enum wanted wanted)
{
    const uint8_t *at = record->bytes.data;
    const uint8_t *const end = at + record->bytes.size;
    /* Before it no field in the usual form ends where nothing can be read. */
    const uint8_t *const far = record->behind >= FAR ? end : end - at > FAR ? end - FAR : at;
    const uint32_t number = record->attributes_field;
    /* Neither 0 nor what is too large for a tag of one byte is a field in the usual form. */
    const uint32_t stops = 1u << number | 1u | UINT32_MAX << SHORT_TAGS;
    const uint32_t wants = record->keys->fields & ~stops;
    assert(record->bytes.size <= UINT32_MAX);
    record->attributes_begin = record->attributes_end = 0;
    for (;;) {
        at = wants == 0 ? step_over(at, far, stops) : note_fields(record, at, far, stops, wants);
        if (at >= end)
            break;
        if (at[0] == (uint8_t)wire_tag(number, WIRE_BYTES)) {
            const uint8_t *const from = at;
            at = scan_attributes(record, at, far, wanted);
            if (at == NULL)
                return false;
            if (at != from) {
                extend_attributes(record, from, at);
                continue;
            }
        }
        at = scan_field(record, at, end, wanted);
        if (at == NULL)
            return false;
    }
    assert(at == end); /* the batch was checked */
    record->is_scanned = true;
    return true;
}

/* Finds the fields and reads all attributes. */
static bool scan_all(struct ottl_record *record)
{
    enum { LIKELY_MAX = 64, MORE = 16 };
    record->attributes.count = 0;
    record->has_duplicates = false;
    free_slots(record);
    if (!ottl_map_reserve(&record->attributes, record->likely) || !scan(record, WANT_ALL))
        return false;
    record->likely =
        record->attributes.count < LIKELY_MAX ? record->attributes.count + MORE : LIKELY_MAX + MORE;
    record->loaded = record->indexed = record->attributes.count;
    record->indexed_moves = record->attributes.moves;
    record->has_attributes = record->has_slots = true;
    return true;
}

bool ottl_record_scan(struct ottl_record *record)
{
    record->attributes.count = 0; /* of an attempt that was refused memory */
    record->has_duplicates = false;
    if (record->expects_all && record->bytes.size <= ALL_BYTES_MAX)
        return scan_all(record);
    if (record->keys->count == 0)
        return scan(record, WANT_NONE);
    record->attributes.entries = record->kept;
    record->attributes.capacity = record->kept_count;
    free_slots(record);
    record->has_slots = scan(record, WANT_SLOTS);
    record->loaded = record->attributes.count;
    return record->has_slots;
}

void ottl_record_index(struct ottl_record *record)
{
    struct ottl_map *map = &record->attributes;
    if (record->indexed_moves != map->moves) {
        free_slots(record);
        ottl_memory_work(&record->memory, map->count);
        record->indexed = 0;
        record->indexed_moves = map->moves;
        record->has_duplicates = false;
    }
    for (uint32_t i = record->indexed; i < map->count; i++) {
        struct ottl_entry *entry = &map->entries[i];
        entry->slot = 0;
        int32_t slot = ottl_keys_find(record->keys, entry->key);
        if (slot < 0)
            continue;
        entry->slot = (uint32_t)slot + 1;
        if (is_free(record, slot))
            take_slot(record, (uint32_t)slot, i);
        else
            record->has_duplicates = true;
    }
    record->indexed = map->count;
}

/* Carries what has become of the attributes with slots over to all attributes: those of the message
 * in its order, then those that are new. */
static bool carry_over(struct ottl_record *record, const struct ottl_entry *slotted,
                       uint32_t slotted_loaded, uint32_t slotted_count)
{
    struct ottl_map *map = &record->attributes;
    uint32_t at = 0;
    for (uint32_t i = 0; i < slotted_loaded; i++) {
        while (map->entries[at].whole.data != slotted[i].whole.data)
            at++;
        assert(at < map->count);
        map->entries[at] = slotted[i];
    }
    for (uint32_t i = slotted_loaded; i < slotted_count; i++)
        if (!ottl_map_add_read(map, &slotted[i]))
            return false;
    return true;
}

bool ottl_record_load(struct ottl_record *record)
{
    struct ottl_map *map = &record->attributes;
    record->asks_all = true;
    if (record->has_attributes)
        return true;
    if (!record->is_scanned)
        return scan_all(record);
    struct slice region = slice_of(record->bytes.data + record->attributes_begin,
                                   record->attributes_end - record->attributes_begin);
    const struct ottl_entry *slotted = map->entries;
    const uint32_t slotted_loaded = record->loaded;
    const uint32_t slotted_count = map->count;
    map->entries = NULL;
    map->count = map->capacity = 0;
    free_slots(record);
    if (region.size > 0 && !ottl_map_load(map, region, record->attributes_field))
        return false;
    record->loaded = map->count;
    if (!carry_over(record, slotted, slotted_loaded, slotted_count))
        return false;
    record->indexed = 0;
    record->indexed_moves = map->moves;
    if (record->keys->count > 0)
        ottl_record_index(record);
    record->has_attributes = record->has_slots = true;
    return true;
}

bool ottl_record_load_slots(struct ottl_record *record)
{
    if (record->has_slots)
        return true;
    return record->is_scanned ? ottl_record_load(record) : ottl_record_scan(record);
}

bool ottl_record_find_slots(struct ottl_record *record)
{
    if (!ottl_record_load_slots(record))
        return false;
    if (!ottl_record_knows_slots(record))
        ottl_record_index(record);
    return true;
}

bool ottl_record_load_body(struct ottl_record *record)
{
    const unsigned field = record->type->body;
    struct ottl_value value = ottl_bytes_of(OTTL_ENCODED, slice_of(NULL, 0));
    if (record->has_body)
        return true;
    if (!record->is_scanned && !ottl_record_scan(record))
        return false;
    if ((record->present >> field & 1) != 0)
        value = ottl_bytes_of(OTTL_ENCODED, record->fields[field].bytes);
    if (!ottl_list_append(&record->body, &value))
        return false;
    record->body.base.has_changed = false;
    record->has_body = true;
    return true;
}

struct ottl_entry *ottl_record_append(struct ottl_record *record, uint32_t slot)
{
    struct ottl_map *map = &record->attributes;
    assert(record->has_slots && is_free(record, (int32_t)slot));
    struct ottl_entry *entry = ottl_map_append(map, record->keys->keys[slot]);
    if (entry == NULL)
        return NULL;
    entry->slot = slot + 1;
    take_slot(record, slot, map->count - 1);
    record->indexed = map->count;
    return entry;
}

static inline void mark_as_set(struct ottl_record *record, struct ottl_entry *entry)
{
    entry->ready = NULL;
    entry->is_new = true;
    record->attributes.base.has_changed = true; /* it is part of nothing */
}

/* Makes the last entry the one of a slot. */
static inline void fill_slot(struct ottl_record *record, struct ottl_entry *entry, uint32_t slot)
{
    const uint32_t count = record->attributes.count;
    entry->key = record->keys->keys[slot];
    entry->whole = slice_of(NULL, 0);
    entry->slot = slot + 1;
    take_slot(record, slot, count - 1);
    record->indexed = count;
}

/* Of a record that is not scanned yet, or that has no room. */
static __attribute__((noinline)) struct ottl_entry *set_first(struct ottl_record *record,
                                                              uint32_t slot)
{
    if (!record->has_slots && !ottl_record_load_slots(record))
        return NULL;
    struct ottl_entry *entry = ottl_record_slot(record, slot);
    if (entry == NULL) {
        if ((entry = ottl_map_room(&record->attributes)) == NULL)
            return NULL;
        fill_slot(record, entry, slot);
    }
    mark_as_set(record, entry);
    return entry;
}

struct ottl_entry *ottl_record_set(struct ottl_record *record, uint32_t slot)
{
    struct ottl_map *map = &record->attributes;
    const struct ottl_slot *taken = &record->slots[slot];
    struct ottl_entry *entry;
    if (!record->has_slots || record->has_attributes || map->count == map->capacity)
        return set_first(record, slot);
    if (taken->turn == record->turn) {
        entry = &map->entries[taken->place];
    } else {
        entry = &map->entries[map->count++];
        fill_slot(record, entry, slot);
    }
    mark_as_set(record, entry);
    return entry;
}

/* Takes an entry away while only attributes with slots are known: the last attribute, which takes
 * its place, is one that statements have made. */
static void replace_by_last(struct ottl_record *record, struct ottl_entry *entry)
{
    struct ottl_map *map = &record->attributes;
    struct ottl_entry *last = &map->entries[--map->count];
    free_slot(record, entry->slot - 1);
    if (last != entry) {
        const struct slice whole = entry->whole;
        *entry = *last;
        entry->whole = whole; /* in the message, too */
        take_slot(record, entry->slot - 1, (uint32_t)(entry - map->entries));
    }
    record->indexed = map->count;
    map->base.has_changed = true;
}

/* Notes the next entry of a slot whose first was removed from `place`. */
static void find_next(struct ottl_record *record, uint32_t slot, uint32_t place)
{
    const struct ottl_map *map = &record->attributes;
    const uint32_t from = place;
    while (place < map->count && map->entries[place].slot != slot + 1)
        place++;
    if (place < map->count)
        take_slot(record, slot, place);
    ottl_memory_work(&record->memory, place - from);
}

bool ottl_record_remove_slot(struct ottl_record *record, uint32_t slot)
{
    struct ottl_map *map = &record->attributes;
    if (!record->has_slots && !ottl_record_load_slots(record))
        return false;
    struct ottl_entry *entry = ottl_record_slot(record, slot);
    if (entry == NULL)
        return true;
    if (!record->has_attributes && !record->has_duplicates && map->count > record->loaded) {
        replace_by_last(record, entry);
        return true;
    }
    if (!ottl_record_load(record))
        return false;
    entry = ottl_record_slot(record, slot);
    const uint32_t place = (uint32_t)(entry - map->entries);
    ottl_map_remove(map, entry);
    free_slot(record, slot);
    const uint32_t moved = place < map->count ? map->entries[place].slot : 0;
    /* Of a key that comes twice, what has moved is the first only if none stands before it. */
    if (moved > 0 &&
        (is_free(record, (int32_t)moved - 1) || record->slots[moved - 1].place > place))
        take_slot(record, moved - 1, place);
    if (record->has_duplicates && is_free(record, (int32_t)slot))
        find_next(record, slot, place);
    record->indexed = map->count;
    record->indexed_moves = map->moves;
    return true;
}

/* A field about to be set: one that is absent, but was there, keeps its place. */
static struct ottl_field *field_to_set(struct ottl_record *record, unsigned field, unsigned wire)
{
    struct ottl_field *found = &record->fields[field];
    assert(record->is_scanned && field < OTTL_RECORD_FIELDS);
    if ((record->present >> field & 1) == 0) {
        bool has_place = (record->changed >> field & 1) != 0;
        *found = (struct ottl_field){.wire = (uint8_t)wire,
                                     .whole = has_place ? found->whole : slice_of(NULL, 0)};
    }
    return found;
}

void ottl_record_set_number(struct ottl_record *record, unsigned field, unsigned wire,
                            uint64_t number)
{
    struct ottl_field *found = field_to_set(record, field, wire);
    if (found->number == number)
        return;
    found->number = number;
    record->present |= 1u << field;
    record->changed |= 1u << field;
    record->generation++;
}

void ottl_record_set_explicit(struct ottl_record *record, unsigned field, unsigned wire,
                              uint64_t number)
{
    bool is_present = (record->present >> field & 1) != 0;
    struct ottl_field *found = field_to_set(record, field, wire);
    if (is_present && found->number == number)
        return;
    found->number = number;
    record->present |= 1u << field;
    record->changed |= 1u << field;
    record->explicit |= 1u << field;
    record->generation++;
}

void ottl_record_remove(struct ottl_record *record, unsigned field)
{
    struct ottl_field *found = &record->fields[field];
    if ((record->present >> field & 1) == 0)
        return;
    found->number = 0;
    found->bytes = slice_of(NULL, 0);
    record->explicit &= ~(1u << field);
    record->present &= ~(1u << field);
    record->changed |= 1u << field;
    record->generation++;
}

bool ottl_record_set_bytes(struct ottl_record *record, unsigned field, struct slice bytes)
{
    struct ottl_field *found = field_to_set(record, field, WIRE_BYTES);
    const bool is_one = found->wire == WIRE_BYTES && (record->repeated >> field & 1) == 0;
    if (is_one && slice_equal(found->bytes, bytes))
        return true;
    found->wire = WIRE_BYTES; /* of a list that was not packed */
    if (record->memory.copies_text && bytes.size > 0) {
        uint8_t *room = ottl_memory_room(&record->memory, bytes.size);
        if (room == NULL)
            return false;
        memcpy(room, bytes.data, bytes.size);
        bytes.data = room;
    }
    found->bytes = bytes;
    record->present |= 1u << field;
    record->changed |= 1u << field;
    record->generation++;
    return true;
}
