/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing protobuf's wire format. Pure functions; any thread. */
#include "src/otlp/wire.h"

#include <assert.h>

struct wire_reader wire_reader_of(struct slice bytes)
{
    assert(bytes.data != NULL || bytes.size == 0);
    /* No offset from NULL, not even 0. */
    const uint8_t *end = bytes.size > 0 ? bytes.data + bytes.size : bytes.data;
    return (struct wire_reader){.at = bytes.data, .end = end};
}

static void fail(struct wire_reader *reader, const char *failure)
{
    if (reader->failure == NULL)
        reader->failure = failure;
}

uint64_t wire_read_varint(struct wire_reader *reader, unsigned bytes_max)
{
    assert(bytes_max <= WIRE_VARINT_BYTES_MAX);
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes_max; i++) {
        if (reader->at == reader->end) {
            fail(reader, "a varint is cut off");
            return 0;
        }
        uint8_t byte = *reader->at++;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80)
            return value;
    }
    fail(reader, "a varint is too long");
    return 0;
}

/* The same, with one and two bytes inline. */
static inline uint64_t read_varint(struct wire_reader *reader, unsigned bytes_max)
{
    const uint8_t *at = reader->at;
    if (reader->end - at < 2 || (at[0] >= 0x80 && at[1] >= 0x80))
        return wire_read_varint(reader, bytes_max);
    reader->at += at[0] < 0x80 ? 1 : 2;
    return at[0] < 0x80 ? at[0] : (uint64_t)(at[0] & 0x7f) | (uint64_t)at[1] << 7;
}

static struct slice read_raw(struct wire_reader *reader, uint64_t size)
{
    if (size > (uint64_t)(reader->end - reader->at)) {
        fail(reader, "a field is longer than the message that it is in");
        return slice_of(reader->at, 0);
    }
    struct slice bytes = slice_of(reader->at, (size_t)size);
    reader->at += size;
    return bytes;
}

static uint64_t read_fixed(struct wire_reader *reader, size_t size)
{
    assert(size == 4 || size == 8);
    struct slice raw = read_raw(reader, size);
    uint64_t value = 0;
    for (size_t i = 0; i < raw.size; i++)
        value |= (uint64_t)raw.data[i] << (8 * i);
    return value;
}

bool wire_read_field(struct wire_reader *reader, struct wire_field *ret_field)
{
    assert(reader->at <= reader->end);
    if (reader->failure != NULL || reader->at == reader->end)
        return false;
    const uint8_t *begin = reader->at;
    uint64_t tag = read_varint(reader, WIRE_SHORT_VARINT_BYTES_MAX);
    if (tag > UINT32_MAX || tag >> 3 == 0)
        fail(reader, "an invalid field number");
    ret_field->number = (uint32_t)(tag >> 3);
    ret_field->type = (enum wire_type)(tag & 7);
    ret_field->number_value = 0;
    ret_field->bytes = (struct slice){.data = NULL};
    switch (ret_field->type) {
    case WIRE_VARINT:
        ret_field->number_value = read_varint(reader, WIRE_VARINT_BYTES_MAX);
        break;
    case WIRE_FIXED64:
        ret_field->number_value = read_fixed(reader, 8);
        break;
    case WIRE_FIXED32:
        ret_field->number_value = read_fixed(reader, 4);
        break;
    case WIRE_BYTES:
        ret_field->bytes = read_raw(reader, read_varint(reader, WIRE_SHORT_VARINT_BYTES_MAX));
        break;
    case WIRE_GROUP_BEGIN:
    case WIRE_GROUP_END:
        fail(reader, "a group, which is not supported");
        break;
    default:
        fail(reader, "an invalid wire type");
    }
    ret_field->whole = slice_of(begin, (size_t)(reader->at - begin));
    return reader->failure == NULL;
}

struct wire_writer wire_writer_of(void *room, size_t size)
{
    assert(room != NULL || size == 0);
    uint8_t *begin = room;
    return (struct wire_writer){
        .begin = begin, .at = begin, .end = size > 0 ? begin + size : begin};
}

struct slice wire_written(const struct wire_writer *writer)
{
    assert(!writer->has_failed);
    return slice_of(writer->begin, (size_t)(writer->at - writer->begin));
}

void wire_write_varint(struct wire_writer *writer, uint64_t value)
{
    assert(writer->at <= writer->end);
    if (writer->has_failed || wire_varint_size(value) > (size_t)(writer->end - writer->at)) {
        writer->has_failed = true;
        return;
    }
    for (; value >= 0x80; value >>= 7)
        *writer->at++ = (uint8_t)(value | 0x80);
    *writer->at++ = (uint8_t)value;
}

void wire_write_raw(struct wire_writer *writer, struct slice bytes)
{
    assert(writer->at <= writer->end);
    if (writer->has_failed || bytes.size > (size_t)(writer->end - writer->at)) {
        writer->has_failed = true;
        return;
    }
    if (bytes.size > 0)
        memcpy(writer->at, bytes.data, bytes.size);
    writer->at += bytes.size;
}

void wire_write_fixed64(struct wire_writer *writer, uint32_t number, uint64_t value)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    wire_write_varint(writer, wire_tag(number, WIRE_FIXED64));
    wire_write_raw(writer, slice_of(bytes, sizeof(bytes)));
}

void wire_write_number(struct wire_writer *writer, uint32_t number, uint64_t value)
{
    assert(number > 0);
    wire_write_varint(writer, wire_tag(number, WIRE_VARINT));
    wire_write_varint(writer, value);
}

void wire_write_header(struct wire_writer *writer, uint32_t number, size_t content_bytes)
{
    assert(number > 0);
    wire_write_varint(writer, wire_tag(number, WIRE_BYTES));
    wire_write_varint(writer, content_bytes);
}

void wire_write_bytes(struct wire_writer *writer, uint32_t number, struct slice bytes)
{
    wire_write_header(writer, number, bytes.size);
    wire_write_raw(writer, bytes);
}
