/* SPDX-License-Identifier: Apache-2.0 */
/* Writes spans for Zipkin. Each span is read twice: once for its own fields and attributes, once
 * for events and links. The tags of a resource and a scope are sorted once, and merged with those
 * of each span as it is written. Pure functions; any thread. */
#include "exporters/zipkin/zipkin_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "exporters/zipkin/zipkin_tags.h"
#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/hex.h"
#include "src/base/utf8.h"
#include "src/base/utf8_case.h"
#include "src/net/syntax/ip_address.h"
#include "src/otlp/json/json_output.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

enum {
    TRACE_ID_BYTES = 16,
    SPAN_ID_BYTES = 8,
    NUMBER_BYTES_MAX = 24,
    OUTPUT_BYTES_FIRST = 4096,
    /* Arenas keep up to this much for what comes next. */
    ARENA_KEPT_BYTES = 32 * 1024,
    /* Room for tag and length in front of a span whose size is not known yet. */
    HEADER_ROOM = 1 + WIRE_SHORT_VARINT_BYTES_MAX,
};

/* Field numbers of OTLP (proto/). */
enum { REQUEST_RESOURCE_SPANS = 1 };
enum { RESOURCE_SPANS_RESOURCE = 1, RESOURCE_SPANS_SCOPE_SPANS = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_SPANS_SCOPE = 1, SCOPE_SPANS_SPANS = 2 };
enum { SCOPE_NAME = 1, SCOPE_VERSION = 2, SCOPE_ATTRIBUTES = 3 };
enum {
    SPAN_TRACE_ID = 1,
    SPAN_SPAN_ID = 2,
    SPAN_TRACE_STATE = 3,
    SPAN_PARENT_SPAN_ID = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_EVENTS = 11,
    SPAN_LINKS = 13,
    SPAN_STATUS = 15,
};
enum { EVENT_TIME = 1, EVENT_NAME = 2, EVENT_ATTRIBUTES = 3, EVENT_DROPPED = 4 };
enum { LINK_TRACE_ID = 1, LINK_SPAN_ID = 2, LINK_STATE = 3, LINK_ATTRIBUTES = 4, LINK_DROPPED = 5 };
enum { STATUS_MESSAGE = 2, STATUS_CODE = 3 };
enum { CODE_UNSET = 0, CODE_OK = 1, CODE_ERROR = 2 };
enum { KIND_INTERNAL = 1, KIND_SERVER = 2, KIND_CLIENT = 3, KIND_PRODUCER = 4, KIND_CONSUMER = 5 };

/* Field numbers of zipkin.proto. */
enum { LIST_SPANS = 1 };
enum {
    ZIPKIN_TRACE_ID = 1,
    ZIPKIN_PARENT_ID = 2,
    ZIPKIN_ID = 3,
    ZIPKIN_KIND = 4,
    ZIPKIN_NAME = 5,
    ZIPKIN_TIMESTAMP = 6,
    ZIPKIN_DURATION = 7,
    ZIPKIN_LOCAL_ENDPOINT = 8,
    ZIPKIN_REMOTE_ENDPOINT = 9,
    ZIPKIN_ANNOTATIONS = 10,
    ZIPKIN_TAGS = 11,
};
enum { ENDPOINT_SERVICE = 1, ENDPOINT_IPV4 = 2, ENDPOINT_IPV6 = 3, ENDPOINT_PORT = 4 };
enum { ANNOTATION_TIMESTAMP = 1, ANNOTATION_VALUE = 2 };
enum { TAG_KEY = 1, TAG_VALUE = 2 };

/* What the Go collector calls a service without a name. */
static const char no_service_name[] = "OTLPResourceNoServiceName";

struct writer {
    enum zipkin_format format;
    enum zipkin_result failure; /* sticky; ZIPKIN_WRITTEN: none */
    struct json_output output;
    struct tag_list resource_tags;
    struct tag_list scope_tags; /* with those of the resource; sorted */
    struct tag_list span_tags;
    struct known_tags scope_known;
    /* Text that lives as long as a resource, a scope, a span, and until it is written. */
    struct arena resource_arena;
    struct arena scope_arena;
    struct arena span_arena;
    struct arena scratch;
    struct slice service_name;
    uint64_t written;
    uint64_t invalid;
};

static bool has_failed(const struct writer *writer)
{
    return writer->failure != ZIPKIN_WRITTEN || writer->output.has_failed;
}

static void fail(struct writer *writer, enum zipkin_result failure)
{
    if (writer->failure == ZIPKIN_WRITTEN)
        writer->failure = failure;
}

static void fail_of_arena(struct writer *writer, const struct arena *arena)
{
    fail(writer, arena->refused_bytes > arena->max_bytes ? ZIPKIN_TOO_LARGE : ZIPKIN_NO_MEMORY);
}

/* NULL: failed. */
static uint8_t *allocate(struct writer *writer, struct arena *arena, size_t size)
{
    uint8_t *room = has_failed(writer) ? NULL : arena_try_alloc(arena, size);
    if (room == NULL && !has_failed(writer))
        fail_of_arena(writer, arena);
    return room;
}

/* Nothing in it is needed any more. */
static void rest(struct arena *arena)
{
    if (arena->used_bytes > ARENA_KEPT_BYTES)
        arena_clear(arena);
}

