/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a Span of OTLP from what was read of one of Jaeger, with its events, and a Resource from a
 * process. On the thread of the request. */
#include "src/jaeger/jaeger_parts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/utf8.h"
#include "src/otlp/json/value_string.h"

/* Fields of ScopeSpans, Span, its Status, Event and Link, of Resource, KeyValue and AnyValue. */
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
    SPAN_ATTRIBUTES = 9,
    SPAN_EVENTS = 11,
    SPAN_LINKS = 13,
    SPAN_STATUS = 15,
    STATUS_MESSAGE = 2,
    STATUS_CODE = 3,
    EVENT_TIME = 1,
    EVENT_NAME = 2,
    EVENT_ATTRIBUTES = 3,
    LINK_TRACE_ID = 1,
    LINK_SPAN_ID = 2,
    LINK_ATTRIBUTES = 4,
    RESOURCE_ATTRIBUTES = 1,
    KEY = 1,
    VALUE = 2,
    VALUE_STRING = 1,
    VALUE_BOOL = 2,
    VALUE_INT = 3,
    VALUE_DOUBLE = 4,
    VALUE_BYTES = 7,
};

enum { KIND_UNSPECIFIED, KIND_INTERNAL, KIND_SERVER, KIND_CLIENT, KIND_PRODUCER, KIND_CONSUMER };
enum { CODE_UNSET = 0, CODE_OK = 1, CODE_ERROR = 2 };

/* Texts of spans before may stay until they take this much. */
enum { TEXTS_KEPT_MAX = 16384 };
/* Up to here each tag is compared with all others. */
enum { FEW_TAGS = 16 };

/* ---- What went wrong ---- */

bool jaeger_malformed(struct jaeger_request *request, const uint8_t *at, const char *place,
                      const char *found, const char *expected)
{
    if (request->verdict != CONVERTED)
        return false;
    request->verdict = CONVERSION_MALFORMED;
    snprintf(request->reason, CONVERSION_REASON_BYTES_MAX, "%s at byte %zu, in %s: %s%s%s%s",
             request->form == JAEGER_PROTO ? "protobuf" : "Thrift",
             (size_t)(at - request->body.data), place, expected != NULL ? "found " : "", found,
             expected != NULL ? ", expected " : "", expected != NULL ? expected : "");
    return false;
}

bool jaeger_no_memory(struct jaeger_request *request, size_t bytes)
{
    uint64_t held = request->body.size + bytes + request->tags.bytes + request->references.bytes +
                    request->order.bytes;
    for (size_t i = 0; i < JAEGER_GROUPS; i++) {
        const struct buffer *output = request->groups[i].output.buffer;
        held += output != NULL ? output->capacity : 0;
    }
    if (request->verdict != CONVERTED)
        return false;
    bool never_fits = request->budget != NULL && held > budget_limit(request->budget);
    request->verdict = never_fits ? CONVERSION_OVERSIZED : CONVERSION_BUSY;
    snprintf(request->reason, CONVERSION_REASON_BYTES_MAX,
             "the spans become more than the whole memory budget (service::budget_mib) as OTLP; "
             "send less at a time");
    return false;
}

