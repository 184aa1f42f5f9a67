/* SPDX-License-Identifier: Apache-2.0 */
/* filter: drops spans, events, metrics, data points, log records, profiles, samples, scopes and
 * resources for which an OTTL condition holds
 * (contrib 0.155, processor/filterprocessor). Conditions are given by context below traces: and
 * logs:, or as a list, trace_conditions: and log_conditions:. The oldest form has no conditions but
 * properties to include and exclude, in spans:, metrics: and logs:. */
#include <assert.h>

#include "processors/shared/record_stage.h"
#include "processors/shared/statement_groups.h"
#include "processors/shared/statement_stage.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/core/batch.h"
#include "src/records/record_filter.h"

/* The conditions of one signal below its own key, by context. */
struct filter_traces_config {
    struct config_texts resource;
    struct config_texts span;
    struct config_texts spanevent;
};

struct filter_logs_config {
    struct config_texts resource;
    struct config_texts log_record;
    bool has_include;
    struct log_filter_config include;
    bool has_exclude;
    struct log_filter_config exclude;
};

struct filter_metrics_config {
    struct config_texts resource;
    struct config_texts metric;
    struct config_texts datapoint;
    bool has_include;
    struct metric_filter_config include;
    bool has_exclude;
    struct metric_filter_config exclude;
    bool has_cache;
    struct record_match_cache_config cache;
};

struct filter_spans_config {
    bool has_include;
    struct record_match_config include;
    bool has_exclude;
    struct record_match_config exclude;
};

struct filter_profiles_config {
    struct config_texts resource;
    struct config_texts profile;
};

struct filter_config {
    const char *error_mode;
    struct filter_traces_config traces;
    struct filter_logs_config logs;
    struct filter_metrics_config metrics;
    struct filter_profiles_config profiles;
    struct filter_spans_config spans;
    const struct config_value *trace_conditions;
    const struct config_value *log_conditions;
    const struct config_value *metric_conditions;
    const struct config_value *profile_conditions;
};

static const struct config_field filter_traces_fields[] = {
    CONFIG_TEXTS(struct filter_traces_config, resource, "resource", NULL,
                 "Conditions on resources, paths without prefix. Any that holds drops the "
                 "resource with all its spans."),
    CONFIG_TEXTS(struct filter_traces_config, span, "span", NULL,
                 "Conditions on spans: any that holds drops the span."),
    CONFIG_TEXTS(struct filter_traces_config, spanevent, "spanevent", NULL,
                 "Conditions on events of spans: any that holds drops the event."),
    CONFIG_END,
};

static const struct config_field filter_logs_fields[] = {
    CONFIG_TEXTS(struct filter_logs_config, resource, "resource", NULL,
                 "Conditions on resources, paths without prefix. Any that holds drops the "
                 "resource with all its records."),
    CONFIG_TEXTS(struct filter_logs_config, log_record, "log_record", NULL,
                 "Conditions on log records: any that holds drops the record."),
    CONFIG_OPTIONAL(struct filter_logs_config, include, struct log_filter_config, has_include,
                    CONFIG_NULL_IS_OFF, "include", log_filter_fields, NULL,
                    "Deprecated in the Go collector. Log records that do not match all of this are "
                    "dropped."),
    CONFIG_OPTIONAL(struct filter_logs_config, exclude, struct log_filter_config, has_exclude,
                    CONFIG_NULL_IS_OFF, "exclude", log_filter_fields, NULL,
                    "Deprecated in the Go collector. Those that match all of this are dropped."),
    CONFIG_END,
};

