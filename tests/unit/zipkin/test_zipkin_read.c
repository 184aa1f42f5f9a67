/* SPDX-License-Identifier: Apache-2.0 */
/* Zipkin's spans as OTLP/JSON: what becomes of each part of a span, in each form; what is refused;
 * memory. */
#include "src/zipkin/zipkin_read.h"

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

static const struct zipkin_source v2_json = {.form = ZIPKIN_V2_JSON};
static const struct zipkin_source v2_proto = {.form = ZIPKIN_V2_PROTO};
static const struct zipkin_source v1_json = {.form = ZIPKIN_V1_JSON, .now_ns = 77};
static const struct zipkin_source v1_thrift = {.form = ZIPKIN_V1_THRIFT};

/* The result as OTLP/JSON, or the reason of a refusal; valid until the next call. */
static const char *read_body(const struct zipkin_source *source, const void *body, size_t size)
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
    enum conversion verdict = zipkin_read(source, slice_of(copy, size), &budget, &batch, reason);
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

static void a_span_of_v2_becomes_one_of_otlp(void **state)
{
    static const char body[] =
        "[{\"traceId\":\"5af7183fb1d4cf5f\",\"id\":\"352bff9a74ca9ad2\","
        "\"parentId\":\"6b221d5bc9e6496c\",\"name\":\"get /\",\"kind\":\"CLIENT\","
        "\"timestamp\":1556604172355737,\"duration\":1431,\"shared\":true,\"debug\":false,"
        "\"localEndpoint\":{\"serviceName\":\"front\",\"ipv4\":\"127.0.0.1\",\"port\":80},"
        "\"remoteEndpoint\":{\"serviceName\":\"back\",\"ipv6\":\"2001:DB8::0:1\",\"port\":443},"
        "\"annotations\":[{\"timestamp\":5,\"value\":\"retry\"}],"
        "\"tags\":{\"http.method\":\"GET\",\"host.name\":\"h\",\"otel.scope.name\":\"lib\","
        "\"otel.scope.version\":\"1\"}}]";
    (void)state;
    assert_string_equal(
        read_body(&v2_json, LITERAL(body)),
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
        "\"stringValue\":\"front\"}},{\"key\":\"host.name\",\"value\":{\"stringValue\":\"h\"}}]},"
        "\"scopeSpans\":[{\"scope\":{\"name\":\"lib\",\"version\":\"1\"},\"spans\":[{\"traceId\":"
        "\"00000000000000005af7183fb1d4cf5f\",\"spanId\":\"352bff9a74ca9ad2\",\"parentSpanId\":"
        "\"6b221d5bc9e6496c\",\"name\":\"get /\",\"kind\":3,\"startTimeUnixNano\":"
        "\"1556604172355737000\",\"endTimeUnixNano\":\"1556604172357168000\",\"attributes\":[{"
        "\"key\":\"network.local.address\",\"value\":{\"stringValue\":\"127.0.0.1\"}},{\"key\":"
        "\"net.host.port\",\"value\":{\"intValue\":\"80\"}},{\"key\":\"service.peer.name\","
        "\"value\":{\"stringValue\":\"back\"}},{\"key\":\"network.peer.address\",\"value\":{"
        "\"stringValue\":\"2001:db8::1\"}},{\"key\":\"net.peer.port\",\"value\":{\"intValue\":"
        "\"443\"}},{\"key\":\"http.method\",\"value\":{\"stringValue\":\"GET\"}}],\"events\":[{"
        "\"timeUnixNano\":\"5000\",\"name\":\"retry\"}],\"status\":{}}]}]}]}");
}

