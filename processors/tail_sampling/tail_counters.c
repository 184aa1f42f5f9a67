/* SPDX-License-Identifier: Apache-2.0 */
/* What tail_sampling counts, under the names of the Go collector. Written on the instance's lane,
 * read anywhere. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "processors/tail_sampling/tail_instance.h"
#include "src/base/clock.h"

static const uint64_t latency_bounds[] = {1,    2,    5,    10,    25,    50,    75,   100,
                                          150,  200,  300,  400,   500,   750,   1000, 2000,
                                          3000, 4000, 5000, 10000, 20000, 30000, 50000};
static const uint64_t age_bounds[] = {0,   5,   10,   25,   50,   75,   100,  250,
                                      500, 750, 1000, 2500, 5000, 7500, 10000};
#define BOUNDS(bounds) bounds, sizeof(bounds) / sizeof((bounds)[0])
#define TAIL_METRIC    "otelcol_processor_tail_sampling_"
#define TAIL_COUNTER(field, kind, name, text)                                                      \
    COUNTER(struct tail_counters, field, kind, TAIL_METRIC name, text)
#define TAIL_COUNTER_BY(field, metric, key, value, text)                                           \
    {                                                                                              \
        .name = (metric), .help = (text), .type = COUNTER_SUM,                                     \
        .offset = offsetof(struct tail_counters, field), .label = (key), .label_value = (value)    \
    }
#define EARLY_TEXT                                                                                 \
    "Number of traces that were decided before their time: num_traces was reached, or memory was " \
    "short"

const struct counter_row tail_counter_rows[] = {
    TAIL_COUNTER_BY(early_releases[0], TAIL_METRIC "early_releases_from_cache_decision", "sampled",
                    "false",
                    "Number of spans that were able to be immediately released due to a decision "
                    "cache hit."),
    TAIL_COUNTER_BY(early_releases[1], TAIL_METRIC "early_releases_from_cache_decision", "sampled",
                    "true",
                    "Number of spans that were able to be immediately released due to a decision "
                    "cache hit."),
    TAIL_COUNTER(new_traces, COUNTER_SUM, "new_trace_id_received",
                 "Counts the arrival of new traces"),
    COUNTER_HISTOGRAM_ROW(struct tail_counters, latency_ms,
                          TAIL_METRIC "sampling_decision_timer_latency", latency_bounds,
                          METRICS_NONE,
                          "Latency (in milliseconds) of each run of the sampling decision timer"),
    COUNTER_HISTOGRAM_ROW(struct tail_counters, late_span_s, TAIL_METRIC "sampling_late_span_age",
                          age_bounds, METRICS_NONE,
                          "Time (in seconds) from the sampling decision was taken and the arrival "
                          "of a late span"),
    TAIL_COUNTER(errors, COUNTER_SUM, "sampling_policy_evaluation_error",
                 "Count of sampling policy evaluation errors"),
    TAIL_COUNTER(
        dropped_too_early, COUNTER_SUM, "sampling_trace_dropped_too_early",
        "Count of traces that needed to be dropped before the configured wait time: always "
        "0 here, where they are decided early instead"),
    COUNTER_HISTOGRAM_ROW(struct tail_counters, removal_s, TAIL_METRIC "sampling_trace_removal_age",
                          age_bounds, METRICS_NONE,
                          "Time (in seconds) from arrival of a new trace until its removal from "
                          "memory"),
    TAIL_COUNTER(on_memory, COUNTER_GAUGE, "sampling_traces_on_memory",
                 "Tracks the number of traces current on memory"),
    TAIL_COUNTER(too_large, COUNTER_SUM, "traces_dropped_too_large",
                 "Count of traces that were dropped because they were too large"),
    TAIL_COUNTER_BY(earlies[TAIL_EARLY_OVERFLOW], "spanflame_tail_sampling_early_decisions",
                    "reason", "num_traces", EARLY_TEXT),
    TAIL_COUNTER_BY(earlies[TAIL_EARLY_MEMORY], "spanflame_tail_sampling_early_decisions", "reason",
                    "memory", EARLY_TEXT),
    COUNTER_END,
};

void tail_note_latency(struct tail *self, uint64_t taken_ns)
{
    struct tail_counters *counters = self->base.counters;
    histogram_record(&counters->latency_ms, BOUNDS(latency_bounds), taken_ns / NS_PER_MS);
}

void tail_note_late_span(struct tail *self, uint64_t age_ns)
{
    struct tail_counters *counters = self->base.counters;
    histogram_record(&counters->late_span_s, BOUNDS(age_bounds), age_ns / NS_PER_S);
}

void tail_note_removal(struct tail *self, uint64_t age_ns)
{
    struct tail_counters *counters = self->base.counters;
    histogram_record(&counters->removal_s, BOUNDS(age_bounds), age_ns / NS_PER_S);
}

/* "policy", or "name.policy" of tail_sampling/name. */
static void policy_label(const struct tail *self, const char *policy, char *room, size_t size)
{
    const char *name = strchr(self->base.id, '/');
    if (name != NULL)
        snprintf(room, size, "%s.%s", name + 1, policy);
    else
        snprintf(room, size, "%s", policy);
}

