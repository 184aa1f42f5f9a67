/* SPDX-License-Identifier: Apache-2.0 */
/* groupbytrace: holds spans for a while and passes them on trace by trace. Each trace belongs to
 * one lane, by its id: spans that come to others are sent there in parcels. In a pipeline with a
 * journal, where requests wait for their spans on their own lane, each lane holds what comes to it.
 * Runs on its pipeline's lane; the lane's helper cuts large requests. */
#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/hash_table.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/config/field.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/pipeline/downstream_retry.h"
#include "src/records/trace_split.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FRAGMENTS_PER_TURN = 2000, PARCEL_FRAGMENTS_FIRST = 16 };

/* A trace of more bytes, or of more than the budget's margin, goes on in several batches: later
 * stages may have to copy each, within the budget. */
enum { TRACE_BATCH_BYTES_MAX = 4 << 20 };

struct groupbytrace_config {
    int64_t num_traces;
    int64_t num_workers;
    uint64_t wait_duration_ns;
    bool discard_orphans;
    bool store_on_disk;
};

static const struct config_field groupbytrace_fields[] = {
    CONFIG_INT(struct groupbytrace_config, num_traces, "num_traces", "1000000", INT64_MIN,
               INT64_MAX, "Traces that are held; beyond it the oldest is dropped."),
    CONFIG_INT(struct groupbytrace_config, num_workers, "num_workers", "1", INT64_MIN, INT64_MAX,
               "Checked, without effect: lanes share the traces out."),
    CONFIG_DURATION_OR_NEGATIVE(struct groupbytrace_config, wait_duration_ns, "wait_duration", "1s",
                                "How long a trace is held after its first span."),
    CONFIG_BOOL(struct groupbytrace_config, discard_orphans, "discard_orphans", "false",
                "Only false is accepted, as in the Go collector."),
    CONFIG_BOOL(struct groupbytrace_config, store_on_disk, "store_on_disk", "false",
                "Only false is accepted, as in the Go collector."),
    CONFIG_END,
};

struct groupbytrace_counters {
    counter traces_max;
    counter traces;
    counter incomplete;
    counter evicted;
    counter released;
    counter spans_released;
};

#define PREFIX "otelcol_processor_groupbytrace_"
static const struct counter_row groupbytrace_counters[] = {
    COUNTER(struct groupbytrace_counters, traces_max, COUNTER_GAUGE, PREFIX "conf_num_traces",
            "Maximum number of traces to hold in the internal storage"),
    COUNTER(struct groupbytrace_counters, traces, COUNTER_GAUGE, PREFIX "num_traces_in_memory",
            "Number of traces currently in the in-memory storage"),
    COUNTER(struct groupbytrace_counters, incomplete, COUNTER_SUM, PREFIX "incomplete_releases",
            "Releases that are suspected to have been incomplete"),
    COUNTER(struct groupbytrace_counters, evicted, COUNTER_SUM, PREFIX "traces_evicted",
            "Traces evicted from the internal buffer"),
    COUNTER(struct groupbytrace_counters, released, COUNTER_SUM, PREFIX "traces_released",
            "Traces released to the next consumer"),
    COUNTER(struct groupbytrace_counters, spans_released, COUNTER_SUM, PREFIX "spans_released",
            "Spans released to the next consumer"),
    COUNTER_END,
};

/* A trace while it is held, then on its way to the next stage. */
struct held_trace {
    struct downstream_batch offered; /* first; has the batch */
    uint8_t id[TRACE_ID_BYTES];
    uint64_t hash;
    uint64_t number; /* of its first span's arrival */
    uint64_t deadline_ns;
    struct held_trace *next; /* younger */
    /* Batches that are full, in order, each with its receipts: they go on before this one. */
    struct held_trace *full;
    struct held_trace **full_end;
    /* In a pipeline with a journal: of the requests that it is from. */
    size_t receipts_count;
    struct receipt **receipts;
};

/* Of each trace beside its spans, with its place in the table. Charged for each fragment of a
 * request that was cut, too, on its way to other lanes as well, until it is in its trace. */
static size_t held_bytes(void)
{
    enum { PLACE_BYTES = 64 };
    return mem_taken(sizeof(struct held_trace)) + mem_taken(sizeof(struct batch)) + PLACE_BYTES;
}

