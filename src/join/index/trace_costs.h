/* SPDX-License-Identifier: Apache-2.0 */
/* What profiles have measured of recent traces: samples and CPU time of their spans, summed. What
 * is known of a span alone, whose trace the profile did not name, waits until the span arrives.
 * Bounded: a new id displaces the one of its line that grew longest ago. Any thread; a lock for
 * each part of the table. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pthread.h>

enum { TRACE_COST_LOCKS = 64 };

struct trace_cost {
    uint64_t samples; /* records of profiles */
    uint64_t cpu_ns;
};

struct cost_entry;

/* By an id of 16 bytes. */
struct cost_table {
    struct cost_entry *entries; /* NULL: not in use */
    uint64_t lines;             /* a power of two */
    uint64_t seed;
    _Atomic bool is_used;
    pthread_mutex_t locks[TRACE_COST_LOCKS];
};

struct trace_costs {
    struct cost_table traces;
    struct cost_table spans; /* of unknown traces, by their id and 0 */
};

/* Bytes for so many traces and as many spans, of which the number is rounded up. */
uint64_t trace_costs_bytes(uint64_t traces);
/* False: no memory. */
bool trace_costs_init(struct trace_costs *costs, uint64_t traces);
void trace_costs_fini(struct trace_costs *costs);
static inline bool trace_costs_are_on(const struct trace_costs *costs)
{
    return costs->traces.entries != NULL;
}

void trace_costs_add(struct trace_costs *costs, const uint64_t trace[2], struct trace_cost cost,
                     uint64_t now_ns);
/* Of a span whose trace is not known. */
void trace_costs_add_span(struct trace_costs *costs, uint64_t span, struct trace_cost cost,
                          uint64_t now_ns);
/* The span has arrived: what is known of it counts for its trace. */
void trace_costs_move_span(struct trace_costs *costs, uint64_t span, const uint64_t trace[2],
                           uint64_t now_ns);
/* Zeros: nothing is known. */
struct trace_cost trace_costs_get(struct trace_costs *costs, const uint64_t trace[2]);
