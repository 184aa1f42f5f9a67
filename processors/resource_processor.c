/* SPDX-License-Identifier: Apache-2.0 */
/* resource: edits the attributes of every Resource by a list of actions, applied in order. A
 * changed batch shares all bytes outside its Resources with the one that arrived. Runs on its
 * pipeline's lane; the lane's helper edits large requests. */
#include <assert.h>

#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/otlp/attributes/attribute_actions.h"
#include "src/otlp/attributes/resource_edit.h"

struct resource_config {
    struct config_sections attributes; /* struct attribute_action_config */
};

static const struct config_field resource_fields[] = {
    CONFIG_SECTIONS(struct resource_config, attributes, struct attribute_action_config,
                    "attributes", attribute_action_fields, NULL,
                    "Actions on the attributes of each resource, applied in order."),
    CONFIG_END,
};

struct resource_counters {
    counter incoming[SIGNAL_KINDS];
    counter outgoing[SIGNAL_KINDS];
};

#define EDITED_SIGNALS (SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES)

static const struct counter_row resource_counters[] = {
    COUNTER_BY_SIGNAL(struct resource_counters, incoming, COUNTER_SUM,
                      "otelcol_processor_incoming_items", EDITED_SIGNALS, NULL, NULL,
                      "Items passed to the processor."),
    COUNTER_BY_SIGNAL(struct resource_counters, outgoing, COUNTER_SUM,
                      "otelcol_processor_outgoing_items", EDITED_SIGNALS, NULL, NULL,
                      "Items emitted from the processor."),
    COUNTER_END,
};

struct resource_processor {
    struct component base;
    struct attribute_actions *actions;
    struct resource_editor editor;
    struct resource_editor helper_editor; /* for the lane's helper */
    unsigned helped;                      /* requests that are with the helper */
    bool is_stopping;
};

/* A large request, which the helper edits: a Resource may have millions of attributes. */
struct helped_edit {
    struct helper_work work; /* first */
    struct resource_processor *self;
    struct batch *batch; /* a reference */
    struct receipt *receipt;
    struct batch *edited; /* NULL: the budget has no room */
    bool never_fits;      /* and its limit is too low */
};

extern const struct component_factory resource_processor_factory;

static struct resource_processor *resource_processor_of(struct component *component)
{
    assert(component->factory == &resource_processor_factory);
    return (struct resource_processor *)component;
}

static bool resource_check(const void *section, struct error *error)
{
    const struct resource_config *config = section;
    if (config->attributes.count == 0)
        return error_set(error, "missing required field \"attributes\": a list of actions, "
                                "{key: …, action: …, value: …}") ||
               error_at(error, "attributes");
    return true;
}

static bool resource_create(struct component *component, struct error *error)
{
    struct resource_processor *self = resource_processor_of(component);
    const struct resource_config *config = component->config;
    self->actions =
        attribute_actions_create(config->attributes.items, config->attributes.count, error);
    if (self->actions == NULL)
        return error_at(error, "attributes");
    resource_editor_init(&self->editor, self->actions, component->budget);
    resource_editor_init(&self->helper_editor, self->actions, component->budget);
    return true;
}

/* edited NULL: the budget has no room. */
static void pass_on(struct resource_processor *self, const struct batch *batch,
                    struct batch *edited, bool never_fits, struct receipt *receipt)
{
    struct resource_counters *counters = self->base.counters;
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
    struct resource_processor *self = helped->self;
    pass_on(self, helped->batch, helped->edited, helped->never_fits, helped->receipt);
    batch_unref(helped->batch);
    mem_free(helped);
    assert(self->helped > 0);
    self->helped--;
    if (self->is_stopping && self->helped == 0)
        component_stopped(&self->base);
}

static void resource_consume(struct component *component, struct batch *batch,
                             struct receipt *receipt)
{
    struct resource_processor *self = resource_processor_of(component);
    struct resource_counters *counters = component->counters;
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

static void resource_stop(struct component *component)
{
    struct resource_processor *self = resource_processor_of(component);
    self->is_stopping = true;
    if (self->helped == 0)
        component_stopped(component);
}

static void resource_destroy(struct component *component)
{
    struct resource_processor *self = resource_processor_of(component);
    assert(self->helped == 0);
    if (self->actions != NULL) {
        resource_editor_fini(&self->editor);
        resource_editor_fini(&self->helper_editor);
    }
    attribute_actions_destroy(self->actions);
}

const struct component_factory resource_processor_factory = {
    .type = "resource",
    .kind = PROCESSOR,
    .stability = "beta",
    .signals = EDITED_SIGNALS,
    .instance_size = sizeof(struct resource_processor),
    .config_size = sizeof(struct resource_config),
    .fields = resource_fields,
    .counters_size = sizeof(struct resource_counters),
    .counters = resource_counters,
    .check = resource_check,
    .create = resource_create,
    .consume = resource_consume,
    .stop = resource_stop,
    .destroy = resource_destroy,
};
