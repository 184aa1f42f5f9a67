/* SPDX-License-Identifier: Apache-2.0 */
/* ${…} in the values of the merged tree, by the Go collector's rules: innermost first, repeated
 * until nothing changes, "$$" is "$". Main thread. */
#pragma once

#include "src/config/node.h"

struct loader;

/* Returns the tree with every reference replaced. A scalar with a reference that fails is reported
 * and becomes NODE_BROKEN. Bounded by CONFIG_EXPANSIONS_MAX rounds per scalar and
 * CONFIG_EXPANDED_BYTES_MAX in all. */
struct node *expand_tree(struct loader *loader, struct node *root);
