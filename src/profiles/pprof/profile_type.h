/* SPDX-License-Identifier: Apache-2.0 */
/* The names that Pyroscope, its clients and its dashboards use for each kind of profile. Pure
 * functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

enum { PROFILE_TYPE_TEXT_MAX = 128 };

/* The suffix of types that count samples once more, for other spans than their own. */
enum profile_type_end { PROFILE_OF_ROOT, PROFILE_OF_ANCESTORS, PROFILE_TYPE_ENDS };
extern const char *const profile_type_ends[PROFILE_TYPE_ENDS];
/* Bytes of the type without such a suffix. */
size_t profile_type_stem_bytes(struct slice type);

/* As in the profile. */
struct profile_type_texts {
    struct slice type;
    struct slice unit;
    struct slice period_type;
    struct slice period_unit;
};

/* As Pyroscope expects it: name is the label __name__. */
struct profile_type {
    char name[PROFILE_TYPE_TEXT_MAX];
    char type[PROFILE_TYPE_TEXT_MAX];
    char unit[PROFILE_TYPE_TEXT_MAX];
    char period_type[PROFILE_TYPE_TEXT_MAX];
    char period_unit[PROFILE_TYPE_TEXT_MAX];
    bool counts_periods; /* values must be multiplied by the period */
};

/* has_time_beside: the same measurement is also there as cpu time, so that a count of samples stays
 * a count. Types that the table does not list keep their names, in letters that every server
 * accepts. A suffix stays on the type alone: name and units are those of the profile without. */
struct profile_type profile_type_canonical(const struct profile_type_texts *texts, bool has_period,
                                           bool has_time_beside);
/* Everything unchanged, without a name. */
struct profile_type profile_type_plain(const struct profile_type_texts *texts);
/* Whether this is cpu time itself, for has_time_beside. */
bool profile_type_is_cpu_time(struct slice type, struct slice unit);