/* A request that was cut, and whose fragments go into traces over several turns. */
struct cut_request {
    struct helper_work work; /* first */
    struct groupbytrace *self;
    struct batch *batch;     /* a reference */
    struct receipt *receipt; /* NULL: resolved */
    struct trace_split split;
    enum trace_split_result result;
    size_t taken; /* fragments that are in traces */
    struct cut_request *next;
};

/* Fragments of one request on their way to the lane of their traces, and back without them. */
struct parcel {
    struct lane_task task; /* first */
    struct groupbytrace *from;
    struct groupbytrace *to;
    struct batch *batch; /* that they are from; a reference */
    uint64_t items;      /* in all destinations */
    size_t count;
    size_t capacity;
    struct trace_fragment *fragments;
};

struct groupbytrace {
    struct component base;
    const struct groupbytrace_config *config;
    struct downstream_retry downstream;
    struct hash_table table; /* struct held_trace */
    struct held_trace *oldest;
    struct held_trace **youngest_end;
    uint64_t batch_bytes_max;
    uint64_t arrivals; /* of traces */
    uint64_t seed;
    uint64_t warned_ns;       /* of an eviction; 0: not yet */
    struct timer timer;       /* of the oldest */
    struct timer turn;        /* goes on taking */
    struct cut_request *cuts; /* being taken, oldest first */
    struct cut_request **cuts_end;
    unsigned helped;
    bool is_stopping;
    bool has_stopped;
    /* Lanes of the pipeline, by their order; one if traces are not shared out. */
    unsigned lanes;
    unsigned place; /* of this one */
    struct groupbytrace *peers[LANES_MAX];
    struct parcel *parcels[LANES_MAX]; /* being filled; NULL: none */
    unsigned posted;                   /* parcels that are not back yet */
    _Atomic unsigned open;             /* of the first: lanes that may still send */
    bool is_closed;                    /* at the stop: will send nothing any more */
    bool are_all_closed;
    struct lane_task closed; /* the last one closed */
};

extern const struct component_factory groupbytrace_processor_factory;

static struct groupbytrace *groupbytrace_of(struct component *component)
{
    assert(component->factory == &groupbytrace_processor_factory);
    return (struct groupbytrace *)component;
}

static bool groupbytrace_check(const void *section, struct error *error)
{
    const struct groupbytrace_config *config = section;
    /* The Go collector starts, and panics at the first span. */
    if (config->num_workers < 1)
        return error_set(error, "found %lld, expected 1 or more", (long long)config->num_workers) ||
               error_at(error, "num_workers");
    if (config->num_traces < config->num_workers)
        return error_set(error, "found %lld, expected num_workers or more",
                         (long long)config->num_traces) ||
               error_at(error, "num_traces");
    if (config->store_on_disk)
        return error_set(error, "option 'disk storage' not supported in this release") ||
               error_at(error, "store_on_disk");
    if (config->discard_orphans)
        return error_set(error, "option 'discard orphans' not supported in this release") ||
               error_at(error, "discard_orphans");
    return true;
}

/* ---- Traces ---- */

/* Ids are random, but clients choose them: a secret of the process goes in. */
static uint64_t hash_of(const struct groupbytrace *self, const uint8_t id[static TRACE_ID_BYTES],
                        uint32_t skips)
{
    return XXH3_64bits_withSeed(id, TRACE_ID_BYTES, self->seed + skips);
}

static struct held_trace *find_trace(const struct groupbytrace *self,
                                     const uint8_t id[static TRACE_ID_BYTES], uint32_t skips,
                                     uint64_t hash)
{
    size_t at = 0;
    struct held_trace *trace;
    while ((trace = hash_table_next(&self->table, hash, &at)) != NULL)
        if (memcmp(trace->id, id, TRACE_ID_BYTES) == 0 && trace->offered.batch->skips == skips)
            return trace;
    return NULL;
}

static size_t charge_of(const struct held_trace *trace)
{
    return held_bytes() + trace->receipts_count * sizeof(trace->receipts[0]);
}

