/* SPDX-License-Identifier: Apache-2.0 */
/* Setters of lists of texts, of headers, and of values of any type. Main thread. */
#include <assert.h>
#include <string.h>

#include "src/base/limits.h"
#include "src/config/decode.h"
#include "src/config/loader.h"

static size_t count_commas(const char *text)
{
    assert(text != NULL);
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == ',' ? 1u : 0u;
    return count;
}

/* "a,b" is a list of two, "" an empty one. */
static void split_text(const struct site *site, const struct node *node, const char *text,
                       struct config_texts *texts)
{
    struct loader *loader = site->loader;
    assert(text != NULL && texts != NULL);
    if (!loader_charge_expanded(loader, strlen(text))) {
        loader_problem(loader, node->position, site->path, "found too many long lists");
        return;
    }
    size_t count = *text != '\0' ? count_commas(text) + 1 : 0;
    const char **parts = loader_zalloc(loader, count * sizeof(*parts));
    char *rest = loader_copy_text(loader, text);
    for (size_t i = 0; i < count; i++) {
        parts[i] = rest;
        rest += strcspn(rest, ",");
        *rest++ = '\0';
    }
    *texts = (struct config_texts){.count = count, .texts = parts};
}

void decode_texts(const struct site *site, const struct config_field *field,
                  const struct node *node, void *target)
{
    struct config_texts *texts = target;
    assert(site != NULL && node != NULL);
    assert(target != NULL);
    if (node->kind == NODE_TEXT && field->type != CONFIG_TYPE_SECRETS) {
        split_text(site, node, node->text, texts);
        return;
    }
    if (node->kind == NODE_NULL) {
        if (node->reference != NULL)
            *texts = (struct config_texts){.count = 0};
        return;
    }
    if (node->kind != NODE_LIST) {
        decode_mismatch(site, field, node, "a list of texts");
        return;
    }
    const char **parts = loader_zalloc(site->loader, node->count * sizeof(*parts));
    for (size_t i = 0; i < node->count; i++) {
        struct path path = {.parent = site->path, .index = i};
        struct site element = *site;
        element.path = &path;
        parts[i] = "";
        decode_text(&element, field, node->entries[i].value, &parts[i]);
    }
    *texts = (struct config_texts){.count = node->count, .texts = parts};
}

static void decode_header_map(const struct site *site, const struct config_field *field,
                              const struct node *map, struct config_pair *pairs)
{
    assert(map->count == 0 || pairs != NULL);
    assert(map->kind == NODE_MAP);
    for (size_t i = 0; i < map->count; i++) {
        const struct node_entry *entry = &map->entries[i];
        struct path path = {.parent = site->path, .key = entry->key};
        struct site element = *site;
        element.path = &path;
        pairs[i] = (struct config_pair){.key = entry->key, .value = ""};
        decode_text(&element, field, entry->value, &pairs[i].value);
    }
}

/* One element {name: …, value: …}. */
static void decode_header_element(const struct site *site, const struct config_field *field,
                                  const struct node *node, struct config_pair *pair)
{
    assert(pair != NULL);
    *pair = (struct config_pair){.key = "", .value = ""};
    const struct node *name = node_value(node, "name");
    const struct node *value = node_value(node, "value");
    size_t known = (name != NULL ? 1u : 0u) + (value != NULL ? 1u : 0u);
    if (node->kind != NODE_MAP || node->count != known || name == NULL) {
        decode_mismatch(site, field, node, "a map with the keys name and value");
        return;
    }
    struct path name_path = {.parent = site->path, .key = "name"};
    struct path value_path = {.parent = site->path, .key = "value"};
    struct site inner = *site;
    inner.path = &name_path;
    decode_text(&inner, field, name, &pair->key);
    inner.path = &value_path;
    if (value != NULL)
        decode_text(&inner, field, value, &pair->value);
}

