/* SPDX-License-Identifier: Apache-2.0 */
/* Editing on the lane, or on its helper when a request is large; then passing on and counting. */
#include "processors/shared/record_stage.h"

#include <assert.h>

#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/receipt.h"

/* A large request, which the helper edits. */
struct helped_edit {
    struct helper_work work; /* first */
    struct record_stage *self;
    struct batch *batch; /* a reference */
    struct receipt *receipt;
    struct batch *edited; /* NULL: the budget has no room */
};

/* A request in the next stage, of which a part was left out. */
struct shortened {
    struct receipt receipt;
    struct receipt *outer;
    struct record_stage *owner;
    struct batch *lost; /* has the items that were left out, for the ledger */
};

void record_stage_init(struct record_stage *self, record_stage_fn run, void *first, void *second)
{
    self->run = run;
    self->editors[0] = first;
    self->editors[1] = second;
    for (size_t i = 0; i < RECORD_STAGE_EDITORS; i++)
        record_edit_init(&self->edits[i], self->base.budget);
    self->has_edits = true;
}

static void count_lost(struct record_stage *self, const struct batch *lost,
                       const struct outcome *outcome)
{
    unsigned exporters = component_exporters(&self->base, lost);
    if (outcome->verdict == REFUSED)
        return;
    if (outcome->verdict == ACCEPTED || lost->is_acknowledged)
        ledger_drop(self->base.ledger, lost, LOSS_UNWANTED, exporters);
    else
        ledger_reject(self->base.ledger, lost, LOSS_UNWANTED, exporters);
}

static void on_resolved(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct shortened *shortened = arg;
    assert(receipt == &shortened->receipt);
    count_lost(shortened->owner, shortened->lost, outcome);
    receipt_resolve(shortened->outer, outcome);
    batch_unref(shortened->lost);
    mem_free(shortened);
}

static void refuse(struct receipt *receipt, bool never_fits)
{
    /* Passing it on unedited could leak what the edit removes. */
    struct outcome outcome = outcome_busy("the memory budget has no room to edit the request");
    outcome.reason = LOSS_MEMORY;
    if (never_fits)
        outcome = outcome_too_large("editing the request takes more than the whole memory budget "
                                    "(service::budget_mib); send less at a time");
    receipt_resolve(receipt, &outcome);
}

/* edited NULL: the budget has no room. */
static void pass_on(struct record_stage *self, struct batch *batch, size_t place,
                    struct batch *edited, struct receipt *receipt)
{
    struct record_stage_counters *counters = self->base.counters;
    if (edited == NULL) {
        refuse(receipt, record_edit_never_fits(&self->edits[place]));
        return;
    }
    if (self->done != NULL)
        self->done(self, self->editors[place]);
    uint64_t lost_items = batch->items - edited->items;
    counter_add(&counters->outgoing[batch->signal], edited->items);
    if (lost_items == 0 && (edited->bytes > 0 || batch->bytes == 0)) {
        component_consume(self->base.next, edited, receipt);
        batch_unref(edited);
        return;
    }
    struct batch *lost = batch_create_like(batch, 1);
    lost->items = lost_items;
    if (edited->items == 0) {
        /* Nothing is left. */
        count_lost(self, lost, &outcome_accepted);
        receipt_resolve(receipt, &outcome_accepted);
        batch_unref(lost);
        batch_unref(edited);
        return;
    }
    struct shortened *shortened = mem_zalloc(sizeof(*shortened));
    receipt_init(&shortened->receipt, on_resolved, shortened);
    shortened->outer = receipt;
    shortened->owner = self;
    shortened->lost = lost;
    component_consume(self->base.next, edited, &shortened->receipt);
    batch_unref(edited);
}

static void on_help(struct helper_work *work)
{
    struct helped_edit *helped = (struct helped_edit *)work;
    struct record_stage *self = helped->self;
    helped->edited = self->run(self->editors[1], &self->edits[1], helped->batch);
}

static void finish(struct record_stage *self)
{
    if (self->stopped != NULL)
        self->stopped(self);
    component_stopped(&self->base);
}

static void on_helped(struct helper_work *work)
{
    struct helped_edit *helped = (struct helped_edit *)work;
    struct record_stage *self = helped->self;
    pass_on(self, helped->batch, 1, helped->edited, helped->receipt);
    batch_unref(helped->batch);
    mem_free(helped);
    assert(self->helped > 0);
    self->helped--;
    if (self->is_stopping && self->helped == 0)
        finish(self);
}

void record_stage_consume(struct component *component, struct batch *batch, struct receipt *receipt)
{
    struct record_stage *self = (struct record_stage *)component;
    struct record_stage_counters *counters = component->counters;
    assert(batch->signal == component->signal);
    counter_add(&counters->incoming[batch->signal], batch->items);
    if (batch->bytes >= HELPED_BYTES_MIN) {
        struct helped_edit *helped = mem_zalloc(sizeof(*helped));
        helped->work = (struct helper_work){.run = on_help, .done = on_helped};
        helped->self = self;
        helped->batch = batch_ref(batch);
        helped->receipt = receipt;
        self->helped++;
        lane_help(component->lane, &helped->work);
        return;
    }
    struct batch *edited = self->run(self->editors[0], &self->edits[0], batch);
    pass_on(self, batch, 0, edited, receipt);
}

void record_stage_stop(struct component *component)
{
    struct record_stage *self = (struct record_stage *)component;
    self->is_stopping = true;
    if (self->helped == 0)
        finish(self);
}

void record_stage_destroy(struct component *component)
{
    struct record_stage *self = (struct record_stage *)component;
    assert(self->helped == 0);
    for (size_t i = 0; self->has_edits && i < RECORD_STAGE_EDITORS; i++)
        record_edit_fini(&self->edits[i]);
}
