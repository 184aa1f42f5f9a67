/* SPDX-License-Identifier: Apache-2.0 */
/* One flush. Runs on the lane that owns the store. */
#include "connectors/span_metrics/series_export.h"

#include <assert.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/core/batch.h"

/* Of a data point, beside its labels and buckets: about what it takes. */
enum { POINT_BYTES = 250, BUCKET_BYTES = 2 * sizeof(uint64_t) };

void series_export_init(struct series_export *export, const struct export_settings *settings,
                        struct series_store *store, struct delta_times *times,
                        struct budget *budget)
{
    *export = (struct series_export){
        .settings = settings, .store = store, .times = times, .labels.budget = budget};
    metric_writer_init(&export->writer, budget);
}

void series_export_fini(struct series_export *export)
{
    metric_writer_fini(&export->writer);
    nested_output_fini(&export->labels);
}

void series_export_begin(struct series_export *export, uint64_t wall_ns, uint64_t now_ns)
{
    export->store->flush++;
    if (export->store->settings->known != NULL)
        span_series_known_begin(export->store->settings->known);
    export->wall_ns = wall_ns;
    export->now_ns = now_ns;
    export->store->flushing = export->store->first;
    export->at = NULL;
    export->store->has_moved_on = false;
    export->set = SERIES_CALLS;
    export->is_open = false;
    export->has_failed = false;
}

static void put_label(struct series_export *export, const char *key, struct slice text)
{
    metric_attribute_put_string(&export->labels, slice_of_text(key), text);
}

static void put_status(struct series_export *export, const struct series *series)
{
    static const char *const codes[] = {"STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR",
                                        ""};
    static const char *const otel_codes[] = {"", "OK", "ERROR", ""};
    const struct export_settings *settings = export->settings;
    if (!settings->has_status)
        return;
    if (!settings->has_otel_status)
        put_label(export, "status.code", slice_of_text(codes[series->status]));
    else if (otel_codes[series->status][0] != '\0')
        put_label(export, "otel.status_code", slice_of_text(otel_codes[series->status]));
}

static struct slice labels_of(struct series_export *export, enum series_set set,
                              const struct series *series)
{
    static const char *const kinds[] = {"SPAN_KIND_UNSPECIFIED",
                                        "SPAN_KIND_INTERNAL",
                                        "SPAN_KIND_SERVER",
                                        "SPAN_KIND_CLIENT",
                                        "SPAN_KIND_PRODUCER",
                                        "SPAN_KIND_CONSUMER",
                                        ""};
    const struct export_settings *settings = export->settings;
    struct nested_output *labels = &export->labels;
    const uint8_t *text = span_series_labels_of(export->store->settings, set, series);
    nested_output_cut(labels, 0);
    if (series->is_overflow) {
        metric_attribute_put_bool(labels, slice_of_text("otel.metric.overflow"), true);
    } else {
        const uint8_t *name = text + series->service_bytes;
        if (settings->has_service)
            put_label(export, settings->service_key, slice_of(text, series->service_bytes));
        if (settings->has_name)
            put_label(export, "span.name", slice_of(name, series->name_bytes));
        if (settings->has_kind)
            put_label(export, "span.kind", slice_of_text(kinds[series->kind]));
        put_status(export, series);
        if (settings->instance != NULL)
            put_label(export, "collector.instance.id", slice_of_text(settings->instance));
        nested_put_raw(labels, slice_of(name + series->name_bytes, series->others_bytes));
    }
    return labels->buffer != NULL ? buffer_slice(labels->buffer) : slice_of(NULL, 0);
}

/* A series that began after the flush is left to the next one. */
static bool is_due(const struct series_export *export, const struct series *series)
{
    return series->born != export->store->flush;
}