static void add_tag(struct writer *writer, struct tag_list *list, struct tag tag)
{
    if (!has_failed(writer) && !tag_list_add(list, tag))
        fail(writer, list->is_too_large ? ZIPKIN_TOO_LARGE : ZIPKIN_NO_MEMORY);
}

static void add_text(struct writer *writer, struct tag_list *list, const char *key,
                     struct slice text)
{
    add_tag(writer, list, (struct tag){.key = slice_of_text(key), .value = text, .form = TAG_TEXT});
}

/* The value as pcommon.Value.AsString gives it; room is for numbers. */
static struct slice text_of_value(struct writer *writer, struct arena *arena, struct slice encoded,
                                  char room[NUMBER_BYTES_MAX])
{
    struct value value = value_read(encoded);
    struct slice text = {.data = NULL};
    switch (value.type) {
    case VALUE_STRING:
        return value.bytes;
    case VALUE_BOOL:
        return slice_of_text(value.boolean ? "true" : "false");
    case VALUE_INT:
        return slice_of(room, (size_t)snprintf(room, NUMBER_BYTES_MAX, "%" PRId64, value.integer));
    case VALUE_EMPTY:
        return text;
    case VALUE_DOUBLE:
    case VALUE_LIST:
    case VALUE_MAP:
    case VALUE_BYTES:
    default:
        if (!has_failed(writer) && !value_to_string(arena, encoded, &text))
            fail_of_arena(writer, arena);
        return text;
    }
}

/* Makes a value that takes long to read a plain string, so that its text is made once for all spans
 * of a resource or scope. */
static void settle_value(struct writer *writer, struct arena *arena, struct tag *tag)
{
    enum { LONG_BYTES_MIN = 24, HEADER_BYTES_MAX = 16 };
    char room[NUMBER_BYTES_MAX];
    if (tag->form != TAG_ENCODED || tag->value.size < LONG_BYTES_MIN || has_failed(writer))
        return;
    struct value value = value_read(tag->value);
    if (value.type == VALUE_STRING && value.bytes.size + HEADER_BYTES_MAX >= tag->value.size)
        return;
    struct slice text = text_of_value(writer, arena, tag->value, room);
    if (!has_failed(writer) && !value_write_string(arena, text, &tag->value))
        fail_of_arena(writer, arena);
}

/* ---- Output ---- */

static void put(struct writer *writer, const char *text)
{
    json_output_put(&writer->output, text, strlen(text));
}

/* The name of a member is given with what comes before it and its colon: ",\"id\":". */
static void put_member_number(struct writer *writer, const char *name, uint64_t number)
{
    put(writer, name);
    json_output_put_unsigned(&writer->output, number);
}

static void put_member_string(struct writer *writer, const char *name, struct slice text)
{
    put(writer, name);
    json_output_put_string(&writer->output, text);
}

static void put_member_id(struct writer *writer, const char *name, struct slice id)
{
    put(writer, name);
    uint8_t *room = json_output_reserve(&writer->output, 2 * id.size + 2);
    if (room == NULL)
        return;
    room[0] = '"';
    hex_write(id.data, id.size, room + 1);
    room[2 * id.size + 1] = '"';
    writer->output.buffer->size += 2 * id.size + 2;
}

/* As JSON has it: Go's JSON, but not its protobuf, has names in lower case. */
static struct slice lower(struct writer *writer, struct slice text)
{
    if (utf8_is_plain_lower(text))
        return text;
    uint8_t *room = allocate(writer, &writer->scratch, UTF8_CASE_GROWTH_MAX * text.size);
    return room != NULL ? slice_of(room, utf8_to_lower(text, room)) : slice_of(NULL, 0);
}

/* As strings in protobuf must be: bytes that are not UTF-8 become U+FFFD. */
static struct slice valid(struct writer *writer, struct slice text)
{
    size_t at = 0;
    size_t size = 1;
    for (; at < text.size && size > 0; at += size)
        size = text.data[at] < 0x80 ? 1 : utf8_size(slice_of(text.data + at, text.size - at));
    uint8_t *room =
        at < text.size ? allocate(writer, &writer->scratch, at + 3 * (text.size - at)) : NULL;
    if (room == NULL)
        return at < text.size ? slice_of(NULL, 0) : text;
    size_t used = at;
    memcpy(room, text.data, at);
    while (at < text.size) {
        size = utf8_size(slice_of(text.data + at, text.size - at));
        memcpy(room + used, size > 0 ? text.data + at : (const uint8_t *)"\xef\xbf\xbd",
               size > 0 ? size : 3);
        used += size > 0 ? size : 3;
        at += size > 0 ? size : 1;
    }
    return slice_of(room, used);
}

/* Makes room for a field of protobuf; end_field notes what was written. */
static struct wire_writer begin_field(struct writer *writer, size_t size)
{
    uint8_t *room = json_output_reserve(&writer->output, size);
    return wire_writer_of(room, room != NULL ? size : 0);
}

static void end_field(struct writer *writer, const struct wire_writer *field)
{
    if (!writer->output.has_failed)
        writer->output.buffer->size += wire_written(field).size;
}

