/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a batch with new bytes and bytes of another batch. Those are borrowed unless they are few:
 * then a copy costs less than a part. New bytes are charged to the budget, beyond its limit if need
 * be: they finish what was already accepted. One owner. */
#pragma once

#include <stdint.h>

#include "src/base/short_bytes.h"
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
    /* Of the buffer: new bytes that are no part of the batch yet, and the room behind them. */
    uint8_t *run;
    uint8_t *at;
    uint8_t *end;
    /* References that the batch's parts still need: */
    unsigned buffer_parts;
    struct buffer *lender; /* of the last borrowed bytes, or NULL */
    unsigned lender_parts;
};

/* Borrows batch, which must have one reference. It is complete after _fini. */
void batch_writer_init(struct batch_writer *writer, struct batch *batch, struct budget *budget);
void batch_writer_fini(struct batch_writer *writer);
/* batch_writer_room with another buffer. */
uint8_t *batch_writer_grow(struct batch_writer *writer, size_t bytes)
    __attribute__((returns_nonnull));
/* Returns room for `bytes` new bytes at the end of the batch; the caller fills all of it. */
static inline __attribute__((returns_nonnull)) uint8_t *batch_writer_room(
    struct batch_writer *writer, size_t bytes)
{
    uint8_t *room = writer->at;
    if (room == NULL || bytes > (size_t)(writer->end - room))
        return batch_writer_grow(writer, bytes);
    writer->at = room + bytes;
    return room;
}
static inline void batch_writer_copy(struct batch_writer *writer, struct slice bytes)
{
    if (bytes.size > 0)
        short_copy(batch_writer_room(writer, bytes.size), bytes.data, bytes.size);
}
/* Writes tag and length of a nested message; the caller appends its content. */
void batch_writer_header(struct batch_writer *writer, uint32_t number, uint64_t content_bytes);
/* Appends bytes of a buffer, however few. */
void batch_writer_lend(struct batch_writer *writer, struct buffer *owner, struct slice bytes);
/* Appends the next `bytes` of the rope. */
void batch_writer_borrow(struct batch_writer *writer, struct rope from, uint64_t bytes);
