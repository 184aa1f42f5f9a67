/* SPDX-License-Identifier: Apache-2.0 */
/* Linear probing; a removal closes its gap (Knuth, volume 3, algorithm 6.4 R). */
#include "src/base/hash_table.h"

#include <assert.h>

#include "src/base/mem.h"

enum { CAPACITY_MIN = 16 };

void hash_table_clear(struct hash_table *table)
{
    mem_free(table->entries);
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

/* At most three quarters are in use. */
static bool grow(struct hash_table *table)
{
    struct hash_table old = *table;
    if (4 * (old.count + 1) <= 3 * old.capacity)
        return true;
    size_t capacity = old.capacity > 0 ? 2 * old.capacity : CAPACITY_MIN;
    struct hash_entry *entries = mem_try_zalloc(capacity * sizeof(*entries));
    if (entries == NULL)
        return false;
    table->entries = entries;
    table->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.entries[i].object != NULL)
            put(table, old.entries[i].hash, old.entries[i].object);
    mem_free(old.entries);
    return true;
}

bool hash_table_add(struct hash_table *table, uint64_t hash, void *object)
{
    assert(object != NULL);
    if (!grow(table))
        return false;
    put(table, hash, object);
    table->count++;
    return true;
}

void hash_table_remove(struct hash_table *table, uint64_t hash, const void *object)
{
    size_t mask = table->capacity - 1;
    size_t gap = hash & mask;
    assert(table->count > 0);
    while (table->entries[gap].object != object) {
        assert(table->entries[gap].object != NULL);
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

void *hash_table_next(const struct hash_table *table, uint64_t hash, size_t *at)
{
    size_t mask = table->capacity - 1;
    if (table->capacity == 0)
        return NULL;
    for (;;) {
        const struct hash_entry *entry = &table->entries[(hash + (*at)++) & mask];
        if (entry->object == NULL || entry->hash == hash)
            return entry->object;
    }
}

void *hash_table_each(const struct hash_table *table, size_t *at)
{
    while (*at < table->capacity) {
        void *object = table->entries[(*at)++].object;
        if (object != NULL)
            return object;
    }
    return NULL;
}
