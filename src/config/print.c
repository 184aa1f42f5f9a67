/* SPDX-License-Identifier: Apache-2.0 */
/* print-config, in three steps: redacts secrets by the option tables, adds the defaults, and prints
 * the tree as YAML (through libyaml's emitter) or JSON. Main thread. */
#include "src/config/print.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "src/base/arena.h"
#include "src/base/text_escape.h"
#include "src/config/component_set.h"
#include "src/config/decode.h"
#include "src/config/identifier.h"
#include "src/config/loader.h"
#include "src/config/scalar.h"
#include "src/config/service_keys.h"

enum { NUMBER_TEXT_MAX = 40, INDENT = 4 };

/* New nodes take the position of the map that they complete. */
static struct node *new_scalar(struct loader *loader, const struct node *map, const char *text,
                               bool is_text)
{
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

/* The default of a field other than a section. */
static struct node *new_leaf(struct loader *loader, const struct node *map,
                             const struct config_field *field)
{
    const char *text = field->default_text;
    bool is_text = field->type == CONFIG_TYPE_TEXT || field->type == CONFIG_TYPE_CHOICE ||
                   field->type == CONFIG_TYPE_DURATION || field->type == CONFIG_TYPE_BYTES ||
                   field->type == CONFIG_TYPE_TEXTS;
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
        node_add(&loader->arena, map, (struct node_entry){.key = key, .value = value});
}

static void add_defaults(struct loader *loader, const struct config_field *fields,
                         struct node *node)
{
    const struct config_field *table = fields;
    if (node->kind == NODE_NULL)
        node->kind = NODE_MAP;
    for (; node->kind == NODE_MAP && fields->key != NULL; fields++) {
        struct node *value = node_value(node, fields->key);
        if (value == NULL && fields->type == CONFIG_TYPE_SECTION) {
            /* An absent section is written in full if it is on. */
            bool is_on =
                fields->presence != CONFIG_NULL_ENABLES && fields->presence != CONFIG_NULL_IS_OFF;
            value = is_on ? loader_try_node(loader, NODE_MAP, node->position) : NULL;
            if (value == NULL)
                continue;
            if (fields->presence != CONFIG_ALWAYS)
                add(loader, value, "enabled", new_scalar(loader, node, "true", false));
            add_defaults(loader, fields->fields, value);
            if (value->count > 0)
                add(loader, node, fields->key, value);
        } else if (value == NULL) {
            /* A default would overrule the same field under another name. */
            bool is_absent = fields->default_text != NULL;
            for (const struct config_field *other = table; is_absent && other->key != NULL; other++)
                is_absent = other == fields || fields->type == CONFIG_TYPE_IGNORED ||
                            other->type != fields->type || other->offset != fields->offset ||
                            node_value(node, other->key) == NULL;
            if (is_absent)
                add(loader, node, fields->key, new_leaf(loader, node, fields));
        } else if (fields->type == CONFIG_TYPE_SECTION) {
            const struct node *enabled = node_value(value, "enabled");
            bool is_off = value->kind == NODE_NULL &&
                          (fields->presence == CONFIG_NULL_IS_OFF || value->reference != NULL);
            is_off |= fields->presence != CONFIG_ALWAYS && enabled != NULL && !enabled->boolean;
            if (!is_off)
                add_defaults(loader, fields->fields, value);
        } else if (fields->type == CONFIG_TYPE_SECTIONS) {
            for (size_t i = 0; i < value->count; i++)
                add_defaults(loader, fields->fields, value->entries[i].value);
        }
    }
}

static void redact_text(struct node *node)
{
    node->kind = NODE_TEXT;
    node->text = "[REDACTED]";
    node->count = 0;
}

/* Keeps numbers and booleans: they are not secrets. */
static void redact_all(struct node *node)
{
    if (node->kind == NODE_TEXT || node->kind == NODE_TIME)
        redact_text(node);
    for (size_t i = 0; i < node->count; i++)
        redact_all(node->entries[i].value);
}

static void adapt_text(struct node *node)
{
    if (node->verbatim == NULL)
        return;
    node->kind = NODE_TEXT;
    node->text = node->verbatim;
    node->count = 0;
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

/* No table says which strings are secret, so all are redacted. */
static void prepare_unknown(struct node *node, bool is_unredacted)
{
    if (!is_unredacted)
        redact_all(node);
}

static void prepare_map(const struct config_field *fields, struct node *map, bool is_unredacted)
{
    for (size_t i = 0; map->kind == NODE_MAP && i < map->count; i++) {
        struct node *node = map->entries[i].value;
        const struct config_field *field = decode_find_field(fields, map->entries[i].key);
        if (field == NULL) {
            prepare_unknown(node, is_unredacted);
            continue;
        }
        if (field->type == CONFIG_TYPE_SECTION) {
            prepare_map(field->fields, node, is_unredacted);
            continue;
        }
        if (field->type == CONFIG_TYPE_SECTIONS) {
            for (size_t j = 0; j < node->count; j++)
                prepare_map(field->fields, node->entries[j].value, is_unredacted);
            continue;
        }
        if (field->type == CONFIG_TYPE_TEXT || field->type == CONFIG_TYPE_SECRET ||
            field->type == CONFIG_TYPE_CHOICE)
            adapt_text(node);
        bool is_headers = field->type == CONFIG_TYPE_HEADERS;
        bool is_many = is_headers || field->type == CONFIG_TYPE_PAIRS ||
                       field->type == CONFIG_TYPE_TEXTS || field->type == CONFIG_TYPE_SECRETS;
        /* Values of headers, in both forms, and elements of lists are strings whatever they look
         * like. */
        for (size_t j = 0; is_many && j < node->count; j++) {
            struct node *element = node->entries[j].value;
            struct node *value = node->kind == NODE_LIST ? node_value(element, "value") : NULL;
            adapt_text(value != NULL ? value : element);
        }
        if (is_unredacted)
            continue;
        if (field->type == CONFIG_TYPE_SECRET || has_userinfo(node))
            redact_text(node);
        else if (field->type == CONFIG_TYPE_IGNORED || field->type == CONFIG_TYPE_SECRETS)
            redact_all(node);
        for (size_t j = 0; is_headers && j < node->count; j++) {
            struct node *element = node->entries[j].value;
            if (node->kind == NODE_LIST)
                element = node_value(element, "value");
            if (element != NULL)
                redact_text(element);
        }
    }
}

void print_prepare(struct loader *loader, struct node *root, bool is_unredacted)
{
    for (size_t i = 0; i < root->count; i++) {
        enum component_kind kind;
        struct node *section = root->entries[i].value;
        if (strcmp(root->entries[i].key, "service") == 0) {
            prepare_map(service_keys_fields, section, is_unredacted);
            add_defaults(loader, service_keys_fields, section);
            continue;
        }
        if (section->kind != NODE_MAP || !component_kind_find(root->entries[i].key, &kind)) {
            prepare_unknown(section, is_unredacted);
            continue;
        }
        for (size_t j = 0; j < section->count; j++) {
            struct identifier identifier;
            struct error error;
            struct node *node = section->entries[j].value;
            const struct component_factory *factory = NULL;
            if (text_to_identifier(section->entries[j].key, &identifier, &error))
                factory = component_factory_find(loader, kind, identifier.type, NULL);
            if (factory == NULL) {
                prepare_unknown(node, is_unredacted);
                continue;
            }
            prepare_map(factory->fields, node, is_unredacted);
            if (factory->fields != NULL)
                add_defaults(loader, factory->fields, node);
        }
    }
}

struct number_text {
    char text[NUMBER_TEXT_MAX];
};

static struct number_text scalar_to_text(const struct node *node)
{
    struct number_text result = {.text = "null"};
    assert(node->kind != NODE_LIST && node->kind != NODE_MAP);
    if (node->kind == NODE_BOOL)
        snprintf(result.text, sizeof(result.text), "%s", node->boolean ? "true" : "false");
    if (node->kind == NODE_INT)
        snprintf(result.text, sizeof(result.text), "%" PRIi64, node->integer);
    if (node->kind != NODE_DOUBLE)
        return result;
    if (isnan(node->real))
        return (struct number_text){.text = ".nan"};
    if (isinf(node->real))
        return node->real > 0 ? (struct number_text){.text = ".inf"}
                              : (struct number_text){.text = "-.inf"};
    /* The shortest digits that read back as the same double. */
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(result.text, sizeof(result.text), "%.*g", digits, node->real);
        if (strtod(result.text, NULL) == node->real)
            break;
    }
    return result;
}

static bool emit_scalar(yaml_emitter_t *emitter, const char *text, bool is_text)
{
    yaml_event_t event;
    yaml_char_t bytes[] = "(not UTF-8)";
    /* Strings that another YAML reader may take for another type get quotes. */
    static const char *const words[] = {"yes", "no", "on", "off", "y", "n"};
    bool is_ambiguous = text_to_scalar(text).kind != NODE_TEXT ||
                        (strspn(text, "0123456789") == 4 && text[4] == '-');
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        is_ambiguous |= strcasecmp(words[i], text) == 0;
    int is_plain = !is_text || !is_ambiguous;
    size_t size = strlen(text);
    /* libyaml copies the value, though its parameter is not const. */
    yaml_char_t *value = (yaml_char_t *)(uintptr_t)text;
    if (!yaml_scalar_event_initialize(&event, NULL, NULL, value, (int)size, is_plain, 1,
                                      YAML_ANY_SCALAR_STYLE) &&
        !yaml_scalar_event_initialize(&event, NULL, NULL, bytes, sizeof(bytes) - 1, 1, 1,
                                      YAML_ANY_SCALAR_STYLE))
        return false;
    return yaml_emitter_emit(emitter, &event);
}

static bool emit_node(yaml_emitter_t *emitter, const struct node *node)
{
    if (node->kind == NODE_TEXT || node->kind == NODE_TIME)
        return emit_scalar(emitter, node->text, node->kind == NODE_TEXT);
    if (node->kind != NODE_LIST && node->kind != NODE_MAP)
        return emit_scalar(emitter, scalar_to_text(node).text, false);
    yaml_event_t event;
    int is_ready =
        node->kind == NODE_MAP
            ? yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE)
            : yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                   YAML_BLOCK_SEQUENCE_STYLE);
    assert(node->kind == NODE_LIST || node->kind == NODE_MAP);
    if (!is_ready || !yaml_emitter_emit(emitter, &event))
        return false;
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == NODE_MAP && !emit_scalar(emitter, node->entries[i].key, true))
            return false;
        if (!emit_node(emitter, node->entries[i].value))
            return false;
    }
    is_ready = node->kind == NODE_MAP ? yaml_mapping_end_event_initialize(&event)
                                      : yaml_sequence_end_event_initialize(&event);
    return is_ready && yaml_emitter_emit(emitter, &event);
}

