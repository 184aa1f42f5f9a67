/* SPDX-License-Identifier: Apache-2.0 */
/* Days and dates of the proleptic Gregorian calendar. Pure functions; any thread. */
#pragma once

#include <stdint.h>

struct ottl_day {
    int64_t year;
    unsigned month;   /* from 1 */
    unsigned day;     /* from 1 */
    unsigned weekday; /* 0 is Sunday */
};

/* The date of a day, counted from 1970-01-01; and the day of a date, whose day may be beyond the
 * month's end. */
struct ottl_day ottl_day_of(int64_t days);
int64_t ottl_days_of(int64_t year, unsigned month, unsigned day);
