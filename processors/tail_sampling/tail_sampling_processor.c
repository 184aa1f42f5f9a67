/* SPDX-License-Identifier: Apache-2.0 */
/* tail_sampling: keeps the spans of each trace until its decision_wait is over, asks the policies,
 * and lets sampled traces go on, some in one message. Policies are asked once, but as soon
 * as nothing that may still come can change what they will say, spans no longer wait. When there
 * are too many traces, or memory is short, the oldest is decided early; none is dropped unseen.
 * With several lanes a trace belongs to one of them: others hand its spans over to it. In a
 * pipeline with a journal requests are not settled before all their spans are.
 * Runs on its pipeline's lane. */
#include <assert.h>
#include <inttypes.h>

#include "processors/tail_sampling/tail_instance.h"
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/ring.h"
#include "src/config/feature_gates.h"
#include "src/join/index/join_store.h"

enum {
    JOIN_PART = 4,            /* of the budget is for the join at most: a quarter */
    TRACES_PART = 3,          /* of the budget is for traces, without their spans: a third */
    TURN_TRACES_MAX = 8192,   /* decided in one turn of the lane */
    LOOK_TRACES = 16,         /* decided between looks at the clock */
    OVERFLOW_TRACES = 1 << 20 /* with block_on_overflow: beyond num_traces, of requests taken */
};
#define TURN_WORK_NS ((uint64_t)5 * NS_PER_MS)
/* On a stop: how often a lane looks whether others still hand spans over. */
#define HANDOVER_LOOK_NS ((uint64_t)NS_PER_MS)

extern const struct component_factory tail_sampling_processor_factory;

struct tail *tail_of(struct component *component)
{
    assert(component->factory == &tail_sampling_processor_factory);
    return (struct tail *)component;
}

static void show(struct tail *self)
{
    struct tail_counters *counters = self->base.counters;
    counter_set(&counters->on_memory, self->traces.count);
}

static void decide_due(struct tail *self)
{
    const uint64_t begin_ns = self->now_ns;
    uint64_t executions = 0;
    unsigned left = TURN_TRACES_MAX;
    struct tail_ahead ahead = tail_ahead_of(&self->traces, &self->slabs, self->due.first);
    while (self->due.first != 0 && left > 0 && self->now_ns - begin_ns < TURN_WORK_NS) {
        struct tail_trace *trace = tail_traces_at(&self->traces, self->due.first);
        tail_ahead_step(&self->traces, &self->slabs, &ahead);
        tail_list_take(&self->traces, &self->due, trace);
        if (self->is_stopping && self->config->drop_pending_traces_on_shutdown) {
            trace->is_evicted = true;
            trace->decision = TAIL_NOT_SAMPLED;
            tail_drop_spans(self, &trace->spans, LOSS_SHUTDOWN);
            tail_settle(self, trace);
        } else {
            tail_decide(self, trace);
        }
        executions++;
        left--;
        if (left % LOOK_TRACES == 0)
            self->now_ns = clock_now_ns();
    }
    if (executions > 0 && self->policies->count > 0) {
        self->now_ns = clock_now_ns();
        uint64_t each_ns = (self->now_ns - begin_ns) / self->policies->count;
        for (size_t i = 0; i < self->policies->count; i++)
            counter_add(&self->policy_counters[i].execution_ns, each_ns);
    }
    if (self->due.first == 0 && self->due_since_ns != 0) {
        tail_note_latency(self, self->now_ns - self->due_since_ns);
        self->due_since_ns = 0;
    }
}

