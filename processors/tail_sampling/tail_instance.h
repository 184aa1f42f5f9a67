/* SPDX-License-Identifier: Apache-2.0 */
/* The instance of tail_sampling, one per lane and pipeline, and what its files have of one another:
 * tail_sampling_processor.c begins and ends it and has its turns, tail_intake.c takes requests in,
 * tail_decisions.c decides, tail_release.c lets spans go, tail_counters.c counts. All run on its
 * lane. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "processors/tail_sampling/decision_cache.h"
#include "processors/tail_sampling/tail_mark.h"
#include "processors/tail_sampling/tail_policies.h"
#include "processors/tail_sampling/tail_sampling_config.h"
#include "processors/tail_sampling/tail_spans.h"
#include "processors/tail_sampling/tail_split.h"
#include "processors/tail_sampling/tail_traces.h"
#include "src/base/counter.h"
#include "src/base/lane.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/pipeline/downstream_retry.h"

struct join_store;
struct ring;
struct tail_output;

#define TAIL_TICK_NS ((uint64_t)NS_PER_S)

/* Why traces were decided before their time. */
enum tail_early { TAIL_EARLY_OVERFLOW, TAIL_EARLY_MEMORY, TAIL_EARLIES };
struct tail_counters {
    counter early_releases[2]; /* spans, by sampled: false, true */
    counter new_traces;
    struct histogram latency_ms;
    struct histogram late_span_s;
    counter errors;
    counter dropped_too_early;
    struct histogram removal_s;
    counter on_memory;
    counter too_large;
    counter decisions[TAIL_DECISIONS];
    counter earlies[TAIL_EARLIES];
}; /* A request of a pipeline with a journal, of which spans wait. */
struct tail_request {
    struct receipt *receipt;
    unsigned refs; /* of the fragments that wait, and while it is taken in */
    uint32_t skips;
    uint32_t skipped;
    bool is_joint;
};

struct tail {
    struct component base;
    const struct tail_sampling_config *config;
    struct tail_policies *policies;
    struct tail_policy_counters *policy_counters;
    unsigned lanes;
    struct tail **peers;      /* the instances of all lanes */
    _Atomic unsigned handing; /* of the first lane's: handovers under way, and what makes more */
    struct join_store *join;  /* of trace_profile_join in the same pipeline; NULL: none */
    bool is_stopping;
    bool blocks;         /* block_on_overflow, until the service begins to stop */
    bool records_policy; /* feature gates */
    bool counts_spans;
    bool counts_bytes;
    bool may_release_early; /* spans of traces that will be sampled need not wait */
    uint64_t traces_max;    /* this lane's part of num_traces */
    struct tail_slabs slabs;
    struct tail_traces traces;
    struct decision_cache *caches[2]; /* by sampled: false, true; or NULL */
    struct tail_split split;          /* for small requests */
    struct tail_split router;         /* takes requests apart by lane */
    /* A trace waits in the list of the tick that will decide it. A tick ends each second from the
     * start on; lists are used again, so there is one for each second of decision_wait and one
     * more. */
    uint64_t start_ns;
    uint64_t now_ns; /* of the request or the decisions at hand: the clock is not asked for each
                        trace */
    uint64_t ticks;  /* that have ended and were looked at */
    uint64_t wait_ticks;
    struct tail_list *lists;
    uint64_t low_tick; /* no earlier one has traces */
    uint32_t waiting_count;
    struct tail_list due;
    uint64_t due_since_ns; /* of the tick whose traces are being decided; 0: none */
    struct tail_list ready;
    struct downstream_retry downstream;
    struct tail_output *output; /* of the message of slabs; NULL: there is none */
    struct ring *outputs;       /* struct tail_output that wait for the next stage */
    struct ring *blocked;       /* struct blocked, oldest first */
    unsigned intakes;           /* large requests that are being read */
    struct timer timer;
    struct lane_job job;
};

struct tail *tail_of(struct component *component);
/* Does what there is to do now, and sees to it that the rest is done later. */
void tail_run(struct tail *self);

