/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines and outlets. A request in a pipeline is an entry: it remembers the upstream receipt,
 * and counts the refusal when nothing downstream took the batch. Runs on one lane. */
#include "src/pipeline/pipeline.h"

#include <assert.h>
#include <errno.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/counter.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/core/ledger.h"
#include "src/core/receipt.h"
#include "src/journal/journal.h"
#include "src/journal/journal_format.h"
#include "src/pipeline/exporter_queue.h"
#include "src/pipeline/fanout.h"
#include "src/pipeline/joint.h"
#include "src/pipeline/pipeline_limits.h"

struct pipeline {
    struct lane *lane;
    struct ledger *ledger;
    struct budget *budget;
    struct ring *ring;
    counter refusals; /* by the budget */
    struct lane_job job;
    struct component *head; /* first processor, or the fan-out */
    struct fanout *fanout;
    unsigned exporters;
    const char *id; /* NULL in some tests */
    struct journal *journal;
    uint64_t journal_bytes_max;    /* of one request */
    unsigned others;               /* destinations that do not store */
    uint32_t storing;              /* skip bits of those that do, exporters and connectors */
    unsigned weights[STORING_MAX]; /* of each bit: its destinations */
    uint64_t uncommitted;          /* requests in the journal's hands */
    void (*drained)(void *arg);
    void *drained_arg;
};

/* Which refusals the pipeline counts itself; the caller counts the others. */
enum counting { COUNTS_ALL, COUNTS_PERMANENT, COUNTS_NONE };

struct entry {
    struct receipt receipt;
    struct receipt *upstream;
    struct pipeline *pipeline;
    struct batch *batch;
    enum counting counting;
};

/* Bytes charged for an entry: itself, and at most two slots of a growing ring. */
enum { ENTRY_BYTES = sizeof(struct entry) + 2 * sizeof(void *) };

/* A request on its way through the journal, and then through the processors; or one that the
 * journal gives again. */
struct durable {
    struct journal_entry entry; /* first: the journal frees it */
    struct receipt receipt;
    struct receipt *upstream; /* until it is committed */
    struct pipeline *pipeline;
    struct batch *batch;
    uint8_t *meta;         /* until it is committed; owned */
    unsigned destinations; /* that it was given to */
    enum counting counting;
};
enum { DURABLE_BYTES = sizeof(struct durable) };

struct outlet {
    size_t count;
    struct pipeline *pipelines[];
};

/* REFUSED: nothing downstream has the batch, so it ends here. */
static void on_entry_resolved(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct entry *entry = arg;
    struct pipeline *pipeline = entry->pipeline;
    assert(receipt == &entry->receipt);
    if (outcome->verdict == REFUSED &&
        (entry->counting == COUNTS_ALL ||
         (entry->counting == COUNTS_PERMANENT && !outcome_may_change(outcome))))
        ledger_reject(pipeline->ledger, entry->batch, outcome->reason, pipeline->exporters);
    receipt_resolve(entry->upstream, outcome);
    batch_unref(entry->batch);
    mem_free(entry);
    budget_return(pipeline->budget, ENTRY_BYTES);
}

/* While the fan-out is blocked, the ring fills: that is the back-pressure. A large batch ends the
 * turn, so that others get theirs. */
static void drain_ring(void *arg)
{
    struct pipeline *pipeline = arg;
    assert(lane_is_current(pipeline->lane));
    uint64_t bytes = 0;
    while (!fanout_is_blocked(pipeline->fanout)) {
        struct entry *entry = ring_pop(pipeline->ring);
        if (entry == NULL)
            break;
        bool is_long = entry->batch->bytes >= LANE_REST_BYTES_MIN;
        bytes += entry->batch->bytes;
        component_consume(pipeline->head, entry->batch, &entry->receipt);
        if (bytes >= LANE_LOOK_BYTES) {
            bytes = 0;
            is_long |= lane_held_ns(pipeline->lane) >= LANE_JOB_NS;
        }
        if (is_long) {
            lane_rest(pipeline->lane);
            lane_defer(pipeline->lane, &pipeline->job);
            return;
        }
    }
    if (pipeline->drained == NULL || ring_depth(pipeline->ring) > 0 || pipeline->uncommitted > 0 ||
        fanout_is_blocked(pipeline->fanout))
        return;
    void (*drained)(void *) = pipeline->drained;
    pipeline->drained = NULL;
    drained(pipeline->drained_arg);
}

