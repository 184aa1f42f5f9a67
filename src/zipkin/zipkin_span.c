/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a Span of OTLP from what was read of one of Zipkin. On the thread of the request. */
#include "src/zipkin/zipkin_parts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/hex.h"
#include "src/base/utf8.h"
#include "src/net/syntax/ip_address.h"
#include "src/otlp/json/value_string.h"

/* Fields of ScopeSpans, Span, its Status, Event and Link. */
enum {
    SPANS = 2,
    SPAN_TRACE_ID = 1,
    SPAN_ID = 2,
    SPAN_TRACE_STATE = 3,
    SPAN_PARENT_ID = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_EVENTS = 11,
    SPAN_LINKS = 13,
    SPAN_STATUS = 15,
    STATUS_MESSAGE = 2,
    STATUS_CODE = 3,
    EVENT_TIME = 1,
    EVENT_NAME = 2,
    EVENT_DROPPED = 4,
    LINK_TRACE_ID = 1,
    LINK_SPAN_ID = 2,
    LINK_TRACE_STATE = 3,
    LINK_DROPPED = 5,
};

enum { KIND_INTERNAL = 1, KIND_SERVER = 2, KIND_CLIENT = 3, KIND_PRODUCER = 4, KIND_CONSUMER = 5 };
enum { CODE_UNSET = 0, CODE_OK = 1, CODE_ERROR = 2 };

/* Texts of spans before may stay until they take this much. */
enum { TEXTS_KEPT_MAX = 16384 };

static const char unknown_service[] = "unknown-service";

/* ---- What went wrong ---- */

bool zipkin_malformed(struct zipkin_request *request, const uint8_t *at, const char *place,
                      const char *found, const char *expected)
{
    static const char *const forms[ZIPKIN_FORMS] = {
        [ZIPKIN_V2_JSON] = "JSON",
        [ZIPKIN_V2_PROTO] = "protobuf",
        [ZIPKIN_V1_JSON] = "JSON",
        [ZIPKIN_V1_THRIFT] = "Thrift",
    };
    if (request->verdict != CONVERTED)
        return false;
    request->verdict = CONVERSION_MALFORMED;
    snprintf(request->reason, CONVERSION_REASON_BYTES_MAX, "%s at byte %zu%s%s: %s%s%s%s",
             forms[request->source->form], (size_t)(at - request->body.data),
             place[0] != '\0' ? ", in " : "", place, expected != NULL ? "found " : "", found,
             expected != NULL ? ", expected " : "", expected != NULL ? expected : "");
    return false;
}

bool zipkin_no_memory(struct zipkin_request *request, size_t bytes)
{
    const struct nested_output *output = &request->output;
    uint64_t held = request->body.size + bytes + request->tags.bytes + request->events.bytes +
                    request->order.bytes + request->places.bytes + request->groups.bytes +
                    request->parts.bytes + request->known.slots.bytes +
                    (output->buffer != NULL ? output->buffer->capacity : 0);
    if (request->verdict != CONVERTED)
        return false;
    bool never_fits = request->budget != NULL && held > budget_limit(request->budget);
    request->verdict = never_fits ? CONVERSION_OVERSIZED : CONVERSION_BUSY;
    snprintf(request->reason, CONVERSION_REASON_BYTES_MAX,
             "the spans become more than the whole memory budget (service::budget_mib) as OTLP; "
             "send less at a time");
    return false;
}

/* ---- Texts ---- */

static void *texts_room(struct zipkin_request *request, size_t bytes)
{
    void *room = arena_try_alloc(&request->texts, bytes);
    if (room == NULL)
        zipkin_no_memory(request, bytes);
    return room;
}

