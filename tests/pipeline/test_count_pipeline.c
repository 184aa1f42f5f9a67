/* SPDX-License-Identifier: Apache-2.0 */
/* count between pipelines: what is counted, whose outcome a request has, large requests, and which
 * configurations are refused. */
#include "tests/support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/receipt.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"
#include "src/service/service_parts.h"

#define PLAIN "{sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}"
#define CONFIG(keys, signal)                                                                       \
    "connectors: {count: {" keys "}}\n"                                                            \
    "exporters: {test/a: " PLAIN "}\n"                                                             \
    "service: {pipelines: {" signal ": {receivers: [test], exporters: [count]}"                    \
    ", metrics/made: {receivers: [count], exporters: [test/a]}}}\n"

#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define INT(key, value)  "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"

/* Two Resources; the second has no spans. */
#define TRACES_OF(spans)                                                                           \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" TEXT(                                    \
        "r", "R") "]},\"scopeSpans\":[{"                                                           \
                  "\"scope\":{\"name\":"                                                           \
                  "\"s\",\"attributes\":"                                                          \
                  "[" TEXT("s", "S") "]},\"spans\":"                                               \
                                     "[" spans "]}]},{"                                            \
                                     "\"resource\":{"                                              \
                                     "\"attributes\""                                              \
                                     ":[" TEXT("r", "none") "]}"                                   \
                                                            "}]"                                   \
                                                            "}"
#define SPAN(name, start, end, attributes)                                                         \
    "{\"traceId\":\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"0102030405060708\","           \
    "\"name\":\"" name "\",\"startTimeUnixNano\":\"" start "\",\"endTimeUnixNano\":\"" end         \
    "\",\"attributes\":[" attributes "],\"events\":[{\"name\":\"e\",\"timeUnixNano\":\"4\"}]}"

#define MADE(resource, metrics)                                                                    \
    "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" resource                               \
    "]},\"scopeMetrics\":[{\"scope\":{\"name\":\"github.com/open-telemetry/"                       \
    "opentelemetry-collector-contrib/connector/countconnector\"},\"metrics\":[" metrics "]}]}]}"
#define METRIC(name, description, points)                                                          \
    "{\"name\":\"" name "\"," description "\"sum\":{\"dataPoints\":[" points                       \
    "],\"aggregationTemporality\":1,\"isMonotonic\":true}}"
#define ABOUT(text) "\"description\":\"" text "\","
#define POINT(attributes, start, end, value)                                                       \
    "{" attributes "\"startTimeUnixNano\":\"" start "\",\"timeUnixNano\":\"" end                   \
    "\",\"asInt\":\"" value "\"}"
#define WITH(attributes) "\"attributes\":[" attributes "],"
#define OF(a, r)         WITH(a "," TEXT("s", "S") "," TEXT("r", r))

static struct slice encoded_of(enum signal_kind signal, const char *json)
{
    char reason[JSON_REASON_BYTES_MAX];
    struct buffer *encoded;
    if (json_read(otlp_request(signal), slice_of_text(json), NULL, &encoded, reason) != JSON_READ)
        fail_msg("%s: %s", json, reason);
    uint8_t *room = mem_alloc(encoded->size + 1);
    memcpy(room, encoded->data, encoded->size);
    struct slice bytes = slice_of(room, encoded->size);
    buffer_unref(encoded);
    return bytes;
}

static struct test_request *send_json(struct harness *h, enum signal_kind signal, const char *json)
{
    struct otlp_figures figures;
    const char *failure;
    struct slice bytes = encoded_of(signal, json);
    assert_true(otlp_check(signal, bytes, &figures, &failure));
    struct test_request *request = harness_offer_bytes(h, 0, signal, bytes, figures.items);
    mem_free((void *)(uintptr_t)bytes.data);
    return request;
}

static struct test_exporter *holder(const struct harness *h)
{
    struct test_exporter *exporter = harness_exporter_on(h, "test/a", 0, METRICS);
    exporter->has_own_items = true;
    exporter->result = RESULT_HOLD;
    return exporter;
}

