/* SPDX-License-Identifier: Apache-2.0 */
/* Zstandard with libzstd. A frame with a known size is decoded straight into the output; only
 * others need a window, which is bounded (RFC 9659), charged to the budget while it exists, and not
 * kept. Runs on the lane of its user. */
#include "src/codec/codec_job.h"

#include "src/base/dynlib.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"

#include <assert.h>

#include <zstd.h>
#include <zstd_errors.h>

enum {
    MAGIC_BYTES = 4,
    FRAME_HEADER_BYTES_MIN = 6,
    BLOCK_BYTES_MAX = ZSTD_BLOCKSIZE_MAX,
    WINDOW_LOG_MIN = 10, /* RFC 8878, 3.1.1.1.2 */
    STATE_KEPT_BYTES_MAX = 512 * 1024,
};

#define FUNCTIONS(X)                                                                               \
    X(ZSTD_CCtx_reset)                                                                             \
    X(ZSTD_CCtx_setParameter)                                                                      \
    X(ZSTD_CCtx_setPledgedSrcSize)                                                                 \
    X(ZSTD_CStreamOutSize)                                                                         \
    X(ZSTD_DCtx_reset)                                                                             \
    X(ZSTD_DCtx_setParameter)                                                                      \
    X(ZSTD_compressStream2)                                                                        \
    X(ZSTD_createCCtx)                                                                             \
    X(ZSTD_createDCtx)                                                                             \
    X(ZSTD_decompressStream)                                                                       \
    X(ZSTD_freeCCtx)                                                                               \
    X(ZSTD_freeDCtx)                                                                               \
    X(ZSTD_getErrorCode)                                                                           \
    X(ZSTD_getFrameContentSize)                                                                    \
    X(ZSTD_isError)                                                                                \
    X(ZSTD_sizeof_DCtx)

struct functions {
    FUNCTIONS(DYNLIB_MEMBER)
};

#define ROW(function) DYNLIB_ROW(struct functions, function),
static struct functions library;
static struct dynlib dynlib = {.name = "libzstd.so.1",
                               .symbols = (const struct dynlib_symbol[]){FUNCTIONS(ROW){NULL, 0}},
                               .functions = &library};

bool codec_zstd_is_there(void)
{
    return dynlib_load(&dynlib);
}

struct codec_zstd {
    ZSTD_DCtx *inflater;
    ZSTD_CCtx *deflater;
};

struct codec_zstd *codec_zstd_create(void)
{
    return mem_zalloc(sizeof(struct codec_zstd));
}

void codec_zstd_destroy(struct codec_zstd *zstd)
{
    if (zstd == NULL)
        return;
    if (zstd->inflater != NULL)
        library.ZSTD_freeDCtx(zstd->inflater);
    if (zstd->deflater != NULL)
        library.ZSTD_freeCCtx(zstd->deflater);
    mem_free(zstd);
}

/* Error messages are those of github.com/klauspost/compress, which the Go collector uses. */
static enum codec_result failed(struct codec_job *job, size_t code)
{
    assert(library.ZSTD_isError(code));
    ZSTD_ErrorCode error = library.ZSTD_getErrorCode(code);
    if (error == ZSTD_error_memory_allocation)
        return CODEC_NO_BUDGET;
    if (error == ZSTD_error_prefix_unknown)
        return codec_job_malformed(job, "invalid input: magic number mismatch");
    if (error == ZSTD_error_frameParameter_windowTooLarge)
        return codec_job_malformed(job, "window size exceeded");
    if (error == ZSTD_error_checksum_wrong)
        return codec_job_malformed(job, "CRC check failed");
    if (error == ZSTD_error_dictionary_wrong)
        return codec_job_malformed(job, "unknown dictionary");
    if (error == ZSTD_error_srcSize_wrong)
        return codec_job_malformed(job, "unexpected EOF");
    return codec_job_malformed(job, "invalid input: corrupt zstd frame");
}

/* RFC 8878, 3.1.1 and 3.1.2. libzstd may know the formats before it too, whose windows nobody here
 * bounds or charges. A magic number that is cut off is left to it. */