bool zipkin_valid_text(struct zipkin_request *request, struct slice text, struct slice *ret_text)
{
    static const uint8_t replacement[] = {0xef, 0xbf, 0xbd};
    *ret_text = text;
    if (utf8_is_valid(text))
        return true;
    uint8_t *room = texts_room(request, text.size * sizeof(replacement));
    size_t size = 0;
    if (room == NULL)
        return false;
    for (size_t at = 0; at < text.size;) {
        size_t step = utf8_size(slice_of(text.data + at, text.size - at));
        memcpy(room + size, step > 0 ? text.data + at : replacement,
               step > 0 ? step : sizeof(replacement));
        size += step > 0 ? step : sizeof(replacement);
        at += step > 0 ? step : 1;
    }
    *ret_text = slice_of(room, size);
    return true;
}

bool zipkin_print_address(struct zipkin_request *request, struct slice address,
                          struct slice *ret_text)
{
    bool is_address = address.size == IPV4_BYTES || address.size == IPV6_BYTES;
    *ret_text = slice_of("", 0);
    if (address.size == 0)
        return true;
    char *room = texts_room(request, is_address ? IP_ADDRESS_STRING_MAX : 2 * address.size + 1);
    if (room == NULL)
        return false;
    if (is_address) {
        *ret_text = slice_of(room, ip_address_print(address, room));
        return true;
    }
    room[0] = '?';
    hex_write(address.data, address.size, room + 1);
    *ret_text = slice_of(room, 2 * address.size + 1);
    return true;
}

/* ---- What is read of a span ---- */

void zipkin_span_begin(struct zipkin_request *request)
{
    request->span = (struct zipkin_span){.kind = 0};
    request->facts = (struct zipkin_v1_facts){.has_endpoint = false};
    request->tags_count = 0;
    request->events_count = 0;
    if (request->texts.used_bytes > TEXTS_KEPT_MAX)
        arena_clear(&request->texts);
}

bool zipkin_add_event(struct zipkin_request *request, uint64_t time_ns, struct slice text)
{
    size_t bytes = (request->events_count + 1) * sizeof(struct zipkin_event);
    struct zipkin_event *events = scratch_room(&request->events, request->budget, bytes);
    if (events == NULL)
        return zipkin_no_memory(request, bytes);
    events[request->events_count++] = (struct zipkin_event){time_ns, text};
    return true;
}

/* ---- Parts of a Span ---- */

static void put_attribute(struct zipkin_request *request, const struct zipkin_tag *tag)
{
    zipkin_put_tag(&request->output, FIELD_ATTRIBUTES_OF_SPAN, tag);
    request->messages += 2;
}

static void put_identity(struct zipkin_request *request, struct slice trace_state)
{
    const struct zipkin_span *span = &request->span;
    struct nested_output *output = &request->output;
    nested_put_id(output, SPAN_TRACE_ID, slice_of(span->trace_id, sizeof(span->trace_id)));
    nested_put_id(output, SPAN_ID, slice_of(span->id, sizeof(span->id)));
    nested_put_text(output, SPAN_TRACE_STATE, trace_state);
    nested_put_id(output, SPAN_PARENT_ID, slice_of(span->parent_id, sizeof(span->parent_id)));
    nested_put_text(output, SPAN_NAME, span->name);
    if (span->kind != 0)
        nested_put_number(output, SPAN_KIND, span->kind);
    if (span->start_ns != 0)
        nested_put_fixed64(output, SPAN_START, span->start_ns);
    if (span->end_ns != 0)
        nested_put_fixed64(output, SPAN_END, span->end_ns);
}

static void put_status(struct zipkin_request *request, int32_t code, struct slice message)
{
    struct nested_output *output = &request->output;
    if (code == CODE_UNSET && message.size == 0)
        return;
    struct nested_message status = nested_put_begin(output, SPAN_STATUS, 1);
    nested_put_text(output, STATUS_MESSAGE, message);
    if (code != CODE_UNSET)
        nested_put_number(output, STATUS_CODE, (uint64_t)(int64_t)code);
    nested_put_end(output, status);
    request->messages++;
}

/* The part of text up to the separator, which is passed. The rest, without one. */
static struct slice take_part(struct slice *text)
{
    const uint8_t *bar = text->size > 0 ? memchr(text->data, '|', text->size) : NULL;
    struct slice part = *text;
    if (bar != NULL)
        part.size = (size_t)(bar - text->data);
    size_t passed = part.size + (bar != NULL);
    *text = slice_of(text->data + passed, text->size - passed);
    return part;
}

