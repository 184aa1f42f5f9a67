/* SPDX-License-Identifier: Apache-2.0 */
/* Collects samples, sums equal ones, prints them. On the lane that responds. */
#include "src/service/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/signal_kind.h"

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
    assert(metrics->count <= metrics->capacity);
    for (size_t i = 0; i < metrics->count; i++) {
        struct sample *old = &metrics->samples[i];
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

static void add_histogram(struct metrics *metrics, const struct counter_row *row,
                          const struct histogram *histogram, const struct metric_labels *labels)
{
    assert(row->type == COUNTER_HISTOGRAM);
    assert(row->bounds_count <= HISTOGRAM_BOUNDS_MAX);
    uint64_t total = 0;
    for (size_t i = 0; i <= row->bounds_count; i++) {
        char bound[32] = "+Inf";
        total += counter_read(&histogram->cells[i]);
        if (i < row->bounds_count)
            snprintf(bound, sizeof(bound), "%g", (double)row->bounds[i]); /* as Go: "1e+06" */
        struct metric_labels bucket = with_label(labels, "le", bound);
        add_bucket(metrics, row, &bucket, "_bucket", (double)total);
    }
    add_bucket(metrics, row, labels, "_sum", (double)counter_read(&histogram->sum));
    add_bucket(metrics, row, labels, "_count", (double)total);
}

/* Labels are sorted by key, and this one precedes those of all rows. */
static struct metric_labels with_signal(const struct metric_labels *labels, enum signal_kind signal)
{
    struct metric_labels all = {.pairs = {{"otel_signal", signal_name(signal)}}};
    for (size_t i = 0; i < METRIC_LABELS_MAX && labels->pairs[i].key != NULL; i++)
        all = with_label(&all, labels->pairs[i].key, labels->pairs[i].value);
    return all;
}

/* "%s" in the row's name stands for the items of the signal. */
static void add_by_signal(struct metrics *metrics, const struct counter_row *row,
                          const counter *cells, const struct metric_labels *labels, int signal)
{
    assert(signal < SIGNAL_KINDS);
    assert(row->per_signal != 0);
    for (int s = 0; s < SIGNAL_KINDS; s++) {
        char name[256];
        const char *mark = strstr(row->name, "%s");
        if ((row->per_signal & (1u << s)) == 0 || (signal >= 0 && s != signal))
            continue;
        size_t head = mark != NULL ? (size_t)(mark - row->name) : strlen(row->name);
        snprintf(name, sizeof(name), "%.*s%s%s", (int)head, row->name,
                 mark != NULL ? signal_items((enum signal_kind)s) : "",
                 mark != NULL ? mark + 2 : "");
        struct metric_labels own = *labels;
        if (mark == NULL)
            own = with_signal(labels, (enum signal_kind)s);
        metrics_add(metrics, name, row->type, row->help, &own, (double)counter_read(&cells[s]));
    }
}

void metrics_add_counters(struct metrics *metrics, const struct counter_row *rows,
                          const void *counters, const struct metric_labels *labels, int signal)
{
    assert(rows == NULL || counters != NULL);
    for (const struct counter_row *row = rows; row != NULL && row->name != NULL; row++) {
        const char *cell = (const char *)counters + row->offset;
        struct metric_labels own = *labels;
        if (!metrics_shows(metrics, row->level))
            continue;
        if (row->label != NULL)
            own = with_label(&own, row->label, row->label_value);
        if (row->type == COUNTER_HISTOGRAM)
            add_histogram(metrics, row, (const void *)cell, &own);
        else if (row->per_signal != 0)
            add_by_signal(metrics, row, (const void *)cell, &own, signal);
        else
            metrics_add(metrics, row->name, row->type, row->help, &own,
                        (double)counter_read((const void *)cell));
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
