/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of option tables as nodes. Recursion is as deep as tables are nested. */
#include "src/config/print_defaults.h"

#include <assert.h>
#include <string.h>

#include "src/config/field.h"
#include "src/config/loader.h"
#include "src/config/node.h"
#include "src/config/scalar.h"

/* New nodes stand where the map stands that they complete. */
static struct node *new_scalar(struct loader *loader, const struct node *map, const char *text,
                               bool is_text)
{
    assert(text != NULL);
    struct scalar scalar = text_to_scalar(text);
    struct node *node = loader_try_node(loader, NODE_TEXT, map->position);
    if (node == NULL)
        return NULL;
    node->text = text;
    if (is_text || scalar.kind == NODE_TEXT)
        return node;
    node->kind = scalar.kind;
    node->boolean = scalar.boolean;
    node->integer = scalar.integer;
    node->real = scalar.real;
    return node;
}

static struct node *new_leaf(struct loader *loader, const struct node *map,
                             const struct config_field *field)
{
    const char *text = field->default_text;
    bool is_text = field->type == CONFIG_TYPE_TEXT || field->type == CONFIG_TYPE_CHOICE ||
                   field->type == CONFIG_TYPE_DURATION || field->type == CONFIG_TYPE_BYTES ||
                   field->type == CONFIG_TYPE_TEXTS;
    assert(text != NULL);
    if (field->type == CONFIG_TYPE_DURATION && strcmp(text, "0") == 0)
        text = "0s";
    struct node *leaf = new_scalar(loader, map, text, is_text);
    bool is_many = strchr(text, ',') != NULL; /* the reader splits it */
    if (leaf == NULL || field->type != CONFIG_TYPE_TEXTS || is_many)
        return leaf;
    struct node *list = loader_try_node(loader, NODE_LIST, map->position);
    if (list != NULL)
        node_append(&loader->arena, list, leaf);
    return list;
}

static void add(struct loader *loader, struct node *map, const char *key, struct node *value)
{
    assert(map->kind == NODE_MAP);
    if (value != NULL)
        node_add(&loader->arena, map,
                 (struct node_entry){.key = key, .hash = node_key_hash(key), .value = value});
}

/* Absent, but on: in full. */
static struct node *new_section(struct loader *loader, const struct node *map,
                                const struct config_field *field)
{
    assert(field->type == CONFIG_TYPE_SECTION);
    bool is_optional = field->presence != CONFIG_ALWAYS;
    bool is_on = field->presence != CONFIG_NULL_ENABLES && field->presence != CONFIG_NULL_IS_OFF;
    struct node *section = is_on ? loader_try_node(loader, NODE_MAP, map->position) : NULL;
    if (section != NULL && is_optional)
        add(loader, section, "enabled", new_scalar(loader, map, "true", false));
    if (section != NULL)
        print_defaults(loader, field->fields, section);
    return section != NULL && section->count > 0 ? section : NULL;
}

static void complete_section(struct loader *loader, const struct config_field *field,
                             struct node *section)
{
    assert(field->type == CONFIG_TYPE_SECTION);
    const struct node *enabled = node_value(section, "enabled");
    bool is_off = section->kind == NODE_NULL &&
                  (field->presence == CONFIG_NULL_IS_OFF || section->reference != NULL);
    is_off |= field->presence != CONFIG_ALWAYS && enabled != NULL && !enabled->boolean;
    if (!is_off)
        print_defaults(loader, field->fields, section);
}

static void complete(struct loader *loader, const struct config_field *field, struct node *map)
{
    assert(map->kind == NODE_MAP);
    struct node *value = node_value(map, field->key);
    if (value == NULL && field->type == CONFIG_TYPE_SECTION)
        add(loader, map, field->key, new_section(loader, map, field));
    else if (value == NULL && field->default_text != NULL)
        add(loader, map, field->key, new_leaf(loader, map, field));
    else if (value != NULL && field->type == CONFIG_TYPE_SECTION)
        complete_section(loader, field, value);
    for (size_t i = 0; value != NULL && field->type == CONFIG_TYPE_SECTIONS && i < value->count;
         i++)
        print_defaults(loader, field->fields, value->entries[i].value);
}

void print_defaults(struct loader *loader, const struct config_field *fields, struct node *node)
{
    assert(loader != NULL);
    assert(fields != NULL);
    if (node->kind == NODE_NULL)
        node->kind = NODE_MAP;
    for (; node->kind == NODE_MAP && fields->key != NULL; fields++)
        complete(loader, fields, node);
}
