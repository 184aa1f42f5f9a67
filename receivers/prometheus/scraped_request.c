/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the request of a scrape: first all sizes, from the inside out, then the bytes. */
#include "receivers/prometheus/scraped_metrics.h"
#include "receivers/prometheus/scraped_parts.h"

#include "src/base/buffer.h"
#include "src/base/merge_sort.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* As in the Go collector, so that rules that match it go on working. */
#define SCOPE_NAME                                                                                 \
    "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"

/* Fields of opentelemetry/proto/metrics/v1/metrics.proto and common/v1/common.proto. */
enum {
    REQUEST_RESOURCE_METRICS = 1,
    RESOURCE_METRICS_RESOURCE = 1,
    RESOURCE_METRICS_SCOPE_METRICS = 2,
    RESOURCE_ATTRIBUTES = 1,
    SCOPE_METRICS_SCOPE = 1,
    SCOPE_METRICS_METRICS = 2,
    SCOPE_METRICS_SCHEMA_URL = 3,
    SCOPE_NAME_FIELD = 1,
    SCOPE_VERSION_FIELD = 2,
    SCOPE_ATTRIBUTES = 3,
    METRIC_NAME = 1,
    METRIC_DESCRIPTION = 2,
    METRIC_UNIT = 3,
    METRIC_METADATA = 12,
    DATA_POINTS = 1,
    DATA_TEMPORALITY = 2,
    DATA_IS_MONOTONIC = 3,
    POINT_START = 2,
    POINT_TIME = 3,
    NUMBER_VALUE = 4,
    NUMBER_EXEMPLARS = 5,
    NUMBER_FLAGS = 8,
    POINT_COUNT = 4,
    POINT_SUM = 5,
    HISTOGRAM_BUCKET_COUNTS = 6,
    HISTOGRAM_BOUNDS = 7,
    HISTOGRAM_EXEMPLARS = 8,
    HISTOGRAM_FLAGS = 10,
    SUMMARY_QUANTILES = 6,
    SUMMARY_FLAGS = 8,
    QUANTILE_QUANTILE = 1,
    QUANTILE_VALUE = 2,
    FLAG_NO_RECORDED_VALUE = 1,
    QUANTILE_BYTES = 2 * FIXED64_FIELD_BYTES,
};

static uint64_t start_ns(const struct group *group)
{
    double seconds = group->created_s;
    if (!(seconds > 0 && seconds < (double)INT64_MAX / NS_PER_S))
        return 0;
    uint64_t whole = (uint64_t)seconds;
    return whole * NS_PER_S + (uint64_t)((seconds - (double)whole) * NS_PER_S);
}

/* A count as OTLP has it; what is no count is 0. */
static uint64_t whole_count(double count)
{
    return count > 0 && count < 0x1p64 ? (uint64_t)count : 0;
}

static bool group_is_stale(const struct group *group)
{
    return is_stale(group->sum) || is_stale(group->count);
}

static int compare_boundaries(const void *a, const void *b)
{
    double left = ((const struct boundary *)a)->boundary;
    double right = ((const struct boundary *)b)->boundary;
    return (left > right) - (left < right);
}

/* Replaces the list by an array in ascending order. */
static bool sort_boundaries(struct scraped_metrics *metrics, struct group *group)
{
    size_t count = group->boundaries_count;
    if (count == 0)
        return true;
    struct boundary *sorted = scraped_take(metrics, count * sizeof(*sorted));
    if (sorted == NULL)
        return false;
    size_t i = 0;
    bool is_sorted = true;
    for (const struct boundary *from = group->boundaries; from != NULL; from = from->next, i++) {
        sorted[i] = *from;
        is_sorted &= i == 0 || sorted[i - 1].boundary <= sorted[i].boundary;
    }
    if (!is_sorted) {
        struct boundary *room = scraped_take(metrics, count * sizeof(*room));
        if (room == NULL)
            return false;
        merge_sort(sorted, room, count, sizeof(*sorted), compare_boundaries);
    }
    group->boundaries = sorted;
    return true;
}

/* Without the bucket up to infinity, which OTLP does not write. */
static size_t bounds_count(const struct group *group)
{
    size_t count = group->boundaries_count;
    bool has_infinity = count > 0 && group->boundaries[count - 1].boundary == INFINITY;
    return has_infinity ? count - 1 : count;
}