/* Splits "JSON|COUNT", which is how the exporter ends links and events. False: it is something
 * else. The JSON may contain bars. */
static bool split_tail(struct slice text, struct slice *ret_json, uint32_t *ret_dropped)
{
    const uint8_t *bar = text.size > 0 ? memrchr(text.data, '|', text.size) : NULL;
    uint64_t dropped = 0;
    if (bar == NULL || bar + 1 == text.data + text.size)
        return false;
    for (const uint8_t *at = bar + 1; at < text.data + text.size; at++) {
        if (*at < '0' || *at > '9')
            return false;
        dropped = dropped * 10 + (uint64_t)(*at - '0');
        if (dropped > UINT32_MAX)
            return false;
    }
    *ret_json = slice_of(text.data, (size_t)(bar - text.data));
    *ret_dropped = (uint32_t)dropped;
    return true;
}

/* NAME|ATTRIBUTES|COUNT as the exporter writes events, in v2; anything else is the name. */
static void put_event(struct zipkin_request *request, const struct zipkin_event *event)
{
    struct nested_output *output = &request->output;
    bool is_v2 = request->source->form <= ZIPKIN_V2_PROTO;
    struct slice rest = event->text;
    struct slice name = is_v2 ? take_part(&rest) : rest;
    struct slice json;
    uint32_t dropped = 0;
    struct nested_message nested = nested_put_begin(output, SPAN_EVENTS, 1);
    request->messages++;
    if (event->time_ns != 0)
        nested_put_fixed64(output, EVENT_TIME, event->time_ns);
    size_t before = nested_output_size(output);
    nested_put_text(output, EVENT_NAME, name);
    if (name.size < event->text.size &&
        (!split_tail(rest, &json, &dropped) ||
         !zipkin_put_json(request, FIELD_ATTRIBUTES_OF_EVENT, json))) {
        dropped = 0;
        if (output->refused_bytes == 0)
            nested_output_cut(output, before);
        nested_put_text(output, EVENT_NAME, event->text);
    }
    if (dropped > 0)
        nested_put_number(output, EVENT_DROPPED, dropped);
    nested_put_end(output, nested);
}

static void put_events(struct zipkin_request *request)
{
    const struct zipkin_event *events = request->events.memory;
    for (size_t i = 0; i < request->events_count; i++)
        put_event(request, &events[i]);
}

/* Digits, in quotes or not; none at all are zeros. */
static bool read_hex(struct slice text, uint8_t *id, size_t size)
{
    if (text.size >= 2 && text.data[0] == '"' && text.data[text.size - 1] == '"')
        text = slice_of(text.data + 1, text.size - 2);
    memset(id, 0, size);
    if (text.size == 0)
        return true;
    if (text.size != 2 * size)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = hex_digit(text.data[i]);
        if (digit > 15)
            return false;
        id[i / 2] = (uint8_t)((unsigned)id[i / 2] << 4 | digit);
    }
    return true;
}

/* TRACE|SPAN|STATE|ATTRIBUTES|COUNT as the exporter writes links. False: it is something else. */
static bool put_link(struct zipkin_request *request, struct slice text)
{
    struct nested_output *output = &request->output;
    uint8_t trace_id[ZIPKIN_TRACE_ID_BYTES];
    uint8_t span_id[ZIPKIN_SPAN_ID_BYTES];
    struct slice json;
    uint32_t dropped;
    struct slice trace = take_part(&text);
    struct slice span = take_part(&text);
    struct slice state = take_part(&text);
    if (!read_hex(trace, trace_id, sizeof(trace_id)) || !read_hex(span, span_id, sizeof(span_id)) ||
        !split_tail(text, &json, &dropped))
        return false;
    size_t before = nested_output_size(output);
    struct nested_message link = nested_put_begin(output, SPAN_LINKS, 1);
    nested_put_id(output, LINK_TRACE_ID, slice_of(trace_id, sizeof(trace_id)));
    nested_put_id(output, LINK_SPAN_ID, slice_of(span_id, sizeof(span_id)));
    nested_put_text(output, LINK_TRACE_STATE, state);
    if (!zipkin_put_json(request, FIELD_ATTRIBUTES_OF_LINK, json)) {
        if (output->refused_bytes == 0)
            nested_output_cut(output, before);
        return false;
    }
    if (dropped > 0)
        nested_put_number(output, LINK_DROPPED, dropped);
    nested_put_end(output, link);
    request->messages++;
    return true;
}

