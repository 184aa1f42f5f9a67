/* SPDX-License-Identifier: Apache-2.0 */
/* Spans as protobuf: PostSpansRequest of collector.proto and model.proto (jaeger.api_v2). Fields
 * with another wire type than theirs are unknown ones, which are skipped. On the thread of the
 * request. */
#include "src/jaeger/jaeger_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/otlp/wire.h"

enum { REQUEST_BATCH = 1 };
enum { BATCH_SPANS = 1, BATCH_PROCESS = 2 };
enum { PROCESS_SERVICE = 1, PROCESS_TAGS = 2 };
enum { LOG_TIMESTAMP = 1, LOG_FIELDS = 2 };
enum { TIME_SECONDS = 1, TIME_NANOS = 2 };
enum { REFERENCE_TRACE_ID = 1, REFERENCE_SPAN_ID = 2, REFERENCE_TYPE = 3 };

enum {
    TAG_KEY = 1,
    TAG_TYPE = 2,
    TAG_STRING = 3,
    TAG_BOOL = 4,
    TAG_INT = 5,
    TAG_DOUBLE = 6,
    TAG_BYTES = 7,
};

enum {
    SPAN_TRACE_ID = 1,
    SPAN_ID = 2,
    SPAN_NAME = 3,
    SPAN_REFERENCES = 4,
    SPAN_START = 6,
    SPAN_DURATION = 7,
    SPAN_TAGS = 8,
    SPAN_LOGS = 9,
    SPAN_PROCESS = 10,
};

/* ---- Each reads one message; false: it is malformed, or there is no memory ---- */

static bool is_whole(struct jaeger_request *request, const struct wire_reader *reader,
                     const char *place)
{
    return reader->failure == NULL ||
           jaeger_malformed(request, reader->at, place, reader->failure, NULL);
}

/* A Timestamp or Duration in nanoseconds. Those that 64 bits cannot hold are refused. */
static bool read_time(struct jaeger_request *request, struct slice message, const char *place,
                      int64_t *ret_ns)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    int64_t seconds = 0;
    int64_t nanos = 0;
    while (wire_read_field(&reader, &field)) {
        if (field.type == WIRE_VARINT && field.number == TIME_SECONDS)
            seconds = (int64_t)field.number_value;
        else if (field.type == WIRE_VARINT && field.number == TIME_NANOS)
            nanos = (int32_t)field.number_value;
    }
    if (!is_whole(request, &reader, place))
        return false;
    if (__builtin_mul_overflow(seconds, (int64_t)NS_PER_S, &seconds) ||
        __builtin_add_overflow(seconds, nanos, ret_ns))
        return jaeger_malformed(request, message.data, place, "a time out of range",
                                "nanoseconds since 1970 that fit in 64 bits");
    return true;
}

static bool read_id(struct jaeger_request *request, struct slice id, const char *place,
                    uint8_t *ret_id, size_t size)
{
    char found[32];
    /* Trace IDs may be short. */
    bool is_short = size == JAEGER_TRACE_ID_BYTES && id.size == JAEGER_SPAN_ID_BYTES;
    if (id.size == size || is_short) {
        memset(ret_id, 0, size);
        memcpy(ret_id + size - id.size, id.data, id.size);
        return true;
    }
    snprintf(found, sizeof(found), "%zu bytes", id.size);
    return jaeger_malformed(request, id.data, place, found,
                            size == JAEGER_SPAN_ID_BYTES ? "8" : "16 or 8");
}

static bool read_tag(struct jaeger_request *request, struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    struct jaeger_tag tag = {.key = slice_of("", 0), .bytes = slice_of("", 0)};
    struct slice text = slice_of("", 0);
    struct slice bytes = slice_of("", 0);
    int32_t type = JAEGER_STRING;
    char name[16];
    while (wire_read_field(&reader, &field)) {
        if (field.type == WIRE_VARINT) {
            if (field.number == TAG_TYPE)
                type = (int32_t)field.number_value;
            else if (field.number == TAG_BOOL)
                tag.boolean = field.number_value != 0;
            else if (field.number == TAG_INT)
                tag.integer = (int64_t)field.number_value;
        } else if (field.type == WIRE_FIXED64 && field.number == TAG_DOUBLE) {
            memcpy(&tag.real, &field.number_value, sizeof(tag.real));
        } else if (field.type == WIRE_BYTES) {
            if (field.number == TAG_KEY)
                tag.key = field.bytes;
            else if (field.number == TAG_STRING)
                text = field.bytes;
            else if (field.number == TAG_BYTES)
                bytes = field.bytes;
        }
    }
    if (!is_whole(request, &reader, "KeyValue") || !jaeger_valid_text(request, tag.key, &tag.key))
        return false;
    if (type < JAEGER_STRING || type > JAEGER_BYTES) {
        snprintf(name, sizeof(name), "%" PRId32, type);
        return jaeger_add_unknown(request, tag.key, name);
    }
    tag.type = (enum jaeger_value_type)type;
    if (tag.type == JAEGER_BYTES)
        tag.bytes = bytes;
    else if (tag.type == JAEGER_STRING && !jaeger_valid_text(request, text, &tag.bytes))
        return false;
    return jaeger_add_tag(request, &tag);
}