static void free_trace(struct groupbytrace *self, struct held_trace *trace,
                       const struct outcome *outcome)
{
    struct outcome once = *outcome;
    for (size_t i = 0; i < trace->receipts_count; i++) {
        receipt_resolve(trace->receipts[i], &once);
        /* Of one of the requests. */
        once.rejected_items = once.invalid_items = once.too_large_items = once.delivered_items = 0;
    }
    mem_free((void *)trace->receipts);
    budget_return(self->base.budget, charge_of(trace));
    batch_unref(trace->offered.batch);
    mem_free(trace);
}

/* Out of the list and the table. */
static struct held_trace *pop_oldest(struct groupbytrace *self)
{
    struct held_trace *trace = self->oldest;
    struct groupbytrace_counters *counters = self->base.counters;
    self->oldest = trace->next;
    if (self->oldest == NULL)
        self->youngest_end = &self->oldest;
    trace->next = NULL;
    hash_table_remove(&self->table, trace->hash, trace);
    counter_set(&counters->traces, self->table.count);
    return trace;
}

/* Out of the list of its trace, which has some. */
static struct held_trace *pop_full(struct held_trace *trace)
{
    struct held_trace *full = trace->full;
    trace->full = full->next;
    if (trace->full == NULL)
        trace->full_end = &trace->full;
    full->next = NULL;
    return full;
}

static void lose_evicted(struct groupbytrace *self, struct held_trace *trace)
{
    const struct batch *batch = trace->offered.batch;
    struct outcome outcome = outcome_busy("num_traces is reached: the oldest trace was evicted");
    unsigned exporters = component_exporters(&self->base, batch);
    outcome.verdict = LOST;
    if (batch->is_acknowledged)
        ledger_drop(self->base.ledger, batch, LOSS_BUSY, exporters);
    else
        ledger_reject(self->base.ledger, batch, LOSS_BUSY, exporters);
    free_trace(self, trace, &outcome);
}

static void evict_oldest(struct groupbytrace *self)
{
    struct groupbytrace_counters *counters = self->base.counters;
    struct held_trace *trace = pop_oldest(self);
    counter_add(&counters->evicted, 1);
    counter_add(&counters->incomplete, 1);
    /* At most once a second. */
    if (self->warned_ns == 0 || clock_now_ns() - self->warned_ns >= NS_PER_S) {
        self->warned_ns = clock_now_ns();
        log_warn(&self->base.logger,
                 "trace evicted: in order to avoid this in the future, adjust the wait duration "
                 "and/or number of traces to keep in memory");
    }
    while (trace->full != NULL)
        lose_evicted(self, pop_full(trace));
    lose_evicted(self, trace);
}

/* Takes over the charge of its first fragment. NULL: no memory. */
static struct held_trace *add_trace(struct groupbytrace *self, const struct batch *model,
                                    const uint8_t id[static TRACE_ID_BYTES], uint64_t hash)
{
    struct groupbytrace_counters *counters = self->base.counters;
    struct held_trace *trace = mem_zalloc(sizeof(*trace));
    trace->full_end = &trace->full;
    trace->offered.batch = batch_create_like(model, 1);
    trace->offered.batch->is_acknowledged |= !self->base.is_journaled;
    memcpy(trace->id, id, TRACE_ID_BYTES);
    trace->hash = hash;
    trace->number = self->arrivals++;
    trace->deadline_ns = clock_now_ns() + self->config->wait_duration_ns;
    if (!hash_table_add(&self->table, hash, trace)) {
        free_trace(self, trace, &outcome_accepted);
        return NULL;
    }
    /* The Go collector has a ring of so many places, divided among its workers. */
    uint64_t places = (uint64_t)self->config->num_traces / self->lanes;
    if (self->oldest != NULL && self->oldest->number + (places > 0 ? places : 1) <= trace->number)
        evict_oldest(self);
    *self->youngest_end = trace;
    self->youngest_end = &trace->next;
    counter_set(&counters->traces, self->table.count);
    return trace;
}