static void put_bytes(struct writer *writer, uint32_t number, struct slice bytes)
{
    struct wire_writer field = begin_field(writer, wire_field_size(number, bytes.size));
    if (field.begin == NULL)
        return;
    wire_write_bytes(&field, number, bytes);
    end_field(writer, &field);
}

static void put_number(struct writer *writer, uint32_t number, uint64_t value)
{
    struct wire_writer field = begin_field(writer, 2 * WIRE_VARINT_BYTES_MAX);
    if (field.begin == NULL || value == 0)
        return;
    wire_write_number(&field, number, value);
    end_field(writer, &field);
}

static void put_fixed64(struct writer *writer, uint32_t number, uint64_t value)
{
    struct wire_writer field = begin_field(writer, 2 * WIRE_VARINT_BYTES_MAX);
    if (field.begin == NULL || value == 0)
        return;
    wire_write_fixed64(&field, number, value);
    end_field(writer, &field);
}

/* ---- Endpoints ---- */

struct endpoint {
    bool exists;
    struct slice service_name;
    bool has_address;
    bool is_ipv6; /* written like one: it has a colon */
    uint8_t address[IPV6_BYTES];
    uint16_t port;
};

/* Hides a tag that became part of an endpoint. */
static void remove_tag(struct writer *writer, const char *key)
{
    add_tag(writer, &writer->span_tags,
            (struct tag){.key = slice_of_text(key), .form = TAG_REMOVED});
}

/* The text of a known tag, which leaves the tags. False: the span has none. */
static bool take_known(struct writer *writer, const struct known_tags *known, enum known_key key,
                       struct slice *ret_text)
{
    char room[NUMBER_BYTES_MAX];
    if ((known->found & 1u << key) == 0)
        return false;
    struct slice text = text_of_value(writer, &writer->span_arena, known->values[key], room);
    if (text.data == (const uint8_t *)room) {
        uint8_t *copy = allocate(writer, &writer->span_arena, text.size);
        if (copy != NULL)
            memcpy(copy, room, text.size);
        text = copy != NULL ? slice_of(copy, text.size) : slice_of(NULL, 0);
    }
    remove_tag(writer, known_key_name(key));
    *ret_text = text;
    return true;
}

/* As strconv.ParseUint does: 0 when text is no number; the largest port when it is a larger one. Of
 * one with very many zeros in front, which any number of spans may share, no more is read. */
static uint16_t read_port(struct slice text)
{
    enum { DIGITS_MAX = 20 };
    uint32_t port = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)text.data[i] - '0';
        if (digit > 9 || i == DIGITS_MAX)
            return 0;
        port = port * 10 + digit;
        if (port > UINT16_MAX)
            return UINT16_MAX;
    }
    return (uint16_t)port;
}

/* As net.IP: IPv4 has four bytes, but for an IPv4 address that is written as IPv6. */
static struct slice address_of(const struct endpoint *endpoint)
{
    size_t skipped = endpoint->is_ipv6 ? 0 : IPV6_BYTES - IPV4_BYTES;
    return slice_of(endpoint->address + skipped, IPV6_BYTES - skipped);
}

static struct endpoint read_endpoint(struct writer *writer, const struct known_tags *known,
                                     struct slice service_name, enum known_key address,
                                     enum known_key port)
{
    struct endpoint endpoint = {.service_name = service_name};
    struct slice text;
    if (take_known(writer, known, address, &text)) {
        endpoint.has_address = ip_address_parse(text, endpoint.address);
        endpoint.is_ipv6 = endpoint.has_address && memchr(text.data, ':', text.size) != NULL;
    }
    if (take_known(writer, known, port, &text))
        endpoint.port = read_port(text);
    endpoint.exists = service_name.size > 0 || endpoint.has_address;
    return endpoint;
}

static void write_endpoint_json(struct writer *writer, const char *name,
                                const struct endpoint *endpoint)
{
    char text[IP_ADDRESS_STRING_MAX];
    const char *comma = "";
    if (!endpoint->exists)
        return;
    put(writer, name);
    put(writer, "{");
    if (endpoint->service_name.size > 0) {
        put_member_string(writer, "\"serviceName\":", lower(writer, endpoint->service_name));
        comma = ",";
    }
    if (endpoint->has_address) {
        put(writer, comma);
        size_t size = ip_address_print(address_of(endpoint), text);
        put_member_string(writer,
                          endpoint->is_ipv6 ? "\"ipv6\":" : "\"ipv4\":", slice_of(text, size));
        comma = ",";
    }
    if (endpoint->port > 0) {
        put(writer, comma);
        put_member_number(writer, "\"port\":", endpoint->port);
    }
    put(writer, "}");
}

static void write_endpoint_proto(struct writer *writer, uint32_t number,
                                 const struct endpoint *endpoint)
{
    if (!endpoint->exists)
        return;
    struct slice service_name = valid(writer, endpoint->service_name);
    struct slice address = address_of(endpoint);
    size_t size = service_name.size > 0 ? wire_field_size(ENDPOINT_SERVICE, service_name.size) : 0;
    size += endpoint->has_address ? wire_field_size(ENDPOINT_IPV4, address.size) : 0;
    size += endpoint->port > 0 ? 1 + wire_varint_size(endpoint->port) : 0;
    struct wire_writer field = begin_field(writer, wire_field_size(number, size));
    if (field.begin == NULL)
        return;
    wire_write_header(&field, number, size);
    if (service_name.size > 0)
        wire_write_bytes(&field, ENDPOINT_SERVICE, service_name);
    if (endpoint->has_address)
        wire_write_bytes(&field, endpoint->is_ipv6 ? ENDPOINT_IPV6 : ENDPOINT_IPV4, address);
    if (endpoint->port > 0)
        wire_write_number(&field, ENDPOINT_PORT, endpoint->port);
    end_field(writer, &field);
}