static void on_fanout_free(void *arg)
{
    struct pipeline *pipeline = arg;
    assert(!fanout_is_blocked(pipeline->fanout));
    lane_defer(pipeline->lane, &pipeline->job);
}

static void add_storing(struct pipeline *pipeline, unsigned destinations)
{
    unsigned place = (unsigned)__builtin_popcount(pipeline->storing);
    assert(place < STORING_MAX);
    pipeline->storing |= UINT32_C(1) << place;
    pipeline->weights[place] = destinations;
    pipeline->others -= destinations;
}

static unsigned destinations_of(const struct pipeline *pipeline, uint32_t storing)
{
    unsigned destinations = 0;
    for (; storing != 0; storing &= storing - 1)
        destinations += pipeline->weights[__builtin_ctz(storing)];
    return destinations;
}

struct pipeline *pipeline_create(const struct pipeline_settings *settings)
{
    assert(settings->exporters > 0);
    struct pipeline *pipeline = mem_zalloc(sizeof(*pipeline));
    pipeline->lane = settings->lane;
    pipeline->ledger = settings->ledger;
    pipeline->budget = settings->budget;
    pipeline->ring = ring_create();
    pipeline->job = (struct lane_job){.fn = drain_ring, .arg = pipeline};
    pipeline->exporters = settings->exporters;
    pipeline->id = settings->id;
    pipeline->fanout = fanout_create(&(struct fanout_settings){
        .lane = settings->lane,
        .ledger = settings->ledger,
        .budget = settings->budget,
        .queues = settings->queues,
        .queues_count = settings->queues_count,
        .connectors = settings->connectors,
        .connectors_count = settings->connectors_count,
        .on_free = on_fanout_free,
        .arg = pipeline,
    });
    pipeline->head = fanout_component(pipeline->fanout);
    pipeline->others = settings->exporters;
    for (size_t i = 0; i < settings->queues_count; i++)
        if (exporter_queue_stores(settings->queues[i]))
            add_storing(pipeline, 1);
    for (size_t i = 0; i < settings->connectors_count; i++) {
        const struct component *connector = settings->connectors[i];
        const struct outlet *outlet = connector->outlets[connector->output];
        for (size_t j = 0; connector->is_journaled && j < outlet_pipelines(outlet); j++)
            if (outlet_stores_at(outlet, j))
                add_storing(pipeline, outlet_exporters_at(outlet, j));
    }
    for (size_t i = settings->processors_count; i > 0; i--) {
        settings->processors[i - 1]->next = pipeline->head;
        settings->processors[i - 1]->before = i > 1 ? settings->processors[i - 2] : NULL;
        settings->processors[i - 1]->is_journaled = pipeline->storing != 0;
        settings->processors[i - 1]->others = pipeline->others;
        pipeline->head = settings->processors[i - 1];
    }
    return pipeline;
}

void pipeline_destroy(struct pipeline *pipeline)
{
    if (pipeline == NULL)
        return;
    lane_defer_cancel(pipeline->lane, &pipeline->job);
    fanout_destroy(pipeline->fanout);
    ring_destroy(pipeline->ring);
    mem_free(pipeline);
}

/* The entry is charged already. */
static void enter(struct pipeline *pipeline, struct batch *batch, struct receipt *receipt,
                  enum counting counting)
{
    struct entry *entry = mem_alloc(sizeof(*entry));
    receipt_init(&entry->receipt, on_entry_resolved, entry);
    entry->upstream = receipt;
    entry->pipeline = pipeline;
    entry->batch = batch_ref(batch);
    entry->counting = counting;
    ring_push(pipeline->ring, entry);
    if (ring_depth(pipeline->ring) < PIPELINE_RING_HURRY || fanout_is_blocked(pipeline->fanout)) {
        lane_defer(pipeline->lane, &pipeline->job);
        return;
    }
    lane_defer_first(pipeline->lane, &pipeline->job);
    lane_hurry(pipeline->lane);
}