static struct point_head head_of(struct series_export *export, enum series_set set,
                                 struct series *series)
{
    uint64_t start_ns =
        export->settings->is_delta ? delta_times_get(export->times, series->key) : 0;
    struct point_head head = {.attributes = labels_of(export, set, series),
                              .start_ns = start_ns != 0 ? start_ns : series->start_ns,
                              .time_ns = export->wall_ns};
    /* The clock may have been set back. */
    if (head.start_ns > head.time_ns)
        head.start_ns = head.time_ns;
    if (series->exemplars != NULL) {
        head.exemplars = series->exemplars->items;
        head.exemplars_count = series->exemplars->count;
        for (size_t i = 0; i < head.exemplars_count; i++)
            series->exemplars->items[i].time_ns = export->wall_ns;
    }
    return head;
}

static bool sends_zero(const struct series_export *export, const struct series *series)
{
    return !export->settings->is_delta &&
           (series->zero_flush == 0 || series->zero_flush == export->refused_flush);
}

static void begin_metric(struct series_export *export, const char *name, const char *unit,
                         enum metric_kind kind)
{
    const struct metric_head head = {
        .name = slice_of_text(name),
        .unit = slice_of_text(unit),
        .kind = kind,
        .temporality = export->settings->is_delta ? TEMPORALITY_DELTA : TEMPORALITY_CUMULATIVE,
        .is_monotonic = true,
    };
    metric_writer_begin_metric(&export->writer, &head);
}

static void write_counts(struct series_export *export, const char *name, struct series *series,
                         size_t count)
{
    begin_metric(export, name, "", METRIC_SUM);
    for (; count > 0; series = series->next, count--) {
        if (!is_due(export, series))
            continue;
        struct point_head head = head_of(export, export->set, series);
        uint64_t value = sends_zero(export, series) ? 0 : series->count;
        metric_writer_put_integer(&export->writer, &head, (int64_t)value);
    }
}

static void write_durations(struct series_export *export, struct series *series, size_t count)
{
    const struct series_settings *settings = export->store->settings;
    bool is_exponential = settings->histogram == HISTOGRAM_EXPONENTIAL;
    begin_metric(export, export->settings->duration, export->settings->unit,
                 is_exponential ? METRIC_EXPONENTIAL : METRIC_HISTOGRAM);
    for (; count > 0; series = series->next, count--) {
        if (!is_due(export, series))
            continue;
        struct point_head head = head_of(export, export->set, series);
        if (is_exponential) {
            metric_writer_put_exponential(&export->writer, &head, span_series_exponential(series));
            continue;
        }
        const struct explicit_histogram *histogram = span_series_explicit(series);
        const struct histogram_value value = {.count = series->count,
                                              .sum = histogram->sum,
                                              .bounds = settings->bounds,
                                              .bounds_count = settings->bounds_count,
                                              .counts = histogram->counts};
        metric_writer_put_histogram(&export->writer, &head, &value);
    }
}

/* The request has these series. */
static void settle(struct series_export *export, struct series_resource *resource, size_t count)
{
    const struct export_settings *settings = export->settings;
    struct series_known *known = export->store->settings->known;
    for (; count > 0; count--) {
        struct series *series = *export->at;
        if (known != NULL && !series->is_overflow)
            span_series_known_add(known, series->key);
        if (is_due(export, series) && settings->is_delta) {
            delta_times_set(export->times, series->key, export->wall_ns);
            span_series_remove(export->store, resource, export->set, export->at);
            continue;
        }
        if (is_due(export, series)) {
            if (sends_zero(export, series))
                series->zero_flush = export->store->flush;
            if (series->exemplars != NULL)
                series->exemplars->count = 0;
        }
        if (settings->series_expiration_ns > 0 && export->now_ns >= series->seen_ns &&
            export->now_ns - series->seen_ns >= settings->series_expiration_ns)
            span_series_remove(export->store, resource, export->set, export->at);
        else
            export->at = &series->next;
    }
}

