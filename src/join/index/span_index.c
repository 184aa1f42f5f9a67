/* SPDX-License-Identifier: Apache-2.0 */
/* The shards of the span index. Entries form a ring; a table of buckets of 16 slots, one cache line
 * each, finds them, and each span may be in one of two buckets. A slot has the place of the entry
 * and 8 bits of the hash, which are never 0. The table is at most half full, so that a bucket
 * hardly ever overflows. The stamp of an entry is its generation and the place of its strings.
 * Writing runs on the shard's lane, finding on any. */
#include "src/join/index/span_index.h"

#include <assert.h>
#include <string.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/join/index/seqlock.h"
#include "src/join/join_limits.h"

enum {
    BUCKET_SLOTS = 16,
    BUCKET_BYTES = BUCKET_SLOTS * sizeof(uint32_t),
    CACHE_LINE = 64,
    PLACE_BITS = 24,
    PLACE_MASK = (1 << PLACE_BITS) - 1,
    STRINGS_SHARE = 4, /* at least a quarter of the bytes is for strings */
};

enum word { HEAD = SEQLOCK_STAMP, TRACE_0, TRACE_1, SPAN, PARENT, START, END, REST };

static uint32_t buckets_for(uint64_t entries)
{
    uint32_t buckets = 1;
    assert(entries <= PLACE_MASK);
    while ((uint64_t)buckets * BUCKET_SLOTS < 2 * entries)
        buckets *= 2;
    return buckets;
}

static uint64_t table_bytes(uint64_t entries)
{
    assert(entries > 0);
    return entries * sizeof(struct span_entry) + (uint64_t)buckets_for(entries) * BUCKET_BYTES;
}

bool span_index_init(struct span_index *index, unsigned shards, uint64_t entries, uint64_t bytes)
{
    assert(shards > 0 && shards <= LANES_MAX);
    assert(entries > 0 && bytes / shards >= SPAN_SHARD_BYTES_MIN);
    *index = (struct span_index){.shards_count = shards, .bytes = bytes};
    index->seed = (uint64_t)(random_uniform() * 0x1p53) | 1;
    index->shards = mem_zalloc(shards * sizeof(index->shards[0]));
    uint64_t shard_bytes = bytes / shards;
    uint64_t shard_entries = (entries + shards - 1) / shards;
    if (shard_entries > PLACE_MASK)
        shard_entries = PLACE_MASK;
    while (table_bytes(shard_entries) > shard_bytes - shard_bytes / STRINGS_SHARE)
        shard_entries -= shard_entries / 16 + 1;
    for (unsigned i = 0; i < shards; i++) {
        struct span_shard *shard = &index->shards[i];
        shard->entries_count = (uint32_t)shard_entries;
        shard->buckets = buckets_for(shard_entries);
        shard->entries = mem_try_map(shard_entries * sizeof(shard->entries[0]));
        shard->slots = mem_try_map((size_t)shard->buckets * BUCKET_BYTES);
        if (shard->entries == NULL || shard->slots == NULL ||
            !string_ring_init(&shard->strings, shard_bytes - table_bytes(shard_entries))) {
            span_index_fini(index);
            return false;
        }
    }
    return true;
}

void span_index_fini(struct span_index *index)
{
    for (unsigned i = 0; index->shards != NULL && i < index->shards_count; i++) {
        struct span_shard *shard = &index->shards[i];
        if (shard->entries_count == 0)
            break; /* init got no further */
        mem_unmap(shard->entries, shard->entries_count * sizeof(shard->entries[0]));
        mem_unmap((void *)(uintptr_t)shard->slots, (size_t)shard->buckets * BUCKET_BYTES);
        string_ring_fini(&shard->strings);
    }
    mem_free(index->shards);
    index->shards = NULL;
}

/* Seeded: an attacker may choose ids that would all fall into one bucket. */
static uint64_t hash_of(const struct span_index *index, uint64_t span)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)(span ^ index->seed) * 0x9e3779b97f4a7c15u;
    uint64_t hash = (uint64_t)product ^ (uint64_t)(product >> 64);
    hash = (hash ^ index->seed) * 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

