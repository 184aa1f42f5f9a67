/* SPDX-License-Identifier: Apache-2.0 */
/* What json_read.c and json_scalar.c share: where the reader is in the text, what it has written,
 * and which messages and lists are open. Lives on the stack of one call. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_scan.h"
#include "src/otlp/otlp_limits.h"
#include "src/otlp/schema.h"

/* A list or an object that is open. One whose values are passed over has neither message nor
 * field. */
struct json_frame {
    const struct otlp_message *message; /* of an object */
    const struct otlp_field *field;     /* of a list; of an object: the last one found in it */
    size_t begin;                       /* of its content in the output */
    /* Of an object: where the member of its oneof that came last lies in the output. */
    size_t one_begin;
    size_t one_end;
    uint32_t seen;        /* fields that are in the output: a bit for each number */
    uint8_t header_bytes; /* room for its length; as many as the last one in its place had */
    bool is_list;
    bool has_length; /* a message, or a list of packed numbers */
    bool has_any;    /* members or elements */
};

struct json_reader {
    struct json_scan scan;
    struct buffer *out;
    char *reason; /* JSON_REASON_BYTES_MAX */
    enum json_result result;
    uint64_t text_bytes;
    unsigned depth;
    unsigned messages; /* that are open */
    struct json_frame frames[JSON_DEPTH_MAX];
};

/* Room for so many more bytes. False: no memory. */
bool json_reader_grow(struct json_reader *reader, size_t bytes);
/* Says what is wrong at `at`, which is in the text. Always false. */
bool json_reader_fail(struct json_reader *reader, const uint8_t *at, const char *expected);
/* One value that is neither message nor list, for a field of the top frame or an element of it. */
bool json_read_scalar(struct json_reader *reader, const struct otlp_field *field);
/* Before a member of a oneof is written, the one before is taken back. */
void json_begin_member(struct json_frame *frame, const struct otlp_field *field,
                       struct buffer *out);

static inline bool json_reader_room(struct json_reader *reader, size_t bytes)
{
    return reader->out->capacity - reader->out->size >= bytes || json_reader_grow(reader, bytes);
}

static inline struct json_frame *json_reader_top(struct json_reader *reader)
{
    assert(reader->depth > 0);
    return &reader->frames[reader->depth - 1];
}

static inline uint8_t *json_put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static inline bool json_is_in(uint32_t set, const struct otlp_field *field)
{
    return field->number < 32 && (set >> field->number & 1) != 0;
}