/* There is no memory for its trace. */
static void lose_fragment(struct groupbytrace *self, const struct batch *from,
                          const struct trace_fragment *fragment, struct receipt *receipt)
{
    struct batch *lost = batch_create_like(from, 1);
    struct outcome outcome = outcome_busy("there is no memory for more traces");
    unsigned exporters = component_exporters(&self->base, lost);
    outcome.verdict = LOST;
    outcome.reason = LOSS_MEMORY;
    lost->items = fragment->items;
    if (lost->is_acknowledged || !self->base.is_journaled)
        ledger_drop(self->base.ledger, lost, LOSS_MEMORY, exporters);
    else
        ledger_reject(self->base.ledger, lost, LOSS_MEMORY, exporters);
    if (self->base.is_journaled)
        receipt_resolve(receipt, &outcome);
    batch_unref(lost);
}

/* Sets aside what the trace has, and begins a batch for what comes of it. */
static void begin_next_batch(struct groupbytrace *self, struct held_trace *trace,
                             const struct batch *from)
{
    budget_take(self->base.budget, held_bytes());
    struct held_trace *full = mem_zalloc(sizeof(*full));
    full->offered.batch = trace->offered.batch;
    full->receipts_count = trace->receipts_count;
    full->receipts = trace->receipts;
    *trace->full_end = full;
    trace->full_end = &full->next;
    trace->offered.batch = batch_create_like(from, 1);
    trace->offered.batch->is_acknowledged |= !self->base.is_journaled;
    trace->receipts_count = 0;
    trace->receipts = NULL;
}

/* Adds it to its trace, on the lane of that. receipt: in a pipeline with a journal. A new trace
 * takes over its charge (return_charges). */
static void take_fragment(struct groupbytrace *self, const struct batch *from,
                          struct trace_fragment *fragment, struct receipt *receipt)
{
    uint64_t hash = hash_of(self, fragment->id, from->skips);
    struct held_trace *trace = find_trace(self, fragment->id, from->skips, hash);
    if (trace == NULL)
        trace = add_trace(self, from, fragment->id, hash);
    if (trace == NULL) {
        lose_fragment(self, from, fragment, receipt);
        buffer_unref(fragment->buffer);
        fragment->buffer = NULL;
        return;
    }
    const size_t bytes = fragment->buffer->size;
    if (trace->offered.batch->bytes > 0 &&
        trace->offered.batch->bytes + bytes > self->batch_bytes_max)
        begin_next_batch(self, trace, from);
    struct batch *batch = trace->offered.batch;
    batch_append(batch, fragment->buffer, buffer_slice(fragment->buffer));
    buffer_unref(fragment->buffer);
    fragment->buffer = NULL;
    batch->items += fragment->items;
    if (from->arrival_ns < batch->arrival_ns)
        batch->arrival_ns = from->arrival_ns;
    batch->is_acknowledged &= from->is_acknowledged || !self->base.is_journaled;
    if (batch->client != from->client) {
        client_info_unref(batch->client);
        batch->client = NULL;
    }
    if (!self->base.is_journaled)
        return;
    budget_take(self->base.budget, sizeof(trace->receipts[0]));
    trace->receipts = (struct receipt **)mem_resize(
        (void *)trace->receipts, (trace->receipts_count + 1) * sizeof(struct receipt *));
    trace->receipts[trace->receipts_count++] = receipt;
}

/* Of so many fragments, less those that began traces, of which there were so many before. */
static void return_charges(struct groupbytrace *self, size_t fragments, uint64_t arrivals)
{
    const size_t left = fragments - (size_t)(self->arrivals - arrivals);
    if (left > 0)
        budget_return(self->base.budget, left * held_bytes());
}

/* ---- Parcels ---- */

static void release_due(struct groupbytrace *self);

static size_t charge_of_parcel(const struct parcel *parcel)
{
    return sizeof(*parcel) + parcel->capacity * sizeof(parcel->fragments[0]);
}

static void on_parcel_back(struct lane_task *task)
{
    struct parcel *parcel = (struct parcel *)task;
    struct groupbytrace *self = parcel->from;
    assert(self->posted > 0);
    self->posted--;
    ledger_hand_over(self->base.ledger, TRACES, parcel->items);
    budget_return(self->base.budget, charge_of_parcel(parcel));
    batch_unref(parcel->batch);
    mem_free(parcel->fragments);
    mem_free(parcel);
    release_due(self);
}

