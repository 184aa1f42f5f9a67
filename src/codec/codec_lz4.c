/* SPDX-License-Identifier: Apache-2.0 */
/* LZ4 frames with liblz4. The library's own buffers, two blocks of at most 4 MiB, are charged to
 * the budget while they exist. Error messages are those of github.com/pierrec/lz4. Any thread. */
#include "src/codec/codec_job.h"

#include "src/base/dynlib.h"
#include "src/base/limits.h"
#include "src/core/batch.h"

#include <assert.h>
#include <string.h>

#include <lz4frame.h>

enum {
    DICTIONARY_BYTES = 128 * 1024, /* the history of linked blocks, twice */
    DEFLATE_PIECE_BYTES = 256 * 1024,
};

#define FUNCTIONS(X)                                                                               \
    X(LZ4F_compressBegin)                                                                          \
    X(LZ4F_compressBound)                                                                          \
    X(LZ4F_compressEnd)                                                                            \
    X(LZ4F_compressUpdate)                                                                         \
    X(LZ4F_createCompressionContext)                                                               \
    X(LZ4F_createDecompressionContext)                                                             \
    X(LZ4F_decompress)                                                                             \
    X(LZ4F_freeCompressionContext)                                                                 \
    X(LZ4F_freeDecompressionContext)                                                               \
    X(LZ4F_getErrorName)                                                                           \
    X(LZ4F_getFrameInfo)                                                                           \
    X(LZ4F_isError)

struct functions {
    FUNCTIONS(DYNLIB_MEMBER)
};

#define ROW(function) DYNLIB_ROW(struct functions, function),
static struct functions library;
static struct dynlib dynlib = {.name = "liblz4.so.1",
                               .symbols = (const struct dynlib_symbol[]){FUNCTIONS(ROW){NULL, 0}},
                               .functions = &library};

bool codec_lz4_is_there(void)
{
    return dynlib_load(&dynlib);
}

static enum codec_result failed(struct codec_job *job, size_t code)
{
    static const struct {
        const char *name;
        const char *reason;
    } reasons[] = {
        {"ERROR_frameType_unknown", "lz4: bad magic number"},
        {"ERROR_headerChecksum_invalid", "lz4: invalid header checksum"},
        {"ERROR_blockChecksum_invalid", "lz4: invalid block checksum"},
        {"ERROR_contentChecksum_invalid", "lz4: invalid frame checksum"},
        {"ERROR_frameHeader_incomplete", "unexpected EOF"},
    };
    assert(library.LZ4F_isError(code));
    const char *name = library.LZ4F_getErrorName(code);
    if (strcmp(name, "ERROR_allocation_failed") == 0)
        return CODEC_NO_BUDGET;
    job->reason = "lz4: corrupt input";
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (strcmp(name, reasons[i].name) == 0)
            job->reason = reasons[i].reason;
    return CODEC_MALFORMED;
}

/* Inflates the frame that rest begins with. Charges the library's memory, and reserves room for the
 * content when the header has its size. */
static enum codec_result inflate_frame(struct codec_job *job, LZ4F_dctx *context,
                                       struct slice *rest)
{
    LZ4F_frameInfo_t info = LZ4F_INIT_FRAMEINFO;
    size_t header = rest->size;
    size_t code = library.LZ4F_getFrameInfo(context, &info, rest->data, &header);
    if (library.LZ4F_isError(code))
        return failed(job, code);
    *rest = slice_of(rest->data + header, rest->size - header);
    if (info.contentSize > job->limit - codec_output_size(&job->output))
        return CODEC_TOO_LARGE;
    /* The library holds the history and two blocks of 64 KiB, or 4, 16 or 64 times that. */
    unsigned step = info.blockSizeID > LZ4F_max64KB ? info.blockSizeID - LZ4F_max64KB : 0;
    uint64_t charge = DICTIONARY_BYTES + 2 * (64 * KIB << 2 * step);
    if (!codec_job_hold(job, info.frameType == LZ4F_skippableFrame ? 0 : charge) ||
        !codec_output_reserve(&job->output, (size_t)info.contentSize))
        return CODEC_NO_BUDGET;
    for (;;) {
        size_t room;
        size_t used = rest->size;
        if (!codec_output_grow(&job->output))
            return CODEC_NO_BUDGET;
        uint8_t *to = codec_output_room(&job->output, &room);
        size_t offered = room;
        size_t wanted = library.LZ4F_decompress(context, to, &room, rest->data, &used, NULL);
        if (library.LZ4F_isError(wanted))
            return failed(job, wanted);
        codec_output_advance(&job->output, room);
        *rest = slice_of(rest->data + used, rest->size - used);
        if (codec_output_is_over(&job->output))
            return CODEC_TOO_LARGE;
        if (wanted == 0)
            return CODEC_OK;
        if (rest->size == 0 && room < offered)
            return codec_job_malformed(job, "unexpected EOF");
    }
}

