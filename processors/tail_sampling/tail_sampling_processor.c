/* SPDX-License-Identifier: Apache-2.0 */
/* tail_sampling: keeps the spans of each trace until its decision_wait is over, asks the policies,
 * and lets sampled traces go on, each as a message of its own. Policies are asked once, but as soon
 * as nothing that may still come can change what they will say, spans no longer wait. When there
 * are too many traces, or memory is short, the oldest is decided early; none is dropped unseen.
 * With several lanes a trace belongs to one of them: others hand its spans over to it. In a
 * pipeline with a journal requests are not settled before all their spans are.
 * Runs on its pipeline's lane. */
#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "processors/tail_sampling/decision_cache.h"
#include "processors/tail_sampling/tail_policies.h"
#include "processors/tail_sampling/tail_sampling_config.h"
#include "processors/tail_sampling/tail_spans.h"
#include "processors/tail_sampling/tail_split.h"
#include "processors/tail_sampling/tail_traces.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/ring.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/pipeline/downstream_retry.h"

enum {
    TURN_TRACES_MAX = 8192,   /* decided in one turn of the lane */
    EARLY_TRACES_MAX = 1024,  /* decided early for one request */
    OVERFLOW_TRACES = 1 << 20 /* with block_on_overflow: beyond num_traces, of requests taken */
};
#define TURN_WORK_NS ((uint64_t)5 * NS_PER_MS)
#define TICK_NS      ((uint64_t)NS_PER_S)
/* On a stop: how often a lane looks whether others still hand spans over. */
#define HANDOVER_LOOK_NS ((uint64_t)NS_PER_MS)

/* Why traces were decided before their time. */
enum early { EARLY_OVERFLOW, EARLY_MEMORY, EARLIES };

static const uint64_t latency_bounds[] = {1,    2,    5,    10,    25,    50,    75,   100,
                                          150,  200,  300,  400,   500,   750,   1000, 2000,
                                          3000, 4000, 5000, 10000, 20000, 30000, 50000};
static const uint64_t age_bounds[] = {0,   5,   10,   25,   50,   75,   100,  250,
                                      500, 750, 1000, 2500, 5000, 7500, 10000};
#define BOUNDS(bounds) bounds, sizeof(bounds) / sizeof((bounds)[0])

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
    counter earlies[EARLIES];
};

#define TAIL_METRIC "otelcol_processor_tail_sampling_"
#define TAIL_COUNTER(field, kind, name, text)                                                      \
    COUNTER(struct tail_counters, field, kind, TAIL_METRIC name, text)
#define TAIL_COUNTER_BY(field, metric, key, value, text)                                           \
    {                                                                                              \
        .name = (metric), .help = (text), .type = COUNTER_SUM,                                     \
        .offset = offsetof(struct tail_counters, field), .label = (key), .label_value = (value)    \
    }
#define EARLY_TEXT                                                                                 \
    "Number of traces that were decided before their time: num_traces was reached, or memory was " \
    "short"

static const struct counter_row tail_counter_rows[] = {
    TAIL_COUNTER_BY(early_releases[0], TAIL_METRIC "early_releases_from_cache_decision", "sampled",
                    "false",
                    "Number of spans that were able to be immediately released due to a decision "
                    "cache hit."),
    TAIL_COUNTER_BY(early_releases[1], TAIL_METRIC "early_releases_from_cache_decision", "sampled",
                    "true",
                    "Number of spans that were able to be immediately released due to a decision "
                    "cache hit."),
    TAIL_COUNTER(new_traces, COUNTER_SUM, "new_trace_id_received",
                 "Counts the arrival of new traces"),
    COUNTER_HISTOGRAM_ROW(struct tail_counters, latency_ms,
                          TAIL_METRIC "sampling_decision_timer_latency", latency_bounds,
                          METRICS_NONE,
                          "Latency (in milliseconds) of each run of the sampling decision timer"),
    COUNTER_HISTOGRAM_ROW(struct tail_counters, late_span_s, TAIL_METRIC "sampling_late_span_age",
                          age_bounds, METRICS_NONE,
                          "Time (in seconds) from the sampling decision was taken and the arrival "
                          "of a late span"),
    TAIL_COUNTER(errors, COUNTER_SUM, "sampling_policy_evaluation_error",
                 "Count of sampling policy evaluation errors"),
    TAIL_COUNTER(
        dropped_too_early, COUNTER_SUM, "sampling_trace_dropped_too_early",
        "Count of traces that needed to be dropped before the configured wait time: always "
        "0 here, where they are decided early instead"),
    COUNTER_HISTOGRAM_ROW(struct tail_counters, removal_s, TAIL_METRIC "sampling_trace_removal_age",
                          age_bounds, METRICS_NONE,
                          "Time (in seconds) from arrival of a new trace until its removal from "
                          "memory"),
    TAIL_COUNTER(on_memory, COUNTER_GAUGE, "sampling_traces_on_memory",
                 "Tracks the number of traces current on memory"),
    TAIL_COUNTER(too_large, COUNTER_SUM, "traces_dropped_too_large",
                 "Count of traces that were dropped because they were too large"),
    TAIL_COUNTER_BY(earlies[EARLY_OVERFLOW], "spanflame_tail_sampling_early_decisions", "reason",
                    "num_traces", EARLY_TEXT),
    TAIL_COUNTER_BY(earlies[EARLY_MEMORY], "spanflame_tail_sampling_early_decisions", "reason",
                    "memory", EARLY_TEXT),
    COUNTER_END,
};

/* A request of a pipeline with a journal, of which spans wait. */
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
    bool is_stopping;
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
    uint64_t ticks; /* that have ended and were looked at */
    uint64_t wait_ticks;
    struct tail_list *lists;
    uint64_t low_tick; /* no earlier one has traces */
    uint32_t waiting_count;
    struct tail_list due;
    uint64_t due_since_ns; /* of the tick whose traces are being decided; 0: none */
    struct tail_list ready;
    struct downstream_retry downstream;
    struct ring *outputs; /* struct tail_output that wait for the next stage */
    struct ring *blocked; /* struct blocked, oldest first */
    unsigned intakes;     /* large requests that are being read */
    struct timer timer;
    struct lane_job job;
};

/* A message on its way to the next stage. */
struct tail_output {
    struct downstream_batch offered;
    size_t requests_count;
    struct tail_request *requests[]; /* one for each fragment, with a journal */
};