/* members: of a span of v2 JSON. part: of the result. */
static const struct {
    const char *members;
    const char *part;
} members[] = {
    {"\"duration\":3", "\"endTimeUnixNano\":\"3000\",\"attributes\":[{\"key\":"
                       "\"otel.zipkin.absentField.startTime\",\"value\":{\"boolValue\":true}}]"},
    {"\"parentId\":\"2\"", "\"spanId\":\"0000000000000002\",\"attributes\""},
    {"\"parentId\":null,\"NAME\":\"n\"", "\"name\":\"n\""},
    {"\"unknown\":[{\"a\":[1,2.5e3,null,true,\"x\"]}]", "\"spans\""},
    {"\"name\":\"\\u00fc\\ud800\"", "\"name\":\"\xc3\xbc\xef\xbf\xbd\""},
    {"\"name\":\"\xff\xc3\xbc\"", "\"name\":\"\xef\xbf\xbd\xc3\xbc\""},
    {"\"tags\":{\"error\":\"true\"}", "}}],\"status\":{\"code\":2}"},
    {"\"tags\":{\"error\":\"why\"}", "{\"key\":\"error\",\"value\":{\"stringValue\":\"why\"}}"},
    {"\"tags\":{\"otel.status_code\":\"STATUS_CODE_OK\",\"otel.status_description\":\"d\"}",
     "\"status\":{\"message\":\"d\",\"code\":1}"},
    {"\"tags\":{\"otel.status_code\":\"OK\"}", "\"status\":{\"code\":1}"},
    {"\"tags\":{\"otel.status_code\":\"other\"}", "\"stringValue\":\"other\""},
    {"\"tags\":{\"span.kind\":\"internal\"}", "\"kind\":1"},
    {"\"tags\":{\"w3c.tracestate\":\"a=b\"}", "\"traceState\":\"a=b\""},
    {"\"tags\":{\"k\":\"1\",\"k\":\"2\"}",
     "true}},{\"key\":\"k\",\"value\":{\"stringValue\":\"2\"}}]"},
    {"\"tags\":{\"otlp.link.0\":\"0102030405060708090a0b0c0d0e0f10|0102030405060708|s=t|{\\\"k\\\":"
     "\\\"a|b\\\"}|3\"}",
     "\"links\":[{\"traceId\":\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"0102030405060708\","
     "\"traceState\":\"s=t\",\"attributes\":[{\"key\":\"k\",\"value\":{\"stringValue\":\"a|b\"}}],"
     "\"droppedAttributesCount\":3}]"},
    {"\"tags\":{\"otlp.link.0\":\"no link\"}", "\"stringValue\":\"no link\""},
    {"\"tags\":{\"otlp.link.1\":\"|||{}|0\"}", "\"stringValue\":\"|||{}|0\""},
    {"\"annotations\":[{\"timestamp\":1,\"value\":\"e|{\\\"i\\\":9007199254740993,\\\"d\\\":1.5,"
     "\\\"l\\\":[true,{}]}|2\"}]",
     "\"name\":\"e\",\"attributes\":[{\"key\":\"i\",\"value\":{\"intValue\":\"9007199254740993\"}},"
     "{\"key\":\"d\",\"value\":{\"doubleValue\":1.5}},{\"key\":\"l\",\"value\":{\"arrayValue\":{"
     "\"values\":[{\"boolValue\":true},{\"kvlistValue\":{}}]}}}],\"droppedAttributesCount\":2}"},
    {"\"annotations\":[{\"timestamp\":1,\"value\":\"a|b|c\"}]", "\"name\":\"a|b|c\""},
    {"\"annotations\":[{\"timestamp\":1,\"value\":\"a|[[|0\"}]", "\"name\":\"a|[[|0\"}"},
    {"\"localEndpoint\":{\"serviceName\":\"s\"},\"tags\":{\"otlp.service.name.source\":\"x\"}",
     "\"attributes\":[{\"key\":\"x\",\"value\":{\"stringValue\":\"s\"}}]"},
    {"\"localEndpoint\":{\"serviceName\":\"s\"},\"tags\":{\"service.name\":\"t\"}",
     "\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"t\"}}]}"},
    {"\"tags\":{\"host.name\":\"h\"}", "\"resource\":{\"attributes\":[{\"key\":\"host.name\""},
    {"\"localEndpoint\":{\"ipv6\":\"::ffff:1.2.3.4\"}", "\"stringValue\":\"1.2.3.4\""},
    {"\"localEndpoint\":{\"ipv6\":\"1:0:0:2:0:0:0:3\"}", "\"stringValue\":\"1:0:0:2::3\""},
};

