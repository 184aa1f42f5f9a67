/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP API's answers (docs/explore.md) as plain tables. What is missing in them is left empty.
 * Main thread. */
#pragma once

#include <stdio.h>

#include "src/base/slice.h"

/* Of /traces, /traces/ID with its /rows, /services, /spans. */
void trace_table_list(FILE *out, struct slice answer);
void trace_table_show(FILE *out, struct slice trace, struct slice rows);
void trace_table_services(FILE *out, struct slice answer);
void trace_table_names(FILE *out, struct slice answer, size_t rows_max);
/* Of /flame and /diff; where there are no samples, why. rows_max 0: the usual number. */
void flame_table_top(FILE *out, struct slice answer, size_t rows_max);
void flame_table_tree(FILE *out, struct slice answer, size_t rows_max);
void flame_table_diff(FILE *out, struct slice answer, size_t rows_max);
