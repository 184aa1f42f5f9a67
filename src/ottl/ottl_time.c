/* SPDX-License-Identifier: Apache-2.0 */
/* Pure functions. */
#include "src/ottl/ottl_time.h"

#include <assert.h>
#include <stdio.h>

#include "src/ottl/ottl_calendar.h"
#include "src/ottl/ottl_zone.h"

enum { S_PER_DAY = 86400 };

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
    struct ottl_day day = ottl_day_of(days);
    return (struct ottl_date){
        .year = day.year,
        .month = day.month,
        .day = day.day,
        .weekday = day.weekday,
        .hour = (unsigned)(rest / 3600),
        .minute = (unsigned)(rest / 60 % 60),
        .second = (unsigned)(rest % 60),
        .nanosecond = time->size,
    };
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
