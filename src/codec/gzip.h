/* SPDX-License-Identifier: Apache-2.0 */
/* gzip (RFC 1952) and zlib (RFC 1950) both ways with ISA-L: bytes in, a counted buffer out, charged
 * to a budget while it grows. States are large and kept: one struct gzip per lane and user. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct batch_part;
struct budget;
struct buffer;
struct gzip;

enum gzip_result {
    GZIP_OK,
    GZIP_MALFORMED, /* not gzip, torn, bad checksum, trailing garbage: gzip_reason */
    GZIP_TOO_LARGE, /* more than max_bytes, or a bomb (INFLATE_RATIO_MAX) */
    GZIP_NO_BUDGET,
};

struct gzip *gzip_create(void);
/* NULL is a no-op. */
void gzip_destroy(struct gzip *gzip);
/* Inflates all members of data. *ret_output is owned by the caller, set on GZIP_OK only. */
enum gzip_result gzip_inflate(struct gzip *gzip, struct budget *budget, const uint8_t *data,
                              size_t size, uint64_t max_bytes, struct buffer **ret_output);
/* Inflates one zlib stream; ignores what follows it, as Go's reader does. */
enum gzip_result gzip_inflate_zlib(struct gzip *gzip, struct budget *budget, struct slice input,
                                   uint64_t max_bytes, struct buffer **ret_output);
/* What the trailer says of the output of the last member, if deflate can do that; else 0. */
uint64_t gzip_declared_size(struct slice input);
/* What was malformed, in the words of Go's compress/gzip and compress/zlib. */
const char *gzip_reason(const struct gzip *gzip);
/* Deflates the concatenated parts into one member. level: -1 standard (ISA-L's 1), 0 fastest to 3
 * smallest; more is 3. *ret_output is owned by the caller, set on GZIP_OK only. Never
 * GZIP_MALFORMED. */
enum gzip_result gzip_deflate(struct gzip *gzip, struct budget *budget,
                              const struct batch_part *parts, size_t parts_count, int level,
                              struct buffer **ret_output);
/* The same into a zlib stream. */
enum gzip_result gzip_deflate_zlib(struct gzip *gzip, struct budget *budget,
                                   const struct batch_part *parts, size_t parts_count, int level,
                                   struct buffer **ret_output);
