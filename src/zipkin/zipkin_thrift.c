/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of v1 as Thrift: a list of Span of zipkinCore.thrift in TBinaryProtocol
 * (thrift-binary-protocol.md of apache/thrift). Nothing is allocated for lengths that are merely
 * announced. Fields with another type than theirs are unknown ones, which are skipped; what follows
 * the list is ignored. On the thread of the request. */
#include "src/zipkin/zipkin_parts.h"

#include <assert.h>
#include <stdio.h>

#include "src/base/base64.h"

enum thrift_type {
    THRIFT_STOP = 0,
    THRIFT_BOOL = 2,
    THRIFT_BYTE = 3,
    THRIFT_DOUBLE = 4,
    THRIFT_I16 = 6,
    THRIFT_I32 = 8,
    THRIFT_I64 = 10,
    THRIFT_STRING = 11,
    THRIFT_STRUCT = 12,
    THRIFT_MAP = 13,
    THRIFT_SET = 14,
    THRIFT_LIST = 15,
    THRIFT_UUID = 16,
    THRIFT_TYPES,
};

enum { THRIFT_DEPTH_MAX = 64 };

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

/* The failure is in the request's verdict; nothing is read after it. */
struct thrift_reader {
    struct zipkin_request *request;
    const uint8_t *at;
    const uint8_t *end;
    const char *place;
};

struct thrift_field {
    enum thrift_type type;
    int16_t number;
};

static bool fail(struct thrift_reader *reader, const char *found, const char *expected)
{
    return zipkin_malformed(reader->request, reader->at, reader->place, found, expected);
}

static bool has_failed(const struct thrift_reader *reader)
{
    return reader->request->verdict != ZIPKIN_READ;
}

/* The next bytes; NULL: there are not so many. */
static const uint8_t *take(struct thrift_reader *reader, size_t bytes, const char *what)
{
    const uint8_t *at = reader->at;
    if (has_failed(reader))
        return NULL;
    if ((size_t)(reader->end - at) < bytes) {
        fail(reader, "the end of the body", what);
        return NULL;
    }
    reader->at += bytes;
    return at;
}

/* A number of that many bytes, with its sign; 0 after a failure. */
static int64_t read_number(struct thrift_reader *reader, size_t bytes)
{
    const uint8_t *at = take(reader, bytes, "a number");
    uint64_t bits = 0;
    if (at == NULL)
        return 0;
    if ((at[0] & 0x80) != 0)
        bits = UINT64_MAX;
    for (size_t i = 0; i < bytes; i++)
        bits = bits << 8 | at[i];
    return (int64_t)bits;
}

/* A length, or a number of elements of at least that many bytes each. */
static uint32_t read_size(struct thrift_reader *reader, size_t element_bytes, const char *what)
{
    char found[64];
    const uint8_t *begin = reader->at;
    int64_t size = read_number(reader, sizeof(int32_t));
    size_t left = (size_t)(reader->end - reader->at);
    if (has_failed(reader))
        return 0;
    if (size >= 0 && (uint64_t)size * element_bytes <= left)
        return (uint32_t)size;
    reader->at = begin;
    snprintf(found, sizeof(found), "%lld %s in %zu bytes", (long long)size, what, left);
    fail(reader, found, "no more than there are");
    return 0;
}

/* Its content; empty after a failure. */
static struct slice read_string(struct thrift_reader *reader)
{
    uint32_t size = read_size(reader, 1, "bytes");
    const uint8_t *at = take(reader, size, "a string");
    return at != NULL ? slice_of(at, size) : slice_of("", 0);
}

/* The same, as valid UTF-8. */
static void read_text(struct thrift_reader *reader, struct slice *ret_text)
{
    struct slice text = read_string(reader);
    if (!has_failed(reader))
        zipkin_valid_text(reader->request, text, ret_text);
}

/* False: the struct has ended, or a failure. */
static bool next_field(struct thrift_reader *reader, struct thrift_field *ret_field)
{
    const uint8_t *type = take(reader, 1, "a field");
    if (type == NULL || *type == THRIFT_STOP)
        return false;
    ret_field->type = (enum thrift_type) * type;
    ret_field->number = (int16_t)read_number(reader, sizeof(int16_t));
    return !has_failed(reader);
}

/* The fewest bytes of a value; 0: there is no such type. */
static size_t bytes_min(unsigned type)
{
    static const uint8_t bytes[THRIFT_TYPES] = {
        [THRIFT_BOOL] = 1, [THRIFT_BYTE] = 1, [THRIFT_DOUBLE] = 8, [THRIFT_I16] = 2,
        [THRIFT_I32] = 4,  [THRIFT_I64] = 8,  [THRIFT_STRING] = 4, [THRIFT_STRUCT] = 1,
        [THRIFT_MAP] = 6,  [THRIFT_SET] = 5,  [THRIFT_LIST] = 5,   [THRIFT_UUID] = 16,
    };
    return type < THRIFT_TYPES ? bytes[type] : 0;
}