/* Counting: ages and times in nanoseconds. */
extern const struct counter_row tail_counter_rows[];
void tail_each_counter(const struct component *component, component_counter_fn add, void *arg);
void tail_note_latency(struct tail *self, uint64_t taken_ns);
void tail_note_late_span(struct tail *self, uint64_t age_ns);
void tail_note_removal(struct tail *self, uint64_t age_ns);

/* Letting go. */

/* A fragment of the request is kept; NULL is none. Returns it. */
struct tail_request *tail_request_keep(struct tail_request *request);
/* A fragment is done, or the request is taken in. NULL is a no-op. */
void tail_request_done(struct tail_request *request, const struct outcome *outcome);
/* These items are dropped. */
void tail_lose(struct tail *self, uint64_t items, const struct tail_request *request,
               enum loss_reason reason);
void tail_drop_spans(struct tail *self, struct tail_spans *spans, enum loss_reason reason);
/* Lets spans go on, with those of other traces until tail_flush. With a journal they are a message
 * for each set of destinations, and some may get a request again that others have. mark: who
 * sampled them, or NULL; it is written only if records_policy. */
void tail_release(struct tail *self, struct tail_spans *spans, const struct tail_mark *mark);
/* Offers the message that is being filled. */
void tail_flush(struct tail *self);
/* The slot of struct downstream_retry. */
void tail_on_output_end(struct downstream_batch *offered, const struct outcome *outcome);
/* Whether a trace may go on at once: nothing waits before it. */
bool tail_may_release(const struct tail *self);
/* Offers messages that wait, then traces that are ready. */
void tail_release_due(struct tail *self);

/* Deciding. */

uint64_t tail_cache_key(const uint8_t id[TAIL_TRACE_ID_BYTES]);
struct tail_facts tail_facts_of(const struct tail_trace *trace, const uint64_t *bits);
struct tail_now tail_now_of(const struct tail *self);
/* Tells the join what becomes of the trace, if there is one. */
void tail_tell(struct tail *self, const struct tail_trace *trace, bool is_sampled);
/* Puts the trace's decision into a cache, if there is one, and tells the join. */
void tail_remember(struct tail *self, const struct tail_trace *trace);
/* Its spans are gone: with a cache, or on an overflow, the trace is forgotten. */
void tail_settle(struct tail *self, struct tail_trace *trace);
/* Notes the decision about a trace that is in no list. */
void tail_finish(struct tail *self, struct tail_trace *trace, const struct tail_result *result);
/* Asks the policies about a trace that is in no list. */
void tail_decide(struct tail *self, struct tail_trace *trace);
/* Lets a ready trace go. */
void tail_release_ready(struct tail *self, struct tail_trace *trace);

/* Traces of ticks that have ended are due; on a stop all are. */
void tail_advance(struct tail *self, uint64_t now_ns);
/* Puts a trace into the list of its tick; on a stop it is due. */
void tail_wait(struct tail *self, struct tail_trace *trace);
/* Takes a trace that waits out of its list. */
void tail_leave_list(struct tail *self, struct tail_trace *trace);
/* Its root has arrived. */
void tail_on_root(struct tail *self, struct tail_trace *trace);

/* Before a trace is added. */
void tail_make_room_for_trace(struct tail *self);
/* While memory is short, traces are decided early. False: there is no room for so many bytes. */
bool tail_make_room_in_budget(struct tail *self, uint64_t bytes);

/* Taking in. */

void tail_take_in(struct tail *self, struct batch *batch, struct receipt *receipt);
/* The same, or keeps the request until traces have been decided (block_on_overflow). */
void tail_take_or_block(struct tail *self, struct batch *batch, struct receipt *receipt);
/* Takes in requests that were kept, while there is room, and as many as fit into a turn. True:
 * there is room for more. */
bool tail_take_blocked(struct tail *self);
/* With several lanes: hands spans over to the lanes that own their traces. */
void tail_route(struct tail *self, struct batch *batch, struct receipt *receipt);
