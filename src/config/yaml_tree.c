/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the tree from libyaml's events with a stack of its own. Only the copying of aliases is
 * recursive, which CONFIG_DEPTH_MAX bounds. Main thread. */
#include "src/config/yaml_tree.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "src/base/base64.h"
#include "src/base/mem.h"
#include "src/config/config_limits.h"
#include "src/config/loader.h"
#include "src/config/scalar.h"

static const char too_many_nodes[] = "the configuration has more than %d values";

/* A list or map that is not closed yet. */
struct frame {
    struct node *node;
    size_t anchor; /* its place among the anchors + 1; 0: none */
    bool has_key;  /* MAP: the next node is the value of key */
    bool is_merge; /* that key is "<<" */
    const char *key;
    struct position key_position;
    struct node *merged; /* MAP: the value of "<<", NULL: none */
};

struct anchor {
    const char *name;
    struct node *node;
    bool is_open; /* its end is not read yet */
};

struct builder {
    struct loader *loader;
    const struct yaml_origin *origin;
    struct slice bytes;
    struct yaml_failure *failure;
    struct node *root;
    size_t depth;
    size_t aliases_count;
    size_t anchors_count;
    struct frame frames[CONFIG_DEPTH_MAX];
    struct anchor anchors[CONFIG_ALIASES_MAX];
};

__attribute__((format(printf, 4, 5))) static bool fail(struct builder *builder,
                                                       struct position position, bool is_limit,
                                                       const char *format, ...)
{
    va_list arguments;
    struct yaml_failure *failure = builder->failure;
    failure->is_limit = is_limit;
    failure->position = position;
    va_start(arguments, format);
    vsnprintf(failure->error.text, sizeof(failure->error.text), format, arguments);
    va_end(arguments);
    return false;
}

static struct position position_of(const struct builder *builder, yaml_mark_t mark)
{
    struct position position = builder->origin->position;
    if (builder->origin->reference != NULL)
        return position;
    position.line = mark.line + 1;
    position.column = mark.column + 1;
    return position;
}

static struct node *new_node(struct builder *builder, enum node_kind kind, yaml_mark_t mark)
{
    assert(kind != NODE_BROKEN);
    struct position position = position_of(builder, mark);
    struct node *node = loader_try_node(builder->loader, kind, position);
    if (node == NULL)
        fail(builder, position, true, too_many_nodes, CONFIG_NODES_MAX);
    else
        node->reference = builder->origin->reference;
    return node;
}

/* A copy at this depth, or NULL when it exceeds a limit. */
static struct node *try_copy(struct loader *loader, const struct node *node, size_t depth)
{
    if (depth > CONFIG_DEPTH_MAX)
        return NULL;
    struct node *copy = loader_try_node(loader, node->kind, node->position);
    if (copy == NULL)
        return NULL;
    *copy = *node;
    copy->count = 0;
    copy->capacity = 0;
    copy->slots = NULL;
    copy->slots_count = 0;
    copy->entries = NULL;
    for (size_t i = 0; i < node->count; i++) {
        struct node_entry entry = node->entries[i];
        entry.value = try_copy(loader, entry.value, depth + 1);
        if (entry.value == NULL)
            return NULL;
        if (copy->kind == NODE_LIST)
            node_append(&loader->arena, copy, entry.value);
        else
            node_add(&loader->arena, copy, entry);
    }
    return copy;
}

static bool is_open_map(const struct frame *frame)
{
    return frame->node->kind == NODE_MAP;
}

static struct frame *top(struct builder *builder)
{
    assert(builder->depth <= CONFIG_DEPTH_MAX);
    return builder->depth > 0 ? &builder->frames[builder->depth - 1] : NULL;
}

