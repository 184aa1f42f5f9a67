/* SPDX-License-Identifier: Apache-2.0 */
/* A child is found by the hash of its parent and name, so that wide trees cost no more than narrow
 * ones. Its slot holds its number and eight bits of the hash; the rest stands in the node. Owner's
 * thread. */
#include "src/explore/flame_trie.h"

#include <assert.h>

#include "src/base/random.h"
#include "src/explore/flame_tree.h"

enum {
    SLOTS_FIRST = 1024,
    SLOTS_LARGE = 1 << 16,
    SCRATCH_FIRST = 256,
    NUMBER_BITS = 24, /* of a slot of a trie: below FLAME_NODES_MAX */
};

struct pair_slot {
    uint32_t first;
    uint32_t second;
    uint32_t number; /* 0: free */
};

/* To what a scratch grows that has fewer bytes; 0: beyond the limit. */
static size_t grown_bytes(const struct flame_memory *memory, const struct scratch *scratch,
                          size_t bytes)
{
    size_t wanted = scratch->bytes > 0 ? scratch->bytes : SCRATCH_FIRST;
    if (bytes > memory->max_bytes)
        return 0;
    while (wanted < bytes)
        wanted *= 2;
    return wanted <= memory->max_bytes - memory->used_bytes ? wanted : 0;
}

void *flame_grow(struct flame_memory *memory, struct scratch *scratch, size_t bytes)
{
    size_t before = scratch->bytes;
    size_t wanted = grown_bytes(memory, scratch, bytes);
    void *room = wanted > 0 ? scratch_grow(scratch, memory->budget, wanted) : NULL;
    memory->used_bytes += scratch->bytes - before;
    return room;
}

