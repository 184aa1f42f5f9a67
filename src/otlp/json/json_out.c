/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and numbers as JSON. Any thread. */
#include "src/otlp/json/json_out.h"

#include <assert.h>
#include <endian.h>
#include <math.h>

#include "src/base/base64.h"
#include "src/base/hex.h"
#include "src/base/text_escape.h"
#include "src/base/utf8.h"
#include "src/otlp/json/value_text.h"

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

enum { NUMBER_BYTES_MAX = 20, ESCAPE_BYTES = 6 };

uint8_t *json_out_grow(struct json_out *out, size_t bytes)
{
    struct buffer *buffer = out->buffer;
    if (out->has_failed)
        return NULL;
    size_t capacity = buffer->size + bytes;
    if (capacity < 2 * buffer->capacity)
        capacity = 2 * buffer->capacity;
    buffer = buffer_try_grow(buffer, capacity);
    if (buffer == NULL) {
        out->has_failed = true;
        return NULL;
    }
    out->buffer = buffer;
    assert(buffer->capacity - buffer->size >= bytes);
    return buffer->data + buffer->size;
}

/* Bytes from the begin that go as they are: ASCII but for quotes, backslashes and control
 * characters. Eight at a time; the lowest byte that is marked is exact. */
static size_t plain_size(struct slice text)
{
    size_t at = 0;
    uint64_t word;
    for (; text.size - at >= sizeof(word); at += sizeof(word)) {
        memcpy(&word, text.data + at, sizeof(word));
        word = le64toh(word);
        uint64_t quote = word ^ EACH_BYTE('"');
        uint64_t backslash = word ^ EACH_BYTE('\\');
        uint64_t found = ((quote - EACH_BYTE(1)) & ~quote) |
                         ((backslash - EACH_BYTE(1)) & ~backslash) |
                         ((word - EACH_BYTE(' ')) & ~word) | word;
        found &= EACH_BYTE(0x80);
        if (found != 0)
            return at + (size_t)__builtin_ctzll(found) / 8;
    }
    while (at < text.size && text.data[at] >= ' ' && text.data[at] < 0x80 && text.data[at] != '"' &&
           text.data[at] != '\\')
        at++;
    return at;
}

/* One character that is not plain; returns how many bytes of text it was. */
static size_t put_character(uint8_t **at, struct slice text)
{
    assert(text.size > 0);
    size_t size = utf8_size(text);
    if (size == 1) {
        *at += json_escape_byte(text.data[0], *at);
        return 1;
    }
    memcpy(*at, size == 0 ? (const uint8_t *)"\xef\xbf\xbd" : text.data, size == 0 ? 3 : size);
    *at += size == 0 ? 3 : size;
    return size == 0 ? 1 : size;
}

void json_out_string(struct json_out *out, struct slice text)
{
    assert(text.data != NULL || text.size == 0);
    json_out_byte(out, '"');
    while (text.size > 0 && !out->has_failed) {
        size_t plain = plain_size(text);
        uint8_t *at = json_out_room(out, plain + ESCAPE_BYTES);
        if (at == NULL)
            return;
        memcpy(at, text.data, plain);
        at += plain;
        text = slice_of(text.data + plain, text.size - plain);
        if (text.size > 0) {
            size_t used = put_character(&at, text);
            text = slice_of(text.data + used, text.size - used);
        }
        out->buffer->size = (size_t)(at - out->buffer->data);
    }
    json_out_byte(out, '"');
}

void json_out_hex(struct json_out *out, struct slice bytes)
{
    uint8_t *at = json_out_room(out, 2 * bytes.size + 2);
    if (at == NULL)
        return;
    at[0] = '"';
    hex_write(bytes.data, bytes.size, at + 1);
    at[1 + 2 * bytes.size] = '"';
    out->buffer->size += 2 * bytes.size + 2;
    assert(out->buffer->size <= out->buffer->capacity);
}

void json_out_base64(struct json_out *out, struct slice bytes)
{
    size_t size = base64_size(bytes.size);
    uint8_t *at = json_out_room(out, size + 2);
    if (at == NULL)
        return;
    at[0] = '"';
    base64_encode(bytes, (char *)at + 1);
    at[size + 1] = '"';
    out->buffer->size += size + 2;
    assert(out->buffer->size <= out->buffer->capacity);
}

void json_out_unsigned(struct json_out *out, uint64_t number)
{
    char digits[NUMBER_BYTES_MAX];
    size_t at = sizeof(digits);
    do {
        assert(at > 0);
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    json_out_raw(out, digits + at, sizeof(digits) - at);
}

void json_out_signed(struct json_out *out, int64_t number)
{
    if (number < 0)
        json_out_byte(out, '-');
    json_out_unsigned(out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void json_out_double(struct json_out *out, double real)
{
    char text[DOUBLE_TEXT_BYTES_MAX];
    size_t size = double_to_text(real, text);
    assert(size < sizeof(text));
    if (isfinite(real))
        json_out_raw(out, text, size);
    else
        json_out_string(out, slice_of(text, size));
}
