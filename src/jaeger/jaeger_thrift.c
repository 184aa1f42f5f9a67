/* SPDX-License-Identifier: Apache-2.0 */
/* Spans as Thrift: a Batch of jaeger.thrift, alone or as the argument of a call. Fields with
 * another type than theirs are unknown ones, which are skipped; what follows the batch is ignored.
 * On the thread of the request. */
#include "src/jaeger/jaeger_parts.h"

#include <stdio.h>

#include "src/thrift/thrift_reader.h"

/* Of jaeger.thrift. */
enum {
    BATCH_PROCESS = 1,
    BATCH_SPANS = 2,
    PROCESS_SERVICE = 1,
    PROCESS_TAGS = 2,
    TAG_KEY = 1,
    TAG_TYPE = 2,
    TAG_STRING = 3,
    TAG_DOUBLE = 4,
    TAG_BOOL = 5,
    TAG_LONG = 6,
    TAG_BINARY = 7,
    LOG_TIMESTAMP = 1,
    LOG_FIELDS = 2,
    REFERENCE_TYPE = 1,
    REFERENCE_TRACE_LOW = 2,
    REFERENCE_TRACE_HIGH = 3,
    REFERENCE_SPAN_ID = 4,
    SPAN_TRACE_LOW = 1,
    SPAN_TRACE_HIGH = 2,
    SPAN_ID = 3,
    SPAN_PARENT_ID = 4,
    SPAN_NAME = 5,
    SPAN_REFERENCES = 6,
    SPAN_FLAGS = 7,
    SPAN_START = 8,
    SPAN_DURATION = 9,
    SPAN_TAGS = 10,
    SPAN_LOGS = 11,
};

enum { NS_PER_US_INT = 1000, CALL_BATCH = 1, NAME_SHOWN_MAX = 32 };

/* Bits of the fields that a struct must have. */
enum {
    BATCH_REQUIRED = 1 << BATCH_PROCESS | 1 << BATCH_SPANS,
    PROCESS_REQUIRED = 1 << PROCESS_SERVICE,
    TAG_REQUIRED = 1 << TAG_KEY | 1 << TAG_TYPE,
    LOG_REQUIRED = 1 << LOG_TIMESTAMP | 1 << LOG_FIELDS,
    REFERENCE_REQUIRED = 1 << REFERENCE_TYPE | 1 << REFERENCE_TRACE_LOW |
                         1 << REFERENCE_TRACE_HIGH | 1 << REFERENCE_SPAN_ID,
    SPAN_REQUIRED = 1 << SPAN_TRACE_LOW | 1 << SPAN_TRACE_HIGH | 1 << SPAN_ID |
                    1 << SPAN_PARENT_ID | 1 << SPAN_NAME | 1 << SPAN_FLAGS | 1 << SPAN_START |
                    1 << SPAN_DURATION,
};

static struct jaeger_request *request_of(const struct thrift_reader *reader)
{
    return reader->context;
}

static bool has_failed(const struct thrift_reader *reader)
{
    return reader->has_failed || request_of(reader)->verdict != CONVERTED;
}

/* After the last field of a struct. False: one is missing, or a failure. */
static bool has_all(struct thrift_reader *reader, unsigned seen, unsigned required,
                    const char *what)
{
    if (has_failed(reader))
        return false;
    return (seen & required) == required ||
           thrift_fail(reader, "a struct without a required field", what);
}

static void note(unsigned *seen, const struct thrift_field *field)
{
    if (field->number > 0 && field->number < 32)
        *seen |= 1u << field->number;
}

static void read_text(struct thrift_reader *reader, struct slice *ret_text)
{
    struct slice text = thrift_read_string(reader);
    if (!has_failed(reader))
        jaeger_valid_text(request_of(reader), text, ret_text);
}

static void store_id(uint8_t *id, int64_t number)
{
    for (size_t i = 0; i < JAEGER_SPAN_ID_BYTES; i++)
        id[i] = (uint8_t)((uint64_t)number >> (56 - 8 * i));
}

static int64_t read_i64(struct thrift_reader *reader)
{
    return thrift_read_number(reader, sizeof(int64_t));
}

/* Microseconds as nanoseconds; what does not fit is the nearest. */
static int64_t nanoseconds(int64_t microseconds)
{
    int64_t result;
    if (__builtin_mul_overflow(microseconds, (int64_t)NS_PER_US_INT, &result))
        return microseconds < 0 ? INT64_MIN : INT64_MAX;
    return result;
}

static void read_list(struct thrift_reader *reader, const char *what,
                      void (*read_element)(struct thrift_reader *reader))
{
    uint32_t count = thrift_read_structs(reader, what);
    for (uint32_t i = 0; i < count && !has_failed(reader); i++)
        read_element(reader);
}