static const struct config_field filter_metrics_fields[] = {
    CONFIG_TEXTS(struct filter_metrics_config, resource, "resource", NULL,
                 "Conditions on resources, paths without prefix. Any that holds drops the "
                 "resource with all its metrics."),
    CONFIG_TEXTS(struct filter_metrics_config, metric, "metric", NULL,
                 "Conditions on metrics: any that holds drops the metric."),
    CONFIG_TEXTS(struct filter_metrics_config, datapoint, "datapoint", NULL,
                 "Conditions on data points: any that holds drops the point, and the metric with "
                 "its last one."),
    CONFIG_OPTIONAL(struct filter_metrics_config, include, struct metric_filter_config, has_include,
                    CONFIG_NULL_IS_OFF, "include", metric_filter_fields, NULL,
                    "Deprecated in the Go collector. Metrics that do not match all of this are "
                    "dropped."),
    CONFIG_OPTIONAL(struct filter_metrics_config, exclude, struct metric_filter_config, has_exclude,
                    CONFIG_NULL_IS_OFF, "exclude", metric_filter_fields, NULL,
                    "Deprecated in the Go collector. Metrics whose resource or name matches "
                    "are dropped."),
    CONFIG_UNUSED_OPTIONAL(struct filter_metrics_config, cache, struct record_match_cache_config,
                           has_cache, CONFIG_NULL_IS_OFF, "regexp", record_match_cache_fields,
                           "No effect, as in the Go collector."),
    CONFIG_END,
};

static const struct config_field filter_spans_fields[] = {
    CONFIG_OPTIONAL(struct filter_spans_config, include, struct record_match_config, has_include,
                    CONFIG_NULL_IS_OFF, "include", record_match_fields, NULL,
                    "Deprecated in the Go collector. Spans that do not match all of this are "
                    "dropped."),
    CONFIG_OPTIONAL(struct filter_spans_config, exclude, struct record_match_config, has_exclude,
                    CONFIG_NULL_IS_OFF, "exclude", record_match_fields, NULL,
                    "Deprecated in the Go collector. Those that match all of this are dropped."),
    CONFIG_END,
};

static const struct config_field filter_profiles_fields[] = {
    CONFIG_TEXTS(struct filter_profiles_config, resource, "resource", NULL,
                 "Conditions on resources, paths without prefix. Any that holds drops the "
                 "resource with all its profiles."),
    CONFIG_TEXTS(struct filter_profiles_config, profile, "profile", NULL,
                 "Conditions on profiles: any that holds drops the profile."),
    CONFIG_END,
};

static const struct config_field filter_fields[] = {
    CONFIG_TEXT_NOT_EMPTY(
        struct filter_config, error_mode, "error_mode",
        "What a condition that fails does: ignore (it does not hold; logged), silent (the "
        "same, not logged), propagate (the request is refused). ignore by default."),
    CONFIG_SECTION(struct filter_config, traces, struct filter_traces_config, "traces",
                   filter_traces_fields, NULL, "Conditions by context, for traces."),
    CONFIG_SECTION(struct filter_config, logs, struct filter_logs_config, "logs",
                   filter_logs_fields, NULL, "Conditions by context, for logs."),
    CONFIG_SECTION(struct filter_config, metrics, struct filter_metrics_config, "metrics",
                   filter_metrics_fields, NULL, "Conditions by context, for metrics."),
    CONFIG_SECTION(struct filter_config, profiles, struct filter_profiles_config, "profiles",
                   filter_profiles_fields, NULL, "Conditions by context, for profiles."),
    CONFIG_SECTION(struct filter_config, spans, struct filter_spans_config, "spans",
                   filter_spans_fields, NULL, "Spans to include and exclude by properties."),
    CONFIG_VALUE(struct filter_config, trace_conditions, "trace_conditions",
                 "For traces: conditions whose paths begin with their context "
                 "(span.attributes[\"a\"] == \"b\"), or groups {context, conditions, error_mode}."),
    CONFIG_VALUE(struct filter_config, log_conditions, "log_conditions", "The same for logs."),
    CONFIG_VALUE(struct filter_config, metric_conditions, "metric_conditions",
                 "The same for metrics."),
    CONFIG_VALUE(struct filter_config, profile_conditions, "profile_conditions",
                 "The same for profiles, and for their samples (context profilesample)."),
    CONFIG_END,
};

