/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and rules of span_metrics, with the Go collector's messages. Main thread. */
#include "connectors/span_metrics/span_metrics_config.h"

#include <string.h>

#include "connectors/span_metrics/name_glob.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/config/duration.h"
#include "src/otlp/metrics/exponential_histogram.h"

static const char *const units[] = {"ms", "s", NULL};
static const char *const namings[] = {"opentelemetry", "tempo", NULL};
static const char delta_text[] = "AGGREGATION_TEMPORALITY_DELTA";
static const char cumulative_text[] = "AGGREGATION_TEMPORALITY_CUMULATIVE";

static const char *warn_temporality(const char *text)
{
    bool is_known = strcmp(text, delta_text) == 0 || strcmp(text, cumulative_text) == 0;
    return is_known ? NULL
                    : "is neither AGGREGATION_TEMPORALITY_CUMULATIVE nor "
                      "AGGREGATION_TEMPORALITY_DELTA; metrics will be cumulative";
}

static const struct config_field dimension_fields[] = {
    CONFIG_TEXT(struct dimension_config, name, "name", NULL,
                "Attribute of the span, or else of the event or the resource."),
    CONFIG_VALUE(
        struct dimension_config, standard, "default",
        "Its value (a string) when none of them has the attribute; without it the label is "
        "left out."),
    CONFIG_TEXT(struct dimension_config, glob, "glob", NULL,
                "Instead of name: all attributes that match, dots being separators (http.*, "
                "app.**)."),
    CONFIG_END,
};

static const struct config_field explicit_fields[] = {
    CONFIG_VALUE(struct explicit_config, buckets, "buckets",
                 "Upper bounds, as durations: [2ms, 1s]."),
    CONFIG_END,
};

static const struct config_field exponential_fields[] = {
    CONFIG_INT(struct exponential_config, max_size, "max_size", "0", INT32_MIN, INT32_MAX,
               "Buckets at most, 2 to 16384; 0: 160."),
    CONFIG_END,
};

static const struct config_field histogram_fields[] = {
    CONFIG_BOOL(struct histogram_config, disable, "disable", "false",
                "Leave the durations out and count calls alone."),
    CONFIG_LEVEL(struct histogram_config, unit, "unit", "ms", units, "Unit of durations."),
    CONFIG_OPTIONAL(struct histogram_config, explicit, struct explicit_config, has_explicit,
                    CONFIG_NULL_IS_OFF, "explicit", explicit_fields, NULL,
                    "Buckets with given bounds."),
    CONFIG_OPTIONAL(struct histogram_config, exponential, struct exponential_config,
                    has_exponential, CONFIG_NULL_IS_OFF, "exponential", exponential_fields, NULL,
                    "Buckets that adapt to the values."),
    CONFIG_SECTIONS(struct histogram_config, dimensions, struct dimension_config, "dimensions",
                    dimension_fields, NULL, "More labels of the durations."),
    CONFIG_END,
};

static const struct config_field exemplars_fields[] = {
    CONFIG_BOOL(struct exemplars_config, enabled, "enabled", "false",
                "Attach trace and span ids to data points."),
    CONFIG_INT(struct exemplars_config, max_per_data_point, "max_per_data_point", "5", INT64_MIN,
               INT64_MAX, "Exemplars at most per data point; the first ones of an interval stay."),
    CONFIG_END,
};

static const struct config_field events_fields[] = {
    CONFIG_BOOL(struct events_config, enabled, "enabled", "false", "Count the events of spans."),
    CONFIG_SECTIONS(struct events_config, dimensions, struct dimension_config, "dimensions",
                    dimension_fields, NULL, "More labels of these counts, such as exception.type."),
    CONFIG_END,
};

