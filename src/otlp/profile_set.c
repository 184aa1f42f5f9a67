/* SPDX-License-Identifier: Apache-2.0 */
/* A set of byte strings in order of arrival, found by hash. The hash is seeded, so that nobody can
 * choose what collides. One owner, one thread at a time. */
#include "src/otlp/profile_set.h"

#include <assert.h>

#include "src/budget.h"
#include "src/mem.h"
#include "src/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { SLOTS_FIRST = 64 };

/* Brings what is charged for entries and slots up to date. */
static void charge(struct profile_set *set)
{
    struct budget *budget = set->bytes.budget;
    uint64_t used = set->capacity * sizeof(set->entries[0]) +
                    (uint64_t)set->slots_count * sizeof(set->slots[0]);
    if (budget != NULL && used > set->charged_bytes)
        budget_take(budget, used - set->charged_bytes);
    if (budget != NULL && used < set->charged_bytes)
        budget_return(budget, set->charged_bytes - used);
    set->charged_bytes = used;
}

/* Where an entry with that hash is or would be looked for first. */
static uint32_t slot_of(const struct profile_set *set, uint32_t hash)
{
    assert((set->slots_count & (set->slots_count - 1)) == 0);
    return hash & (set->slots_count - 1);
}

static void put_in_slot(struct profile_set *set, uint32_t index)
{
    uint32_t slot = slot_of(set, set->entries[index].hash);
    while (set->slots[slot] != 0)
        slot = (slot + 1) & (set->slots_count - 1);
    set->slots[slot] = index + 1;
}

/* Doubles entries and slots; a third of the slots stays empty at the least. */
static void grow(struct profile_set *set)
{
    assert(set->count <= set->capacity);
    set->slots_count = set->slots_count > 0 ? 2 * set->slots_count : SLOTS_FIRST;
    set->capacity = set->slots_count / 3 * 2;
    set->entries = mem_resize(set->entries, set->capacity * sizeof(set->entries[0]));
    mem_free(set->slots);
    set->slots = mem_zalloc(set->slots_count * sizeof(set->slots[0]));
    for (uint32_t i = 0; i < set->count; i++)
        put_in_slot(set, i);
    charge(set);
}

void profile_set_init(struct profile_set *set, struct budget *budget)
{
    assert(set != NULL);
    *set = (struct profile_set){.bytes.budget = budget};
    set->seed = (uint64_t)(random_uniform() * 0x1p53);
    grow(set);
    profile_set_clear(set);
}

void profile_set_fini(struct profile_set *set)
{
    profile_bytes_fini(&set->bytes);
    mem_free(set->entries);
    mem_free(set->slots);
    set->entries = NULL;
    set->slots = NULL;
    set->capacity = 0;
    set->slots_count = 0;
    charge(set);
}

void profile_set_clear(struct profile_set *set)
{
    assert(set->slots_count > 0);
    memset(set->slots, 0, set->slots_count * sizeof(set->slots[0]));
    set->count = 0;
    set->encoded_bytes = 0;
    set->bytes.size = 0;
    profile_set_add(set, slice_of("", 0));
}

uint8_t *profile_set_begin(struct profile_set *set, size_t content_bytes_max)
{
    return profile_bytes_room(&set->bytes, content_bytes_max);
}

/* The content lies after the last entry's. */
static uint32_t append(struct profile_set *set, struct slice content, uint32_t hash)
{
    assert(set->bytes.size + content.size <= UINT32_MAX);
    set->entries[set->count] = (struct profile_set_entry){
        .offset = (uint32_t)set->bytes.size,
        .size = (uint32_t)content.size,
        .hash = hash,
    };
    set->bytes.size += content.size;
    set->encoded_bytes += 1 + wire_varint_size(content.size) + content.size;
    return set->count++;
}

/* The slot of an entry with that content, or the empty one where it belongs. */
static inline uint32_t *find(struct profile_set *set, struct slice content, uint32_t hash)
{
    if (set->count == set->capacity)
        grow(set);
    uint32_t slot = slot_of(set, hash);
    for (; set->slots[slot] != 0; slot = (slot + 1) & (set->slots_count - 1)) {
        uint32_t index = set->slots[slot] - 1;
        if (set->entries[index].hash == hash && slice_equal(profile_set_at(set, index), content))
            break;
    }
    return &set->slots[slot];
}

static inline uint32_t hash_of(const struct profile_set *set, struct slice content)
{
    return (uint32_t)XXH3_64bits_withSeed(content.data, content.size, set->seed);
}

uint32_t profile_set_end(struct profile_set *set, const uint8_t *content_end)
{
    const uint8_t *begin = set->bytes.data + set->bytes.size;
    assert(content_end >= begin);
    assert(content_end <= set->bytes.data + set->bytes.capacity);
    struct slice content = slice_of(begin, (size_t)(content_end - begin));
    uint32_t hash = hash_of(set, content);
    uint32_t *slot = find(set, content, hash);
    if (*slot == 0)
        *slot = append(set, content, hash) + 1;
    return *slot - 1;
}

uint32_t profile_set_add(struct profile_set *set, struct slice content)
{
    uint32_t hash = hash_of(set, content);
    uint32_t *slot = find(set, content, hash);
    assert(content.data != NULL || content.size == 0);
    if (*slot != 0)
        return *slot - 1;
    uint8_t *room = profile_set_begin(set, content.size);
    if (content.size > 0)
        memcpy(room, content.data, content.size);
    *slot = append(set, content, hash) + 1;
    return *slot - 1;
}

static inline bool is_at(const struct profile_set *set, uint32_t index, struct slice content)
{
    return index < set->count && slice_equal(profile_set_at(set, index), content);
}

uint32_t profile_set_add_like(struct profile_set *set, struct slice content, uint32_t guess)
{
    return is_at(set, guess, content) ? guess : profile_set_add(set, content);
}

uint32_t profile_set_end_like(struct profile_set *set, const uint8_t *content_end, uint32_t guess)
{
    const uint8_t *begin = set->bytes.data + set->bytes.size;
    assert(content_end >= begin);
    return is_at(set, guess, slice_of(begin, (size_t)(content_end - begin)))
               ? guess
               : profile_set_end(set, content_end);
}

/* Entries go in the reverse order of their coming, so that each leaves the slots as they were
 * before it. */
static void remove_last(struct profile_set *set)
{
    uint32_t index = --set->count;
    const struct profile_set_entry *last = &set->entries[index];
    uint32_t slot = slot_of(set, last->hash);
    while (set->slots[slot] != index + 1)
        slot = (slot + 1) & (set->slots_count - 1);
    set->slots[slot] = 0;
    set->encoded_bytes -= 1 + wire_varint_size(last->size) + last->size;
    set->bytes.size -= last->size;
}

void profile_set_cut(struct profile_set *set, uint32_t count)
{
    assert(count >= 1);
    assert(count <= set->count);
    while (set->count > count)
        remove_last(set);
}
