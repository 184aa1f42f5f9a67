/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a batch with new bytes and bytes of another batch. Those are borrowed unless they are few:
 * then a copy costs less than a part. New bytes are charged to the budget, beyond its limit if need
 * be: they finish what was already accepted. One owner. */
#pragma once

#include <stdint.h>

#include "src/base/slice.h"
#include "src/otlp/rope.h"

struct batch;
struct budget;
struct buffer;

/* Each buffer is twice as large as the one before, up to the second of these. */
enum { BATCH_WRITER_BYTES_FIRST = 1024, BATCH_WRITER_BYTES_MAX = 128 * 1024 };

/* Fewer borrowed bytes are copied. */
enum { BATCH_WRITER_BORROWED_MIN = 513 };

struct batch_writer {
    struct batch *batch;
    struct budget *budget;
    struct buffer *buffer; /* where new bytes go, or NULL */
    /* References that the batch's parts still need: */
    unsigned buffer_parts;
    struct buffer *lender; /* of the last borrowed bytes, or NULL */
    unsigned lender_parts;
};

/* Borrows batch, which must have one reference. */
void batch_writer_init(struct batch_writer *writer, struct batch *batch, struct budget *budget);
void batch_writer_fini(struct batch_writer *writer);
/* Returns room for `bytes` new bytes at the end of the batch; the caller fills all of it. */
uint8_t *batch_writer_room(struct batch_writer *writer, size_t bytes)
    __attribute__((returns_nonnull));
void batch_writer_copy(struct batch_writer *writer, struct slice bytes);
/* Writes tag and length of a nested message; the caller appends its content. */
void batch_writer_header(struct batch_writer *writer, uint32_t number, uint64_t content_bytes);
/* Appends the next `bytes` of the rope. */
void batch_writer_borrow(struct batch_writer *writer, struct rope from, uint64_t bytes);
