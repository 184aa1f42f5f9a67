/* SPDX-License-Identifier: Apache-2.0 */
/* The option tables of tail_sampling. Whether policies fit together is checked by compiling them
 * (tail_policies.h). Main thread. */
#include "processors/tail_sampling/tail_sampling_config.h"

#include "src/base/clock.h"

static const struct config_field latency_fields[] = {
    CONFIG_INT(struct tail_latency_config, threshold_ms, "threshold_ms", "0", INT64_MIN, INT64_MAX,
               "The trace takes at least so many milliseconds; more, with upper_threshold_ms."),
    CONFIG_INT(struct tail_latency_config, upper_threshold_ms, "upper_threshold_ms", "0", INT64_MIN,
               INT64_MAX, "And at most so many, at any span in order of arrival. 0: no limit."),
    CONFIG_END,
};

static const struct config_field numeric_fields[] = {
    CONFIG_TEXT(struct tail_numeric_config, key, "key", NULL, "Attribute of a span or resource."),
    CONFIG_INT(struct tail_numeric_config, min_value, "min_value", "0", INT64_MIN, INT64_MAX,
               "Smallest integer that matches. 0: not set."),
    CONFIG_INT(struct tail_numeric_config, max_value, "max_value", "0", INT64_MIN, INT64_MAX,
               "Largest integer that matches. 0: not set."),
    CONFIG_BOOL(struct tail_numeric_config, invert_match, "invert_match", "false",
                "Sample traces in which nothing matches."),
    CONFIG_END,
};

static const struct config_field probabilistic_fields[] = {
    CONFIG_TEXT(struct tail_probabilistic_config, hash_salt, "hash_salt", NULL,
                "Text that is hashed before the trace's id. Empty: default-hash-seed."),
    CONFIG_DOUBLE(struct tail_probabilistic_config, sampling_percentage, "sampling_percentage", "0",
                  "Part of the traces to sample, in percent."),
    CONFIG_END,
};

static const struct config_field status_fields[] = {
    CONFIG_TEXTS(struct tail_status_config, status_codes, "status_codes", NULL,
                 "OK, ERROR, UNSET: a span has one of them."),
    CONFIG_END,
};

static const struct config_field string_fields[] = {
    CONFIG_TEXT(struct tail_string_config, key, "key", NULL, "Attribute of a span or resource."),
    CONFIG_TEXTS(struct tail_string_config, values, "values", NULL,
                 "Strings that match, or regular expressions that match a part of the value."),
    CONFIG_BOOL(struct tail_string_config, enabled_regex_matching, "enabled_regex_matching",
                "false", "values are regular expressions."),
    CONFIG_INT(struct tail_string_config, cache_max_size, "cache_max_size", "0", INT64_MIN,
               INT64_MAX, "Accepted; results of regular expressions are not cached here."),
    CONFIG_BOOL(struct tail_string_config, invert_match, "invert_match", "false",
                "Sample traces in which nothing matches."),
    CONFIG_END,
};

static const struct config_field rate_fields[] = {
    CONFIG_INT(struct tail_rate_config, per_second, "spans_per_second", "0", INT64_MIN / 4,
               INT64_MAX / 4, "Spans of sampled traces per second."),
    CONFIG_INT(struct tail_rate_config, burst_capacity, "burst_capacity", "0", INT64_MIN, INT64_MAX,
               "Spans that may come at once, also of one trace. 0: twice spans_per_second."),
    CONFIG_END,
};

static const struct config_field bytes_fields[] = {
    CONFIG_INT(struct tail_rate_config, per_second, "bytes_per_second", "0", INT64_MIN / 4,
               INT64_MAX / 4, "Bytes of sampled traces per second."),
    CONFIG_INT(struct tail_rate_config, burst_capacity, "burst_capacity", "0", INT64_MIN, INT64_MAX,
               "Bytes that may come at once, also of one trace. 0: twice bytes_per_second."),
    CONFIG_END,
};

static const struct config_field span_count_fields[] = {
    CONFIG_INT(struct tail_span_count_config, min_spans, "min_spans", "0", INT32_MIN, INT32_MAX,
               "The trace has at least so many spans."),
    CONFIG_INT(struct tail_span_count_config, max_spans, "max_spans", "0", INT32_MIN, INT32_MAX,
               "And at most so many. 0: no limit."),
    CONFIG_END,
};

static const struct config_field trace_state_fields[] = {
    CONFIG_TEXT(struct tail_trace_state_config, key, "key", NULL, "Key in the trace state."),
    CONFIG_TEXTS(struct tail_trace_state_config, values, "values", NULL, "Values that match."),
    CONFIG_END,
};

static const struct config_field boolean_fields[] = {
    CONFIG_TEXT(struct tail_boolean_config, key, "key", NULL, "Attribute of a span or resource."),
    CONFIG_BOOL(struct tail_boolean_config, value, "value", "false", "The value that matches."),
    CONFIG_BOOL(struct tail_boolean_config, invert_match, "invert_match", "false",
                "Sample traces in which nothing matches."),
    CONFIG_END,
};