static void members_mean_what_they_mean_in_the_go_collector(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        char body[1024];
        int size = snprintf(body, sizeof(body), "[{\"traceId\":\"1\",\"id\":\"2\",%s}]",
                            members[i].members);
        expect_part(read_body(&v2_json, body, (size_t)size), members[i].part);
    }
}

static const struct {
    const char *text;
    const char *value;
} parsed[] = {
    {"7", "{\"intValue\":\"7\"}"},
    {"-007", "{\"intValue\":\"-7\"}"},
    {"99999999999999999999", "{\"intValue\":\"9223372036854775807\"}"},
    {"-99999999999999999999", "{\"intValue\":\"-9223372036854775808\"}"},
    {"1.5", "{\"doubleValue\":1.5}"},
    {"true", "{\"boolValue\":true}"},
    {"1.", "{\"stringValue\":\"1.\"}"},
    {".5", "{\"stringValue\":\".5\"}"},
    {"1e3", "{\"stringValue\":\"1e3\"}"},
    {"", "{\"stringValue\":\"\"}"},
    {"True", "{\"stringValue\":\"True\"}"},
};

static void strings_are_parsed_on_demand(void **state)
{
    struct zipkin_source source = v2_json;
    (void)state;
    source.parses_strings = true;
    for (size_t i = 0; i < sizeof(parsed) / sizeof(parsed[0]); i++) {
        char body[256];
        int size =
            snprintf(body, sizeof(body),
                     "[{\"traceId\":\"1\",\"id\":\"2\",\"tags\":{\"k\":\"%s\"}}]", parsed[i].text);
        expect_part(read_body(&source, body, (size_t)size), parsed[i].value);
    }
}

/* Resources and scopes are gathered, whatever the order of the spans; spans stay in theirs. */
static void spans_are_gathered_by_resource_and_scope(void **state)
{
    static const char body[] =
        "[{\"traceId\":\"1\",\"id\":\"1\",\"name\":\"1\",\"localEndpoint\":{\"serviceName\":\"b\"}}"
        ","
        "{\"traceId\":\"1\",\"id\":\"2\",\"name\":\"2\",\"localEndpoint\":{\"serviceName\":\"a\"},"
        "\"tags\":{\"otel.library.name\":\"l\"}},null,"
        "{\"traceId\":\"1\",\"id\":\"3\",\"name\":\"3\",\"localEndpoint\":{\"serviceName\":\"b\"}},"
        "{\"traceId\":\"1\",\"id\":\"4\",\"name\":\"4\",\"localEndpoint\":{\"serviceName\":\"a\"}},"
        "{\"traceId\":\"1\",\"id\":\"5\",\"name\":\"5\",\"localEndpoint\":{\"serviceName\":\"a\"},"
        "\"tags\":{\"host.name\":\"h\"}}]";
    static const char *const order[] = {"\"a\"",          "\"spans\"",      "\"name\":\"4\"",
                                        "\"l\"",          "\"name\":\"2\"", "\"a\"",
                                        "\"host.name\"",  "\"name\":\"5\"", "\"b\"",
                                        "\"name\":\"1\"", "\"name\":\"3\""};
    (void)state;
    const char *at = read_body(&v2_json, LITERAL(body));
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        expect_part(at, order[i]);
        at = strstr(at, order[i]) + 1;
    }
}

