/* SPDX-License-Identifier: Apache-2.0 */
/* A set of byte strings in order of insertion, found by hash. The hash is seeded, so that clients
 * cannot choose what collides. One owner, one thread at a time. */
#include "src/profiles/otlp/profile_set.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/core/batch.h"
#include "src/profiles/otlp/profile_bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    SLOTS_FIRST = 64,
    GROW_AHEAD = 16,      /* slots that are prefetched before they are filled */
    CLEAR_ALL_SHARE = 16, /* above a 16th of the slots in use, clearing all of them is faster */
    CHUNKS_FIRST = 8,
    CHUNK_BYTES_FIRST = 4 * 1024,
    CHUNK_BYTES_MAX = 64 * 1024, /* with struct buffer */
};

/* Entries and slots now take `bytes`, which have been charged: returns those charged before. */
static void settle(struct profile_set *set, uint64_t bytes)
{
    if (set->budget != NULL)
        budget_return(set->budget, set->charged_bytes);
    set->charged_bytes = bytes;
}

static void drop_last_chunk(struct profile_set *set)
{
    assert(set->chunks_count > 0);
    buffer_unref(set->last);
    set->chunks_count--;
    set->last = set->chunks_count > 0 ? set->chunks[set->chunks_count - 1] : NULL;
}

static void __attribute__((noinline)) add_chunk(struct profile_set *set, size_t room)
{
    size_t total = CHUNK_BYTES_FIRST;
    if (set->last != NULL)
        total = 2 * (sizeof(struct buffer) + set->last->capacity);
    if (total > CHUNK_BYTES_MAX)
        total = CHUNK_BYTES_MAX;
    if (total < sizeof(struct buffer) + room)
        total = sizeof(struct buffer) + room;
    if (set->last != NULL && set->last->size == 0)
        drop_last_chunk(set);
    if (set->chunks_count == set->chunks_capacity) {
        set->chunks_capacity = set->chunks_capacity > 0 ? 2 * set->chunks_capacity : CHUNKS_FIRST;
        set->chunks = (struct buffer **)mem_resize((void *)set->chunks,
                                                   set->chunks_capacity * sizeof(set->chunks[0]));
    }
    set->last = buffer_create(set->budget, total - sizeof(struct buffer));
    set->chunks[set->chunks_count++] = set->last;
    assert(set->last->capacity >= room);
}

/* The bits of a slot that are an index. */
static inline uint32_t index_mask(const struct profile_set *set)
{
    return set->slots_count - 1;
}

static inline uint32_t index_of(const struct profile_set *set, uint32_t slot)
{
    return (slot & index_mask(set)) - 1;
}

static inline uint32_t slot_with(const struct profile_set *set, uint32_t index, uint32_t hash)
{
    return (hash & ~index_mask(set)) | (index + 1);
}

/* Slots are far apart in memory. */
static inline void fetch_slot(const struct profile_set *set, uint32_t hash)
{
    __builtin_prefetch(&set->slots[hash & index_mask(set)], 1);
}

/* The slot of an entry that is in the table, even when slots on the way have been cleared. */
static uint32_t *slot_holding(struct profile_set *set, uint32_t index)
{
    uint32_t hash = set->entries[index].hash;
    uint32_t at = hash & index_mask(set);
    while (set->slots[at] != slot_with(set, index, hash))
        at = (at + 1) & index_mask(set);
    return &set->slots[at];
}

/* Doubles entries and slots; at least a third of the slots stays empty. */
static void __attribute__((noinline)) grow(struct profile_set *set)
{
    assert(set->count <= set->capacity);
    assert(set->slots_count <= UINT32_MAX / 4);
    set->slots_count = set->slots_count > 0 ? 2 * set->slots_count : SLOTS_FIRST;
    set->capacity = set->slots_count / 3 * 2;
    const uint64_t bytes = set->capacity * sizeof(set->entries[0]) +
                           (uint64_t)set->slots_count * sizeof(set->slots[0]);
    if (set->budget != NULL)
        budget_take(set->budget, bytes); /* while entries are copied, both arrays exist */
    set->entries = mem_resize(set->entries, set->capacity * sizeof(set->entries[0]));
    mem_free(set->slots);
    /* Not mem_zalloc: jemalloc would return the pages to the kernel, which costs several times as
     * much. */
    set->slots = mem_alloc(set->slots_count * sizeof(set->slots[0]));
    memset(set->slots, 0, set->slots_count * sizeof(set->slots[0]));
    for (uint32_t i = 0; i < set->count; i++) {
        if (i + GROW_AHEAD < set->count)
            fetch_slot(set, set->entries[i + GROW_AHEAD].hash);
        uint32_t hash = set->entries[i].hash;
        uint32_t at = hash & index_mask(set);
        while (set->slots[at] != 0)
            at = (at + 1) & index_mask(set);
        set->slots[at] = slot_with(set, i, hash);
    }
    settle(set, bytes);
}

