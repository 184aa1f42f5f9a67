/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP/JSON to protobuf: what is accepted and what it becomes, what is refused and its error. What
 * was read is shown as json_write writes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/otlp_limits.h"
#include "src/otlp/schema.h"

static char reason[JSON_REASON_BYTES_MAX];

/* The JSON is in an allocation of its own: AddressSanitizer sees every byte read beyond it. */
static enum json_result read_bytes(const struct otlp_message *message, struct slice text,
                                   struct buffer **ret_encoded)
{
    uint8_t *exact = mem_copy(text.data, text.size);
    enum json_result result =
        json_read(message, slice_of(exact, text.size), NULL, ret_encoded, reason);
    mem_free(exact);
    return result;
}

static void assert_becomes(const struct otlp_message *message, const char *text,
                           const char *expected)
{
    struct buffer *encoded;
    if (read_bytes(message, slice_of_text(text), &encoded) != JSON_READ)
        fail_msg("%s: %s", text, reason);
    struct buffer *shown = json_write(message, buffer_slice(encoded), NULL);
    if (!slice_equal_text(buffer_slice(shown), expected))
        fail_msg("%s\nbecame   %.*s\nexpected %s", text, (int)shown->size,
                 (const char *)shown->data, expected);
    buffer_unref(shown);
    buffer_unref(encoded);
}

static void assert_refused(const struct otlp_message *message, struct slice text, const char *part)
{
    struct buffer *encoded;
    if (read_bytes(message, text, &encoded) != JSON_MALFORMED)
        fail_msg("taken: %.*s", (int)text.size, (const char *)text.data);
    if (strstr(reason, part) == NULL)
        fail_msg("%.*s\nsays     %s\nexpected %s", (int)text.size, (const char *)text.data, reason,
                 part);
}

static const struct otlp_message *span(void)
{
    const struct otlp_message *resource = otlp_request(TRACES)->fields[1].message;
    return resource->fields[2].message->fields[2].message;
}

static const struct otlp_message *metric(void)
{
    const struct otlp_message *resource = otlp_request(METRICS)->fields[1].message;
    return resource->fields[2].message->fields[2].message;
}

static const struct otlp_message *profile(void)
{
    const struct otlp_message *resource = otlp_request(PROFILES)->fields[1].message;
    return resource->fields[2].message->fields[2].message;
}

struct row {
    const char *text;
    const char *expected;
};

static void check_rows(const struct otlp_message *message, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_becomes(message, rows[i].text, rows[i].expected);
}

static void check_refusals(const struct otlp_message *message, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_refused(message, slice_of_text(rows[i].text), rows[i].expected);
}

#define CHECK_ROWS(message, rows)     check_rows(message, rows, sizeof(rows) / sizeof(rows[0]))
#define CHECK_REFUSALS(message, rows) check_refusals(message, rows, sizeof(rows) / sizeof(rows[0]))