static void expect_held(struct test_exporter *exporter, const char *json)
{
    assert_int_equal(exporter->held_count, 1);
    struct buffer *found = json_write_batch(exporter->held[0].batch, NULL);
    struct slice bytes = encoded_of(METRICS, json);
    struct buffer *buffer = buffer_create(NULL, bytes.size);
    memcpy(buffer->data, bytes.data, bytes.size);
    buffer->size = bytes.size;
    struct batch *expected = batch_create(METRICS, 1);
    batch_append(expected, buffer, buffer_slice(buffer));
    struct buffer *wanted = json_write_batch(expected, NULL);
    if (!slice_equal(buffer_slice(found), buffer_slice(wanted)))
        fail_msg("found %.*s, expected %.*s", (int)found->size, (const char *)found->data,
                 (int)wanted->size, (const char *)wanted->data);
    buffer_unref(found);
    buffer_unref(wanted);
    buffer_unref(buffer);
    batch_unref(expected);
    mem_free((void *)(uintptr_t)bytes.data);
}

static void expect_counts(const char *config, enum signal_kind signal, const char *json,
                          const char *expected)
{
    struct harness *h = harness_create(config);
    struct test_exporter *a = holder(h);
    struct test_request *request = send_json(h, signal, json);
    if (expected != NULL) {
        expect_held(a, expected);
        test_exporter_release(a, RESULT_OK);
        harness_turn(h);
    }
    assert_int_equal(a->held_count, 0);
    assert_true(request->is_resolved);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

static void everything_is_counted_by_default(void **state)
{
    (void)state;
    expect_counts(CONFIG("", "traces"), TRACES,
                  TRACES_OF(SPAN("a", "5", "9", "") "," SPAN("b", "3", "7", "")),
                  MADE(TEXT("r", "R"),
                       METRIC("trace.span.count", ABOUT("The number of spans observed."),
                              POINT("", "3", "9", "2")) "," METRIC("trace.span.event.count",
                                                                   ABOUT("The number of span "
                                                                         "events observed."),
                                                                   POINT("", "4", "4", "2"))));
    expect_counts(CONFIG("logs: {}", "logs"), LOGS,
                  "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"logRecords\":["
                  "{\"timeUnixNano\":\"8\"},{\"timeUnixNano\":\"6\"}]}]}]}",
                  MADE("", METRIC("log.record.count", ABOUT("The number of log records observed."),
                                  POINT("", "6", "8", "2"))));
    expect_counts(
        CONFIG("", "metrics"), METRICS,
        "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"m\",\"gauge\":{"
        "\"dataPoints\":[{\"timeUnixNano\":\"8\",\"asInt\":\"1\"},{\"timeUnixNano\":\"6\"}]}}]}]}]"
        "}",
        /* Metrics have no time of their own. */
        MADE("", METRIC("metric.count", ABOUT("The number of metrics observed."),
                        POINT("", "1700000000000000000", "1700000000000000000",
                              "1")) "," METRIC("metric.datapoint.count",
                                               ABOUT("The number of data points observed."),
                                               POINT("", "6", "8", "2"))));
}

static void attributes_divide_the_counts(void **state)
{
    (void)state;
    /* Of the span, else of the scope, else of the resource, else the default; by value and type. */
    expect_counts(
        CONFIG("spans: {n: {attributes: [{key: a, default_value: 7}, {key: s}, {key: r}]}}, "
               "spanevents: {e: {attributes: [{key: missing}]}}",
               "traces"),
        TRACES,
        /* clang-format off */
        TRACES_OF(SPAN("a", "5", "9", TEXT("a", "1")) ","
                  SPAN("b", "5", "9", INT("a", "1")) ","
                  SPAN("c", "5", "9", "") ","
                  SPAN("d", "5", "9", TEXT("a", "1")) ","
                  SPAN("e", "5", "9", TEXT("r", "own") "," INT("a", "1"))),
        MADE(TEXT("r", "R"),
             METRIC("n", "",
                    POINT(OF(TEXT("a", "1"), "R"), "5", "9", "2") ","
                    POINT(OF(INT("a", "1"), "R"), "5", "9", "1") ","
                    POINT(OF(INT("a", "7"), "R"), "5", "9", "1") ","
                    POINT(OF(INT("a", "1"), "own"), "5", "9", "1"))));
    /* clang-format on */
    /* Each scope has its own. */
    expect_counts(
        CONFIG("logs: {n: {attributes: [{key: s}]}}", "logs"), LOGS,
        "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":{\"attributes\":[" TEXT(
            "s", "1") "]},\"logRecords\":[{\"timeUnixNano\":\"8\"}]},{\"scope\":{"
                      "\"attributes\":[" TEXT("s", "2") "]},\"logRecords\":[{},{}]}]}]}",
        MADE("", METRIC("n", "",
                        POINT(WITH(TEXT("s", "1")), "8", "8", "1") "," POINT(WITH(TEXT("s", "2")),
                                                                             "8", "8", "2"))));
    /* As in Go: a metric that names an attribute twice counts nothing. */
    expect_counts(CONFIG("spans: {n: {attributes: [{key: r}, {key: r}]}}, spanevents: {e: "
                         "{conditions: [\"false\"]}}",
                         "traces"),
                  TRACES, TRACES_OF(SPAN("a", "5", "9", "")), NULL);
}

static void conditions_choose(void **state)
{
    (void)state;
    expect_counts(CONFIG("spans: {n: {conditions: ['name == \"a\"', 'span.attributes[\"k\"] == 1']}"
                         "}, spanevents: {e: {conditions: ['span.name == \"c\"']}}",
                         "traces"),
                  TRACES,
                  TRACES_OF(SPAN("a", "5", "9", INT("k", "1")) "," SPAN(
                      "b", "5", "9", INT("k", "1")) "," SPAN("c", "1", "9", "")),
                  MADE(TEXT("r", "R"), METRIC("n", "", POINT("", "1", "9", "2")) "," METRIC(
                                           "e", "", POINT("", "4", "4", "1"))));
    /* One that fails refuses the request, which the client may send again. */
    struct harness *h = harness_create(
        CONFIG("spans: {n: {conditions: ['Int(attributes[\"k\"][\"no\"]) == 1']}}", "traces"));
    struct test_request *request =
        send_json(h, TRACES, TRACES_OF(SPAN("a", "5", "9", INT("k", "1"))));
    assert_true(request->is_resolved);
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_false(request->outcome.is_permanent);
    harness_destroy(h);
    /* So does a metric without data beside one that has some. */
    h = harness_create(CONFIG("", "metrics"));
    request = send_json(h, METRICS,
                        "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"m\"},"
                        "{\"name\":\"o\",\"gauge\":{\"dataPoints\":[{\"asInt\":\"1\"}]}}]}]}]}");
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_string_equal(request->outcome.message, "metric \"m\": invalid metric type: Empty");
    harness_destroy(h);
}

/* Attributes of profiles are in the dictionary: of equal keys the last counts. */
static void profiles_are_counted(void **state)
{
    static const char profiles[] = "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[" TEXT(
        "r", "R") "]},\"scopeProfiles\":[{\"profiles\":["
                  "{\"sampleType\":{\"typeStrindex\":1},\"timeUnixNano\":\"7\","
                  "\"samples\":[{\"values\":[\"5\"]},{\"values\":[\"6\"]}],"
                  "\"attributeIndices\":[1,2]},"
                  "{\"sampleType\":{\"typeStrindex\":2},\"timeUnixNano\":\"4\","
                  "\"samples\":[{\"values\":[\"5\"]}]}]}]}],"
                  "\"dictionary\":{\"mappingTable\":[{}],\"locationTable\":[{}],"
                  "\"functionTable\":[{}],\"linkTable\":[{}],\"stackTable\":[{}],"
                  "\"stringTable\":[\"\",\"cpu\",\"wall\",\"thread\"],"
                  "\"attributeTable\":[{\"value\":{}},"
                  "{\"keyStrindex\":3,\"value\":{\"stringValue\":\"main\"}},"
                  "{\"keyStrindex\":3,\"value\":{\"stringValue\":\"idle\"}}]}}";
    (void)state;
    expect_counts(
        CONFIG("", "profiles"), PROFILES, profiles,
        MADE(TEXT("r", "R"), METRIC("profile.count", ABOUT("The number of profiles observed."),
                                    POINT("", "4", "7", "2"))));
    expect_counts(
        CONFIG("profiles: {n: {conditions: ['profile.sample_type.type == \"cpu\"'], "
               "attributes: [{key: thread}]}}",
               "profiles"),
        PROFILES, profiles,
        MADE(TEXT("r", "R"), METRIC("n", "", POINT(WITH(TEXT("thread", "idle")), "4", "7", "1"))));
    expect_counts(
        CONFIG("profiles: {n: {attributes: [{key: thread, default_value: none}, "
               "{key: r}]}}",
               "profiles"),
        PROFILES, profiles,
        MADE(TEXT("r", "R"),
             METRIC("n", "",
                    POINT(WITH(TEXT("thread", "idle") "," TEXT("r", "R")), "4", "7", "1") "," POINT(
                        WITH(TEXT("thread", "none") "," TEXT("r", "R")), "4", "7", "1"))));
}

#define PROFILE(attributes)                                                                        \
    "{\"timeUnixNano\":\"4\",\"samples\":[{\"values\":[\"5\"]}],\"attributeIndices\":[" attributes \
    "]}"
#define PROFILES_OF(resource, profiles)                                                            \
    "{\"resource\":{\"attributes\":[" resource "]},\"scopeProfiles\":[{\"profiles\":[" profiles    \
    "]}]}"
#define REQUEST_OF(resources, values)                                                              \
    "{\"resourceProfiles\":[" resources                                                            \
    "],\"dictionary\":{\"mappingTable\":[{}],\"locationTable\":[{}],"                              \
    "\"functionTable\":[{}],\"linkTable\":[{}],\"stackTable\":[{}],"                               \
    "\"stringTable\":[\"\",\"tag\",\"other\"],\"attributeTable\":[{\"value\":{}}" values "]}}"
#define ENTRY(key, text)      ",{\"keyStrindex\":" key ",\"value\":{\"stringValue\":\"" text "\"}}"
#define COUNTED(value, count) POINT(WITH(TEXT("tag", value)), "4", "4", count)
#define RESOURCE_OF(name, points)                                                                  \
    "{\"resource\":{\"attributes\":[" name "]},\"scopeMetrics\":[{\"scope\":{\"name\":"            \
    "\"github.com/open-telemetry/opentelemetry-collector-contrib/connector/countconnector\"},"     \
    "\"metrics\":[" METRIC("n", "", points) "," METRIC("o", "", points) "]}]}"

#define PROFILES_1                                                                                 \
    PROFILE("1") "," PROFILE("") "," PROFILE("2") "," PROFILE("3,1,4") "," PROFILE("4")
#define COUNTS_1   COUNTED("a", "4") "," COUNTED("b", "1")
#define PROFILES_2 PROFILE("2") "," PROFILE("") "," PROFILE("3") "," PROFILE("1,2")
#define COUNTS_2   COUNTED("b", "2") "," COUNTED("a", "1")

/* Equal values are one series, whether profiles share an attribute, have two that are equal, or
 * have the value from their Resource; and another request has another dictionary. */
static void profiles_share_attributes(void **state)
{
    static const char first[] = REQUEST_OF(
        PROFILES_OF(TEXT("tag", "a"), PROFILES_1) "," PROFILES_OF(TEXT("r", "R"), PROFILES_2),
        ENTRY("1", "a") ENTRY("1", "b") ENTRY("1", "a") ENTRY("2", "c"));
    static const char first_counts[] = "{\"resourceMetrics\":[" RESOURCE_OF(
        TEXT("tag", "a"), COUNTS_1) "," RESOURCE_OF(TEXT("r", "R"), COUNTS_2) "]}";
    static const char second[] =
        REQUEST_OF(PROFILES_OF(TEXT("r", "R"), PROFILE("1") "," PROFILE("2")),
                   ENTRY("2", "a") ENTRY("1", "d"));
    static const char second_counts[] =
        "{\"resourceMetrics\":[" RESOURCE_OF(TEXT("r", "R"), COUNTED("d", "1")) "]}";
    static const struct {
        const char *request;
        const char *counts;
    } rows[] = {{first, first_counts}, {second, second_counts}};
    (void)state;
    struct harness *h = harness_create(CONFIG(
        "profiles: {n: {attributes: [{key: tag}]}, o: {attributes: [{key: tag}]}}", "profiles"));
    struct test_exporter *a = holder(h);
    for (size_t i = 0; i < 2; i++) {
        send_json(h, PROFILES, rows[i].request);
        expect_held(a, rows[i].counts);
        test_exporter_release(a, RESULT_OK);
        harness_turn(h);
    }
    harness_destroy(h);
}

static void a_request_has_the_outcome_of_its_counts(void **state)
{
    (void)state;
    struct harness *h = harness_create(CONFIG("", "traces"));
    struct test_exporter *a = holder(h);
    struct test_request *request = send_json(h, TRACES, TRACES_OF(SPAN("a", "5", "9", "")));
    assert_false(request->is_resolved);
    assert_int_equal(a->held[0].batch->items, 2);
    test_exporter_release(a, RESULT_OK);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_totals(h, TRACES).delivered, 1);
    assert_int_equal(harness_totals(h, METRICS).delivered, 2);
    request = send_json(h, TRACES, TRACES_OF(SPAN("a", "5", "9", "")));
    test_exporter_release(a, RESULT_PERMANENT);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, REFUSED);
    harness_destroy(h);
}

