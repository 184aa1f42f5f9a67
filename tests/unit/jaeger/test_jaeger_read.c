/* SPDX-License-Identifier: Apache-2.0 */
/* Jaeger's spans as OTLP/JSON: what becomes of each part of a span, in each form; what is refused;
 * memory. */
#include "src/jaeger/jaeger_read.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LITERAL(text) (text), sizeof(text) - 1

/* ---- Messages ---- */

struct message {
    uint8_t bytes[4096];
    size_t size;
};

static void add(struct message *message, const void *bytes, size_t size)
{
    assert_true(message->size + size <= sizeof(message->bytes));
    memcpy(message->bytes + message->size, bytes, size);
    message->size += size;
}

static void add_number(struct message *message, uint64_t number, size_t bytes)
{
    for (size_t i = bytes; i > 0; i--)
        add(message, &(uint8_t){(uint8_t)(number >> 8 * (i - 1))}, 1);
}

static void add_field(struct message *message, unsigned number, const void *bytes, size_t size)
{
    assert_true(size < 1 << 14);
    add(message,
        (uint8_t[]){(uint8_t)(number << 3 | 2), (uint8_t)(size | 0x80), (uint8_t)(size >> 7)}, 3);
    add(message, bytes, size);
}

static void add_message(struct message *outer, unsigned number, const struct message *inner)
{
    add_field(outer, number, inner->bytes, inner->size);
}

static struct message proto_tag(const char *key, const char *value)
{
    struct message tag = {.size = 0};
    add_field(&tag, 1, key, strlen(key));
    add_field(&tag, 3, value, strlen(value));
    return tag;
}

static struct message proto_request(const struct message *spans, size_t count)
{
    struct message process = {.size = 0};
    struct message batch = {.size = 0};
    struct message request = {.size = 0};
    struct message host = proto_tag("hostname", "h");
    struct message version = proto_tag("jaeger.version", "Go-2");
    add_field(&process, 1, LITERAL("front"));
    add_message(&process, 2, &host);
    add_message(&process, 2, &version);
    for (size_t i = 0; i < count; i++)
        add_message(&batch, 1, &spans[i]);
    add_message(&batch, 2, &process);
    add_message(&request, 1, &batch);
    return request;
}

static struct message proto_span(void)
{
    static const char *const tags[][2] = {
        {"span.kind", "client"},
        {"otel.scope.name", "lib"},
        {"otel.scope.version", "1"},
        {"http.status_code", "404"},
        {"w3c.tracestate", "a=b"},
        {"k", "old"},
        {"k", "new"},
    };
    struct message span = {.size = 0};
    struct message log = {.size = 0};
    struct message parent = {.size = 0};
    struct message link = {.size = 0};
    struct message event = proto_tag("event", "retry");
    struct message detail = proto_tag("why", "late");
    add_field(&span, 1, LITERAL("0123456789abcdef"));
    add_field(&span, 2, LITERAL("span-id!"));
    add_field(&span, 3, LITERAL("get /"));
    add_field(&parent, 1, LITERAL("0123456789abcdef"));
    add_field(&parent, 2, LITERAL("parentid"));
    add_field(&link, 1, LITERAL("abcdefgh"));
    add_field(&link, 2, LITERAL("linkedid"));
    add(&link, "\x18\x01", 2);
    add_message(&span, 4, &link);
    add_message(&span, 4, &parent);
    add_field(&span, 6, LITERAL("\x08\x05\x10\x07"));
    add_field(&span, 7, LITERAL("\x10\x02"));
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        struct message tag = proto_tag(tags[i][0], tags[i][1]);
        add_message(&span, 8, &tag);
    }
    add_field(&span, 8, LITERAL("\x0a\x01q\x10\x02\x28\x2a"));
    add_field(&span, 8, LITERAL("\x0a\x01u\x10\x09"));
    add_field(&log, 1, LITERAL("\x08\x06"));
    add_message(&log, 2, &event);
    add_message(&log, 2, &detail);
    add_message(&span, 9, &log);
    return span;
}