static void protobuf_is_read(void **state)
{
    static const char body[] = "\x0a\x66"
                               "\x0a\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"
                               "\x12\x08\0\0\0\0\0\0\0\x03"
                               "\x1a\x08\0\0\0\0\0\0\0\x02"
                               "\x20\x02"
                               "\x2a\x01n"
                               "\x31\x05\0\0\0\0\0\0\0"
                               "\x38\x07"
                               "\x42\x0d\x0a\x01s\x12\x04\x01\x02\x03\x04\x20\xd0\x80\x04"
                               "\x4a\x05\x12\x03\x01\x02\x03"
                               "\x52\x0c\x09\x01\0\0\0\0\0\0\0\x12\x01"
                               "e"
                               "\x5a\x06\x0a\x01k\x12\x01v"
                               "\x9a\x06\x01z";
    (void)state;
    assert_string_equal(
        read_body(&v2_proto, LITERAL(body)),
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
        "\"stringValue\":\"s\"}}]},\"scopeSpans\":[{\"scope\":{},\"spans\":[{\"traceId\":"
        "\"00000000000000000000000000000001\",\"spanId\":\"0000000000000002\",\"parentSpanId\":"
        "\"0000000000000003\",\"name\":\"n\",\"kind\":2,\"startTimeUnixNano\":\"5000\","
        "\"endTimeUnixNano\":\"12000\",\"attributes\":[{\"key\":\"network.local.address\","
        "\"value\":{\"stringValue\":\"1.2.3.4\"}},{\"key\":\"net.host.port\",\"value\":{"
        "\"intValue\":\"80\"}},{\"key\":\"network.peer.address\",\"value\":{\"stringValue\":"
        "\"?010203\"}},{\"key\":\"k\",\"value\":{\"stringValue\":\"v\"}}],\"events\":[{"
        "\"timeUnixNano\":\"1000\",\"name\":\"e\"}],\"status\":{}}]}]}]}");
}

#define V1(members)                                                                                \
    LITERAL("[{\"traceId\":\"0000000000000001\",\"id\":\"0000000000000002\"," members "}]")

static void v1_json_is_read(void **state)
{
    (void)state;
    expect_part(read_body(&v1_json, V1("\"name\":\"n\"")),
                "\"startTimeUnixNano\":\"77\",\"endTimeUnixNano\":\"77\",\"attributes\":[{\"key\":"
                "\"otel.zipkin.absentField.startTime\",\"value\":{\"boolValue\":true}}]");
    expect_part(read_body(&v1_json, V1("\"name\":\"n\"")), "\"unknown-service\"");
    const char *found = read_body(
        &v1_json, V1("\"annotations\":[{\"timestamp\":9,\"value\":\"e\"},{\"timestamp\":3,"
                     "\"value\":\"sr\",\"endpoint\":{\"serviceName\":\"s\",\"ipv4\":\"1.2.3.4\","
                     "\"port\":80}}],\"binaryAnnotations\":[{\"key\":\"lc\",\"value\":\"c\"},"
                     "{\"key\":\"sa\",\"value\":true},{\"key\":\"http.status_code\",\"value\":"
                     "\"500\"}]"));
    expect_part(found, "{\"key\":\"port\",\"value\":{\"stringValue\":\"80\"}}");
    expect_part(found, "\"kind\":2,\"startTimeUnixNano\":\"3000\",\"endTimeUnixNano\":\"9000\"");
    expect_part(found, "{\"key\":\"component\",\"value\":{\"stringValue\":\"c\"}}");
    expect_part(found, "{\"key\":\"sa\",\"value\":{\"stringValue\":\"true\"}}");
    expect_part(found, "\"events\":[{\"timeUnixNano\":\"9000\",\"name\":\"e\"}]");
    expect_part(found, "\"status\":{\"code\":2}");
    expect_part(read_body(&v1_json, V1("\"timestamp\":1,\"binaryAnnotations\":[{\"key\":\"k\","
                                       "\"value\":\"v\",\"endpoint\":{\"serviceName\":\"x\"}},"
                                       "{\"key\":\"census.status_code\",\"value\":\"0\"},"
                                       "{\"key\":\"error\",\"value\":\"boom\"}]")),
                "{\"stringValue\":\"x\"}");
    expect_part(read_body(&v1_json, V1("\"binaryAnnotations\":[{\"key\":\"census.status_code\","
                                       "\"value\":\"0\"}]")),
                "\"status\":{\"code\":1}");
}