bool print_yaml(const struct node *root, FILE *out)
{
    yaml_emitter_t emitter;
    if (!yaml_emitter_initialize(&emitter))
        return false;
    yaml_emitter_set_output_file(&emitter, out);
    yaml_emitter_set_indent(&emitter, INDENT);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    yaml_event_t event;
    bool is_fine = yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
                   yaml_emitter_emit(&emitter, &event) &&
                   yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
                   yaml_emitter_emit(&emitter, &event) && emit_node(&emitter, root) &&
                   yaml_document_end_event_initialize(&event, 1) &&
                   yaml_emitter_emit(&emitter, &event) &&
                   yaml_stream_end_event_initialize(&event) && yaml_emitter_emit(&emitter, &event);
    yaml_emitter_delete(&emitter);
    return is_fine && !ferror(out);
}

static struct node *copy_node(struct arena *arena, const struct node *node)
{
    struct node *copy = arena_try_alloc(arena, sizeof(*copy));
    if (copy == NULL)
        return NULL;
    *copy = *node;
    if (node->count == 0)
        return copy;
    copy->capacity = node->count;
    copy->slots = NULL;
    copy->slots_count = 0;
    copy->entries = arena_try_alloc(arena, node->count * sizeof(copy->entries[0]));
    for (size_t i = 0; copy->entries != NULL && i < node->count; i++) {
        copy->entries[i] = node->entries[i];
        copy->entries[i].value = copy_node(arena, node->entries[i].value);
        if (copy->entries[i].value == NULL)
            return NULL;
    }
    return copy->entries != NULL ? copy : NULL;
}

