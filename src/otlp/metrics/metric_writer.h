/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an ExportMetricsServiceRequest (opentelemetry/proto/metrics/v1/metrics.proto) as bytes,
 * from the outside in: resource, scope, metric, data points. What is open closes by itself when the
 * next of its level begins, and at the end. All bytes are charged to the budget as they are
 * written; after a refusal nothing more is written, and metric_writer_finish reports it. One owner,
 * one thread.
 *
 * A request has no bound of its own: its writer looks at metric_writer_size and finishes it in time
 * (METRIC_REQUEST_BYTES).
 *
 *     metric_writer_begin_resource(&writer, attributes);
 *     metric_writer_begin_scope(&writer, "my connector", "");
 *     metric_writer_begin_metric(&writer, &(struct metric_head){.name = …, .kind = METRIC_SUM, …});
 *     metric_writer_put_integer(&writer, &(struct point_head){.time_ns = now, …}, 17);
 *     struct batch *batch = metric_writer_finish(&writer);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/otlp/metrics/metric_reader.h"
#include "src/otlp/nested_output.h"

struct batch;
struct budget;
struct exponential_histogram;

/* A request of more bytes should be finished, and the rest written into another: it would hold the
 * lane, and back-ends refuse messages above 4 MiB. */
enum { METRIC_REQUEST_BYTES = 1 << 20 };

struct metric_writer {
    struct nested_output output;
    struct nested_message resource; /* begin is 0: it is not open */
    struct nested_message scope;
    struct nested_message metric;
    struct nested_message data; /* the Gauge, Sum or the like */
    enum metric_kind kind;      /* of data */
    uint64_t points;
    size_t closed_size; /* of output when a resource ended for the first time since a mark; or 0 */
};

/* budget may be NULL: not charged. */
void metric_writer_init(struct metric_writer *writer, struct budget *budget);
/* What was not finished is lost. */
void metric_writer_fini(struct metric_writer *writer);
/* Bytes written so far. */
size_t metric_writer_size(const struct metric_writer *writer);
/* Ends the request. Returns its batch, with one reference, its data points being the items; NULL:
 * the budget or the allocator refused bytes of it, and the whole request is lost. The writer is
 * empty then, ready for the next. */
struct batch *metric_writer_finish(struct metric_writer *writer)
    __attribute__((warn_unused_result));

/* To take back what was put since _mark: when it was refused, so that the rest can be finished, or
 * when it has become too much. */
struct metric_writer_mark {
    struct metric_writer writer;
    size_t size;
};
/* Ends the open metric. */
struct metric_writer_mark metric_writer_mark(struct metric_writer *writer);
/* A resource that was open at the mark and has ended since stays ended. */
void metric_writer_undo(struct metric_writer *writer, const struct metric_writer_mark *mark);
/* False: bytes were refused since the last mark or the beginning. True: nothing more is needed to
 * finish the request. */
bool metric_writer_is_whole(struct metric_writer *writer);

/* attributes: encoded KeyValues, each as field 1 (as in Resource); see metric_attribute_put_…. */
void metric_writer_begin_resource(struct metric_writer *writer, struct slice attributes);
void metric_writer_begin_scope(struct metric_writer *writer, struct slice name,
                               struct slice version);

struct metric_head {
    struct slice name;
    struct slice description;
    struct slice unit;
    enum metric_kind kind;               /* gauge, sum, histogram or exponential histogram */
    enum metric_temporality temporality; /* gauges: none */
    bool is_monotonic;                   /* sums */
};

void metric_writer_begin_metric(struct metric_writer *writer, const struct metric_head *head);

struct point_exemplar {
    struct slice attributes; /* filtered ones, as for resources */
    uint64_t time_ns;
    double value;
    uint8_t trace_id[16]; /* all zero: none */
    uint8_t span_id[8];
};

/* What all kinds of data points have. */
struct point_head {
    struct slice attributes; /* as for resources */
    uint64_t start_ns;       /* Unix time; 0: unknown, and not written */
    uint64_t time_ns;
    const struct point_exemplar *exemplars;
    size_t exemplars_count;
};

/* Data points of the open metric, of its kind: gauge or sum … */
void metric_writer_put_integer(struct metric_writer *writer, const struct point_head *head,
                               int64_t value);
void metric_writer_put_double(struct metric_writer *writer, const struct point_head *head,
                              double value);

/* Borrows the arrays: bounds_count bounds, one more count. */
struct histogram_value {
    uint64_t count;
    double sum;
    const double *bounds;
    const uint64_t *counts;
    size_t bounds_count;
};

/* … histogram … */
void metric_writer_put_histogram(struct metric_writer *writer, const struct point_head *head,
                                 const struct histogram_value *value);
/* … or exponential histogram. */
void metric_writer_put_exponential(struct metric_writer *writer, const struct point_head *head,
                                   const struct exponential_histogram *histogram);

/* Write one KeyValue as field 1, for the attributes above. */
void metric_attribute_put_string(struct nested_output *output, struct slice key, struct slice text);
void metric_attribute_put_bool(struct nested_output *output, struct slice key, bool value);
/* value: an encoded AnyValue; empty: the empty value. */
void metric_attribute_put_value(struct nested_output *output, struct slice key, struct slice value);
