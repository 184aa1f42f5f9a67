/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, ids, bytes, numbers, enumerations and booleans of OTLP/JSON become protobuf fields.
 * Runs inside json_read. */
#include <assert.h>
#include <endian.h>
#include <stdio.h>

#include "src/base/base64.h"
#include "src/otlp/json/json_number.h"
#include "src/otlp/json/json_reader.h"
#include "src/otlp/json/value_text.h"

enum {
    HEADER_BYTES_MAX = 2 * WIRE_SHORT_VARINT_BYTES_MAX,
    NUMBER_BYTES_MAX = WIRE_SHORT_VARINT_BYTES_MAX + WIRE_VARINT_BYTES_MAX,
    TRACE_ID_BYTES = 16,
    SPAN_ID_BYTES = 8,
    PROFILE_ID_BYTES = 16,
    PROFILE_ID_BASE64_BYTES = 24,
};

void json_begin_member(struct json_frame *frame, const struct otlp_field *field, struct buffer *out)
{
    if (!json_is_in(frame->message->one_of, field))
        return;
    assert(frame->one_begin <= frame->one_end && frame->one_end <= out->size);
    size_t dropped = frame->one_end - frame->one_begin;
    if (dropped > 0) {
        memmove(out->data + frame->one_begin, out->data + frame->one_end,
                out->size - frame->one_end);
        out->size -= dropped;
    }
    frame->one_begin = out->size;
}

/* Whether a value has to be written: one that says nothing is left out, unless it takes back what
 * an earlier one said or belongs to those that can be there and be zero. */
static bool begin_scalar(struct json_reader *reader, const struct otlp_field *field, bool is_zero)
{
    struct json_frame *frame = json_reader_top(reader);
    if (frame->is_list)
        return true;
    if (is_zero &&
        !json_is_in(frame->message->one_of | frame->message->optional | frame->seen, field))
        return false;
    json_begin_member(frame, field, reader->out);
    frame->seen |= field->number < 32 ? 1u << field->number : 0;
    return true;
}

static void end_scalar(struct json_reader *reader, const uint8_t *end)
{
    struct json_frame *frame = json_reader_top(reader);
    reader->out->size = (size_t)(end - reader->out->data);
    assert(reader->out->size <= reader->out->capacity);
    if (!frame->is_list && json_is_in(frame->message->one_of, frame->field))
        frame->one_end = reader->out->size;
}

static bool write_number(struct json_reader *reader, const struct otlp_field *field, uint64_t bits)
{
    if (!json_reader_room(reader, NUMBER_BYTES_MAX))
        return false;
    if (!begin_scalar(reader, field, bits == 0))
        return true;
    uint8_t *at = reader->out->data + reader->out->size;
    bool is_packed = otlp_kind_is_packed(field->kind);
    bool is_fixed64 = field->wire == WIRE_FIXED64 || (is_packed && field->kind < OTLP_PACKED_INT32);
    if (!is_packed)
        at = json_put_varint(at, wire_tag(field->number, field->wire));
    if (is_fixed64) {
        uint64_t little = htole64(bits);
        memcpy(at, &little, sizeof(little));
        at += sizeof(little);
    } else if (field->wire == WIRE_FIXED32) {
        uint32_t little = htole32((uint32_t)bits);
        memcpy(at, &little, sizeof(little));
        at += sizeof(little);
    } else {
        at = json_put_varint(at, bits);
    }
    end_scalar(reader, at);
    return true;
}

static bool expect_string(struct json_reader *reader, const char *expected,
                          struct json_string *ret_string)
{
    if (json_scan_peek(&reader->scan) != '"')
        return json_reader_fail(reader, reader->scan.at, expected);
    if (json_scan_string(&reader->scan, ret_string))
        return true;
    return json_reader_fail(reader, reader->scan.at,
                            "a sound string: escapes as JSON has them, no raw control characters, "
                            "a quote at the end");
}

/* What the string says; escapes are resolved behind the end of the output, until it grows. */
static bool resolve_escapes(struct json_reader *reader, const struct json_string *string,
                            struct slice *ret_text)
{
    *ret_text = string->raw;
    if (!string->has_escapes)
        return true;
    if (!json_reader_room(reader, string->raw.size))
        return false;
    uint8_t *room = reader->out->data + reader->out->size;
    *ret_text = slice_of(room, json_unescape(string, room));
    return true;
}

/* Tag, length and bytes. */
static bool write_bytes(struct json_reader *reader, const struct otlp_field *field,
                        struct slice bytes)
{
    if (!json_reader_room(reader, HEADER_BYTES_MAX + bytes.size))
        return false;
    if (!begin_scalar(reader, field, bytes.size == 0))
        return true;
    uint8_t *at = reader->out->data + reader->out->size;
    at = json_put_varint(at, wire_tag(field->number, WIRE_BYTES));
    at = json_put_varint(at, bytes.size);
    memcpy(at, bytes.data, bytes.size);
    end_scalar(reader, at + bytes.size);
    return true;
}

/* The same, of bytes that lie HEADER_BYTES_MAX behind the end of the output: what has to be decoded
 * first is decoded there. */
