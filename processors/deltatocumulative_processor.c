/* SPDX-License-Identifier: Apache-2.0 */
/* deltatocumulative: sums and histograms of deltas become cumulative. What is remembered of streams
 * is shared by all lanes: the points of one may come to any of them. Runs on its pipeline's lane
 * and on the lane's helper; lane 0 removes stale streams. */
#include <assert.h>
#include <string.h>

#include "processors/shared/record_stage.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/config/field.h"
#include "src/records/delta_to_cumulative.h"

struct deltatocumulative_config {
    uint64_t max_stale_ns;
    int64_t max_streams;
};

static const struct config_field deltatocumulative_fields[] = {
    CONFIG_DURATION_OR_NEGATIVE(struct deltatocumulative_config, max_stale_ns, "max_stale", "5m",
                                "Streams without points for this long are forgotten."),
    CONFIG_INT(struct deltatocumulative_config, max_streams, "max_streams", "9223372036854775807",
               INT64_MIN, INT64_MAX,
               "Streams of this processor; points of further ones are dropped."),
    CONFIG_END,
};

struct deltatocumulative_counters {
    struct edit_stage_counters stage; /* first */
    counter points[SUM_LOSSES];
    counter streams;
    counter streams_max;
    counter stale_s;
};

#define PREFIX "otelcol_deltatocumulative_"
#define POINTS_TEXT                                                                                \
    "total number of datapoints processed. may have 'error' attribute, if processing failed"
#define LOST_ROW(loss, text)                                                                       \
    {                                                                                              \
        .name = PREFIX "datapoints", .type = COUNTER_SUM, .help = POINTS_TEXT,                     \
        .offset = offsetof(struct deltatocumulative_counters, points[loss]), .label = "error",     \
        .label_value = (text),                                                                     \
    }
static const struct counter_row deltatocumulative_counters[] = {
    EDIT_STAGE_ROWS(SIGNAL_METRICS),
    {
        .name = PREFIX "datapoints",
        .type = COUNTER_SUM,
        .help = POINTS_TEXT,
        .offset = offsetof(struct deltatocumulative_counters, points[SUM_NOT_LOST]),
    },
    LOST_ROW(SUM_LOST_LIMIT, "limit"),
    LOST_ROW(SUM_LOST_OLDER, "delta.ErrOlderStart"),
    LOST_ROW(SUM_LOST_ORDER, "delta.ErrOutOfOrder"),
    COUNTER(struct deltatocumulative_counters, streams, COUNTER_GAUGE, PREFIX "streams_tracked",
            "number of streams tracked"),
    COUNTER(struct deltatocumulative_counters, streams_max, COUNTER_GAUGE, PREFIX "streams_limit",
            "upper limit of tracked streams"),
    COUNTER(struct deltatocumulative_counters, stale_s, COUNTER_GAUGE, PREFIX "streams_max_stale",
            "duration after which streams inactive streams are dropped"),
    COUNTER_END,
};

struct deltatocumulative {
    struct record_stage stage;
    bool has_editors;
    struct sum_editor editors[EDIT_PLACES];
    struct timer sweep; /* lane 0 */
    unsigned shard;     /* the next to be swept */
    uint64_t stale_before_ns;
};

/* Go looks once a minute. */
#define SWEEP_NS (60 * (uint64_t)NS_PER_S)

extern const struct component_factory deltatocumulative_processor_factory;

static struct deltatocumulative *deltatocumulative_of(struct component *component)
{
    assert(component->factory == &deltatocumulative_processor_factory);
    return (struct deltatocumulative *)component;
}

static bool deltatocumulative_check(const void *section, struct error *error)
{
    const struct deltatocumulative_config *config = section;
    if (config->max_stale_ns == 0)
        return error_set(error, "max_stale must be a positive duration (got 0s)") ||
               error_at(error, "max_stale");
    if (config->max_streams < 0)
        return error_set(error, "max_streams must be a positive number (got %lld)",
                         (long long)config->max_streams) ||
               error_at(error, "max_streams");
    return true;
}

static void *deltatocumulative_share(const struct component *first, unsigned lanes,
                                     struct error *error)
{
    const struct deltatocumulative_config *config = first->config;
    (void)lanes;
    (void)error;
    return sum_table_create((uint64_t)config->max_streams, first->budget);
}

