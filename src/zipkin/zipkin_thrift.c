/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of v1 as Thrift: a list of Span of zipkinCore.thrift in TBinaryProtocol
 * (thrift-binary-protocol.md of apache/thrift). Nothing is allocated for lengths that are merely
 * announced. Fields with another type than theirs are unknown ones, which are skipped; what follows
 * the list is ignored. On the thread of the request. */
#include "src/zipkin/zipkin_parts.h"

#include <assert.h>
#include <stdio.h>

#include "src/base/base64.h"
#include "src/thrift/thrift_reader.h"

/* Span, Annotation, BinaryAnnotation and Endpoint of zipkinCore.thrift. */
enum {
    SPAN_TRACE_ID = 1,
    SPAN_NAME = 3,
    SPAN_ID = 4,
    SPAN_PARENT_ID = 5,
    SPAN_ANNOTATIONS = 6,
    SPAN_BINARY_ANNOTATIONS = 8,
    SPAN_TIMESTAMP = 10,
    SPAN_DURATION = 11,
    SPAN_TRACE_ID_HIGH = 12,
    ANNOTATION_TIMESTAMP = 1,
    ANNOTATION_VALUE = 2,
    ANNOTATION_HOST = 3,
    BINARY_KEY = 1,
    BINARY_VALUE = 2,
    BINARY_TYPE = 3,
    BINARY_HOST = 4,
    ENDPOINT_IPV4 = 1,
    ENDPOINT_PORT = 2,
    ENDPOINT_SERVICE = 3,
    ENDPOINT_IPV6 = 4,
};

enum annotation_type {
    ANNOTATION_BOOL,
    ANNOTATION_BYTES,
    ANNOTATION_I16,
    ANNOTATION_I32,
    ANNOTATION_I64,
    ANNOTATION_DOUBLE,
    ANNOTATION_STRING,
};

/* One body. The place is for failures. */
struct zipkin_thrift {
    struct zipkin_request *request;
    const char *place;
};

static struct zipkin_thrift *thrift_of(const struct thrift_reader *reader)
{
    return reader->context;
}

static bool has_failed(const struct thrift_reader *reader)
{
    return reader->has_failed || thrift_of(reader)->request->verdict != CONVERTED;
}

/* A string as valid UTF-8. */
static void read_text(struct thrift_reader *reader, struct slice *ret_text)
{
    struct slice text = thrift_read_string(reader);
    if (!has_failed(reader))
        zipkin_valid_text(thrift_of(reader)->request, text, ret_text);
}

/* ---- Messages ---- */

static void read_endpoint(struct thrift_reader *reader, struct zipkin_endpoint *endpoint)
{
    const char *outer = thrift_of(reader)->place;
    struct thrift_field field = {.number = 0};
    uint8_t address[sizeof(uint32_t)];
    thrift_of(reader)->place = "Endpoint";
    while (thrift_next_field(reader, &field)) {
        if (thrift_is(&field, ENDPOINT_IPV4, THRIFT_I32)) {
            uint32_t ipv4 = (uint32_t)thrift_read_number(reader, sizeof(int32_t));
            for (size_t i = 0; i < sizeof(address); i++)
                address[i] = (uint8_t)(ipv4 >> (24 - 8 * i));
            zipkin_print_address(thrift_of(reader)->request, slice_of(address, ipv4 != 0 ? 4 : 0),
                                 &endpoint->ipv4);
        } else if (thrift_is(&field, ENDPOINT_PORT, THRIFT_I16)) {
            /* Thrift has no unsigned numbers. */
            endpoint->port = (uint16_t)thrift_read_number(reader, sizeof(int16_t));
        } else if (thrift_is(&field, ENDPOINT_SERVICE, THRIFT_STRING)) {
            read_text(reader, &endpoint->service);
        } else if (thrift_is(&field, ENDPOINT_IPV6, THRIFT_STRING)) {
            struct slice ipv6 = thrift_read_string(reader);
            if (!has_failed(reader))
                zipkin_print_address(thrift_of(reader)->request, ipv6, &endpoint->ipv6);
        } else {
            thrift_skip(reader, field.type);
        }
    }
    if (!has_failed(reader))
        thrift_of(reader)->place = outer;
}

