/* SPDX-License-Identifier: Apache-2.0 */
/* One loop over the members of objects and the elements of lists, with a bounded stack of its own
 * for what is open. Room is left for the length of each message before its content; it nearly
 * always fits, because messages in one place are alike. Pure function; any thread. */
#include "src/otlp/json/json_read.h"

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/base/base64.h"
#include "src/base/buffer.h"
#include "src/base/hex.h"
#include "src/otlp/former_scopes.h"
#include "src/otlp/json/json_scan.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/otlp_limits.h"
#include "src/otlp/schema.h"

enum {
    /* tag, length, and as much again for a length that gets longer when its message ends */
    OPEN_BYTES_MAX = 3 * WIRE_SHORT_VARINT_BYTES_MAX,
    OUTPUT_BYTES_FIRST = 64,
    SCOPES = 2, /* scope_spans, scope_metrics, ...; FORMER_SCOPES are their former names */
    HEADER_BYTES_MAX = 2 * WIRE_SHORT_VARINT_BYTES_MAX,
    NUMBER_BYTES_MAX = WIRE_SHORT_VARINT_BYTES_MAX + WIRE_VARINT_BYTES_MAX,
    TRACE_ID_BYTES = 16,
    SPAN_ID_BYTES = 8,
    PROFILE_ID_BYTES = 16,
    PADDING_BYTES_MAX = 2,
    EXACT_DIGITS_MAX = 19,
    EXACT_POWER_MAX = 22,
    EXPONENT_MAX = 10000,
};

/* An open list or object. A skipped one has neither message nor field. */
struct frame {
    const struct otlp_message *message; /* of an object */
    const struct otlp_field *field;     /* of a list; of an object: the last one that was found */
    size_t begin;                       /* of its content in the output */
    /* Of an object: where the last member of its oneof lies in the output. */
    size_t one_begin;
    size_t one_end;
    uint32_t seen;        /* fields in the output: a bit for each number */
    uint8_t header_bytes; /* room for its length: what the last one at this depth needed */
    bool is_list;
    bool has_length; /* a message, or a list of packed numbers */
    bool has_any;    /* members or elements */
};

struct reader {
    struct json_scan scan;
    struct buffer *out;
    char *reason; /* JSON_REASON_BYTES_MAX */
    enum json_result result;
    uint64_t text_bytes;
    unsigned depth;
    unsigned messages; /* that are open */
    struct frame frames[JSON_DEPTH_MAX];
};

struct range {
    int64_t min; /* 0: there is no sign */
    uint64_t max;
};

/* ---- Output and errors ---- */

static size_t at_most(size_t bytes)
{
    return bytes < JSON_READ_BYTES_MAX ? bytes : JSON_READ_BYTES_MAX;
}

/* Makes room for that many more bytes. False: no memory, or too many bytes. */
static bool grow(struct reader *reader, size_t bytes)
{
    struct buffer *out = reader->out;
    if (bytes > JSON_READ_BYTES_MAX - out->size) {
        reader->result = JSON_TOO_LARGE;
        return false;
    }
    size_t least = at_most(out->size + out->size / 8 + bytes);
    size_t capacity = at_most(least < 2 * out->capacity ? 2 * out->capacity : least);
    out = buffer_try_grow(out, capacity);
    if (out == NULL && least > reader->out->capacity)
        out = buffer_try_grow(reader->out, least);
    if (out == NULL) {
        /* During the copy the text and both buffers exist. */
        uint64_t needed = reader->text_bytes + reader->out->size + least;
        const struct budget *budget = reader->out->budget;
        bool never_fits = budget != NULL && needed > budget_limit(budget);
        reader->result = never_fits ? JSON_TOO_LARGE : JSON_NO_BUDGET;
        return false;
    }
    reader->out = out;
    assert(out->capacity - out->size >= bytes);
    return true;
}

static inline bool reserve(struct reader *reader, size_t bytes)
{
    return reader->out->capacity - reader->out->size >= bytes || grow(reader, bytes);
}

static inline struct frame *top(struct reader *reader)
{
    assert(reader->depth > 0);
    return &reader->frames[reader->depth - 1];
}

static inline uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static inline bool is_in(uint32_t set, const struct otlp_field *field)
{
    return field->number < 32 && (set >> field->number & 1) != 0;
}

