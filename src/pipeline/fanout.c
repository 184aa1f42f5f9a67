/* SPDX-License-Identifier: Apache-2.0 */
/* Fan-out: queues with room take the batch, full ones lose only their own share. When all are full,
 * or there is no memory to queue it, the batch is refused as a whole. To the processor in front of
 * it the fan-out is a component. Runs on its lane. */
#include "src/pipeline/fanout.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/base/ring.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/pipeline/exporter_queue.h"
#include "src/pipeline/joint.h"

struct branch {
    struct exporter_queue *queue;
    uint32_t skip;   /* its bit in a batch's skips */
    bool is_skipped; /* by the current batch */
    bool is_admitted;
    struct outcome refusal;
};

/* From a pipeline with a journal to another one, or through a whole connector that does not store.
 */
struct passage {
    struct component *connector;
    struct outlet *outlet; /* of one that stores; NULL: the connector as a whole */
    size_t place;          /* of the pipeline there */
    unsigned exporters;
    uint32_t skip; /* its bit in a batch's skips */
};

/* One destination's share of a batch that stays in the journal until all that store are done. */
struct stored_way {
    struct receipt receipt;
    struct receipt *upstream;
    uint32_t skip;
    const struct passage *passage; /* NULL: a queue, which counts what it did not deliver */
    struct batch *batch;           /* of a passage: a reference */
};

/* A batch that waits for room. */
struct held {
    struct batch *batch;
    struct receipt *receipt;
};

struct fanout {
    struct component base;
    struct budget_waiter waiter;
    struct exporter_queue *waits_for; /* NULL: not blocked */
    struct ring *held;                /* struct held; empty when not blocked */
    void (*on_free)(void *arg);
    void *arg;
    struct component **connectors;
    size_t connectors_count;
    bool is_journaled; /* at least one exporter, or pipeline behind a connector, stores */
    struct passage *passages;
    size_t passages_count;
    size_t queued; /* branches in whose queues requests wait */
    size_t behind; /* exporters behind connectors, where requests may wait, too */
    size_t count;
    struct branch branches[];
};

/* With connectors the outcomes are joined later: a connector may refuse what was given to it. */
static void hand_to_connectors(struct fanout *fanout, struct batch *batch, struct receipt *receipt)
{
    struct component *first = fanout->connectors[0];
    if (fanout->count == 0 && fanout->connectors_count == 1 && first->factory->passes_on) {
        component_consume(first, batch, receipt);
        return;
    }
    struct joint *joint = joint_create(fanout->base.ledger, fanout->base.budget, batch, receipt,
                                       fanout->count + fanout->connectors_count);
    /* The exporters come first: the last response frees the joint. */
    for (size_t i = 0; i < fanout->count; i++) {
        struct branch *branch = &fanout->branches[i];
        if (branch->is_admitted)
            exporter_queue_take(branch->queue, batch, joint_add(joint, 1, false));
        else
            joint_add_refusal(joint, branch->queue, &branch->refusal);
    }
    for (size_t i = 0; i < fanout->connectors_count; i++) {
        struct component *connector = fanout->connectors[i];
        component_consume(connector, batch,
                          joint_add(joint, connector->exporters, !connector->factory->passes_on));
    }
}

/* What may still succeed is not lost: the journal gives it again. What a pipeline behind a passage
 * owes is owed by its bit here. */
static void on_stored_end(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct stored_way *way = arg;
    const struct passage *passage = way->passage;
    struct outcome result = *outcome;
    assert(receipt == &way->receipt);
    result.owed = 0;
    if (outcome->verdict == REFUSED) {
        if (!outcome_may_change(outcome) && passage != NULL) {
            result.verdict = LOST;
            ledger_drop(passage->connector->ledger, way->batch, outcome->reason,
                        passage->exporters);
        } else {
            result = outcome_accepted;
            result.owed = way->skip;
            if (passage != NULL)
                ledger_defer(passage->connector->ledger, way->batch->signal,
                             way->batch->items * passage->exporters);
        }
    } else if (outcome->is_kept || outcome->owed != 0) {
        /* Another part of it was lost, or delivered. */
        result = outcome_accepted;
        result.owed = way->skip;
    }
    result.is_kept = false;
    receipt_resolve(way->upstream, &result);
    batch_unref(way->batch);
    mem_free(way);
}

