/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the steps of an error down the tree. Main thread. */
#include "src/config/place.h"

#include <assert.h>

/* A list or map begins in the line of its key, not in that of its first element. */
static struct position position_of(const struct node_entry *entry)
{
    const struct node *value = entry->value;
    assert(value != NULL);
    bool is_scalar =
        value->kind != NODE_MAP && value->kind != NODE_LIST && value->kind != NODE_NULL;
    return is_scalar ? value->position : entry->position;
}

static const struct node_entry *find_entry(const struct node *node, struct error_step step)
{
    if (node == NULL)
        return NULL;
    if (step.key != NULL)
        return node_find(node, step.key);
    bool has_elements = node->kind == NODE_MAP || node->kind == NODE_LIST;
    return has_elements && step.index < node->count ? &node->entries[step.index] : NULL;
}

void place_find(const struct error *error, const struct node *section, struct position position,
                const struct path *path, struct place *ret_place)
{
    assert(error != NULL && error->steps_count <= ERROR_STEPS_MAX);
    assert(ret_place != NULL);
    const struct node *node = section;
    ret_place->position = position;
    ret_place->path = path;
    for (size_t i = error->steps_count; i > 0; i--) {
        struct error_step step = error->steps[i - 1];
        const struct node_entry *entry = find_entry(node, step);
        /* Elements of a text that was split at commas have no place of their own. */
        if (step.key == NULL && entry == NULL)
            break;
        if (entry != NULL)
            ret_place->position = position_of(entry);
        struct path *inner = &ret_place->paths[i - 1];
        *inner = (struct path){.parent = ret_place->path,
                               .key = step.key != NULL ? step.key : entry->key,
                               .index = step.index};
        ret_place->path = inner;
        node = entry != NULL ? entry->value : NULL;
    }
}
