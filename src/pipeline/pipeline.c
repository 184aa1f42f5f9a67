/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines and outlets. A request in a pipeline is an entry: it remembers the upstream receipt,
 * and counts the refusal when nothing downstream took the batch. Runs on one lane. */
#include "src/pipeline/pipeline.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/counter.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/ledger.h"
#include "src/core/receipt.h"
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
         (entry->counting == COUNTS_PERMANENT && outcome->is_permanent)))
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
    while (!fanout_is_blocked(pipeline->fanout)) {
        struct entry *entry = ring_pop(pipeline->ring);
        if (entry == NULL)
            break;
        bool is_large = entry->batch->bytes >= LANE_REST_BYTES_MIN;
        component_consume(pipeline->head, entry->batch, &entry->receipt);
        if (is_large) {
            lane_rest(pipeline->lane);
            lane_defer(pipeline->lane, &pipeline->job);
            return;
        }
    }
    if (pipeline->drained == NULL || ring_depth(pipeline->ring) > 0 ||
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
    for (size_t i = settings->processors_count; i > 0; i--) {
        settings->processors[i - 1]->next = pipeline->head;
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
    lane_defer(pipeline->lane, &pipeline->job);
    if (ring_depth(pipeline->ring) >= PIPELINE_RING_HURRY && !fanout_is_blocked(pipeline->fanout))
        lane_hurry(pipeline->lane);
}

static void take_in(struct pipeline *pipeline, struct batch *batch, struct receipt *receipt,
                    enum counting counting)
{
    assert(lane_is_current(pipeline->lane));
    if (!budget_try_take(pipeline->budget, ENTRY_BYTES)) {
        struct outcome busy = outcome_busy("the memory budget is used up, try again later");
        busy.reason = LOSS_MEMORY;
        counter_add(&pipeline->refusals, 1);
        if (counting == COUNTS_ALL)
            ledger_reject(pipeline->ledger, batch, busy.reason, pipeline->exporters);
        receipt_resolve(receipt, &busy);
        return;
    }
    enter(pipeline, batch, receipt, counting);
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

/* Goes through the ring, so that a chain of connectors needs no deeper stack and each pipeline gets
 * its turn. */
static void pass(struct pipeline *pipeline, struct batch *batch, struct receipt *receipt)
{
    assert(lane_is_current(pipeline->lane));
    budget_take(pipeline->budget, ENTRY_BYTES);
    enter(pipeline, batch, receipt, COUNTS_NONE);
}

void outlet_pass(struct outlet *outlet, struct batch *batch, struct receipt *receipt)
{
    assert(outlet->count > 0);
    if (outlet->count == 1) {
        pass(outlet->pipelines[0], batch, receipt);
        return;
    }
    const struct pipeline *first = outlet->pipelines[0];
    struct joint *joint = joint_create(first->ledger, first->budget, batch, receipt, outlet->count);
    for (size_t i = 0; i < outlet->count; i++)
        pass(outlet->pipelines[i], batch, joint_add(joint, outlet->pipelines[i]->exporters, false));
}
