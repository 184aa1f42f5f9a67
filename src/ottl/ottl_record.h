/* SPDX-License-Identifier: Apache-2.0 */
/* The message of one context while statements run: where its fields are, what they have become, and
 * its attributes as a map. Nothing is decoded before it is asked for. One owner, one thread at a
 * time; reused from message to message. */
#pragma once

#include <assert.h>

#include "src/ottl/ottl_context.h"
#include "src/ottl/ottl_map.h"

struct ottl_edits;

/* Field numbers, and the schema URL beside the message. */
enum { OTTL_RECORD_FIELDS = 24, OTTL_SCHEMA_URL = 0 };

struct ottl_field {
    struct slice whole; /* in the message; no data: absent */
    struct slice bytes; /* its content now */
    uint64_t number;    /* the same of varints and fixed ones */
    uint8_t wire;       /* enum wire_type */
};

/* A key's mark is made of its size and its last byte (of an empty one: 0). */
enum { OTTL_KEY_MARKS = 256, OTTL_KEYS_OF_MARK = 255 };
static inline uint8_t ottl_key_mark(size_t size, uint8_t last)
{
    return (uint8_t)(size * 37 + last);
}

/* What one plan wants of a context's messages: fields, and attributes by slot, with a hash table
 * over their keys. Constant. */
struct ottl_keys {
    struct slice *keys;
    uint32_t count;
    uint32_t mask;   /* of the table */
    int32_t *table;  /* slot or -1 */
    uint32_t fields; /* that statements name, by number */
    uint64_t sizes;  /* of keys, modulo 64: most attributes have none of them */
    /* By mark: 0, no key has it, as most attributes; slot + 1 of the only one; or KEYS_OF_MARK,
     * which only the table tells apart. */
    uint8_t marks[OTTL_KEY_MARKS];
};

/* The entry of a key that has a slot. It is free unless it was taken in the record's turn, so that
 * all can be freed at once. */
struct ottl_slot {
    uint32_t turn;
    uint32_t place;
};

struct ottl_record {
    const struct ottl_context_type *type;
    const struct ottl_keys *keys; /* of the attributes that statements name */
    struct ottl_memory memory;
    struct ottl_slot *slots; /* as many as there are keys */
    uint32_t turn;           /* never 0 */
    uint32_t kept_count;
    struct ottl_entry *kept; /* room for the entries of attributes with slots, unless many come */
    uint64_t generation;     /* counts messages and changes, for what is remembered of a record */
    struct slice bytes;      /* of the message, in one piece */
    size_t behind;           /* so many bytes behind it can be read, at least */
    uint64_t at;             /* in the batch */
    uint32_t number;         /* of the field around it */
    uint32_t likely;         /* entries: as many as the message before had, and some */
    /* The message around a Resource or scope, which has its schema URL. */
    uint64_t holder_at;       /* its content */
    uint64_t schema_at;       /* the schema URL's field, if it has one */
    bool asks_all;            /* statements have asked for all attributes … */
    bool expects_all;         /* … of the message before, and may of this one */
    bool has_body;            /* the body's item is there */
    uint8_t attributes_field; /* the field that repeats KeyValues; 0: none */
    /* Forgotten from message to message; side by side, since that takes fewer stores. */
    uint8_t kind;        /* METRIC, DATA_POINT: the metric's data (enum ottl_metric_data) */
    bool exists;         /* Resources and scopes may be missing */
    bool is_joined;      /* it came in several fields, and `at` means nothing */
    bool is_scanned;     /* its fields are known */
    bool has_slots;      /* the map has the attributes that have slots, or all */
    bool has_attributes; /* it has all */
    bool has_duplicates; /* the index has met a key again */
    uint32_t present;    /* by field number */
    uint32_t repeated;   /* fields that come twice, of which the last counts */
    uint32_t changed;
    uint32_t explicit;         /* of those: written even if zero, since presence means something */
    uint32_t loaded;           /* how many attributes were in the message */
    uint32_t attributes_begin; /* of the first and behind the last, in the message */
    uint32_t attributes_end;
    uint32_t indexed;
    uint32_t indexed_moves;
    struct ottl_map attributes;
    struct ottl_list body; /* its one item is the field that is an AnyValue */
    struct ottl_field fields[OTTL_RECORD_FIELDS];
};

void ottl_record_init(struct ottl_record *record, const struct ottl_context_type *type,
                      const struct ottl_keys *keys, struct budget *budget);
