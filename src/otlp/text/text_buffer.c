/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text with a bound. Any thread. */
#include "src/otlp/text/text_buffer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"

static const char cut_mark[] = "\n… cut: the text is too large\n";

static bool text_reserve(struct text *text, size_t size)
{
    assert(text->size <= text->capacity);
    size_t wanted = text->size + size + sizeof(cut_mark) + 1;
    if (text->is_cut || wanted > TEXT_BYTES_MAX)
        return false;
    if (wanted <= text->capacity)
        return true;
    size_t capacity = text->capacity == 0 ? 1024 : text->capacity;
    while (capacity < wanted)
        capacity *= 2;
    /* Both are charged while it is copied. */
    if (text->budget != NULL && !budget_try_take(text->budget, capacity))
        return false;
    char *data = mem_try_alloc(capacity);
    if (text->budget != NULL)
        budget_return(text->budget, data != NULL ? text->capacity : capacity);
    if (data == NULL)
        return false;
    if (text->size > 0)
        memcpy(data, text->data, text->size);
    mem_free(text->data);
    text->data = data;
    text->capacity = capacity;
    return true;
}

/* Every reservation includes room for the mark. */
void text_cut(struct text *text)
{
    assert(text->is_cut || text->capacity == 0 || text->capacity - text->size >= sizeof(cut_mark));
    if (!text->is_cut && text->capacity > 0) {
        memcpy(text->data + text->size, cut_mark, sizeof(cut_mark));
        text->size += sizeof(cut_mark) - 1;
    }
    text->is_cut = true;
}

void text_init(struct text *text, struct budget *budget)
{
    *text = (struct text){.budget = budget};
    if (text_reserve(text, 0))
        text->data[0] = '\0';
}

void text_fini(struct text *text)
{
    mem_free(text->data);
    if (text->budget != NULL)
        budget_return(text->budget, text->capacity);
    *text = (struct text){0};
}

void text_note_read(struct text *text, size_t bytes)
{
    assert(text->read_bytes <= TEXT_READ_BYTES_MAX);
    if (bytes > TEXT_READ_BYTES_MAX - text->read_bytes)
        text_cut(text);
    else
        text->read_bytes += bytes;
}

void text_add_slice(struct text *text, struct slice bytes)
{
    if (!text_reserve(text, bytes.size)) {
        text_cut(text);
        return;
    }
    if (bytes.size > 0)
        memcpy(text->data + text->size, bytes.data, bytes.size);
    text->size += bytes.size;
    text->data[text->size] = '\0';
}

void text_add(struct text *text, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    /* Names and values, which are unbounded, are added as slices. */
    assert(size >= 0);
    assert((size_t)size < sizeof(line));
    text_add_slice(text, slice_of(line, (size_t)size));
}
