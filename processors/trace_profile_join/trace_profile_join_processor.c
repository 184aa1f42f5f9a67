/* SPDX-License-Identifier: Apache-2.0 */
/* trace_profile_join: profiles learn their spans, spans their profiles. Named in a pipeline of
 * traces and in one of profiles, it copies what spans say into an index that all its instances
 * share, and writes it into the profiles; those whose spans have not come yet wait for them a
 * while. It answers for what waits, as batch does, and passes on the answer for all else. Runs on
 * its pipeline's lane. */
#include <assert.h>

#include "processors/trace_profile_join/trace_profile_control.h"
#include "processors/trace_profile_join/trace_profile_finish.h"
#include "processors/trace_profile_join/trace_profile_hold.h"
#include "processors/trace_profile_join/trace_profile_join_config.h"
#include "processors/trace_profile_join/trace_profile_join_counters.h"
#include "processors/trace_profile_join/trace_profile_keep.h"
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/pending_processes.h"
#include "src/join/profiles/profile_enrich.h"
#include "src/join/spans/span_reader.h"
#include "src/pipeline/downstream_retry.h"

struct join {
    struct component base;
    struct join_store *store;
    bool is_made;
    bool is_stopping;
    struct span_reader reader; /* traces */
    unsigned large_requests;   /* the same: being read */
    struct trace_profile_hold hold;
    struct downstream_retry downstream;
    struct timer timer;                    /* while something is held */
    struct trace_profile_control *control; /* NULL: another instance's, or nobody's */
};

/* A request of many spans, which are read a part in each turn of the lane. */
struct large_request {
    struct join *self;
    struct span_reader reader;
    struct receipt *receipt;
    struct lane_job job;
};

/* A request that has waited, on its way to the next stage. */
struct released {
    struct downstream_batch offered;
    struct batch *lost; /* what keep left out; NULL: nothing */
    uint64_t held_bytes;
};

extern const struct component_factory trace_profile_join_processor_factory;

static struct join *join_of(struct component *component)
{
    assert(component->factory == &trace_profile_join_processor_factory);
    return (struct join *)component;
}

/* On a small machine fewer spans are remembered: the store takes half of the budget at most. */
static uint64_t index_bytes_that_fit(const struct join_settings *settings, uint64_t limit,
                                     unsigned lanes)
{
    uint64_t others = join_store_bytes(settings, lanes) - settings->index_bytes;
    assert(lanes > 0);
    uint64_t room = limit / 2 > others ? limit / 2 - others : 0;
    return settings->index_bytes < room ? settings->index_bytes : room;
}

static bool fit_index(struct join_settings *settings, uint64_t limit, unsigned lanes,
                      struct error *error)
{
    assert(error != NULL);
    settings->index_bytes = index_bytes_that_fit(settings, limit, lanes);
    return settings->index_bytes / lanes >= SPAN_SHARD_BYTES_MIN ||
           error_set(error,
                     "the index of spans needs 256KiB for each of %u lanes, and may take half of "
                     "the memory that there is for requests%s: raise index::bytes or "
                     "service::budget_mib",
                     lanes, settings->uses_window ? ", with 90 bytes for each of its entries" : "");
}

static void *join_share(const struct component *first, unsigned lanes, struct error *error)
{
    struct join_settings settings;
    uint64_t limit = budget_limit(first->budget);
    trace_profile_join_settings(first->config, &settings);
    assert(error != NULL);
    if (!fit_index(&settings, limit, lanes, error))
        return NULL;
    struct join_store *store = join_store_open(first->id, &settings, lanes);
    if (store == NULL)
        error_set(error, "no memory for the index of spans");
    else
        budget_lower(first->budget, limit - join_store_bytes(&settings, lanes));
    return store;
}

static void join_unshare(void *shared)
{
    assert(shared != NULL);
    join_store_close(shared);
}