/* A field's head in Thrift. */
static void add_head(struct message *message, unsigned type, unsigned number)
{
    add_number(message, type, 1);
    add_number(message, number, 2);
}

static void add_i64(struct message *message, unsigned number, uint64_t value)
{
    add_head(message, 10, number);
    add_number(message, value, 8);
}

static void add_string(struct message *message, unsigned number, const char *text)
{
    add_head(message, 11, number);
    add_number(message, strlen(text), 4);
    add(message, text, strlen(text));
}

static void add_list(struct message *message, unsigned number, uint32_t count)
{
    add_head(message, 15, number);
    add_number(message, 12, 1);
    add_number(message, count, 4);
}

static void add_tag(struct message *message, const char *key, unsigned type)
{
    add_string(message, 1, key);
    add_head(message, 8, 2);
    add_number(message, type, 4);
    add_string(message, 3, "text");
    add_head(message, 4, 4);
    add_number(message, 0x3ff8000000000000, 8);
    add_head(message, 2, 5);
    add_number(message, 1, 1);
    add_i64(message, 6, 7);
    add_string(message, 7, "raw");
    add_number(message, 0, 1);
}

/* Fields that a Batch does not have: each type, alone and in containers. */
static void add_unknown(struct message *message)
{
    static const char uuid[] = "0123456789abcde";
    add_head(message, 13, 100); /* a map of strings to booleans */
    add(message, "\x0b\x02", 2);
    add_number(message, 2, 4);
    add_number(message, 1, 4);
    add(message, "k\x01", 2);
    add_number(message, 0, 4);
    add(message, "\x00", 1);
    add_head(message, 13, 101); /* an empty one */
    add(message, "\x0b\x02", 2);
    add_number(message, 0, 4);
    add_head(message, 14, 102); /* a set of twenty numbers */
    add_number(message, 6, 1);
    add_number(message, 20, 4);
    for (uint64_t i = 0; i < 20; i++)
        add_number(message, 0xfff0 + i, 2);
    add_head(message, 2, 103);
    add_number(message, 0, 1);
    add_head(message, 4, 104);
    add_number(message, 1, 8);
    add_head(message, 16, 30000);
    add(message, uuid, sizeof(uuid));
    add_head(message, 12, 30001);
    add_head(message, 2, 200); /* a struct with a boolean and a list of booleans */
    add_number(message, 1, 1);
    add_head(message, 15, 201);
    add_number(message, 2, 1);
    add_number(message, 2, 4);
    add(message, "\x01\x00", 2);
    add_number(message, 0, 1);
}

static struct message thrift_batch(void)
{
    struct message batch = {.size = 0};
    add_list(&batch, 2, 1);
    add_i64(&batch, 1, 1);
    add_i64(&batch, 2, 2);
    add_i64(&batch, 3, 3);
    add_i64(&batch, 4, 0);
    add_string(&batch, 5, "n\xff");
    add_head(&batch, 8, 7);
    add_number(&batch, 1, 4);
    add_list(&batch, 6, 1);
    add_head(&batch, 8, 1);
    add_number(&batch, 1, 4);
    add_i64(&batch, 2, 1);
    add_i64(&batch, 3, 2);
    add_i64(&batch, 4, 9);
    add_number(&batch, 0, 1);
    add_i64(&batch, 8, 1000);
    add_i64(&batch, 9, 5);
    add_list(&batch, 10, 6);
    add_tag(&batch, "s", 0);
    add_tag(&batch, "d", 1);
    add_tag(&batch, "error", 2);
    add_tag(&batch, "l", 3);
    add_tag(&batch, "x", 4);
    add_tag(&batch, "u", 5);
    add_list(&batch, 11, 1);
    add_i64(&batch, 1, 1001);
    add_list(&batch, 2, 1);
    add_tag(&batch, "event", 0);
    add_number(&batch, 0, 1);
    add_number(&batch, 0, 1);
    add_head(&batch, 12, 1);
    add_string(&batch, 1, "back");
    add_number(&batch, 0, 1);
    add_unknown(&batch);
    add_number(&batch, 0, 1);
    return batch;
}

