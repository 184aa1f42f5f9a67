/* SPDX-License-Identifier: Apache-2.0 */
/* cumulativetodelta: monotonic cumulative sums and histograms become deltas. What is remembered of
 * streams is shared by all lanes: the points of one may come to any of them. Runs on its pipeline's
 * lane and on the lane's helper; lane 0 removes stale streams. */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "processors/shared/record_stage.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/config/field.h"
#include "src/records/cumulative_to_delta.h"

struct match_cache_config {
    bool enabled;
    int64_t entries;
};

struct match_config {
    const char *match_type;
    bool has_cache;
    struct match_cache_config cache;
    struct config_texts metrics;
    struct config_texts metric_types;
};

struct cumulativetodelta_config {
    uint64_t max_staleness_ns;
    int initial_value; /* enum delta_initial */
    struct match_config include;
    struct match_config exclude;
};

static const struct config_field cache_fields[] = {
    CONFIG_UNUSED_BOOL(struct match_cache_config, enabled, "cacheenabled", "false",
                       "Nothing is cached: matching takes linear time."),
    CONFIG_UNUSED_INT(struct match_cache_config, entries, "cachemaxnumentries", "0", INT64_MIN,
                      INT64_MAX, "Nothing is cached."),
    CONFIG_END,
};

static const struct config_field match_fields[] = {
    CONFIG_TEXT(struct match_config, match_type, "match_type", "",
                "strict (equal names) or regexp (RE2, anywhere in the name)."),
    CONFIG_OPTIONAL(struct match_config, cache, struct match_cache_config, has_cache,
                    CONFIG_NULL_IS_OFF, "regexp", cache_fields, NULL,
                    "Options of match_type regexp, without effect."),
    CONFIG_TEXTS(struct match_config, metrics, "metrics", NULL, "Names of metrics."),
    CONFIG_TEXTS(struct match_config, metric_types, "metric_types", NULL,
                 "sum, histogram, exponentialhistogram; in any case."),
    CONFIG_END,
};

static const char *const initial_names[] = {"auto", "keep", "drop", NULL};

#define OWNER struct cumulativetodelta_config
static const struct config_field cumulativetodelta_fields[] = {
    CONFIG_DURATION_OR_NEGATIVE(OWNER, max_staleness_ns, "max_staleness", "1h",
                                "Streams whose last point is older are forgotten; 0: none are."),
    CONFIG_CHOICE(OWNER, initial_value, "initial_value", "auto", initial_names,
                  "The first point of a stream: auto (passed on if it began after this process), "
                  "keep or drop."),
    CONFIG_SECTION(OWNER, include, struct match_config, "include", match_fields, NULL,
                   "Only these metrics are converted."),
    CONFIG_SECTION(OWNER, exclude, struct match_config, "exclude", match_fields, NULL,
                   "These metrics are not converted."),
    CONFIG_END,
};

struct cumulativetodelta_counters {
    struct edit_stage_counters stage; /* first */
    counter converted[DELTA_TYPES];
    counter dropped[DELTA_TYPES][DELTA_LOSSES];
    counter streams;
};

#define PREFIX "otelcol_cumulativetodelta_"
#define CONVERTED_ROW(of_type, type_name)                                                          \
    {                                                                                              \
        .name = PREFIX "datapoints", .type = COUNTER_SUM,                                          \
        .help = "Number of datapoints converted from cumulative to delta temporality.",            \
        .offset = offsetof(struct cumulativetodelta_counters, converted[of_type]),                 \
        .label = "metric_type", .label_value = (type_name),                                        \
    }
#define DROPPED_ROW(of_type, type_name, loss, reason)                                              \
    {                                                                                              \
        .name = PREFIX "datapoints_dropped", .type = COUNTER_SUM,                                  \
        .help = "Number of datapoints dropped instead of being converted.",                        \
        .offset = offsetof(struct cumulativetodelta_counters, dropped[of_type][loss]),             \
        .label = "metric_type", .label_value = (type_name), .second_label = "reason",              \
        .second_value = (reason),                                                                  \
    }
#define DROPPED_ROWS(of_type, type_name)                                                           \
    DROPPED_ROW(of_type, type_name, DELTA_LOST_INITIAL, "initial"),                                \
        DROPPED_ROW(of_type, type_name, DELTA_LOST_RESET, "reset"),                                \
        DROPPED_ROW(of_type, type_name, DELTA_LOST_BUCKETS, "bucket_mismatch"),                    \
        DROPPED_ROW(of_type, type_name, DELTA_LOST_FULL, "limit")

