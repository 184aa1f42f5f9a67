/* SPDX-License-Identifier: Apache-2.0 */
/* From 1.8 and 1.9 to 1.10 only numbers changed, and both old and new fit into a tag of the same
 * length: a copy gets its tags replaced in place. Fields that are gone (1.8: comments) get a number
 * that nobody uses. 1.7 is another matter. Pure functions; any thread. */
#include "src/profiles/otlp/profile_transcode.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/base/buffer.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_transcode_1_7.h"

enum { NUMBERS = 16, GONE = 15, PATH_DEPTH = 4 };

/* New numbers by old ones. */
static const uint8_t sample_numbers[NUMBERS] = {[1] = 1, [2] = 4, [3] = 2, [4] = 3, [5] = 5};
/* And back to 1.9. */
static const uint8_t sample_1_9_numbers[NUMBERS] = {[1] = 1, [2] = 3, [3] = 4, [4] = 2, [5] = 5};
static const uint8_t profile_1_8_numbers[NUMBERS] = {
    [1] = 1,    [2] = 2, [3] = 3, [4] = 4,  [5] = 5,   [6] = 6,
    [7] = GONE, [8] = 7, [9] = 8, [10] = 9, [11] = 10, [12] = 11,
};

/* The numbers of the fields that lead from a request to its samples. */
static const uint8_t path[PATH_DEPTH] = {1, 2, 2, 2};

static void renumber(uint8_t *tag, const uint8_t numbers[NUMBERS], uint32_t old)
{
    assert((*tag >> 3 & 0xf) == (old & 0xf));
    uint32_t new = old < NUMBERS &&numbers[old] != 0 ? numbers[old] : old;
    if (old < NUMBERS)
        *tag = (uint8_t)((*tag & 0x87) | new << 3);
}

/* Both tables are by old numbers; NULL: they stay. */
struct renumbering {
    const uint8_t *samples;
    const uint8_t *profiles;
};

/* Renumbers what is `depth` steps on the path below the request. Recursion ends at PATH_DEPTH. */
static void renumber_message(const struct renumbering *numbers, uint8_t *data, size_t size,
                             unsigned depth)
{
    struct wire_reader reader = wire_reader_of(slice_of(data, size));
    struct wire_field field;
    assert(depth <= PATH_DEPTH);
    while (wire_read_field(&reader, &field)) {
        uint8_t *tag = data + (field.whole.data - data);
        if (depth < PATH_DEPTH && field.number == path[depth] && field.type == WIRE_BYTES)
            renumber_message(numbers, data + (field.bytes.data - data), field.bytes.size,
                             depth + 1);
        if (depth == PATH_DEPTH)
            renumber(tag, numbers->samples, field.number);
        else if (depth == PATH_DEPTH - 1 && numbers->profiles != NULL)
            renumber(tag, numbers->profiles, field.number);
    }
}

static struct buffer *renumbered_copy(const struct renumbering *numbers, struct slice request,
                                      struct budget *budget)
{
    struct buffer *buffer = buffer_try_create(budget, request.size);
    assert(request.data != NULL || request.size == 0);
    if (buffer == NULL)
        return NULL;
    if (request.size > 0)
        memcpy(buffer->data, request.data, request.size);
    buffer->size = request.size;
    renumber_message(numbers, buffer->data, buffer->size, 0);
    return buffer;
}

struct buffer *profile_transcode(enum profile_layout from, struct slice request,
                                 struct budget *budget)
{
    assert(from == LAYOUT_1_9 || from == LAYOUT_1_8 || from == LAYOUT_1_7);
    const struct renumbering numbers = {
        .samples = sample_numbers,
        .profiles = from == LAYOUT_1_8 ? profile_1_8_numbers : NULL,
    };
    if (from == LAYOUT_1_7)
        return profile_transcode_1_7(request, budget);
    return renumbered_copy(&numbers, request, budget);
}

struct buffer *profile_transcode_back(struct slice request, struct budget *budget)
{
    const struct renumbering numbers = {.samples = sample_1_9_numbers};
    return renumbered_copy(&numbers, request, budget);
}