static void read_annotation(struct thrift_reader *reader)
{
    struct thrift_field field = {.number = 0};
    struct zipkin_endpoint host = {.port = 0};
    struct slice value = slice_of("", 0);
    bool has_host = false;
    int64_t timestamp = 0;
    while (thrift_next_field(reader, &field)) {
        if (thrift_is(&field, ANNOTATION_TIMESTAMP, THRIFT_I64)) {
            timestamp = thrift_read_number(reader, sizeof(int64_t));
        } else if (thrift_is(&field, ANNOTATION_VALUE, THRIFT_STRING)) {
            read_text(reader, &value);
        } else if (thrift_is(&field, ANNOTATION_HOST, THRIFT_STRUCT)) {
            host = (struct zipkin_endpoint){.port = 0};
            has_host = true;
            read_endpoint(reader, &host);
        } else {
            thrift_skip(reader, field.type);
        }
    }
    if (!has_failed(reader))
        zipkin_v1_annotation(thrift_of(reader)->request, timestamp, value, has_host ? &host : NULL);
}

/* The first bytes as a number without sign. False: there are too few. */
static bool number_of(struct slice bytes, size_t size, uint64_t *ret_number)
{
    uint64_t number = 0;
    if (bytes.size < size)
        return false;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | bytes.data[i];
    *ret_number = number;
    return true;
}

/* Sets the tag's value from the bytes of a binary annotation. False: no memory. */
static bool set_value(struct zipkin_request *request, int32_t type, struct slice bytes,
                      struct zipkin_tag *tag)
{
    static const uint8_t sizes[] = {
        [ANNOTATION_I16] = 2, [ANNOTATION_I32] = 4, [ANNOTATION_I64] = 8, [ANNOTATION_DOUBLE] = 8};
    enum { UNKNOWN_TEXT_MAX = 64 };
    uint64_t number;
    char *room;
    switch (type) {
    case ANNOTATION_BOOL:
        tag->type = ZIPKIN_BOOL;
        tag->boolean = bytes.size == 1 && bytes.data[0] == 1;
        return true;
    case ANNOTATION_BYTES:
        room = arena_try_alloc(&request->texts, base64_size(bytes.size));
        if (room == NULL)
            return zipkin_no_memory(request, base64_size(bytes.size));
        base64_encode(bytes, room);
        tag->text = slice_of(room, base64_size(bytes.size));
        return true;
    case ANNOTATION_I16:
    case ANNOTATION_I32:
    case ANNOTATION_I64:
    case ANNOTATION_DOUBLE:
        if (!number_of(bytes, sizes[type], &number)) {
            tag->text = slice_of_text("<not enough bytes representing the number>");
        } else if (type == ANNOTATION_DOUBLE) {
            tag->type = ZIPKIN_DOUBLE;
            memcpy(&tag->real, &number, sizeof(number));
        } else {
            tag->type = ZIPKIN_INT;
            tag->integer = (int64_t)number;
        }
        return true;
    case ANNOTATION_STRING:
        return zipkin_valid_text(request, bytes, &tag->text);
    default:
        room = arena_try_alloc(&request->texts, UNKNOWN_TEXT_MAX);
        if (room == NULL)
            return zipkin_no_memory(request, UNKNOWN_TEXT_MAX);
        tag->text = slice_of(
            room, (size_t)snprintf(room, UNKNOWN_TEXT_MAX,
                                   "<unknown zipkin v1 binary annotation type (%d)>", (int)type));
        return true;
    }
}

static void read_binary(struct thrift_reader *reader)
{
    struct zipkin_request *request = thrift_of(reader)->request;
    struct thrift_field field = {.number = 0};
    struct zipkin_endpoint host = {.service = slice_of("", 0)};
    struct zipkin_tag tag = {.key = slice_of("", 0), .text = slice_of("", 0)};
    struct slice bytes = slice_of("", 0);
    struct slice text;
    bool has_host = false;
    int32_t type = ANNOTATION_BOOL;
    while (thrift_next_field(reader, &field)) {
        if (thrift_is(&field, BINARY_KEY, THRIFT_STRING)) {
            read_text(reader, &tag.key);
        } else if (thrift_is(&field, BINARY_VALUE, THRIFT_STRING)) {
            bytes = thrift_read_string(reader);
        } else if (thrift_is(&field, BINARY_TYPE, THRIFT_I32)) {
            type = (int32_t)thrift_read_number(reader, sizeof(int32_t));
        } else if (thrift_is(&field, BINARY_HOST, THRIFT_STRUCT)) {
            host = (struct zipkin_endpoint){.service = slice_of("", 0)};
            has_host = true;
            read_endpoint(reader, &host);
        } else {
            thrift_skip(reader, field.type);
        }
    }
    if (!has_failed(reader) && set_value(request, type, bytes, &tag) &&
        zipkin_valid_text(request, bytes, &text))
        zipkin_v1_binary(request, &tag, text, has_host ? &host : NULL);
}

