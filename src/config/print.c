/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of a tree are secrets: the option tables say, for components by their type or alias.
 * Main thread. */
#include "src/config/print.h"

#include <assert.h>
#include <string.h>

#include "src/config/component_set.h"
#include "src/config/field.h"
#include "src/config/identifier.h"
#include "src/config/loader.h"
#include "src/config/print_defaults.h"
#include "src/config/service_keys.h"

static void redact_text(struct node *node)
{
    assert(node != NULL);
    node->kind = NODE_TEXT;
    node->text = "[REDACTED]";
    node->count = 0;
}

/* Numbers and booleans tell nothing. */
static void redact_all(struct node *node)
{
    assert(node != NULL);
    if (node->kind == NODE_TEXT || node->kind == NODE_TIME)
        redact_text(node);
    for (size_t i = 0; i < node->count; i++)
        redact_all(node->entries[i].value);
}

static void redact_headers(struct node *node)
{
    assert(node != NULL);
    for (size_t i = 0; i < node->count; i++) {
        struct node *element = node->entries[i].value;
        if (node->kind == NODE_LIST)
            element = node_value(element, "value");
        if (element != NULL)
            redact_text(element);
    }
}

static void adapt_text(struct node *node)
{
    assert(node != NULL);
    if (node->verbatim == NULL)
        return;
    node->kind = NODE_TEXT;
    node->text = node->verbatim;
    node->count = 0;
}

/* Values of headers, of both forms, and elements of lists are texts whatever they look like. */
static void adapt_elements(struct node *node)
{
    assert(node != NULL);
    for (size_t i = 0; i < node->count; i++) {
        struct node *element = node->entries[i].value;
        struct node *value = node->kind == NODE_LIST ? node_value(element, "value") : NULL;
        adapt_text(value != NULL ? value : element);
    }
}

static const struct config_field *find_field(const struct config_field *fields, const char *key)
{
    assert(key != NULL);
    for (; fields != NULL && fields->key != NULL; fields++)
        if (strcmp(fields->key, key) == 0)
            return fields;
    return NULL;
}

/* "scheme://user:password@host". */
static bool has_userinfo(const struct node *node)
{
    const char *authority = node->kind == NODE_TEXT ? strstr(node->text, "://") : NULL;
    assert(node->kind != NODE_TEXT || node->text != NULL);
    if (authority == NULL)
        return false;
    authority += strlen("://");
    return memchr(authority, '@', strcspn(authority, "/?#")) != NULL;
}

static void prepare_leaf(const struct config_field *field, struct node *node, bool is_unredacted)
{
    bool is_text = field->type == CONFIG_TYPE_TEXT || field->type == CONFIG_TYPE_SECRET ||
                   field->type == CONFIG_TYPE_CHOICE;
    assert(field->type != CONFIG_TYPE_SECTION);
    if (is_text)
        adapt_text(node);
    if (field->type == CONFIG_TYPE_HEADERS || field->type == CONFIG_TYPE_TEXTS ||
        field->type == CONFIG_TYPE_SECRETS)
        adapt_elements(node);
    if (is_unredacted)
        return;
    if (field->type == CONFIG_TYPE_SECRET || has_userinfo(node))
        redact_text(node);
    else if (field->type == CONFIG_TYPE_HEADERS)
        redact_headers(node);
    else if (field->type == CONFIG_TYPE_IGNORED || field->type == CONFIG_TYPE_SECRETS)
        redact_all(node);
}

/* No table says what is a secret there: any text may be one. */
static void prepare_unknown(struct node *node, bool is_unredacted)
{
    assert(node != NULL);
    if (!is_unredacted)
        redact_all(node);
}

static void prepare_map(const struct config_field *fields, struct node *map, bool is_unredacted)
{
    assert(map != NULL);
    for (size_t i = 0; map->kind == NODE_MAP && i < map->count; i++) {
        struct node *node = map->entries[i].value;
        const struct config_field *field = find_field(fields, map->entries[i].key);
        if (field == NULL) {
            prepare_unknown(node, is_unredacted);
            continue;
        }
        if (field->type == CONFIG_TYPE_SECTION)
            prepare_map(field->fields, node, is_unredacted);
        else if (field->type != CONFIG_TYPE_SECTIONS)
            prepare_leaf(field, node, is_unredacted);
        for (size_t j = 0; field->type == CONFIG_TYPE_SECTIONS && j < node->count; j++)
            prepare_map(field->fields, node->entries[j].value, is_unredacted);
    }
}

static void prepare_components(struct loader *loader, struct node *section,
                               enum component_kind kind, bool is_unredacted)
{
    assert(section->kind == NODE_MAP);
    for (size_t i = 0; i < section->count; i++) {
        struct identifier identifier;
        struct error error;
        struct node *node = section->entries[i].value;
        const struct component_factory *factory = NULL;
        if (text_to_identifier(section->entries[i].key, &identifier, &error))
            factory = component_factory_find(loader, kind, identifier.type, NULL);
        if (factory == NULL) {
            prepare_unknown(node, is_unredacted);
            continue;
        }
        prepare_map(factory->fields, node, is_unredacted);
        if (factory->fields != NULL)
            print_defaults(loader, factory->fields, node);
    }
}

void print_prepare(struct loader *loader, struct node *root, bool is_unredacted)
{
    assert(loader != NULL);
    assert(root != NULL);
    for (size_t i = 0; i < root->count; i++) {
        enum component_kind kind;
        struct node *section = root->entries[i].value;
        if (strcmp(root->entries[i].key, "service") == 0) {
            prepare_map(service_keys_fields, section, is_unredacted);
            print_defaults(loader, service_keys_fields, section);
        } else if (section->kind == NODE_MAP && component_kind_find(root->entries[i].key, &kind)) {
            prepare_components(loader, section, kind, is_unredacted);
        } else {
            prepare_unknown(section, is_unredacted);
        }
    }
}