enum { FILTER_SIGNALS = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES };

/* Conditions below traces: or logs:. */
static bool add_texts(struct ottl_plan *plan, const struct config_texts *texts,
                      enum ottl_context context, enum ottl_error_mode mode, const char *key,
                      struct error *error)
{
    const struct ottl_group group = {.context = context,
                                     .paths = OTTL_PATHS_BARE,
                                     .error_mode = mode,
                                     .conditions = texts->texts,
                                     .conditions_count = texts->count};
    return texts->texts == NULL || ottl_plan_add(plan, &group, true, error) || error_at(error, key);
}

/* Conditions of a group, or one alone. Without a context each says its own, which may differ. */
static bool add_conditions(struct ottl_plan *plan, const char *const *texts, size_t count,
                           enum ottl_context context, enum ottl_error_mode mode,
                           struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct ottl_group group = {.context = context,
                                         .paths = context == OTTL_CONTEXTS ? OTTL_PATHS_FULL
                                                                           : OTTL_PATHS_OF_CONTEXT,
                                         .error_mode = mode,
                                         .conditions = &texts[i],
                                         .conditions_count = 1};
        if (!ottl_plan_add(plan, &group, true, error)) {
            error->steps_count = 0; /* the index in a list of one */
            return error_at_index(error, i);
        }
    }
    return true;
}

static bool add_group(struct ottl_plan *plan, const struct config_value *map,
                      enum ottl_error_mode mode, struct error *error)
{
    struct statement_group group;
    if (!statement_group_read(map, plan->signal, false, mode, &group, error))
        return false;
    const char **texts = statement_texts(group.conditions, error);
    bool is_fine =
        texts != NULL &&
        add_conditions(plan, texts, group.conditions != NULL ? group.conditions->count : 0,
                       group.context, group.error_mode, error);
    mem_free(texts);
    return is_fine || error_at(error, "conditions");
}

static bool add_condition(struct ottl_plan *plan, const struct config_value *value,
                          enum ottl_error_mode mode, struct error *error)
{
    if (value->type != CONFIG_VALUE_TEXT)
        return error_set(error, "expected a condition, a string");
    if (add_conditions(plan, &value->text, 1, OTTL_CONTEXTS, mode, error))
        return true;
    error->steps_count = 0;
    return false;
}

/* trace_conditions and the like: conditions, or groups, not both. */
static bool add_list(struct ottl_plan *plan, const struct config_value *list,
                     enum ottl_error_mode mode, struct error *error)
{
    if (list->type != CONFIG_VALUE_LIST)
        return error_set(error, "expected a list of conditions, or of {context, conditions}");
    for (size_t i = 0; i < list->count; i++) {
        const struct config_value *value = &list->items[i];
        if (value->type == CONFIG_VALUE_NULL)
            return error_set(error, "condition cannot be empty") || error_at_index(error, i);
        if ((value->type == CONFIG_VALUE_MAP) != (list->items[0].type == CONFIG_VALUE_MAP))
            return error_set(error, "conditions and groups {context, conditions} cannot be mixed "
                                    "in one list") ||
                   error_at_index(error, i);
        bool is_fine = value->type == CONFIG_VALUE_MAP ? add_group(plan, value, mode, error)
                                                       : add_condition(plan, value, mode, error);
        if (!is_fine)
            return error_at_index(error, i);
    }
    return true;
}

/* Conditions of one signal: the list, or those by context. */
struct filter_source {
    const struct config_value *list;
    const char *list_key;
    const char *key;
    struct {
        const struct config_texts *texts;
        const char *key;
        enum ottl_context context;
    } contexts[4]; /* ended by one without texts */
};

