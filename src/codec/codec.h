/* SPDX-License-Identifier: Apache-2.0 */
/* All compressions of bodies and messages behind one pair of functions. Outputs are counted
 * buffers, charged to a budget while they grow, bounded by the caller's limit and by
 * INFLATE_RATIO_MAX. States are large, made when first used, and kept: one box per lane and user,
 * used on that lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/codec/codec_types.h"

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

/* Finds a codec by its exact name in Content-Encoding or grpc-encoding, as the Go collector does.
 * "", and in grpc-encoding "identity", is CODEC_NONE; CODECS when there is no such codec. */
enum codec codec_of_http(struct slice name);
enum codec codec_of_grpc(struct slice name);

/* Loads the codec's library, which otherwise happens at first use. False: it is missing. */
bool codec_prepare(enum codec codec, struct error *error);

/* Outputs are charged to budget, which may be NULL. */
struct codec_box *codec_box_create(struct budget *budget);
/* NULL is a no-op. */
void codec_box_destroy(struct codec_box *box);

/* Inflates the whole input (not CODEC_NONE). *ret_output is the caller's, set on CODEC_OK only. */
enum codec_result codec_inflate(struct codec_box *box, enum codec codec, struct slice input,
                                uint64_t max_bytes, struct buffer **ret_output);
/* The same for what takes little time: no long input, and no output of plain_max bytes or more.
 * False: it may take longer; call codec_inflate on the lane's helper, with a box that is used only
 * there. */
bool codec_inflate_little(struct codec_box *box, enum codec codec, struct slice input,
                          uint64_t max_bytes, uint64_t plain_max, enum codec_result *ret_result,
                          struct buffer **ret_output);
/* Why the last codec_inflate failed, in the words of the Go libraries where they have some
 * ("gzip: invalid header"). A constant string that clients may see. */
const char *codec_reason(const struct codec_box *box);

/* Deflates all parts (not CODEC_NONE; call codec_prepare first): CODEC_OK or CODEC_NO_BUDGET.
 * *ret_output as above. */
enum codec_result codec_deflate(struct codec_box *box, enum codec codec,
                                const struct codec_input *input, struct buffer **ret_output);