/* A request that waits for room (block_on_overflow). */
struct blocked {
    struct batch *batch;
    struct receipt *receipt;
};

/* A request while it is taken in. */
struct intake {
    struct tail *self;
    struct batch_part whole; /* a reference */
    struct receipt *receipt;
    struct tail_request *request; /* with a journal */
    struct batch *model;          /* with several lanes: of the parts; a reference */
    bool waits;                   /* the receipt waits for the parts */
    struct lane_job job;
    struct tail_split split; /* of a large one */
};

/* Spans on their way to the lane that owns their traces. */
struct handover {
    struct lane_task task; /* first */
    struct tail *from;
    struct tail *to;
    struct batch *batch;
    bool has_receipt;
    struct receipt receipt;   /* on the other lane */
    struct receipt *upstream; /* on the first lane */
    struct outcome outcome;   /* owns its strings */
};

extern const struct component_factory tail_sampling_processor_factory;

static struct tail *tail_of(struct component *component)
{
    assert(component->factory == &tail_sampling_processor_factory);
    return (struct tail *)component;
}

static void run(struct tail *self);
static void take_or_block(struct tail *self, struct batch *batch, struct receipt *receipt);

/* --- requests --- */

static void request_done(struct tail_request *request, const struct outcome *outcome)
{
    if (request == NULL)
        return;
    struct receipt *receipt = request->receipt;
    assert(request->refs > 0);
    if (--request->refs == 0)
        mem_free(request);
    receipt_resolve(receipt, outcome);
}

/* A fragment of it is kept. */
static struct tail_request *request_keep(struct tail_request *request)
{
    if (request == NULL)
        return NULL;
    receipt_expect(request->receipt, 1);
    request->refs++;
    return request;
}

static unsigned exporters_of(const struct tail *self, const struct tail_request *request)
{
    unsigned skipped = request != NULL ? request->skipped : 0;
    assert(skipped < self->base.exporters);
    return self->base.exporters - skipped;
}

static void lose(struct tail *self, uint64_t items, const struct tail_request *request,
                 enum loss_reason reason)
{
    ledger_lose(self->base.ledger, TRACES, items * exporters_of(self, request), reason, false);
}

struct drop {
    struct tail *self;
    enum loss_reason reason;
};

static void drop_fragment(const struct tail_slabs *slabs, const struct tail_fragment *fragment,
                          void *arg)
{
    const struct drop *drop = arg;
    assert(slabs == &drop->self->slabs);
    lose(drop->self, fragment->items, fragment->request, drop->reason);
    request_done(fragment->request, &outcome_accepted);
}

static void drop_spans(struct tail *self, struct tail_spans *spans, enum loss_reason reason)
{
    struct drop drop = {.self = self, .reason = reason};
    tail_spans_each(&self->slabs, spans, drop_fragment, &drop);
    tail_spans_clear(&self->slabs, spans);
}

/* --- letting go --- */

static void on_output_end(struct downstream_batch *offered, const struct outcome *outcome)
{
    struct tail_output *output = (struct tail_output *)offered;
    struct tail *self = tail_of(offered->owner->component);
    size_t bytes = sizeof(*output) + output->requests_count * sizeof(output->requests[0]) +
                   sizeof(*offered->batch);
    assert(outcome->verdict != REFUSED);
    for (size_t i = 0; i < output->requests_count; i++)
        request_done(output->requests[i], outcome);
    batch_unref(offered->batch);
    mem_free(output);
    budget_return(self->base.budget, bytes);
}

static void offer(struct tail *self, struct tail_output *output)
{
    if (ring_depth(self->outputs) > 0 || downstream_is_blocked(&self->downstream))
        ring_push(self->outputs, output);
    else
        downstream_offer(&self->downstream, &output->offered);
}

/* What fragments of a trace have in common, so that they go on together. */
struct gather {
    uint32_t skips;
    bool is_first; /* no fragment has been seen: skips is set by it */
    bool has_more; /* some have other skips */
    uint32_t done_count;
    uint32_t done[32]; /* skips that went on already */
    size_t fragments;
    struct batch *batch;
    struct tail_output *output;
    bool is_joint;
    uint32_t skipped;
};

static bool is_done(const struct gather *gather, uint32_t skips)
{
    for (uint32_t i = 0; i < gather->done_count; i++)
        if (gather->done[i] == skips)
            return true;
    return false;
}

static void count_fragment(const struct tail_slabs *slabs, const struct tail_fragment *fragment,
                           void *arg)
{
    struct gather *gather = arg;
    const struct tail_request *request = fragment->request;
    uint32_t skips = request != NULL ? request->skips : 0;
    assert(slabs != NULL);
    if (is_done(gather, skips))
        return;
    if (gather->is_first) {
        gather->is_first = false;
        gather->skips = skips;
        gather->skipped = request != NULL ? request->skipped : 0;
    }
    if (skips != gather->skips) {
        gather->has_more = true;
        return;
    }
    gather->fragments++;
    gather->is_joint |= request != NULL && request->is_joint;
}

static void gather_fragment(const struct tail_slabs *slabs, const struct tail_fragment *fragment,
                            void *arg)
{
    struct gather *gather = arg;
    struct tail_output *output = gather->output;
    if ((fragment->request != NULL ? fragment->request->skips : 0) != gather->skips)
        return;
    tail_fragment_append(slabs, fragment, gather->batch);
    gather->batch->items += fragment->items;
    if (fragment->request != NULL)
        output->requests[output->requests_count++] = fragment->request;
}

/* Lets spans go on, as one message for each set of destinations; with a journal some may get a
 * request again that others have. */
static void release(struct tail *self, struct tail_spans *spans)
{
    struct gather gather = {.done_count = 0};
    do {
        gather.is_first = true;
        gather.has_more = false;
        gather.is_joint = false;
        gather.fragments = 0;
        tail_spans_each(&self->slabs, spans, count_fragment, &gather);
        if (gather.fragments == 0)
            break;
        size_t requests = self->base.is_journaled ? gather.fragments : 0;
        size_t bytes = sizeof(struct tail_output) + requests * sizeof(struct tail_request *);
        budget_take(self->base.budget, bytes + sizeof(struct batch));
        gather.output = mem_zalloc(bytes);
        gather.batch = batch_create(TRACES, gather.fragments);
        gather.batch->is_acknowledged = true;
        gather.batch->is_joint = gather.is_joint;
        gather.batch->skips = gather.skips;
        gather.batch->skipped = gather.skipped;
        tail_spans_each(&self->slabs, spans, gather_fragment, &gather);
        gather.output->offered.batch = gather.batch;
        offer(self, gather.output);
        gather.done[gather.done_count++] = gather.skips;
    } while (gather.has_more && gather.done_count < 32);
    tail_spans_clear(&self->slabs, spans);
}

