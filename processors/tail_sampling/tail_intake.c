/* SPDX-License-Identifier: Apache-2.0 */
/* Spans arrive: requests are taken apart by trace and, with several lanes, by the lane that owns
 * it. Runs on the instance's lane. */
#include "processors/tail_sampling/tail_instance.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/ring.h"
#include "src/core/batch.h"
#include "src/core/ledger.h"
#include "src/core/receipt.h"

/* What a step keeps of a tiny span at most: an entry, and copies of a Resource and a scope that are
 * too small to be shared. */
enum { TINY_SPAN_BYTES = 576 };
/* What waits or is handed over takes, beside its bytes. */
#define BLOCKED_BYTES  (sizeof(struct blocked) + sizeof(struct batch))
#define HANDOVER_BYTES (sizeof(struct handover) + sizeof(struct batch))

/* A request that waits for room (block_on_overflow). Charged, with its batch. */
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
    bool has_no_room;             /* for the step at hand */
    struct lane_job job;
    struct tail_split split; /* of a large one */
};

/* Spans on their way to the lane that owns their traces. Charged, with its batch. */
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

/* --- arriving spans --- */

static void expect_group(const uint8_t id[TAIL_TRACE_ID_BYTES], bool is_near, void *arg)
{
    const struct intake *intake = arg;
    tail_traces_expect(&intake->self->traces, id, is_near);
}

static void begin_group(struct tail_group *group, uint64_t *bits, void *arg)
{
    const struct intake *intake = arg;
    struct tail *self = intake->self;
    group->trace = tail_traces_find(&self->traces, group->id);
    const struct tail_trace *trace = group->trace;
    if (trace == NULL || trace->state != TAIL_WAITS || self->config->strategy == TAIL_SPAN_INGEST)
        return;
    group->min_ns = trace->min_ns;
    group->max_ns = trace->max_ns;
    tail_policies_inherit(self->policies, trace->bits, bits);
}

static struct tail_trace *add_trace(struct tail *self, const struct tail_group *group)
{
    struct tail_counters *counters = self->base.counters;
    tail_make_room_for_trace(self);
    struct tail_trace *trace = tail_traces_add(&self->traces, group->id);
    trace->arrival_ns = self->now_ns;
    counter_add(&counters->new_traces, 1);
    tail_policies_begin(self->policies, group->id, trace->bits);
    tail_wait(self, trace);
    return trace;
}

/* Spans of a trace that will be sampled, whatever comes, and of one that will not, wait no longer;
 * the decision itself has its time. */
static void take_waiting(struct intake *intake, struct tail_split *split,
                         const struct tail_group *group, struct tail_trace *trace)
{
    struct tail *self = intake->self;
    if (trace->outlook == TAIL_OPEN) {
        struct tail_facts facts = tail_facts_of(trace, trace->bits);
        trace->outlook = (uint8_t)(tail_policies_outlook(self->policies, &facts) & 3);
        if (trace->outlook == TAIL_WILL_SAMPLE && !self->may_release_early)
            trace->outlook = TAIL_OPEN;
        if (trace->outlook == TAIL_WILL_NOT_SAMPLE)
            tail_drop_spans(self, &trace->spans, LOSS_UNWANTED);
        if (trace->outlook != TAIL_OPEN)
            tail_tell(self, trace, trace->outlook == TAIL_WILL_SAMPLE);
    }
    if (trace->outlook == TAIL_WILL_NOT_SAMPLE) {
        tail_lose(self, group->spans, intake->request, LOSS_UNWANTED);
        return;
    }
    tail_group_store(split, group, &trace->spans, tail_request_keep(intake->request));
    if (trace->outlook == TAIL_WILL_SAMPLE)
        tail_release(self, &trace->spans, NULL);
}