static void show_held(struct join *self)
{
    struct join_counters *counters = self->base.counters;
    assert(counters != NULL);
    counter_set(&counters->held_profiles, self->hold.count);
    counter_set(&counters->held_bytes, self->hold.bytes);
}

static void end_released(struct join *self, struct released *released,
                         const struct outcome *outcome)
{
    assert(outcome->verdict != REFUSED);
    trace_profile_keep_book(&self->base, released->lost, outcome);
    trace_profile_hold_return(&self->hold, released->held_bytes);
    batch_unref(released->offered.batch);
    mem_free(released);
    show_held(self);
}

static void on_released(struct downstream_batch *offered, const struct outcome *outcome)
{
    assert(offered->owner != NULL);
    end_released(join_of(offered->owner->component), (struct released *)offered, outcome);
}

static void release(struct join *self, struct batch *batch, enum release why)
{
    struct join_counters *counters = self->base.counters;
    struct released *released = mem_zalloc(sizeof(*released));
    assert(!downstream_is_blocked(&self->downstream));
    released->held_bytes = batch->bytes;
    struct finished finished = trace_profile_finish_anew(&self->base, self->store, batch);
    released->offered.batch = finished.batch;
    released->lost = finished.lost;
    batch_unref(finished.copies);
    batch_unref(batch);
    counter_add(&counters->released[why], 1);
    if (released->lost != NULL && released->offered.batch->items == 0)
        end_released(self, released, &outcome_accepted);
    else
        downstream_offer(&self->downstream, &released->offered);
}

/* Three quarters of the budget are in use: nothing waits any longer. */
static bool is_under_pressure(const struct join *self)
{
    const struct budget *budget = self->base.budget;
    uint64_t limit = budget_limit(budget);
    assert(limit > 0);
    return budget_used(budget) > limit - limit / 4;
}

/* Why the oldest one that is held should go on now, if it should. */
static bool is_due(const struct join *self, enum release *ret_why)
{
    assert(self->hold.first != NULL);
    if (self->is_stopping)
        *ret_why = RELEASE_STOP;
    else if (is_under_pressure(self))
        *ret_why = RELEASE_PRESSURE;
    else if (clock_now_ns() >= self->hold.first->deadline_ns)
        *ret_why = RELEASE_TIMEOUT;
    else
        return false;
    return true;
}

/* What may still be done before others have their turn on the lane. */
struct turn {
    unsigned requests;
    uint64_t bytes;
    unsigned looks;
};

static bool is_over(const struct turn *turn)
{
    assert(turn->requests <= JOIN_TURN_REQUESTS_MAX);
    return turn->requests == 0 || turn->bytes == 0 || turn->looks == 0;
}

static void arm(struct join *self, bool goes_on)
{
    uint64_t now_ns = clock_now_ns();
    const struct held *first = self->hold.first;
    if (first == NULL || (timer_is_running(&self->timer) && !goes_on))
        return;
    uint64_t left_ns = first->deadline_ns > now_ns ? first->deadline_ns - now_ns : JOIN_RECHECK_NS;
    assert(!self->is_stopping || goes_on || downstream_is_blocked(&self->downstream));
    if (left_ns > JOIN_RECHECK_NS)
        left_ns = JOIN_RECHECK_NS;
    lane_timer_start(self->base.lane, &self->timer, goes_on ? JOIN_TURN_NS : left_ns);
}

static void release_in_turn(struct join *self, struct batch *batch, enum release why,
                            struct turn *turn)
{
    assert(turn->requests > 0);
    turn->requests--;
    turn->bytes -= batch->bytes < turn->bytes ? batch->bytes : turn->bytes;
    release(self, batch, why);
}

static bool may_release(const struct join *self, const struct turn *turn)
{
    assert(self->base.signal == PROFILES);
    return self->hold.first != NULL && turn->requests > 0 && turn->bytes > 0 &&
           !downstream_is_blocked(&self->downstream);
}

