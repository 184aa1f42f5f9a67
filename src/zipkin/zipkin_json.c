/* SPDX-License-Identifier: Apache-2.0 */
/* Spans as JSON, of both versions of the API. As in Go's encoding/json, names of members match
 * whatever their case, null is the same as absent, and unknown members are skipped. On the thread
 * of the request. */
#include "src/zipkin/zipkin_parts.h"

#include <assert.h>

#include "src/base/hex.h"
#include "src/net/syntax/ip_address.h"
#include "src/otlp/json/json_walk.h"
#include "src/otlp/json/value_string.h"

enum { KIND_SERVER = 2, KIND_CLIENT = 3, KIND_PRODUCER = 4, KIND_CONSUMER = 5 };

struct json_reader {
    struct zipkin_request *request;
    struct json_walk walk;
    const char *place; /* "Span.localEndpoint" */
};

/* ---- Values; false: null, or a failure ---- */

static bool text_of(struct json_reader *reader, const struct json_string *string,
                    struct slice *ret_text)
{
    struct zipkin_request *request = reader->request;
    struct slice text = string->raw;
    if (string->has_escapes) {
        uint8_t *room = arena_try_alloc(&request->texts, string->raw.size);
        if (room == NULL) {
            zipkin_no_memory(request, string->raw.size);
            return json_walk_fail(&reader->walk, reader->walk.scan.at, "memory");
        }
        text = slice_of(room, json_unescape(string, room));
    }
    return zipkin_valid_text(request, text, ret_text) ||
           json_walk_fail(&reader->walk, reader->walk.scan.at, "memory");
}

static bool read_text(struct json_reader *reader, struct slice *ret_text)
{
    struct json_string string;
    return json_walk_string(&reader->walk, &string) && text_of(reader, &string, ret_text);
}

/* Decimal digits, with a sign or without, of a number in that range. */
static bool read_integer(struct json_reader *reader, int64_t min, int64_t max, const char *expected,
                         int64_t *ret_integer)
{
    struct json_number number;
    int64_t integer;
    json_walk_peek(&reader->walk);
    const uint8_t *begin = reader->walk.scan.at;
    if (!json_walk_number(&reader->walk, &number))
        return false;
    if (!number.is_integer || !string_to_int(number.text, &integer) || integer < min ||
        integer > max)
        return json_walk_fail(&reader->walk, begin, expected);
    *ret_integer = integer;
    return true;
}

static bool read_unsigned(struct json_reader *reader, uint64_t *ret_number)
{
    struct json_number number;
    json_walk_peek(&reader->walk);
    const uint8_t *begin = reader->walk.scan.at;
    if (!json_walk_number(&reader->walk, &number))
        return false;
    uint64_t value = 0;
    bool is_valid = number.is_integer;
    for (size_t i = 0; i < number.text.size && is_valid; i++) {
        unsigned digit = (unsigned)number.text.data[i] - '0';
        is_valid = digit <= 9 && value <= (UINT64_MAX - digit) / 10;
        value = value * 10 + digit;
    }
    if (!is_valid)
        return json_walk_fail(&reader->walk, begin, "microseconds, as a whole number");
    *ret_number = value;
    return true;
}

/* Whether the member has that name. */
static bool is(struct slice key, const char *name)
{
    return slice_equal_nocase(key, name);
}

/* The next member of an object; its name in the text of the body, or unescaped. */
static bool next_key(struct json_reader *reader, struct slice *ret_key)
{
    struct json_string key;
    return json_walk_key(&reader->walk, &key) && text_of(reader, &key, ret_key);
}

/* A member that only needs to be of its type. */
static void skip_bool(struct json_reader *reader)
{
    bool unused;
    json_walk_bool(&reader->walk, &unused);
}

/* ---- Ids ---- */

