/* SPDX-License-Identifier: Apache-2.0 */
/* Growing bytes. One owner, one thread at a time. */
#include "src/profiles/otlp/profile_bytes.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/mem.h"

enum { FIRST_BYTES = 4096 };

void profile_bytes_fini(struct profile_bytes *bytes)
{
    assert(bytes->size <= bytes->capacity);
    mem_free(bytes->data);
    if (bytes->budget != NULL)
        budget_return(bytes->budget, bytes->capacity);
    bytes->capacity = 0;
    bytes->data = NULL;
    bytes->size = 0;
}

uint64_t profile_bytes_growth(const struct profile_bytes *bytes, uint64_t more)
{
    uint64_t capacity = bytes->capacity > 0 ? bytes->capacity : FIRST_BYTES;
    if (more <= bytes->capacity - bytes->size)
        return 0;
    while (more > capacity - bytes->size)
        capacity *= 2;
    return capacity;
}

uint8_t *profile_bytes_grow(struct profile_bytes *bytes, size_t more)
{
    size_t capacity = bytes->capacity > 0 ? bytes->capacity : FIRST_BYTES;
    assert(bytes->size <= bytes->capacity);
    assert(more <= SIZE_MAX / 4);
    while (more > capacity - bytes->size)
        capacity *= 2;
    /* Both exist while it is copied. */
    if (bytes->budget != NULL)
        budget_take(bytes->budget, capacity);
    bytes->data = mem_resize(bytes->data, capacity);
    if (bytes->budget != NULL)
        budget_return(bytes->budget, bytes->capacity);
    bytes->capacity = capacity;
    return bytes->data + bytes->size;
}

void profile_bytes_add(struct profile_bytes *bytes, struct slice more)
{
    uint8_t *room = profile_bytes_room(bytes, more.size);
    if (more.size > 0)
        memcpy(room, more.data, more.size);
    bytes->size += more.size;
}

void profile_bytes_number(struct profile_bytes *bytes, uint32_t number, uint64_t value)
{
    uint8_t *at = profile_bytes_room(bytes, 1 + WIRE_VARINT_BYTES_MAX);
    assert(number < 16);
    bytes->size += (size_t)(profile_put_number(at, number, value) - at);
}

void profile_bytes_field(struct profile_bytes *bytes, uint32_t number, struct slice content)
{
    uint8_t *at = profile_bytes_room(bytes, wire_field_size(number, content.size));
    at = profile_put_varint(at, wire_tag(number, WIRE_BYTES));
    at = profile_put_varint(at, content.size);
    if (content.size > 0)
        memcpy(at, content.data, content.size);
    bytes->size = (size_t)(at - bytes->data) + content.size;
}

void profile_bytes_wrap(struct profile_bytes *bytes, size_t begin, uint32_t number)
{
    assert(begin <= bytes->size);
    size_t content_bytes = bytes->size - begin;
    size_t header_bytes = wire_field_size(number, content_bytes) - content_bytes;
    profile_bytes_room(bytes, header_bytes);
    uint8_t *at = bytes->data + begin;
    memmove(at + header_bytes, at, content_bytes);
    at = profile_put_varint(at, wire_tag(number, WIRE_BYTES));
    profile_put_varint(at, content_bytes);
    bytes->size += header_bytes;
}

uint8_t *profile_close(uint8_t *header, uint8_t *end, uint32_t number)
{
    assert(number < 16);
    assert(end >= header + PROFILE_HEADER_BYTES);
    size_t content_bytes = (size_t)(end - header) - PROFILE_HEADER_BYTES;
    size_t moved = wire_varint_size(content_bytes) - 1;
    *header = (uint8_t)wire_tag(number, WIRE_BYTES);
    if (moved > 0)
        memmove(header + PROFILE_HEADER_BYTES + moved, header + PROFILE_HEADER_BYTES,
                content_bytes);
    profile_put_varint(header + 1, content_bytes);
    return end + moved;
}