/* The node is the key of the next entry. */
static bool take_key(struct builder *builder, struct frame *frame, const struct node *node,
                     bool is_plain)
{
    assert(frame->node->kind == NODE_MAP);
    assert(!frame->has_key);
    if (node->kind == NODE_LIST || node->kind == NODE_MAP)
        return fail(builder, node->position, false, "found %s as a key, expected a string",
                    node_describe(node).text);
    if (node->kind == NODE_NULL || node->kind == NODE_BOOL)
        return fail(builder, node->position, false,
                    "found %s as a key, expected a string (put it in quotes)",
                    node_describe(node).text);
    frame->has_key = true;
    frame->key = node->text;
    frame->key_position = node->position;
    frame->is_merge = is_plain && strcmp(node->text, "<<") == 0;
    return true;
}

/* Adds the node to the innermost open list or map, as an element, a key or a value. */
static bool attach(struct builder *builder, struct node *node, bool is_plain)
{
    struct frame *frame = top(builder);
    if (frame == NULL) {
        builder->root = node;
        return true;
    }
    if (!is_open_map(frame)) {
        node_append(&builder->loader->arena, frame->node, node);
        return true;
    }
    if (!frame->has_key)
        return take_key(builder, frame, node, is_plain);
    frame->has_key = false;
    const struct node_entry *twin = frame->is_merge ? NULL : node_find(frame->node, frame->key);
    if (twin != NULL || (frame->is_merge && frame->merged != NULL)) {
        if (builder->origin->reference != NULL)
            return fail(builder, frame->key_position, false,
                        "the key \"%s\" occurs twice in one map", frame->key);
        loader_problem(builder->loader, frame->key_position, NULL,
                       "found the key \"%s\" a second time in the same map (first in line %zu), "
                       "expected each key once",
                       frame->key,
                       twin != NULL ? twin->position.line : frame->merged->position.line);
        return true;
    }
    if (frame->is_merge)
        frame->merged = node;
    else
        node_add(
            &builder->loader->arena, frame->node,
            (struct node_entry){.key = frame->key, .position = frame->key_position, .value = node});
    return true;
}

/* Sets *ret_place to the anchor's place + 1, or to 0 without a name. */
static bool add_anchor(struct builder *builder, const yaml_char_t *name, struct node *node,
                       size_t *ret_place)
{
    *ret_place = 0;
    if (name == NULL)
        return true;
    if (builder->anchors_count == CONFIG_ALIASES_MAX)
        return fail(builder, node->position, true, "more than %d anchors", CONFIG_ALIASES_MAX);
    builder->anchors[builder->anchors_count++] = (struct anchor){
        .name = loader_copy_text(builder->loader, (const char *)name),
        .node = node,
        .is_open = node->kind == NODE_LIST || node->kind == NODE_MAP,
    };
    *ret_place = builder->anchors_count;
    return true;
}

static bool is_tag(const yaml_char_t *tag, const char *name)
{
    return tag != NULL && strcmp((const char *)tag, name) == 0;
}

static void set_scalar(struct node *node, struct scalar scalar)
{
    assert(scalar.kind <= NODE_TIME);
    node->kind = scalar.kind;
    node->boolean = scalar.boolean;
    node->integer = scalar.integer;
    node->real = scalar.real;
}

/* A scalar with a tag of YAML's own must read as that type; any other tag, as !!str, makes it a
 * string. */
static bool resolve_tag(struct builder *builder, struct node *node, const yaml_char_t *tag)
{
    static const struct {
        const char *tag;
        enum node_kind kind;
    } kinds[] = {
        {YAML_NULL_TAG, NODE_NULL},
        {YAML_BOOL_TAG, NODE_BOOL},
        {YAML_INT_TAG, NODE_INT},
        {YAML_FLOAT_TAG, NODE_DOUBLE},
    };
    struct scalar scalar = text_to_scalar(node->text);
    if (scalar.kind == NODE_INT && is_tag(tag, YAML_FLOAT_TAG))
        scalar = (struct scalar){.kind = NODE_DOUBLE, .real = (double)scalar.integer};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!is_tag(tag, kinds[i].tag))
            continue;
        if (scalar.kind != kinds[i].kind)
            return fail(builder, node->position, false, "cannot read %s with the tag %s",
                        node_describe(node).text, (const char *)tag);
        set_scalar(node, scalar);
    }
    if (!is_tag(tag, "tag:yaml.org,2002:binary"))
        return true;
    size_t size = 0;
    char *text = loader_zalloc(builder->loader, strlen(node->text) + 1);
    if (!base64_decode(slice_of_text(node->text), (uint8_t *)text, &size))
        return fail(builder, node->position, false, "the value of !!binary is not base64");
    text[size] = '\0';
    if (strlen(text) != size)
        return fail(builder, node->position, false, "found a NUL character in a string");
    node->text = text;
    return true;
}