static void addresses_of_v1_are_the_remote_endpoint(void **state)
{
    (void)state;
    const char *found = read_body(
        &v1_json, V1("\"binaryAnnotations\":[{\"key\":\"k\",\"value\":\"v\",\"endpoint\":{"
                     "\"serviceName\":\"x\"}},{\"key\":\"net.peer.port\",\"value\":\"1\"},"
                     "{\"key\":\"sa\",\"value\":true,\"endpoint\":{\"serviceName\":\"prices\","
                     "\"ipv4\":\"10.0.0.7\",\"port\":9000}}]"));
    expect_part(found, "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"x\"}}]");
    expect_part(found,
                "\"attributes\":[{\"key\":\"service.peer.name\",\"value\":{\"stringValue\":"
                "\"prices\"}},{\"key\":\"network.peer.address\",\"value\":{\"stringValue\":"
                "\"10.0.0.7\"}},{\"key\":\"net.peer.port\",\"value\":{\"intValue\":\"9000\"}},"
                "{\"key\":\"k\",\"value\":{\"stringValue\":\"v\"}},");
    /* One of another value is a tag, and names the service. */
    expect_part(read_body(&v1_json, V1("\"binaryAnnotations\":[{\"key\":\"ca\",\"value\":false,"
                                       "\"endpoint\":{\"serviceName\":\"x\"}}]")),
                "\"attributes\":[{\"key\":\"ca\",\"value\":{\"stringValue\":\"false\"}}");
    static const char body[] =
        "\x0c\0\0\0\x01"
        "\x0a\0\x01\0\0\0\0\0\0\0\x01\x0a\0\x04\0\0\0\0\0\0\0\x02"
        "\x0f\0\x08\x0c\0\0\0\x01"
        "\x0b\0\x01\0\0\0\x02"
        "ma\x0b\0\x02\0\0\0\x01\x01\x08\0\x03\0\0\0\0"
        "\x0c\0\x04\x08\0\x01\x7f\0\0\x01\x06\0\x02\x23\x28\x0b\0\x03\0\0\0\x01q\0\0\0";
    found = read_body(&v1_thrift, LITERAL(body));
    expect_part(found, "\"unknown-service\"");
    expect_part(found,
                "\"attributes\":[{\"key\":\"service.peer.name\",\"value\":{\"stringValue\":"
                "\"q\"}},{\"key\":\"network.peer.address\",\"value\":{\"stringValue\":"
                "\"127.0.0.1\"}},{\"key\":\"net.peer.port\",\"value\":{\"intValue\":\"9000\"}}]");
}

static void thrift_is_read(void **state)
{
    static const char body[] =
        "\x0c\0\0\0\x01"
        "\x0a\0\x01\0\0\0\0\0\0\0\x01"
        "\x0b\0\x03\0\0\0\x01n"
        "\x0a\0\x04\0\0\0\0\0\0\0\x02"
        "\x0f\0\x06\x0c\0\0\0\x01"
        "\x0a\0\x01\0\0\0\0\0\0\0\x05\x0b\0\x02\0\0\0\x02"
        "cs\x0c\0\x03\x08\0\x01\x7f\0\0\x01\x06\0\x02\xff\xfb\x0b\0\x03\0\0\0\x01s\0\0"
        "\x0f\0\x08\x0c\0\0\0\x02"
        "\x0b\0\x01\0\0\0\x01i\x0b\0\x02\0\0\0\x02\xff\xfb\x08\0\x03\0\0\0\x02\0"
        "\x0b\0\x01\0\0\0\x01"
        "b\x0b\0\x02\0\0\0\x01\xff\x08\0\x03\0\0\0\x01\0"
        "\x0d\0\x63\x0b\x0f\0\0\0\x01\0\0\0\x01k\x02\0\0\0\x01\x01"
        "\0"
        "what follows is ignored";
    (void)state;
    assert_string_equal(
        read_body(&v1_thrift, LITERAL(body)),
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
        "\"stringValue\":\"s\"}},{\"key\":\"ipv4\",\"value\":{\"stringValue\":\"127.0.0.1\"}},{"
        "\"key\":\"port\",\"value\":{\"stringValue\":\"65531\"}}]},\"scopeSpans\":[{\"scope\":{},"
        "\"spans\":[{\"traceId\":\"00000000000000000000000000000001\",\"spanId\":"
        "\"0000000000000002\",\"name\":\"n\",\"kind\":3,\"startTimeUnixNano\":\"5000\","
        "\"endTimeUnixNano\":\"5000\",\"attributes\":[{\"key\":\"i\",\"value\":{\"intValue\":"
        "\"65531\"}},{\"key\":\"b\",\"value\":{\"stringValue\":\"/w==\"}}],\"status\":{}}]}]}]}");
}

