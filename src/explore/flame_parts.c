/* SPDX-License-Identifier: Apache-2.0 */
/* A tree's memory, the names of its frames, and the types of its samples. Owner's thread. */
#include "src/explore/flame_parts.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { NAME_SLOTS_FIRST = 256 };

struct flame_tree *flame_tree_create(const struct flame_settings *settings)
{
    assert(settings->sides >= 1 && settings->sides <= FLAME_SIDES_MAX);
    struct flame_memory memory = {.budget = settings->budget, .max_bytes = settings->bytes_max};
    struct scratch own = {.bytes = 0};
    struct flame_tree *tree = flame_room(&memory, &own, sizeof(*tree));
    if (tree == NULL)
        return NULL;
    tree->settings = *settings;
    tree->memory = memory;
    tree->own = own;
    size_t size =
        settings->type.size < FLAME_TYPE_TEXT_MAX ? settings->type.size : FLAME_TYPE_TEXT_MAX - 1;
    for (size_t i = 0; i < size; i++)
        tree->asked[i] = (char)tolower(settings->type.data[i]);
    tree->settings.type = slice_of(tree->asked, size);
    flame_trie_init(&tree->trie);
    tree->seed = (uint64_t)(random_uniform() * 0x1p53);
    tree->names_count = 1;
    tree->patience = FLAME_PATIENCE;
    tree->sorted = tree->sorted_room;
    tree->best_rank = FLAME_OTHER;
    return tree;
}

void flame_tree_destroy(struct flame_tree *tree)
{
    if (tree == NULL)
        return;
    flame_trie_fini(&tree->trie, &tree->memory);
    flame_release(&tree->memory, &tree->name_bytes);
    flame_release(&tree->memory, &tree->names);
    flame_release(&tree->memory, &tree->name_slots);
    for (size_t i = 0; i < tree->types_count; i++)
        flame_release(&tree->memory, &tree->types[i].weights);
    struct scratch own = tree->own;
    struct flame_memory memory = tree->memory;
    assert(memory.used_bytes == own.bytes);
    flame_release(&memory, &own);
}

static uint32_t name_hash(const struct flame_tree *tree, struct slice name)
{
    return (uint32_t)XXH3_64bits_withSeed(name.data, name.size, tree->seed);
}

uint32_t flame_name_find(const struct flame_tree *tree, struct slice name)
{
    const uint32_t *slots = tree->name_slots.memory;
    const struct flame_name *names = tree->names.memory;
    uint32_t hash = name_hash(tree, name);
    if (slots == NULL)
        return 0;
    for (uint32_t at = hash & (tree->name_slots_count - 1); slots[at] != 0;
         at = (at + 1) & (tree->name_slots_count - 1))
        if (names[slots[at]].hash == hash && slice_equal(flame_name_at(tree, slots[at]), name))
            return slots[at];
    return 0;
}

static void put_name_slot(uint32_t *slots, uint32_t count, uint32_t hash, uint32_t name)
{
    uint32_t at = hash & (count - 1);
    while (slots[at] != 0)
        at = (at + 1) & (count - 1);
    slots[at] = name;
}

uint32_t flame_name_add(struct flame_tree *tree, struct slice name)
{
    struct flame_memory *memory = &tree->memory;
    uint32_t known = flame_name_find(tree, name);
    if (known != 0)
        return known;
    if (2 * (uint64_t)tree->names_count >= tree->name_slots_count) {
        uint32_t wanted =
            tree->name_slots_count > 0 ? 2 * tree->name_slots_count : NAME_SLOTS_FIRST;
        struct scratch fresh = {.bytes = 0};
        uint32_t *slots = flame_room(memory, &fresh, wanted * sizeof(slots[0]));
        const struct flame_name *names = tree->names.memory;
        if (slots == NULL)
            return 0;
        for (uint32_t i = 1; i < tree->names_count; i++)
            put_name_slot(slots, wanted, names[i].hash, i);
        flame_release(memory, &tree->name_slots);
        tree->name_slots = fresh;
        tree->name_slots_count = wanted;
    }
    uint8_t *bytes = flame_room(memory, &tree->name_bytes, tree->name_bytes_used + name.size);
    struct flame_name *names =
        flame_room(memory, &tree->names, (tree->names_count + (size_t)1) * sizeof(names[0]));
    if (bytes == NULL || names == NULL)
        return 0;
    uint32_t added = tree->names_count++;
    memcpy(bytes + tree->name_bytes_used, name.data, name.size);
    names[added] = (struct flame_name){.offset = tree->name_bytes_used,
                                       .size = (uint32_t)name.size,
                                       .hash = name_hash(tree, name)};
    tree->name_bytes_used += name.size;
    put_name_slot(tree->name_slots.memory, tree->name_slots_count, names[added].hash, added);
    return added;
}

static uint64_t samples_of(const struct flame_type *type)
{
    return type->samples[0] + type->samples[1];
}

const struct flame_type_row *flame_tree_row(const struct flame_tree *tree)
{
    const struct flame_type_row *best = NULL;
    for (size_t i = 0; i < tree->types_count; i++) {
        const struct flame_type_row *row = &tree->types[i];
        if (row->is_asked_for && samples_of(&row->counts) > 0 &&
            (best == NULL || row->rank < best->rank ||
             (row->rank == best->rank && samples_of(&row->counts) > samples_of(&best->counts))))
            best = row;
    }
    return best;
}

const struct flame_type *flame_tree_type(const struct flame_tree *tree)
{
    const struct flame_type_row *row = flame_tree_row(tree);
    return row != NULL ? &row->counts : NULL;
}

static int compare_types(const void *a, const void *b)
{
    const struct flame_type *left = a;
    const struct flame_type *right = b;
    if (samples_of(left) != samples_of(right))
        return samples_of(left) < samples_of(right) ? 1 : -1;
    int order = slice_compare(left->type, right->type);
    return order != 0 ? order : slice_compare(left->unit, right->unit);
}

size_t flame_tree_types(const struct flame_tree *tree, const struct flame_type **ret_types)
{
    struct flame_type *sorted = tree->sorted;
    size_t count = 0;
    for (size_t i = 0; i < tree->types_count; i++)
        if (samples_of(&tree->types[i].counts) > 0)
            sorted[count++] = tree->types[i].counts;
    qsort(sorted, count, sizeof(sorted[0]), compare_types);
    *ret_types = sorted;
    return count;
}
