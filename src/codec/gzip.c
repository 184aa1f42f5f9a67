/* SPDX-License-Identifier: Apache-2.0 */
/* gzip (RFC 1952) and zlib (RFC 1950) both ways with ISA-L. Owns the codec states, which are large:
 * each is made when it is first used and kept. Runs on the lane of its user. */
#include "src/codec/gzip.h"

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/base/slice.h"
#include "src/codec/codec_output.h"
#include "src/core/batch.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include <isa-l/igzip_lib.h>

enum {
    TRAILER_ISIZE_BYTES = 4,
    DEFLATE_RATIO_MAX = 1032, /* a block of one symbol for every 258 bytes of output */
    INFLATE_FIRST_BYTES = 16 * 1024,
    DEFLATE_CHUNK_BYTES = 64 * 1024,
    /* For each piece ISA-L copies up to 32 KiB of the preceding data, so pieces up to this size are
     * joined. */
    DEFLATE_SMALL_BYTES_MAX = 32 * 1024,
    DEFLATE_JOINED_BYTES = 64 * 1024,
    LEVEL_STANDARD = 1,
};

struct deflater {
    struct isal_zstream stream;
    uint8_t *level_memory; /* ISA-L's work space, enough for level */
    uint32_t level_memory_bytes;
    size_t joined_size;
    uint8_t joined[DEFLATE_JOINED_BYTES]; /* small pieces of input, not deflated yet */
    uint8_t chunk[DEFLATE_CHUNK_BYTES];   /* collects output before it goes into a buffer */
};

struct gzip {
    struct inflate_state *inflater;
    struct deflater *deflater;
    const char *reason;
};

/* What differs between the two wrappings of deflate. */
struct wrapping {
    uint32_t inflate_flag;
    uint16_t deflate_flag;
    bool has_members;  /* any number of streams, one after the other, and nothing else */
    const char *empty; /* reasons */
    const char *bad_header;
    const char *bad_checksum;
};

static const struct wrapping gzip_wrapping = {
    .inflate_flag = ISAL_GZIP,
    .deflate_flag = IGZIP_GZIP,
    .has_members = true,
    .empty = "EOF",
    .bad_header = "gzip: invalid header",
    .bad_checksum = "gzip: invalid checksum",
};

static const struct wrapping zlib_wrapping = {
    .inflate_flag = ISAL_ZLIB,
    .deflate_flag = IGZIP_ZLIB,
    .empty = "unexpected EOF",
    .bad_header = "zlib: invalid header",
    .bad_checksum = "zlib: invalid checksum",
};

