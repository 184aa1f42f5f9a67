/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows in the record's memory, for functions that do not know its size before. One call.
 * Functions return false when memory is refused: the call's error is set. */
#pragma once

#include "src/ottl/ottl_function.h"

struct text_builder {
    struct ottl_call *call;
    uint8_t *bytes;
    size_t size;
    size_t capacity;
};

/* expected: bytes that are likely to be needed. */
bool text_builder_init(struct text_builder *builder, struct ottl_call *call, size_t expected);
/* Room for so many bytes more at bytes + size, which the caller may write. */
bool text_builder_room(struct text_builder *builder, size_t bytes);

static inline bool text_builder_add(struct text_builder *builder, const void *data, size_t size)
{
    if (size > builder->capacity - builder->size && !text_builder_room(builder, size))
        return false;
    if (size > 0)
        memcpy(builder->bytes + builder->size, data, size);
    builder->size += size;
    return true;
}

static inline bool text_builder_add_byte(struct text_builder *builder, uint8_t byte)
{
    return text_builder_add(builder, &byte, 1);
}

static inline struct slice text_builder_text(const struct text_builder *builder)
{
    return slice_of(builder->bytes, builder->size);
}

/* A copy in the record's memory. */
bool text_keep(struct ottl_call *call, struct slice text, struct slice *ret);
