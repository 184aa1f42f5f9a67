/* SPDX-License-Identifier: Apache-2.0 */
/* Processes whose spans all belong to one trace, as those of batch jobs do: their samples belong to
 * that trace even if the profiler names no span. Bounded; the process that has been quiet longest
 * is evicted first. Any thread; the lock is held while one entry is read or written. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/join/index/resource_facts.h"

struct span_facts;

/* Names of a process: those of its own that its resource gives, and the service. */
enum { PROCESS_NAMES_MAX = RESOURCE_PROCESS_NAMES + 1, SINGLE_TRACE_PARENTS_MAX = 4 };

/* What is known of the process of one name. Children reveal a process's trace before its root ends.
 */
struct single_trace_entry {
    uint64_t trace[2];
    uint64_t root;                              /* 0: has not ended yet */
    uint64_t parents[SINGLE_TRACE_PARENTS_MAX]; /* named by spans but not seen yet, oldest first */
    uint64_t start_ns;                          /* of its first span, as far as known */
    uint64_t end_ns;                            /* of its root */
    uint64_t seen_ns;                           /* when the last span arrived, by clock_now_ns */
    uint8_t kinds; /* of a service: a bit for each kind of name that its processes have */
    bool has_trace;
    bool is_shared; /* by several traces: it is a server */
};

struct single_traces {
    pthread_mutex_t lock;
    uint64_t *keys; /* of the entries; 0: free */
    struct single_trace_entry *entries;
};

/* All names that one resource gives: the most certain first, the service last; 0: none. */
struct process_names {
    uint64_t keys[PROCESS_NAMES_MAX];
};

/* The names of a resource whose spans must be noted. */
struct process_keys {
    uint64_t keys[PROCESS_NAMES_MAX];
    unsigned count;
};

struct single_trace {
    uint64_t trace[2];
    uint64_t root; /* the topmost known span; 0: none */
};

/* False: no memory. */
bool single_traces_init(struct single_traces *traces);
void single_traces_fini(struct single_traces *traces);
/* For a resource of spans: returns its names whose process is not known to be shared. */
struct process_keys single_traces_begin(struct single_traces *traces,
                                        const struct resource_facts *facts, uint64_t now_ns);
/* Notes one of its spans. */
void single_traces_note(struct single_traces *traces, const struct process_keys *keys,
                        const struct span_facts *span, uint64_t now_ns);
/* What its spans say of a process so far. */
enum process_state {
    PROCESS_UNKNOWN, /* no process of that service has sent spans recently */
    PROCESS_PENDING, /* others have, this one has not yet */
    PROCESS_SHARED,
    PROCESS_HAS_TRACE,
};
struct process_names process_names_of(const struct resource_facts *facts);
enum process_state single_traces_state(struct single_traces *traces,
                                       const struct process_names *names, uint64_t now_ns);

enum single_trace_found {
    SINGLE_TRACE_NONE,
    SINGLE_TRACE_UNDECIDED, /* there is one; its root, which has not ended, may turn out to have
                               begun earlier */
    SINGLE_TRACE_FOUND,
};
/* The only trace of the process, if it covers most of the time from from_ns to until_ns. */
enum single_trace_found single_traces_find(struct single_traces *traces,
                                           const struct process_names *names, uint64_t from_ns,
                                           uint64_t until_ns, struct single_trace *ret_trace);
