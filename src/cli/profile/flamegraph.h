/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph as one self-contained SVG file: a browser can search and zoom it by the script
 * inside, other viewers show a picture. Main thread of a command. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "src/base/slice.h"

struct report;
struct report_type;

struct flamegraph {
    const struct report *report;
    const struct report_type *type;
    struct slice title;
};

/* False: no stack has a positive value; nothing is written. */
bool flamegraph_write(FILE *out, const struct flamegraph *graph);