static const struct counter_row cumulativetodelta_counters[] = {
    EDIT_STAGE_ROWS(SIGNAL_METRICS),
    CONVERTED_ROW(DELTA_SUM, "sum"),
    CONVERTED_ROW(DELTA_HISTOGRAM, "histogram"),
    CONVERTED_ROW(DELTA_EXPONENTIAL, "exponential_histogram"),
    DROPPED_ROWS(DELTA_SUM, "sum"),
    DROPPED_ROWS(DELTA_HISTOGRAM, "histogram"),
    DROPPED_ROWS(DELTA_EXPONENTIAL, "exponential_histogram"),
    COUNTER(struct cumulativetodelta_counters, streams, COUNTER_GAUGE, PREFIX "streams_tracked",
            "Number of metric streams currently tracked in memory for cumulative-to-delta "
            "conversion."),
    COUNTER_END,
};

struct cumulativetodelta {
    struct record_stage stage;
    bool has_editors;
    struct delta_match include;
    struct delta_match exclude;
    struct delta_editor editors[EDIT_PLACES];
    struct timer sweep; /* lane 0 */
    unsigned shard;     /* the next to be swept */
    uint64_t stale_before_ns;
};

extern const struct component_factory cumulativetodelta_processor_factory;

static struct cumulativetodelta *cumulativetodelta_of(struct component *component)
{
    assert(component->factory == &cumulativetodelta_processor_factory);
    return (struct cumulativetodelta *)component;
}

static const char *const type_names[DELTA_TYPES] = {"sum", "histogram", "exponentialhistogram"};

static bool check_types(const struct match_config *match, const char *key, struct error *error)
{
    for (size_t i = 0; i < match->metric_types.count; i++) {
        bool is_known = false;
        for (size_t k = 0; k < DELTA_TYPES; k++)
            is_known |= strcasecmp(match->metric_types.texts[i], type_names[k]) == 0;
        if (!is_known)
            return error_set(error,
                             "found invalid metric type in %s.metric_types: %s. Valid values are "
                             "[sum histogram exponentialhistogram]",
                             key, match->metric_types.texts[i]) ||
                   error_at_index(error, i) || error_at(error, "metric_types") ||
                   error_at(error, key);
    }
    return true;
}

static bool check_match(const struct match_config *match, const char *key, struct error *error)
{
    bool has_type = match->match_type[0] != '\0';
    if (match->metrics.count > 0 && !has_type)
        return error_set(error, "match_type must be set if metrics are supplied") ||
               error_at(error, "metrics") || error_at(error, key);
    if (match->metrics.count == 0 && has_type)
        return error_set(error, "metrics must be supplied if match_type is set") ||
               error_at(error, "match_type") || error_at(error, key);
    return true;
}

static bool cumulativetodelta_check(const void *section, struct error *error)
{
    const struct cumulativetodelta_config *config = section;
    return check_match(&config->include, "include", error) &&
           check_match(&config->exclude, "exclude", error) &&
           check_types(&config->exclude, "exclude", error) &&
           check_types(&config->include, "include", error);
}

static bool make_match(const struct match_config *config, const char *key,
                       struct delta_match *match, struct error *error)
{
    match->has_types = config->metric_types.count > 0;
    for (size_t i = 0; i < config->metric_types.count; i++)
        for (size_t k = 0; k < DELTA_TYPES; k++)
            match->types[k] |= strcasecmp(config->metric_types.texts[i], type_names[k]) == 0;
    bool is_regexp = strcmp(config->match_type, "regexp") == 0;
    /* As in Go: names with another type choose nothing. */
    if (!is_regexp && strcmp(config->match_type, "strict") != 0)
        return true;
    match->names = config->metrics.texts;
    if (!is_regexp) {
        match->names_count = config->metrics.count;
        return true;
    }
    match->patterns =
        (struct pattern **)mem_zalloc(config->metrics.count * sizeof(match->patterns[0]));
    for (size_t i = 0; i < config->metrics.count; i++) {
        match->patterns[i] = pattern_create(config->metrics.texts[i], error);
        if (match->patterns[i] == NULL)
            return error_at_index(error, i) || error_at(error, "metrics") || error_at(error, key);
        match->names_count++;
    }
    return true;
}

static void free_match(struct delta_match *match)
{
    for (size_t i = 0; match->patterns != NULL && i < match->names_count; i++)
        pattern_destroy(match->patterns[i]);
    mem_free((void *)match->patterns);
}

static void *cumulativetodelta_share(const struct component *first, unsigned lanes,
                                     struct error *error)
{
    (void)lanes;
    (void)error;
    return delta_table_create(first->budget);
}

static void cumulativetodelta_unshare(void *shared)
{
    stream_table_destroy(shared);
}

static struct batch *run(void *editor, struct record_edit *edit, struct batch *batch)
{
    return delta_editor_run(editor, edit, batch);
}

static void report(const void *arg, uint64_t ret_figures[EDIT_FIGURES_MAX])
{
    const struct delta_editor *editor = arg;
    static_assert(sizeof(editor->figures) <= EDIT_FIGURES_MAX * sizeof(ret_figures[0]), "");
    memcpy(ret_figures, &editor->figures, sizeof(editor->figures));
}

