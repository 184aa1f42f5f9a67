/* SPDX-License-Identifier: Apache-2.0 */
/* Times of /ingest, as the server reads them. Pure functions; any thread. */
#include "src/profiles/pyroscope/ingest_time.h"

#include "src/base/clock.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

enum { TEXT_MAX = 64, DAY_DIGITS = 8, FIRST_YEAR = 1970 };

static const struct {
    const char *prefix;
    uint64_t seconds;
} units[] = {
    {"s", 1},    {"mon", 2592000}, {"M", 2592000}, {"min", 60},     {"m", 60},
    {"h", 3600}, {"d", 86400},     {"w", 604800},  {"y", 31536000},
};

/* Blanks, commas and underscores do not count. False: nothing is left, or more than is looked at.
 */
static bool clean(struct slice text, char room[TEXT_MAX])
{
    size_t used = 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = (char)text.data[i];
        if (c == '\0' || used + 1 == TEXT_MAX)
            return false;
        if (strchr("_, \t\r\n", c) == NULL)
            room[used++] = c;
    }
    room[used] = '\0';
    return used > 0;
}

/* The digits at *at, maybe none. False: too large. */
static bool read_number(const char **at, uint64_t *ret_number)
{
    uint64_t number = 0;
    assert(ret_number != NULL);
    for (; **at >= '0' && **at <= '9'; (*at)++)
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(**at - '0'), &number))
            return false;
    *ret_number = number;
    return true;
}

/* False: there is no such day. */
static bool day_to_seconds(uint64_t number, uint64_t *ret_seconds)
{
    struct tm tm = {.tm_year = (int)(number / 10000) - 1900,
                    .tm_mon = (int)(number / 100 % 100) - 1,
                    .tm_mday = (int)(number % 100)};
    struct tm given = tm;
    time_t seconds = timegm(&tm);
    assert(ret_seconds != NULL);
    /* timegm makes the 31st of June the first of July. */
    if (tm.tm_mon != given.tm_mon || tm.tm_mday != given.tm_mday || seconds < 0)
        return false;
    *ret_seconds = (uint64_t)seconds;
    return true;
}

static bool number_to_ns(size_t digits, uint64_t number, uint64_t *ret_ns)
{
    uint64_t unit = digits == 13   ? NS_PER_MS
                    : digits == 16 ? NS_PER_US
                    : digits == 19 ? 1
                                   : NS_PER_S;
    if (digits == DAY_DIGITS && number / 10000 >= FIRST_YEAR)
        day_to_seconds(number, &number);
    return !__builtin_mul_overflow(number, unit, ret_ns) && *ret_ns <= INT64_MAX;
}

static uint64_t unit_seconds(const char *at)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strncmp(at, units[i].prefix, strlen(units[i].prefix)) == 0)
            return units[i].seconds;
    return 0;
}

/* "1h30min" in nanoseconds; what is no number, or no unit, counts for nothing. */
static bool read_offset(const char *at, uint64_t *ret_ns)
{
    uint64_t total = 0;
    assert(at != NULL);
    while (*at != '\0') {
        uint64_t number;
        if (!read_number(&at, &number) ||
            __builtin_mul_overflow(number, unit_seconds(at), &number) ||
            __builtin_mul_overflow(number, (uint64_t)NS_PER_S, &number) ||
            __builtin_add_overflow(total, number, &total))
            return false;
        while (*at != '\0' && (*at < '0' || *at > '9'))
            at++;
    }
    *ret_ns = total;
    return true;
}

/* Whatever stands before the first plus, or else the first minus, is now. */
static bool read_relative(const char *text, uint64_t now_ns, uint64_t *ret_ns)
{
    uint64_t offset_ns = 0;
    const char *sign = strchr(text, '+');
    assert(now_ns <= INT64_MAX);
    if (sign == NULL)
        sign = strchr(text, '-');
    if (sign != NULL && !read_offset(sign + 1, &offset_ns))
        return false;
    bool is_before = sign != NULL && *sign == '-';
    if (is_before ? offset_ns > now_ns : offset_ns > INT64_MAX - now_ns)
        return false;
    *ret_ns = is_before ? now_ns - offset_ns : now_ns + offset_ns;
    return true;
}

bool ingest_time_parse(struct slice text, uint64_t now_ns, uint64_t *ret_ns)
{
    char room[TEXT_MAX];
    uint64_t number;
    const char *at = room;
    assert(ret_ns != NULL);
    if (!clean(text, room)) {
        *ret_ns = now_ns;
        return true;
    }
    size_t digits = strspn(room, "0123456789");
    if (room[digits] != '\0')
        return read_relative(room, now_ns, ret_ns);
    return read_number(&at, &number) && number_to_ns(digits, number, ret_ns);
}
