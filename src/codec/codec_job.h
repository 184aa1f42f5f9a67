/* SPDX-License-Identifier: Apache-2.0 */
/* One inflating or deflating, which codec.c gives to a codec, and the codecs with a library of
 * their own. A codec begins the output and writes into it; codec.c takes or drops it. Runs on the
 * box's lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/codec/codec_output.h"
#include "src/codec/codec_types.h"

struct codec_zstd;

struct codec_job {
    struct budget *budget;
    struct slice input; /* inflating */
    uint64_t limit;     /* of the output */
    struct codec_output output;
    uint64_t held;      /* charged for a library's own memory until the job ends */
    const char *reason; /* with CODEC_MALFORMED */
};

/* Charges at least that many bytes for what a library allocates. False: no budget. */
bool codec_job_hold(struct codec_job *job, uint64_t bytes);
/* Sets the reason and returns CODEC_MALFORMED. */
enum codec_result codec_job_malformed(struct codec_job *job, const char *reason);
/* Ends the job: hands the output over when result is CODEC_OK, drops it otherwise. Returns result.
 */
enum codec_result codec_job_end(struct codec_job *job, enum codec_result result,
                                struct buffer **ret_output);

/* The codecs. …_is_there loads the library; it must have returned true before any other call. */

/* LZ4 frames (lz4_Frame_format.md of lz4/lz4). Keeps nothing between calls; any thread. */
bool codec_lz4_is_there(void);
enum codec_result codec_lz4_inflate(struct codec_job *job);
enum codec_result codec_lz4_deflate(const struct codec_input *input, struct codec_job *job);

/* Snappy's two forms: a bare block, and the framed stream whose chunks have checksums
 * (framing_format.txt of google/snappy). Keeps nothing between calls; any thread. */
bool codec_snappy_is_there(void);
bool codec_snappy_is_framed(struct slice input);
enum codec_result codec_snappy_inflate(struct codec_job *job);
enum codec_result codec_snappy_inflate_framed(struct codec_job *job);
enum codec_result codec_snappy_deflate(const struct codec_input *input, struct codec_job *job);
enum codec_result codec_snappy_deflate_framed(const struct codec_input *input,
                                              struct codec_job *job);

/* Zstandard (RFC 8878). States are large, made when first used, and kept unless they needed a
 * window: one struct codec_zstd per lane and user. */
bool codec_zstd_is_there(void);
struct codec_zstd *codec_zstd_create(void);
/* NULL is a no-op. */
void codec_zstd_destroy(struct codec_zstd *zstd);
enum codec_result codec_zstd_inflate(struct codec_zstd *zstd, struct codec_job *job);
enum codec_result codec_zstd_deflate(struct codec_zstd *zstd, const struct codec_input *input,
                                     struct codec_job *job);