static struct filter_source source_of(const struct filter_config *config, enum signal_kind signal)
{
    if (signal == TRACES)
        return (struct filter_source){config->trace_conditions,
                                      "trace_conditions",
                                      "traces",
                                      {{&config->traces.resource, "resource", OTTL_RESOURCE},
                                       {&config->traces.span, "span", OTTL_SPAN},
                                       {&config->traces.spanevent, "spanevent", OTTL_SPAN_EVENT}}};
    if (signal == METRICS)
        return (struct filter_source){config->metric_conditions,
                                      "metric_conditions",
                                      "metrics",
                                      {{&config->metrics.resource, "resource", OTTL_RESOURCE},
                                       {&config->metrics.metric, "metric", OTTL_METRIC},
                                       {&config->metrics.datapoint, "datapoint", OTTL_DATA_POINT}}};
    if (signal == PROFILES)
        return (struct filter_source){config->profile_conditions,
                                      "profile_conditions",
                                      "profiles",
                                      {{&config->profiles.resource, "resource", OTTL_RESOURCE},
                                       {&config->profiles.profile, "profile", OTTL_PROFILE}}};
    return (struct filter_source){config->log_conditions,
                                  "log_conditions",
                                  "logs",
                                  {{&config->logs.resource, "resource", OTTL_RESOURCE},
                                   {&config->logs.log_record, "log_record", OTTL_LOG}}};
}

static bool add_source(struct ottl_plan *plan, const struct filter_source *source,
                       enum ottl_error_mode mode, struct error *error)
{
    bool has_list = source->list != NULL && source->list->type != CONFIG_VALUE_NULL;
    for (size_t i = 0; source->contexts[i].texts != NULL; i++) {
        if (has_list && source->contexts[i].texts->texts != NULL)
            return error_set(error,
                             "cannot be used together with %s::%s; move those conditions "
                             "here",
                             source->key, source->contexts[i].key) ||
                   error_at(error, source->list_key);
        if (!add_texts(plan, source->contexts[i].texts, source->contexts[i].context, mode,
                       source->contexts[i].key, error))
            return error_at(error, source->key);
    }
    return !has_list || add_list(plan, source->list, mode, error) ||
           error_at(error, source->list_key);
}

static bool is_given(const struct config_value *value)
{
    return value != NULL && value->type != CONFIG_VALUE_NULL;
}

/* The plan of a signal, finished; NULL: error has the mistake. */
static struct ottl_plan *make_plan(const struct filter_config *config,
                                   const struct component *component, enum signal_kind signal,
                                   struct error *error)
{
    enum ottl_error_mode mode;
    struct ottl_plan *plan = ottl_plan_create(signal, OTTL_FOR_FILTER);
    const struct filter_source source = source_of(config, signal);
    if (!statement_error_mode(config->error_mode, component, GATE_FILTER_IGNORES, &mode, error) ||
        !add_source(plan, &source, mode, error)) {
        ottl_plan_destroy(plan);
        return NULL;
    }
    ottl_plan_finish(plan);
    return plan;
}

/* ---- Properties ---- */

/* What to include and exclude of a signal, and what it cannot stand beside. */
struct filter_properties {
    const char *key;
    bool has_include;
    bool has_exclude;
    const void *include; /* the configuration of the signal */
    const void *exclude;
};

static struct filter_properties properties_of(const struct filter_config *config,
                                              enum signal_kind signal)
{
    const struct filter_spans_config *spans = &config->spans;
    const struct filter_metrics_config *metrics = &config->metrics;
    const struct filter_logs_config *logs = &config->logs;
    if (signal == TRACES)
        return (struct filter_properties){"spans", spans->has_include, spans->has_exclude,
                                          &spans->include, &spans->exclude};
    if (signal == METRICS)
        return (struct filter_properties){"metrics", metrics->has_include, metrics->has_exclude,
                                          &metrics->include, &metrics->exclude};
    return (struct filter_properties){"logs", logs->has_include, logs->has_exclude, &logs->include,
                                      &logs->exclude};
}