/* ---- The compact protocol, from messages in the binary one ---- */

static uint64_t take_number(const uint8_t **at, size_t bytes)
{
    uint64_t bits = (**at & 0x80) != 0 ? UINT64_MAX : 0;
    for (size_t i = 0; i < bytes; i++)
        bits = bits << 8 | *(*at)++;
    return bits;
}

static void add_varint(struct message *message, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        add_number(message, value | 0x80, 1);
    add_number(message, value, 1);
}

static void add_zigzag(struct message *message, uint64_t value)
{
    add_varint(message, value << 1 ^ ((value >> 63) != 0 ? UINT64_MAX : 0));
}

static unsigned compact_type(unsigned type)
{
    static const uint8_t types[] = {[2] = 1,  [3] = 3,   [4] = 7,   [6] = 4,   [8] = 5,  [10] = 6,
                                    [11] = 8, [12] = 12, [13] = 11, [14] = 10, [15] = 9, [16] = 13};
    assert_true(type < sizeof(types) && types[type] > 0);
    return types[type];
}

static void add_compact_value(struct message *message, const uint8_t **at, unsigned type);

static void add_compact_struct(struct message *message, const uint8_t **at)
{
    unsigned last = 0;
    unsigned type;
    while ((type = *(*at)++) != 0) {
        unsigned number = (unsigned)take_number(at, 2);
        unsigned compact = compact_type(type);
        if (type == 2)
            compact = *(*at)++ == 1 ? 1 : 2;
        bool is_short = number > last && number - last <= 15;
        add_number(message, (is_short ? (number - last) << 4 : 0) | compact, 1);
        if (!is_short)
            add_zigzag(message, number);
        if (type != 2)
            add_compact_value(message, at, type);
        last = number;
    }
    add_number(message, 0, 1);
}

static void add_compact_list(struct message *message, const uint8_t **at)
{
    unsigned type = *(*at)++;
    uint64_t count = take_number(at, 4);
    add_number(message, (count < 15 ? count : 15) << 4 | compact_type(type), 1);
    if (count >= 15)
        add_varint(message, count);
    for (uint64_t i = 0; i < count; i++)
        add_compact_value(message, at, type);
}

static void add_compact_map(struct message *message, const uint8_t **at)
{
    unsigned types[2] = {*(*at)++, *(*at)++};
    uint64_t count = take_number(at, 4);
    add_varint(message, count);
    if (count > 0)
        add_number(message, compact_type(types[0]) << 4 | compact_type(types[1]), 1);
    for (uint64_t i = 0; i < 2 * count; i++)
        add_compact_value(message, at, types[i % 2]);
}

static void add_compact_value(struct message *message, const uint8_t **at, unsigned type)
{
    switch (type) {
    case 2: /* of a list or map */
        add_number(message, *(*at)++ == 1 ? 1 : 2, 1);
        return;
    case 3:
        add_number(message, *(*at)++, 1);
        return;
    case 4:
        for (size_t i = 8; i > 0; i--)
            add(message, *at + i - 1, 1);
        *at += 8;
        return;
    case 6:
    case 8:
    case 10:
        add_zigzag(message, take_number(at, type == 6 ? 2 : type == 8 ? 4 : 8));
        return;
    case 11: {
        uint64_t size = take_number(at, 4);
        add_varint(message, size);
        add(message, *at, size);
        *at += size;
        return;
    }
    case 12:
        add_compact_struct(message, at);
        return;
    case 13:
        add_compact_map(message, at);
        return;
    case 16:
        add(message, *at, 16);
        *at += 16;
        return;
    default:
        add_compact_list(message, at);
        return;
    }
}

