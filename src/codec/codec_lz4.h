/* SPDX-License-Identifier: Apache-2.0 */
/* LZ4 frames (lz4_Frame_format.md of lz4/lz4) both ways. Keeps nothing between calls; any thread.
 */
#pragma once

#include "src/codec/codec_job.h"

/* Whether liblz4.so.1 can be loaded; loads it. Before anything else here. */
bool codec_lz4_is_there(void);

enum codec_result codec_lz4_inflate(struct codec_job *job);
enum codec_result codec_lz4_deflate(const struct codec_input *input, struct codec_job *job);