/* Hexadecimal digits of a number of 64 bits, however many zeros precede them. */
static bool read_hex(struct slice digits, uint8_t id[ZIPKIN_SPAN_ID_BYTES])
{
    uint64_t number = 0;
    bool is_valid = digits.size > 0;
    for (size_t i = 0; i < digits.size && is_valid; i++) {
        unsigned digit = hex_digit(digits.data[i]);
        is_valid = digit < 16 && number >> 60 == 0;
        number = number << 4 | digit;
    }
    for (size_t i = 0; i < ZIPKIN_SPAN_ID_BYTES; i++)
        id[i] = (uint8_t)(number >> (56 - 8 * i));
    return is_valid;
}

/* v2: the last 16 digits are the low half of a trace id, those before the high half. */
static void read_trace_id(struct json_reader *reader)
{
    enum { DIGITS = 2 * ZIPKIN_SPAN_ID_BYTES };
    struct json_string string;
    uint8_t *id = reader->request->span.trace_id;
    json_walk_peek(&reader->walk);
    const uint8_t *begin = reader->walk.scan.at;
    bool is_read = json_walk_string(&reader->walk, &string);
    struct slice digits = is_read ? string.raw : slice_of("", 0);
    size_t high = digits.size > DIGITS ? digits.size - DIGITS : 0;
    bool is_valid =
        read_hex(slice_of(digits.data + high, digits.size - high), id + ZIPKIN_SPAN_ID_BYTES) &&
        (high == 0 || read_hex(slice_of(digits.data, high), id));
    if (high == 0)
        memset(id, 0, ZIPKIN_SPAN_ID_BYTES);
    if (!is_valid)
        json_walk_fail(&reader->walk, begin, "a trace id of up to 32 hexadecimal digits");
}

/* v2. An empty one is zeros. */
static void read_span_id(struct json_reader *reader, uint8_t id[ZIPKIN_SPAN_ID_BYTES])
{
    struct json_string string;
    json_walk_peek(&reader->walk);
    const uint8_t *begin = reader->walk.scan.at;
    memset(id, 0, ZIPKIN_SPAN_ID_BYTES);
    if (json_walk_string(&reader->walk, &string) && string.raw.size > 0 &&
        !read_hex(string.raw, id))
        json_walk_fail(&reader->walk, begin, "a span id of up to 16 hexadecimal digits");
}

/* v1: 16 digits, or 32 if id has room for them, and not only zeros. */
static void read_v1_id(struct json_reader *reader, uint8_t *id, size_t size, const char *expected)
{
    struct json_string string;
    json_walk_peek(&reader->walk);
    const uint8_t *begin = reader->walk.scan.at;
    if (!json_walk_string(&reader->walk, &string))
        return;
    size_t bytes = string.raw.size / 2;
    bool is_valid = string.raw.size == 2 * ZIPKIN_SPAN_ID_BYTES || string.raw.size == 2 * size;
    memset(id, 0, size);
    for (size_t i = 0; i < string.raw.size && is_valid; i++) {
        unsigned digit = hex_digit(string.raw.data[i]);
        uint8_t *byte = &id[size - bytes + i / 2];
        *byte = (uint8_t)((unsigned)*byte << 4 | (digit & 15));
        is_valid = digit < 16;
    }
    if (!is_valid || slice_is_zero(slice_of(id, size)))
        json_walk_fail(&reader->walk, begin, expected);
}

/* ---- Endpoints ---- */

/* v2: the address as Go prints it. */
static void read_address(struct json_reader *reader, struct slice *ret_text)
{
    struct zipkin_request *request = reader->request;
    struct slice text;
    uint8_t address[IPV6_BYTES];
    char printed[IP_ADDRESS_STRING_MAX];
    json_walk_peek(&reader->walk);
    const uint8_t *begin = reader->walk.scan.at;
    if (!read_text(reader, &text))
        return;
    *ret_text = text;
    if (text.size == 0)
        return;
    if (!ip_address_parse(text, address)) {
        json_walk_fail(&reader->walk, begin, "an IP address");
        return;
    }
    struct slice canonical =
        slice_of(printed, ip_address_print(slice_of(address, sizeof(address)), printed));
    if (!slice_equal(canonical, text) &&
        !zipkin_print_address(request, slice_of(address, sizeof(address)), ret_text))
        json_walk_fail(&reader->walk, begin, "memory");
}