/* ---- Version 2 ---- */

/* The tags of a span that mean something, by role. */
struct known_tags {
    struct zipkin_tag *tags[ROLES];
    struct zipkin_tag *links[ZIPKIN_LINKS_MAX];
};

/* The text of the tag, which is then no attribute; "" without it. */
static struct slice take_text(struct zipkin_tag *tag)
{
    if (tag == NULL)
        return slice_of("", 0);
    tag->is_gone = true;
    return tag->text;
}

/* Names of the exporter, old and new, and of OpenTelemetry's specification for Zipkin. */
static bool read_code(struct slice text, int32_t *ret_code)
{
    static const char *const names[][3] = {
        [CODE_UNSET] = {"STATUS_CODE_UNSET", "Unset", "UNSET"},
        [CODE_OK] = {"STATUS_CODE_OK", "Ok", "OK"},
        [CODE_ERROR] = {"STATUS_CODE_ERROR", "Error", "ERROR"},
    };
    for (int32_t code = CODE_UNSET; code <= CODE_ERROR; code++)
        for (size_t i = 0; i < 3; i++)
            if (slice_equal_text(text, names[code][i])) {
                *ret_code = code;
                return true;
            }
    return false;
}

/* Sorts the tags by what they mean. What is an attribute of the resource or names the scope leaves
 * the span; the parts of its group are written to the head. The sizes are those of
 * zipkin_file_span. */
static void put_head(struct zipkin_request *request, struct known_tags *known, size_t sizes[4])
{
    struct nested_output *head = &request->head;
    struct zipkin_tag *tags = request->tags.memory;
    struct slice service = request->span.local.service;
    unsigned link = 0;
    memset(known, 0, sizeof(*known));
    nested_output_cut(head, 0);
    for (size_t i = 0; i < request->tags_count; i++) {
        if (tags[i].is_gone)
            continue;
        tags[i].role = zipkin_role_of(tags[i].key, &link);
        if (tags[i].role == ROLE_LINK)
            known->links[link] = &tags[i];
        else
            known->tags[tags[i].role] = &tags[i];
    }
    struct slice source = take_text(known->tags[ROLE_SERVICE_SOURCE]);
    struct slice name_key = source.size > 0 ? source : slice_of_text("service.name");
    /* A tag of that name overrules the endpoint. */
    bool has_name = service.size == 0;
    for (size_t i = 0; known->tags[ROLE_RESOURCE] != NULL && i < request->tags_count; i++)
        has_name |=
            !tags[i].is_gone && tags[i].role == ROLE_RESOURCE && slice_equal(tags[i].key, name_key);
    nested_put_raw(head, service);
    sizes[0] = nested_output_size(head);
    if (!has_name)
        zipkin_put_tag(head, FIELD_ATTRIBUTES_OF_RESOURCE,
                       &(struct zipkin_tag){.key = name_key, .text = service});
    for (size_t i = 0; known->tags[ROLE_RESOURCE] != NULL && i < request->tags_count; i++) {
        if (tags[i].is_gone || tags[i].role != ROLE_RESOURCE)
            continue;
        zipkin_put_tag(head, FIELD_ATTRIBUTES_OF_RESOURCE, &tags[i]);
        tags[i].is_gone = true;
    }
    sizes[1] = nested_output_size(head) - sizes[0];
    struct slice library = take_text(known->tags[ROLE_LIBRARY_NAME]);
    struct slice library_version = take_text(known->tags[ROLE_LIBRARY_VERSION]);
    struct zipkin_tag *scope = known->tags[ROLE_SCOPE_NAME];
    struct zipkin_tag *scope_version = known->tags[ROLE_SCOPE_VERSION];
    struct slice name = scope != NULL ? take_text(scope) : library;
    struct slice version = scope_version != NULL ? take_text(scope_version) : library_version;
    nested_put_raw(head, name);
    nested_put_raw(head, version);
    sizes[2] = name.size;
    sizes[3] = version.size;
}

