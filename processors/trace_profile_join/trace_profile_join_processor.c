/* SPDX-License-Identifier: Apache-2.0 */
/* trace_profile_join: adds data of spans to profiles, and links to profiles to spans. In a traces
 * pipeline it copies spans into an index that all its instances share; in a profiles pipeline it
 * looks spans up and writes them into samples. Profiles whose spans have not arrived yet wait for
 * them. Held requests are accepted at once, as by batch; others get the result of the next stage.
 * Runs on its pipeline's lane. */
#include <assert.h>

#include "processors/trace_profile_join/trace_profile_control.h"
#include "processors/trace_profile_join/trace_profile_hold.h"
#include "processors/trace_profile_join/trace_profile_join_config.h"
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/ledger.h"
#include "src/core/receipt.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/pending_processes.h"
#include "src/join/profiles/profile_copies.h"
#include "src/join/profiles/profile_costs.h"
#include "src/join/profiles/profile_enrich.h"
#include "src/join/profiles/profile_keep.h"
#include "src/join/spans/span_reader.h"
#include "src/pipeline/downstream_retry.h"

/* Why a held request is released. */
enum release { RELEASE_COMPLETE, RELEASE_TIMEOUT, RELEASE_PRESSURE, RELEASE_STOP, RELEASES };

struct join_counters {
    counter incoming[SIGNAL_KINDS];
    counter outgoing[SIGNAL_KINDS];
    counter indexed;
    counter skipped;
    counter evicted;
    counter late;
    counter marked;
    counter unmarked;
    counter hits;
    counter unknown_services;
    counter absent;
    counter ambiguous;
    counter enriched;
    counter unenriched;
    counter timed;
    counter unsought;
    counter other_values;
    counter repaired;
    counter labelled;
    counter copied;
    counter uncopied;
    counter unwanted;
    counter untold;
    counter held_profiles;
    counter held_bytes;
    counter released[RELEASES];
};

#define METRIC "otelcol_processor_trace_profile_join_"

#define JOIN_COUNTER(field, kind, metric, help)                                                    \
    COUNTER(struct join_counters, field, kind, METRIC metric, help)
#define JOIN_COUNTER_BY(field, metric, why, text)                                                  \
    {                                                                                              \
        .name = METRIC metric, .help = (text), .type = COUNTER_SUM, .label = "reason",             \
        .label_value = (why),                                                                      \
        .offset = offsetof(struct join_counters, field) +                                          \
                  0 * sizeof(_Generic(&((struct join_counters *)0)->field, counter * : 1))         \
    }