/* --- decisions --- */

static void forget(struct tail *self, struct tail_trace *trace)
{
    struct tail_counters *counters = self->base.counters;
    histogram_record(&counters->removal_s, BOUNDS(age_bounds),
                     (clock_now_ns() - trace->arrival_ns) / NS_PER_S);
    tail_traces_remove(&self->traces, trace);
}

static uint64_t cache_key(const uint8_t *id)
{
    uint64_t key;
    memcpy(&key, id + TAIL_TRACE_ID_BYTES - sizeof(key), sizeof(key));
    return key;
}

static void remember(struct tail *self, const struct tail_trace *trace)
{
    struct decision_cache *cache = self->caches[trace->decision == TAIL_SAMPLED];
    if (cache != NULL)
        decision_cache_put(cache, cache_key(trace->id), trace->policy);
}

/* Its spans are gone: with a cache, or on an overflow, the trace is forgotten. */
static void settle(struct tail *self, struct tail_trace *trace)
{
    trace->state = TAIL_DECIDED;
    if (self->caches[trace->decision == TAIL_SAMPLED] != NULL || trace->is_evicted)
        forget(self, trace);
}

/* The trace is in no list. */
static void finish(struct tail *self, struct tail_trace *trace, enum tail_decision decision,
                   const struct tail_policy *policy)
{
    assert(decision != TAIL_UNDECIDED);
    trace->decision = decision;
    trace->policy = policy != NULL ? (uint16_t)(policy - self->policies->items + 1) : 0;
    trace->decided_ns = clock_now_ns();
    remember(self, trace);
    if (decision != TAIL_SAMPLED)
        drop_spans(self, &trace->spans, LOSS_UNWANTED);
    if (tail_spans_are_none(&trace->spans)) {
        settle(self, trace);
        return;
    }
    trace->state = TAIL_READY;
    tail_list_push(&self->traces, &self->ready, trace);
}

static void release_ready(struct tail *self, struct tail_trace *trace)
{
    assert(trace->state == TAIL_READY);
    tail_list_take(&self->traces, &self->ready, trace);
    release(self, &trace->spans);
    settle(self, trace);
}

static struct tail_facts facts_of(const struct tail_trace *trace, const uint64_t *bits)
{
    return (struct tail_facts){
        .bits = bits,
        .spans = trace->spans_count,
        .bytes = trace->bytes,
        .request_bytes = trace->bytes + trace->header_bytes,
    };
}

static struct tail_now now_of(const struct tail *self)
{
    if (!self->policies->has_limits)
        return (struct tail_now){.ns = 0};
    return (struct tail_now){.ns = clock_now_ns(), .wall_ns = clock_wall_ns()};
}

/* Asks the policies about a trace that is in no list. */
static void decide(struct tail *self, struct tail_trace *trace)
{
    struct tail_counters *counters = self->base.counters;
    struct tail_facts facts = facts_of(trace, trace->bits);
    struct tail_now now = now_of(self);
    struct tail_result result = {.decision = TAIL_NOT_SAMPLED};
    assert(trace->state == TAIL_WAITS);
    if (self->config->strategy == TAIL_TRACE_COMPLETE)
        result = tail_policies_decide(self->policies, &facts, &now, self->policy_counters);
    counter_add(&counters->decisions[result.decision - 1], 1);
    assert(trace->outlook != TAIL_WILL_SAMPLE || result.decision == TAIL_SAMPLED);
    assert(trace->outlook != TAIL_WILL_NOT_SAMPLE || result.decision != TAIL_SAMPLED);
    if (self->config->strategy == TAIL_SPAN_INGEST)
        trace->is_evicted = true;
    finish(self, trace, result.decision, result.policy);
}

/* --- ticks --- */

static struct tail_list *list_of(struct tail *self, uint64_t tick)
{
    assert(tick >= self->ticks && tick <= self->ticks + self->wait_ticks);
    return &self->lists[tick % (self->wait_ticks + 1)];
}

/* Ticks that have ended by now. */
static uint64_t ticks_of(const struct tail *self, uint64_t now_ns)
{
    return (now_ns - self->start_ns) / TICK_NS;
}

/* Traces of ticks that have ended are due; on a stop all are. */
static void advance(struct tail *self, uint64_t now_ns)
{
    uint64_t ended = ticks_of(self, now_ns);
    uint64_t looks = self->wait_ticks + 1;
    uint32_t due = self->due.count;
    for (uint64_t tick = self->ticks; looks > 0 && (tick < ended || self->is_stopping); tick++) {
        struct tail_list *list = &self->lists[tick % (self->wait_ticks + 1)];
        self->waiting_count -= list->count;
        tail_list_join(&self->traces, &self->due, list);
        looks--;
    }
    if (self->ticks < ended)
        self->ticks = ended;
    if (self->low_tick < self->ticks)
        self->low_tick = self->ticks;
    if (self->due.count > due && self->due_since_ns == 0)
        self->due_since_ns = now_ns;
}

static void wait_for_tick(struct tail *self, struct tail_trace *trace, uint64_t tick)
{
    trace->tick = (uint32_t)tick;
    tail_list_push(&self->traces, list_of(self, tick), trace);
    self->waiting_count++;
    if (tick < self->low_tick)
        self->low_tick = tick;
}

/* The tick of a trace that waits, of which it has the low bits; UINT64_MAX: it is due. */
static uint64_t tick_of(const struct tail *self, const struct tail_trace *trace)
{
    uint64_t tick = self->ticks + (uint32_t)(trace->tick - (uint32_t)self->ticks);
    return tick <= self->ticks + self->wait_ticks ? tick : UINT64_MAX;
}

/* Takes a trace that waits out of its list. */
static void leave_list(struct tail *self, struct tail_trace *trace)
{
    uint64_t tick = tick_of(self, trace);
    assert(trace->state == TAIL_WAITS);
    if (tick == UINT64_MAX || self->is_stopping) {
        tail_list_take(&self->traces, &self->due, trace);
        return;
    }
    tail_list_take(&self->traces, list_of(self, tick), trace);
    self->waiting_count--;
}

