/* SPDX-License-Identifier: Apache-2.0 */
/* The compressed bytes of a block, which stay for long. One owner (the explore worker). */
#pragma once

#include "src/base/slice.h"
#include "src/codec/codec.h"

struct buffer;

/* Compresses what is whole. NULL: no memory, or the codec failed. */
struct buffer *block_bytes_compress(struct slice raw, struct codec_box *box, enum codec codec);