/* The exporters have finished it, or owe it. */
static void on_durable_end(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct durable *durable = arg;
    struct pipeline *pipeline = durable->pipeline;
    struct journal_entry *entry = &durable->entry;
    assert(receipt == &durable->receipt);
    struct batch *batch = durable->batch;
    unsigned given = destinations_of(pipeline, entry->given);
    entry->owed = outcome->owed & entry->given;
    ledger_release(pipeline->ledger, batch->signal, batch->items * given);
    if (outcome->verdict == REFUSED) {
        /* A processor refused it for all. Destinations that do not store get it no more. */
        bool is_owed = outcome_may_change(outcome);
        unsigned dropped = durable->destinations - (is_owed ? given : 0);
        if (dropped > 0)
            ledger_drop(pipeline->ledger, batch, outcome->reason, dropped);
        if (is_owed) {
            entry->owed = entry->given;
            ledger_defer(pipeline->ledger, batch->signal, batch->items * given);
        }
    }
    batch_unref(batch);
    budget_return(pipeline->budget, DURABLE_BYTES);
    if (entry->given != 0)
        journal_settle(entry);
    else
        mem_free(durable);
}

/* Through the processors to the exporters of entry->given, and to those that do not store if
 * with_others. */
static void run_durable(struct durable *durable, bool with_others)
{
    struct pipeline *pipeline = durable->pipeline;
    unsigned given = destinations_of(pipeline, durable->entry.given);
    struct batch *batch = batch_create_like(durable->batch, durable->batch->parts_count);
    batch_append_batch(batch, durable->batch);
    batch->is_acknowledged = true;
    batch->is_stored = true;
    batch->is_joint =
        __builtin_popcount(durable->entry.given) + (with_others && pipeline->others > 0) > 1;
    batch->skips = (pipeline->storing & ~durable->entry.given) | (with_others ? 0 : SKIP_OTHERS);
    durable->destinations = given + (with_others ? pipeline->others : 0);
    batch->skipped = pipeline->exporters - durable->destinations;
    ledger_store(pipeline->ledger, batch->signal, batch->items * given);
    receipt_init(&durable->receipt, on_durable_end, durable);
    budget_take(pipeline->budget, ENTRY_BYTES);
    enter(pipeline, batch, &durable->receipt, COUNTS_NONE);
    batch_unref(batch);
}

/* The journal has it, or could not take it. */
static void on_committed(struct journal_entry *entry)
{
    struct durable *durable = (struct durable *)entry;
    struct pipeline *pipeline = durable->pipeline;
    assert(pipeline->uncommitted > 0);
    pipeline->uncommitted--;
    mem_free(durable->meta);
    durable->meta = NULL;
    lane_defer(pipeline->lane, &pipeline->job);
    if (entry->record.error == 0) {
        unsigned left = destinations_of(pipeline, pipeline->storing & ~entry->given);
        receipt_resolve(durable->upstream, &outcome_accepted);
        ledger_defer(pipeline->ledger, durable->batch->signal, durable->batch->items * left);
        if (entry->given != 0 || pipeline->others > 0) {
            run_durable(durable, true);
            return;
        }
    } else {
        struct outcome busy = outcome_busy(entry->record.error == -EDQUOT
                                               ? "the journal is full (max_size), try again later"
                                               : "the journal cannot be written, try again later");
        if (durable->counting == COUNTS_ALL)
            ledger_reject(pipeline->ledger, durable->batch, busy.reason, pipeline->exporters);
        receipt_resolve(durable->upstream, &busy);
    }
    batch_unref(durable->batch);
    budget_return(pipeline->budget, DURABLE_BYTES);
    mem_free(durable);
}

/* A record that was read back, for the exporters of entry->given. */
static void on_replay(struct journal_entry *entry, void *arg)
{
    struct durable *durable = (struct durable *)entry;
    struct pipeline *pipeline = arg;
    const struct journal_head *head = &entry->stored.head;
    struct buffer *payload = entry->stored.payload;
    durable->pipeline = pipeline;
    durable->batch = batch_create((enum signal_kind)head->signal, 1);
    durable->batch->items = head->items;
    durable->batch->client = client_info_read(slice_of(payload->data, head->meta_bytes));
    batch_append(durable->batch, payload,
                 slice_of(payload->data + head->meta_bytes, payload->size - head->meta_bytes));
    ledger_receive(pipeline->ledger, durable->batch, destinations_of(pipeline, entry->given));
    budget_take(pipeline->budget, DURABLE_BYTES);
    run_durable(durable, false);
}

