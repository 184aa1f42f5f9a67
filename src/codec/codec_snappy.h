/* SPDX-License-Identifier: Apache-2.0 */
/* Snappy's two forms both ways: a bare block, and the framed stream whose chunks have checksums
 * (framing_format.txt of google/snappy). Keeps nothing between calls; any thread. */
#pragma once

#include "src/codec/codec_job.h"

/* Whether libsnappy.so.1 can be loaded; loads it. Before anything else here. */
bool codec_snappy_is_there(void);

/* Whether input begins as a framed stream does. */
bool codec_snappy_is_framed(struct slice input);
enum codec_result codec_snappy_inflate(struct codec_job *job);
enum codec_result codec_snappy_inflate_framed(struct codec_job *job);
enum codec_result codec_snappy_deflate(const struct codec_input *input, struct codec_job *job);
enum codec_result codec_snappy_deflate_framed(const struct codec_input *input,
                                              struct codec_job *job);