static bool check_type(struct thrift_reader *reader, unsigned type)
{
    char found[32];
    if (bytes_min(type) > 0)
        return true;
    snprintf(found, sizeof(found), "the type %u", type);
    return fail(reader, found, "a type of Thrift's binary protocol");
}

/* ---- Skipping ---- */

/* An open struct, list or map. */
struct skip_level {
    uint8_t types[2]; /* of elements; of keys and values in turn */
    bool is_struct;
    bool is_map;
    uint64_t left; /* elements; of a map keys and values */
};

/* Opens a container as the innermost level, or passes a plain value. */
static bool skip_one(struct thrift_reader *reader, unsigned type, struct skip_level *levels,
                     unsigned *depth)
{
    struct skip_level level = {.is_struct = type == THRIFT_STRUCT, .is_map = type == THRIFT_MAP};
    bool is_list = type == THRIFT_LIST || type == THRIFT_SET;
    if (!check_type(reader, type))
        return false;
    if (type == THRIFT_STRING) {
        read_string(reader);
        return !has_failed(reader);
    }
    if (!level.is_struct && !level.is_map && !is_list)
        return take(reader, bytes_min(type), "a value") != NULL;
    if (*depth == THRIFT_DEPTH_MAX)
        return fail(reader, "one more", "at most 64 levels of nesting");
    if (!level.is_struct) {
        const uint8_t *types = take(reader, level.is_map ? 2 : 1, "a type");
        if (types == NULL)
            return false;
        level.types[0] = types[0];
        level.types[1] = level.is_map ? types[1] : types[0];
        size_t bytes = bytes_min(level.types[0]) + (level.is_map ? bytes_min(level.types[1]) : 0);
        uint32_t count = read_size(reader, bytes > 0 ? bytes : 1, "elements");
        level.left = level.is_map ? 2 * (uint64_t)count : count;
        if (has_failed(reader))
            return false;
    }
    levels[(*depth)++] = level;
    return true;
}

/* Any value. Enters and leaves containers in a loop. */
static void skip(struct thrift_reader *reader, unsigned type)
{
    struct skip_level levels[THRIFT_DEPTH_MAX];
    struct thrift_field field;
    unsigned depth = 0;
    if (!skip_one(reader, type, levels, &depth))
        return;
    while (depth > 0 && !has_failed(reader)) {
        struct skip_level *top = &levels[depth - 1];
        if (top->is_struct) {
            if (!next_field(reader, &field))
                depth--;
            else
                skip_one(reader, field.type, levels, &depth);
        } else if (top->left == 0) {
            depth--;
        } else {
            top->left--;
            skip_one(reader, top->types[top->is_map && top->left % 2 == 0], levels, &depth);
        }
    }
}

/* ---- Messages ---- */

/* Whether the field is the one of that number and type. */
static bool is(const struct thrift_field *field, int16_t number, enum thrift_type type)
{
    return field->number == number && field->type == type;
}

static void read_endpoint(struct thrift_reader *reader, struct zipkin_endpoint *endpoint)
{
    const char *outer = reader->place;
    struct thrift_field field;
    uint8_t address[sizeof(uint32_t)];
    reader->place = "Endpoint";
    while (next_field(reader, &field)) {
        if (is(&field, ENDPOINT_IPV4, THRIFT_I32)) {
            uint32_t ipv4 = (uint32_t)read_number(reader, sizeof(int32_t));
            for (size_t i = 0; i < sizeof(address); i++)
                address[i] = (uint8_t)(ipv4 >> (24 - 8 * i));
            zipkin_print_address(reader->request, slice_of(address, ipv4 != 0 ? 4 : 0),
                                 &endpoint->ipv4);
        } else if (is(&field, ENDPOINT_PORT, THRIFT_I16)) {
            /* Thrift has no unsigned numbers. */
            endpoint->port = (uint16_t)read_number(reader, sizeof(int16_t));
        } else if (is(&field, ENDPOINT_SERVICE, THRIFT_STRING)) {
            read_text(reader, &endpoint->service);
        } else if (is(&field, ENDPOINT_IPV6, THRIFT_STRING)) {
            struct slice ipv6 = read_string(reader);
            if (!has_failed(reader))
                zipkin_print_address(reader->request, ipv6, &endpoint->ipv6);
        } else {
            skip(reader, field.type);
        }
    }
    if (!has_failed(reader))
        reader->place = outer;
}