uint64_t profile_set_bytes_max(uint64_t count)
{
    uint64_t slots = SLOTS_FIRST;
    while (slots / 3 * 2 < count + 1)
        slots *= 2;
    /* While it grows, the old entries exist as well; and there is one chunk. */
    uint64_t entries = slots / 3 * 2 + (slots > SLOTS_FIRST ? slots / 3 : 0);
    return entries * sizeof(struct profile_set_entry) + slots * sizeof(uint32_t) +
           CHUNK_BYTES_FIRST;
}

uint64_t profile_set_growth(const struct profile_set *set, uint64_t content_bytes)
{
    uint64_t bytes = content_bytes + PROFILE_HEADER_BYTES_MAX + CHUNK_BYTES_MAX;
    if (set->count == set->capacity)
        bytes += 2 * set->charged_bytes;
    return bytes;
}

void profile_set_init_field(struct profile_set *set, struct budget *budget, uint32_t number)
{
    assert(number > 0 && number < 16);
    *set = (struct profile_set){.budget = budget, .number = number};
    set->seed = (uint64_t)(random_uniform() * 0x1p53);
    grow(set);
    profile_set_add(set, slice_of("", 0));
}

void profile_set_init(struct profile_set *set, struct budget *budget)
{
    profile_set_init_field(set, budget, 1);
}

void profile_set_fini(struct profile_set *set)
{
    while (set->last != NULL)
        drop_last_chunk(set);
    mem_free((void *)set->chunks);
    mem_free(set->entries);
    mem_free(set->slots);
    set->chunks = NULL;
    set->entries = NULL;
    set->slots = NULL;
    set->capacity = 0;
    set->slots_count = 0;
    settle(set, 0);
}

void profile_set_clear(struct profile_set *set)
{
    assert(set->slots_count > 0);
    /* A table that was large once and holds little now is emptied slot by slot: otherwise one large
     * request would make every small one after it pay for its slots. */
    if (set->count > set->slots_count / CLEAR_ALL_SHARE) {
        memset(set->slots, 0, set->slots_count * sizeof(set->slots[0]));
    } else {
        for (uint32_t i = 0; i < set->count; i++)
            *slot_holding(set, i) = 0;
    }
    while (set->last != NULL)
        drop_last_chunk(set);
    set->count = 0;
    set->encoded_bytes = 0;
    profile_set_add(set, slice_of("", 0));
}

uint8_t *profile_set_begin(struct profile_set *set, size_t content_bytes_max)
{
    size_t room = content_bytes_max + PROFILE_HEADER_BYTES_MAX;
    assert(content_bytes_max <= SIZE_MAX / 4);
    if (set->last == NULL || room > set->last->capacity - set->last->size)
        add_chunk(set, room);
    return set->last->data + set->last->size + PROFILE_HEADER_BYTES;
}

/* What was written where _begin returned. */
static inline struct slice content_until(const struct profile_set *set, const uint8_t *end)
{
    const struct buffer *last = set->last;
    const uint8_t *begin = last->data + last->size + PROFILE_HEADER_BYTES;
    assert(end >= begin);
    assert(end <= last->data + last->capacity);
    return slice_of(begin, (size_t)(end - begin));
}

/* Appends the entry whose content has been written where _begin returned. */
static uint32_t append(struct profile_set *set, size_t content_bytes, uint32_t hash)
{
    uint8_t *header = set->last->data + set->last->size;
    assert(content_bytes <= UINT32_MAX);
    uint8_t *end =
        profile_close_short(header, header + PROFILE_HEADER_BYTES + content_bytes, set->number);
    set->entries[set->count] = (struct profile_set_entry){
        .content = end - content_bytes,
        .size = (uint32_t)content_bytes,
        .hash = hash,
    };
    set->last->size += (size_t)(end - header);
    set->encoded_bytes += (size_t)(end - header);
    return set->count++;
}

