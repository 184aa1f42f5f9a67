/* SPDX-License-Identifier: Apache-2.0 */
/* Merging. Recursion follows the tree, whose depth CONFIG_DEPTH_MAX bounds. Main thread. */
#include "src/config/merge.h"

#include <assert.h>
#include <string.h>

#include "src/config/config_limits.h"
#include "src/config/feature_gates.h"
#include "src/config/loader.h"

/* The alpha gate confmap.enableMergeAppendOption: these lists grow instead of being replaced. */
static bool is_appended(const struct loader *loader, const struct path *path)
{
    if (!feature_gate_is_enabled(loader->gates, GATE_MERGE_APPEND) || path->key == NULL)
        return false;
    const struct path *first = path;
    while (first->parent != NULL && first->parent->parent != NULL)
        first = first->parent;
    if (first == path || first->key == NULL || strcmp(first->key, "service") != 0)
        return false;
    if (strcmp(path->key, "extensions") == 0)
        return path->parent == first;
    return strcmp(path->key, "receivers") == 0 || strcmp(path->key, "exporters") == 0;
}

static struct node *merge_at(struct loader *loader, struct node *base, struct node *over,
                             const struct path *path)
{
    if (base->kind == NODE_LIST && over->kind == NODE_LIST && is_appended(loader, path)) {
        for (size_t i = 0; i < over->count && base->count < CONFIG_REFERENCES_MAX; i++) {
            struct node *value = over->entries[i].value;
            bool is_present = false;
            for (size_t j = 0; j < base->count; j++) {
                const struct node *element = base->entries[j].value;
                is_present |= element->kind == NODE_TEXT && value->kind == NODE_TEXT &&
                              strcmp(element->text, value->text) == 0;
            }
            if (!is_present)
                node_append(&loader->arena, base, value);
        }
        return base;
    }
    if (base->kind != NODE_MAP || over->kind != NODE_MAP)
        return over;
    for (size_t i = 0; i < over->count; i++) {
        struct node_entry *entry = node_find(base, over->entries[i].key);
        if (entry == NULL) {
            node_add(&loader->arena, base, over->entries[i]);
            continue;
        }
        struct path inner = {.parent = path, .key = entry->key};
        entry->value = merge_at(loader, entry->value, over->entries[i].value, &inner);
        if (entry->value == over->entries[i].value)
            entry->position = over->entries[i].position;
    }
    return base;
}

struct node *merge_trees(struct loader *loader, struct node *base, struct node *over)
{
    struct path root = {.parent = NULL};
    return merge_at(loader, base, over, &root);
}

/* How many maps wrap_entry makes of a key. */
static size_t count_maps(const char *key)
{
    size_t count = 0;
    for (; *key != '\0'; key++)
        if (key[0] == ':' && key[1] == ':') {
            count++;
            key++;
        }
    return count;
}

/* The entry "a::b::c: value" as "a: {b: {c: value}}", for keys of few maps. */
static bool wrap_entry(struct loader *loader, struct node_entry *entry)
{
    char *key = loader_copy_text(loader, entry->key);
    for (;;) {
        char *last = NULL;
        for (char *next = strstr(key, "::"); next != NULL; next = strstr(next + 2, "::"))
            last = next;
        if (last == NULL)
            break;
        struct node *map = loader_try_node(loader, NODE_MAP, entry->position);
        if (map == NULL)
            return false;
        *last = '\0';
        node_add(&loader->arena, map,
                 (struct node_entry){
                     .key = last + 2, .position = entry->position, .value = entry->value});
        entry->value = map;
    }
    entry->key = key;
    return true;
}

static void report_depth(struct loader *loader, struct position position)
{
    loader_problem(loader, position, NULL, "lists and maps nest deeper than %d", CONFIG_DEPTH_MAX);
}

struct node *merge_nested_keys(struct loader *loader, struct node *node, size_t depth)
{
    if (node->kind != NODE_MAP)
        return node;
    if (depth >= CONFIG_DEPTH_MAX) {
        report_depth(loader, node->position);
        node->kind = NODE_BROKEN;
        return node;
    }
    bool has_nested_keys = false;
    for (size_t i = 0; i < node->count; i++)
        has_nested_keys |= strstr(node->entries[i].key, "::") != NULL;
    if (has_nested_keys) {
        /* Adds the entries again one by one, since each may merge with an earlier one. */
        struct node_entry *entries = node->entries;
        size_t count = node->count;
        node->entries = NULL;
        node->count = 0;
        node->capacity = 0;
        node->slots = NULL;
        node->slots_count = 0;
        for (size_t i = 0; i < count; i++) {
            if (depth + count_maps(entries[i].key) >= CONFIG_DEPTH_MAX) {
                report_depth(loader, entries[i].position);
                continue;
            }
            if (!wrap_entry(loader, &entries[i])) {
                loader_problem(loader, entries[i].position, NULL,
                               "the configuration has more than %d values", CONFIG_NODES_MAX);
                break;
            }
            struct node_entry *twin = node_find(node, entries[i].key);
            if (twin != NULL)
                twin->value = merge_trees(loader, twin->value, entries[i].value);
            else
                node_add(&loader->arena, node, entries[i]);
        }
    }
    for (size_t i = 0; i < node->count; i++)
        node->entries[i].value = merge_nested_keys(loader, node->entries[i].value, depth + 1);
    return node;
}