bool jaeger_valid_text(struct jaeger_request *request, struct slice text, struct slice *ret_text)
{
    static const uint8_t replacement[] = {0xef, 0xbf, 0xbd};
    *ret_text = text;
    if (utf8_is_valid(text))
        return true;
    uint8_t *room = arena_try_alloc(&request->texts, text.size * sizeof(replacement));
    size_t size = 0;
    if (room == NULL)
        return jaeger_no_memory(request, text.size * sizeof(replacement));
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

/* ---- What is read of a span ---- */

void jaeger_span_begin(struct jaeger_request *request)
{
    request->span = (struct jaeger_span){.start_ns = 0};
    request->tags_count = 0;
    request->references_count = 0;
    nested_output_cut(&request->events, 0);
    if (request->texts.used_bytes > TEXTS_KEPT_MAX)
        arena_clear(&request->texts);
}

bool jaeger_add_tag(struct jaeger_request *request, const struct jaeger_tag *tag)
{
    struct jaeger_tag *tags = request->tags.memory;
    size_t bytes = (request->tags_count + 1) * sizeof(tags[0]);
    tags = scratch_room(&request->tags, request->budget, bytes);
    if (tags == NULL)
        return jaeger_no_memory(request, bytes);
    tags[request->tags_count++] = *tag;
    return true;
}

bool jaeger_add_unknown(struct jaeger_request *request, struct slice key, const char *type)
{
    enum { TEXT_MAX = 64 };
    char *room = arena_try_alloc(&request->texts, TEXT_MAX);
    if (room == NULL)
        return jaeger_no_memory(request, TEXT_MAX);
    int size = snprintf(room, TEXT_MAX, "<Unknown Jaeger TagType \"%s\">", type);
    assert(size > 0 && size < TEXT_MAX);
    return jaeger_add_tag(request, &(struct jaeger_tag){.key = key,
                                                        .bytes = slice_of(room, (size_t)size),
                                                        .is_unknown = true});
}

bool jaeger_add_reference(struct jaeger_request *request, const struct jaeger_reference *reference)
{
    size_t bytes = (request->references_count + 1) * sizeof(*reference);
    struct jaeger_reference *references =
        scratch_room(&request->references, request->budget, bytes);
    if (references == NULL)
        return jaeger_no_memory(request, bytes);
    references[request->references_count++] = *reference;
    return true;
}

/* ---- Tags ---- */

static int compare_tags(const void *left, const void *right)
{
    const struct jaeger_tag *a = *(struct jaeger_tag *const *)left;
    const struct jaeger_tag *b = *(struct jaeger_tag *const *)right;
    int order = slice_compare(a->key, b->key);
    return order != 0 ? order : (a > b) - (a < b);
}

/* Marks all tags but the last of those with equal keys. False: no memory. */
static bool settle(struct jaeger_request *request, struct jaeger_tag *tags, size_t count)
{
    if (count <= FEW_TAGS) {
        for (size_t i = 0; i < count; i++)
            for (size_t j = i + 1; j < count && !tags[i].is_gone; j++)
                tags[i].is_gone |= slice_equal(tags[i].key, tags[j].key);
        return true;
    }
    size_t bytes = count * sizeof(struct jaeger_tag *);
    struct jaeger_tag **order = scratch_room(&request->order, request->budget, bytes);
    if (order == NULL)
        return jaeger_no_memory(request, bytes);
    for (size_t i = 0; i < count; i++)
        order[i] = &tags[i];
    qsort(order, count, sizeof(struct jaeger_tag *), compare_tags);
    for (size_t i = 0; i + 1 < count; i++)
        order[i]->is_gone |= slice_equal(order[i]->key, order[i + 1]->key);
    return true;
}

/* NULL: there is none. */
static struct jaeger_tag *find(struct jaeger_tag *tags, size_t count, const char *key)
{
    struct slice wanted = slice_of_text(key);
    for (size_t i = 0; i < count; i++)
        if (!tags[i].is_gone && slice_equal(tags[i].key, wanted))
            return &tags[i];
    return NULL;
}

/* The tag's string; empty when it is no string. */
static struct slice string_of(const struct jaeger_tag *tag)
{
    return tag->type == JAEGER_STRING ? tag->bytes : slice_of("", 0);
}

/* Takes the tag away; empty without one. */
static struct slice take_string(struct jaeger_tag *tags, size_t count, const char *key)
{
    struct jaeger_tag *tag = find(tags, count, key);
    if (tag == NULL)
        return slice_of("", 0);
    tag->is_gone = true;
    return string_of(tag);
}

static void put_tag(struct jaeger_request *request, struct nested_output *output, uint32_t number,
                    const struct jaeger_tag *tag)
{
    bool is_long = tag->key.size + tag->bytes.size > 100;
    uint64_t bits;
    struct nested_message pair = nested_put_begin(output, number, is_long ? 2 : 1);
    nested_put_bytes(output, KEY, tag->key);
    struct nested_message value = nested_put_begin(output, VALUE, is_long ? 2 : 1);
    switch (tag->type) {
    case JAEGER_STRING:
        nested_put_bytes(output, VALUE_STRING, tag->bytes);
        break;
    case JAEGER_BOOL:
        nested_put_number(output, VALUE_BOOL, tag->boolean);
        break;
    case JAEGER_INT:
        nested_put_number(output, VALUE_INT, (uint64_t)tag->integer);
        break;
    case JAEGER_DOUBLE:
        memcpy(&bits, &tag->real, sizeof(bits));
        nested_put_fixed64(output, VALUE_DOUBLE, bits);
        break;
    case JAEGER_BYTES:
        nested_put_bytes(output, VALUE_BYTES, tag->bytes);
        break;
    }
    nested_put_end(output, value);
    nested_put_end(output, pair);
    request->messages += 2;
}

static void put_tags(struct jaeger_request *request, struct nested_output *output, uint32_t number,
                     const struct jaeger_tag *tags, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!tags[i].is_gone)
            put_tag(request, output, number, &tags[i]);
}