static size_t point_common_bytes(const struct group *group)
{
    size_t start = start_ns(group) != 0 ? FIXED64_FIELD_BYTES : 0;
    return start + FIXED64_FIELD_BYTES + group->attributes.size;
}

enum { FLAGS_BYTES = 2 };

static uint64_t number_bytes(const struct group *group)
{
    if (!group->has_value)
        return 0;
    size_t start =
        group->family->kind != METRIC_SUM && start_ns(group) != 0 ? FIXED64_FIELD_BYTES : 0;
    uint64_t value = is_stale(group->value) ? FLAGS_BYTES : FIXED64_FIELD_BYTES;
    return point_common_bytes(group) - start + group->exemplars_bytes + value;
}

static uint64_t distribution_bytes(const struct group *group)
{
    if (!group->has_count)
        return 0;
    uint64_t bytes = point_common_bytes(group) + group->exemplars_bytes;
    if (group_is_stale(group))
        bytes += (uint64_t)FLAGS_BYTES;
    else
        bytes += (uint64_t)FIXED64_FIELD_BYTES * (group->has_sum ? 2 : 1);
    if (group->family->kind == METRIC_SUMMARY)
        return bytes + group->boundaries_count * wire_field_size(SUMMARY_QUANTILES, QUANTILE_BYTES);
    size_t bounds = bounds_count(group);
    bytes += wire_field_size(HISTOGRAM_BUCKET_COUNTS, (bounds + 1) * sizeof(uint64_t));
    return bytes + (bounds > 0 ? wire_field_size(HISTOGRAM_BOUNDS, bounds * sizeof(double)) : 0);
}

static bool is_distribution(const struct scraped_family *family)
{
    return family->kind == METRIC_HISTOGRAM || family->kind == METRIC_SUMMARY;
}

/* Takes off what the metric's type and unit say by themselves. */
static struct slice shown_name(const struct scraped_metrics *metrics,
                               const struct scraped_family *family)
{
    struct slice name = family->name;
    if (!metrics->settings.trims_suffixes || name.size == 0)
        return name;
    if (family->kind == METRIC_SUM && ends_with(name, "_total"))
        name.size -= strlen("_total");
    struct slice unit = family->metadata.unit;
    bool has_unit = name.size > unit.size && name.data[name.size - unit.size - 1] == '_' &&
                    slice_equal(slice_of(name.data + name.size - unit.size, unit.size), unit);
    if (has_unit)
        name.size -= unit.size + 1;
    return name;
}

/* Units: words in Prometheus, UCUM in OTLP (https://ucum.org/ucum). */

struct unit_word {
    const char *word;
    const char *ucum;
};

static const struct unit_word unit_words[] = {
    {"days", "d"},          {"hours", "h"},         {"minutes", "min"},    {"seconds", "s"},
    {"milliseconds", "ms"}, {"microseconds", "us"}, {"nanoseconds", "ns"}, {"bytes", "By"},
    {"kibibytes", "KiBy"},  {"mebibytes", "MiBy"},  {"gibibytes", "GiBy"}, {"tibibytes", "TiBy"},
    {"kilobytes", "KBy"},   {"megabytes", "MBy"},   {"gigabytes", "GBy"},  {"terabytes", "TBy"},
    {"meters", "m"},        {"volts", "V"},         {"amperes", "A"},      {"joules", "J"},
    {"watts", "W"},         {"grams", "g"},         {"celsius", "Cel"},    {"hertz", "Hz"},
    {"ratio", "1"},         {"percent", "%"},
};
static const struct unit_word per_words[] = {
    {"second", "s"}, {"minute", "m"}, {"hour", "h"}, {"day", "d"},
    {"week", "w"},   {"month", "mo"}, {"year", "y"},
};

static struct slice ucum_of(const struct unit_word *words, size_t count, struct slice word)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal_text(word, words[i].word))
            return slice_of_text(words[i].ucum);
    return word;
}

/* The unit of "meters_per_second" is m/s. */
struct unit {
    struct slice of;
    struct slice per; /* empty: there is none */
};

