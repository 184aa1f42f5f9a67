/* SPDX-License-Identifier: Apache-2.0 */
/* The shards. Entries form a ring; a table of buckets of 16 slots, one cache line each, finds them,
 * and each span may stand in one of two buckets. A slot says where the entry is and has 8 bits of
 * the hash, which are never 0. The table is half full at most, so that a bucket hardly ever
 * overflows.
 *
 * An entry is eight words, the first of which is its generation and the place of its texts. The
 * writer clears that word, stores the others with release, then that word again; who reads loads it
 * before and after, the others with acquire between, and takes equality for proof. Writing runs on
 * the shard's lane, finding on any. */
#include "src/join/index/span_index.h"

#include <assert.h>
#include <string.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/join/join_limits.h"

enum {
    BUCKET_SLOTS = 16,
    BUCKET_BYTES = BUCKET_SLOTS * sizeof(uint32_t),
    CACHE_LINE = 64,
    PLACE_BITS = 24,
    PLACE_MASK = (1 << PLACE_BITS) - 1,
    TEXTS_SHARE = 4, /* at least a quarter of the bytes is for texts */
};

enum word { HEAD, TRACE_0, TRACE_1, SPAN, PARENT, START, END, REST };

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

static bool init_shard(struct span_shard *shard, uint64_t entries, uint64_t bytes)
{
    assert(bytes >= SPAN_SHARD_BYTES_MIN);
    uint64_t tables_max = bytes - bytes / TEXTS_SHARE;
    if (entries > PLACE_MASK)
        entries = PLACE_MASK;
    while (table_bytes(entries) > tables_max)
        entries -= entries / 16 + 1;
    shard->entries_count = (uint32_t)entries;
    shard->buckets = buckets_for(entries);
    shard->entries = mem_try_map(entries * sizeof(shard->entries[0]));
    shard->slots = mem_try_map((size_t)shard->buckets * BUCKET_BYTES);
    return shard->entries != NULL && shard->slots != NULL &&
           string_ring_init(&shard->log, bytes - table_bytes(entries));
}

bool span_index_init(struct span_index *index, unsigned shards, uint64_t entries, uint64_t bytes)
{
    assert(shards > 0 && shards <= LANES_MAX);
    assert(entries > 0);
    *index = (struct span_index){.shards_count = shards, .bytes = bytes};
    index->seed = (uint64_t)(random_uniform() * 0x1p53) | 1;
    index->shards = mem_zalloc(shards * sizeof(index->shards[0]));
    bool is_made = true;
    for (unsigned i = 0; is_made && i < shards; i++)
        is_made = init_shard(&index->shards[i], (entries + shards - 1) / shards, bytes / shards);
    if (!is_made)
        span_index_fini(index);
    return is_made;
}

static void free_tables(struct span_shard *shard)
{
    if (shard->entries_count == 0)
        return; /* not made */
    assert(shard->buckets > 0);
    mem_unmap(shard->entries, shard->entries_count * sizeof(shard->entries[0]));
    mem_unmap((void *)(uintptr_t)shard->slots, (size_t)shard->buckets * BUCKET_BYTES);
}

void span_index_fini(struct span_index *index)
{
    assert(index != NULL);
    for (unsigned i = 0; index->shards != NULL && i < index->shards_count; i++) {
        free_tables(&index->shards[i]);
        string_ring_fini(&index->shards[i].log);
    }
    mem_free(index->shards);
    index->shards = NULL;
}

/* Ids are random, but perhaps chosen by somebody who wants one bucket to overflow. */
static uint64_t hash_of(const struct span_index *index, uint64_t span)
{
    assert(index->seed != 0);
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)(span ^ index->seed) * 0x9e3779b97f4a7c15u;
    uint64_t hash = (uint64_t)product ^ (uint64_t)(product >> 64);
    hash = (hash ^ index->seed) * 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

static _Atomic uint32_t *bucket_of(const struct span_shard *shard, uint64_t hash, unsigned which)
{
    uint64_t bits = which == 0 ? hash : hash >> 24;
    assert(which < 2);
    return &shard->slots[(bits & (shard->buckets - 1)) * BUCKET_SLOTS];
}

