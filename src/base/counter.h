/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of a component: a struct of uint64_t cells per instance and a table of rows beside it
 * that names them. One writer (the instance's lane), relaxed stores, summed over lanes when read.
 * No counter is addressed by number. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/signal_kind.h"

typedef _Atomic uint64_t counter;

enum counter_type { COUNTER_SUM, COUNTER_GAUGE, COUNTER_HISTOGRAM };

/* How much is exposed (service::telemetry::metrics::level). */
enum metrics_level { METRICS_NONE, METRICS_BASIC, METRICS_NORMAL, METRICS_DETAILED };

/* A histogram as Prometheus has it: cells[i] counts values <= bounds[i], the last cell the rest;
 * not cumulative here. */
enum { HISTOGRAM_BOUNDS_MAX = 40 };
struct histogram {
    counter cells[HISTOGRAM_BOUNDS_MAX + 1];
    counter sum;
};

struct counter_row {
    const char *name; /* otelcol_… ; "%s" stands for signal_items() where per_signal is set */
    const char *help;
    enum counter_type type;
    enum metrics_level level; /* lowest level that shows it; METRICS_NONE: always shown */
    size_t offset;     /* of a counter, counter[SIGNAL_KINDS], or struct histogram in the counters
                          struct */
    const char *label; /* one fixed label, "transport", or NULL */
    const char *label_value;
    const char *second_label; /* the same, beside the first */
    const char *second_value;
    unsigned per_signal;    /* a mask: the cell is an array by signal, and these have a series */
    const uint64_t *bounds; /* histogram: ascending, bounds_count of them */
    size_t bounds_count;
    double divisor; /* histogram: bounds and values are shown divided by this; 0: as they are */
};

#define COUNTER(owner, field, kind, metric, text)                                                  \
    COUNTER_FROM(owner, field, kind, metric, METRICS_NONE, text)
/* shown: the lowest level that shows it. */
#define COUNTER_FROM(owner, field, kind, metric, shown, text)                                      \
    {                                                                                              \
        .name = (metric), .help = (text), .type = (kind), .level = (shown),                        \
        .offset =                                                                                  \
            offsetof(owner, field) + 0 * sizeof(_Generic(&((owner *)0)->field, counter * : 1))     \
    }
#define COUNTER_BY_SIGNAL(owner, field, kind, metric, mask, name_of_label, value_of_label, text)   \
    {                                                                                              \
        .name = (metric), .help = (text), .type = (kind), .per_signal = (mask),                    \
        .label = (name_of_label), .label_value = (value_of_label),                                 \
        .offset = offsetof(owner, field) +                                                         \
                  0 * sizeof(_Generic(&((owner *)0)->field, counter(*)[SIGNAL_KINDS] : 1))         \
    }
#define COUNTER_HISTOGRAM_ROW(owner, field, metric, limits, shown, text)                           \
    {                                                                                              \
        .name = (metric), .help = (text), .type = COUNTER_HISTOGRAM, .bounds = (limits),           \
        .level = (shown), .bounds_count = sizeof(limits) / sizeof((limits)[0]),                    \
        .offset = offsetof(owner, field) +                                                         \
                  0 * sizeof(_Generic(&((owner *)0)->field, struct histogram * : 1))               \
    }
/* The same of nanoseconds, shown as seconds. */
#define COUNTER_SECONDS_ROW(owner, field, metric, limits, shown, text)                             \
    {                                                                                              \
        .name = (metric), .help = (text), .type = COUNTER_HISTOGRAM, .bounds = (limits),           \
        .level = (shown), .bounds_count = sizeof(limits) / sizeof((limits)[0]), .divisor = 1e9,    \
        .offset = offsetof(owner, field) +                                                         \
                  0 * sizeof(_Generic(&((owner *)0)->field, struct histogram * : 1))               \
    }
#define COUNTER_END                                                                                \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* One writer: no lock prefix needed. */
static inline void counter_add(counter *cell, uint64_t amount)
{
    uint64_t old = atomic_load_explicit(cell, memory_order_relaxed);
    atomic_store_explicit(cell, old + amount, memory_order_relaxed);
}

static inline void counter_set(counter *cell, uint64_t value)
{
    atomic_store_explicit(cell, value, memory_order_relaxed);
}

static inline uint64_t counter_read(const counter *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

/* bounds ascend, at most HISTOGRAM_BOUNDS_MAX of them; the instance's lane alone. */
void histogram_record(struct histogram *histogram, const uint64_t *bounds, size_t bounds_count,
                      uint64_t value);