/* ---- Processes ---- */

bool jaeger_put_process(struct jaeger_request *request, struct nested_output *output, size_t first,
                        struct slice service)
{
    static const char version_prefix[] = "Jaeger-";
    struct jaeger_tag name = {.key = slice_of_text("service.name"), .bytes = service};
    assert(first <= request->tags_count);
    nested_output_cut(output, 0);
    if (output == &request->process)
        request->is_process_open = false;
    size_t count = request->tags_count - first;
    request->tags_count = first;
    /* What Jaeger's own exporters call a resource without one. */
    if (request->form == JAEGER_PROTO && slice_equal_text(service, "OTLPResourceNoServiceName"))
        return true;
    struct jaeger_tag *tags = request->tags.memory;
    if (count > 0) {
        tags += first;
        if (!settle(request, tags, count))
            return false;
        struct jaeger_tag *host = find(tags, count, "hostname");
        if (host != NULL && find(tags, count, "host.name") == NULL)
            host->key = slice_of_text("host.name");
        struct jaeger_tag *version = find(tags, count, "jaeger.version");
        if (version != NULL && find(tags, count, "opencensus.exporterversion") == NULL) {
            struct slice text = string_of(version);
            size_t bytes = sizeof(version_prefix) - 1 + text.size;
            uint8_t *room = arena_try_alloc(&request->texts, bytes);
            if (room == NULL)
                return jaeger_no_memory(request, bytes);
            memcpy(room, version_prefix, sizeof(version_prefix) - 1);
            memcpy(room + sizeof(version_prefix) - 1, text.data, text.size);
            *version = (struct jaeger_tag){.key = slice_of_text("opencensus.exporterversion"),
                                           .bytes = slice_of(room, bytes)};
        }
    }
    if (service.size > 0 && find(tags, count, "service.name") == NULL)
        put_tag(request, output, RESOURCE_ATTRIBUTES, &name);
    put_tags(request, output, RESOURCE_ATTRIBUTES, tags, count);
    return output->refused_bytes == 0 || jaeger_no_memory(request, output->refused_bytes);
}

/* ---- Parts of a Span ---- */

static void put_time(struct nested_output *output, uint32_t number, int64_t time_ns)
{
    if (time_ns > 0)
        nested_put_fixed64(output, number, (uint64_t)time_ns);
}

bool jaeger_add_event(struct jaeger_request *request, size_t first, int64_t time_ns)
{
    struct nested_output *output = &request->events;
    size_t count = request->tags_count - first;
    struct jaeger_tag *tags = NULL;
    assert(first <= request->tags_count);
    request->tags_count = first;
    if (count > 0) {
        tags = (struct jaeger_tag *)request->tags.memory + first;
        if (!settle(request, tags, count))
            return false;
    }
    struct nested_message event = nested_put_begin(output, SPAN_EVENTS, 1);
    put_time(output, EVENT_TIME, time_ns);
    nested_put_text(output, EVENT_NAME, take_string(tags, count, "event"));
    put_tags(request, output, EVENT_ATTRIBUTES, tags, count);
    nested_put_end(output, event);
    request->messages++;
    return output->refused_bytes == 0 || jaeger_no_memory(request, output->refused_bytes);
}

