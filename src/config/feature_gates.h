/* SPDX-License-Identifier: Apache-2.0 */
/* The Go collector's feature gates. All gates of its core, and those of contrib that have an
 * effect, are known, so that existing start commands work; few have an effect here. Set once from
 * --feature-gates, then read only. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "src/base/error.h"

enum feature_gate {
    GATE_MERGE_APPEND,    /* confmap.enableMergeAppendOption: lists of components grow in merges */
    GATE_ROUTING_IGNORES, /* error_mode of routing is ignore, not propagate, by default */
    GATE_SPAN_METRICS_NO_RESOURCE,
    GATE_SPAN_METRICS_INSTANCE,
    GATE_SPAN_METRICS_LEGACY_NAMES,
    GATE_SPAN_METRICS_SECONDS,
    GATE_FILE_COMPRESSION, /* files of the file exporter are zstd as a whole */
    GATE_REMOTE_WRITE_WORKERS,
    GATE_REMOTE_WRITE_429,
    GATE_REMOTE_WRITE_V2, /* protobuf_message: io.prometheus.write.v2.Request */
    GATE_FILE_DELETION,   /* delete_after_read of receivers of files */
    GATE_FILTER_LOG_BRIDGE,
    GATE_FILTER_METRIC_BRIDGE,
    GATE_FILTER_SPAN_BRIDGE,
    GATE_OTTL_UNIQUE_NAMES,
    GATE_OTTL_OTELCOL,
    GATE_OTTL_LAMBDAS,
    GATE_QUEUE_BATCH,
    GATE_PROTO_POOLING,
    GATE_FILTER_IGNORES,     /* error_mode of filter is ignore, not propagate, by default */
    GATE_TRANSFORM_IGNORES,  /* the same of transform */
    GATE_TRANSFORM_FLATTENS, /* flatten_data of transform may be on */
    GATE_TAIL_COUNT_BYTES,   /* of contrib's tailsamplingprocessor, as the next two */
    GATE_TAIL_COUNT_SPANS,
    GATE_TAIL_RECORD_POLICY,
    GATE_RECEIVER_METRICS,
    GATE_ALLOW_NO_PIPELINES,
    GATE_PARTIAL_RELOAD,
    GATE_PARTIAL_RELOAD_RECEIVERS,
    GATE_PROFILES_SUPPORT, /* on here; off makes profiles pipelines an error */
    GATE_SPAN_METRICS_OTEL_STATUS,
    GATE_PIPELINE_TELEMETRY,
    FEATURE_GATES,
};

struct feature_gates {
    bool is_enabled[FEATURE_GATES];
};

struct feature_gates feature_gates_default(void);
/* gates may be NULL: the defaults. */
bool feature_gate_is_enabled(const struct feature_gates *gates, enum feature_gate gate);
/* Applies the value of one --feature-gates flag: "id,+id,-id". All errors at once, "; " between. */
bool feature_gates_parse(struct feature_gates *gates, const char *list, struct error *error);
/* The `featuregate` command: the table, or one gate. False: no gate has that id. */
bool feature_gates_print(const struct feature_gates *gates, const char *id, FILE *out);
