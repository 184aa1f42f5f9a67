/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the body of one scrape. Runs on the lane's helper. */
#include "receivers/prometheus/scrape_walk.h"

#include "receivers/prometheus/scraped_metrics.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/random.h"
#include "src/base/utf8.h"
#include "src/codec/codec.h"
#include "src/codec/codec_output.h"
#include "src/core/batch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    TARGET_CONFLICTS_MAX = 64,
    EXPORTED_TRIES_MAX = 8,
    NAME_BYTES_SHOWN = 50,
    SERIES_MORE_MAX = 1000
};
#define SCRAPE_BYTES_MAX (4096 * MIB) /* of one scrape's samples; the budget is the usual limit */

/* One scrape under way. */
struct walk_state {
    struct scrape_walk *walk;
    struct scraped_metrics metrics;
    struct series_set seen;
    uint64_t scraped;      /* samples in the body */
    uint64_t kept;         /* after relabeling */
    uint64_t series_added; /* that the last scrape did not have */
    uint64_t appended;     /* towards sample_limit */
    bool is_over_limit;
    bool has_failed; /* walk->failure says why */
};

void scrape_memory_init(struct scrape_memory *memory, struct budget *budget)
{
    *memory = (struct scrape_memory){.body = NULL};
    series_set_init(&memory->series, budget);
}

void scrape_memory_fini(struct scrape_memory *memory)
{
    series_set_fini(&memory->series);
    buffer_unref(memory->body);
    memory->body = NULL;
}