static struct receipt *stored_way(struct receipt *upstream, uint32_t skip,
                                  const struct passage *passage, struct batch *batch)
{
    struct stored_way *way = mem_alloc(sizeof(*way));
    *way = (struct stored_way){.upstream = upstream,
                               .skip = skip,
                               .passage = passage,
                               .batch = passage != NULL ? batch_ref(batch) : NULL};
    receipt_init(&way->receipt, on_stored_end, way);
    return &way->receipt;
}

/* As the pipelines behind connectors get it, which know nothing of the destinations of this one. */
static struct batch *passed_copy(const struct batch *batch, bool is_stored)
{
    struct batch *passed = batch_create_like(batch, batch->parts_count);
    batch_append_batch(passed, batch);
    passed->skips = passed->skipped = 0;
    passed->is_joint = false;
    passed->is_stored = is_stored;
    return passed;
}

/* Each that stores has its own progress. What others refuse does not come again: it is lost. */
static void give_passages(struct fanout *fanout, struct batch *batch, struct receipt *receipt)
{
    const struct component *counted = NULL;
    struct batch *stored = passed_copy(batch, true);
    struct batch *other = passed_copy(batch, false);
    for (size_t i = 0; i < fanout->passages_count; i++) {
        const struct passage *passage = &fanout->passages[i];
        struct component *connector = passage->connector;
        struct batch *passed = passage->skip != SKIP_OTHERS ? stored : other;
        struct receipt *way;
        if ((batch->skips & passage->skip) != 0) {
            receipt_resolve(receipt, &outcome_accepted);
            continue;
        }
        if (passage->skip != SKIP_OTHERS) {
            way = stored_way(receipt, passage->skip, passage, passed);
        } else {
            /* The record does not wait for it. */
            struct joint *joint =
                joint_create(fanout->base.ledger, fanout->base.budget, passed, NULL, 1);
            joint_set_taken(joint);
            receipt_resolve(receipt, &outcome_accepted);
            way = joint_add(joint, passage->exporters, !connector->factory->passes_on);
        }
        if (passage->outlet == NULL) {
            component_consume(connector, passed, way);
            continue;
        }
        if (connector != counted && connector->factory->count_passed != NULL)
            connector->factory->count_passed(connector, passed);
        counted = connector;
        outlet_pass_to(passage->outlet, passage->place, passed, way);
    }
    batch_unref(stored);
    batch_unref(other);
}

/* To the destinations of a pipeline with a journal: no batch is refused as a whole. */
static void give_stored(struct fanout *fanout, struct batch *batch, struct receipt *receipt)
{
    struct outcome owed = outcome_accepted;
    receipt_expect(receipt, (unsigned)(fanout->count + fanout->passages_count));
    if (fanout->passages_count > 0)
        give_passages(fanout, batch, receipt);
    for (size_t i = 0; i < fanout->count; i++) {
        struct branch *branch = &fanout->branches[i];
        bool is_stored = branch->skip != SKIP_OTHERS;
        if (branch->is_skipped) {
            receipt_resolve(receipt, &outcome_accepted);
        } else if (branch->is_admitted && is_stored) {
            exporter_queue_take(branch->queue, batch,
                                stored_way(receipt, branch->skip, NULL, NULL));
        } else if (branch->is_admitted) {
            /* The record does not wait for it. */
            exporter_queue_take(branch->queue, batch, NULL);
            receipt_resolve(receipt, &outcome_accepted);
        } else if (is_stored && !branch->refusal.is_permanent) {
            owed.owed |= branch->skip;
            ledger_defer(fanout->base.ledger, batch->signal, batch->items);
            receipt_resolve(receipt, &outcome_accepted);
        } else {
            exporter_queue_lose(branch->queue, batch, receipt, &branch->refusal);
        }
    }
    receipt_resolve(receipt, &owed);
}

static void wait_for(struct fanout *fanout, struct exporter_queue *queue, const struct batch *batch)
{
    fanout->waits_for = queue;
    exporter_queue_wait(queue, batch, &fanout->waiter);
}

