/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the counters of trace_profile_join. Constants. */
#include "processors/trace_profile_join/trace_profile_join_counters.h"

#define METRIC "otelcol_processor_trace_profile_join_"

#define JOIN_COUNTER(field, kind, metric, text)                                                    \
    COUNTER(struct join_counters, field, kind, METRIC metric, text)
#define JOIN_COUNTER_BY(field, metric, why, text)                                                  \
    {                                                                                              \
        .name = METRIC metric, .help = (text), .type = COUNTER_SUM, .label = "reason",             \
        .label_value = (why),                                                                      \
        .offset = offsetof(struct join_counters, field) +                                          \
                  0 * sizeof(_Generic(&((struct join_counters *)0)->field, counter * : 1))         \
    }

const struct counter_row join_counters[] = {
    COUNTER_BY_SIGNAL(struct join_counters, incoming, COUNTER_SUM,
                      "otelcol_processor_incoming_items", SIGNAL_TRACES | SIGNAL_PROFILES, NULL,
                      NULL, "Items passed to the processor."),
    COUNTER_BY_SIGNAL(struct join_counters, outgoing, COUNTER_SUM,
                      "otelcol_processor_outgoing_items", SIGNAL_TRACES | SIGNAL_PROFILES, NULL,
                      NULL, "Items emitted from the processor."),
    JOIN_COUNTER(indexed, COUNTER_SUM, "indexed_spans", "Number of spans put into the index"),
    JOIN_COUNTER(skipped, COUNTER_SUM, "skipped_spans",
                 "Number of spans not indexed, of services without profiles"),
    JOIN_COUNTER(evicted, COUNTER_SUM, "evicted_spans",
                 "Number of spans that left the index for newer ones"),
    JOIN_COUNTER(late, COUNTER_SUM, "late_spans",
                 "Number of spans that came after a profile had waited for them in vain"),
    JOIN_COUNTER(marked, COUNTER_SUM, "marked_spans",
                 "Number of spans that got pyroscope.profile.id"),
    JOIN_COUNTER(unmarked, COUNTER_SUM, "unmarked_spans",
                 "Number of spans that did not get it for want of memory budget"),
    JOIN_COUNTER(hits, COUNTER_SUM, "hits",
                 "Number of spans named by a request of profiles that were in the index"),
    JOIN_COUNTER_BY(absent, "misses", "absent",
                    "Number of spans named by a request of profiles that were not in the index"),
    JOIN_COUNTER_BY(unknown_services, "misses", "unknown_service",
                    "Number of spans named by a request of profiles that were not in the index"),
    JOIN_COUNTER_BY(ambiguous, "misses", "ambiguous",
                    "Number of spans named by a request of profiles that were not in the index"),
    JOIN_COUNTER(enriched, COUNTER_SUM, "enriched_samples",
                 "Number of samples that got something from their span"),
    JOIN_COUNTER(timed, COUNTER_SUM, "window_samples",
                 "Number of samples that got a span by their time (window_fallback)"),
    JOIN_COUNTER(other_values, COUNTER_SUM, "other_values",
                 "Number of values beyond cap that became \"other\", once per span and request"),
    JOIN_COUNTER(repaired, COUNTER_SUM, "repaired_resources",
                 "Number of resources of profiles that got the service of their process"),
    JOIN_COUNTER(labelled, COUNTER_SUM, "labelled_resources",
                 "Number of resources of profiles that got the only trace of their process"),
    JOIN_COUNTER(copied, COUNTER_SUM, "copied_samples",
                 "Number of copies of samples for local roots and ancestors (count_for)"),
    JOIN_COUNTER(uncopied, COUNTER_SUM, "uncopied_samples",
                 "Number of copies that were not made: a request had too many of them"),
    JOIN_COUNTER(unwanted, COUNTER_SUM, "unwanted_samples", "Number of samples that keep left out"),
    JOIN_COUNTER(held_profiles, COUNTER_GAUGE, "held_requests",
                 "Number of requests of profiles that wait for spans"),
    JOIN_COUNTER(held_bytes, COUNTER_GAUGE, "held_bytes",
                 "Bytes of profiles that wait for spans or for the next stage"),
    JOIN_COUNTER_BY(released[RELEASE_COMPLETE], "released_requests", "complete",
                    "Number of requests of profiles that have waited for spans"),
    JOIN_COUNTER_BY(released[RELEASE_TIMEOUT], "released_requests", "timeout",
                    "Number of requests of profiles that have waited for spans"),
    JOIN_COUNTER_BY(released[RELEASE_PRESSURE], "released_requests", "pressure",
                    "Number of requests of profiles that have waited for spans"),
    JOIN_COUNTER_BY(released[RELEASE_STOP], "released_requests", "stop",
                    "Number of requests of profiles that have waited for spans"),
    COUNTER_END,
};