static const struct counter_row join_counters[] = {
    COUNTER_BY_SIGNAL(struct join_counters, incoming, COUNTER_SUM,
                      "otelcol_processor_incoming_items", SIGNAL_TRACES | SIGNAL_PROFILES, NULL,
                      NULL, "Items passed to the processor."),
    COUNTER_BY_SIGNAL(struct join_counters, outgoing, COUNTER_SUM,
                      "otelcol_processor_outgoing_items", SIGNAL_TRACES | SIGNAL_PROFILES, NULL,
                      NULL, "Items emitted from the processor."),
    JOIN_COUNTER(indexed, COUNTER_SUM, "indexed_spans", "Number of spans put into the index"),
    JOIN_COUNTER(skipped, COUNTER_SUM, "skipped_spans",
                 "Number of spans not indexed, of services without profiles"),
    JOIN_COUNTER(evicted, COUNTER_SUM, "evicted_spans",
                 "Number of spans evicted from the index by newer ones"),
    JOIN_COUNTER(late, COUNTER_SUM, "late_spans",
                 "Number of spans that arrived after a profile had looked for them"),
    JOIN_COUNTER(marked, COUNTER_SUM, "marked_spans",
                 "Number of spans that got pyroscope.profile.id"),
    JOIN_COUNTER(unmarked, COUNTER_SUM, "unmarked_spans",
                 "Number of spans that did not get it for lack of memory budget"),
    JOIN_COUNTER(hits, COUNTER_SUM, "hits",
                 "Number of spans named by a request of profiles that were in the index"),
    JOIN_COUNTER_BY(absent, "misses", "absent",
                    "Number of spans named by a request of profiles that were not in the index"),
    JOIN_COUNTER_BY(unknown_services, "misses", "unknown_service",
                    "Number of spans named by a request of profiles that were not in the index"),
    JOIN_COUNTER_BY(ambiguous, "misses", "ambiguous",
                    "Number of spans named by a request of profiles that were not in the index"),
    JOIN_COUNTER(enriched, COUNTER_SUM, "enriched_samples",
                 "Number of samples that got an attribute or a link from their span"),
    JOIN_COUNTER(unenriched, COUNTER_SUM, "unenriched_samples",
                 "Number of samples that got neither for want of memory budget"),
    JOIN_COUNTER(timed, COUNTER_SUM, "window_samples",
                 "Number of samples that got a span by their time (window_fallback)"),
    JOIN_COUNTER(unsought, COUNTER_SUM, "unsought_samples",
                 "Number of samples whose span was not looked for by their time: a request had too "
                 "many of them"),
    JOIN_COUNTER(other_values, COUNTER_SUM, "other_values",
                 "Number of values beyond cap that became \"other\", once per span and request"),
    JOIN_COUNTER(repaired, COUNTER_SUM, "repaired_resources",
                 "Number of resources of profiles that got the service of their process"),
    JOIN_COUNTER(labelled, COUNTER_SUM, "labelled_resources",
                 "Number of resources of profiles that got the only trace of their process"),
    JOIN_COUNTER(copied, COUNTER_SUM, "copied_samples",
                 "Number of copies of samples for local roots and ancestors (count_for)"),
    JOIN_COUNTER(
        uncopied, COUNTER_SUM, "uncopied_samples",
        "Number of copies that were not made: a request had too many of them, or the memory "
        "budget had no room for them"),
    JOIN_COUNTER(unwanted, COUNTER_SUM, "unwanted_samples", "Number of samples that keep dropped"),
    JOIN_COUNTER(untold, COUNTER_SUM, "untold_samples",
                 "Number of samples that policies of tail_sampling did not learn of for want of "
                 "memory budget"),
    JOIN_COUNTER(held_profiles, COUNTER_GAUGE, "held_requests",
                 "Number of requests of profiles that wait for spans"),
    JOIN_COUNTER(held_bytes, COUNTER_GAUGE, "held_bytes",
                 "Bytes of profiles that wait for spans or for the next stage"),
    JOIN_COUNTER_BY(released[RELEASE_COMPLETE], "released_requests", "complete",
                    "Number of requests of profiles that have waited for spans"),
    JOIN_COUNTER_BY(released[RELEASE_TIMEOUT], "released_requests", "timeout",
                    "Number of requests of profiles that have waited for spans"),
    JOIN_COUNTER_BY(released[RELEASE_PRESSURE], "released_requests", "pressure",
                    "Number of requests of profiles that have waited for spans"),
    JOIN_COUNTER_BY(released[RELEASE_STOP], "released_requests", "stop",
                    "Number of requests of profiles that have waited for spans"),
    COUNTER_END,
};

struct join {
    struct component base;
    struct join_store *store;
    bool is_made;
    bool is_stopping;
    struct span_reader reader; /* traces */
    unsigned large_requests;   /* traces: being read */
    struct trace_profile_hold hold;
    struct downstream_retry downstream;
    struct timer timer;                    /* runs while something is held */
    struct trace_profile_control *control; /* NULL: another instance has it, or none */
};

/* A request of many spans, a part of which is read in each turn of the lane. The helper writes it
 * with its marks. */
struct large_request {
    struct helper_work work; /* first */
    struct join *self;
    struct span_reader reader;
    struct receipt *receipt;
    struct lane_job job;
    struct batch *marked; /* by the helper */
    struct span_figures figures;
};

/* A request that is ready for the next stage; has references. lost and copies have items only, for
 * the ledger. */
struct finished {
    struct batch *batch;
    struct batch *lost;   /* samples that keep dropped; NULL: none */
    struct batch *copies; /* samples in batch that count_for added, already received by the ledger;
                             NULL: none */
};

/* A finished request that was not held, in the next stage. */
struct passed {
    struct receipt receipt;
    struct receipt *outer;
    const struct component *owner;
    struct batch *lost;
    struct batch *copies;
};

