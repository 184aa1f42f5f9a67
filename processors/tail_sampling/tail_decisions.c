/* SPDX-License-Identifier: Apache-2.0 */
/* When traces are decided, and what becomes of them. A trace waits in the list of the tick that
 * will decide it. Runs on the instance's lane. */
#include "processors/tail_sampling/tail_instance.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"

/* Traces that are decided early for one request: so many, and one more for so many bytes that it
 * needs, since a request of small traces takes the room of as many. */
enum { EARLY_TRACES_MIN = 1024, EARLY_TRACE_BYTES = 64 };
#define LARGE_REQUESTS_BYTES (UINT64_C(32) << 20)

static void forget(struct tail *self, struct tail_trace *trace)
{
    tail_note_removal(self, self->now_ns - trace->arrival_ns);
    tail_traces_remove(&self->traces, trace);
}

uint64_t tail_cache_key(const uint8_t id[TAIL_TRACE_ID_BYTES])
{
    uint64_t key;
    memcpy(&key, id + TAIL_TRACE_ID_BYTES - sizeof(key), sizeof(key));
    return key;
}

/* The id as the join has it. */
static void read_id(const struct tail_trace *trace, uint64_t ret_id[2])
{
    memcpy(ret_id, trace->id, sizeof(trace->id));
}

void tail_tell(struct tail *self, const struct tail_trace *trace, bool is_sampled)
{
    uint64_t id[2];
    if (self->join == NULL)
        return;
    read_id(trace, id);
    join_store_judge(self->join, id, is_sampled, self->now_ns);
}

/* What profiles have measured by now. */
static void learn(struct tail *self, struct tail_trace *trace)
{
    uint64_t id[2];
    if (self->policies->profiles_count == 0)
        return;
    read_id(trace, id);
    const struct trace_cost cost = trace_costs_get(&self->join->costs, id);
    tail_policies_learn(self->policies, cost.samples, cost.cpu_ns, trace->bits);
}

void tail_remember(struct tail *self, const struct tail_trace *trace)
{
    struct decision_cache *cache = self->caches[trace->decision == TAIL_SAMPLED];
    if (cache != NULL)
        decision_cache_put(cache, tail_cache_key(trace->id), trace->policy);
    tail_tell(self, trace, trace->decision == TAIL_SAMPLED);
}

void tail_settle(struct tail *self, struct tail_trace *trace)
{
    trace->state = TAIL_DECIDED;
    if (self->caches[trace->decision == TAIL_SAMPLED] != NULL || trace->is_evicted)
        forget(self, trace);
}

static void let_go(struct tail *self, struct tail_trace *trace)
{
    assert(trace->state == TAIL_READY);
    const struct tail_mark mark = {
        .policy = trace->policy > 0 ? self->policies->items[trace->policy - 1].name : NULL,
        .composite = trace->composite,
    };
    tail_release(self, &trace->spans, &mark);
    tail_settle(self, trace);
}

void tail_finish(struct tail *self, struct tail_trace *trace, const struct tail_result *result)
{
    assert(result->decision != TAIL_UNDECIDED);
    trace->decision = (uint8_t)(result->decision & 3);
    trace->policy =
        result->policy != NULL ? (uint16_t)(result->policy - self->policies->items + 1) : 0;
    trace->composite = result->composite;
    trace->decided_ns = self->now_ns;
    tail_remember(self, trace);
    if (result->decision != TAIL_SAMPLED)
        tail_drop_spans(self, &trace->spans, LOSS_UNWANTED);
    if (tail_spans_are_none(&trace->spans)) {
        tail_settle(self, trace);
        return;
    }
    trace->state = TAIL_READY;
    if (tail_may_release(self))
        let_go(self, trace);
    else
        tail_list_push(&self->traces, &self->ready, trace);
}

void tail_release_ready(struct tail *self, struct tail_trace *trace)
{
    tail_list_take(&self->traces, &self->ready, trace);
    let_go(self, trace);
}

struct tail_facts tail_facts_of(const struct tail_trace *trace, const uint64_t *bits)
{
    return (struct tail_facts){
        .bits = bits,
        .spans = trace->spans_count,
        .bytes = trace->bytes,
        .request_bytes = trace->bytes + trace->header_bytes,
    };
}

struct tail_now tail_now_of(const struct tail *self)
{
    if (!self->policies->has_limits)
        return (struct tail_now){.ns = 0};
    return (struct tail_now){.ns = clock_now_ns(), .wall_ns = clock_wall_ns()};
}