static const struct config_field ottl_fields[] = {
    CONFIG_TEXT(struct tail_ottl_config, error_mode, "error_mode", NULL,
                "What an error of a condition does: ignore, silent or propagate."),
    CONFIG_TEXTS(struct tail_ottl_config, span, "span", NULL, "Conditions on a span."),
    CONFIG_TEXTS(struct tail_ottl_config, spanevent, "spanevent", NULL,
                 "Conditions on an event of a span."),
    CONFIG_END,
};

static const struct config_field profile_fields[] = {
    CONFIG_COUNT(struct tail_profile_config, min_samples, "min_samples", "1", 0, INT64_MAX,
                 "Records of profiles that name spans of the trace, at least."),
    CONFIG_DURATION(struct tail_profile_config, min_cpu_ns, "min_cpu", "0", 0, INT64_MAX,
                    "CPU time that these measure together, at least."),
    CONFIG_END,
};

/* clang-format off */
#define SHARED_ROWS(owner)                                                                         \
    CONFIG_TEXT(owner, shared.name, "name", NULL, "Name of the policy, for metrics."),             \
    CONFIG_TEXT(owner, shared.type, "type", NULL,                                                  \
                "Kind of the policy; its settings are in the section of that name."),              \
    CONFIG_SECTION(owner, shared.latency, struct tail_latency_config, "latency", latency_fields,   \
                   NULL, "Settings of type latency."),                                             \
    CONFIG_SECTION(owner, shared.numeric, struct tail_numeric_config, "numeric_attribute",         \
                   numeric_fields, NULL, "Settings of type numeric_attribute."),                   \
    CONFIG_SECTION(owner, shared.probabilistic, struct tail_probabilistic_config, "probabilistic", \
                   probabilistic_fields, NULL, "Settings of type probabilistic."),                 \
    CONFIG_SECTION(owner, shared.status, struct tail_status_config, "status_code", status_fields,  \
                   NULL, "Settings of type status_code."),                                         \
    CONFIG_SECTION(owner, shared.string, struct tail_string_config, "string_attribute",            \
                   string_fields, NULL, "Settings of type string_attribute."),                     \
    CONFIG_SECTION(owner, shared.rate, struct tail_rate_config, "rate_limiting", rate_fields,      \
                   NULL, "Settings of type rate_limiting."),                                       \
    CONFIG_SECTION(owner, shared.bytes, struct tail_rate_config, "bytes_limiting", bytes_fields,   \
                   NULL, "Settings of type bytes_limiting."),                                      \
    CONFIG_SECTION(owner, shared.span_count, struct tail_span_count_config, "span_count",          \
                   span_count_fields, NULL, "Settings of type span_count."),                       \
    CONFIG_SECTION(owner, shared.trace_state, struct tail_trace_state_config, "trace_state",       \
                   trace_state_fields, NULL, "Settings of type trace_state."),                     \
    CONFIG_SECTION(owner, shared.boolean, struct tail_boolean_config, "boolean_attribute",         \
                   boolean_fields, NULL, "Settings of type boolean_attribute."),                   \
    CONFIG_SECTION(owner, shared.ottl, struct tail_ottl_config, "ottl_condition", ottl_fields,     \
                   NULL, "Settings of type ottl_condition."),                                      \
    CONFIG_SECTION(owner, shared.profile, struct tail_profile_config, "profile", profile_fields,   \
                   NULL, "Settings of type profile, which the Go collector does not have.")
/* clang-format on */

static const struct config_field not_sub_fields[] = {
    SHARED_ROWS(struct tail_not_sub_config),
    CONFIG_END,
};

static const struct config_field not_fields[] = {
    CONFIG_SECTION(struct tail_not_config, sub, struct tail_not_sub_config, "not_sub_policy",
                   not_sub_fields, NULL, "The policy whose opposite it is."),
    CONFIG_END,
};

static const struct config_field and_sub_fields[] = {
    SHARED_ROWS(struct tail_and_sub_config),
    CONFIG_SECTION(struct tail_and_sub_config, inverted, struct tail_not_config, "not", not_fields,
                   NULL, "Settings of type not."),
    CONFIG_END,
};

static const struct config_field and_fields[] = {
    CONFIG_SECTIONS(struct tail_and_config, subs, struct tail_and_sub_config, "and_sub_policy",
                    and_sub_fields, NULL, "Policies that all have to sample the trace."),
    CONFIG_END,
};

static const struct config_field drop_fields[] = {
    CONFIG_SECTIONS(struct tail_and_config, subs, struct tail_and_sub_config, "drop_sub_policy",
                    and_sub_fields, NULL, "Policies that all have to sample the trace."),
    CONFIG_END,
};

static const struct config_field composite_sub_fields[] = {
    SHARED_ROWS(struct tail_composite_sub_config),
    CONFIG_SECTION(struct tail_composite_sub_config, all, struct tail_and_config, "and", and_fields,
                   NULL, "Settings of type and."),
    CONFIG_END,
};