static void read_tag(struct thrift_reader *reader)
{
    static const enum jaeger_value_type types[] = {JAEGER_STRING, JAEGER_DOUBLE, JAEGER_BOOL,
                                                   JAEGER_INT, JAEGER_BYTES};
    struct jaeger_request *request = request_of(reader);
    struct jaeger_tag tag = {.key = slice_of("", 0), .bytes = slice_of("", 0)};
    struct slice text = slice_of("", 0);
    struct slice bytes = slice_of("", 0);
    struct thrift_field field = {.number = 0};
    unsigned seen = 0;
    int64_t type = 0;
    while (!has_failed(reader) && thrift_next_field(reader, &field)) {
        note(&seen, &field);
        if (thrift_is(&field, TAG_KEY, THRIFT_STRING))
            read_text(reader, &tag.key);
        else if (thrift_is(&field, TAG_TYPE, THRIFT_I32))
            type = thrift_read_number(reader, sizeof(int32_t));
        else if (thrift_is(&field, TAG_STRING, THRIFT_STRING))
            text = thrift_read_string(reader);
        else if (thrift_is(&field, TAG_DOUBLE, THRIFT_DOUBLE))
            tag.real = thrift_read_double(reader);
        else if (thrift_is(&field, TAG_BOOL, THRIFT_BOOL))
            tag.boolean = thrift_read_number(reader, 1) == 1;
        else if (thrift_is(&field, TAG_LONG, THRIFT_I64))
            tag.integer = read_i64(reader);
        else if (thrift_is(&field, TAG_BINARY, THRIFT_STRING))
            bytes = thrift_read_string(reader);
        else
            thrift_skip(reader, field.type);
    }
    if (!has_all(reader, seen, TAG_REQUIRED, "a Tag with key and vType"))
        return;
    if (type < 0 || (size_t)type >= sizeof(types) / sizeof(types[0])) {
        jaeger_add_unknown(request, tag.key, "<UNSET>");
        return;
    }
    tag.type = types[type];
    if (tag.type == JAEGER_BYTES)
        tag.bytes = bytes;
    if (tag.type == JAEGER_STRING && !jaeger_valid_text(request, text, &tag.bytes))
        return;
    jaeger_add_tag(request, &tag);
}

static void read_log(struct thrift_reader *reader)
{
    struct jaeger_request *request = request_of(reader);
    struct thrift_field field = {.number = 0};
    size_t first = request->tags_count;
    unsigned seen = 0;
    int64_t time = 0;
    while (!has_failed(reader) && thrift_next_field(reader, &field)) {
        note(&seen, &field);
        if (thrift_is(&field, LOG_TIMESTAMP, THRIFT_I64))
            time = read_i64(reader);
        else if (thrift_is(&field, LOG_FIELDS, THRIFT_LIST))
            read_list(reader, "fields", read_tag);
        else
            thrift_skip(reader, field.type);
    }
    if (has_all(reader, seen, LOG_REQUIRED, "a Log with timestamp and fields"))
        jaeger_add_event(request, first, nanoseconds(time));
}

static void read_reference(struct thrift_reader *reader)
{
    struct jaeger_reference reference = {.type = JAEGER_CHILD_OF};
    struct thrift_field field = {.number = 0};
    unsigned seen = 0;
    while (!has_failed(reader) && thrift_next_field(reader, &field)) {
        note(&seen, &field);
        if (thrift_is(&field, REFERENCE_TYPE, THRIFT_I32))
            reference.type = thrift_read_number(reader, sizeof(int32_t));
        else if (thrift_is(&field, REFERENCE_TRACE_LOW, THRIFT_I64))
            store_id(reference.trace_id + JAEGER_SPAN_ID_BYTES, read_i64(reader));
        else if (thrift_is(&field, REFERENCE_TRACE_HIGH, THRIFT_I64))
            store_id(reference.trace_id, read_i64(reader));
        else if (thrift_is(&field, REFERENCE_SPAN_ID, THRIFT_I64))
            store_id(reference.span_id, read_i64(reader));
        else
            thrift_skip(reader, field.type);
    }
    if (has_all(reader, seen, REFERENCE_REQUIRED, "a SpanRef with type and IDs"))
        jaeger_add_reference(request_of(reader), &reference);
}

static void read_process(struct thrift_reader *reader)
{
    struct jaeger_request *request = request_of(reader);
    struct slice service = slice_of("", 0);
    struct thrift_field field = {.number = 0};
    size_t first = request->tags_count;
    unsigned seen = 0;
    while (!has_failed(reader) && thrift_next_field(reader, &field)) {
        note(&seen, &field);
        if (thrift_is(&field, PROCESS_SERVICE, THRIFT_STRING))
            read_text(reader, &service);
        else if (thrift_is(&field, PROCESS_TAGS, THRIFT_LIST))
            read_list(reader, "tags", read_tag);
        else
            thrift_skip(reader, field.type);
    }
    if (has_all(reader, seen, PROCESS_REQUIRED, "a Process with serviceName"))
        jaeger_put_process(request, &request->process, first, service);
}

