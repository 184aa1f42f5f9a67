/* SPDX-License-Identifier: Apache-2.0 */
/* Editors of transform that make metrics of another form (contrib 0.155, processor/
 * transformprocessor/internal/metrics): sums of gauges, counts of histograms, copies. They read the
 * encoded metric and write another one. Run on the processor's thread. */
#include <string.h>

#include "src/base/error.h"
#include "src/ottl/functions/metric_bytes.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/ottl_rewrite.h"

enum { SUMMARY_QUANTILES = 6 };
/* Of KeyValue and AnyValue. */
enum { KEY = 1, VALUE = 2, DOUBLE_VALUE = 4 };
enum { FIXED64_FIELD = 9 };

/* ---- Writing ---- */

/* The points of a data message as they are. */
static void copy_points(struct wire_writer *writer, struct slice data)
{
    struct wire_reader reader = wire_reader_of(data);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == DATA_POINTS)
            wire_write_raw(writer, field.whole);
}

/* The fields of a metric that are not its data, then that data. */
static bool write_other_data(struct ottl_call *call, struct slice bytes, uint32_t kind,
                             struct slice data, struct slice *ret)
{
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    struct wire_writer writer;
    if (!metric_room(call, bytes.size + data.size + METRIC_HEADER_MAX, &writer))
        return false;
    while (wire_next_field(&reader, &field))
        if (field.number != METRIC_GAUGE && field.number != METRIC_SUM &&
            field.number != METRIC_HISTOGRAM && field.number != METRIC_EXPONENTIAL &&
            field.number != METRIC_SUMMARY)
            wire_write_raw(&writer, field.whole);
    wire_write_bytes(&writer, kind, data);
    *ret = wire_written(&writer);
    return true;
}

/* ---- Arguments ---- */

static bool read_temporality(struct slice text, uint64_t *ret)
{
    *ret = slice_equal_text(text, "delta")        ? TEMPORALITY_DELTA
           : slice_equal_text(text, "cumulative") ? TEMPORALITY_CUMULATIVE
                                                  : TEMPORALITY_UNSPECIFIED;
    return *ret != TEMPORALITY_UNSPECIFIED;
}

static bool check_temporality(const struct ottl_preparation *preparation, void **ret_state,
                              struct error *error)
{
    const struct slice text = ottl_literal_text(preparation, 0);
    uint64_t temporality;
    *ret_state = NULL;
    return read_temporality(text, &temporality) ||
           error_set(error, "unknown aggregation temporality: %.*s", (int)text.size,
                     (const char *)text.data);
}

/* The optional string that is the argument. */
static bool get_text_or(struct ottl_call *call, unsigned parameter, const char *absent,
                        struct slice *ret)
{
    *ret = slice_of_text(absent);
    return !ottl_has(call, parameter) || ottl_get_string(call, parameter, ret);
}

/* ---- Sums and gauges ---- */

static bool convert_sum_to_gauge(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice bytes;
    struct metric metric;
    struct wire_writer writer;
    (void)ret;
    if (!metric_read_current(call, &bytes, &metric))
        return false;
    if (metric.kind != METRIC_SUM)
        return true;
    if (!metric_room(call, metric.data.size, &writer))
        return false;
    copy_points(&writer, metric.data);
    if (!write_other_data(call, bytes, METRIC_GAUGE, wire_written(&writer), &bytes))
        return false;
    ottl_metric_replace(call->run, bytes);
    return true;
}

static bool convert_gauge_to_sum(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice bytes;
    struct slice text;
    struct metric metric;
    struct wire_writer writer;
    uint64_t temporality;
    bool is_monotonic;
    (void)ret;
    if (!ottl_get_string(call, 0, &text) || !ottl_get_bool(call, 1, &is_monotonic) ||
        !metric_read_current(call, &bytes, &metric))
        return false;
    read_temporality(text, &temporality);
    if (metric.kind != METRIC_GAUGE)
        return true;
    if (!metric_room(call, metric.data.size + NUMBER_POINT_MAX, &writer))
        return false;
    copy_points(&writer, metric.data);
    metric_put_sum_fields(&writer, temporality, is_monotonic);
    if (!write_other_data(call, bytes, METRIC_SUM, wire_written(&writer), &bytes))
        return false;
    ottl_metric_replace(call->run, bytes);
    return true;
}

/* ---- Copies ---- */

