/* SPDX-License-Identifier: Apache-2.0 */
/* OTEL_RESOURCE_ATTRIBUTES as the Go collector reads it: entries key=value between commas, ASCII,
 * up to 256 characters each, spaces around them dropped, values decoded like those of a URL's
 * query. */
#include <stdlib.h>
#include <string.h>

#include "processors/resource_detection/detector.h"
#include "src/base/error.h"
#include "src/base/hex.h"

enum { PART_CHARACTERS_MAX = 256 };

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_text(struct slice part)
{
    for (size_t i = 0; i < part.size; i++)
        if (part.data[i] >= 0x80)
            return false;
    return part.size <= PART_CHARACTERS_MAX;
}

/* In place. False: a % without two digits follows. */
static bool unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at != '%') {
            *to++ = *at == '+' ? ' ' : *at;
            continue;
        }
        unsigned high = hex_digit((uint8_t)at[1]);
        unsigned low = high < 16 ? hex_digit((uint8_t)at[2]) : 16;
        if (low >= 16)
            return false;
        *to++ = (char)(high * 16 + low);
        at += 2;
    }
    *to = '\0';
    return true;
}

/* Reads one entry and moves on behind its comma. False: it is malformed. */
static bool read_entry(struct detected *detected, struct slice *rest)
{
    while (rest->size > 0 && is_space((char)rest->data[0]))
        *rest = slice_of(rest->data + 1, rest->size - 1);
    const uint8_t *equal = rest->size > 1 ? memchr(rest->data + 1, '=', rest->size - 1) : NULL;
    if (equal == NULL)
        return false;
    struct slice key = slice_trim(slice_of(rest->data, (size_t)(equal - rest->data)));
    struct slice value = slice_of(equal + 1, rest->size - (size_t)(equal + 1 - rest->data));
    const uint8_t *comma = value.size > 0 ? memchr(value.data, ',', value.size) : NULL;
    *rest = slice_of(value.data + value.size, 0);
    if (comma != NULL) {
        *rest = slice_of(comma + 1, (size_t)(value.data + value.size - (comma + 1)));
        value.size = (size_t)(comma - value.data);
    }
    value = slice_trim(value);
    if (!is_text(key) || !is_text(value))
        return false;
    char name[PART_CHARACTERS_MAX + 1] = "";
    char text[PART_CHARACTERS_MAX + 1] = "";
    memcpy(name, key.data, key.size);
    if (value.size > 0)
        memcpy(text, value.data, value.size);
    if (!unescape(text))
        return false;
    detected_put_text(detected, name, slice_of_text(text));
    return true;
}

bool detect_env(struct detected *detected, struct error *error)
{
    static const char *const names[] = {"OTEL_RESOURCE_ATTRIBUTES", "OTEL_RESOURCE"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        struct slice rest = slice_trim(slice_of_text(value != NULL ? value : ""));
        if (rest.size == 0)
            continue;
        while (rest.size > 0) {
            struct slice entry = rest;
            if (!read_entry(detected, &rest))
                return error_set(error,
                                 "the environment variable %s is malformed at \"%.*s\": expected "
                                 "key=value,key=value, in ASCII, each part of at most %d "
                                 "characters, with special characters of values as %%20",
                                 names[i], entry.size > 64 ? 64 : (int)entry.size,
                                 (const char *)entry.data, PART_CHARACTERS_MAX);
        }
        return true;
    }
    return true;
}
