/* SPDX-License-Identifier: Apache-2.0 */
/* Walks option tables: defaults first, then what the map says, then the rules of its sections.
 * Recursion follows the tables. Main thread. */
#include "src/config/decode.h"

#include <assert.h>
#include <string.h>

#include "src/base/error.h"
#include "src/config/extension_names.h"
#include "src/config/loader.h"
#include "src/config/place.h"
#include "src/config/scalar.h"
#include "src/config/suggest.h"
#include "src/config/yaml_tree.h"

static void *field_at(const struct config_field *field, void *target)
{
    assert(field->type != CONFIG_TYPE_END);
    return (char *)target + field->offset;
}

static bool *enabled_at(const struct config_field *field, void *target)
{
    assert(field->presence != CONFIG_ALWAYS);
    return (bool *)((char *)target + field->enabled_offset);
}

/* "enabled" of an optional section. */
static bool take_enabled(const struct site *site, const struct config_field *field,
                         const struct node *map)
{
    assert(map->kind == NODE_MAP);
    struct path path = {.parent = site->path, .key = "enabled"};
    const struct node *enabled = node_value(map, "enabled");
    if (enabled == NULL || enabled->kind == NODE_BROKEN)
        return true;
    if (enabled->kind == NODE_BOOL)
        return enabled->boolean;
    /* A plain boolean in the Go collector. */
    if (enabled->kind == NODE_NULL && field->presence == CONFIG_ON_UNLESS_UNSET)
        return false;
    loader_problem(site->loader, enabled->position, &path, "found %s, expected true or false%s",
                   node_describe(enabled).text,
                   enabled->kind == NODE_NULL ? " (or no such key)" : "");
    return true;
}

static bool is_on_when_null(const struct config_field *field, const struct node *node)
{
    assert(node->kind == NODE_NULL);
    if (field->presence == CONFIG_ON_UNLESS_UNSET)
        return node->reference == NULL;
    return field->presence != CONFIG_NULL_IS_OFF || node->reference != NULL;
}

static void check_section(const struct site *site, const struct config_field *field,
                          const struct node *node, const void *section)
{
    struct error error = {.text = ""};
    assert(section != NULL);
    struct place place;
    if (field->check == NULL || site->is_off || field->check(section, &error))
        return;
    place_find(&error, node, site->position, site->path, &place);
    loader_problem(site->loader, place.position, place.path, "%s", error.text);
}

void decode_section(const struct site *site, const struct config_field *field,
                    const struct node *node, void *owner)
{
    assert(site != NULL && field != NULL);
    assert(node != NULL && owner != NULL);
    struct site inner = *site;
    struct node empty = {.kind = NODE_MAP, .position = node->position};
    bool is_on = true;
    if (node->kind == NODE_MAP && field->presence != CONFIG_ALWAYS)
        is_on = take_enabled(site, field, node);
    else if (node->kind == NODE_NULL && field->presence != CONFIG_ALWAYS)
        is_on = is_on_when_null(field, node);
    else if (node->kind != NODE_NULL && node->kind != NODE_MAP) {
        decode_mismatch(site, field, node, "a map");
        return;
    }
    if (field->presence != CONFIG_ALWAYS)
        *enabled_at(field, owner) = is_on;
    size_t problems = loader_problems(site->loader);
    inner.is_off = site->is_off || !is_on;
    decode_map(&inner, field, node->kind == NODE_MAP ? node : &empty, field_at(field, owner));
    if (loader_problems(site->loader) == problems)
        check_section(&inner, field, node, field_at(field, owner));
}

static void decode_element(const struct site *site, const struct config_field *field,
                           const struct node *node, void *section)
{
    assert(section != NULL);
    decode_defaults(site->loader, field->fields, section);
    if (node->kind != NODE_MAP) {
        decode_mismatch(site, field, node, "a map");
        return;
    }
    size_t problems = loader_problems(site->loader);
    decode_map(site, field, node, section);
    if (loader_problems(site->loader) == problems)
        check_section(site, field, node, section);
}

static void decode_sections(const struct site *site, const struct config_field *field,
                            const struct node *node, void *target)
{
    struct config_sections *sections = target;
    assert(field->section_size > 0);
    if (node->kind == NODE_NULL)
        return;
    if (node->kind != NODE_LIST) {
        decode_mismatch(site, field, node, "a list of maps");
        return;
    }
    char *items = loader_zalloc(site->loader, node->count * field->section_size);
    for (size_t i = 0; i < node->count; i++) {
        struct path path = {.parent = site->path, .index = i};
        struct site element = *site;
        element.path = &path;
        element.position = node->entries[i].position;
        decode_element(&element, field, node->entries[i].value, items + i * field->section_size);
    }
    *sections = (struct config_sections){.count = node->count, .items = items};
}

