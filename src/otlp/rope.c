/* SPDX-License-Identifier: Apache-2.0 */
/* Reading across the parts of a batch. Pure functions; any thread. */
#include "src/otlp/rope.h"

#include <assert.h>

#include "src/core/batch.h"

struct rope rope_of(const struct batch *batch)
{
    return (struct rope){.batch = batch};
}

void rope_skip(struct rope *rope, uint64_t bytes)
{
    assert(bytes <= rope->batch->bytes - rope->at);
    rope->at += bytes;
    while (bytes > 0) {
        size_t left = rope->batch->parts[rope->part].bytes.size - rope->offset;
        if (bytes < left) {
            rope->offset += bytes;
            return;
        }
        bytes -= left;
        rope->part++;
        rope->offset = 0;
    }
}

struct slice rope_contiguous(const struct rope *rope, uint64_t bytes)
{
    assert(bytes <= rope->batch->bytes - rope->at);
    if (bytes == 0)
        return slice_of(NULL, 0);
    struct slice part = rope->batch->parts[rope->part].bytes;
    size_t left = part.size - rope->offset;
    return slice_of(part.data + rope->offset, bytes < left ? (size_t)bytes : left);
}

void rope_copy(struct rope rope, uint64_t bytes, uint8_t *ret_bytes)
{
    assert(bytes == 0 || ret_bytes != NULL);
    while (bytes > 0) {
        struct slice piece = rope_contiguous(&rope, bytes);
        memcpy(ret_bytes, piece.data, piece.size);
        ret_bytes += piece.size;
        bytes -= piece.size;
        rope_skip(&rope, piece.size);
    }
}

bool rope_read_field(struct rope *rope, uint64_t end, struct rope_field *ret_field)
{
    uint8_t room[WIRE_SHORT_VARINT_BYTES_MAX + WIRE_VARINT_BYTES_MAX];
    assert(end <= rope->batch->bytes);
    assert(rope->at <= end);
    if (rope->at == end)
        return false;
    uint64_t left = end - rope->at;
    uint64_t wanted = left < sizeof(room) ? left : sizeof(room);
    struct slice head = rope_contiguous(rope, wanted);
    if (head.size < wanted) {
        rope_copy(*rope, wanted, room);
        head = slice_of(room, (size_t)wanted);
    }
    struct wire_reader reader = wire_reader_of(head);
    uint64_t tag = wire_read_varint(&reader, WIRE_SHORT_VARINT_BYTES_MAX);
    struct rope_field field = {
        .number = (uint32_t)(tag >> 3),
        .type = (enum wire_type)(tag & 7),
        .begin = *rope,
        .content = *rope,
    };
    if (field.type == WIRE_VARINT)
        wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX);
    else if (field.type == WIRE_FIXED64)
        field.content_bytes = 8;
    else if (field.type == WIRE_FIXED32)
        field.content_bytes = 4;
    else
        field.content_bytes = wire_read_varint(&reader, WIRE_SHORT_VARINT_BYTES_MAX);
    field.size = (uint64_t)(reader.at - head.data) + field.content_bytes;
    assert(reader.failure == NULL);
    assert(field.size <= left);
    rope_skip(&field.content, field.size - field.content_bytes);
    *rope = field.begin;
    rope_skip(rope, field.size);
    *ret_field = field;
    return true;
}
