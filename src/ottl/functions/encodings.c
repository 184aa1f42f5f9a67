/* SPDX-License-Identifier: Apache-2.0 */
/* Base64Encode, Base64Decode and Decode: base64 (RFC 4648) and encodings of text. Runs on the
 * processor's thread. */
#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/ottl/functions/tables.h"

enum { PADDING = '=', NO_DIGIT = 64 };

struct base64_form {
    const char *name;
    bool is_url; /* - and _ for + and / */
    bool is_padded;
};

static const struct base64_form base64_forms[] = {
    {"base64", false, true},
    {"base64-raw", false, false},
    {"base64-url", true, true},
    {"base64-raw-url", true, false},
};

static const struct base64_form *find_form(struct slice name)
{
    for (size_t i = 0; i < sizeof(base64_forms) / sizeof(base64_forms[0]); i++)
        if (slice_equal_text(name, base64_forms[i].name))
            return &base64_forms[i];
    return NULL;
}

static bool base64_encode_call(struct ottl_call *call, struct ottl_value *ret)
{
    static const char standard[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    struct slice text;
    struct slice name = slice_of_text("base64");
    if (!ottl_get_string(call, 0, &text) || (ottl_has(call, 1) && !ottl_get_string(call, 1, &name)))
        return false;
    const struct base64_form *form = find_form(name);
    if (form == NULL)
        return ottl_fail(call, "unsupported base64 variant: %.*s", (int)name.size,
                         (const char *)name.data);
    const char *digits = form->is_url ? url : standard;
    uint8_t *room = ottl_alloc(call, (text.size + 2) / 3 * 4);
    if (room == NULL)
        return false;
    size_t used = 0;
    for (size_t i = 0; i < text.size; i += 3) {
        size_t left = text.size - i < 3 ? text.size - i : 3;
        uint32_t bits = (uint32_t)text.data[i] << 16;
        bits |= left > 1 ? (uint32_t)text.data[i + 1] << 8 : 0;
        bits |= left > 2 ? text.data[i + 2] : 0;
        for (size_t k = 0; k < 4; k++)
            if (k <= left)
                room[used++] = (uint8_t)digits[bits >> (18 - 6 * k) & 63];
            else if (form->is_padded)
                room[used++] = PADDING;
    }
    *ret = ottl_string(slice_of(room, used));
    return true;
}

static unsigned digit_of(uint8_t byte, bool is_url)
{
    if (byte >= 'A' && byte <= 'Z')
        return (unsigned)byte - 'A';
    if (byte >= 'a' && byte <= 'z')
        return (unsigned)byte - 'a' + 26;
    if (byte >= '0' && byte <= '9')
        return (unsigned)byte - '0' + 52;
    if (byte == (is_url ? '-' : '+'))
        return 62;
    return byte == (is_url ? '_' : '/') ? 63 : NO_DIGIT;
}

static size_t skip_line_ends(struct slice text, size_t at)
{
    while (at < text.size && (text.data[at] == '\n' || text.data[at] == '\r'))
        at++;
    return at;
}

/* As Go's encoding/base64: line ends count nowhere, what the last digit has too much neither. */
static bool decode_base64(struct ottl_call *call, struct slice text, const struct base64_form *form,
                          const char *failure, struct ottl_value *ret)
{
    uint8_t *room = ottl_alloc(call, text.size / 4 * 3 + 3);
    if (room == NULL)
        return false;
    size_t used = 0;
    uint32_t bits = 0;
    unsigned count = 0;
    size_t at = skip_line_ends(text, 0);
    size_t bad = SIZE_MAX;
    while (at < text.size && bad == SIZE_MAX) {
        unsigned digit = digit_of(text.data[at], form->is_url);
        if (digit == NO_DIGIT)
            break;
        bits = bits << 6 | digit;
        if (++count % 4 == 0) {
            room[used++] = (uint8_t)(bits >> 16);
            room[used++] = (uint8_t)(bits >> 8);
            room[used++] = (uint8_t)bits;
        }
        at = skip_line_ends(text, at + 1);
    }
    unsigned rest = count % 4;
    if (at < text.size) {
        /* Padding: one or two signs, and nothing behind them. */
        bool is_padding = form->is_padded && text.data[at] == PADDING && rest > 1;
        size_t next = skip_line_ends(text, at + 1);
        if (!is_padding) {
            bad = at;
        } else if (rest == 2) {
            if (next == text.size || text.data[next] != PADDING)
                bad = next == text.size ? text.size : next;
            else
                next = skip_line_ends(text, next + 1);
        }
        if (bad == SIZE_MAX && next < text.size)
            bad = next;
    } else if (rest == 1 || (form->is_padded && rest > 0)) {
        bad = text.size - rest;
    }
    if (bad != SIZE_MAX)
        return ottl_fail(call, "%sillegal base64 data at input byte %zu", failure, bad);
    if (rest > 1)
        room[used++] = (uint8_t)(rest == 2 ? bits >> 4 : bits >> 10);
    if (rest == 3)
        room[used++] = (uint8_t)(bits >> 2);
    *ret = ottl_string(slice_of(room, used));
    return true;
}

static bool base64_decode_call(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    return ottl_get_string(call, 0, &text) && decode_base64(call, text, base64_forms, "", ret);
}

/* Encodings of text. */

enum charset { RAW, UTF8, UTF16_LE, UTF16_BE, LATIN1, WINDOWS_1252 };

static bool find_charset(struct slice name, enum charset *ret)
{
    static const struct {
        const char *name;
        enum charset charset;
    } names[] = {
        {"utf-8", UTF8},
        {"utf8", UTF8},
        {"csutf8", UTF8},
        {"ascii", UTF8},
        {"us-ascii", UTF8},
        {"", UTF8},
        {"utf-8-raw", RAW},
        {"utf8-raw", RAW},
        {"nop", RAW},
        {"utf-16", UTF16_LE},
        {"utf16", UTF16_LE},
        {"utf-16le", UTF16_LE},
        {"csutf16le", UTF16_LE},
        {"utf-16be", UTF16_BE},
        {"csutf16be", UTF16_BE},
        {"iso-8859-1", LATIN1},
        {"iso_8859-1", LATIN1},
        {"iso_8859-1:1987", LATIN1},
        {"iso-ir-100", LATIN1},
        {"latin1", LATIN1},
        {"l1", LATIN1},
        {"ibm819", LATIN1},
        {"cp819", LATIN1},
        {"csisolatin1", LATIN1},
        {"windows-1252", WINDOWS_1252},
        {"cswindows1252", WINDOWS_1252},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (slice_equal_nocase(name, names[i].name)) {
            *ret = names[i].charset;
            return true;
        }
    return false;
}

static uint8_t *put_character(uint8_t *at, uint32_t character)
{
    if (character < 0x80) {
        *at++ = (uint8_t)character;
    } else if (character < 0x800) {
        *at++ = (uint8_t)(0xc0 | character >> 6);
        *at++ = (uint8_t)(0x80 | (character & 0x3f));
    } else if (character < 0x10000) {
        *at++ = (uint8_t)(0xe0 | character >> 12);
        *at++ = (uint8_t)(0x80 | (character >> 6 & 0x3f));
        *at++ = (uint8_t)(0x80 | (character & 0x3f));
    } else {
        *at++ = (uint8_t)(0xf0 | character >> 18);
        *at++ = (uint8_t)(0x80 | (character >> 12 & 0x3f));
        *at++ = (uint8_t)(0x80 | (character >> 6 & 0x3f));
        *at++ = (uint8_t)(0x80 | (character & 0x3f));
    }
    return at;
}

enum { UNKNOWN_CHARACTER = 0xfffd };

static uint8_t *put_utf8(uint8_t *at, struct slice text)
{
    while (text.size > 0) {
        size_t size = utf8_size(text);
        if (size > 0)
            memcpy(at, text.data, size);
        at = size > 0 ? at + size : put_character(at, UNKNOWN_CHARACTER);
        size = size > 0 ? size : 1;
        text = slice_of(text.data + size, text.size - size);
    }
    return at;
}

static uint32_t unit_of(const uint8_t *bytes, bool is_big)
{
    return is_big ? (uint32_t)bytes[0] << 8 | bytes[1] : (uint32_t)bytes[1] << 8 | bytes[0];
}

static uint8_t *put_utf16(uint8_t *at, struct slice text, bool is_big)
{
    size_t i = 0;
    while (i + 1 < text.size) {
        uint32_t unit = unit_of(text.data + i, is_big);
        i += 2;
        if (unit >= 0xd800 && unit < 0xe000) {
            uint32_t low = i + 1 < text.size ? unit_of(text.data + i, is_big) : 0;
            bool is_pair = unit < 0xdc00 && low >= 0xdc00 && low < 0xe000;
            unit = is_pair ? 0x10000 + (unit - 0xd800) * 0x400 + (low - 0xdc00) : UNKNOWN_CHARACTER;
            i += is_pair ? 2 : 0;
        }
        at = put_character(at, unit);
    }
    return i < text.size ? put_character(at, UNKNOWN_CHARACTER) : at;
}

static uint8_t *put_bytes(uint8_t *at, struct slice text, bool is_windows)
{
    enum { FIRST = 0x80 };
    static const uint16_t windows[] = {
        0x20ac, 0x81,   0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
        0x2039, 0x0152, 0x8d,   0x017d, 0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
        0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d,   0x017e, 0x0178};
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        bool is_moved = is_windows && byte >= FIRST && byte < FIRST + sizeof(windows) / 2;
        at = put_character(at, is_moved ? windows[byte - FIRST] : byte);
    }
    return at;
}

static bool decode_text(struct ottl_call *call, struct slice text, enum charset charset,
                        struct ottl_value *ret)
{
    enum { GROWTH_MAX = 3 };
    if (charset == RAW || (charset == UTF8 && utf8_is_valid(text))) {
        *ret = ottl_string(text);
        return true;
    }
    uint8_t *room = ottl_alloc(call, text.size * GROWTH_MAX + GROWTH_MAX);
    if (room == NULL)
        return false;
    uint8_t *end = room;
    if (charset == UTF8)
        end = put_utf8(room, text);
    else if (charset == UTF16_LE || charset == UTF16_BE)
        end = put_utf16(room, text, charset == UTF16_BE);
    else
        end = put_bytes(room, text, charset == WINDOWS_1252);
    *ret = ottl_string(slice_of(room, (size_t)(end - room)));
    return true;
}

#define ENCODINGS                                                                                  \
    "expected base64, base64-raw, base64-url, base64-raw-url, utf-8, utf-16, utf-16le, utf-16be, " \
    "us-ascii, iso-8859-1 or windows-1252"

static bool prepare_decode(const struct ottl_preparation *preparation, void **ret_state,
                           struct error *error)
{
    struct ottl_value name;
    enum charset charset;
    *ret_state = NULL;
    return !ottl_is_constant(preparation, 1, &name) || name.type != OTTL_STRING ||
           find_form(ottl_slice(&name)) != NULL || find_charset(ottl_slice(&name), &charset) ||
           error_set(error, "unsupported encoding '%.*s'; " ENCODINGS, (int)name.size,
                     (const char *)name.bytes);
}

static bool decode(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_value value;
    struct slice name;
    enum charset charset = RAW;
    if (!ottl_get(call, 0, &value) || !ottl_get_string(call, 1, &name))
        return false;
    const struct base64_form *form = find_form(name);
    if (form == NULL && !find_charset(name, &charset))
        return ottl_fail(call, "unsupported encoding '%.*s'; " ENCODINGS, (int)name.size,
                         (const char *)name.data);
    if (value.type != OTTL_STRING && value.type != OTTL_BYTES)
        return ottl_fail(call, "unsupported type provided to Decode function: %s",
                         ottl_type_name(&value));
    return form != NULL ? decode_base64(call, ottl_slice(&value), form, "could not decode: ", ret)
                        : decode_text(call, ottl_slice(&value), charset, ret);
}

static const struct ottl_parameter base64_encode_parameters[] = {
    {"Target", OTTL_STRINGS_ONLY, false, false},
    {"Variant", OTTL_STRINGS_ONLY, true, false},
    {.name = NULL}};

static const struct ottl_parameter base64_decode_parameters[] = {
    {"Target", OTTL_STRINGS_ONLY, false, false}, {.name = NULL}};

static const struct ottl_parameter decode_parameters[] = {
    {"Target", OTTL_ANY, false, false},
    {"Encoding", OTTL_STRINGS_ONLY, false, false},
    {.name = NULL}};

const struct ottl_function ottl_encoding_functions[] = {
    {.name = "Base64Encode",
     .parameters = base64_encode_parameters,
     .evaluate = base64_encode_call},
    {.name = "Base64Decode",
     .parameters = base64_decode_parameters,
     .evaluate = base64_decode_call},
    {.name = "Decode",
     .parameters = decode_parameters,
     .evaluate = decode,
     .prepare = prepare_decode},
    {.name = NULL},
};
