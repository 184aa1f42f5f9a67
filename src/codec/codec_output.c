/* SPDX-License-Identifier: Apache-2.0 */
/* Growing outputs of codecs. On the codec's lane. */
#include "src/codec/codec_output.h"

#include "src/base/buffer.h"
#include "src/base/limits.h"

#include <assert.h>
#include <string.h>

enum {
    FIRST_BYTES = 16 * 1024,
    SLACK_BYTES = 512, /* room after the output: decoders are slower at the end of a buffer */
};

uint64_t codec_output_limit(size_t size_input, uint64_t max_bytes)
{
    assert(max_bytes > 0);
    uint64_t believable = (uint64_t)size_input * INFLATE_RATIO_MAX;
    if (believable < INFLATE_RATIO_FREE_BYTES)
        believable = INFLATE_RATIO_FREE_BYTES;
    return believable < max_bytes ? believable : max_bytes;
}

bool codec_output_begin(struct codec_output *output, struct budget *budget, uint64_t hint,
                        uint64_t limit)
{
    assert(hint <= limit);
    if (hint == 0)
        hint = limit < FIRST_BYTES ? limit : FIRST_BYTES;
    output->limit = limit;
    output->buffer = buffer_try_create(budget, (size_t)hint + SLACK_BYTES);
    return output->buffer != NULL;
}

/* More capacity: at least needed, else twice as much, but no more than the limit asks for. */
static bool enlarge(struct codec_output *output, uint64_t needed)
{
    uint64_t capacity = (uint64_t)output->buffer->capacity * 2;
    assert(needed > output->buffer->capacity);
    if (output->limit < UINT64_MAX - SLACK_BYTES && capacity > output->limit + SLACK_BYTES)
        capacity = output->limit + SLACK_BYTES;
    struct buffer *grown =
        buffer_try_grow(output->buffer, (size_t)(capacity > needed ? capacity : needed));
    if (grown == NULL)
        return false;
    output->buffer = grown;
    return true;
}

bool codec_output_grow(struct codec_output *output)
{
    assert(output->buffer->size <= output->limit);
    return output->buffer->size < output->buffer->capacity ||
           enlarge(output, (uint64_t)output->buffer->capacity + 1);
}

bool codec_output_reserve(struct codec_output *output, size_t size)
{
    size_t needed = output->buffer->size + size;
    return needed <= output->buffer->capacity || enlarge(output, needed + SLACK_BYTES);
}

size_t codec_output_size(const struct codec_output *output)
{
    return output->buffer->size;
}

uint8_t *codec_output_room(const struct codec_output *output, size_t *ret_size)
{
    *ret_size = output->buffer->capacity - output->buffer->size;
    return output->buffer->data + output->buffer->size;
}

void codec_output_advance(struct codec_output *output, size_t size)
{
    assert(size <= output->buffer->capacity - output->buffer->size);
    output->buffer->size += size;
}

bool codec_output_append(struct codec_output *output, const void *data, size_t size)
{
    assert(data != NULL || size == 0);
    if (!codec_output_reserve(output, size))
        return false;
    if (size > 0)
        memcpy(output->buffer->data + output->buffer->size, data, size);
    output->buffer->size += size;
    return true;
}

bool codec_output_is_over(const struct codec_output *output)
{
    return output->buffer->size > output->limit;
}

/* A queued body must not hold more of the budget than it fills. */
struct buffer *codec_output_take(struct codec_output *output)
{
    struct buffer *buffer = output->buffer;
    assert(buffer->size <= buffer->capacity);
    output->buffer = NULL;
    size_t tolerable_waste = buffer->size / 8 + SLACK_BYTES;
    if (buffer->capacity - buffer->size <= tolerable_waste)
        return buffer;
    return buffer_shrink(buffer);
}

void codec_output_drop(struct codec_output *output)
{
    buffer_unref(output->buffer);
    output->buffer = NULL;
}