static bool is_idle(const struct tail *self)
{
    return self->waiting_count == 0 && self->due.count == 0 && self->ready.count == 0 &&
           self->intakes == 0 && self->output == NULL && ring_depth(self->outputs) == 0 &&
           ring_depth(self->blocked) == 0;
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
void tail_run(struct tail *self)
{
    assert(lane_is_current(self->base.lane));
    uint64_t now_ns = clock_now_ns();
    tail_advance(self, now_ns);
    decide_due(self);
    tail_release_due(self);
    const bool has_more = tail_take_blocked(self);
    tail_flush(self);
    if (self->waiting_count + self->due.count + self->ready.count == 0)
        tail_slabs_rest(&self->slabs);
    show(self);
    /* A large trace goes on from there, too, if it was not the next stage that it waits for. */
    const bool has_outputs =
        ring_depth(self->outputs) > 0 && !downstream_is_blocked(&self->downstream);
    if (self->due.first != 0 || has_outputs || has_more) {
        lane_rest(self->base.lane);
        lane_defer(self->base.lane, &self->job);
    } else if (self->waiting_count > 0 && !timer_is_running(&self->timer)) {
        lane_timer_start(self->base.lane, &self->timer,
                         self->start_ns + (self->ticks + 1) * TAIL_TICK_NS - now_ns);
    }
    stop_if_idle(self);
}

static void on_job(void *arg)
{
    tail_run(arg);
}

static void on_tick(struct timer *timer, void *arg)
{
    struct tail *self = arg;
    assert(timer == &self->timer);
    tail_run(self);
}

static void on_room(struct component *component)
{
    tail_run(tail_of(component));
}

/* --- slots --- */

static bool tail_check(const void *section, struct error *error)
{
    const struct tail_sampling_config *config = section;
    if (config->tail_storage[0] != '\0') {
        error_set(error, "storage extensions of tail_sampling are not supported: remove it; with a "
                         "sending_queue that has storage, traces that wait survive in its journal");
        error_at(error, "tail_storage");
        return error_unsupported(error);
    }
    struct tail_policies *policies = tail_policies_create(config, NULL, error);
    tail_policies_destroy(policies);
    return policies != NULL;
}

static void log_failure(void *arg, const char *text, const char *error)
{
    const struct tail *self = arg;
    log_warn(&self->base.logger, "failed to eval condition", log_text("error", error),
             log_text("statement", text));
}

static bool tail_create(struct component *component, struct error *error)
{
    struct tail *self = tail_of(component);
    const struct tail_sampling_config *config = component->config;
    self->config = config;
    self->blocks = config->block_on_overflow;
    self->policies = tail_policies_create(config, component->budget, error);
    if (self->policies == NULL)
        return false;
    tail_policies_report(self->policies, log_failure, self);
    self->policy_counters =
        mem_zalloc((self->policies->count + 1) * sizeof(*self->policy_counters));
    uint64_t wait_ticks = config->decision_wait_ns / NS_PER_S;
    self->wait_ticks = wait_ticks > 0 ? wait_ticks : 1;
    self->lists = mem_zalloc((self->wait_ticks + 1) * sizeof(self->lists[0]));
    const struct service_view *view = component->service;
    const struct feature_gates *gates = view != NULL ? view->gates : NULL;
    self->records_policy = feature_gate_is_enabled(gates, GATE_TAIL_RECORD_POLICY);
    self->counts_spans = feature_gate_is_enabled(gates, GATE_TAIL_COUNT_SPANS);
    self->counts_bytes = feature_gate_is_enabled(gates, GATE_TAIL_COUNT_BYTES);
    self->policies->counts_volume = self->counts_spans || self->counts_bytes;
    /* The first policy that samples a trace is known at its time only; and the Go collector would
     * drop what is too large, or waits on a stop. */
    self->may_release_early = config->strategy == TAIL_TRACE_COMPLETE &&
                              config->maximum_trace_size_bytes == 0 && !self->records_policy &&
                              !config->drop_pending_traces_on_shutdown;
    timer_init(&self->timer, on_tick, self);
    self->job = (struct lane_job){.fn = on_job, .arg = self};
    downstream_init(&self->downstream, component, tail_on_output_end, on_room);
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
        self->caches[i] = decision_cache_create(size, self->records_policy, self->base.budget);
        if (self->caches[i] == NULL)
            return error_set(
                error,
                "the memory budget has no room for %" PRIu64 " decisions, which take %" PRIu64
                " bytes: make %s smaller or raise service::budget_mib",
                sizes[i], decision_cache_bytes(size, self->records_policy) * self->lanes,
                i == 0 ? "decision_cache::non_sampled_cache_size"
                       : "decision_cache::sampled_cache_size");
    }
    return true;
}

static bool refuse_profiles(const struct tail *self, struct error *error)
{
    return error_set(error,
                     "policies of type profile learn of samples from trace_profile_join, which is "
                     "not in this pipeline: add it before %s, and to a pipeline of profiles",
                     self->base.id) ||
           error_at_index(error, self->policies->profiled) || error_at(error, "policies");
}

