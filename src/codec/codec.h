/* SPDX-License-Identifier: Apache-2.0 */
/* Every compression that bodies and messages come and go in, behind one pair of functions: counted
 * buffers, charged to a budget while they grow, bounded by the caller's limit and by
 * INFLATE_RATIO_MAX. States are large, made when first used, and kept: one box per lane and user,
 * used on that lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct batch_part;
struct budget;
struct buffer;
struct codec_box;
struct error;

enum codec {
    CODEC_NONE,
    CODEC_GZIP,          /* RFC 1952, any number of members */
    CODEC_ZLIB,          /* RFC 1950; HTTP's "deflate" is this too */
    CODEC_ZSTD,          /* RFC 8878, any number of frames; windows as RFC 9659 has them */
    CODEC_SNAPPY,        /* inflating: framed if it begins so, else a block; deflating: a block */
    CODEC_SNAPPY_FRAMED, /* framing_format.txt of google/snappy */
    CODEC_LZ4,           /* any number of frames */
    CODECS,              /* how many there are; of a lookup: no such codec */
};

enum codec_result {
    CODEC_OK,
    CODEC_MALFORMED, /* codec_reason says how */
    CODEC_TOO_LARGE, /* more than max_bytes, or a bomb; codec_reason tells them apart */
    CODEC_NO_BUDGET, /* try again later */
    CODEC_MISSING,   /* this machine lacks the library: no fault of the sender's; codec_reason */
};

/* By the name in Content-Encoding, or in grpc-encoding; exact, as the Go collector takes them. "",
 * and in grpc-encoding "identity", is CODEC_NONE; CODECS when there is no such codec. */
enum codec codec_of_http(struct slice name);
enum codec codec_of_grpc(struct slice name);

/* Loads what the codec needs; it is loaded when first used otherwise. False: the library is
 * missing.
 */
bool codec_prepare(enum codec codec, struct error *error);

/* budget: what outputs are charged to, or NULL. */
struct codec_box *codec_box_create(struct budget *budget);
/* NULL is tolerated. */
void codec_box_destroy(struct codec_box *box);

/* Inflates the whole input (not CODEC_NONE). *ret_output is the caller's, set on CODEC_OK only. */
enum codec_result codec_inflate(struct codec_box *box, enum codec codec, struct slice input,
                                uint64_t max_bytes, struct buffer **ret_output);
/* Why the last codec_inflate failed, in the Go libraries' words where they have some
 * ("gzip: invalid header"); constant text, to be shown to the sender. */
const char *codec_reason(const struct codec_box *box);

struct codec_input {
    const struct batch_part *parts; /* compressed as one, in order */
    size_t parts_count;
    int level; /* gzip and zlib: -1 standard, 0 to 9; zstd: its own; others: not looked at */
};
/* Deflates all parts (not CODEC_NONE; codec_prepare came before): CODEC_OK or CODEC_NO_BUDGET.
 * *ret_output as above. */
enum codec_result codec_deflate(struct codec_box *box, enum codec codec,
                                const struct codec_input *input, struct buffer **ret_output);
