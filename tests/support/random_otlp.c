/* SPDX-License-Identifier: Apache-2.0 */
/* Random requests for tests. */
#include "tests/support/random_otlp.h"

#include <assert.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"

enum { REQUEST_BYTES_MAX = 1 << 16, DEPTH_MAX = 12, UNKNOWN_NUMBER = 90, PARTS_MAX = 5 };

uint64_t random_below(struct random_source *random, uint64_t bound)
{
    assert(bound > 0);
    random->state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t mixed = random->state;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return (mixed ^ mixed >> 31) % bound;
}

static void write_text(struct random_source *random, struct wire_writer *out, uint32_t number,
                       size_t size)
{
    uint8_t text[300];
    assert(size <= sizeof(text));
    for (size_t i = 0; i < size; i++)
        text[i] = (uint8_t)('a' + random_below(random, 26));
    wire_write_bytes(out, number, slice_of(text, size));
}

static void write_packed(struct random_source *random, struct wire_writer *out,
                         const struct otlp_field *field)
{
    uint8_t room[256];
    struct wire_writer packed = wire_writer_of(room, sizeof(room));
    for (uint64_t count = random_below(random, 8); count > 0; count--) {
        if (field->kind >= OTLP_PACKED_INT32)
            wire_write_varint(&packed, random_below(random, 1u << random_below(random, 31)));
        else
            wire_write_raw(&packed, slice_of("\1\2\3\4\5\6\7\x40", 8));
    }
    wire_write_bytes(out, field->number, wire_written(&packed));
}

static void write_scalar(struct random_source *random, struct wire_writer *out,
                         const struct otlp_field *field)
{
    static const size_t sizes[] = {0, 1, 5, 20, 126, 127, 128, 129, 300};
    if (field->kind == OTLP_TRACE_ID || field->kind == OTLP_SPAN_ID)
        write_text(random, out, field->number,
                   random_below(random, 4) == 0   ? 0
                   : field->kind == OTLP_TRACE_ID ? 16
                                                  : 8);
    else if (otlp_kind_is_packed(field->kind))
        write_packed(random, out, field);
    else if (field->wire == WIRE_BYTES)
        write_text(random, out, field->number,
                   sizes[random_below(random, random_below(random, 8) == 0 ? 9 : 4)]);
    else if (field->wire == WIRE_VARINT)
        wire_write_number(out, field->number, random_below(random, 1u << random_below(random, 31)));
    else if (field->wire == WIRE_FIXED64)
        wire_write_fixed64(out, field->number, random_below(random, 1u << 30));
    else {
        wire_write_varint(out, wire_tag(field->number, WIRE_FIXED32));
        wire_write_raw(out, slice_of("\1\2\3\4", 4));
    }
}

static void write_unknown(struct random_source *random, struct wire_writer *out)
{
    if (random_below(random, 6) != 0)
        return;
    if (random_below(random, 2) == 0)
        write_text(random, out, UNKNOWN_NUMBER, random_below(random, 10));
    else
        wire_write_number(out, UNKNOWN_NUMBER, random_below(random, 1000));
}

/* A oneof gets one of its fields at most, so that "the last one wins" cannot blur comparisons. */
static bool is_oneof(const struct otlp_message *message, const struct otlp_field *field)
{
    return (message->one_of >> field->number & 1) != 0;
}

static void write_message(struct random_source *random, const struct otlp_message *message,
                          struct wire_writer *out, unsigned depth);

static void write_field(struct random_source *random, struct wire_writer *out,
                        const struct otlp_field *field, unsigned depth)
{
    if (field->message == NULL) {
        write_scalar(random, out, field);
        return;
    }
    size_t size = (size_t)REQUEST_BYTES_MAX >> depth;
    void *room = mem_alloc(size);
    struct wire_writer inner = wire_writer_of(room, size);
    if (depth < DEPTH_MAX)
        write_message(random, field->message, &inner, depth + 1);
    if (!inner.has_failed)
        wire_write_bytes(out, field->number, wire_written(&inner));
    mem_free(room);
}

static void write_message(struct random_source *random, const struct otlp_message *message,
                          struct wire_writer *out, unsigned depth)
{
    bool has_oneof = false;
    size_t first = random_below(random, OTLP_SHORT_FIELDS); /* fields come in any order */
    for (size_t i = 0; i < OTLP_SHORT_FIELDS; i++) {
        const struct otlp_field *field = &message->fields[(first + i) % OTLP_SHORT_FIELDS];
        bool is_repeated = field->kind == OTLP_MESSAGES || field->kind == OTLP_STRINGS ||
                           field->kind >= OTLP_KEY_VALUE;
        bool is_one = is_oneof(message, field);
        write_unknown(random, out);
        if (field->kind == OTLP_NONE || random_below(random, 8) < 2 || (is_one && has_oneof))
            continue;
        has_oneof |= is_one;
        uint64_t count = is_repeated && !is_one ? random_below(random, 5) : 1;
        for (; count > 0; count--)
            write_field(random, out, field, depth);
    }
    if (message->more != NULL && message->more->message == NULL)
        write_field(random, out, message->more, depth);
}

struct slice random_request(struct random_source *random, enum signal_kind signal)
{
    void *room = mem_alloc(REQUEST_BYTES_MAX);
    struct wire_writer out = wire_writer_of(room, REQUEST_BYTES_MAX);
    write_message(random, otlp_request(signal), &out, 1);
    out.has_failed = false; /* what did not fit is left out whole */
    return wire_written(&out);
}

static void append_copy(struct batch *batch, struct slice bytes)
{
    struct buffer *buffer = buffer_create(NULL, bytes.size);
    if (bytes.size > 0)
        memcpy(buffer->data, bytes.data, bytes.size);
    buffer->size = bytes.size;
    batch_append(batch, buffer, buffer_slice(buffer));
    buffer_unref(buffer);
}

struct batch *two_parts(enum signal_kind signal, struct slice bytes, size_t first)
{
    assert(first <= bytes.size);
    struct batch *batch = batch_create(signal, 2);
    append_copy(batch, slice_of(bytes.data, first));
    append_copy(batch, slice_of(bytes.data + first, bytes.size - first));
    return batch;
}

struct batch *random_parts(struct random_source *random, enum signal_kind signal,
                           struct slice bytes)
{
    struct otlp_figures figures;
    const char *reason;
    bool is_fine = otlp_check(signal, bytes, &figures, &reason);
    assert(is_fine);
    (void)is_fine;
    struct batch *batch = batch_create(signal, 1);
    batch->items = figures.items;
    uint64_t parts = 1 + random_below(random, PARTS_MAX);
    while (bytes.size > 0) {
        size_t size = parts-- == 1 ? bytes.size : 1 + random_below(random, bytes.size);
        append_copy(batch, slice_of(bytes.data, size));
        bytes = slice_of(bytes.data + size, bytes.size - size);
        parts += parts == 0;
    }
    return batch;
}

struct slice joined_parts(const struct batch *batch)
{
    uint8_t *joined = mem_alloc(batch->bytes);
    size_t size = 0;
    for (size_t i = 0; i < batch->parts_count; i++) {
        memcpy(joined + size, batch->parts[i].bytes.data, batch->parts[i].bytes.size);
        size += batch->parts[i].bytes.size;
    }
    assert(size == batch->bytes);
    return slice_of(joined, size);
}
