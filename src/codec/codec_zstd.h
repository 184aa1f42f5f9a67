/* SPDX-License-Identifier: Apache-2.0 */
/* Zstandard (RFC 8878) both ways. States are large, made when first used, and kept unless they had
 * to hold a window: one struct codec_zstd per lane and user. */
#pragma once

#include "src/codec/codec_job.h"

/* Whether libzstd.so.1 can be loaded; loads it. Before anything else here. */
bool codec_zstd_is_there(void);

struct codec_zstd;

struct codec_zstd *codec_zstd_create(void);
/* NULL is tolerated. */
void codec_zstd_destroy(struct codec_zstd *zstd);
enum codec_result codec_zstd_inflate(struct codec_zstd *zstd, struct codec_job *job);
enum codec_result codec_zstd_deflate(struct codec_zstd *zstd, const struct codec_input *input,
                                     struct codec_job *job);
