/* SPDX-License-Identifier: Apache-2.0 */
/* Collects samples, adds up those of the same series, prints them. On the lane that responds. */
#include "src/service/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/hash_table.h"
#include "src/base/mem.h"
#include "src/base/signal_kind.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { SAMPLES_FIRST = 128 };

struct sample {
    char *name;   /* owned: names of histogram and signal series are composed */
    char *family; /* owned: the name that HELP and TYPE carry */
    char *labels; /* owned: "{a=\"b\"}" or "" */
    const char *help;
    enum counter_type type;
    double value;
    size_t order; /* buckets keep the order in which they came */
};

struct metrics {
    enum metrics_level level;
    struct sample *samples;
    size_t count;
    size_t capacity;
    struct hash_table places; /* of samples by name and labels: the index + 1 */
};

struct metrics *metrics_create(enum metrics_level level)
{
    struct metrics *metrics = mem_zalloc(sizeof(*metrics));
    metrics->level = level;
    metrics->capacity = SAMPLES_FIRST;
    metrics->samples = mem_alloc(metrics->capacity * sizeof(metrics->samples[0]));
    return metrics;
}

void metrics_destroy(struct metrics *metrics)
{
    for (size_t i = 0; i < metrics->count; i++) {
        mem_free(metrics->samples[i].name);
        mem_free(metrics->samples[i].family);
        free(metrics->samples[i].labels);
    }
    hash_table_clear(&metrics->places);
    mem_free(metrics->samples);
    mem_free(metrics);
}

bool metrics_shows(const struct metrics *metrics, enum metrics_level level)
{
    return metrics->level >= level;
}

static char *labels_text(const struct metric_labels *labels)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < METRIC_LABELS_MAX && labels->pairs[i].key != NULL; i++) {
        fprintf(out, "%s%s=\"", i == 0 ? "{" : ",", labels->pairs[i].key);
        for (const char *c = labels->pairs[i].value; *c != '\0'; c++) {
            if (*c == '\n')
                fputs("\\n", out);
            else if (*c == '"' || *c == '\\')
                fprintf(out, "\\%c", *c);
            else
                fputc(*c, out);
        }
        fputc('"', out);
    }
    if (labels->pairs[0].key != NULL)
        fputc('}', out);
    fclose(out);
    return text;
}

static void add(struct metrics *metrics, struct sample sample)
{
    uint64_t hash = XXH3_64bits_withSeed(sample.labels, strlen(sample.labels),
                                         XXH3_64bits(sample.name, strlen(sample.name)));
    size_t at = 0;
    const void *place;
    assert(metrics->count <= metrics->capacity);
    while ((place = hash_table_next(&metrics->places, hash, &at)) != NULL) {
        struct sample *old = &metrics->samples[(uintptr_t)place - 1];
        if (strcmp(old->name, sample.name) != 0 || strcmp(old->labels, sample.labels) != 0)
            continue;
        old->value += sample.value;
        mem_free(sample.name);
        mem_free(sample.family);
        free(sample.labels);
        return;
    }
    if (metrics->count == metrics->capacity) {
        metrics->capacity *= 2;
        metrics->samples =
            mem_resize(metrics->samples, metrics->capacity * sizeof(metrics->samples[0]));
    }
    sample.order = metrics->count;
    metrics->samples[metrics->count++] = sample;
    bool is_placed = hash_table_add(&metrics->places, hash, (void *)(uintptr_t)metrics->count);
    (void)is_placed; /* no memory: a later equal sample gets a line of its own */
}

void metrics_add(struct metrics *metrics, const char *name, enum counter_type type,
                 const char *help, const struct metric_labels *labels, double value)
{
    add(metrics, (struct sample){.name = mem_copy_text(name),
                                 .family = mem_copy_text(name),
                                 .labels = labels_text(labels),
                                 .help = help,
                                 .type = type,
                                 .value = value});
}

static struct metric_labels with_label(const struct metric_labels *labels, const char *key,
                                       const char *value)
{
    struct metric_labels more = *labels;
    size_t count = 0;
    while (count < METRIC_LABELS_MAX && more.pairs[count].key != NULL)
        count++;
    assert(count < METRIC_LABELS_MAX);
    more.pairs[count].key = key;
    more.pairs[count].value = value;
    return more;
}

static void add_bucket(struct metrics *metrics, const struct counter_row *row,
                       const struct metric_labels *labels, const char *suffix, double value)
{
    char name[256];
    snprintf(name, sizeof(name), "%s%s", row->name, suffix);
    add(metrics, (struct sample){.name = mem_copy_text(name),
                                 .family = mem_copy_text(row->name),
                                 .labels = labels_text(labels),
                                 .help = row->help,
                                 .type = COUNTER_HISTOGRAM,
                                 .value = value});
}