static void values_are_taken_in_every_form_that_go_takes(void **state)
{
    static const struct row rows[] = {
        {"{\"stringValue\":\"x\"}", "{\"stringValue\":\"x\"}"},
        {"{\"string_value\":\"x\"}", "{\"stringValue\":\"x\"}"},
        {"{\"stringValue\":\"\"}", "{\"stringValue\":\"\"}"},
        {"{\"stringValue\":null}", "{\"stringValue\":\"\"}"},
        {"{\"boolValue\":true}", "{\"boolValue\":true}"},
        {"{\"boolValue\":false}", "{\"boolValue\":false}"},
        {"{\"intValue\":5}", "{\"intValue\":\"5\"}"},
        {"{\"intValue\":\"5\"}", "{\"intValue\":\"5\"}"},
        {"{\"intValue\":\"007\"}", "{\"intValue\":\"7\"}"},
        {"{\"intValue\":\"+7\"}", "{\"intValue\":\"7\"}"},
        {"{\"intValue\":\"\\u0031\\u0032\"}", "{\"intValue\":\"12\"}"},
        {"{\"doubleValue\":\"1\\u002e5\"}", "{\"doubleValue\":1.5}"},
        {"{\"intValue\":-0}", "{\"intValue\":\"0\"}"},
        {"{\"intValue\":9223372036854775807}", "{\"intValue\":\"9223372036854775807\"}"},
        {"{\"intValue\":\"-9223372036854775808\"}", "{\"intValue\":\"-9223372036854775808\"}"},
        {"{\"doubleValue\":1.5}", "{\"doubleValue\":1.5}"},
        {"{\"doubleValue\":1e3}", "{\"doubleValue\":1000}"},
        {"{\"doubleValue\":-0.0}", "{\"doubleValue\":-0}"},
        {"{\"doubleValue\":0.1}", "{\"doubleValue\":0.1}"},
        {"{\"doubleValue\":123456789012345678901234567890}",
         "{\"doubleValue\":1.2345678901234568e+29}"},
        {"{\"doubleValue\":4.9e-324}", "{\"doubleValue\":5e-324}"},
        {"{\"doubleValue\":1E-400}", "{\"doubleValue\":0}"},
        {"{\"doubleValue\":0.30000000000000004}", "{\"doubleValue\":0.30000000000000004}"},
        {"{\"doubleValue\":\"1.5\"}", "{\"doubleValue\":1.5}"},
        {"{\"doubleValue\":\"NaN\"}", "{\"doubleValue\":\"NaN\"}"},
        {"{\"doubleValue\":\"nan\"}", "{\"doubleValue\":\"NaN\"}"},
        {"{\"doubleValue\":\"inf\"}", "{\"doubleValue\":\"Infinity\"}"},
        {"{\"doubleValue\":\"Infinity\"}", "{\"doubleValue\":\"Infinity\"}"},
        {"{\"doubleValue\":\"-Infinity\"}", "{\"doubleValue\":\"-Infinity\"}"},
        {"{\"bytesValue\":\"AQIDBA==\"}", "{\"bytesValue\":\"AQIDBA==\"}"},
        {"{\"bytesValue\":\"\\/\\/79\"}", "{\"bytesValue\":\"//79\"}"},
        {"{\"bytesValue\":\"\"}", "{\"bytesValue\":\"\"}"},
        {"{\"arrayValue\":{\"values\":[{},null,{\"intValue\":1}]}}",
         "{\"arrayValue\":{\"values\":[{},{},{\"intValue\":\"1\"}]}}"},
        {"{\"arrayValue\":null}", "{\"arrayValue\":{}}"},
        {"{\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":{}}]}}",
         "{\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":{}}]}}"},
        {"{\"stringValueStrindex\":3}", "{\"stringValueStrindex\":3}"},
        {" \t\r\n{ \"intValue\" \n:\t5 } ", "{\"intValue\":\"5\"}"},
        {"null", "{}"},
        {"{}", "{}"},
        {"{\"\\u0069ntValue\":5}", "{\"intValue\":\"5\"}"},
        {"{\"\":5,\"IntValue\":6,\"int_Value\":7}", "{}"},
    };
    (void)state;
    CHECK_ROWS(&otlp_any_value, rows);
}

