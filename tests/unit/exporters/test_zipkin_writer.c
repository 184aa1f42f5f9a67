/* SPDX-License-Identifier: Apache-2.0 */
/* Spans for Zipkin. Requests are written as OTLP/JSON; the expected columns are what the Go
 * collector's translator makes of them, member by member, but for the order of members. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/zipkin/zipkin_writer.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"

enum { BYTES_MAX = 1 << 20, TEXT_MAX = 16384 };

#define IDS "\"traceId\":\"000102030405060708090a0b0c0d0e0f\",\"spanId\":\"0102030405060708\""

/* … and as they are sent. */
#define SENT_IDS "\"traceId\":\"000102030405060708090a0b0c0d0e0f\",\"id\":\"0102030405060708\""

#define NO_SERVICE "\"localEndpoint\":{\"serviceName\":\"otlpresourcenoservicename\"}"

static struct buffer *read_request(const char *json)
{
    char reason[JSON_REASON_BYTES_MAX];
    struct otlp_figures figures;
    struct buffer *request;
    const char *failure;
    if (json_read(otlp_request(TRACES), slice_of_text(json), NULL, &request, reason) != JSON_READ)
        fail_msg("%s: %s", json, reason);
    assert_true(otlp_check(TRACES, buffer_slice(request), &figures, &failure));
    return request;
}

static struct zipkin_body write_request(const struct buffer *request, enum zipkin_format format)
{
    struct zipkin_body body;
    struct budget budget;
    budget_init(&budget, UINT64_MAX);
    assert_int_equal(zipkin_write(buffer_slice(request), format, BYTES_MAX, NULL, &body),
                     ZIPKIN_WRITTEN);
    /* The same again, charged. */
    struct zipkin_body charged;
    assert_int_equal(zipkin_write(buffer_slice(request), format, BYTES_MAX, &budget, &charged),
                     ZIPKIN_WRITTEN);
    assert_int_equal(charged.text != NULL, body.text != NULL);
    if (charged.text != NULL)
        assert_true(slice_equal(buffer_slice(charged.text), buffer_slice(body.text)));
    buffer_unref(charged.text);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    return body;
}

/* resource and scope: their attributes. */
static void check_json(const char *resource, const char *scope, const char *span,
                       const char *expected)
{
    char json[2 * TEXT_MAX];
    char whole[2 * TEXT_MAX];
    snprintf(
        json, sizeof(json),
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[%s]},\"scopeSpans\":[{\"scope\":{%s},"
        "\"spans\":[{" IDS "%s}]}]}]}",
        resource, scope, span);
    struct buffer *request = read_request(json);
    struct zipkin_body body = write_request(request, ZIPKIN_JSON);
    assert_non_null(body.text);
    assert_int_equal(body.written, 1);
    assert_int_equal(body.invalid, 0);
    snprintf(whole, sizeof(whole), "[{" SENT_IDS "%s}]", expected);
    if (!slice_equal_text(buffer_slice(body.text), whole))
        fail_msg("%s\n  became   %.*s\n  expected %s", json, (int)body.text->size, body.text->data,
                 whole);
    buffer_unref(body.text);
    buffer_unref(request);
}

#define TEXT(key, value)   "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define NUMBER(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"
#define ATTRIBUTES(list)   ",\"attributes\":[" list "]"