/* The first queue that the batch has to wait for; NULL: none. */
static struct exporter_queue *full_queue(const struct fanout *fanout, const struct batch *batch)
{
    for (size_t i = 0; i < fanout->count; i++) {
        const struct branch *branch = &fanout->branches[i];
        if (branch->skip == SKIP_OTHERS && (batch->skips & branch->skip) == 0 &&
            exporter_queue_blocks(branch->queue, batch) &&
            !exporter_queue_has_room(branch->queue, batch))
            return branch->queue;
    }
    return NULL;
}

/* Whether all queues can hold the batch. They take it, or none does: those that could not would
 * lose it. While exporters hold so little that waiting for them may not help, the margin may be
 * used, and what clients were told is accepted is taken however much is in use: what waits for it
 * may be all that holds memory. What a journal has waits there instead. */
static bool has_memory(const struct fanout *fanout, const struct batch *batch)
{
    enum { WAY_BYTES = 512 }; /* of joints, for each exporter behind and the joint itself */
    const struct budget *budget = fanout->base.budget;
    const size_t all = fanout->queued + fanout->behind;
    const uint64_t ways = fanout->behind > 0 ? all + 1 : 0;
    const uint64_t bytes = all * exporter_queue_bytes(batch) + ways * WAY_BYTES;
    if (bytes == 0 || fanout->is_journaled || budget_has_room(budget, bytes))
        return true;
    if (budget_is_leaving(budget))
        return false;
    if (batch->is_acknowledged)
        return true;
    budget_begin_late();
    const bool has_room = budget_has_room(budget, bytes);
    budget_end_late();
    return has_room;
}

static void refuse_for_memory(struct fanout *fanout, struct batch *batch, struct receipt *receipt)
{
    struct outcome refusal = outcome_busy("no memory left in the budget to queue a request");
    refusal.reason = LOSS_MEMORY;
    for (size_t i = 0; i < fanout->count; i++)
        exporter_queue_note_refusal(fanout->branches[i].queue, batch, &refusal);
    receipt_resolve(receipt, &refusal);
}

/* False: the batch has to wait for a queue with block_on_overflow. Nothing is taken from the others
 * then: returning it would wake those who wait for them, who would do the same, and so on. */
static bool give(struct fanout *fanout, struct batch *batch, struct receipt *receipt)
{
    assert(fanout->waits_for == NULL);
    struct exporter_queue *blocking = full_queue(fanout, batch);
    size_t admitted = 0;
    if (blocking != NULL) {
        wait_for(fanout, blocking, batch);
        return false;
    }
    if (!has_memory(fanout, batch)) {
        refuse_for_memory(fanout, batch, receipt);
        return true;
    }
    for (size_t i = 0; i < fanout->count; i++) {
        struct branch *branch = &fanout->branches[i];
        branch->is_skipped = (batch->skips & branch->skip) != 0;
        if (branch->is_skipped) {
            branch->is_admitted = false;
            continue;
        }
        branch->is_admitted = exporter_queue_admit(branch->queue, batch, &branch->refusal);
        admitted += branch->is_admitted;
        if (!branch->is_admitted && branch->skip == SKIP_OTHERS && blocking == NULL &&
            exporter_queue_blocks(branch->queue, batch))
            blocking = branch->queue;
    }
    if (blocking != NULL) { /* another lane was quicker */
        for (size_t i = 0; i < fanout->count; i++)
            if (fanout->branches[i].is_admitted)
                exporter_queue_cancel(fanout->branches[i].queue, batch);
        wait_for(fanout, blocking, batch);
        return false;
    }
    for (size_t i = 0; i < fanout->count; i++)
        if (!fanout->branches[i].is_admitted && !fanout->branches[i].is_skipped)
            exporter_queue_note_refusal(fanout->branches[i].queue, batch,
                                        &fanout->branches[i].refusal);
    if (fanout->is_journaled) {
        give_stored(fanout, batch, receipt);
        return true;
    }
    if (fanout->connectors_count > 0) {
        hand_to_connectors(fanout, batch, receipt);
        return true;
    }
    if (admitted == 0) {
        receipt_resolve(receipt, &fanout->branches[0].refusal);
        return true;
    }
    receipt_expect(receipt, (unsigned)fanout->count - 1);
    for (size_t i = 0; i < fanout->count; i++) {
        struct branch *branch = &fanout->branches[i];
        if (branch->is_admitted)
            exporter_queue_take(branch->queue, batch, receipt);
        else
            exporter_queue_lose(branch->queue, batch, receipt, &branch->refusal);
    }
    return true;
}