size_t pipeline_storing(const struct pipeline *pipeline)
{
    return (size_t)__builtin_popcount(pipeline->storing);
}

bool pipeline_stores(const struct pipeline *pipeline)
{
    return pipeline->storing != 0;
}

void pipeline_set_journal(struct pipeline *pipeline, struct journal *journal, uint64_t bytes_max)
{
    assert(pipeline->journal == NULL);
    assert(bytes_max <= JOURNAL_PAYLOAD_BYTES_MAX - JOURNAL_META_BYTES_MAX);
    pipeline->journal_bytes_max = bytes_max;
    pipeline->journal = journal;
    journal_add_lane(journal, pipeline->lane, on_replay, pipeline);
}

size_t pipeline_entry_bytes(void)
{
    return sizeof(struct durable);
}

static uint64_t entry_bytes(const struct pipeline *pipeline)
{
    return pipeline->journal != NULL ? (uint64_t)DURABLE_BYTES : (uint64_t)ENTRY_BYTES;
}

/* Puts it into the ring, or commits it first. It is charged already. */
static void admit(struct pipeline *pipeline, struct batch *batch, struct receipt *receipt,
                  enum counting counting)
{
    if (pipeline->journal == NULL) {
        enter(pipeline, batch, receipt, counting);
        return;
    }
    if (batch->bytes > pipeline->journal_bytes_max) {
        struct outcome outcome =
            outcome_too_large("the request is larger than the journal may get (max_size)");
        budget_return(pipeline->budget, DURABLE_BYTES);
        if (counting != COUNTS_NONE)
            ledger_reject(pipeline->ledger, batch, outcome.reason, pipeline->exporters);
        receipt_resolve(receipt, &outcome);
        return;
    }
    struct durable *durable = mem_zalloc(sizeof(*durable));
    size_t meta_bytes = client_info_bytes(batch->client);
    durable->entry.fn = on_committed;
    durable->entry.lane = pipeline->lane;
    durable->entry.bytes = batch->bytes;
    durable->entry.record.batch = batch;
    durable->upstream = receipt;
    durable->pipeline = pipeline;
    durable->batch = batch_ref(batch);
    durable->counting = counting;
    if (meta_bytes > 0 && meta_bytes <= JOURNAL_META_BYTES_MAX) {
        durable->meta = mem_alloc(meta_bytes);
        client_info_write(batch->client, durable->meta);
        durable->entry.record.meta = slice_of(durable->meta, meta_bytes);
    }
    pipeline->uncommitted++;
    journal_append(pipeline->journal, &durable->entry);
}

static void take_in(struct pipeline *pipeline, struct batch *batch, struct receipt *receipt,
                    enum counting counting)
{
    assert(lane_is_current(pipeline->lane));
    batch_begin_work(batch);
    const bool is_charged = budget_try_take(pipeline->budget, entry_bytes(pipeline));
    batch_end_work(batch);
    if (!is_charged) {
        struct outcome busy = outcome_busy("the memory budget is used up, try again later");
        busy.reason = LOSS_MEMORY;
        counter_add(&pipeline->refusals, 1);
        if (counting == COUNTS_ALL)
            ledger_reject(pipeline->ledger, batch, busy.reason, pipeline->exporters);
        receipt_resolve(receipt, &busy);
        return;
    }
    admit(pipeline, batch, receipt, counting);
}

void pipeline_offer(struct pipeline *pipeline, struct batch *batch, struct receipt *receipt)
{
    assert(batch->signal < SIGNAL_KINDS);
    ledger_receive(pipeline->ledger, batch, pipeline->exporters);
    take_in(pipeline, batch, receipt, COUNTS_ALL);
}

