/* SPDX-License-Identifier: Apache-2.0 */
/* A page of metrics in Prometheus' text format (version 0.0.4): samples with the same name and
 * labels are summed over lanes. Built for one response, on the lane that responds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "src/base/counter.h"

struct metrics;

struct metrics_style {
    bool has_type_suffix; /* "_total" behind sums */
    bool has_units;       /* "_seconds", "_bytes" behind names that lack them */
};

/* One label set in sorted order; values are escaped when printed. Ends at the first label without
 * key. */
enum { METRIC_LABELS_MAX = 6 };
struct metric_labels {
    struct {
        const char *key;
        const char *value;
    } pairs[METRIC_LABELS_MAX];
};

/* An empty page for this level. */
struct metrics *metrics_create(enum metrics_level level);
void metrics_destroy(struct metrics *metrics);
/* Whether the page shows metrics of this level. */
bool metrics_shows(const struct metrics *metrics, enum metrics_level level);
/* name and help have static lifetime. */
void metrics_add(struct metrics *metrics, const char *name, enum counter_type type,
                 const char *help, const struct metric_labels *labels, double value);
/* All rows of a component's counters; the labels come before the row's own. signal: of the
 * instance, -1: all of the row. */
void metrics_add_counters(struct metrics *metrics, const struct counter_row *rows,
                          const void *counters, const struct metric_labels *labels, int signal);
/* Sorted by name; each name once with its help and type. */
void metrics_print(struct metrics *metrics, const struct metrics_style *style, FILE *out);
