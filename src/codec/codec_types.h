/* SPDX-License-Identifier: Apache-2.0 */
/* What codec.c and the codecs behind it have in common. */
#pragma once

#include <stddef.h>

struct batch_part;

enum codec_result {
    CODEC_OK,
    CODEC_MALFORMED, /* codec_reason says how */
    CODEC_TOO_LARGE, /* more than max_bytes, or a bomb; codec_reason tells them apart */
    CODEC_NO_BUDGET, /* try again later */
    CODEC_MISSING,   /* this machine lacks the library, which is not the client's fault */
};

struct codec_input {
    const struct batch_part *parts; /* compressed as one, in order */
    size_t parts_count;
    int level; /* gzip and zlib: -1 standard, 0 to 9; zstd: its own; others: ignored */
};