/* ---- Calls of the Agent's service ---- */

enum { STRICT, LAX, COMPACT, CALLS };

static struct message call_of(unsigned kind, const char *name, const struct message *batch)
{
    struct message arguments = {.size = 0};
    struct message call = {.size = 0};
    add_head(&arguments, 3, 7); /* an unknown one */
    add_number(&arguments, 9, 1);
    add_head(&arguments, 12, 1);
    add(&arguments, batch->bytes, batch->size);
    add_number(&arguments, 0, 1);
    if (kind == COMPACT) {
        const uint8_t *at = arguments.bytes;
        add(&call, "\x82\x81\xac\x02", 4); /* version, type and sequence number */
        add_varint(&call, strlen(name));
        add(&call, name, strlen(name));
        add_compact_struct(&call, &at);
        assert_ptr_equal(at, arguments.bytes + arguments.size);
        return call;
    }
    if (kind == STRICT)
        add_number(&call, 0x80010004, 4);
    add_number(&call, strlen(name), 4);
    add(&call, name, strlen(name));
    if (kind == LAX)
        add_number(&call, 4, 1);
    add_number(&call, 300, 4);
    add(&call, arguments.bytes, arguments.size);
    return call;
}

static enum jaeger_form form_of(unsigned kind)
{
    return kind == COMPACT ? JAEGER_COMPACT_CALL : JAEGER_BINARY_CALL;
}

/* ---- Tests ---- */

/* The result as OTLP/JSON, or the reason of a refusal; valid until the next call. */
static const char *read_body(enum jaeger_form form, const void *body, size_t size)
{
    static char text[1 << 16];
    char reason[CONVERSION_REASON_BYTES_MAX] = "";
    struct budget budget;
    struct converted_spans batch;
    struct otlp_figures figures;
    const char *why;
    /* A copy, so that reading beyond it is noticed. */
    void *copy = mem_copy(body, size);
    budget_init(&budget, UINT64_MAX);
    enum conversion verdict = jaeger_read(form, slice_of(copy, size), &budget, &batch, reason);
    if (verdict == CONVERTED) {
        struct slice request = buffer_slice(batch.request);
        if (!otlp_check(TRACES, request, &figures, &why))
            fail_msg("%s", why);
        assert_int_equal(figures.items, batch.spans);
        assert_true(figures.messages <= batch.messages);
        struct buffer *json = json_write(otlp_request(TRACES), request, NULL);
        snprintf(text, sizeof(text), "%.*s", (int)json->size, (const char *)json->data);
        buffer_unref(json);
        buffer_unref(batch.request);
    } else {
        snprintf(text, sizeof(text), "%s", reason);
    }
    mem_free(copy);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    return text;
}

static void expect_part(const char *found, const char *part)
{
    if (strstr(found, part) == NULL)
        fail_msg("expected %s\nin %s", part, found);
}

