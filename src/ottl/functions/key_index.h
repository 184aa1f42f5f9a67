/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the entries of a map that a function makes or looks through many times: n keys cost O(n).
 * In the record's memory, for one call, during which nothing else adds or removes entries. */
#pragma once

#include "src/ottl/ottl_function.h"

struct key_place {
    uint64_t hash;
    uint32_t number; /* of the entry, from 1; 0: free */
};

struct key_index {
    struct ottl_call *call;
    struct ottl_map *map;
    struct key_place *places;
    uint32_t places_count; /* a power of two; 0: few entries, which are looked through */
    uint64_t seed;
};

/* map is empty, or has entries that are not indexed. */
void key_index_init(struct key_index *index, struct ottl_call *call, struct ottl_map *map);
/* The first entry with that key, or NULL. Only entries below `count` are looked at: those that
 * key_index_put or key_index_note has added. */
struct ottl_entry *key_index_find(const struct key_index *index, struct slice key, uint32_t count);
/* Adds the entry at `number`, whose predecessors are all indexed. False: no memory; the error is
 * set. */
bool key_index_note(struct key_index *index, uint32_t number);
/* The entry with that key, which is appended if there is none, its value nil. NULL: no memory; the
 * error is set. */
struct ottl_entry *key_index_put(struct key_index *index, struct slice key);
