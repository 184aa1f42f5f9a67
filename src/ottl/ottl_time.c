/* SPDX-License-Identifier: Apache-2.0 */
/* Days are counted from 1 March of year 0, so that the leap day ends a year. Pure functions. */
#include "src/ottl/ottl_time.h"

#include <assert.h>
#include <stdio.h>

#include "src/ottl/ottl_zone.h"

enum {
    S_PER_DAY = 86400,
    DAYS_PER_ERA = 146097, /* 400 years */
    DAYS_TO_1970 = 719468, /* from 1 March of year 0 */
    YEARS_PER_ERA = 400,
};

struct ottl_date ottl_date_of(const struct ottl_value *time)
{
    int64_t local = (int64_t)((uint64_t)time->integer +
                              (uint64_t)ottl_zone_at(time->zone, time->integer).offset_s);
    int64_t days = local / S_PER_DAY;
    int64_t rest = local % S_PER_DAY;
    if (rest < 0) {
        rest += S_PER_DAY;
        days--;
    }
    int64_t weekday = (days + 4) % 7; /* 1970 began with a Thursday */
    days += DAYS_TO_1970;
    int64_t era = (days >= 0 ? days : days - (DAYS_PER_ERA - 1)) / DAYS_PER_ERA;
    unsigned of_era = (unsigned)(days - era * DAYS_PER_ERA);
    unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
    unsigned month = (5 * of_year + 2) / 153; /* from March */
    return (struct ottl_date){
        .year = (int64_t)year + era * YEARS_PER_ERA + (month >= 10),
        .month = month < 10 ? month + 3 : month - 9,
        .day = of_year - (153 * month + 2) / 5 + 1,
        .weekday = (unsigned)(weekday < 0 ? weekday + 7 : weekday),
        .hour = (unsigned)(rest / 3600),
        .minute = (unsigned)(rest / 60 % 60),
        .second = (unsigned)(rest % 60),
        .nanosecond = time->size,
    };
}

int64_t ottl_days_of(int64_t year, unsigned month, unsigned day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - (YEARS_PER_ERA - 1)) / YEARS_PER_ERA;
    unsigned of_era = (unsigned)(year - era * YEARS_PER_ERA);
    unsigned of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    unsigned days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    return era * DAYS_PER_ERA + days - DAYS_TO_1970;
}

size_t ottl_time_to_json(const struct ottl_value *time, char *room, size_t bytes)
{
    struct ottl_date date = ottl_date_of(time);
    char fraction[16] = "";
    if (date.nanosecond > 0) {
        size_t size = (size_t)snprintf(fraction, sizeof(fraction), ".%09u", date.nanosecond);
        while (fraction[size - 1] == '0')
            fraction[--size] = '\0';
    }
    char zone[16] = "Z";
    int32_t offset = ottl_zone_at(time->zone, time->integer).offset_s;
    unsigned minutes = (unsigned)(offset < 0 ? -offset : offset) / 60;
    if (offset != 0)
        snprintf(zone, sizeof(zone), "%c%02u:%02u", offset < 0 ? '-' : '+', minutes / 60,
                 minutes % 60);
    int size =
        snprintf(room, bytes, "\"%04lld-%02u-%02uT%02u:%02u:%02u%s%s\"", (long long)date.year,
                 date.month, date.day, date.hour, date.minute, date.second, fraction, zone);
    assert(size > 0 && (size_t)size < bytes);
    return (size_t)size;
}