/* With span-ingest: asks about these spans alone. */
static void take_part(struct intake *intake, struct tail_split *split,
                      const struct tail_group *group, uint64_t *bits, struct tail_trace *trace)
{
    struct tail *self = intake->self;
    struct tail_counters *counters = self->base.counters;
    struct tail_facts facts = tail_facts_of(trace, bits);
    struct tail_now now = tail_now_of(self);
    tail_policies_begin(self->policies, group->id, bits);
    struct tail_result result =
        tail_policies_decide_part(self->policies, &facts, &now, self->policy_counters);
    tail_note_latency(self, 0);
    trace->decided_ns = self->now_ns;
    if (result.decision != TAIL_DROPPED)
        tail_group_store(split, group, &trace->spans, tail_request_keep(intake->request));
    else
        tail_lose(self, group->spans, intake->request, LOSS_UNWANTED);
    if (result.decision == TAIL_UNDECIDED)
        return;
    counter_add(&counters->decisions[result.decision - 1], 1);
    tail_leave_list(self, trace);
    tail_finish(self, trace, &result);
}

static void take_late(struct intake *intake, struct tail_split *split,
                      const struct tail_group *group, struct tail_trace *trace)
{
    struct tail *self = intake->self;
    if (trace->decided_ns != 0)
        tail_note_late_span(self, self->now_ns - trace->decided_ns);
    if (trace->decision != TAIL_SAMPLED) {
        tail_lose(self, group->spans, intake->request, LOSS_UNWANTED);
        return;
    }
    tail_group_store(split, group, &trace->spans, tail_request_keep(intake->request));
    if (trace->state == TAIL_DECIDED)
        tail_release(self, &trace->spans, NULL);
}

/* The trace is dropped for its size, with these spans, without asking the policies. */
static void drop_large(struct intake *intake, const struct tail_group *group,
                       struct tail_trace *trace)
{
    struct tail *self = intake->self;
    struct tail_counters *counters = self->base.counters;
    counter_add(&counters->too_large, 1);
    tail_lose(self, group->spans, intake->request, LOSS_UNWANTED);
    tail_drop_spans(self, &trace->spans, LOSS_UNWANTED);
    tail_leave_list(self, trace);
    trace->decision = TAIL_NOT_SAMPLED;
    if (self->config->strategy == TAIL_TRACE_COMPLETE)
        trace->decided_ns = 0;
    tail_remember(self, trace);
    tail_settle(self, trace);
}

/* Whether the decision is remembered: then nothing waits. */
static bool take_remembered(struct intake *intake, struct tail_split *split,
                            const struct tail_group *group)
{
    struct tail *self = intake->self;
    struct tail_counters *counters = self->base.counters;
    uint64_t key = tail_cache_key(group->id);
    uint16_t policy;
    if (self->caches[true] != NULL && decision_cache_get(self->caches[true], key, &policy)) {
        struct tail_spans spans = {.last = {.slab = 0}};
        tail_group_store(split, group, &spans, tail_request_keep(intake->request));
        const struct tail_mark mark = {
            .policy = policy > 0 ? self->policies->items[policy - 1].name : NULL,
            .is_cached = true,
        };
        tail_release(self, &spans, &mark);
        counter_add(&counters->early_releases[true], group->spans);
        return true;
    }
    if (self->caches[false] == NULL || !decision_cache_get(self->caches[false], key, &policy))
        return false;
    tail_lose(self, group->spans, intake->request, LOSS_UNWANTED);
    counter_add(&counters->early_releases[false], group->spans);
    return true;
}