/* Reports an error at `at`. Always false. */
static bool __attribute__((cold))
fail(struct reader *reader, const uint8_t *at, const char *expected)
{
    char found[JSON_FOUND_BYTES_MAX];
    char place[128] = "";
    reader->result = JSON_MALFORMED;
    json_scan_found(&reader->scan, at, found);
    /* The innermost known message, and its field. */
    unsigned depth = reader->depth;
    while (depth > 0 && reader->frames[depth - 1].message == NULL)
        depth--;
    if (depth > 0) {
        const struct frame *frame = &reader->frames[depth - 1];
        snprintf(place, sizeof(place), ", in %s%s%s", frame->message->name,
                 frame->field != NULL ? "." : "",
                 frame->field != NULL ? frame->field->json_name : "");
    }
    snprintf(reader->reason, JSON_REASON_BYTES_MAX, "JSON at byte %zu%s: found %s, expected %s",
             (size_t)(at - reader->scan.begin), place, found, expected);
    return false;
}

static bool fail_limit(struct reader *reader, const char *what, unsigned limit)
{
    char expected[64];
    assert(limit > 0);
    snprintf(expected, sizeof(expected), "at most %u %s", limit, what);
    return fail(reader, reader->scan.at, expected);
}

/* text is a number in JSON's grammar. False when it is out of range or absurdly long. Few digits
 * with a small exponent are exact in plain arithmetic (Clinger, "How to Read Floating Point Numbers
 * Accurately", 1990); the C library reads the rest. */
static bool parse_double(struct slice text, double *ret_real)
{
    static const double powers[EXACT_POWER_MAX + 1] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    };
    assert(text.size > 0);
    bool is_negative = text.data[0] == '-';
    const uint8_t *at = text.data + is_negative;
    const uint8_t *end = text.data + text.size;
    /* All digits as one integer, and the place of the point. */
    uint64_t digits = 0;
    unsigned count = 0; /* of digits, without leading zeros */
    int exponent = 0;
    bool is_after_point = false;
    for (; at < end && (*at | 0x20) != 'e'; at++) {
        if (*at == '.') {
            is_after_point = true;
            continue;
        }
        assert(*at >= '0' && *at <= '9');
        count += count > 0 || *at != '0';
        if (count <= EXACT_DIGITS_MAX)
            digits = digits * 10 + (*at - '0');
        exponent -= is_after_point;
    }
    if (at < end) {
        at++;
        int written = 0;
        bool is_small = *at == '-';
        at += *at == '-' || *at == '+';
        for (; at < end && written < EXPONENT_MAX; at++)
            written = written * 10 + (*at - '0');
        exponent += is_small ? -written : written;
    }
    bool is_exact = count <= EXACT_DIGITS_MAX && digits <= UINT64_C(1) << 53 &&
                    exponent >= -EXACT_POWER_MAX && exponent <= EXACT_POWER_MAX;
    if (!is_exact)
        return string_to_double(text, ret_real);
    double real = (double)digits;
    real = exponent < 0 ? real / powers[-exponent] : real * powers[exponent];
    *ret_real = is_negative ? -real : real;
    return true;
}

/* ---- Scalars ---- */

