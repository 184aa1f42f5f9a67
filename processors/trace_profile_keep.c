/* SPDX-License-Identifier: Apache-2.0 */
/* Booking what keep leaves out. Runs on the owner's lane. */
#include "processors/trace_profile_keep.h"

#include <assert.h>

#include "processors/trace_profile_join_counters.h"
#include "src/batch.h"
#include "src/component.h"
#include "src/ledger.h"
#include "src/mem.h"
#include "src/receipt.h"

struct passed {
    struct receipt receipt;
    struct receipt *outer; /* who waits for the whole */
    const struct component *owner;
    struct batch *lost;
};

struct batch *trace_profile_keep_lost(const struct batch *whole, const struct batch *kept)
{
    assert(kept->items <= whole->items);
    if (kept->items == whole->items)
        return NULL;
    struct batch *lost = batch_create_like(whole, 1);
    lost->items = whole->items - kept->items;
    return lost;
}

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

static void on_resolved(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct passed *passed = arg;
    assert(receipt == &passed->receipt);
    (void)receipt;
    if (outcome->verdict == REFUSED)
        batch_unref(passed->lost);
    else
        trace_profile_keep_book(passed->owner, passed->lost, outcome);
    receipt_resolve(passed->outer, outcome);
    mem_free(passed);
}

void trace_profile_keep_pass(struct component *owner, struct batch *kept, struct batch *lost,
                             struct receipt *receipt)
{
    assert(lost == NULL || lost->items > 0);
    if (lost == NULL) {
        component_consume(owner->next, kept, receipt);
    } else if (kept->items == 0) {
        trace_profile_keep_book(owner, lost, &outcome_accepted);
        receipt_resolve(receipt, &outcome_accepted);
    } else {
        struct passed *passed = mem_zalloc(sizeof(*passed));
        receipt_init(&passed->receipt, on_resolved, passed);
        passed->outer = receipt;
        passed->owner = owner;
        passed->lost = lost;
        component_consume(owner->next, kept, &passed->receipt);
    }
}