static bool tail_meet(struct component *component, struct error *error)
{
    struct tail *self = tail_of(component);
    const struct component *join = component_beside(component, "trace_profile_join");
    bool wants_costs = self->policies->profiles_count > 0;
    uint64_t limit = budget_limit(component->budget);
    uint64_t bytes = 0;
    if (join == NULL)
        return !wants_costs || refuse_profiles(self, error);
    self->join = join->shared;
    if (!join_store_meet_sampler(self->join, wants_costs, &bytes))
        return error_set(error, "no memory for what tail_sampling and \"%s\" tell each other",
                         join->id);
    if (bytes > limit / JOIN_PART)
        return error_set(error,
                         "what tail_sampling and \"%s\" tell each other takes %" PRIu64
                         " bytes, which is more than a quarter of the memory for requests: raise "
                         "service::budget_mib, or make index::entries of \"%s\" smaller",
                         join->id, bytes, join->id);
    budget_lower(component->budget, limit - bytes);
    return true;
}

static void advise_on_join(const struct tail *self)
{
    const struct join_store *join = self->join;
    const struct component *component = &self->base;
    if (join == NULL || component->first != component)
        return;
    if (self->policies->profiles_count > 0 && !join->has_profiles)
        log_warn(&component->logger, "No pipeline of profiles has trace_profile_join with the same "
                                     "id, so policies of type profile sample nothing: add it to "
                                     "one");
    if (join->settings.keep.keeps_sampled &&
        join->settings.hold_ns < self->config->decision_wait_ns)
        log_warn(
            &component->logger,
            "Profiles wait less long than traces: samples of traces that are not decided yet "
            "are kept; make hold of trace_profile_join longer than decision_wait",
            log_int("hold_ms", (int64_t)(join->settings.hold_ns / NS_PER_MS)),
            log_int("decision_wait_ms", (int64_t)(self->config->decision_wait_ns / NS_PER_MS)));
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
    /* Their spans need room, too. */
    size_t words = self->policies->words;
    uint64_t entry_bytes = tail_traces_entry_bytes(words);
    uint64_t fit = budget_limit(budget) / TRACES_PART / self->lanes / entry_bytes + 1;
    if (self->traces_max > fit) {
        self->traces_max = fit;
        if (component->first == component)
            log_warn(
                &component->logger,
                "num_traces is lowered: traces without their spans take at most a third of the "
                "memory for requests",
                log_int("num_traces", (int64_t)(fit * self->lanes)),
                log_int("bytes_per_trace", (int64_t)entry_bytes));
    }
    uint64_t entries = self->traces_max + (config->block_on_overflow ? OVERFLOW_TRACES : 0);
    tail_slabs_init(&self->slabs, budget, component->is_journaled);
    tail_split_init(&self->split, self->policies, &self->slabs, 1, budget);
    tail_split_init(&self->router, self->policies, &self->slabs, self->lanes, budget);
    advise_on_join(self);
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
        tail_route(self, batch, receipt);
    else
        tail_take_or_block(self, batch, receipt);
    tail_run(self);
}

static void tail_release_senders(struct component *component)
{
    struct tail *self = tail_of(component);
    self->blocks = false;
    if (ring_depth(self->blocked) > 0)
        tail_run(self);
}

static void tail_stop(struct component *component)
{
    struct tail *self = tail_of(component);
    assert(!self->is_stopping);
    self->is_stopping = true;
    self->blocks = false;
    downstream_stop(&self->downstream);
    if (self->peers == NULL)
        component_stopped(component);
    else
        tail_run(self);
}

static void tail_destroy(struct component *component)
{
    struct tail *self = tail_of(component);
    if (self->policies == NULL)
        return;
    assert(self->waiting_count == 0 && self->due.count == 0 && self->ready.count == 0);
    assert(self->output == NULL);
    give_back(self);
    ring_destroy(self->outputs);
    ring_destroy(self->blocked);
    tail_policies_destroy(self->policies);
    mem_free(self->policy_counters);
    mem_free(self->lists);
    mem_free((void *)self->peers);
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
    .check = tail_check,
    .create = tail_create,
    .meet = tail_meet,
    .start = tail_start,
    .consume = tail_consume,
    .release_senders = tail_release_senders,
    .stop = tail_stop,
    .destroy = tail_destroy,
};
