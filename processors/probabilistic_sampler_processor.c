/* SPDX-License-Identifier: Apache-2.0 */
/* probabilistic_sampler: keeps a percentage of traces or log records, by their trace ids. Runs on
 * its pipeline's lane and on the lane's helper. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "processors/shared/record_stage.h"
#include "src/base/error.h"
#include "src/config/field.h"
#include "src/records/record_sampler.h"
#include "src/records/trace_state.h"

#define SAMPLER_SIGNALS (SIGNAL_TRACES | SIGNAL_LOGS)

struct sampler_config {
    double sampling_percentage;
    uint64_t hash_seed;
    int mode; /* index into mode_names */
    bool fail_closed;
    int64_t sampling_precision;
    const char *attribute_source;
    const char *from_attribute;
    const char *sampling_priority;
};

static const char *const mode_names[] = {"", "hash_seed", "equalizing", "proportional", NULL};
static const enum sampling_mode modes[] = {SAMPLING_HASH_SEED, SAMPLING_HASH_SEED,
                                           SAMPLING_EQUALIZING, SAMPLING_PROPORTIONAL};

static const struct config_field sampler_fields[] = {
    CONFIG_DOUBLE(struct sampler_config, sampling_percentage, "sampling_percentage", "0",
                  "How much is kept, in percent; 100 and more: all, 0: nothing."),
    CONFIG_COUNT(struct sampler_config, hash_seed, "hash_seed", "0", 0, UINT32_MAX,
                 "mode hash_seed: collectors with the same seed keep the same traces."),
    CONFIG_CHOICE(
        struct sampler_config, mode, "mode", NULL, mode_names,
        "hash_seed (the default: a hash of the trace id or of from_attribute), equalizing "
        "(at most the percentage of what there was in the beginning) or proportional (the "
        "percentage of what arrives). The latter two take randomness from the trace id or "
        "ot=rv, and what was sampled before from ot=th."),
    CONFIG_BOOL(struct sampler_config, fail_closed, "fail_closed", "true",
                "Whether records without randomness, or with a broken or contradictory tracestate, "
                "are dropped."),
    CONFIG_INT(struct sampler_config, sampling_precision, "sampling_precision", "4", INT32_MIN,
               INT32_MAX, "Hexadecimal digits of the threshold, 1 to 14."),
    CONFIG_TEXT(struct sampler_config, attribute_source, "attribute_source", "traceID",
                "Log records, mode hash_seed: what is hashed; traceID (from_attribute where there "
                "is none) or record (from_attribute)."),
    CONFIG_TEXT(struct sampler_config, from_attribute, "from_attribute", "",
                "Log records, mode hash_seed: the attribute that is hashed."),
    CONFIG_TEXT(struct sampler_config, sampling_priority, "sampling_priority", "",
                "Log records: the attribute with the record's own percentage."),
    CONFIG_END,
};

struct sampler_counters {
    struct edit_stage_counters stage; /* first */
    counter spans[SAMPLING_POLICIES][2];
    counter log_records[SAMPLING_POLICIES][2];
};

#define SAMPLED_ROW(member, metric, of_policy, policy_name, is_kept, text)                         \
    {                                                                                              \
        .name = (metric), .help = (text), .type = COUNTER_SUM,                                     \
        .offset = offsetof(struct sampler_counters, member[of_policy][is_kept]),                   \
        .label = "policy", .label_value = (policy_name), .second_label = "sampled",                \
        .second_value = (is_kept) ? "true" : "false",                                              \
    }
#define SAMPLED_ROWS(member, metric, text)                                                         \
    SAMPLED_ROW(member, metric, SAMPLED_BY_TRACE_ID_HASH, "trace_id_hash", 0, text),               \
        SAMPLED_ROW(member, metric, SAMPLED_BY_TRACE_ID_HASH, "trace_id_hash", 1, text),           \
        SAMPLED_ROW(member, metric, SAMPLED_BY_TRACE_ID, "trace_id_w3c", 0, text),                 \
        SAMPLED_ROW(member, metric, SAMPLED_BY_TRACE_ID, "trace_id_w3c", 1, text),                 \
        SAMPLED_ROW(member, metric, SAMPLED_BY_RANDOMNESS, "sampling_randomness", 0, text),        \
        SAMPLED_ROW(member, metric, SAMPLED_BY_RANDOMNESS, "sampling_randomness", 1, text),        \
        SAMPLED_ROW(member, metric, SAMPLED_BY_PRIORITY, "sampling_priority", 0, text),            \
        SAMPLED_ROW(member, metric, SAMPLED_BY_PRIORITY, "sampling_priority", 1, text),            \
        SAMPLED_ROW(member, metric, SAMPLED_BY_ATTRIBUTE, "from_attribute", 0, text),              \
        SAMPLED_ROW(member, metric, SAMPLED_BY_ATTRIBUTE, "from_attribute", 1, text),              \
        SAMPLED_ROW(member, metric, SAMPLED_WITHOUT_RANDOMNESS, "missing_randomness", 0, text),    \
        SAMPLED_ROW(member, metric, SAMPLED_WITHOUT_RANDOMNESS, "missing_randomness", 1, text)

