/* SPDX-License-Identifier: Apache-2.0 */
/* transform: edits telemetry by OTTL statements (contrib 0.155, processor/transformprocessor). Each
 * signal has a list: statements whose paths begin with their context, or groups {context,
 * conditions, statements, error_mode} that run one after the other over the whole request. */
#include <assert.h>

#include "processors/shared/statement_groups.h"
#include "processors/shared/statement_stage.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/config/feature_gates.h"

struct transform_config {
    const char *error_mode;
    const struct config_value *trace_statements;
    const struct config_value *log_statements;
    const struct config_value *metric_statements;
    const struct config_value *profile_statements;
    bool flatten_data;
};

static const struct config_field transform_fields[] = {
    CONFIG_TEXT_NOT_EMPTY(
        struct transform_config, error_mode, "error_mode",
        "What a statement that fails does: ignore (it is skipped; logged), silent (the "
        "same, not logged), propagate (the request is refused). ignore by default."),
    CONFIG_VALUE(struct transform_config, trace_statements, "trace_statements",
                 "For traces: statements whose paths begin with their context "
                 "(set(span.name, \"a\")), or groups {context, conditions, statements, "
                 "error_mode}."),
    CONFIG_VALUE(struct transform_config, log_statements, "log_statements", "The same for logs."),
    CONFIG_VALUE(struct transform_config, metric_statements, "metric_statements",
                 "The same for metrics."),
    CONFIG_VALUE(struct transform_config, profile_statements, "profile_statements",
                 "The same for profiles, and for their samples (context profilesample)."),
    CONFIG_BOOL(
        struct transform_config, flatten_data, "flatten_data", "false",
        "Logs: each record is edited with a Resource and a scope of its own; those that are "
        "equal then are put together. Needs the feature gate transform.flatten.logs."),
    CONFIG_END,
};

enum { TRANSFORM_SIGNALS = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES };

/* The key of each signal. */
static const char *const keys[SIGNAL_KINDS] = {[TRACES] = "trace_statements",
                                               [METRICS] = "metric_statements",
                                               [LOGS] = "log_statements",
                                               [PROFILES] = "profile_statements"};

/* Plans of one signal, in order. */
struct plans {
    struct ottl_plan **items;
    size_t count;
    unsigned innermost; /* of the last plan's groups; contexts are ordered from the outside */
    bool stays_inside;  /* none of them changes what surrounds its records */
    bool makes_metrics; /* the last plan does, for its own group alone */
};

static void destroy_plans(struct plans *plans)
{
    for (size_t i = 0; i < plans->count; i++)
        ottl_plan_destroy(plans->items[i]);
    mem_free(plans->items);
}

/* Contexts around one: those before it in the enum that its paths reach. */
static unsigned around(unsigned context)
{
    return ottl_context_type((enum ottl_context)context)->reaches & (OTTL_CONTEXT_BIT(context) - 1);
}

/* Whether a group may run in the same pass as the groups before it: record by record instead of
 * group by group. It may unless one of them would see what another changes around its records, too
 * early or too late. */
static bool may_join(const struct plans *plans, unsigned context, unsigned written)
{
    return plans->count > 0 && !plans->makes_metrics && context >= plans->innermost &&
           plans->stays_inside && (written & around(plans->innermost)) == 0;
}

/* Compiles a group by itself: finds the mistakes, its context, and what it changes. */
static bool probe(enum signal_kind signal, const struct ottl_group *group, bool is_list,
                  unsigned *ret_context, unsigned *ret_written, bool *ret_makes_metrics,
                  struct error *error)
{
    struct ottl_plan *plan = ottl_plan_create(signal, OTTL_FOR_TRANSFORM);
    bool is_fine = ottl_plan_add(plan, group, is_list, error);
    if (is_fine) {
        *ret_context = (unsigned)__builtin_ctz(plan->contexts);
        *ret_written = plan->written;
        *ret_makes_metrics = plan->makes_metrics;
    }
    ottl_plan_destroy(plan);
    return is_fine;
}

static bool add(struct plans *plans, enum signal_kind signal, const struct ottl_group *group,
                bool is_list, struct error *error)
{
    unsigned context, written;
    bool makes_metrics;
    if (!probe(signal, group, is_list, &context, &written, &makes_metrics, error))
        return false;
    if (makes_metrics || !may_join(plans, context, written)) {
        plans->items = mem_resize(plans->items, (plans->count + 1) * sizeof(struct ottl_plan *));
        plans->items[plans->count++] = ottl_plan_create(signal, OTTL_FOR_TRANSFORM);
        plans->stays_inside = true;
    }
    plans->innermost = context;
    plans->makes_metrics = makes_metrics;
    plans->stays_inside = plans->stays_inside && (written & around(context)) == 0;
    return ottl_plan_add(plans->items[plans->count - 1], group, is_list, error);
}

