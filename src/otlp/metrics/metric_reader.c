/* SPDX-License-Identifier: Apache-2.0 */
/* Field by field, in one pass over each message. Any thread. */
#include "src/otlp/metrics/metric_reader.h"

#include <assert.h>
#include <string.h>

enum { NO_RECORDED_VALUE = 1, TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8 };

static double to_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static int32_t zigzag(uint64_t number)
{
    uint32_t value = (uint32_t)number;
    return (int32_t)(value >> 1 ^ (0U - (value & 1)));
}

/* Sum, Histogram, ExponentialHistogram: 2 temporality; Sum: 3 is_monotonic. */
static void read_data(struct metric *metric)
{
    struct wire_reader reader = wire_reader_of(metric->data);
    struct wire_field field;
    if (metric->kind == METRIC_GAUGE || metric->kind == METRIC_SUMMARY)
        return;
    while (wire_next_field(&reader, &field)) {
        if (field.number == 2)
            metric->temporality = field.number_value;
        else if (field.number == 3 && metric->kind == METRIC_SUM)
            metric->is_monotonic = field.number_value != 0;
    }
}

struct metric metric_read(struct slice bytes)
{
    struct metric metric = {.kind = METRIC_NONE};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        switch (field.number) {
        case 1:
            metric.name = field.bytes;
            break;
        case 2:
            metric.description = field.bytes;
            break;
        case 3:
            metric.unit = field.bytes;
            break;
        case METRIC_GAUGE:
        case METRIC_SUM:
        case METRIC_HISTOGRAM:
        case METRIC_EXPONENTIAL:
        case METRIC_SUMMARY:
            metric.kind = (enum metric_kind)field.number;
            metric.data = field.bytes;
            break;
        default:
            break;
        }
    }
    if (metric.kind != METRIC_NONE)
        read_data(&metric);
    return metric;
}

/* NumberDataPoint: 2 start, 3 time, 4 as_double, 6 as_int, 8 flags. */
static void read_number_field(struct metric_point *point, const struct wire_field *field)
{
    switch (field->number) {
    case 2:
        point->start_ns = field->number_value;
        break;
    case 3:
        point->time_ns = field->number_value;
        break;
    case 4:
        point->is_integer = false;
        point->integer = 0;
        point->real = to_double(field->number_value);
        break;
    case 6:
        point->is_integer = true;
        point->integer = (int64_t)field->number_value;
        point->real = 0;
        break;
    case 8:
        point->is_absent = (field->number_value & NO_RECORDED_VALUE) != 0;
        break;
    default:
        break;
    }
}

/* HistogramDataPoint: 2 start, 3 time, 4 count, 5 sum, 10 flags. ExponentialHistogramDataPoint has
 * 6 scale, 7 zero_count, 8 positive, 9 negative, 14 zero_threshold, too. SummaryDataPoint: 8 flags.
 */
static void read_distribution_field(struct metric_point *point, const struct wire_field *field)
{
    bool is_exponential = point->kind == METRIC_EXPONENTIAL;
    uint32_t flags = point->kind == METRIC_SUMMARY ? 8 : 10;
    if (field->number == flags) {
        point->is_absent = (field->number_value & NO_RECORDED_VALUE) != 0;
        return;
    }
    switch (field->number) {
    case 2:
        point->start_ns = field->number_value;
        break;
    case 3:
        point->time_ns = field->number_value;
        break;
    case 4:
        point->count = field->number_value;
        break;
    case 5:
        point->sum = to_double(field->number_value);
        point->has_sum = true;
        break;
    default:
        break;
    }
    if (!is_exponential)
        return;
    switch (field->number) {
    case 6:
        point->scale = zigzag(field->number_value);
        break;
    case 7:
        point->zero_count = field->number_value;
        break;
    case 8:
        point->positive = field->bytes;
        break;
    case 9:
        point->negative = field->bytes;
        break;
    case 14:
        point->zero_threshold = to_double(field->number_value);
        break;
    default:
        break;
    }
}

struct metric_point metric_point_read(enum metric_kind kind, struct slice bytes)
{
    assert(kind != METRIC_NONE);
    struct metric_point point = {.kind = kind, .bytes = bytes};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    bool is_number = kind == METRIC_GAUGE || kind == METRIC_SUM;
    while (wire_next_field(&reader, &field))
        if (is_number)
            read_number_field(&point, &field);
        else
            read_distribution_field(&point, &field);
    return point;
}

double metric_point_value(const struct metric_point *point)
{
    return point->is_integer ? (double)point->integer : point->real;
}

uint32_t metric_point_attributes(enum metric_kind kind)
{
    return kind == METRIC_HISTOGRAM ? 9 : kind == METRIC_EXPONENTIAL ? 1 : 7;
}