static void strings_mean_what_their_escapes_say(void **state)
{
    static const struct row rows[] = {
        {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\\\"\\\\/\\u0008\\u000c\\n\\r\\t"},
        {"\\u0041\\u00e9\\u20ac", "A\xc3\xa9\xe2\x82\xac"},
        {"\\ud83d\\udd25", "\xf0\x9f\x94\xa5"},
        {"\\uD83D\\uDD25.", "\xf0\x9f\x94\xa5."},
        {"\\ud83d", "\xef\xbf\xbd"},
        {"\\ud83dx", "\xef\xbf\xbdx"},
        {"\\udd25\\ud83d", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\\ud83d\\n", "\xef\xbf\xbd\\n"},
        {"\\ud83d\\u0041", "\xef\xbf\xbd"
                           "A"},
        {"\\ud800\\ud83d\\udd25", "\xef\xbf\xbd\xf0\x9f\x94\xa5"},
        {"\\u0000", "\\u0000"},
        {"0123456789abcdef0123456789abcdef\\n0123456789abcdef",
         "0123456789abcdef0123456789abcdef\\n0123456789abcdef"},
        {"\xff", "\xef\xbf\xbd"}, /* passed on as it is; only writing makes UTF-8 of it */
        {"\xc3\xa9\xe2\x82", "\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd"},
        {"\x7f", "\x7f"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[256];
        char expected[256];
        snprintf(text, sizeof(text), "{\"stringValue\":\"%s\"}", rows[i].text);
        snprintf(expected, sizeof(expected), "{\"stringValue\":\"%s\"}", rows[i].expected);
        assert_becomes(&otlp_any_value, text, expected);
    }
}

static void spans_are_read(void **state)
{
    static const struct row rows[] = {
        {"{\"traceId\":\"0123456789ABCDEFabcdef9876543210\",\"span_id\":\"0000000000000001\"}",
         "{\"traceId\":\"0123456789abcdefabcdef9876543210\",\"spanId\":\"0000000000000001\","
         "\"status\":{}}"},
        {"{\"traceId\":\"\",\"parentSpanId\":\"\"}", "{\"status\":{}}"},
        {"{\"traceId\":\"0123456789abcdefabcdef9876543210\",\"traceId\":\"\"}", "{\"status\":{}}"},
        {"{\"kind\":3}", "{\"kind\":3,\"status\":{}}"},
        {"{\"kind\":\"SPAN_KIND_SERVER\"}", "{\"kind\":2,\"status\":{}}"},
        {"{\"kind\":\"SPAN\\u005FKIND_SERVER\"}", "{\"kind\":2,\"status\":{}}"},
        {"{\"kind\":-1}", "{\"kind\":-1,\"status\":{}}"},
        {"{\"kind\":77}", "{\"kind\":77,\"status\":{}}"},
        {"{\"kind\":3,\"kind\":0}", "{\"status\":{}}"},
        {"{\"name\":\"a\",\"name\":\"b\"}", "{\"name\":\"b\",\"status\":{}}"},
        {"{\"name\":\"a\",\"name\":null}", "{\"status\":{}}"},
        {"{\"startTimeUnixNano\":\"18446744073709551615\",\"end_time_unix_nano\":1}",
         "{\"startTimeUnixNano\":\"18446744073709551615\",\"endTimeUnixNano\":\"1\",\"status\":{}"
         "}"},
        {"{\"flags\":257,\"droppedAttributesCount\":\"4294967295\"}",
         "{\"droppedAttributesCount\":4294967295,\"status\":{},\"flags\":257}"},
        {"{\"status\":{\"code\":\"STATUS_CODE_ERROR\"},\"status\":{\"message\":\"m\"}}",
         "{\"status\":{\"message\":\"m\",\"code\":2}}"},
        {"{\"status\":null,\"attributes\":null,\"events\":[],\"links\":[null]}",
         "{\"links\":[{}],\"status\":{}}"},
        {"{\"attributes\":[{\"key\":\"a\"}],\"name\":\"n\",\"attributes\":[{\"key\":\"b\"}]}",
         "{\"name\":\"n\",\"attributes\":[{\"key\":\"a\",\"value\":{}},{\"key\":\"b\","
         "\"value\":{}}],\"status\":{}}"},
        {"{\"unknown\":{\"a\":[1,2,{\"b\":null}],\"c\":\"d\\u0041\"},\"more\":[[],{}],\"x\":1e5,"
         "\"name\":\"n\",\"y\":false}",
         "{\"name\":\"n\",\"status\":{}}"},
    };
    (void)state;
    CHECK_ROWS(span(), rows);
}

static void the_last_member_of_a_oneof_counts(void **state)
{
    static const struct row values[] = {
        {"{\"intValue\":1,\"stringValue\":\"x\"}", "{\"stringValue\":\"x\"}"},
        {"{\"stringValue\":\"x\",\"stringValue\":\"y\"}", "{\"stringValue\":\"y\"}"},
        {"{\"arrayValue\":{\"values\":[{}]},\"arrayValue\":{\"values\":[{\"intValue\":2}]}}",
         "{\"arrayValue\":{\"values\":[{\"intValue\":\"2\"}]}}"},
        {"{\"arrayValue\":{\"values\":[{}]},\"unknown\":{\"a\":1},\"boolValue\":false}",
         "{\"boolValue\":false}"},
        {"{\"boolValue\":true,\"arrayValue\":null}", "{\"arrayValue\":{}}"},
    };
    static const struct row metrics[] = {
        {"{\"sum\":{\"isMonotonic\":true},\"name\":\"n\",\"gauge\":{\"dataPoints\":[{}]}}",
         "{\"name\":\"n\",\"gauge\":{\"dataPoints\":[{}]}}"},
        {"{\"gauge\":{\"dataPoints\":[{}]},\"unit\":\"u\",\"gauge\":{}}",
         "{\"unit\":\"u\",\"gauge\":{}}"},
        {"{\"gauge\":{\"dataPoints\":[{\"asInt\":\"3\",\"flags\":1,\"asDouble\":0}]}}",
         "{\"gauge\":{\"dataPoints\":[{\"asDouble\":0,\"flags\":1}]}}"},
    };
    (void)state;
    CHECK_ROWS(&otlp_any_value, values);
    CHECK_ROWS(metric(), metrics);
}

static void metrics_are_read(void **state)
{
    static const struct row rows[] = {
        {"{\"histogram\":{\"aggregationTemporality\":\"AGGREGATION_TEMPORALITY_DELTA\","
         "\"dataPoints\":[{\"count\":\"3\",\"sum\":0,\"bucketCounts\":[\"1\",2],"
         "\"explicitBounds\":[0.5,\"inf\"],\"min\":-1.25}]}}",
         "{\"histogram\":{\"dataPoints\":[{\"count\":\"3\",\"sum\":0,\"bucketCounts\":[\"1\",\"2\"]"
         ",\"explicitBounds\":[0.5,\"Infinity\"],\"min\":-1.25}],\"aggregationTemporality\":1}}"},
        {"{\"exponentialHistogram\":{\"dataPoints\":[{\"scale\":-3,\"positive\":{\"offset\":"
         "-2147483648,\"bucketCounts\":[\"18446744073709551615\"]},\"negative\":null}]}}",
         "{\"exponentialHistogram\":{\"dataPoints\":[{\"scale\":-3,\"positive\":{\"offset\":"
         "-2147483648,\"bucketCounts\":[\"18446744073709551615\"]},\"negative\":{}}]}}"},
        {"{\"summary\":{\"dataPoints\":[{\"quantileValues\":[{\"quantile\":0.5,\"value\":2}]}]}}",
         "{\"summary\":{\"dataPoints\":[{\"quantileValues\":[{\"quantile\":0.5,\"value\":2}]}]}}"},
        {"{\"gauge\":{\"dataPoints\":[{\"asInt\":-1,\"exemplars\":[{\"asInt\":0,\"spanId\":"
         "\"00000000000000ff\"}]}]}}",
         "{\"gauge\":{\"dataPoints\":[{\"exemplars\":[{\"spanId\":\"00000000000000ff\",\"asInt\":"
         "\"0\"}],\"asInt\":\"-1\"}]}}"},
        {"{\"sum\":{\"dataPoints\":[{\"asDouble\":1}],\"bucketCounts\":[]}}",
         "{\"sum\":{\"dataPoints\":[{\"asDouble\":1}]}}"},
    };
    (void)state;
    CHECK_ROWS(metric(), rows);
}

static void profiles_are_read(void **state)
{
    static const struct row rows[] = {
        {"{\"profileId\":\"000102030405060708090A0b0c0d0e0f\"}",
         "{\"sampleType\":{},\"periodType\":{},\"profileId\":"
         "\"000102030405060708090a0b0c0d0e0f\"}"},
        {"{\"profileId\":\"AAECAwQFBgcICQoLDA0ODw==\",\"originalPayload\":\"AAEC\"}",
         "{\"sampleType\":{},\"periodType\":{},\"profileId\":\"000102030405060708090a0b0c0d0e0f\","
         "\"originalPayload\":\"AAEC\"}"},
        {"{\"samples\":[{\"values\":[\"-1\",2],\"attributeIndices\":[0,-1],"
         "\"timestampsUnixNano\":[\"5\"],\"linkIndex\":1,\"stackIndex\":\"2\"}]}",
         "{\"sampleType\":{},\"samples\":[{\"stackIndex\":2,\"attributeIndices\":[0,-1],"
         "\"linkIndex\":1,\"values\":[\"-1\",\"2\"],\"timestampsUnixNano\":[\"5\"]}],"
         "\"periodType\":{}}"},
    };
    static const struct row requests[] = {
        {"{\"dictionary\":{\"stringTable\":[\"\",null,\"a\"],\"linkTable\":[{},{\"traceId\":"
         "\"0123456789abcdefabcdef9876543210\",\"spanId\":\"0123456789abcdef\"}],\"stackTable\":"
         "[{},{\"locationIndices\":[1,2]}]}}",
         "{\"dictionary\":{\"linkTable\":[{},{\"traceId\":\"0123456789abcdefabcdef9876543210\","
         "\"spanId\":\"0123456789abcdef\"}],\"stringTable\":[\"\",\"\",\"a\"],\"stackTable\":[{},{"
         "\"locationIndices\":[1,2]}]}}"},
    };
    (void)state;
    CHECK_ROWS(profile(), rows);
    CHECK_ROWS(otlp_request(PROFILES), requests);
}

static void scopes_under_their_old_name_count_when_there_are_no_others(void **state)
{
    static const struct row rows[] = {
        {"{\"deprecatedScopeSpans\":[{\"schemaUrl\":\"old\"}]}",
         "{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"schemaUrl\":\"old\"}]}"},
        {"{\"deprecated_scope_spans\":[{\"schemaUrl\":\"old\"}],\"schemaUrl\":\"s\","
         "\"scopeSpans\":[{\"schemaUrl\":\"new\"}]}",
         "{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"schemaUrl\":\"new\"}],\"schemaUrl\":"
         "\"s\"}"},
        {"{\"scopeSpans\":[{\"schemaUrl\":\"new\"}],\"deprecatedScopeSpans\":[{\"schemaUrl\":"
         "\"old\"}],\"scopeSpans\":[{\"schemaUrl\":\"newer\"}]}",
         "{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"schemaUrl\":\"new\"},{\"scope\":{},"
         "\"schemaUrl\":\"newer\"}]}"},
        {"{\"scopeSpans\":[],\"schemaUrl\":\"s\",\"deprecatedScopeSpans\":[],"
         "\"deprecatedScopeSpans\":[{}]}",
         "{\"resource\":{},\"scopeSpans\":[{\"scope\":{}}],\"schemaUrl\":\"s\"}"},
        {"{\"deprecatedScopeSpans\":[{}],\"resource\":{\"droppedAttributesCount\":1},"
         "\"deprecatedScopeSpans\":[{\"spans\":[{}]}],\"scopeSpans\":[{}]}",
         "{\"resource\":{\"droppedAttributesCount\":1},\"scopeSpans\":[{\"scope\":{}}]}"},
    };
    (void)state;
    CHECK_ROWS(otlp_request(TRACES)->fields[1].message, rows);
}

static void responses_are_read_and_written(void **state)
{
    static const char *const rejected[SIGNAL_KINDS] = {
        [TRACES] = "rejectedSpans",
        [METRICS] = "rejectedDataPoints",
        [LOGS] = "rejectedLogRecords",
        [PROFILES] = "rejectedProfiles",
    };
    (void)state;
    for (unsigned signal = 0; signal < SIGNAL_KINDS; signal++) {
        char text[128];
        snprintf(text, sizeof(text), "{\"partialSuccess\":{\"%s\":\"3\",\"errorMessage\":\"m\"}}",
                 rejected[signal]);
        assert_becomes(otlp_response((enum signal_kind)signal), text, text);
        assert_becomes(otlp_response((enum signal_kind)signal), "{}", "{\"partialSuccess\":{}}");
    }
    assert_becomes(&otlp_rpc_status,
                   "{\"code\":3,\"message\":\"m\",\"details\":[{\"@type\":\"t\"}]}",
                   "{\"code\":3,\"message\":\"m\"}");
}

static void broken_json_is_refused_with_its_position(void **state)
{
    static const struct row rows[] = {
        {"", "JSON at byte 0: found the end of the text, expected a JSON object"},
        {"  ", "byte 2"},
        {"[]", "found [, expected a JSON object"},
        {"5", "byte 0: found 5,"},
        {"\"x\"", "expected a JSON object"},
        {"nul", "found nul"},
        {"\xef\xbb\xbf{}", "found the byte 0xef, expected a JSON object in UTF-8, without a byte"},
        {"\xff\xfe{", "found the byte 0xff"},
        {"\n\x18\n\x16", "found the byte 0x18"},
        {"{} {}", "byte 3: found {, expected nothing after the document"},
        {"{}x", "byte 2: found x"},
        {"nullnull", "byte 4: found null"},
        {"{", "found the end of the text, expected a quoted field name"},
        {"{\"name\"", "byte 7, in Span: found the end of the text, expected a colon"},
        {"{\"name\":", "in Span.name: found the end of the text, expected a string, or null"},
        {"{\"name\":\"x", "byte 10, in Span.name: found the end of the text, expected a valid str"},
        {"{\"name\":\"x\"", "byte 11, in Span.name: found the end of the text, expected a comma"},
        {"{\"name\":\"x\",", "expected a quoted field name"},
        {"{\"name\":\"x\",}", "found }, expected a quoted field name"},
        {"{\"name\":\"x\" \"kind\":1}", "byte 12, in Span.name: found \"kind\", expected a comma"},
        {"{name:\"x\"}", "found name, expected a quoted field name"},
        {"{\"name\":'x'}", "found 'x', expected a string"},
        {"{\"name\":\"a\nb\"}", "byte 10, in Span.name: found the byte 0x0a, expected a valid"},
        {"{\"name\":\"a\\x\"}", "found \\x\", expected a valid string"},
        {"{\"name\":\"a\\u12g4\"}", "found \\u12g4\", expected a valid string"},
        {"{\"name\":\"a\\", "found \\, expected a valid string"},
        {"{\"events\":[{},]}", "found ], expected an object, or null"},
        {"{\"events\":[{}", "expected a comma or ]"},
        {"{\"events\":[{}}", "found }, expected a comma or ]"},
        {"{\"x\":[1,]}", "found ], expected a JSON value"},
        {"{\"x\":tru}", "found tru, expected a JSON value"},
        {"{\"x\":01}", "found 1, expected a comma or }"},
        {"{\"x\":-}", "found }, expected a JSON value"},
        {"{\"x\":1.}", "expected a JSON value"},
        {"{\"x\":1e}", "expected a JSON value"},
        {"{\"x\":\"\x01\"}", "found the byte 0x01, expected a JSON value"},
    };
    (void)state;
    CHECK_REFUSALS(span(), rows);
}

static const struct row wrong_spans[] = {
    {"{\"name\":5}", "Span.name: found 5, expected a string, or null"},
    {"{\"name\":{}}", "Span.name: found {, expected a string"},
    {"{\"status\":[]}", "Span.status: found [, expected an object, or null"},
    {"{\"status\":\"x\"}", "Span.status: found \"x\", expected an object"},
    {"{\"events\":{}}", "Span.events: found {, expected a list, or null"},
    {"{\"events\":[5]}", "Span.events: found 5, expected an object, or null"},
    {"{\"traceId\":null}", "Span.traceId: found null, expected an id of 32 hexadecimal"},
    {"{\"traceId\":5}", "expected an id of 32"},
    {"{\"traceId\":\"0123456789abcdefabcdef987654321\"}", "byte 11, in Span.traceId: found \"0"},
    {"{\"traceId\":\"0123456789abcdefabcdef98765432100\"}", "expected an id of 32"},
    {"{\"traceId\":\"0123456789abcdefabcdef987654321g\"}", "expected an id of 32"},
    {"{\"spanId\":\"ASNFZ4mrze8=\"}", "found \"ASNFZ4mrze8=\", expected an id of 16 hexadecimal"},
    {"{\"kind\":\"3\"}", "a number, or a name from SPAN_KIND_UNSPECIFIED to SPAN_KIND_CONSUMER"},
    {"{\"kind\":\"SERVER\"}", "found \"SERVER\", expected a number, or a name"},
    {"{\"kind\":2.0}", "found 2.0, expected an integer of 32 bits"},
    {"{\"kind\":null}", "found null, expected an integer"},
    {"{\"kind\":2147483648}", "expected an integer of 32 bits"},
    {"{\"startTimeUnixNano\":1.0}", "found 1.0, expected an integer from 0 to 184467440737095"},
    {"{\"startTimeUnixNano\":1e3}", "found 1e3"},
    {"{\"startTimeUnixNano\":-1}", "found -1"},
    {"{\"startTimeUnixNano\":\"-1\"}", "found \"-1\""},
    {"{\"startTimeUnixNano\":\"+1\"}", "found \"+1\""},
    {"{\"startTimeUnixNano\":\" 1\"}", "expected an integer"},
    {"{\"startTimeUnixNano\":\"1 \"}", "expected an integer"},
    {"{\"startTimeUnixNano\":\"0x1\"}", "expected an integer"},
    {"{\"startTimeUnixNano\":\"\"}", "expected an integer"},
    {"{\"startTimeUnixNano\":\"18446744073709551616\"}", "expected an integer"},
    {"{\"startTimeUnixNano\":true}", "expected an integer"},
    {"{\"startTimeUnixNano\":null}", "expected an integer"},
    {"{\"startTimeUnixNano\":00}", "found 0, expected a comma"},
    {"{\"droppedEventsCount\":-1}", "from 0 to 4294967295"},
    {"{\"droppedEventsCount\":4294967296}", "from 0 to 4294967295"},
};

static const struct row wrong_values[] = {
    {"{\"boolValue\":\"true\"}", "found \"true\", expected true or false"},
    {"{\"boolValue\":1}", "found 1, expected true or false"},
    {"{\"boolValue\":null}", "found null, expected true or false"},
    {"{\"intValue\":9223372036854775808}", "expected an integer of 64 bits"},
    {"{\"intValue\":\"-9223372036854775809\"}", "expected an integer of 64 bits"},
    {"{\"intValue\":\"123.0\"}", "expected an integer of 64 bits"},
    {"{\"doubleValue\":1e400}", "found 1e400, expected a number that a double can hold"},
    {"{\"doubleValue\":\"x\"}", "expected a number that a double can hold"},
    {"{\"doubleValue\":\"\"}", "expected a number that a double can hold"},
    {"{\"doubleValue\":null}", "expected a number that a double can hold"},
    {"{\"doubleValue\":NaN}", "found NaN, expected a number"},
    {"{\"doubleValue\":.5}", "found .5, expected a number"},
    {"{\"bytesValue\":\"AQI\"}", "found \"AQI\", expected bytes as a string in base64"},
    {"{\"bytesValue\":\"A-_=\"}", "expected bytes as a string in base64"},
    {"{\"bytesValue\":null}", "found null, expected bytes"},
    {"{\"arrayValue\":[]}", "AnyValue.arrayValue: found [, expected an object"},
    {"{\"arrayValue\":{\"values\":[5]}}", "ArrayValue.values: found 5, expected an object"},
};

static const struct row wrong_profiles[] = {
    {"{\"profileId\":\"AAECAwQFBgcICQoLDA0O\"}", "of 16 bytes in base64"},
    {"{\"profileId\":\"\\n\"}", "of 16 bytes in base64"}, /* base64 ignores line ends */
    {"{\"profileId\":\"000102030405060708090a0b0c0d0e0g\"}", "expected an id"},
    {"{\"profileId\":\"000102030405060708090a0b0c0d0e0f00\"}", "expected an id"},
    {"{\"samples\":[{\"values\":[null]}]}", "Sample.values: found null, expected an integer"},
    {"{\"samples\":[{\"values\":5}]}", "Sample.values: found 5, expected a list, or null"},
};

static void values_of_another_kind_are_refused(void **state)
{
    (void)state;
    CHECK_REFUSALS(span(), wrong_spans);
    CHECK_REFUSALS(&otlp_any_value, wrong_values);
    CHECK_REFUSALS(profile(), wrong_profiles);
}

/* count times part, around the middle, and the same number of closings. */
static char *nest(const char *begin, const char *middle, const char *end, size_t count)
{
    size_t size = count * (strlen(begin) + strlen(end)) + strlen(middle) + 1;
    char *text = mem_alloc(size);
    char *at = text;
    for (size_t i = 0; i < count; i++)
        at = stpcpy(at, begin);
    at = stpcpy(at, middle);
    for (size_t i = 0; i < count; i++)
        at = stpcpy(at, end);
    assert_int_equal(at - text + 1, size);
    return text;
}

static void nesting_is_bounded(void **state)
{
    static const struct {
        const char *begin;
        const char *end;
        size_t count;
        const char *refusal; /* NULL: taken */
    } rows[] = {
        {"{\"x\":", "}", 200, NULL},
        {"{\"x\":", "}", JSON_DEPTH_MAX, NULL},
        {"{\"x\":", "}", JSON_DEPTH_MAX + 1, "expected at most 512 levels of nesting"},
        {"{\"x\":", "}", 100000, "expected at most 512 levels of nesting"},
        {"{\"x\":[", "]}", 100000, "expected at most 512 levels of nesting"},
        {"{\"arrayValue\":{\"values\":[", "]}}", 31, NULL},
        {"{\"arrayValue\":{\"values\":[", "]}}", 33,
         "expected at most 64 levels of nested messages"},
        {"{\"arrayValue\":{\"values\":[", "]}}", 100000, "at most 64 levels of nested messages"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *text = nest(rows[i].begin, strchr(rows[i].begin, '[') != NULL ? "" : "1", rows[i].end,
                          rows[i].count);
        if (rows[i].refusal != NULL)
            assert_refused(&otlp_any_value, slice_of_text(text), rows[i].refusal);
        struct buffer *encoded;
        if (rows[i].refusal == NULL) {
            if (read_bytes(&otlp_any_value, slice_of_text(text), &encoded) != JSON_READ)
                fail_msg("%s", reason);
            buffer_unref(encoded);
        }
        mem_free(text);
    }
}

static void lengths_of_every_size_are_right(void **state)
{
    static const size_t sizes[] = {0,     1,     100,   118,     119,     120,    121,   122,
                                   125,   126,   127,   128,     129,     130,    16370, 16380,
                                   16383, 16384, 16390, 2097140, 2097152, 2097160};
    (void)state;
    for (size_t i = 0; i < 2 * (sizeof(sizes) / sizeof(sizes[0])); i++) {
        size_t count = sizeof(sizes) / sizeof(sizes[0]);
        size_t size = sizes[i < count ? i : 2 * count - 1 - i]; /* up, and down again */
        char *name = nest("n", "", "", size);
        char *text = mem_alloc(size + 256);
        sprintf(text,
                "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":"
                "[{\"attributes\":[{\"key\":\"%s\",\"value\":{\"arrayValue\":{\"values\":["
                "{\"stringValue\":\"%s\"}]}}}],\"status\":{}}]}]}]}",
                "k", name);
        assert_becomes(otlp_request(TRACES), text, text);
        mem_free(text);
        mem_free(name);
    }
}

static void output_grows_no_further_than_stated(void **state)
{
    (void)state;
    char *ones = nest("1,", "1", "", 100000);
    char *text = mem_alloc(strlen(ones) + 64);
    sprintf(text, "{\"explicitBounds\":[%s]}", ones);
    const struct otlp_message *point = metric()->fields[9].message->fields[1].message;
    struct buffer *encoded;
    assert_int_equal(read_bytes(point, slice_of_text(text), &encoded), JSON_READ);
    assert_in_range(encoded->size, 8 * 100000, JSON_READ_RATIO_MAX * strlen(text));
    assert_int_equal(encoded->capacity, encoded->size);
    buffer_unref(encoded);
    mem_free(text);
    mem_free(ones);
}

static void budget_is_charged_and_may_refuse(void **state)
{
    static const char text[] = "{\"resourceSpans\":[{\"schemaUrl\":\"a schema whose name is long "
                               "enough that the first room is too small for it, which is so from "
                               "about 64 bytes and half of the text on\"}]}";
    struct budget budget;
    struct buffer *encoded;
    (void)state;
    budget_init(&budget, 1 << 20);
    assert_int_equal(
        json_read(otlp_request(TRACES), slice_of_text(text), &budget, &encoded, reason), JSON_READ);
    assert_int_equal(budget_used(&budget), encoded->size + sizeof(*encoded));
    buffer_unref(encoded);
    for (uint64_t n = 1;; n++) {
        mem_refuse_nth(n);
        enum json_result result =
            json_read(otlp_request(TRACES), slice_of_text(text), &budget, &encoded, reason);
        mem_refuse_nth(0);
        if (result == JSON_READ)
            break;
        assert_int_equal(result, JSON_NO_BUDGET);
        assert_int_equal(budget_used(&budget), 0);
        assert_in_range(n, 1, 10);
    }
    buffer_unref(encoded);
    budget_fini(&budget);
}

/* The budget, whose text is charged, has no room for the usual first room. */
static void what_never_fits_beside_its_text_is_too_large(void **state)
{
    enum { VALUE_BYTES = 100000 };
    static const struct {
        const char *head;
        enum json_result result;
    } cases[] = {
        {"{\"resourceSpans\":[{\"schemaUrl\":\"", JSON_TOO_LARGE},
        {"{\"resourceSpans\":[{\"unknown\":\"", JSON_READ},
    };
    char *text = mem_alloc(VALUE_BYTES + 64);
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct budget budget;
        struct buffer *encoded = NULL;
        sprintf(text, "%s%0*d\"}]}", cases[i].head, VALUE_BYTES, 0);
        budget_init(&budget, VALUE_BYTES * 5 / 4);
        budget_take(&budget, strlen(text));
        assert_int_equal(
            json_read(otlp_request(TRACES), slice_of_text(text), &budget, &encoded, reason),
            cases[i].result);
        buffer_unref(encoded);
        assert_int_equal(budget_used(&budget), strlen(text));
        budget_return(&budget, strlen(text));
        budget_fini(&budget);
    }
    mem_free(text);
}

static void check_names(const struct otlp_message *message, unsigned depth)
{
    for (unsigned i = 0; i <= OTLP_SHORT_FIELDS; i++) {
        const struct otlp_field *field =
            i < OTLP_SHORT_FIELDS ? &message->fields[i] : message->more;
        char camel[64] = "";
        if (field == NULL || field->kind == OTLP_NONE)
            continue;
        size_t used = 0;
        for (const char *at = field->name; *at != '\0'; at++)
            camel[used++] = *at != '_' ? *at : (char)(*++at - 'a' + 'A');
        assert_string_equal(field->json_name, camel);
        assert_int_equal(field->json_name_size, used);
        if (field->message != NULL && depth > 0)
            check_names(field->message, depth - 1);
    }
}

static void names_in_json_follow_from_those_in_protobuf(void **state)
{
    (void)state;
    for (unsigned signal = 0; signal < SIGNAL_KINDS; signal++) {
        check_names(otlp_request((enum signal_kind)signal), 8);
        check_names(otlp_response((enum signal_kind)signal), 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_taken_in_every_form_that_go_takes),
        cmocka_unit_test(strings_mean_what_their_escapes_say),
        cmocka_unit_test(spans_are_read),
        cmocka_unit_test(the_last_member_of_a_oneof_counts),
        cmocka_unit_test(metrics_are_read),
        cmocka_unit_test(profiles_are_read),
        cmocka_unit_test(scopes_under_their_old_name_count_when_there_are_no_others),
        cmocka_unit_test(responses_are_read_and_written),
        cmocka_unit_test(broken_json_is_refused_with_its_position),
        cmocka_unit_test(values_of_another_kind_are_refused),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(lengths_of_every_size_are_right),
        cmocka_unit_test(output_grows_no_further_than_stated),
        cmocka_unit_test(budget_is_charged_and_may_refuse),
        cmocka_unit_test(what_never_fits_beside_its_text_is_too_large),
        cmocka_unit_test(names_in_json_follow_from_those_in_protobuf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
