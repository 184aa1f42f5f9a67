/* SPDX-License-Identifier: Apache-2.0 */
/* Writes requests of metrics. Runs on the owner's thread. */
#include "src/otlp/metrics/metric_writer.h"

#include <assert.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/otlp/metrics/exponential_histogram.h"
#include "src/otlp/wire.h"

/* Fields of opentelemetry/proto/metrics/v1/metrics.proto and common/v1/common.proto. */
enum {
    REQUEST_RESOURCE_METRICS = 1,
    RESOURCE_METRICS_RESOURCE = 1,
    RESOURCE_METRICS_SCOPE_METRICS = 2,
    SCOPE_METRICS_SCOPE = 1,
    SCOPE_METRICS_METRICS = 2,
    SCOPE_NAME = 1,
    SCOPE_VERSION = 2,
    METRIC_NAME = 1,
    METRIC_DESCRIPTION = 2,
    METRIC_UNIT = 3,
    DATA_POINTS = 1,
    DATA_TEMPORALITY = 2,
    DATA_IS_MONOTONIC = 3,
    POINT_START = 2,
    POINT_TIME = 3,
    NUMBER_AS_DOUBLE = 4,
    NUMBER_AS_INT = 6,
    POINT_COUNT = 4,
    POINT_SUM = 5,
    HISTOGRAM_BUCKET_COUNTS = 6,
    HISTOGRAM_BOUNDS = 7,
    EXPONENTIAL_SCALE = 6,
    EXPONENTIAL_ZERO_COUNT = 7,
    EXPONENTIAL_POSITIVE = 8,
    EXPONENTIAL_MIN = 12,
    EXPONENTIAL_MAX = 13,
    BUCKETS_OFFSET = 1,
    BUCKETS_COUNTS = 2,
    EXEMPLAR_TIME = 2,
    EXEMPLAR_AS_DOUBLE = 3,
    EXEMPLAR_SPAN_ID = 4,
    EXEMPLAR_TRACE_ID = 5,
    EXEMPLAR_ATTRIBUTES = 7,
    ATTRIBUTE = 1,
    KEY_VALUE_KEY = 1,
    KEY_VALUE_VALUE = 2,
    ANY_VALUE_STRING = 1,
    ANY_VALUE_BOOL = 2,
};

/* How many bytes their lengths are likely to take. */
enum { LARGE_LENGTH_BYTES = 3, POINT_LENGTH_BYTES = 2, SMALL_LENGTH_BYTES = 1 };

static uint64_t double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint64_t zigzag(int32_t value)
{
    return (uint32_t)value << 1 ^ (uint32_t)(value >> 31);
}

void metric_writer_init(struct metric_writer *writer, struct budget *budget)
{
    *writer = (struct metric_writer){.output.budget = budget};
}

void metric_writer_fini(struct metric_writer *writer)
{
    struct budget *budget = writer->output.budget;
    nested_output_fini(&writer->output);
    metric_writer_init(writer, budget);
}

size_t metric_writer_size(const struct metric_writer *writer)
{
    return nested_output_size(&writer->output);
}

static void close_message(struct metric_writer *writer, struct nested_message *message)
{
    if (message->begin > 0)
        nested_put_end(&writer->output, *message);
    message->begin = 0;
}

static void close_metric(struct metric_writer *writer)
{
    close_message(writer, &writer->data);
    close_message(writer, &writer->metric);
}

static void close_scope(struct metric_writer *writer)
{
    close_metric(writer);
    close_message(writer, &writer->scope);
}

static void close_resource(struct metric_writer *writer)
{
    close_scope(writer);
    if (writer->resource.begin == 0)
        return;
    close_message(writer, &writer->resource);
    if (writer->closed_size == 0)
        writer->closed_size = metric_writer_size(writer);
}