void ottl_record_fini(struct ottl_record *record);
/* Forgets the last message, but not what statements have made; there is none until _borrow. */
static inline void ottl_record_reopen(struct ottl_record *record)
{
    struct ottl_map *map = &record->attributes;
    record->bytes = slice_of("", 0); /* never NULL, to which nothing may be added */
    record->attributes_field = record->type->attributes;
    record->expects_all = record->asks_all;
    record->asks_all = false;
    record->generation++;
    record->kind = 0;
    record->exists = record->is_joined = record->is_scanned = false;
    record->has_slots = record->has_attributes = record->has_duplicates = false;
    record->present = record->repeated = record->changed = record->explicit = 0;
    record->loaded = record->attributes_begin = record->attributes_end = 0;
    record->indexed = record->indexed_moves = 0;
    map->base.has_changed = false;
    map->entries = NULL;
    map->count = map->capacity = 0;
    map->index = NULL;
    map->indexed = map->indexed_moves = map->moves = 0;
    if (!record->has_body)
        return;
    record->has_body = false;
    record->body.base.has_changed = false;
    record->body.items = NULL;
    record->body.count = record->body.capacity = 0;
}

/* The same, and forgets what statements have made. */
static inline void ottl_record_open(struct ottl_record *record)
{
    ottl_memory_reset(&record->memory);
    ottl_record_reopen(record);
}

/* The content of the next one, in one piece, and its place in the batch. behind: so many bytes
 * behind it can be read, too, which saves looking for its end all the time. */
static inline void ottl_record_borrow(struct ottl_record *record, struct slice bytes, size_t behind,
                                      uint64_t at)
{
    record->bytes = bytes;
    record->behind = behind;
    record->at = at;
    record->exists = true;
}

/* Finds the fields. False: memory is refused. */
bool ottl_record_scan(struct ottl_record *record) __attribute__((warn_unused_result));
/* Reads all attributes into the map; keeps what has changed of those with slots. */
bool ottl_record_load(struct ottl_record *record) __attribute__((warn_unused_result));
/* Finds the fields, and reads the attributes that have slots. */
bool ottl_record_load_slots(struct ottl_record *record) __attribute__((warn_unused_result));
/* Notes the entries that the index does not know yet, the first of each key. */
void ottl_record_index(struct ottl_record *record);
/* The same, and makes them known to the index. */
bool ottl_record_find_slots(struct ottl_record *record) __attribute__((warn_unused_result));
/* Whether that has been done, and nothing has changed since. */
static inline bool ottl_record_knows_slots(const struct ottl_record *record)
{
    return record->has_slots &&
           (!record->has_attributes || (record->indexed == record->attributes.count &&
                                        record->indexed_moves == record->attributes.moves));
}
/* The entry of a key that has a slot, or NULL; after ottl_record_load_slots or _load. */
static inline struct ottl_entry *ottl_record_slot(struct ottl_record *record, uint32_t slot)
{
    struct ottl_map *map = &record->attributes;
    const struct ottl_slot *taken = &record->slots[slot];
    assert(record->has_slots);
    if (!ottl_record_knows_slots(record))
        ottl_record_index(record);
    return taken->turn == record->turn ? &map->entries[taken->place] : NULL;
}
/* Appends an attribute whose slot is free, with nil. NULL: no memory. After ottl_record_load_slots.
 */
struct ottl_entry *ottl_record_append(struct ottl_record *record, uint32_t slot);
/* The entry of an attribute that has a slot, for its new value; made if it is absent. Counts as
 * changed. NULL: no memory. */
struct ottl_entry *ottl_record_set(struct ottl_record *record, uint32_t slot)
    __attribute__((warn_unused_result));
/* Takes an attribute that has a slot away, as ottl_map_remove does. False: no memory. */
bool ottl_record_remove_slot(struct ottl_record *record, uint32_t slot)
    __attribute__((warn_unused_result));
/* Puts the field that is an AnyValue into the record's body. */
bool ottl_record_load_body(struct ottl_record *record) __attribute__((warn_unused_result));
/* Sets a scalar field: zero and empty remove it, as on the wire. */
void ottl_record_set_number(struct ottl_record *record, unsigned field, unsigned wire,
                            uint64_t number);
/* The same; zero is written, too. */
void ottl_record_set_explicit(struct ottl_record *record, unsigned field, unsigned wire,
                              uint64_t number);
/* Takes a field away. */
void ottl_record_remove(struct ottl_record *record, unsigned field);
/* The bytes are copied if the record's memory copies_text. */
bool ottl_record_set_bytes(struct ottl_record *record, unsigned field, struct slice bytes)
    __attribute__((warn_unused_result));
static inline bool ottl_record_has_changed(const struct ottl_record *record)
{
    return record->changed != 0 || record->attributes.base.has_changed ||
           record->body.base.has_changed;
}
/* Whether the message itself has, not the schema URL alone. */
bool ottl_record_is_rewritten(const struct ottl_record *record);
/* Notes the edits of what has changed; the caller adds the messages around them. A joined message
 * is written anew, and the caller removes its fields. False: memory is refused. */
bool ottl_record_finish(struct ottl_record *record, struct ottl_edits *edits);

/* Makes the table and the marks of the keys, once. */
void ottl_keys_finish(struct ottl_keys *keys);
/* The slot, or -1. */
int32_t ottl_keys_find(const struct ottl_keys *keys, struct slice key);
