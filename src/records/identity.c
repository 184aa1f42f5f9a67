/* SPDX-License-Identifier: Apache-2.0 */
/* A type and a length precede what is not of fixed size, so that no two different values have the
 * same bytes. Runs on the owner's thread. */
#include "src/records/identity.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "src/otlp/attributes/attribute_list.h"
#include "src/otlp/otlp_limits.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { BLOCK_FIRST = 1024, BLOCK_KEPT_MAX = 64 * 1024, SORTED_BYTES_MAX = INT32_MAX };

/* An entry of a map. */
struct entry {
    struct slice key;
    struct slice value;
    size_t index;
};

void identity_init(struct identity *identity, struct budget *budget)
{
    *identity = (struct identity){.budget = budget};
    arena_init_charged(&identity->arena, SORTED_BYTES_MAX, budget);
}

void identity_fini(struct identity *identity)
{
    scratch_fini(&identity->block, identity->budget);
    arena_clear(&identity->arena);
}

static void *allocate(struct identity *identity, size_t size)
{
    struct arena *arena = &identity->arena;
    if (identity->may_exceed && size <= SORTED_BYTES_MAX - arena->used_bytes)
        return arena_alloc(arena, size);
    return arena_try_alloc(arena, size);
}

enum { ARRAY = 5, KEY_VALUES = 6 }; /* of AnyValue */

/* Elements of lists and maps in an AnyValue. Recursion is bounded: otlp_check refused what is
 * deeper. */
static uint64_t elements_in(struct slice value)
{
    enum { ELEMENTS = 1, VALUE = 2 };
    struct wire_reader reader = wire_reader_of(value);
    struct wire_field field;
    struct wire_field element;
    struct wire_field part;
    uint64_t count = 0;
    while (wire_next_field(&reader, &field)) {
        if (field.type != WIRE_BYTES || (field.number != ARRAY && field.number != KEY_VALUES))
            continue;
        struct wire_reader elements = wire_reader_of(field.bytes);
        while (wire_next_field(&elements, &element)) {
            if (element.number != ELEMENTS)
                continue;
            count++;
            if (field.number == ARRAY) {
                count += elements_in(element.bytes);
                continue;
            }
            struct wire_reader parts = wire_reader_of(element.bytes);
            while (wire_next_field(&parts, &part))
                if (part.number == VALUE && part.type == WIRE_BYTES)
                    count += elements_in(part.bytes);
        }
    }
    return count;
}

uint64_t identity_needs(struct slice message, uint32_t number)
{
    enum {
        VALUE = 2,
        /* An item of the list and its copy while that grows; an entry to be sorted, and a third of
         * a chunk behind it; lengths and kinds of key and value. Blocks double. */
        ELEMENT_BYTES = 4 * sizeof(struct attribute) + 2 * sizeof(struct entry) + 4 * 32,
        BYTES_PART = 4, /* of their own: while the block grows there are two */
    };
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    struct wire_field part;
    uint64_t elements = 0;
    uint64_t bytes = 0;
    while (wire_next_field(&reader, &field)) {
        if (field.number != number || field.type != WIRE_BYTES)
            continue;
        elements++;
        bytes += field.bytes.size;
        struct wire_reader parts = wire_reader_of(field.bytes);
        while (wire_next_field(&parts, &part))
            if (part.number == VALUE && part.type == WIRE_BYTES)
                elements += elements_in(part.bytes);
    }
    return elements * ELEMENT_BYTES + BYTES_PART * bytes;
}

void identity_clear(struct identity *identity)
{
    identity->size = 0;
    identity->has_failed = false;
    arena_clear(&identity->arena);
    if (identity->block.bytes > BLOCK_KEPT_MAX)
        scratch_fini(&identity->block, identity->budget);
}

void identity_cut(struct identity *identity, size_t size)
{
    assert(size <= identity->size);
    identity->size = size;
}

struct slice identity_from(const struct identity *identity, size_t begin)
{
    assert(begin <= identity->size);
    return slice_of((const uint8_t *)identity->block.memory + begin, identity->size - begin);
}

struct identity_digest identity_digest(const struct identity *identity, size_t begin, uint64_t seed)
{
    struct slice bytes = identity_from(identity, begin);
    XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data, bytes.size, seed);
    return (struct identity_digest){{hash.low64, hash.high64}};
}