/* Never 0, so that an empty slot has no tag. */
static uint32_t tag_of(uint64_t hash)
{
    uint32_t tag = (uint32_t)(hash >> 56);
    assert(tag <= UINT8_MAX);
    return tag != 0 ? tag : 1;
}

static uint32_t slot_value(uint64_t hash, uint32_t place)
{
    assert(place <= PLACE_MASK);
    return tag_of(hash) << PLACE_BITS | place;
}

/* Which slots have the tag, bit by bit. Without branches: there is no foreseeing them. */
static unsigned slots_with(const _Atomic uint32_t *bucket, uint32_t tag)
{
    unsigned found = 0;
    assert(bucket != NULL);
#pragma GCC unroll 16
    for (unsigned i = 0; i < BUCKET_SLOTS; i++) {
        uint32_t slot = atomic_load_explicit(&bucket[i], memory_order_relaxed);
        found |= (unsigned)(slot >> PLACE_BITS == tag) << i;
    }
    return found;
}

typedef uint32_t slot_lanes __attribute__((vector_size(16)));

/* The same for the slots' only writer, who may read them four at a time. */
static unsigned own_slots_with(const _Atomic uint32_t *bucket, uint32_t tag)
{
    enum { LANES = sizeof(slot_lanes) / sizeof(uint32_t) };
    const uint32_t *slots = (const uint32_t *)(uintptr_t)bucket;
    slot_lanes bits = {1, 2, 4, 8};
    slot_lanes found = {0};
    assert(bucket != NULL);
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
    assert(slot != NULL);
    return atomic_load_explicit(slot, memory_order_relaxed) & PLACE_MASK;
}

static uint64_t load(const struct span_entry *entry, enum word word)
{
    return atomic_load_explicit(&entry->words[word], memory_order_acquire);
}

static void store(struct span_entry *entry, enum word word, uint64_t value)
{
    atomic_store_explicit(&entry->words[word], value, memory_order_release);
}

static void write_entry(struct span_shard *shard, uint32_t place, const struct span_facts *facts)
{
    struct span_entry *entry = &shard->entries[place];
    assert(facts->span != 0);
    if (++shard->generation == 0)
        shard->generation = 1;
    atomic_store_explicit(&entry->words[HEAD], 0, memory_order_relaxed);
    store(entry, TRACE_0, facts->trace[0]);
    store(entry, TRACE_1, facts->trace[1]);
    store(entry, SPAN, facts->span);
    store(entry, PARENT, facts->parent);
    store(entry, START, facts->start_ns);
    store(entry, END, facts->end_ns);
    store(entry, REST,
          (uint64_t)facts->resource << 32 | (uint64_t)facts->thread << 16 | facts->flags);
    store(entry, HEAD, (uint64_t)shard->generation << 32 | facts->texts);
}

/* False: empty, or written at this moment. */
static bool read_entry(const struct span_entry *entry, struct span_facts *ret_facts)
{
    uint64_t head = load(entry, HEAD);
    if (head == 0)
        return false;
    uint64_t rest = load(entry, REST);
    *ret_facts = (struct span_facts){
        .trace = {load(entry, TRACE_0), load(entry, TRACE_1)},
        .span = load(entry, SPAN),
        .parent = load(entry, PARENT),
        .start_ns = load(entry, START),
        .end_ns = load(entry, END),
        .resource = (uint32_t)(rest >> 32),
        .thread = (uint16_t)(rest >> 16),
        .flags = (uint16_t)rest,
        .texts = (uint32_t)head,
    };
    assert(ret_facts->span != 0);
    return atomic_load_explicit(&entry->words[HEAD], memory_order_relaxed) == head;
}

