/* SPDX-License-Identifier: Apache-2.0 */
/* Puts new and borrowed bytes into one batch. Runs on the lane that owns the batch. */
#include "src/otlp/batch_writer.h"

#include <assert.h>

#include "src/base/buffer.h"
#include "src/core/batch.h"

enum {
    HEADER_BYTES_MAX = 2 * WIRE_SHORT_VARINT_BYTES_MAX,
    SHORT = 0x80, /* smaller numbers are one byte */
};

void batch_writer_init(struct batch_writer *writer, struct batch *batch, struct budget *budget)
{
    *writer = (struct batch_writer){.batch = batch, .budget = budget};
}

static void leave_lender(struct batch_writer *writer)
{
    if (writer->lender_parts > 0)
        buffer_ref_many(writer->lender, writer->lender_parts);
    writer->lender = NULL;
    writer->lender_parts = 0;
}

/* Makes the new bytes a part of the batch. */
static void end_run(struct batch_writer *writer)
{
    if (writer->at == writer->run)
        return;
    writer->buffer->size = (size_t)(writer->at - writer->buffer->data);
    writer->buffer_parts += batch_append_held(
        writer->batch, writer->buffer, slice_of(writer->run, (size_t)(writer->at - writer->run)));
    writer->run = writer->at;
}

static void leave_buffer(struct batch_writer *writer)
{
    end_run(writer);
    if (writer->buffer_parts > 0)
        buffer_ref_many(writer->buffer, writer->buffer_parts);
    buffer_unref(writer->buffer);
    writer->buffer = NULL;
    writer->buffer_parts = 0;
}

void batch_writer_fini(struct batch_writer *writer)
{
    leave_lender(writer);
    leave_buffer(writer);
}

void batch_writer_lend(struct batch_writer *writer, struct buffer *owner, struct slice bytes)
{
    end_run(writer);
    if (owner != writer->lender) {
        leave_lender(writer);
        writer->lender = owner;
    }
    writer->lender_parts += batch_append_held(writer->batch, owner, bytes);
}

uint8_t *batch_writer_grow(struct batch_writer *writer, size_t bytes)
{
    /* Small edits stay small. With struct buffer, to fill the allocation. */
    size_t total = BATCH_WRITER_BYTES_FIRST;
    if (writer->buffer != NULL)
        total = 2 * (sizeof(struct buffer) + writer->buffer->capacity);
    if (total > BATCH_WRITER_BYTES_MAX)
        total = BATCH_WRITER_BYTES_MAX;
    size_t capacity = total - sizeof(struct buffer);
    leave_buffer(writer);
    writer->buffer = buffer_create(writer->budget, bytes > capacity ? bytes : capacity);
    writer->run = writer->at = writer->buffer->data;
    writer->end = writer->at + writer->buffer->capacity;
    writer->at += bytes;
    return writer->run;
}

void batch_writer_header(struct batch_writer *writer, uint32_t number, uint64_t content_bytes)
{
    const uint32_t tag = wire_tag(number, WIRE_BYTES);
    if (tag < SHORT && content_bytes < SHORT * SHORT) { /* nearly always */
        const bool is_long = content_bytes >= SHORT;
        uint8_t *at = batch_writer_room(writer, 2 + (size_t)is_long);
        at[0] = (uint8_t)tag;
        at[1] = (uint8_t)((content_bytes & (SHORT - 1)) | (is_long ? SHORT : 0));
        if (is_long)
            at[2] = (uint8_t)(content_bytes / SHORT);
        return;
    }
    uint8_t room[HEADER_BYTES_MAX];
    struct wire_writer header = wire_writer_of(room, sizeof(room));
    assert(content_bytes <= UINT32_MAX);
    wire_write_header(&header, number, (size_t)content_bytes);
    batch_writer_copy(writer, wire_written(&header));
}

void batch_writer_borrow(struct batch_writer *writer, struct rope from, uint64_t bytes)
{
    assert(from.batch != writer->batch);
    if (bytes == 0)
        return;
    if (bytes < BATCH_WRITER_BORROWED_MIN) {
        rope_copy(from, bytes, batch_writer_room(writer, (size_t)bytes));
        return;
    }
    while (bytes > 0) {
        struct slice piece = rope_contiguous(&from, bytes);
        batch_writer_lend(writer, from.batch->parts[from.part].owner, piece);
        bytes -= piece.size;
        rope_skip(&from, piece.size);
    }
}