static unsigned take_kind(struct jaeger_tag *tags, size_t count)
{
    static const char *const kinds[] = {
        [KIND_INTERNAL] = "internal", [KIND_SERVER] = "server",     [KIND_CLIENT] = "client",
        [KIND_PRODUCER] = "producer", [KIND_CONSUMER] = "consumer",
    };
    struct slice text = take_string(tags, count, "span.kind");
    for (unsigned kind = KIND_INTERNAL; kind <= KIND_CONSUMER; kind++)
        if (slice_equal_text(text, kinds[kind]))
            return kind;
    return KIND_UNSPECIFIED;
}

/* The status that a code of HTTP means. */
static unsigned code_of_http(const struct jaeger_tag *tag, unsigned kind)
{
    int64_t code = tag->integer;
    if (tag->type == JAEGER_STRING) {
        if (!string_to_int(tag->bytes, &code))
            return CODE_UNSET;
    } else if (tag->type != JAEGER_INT) {
        return CODE_UNSET;
    }
    if (code >= 400 && code < 500 && kind == KIND_SERVER)
        return CODE_UNSET;
    return code >= 100 && code < 399 ? CODE_UNSET : CODE_ERROR;
}

static bool equals_nocase(struct slice text, const char *name)
{
    return text.size == strlen(name) && strncasecmp((const char *)text.data, name, text.size) == 0;
}

/* error, otel.status_code and http.status_code, in this order. Returns the code. */
static unsigned take_status(struct jaeger_tag *tags, size_t count, unsigned kind,
                            struct slice *ret_message)
{
    static const char description_key[] = "otel.status_description";
    static const char message_key[] = "http.status_message";
    struct jaeger_tag *error = find(tags, count, "error");
    struct jaeger_tag *status = find(tags, count, "otel.status_code");
    struct jaeger_tag *http = find(tags, count, "http.status_code");
    const struct jaeger_tag *message = find(tags, count, message_key);
    unsigned code = CODE_UNSET;
    *ret_message = slice_of("", 0);
    if (status != NULL)
        status->is_gone = true;
    if (error != NULL && error->type == JAEGER_BOOL && error->boolean) {
        error->is_gone = true;
        bool is_described = find(tags, count, description_key) != NULL;
        *ret_message = take_string(tags, count, description_key);
        if (!is_described && message != NULL)
            *ret_message = string_of(message);
        return CODE_ERROR;
    }
    if (status != NULL) {
        if (equals_nocase(string_of(status), "OK"))
            code = CODE_OK;
        else if (equals_nocase(string_of(status), "ERROR"))
            code = CODE_ERROR;
        *ret_message = take_string(tags, count, description_key);
    } else if (http != NULL) {
        code = code_of_http(http, kind);
        if (code != CODE_UNSET && message != NULL)
            *ret_message = string_of(message);
    }
    return code;
}

static void put_status(struct jaeger_request *request, unsigned code, struct slice message)
{
    struct nested_output *output = request->output;
    if (code == CODE_UNSET && message.size == 0)
        return;
    struct nested_message status = nested_put_begin(output, SPAN_STATUS, 1);
    nested_put_text(output, STATUS_MESSAGE, message);
    if (code != CODE_UNSET)
        nested_put_number(output, STATUS_CODE, code);
    nested_put_end(output, status);
    request->messages++;
}

/* The parent among the references: the first in the same trace that it is a child of, or else the
 * first that it follows. NULL: none. */
static const struct jaeger_reference *find_parent(const struct jaeger_request *request)
{
    const struct jaeger_reference *references = request->references.memory;
    const struct jaeger_reference *followed = NULL;
    for (size_t i = 0; i < request->references_count; i++) {
        const struct jaeger_reference *reference = &references[i];
        if (memcmp(reference->trace_id, request->span.trace_id, JAEGER_TRACE_ID_BYTES) != 0)
            continue;
        if (reference->type == JAEGER_CHILD_OF)
            return reference;
        if (followed == NULL && reference->type == JAEGER_FOLLOWS_FROM)
            followed = reference;
    }
    return followed;
}

