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
#include "connectors/span_metrics/span_labels.h"
#include "connectors/span_metrics/span_series.h"
#include "src/otlp/nested_output.h"
#include "src/otlp/wire.h"

struct budget;
struct config_texts;

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

/* The last resource, which the next request has nearly always, too. */
enum { KNOWN_RESOURCE_BYTES_MAX = 4096 };
struct known_resource {
    struct slice message; /* in bytes, or in the request if it is longer; no data: none */
    bool has_service;     /* service.name is there */
    struct slice service; /* "" unless it is a string, and a label */
    struct text_hash key;
    struct text_hash origin; /* of the resource and its service, in keys of series */
    uint8_t bytes[KNOWN_RESOURCE_BYTES_MAX];
};

struct span_aggregation {
    const struct aggregation_settings *settings;
    struct series_store *store;
    struct budget *budget;
    uint64_t lost; /* spans for which there was no memory at all */
    /* In the piece at hand: */
    unsigned work; /* spans, events and attributes of resources */
    size_t copied; /* bytes of labels, and as many as take as long as keys */
    bool is_full;  /* no memory for another series while this request is added */
    /* The request, and where it goes on. */
    struct series_time time;
    struct wire_reader request;
    struct wire_reader resource_spans;
    struct wire_reader scope_spans;
    struct wire_reader events; /* of the present span */
    struct series_resource *resource;
    struct text_hash origin;     /* of the resource and the service's name, in keys */
    struct series_labels labels; /* of the present span … */
    struct label_text name;      /* … and its name in keys */
    struct slice scope_name;
    struct slice scope_version;
    struct adjusted_count adjusted;
    uint64_t times; /* spans that the present one stands for */
    double duration;
    struct point_exemplar exemplar;
    bool has_exemplar;
    /* Reused. */
    struct span_labels picker;
    struct known_resource *known;
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
/* True: a piece of a millisecond or two was taken, of this request and those that ended before in
 * the same piece, and there may be more. False: all of it was taken. Meanwhile the store stays the
 * same one, and keeps the resource that the aggregation is at. */
bool span_aggregation_go_on(struct span_aggregation *aggregation);
