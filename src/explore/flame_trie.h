/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as a tree of numbered names, and the memory of flame trees: every array of one grows here,
 * charged to the budget and within one limit. A run of frames without a branch is one node, so that
 * a stack costs a few look-ups, not one per frame: a node stands for the place where its run ends,
 * and keeps its number when the run is split. Node 0 is the root, where no frame is. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/scratch.h"

struct budget;

struct flame_memory {
    struct budget *budget; /* NULL: not charged */
    uint64_t used_bytes;
    uint64_t max_bytes;
};

/* flame_room when the scratch is too small. */
void *flame_grow(struct flame_memory *memory, struct scratch *scratch, size_t bytes)
    __attribute__((warn_unused_result));
/* scratch_room within the limit: the content is kept, the rest is zero. NULL: no memory. */
static inline __attribute__((warn_unused_result)) void *flame_room(struct flame_memory *memory,
                                                                   struct scratch *scratch,
                                                                   size_t bytes)
{
    if (bytes <= scratch->bytes && scratch->memory != NULL)
        return scratch->memory;
    return flame_grow(memory, scratch, bytes);
}
/* flame_room, but what is new holds anything. */
void *flame_room_unset(struct flame_memory *memory, struct scratch *scratch, size_t bytes)
    __attribute__((warn_unused_result));
void flame_release(struct flame_memory *memory, struct scratch *scratch);

/* Numbers by pairs of numbers. */
struct flame_pairs {
    struct scratch slots;
    uint32_t slots_count; /* a power of two, or 0 */
    uint32_t count;
    uint64_t seed;
};

void flame_pairs_init(struct flame_pairs *pairs);
void flame_pairs_fini(struct flame_pairs *pairs, struct flame_memory *memory);
/* Where the pair's number is; it is 0 if the pair is new, and then to be set before the next call.
 * NULL: no memory. */
uint32_t *flame_pairs_at(struct flame_pairs *pairs, struct flame_memory *memory, uint32_t first,
                         uint32_t second);

enum { FLAME_NODES_MAX = 1 << 24 };

/* Small, as they are met in any order: four fit in a cache line. */
struct flame_node {
    uint32_t parent;
    uint32_t name;  /* the first one */
    uint32_t begin; /* of its names, in `names` of the trie */
    uint16_t size;  /* how many, at least one but for the root */
    uint16_t depth; /* frames from the root to its end, at most FLAME_DEPTH_MAX */
};

struct flame_trie {
    struct scratch nodes; /* struct flame_node */
    struct scratch names; /* uint32_t */
    struct scratch slots; /* uint32_t: nodes by parent and name; see flame_trie.c */
    uint32_t slots_count; /* a power of two, or 0 */
    uint32_t count;       /* of nodes, with the root */
    uint32_t names_count;
    uint64_t seed;
};

#define FLAME_NO_NODE UINT32_MAX

void flame_trie_init(struct flame_trie *trie);
void flame_trie_fini(struct flame_trie *trie, struct flame_memory *memory);

/* It will grow to so many times what it has: then its memory grows at once, if there is any. */
void flame_trie_expect(struct flame_trie *trie, struct flame_memory *memory, uint32_t times);

static inline const struct flame_node *flame_trie_nodes(const struct flame_trie *trie)
{
    return trie->nodes.memory;
}

static inline const uint32_t *flame_trie_names(const struct flame_trie *trie)
{
    return trie->names.memory;
}

/* A place on the way down: behind the first `used` names of a node. It is valid until something
 * else walks the same trie. */
struct flame_place {
    uint32_t node;
    uint32_t begin; /* as in the node */
    uint32_t size;
    uint32_t used;
    bool is_growing; /* a new node without children, which takes further names at its end */
};

/* The end of a node. */
struct flame_place flame_trie_place(const struct flame_trie *trie, uint32_t node);
/* flame_trie_step where the way branches or begins. */
bool flame_trie_turn(struct flame_trie *trie, struct flame_memory *memory,
                     struct flame_place *place, uint32_t name);

/* Goes down to the child of that name, which is added if it is new. False: no memory. */
static inline __attribute__((warn_unused_result)) bool flame_trie_step(struct flame_trie *trie,
                                                                       struct flame_memory *memory,
                                                                       struct flame_place *place,
                                                                       uint32_t name)
{
    uint32_t *names = trie->names.memory;
    if (place->used < place->size) {
        if (names[place->begin + place->used] == name) {
            place->used++;
            return true;
        }
    } else if (place->is_growing &&
               (trie->names_count + (size_t)1) * sizeof(names[0]) <= trie->names.bytes) {
        names[trie->names_count++] = name;
        place->used = ++place->size;
        return true;
    }
    return flame_trie_turn(trie, memory, place, name);
}

/* The node that ends at the place. FLAME_NO_NODE: no memory. */
uint32_t flame_trie_end(struct flame_trie *trie, struct flame_memory *memory,
                        struct flame_place *place);

/* Goes down from the end of a node along several names; the node that ends there. */
uint32_t flame_trie_walk(struct flame_trie *trie, struct flame_memory *memory, uint32_t node,
                         const uint32_t *names, size_t count);

/* Room for the numbers of all nodes, parents before their children. False: no memory. */
bool flame_trie_order(const struct flame_trie *trie, struct flame_memory *memory,
                      struct scratch *order);