/* What OTLP's status says, from the tags that say it. */
static int32_t take_status(struct known_tags *known, struct slice *ret_message)
{
    struct zipkin_tag *tag = known->tags[ROLE_STATUS_CODE];
    const struct zipkin_tag *error = known->tags[ROLE_ERROR];
    int32_t code = CODE_UNSET;
    *ret_message = slice_of("", 0);
    if (tag != NULL) {
        tag->is_gone = read_code(tag->text, &code);
        *ret_message = take_text(known->tags[ROLE_STATUS_DESCRIPTION]);
    }
    if (error != NULL) {
        code = CODE_ERROR;
        if (slice_equal_text(error->text, "true"))
            known->tags[ROLE_ERROR]->is_gone = true;
    }
    return code;
}

/* Kinds that Zipkin does not have are a tag of the exporter. */
static void take_kind(struct zipkin_span *span, struct zipkin_tag *tag)
{
    if (span->kind != 0 || tag == NULL)
        return;
    bool is_internal = slice_equal_text(tag->text, "internal");
    tag->is_gone = is_internal || slice_equal_text(tag->text, "unspecified") || tag->text.size == 0;
    span->kind = is_internal ? KIND_INTERNAL : 0;
}

static void put_known(struct zipkin_request *request, struct known_tags *known,
                      enum zipkin_role role, struct zipkin_tag attribute)
{
    attribute.key = slice_of_text(zipkin_key_of(role));
    put_attribute(request, &attribute);
    if (known->tags[role] != NULL)
        known->tags[role]->is_gone = true;
}

static void put_endpoint(struct zipkin_request *request, struct known_tags *known,
                         const struct zipkin_endpoint *endpoint, enum zipkin_role address,
                         enum zipkin_role port)
{
    struct slice text = endpoint->ipv6.size > 0 ? endpoint->ipv6 : endpoint->ipv4;
    if (text.size > 0)
        put_known(request, known, address, (struct zipkin_tag){.text = text});
    if (endpoint->port > 0)
        put_known(request, known, port,
                  (struct zipkin_tag){.type = ZIPKIN_INT, .integer = endpoint->port});
}

bool zipkin_v2_end(struct zipkin_request *request)
{
    struct zipkin_span *span = &request->span;
    struct nested_output *output = &request->output;
    struct known_tags known;
    size_t sizes[4];
    struct slice message;
    if (request->verdict != CONVERTED ||
        !zipkin_tags_settle(request, request->tags.memory, request->tags_count))
        return false;
    put_head(request, &known, sizes);
    if (memcmp(span->parent_id, span->id, sizeof(span->id)) == 0)
        memset(span->parent_id, 0, sizeof(span->parent_id));
    take_kind(span, known.tags[ROLE_SPAN_KIND]);
    int32_t code = take_status(&known, &message);
    size_t begin = nested_output_size(output);
    struct nested_message whole = nested_put_begin(output, SPANS, 2);
    put_identity(request, take_text(known.tags[ROLE_TRACE_STATE]));
    for (size_t i = 0; i < ZIPKIN_LINKS_MAX && known.links[i] != NULL; i++)
        known.links[i]->is_gone = put_link(request, known.links[i]->text);
    if (!span->has_start)
        put_known(request, &known, ROLE_START_ABSENT,
                  (struct zipkin_tag){.type = ZIPKIN_BOOL, .boolean = true});
    put_endpoint(request, &known, &span->local, ROLE_LOCAL_ADDRESS, ROLE_LOCAL_PORT);
    if (span->remote.service.size > 0)
        put_known(request, &known, ROLE_PEER_NAME,
                  (struct zipkin_tag){.text = span->remote.service});
    put_endpoint(request, &known, &span->remote, ROLE_PEER_ADDRESS, ROLE_PEER_PORT);
    struct zipkin_tag *tags = request->tags.memory;
    for (size_t i = 0; i < request->tags_count; i++) {
        if (tags[i].is_gone)
            continue;
        if (request->source->parses_strings)
            zipkin_tag_parse(&tags[i]);
        put_attribute(request, &tags[i]);
    }
    put_events(request);
    put_status(request, code, message);
    nested_put_end(output, whole);
    return zipkin_file_span(request, begin, sizes);
}