/* Removes the earlier member of a oneof before another is written. */
static void begin_member(struct frame *frame, const struct otlp_field *field, struct buffer *out)
{
    if (!is_in(frame->message->one_of, field))
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

/* Whether a value has to be written: a zero is left out, unless it replaces an earlier value or the
 * field has explicit presence. */
static bool begin_scalar(struct reader *reader, const struct otlp_field *field, bool is_zero)
{
    struct frame *frame = top(reader);
    if (frame->is_list)
        return true;
    if (is_zero && !is_in(frame->message->one_of | frame->message->optional | frame->seen, field))
        return false;
    begin_member(frame, field, reader->out);
    frame->seen |= field->number < 32 ? 1u << field->number : 0;
    return true;
}

static void end_scalar(struct reader *reader, const uint8_t *end)
{
    struct frame *frame = top(reader);
    reader->out->size = (size_t)(end - reader->out->data);
    assert(reader->out->size <= reader->out->capacity);
    if (!frame->is_list && is_in(frame->message->one_of, frame->field))
        frame->one_end = reader->out->size;
}

static bool write_number(struct reader *reader, const struct otlp_field *field, uint64_t bits)
{
    if (!reserve(reader, NUMBER_BYTES_MAX))
        return false;
    if (!begin_scalar(reader, field, bits == 0))
        return true;
    uint8_t *at = reader->out->data + reader->out->size;
    bool is_packed = otlp_kind_is_packed(field->kind);
    bool is_fixed64 = field->wire == WIRE_FIXED64 || (is_packed && field->kind < OTLP_PACKED_INT32);
    if (!is_packed)
        at = put_varint(at, wire_tag(field->number, field->wire));
    if (is_fixed64) {
        uint64_t little = htole64(bits);
        memcpy(at, &little, sizeof(little));
        at += sizeof(little);
    } else if (field->wire == WIRE_FIXED32) {
        uint32_t little = htole32((uint32_t)bits);
        memcpy(at, &little, sizeof(little));
        at += sizeof(little);
    } else {
        at = put_varint(at, bits);
    }
    end_scalar(reader, at);
    return true;
}

static bool expect_string(struct reader *reader, const char *expected,
                          struct json_string *ret_string)
{
    if (json_scan_peek(&reader->scan) != '"')
        return fail(reader, reader->scan.at, expected);
    if (json_scan_string(&reader->scan, ret_string))
        return true;
    return fail(reader, reader->scan.at,
                "a valid string: JSON escapes only, no raw control characters, "
                "a closing quote");
}

/* Unescapes a string. The result may lie after the end of the output, valid until that grows. */
static bool resolve_escapes(struct reader *reader, const struct json_string *string,
                            struct slice *ret_text)
{
    *ret_text = string->raw;
    if (!string->has_escapes)
        return true;
    if (!reserve(reader, string->raw.size))
        return false;
    uint8_t *room = reader->out->data + reader->out->size;
    *ret_text = slice_of(room, json_unescape(string, room));
    return true;
}

/* Tag, length and bytes. */
static bool write_bytes(struct reader *reader, const struct otlp_field *field, struct slice bytes)
{
    if (!reserve(reader, HEADER_BYTES_MAX + bytes.size))
        return false;
    if (!begin_scalar(reader, field, bytes.size == 0))
        return true;
    uint8_t *at = reader->out->data + reader->out->size;
    at = put_varint(at, wire_tag(field->number, WIRE_BYTES));
    at = put_varint(at, bytes.size);
    memcpy(at, bytes.data, bytes.size);
    end_scalar(reader, at + bytes.size);
    return true;
}

/* Like write_bytes, for bytes that were decoded HEADER_BYTES_MAX after the end of the output. */
static bool move_bytes(struct reader *reader, const struct otlp_field *field, size_t size)
{
    struct buffer *out = reader->out;
    size_t before = out->size;
    const uint8_t *bytes = out->data + before + HEADER_BYTES_MAX;
    if (!begin_scalar(reader, field, size == 0))
        return true;
    assert(out->size <= before);
    uint8_t *at = out->data + out->size;
    at = put_varint(at, wire_tag(field->number, WIRE_BYTES));
    at = put_varint(at, size);
    memmove(at, bytes, size);
    end_scalar(reader, at + size);
    return true;
}

static bool read_text(struct reader *reader, const struct otlp_field *field)
{
    struct json_string string;
    if (json_scan_peek(&reader->scan) != '"' && json_scan_word(&reader->scan, "null"))
        return write_bytes(reader, field, slice_of("", 0));
    if (!expect_string(reader, "a string, or null", &string))
        return false;
    if (!string.has_escapes)
        return write_bytes(reader, field, string.raw);
    if (!reserve(reader, HEADER_BYTES_MAX + string.raw.size))
        return false;
    uint8_t *room = reader->out->data + reader->out->size + HEADER_BYTES_MAX;
    return move_bytes(reader, field, json_unescape(&string, room));
}

static bool decode_hex(struct slice digits, uint8_t *room)
{
    unsigned all = 0;
    assert(digits.size % 2 == 0);
    for (size_t i = 0; i < digits.size; i += 2) {
        unsigned high = hex_digit(digits.data[i]);
        unsigned low = hex_digit(digits.data[i + 1]);
        all |= high | low;
        room[i / 2] = (uint8_t)(high << 4 | low);
    }
    return all < 16;
}

static bool read_id(struct reader *reader, const struct otlp_field *field, size_t size)
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
        return fail(reader, begin, expected);
    return write_bytes(reader, field, slice_of(id, size));
}