static struct unit unit_of(const struct scraped_family *family)
{
    static const char between[] = "_per_";
    struct slice text = family->metadata.unit;
    const uint8_t *at =
        text.size > 0 ? memmem(text.data, text.size, between, strlen(between)) : NULL;
    struct unit unit = {.per.size = 0};
    struct slice of = at != NULL ? slice_of(text.data, (size_t)(at - text.data)) : text;
    unit.of = ucum_of(unit_words, sizeof(unit_words) / sizeof(unit_words[0]), of);
    if (at != NULL) {
        struct slice per = slice_of(at + strlen(between), text.size - of.size - strlen(between));
        unit.per = ucum_of(per_words, sizeof(per_words) / sizeof(per_words[0]), per);
    }
    return unit;
}

static size_t unit_bytes(const struct unit *unit)
{
    return unit->of.size + (unit->per.size > 0 ? 1 + unit->per.size : 0);
}

static const char type_key[] = "prometheus.type";

static struct slice type_name(const struct scraped_family *family)
{
    static const char *const names[] = {
        [EXPOSITION_METRIC_UNKNOWN] = "unknown",
        [EXPOSITION_METRIC_COUNTER] = "counter",
        [EXPOSITION_METRIC_GAUGE] = "gauge",
        [EXPOSITION_METRIC_HISTOGRAM] = "histogram",
        [EXPOSITION_METRIC_SUMMARY] = "summary",
        [EXPOSITION_METRIC_GAUGE_HISTOGRAM] = "gaugehistogram",
        [EXPOSITION_METRIC_INFO] = "info",
        [EXPOSITION_METRIC_STATE_SET] = "stateset",
    };
    return slice_of_text(names[family->metadata.type]);
}

static size_t text_field_bytes(uint32_t number, struct slice text)
{
    return text.size > 0 ? wire_field_size(number, text.size) : 0;
}

static void write_text(struct wire_writer *writer, uint32_t number, struct slice text)
{
    if (text.size > 0)
        wire_write_bytes(writer, number, text);
}

static void measure_family(struct scraped_metrics *metrics, struct scraped_family *family)
{
    for (struct group *group = family->groups; group != NULL; group = group->next) {
        if (is_distribution(family) && !sort_boundaries(metrics, group))
            return;
        group->bytes = is_distribution(family) ? distribution_bytes(group) : number_bytes(group);
        if (group->bytes == 0)
            continue;
        family->data_bytes += wire_field_size(DATA_POINTS, group->bytes);
        metrics->points++;
    }
    if (family->data_bytes == 0)
        return;
    if (family->kind == METRIC_SUM || family->kind == METRIC_HISTOGRAM)
        family->data_bytes += 2;
    if (family->is_monotonic)
        family->data_bytes += 2;
    struct unit unit = unit_of(family);
    size_t unit_size = unit_bytes(&unit);
    family->bytes = text_field_bytes(METRIC_NAME, shown_name(metrics, family)) +
                    text_field_bytes(METRIC_DESCRIPTION, family->metadata.help) +
                    (unit_size > 0 ? wire_field_size(METRIC_UNIT, unit_size) : 0) +
                    wire_field_size((uint32_t)family->kind, family->data_bytes) +
                    wire_field_size(METRIC_METADATA,
                                    attribute_bytes(slice_of_text(type_key), type_name(family)));
}

static uint64_t attributes_bytes(const struct attribute_list *list, uint32_t number)
{
    uint64_t bytes = 0;
    for (const struct attribute *at = list->first; at != NULL; at = at->next)
        bytes += wire_field_size(number, attribute_bytes(at->key, at->value));
    return bytes;
}

static void write_attributes(struct wire_writer *writer, const struct attribute_list *list,
                             uint32_t number)
{
    for (const struct attribute *at = list->first; at != NULL; at = at->next)
        write_attribute(writer, number, at->key, at->value);
}

static bool is_default(const struct scope *scope)
{
    return scope->name.size == 0 && scope->version.size == 0 && scope->schema_url.size == 0 &&
           scope->attributes_hash == 0;
}

/* The receiver's own name for metrics that name no scope. */
static struct scope described(const struct scope *scope)
{
    struct scope described = *scope;
    if (is_default(scope)) {
        described.name = slice_of_text(SCOPE_NAME);
        described.version = slice_of_text(SPANFLAME_VERSION);
        described.attributes = (struct attribute_list){.first = NULL};
    }
    return described;
}