/* A request that was held, on its way to the next stage. */
struct released {
    struct downstream_batch offered;
    struct receipt *receipt; /* NULL: resolved already */
    struct batch *lost;      /* as in finished */
    uint64_t held_bytes;
};

extern const struct component_factory trace_profile_join_processor_factory;

static struct join *join_of(struct component *component)
{
    assert(component->factory == &trace_profile_join_processor_factory);
    return (struct join *)component;
}

static void *join_share(const struct component *first, unsigned lanes, struct error *error)
{
    struct join_settings settings;
    uint64_t limit = budget_limit(first->budget);
    trace_profile_join_settings(first->config, &settings);
    /* The store takes at most half of the budget: on a small machine it remembers fewer spans. */
    uint64_t others = join_store_bytes(&settings, lanes) - settings.index_bytes;
    uint64_t room = limit / 2 > others ? limit / 2 - others : 0;
    if (settings.index_bytes > room)
        settings.index_bytes = room;
    if (settings.index_bytes / lanes < SPAN_SHARD_BYTES_MIN) {
        error_set(error,
                  "the span index needs 256KiB for each of %u lanes, and may take at most half of "
                  "the memory for requests%s: raise index::bytes or service::budget_mib",
                  lanes, settings.uses_window ? ", with 90 bytes for each of its entries" : "");
        return NULL;
    }
    struct join_store *store = join_store_open(first->id, &settings, lanes);
    if (store == NULL)
        error_set(error, "no memory for the span index");
    else
        budget_lower(first->budget, limit - join_store_bytes(&settings, lanes));
    return store;
}

static void join_unshare(void *shared)
{
    join_store_close(shared);
}

/* Reads the links of a batch in one part and looks up those that were not found yet. False: no
 * memory to index it; counts its samples. */
static bool look_up(const struct component *owner, struct profile_enricher *enricher,
                    const struct batch *batch, uint32_t *ret_missing)
{
    struct join_counters *counters = owner->counters;
    if (!profile_links_open(&enricher->links, batch->parts[0].bytes, clock_now_ns())) {
        counter_add(&counters->unenriched, batch->items);
        return false;
    }
    uint32_t missing = profile_links_resolve(&enricher->links);
    *ret_missing = missing + profile_keep_unsettled(&enricher->links);
    return true;
}

/* A batch with that many items and nothing else, for the ledger; NULL: no items. */
static struct batch *only_items(const struct batch *model, uint64_t items)
{
    if (items == 0)
        return NULL;
    struct batch *batch = batch_create_like(model, 1);
    batch->items = items;
    return batch;
}

/* Drops, copies and enriches the samples of a batch that was looked up. After a step that changes
 * the batch its links are read again; without memory for that the remaining steps are skipped. */
static struct finished finish(const struct component *owner, struct profile_enricher *enricher,
                              struct batch *batch)
{
    struct join_counters *counters = owner->counters;
    struct profile_links *links = &enricher->links;
    struct keep_rules rules = keep_switch_read(&links->store->keep);
    struct batch *kept = profile_keep(links, batch, &rules, owner->budget);
    struct finished finished = {.batch = kept,
                                .lost = only_items(batch, batch->items - kept->items)};
    uint32_t missing;
    if (kept != batch && (kept->items == 0 || !look_up(owner, enricher, kept, &missing)))
        return finished;

    if (profile_copies_are_on(&links->store->settings)) {
        struct copies_figures copies;
        struct batch *copied = profile_copies_add(links, kept, owner->budget, &copies);
        finished.batch = batch_in_one_part(copied, owner->budget);
        finished.copies = only_items(kept, copies.made);
        if (finished.copies != NULL)
            ledger_receive(owner->ledger, finished.copies,
                           component_exporters(owner, finished.copies));
        counter_add(&counters->copied, copies.made);
        counter_add(&counters->uncopied, copies.left_out);
        batch_unref(copied);
        batch_unref(kept);
        if (!look_up(owner, enricher, finished.batch, &missing))
            return finished;
    }