struct batch *metric_writer_finish(struct metric_writer *writer)
{
    close_resource(writer);
    struct nested_output *output = &writer->output;
    struct batch *batch = NULL;
    if (output->refused_bytes == 0) {
        batch = batch_create(METRICS, 1);
        if (output->buffer != NULL) {
            output->buffer = buffer_shrink(output->buffer);
            batch_append(batch, output->buffer, buffer_slice(output->buffer));
        }
        batch->items = writer->points;
    }
    metric_writer_fini(writer);
    return batch;
}

/* The open metric ends, since its bytes may move when it does. */
struct metric_writer_mark metric_writer_mark(struct metric_writer *writer)
{
    close_metric(writer);
    writer->closed_size = 0;
    return (struct metric_writer_mark){*writer, metric_writer_size(writer)};
}

void metric_writer_undo(struct metric_writer *writer, const struct metric_writer_mark *mark)
{
    struct nested_output output = writer->output;
    size_t closed = mark->writer.resource.begin > 0 ? writer->closed_size : 0;
    output.refused_bytes = 0;
    nested_output_cut(&output, closed > 0 ? closed : mark->size);
    *writer = mark->writer;
    writer->output = output;
    /* It ended since, and its bytes may have moved: it stays so. */
    if (closed > 0) {
        writer->scope.begin = 0;
        writer->resource.begin = 0;
    }
}

bool metric_writer_is_whole(struct metric_writer *writer)
{
    /* Each message that ends may need room for a longer length. */
    enum { OPEN_MESSAGES = 4 };
    return nested_output_has_room(&writer->output, OPEN_MESSAGES * WIRE_VARINT_BYTES_MAX);
}

/* Encoded KeyValues, fields 1, as fields `number`. Both tags take one byte. */
static void put_attributes(struct metric_writer *writer, uint32_t number, struct slice attributes)
{
    struct nested_output *output = &writer->output;
    size_t from = nested_output_size(output);
    nested_put_raw(output, attributes);
    if (number == ATTRIBUTE || attributes.size == 0 || output->refused_bytes > 0)
        return;
    assert(wire_tag(number, WIRE_BYTES) < 0x80);
    struct wire_reader reader = wire_reader_of(attributes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        size_t place = (size_t)(field.whole.data - attributes.data);
        output->buffer->data[from + place] = (uint8_t)wire_tag(number, WIRE_BYTES);
    }
}

static void put_text(struct nested_output *output, uint32_t number, struct slice text)
{
    if (text.size > 0)
        nested_put_bytes(output, number, text);
}

void metric_writer_begin_resource(struct metric_writer *writer, struct slice attributes)
{
    struct nested_output *output = &writer->output;
    close_resource(writer);
    writer->resource = nested_put_begin(output, REQUEST_RESOURCE_METRICS, LARGE_LENGTH_BYTES);
    nested_put_bytes(output, RESOURCE_METRICS_RESOURCE, attributes);
}

void metric_writer_begin_scope(struct metric_writer *writer, struct slice name,
                               struct slice version)
{
    struct nested_output *output = &writer->output;
    close_scope(writer);
    writer->scope = nested_put_begin(output, RESOURCE_METRICS_SCOPE_METRICS, LARGE_LENGTH_BYTES);
    struct nested_message scope = nested_put_begin(output, SCOPE_METRICS_SCOPE, SMALL_LENGTH_BYTES);
    put_text(output, SCOPE_NAME, name);
    put_text(output, SCOPE_VERSION, version);
    nested_put_end(output, scope);
}

void metric_writer_begin_metric(struct metric_writer *writer, const struct metric_head *head)
{
    struct nested_output *output = &writer->output;
    close_metric(writer);
    writer->kind = head->kind;
    writer->metric = nested_put_begin(output, SCOPE_METRICS_METRICS, LARGE_LENGTH_BYTES);
    put_text(output, METRIC_NAME, head->name);
    put_text(output, METRIC_DESCRIPTION, head->description);
    put_text(output, METRIC_UNIT, head->unit);
    writer->data = nested_put_begin(output, (uint32_t)head->kind, LARGE_LENGTH_BYTES);
    if (head->kind != METRIC_GAUGE)
        nested_put_number(output, DATA_TEMPORALITY, head->temporality);
    if (head->kind == METRIC_SUM && head->is_monotonic)
        nested_put_number(output, DATA_IS_MONOTONIC, 1);
}