static void a_span_has_names_times_and_a_kind(void **state)
{
    static const struct {
        const char *span;
        const char *expected;
    } rows[] = {
        {"", "," NO_SERVICE},
        {",\"parentSpanId\":\"0000000000000002\"",
         ",\"parentId\":\"0000000000000002\"," NO_SERVICE},
        {",\"parentSpanId\":\"0000000000000000\"", "," NO_SERVICE},
        {",\"name\":\"GET \\\"Ä\\\"\"", ",\"name\":\"get \\\"ä\\\"\"," NO_SERVICE},
        {",\"kind\":1", "," NO_SERVICE ",\"tags\":{\"span.kind\":\"internal\"}"},
        {",\"kind\":2", ",\"kind\":\"SERVER\"," NO_SERVICE},
        {",\"kind\":3", ",\"kind\":\"CLIENT\"," NO_SERVICE},
        {",\"kind\":4", ",\"kind\":\"PRODUCER\"," NO_SERVICE},
        {",\"kind\":5", ",\"kind\":\"CONSUMER\"," NO_SERVICE},
        {",\"kind\":6", "," NO_SERVICE},
        /* Within the first second of 1970 there is no time. */
        {",\"startTimeUnixNano\":\"999999999\"", "," NO_SERVICE},
        {",\"startTimeUnixNano\":\"1000000499\"", ",\"timestamp\":1000000," NO_SERVICE},
        {",\"startTimeUnixNano\":\"1000000500\"", ",\"timestamp\":1000001," NO_SERVICE},
        {",\"startTimeUnixNano\":\"9223372036854775808\"",
         ",\"timestamp\":9223372036854776," NO_SERVICE},
        /* Durations: none, 1 at least, rounded, never negative. */
        {",\"startTimeUnixNano\":\"2000000000\",\"endTimeUnixNano\":\"2000000000\"",
         ",\"timestamp\":2000000," NO_SERVICE},
        {",\"startTimeUnixNano\":\"2000000000\",\"endTimeUnixNano\":\"2000000001\"",
         ",\"timestamp\":2000000,\"duration\":1," NO_SERVICE},
        {",\"startTimeUnixNano\":\"2000000000\",\"endTimeUnixNano\":\"2000001499\"",
         ",\"timestamp\":2000000,\"duration\":1," NO_SERVICE},
        {",\"startTimeUnixNano\":\"2000000000\",\"endTimeUnixNano\":\"2000001500\"",
         ",\"timestamp\":2000000,\"duration\":2," NO_SERVICE},
        {",\"startTimeUnixNano\":\"2000000000\",\"endTimeUnixNano\":\"1999999999\"",
         ",\"timestamp\":2000000," NO_SERVICE},
        {",\"traceState\":\"a=b\"", "," NO_SERVICE ",\"tags\":{\"w3c.tracestate\":\"a=b\"}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_json("", "", rows[i].span, rows[i].expected);
}

static void a_status_becomes_tags(void **state)
{
    static const struct {
        const char *span;
        const char *tags;
    } rows[] = {
        {",\"status\":{\"message\":\"m\"}", ""},
        {",\"status\":{\"code\":1}", ",\"tags\":{\"otel.status_code\":\"STATUS_CODE_OK\"}"},
        {",\"status\":{\"code\":2,\"message\":\"m\"}",
         ",\"tags\":{\"error\":\"true\",\"otel.status_code\":\"STATUS_CODE_ERROR\","
         "\"otel.status_description\":\"m\"}"},
        {",\"status\":{\"code\":7}", ",\"tags\":{\"otel.status_code\":\"\"}"},
        /* Zipkin would take any tag "error" for a failure. */
        {ATTRIBUTES(TEXT("error", "false")), ""},
        {ATTRIBUTES(TEXT("error", "false")) ",\"status\":{\"code\":2}",
         ",\"tags\":{\"error\":\"true\",\"otel.status_code\":\"STATUS_CODE_ERROR\"}"},
    };
    char expected[TEXT_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(expected, sizeof(expected), "," NO_SERVICE "%s", rows[i].tags);
        check_json("", "", rows[i].span, expected);
    }
}

static void the_service_is_that_of_the_resource(void **state)
{
    static const struct {
        const char *resource;
        const char *expected;
    } rows[] = {
        {TEXT("service.name", "Cart") "," TEXT("faas.name", "f"),
         ",\"localEndpoint\":{\"serviceName\":\"cart\"},\"tags\":{\"faas.name\":\"f\"}"},
        {TEXT("k8s.deployment.name", "d") "," TEXT("faas.name", "f"),
         ",\"localEndpoint\":{\"serviceName\":\"f\"},\"tags\":{\"k8s.deployment.name\":\"d\","
         "\"otlp.service.name.source\":\"faas.name\"}"},
        {TEXT("k8s.deployment.name", "d"),
         ",\"localEndpoint\":{\"serviceName\":\"d\"},\"tags\":{\"otlp.service.name.source\":"
         "\"k8s.deployment.name\"}"},
        {TEXT("process.executable.name", "p"),
         ",\"localEndpoint\":{\"serviceName\":\"p\"},\"tags\":{\"otlp.service.name.source\":"
         "\"process.executable.name\"}"},
        {NUMBER("service.name", "-7"), ",\"localEndpoint\":{\"serviceName\":\"-7\"}"},
        {TEXT("service.name", ""), ""},
        {TEXT("cloud.resource_id", "c"), "," NO_SERVICE ",\"tags\":{\"faas.id\":\"c\"}"},
        {TEXT("cloud.resource_id", "c") "," TEXT("faas.id", "f"),
         "," NO_SERVICE ",\"tags\":{\"faas.id\":\"f\"}"},
        /* Of equal keys the last one counts. */
        {TEXT("a", "1") "," TEXT("a", "2"), "," NO_SERVICE ",\"tags\":{\"a\":\"2\"}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_json(rows[i].resource, "", "", rows[i].expected);
}

static void tags_of_the_span_win_over_scope_and_resource(void **state)
{
    (void)state;
    check_json(TEXT("a", "resource") "," TEXT("b", "resource") "," TEXT("c", "resource"),
               "\"name\":\"lib\",\"version\":\"1\"" ATTRIBUTES(TEXT("b", "scope") "," TEXT(
                   "c", "scope") "," TEXT("otel.library.name", "scope")),
               ATTRIBUTES(TEXT("c", "span") "," NUMBER("d", "5")),
               "," NO_SERVICE
               ",\"tags\":{\"a\":\"resource\",\"b\":\"scope\",\"c\":\"span\",\"d\":\"5\","
               "\"otel.library.name\":\"lib\",\"otel.library.version\":\"1\"}");
    /* Known keys, too, wherever they are. */
    check_json(TEXT("http.response.status_code", "200"), "",
               ATTRIBUTES(NUMBER("http.response.status_code", "404")),
               "," NO_SERVICE
               ",\"tags\":{\"http.response.status_code\":\"404\",\"http.status_code\":\"404\"}");
    check_json(
        "", "",
        ATTRIBUTES(NUMBER("http.response.status_code", "404") "," NUMBER("http.status_code", "1")),
        "," NO_SERVICE
        ",\"tags\":{\"http.response.status_code\":\"404\",\"http.status_code\":\"1\"}");
}

static void peers_become_the_remote_endpoint(void **state)
{
    static const struct {
        const char *attributes;
        const char *expected;
    } rows[] = {
        {TEXT("peer.service", "Db"), "," NO_SERVICE ",\"remoteEndpoint\":{\"serviceName\":\"db\"}"},
        {TEXT("peer.service", "old") "," TEXT("service.peer.name", "new"),
         "," NO_SERVICE
         ",\"remoteEndpoint\":{\"serviceName\":\"new\"},\"tags\":{\"peer.service\":\"old\"}"},
        {TEXT("network.peer.address", "10.0.0.1") "," NUMBER("net.peer.port", "5432"),
         "," NO_SERVICE ",\"remoteEndpoint\":{\"ipv4\":\"10.0.0.1\",\"port\":5432}"},
        {TEXT("network.peer.address", "2001:DB8:0:0:1:0:0:1"),
         "," NO_SERVICE ",\"remoteEndpoint\":{\"ipv6\":\"2001:db8::1:0:0:1\"}"},
        {TEXT("network.peer.address", "::1.2.3.4"),
         "," NO_SERVICE ",\"remoteEndpoint\":{\"ipv6\":\"::102:304\"}"},
        {TEXT("network.peer.address", "::ffff:1.2.3.4"),
         "," NO_SERVICE ",\"remoteEndpoint\":{\"ipv6\":\"1.2.3.4\"}"},
        {TEXT("network.peer.address", "::"),
         "," NO_SERVICE ",\"remoteEndpoint\":{\"ipv6\":\"::\"}"},
        {TEXT("network.peer.address", "1:0:0:2:0:0:0:0"),
         "," NO_SERVICE ",\"remoteEndpoint\":{\"ipv6\":\"1:0:0:2::\"}"},
        /* Without name and address there is no endpoint; the attributes are gone nevertheless. */
        {TEXT("network.peer.address", "host") "," NUMBER("net.peer.port", "1"), "," NO_SERVICE},
        {TEXT("network.local.address", "1.2.3.4") "," NUMBER("net.host.port", "70000"),
         ",\"localEndpoint\":{\"serviceName\":\"otlpresourcenoservicename\",\"ipv4\":\"1.2.3.4\","
         "\"port\":65535}"},
        {TEXT("net.host.port", "12x"), "," NO_SERVICE},
        {TEXT("network.local.address", "1.2.3.4") "," TEXT("net.host.port", "00000000000000000080"),
         ",\"localEndpoint\":{\"serviceName\":\"otlpresourcenoservicename\",\"ipv4\":\"1.2.3.4\","
         "\"port\":80}"},
        {TEXT("net.host.port", "000000000000000000080"), "," NO_SERVICE},
        /* The older names of addresses are plain tags by now. */
        {TEXT("net.peer.ip", "1.2.3.4"), "," NO_SERVICE ",\"tags\":{\"net.peer.ip\":\"1.2.3.4\"}"},
    };
    char span[TEXT_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(span, sizeof(span), ",\"attributes\":[%s]", rows[i].attributes);
        check_json("", "", span, rows[i].expected);
    }
}

static void events_become_annotations_and_links_tags(void **state)
{
    (void)state;
    check_json(
        "", "",
        ",\"events\":[{\"timeUnixNano\":\"1500\",\"name\":\"e\"},"
        "{\"name\":\"<f>\"" ATTRIBUTES(
            TEXT("b", "<1>") ",{\"key\":\"a\",\"value\":{\"doubleValue\":"
                             "\"NaN\"}}") "},"
                                          "{\"name\":\"g\",\"droppedAttributesCount\":4294967295}]",
        "," NO_SERVICE ",\"annotations\":[{\"timestamp\":2,\"value\":\"e\"},{\"timestamp\":0,"
        "\"value\":\"<f>|{\\\"a\\\":\\\"NaN\\\",\\\"b\\\":\\\"\\\\u003c1\\\\u003e\\\"}|0\"},"
        "{\"timestamp\":0,\"value\":\"g|{}|4294967295\"}]");
    check_json("", "",
               ",\"links\":[{\"traceId\":\"0f0e0d0c0b0a09080706050403020100\",\"spanId\":"
               "\"0807060504030201\",\"traceState\":\"s\",\"droppedAttributesCount\":3},"
               "{\"attributes\":[" NUMBER("a", "1") "]}]" ATTRIBUTES(TEXT("otlp.link.0", "ours")),
               "," NO_SERVICE ",\"tags\":{\"otlp.link.0\":\"0f0e0d0c0b0a09080706050403020100|"
               "0807060504030201|s|{}|3\",\"otlp.link.1\":\"|||{\\\"a\\\":1}|0\"}");
}

static void every_type_of_value_becomes_a_string(void **state)
{
    (void)state;
    check_json(
        "", "",
        ATTRIBUTES("{\"key\":\"a\"},{\"key\":\"b\",\"value\":{\"boolValue\":true}},"
                   "{\"key\":\"c\",\"value\":{\"doubleValue\":1e21}},"
                   "{\"key\":\"d\",\"value\":{\"bytesValue\":\"aGk=\"}},"
                   "{\"key\":\"e\",\"value\":{\"arrayValue\":{\"values\":[{},{\"stringValue\":"
                   "\"<\"},{\"bytesValue\":\"\"}]}}},"
                   "{\"key\":\"f\",\"value\":{\"kvlistValue\":{\"values\":[" NUMBER(
                       "k", "1") "]}}},{\"key\":\"\",\"value\":{\"doubleValue\":\"NaN\"}}"),
        "," NO_SERVICE ",\"tags\":{\"\":\"NaN\",\"a\":\"\",\"b\":\"true\",\"c\":\"1e+21\","
        "\"d\":\"aGk=\",\"e\":\"[null,\\\"<\\\",null]\",\"f\":\"{\\\"k\\\":1}\"}");
}

/* Longer lists of tags are sorted in another way. */
static void many_tags_are_sorted_and_counted_once(void **state)
{
    enum { MANY = 100 };
    char attributes[TEXT_MAX] = "";
    char expected[TEXT_MAX] = "," NO_SERVICE ",\"tags\":{";
    char span[TEXT_MAX + 32];
    size_t used = 0;
    (void)state;
    for (int i = 2 * MANY - 1; i >= 0; i--)
        used += (size_t)snprintf(attributes + used, sizeof(attributes) - used,
                                 "%s" NUMBER("k%02d", "%d"), used > 0 ? "," : "", i % MANY, i);
    used = strlen(expected);
    for (int i = 0; i < MANY; i++)
        used += (size_t)snprintf(expected + used, sizeof(expected) - used, "%s\"k%02d\":\"%d\"",
                                 i > 0 ? "," : "", i, i);
    snprintf(expected + used, sizeof(expected) - used, "}");
    snprintf(span, sizeof(span), ",\"attributes\":[%s]", attributes);
    check_json("", "", span, expected);
}

static void spans_without_ids_are_left_out_alone(void **state)
{
    static const char json[] =
        "{\"resourceSpans\":[{},{\"scopeSpans\":[{\"scope\":{\"name\":\"first\",\"version\":\"1\"},"
        "\"spans\":[{\"name\":\"a\"},{\"traceId\":\"00000000000000000000000000000000\",\"spanId\":"
        "\"0102030405060708\"},{" IDS "},{\"traceId\":\"000102030405060708090a0b0c0d0e0f\"}]},"
        "{\"scope\":{\"name\":\"second\"},\"spans\":[{\"traceId\":"
        "\"00000000000000000000000000000001\",\"spanId\":\"0000000000000002\"}]}]}]}";
    static const char expected[] =
        "[{" SENT_IDS "," NO_SERVICE
        ",\"tags\":{\"otel.library.name\":\"first\",\"otel.library.version\":\"1\"}},"
        /* A trace id of 64 bits; and nothing of the first scope. */
        "{\"traceId\":\"0000000000000001\",\"id\":\"0000000000000002\"," NO_SERVICE
        ",\"tags\":{\"otel.library.name\":\"second\"}}]";
    (void)state;
    struct buffer *request = read_request(json);
    struct zipkin_body body = write_request(request, ZIPKIN_JSON);
    assert_int_equal(body.written, 2);
    assert_int_equal(body.invalid, 3);
    assert_true(slice_equal_text(buffer_slice(body.text), expected));
    buffer_unref(body.text);
    buffer_unref(request);
    for (enum zipkin_format format = ZIPKIN_JSON; format <= ZIPKIN_PROTO; format++) {
        request = read_request("{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}]}]}]}");
        body = write_request(request, format);
        assert_null(body.text);
        assert_int_equal(body.written, 0);
        assert_int_equal(body.invalid, 1);
        buffer_unref(request);
    }
}

/* Go's protobuf keeps capitals, and cuts durations and the times of events. */
static void protobuf_has_the_same_spans(void **state)
{
    static const char json[] = "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" TEXT(
        "service.name",
        "Cart") "]},"
                "\"scopeSpans\":[{\"spans\":[{" IDS
                ",\"name\":\"GET\",\"kind\":3,\"startTimeUnixNano\":"
                "\"2000000500\",\"endTimeUnixNano\":\"2000002499\",\"events\":[{\"timeUnixNano\":"
                "\"2999\","
                "\"name\":\"e\"},{}]" ATTRIBUTES(TEXT("network.peer.address", "1.2.3.4") "," NUMBER(
                    "net.peer.port",
                    "443") "," TEXT("peer.service",
                                    "Db") "," TEXT("a", "")) "},{" IDS ",\"parentSpanId\":"
                                                             "\"0000000000000003\"" ATTRIBUTES(
                                                                 TEXT("network.local.address",
                                                                      "::1")) "}]}]}]}";
    static const char expected[] =
        "\x0a\x5c"
        "\x0a\x10\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
        "\x1a\x08\x01\x02\x03\x04\x05\x06\x07\x08"
        "\x20\x01"
        "\x2a\x03GET"
        "\x31\x81\x84\x1e\x00\x00\x00\x00\x00" /* 2000001, rounded */
        "\x38\x01"                             /* 1.999 us, cut */
        "\x42\x06\x0a\x04"
        "Cart"
        "\x4a\x0d\x0a\x02"
        "Db\x12\x04\x01\x02\x03\x04\x20\xbb\x03"
        "\x52\x0c\x09\x02\x00\x00\x00\x00\x00\x00\x00\x12\x01"
        "e"
        "\x52\x00"
        "\x5a\x05\x0a\x01"
        "a\x12\x00"
        "\x0a\x40"
        "\x0a\x10\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
        "\x12\x08\x00\x00\x00\x00\x00\x00\x00\x03"
        "\x1a\x08\x01\x02\x03\x04\x05\x06\x07\x08"
        "\x42\x18\x0a\x04"
        "Cart\x1a\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01";
    (void)state;
    struct buffer *request = read_request(json);
    struct zipkin_body body = write_request(request, ZIPKIN_PROTO);
    assert_int_equal(body.written, 2);
    assert_int_equal(body.text->size, sizeof(expected) - 1);
    assert_memory_equal(body.text->data, expected, sizeof(expected) - 1);
    buffer_unref(body.text);
    buffer_unref(request);
}

/* A request of one span, whose name and attribute, "k\xff", hold bytes that are not UTF-8. */
static void bytes_that_are_not_utf8_are_replaced(void **state)
{
    static const char span[] = "\x0a\x10"
                               "0123456789abcdef\x12\x08"
                               "01234567\x2a\x02n\xff\x4a\x0a\x0a\x02k\xff\x12\x04\x0a\x02\xc3v";
    enum { SPAN_BYTES = sizeof(span) - 1 };
    uint8_t room[64 + SPAN_BYTES];
    static const struct {
        enum zipkin_format format;
        const char *name;
        const char *tag;
    } rows[] = {
        {ZIPKIN_JSON, "\"name\":\"n\xef\xbf\xbd\"", "{\"k\xef\xbf\xbd\":\"\xef\xbf\xbdv\"}"},
        {ZIPKIN_PROTO, "\x2a\x04n\xef\xbf\xbd",
         "\x5a\x0c\x0a\x04k\xef\xbf\xbd\x12\x04\xef\xbf\xbdv"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wire_writer writer = wire_writer_of(room, sizeof(room));
        struct zipkin_body body;
        wire_write_header(&writer, 1, SPAN_BYTES + 4);
        wire_write_header(&writer, 2, SPAN_BYTES + 2);
        wire_write_bytes(&writer, 2, slice_of(span, SPAN_BYTES));
        assert_int_equal(
            zipkin_write(wire_written(&writer), rows[i].format, BYTES_MAX, NULL, &body),
            ZIPKIN_WRITTEN);
        assert_non_null(
            memmem(body.text->data, body.text->size, rows[i].name, strlen(rows[i].name)));
        assert_non_null(memmem(body.text->data, body.text->size, rows[i].tag, strlen(rows[i].tag)));
        buffer_unref(body.text);
    }
}

/* Each span repeats its resource: a small request may become a large body. */
static void bodies_have_a_limit_and_memory_is_charged(void **state)
{
    enum { VALUE_BYTES = 2000, SPANS = 50, PIECE = 128 };
    char *json = mem_alloc(VALUE_BYTES + SPANS * PIECE + 512);
    int used = sprintf(json, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"a\","
                             "\"value\":{\"arrayValue\":{\"values\":[{\"stringValue\":\"");
    (void)state;
    memset(json + used, 'v', VALUE_BYTES);
    used += VALUE_BYTES;
    used += sprintf(json + used, "\"}]}}}]},\"scopeSpans\":[{\"spans\":[");
    for (int i = 0; i < SPANS; i++)
        used += sprintf(json + used, "%s{" IDS "}", i > 0 ? "," : "");
    sprintf(json + used, "]}]}]}");
    struct buffer *request = read_request(json);
    mem_free(json);
    for (enum zipkin_format format = ZIPKIN_JSON; format <= ZIPKIN_PROTO; format++) {
        struct zipkin_body body = write_request(request, format);
        assert_true(body.text->size > VALUE_BYTES * SPANS);
        struct zipkin_body none;
        assert_int_equal(
            zipkin_write(buffer_slice(request), format, body.text->size / 2, NULL, &none),
            ZIPKIN_TOO_LARGE);
        /* Whatever is refused: nothing stays charged. */
        size_t refusals = 0;
        for (uint64_t limit = 0; limit < 8 * (uint64_t)body.text->size; limit += 7000) {
            struct budget budget;
            budget_init(&budget, limit);
            enum zipkin_result result =
                zipkin_write(buffer_slice(request), format, BYTES_MAX, &budget, &none);
            assert_int_not_equal(result, ZIPKIN_TOO_LARGE);
            refusals += result == ZIPKIN_NO_MEMORY;
            if (result == ZIPKIN_WRITTEN)
                buffer_unref(none.text);
            assert_int_equal(budget_used(&budget), 0);
            budget_fini(&budget);
        }
        assert_true(refusals > 3);
        /* The same for the allocator. */
        enum zipkin_result result = ZIPKIN_NO_MEMORY;
        for (uint64_t nth = 1; result == ZIPKIN_NO_MEMORY; nth++) {
            mem_refuse_nth(nth);
            result = zipkin_write(buffer_slice(request), format, BYTES_MAX, NULL, &none);
        }
        mem_refuse_nth(0);
        assert_int_equal(result, ZIPKIN_WRITTEN);
        buffer_unref(none.text);
        buffer_unref(body.text);
    }
    buffer_unref(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_has_names_times_and_a_kind),
        cmocka_unit_test(a_status_becomes_tags),
        cmocka_unit_test(the_service_is_that_of_the_resource),
        cmocka_unit_test(tags_of_the_span_win_over_scope_and_resource),
        cmocka_unit_test(peers_become_the_remote_endpoint),
        cmocka_unit_test(events_become_annotations_and_links_tags),
        cmocka_unit_test(every_type_of_value_becomes_a_string),
        cmocka_unit_test(many_tags_are_sorted_and_counted_once),
        cmocka_unit_test(spans_without_ids_are_left_out_alone),
        cmocka_unit_test(protobuf_has_the_same_spans),
        cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
        cmocka_unit_test(bodies_have_a_limit_and_memory_is_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
