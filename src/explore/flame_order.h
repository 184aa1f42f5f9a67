/* SPDX-License-Identifier: Apache-2.0 */
/* An order of stacks in which those that begin alike stand next to each other, so that what they
 * have in common is walked once. It is that of their bytes from the last to the first, as the root
 * is last. Good for speed alone: whatever a stack's bytes are, some order comes out, in time linear
 * to them. One owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/scratch.h"
#include "src/explore/flame_tree.h"

struct flame_memory;
struct profile_dictionary;

struct flame_order {
    struct scratch items; /* struct order_item, twice as many as have room */
    struct scratch ranges;
    uint32_t count;
};

/* Has room for so many stacks, and none yet. False: no memory. */
bool flame_order_begin(struct flame_order *order, struct flame_memory *memory, uint32_t most);
/* The stack is in the dictionary. */
void flame_order_add(struct flame_order *order, uint32_t stack);
/* Sorts them. The tree is asked when to stop. */
enum flame_result flame_order_sort(struct flame_order *order, struct flame_tree *tree,
                                   const struct profile_dictionary *dictionary);
/* index < count */
uint32_t flame_order_at(const struct flame_order *order, uint32_t index);
void flame_order_fini(struct flame_order *order, struct flame_memory *memory);