bool print_component(const struct config_component *component, FILE *out)
{
    enum { COPY_BYTES_MAX = 16 * 1024 * 1024 };
    struct arena arena;
    const struct node_entry *origin = component->origin;
    if (origin == NULL)
        return false;
    arena_init(&arena, COPY_BYTES_MAX);
    struct node *value = copy_node(&arena, origin->value);
    struct node_entry entry = {.key = origin->key, .position = origin->position, .value = value};
    const struct node map = {
        .kind = NODE_MAP, .position = origin->position, .count = 1, .entries = &entry};
    if (value != NULL && component->factory != NULL)
        prepare_map(component->factory->fields, value, false);
    else if (value != NULL)
        redact_all(value);
    bool is_printed = value != NULL && print_yaml(&map, out);
    arena_clear(&arena);
    return is_printed;
}

static void write_json(const struct node *node, int indent, FILE *out)
{
    bool is_map = node->kind == NODE_MAP;
    assert(indent >= 0);
    bool is_text = node->kind == NODE_TEXT || node->kind == NODE_TIME;
    if (is_text || (node->kind == NODE_DOUBLE && !isfinite(node->real))) {
        struct number_text number = {.text = ""};
        if (!is_text)
            number = scalar_to_text(node);
        text_escape_json(out, slice_of_text(is_text ? node->text : number.text));
        return;
    }
    if (!is_map && node->kind != NODE_LIST) {
        fputs(scalar_to_text(node).text, out);
        return;
    }
    fputc(is_map ? '{' : '[', out);
    for (size_t i = 0; i < node->count; i++) {
        fprintf(out, "%s\n%*s", i > 0 ? "," : "", indent + INDENT, "");
        if (is_map) {
            text_escape_json(out, slice_of_text(node->entries[i].key));
            fputs(": ", out);
        }
        write_json(node->entries[i].value, indent + INDENT, out);
    }
    if (node->count > 0)
        fprintf(out, "\n%*s", indent, "");
    fputc(is_map ? '}' : ']', out);
}

bool print_json(const struct node *root, FILE *out)
{
    write_json(root, 0, out);
    fputc('\n', out);
    return !ferror(out);
}