    struct enrich_figures figures;
    struct batch *enriched = profile_enrich(enricher, finished.batch, clock_now_ns(), &figures);
    assert(enriched->items == finished.batch->items);
    batch_unref(finished.batch);
    finished.batch = enriched;
    counter_add(&counters->hits, figures.hits);
    counter_add(&counters->absent, figures.absent);
    counter_add(&counters->unknown_services, figures.unknown_services);
    counter_add(&counters->ambiguous, figures.ambiguous);
    counter_add(&counters->enriched, figures.enriched_samples);
    counter_add(&counters->unenriched, figures.unenriched_samples);
    counter_add(&counters->other_values, figures.other_values);
    counter_add(&counters->repaired, figures.repaired);
    counter_add(&counters->labelled, figures.labelled);
    counter_add(&counters->timed, links->timed_found);
    counter_add(&counters->unsought, links->timed_left_out);
    counter_add(&counters->outgoing[PROFILES], enriched->items);
    return finished;
}

/* Counts dropped samples once the rest has its result; the client sends a refused request again
 * unchanged. Takes the reference. */
static void book_lost(const struct component *owner, struct batch *lost,
                      const struct outcome *outcome)
{
    struct join_counters *counters = owner->counters;
    assert(outcome->verdict != REFUSED);
    if (lost == NULL)
        return;
    counter_add(&counters->unwanted, lost->items);
    unsigned exporters = component_exporters(owner, lost);
    if (outcome->verdict == ACCEPTED || lost->is_acknowledged)
        ledger_drop(owner->ledger, lost, LOSS_UNWANTED, exporters);
    else
        ledger_reject(owner->ledger, lost, LOSS_UNWANTED, exporters);
    batch_unref(lost);
}

static void on_passed(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct passed *passed = arg;
    const struct component *owner = passed->owner;
    assert(receipt == &passed->receipt);
    if (outcome->verdict == REFUSED) {
        /* The copies are gone: when the client sends the request again, it gets new ones. */
        if (passed->copies != NULL)
            ledger_reject(owner->ledger, passed->copies, outcome->reason,
                          component_exporters(owner, passed->copies));
        batch_unref(passed->lost);
    } else {
        book_lost(owner, passed->lost, outcome);
    }
    receipt_resolve(passed->outer, outcome);
    batch_unref(passed->copies);
    mem_free(passed);
}

static void show_held(struct join *self)
{
    struct join_counters *counters = self->base.counters;
    counter_set(&counters->held_profiles, self->hold.count);
    counter_set(&counters->held_bytes, self->hold.bytes);
}

static void end_released(struct join *self, struct released *released,
                         const struct outcome *outcome)
{
    struct receipt *receipt = released->receipt;
    book_lost(&self->base, released->lost, outcome);
    trace_profile_hold_return(&self->hold, released->held_bytes);
    batch_unref(released->offered.batch);
    mem_free(released);
    show_held(self);
    receipt_resolve(receipt, outcome);
}

static void on_released(struct downstream_batch *offered, const struct outcome *outcome)
{
    end_released(join_of(offered->owner->component), (struct released *)offered, outcome);
}

/* Work left for this turn of the loop. */
struct turn {
    unsigned requests;
    uint64_t bytes;
    unsigned looks;
    uint64_t until_ns;
};

static bool may_release(const struct join *self, const struct turn *turn)
{
    return self->hold.first != NULL && turn->requests > 0 && turn->bytes > 0 &&
           clock_now_ns() < turn->until_ns && !downstream_is_blocked(&self->downstream);
}

/* Hands a request that was held to the next stage. Takes the reference. */
static void release(struct join *self, struct held_request request, enum release why,
                    struct turn *turn)
{
    struct join_counters *counters = self->base.counters;
    struct batch *batch = request.batch;
    struct released *released = mem_zalloc(sizeof(*released));
    struct finished finished = {.batch = batch};
    struct profile_enricher enricher;
    uint32_t missing;
    assert(turn->requests > 0);
    assert(!downstream_is_blocked(&self->downstream));
    turn->requests--;
    turn->bytes -= batch->bytes < turn->bytes ? batch->bytes : turn->bytes;
    released->held_bytes = batch->bytes;
    released->receipt = request.receipt;
    profile_enricher_init(&enricher, self->store, self->base.budget);
    profile_links_attach(&enricher.links, &request.spans);
    if (look_up(&self->base, &enricher, batch, &missing)) {
        finished = finish(&self->base, &enricher, batch);
        batch_unref(batch);
    }
    profile_enricher_fini(&enricher);
    released->offered.batch = finished.batch;
    released->lost = finished.lost;
    batch_unref(finished.copies);
    counter_add(&counters->released[why], 1);
    if (released->lost != NULL && released->offered.batch->items == 0)
        end_released(self, released, &outcome_accepted);
    else
        downstream_offer(&self->downstream, &released->offered);
}

