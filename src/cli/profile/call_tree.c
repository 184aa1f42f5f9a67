/* SPDX-License-Identifier: Apache-2.0 */
/* Merges stacks. Children are found by hash, so wide trees cost no more. One owner. */
#include "src/cli/profile/call_tree.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/cli/profile/report_limits.h"

void call_tree_init(struct call_tree *tree)
{
    *tree = (struct call_tree){.nodes = NULL};
    profile_set_init(&tree->edges, NULL);
    tree->nodes = grown_array(NULL, &tree->capacity, 1, sizeof(tree->nodes[0]));
}

void call_tree_fini(struct call_tree *tree)
{
    profile_set_fini(&tree->edges);
    mem_free(tree->nodes);
    tree->nodes = NULL;
}

void call_tree_add(struct call_tree *tree, const uint32_t *names, size_t count, int64_t value)
{
    uint32_t node = 0;
    assert(names != NULL || count == 0);
    bool is_full = tree->edges.count > CALL_TREE_NODES_MAX;
    tree->unplaced += is_full;
    tree->nodes[0].total = saturated_sum(tree->nodes[0].total, value);
    for (size_t i = is_full ? 0 : count; i > 0; i--) {
        const uint32_t edge[] = {node, names[i - 1]};
        assert(node < tree->edges.count);
        node = profile_set_add(&tree->edges, slice_of(edge, sizeof(edge)));
        tree->nodes =
            grown_array(tree->nodes, &tree->capacity, tree->edges.count, sizeof(tree->nodes[0]));
        tree->nodes[node].parent = edge[0];
        tree->nodes[node].name = edge[1];
        tree->nodes[node].total = saturated_sum(tree->nodes[node].total, value);
    }
    tree->nodes[node].self = saturated_sum(tree->nodes[node].self, value);
}
