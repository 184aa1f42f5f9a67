/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between values and strings. Pure functions; any thread. */
#include "src/otlp/json/value_string.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "src/base/arena.h"
#include "src/base/base64.h"
#include "src/base/utf8.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

enum { NUMBER_BYTES_MAX = 1024, DOUBLE_DIGITS_MAX = 17, TEXT_BYTES_FIRST = 256 };

/* ---- Strings to numbers ---- */

bool string_to_int(struct slice text, int64_t *ret_number)
{
    size_t at = text.size > 0 && (text.data[0] == '+' || text.data[0] == '-');
    bool is_negative = at == 1 && text.data[0] == '-';
    uint64_t limit = (uint64_t)INT64_MAX + is_negative;
    uint64_t number = 0;
    if (at == text.size)
        return false;
    for (; at < text.size; at++) {
        unsigned digit = (unsigned)text.data[at] - '0';
        if (digit > 9 || number > (limit - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret_number = is_negative ? (int64_t)(0 - number) : (int64_t)number;
    return true;
}

static const char *without_sign(const char *text)
{
    return text + (text[0] == '+' || text[0] == '-');
}

static bool is_special(const char *text)
{
    const char *name = without_sign(text);
    return strcasecmp(name, "inf") == 0 || strcasecmp(name, "infinity") == 0 ||
           strcasecmp(text, "nan") == 0;
}

bool string_to_double(struct slice text, double *ret_real)
{
    char number[NUMBER_BYTES_MAX + 1];
    if (text.size == 0 || text.size > NUMBER_BYTES_MAX ||
        memchr(text.data, '\0', text.size) != NULL)
        return false;
    memcpy(number, text.data, text.size);
    number[text.size] = '\0';
    /* Remove underscores, each of which must be between two digits or between 0x and a digit. */
    const char *digits = without_sign(number);
    bool is_hexadecimal = digits[0] == '0' && (digits[1] | 0x20) == 'x';
    char *out = number;
    for (const char *at = number; *at != '\0'; at++) {
        if (*at != '_') {
            *out++ = *at;
            continue;
        }
        unsigned char before = at > digits ? (unsigned char)at[-1] : 0;
        unsigned char after = (unsigned char)at[1];
        bool is_after_prefix = is_hexadecimal && at == digits + 2;
        if (!is_after_prefix && !(is_hexadecimal ? isxdigit(before) : isdigit(before)))
            return false;
        if (!(is_hexadecimal ? isxdigit(after) : isdigit(after)))
            return false;
    }
    *out = '\0';
    if (!is_special(number)) {
        /* Go's grammar is that of strtod, without leading space and with an exponent after 0x. */
        if (!isdigit((unsigned char)digits[0]) && digits[0] != '.')
            return false;
        if (is_hexadecimal && strpbrk(digits, "pP") == NULL)
            return false;
    }
    char *end;
    double real = strtod(number, &end);
    if (*end != '\0' || (isinf(real) && !is_special(number)))
        return false;
    *ret_real = real;
    return true;
}

/* ---- Numbers to strings ---- */

/* The digits of real times a power of ten, if a small one makes it whole: up to 15 digits read back
 * the same, so the first that do are the fewest. */
static bool whole_digits(double real, char digits[DOUBLE_DIGITS_MAX + 1], int *ret_exponent)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    assert(real >= 0);
    for (size_t i = 0; i < sizeof(powers) / sizeof(powers[0]); i++) {
        double scaled = real * powers[i];
        if (scaled >= 1e15)
            return false;
        uint64_t whole = (uint64_t)(scaled + 0.5);
        if ((double)whole / powers[i] != real)
            continue;
        int size = snprintf(digits, DOUBLE_DIGITS_MAX + 1, "%" PRIu64, whole);
        *ret_exponent = size - 1 - (int)i;
        return true;
    }
    return false;
}

/* Like encoding/json; with is_plain, of finite numbers, never with an exponent. */
static size_t write_double(double real, bool is_plain, char text[DOUBLE_STRING_BYTES_MAX])
{
    char digits[DOUBLE_DIGITS_MAX + 1];
    if (isnan(real))
        return (size_t)snprintf(text, DOUBLE_STRING_BYTES_MAX, "NaN");
    if (isinf(real))
        return (size_t)snprintf(text, DOUBLE_STRING_BYTES_MAX, real < 0 ? "-Infinity" : "Infinity");
    double magnitude = fabs(real);
    size_t used = 0;
    if (signbit(real))
        text[used++] = '-';
    /* The fewest digits that read back as the same number, and the exponent of the first. */
    int exponent;
    if (!whole_digits(magnitude, digits, &exponent)) {
        char scientific[DOUBLE_DIGITS_MAX + 16];
        /* Normal numbers read back the same with 15 digits at the latest, with trailing zeros if
         * fewer would do. */
        for (int precision = magnitude < DBL_MIN ? 0 : DBL_DIG - 1; precision < DOUBLE_DIGITS_MAX;
             precision++) {
            snprintf(scientific, sizeof(scientific), "%.*e", precision, magnitude);
            if (strtod(scientific, NULL) == magnitude)
                break;
        }
        size_t written = 0;
        const char *at = scientific;
        for (; *at != 'e'; at++)
            if (isdigit((unsigned char)*at))
                digits[written++] = *at;
        digits[written] = '\0';
        exponent = (int)strtol(at + 1, NULL, 10);
    }
    size_t count = strlen(digits);
    while (count > 1 && digits[count - 1] == '0')
        digits[--count] = '\0';
    if (is_plain || magnitude == 0 || (magnitude >= 1e-6 && magnitude < 1e21)) {
        if (exponent < 0) {
            text[used++] = '0';
            text[used++] = '.';
            for (int i = exponent + 1; i < 0; i++)
                text[used++] = '0';
        }
        for (int i = 0; i < (int)count || i <= exponent; i++) {
            if (i == exponent + 1 && exponent >= 0)
                text[used++] = '.';
            text[used++] = i < (int)count ? digits[i] : '0';
        }
        return used;
    }
    used += (size_t)snprintf(text + used, DOUBLE_STRING_BYTES_MAX - used, "%c%s%se%+03d", digits[0],
                             digits[1] != '\0' ? "." : "", digits + 1, exponent);
    /* e-09 is written e-9; e+21 has two digits anyway. */
    if (text[used - 4] == 'e' && text[used - 3] == '-' && text[used - 2] == '0') {
        text[used - 2] = text[used - 1];
        used--;
    }
    text[used] = '\0';
    return used;
}

size_t double_to_string(double real, char text[DOUBLE_STRING_BYTES_MAX])
{
    return write_double(real, false, text);
}

size_t double_to_decimal(double real, char text[DOUBLE_STRING_BYTES_MAX])
{
    if (isinf(real))
        return (size_t)snprintf(text, DOUBLE_STRING_BYTES_MAX, real < 0 ? "-Inf" : "+Inf");
    return write_double(real, true, text);
}

/* ---- Values to strings ---- */

/* JSON as Go's encoding/json writes a pcommon.Value: sorted keys, no space, its choice of escapes.
 * It grows in an arena; the error is sticky. */
struct json_text {
    struct arena *arena;
    uint8_t *data;
    size_t size;
    size_t capacity;
    bool is_for_web;  /* as json.Marshal: escapes <, > and &; numbers that JSON lacks are strings */
    bool has_failed;  /* the arena's cap does not allow it */
    bool has_no_text; /* NaN and infinities have no JSON form: Go then returns an empty string */
};

/* The arena frees nothing before the end, so the capacity doubles. */
static bool reserve(struct json_text *json, size_t bytes)
{
    assert(json->size <= json->capacity);
    if (json->has_failed || bytes <= json->capacity - json->size)
        return !json->has_failed;
    size_t capacity = json->capacity > 0 ? 2 * json->capacity : TEXT_BYTES_FIRST;
    while (capacity - json->size < bytes)
        capacity *= 2;
    uint8_t *data = arena_try_alloc(json->arena, capacity);
    if (data == NULL) {
        json->has_failed = true;
        return false;
    }
    if (json->size > 0)
        memcpy(data, json->data, json->size);
    json->data = data;
    json->capacity = capacity;
    return true;
}

static void json_text_raw(struct json_text *json, struct slice bytes)
{
    if (bytes.size == 0 || !reserve(json, bytes.size))
        return;
    memcpy(json->data + json->size, bytes.data, bytes.size);
    json->size += bytes.size;
}

static void write_text(struct json_text *json, const char *text)
{
    json_text_raw(json, slice_of_text(text));
}

static void json_text_base64(struct json_text *json, struct slice bytes)
{
    size_t size = base64_size(bytes.size);
    if (bytes.size == 0 || !reserve(json, size))
        return;
    base64_encode(bytes, (char *)json->data + json->size);
    json->size += size;
}

static void write_quoted(struct json_text *json, struct slice text)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    write_text(json, "\"");
    while (text.size > 0 && !json->has_failed) {
        size_t size = utf8_size(text);
        uint8_t byte = text.data[0];
        if (size == 0) {
            write_text(json, "\\ufffd");
        } else if (size == 3 && memcmp(text.data, "\xe2\x80\xa8", 3) == 0) {
            /* Line and paragraph separators are line ends in JavaScript. */
            write_text(json, "\\u2028");
        } else if (size == 3 && memcmp(text.data, "\xe2\x80\xa9", 3) == 0) {
            write_text(json, "\\u2029");
        } else if (size > 1 || (byte >= 0x20 && byte != '"' && byte != '\\' &&
                                !(json->is_for_web && strchr("<>&", byte) != NULL))) {
            json_text_raw(json, slice_of(text.data, size));
        } else {
            char escape[8];
            const char *found = byte != 0 ? strchr(from, byte) : NULL;
            if (found != NULL)
                snprintf(escape, sizeof(escape), "\\%c", to[found - from]);
            else
                snprintf(escape, sizeof(escape), "\\u%04x", byte);
            write_text(json, escape);
        }
        size = size > 0 ? size : 1;
        text = slice_of(text.data + size, text.size - size);
    }
    write_text(json, "\"");
}

struct entry {
    struct slice key;
    struct slice value;
    size_t order; /* among equal keys the last one counts */
};

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    size_t shared = a->key.size < b->key.size ? a->key.size : b->key.size;
    int difference = shared > 0 ? memcmp(a->key.data, b->key.data, shared) : 0;
    if (difference != 0)
        return difference;
    if (a->key.size != b->key.size)
        return a->key.size < b->key.size ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* An encoded AnyValue. Recursion is bounded by otlp_check, which allows a depth of WIRE_DEPTH_MAX.
 */
static void json_text_value(struct json_text *json, struct slice encoded);

/* number: of the fields that are the entries. */
static void write_map(struct json_text *json, struct slice container, uint32_t number)
{
    struct wire_reader reader = wire_reader_of(container);
    struct wire_field field;
    size_t count = 0;
    while (wire_read_field(&reader, &field))
        count += field.number == number;
    struct entry *entries = arena_try_alloc(json->arena, count * sizeof(entries[0]) + 1);
    if (entries == NULL) {
        json->has_failed = true;
        return;
    }
    reader = wire_reader_of(container);
    for (size_t i = 0; wire_read_field(&reader, &field);) {
        if (field.number != number)
            continue;
        struct wire_reader inner = wire_reader_of(field.bytes);
        entries[i] = (struct entry){.order = i};
        while (wire_read_field(&inner, &field)) {
            if (field.number == 1)
                entries[i].key = field.bytes;
            else if (field.number == 2)
                entries[i].value = field.bytes;
        }
        i++;
    }
    qsort(entries, count, sizeof(entries[0]), compare_entries);
    const char *separator = "{";
    for (size_t i = 0; i < count && !json->has_failed; i++) {
        if (i + 1 < count && slice_equal(entries[i].key, entries[i + 1].key))
            continue;
        write_text(json, separator);
        write_quoted(json, entries[i].key);
        write_text(json, ":");
        json_text_value(json, entries[i].value);
        separator = ",";
    }
    write_text(json, separator[0] == '{' ? "{}" : "}");
}

static void json_text_value(struct json_text *json, struct slice encoded)
{
    struct value value = value_read(encoded);
    struct wire_reader reader;
    struct wire_field field;
    const char *separator = "[";
    char number[DOUBLE_STRING_BYTES_MAX];
    switch (value.type) {
    case VALUE_STRING:
        write_quoted(json, value.bytes);
        return;
    case VALUE_BOOL:
        write_text(json, value.boolean ? "true" : "false");
        return;
    case VALUE_INT:
        snprintf(number, sizeof(number), "%" PRId64, value.integer);
        write_text(json, number);
        return;
    case VALUE_DOUBLE:
        if (json->is_for_web && !isfinite(value.real)) {
            write_quoted(json, slice_of(number, double_to_string(value.real, number)));
            return;
        }
        json->has_no_text |= !isfinite(value.real);
        json_text_raw(json, slice_of(number, double_to_string(value.real, number)));
        return;
    case VALUE_BYTES:
        if (value.bytes.size == 0) { /* as encoding/json has a nil slice */
            write_text(json, "null");
            return;
        }
        write_text(json, "\"");
        json_text_base64(json, value.bytes);
        write_text(json, "\"");
        return;
    case VALUE_MAP:
        write_map(json, value.bytes, 1);
        return;
    case VALUE_EMPTY:
    default:
        write_text(json, "null");
        return;
    case VALUE_LIST:
        break;
    }
    reader = wire_reader_of(value.bytes);
    while (!json->has_failed && wire_read_field(&reader, &field)) {
        if (field.number != 1)
            continue;
        write_text(json, separator);
        json_text_value(json, field.bytes);
        separator = ",";
    }
    write_text(json, separator[0] == '[' ? "[]" : "]");
}

bool value_to_string(struct arena *arena, struct slice encoded, struct slice *ret_text)
{
    struct value value = value_read(encoded);
    struct json_text json = {.arena = arena};
    char number[DOUBLE_STRING_BYTES_MAX];
    switch (value.type) {
    case VALUE_STRING:
        *ret_text = value.bytes;
        return true;
    case VALUE_DOUBLE:
        json_text_raw(&json, slice_of(number, double_to_string(value.real, number)));
        break;
    case VALUE_BYTES:
        json_text_base64(&json, value.bytes);
        break;
    case VALUE_BOOL:
    case VALUE_INT:
    case VALUE_LIST:
    case VALUE_MAP:
        json_text_value(&json, encoded);
        break;
    case VALUE_EMPTY:
    default:
        break;
    }
    if (json.has_failed)
        return false;
    *ret_text = slice_of(json.data, json.has_no_text ? 0 : json.size);
    return true;
}

bool attributes_to_json(struct arena *arena, struct slice message, uint32_t number,
                        struct slice *ret_text)
{
    struct json_text json = {.arena = arena, .is_for_web = true};
    write_map(&json, message, number);
    if (json.has_failed)
        return false;
    *ret_text = slice_of(json.data, json.size);
    return true;
}
