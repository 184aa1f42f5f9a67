/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions that choose metrics by their data points, as match_type: expr of the Go collector's
 * filter has them (contrib 0.155, internal/filter/filterexpr, over expr-lang 1.17):
 *
 *     MetricName startsWith "http." and not (Label("route") matches "^/internal" or HasLabel("a"))
 *
 * A subset of that language: its operators that give booleans, strings, whole numbers, lists after
 * `in`, and the functions Label, HasLabel, len, lower and upper. Whatever else it has is refused by
 * create, and so is what could never give a boolean. Compiled ones are immutable; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"
#include "src/otlp/metrics/metric_reader.h"

struct arena;
struct attribute_list;
struct error;
struct metric_expression;

/* NULL: text is no such expression; error has the column and the reason. */
struct metric_expression *metric_expression_create(const char *text, struct error *error);
/* NULL is a no-op. */
void metric_expression_destroy(struct metric_expression *expression);
/* Whether it looks at labels, the attributes of data points. */
bool metric_expression_needs_labels(const struct metric_expression *expression);
/* How often it may read the metric's name for a point. */
unsigned metric_expression_names(const struct metric_expression *expression);

struct metric_expression_point {
    struct slice name; /* of the metric */
    enum metric_kind kind;
    const struct attribute_list *labels; /* not used unless they are needed */
    struct arena *arena;                 /* of the labels: for values that are made meanwhile */
};
/* Whether it is true. Without room in the arena it is false, and the arena tells. */
bool metric_expression_takes(const struct metric_expression *expression,
                             const struct metric_expression_point *point);