static void read_span(struct thrift_reader *reader)
{
    struct jaeger_request *request = request_of(reader);
    struct jaeger_span *span = &request->span;
    struct thrift_field field = {.number = 0};
    unsigned seen = 0;
    int64_t start = 0;
    int64_t duration = 0;
    jaeger_span_begin(request);
    while (!has_failed(reader) && thrift_next_field(reader, &field)) {
        note(&seen, &field);
        if (thrift_is(&field, SPAN_TRACE_LOW, THRIFT_I64))
            store_id(span->trace_id + JAEGER_SPAN_ID_BYTES, read_i64(reader));
        else if (thrift_is(&field, SPAN_TRACE_HIGH, THRIFT_I64))
            store_id(span->trace_id, read_i64(reader));
        else if (thrift_is(&field, SPAN_ID, THRIFT_I64))
            store_id(span->id, read_i64(reader));
        else if (thrift_is(&field, SPAN_PARENT_ID, THRIFT_I64))
            store_id(span->parent_id, read_i64(reader));
        else if (thrift_is(&field, SPAN_NAME, THRIFT_STRING))
            read_text(reader, &span->name);
        else if (thrift_is(&field, SPAN_REFERENCES, THRIFT_LIST))
            read_list(reader, "references", read_reference);
        else if (thrift_is(&field, SPAN_START, THRIFT_I64))
            start = read_i64(reader);
        else if (thrift_is(&field, SPAN_DURATION, THRIFT_I64))
            duration = read_i64(reader);
        else if (thrift_is(&field, SPAN_TAGS, THRIFT_LIST))
            read_list(reader, "tags", read_tag);
        else if (thrift_is(&field, SPAN_LOGS, THRIFT_LIST))
            read_list(reader, "logs", read_log);
        else
            thrift_skip(reader, field.type);
    }
    if (!has_all(reader, seen, SPAN_REQUIRED, "a Span with IDs, operationName, flags and times"))
        return;
    span->start_ns = nanoseconds(start);
    if (__builtin_add_overflow(span->start_ns, nanoseconds(duration), &span->end_ns))
        span->end_ns = INT64_MAX;
    jaeger_span_end(request);
}

/* Reads the spans of the batch, or only its process, which may follow them. */
static void read_batch(struct thrift_reader *reader, int16_t wanted)
{
    struct thrift_field field = {.number = 0};
    unsigned seen = 0;
    while (!has_failed(reader) && thrift_next_field(reader, &field)) {
        note(&seen, &field);
        if (thrift_is(&field, BATCH_PROCESS, THRIFT_STRUCT) && wanted == BATCH_PROCESS)
            read_process(reader);
        else if (thrift_is(&field, BATCH_SPANS, THRIFT_LIST) && wanted == BATCH_SPANS)
            read_list(reader, "spans", read_span);
        else
            thrift_skip(reader, field.type);
    }
    has_all(reader, seen, BATCH_REQUIRED, "a Batch with process and spans");
}

/* The reader is at the batch. */
static void read_spans_of(struct thrift_reader *reader)
{
    struct thrift_reader first = *reader;
    read_batch(&first, BATCH_PROCESS);
    if (has_failed(&first))
        *reader = first;
    else
        read_batch(reader, BATCH_SPANS);
}

/* emitBatch(1: Batch batch) of agent.thrift. */
static void read_call(struct thrift_reader *reader)
{
    char found[NAME_SHOWN_MAX + 16];
    struct thrift_field field = {.number = 0};
    struct slice name;
    if (!thrift_read_message(reader, &name))
        return;
    if (!slice_equal_text(name, "emitBatch")) {
        int size = (int)(name.size < NAME_SHOWN_MAX ? name.size : NAME_SHOWN_MAX);
        snprintf(found, sizeof(found), "a call of \"%.*s\"", size, (const char *)name.data);
        thrift_fail(reader, found, "emitBatch");
        return;
    }
    while (!has_failed(reader) && thrift_next_field(reader, &field)) {
        if (thrift_is(&field, CALL_BATCH, THRIFT_STRUCT))
            read_spans_of(reader);
        else
            thrift_skip(reader, field.type);
    }
}

void jaeger_read_thrift(struct jaeger_request *request)
{
    struct thrift_reader reader = request->form == JAEGER_COMPACT_CALL
                                      ? thrift_compact_reader_of(request->body, request)
                                      : thrift_reader_of(request->body, request);
    if (request->form == JAEGER_THRIFT)
        read_spans_of(&reader);
    else
        read_call(&reader);
    if (reader.has_failed)
        jaeger_malformed(request, reader.at, "Batch", reader.found, reader.expected);
}
