/* SPDX-License-Identifier: Apache-2.0 */
/* Finds codecs by name and passes jobs to them. Owns the states of those that have one. Runs on the
 * box's lane. */
#include "src/codec/codec.h"

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/codec/codec_job.h"

#include "src/codec/gzip.h"

#include <assert.h>

struct codec_box {
    struct budget *budget;
    struct gzip *gzip;
    struct codec_zstd *zstd;
    const char *reason;
};

struct codec_name {
    const char *name;
    enum codec codec;
};

static const struct codec_name http_names[] = {
    {"", CODEC_NONE},         {"gzip", CODEC_GZIP},
    {"zstd", CODEC_ZSTD},     {"zlib", CODEC_ZLIB},
    {"snappy", CODEC_SNAPPY}, {"deflate", CODEC_ZLIB},
    {"lz4", CODEC_LZ4},       {"x-snappy-framed", CODEC_SNAPPY_FRAMED},
    {NULL, CODECS},
};

/* In grpc-encoding snappy is the framed form. */
static const struct codec_name grpc_names[] = {
    {"", CODEC_NONE},     {"identity", CODEC_NONE},        {"gzip", CODEC_GZIP},
    {"zstd", CODEC_ZSTD}, {"snappy", CODEC_SNAPPY_FRAMED}, {NULL, CODECS},
};

static enum codec find(const struct codec_name *names, struct slice name)
{
    assert(name.data != NULL || name.size == 0);
    while (names->name != NULL && !slice_equal_text(name, names->name))
        names++;
    return names->codec;
}

enum codec codec_of_http(struct slice name)
{
    return find(http_names, name);
}

enum codec codec_of_grpc(struct slice name)
{
    return find(grpc_names, name);
}

static bool is_there(enum codec codec)
{
    assert(codec < CODECS);
    if (codec == CODEC_ZSTD)
        return codec_zstd_is_there();
    if (codec == CODEC_LZ4)
        return codec_lz4_is_there();
    return (codec != CODEC_SNAPPY && codec != CODEC_SNAPPY_FRAMED) || codec_snappy_is_there();
}

/* Clients see this too: the daemon lacks a library, their body is fine. */
static const char *missing(enum codec codec)
{
    assert(codec > CODEC_ZLIB && codec < CODECS);
    if (codec == CODEC_ZSTD)
        return "libzstd.so.1 cannot be loaded; install the package libzstd1";
    if (codec == CODEC_LZ4)
        return "liblz4.so.1 cannot be loaded; install the package liblz4-1";
    return "libsnappy.so.1 cannot be loaded; install the package libsnappy1v5";
}

bool codec_prepare(enum codec codec, struct error *error)
{
    return is_there(codec) || error_set(error, "compression: %s", missing(codec));
}

struct codec_box *codec_box_create(struct budget *budget)
{
    struct codec_box *box = mem_zalloc(sizeof(*box));
    box->budget = budget;
    box->gzip = gzip_create();
    box->zstd = codec_zstd_create();
    return box;
}

void codec_box_destroy(struct codec_box *box)
{
    if (box == NULL)
        return;
    gzip_destroy(box->gzip);
    codec_zstd_destroy(box->zstd);
    mem_free(box);
}

const char *codec_reason(const struct codec_box *box)
{
    return box->reason;
}

static enum codec_result of_gzip(enum gzip_result result)
{
    static const enum codec_result results[] = {
        [GZIP_OK] = CODEC_OK,
        [GZIP_MALFORMED] = CODEC_MALFORMED,
        [GZIP_TOO_LARGE] = CODEC_TOO_LARGE,
        [GZIP_NO_BUDGET] = CODEC_NO_BUDGET,
    };
    assert(result < sizeof(results) / sizeof(results[0]));
    return results[result];
}

enum codec_result codec_inflate(struct codec_box *box, enum codec codec, struct slice input,
                                uint64_t max_bytes, struct buffer **ret_output)
{
    enum codec_result result;
    uint64_t limit = codec_output_limit(input.size, max_bytes);
    assert(codec > CODEC_NONE && codec < CODECS);
    if (codec == CODEC_GZIP || codec == CODEC_ZLIB) {
        /* These two make their output themselves. */
        result = of_gzip(codec == CODEC_GZIP ? gzip_inflate(box->gzip, box->budget, input.data,
                                                            input.size, max_bytes, ret_output)
                                             : gzip_inflate_zlib(box->gzip, box->budget, input,
                                                                 max_bytes, ret_output));
        box->reason = gzip_reason(box->gzip);
    } else if (!is_there(codec)) {
        result = CODEC_MISSING;
        box->reason = missing(codec);
    } else {
        struct codec_job job = {.budget = box->budget, .input = input, .limit = limit};
        if (codec == CODEC_ZSTD)
            result = codec_zstd_inflate(box->zstd, &job);
        else if (codec == CODEC_LZ4)
            result = codec_lz4_inflate(&job);
        else if (codec == CODEC_SNAPPY && !codec_snappy_is_framed(input))
            result = codec_snappy_inflate(&job);
        else /* old collectors sent the framed form under the name of blocks, too */
            result = codec_snappy_inflate_framed(&job);
        result = codec_job_end(&job, result, ret_output);
        box->reason = job.reason;
    }
    if (result == CODEC_TOO_LARGE)
        box->reason = limit < max_bytes ? "inflates to more than 200 times its size"
                                        : "inflates to more than the limit";
    return result;
}

bool codec_inflate_little(struct codec_box *box, enum codec codec, struct slice input,
                          uint64_t max_bytes, uint64_t plain_max, enum codec_result *ret_result,
                          struct buffer **ret_output)
{
    assert(plain_max > 1);
    if (input.size > HELPED_CODED_BYTES_MAX)
        return false;
    /* The other codecs look at such a size themselves before they begin. */
    if (codec == CODEC_GZIP && gzip_declared_size(input) >= plain_max)
        return false;
    /* Sizes lie, so this is tried: it ends where the output becomes too long. */
    bool is_cut = plain_max <= max_bytes;
    *ret_result = codec_inflate(box, codec, input, is_cut ? plain_max - 1 : max_bytes, ret_output);
    return !is_cut || *ret_result != CODEC_TOO_LARGE;
}

enum codec_result codec_deflate(struct codec_box *box, enum codec codec,
                                const struct codec_input *input, struct buffer **ret_output)
{
    assert(codec > CODEC_NONE && codec < CODECS && is_there(codec));
    /* ISA-L has four levels where zlib has ten. */
    int level = input->level;
    if (level <= 0)
        level = level == 0 ? 0 : -1;
    else
        level = level < 4 ? 1 : level < 7 ? 2 : 3;
    if (codec == CODEC_GZIP)
        return of_gzip(gzip_deflate(box->gzip, box->budget, input->parts, input->parts_count, level,
                                    ret_output));
    if (codec == CODEC_ZLIB)
        return of_gzip(gzip_deflate_zlib(box->gzip, box->budget, input->parts, input->parts_count,
                                         level, ret_output));
    struct codec_job job = {.budget = box->budget, .limit = UINT64_MAX};
    enum codec_result result = codec == CODEC_ZSTD     ? codec_zstd_deflate(box->zstd, input, &job)
                               : codec == CODEC_LZ4    ? codec_lz4_deflate(input, &job)
                               : codec == CODEC_SNAPPY ? codec_snappy_deflate(input, &job)
                                                       : codec_snappy_deflate_framed(input, &job);
    return codec_job_end(&job, result, ret_output);
}
