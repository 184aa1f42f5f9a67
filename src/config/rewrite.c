/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a configuration by the marks of libyaml instead of writing its tree anew, which would lose
 * comments and the user's layout. Main thread. */
#include "src/config/rewrite.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "src/base/mem.h"
#include "src/config/component_set.h"
#include "src/config/config_limits.h"
#include "src/config/config_types.h"
#include "src/config/identifier.h"

enum { NOTE_MAX = 1200 };

struct edit {
    size_t begin; /* bytes of the text */
    size_t end;
    char *replacement; /* owned */
};

struct rewriter {
    struct slice text;
    const struct config *config;
    yaml_document_t document;
    size_t *offsets; /* of each character: libyaml counts characters */
    size_t characters;
    struct edit *edits;
    size_t edits_count;
    struct error *error;
};

static size_t offset_of(const struct rewriter *self, size_t character)
{
    return self->offsets[character < self->characters ? character : self->characters];
}

static size_t begin_of(const struct rewriter *self, const yaml_node_t *node)
{
    return offset_of(self, node->start_mark.index);
}

static yaml_node_t *node_at(struct rewriter *self, int number)
{
    return yaml_document_get_node(&self->document, number);
}

/* The value of a key, or NULL. ret_pair may be NULL. */
static yaml_node_t *value_of(struct rewriter *self, const yaml_node_t *map, const char *key,
                             yaml_node_pair_t **ret_pair)
{
    if (map == NULL || map->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top;
         pair++) {
        const yaml_node_t *found = node_at(self, pair->key);
        struct identifier identifier;
        struct error ignored;
        if (found->type != YAML_SCALAR_NODE)
            continue;
        const char *text = (const char *)found->data.scalar.value;
        bool is_same = strcmp(text, key) == 0 || (text_to_identifier(text, &identifier, &ignored) &&
                                                  strcmp(identifier.id, key) == 0);
        if (!is_same)
            continue;
        if (ret_pair != NULL)
            *ret_pair = pair;
        return node_at(self, pair->value);
    }
    return NULL;
}

static void add_edit(struct rewriter *self, size_t begin, size_t end, const char *replacement)
{
    for (size_t i = 0; i < self->edits_count; i++)
        if (self->edits[i].begin == begin && self->edits[i].end == end)
            return; /* a list that several pipelines share by an alias */
    self->edits = mem_resize(self->edits, (self->edits_count + 1) * sizeof(self->edits[0]));
    self->edits[self->edits_count++] =
        (struct edit){.begin = begin, .end = end, .replacement = mem_copy_text(replacement)};
}

/* Where the last character of a value ends; an alias leads back to its anchor, and is as long as
 * its line. Recursion is bounded by CONFIG_DEPTH_MAX, which the loaded text obeys. */
static size_t content_end(struct rewriter *self, const yaml_node_t *node, size_t after,
                          unsigned depth)
{
    size_t begin = begin_of(self, node);
    const uint8_t *bytes = self->text.data;
    size_t end = offset_of(self, node->end_mark.index);
    if (begin < after || depth > CONFIG_DEPTH_MAX)
        return after;
    bool is_block_map =
        node->type == YAML_MAPPING_NODE && node->data.mapping.style != YAML_FLOW_MAPPING_STYLE;
    bool is_block_list =
        node->type == YAML_SEQUENCE_NODE && node->data.sequence.style != YAML_FLOW_SEQUENCE_STYLE;
    if (is_block_map && node->data.mapping.pairs.top > node->data.mapping.pairs.start) {
        const yaml_node_pair_t *last = node->data.mapping.pairs.top - 1;
        size_t key_end = offset_of(self, node_at(self, last->key)->end_mark.index);
        return content_end(self, node_at(self, last->value), key_end > after ? key_end : after,
                           depth + 1);
    }
    if (is_block_list && node->data.sequence.items.top > node->data.sequence.items.start) {
        size_t at = begin;
        for (const yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top; item++)
            at = content_end(self, node_at(self, *item), at, depth + 1);
        return at;
    }
    while (end > begin && strchr(" \t\r\n", bytes[end - 1]) != NULL)
        end--;
    return end > after ? end : after;
}

