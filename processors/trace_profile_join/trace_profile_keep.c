/* SPDX-License-Identifier: Apache-2.0 */
/* Booking what keep leaves out and what count_for adds. Runs on the owner's lane. */
#include "processors/trace_profile_join/trace_profile_keep.h"

#include <assert.h>

#include "processors/trace_profile_join/trace_profile_join_counters.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/ledger.h"
#include "src/core/receipt.h"

struct passed {
    struct receipt receipt;
    struct receipt *outer; /* who waits for the whole */
    const struct component *owner;
    struct batch *lost;
    struct batch *copies;
};

void trace_profile_keep_book(const struct component *owner, struct batch *lost,
                             const struct outcome *outcome)
{
    struct join_counters *counters = owner->counters;
    assert(outcome->verdict != REFUSED);
    if (lost == NULL)
        return;
    counter_add(&counters->unwanted, lost->items);
    if (outcome->verdict == ACCEPTED || lost->is_acknowledged)
        ledger_drop(owner->ledger, lost, LOSS_UNWANTED, owner->exporters);
    else
        ledger_reject(owner->ledger, lost, LOSS_UNWANTED, owner->exporters);
    batch_unref(lost);
}

/* Nobody has the copies: whoever offers the request again gets others. */
static void take_back(const struct component *owner, const struct batch *copies,
                      const struct outcome *outcome)
{
    assert(outcome->verdict == REFUSED);
    if (copies != NULL)
        ledger_reject(owner->ledger, copies, outcome->reason, owner->exporters);
}

static void on_resolved(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct passed *passed = arg;
    assert(receipt == &passed->receipt);
    (void)receipt;
    if (outcome->verdict == REFUSED) {
        take_back(passed->owner, passed->copies, outcome);
        batch_unref(passed->lost);
    } else {
        trace_profile_keep_book(passed->owner, passed->lost, outcome);
    }
    receipt_resolve(passed->outer, outcome);
    batch_unref(passed->copies);
    mem_free(passed);
}

void trace_profile_keep_pass(struct component *owner, const struct finished *finished,
                             struct receipt *receipt)
{
    struct batch *batch = finished->batch;
    assert(finished->lost == NULL || finished->lost->items > 0);
    assert(finished->copies == NULL || finished->copies->items < batch->items);
    if (finished->lost == NULL && finished->copies == NULL) {
        component_consume(owner->next, batch, receipt);
    } else if (batch->items == 0) {
        trace_profile_keep_book(owner, finished->lost, &outcome_accepted);
        receipt_resolve(receipt, &outcome_accepted);
    } else {
        struct passed *passed = mem_zalloc(sizeof(*passed));
        receipt_init(&passed->receipt, on_resolved, passed);
        passed->outer = receipt;
        passed->owner = owner;
        passed->lost = finished->lost;
        passed->copies = finished->copies;
        component_consume(owner->next, batch, &passed->receipt);
    }
    batch_unref(batch);
}