static const decode_setter_fn setters[] = {
    [CONFIG_TYPE_BOOL] = decode_bool,     [CONFIG_TYPE_COUNT] = decode_count,
    [CONFIG_TYPE_INT] = decode_int,       [CONFIG_TYPE_DOUBLE] = decode_double,
    [CONFIG_TYPE_BYTES] = decode_bytes,   [CONFIG_TYPE_DURATION] = decode_duration,
    [CONFIG_TYPE_TEXT] = decode_text,     [CONFIG_TYPE_SECRET] = decode_text,
    [CONFIG_TYPE_CHOICE] = decode_choice, [CONFIG_TYPE_TEXTS] = decode_texts,
    [CONFIG_TYPE_SECRETS] = decode_texts, [CONFIG_TYPE_HEADERS] = decode_headers,
    [CONFIG_TYPE_VALUE] = decode_value,   [CONFIG_TYPE_SECTIONS] = decode_sections,
};

static void check_kind(const struct site *site, const struct config_field *field,
                       const struct node *node, enum node_kind kind)
{
    assert(kind == NODE_MAP || kind == NODE_LIST);
    if (node->kind != kind && node->kind != NODE_NULL)
        decode_mismatch(site, field, node, kind == NODE_MAP ? "a map" : "a list");
}

/* Looks whether it could be stored, and forgets it. */
static void check_ignored(const struct site *site, const struct config_field *field,
                          const struct node *node)
{
    union {
        bool boolean;
        int64_t integer;
        uint64_t duration_ns;
        const char *text;
        struct config_texts texts;
        const struct config_value *value;
    } unused;
    struct config_field typed = *field;
    typed.type = field->ignored_type;
    if (typed.type == CONFIG_TYPE_SECTION || typed.type == CONFIG_TYPE_SECTIONS) {
        check_kind(site, field, node, typed.type == CONFIG_TYPE_SECTION ? NODE_MAP : NODE_LIST);
        return;
    }
    assert((size_t)typed.type < sizeof(setters) / sizeof(setters[0]));
    assert(setters[typed.type] != NULL);
    setters[typed.type](site, &typed, node, &unused);
}

static void set_field(const struct site *site, const struct config_field *field,
                      const struct node *node, void *owner)
{
    assert(field->key != NULL);
    if (node->kind == NODE_BROKEN)
        return;
    if (field->type == CONFIG_TYPE_SECTION) {
        decode_section(site, field, node, owner);
        return;
    }
    if (field->type == CONFIG_TYPE_IGNORED) {
        check_ignored(site, field, node);
        return;
    }
    assert((size_t)field->type < sizeof(setters) / sizeof(setters[0]));
    assert(setters[field->type] != NULL);
    setters[field->type](site, field, node, field_at(field, owner));
    if (field->accepts != NULL)
        extension_names_note(site, field, node, *(const char **)field_at(field, owner));
}

static void warn_of_texts(const struct site *site, const struct config_field *field,
                          const struct node *node, const struct config_texts *texts)
{
    assert(field->warn != NULL);
    for (size_t i = 0; i < texts->count; i++) {
        struct path path = {.parent = site->path, .index = i};
        bool is_list = node->kind == NODE_LIST;
        const char *warning = field->warn(texts->texts[i]);
        if (warning != NULL)
            loader_warning(site->loader, is_list ? node->entries[i].position : node->position,
                           is_list ? &path : site->path, "found \"%s\", %s", texts->texts[i],
                           warning);
    }
}

/* Of what was written, not of defaults. */
static void warn_of_key(const struct site *site, const struct config_field *field,
                        const struct node *node, void *owner)
{
    assert(field->warn == NULL || field->type == CONFIG_TYPE_TEXT ||
           field->type == CONFIG_TYPE_TEXTS);
    if (node->kind == NODE_BROKEN || node->kind == NODE_NULL)
        return;
    if (field->type == CONFIG_TYPE_IGNORED || field->has_no_effect)
        loader_warning(site->loader, site->position, site->path,
                       "found a key that has no effect here: %s", field->help);
    if (field->warn == NULL)
        return;
    if (field->type == CONFIG_TYPE_TEXTS) {
        warn_of_texts(site, field, node, field_at(field, owner));
        return;
    }
    const char *warning = field->warn(*(const char **)field_at(field, owner));
    if (warning != NULL)
        loader_warning(site->loader, node->position, site->path, "%s", warning);
}

/* Lists and other values that live on are parsed as whole YAML texts. */
static struct node *parse_default(struct loader *loader, const struct config_field *field,
                                  struct position position)
{
    assert(field->default_text != NULL);
    struct yaml_origin origin = {.position = position, .reference = "default"};
    struct yaml_failure failure;
    return yaml_tree_parse(loader, slice_of_text(field->default_text), &origin, &failure);
}

/* Default texts take the way of a substituted value: parsed, with their text beside it. They do not
 * count against the user's limits. */
