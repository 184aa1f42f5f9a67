/* SPDX-License-Identifier: Apache-2.0 */
/* Moments and dates. Pure functions. */
#pragma once

#include "src/ottl/ottl_value.h"

/* A date of the proleptic Gregorian calendar and the time of that day, in the value's zone. */
struct ottl_date {
    int64_t year;
    unsigned month;   /* from 1 */
    unsigned day;     /* from 1 */
    unsigned weekday; /* 0 is Sunday */
    unsigned hour;
    unsigned minute;
    unsigned second;
    unsigned nanosecond;
};

struct ottl_date ottl_date_of(const struct ottl_value *time);
/* encoding/json's form of a time: RFC 3339 with nanoseconds, in quotation marks. Returns the size.
 */
size_t ottl_time_to_json(const struct ottl_value *time, char *room, size_t bytes);
