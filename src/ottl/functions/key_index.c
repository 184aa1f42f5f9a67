/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing, at most half full. Runs on the processor's thread. */
#include "src/ottl/functions/key_index.h"

#include "src/base/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FEW = 12, PLACES_FIRST = 64 };

void key_index_init(struct key_index *index, struct ottl_call *call, struct ottl_map *map)
{
    *index = (struct key_index){.call = call, .map = map};
}

static uint64_t hash_of(const struct key_index *index, struct slice key)
{
    return XXH3_64bits_withSeed(key.size > 0 ? (const void *)key.data : "", key.size, index->seed);
}

static void take_place(struct key_index *index, uint64_t hash, uint32_t number)
{
    uint32_t mask = index->places_count - 1;
    uint32_t at = (uint32_t)hash & mask;
    while (index->places[at].number != 0)
        at = (at + 1) & mask;
    index->places[at] = (struct key_place){.hash = hash, .number = number + 1};
}

/* Room for the entries below count. */
static bool grow(struct key_index *index, uint32_t count)
{
    uint32_t places_count = index->places_count > 0 ? 2 * index->places_count : PLACES_FIRST;
    const struct key_place *old = index->places;
    uint32_t old_count = index->places_count;
    struct key_place *places = ottl_alloc(index->call, places_count * sizeof(*places));
    if (places == NULL)
        return false;
    memset(places, 0, places_count * sizeof(*places));
    index->places = places;
    index->places_count = places_count;
    if (old_count == 0) {
        index->seed = (uint64_t)(random_uniform() * 0x1p53);
        for (uint32_t i = 0; i < count; i++)
            take_place(index, hash_of(index, index->map->entries[i].key), i);
    }
    for (uint32_t i = 0; i < old_count; i++)
        if (old[i].number != 0)
            take_place(index, old[i].hash, old[i].number - 1);
    return true;
}

struct ottl_entry *key_index_find(const struct key_index *index, struct slice key, uint32_t count)
{
    struct ottl_entry *entries = index->map->entries;
    if (index->places_count == 0) {
        for (uint32_t i = 0; i < count; i++)
            if (slice_equal(entries[i].key, key))
                return &entries[i];
        return NULL;
    }
    uint64_t hash = hash_of(index, key);
    uint32_t mask = index->places_count - 1;
    for (uint32_t at = (uint32_t)hash & mask; index->places[at].number != 0; at = (at + 1) & mask) {
        struct ottl_entry *entry = &entries[index->places[at].number - 1];
        if (index->places[at].hash == hash && slice_equal(entry->key, key))
            return entry;
    }
    return NULL;
}

bool key_index_note(struct key_index *index, uint32_t number)
{
    if (index->places_count == 0 && number < FEW)
        return true;
    if (index->places_count < 2 * (number + 1)) {
        bool was_empty = index->places_count == 0;
        if (!grow(index, number + 1))
            return false;
        if (was_empty)
            return true;
    }
    take_place(index, hash_of(index, index->map->entries[number].key), number);
    return true;
}

struct ottl_entry *key_index_put(struct key_index *index, struct slice key)
{
    struct ottl_entry *entry = key_index_find(index, key, index->map->count);
    if (entry != NULL)
        return entry;
    uint32_t number = index->map->count;
    if (ottl_map_append(index->map, key) == NULL) {
        ottl_no_memory(index->call);
        return NULL;
    }
    return key_index_note(index, number) ? &index->map->entries[number] : NULL;
}
