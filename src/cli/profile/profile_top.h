/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a value type, largest first, and the difference of two reports, function by
 * function. Free arrays with mem_free; strings belong to the reports. Main thread of a command. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct report;
struct report_type;

struct top_row {
    struct slice name;
    struct slice file;
    int64_t flat;
    int64_t cumulative;
};

/* By flat, then cumulative, then name. */
struct top_row *profile_top(const struct report *report, const struct report_type *type,
                            size_t *ret_count);

struct diff_row {
    struct slice name;
    struct slice file;
    int64_t flat_before;
    int64_t flat_after;
    int64_t cumulative_before;
    int64_t cumulative_after;
};

/* A value type in both reports; one side may lack it. */
struct diff_pair {
    const struct report *before;
    const struct report *after;
    const struct report_type *type_before;
    const struct report_type *type_after;
    size_t next; /* for profile_next_pair */
};

/* Iterates over the types of both reports, which are set before. False: the end. */
bool profile_next_pair(struct diff_pair *pair);
/* The side that knows the texts of the type. */
const struct report *profile_pair_report(const struct diff_pair *pair,
                                         const struct report_type **ret_type);
/* Functions that changed, by the size of the change: flat, then cumulative, then name. */
struct diff_row *profile_diff(const struct diff_pair *pair, size_t *ret_count);

/* after - before, saturating. */
int64_t profile_change(int64_t before, int64_t after);
