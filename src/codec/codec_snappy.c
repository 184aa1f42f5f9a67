/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks with libsnappy, frames by hand: the library has none. Checksums are CRC-32C by ISA-L.
 * Error messages are those of github.com/golang/snappy. Any thread. */
#include "src/codec/codec_job.h"

#include "src/base/buffer.h"
#include "src/base/dynlib.h"
#include "src/base/mem.h"
#include "src/core/batch.h"

#include <assert.h>
#include <string.h>

#include <isa-l/crc.h>
#include <snappy-c.h>

enum {
    CHUNK_HEADER_BYTES = 4,
    CHECKSUM_BYTES = 4,
    CHUNK_PLAIN_BYTES_MAX = 65536,
    CHUNK_BYTES_MAX = 76490 + CHECKSUM_BYTES, /* CHUNK_PLAIN_BYTES_MAX compressed, at worst */
    IDENTIFIER_BYTES = 10,
};

#define FUNCTIONS(X)                                                                               \
    X(snappy_compress)                                                                             \
    X(snappy_max_compressed_length)                                                                \
    X(snappy_uncompress)                                                                           \
    X(snappy_uncompressed_length)

struct functions {
    FUNCTIONS(DYNLIB_MEMBER)
};

#define ROW(function) DYNLIB_ROW(struct functions, function),
static struct functions library;
static struct dynlib dynlib = {.name = "libsnappy.so.1",
                               .symbols = (const struct dynlib_symbol[]){FUNCTIONS(ROW){NULL, 0}},
                               .functions = &library};

bool codec_snappy_is_there(void)
{
    return dynlib_load(&dynlib);
}

enum chunk_type {
    CHUNK_COMPRESSED = 0x00,
    CHUNK_PLAIN = 0x01,
    CHUNK_UNSKIPPABLE_LAST = 0x7f,
    CHUNK_IDENTIFIER = 0xff,
};

static const uint8_t identifier[IDENTIFIER_BYTES] = {0xff, 6, 0, 0, 's', 'N', 'a', 'P', 'p', 'Y'};
static const char corrupt[] = "snappy: corrupt input";
static const char unsupported[] = "snappy: unsupported input";