static const struct counter_row sampler_counters[] = {
    EDIT_STAGE_ROWS(SAMPLER_SIGNALS),
    SAMPLED_ROWS(spans, "otelcol_processor_probabilistic_sampler_count_traces_sampled",
                 "Count of traces that were sampled or not"),
    SAMPLED_ROWS(log_records, "otelcol_processor_probabilistic_sampler_count_logs_sampled",
                 "Count of logs that were sampled or not"),
    COUNTER_END,
};

struct probabilistic_sampler {
    struct record_stage stage;
    bool has_samplers;
    struct record_sampler samplers[EDIT_PLACES];
};

extern const struct component_factory probabilistic_sampler_processor_factory;

static struct probabilistic_sampler *probabilistic_sampler_of(struct component *component)
{
    assert(component->factory == &probabilistic_sampler_processor_factory);
    return (struct probabilistic_sampler *)component;
}

static bool sampler_check(const void *section, struct error *error)
{
    const struct sampler_config *config = section;
    /* The Go collector keeps it in single precision. */
    double percentage = (double)(float)config->sampling_percentage;
    if (!isfinite(percentage))
        return error_set(error, "sampling rate is invalid: %f%%", percentage) ||
               error_at(error, "sampling_percentage");
    if (percentage < 0)
        return error_set(error, "sampling rate is negative: %f%%", percentage) ||
               error_at(error, "sampling_percentage");
    if (percentage != 0 && percentage / 100 < SAMPLING_RATIO_MIN)
        return error_set(error, "sampling rate is too small: %g%%", percentage) ||
               error_at(error, "sampling_percentage");
    if (config->attribute_source[0] != '\0' && strcmp(config->attribute_source, "traceID") != 0 &&
        strcmp(config->attribute_source, "record") != 0)
        return error_set(error, "invalid attribute source: %s. Expected: traceID or record",
                         config->attribute_source) ||
               error_at(error, "attribute_source");
    if (config->sampling_precision == 0)
        return error_set(error, "invalid sampling precision: 0") ||
               error_at(error, "sampling_precision");
    if (config->sampling_precision > SAMPLING_DIGITS)
        return error_set(error, "sampling precision is too great, should be <= 14: %lld",
                         (long long)config->sampling_precision) ||
               error_at(error, "sampling_precision");
    return true;
}

static struct batch *run(void *editor, struct record_edit *edit, struct batch *batch)
{
    return record_sampler_run(editor, edit, batch);
}

static void report(const void *editor, uint64_t ret_figures[EDIT_FIGURES_MAX])
{
    const struct record_sampler *sampler = editor;
    static_assert(sizeof(sampler->counts) <= EDIT_FIGURES_MAX * sizeof(ret_figures[0]), "");
    memcpy(ret_figures, sampler->counts, sizeof(sampler->counts));
}

static void count(struct record_stage *stage, const uint64_t reported[EDIT_FIGURES_MAX])
{
    uint64_t counts[SAMPLING_POLICIES][2];
    memcpy(counts, reported, sizeof(counts));
    struct sampler_counters *counters = stage->stage.base.counters;
    for (unsigned policy = 0; policy < SAMPLING_POLICIES; policy++)
        for (unsigned is_kept = 0; is_kept < 2; is_kept++)
            counter_add(stage->stage.base.signal == TRACES
                            ? &counters->spans[policy][is_kept]
                            : &counters->log_records[policy][is_kept],
                        counts[policy][is_kept]);
}

static const struct record_stage_ops stage_ops = {.run = run, .report = report, .done = count};

static bool sampler_create(struct component *component, struct error *error)
{
    struct probabilistic_sampler *self = probabilistic_sampler_of(component);
    const struct sampler_config *config = component->config;
    const struct record_sampler_settings settings = {
        .percentage = (float)config->sampling_percentage,
        .mode = modes[config->mode],
        .hash_seed = (uint32_t)config->hash_seed,
        .precision = config->sampling_precision,
        .fails_closed = config->fail_closed,
        .uses_trace_id = strcmp(config->attribute_source, "traceID") == 0,
        .from_attribute = slice_of_text(config->from_attribute),
        .priority = slice_of_text(config->sampling_priority),
    };
    (void)error;
    for (size_t i = 0; i < EDIT_PLACES; i++)
        record_sampler_init(&self->samplers[i], &settings, component->budget);
    self->has_samplers = true;
    record_stage_init(&self->stage, &stage_ops, &self->samplers[EDIT_ON_LANE],
                      &self->samplers[EDIT_ON_HELPER]);
    return true;
}

static void sampler_destroy(struct component *component)
{
    struct probabilistic_sampler *self = probabilistic_sampler_of(component);
    record_stage_fini(&self->stage);
    for (size_t i = 0; self->has_samplers && i < EDIT_PLACES; i++)
        record_sampler_fini(&self->samplers[i]);
}

const struct component_factory probabilistic_sampler_processor_factory = {
    .type = "probabilistic_sampler",
    .kind = PROCESSOR,
    .stability = "beta",
    .signals = SAMPLER_SIGNALS,
    .instance_size = sizeof(struct probabilistic_sampler),
    .config_size = sizeof(struct sampler_config),
    .fields = sampler_fields,
    .counters_size = sizeof(struct sampler_counters),
    .counters = sampler_counters,
    .check = sampler_check,
    .create = sampler_create,
    .consume = edit_stage_consume,
    .stop = edit_stage_stop,
    .destroy = sampler_destroy,
};