static size_t line_begin(const struct rewriter *self, size_t at)
{
    const uint8_t *bytes = self->text.data;
    while (at > 0 && bytes[at - 1] != '\n')
        at--;
    return at;
}

/* Behind the line break. */
static size_t line_end(const struct rewriter *self, size_t at)
{
    const uint8_t *bytes = self->text.data;
    while (at < self->text.size && bytes[at] != '\n')
        at++;
    return at < self->text.size ? at + 1 : at;
}

/* Cuts whole lines from the one of begin to the one of end, and the comments below that are
 * indented deeper. A comment in their place says what was there. False: other things are on the
 * line. */
static bool cut_lines(struct rewriter *self, size_t begin, size_t end, const char *what)
{
    char note[NOTE_MAX];
    const uint8_t *bytes = self->text.data;
    size_t first = line_begin(self, begin);
    size_t last = line_end(self, end);
    size_t indentation = 0;
    while (bytes[first + indentation] == ' ')
        indentation++;
    for (size_t i = first + indentation; i < begin; i++)
        if (bytes[i] != '-' && bytes[i] != ' ')
            return error_set(self->error, "%s shares its line with something else", what);
    while (last < self->text.size) {
        size_t at = last;
        while (at < self->text.size && bytes[at] == ' ')
            at++;
        if (at == self->text.size || bytes[at] != '#' || at - last <= indentation)
            break;
        last = line_end(self, at);
    }
    snprintf(note, sizeof(note), "%*s# Left out, not supported by spanflame: %s\n",
             (int)(indentation < 64 ? indentation : 64), "", what);
    add_edit(self, first, last, note);
    return true;
}

/* Cuts an element out of {…} or […], with the comma before or after it. */
static void cut_flow(struct rewriter *self, size_t begin, size_t end)
{
    const uint8_t *bytes = self->text.data;
    size_t after = end;
    while (after < self->text.size && strchr(" \t\r\n", bytes[after]) != NULL)
        after++;
    if (after < self->text.size && bytes[after] == ',') {
        after++;
        while (after < self->text.size && bytes[after] == ' ')
            after++;
        add_edit(self, begin, after, "");
        return;
    }
    /* The last one: the comma before it may be gone already, with the element that it followed. */
    size_t before = begin;
    bool is_moving = true;
    while (is_moving) {
        is_moving = false;
        for (size_t i = 0; i < self->edits_count; i++)
            if (self->edits[i].end == before && self->edits[i].begin < before) {
                before = self->edits[i].begin;
                is_moving = true;
            }
    }
    size_t comma = before;
    while (comma > 0 && strchr(" \t\r\n", bytes[comma - 1]) != NULL)
        comma--;
    if (comma > 0 && bytes[comma - 1] == ',')
        add_edit(self, comma - 1, before, "");
    add_edit(self, begin, end, "");
}

static bool cut_pair(struct rewriter *self, const yaml_node_t *map, const char *key,
                     const char *what)
{
    yaml_node_pair_t *pair = NULL;
    const yaml_node_t *value = value_of(self, map, key, &pair);
    if (value == NULL)
        return error_set(self->error,
                         "%s is not written in this file itself: it comes from a ${…} or a merge "
                         "key; take it out by hand",
                         what);
    const yaml_node_t *written = node_at(self, pair->key);
    size_t begin = begin_of(self, written);
    size_t key_end = offset_of(self, written->end_mark.index);
    bool is_flow = map->data.mapping.style == YAML_FLOW_MAPPING_STYLE;
    if (!is_flow)
        return cut_lines(self, begin, content_end(self, value, key_end, 0), what);
    size_t end = begin_of(self, value) >= key_end ? offset_of(self, value->end_mark.index) : 0;
    if (end == 0)
        return error_set(self->error, "%s is an alias within {}: take it out by hand", what);
    cut_flow(self, begin, end);
    return true;
}

