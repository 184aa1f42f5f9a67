/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the series of a store as requests of metrics, a piece at a time: one flush. What was
 * written into a request is settled with it: delta series are removed, exemplars cleared, expired
 * series and resources forgotten. While a flush is under way, the store may take spans. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connectors/span_metrics/delta_times.h"
#include "connectors/span_metrics/span_series.h"
#include "src/otlp/metrics/metric_writer.h"

struct batch;
struct budget;

struct export_settings {
    bool is_delta;
    bool has_events;
    bool has_resource; /* its attributes are sent */
    bool has_service;  /* these four labels, and collector.instance.id if instance is not NULL */
    bool has_name;
    bool has_kind;
    bool has_status;
    bool has_otel_status; /* otel.status_code instead of status.code */
    const char *service_key;
    const char *instance;
    uint64_t metrics_expiration_ns;
    uint64_t series_expiration_ns;
    const char *calls; /* names of the metrics */
    const char *duration;
    const char *events;
    const char *unit; /* of duration */
};

struct series_export {
    const struct export_settings *settings;
    struct series_store *store;
    struct delta_times *times; /* delta */
    struct metric_writer writer;
    struct nested_output labels;
    uint32_t
        refused_flush; /* the last one of which a request was refused; its zeros are sent again */
    uint64_t wall_ns;
    uint64_t now_ns;
    struct series **at; /* the next of the resource store->flushing and of set; NULL: the first */
    enum series_set set;
    bool is_open; /* the request has a message of that resource */
    bool has_failed;
};

void series_export_init(struct series_export *export, const struct export_settings *settings,
                        struct series_store *store, struct delta_times *times,
                        struct budget *budget);
void series_export_fini(struct series_export *export);
/* Begins a flush: what came up to now is sent. */
void series_export_begin(struct series_export *export, uint64_t wall_ns, uint64_t now_ns);
/* Writes the next request, of about METRIC_REQUEST_BYTES at most. NULL: all is written, or
 * has_failed is set: the budget has no room, and the rest stays in the store for the next flush. */
struct batch *series_export_next(struct series_export *export);