static uint64_t scope_bytes(const struct scope *scope)
{
    struct scope shown = described(scope);
    return text_field_bytes(SCOPE_NAME_FIELD, shown.name) +
           text_field_bytes(SCOPE_VERSION_FIELD, shown.version) +
           attributes_bytes(&shown.attributes, SCOPE_ATTRIBUTES);
}

static void measure_scope(struct scraped_metrics *metrics, struct scope *scope)
{
    for (struct scraped_family *family = scope->families; family != NULL; family = family->next) {
        measure_family(metrics, family);
        if (family->bytes > 0)
            scope->bytes += wire_field_size(SCOPE_METRICS_METRICS, family->bytes);
    }
    if (scope->bytes > 0)
        scope->bytes += wire_field_size(SCOPE_METRICS_SCOPE, scope_bytes(scope)) +
                        text_field_bytes(SCOPE_METRICS_SCHEMA_URL, scope->schema_url);
}

static uint64_t measure(struct scraped_metrics *metrics)
{
    uint64_t bytes = 0;
    struct scraped_resource *resource = metrics->resources;
    for (; resource != NULL; resource = resource->next) {
        for (struct scope *scope = resource->scopes; scope != NULL; scope = scope->next) {
            measure_scope(metrics, scope);
            if (scope->bytes > 0)
                resource->bytes += wire_field_size(RESOURCE_METRICS_SCOPE_METRICS, scope->bytes);
        }
        if (resource->bytes == 0)
            continue;
        resource->bytes +=
            wire_field_size(RESOURCE_METRICS_RESOURCE,
                            attributes_bytes(&resource->attributes, RESOURCE_ATTRIBUTES));
        bytes += wire_field_size(REQUEST_RESOURCE_METRICS, resource->bytes);
    }
    return bytes;
}

static void write_exemplars(struct wire_writer *writer, const struct group *group)
{
    for (const struct exemplar *at = group->exemplars; at != NULL; at = at->next)
        wire_write_raw(writer, at->whole);
}

static void write_start(struct wire_writer *writer, const struct group *group)
{
    if (start_ns(group) != 0)
        wire_write_fixed64(writer, POINT_START, start_ns(group));
}

static void write_number_point(struct wire_writer *writer, const struct group *group)
{
    if (group->family->kind == METRIC_SUM)
        write_start(writer, group);
    wire_write_fixed64(writer, POINT_TIME, unix_ns(group->time_ms));
    if (!is_stale(group->value))
        wire_write_fixed64(writer, NUMBER_VALUE, double_bits(group->value));
    write_exemplars(writer, group);
    wire_write_raw(writer, group->attributes);
    if (is_stale(group->value))
        wire_write_number(writer, NUMBER_FLAGS, FLAG_NO_RECORDED_VALUE);
}

/* Prometheus counts cumulatively: each bucket holds what the lower ones hold, too. */
static void write_buckets(struct wire_writer *writer, const struct group *group)
{
    bool has_ended = group_is_stale(group);
    size_t bounds = bounds_count(group);
    double below = 0;
    wire_write_header(writer, HISTOGRAM_BUCKET_COUNTS, (bounds + 1) * sizeof(uint64_t));
    for (size_t i = 0; i <= bounds; i++) {
        double total = i < bounds ? group->boundaries[i].value : group->count;
        uint64_t count = has_ended ? 0 : whole_count(total - below);
        wire_write_raw(writer, slice_of(&count, sizeof(count)));
        below = total;
    }
    if (bounds == 0)
        return;
    wire_write_header(writer, HISTOGRAM_BOUNDS, bounds * sizeof(double));
    for (size_t i = 0; i < bounds; i++)
        wire_write_raw(writer, slice_of(&group->boundaries[i].boundary, sizeof(double)));
}

static void write_quantiles(struct wire_writer *writer, const struct group *group)
{
    bool has_ended = group_is_stale(group);
    for (size_t i = 0; i < group->boundaries_count; i++) {
        wire_write_header(writer, SUMMARY_QUANTILES, QUANTILE_BYTES);
        wire_write_fixed64(writer, QUANTILE_QUANTILE, double_bits(group->boundaries[i].boundary));
        wire_write_fixed64(writer, QUANTILE_VALUE,
                           double_bits(has_ended ? 0 : group->boundaries[i].value));
    }
}

