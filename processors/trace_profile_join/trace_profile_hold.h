/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of profiles that wait for spans, oldest first, each with what it waits for. One per
 * instance of trace_profile_join; runs on its lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/join/profiles/pending_processes.h"
#include "src/join/profiles/profile_links.h"

struct batch;
struct budget;
struct join_store;
struct receipt;

/* A request that waits; batch NULL: none. */
struct held_request {
    struct batch *batch;     /* a reference; one part */
    struct receipt *receipt; /* NULL: resolved already */
    struct link_set spans;   /* which it names, with those that were found; owned */
};

struct held {
    struct held_request request;
    uint64_t deadline_ns;
    uint32_t next_span; /* place of the one that is looked up next: those before it are there */
    struct pending_processes pending;
    bool
        waits_for_all; /* until the deadline: any span may change which one a sample gets by time */
    uint64_t overhead; /* bytes charged to the budget beside the batch's own */
    struct held *next;
};

struct trace_profile_hold {
    struct join_store *store;
    struct budget *budget;
    struct held *first;
    struct held **end;
    struct held **next; /* where the round of look-ups continues */
    uint64_t count;
    uint64_t bytes;
    uint64_t arrivals;       /* join_store_changes at the start of the last complete round */
    uint64_t round_arrivals; /* at the start of this round */
};

/* Memory besides the batches is charged to budget, beyond its limit if need be. */
void trace_profile_hold_init(struct trace_profile_hold *hold, struct join_store *store,
                             struct budget *budget);
/* Nothing may be held. */
void trace_profile_hold_fini(struct trace_profile_hold *hold);
/* Takes that many bytes of hold_bytes, which all lanes share, until trace_profile_hold_return.
 * False: there is no room for them. */
bool trace_profile_hold_try_take(struct trace_profile_hold *hold, uint64_t bytes);
/* The same within the share for requests that may wait in vain. */
bool trace_profile_hold_try_take_spare(struct trace_profile_hold *hold, uint64_t bytes);
void trace_profile_hold_return(struct trace_profile_hold *hold, uint64_t bytes);
/* Holds a request whose bytes were taken. Takes the reference and the pending processes, and the
 * spans out of links, which are those of the batch; it must have something to wait for. */
void trace_profile_hold_add(struct trace_profile_hold *hold, struct held_request request,
                            struct profile_links *links, struct pending_processes *pending,
                            uint64_t deadline_ns);
/* Removes the oldest request. Returns the reference and the spans; the bytes stay taken. */
struct held_request trace_profile_hold_pop(struct trace_profile_hold *hold);
/* The same with the next request that no longer waits for anything. Call it until it returns none:
 * there is none, nothing has come that they wait for, or *looks, decremented for each checked
 * request, is 0. */
struct held_request trace_profile_hold_pop_complete(struct trace_profile_hold *hold,
                                                    unsigned *looks);