static void put_id(struct nested_output *output, uint32_t number, const uint8_t *id, size_t size)
{
    uint8_t used = 0;
    for (size_t i = 0; i < size; i++)
        used |= id[i];
    if (used != 0)
        nested_put_bytes(output, number, slice_of(id, size));
}

static void put_exemplars(struct metric_writer *writer, const struct point_head *head)
{
    struct nested_output *output = &writer->output;
    uint32_t number = metric_point_exemplars(writer->kind);
    for (size_t i = 0; i < head->exemplars_count; i++) {
        const struct point_exemplar *exemplar = &head->exemplars[i];
        struct nested_message message = nested_put_begin(output, number, SMALL_LENGTH_BYTES);
        nested_put_fixed64(output, EXEMPLAR_TIME, exemplar->time_ns);
        nested_put_fixed64(output, EXEMPLAR_AS_DOUBLE, double_bits(exemplar->value));
        put_id(output, EXEMPLAR_SPAN_ID, exemplar->span_id, sizeof(exemplar->span_id));
        put_id(output, EXEMPLAR_TRACE_ID, exemplar->trace_id, sizeof(exemplar->trace_id));
        put_attributes(writer, EXEMPLAR_ATTRIBUTES, exemplar->attributes);
        nested_put_end(output, message);
    }
}

static struct nested_message begin_point(struct metric_writer *writer,
                                         const struct point_head *head)
{
    struct nested_output *output = &writer->output;
    assert(writer->data.begin > 0 || output->refused_bytes > 0);
    struct nested_message point = nested_put_begin(output, DATA_POINTS, POINT_LENGTH_BYTES);
    put_attributes(writer, metric_point_attributes(writer->kind), head->attributes);
    if (head->start_ns != 0)
        nested_put_fixed64(output, POINT_START, head->start_ns);
    nested_put_fixed64(output, POINT_TIME, head->time_ns);
    return point;
}

static void end_point(struct metric_writer *writer, const struct point_head *head,
                      struct nested_message point)
{
    put_exemplars(writer, head);
    nested_put_end(&writer->output, point);
    writer->points++;
}

static void put_number(struct metric_writer *writer, const struct point_head *head, uint32_t number,
                       uint64_t bits)
{
    assert(writer->kind == METRIC_GAUGE || writer->kind == METRIC_SUM);
    struct nested_message point = begin_point(writer, head);
    nested_put_fixed64(&writer->output, number, bits);
    end_point(writer, head, point);
}

void metric_writer_put_integer(struct metric_writer *writer, const struct point_head *head,
                               int64_t value)
{
    put_number(writer, head, NUMBER_AS_INT, (uint64_t)value);
}

void metric_writer_put_double(struct metric_writer *writer, const struct point_head *head,
                              double value)
{
    put_number(writer, head, NUMBER_AS_DOUBLE, double_bits(value));
}

void metric_writer_put_histogram(struct metric_writer *writer, const struct point_head *head,
                                 const struct histogram_value *value)
{
    struct nested_output *output = &writer->output;
    assert(writer->kind == METRIC_HISTOGRAM);
    struct nested_message point = begin_point(writer, head);
    nested_put_fixed64(output, POINT_COUNT, value->count);
    nested_put_fixed64(output, POINT_SUM, double_bits(value->sum));
    nested_put_bytes(output, HISTOGRAM_BUCKET_COUNTS,
                     slice_of(value->counts, (value->bounds_count + 1) * sizeof(uint64_t)));
    if (value->bounds_count > 0)
        nested_put_bytes(output, HISTOGRAM_BOUNDS,
                         slice_of(value->bounds, value->bounds_count * sizeof(double)));
    end_point(writer, head, point);
}

