/* SPDX-License-Identifier: Apache-2.0 */
/* One table of a dictionary that is being built: encoded entries without duplicates, the zero
 * element (which has no bytes) always first. Entries are equal when their bytes are, so an entry
 * that holds indices is added once they are indices of the new dictionary. Entries lie in chunks,
 * which never move, encoded as the repeated field of the dictionary, so that a table is written by
 * copying its chunks, or by sharing them. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct batch;
struct budget;
struct buffer;

struct profile_set_entry {
    const uint8_t *content;
    uint32_t size;
    uint32_t hash;
};

struct profile_set {
    struct budget *budget;  /* NULL: not charged */
    uint32_t number;        /* of the repeated field */
    struct buffer **chunks; /* each with the fields that follow those of the one before */
    uint32_t chunks_count;
    uint32_t chunks_capacity;
    struct buffer *last; /* of the chunks; NULL: there is none */
    struct profile_set_entry *entries;
    uint32_t count;
    uint32_t capacity;
    /* Open addressing. 0: empty; else the low bits (mask slots_count - 1) are index + 1, and the
     * others are the hash's, which tell most entries apart without comparing them. */
    uint32_t *slots;
    uint32_t slots_count;
    uint64_t encoded_bytes; /* as the repeated field */
    uint64_t seed;
    uint64_t charged_bytes; /* for entries and slots */
};

/* Charged beyond the budget's limit if need be: sets complete requests that were accepted. */
void profile_set_init(struct profile_set *set, struct budget *budget);
/* The same, for a repeated field of that number, below 16. */
void profile_set_init_field(struct profile_set *set, struct budget *budget, uint32_t number);
void profile_set_fini(struct profile_set *set);
/* Removes all but the zero element; keeps some memory. */
void profile_set_clear(struct profile_set *set);

/* The index of the entry with that content, which is added if it is new. */
uint32_t profile_set_add(struct profile_set *set, struct slice content);
/* The same without a copy: write the content where _begin returns, then call _end with its end.
 * Nothing may be added to this set between the two. */
uint8_t *profile_set_begin(struct profile_set *set, size_t content_bytes_max);
uint32_t profile_set_end(struct profile_set *set, const uint8_t *content_end);
/* Both first compare the entry `guess`, which saves the search where requests are alike. */
uint32_t profile_set_add_like(struct profile_set *set, struct slice content, uint32_t guess);
uint32_t profile_set_end_like(struct profile_set *set, const uint8_t *content_end, uint32_t guess);

/* _add in two steps: the first computes the hash and prefetches its slot. */
uint32_t profile_set_expect(const struct profile_set *set, struct slice content);
uint32_t profile_set_add_expected(struct profile_set *set, struct slice content, uint32_t hash);

/* Upper bound of the bytes that `count` entries take, besides their contents. */
uint64_t profile_set_bytes_max(uint64_t count);

/* Upper bound of what adding one more of that size charges to the budget, at its peak. */
uint64_t profile_set_growth(const struct profile_set *set, uint64_t content_bytes);

/* Removes the entries from `count` on. */
void profile_set_cut(struct profile_set *set, uint32_t count);
/* Writes encoded_bytes to at, which has room. Returns the end. */
uint8_t *profile_set_write(const struct profile_set *set, uint8_t *at);
/* Appends the chunks to batch, which shares them: the next call is _clear or _fini. */
void profile_set_hand_out(const struct profile_set *set, struct batch *batch);

/* For rows beside a set: room for `count` elements of `size` bytes, doubling, new ones zeroed. */
void *grown_array(void *array, uint32_t *capacity, uint32_t count, size_t size)
    __attribute__((returns_nonnull));

static inline struct slice profile_set_at(const struct profile_set *set, uint32_t index)
{
    const struct profile_set_entry *entry = &set->entries[index];
    return slice_of(entry->content, entry->size);
}

/* memcmp == 0 without a call for the sizes of most entries. */
static inline bool profile_set_is_same(const uint8_t *a, const uint8_t *b, size_t size)
{
    uint64_t word, other, differences = 0;
    if (size < sizeof(word) || size > 64)
        return size == 0 || memcmp(a, b, size) == 0;
    for (size_t left = size; left > 0;) {
        /* The first word may overlap the one before. */
        left = left > sizeof(word) ? left - sizeof(word) : 0;
        memcpy(&word, a + left, sizeof(word));
        memcpy(&other, b + left, sizeof(other));
        differences |= word ^ other;
    }
    return differences == 0;
}

static inline bool profile_set_has_at(const struct profile_set *set, uint32_t index,
                                      struct slice content)
{
    return index < set->count && set->entries[index].size == content.size &&
           profile_set_is_same(set->entries[index].content, content.data, content.size);
}