/* So many spans of a resource with a value of so many characters; for free(). */
static char *wide_resource(int width, unsigned spans)
{
    char *json = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&json, &size);
    assert_non_null(out);
    fprintf(out,
            "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"r\",\"value\":{"
            "\"stringValue\":\"%0*d\"}}]},\"scopeSpans\":[{\"spans\":[",
            width, 0);
    for (unsigned i = 0; i < spans; i++)
        fprintf(out, "%s{\"name\":\"a\"}", i > 0 ? "," : "");
    fputs("]}]}]}", out);
    fclose(out);
    return json;
}

/* A request with a Resource that is read for each span: the helper counts, from the start. */
static void a_request_that_takes_long_is_counted_as_others(void **state)
{
    (void)state;
    enum { WIDE = 200 * 1024, SPANS = 100 };
    struct harness *h = harness_create(
        CONFIG("spans: {n: {conditions: ['Len(Concat([resource.attributes[\"r\"], name], \"\")) == "
               "204801']}}",
               "traces"));
    struct test_exporter *a = holder(h);
    char *json = wide_resource(WIDE, SPANS);
    struct test_request *request = send_json(h, TRACES, json);
    free(json);
    struct buffer *found = json_write_batch(a->held[0].batch, NULL);
    static const char count[] = "\"asInt\":\"100\"";
    assert_non_null(memmem(found->data, found->size, count, sizeof(count) - 1));
    buffer_unref(found);
    test_exporter_release(a, RESULT_OK);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

/* The helper has gone on to the next one when the lane hears of the first. */
static void each_request_gets_the_error_of_its_own(void **state)
{
    enum { WIDE = HELPED_BYTES_MIN, TEXT_MAX = 512 };
    (void)state;
    struct harness *h = harness_create(CONFIG("", "metrics"));
    struct slice bytes[2];
    char texts[2][HARNESS_TEXT_MAX];
    char *json = mem_alloc(WIDE + TEXT_MAX);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(json, WIDE + TEXT_MAX,
                 "{\"resourceMetrics\":[{\"schemaUrl\":\"%0*d\",\"scopeMetrics\":[{\"metrics\":["
                 "{\"name\":\"m%u\"},"
                 "{\"name\":\"o\",\"gauge\":{\"dataPoints\":[{\"asInt\":\"1\"}]}}]}]}]}",
                 WIDE, 0, i);
        bytes[i] = encoded_of(METRICS, json);
    }
    harness_refuse_two(h, harness_connector(h, "count", METRICS, METRICS), bytes, texts);
    assert_string_equal(texts[0], "metric \"m0\": invalid metric type: Empty");
    assert_string_equal(texts[1], "metric \"m1\": invalid metric type: Empty");
    for (unsigned i = 0; i < 2; i++)
        mem_free((void *)(uintptr_t)bytes[i].data);
    mem_free(json);
    harness_destroy(h);
}

