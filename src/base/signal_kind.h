/* SPDX-License-Identifier: Apache-2.0 */
/* The four OTLP signals and their names in YAML, in metrics and on the wire. Constants, any thread.
 */
#pragma once

enum signal_kind { TRACES, METRICS, LOGS, PROFILES, SIGNAL_KINDS };

enum signal_mask {
    SIGNAL_TRACES = 1 << TRACES,
    SIGNAL_METRICS = 1 << METRICS,
    SIGNAL_LOGS = 1 << LOGS,
    SIGNAL_PROFILES = 1 << PROFILES,
};

/* "traces": the pipeline's name, and data_type in metrics. */
const char *signal_name(enum signal_kind signal);
/* "spans", "metric_points", "log_records", "profile_samples": what is counted, as in
 * otelcol_receiver_accepted_… */
const char *signal_items(enum signal_kind signal);
