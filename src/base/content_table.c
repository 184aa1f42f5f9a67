/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing, at most half full. Runs on the owner's thread. */
#include "src/base/content_table.h"

#include <assert.h>

#include "src/base/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { PLACES_FIRST = 64 };

struct slot {
    uint32_t hash;
    uint32_t offset; /* of the content */
    uint32_t size;
    uint32_t index; /* 0: free */
};

void content_table_init(struct content_table *table)
{
    *table = (struct content_table){.count = 1};
    table->seed = (uint64_t)(random_uniform() * 0x1p53);
}

void content_table_fini(struct content_table *table, struct budget *budget)
{
    scratch_fini(&table->slots, budget);
    table->places = 0;
}

uint32_t content_table_find(const struct content_table *table, const void *bytes,
                            struct slice content, uint32_t *ret_hash)
{
    /* Not FNV: its collisions can be the same for every seed. */
    uint32_t hash = (uint32_t)XXH3_64bits_withSeed(content.data, content.size, table->seed);
    const struct slot *slots = table->slots.memory;
    uint32_t mask = table->places - 1;
    assert(content.size > 0);
    *ret_hash = hash;
    if (table->places == 0)
        return 0;
    for (uint32_t at = hash & mask; slots[at].index != 0; at = (at + 1) & mask) {
        struct slice known = slice_of((const uint8_t *)bytes + slots[at].offset, slots[at].size);
        if (slots[at].hash == hash && slice_equal(known, content))
            return slots[at].index;
    }
    return 0;
}

/* The first free slot for the hash. */
static struct slot *free_slot(struct slot *slots, uint32_t places, uint32_t hash)
{
    uint32_t at = hash & (places - 1);
    while (slots[at].index != 0)
        at = (at + 1) & (places - 1);
    return &slots[at];
}

uint32_t content_table_add(struct content_table *table, struct budget *budget, uint32_t hash,
                           size_t offset, size_t size)
{
    assert(table->count > 0 && size > 0);
    assert(offset + size <= UINT32_MAX);
    if (2 * table->count >= table->places) {
        uint32_t places = table->places > 0 ? 2 * table->places : PLACES_FIRST;
        struct scratch fresh = {.bytes = 0};
        struct slot *slots = scratch_room(&fresh, budget, places * sizeof(slots[0]));
        const struct slot *old = table->slots.memory;
        if (slots == NULL)
            return 0;
        for (uint32_t i = 0; i < table->places; i++)
            if (old[i].index != 0)
                *free_slot(slots, places, old[i].hash) = old[i];
        scratch_fini(&table->slots, budget);
        table->slots = fresh;
        table->places = places;
    }
    struct slot *slot = free_slot(table->slots.memory, table->places, hash);
    *slot = (struct slot){
        .hash = hash,
        .offset = (uint32_t)offset,
        .size = (uint32_t)size,
        .index = table->count++,
    };
    return slot->index;
}