/* Attributes of the counts do not take more than 16 times the bytes of the request and 1 MiB. */
static void what_is_copied_is_bounded(void **state)
{
    (void)state;
    enum { SPANS = 400, WIDE = 20000, MIB_BYTES = 1 << 20 };
    struct harness *h = harness_create(
        CONFIG("spans: {n: {attributes: [{key: wide}, {key: own}]}}, spanevents: {e: {conditions: "
               "['false']}}",
               "traces"));
    struct test_exporter *a = holder(h);
    char *json = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&json, &size);
    assert_non_null(out);
    fputs("{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"wide\",\"value\":{"
          "\"stringValue\":\"",
          out);
    for (unsigned i = 0; i < WIDE; i++)
        fputc('w', out);
    fputs("\"}}]},\"scopeSpans\":[{\"spans\":[", out);
    for (unsigned i = 0; i < SPANS; i++)
        fprintf(out,
                "%s{\"name\":\"a\",\"attributes\":[{\"key\":\"own\",\"value\":{\"intValue\":\"%u\"}"
                "}]}",
                i > 0 ? "," : "", i);
    fputs("]}]}]}", out);
    fclose(out);
    struct slice bytes = encoded_of(TRACES, json);
    harness_offer_bytes(h, 0, TRACES, bytes, SPANS);
    uint64_t made = 0;
    uint64_t points = 0;
    for (size_t i = 0; i < a->held_count; i++) {
        made += a->held[i].batch->bytes;
        points += a->held[i].batch->items;
    }
    assert_true(points > 20);
    assert_true(points < SPANS);
    assert_true(made < 17 * bytes.size + MIB_BYTES + WIDE);
    mem_free((void *)(uintptr_t)bytes.data);
    free(json);
    test_exporter_release(a, RESULT_OK);
    harness_turn(h);
    harness_destroy(h);
}