/* Bucket counts are varints here; those of a histogram are fixed64. */
static void put_buckets(struct nested_output *output, const struct exponential_histogram *histogram)
{
    uint32_t count = exponential_histogram_buckets(histogram);
    if (count == 0)
        return;
    struct nested_message buckets =
        nested_put_begin(output, EXPONENTIAL_POSITIVE, POINT_LENGTH_BYTES);
    nested_put_number(output, BUCKETS_OFFSET, zigzag(exponential_histogram_offset(histogram)));
    struct nested_message counts = nested_put_begin(output, BUCKETS_COUNTS, POINT_LENGTH_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t room[WIRE_VARINT_BYTES_MAX];
        struct wire_writer varint = wire_writer_of(room, sizeof(room));
        wire_write_varint(&varint, exponential_histogram_bucket(histogram, i));
        nested_put_raw(output, wire_written(&varint));
    }
    nested_put_end(output, counts);
    nested_put_end(output, buckets);
}

void metric_writer_put_exponential(struct metric_writer *writer, const struct point_head *head,
                                   const struct exponential_histogram *histogram)
{
    struct nested_output *output = &writer->output;
    assert(writer->kind == METRIC_EXPONENTIAL);
    struct nested_message point = begin_point(writer, head);
    nested_put_fixed64(output, POINT_COUNT, histogram->count);
    nested_put_fixed64(output, POINT_SUM, double_bits(histogram->sum));
    nested_put_number(output, EXPONENTIAL_SCALE, zigzag(exponential_histogram_scale(histogram)));
    nested_put_fixed64(output, EXPONENTIAL_ZERO_COUNT, histogram->zero_count);
    put_buckets(output, histogram);
    if (histogram->count > 0) {
        nested_put_fixed64(output, EXPONENTIAL_MIN, double_bits(histogram->min));
        nested_put_fixed64(output, EXPONENTIAL_MAX, double_bits(histogram->max));
    }
    end_point(writer, head, point);
}

void metric_attribute_put_value(struct nested_output *output, struct slice key, struct slice value)
{
    size_t size =
        wire_field_size(KEY_VALUE_KEY, key.size) + wire_field_size(KEY_VALUE_VALUE, value.size);
    struct nested_message attribute =
        nested_put_begin(output, ATTRIBUTE, (uint8_t)wire_varint_size(size));
    nested_put_bytes(output, KEY_VALUE_KEY, key);
    nested_put_bytes(output, KEY_VALUE_VALUE, value);
    nested_put_end(output, attribute);
}

void metric_attribute_put_string(struct nested_output *output, struct slice key, struct slice text)
{
    size_t value_size = wire_field_size(ANY_VALUE_STRING, text.size);
    size_t size =
        wire_field_size(KEY_VALUE_KEY, key.size) + wire_field_size(KEY_VALUE_VALUE, value_size);
    struct nested_message attribute =
        nested_put_begin(output, ATTRIBUTE, (uint8_t)wire_varint_size(size));
    nested_put_bytes(output, KEY_VALUE_KEY, key);
    struct nested_message value =
        nested_put_begin(output, KEY_VALUE_VALUE, (uint8_t)wire_varint_size(value_size));
    nested_put_bytes(output, ANY_VALUE_STRING, text);
    nested_put_end(output, value);
    nested_put_end(output, attribute);
}

void metric_attribute_put_bool(struct nested_output *output, struct slice key, bool value)
{
    const uint8_t encoded[] = {ANY_VALUE_BOOL << 3 | WIRE_VARINT, value};
    metric_attribute_put_value(output, key, slice_of(encoded, sizeof(encoded)));
}
