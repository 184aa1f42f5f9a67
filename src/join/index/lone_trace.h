/* SPDX-License-Identifier: Apache-2.0 */
/* Processes all of whose spans belong to one trace, as those of batch jobs do: what they use their
 * time for is that trace's, whatever their profiler knows. A fixed number of processes, the one
 * that has been quiet longest going first. Any thread; a lock, held for a look at one entry. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/join/index/resource_facts.h"

struct span_facts;

/* Names that one resource gives its process: its own, and the service. */
enum { LONE_KEYS_MAX = RESOURCE_PROCESS_NAMES + 1, LONE_PARENTS_MAX = 4 };

/* What is known behind one name. A trace that a process has to itself is told by its children: its
 * root ends last. */
struct lone_entry {
    uint64_t trace[2];
    uint64_t root;                      /* came; 0: has not ended yet */
    uint64_t parents[LONE_PARENTS_MAX]; /* that spans name and that have not come, oldest first */
    uint64_t start_ns;                  /* of its first span, as far as known */
    uint64_t end_ns;                    /* of its root */
    uint64_t seen_ns;                   /* when the last span came, on clock_now_ns's scale */
    uint8_t kinds;                      /* of a service: how its processes are named, bit by bit */
    bool has_trace;
    bool is_shared; /* by several traces, or by whoever calls: it is a server */
};

struct lone_traces {
    pthread_mutex_t lock;
    uint64_t *keys; /* of the entries; 0: free */
    struct lone_entry *entries;
};

/* All names that one resource gives: the surest first, the service last; 0: none. */
struct lone_names {
    uint64_t keys[LONE_KEYS_MAX];
};

/* Those of a resource that are worth noting spans for. */
struct lone_keys {
    uint64_t keys[LONE_KEYS_MAX];
    unsigned count;
};

struct lone_trace {
    uint64_t trace[2];
    uint64_t root; /* the topmost span that is known of; 0: none */
};

/* False: no memory. */
bool lone_traces_init(struct lone_traces *traces);
void lone_traces_fini(struct lone_traces *traces);
/* A resource of spans came by. Those of its names whose process is not known to be shared. */
struct lone_keys lone_traces_begin(struct lone_traces *traces, const struct resource_facts *facts,
                                   uint64_t now_ns);
/* One of its spans. */
void lone_traces_note(struct lone_traces *traces, const struct lone_keys *keys,
                      const struct span_facts *span, uint64_t now_ns);
/* What spans say of a process, now. */
enum lone_state {
    LONE_STRANGER, /* nobody of that service has sent any lately */
    LONE_NEWCOMER, /* others have, but this one has not */
    LONE_SHARED,
    LONE_HAS_TRACE,
};
struct lone_names lone_names_of(const struct resource_facts *facts);
enum lone_state lone_traces_state(struct lone_traces *traces, const struct lone_names *names,
                                  uint64_t now_ns);

enum lone_found {
    LONE_NONE,
    LONE_UNDECIDED, /* there is one: its root, which has not ended, may say that it began earlier */
    LONE_FOUND,
};
/* The only trace of the process, if most of the time between is its. */
enum lone_found lone_traces_find(struct lone_traces *traces, const struct lone_names *names,
                                 uint64_t from_ns, uint64_t until_ns, struct lone_trace *ret_trace);