/* Lets go what is complete or has waited enough, as far as the next stage takes it. */
static void release_due(struct join *self)
{
    struct turn turn = {.requests = JOIN_TURN_REQUESTS_MAX,
                        .bytes = JOIN_TURN_BYTES_MAX,
                        .looks = JOIN_TURN_LOOKS_MAX};
    enum release why;
    struct batch *batch;
    assert(lane_is_current(self->base.lane));
    while (may_release(self, &turn) &&
           (batch = trace_profile_hold_pop_complete(&self->hold, &turn.looks)) != NULL)
        release_in_turn(self, batch, RELEASE_COMPLETE, &turn);
    while (may_release(self, &turn) && is_due(self, &why))
        release_in_turn(self, trace_profile_hold_pop(&self->hold), why, &turn);
    arm(self, is_over(&turn));
    show_held(self);
}

static void on_room(struct component *component)
{
    struct join *self = join_of(component);
    release_due(self);
    assert(component->signal == PROFILES);
    if (self->is_stopping && self->control == NULL && self->hold.first == NULL &&
        self->downstream.count == 0) {
        downstream_end(&self->downstream);
        lane_timer_stop(component->lane, &self->timer);
        component_stopped(component);
    }
}

static void on_timer(struct timer *timer, void *arg)
{
    struct join *self = arg;
    assert(timer == &self->timer);
    (void)timer;
    release_due(self);
}

static bool may_wait(const struct join *self, uint64_t bytes)
{
    const struct join_settings *settings = &self->store->settings;
    assert(bytes > 0);
    return settings->hold_ns != 0 && self->store->has_spans && !self->is_stopping &&
           bytes <= settings->hold_bytes && !is_under_pressure(self);
}

/* Room for a profile that has to wait, made by letting older ones go. */
static bool make_room(struct join *self, uint64_t bytes)
{
    struct turn turn = {.requests = JOIN_TURN_REQUESTS_MAX, .bytes = JOIN_TURN_BYTES_MAX};
    assert(may_wait(self, bytes));
    for (;;) {
        if (trace_profile_hold_try_take(&self->hold, bytes))
            return true;
        if (!may_release(self, &turn))
            return false;
        release_in_turn(self, trace_profile_hold_pop(&self->hold), RELEASE_PRESSURE, &turn);
    }
}

/* Its bytes are taken. Its sender is told OK: from now on it is ours. */
static void hold(struct join *self, struct batch *batch, const struct profile_links *links,
                 struct pending_processes *pending, struct receipt *receipt)
{
    struct batch *owned = batch_create_like(batch, 1);
    assert(batch->parts_count == 1);
    batch_append_batch(owned, batch);
    owned->is_acknowledged = true;
    trace_profile_hold_add(&self->hold, owned, links, pending,
                           clock_now_ns() + self->store->settings.hold_ns);
    arm(self, false);
    show_held(self);
    receipt_resolve(receipt, &outcome_accepted);
}

/* Whether the batch, looked up, is to wait; then its bytes are taken. pending has what it waits for
 * besides spans that are missing. */
static bool is_to_wait(struct join *self, const struct profile_enricher *enricher,
                       const struct batch *batch, uint32_t missing,
                       struct pending_processes *pending)
{
    assert(pending->items == NULL);
    if (!may_wait(self, batch->bytes))
        return false;
    if (missing > 0)
        return make_room(self, batch->bytes);
    pending_processes_collect(pending, &enricher->links, clock_now_ns());
    return pending->count > 0 && trace_profile_hold_try_take_spare(&self->hold, batch->bytes);
}

static void consume_profiles(struct join *self, struct batch *batch, struct receipt *receipt)
{
    struct profile_enricher enricher;
    struct pending_processes pending = {.items = NULL};
    struct batch *whole = batch_in_one_part(batch, self->base.budget);
    struct finished finished = {.batch = NULL};
    uint32_t missing;
    assert(batch->signal == PROFILES);
    profile_enricher_init(&enricher, self->store, self->base.budget);
    if (!trace_profile_look_up(&enricher, whole, &missing))
        finished.batch = batch_ref(whole);
    else if (is_to_wait(self, &enricher, whole, missing, &pending))
        hold(self, whole, &enricher.links, &pending, receipt);
    else
        finished = trace_profile_finish(&self->base, &enricher, whole);
    profile_enricher_fini(&enricher);
    pending_processes_fini(&pending);
    if (finished.batch != NULL)
        trace_profile_keep_pass(&self->base, &finished, receipt);
    batch_unref(whole);
}