static bool copy_metric(struct ottl_call *call, struct ottl_value *ret)
{
    enum { TEXTS = 3 };
    static const uint32_t numbers[TEXTS] = {METRIC_NAME, METRIC_DESCRIPTION, METRIC_UNIT};
    struct slice texts[TEXTS];
    bool is_given[TEXTS] = {false};
    bool has_failed = false;
    struct slice bytes;
    struct wire_reader reader;
    struct wire_field field;
    struct wire_writer writer;
    (void)ret;
    if (!ottl_metric_current(call->run, &bytes))
        return false;
    size_t size = bytes.size;
    for (unsigned i = 0; i < TEXTS && !has_failed; i++) {
        if (!ottl_has(call, i))
            continue;
        /* As in Go: the copy is there before a text fails. */
        has_failed = !ottl_get_string(call, i, &texts[i]);
        is_given[i] = !has_failed;
        size += is_given[i] ? texts[i].size + METRIC_HEADER_MAX : 0;
    }
    if ((has_failed && call->run->is_out_of_memory) || !metric_room(call, size, &writer))
        return false;
    reader = wire_reader_of(bytes);
    while (wire_next_field(&reader, &field))
        if (field.number < METRIC_NAME || field.number > METRIC_UNIT ||
            !is_given[field.number - METRIC_NAME])
            wire_write_raw(&writer, field.whole);
    for (unsigned i = 0; i < TEXTS; i++)
        if (is_given[i] && texts[i].size > 0)
            wire_write_bytes(&writer, numbers[i], texts[i]);
    if (has_failed) {
        char reason[OTTL_ERROR_BYTES_MAX];
        memcpy(reason, call->run->error, sizeof(reason));
        return ottl_metric_append(call->run, wire_written(&writer)) &&
               ottl_run_fail(call->run, "%s", reason);
    }
    return ottl_metric_append(call->run, wire_written(&writer));
}

/* ---- Sums of what points say ---- */

static size_t count_points(struct slice data)
{
    struct metric_items points = metric_items_of(data, DATA_POINTS);
    struct slice point;
    size_t count = 0;
    while (metric_items_next(&points, &point))
        count++;
    return count;
}

/* Makes the sum of the points' counts, or of their sums. No data: no point has one. */
static bool make_sum(struct ottl_call *call, const struct metric *metric, struct slice suffix,
                     uint64_t temporality, bool is_monotonic, bool is_count, struct slice *ret)
{
    struct metric_items points = metric_items_of(metric->data, DATA_POINTS);
    struct metric sum = *metric;
    struct slice bytes;
    struct wire_writer writer;
    size_t count = 0;
    *ret = slice_of(NULL, 0);
    if (!metric_room(call,
                     2 * metric->data.size + (count_points(metric->data) + 1) * NUMBER_POINT_MAX,
                     &writer))
        return false;
    while (metric_items_next(&points, &bytes)) {
        const struct metric_point point = metric_point_read(metric->kind, bytes);
        if (!is_count && !point.has_sum && metric->kind != METRIC_SUMMARY)
            continue;
        metric_put_number(&writer, &point, is_count ? NUMBER_AS_INT : NUMBER_AS_DOUBLE,
                          is_count ? point.count : double_bits(point.sum), slice_of(NULL, 0));
        count++;
    }
    if (count == 0)
        return true;
    metric_put_sum_fields(&writer, temporality, is_monotonic);
    sum.name = metric_joined(call, metric->name, suffix);
    return sum.name.data != NULL &&
           metric_write(call, &sum, METRIC_SUM, wire_written(&writer), ret);
}

static bool extract(struct ottl_call *call, bool is_count)
{
    struct slice bytes;
    struct slice suffix;
    struct metric metric;
    bool is_monotonic;
    if (!ottl_get_bool(call, 0, &is_monotonic) ||
        !get_text_or(call, 1, is_count ? "_count" : "_sum", &suffix) ||
        !metric_read_current(call, &bytes, &metric))
        return false;
    uint64_t temporality =
        metric.kind == METRIC_SUMMARY ? (uint64_t)TEMPORALITY_CUMULATIVE : metric.temporality;
    bool is_fit = metric.kind == METRIC_HISTOGRAM || metric.kind == METRIC_EXPONENTIAL ||
                  metric.kind == METRIC_SUMMARY;
    if (!is_fit || temporality == TEMPORALITY_UNSPECIFIED)
        return ottl_fail(call,
                         "%s requires an input metric of type Histogram, ExponentialHistogram or "
                         "Summary, got %s",
                         call->function->name, metric_kind_name(metric.kind));
    if (is_count)
        metric.unit = slice_of_text("1");
    return make_sum(call, &metric, suffix, temporality, is_monotonic, is_count, &bytes) &&
           (bytes.data == NULL || ottl_metric_append(call->run, bytes));
}