static bool check_alone(const struct filter_config *config, enum signal_kind signal,
                        struct error *error)
{
    static const char *const messages[] = {
        [TRACES] = "cannot use \"traces.resource\", \"traces.span\", \"traces.spanevent\" and the "
                   "span settings \"spans.include\", \"spans.exclude\" at the same time",
        [METRICS] =
            "cannot use \"metrics.resource\", \"metrics.metric\", \"metrics.datapoint\" and "
            "the settings \"metrics.include\", \"metrics.exclude\" at the same time",
        [LOGS] = "cannot use \"logs.resource\", \"logs.log\" and the settings \"logs.include\", "
                 "\"logs.exclude\" at the same time",
    };
    const struct filter_properties properties = properties_of(config, signal);
    const struct filter_source source = source_of(config, signal);
    const char *key = properties.has_include ? "include" : "exclude";
    if (!properties.has_include && !properties.has_exclude)
        return true;
    for (size_t i = 0; source.contexts[i].texts != NULL; i++)
        if (source.contexts[i].texts->texts != NULL)
            return error_set(error, "%s", messages[signal]) || error_at(error, key) ||
                   error_at(error, properties.key);
    if (signal != TRACES && is_given(source.list))
        return error_set(error, "cannot be used together with %s::%s; move those conditions here",
                         properties.key, key) ||
               error_at(error, source.list_key);
    return true;
}

static bool compile_properties(enum signal_kind signal, const void *config,
                               struct record_matcher **ret_matcher, struct error *error)
{
    return signal == TRACES    ? span_filter_compile(config, ret_matcher, error)
           : signal == METRICS ? metric_filter_compile(config, ret_matcher, error)
                               : log_filter_compile(config, ret_matcher, error);
}

/* What of the Go collector's expressions this build lacks is found with the configuration, so that
 * --skip-unsupported knows of it; other mistakes in properties when they are used. */
static bool check_supported(const struct metric_filter_config *config, struct error *error)
{
    struct record_matcher *matcher = NULL;
    const bool is_supported =
        metric_filter_compile(config, &matcher, error) || !error->is_unsupported;
    record_matcher_destroy(matcher);
    return is_supported;
}

static bool check_expressions(const struct filter_metrics_config *config, struct error *error)
{
    if (config->has_include && !check_supported(&config->include, error))
        return error_at(error, "include") || error_at(error, "metrics");
    if (config->has_exclude && !check_supported(&config->exclude, error))
        return error_at(error, "exclude") || error_at(error, "metrics");
    return true;
}

static bool filter_check(const void *section, struct error *error)
{
    const struct filter_config *config = section;
    static const enum signal_kind signals[] = {TRACES, METRICS, LOGS, PROFILES};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        if (!check_alone(config, signals[i], error))
            return false;
        struct ottl_plan *plan = make_plan(config, NULL, signals[i], error);
        if (plan == NULL)
            return false;
        ottl_plan_destroy(plan);
    }
    return check_expressions(&config->metrics, error);
}

extern const struct component_factory filter_processor_factory;

/* One of the stages; which one, is_by_properties says. */
struct filter_processor {
    union {
        struct component base;
        struct statement_stage statements;
        struct record_stage records;
    } stage;
    bool is_by_properties;
    struct record_matcher *include; /* NULL: all */
    struct record_matcher *exclude; /* NULL: none */
    struct record_filter filters[EDIT_PLACES];
};

static struct filter_processor *filter_processor_of(struct component *component)
{
    assert(component->factory == &filter_processor_factory);
    return (struct filter_processor *)component;
}

static struct batch *run(void *filter, struct record_edit *edit, struct batch *batch)
{
    return record_filter_run(filter, edit, batch);
}

