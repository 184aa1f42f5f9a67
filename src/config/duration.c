/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and prints durations. The arithmetic is on unsigned nanoseconds; anything of 2^63 or more
 * is invalid, as in Go. Pure functions. */
#include "src/config/duration.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "src/base/clock.h"

struct unit {
    const char *name;
    uint64_t ns;
};

/* Both spellings of micro are in use: U+00B5 and U+03BC. */
static const struct unit units[] = {
    {"ns", 1},
    {"us", NS_PER_US},
    {"\xc2\xb5s", NS_PER_US},
    {"\xce\xbcs", NS_PER_US},
    {"ms", NS_PER_MS},
    {"s", NS_PER_S},
    {"m", (uint64_t)60 * NS_PER_S},
    {"h", (uint64_t)3600 * NS_PER_S},
};

static const char invalid[] = "time: invalid duration";

static bool is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

const char *text_to_duration_ns(const char *text, int64_t *ret_duration_ns)
{
    uint64_t total = 0;
    bool is_negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    if (*text == '\0')
        return invalid;
    if (strcmp(text, "0") == 0)
        text++;
    while (*text != '\0') {
        uint64_t whole = 0;
        uint64_t billionths = 0; /* the fraction; further digits are ignored */
        bool has_digits = is_digit(*text) || (*text == '.' && is_digit(text[1]));
        for (; is_digit(*text); text++)
            if (__builtin_mul_overflow(whole, (uint64_t)10, &whole) ||
                __builtin_add_overflow(whole, (uint64_t)(*text - '0'), &whole))
                return invalid;
        if (*text == '.') {
            uint64_t scale = NS_PER_S;
            for (text++; is_digit(*text); text++) {
                scale /= 10;
                billionths += (uint64_t)(*text - '0') * scale;
            }
        }
        if (!has_digits)
            return invalid;
        size_t size = strcspn(text, ".0123456789");
        if (size == 0)
            return "time: missing unit in duration";
        const struct unit *unit = units;
        const struct unit *end = units + sizeof(units) / sizeof(units[0]);
        while (unit < end && (strlen(unit->name) != size || memcmp(unit->name, text, size) != 0))
            unit++;
        if (unit == end)
            return "time: unknown unit";
        text += size;
        /* Units from a second on are whole seconds, which keeps the product within 64 bits. */
        uint64_t fraction = unit->ns >= NS_PER_S ? billionths * (unit->ns / NS_PER_S)
                                                 : billionths * unit->ns / NS_PER_S;
        if (__builtin_mul_overflow(whole, unit->ns, &whole) ||
            __builtin_add_overflow(whole, fraction, &whole) ||
            __builtin_add_overflow(total, whole, &total) || total > INT64_MAX)
            return invalid;
    }
    *ret_duration_ns = is_negative ? -(int64_t)total : (int64_t)total;
    return NULL;
}

struct duration_text duration_to_text(int64_t duration_ns)
{
    static const struct unit printed[] = {
        {"h", (uint64_t)3600 * NS_PER_S},
        {"m", (uint64_t)60 * NS_PER_S},
        {"s", NS_PER_S},
        {"ms", NS_PER_MS},
        {"us", NS_PER_US},
        {"ns", 1},
    };
    struct duration_text result = {.text = "0s"};
    size_t length = 0;
    bool is_negative = duration_ns < 0;
    uint64_t rest = is_negative ? 0 - (uint64_t)duration_ns : (uint64_t)duration_ns;
    if (is_negative)
        result.text[length++] = '-';
    for (size_t i = 0; i < sizeof(printed) / sizeof(printed[0]); i++) {
        if (rest < printed[i].ns)
            continue;
        int written = snprintf(result.text + length, sizeof(result.text) - length, "%" PRIu64 "%s",
                               rest / printed[i].ns, printed[i].name);
        rest %= printed[i].ns;
        length += (size_t)written;
        assert(length < sizeof(result.text));
    }
    return result;
}
