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
    add_number(&batch, 0, 1);
    return batch;
}

/* ---- Tests ---- */

/* The result as OTLP/JSON, or the reason of a refusal; valid until the next call. */
static const char *read_body(enum jaeger_form form, const void *body, size_t size)
{
    static char text[1 << 16];
    char reason[JAEGER_REASON_BYTES_MAX] = "";
    struct budget budget;
    struct jaeger_batch batch;
    struct otlp_figures figures;
    const char *why;
    /* A copy, so that reading beyond it is noticed. */
    void *copy = mem_copy(body, size);
    budget_init(&budget, UINT64_MAX);
    enum jaeger_verdict verdict = jaeger_read(form, slice_of(copy, size), &budget, &batch, reason);
    if (verdict == JAEGER_READ) {
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
}

/* Every allocation fails once. */
static void a_lack_of_memory_leaks_nothing(void **state)
{
    struct message span = proto_span();
    struct message bodies[] = {proto_request(&span, 1), thrift_batch()};
    char reason[JAEGER_REASON_BYTES_MAX];
    struct jaeger_batch batch;
    struct budget budget;
    (void)state;
    for (enum jaeger_form form = JAEGER_PROTO; form < JAEGER_FORMS; form++) {
        enum jaeger_verdict verdict = JAEGER_BUSY;
        unsigned failures = 0;
        budget_init(&budget, UINT64_MAX);
        while (verdict != JAEGER_READ) {
            mem_refuse_nth(++failures);
            verdict = jaeger_read(form, slice_of(bodies[form].bytes, bodies[form].size), &budget,
                                  &batch, reason);
            mem_refuse_nth(0);
            if (verdict != JAEGER_READ) {
                assert_int_equal(verdict, JAEGER_BUSY);
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
        cmocka_unit_test(neighbours_of_one_process_and_scope_are_together),
        cmocka_unit_test(broken_bodies_are_refused_with_the_place),
        cmocka_unit_test(a_body_may_end_nowhere_else),
        cmocka_unit_test(a_lack_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