/* False: null, which is no endpoint. */
static bool read_endpoint(struct json_reader *reader, bool is_v1, const char *place,
                          struct zipkin_endpoint *endpoint)
{
    const char *outer = reader->place;
    struct slice key;
    int64_t port;
    if (!json_walk_object(&reader->walk)) {
        *endpoint = (struct zipkin_endpoint){.port = 0};
        return false;
    }
    reader->place = place;
    while (next_key(reader, &key)) {
        if (is(key, "serviceName")) {
            read_text(reader, &endpoint->service);
        } else if (is(key, "ipv4") || is(key, "ipv6")) {
            struct slice *text = is(key, "ipv4") ? &endpoint->ipv4 : &endpoint->ipv6;
            if (is_v1)
                read_text(reader, text);
            else
                read_address(reader, text);
        } else if (is(key, "port")) {
            if (read_integer(reader, is_v1 ? INT32_MIN : 0, is_v1 ? INT32_MAX : UINT16_MAX,
                             is_v1 ? "a port, as a whole number of 32 bits"
                                   : "a port from 0 to 65535",
                             &port))
                endpoint->port = (int32_t)port;
        } else {
            json_walk_skip(&reader->walk);
        }
    }
    if (reader->walk.failure == NULL)
        reader->place = outer;
    return true;
}

/* ---- Version 2 ---- */

static void read_annotations(struct json_reader *reader)
{
    struct slice key;
    reader->request->events_count = 0;
    if (!json_walk_list(&reader->walk))
        return;
    reader->place = "Span.annotations";
    while (json_walk_item(&reader->walk)) {
        struct slice value = slice_of("", 0);
        uint64_t timestamp = 0;
        json_walk_peek(&reader->walk);
        const uint8_t *begin = reader->walk.scan.at;
        if (json_walk_object(&reader->walk)) {
            while (next_key(reader, &key)) {
                if (is(key, "timestamp"))
                    read_unsigned(reader, &timestamp);
                else if (is(key, "value"))
                    read_text(reader, &value);
                else
                    json_walk_skip(&reader->walk);
            }
        }
        if (timestamp == 0)
            json_walk_fail(&reader->walk, begin, "an annotation with a timestamp");
        if (reader->walk.failure == NULL &&
            !zipkin_add_event(reader->request, timestamp * ZIPKIN_NS_PER_US, value))
            json_walk_fail(&reader->walk, begin, "memory");
    }
    if (reader->walk.failure == NULL)
        reader->place = "Span";
}

static void read_tags(struct json_reader *reader)
{
    struct slice key;
    if (!json_walk_object(&reader->walk)) {
        reader->request->tags_count = 0;
        return;
    }
    reader->place = "Span.tags";
    while (next_key(reader, &key)) {
        struct slice text = slice_of("", 0);
        read_text(reader, &text);
        if (reader->walk.failure == NULL &&
            !zipkin_add_tag(reader->request, &(struct zipkin_tag){.key = key, .text = text}))
            json_walk_fail(&reader->walk, reader->walk.scan.at, "memory");
    }
    if (reader->walk.failure == NULL)
        reader->place = "Span";
}

static void read_kind(struct json_reader *reader)
{
    static const struct {
        const char *name;
        unsigned kind;
    } kinds[] = {
        {"CLIENT", KIND_CLIENT},
        {"SERVER", KIND_SERVER},
        {"PRODUCER", KIND_PRODUCER},
        {"CONSUMER", KIND_CONSUMER},
    };
    struct slice name;
    if (!read_text(reader, &name))
        return;
    reader->request->span.kind = 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (slice_equal_text(name, kinds[i].name))
            reader->request->span.kind = kinds[i].kind;
}