/* The entry's slot is free again. */
static void unlink_entry(const struct span_index *index, struct span_shard *shard, uint32_t place)
{
    const struct span_entry *entry = &shard->entries[place];
    if (load(entry, HEAD) == 0)
        return;
    uint64_t hash = hash_of(index, load(entry, SPAN));
    uint32_t value = slot_value(hash, place);
    assert(shard->buckets > 0);
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

static bool is_same_span(const struct span_entry *entry, const struct span_facts *facts)
{
    assert(facts->span != 0);
    return load(entry, SPAN) == facts->span && load(entry, TRACE_0) == facts->trace[0] &&
           load(entry, TRACE_1) == facts->trace[1];
}

/* A slot among both buckets: of the same span, else an empty one, else that of the oldest span. */
struct choice {
    _Atomic uint32_t *slot; /* NULL: none looked at yet */
    enum { CHOICE_OLDEST, CHOICE_EMPTY, CHOICE_SAME } kind;
    uint32_t age;
};

static void choose_oldest(const struct span_shard *shard, _Atomic uint32_t *bucket,
                          struct choice *choice)
{
    assert(choice->kind == CHOICE_OLDEST);
    for (unsigned i = 0; i < BUCKET_SLOTS; i++) {
        uint32_t place = place_in(&bucket[i]);
        uint32_t wrap = shard->next > place ? 0 : shard->entries_count;
        uint32_t age = shard->next + wrap - place;
        if (age > choice->age) {
            choice->slot = &bucket[i];
            choice->age = age;
        }
    }
}

static void choose_in(const struct span_shard *shard, _Atomic uint32_t *bucket, uint64_t hash,
                      const struct span_facts *facts, struct choice *choice)
{
    assert(bucket != NULL);
    for (unsigned left = own_slots_with(bucket, tag_of(hash)); left != 0; left &= left - 1) {
        _Atomic uint32_t *slot = &bucket[__builtin_ctz(left)];
        if (is_same_span(&shard->entries[place_in(slot)], facts)) {
            *choice = (struct choice){.slot = slot, .kind = CHOICE_SAME};
            return;
        }
    }
    unsigned empty = own_slots_with(bucket, 0);
    if (empty != 0)
        *choice = (struct choice){.slot = &bucket[__builtin_ctz(empty)], .kind = CHOICE_EMPTY};
    else
        choose_oldest(shard, bucket, choice);
}

static struct choice choose(const struct span_shard *shard, uint64_t hash,
                            const struct span_facts *facts)
{
    struct choice choice = {.kind = CHOICE_OLDEST};
    choose_in(shard, bucket_of(shard, hash, 0), hash, facts, &choice);
    if (choice.kind == CHOICE_OLDEST)
        choose_in(shard, bucket_of(shard, hash, 1), hash, facts, &choice);
    assert(choice.slot != NULL);
    return choice;
}

void span_index_expect(const struct span_index *index, unsigned shard_index, uint64_t span,
                       unsigned others)
{
    const struct span_shard *shard = &index->shards[shard_index];
    assert(shard_index < index->shards_count);
    uint32_t left = shard->entries_count - shard->next;
    uint32_t place = others < left ? shard->next + others : (others - left) % shard->entries_count;
    uint64_t evicted = load(&shard->entries[place], SPAN);
    __builtin_prefetch(bucket_of(shard, hash_of(index, span), 0), 1);
    __builtin_prefetch(bucket_of(shard, hash_of(index, evicted), 0), 1);
}

void span_index_add(struct span_index *index, unsigned shard_index, const struct span_facts *facts)
{
    assert(shard_index < index->shards_count);
    struct span_shard *shard = &index->shards[shard_index];
    uint64_t hash = hash_of(index, facts->span);
    struct choice choice = choose(shard, hash, facts);
    uint64_t arrivals = atomic_load_explicit(&shard->arrivals, memory_order_relaxed);
    if (choice.kind == CHOICE_SAME) {
        write_entry(shard, place_in(choice.slot), facts);
    } else {
        uint32_t place = shard->next;
        bool is_full = load(&shard->entries[place], HEAD) != 0;
        uint64_t evictions = atomic_load_explicit(&shard->evictions, memory_order_relaxed);
        unlink_entry(index, shard, place);
        evictions +=
            is_full || choice.kind == CHOICE_OLDEST; /* a slot's last span is out of reach */
        atomic_store_explicit(&shard->evictions, evictions, memory_order_relaxed);
        write_entry(shard, place, facts);
        atomic_store_explicit(choice.slot, slot_value(hash, place), memory_order_release);
        shard->next = place + 1 < shard->entries_count ? place + 1 : 0;
    }
    atomic_store_explicit(&shard->arrivals, arrivals + 1, memory_order_release);
}

static bool is_same_trace(const struct span_facts *a, const struct span_facts *b)
{
    return a->trace[0] == b->trace[0] && a->trace[1] == b->trace[1];
}

void span_index_fetch_slots(const struct span_index *index, uint64_t span)
{
    uint64_t hash = hash_of(index, span);
    assert(index->shards != NULL);
    for (unsigned i = 0; i < index->shards_count; i++) {
        __builtin_prefetch(bucket_of(&index->shards[i], hash, 0));
        __builtin_prefetch(bucket_of(&index->shards[i], hash, 1));
    }
}

static void fetch_entries_in(const struct span_shard *shard, const _Atomic uint32_t *bucket,
                             uint32_t tag)
{
    assert(bucket != NULL);
    for (unsigned left = slots_with(bucket, tag); left != 0; left &= left - 1)
        __builtin_prefetch(&shard->entries[place_in(&bucket[__builtin_ctz(left)])]);
}

void span_index_fetch_entries(const struct span_index *index, uint64_t span)
{
    uint64_t hash = hash_of(index, span);
    assert(index->shards != NULL);
    for (unsigned i = 0; i < index->shards_count; i++)
        for (unsigned which = 0; which < 2; which++)
            fetch_entries_in(&index->shards[i], bucket_of(&index->shards[i], hash, which),
                             tag_of(hash));
}

/* Adds what one bucket knows of the span to what was found so far. */
static enum span_found find_in(const struct span_shard *shard, const _Atomic uint32_t *bucket,
                               uint64_t hash, const struct span_facts *wanted, bool has_trace,
                               enum span_found found, struct span_facts *ret_facts)
{
    struct span_facts facts;
    assert(wanted->span != 0);
    for (unsigned left = slots_with(bucket, tag_of(hash)); left != 0; left &= left - 1) {
        uint32_t place = place_in(&bucket[__builtin_ctz(left)]);
        if (!read_entry(&shard->entries[place], &facts) || facts.span != wanted->span ||
            (has_trace && !is_same_trace(&facts, wanted)))
            continue;
        if (found == SPAN_FOUND && !is_same_trace(&facts, ret_facts))
            return SPAN_AMBIGUOUS;
        if (found == SPAN_MISSED)
            *ret_facts = facts;
        found = SPAN_FOUND;
    }
    return found;
}

enum span_found span_index_find(const struct span_index *index, const uint64_t trace[2],
                                uint64_t span, struct span_facts *ret_facts)
{
    struct span_facts wanted = {.span = span};
    enum span_found found = SPAN_MISSED;
    assert(ret_facts != NULL);
    if (span == 0)
        return SPAN_MISSED;
    if (trace != NULL)
        memcpy(wanted.trace, trace, sizeof(wanted.trace));
    uint64_t hash = hash_of(index, span);
    for (unsigned i = 0; i < index->shards_count; i++) {
        const struct span_shard *shard = &index->shards[i];
        for (unsigned which = 0; which < 2; which++) {
            enum span_found before = found;
            found = find_in(shard, bucket_of(shard, hash, which), hash, &wanted, trace != NULL,
                            found, ret_facts);
            if (found != before)
                ret_facts->shard = i;
            if (found != SPAN_MISSED && trace != NULL)
                return found;
        }
    }
    return found;
}

bool span_index_text_at(const struct span_index *index, unsigned shard, uint32_t place,
                        struct string_record *ret_text)
{
    assert(shard < index->shards_count);
    return string_ring_read(&index->shards[shard].log, place, ret_text);
}

bool span_index_texts(const struct span_index *index, const struct span_facts *facts,
                      struct string_record *ret_text)
{
    assert(facts != NULL);
    return span_index_text_at(index, facts->shard, facts->texts, ret_text);
}

enum span_root span_index_root(const struct span_index *index, struct span_facts *facts)
{
    const struct span_facts received = *facts;
    assert(index != NULL);
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
    *facts = received; /* a circle, or deeper than any program calls */
    return SPAN_ROOT_UNKNOWN;
}

uint64_t span_index_arrivals(const struct span_index *index)
{
    uint64_t sum = 0;
    assert(index->shards != NULL);
    for (unsigned i = 0; i < index->shards_count; i++)
        sum += atomic_load_explicit(&index->shards[i].arrivals, memory_order_acquire);
    return sum;
}
