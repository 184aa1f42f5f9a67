/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 frame heads and the HPACK block of the generator's request. */
#include "tests/bench/h2_frame.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    INDEX_METHOD_POST = 3, /* of the static table, RFC 7541 appendix A */
    INDEX_SCHEME_HTTP = 6,
    DYNAMIC_FIRST = 62,
    TABLE_BYTES_ENOUGH = 1024, /* holds all of request_fields */
};

struct field {
    const char *name; /* NULL: the static table has it, at index */
    const char *value;
    uint8_t index;
};

static const struct field request_fields[] = {
    {.index = 4, .value = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"},
    {.index = 1, .value = "127.0.0.1"},
    {.index = 31, .value = "application/grpc"},
    {.index = 58, .value = "spanflame-bench"},
    {.name = "te", .value = "trailers"},
    {.name = "grpc-encoding"}, /* last: its value is the coding, without which it is left out */
};

enum { FIELDS = sizeof request_fields / sizeof request_fields[0] };

void h2_put_u32(uint8_t *out, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> (24 - 8 * i));
}

uint32_t h2_get_u32(const uint8_t *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

void h2_frame_write(uint8_t out[static H2_FRAME_HEAD_BYTES], const struct h2_frame *frame)
{
    assert(frame->size < 1U << 24);
    h2_put_u32(out, frame->size << 8 | frame->type);
    out[4] = frame->flags;
    h2_put_u32(out + 5, frame->stream);
}

struct h2_frame h2_frame_read(const uint8_t data[static H2_FRAME_HEAD_BYTES])
{
    return (struct h2_frame){
        .size = h2_get_u32(data) >> 8,
        .type = data[3],
        .flags = data[4],
        .stream = h2_get_u32(data + 5) & 0x7fffffff,
    };
}

/* RFC 7541 §5.1: prefix_bits of the first byte, whose upper bits are pattern. */
static uint8_t *put_integer(uint8_t *out, uint8_t pattern, unsigned prefix_bits, size_t value)
{
    size_t limit = (1U << prefix_bits) - 1;

    assert(prefix_bits < 8);
    if (value < limit) {
        *out++ = (uint8_t)(pattern | value);
        return out;
    }
    *out++ = (uint8_t)(pattern | limit);
    for (value -= limit; value >= 0x80; value >>= 7)
        *out++ = (uint8_t)(value | 0x80);
    *out++ = (uint8_t)value;
    return out;
}

static uint8_t *put_text(uint8_t *out, const char *text)
{
    size_t size = strlen(text);

    out = put_integer(out, 0, 7, size);
    memcpy(out, text, size);
    return out + size;
}

/* A literal, with incremental indexing (§6.2.1) or without (§6.2.2). */
static uint8_t *put_literal(uint8_t *out, const struct field *field, const char *value,
                            bool is_indexed)
{
    assert(value != NULL);
    out = is_indexed ? put_integer(out, 0x40, 6, field->index)
                     : put_integer(out, 0x00, 4, field->index);
    if (field->name != NULL)
        out = put_text(out, field->name);
    return put_text(out, value);
}

size_t h2_request_head(uint8_t out[static H2_REQUEST_HEAD_BYTES_MAX], const char *coding,
                       bool is_first, size_t table_bytes)
{
    uint8_t *at = out;
    bool uses_table = table_bytes >= TABLE_BYTES_ENOUGH;
    size_t fields = coding != NULL ? FIELDS : FIELDS - 1;

    if (is_first && table_bytes < H2_HPACK_TABLE_BYTES)
        at = put_integer(at, 0x20, 5, table_bytes);
    at = put_integer(at, 0x80, 7, INDEX_METHOD_POST);
    at = put_integer(at, 0x80, 7, INDEX_SCHEME_HTTP);
    for (size_t i = 0; i < fields; i++) {
        /* The youngest entry of the dynamic table has the lowest index. */
        const struct field *field = &request_fields[i];
        if (uses_table && !is_first)
            at = put_integer(at, 0x80, 7, DYNAMIC_FIRST + fields - 1 - i);
        else
            at = put_literal(at, field, field->value != NULL ? field->value : coding, uses_table);
    }
    assert(at <= out + H2_REQUEST_HEAD_BYTES_MAX);
    return (size_t)(at - out);
}

/* Within the payload there may be a pad length, a priority, and padding (RFC 9113 §6.2). */
static struct bytes block_of(const struct h2_frame *frame, const uint8_t *payload)
{
    enum { PRIORITY_BYTES = 5 };
    bool is_padded = (frame->flags & H2_PADDED) != 0;
    size_t before =
        (is_padded ? 1U : 0U) + ((frame->flags & H2_PRIORITY) != 0 ? PRIORITY_BYTES : 0);
    size_t padding = is_padded ? payload[0] : 0;

    if (before + padding > frame->size)
        return (struct bytes){0};
    return (struct bytes){payload + before, frame->size - before - padding};
}

bool h2_read_grpc_status(nghttp2_hd_inflater *inflater, const struct h2_frame *frame,
                         const uint8_t *payload, unsigned *status)
{
    static const char name[] = "grpc-status";
    struct bytes block = block_of(frame, payload);

    assert(frame->type == H2_HEADERS);
    for (int state = 0; (state & NGHTTP2_HD_INFLATE_FINAL) == 0;) {
        nghttp2_nv field;
        ssize_t used = nghttp2_hd_inflate_hd2(inflater, &field, &state, block.data, block.size, 1);
        if (used < 0)
            return false;
        block.data += used;
        block.size -= (size_t)used;
        if ((state & NGHTTP2_HD_INFLATE_EMIT) != 0 && field.namelen == sizeof name - 1 &&
            memcmp(field.name, name, sizeof name - 1) == 0)
            *status = (unsigned)strtoul((const char *)field.value, NULL, 10);
    }
    nghttp2_hd_inflate_end_headers(inflater);
    return true;
}