static void write_distribution_point(struct wire_writer *writer, const struct group *group)
{
    bool has_ended = group_is_stale(group);
    bool is_summary = group->family->kind == METRIC_SUMMARY;
    write_start(writer, group);
    wire_write_fixed64(writer, POINT_TIME, unix_ns(group->time_ms));
    if (!has_ended) {
        wire_write_fixed64(writer, POINT_COUNT, whole_count(group->count));
        if (group->has_sum)
            wire_write_fixed64(writer, POINT_SUM, double_bits(group->sum));
    }
    if (is_summary)
        write_quantiles(writer, group);
    else
        write_buckets(writer, group);
    write_exemplars(writer, group);
    wire_write_raw(writer, group->attributes);
    if (has_ended)
        wire_write_number(writer, is_summary ? SUMMARY_FLAGS : HISTOGRAM_FLAGS,
                          FLAG_NO_RECORDED_VALUE);
}

static void write_family(struct scraped_metrics *metrics, struct wire_writer *writer,
                         const struct scraped_family *family)
{
    wire_write_header(writer, SCOPE_METRICS_METRICS, family->bytes);
    write_text(writer, METRIC_NAME, shown_name(metrics, family));
    write_text(writer, METRIC_DESCRIPTION, family->metadata.help);
    struct unit unit = unit_of(family);
    if (unit_bytes(&unit) > 0) {
        wire_write_header(writer, METRIC_UNIT, unit_bytes(&unit));
        wire_write_raw(writer, unit.of);
        if (unit.per.size > 0) {
            wire_write_raw(writer, slice_of("/", 1));
            wire_write_raw(writer, unit.per);
        }
    }
    wire_write_header(writer, (uint32_t)family->kind, family->data_bytes);
    for (const struct group *group = family->groups; group != NULL; group = group->next) {
        if (group->bytes == 0)
            continue;
        wire_write_header(writer, DATA_POINTS, group->bytes);
        if (is_distribution(family))
            write_distribution_point(writer, group);
        else
            write_number_point(writer, group);
    }
    if (family->kind == METRIC_SUM || family->kind == METRIC_HISTOGRAM)
        wire_write_number(writer, DATA_TEMPORALITY, TEMPORALITY_CUMULATIVE);
    if (family->is_monotonic)
        wire_write_number(writer, DATA_IS_MONOTONIC, 1);
    write_attribute(writer, METRIC_METADATA, slice_of_text(type_key), type_name(family));
}

static void write_scope(struct scraped_metrics *metrics, struct wire_writer *writer,
                        const struct scope *scope)
{
    struct scope shown = described(scope);
    wire_write_header(writer, RESOURCE_METRICS_SCOPE_METRICS, scope->bytes);
    wire_write_header(writer, SCOPE_METRICS_SCOPE, scope_bytes(scope));
    write_text(writer, SCOPE_NAME_FIELD, shown.name);
    write_text(writer, SCOPE_VERSION_FIELD, shown.version);
    write_attributes(writer, &shown.attributes, SCOPE_ATTRIBUTES);
    const struct scraped_family *family = scope->families;
    for (; family != NULL; family = family->next)
        if (family->bytes > 0)
            write_family(metrics, writer, family);
    write_text(writer, SCOPE_METRICS_SCHEMA_URL, scope->schema_url);
}

bool scraped_metrics_write(struct scraped_metrics *metrics, struct budget *budget,
                           struct buffer **ret_request)
{
    uint64_t bytes = measure(metrics);
    struct buffer *request = metrics->has_failed ? NULL : buffer_try_create(budget, bytes);
    if (request == NULL)
        return false;
    struct wire_writer writer = wire_writer_of(request->data, bytes);
    const struct scraped_resource *resource = metrics->resources;
    for (; resource != NULL; resource = resource->next) {
        if (resource->bytes == 0)
            continue;
        wire_write_header(&writer, REQUEST_RESOURCE_METRICS, resource->bytes);
        wire_write_header(&writer, RESOURCE_METRICS_RESOURCE,
                          attributes_bytes(&resource->attributes, RESOURCE_ATTRIBUTES));
        write_attributes(&writer, &resource->attributes, RESOURCE_ATTRIBUTES);
        const struct scope *scope = resource->scopes;
        for (; scope != NULL; scope = scope->next)
            if (scope->bytes > 0)
                write_scope(metrics, &writer, scope);
    }
    assert(!writer.has_failed && writer.at == writer.end);
    request->size = bytes;
    *ret_request = request;
    return true;
}
