/* SPDX-License-Identifier: Apache-2.0 */
/* A resource may stand anywhere among its scopes, so each message is gone through twice. Runs on
 * the caller's thread. */
#include "connectors/shared/span_walk.h"

#include <assert.h>

#include "src/base/arena.h"
#include "src/core/batch.h"
#include "src/otlp/rope.h"
#include "src/otlp/wire.h"

enum { RESOURCES = 1, RESOURCE = 1, SCOPES = 2 };

static void walk_whole(const struct span_walker *walker, struct slice message)
{
    struct wire_reader fields = wire_reader_of(message);
    struct wire_field field;
    while (wire_next_field(&fields, &field))
        if (field.number == RESOURCE)
            walker->resource(walker->arg, field.bytes);
    assert(fields.failure == NULL);
    if (!walker->begin(walker->arg))
        return;
    fields = wire_reader_of(message);
    while (wire_next_field(&fields, &field))
        if (field.number == SCOPES)
            walker->scope(walker->arg, field.bytes);
}

/* The field's content, maybe copied. False: no memory. */
static bool in_one_piece(const struct span_walker *walker, const struct rope_field *field,
                         struct slice *ret_content)
{
    *ret_content = rope_contiguous(&field->content, field->content_bytes);
    if (ret_content->size == field->content_bytes)
        return true;
    uint8_t *room = arena_try_alloc(walker->copies, (size_t)field->content_bytes);
    if (room == NULL)
        return false;
    rope_copy(field->content, field->content_bytes, room);
    *ret_content = slice_of(room, (size_t)field->content_bytes);
    return true;
}

/* A message in several parts. */
static uint64_t walk_parts(const struct span_walker *walker, const struct rope_field *message)
{
    uint64_t end = message->content.at + message->content_bytes;
    uint64_t left_out = 0;
    struct rope rope = message->content;
    struct rope_field field;
    struct slice content;
    while (rope_read_field(&rope, end, &field)) {
        if (field.number != RESOURCE)
            continue;
        if (!in_one_piece(walker, &field, &content))
            return 1;
        walker->resource(walker->arg, content);
    }
    if (!walker->begin(walker->arg))
        return 0;
    rope = message->content;
    while (rope_read_field(&rope, end, &field)) {
        if (field.number != SCOPES)
            continue;
        if (in_one_piece(walker, &field, &content))
            walker->scope(walker->arg, content);
        else
            left_out++;
    }
    return left_out;
}

uint64_t span_walk(const struct span_walker *walker, const struct batch *batch)
{
    struct rope resources = rope_of(batch);
    struct rope_field message;
    uint64_t left_out = 0;
    assert(batch->signal == TRACES);
    while (rope_read_field(&resources, batch->bytes, &message)) {
        if (message.number != RESOURCES)
            continue;
        walker->open(walker->arg);
        struct slice content = rope_contiguous(&message.content, message.content_bytes);
        if (content.size == message.content_bytes)
            walk_whole(walker, content);
        else
            left_out += walk_parts(walker, &message);
        if (walker->copies->used_bytes > 0) {
            walker->forget(walker->arg);
            arena_clear(walker->copies);
        }
    }
    return left_out;
}