/* Base64 with padding (RFC 4648 §4); for OTLP_WEB_BYTES in either alphabet, with padding or without
 * (§4, §5), or null. A profile's id is hexadecimal as in OTLP, or base64 as in protobuf's strict
 * JSON mapping. */
static bool read_base64(struct reader *reader, const struct otlp_field *field)
{
    bool is_id = field->kind == OTLP_PROFILE_ID;
    bool is_web = field->kind == OTLP_WEB_BYTES;
    const char *expected =
        is_id    ? "an id of 32 hexadecimal digits, of 16 bytes in base64, or an empty string"
        : is_web ? "bytes as a string in base64, or null"
                 : "bytes as a string in base64, with padding";
    const uint8_t *begin = reader->scan.at;
    struct json_string string;
    if (is_web && json_scan_peek(&reader->scan) != '"' && json_scan_word(&reader->scan, "null"))
        return true;
    if (!expect_string(reader, expected, &string) ||
        !reserve(reader, HEADER_BYTES_MAX + string.raw.size + PADDING_BYTES_MAX))
        return false;
    uint8_t *room = reader->out->data + reader->out->size + HEADER_BYTES_MAX;
    if (is_id && string.raw.size == 2 * PROFILE_ID_BYTES && decode_hex(string.raw, room))
        return move_bytes(reader, field, PROFILE_ID_BYTES);
    struct slice text = string.raw;
    if (is_web || string.has_escapes)
        text = slice_of(room, json_unescape(&string, room));
    if (is_web) {
        for (size_t i = 0; i < text.size; i++)
            room[i] = room[i] == '-' ? '+' : room[i] == '_' ? '/' : room[i];
        while (text.size % 4 >= 2)
            room[text.size++] = '=';
    }
    size_t size;
    size_t id_size = string.raw.size > 0 ? PROFILE_ID_BYTES : 0; /* line ends alone are no id */
    if (!base64_decode(text, room, &size) || (is_id && size != id_size))
        return fail(reader, begin, expected);
    return move_bytes(reader, field, size);
}

static const char *expected_integer(struct range range)
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

/* Reads the token of a number, or the content of a string. False: it is neither, or malformed. */
static bool scan_number(struct reader *reader, const char *expected, struct json_number *ret_number)
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
        return fail(reader, begin, expected);
    return json_scan_number(&reader->scan, ret_number) || fail(reader, begin, expected);
}

static bool read_integer(struct reader *reader, const struct otlp_field *field)
{
    const uint8_t *begin = reader->scan.at;
    struct range range;
    struct json_number number;
    switch (field->kind) {
    case OTLP_UINT32:
    case OTLP_FIXED32:
        range = (struct range){0, UINT32_MAX};
        break;
    case OTLP_UINT64:
    case OTLP_FIXED64:
    case OTLP_PACKED_FIXED64:
    case OTLP_PACKED_UINT64:
        range = (struct range){0, UINT64_MAX};
        break;
    case OTLP_INT64:
    case OTLP_SFIXED64:
    case OTLP_PACKED_INT64:
        range = (struct range){INT64_MIN, INT64_MAX};
        break;
    default:
        assert(field->kind == OTLP_INT32 || field->kind == OTLP_SINT32 ||
               field->kind == OTLP_PACKED_INT32 || field->kind == OTLP_ENUM);
        range = (struct range){INT32_MIN, INT32_MAX};
    }
    if (!scan_number(reader, expected_integer(range), &number))
        return false;
    /* Decimal digits, with a sign if the range has negative numbers; leading zeros are fine. */
    const uint8_t *at = number.text.data;
    const uint8_t *end = at + number.text.size;
    bool is_negative = false;
    if (range.min < 0 && at < end && (*at == '-' || *at == '+'))
        is_negative = *at++ == '-';
    if (!number.is_integer || at == end)
        return fail(reader, begin, expected_integer(range));
    uint64_t limit = is_negative ? 0 - (uint64_t)range.min : range.max;
    uint64_t bits = 0;
    for (; at < end; at++) {
        unsigned digit = (unsigned)*at - '0';
        if (digit > 9 || bits > (limit - digit) / 10)
            return fail(reader, begin, expected_integer(range));
        bits = bits * 10 + digit;
    }
    bits = is_negative ? 0 - bits : bits;
    if (field->kind == OTLP_SINT32)
        bits = (uint32_t)((uint32_t)bits << 1 ^ (0 - (uint32_t)(bits >> 63)));
    return write_number(reader, field, bits);
}

