/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the properties (main thread, at start), then leaves records out (the owner's thread). */
#include "src/records/record_filter.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/error.h"
#include "src/base/utf8_case.h"
#include "src/core/batch.h"
#include "src/otlp/metrics/metric_reader.h"
#include "src/records/metric_expression.h"
#include "src/records/record_limits.h"

enum { SPAN_ATTRIBUTES = 9, LOG_ATTRIBUTES = 6, DATA_POINTS = 1 };

/* ---- Configuration ---- */

static const struct config_field severity_fields[] = {
    CONFIG_TEXT(struct log_filter_severity_config, min, "min", "",
                "The lowest severity that matches: TRACE, DEBUG2, INFO …, or its number, \"9\"."),
    CONFIG_BOOL(struct log_filter_severity_config, match_undefined, "match_undefined", "false",
                "Records without a severity number match."),
    CONFIG_END,
};

const struct config_field log_filter_fields[] = {
    CONFIG_TEXT(struct log_filter_config, match_type, "match_type", "",
                "strict (equal strings and values) or regexp (RE2, anywhere in the string)."),
    CONFIG_SECTIONS(struct log_filter_config, resource_attributes,
                    struct record_match_attribute_config, "resource_attributes",
                    record_match_attribute_fields, NULL,
                    "All of these attributes of the resource match."),
    CONFIG_SECTIONS(struct log_filter_config, record_attributes,
                    struct record_match_attribute_config, "record_attributes",
                    record_match_attribute_fields, NULL,
                    "All of these attributes of the record match."),
    CONFIG_TEXTS(struct log_filter_config, severity_texts, "severity_texts", NULL,
                 "The severity text is one of these."),
    CONFIG_OPTIONAL(struct log_filter_config, severity_number, struct log_filter_severity_config,
                    has_severity_number, CONFIG_NULL_IS_OFF, "severity_number", severity_fields,
                    NULL, "The severity number is high enough."),
    CONFIG_TEXTS(struct log_filter_config, bodies, "bodies", NULL,
                 "The body as a string is one of these."),
    CONFIG_END,
};

const struct config_field metric_filter_fields[] = {
    CONFIG_TEXT(struct metric_filter_config, match_type, "match_type", "",
                "strict (equal strings and values), regexp (RE2, anywhere in the string) or expr "
                "(expressions)."),
    CONFIG_OPTIONAL(struct metric_filter_config, cache, struct record_match_cache_config, has_cache,
                    CONFIG_NULL_IS_OFF, "regexp", record_match_cache_fields, NULL,
                    "Options of match_type regexp, without effect."),
    CONFIG_TEXTS(struct metric_filter_config, metric_names, "metric_names", NULL,
                 "The name is one of these."),
    CONFIG_TEXTS(struct metric_filter_config, expressions, "expressions", NULL,
                 "With match_type expr: one of these holds for a data point. They know MetricName, "
                 "MetricType, Label(\"key\") and HasLabel(\"key\")."),
    CONFIG_SECTIONS(struct metric_filter_config, resource_attributes,
                    struct record_match_attribute_config, "resource_attributes",
                    record_match_attribute_fields, NULL,
                    "All of these attributes of the resource match."),
    CONFIG_END,
};

/* ---- Compiling ---- */

bool span_filter_compile(const struct record_match_config *config,
                         struct record_matcher **ret_matcher, struct error *error)
{
    *ret_matcher = record_matcher_create(config, TRACES, error);
    return *ret_matcher != NULL;
}

/* The error is about a property that has another name here. */
static bool rename_step(struct error *error, const char *const (*names)[2], size_t count)
{
    struct error_step *last = &error->steps[error->steps_count - (error->steps_count > 0)];
    for (size_t i = 0; error->steps_count > 0 && last->key != NULL && i < count; i++) {
        if (strcmp(last->key, names[i][0]) == 0) {
            last->key = names[i][1];
            break;
        }
    }
    return false;
}

/* "" is 0. */
static bool read_severity(const char *text, int64_t *ret_number, struct error *error)
{
    static const char *const names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"};
    enum { TEXT_MAX = 16, CASE_GROWTH = 3, EACH = 4, NUMBERS = 24 };
    uint8_t upper[TEXT_MAX * CASE_GROWTH];
    const struct slice given = slice_of_text(text);
    struct slice found = slice_of(upper, 0);
    char number[TEXT_MAX];
    *ret_number = 0;
    if (given.size == 0)
        return true;
    if (given.size <= TEXT_MAX)
        found.size = utf8_to_upper(given, upper);
    for (int i = 1; i <= NUMBERS; i++) {
        const char *name = names[(i - 1) / EACH];
        int nth = (i - 1) % EACH + 1;
        snprintf(number, sizeof(number), "%d", i);
        bool is_it = slice_equal_text(found, number);
        snprintf(number, sizeof(number), nth == 1 ? "%s" : "%s%d", name, nth);
        if (!is_it && !slice_equal_text(found, number))
            continue;
        *ret_number = i;
        return true;
    }
    return error_set(error,
                     "'%s' is not a valid severity: not a valid severity; expected TRACE, "
                     "DEBUG, INFO, WARN, ERROR or FATAL, or a number up to 24",
                     text) ||
           error_at(error, "min") || error_at(error, "severity_number");
}

bool log_filter_compile(const struct log_filter_config *config, struct record_matcher **ret_matcher,
                        struct error *error)
{
    static const char *const names[][2] = {{"resources", "resource_attributes"},
                                           {"attributes", "record_attributes"},
                                           {"log_severity_texts", "severity_texts"},
                                           {"log_bodies", "bodies"}};
    struct record_match_config match = {
        .match_type = config->match_type,
        .resources = config->resource_attributes,
        .attributes = config->record_attributes,
        .log_severity_texts = config->severity_texts,
        .log_bodies = config->bodies,
        .has_severity_number = config->has_severity_number,
        .severity_number.match_undefined = config->severity_number.match_undefined,
    };
    *ret_matcher = NULL;
    if (config->has_severity_number &&
        !read_severity(config->severity_number.min, &match.severity_number.min, error))
        return false;
    bool is_empty = config->resource_attributes.count + config->record_attributes.count +
                        config->severity_texts.count + config->bodies.count ==
                    0;
    if (is_empty && !config->has_severity_number)
        return true;
    *ret_matcher = record_matcher_create(&match, LOGS, error);
    if (*ret_matcher != NULL)
        return true;
    error_prefix(error, "failed to build skip matcher");
    return rename_step(error, names, sizeof(names) / sizeof(names[0]));
}

bool metric_filter_compile(const struct metric_filter_config *config,
                           struct record_matcher **ret_matcher, struct error *error)
{
    static const char *const names[][2] = {{"resources", "resource_attributes"}};
    const struct record_match_config match = {
        .match_type = config->match_type,
        .has_metric_resources = true,
        .has_cache = config->has_cache,
        .cache = config->cache,
        .metric_names = config->metric_names,
        .expressions = config->expressions,
        .resources = config->resource_attributes,
    };
    *ret_matcher = NULL;
    struct record_matcher *matcher = record_matcher_create(&match, METRICS, error);
    if (matcher == NULL)
        return rename_step(error, names, sizeof(names) / sizeof(names[0]));
    if (record_matcher_is_void(matcher) && !record_matcher_needs_resource(matcher)) {
        record_matcher_destroy(matcher);
        return true;
    }
    *ret_matcher = matcher;
    return true;
}

/* ---- Filtering ---- */

void record_filter_init(struct record_filter *filter, enum signal_kind signal,
                        const struct record_matcher *include, const struct record_matcher *exclude,
                        struct budget *budget)
{
    assert(include != NULL || exclude != NULL);
    *filter = (struct record_filter){.include = include, .exclude = exclude, .signal = signal};
    filter->prunes = (include != NULL && !record_matcher_is_void(include)) ||
                     (exclude != NULL && !record_matcher_is_void(exclude));
    attribute_list_init(&filter->list, RECORD_VALUES_BYTES_MAX, budget);
}

void record_filter_fini(struct record_filter *filter)
{
    attribute_list_fini(&filter->list);
}

static uint64_t count_points(struct slice metric)
{
    struct wire_reader reader = wire_reader_of(metric);
    struct wire_field field;
    struct slice point;
    uint64_t count = 0;
    while (wire_next_field(&reader, &field)) {
        if (field.number != METRIC_GAUGE && field.number != METRIC_SUM &&
            field.number != METRIC_HISTOGRAM && field.number != METRIC_EXPONENTIAL &&
            field.number != METRIC_SUMMARY)
            continue;
        struct metric_items points = metric_items_of(field.bytes, DATA_POINTS);
        while (metric_items_next(&points, &point))
            count++;
    }
    return count;
}

static uint64_t count_items(const struct record_filter *filter, struct slice record)
{
    return filter->signal == METRICS ? count_points(record) : 1;
}

/* All items of a Resource… or Scope… message. */
static uint64_t count_all(const struct record_filter *filter, enum record_level level,
                          struct slice content)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    uint64_t count = 0;
    while (wire_next_field(&reader, &field))
        if (field.number == RECORDS_CHILDREN)
            count += level == RECORD_SCOPE ? count_items(filter, field.bytes)
                                           : count_all(filter, RECORD_SCOPE, field.bytes);
    return count;
}