static _Atomic uint32_t *bucket_of(const struct span_shard *shard, uint64_t hash, unsigned which)
{
    uint64_t bits = which == 0 ? hash : hash >> 24;
    return &shard->slots[(bits & (shard->buckets - 1)) * BUCKET_SLOTS];
}

/* Never 0, so that an empty slot has no tag. */
static uint32_t tag_of(uint64_t hash)
{
    uint32_t tag = (uint32_t)(hash >> 56);
    return tag != 0 ? tag : 1;
}

static uint32_t slot_value(uint64_t hash, uint32_t place)
{
    assert(place <= PLACE_MASK);
    return tag_of(hash) << PLACE_BITS | place;
}

/* The slots with that tag, a bit each. Branch-free, since matches cannot be predicted. */
static unsigned slots_with(const _Atomic uint32_t *bucket, uint32_t tag)
{
    unsigned found = 0;
#pragma GCC unroll 16
    for (unsigned i = 0; i < BUCKET_SLOTS; i++) {
        uint32_t slot = atomic_load_explicit(&bucket[i], memory_order_relaxed);
        found |= (unsigned)(slot >> PLACE_BITS == tag) << i;
    }
    return found;
}

typedef uint32_t slot_lanes __attribute__((vector_size(16)));

/* The same for the slots' only writer, which may read four at a time. */
static unsigned own_slots_with(const _Atomic uint32_t *bucket, uint32_t tag)
{
    enum { LANES = sizeof(slot_lanes) / sizeof(uint32_t) };
    const uint32_t *slots = (const uint32_t *)(uintptr_t)bucket;
    slot_lanes bits = {1, 2, 4, 8};
    slot_lanes found = {0};
#pragma GCC unroll 4
    for (unsigned i = 0; i < BUCKET_SLOTS; i += LANES, bits <<= LANES) {
        slot_lanes lanes;
        memcpy(&lanes, slots + i, sizeof(lanes));
        found |= (slot_lanes)(lanes >> PLACE_BITS == tag) & bits;
    }
    return found[0] | found[1] | found[2] | found[3];
}

static uint32_t place_in(const _Atomic uint32_t *slot)
{
    return atomic_load_explicit(slot, memory_order_relaxed) & PLACE_MASK;
}

/* Frees the slot of the entry at `place`, if it has one. */
static void free_slot_of(const struct span_index *index, struct span_shard *shard, uint32_t place)
{
    const struct span_entry *entry = &shard->entries[place];
    if (seqlock_own_word(entry->words, HEAD) == 0)
        return;
    uint64_t hash = hash_of(index, seqlock_own_word(entry->words, SPAN));
    uint32_t value = slot_value(hash, place);
    for (unsigned which = 0; which < 2; which++) {
        _Atomic uint32_t *bucket = bucket_of(shard, hash, which);
        for (unsigned left = own_slots_with(bucket, tag_of(hash)); left != 0; left &= left - 1) {
            _Atomic uint32_t *slot = &bucket[__builtin_ctz(left)];
            if (atomic_load_explicit(slot, memory_order_relaxed) != value)
                continue;
            atomic_store_explicit(slot, 0, memory_order_relaxed);
            return;
        }
    }
}

/* A slot in one of both buckets: that of the same span, else an empty one, else that of the oldest
 * span. */
struct choice {
    _Atomic uint32_t *slot;
    enum { CHOICE_OLDEST, CHOICE_EMPTY, CHOICE_SAME } kind;
};

