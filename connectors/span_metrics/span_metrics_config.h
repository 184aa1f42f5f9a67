/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of span_metrics, as in the Go collector's spanmetricsconnector, and `naming`. Immutable,
 * shared by all lanes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/config/field.h"

struct error;

struct dimension_config {
    const char *name;                    /* either this … */
    const char *glob;                    /* … or this */
    const struct config_value *standard; /* text; NULL or null: none */
};

struct explicit_config {
    const struct config_value *buckets; /* a list of durations; NULL: none */
};

struct exponential_config {
    int64_t max_size; /* 0: the default; others are brought into range */
};

enum duration_unit { UNIT_MS, UNIT_S };
enum naming { NAMING_OPENTELEMETRY, NAMING_TEMPO };

struct histogram_config {
    bool disable;
    int unit; /* enum duration_unit */
    bool has_explicit;
    struct explicit_config explicit;
    bool has_exponential;
    struct exponential_config exponential;
    struct config_sections dimensions; /* struct dimension_config */
};

struct exemplars_config {
    bool enabled;
    int64_t max_per_data_point;
};

struct events_config {
    bool enabled;
    struct config_sections dimensions; /* struct dimension_config */
};

struct span_metrics_config {
    struct config_sections dimensions; /* struct dimension_config */
    struct config_sections calls_dimensions;
    struct config_texts exclude_dimensions;
    int64_t dimensions_cache_size;
    int64_t resource_metrics_cache_size;
    struct config_texts resource_metrics_key_attributes;
    const char *aggregation_temporality;
    struct histogram_config histogram;
    uint64_t metrics_flush_interval_ns;
    uint64_t metrics_expiration_ns; /* 0: never */
    uint64_t series_expiration_ns;  /* 0: never */
    int64_t metric_timestamp_cache_size;
    const char *name_space;
    struct exemplars_config exemplars;
    struct events_config events;
    struct config_texts include_instrumentation_scope;
    int64_t aggregation_cardinality_limit; /* 0: none */
    bool add_resource_attributes;
    bool enable_metrics_sampling_method;
    int naming; /* enum naming */
};

#define SPAN_METRICS_NAMESPACE "traces.span.metrics"
enum { NAMESPACE_BYTES_MAX = 1024 };

extern const struct config_field span_metrics_fields[];

bool span_metrics_check(const void *section, struct error *error);
bool span_metrics_is_delta(const struct span_metrics_config *config);
/* The bounds of the explicit histogram, in its unit; freed by the caller. *ret_count may be 0. */
double *span_metrics_bounds(const struct span_metrics_config *config, size_t *ret_count);
