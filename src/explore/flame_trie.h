/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as a tree of numbered names, and the memory of flame trees: every array of one grows here,
 * charged to the budget and within one limit. A node comes after its parent; node 0 is the root.
 * One owner. */
#pragma once

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
void flame_release(struct flame_memory *memory, struct scratch *scratch);

struct flame_node {
    uint32_t parent;
    uint32_t name;
};

struct flame_trie {
    struct scratch nodes; /* struct flame_node */
    struct scratch slots; /* of the edges' hash table */
    uint32_t slots_count; /* a power of two, or 0 */
    uint32_t count;       /* of nodes, with the root */
    uint64_t seed;
};

#define FLAME_NO_NODE UINT32_MAX

void flame_trie_init(struct flame_trie *trie);
void flame_trie_fini(struct flame_trie *trie, struct flame_memory *memory);
/* The child of that name, which is added if it is new. Any numbers will do where the nodes are just
 * keys. FLAME_NO_NODE: no memory. */
uint32_t flame_trie_child(struct flame_trie *trie, struct flame_memory *memory, uint32_t parent,
                          uint32_t name);

static inline const struct flame_node *flame_trie_nodes(const struct flame_trie *trie)
{
    return trie->nodes.memory;
}