static struct choice choose(const struct span_shard *shard, uint64_t hash,
                            const struct span_facts *facts)
{
    struct choice oldest = {.kind = CHOICE_OLDEST};
    uint32_t oldest_age = 0;
    for (unsigned which = 0; which < 2; which++) {
        _Atomic uint32_t *bucket = bucket_of(shard, hash, which);
        for (unsigned left = own_slots_with(bucket, tag_of(hash)); left != 0; left &= left - 1) {
            _Atomic uint32_t *slot = &bucket[__builtin_ctz(left)];
            const _Atomic uint64_t *words = shard->entries[place_in(slot)].words;
            if (seqlock_own_word(words, SPAN) == facts->span &&
                seqlock_own_word(words, TRACE_0) == facts->trace[0] &&
                seqlock_own_word(words, TRACE_1) == facts->trace[1])
                return (struct choice){.slot = slot, .kind = CHOICE_SAME};
        }
        unsigned empty = own_slots_with(bucket, 0);
        if (empty != 0)
            return (struct choice){.slot = &bucket[__builtin_ctz(empty)], .kind = CHOICE_EMPTY};
        for (unsigned i = 0; i < BUCKET_SLOTS; i++) {
            uint32_t place = place_in(&bucket[i]);
            uint32_t wrap = shard->next > place ? 0 : shard->entries_count;
            uint32_t age = shard->next + wrap - place;
            if (age > oldest_age) {
                oldest.slot = &bucket[i];
                oldest_age = age;
            }
        }
    }
    assert(oldest.slot != NULL);
    return oldest;
}

void span_index_expect(const struct span_index *index, unsigned shard_index, uint64_t span,
                       unsigned others)
{
    const struct span_shard *shard = &index->shards[shard_index];
    uint32_t left = shard->entries_count - shard->next;
    uint32_t place = others < left ? shard->next + others : (others - left) % shard->entries_count;
    uint64_t evicted = seqlock_own_word(shard->entries[place].words, SPAN);
    __builtin_prefetch(bucket_of(shard, hash_of(index, span), 0), 1);
    __builtin_prefetch(bucket_of(shard, hash_of(index, evicted), 0), 1);
}

void span_index_add(struct span_index *index, unsigned shard_index, const struct span_facts *facts)
{
    assert(shard_index < index->shards_count);
    assert(facts->span != 0);
    struct span_shard *shard = &index->shards[shard_index];
    uint64_t hash = hash_of(index, facts->span);
    struct choice choice = choose(shard, hash, facts);
    uint32_t place = shard->next;
    if (choice.kind == CHOICE_SAME) {
        place = place_in(choice.slot);
    } else {
        /* The span in this entry is evicted; so is the one whose slot is taken over. */
        bool is_full = seqlock_own_word(shard->entries[place].words, HEAD) != 0;
        uint64_t evictions = atomic_load_explicit(&shard->evictions, memory_order_relaxed);
        evictions += is_full || choice.kind == CHOICE_OLDEST;
        atomic_store_explicit(&shard->evictions, evictions, memory_order_relaxed);
        free_slot_of(index, shard, place);
    }
    if (++shard->generation == 0)
        shard->generation = 1;
    const uint64_t words[SPAN_ENTRY_WORDS] = {
        [HEAD] = (uint64_t)shard->generation << 32 | facts->strings,
        [TRACE_0] = facts->trace[0],
        [TRACE_1] = facts->trace[1],
        [SPAN] = facts->span,
        [PARENT] = facts->parent,
        [START] = facts->start_ns,
        [END] = facts->end_ns,
        [REST] = (uint64_t)facts->resource << 32 | (uint64_t)facts->thread << 16 | facts->flags,
    };
    seqlock_write(shard->entries[place].words, words, SPAN_ENTRY_WORDS);
    if (choice.kind != CHOICE_SAME) {
        atomic_store_explicit(choice.slot, slot_value(hash, place), memory_order_release);
        shard->next = place + 1 < shard->entries_count ? place + 1 : 0;
    }
    uint64_t arrivals = atomic_load_explicit(&shard->arrivals, memory_order_relaxed);
    atomic_store_explicit(&shard->arrivals, arrivals + 1, memory_order_release);
}

void span_index_fetch_slots(const struct span_index *index, uint64_t span)
{
    uint64_t hash = hash_of(index, span);
    for (unsigned i = 0; i < index->shards_count; i++) {
        __builtin_prefetch(bucket_of(&index->shards[i], hash, 0));
        __builtin_prefetch(bucket_of(&index->shards[i], hash, 1));
    }
}

