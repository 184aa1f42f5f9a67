/* SPDX-License-Identifier: Apache-2.0 */
#include "connectors/shared/request_offer.h"

#include <assert.h>

#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/component.h"

static void on_resolved(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct request_offer *offer = arg;
    assert(receipt == &offer->receipt);
    struct outcome joined = *outcome;
    if (outcome->verdict == ACCEPTED)
        joined = outcome_accepted;
    joined.verdict = outcome->verdict == ACCEPTED ? ACCEPTED : REFUSED;
    joined.rejected_items = 0;
    joined.invalid_items = 0;
    joined.too_large_items = 0;
    joined.delivered_items = 0;
    joined.owed = 0;
    joined.is_kept = false;
    offer->done(offer, &joined);
}

void request_offer_make(struct request_offer *offer, struct outlet *outlet, struct batch **batches,
                        size_t count,
                        void (*done)(struct request_offer *offer, const struct outcome *outcome))
{
    offer->done = done;
    if (count == 0) {
        mem_free((void *)batches);
        done(offer, &outcome_accepted);
        return;
    }
    receipt_init(&offer->receipt, on_resolved, offer);
    receipt_expect(&offer->receipt, (unsigned)count - 1);
    for (size_t i = 0; i < count; i++) {
        /* The last outcome may free the offer. */
        outlet_offer(outlet, batches[i], &offer->receipt);
        batch_unref(batches[i]);
    }
    mem_free((void *)batches);
}
