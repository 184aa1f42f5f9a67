/* SPDX-License-Identifier: Apache-2.0 */
/* resource: edits the attributes of every Resource by a list of actions, applied in order. */
#include <assert.h>

#include "processors/shared/resource_stage.h"
#include "src/base/error.h"
#include "src/config/field.h"
#include "src/otlp/attributes/attribute_actions.h"

struct resource_config {
    struct config_sections attributes; /* struct attribute_action_config */
};

static const struct config_field resource_fields[] = {
    CONFIG_SECTIONS(struct resource_config, attributes, struct attribute_action_config,
                    "attributes", attribute_action_fields, NULL,
                    "Actions on the attributes of each resource, applied in order."),
    CONFIG_END,
};

struct resource_processor {
    struct resource_stage stage;
    struct attribute_actions *actions;
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
    resource_stage_init(&self->stage, self->actions, NULL);
    return true;
}

static void resource_destroy(struct component *component)
{
    struct resource_processor *self = resource_processor_of(component);
    resource_stage_destroy(component);
    attribute_actions_destroy(self->actions);
}

const struct component_factory resource_processor_factory = {
    .type = "resource",
    .kind = PROCESSOR,
    .stability = "beta",
    .signals = RESOURCE_STAGE_SIGNALS,
    .instance_size = sizeof(struct resource_processor),
    .config_size = sizeof(struct resource_config),
    .fields = resource_fields,
    .counters_size = sizeof(struct edit_stage_counters),
    .counters = resource_stage_rows,
    .check = resource_check,
    .create = resource_create,
    .consume = edit_stage_consume,
    .stop = edit_stage_stop,
    .destroy = resource_destroy,
};