enum codec_result codec_lz4_inflate(struct codec_job *job)
{
    LZ4F_dctx *context = NULL;
    struct slice rest = job->input;
    enum codec_result result = CODEC_OK;
    assert(job->limit > 0);
    if (!codec_output_begin(&job->output, job->budget, 0, job->limit))
        return CODEC_NO_BUDGET;
    if (library.LZ4F_isError(library.LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
        return CODEC_NO_BUDGET;
    while (result == CODEC_OK && rest.size > 0)
        result = inflate_frame(job, context, &rest);
    library.LZ4F_freeDecompressionContext(context);
    return result;
}

/* Writes one frame. False: no memory, the only error there can be. */
static bool deflate_parts(const struct codec_input *input, LZ4F_cctx *context,
                          struct codec_job *job)
{
    LZ4F_preferences_t preferences = LZ4F_INIT_PREFERENCES;
    size_t room;
    preferences.frameInfo.blockSizeID = LZ4F_max256KB;
    preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
    for (size_t i = 0; i < input->parts_count; i++)
        preferences.frameInfo.contentSize += input->parts[i].bytes.size;
    if (!codec_output_reserve(&job->output, LZ4F_HEADER_SIZE_MAX))
        return false;
    uint8_t *to = codec_output_room(&job->output, &room);
    size_t written = library.LZ4F_compressBegin(context, to, room, &preferences);
    if (library.LZ4F_isError(written))
        return false;
    codec_output_advance(&job->output, written);
    for (size_t i = 0; i < input->parts_count; i++) {
        struct slice part = input->parts[i].bytes;
        while (part.size > 0) {
            size_t piece = part.size < DEFLATE_PIECE_BYTES ? part.size : DEFLATE_PIECE_BYTES;
            if (!codec_output_reserve(&job->output,
                                      library.LZ4F_compressBound(piece, &preferences)))
                return false;
            to = codec_output_room(&job->output, &room);
            written = library.LZ4F_compressUpdate(context, to, room, part.data, piece, NULL);
            if (library.LZ4F_isError(written))
                return false;
            codec_output_advance(&job->output, written);
            part = slice_of(part.data + piece, part.size - piece);
        }
    }
    if (!codec_output_reserve(&job->output, library.LZ4F_compressBound(0, &preferences)))
        return false;
    to = codec_output_room(&job->output, &room);
    written = library.LZ4F_compressEnd(context, to, room, NULL);
    if (library.LZ4F_isError(written))
        return false;
    codec_output_advance(&job->output, written);
    return true;
}

enum codec_result codec_lz4_deflate(const struct codec_input *input, struct codec_job *job)
{
    LZ4F_cctx *context = NULL;
    assert(input->parts != NULL || input->parts_count == 0);
    if (!codec_output_begin(&job->output, job->budget, 0, job->limit))
        return CODEC_NO_BUDGET;
    if (library.LZ4F_isError(library.LZ4F_createCompressionContext(&context, LZ4F_VERSION)))
        return CODEC_NO_BUDGET;
    bool is_taken = deflate_parts(input, context, job);
    library.LZ4F_freeCompressionContext(context);
    return is_taken ? CODEC_OK : CODEC_NO_BUDGET;
}
