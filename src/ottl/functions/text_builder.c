/* SPDX-License-Identifier: Apache-2.0 */
/* Moves to twice the room. Runs on the processor's thread. */
#include "src/ottl/functions/text_builder.h"

enum { CAPACITY_FIRST = 64 };

bool text_builder_init(struct text_builder *builder, struct ottl_call *call, size_t expected)
{
    size_t capacity = expected > CAPACITY_FIRST ? expected : CAPACITY_FIRST;
    *builder = (struct text_builder){.call = call, .bytes = ottl_alloc(call, capacity)};
    builder->capacity = builder->bytes != NULL ? capacity : 0;
    return builder->bytes != NULL;
}

bool text_builder_room(struct text_builder *builder, size_t bytes)
{
    size_t capacity = 2 * builder->capacity;
    if (bytes <= builder->capacity - builder->size)
        return true;
    if (capacity < builder->size + bytes)
        capacity = builder->size + bytes;
    uint8_t *moved = ottl_alloc(builder->call, capacity);
    if (moved == NULL)
        return false;
    memcpy(moved, builder->bytes, builder->size);
    builder->bytes = moved;
    builder->capacity = capacity;
    return true;
}

bool text_keep(struct ottl_call *call, struct slice text, struct slice *ret)
{
    uint8_t *room = ottl_alloc(call, text.size);
    if (room == NULL)
        return false;
    if (text.size > 0)
        memcpy(room, text.data, text.size);
    *ret = slice_of(room, text.size);
    return true;
}