static void decode_header_list(const struct site *site, const struct config_field *field,
                               const struct node *list, struct config_pair *pairs)
{
    struct node names = {.kind = NODE_MAP};
    assert(list->kind == NODE_LIST);
    for (size_t i = 0; i < list->count; i++) {
        struct path path = {.parent = site->path, .index = i};
        struct site element = *site;
        struct node *node = list->entries[i].value;
        element.path = &path;
        decode_header_element(&element, field, node, &pairs[i]);
        if (pairs[i].key[0] == '\0')
            continue;
        if (node_find(&names, pairs[i].key) == NULL)
            node_add(&site->loader->arena, &names,
                     (struct node_entry){.key = pairs[i].key, .value = node});
        else
            loader_problem(site->loader, node->position, &path,
                           "duplicate keys in map-style list: [%s]; expected each name once",
                           pairs[i].key);
    }
}

void decode_headers(const struct site *site, const struct config_field *field,
                    const struct node *node, void *target)
{
    struct config_pairs *headers = target;
    assert(site != NULL && node != NULL);
    assert(target != NULL);
    if (node->kind == NODE_NULL) {
        if (node->reference != NULL)
            *headers = (struct config_pairs){.count = 0};
        return;
    }
    bool is_list = node->kind == NODE_LIST;
    if (!is_list && node->kind != NODE_MAP) {
        decode_mismatch(site, field, node, "a map of texts, or a list of {name: …, value: …}");
        return;
    }
    struct config_pair *pairs = loader_zalloc(site->loader, node->count * sizeof(*pairs));
    if (is_list)
        decode_header_list(site, field, node, pairs);
    else
        decode_header_map(site, field, node, pairs);
    *headers = (struct config_pairs){.count = node->count, .pairs = pairs};
}

static void copy_value(struct loader *loader, const struct node *node, struct config_value *value)
{
    static const enum config_value_type types[] = {
        [NODE_NULL] = CONFIG_VALUE_NULL,   [NODE_BOOL] = CONFIG_VALUE_BOOL,
        [NODE_INT] = CONFIG_VALUE_INT,     [NODE_DOUBLE] = CONFIG_VALUE_DOUBLE,
        [NODE_TEXT] = CONFIG_VALUE_TEXT,   [NODE_TIME] = CONFIG_VALUE_NULL,
        [NODE_LIST] = CONFIG_VALUE_LIST,   [NODE_MAP] = CONFIG_VALUE_MAP,
        [NODE_BROKEN] = CONFIG_VALUE_NULL,
    };
    assert(value != NULL);
    *value = (struct config_value){.type = types[node->kind],
                                   .boolean = node->boolean,
                                   .integer = node->integer,
                                   .real = node->real,
                                   .text = node->kind == NODE_TEXT ? node->text : NULL,
                                   .count = node->count};
    if (node->count == 0)
        return;
    struct config_value *items = loader_zalloc(loader, node->count * sizeof(*items));
    const char **keys = loader_zalloc(loader, node->count * sizeof(*keys));
    for (size_t i = 0; i < node->count; i++) {
        copy_value(loader, node->entries[i].value, &items[i]);
        keys[i] = node->entries[i].key;
    }
    value->items = items;
    value->keys = node->kind == NODE_MAP ? keys : NULL;
}

static void refuse_times(const struct site *site, const struct node *node)
{
    assert(node != NULL);
    if (node->kind == NODE_TIME)
        loader_problem(site->loader, node->position, site->path,
                       "found %s, expected any other value; put it in quotes to make it a text",
                       node_describe(node).text);
    for (size_t i = 0; i < node->count; i++) {
        struct path path = {.parent = site->path, .key = node->entries[i].key, .index = i};
        struct site inner = *site;
        inner.path = &path;
        refuse_times(&inner, node->entries[i].value);
    }
}

void decode_value(const struct site *site, const struct config_field *field,
                  const struct node *node, void *target)
{
    const struct config_value **value = target;
    assert(site != NULL && node != NULL);
    assert(target != NULL);
    (void)field;
    struct config_value *copy = loader_zalloc(site->loader, sizeof(*copy));
    refuse_times(site, node);
    copy_value(site->loader, node, copy);
    *value = copy;
}