static void on_parcel(struct lane_task *task)
{
    struct parcel *parcel = (struct parcel *)task;
    struct groupbytrace *self = parcel->to;
    const uint64_t arrivals = self->arrivals;
    assert(!self->has_stopped);
    ledger_take_over(self->base.ledger, TRACES, parcel->items);
    for (size_t i = 0; i < parcel->count; i++)
        take_fragment(self, parcel->batch, &parcel->fragments[i], NULL);
    return_charges(self, parcel->count, arrivals);
    release_due(self);
    parcel->task.fn = on_parcel_back;
    lane_post(parcel->from->base.lane, &parcel->task);
}

/* Takes the fragment, or puts it into the parcel for the lane of its trace. True: it was taken. */
static bool share_out(struct groupbytrace *self, struct cut_request *cut,
                      struct trace_fragment *fragment)
{
    enum { LANE_SHIFT = 40 }; /* other bits than the table's */
    uint64_t hash = hash_of(self, fragment->id, cut->batch->skips);
    unsigned place = (unsigned)((hash >> LANE_SHIFT) % self->lanes);
    if (place == self->place) {
        take_fragment(self, cut->batch, fragment, cut->receipt);
        return true;
    }
    struct parcel *parcel = self->parcels[place];
    if (parcel == NULL) {
        parcel = self->parcels[place] = mem_zalloc(sizeof(*parcel));
        parcel->from = self;
        parcel->to = self->peers[place];
        parcel->batch = batch_ref(cut->batch);
    }
    if (parcel->count == parcel->capacity) {
        parcel->capacity = parcel->capacity > 0 ? 2 * parcel->capacity : PARCEL_FRAGMENTS_FIRST;
        parcel->fragments =
            mem_resize(parcel->fragments, parcel->capacity * sizeof(parcel->fragments[0]));
    }
    parcel->fragments[parcel->count++] = *fragment;
    parcel->items += fragment->items * component_exporters(&self->base, cut->batch);
    fragment->buffer = NULL;
    return false;
}

static void post_parcels(struct groupbytrace *self)
{
    for (unsigned i = 0; i < self->lanes; i++) {
        struct parcel *parcel = self->parcels[i];
        if (parcel == NULL)
            continue;
        self->parcels[i] = NULL;
        self->posted++;
        budget_take(self->base.budget, charge_of_parcel(parcel));
        parcel->task.fn = on_parcel;
        lane_post(parcel->to->base.lane, &parcel->task);
    }
}

/* ---- Releasing ---- */

static void on_output_end(struct downstream_batch *offered, const struct outcome *outcome)
{
    struct held_trace *trace = (struct held_trace *)offered;
    free_trace(groupbytrace_of(offered->owner->component), trace, outcome);
}

static void on_all_closed(struct lane_task *task)
{
    struct groupbytrace *self =
        (struct groupbytrace *)((char *)task - offsetof(struct groupbytrace, closed));
    self->are_all_closed = true;
    release_due(self);
}

/* At the stop: once this lane has nothing left to share out, and the last one tells the others. */
static void close_lane(struct groupbytrace *self)
{
    if (self->is_closed || self->cuts != NULL || self->helped > 0 || self->posted > 0)
        return;
    self->is_closed = true;
    if (atomic_fetch_sub_explicit(&self->peers[0]->open, 1, memory_order_relaxed) > 1)
        return;
    self->are_all_closed = true;
    for (unsigned i = 0; i < self->lanes; i++) {
        struct groupbytrace *peer = self->peers[i];
        if (peer == self || !peer->base.is_started) /* the service could not start */
            continue;
        peer->closed.fn = on_all_closed;
        lane_post(peer->base.lane, &peer->closed);
    }
}