static void read_v2_span(struct json_reader *reader)
{
    struct zipkin_span *span = &reader->request->span;
    struct slice key;
    uint64_t timestamp = 0;
    uint64_t duration = 0;
    json_walk_peek(&reader->walk);
    const uint8_t *begin = reader->walk.scan.at;
    reader->place = "Span";
    if (!json_walk_object(&reader->walk))
        return;
    zipkin_span_begin(reader->request);
    while (next_key(reader, &key)) {
        if (is(key, "traceId"))
            read_trace_id(reader);
        else if (is(key, "id"))
            read_span_id(reader, span->id);
        else if (is(key, "parentId"))
            read_span_id(reader, span->parent_id);
        else if (is(key, "name"))
            read_text(reader, &span->name);
        else if (is(key, "kind"))
            read_kind(reader);
        else if (is(key, "timestamp"))
            read_unsigned(reader, &timestamp);
        else if (is(key, "duration"))
            read_unsigned(reader, &duration);
        else if (is(key, "localEndpoint"))
            read_endpoint(reader, false, "Span.localEndpoint", &span->local);
        else if (is(key, "remoteEndpoint"))
            read_endpoint(reader, false, "Span.remoteEndpoint", &span->remote);
        else if (is(key, "annotations"))
            read_annotations(reader);
        else if (is(key, "tags"))
            read_tags(reader);
        else if (is(key, "debug") || is(key, "shared"))
            skip_bool(reader);
        else
            json_walk_skip(&reader->walk);
    }
    if (slice_is_zero(slice_of(span->id, sizeof(span->id))))
        json_walk_fail(&reader->walk, begin, "a span with an id that is not zero");
    if (reader->walk.failure != NULL)
        return;
    span->has_start = timestamp > 0;
    span->start_ns = timestamp * ZIPKIN_NS_PER_US;
    span->end_ns = span->start_ns + duration * ZIPKIN_NS_PER_US;
    if (!zipkin_v2_end(reader->request))
        json_walk_fail(&reader->walk, begin, "memory");
}

/* ---- Version 1 ---- */

static void read_v1_annotations(struct json_reader *reader)
{
    struct slice key;
    reader->place = "Span.annotations";
    zipkin_v1_forget_annotations(reader->request);
    if (!json_walk_list(&reader->walk))
        return;
    while (json_walk_item(&reader->walk)) {
        struct zipkin_endpoint endpoint = {.port = 0};
        struct slice value = slice_of("", 0);
        int64_t timestamp = 0;
        bool has_endpoint = false;
        if (!json_walk_object(&reader->walk))
            continue;
        while (next_key(reader, &key)) {
            if (is(key, "timestamp"))
                read_integer(reader, INT64_MIN, INT64_MAX, "microseconds, as a whole number",
                             &timestamp);
            else if (is(key, "value"))
                read_text(reader, &value);
            else if (is(key, "endpoint"))
                has_endpoint = read_endpoint(reader, true, "Span.annotations.endpoint", &endpoint);
            else
                json_walk_skip(&reader->walk);
        }
        if (reader->walk.failure == NULL && !zipkin_v1_annotation(reader->request, timestamp, value,
                                                                  has_endpoint ? &endpoint : NULL))
            json_walk_fail(&reader->walk, reader->walk.scan.at, "memory");
    }
}

/* A string; true, false and numbers, which addresses ("sa") have in Zipkin's own JSON, become
 * what they are in the text. */
static void read_v1_value(struct json_reader *reader, struct slice *ret_text)
{
    struct json_walk *walk = &reader->walk;
    struct json_number number;
    bool boolean;
    uint8_t first = json_walk_peek(walk);
    if (first == 't' || first == 'f') {
        if (json_walk_bool(walk, &boolean))
            *ret_text = slice_of_text(boolean ? "true" : "false");
    } else if (first == '-' || (first >= '0' && first <= '9')) {
        if (json_walk_number(walk, &number))
            *ret_text = number.text;
    } else {
        read_text(reader, ret_text);
    }
}