/* ---- Events and links ---- */

/* Pieces of text, joined in the arena. */
static struct slice join(struct writer *writer, struct arena *arena, const struct slice *pieces,
                         size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += pieces[i].size;
    uint8_t *room = allocate(writer, arena, size);
    if (room == NULL)
        return slice_of(NULL, 0);
    for (size_t i = 0, used = 0; i < count; used += pieces[i++].size)
        if (pieces[i].size > 0)
            memcpy(room + used, pieces[i].data, pieces[i].size);
    return slice_of(room, size);
}

static struct slice json_of_attributes(struct writer *writer, struct slice message, uint32_t number)
{
    struct slice json = {.data = NULL};
    if (!has_failed(writer) && !attributes_to_json(&writer->scratch, message, number, &json))
        fail_of_arena(writer, &writer->scratch);
    return json;
}

struct event {
    uint64_t time_ns;
    struct slice text;
};

/* An event's text is its name or, if there is more, "name|attributes|dropped". */
static struct event read_event(struct writer *writer, struct slice message)
{
    struct event event = {.time_ns = 0};
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    bool has_attributes = false;
    uint32_t dropped = 0;
    char digits[NUMBER_BYTES_MAX];
    while (wire_next_field(&reader, &field)) {
        has_attributes |= field.number == EVENT_ATTRIBUTES;
        if (field.number == EVENT_TIME)
            event.time_ns = field.number_value;
        else if (field.number == EVENT_NAME)
            event.text = field.bytes;
        else if (field.number == EVENT_DROPPED)
            dropped = (uint32_t)field.number_value;
    }
    if (!has_attributes && dropped == 0)
        return event;
    const struct slice pieces[] = {
        event.text,
        slice_of_text("|"),
        json_of_attributes(writer, message, EVENT_ATTRIBUTES),
        slice_of_text("|"),
        slice_of(digits, (size_t)snprintf(digits, sizeof(digits), "%" PRIu32, dropped)),
    };
    event.text = join(writer, &writer->scratch, pieces, sizeof(pieces) / sizeof(pieces[0]));
    return event;
}

static uint64_t rounded_us(uint64_t ns)
{
    return ns / NS_PER_US + (ns % NS_PER_US >= NS_PER_US / 2);
}

/* Of durations and events: Go rounds them in JSON and cuts them in protobuf. */
static uint64_t microseconds(const struct writer *writer, uint64_t ns)
{
    return writer->format == ZIPKIN_JSON ? rounded_us(ns) : ns / NS_PER_US;
}

static void write_events(struct writer *writer, struct slice span)
{
    struct wire_reader reader = wire_reader_of(span);
    struct wire_field field;
    const char *separator = ",\"annotations\":[";
    while (!has_failed(writer) && wire_next_field(&reader, &field)) {
        if (field.number != SPAN_EVENTS)
            continue;
        rest(&writer->scratch);
        struct event event = read_event(writer, field.bytes);
        uint64_t time_us = microseconds(writer, event.time_ns);
        if (writer->format == ZIPKIN_JSON) {
            put(writer, separator);
            put_member_number(writer, "{\"timestamp\":", time_us);
            put_member_string(writer, ",\"value\":", event.text);
            put(writer, "}");
            separator = ",";
            continue;
        }
        struct slice text = valid(writer, event.text);
        size_t size = text.size > 0 ? wire_field_size(ANNOTATION_VALUE, text.size) : 0;
        size += time_us > 0 ? 1 + sizeof(uint64_t) : 0;
        struct wire_writer annotation =
            begin_field(writer, wire_field_size(ZIPKIN_ANNOTATIONS, size));
        if (annotation.begin == NULL)
            return;
        wire_write_header(&annotation, ZIPKIN_ANNOTATIONS, size);
        if (time_us > 0)
            wire_write_fixed64(&annotation, ANNOTATION_TIMESTAMP, time_us);
        if (text.size > 0)
            wire_write_bytes(&annotation, ANNOTATION_VALUE, text);
        end_field(writer, &annotation);
    }
    if (writer->format == ZIPKIN_JSON && separator[1] == '\0')
        put(writer, "]");
}

static bool is_set(struct slice id)
{
    for (size_t i = 0; i < id.size; i++)
        if (id.data[i] != 0)
            return true;
    return false;
}

/* In hexadecimal; nothing for one that is not set. */
static struct slice id_text(struct slice id, uint8_t room[2 * TRACE_ID_BYTES])
{
    assert(id.size <= TRACE_ID_BYTES);
    return is_set(id) ? hex_write(id.data, id.size, room) : slice_of(NULL, 0);
}