static bool read_log(struct jaeger_request *request, struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    size_t first = request->tags_count;
    int64_t time_ns = 0;
    while (wire_read_field(&reader, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == LOG_TIMESTAMP &&
            !read_time(request, field.bytes, "Log.timestamp", &time_ns))
            return false;
        if (field.number == LOG_FIELDS && !read_tag(request, field.bytes))
            return false;
    }
    return is_whole(request, &reader, "Log") && jaeger_add_event(request, first, time_ns);
}

static bool read_reference(struct jaeger_request *request, struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    struct jaeger_reference reference = {.type = JAEGER_CHILD_OF};
    while (wire_read_field(&reader, &field)) {
        if (field.type == WIRE_VARINT && field.number == REFERENCE_TYPE)
            reference.type = (int32_t)field.number_value;
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == REFERENCE_TRACE_ID &&
            !read_id(request, field.bytes, "SpanRef.trace_id", reference.trace_id,
                     sizeof(reference.trace_id)))
            return false;
        if (field.number == REFERENCE_SPAN_ID &&
            !read_id(request, field.bytes, "SpanRef.span_id", reference.span_id,
                     sizeof(reference.span_id)))
            return false;
    }
    return is_whole(request, &reader, "SpanRef") && jaeger_add_reference(request, &reference);
}

static bool read_process(struct jaeger_request *request, struct slice message,
                         struct nested_output *output)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    size_t first = request->tags_count;
    struct slice service = slice_of("", 0);
    while (wire_read_field(&reader, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == PROCESS_SERVICE && !jaeger_valid_text(request, field.bytes, &service))
            return false;
        if (field.number == PROCESS_TAGS && !read_tag(request, field.bytes))
            return false;
    }
    return is_whole(request, &reader, "Process") &&
           jaeger_put_process(request, output, first, service);
}

/* A field of Span with a length. */
static bool read_long_field(struct jaeger_request *request, const struct wire_field *field,
                            int64_t *duration_ns)
{
    struct jaeger_span *span = &request->span;
    switch (field->number) {
    case SPAN_TRACE_ID:
        return read_id(request, field->bytes, "Span.trace_id", span->trace_id,
                       sizeof(span->trace_id));
    case SPAN_ID:
        return read_id(request, field->bytes, "Span.span_id", span->id, sizeof(span->id));
    case SPAN_NAME:
        return jaeger_valid_text(request, field->bytes, &span->name);
    case SPAN_REFERENCES:
        return read_reference(request, field->bytes);
    case SPAN_START:
        return read_time(request, field->bytes, "Span.start_time", &span->start_ns);
    case SPAN_DURATION:
        return read_time(request, field->bytes, "Span.duration", duration_ns);
    case SPAN_TAGS:
        return read_tag(request, field->bytes);
    case SPAN_LOGS:
        return read_log(request, field->bytes);
    case SPAN_PROCESS:
        span->has_own_process = true;
        return read_process(request, field->bytes, &request->own_process);
    default:
        return true;
    }
}

static bool read_span(struct jaeger_request *request, struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    int64_t duration_ns = 0;
    /* As the Go collector, which drops spans that are empty. */
    if (message.size == 0)
        return true;
    jaeger_span_begin(request);
    while (wire_read_field(&reader, &field))
        if (field.type == WIRE_BYTES && !read_long_field(request, &field, &duration_ns))
            return false;
    if (!is_whole(request, &reader, "Span"))
        return false;
    if (__builtin_add_overflow(request->span.start_ns, duration_ns, &request->span.end_ns))
        request->span.end_ns = INT64_MAX;
    return jaeger_span_end(request);
}

/* Reads the spans of a batch, or only its process, which may follow them. */
static bool read_batch(struct jaeger_request *request, struct slice message, unsigned wanted)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.type != WIRE_BYTES || field.number != wanted)
            continue;
        bool is_read = wanted == BATCH_PROCESS
                           ? read_process(request, field.bytes, &request->process)
                           : read_span(request, field.bytes);
        if (!is_read)
            return false;
    }
    return is_whole(request, &reader, "Batch");
}

void jaeger_read_proto(struct jaeger_request *request)
{
    struct wire_reader reader = wire_reader_of(request->body);
    struct wire_field field;
    while (wire_read_field(&reader, &field))
        if (field.number == REQUEST_BATCH && field.type == WIRE_BYTES &&
            (!read_batch(request, field.bytes, BATCH_PROCESS) ||
             !read_batch(request, field.bytes, BATCH_SPANS)))
            return;
    is_whole(request, &reader, "PostSpansRequest");
}
