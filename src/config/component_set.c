/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the factory of every component and lets its option table decode it. Main thread. */
#include "src/config/component_set.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/config/contrib_types.h"
#include "src/config/decode.h"
#include "src/config/identifier.h"
#include "src/config/loader.h"
#include "src/config/suggest.h"

enum { VALID_VALUES_MAX = 512 };

const char *component_kind_name(enum component_kind kind)
{
    static const char *const names[] = {
        [RECEIVER] = "receiver",   [PROCESSOR] = "processor", [EXPORTER] = "exporter",
        [CONNECTOR] = "connector", [EXTENSION] = "extension",
    };
    assert((size_t)kind < COMPONENT_KINDS);
    return names[kind];
}

const char *component_kind_section(enum component_kind kind)
{
    static const char *const sections[] = {
        [RECEIVER] = "receivers",   [PROCESSOR] = "processors", [EXPORTER] = "exporters",
        [CONNECTOR] = "connectors", [EXTENSION] = "extensions",
    };
    assert((size_t)kind < COMPONENT_KINDS);
    return sections[kind];
}

bool component_kind_find(const char *section, enum component_kind *ret_kind)
{
    for (size_t i = 0; i < COMPONENT_KINDS; i++) {
        if (strcmp(section, component_kind_section((enum component_kind)i)) != 0)
            continue;
        *ret_kind = (enum component_kind)i;
        return true;
    }
    return false;
}

const struct component_factory *component_factory_find(const struct loader *loader,
                                                       enum component_kind kind, const char *type,
                                                       const char **ret_alias)
{
    for (size_t i = 0; loader->factories[i] != NULL; i++) {
        const struct component_factory *factory = loader->factories[i];
        const char *alias = NULL;
        for (size_t j = 0; factory->aliases != NULL && factory->aliases[j] != NULL; j++)
            if (strcmp(factory->aliases[j], type) == 0)
                alias = factory->aliases[j];
        bool is_later = factory->later_name != NULL && strcmp(factory->later_name, type) == 0;
        if (factory->kind != kind ||
            (alias == NULL && !is_later && strcmp(factory->type, type) != 0))
            continue;
        if (ret_alias != NULL)
            *ret_alias = alias;
        return factory;
    }
    return NULL;
}

struct config_component *component_set_find(const struct component_set *set,
                                            enum component_kind kind, const char *id)
{
    const struct node *ids = &set->ids[kind];
    const struct node_entry *entry = node_find(ids, id);
    if (entry == NULL)
        return NULL;
    return &set->items[set->places[set->firsts[kind] + (size_t)(entry - ids->entries)]];
}

struct suggestion component_set_suggest(const struct loader *loader,
                                        const struct component_set *set, unsigned kinds,
                                        const char *found)
{
    struct suggestion suggestion = loader_suggestion(loader, found);
    for (size_t i = 0; i < set->count && suggestion.considered < SUGGESTION_CANDIDATES_MAX; i++)
        if ((kinds & 1u << set->kinds[i]) != 0)
            suggestion_consider(&suggestion, set->items[i].id);
    return suggestion;
}

/* Lists the types that there are, and says why one that users know from elsewhere is missing. */
static void report_unknown(struct loader *loader, const struct path *path,
                           const struct node_entry *entry, enum component_kind kind,
                           const struct identifier *identifier)
{
    char values[VALID_VALUES_MAX] = "";
    size_t length = 0;
    bool is_other_kind = false;
    struct suggestion suggestion = loader_suggestion(loader, identifier->type);
    for (size_t i = 0; loader->factories[i] != NULL; i++) {
        const struct component_factory *factory = loader->factories[i];
        if (factory->kind != kind)
            continue;
        suggestion_consider(&suggestion, factory->type);
        if (length < sizeof(values))
            length += (size_t)snprintf(values + length, sizeof(values) - length, "%s%s",
                                       length > 0 ? " " : "", factory->type);
    }
    for (unsigned i = 0; i < COMPONENT_KINDS; i++)
        is_other_kind |=
            component_factory_find(loader, (enum component_kind)i, identifier->type, NULL) != NULL;
    const struct contrib_type known = contrib_type_find(kind, identifier->type);
    const char *reason = "";
    if (known.is_removed)
        reason = "; the Go collector has removed it, too";
    else if (known.is_known)
        reason = "; the Go collector has such a component, this build does not";
    else if (is_other_kind)
        reason = "; there is such a component, but of another kind";
    const char *colon = known.advice != NULL ? ": " : "";
    const char *advice = known.advice != NULL ? known.advice : "";
    static const char format[] = "unknown type: \"%s\" for id: \"%s\" (valid values: [%s])%s%s%s%s";
    if (!known.is_known)
        loader_problem(loader, entry->position, path, format, identifier->type, identifier->id,
                       values, reason, "", "", suggestion_to_text(&suggestion).text);
    else if (!loader->skips_unsupported)
        loader_unsupported(loader, entry->position, path, format, identifier->type, identifier->id,
                           values, reason, colon, advice, suggestion_to_text(&suggestion).text);
    else
        loader_unsupported(loader, entry->position, path, "the Go collector has%s %s \"%s\"%s%s%s",
                           known.is_removed ? " removed" : "", component_kind_name(kind),
                           identifier->type, known.is_removed ? "" : "; this build does not", colon,
                           advice);
}