static void read_v1_tags(struct json_reader *reader)
{
    struct slice key;
    reader->place = "Span.binaryAnnotations";
    zipkin_v1_forget_tags(reader->request);
    if (!json_walk_list(&reader->walk))
        return;
    while (json_walk_item(&reader->walk)) {
        struct zipkin_endpoint endpoint = {.port = 0};
        struct zipkin_tag tag = {.key = slice_of("", 0), .text = slice_of("", 0)};
        bool has_endpoint = false;
        if (!json_walk_object(&reader->walk))
            continue;
        while (next_key(reader, &key)) {
            if (is(key, "key"))
                read_text(reader, &tag.key);
            else if (is(key, "value"))
                read_v1_value(reader, &tag.text);
            else if (is(key, "endpoint"))
                has_endpoint =
                    read_endpoint(reader, true, "Span.binaryAnnotations.endpoint", &endpoint);
            else
                json_walk_skip(&reader->walk);
        }
        if (reader->walk.failure != NULL)
            return;
        struct slice value = tag.text;
        if (reader->request->source->parses_strings)
            zipkin_tag_parse(&tag);
        if (!zipkin_v1_binary(reader->request, &tag, value, has_endpoint ? &endpoint : NULL))
            json_walk_fail(&reader->walk, reader->walk.scan.at, "memory");
    }
}

static void read_v1_span(struct json_reader *reader)
{
    static const char trace_id[] = "a trace id of 16 or 32 hexadecimal digits, not all 0";
    static const char span_id[] = "a span id of 16 hexadecimal digits, not all 0";
    struct zipkin_request *request = reader->request;
    struct zipkin_span *span = &request->span;
    struct zipkin_v1_facts *facts = &request->facts;
    struct slice key;
    json_walk_peek(&reader->walk);
    const uint8_t *begin = reader->walk.scan.at;
    reader->place = "Span";
    if (!json_walk_object(&reader->walk))
        return;
    zipkin_span_begin(request);
    while (next_key(reader, &key)) {
        if (is(key, "traceId")) {
            read_v1_id(reader, span->trace_id, sizeof(span->trace_id), trace_id);
        } else if (is(key, "id")) {
            read_v1_id(reader, span->id, sizeof(span->id), span_id);
        } else if (is(key, "parentId")) {
            json_walk_peek(&reader->walk);
            if (!json_scan_word(&reader->walk.scan, "\"\""))
                read_v1_id(reader, span->parent_id, sizeof(span->parent_id), span_id);
        } else if (is(key, "name")) {
            read_text(reader, &span->name);
        } else if (is(key, "timestamp")) {
            read_integer(reader, INT64_MIN, INT64_MAX, "microseconds, as a whole number",
                         &facts->timestamp);
        } else if (is(key, "duration")) {
            read_integer(reader, INT64_MIN, INT64_MAX, "microseconds, as a whole number",
                         &facts->duration);
        } else if (is(key, "debug")) {
            skip_bool(reader);
        } else if (is(key, "annotations")) {
            read_v1_annotations(reader);
        } else if (is(key, "binaryAnnotations")) {
            read_v1_tags(reader);
        } else {
            json_walk_skip(&reader->walk);
        }
        if (reader->walk.failure == NULL)
            reader->place = "Span";
    }
    if (slice_is_zero(slice_of(span->trace_id, sizeof(span->trace_id))) ||
        slice_is_zero(slice_of(span->id, sizeof(span->id))))
        json_walk_fail(&reader->walk, begin, "a span with traceId and id");
    if (reader->walk.failure != NULL)
        return;
    facts->has_timestamp = facts->timestamp != 0;
    if (!zipkin_v1_end(request))
        json_walk_fail(&reader->walk, begin, "memory");
}

void zipkin_read_json(struct zipkin_request *request, bool is_v1)
{
    struct json_reader reader = {
        .request = request,
        .walk = json_walk_of(request->body),
        .place = "",
    };
    struct json_walk *walk = &reader.walk;
    if (json_walk_list(walk)) {
        while (json_walk_item(walk)) {
            if (is_v1)
                read_v1_span(&reader);
            else
                read_v2_span(&reader);
        }
        if (walk->failure == NULL)
            reader.place = "";
    }
    if (json_walk_end(walk) || request->verdict != CONVERTED)
        return;
    char found[JSON_FOUND_BYTES_MAX];
    json_scan_found(&walk->scan, walk->failed_at, found);
    /* An empty body has no place in it. */
    const uint8_t *at = request->body.size > 0 ? walk->failed_at : request->body.data;
    zipkin_malformed(request, at, reader.place, found, walk->failure);
}
