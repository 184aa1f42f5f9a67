/* SPDX-License-Identifier: Apache-2.0 */
/* Edges are found by hash, so that wide trees cost no more than narrow ones. Owner's thread. */
#include "src/explore/flame_trie.h"

#include <assert.h>

#include "src/base/random.h"
#include "src/explore/flame_tree.h"

enum { SLOTS_FIRST = 1024, SLOTS_LARGE = 1 << 16, SCRATCH_FIRST = 256 };

struct pair_slot {
    uint32_t first;
    uint32_t second;
    uint32_t number; /* 0: free */
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

void flame_pairs_init(struct flame_pairs *pairs)
{
    *pairs = (struct flame_pairs){.seed = (uint64_t)(random_uniform() * 0x1p53)};
}

void flame_pairs_fini(struct flame_pairs *pairs, struct flame_memory *memory)
{
    flame_release(memory, &pairs->slots);
    pairs->slots_count = 0;
    pairs->count = 0;
}

/* The pair's slot, or the free one that it would have. */
static struct pair_slot *find_slot(struct pair_slot *slots, uint32_t slots_count, uint64_t seed,
                                   uint32_t first, uint32_t second)
{
    uint64_t mixed = ((uint64_t)first << 32 | second) ^ seed;
    mixed *= 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 32;
    mixed *= 0xd6e8feb86659fd93u;
    uint32_t at = (uint32_t)(mixed >> 32) & (slots_count - 1);
    while (slots[at].number != 0 && (slots[at].first != first || slots[at].second != second))
        at = (at + 1) & (slots_count - 1);
    return &slots[at];
}

/* Makes room for `more` pairs; slots are at most half full. */
static bool reserve_pairs(struct flame_pairs *pairs, struct flame_memory *memory, uint32_t more)
{
    if (2 * ((uint64_t)pairs->count + more) < pairs->slots_count)
        return true;
    struct scratch fresh = {.bytes = 0};
    const struct pair_slot *old = pairs->slots.memory;
    uint32_t growth = pairs->slots_count < SLOTS_LARGE ? 4 : 2;
    uint32_t wanted = pairs->slots_count > 0 ? growth * pairs->slots_count : SLOTS_FIRST;
    if (wanted > UINT32_MAX / 4)
        return false;
    struct pair_slot *slots = flame_room(memory, &fresh, wanted * sizeof(slots[0]));
    if (slots == NULL)
        return false;
    for (uint32_t i = 0; i < pairs->slots_count; i++)
        if (old[i].number != 0)
            *find_slot(slots, wanted, pairs->seed, old[i].first, old[i].second) = old[i];
    flame_release(memory, &pairs->slots);
    pairs->slots = fresh;
    pairs->slots_count = wanted;
    return true;
}

uint32_t *flame_pairs_at(struct flame_pairs *pairs, struct flame_memory *memory, uint32_t first,
                         uint32_t second)
{
    if (!reserve_pairs(pairs, memory, 1))
        return NULL;
    struct pair_slot *slot =
        find_slot(pairs->slots.memory, pairs->slots_count, pairs->seed, first, second);
    if (slot->number == 0) {
        *slot = (struct pair_slot){.first = first, .second = second};
        pairs->count++;
    }
    return &slot->number;
}

void flame_trie_init(struct flame_trie *trie)
{
    *trie = (struct flame_trie){.count = 1};
    flame_pairs_init(&trie->edges);
}

void flame_trie_fini(struct flame_trie *trie, struct flame_memory *memory)
{
    flame_release(memory, &trie->nodes);
    flame_release(memory, &trie->names);
    flame_pairs_fini(&trie->edges, memory);
    trie->count = 1;
    trie->names_count = 0;
}

struct flame_place flame_trie_place(const struct flame_trie *trie, uint32_t node)
{
    assert(node < trie->count);
    if (node == 0)
        return (struct flame_place){.node = 0};
    const struct flame_node *known = &flame_trie_nodes(trie)[node];
    return (struct flame_place){
        .node = node, .begin = known->begin, .size = known->size, .used = known->size};
}

/* Ends the node at the place before the rest of its names, which become its child. */
static bool split(struct flame_trie *trie, struct flame_memory *memory, struct flame_place *place)
{
    uint32_t upper = trie->count;
    struct flame_node *nodes =
        flame_room(memory, &trie->nodes, (upper + (size_t)1) * sizeof(nodes[0]));
    const uint32_t *names = flame_trie_names(trie);
    assert(place->used > 0 && place->used < place->size && !place->is_growing);
    if (nodes == NULL || !reserve_pairs(&trie->edges, memory, 2))
        return false;
    struct flame_node *lower = &nodes[place->node];
    nodes[upper] = (struct flame_node){.parent = lower->parent,
                                       .begin = lower->begin,
                                       .size = place->used,
                                       .depth = lower->depth - (place->size - place->used)};
    uint32_t *edge = flame_pairs_at(&trie->edges, memory, lower->parent, names[lower->begin]);
    assert(edge != NULL && *edge == place->node);
    *edge = upper;
    lower->parent = upper;
    lower->begin += place->used;
    lower->size -= place->used;
    edge = flame_pairs_at(&trie->edges, memory, upper, names[lower->begin]);
    assert(edge != NULL && *edge == 0);
    *edge = place->node;
    trie->count = upper + 1;
    *place = flame_trie_place(trie, upper);
    return true;
}

bool flame_trie_turn(struct flame_trie *trie, struct flame_memory *memory,
                     struct flame_place *place, uint32_t name)
{
    uint32_t *names =
        flame_room(memory, &trie->names, (trie->names_count + (size_t)1) * sizeof(names[0]));
    if (names == NULL || trie->names_count == UINT32_MAX)
        return false;
    if (place->is_growing)
        return flame_trie_step(trie, memory, place, name);
    if (place->used < place->size && !split(trie, memory, place))
        return false;
    struct flame_node *nodes =
        flame_room(memory, &trie->nodes, (trie->count + (size_t)1) * sizeof(nodes[0]));
    uint32_t *child =
        nodes != NULL ? flame_pairs_at(&trie->edges, memory, place->node, name) : NULL;
    if (child == NULL)
        return false;
    if (*child == 0) {
        *child = trie->count++;
        nodes[*child] = (struct flame_node){.parent = place->node,
                                            .begin = trie->names_count,
                                            .size = 1,
                                            .depth = nodes[place->node].depth + 1};
        names[trie->names_count++] = name;
        *place = flame_trie_place(trie, *child);
        place->is_growing = true;
    } else {
        *place = flame_trie_place(trie, *child);
        place->used = 1;
    }
    return true;
}

uint32_t flame_trie_end(struct flame_trie *trie, struct flame_memory *memory,
                        struct flame_place *place)
{
    if (place->is_growing) {
        struct flame_node *node = (struct flame_node *)trie->nodes.memory + place->node;
        node->depth += place->size - node->size;
        node->size = place->size;
        place->is_growing = false;
    }
    if (place->used < place->size && !split(trie, memory, place))
        return FLAME_NO_NODE;
    return place->node;
}

uint32_t flame_trie_walk(struct flame_trie *trie, struct flame_memory *memory, uint32_t node,
                         const uint32_t *names, size_t count)
{
    struct flame_place place = flame_trie_place(trie, node);
    for (size_t i = 0; i < count; i++)
        if (!flame_trie_step(trie, memory, &place, names[i]))
            return FLAME_NO_NODE;
    return flame_trie_end(trie, memory, &place);
}

bool flame_trie_order(const struct flame_trie *trie, struct flame_memory *memory,
                      struct scratch *order)
{
    uint32_t places[FLAME_DEPTH_MAX + 2] = {0};
    const struct flame_node *nodes = flame_trie_nodes(trie);
    uint32_t *ordered = flame_room(memory, order, trie->count * sizeof(ordered[0]));
    if (ordered == NULL)
        return false;
    places[1] = 1; /* the root */
    for (uint32_t node = 1; node < trie->count; node++)
        places[nodes[node].depth + 1]++;
    for (uint32_t depth = 1; depth < FLAME_DEPTH_MAX + 2; depth++)
        places[depth] += places[depth - 1];
    ordered[places[0]++] = 0;
    for (uint32_t node = 1; node < trie->count; node++)
        ordered[places[nodes[node].depth]++] = node;
    return true;
}
