/* SPDX-License-Identifier: Apache-2.0 */
/* Collects problems and warnings and sorts them by where they stand. Main thread. */
#include "src/config/problems.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/config.h"

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

void problem_list_add(struct problem_list *list, struct position position, const struct path *path,
                      const char *format, va_list arguments)
{
    char text[PROBLEM_TEXT_MAX];
    struct path_text where = path_to_text(path);
    assert(list != NULL);
    assert(position.source != NULL);
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
    assert(a->position.source != NULL);
    assert(b->position.source != NULL);
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
    assert(ret_count != NULL);
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

void problem_lists_take(struct problem_list *problems, struct problem_list *warnings,
                        struct config_problems *ret_problems)
{
    assert(problems != NULL && warnings != NULL);
    assert(ret_problems != NULL);
    *ret_problems = (struct config_problems){.count = 0};
    ret_problems->texts = take_texts(problems, &ret_problems->count);
    for (size_t i = 0; i < warnings->count; i++)
        ret_problems->notices_count += warnings->items[i].is_notice;
    ret_problems->warnings = take_texts(warnings, &ret_problems->warnings_count);
    mem_free(problems->items);
    mem_free(warnings->items);
    *problems = (struct problem_list){.count = 0};
    *warnings = (struct problem_list){.count = 0};
}

static void free_texts(char **texts, size_t count)
{
    assert(texts != NULL || count == 0);
    for (size_t i = 0; i < count; i++)
        mem_free(texts[i]);
    mem_free(texts);
}

void config_problems_clear(struct config_problems *problems)
{
    assert(problems != NULL);
    free_texts(problems->texts, problems->count);
    free_texts(problems->warnings, problems->warnings_count);
    *problems = (struct config_problems){.count = 0};
}