static void read_annotation(struct thrift_reader *reader)
{
    struct thrift_field field;
    struct zipkin_endpoint host = {.port = 0};
    struct slice value = slice_of("", 0);
    bool has_host = false;
    int64_t timestamp = 0;
    while (next_field(reader, &field)) {
        if (is(&field, ANNOTATION_TIMESTAMP, THRIFT_I64)) {
            timestamp = read_number(reader, sizeof(int64_t));
        } else if (is(&field, ANNOTATION_VALUE, THRIFT_STRING)) {
            read_text(reader, &value);
        } else if (is(&field, ANNOTATION_HOST, THRIFT_STRUCT)) {
            host = (struct zipkin_endpoint){.port = 0};
            has_host = true;
            read_endpoint(reader, &host);
        } else {
            skip(reader, field.type);
        }
    }
    if (!has_failed(reader))
        zipkin_v1_annotation(reader->request, timestamp, value, has_host ? &host : NULL);
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
    struct zipkin_request *request = reader->request;
    struct thrift_field field;
    struct zipkin_endpoint host = {.service = slice_of("", 0)};
    struct zipkin_tag tag = {.key = slice_of("", 0), .text = slice_of("", 0)};
    struct slice bytes = slice_of("", 0);
    struct slice text;
    bool has_host = false;
    int32_t type = ANNOTATION_BOOL;
    while (next_field(reader, &field)) {
        if (is(&field, BINARY_KEY, THRIFT_STRING)) {
            read_text(reader, &tag.key);
        } else if (is(&field, BINARY_VALUE, THRIFT_STRING)) {
            bytes = read_string(reader);
        } else if (is(&field, BINARY_TYPE, THRIFT_I32)) {
            type = (int32_t)read_number(reader, sizeof(int32_t));
        } else if (is(&field, BINARY_HOST, THRIFT_STRUCT)) {
            host = (struct zipkin_endpoint){.service = slice_of("", 0)};
            has_host = true;
            read_endpoint(reader, &host);
        } else {
            skip(reader, field.type);
        }
    }
    if (!has_failed(reader) && set_value(request, type, bytes, &tag) &&
        zipkin_valid_text(request, bytes, &text))
        zipkin_v1_binary(request, &tag, text, has_host ? &host.service : NULL);
}

/* The elements of a list of structs; false after a failure. */
static bool read_list(struct thrift_reader *reader, const char *what,
                      void (*read_element)(struct thrift_reader *reader))
{
    const uint8_t *type = take(reader, 1, "the type of a list's elements");
    uint32_t count = read_size(reader, 1, what);
    if (has_failed(reader))
        return false;
    if (count > 0 && *type != THRIFT_STRUCT)
        return fail(reader, "a list of other values", "a list of structs");
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
    struct zipkin_request *request = reader->request;
    struct zipkin_span *span = &request->span;
    struct zipkin_v1_facts *facts = &request->facts;
    struct thrift_field field;
    zipkin_span_begin(request);
    reader->place = "Span";
    while (next_field(reader, &field)) {
        if (is(&field, SPAN_TRACE_ID, THRIFT_I64)) {
            store_id(span->trace_id + ZIPKIN_SPAN_ID_BYTES, read_number(reader, sizeof(int64_t)));
        } else if (is(&field, SPAN_TRACE_ID_HIGH, THRIFT_I64)) {
            store_id(span->trace_id, read_number(reader, sizeof(int64_t)));
        } else if (is(&field, SPAN_ID, THRIFT_I64)) {
            store_id(span->id, read_number(reader, sizeof(int64_t)));
        } else if (is(&field, SPAN_PARENT_ID, THRIFT_I64)) {
            store_id(span->parent_id, read_number(reader, sizeof(int64_t)));
        } else if (is(&field, SPAN_NAME, THRIFT_STRING)) {
            read_text(reader, &span->name);
        } else if (is(&field, SPAN_TIMESTAMP, THRIFT_I64)) {
            facts->timestamp = read_number(reader, sizeof(int64_t));
            facts->has_timestamp = true;
        } else if (is(&field, SPAN_DURATION, THRIFT_I64)) {
            facts->duration = read_number(reader, sizeof(int64_t));
        } else if (is(&field, SPAN_ANNOTATIONS, THRIFT_LIST)) {
            reader->place = "Span.annotations";
            zipkin_v1_forget_annotations(request);
            read_list(reader, "annotations", read_annotation);
        } else if (is(&field, SPAN_BINARY_ANNOTATIONS, THRIFT_LIST)) {
            reader->place = "Span.binary_annotations";
            zipkin_v1_forget_tags(request);
            read_list(reader, "binary annotations", read_binary);
        } else {
            skip(reader, field.type);
        }
        if (!has_failed(reader))
            reader->place = "Span";
    }
    if (!has_failed(reader))
        zipkin_v1_end(request);
}

void zipkin_read_thrift(struct zipkin_request *request)
{
    struct thrift_reader reader = {
        .request = request,
        .at = request->body.data,
        .end = request->body.data + request->body.size,
        .place = "the list",
    };
    read_list(&reader, "spans", read_span);
}