#define OWNER struct span_metrics_config
const struct config_field span_metrics_fields[] = {
    CONFIG_SECTIONS(OWNER, dimensions, struct dimension_config, "dimensions", dimension_fields,
                    NULL, "Labels beside service.name, span.name, span.kind and status.code."),
    CONFIG_SECTIONS(OWNER, calls_dimensions, struct dimension_config, "calls_dimensions",
                    dimension_fields, NULL, "More labels of the calls."),
    CONFIG_TEXTS(OWNER, exclude_dimensions, "exclude_dimensions", NULL,
                 "Labels to leave out: service.name, span.name, span.kind, status.code or "
                 "collector.instance.id."),
    CONFIG_UNUSED_INT(OWNER, dimensions_cache_size, "dimensions_cache_size", "0", INT64_MIN,
                      INT64_MAX, "Deprecated; use aggregation_cardinality_limit."),
    CONFIG_INT(OWNER, resource_metrics_cache_size, "resource_metrics_cache_size", "1000", 1,
               INT32_MAX, "Resources whose series are kept at a time; the longest unseen goes."),
    CONFIG_TEXTS(OWNER, resource_metrics_key_attributes, "resource_metrics_key_attributes", NULL,
                 "Attributes that tell resources apart; empty: all of them."),
    CONFIG_TEXT_WARNED(OWNER, aggregation_temporality, "aggregation_temporality",
                       "AGGREGATION_TEMPORALITY_CUMULATIVE", warn_temporality,
                       "Or AGGREGATION_TEMPORALITY_DELTA."),
    CONFIG_SECTION(OWNER, histogram, struct histogram_config, "histogram", histogram_fields, NULL,
                   "The durations of spans."),
    CONFIG_DURATION(OWNER, metrics_flush_interval_ns, "metrics_flush_interval", "60s", 1, INT64_MAX,
                    "How often metrics are sent on."),
    CONFIG_DURATION(OWNER, metrics_expiration_ns, "metrics_expiration", "0", 0, INT64_MAX,
                    "Forget a resource that sent no spans for so long; 0: never."),
    CONFIG_DURATION(OWNER, series_expiration_ns, "series_expiration", "0", 0, INT64_MAX,
                    "Forget a series that had no spans for so long; 0: never."),
    CONFIG_INT(OWNER, metric_timestamp_cache_size, "metric_timestamp_cache_size", "1000", INT64_MIN,
               INT64_MAX, "Delta series whose last time is kept, to be the next one's start."),
    CONFIG_TEXT(OWNER, name_space, "namespace", SPAN_METRICS_NAMESPACE,
                "Put in front of the metrics' names, with a dot."),
    CONFIG_SECTION(OWNER, exemplars, struct exemplars_config, "exemplars", exemplars_fields, NULL,
                   "Links from metrics to traces."),
    CONFIG_SECTION(OWNER, events, struct events_config, "events", events_fields, NULL,
                   "The events of spans, such as exceptions."),
    CONFIG_TEXTS(OWNER, include_instrumentation_scope, "include_instrumentation_scope", NULL,
                 "Names of scopes that become labels, with their version."),
    CONFIG_INT(OWNER, aggregation_cardinality_limit, "aggregation_cardinality_limit", "10000", 0,
               INT32_MAX,
               "Series per resource and metric; what is beyond counts in one with the label "
               "otel.metric.overflow. 0: no limit."),
    CONFIG_BOOL(OWNER, add_resource_attributes, "add_resource_attributes", "false",
                "Keep resource attributes in the metrics although the feature gate "
                "connector.spanmetrics.excludeResourceMetrics leaves them out."),
    CONFIG_BOOL(OWNER, enable_metrics_sampling_method, "enable_metrics_sampling_method", "false",
                "Add the label sampling.method: extrapolated or counted."),
    CONFIG_CHOICE(OWNER, naming, "naming", "opentelemetry", namings,
                  "tempo: names and labels of Tempo's metrics generator, durations in seconds, for "
                  "Grafana. Not in the Go collector."),
    CONFIG_END,
};
#undef OWNER