static void on_root(struct tail *self, struct tail_trace *trace)
{
    uint64_t wait_ns = self->config->decision_wait_after_root_received_ns;
    uint64_t tick = tick_of(self, trace);
    uint64_t wanted = self->ticks + wait_ns / NS_PER_S;
    if (wait_ns == 0 || tick == UINT64_MAX || self->is_stopping || wanted >= tick)
        return;
    leave_list(self, trace);
    wait_for_tick(self, trace, wanted);
}

/* --- too many --- */

/* The trace that has waited longest, or NULL. */
static struct tail_trace *longest_waiting(struct tail *self)
{
    if (self->due.first != 0)
        return tail_traces_at(&self->traces, self->due.first);
    while (self->waiting_count > 0) {
        assert(self->low_tick <= self->ticks + self->wait_ticks);
        struct tail_list *list = list_of(self, self->low_tick);
        if (list->first != 0)
            return tail_traces_at(&self->traces, list->first);
        self->low_tick++;
    }
    return NULL;
}

static void decide_early(struct tail *self, struct tail_trace *trace, enum early why)
{
    struct tail_counters *counters = self->base.counters;
    counter_add(&counters->earlies[why], 1);
    leave_list(self, trace);
    decide(self, trace);
}

/* Forgets the oldest trace; one that waits is decided first. */
static void evict(struct tail *self)
{
    struct tail_trace *trace = tail_traces_at(&self->traces, self->traces.oldest);
    tail_number number = trace->number;
    trace->is_evicted = true;
    if (trace->state == TAIL_WAITS)
        decide_early(self, trace, EARLY_OVERFLOW); /* which may forget it */
    if (trace->number != number)
        return;
    if (trace->state == TAIL_READY)
        release_ready(self, trace);
    else if (trace->state == TAIL_DECIDED)
        forget(self, trace);
}

static void make_room_for_trace(struct tail *self)
{
    while (self->traces.count >= self->traces_max) {
        const struct tail_trace *oldest = tail_traces_at(&self->traces, self->traces.oldest);
        bool may_wait = self->config->block_on_overflow && oldest->state != TAIL_DECIDED;
        if (may_wait && self->traces.count < self->traces.entries_max)
            return;
        evict(self);
    }
}

static bool is_short_of_memory(const struct tail *self, uint64_t bytes)
{
    const struct budget *budget = self->base.budget;
    uint64_t limit = budget_limit(budget);
    return budget_used(budget) > limit - limit / 4 || !budget_has_room(budget, bytes);
}

/* While memory is short, traces are decided early. False: there is no room for so many bytes. */
static bool make_room_in_budget(struct tail *self, uint64_t bytes)
{
    for (unsigned i = 0; i < EARLY_TRACES_MAX && is_short_of_memory(self, bytes); i++) {
        struct tail_trace *trace = longest_waiting(self);
        if (trace == NULL)
            break;
        decide_early(self, trace, EARLY_MEMORY);
        while (self->ready.first != 0 && !downstream_is_blocked(&self->downstream))
            release_ready(self, tail_traces_at(&self->traces, self->ready.first));
        tail_slabs_rest(&self->slabs);
    }
    return budget_has_room(self->base.budget, bytes);
}

/* --- arriving spans --- */

static void begin_group(struct tail_group *group, uint64_t *bits, void *arg)
{
    const struct intake *intake = arg;
    struct tail *self = intake->self;
    (void)bits;
    group->trace = tail_traces_find(&self->traces, group->id);
    const struct tail_trace *trace = group->trace;
    if (trace == NULL || trace->state != TAIL_WAITS || self->config->strategy == TAIL_SPAN_INGEST)
        return;
    group->min_ns = trace->min_ns;
    group->max_ns = trace->max_ns;
}

static struct tail_trace *add_trace(struct tail *self, const struct tail_group *group)
{
    struct tail_counters *counters = self->base.counters;
    make_room_for_trace(self);
    struct tail_trace *trace = tail_traces_add(&self->traces, group->id);
    trace->arrival_ns = clock_now_ns();
    counter_add(&counters->new_traces, 1);
    tail_policies_begin(self->policies, group->id, trace->bits);
    if (!self->is_stopping) {
        wait_for_tick(self, trace, self->ticks + self->wait_ticks);
    } else {
        trace->tick = (uint32_t)self->ticks - 1;
        tail_list_push(&self->traces, &self->due, trace);
    }
    return trace;
}

/* Spans of a trace that will be sampled, whatever comes, and of one that will not, wait no longer;
 * the decision itself has its time. */
static void take_waiting(struct intake *intake, struct tail_split *split,
                         const struct tail_group *group, struct tail_trace *trace)
{
    struct tail *self = intake->self;
    if (trace->outlook == TAIL_OPEN) {
        struct tail_facts facts = facts_of(trace, trace->bits);
        trace->outlook = tail_policies_outlook(self->policies, &facts);
        if (trace->outlook == TAIL_WILL_SAMPLE && !self->may_release_early)
            trace->outlook = TAIL_OPEN;
        if (trace->outlook == TAIL_WILL_NOT_SAMPLE)
            drop_spans(self, &trace->spans, LOSS_UNWANTED);
    }
    if (trace->outlook == TAIL_WILL_NOT_SAMPLE) {
        lose(self, group->spans, intake->request, LOSS_UNWANTED);
        return;
    }
    tail_group_store(split, group, &trace->spans, request_keep(intake->request));
    if (trace->outlook == TAIL_WILL_SAMPLE)
        release(self, &trace->spans);
}

/* With span-ingest: asks about these spans alone. */
static void take_part(struct intake *intake, struct tail_split *split,
                      const struct tail_group *group, uint64_t *bits, struct tail_trace *trace)
{
    struct tail *self = intake->self;
    struct tail_counters *counters = self->base.counters;
    struct tail_facts facts = facts_of(trace, bits);
    struct tail_now now = now_of(self);
    tail_policies_begin(self->policies, group->id, bits);
    struct tail_result result =
        tail_policies_decide_part(self->policies, &facts, &now, self->policy_counters);
    histogram_record(&counters->latency_ms, BOUNDS(latency_bounds), 0);
    trace->decided_ns = clock_now_ns();
    if (result.decision != TAIL_DROPPED)
        tail_group_store(split, group, &trace->spans, request_keep(intake->request));
    else
        lose(self, group->spans, intake->request, LOSS_UNWANTED);
    if (result.decision == TAIL_UNDECIDED)
        return;
    counter_add(&counters->decisions[result.decision - 1], 1);
    leave_list(self, trace);
    finish(self, trace, result.decision, result.policy);
}