/* ---- Version 1 ---- */

bool zipkin_v1_annotation(struct zipkin_request *request, int64_t timestamp, struct slice value,
                          const struct zipkin_endpoint *endpoint)
{
    static const struct {
        const char *value;
        unsigned kind;
    } kinds[] = {
        {"cs", KIND_CLIENT},   {"cr", KIND_CLIENT}, {"ms", KIND_PRODUCER},
        {"mr", KIND_CONSUMER}, {"ss", KIND_SERVER}, {"sr", KIND_SERVER},
    };
    struct zipkin_span *span = &request->span;
    struct zipkin_v1_facts *facts = &request->facts;
    unsigned kind = 0;
    if (value.size == 0)
        return true;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && kind == 0; i++)
        kind = slice_equal_text(value, kinds[i].value) ? kinds[i].kind : 0;
    bool has_service = endpoint != NULL && endpoint->service.size > 0 &&
                       !slice_equal_text(endpoint->service, unknown_service);
    if (kind != 0 && has_service && !facts->has_endpoint) {
        facts->has_endpoint = true;
        span->local = *endpoint;
    }
    if (span->kind == 0)
        span->kind = kind;
    facts->first = !facts->has_annotation || timestamp < facts->first ? timestamp : facts->first;
    facts->last = !facts->has_annotation || timestamp > facts->last ? timestamp : facts->last;
    facts->has_annotation = true;
    return kind != 0 || zipkin_add_event(request, zipkin_v1_time(timestamp), value);
}

void zipkin_v1_forget_annotations(struct zipkin_request *request)
{
    struct zipkin_v1_facts *facts = &request->facts;
    request->events_count = 0;
    request->span.kind = 0;
    request->span.local = (struct zipkin_endpoint){.port = 0};
    facts->has_endpoint = false;
    facts->has_annotation = false;
}

void zipkin_v1_forget_tags(struct zipkin_request *request)
{
    request->tags_count = 0;
    request->span.remote = (struct zipkin_endpoint){.port = 0};
    request->facts.service = slice_of("", 0);
    request->facts.component = slice_of("", 0);
}

uint64_t zipkin_v1_time(int64_t microseconds)
{
    return microseconds > 0 ? (uint64_t)microseconds * ZIPKIN_NS_PER_US : 0;
}

/* The other side's address, of a client, a server or a broker, as zipkinCore.thrift has it. */
static bool is_address(const struct zipkin_tag *tag, struct slice value)
{
    bool is_true = tag->type == ZIPKIN_BOOL ? tag->boolean : slice_equal_text(value, "true");
    return is_true && (slice_equal_text(tag->key, "sa") || slice_equal_text(tag->key, "ca") ||
                       slice_equal_text(tag->key, "ma"));
}

bool zipkin_v1_binary(struct zipkin_request *request, struct zipkin_tag *tag, struct slice value,
                      const struct zipkin_endpoint *endpoint)
{
    struct zipkin_v1_facts *facts = &request->facts;
    if (endpoint != NULL && is_address(tag, value)) {
        request->span.remote = *endpoint;
        return true;
    }
    if (endpoint != NULL && endpoint->service.size > 0)
        facts->service = endpoint->service;
    if (slice_equal_text(tag->key, "lc")) {
        tag->key = slice_of_text("component");
        facts->component = value;
    }
    return zipkin_add_tag(request, tag);
}

