/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as text. Metric: 1 name, 2 description, 3 unit, 5 gauge, 7 sum, 9 histogram,
 * 10 exponential histogram, 11 summary, 12 metadata; all five kinds: 1 data points. Any thread. */
#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/otlp/text/text_parts.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { GAUGE = 5, SUM = 7, HISTOGRAM = 9, EXPONENTIAL = 10, SUMMARY = 11 };

/* Field numbers that differ between the kinds of data points; 0: none. */
struct point_shape {
    const char *heading; /* detailed */
    uint32_t attributes;
    uint32_t exemplars;
    uint32_t min;
    uint32_t max;
};

static const struct point_shape number_shape = {"NumberDataPoints", 7, 5, 0, 0};
static const struct point_shape histogram_shape = {"HistogramDataPoints", 9, 8, 11, 12};
static const struct point_shape exponential_shape = {"ExponentialHistogramDataPoints", 1, 11, 12,
                                                     13};
static const struct point_shape summary_shape = {"SummaryDataPoints", 7, 0, 0, 0};

static uint32_t kind_of(const struct message *metric)
{
    static const uint32_t kinds[] = {GAUGE, SUM, HISTOGRAM, EXPONENTIAL, SUMMARY};
    return message_last_of(metric, kinds, sizeof(kinds) / sizeof(kinds[0]));
}

static const struct point_shape *shape_of(uint32_t kind)
{
    assert(kind <= SUMMARY);
    return kind == HISTOGRAM     ? &histogram_shape
           : kind == EXPONENTIAL ? &exponential_shape
           : kind == SUMMARY     ? &summary_shape
                                 : &number_shape;
}

/* The elements of a repeated number, packed or not: fixed64 or varint. */
struct numbers {
    struct wire_reader fields;
    struct wire_reader packed;
    uint32_t number;
    bool is_varint;
};

static struct numbers numbers_of(const struct message *message, uint32_t number, bool is_varint)
{
    assert(number > 0);
    return (struct numbers){.fields = message_reader(message),
                            .packed = wire_reader_of((struct slice){0}),
                            .number = number,
                            .is_varint = is_varint};
}

static bool packed_next(struct numbers *numbers, uint64_t *ret_value)
{
    if (numbers->packed.at >= numbers->packed.end || numbers->packed.failure != NULL)
        return false;
    if (numbers->is_varint) {
        *ret_value = wire_read_varint(&numbers->packed, WIRE_VARINT_BYTES_MAX);
        return numbers->packed.failure == NULL;
    }
    if (numbers->packed.end - numbers->packed.at < (ptrdiff_t)sizeof(*ret_value))
        return false;
    memcpy(ret_value, numbers->packed.at, sizeof(*ret_value));
    numbers->packed.at += sizeof(*ret_value);
    return true;
}

static bool numbers_next(struct numbers *numbers, uint64_t *ret_value)
{
    assert(numbers->number > 0);
    struct wire_field field;
    if (packed_next(numbers, ret_value))
        return true;
    while (wire_read_field(&numbers->fields, &field)) {
        if (field.number != numbers->number)
            continue;
        if (field.type != WIRE_BYTES) {
            *ret_value = field.number_value;
            return true;
        }
        numbers->packed = wire_reader_of(field.bytes);
        if (packed_next(numbers, ret_value))
            return true;
    }
    return false;
}

static double to_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static int64_t zigzag(uint64_t number)
{
    uint32_t value = (uint32_t)number;
    return (int32_t)(value >> 1 ^ (0U - (value & 1)));
}

/* One side of an exponential histogram. ExponentialHistogramDataPoint: 6 scale, 8 positive,
 * 9 negative. Buckets: 1 offset, 2 counts. */
struct side {
    double offset;
    double factor; /* bounds are exp(index * factor) */
    uint64_t *counts;
    size_t count;
    uint64_t charged_bytes; /* to the text's budget */
};