static void take_late(struct intake *intake, struct tail_split *split,
                      const struct tail_group *group, struct tail_trace *trace)
{
    struct tail *self = intake->self;
    struct tail_counters *counters = self->base.counters;
    if (trace->decided_ns != 0)
        histogram_record(&counters->late_span_s, BOUNDS(age_bounds),
                         (clock_now_ns() - trace->decided_ns) / NS_PER_S);
    if (trace->decision != TAIL_SAMPLED) {
        lose(self, group->spans, intake->request, LOSS_UNWANTED);
        return;
    }
    tail_group_store(split, group, &trace->spans, request_keep(intake->request));
    if (trace->state == TAIL_DECIDED)
        release(self, &trace->spans);
}

/* The trace is dropped for its size, with these spans, without asking the policies. */
static void drop_large(struct intake *intake, const struct tail_group *group,
                       struct tail_trace *trace)
{
    struct tail *self = intake->self;
    struct tail_counters *counters = self->base.counters;
    counter_add(&counters->too_large, 1);
    lose(self, group->spans, intake->request, LOSS_UNWANTED);
    drop_spans(self, &trace->spans, LOSS_UNWANTED);
    leave_list(self, trace);
    trace->decision = TAIL_NOT_SAMPLED;
    if (self->config->strategy == TAIL_TRACE_COMPLETE)
        trace->decided_ns = 0;
    remember(self, trace);
    settle(self, trace);
}

/* Whether the decision is remembered: then nothing waits. */
static bool take_remembered(struct intake *intake, struct tail_split *split,
                            const struct tail_group *group)
{
    struct tail *self = intake->self;
    struct tail_counters *counters = self->base.counters;
    uint64_t key = cache_key(group->id);
    uint16_t policy;
    if (self->caches[true] != NULL && decision_cache_get(self->caches[true], key, &policy)) {
        struct tail_spans spans = {.last = {.slab = 0}};
        tail_group_store(split, group, &spans, request_keep(intake->request));
        release(self, &spans);
        counter_add(&counters->early_releases[true], group->spans);
        return true;
    }
    if (self->caches[false] == NULL || !decision_cache_get(self->caches[false], key, &policy))
        return false;
    lose(self, group->spans, intake->request, LOSS_UNWANTED);
    counter_add(&counters->early_releases[false], group->spans);
    return true;
}

static void take_group(struct tail_split *split, struct tail_group *group, uint64_t *bits,
                       void *arg)
{
    struct intake *intake = arg;
    struct tail *self = intake->self;
    struct tail_trace *trace = group->trace;
    if (take_remembered(intake, split, group))
        return;
    /* Other groups may have made it, or have let it go. */
    if (trace == NULL || trace->number == 0 ||
        memcmp(trace->id, group->id, TAIL_TRACE_ID_BYTES) != 0)
        trace = tail_traces_find(&self->traces, group->id);
    if (trace == NULL)
        trace = add_trace(self, group);
    bool is_waiting = trace->state == TAIL_WAITS;
    uint64_t bytes = tail_group_bytes(split, group);
    trace->spans_count += group->spans;
    trace->bytes += bytes;
    trace->header_bytes += (uint32_t)(wire_field_size(1, (size_t)bytes) - bytes);
    if (is_waiting && group->has_root)
        on_root(self, trace);
    uint64_t bytes_max = self->config->maximum_trace_size_bytes;
    if (is_waiting && bytes_max > 0 && trace->bytes > bytes_max) {
        drop_large(intake, group, trace);
    } else if (!is_waiting) {
        take_late(intake, split, group, trace);
    } else if (self->config->strategy == TAIL_SPAN_INGEST) {
        take_part(intake, split, group, bits, trace);
    } else {
        trace->min_ns = group->min_ns;
        trace->max_ns = group->max_ns;
        for (size_t i = 0; i < self->policies->words; i++)
            trace->bits[i] |= bits[i];
        take_waiting(intake, split, group, trace);
    }
}

/* --- several lanes --- */

static void on_handed_back(struct lane_task *task)
{
    struct handover *handover = (struct handover *)task;
    receipt_resolve(handover->upstream, &handover->outcome);
    mem_free((void *)(uintptr_t)handover->outcome.message);
    mem_free((void *)(uintptr_t)handover->outcome.details.data);
    mem_free(handover);
}

static void on_handed(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct handover *handover = arg;
    assert(receipt == &handover->receipt);
    handover->outcome = *outcome;
    if (outcome->message != NULL)
        handover->outcome.message = mem_copy_text(outcome->message);
    if (outcome->details.size > 0)
        handover->outcome.details =
            slice_of(mem_copy(outcome->details.data, outcome->details.size), outcome->details.size);
    handover->task.fn = on_handed_back;
    lane_post(handover->from->base.lane, &handover->task);
}

static void on_handover(struct lane_task *task)
{
    struct handover *handover = (struct handover *)task;
    struct tail *self = handover->to;
    struct batch *batch = handover->batch;
    struct receipt *receipt = NULL;
    ledger_take_over(self->base.ledger, TRACES,
                     batch->items * component_exporters(&self->base, batch));
    if (handover->upstream != NULL) {
        receipt = &handover->receipt;
        receipt_init(receipt, on_handed, handover);
    } else {
        mem_free(handover);
    }
    take_or_block(self, batch, receipt);
    batch_unref(batch);
    atomic_fetch_sub(&self->peers[0]->handing, 1);
    run(self);
}

static void begin_route(struct tail_group *group, uint64_t *bits, void *arg)
{
    (void)group;
    (void)bits;
    (void)arg;
}