static void a_span_of_protobuf_becomes_one_of_otlp(void **state)
{
    struct message span = proto_span();
    struct message request = proto_request(&span, 1);
    (void)state;
    const char *found = read_body(JAEGER_PROTO, request.bytes, request.size);
    static const char *const parts[] = {
        "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"front\"}}",
        "{\"key\":\"host.name\",\"value\":{\"stringValue\":\"h\"}}",
        "{\"key\":\"opencensus.exporterversion\",\"value\":{\"stringValue\":\"Jaeger-Go-2\"}}",
        "\"scope\":{\"name\":\"lib\",\"version\":\"1\"}",
        "\"traceId\":\"30313233343536373839616263646566\",\"spanId\":\"7370616e2d696421\"",
        "\"traceState\":\"a=b\",\"parentSpanId\":\"706172656e746964\"",
        "\"name\":\"get /\",\"kind\":3,\"startTimeUnixNano\":\"5000000007\"",
        "\"endTimeUnixNano\":\"5000000009\"",
        "{\"key\":\"http.status_code\",\"value\":{\"stringValue\":\"404\"}}",
        "{\"key\":\"k\",\"value\":{\"stringValue\":\"new\"}}",
        "{\"key\":\"q\",\"value\":{\"intValue\":\"42\"}}",
        "{\"key\":\"u\",\"value\":{\"stringValue\":\"<Unknown Jaeger TagType \\\"9\\\">\"}}",
        "\"timeUnixNano\":\"6000000000\",\"name\":\"retry\"",
        "\"links\":[{\"traceId\":\"00000000000000006162636465666768\"",
        "\"stringValue\":\"follows_from\"",
        "\"status\":{\"code\":2}",
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        expect_part(found, parts[i]);
    assert_null(strstr(found, "span.kind"));
    assert_null(strstr(found, "\"old\""));
}

static void a_span_of_thrift_becomes_one_of_otlp(void **state)
{
    struct message batch = thrift_batch();
    (void)state;
    const char *found = read_body(JAEGER_THRIFT, batch.bytes, batch.size);
    static const char *const parts[] = {
        "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"back\"}}",
        "\"traceId\":\"00000000000000020000000000000001\",\"spanId\":\"0000000000000003\"",
        "\"parentSpanId\":\"0000000000000009\",\"name\":\"n\xef\xbf\xbd\"",
        "\"startTimeUnixNano\":\"1000000\",\"endTimeUnixNano\":\"1005000\"",
        "{\"key\":\"s\",\"value\":{\"stringValue\":\"text\"}}",
        "{\"key\":\"d\",\"value\":{\"doubleValue\":1.5}}",
        "{\"key\":\"l\",\"value\":{\"intValue\":\"7\"}}",
        "{\"key\":\"x\",\"value\":{\"bytesValue\":\"cmF3\"}}",
        "<Unknown Jaeger TagType \\\"<UNSET>\\\">",
        "\"timeUnixNano\":\"1001000\",\"name\":\"text\"",
        "\"links\":[{\"traceId\":\"00000000000000020000000000000001\"",
        "\"status\":{\"code\":2}",
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        expect_part(found, parts[i]);
}

static void a_call_is_its_batch(void **state)
{
    struct message batch = thrift_batch();
    char *expected = mem_copy_text(read_body(JAEGER_THRIFT, batch.bytes, batch.size));
    (void)state;
    expect_part(expected, "resourceSpans");
    for (unsigned kind = 0; kind < CALLS; kind++) {
        struct message call = call_of(kind, "emitBatch", &batch);
        assert_string_equal(read_body(form_of(kind), call.bytes, call.size), expected);
        struct message other = call_of(kind, "emitZipkinBatch", &batch);
        expect_part(read_body(form_of(kind), other.bytes, other.size),
                    "found a call of \"emitZipkinBatch\", expected emitBatch");
    }
    mem_free(expected);
}

/* A call has one batch, but a client may write the argument twice. */
static void a_process_has_no_tags_of_the_span_before_it(void **state)
{
    struct message batch = thrift_batch();
    struct message call = call_of(STRICT, "emitBatch", &batch);
    (void)state;
    call.size--;
    add_head(&call, 12, 1);
    add(&call, batch.bytes, batch.size);
    add_number(&call, 0, 1);
    const char *found = read_body(JAEGER_BINARY_CALL, call.bytes, call.size);
    const char *resource = strstr(found, "\"resource\":");
    assert_non_null(resource);
    assert_null(strstr(resource + 1, "\"resource\":"));
    expect_part(found, "\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":"
                       "{\"stringValue\":\"back\"}}]}");
}

static void neighbours_of_one_process_and_scope_are_together(void **state)
{
    struct message spans[3] = {proto_span(), proto_span(), {.size = 0}};
    struct message other = {.size = 0};
    (void)state;
    add_field(&other, 1, LITERAL("other"));
    add_field(&spans[2], 3, LITERAL("third"));
    add_message(&spans[2], 10, &other);
    struct message request = proto_request(spans, 3);
    const char *found = read_body(JAEGER_PROTO, request.bytes, request.size);
    const char *first = strstr(found, "\"resource\":");
    assert_non_null(first);
    const char *second = strstr(first + 1, "\"resource\":");
    assert_non_null(second);
    assert_null(strstr(second + 1, "\"resource\":"));
    expect_part(second, "\"stringValue\":\"other\"");
    expect_part(second, "\"name\":\"third\"");
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

/* Of spans with and without a process of their own, and of two scopes, in turn. */
static void the_process_of_a_batch_is_written_once(void **state)
{
    struct message spans[6];
    struct message own = {.size = 0};
    struct message scope = proto_tag("otel.scope.name", "second");
    (void)state;
    add_field(&own, 1, LITERAL("own"));
    for (size_t i = 0; i < 6; i++) {
        spans[i] = (struct message){.size = 0};
        add_field(&spans[i], 3, (char[]){'n', (char)('0' + i)}, 2);
        if (i % 2 != 0)
            add_message(&spans[i], 10, &own);
        if (i == 2)
            add_message(&spans[i], 8, &scope);
    }
    struct message request = proto_request(spans, 6);
    const char *found = read_body(JAEGER_PROTO, request.bytes, request.size);
    assert_int_equal(count_of(found, "\"resource\":"), 2);
    assert_int_equal(count_of(found, "\"stringValue\":\"front\""), 1);
    assert_int_equal(count_of(found, "\"stringValue\":\"own\""), 1);
    assert_int_equal(count_of(found, "\"spans\":"), 4);
    static const char order[] = "024135";
    const char *at = found;
    for (size_t i = 0; i < 6; i++) {
        char name[] = "\"name\":\"n?\"";
        name[sizeof(name) - 3] = order[i];
        at = strstr(at, name);
        assert_non_null(at);
    }
}

static void broken_bodies_are_refused_with_the_place(void **state)
{
    static const struct {
        enum jaeger_form form;
        const char *body;
        size_t size;
        const char *reason;
    } broken[] = {
        {JAEGER_PROTO, LITERAL("\x0a\x05\x0a"), "protobuf at byte"},
        {JAEGER_PROTO, LITERAL("\x0a\x05\x0a\x03\x0a\x01x"), "in Span.trace_id: found 1 bytes"},
        {JAEGER_PROTO, LITERAL("\x0a\x05\x0a\x03\x12\x01x"), "in Span.span_id: found 1 bytes"},
        {JAEGER_PROTO, LITERAL("\x0a\x0e\x0a\x0c\x32\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
         "a time out of range"},
        {JAEGER_THRIFT, LITERAL(""), "found the end of the body"},
        {JAEGER_THRIFT, LITERAL("\0"), "expected a Batch with process and spans"},
        {JAEGER_THRIFT, LITERAL("\x0c\0\x01\0\0"), "expected a Process with serviceName"},
        {JAEGER_THRIFT, LITERAL("\x0c\0\x01\x0b\0\x01\x7f\xff\xff\xff"), "no more than there are"},
        {JAEGER_THRIFT, LITERAL("\x0c\0\x01\x0b\0\x01\0\0\0\0\0\x0f\0\x02\x08\0\0\0\x01\0\0\0\0\0"),
         "a list of structs"},
        {JAEGER_THRIFT, LITERAL("\x63\0\x01"), "the type 99"},
        {JAEGER_BINARY_CALL, LITERAL("\x80\x02\0\x01"), "byte 0, in Batch: found another version"},
        {JAEGER_BINARY_CALL, LITERAL("\x7f\0\0\x01"), "no more than there are"},
        {JAEGER_COMPACT_CALL, LITERAL("\x83\x21\0\0"), "byte 0, in Batch: found the bytes 83 21"},
        {JAEGER_COMPACT_CALL, LITERAL("\x82\x22\0\0"), "found the bytes 82 22"},
        {JAEGER_COMPACT_CALL, LITERAL("\x82\x21\0\xff\xff\xff\xff\x0f"), "found -1 bytes in 0"},
        {JAEGER_COMPACT_CALL, LITERAL("\x82\x21\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0"),
         "a number of more than 10 bytes"},
        {JAEGER_COMPACT_CALL,
         LITERAL("\x82\x21\0\x09"
                 "emitBatch"
                 "\x1e"),
         "the type 14"},
        {JAEGER_COMPACT_CALL,
         LITERAL("\x82\x21\0\x09"
                 "emitBatch"
                 "\x1c\x1c\x18\0\0\x19\x15\0\0\0"),
         "a list of structs"},
        {JAEGER_COMPACT_CALL,
         LITERAL("\x82\x21\0\x09"
                 "emitBatch"
                 "\x1c\x29\xfc\x10\0"),
         "found 16 elements in 1 bytes"},
        {JAEGER_COMPACT_CALL,
         LITERAL("\x82\x21\0\x09"
                 "emitBatch"
                 "\x2b\x05\x66"),
         "found 5 elements in 0 bytes"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        expect_part(read_body(broken[i].form, broken[i].body, broken[i].size), broken[i].reason);
}

static void a_body_may_end_nowhere_else(void **state)
{
    struct message batch = thrift_batch();
    (void)state;
    for (size_t size = 0; size < batch.size; size++)
        expect_part(read_body(JAEGER_THRIFT, batch.bytes, size), "Thrift at byte");
    for (unsigned kind = 0; kind < CALLS; kind++) {
        struct message call = call_of(kind, "emitBatch", &batch);
        for (size_t size = 0; size < call.size; size++)
            expect_part(read_body(form_of(kind), call.bytes, size), "Thrift at byte");
    }
}

/* Every allocation fails once. */
static void a_lack_of_memory_leaks_nothing(void **state)
{
    struct message span = proto_span();
    struct message thrift = thrift_batch();
    struct message bodies[] = {proto_request(&span, 1), thrift,
                               call_of(STRICT, "emitBatch", &thrift),
                               call_of(COMPACT, "emitBatch", &thrift)};
    char reason[CONVERSION_REASON_BYTES_MAX];
    struct converted_spans batch;
    struct budget budget;
    (void)state;
    for (enum jaeger_form form = JAEGER_PROTO; form < JAEGER_FORMS; form++) {
        enum conversion verdict = CONVERSION_BUSY;
        unsigned failures = 0;
        budget_init(&budget, UINT64_MAX);
        while (verdict != CONVERTED) {
            mem_refuse_nth(++failures);
            verdict = jaeger_read(form, slice_of(bodies[form].bytes, bodies[form].size), &budget,
                                  &batch, reason);
            mem_refuse_nth(0);
            if (verdict != CONVERTED) {
                assert_int_equal(verdict, CONVERSION_BUSY);
                assert_int_equal(budget_used(&budget), 0);
            }
        }
        assert_true(failures > 4);
        buffer_unref(batch.request);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_of_protobuf_becomes_one_of_otlp),
        cmocka_unit_test(a_span_of_thrift_becomes_one_of_otlp),
        cmocka_unit_test(a_process_has_no_tags_of_the_span_before_it),
        cmocka_unit_test(a_call_is_its_batch),
        cmocka_unit_test(neighbours_of_one_process_and_scope_are_together),
        cmocka_unit_test(the_process_of_a_batch_is_written_once),
        cmocka_unit_test(broken_bodies_are_refused_with_the_place),
        cmocka_unit_test(a_body_may_end_nowhere_else),
        cmocka_unit_test(a_lack_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