/* Without memory it gets no buckets. */
static struct side side_create(struct text *text, const struct message *point, uint32_t number)
{
    assert(number == 8 || number == 9);
    struct message buckets = message_in(point, number);
    struct numbers counts = numbers_of(&buckets, 2, true);
    struct side side = {
        .offset = (double)zigzag(message_number(&buckets, 1)),
        .factor = ldexp(M_LN2, (int)-zigzag(message_number(point, 6))),
    };
    uint64_t bytes = buckets.bytes.size * sizeof(uint64_t); /* a count takes a byte at least */
    if (text->budget == NULL || budget_try_take(text->budget, bytes)) {
        side.counts = mem_try_alloc(bytes);
        side.charged_bytes = bytes;
    } else if (bytes > 0) {
        text_cut(text);
    }
    while (side.counts != NULL && numbers_next(&counts, &side.counts[side.count]))
        side.count++;
    assert(side.count <= buckets.bytes.size);
    return side;
}

static void side_destroy(struct text *text, struct side *side)
{
    mem_free(side->counts);
    if (text->budget != NULL)
        budget_return(text->budget, side->charged_bytes);
}

static void add_value_normal(struct text *text, const char *head, double value)
{
    text_add(text, "%s", head);
    text_add_shortest(text, value);
}

/* Histograms and summaries. QuantileValue: 1 quantile, 2 value. */
static void distribution_normal(struct text *text, const struct message *point, uint32_t kind)
{
    assert(kind == HISTOGRAM || kind == EXPONENTIAL || kind == SUMMARY);
    const struct point_shape *shape = shape_of(kind);
    if (kind == SUMMARY) {
        struct wire_reader quantiles = message_reader(point);
        struct slice bytes;
        text_add(text, "count=%" PRIu64 " sum=", message_number(point, 4));
        text_add_fixed(text, message_double(point, 5));
        while (!text->is_cut && message_next(&quantiles, 6, &bytes)) {
            struct message quantile = message_of(bytes);
            add_value_normal(text, " q", message_double(&quantile, 1));
            add_value_normal(text, "=", message_double(&quantile, 2));
        }
        return;
    }
    text_add(text, "count=%" PRIu64, message_number(point, 4));
    if (message_has(point, 5))
        add_value_normal(text, " sum=", message_double(point, 5));
    if (message_has(point, shape->min))
        add_value_normal(text, " min=", message_double(point, shape->min));
    if (message_has(point, shape->max))
        add_value_normal(text, " max=", message_double(point, shape->max));
    if (kind == EXPONENTIAL) {
        struct side negative = side_create(text, point, 9);
        struct side positive = side_create(text, point, 8);
        for (size_t i = negative.count; !text->is_cut && i > 0; i--) {
            double index = negative.offset + (double)(i - 1);
            add_value_normal(text, " le", -exp(index * negative.factor));
            text_add(text, "=%" PRIu64, negative.counts[i - 1]);
        }
        if (message_number(point, 7) != 0)
            text_add(text, " zero=%" PRIu64, message_number(point, 7));
        for (size_t i = 0; !text->is_cut && i < positive.count; i++) {
            double index = positive.offset + (double)i;
            add_value_normal(text, " le", exp((index + 1) * positive.factor));
            text_add(text, "=%" PRIu64, positive.counts[i]);
        }
        side_destroy(text, &negative);
        side_destroy(text, &positive);
        return;
    }
    struct numbers counts = numbers_of(point, 6, false);
    struct numbers bounds = numbers_of(point, 7, false);
    uint64_t count;
    uint64_t bound;
    while (!text->is_cut && numbers_next(&counts, &count)) {
        text_add(text, " ");
        if (numbers_next(&bounds, &bound)) {
            add_value_normal(text, "le", to_double(bound));
            text_add(text, "=");
        }
        text_add(text, "%" PRIu64, count);
    }
}

/* NumberDataPoint and Exemplar hold a oneof of a double and an integer. */
static bool add_number(struct text *text, const char *head, const struct message *message,
                       uint32_t double_number, bool is_shortest)
{
    assert(double_number > 0);
    const uint32_t numbers[] = {double_number, 6};
    uint32_t kind = message_last_of(message, numbers, 2);
    if (kind == 0)
        return false;
    text_add(text, "%s", head);
    if (kind == 6)
        text_add(text, "%" PRId64, (int64_t)message_number(message, 6));
    else if (is_shortest)
        text_add_shortest(text, message_double(message, double_number));
    else
        text_add_fixed(text, message_double(message, double_number));
    return true;
}

