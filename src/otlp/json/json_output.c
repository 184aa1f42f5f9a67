/* SPDX-License-Identifier: Apache-2.0 */
/* Growing output. Runs on its owner's thread. */
#include "src/otlp/json/json_output.h"

#include <assert.h>
#include <endian.h>

#include "src/base/text_escape.h"
#include "src/base/utf8.h"

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

enum { NUMBER_BYTES_MAX = 20 };

void json_output_init(struct json_output *output, size_t capacity, size_t bytes_max,
                      struct budget *budget)
{
    *output = (struct json_output){
        .buffer = buffer_try_create(budget, capacity),
        .bytes_max = bytes_max,
    };
    output->has_failed = output->buffer == NULL;
}

struct buffer *json_output_take(struct json_output *output)
{
    struct buffer *buffer = output->buffer;
    output->buffer = NULL;
    if (!output->has_failed)
        return buffer_shrink(buffer);
    buffer_unref(buffer);
    return NULL;
}

uint8_t *json_output_grow(struct json_output *output, size_t bytes)
{
    struct buffer *buffer = output->buffer;
    if (output->has_failed)
        return NULL;
    size_t capacity = buffer->size + bytes;
    output->is_too_large = capacity > output->bytes_max;
    size_t doubled =
        2 * buffer->capacity < output->bytes_max ? 2 * buffer->capacity : output->bytes_max;
    capacity = capacity < doubled ? doubled : capacity;
    buffer = output->is_too_large ? NULL : buffer_try_grow(buffer, capacity);
    if (buffer == NULL) {
        output->has_failed = true;
        return NULL;
    }
    output->buffer = buffer;
    assert(buffer->capacity - buffer->size >= bytes);
    return buffer->data + buffer->size;
}

/* The number of leading bytes that need no escape: ASCII except quotes, backslashes and control
 * characters. Eight at a time; the lowest marked byte is exact. */
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

void json_output_put_string(struct json_output *output, struct slice text)
{
    assert(text.data != NULL || text.size == 0);
    json_output_put_byte(output, '"');
    while (text.size > 0 && !output->has_failed) {
        size_t plain = plain_size(text);
        uint8_t *at = json_output_reserve(output, plain + JSON_ESCAPE_BYTES_MAX);
        if (at == NULL)
            return;
        memcpy(at, text.data, plain);
        at += plain;
        text = slice_of(text.data + plain, text.size - plain);
        if (text.size > 0) {
            size_t size = utf8_size(text);
            if (size == 1) {
                at += json_escape_byte(text.data[0], at);
            } else {
                memcpy(at, size == 0 ? (const uint8_t *)"\xef\xbf\xbd" : text.data,
                       size == 0 ? 3 : size);
                at += size == 0 ? 3 : size;
            }
            size = size == 0 ? 1 : size;
            text = slice_of(text.data + size, text.size - size);
        }
        output->buffer->size = (size_t)(at - output->buffer->data);
    }
    json_output_put_byte(output, '"');
}

void json_output_put_unsigned(struct json_output *output, uint64_t number)
{
    char digits[NUMBER_BYTES_MAX];
    size_t at = sizeof(digits);
    do {
        assert(at > 0);
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    json_output_put(output, digits + at, sizeof(digits) - at);
}

void json_output_put_signed(struct json_output *output, int64_t number)
{
    if (number < 0)
        json_output_put_byte(output, '-');
    json_output_put_unsigned(output, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}