static bool extract_sum(struct ottl_call *call, struct ottl_value *ret)
{
    (void)ret;
    return extract(call, false);
}

static bool extract_count(struct ottl_call *call, struct ottl_value *ret)
{
    (void)ret;
    return extract(call, true);
}

/* In the context of a data point: all points of its metric, as they came, for each of them. */
static bool convert_summary(struct ottl_call *call, bool is_count)
{
    const struct ottl_made *made = ottl_metric_made(call->run, call->arguments);
    struct slice bytes;
    struct slice text;
    struct slice suffix;
    struct metric metric;
    uint64_t temporality;
    bool is_monotonic;
    if (made != NULL)
        return made->bytes.data == NULL || ottl_metric_append(call->run, made->bytes);
    if (!ottl_get_string(call, 0, &text) || !ottl_get_bool(call, 1, &is_monotonic) ||
        !get_text_or(call, 2, is_count ? "_count" : "_sum", &suffix) ||
        !metric_read_current(call, &bytes, &metric))
        return false;
    ottl_run_work(call->run, bytes.size);
    read_temporality(text, &temporality);
    bytes = slice_of(NULL, 0);
    if (metric.kind == METRIC_SUMMARY &&
        !make_sum(call, &metric, suffix, temporality, is_monotonic, is_count, &bytes))
        return false;
    return ottl_metric_keep(call->run, call->arguments, bytes) &&
           (bytes.data == NULL || ottl_metric_append(call->run, bytes));
}

static bool convert_summary_count(struct ottl_call *call, struct ottl_value *ret)
{
    (void)ret;
    return convert_summary(call, true);
}

static bool convert_summary_sum(struct ottl_call *call, struct ottl_value *ret)
{
    (void)ret;
    return convert_summary(call, false);
}

/* The attributes of a summary's point, as its quantiles get them. */
struct quantile_fields {
    struct slice bytes;
    uint8_t *quantile; /* the field in them that differs */
};

/* The quantile is an attribute, which replaces one of that key. */
static bool make_fields(struct ottl_call *call, struct slice point, struct slice key,
                        struct quantile_fields *ret)
{
    const size_t value = FIXED64_FIELD;
    const size_t entry = wire_field_size(KEY, key.size) + wire_field_size(VALUE, value);
    struct wire_reader reader = wire_reader_of(point);
    struct wire_field field;
    struct wire_writer fields;
    ret->quantile = NULL;
    if (!metric_room(call, point.size + entry + METRIC_HEADER_MAX, &fields))
        return false;
    for (bool has_more = true; has_more;) {
        has_more = wire_next_field(&reader, &field);
        if (has_more && (field.number != NUMBER_ATTRIBUTES || field.type != WIRE_BYTES))
            continue;
        bool is_it = false;
        struct wire_reader pair = wire_reader_of(has_more ? field.bytes : slice_of(NULL, 0));
        struct wire_field part;
        while (wire_next_field(&pair, &part))
            if (part.number == KEY)
                is_it = slice_equal(part.bytes, key);
        if (has_more && (!is_it || ret->quantile != NULL)) {
            wire_write_bytes(&fields, NUMBER_ATTRIBUTES, field.bytes);
            continue;
        }
        if (ret->quantile != NULL)
            continue;
        wire_write_header(&fields, NUMBER_ATTRIBUTES, entry);
        wire_write_bytes(&fields, KEY, key);
        wire_write_header(&fields, VALUE, value);
        ret->quantile = fields.at;
        wire_write_fixed64(&fields, DOUBLE_VALUE, 0);
    }
    ret->bytes = wire_written(&fields);
    return true;
}

static bool put_quantiles(struct ottl_call *call, struct wire_writer *writer, struct slice bytes,
                          struct slice key)
{
    struct metric_point point = metric_point_read(METRIC_SUMMARY, bytes);
    struct metric_items quantiles = metric_items_of(bytes, SUMMARY_QUANTILES);
    struct quantile_fields fields = {.quantile = NULL};
    struct slice item;
    point.bytes = slice_of(NULL, 0);
    while (metric_items_next(&quantiles, &item)) {
        if (fields.quantile == NULL && !make_fields(call, bytes, key, &fields))
            return false;
        const struct metric_quantile quantile = metric_quantile_read(item);
        struct wire_writer field = wire_writer_of(fields.quantile, FIXED64_FIELD);
        wire_write_fixed64(&field, DOUBLE_VALUE, double_bits(quantile.quantile));
        metric_put_number(writer, &point, NUMBER_AS_DOUBLE, double_bits(quantile.value),
                          fields.bytes);
    }
    return true;
}