static const struct {
    const struct zipkin_source *source;
    const char *body;
    size_t size;
    const char *reason;
} broken[] = {
    {&v2_json, LITERAL("[{\"id\":\"2\",\"traceId\":\"x\"}]"),
     "JSON at byte 21, in Span: found \"x\", expected a trace id of up to 32 hexadecimal digits"},
    {&v2_json, LITERAL("[{\"traceId\":\"1\"}]"), "expected a span with an id that is not zero"},
    {&v2_json, LITERAL("[{\"localEndpoint\":{\"port\":65536}}]"),
     "JSON at byte 26, in Span.localEndpoint: found 65536, expected a port from 0 to 65535"},
    {&v2_json, LITERAL("[{\"localEndpoint\":{\"ipv4\":\"1.2.3\"}}]"), "expected an IP address"},
    {&v2_json, LITERAL("[{\"annotations\":[{\"value\":\"v\"}]}]"),
     "in Span.annotations: found {\"value\", expected an annotation with a timestamp"},
    {&v2_json, LITERAL("[{\"tags\":{\"k\":1}}]"), "in Span.tags: found 1, expected a string"},
    {&v2_json, LITERAL("[{\"timestamp\":-1}]"), "expected microseconds, as a whole number"},
    {&v2_json, LITERAL("[]]"), "JSON at byte 2: found ], expected nothing after the document"},
    {&v2_json,
     LITERAL("[{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}]"),
     "expected at most 32 levels of nesting"},
    {&v1_json, V1("\"parentId\":\"0000000000000000\""), "expected a span id of 16"},
    {&v2_proto, LITERAL("\x0a\x05\x0a"),
     "protobuf at byte 2, in ListOfSpans: a field is longer than the message"},
    {&v2_proto, LITERAL("\x0a\x03\x2a\x01\xff"), "in Span.name: found a string that is not UTF-8"},
    {&v1_thrift, LITERAL(""), "Thrift at byte 0, in the list: found the end of the body"},
    {&v1_thrift, LITERAL("\x0c\xff\xff\xff\xff"), "found -1 spans in 0 bytes"},
    {&v1_thrift, LITERAL("\x0c\0\0\0\x01\x0b\0\x03\x7f\0\0\0x"),
     "Thrift at byte 8, in Span: found 2130706432 bytes in 1 bytes, expected no more"},
    {&v1_thrift, LITERAL("\x0c\0\0\0\x01\x07\0\x63"), "found the type 7"},
    {&v1_thrift, LITERAL("\x0c\0\0\0\x01\x0f\0\x63\x02\x7f\xff\xff\xff\0"), "2147483647 elements"},
};

static void broken_bodies_are_refused_with_the_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        expect_part(read_body(broken[i].source, broken[i].body, broken[i].size), broken[i].reason);
}

