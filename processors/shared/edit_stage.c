/* SPDX-License-Identifier: Apache-2.0 */
/* Editing on the lane, or on its helper when a request is large or takes long; then passing on and
 * booking. */
#include "processors/shared/edit_stage.h"

#include <assert.h>

#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/receipt.h"

/* A request that the helper edits. */
struct helped_edit {
    struct helper_work work; /* first */
    struct edit_stage *self;
    struct batch *batch; /* a reference */
    struct receipt *receipt;
    struct edit_result result;
    char *failure; /* the result's: the helper goes on with the next request meanwhile */
};

/* The rest of a request from which items were dropped, or to which some were added, in the next
 * stage. */
struct passed_rest {
    struct receipt receipt;
    struct receipt *outer;
    struct edit_stage *owner;
    struct batch *dropped; /* without bytes: their number */
    bool is_made;          /* they are new ones instead, received here */
};

static void book_dropped(struct edit_stage *self, const struct batch *dropped,
                         const struct outcome *outcome)
{
    assert(outcome->verdict != REFUSED);
    if (self->ops->dropped != NULL)
        self->ops->dropped(self, dropped);
    unsigned exporters = component_exporters(&self->base, dropped);
    if (outcome->verdict == ACCEPTED || dropped->is_acknowledged)
        ledger_drop(self->base.ledger, dropped, LOSS_UNWANTED, exporters);
    else
        ledger_reject(self->base.ledger, dropped, LOSS_UNWANTED, exporters);
}

static void on_passed(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct passed_rest *passed = arg;
    assert(receipt == &passed->receipt);
    if (passed->is_made && outcome->verdict == REFUSED)
        ledger_reject(passed->owner->base.ledger, passed->dropped, outcome->reason,
                      component_exporters(&passed->owner->base, passed->dropped));
    if (!passed->is_made && outcome->verdict != REFUSED)
        book_dropped(passed->owner, passed->dropped, outcome);
    receipt_resolve(passed->outer, outcome);
    batch_unref(passed->dropped);
    mem_free(passed);
}

static void refuse(const struct edit_stage *self, const struct edit_result *result,
                   struct receipt *receipt)
{
    /* A request is never passed on unedited: that could leak what the edit removes. */
    struct outcome outcome = outcome_failed(result->failure);
    if (result->verdict == EDIT_NO_ROOM) {
        outcome = outcome_busy(self->ops->no_room);
        outcome.reason = LOSS_MEMORY;
    } else if (result->verdict == EDIT_NEVER_FITS) {
        outcome = outcome_too_large(self->ops->never_fits);
    }
    receipt_resolve(receipt, &outcome);
}

static void pass_on(struct edit_stage *self, const struct batch *batch,
                    const struct edit_result *result, struct receipt *receipt)
{
    struct edit_stage_counters *counters = self->base.counters;
    if (result->verdict != EDIT_DONE) {
        refuse(self, result, receipt);
        return;
    }
    if (self->ops->edited != NULL)
        self->ops->edited(self, result);
    if (result->batch != NULL)
        counter_add(&counters->outgoing[batch->signal], result->batch->items);
    if (result->batch != NULL && result->dropped + result->made == 0) {
        component_consume(self->base.next, result->batch, receipt);
        batch_unref(result->batch);
        return;
    }
    struct batch *dropped = batch_create_like(batch, 0);
    dropped->items = result->dropped + result->made;
    if (result->batch == NULL) {
        book_dropped(self, dropped, &outcome_accepted);
        batch_unref(dropped);
        receipt_resolve(receipt, &outcome_accepted);
        return;
    }
    struct passed_rest *passed = mem_zalloc(sizeof(*passed));
    receipt_init(&passed->receipt, on_passed, passed);
    passed->outer = receipt;
    passed->owner = self;
    passed->dropped = dropped;
    passed->is_made = result->made > 0;
    if (passed->is_made)
        ledger_receive(self->base.ledger, dropped, component_exporters(&self->base, dropped));
    component_consume(self->base.next, result->batch, &passed->receipt);
    batch_unref(result->batch);
}

static void on_help(struct helper_work *work)
{
    struct helped_edit *helped = (struct helped_edit *)work;
    struct edit_stage *self = helped->self;
    helped->result = self->ops->edit(self, EDIT_ON_HELPER, helped->batch);
    if (helped->result.verdict == EDIT_FAILED)
        helped->result.failure = helped->failure = mem_copy_text(helped->result.failure);
}

static void stop_now(struct edit_stage *self)
{
    if (self->ops != NULL && self->ops->stopped != NULL)
        self->ops->stopped(self);
    component_stopped(&self->base);
}

static void on_helped(struct helper_work *work)
{
    struct helped_edit *helped = (struct helped_edit *)work;
    struct edit_stage *self = helped->self;
    pass_on(self, helped->batch, &helped->result, helped->receipt);
    batch_unref(helped->batch);
    mem_free(helped->failure);
    mem_free(helped);
    assert(self->helped > 0);
    self->helped--;
    if (self->is_stopping && self->helped == 0)
        stop_now(self);
}

static void have_helped(struct edit_stage *self, struct batch *batch, struct receipt *receipt)
{
    struct helped_edit *helped = mem_zalloc(sizeof(*helped));
    helped->work = (struct helper_work){.run = on_help, .done = on_helped};
    helped->self = self;
    helped->batch = batch_ref(batch);
    helped->receipt = receipt;
    self->helped++;
    lane_help(self->base.lane, &helped->work);
}

void edit_stage_consume(struct component *component, struct batch *batch, struct receipt *receipt)
{
    struct edit_stage *self = (struct edit_stage *)component;
    struct edit_stage_counters *counters = component->counters;
    assert(batch->signal == component->signal);
    counter_add(&counters->incoming[batch->signal], batch->items);
    struct edit_result result = {.verdict = EDIT_LONG};
    /* Points of a series have an order that later stages and back-ends rely on. */
    bool waits_its_turn = batch->signal == METRICS && self->helped > 0;
    if (batch->bytes < HELPED_BYTES_MIN && !waits_its_turn)
        result = self->ops->edit(self, EDIT_ON_LANE, batch);
    if (result.verdict == EDIT_LONG)
        have_helped(self, batch, receipt);
    else
        pass_on(self, batch, &result, receipt);
}

void edit_stage_stop(struct component *component)
{
    struct edit_stage *self = (struct edit_stage *)component;
    self->is_stopping = true;
    if (self->helped == 0)
        stop_now(self);
}
