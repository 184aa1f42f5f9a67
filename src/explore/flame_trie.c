/* SPDX-License-Identifier: Apache-2.0 */
/* Edges are found by hash, so that wide trees cost no more than narrow ones. Owner's thread. */
#include "src/explore/flame_trie.h"

#include <assert.h>
#include <stdbool.h>

#include "src/base/random.h"

enum { SLOTS_FIRST = 1024, SLOTS_LARGE = 1 << 18, SCRATCH_FIRST = 256 };

/* The hash tells most edges apart without a look at the node, and moves slots when they grow. */
struct edge_slot {
    uint32_t hash;
    uint32_t node; /* 0: free, as the root is nobody's child */
};

void *flame_grow(struct flame_memory *memory, struct scratch *scratch, size_t bytes)
{
    size_t before = scratch->bytes;
    size_t wanted = before > 0 ? before : SCRATCH_FIRST;
    if (bytes > memory->max_bytes)
        return NULL;
    while (wanted < bytes)
        wanted *= 2;
    if (wanted > memory->max_bytes - memory->used_bytes)
        return NULL;
    void *room = scratch_grow(scratch, memory->budget, wanted);
    memory->used_bytes += scratch->bytes - before;
    return room;
}

void flame_release(struct flame_memory *memory, struct scratch *scratch)
{
    assert(memory->used_bytes >= scratch->bytes);
    memory->used_bytes -= scratch->bytes;
    scratch_fini(scratch, memory->budget);
}

void flame_trie_init(struct flame_trie *trie)
{
    *trie = (struct flame_trie){.count = 1, .seed = (uint64_t)(random_uniform() * 0x1p53)};
}

void flame_trie_fini(struct flame_trie *trie, struct flame_memory *memory)
{
    flame_release(memory, &trie->nodes);
    flame_release(memory, &trie->slots);
    trie->slots_count = 0;
    trie->count = 1;
}

/* Grows the slots before they are half full. */
static bool make_slots(struct flame_trie *trie, struct flame_memory *memory)
{
    struct scratch fresh = {.bytes = 0};
    const struct edge_slot *old = trie->slots.memory;
    uint32_t growth = trie->slots_count < SLOTS_LARGE ? 4 : 2;
    uint32_t wanted = trie->slots_count > 0 ? growth * trie->slots_count : SLOTS_FIRST;
    if (wanted > UINT32_MAX / 4)
        return false;
    struct edge_slot *slots = flame_room(memory, &fresh, wanted * sizeof(slots[0]));
    if (slots == NULL)
        return false;
    for (uint32_t i = 0; i < trie->slots_count; i++) {
        uint32_t at = old[i].hash & (wanted - 1);
        if (old[i].node == 0)
            continue;
        while (slots[at].node != 0)
            at = (at + 1) & (wanted - 1);
        slots[at] = old[i];
    }
    flame_release(memory, &trie->slots);
    trie->slots = fresh;
    trie->slots_count = wanted;
    return true;
}

uint32_t flame_trie_child(struct flame_trie *trie, struct flame_memory *memory, uint32_t parent,
                          uint32_t name)
{
    assert(trie->count > 0);
    if (2 * (uint64_t)trie->count >= trie->slots_count && !make_slots(trie, memory))
        return FLAME_NO_NODE;
    uint64_t mixed = ((uint64_t)parent << 32 | name) ^ trie->seed;
    mixed *= 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 32;
    mixed *= 0xd6e8feb86659fd93u;
    uint32_t hash = (uint32_t)(mixed >> 32);
    struct edge_slot *slots = trie->slots.memory;
    uint32_t at = hash & (trie->slots_count - 1);
    for (; slots[at].node != 0; at = (at + 1) & (trie->slots_count - 1)) {
        const struct flame_node *known = &flame_trie_nodes(trie)[slots[at].node];
        if (slots[at].hash == hash && known->parent == parent && known->name == name)
            return slots[at].node;
    }
    uint32_t count = trie->count;
    struct flame_node *nodes =
        flame_room(memory, &trie->nodes, (count + (size_t)1) * sizeof(nodes[0]));
    if (nodes == NULL)
        return FLAME_NO_NODE;
    nodes[count] = (struct flame_node){.parent = parent, .name = name};
    slots[at] = (struct edge_slot){.hash = hash, .node = count};
    trie->count = count + 1;
    return count;
}
