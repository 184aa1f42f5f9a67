/* SPDX-License-Identifier: Apache-2.0 */
/* The pipelines as JSON with ten minutes of history: every PICTURE_INTERVAL_NS the totals of each
 * component are noted. On lane 0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/base/timer.h"

struct buffer;
struct component;

enum { PICTURE_SAMPLES = 60, PICTURE_NODES_MAX = 256, PICTURE_SERIES = 5 };

struct picture_history {
    char *node; /* NULL: not met yet */
    uint64_t values[PICTURE_SERIES][PICTURE_SAMPLES + 1];
};

struct explore_picture {
    struct component *component;
    struct timer timer;
    uint64_t taken; /* samples so far */
    size_t count;
    struct picture_history *history; /* of the first PICTURE_NODES_MAX nodes, in their order */
};

/* Notes from now on. */
void explore_picture_start(struct explore_picture *picture, struct component *component);
/* What was noted stays, for questions that still come while the server stops. */
void explore_picture_stop(struct explore_picture *picture);
/* After _stop, or where it was never started. */
void explore_picture_fini(struct explore_picture *picture);
/* The JSON: the caller's; NULL: no memory. */
struct buffer *explore_picture_write(const struct explore_picture *picture);
/* The same of one node's counters and lines of YAML. *ret_is_known: there is such a node. */
struct buffer *explore_picture_detail(const struct explore_picture *picture, struct slice node,
                                      bool *ret_is_known);