static bool read_enum(struct reader *reader, const struct otlp_field *field)
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
    return fail(reader, begin, expected);
}

static bool read_double(struct reader *reader, const struct otlp_field *field)
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
        *begin == '"' ? string_to_double(number.text, &real) : parse_double(number.text, &real);
    if (!is_read)
        return fail(reader, begin, expected);
    memcpy(&bits, &real, sizeof(bits));
    return write_number(reader, field, bits);
}

/* ---- Objects and lists ---- */

static uint8_t next_byte(struct reader *reader)
{
    json_scan_space(&reader->scan);
    return json_scan_peek(&reader->scan);
}

static struct frame *push(struct reader *reader)
{
    if (reader->depth == JSON_DEPTH_MAX) {
        fail_limit(reader, "levels of nesting", JSON_DEPTH_MAX);
        return NULL;
    }
    struct frame *frame = &reader->frames[reader->depth++];
    size_t header_bytes = frame->header_bytes;
    if (header_bytes == 0)
        header_bytes = wire_varint_size((uint64_t)(reader->scan.end - reader->scan.at) / 2);
    *frame = (struct frame){.header_bytes = (uint8_t)header_bytes};
    assert(reader->depth <= JSON_DEPTH_MAX);
    return frame;
}

/* Writes the tag, and leaves room for the length. The frame has been pushed. */
static bool begin_content(struct reader *reader, struct frame *frame, uint32_t number)
{
    if (!reserve(reader, OPEN_BYTES_MAX))
        return false;
    struct buffer *out = reader->out;
    uint8_t *at = put_varint(out->data + out->size, wire_tag(number, WIRE_BYTES));
    frame->begin = (size_t)(at - out->data) + frame->header_bytes;
    out->size = frame->begin;
    frame->has_length = true;
    assert(out->size <= out->capacity);
    return true;
}

/* Closes an object or a list; the scan is past its bracket. */
static bool close_top(struct reader *reader)
{
    struct frame *frame = top(reader);
    if (frame->has_length) {
        /* The content moves when the room for its length turns out to be wrong. */
        size_t size = reader->out->size - frame->begin;
        size_t needed = wire_varint_size(size);
        size_t header = frame->begin - frame->header_bytes;
        if (needed != frame->header_bytes) {
            if (!reserve(reader, WIRE_VARINT_BYTES_MAX))
                return false;
            memmove(reader->out->data + header + needed, reader->out->data + frame->begin, size);
            reader->out->size = header + needed + size;
            frame->header_bytes = (uint8_t)needed;
        }
        uint8_t *end = put_varint(reader->out->data + header, size);
        assert(end == reader->out->data + header + needed);
    }
    reader->messages -= frame->message != NULL;
    reader->depth--;
    if (reader->depth == 0)
        return true;
    struct frame *parent = top(reader);
    if (parent->message == NULL || parent->field == NULL)
        return true;
    bool is_one = is_in(parent->message->one_of, parent->field);
    bool was_legacy = frame->is_list && frame->field != parent->field;
    if (is_one || was_legacy)
        parent->one_end = reader->out->size;
    return true;
}

