/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, limits and problems of one load, and the positions of problems. Main thread. */
#include "src/config/loader.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/config/config_limits.h"
#include "src/config/config_types.h"
#include "src/config/suggest.h"

enum { PROBLEM_TEXT_MAX = 2048 };

static size_t write_path(char *text, size_t size, const struct path *path)
{
    if (path == NULL || path->parent == NULL)
        return 0;
    size_t length = write_path(text, size, path->parent);
    const char *separator = length > 0 ? "::" : "";
    int written;
    if (length >= size)
        return length;
    if (path->key != NULL)
        written = snprintf(text + length, size - length, "%s%s", separator, path->key);
    else
        written = snprintf(text + length, size - length, "%s%zu", separator, path->index);
    assert(written >= 0);
    return length + (size_t)written;
}

struct path_text path_to_text(const struct path *path)
{
    struct path_text result = {.text = ""};
    write_path(result.text, sizeof(result.text), path);
    return result;
}

__attribute__((format(printf, 4, 0))) static void problem_list_add(struct problem_list *list,
                                                                   struct position position,
                                                                   const struct path *path,
                                                                   const char *format,
                                                                   va_list arguments)
{
    char text[PROBLEM_TEXT_MAX];
    struct path_text where = path_to_text(path);
    if (list->count == CONFIG_ERRORS_MAX) {
        list->dropped++;
        return;
    }
    if (list->items == NULL)
        list->items = mem_alloc(CONFIG_ERRORS_MAX * sizeof(*list->items));
    int length =
        snprintf(text, sizeof(text), "%s:%zu:%zu: %s%s", position.source->name, position.line,
                 position.column, where.text, where.text[0] != '\0' ? ": " : "");
    assert(length >= 0);
    if ((size_t)length < sizeof(text))
        vsnprintf(text + length, sizeof(text) - (size_t)length, format, arguments);
    list->items[list->count] = (struct problem){
        .position = position, .sequence = list->count, .text = mem_copy_text(text)};
    list->count++;
}

