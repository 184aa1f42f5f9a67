/* SPDX-License-Identifier: Apache-2.0 */
/* gzip (RFC 1952) both ways with ISA-L. Owns the codec states, which are large: each is made when
 * it is first used and kept. Runs on the lane of its user. */
#include "src/net/gzip.h"

#include "src/batch.h"
#include "src/buffer.h"
#include "src/limits.h"
#include "src/mem.h"
#include "src/slice.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include <isa-l/igzip_lib.h>

enum {
    MEMBER_BYTES_MIN = 18, /* header 10, trailer 8 */
    TRAILER_ISIZE_BYTES = 4,
    INFLATE_FIRST_BYTES = 16 * 1024,
    INFLATE_SLACK_BYTES = 512, /* room behind the output, so that its end is decoded fast too */
    DEFLATE_CHUNK_BYTES = 64 * 1024,
    LEVEL_STANDARD = 1,
};

struct deflater {
    struct isal_zstream stream;
    uint8_t *level_memory; /* what ISA-L works in, enough for level */
    uint32_t level_memory_bytes;
    int level;
    uint8_t chunk[DEFLATE_CHUNK_BYTES]; /* where output gathers before it goes into a buffer */
};

struct gzip {
    struct inflate_state *inflater;
    struct deflater *deflater;
};

/* Below this much waste a buffer stays as it is. */
static size_t tolerable_waste(size_t size)
{
    return size / 8 + INFLATE_SLACK_BYTES;
}

/* A queued body must not hold more of the budget than it fills. */
static struct buffer *shrunk(struct buffer *buffer)
{
    assert(buffer->size <= buffer->capacity);
    if (buffer->capacity - buffer->size <= tolerable_waste(buffer->size))
        return buffer;
    return buffer_shrink(buffer);
}

/* The most that may come out of size bytes: the caller's limit and the bomb limit. */
static uint64_t output_limit(size_t size, uint64_t max_bytes)
{
    assert(max_bytes > 0);
    uint64_t believable = (uint64_t)size * INFLATE_RATIO_MAX;
    if (believable < INFLATE_RATIO_FREE_BYTES)
        believable = INFLATE_RATIO_FREE_BYTES;
    return believable < max_bytes ? believable : max_bytes;
}

/* ISIZE of the last member, which is the whole output of nearly every body. Only a hint: it is
 * the sender's word, so it never asks for more than the limit. */
static size_t first_capacity(const uint8_t *data, size_t size, uint64_t limit)
{
    assert(size >= MEMBER_BYTES_MIN);
    const uint8_t *trailer = data + size - TRAILER_ISIZE_BYTES;
    uint64_t hint = (uint64_t)trailer[0] | (uint64_t)trailer[1] << 8 | (uint64_t)trailer[2] << 16 |
                    (uint64_t)trailer[3] << 24;
    if (hint > limit || hint < size / 2)
        hint = size * 4 > INFLATE_FIRST_BYTES ? size * 4 : INFLATE_FIRST_BYTES;
    return (size_t)(hint < limit ? hint : limit) + INFLATE_SLACK_BYTES;
}

/* Makes room behind what is there; false when the budget refuses. */
static bool make_room(struct buffer **buffer, uint64_t limit)
{
    assert((*buffer)->size <= limit);
    uint64_t capacity = (uint64_t)(*buffer)->capacity * 2;
    if (capacity > limit + INFLATE_SLACK_BYTES)
        capacity = limit + INFLATE_SLACK_BYTES;
    if (capacity <= (*buffer)->capacity)
        return true;
    struct buffer *grown = buffer_try_grow(*buffer, (size_t)capacity);
    if (grown == NULL)
        return false;
    *buffer = grown;
    return true;
}

/* Inflates the member that begins at state->next_in; ISA-L checks header, CRC and ISIZE. */
static enum gzip_result inflate_member(struct inflate_state *state, struct buffer **output,
                                       uint64_t limit)
{
    assert(limit > 0);
    isal_inflate_reset(state);
    state->crc_flag = ISAL_GZIP;
    while (state->block_state != ISAL_BLOCK_FINISH) {
        if ((*output)->size == (*output)->capacity && !make_room(output, limit))
            return GZIP_NO_BUDGET;
        struct buffer *buffer = *output;
        size_t room = buffer->capacity - buffer->size;
        assert(room > 0);
        state->next_out = buffer->data + buffer->size;
        state->avail_out = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
        uint32_t offered = state->avail_out;
        if (isal_inflate(state) != ISAL_DECOMP_OK)
            return GZIP_MALFORMED;
        buffer->size += offered - state->avail_out;
        if (buffer->size > limit)
            return GZIP_TOO_LARGE;
        if (state->block_state != ISAL_BLOCK_FINISH && state->avail_out > 0)
            return GZIP_MALFORMED; /* it wants more input, and there is none */
    }
    return GZIP_OK;
}

/* ISA-L's levels end at 3; zlib's 4 to 9 ask for "smaller", which is 3 here. */
static int isal_level(int level)
{
    if (level < 0)
        return LEVEL_STANDARD;
    return level > ISAL_DEF_MAX_LEVEL ? ISAL_DEF_MAX_LEVEL : level;
}

/* The small work areas cost 1 % of speed against the large ones and a third of the memory. */
static uint32_t level_memory_bytes(int level)
{
    static const uint32_t bytes[] = {
        [0] = ISAL_DEF_LVL0_SMALL,
        [1] = ISAL_DEF_LVL1_SMALL,
        [2] = ISAL_DEF_LVL2_SMALL,
        [3] = ISAL_DEF_LVL3_SMALL,
    };
    assert(level >= 0);
    assert(level <= ISAL_DEF_MAX_LEVEL);
    return bytes[level];
}

