/* SPDX-License-Identifier: Apache-2.0 */
/* Parses Retry-After without functions that depend on the locale. Pure function; any thread. */
#include "src/net/syntax/retry_after.h"

#include "src/base/clock.h"

#include <assert.h>
#include <string.h>
#include <time.h>

/* Longer delays are cut to a year, which avoids overflows. */
#define RETRY_AFTER_MAX_NS ((uint64_t)366 * 24 * 3600 * NS_PER_S)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int number_at(const char *text, size_t digits)
{
    assert(digits <= 4);
    int number = 0;
    for (size_t i = 0; i < digits; i++) {
        if (!is_digit(text[i]))
            return -1;
        number = number * 10 + (text[i] - '0');
    }
    return number;
}

/* The index of the three letters at text in a row of names, or -1. */
static int name_at(const char *text, const char *names)
{
    for (int i = 0; names[i * 3] != '\0'; i++)
        if (strncmp(text, names + i * 3, 3) == 0)
            return i;
    return -1;
}

bool retry_after_parse(const char *text, uint64_t wall_ns, uint64_t *ret_after_ns)
{
    const uint64_t max_s = RETRY_AFTER_MAX_NS / NS_PER_S;
    const char *digits = text + (*text == '+');
    const char *at = digits;
    uint64_t seconds = 0;
    for (; is_digit(*at); at++) {
        seconds = seconds * 10 + (uint64_t)(*at - '0');
        if (seconds > max_s)
            seconds = max_s;
    }
    if (at > digits && *at == '\0') {
        *ret_after_ns = seconds * NS_PER_S;
        return true;
    }
    /* "Mon, 02 Jan 2006 15:04:05 GMT" */
    static const char shape[] = "aaa, 00 aaa 0000 00:00:00 GMT";
    if (strlen(text) != sizeof(shape) - 1)
        return false;
    for (size_t i = 0; i < sizeof(shape) - 1; i++)
        if (shape[i] != 'a' && shape[i] != '0' && shape[i] != text[i])
            return false;
    struct tm parts = {
        .tm_mday = number_at(text + 5, 2),
        .tm_mon = name_at(text + 8, "JanFebMarAprMayJunJulAugSepOctNovDec"),
        .tm_year = number_at(text + 12, 4) - 1900,
        .tm_hour = number_at(text + 17, 2),
        .tm_min = number_at(text + 20, 2),
        .tm_sec = number_at(text + 23, 2),
    };
    if (name_at(text, "MonTueWedThuFriSatSun") < 0 || parts.tm_mon < 0 || parts.tm_year < 70 ||
        parts.tm_mday < 1 || parts.tm_mday > 31 || parts.tm_hour < 0 || parts.tm_hour > 23 ||
        parts.tm_min < 0 || parts.tm_min > 59 || parts.tm_sec < 0 || parts.tm_sec > 60)
        return false;
    time_t date = timegm(&parts);
    if ((uint64_t)date <= wall_ns / NS_PER_S)
        return false;
    uint64_t after_s = (uint64_t)date - wall_ns / NS_PER_S;
    if (after_s > max_s)
        after_s = max_s;
    *ret_after_ns = after_s * NS_PER_S - wall_ns % NS_PER_S;
    return true;
}