static void count(struct record_stage *stage, const uint64_t reported[EDIT_FIGURES_MAX])
{
    struct delta_figures figures;
    memcpy(&figures, reported, sizeof(figures));
    struct cumulativetodelta_counters *counters = stage->stage.base.counters;
    for (size_t type = 0; type < DELTA_TYPES; type++) {
        counter_add(&counters->converted[type], figures.converted[type]);
        for (size_t loss = 0; loss < DELTA_LOSSES; loss++)
            counter_add(&counters->dropped[type][loss], figures.dropped[type][loss]);
    }
    /* Lanes are summed: one of them shows it. */
    if (stage->stage.base.first == &stage->stage.base)
        counter_set(&counters->streams, stream_table_count(stage->stage.base.shared));
}

static void leave(struct record_stage *stage)
{
    stream_table_leave(stage->stage.base.shared);
}

/* One shard at a time, with others' work between. */
static void on_sweep(struct timer *timer, void *arg)
{
    struct cumulativetodelta *self = arg;
    struct component *component = &self->stage.stage.base;
    const struct cumulativetodelta_config *config = component->config;
    struct cumulativetodelta_counters *counters = component->counters;
    uint64_t delay_ns = NS_PER_MS;
    if (self->shard == 0) {
        uint64_t now_ns = clock_wall_ns();
        self->stale_before_ns =
            now_ns > config->max_staleness_ns ? now_ns - config->max_staleness_ns : 0;
    }
    delta_table_sweep(component->shared, self->shard, self->stale_before_ns);
    counter_set(&counters->streams, stream_table_count(component->shared));
    self->shard = (self->shard + 1) % STREAM_SHARDS;
    if (self->shard == 0)
        delay_ns = config->max_staleness_ns;
    lane_timer_start(component->lane, timer, delay_ns);
}

static const struct record_stage_ops stage_ops = {
    .run = run, .report = report, .done = count, .stopped = leave};

static bool cumulativetodelta_create(struct component *component, struct error *error)
{
    struct cumulativetodelta *self = cumulativetodelta_of(component);
    const struct cumulativetodelta_config *config = component->config;
    const struct delta_settings settings = {
        .initial = (enum delta_initial)config->initial_value,
        .started_ns = clock_wall_ns(),
        .include = &self->include,
        .exclude = &self->exclude,
    };
    timer_init(&self->sweep, on_sweep, self);
    if (!make_match(&config->include, "include", &self->include, error) ||
        !make_match(&config->exclude, "exclude", &self->exclude, error))
        return false;
    for (size_t i = 0; i < EDIT_PLACES; i++)
        delta_editor_init(&self->editors[i], &settings, component->shared, component->budget);
    self->has_editors = true;
    record_stage_init(&self->stage, &stage_ops, &self->editors[EDIT_ON_LANE],
                      &self->editors[EDIT_ON_HELPER]);
    return true;
}

static bool cumulativetodelta_start(struct component *component, struct error *error)
{
    struct cumulativetodelta *self = cumulativetodelta_of(component);
    const struct cumulativetodelta_config *config = component->config;
    (void)error;
    stream_table_join(component->shared);
    for (size_t i = 0; i < EDIT_PLACES; i++)
        self->editors[i].stream.owner = (uint64_t)(uintptr_t)component->first;
    if (component->first == component && config->max_staleness_ns > 0)
        lane_timer_start(component->lane, &self->sweep, config->max_staleness_ns);
    return true;
}

static void cumulativetodelta_stop(struct component *component)
{
    lane_timer_stop(component->lane, &cumulativetodelta_of(component)->sweep);
    edit_stage_stop(component);
}

static void cumulativetodelta_destroy(struct component *component)
{
    struct cumulativetodelta *self = cumulativetodelta_of(component);
    record_stage_fini(&self->stage);
    for (size_t i = 0; self->has_editors && i < EDIT_PLACES; i++)
        delta_editor_fini(&self->editors[i]);
    free_match(&self->include);
    free_match(&self->exclude);
}

const struct component_factory cumulativetodelta_processor_factory = {
    .type = "cumulativetodelta",
    .later_name = "cumulative_to_delta",
    .kind = PROCESSOR,
    .stability = "beta",
    .signals = SIGNAL_METRICS,
    .instance_size = sizeof(struct cumulativetodelta),
    .config_size = sizeof(struct cumulativetodelta_config),
    .fields = cumulativetodelta_fields,
    .counters_size = sizeof(struct cumulativetodelta_counters),
    .counters = cumulativetodelta_counters,
    .check = cumulativetodelta_check,
    .share = cumulativetodelta_share,
    .unshare = cumulativetodelta_unshare,
    .create = cumulativetodelta_create,
    .start = cumulativetodelta_start,
    .consume = edit_stage_consume,
    .stop = cumulativetodelta_stop,
    .destroy = cumulativetodelta_destroy,
};