/* Reads a field of the top frame, or an element of it. */
static bool read_value(struct reader *reader, const struct otlp_field *field)
{
    if (field->message == NULL) {
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
        case OTLP_BYTES:
        case OTLP_WEB_BYTES:
            return read_base64(reader, field);
        case OTLP_BOOL:
            if (json_scan_word(&reader->scan, "true"))
                return write_number(reader, field, 1);
            if (json_scan_word(&reader->scan, "false"))
                return write_number(reader, field, 0);
            return fail(reader, reader->scan.at, "true or false");
        case OTLP_ENUM:
            return read_enum(reader, field);
        case OTLP_DOUBLE:
        case OTLP_PACKED_DOUBLE:
            return read_double(reader, field);
        default:
            return read_integer(reader, field);
        }
    }
    struct frame *parent = top(reader);
    if (json_scan_peek(&reader->scan) == '{') {
        struct frame *frame = push(reader);
        if (frame == NULL)
            return false;
        if (++reader->messages > WIRE_DEPTH_MAX)
            return fail_limit(reader, "levels of nested messages", WIRE_DEPTH_MAX);
        if (!parent->is_list)
            begin_member(parent, field, reader->out);
        reader->scan.at++;
        frame->message = field->message;
        return begin_content(reader, frame, field->number);
    }
    if (!json_scan_word(&reader->scan, "null"))
        return fail(reader, reader->scan.at, "an object, or null");
    /* A null message is an empty one as an element and in a oneof, and otherwise absent. */
    bool is_one = !parent->is_list && is_in(parent->message->one_of, field);
    if (!parent->is_list && !is_one)
        return true;
    if (!reserve(reader, OPEN_BYTES_MAX))
        return false;
    if (is_one)
        begin_member(parent, field, reader->out);
    struct buffer *out = reader->out;
    uint8_t *at = put_varint(out->data + out->size, wire_tag(field->number, WIRE_BYTES));
    *at++ = 0;
    out->size = (size_t)(at - out->data);
    assert(out->size <= out->capacity);
    if (is_one)
        parent->one_end = out->size;
    return true;
}

static bool skip_value(struct reader *reader)
{
    struct json_string string;
    struct json_number number;
    uint8_t first = json_scan_peek(&reader->scan);
    if (first == '{' || first == '[') {
        struct frame *frame = push(reader);
        if (frame == NULL)
            return false;
        frame->is_list = first == '[';
        reader->scan.at++;
        return true;
    }
    const uint8_t *begin = reader->scan.at;
    bool is_valid = false;
    if (first == '"')
        is_valid = json_scan_string(&reader->scan, &string);
    else if (first == '-' || (first >= '0' && first <= '9'))
        is_valid = json_scan_number(&reader->scan, &number);
    else
        is_valid = json_scan_word(&reader->scan, "null") || json_scan_word(&reader->scan, "true") ||
                   json_scan_word(&reader->scan, "false");
    assert(reader->scan.at >= begin);
    return is_valid || fail(reader, reader->scan.at, "a JSON value");
}

static bool read_list(struct reader *reader, const struct otlp_field *field)
{
    struct frame *parent = top(reader);
    if (json_scan_word(&reader->scan, "null"))
        return true;
    if (json_scan_peek(&reader->scan) != '[')
        return fail(reader, reader->scan.at, "a list, or null");
    struct json_scan ahead = reader->scan;
    ahead.at++;
    json_scan_space(&ahead);
    bool is_empty = json_scan_peek(&ahead) == ']';
    /* Scopes under the old name are used only while there are none under the new one. */
    struct buffer *out = reader->out;
    bool has_scopes = (parent->seen & 1u << SCOPES) != 0;
    bool may_be_legacy = !is_empty && parent->message->more != NULL && field->message != NULL;
    if (may_be_legacy && field->number == FORMER_SCOPES) {
        if (has_scopes || parent->one_end > 0) {
            parent->field = NULL;
            return skip_value(reader);
        }
        parent->one_begin = out->size;
        field = &parent->message->fields[SCOPES];
    } else if (may_be_legacy && field->number == SCOPES && !has_scopes) {
        assert(parent->one_end <= out->size);
        if (parent->one_end > parent->one_begin) {
            memmove(out->data + parent->one_begin, out->data + parent->one_end,
                    out->size - parent->one_end);
            out->size -= parent->one_end - parent->one_begin;
        }
        parent->one_begin = parent->one_end = 0;
        parent->seen |= 1u << SCOPES;
    }
    struct frame *frame = push(reader);
    if (frame == NULL)
        return false;
    reader->scan.at++;
    frame->is_list = true;
    frame->field = field;
    return is_empty || !otlp_kind_is_packed(field->kind) ||
           begin_content(reader, frame, field->number);
}

