/* SPDX-License-Identifier: Apache-2.0 */
/* The room has the text's size: no replacement is longer than what it replaces. */
#include "src/records/query_output.h"

#include <assert.h>
#include <string.h>

#include "src/base/arena.h"

struct query_output query_output_of(struct arena *arena, struct slice text)
{
    return (struct query_output){.arena = arena, .text = text};
}

static void keep(struct query_output *output, size_t end)
{
    assert(output->kept <= end && end <= output->text.size);
    if (output->room == NULL && !output->has_failed) {
        output->room =
            arena_try_alloc(output->arena, output->text.size > 0 ? output->text.size : 1);
        output->has_failed = output->room == NULL;
    }
    if (!output->has_failed && end > output->kept) {
        memcpy(output->room + output->size, output->text.data + output->kept, end - output->kept);
        output->size += end - output->kept;
    }
    output->kept = end;
}

void query_output_replace(struct query_output *output, size_t begin, size_t end, char sign)
{
    assert(begin < end);
    keep(output, begin);
    if (!output->has_failed)
        output->room[output->size++] = (uint8_t)sign;
    output->kept = end;
}

void query_output_hide(struct query_output *output, size_t begin, size_t end)
{
    query_output_replace(output, begin, end, '?');
}

void query_output_skip(struct query_output *output, size_t begin, size_t end)
{
    assert(begin <= end);
    if (begin == end)
        return;
    keep(output, begin);
    output->kept = end;
}

struct slice query_output_flush(struct query_output *output, size_t end)
{
    keep(output, end);
    return slice_of(output->room, output->size);
}

struct slice query_output_finish(struct query_output *output)
{
    if (output->room == NULL && !output->has_failed)
        return output->text;
    struct slice result = query_output_flush(output, output->text.size);
    return output->has_failed ? slice_of_text("****") : result;
}