/* Above three quarters of the budget nothing waits. */
static bool is_under_pressure(const struct join *self)
{
    const struct budget *budget = self->base.budget;
    uint64_t limit = budget_limit(budget);
    return budget_used(budget) > limit - limit / 4;
}

/* Starts the timer for the next look at what is held. */
static void arm(struct join *self, bool has_more_to_do)
{
    uint64_t now_ns = clock_now_ns();
    const struct held *first = self->hold.first;
    if (first == NULL || (timer_is_running(&self->timer) && !has_more_to_do))
        return;
    uint64_t left_ns = first->deadline_ns > now_ns ? first->deadline_ns - now_ns : JOIN_RECHECK_NS;
    assert(!self->is_stopping || has_more_to_do || downstream_is_blocked(&self->downstream));
    if (left_ns > JOIN_RECHECK_NS)
        left_ns = JOIN_RECHECK_NS;
    lane_timer_start(self->base.lane, &self->timer, has_more_to_do ? JOIN_TURN_NS : left_ns);
}

/* Releases what is complete or need not wait any longer, as far as the next stage takes it. */
static void release_due(struct join *self)
{
    struct turn turn = {.requests = JOIN_TURN_REQUESTS_MAX,
                        .bytes = JOIN_TURN_BYTES_MAX,
                        .looks = JOIN_TURN_LOOKS_MAX,
                        .until_ns = clock_now_ns() + JOIN_TURN_WORK_NS};
    assert(lane_is_current(self->base.lane));
    while (may_release(self, &turn)) {
        struct held_request request = trace_profile_hold_pop_complete(&self->hold, &turn.looks);
        if (request.batch == NULL)
            break;
        release(self, request, RELEASE_COMPLETE, &turn);
    }
    while (may_release(self, &turn)) {
        enum release why = RELEASE_STOP;
        if (!self->is_stopping) {
            why = RELEASE_PRESSURE;
            if (!is_under_pressure(self)) {
                why = RELEASE_TIMEOUT;
                if (clock_now_ns() < self->hold.first->deadline_ns)
                    break;
            }
        }
        release(self, trace_profile_hold_pop(&self->hold), why, &turn);
    }
    arm(self, turn.requests == 0 || turn.bytes == 0 || turn.looks == 0 ||
                  clock_now_ns() >= turn.until_ns);
    show_held(self);
}

static void on_room(struct component *component)
{
    struct join *self = join_of(component);
    release_due(self);
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
    on_room(&self->base);
}

/* Whether the batch, which was looked up, waits: for missing spans, or for the processes in
 * pending. If so its bytes are taken; older batches give way to one that misses spans. */
static bool is_to_wait(struct join *self, const struct profile_links *links,
                       const struct batch *batch, uint32_t missing,
                       struct pending_processes *pending)
{
    const struct join_settings *settings = &self->store->settings;
    if (settings->hold_ns == 0 || !self->store->has_spans || self->is_stopping ||
        batch->bytes > settings->hold_bytes || is_under_pressure(self))
        return false;
    if (missing == 0) {
        pending_processes_collect(pending, links, clock_now_ns());
        return pending->count > 0 && trace_profile_hold_try_take_spare(&self->hold, batch->bytes);
    }
    struct turn turn = {.requests = JOIN_TURN_REQUESTS_MAX,
                        .bytes = JOIN_TURN_BYTES_MAX,
                        .until_ns = clock_now_ns() + JOIN_TURN_WORK_NS};
    while (!trace_profile_hold_try_take(&self->hold, batch->bytes)) {
        if (!may_release(self, &turn))
            return false;
        release(self, trace_profile_hold_pop(&self->hold), RELEASE_PRESSURE, &turn);
    }
    return true;
}

/* For policies of tail_sampling. */
static void tell_costs(struct join *self, struct profile_links *links, const struct batch *batch)
{
    struct join_counters *counters = self->base.counters;
    if (!profile_costs_tell(links, clock_now_ns()))
        counter_add(&counters->untold, batch->items);
}