/* A status from one of several sources. */
struct v1_status {
    bool has_code;
    int32_t code;
    struct slice message;
};

struct v1_statuses {
    struct v1_status census;
    struct v1_status otel;
    struct v1_status http;
    bool has_error;
};

/* A whole number of 32 bits, or one in digits. */
static bool read_small_number(const struct zipkin_tag *tag, int32_t *ret_number)
{
    int64_t number = tag->type == ZIPKIN_INT ? tag->integer : 0;
    if (tag->type != ZIPKIN_INT &&
        (tag->type != ZIPKIN_STRING || !string_to_int(tag->text, &number)))
        return false;
    *ret_number = (int32_t)number;
    return number >= INT32_MIN && number <= INT32_MAX;
}

/* Notes what the tag says of the status. Tags that say nothing else are no attributes. */
static void note_status(struct v1_statuses *statuses, struct zipkin_tag *tag)
{
    struct slice text = tag->type == ZIPKIN_STRING ? tag->text : slice_of("", 0);
    int32_t number = 0;
    if (slice_equal_text(tag->key, "census.status_code")) {
        if (!read_small_number(tag, &number))
            return;
        statuses->census.has_code = true;
        statuses->census.code = number == 0 ? CODE_OK : CODE_ERROR;
        tag->is_gone = true;
    } else if (slice_equal_text(tag->key, "census.status_description") ||
               slice_equal_text(tag->key, "opencensus.status_description")) {
        statuses->census.message = text;
        tag->is_gone = true;
    } else if (slice_equal_text(tag->key, zipkin_key_of(ROLE_STATUS_CODE))) {
        if (!read_small_number(tag, &number) && !read_code(text, &number))
            return;
        statuses->otel.has_code = true;
        statuses->otel.code = number;
        tag->is_gone = true;
    } else if (slice_equal_text(tag->key, zipkin_key_of(ROLE_STATUS_DESCRIPTION))) {
        statuses->otel.message = text;
        tag->is_gone = true;
    } else if (slice_equal_text(tag->key, "http.status_code") ||
               slice_equal_text(tag->key, "http.response.status_code")) {
        if (!read_small_number(tag, &number))
            return;
        statuses->http.has_code = true;
        statuses->http.code = number >= 100 && number < 400 ? CODE_UNSET : CODE_ERROR;
    } else if (slice_equal_text(tag->key, "http.status_message")) {
        statuses->http.message = text;
    } else if (slice_equal_text(tag->key, zipkin_key_of(ROLE_ERROR))) {
        bool says_why = tag->type == ZIPKIN_STRING ? text.size > 0 : tag->type != ZIPKIN_BOOL;
        statuses->has_error = true;
        tag->is_gone = !says_why || slice_equal_text(text, "true");
    }
}

static struct v1_status v1_status_of(const struct v1_statuses *statuses)
{
    if (statuses->census.has_code)
        return statuses->census;
    if (statuses->otel.has_code)
        return statuses->otel;
    if (statuses->has_error)
        return (struct v1_status){
            .code = CODE_ERROR,
            .message = statuses->census.message.size > 0 ? statuses->census.message
                                                         : statuses->otel.message,
        };
    return statuses->http.has_code ? statuses->http : (struct v1_status){.code = CODE_UNSET};
}

/* The resource is the endpoint. */
static void put_v1_head(struct zipkin_request *request, size_t sizes[4])
{
    enum { PORT_TEXT_MAX = 12 };
    const struct zipkin_endpoint *endpoint = &request->span.local;
    struct nested_output *head = &request->head;
    char port[PORT_TEXT_MAX];
    size_t port_size = (size_t)snprintf(port, sizeof(port), "%" PRId32, endpoint->port);
    const struct zipkin_tag attributes[] = {
        {.key = slice_of_text("service.name"), .text = endpoint->service},
        {.key = slice_of_text("ipv4"), .text = endpoint->ipv4},
        {.key = slice_of_text("ipv6"), .text = endpoint->ipv6},
        {.key = slice_of_text("port"), .text = slice_of(port, endpoint->port != 0 ? port_size : 0)},
    };
    nested_output_cut(head, 0);
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
        if (attributes[i].text.size > 0)
            zipkin_put_tag(head, FIELD_ATTRIBUTES_OF_RESOURCE, &attributes[i]);
    memset(sizes, 0, 4 * sizeof(sizes[0]));
    sizes[1] = nested_output_size(head);
}

