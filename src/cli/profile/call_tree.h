/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of names, merged from the root: the input of flame graphs and function tables. A node
 * always comes after its parent; node 0 is the root. One owner. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/profiles/otlp/profile_numbers.h"
#include "src/profiles/otlp/profile_set.h"

struct call_node {
    uint32_t parent;
    uint32_t name;
    int64_t self;
    int64_t total; /* including callees */
};

struct call_tree {
    struct profile_set edges; /* a node's content: its parent and its name */
    struct call_node *nodes;  /* edges.count of them */
    uint32_t capacity;
    uint64_t unplaced; /* stacks added after CALL_TREE_NODES_MAX was reached: only the root has
                          their values */
};

void call_tree_init(struct call_tree *tree);
void call_tree_fini(struct call_tree *tree);
/* names: leaf first. */
void call_tree_add(struct call_tree *tree, const uint32_t *names, size_t count, int64_t value);
