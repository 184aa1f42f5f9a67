/* SPDX-License-Identifier: Apache-2.0 */
/* attributes: edits the attributes of spans, log records and data points by a list of actions,
 * applied in order; include and exclude choose among them. Runs on its pipeline's lane and on the
 * lane's helper. */
#include <assert.h>

#include "processors/shared/record_stage.h"
#include "src/base/error.h"
#include "src/config/field.h"
#include "src/otlp/attributes/attribute_actions.h"
#include "src/records/attribute_edit.h"
#include "src/records/record_match.h"

#define ATTRIBUTES_SIGNALS (SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS)

struct attributes_config {
    struct config_sections actions; /* struct attribute_action_config */
    bool has_include;
    bool has_exclude;
    struct record_match_config include;
    struct record_match_config exclude;
};

static const struct config_field attributes_fields[] = {
    CONFIG_SECTIONS(struct attributes_config, actions, struct attribute_action_config, "actions",
                    attribute_action_fields, NULL,
                    "Actions on the attributes of each record, applied in order."),
    CONFIG_OPTIONAL(struct attributes_config, include, struct record_match_config, has_include,
                    CONFIG_NULL_IS_OFF, "include", record_match_fields, NULL,
                    "Only records that match are edited."),
    CONFIG_OPTIONAL(struct attributes_config, exclude, struct record_match_config, has_exclude,
                    CONFIG_NULL_IS_OFF, "exclude", record_match_fields, NULL,
                    "Of those, records that match are not edited."),
    CONFIG_END,
};

struct attributes_processor {
    struct record_stage stage;
    struct attribute_actions *actions;
    struct record_matcher *include; /* NULL: all */
    struct record_matcher *exclude; /* NULL: none */
    bool has_editors;
    struct attribute_editor editors[EDIT_PLACES];
};

static const struct counter_row attributes_counters[] = {
    EDIT_STAGE_ROWS(ATTRIBUTES_SIGNALS),
    COUNTER_END,
};

extern const struct component_factory attributes_processor_factory;

static struct attributes_processor *attributes_processor_of(struct component *component)
{
    assert(component->factory == &attributes_processor_factory);
    return (struct attributes_processor *)component;
}

static bool attributes_check(const void *section, struct error *error)
{
    const struct attributes_config *config = section;
    if (config->actions.count == 0)
        return error_set(error, "missing required field \"actions\": a list of actions, "
                                "{key: …, action: …, value: …}") ||
               error_at(error, "actions");
    return true;
}

static struct batch *run(void *editor, struct record_edit *edit, struct batch *batch)
{
    return attribute_editor_run(editor, edit, batch);
}

/* False: the properties are not allowed. *ret_matcher NULL: they choose nothing. */
static bool make_matcher(const struct record_match_config *config, enum signal_kind signal,
                         struct record_matcher **ret_matcher, struct error *error)
{
    *ret_matcher = record_matcher_create(config, signal, error);
    if (*ret_matcher == NULL)
        return false;
    if (record_matcher_is_void(*ret_matcher)) {
        record_matcher_destroy(*ret_matcher);
        *ret_matcher = NULL;
    }
    return true;
}

static const struct record_stage_ops stage_ops = {.run = run};

static bool attributes_create(struct component *component, struct error *error)
{
    struct attributes_processor *self = attributes_processor_of(component);
    const struct attributes_config *config = component->config;
    self->actions = attribute_actions_create(config->actions.items, config->actions.count, error);
    if (self->actions == NULL)
        return error_at(error, "actions");
    if (config->has_include &&
        !make_matcher(&config->include, component->signal, &self->include, error))
        return error_at(error, "include");
    if (config->has_exclude &&
        !make_matcher(&config->exclude, component->signal, &self->exclude, error))
        return error_at(error, "exclude");
    for (size_t i = 0; i < EDIT_PLACES; i++)
        attribute_editor_init(&self->editors[i], self->actions, self->include, self->exclude,
                              component->budget);
    self->has_editors = true;
    record_stage_init(&self->stage, &stage_ops, &self->editors[EDIT_ON_LANE],
                      &self->editors[EDIT_ON_HELPER]);
    return true;
}

static void attributes_destroy(struct component *component)
{
    struct attributes_processor *self = attributes_processor_of(component);
    record_stage_fini(&self->stage);
    for (size_t i = 0; self->has_editors && i < EDIT_PLACES; i++)
        attribute_editor_fini(&self->editors[i]);
    record_matcher_destroy(self->include);
    record_matcher_destroy(self->exclude);
    attribute_actions_destroy(self->actions);
}

const struct component_factory attributes_processor_factory = {
    .type = "attributes",
    .kind = PROCESSOR,
    .stability = "beta",
    .signals = ATTRIBUTES_SIGNALS,
    .instance_size = sizeof(struct attributes_processor),
    .config_size = sizeof(struct attributes_config),
    .fields = attributes_fields,
    .counters_size = sizeof(struct edit_stage_counters),
    .counters = attributes_counters,
    .check = attributes_check,
    .create = attributes_create,
    .consume = edit_stage_consume,
    .stop = edit_stage_stop,
    .destroy = attributes_destroy,
};
