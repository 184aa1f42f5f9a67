/* SPDX-License-Identifier: Apache-2.0 */
/* Reads metrics and data points of an encoded ExportMetricsServiceRequest (opentelemetry/proto/
 * metrics/v1/metrics.proto) that was checked before. Allocates nothing; everything borrows from the
 * request. Of a field that occurs more than once the last counts. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/otlp/wire.h"

/* The field of Metric that holds the data. */
enum metric_kind {
    METRIC_NONE = 0,
    METRIC_GAUGE = 5,
    METRIC_SUM = 7,
    METRIC_HISTOGRAM = 9,
    METRIC_EXPONENTIAL = 10,
    METRIC_SUMMARY = 11,
};

enum metric_temporality {
    TEMPORALITY_UNSPECIFIED = 0,
    TEMPORALITY_DELTA = 1,
    TEMPORALITY_CUMULATIVE = 2,
};

struct metric {
    struct slice name;
    struct slice description;
    struct slice unit;
    enum metric_kind kind;
    uint64_t temporality; /* enum metric_temporality, or a number of a later version */
    bool is_monotonic;
    struct slice data; /* the encoded Gauge, Sum or the like */
};

struct metric metric_read(struct slice bytes);

/* One data point of any kind; what its kind does not have is zero. */
struct metric_point {
    enum metric_kind kind;
    struct slice bytes;
    uint64_t start_ns; /* Unix time; 0: unknown */
    uint64_t time_ns;
    bool is_absent; /* flag "no recorded value" */
    bool is_integer;
    int64_t integer; /* gauges and sums: as_int … */
    double real;     /* … or as_double */
    uint64_t count;
    double sum;
    bool has_sum;
    int32_t scale; /* exponential histograms */
    uint64_t zero_count;
    double zero_threshold;
    struct slice positive; /* encoded Buckets */
    struct slice negative;
};

struct metric_point metric_point_read(enum metric_kind kind, struct slice bytes);
/* As a number of the other type, 0, as in the Go collector. */
double metric_point_value(const struct metric_point *point);
/* Numbers of the fields with attributes, and with exemplars (0: none). */
uint32_t metric_point_attributes(enum metric_kind kind);
uint32_t metric_point_exemplars(enum metric_kind kind);

struct metric_exemplar {
    uint64_t time_ns;
    double value;
    bool has_value;        /* without one the Go collector takes time_ns for 0, too */
    struct slice trace_id; /* 16 bytes, or none */
    struct slice span_id;  /* 8 bytes, or none */
};

struct metric_exemplar metric_exemplar_read(struct slice bytes);

struct metric_quantile {
    double quantile;
    double value;
};

struct metric_quantile metric_quantile_read(struct slice bytes);

/* Buckets of an exponential histogram: the index of the first, and an iterator over the counts. */
int32_t metric_buckets_offset(struct slice buckets);

/* Iterates over the occurrences of a repeated message, which data points, attributes and so on
 * are. */
struct metric_items {
    struct wire_reader reader;
    uint32_t number;
};

struct metric_items metric_items_of(struct slice message, uint32_t number);
bool metric_items_next(struct metric_items *items, struct slice *ret_bytes);

/* Iterates over the elements of a repeated number, packed or not: fixed64, or varints. */
struct metric_numbers {
    struct wire_reader fields;
    struct wire_reader packed;
    uint32_t number;
    bool is_varint;
};

/* Histograms: bucket counts, explicit bounds (doubles as bits). Buckets: counts. */
struct metric_numbers metric_counts(const struct metric_point *histogram);
struct metric_numbers metric_bounds(const struct metric_point *histogram);
struct metric_numbers metric_buckets_counts(struct slice buckets);
bool metric_numbers_next(struct metric_numbers *numbers, uint64_t *ret_value);
size_t metric_numbers_count(struct metric_numbers numbers);