/* The part of a request that belongs to one lane. */
static void take_route(struct tail_split *split, struct tail_group *group, uint64_t *bits,
                       void *arg)
{
    struct intake *intake = arg;
    struct tail *self = intake->self;
    struct tail *owner = self->peers[group->id[0]];
    size_t count;
    uint64_t bytes;
    const struct tail_piece *pieces = tail_group_pieces(split, group, false, &count, &bytes);
    struct buffer *buffer = buffer_create(self->base.budget, (size_t)bytes);
    (void)bits;
    for (size_t i = 0; i < count; i++) {
        memcpy(buffer->data + buffer->size, pieces[i].bytes.data, pieces[i].bytes.size);
        buffer->size += pieces[i].bytes.size;
    }
    struct batch *part = batch_create_like(intake->model, 1);
    batch_append(part, buffer, buffer_slice(buffer));
    buffer_unref(buffer);
    part->items = group->spans;
    part->is_acknowledged = true;
    if (intake->waits)
        receipt_expect(intake->receipt, 1);
    if (owner == self) {
        take_or_block(self, part, intake->waits ? intake->receipt : NULL);
        batch_unref(part);
        return;
    }
    struct handover *handover = mem_zalloc(sizeof(*handover));
    handover->task.fn = on_handover;
    handover->from = self;
    handover->to = owner;
    handover->batch = part;
    handover->upstream = intake->waits ? intake->receipt : NULL;
    ledger_hand_over(self->base.ledger, TRACES,
                     part->items * component_exporters(&self->base, part));
    atomic_fetch_add(&self->peers[0]->handing, 1);
    lane_post(owner->base.lane, &handover->task);
}

/* --- taking in --- */

static void end_intake(struct intake *intake)
{
    buffer_unref(intake->whole.owner);
    if (intake->request != NULL)
        request_done(intake->request, &outcome_accepted);
    else
        receipt_resolve(intake->receipt, &outcome_accepted);
    batch_unref(intake->model);
}

static struct tail_taker taker_of(struct intake *intake)
{
    if (intake->model != NULL)
        return (struct tail_taker){.begin = begin_route, .take = take_route, .arg = intake};
    return (struct tail_taker){.begin = begin_group, .take = take_group, .arg = intake};
}

static void on_intake(void *arg)
{
    struct intake *intake = arg;
    struct tail *self = intake->self;
    const struct tail_taker taker = taker_of(intake);
    lane_rest(self->base.lane);
    advance(self, clock_now_ns());
    if (!tail_split_step(&intake->split, &taker)) {
        lane_defer(self->base.lane, &intake->job);
        return;
    }
    bool is_route = intake->model != NULL;
    tail_split_fini(&intake->split);
    end_intake(intake);
    mem_free(intake);
    self->intakes--;
    if (is_route)
        atomic_fetch_sub(&self->peers[0]->handing, 1);
    run(self);
}

/* Takes a request apart, at once or, a large one, in several turns. */
static void begin_intake(struct intake *intake, struct tail_split *split, uint64_t items)
{
    struct tail *self = intake->self;
    if (items <= TAIL_STEP_SPANS_MAX) {
        const struct tail_taker taker = taker_of(intake);
        tail_split_begin(split, intake->whole.bytes);
        while (!tail_split_step(split, &taker))
            ;
        end_intake(intake);
        return;
    }
    struct intake *large = mem_alloc(sizeof(*large));
    *large = *intake;
    large->job = (struct lane_job){.fn = on_intake, .arg = large};
    tail_split_init(&large->split, self->policies, &self->slabs, split->lanes, self->base.budget);
    tail_split_begin(&large->split, large->whole.bytes);
    self->intakes++;
    if (large->model != NULL)
        atomic_fetch_add(&self->peers[0]->handing, 1);
    lane_defer(self->base.lane, &large->job);
}

/* The request in one piece. False: it was refused. */
static bool open_intake(struct tail *self, struct batch *batch, struct receipt *receipt,
                        struct intake *ret_intake)
{
    /* Beside its bytes, for what is kept for each trace. */
    uint64_t room = batch->bytes + batch->bytes / 2;
    bool has_room = make_room_in_budget(self, room);
    *ret_intake = (struct intake){.self = self, .receipt = receipt};
    if (batch->bytes > UINT32_MAX / 2) {
        struct outcome outcome = outcome_too_large("the request is too large for tail_sampling");
        if (batch->is_acknowledged) {
            outcome.verdict = LOST;
            ledger_drop(self->base.ledger, batch, LOSS_TOO_LARGE,
                        component_exporters(&self->base, batch));
        }
        receipt_resolve(receipt, &outcome);
        return false;
    }
    if ((has_room || batch->is_acknowledged) &&
        batch_join(batch, batch->is_acknowledged ? NULL : self->base.budget, &ret_intake->whole))
        return true;
    struct outcome outcome = outcome_busy("the memory budget has no room for more traces");
    outcome.reason = LOSS_MEMORY;
    if (batch->is_acknowledged) {
        outcome.verdict = LOST;
        ledger_drop(self->base.ledger, batch, LOSS_MEMORY, component_exporters(&self->base, batch));
    }
    receipt_resolve(receipt, &outcome);
    return false;
}

static void take_in(struct tail *self, struct batch *batch, struct receipt *receipt)
{
    struct intake intake;
    if (!open_intake(self, batch, receipt, &intake))
        return;
    if (self->base.is_journaled) {
        intake.request = mem_alloc(sizeof(*intake.request));
        *intake.request = (struct tail_request){.receipt = receipt,
                                                .refs = 1,
                                                .skips = batch->skips,
                                                .skipped = batch->skipped,
                                                .is_joint = batch->is_joint};
    }
    advance(self, clock_now_ns());
    begin_intake(&intake, &self->split, batch->items);
}

static void route(struct tail *self, struct batch *batch, struct receipt *receipt)
{
    struct intake intake;
    if (!open_intake(self, batch, receipt, &intake))
        return;
    intake.model = batch_ref(batch);
    intake.waits = self->base.is_journaled || self->config->block_on_overflow;
    begin_intake(&intake, &self->router, batch->items);
}

/* Whether a request has to wait until traces have been decided. */
static bool is_full(const struct tail *self)
{
    return self->config->block_on_overflow && !self->is_stopping &&
           self->waiting_count + self->due.count + self->ready.count >= self->traces_max;
}

static void take_or_block(struct tail *self, struct batch *batch, struct receipt *receipt)
{
    if (ring_depth(self->blocked) == 0 && !is_full(self)) {
        take_in(self, batch, receipt);
        return;
    }
    struct blocked *blocked = mem_alloc(sizeof(*blocked));
    *blocked = (struct blocked){.batch = batch_ref(batch), .receipt = receipt};
    ring_push(self->blocked, blocked);
}

/* --- turns --- */

static void show(struct tail *self)
{
    struct tail_counters *counters = self->base.counters;
    counter_set(&counters->on_memory, self->traces.count);
}