/* The value of "<<" is a map or a list of maps. Keys of the map itself win over merged ones, and
 * earlier maps over later ones. */
static bool merge(struct builder *builder, struct node *map, const struct node *merged)
{
    bool is_list = merged->kind == NODE_LIST;
    assert(map->kind == NODE_MAP);
    for (size_t i = 0; i < (is_list ? merged->count : 1); i++) {
        const struct node *from = is_list ? merged->entries[i].value : merged;
        if (from->kind != NODE_MAP)
            return fail(builder, from->position, false,
                        "found %s as the value of \"<<\", expected a map or a list of maps",
                        node_describe(from).text);
        for (size_t j = 0; j < from->count; j++)
            if (node_find(map, from->entries[j].key) == NULL)
                node_add(&builder->loader->arena, map, from->entries[j]);
    }
    return true;
}

static bool on_event(struct builder *builder, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT: {
        assert(event->type == YAML_SCALAR_EVENT);
        size_t ignored;
        const char *text = (const char *)event->data.scalar.value;
        const yaml_char_t *tag = event->data.scalar.tag;
        bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && tag == NULL;
        struct node *node = new_node(builder, NODE_TEXT, event->start_mark);
        if (node == NULL)
            return false;
        if (strlen(text) != event->data.scalar.length)
            return fail(builder, node->position, false, "found a NUL character in a string");
        node->text = loader_copy_text(builder->loader, text);
        if (is_plain)
            set_scalar(node, text_to_scalar(node->text));
        else if (tag != NULL && !resolve_tag(builder, node, tag))
            return false;
        return add_anchor(builder, event->data.scalar.anchor, node, &ignored) &&
               attach(builder, node, is_plain);
    }
    case YAML_ALIAS_EVENT: {
        const char *name = (const char *)event->data.alias.anchor;
        struct position position = position_of(builder, event->start_mark);
        const struct anchor *anchor = NULL;
        for (size_t i = builder->anchors_count; i > 0; i--)
            if (strcmp(builder->anchors[i - 1].name, name) == 0) {
                anchor = &builder->anchors[i - 1];
                break;
            }
        if (anchor == NULL)
            return fail(builder, position, false, "the alias *%s has no anchor &%s before it", name,
                        name);
        if (anchor->is_open)
            return fail(builder, position, false, "the anchor &%s contains itself", name);
        if (++builder->aliases_count > CONFIG_ALIASES_MAX)
            return fail(builder, position, true, "more than %d aliases", CONFIG_ALIASES_MAX);
        struct node *copy =
            try_copy(builder->loader, anchor->node, builder->origin->depth + builder->depth + 1);
        if (copy == NULL)
            return fail(builder, position, true,
                        "the alias *%s grows the configuration beyond %d values or %d levels", name,
                        CONFIG_NODES_MAX, CONFIG_DEPTH_MAX);
        return attach(builder, copy, false);
    }
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT: {
        assert(builder->depth <= CONFIG_DEPTH_MAX);
        bool is_map = event->type == YAML_MAPPING_START_EVENT;
        const yaml_char_t *anchor =
            is_map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
        struct frame frame = {
            .node = new_node(builder, is_map ? NODE_MAP : NODE_LIST, event->start_mark)};
        if (frame.node == NULL)
            return false;
        if (builder->origin->depth + builder->depth >= CONFIG_DEPTH_MAX)
            return fail(builder, frame.node->position, true, "lists and maps nest deeper than %d",
                        CONFIG_DEPTH_MAX);
        struct frame *parent = top(builder);
        if (parent != NULL && is_open_map(parent) && !parent->has_key)
            return take_key(builder, parent, frame.node, false);
        if (!add_anchor(builder, anchor, frame.node, &frame.anchor))
            return false;
        builder->frames[builder->depth++] = frame;
        return true;
    }
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: {
        assert(builder->depth > 0);
        struct frame frame = builder->frames[--builder->depth];
        if (frame.merged != NULL && !merge(builder, frame.node, frame.merged))
            return false;
        if (frame.anchor > 0)
            builder->anchors[frame.anchor - 1].is_open = false;
        return attach(builder, frame.node, false);
    }
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return true;
    }
    return true;
}