/* "otlp.link.N": "trace id|span id|trace state|attributes|dropped". */
static void add_link(struct writer *writer, struct slice message, uint64_t number)
{
    struct slice trace_id = {.data = NULL};
    struct slice span_id = {.data = NULL};
    struct slice state = {.data = NULL};
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    uint32_t dropped = 0;
    char digits[NUMBER_BYTES_MAX];
    char index[NUMBER_BYTES_MAX];
    uint8_t trace_text[2 * TRACE_ID_BYTES];
    uint8_t span_text[2 * TRACE_ID_BYTES];
    while (wire_next_field(&reader, &field)) {
        if (field.number == LINK_TRACE_ID)
            trace_id = field.bytes;
        else if (field.number == LINK_SPAN_ID)
            span_id = field.bytes;
        else if (field.number == LINK_STATE)
            state = field.bytes;
        else if (field.number == LINK_DROPPED)
            dropped = (uint32_t)field.number_value;
    }
    const struct slice key[] = {
        slice_of_text("otlp.link."),
        slice_of(index, (size_t)snprintf(index, sizeof(index), "%" PRIu64, number)),
    };
    const struct slice pieces[] = {
        id_text(trace_id, trace_text),
        slice_of_text("|"),
        id_text(span_id, span_text),
        slice_of_text("|"),
        state,
        slice_of_text("|"),
        json_of_attributes(writer, message, LINK_ATTRIBUTES),
        slice_of_text("|"),
        slice_of(digits, (size_t)snprintf(digits, sizeof(digits), "%" PRIu32, dropped)),
    };
    add_tag(
        writer, &writer->span_tags,
        (struct tag){
            .key = join(writer, &writer->span_arena, key, sizeof(key) / sizeof(key[0])),
            .value = join(writer, &writer->span_arena, pieces, sizeof(pieces) / sizeof(pieces[0])),
            .form = TAG_TEXT,
        });
}

/* ---- Spans ---- */

struct span {
    struct slice content;
    struct slice trace_id;
    struct slice id;
    struct slice parent_id;
    struct slice trace_state;
    struct slice name;
    struct slice status_message;
    int32_t status_code;
    int32_t kind;
    uint64_t start_ns;
    uint64_t end_ns;
    bool has_events;
    bool has_links;
    struct endpoint local;
    struct endpoint remote;
};

static void read_status(struct span *span, struct slice status)
{
    struct wire_reader reader = wire_reader_of(status);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == STATUS_MESSAGE)
            span->status_message = field.bytes;
        else if (field.number == STATUS_CODE)
            span->status_code = (int32_t)(uint32_t)field.number_value;
    }
}

/* Its fields, but for those that repeat. */
static struct span read_span(struct slice content)
{
    struct span span = {.content = content};
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        switch (field.number) {
        case SPAN_TRACE_ID:
            span.trace_id = field.bytes;
            break;
        case SPAN_SPAN_ID:
            span.id = field.bytes;
            break;
        case SPAN_TRACE_STATE:
            span.trace_state = field.bytes;
            break;
        case SPAN_PARENT_SPAN_ID:
            span.parent_id = field.bytes;
            break;
        case SPAN_NAME:
            span.name = field.bytes;
            break;
        case SPAN_KIND:
            span.kind = (int32_t)(uint32_t)field.number_value;
            break;
        case SPAN_START:
            span.start_ns = field.number_value;
            break;
        case SPAN_END:
            span.end_ns = field.number_value;
            break;
        case SPAN_EVENTS:
            span.has_events = true;
            break;
        case SPAN_LINKS:
            span.has_links = true;
            break;
        case SPAN_STATUS:
            read_status(&span, field.bytes);
            break;
        default:
            break;
        }
    }
    return span;
}

static void add_status(struct writer *writer, const struct span *span)
{
    struct tag_list *tags = &writer->span_tags;
    const char *name = "";
    /* Zipkin takes any span with this tag for a failed one. */
    if (span->status_code == CODE_ERROR)
        add_text(writer, tags, "error", slice_of_text("true"));
    else
        remove_tag(writer, "error");
    if (span->status_code == CODE_UNSET)
        return;
    if (span->status_code == CODE_OK)
        name = "STATUS_CODE_OK";
    else if (span->status_code == CODE_ERROR)
        name = "STATUS_CODE_ERROR";
    add_text(writer, tags, "otel.status_code", slice_of_text(name));
    if (span->status_message.size > 0)
        add_text(writer, tags, "otel.status_description", span->status_message);
}

/* Collects the span's own tags, in the order in which the Go collector sets them, and its
 * endpoints. */
