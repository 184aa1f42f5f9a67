/* SPDX-License-Identifier: Apache-2.0 */
/* One table of a dictionary that is being built: encoded entries, each there once, with the zero
 * element (which has no bytes) always first. Equality is by bytes, so what holds indices is added
 * once they are those of the new dictionary. Entries lie in chunks, which never move, as the
 * repeated field that they will be, so that a table is written by copying its chunks, or by handing
 * them out. One owner. */
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
    /* Open addressing. 0: empty; else the low bits, as many as there are of slots_count, are index
     * + 1, and those above are the hash's, which tell most entries apart without a look at them. */
    uint32_t *slots;
    uint32_t slots_count;
    uint64_t encoded_bytes; /* as the repeated field */
    uint64_t seed;
    uint64_t charged_bytes; /* for entries and slots */
};

/* Charged beyond the budget's limit if need be: sets finish what was already taken. */
void profile_set_init(struct profile_set *set, struct budget *budget);
/* The same, to be written as that field, whose tag takes one byte. */
void profile_set_init_field(struct profile_set *set, struct budget *budget, uint32_t number);
void profile_set_fini(struct profile_set *set);
/* Back to the zero element alone; some memory is kept. */
void profile_set_clear(struct profile_set *set);

/* The index of the entry with that content, which is added if it is new. */
uint32_t profile_set_add(struct profile_set *set, struct slice content);
/* The same without a copy: the content is written where _begin says, then _end is told where it
 * ends. Nothing is added to this set between the two. */
uint8_t *profile_set_begin(struct profile_set *set, size_t content_bytes_max);
uint32_t profile_set_end(struct profile_set *set, const uint8_t *content_end);
/* Both look first at the entry `guess`, which spares a search where requests are alike. */
uint32_t profile_set_add_like(struct profile_set *set, struct slice content, uint32_t guess);
uint32_t profile_set_end_like(struct profile_set *set, const uint8_t *content_end, uint32_t guess);

/* _add in two steps: others may come between, while memory is fetched for the search. */
uint32_t profile_set_expect(const struct profile_set *set, struct slice content);
uint32_t profile_set_add_expected(struct profile_set *set, struct slice content, uint32_t hash);

/* Most bytes that it holds, besides the entries' own, to have so many entries. */
uint64_t profile_set_bytes_max(uint64_t count);

/* What adding one more of that size takes from the budget while it lasts. */
uint64_t profile_set_growth(const struct profile_set *set, uint64_t content_bytes);

/* Forgets the entries from `count` on. */
void profile_set_cut(struct profile_set *set, uint32_t count);
/* Writes encoded_bytes where there is room. Returns the end. */
uint8_t *profile_set_write(const struct profile_set *set, uint8_t *at);
/* Appends them to batch, which shares them: the next thing is _clear or _fini. */
void profile_set_hand_out(const struct profile_set *set, struct batch *batch);

static inline struct slice profile_set_at(const struct profile_set *set, uint32_t index)
{
    const struct profile_set_entry *entry = &set->entries[index];
    return slice_of(entry->content, entry->size);
}

/* Whether they are equal. What is short, as most entries are, takes no call. */
static inline bool profile_set_is_same(const uint8_t *a, const uint8_t *b, size_t size)
{
    uint64_t word, other, differences = 0;
    if (size < sizeof(word) || size > 64)
        return size == 0 || memcmp(a, b, size) == 0;
    for (size_t left = size; left > 0;) {
        /* The last word may have been seen in part. */
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