static void deltatocumulative_unshare(void *shared)
{
    stream_table_destroy(shared);
}

static struct batch *run(void *editor, struct record_edit *edit, struct batch *batch)
{
    return sum_editor_run(editor, edit, batch);
}

static void report(const void *arg, uint64_t ret_figures[EDIT_FIGURES_MAX])
{
    const struct sum_editor *editor = arg;
    static_assert(sizeof(editor->points) <= EDIT_FIGURES_MAX * sizeof(ret_figures[0]), "");
    memcpy(ret_figures, editor->points, sizeof(editor->points));
}

static void count(struct record_stage *stage, const uint64_t points[EDIT_FIGURES_MAX])
{
    struct deltatocumulative_counters *counters = stage->stage.base.counters;
    for (size_t i = 0; i < SUM_LOSSES; i++)
        counter_add(&counters->points[i], points[i]);
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
    struct deltatocumulative *self = arg;
    struct component *component = &self->stage.stage.base;
    const struct deltatocumulative_config *config = component->config;
    struct deltatocumulative_counters *counters = component->counters;
    if (self->shard == 0) {
        uint64_t now_ns = clock_now_ns();
        self->stale_before_ns = now_ns > config->max_stale_ns ? now_ns - config->max_stale_ns : 0;
    }
    sum_table_sweep(component->shared, self->shard, self->stale_before_ns);
    counter_set(&counters->streams, stream_table_count(component->shared));
    self->shard = (self->shard + 1) % STREAM_SHARDS;
    lane_timer_start(component->lane, timer, self->shard == 0 ? SWEEP_NS : NS_PER_MS);
}

static const struct record_stage_ops stage_ops = {
    .run = run, .report = report, .done = count, .stopped = leave};

static bool deltatocumulative_create(struct component *component, struct error *error)
{
    struct deltatocumulative *self = deltatocumulative_of(component);
    (void)error;
    timer_init(&self->sweep, on_sweep, self);
    for (size_t i = 0; i < EDIT_PLACES; i++)
        sum_editor_init(&self->editors[i], component->shared, component->budget);
    self->has_editors = true;
    record_stage_init(&self->stage, &stage_ops, &self->editors[EDIT_ON_LANE],
                      &self->editors[EDIT_ON_HELPER]);
    return true;
}

static bool deltatocumulative_start(struct component *component, struct error *error)
{
    struct deltatocumulative *self = deltatocumulative_of(component);
    const struct deltatocumulative_config *config = component->config;
    struct deltatocumulative_counters *counters = component->counters;
    (void)error;
    stream_table_join(component->shared);
    for (size_t i = 0; i < EDIT_PLACES; i++)
        self->editors[i].stream.owner = (uint64_t)(uintptr_t)component->first;
    if (component->first != component)
        return true;
    counter_set(&counters->streams_max, (uint64_t)config->max_streams);
    counter_set(&counters->stale_s, config->max_stale_ns / NS_PER_S);
    lane_timer_start(component->lane, &self->sweep, SWEEP_NS);
    return true;
}

static void deltatocumulative_stop(struct component *component)
{
    lane_timer_stop(component->lane, &deltatocumulative_of(component)->sweep);
    edit_stage_stop(component);
}

static void deltatocumulative_destroy(struct component *component)
{
    struct deltatocumulative *self = deltatocumulative_of(component);
    record_stage_fini(&self->stage);
    for (size_t i = 0; self->has_editors && i < EDIT_PLACES; i++)
        sum_editor_fini(&self->editors[i]);
}

const struct component_factory deltatocumulative_processor_factory = {
    .type = "deltatocumulative",
    .later_name = "delta_to_cumulative",
    .kind = PROCESSOR,
    .stability = "alpha",
    .signals = SIGNAL_METRICS,
    .instance_size = sizeof(struct deltatocumulative),
    .config_size = sizeof(struct deltatocumulative_config),
    .fields = deltatocumulative_fields,
    .counters_size = sizeof(struct deltatocumulative_counters),
    .counters = deltatocumulative_counters,
    .check = deltatocumulative_check,
    .share = deltatocumulative_share,
    .unshare = deltatocumulative_unshare,
    .create = deltatocumulative_create,
    .start = deltatocumulative_start,
    .consume = edit_stage_consume,
    .stop = deltatocumulative_stop,
    .destroy = deltatocumulative_destroy,
};