static bool convert_quantiles(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice bytes;
    struct slice key;
    struct slice suffix;
    struct metric metric;
    struct wire_writer writer;
    struct slice item;
    size_t size = NUMBER_POINT_MAX;
    (void)ret;
    if (!get_text_or(call, 0, "quantile", &key) || !get_text_or(call, 1, ".quantiles", &suffix) ||
        !metric_read_current(call, &bytes, &metric))
        return false;
    if (metric.kind != METRIC_SUMMARY)
        return true;
    struct metric_items points = metric_items_of(metric.data, DATA_POINTS);
    while (metric_items_next(&points, &bytes)) {
        struct metric_items quantiles = metric_items_of(bytes, SUMMARY_QUANTILES);
        const size_t each =
            metric_attributes_size(bytes, NUMBER_ATTRIBUTES) + key.size + 2 * NUMBER_POINT_MAX;
        while (metric_items_next(&quantiles, &item))
            size += each;
    }
    /* Each quantile gets all attributes of its point. */
    if (!ottl_spend(call, size) || !metric_room(call, size, &writer))
        return false;
    points = metric_items_of(metric.data, DATA_POINTS);
    while (metric_items_next(&points, &bytes))
        if (!put_quantiles(call, &writer, bytes, key))
            return false;
    metric.name = metric_joined(call, metric.name, suffix);
    return metric.name.data != NULL &&
           metric_write(call, &metric, METRIC_GAUGE, wire_written(&writer), &bytes) &&
           ottl_metric_append(call->run, bytes);
}

static const struct ottl_parameter copy_parameters[] = {
    {"Name", OTTL_STRINGS_ONLY, true, false},
    {"Description", OTTL_STRINGS_ONLY, true, false},
    {"Unit", OTTL_STRINGS_ONLY, true, false},
    {.name = NULL}};
static const struct ottl_parameter to_sum_parameters[] = {
    {"StringAggTemp", OTTL_TEXT_LITERAL, false, false},
    {"Monotonic", OTTL_BOOL_LITERAL, false, false},
    {.name = NULL}};
static const struct ottl_parameter summary_parameters[] = {
    {"StringAggTemp", OTTL_TEXT_LITERAL, false, false},
    {"Monotonic", OTTL_BOOL_LITERAL, false, false},
    {"Suffix", OTTL_TEXT_LITERAL, true, false},
    {.name = NULL}};
static const struct ottl_parameter extract_parameters[] = {
    {"Monotonic", OTTL_BOOL_LITERAL, false, false},
    {"Suffix", OTTL_TEXT_LITERAL, true, false},
    {.name = NULL}};
static const struct ottl_parameter quantile_parameters[] = {
    {"AttributeKey", OTTL_TEXT_LITERAL, true, false},
    {"Suffix", OTTL_TEXT_LITERAL, true, false},
    {.name = NULL}};

#define OF_METRICS                                                                                 \
    .users = OTTL_FOR_TRANSFORM, .contexts = OTTL_CONTEXT_BIT(OTTL_METRIC), .makes_metrics = true
#define OF_POINTS                                                                                  \
    .users = OTTL_FOR_TRANSFORM, .contexts = OTTL_CONTEXT_BIT(OTTL_DATA_POINT),                    \
    .makes_metrics = true

const struct ottl_function ottl_metric_form_functions[] = {
    {.name = "convert_sum_to_gauge", .evaluate = convert_sum_to_gauge, OF_METRICS},
    {.name = "convert_gauge_to_sum",
     .parameters = to_sum_parameters,
     .evaluate = convert_gauge_to_sum,
     .prepare = check_temporality,
     OF_METRICS},
    {.name = "copy_metric", .parameters = copy_parameters, .evaluate = copy_metric, OF_METRICS},
    {.name = "extract_sum_metric",
     .parameters = extract_parameters,
     .evaluate = extract_sum,
     OF_METRICS},
    {.name = "extract_count_metric",
     .parameters = extract_parameters,
     .evaluate = extract_count,
     OF_METRICS},
    {.name = "convert_summary_quantile_val_to_gauge",
     .parameters = quantile_parameters,
     .evaluate = convert_quantiles,
     .spends = true,
     OF_METRICS},
    {.name = "convert_summary_count_val_to_sum",
     .parameters = summary_parameters,
     .evaluate = convert_summary_count,
     .prepare = check_temporality,
     OF_POINTS},
    {.name = "convert_summary_sum_val_to_sum",
     .parameters = summary_parameters,
     .evaluate = convert_summary_sum,
     .prepare = check_temporality,
     OF_POINTS},
    {.name = NULL},
};