/* Holds a request of profiles, or hands it to the next stage if anything is left of it. */
static void consume_profiles(struct join *self, struct batch *batch, struct receipt *receipt)
{
    struct component *owner = &self->base;
    struct profile_enricher enricher;
    struct pending_processes pending = {.items = NULL};
    struct batch *whole = batch_in_one_part(batch, owner->budget);
    struct finished finished = {.batch = NULL};
    uint32_t missing;
    profile_enricher_init(&enricher, self->store, owner->budget);
    bool is_known = look_up(owner, &enricher, whole, &missing);
    if (is_known && self->store->wants_costs)
        tell_costs(self, &enricher.links, whole);
    if (!is_known) {
        finished.batch = batch_ref(whole);
    } else if (is_to_wait(self, &enricher.links, whole, missing, &pending)) {
        /* Accepted: from now on the join is responsible for it, or the journal before it. */
        struct batch *held = batch_create_like(whole, 1);
        batch_append_batch(held, whole);
        held->is_acknowledged = true;
        struct held_request request = {.batch = held,
                                       .receipt = owner->is_journaled ? receipt : NULL};
        trace_profile_hold_add(&self->hold, request, &enricher.links, &pending,
                               clock_now_ns() + self->store->settings.hold_ns);
        arm(self, false);
        show_held(self);
        if (!owner->is_journaled)
            receipt_resolve(receipt, &outcome_accepted);
    } else {
        finished = finish(owner, &enricher, whole);
    }
    profile_enricher_fini(&enricher);
    pending_processes_fini(&pending);
    batch_unref(whole);
    if (finished.batch == NULL)
        return;
    assert(finished.copies == NULL || finished.copies->items < finished.batch->items);
    if (finished.lost == NULL && finished.copies == NULL) {
        component_consume(owner->next, finished.batch, receipt);
    } else if (finished.batch->items == 0) {
        book_lost(owner, finished.lost, &outcome_accepted);
        receipt_resolve(receipt, &outcome_accepted);
    } else {
        struct passed *passed = mem_zalloc(sizeof(*passed));
        receipt_init(&passed->receipt, on_passed, passed);
        passed->outer = receipt;
        passed->owner = owner;
        passed->lost = finished.lost;
        passed->copies = finished.copies;
        component_consume(owner->next, finished.batch, &passed->receipt);
    }
    batch_unref(finished.batch);
}

/* Reads about spans_max spans. True: the whole request is read. */
static bool read_spans(struct join *self, struct span_reader *reader, uint64_t spans_max)
{
    struct join_counters *counters = self->base.counters;
    const struct span_shard *shard = &self->store->index.shards[lane_index(self->base.lane)];
    uint64_t evictions = atomic_load_explicit(&shard->evictions, memory_order_relaxed);
    bool is_read = span_reader_step(reader, spans_max, clock_now_ns());
    counter_add(&counters->evicted,
                atomic_load_explicit(&shard->evictions, memory_order_relaxed) - evictions);
    return is_read;
}

/* Takes over the reference. */
static void pass_traces_on(struct join *self, struct batch *marked,
                           const struct span_figures *figures, struct receipt *receipt)
{
    struct join_counters *counters = self->base.counters;
    counter_add(&counters->indexed, figures->indexed);
    counter_add(&counters->skipped, figures->skipped);
    counter_add(&counters->late, figures->late);
    counter_add(&counters->marked, figures->marked);
    counter_add(&counters->unmarked, figures->unmarked);
    counter_add(&counters->outgoing[TRACES], marked->items);
    component_consume(self->base.next, marked, receipt);
    batch_unref(marked);
}

static void end_if_idle(struct join *self)
{
    if (self->base.signal == PROFILES)
        on_room(&self->base);
    else if (self->control == NULL && self->large_requests == 0)
        component_stopped(&self->base);
}

/* Marks may make the request several times as large, in many parts, which a stage that cuts it
 * would join on the lane. */
static void write_marks(struct helper_work *work)
{
    enum { PARTS_MAX = 32 };
    struct large_request *large = (struct large_request *)work;
    struct budget *budget = large->reader.budget;
    struct batch *marked = span_reader_end(&large->reader, &large->figures);
    if (marked->parts_count > PARTS_MAX && budget_has_room(budget, marked->bytes)) {
        struct batch *whole = batch_in_one_part(marked, budget);
        batch_unref(marked);
        marked = whole;
    }
    large->marked = marked;
}