static void take_group(struct tail_split *split, struct tail_group *group, uint64_t *bits,
                       void *arg)
{
    struct intake *intake = arg;
    struct tail *self = intake->self;
    struct tail_trace *trace = group->trace;
    if (intake->has_no_room) {
        tail_lose(self, group->spans, intake->request, LOSS_MEMORY);
        return;
    }
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
        tail_on_root(self, trace);
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

static void end_handover(struct handover *handover)
{
    struct budget *budget = handover->from->base.budget;
    mem_free(handover);
    budget_return(budget, HANDOVER_BYTES);
}

static void on_handed_back(struct lane_task *task)
{
    struct handover *handover = (struct handover *)task;
    receipt_resolve(handover->upstream, &handover->outcome);
    mem_free((void *)(uintptr_t)handover->outcome.message);
    mem_free((void *)(uintptr_t)handover->outcome.details.data);
    end_handover(handover);
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
        end_handover(handover);
    }
    tail_take_or_block(self, batch, receipt);
    batch_unref(batch);
    atomic_fetch_sub(&self->peers[0]->handing, 1);
    tail_run(self);
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
    (void)bits;
    if (intake->has_no_room) {
        ledger_lose(self->base.ledger, TRACES,
                    group->spans * component_exporters(&self->base, intake->model), LOSS_MEMORY,
                    false);
        return;
    }
    struct batch *part = batch_create_like(intake->model, 1);
    tail_group_append(split, group, intake->whole.owner, part);
    part->items = group->spans;
    part->is_acknowledged = true;
    part->is_stored = false; /* the whole would come again */
    if (intake->waits)
        receipt_expect(intake->receipt, 1);
    if (owner == self) {
        tail_take_or_block(self, part, intake->waits ? intake->receipt : NULL);
        batch_unref(part);
        return;
    }
    budget_take(self->base.budget, HANDOVER_BYTES);
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
        tail_request_done(intake->request, &outcome_accepted);
    else
        receipt_resolve(intake->receipt, &outcome_accepted);
    batch_unref(intake->model);
}

static struct tail_taker taker_of(struct intake *intake)
{
    if (intake->model != NULL)
        return (struct tail_taker){.begin = begin_route, .take = take_route, .arg = intake};
    return (struct tail_taker){
        .expect = expect_group, .begin = begin_group, .take = take_group, .arg = intake};
}

/* One step, for `spans` spans at most. What is kept for them can be many times their bytes, for
 * which there was room at the beginning: the oldest traces make more. If they cannot, and the
 * budget is exceeded by more than its margin, the spans are lost. */
static bool step(struct intake *intake, struct tail_split *split, uint64_t spans)
{
    struct tail *self = intake->self;
    const struct budget *budget = self->base.budget;
    const struct tail_taker taker = taker_of(intake);
    intake->has_no_room =
        !tail_make_room_in_budget(self, TINY_SPAN_BYTES * spans) && budget_is_overdrawn(budget);
    return tail_split_step(split, &taker);
}

