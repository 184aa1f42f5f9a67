/* SPDX-License-Identifier: Apache-2.0 */
/* Merges later sources over earlier ones, and turns "a::b" keys into nested maps. Main thread. */
#pragma once

#include <stddef.h>

#include "src/config/node.h"

struct loader;

/* Maps merge deeply, any other value replaces; null replaces a whole map. Both trees may be changed
 * and become part of the result. */
struct node *merge_trees(struct loader *loader, struct node *base, struct node *over);
/* Turns every "a::b: x" into "a: {b: x}", outside lists. depth is that of node. */
struct node *merge_nested_keys(struct loader *loader, struct node *node, size_t depth);