static bool move_bytes(struct json_reader *reader, const struct otlp_field *field, size_t size)
{
    struct buffer *out = reader->out;
    size_t before = out->size;
    const uint8_t *bytes = out->data + before + HEADER_BYTES_MAX;
    if (!begin_scalar(reader, field, size == 0))
        return true;
    assert(out->size <= before);
    uint8_t *at = out->data + out->size;
    at = json_put_varint(at, wire_tag(field->number, WIRE_BYTES));
    at = json_put_varint(at, size);
    memmove(at, bytes, size);
    end_scalar(reader, at + size);
    return true;
}

static bool read_text(struct json_reader *reader, const struct otlp_field *field)
{
    struct json_string string;
    if (json_scan_peek(&reader->scan) != '"' && json_scan_word(&reader->scan, "null"))
        return write_bytes(reader, field, slice_of("", 0));
    if (!expect_string(reader, "a string, or null", &string))
        return false;
    if (!string.has_escapes)
        return write_bytes(reader, field, string.raw);
    if (!json_reader_room(reader, HEADER_BYTES_MAX + string.raw.size))
        return false;
    uint8_t *room = reader->out->data + reader->out->size + HEADER_BYTES_MAX;
    return move_bytes(reader, field, json_unescape(&string, room));
}

/* Into room behind the end of the output, which is there. */
static bool decode_base64(struct json_reader *reader, const struct json_string *string,
                          size_t *ret_size)
{
    uint8_t *room = reader->out->data + reader->out->size + HEADER_BYTES_MAX;
    struct slice text = string->raw;
    assert(reader->out->capacity - reader->out->size >= HEADER_BYTES_MAX + text.size);
    if (string->has_escapes)
        text = slice_of(room, json_unescape(string, room));
    return base64_decode(text, room, ret_size);
}

static bool read_bytes(struct json_reader *reader, const struct otlp_field *field)
{
    static const char expected[] = "bytes as a string in base64, with padding";
    const uint8_t *begin = reader->scan.at;
    struct json_string string;
    size_t size;
    if (!expect_string(reader, expected, &string) ||
        !json_reader_room(reader, HEADER_BYTES_MAX + string.raw.size))
        return false;
    if (!decode_base64(reader, &string, &size))
        return json_reader_fail(reader, begin, expected);
    return move_bytes(reader, field, size);
}

static bool decode_hex(struct slice digits, uint8_t *room)
{
    unsigned all = 0;
    assert(digits.size % 2 == 0);
    for (size_t i = 0; i < digits.size; i += 2) {
        unsigned high = json_hex_digit(digits.data[i]);
        unsigned low = json_hex_digit(digits.data[i + 1]);
        all |= high | low;
        room[i / 2] = (uint8_t)(high << 4 | low);
    }
    return all < 16;
}

static bool read_id(struct json_reader *reader, const struct otlp_field *field, size_t size)
{
    const uint8_t *begin = reader->scan.at;
    const char *expected = size == TRACE_ID_BYTES
                               ? "an id of 32 hexadecimal digits, or an empty string"
                               : "an id of 16 hexadecimal digits, or an empty string";
    struct json_string string;
    uint8_t id[TRACE_ID_BYTES];
    assert(size <= sizeof(id));
    if (!expect_string(reader, expected, &string))
        return false;
    if (string.raw.size == 0)
        return write_bytes(reader, field, string.raw);
    if (string.raw.size != 2 * size || !decode_hex(string.raw, id))
        return json_reader_fail(reader, begin, expected);
    return write_bytes(reader, field, slice_of(id, size));
}

/* Hexadecimal as in OTLP, or base64 as a strict reading of protobuf's mapping has it. */
static bool read_profile_id(struct json_reader *reader, const struct otlp_field *field)
{
    static const char expected[] =
        "an id of 32 hexadecimal digits, of 16 bytes in base64, or an empty string";
    const uint8_t *begin = reader->scan.at;
    struct json_string string;
    size_t size;
    if (!expect_string(reader, expected, &string) ||
        !json_reader_room(reader, HEADER_BYTES_MAX + string.raw.size))
        return false;
    uint8_t *room = reader->out->data + reader->out->size + HEADER_BYTES_MAX;
    if (string.raw.size == 0)
        size = 0;
    else if (string.raw.size == 2 * PROFILE_ID_BYTES && decode_hex(string.raw, room))
        size = PROFILE_ID_BYTES;
    else if (string.raw.size < PROFILE_ID_BASE64_BYTES || !decode_base64(reader, &string, &size) ||
             size != PROFILE_ID_BYTES)
        return json_reader_fail(reader, begin, expected);
    return move_bytes(reader, field, size);
}

