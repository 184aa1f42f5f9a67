/* SPDX-License-Identifier: Apache-2.0 */
/* Options of trace_profile_join. Constants and pure functions; the main thread runs them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "processors/trace_profile_join/trace_profile_control.h"
#include "src/config/field.h"
#include "src/join/join_settings.h"

struct error;

struct trace_profile_join_config {
    uint64_t hold_ns;
    uint64_t hold_bytes;
    struct join_index_config {
        uint64_t entries;
        uint64_t bytes;
    } index;
    struct config_texts attributes;
    uint64_t cap;
    struct config_texts duration_buckets;
    int span_id; /* enum join_span_id */
    struct config_texts count_for;
    bool repair_identity;
    int single_trace; /* enum join_single_trace */
    int mark;         /* enum join_mark */
    struct join_links_config {
        const char *profile;
        const char *trace;
    } links;
    bool window_fallback;
    const struct config_value *keep;
    bool keep_unlinked;
    struct join_control_config control;
};

enum join_span_id { SPAN_ID_RECEIVED, SPAN_ID_ROOT };
enum join_single_trace { SINGLE_TRACE_AUTO, SINGLE_TRACE_OFF };

extern const struct config_field trace_profile_join_fields[];

bool trace_profile_join_check(const void *config, struct error *error);
/* The settings of a configuration that has passed the check. Borrows its strings. */
void trace_profile_join_settings(const struct trace_profile_join_config *config,
                                 struct join_settings *ret_settings);