void metrics_add_counters(struct metrics *metrics, const struct counter_row *rows,
                          const void *counters, const struct metric_labels *labels, int signal)
{
    assert(rows == NULL || counters != NULL);
    for (const struct counter_row *row = rows; row != NULL && row->name != NULL; row++) {
        const void *cell = (const char *)counters + row->offset;
        struct metric_labels own = *labels;
        if (!metrics_shows(metrics, row->level))
            continue;
        if (row->label != NULL)
            own = with_label(&own, row->label, row->label_value);
        if (row->second_label != NULL)
            own = with_label(&own, row->second_label, row->second_value);
        if (row->type == COUNTER_HISTOGRAM) {
            const struct histogram *histogram = cell;
            uint64_t total = 0;
            double divisor = row->divisor > 0 ? row->divisor : 1;
            assert(row->bounds_count <= HISTOGRAM_BOUNDS_MAX);
            for (size_t i = 0; i <= row->bounds_count; i++) {
                char bound[32] = "+Inf";
                total += counter_read(&histogram->cells[i]);
                if (i < row->bounds_count) /* as Go: "1e+06" */
                    snprintf(bound, sizeof(bound), "%g", (double)row->bounds[i] / divisor);
                struct metric_labels bucket = with_label(&own, "le", bound);
                add_bucket(metrics, row, &bucket, "_bucket", (double)total);
            }
            add_bucket(metrics, row, &own, "_sum", (double)counter_read(&histogram->sum) / divisor);
            add_bucket(metrics, row, &own, "_count", (double)total);
            continue;
        }
        const counter *cells = cell;
        if (row->per_signal == 0) {
            metrics_add(metrics, row->name, row->type, row->help, &own,
                        (double)counter_read(cells));
            continue;
        }
        /* "%s" in the name stands for the items of the signal. Without it, a label names the
         * signal, and precedes the others since labels are sorted by key. */
        const char *mark = strstr(row->name, "%s");
        for (int s = 0; s < SIGNAL_KINDS; s++) {
            if ((row->per_signal & (1u << s)) == 0 || (signal >= 0 && s != signal))
                continue;
            double value = (double)counter_read(&cells[s]);
            if (mark == NULL) {
                struct metric_labels all = {
                    .pairs = {{"otel_signal", signal_name((enum signal_kind)s)}}};
                assert(own.pairs[METRIC_LABELS_MAX - 1].key == NULL);
                memcpy(&all.pairs[1], own.pairs, sizeof(own.pairs) - sizeof(own.pairs[0]));
                metrics_add(metrics, row->name, row->type, row->help, &all, value);
                continue;
            }
            char name[256];
            snprintf(name, sizeof(name), "%.*s%s%s", (int)(mark - row->name), row->name,
                     signal_items((enum signal_kind)s), mark + 2);
            metrics_add(metrics, name, row->type, row->help, &own, value);
        }
    }
}

static int compare(const void *a, const void *b)
{
    const struct sample *left = a;
    const struct sample *right = b;
    int families = strcmp(left->family, right->family);
    if (families != 0)
        return families;
    return left->order < right->order ? -1 : left->order > right->order;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text);
    size_t end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* The older names carry unit and type; see service::telemetry::metrics::readers. */
static void print_name(const struct sample *sample, const char *name,
                       const struct metrics_style *style, FILE *out)
{
    fputs(name, out);
    if (style->has_units && ends_with(sample->family, "_process_uptime"))
        fputs("_seconds", out);
    if (style->has_units && ends_with(sample->family, "_memory_rss"))
        fputs("_bytes", out);
    if (style->has_type_suffix && sample->type == COUNTER_SUM && !ends_with(name, "_total"))
        fputs("_total", out);
}

void metrics_print(struct metrics *metrics, const struct metrics_style *style, FILE *out)
{
    static const char *const types[] = {
        [COUNTER_SUM] = "counter", [COUNTER_GAUGE] = "gauge", [COUNTER_HISTOGRAM] = "histogram"};
    const char *family = "";
    qsort(metrics->samples, metrics->count, sizeof(metrics->samples[0]), compare);
    for (size_t i = 0; i < metrics->count; i++) {
        const struct sample *sample = &metrics->samples[i];
        if (strcmp(sample->family, family) != 0) {
            family = sample->family;
            fputs("# HELP ", out);
            print_name(sample, family, style, out);
            fprintf(out, " %s\n# TYPE ", sample->help);
            print_name(sample, family, style, out);
            fprintf(out, " %s\n", types[sample->type]);
        }
        print_name(sample, sample->name, style, out);
        fputs(sample->labels, out);
        if (sample->value == floor(sample->value) && fabs(sample->value) < 9e15)
            fprintf(out, " %.0f\n", sample->value);
        else
            fprintf(out, " %.17g\n", sample->value);
    }
}