/* Cuts an id out of a list of references. */
static bool cut_reference(struct rewriter *self, const yaml_node_t *list, const char *id,
                          const char *what)
{
    bool is_found = false;
    if (list == NULL || list->type != YAML_SEQUENCE_NODE)
        return error_set(self->error,
                         "the list with %s is not written in this file itself: it "
                         "comes from a ${…}; take it out by hand",
                         what);
    for (const yaml_node_item_t *item = list->data.sequence.items.start;
         item < list->data.sequence.items.top; item++) {
        const yaml_node_t *node = node_at(self, *item);
        struct identifier identifier;
        struct error ignored;
        if (node->type != YAML_SCALAR_NODE ||
            !text_to_identifier((const char *)node->data.scalar.value, &identifier, &ignored) ||
            strcmp(identifier.id, id) != 0)
            continue;
        is_found = true;
        size_t begin = begin_of(self, node);
        size_t end = offset_of(self, node->end_mark.index);
        if (list->data.sequence.style == YAML_FLOW_SEQUENCE_STYLE)
            cut_flow(self, begin, end);
        else if (!cut_lines(self, begin, end, what))
            return false;
    }
    return is_found || error_set(self->error, "%s is not in its list: take it out by hand", what);
}

static bool cut_skip(struct rewriter *self, const struct config_skip *skip)
{
    char what[NOTE_MAX];
    yaml_node_t *root = yaml_document_get_root_node(&self->document);
    yaml_node_t *service = value_of(self, root, "service", NULL);
    yaml_node_t *pipelines = value_of(self, service, "pipelines", NULL);
    if (skip->component == NULL) {
        snprintf(what, sizeof(what), "pipeline %s", skip->pipeline);
        return cut_pair(self, pipelines, skip->pipeline, what);
    }
    snprintf(what, sizeof(what), "%s %s", skip->section, skip->component);
    if (skip->pipeline != NULL)
        return cut_reference(
            self,
            value_of(self, value_of(self, pipelines, skip->pipeline, NULL), skip->section, NULL),
            skip->component, what);
    if (!cut_pair(self, value_of(self, root, skip->section, NULL), skip->component, what))
        return false;
    yaml_node_t *listed = value_of(self, service, "extensions", NULL);
    bool is_extension = strcmp(skip->section, component_kind_section(EXTENSION)) == 0;
    if (!is_extension || listed == NULL || listed->type != YAML_SEQUENCE_NODE)
        return true;
    struct error *error = self->error;
    struct error ignored;
    self->error = &ignored; /* an extension need not be listed */
    cut_reference(self, listed, skip->component, what);
    self->error = error;
    return true;
}

/* Replaces the type at the beginning of an id, behind a quote if there is one. */
static void rename_type(struct rewriter *self, const yaml_node_t *node, const char *from,
                        const char *to)
{
    size_t begin = begin_of(self, node);
    size_t size = strlen(from);
    const uint8_t *bytes = self->text.data;
    if (begin < self->text.size && strchr("\"'", bytes[begin]) != NULL)
        begin++;
    if (begin + size <= self->text.size && memcmp(bytes + begin, from, size) == 0)
        add_edit(self, begin, begin + size, to);
}

static void rename_references(struct rewriter *self, yaml_node_t *pipelines,
                              const struct config_component *component)
{
    const char *const lists[] = {component_kind_section(RECEIVER),
                                 component_kind_section(PROCESSOR),
                                 component_kind_section(EXPORTER)};
    enum component_kind kind = component->factory->kind;
    for (size_t i = 0; i < self->config->pipelines_count; i++) {
        yaml_node_t *pipeline = value_of(self, pipelines, self->config->pipelines[i].id, NULL);
        for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
            const yaml_node_t *list = value_of(self, pipeline, lists[k], NULL);
            bool is_for_kind = strcmp(lists[k], component_kind_section(kind)) == 0 ||
                               (kind == CONNECTOR && k != 1);
            if (!is_for_kind || list == NULL || list->type != YAML_SEQUENCE_NODE)
                continue;
            for (const yaml_node_item_t *item = list->data.sequence.items.start;
                 item < list->data.sequence.items.top; item++) {
                const yaml_node_t *node = node_at(self, *item);
                if (node->type == YAML_SCALAR_NODE &&
                    strcmp((const char *)node->data.scalar.value, component->id) == 0)
                    rename_type(self, node, component->alias, component->factory->type);
            }
        }
    }
}