void identity_put_raw(struct identity *identity, const void *bytes, size_t size)
{
    size_t needed = identity->size + size;
    if (needed > identity->block.bytes) {
        size_t doubled = 2 * identity->block.bytes;
        size_t room = doubled > BLOCK_FIRST ? doubled : BLOCK_FIRST;
        room = needed > room ? needed : room;
        if ((identity->may_exceed
                 ? scratch_grow_beyond(&identity->block, identity->budget, room)
                 : scratch_grow(&identity->block, identity->budget, room)) == NULL) {
            identity->has_failed = true;
            return;
        }
    }
    if (size > 0)
        memcpy((uint8_t *)identity->block.memory + identity->size, bytes, size);
    identity->size += size;
}

void identity_put_number(struct identity *identity, uint64_t number)
{
    identity_put_raw(identity, &number, sizeof(number));
}

void identity_put_text(struct identity *identity, struct slice text)
{
    identity_put_number(identity, text.size);
    identity_put_raw(identity, text.data, text.size);
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;
    int order = slice_compare(left->key, right->key);
    return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

static void put_value(struct identity *identity, struct slice encoded, unsigned depth);

static void put_entries(struct identity *identity, struct entry *entries, size_t count,
                        unsigned depth)
{
    if (count > 1)
        qsort(entries, count, sizeof(entries[0]), compare_entries);
    identity_put_number(identity, count);
    for (size_t i = 0; i < count; i++) {
        identity_put_text(identity, entries[i].key);
        if (i == 0 || !slice_equal(entries[i].key, entries[i - 1].key))
            put_value(identity, entries[i].value, depth);
    }
}

static struct entry read_entry(struct slice key_value, size_t index)
{
    enum { KEY = 1, VALUE = 2 };
    struct entry entry = {.index = index};
    struct wire_reader reader = wire_reader_of(key_value);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == KEY)
            entry.key = field.bytes;
        if (field.number == VALUE)
            entry.value = field.bytes;
    }
    return entry;
}

/* A map's or list's. */
static void put_elements(struct identity *identity, struct slice container, bool is_map,
                         unsigned depth)
{
    enum { ELEMENTS = 1 };
    struct wire_reader reader = wire_reader_of(container);
    struct wire_field field;
    size_t count = 0;
    while (wire_next_field(&reader, &field))
        count += field.number == ELEMENTS;
    struct entry *entries = NULL;
    if (is_map && count > 0) {
        entries = allocate(identity, count * sizeof(entries[0]));
        if (entries == NULL) {
            identity->has_failed = true;
            return;
        }
    } else if (!is_map) {
        identity_put_number(identity, count);
    }
    reader = wire_reader_of(container);
    for (size_t i = 0; wire_next_field(&reader, &field);) {
        if (field.number != ELEMENTS)
            continue;
        if (is_map)
            entries[i] = read_entry(field.bytes, i);
        else
            put_value(identity, field.bytes, depth);
        i++;
    }
    if (is_map)
        put_entries(identity, entries, count, depth);
}

/* Recursion is bounded: otlp_check refused what is deeper. */
static void put_value(struct identity *identity, struct slice encoded, unsigned depth)
{
    struct value value = value_read(encoded);
    uint8_t type = (uint8_t)value.type;
    uint64_t bits = 0;
    assert(depth <= WIRE_DEPTH_MAX);
    identity_put_raw(identity, &type, 1);
    switch (value.type) {
    case VALUE_BOOL:
        type = value.boolean;
        identity_put_raw(identity, &type, 1);
        return;
    case VALUE_INT:
        identity_put_number(identity, (uint64_t)value.integer);
        return;
    case VALUE_DOUBLE:
        memcpy(&bits, &value.real, sizeof(bits));
        identity_put_number(identity, bits);
        return;
    case VALUE_STRING:
    case VALUE_BYTES:
        identity_put_text(identity, value.bytes);
        return;
    case VALUE_LIST:
    case VALUE_MAP:
        put_elements(identity, value.bytes, value.type == VALUE_MAP, depth + 1);
        return;
    case VALUE_EMPTY:
    default:
        return;
    }
}

void identity_put_value(struct identity *identity, struct slice encoded)
{
    put_value(identity, encoded, 0);
}

void identity_put_attributes(struct identity *identity, const struct attribute_list *list)
{
    struct entry *entries = NULL;
    size_t count = 0;
    if (list->count > 0)
        entries = allocate(identity, list->count * sizeof(entries[0]));
    if (list->count > 0 && entries == NULL) {
        identity->has_failed = true;
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct attribute *attribute = &list->items[i];
        if (!attribute->is_doomed)
            entries[count++] = (struct entry){attribute->key, attribute->value, i};
    }
    put_entries(identity, entries, count, 0);
    if (identity->arena.used_bytes > BLOCK_KEPT_MAX)
        arena_clear(&identity->arena);
}
