/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of one data point of a sum or a histogram, decoded, changed and put back
 * (opentelemetry/proto/metrics/v1/metrics.proto). Attributes, exemplars and flags stay as they are.
 * One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/otlp/metrics/metric_reader.h"

struct arena;
struct budget;
struct record_edit;
struct wire_field;

enum metric_number { METRIC_NO_NUMBER, METRIC_INTEGER, METRIC_REAL };

struct metric_buckets {
    int32_t offset;
    size_t count;
    uint64_t *counts;
};

struct metric_values {
    enum metric_kind kind;
    uint64_t start_ns;
    uint64_t time_ns;
    bool is_absent; /* flag "no recorded value" */
    size_t fields;  /* of the message */
    /* Sums. */
    enum metric_number number;
    int64_t integer;
    double real;
    /* Histograms. */
    uint64_t count;
    bool has_sum;
    bool has_min;
    bool has_max;
    double sum; /* 0 without one */
    double min;
    double max;
    size_t counts_count;
    uint64_t *counts;
    size_t bounds_count;
    double *bounds;
    /* Exponential histograms. */
    int32_t scale;
    uint64_t zero_count;
    double zero_threshold;
    struct metric_buckets positive;
    struct metric_buckets negative;
};

/* An arena for the values of one data point after another. It is charged to the budget, beyond its
 * limit if need be: metric_values_bytes_max says before how much it is. */
void metric_values_arena_init(struct arena *arena, struct budget *budget);
/* Before each data point: frees what others took, unless it is little. */
void metric_values_next(struct arena *arena);
/* What the arena takes at most for a data point of so many bytes: for its values, a copy of their
 * arrays, and what metric_values_put writes. sum_bytes: the same for the sum that a point of an
 * exponential histogram is added to, in place of the copy; 0: there is none. */
uint64_t metric_values_bytes_max(enum metric_kind kind, uint64_t point_bytes, uint64_t sum_bytes);
/* Arrays are in the arena. False: it has no room. */
bool metric_values_read(struct arena *arena, enum metric_kind kind, struct slice bytes,
                        struct metric_values *ret_values);
/* Gives the data point these numbers. False: the arena or the edit has no room, and nothing is
 * changed. */
bool metric_values_put(struct record_edit *edit, struct arena *arena,
                       const struct metric_values *values, const struct wire_field *point);