void tail_decide(struct tail *self, struct tail_trace *trace)
{
    struct tail_counters *counters = self->base.counters;
    learn(self, trace);
    struct tail_facts facts = tail_facts_of(trace, trace->bits);
    struct tail_now now = tail_now_of(self);
    struct tail_result result = {.decision = TAIL_NOT_SAMPLED};
    assert(trace->state == TAIL_WAITS);
    if (self->config->strategy == TAIL_TRACE_COMPLETE)
        result = tail_policies_decide(self->policies, &facts, &now, self->policy_counters);
    counter_add(&counters->decisions[result.decision - 1], 1);
    assert(trace->outlook != TAIL_WILL_SAMPLE || result.decision == TAIL_SAMPLED);
    assert(trace->outlook != TAIL_WILL_NOT_SAMPLE || result.decision != TAIL_SAMPLED);
    if (self->config->strategy == TAIL_SPAN_INGEST)
        trace->is_evicted = true;
    tail_finish(self, trace, &result);
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
    return (now_ns - self->start_ns) / TAIL_TICK_NS;
}

void tail_advance(struct tail *self, uint64_t now_ns)
{
    uint64_t ended = ticks_of(self, now_ns);
    uint64_t looks = self->wait_ticks + 1;
    uint32_t due = self->due.count;
    self->now_ns = now_ns;
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

void tail_wait(struct tail *self, struct tail_trace *trace)
{
    if (!self->is_stopping) {
        wait_for_tick(self, trace, self->ticks + self->wait_ticks);
        return;
    }
    trace->tick = (uint32_t)self->ticks - 1;
    tail_list_push(&self->traces, &self->due, trace);
}

/* The tick of a trace that waits, of which it has the low bits; UINT64_MAX: it is due. */
static uint64_t tick_of(const struct tail *self, const struct tail_trace *trace)
{
    uint64_t tick = self->ticks + (uint32_t)(trace->tick - (uint32_t)self->ticks);
    return tick <= self->ticks + self->wait_ticks ? tick : UINT64_MAX;
}

void tail_leave_list(struct tail *self, struct tail_trace *trace)
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

void tail_on_root(struct tail *self, struct tail_trace *trace)
{
    uint64_t wait_ns = self->config->decision_wait_after_root_received_ns;
    uint64_t tick = tick_of(self, trace);
    uint64_t wanted = self->ticks + wait_ns / NS_PER_S;
    if (wait_ns == 0 || tick == UINT64_MAX || self->is_stopping || wanted >= tick)
        return;
    tail_leave_list(self, trace);
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

static void decide_early(struct tail *self, struct tail_trace *trace, enum tail_early why)
{
    struct tail_counters *counters = self->base.counters;
    counter_add(&counters->earlies[why], 1);
    tail_leave_list(self, trace);
    tail_decide(self, trace);
}

/* Forgets the oldest trace; one that waits is decided first. */
static void evict(struct tail *self)
{
    struct tail_trace *trace = tail_traces_at(&self->traces, self->traces.oldest);
    tail_number number = trace->number;
    trace->is_evicted = true;
    if (trace->state == TAIL_WAITS)
        decide_early(self, trace, TAIL_EARLY_OVERFLOW); /* which may forget it */
    if (trace->number != number)
        return;
    if (trace->state == TAIL_READY)
        tail_release_ready(self, trace);
    else if (trace->state == TAIL_DECIDED)
        forget(self, trace);
}

void tail_make_room_for_trace(struct tail *self)
{
    while (self->traces.count >= self->traces_max) {
        const struct tail_trace *oldest = tail_traces_at(&self->traces, self->traces.oldest);
        bool may_wait = self->config->block_on_overflow && oldest->state != TAIL_DECIDED;
        if (may_wait && self->traces.count < self->traces.entries_max)
            return;
        evict(self);
    }
}

/* What traces leave of the budget to requests that arrive: an eighth, or room for large ones, but
 * no more than a quarter. */
static uint64_t room_for_requests(uint64_t limit)
{
    const uint64_t eighth = limit / 8;
    const uint64_t quarter = limit / 4;
    if (eighth >= LARGE_REQUESTS_BYTES)
        return eighth;
    return quarter < LARGE_REQUESTS_BYTES ? quarter : LARGE_REQUESTS_BYTES;
}

static bool is_short_of_memory(const struct tail *self, uint64_t bytes)
{
    const struct budget *budget = self->base.budget;
    uint64_t limit = budget_limit(budget);
    return budget_used(budget) > limit - room_for_requests(limit) ||
           !budget_has_room(budget, bytes);
}

bool tail_make_room_in_budget(struct tail *self, uint64_t bytes)
{
    const uint64_t most = EARLY_TRACES_MIN + bytes / EARLY_TRACE_BYTES;
    for (uint64_t i = 0; i < most && is_short_of_memory(self, bytes); i++) {
        struct tail_trace *trace = longest_waiting(self);
        if (trace == NULL)
            break;
        decide_early(self, trace, TAIL_EARLY_MEMORY);
        tail_release_due(self);
        tail_flush(self);
        tail_slabs_rest(&self->slabs);
    }
    return budget_has_room(self->base.budget, bytes);
}
