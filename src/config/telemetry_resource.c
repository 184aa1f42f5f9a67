/* SPDX-License-Identifier: Apache-2.0 */
/* The resource in its two written forms, over the defaults service.name, service.version and
 * service.instance.id (a random UUID). Main thread. */
#include "src/config/telemetry_resource.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "src/config/config.h"
#include "src/config/loader.h"

enum { DEFAULTS = 3, UUID_BYTES = 16, UUID_TEXT_BYTES = 37 };

struct attributes {
    struct loader *loader;
    size_t count;
    struct config_pair *pairs; /* room for the defaults and all that is written */
};

/* RFC 9562 version 4. An identity, not a secret: without entropy the clock's place is taken by
 * zeros. */
static const char *random_uuid(struct loader *loader)
{
    assert(loader != NULL);
    uint8_t bytes[UUID_BYTES] = {0};
    char *text = loader_zalloc(loader, UUID_TEXT_BYTES);
    char *to = text;
    if (getrandom(bytes, sizeof(bytes), GRND_NONBLOCK) < 0)
        bytes[0] = 0;
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < UUID_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        to += snprintf(to, 3, "%02x", bytes[i]);
    }
    return text;
}

static struct config_pair *find(const struct attributes *attributes, const char *key)
{
    assert(key != NULL);
    for (size_t i = 0; i < attributes->count; i++)
        if (strcmp(attributes->pairs[i].key, key) == 0)
            return &attributes->pairs[i];
    return NULL;
}

/* value NULL drops the attribute. */
static void set(struct attributes *attributes, const char *key, const char *value)
{
    assert(key != NULL);
    struct config_pair *pair = find(attributes, key);
    if (value == NULL && pair != NULL)
        *pair = attributes->pairs[--attributes->count];
    else if (value != NULL && pair != NULL)
        pair->value = value;
    else if (value != NULL)
        attributes->pairs[attributes->count++] = (struct config_pair){.key = key, .value = value};
}

/* False: reported. Numbers and booleans are taken as they are written. */
static bool take_text(const struct site *site, const struct path *path, const struct node *node,
                      const char **ret_text)
{
    assert(ret_text != NULL);
    *ret_text = NULL;
    if (node == NULL || node->kind == NODE_NULL || node->kind == NODE_BROKEN)
        return true;
    *ret_text = node->verbatim != NULL ? node->verbatim : node->text;
    if (node->kind != NODE_LIST && node->kind != NODE_MAP)
        return true;
    loader_problem(site->loader, node->position, path, "found %s, expected a text",
                   node_describe(node).text);
    return false;
}

/* Legacy: the attributes themselves, texts or null. */
static void take_map(const struct site *site, const struct path *path, const struct node *map,
                     struct attributes *attributes)
{
    assert(map->kind == NODE_MAP);
    for (size_t i = 0; i < map->count; i++) {
        const char *text;
        const struct node *value = map->entries[i].value;
        struct path inner = {.parent = path, .key = map->entries[i].key};
        if (decode_text_of(value) == NULL && value->kind != NODE_BROKEN)
            loader_problem(site->loader, value->position, &inner,
                           "found %s, expected a text (put it in quotes) or null",
                           node_describe(value).text);
        else if (take_text(site, &inner, value, &text))
            set(attributes, map->entries[i].key, text);
    }
}

static void take_list(const struct site *site, const struct path *path, const struct node *list,
                      struct attributes *attributes)
{
    assert(list->kind == NODE_LIST);
    for (size_t i = 0; i < list->count; i++) {
        const char *text;
        const struct node *element = list->entries[i].value;
        const struct node *name = node_value(element, "name");
        struct path inner = {.parent = path, .index = i};
        if (name == NULL || decode_text_of(name) == NULL) {
            if (element->kind != NODE_BROKEN)
                loader_problem(site->loader, element->position, &inner,
                               "found %s, expected a map with the keys name and value",
                               node_describe(element).text);
            continue;
        }
        if (take_text(site, &inner, node_value(element, "value"), &text))
            set(attributes, decode_text_of(name), text);
    }
}

static bool is_declarative(const struct node *resource)
{
    static const char *const keys[] = {"attributes", "attributes_list", "schema_url", "detectors",
                                       "detection/development"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (node_find(resource, keys[i]) != NULL)
            return true;
    return false;
}

static void check_kind(const struct site *site, const struct path *path,
                       const struct node *resource, const char *key, enum node_kind kind)
{
    struct path inner = {.parent = path, .key = key};
    const struct node *node = node_value(resource, key);
    if (node == NULL || node->kind == NODE_NULL || node->kind == NODE_BROKEN)
        return;
    if (node->kind == kind || (kind == NODE_TEXT && decode_text_of(node) != NULL))
        loader_warning(site->loader, node->position, &inner,
                       "found a key that has no effect here: resources have attributes alone");
    else
        loader_problem(site->loader, node->position, &inner, "found %s, expected %s",
                       node_describe(node).text, kind == NODE_MAP ? "a map" : "a text");
}

/* Keys of the declarative form besides attributes. */
static void check_others(const struct site *site, const struct path *path,
                         const struct node *resource)
{
    struct path inner = {.parent = path, .key = "attributes_list"};
    const struct node *list = node_value(resource, inner.key);
    check_kind(site, path, resource, "schema_url", NODE_TEXT);
    check_kind(site, path, resource, "detectors", NODE_MAP);
    if (list != NULL && list->kind != NODE_NULL && list->kind != NODE_BROKEN)
        loader_problem(site->loader, list->position, &inner,
                       "resource::attributes_list is not currently supported, please use "
                       "resource::attributes");
}

static void take_resource(const struct site *site, const struct path *path,
                          const struct node *resource, struct attributes *attributes)
{
    struct path inner = {.parent = path, .key = "attributes"};
    assert(resource->kind == NODE_MAP);
    if (!is_declarative(resource)) {
        take_map(site, path, resource, attributes);
        return;
    }
    check_others(site, path, resource);
    const struct node *list = node_value(resource, "attributes");
    if (list == NULL || list->kind == NODE_NULL || list->kind == NODE_BROKEN)
        return;
    if (list->kind == NODE_LIST)
        take_list(site, &inner, list, attributes);
    else
        loader_problem(site->loader, list->position, &inner,
                       "found %s, expected a list of {name: …, value: …}",
                       node_describe(list).text);
}

void telemetry_resource_resolve(const struct site *site, const struct node *resource,
                                struct config_service *service)
{
    assert(site != NULL);
    assert(service != NULL);
    struct path path = {.parent = site->path, .key = "resource"};
    size_t written = resource != NULL ? resource->count : 0;
    const struct node *list = node_value(resource, "attributes");
    struct attributes attributes = {.loader = site->loader};
    written += DEFAULTS + (list != NULL ? list->count : 0);
    attributes.pairs = loader_zalloc(site->loader, written * sizeof(*attributes.pairs));
    set(&attributes, "service.name", "spanflame");
    set(&attributes, "service.version", SPANFLAME_VERSION);
    set(&attributes, "service.instance.id", random_uuid(site->loader));
    if (resource != NULL && resource->kind == NODE_MAP)
        take_resource(site, &path, resource, &attributes);
    else if (resource != NULL && resource->kind != NODE_NULL && resource->kind != NODE_BROKEN)
        loader_problem(site->loader, resource->position, &path, "found %s, expected a map",
                       node_describe(resource).text);
    service->resource = (struct config_pairs){.count = attributes.count, .pairs = attributes.pairs};
}
