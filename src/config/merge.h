/* SPDX-License-Identifier: Apache-2.0 */
/* Later sources over earlier ones, and "a::b" keys as nested maps. Main thread. */
#pragma once

#include <stddef.h>

#include "src/config/node.h"

struct loader;

/* Maps merge deeply, anything else replaces; null replaces a whole map. Either may be changed and
 * becomes part of the result. */
struct node *merge_trees(struct loader *loader, struct node *base, struct node *over);
/* The same tree with every "a::b: x" as "a: {b: x}", outside lists. depth is that of node. */
struct node *merge_nested_keys(struct loader *loader, struct node *node, size_t depth);