uint32_t metric_point_exemplars(enum metric_kind kind)
{
    return kind == METRIC_HISTOGRAM     ? 8
           : kind == METRIC_EXPONENTIAL ? 11
           : kind == METRIC_SUMMARY     ? 0
                                        : 5;
}

/* Exemplar: 2 time, 3 as_double, 4 span_id, 5 trace_id, 6 as_int. */
struct metric_exemplar metric_exemplar_read(struct slice bytes)
{
    struct metric_exemplar exemplar = {.time_ns = 0};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        switch (field.number) {
        case 2:
            exemplar.time_ns = field.number_value;
            break;
        case 3:
            exemplar.value = to_double(field.number_value);
            exemplar.has_value = true;
            break;
        case 4:
            exemplar.span_id = field.bytes;
            break;
        case 5:
            exemplar.trace_id = field.bytes;
            break;
        case 6:
            exemplar.value = (double)(int64_t)field.number_value;
            exemplar.has_value = true;
            break;
        default:
            break;
        }
    }
    assert(exemplar.trace_id.size == 0 || exemplar.trace_id.size == TRACE_ID_BYTES);
    assert(exemplar.span_id.size == 0 || exemplar.span_id.size == SPAN_ID_BYTES);
    return exemplar;
}

/* ValueAtQuantile: 1 quantile, 2 value. */
struct metric_quantile metric_quantile_read(struct slice bytes)
{
    struct metric_quantile quantile = {.quantile = 0};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == 1)
            quantile.quantile = to_double(field.number_value);
        else if (field.number == 2)
            quantile.value = to_double(field.number_value);
    }
    return quantile;
}

/* Buckets: 1 offset, 2 counts. */
int32_t metric_buckets_offset(struct slice buckets)
{
    struct wire_reader reader = wire_reader_of(buckets);
    struct wire_field field;
    int32_t offset = 0;
    while (wire_next_field(&reader, &field))
        if (field.number == 1)
            offset = zigzag(field.number_value);
    return offset;
}

struct metric_items metric_items_of(struct slice message, uint32_t number)
{
    return (struct metric_items){.reader = wire_reader_of(message), .number = number};
}

bool metric_items_next(struct metric_items *items, struct slice *ret_bytes)
{
    struct wire_field field;
    while (wire_next_field(&items->reader, &field))
        if (field.number == items->number && field.type == WIRE_BYTES) {
            *ret_bytes = field.bytes;
            return true;
        }
    return false;
}

static struct metric_numbers numbers_of(struct slice message, uint32_t number, bool is_varint)
{
    return (struct metric_numbers){.fields = wire_reader_of(message),
                                   .packed = wire_reader_of((struct slice){0}),
                                   .number = number,
                                   .is_varint = is_varint};
}

struct metric_numbers metric_counts(const struct metric_point *histogram)
{
    assert(histogram->kind == METRIC_HISTOGRAM);
    return numbers_of(histogram->bytes, 6, false);
}

struct metric_numbers metric_bounds(const struct metric_point *histogram)
{
    assert(histogram->kind == METRIC_HISTOGRAM);
    return numbers_of(histogram->bytes, 7, false);
}

struct metric_numbers metric_buckets_counts(struct slice buckets)
{
    return numbers_of(buckets, 2, true);
}

static bool packed_next(struct metric_numbers *numbers, uint64_t *ret_value)
{
    struct wire_reader *packed = &numbers->packed;
    if (packed->at >= packed->end || packed->failure != NULL)
        return false;
    if (numbers->is_varint) {
        *ret_value = wire_read_varint(packed, WIRE_VARINT_BYTES_MAX);
        return packed->failure == NULL;
    }
    if (packed->end - packed->at < (ptrdiff_t)sizeof(*ret_value))
        return false;
    memcpy(ret_value, packed->at, sizeof(*ret_value));
    packed->at += sizeof(*ret_value);
    return true;
}

bool metric_numbers_next(struct metric_numbers *numbers, uint64_t *ret_value)
{
    struct wire_field field;
    while (!packed_next(numbers, ret_value)) {
        if (!wire_next_field(&numbers->fields, &field))
            return false;
        if (field.number != numbers->number)
            continue;
        if (field.type != WIRE_BYTES) {
            *ret_value = field.number_value;
            return true;
        }
        numbers->packed = wire_reader_of(field.bytes);
    }
    return true;
}

size_t metric_numbers_count(struct metric_numbers numbers)
{
    uint64_t value;
    size_t count = 0;
    while (metric_numbers_next(&numbers, &value))
        count++;
    return count;
}