static const char *dimension_default(const struct dimension_config *dimension)
{
    const struct config_value *value = dimension->standard;
    return value != NULL && value->type == CONFIG_VALUE_TEXT ? value->text : NULL;
}

/* One list of dimensions; what tells which one it is. */
static bool check_dimensions(const struct config_sections *sections, const char *what,
                             struct error *error)
{
    static const char *const reserved[] = {"service.name", "span.kind", "status.code", "span.name",
                                           "collector.instance.id"};
    const struct dimension_config *dimensions = sections->items;
    for (size_t i = 0; i < sections->count; i++) {
        const struct dimension_config *one = &dimensions[i];
        bool has_name = one->name[0] != '\0';
        bool has_glob = one->glob[0] != '\0';
        bool is_text = one->standard == NULL || one->standard->type == CONFIG_VALUE_NULL ||
                       one->standard->type == CONFIG_VALUE_TEXT;
        bool is_double = false;
        for (size_t j = 0; has_name && j < sizeof(reserved) / sizeof(reserved[0]); j++)
            is_double |= strcmp(one->name, reserved[j]) == 0;
        for (size_t j = 0; has_name && j < i; j++)
            is_double |= strcmp(one->name, dimensions[j].name) == 0;
        if (!is_text)
            error_set(error, "\"default\" has to be a string: put it in quotes");
        else if (has_name && has_glob)
            error_set(error,
                      "dimension entry must set only one of `name` or `glob`, got both: "
                      "name=\"%s\" glob=\"%s\"",
                      one->name, one->glob);
        else if (!has_name && !has_glob)
            error_set(error, "dimension entry must set one of `name` or `glob`");
        else if (is_double)
            error_set(error, "duplicate dimension name \"%s\"", one->name);
        else if (has_glob && dimension_default(one) != NULL)
            error_set(error, "`default` is not supported on `glob` dimension \"%s\"", one->glob);
        else
            continue;
        error_prefix(error, "failed validating %s", what);
        return error_at_index(error, i);
    }
    for (size_t i = 0; i < sections->count; i++) {
        if (dimensions[i].glob[0] == '\0')
            continue;
        struct pattern *pattern = name_glob_create(dimensions[i].glob, error);
        const char *clash = NULL;
        if (pattern == NULL) {
            error_prefix(error, "invalid dimension glob \"%s\"", dimensions[i].glob);
            error_prefix(error, "failed validating %s", what);
            return error_at_index(error, i);
        }
        for (size_t j = 0; j < sizeof(reserved) / sizeof(reserved[0]); j++)
            if (pattern_matches(pattern, slice_of_text(reserved[j])))
                clash = reserved[j];
        for (size_t j = 0; j < sections->count; j++)
            if (dimensions[j].name[0] != '\0' &&
                pattern_matches(pattern, slice_of_text(dimensions[j].name)))
                clash = dimensions[j].name;
        pattern_destroy(pattern);
        if (clash != NULL) {
            error_set(error,
                      "failed validating %s: duplicate dimension name \"%s\" conflicting with glob "
                      "\"%s\"",
                      what, clash, dimensions[i].glob);
            return error_at_index(error, i);
        }
    }
    return true;
}

static bool check_buckets(const struct config_value *buckets, struct error *error)
{
    if (buckets == NULL || buckets->type == CONFIG_VALUE_NULL)
        return true;
    if (buckets->type != CONFIG_VALUE_LIST)
        return error_set(error, "expected a list of durations, such as [2ms, 1s]");
    for (size_t i = 0; i < buckets->count; i++) {
        const struct config_value *one = &buckets->items[i];
        int64_t ns;
        const char *wrong = one->type == CONFIG_VALUE_INT    ? NULL
                            : one->type == CONFIG_VALUE_TEXT ? text_to_duration_ns(one->text, &ns)
                                                             : "expected a duration, such as 2ms";
        if (wrong != NULL)
            return error_set(error, "%s", wrong) || error_at_index(error, i);
    }
    return true;
}

