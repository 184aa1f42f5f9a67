/* SPDX-License-Identifier: Apache-2.0 */
/* Times of /ingest. The server takes what it does not understand for now; here that is an error.
 * Pure functions; any thread. */
#include "src/pyroscope/ingest_time.h"

#include "src/clock.h"

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

/* Blanks, commas and underscores do not count. */
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

static bool read_number(const char **at, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *begin = *at;
    assert(ret_number != NULL);
    for (; **at >= '0' && **at <= '9'; (*at)++)
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(**at - '0'), &number))
            return false;
    *ret_number = number;
    return *at > begin;
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

/* "1h30min" in nanoseconds. */
static bool read_offset(const char *at, uint64_t *ret_ns)
{
    uint64_t total = 0;
    assert(at != NULL);
    while (*at != '\0') {
        uint64_t number;
        if (!read_number(&at, &number))
            return false;
        uint64_t seconds = unit_seconds(at);
        if (seconds == 0 || __builtin_mul_overflow(number, seconds, &number) ||
            __builtin_mul_overflow(number, (uint64_t)NS_PER_S, &number) ||
            __builtin_add_overflow(total, number, &total))
            return false;
        while (*at != '\0' && (*at < '0' || *at > '9'))
            at++;
    }
    *ret_ns = total;
    return true;
}

/* Of seconds, as scripts compute them; or nothing. */
static bool is_fraction(const char *at)
{
    assert(at != NULL);
    return *at == '\0' || (*at == '.' && strspn(at + 1, "0123456789") == strlen(at + 1));
}

bool ingest_time_parse(struct slice text, uint64_t now_ns, uint64_t *ret_ns)
{
    char room[TEXT_MAX];
    uint64_t number;
    assert(ret_ns != NULL);
    if (!clean(text, room))
        return false;
    const char *at = room;
    if (*at >= '0' && *at <= '9') {
        bool is_number = read_number(&at, &number);
        size_t digits = (size_t)(at - room);
        return is_number && is_fraction(at) && number_to_ns(digits, number, ret_ns);
    }
    size_t reference = strcspn(room, "+-");
    if (reference > 0 && (reference != 3 || strncmp(room, "now", 3) != 0))
        return false;
    char sign = room[reference];
    if (!read_offset(sign == '\0' ? "" : room + reference + 1, &number))
        return false;
    if (sign == '-' ? number > now_ns : number > INT64_MAX - now_ns)
        return false;
    *ret_ns = sign == '-' ? now_ns - number : now_ns + number;
    return true;
}