/* All references but those to the parent. */
static void put_links(struct jaeger_request *request)
{
    const struct jaeger_reference *references = request->references.memory;
    struct nested_output *output = request->output;
    for (size_t i = 0; i < request->references_count; i++) {
        const struct jaeger_reference *reference = &references[i];
        bool is_child = reference->type == JAEGER_CHILD_OF;
        if (is_child &&
            memcmp(reference->span_id, request->span.parent_id, JAEGER_SPAN_ID_BYTES) == 0)
            continue;
        const struct jaeger_tag type = {
            .key = slice_of_text("opentracing.ref_type"),
            .bytes = slice_of_text(is_child ? "child_of" : "follows_from"),
        };
        struct nested_message link = nested_put_begin(output, SPAN_LINKS, 1);
        nested_put_id(output, LINK_TRACE_ID,
                      slice_of(reference->trace_id, sizeof(reference->trace_id)));
        nested_put_id(output, LINK_SPAN_ID,
                      slice_of(reference->span_id, sizeof(reference->span_id)));
        put_tag(request, output, LINK_ATTRIBUTES, &type);
        nested_put_end(output, link);
        request->messages++;
    }
}

static struct slice scope_string_of(const struct jaeger_tag *tag)
{
    return tag->is_unknown ? slice_of("", 0) : string_of(tag);
}

bool jaeger_span_end(struct jaeger_request *request)
{
    struct jaeger_span *span = &request->span;
    struct jaeger_tag *tags = request->tags.memory;
    size_t count = request->tags_count;
    bool is_proto = request->form == JAEGER_PROTO;
    struct slice scope = slice_of("", 0);
    struct slice version = slice_of("", 0);
    /* The first of several tags names the scope; a later one stays an attribute. */
    struct jaeger_tag *tag = is_proto ? find(tags, count, "otel.scope.name") : NULL;
    if (tag != NULL) {
        tag->is_gone = true;
        scope = scope_string_of(tag);
        tag = find(tags, count, "otel.scope.version");
    }
    if (tag != NULL) {
        tag->is_gone = true;
        version = scope_string_of(tag);
    }
    if (!settle(request, tags, count))
        return false;
    jaeger_open_scope(request, scope, version);
    if (request->verdict != CONVERTED)
        return false;
    struct nested_output *output = request->output;
    const struct jaeger_reference *parent = find_parent(request);
    if (parent != NULL && slice_is_zero(slice_of(span->parent_id, sizeof(span->parent_id))))
        memcpy(span->parent_id, parent->span_id, sizeof(span->parent_id));
    unsigned kind = take_kind(tags, count);
    struct slice message;
    unsigned code = take_status(tags, count, kind, &message);
    struct nested_message nested = nested_put_begin(output, SPANS, 2);
    nested_put_id(output, SPAN_TRACE_ID, slice_of(span->trace_id, sizeof(span->trace_id)));
    nested_put_id(output, SPAN_ID, slice_of(span->id, sizeof(span->id)));
    if (is_proto)
        nested_put_text(output, SPAN_TRACE_STATE, take_string(tags, count, "w3c.tracestate"));
    nested_put_id(output, SPAN_PARENT_ID, slice_of(span->parent_id, sizeof(span->parent_id)));
    nested_put_text(output, SPAN_NAME, span->name);
    if (kind != KIND_UNSPECIFIED)
        nested_put_number(output, SPAN_KIND, kind);
    put_time(output, SPAN_START, span->start_ns);
    put_time(output, SPAN_END, span->end_ns);
    put_tags(request, output, SPAN_ATTRIBUTES, tags, count);
    if (request->events.buffer != NULL)
        nested_put_raw(output, buffer_slice(request->events.buffer));
    put_links(request);
    put_status(request, code, message);
    nested_put_end(output, nested);
    request->spans++;
    request->messages++;
    return output->refused_bytes == 0 || jaeger_no_memory(request, output->refused_bytes);
}