static bool has_children(struct slice content)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == RECORDS_CHILDREN)
            return true;
    return false;
}

static void enter(void *arg, struct record_edit *edit, enum record_level level,
                  struct slice content)
{
    struct record_filter *filter = arg;
    const struct record_matcher *include = filter->include;
    const struct record_matcher *exclude = filter->exclude;
    if (level == RECORD_SCOPE) {
        filter->takes_scope = include == NULL || record_matcher_takes_scope(include, content);
        filter->excludes_scope = exclude != NULL && record_matcher_takes_scope(exclude, content);
        return;
    }
    if ((include != NULL && record_matcher_needs_resource(include)) ||
        (exclude != NULL && record_matcher_needs_resource(exclude)))
        record_read_head_attributes(edit, content, RESOURCE_ATTRIBUTES, &filter->list);
    else
        record_read_attributes(edit, slice_of(NULL, 0), RESOURCE_ATTRIBUTES, &filter->list);
    struct arena *arena = &filter->list.arena;
    filter->takes_resource =
        include == NULL || record_matcher_takes_resource(include, arena, &filter->list);
    filter->excludes_resource =
        exclude != NULL && record_matcher_takes_resource(exclude, arena, &filter->list);
    record_list_is_whole(edit, &filter->list);
}

/* Whether anything inside can be kept. As in Go, a resource or a name is enough to exclude metrics,
 * while spans and log records have to match all that is asked for. */