static struct json_range range_of(const struct otlp_field *field)
{
    switch (field->kind) {
    case OTLP_UINT32:
    case OTLP_FIXED32:
        return (struct json_range){0, UINT32_MAX};
    case OTLP_UINT64:
    case OTLP_FIXED64:
    case OTLP_PACKED_FIXED64:
    case OTLP_PACKED_UINT64:
        return (struct json_range){0, UINT64_MAX};
    case OTLP_INT64:
    case OTLP_SFIXED64:
    case OTLP_PACKED_INT64:
        return (struct json_range){INT64_MIN, INT64_MAX};
    default:
        assert(field->kind == OTLP_INT32 || field->kind == OTLP_SINT32 ||
               field->kind == OTLP_PACKED_INT32 || field->kind == OTLP_ENUM);
        return (struct json_range){INT32_MIN, INT32_MAX};
    }
}

static const char *expected_integer(struct json_range range)
{
    if (range.min == 0)
        return range.max == UINT32_MAX
                   ? "an integer from 0 to 4294967295, as a number or as decimal digits in a string"
                   : "an integer from 0 to 18446744073709551615, as a number or as decimal digits "
                     "in a string";
    return range.min == INT32_MIN
               ? "an integer of 32 bits, as a number or as decimal digits in a string"
               : "an integer of 64 bits, as a number or as decimal digits in a string";
}

/* The token of a number, or what a string says. False: neither is here, or it is broken. */
static bool scan_number(struct json_reader *reader, const char *expected,
                        struct json_number *ret_number)
{
    const uint8_t *begin = reader->scan.at;
    uint8_t first = json_scan_peek(&reader->scan);
    if (first == '"') {
        struct json_string string;
        ret_number->is_integer = true;
        return expect_string(reader, expected, &string) &&
               resolve_escapes(reader, &string, &ret_number->text);
    }
    if (first != '-' && (first < '0' || first > '9'))
        return json_reader_fail(reader, begin, expected);
    return json_scan_number(&reader->scan, ret_number) || json_reader_fail(reader, begin, expected);
}

static bool read_integer(struct json_reader *reader, const struct otlp_field *field)
{
    const uint8_t *begin = reader->scan.at;
    struct json_range range = range_of(field);
    struct json_number number;
    uint64_t bits;
    if (!scan_number(reader, expected_integer(range), &number))
        return false;
    if (!number.is_integer || !json_integer(number.text, range, &bits))
        return json_reader_fail(reader, begin, expected_integer(range));
    if (field->kind == OTLP_SINT32)
        bits = (uint32_t)((uint32_t)bits << 1 ^ (0 - (uint32_t)(bits >> 63)));
    return write_number(reader, field, bits);
}

static bool read_enum(struct json_reader *reader, const struct otlp_field *field)
{
    const uint8_t *begin = reader->scan.at;
    struct json_string string;
    struct slice name;
    if (json_scan_peek(&reader->scan) != '"')
        return read_integer(reader, field);
    if (!expect_string(reader, "a name", &string) || !resolve_escapes(reader, &string, &name))
        return false;
    for (uint32_t i = 0; i < field->names->count; i++)
        if (slice_equal_text(name, field->names->texts[i]))
            return write_number(reader, field, i);
    char expected[128];
    snprintf(expected, sizeof(expected), "a number, or a name from %s to %s",
             field->names->texts[0], field->names->texts[field->names->count - 1]);
    return json_reader_fail(reader, begin, expected);
}

static bool read_double(struct json_reader *reader, const struct otlp_field *field)
{
    static const char expected[] =
        "a number that a double can hold, \"NaN\", \"Infinity\" or \"-Infinity\"";
    const uint8_t *begin = reader->scan.at;
    struct json_number number;
    double real;
    uint64_t bits;
    if (!scan_number(reader, expected, &number))
        return false;
    bool is_read =
        *begin == '"' ? text_to_double(number.text, &real) : json_double(number.text, &real);
    if (!is_read)
        return json_reader_fail(reader, begin, expected);
    memcpy(&bits, &real, sizeof(bits));
    return write_number(reader, field, bits);
}

static bool read_bool(struct json_reader *reader, const struct otlp_field *field)
{
    if (json_scan_word(&reader->scan, "true"))
        return write_number(reader, field, 1);
    if (json_scan_word(&reader->scan, "false"))
        return write_number(reader, field, 0);
    return json_reader_fail(reader, reader->scan.at, "true or false");
}

bool json_read_scalar(struct json_reader *reader, const struct otlp_field *field)
{
    assert(field->message == NULL);
    switch (field->kind) {
    case OTLP_STRING:
    case OTLP_STRINGS:
        return read_text(reader, field);
    case OTLP_TRACE_ID:
    case OTLP_LOOSE_TRACE_ID:
        return read_id(reader, field, TRACE_ID_BYTES);
    case OTLP_SPAN_ID:
    case OTLP_LOOSE_SPAN_ID:
        return read_id(reader, field, SPAN_ID_BYTES);
    case OTLP_PROFILE_ID:
        return read_profile_id(reader, field);
    case OTLP_BYTES:
        return read_bytes(reader, field);
    case OTLP_BOOL:
        return read_bool(reader, field);
    case OTLP_ENUM:
        return read_enum(reader, field);
    case OTLP_DOUBLE:
    case OTLP_PACKED_DOUBLE:
        return read_double(reader, field);
    default:
        return read_integer(reader, field);
    }
}
