/* SPDX-License-Identifier: Apache-2.0 */
/* A shard is a log, a ring of keys in order of use, and an index from keys to places in the log.
 * Keys are mixed: two hashes of 47 bits in the log tell the two buckets of the index that an entry
 * may be in, and its slot there holds 6 bits more beside the place. Clients choose keys: mixing has
 * a seed of the cache's own, so that they cannot choose ones that are taken for others. In small
 * caches a use moves the key to the end of the log and leaves a hole; in large ones it sets a bit,
 * for which the key gets to the end when its turn to be forgotten comes. One owner. */
#include "processors/tail_sampling/decision_cache.h"

#include <assert.h>
#include <string.h>

#include "processors/tail_sampling/tail_hash.h"
#include "src/base/budget.h"
#include "src/base/mem.h"

enum {
    SLOT_BYTES = 3,
    SLOT_PLACE_BITS = 18, /* the rest of a slot is the print */
    PRINT_BITS = 8 * SLOT_BYTES - SLOT_PLACE_BITS,
    BUCKET_SLOTS = 21,
    BUCKET_BYTES = 64, /* a cache line */
    LOG_BYTES = 6,
    LOG_KEY_BITS = 47,
    SHARD_SIZE_MAX = (1 << SLOT_PLACE_BITS) - 2,
    MOVES_MAX = 64,     /* entries of full buckets that one insertion moves */
    CHANCES_MAX = 4096, /* entries that were used and go on, for one that is forgotten */
    INDEX_PERCENT = 95  /* of its slots are in use when the cache is full */
};
#define LOG_KEY_MASK ((UINT64_C(1) << LOG_KEY_BITS) - 1)
/* Exact: a hole. Else: the entry was used since it got to the end. */
#define LOG_FLAG   (UINT64_C(1) << LOG_KEY_BITS)
#define PLACE_MASK ((UINT32_C(1) << SLOT_PLACE_BITS) - 1)

struct shard {
    uint64_t size;
    uint64_t log_slots;
    uint64_t buckets;
    uint8_t *log;
    uint8_t (*index)[BUCKET_BYTES]; /* slots: print and place + 1; 0: free */
    uint16_t *values;               /* beside log, or NULL */
    uint64_t head;                  /* of log, where the next one goes */
    uint64_t used;                  /* of log, holes included */
    uint64_t live;
    uint32_t turn; /* which slot of a full bucket is moved next */
    bool is_exact;
};

struct decision_cache {
    struct budget *budget;
    uint64_t bytes;
    struct tail_seed seed;
    unsigned shards_count;
    struct shard shards[];
};