static int compare_sizes(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static int compare_problems(const void *left, const void *right)
{
    const struct problem *a = left;
    const struct problem *b = right;
    int order = a->is_notice - b->is_notice;
    if (order == 0)
        order = compare_sizes(a->position.source->order, b->position.source->order);
    if (order == 0)
        order = compare_sizes(a->position.line, b->position.line);
    if (order == 0)
        order = compare_sizes(a->position.column, b->position.column);
    return order != 0 ? order : compare_sizes(a->sequence, b->sequence);
}

static char **take_texts(struct problem_list *list, size_t *ret_count)
{
    if (list->count == 0)
        return NULL;
    qsort(list->items, list->count, sizeof(*list->items), compare_problems);
    size_t count = list->count + (list->dropped > 0 ? 1 : 0);
    char **texts = mem_alloc(count * sizeof(*texts));
    for (size_t i = 0; i < list->count; i++)
        texts[i] = list->items[i].text;
    if (list->dropped > 0) {
        char text[64];
        snprintf(text, sizeof(text), "… and %zu more", list->dropped);
        texts[count - 1] = mem_copy_text(text);
    }
    *ret_count = count;
    return texts;
}

void loader_take_problems(struct loader *loader, struct config_problems *ret_problems)
{
    struct problem_list *problems = &loader->problems;
    struct problem_list *warnings = &loader->warnings;
    *ret_problems = (struct config_problems){.has_unsupported = loader->has_unsupported};
    ret_problems->texts = take_texts(problems, &ret_problems->count);
    for (size_t i = 0; i < warnings->count; i++)
        ret_problems->notices_count += warnings->items[i].is_notice;
    ret_problems->warnings = take_texts(warnings, &ret_problems->warnings_count);
    mem_free(problems->items);
    mem_free(warnings->items);
    *problems = (struct problem_list){.count = 0};
    *warnings = (struct problem_list){.count = 0};
}

const struct source *loader_add_source(struct loader *loader, const char *name)
{
    struct source *source = loader_zalloc(loader, sizeof(*source));
    source->name = loader_copy_text(loader, name);
    source->order = loader->sources_count++;
    return source;
}

struct node *loader_try_node(struct loader *loader, enum node_kind kind, struct position position)
{
    if (loader->nodes_count == CONFIG_NODES_MAX)
        return NULL;
    loader->nodes_count++;
    struct node *node = loader_zalloc(loader, sizeof(*node));
    node->kind = kind;
    node->position = position;
    return node;
}

void loader_problem(struct loader *loader, struct position position, const struct path *path,
                    const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    problem_list_add(&loader->problems, position, path, format, arguments);
    va_end(arguments);
}

void loader_unsupported(struct loader *loader, struct position position, const struct path *path,
                        const char *format, ...)
{
    va_list arguments;
    struct config_component *component = loader->component;
    loader->has_unsupported |= !loader->skips_unsupported;
    va_start(arguments, format);
    if (!loader->skips_unsupported || component == NULL) {
        problem_list_add(&loader->problems, position, path, format, arguments);
    } else if (component->unsupported == NULL) {
        char text[PROBLEM_TEXT_MAX];
        int length = snprintf(text, sizeof(text), "%s:%zu:%zu: %s: ", position.source->name,
                              position.line, position.column, path_to_text(path).text);
        assert(length >= 0);
        if ((size_t)length < sizeof(text))
            vsnprintf(text + length, sizeof(text) - (size_t)length, format, arguments);
        component->unsupported = loader_copy_text(loader, text);
    }
    va_end(arguments);
}

void loader_skip(struct loader *loader, struct config_skip skip)
{
    if (loader->skips_count == loader->skips_capacity) {
        size_t capacity = loader->skips_capacity > 0 ? 2 * loader->skips_capacity : 16;
        struct config_skip *skips = loader_zalloc(loader, capacity * sizeof(skips[0]));
        if (loader->skips_count > 0)
            memcpy(skips, loader->skips, loader->skips_count * sizeof(skips[0]));
        loader->skips = skips;
        loader->skips_capacity = capacity;
    }
    loader->skips[loader->skips_count++] = skip;
}

void loader_warning(struct loader *loader, struct position position, const struct path *path,
                    const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    problem_list_add(&loader->warnings, position, path, format, arguments);
    va_end(arguments);
}

void loader_notice(struct loader *loader, struct position position, const struct path *path,
                   const char *format, ...)
{
    va_list arguments;
    size_t count = loader->warnings.count;
    va_start(arguments, format);
    problem_list_add(&loader->warnings, position, path, format, arguments);
    va_end(arguments);
    if (loader->warnings.count > count)
        loader->warnings.items[count].is_notice = true;
}

size_t loader_problems(const struct loader *loader)
{
    return loader->problems.count + loader->problems.dropped;
}

struct suggestion loader_suggestion(const struct loader *loader, const char *found)
{
    struct suggestion suggestion = suggestion_for(found);
    if (loader->problems.count == CONFIG_ERRORS_MAX)
        suggestion.considered = SUGGESTION_CANDIDATES_MAX;
    return suggestion;
}

void *loader_zalloc(struct loader *loader, size_t size)
{
    void *memory = arena_alloc(&loader->arena, size > 0 ? size : 1);
    memset(memory, 0, size);
    return memory;
}

char *loader_copy_text(struct loader *loader, const char *text)
{
    return arena_copy_text(&loader->arena, text, strlen(text));
}

bool loader_charge_expanded(struct loader *loader, size_t bytes)
{
    if (bytes > CONFIG_EXPANDED_BYTES_MAX ||
        loader->expanded_bytes > CONFIG_EXPANDED_BYTES_MAX - bytes)
        return false;
    loader->expanded_bytes += bytes;
    return true;
}

void place_find(const struct error *error, const struct node *section, struct position position,
                const struct path *path, struct place *ret_place)
{
    assert(error != NULL && error->steps_count <= ERROR_STEPS_MAX);
    const struct node *node = section;
    ret_place->position = position;
    ret_place->path = path;
    for (size_t i = error->steps_count; i > 0; i--) {
        struct error_step step = error->steps[i - 1];
        const struct node_entry *entry = NULL;
        if (step.key != NULL)
            entry = node_find(node, step.key);
        else if (node != NULL && (node->kind == NODE_MAP || node->kind == NODE_LIST) &&
                 step.index < node->count)
            entry = &node->entries[step.index];
        /* Elements of a string that was split at commas have no position of their own. */
        if (step.key == NULL && entry == NULL)
            break;
        if (entry != NULL) {
            /* A list or map begins at its key, not at its first element. */
            const struct node *value = entry->value;
            bool is_scalar =
                value->kind != NODE_MAP && value->kind != NODE_LIST && value->kind != NODE_NULL;
            ret_place->position = is_scalar ? value->position : entry->position;
        }
        struct path *inner = &ret_place->paths[i - 1];
        *inner = (struct path){.parent = ret_place->path,
                               .key = step.key != NULL ? step.key : entry->key,
                               .index = step.index};
        ret_place->path = inner;
        node = entry != NULL ? entry->value : NULL;
    }
}
