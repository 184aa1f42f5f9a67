/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that went by lately, found by their id: what profiles are joined with. One shard per lane,
 * written by that lane alone and read by all without locks. The oldest spans by arrival go first. A
 * span costs 64 bytes, 8 to 16 to be found, and its share of texts; nothing is allocated once the
 * shards are there. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/join/index/string_ring.h"
#include "src/join/span_facts.h"

struct span_entry {
    _Atomic uint64_t words[8];
};

/* Entries and slots are the writer's to change; everything that others read is atomic. */
struct span_shard {
    struct span_entry *entries;
    uint32_t entries_count;
    uint32_t next;       /* where the next span goes */
    uint32_t generation; /* of the entries: goes up with every write */
    _Atomic uint32_t *slots;
    uint32_t buckets;
    struct string_ring log;
    _Atomic uint64_t arrivals;
    _Atomic uint64_t evictions; /* spans that made room for others */
};

struct span_index {
    unsigned shards_count;
    struct span_shard *shards;
    uint64_t seed;
    uint64_t bytes; /* of all shards */
};

/* Least bytes that one shard takes. */
#define SPAN_SHARD_BYTES_MIN ((uint64_t)256 * 1024)
/* entries and bytes: of all shards together; fewer entries when the bytes do not suffice. False: no
 * memory. */
bool span_index_init(struct span_index *index, unsigned shards, uint64_t entries, uint64_t bytes);
void span_index_fini(struct span_index *index);

/* The shard's lane: that span will be added after so many others, so that memory may be fetched
 * meanwhile. */
void span_index_expect(const struct span_index *index, unsigned shard, uint64_t span,
                       unsigned others);
/* The shard's lane. A span that is there already is written anew. */
void span_index_add(struct span_index *index, unsigned shard, const struct span_facts *facts);
/* The shard's log, for its lane. */
static inline struct string_ring *span_index_log(struct span_index *index, unsigned shard)
{
    return &index->shards[shard].log;
}

/* What follows may be called on any thread. */

/* That span will be looked for soon, so that memory may be fetched meanwhile: first, well before,
 * where it may be noted; then, a little before, what it may be. */
void span_index_fetch_slots(const struct span_index *index, uint64_t span);
void span_index_fetch_entries(const struct span_index *index, uint64_t span);
enum span_found { SPAN_MISSED, SPAN_FOUND, SPAN_AMBIGUOUS };
/* trace NULL: whatever trace the span is in, if there is only one. */
enum span_found span_index_find(const struct span_index *index, const uint64_t trace[2],
                                uint64_t span, struct span_facts *ret_facts);
/* False: the texts are gone by now. */
bool span_index_texts(const struct span_index *index, const struct span_facts *facts,
                      struct string_record *ret_text);
/* Another text of that shard. */
bool span_index_text_at(const struct span_index *index, unsigned shard, uint32_t place,
                        struct string_record *ret_text);
/* LIKELY: nobody says where its parent is, and that has not come. UNKNOWN: a span between is not
 * there. */
enum span_root { SPAN_ROOT_UNKNOWN, SPAN_ROOT_LIKELY, SPAN_ROOT_FOUND };
/* Up to which ancestor in the same process the index can tell: facts become those of the local
 * root, or of the last span known on the way there. At most JOIN_ANCESTORS_MAX steps. */
enum span_root span_index_root(const struct span_index *index, struct span_facts *facts);
/* Goes up with every span; a change tells that another look is worth it. */
uint64_t span_index_arrivals(const struct span_index *index);