/* True: the whole request is read. */
static bool read_spans(struct join *self, struct span_reader *reader, uint64_t spans_max)
{
    struct join_counters *counters = self->base.counters;
    const struct span_shard *shard = &self->store->index.shards[lane_index(self->base.lane)];
    uint64_t evictions = atomic_load_explicit(&shard->evictions, memory_order_relaxed);
    bool is_read = span_reader_step(reader, spans_max);
    counter_add(&counters->evicted,
                atomic_load_explicit(&shard->evictions, memory_order_relaxed) - evictions);
    return is_read;
}

static void pass_traces_on(struct join *self, struct span_reader *reader, struct receipt *receipt)
{
    struct join_counters *counters = self->base.counters;
    struct span_figures figures;
    struct batch *marked = span_reader_end(reader, &figures);
    counter_add(&counters->indexed, figures.indexed);
    counter_add(&counters->skipped, figures.skipped);
    counter_add(&counters->late, figures.late);
    counter_add(&counters->marked, figures.marked);
    counter_add(&counters->unmarked, figures.unmarked);
    counter_add(&counters->outgoing[TRACES], marked->items);
    component_consume(self->base.next, marked, receipt);
    batch_unref(marked);
}

static void end_if_idle(struct join *self);

static void on_large_request(void *arg)
{
    struct large_request *large = arg;
    struct join *self = large->self;
    lane_rest(self->base.lane);
    if (!read_spans(self, &large->reader, JOIN_TURN_SPANS_MAX)) {
        lane_defer(self->base.lane, &large->job);
        return;
    }
    pass_traces_on(self, &large->reader, large->receipt);
    span_reader_fini(&large->reader);
    mem_free(large);
    self->large_requests--;
    if (self->is_stopping)
        end_if_idle(self);
}

static void consume_traces(struct join *self, struct batch *batch, struct receipt *receipt)
{
    struct span_reader *reader = &self->reader;
    if (batch->items <= JOIN_TURN_SPANS_MAX) {
        span_reader_begin(reader, batch, clock_now_ns());
        bool is_read = read_spans(self, reader, UINT64_MAX);
        assert(is_read);
        pass_traces_on(self, reader, receipt);
        return;
    }
    struct large_request *large = mem_zalloc(sizeof(*large));
    large->self = self;
    large->receipt = receipt;
    large->job = (struct lane_job){.fn = on_large_request, .arg = large};
    span_reader_init(&large->reader, self->store, reader->shard, reader->budget);
    span_reader_begin(&large->reader, batch, clock_now_ns());
    self->large_requests++;
    lane_defer(self->base.lane, &large->job);
}

static void join_consume(struct component *component, struct batch *batch, struct receipt *receipt)
{
    struct join *self = join_of(component);
    struct join_counters *counters = component->counters;
    assert(batch->signal == component->signal);
    counter_add(&counters->incoming[batch->signal], batch->items);
    bool is_short = batch->signal == PROFILES && batch->parts_count > 1 &&
                    !budget_has_room(component->budget, batch->bytes);
    if (is_short && !batch->is_acknowledged) {
        struct outcome outcome = outcome_busy("the memory budget has no room to join profiles");
        outcome.reason = LOSS_MEMORY;
        receipt_resolve(receipt, &outcome);
        return;
    }
    if (batch->bytes == 0 || batch->bytes > UINT32_MAX / 2 || is_short)
        component_consume(component->next, batch, receipt);
    else if (batch->signal == TRACES)
        consume_traces(self, batch, receipt);
    else
        consume_profiles(self, batch, receipt);
}