/* Inflates the stream that begins at the inflater's next_in; ISA-L checks header and trailer. */
static enum gzip_result inflate_stream(struct gzip *gzip, const struct wrapping *wrapping,
                                       struct codec_output *output)
{
    struct inflate_state *state = gzip->inflater;
    assert(state->avail_in > 0);
    isal_inflate_reset(state);
    state->crc_flag = wrapping->inflate_flag;
    while (state->block_state != ISAL_BLOCK_FINISH) {
        size_t room;
        if (!codec_output_grow(output))
            return GZIP_NO_BUDGET;
        state->next_out = codec_output_room(output, &room);
        state->avail_out = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
        uint32_t offered = state->avail_out;
        int result = isal_inflate(state);
        if (result != ISAL_DECOMP_OK) {
            bool is_header = result == ISAL_INVALID_WRAPPER || result == ISAL_UNSUPPORTED_METHOD;
            gzip->reason = is_header                           ? wrapping->bad_header
                           : result == ISAL_INCORRECT_CHECKSUM ? wrapping->bad_checksum
                           : result == ISAL_NEED_DICT          ? "zlib: invalid dictionary"
                                                               : "flate: corrupt input";
            return GZIP_MALFORMED;
        }
        codec_output_advance(output, offered - state->avail_out);
        if (codec_output_is_over(output))
            return GZIP_TOO_LARGE;
        if (state->block_state != ISAL_BLOCK_FINISH && state->avail_out > 0) {
            gzip->reason = "unexpected EOF"; /* it wants more input, and there is none */
            return GZIP_MALFORMED;
        }
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

/* Large blocks: with small ones a tenth of the time goes into their Huffman trees. */
static uint32_t level_memory_bytes(int level)
{
    static const uint32_t bytes[] = {
        [0] = ISAL_DEF_LVL0_SMALL,
        [1] = ISAL_DEF_LVL1_LARGE,
        [2] = ISAL_DEF_LVL2_LARGE,
        [3] = ISAL_DEF_LVL3_LARGE,
    };
    assert(level >= 0);
    assert(level <= ISAL_DEF_MAX_LEVEL);
    return bytes[level];
}

static struct deflater *deflater_of(struct gzip *gzip)
{
    if (gzip->deflater == NULL) {
        gzip->deflater = mem_alloc(sizeof(*gzip->deflater));
        gzip->deflater->level_memory = NULL;
        gzip->deflater->level_memory_bytes = 0;
    }
    return gzip->deflater;
}

static void deflater_begin(struct deflater *deflater, const struct wrapping *wrapping, int level)
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
    stream->gzip_flag = wrapping->deflate_flag;
    stream->flush = NO_FLUSH;
    stream->next_out = deflater->chunk;
    stream->avail_out = DEFLATE_CHUNK_BYTES;
    deflater->joined_size = 0;
}

/* Moves the chunk's bytes to the end of output, which begins with its first chunk. */
static bool take_chunk(struct deflater *deflater, struct budget *budget,
                       struct codec_output *output)
{
    assert(deflater->stream.avail_out <= DEFLATE_CHUNK_BYTES);
    size_t size = DEFLATE_CHUNK_BYTES - deflater->stream.avail_out;
    if (output->buffer == NULL && !codec_output_begin(output, budget, size, UINT64_MAX))
        return false;
    if (!codec_output_append(output, deflater->chunk, size))
        return false;
    deflater->stream.next_out = deflater->chunk;
    deflater->stream.avail_out = DEFLATE_CHUNK_BYTES;
    return true;
}

/* Deflates one piece; false when the budget refuses. */
static bool deflate_piece(struct deflater *deflater, struct budget *budget, struct slice part,
                          struct codec_output *output)
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

static bool deflate_joined(struct deflater *deflater, struct budget *budget,
                           struct codec_output *output)
{
    struct slice joined = slice_of(deflater->joined, deflater->joined_size);
    assert(joined.size <= DEFLATE_JOINED_BYTES);
    deflater->joined_size = 0;
    return deflate_piece(deflater, budget, joined, output);
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

const char *gzip_reason(const struct gzip *gzip)
{
    return gzip->reason != NULL ? gzip->reason : "";
}

uint64_t gzip_declared_size(struct slice input)
{
    if (input.size < TRAILER_ISIZE_BYTES)
        return 0;
    const uint8_t *trailer = input.data + input.size - TRAILER_ISIZE_BYTES;
    uint64_t size = (uint64_t)trailer[0] | (uint64_t)trailer[1] << 8 | (uint64_t)trailer[2] << 16 |
                    (uint64_t)trailer[3] << 24;
    return size / DEFLATE_RATIO_MAX <= input.size ? size : 0;
}

static enum gzip_result inflate(struct gzip *gzip, const struct wrapping *wrapping,
                                struct budget *budget, struct slice input, uint64_t max_bytes,
                                struct buffer **ret_output)
{
    struct codec_output output;
    if (input.size == 0) {
        gzip->reason = wrapping->empty;
        return GZIP_MALFORMED;
    }
    assert(input.size <= UINT32_MAX);
    uint64_t limit = codec_output_limit(input.size, max_bytes);
    /* Begin with the client's ISIZE of the last member if it is credible, which is the whole output
     * of nearly every body; else with four times the input. */
    uint64_t hint = wrapping->has_members ? gzip_declared_size(input) : 0;
    if (hint > limit || hint < input.size / 2 || hint == 0)
        hint = input.size * 4 > INFLATE_FIRST_BYTES ? input.size * 4 : INFLATE_FIRST_BYTES;
    if (!codec_output_begin(&output, budget, hint < limit ? hint : limit, limit))
        return GZIP_NO_BUDGET;
    if (gzip->inflater == NULL) {
        gzip->inflater = mem_alloc(sizeof(*gzip->inflater));
        isal_inflate_init(gzip->inflater);
    }
    gzip->inflater->next_in = (uint8_t *)(uintptr_t)input.data; /* ISA-L only reads it */
    gzip->inflater->avail_in = (uint32_t)input.size;
    enum gzip_result result = inflate_stream(gzip, wrapping, &output);
    while (result == GZIP_OK && wrapping->has_members && gzip->inflater->avail_in > 0)
        result = inflate_stream(gzip, wrapping, &output);
    if (result == GZIP_OK)
        *ret_output = codec_output_take(&output);
    else
        codec_output_drop(&output);
    return result;
}

enum gzip_result gzip_inflate(struct gzip *gzip, struct budget *budget, const uint8_t *data,
                              size_t size, uint64_t max_bytes, struct buffer **ret_output)
{
    assert(data != NULL || size == 0);
    return inflate(gzip, &gzip_wrapping, budget, slice_of(data, size), max_bytes, ret_output);
}

enum gzip_result gzip_inflate_zlib(struct gzip *gzip, struct budget *budget, struct slice input,
                                   uint64_t max_bytes, struct buffer **ret_output)
{
    assert(input.data != NULL || input.size == 0);
    return inflate(gzip, &zlib_wrapping, budget, input, max_bytes, ret_output);
}

/* Deflates all parts after deflater_begin; joins small ones first. */
static enum gzip_result deflate_all(struct deflater *deflater, struct budget *budget,
                                    const struct batch_part *parts, size_t parts_count,
                                    struct buffer **ret_output)
{
    assert(parts != NULL || parts_count == 0);
    struct codec_output output = {.buffer = NULL};
    bool is_taken = true;
    for (size_t i = 0; i < parts_count && is_taken; i++) {
        struct slice part = parts[i].bytes;
        bool is_small = part.size <= DEFLATE_SMALL_BYTES_MAX;
        bool fits = is_small && deflater->joined_size + part.size <= DEFLATE_JOINED_BYTES;
        if (!fits && deflater->joined_size > 0)
            is_taken = deflate_joined(deflater, budget, &output);
        if (!is_taken)
            break;
        if (!is_small) {
            is_taken = deflate_piece(deflater, budget, part, &output);
            continue;
        }
        if (part.size > 0)
            memcpy(deflater->joined + deflater->joined_size, part.data, part.size);
        deflater->joined_size += part.size;
    }
    deflater->stream.end_of_stream = 1;
    is_taken = is_taken && deflate_joined(deflater, budget, &output);
    if (!is_taken || !take_chunk(deflater, budget, &output)) {
        codec_output_drop(&output);
        return GZIP_NO_BUDGET;
    }
    *ret_output = codec_output_take(&output);
    return GZIP_OK;
}

enum gzip_result gzip_deflate(struct gzip *gzip, struct budget *budget,
                              const struct batch_part *parts, size_t parts_count, int level,
                              struct buffer **ret_output)
{
    struct deflater *deflater = deflater_of(gzip);
    assert(parts != NULL || parts_count == 0);
    deflater_begin(deflater, &gzip_wrapping, isal_level(level));
    return deflate_all(deflater, budget, parts, parts_count, ret_output);
}

enum gzip_result gzip_deflate_zlib(struct gzip *gzip, struct budget *budget,
                                   const struct batch_part *parts, size_t parts_count, int level,
                                   struct buffer **ret_output)
{
    struct deflater *deflater = deflater_of(gzip);
    assert(parts != NULL || parts_count == 0);
    deflater_begin(deflater, &zlib_wrapping, isal_level(level));
    return deflate_all(deflater, budget, parts, parts_count, ret_output);
}