static void on_intake(void *arg)
{
    struct intake *intake = arg;
    struct tail *self = intake->self;
    lane_rest(self->base.lane);
    tail_advance(self, clock_now_ns());
    if (!step(intake, &intake->split, TAIL_STEP_SPANS_MAX)) {
        tail_flush(self);
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
    tail_run(self);
}

/* Goes on in further turns. */
static void defer_intake(struct intake *large)
{
    struct tail *self = large->self;
    large->job = (struct lane_job){.fn = on_intake, .arg = large};
    self->intakes++;
    if (large->model != NULL)
        atomic_fetch_add(&self->peers[0]->handing, 1);
    lane_defer(self->base.lane, &large->job);
}

/* Takes a request apart: at once, or in several turns one that is large or whose conditions read
 * much. */
static void begin_intake(struct intake *intake, struct tail_split *split, uint64_t items)
{
    struct tail *self = intake->self;
    if (items <= TAIL_STEP_SPANS_MAX) {
        tail_split_begin(split, intake->whole.bytes);
        if (step(intake, split, items)) {
            end_intake(intake);
            return;
        }
    }
    struct intake *large = mem_alloc(sizeof(*large));
    *large = *intake;
    const bool is_begun = items <= TAIL_STEP_SPANS_MAX;
    if (is_begun)
        large->split = *split;
    struct tail_split *fresh = is_begun ? split : &large->split;
    tail_split_init(fresh, self->policies, &self->slabs, split->lanes, self->base.budget);
    if (!is_begun)
        tail_split_begin(&large->split, large->whole.bytes);
    defer_intake(large);
}

/* The request, or a part of one that was taken apart by lane, in one piece. False: it was refused.
 */
static bool open_intake(struct tail *self, struct batch *batch, struct receipt *receipt,
                        bool is_part, struct intake *ret_intake)
{
    /* Beside its bytes, for what is kept for each trace. */
    uint64_t room = batch->bytes + batch->bytes / 2;
    tail_advance(self, clock_now_ns());
    const bool comes_again = !is_part && receipt != NULL;
    /* What is kept of an acknowledged one, traces make room for step by step. */
    bool has_room =
        tail_make_room_in_budget(self, room) ||
        (batch_may_exceed(batch) && !(comes_again && budget_is_overdrawn(self->base.budget)));
    *ret_intake = (struct intake){.self = self, .receipt = receipt};
    bool can_never_fit = room + batch->bytes > budget_limit(self->base.budget);
    if (batch->bytes > UINT32_MAX / 2 || (can_never_fit && !batch->is_acknowledged)) {
        struct outcome outcome = outcome_too_large("the request is too large for tail_sampling");
        if (batch->is_acknowledged) {
            outcome.verdict = LOST;
            ledger_drop(self->base.ledger, batch, LOSS_TOO_LARGE,
                        component_exporters(&self->base, batch));
        }
        receipt_resolve(receipt, &outcome);
        return false;
    }
    if (has_room && batch_join_owed(batch, self->base.budget, &ret_intake->whole))
        return true;
    struct outcome outcome = outcome_busy("the memory budget has no room for more traces");
    outcome.reason = LOSS_MEMORY;
    if (!comes_again) {
        outcome.verdict = LOST;
        ledger_drop(self->base.ledger, batch, LOSS_MEMORY, component_exporters(&self->base, batch));
    }
    receipt_resolve(receipt, &outcome);
    return false;
}

void tail_take_in(struct tail *self, struct batch *batch, struct receipt *receipt)
{
    struct intake intake;
    if (!open_intake(self, batch, receipt, self->lanes > 1, &intake))
        return;
    if (self->base.is_journaled) {
        intake.request = mem_alloc(sizeof(*intake.request));
        *intake.request = (struct tail_request){.receipt = receipt,
                                                .refs = 1,
                                                .skips = batch->skips,
                                                .skipped = batch->skipped,
                                                .is_joint = batch->is_joint};
    }
    begin_intake(&intake, &self->split, batch->items);
}

void tail_route(struct tail *self, struct batch *batch, struct receipt *receipt)
{
    struct intake intake;
    if (!open_intake(self, batch, receipt, false, &intake))
        return;
    intake.model = batch_ref(batch);
    intake.waits = self->base.is_journaled || self->config->block_on_overflow;
    begin_intake(&intake, &self->router, batch->items);
}

/* Whether a request has to wait until traces have been decided. */
static bool is_full(const struct tail *self)
{
    return self->blocks &&
           self->waiting_count + self->due.count + self->ready.count >= self->traces_max;
}

void tail_take_or_block(struct tail *self, struct batch *batch, struct receipt *receipt)
{
    if (ring_depth(self->blocked) == 0 && !is_full(self)) {
        tail_take_in(self, batch, receipt);
        return;
    }
    budget_take(self->base.budget, BLOCKED_BYTES);
    struct blocked *blocked = mem_alloc(sizeof(*blocked));
    *blocked = (struct blocked){.batch = batch_ref(batch), .receipt = receipt};
    ring_push(self->blocked, blocked);
}

bool tail_take_blocked(struct tail *self)
{
    struct blocked *blocked;
    uint64_t spans = 0;
    while (!is_full(self) && spans < TAIL_STEP_SPANS_MAX &&
           (spans == 0 || lane_held_ns(self->base.lane) < LANE_JOB_NS) &&
           (blocked = ring_pop(self->blocked)) != NULL) {
        spans += blocked->batch->items;
        tail_take_in(self, blocked->batch, blocked->receipt);
        batch_unref(blocked->batch);
        mem_free(blocked);
        budget_return(self->base.budget, BLOCKED_BYTES);
    }
    return !is_full(self) && ring_depth(self->blocked) > 0;
}