/* Pieces that share a Resource get counts with a copy of it each. What has got its OK is charged as
 * well: counts wait for memory, and none is lost. */
static void counts_of_acknowledged_batches_are_charged(void **state)
{
    (void)state;
    enum { SPANS = 60, WIDE = 64 * 1024, ROUNDS_MAX = 100 };
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 0s, send_batch_size: 1, send_batch_max_size: 1}}\n"
        "connectors: {count: {spans: {n: }}}\n"
        "exporters: {test/a: " PLAIN "}\n"
        "service: {budget_mib: 2, pipelines: {traces: {receivers: [test], processors: [batch], "
        "exporters: [count]}, metrics/made: {receivers: [count], exporters: [test/a]}}}\n");
    const struct budget *budget = &h->service->budget;
    struct test_exporter *a = holder(h);
    char *json = wide_resource(WIDE, SPANS);
    assert_int_equal(send_json(h, TRACES, json)->outcome.verdict, ACCEPTED);
    free(json);
    for (unsigned i = 0; i < ROUNDS_MAX && harness_totals(h, TRACES).in_flight > 0; i++) {
        uint64_t held = 0;
        for (size_t j = 0; j < a->held_count; j++)
            held += a->held[j].batch->bytes;
        assert_true(held <= budget_used(budget));
        test_exporter_release(a, RESULT_OK);
        a->result = RESULT_HOLD;
        harness_advance(h, 1 * S);
    }
    assert_int_equal(harness_totals(h, TRACES).delivered, SPANS);
    assert_true(atomic_load(&budget->high_water) <= budget_limit(budget) / 100 * 115);
    harness_destroy(h);
}