static void release_due(struct tail *self)
{
    while (!downstream_is_blocked(&self->downstream)) {
        struct tail_output *output = ring_pop(self->outputs);
        if (output != NULL)
            downstream_offer(&self->downstream, &output->offered);
        else if (self->ready.first != 0)
            release_ready(self, tail_traces_at(&self->traces, self->ready.first));
        else
            break;
    }
}

static void decide_due(struct tail *self)
{
    struct tail_counters *counters = self->base.counters;
    uint64_t until_ns = clock_now_ns() + TURN_WORK_NS;
    uint64_t begin_ns = clock_now_ns();
    uint64_t executions = 0;
    unsigned left = TURN_TRACES_MAX;
    while (self->due.first != 0 && left > 0 && clock_now_ns() < until_ns) {
        struct tail_trace *trace = tail_traces_at(&self->traces, self->due.first);
        tail_list_take(&self->traces, &self->due, trace);
        if (self->is_stopping && self->config->drop_pending_traces_on_shutdown) {
            trace->is_evicted = true;
            trace->decision = TAIL_NOT_SAMPLED;
            drop_spans(self, &trace->spans, LOSS_SHUTDOWN);
            settle(self, trace);
        } else {
            decide(self, trace);
        }
        executions++;
        left--;
    }
    if (executions > 0 && self->policies->count > 0) {
        uint64_t each_ns = (clock_now_ns() - begin_ns) / self->policies->count;
        for (size_t i = 0; i < self->policies->count; i++)
            counter_add(&self->policy_counters[i].execution_ns, each_ns);
    }
    if (self->due.first == 0 && self->due_since_ns != 0) {
        histogram_record(&counters->latency_ms, BOUNDS(latency_bounds),
                         (clock_now_ns() - self->due_since_ns) / NS_PER_MS);
        self->due_since_ns = 0;
    }
}

static bool is_idle(const struct tail *self)
{
    return self->waiting_count == 0 && self->due.count == 0 && self->ready.count == 0 &&
           self->intakes == 0 && ring_depth(self->outputs) == 0 && ring_depth(self->blocked) == 0;
}

/* Frees what is charged to the budget. */
static void give_back(struct tail *self)
{
    if (self->peers == NULL)
        return;
    tail_traces_fini(&self->traces);
    tail_split_fini(&self->split);
    tail_split_fini(&self->router);
    tail_slabs_fini(&self->slabs);
    for (unsigned i = 0; i < 2; i++) {
        decision_cache_destroy(self->caches[i]);
        self->caches[i] = NULL;
    }
}

/* Nothing comes any more from this lane, nor from others. */
static void stop_if_idle(struct tail *self)
{
    if (!self->is_stopping || self->base.stopping == NULL || !is_idle(self) ||
        self->downstream.count > 0)
        return;
    if (atomic_load(&self->peers[0]->handing) > 0) {
        if (!timer_is_running(&self->timer))
            lane_timer_start(self->base.lane, &self->timer, HANDOVER_LOOK_NS);
        return;
    }
    downstream_end(&self->downstream);
    lane_timer_stop(self->base.lane, &self->timer);
    lane_defer_cancel(self->base.lane, &self->job);
    give_back(self);
    component_stopped(&self->base);
}

/* Does what there is to do now, and sees to it that the rest is done later. */
static void run(struct tail *self)
{
    assert(lane_is_current(self->base.lane));
    uint64_t now_ns = clock_now_ns();
    advance(self, now_ns);
    decide_due(self);
    release_due(self);
    struct blocked *blocked;
    while (!is_full(self) && (blocked = ring_pop(self->blocked)) != NULL) {
        take_in(self, blocked->batch, blocked->receipt);
        batch_unref(blocked->batch);
        mem_free(blocked);
    }
    if (self->waiting_count + self->due.count + self->ready.count == 0)
        tail_slabs_rest(&self->slabs);
    show(self);
    if (self->due.first != 0) {
        lane_rest(self->base.lane);
        lane_defer(self->base.lane, &self->job);
    } else if (self->waiting_count > 0 && !timer_is_running(&self->timer)) {
        lane_timer_start(self->base.lane, &self->timer,
                         self->start_ns + (self->ticks + 1) * TICK_NS - now_ns);
    }
    stop_if_idle(self);
}

static void on_job(void *arg)
{
    run(arg);
}

static void on_tick(struct timer *timer, void *arg)
{
    struct tail *self = arg;
    assert(timer == &self->timer);
    run(self);
}

static void on_room(struct component *component)
{
    run(tail_of(component));
}

/* --- slots --- */

static bool tail_create(struct component *component, struct error *error)
{
    struct tail *self = tail_of(component);
    const struct tail_sampling_config *config = component->config;
    self->config = config;
    self->policies = tail_policies_create(config, error);
    if (self->policies == NULL)
        return false;
    self->policy_counters =
        mem_zalloc((self->policies->count + 1) * sizeof(*self->policy_counters));
    uint64_t wait_ticks = config->decision_wait_ns / NS_PER_S;
    self->wait_ticks = wait_ticks > 0 ? wait_ticks : 1;
    self->lists = mem_zalloc((self->wait_ticks + 1) * sizeof(self->lists[0]));
    /* The Go collector would drop what is too large, or waits on a stop, at its time. */
    self->may_release_early = config->strategy == TAIL_TRACE_COMPLETE &&
                              config->maximum_trace_size_bytes == 0 &&
                              !config->drop_pending_traces_on_shutdown;
    timer_init(&self->timer, on_tick, self);
    self->job = (struct lane_job){.fn = on_job, .arg = self};
    downstream_init(&self->downstream, component, on_output_end, on_room);
    self->outputs = ring_create();
    self->blocked = ring_create();
    return true;
}

static bool create_caches(struct tail *self, struct error *error)
{
    const struct tail_cache_config *config = &self->config->decision_cache;
    const uint64_t sizes[2] = {config->non_sampled_cache_size, config->sampled_cache_size};
    for (unsigned i = 0; i < 2; i++) {
        uint64_t size = (sizes[i] + self->lanes - 1) / self->lanes;
        if (size == 0)
            continue;
        self->caches[i] = decision_cache_create(size, false, self->base.budget);
        if (self->caches[i] == NULL)
            return error_set(error,
                             "the memory budget has no room for %" PRIu64
                             " decisions, which take %" PRIu64
                             " bytes: make %s smaller or raise service::budget_mib",
                             sizes[i], decision_cache_bytes(size, false) * self->lanes,
                             i == 0 ? "decision_cache::non_sampled_cache_size"
                                    : "decision_cache::sampled_cache_size");
    }
    return true;
}