static void finish_v1_facts(struct zipkin_request *request)
{
    struct zipkin_span *span = &request->span;
    const struct zipkin_v1_facts *facts = &request->facts;
    if (!facts->has_endpoint) {
        struct slice service = facts->service.size > 0 ? facts->service : facts->component;
        span->local.service = service.size > 0 ? service : slice_of_text(unknown_service);
    }
    if (facts->has_annotation) {
        span->start_ns = zipkin_v1_time(facts->first);
        span->end_ns = zipkin_v1_time(facts->last);
    }
    if (facts->has_timestamp) {
        uint64_t end = (uint64_t)facts->timestamp + (uint64_t)facts->duration;
        span->start_ns = zipkin_v1_time(facts->timestamp);
        span->end_ns = zipkin_v1_time((int64_t)end);
    }
    span->has_start = span->start_ns != 0 || request->source->form == ZIPKIN_V1_THRIFT;
    if (!span->has_start)
        span->start_ns = span->end_ns = request->source->now_ns;
}

/* The remote endpoint, as of a span of v2; tags that say the same are gone. */
static void put_v1_remote(struct zipkin_request *request)
{
    static const enum zipkin_role roles[] = {ROLE_PEER_NAME, ROLE_PEER_ADDRESS, ROLE_PEER_PORT};
    const struct zipkin_endpoint *remote = &request->span.remote;
    struct zipkin_tag *tags = request->tags.memory;
    struct known_tags known = {.tags = {NULL}};
    if (remote->service.size == 0 && remote->ipv4.size == 0 && remote->ipv6.size == 0 &&
        remote->port == 0)
        return;
    for (size_t i = 0; i < request->tags_count; i++)
        for (size_t j = 0; j < sizeof(roles) / sizeof(roles[0]); j++)
            if (!tags[i].is_gone && slice_equal_text(tags[i].key, zipkin_key_of(roles[j])))
                known.tags[roles[j]] = &tags[i];
    if (remote->service.size > 0)
        put_known(request, &known, ROLE_PEER_NAME, (struct zipkin_tag){.text = remote->service});
    put_endpoint(request, &known, remote, ROLE_PEER_ADDRESS, ROLE_PEER_PORT);
}

bool zipkin_v1_end(struct zipkin_request *request)
{
    struct zipkin_tag *tags = request->tags.memory;
    struct nested_output *output = &request->output;
    const char *absent = zipkin_key_of(ROLE_START_ABSENT);
    struct v1_statuses statuses = {.has_error = false};
    size_t sizes[4];
    if (request->verdict != CONVERTED || !zipkin_tags_settle(request, tags, request->tags_count))
        return false;
    finish_v1_facts(request);
    put_v1_head(request, sizes);
    for (size_t i = 0; i < request->tags_count; i++)
        note_status(&statuses, &tags[i]);
    struct v1_status status = v1_status_of(&statuses);
    size_t begin = nested_output_size(output);
    struct nested_message whole = nested_put_begin(output, SPANS, 2);
    put_identity(request, slice_of("", 0));
    put_v1_remote(request);
    for (size_t i = 0; i < request->tags_count; i++)
        if (!tags[i].is_gone && (request->span.has_start || !slice_equal_text(tags[i].key, absent)))
            put_attribute(request, &tags[i]);
    if (!request->span.has_start)
        put_attribute(request, &(struct zipkin_tag){.key = slice_of_text(absent),
                                                    .type = ZIPKIN_BOOL,
                                                    .boolean = true});
    put_events(request);
    put_status(request, status.code, status.message);
    nested_put_end(output, whole);
    return zipkin_file_span(request, begin, sizes);
}
