/* SPDX-License-Identifier: Apache-2.0 */
/* What processors have in common that edit resources and pass everything on: counting, editing on
 * the lane, or on its helper when a request is large. */
#include "processors/shared/resource_stage.h"

#include <assert.h>

#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/receipt.h"

const struct counter_row resource_stage_rows[] = {
    COUNTER_BY_SIGNAL(struct resource_stage_counters, incoming, COUNTER_SUM,
                      "otelcol_processor_incoming_items", RESOURCE_STAGE_SIGNALS, NULL, NULL,
                      "Items passed to the processor."),
    COUNTER_BY_SIGNAL(struct resource_stage_counters, outgoing, COUNTER_SUM,
                      "otelcol_processor_outgoing_items", RESOURCE_STAGE_SIGNALS, NULL, NULL,
                      "Items emitted from the processor."),
    COUNTER_END,
};

/* A large request, which the helper edits: a Resource may have millions of attributes. */
struct helped_edit {
    struct helper_work work; /* first */
    struct resource_stage *self;
    struct batch *batch; /* a reference */
    struct receipt *receipt;
    struct batch *edited; /* NULL: the budget has no room */
    bool never_fits;      /* and its limit is too low */
};

void resource_stage_init(struct resource_stage *self, const struct attribute_actions *actions,
                         const struct resource_merge *merge)
{
    resource_editor_init(&self->editor, actions, merge, self->base.budget);
    resource_editor_init(&self->helper_editor, actions, merge, self->base.budget);
    self->has_editors = true;
}

/* edited NULL: the budget has no room. */
static void pass_on(struct resource_stage *self, const struct batch *batch, struct batch *edited,
                    bool never_fits, struct receipt *receipt)
{
    struct resource_stage_counters *counters = self->base.counters;
    if (edited == NULL) {
        /* Passing it on unedited would leak what the actions remove. */
        struct outcome outcome = outcome_busy("the memory budget has no room to edit resources");
        outcome.reason = LOSS_MEMORY;
        if (never_fits)
            outcome =
                outcome_too_large("editing the resources takes more than the whole memory budget "
                                  "(service::budget_mib); send less at a time");
        receipt_resolve(receipt, &outcome);
        return;
    }
    counter_add(&counters->outgoing[batch->signal], edited->items);
    component_consume(self->base.next, edited, receipt);
    batch_unref(edited);
}

static void on_help(struct helper_work *work)
{
    struct helped_edit *helped = (struct helped_edit *)work;
    struct resource_editor *editor = &helped->self->helper_editor;
    helped->edited = resource_edit(editor, helped->batch);
    helped->never_fits = helped->edited == NULL && resource_edit_never_fits(editor);
}

static void on_helped(struct helper_work *work)
{
    struct helped_edit *helped = (struct helped_edit *)work;
    struct resource_stage *self = helped->self;
    pass_on(self, helped->batch, helped->edited, helped->never_fits, helped->receipt);
    batch_unref(helped->batch);
    mem_free(helped);
    assert(self->helped > 0);
    self->helped--;
    if (self->is_stopping && self->helped == 0)
        component_stopped(&self->base);
}

void resource_stage_consume(struct component *component, struct batch *batch,
                            struct receipt *receipt)
{
    struct resource_stage *self = (struct resource_stage *)component;
    struct resource_stage_counters *counters = component->counters;
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
    struct batch *edited = resource_edit(&self->editor, batch);
    bool never_fits = edited == NULL && resource_edit_never_fits(&self->editor);
    pass_on(self, batch, edited, never_fits, receipt);
}

void resource_stage_stop(struct component *component)
{
    struct resource_stage *self = (struct resource_stage *)component;
    self->is_stopping = true;
    if (self->helped == 0)
        component_stopped(component);
}

void resource_stage_destroy(struct component *component)
{
    struct resource_stage *self = (struct resource_stage *)component;
    assert(self->helped == 0);
    if (!self->has_editors)
        return;
    resource_editor_fini(&self->editor);
    resource_editor_fini(&self->helper_editor);
}