static void collect_tags(struct writer *writer, struct span *span)
{
    struct tag_list *tags = &writer->span_tags;
    struct known_tags known = writer->scope_known;
    struct wire_reader reader = wire_reader_of(span->content);
    struct wire_field field;
    struct slice peer = {.data = NULL};
    tags->count = 0;
    while (wire_next_field(&reader, &field)) {
        if (field.number != SPAN_ATTRIBUTES)
            continue;
        struct tag tag = tag_of_attribute(field.bytes);
        add_tag(writer, tags, tag);
        known_tags_note(&known, &tag);
    }
    if ((known.found & 1u << HTTP_RESPONSE_STATUS_CODE) != 0 &&
        (known.found & 1u << HTTP_STATUS_CODE) == 0)
        add_tag(writer, tags,
                (struct tag){.key = slice_of_text(known_key_name(HTTP_STATUS_CODE)),
                             .value = known.values[HTTP_RESPONSE_STATUS_CODE],
                             .form = TAG_ENCODED});
    if (span->trace_state.size > 0)
        add_text(writer, tags, "w3c.tracestate", span->trace_state);
    if (span->kind == KIND_INTERNAL)
        add_text(writer, tags, "span.kind", slice_of_text("internal"));
    span->local =
        read_endpoint(writer, &known, writer->service_name, NETWORK_LOCAL_ADDRESS, NET_HOST_PORT);
    if (!take_known(writer, &known, SERVICE_PEER_NAME, &peer))
        take_known(writer, &known, PEER_SERVICE, &peer);
    span->remote = read_endpoint(writer, &known, peer, NETWORK_PEER_ADDRESS, NET_PEER_PORT);
    add_status(writer, span);
    reader = wire_reader_of(span->content);
    for (uint64_t number = 0;
         span->has_links && !has_failed(writer) && wire_next_field(&reader, &field);) {
        if (field.number == SPAN_LINKS)
            add_link(writer, field.bytes, number++);
        rest(&writer->scratch);
    }
    tag_list_settle(tags);
}

static void write_tag(struct writer *writer, const struct tag *tag, const char **separator)
{
    char room[NUMBER_BYTES_MAX];
    struct slice text = tag->value;
    if (tag->form == TAG_ENCODED)
        text = text_of_value(writer, &writer->scratch, tag->value, room);
    if (writer->format == ZIPKIN_JSON) {
        put(writer, *separator);
        *separator = ",";
        json_output_put_string(&writer->output, tag->key);
        json_output_put_byte(&writer->output, ':');
        json_output_put_string(&writer->output, text);
        return;
    }
    struct slice key = valid(writer, tag->key);
    text = valid(writer, text);
    size_t size = wire_field_size(TAG_KEY, key.size) + wire_field_size(TAG_VALUE, text.size);
    struct wire_writer field = begin_field(writer, wire_field_size(ZIPKIN_TAGS, size));
    if (field.begin == NULL)
        return;
    wire_write_header(&field, ZIPKIN_TAGS, size);
    wire_write_bytes(&field, TAG_KEY, key);
    wire_write_bytes(&field, TAG_VALUE, text);
    end_field(writer, &field);
}

/* Merges the tags of scope and span by key; the span's win. */
static void write_tags(struct writer *writer)
{
    const struct tag_list *outer = &writer->scope_tags;
    const struct tag_list *inner = &writer->span_tags;
    const char *separator = ",\"tags\":{";
    for (size_t i = 0, k = 0; (i < outer->count || k < inner->count) && !has_failed(writer);) {
        int order = i == outer->count   ? 1
                    : k == inner->count ? -1
                                        : slice_compare(outer->tags[i].key, inner->tags[k].key);
        const struct tag *tag = order < 0 ? &outer->tags[i] : &inner->tags[k];
        i += order <= 0;
        k += order >= 0;
        if (tag->form != TAG_REMOVED)
            write_tag(writer, tag, &separator);
        rest(&writer->scratch);
    }
    if (writer->format == ZIPKIN_JSON && separator[1] == '\0')
        put(writer, "}");
}

/* Times before the second second of 1970 are unset, as in Go. */
static uint64_t timestamp_us(const struct span *span)
{
    return span->start_ns < NS_PER_S ? 0 : rounded_us(span->start_ns);
}

/* 0: unknown, which is also what a span has that ends before it starts. In JSON at least 1. */
static uint64_t duration_us(const struct writer *writer, const struct span *span)
{
    if (span->end_ns <= span->start_ns)
        return 0;
    uint64_t ns = span->end_ns - span->start_ns;
    return writer->format == ZIPKIN_JSON && ns < NS_PER_US ? 1 : microseconds(writer, ns);
}

static void write_span_json(struct writer *writer, const struct span *span)
{
    static const char *const kinds[] = {
        [KIND_SERVER] = "SERVER",
        [KIND_CLIENT] = "CLIENT",
        [KIND_PRODUCER] = "PRODUCER",
        [KIND_CONSUMER] = "CONSUMER",
    };
    uint64_t start_us = timestamp_us(span);
    uint64_t us = duration_us(writer, span);
    struct slice low = slice_of(span->trace_id.data + SPAN_ID_BYTES, SPAN_ID_BYTES);
    bool has_high = is_set(slice_of(span->trace_id.data, SPAN_ID_BYTES));
    put(writer, writer->written > 0 ? "," : "[");
    put_member_id(writer, "{\"traceId\":", has_high ? span->trace_id : low);
    put_member_id(writer, ",\"id\":", span->id);
    if (is_set(span->parent_id))
        put_member_id(writer, ",\"parentId\":", span->parent_id);
    if (span->name.size > 0)
        put_member_string(writer, ",\"name\":", lower(writer, span->name));
    if (span->kind >= KIND_SERVER && span->kind <= KIND_CONSUMER)
        put_member_string(writer, ",\"kind\":", slice_of_text(kinds[span->kind]));
    if (start_us > 0)
        put_member_number(writer, ",\"timestamp\":", start_us);
    if (us > 0)
        put_member_number(writer, ",\"duration\":", us);
    write_endpoint_json(writer, ",\"localEndpoint\":", &span->local);
    write_endpoint_json(writer, ",\"remoteEndpoint\":", &span->remote);
    if (span->has_events)
        write_events(writer, span->content);
    write_tags(writer);
    put(writer, "}");
}

