/* SPDX-License-Identifier: Apache-2.0 */
/* Recent spans, found by their id: what profiles are joined with. One shard per lane, written by
 * that lane alone and read by all without locks. The oldest spans by arrival are evicted first. A
 * span costs 64 bytes, 8 to 16 to be found, and its share of strings; nothing is allocated after
 * init. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/join/index/string_ring.h"
#include "src/join/span_facts.h"

enum { SPAN_ENTRY_WORDS = 8 };

struct span_entry {
    _Atomic uint64_t words[SPAN_ENTRY_WORDS]; /* seqlock.h */
};

/* Only the shard's lane writes; everything that others read is atomic. */
struct span_shard {
    struct span_entry *entries;
    uint32_t entries_count;
    uint32_t next;       /* where the next span goes */
    uint32_t generation; /* of the entries: incremented by every write */
    _Atomic uint32_t *slots;
    uint32_t buckets;
    struct string_ring strings;
    _Atomic uint64_t arrivals;
    _Atomic uint64_t evictions; /* spans that gave way to others */
};

struct span_index {
    unsigned shards_count;
    struct span_shard *shards;
    uint64_t seed;
    uint64_t bytes; /* of all shards */
};

/* Least bytes that one shard takes. */
#define SPAN_SHARD_BYTES_MIN ((uint64_t)256 * 1024)
/* entries and bytes are for all shards together; there are fewer entries when the bytes do not
 * suffice. False: no memory. */
bool span_index_init(struct span_index *index, unsigned shards, uint64_t entries, uint64_t bytes);
void span_index_fini(struct span_index *index);

/* The shard's lane: prefetches what adding the span after `others` more will need. */
void span_index_expect(const struct span_index *index, unsigned shard, uint64_t span,
                       unsigned others);
/* The shard's lane. A span that is in the index is replaced. */
void span_index_add(struct span_index *index, unsigned shard, const struct span_facts *facts);
/* The shard's strings, for its lane. */
static inline struct string_ring *span_index_ring(struct span_index *index, unsigned shard)
{
    return &index->shards[shard].strings;
}

/* The functions below may be called on any thread. */

/* Prefetch for a look-up of that span: its slots well before, then the entries that they name. */
void span_index_fetch_slots(const struct span_index *index, uint64_t span);
void span_index_fetch_entries(const struct span_index *index, uint64_t span);
enum span_found { SPAN_MISSED, SPAN_FOUND, SPAN_AMBIGUOUS };
/* trace NULL: in any trace; AMBIGUOUS: several traces have such a span. */
enum span_found span_index_find(const struct span_index *index, const uint64_t trace[2],
                                uint64_t span, struct span_facts *ret_facts);
/* The span's strings. False: they were overwritten. */
bool span_index_strings(const struct span_index *index, const struct span_facts *facts,
                        struct string_record *ret_record);
/* Another record of that shard. */
bool span_index_strings_at(const struct span_index *index, unsigned shard, uint32_t place,
                           struct string_record *ret_record);
/* LIKELY: no SDK said where the parent is, and it has not arrived. UNKNOWN: a span in between is
 * missing. */
enum span_root { SPAN_ROOT_UNKNOWN, SPAN_ROOT_LIKELY, SPAN_ROOT_FOUND };
/* Replaces facts by those of the local root, or of the last known span on the way there. At most
 * JOIN_ANCESTORS_MAX steps. */
enum span_root span_index_root(const struct span_index *index, struct span_facts *facts);
/* Incremented by every span; if it changed, retry a look-up. */
uint64_t span_index_arrivals(const struct span_index *index);
