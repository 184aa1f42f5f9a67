/* SPDX-License-Identifier: Apache-2.0 */
/* Sums up the outcomes of all ways, then settles with the ledger. Runs on the lane of the pipelines
 * that it joins. */
#include "src/pipeline/joint.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/ledger.h"
#include "src/core/receipt.h"
#include "src/pipeline/exporter_queue.h"

struct way {
    struct receipt receipt;
    struct joint *joint;
    struct exporter_queue *queue; /* which has refused; NULL: not a queue */
    unsigned exporters;
    bool ends;
    bool is_refused;
    enum loss_reason reason; /* of the refusal */
};

struct joint {
    struct receipt sum;
    struct receipt *upstream;
    struct ledger *ledger;
    struct budget *budget;
    struct batch *batch;
    bool is_taken; /* by one of the ways, whatever happened to it then */
    size_t ways_count;
    size_t ways_added;
    struct way ways[];
};

static size_t bytes_of(const struct joint *joint)
{
    return sizeof(*joint) + joint->ways_count * sizeof(joint->ways[0]);
}

static void on_all_resolved(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct joint *joint = arg;
    struct outcome joined = *outcome;
    assert(receipt == &joint->sum);
    for (size_t i = 0; joint->is_taken && i < joint->ways_count; i++) {
        const struct way *way = &joint->ways[i];
        if (!way->is_refused)
            continue;
        if (way->queue != NULL)
            exporter_queue_lose(way->queue, joint->batch, NULL,
                                &(struct outcome){.verdict = REFUSED, .reason = way->reason});
        else if (joint->batch->is_acknowledged)
            ledger_drop(joint->ledger, joint->batch, way->reason, way->exporters);
        else
            ledger_reject(joint->ledger, joint->batch, way->reason, way->exporters);
    }
    if (joint->is_taken && joined.verdict == REFUSED)
        joined.verdict = LOST;
    if (joined.rejected_items > joint->batch->items)
        joined.rejected_items = joint->batch->items;
    receipt_resolve(joint->upstream, &joined);
    batch_unref(joint->batch);
    budget_return(joint->budget, bytes_of(joint));
    mem_free(joint);
}

static void on_way_resolved(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct way *way = arg;
    struct joint *joint = way->joint;
    assert(receipt == &way->receipt);
    way->is_refused = outcome->verdict == REFUSED;
    way->reason = outcome->reason;
    joint->is_taken |= !way->is_refused;
    if (way->ends && outcome->verdict == ACCEPTED)
        ledger_deliver(joint->ledger, joint->batch->signal, joint->batch->items);
    receipt_resolve(&joint->sum, outcome);
}

struct joint *joint_create(struct ledger *ledger, struct budget *budget, struct batch *batch,
                           struct receipt *upstream, size_t ways)
{
    assert(ways > 0);
    struct joint *joint = mem_zalloc(sizeof(*joint) + ways * sizeof(joint->ways[0]));
    receipt_init(&joint->sum, on_all_resolved, joint);
    receipt_expect(&joint->sum, (unsigned)ways - 1);
    joint->upstream = upstream;
    joint->ledger = ledger;
    joint->budget = budget;
    joint->batch = batch_ref(batch);
    joint->ways_count = ways;
    budget_take(budget, bytes_of(joint));
    return joint;
}

void joint_set_taken(struct joint *joint)
{
    assert(joint->ways_added == 0);
    joint->is_taken = true;
}

static struct way *next_way(struct joint *joint)
{
    assert(joint->ways_added < joint->ways_count);
    struct way *way = &joint->ways[joint->ways_added++];
    way->joint = joint;
    receipt_init(&way->receipt, on_way_resolved, way);
    return way;
}

struct receipt *joint_add(struct joint *joint, unsigned exporters, bool ends)
{
    assert(exporters > 0);
    struct way *way = next_way(joint);
    way->exporters = exporters;
    way->ends = ends;
    return &way->receipt;
}

void joint_add_refusal(struct joint *joint, struct exporter_queue *queue,
                       const struct outcome *refusal)
{
    assert(refusal->verdict == REFUSED);
    struct way *way = next_way(joint);
    way->queue = queue;
    way->exporters = 1;
    receipt_resolve(&way->receipt, refusal);
}
