/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded metrics (opentelemetry/proto/metrics/v1/metrics.proto), as the functions that make
 * metrics read and write them. What is made is in the record's memory. Runs on the processor's
 * thread. */
#pragma once

#include <string.h>

#include "src/otlp/metrics/metric_reader.h"
#include "src/otlp/wire.h"
#include "src/ottl/ottl_function.h"

/* Fields of Metric; of Gauge, Sum and the others; of all data points; of NumberDataPoint. */
enum { METRIC_NAME = 1, METRIC_DESCRIPTION = 2, METRIC_UNIT = 3 };
enum { DATA_POINTS = 1, DATA_TEMPORALITY = 2, DATA_IS_MONOTONIC = 3 };
enum { POINT_START = 2, POINT_TIME = 3 };
enum { NUMBER_AS_DOUBLE = 4, NUMBER_AS_INT = 6, NUMBER_ATTRIBUTES = 7 };

/* Bytes that a field has beside its content, and that a point of one number has beside its
 * attributes, at most. */
enum { METRIC_HEADER_MAX = 16, NUMBER_POINT_MAX = 64 };

static inline uint64_t double_bits(double real)
{
    uint64_t bits;
    memcpy(&bits, &real, sizeof(bits));
    return bits;
}

static inline double double_of_bits(uint64_t bits)
{
    double real;
    memcpy(&real, &bits, sizeof(real));
    return real;
}

/* "Gauge", "Sum" …, as Go's MetricType prints them. */
const char *metric_kind_name(enum metric_kind kind);

/* These return false, or no data, when memory is refused: the error is set. */
bool metric_room(struct ottl_call *call, size_t bytes, struct wire_writer *ret);
/* The metric that the statements run on, with their changes. */
bool metric_read_current(struct ottl_call *call, struct slice *ret_bytes,
                         struct metric *ret_metric);
/* One text behind the other. */
struct slice metric_joined(struct ottl_call *call, struct slice first, struct slice second);
/* A metric of name, description, unit and one data message. */
bool metric_write(struct ottl_call *call, const struct metric *metric, enum metric_kind kind,
                  struct slice data, struct slice *ret);

/* These write into room that the caller has measured. */
void metric_put_sum_fields(struct wire_writer *writer, uint64_t temporality, bool is_monotonic);
/* The room that a point's attributes take in a NumberDataPoint. */
size_t metric_attributes_size(struct slice point, uint32_t number);
/* A NumberDataPoint with the attributes and times of another point; value: the bits of field
 * `number`, NUMBER_AS_DOUBLE or _INT; extra: more fields of it. */
void metric_put_number(struct wire_writer *writer, const struct metric_point *point,
                       uint32_t number, uint64_t value, struct slice extra);