/* What libyaml found, with a hint at common mistakes. */
static bool refuse_syntax(struct builder *builder, const yaml_parser_t *parser)
{
    const char *problem = parser->problem != NULL ? parser->problem : "not enough memory";
    struct slice bytes = builder->bytes;
    if (parser->error == YAML_READER_ERROR || parser->problem == NULL) {
        /* The reader's errors carry a byte offset instead of a mark. */
        yaml_mark_t mark = {.index = parser->problem_offset};
        for (size_t i = 0; i < parser->problem_offset && i < bytes.size; i++) {
            mark.column++;
            if (bytes.data[i] == '\n') {
                mark.line++;
                mark.column = 0;
            }
        }
        return fail(builder, position_of(builder, mark), false, "this is not valid YAML: %s",
                    problem);
    }
    struct position position = position_of(builder, parser->problem_mark);
    size_t at = parser->problem_mark.index;
    const char *hint = "";
    if (strstr(problem, "cannot start any token") != NULL && at < bytes.size &&
        bytes.data[at] == '\t')
        hint = " (tabs cannot indent; use blanks)";
    else if (strstr(problem, "did not find expected ','") != NULL &&
             memmem(bytes.data, bytes.size, "${", 2) != NULL)
        hint = " (inside {…} and […], put ${…} in quotes)";
    if (parser->context == NULL)
        return fail(builder, position, false, "this is not valid YAML: %s%s", problem, hint);
    return fail(builder, position, false, "this is not valid YAML: %s, %s from line %zu%s", problem,
                parser->context, parser->context_mark.line + 1, hint);
}

struct node *yaml_tree_parse(struct loader *loader, struct slice bytes,
                             const struct yaml_origin *origin, struct yaml_failure *failure)
{
    yaml_parser_t parser;
    struct builder *builder = mem_zalloc(sizeof(*builder));
    builder->loader = loader;
    builder->origin = origin;
    builder->bytes = bytes;
    builder->failure = failure;
    struct node *root = NULL;
    if (!yaml_parser_initialize(&parser)) {
        fail(builder, origin->position, true, "not enough memory to parse YAML");
    } else {
        yaml_parser_set_input_string(&parser, bytes.data, bytes.size);
        bool is_fine = true;
        bool is_done = false;
        while (is_fine && !is_done) {
            yaml_event_t event;
            if (!yaml_parser_parse(&parser, &event)) {
                is_fine = refuse_syntax(builder, &parser);
                break;
            }
            is_fine = on_event(builder, &event);
            is_done = event.type == YAML_DOCUMENT_END_EVENT || event.type == YAML_STREAM_END_EVENT;
            yaml_event_delete(&event);
        }
        if (is_fine)
            root = builder->root != NULL ? builder->root
                                         : new_node(builder, NODE_NULL, (yaml_mark_t){.line = 0});
        yaml_parser_delete(&parser);
    }
    mem_free(builder);
    return root;
}