/* Names of extensions stay: components refer to them by keys of their own. */
static void rename_aliases(struct rewriter *self)
{
    const struct config *config = self->config;
    yaml_node_t *root = yaml_document_get_root_node(&self->document);
    yaml_node_t *pipelines =
        value_of(self, value_of(self, root, "service", NULL), "pipelines", NULL);
    for (size_t i = 0; i < config->components_count; i++) {
        const struct config_component *component = &config->components[i];
        enum component_kind kind = component->factory->kind;
        yaml_node_pair_t *pair = NULL;
        if (component->alias == NULL || kind == EXTENSION)
            continue;
        char id[NOTE_MAX + 1024];
        snprintf(id, sizeof(id), "%s%s", component->factory->type,
                 component->id + strlen(component->alias));
        bool is_taken = false;
        for (size_t k = 0; k < config->components_count; k++)
            is_taken |= config->components[k].factory->kind == kind &&
                        strcmp(config->components[k].id, id) == 0;
        yaml_node_t *section = value_of(self, root, component_kind_section(kind), NULL);
        if (is_taken || value_of(self, section, component->id, &pair) == NULL)
            continue;
        rename_type(self, node_at(self, pair->key), component->alias, component->factory->type);
        rename_references(self, pipelines, component);
    }
}

static int compare_edits(const void *left, const void *right)
{
    const struct edit *a = left;
    const struct edit *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? 1 : a->end > b->end ? -1 : 0;
}

/* Edits within what another one cuts are void. */
static void write_edited(struct rewriter *self, FILE *out)
{
    const uint8_t *bytes = self->text.data;
    size_t at = 0;
    if (self->edits_count > 0)
        qsort(self->edits, self->edits_count, sizeof(self->edits[0]), compare_edits);
    for (size_t i = 0; i < self->edits_count; i++) {
        const struct edit *edit = &self->edits[i];
        if (edit->begin < at)
            continue;
        fwrite(bytes + at, 1, edit->begin - at, out);
        fputs(edit->replacement, out);
        at = edit->end;
    }
    fwrite(bytes + at, 1, self->text.size - at, out);
}

static void index_characters(struct rewriter *self)
{
    const uint8_t *bytes = self->text.data;
    static const unsigned char mark[] = {0xef, 0xbb, 0xbf}; /* libyaml does not count it */
    size_t first = self->text.size >= 3 && memcmp(bytes, mark, 3) == 0 ? 3 : 0;
    self->offsets = mem_alloc((self->text.size + 1) * sizeof(self->offsets[0]));
    for (size_t i = first; i < self->text.size; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            self->offsets[self->characters++] = i;
    self->offsets[self->characters] = self->text.size;
}

bool config_rewrite(struct slice text, const struct config *config, FILE *out, struct error *error)
{
    yaml_parser_t parser;
    struct rewriter self = {.text = text, .config = config, .error = error};
    if (!yaml_parser_initialize(&parser))
        return error_set(error, "not enough memory to parse YAML");
    yaml_parser_set_input_string(&parser, text.data, text.size);
    bool is_fine = yaml_parser_load(&parser, &self.document) != 0;
    if (!is_fine)
        error_set(error, "this is not valid YAML: %s",
                  parser.problem != NULL ? parser.problem : "not enough memory");
    if (is_fine) {
        index_characters(&self);
        for (size_t i = 0; is_fine && i < config->skips_count; i++)
            is_fine = cut_skip(&self, &config->skips[i]);
        if (is_fine) {
            rename_aliases(&self);
            write_edited(&self, out);
        }
        yaml_document_delete(&self.document);
    }
    yaml_parser_delete(&parser);
    for (size_t i = 0; i < self.edits_count; i++)
        mem_free(self.edits[i].replacement);
    mem_free(self.edits);
    mem_free(self.offsets);
    return is_fine;
}