/* A struct in a struct in a struct … */
static void thrift_is_skipped_to_a_bounded_depth(void **state)
{
    enum { HEAD = 5, FIELD = 3, LEVELS = 100000 };
    size_t size = HEAD + LEVELS * FIELD;
    uint8_t *body = mem_zalloc(size);
    (void)state;
    memcpy(body, "\x0c\0\0\0\x01", HEAD);
    for (size_t i = 0; i < LEVELS; i++)
        memcpy(body + HEAD + i * FIELD, "\x0c\0\x63", FIELD);
    expect_part(read_body(&v1_thrift, body, size), "at most 64 levels of nesting");
    mem_free(body);
}

/* Empty values take a byte; so do the spans of zeros. */
static void memory_is_bounded_by_the_budget(void **state)
{
    enum { BODY = 1 << 20, BUDGET = 8 << 20 };
    uint8_t *body = mem_zalloc(BODY);
    char reason[CONVERSION_REASON_BYTES_MAX];
    struct converted_spans batch;
    struct budget budget;
    (void)state;
    memcpy(body, "\x0c\0\x0f\0\0", 5);
    budget_init(&budget, BUDGET);
    assert_int_equal(zipkin_read(&v1_thrift, slice_of(body, BODY), &budget, &batch, reason),
                     CONVERSION_OVERSIZED);
    assert_true(budget.high_water <= BUDGET);
    assert_int_equal(budget_used(&budget), 0);
    /* Others hold most of it. */
    assert_true(budget_try_take(&budget, BUDGET - 1000));
    assert_int_equal(zipkin_read(&v1_thrift, slice_of(body, 1000), &budget, &batch, reason),
                     CONVERSION_MALFORMED);
    memcpy(body, "\x0c\0\0\x03\0", 5);
    assert_int_equal(zipkin_read(&v1_thrift, slice_of(body, 1000), &budget, &batch, reason),
                     CONVERSION_BUSY);
    budget_return(&budget, BUDGET - 1000);
    budget_fini(&budget);
    mem_free(body);
}

/* Every allocation fails once. */
static void a_lack_of_memory_leaks_nothing(void **state)
{
    static const char body[] =
        "[{\"traceId\":\"1\",\"id\":\"2\",\"name\":\"\\n\",\"localEndpoint\":{\"serviceName\":"
        "\"s\\t\",\"ipv6\":\"0:0::1\"},\"tags\":{\"a\\n\":\"b\"},\"annotations\":[{\"timestamp\":"
        "1,\"value\":\"e|{\\\"k\\\":\\\"\\\\n\\\"}|0\"}]}]";
    char reason[CONVERSION_REASON_BYTES_MAX];
    struct converted_spans batch;
    enum conversion verdict = CONVERSION_BUSY;
    struct budget budget;
    unsigned failures = 0;
    (void)state;
    budget_init(&budget, UINT64_MAX);
    while (verdict != CONVERTED) {
        mem_refuse_nth(++failures);
        verdict = zipkin_read(&v2_json, slice_of(body, sizeof(body) - 1), &budget, &batch, reason);
        mem_refuse_nth(0);
        if (verdict != CONVERTED) {
            assert_int_equal(verdict, CONVERSION_BUSY);
            assert_int_equal(budget_used(&budget), 0);
        }
    }
    assert_true(failures > 5);
    buffer_unref(batch.request);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_of_v2_becomes_one_of_otlp),
        cmocka_unit_test(members_mean_what_they_mean_in_the_go_collector),
        cmocka_unit_test(strings_are_parsed_on_demand),
        cmocka_unit_test(spans_are_gathered_by_resource_and_scope),
        cmocka_unit_test(protobuf_is_read),
        cmocka_unit_test(v1_json_is_read),
        cmocka_unit_test(addresses_of_v1_are_the_remote_endpoint),
        cmocka_unit_test(thrift_is_read),
        cmocka_unit_test(broken_bodies_are_refused_with_the_place),
        cmocka_unit_test(thrift_is_skipped_to_a_bounded_depth),
        cmocka_unit_test(memory_is_bounded_by_the_budget),
        cmocka_unit_test(a_lack_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