void pipeline_drain(struct pipeline *pipeline, void (*done)(void *arg), void *arg)
{
    assert(pipeline->drained == NULL);
    pipeline->drained = done;
    pipeline->drained_arg = arg;
    lane_defer(pipeline->lane, &pipeline->job);
}

struct ring_figures pipeline_ring_figures(const struct pipeline *pipeline)
{
    struct ring_figures figures = ring_figures(pipeline->ring);
    figures.refusals = counter_read(&pipeline->refusals);
    return figures;
}

struct outlet *outlet_create(struct pipeline *const *pipelines, size_t count)
{
    assert(count > 0);
    struct outlet *outlet = mem_alloc(sizeof(*outlet) + count * sizeof(outlet->pipelines[0]));
    outlet->count = count;
    for (size_t i = 0; i < count; i++)
        outlet->pipelines[i] = pipelines[i];
    return outlet;
}

void outlet_destroy(struct outlet *outlet)
{
    mem_free(outlet);
}

void outlet_offer(struct outlet *outlet, struct batch *batch, struct receipt *receipt)
{
    assert(outlet->count > 0);
    receipt_expect(receipt, (unsigned)outlet->count - 1);
    for (size_t i = 0; i < outlet->count; i++)
        pipeline_offer(outlet->pipelines[i], batch, receipt);
}

size_t outlet_pipelines(const struct outlet *outlet)
{
    assert(outlet->count > 0);
    return outlet->count;
}

void outlet_offer_deferred(struct outlet *outlet, size_t place, struct batch *batch,
                           struct receipt *receipt, bool is_again)
{
    assert(place < outlet->count);
    struct pipeline *pipeline = outlet->pipelines[place];
    if (!is_again)
        ledger_receive(pipeline->ledger, batch, pipeline->exporters);
    take_in(pipeline, batch, receipt, COUNTS_PERMANENT);
}

void outlet_give_up(struct outlet *outlet, size_t place, const struct batch *batch,
                    enum loss_reason reason)
{
    assert(place < outlet->count);
    struct pipeline *pipeline = outlet->pipelines[place];
    ledger_reject(pipeline->ledger, batch, reason, pipeline->exporters);
}

unsigned outlet_exporters(const struct outlet *outlet)
{
    unsigned exporters = 0;
    for (size_t i = 0; i < outlet->count; i++)
        exporters += outlet->pipelines[i]->exporters;
    return exporters;
}

bool outlet_stores(const struct outlet *outlet)
{
    for (size_t i = 0; i < outlet->count; i++)
        if (pipeline_stores(outlet->pipelines[i]))
            return true;
    return false;
}

bool outlet_stores_at(const struct outlet *outlet, size_t place)
{
    assert(place < outlet->count);
    return pipeline_stores(outlet->pipelines[place]);
}

unsigned outlet_exporters_at(const struct outlet *outlet, size_t place)
{
    assert(place < outlet->count);
    return outlet->pipelines[place]->exporters;
}

const char *outlet_pipeline_at(const struct outlet *outlet, size_t place)
{
    assert(place < outlet->count);
    return outlet->pipelines[place]->id;
}

/* Goes through the ring, so that a chain of connectors needs no deeper stack and each pipeline gets
 * its turn. */
void outlet_pass_to(struct outlet *outlet, size_t place, struct batch *batch,
                    struct receipt *receipt)
{
    assert(place < outlet->count);
    struct pipeline *pipeline = outlet->pipelines[place];
    assert(lane_is_current(pipeline->lane));
    budget_take(pipeline->budget, entry_bytes(pipeline));
    admit(pipeline, batch, receipt, COUNTS_NONE);
}

void outlet_pass(struct outlet *outlet, struct batch *batch, struct receipt *receipt)
{
    assert(outlet->count > 0);
    if (outlet->count == 1) {
        outlet_pass_to(outlet, 0, batch, receipt);
        return;
    }
    const struct pipeline *first = outlet->pipelines[0];
    struct joint *joint = joint_create(first->ledger, first->budget, batch, receipt, outlet->count);
    for (size_t i = 0; i < outlet->count; i++)
        outlet_pass_to(outlet, i, batch, joint_add(joint, outlet->pipelines[i]->exporters, false));
}