/* What its data points take, about. */
static size_t points_bytes(const struct series_export *export, struct series *series)
{
    const struct series_settings *settings = export->store->settings;
    size_t labels =
        (size_t)series->service_bytes + series->name_bytes + series->others_bytes + POINT_BYTES;
    if (!span_series_has_histogram(settings, export->set))
        return labels;
    size_t buckets = settings->histogram == HISTOGRAM_EXPONENTIAL
                         ? exponential_histogram_buckets(span_series_exponential(series))
                         : settings->bounds_count;
    return 2 * labels + BUCKET_BYTES * buckets;
}

static void open_resource(struct series_export *export, const struct series_resource *resource)
{
    size_t size = export->settings->has_resource ? resource->attributes_bytes : 0;
    metric_writer_begin_resource(&export->writer, slice_of(resource->attributes, size));
    metric_writer_begin_scope(&export->writer, slice_of_text("spanmetricsconnector"),
                              slice_of(NULL, 0));
}

/* Writes what the request has room for of the present set. False: refused. */
static bool write_some(struct series_export *export, struct series_resource *resource)
{
    struct metric_writer_mark mark = metric_writer_mark(&export->writer);
    const struct export_settings *settings = export->settings;
    struct series *first = *export->at;
    size_t bytes = metric_writer_size(&export->writer);
    size_t count = 0;
    bool has_due = false;
    for (struct series *series = first; series != NULL && bytes < METRIC_REQUEST_BYTES;
         series = series->next, count++) {
        has_due |= is_due(export, series);
        bytes += points_bytes(export, series);
    }
    if (has_due) {
        if (!export->is_open)
            open_resource(export, resource);
        if (export->set != SERIES_DURATION)
            write_counts(export, export->set == SERIES_CALLS ? settings->calls : settings->events,
                         first, count);
        if (span_series_has_histogram(export->store->settings, export->set))
            write_durations(export, first, count);
    }
    if (!metric_writer_is_whole(&export->writer) || export->labels.refused_bytes > 0) {
        metric_writer_undo(&export->writer, &mark);
        export->labels.refused_bytes = 0;
        return false;
    }
    export->is_open |= has_due;
    settle(export, resource, count);
    return true;
}

/* The resource has been written: is it needed any longer? */
static void settle_resource(struct series_export *export, struct series_resource *resource)
{
    const struct export_settings *settings = export->settings;
    bool is_empty = true;
    bool is_done = true;
    for (unsigned i = 0; i < SERIES_SETS; i++) {
        const struct series *series = resource->sets[i].first;
        is_empty &= series == NULL;
        for (; series != NULL && resource->is_evicted; series = series->next)
            is_done &= is_due(export, series);
    }
    export->store->flushing = resource->next;
    if (!resource->is_pinned &&
        ((resource->is_evicted && is_done) || (settings->is_delta && is_empty)))
        span_series_resource_free(export->store, resource);
    else if (!resource->is_evicted && settings->metrics_expiration_ns > 0 &&
             export->now_ns >= resource->seen_ns &&
             export->now_ns - resource->seen_ns >= settings->metrics_expiration_ns)
        span_series_resource_evict(export->store, resource);
}

struct batch *series_export_next(struct series_export *export)
{
    struct metric_writer *writer = &export->writer;
    struct series_store *store = export->store;
    struct series_resource *resource;
    if (store->has_moved_on) {
        export->at = NULL;
        export->set = SERIES_CALLS;
        store->has_moved_on = false;
    }
    export->is_open = false;
    while (!export->has_failed && (resource = store->flushing) != NULL) {
        if (export->at == NULL)
            export->at = &resource->sets[export->set].first;
        while (*export->at != NULL && metric_writer_size(writer) < METRIC_REQUEST_BYTES &&
               !export->has_failed)
            export->has_failed = !write_some(export, resource);
        if (*export->at != NULL)
            break;
        export->at = NULL;
        if (++export->set < SERIES_SETS)
            continue;
        export->set = SERIES_CALLS;
        export->is_open = false;
        settle_resource(export, resource);
    }
    if (writer->points > 0)
        return metric_writer_finish(writer);
    metric_writer_fini(writer);
    if (!export->has_failed && store->settings->known != NULL)
        span_series_known_end(store->settings->known);
    return NULL;
}
