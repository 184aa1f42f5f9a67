/* SPDX-License-Identifier: Apache-2.0 */
/* Links in the order of their arrival, and a hash table of their places. Both double when they are
 * full, as far as the budget has memory. Runs on the owner's thread. */
#include "src/join/index/link_set.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/base/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Room at first, room that _reserve makes at most, and the limit. */
enum { LINKS_FIRST = 64, LINKS_AT_ONCE = 1 << 14, LINKS_MAX = 1 << 24 };

/* Above a 16th of the slots in use, clearing all of them is quicker. */
enum { CLEAR_ALL_SHARE = 16 };

/* Of a link and its slots. */
#define LINK_BYTES ((uint64_t)sizeof(struct join_link) + 2 * sizeof(uint32_t))

void link_set_init(struct link_set *set, struct budget *budget)
{
    *set = (struct link_set){.budget = budget, .count = 1};
    set->seed = (uint64_t)(random_uniform() * 0x1p53);
}

void link_set_fini(struct link_set *set)
{
    mem_free(set->items);
    mem_free(set->slots);
    if (set->budget != NULL)
        budget_return(set->budget, set->capacity * LINK_BYTES);
    set->items = NULL;
    set->slots = NULL;
    set->capacity = 0;
}

/* The slot of the link with that key, or the empty one where it belongs. */
static uint32_t *slot_of(const struct link_set *set, const struct link_key *key)
{
    uint32_t mask = set->slots_count - 1;
    uint32_t at = (uint32_t)XXH3_64bits_withSeed(key, sizeof(*key), set->seed) & mask;
    assert(set->count <= set->slots_count / 2);
    for (;; at = (at + 1) & mask) {
        uint32_t place = set->slots[at];
        if (place == 0 || memcmp(&set->items[place].key, key, sizeof(*key)) == 0)
            return &set->slots[at];
    }
}

/* A large table with few links is emptied link by link: otherwise every small request would pay for
 * the slots of a large one before it. */
void link_set_clear(struct link_set *set)
{
    assert(set->count > 0);
    if (set->count == 1)
        return;
    if (set->count > set->slots_count / CLEAR_ALL_SHARE)
        memset(set->slots, 0, set->slots_count * sizeof(uint32_t));
    else /* backwards, so that a search never ends at a slot that is already empty */
        for (uint32_t i = set->count; --i > 0;)
            *slot_of(set, &set->items[i].key) = 0;
    set->count = 1;
}

/* capacity: a power of two. False: no memory. */
static bool grow(struct link_set *set, uint32_t capacity)
{
    uint32_t slots_count = 2 * capacity;
    assert(capacity > set->capacity);
    /* Both lists exist while links are copied. */
    if (set->budget != NULL && !budget_try_take(set->budget, capacity * LINK_BYTES))
        return false;
    uint64_t before = set->capacity * LINK_BYTES;
    set->items = mem_resize(set->items, capacity * sizeof(struct join_link));
    set->capacity = capacity;
    mem_free(set->slots);
    set->slots = mem_alloc(slots_count * sizeof(uint32_t));
    set->slots_count = slots_count;
    memset(set->slots, 0, slots_count * sizeof(uint32_t));
    for (uint32_t i = 1; i < set->count; i++)
        *slot_of(set, &set->items[i].key) = i;
    if (set->budget != NULL)
        budget_return(set->budget, before);
    return true;
}

bool link_set_reserve(struct link_set *set, uint32_t expected)
{
    uint32_t capacity = LINKS_FIRST;
    assert(set->count == 1);
    while (capacity <= expected && capacity < LINKS_AT_ONCE)
        capacity *= 2;
    return capacity <= set->capacity || grow(set, capacity);
}

uint32_t link_set_place(struct link_set *set, const struct link_key *key)
{
    uint32_t *slot = slot_of(set, key);
    if (*slot != 0)
        return *slot;
    if (set->count == set->capacity) {
        if (set->capacity >= LINKS_MAX || !grow(set, 2 * set->capacity))
            return LINK_NONE;
        slot = slot_of(set, key);
    }
    uint32_t place = set->count++;
    assert(place < set->capacity);
    set->items[place] = (struct join_link){.key = *key};
    *slot = place;
    return place;
}
