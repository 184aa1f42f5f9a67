/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and prints sizes. Pure functions. */
#include "src/config/byte_size.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    uint64_t bytes;
} units[] = {
    {"TiB", UINT64_C(1) << 40},
    {"GiB", 1 << 30},
    {"MiB", 1 << 20},
    {"KiB", 1 << 10},
    {"TB", 1000000000000},
    {"GB", 1000000000},
    {"MB", 1000 * 1000},
    {"kB", 1000},
    {"KB", 1000},
    {"B", 1},
    {"", 1},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool read_size(const char *text, bool has_any_case, uint64_t *ret_bytes)
{
    uint64_t whole = 0;
    uint64_t part = 0;  /* the digits behind the point */
    uint64_t parts = 1; /* and their denominator */
    if (!is_digit(*text))
        return false;
    for (; is_digit(*text); text++)
        if (__builtin_mul_overflow(whole, 10u, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(*text - '0'), &whole))
            return false;
    if (*text == '.' && !is_digit(text[1]))
        return false;
    if (*text == '.')
        for (text++; is_digit(*text) && parts < 1000000; text++) {
            part = 10 * part + (uint64_t)(*text - '0');
            parts *= 10;
        }
    while (*text == ' ')
        text++;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        uint64_t unit = units[i].bytes;
        if (strcmp(units[i].name, text) != 0 &&
            (!has_any_case || strcasecmp(units[i].name, text) != 0))
            continue;
        uint64_t fraction = (uint64_t)((double)part * (double)unit / (double)parts);
        return !__builtin_mul_overflow(whole, unit, &whole) &&
               !__builtin_add_overflow(whole, fraction, ret_bytes);
    }
    return false;
}

bool text_to_bytes(const char *text, uint64_t *ret_bytes)
{
    return read_size(text, false, ret_bytes);
}

bool text_to_bytes_in_any_case(const char *text, uint64_t *ret_bytes)
{
    return read_size(text, true, ret_bytes);
}

struct bytes_text bytes_to_text(uint64_t bytes)
{
    struct bytes_text text;
    size_t unit = 0;
    while (unit < 4 && (bytes < units[unit].bytes || bytes % units[unit].bytes != 0))
        unit++;
    bool is_plain = unit == 4;
    assert(unit <= 4);
    snprintf(text.text, sizeof(text.text), "%" PRIu64 "%s",
             is_plain ? bytes : bytes / units[unit].bytes, is_plain ? "" : units[unit].name);
    return text;
}