static void on_written(struct helper_work *work)
{
    struct large_request *large = (struct large_request *)work;
    struct join *self = large->self;
    pass_traces_on(self, large->marked, &large->figures, large->receipt);
    span_reader_fini(&large->reader);
    mem_free(large);
    self->large_requests--;
    if (self->is_stopping)
        end_if_idle(self);
}

static void on_large_request(void *arg)
{
    struct large_request *large = arg;
    struct lane *lane = large->self->base.lane;
    lane_rest(lane);
    if (read_spans(large->self, &large->reader, JOIN_TURN_SPANS_MAX))
        lane_help(lane, &large->work);
    else
        lane_defer(lane, &large->job);
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
    if (is_short)
        counter_add(&counters->unenriched, batch->items);
    if (batch->bytes == 0 || batch->bytes > UINT32_MAX / 2 || is_short) {
        component_consume(component->next, batch, receipt);
        return;
    }
    if (batch->signal == PROFILES) {
        consume_profiles(self, batch, receipt);
        return;
    }
    struct span_reader *reader = &self->reader;
    if (batch->items <= JOIN_TURN_SPANS_MAX) {
        span_reader_begin(reader, batch);
        bool is_read = read_spans(self, reader, UINT64_MAX);
        assert(is_read);
        struct span_figures figures;
        struct batch *marked = span_reader_end(reader, &figures);
        pass_traces_on(self, marked, &figures, receipt);
        return;
    }
    struct large_request *large = mem_zalloc(sizeof(*large));
    large->self = self;
    large->receipt = receipt;
    large->job = (struct lane_job){.fn = on_large_request, .arg = large};
    large->work = (struct helper_work){.run = write_marks, .done = on_written};
    span_reader_init(&large->reader, self->store, reader->shard, reader->budget);
    span_reader_begin(&large->reader, batch);
    self->large_requests++;
    lane_defer(component->lane, &large->job);
}

static bool join_create(struct component *component, struct error *error)
{
    struct join *self = join_of(component);
    (void)error;
    self->store = component->shared;
    self->is_made = true;
    if (component->signal == TRACES) {
        self->store->has_spans = true;
        span_reader_init(&self->reader, self->store, lane_index(component->lane),
                         component->budget);
        return true;
    }
    self->store->has_profiles = true;
    trace_profile_hold_init(&self->hold, self->store, component->budget);
    downstream_init(&self->downstream, component, on_released, on_room);
    timer_init(&self->timer, on_timer, self);
    return true;
}

/* Where tail_sampling stands beside it, that one looks for this one's store. */
static bool join_meet(struct component *component, struct error *error)
{
    struct join *self = join_of(component);
    (void)error;
    self->store->passes_unsampled |=
        component->signal == TRACES && component_beside(component, "tail_sampling") == NULL;
    return true;
}

/* All instances exist by now. The first to start on lane 0 listens for all. */
static bool join_start(struct component *component, struct error *error)
{
    struct join *self = join_of(component);
    const struct trace_profile_join_config *config = component->config;
    uint64_t index_bytes = self->store->settings.index_bytes;
    bool is_first = component->first == component;
    if (is_first && component->signal == TRACES && index_bytes < config->index.bytes)
        log_warn(&component->logger,
                 "The span index is smaller than index::bytes: it takes at most half of the memory "
                 "for requests",
                 log_int("bytes", (int64_t)index_bytes));
    if (is_first && !self->store->has_spans)
        log_warn(&component->logger, "No traces pipeline has this processor, so profiles get "
                                     "nothing from spans: add it to one, with the same id");
    if (config->control.endpoint[0] == '\0' || lane_index(component->lane) != 0 ||
        self->store->has_control)
        return true;
    self->control =
        trace_profile_control_start(component, &config->control, &self->store->keep, error);
    self->store->has_control = self->control != NULL;
    return self->control != NULL;
}

static void on_control_stopped(void *arg)
{
    struct join *self = arg;
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
    .meet = join_meet,
    .start = join_start,
    .consume = join_consume,
    .stop = join_stop,
    .destroy = join_destroy,
};