static void normal(struct text *text, struct slice record)
{
    struct message metric = message_of(record);
    uint32_t kind = kind_of(&metric);
    struct message data = message_in(&metric, kind);
    struct wire_reader points = message_reader(&data);
    struct slice bytes;
    while (kind != 0 && !text->is_cut && message_next(&points, 1, &bytes)) {
        struct message point = message_of(bytes);
        text_add_slice(text, message_bytes(&metric, 1));
        text_add(text, "{");
        text_add_pairs(text, &point, shape_of(kind)->attributes, ",");
        text_add(text, "} ");
        if (kind == GAUGE || kind == SUM)
            add_number(text, "", &point, 4, true);
        else
            distribution_normal(text, &point, kind);
        text_add(text, "\n");
    }
}

static void add_fixed_line(struct text *text, const char *head, double value)
{
    text_add(text, "%s", head);
    text_add_fixed(text, value);
    text_add(text, "\n");
}

static void distribution_detailed(struct text *text, const struct message *point, uint32_t kind)
{
    assert(kind == HISTOGRAM || kind == EXPONENTIAL || kind == SUMMARY);
    const struct point_shape *shape = shape_of(kind);
    text_add(text, "Count: %" PRIu64 "\n", message_number(point, 4));
    if (kind == SUMMARY || message_has(point, 5))
        add_fixed_line(text, "Sum: ", message_double(point, 5));
    if (message_has(point, shape->min))
        add_fixed_line(text, "Min: ", message_double(point, shape->min));
    if (message_has(point, shape->max))
        add_fixed_line(text, "Max: ", message_double(point, shape->max));
    if (kind == EXPONENTIAL) {
        struct side negative = side_create(text, point, 9);
        struct side positive = side_create(text, point, 8);
        for (size_t i = negative.count; !text->is_cut && i > 0; i--) {
            double index = negative.offset + (double)(i - 1);
            text_add(text, "Bucket [");
            text_add_fixed(text, -exp((index + 1) * negative.factor));
            text_add(text, ", ");
            text_add_fixed(text, -exp(index * negative.factor));
            text_add(text, "), Count: %" PRIu64 "\n", negative.counts[i - 1]);
        }
        if (message_number(point, 7) != 0)
            text_add(text, "Bucket [0, 0], Count: %" PRIu64 "\n", message_number(point, 7));
        for (size_t i = 0; !text->is_cut && i < positive.count; i++) {
            double index = positive.offset + (double)i;
            text_add(text, "Bucket (");
            text_add_fixed(text, exp(index * positive.factor));
            text_add(text, ", ");
            text_add_fixed(text, exp((index + 1) * positive.factor));
            text_add(text, "], Count: %" PRIu64 "\n", positive.counts[i]);
        }
        side_destroy(text, &negative);
        side_destroy(text, &positive);
    }
    if (kind != HISTOGRAM)
        return;
    struct numbers bounds = numbers_of(point, 7, false);
    struct numbers counts = numbers_of(point, 6, false);
    uint64_t value;
    for (size_t i = 0; !text->is_cut && numbers_next(&bounds, &value); i++) {
        text_add(text, "ExplicitBounds #%zu: ", i);
        add_fixed_line(text, "", to_double(value));
    }
    for (size_t i = 0; !text->is_cut && numbers_next(&counts, &value); i++)
        text_add(text, "Buckets #%zu, Count: %" PRIu64 "\n", i, value);
}

/* All data points: 2 start time, 3 time, 4 count or double, 5 sum. Exemplar: 2 time, 3 double,
 * 4 span_id, 5 trace_id, 6 integer, 7 filtered attributes. */