static void write_span_proto(struct writer *writer, const struct span *span)
{
    static const uint8_t kinds[] = {
        [KIND_CLIENT] = 1, [KIND_SERVER] = 2, [KIND_PRODUCER] = 3, [KIND_CONSUMER] = 4};
    struct json_output *output = &writer->output;
    if (json_output_reserve(output, HEADER_ROOM) == NULL)
        return;
    size_t begin = output->buffer->size;
    output->buffer->size += HEADER_ROOM;
    put_bytes(writer, ZIPKIN_TRACE_ID, span->trace_id);
    if (is_set(span->parent_id))
        put_bytes(writer, ZIPKIN_PARENT_ID, span->parent_id);
    put_bytes(writer, ZIPKIN_ID, span->id);
    if (span->kind >= KIND_SERVER && span->kind <= KIND_CONSUMER)
        put_number(writer, ZIPKIN_KIND, kinds[span->kind]);
    if (span->name.size > 0)
        put_bytes(writer, ZIPKIN_NAME, valid(writer, span->name));
    put_fixed64(writer, ZIPKIN_TIMESTAMP, timestamp_us(span));
    put_number(writer, ZIPKIN_DURATION, duration_us(writer, span));
    write_endpoint_proto(writer, ZIPKIN_LOCAL_ENDPOINT, &span->local);
    write_endpoint_proto(writer, ZIPKIN_REMOTE_ENDPOINT, &span->remote);
    if (span->has_events)
        write_events(writer, span->content);
    write_tags(writer);
    if (has_failed(writer))
        return;
    /* Tag and length come in front of it, without a gap. */
    uint8_t *room = output->buffer->data + begin;
    size_t size = output->buffer->size - begin - HEADER_ROOM;
    if (size > INT32_MAX) {
        fail(writer, ZIPKIN_TOO_LARGE);
        return;
    }
    struct wire_writer header = wire_writer_of(room, HEADER_ROOM);
    wire_write_header(&header, LIST_SPANS, size);
    size_t header_bytes = wire_written(&header).size;
    memmove(room + header_bytes, room + HEADER_ROOM, size);
    output->buffer->size = begin + header_bytes + size;
}

/* ---- Resources and scopes ---- */

/* Finds the service's name, by the first of these attributes that the resource has; it leaves the
 * tags. */
static void name_service(struct writer *writer, size_t settled)
{
    static const char *const keys[] = {"service.name", "faas.name", "k8s.deployment.name",
                                       "process.executable.name"};
    struct tag_list *tags = &writer->resource_tags;
    writer->service_name = slice_of_text(no_service_name);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char room[NUMBER_BYTES_MAX];
        struct tag *tag = tag_list_find(tags, settled, keys[i]);
        if (tag == NULL)
            continue;
        struct slice text = text_of_value(writer, &writer->resource_arena, tag->value, room);
        if (text.data == (const uint8_t *)room) {
            uint8_t *copy = arena_try_alloc(&writer->resource_arena, text.size);
            if (copy == NULL) {
                fail_of_arena(writer, &writer->resource_arena);
                return;
            }
            memcpy(copy, room, text.size);
            text.data = copy;
        }
        writer->service_name = text;
        tag->form = TAG_REMOVED;
        if (i > 0)
            add_text(writer, tags, "otlp.service.name.source", slice_of_text(keys[i]));
        return;
    }
}

static void read_resource(struct writer *writer, struct slice resource_spans)
{
    struct tag_list *tags = &writer->resource_tags;
    struct wire_reader reader = wire_reader_of(resource_spans);
    struct wire_field field;
    struct wire_field attribute;
    tags->count = 0;
    arena_clear(&writer->resource_arena);
    while (wire_next_field(&reader, &field)) {
        if (field.number != RESOURCE_SPANS_RESOURCE)
            continue;
        struct wire_reader inner = wire_reader_of(field.bytes);
        while (wire_next_field(&inner, &attribute))
            if (attribute.number == RESOURCE_ATTRIBUTES)
                add_tag(writer, tags, tag_of_attribute(attribute.bytes));
    }
    tag_list_settle(tags);
    for (size_t i = 0; i < tags->count; i++)
        settle_value(writer, &writer->resource_arena, &tags->tags[i]);
    size_t settled = tags->count;
    struct tag *cloud = tag_list_find(tags, settled, "cloud.resource_id");
    if (cloud != NULL) { /* Zipkin's users know it by its older name */
        cloud->form = TAG_REMOVED;
        struct tag faas = {.key = slice_of_text("faas.id"), .value = cloud->value};
        if (tag_list_find(tags, settled, "faas.id") == NULL)
            add_tag(writer, tags, faas);
    }
    name_service(writer, settled);
}

