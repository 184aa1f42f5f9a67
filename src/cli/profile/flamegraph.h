/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph as one SVG file that needs nothing else: in a browser it is searched and zoomed by
 * a script inside, elsewhere it is a picture. Main thread of a command. */
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

/* False: there is nothing to draw, since no stack has a positive value; nothing is written. */
bool flamegraph_write(FILE *out, const struct flamegraph *graph);