/* The slot of an entry with that content, or the empty one where it belongs. */
static inline uint32_t *find(struct profile_set *set, struct slice content, uint32_t hash)
{
    if (set->count == set->capacity)
        grow(set);
    const uint32_t mask = index_mask(set);
    uint32_t at = hash & mask;
    for (; set->slots[at] != 0; at = (at + 1) & mask)
        if (((set->slots[at] ^ hash) & ~mask) == 0 &&
            profile_set_has_at(set, index_of(set, set->slots[at]), content))
            break;
    return &set->slots[at];
}

static inline uint32_t hash_of(const struct profile_set *set, struct slice content)
{
    return (uint32_t)XXH3_64bits_withSeed(content.data, content.size, set->seed);
}

uint32_t profile_set_end(struct profile_set *set, const uint8_t *content_end)
{
    struct slice content = content_until(set, content_end);
    uint32_t hash = hash_of(set, content);
    uint32_t *slot = find(set, content, hash);
    if (*slot == 0)
        *slot = slot_with(set, append(set, content.size, hash), hash);
    return index_of(set, *slot);
}

uint32_t profile_set_expect(const struct profile_set *set, struct slice content)
{
    uint32_t hash = hash_of(set, content);
    fetch_slot(set, hash);
    return hash;
}

uint32_t profile_set_add_expected(struct profile_set *set, struct slice content, uint32_t hash)
{
    uint32_t *slot = find(set, content, hash);
    if (*slot == 0) {
        uint8_t *room = profile_set_begin(set, content.size);
        if (content.size > 0)
            profile_copy(room, content.data, content.size);
        *slot = slot_with(set, append(set, content.size, hash), hash);
    }
    return index_of(set, *slot);
}

uint32_t profile_set_add(struct profile_set *set, struct slice content)
{
    return profile_set_add_expected(set, content, hash_of(set, content));
}

uint32_t profile_set_add_like(struct profile_set *set, struct slice content, uint32_t guess)
{
    return profile_set_has_at(set, guess, content) ? guess : profile_set_add(set, content);
}

uint32_t profile_set_end_like(struct profile_set *set, const uint8_t *content_end, uint32_t guess)
{
    return profile_set_has_at(set, guess, content_until(set, content_end))
               ? guess
               : profile_set_end(set, content_end);
}

void profile_set_cut(struct profile_set *set, uint32_t count)
{
    assert(count >= 1);
    assert(count <= set->count);
    /* Entries are removed in reverse order of insertion, so that each leaves the slots as they were
     * before it. */
    while (set->count > count) {
        uint32_t index = --set->count;
        const struct profile_set_entry *entry = &set->entries[index];
        size_t encoded_bytes = wire_field_size(set->number, entry->size);
        *slot_holding(set, index) = 0;
        while (set->last->size == 0)
            drop_last_chunk(set);
        assert(entry->content + entry->size == set->last->data + set->last->size);
        set->last->size -= encoded_bytes;
        set->encoded_bytes -= encoded_bytes;
    }
}

uint8_t *profile_set_write(const struct profile_set *set, uint8_t *at)
{
    const uint8_t *begin = at;
    for (uint32_t i = 0; i < set->chunks_count; i++) {
        memcpy(at, set->chunks[i]->data, set->chunks[i]->size);
        at += set->chunks[i]->size;
    }
    assert((uint64_t)(at - begin) == set->encoded_bytes);
    return at;
}

void profile_set_hand_out(const struct profile_set *set, struct batch *batch)
{
    uint64_t before = batch->bytes;
    for (uint32_t i = 0; i < set->chunks_count; i++)
        batch_append(batch, set->chunks[i], buffer_slice(set->chunks[i]));
    assert(batch->bytes - before == set->encoded_bytes);
}

void *grown_array(void *array, uint32_t *capacity, uint32_t count, size_t size)
{
    assert(count < UINT32_MAX / 2);
    assert(size > 0);
    if (count <= *capacity && array != NULL)
        return array;
    enum { ARRAY_FIRST = 64 };
    uint32_t more = *capacity > 0 ? *capacity : ARRAY_FIRST;
    while (more < count)
        more *= 2;
    array = mem_resize(array, more * size);
    memset((uint8_t *)array + *capacity * size, 0, (more - *capacity) * size);
    *capacity = more;
    return array;
}