void *flame_room_unset(struct flame_memory *memory, struct scratch *scratch, size_t bytes)
{
    size_t before = scratch->bytes;
    if (bytes <= before && scratch->memory != NULL)
        return scratch->memory;
    size_t wanted = grown_bytes(memory, scratch, bytes);
    void *room = wanted > 0 ? scratch_reserve(scratch, memory->budget, wanted, 0) : NULL;
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

static uint64_t hash_pair(uint64_t seed, uint32_t first, uint32_t second)
{
    uint64_t mixed = ((uint64_t)first << 32 | second) ^ seed;
    mixed *= 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 32;
    return mixed * 0xd6e8feb86659fd93u;
}

/* The pair's slot, or the free one that it would have. */
static struct pair_slot *find_slot(struct pair_slot *slots, uint32_t slots_count, uint64_t seed,
                                   uint32_t first, uint32_t second)
{
    uint32_t at = (uint32_t)(hash_pair(seed, first, second) >> 32) & (slots_count - 1);
    while (slots[at].number != 0 && (slots[at].first != first || slots[at].second != second))
        at = (at + 1) & (slots_count - 1);
    return &slots[at];
}

/* Makes room for one more; slots are at most half full. */
static bool reserve_pair(struct flame_pairs *pairs, struct flame_memory *memory)
{
    if (2 * ((uint64_t)pairs->count + 1) < pairs->slots_count)
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
    if (!reserve_pair(pairs, memory))
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
    *trie = (struct flame_trie){.count = 1, .seed = (uint64_t)(random_uniform() * 0x1p53)};
}

void flame_trie_fini(struct flame_trie *trie, struct flame_memory *memory)
{
    flame_release(memory, &trie->nodes);
    flame_release(memory, &trie->names);
    flame_release(memory, &trie->slots);
    trie->slots_count = 0;
    trie->count = 1;
    trie->names_count = 0;
}

/* Where a node's number is looked for, and what of the hash stands above the number. */
struct edge {
    uint32_t at;
    uint32_t tag;
};

static struct edge edge_of(const struct flame_trie *trie, uint32_t parent, uint32_t name)
{
    uint64_t hash = hash_pair(trie->seed, parent, name);
    return (struct edge){
        .at = (uint32_t)(hash >> 32) & (trie->slots_count - 1),
        .tag = (uint32_t)(hash >> 56) << NUMBER_BITS,
    };
}

static void put_edge(struct flame_trie *trie, struct edge edge, uint32_t node)
{
    uint32_t *slots = trie->slots.memory;
    while (slots[edge.at] != 0)
        edge.at = (edge.at + 1) & (trie->slots_count - 1);
    slots[edge.at] = edge.tag | node;
}

/* The child's slot, or the free one that it would have. */
static uint32_t *find_edge(const struct flame_trie *trie, struct edge edge, uint32_t parent,
                           uint32_t name)
{
    const uint32_t tag_mask = ~(uint32_t)(FLAME_NODES_MAX - 1);
    const struct flame_node *nodes = flame_trie_nodes(trie);
    uint32_t *slots = trie->slots.memory;
    for (;; edge.at = (edge.at + 1) & (trie->slots_count - 1)) {
        uint32_t slot = slots[edge.at];
        if (slot == 0)
            return &slots[edge.at];
        const struct flame_node *node = &nodes[slot & (FLAME_NODES_MAX - 1)];
        if ((slot & tag_mask) == edge.tag && node->parent == parent && node->name == name)
            return &slots[edge.at];
    }
}

/* Has slots for so many nodes; they are at most half full. */
static bool reserve_slots(struct flame_trie *trie, struct flame_memory *memory, uint64_t count)
{
    const struct flame_node *nodes = flame_trie_nodes(trie);
    struct scratch fresh = {.bytes = 0};
    uint64_t wanted = trie->slots_count > 0 ? trie->slots_count : SLOTS_FIRST;
    if (2 * count < trie->slots_count)
        return true;
    while (wanted <= 2 * count)
        wanted *= wanted < SLOTS_LARGE ? 4 : 2;
    if (flame_room(memory, &fresh, wanted * sizeof(uint32_t)) == NULL)
        return false;
    flame_release(memory, &trie->slots);
    trie->slots = fresh;
    trie->slots_count = (uint32_t)wanted;
    for (uint32_t node = 1; node < trie->count; node++)
        put_edge(trie, edge_of(trie, nodes[node].parent, nodes[node].name), node);
    return true;
}

/* Makes room for another node. */
static bool reserve_node(struct flame_trie *trie, struct flame_memory *memory)
{
    struct flame_node *nodes =
        flame_room_unset(memory, &trie->nodes, (trie->count + (size_t)1) * sizeof(nodes[0]));
    if (nodes == NULL || trie->count == FLAME_NODES_MAX)
        return false;
    if (trie->count == 1)
        nodes[0] = (struct flame_node){.parent = 0};
    return reserve_slots(trie, memory, trie->count + UINT64_C(1));
}

void flame_trie_expect(struct flame_trie *trie, struct flame_memory *memory, uint32_t times)
{
    uint64_t nodes = (uint64_t)trie->count * times;
    size_t names = (size_t)trie->names_count * times;
    /* What is refused room holds what it held, and grows when it must. */
    bool has_room = nodes < FLAME_NODES_MAX;
    has_room = has_room &&
               flame_room_unset(memory, &trie->nodes, nodes * sizeof(struct flame_node)) != NULL;
    has_room = has_room && flame_room_unset(memory, &trie->names, names * sizeof(uint32_t)) != NULL;
    if (has_room && !reserve_slots(trie, memory, nodes))
        assert(trie->count == 1 || 2 * (uint64_t)trie->count < trie->slots_count);
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
    assert(place->used > 0 && place->used < place->size && !place->is_growing);
    if (!reserve_node(trie, memory))
        return false;
    uint32_t upper = trie->count++;
    struct flame_node *nodes = trie->nodes.memory;
    struct flame_node *lower = &nodes[place->node];
    struct edge edge = edge_of(trie, lower->parent, lower->name);
    uint32_t *slot = find_edge(trie, edge, lower->parent, lower->name);
    assert(*slot == (edge.tag | place->node));
    *slot = edge.tag | upper;
    nodes[upper] = *lower;
    nodes[upper].size = (uint16_t)place->used;
    nodes[upper].depth = (uint16_t)(lower->depth - (lower->size - place->used));
    lower->parent = upper;
    lower->begin += place->used;
    lower->size = (uint16_t)(lower->size - place->used);
    lower->name = flame_trie_names(trie)[lower->begin];
    put_edge(trie, edge_of(trie, upper, lower->name), place->node);
    *place = flame_trie_place(trie, upper);
    return true;
}

bool flame_trie_turn(struct flame_trie *trie, struct flame_memory *memory,
                     struct flame_place *place, uint32_t name)
{
    uint32_t *names =
        flame_room_unset(memory, &trie->names, (trie->names_count + (size_t)1) * sizeof(names[0]));
    if (names == NULL || trie->names_count == UINT32_MAX)
        return false;
    if (place->is_growing)
        return flame_trie_step(trie, memory, place, name);
    if (place->used < place->size && !split(trie, memory, place))
        return false;
    if (!reserve_node(trie, memory))
        return false;
    struct edge edge = edge_of(trie, place->node, name);
    uint32_t *slot = find_edge(trie, edge, place->node, name);
    if (*slot == 0) {
        struct flame_node *nodes = trie->nodes.memory;
        uint32_t child = trie->count++;
        nodes[child] = (struct flame_node){.parent = place->node,
                                           .name = name,
                                           .begin = trie->names_count,
                                           .size = 1,
                                           .depth = (uint16_t)(nodes[place->node].depth + 1)};
        names[trie->names_count++] = name;
        *slot = edge.tag | child;
        *place = flame_trie_place(trie, child);
        place->is_growing = true;
    } else {
        *place = flame_trie_place(trie, *slot & (FLAME_NODES_MAX - 1));
        place->used = 1;
    }
    return true;
}

uint32_t flame_trie_end(struct flame_trie *trie, struct flame_memory *memory,
                        struct flame_place *place)
{
    if (place->is_growing) {
        struct flame_node *node = (struct flame_node *)trie->nodes.memory + place->node;
        assert(node->depth - node->size + place->size <= FLAME_DEPTH_MAX);
        node->depth = (uint16_t)(node->depth - node->size + place->size);
        node->size = (uint16_t)place->size;
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
