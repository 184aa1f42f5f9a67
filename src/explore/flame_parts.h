/* SPDX-License-Identifier: Apache-2.0 */
/* What the reading of samples (flame_read.c) and the drawing (flame_draw.c) share: a tree's memory,
 * the names of its frames, and the types of its samples. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/explore/flame_tree.h"
#include "src/explore/flame_trie.h"

enum {
    FLAME_TYPE_TEXT_MAX = 160,   /* bytes of a type's name or unit */
    FLAME_PATIENCE = 4096,       /* pieces of work between two looks at the clock */
    FLAME_NAME_BYTES_MAX = 1024, /* of a function's name as it is shown; longer ones are cut */
};

struct flame_weight {
    int64_t value;
    uint64_t samples;
};

/* Of the types that could be drawn, the lowest that has samples is. */
enum flame_rank { FLAME_CPU_TIME, FLAME_CPU_COUNT, FLAME_WALL, FLAME_OTHER };

struct flame_type_row {
    struct flame_type counts;
    char type[FLAME_TYPE_TEXT_MAX];
    char unit[FLAME_TYPE_TEXT_MAX];
    enum flame_rank rank;
    bool is_asked_for;
    struct scratch weights; /* struct flame_weight by node and side, what the node has itself */
};

struct flame_name {
    size_t offset; /* in name_bytes */
    uint32_t size;
    uint32_t hash;
};

struct flame_tree {
    struct scratch own;             /* this struct */
    struct flame_settings settings; /* its type is in asked */
    char asked[FLAME_TYPE_TEXT_MAX];
    struct flame_memory memory;
    struct flame_trie trie;
    struct scratch name_bytes;
    struct scratch names; /* struct flame_name; 0 is the root's */
    struct scratch name_slots;
    size_t name_bytes_used;
    uint32_t names_count;
    uint32_t name_slots_count;
    uint64_t seed;
    struct flame_type_row types[FLAME_TYPES_MAX];
    size_t types_count;
    struct flame_type *sorted; /* for flame_tree_types */
    struct flame_type sorted_room[FLAME_TYPES_MAX];
    /* The lowest rank of the types that are asked for and have samples: higher ones will not be
     * drawn. */
    enum flame_rank best_rank;
    uint64_t patience; /* work left until the clock is looked at */
    bool is_cut;       /* a stack was deeper than FLAME_DEPTH_MAX */
};

/* Whether the work must end, asked of the owner now and then; `pieces` of it have been done. */
static inline bool flame_must_stop(struct flame_tree *tree, uint64_t pieces)
{
    if (tree->settings.must_stop == NULL)
        return false;
    if (tree->patience > pieces) {
        tree->patience -= pieces;
        return false;
    }
    tree->patience = FLAME_PATIENCE;
    return tree->settings.must_stop(tree->settings.arg);
}

static inline struct slice flame_name_at(const struct flame_tree *tree, uint32_t name)
{
    const struct flame_name *names = tree->names.memory;
    if (name == 0)
        return slice_of_text("all");
    return slice_of((const uint8_t *)tree->name_bytes.memory + names[name].offset,
                    names[name].size);
}

/* The number of a name; 0: no function has it. */
uint32_t flame_name_find(const struct flame_tree *tree, struct slice name);
/* The same, which is added if it is new. 0: no memory. */
uint32_t flame_name_add(struct flame_tree *tree, struct slice name);
/* The row that is drawn; NULL: none has samples. */
const struct flame_type_row *flame_tree_row(const struct flame_tree *tree);

/* Sums saturate. */
static inline int64_t flame_sum(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return a > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}