static void set_default(struct loader *loader, const struct config_field *field, void *owner)
{
    assert(field->default_text != NULL);
    static const struct source source = {.name = "default"};
    struct position position = {.source = &source};
    struct path root = {.parent = NULL};
    struct path path = {.parent = &root, .key = field->key};
    struct site site = {.loader = loader, .path = &path, .position = position};
    struct scalar scalar = text_to_scalar(field->default_text);
    struct node node = {.kind = scalar.kind,
                        .boolean = scalar.boolean,
                        .integer = scalar.integer,
                        .real = scalar.real,
                        .text = field->default_text,
                        .verbatim = field->default_text,
                        .position = position};
    bool is_list = field->type == CONFIG_TYPE_TEXTS || field->type == CONFIG_TYPE_HEADERS ||
                   field->type == CONFIG_TYPE_VALUE || field->type == CONFIG_TYPE_SECTIONS;
    size_t nodes = loader->nodes_count;
    size_t bytes = loader->expanded_bytes;
    size_t problems = loader_problems(loader);
    loader->nodes_count = 0;
    loader->expanded_bytes = 0;
    struct node *parsed = is_list ? parse_default(loader, field, position) : &node;
    assert(parsed != NULL);
    set_field(&site, field, parsed, owner);
    loader->nodes_count = nodes;
    loader->expanded_bytes = bytes;
    assert(loader_problems(loader) == problems);
}

void decode_defaults(struct loader *loader, const struct config_field *fields, void *target)
{
    assert(loader != NULL);
    assert(target != NULL);
    for (const struct config_field *field = fields; field != NULL && field->key != NULL; field++) {
        if (field->type == CONFIG_TYPE_SECTION) {
            if (field->presence != CONFIG_ALWAYS)
                *enabled_at(field, target) = field->presence == CONFIG_DEFAULT_ON ||
                                             field->presence == CONFIG_ON_UNLESS_UNSET;
            decode_defaults(loader, field->fields, field_at(field, target));
        } else if (field->type == CONFIG_TYPE_TEXT || field->type == CONFIG_TYPE_SECRET) {
            const char **text = field_at(field, target);
            *text = field->default_text != NULL ? field->default_text : "";
        } else if (field->default_text != NULL) {
            set_default(loader, field, target);
        }
    }
}

static const struct config_field *find_field(const struct config_field *fields, const char *key)
{
    assert(key != NULL);
    for (const struct config_field *field = fields; field != NULL && field->key != NULL; field++)
        if (strcmp(field->key, key) == 0)
            return field;
    return NULL;
}

static void report_unknown(const struct site *site, const struct config_field *section,
                           const struct node_entry *entry)
{
    assert(entry->key != NULL);
    struct suggestion suggestion = suggestion_for(entry->key);
    struct path path = {.parent = site->path, .key = entry->key};
    for (const struct config_field *field = section->fields; field != NULL && field->key != NULL;
         field++)
        suggestion_consider(&suggestion, field->key);
    if (section->fields == NULL)
        loader_problem(site->loader, entry->position, &path,
                       "found an unknown key, expected none at all here");
    else
        loader_problem(site->loader, entry->position, &path,
                       "found an unknown key, expected one of this section%s",
                       suggestion_to_text(&suggestion).text);
}

/* Sections that are always there have rules even when nobody mentions them. */
static void decode_absent(const struct site *site, const struct config_field *section,
                          const struct node *map, void *target)
{
    struct node empty = {.kind = NODE_MAP, .position = map->position};
    assert(map->kind == NODE_MAP);
    for (const struct config_field *field = section->fields; field != NULL && field->key != NULL;
         field++) {
        struct path path = {.parent = site->path, .key = field->key};
        struct site inner = *site;
        inner.path = &path;
        if (field->type == CONFIG_TYPE_SECTION && field->presence == CONFIG_ALWAYS &&
            node_find(map, field->key) == NULL)
            decode_section(&inner, field, &empty, target);
    }
}

void decode_map(const struct site *site, const struct config_field *section, const struct node *map,
                void *target)
{
    assert(site != NULL && section != NULL);
    assert(map != NULL && map->kind == NODE_MAP);
    bool is_optional = section->type == CONFIG_TYPE_SECTION && section->presence != CONFIG_ALWAYS;
    for (size_t i = 0; i < map->count; i++) {
        const struct node_entry *entry = &map->entries[i];
        const struct config_field *field = find_field(section->fields, entry->key);
        if (field == NULL && is_optional && strcmp(entry->key, "enabled") == 0)
            continue;
        if (field == NULL) {
            report_unknown(site, section, entry);
            continue;
        }
        struct path path = {.parent = site->path, .key = entry->key};
        struct site inner = *site;
        inner.path = &path;
        inner.position = entry->position;
        set_field(&inner, field, entry->value, target);
        warn_of_key(&inner, field, entry->value, target);
    }
    decode_absent(site, section, map, target);
}
