/* SPDX-License-Identifier: Apache-2.0 */
/* Linear probing; a removal closes its gap (Knuth, volume 3, algorithm 6.4 R). */
#include "src/base/hash_table.h"

#include <assert.h>

#include "src/base/mem.h"

/* Each object that is added moves those of so many places: all have moved long before the table
 * doubles again, which takes as many additions as three quarters of the old places at the least. */
enum { CAPACITY_MIN = 16, MOVED_PLACES = 8 };

/* An entry of old whose object has moved, or was removed: probing goes on behind it. */
static char gone;

void hash_table_clear(struct hash_table *table)
{
    mem_free(table->entries);
    mem_free(table->old);
    *table = (struct hash_table){0};
}

static void put(struct hash_table *table, uint64_t hash, void *object)
{
    size_t mask = table->capacity - 1;
    size_t place = hash & mask;
    while (table->entries[place].object != NULL)
        place = (place + 1) & mask;
    table->entries[place] = (struct hash_entry){.hash = hash, .object = object};
}

static void move(struct hash_table *table, size_t places)
{
    const size_t end = table->capacity / 2;
    if (table->old == NULL)
        return;
    for (; places > 0 && table->moved < end; places--) {
        struct hash_entry *entry = &table->old[table->moved++];
        if (entry->object == NULL || entry->object == &gone)
            continue;
        put(table, entry->hash, entry->object);
        entry->object = &gone;
    }
    if (table->moved < end)
        return;
    mem_free(table->old);
    table->old = NULL;
}

bool hash_table_settle(struct hash_table *table, size_t places)
{
    move(table, places);
    return table->old == NULL;
}

/* At most three quarters are in use. */
static size_t capacity_for_next(const struct hash_table *table)
{
    if (4 * (table->count + 1) <= 3 * table->capacity)
        return table->capacity;
    return table->capacity > 0 ? 2 * table->capacity : CAPACITY_MIN;
}

size_t hash_table_growth(const struct hash_table *table)
{
    const size_t capacity = capacity_for_next(table);
    return capacity > table->capacity ? capacity * sizeof(struct hash_entry) : 0;
}

static bool grow(struct hash_table *table)
{
    const size_t bytes = hash_table_growth(table);
    if (bytes == 0)
        return true;
    struct hash_entry *entries = mem_try_zalloc(bytes);
    if (entries == NULL)
        return false;
    assert(table->old == NULL);
    table->old = table->entries;
    table->moved = 0;
    table->entries = entries;
    table->capacity = bytes / sizeof(*entries);
    return true;
}

bool hash_table_add(struct hash_table *table, uint64_t hash, void *object)
{
    assert(object != NULL);
    if (!grow(table))
        return false;
    move(table, MOVED_PLACES);
    put(table, hash, object);
    table->count++;
    return true;
}

/* The object has not moved yet. */
static void remove_old(struct hash_table *table, uint64_t hash, const void *object)
{
    const size_t mask = table->capacity / 2 - 1;
    size_t place = hash & mask;
    assert(table->old != NULL);
    while (table->old[place].object != object) {
        assert(table->old[place].object != NULL);
        place = (place + 1) & mask;
    }
    table->old[place].object = &gone;
    table->count--;
}

void hash_table_remove(struct hash_table *table, uint64_t hash, const void *object)
{
    size_t mask = table->capacity - 1;
    size_t gap = hash & mask;
    assert(table->count > 0);
    while (table->entries[gap].object != object) {
        if (table->entries[gap].object == NULL) {
            remove_old(table, hash, object);
            return;
        }
        gap = (gap + 1) & mask;
    }
    for (size_t place = (gap + 1) & mask; table->entries[place].object != NULL;
         place = (place + 1) & mask) {
        size_t wanted = table->entries[place].hash & mask;
        /* It moves into the gap unless its wanted place lies behind that. */
        if (((place - wanted) & mask) < ((place - gap) & mask))
            continue;
        table->entries[gap] = table->entries[place];
        gap = place;
    }
    table->entries[gap].object = NULL;
    table->count--;
}

/* Of *at, when it counts probes of old. */
#define AT_OLD (SIZE_MAX / 2 + 1)

static void *next_old(const struct hash_table *table, uint64_t hash, size_t *at)
{
    const size_t mask = table->capacity / 2 - 1;
    if (table->old == NULL)
        return NULL;
    *at |= AT_OLD;
    for (;;) {
        const struct hash_entry *entry = &table->old[(hash + ((*at)++ & ~AT_OLD)) & mask];
        if (entry->object == NULL || (entry->hash == hash && entry->object != &gone))
            return entry->object;
    }
}

void *hash_table_next(const struct hash_table *table, uint64_t hash, size_t *at)
{
    size_t mask = table->capacity - 1;
    if (table->capacity == 0)
        return NULL;
    while ((*at & AT_OLD) == 0) {
        const struct hash_entry *entry = &table->entries[(hash + (*at)++) & mask];
        if (entry->object == NULL)
            *at = AT_OLD;
        else if (entry->hash == hash)
            return entry->object;
    }
    return next_old(table, hash, at);
}

void *hash_table_each(const struct hash_table *table, size_t *at)
{
    while (*at < table->capacity) {
        void *object = table->entries[(*at)++].object;
        if (object != NULL)
            return object;
    }
    while (table->old != NULL && *at < table->capacity + table->capacity / 2) {
        void *object = table->old[(*at)++ - table->capacity].object;
        if (object != NULL && object != &gone)
            return object;
    }
    return NULL;
}