/* By now the instances of all lanes exist. */
static bool tail_start(struct component *component, struct error *error)
{
    struct tail *self = tail_of(component);
    const struct tail_sampling_config *config = self->config;
    struct budget *budget = component->budget;
    for (const struct component *peer = component->first; peer != NULL; peer = peer->next_lane)
        self->lanes++;
    self->peers = (struct tail **)mem_zalloc(self->lanes * sizeof(self->peers[0]));
    struct component *peer = component->first;
    for (unsigned i = 0; i < self->lanes; i++, peer = peer->next_lane)
        self->peers[i] = tail_of(peer);
    if (self != self->peers[0])
        tail_policies_share(self->policies, self->peers[0]->policies);
    uint64_t most = config->num_traces > 0 ? config->num_traces : 1;
    self->traces_max = most / self->lanes + (most % self->lanes > 0);
    /* More would not fit into the budget. */
    size_t words = self->policies->words;
    uint64_t fit = budget_limit(budget) / tail_traces_entry_bytes(words) + 1;
    if (self->traces_max > fit)
        self->traces_max = fit;
    uint64_t entries = self->traces_max + (config->block_on_overflow ? OVERFLOW_TRACES : 0);
    tail_slabs_init(&self->slabs, budget, component->is_journaled);
    tail_split_init(&self->split, self->policies, &self->slabs, 1, budget);
    tail_split_init(&self->router, self->policies, &self->slabs, self->lanes, budget);
    self->start_ns = clock_now_ns();
    if (!tail_traces_init(&self->traces, words, entries, budget))
        return error_set(error, "no address space for num_traces %" PRIu64, config->num_traces);
    self->traces_max =
        self->traces_max < self->traces.entries_max ? self->traces_max : self->traces.entries_max;
    return create_caches(self, error);
}

static void tail_consume(struct component *component, struct batch *batch, struct receipt *receipt)
{
    struct tail *self = tail_of(component);
    assert(batch->signal == TRACES);
    if (batch->items == 0)
        receipt_resolve(receipt, &outcome_accepted);
    else if (self->lanes > 1)
        route(self, batch, receipt);
    else
        take_or_block(self, batch, receipt);
    run(self);
}

static void tail_stop(struct component *component)
{
    struct tail *self = tail_of(component);
    assert(!self->is_stopping);
    self->is_stopping = true;
    downstream_stop(&self->downstream);
    if (self->peers == NULL)
        component_stopped(component);
    else
        run(self);
}

static void tail_destroy(struct component *component)
{
    struct tail *self = tail_of(component);
    if (self->policies == NULL)
        return;
    assert(self->waiting_count == 0 && self->due.count == 0 && self->ready.count == 0);
    give_back(self);
    ring_destroy(self->outputs);
    ring_destroy(self->blocked);
    tail_policies_destroy(self->policies);
    mem_free(self->policy_counters);
    mem_free(self->lists);
    mem_free((void *)self->peers);
}

/* "policy", or "name.policy" of tail_sampling/name. */
static void policy_label(const struct tail *self, const char *policy, char *room, size_t size)
{
    const char *name = strchr(self->base.id, '/');
    if (name != NULL)
        snprintf(room, size, "%s.%s", name + 1, policy);
    else
        snprintf(room, size, "%s", policy);
}

/* Counters whose labels come from the configuration, or are several. */
static void tail_each_counter(const struct component *component, component_counter_fn add,
                              void *arg)
{
    static const struct {
        const char *decision;
        const char *sampled;
    } decisions[TAIL_DECISIONS] = {
        {"sampled", "true"}, {"not_sampled", "false"}, {"dropped", "false"}};
    static const struct component_counter traces = {
        TAIL_METRIC "count_traces_sampled",
        "Count of traces that were sampled or not per sampling policy"};
    static const struct component_counter global = {
        TAIL_METRIC "global_count_traces_sampled",
        "Global count of traces that were sampled or not by at least one policy"};
    static const struct component_counter executions = {
        TAIL_METRIC "sampling_policy_execution_count",
        "Total number of executions of a specific sampling policy"};
    static const struct component_counter times = {
        TAIL_METRIC "sampling_policy_execution_time_sum",
        "Total time spent (in microseconds) executing a specific sampling policy"};
    const struct tail *self = (const struct tail *)component;
    const struct tail_counters *counters = component->counters;
    for (size_t i = 0; self->policies != NULL && i < self->policies->count; i++) {
        const struct tail_policy_counters *own = &self->policy_counters[i];
        char policy[512];
        policy_label(self, self->policies->items[i].name, policy, sizeof(policy));
        for (size_t k = 0; k < TAIL_DECISIONS; k++) {
            const struct component_label labels[] = {{"decision", decisions[k].decision},
                                                     {"policy", policy},
                                                     {"sampled", decisions[k].sampled}};
            if (counter_read(&own->traces[k]) > 0)
                add(&traces, labels, 3, counter_read(&own->traces[k]), arg);
        }
        const struct component_label label = {"policy", policy};
        add(&executions, &label, 1, counter_read(&own->executions), arg);
        add(&times, &label, 1, counter_read(&own->execution_ns) / NS_PER_US, arg);
    }
    for (size_t k = 0; k < TAIL_DECISIONS; k++) {
        const struct component_label labels[] = {{"decision", decisions[k].decision},
                                                 {"sampled", decisions[k].sampled}};
        if (counter_read(&counters->decisions[k]) > 0)
            add(&global, labels, 2, counter_read(&counters->decisions[k]), arg);
    }
}

const struct component_factory tail_sampling_processor_factory = {
    .type = "tail_sampling",
    .kind = PROCESSOR,
    .stability = "beta",
    .signals = SIGNAL_TRACES,
    .instance_size = sizeof(struct tail),
    .config_size = sizeof(struct tail_sampling_config),
    .fields = tail_sampling_fields,
    .counters_size = sizeof(struct tail_counters),
    .counters = tail_counter_rows,
    .each_counter = tail_each_counter,
    .check = tail_sampling_check,
    .create = tail_create,
    .start = tail_start,
    .consume = tail_consume,
    .stop = tail_stop,
    .destroy = tail_destroy,
};
