/* SPDX-License-Identifier: Apache-2.0 */
/* A cursor over a batch's parts as if they were contiguous: after edits a message may lie in
 * several. The bytes have passed otlp_check, so malformed ones here are a bug of ours. Plain value,
 * any thread; valid as long as the batch is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/otlp/wire.h"

struct batch;

struct rope {
    const struct batch *batch;
    size_t part;   /* of the next byte, or the count of parts at the end */
    size_t offset; /* in that part */
    uint64_t at;   /* from the start of the batch */
};

struct rope_field {
    uint32_t number;
    enum wire_type type;
    struct rope begin;
    struct rope content; /* BYTES: past tag and length; else past the tag */
    uint64_t size;       /* from begin to the next field */
    uint64_t content_bytes;
};

/* At the start of the batch, which it borrows. */
struct rope rope_of(const struct batch *batch);
/* At most up to the end of the batch. */
void rope_skip(struct rope *rope, uint64_t bytes);
/* Reads the next field and moves past it; false when the rope is at `end`. */
bool rope_read_field(struct rope *rope, uint64_t end, struct rope_field *ret_field);
/* As many of the next `bytes` as lie in one part; not empty while bytes is not 0. */
struct slice rope_contiguous(const struct rope *rope, uint64_t bytes);
/* Copies the next `bytes` into ret_bytes, across parts. */
void rope_copy(struct rope rope, uint64_t bytes, uint8_t *ret_bytes);