static struct deflater *deflater_of(struct gzip *gzip)
{
    assert(gzip != NULL);
    if (gzip->deflater == NULL) {
        gzip->deflater = mem_alloc(sizeof(*gzip->deflater));
        gzip->deflater->level_memory = NULL;
        gzip->deflater->level_memory_bytes = 0;
    }
    return gzip->deflater;
}

static void deflater_begin(struct deflater *deflater, int level)
{
    assert(level <= ISAL_DEF_MAX_LEVEL);
    uint32_t needed = level_memory_bytes(level);
    if (deflater->level_memory_bytes < needed) {
        deflater->level_memory = mem_resize(deflater->level_memory, needed);
        deflater->level_memory_bytes = needed;
    }
    struct isal_zstream *stream = &deflater->stream;
    isal_deflate_init(stream);
    stream->level = (uint32_t)level;
    stream->level_buf = deflater->level_memory;
    stream->level_buf_size = deflater->level_memory_bytes;
    stream->gzip_flag = IGZIP_GZIP;
    stream->flush = NO_FLUSH;
    stream->next_out = deflater->chunk;
    stream->avail_out = DEFLATE_CHUNK_BYTES;
}

/* Moves what has gathered in the chunk to the end of output, which begins as NULL. The last call
 * makes it exact. */
static bool take_chunk(struct deflater *deflater, struct budget *budget, struct buffer **output)
{
    assert(deflater->stream.avail_out <= DEFLATE_CHUNK_BYTES);
    size_t gathered = DEFLATE_CHUNK_BYTES - deflater->stream.avail_out;
    size_t held = *output == NULL ? 0 : (*output)->size;
    struct buffer *larger = *output;
    if (larger == NULL)
        larger = buffer_try_create(budget, gathered);
    else if (larger->capacity < held + gathered)
        larger = buffer_try_grow(larger, held * 2 + gathered);
    if (larger == NULL)
        return false;
    memcpy(larger->data + held, deflater->chunk, gathered);
    larger->size = held + gathered;
    *output = larger;
    deflater->stream.next_out = deflater->chunk;
    deflater->stream.avail_out = DEFLATE_CHUNK_BYTES;
    return true;
}

/* Deflates one part; false when the budget refuses. */
static bool deflate_part(struct deflater *deflater, struct budget *budget, struct slice part,
                         struct buffer **output)
{
    assert(part.size <= UINT32_MAX);
    struct isal_zstream *stream = &deflater->stream;
    stream->next_in = (uint8_t *)(uintptr_t)part.data; /* ISA-L only reads it */
    stream->avail_in = (uint32_t)part.size;
    for (;;) {
        int result = isal_deflate(stream);
        assert(result == COMP_OK);
        if (stream->avail_out > 0)
            return true;
        if (!take_chunk(deflater, budget, output))
            return false;
    }
}

struct gzip *gzip_create(void)
{
    return mem_zalloc(sizeof(struct gzip));
}

void gzip_destroy(struct gzip *gzip)
{
    if (gzip == NULL)
        return;
    if (gzip->deflater != NULL)
        mem_free(gzip->deflater->level_memory);
    mem_free(gzip->deflater);
    mem_free(gzip->inflater);
    mem_free(gzip);
}

enum gzip_result gzip_inflate(struct gzip *gzip, struct budget *budget, const uint8_t *data,
                              size_t size, uint64_t max_bytes, struct buffer **ret_output)
{
    assert(gzip != NULL);
    assert(ret_output != NULL);
    assert(size <= UINT32_MAX);
    if (size < MEMBER_BYTES_MIN)
        return GZIP_MALFORMED;
    if (gzip->inflater == NULL) {
        gzip->inflater = mem_alloc(sizeof(*gzip->inflater));
        isal_inflate_init(gzip->inflater);
    }
    uint64_t limit = output_limit(size, max_bytes);
    struct buffer *output = buffer_try_create(budget, first_capacity(data, size, limit));
    if (output == NULL)
        return GZIP_NO_BUDGET;
    struct slice input = slice_of(data, size);
    gzip->inflater->next_in = (uint8_t *)(uintptr_t)input.data; /* ISA-L only reads it */
    gzip->inflater->avail_in = (uint32_t)size;
    enum gzip_result result = GZIP_OK;
    while (result == GZIP_OK && gzip->inflater->avail_in > 0) {
        result = inflate_member(gzip->inflater, &output, limit);
    }
    if (result != GZIP_OK) {
        buffer_unref(output);
        return result;
    }
    *ret_output = shrunk(output);
    return GZIP_OK;
}

enum gzip_result gzip_deflate(struct gzip *gzip, struct budget *budget,
                              const struct batch_part *parts, size_t parts_count, int level,
                              struct buffer **ret_output)
{
    assert(gzip != NULL);
    assert(ret_output != NULL);
    assert(parts != NULL || parts_count == 0);
    struct deflater *deflater = deflater_of(gzip);
    struct buffer *output = NULL;
    deflater_begin(deflater, isal_level(level));
    const struct batch_part nothing = {.bytes = slice_of("", 0)};
    if (parts_count == 0) {
        parts = &nothing;
        parts_count = 1;
    }
    bool is_taken = true;
    for (size_t i = 0; i < parts_count && is_taken; i++) {
        deflater->stream.end_of_stream = i + 1 == parts_count;
        is_taken = deflate_part(deflater, budget, parts[i].bytes, &output);
    }
    if (!is_taken || !take_chunk(deflater, budget, &output)) {
        buffer_unref(output);
        return GZIP_NO_BUDGET;
    }
    *ret_output = shrunk(output);
    return GZIP_OK;
}
