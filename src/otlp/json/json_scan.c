/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of JSON. Strings, most of any body, are scanned eight bytes at a time. Any thread. */
#include "src/otlp/json/json_scan.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "src/base/hex.h"

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

enum { REPLACEMENT = 0xfffd };

struct json_scan json_scan_of(struct slice text)
{
    assert(text.data != NULL || text.size == 0);
    if (text.size == 0)
        text.data = (const uint8_t *)""; /* NULL has no end */
    return (struct json_scan){text.data, text.data, text.data + text.size};
}

void json_scan_long_space(struct json_scan *scan)
{
    const uint8_t *at = scan->at;
    assert(at <= scan->end);
    uint64_t word;
    for (; scan->end - at >= (ptrdiff_t)sizeof(word); at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        if (word != EACH_BYTE(' '))
            break;
    }
    while (at < scan->end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    scan->at = at;
}

/* Returns the first quote, backslash or control character. In a word the high bits mark them,
 * exactly for the lowest one (Warren, "Hacker's Delight", 6-1). */
static inline const uint8_t *skip_plain(const uint8_t *at, const uint8_t *end)
{
    uint64_t word;
    for (; end - at >= (ptrdiff_t)sizeof(word); at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        word = le64toh(word);
        uint64_t quote = word ^ EACH_BYTE('"');
        uint64_t backslash = word ^ EACH_BYTE('\\');
        uint64_t is_quote = (quote - EACH_BYTE(1)) & ~quote;
        uint64_t is_backslash = (backslash - EACH_BYTE(1)) & ~backslash;
        uint64_t is_control = (word - EACH_BYTE(' ')) & ~word;
        uint64_t found = (is_quote | is_backslash | is_control) & EACH_BYTE(0x80);
        if (found != 0)
            return at + __builtin_ctzll(found) / 8;
    }
    while (at < end && *at != '"' && *at != '\\' && *at >= ' ')
        at++;
    return at;
}

bool json_scan_string(struct json_scan *scan, struct json_string *ret_string)
{
    assert(json_scan_peek(scan) == '"');
    const uint8_t *begin = scan->at + 1;
    const uint8_t *at = skip_plain(begin, scan->end);
    bool has_escapes = false;
    while (at < scan->end && *at == '\\') {
        size_t left = (size_t)(scan->end - at);
        size_t size = left > 1 && at[1] == 'u' ? 6 : 2;
        has_escapes = true;
        bool is_valid = left >= size && (size == 6 || memchr("\"\\/bfnrt", at[1], 8) != NULL);
        for (size_t i = 2; i < size && is_valid; i++)
            is_valid = hex_digit(at[i]) < 16;
        if (!is_valid)
            break;
        at = skip_plain(at + size, scan->end);
    }
    scan->at = at;
    if (at == scan->end || *at != '"')
        return false;
    scan->at = at + 1;
    *ret_string = (struct json_string){slice_of(begin, (size_t)(at - begin)), has_escapes};
    return true;
}

static bool skip_digits(struct json_scan *scan)
{
    const uint8_t *begin = scan->at;
    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
        scan->at++;
    return scan->at > begin;
}

bool json_scan_number(struct json_scan *scan, struct json_number *ret_number)
{
    assert(scan->at < scan->end);
    const uint8_t *begin = scan->at;
    bool is_integer = true;
    scan->at += *scan->at == '-';
    if (json_scan_peek(scan) == '0')
        scan->at++;
    else if (!skip_digits(scan))
        return false;
    if (json_scan_peek(scan) == '.') {
        scan->at++;
        is_integer = false;
        if (!skip_digits(scan))
            return false;
    }
    if ((json_scan_peek(scan) | 0x20) == 'e') {
        scan->at++;
        is_integer = false;
        scan->at += json_scan_peek(scan) == '+' || json_scan_peek(scan) == '-';
        if (!skip_digits(scan))
            return false;
    }
    *ret_number = (struct json_number){slice_of(begin, (size_t)(scan->at - begin)), is_integer};
    return true;
}

bool json_scan_word(struct json_scan *scan, const char *word)
{
    size_t size = strlen(word);
    assert(size > 0);
    if ((size_t)(scan->end - scan->at) < size || memcmp(scan->at, word, size) != 0)
        return false;
    scan->at += size;
    return true;
}

/* UTF-8 (RFC 3629 §3). Returns where it ends. */
static uint8_t *put_character(uint8_t *room, uint32_t character)
{
    assert(character <= 0x10ffff);
    if (character < 0x80) {
        *room++ = (uint8_t)character;
    } else if (character < 0x800) {
        *room++ = (uint8_t)(0xc0 | character >> 6);
        *room++ = (uint8_t)(0x80 | (character & 0x3f));
    } else if (character < 0x10000) {
        *room++ = (uint8_t)(0xe0 | character >> 12);
        *room++ = (uint8_t)(0x80 | (character >> 6 & 0x3f));
        *room++ = (uint8_t)(0x80 | (character & 0x3f));
    } else {
        *room++ = (uint8_t)(0xf0 | character >> 18);
        *room++ = (uint8_t)(0x80 | (character >> 12 & 0x3f));
        *room++ = (uint8_t)(0x80 | (character >> 6 & 0x3f));
        *room++ = (uint8_t)(0x80 | (character & 0x3f));
    }
    return room;
}

/* The four digits of \uXXXX. */
static uint32_t code_unit(const uint8_t *at)
{
    assert(at[0] == '\\' && at[1] == 'u');
    uint32_t unit = 0;
    for (size_t i = 2; i < 6; i++)
        unit = unit << 4 | hex_digit(at[i]);
    return unit;
}

size_t json_unescape(const struct json_string *string, uint8_t *room)
{
    const uint8_t *at = string->raw.data;
    const uint8_t *end = at + string->raw.size;
    uint8_t *out = room;
    while (at < end) {
        const uint8_t *run = at;
        at = skip_plain(run, end);
        memcpy(out, run, (size_t)(at - run));
        out += at - run;
        if (at == end)
            break;
        assert(*at == '\\');
        if (at[1] == 'u') {
            uint32_t character = code_unit(at);
            at += 6;
            assert(at <= end);
            if (character >= 0xd800 && character <= 0xdfff) {
                /* Half of a surrogate pair, with the other half behind it or alone. */
                bool may_pair =
                    character <= 0xdbff && end - at >= 6 && at[0] == '\\' && at[1] == 'u';
                uint32_t low = may_pair ? code_unit(at) : 0;
                bool is_pair = low >= 0xdc00 && low <= 0xdfff;
                character = is_pair ? 0x10000 + ((character & 0x3ff) << 10 | (low & 0x3ff))
                                    : (uint32_t)REPLACEMENT;
                at += is_pair ? 6 : 0;
            }
            out = put_character(out, character);
            continue;
        }
        static const char from[] = "bfnrt";
        static const char to[] = "\b\f\n\r\t";
        const char *found = strchr(from, at[1]);
        *out++ = found != NULL ? (uint8_t)to[found - from] : at[1];
        at += 2;
    }
    return (size_t)(out - room);
}

void json_scan_found(const struct json_scan *scan, const uint8_t *at,
                     char found[JSON_FOUND_BYTES_MAX])
{
    enum { TOKEN_BYTES_MAX = 24 };
    assert(at >= scan->begin && at <= scan->end);
    size_t left = (size_t)(scan->end - at);
    size_t size = 0;
    while (size < left && size < TOKEN_BYTES_MAX && at[size] >= ' ' && at[size] <= '~' &&
           (size == 0 || strchr(",:[]{} ", at[size]) == NULL))
        size++;
    if (left == 0)
        snprintf(found, JSON_FOUND_BYTES_MAX, "the end of the text");
    else if (size == 0)
        snprintf(found, JSON_FOUND_BYTES_MAX, "the byte 0x%02x", *at);
    else
        snprintf(found, JSON_FOUND_BYTES_MAX, "%.*s%s", (int)size, (const char *)at,
                 size == TOKEN_BYTES_MAX ? "..." : "");
}
