/* SPDX-License-Identifier: Apache-2.0 */
/* Nested messages. Runs on the owner's thread. */
#include "src/otlp/nested_output.h"

#include <assert.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/otlp/wire.h"

enum { BYTES_FIRST = 1024, FIELD_BYTES_MAX = WIRE_SHORT_VARINT_BYTES_MAX + WIRE_VARINT_BYTES_MAX };

void nested_output_fini(struct nested_output *output)
{
    buffer_unref(output->buffer);
    output->buffer = NULL;
}

size_t nested_output_size(const struct nested_output *output)
{
    return output->buffer != NULL ? output->buffer->size : 0;
}

void nested_output_cut(struct nested_output *output, size_t size)
{
    assert(size <= nested_output_size(output));
    if (output->buffer != NULL)
        output->buffer->size = size;
}

/* Makes room for that many more bytes. False: no memory. */
static bool grow(struct nested_output *output, size_t bytes)
{
    struct buffer *buffer = output->buffer;
    size_t least = nested_output_size(output) + bytes;
    size_t capacity = buffer != NULL ? 2 * buffer->capacity : BYTES_FIRST;
    if (output->refused_bytes > 0)
        return false;
    if (capacity < least)
        capacity = least;
    buffer = buffer != NULL ? buffer_try_grow(buffer, capacity)
                            : buffer_try_create(output->budget, capacity);
    if (buffer == NULL) {
        output->refused_bytes = capacity;
        return false;
    }
    output->buffer = buffer;
    return true;
}

static inline bool reserve(struct nested_output *output, size_t bytes)
{
    const struct buffer *buffer = output->buffer;
    bool has_room = buffer != NULL && buffer->capacity - buffer->size >= bytes;
    return (has_room && output->refused_bytes == 0) || grow(output, bytes);
}

bool nested_output_has_room(struct nested_output *output, size_t bytes)
{
    return reserve(output, bytes);
}

static inline void put_varint(struct buffer *buffer, uint64_t value)
{
    uint8_t *at = buffer->data + buffer->size;
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    buffer->size = (size_t)(at - buffer->data);
}

void nested_put_number(struct nested_output *output, uint32_t number, uint64_t value)
{
    if (!reserve(output, FIELD_BYTES_MAX))
        return;
    put_varint(output->buffer, wire_tag(number, WIRE_VARINT));
    put_varint(output->buffer, value);
}

void nested_put_fixed64(struct nested_output *output, uint32_t number, uint64_t value)
{
    uint8_t bytes[sizeof(value)];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    if (!reserve(output, FIELD_BYTES_MAX))
        return;
    put_varint(output->buffer, wire_tag(number, WIRE_FIXED64));
    nested_put_raw(output, slice_of(bytes, sizeof(bytes)));
}

void nested_put_bytes(struct nested_output *output, uint32_t number, struct slice bytes)
{
    if (!reserve(output, FIELD_BYTES_MAX + bytes.size))
        return;
    put_varint(output->buffer, wire_tag(number, WIRE_BYTES));
    put_varint(output->buffer, bytes.size);
    nested_put_raw(output, bytes);
}

void nested_put_text(struct nested_output *output, uint32_t number, struct slice text)
{
    if (text.size > 0)
        nested_put_bytes(output, number, text);
}

void nested_put_id(struct nested_output *output, uint32_t number, struct slice id)
{
    if (!slice_is_zero(id))
        nested_put_bytes(output, number, id);
}

void nested_put_raw(struct nested_output *output, struct slice bytes)
{
    if (bytes.size == 0 || !reserve(output, bytes.size))
        return;
    struct buffer *buffer = output->buffer;
    memcpy(buffer->data + buffer->size, bytes.data, bytes.size);
    buffer->size += bytes.size;
}

struct nested_message nested_put_begin(struct nested_output *output, uint32_t number,
                                       uint8_t length_bytes)
{
    assert(length_bytes > 0 && length_bytes <= WIRE_SHORT_VARINT_BYTES_MAX);
    if (!reserve(output, FIELD_BYTES_MAX))
        return (struct nested_message){.begin = 0};
    put_varint(output->buffer, wire_tag(number, WIRE_BYTES));
    output->buffer->size += length_bytes;
    return (struct nested_message){output->buffer->size, length_bytes};
}

void nested_put_end(struct nested_output *output, struct nested_message nested)
{
    if (!reserve(output, WIRE_VARINT_BYTES_MAX))
        return;
    struct buffer *buffer = output->buffer;
    assert(nested.begin > 0 && nested.begin <= buffer->size);
    size_t size = buffer->size - nested.begin;
    size_t head = nested.begin - nested.length_bytes;
    size_t needed = wire_varint_size(size);
    if (needed != nested.length_bytes)
        memmove(buffer->data + head + needed, buffer->data + nested.begin, size);
    buffer->size = head;
    put_varint(buffer, size);
    buffer->size += size;
}