static bool add_group(struct plans *plans, enum signal_kind signal, const struct config_value *map,
                      enum ottl_error_mode mode, struct error *error)
{
    struct statement_group read;
    if (!statement_group_read(map, signal, true, mode, &read, error))
        return false;
    const char **conditions = statement_texts(read.conditions, error);
    if (conditions == NULL)
        return error_at(error, "conditions");
    const char **statements = statement_texts(read.statements, error);
    const struct ottl_group group = {
        .context = read.context,
        .paths = read.context == OTTL_CONTEXTS ? OTTL_PATHS_FULL : OTTL_PATHS_OF_CONTEXT,
        .error_mode = read.error_mode,
        .conditions = conditions,
        .conditions_count = read.conditions != NULL ? read.conditions->count : 0,
        .statements = statements,
        .statements_count = read.statements != NULL ? read.statements->count : 0,
    };
    bool is_fine = statements != NULL ? true : error_at(error, "statements");
    if (is_fine && group.statements_count == 0 && read.context == OTTL_CONTEXTS)
        is_fine = error_set(error, "a group without statements needs a context");
    else if (is_fine && group.statements_count > 0)
        is_fine = add(plans, signal, &group, false, error);
    mem_free(conditions);
    mem_free(statements);
    return is_fine;
}

/* Statements before groups are refused, after groups they are one more group, as in Go. */
static bool add_list(struct plans *plans, enum signal_kind signal, const struct config_value *list,
                     enum ottl_error_mode mode, struct error *error)
{
    if (list->type != CONFIG_VALUE_LIST)
        return error_set(error, "expected a list of statements, or of {context, statements}");
    size_t texts_count = 0;
    const char **texts = mem_alloc((list->count + 1) * sizeof(*texts));
    size_t first = 0;
    bool is_fine = true;
    for (size_t i = 0; i < list->count && is_fine; i++) {
        const struct config_value *value = &list->items[i];
        if (value->type == CONFIG_VALUE_TEXT) {
            first = texts_count == 0 ? i : first;
            texts[texts_count++] = value->text;
            continue;
        }
        if (value->type != CONFIG_VALUE_MAP)
            is_fine = error_set(error, "expected a statement, or a group {context, statements}");
        else if (texts_count > 0)
            is_fine = error_set(error, "a group behind statements; write all as groups, or none");
        else
            is_fine = add_group(plans, signal, value, mode, error);
        if (!is_fine)
            error_at_index(error, i);
    }
    const struct ottl_group group = {.context = OTTL_CONTEXTS,
                                     .paths = OTTL_PATHS_FULL,
                                     .error_mode = mode,
                                     .statements = texts,
                                     .statements_count = texts_count};
    if (is_fine && texts_count > 0 && !add(plans, signal, &group, true, error)) {
        /* The texts are neighbours in the list. */
        if (error->steps_count > 0)
            error->steps[0].index += first;
        is_fine = false;
    }
    mem_free(texts);
    return is_fine;
}

static bool is_given(const struct config_value *value)
{
    return value != NULL && value->type != CONFIG_VALUE_NULL;
}

static bool make_plans(const struct transform_config *config, const struct component *component,
                       enum signal_kind signal, struct plans *ret, struct error *error)
{
    const struct config_value *list = signal == TRACES    ? config->trace_statements
                                      : signal == METRICS ? config->metric_statements
                                      : signal == LOGS    ? config->log_statements
                                                          : config->profile_statements;
    enum ottl_error_mode mode;
    *ret = (struct plans){.count = 0};
    if (!statement_error_mode(config->error_mode, component, GATE_TRANSFORM_IGNORES, &mode, error))
        return false;
    if (is_given(list) && !add_list(ret, signal, list, mode, error)) {
        destroy_plans(ret);
        return error_at(error, keys[signal]);
    }
    for (size_t i = 0; i < ret->count; i++)
        ottl_plan_finish(ret->items[i]);
    return true;
}

static bool transform_check(const void *section, struct error *error)
{
    const struct transform_config *config = section;
    static const enum signal_kind signals[] = {TRACES, METRICS, LOGS, PROFILES};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct plans plans;
        if (!make_plans(config, NULL, signals[i], &plans, error))
            return false;
        destroy_plans(&plans);
    }
    return true;
}

extern const struct component_factory transform_processor_factory;

static bool transform_create(struct component *component, struct error *error)
{
    const struct transform_config *config = component->config;
    struct plans plans;
    assert(component->factory == &transform_processor_factory);
    if (config->flatten_data &&
        !feature_gate_is_enabled(component->service != NULL ? component->service->gates : NULL,
                                 GATE_TRANSFORM_FLATTENS))
        return error_set(error, "'flatten_data' requires the 'transform.flatten.logs' feature gate "
                                "to be enabled") ||
               error_at(error, "flatten_data");
    if (!make_plans(config, component, component->signal, &plans, error))
        return false;
    statement_stage_init((struct statement_stage *)component, plans.items, plans.count, false,
                         "failed to execute statement");
    if (config->flatten_data && component->signal == LOGS)
        statement_stage_flatten((struct statement_stage *)component);
    mem_free(plans.items);
    return true;
}

static const struct counter_row transform_rows[] = {
    EDIT_STAGE_ROWS(TRANSFORM_SIGNALS),
    COUNTER_END,
};

const struct component_factory transform_processor_factory = {
    .type = "transform",
    .kind = PROCESSOR,
    .stability = "beta",
    .signals = TRANSFORM_SIGNALS,
    .instance_size = sizeof(struct statement_stage),
    .config_size = sizeof(struct transform_config),
    .fields = transform_fields,
    .counters_size = sizeof(struct statement_stage_counters),
    .counters = transform_rows,
    .check = transform_check,
    .create = transform_create,
    .consume = edit_stage_consume,
    .stop = edit_stage_stop,
    .destroy = statement_stage_destroy,
};