/* What is left of a key. */
struct mixed {
    uint64_t key; /* 47 bits */
    uint32_t print;
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Different for different keys. */
static uint64_t mix_key(const struct decision_cache *cache, uint64_t key)
{
    return mix((key ^ cache->seed.halves[0]) * (cache->seed.halves[1] | 1));
}

static struct mixed mixed_of(uint64_t mixed)
{
    return (struct mixed){.key = mixed & LOG_KEY_MASK,
                          .print = (uint32_t)(mixed >> LOG_KEY_BITS & ((1u << PRINT_BITS) - 1))};
}

static uint64_t scale(uint64_t hash, uint64_t count)
{
    return (uint64_t)((unsigned __int128)hash * count >> 64);
}

static uint64_t bucket_of(const struct shard *shard, uint64_t key, unsigned which)
{
    return scale(mix(key + (which == 0 ? 0 : UINT64_C(0x9e3779b97f4a7c15))), shard->buckets);
}

static uint64_t log_read(const struct shard *shard, uint64_t place)
{
    uint64_t entry = 0;
    memcpy(&entry, shard->log + place * LOG_BYTES, LOG_BYTES);
    return entry;
}

static void log_write(struct shard *shard, uint64_t place, uint64_t entry)
{
    memcpy(shard->log + place * LOG_BYTES, &entry, LOG_BYTES);
}

static uint32_t slot_of(uint64_t place, uint32_t print)
{
    assert(place + 1 <= PLACE_MASK);
    return print << SLOT_PLACE_BITS | (uint32_t)(place + 1);
}

static uint32_t slot_read(const uint8_t *slot)
{
    return (uint32_t)slot[0] | (uint32_t)slot[1] << 8 | (uint32_t)slot[2] << 16;
}

static void slot_write(uint8_t *slot, uint32_t value)
{
    slot[0] = (uint8_t)value;
    slot[1] = (uint8_t)(value >> 8);
    slot[2] = (uint8_t)(value >> 16);
}

static uint64_t place_of(const uint8_t *slot)
{
    return (slot_read(slot) & PLACE_MASK) - 1;
}

/* Writes that the entry is at another place now. */
static void slot_move(uint8_t *slot, uint64_t place)
{
    slot_write(slot, slot_of(place, slot_read(slot) >> SLOT_PLACE_BITS));
}

/* The slot of a key, or NULL. */
static uint8_t *find(const struct shard *shard, struct mixed mixed)
{
    for (unsigned which = 0; which < 2; which++) {
        uint8_t *bucket = shard->index[bucket_of(shard, mixed.key, which)];
        for (unsigned i = 0; i < BUCKET_SLOTS; i++) {
            uint8_t *slot = bucket + (size_t)i * SLOT_BYTES;
            uint32_t value = slot_read(slot);
            if (value >> SLOT_PLACE_BITS == mixed.print && (value & PLACE_MASK) != 0 &&
                (log_read(shard, place_of(slot)) & LOG_KEY_MASK) == mixed.key)
                return slot;
        }
    }
    return NULL;
}

/* The slot with that place + 1 in one of the buckets of a key; 0: a free one. Or NULL. */
static uint8_t *find_slot(const struct shard *shard, uint64_t key, uint64_t place_and_one)
{
    for (unsigned which = 0; which < 2; which++) {
        uint8_t *bucket = shard->index[bucket_of(shard, key, which)];
        for (unsigned i = 0; i < BUCKET_SLOTS; i++)
            if ((slot_read(bucket + (size_t)i * SLOT_BYTES) & PLACE_MASK) == place_and_one)
                return bucket + (size_t)i * SLOT_BYTES;
    }
    return NULL;
}

/* The slot of the entry at that place of the log. */
static uint8_t *find_place(const struct shard *shard, uint64_t place)
{
    return find_slot(shard, log_read(shard, place) & LOG_KEY_MASK, place + 1);
}

/* Writes the slot of a new entry. When its buckets are full, entries move to their other buckets;
 * the one that finds no room is forgotten. */
static void insert(struct shard *shard, uint32_t value)
{
    for (unsigned moves = 0; moves < MOVES_MAX; moves++) {
        uint64_t key = log_read(shard, (value & PLACE_MASK) - 1) & LOG_KEY_MASK;
        uint8_t *room = find_slot(shard, key, 0);
        if (room != NULL) {
            slot_write(room, value);
            return;
        }
        uint32_t turn = shard->turn++;
        uint8_t *bucket = shard->index[bucket_of(shard, key, turn & 1)];
        uint8_t *victim = bucket + (size_t)(turn / 2 % BUCKET_SLOTS) * SLOT_BYTES;
        uint32_t moved = slot_read(victim);
        slot_write(victim, value);
        value = moved;
    }
    /* Its place in the log stays and is passed over. */
    shard->live--;
}

static uint64_t tail_of(const struct shard *shard)
{
    return (shard->head + shard->log_slots - shard->used) % shard->log_slots;
}

static uint64_t append(struct shard *shard, uint64_t entry, uint16_t value)
{
    assert(shard->used < shard->log_slots);
    uint64_t place = shard->head;
    log_write(shard, place, entry);
    if (shard->values != NULL)
        shard->values[place] = value;
    shard->head = place + 1 < shard->log_slots ? place + 1 : 0;
    shard->used++;
    return place;
}

static uint16_t value_at(const struct shard *shard, uint64_t place)
{
    return shard->values != NULL ? shard->values[place] : 0;
}

/* Closes the holes of an exact log. */
static void compact(struct shard *shard)
{
    uint64_t from = tail_of(shard);
    uint64_t left = shard->used;
    assert(shard->is_exact);
    shard->head = from;
    shard->used = 0;
    for (; left > 0; left--, from = from + 1 < shard->log_slots ? from + 1 : 0) {
        uint64_t entry = log_read(shard, from);
        uint8_t *slot = (entry & LOG_FLAG) == 0 ? find_place(shard, from) : NULL;
        if (slot == NULL)
            continue;
        slot_move(slot, append(shard, entry, value_at(shard, from)));
    }
}

static void make_room(struct shard *shard)
{
    if (shard->used == shard->log_slots && shard->is_exact)
        compact(shard);
}

/* Forgets the least recently used entry. */
static void forget(struct shard *shard)
{
    unsigned chances = 0;
    while (shard->used > 0) {
        uint64_t place = tail_of(shard);
        uint64_t entry = log_read(shard, place);
        bool is_flagged = (entry & LOG_FLAG) != 0;
        uint8_t *slot = is_flagged && shard->is_exact ? NULL : find_place(shard, place);
        shard->used--;
        if (slot == NULL)
            continue;
        if (is_flagged && chances < CHANCES_MAX) {
            chances++;
            slot_move(slot, append(shard, entry & LOG_KEY_MASK, value_at(shard, place)));
            continue;
        }
        slot_write(slot, 0);
        shard->live--;
        return;
    }
}

static void use(struct shard *shard, uint8_t *slot)
{
    uint64_t place = place_of(slot);
    uint64_t entry = log_read(shard, place);
    if (!shard->is_exact) {
        if ((entry & LOG_FLAG) == 0)
            log_write(shard, place, entry | LOG_FLAG);
        return;
    }
    if ((place + 1) % shard->log_slots == shard->head)
        return;
    make_room(shard);
    place = place_of(slot);
    uint16_t value = value_at(shard, place);
    log_write(shard, place, entry | LOG_FLAG);
    slot_move(slot, append(shard, entry, value));
}

static uint64_t shard_log_slots(uint64_t size)
{
    return size <= DECISION_CACHE_EXACT_MAX ? 2 * size + 1 : size + 1;
}

static uint64_t shard_buckets(uint64_t size)
{
    uint64_t slots = size * 100 / INDEX_PERCENT + BUCKET_SLOTS;
    /* Few buckets fill unevenly. */
    return slots / BUCKET_SLOTS + 2;
}

static uint64_t shard_bytes(uint64_t size, bool with_values)
{
    uint64_t log = shard_log_slots(size) * (LOG_BYTES + (with_values ? sizeof(uint16_t) : 0));
    return log + shard_buckets(size) * BUCKET_BYTES;
}

static unsigned shards_for(uint64_t size)
{
    return (unsigned)((size + SHARD_SIZE_MAX - 1) / SHARD_SIZE_MAX);
}

uint64_t decision_cache_bytes(uint64_t size, bool with_values)
{
    unsigned shards = shards_for(size);
    return shards * (shard_bytes((size + shards - 1) / shards, with_values) + sizeof(struct shard));
}

struct decision_cache *decision_cache_create(uint64_t size, bool with_values, struct budget *budget)
{
    assert(size > 0);
    unsigned shards = shards_for(size);
    uint64_t bytes = decision_cache_bytes(size, with_values);
    if (!budget_try_take(budget, bytes))
        return NULL;
    struct decision_cache *cache = mem_zalloc(sizeof(*cache) + shards * sizeof(struct shard));
    cache->budget = budget;
    cache->bytes = bytes;
    cache->seed = tail_seed_make();
    cache->shards_count = shards;
    for (unsigned i = 0; i < shards; i++) {
        struct shard *shard = &cache->shards[i];
        shard->size = (size + shards - 1) / shards;
        shard->log_slots = shard_log_slots(shard->size);
        shard->buckets = shard_buckets(shard->size);
        shard->is_exact = shard->size <= DECISION_CACHE_EXACT_MAX;
        shard->log = mem_try_zalloc(shard->log_slots * LOG_BYTES);
        shard->index = mem_try_map(shard->buckets * sizeof(shard->index[0]));
        if (with_values)
            shard->values = mem_try_zalloc(shard->log_slots * sizeof(shard->values[0]));
        if (shard->log == NULL || shard->index == NULL || (with_values && shard->values == NULL)) {
            decision_cache_destroy(cache);
            return NULL;
        }
    }
    return cache;
}

void decision_cache_destroy(struct decision_cache *cache)
{
    if (cache == NULL)
        return;
    for (unsigned i = 0; i < cache->shards_count; i++) {
        struct shard *shard = &cache->shards[i];
        mem_free(shard->log);
        mem_free(shard->values);
        mem_unmap(shard->index, shard->buckets * sizeof(shard->index[0]));
    }
    budget_return(cache->budget, cache->bytes);
    mem_free(cache);
}

static struct shard *shard_for(struct decision_cache *cache, uint64_t mixed)
{
    return &cache->shards[scale(mixed, cache->shards_count)];
}

bool decision_cache_get(struct decision_cache *cache, uint64_t key, uint16_t *ret_value)
{
    const uint64_t mixed = mix_key(cache, key);
    struct shard *shard = shard_for(cache, mixed);
    uint8_t *slot = find(shard, mixed_of(mixed));
    if (slot == NULL)
        return false;
    *ret_value = value_at(shard, place_of(slot));
    use(shard, slot);
    return true;
}

void decision_cache_put(struct decision_cache *cache, uint64_t key, uint16_t value)
{
    const uint64_t mixed = mix_key(cache, key);
    struct shard *shard = shard_for(cache, mixed);
    struct mixed wanted = mixed_of(mixed);
    uint8_t *slot = find(shard, wanted);
    if (slot != NULL) {
        if (shard->values != NULL)
            shard->values[place_of(slot)] = value;
        use(shard, slot);
        return;
    }
    if (shard->live >= shard->size)
        forget(shard);
    while (!shard->is_exact && shard->used == shard->log_slots)
        forget(shard);
    make_room(shard);
    shard->live++;
    insert(shard, slot_of(append(shard, wanted.key, value), wanted.print));
}