static void release_due(struct groupbytrace *self)
{
    struct groupbytrace_counters *counters = self->base.counters;
    uint64_t now_ns = clock_now_ns();
    if (self->has_stopped)
        return;
    if (self->is_stopping)
        close_lane(self);
    /* At the stop all go, once the last spans have come from other lanes. */
    bool is_over = self->are_all_closed;
    while (self->oldest != NULL && !downstream_is_blocked(&self->downstream) &&
           (is_over || self->oldest->deadline_ns <= now_ns)) {
        const bool has_more = self->oldest->full != NULL;
        struct held_trace *trace = has_more ? pop_full(self->oldest) : pop_oldest(self);
        counter_add(&counters->released, !has_more);
        counter_add(&counters->spans_released, trace->offered.batch->items);
        downstream_offer(&self->downstream, &trace->offered);
    }
    /* Blocked: on_room goes on. */
    if (self->oldest != NULL && !downstream_is_blocked(&self->downstream))
        lane_timer_start(self->base.lane, &self->timer, self->oldest->deadline_ns - now_ns);
    if (!is_over || self->oldest != NULL || self->downstream.count > 0)
        return;
    self->has_stopped = true;
    lane_timer_stop(self->base.lane, &self->timer);
    lane_timer_stop(self->base.lane, &self->turn);
    downstream_end(&self->downstream);
    component_stopped(&self->base);
}

static void on_due(struct timer *timer, void *arg)
{
    struct groupbytrace *self = arg;
    assert(timer == &self->timer);
    release_due(self);
}

static void on_room(struct component *component)
{
    release_due(groupbytrace_of(component));
}

/* ---- Taking ---- */

static void free_cut(struct cut_request *cut)
{
    struct budget *budget = cut->self->base.budget;
    trace_split_fini(&cut->split);
    batch_unref(cut->batch);
    mem_free(cut);
    budget_return(budget, sizeof(*cut));
}

/* So many fragments of the requests that were cut as one turn may take. */
static void take_some(struct groupbytrace *self)
{
    size_t left = FRAGMENTS_PER_TURN;
    while (self->cuts != NULL && left > 0) {
        struct cut_request *cut = self->cuts;
        const size_t ready = cut->split.fragments_count - cut->taken;
        const size_t end = cut->taken + (ready < left ? ready : left);
        const uint64_t arrivals = self->arrivals;
        size_t own = 0;
        left -= end - cut->taken;
        while (cut->taken < end)
            own += share_out(self, cut, &trace_split_fragments(&cut->split)[cut->taken++]);
        return_charges(self, own, arrivals);
        post_parcels(self);
        if (cut->taken < cut->split.fragments_count)
            break;
        self->cuts = cut->next;
        if (self->cuts == NULL)
            self->cuts_end = &self->cuts;
        free_cut(cut);
    }
    if (self->cuts != NULL)
        lane_timer_start(self->base.lane, &self->turn, 0);
    release_due(self);
}

static void on_turn(struct timer *timer, void *arg)
{
    struct groupbytrace *self = arg;
    assert(timer == &self->turn);
    take_some(self);
}

static void conclude(struct cut_request *cut)
{
    struct groupbytrace *self = cut->self;
    if (cut->result != TRACE_SPLIT_DONE) {
        struct outcome outcome = outcome_busy("the memory budget has no room to group spans");
        outcome.reason = LOSS_MEMORY;
        if (cut->result == TRACE_SPLIT_TOO_LARGE)
            outcome =
                outcome_too_large("grouping the spans takes more than the whole memory budget "
                                  "(service::budget_mib), or repeats their resources too often; "
                                  "send less at a time");
        receipt_resolve(cut->receipt, &outcome);
        free_cut(cut);
        release_due(self);
        return;
    }
    if (!self->base.is_journaled || cut->split.fragments_count == 0)
        receipt_resolve(cut->receipt, &outcome_accepted);
    else if (cut->receipt != NULL)
        receipt_expect(cut->receipt, (unsigned)cut->split.fragments_count - 1);
    *self->cuts_end = cut;
    self->cuts_end = &cut->next;
    if (self->cuts == cut)
        take_some(self);
}

/* On the lane or on its helper. */
static void run(struct cut_request *cut, uint64_t written_max)
{
    cut->result = trace_split_run(&cut->split, cut->batch, written_max);
    if (cut->result == TRACE_SPLIT_DONE)
        budget_take(cut->self->base.budget, cut->split.fragments_count * held_bytes());
}

static void on_help(struct helper_work *work)
{
    run((struct cut_request *)work, UINT64_MAX);
}

static void on_helped(struct helper_work *work)
{
    struct cut_request *cut = (struct cut_request *)work;
    assert(cut->self->helped > 0);
    cut->self->helped--;
    conclude(cut);
}