/* Members mostly come in the order of their numbers, so the search starts after the last one. */
static const struct otlp_field *find_name(const struct frame *frame, struct slice name)
{
    const struct otlp_message *message = frame->message;
    unsigned first = frame->field != NULL ? frame->field->number + 1u : 1;
    for (unsigned i = 0; i < OTLP_SHORT_FIELDS; i++) {
        const struct otlp_field *field = &message->fields[(first + i) % OTLP_SHORT_FIELDS];
        if (field->json_name_size == name.size &&
            memcmp(field->json_name, name.data, name.size) == 0)
            return field;
    }
    for (unsigned i = 0; i < OTLP_SHORT_FIELDS; i++) {
        const struct otlp_field *field = &message->fields[i];
        if (field->name_size == name.size && memcmp(field->name, name.data, name.size) == 0)
            return field;
    }
    if (message->more != NULL && (slice_equal_text(name, message->more->json_name) ||
                                  slice_equal_text(name, message->more->name)))
        return message->more;
    return NULL;
}

/* Reads a member, an element, or the end of an object or a list. */
static bool read_next(struct reader *reader)
{
    struct frame *frame = top(reader);
    uint8_t next = next_byte(reader);
    if (next == (frame->is_list ? ']' : '}')) {
        reader->scan.at++;
        return close_top(reader);
    }
    if (frame->has_any) {
        if (next != ',')
            return fail(reader, reader->scan.at, frame->is_list ? "a comma or ]" : "a comma or }");
        reader->scan.at++;
        json_scan_space(&reader->scan);
    }
    frame->has_any = true;
    if (frame->is_list)
        return frame->field != NULL ? read_value(reader, frame->field) : skip_value(reader);
    struct json_string key;
    if (next_byte(reader) != '"' || !json_scan_string(&reader->scan, &key))
        return fail(reader, reader->scan.at, "a quoted field name");
    if (next_byte(reader) != ':')
        return fail(reader, reader->scan.at, "a colon");
    reader->scan.at++;
    json_scan_space(&reader->scan);
    const struct otlp_field *field = NULL;
    uint8_t room[64];
    if (frame->message == NULL || key.raw.size == 0)
        field = NULL;
    else if (!key.has_escapes)
        field = find_name(frame, key.raw);
    else if (key.raw.size <= sizeof(room))
        field = find_name(frame, slice_of(room, json_unescape(&key, room)));
    frame->field = field;
    if (field == NULL)
        return skip_value(reader);
    return otlp_kind_is_repeated(field->kind) ? read_list(reader, field)
                                              : read_value(reader, field);
}

enum json_result json_read(const struct otlp_message *message, struct slice text,
                           struct budget *budget, struct buffer **ret_encoded,
                           char reason[JSON_REASON_BYTES_MAX])
{
    struct reader reader;
    reader.scan = json_scan_of(text);
    reader.reason = reason;
    reader.result = JSON_READ;
    reader.depth = 0;
    reader.messages = 1;
    reader.text_bytes = text.size;
    for (unsigned i = 0; i < JSON_DEPTH_MAX; i++)
        reader.frames[i].header_bytes = 0;
    reader.out = buffer_try_create(budget, at_most(text.size / 2 + OUTPUT_BYTES_FIRST));
    if (reader.out == NULL) /* it may need less, or never fit: grow tells */
        reader.out = buffer_try_create(budget, OUTPUT_BYTES_FIRST);
    if (reader.out == NULL)
        return JSON_NO_BUDGET;
    if (next_byte(&reader) == '{') {
        push(&reader)->message = message;
        reader.scan.at++;
        while (reader.depth > 0 && read_next(&reader))
            continue;
    } else if (!json_scan_word(&reader.scan, "null")) {
        fail(&reader, reader.scan.at, "a JSON object in UTF-8, without a byte order mark");
    }
    json_scan_space(&reader.scan);
    if (reader.result == JSON_READ && reader.scan.at != reader.scan.end)
        fail(&reader, reader.scan.at, "nothing after the document");
    if (reader.result != JSON_READ) {
        buffer_unref(reader.out);
        return reader.result;
    }
    assert(reader.out->size <= JSON_READ_RATIO_MAX * text.size);
    *ret_encoded = buffer_shrink(reader.out);
    return JSON_READ;
}