void span_index_fetch_entries(const struct span_index *index, uint64_t span)
{
    uint64_t hash = hash_of(index, span);
    for (unsigned i = 0; i < index->shards_count; i++) {
        const struct span_shard *shard = &index->shards[i];
        for (unsigned which = 0; which < 2; which++) {
            const _Atomic uint32_t *bucket = bucket_of(shard, hash, which);
            for (unsigned left = slots_with(bucket, tag_of(hash)); left != 0; left &= left - 1)
                __builtin_prefetch(&shard->entries[place_in(&bucket[__builtin_ctz(left)])]);
        }
    }
}

enum span_found span_index_find(const struct span_index *index, const uint64_t trace[2],
                                uint64_t span, struct span_facts *ret_facts)
{
    enum span_found found = SPAN_MISSED;
    uint64_t words[SPAN_ENTRY_WORDS];
    if (span == 0)
        return SPAN_MISSED;
    uint64_t hash = hash_of(index, span);
    for (unsigned i = 0; i < 2 * index->shards_count; i++) {
        const struct span_shard *shard = &index->shards[i / 2];
        const _Atomic uint32_t *bucket = bucket_of(shard, hash, i % 2);
        for (unsigned left = slots_with(bucket, tag_of(hash)); left != 0; left &= left - 1) {
            uint32_t place = place_in(&bucket[__builtin_ctz(left)]);
            if (!seqlock_read(shard->entries[place].words, words, SPAN_ENTRY_WORDS) ||
                words[SPAN] != span ||
                (trace != NULL && (words[TRACE_0] != trace[0] || words[TRACE_1] != trace[1])))
                continue;
            if (found == SPAN_FOUND) { /* sent twice, or in another trace */
                if (words[TRACE_0] != ret_facts->trace[0] || words[TRACE_1] != ret_facts->trace[1])
                    return SPAN_AMBIGUOUS;
                continue;
            }
            *ret_facts = (struct span_facts){
                .trace = {words[TRACE_0], words[TRACE_1]},
                .span = span,
                .parent = words[PARENT],
                .start_ns = words[START],
                .end_ns = words[END],
                .resource = (uint32_t)(words[REST] >> 32),
                .thread = (uint16_t)(words[REST] >> 16),
                .flags = (uint16_t)words[REST],
                .strings = (uint32_t)words[HEAD],
                .shard = i / 2,
            };
            found = SPAN_FOUND;
            if (trace != NULL)
                return SPAN_FOUND;
        }
    }
    return found;
}

bool span_index_strings_at(const struct span_index *index, unsigned shard, uint32_t place,
                           struct string_record *ret_record)
{
    assert(shard < index->shards_count);
    return string_ring_read(&index->shards[shard].strings, place, ret_record);
}

bool span_index_strings(const struct span_index *index, const struct span_facts *facts,
                        struct string_record *ret_record)
{
    return span_index_strings_at(index, facts->shard, facts->strings, ret_record);
}

enum span_root span_index_root(const struct span_index *index, struct span_facts *facts)
{
    const struct span_facts received = *facts;
    for (unsigned steps = 0; steps <= JOIN_ANCESTORS_MAX; steps++) {
        bool tells = (facts->flags & SPAN_TELLS_ROOT) != 0;
        struct span_facts parent;
        if ((facts->flags & SPAN_IS_LOCAL_ROOT) != 0)
            return SPAN_ROOT_FOUND;
        if (span_index_find(index, facts->trace, facts->parent, &parent) != SPAN_FOUND)
            return tells ? SPAN_ROOT_UNKNOWN : SPAN_ROOT_LIKELY;
        if (parent.resource != facts->resource)
            return tells ? SPAN_ROOT_UNKNOWN : SPAN_ROOT_FOUND;
        *facts = parent;
    }
    *facts = received; /* a cycle, or deeper than any program calls */
    return SPAN_ROOT_UNKNOWN;
}

uint64_t span_index_arrivals(const struct span_index *index)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < index->shards_count; i++)
        sum += atomic_load_explicit(&index->shards[i].arrivals, memory_order_acquire);
    return sum;
}