/* Counters whose labels come from the configuration, or are several. */
void tail_each_counter(const struct component *component, component_counter_fn add, void *arg)
{
    static const struct {
        const char *decision;
        const char *sampled;
    } decisions[TAIL_DECISIONS] = {
        {"sampled", "true"}, {"not_sampled", "false"}, {"dropped", "false"}};
    static const struct component_counter traces = {
        TAIL_METRIC "count_traces_sampled",
        "Count of traces that were sampled or not per sampling policy"};
    static const struct component_counter spans = {
        TAIL_METRIC "count_spans_sampled",
        "Count of spans that were sampled or not per sampling policy"};
    static const struct component_counter bytes = {
        TAIL_METRIC "count_bytes_sampled",
        "Count of bytes that were sampled or not per sampling policy"};
    static const struct component_counter global = {
        TAIL_METRIC "global_count_traces_sampled",
        "Global count of traces that were sampled or not by at least one policy"};
    static const struct component_counter executions = {
        TAIL_METRIC "sampling_policy_execution_count",
        "Total number of executions of a specific sampling policy"};
    static const struct component_counter times = {
        TAIL_METRIC "sampling_policy_execution_time_sum",
        "Total time spent (in microseconds) executing a specific sampling policy"};
    const struct tail *self = (const struct tail *)component;
    const struct tail_counters *counters = component->counters;
    for (size_t i = 0; self->policies != NULL && i < self->policies->count; i++) {
        const struct tail_policy_counters *own = &self->policy_counters[i];
        uint64_t asked = 0;
        char policy[512];
        policy_label(self, self->policies->items[i].name, policy, sizeof(policy));
        for (size_t k = 0; k < TAIL_DECISIONS; k++) {
            const struct component_label labels[] = {{"decision", decisions[k].decision},
                                                     {"policy", policy},
                                                     {"sampled", decisions[k].sampled}};
            if (counter_read(&own->traces[k]) == 0)
                continue;
            asked += counter_read(&own->traces[k]);
            add(&traces, labels, 3, counter_read(&own->traces[k]), arg);
            if (self->counts_spans)
                add(&spans, labels, 3, counter_read(&own->spans[k]), arg);
            if (self->counts_bytes)
                add(&bytes, labels, 3, counter_read(&own->bytes[k]), arg);
        }
        const struct component_label label = {"policy", policy};
        add(&executions, &label, 1, asked, arg);
        add(&times, &label, 1, counter_read(&own->execution_ns) / NS_PER_US, arg);
    }
    for (size_t k = 0; k < TAIL_DECISIONS; k++) {
        const struct component_label labels[] = {{"decision", decisions[k].decision},
                                                 {"sampled", decisions[k].sampled}};
        if (counter_read(&counters->decisions[k]) > 0)
            add(&global, labels, 2, counter_read(&counters->decisions[k]), arg);
    }
}
