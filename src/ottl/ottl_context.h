/* SPDX-License-Identifier: Apache-2.0 */
/* The contexts of OTTL, each with its paths and enums (contrib 0.155, pkg/ottl/contexts).
 * Constants. */
#pragma once

#include "src/ottl/ottl_value.h"

struct ottl_path;
struct ottl_run;

enum ottl_context {
    OTTL_RESOURCE,
    OTTL_SCOPE,
    OTTL_SPAN,
    OTTL_SPAN_EVENT,
    OTTL_METRIC,
    OTTL_DATA_POINT,
    OTTL_EXEMPLAR,
    OTTL_LOG,
    OTTL_PROFILE,
    OTTL_PROFILE_SAMPLE,
    OTTL_OTELCOL,
    OTTL_METRIC_DATA, /* no context: a metric's Gauge, Sum or the like, as a record of its own */
    OTTL_CONTEXTS,
};

#define OTTL_CONTEXT_BIT(context) (1u << (context))

/* Which data a metric has; pmetric.MetricType. */
enum ottl_metric_data {
    OTTL_NO_DATA,
    OTTL_GAUGE,
    OTTL_SUM,
    OTTL_HISTOGRAM,
    OTTL_EXPONENTIAL_HISTOGRAM,
    OTTL_SUMMARY,
};
/* The field of Metric that has it. */
enum { OTTL_METRIC_DATA_FIELD_MAX = 11 };

struct ottl_path_row {
    const char *name; /* with points: "status.code" */
    /* Without the path's keys, unless takes_keys. False: the run's error is set. */
    bool (*get)(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret);
    bool (*set)(struct ottl_run *run, const struct ottl_path *path, const struct ottl_value *value);
    uint8_t field;      /* of the record: the number in its message; OTTL_ANY_FIELD: it differs;
                           OTTL_NO_FIELD: none that is noted */
    uint8_t takes_keys; /* true: any number; OTTL_ONE_KEY: none or one; and OTTL_COPY, _SHARED */
};

enum { OTTL_ANY_FIELD = 255, OTTL_NO_FIELD = 254, OTTL_ONE_KEY = 2 };
/* Changes to a map or list that get gave are lost unless it is set. */
enum { OTTL_COPY = 4 };
/* A text of the dictionary of profiles, which any number of them may name. */
enum { OTTL_SHARED = 8 };

struct ottl_enum {
    const char *name;
    int64_t value;
};

struct ottl_context_type {
    const char *name;
    unsigned reaches;                 /* contexts that paths may name, itself too */
    const struct ottl_path_row *rows; /* ended by a row without a name; "cache" belongs to all */
    const struct ottl_enum *enums;    /* ended by a row without a name; NULL: none */
    uint8_t attributes;               /* the field that repeats KeyValues; 0: none */
    uint8_t body;                     /* the field that is an AnyValue; 0: none */
};

/* NULL: not built in. */
const struct ottl_context_type *ottl_context_type(enum ottl_context context);
/* By its name in a path, "instrumentation_scope" being the scope; OTTL_CONTEXTS: no such. */
enum ottl_context ottl_context_find(struct slice name);
