/* SPDX-License-Identifier: Apache-2.0 */
/* What all instances of one join share: its settings and what is known of spans, services,
 * processes and values. Created before the lanes run; each part says which threads may use it. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "src/join/index/id_set.h"
#include "src/join/index/process_table.h"
#include "src/join/index/service_set.h"
#include "src/join/index/single_trace.h"
#include "src/join/index/span_index.h"
#include "src/join/index/span_window.h"
#include "src/join/index/trace_costs.h"
#include "src/join/index/trace_verdicts.h"
#include "src/join/join_settings.h"
#include "src/join/keep_rules.h"
#include "src/join/value_cap.h"
#include "src/profiles/otlp/profile_bytes.h"

struct join_store {
    struct join_settings settings;
    struct span_index index;
    struct span_window window; /* with uses_window */
    struct process_table processes;
    struct service_set services;
    struct recent_services recent_services;
    struct id_set observed; /* spans that profiles named; with JOIN_MARK_OBSERVED */
    struct id_set missed;   /* spans that profiles did not find: if they arrive, they are late */
    struct value_cap caps[JOIN_ATTRIBUTES_MAX];
    _Atomic uint64_t held_bytes;              /* of profiles, on all lanes */
    struct single_traces single_traces;       /* with finds_single_traces */
    struct pending_services pending_services; /* with finds_single_traces */
    struct keep_switch keep;
    bool has_spans;                 /* some pipeline of traces has an instance */
    bool has_profiles;              /* some pipeline of profiles has one */
    bool has_sampler;               /* tail_sampling stands in one of those of traces … */
    bool passes_unsampled;          /* … and in another it does not */
    bool wants_costs;               /* … with policies of type profile */
    struct trace_verdicts verdicts; /* its decisions */
    struct trace_costs costs;       /* for its policies of type profile */
    bool has_control;           /* an instance listens for changes of keep; used on lane 0 alone */
    char *id;                   /* of the component; NULL: not kept over a reload */
    struct profile_bytes shape; /* the settings that the tables depend on, encoded */
};

/* Bytes of the tables of spans, which are allocated at once. */
uint64_t join_store_bytes(const struct join_settings *settings, unsigned lanes);
/* NULL: no memory. Borrows the settings' strings. */
struct join_store *join_store_create(const struct join_settings *settings, unsigned lanes);
/* NULL is a no-op. */
void join_store_destroy(struct join_store *store);
/* The store of the component with that id: after a reload the one that was closed before, if the
 * settings that its tables depend on are the same; else a new one. NULL: no memory. */
struct join_store *join_store_open(const char *id, const struct join_settings *settings,
                                   unsigned lanes);
void join_store_close(struct join_store *store);

/* tail_sampling stands beside an instance in a pipeline of traces; wants_costs: with policies that
 * need them. Makes the tables for it, if that was not done; *ret_bytes: that they take, 0 if they
 * were made before. Before lanes run. False: no memory. */
bool join_store_meet_sampler(struct join_store *store, bool wants_costs, uint64_t *ret_bytes);
/* tail_sampling has decided. Any thread. */
void join_store_judge(struct join_store *store, const uint64_t trace[2], bool is_sampled,
                      uint64_t now_ns);
/* What the rule `sampled` takes for true of a trace of which spans were passed on. Any thread. */
enum trace_verdict join_store_verdict(const struct join_store *store, const uint64_t trace[2]);
/* Incremented with all that held profiles may wait for. Any thread. */
uint64_t join_store_changes(const struct join_store *store);