static void wrong_configurations_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        const char *error;
    } rows[] = {
        {"spans: {\"\": {}}", "metric name missing"},
        {"spans: {n: {conditions: ['nam == 1']}}", "a span has no path \"nam\""},
        {"metrics: {n: {attributes: [{key: a}]}}", "metrics attributes not supported"},
        {"logs: {n: {attributes: [{default_value: 3}]}}", "attribute key missing"},
        {"logs: {n: {conditions: ['span.name == \"\"']}}", "span"},
        {"logs: [n]", "a map of maps"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char config[1024];
        snprintf(config, sizeof(config), CONFIG("%s", "logs"), rows[i].keys);
        if (!harness_is_wrong(config, rows[i].error))
            fail_msg("%s", rows[i].keys);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_counted_by_default),
        cmocka_unit_test(attributes_divide_the_counts),
        cmocka_unit_test(conditions_choose),
        cmocka_unit_test(profiles_are_counted),
        cmocka_unit_test(profiles_share_attributes),
        cmocka_unit_test(a_request_has_the_outcome_of_its_counts),
        cmocka_unit_test(a_request_that_takes_long_is_counted_as_others),
        cmocka_unit_test(each_request_gets_the_error_of_its_own),
        cmocka_unit_test(what_is_copied_is_bounded),
        cmocka_unit_test(counts_of_acknowledged_batches_are_charged),
        cmocka_unit_test(wrong_configurations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
