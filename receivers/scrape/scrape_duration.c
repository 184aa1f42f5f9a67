/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus's durations. Pure functions. */
#include "receivers/scrape/scrape_duration.h"

#include "src/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *unit;
    uint64_t ms;
    bool is_exact; /* printed only when nothing is left */
} duration_units[] = {
    {"y", (uint64_t)365 * 24 * 3600 * 1000, true},
    {"w", (uint64_t)7 * 24 * 3600 * 1000, true},
    {"d", (uint64_t)24 * 3600 * 1000, false},
    {"h", (uint64_t)3600 * 1000, false},
    {"m", (uint64_t)60 * 1000, false},
    {"s", 1000, false},
    {"ms", 1, false},
};
enum { DURATION_UNITS = sizeof(duration_units) / sizeof(duration_units[0]) };

bool scrape_duration_parse(const char *text, uint64_t *ret_ns)
{
    *ret_ns = 0;
    if (strcmp(text, "0") == 0)
        return true;
    size_t unit = 0;
    uint64_t ms = 0;
    const char *at = text;
    while (*at != '\0') {
        size_t digits = strspn(at, "0123456789");
        size_t letters = strspn(at + digits, "abcdefghijklmnopqrstuvwxyz");
        if (digits == 0 || digits > 18 || letters == 0)
            return false;
        while (unit < DURATION_UNITS &&
               (strlen(duration_units[unit].unit) != letters ||
                strncmp(duration_units[unit].unit, at + digits, letters) != 0))
            unit++;
        uint64_t part;
        if (unit == DURATION_UNITS ||
            __builtin_mul_overflow(strtoull(at, NULL, 10), duration_units[unit].ms, &part) ||
            __builtin_add_overflow(ms, part, &ms))
            return false;
        unit++; /* each unit once, in descending order */
        at += digits + letters;
    }
    if (at == text || ms > INT64_MAX / NS_PER_MS)
        return false;
    *ret_ns = ms * NS_PER_MS;
    return true;
}

void scrape_duration_print(uint64_t duration_ns, char text[SCRAPE_DURATION_BYTES_MAX])
{
    uint64_t ms = duration_ns / NS_PER_MS;
    size_t size = 0;
    snprintf(text, SCRAPE_DURATION_BYTES_MAX, "0s");
    for (size_t i = 0; i < DURATION_UNITS; i++) {
        uint64_t unit = duration_units[i].ms;
        if (ms < unit || (duration_units[i].is_exact && ms % unit != 0))
            continue;
        size += (size_t)snprintf(text + size, SCRAPE_DURATION_BYTES_MAX - size, "%llu%s",
                                 (unsigned long long)(ms / unit), duration_units[i].unit);
        ms %= unit;
    }
}