static bool is_known_format(struct slice frame)
{
    if (frame.size < MAGIC_BYTES)
        return true;
    uint32_t magic = (uint32_t)frame.data[0] | (uint32_t)frame.data[1] << 8 |
                     (uint32_t)frame.data[2] << 16 | (uint32_t)frame.data[3] << 24;
    return magic == ZSTD_MAGICNUMBER ||
           (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static enum codec_result inflate_frame(struct codec_zstd *zstd, struct codec_job *job,
                                       ZSTD_inBuffer *in)
{
    struct slice frame = slice_of(job->input.data + in->pos, in->size - in->pos);
    if (!is_known_format(frame))
        return codec_job_malformed(job, "invalid input: magic number mismatch");
    unsigned long long content = library.ZSTD_getFrameContentSize(frame.data, frame.size);
    if (content != ZSTD_CONTENTSIZE_ERROR && frame.size >= FRAME_HEADER_BYTES_MIN) {
        if (content == ZSTD_CONTENTSIZE_UNKNOWN) {
            /* The decoder holds a window and two blocks. The header's second byte has the window's
             * size (RFC 8878, 3.1.1.1.2); libzstd refuses one that is too large. */
            unsigned log = WINDOW_LOG_MIN + (frame.data[5] >> 3);
            uint64_t base = (uint64_t)1 << log;
            uint64_t window = base + base / 8 * (frame.data[5] & 7);
            if (log <= ZSTD_WINDOW_LOG_MAX &&
                !codec_job_hold(job, window + 2 * (uint64_t)BLOCK_BYTES_MAX))
                return CODEC_NO_BUDGET;
        } else if (content > job->limit - codec_output_size(&job->output)) {
            return CODEC_TOO_LARGE;
        } else if (!codec_output_reserve(&job->output, (size_t)content)) {
            return CODEC_NO_BUDGET;
        }
    } /* else decoding reports the error */
    for (;;) {
        if (!codec_output_grow(&job->output))
            return CODEC_NO_BUDGET;
        ZSTD_outBuffer out = {.pos = 0};
        out.dst = codec_output_room(&job->output, &out.size);
        size_t wanted = library.ZSTD_decompressStream(zstd->inflater, &out, in);
        if (library.ZSTD_isError(wanted))
            return failed(job, wanted);
        codec_output_advance(&job->output, out.pos);
        if (codec_output_is_over(&job->output))
            return CODEC_TOO_LARGE;
        if (wanted == 0)
            return CODEC_OK;
        if (in->pos == in->size && out.pos < out.size)
            return codec_job_malformed(job, "unexpected EOF");
    }
}

enum codec_result codec_zstd_inflate(struct codec_zstd *zstd, struct codec_job *job)
{
    ZSTD_inBuffer in = {.src = job->input.data, .size = job->input.size};
    enum codec_result result = CODEC_OK;
    assert(job->limit > 0);
    if (!codec_output_begin(&job->output, job->budget, 0, job->limit))
        return CODEC_NO_BUDGET;
    if (zstd->inflater == NULL)
        zstd->inflater = library.ZSTD_createDCtx();
    if (zstd->inflater == NULL)
        return CODEC_NO_BUDGET;
    library.ZSTD_DCtx_reset(zstd->inflater, ZSTD_reset_session_only);
    size_t code =
        library.ZSTD_DCtx_setParameter(zstd->inflater, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
    assert(!library.ZSTD_isError(code));
    while (result == CODEC_OK && in.pos < in.size)
        result = inflate_frame(zstd, job, &in);
    if (library.ZSTD_sizeof_DCtx(zstd->inflater) > STATE_KEPT_BYTES_MAX) {
        library.ZSTD_freeDCtx(zstd->inflater);
        zstd->inflater = NULL;
    }
    return result;
}

/* Feeds one part, or with ZSTD_e_end nothing more. */
static bool deflate_part(struct codec_zstd *zstd, struct codec_job *job, struct slice part,
                         ZSTD_EndDirective mode)
{
    ZSTD_inBuffer in = {.src = part.data, .size = part.size};
    assert(part.data != NULL || part.size == 0);
    for (;;) {
        ZSTD_outBuffer out = {.pos = 0};
        if (!codec_output_reserve(&job->output, library.ZSTD_CStreamOutSize()))
            return false;
        out.dst = codec_output_room(&job->output, &out.size);
        size_t left = library.ZSTD_compressStream2(zstd->deflater, &out, &in, mode);
        if (library.ZSTD_isError(left))
            return false; /* only memory can be short */
        codec_output_advance(&job->output, out.pos);
        if (mode == ZSTD_e_end ? left == 0 : in.pos == in.size)
            return true;
    }
}

enum codec_result codec_zstd_deflate(struct codec_zstd *zstd, const struct codec_input *input,
                                     struct codec_job *job)
{
    assert(input->parts != NULL || input->parts_count == 0);
    if (!codec_output_begin(&job->output, job->budget, 0, job->limit))
        return CODEC_NO_BUDGET;
    if (zstd->deflater == NULL)
        zstd->deflater = library.ZSTD_createCCtx();
    if (zstd->deflater == NULL)
        return CODEC_NO_BUDGET;
    uint64_t size = 0;
    for (size_t i = 0; i < input->parts_count; i++)
        size += input->parts[i].bytes.size;
    /* The four speeds that the Go collector maps levels to. */
    int level = input->level < 3 ? 1 : input->level < 6 ? 3 : input->level < 10 ? 7 : 11;
    library.ZSTD_CCtx_reset(zstd->deflater, ZSTD_reset_session_only);
    library.ZSTD_CCtx_setParameter(zstd->deflater, ZSTD_c_compressionLevel, level);
    /* With it the receiver needs no window, and small bodies need only small tables here. */
    library.ZSTD_CCtx_setPledgedSrcSize(zstd->deflater, size);
    for (size_t i = 0; i < input->parts_count; i++)
        if (!deflate_part(zstd, job, input->parts[i].bytes, ZSTD_e_continue))
            return CODEC_NO_BUDGET;
    bool is_taken = deflate_part(zstd, job, slice_of(NULL, 0), ZSTD_e_end);
    return is_taken ? CODEC_OK : CODEC_NO_BUDGET;
}