bool span_metrics_is_delta(const struct span_metrics_config *config)
{
    return strcmp(config->aggregation_temporality, delta_text) == 0;
}

bool span_metrics_check(const void *section, struct error *error)
{
    const struct span_metrics_config *config = section;
    const struct histogram_config *histogram = &config->histogram;
    if (!check_dimensions(&config->dimensions, "dimensions", error))
        return error_at(error, "dimensions");
    if (!check_dimensions(&config->calls_dimensions, "calls dimensions", error))
        return error_at(error, "calls_dimensions");
    if (!check_dimensions(&histogram->dimensions, "histogram dimensions", error))
        return error_at(error, "dimensions") || error_at(error, "histogram");
    if (config->events.enabled && config->events.dimensions.count == 0)
        return error_set(error, "failed validating event dimensions: no dimensions configured for "
                                "events") ||
               error_at(error, "events");
    if (config->events.enabled &&
        !check_dimensions(&config->events.dimensions, "event dimensions", error))
        return error_at(error, "dimensions") || error_at(error, "events");
    if (histogram->has_explicit && histogram->has_exponential)
        return error_set(error, "use either `explicit` or `exponential` buckets histogram") ||
               error_at(error, "histogram");
    if (histogram->has_explicit && !check_buckets(histogram->explicit.buckets, error))
        return error_at(error, "buckets") || error_at(error, "explicit") ||
               error_at(error, "histogram");
    if (strlen(config->name_space) > NAMESPACE_BYTES_MAX)
        return error_set(error, "found %zu bytes, expected at most %d", strlen(config->name_space),
                         NAMESPACE_BYTES_MAX) ||
               error_at(error, "namespace");
    if (span_metrics_is_delta(config) && config->metric_timestamp_cache_size <= 0)
        return error_set(error,
                         "invalid delta timestamp cache size: %lld, the maximum number of the "
                         "items in the cache should be positive",
                         (long long)config->metric_timestamp_cache_size) ||
               error_at(error, "metric_timestamp_cache_size");
    if (config->exemplars.enabled && config->exemplars.max_per_data_point < 0)
        return error_set(error, "invalid max_per_data_point: %lld, the value should be positive",
                         (long long)config->exemplars.max_per_data_point) ||
               error_at(error, "max_per_data_point") || error_at(error, "exemplars");
    return true;
}

double *span_metrics_bounds(const struct span_metrics_config *config, size_t *ret_count)
{
    static const double defaults_ms[] = {2,   4,   6,    8,    10,   50,   100,   200,
                                         400, 800, 1000, 1400, 2000, 5000, 10000, 15000};
    enum { DEFAULTS = sizeof(defaults_ms) / sizeof(defaults_ms[0]) };
    const struct histogram_config *histogram = &config->histogram;
    bool is_seconds = histogram->unit == UNIT_S || config->naming == NAMING_TEMPO;
    const struct config_value *list = histogram->explicit.buckets;
    bool is_list = list != NULL && list->type == CONFIG_VALUE_LIST;
    size_t count = !histogram->has_explicit ? DEFAULTS : is_list ? list->count : 0;
    double *bounds = mem_alloc(count * sizeof(*bounds));
    *ret_count = count;
    for (size_t i = 0; i < count; i++) {
        int64_t ns = 0;
        if (!histogram->has_explicit) {
            bounds[i] = is_seconds ? defaults_ms[i] / 1000 : defaults_ms[i];
            continue;
        }
        if (list->items[i].type == CONFIG_VALUE_INT)
            ns = list->items[i].integer;
        else
            text_to_duration_ns(list->items[i].text, &ns);
        bounds[i] = (double)ns / (is_seconds ? NS_PER_S : NS_PER_MS);
    }
    return bounds;
}
