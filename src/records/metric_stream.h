/* SPDX-License-Identifier: Apache-2.0 */
/* What tells metric streams apart: the resource's attributes, the scope, the metric, the point's
 * attributes. Each part is read once. One per thread. */
#pragma once

#include "src/otlp/attributes/attribute_list.h"
#include "src/otlp/metrics/metric_reader.h"
#include "src/records/identity.h"
#include "src/records/record_edit.h"

struct budget;

/* Messages of fewer bytes than that are not looked at to see what their attributes need: it is
 * below about a hundred times as many. */
enum { METRIC_STREAM_SMALL_BYTES = 512 };

struct metric_stream {
    struct identity identity;
    struct attribute_list list;
    uint64_t seed;
    uint64_t owner; /* set by the user: the pipeline, each of which has streams of its own */
    bool uses_scope_attributes;
    struct identity_digest resource;
    struct identity_digest scope;
    struct identity_digest metric;
};

/* Memory is charged to the budget, beyond its limit if need be: whoever remembers what it has seen
 * cannot be refused in the middle of a request. metric_stream_needs says before how much it is. */
void metric_stream_init(struct metric_stream *stream, uint64_t seed, bool uses_scope_attributes,
                        struct budget *budget);
void metric_stream_fini(struct metric_stream *stream);
/* What a data point of an exponential histogram takes, its own bytes apart. */
struct exponential_needs {
    uint64_t sum_bytes; /* as of metric_values_bytes_max */
    uint64_t work;      /* bytes that are read and written at most */
};
/* What a request takes whose data points are read, changed and put (metric_values.h), each with its
 * stream. */
void metric_stream_needs(const struct metric_stream *stream, struct slice request,
                         const struct exponential_needs *exponential,
                         struct record_needs *ret_needs);
/* Frees what a request needed. */
void metric_stream_clear(struct metric_stream *stream);
/* As the visitor's enter. */
void metric_stream_enter(struct metric_stream *stream, struct record_edit *edit,
                         enum record_level level, struct slice content);
/* The metric at hand, with numbers that the owner wants to tell apart. */
void metric_stream_enter_metric(struct metric_stream *stream, const struct metric *metric);
/* The data point's stream; start_ns and kind are the owner's to tell streams apart, too. False: no
 * memory, and edit->has_failed is set. */
bool metric_stream_of_point(struct metric_stream *stream, struct record_edit *edit,
                            enum metric_kind kind, struct slice point, uint64_t start_ns,
                            uint64_t number, struct identity_digest *ret_key);