static void point_detailed(struct text *text, uint32_t kind, struct slice bytes, size_t index)
{
    assert(kind != 0);
    struct message point = message_of(bytes);
    const struct point_shape *shape = shape_of(kind);
    text_add(text, "%s #%zu\n", shape->heading, index);
    text_add_attributes(text, "Data point attributes", "     ->", &point, shape->attributes);
    text_add_time_line(text, "StartTimestamp: ", message_number(&point, 2));
    text_add_time_line(text, "Timestamp: ", message_number(&point, 3));
    if (kind != GAUGE && kind != SUM)
        distribution_detailed(text, &point, kind);
    else if (add_number(text, "Value: ", &point, 4, false))
        text_add(text, "\n");
    if (kind == SUMMARY) {
        struct wire_reader quantiles = message_reader(&point);
        for (size_t i = 0; !text->is_cut && message_next(&quantiles, 6, &bytes); i++) {
            struct message quantile = message_of(bytes);
            text_add(text, "QuantileValue #%zu: Quantile ", i);
            text_add_fixed(text, message_double(&quantile, 1));
            add_fixed_line(text, ", Value ", message_double(&quantile, 2));
        }
        return;
    }
    struct wire_reader exemplars = message_reader(&point);
    for (size_t i = 0; !text->is_cut && message_next(&exemplars, shape->exemplars, &bytes); i++) {
        struct message exemplar = message_of(bytes);
        text_add(text, "%sExemplar #%zu\n", i == 0 ? "Exemplars:\n" : "", i);
        text_add_id_line(text, "     -> Trace ID: ", message_bytes(&exemplar, 5));
        text_add_id_line(text, "     -> Span ID: ", message_bytes(&exemplar, 4));
        text_add_time_line(text, "     -> Timestamp: ", message_number(&exemplar, 2));
        if (add_number(text, "     -> Value: ", &exemplar, 3, false))
            text_add(text, "\n");
        text_add_attributes(text, "     -> FilteredAttributes", "          ->", &exemplar, 7);
    }
}

/* Sum, Histogram, ExponentialHistogram: 2 temporality; Sum: 3 is_monotonic. */
static void detailed(struct text *text, struct slice record, size_t index)
{
    static const char *const types[] = {
        [0] = "Empty",
        [GAUGE] = "Gauge",
        [SUM] = "Sum",
        [HISTOGRAM] = "Histogram",
        [EXPONENTIAL] = "ExponentialHistogram",
        [SUMMARY] = "Summary",
    };
    static const char *const temporalities[] = {"Unspecified", "Delta", "Cumulative"};
    struct message metric = message_of(record);
    uint32_t kind = kind_of(&metric);
    struct message data = message_in(&metric, kind);
    struct wire_reader points = message_reader(&data);
    struct slice bytes;
    uint64_t temporality = message_number(&data, 2);
    text_add(text, "Metric #%zu\nDescriptor:\n     -> Name: ", index);
    text_add_slice(text, message_bytes(&metric, 1));
    text_add(text, "\n     -> Description: ");
    text_add_slice(text, message_bytes(&metric, 2));
    text_add(text, "\n     -> Unit: ");
    text_add_slice(text, message_bytes(&metric, 3));
    text_add(text, "\n     -> DataType: %s\n", types[kind]);
    text_add_attributes(text, "     -> Metadata", "          ->", &metric, 12);
    if (kind == SUM)
        text_add(text, "     -> IsMonotonic: %s\n",
                 message_number(&data, 3) != 0 ? "true" : "false");
    if (kind == SUM || kind == HISTOGRAM || kind == EXPONENTIAL)
        text_add(text, "     -> AggregationTemporality: %s\n",
                 temporality < 3 ? temporalities[temporality] : "");
    for (size_t i = 0; kind != 0 && !text->is_cut && message_next(&points, 1, &bytes); i++)
        point_detailed(text, kind, bytes, i);
}

const struct otlp_text_writer otlp_text_metrics = {
    .resource = "ResourceMetrics",
    .resource_detailed = "ResourceMetrics",
    .scope = "ScopeMetrics",
    .scope_detailed = "ScopeMetrics",
    .normal = normal,
    .detailed = detailed,
};