static const struct config_field allocation_fields[] = {
    CONFIG_TEXT(struct tail_rate_allocation_config, policy, "policy", NULL,
                "Name of a sub-policy."),
    CONFIG_INT(struct tail_rate_allocation_config, percent, "percent", "0", INT64_MIN, INT64_MAX,
               "Its part of max_total_spans_per_second. 0: an equal part."),
    CONFIG_END,
};

static const struct config_field composite_fields[] = {
    CONFIG_INT(struct tail_composite_config, max_total_spans_per_second,
               "max_total_spans_per_second", "0", INT64_MIN, INT64_MAX,
               "Spans per second that each sub-policy may sample at most."),
    CONFIG_TEXTS(struct tail_composite_config, policy_order, "policy_order", NULL,
                 "Accepted; the order of composite_sub_policy counts, as in the Go collector."),
    CONFIG_SECTIONS(struct tail_composite_config, subs, struct tail_composite_sub_config,
                    "composite_sub_policy", composite_sub_fields, NULL,
                    "Policies, of which the first that samples the trace decides."),
    CONFIG_SECTIONS(struct tail_composite_config, allocations, struct tail_rate_allocation_config,
                    "rate_allocation", allocation_fields, NULL,
                    "Spans per second of each sub-policy; none without an entry."),
    CONFIG_END,
};

static const struct config_field policy_fields[] = {
    SHARED_ROWS(struct tail_policy_config),
    CONFIG_SECTION(struct tail_policy_config, composite, struct tail_composite_config, "composite",
                   composite_fields, NULL, "Settings of type composite."),
    CONFIG_SECTION(struct tail_policy_config, all, struct tail_and_config, "and", and_fields, NULL,
                   "Settings of type and."),
    CONFIG_SECTION(struct tail_policy_config, inverted, struct tail_not_config, "not", not_fields,
                   NULL, "Settings of type not."),
    CONFIG_SECTION(struct tail_policy_config, drop, struct tail_and_config, "drop", drop_fields,
                   NULL, "Settings of type drop."),
    CONFIG_END,
};

static const struct config_field cache_fields[] = {
    CONFIG_COUNT(struct tail_cache_config, sampled_cache_size, "sampled_cache_size", "0", 0,
                 TAIL_CACHE_SIZE_MAX, "Sampled traces that are remembered. 0: none."),
    CONFIG_COUNT(struct tail_cache_config, non_sampled_cache_size, "non_sampled_cache_size", "0", 0,
                 TAIL_CACHE_SIZE_MAX, "Other traces that are remembered. 0: none."),
    CONFIG_END,
};

static const char *const strategies[] = {"trace-complete", "span-ingest", NULL};

const struct config_field tail_sampling_fields[] = {
    CONFIG_DURATION(struct tail_sampling_config, decision_wait_ns, "decision_wait", "30s",
                    INT64_MIN, TAIL_WAIT_MAX_NS,
                    "How long a trace waits for its spans, from the first on, in whole seconds."),
    CONFIG_DURATION_OR_NEGATIVE(
        struct tail_sampling_config, decision_wait_after_root_received_ns,
        "decision_wait_after_root_received", "0",
        "How long it still waits once its root has arrived, if that is less. 0: no such rule."),
    CONFIG_COUNT(struct tail_sampling_config, num_traces, "num_traces", "50000", 0, INT64_MAX,
                 "Traces that are kept, over all lanes. The oldest is decided early for one more."),
    CONFIG_BOOL(struct tail_sampling_config, block_on_overflow, "block_on_overflow", "false",
                "Beyond num_traces let senders wait until traces have been decided in time."),
    CONFIG_COUNT(struct tail_sampling_config, expected_new_traces_per_sec,
                 "expected_new_traces_per_sec", "0", 0, INT64_MAX,
                 "Accepted; memory grows as needed here."),
    CONFIG_SECTIONS(struct tail_sampling_config, policies, struct tail_policy_config, "policies",
                    policy_fields, NULL, "Which traces are sampled: any of these is enough."),
    CONFIG_SECTION(struct tail_sampling_config, decision_cache, struct tail_cache_config,
                   "decision_cache", cache_fields, NULL,
                   "Decisions that are remembered after the trace is gone."),
    CONFIG_TEXT(struct tail_sampling_config, tail_storage, "tail_storage", NULL,
                "Not supported: spans wait in memory, and in the journal of the pipeline."),
    CONFIG_BOOL(struct tail_sampling_config, sample_on_first_match, "sample_on_first_match",
                "false", "Ask no further policies once one has sampled the trace."),
    CONFIG_CHOICE(struct tail_sampling_config, strategy, "sampling_strategy", "trace-complete",
                  strategies, "Decide on whole traces, or on each group of spans as it arrives."),
    CONFIG_BOOL(struct tail_sampling_config, drop_pending_traces_on_shutdown,
                "drop_pending_traces_on_shutdown", "false",
                "On a stop, drop traces that wait instead of deciding them."),
    CONFIG_BYTES(struct tail_sampling_config, maximum_trace_size_bytes, "maximum_trace_size_bytes",
                 "0", 0, INT64_MAX, "Drop traces with more bytes than this. 0: no limit."),
    CONFIG_END,
};