static void fanout_consume(struct component *self, struct batch *batch, struct receipt *receipt)
{
    struct fanout *fanout = (struct fanout *)self;
    if (fanout->waits_for == NULL && give(fanout, batch, receipt))
        return;
    struct held *held = mem_alloc(sizeof(*held));
    *held = (struct held){.batch = batch_ref(batch), .receipt = receipt};
    ring_push(fanout->held, held);
}

static void on_room(void *arg)
{
    struct fanout *fanout = arg;
    struct held *held;
    assert(ring_depth(fanout->held) > 0);
    fanout->waits_for = NULL;
    while ((held = ring_first(fanout->held)) != NULL) {
        if (!give(fanout, held->batch, held->receipt))
            return;
        ring_pop(fanout->held);
        batch_unref(held->batch);
        mem_free(held);
    }
    fanout->on_free(fanout->arg);
}

static const struct component_factory fanout_factory = {
    .type = "fanout",
    .kind = EXPORTER,
    .instance_size = sizeof(struct fanout),
    .consume = fanout_consume,
};

/* A connector that stores has one to each pipeline behind it. */
static void add_passages(struct fanout *fanout, struct component *connector, unsigned *stored)
{
    struct outlet *outlet = connector->is_journaled ? connector->outlets[connector->output] : NULL;
    size_t count = outlet != NULL ? outlet_pipelines(outlet) : 1;
    fanout->passages = mem_resize(fanout->passages,
                                  (fanout->passages_count + count) * sizeof(fanout->passages[0]));
    for (size_t i = 0; i < count; i++) {
        bool is_stored = outlet != NULL && outlet_stores_at(outlet, i);
        fanout->passages[fanout->passages_count++] = (struct passage){
            .connector = connector,
            .outlet = outlet,
            .place = i,
            .exporters = outlet != NULL ? outlet_exporters_at(outlet, i) : connector->exporters,
            .skip = is_stored ? UINT32_C(1) << (*stored)++ : SKIP_OTHERS};
    }
}

struct fanout *fanout_create(const struct fanout_settings *settings)
{
    size_t count = settings->queues_count;
    size_t connectors_count = settings->connectors_count;
    assert(count + connectors_count > 0);
    struct fanout *fanout = mem_zalloc(sizeof(*fanout) + count * sizeof(fanout->branches[0]));
    fanout->base.factory = &fanout_factory;
    fanout->base.lane = settings->lane;
    fanout->base.ledger = settings->ledger;
    fanout->base.budget = settings->budget;
    fanout->waiter = (struct budget_waiter){.lane = settings->lane, .fn = on_room, .arg = fanout};
    fanout->held = ring_create();
    fanout->on_free = settings->on_free;
    fanout->arg = settings->arg;
    fanout->count = count;
    unsigned stored = 0;
    for (size_t i = 0; i < count; i++) {
        struct branch *branch = &fanout->branches[i];
        branch->queue = settings->queues[i];
        fanout->queued += exporter_queue_holds(branch->queue);
        branch->skip = exporter_queue_stores(branch->queue) ? UINT32_C(1) << stored++ : SKIP_OTHERS;
    }
    fanout->connectors_count = connectors_count;
    if (connectors_count > 0)
        fanout->connectors =
            (struct component **)mem_alloc(connectors_count * sizeof(struct component *));
    for (size_t i = 0; i < connectors_count; i++) {
        fanout->behind += settings->connectors[i]->exporters;
        add_passages(fanout, fanout->connectors[i] = settings->connectors[i], &stored);
    }
    fanout->is_journaled = stored > 0;
    return fanout;
}

void fanout_destroy(struct fanout *fanout)
{
    if (fanout == NULL)
        return;
    assert(fanout->waits_for == NULL);
    ring_destroy(fanout->held);
    mem_free((void *)fanout->connectors);
    mem_free(fanout->passages);
    mem_free(fanout);
}

struct component *fanout_component(struct fanout *fanout)
{
    return &fanout->base;
}

bool fanout_is_blocked(const struct fanout *fanout)
{
    return fanout->waits_for != NULL;
}
