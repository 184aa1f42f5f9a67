/* SPDX-License-Identifier: Apache-2.0 */
/* groupbyattrs: moves attributes of spans, log records and data points to their resources, and puts
 * what has the same resource and scope together. Without keys it only does the latter. Runs on its
 * pipeline's lane and on the lane's helper. */
#include <assert.h>
#include <string.h>

#include "processors/shared/record_stage.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/records/group_by_attributes.h"

#define GROUP_SIGNALS (SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS)

struct groupbyattrs_config {
    struct config_texts keys;
};

static const struct config_field groupbyattrs_fields[] = {
    CONFIG_TEXTS(struct groupbyattrs_config, keys, "keys", NULL,
                 "The attributes that move from records to their resources. Without keys equal "
                 "resources and scopes are put together."),
    CONFIG_END,
};

struct groupbyattrs_counters {
    struct edit_stage_counters stage; /* first */
    counter grouped[SIGNAL_KINDS];
    counter not_grouped[SIGNAL_KINDS];
    struct histogram groups[SIGNAL_KINDS];
};

static const uint64_t bounds[] = {0,   5,   10,   25,   50,   75,   100,  250,
                                  500, 750, 1000, 2500, 5000, 7500, 10000};
#define PREFIX "otelcol_processor_groupbyattrs_"
#define COUNT_ROW(member, signal, metric, text)                                                    \
    {                                                                                              \
        .name = PREFIX metric, .help = (text), .type = COUNTER_SUM,                                \
        .offset = offsetof(struct groupbyattrs_counters, member[signal]),                          \
    }
#define GROUPS_ROW(signal, metric, text)                                                           \
    {                                                                                              \
        .name = PREFIX metric, .help = (text), .type = COUNTER_HISTOGRAM, .bounds = bounds,        \
        .bounds_count = sizeof(bounds) / sizeof(bounds[0]),                                        \
        .offset = offsetof(struct groupbyattrs_counters, groups[signal]),                          \
    }
static const struct counter_row groupbyattrs_counters[] = {
    EDIT_STAGE_ROWS(GROUP_SIGNALS),
    COUNT_ROW(grouped, TRACES, "num_grouped_spans", "Number of spans that had attributes grouped"),
    COUNT_ROW(not_grouped, TRACES, "num_non_grouped_spans",
              "Number of spans that did not have attributes grouped"),
    GROUPS_ROW(TRACES, "span_groups", "Distribution of groups extracted for spans"),
    COUNT_ROW(grouped, METRICS, "num_grouped_metrics",
              "Number of metrics that had attributes grouped"),
    COUNT_ROW(not_grouped, METRICS, "num_non_grouped_metrics",
              "Number of metrics that did not have attributes grouped"),
    GROUPS_ROW(METRICS, "metric_groups", "Distribution of groups extracted for metrics"),
    COUNT_ROW(grouped, LOGS, "num_grouped_logs", "Number of logs that had attributes grouped"),
    COUNT_ROW(not_grouped, LOGS, "num_non_grouped_logs",
              "Number of logs that did not have attributes grouped"),
    GROUPS_ROW(LOGS, "log_groups", "Distribution of groups extracted for logs"),
    COUNTER_END,
};

struct groupbyattrs {
    struct record_stage stage;
    struct slice *keys;
    bool has_groupers;
    struct attribute_grouper groupers[EDIT_PLACES];
};

extern const struct component_factory groupbyattrs_processor_factory;

static struct groupbyattrs *groupbyattrs_of(struct component *component)
{
    assert(component->factory == &groupbyattrs_processor_factory);
    return (struct groupbyattrs *)component;
}

static struct batch *run(void *editor, struct record_edit *edit, struct batch *batch)
{
    return attribute_grouper_run(editor, edit, batch);
}

static void report(const void *editor, uint64_t ret_figures[EDIT_FIGURES_MAX])
{
    const struct attribute_grouper *grouper = editor;
    static_assert(sizeof(grouper->figures) <= EDIT_FIGURES_MAX * sizeof(ret_figures[0]), "");
    memcpy(ret_figures, &grouper->figures, sizeof(grouper->figures));
}

static void count(struct record_stage *stage, const uint64_t reported[EDIT_FIGURES_MAX])
{
    struct group_figures figures;
    memcpy(&figures, reported, sizeof(figures));
    struct groupbyattrs_counters *counters = stage->stage.base.counters;
    enum signal_kind signal = stage->stage.base.signal;
    counter_add(&counters->grouped[signal], figures.grouped);
    counter_add(&counters->not_grouped[signal], figures.not_grouped);
    histogram_record(&counters->groups[signal], bounds, sizeof(bounds) / sizeof(bounds[0]),
                     figures.groups);
}

static const struct record_stage_ops stage_ops = {.run = run, .report = report, .done = count};

static bool groupbyattrs_create(struct component *component, struct error *error)
{
    struct groupbyattrs *self = groupbyattrs_of(component);
    const struct groupbyattrs_config *config = component->config;
    size_t keys_count = 0;
    (void)error;
    self->keys = mem_zalloc((config->keys.count + 1) * sizeof(self->keys[0]));
    for (size_t i = 0; i < config->keys.count; i++) {
        struct slice key = slice_of_text(config->keys.texts[i]);
        bool is_known = key.size == 0;
        for (size_t k = 0; k < keys_count; k++)
            is_known |= slice_equal(self->keys[k], key);
        if (!is_known)
            self->keys[keys_count++] = key;
    }
    for (size_t i = 0; i < EDIT_PLACES; i++)
        attribute_grouper_init(&self->groupers[i], self->keys, keys_count, component->budget);
    self->has_groupers = true;
    record_stage_init(&self->stage, &stage_ops, &self->groupers[EDIT_ON_LANE],
                      &self->groupers[EDIT_ON_HELPER]);
    return true;
}

static void groupbyattrs_destroy(struct component *component)
{
    struct groupbyattrs *self = groupbyattrs_of(component);
    record_stage_fini(&self->stage);
    for (size_t i = 0; self->has_groupers && i < EDIT_PLACES; i++)
        attribute_grouper_fini(&self->groupers[i]);
    mem_free(self->keys);
}

const struct component_factory groupbyattrs_processor_factory = {
    .type = "groupbyattrs",
    .kind = PROCESSOR,
    .stability = "beta",
    .signals = GROUP_SIGNALS,
    .instance_size = sizeof(struct groupbyattrs),
    .config_size = sizeof(struct groupbyattrs_config),
    .fields = groupbyattrs_fields,
    .counters_size = sizeof(struct groupbyattrs_counters),
    .counters = groupbyattrs_counters,
    .create = groupbyattrs_create,
    .consume = edit_stage_consume,
    .stop = edit_stage_stop,
    .destroy = groupbyattrs_destroy,
};
