/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the spans of encoded ExportTraceServiceRequests, which were checked before, to a store of
 * series, a piece at a time. Copies nothing and allocates nothing for known series: their keys are
 * hashes of what lies in the request. Runs on the lane that owns the store. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connectors/span_metrics/adjusted_count.h"
#include "connectors/span_metrics/dimensions.h"
#include "connectors/span_metrics/span_series.h"
#include "src/otlp/nested_output.h"
#include "src/otlp/wire.h"

struct budget;
struct config_texts;

/* Attributes of a message at most that are looked at, and that are held against globs. */
enum { LABEL_ATTRIBUTES_MAX = 65536, GLOB_ATTRIBUTES_MAX = 1024 };

/* Immutable, shared by all lanes. */
struct aggregation_settings {
    const struct dimensions *dimensions;
    const struct config_texts *key_attributes; /* of resources; none: all */
    const struct config_texts *scopes;         /* whose names and versions become labels */
    bool has_service;                          /* they are labels */
    bool has_name;
    bool has_kind;
    bool has_status;
    bool has_histogram;
    bool has_common_labels; /* calls and durations have the same */
    bool has_events;
    bool has_exemplars;
    bool has_sampling_method;
    double unit_ns; /* of durations */
};

/* An attribute that becomes a label. */
struct picked_label {
    struct slice key;
    struct slice value; /* encoded AnyValue */
    struct text_hash hash;
    uint64_t tag; /* stands for the key in hashes */
    size_t place; /* among the matches of globs */
};

struct glob_matches {
    size_t count;
    size_t examined;
    struct picked_label items[GLOB_MATCHES_MAX];
};

/* What one message (resource, span, event) has for the dimensions. */
struct found_labels {
    struct picked_label *named; /* by name; without key: it has none */
    struct glob_matches *globs; /* by list; NULL: there are no globs */
};

enum label_source { LABELS_OF_SPAN, LABELS_OF_EVENT, LABELS_OF_RESOURCE, LABEL_SOURCES };

struct span_facts {
    struct slice name;
    struct slice trace_state;
    uint64_t start_ns;
    uint64_t end_ns;
    struct slice trace_id;
    struct slice span_id;
    uint64_t kind;
    uint64_t status;
    size_t attributes;
    bool has_events;
};

struct span_aggregation {
    const struct aggregation_settings *settings;
    struct series_store *store;
    struct budget *budget;
    uint64_t lost; /* spans for which there was no memory at all */
    bool is_full;  /* no memory for another series while this request is added */
    /* The request, and where it goes on. */
    struct series_time time;
    struct wire_reader request;
    struct wire_reader resource_spans;
    struct wire_reader scope_spans;
    struct wire_reader events; /* of the present span */
    struct series_resource *resource;
    struct text_hash service_hash;
    struct series_labels labels; /* of the present span */
    struct slice scope_name;
    struct slice scope_version;
    struct text_hash name_hash;
    struct adjusted_count adjusted;
    uint64_t times; /* spans that the present one stands for */
    double duration;
    struct point_exemplar exemplar;
    bool has_exemplar;
    /* Reused. */
    struct found_labels found[LABEL_SOURCES];
    struct picked_label *picked;
    size_t picked_count;
    uint64_t *words; /* of a key */
    struct nested_output others;
    uint8_t *trace_state; /* for which adjusted is */
    size_t trace_state_bytes;
};

void span_aggregation_init(struct span_aggregation *aggregation,
                           const struct aggregation_settings *settings, struct series_store *store,
                           struct budget *budget);
void span_aggregation_fini(struct span_aggregation *aggregation);
/* The request outlives its aggregation. */
void span_aggregation_begin(struct span_aggregation *aggregation, struct slice request,
                            struct series_time time);
/* A piece of a millisecond or two. False: all of it was taken. Meanwhile the store stays the same
 * one, and keeps the resource that the aggregation is at. */
bool span_aggregation_go_on(struct span_aggregation *aggregation);