void config_component_locate(const struct config_component *component, struct error *error)
{
    const struct node_entry *origin = component->origin;
    if (origin == NULL)
        return;
    struct place place;
    struct path root = {.parent = NULL};
    struct path section = {.parent = &root,
                           .key = component_kind_section(component->factory->kind)};
    struct path path = {.parent = &section, .key = origin->key};
    place_find(error, origin->value, origin->position, &path, &place);
    error_prefix(error, "%s:%zu:%zu: %s", place.position.source->name, place.position.line,
                 place.position.column, path_to_text(place.path).text);
}

static void load_component(struct loader *loader, const struct path *parent,
                           const struct node_entry *entry, enum component_kind kind,
                           struct component_set *set)
{
    struct identifier identifier;
    struct error error;
    struct path path = {.parent = parent, .key = entry->key};
    if (!text_to_identifier(entry->key, &identifier, &error)) {
        loader_problem(loader, entry->position, &path, "%s", error.text);
        return;
    }
    if (component_set_find(set, kind, identifier.id) != NULL) {
        loader_problem(loader, entry->position, &path,
                       "duplicate name \"%s\" after blanks are removed; expected each name once",
                       identifier.id);
        return;
    }
    assert(set->count < set->capacity);
    set->kinds[set->count] = kind;
    set->items[set->count] =
        (struct config_component){.id = loader_copy_text(loader, identifier.id)};
    set->places[set->count] = set->count;
    struct config_component *component = &set->items[set->count++];
    node_add(&loader->arena, &set->ids[kind],
             (struct node_entry){.key = component->id, .value = entry->value});
    const struct component_factory *factory =
        component_factory_find(loader, kind, identifier.type, &component->alias);
    if (factory == NULL) {
        loader->component = component;
        report_unknown(loader, &path, entry, kind, &identifier);
        loader->component = NULL;
        component->origin = component->unsupported != NULL ? entry : NULL;
        return;
    }
    component->factory = factory;
    component->origin = entry;
    if (component->alias != NULL)
        loader_notice(loader, entry->position, &path,
                      "\"%s\" alias is deprecated; use \"%s\" instead", component->alias,
                      factory->type);
    loader->component = component;
    if (entry->value->kind != NODE_BROKEN) {
        const struct config_field section = {.type = CONFIG_TYPE_SECTION,
                                             .presence = CONFIG_ALWAYS,
                                             .fields = factory->fields,
                                             .section_size = factory->config_size,
                                             .check = factory->check};
        const struct site site = {.loader = loader, .path = &path, .position = entry->position};
        void *config = loader_zalloc(loader, factory->config_size);
        decode_defaults(loader, factory->fields, config);
        decode_section(&site, &section, entry->value, config);
        component->config = config;
    }
    loader->component = NULL;
}

void component_set_load(struct loader *loader, const struct node *root, struct component_set *set)
{
    assert(root->kind == NODE_MAP);
    *set = (struct component_set){.count = 0};
    for (size_t i = 0; i < root->count; i++)
        set->capacity += root->entries[i].value->count;
    set->items = loader_zalloc(loader, set->capacity * sizeof(*set->items));
    set->kinds = loader_zalloc(loader, set->capacity * sizeof(*set->kinds));
    set->places = loader_zalloc(loader, set->capacity * sizeof(*set->places));
    for (size_t i = 0; i < COMPONENT_KINDS; i++)
        set->ids[i].kind = NODE_MAP;
    struct path top = {.parent = NULL};
    for (size_t i = 0; i < root->count; i++) {
        const struct node_entry *section = &root->entries[i];
        const struct node *node = section->value;
        struct path path = {.parent = &top, .key = section->key};
        enum component_kind kind;
        if (!component_kind_find(section->key, &kind))
            continue;
        if (node->kind != NODE_MAP && node->kind != NODE_NULL && node->kind != NODE_BROKEN)
            loader_problem(loader, node->position, &path, "found %s, expected a map of components",
                           node_describe(node).text);
        set->firsts[kind] = set->count;
        for (size_t j = 0; node->kind == NODE_MAP && j < node->count; j++)
            load_component(loader, &path, &node->entries[j], kind, set);
    }
    /* In a list of receivers or exporters the id of a connector would mean two things. */
    static const enum component_kind others[] = {EXPORTER, RECEIVER};
    struct path connectors = {.parent = &top, .key = component_kind_section(CONNECTOR)};
    for (size_t i = 0; i < set->count; i++) {
        const char *id = set->items[i].id;
        for (size_t j = 0; set->kinds[i] == CONNECTOR && j < 2; j++) {
            if (component_set_find(set, others[j], id) == NULL || set->items[i].origin == NULL)
                continue;
            struct path path = {.parent = &connectors, .key = set->items[i].origin->key};
            loader_problem(loader, set->items[i].origin->position, &path,
                           "ambiguous ID: Found both \"%s\" %s and \"%s\" connector. Change one "
                           "of the components' IDs to eliminate ambiguity (e.g. rename \"%s\" "
                           "connector to \"%s/connector\")",
                           id, component_kind_name(others[j]), id, id, id);
            break;
        }
    }
}
