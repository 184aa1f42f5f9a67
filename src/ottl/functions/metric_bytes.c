/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions that make metrics share. */
#include "src/ottl/functions/metric_bytes.h"

#include "src/ottl/ottl_rewrite.h"

enum { FIXED64_FIELD = 9 };

const char *metric_kind_name(enum metric_kind kind)
{
    return kind == METRIC_GAUGE         ? "Gauge"
           : kind == METRIC_SUM         ? "Sum"
           : kind == METRIC_HISTOGRAM   ? "Histogram"
           : kind == METRIC_EXPONENTIAL ? "ExponentialHistogram"
           : kind == METRIC_SUMMARY     ? "Summary"
                                        : "Empty";
}

bool metric_room(struct ottl_call *call, size_t bytes, struct wire_writer *ret)
{
    uint8_t *room = ottl_alloc(call, bytes);
    if (room == NULL)
        return false;
    *ret = wire_writer_of(room, bytes);
    return true;
}

bool metric_read_current(struct ottl_call *call, struct slice *ret_bytes, struct metric *ret_metric)
{
    if (!ottl_metric_current(call->run, ret_bytes))
        return false;
    *ret_metric = metric_read(*ret_bytes);
    return true;
}

struct slice metric_joined(struct ottl_call *call, struct slice first, struct slice second)
{
    uint8_t *room = ottl_alloc(call, first.size + second.size);
    if (room == NULL)
        return slice_of(NULL, 0);
    if (first.size > 0)
        memcpy(room, first.data, first.size);
    if (second.size > 0)
        memcpy(room + first.size, second.data, second.size);
    return slice_of(room, first.size + second.size);
}

static void put_text(struct wire_writer *writer, uint32_t number, struct slice text)
{
    if (text.size > 0)
        wire_write_bytes(writer, number, text);
}

bool metric_write(struct ottl_call *call, const struct metric *metric, enum metric_kind kind,
                  struct slice data, struct slice *ret)
{
    struct wire_writer writer;
    size_t bytes = metric->name.size + metric->description.size + metric->unit.size + data.size +
                   4 * METRIC_HEADER_MAX;
    if (!metric_room(call, bytes, &writer))
        return false;
    put_text(&writer, METRIC_NAME, metric->name);
    put_text(&writer, METRIC_DESCRIPTION, metric->description);
    put_text(&writer, METRIC_UNIT, metric->unit);
    wire_write_bytes(&writer, (uint32_t)kind, data);
    *ret = wire_written(&writer);
    return true;
}

void metric_put_sum_fields(struct wire_writer *writer, uint64_t temporality, bool is_monotonic)
{
    if (temporality != 0)
        wire_write_number(writer, DATA_TEMPORALITY, temporality);
    if (is_monotonic)
        wire_write_number(writer, DATA_IS_MONOTONIC, 1);
}

size_t metric_attributes_size(struct slice point, uint32_t number)
{
    struct wire_reader reader = wire_reader_of(point);
    struct wire_field field;
    size_t size = 0;
    while (wire_next_field(&reader, &field))
        if (field.number == number && field.type == WIRE_BYTES)
            size += wire_field_size(NUMBER_ATTRIBUTES, field.bytes.size);
    return size;
}

static void copy_attributes(struct wire_writer *writer, struct slice point, uint32_t number)
{
    struct wire_reader reader = wire_reader_of(point);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == number && field.type == WIRE_BYTES)
            wire_write_bytes(writer, NUMBER_ATTRIBUTES, field.bytes);
}

void metric_put_number(struct wire_writer *writer, const struct metric_point *point,
                       uint32_t number, uint64_t value, struct slice extra)
{
    const uint32_t attributes = metric_point_attributes(point->kind);
    size_t size = metric_attributes_size(point->bytes, attributes) + extra.size + FIXED64_FIELD;
    size += point->start_ns != 0 ? FIXED64_FIELD : 0;
    size += point->time_ns != 0 ? FIXED64_FIELD : 0;
    wire_write_header(writer, DATA_POINTS, size);
    copy_attributes(writer, point->bytes, attributes);
    wire_write_raw(writer, extra);
    if (point->start_ns != 0)
        wire_write_fixed64(writer, POINT_START, point->start_ns);
    if (point->time_ns != 0)
        wire_write_fixed64(writer, POINT_TIME, point->time_ns);
    wire_write_fixed64(writer, number, value);
}
