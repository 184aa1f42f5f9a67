/* SPDX-License-Identifier: Apache-2.0 */
/* Days are counted from 1 March of year 0, so that the leap day ends a year. Pure functions. */
#include "src/ottl/ottl_calendar.h"

enum {
    DAYS_PER_ERA = 146097, /* 400 years */
    DAYS_TO_1970 = 719468, /* from 1 March of year 0 */
    YEARS_PER_ERA = 400,
};

struct ottl_day ottl_day_of(int64_t days)
{
    int64_t weekday = (days + 4) % 7; /* 1970 began with a Thursday */
    days += DAYS_TO_1970;
    int64_t era = (days >= 0 ? days : days - (DAYS_PER_ERA - 1)) / DAYS_PER_ERA;
    unsigned of_era = (unsigned)(days - era * DAYS_PER_ERA);
    unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
    unsigned month = (5 * of_year + 2) / 153; /* from March */
    return (struct ottl_day){
        .year = (int64_t)year + era * YEARS_PER_ERA + (month >= 10),
        .month = month < 10 ? month + 3 : month - 9,
        .day = of_year - (153 * month + 2) / 5 + 1,
        .weekday = (unsigned)(weekday < 0 ? weekday + 7 : weekday),
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
