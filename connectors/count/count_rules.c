/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions become one plan for the signal, and attributes slots in it. */
#include "connectors/count/count_rules.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/otlp/value.h"

static const struct config_field key_fields[] = {
    CONFIG_TEXT(struct count_key_config, name, "key", NULL,
                "The attribute: of the record, else of its scope, else of its resource."),
    CONFIG_VALUE(struct count_key_config, standard, "default_value",
                 "Its value where it is absent; without it such records are not counted."),
    CONFIG_END,
};

static const struct config_field metric_fields[] = {
    CONFIG_TEXT(struct count_metric_config, description, "description", NULL,
                "The metric's description."),
    CONFIG_TEXTS(struct count_metric_config, conditions, "conditions", NULL,
                 "OTTL conditions: what any of them holds for is counted. None: everything."),
    CONFIG_SECTIONS(struct count_metric_config, attributes, struct count_key_config, "attributes",
                    key_fields, NULL,
                    "Attributes of the metric: a count for each combination of values."),
    CONFIG_END,
};

#define KIND_ROW(kind, key, standard, text)                                                        \
    CONFIG_SECTION_MAP(struct count_config, metrics[kind], struct count_metric_config, key,        \
                       standard, metric_fields, text)

const struct config_field count_fields[] = {
    KIND_ROW(COUNT_SPANS, "spans",
             "{trace.span.count: {description: The number of spans observed.}}",
             "Metrics that count spans, by name."),
    KIND_ROW(COUNT_SPAN_EVENTS, "spanevents",
             "{trace.span.event.count: {description: The number of span events observed.}}",
             "Metrics that count events of spans."),
    KIND_ROW(COUNT_METRICS, "metrics",
             "{metric.count: {description: The number of metrics observed.}}",
             "Metrics that count metrics; they have no attributes."),
    KIND_ROW(COUNT_DATA_POINTS, "datapoints",
             "{metric.datapoint.count: {description: The number of data points observed.}}",
             "Metrics that count data points."),
    KIND_ROW(COUNT_LOGS, "logs",
             "{log.record.count: {description: The number of log records observed.}}",
             "Metrics that count log records."),
    KIND_ROW(COUNT_PROFILES, "profiles",
             "{profile.count: {description: The number of profiles observed.}}",
             "Metrics that count profiles."),
    CONFIG_END,
};

static const struct {
    const char *key;
    enum signal_kind signal;
    enum ottl_context context;
} kinds[COUNT_KINDS] = {
    [COUNT_SPANS] = {"spans", TRACES, OTTL_SPAN},
    [COUNT_SPAN_EVENTS] = {"spanevents", TRACES, OTTL_SPAN_EVENT},
    [COUNT_METRICS] = {"metrics", METRICS, OTTL_METRIC},
    [COUNT_DATA_POINTS] = {"datapoints", METRICS, OTTL_DATA_POINT},
    [COUNT_LOGS] = {"logs", LOGS, OTTL_LOG},
    [COUNT_PROFILES] = {"profiles", PROFILES, OTTL_PROFILE},
};

static bool read_keys(struct count_rules *rules, struct count_rule *rule,
                      const struct count_metric_config *config, struct error *error)
{
    const struct count_key_config *keys = config->attributes.items;
    if (config->attributes.count > 0 && rule->context == OTTL_METRIC)
        return error_set(error,
                         "metrics attributes not supported: metric \"%s\"; count its data "
                         "points, by datapoints",
                         config->name) ||
               error_at(error, "attributes");
    rule->keys = mem_zalloc((config->attributes.count + 1) * sizeof(*rule->keys));
    for (size_t i = 0; i < config->attributes.count; i++) {
        struct count_key *key = &rule->keys[rule->keys_count++];
        const struct config_value *standard = keys[i].standard;
        key->name = slice_of_text(keys[i].name);
        key->has_standard = standard != NULL && standard->type != CONFIG_VALUE_NULL;
        if (key->has_standard)
            key->standard = value_from_config(standard);
        if (key->name.size == 0)
            return error_set(error, "attribute key missing") || error_at(error, "key") ||
                   error_at_index(error, i) || error_at(error, "attributes");
        for (size_t k = 0; k < i; k++)
            rule->is_never |= slice_equal(rule->keys[k].name, key->name);
        key->slots[COUNT_OF_RECORD] = ottl_plan_slot(rules->plan, rule->context, key->name);
        key->slots[COUNT_OF_SCOPE] = ottl_plan_slot(rules->plan, OTTL_SCOPE, key->name);
        key->slots[COUNT_OF_RESOURCE] = ottl_plan_slot(rules->plan, OTTL_RESOURCE, key->name);
        key->place = (uint32_t)rules->keys_count++;
    }
    return true;
}

static bool add_rule(struct count_rules *rules, enum ottl_context context,
                     const struct count_metric_config *config, struct error *error)
{
    struct count_rule *rule = &rules->rules[rules->count++];
    *rule = (struct count_rule){
        .name = slice_of_text(config->name),
        .description = slice_of_text(config->description),
        .context = context,
    };
    if (config->name[0] == '\0')
        return error_set(error, "metric name missing");
    const struct ottl_group group = {
        .context = context,
        .paths = OTTL_PATHS_OF_CONTEXT,
        .error_mode = OTTL_PROPAGATE,
        .conditions = config->conditions.texts,
        .conditions_count = config->conditions.count,
    };
    if (group.conditions_count > 0) {
        if (!ottl_plan_add(rules->plan, &group, false, error))
            return false;
        rule->conditions = rules->plan->sequences[context];
        while (rule->conditions->next != NULL)
            rule->conditions = rule->conditions->next;
    }
    return read_keys(rules, rule, config, error);
}

bool count_rules_init(struct count_rules *rules, const struct count_config *config,
                      enum signal_kind signal, struct error *error)
{
    size_t room = 1;
    for (size_t i = 0; i < COUNT_KINDS; i++)
        room += kinds[i].signal == signal ? config->metrics[i].count : 0;
    *rules = (struct count_rules){.plan = ottl_plan_create(signal, OTTL_FOR_FILTER)};
    rules->rules = mem_zalloc(room * sizeof(*rules->rules));
    for (size_t i = 0; i < COUNT_KINDS; i++) {
        const struct count_metric_config *metrics = config->metrics[i].items;
        if (kinds[i].signal != signal)
            continue;
        assert(rules->contexts_count < COUNT_KINDS_OF_SIGNAL);
        rules->first[rules->contexts_count] = rules->count;
        rules->contexts[rules->contexts_count++] = kinds[i].context;
        for (size_t k = 0; k < config->metrics[i].count; k++)
            if (!add_rule(rules, kinds[i].context, &metrics[k], error))
                return error_at(error, metrics[k].name) || error_at(error, kinds[i].key);
        ottl_plan_visit(rules->plan, kinds[i].context);
    }
    rules->first[rules->contexts_count] = rules->count;
    ottl_plan_finish(rules->plan);
    return true;
}

void count_rules_fini(struct count_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        for (size_t k = 0; k < rules->rules[i].keys_count; k++)
            mem_free((void *)(uintptr_t)rules->rules[i].keys[k].standard.data);
        mem_free(rules->rules[i].keys);
    }
    mem_free(rules->rules);
    ottl_plan_destroy(rules->plan);
    *rules = (struct count_rules){.plan = NULL};
}