static void count_dropped(struct record_stage *stage, const struct batch *dropped)
{
    struct statement_stage_counters *counters = stage->stage.base.counters;
    counter_add(&counters->filtered[dropped->signal], dropped->items);
}

static const struct record_stage_ops by_properties = {.run = run, .dropped = count_dropped};

static bool filter_create(struct component *component, struct error *error)
{
    struct filter_processor *self = filter_processor_of(component);
    const struct filter_config *config = component->config;
    const enum signal_kind signal = component->signal;
    const struct filter_properties properties = properties_of(config, signal);
    struct ottl_plan *plan = make_plan(config, component, signal, error);
    if (plan == NULL)
        return false;
    /* As in Go, spans: does nothing beside trace_conditions. */
    bool has_conditions = plan->contexts != 0;
    if (!has_conditions && properties.has_include &&
        !compile_properties(signal, properties.include, &self->include, error)) {
        ottl_plan_destroy(plan);
        return error_at(error, "include") || error_at(error, properties.key);
    }
    if (!has_conditions && properties.has_exclude &&
        !compile_properties(signal, properties.exclude, &self->exclude, error)) {
        ottl_plan_destroy(plan);
        return error_at(error, "exclude") || error_at(error, properties.key);
    }
    if (self->include == NULL && self->exclude == NULL) {
        statement_stage_init(&self->stage.statements, &plan, 1, has_conditions,
                             "failed to eval condition");
        return true;
    }
    ottl_plan_destroy(plan);
    self->is_by_properties = true;
    for (size_t i = 0; i < EDIT_PLACES; i++)
        record_filter_init(&self->filters[i], signal, self->include, self->exclude,
                           component->budget);
    record_stage_init(&self->stage.records, &by_properties, &self->filters[EDIT_ON_LANE],
                      &self->filters[EDIT_ON_HELPER]);
    return true;
}

static void filter_destroy(struct component *component)
{
    struct filter_processor *self = filter_processor_of(component);
    if (self->is_by_properties)
        record_stage_fini(&self->stage.records);
    else
        statement_stage_destroy(component);
    for (size_t i = 0; self->is_by_properties && i < EDIT_PLACES; i++)
        record_filter_fini(&self->filters[i]);
    record_matcher_destroy(self->include);
    record_matcher_destroy(self->exclude);
}

static const struct counter_row filter_rows[] = {
    EDIT_STAGE_ROWS(FILTER_SIGNALS),
    {.name = "otelcol_processor_filter_spans_filtered",
     .help = "Number of spans dropped by the filter processor",
     .type = COUNTER_SUM,
     .offset = offsetof(struct statement_stage_counters, filtered[TRACES])},
    {.name = "otelcol_processor_filter_datapoints_filtered",
     .help = "Number of metric data points dropped by the filter processor",
     .type = COUNTER_SUM,
     .offset = offsetof(struct statement_stage_counters, filtered[METRICS])},
    {.name = "otelcol_processor_filter_logs_filtered",
     .help = "Number of logs dropped by the filter processor",
     .type = COUNTER_SUM,
     .offset = offsetof(struct statement_stage_counters, filtered[LOGS])},
    {.name = "otelcol_processor_filter_profiles_filtered",
     .help = "Number of profiles dropped by the filter processor",
     .type = COUNTER_SUM,
     .offset = offsetof(struct statement_stage_counters, filtered[PROFILES])},
    COUNTER_END,
};

const struct component_factory filter_processor_factory = {
    .type = "filter",
    .kind = PROCESSOR,
    .stability = "alpha",
    .signals = FILTER_SIGNALS,
    .instance_size = sizeof(struct filter_processor),
    .config_size = sizeof(struct filter_config),
    .fields = filter_fields,
    .counters_size = sizeof(struct statement_stage_counters),
    .counters = filter_rows,
    .check = filter_check,
    .create = filter_create,
    .consume = edit_stage_consume,
    .stop = edit_stage_stop,
    .destroy = filter_destroy,
};