static bool join_create(struct component *component, struct error *error)
{
    struct join *self = join_of(component);
    assert(component->shared != NULL);
    assert(error != NULL);
    self->store = component->shared;
    self->is_made = true;
    if (component->signal == TRACES) {
        self->store->has_spans = true;
        span_reader_init(&self->reader, self->store, lane_index(component->lane),
                         component->budget);
        return true;
    }
    trace_profile_hold_init(&self->hold, self->store, component->budget);
    downstream_init(&self->downstream, component, on_released, on_room);
    timer_init(&self->timer, on_timer, self);
    return true;
}

static void tell_of_small_index(const struct join *self)
{
    const struct trace_profile_join_config *config = self->base.config;
    assert(self->store != NULL);
    uint64_t bytes = self->store->settings.index_bytes;
    if (bytes < config->index.bytes && self->base.first == &self->base &&
        self->base.signal == TRACES)
        log_warn(&self->base.logger,
                 "The index of spans is smaller than index::bytes: half of the memory for requests",
                 log_int("bytes", (int64_t)bytes));
}

/* All instances are made by now. */
static void tell_of_missing_spans(const struct join *self)
{
    assert(self->store != NULL);
    if (!self->store->has_spans && self->base.first == &self->base)
        log_warn(&self->base.logger,
                 "No pipeline of traces has this processor, so that profiles learn nothing: name "
                 "it there, too, by the same id");
}

/* The instance that is the first to start listens for all. */
static bool join_start(struct component *component, struct error *error)
{
    struct join *self = join_of(component);
    const struct trace_profile_join_config *config = component->config;
    assert(self->control == NULL);
    tell_of_small_index(self);
    tell_of_missing_spans(self);
    if (config->control.endpoint[0] == '\0' || lane_index(component->lane) != 0 ||
        self->store->has_control)
        return true;
    self->control =
        trace_profile_control_start(component, &config->control, &self->store->keep, error);
    self->store->has_control = self->control != NULL;
    return self->control != NULL;
}

static void end_if_idle(struct join *self)
{
    assert(self->is_stopping);
    if (self->base.signal == PROFILES)
        on_room(&self->base);
    else if (self->control == NULL && self->large_requests == 0)
        component_stopped(&self->base);
}

static void on_control_stopped(void *arg)
{
    struct join *self = arg;
    assert(self->control != NULL);
    trace_profile_control_destroy(self->control);
    self->control = NULL;
    end_if_idle(self);
}

static void join_stop(struct component *component)
{
    struct join *self = join_of(component);
    assert(!self->is_stopping);
    self->is_stopping = true;
    if (self->control != NULL)
        trace_profile_control_stop(self->control, on_control_stopped, self);
    if (component->signal == PROFILES)
        downstream_stop(&self->downstream);
    end_if_idle(self);
}

static void join_destroy(struct component *component)
{
    struct join *self = join_of(component);
    assert(component->factory != NULL);
    if (!self->is_made)
        return;
    if (component->signal == TRACES) {
        assert(self->large_requests == 0);
        span_reader_fini(&self->reader);
        return;
    }
    assert(self->downstream.count == 0);
    trace_profile_hold_fini(&self->hold);
}

const struct component_factory trace_profile_join_processor_factory = {
    .type = "trace_profile_join",
    .kind = PROCESSOR,
    .stability = "development",
    .signals = SIGNAL_TRACES | SIGNAL_PROFILES,
    .instance_size = sizeof(struct join),
    .config_size = sizeof(struct trace_profile_join_config),
    .fields = trace_profile_join_fields,
    .counters_size = sizeof(struct join_counters),
    .counters = join_counters,
    .check = trace_profile_join_check,
    .share = join_share,
    .unshare = join_unshare,
    .create = join_create,
    .start = join_start,
    .consume = join_consume,
    .stop = join_stop,
    .destroy = join_destroy,
};
