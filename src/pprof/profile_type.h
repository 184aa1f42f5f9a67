/* SPDX-License-Identifier: Apache-2.0 */
/* The names under which Pyroscope, its clients and its dashboards know each kind of profile. Pure
 * functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/slice.h"

enum { PROFILE_TYPE_TEXT_MAX = 128 };

/* As a profile says it. */
struct profile_type_texts {
    struct slice type;
    struct slice unit;
    struct slice period_type;
    struct slice period_unit;
};

/* As Pyroscope wants it: name is the label __name__. Texts are terminated. */
struct profile_type {
    char name[PROFILE_TYPE_TEXT_MAX];
    char type[PROFILE_TYPE_TEXT_MAX];
    char unit[PROFILE_TYPE_TEXT_MAX];
    char period_type[PROFILE_TYPE_TEXT_MAX];
    char period_unit[PROFILE_TYPE_TEXT_MAX];
    bool counts_periods; /* values are to be multiplied by the period */
};

/* has_time_beside: the same measurement comes as cpu time too, so that a count of samples stays
 * one. What the table does not know keeps its words, in letters that every server takes. */
struct profile_type profile_type_canonical(const struct profile_type_texts *texts, bool has_period,
                                           bool has_time_beside);
/* Everything as it came, without a name. */
struct profile_type profile_type_plain(const struct profile_type_texts *texts);
/* Is this cpu time itself? For has_time_beside. */
bool profile_type_is_cpu_time(struct slice type, struct slice unit);