/* The elements of a list of structs; false after a failure. */
static bool read_list(struct thrift_reader *reader, const char *what,
                      void (*read_element)(struct thrift_reader *reader))
{
    uint32_t count = thrift_read_structs(reader, what);
    for (uint32_t i = 0; i < count && !has_failed(reader); i++)
        read_element(reader);
    return !has_failed(reader);
}

static void store_id(uint8_t id[ZIPKIN_SPAN_ID_BYTES], int64_t number)
{
    for (size_t i = 0; i < ZIPKIN_SPAN_ID_BYTES; i++)
        id[i] = (uint8_t)((uint64_t)number >> (56 - 8 * i));
}

static void read_span(struct thrift_reader *reader)
{
    struct zipkin_request *request = thrift_of(reader)->request;
    struct zipkin_span *span = &request->span;
    struct zipkin_v1_facts *facts = &request->facts;
    struct thrift_field field = {.number = 0};
    zipkin_span_begin(request);
    thrift_of(reader)->place = "Span";
    while (thrift_next_field(reader, &field)) {
        if (thrift_is(&field, SPAN_TRACE_ID, THRIFT_I64)) {
            store_id(span->trace_id + ZIPKIN_SPAN_ID_BYTES,
                     thrift_read_number(reader, sizeof(int64_t)));
        } else if (thrift_is(&field, SPAN_TRACE_ID_HIGH, THRIFT_I64)) {
            store_id(span->trace_id, thrift_read_number(reader, sizeof(int64_t)));
        } else if (thrift_is(&field, SPAN_ID, THRIFT_I64)) {
            store_id(span->id, thrift_read_number(reader, sizeof(int64_t)));
        } else if (thrift_is(&field, SPAN_PARENT_ID, THRIFT_I64)) {
            store_id(span->parent_id, thrift_read_number(reader, sizeof(int64_t)));
        } else if (thrift_is(&field, SPAN_NAME, THRIFT_STRING)) {
            read_text(reader, &span->name);
        } else if (thrift_is(&field, SPAN_TIMESTAMP, THRIFT_I64)) {
            facts->timestamp = thrift_read_number(reader, sizeof(int64_t));
            facts->has_timestamp = true;
        } else if (thrift_is(&field, SPAN_DURATION, THRIFT_I64)) {
            facts->duration = thrift_read_number(reader, sizeof(int64_t));
        } else if (thrift_is(&field, SPAN_ANNOTATIONS, THRIFT_LIST)) {
            thrift_of(reader)->place = "Span.annotations";
            zipkin_v1_forget_annotations(request);
            read_list(reader, "annotations", read_annotation);
        } else if (thrift_is(&field, SPAN_BINARY_ANNOTATIONS, THRIFT_LIST)) {
            thrift_of(reader)->place = "Span.binary_annotations";
            zipkin_v1_forget_tags(request);
            read_list(reader, "binary annotations", read_binary);
        } else {
            thrift_skip(reader, field.type);
        }
        if (!has_failed(reader))
            thrift_of(reader)->place = "Span";
    }
    if (!has_failed(reader))
        zipkin_v1_end(request);
}

void zipkin_read_thrift(struct zipkin_request *request)
{
    struct zipkin_thrift thrift = {.request = request, .place = "the list"};
    struct thrift_reader reader = thrift_reader_of(request->body, &thrift);
    read_list(&reader, "spans", read_span);
    if (reader.has_failed)
        zipkin_malformed(request, reader.at, thrift.place, reader.found, reader.expected);
}