static bool takes_message(void *arg, struct record_edit *edit, enum record_level level,
                          struct slice content)
{
    struct record_filter *filter = arg;
    bool takes = level == RECORD_RESOURCE ? filter->takes_resource : filter->takes_scope;
    if (filter->signal == METRICS && level == RECORD_RESOURCE) {
        takes &= !filter->excludes_resource || !record_matcher_needs_resource(filter->exclude);
        if (!filter->prunes)
            takes &= has_children(content);
    }
    if (!takes)
        edit->dropped += count_all(filter, level, content);
    return takes;
}

/* A matcher of metrics with expressions: whether one of the points makes one true. */
static bool takes_point(struct record_filter *filter, struct record_edit *edit,
                        const struct record_matcher *matcher, struct slice content)
{
    const bool needs_labels = record_matcher_needs_labels(matcher);
    const uint64_t names = record_matcher_names(matcher);
    const struct metric metric = metric_read(content);
    const struct metric_expression_point point = {.name = metric.name,
                                                  .kind = metric.kind,
                                                  .labels = &filter->list,
                                                  .arena = &filter->list.arena};
    struct metric_items points = metric_items_of(metric.data, DATA_POINTS);
    struct slice bytes;
    bool takes = false;
    while (!takes && record_edit_rereads(edit, names * metric.name.size) &&
           metric_items_next(&points, &bytes)) {
        if (needs_labels)
            record_read_attributes(edit, bytes, metric_point_attributes(metric.kind),
                                   &filter->list);
        takes = record_matcher_takes_point(matcher, &point);
        if (!record_list_is_whole(edit, &filter->list) || !needs_labels)
            break; /* without labels all points are alike */
    }
    return takes;
}

static bool matches_record(struct record_filter *filter, struct record_edit *edit,
                           const struct record_matcher *matcher, struct slice content)
{
    return record_matcher_has_expressions(matcher)
               ? takes_point(filter, edit, matcher, content)
               : record_matcher_takes_record(matcher, &filter->list.arena, content, &filter->list);
}

static bool takes_record(void *arg, struct record_edit *edit, const struct wire_field *record)
{
    struct record_filter *filter = arg;
    const struct record_matcher *include = filter->include;
    const struct record_matcher *exclude = filter->exclude;
    const struct slice content = record->bytes;
    if (filter->signal == METRICS) {
        include = include != NULL && !record_matcher_is_void(include) ? include : NULL;
        exclude = exclude != NULL && !record_matcher_is_void(exclude) ? exclude : NULL;
    } else if (!filter->excludes_resource || !filter->excludes_scope) {
        exclude = NULL;
    }
    if ((include != NULL && record_matcher_needs_attributes(include)) ||
        (exclude != NULL && record_matcher_needs_attributes(exclude))) {
        record_read_attributes(edit, content,
                               filter->signal == TRACES ? SPAN_ATTRIBUTES : LOG_ATTRIBUTES,
                               &filter->list);
        if (!record_list_is_whole(edit, &filter->list))
            return true;
    } else {
        attribute_list_next(&filter->list);
    }
    bool takes = (include == NULL || matches_record(filter, edit, include, content)) &&
                 (exclude == NULL || !matches_record(filter, edit, exclude, content));
    /* Bodies as strings take room. */
    if (!record_list_is_whole(edit, &filter->list) || takes)
        return true;
    edit->dropped += count_items(filter, content);
    return false;
}

struct batch *record_filter_run(struct record_filter *filter, struct record_edit *edit,
                                struct batch *batch)
{
    const struct record_visitor visitor = {.arg = filter,
                                           .enter = enter,
                                           .takes = takes_message,
                                           .record = takes_record,
                                           .drops_empty = filter->prunes};
    assert(batch->signal == filter->signal);
    struct batch *edited = record_edit_run(edit, batch, &visitor);
    attribute_list_clear(&filter->list);
    return edited;
}
