/* SPDX-License-Identifier: Apache-2.0 */
/* Spans as protobuf: ListOfSpans of zipkin.proto (package zipkin.proto3). Fields with another wire
 * type than theirs are unknown ones, which are skipped. On the thread of the request. */
#include "src/zipkin/zipkin_parts.h"

#include <assert.h>
#include <stdio.h>

#include "src/base/utf8.h"
#include "src/otlp/wire.h"

enum { LIST_SPANS = 1 };

enum {
    SPAN_TRACE_ID = 1,
    SPAN_PARENT_ID = 2,
    SPAN_ID = 3,
    SPAN_KIND = 4,
    SPAN_NAME = 5,
    SPAN_TIMESTAMP = 6,
    SPAN_DURATION = 7,
    SPAN_LOCAL_ENDPOINT = 8,
    SPAN_REMOTE_ENDPOINT = 9,
    SPAN_ANNOTATIONS = 10,
    SPAN_TAGS = 11,
};

enum { ENDPOINT_SERVICE = 1, ENDPOINT_IPV4 = 2, ENDPOINT_IPV6 = 3, ENDPOINT_PORT = 4 };
enum { ANNOTATION_TIMESTAMP = 1, ANNOTATION_VALUE = 2 };
enum { TAG_KEY = 1, TAG_VALUE = 2 };

/* The kinds of Zipkin, CLIENT first, in OTLP. */
static const unsigned kinds[] = {0, 3, 2, 4, 5};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- Each reads one message; false: it is malformed, or there is no memory ---- */

static bool is_whole(struct zipkin_request *request, const struct wire_reader *reader,
                     const char *place)
{
    return reader->failure == NULL ||
           zipkin_malformed(request, reader->at, place, reader->failure, NULL);
}

static bool read_text(struct zipkin_request *request, const struct wire_field *field,
                      const char *place, struct slice *ret_text)
{
    *ret_text = field->bytes;
    return utf8_is_valid(field->bytes) || zipkin_malformed(request, field->bytes.data, place,
                                                           "a string that is not UTF-8", "UTF-8");
}

static bool read_endpoint(struct zipkin_request *request, struct slice message, const char *place,
                          struct zipkin_endpoint *endpoint)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        bool is_bytes = field.type == WIRE_BYTES;
        if (field.number == ENDPOINT_SERVICE && is_bytes) {
            if (!read_text(request, &field, place, &endpoint->service))
                return false;
        } else if (field.number == ENDPOINT_IPV4 && is_bytes) {
            if (!zipkin_print_address(request, field.bytes, &endpoint->ipv4))
                return false;
        } else if (field.number == ENDPOINT_IPV6 && is_bytes) {
            if (!zipkin_print_address(request, field.bytes, &endpoint->ipv6))
                return false;
        } else if (field.number == ENDPOINT_PORT && field.type == WIRE_VARINT) {
            endpoint->port = (uint16_t)field.number_value;
        }
    }
    return is_whole(request, &reader, place);
}

static bool read_annotation(struct zipkin_request *request, struct slice message)
{
    static const char place[] = "Span.annotations";
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    uint64_t timestamp = 0;
    struct slice value = slice_of("", 0);
    while (wire_read_field(&reader, &field)) {
        if (field.number == ANNOTATION_TIMESTAMP && field.type == WIRE_FIXED64)
            timestamp = field.number_value;
        else if (field.number == ANNOTATION_VALUE && field.type == WIRE_BYTES &&
                 !read_text(request, &field, place, &value))
            return false;
    }
    return is_whole(request, &reader, place) &&
           zipkin_add_event(request, timestamp * ZIPKIN_NS_PER_US, value);
}

static bool read_tag(struct zipkin_request *request, struct slice message)
{
    static const char place[] = "Span.tags";
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    struct zipkin_tag tag = {.key = slice_of("", 0), .text = slice_of("", 0)};
    while (wire_read_field(&reader, &field)) {
        bool is_bytes = field.type == WIRE_BYTES;
        if (is_bytes && field.number == TAG_KEY && !read_text(request, &field, place, &tag.key))
            return false;
        if (is_bytes && field.number == TAG_VALUE && !read_text(request, &field, place, &tag.text))
            return false;
    }
    return is_whole(request, &reader, place) && zipkin_add_tag(request, &tag);
}

static bool check_id(struct zipkin_request *request, struct slice message, const char *place,
                     struct slice id, size_t size, uint8_t *ret_id)
{
    char found[32];
    char expected[32];
    if (id.size == size) {
        memcpy(ret_id, id.data, size);
        return true;
    }
    snprintf(found, sizeof(found), "%zu bytes", id.size);
    snprintf(expected, sizeof(expected), "%zu", size);
    return zipkin_malformed(request, id.size > 0 ? id.data : message.data, place, found, expected);
}

/* A field of Span with a length. */
static bool read_long_field(struct zipkin_request *request, const struct wire_field *field)
{
    struct zipkin_span *span = &request->span;
    switch (field->number) {
    case SPAN_NAME:
        return read_text(request, field, "Span.name", &span->name);
    case SPAN_LOCAL_ENDPOINT:
        return read_endpoint(request, field->bytes, "Span.local_endpoint", &span->local);
    case SPAN_REMOTE_ENDPOINT:
        return read_endpoint(request, field->bytes, "Span.remote_endpoint", &span->remote);
    case SPAN_ANNOTATIONS:
        return read_annotation(request, field->bytes);
    case SPAN_TAGS:
        return read_tag(request, field->bytes);
    default:
        return true;
    }
}

static bool read_span(struct zipkin_request *request, struct slice message)
{
    struct zipkin_span *span = &request->span;
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    struct slice trace_id = slice_of("", 0);
    struct slice parent_id = slice_of("", 0);
    struct slice id = slice_of("", 0);
    uint64_t timestamp = 0;
    uint64_t duration = 0;
    zipkin_span_begin(request);
    while (wire_read_field(&reader, &field)) {
        if (field.type == WIRE_VARINT && field.number == SPAN_KIND)
            span->kind = field.number_value < KINDS ? kinds[field.number_value] : 0;
        else if (field.type == WIRE_VARINT && field.number == SPAN_DURATION)
            duration = field.number_value;
        else if (field.type == WIRE_FIXED64 && field.number == SPAN_TIMESTAMP)
            timestamp = field.number_value;
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == SPAN_TRACE_ID)
            trace_id = field.bytes;
        else if (field.number == SPAN_PARENT_ID)
            parent_id = field.bytes;
        else if (field.number == SPAN_ID)
            id = field.bytes;
        else if (!read_long_field(request, &field))
            return false;
    }
    if (!is_whole(request, &reader, "Span") ||
        !check_id(request, message, "Span.trace_id", trace_id, sizeof(span->trace_id),
                  span->trace_id) ||
        !check_id(request, message, "Span.id", id, sizeof(span->id), span->id) ||
        (parent_id.size > 0 && !check_id(request, message, "Span.parent_id", parent_id,
                                         sizeof(span->parent_id), span->parent_id)))
        return false;
    span->has_start = true;
    span->start_ns = timestamp * ZIPKIN_NS_PER_US;
    span->end_ns = span->start_ns + duration * ZIPKIN_NS_PER_US;
    return zipkin_v2_end(request);
}

void zipkin_read_proto(struct zipkin_request *request)
{
    struct wire_reader reader = wire_reader_of(request->body);
    struct wire_field field;
    while (wire_read_field(&reader, &field))
        if (field.number == LIST_SPANS && field.type == WIRE_BYTES &&
            !read_span(request, field.bytes))
            return;
    is_whole(request, &reader, "ListOfSpans");
}
