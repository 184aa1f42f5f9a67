/* SPDX-License-Identifier: Apache-2.0 */
/* One table of a dictionary that is being built: encoded entries, each there once, with the zero
 * element (which has no bytes) always first. Equality is by bytes, so what holds indices is added
 * once they are those of the new dictionary. One owner. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/otlp/profile_bytes.h"
#include "src/slice.h"

struct profile_set_entry {
    uint32_t offset; /* in bytes */
    uint32_t size;
    uint32_t hash;
};

struct profile_set {
    struct profile_bytes bytes; /* the entries' contents, one after the other */
    struct profile_set_entry *entries;
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /* open addressing: index + 1, or 0 */
    uint32_t slots_count;
    uint64_t encoded_bytes; /* as a repeated field with a one-byte tag */
    uint64_t seed;
    uint64_t charged_bytes; /* for entries and slots */
};

void profile_set_init(struct profile_set *set, struct budget *budget);
void profile_set_fini(struct profile_set *set);
/* Back to the zero element alone; memory is kept. */
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

/* Forgets the entries from `count` on. */
void profile_set_cut(struct profile_set *set, uint32_t count);

static inline struct slice profile_set_at(const struct profile_set *set, uint32_t index)
{
    const struct profile_set_entry *entry = &set->entries[index];
    return slice_of(set->bytes.data + entry->offset, entry->size);
}
