/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, limits and problems of one load. Main thread. */
#include "src/config/loader.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "src/base/limits.h"

const struct source *loader_add_source(struct loader *loader, const char *name)
{
    assert(name != NULL);
    struct source *source = loader_zalloc(loader, sizeof(*source));
    source->name = loader_copy_text(loader, name);
    source->order = loader->sources_count++;
    return source;
}

struct node *loader_try_node(struct loader *loader, enum node_kind kind, struct position position)
{
    assert(loader != NULL);
    assert(position.source != NULL);
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
    assert(loader != NULL);
    va_start(arguments, format);
    problem_list_add(&loader->problems, position, path, format, arguments);
    va_end(arguments);
}

void loader_warning(struct loader *loader, struct position position, const struct path *path,
                    const char *format, ...)
{
    va_list arguments;
    assert(loader != NULL);
    va_start(arguments, format);
    problem_list_add(&loader->warnings, position, path, format, arguments);
    va_end(arguments);
}

void loader_notice(struct loader *loader, struct position position, const struct path *path,
                   const char *format, ...)
{
    va_list arguments;
    assert(loader != NULL);
    size_t count = loader->warnings.count;
    va_start(arguments, format);
    problem_list_add(&loader->warnings, position, path, format, arguments);
    va_end(arguments);
    if (loader->warnings.count > count)
        loader->warnings.items[count].is_notice = true;
}

size_t loader_problems(const struct loader *loader)
{
    assert(loader != NULL);
    return loader->problems.count + loader->problems.dropped;
}

void *loader_zalloc(struct loader *loader, size_t size)
{
    assert(loader != NULL);
    void *memory = arena_alloc(&loader->arena, size > 0 ? size : 1);
    memset(memory, 0, size);
    return memory;
}

char *loader_copy_text(struct loader *loader, const char *text)
{
    assert(loader != NULL);
    assert(text != NULL);
    return arena_copy_text(&loader->arena, text, strlen(text));
}

bool loader_charge_expanded(struct loader *loader, size_t bytes)
{
    assert(loader != NULL);
    if (bytes > CONFIG_EXPANDED_BYTES_MAX ||
        loader->expanded_bytes > CONFIG_EXPANDED_BYTES_MAX - bytes)
        return false;
    loader->expanded_bytes += bytes;
    return true;
}
