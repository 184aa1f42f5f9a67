/* SPDX-License-Identifier: Apache-2.0 */
/* The traces that one lane keeps: a table by id whose entries are in lists, in the order of their
 * arrival and by the tick that decides them. Entries stay where they are, and have numbers. All
 * memory is charged to the budget, beyond its limit if need be. Runs on its lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "processors/tail_sampling/tail_hash.h"
#include "processors/tail_sampling/tail_policies.h"
#include "processors/tail_sampling/tail_spans.h"

struct budget;

/* A number of an entry; 0: none. */
typedef uint32_t tail_number;

enum tail_state {
    TAIL_WAITS,   /* in a list of ticks, or of what is due */
    TAIL_READY,   /* sampled; its spans wait for the next stage */
    TAIL_DECIDED, /* in no list but that of arrival */
};

struct tail_trace {
    uint8_t id[TAIL_TRACE_ID_BYTES];
    uint64_t arrival_ns;
    uint64_t bytes; /* as the Go collector counts them */
    union {
        uint64_t min_ns;       /* while it waits */
        const char *composite; /* then: the sub-policy of a composite that sampled it, or NULL */
    };
    union {
        uint64_t max_ns;     /* while it waits */
        uint64_t decided_ns; /* then; 0: dropped for its size */
    };
    struct tail_spans spans; /* that wait */
    uint32_t header_bytes;   /* of its Resource… messages, not in bytes */
    uint32_t spans_count;    /* of all that arrived */
    tail_number number;      /* its own */
    uint32_t tick;           /* that decides it */
    tail_number older;       /* by arrival */
    tail_number newer;
    tail_number previous; /* in its other list */
    tail_number next;
    tail_number chain;      /* in its bucket */
    uint16_t policy;        /* place + 1 of the one that decided; 0: none */
    uint8_t state;          /* enum tail_state */
    uint8_t decision : 2;   /* enum tail_decision */
    uint8_t outlook : 2;    /* enum tail_outlook: what becomes of spans before the decision */
    uint8_t is_evicted : 1; /* forget it once its spans are gone */
    uint64_t bits[];
};

struct tail_list {
    tail_number first;
    tail_number last;
    uint32_t count;
};

struct tail_traces {
    struct budget *budget;
    size_t words;       /* of bits */
    size_t trace_bytes; /* of an entry */
    uint32_t count;
    uint32_t entries_max;
    /* Entries, in chunks. */
    uint8_t **chunks;
    size_t chunks_count;
    size_t chunks_capacity;
    tail_number unused; /* the smallest number that was never used */
    tail_number free;   /* of entries that were used, by chain */
    /* Linear hashing: a bucket or two are cut in two for each new trace, so that no trace pays for
     * the growth of the whole table. */
    struct tail_seed seed;
    tail_number *buckets; /* address space for all that entries_max need */
    uint32_t buckets_count;
    uint32_t buckets_low; /* the power of two below */
    tail_number oldest;
    tail_number newest;
};

/* words: of the bits. entries_max: limit on entries. False: no address space. */
bool tail_traces_init(struct tail_traces *traces, size_t words, uint64_t entries_max,
                      struct budget *budget);
/* Frees all memory. */
void tail_traces_fini(struct tail_traces *traces);
/* Bytes that an entry takes, its place in the table included. */
size_t tail_traces_entry_bytes(size_t words);

struct tail_trace *tail_traces_at(const struct tail_traces *traces, tail_number number);
/* NULL: it is not kept. */
struct tail_trace *tail_traces_find(const struct tail_traces *traces,
                                    const uint8_t id[TAIL_TRACE_ID_BYTES]);
/* Fetches what tail_traces_find looks at: first the place in the table; then, is_near, the trace.
 */
void tail_traces_expect(const struct tail_traces *traces, const uint8_t id[TAIL_TRACE_ID_BYTES],
                        bool is_near);
/* Goes through a list some traces ahead of whoever takes its first trace again and again, and
 * fetches what is needed of each to decide, release and remove it. If one ahead leaves the list it
 * fetches something else. */
struct tail_ahead {
    tail_number next; /* 0: the list ends */
};
/* number: the first of the list, or 0. */
struct tail_ahead tail_ahead_of(const struct tail_traces *traces, const struct tail_slabs *slabs,
                                tail_number number);
/* Before each of its traces is taken. */
void tail_ahead_step(const struct tail_traces *traces, const struct tail_slabs *slabs,
                     struct tail_ahead *ahead);
/* Adds a trace that is not kept, zeroed, as the newest. There must be room. */
struct tail_trace *tail_traces_add(struct tail_traces *traces,
                                   const uint8_t id[TAIL_TRACE_ID_BYTES]);
/* It must be in no list and have no spans. */
void tail_traces_remove(struct tail_traces *traces, struct tail_trace *trace);

/* Appends to a list. */
void tail_list_push(struct tail_traces *traces, struct tail_list *list, struct tail_trace *trace);
void tail_list_take(struct tail_traces *traces, struct tail_list *list, struct tail_trace *trace);
/* Moves all of from to the end of list. */
void tail_list_join(struct tail_traces *traces, struct tail_list *list, struct tail_list *from);