/* The tags of a scope and its resource, which all of its spans have. */
static void read_scope(struct writer *writer, struct slice scope_spans)
{
    const struct tag_list *resource = &writer->resource_tags;
    struct tag_list *tags = &writer->scope_tags;
    struct wire_reader reader = wire_reader_of(scope_spans);
    struct wire_field field;
    struct wire_field inner_field;
    struct slice name = {.data = NULL};
    struct slice version = {.data = NULL};
    tags->count = 0;
    writer->scope_known.found = 0;
    arena_clear(&writer->scope_arena);
    for (size_t i = 0; i < resource->count; i++)
        if (resource->tags[i].form != TAG_REMOVED)
            add_tag(writer, tags, resource->tags[i]);
    while (wire_next_field(&reader, &field)) {
        if (field.number != SCOPE_SPANS_SCOPE)
            continue;
        struct wire_reader inner = wire_reader_of(field.bytes);
        while (wire_next_field(&inner, &inner_field)) {
            if (inner_field.number == SCOPE_NAME)
                name = inner_field.bytes;
            else if (inner_field.number == SCOPE_VERSION)
                version = inner_field.bytes;
            else if (inner_field.number == SCOPE_ATTRIBUTES)
                add_tag(writer, tags, tag_of_attribute(inner_field.bytes));
        }
    }
    if (name.size > 0)
        add_text(writer, tags, "otel.library.name", name);
    if (version.size > 0)
        add_text(writer, tags, "otel.library.version", version);
    tag_list_settle(tags);
    for (size_t i = 0; i < tags->count; i++) {
        settle_value(writer, &writer->scope_arena, &tags->tags[i]);
        known_tags_note(&writer->scope_known, &tags->tags[i]);
    }
}

static void write_scope_spans(struct writer *writer, struct slice scope_spans)
{
    struct wire_reader reader = wire_reader_of(scope_spans);
    struct wire_field field;
    bool is_scope_read = false;
    while (!has_failed(writer) && wire_next_field(&reader, &field)) {
        if (field.number != SCOPE_SPANS_SPANS)
            continue;
        struct span span = read_span(field.bytes);
        if (!is_set(span.trace_id) || !is_set(span.id)) {
            writer->invalid++;
            continue;
        }
        assert(span.trace_id.size == TRACE_ID_BYTES);
        assert(span.id.size == SPAN_ID_BYTES);
        /* Not before: a request may have very many scopes without spans. */
        if (!is_scope_read)
            read_scope(writer, scope_spans);
        is_scope_read = true;
        collect_tags(writer, &span);
        if (has_failed(writer))
            return;
        if (writer->format == ZIPKIN_JSON)
            write_span_json(writer, &span);
        else
            write_span_proto(writer, &span);
        writer->written++;
        rest(&writer->span_arena);
        rest(&writer->scratch);
    }
}

static void write_resource_spans(struct writer *writer, struct slice resource_spans)
{
    struct wire_reader reader = wire_reader_of(resource_spans);
    struct wire_field field;
    read_resource(writer, resource_spans);
    while (!has_failed(writer) && wire_next_field(&reader, &field))
        if (field.number == RESOURCE_SPANS_SCOPE_SPANS)
            write_scope_spans(writer, field.bytes);
}

enum zipkin_result zipkin_write(struct slice request, enum zipkin_format format, size_t bytes_max,
                                struct budget *budget, struct zipkin_body *ret_body)
{
    struct writer writer = {.format = format};
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    size_t capacity = 2 * request.size + OUTPUT_BYTES_FIRST;
    json_output_init(&writer.output, capacity < bytes_max ? capacity : bytes_max, bytes_max,
                     budget);
    arena_init_charged(&writer.span_arena, bytes_max, budget);
    arena_init_charged(&writer.scratch, bytes_max, budget);
    tag_list_init(&writer.resource_tags, bytes_max, budget);
    tag_list_init(&writer.scope_tags, bytes_max, budget);
    tag_list_init(&writer.span_tags, bytes_max, budget);
    arena_init_charged(&writer.resource_arena, bytes_max, budget);
    arena_init_charged(&writer.scope_arena, bytes_max, budget);
    while (!has_failed(&writer) && wire_next_field(&reader, &field))
        if (field.number == REQUEST_RESOURCE_SPANS)
            write_resource_spans(&writer, field.bytes);
    if (format == ZIPKIN_JSON && writer.written > 0)
        put(&writer, "]");
    tag_list_fini(&writer.resource_tags);
    tag_list_fini(&writer.scope_tags);
    tag_list_fini(&writer.span_tags);
    arena_clear(&writer.resource_arena);
    arena_clear(&writer.scope_arena);
    arena_clear(&writer.span_arena);
    arena_clear(&writer.scratch);
    if (writer.output.has_failed)
        fail(&writer, writer.output.is_too_large ? ZIPKIN_TOO_LARGE : ZIPKIN_NO_MEMORY);
    struct buffer *text = json_output_take(&writer.output);
    if (writer.failure != ZIPKIN_WRITTEN || writer.written == 0) {
        buffer_unref(text);
        text = NULL;
    }
    if (writer.failure == ZIPKIN_WRITTEN)
        *ret_body = (struct zipkin_body){
            .text = text, .written = writer.written, .invalid = writer.invalid};
    return writer.failure;
}