static bool fail(struct walk_state *state, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail(struct walk_state *state, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(state->walk->failure, sizeof(state->walk->failure), format, arguments);
    va_end(arguments);
    state->has_failed = true;
    return false;
}

static bool fail_for_memory(struct walk_state *state)
{
    return fail(state, "the memory budget has no room for its samples");
}

static uint64_t hash_series(struct slice series)
{
    return XXH3_64bits_withSeed(series.data, series.size, random_seed()) | 1;
}

static uint64_t hash_labels(const struct relabel_labels *labels)
{
    uint64_t hash = random_seed();
    for (size_t i = 0; i < labels->count; i++) {
        struct slice name = labels->labels[i].label.name;
        struct slice value = labels->labels[i].label.value;
        hash = XXH3_64bits_withSeed(name.data, name.size, hash);
        hash = XXH3_64bits_withSeed(value.data, value.size, hash);
    }
    return hash | 1;
}

/* Labels */

/* A label of the sample that the target has, too, stays as exported_<name>, or with as many
 * exported_ as it takes. */
static void export_label(struct relabel_labels *labels, struct slice name, struct slice value)
{
    static const char prefix[] = "exported_";
    char text[1024];
    if (name.size + EXPORTED_TRIES_MAX * strlen(prefix) > sizeof(text))
        return;
    size_t size = 0;
    for (int tries = 0; tries < EXPORTED_TRIES_MAX; tries++) {
        memcpy(text + size, prefix, strlen(prefix));
        size += strlen(prefix);
        memcpy(text + size, name.data, name.size);
        struct slice exported = slice_of(text, size + name.size);
        if (relabel_labels_get(labels, exported).size > 0)
            continue;
        relabel_labels_set(labels, relabel_labels_copy(labels, exported), value);
        return;
    }
}

/* The target's labels win. */
static void override_labels(const struct scrape_target *target, struct relabel_labels *labels)
{
    struct prometheus_label conflicts[TARGET_CONFLICTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < target->labels_count; i++) {
        const struct prometheus_label *own = &target->labels[i];
        struct slice value = relabel_labels_get(labels, own->name);
        if (value.size > 0 && count < TARGET_CONFLICTS_MAX) {
            /* Short names first. */
            size_t at = count++;
            for (; at > 0 && conflicts[at - 1].name.size > own->name.size; at--)
                conflicts[at] = conflicts[at - 1];
            conflicts[at] = (struct prometheus_label){.name = own->name, .value = value};
        }
        relabel_labels_set(labels, own->name, own->value);
    }
    for (size_t i = 0; i < count; i++)
        export_label(labels, conflicts[i].name, conflicts[i].value);
}

static bool has_label(const struct exposition_entry *entry, struct slice name)
{
    for (size_t i = 0; i < entry->labels_count; i++)
        if (slice_equal(entry->labels[i].name, name))
            return true;
    return slice_equal_text(name, "__name__");
}

/* Makes the labels of a sample. False: relabeling drops it. */
static bool make_labels(const struct scrape_walk *walk, const struct exposition_entry *entry)
{
    const struct scrape_target *target = walk->target;
    struct relabel_labels *labels = walk->labels;
    relabel_labels_reset(labels);
    relabel_labels_add(labels, slice_of_text("__name__"), entry->name);
    for (size_t i = 0; i < entry->labels_count; i++)
        relabel_labels_add(labels, entry->labels[i].name, entry->labels[i].value);
    if (!walk->job->config->honor_labels)
        override_labels(target, labels);
    else
        for (size_t i = 0; i < target->labels_count; i++)
            if (!has_label(entry, target->labels[i].name))
                relabel_labels_set(labels, target->labels[i].name, target->labels[i].value);
    return walk->job->metric_rules == NULL || relabel_rules_apply(walk->job->metric_rules, labels);
}

static void add_external_labels(const struct scrape_walk *walk)
{
    for (size_t i = 0; i < walk->external_labels->count; i++)
        relabel_labels_set(walk->labels, slice_of_text(walk->external_labels->pairs[i].key),
                           slice_of_text(walk->external_labels->pairs[i].value));
}

/* [a-zA-Z_][a-zA-Z0-9_]*, in names of metrics also ":". */
static bool is_legacy_name(struct slice name, bool is_metric)
{
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        bool is_letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (is_metric && c == ':');
        if (!is_letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return name.size > 0;
}

static bool is_valid_name(enum relabel_names names, struct slice name, bool is_metric)
{
    return names == RELABEL_NAMES_LEGACY ? is_legacy_name(name, is_metric)
                                         : name.size > 0 && utf8_is_valid(name);
}

static bool check_length(struct walk_state *state, const char *limit, struct slice metric,
                         struct slice text, uint64_t max)
{
    return max == 0 || text.size <= max ||
           fail(state, "%s exceeded (metric: %.*s, label: %.*s, length: %zu, limit: %llu)", limit,
                (int)(metric.size < NAME_BYTES_SHOWN ? metric.size : NAME_BYTES_SHOWN),
                (const char *)metric.data,
                (int)(text.size < NAME_BYTES_SHOWN ? text.size : NAME_BYTES_SHOWN),
                (const char *)text.data, text.size, (unsigned long long)max);
}

/* Whether the labels may be used; otherwise the whole scrape fails, as Prometheus has it. */
static bool check_labels(struct walk_state *state, const struct exposition_entry *entry)
{
    const struct scrape_settings *settings = &state->walk->job->settings;
    const struct scrape_limits_config *limits = &settings->limits;
    const struct relabel_labels *labels = state->walk->labels;
    struct slice metric = relabel_labels_get(labels, slice_of_text("__name__"));
    if (labels->has_overflowed)
        return fail(state, "line %zu: too many labels", entry->line);
    if (metric.size == 0)
        return fail(state, "line %zu: relabeling left a sample without a name (label __name__)",
                    entry->line);
    if (!is_valid_name(settings->names, metric, true))
        return fail(state, "line %zu: the metric's name is not valid", entry->line);
    if (limits->labels_max > 0 && labels->count > limits->labels_max)
        return fail(state, "label_limit exceeded (metric: %.*s, labels: %zu, limit: %llu)",
                    (int)(metric.size < NAME_BYTES_SHOWN ? metric.size : NAME_BYTES_SHOWN),
                    (const char *)metric.data, labels->count,
                    (unsigned long long)limits->labels_max);
    for (size_t i = 0; i < labels->count; i++) {
        const struct prometheus_label *label = &labels->labels[i].label;
        if (!is_valid_name(settings->names, label->name, false))
            return fail(state, "line %zu: a label's name is not valid", entry->line);
        if (!check_length(state, "label_name_length_limit", metric, label->name,
                          limits->label_name_bytes_max) ||
            !check_length(state, "label_value_length_limit", metric, label->value,
                          limits->label_value_bytes_max))
            return false;
    }
    return true;
}

/* Samples */

/* Adds a sample with the labels at hand. Returns their hash, or 0 when its end is not to be
 * marked. */
static uint64_t add_sample(struct walk_state *state, double value, int64_t time_ms,
                           const struct exposition_read_exemplar *exemplar)
{
    add_external_labels(state->walk);
    const struct scraped_sample sample = {
        .labels = state->walk->labels,
        .value = value,
        .time_ms = time_ms,
        .exemplar = exemplar,
    };
    enum scraped_result result = scraped_metrics_add(&state->metrics, &sample);
    return result == SCRAPED ? hash_labels(state->walk->labels) : 0;
}

static bool walk_sample(struct walk_state *state, const struct exposition_entry *entry)
{
    struct scrape_walk *walk = state->walk;
    const struct scrape_job_config *config = walk->job->config;
    const struct scrape_limits_config *limits = &walk->job->settings.limits;
    bool has_time = entry->has_timestamp && config->honor_timestamps;
    state->scraped++;
    if (!make_labels(walk, entry))
        return true;
    if (!check_labels(state, entry))
        return false;
    uint64_t written = hash_series(entry->series);
    struct series *series = series_set_find(&state->seen, written);
    if (series != NULL && !has_time) {
        walk->duplicates++;
        state->kept++;
        return true;
    }
    if (limits->samples_max > 0 && ++state->appended > limits->samples_max) {
        state->is_over_limit = true;
        state->kept++;
        return true;
    }
    if (walk->labels->has_duplicates)
        return fail(state, "line %zu: a sample has the same label twice", entry->line);
    state->kept++;
    uint64_t labels =
        add_sample(state, entry->value, has_time ? entry->timestamp_ms : walk->time_ms,
                   entry->has_exemplar ? &entry->exemplar : NULL);
    if (series == NULL) {
        state->series_added += series_set_find(&walk->memory->series, written) == NULL;
        series = series_set_add(&state->seen, written);
        if (series == NULL)
            return fail_for_memory(state);
    }
    if (!has_time || config->track_timestamps_staleness)
        series->labels = labels;
    return true;
}

static void walk_body(struct walk_state *state)
{
    struct scrape_walk *walk = state->walk;
    struct exposition_reader reader;
    struct exposition_entry entry;
    exposition_reader_init(&reader, walk->body, walk->protocol, walk->budget);
    while (!state->has_failed && exposition_reader_next(&reader, &entry)) {
        if (entry.kind == EXPOSITION_ENTRY_SAMPLE)
            walk_sample(state, &entry);
        else
            scraped_metrics_describe(&state->metrics, &entry);
    }
    if (reader.has_failed)
        fail(state, "line %zu: %s", reader.failure_line, reader.failure);
    else if (!state->has_failed && state->metrics.has_failed)
        fail_for_memory(state);
    else if (!state->has_failed && state->is_over_limit)
        fail(state, "sample_limit exceeded: more than %llu samples",
             (unsigned long long)walk->job->settings.limits.samples_max);
    exposition_reader_fini(&reader);
}

/* Series that ended */

/* Those of the last scrape that this one does not have; their mark is taken, so that it is set
 * once. */
static size_t find_ended(struct walk_state *state, struct series_set *ended)
{
    const struct series_set *former = &state->walk->memory->series;
    struct series_set labels; /* of this scrape's series; made when the first one is missing */
    bool has_labels = false;
    series_set_init(&labels, former->budget);
    for (size_t i = 0; i < former->capacity; i++) {
        const struct series *series = &former->entries[i];
        if (series->written == 0 || series->labels == 0 ||
            series_set_find(&state->seen, series->written) != NULL)
            continue;
        for (size_t k = 0; !has_labels && k < state->seen.capacity; k++) {
            uint64_t hash = state->seen.entries[k].labels;
            if (hash != 0 && series_set_find(&labels, hash) == NULL &&
                series_set_add(&labels, hash) == NULL)
                break;
        }
        has_labels = true;
        if (series_set_find(&labels, series->labels) == NULL &&
            series_set_find(ended, series->written) == NULL &&
            series_set_add(ended, series->written) == NULL)
            break;
    }
    series_set_fini(&labels);
    return ended->count;
}

static double stale_value(void)
{
    double stale;
    memcpy(&stale, &(uint64_t){EXPOSITION_STALE_BITS}, sizeof(stale));
    return stale;
}

/* Marks them: reads the last body again, which has their labels. */
static void mark_ended(struct walk_state *state)
{
    struct scrape_walk *walk = state->walk;
    struct scrape_memory *memory = walk->memory;
    struct series_set ended;
    struct buffer *body = NULL;
    series_set_init(&ended, walk->budget);
    if (memory->body == NULL || find_ended(state, &ended) == 0 ||
        codec_inflate(walk->codecs, CODEC_GZIP, buffer_slice(memory->body), memory->body_bytes,
                      &body) != CODEC_OK) {
        series_set_fini(&ended);
        return;
    }
    struct exposition_reader reader;
    struct exposition_entry entry;
    scraped_metrics_begin_former(&state->metrics);
    exposition_reader_init(&reader, buffer_slice(body), memory->protocol, walk->budget);
    while (exposition_reader_next(&reader, &entry)) {
        if (entry.kind != EXPOSITION_ENTRY_SAMPLE) {
            scraped_metrics_describe(&state->metrics, &entry);
            continue;
        }
        struct series *series = series_set_find(&ended, hash_series(entry.series));
        if (series == NULL || series->labels != 0 || !make_labels(walk, &entry))
            continue;
        series->labels = 1; /* once */
        add_sample(state, stale_value(), walk->time_ms, NULL);
    }
    exposition_reader_fini(&reader);
    buffer_unref(body);
    series_set_fini(&ended);
}

/* The memory */

static bool are_equal(const struct series_set *a, const struct series_set *b)
{
    bool is_equal = a->count == b->count;
    for (size_t i = 0; is_equal && i < a->capacity; i++) {
        const struct series *series = &a->entries[i];
        const struct series *other =
            series->written != 0 ? series_set_find(b, series->written) : series;
        is_equal = other != NULL && other->labels == series->labels;
    }
    return is_equal;
}

/* Keeps the body, which has the labels of its series should they end. It is compressed again only
 * if they are others. */
static void remember_body(struct walk_state *state)
{
    struct scrape_walk *walk = state->walk;
    struct scrape_memory *memory = walk->memory;
    const struct batch_part part = {.bytes = walk->body};
    const struct codec_input input = {.parts = &part, .parts_count = 1, .level = -1};
    struct buffer *body = NULL;
    if (codec_deflate(walk->codecs, CODEC_GZIP, &input, &body) != CODEC_OK)
        body = NULL; /* ends are not marked then */
    buffer_unref(memory->body);
    memory->body = body != NULL ? buffer_shrink(body) : NULL;
    memory->body_bytes = walk->body.size;
    memory->protocol = walk->protocol;
}

static void remember(struct walk_state *state)
{
    struct scrape_memory *memory = state->walk->memory;
    if (memory->body != NULL && memory->protocol == state->walk->protocol &&
        are_equal(&state->seen, &memory->series))
        return;
    remember_body(state);
    series_set_move(&memory->series, &state->seen);
    memory->good_count = memory->series.count;
}

/* After a failed scrape. As in Prometheus, the series that its body had before the failure have not
 * ended yet, and what an earlier scrape had is not new next time. */
static void remember_failure(struct walk_state *state)
{
    struct scrape_memory *memory = state->walk->memory;
    struct series_set former = memory->series;
    buffer_unref(memory->body);
    memory->body = NULL;
    if (state->seen.count > 0)
        remember_body(state);
    series_set_init(&memory->series, former.budget);
    series_set_move(&memory->series, &state->seen);
    /* Those of failed scrapes do not pile up. */
    bool keeps = memory->series.count + former.count <= 2 * memory->good_count + SERIES_MORE_MAX;
    for (size_t i = 0; keeps && i < former.capacity; i++) {
        uint64_t written = former.entries[i].written;
        if (written != 0 && series_set_find(&memory->series, written) == NULL &&
            series_set_add(&memory->series, written) == NULL)
            break;
    }
    series_set_fini(&former);
}

/* The report */

/* At the end of a target its report ends, too. */
static void report(struct walk_state *state, const char *name, double value)
{
    const struct scrape_target *target = state->walk->target;
    struct relabel_labels *labels = state->walk->labels;
    relabel_labels_reset(labels);
    relabel_labels_add(labels, slice_of_text("__name__"), slice_of_text(name));
    for (size_t i = 0; i < target->labels_count; i++)
        relabel_labels_set(labels, target->labels[i].name, target->labels[i].value);
    add_sample(state, state->walk->is_end ? stale_value() : value, state->walk->time_ms, NULL);
}

static void report_all(struct walk_state *state)
{
    const struct scrape_walk *walk = state->walk;
    const struct scrape_limits_config *limits = &walk->job->settings.limits;
    report(state, "up", walk->failure[0] == '\0');
    report(state, "scrape_duration_seconds", (double)walk->duration_ns / NS_PER_S);
    report(state, "scrape_samples_scraped", (double)state->scraped);
    report(state, "scrape_samples_post_metric_relabeling", (double)state->kept);
    report(state, "scrape_series_added", (double)state->series_added);
    if (!limits->extra_scrape_metrics)
        return;
    report(state, "scrape_timeout_seconds", (double)walk->target->timeout_ns / NS_PER_S);
    report(state, "scrape_sample_limit", (double)limits->samples_max);
    report(state, "scrape_body_size_bytes", (double)walk->body_bytes);
}

static void begin(struct walk_state *state)
{
    struct scrape_walk *walk = state->walk;
    const struct scraped_settings settings = {
        .job = walk->target->job_name,
        .instance = walk->target->instance,
        .scheme = slice_of_text(walk->job->config->scheme == 0 ? "http" : "https"),
        .trims_suffixes = walk->trims_suffixes,
    };
    scraped_metrics_init(&state->metrics, &settings, SCRAPE_BYTES_MAX, walk->budget);
}

/* Begins again with nothing, and marks the series of the last scrape that the body did not have
 * before its failure. */
static void begin_after_failure(struct walk_state *state)
{
    scraped_metrics_fini(&state->metrics);
    begin(state);
    mark_ended(state);
    remember_failure(state);
}

bool scrape_walk_inflate(struct scrape_walk *walk, struct slice response, uint64_t bytes_max,
                         struct buffer **ret_body)
{
    char *failure = walk->failure;
    const size_t size = sizeof(walk->failure);
    const uint64_t limit = codec_output_limit(response.size, bytes_max);
    const enum codec_result result =
        codec_inflate(walk->codecs, CODEC_GZIP, response, bytes_max, ret_body);
    if (result == CODEC_TOO_LARGE && limit < bytes_max) {
        snprintf(failure, size,
                 "the response of %zu bytes inflates to more than %llu, expected no more than %u "
                 "times its size",
                 response.size, (unsigned long long)limit, (unsigned)INFLATE_RATIO_MAX);
    } else if (result == CODEC_TOO_LARGE) {
        walk->body_bytes = -1;
        snprintf(failure, size,
                 "body_size_limit exceeded: the response inflates to more than %llu bytes",
                 (unsigned long long)bytes_max);
    } else if (result == CODEC_NO_BUDGET) {
        snprintf(failure, size, "the memory budget has no room for the response");
    } else if (result != CODEC_OK) {
        snprintf(failure, size, "the response is no sound gzip: %s", codec_reason(walk->codecs));
    }
    return result == CODEC_OK;
}

void scrape_walk_run(struct scrape_walk *walk)
{
    struct walk_state state = {.walk = walk};
    series_set_init(&state.seen, walk->budget);
    begin(&state);
    if (walk->failure[0] == '\0' && !walk->is_end)
        walk_body(&state);
    if (walk->failure[0] != '\0' || walk->is_end) {
        begin_after_failure(&state);
    } else {
        mark_ended(&state);
        remember(&state);
    }
    report_all(&state);
    if (!scraped_metrics_write(&state.metrics, walk->budget, &walk->request))
        walk->request = NULL;
    walk->points = state.metrics.points;
    scraped_metrics_fini(&state.metrics);
    series_set_fini(&state.seen);
}