/* Section 3: rotated and offset, so that data with checksums in it has good checksums too. */
static uint32_t masked_checksum(const uint8_t *data, size_t size)
{
    assert(size <= CHUNK_PLAIN_BYTES_MAX);
    uint32_t crc = ~crc32_iscsi((unsigned char *)(uintptr_t)data, (int)size, UINT32_MAX);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static uint32_t little_endian_32(const uint8_t *data)
{
    return (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
           (uint32_t)data[3] << 24;
}

bool codec_snappy_is_framed(struct slice input)
{
    assert(input.data != NULL || input.size == 0);
    return input.size >= IDENTIFIER_BYTES && memcmp(input.data, identifier, IDENTIFIER_BYTES) == 0;
}

/* Appends the decoded block to the output. */
static enum codec_result inflate_block(struct codec_job *job, struct slice block)
{
    const char *data = (const char *)block.data;
    size_t plain;
    if (library.snappy_uncompressed_length(data, block.size, &plain) != SNAPPY_OK)
        return codec_job_malformed(job, corrupt);
    if (plain > job->limit - codec_output_size(&job->output))
        return CODEC_TOO_LARGE;
    if (!codec_output_reserve(&job->output, plain))
        return CODEC_NO_BUDGET;
    size_t room;
    char *to = (char *)codec_output_room(&job->output, &room);
    if (library.snappy_uncompress(data, block.size, to, &room) != SNAPPY_OK)
        return codec_job_malformed(job, corrupt);
    codec_output_advance(&job->output, room);
    return CODEC_OK;
}

enum codec_result codec_snappy_inflate(struct codec_job *job)
{
    size_t plain;
    assert(job->limit > 0);
    if (library.snappy_uncompressed_length((const char *)job->input.data, job->input.size,
                                           &plain) != SNAPPY_OK)
        return codec_job_malformed(job, corrupt);
    if (plain > job->limit)
        return CODEC_TOO_LARGE;
    if (!codec_output_begin(&job->output, job->budget, plain, job->limit))
        return CODEC_NO_BUDGET;
    return inflate_block(job, job->input);
}

enum codec_result codec_snappy_inflate_framed(struct codec_job *job)
{
    struct slice rest = job->input;
    struct slice identity =
        slice_of(identifier + CHUNK_HEADER_BYTES, IDENTIFIER_BYTES - CHUNK_HEADER_BYTES);
    assert(job->limit > 0);
    if (rest.size > 0 && rest.data[0] != CHUNK_IDENTIFIER)
        return codec_job_malformed(job, corrupt);
    if (!codec_output_begin(&job->output, job->budget, 0, job->limit))
        return CODEC_NO_BUDGET;
    while (rest.size > 0) {
        if (rest.size < CHUNK_HEADER_BYTES)
            return codec_job_malformed(job, corrupt);
        uint32_t header = little_endian_32(rest.data);
        size_t size = header >> 8;
        if (size > CHUNK_BYTES_MAX)
            return codec_job_malformed(job, unsupported);
        if (size > rest.size - CHUNK_HEADER_BYTES)
            return codec_job_malformed(job, corrupt);
        unsigned type = header & 0xff;
        struct slice chunk = slice_of(rest.data + CHUNK_HEADER_BYTES, size);
        rest =
            slice_of(rest.data + CHUNK_HEADER_BYTES + size, rest.size - CHUNK_HEADER_BYTES - size);
        if (type != CHUNK_COMPRESSED && type != CHUNK_PLAIN) {
            if (type <= CHUNK_UNSKIPPABLE_LAST)
                return codec_job_malformed(job, unsupported);
            if (type == CHUNK_IDENTIFIER && !slice_equal(chunk, identity))
                return codec_job_malformed(job, corrupt);
            continue; /* another stream begins, or the chunk is padding, or may be skipped */
        }

        /* A checksum, then a block or plain bytes. */
        if (chunk.size < CHECKSUM_BYTES)
            return codec_job_malformed(job, corrupt);
        size_t before = codec_output_size(&job->output);
        struct slice data = slice_of(chunk.data + CHECKSUM_BYTES, chunk.size - CHECKSUM_BYTES);
        size_t plain = data.size;
        assert(before <= job->limit);
        if (type == CHUNK_COMPRESSED &&
            library.snappy_uncompressed_length((const char *)data.data, data.size, &plain) !=
                SNAPPY_OK)
            return codec_job_malformed(job, corrupt);
        if (plain > CHUNK_PLAIN_BYTES_MAX)
            return codec_job_malformed(job, corrupt);
        if (plain > job->limit - before)
            return CODEC_TOO_LARGE;
        enum codec_result result = CODEC_OK;
        if (type == CHUNK_COMPRESSED)
            result = inflate_block(job, data);
        else if (!codec_output_append(&job->output, data.data, data.size))
            result = CODEC_NO_BUDGET;
        if (result != CODEC_OK)
            return result;
        if (masked_checksum(job->output.buffer->data + before, plain) !=
            little_endian_32(chunk.data))
            return codec_job_malformed(job, corrupt);
    }
    return CODEC_OK;
}

static bool deflate_block(struct codec_job *job, struct slice plain)
{
    size_t size;
    if (!codec_output_reserve(&job->output, library.snappy_max_compressed_length(plain.size)))
        return false;
    char *to = (char *)codec_output_room(&job->output, &size);
    snappy_status status = library.snappy_compress((const char *)plain.data, plain.size, to, &size);
    assert(status == SNAPPY_OK);
    codec_output_advance(&job->output, size);
    return true;
}

/* A block needs all bytes in one piece. */
enum codec_result codec_snappy_deflate(const struct codec_input *input, struct codec_job *job)
{
    struct codec_output joined = {.buffer = NULL};
    struct slice plain = slice_of("", 0);
    assert(job->output.buffer == NULL);
    bool is_taken = true;
    if (input->parts_count == 1) {
        plain = input->parts[0].bytes;
    } else {
        uint64_t total = 0;
        for (size_t i = 0; i < input->parts_count; i++)
            total += input->parts[i].bytes.size;
        is_taken = codec_output_begin(&joined, job->budget, total, UINT64_MAX);
        for (size_t i = 0; is_taken && i < input->parts_count; i++)
            is_taken = codec_output_append(&joined, input->parts[i].bytes.data,
                                           input->parts[i].bytes.size);
        if (is_taken)
            plain = buffer_slice(joined.buffer);
    }
    is_taken = is_taken && codec_output_begin(&job->output, job->budget, 0, job->limit) &&
               deflate_block(job, plain);
    codec_output_drop(&joined);
    return is_taken ? CODEC_OK : CODEC_NO_BUDGET;
}

/* One chunk of at most CHUNK_PLAIN_BYTES_MAX; uncompressed if that would save less than an eighth.
 */
static bool deflate_chunk(struct codec_job *job, struct slice plain)
{
    enum { HEAD_BYTES = CHUNK_HEADER_BYTES + CHECKSUM_BYTES };
    static const uint8_t blank[HEAD_BYTES];
    assert(plain.size > 0);
    size_t begin = codec_output_size(&job->output);
    uint32_t checksum = masked_checksum(plain.data, plain.size);
    if (!codec_output_append(&job->output, blank, HEAD_BYTES) || !deflate_block(job, plain))
        return false;
    enum chunk_type type = CHUNK_COMPRESSED;
    struct buffer *buffer = job->output.buffer;
    if (buffer->size - begin - HEAD_BYTES >= plain.size - plain.size / 8) {
        type = CHUNK_PLAIN;
        buffer->size = begin + HEAD_BYTES;
        if (!codec_output_append(&job->output, plain.data, plain.size))
            return false;
    }
    buffer = job->output.buffer;
    size_t size = buffer->size - begin - CHUNK_HEADER_BYTES;
    assert(size <= CHUNK_BYTES_MAX);
    uint32_t header = (uint32_t)type | (uint32_t)size << 8;
    for (unsigned i = 0; i < 4; i++) {
        buffer->data[begin + i] = (uint8_t)(header >> 8 * i);
        buffer->data[begin + CHUNK_HEADER_BYTES + i] = (uint8_t)(checksum >> 8 * i);
    }
    return true;
}

/* Copies the parts into chunks of CHUNK_PLAIN_BYTES_MAX and deflates each. */
static bool deflate_parts(const struct codec_input *input, struct codec_job *job, uint8_t *joined)
{
    size_t joined_size = 0;
    for (size_t i = 0; i < input->parts_count; i++) {
        struct slice rest = input->parts[i].bytes;
        while (rest.size > 0) {
            size_t size = CHUNK_PLAIN_BYTES_MAX - joined_size;
            size = size < rest.size ? size : rest.size;
            memcpy(joined + joined_size, rest.data, size);
            joined_size += size;
            rest = slice_of(rest.data + size, rest.size - size);
            if (joined_size < CHUNK_PLAIN_BYTES_MAX)
                continue;
            if (!deflate_chunk(job, slice_of(joined, joined_size)))
                return false;
            joined_size = 0;
        }
    }
    return joined_size == 0 || deflate_chunk(job, slice_of(joined, joined_size));
}

enum codec_result codec_snappy_deflate_framed(const struct codec_input *input,
                                              struct codec_job *job)
{
    assert(job->output.buffer == NULL);
    uint8_t *joined = mem_alloc(CHUNK_PLAIN_BYTES_MAX);
    bool is_taken = codec_output_begin(&job->output, job->budget, 0, job->limit) &&
                    codec_output_append(&job->output, identifier, sizeof(identifier)) &&
                    deflate_parts(input, job, joined);
    mem_free(joined);
    return is_taken ? CODEC_OK : CODEC_NO_BUDGET;
}
