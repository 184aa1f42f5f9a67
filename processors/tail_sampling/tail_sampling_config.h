/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the tail_sampling processor, as in the Go collector 0.155. Filled by the option
 * tables; shared by all lanes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/config/field.h"

enum tail_strategy { TAIL_TRACE_COMPLETE, TAIL_SPAN_INGEST };

/* The settings of each kind of policy that does not contain others. */
struct tail_latency_config {
    int64_t threshold_ms;
    int64_t upper_threshold_ms;
};
struct tail_numeric_config {
    const char *key;
    int64_t min_value;
    int64_t max_value;
    bool invert_match;
};
struct tail_probabilistic_config {
    const char *hash_salt;
    double sampling_percentage;
};
struct tail_status_config {
    struct config_texts status_codes;
};
struct tail_string_config {
    const char *key;
    struct config_texts values;
    bool enabled_regex_matching;
    int64_t cache_max_size;
    bool invert_match;
};
struct tail_rate_config {
    int64_t per_second;
    int64_t burst_capacity;
};
struct tail_span_count_config {
    int64_t min_spans;
    int64_t max_spans;
};
struct tail_trace_state_config {
    const char *key;
    struct config_texts values;
};
struct tail_boolean_config {
    const char *key;
    bool value;
    bool invert_match;
};
struct tail_profile_config {
    uint64_t min_samples;
    uint64_t min_cpu_ns;
};
struct tail_ottl_config {
    const char *error_mode;
    struct config_texts span;
    struct config_texts spanevent;
};

/* What policies and sub-policies have in common. */
struct tail_shared_config {
    const char *name;
    const char *type;
    struct tail_latency_config latency;
    struct tail_numeric_config numeric;
    struct tail_probabilistic_config probabilistic;
    struct tail_status_config status;
    struct tail_string_config string;
    struct tail_rate_config rate;
    struct tail_rate_config bytes;
    struct tail_span_count_config span_count;
    struct tail_trace_state_config trace_state;
    struct tail_boolean_config boolean;
    struct tail_ottl_config ottl;
    struct tail_profile_config profile;
};

struct tail_not_sub_config {
    struct tail_shared_config shared;
};
struct tail_not_config {
    struct tail_not_sub_config sub;
};
struct tail_and_sub_config {
    struct tail_shared_config shared;
    struct tail_not_config inverted;
};
struct tail_and_config {
    struct config_sections subs; /* struct tail_and_sub_config */
};
struct tail_composite_sub_config {
    struct tail_shared_config shared;
    struct tail_and_config all;
};
struct tail_rate_allocation_config {
    const char *policy;
    int64_t percent;
};
struct tail_composite_config {
    int64_t max_total_spans_per_second;
    struct config_texts policy_order;
    struct config_sections subs;        /* struct tail_composite_sub_config */
    struct config_sections allocations; /* struct tail_rate_allocation_config */
};
struct tail_policy_config {
    struct tail_shared_config shared;
    struct tail_composite_config composite;
    struct tail_and_config all;
    struct tail_not_config inverted;
    struct tail_and_config drop;
};

struct tail_cache_config {
    uint64_t sampled_cache_size;
    uint64_t non_sampled_cache_size;
};

struct tail_sampling_config {
    uint64_t decision_wait_ns;
    uint64_t decision_wait_after_root_received_ns;
    uint64_t num_traces;
    bool block_on_overflow;
    uint64_t expected_new_traces_per_sec;
    struct config_sections policies; /* struct tail_policy_config */
    struct tail_cache_config decision_cache;
    const char *tail_storage;
    bool sample_on_first_match;
    int strategy; /* enum tail_strategy */
    bool drop_pending_traces_on_shutdown;
    uint64_t maximum_trace_size_bytes;
};

/* Longest decision_wait: a list for each of its seconds is kept. */
#define TAIL_WAIT_MAX_NS (INT64_C(24) * 3600 * 1000000000)
enum { TAIL_CACHE_SIZE_MAX = 1000000000 };

extern const struct config_field tail_sampling_fields[];
