/* SPDX-License-Identifier: Apache-2.0 */
/* A cursor over JSON text (RFC 8259): white space, strings, numbers and words. Its tokens are
 * slices of the text. Plain values; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct json_scan {
    const uint8_t *begin;
    const uint8_t *at;
    const uint8_t *end;
};

/* The raw bytes between two quotes. */
struct json_string {
    struct slice raw;
    bool has_escapes;
};

struct json_number {
    struct slice text;
    bool is_integer; /* neither a point nor an exponent */
};

/* Borrows text, which may be empty with NULL. */
struct json_scan json_scan_of(struct slice text);
void json_scan_long_space(struct json_scan *scan);
/* At an opening quote: moves past the closing one. False: malformed at `at`. The bytes need not be
 * UTF-8. */
bool json_scan_string(struct json_scan *scan, struct json_string *ret_string);
/* False: malformed at `at`. */
bool json_scan_number(struct json_scan *scan, struct json_number *ret_number);
/* Moves past the word if it is here. */
bool json_scan_word(struct json_scan *scan, const char *word);
/* Unescapes the string into room, which must hold as many bytes as it has raw ones. Lone surrogates
 * become U+FFFD. Returns the size. */
size_t json_unescape(const struct json_string *string, uint8_t *room);

/* What is found at that place of the text, for an error: the token, cut to fit in a line, "the byte
 * 0x07" or "the end of the text". */
enum { JSON_FOUND_BYTES_MAX = 40 };
void json_scan_found(const struct json_scan *scan, const uint8_t *at,
                     char found[JSON_FOUND_BYTES_MAX]);

/* The byte here; 0, which JSON cannot contain, at the end. */
static inline uint8_t json_scan_peek(const struct json_scan *scan)
{
    return scan->at < scan->end ? *scan->at : 0;
}

static inline void json_scan_space(struct json_scan *scan)
{
    if (scan->at < scan->end && *scan->at <= ' ')
        json_scan_long_space(scan);
}