static void groupbytrace_consume(struct component *component, struct batch *batch,
                                 struct receipt *receipt)
{
    struct groupbytrace *self = groupbytrace_of(component);
    assert(batch->signal == TRACES);
    if (downstream_is_refusing(&self->downstream)) {
        struct outcome outcome = outcome_busy("groupbytrace is full: the next stage is busy");
        receipt_resolve(receipt, &outcome);
        return;
    }
    budget_take(component->budget, sizeof(struct cut_request));
    struct cut_request *cut = mem_zalloc(sizeof(*cut));
    cut->work = (struct helper_work){.run = on_help, .done = on_helped};
    cut->self = self;
    cut->batch = batch_ref(batch);
    cut->receipt = receipt;
    trace_split_init(&cut->split, component->budget);
    cut->result = TRACE_SPLIT_LONG;
    if (batch->bytes < HELPED_BYTES_MIN)
        run(cut, HELPED_BYTES_MIN);
    if (cut->result != TRACE_SPLIT_LONG) {
        conclude(cut);
        return;
    }
    /* It is large, or its fragments are. */
    trace_split_fini(&cut->split);
    trace_split_init(&cut->split, component->budget);
    self->helped++;
    lane_help(component->lane, &cut->work);
}

/* ---- Life ---- */

static bool groupbytrace_create(struct component *component, struct error *error)
{
    struct groupbytrace *self = groupbytrace_of(component);
    (void)error;
    self->config = component->config;
    self->youngest_end = &self->oldest;
    self->cuts_end = &self->cuts;
    self->seed = (uint64_t)(random_uniform() * 0x1p53);
    timer_init(&self->timer, on_due, self);
    timer_init(&self->turn, on_turn, self);
    downstream_init(&self->downstream, component, on_output_end, on_room);
    return true;
}

/* On the main thread, before any lane runs; the first lane's comes first. */
static bool groupbytrace_start(struct component *component, struct error *error)
{
    struct groupbytrace *self = groupbytrace_of(component);
    struct groupbytrace *first = groupbytrace_of(component->first);
    struct groupbytrace_counters *counters = component->counters;
    const uint64_t margin = budget_limit(component->budget) / BUDGET_MARGIN_PART;
    (void)error;
    self->batch_bytes_max = margin < TRACE_BATCH_BYTES_MAX ? margin : TRACE_BATCH_BYTES_MAX;
    self->seed = first->seed;
    if (component->is_journaled) {
        self->peers[self->lanes++] = self;
        first = self;
    } else {
        for (struct component *at = component->first; at != NULL; at = at->next_lane) {
            assert(self->lanes < LANES_MAX);
            if (at == component)
                self->place = self->lanes;
            self->peers[self->lanes++] = groupbytrace_of(at);
        }
    }
    atomic_fetch_add_explicit(&first->open, 1, memory_order_relaxed);
    if (component->first == component)
        counter_set(&counters->traces_max, (uint64_t)self->config->num_traces);
    return true;
}

static void groupbytrace_stop(struct component *component)
{
    struct groupbytrace *self = groupbytrace_of(component);
    self->is_stopping = true;
    downstream_stop(&self->downstream);
    release_due(self);
}

static void groupbytrace_destroy(struct component *component)
{
    struct groupbytrace *self = groupbytrace_of(component);
    assert(self->oldest == NULL);
    assert(self->cuts == NULL && self->helped == 0);
    hash_table_clear(&self->table);
}

const struct component_factory groupbytrace_processor_factory = {
    .type = "groupbytrace",
    .kind = PROCESSOR,
    .stability = "beta",
    .signals = SIGNAL_TRACES,
    .instance_size = sizeof(struct groupbytrace),
    .config_size = sizeof(struct groupbytrace_config),
    .fields = groupbytrace_fields,
    .counters_size = sizeof(struct groupbytrace_counters),
    .counters = groupbytrace_counters,
    .check = groupbytrace_check,
    .create = groupbytrace_create,
    .start = groupbytrace_start,
    .consume = groupbytrace_consume,
    .stop = groupbytrace_stop,
    .destroy = groupbytrace_destroy,
};
