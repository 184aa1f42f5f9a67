/* SPDX-License-Identifier: Apache-2.0 */
/* Reports as text in columns, for terminals. Main thread of a command. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct profile_file;
struct report;
struct report_type;

/* Limits of what is printed. */
struct report_scope {
    const struct report_type *type; /* only that one; NULL: all */
    size_t rows_max;                /* of each table; 0: all */
};

static inline size_t report_rows(size_t count, size_t rows_max)
{
    return rows_max > 0 && count > rows_max ? rows_max : count;
}

void profile_table_show(FILE *out, const struct profile_file *file, const struct report *report,
                        struct report_scope scope);
/* scope.type, if set, is from `before`, or from `after` if only that has it. */
void profile_table_diff(FILE *out, const struct report *before, const struct report *after,
                        struct report_scope scope);

/* Links by descending number of samples; free with mem_free. Index 0 is not a link. */
uint32_t *report_links_ranked(const struct report *report, size_t *ret_count);
