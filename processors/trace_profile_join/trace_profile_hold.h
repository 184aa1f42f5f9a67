/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that wait for spans: each with the spans that it waits for, oldest first. One per
 * instance of trace_profile_join; runs on its lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/join/profiles/pending_processes.h"

struct batch;
struct budget;
struct join_store;
struct profile_links;
struct link_key;

struct held {
    struct batch *batch; /* a reference; one part */
    uint64_t deadline_ns;
    struct link_key *missing;
    uint32_t missing_count;
    struct pending_processes pending;
    bool waits_for_all; /* a span that comes may still make another one the wrong choice */
    uint64_t overhead;  /* bytes charged to the budget beside the batch's own */
    struct held *next;
};

struct trace_profile_hold {
    struct join_store *store;
    struct budget *budget;
    struct held *first;
    struct held **end;
    struct held **next; /* where looking goes on */
    uint64_t count;
    uint64_t bytes;
    uint64_t arrivals;       /* of spans, before all were looked at that are held */
    uint64_t round_arrivals; /* the same for those before next */
};

/* What is held beside the profiles' bytes is charged to budget, beyond its limit if need be. */
void trace_profile_hold_init(struct trace_profile_hold *hold, struct join_store *store,
                             struct budget *budget);
/* Nothing may be held. */
void trace_profile_hold_fini(struct trace_profile_hold *hold);
/* Whether so many bytes more may be held, over all lanes; then they are taken until
 * trace_profile_hold_return. */
bool trace_profile_hold_try_take(struct trace_profile_hold *hold, uint64_t bytes);
/* The same for what may wait in vain: only if a small share is taken by all. */
bool trace_profile_hold_try_take_spare(struct trace_profile_hold *hold, uint64_t bytes);
void trace_profile_hold_return(struct trace_profile_hold *hold, uint64_t bytes);
/* The batch's bytes were taken. Takes the reference and the pending processes. links are those of
 * the batch; some are not found or not settled, or there are processes to wait for. */
void trace_profile_hold_add(struct trace_profile_hold *hold, struct batch *batch,
                            const struct profile_links *links, struct pending_processes *pending,
                            uint64_t deadline_ns);
/* The oldest one's batch, which is the caller's from now on; its bytes stay taken. */
struct batch *trace_profile_hold_pop(struct trace_profile_hold *hold);
/* Looks for what is missing, if there are new spans: the next one that misses nothing any more, to
 * be called until there is none; NULL: there is none, or *looks, which go down with each that is
 * looked at, are used up. The caller's as well. */
struct batch *trace_profile_hold_pop_complete(struct trace_profile_hold *hold, unsigned *looks);
