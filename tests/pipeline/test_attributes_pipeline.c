/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes processor, from YAML to JSON: which records its actions reach in each signal, what
 * they leave alone, and what is refused. The actions themselves: test_resource_edit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "tests/support/record_case.h"

#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define SPANS(resource, scope, spans)                                                              \
    "{\"resourceSpans\":[{\"resource\":" resource ",\"scopeSpans\":[{\"scope\":" scope             \
    ",\"spans\":[" spans "]}]}]}"
#define SPAN(name, kind, attributes)                                                               \
    "{\"name\":\"" name "\",\"kind\":" kind ",\"attributes\":[" attributes "],\"status\":{}}"
#define ADD "actions: [{key: new, value: x, action: insert}]"
#define NEW TEXT("new", "x")

static void actions_reach_the_records_of_each_signal(void **state)
{
    (void)state;
    record_compare("attributes", "{" ADD "}", TRACES,
                   SPANS("{\"attributes\":[" TEXT("r", "1") "]}", "{\"name\":\"s\"}",
                         SPAN("a", "2", TEXT("k", "v"))),
                   SPANS("{\"attributes\":[" TEXT("r", "1") "]}", "{\"name\":\"s\"}",
                         SPAN("a", "2", TEXT("k", "v") "," NEW)));
    record_compare(
        "attributes", "{" ADD "}", LOGS,
        "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":{},\"logRecords\":[{"
        "\"body\":{\"stringValue\":\"b\"}},{\"body\":{\"stringValue\":\"c\"},\"attributes\":[" TEXT(
            "new", "old") "]}]}]}]}",
        "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":{},\"logRecords\":[{"
        "\"body\":{\"stringValue\":\"b\"},\"attributes\":[" NEW
        "]},{\"body\":{\"stringValue\":\"c\"},\"attributes\":[" TEXT("new", "old") "]}]}]}]}");
    record_compare(
        "attributes", "{" ADD "}", METRICS,
        "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[{"
        "\"name\":\"g\",\"gauge\":{\"dataPoints\":[{\"asInt\":\"1\"},{\"attributes\":[" TEXT(
            "k", "v") "],\"asInt\":\"2\"}]}},{\"name\":\"s\",\"summary\":{\"dataPoints\":[{"
                      "\"count\":\"3\"}]}},{\"name\":\"h\",\"histogram\":{\"dataPoints\":[{"
                      "\"count\":\"4\"}],"
                      "\"aggregationTemporality\":2}},{\"name\":\"e\",\"exponentialHistogram\":{"
                      "\"dataPoints\":[{"
                      "\"count\":\"5\"}]}},{\"name\":\"t\",\"sum\":{\"dataPoints\":[{\"asDouble\":"
                      "1.5}]}}]}]}]}",
        "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[{"
        "\"name\":\"g\",\"gauge\":{\"dataPoints\":[{\"asInt\":\"1\",\"attributes\":[" NEW
        "]},{\"asInt\":\"2\",\"attributes\":[" TEXT(
            "k",
            "v") "," NEW "]}]}},{\"name\":\"s\",\"summary\":{\"dataPoints\":[{\"count\":\"3\","
                 "\"attributes\":[" NEW
                 "]}]}},{\"name\":\"h\",\"histogram\":{\"dataPoints\":[{\"count\":"
                 "\"4\",\"attributes\":[" NEW "]}],\"aggregationTemporality\":2}},{\"name\":\"e\","
                 "\"exponentialHistogram\":{\"dataPoints\":[{\"attributes\":[" NEW
                 "],\"count\":\"5\",\"positive\":{},\"negative\":{}}]}},{\"name\":\"t\",\"sum\":{"
                 "\"dataPoints\":[{\"asDouble\":1.5,\"attributes\":[" NEW "]}]}}]}]}]}");
}

/* As in Go's map: the last one moves into the gap. */
static void a_deleted_attribute_is_replaced_by_the_last_one(void **state)
{
    (void)state;
    record_compare(
        "attributes", "{actions: [{key: a, action: delete}]}", TRACES,
        SPANS("{}", "{}", SPAN("x", "1", TEXT("a", "1") "," TEXT("b", "2") "," TEXT("c", "3"))),
        SPANS("{}", "{}", SPAN("x", "1", TEXT("c", "3") "," TEXT("b", "2"))));
}

/* Of the spans "one" (server, k=1) and "two" (client, k=2) of service "svc", scope lib 1.0: does
 * the action reach the first, the second? */
static void include_and_exclude_choose_spans(void **state)
{
    static const struct {
        const char *match;
        bool reaches[2];
    } rows[] = {
        {"include: {match_type: strict, services: [svc]}", {true, true}},
        {"include: {match_type: strict, services: [sv]}", {false, false}},
        {"include: {match_type: regexp, services: [^sv]}", {true, true}},
        {"include: {match_type: strict, span_names: [one, three]}", {true, false}},
        {"include: {match_type: regexp, span_names: [o$, z]}", {false, true}},
        {"include: {match_type: strict, span_kinds: [SPAN_KIND_CLIENT]}", {false, true}},
        {"include: {match_type: strict, attributes: [{key: k, value: \"1\"}]}", {true, false}},
        {"include: {match_type: strict, attributes: [{key: k, value: 1}]}", {false, false}},
        {"include: {match_type: regexp, attributes: [{key: k, value: \"[2-3]\"}]}", {false, true}},
        {"include: {attributes: [{key: k}]}", {true, true}},
        {"include: {attributes: [{key: k}, {key: none}]}", {false, false}},
        {"include: {match_type: strict, resources: [{key: service.name, value: svc}]}",
         {true, true}},
        {"include: {match_type: strict, libraries: [{name: lib}]}", {true, true}},
        {"include: {match_type: strict, libraries: [{name: lib, version: \"2\"}]}", {false, false}},
        {"include: {match_type: regexp, libraries: [{name: lib, version: \"^1\"}, {name: i}]}",
         {true, true}},
        {"exclude: {match_type: strict, span_names: [one]}", {false, true}},
        {"exclude: {match_type: strict, span_names: [one], libraries: [{name: i}]}", {true, true}},
        {"exclude: {match_type: strict, span_names: [one], services: [i]}", {true, true}},
        {"include: {match_type: strict, services: [svc]}, exclude: {match_type: regexp, "
         "span_names: [^t]}",
         {true, false}},
        {"include: {match_type: strict, span_names: [one], span_kinds: [SPAN_KIND_CLIENT]}",
         {false, false}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char section[1024];
        char expected[2048];
        snprintf(section, sizeof(section), "{" ADD ", %s}", rows[i].match);
        snprintf(
            expected, sizeof(expected),
            SPANS("{\"attributes\":[" TEXT("service.name", "svc") "]}",
                  "{\"name\":\"lib\",\"version\":\"1.0\"}",
                  SPAN("one", "2", TEXT("k", "1") "%s") "," SPAN("two", "3", TEXT("k", "2") "%s")),
            rows[i].reaches[0] ? "," NEW : "", rows[i].reaches[1] ? "," NEW : "");
        record_compare("attributes", section, TRACES,
                       SPANS("{\"attributes\":[" TEXT("service.name", "svc") "]}",
                             "{\"name\":\"lib\",\"version\":\"1.0\"}",
                             SPAN("one", "2", TEXT("k", "1")) "," SPAN("two", "3", TEXT("k", "2"))),
                       expected);
    }
}

static void include_and_exclude_choose_log_records(void **state)
{
    static const struct {
        const char *match;
        bool is_reached;
    } rows[] = {
        {"include: {match_type: strict, log_bodies: [\"{\\\"a\\\":1}\"]}", true},
        {"include: {match_type: regexp, log_bodies: [b]}", false},
        {"include: {match_type: strict, log_severity_texts: [WARN]}", true},
        {"include: {match_type: strict, log_severity_texts: [warn]}", false},
        {"include: {log_severity_number: {min: 13}}", true},
        {"include: {log_severity_number: {min: 14}}", false},
        {"include: {log_severity_number: {min: 14, match_undefined: true}}", false},
        {"exclude: {log_severity_number: {min: 13}}", false},
    };
    (void)state;
#define LOG(attributes)                                                                            \
    "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":{},\"logRecords\":[{"           \
    "\"severityNumber\":13,\"severityText\":\"WARN\",\"body\":{\"kvlistValue\":{\"values\":[{"     \
    "\"key\":\"a\",\"value\":{\"intValue\":\"1\"}}]}}" attributes "}]}]}]}"
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char section[1024];
        snprintf(section, sizeof(section), "{" ADD ", %s}", rows[i].match);
        record_compare("attributes", section, LOGS, LOG(""),
                       rows[i].is_reached ? LOG(",\"attributes\":[" NEW "]") : LOG(""));
    }
}

static void include_and_exclude_choose_metrics_by_name_alone(void **state)
{
    static const struct {
        const char *match;
        bool is_reached;
    } rows[] = {
        {"include: {match_type: strict, metric_names: [m]}", true},
        {"include: {match_type: strict, metric_names: [n]}", false},
        {"exclude: {match_type: regexp, metric_names: [.]}", false},
        {"include: {match_type: strict, resources: [{key: none, value: x}]}", true},
        {"exclude: {match_type: strict, resources: [{key: none, value: x}]}", true},
        {"exclude: {match_type: expr, metric_names: [m]}", true},
    };
    (void)state;
#define POINT(attributes)                                                                          \
    "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[{"        \
    "\"name\":\"m\",\"gauge\":{\"dataPoints\":[{\"asInt\":\"1\"" attributes "}]}}]}]}]}"
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char section[1024];
        snprintf(section, sizeof(section), "{" ADD ", %s}", rows[i].match);
        record_compare("attributes", section, METRICS, POINT(""),
                       rows[i].is_reached ? POINT(",\"attributes\":[" NEW "]") : POINT(""));
    }
}

static void mistakes_are_refused_in_the_words_of_the_go_collector(void **state)
{
    static const struct {
        enum signal_kind signal;
        const char *section;
        const char *expected;
    } rows[] = {
        {TRACES, "{}", "missing required field \"actions\""},
        {TRACES, "{actions: [{key: a, action: bad}]}", "due to unsupported action \"bad\""},
        {TRACES, "{" ADD ", include: {}}", "at least one of \"attributes\", \"libraries\",  or"},
        {TRACES, "{" ADD ", include: {services: [a]}}",
         "include::match_type: error creating service name filters: unrecognized match_type: '', "
         "valid types are: [regexp strict]"},
        {TRACES, "{" ADD ", include: {match_type: regexp, span_names: [a, (]}}",
         "include::span_names::1: error creating span name filters: "},
        {TRACES, "{" ADD ", exclude: {match_type: strict, span_kinds: [SERVER]}}",
         "exclude::span_kinds::0: span_kinds string must match one of the standard span kinds"},
        {TRACES, "{" ADD ", exclude: {match_type: strict, log_bodies: [x]}}",
         "exclude::log_bodies: log_bodies should not be specified for trace spans"},
        {TRACES, "{" ADD ", exclude: {match_type: strict, attributes: [{value: x}]}}",
         "exclude::attributes::0::key: error creating attribute filters: can't have empty key"},
        {TRACES, "{" ADD ", exclude: {match_type: regexp, attributes: [{key: a, value: 5}]}}",
         "exclude::attributes::0::value: error creating attribute filters: match_type=regexp for "
         "\"a\" only supports Str, but found Int"},
        {TRACES, "{" ADD ", include: {match_type: regexp, libraries: [{name: (}]}}",
         "include::libraries::0::name: error creating library name filters: "},
        {LOGS, "{" ADD ", include: {match_type: strict, services: [a]}}",
         "include::services: services, span_names, span_kinds and metric_names are not valid for "
         "log records"},
        {LOGS, "{" ADD ", include: {match_type: strict}}", "\"log_severity_number\" field must be"},
        {METRICS, "{" ADD ", include: {match_type: strict, attributes: [{key: a}]}}",
         "include::attributes: \"span_names\", \"span_kinds\""},
        {METRICS, "{" ADD ", include: {match_type: strict}}",
         "at least one of \"metric_names\" or \"resources\""},
        {METRICS,
         "{" ADD ", include: {match_type: regexp, metric_names: [a], regexp: {cacheenabled: true, "
         "cachemaxnumentries: -1}}}",
         "must provide a positive size"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        record_refused("attributes", rows[i].section, rows[i].signal, rows[i].expected);
}

/* Of a long request of which one span changes, all other bytes are those that arrived. */
static void only_what_changes_is_new(void **state)
{
    enum { SPANS_COUNT = 200 };
    char *json = NULL;
    size_t size = 0;
    (void)state;
    FILE *out = open_memstream(&json, &size);
    fprintf(out, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[");
    for (unsigned i = 0; i < SPANS_COUNT; i++)
        fprintf(out, "%s{\"name\":\"%s\",\"attributes\":[" TEXT("k", "v%u") "]}", i > 0 ? "," : "",
                i == SPANS_COUNT / 2 ? "this" : "other", i);
    fprintf(out, "]}]}]}");
    fclose(out);
    struct harness *h = record_harness(
        "attributes", "{" ADD ", include: {match_type: strict, span_names: [this]}}", TRACES);
    struct test_exporter *exporter = harness_exporter(h, "test");
    struct batch *batch = record_batch(TRACES, json, false);
    struct test_request request = {.is_resolved = false};
    test_receiver_offer(harness_receiver(h, "test", 0), batch, &request);
    harness_turn(h);
    const struct batch *edited = exporter->held[0].batch;
    uint64_t shared = 0;
    for (size_t i = 0; i < edited->parts_count; i++)
        shared += edited->parts[i].owner == batch->parts[0].owner ? edited->parts[i].bytes.size : 0;
    assert_true(edited->bytes > batch->bytes);
    assert_true(shared > batch->bytes * 9 / 10);
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    batch_unref(batch);
    harness_destroy(h);
    free(json);
}

/* The lane's helper edits it. */
static void a_large_request_is_edited_as_a_small_one(void **state)
{
    char *json = NULL;
    size_t size = 0;
    size_t spans = 0;
    (void)state;
    FILE *out = open_memstream(&json, &size);
    fprintf(out, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}");
    for (; size < 3 * HELPED_BYTES_MIN; spans++) {
        fprintf(out, ",{\"name\":\"%01000u\"}", 0);
        fflush(out);
    }
    fprintf(out, "]}]}]}");
    fclose(out);
    struct harness *h = record_harness("attributes", "{" ADD "}", TRACES);
    const struct test_request *request = record_send(h, TRACES, json);
    const struct test_exporter *exporter = harness_exporter(h, "test");
    assert_int_equal(exporter->held_count, 1);
    assert_int_equal(exporter->held[0].batch->items, spans + 1);
    char *found = record_output(h, TRACES);
    size_t new = 0;
    for (const char *at = found; (at = strstr(at, NEW)) != NULL; at++)
        new ++;
    assert_int_equal(new, spans + 1);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    free(found);
    free(json);
    harness_destroy(h);
}

/* Later stages and back-ends rely on the order of points. */
static void a_small_request_of_metrics_does_not_overtake_a_large_one(void **state)
{
    enum { TEXT_MAX = 256 };
    static const int names[] = {HELPED_BYTES_MIN, 1};
    static const char point[] = "{\"asInt\":\"1\"}";
    char *json = mem_alloc(HELPED_BYTES_MIN + TEXT_MAX);
    (void)state;
    struct harness *h = record_harness("attributes", "{" ADD "}", METRICS);
    for (size_t i = 0; i < 2; i++) {
        snprintf(json, HELPED_BYTES_MIN + TEXT_MAX,
                 "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"%0*d\","
                 "\"gauge\":{\"dataPoints\":[%s%s%s]}}]}]}]}",
                 names[i], 0, point, i == 0 ? "," : "", i == 0 ? point : "");
        struct batch *batch = record_batch(METRICS, json, false);
        harness_put_bytes(h, 0, METRICS, batch->parts[0].bytes, batch->items);
        batch_unref(batch);
    }
    harness_turn_helped(h, 0);
    const struct test_exporter *exporter = harness_exporter_on(h, "test", 0, METRICS);
    assert_int_equal(exporter->attempts_count, 2);
    assert_int_equal(exporter->attempts[0].items, 2);
    assert_int_equal(exporter->attempts[1].items, 1);
    free(record_output(h, METRICS));
    mem_free(json);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_reach_the_records_of_each_signal),
        cmocka_unit_test(a_deleted_attribute_is_replaced_by_the_last_one),
        cmocka_unit_test(include_and_exclude_choose_spans),
        cmocka_unit_test(include_and_exclude_choose_log_records),
        cmocka_unit_test(include_and_exclude_choose_metrics_by_name_alone),
        cmocka_unit_test(mistakes_are_refused_in_the_words_of_the_go_collector),
        cmocka_unit_test(only_what_changes_is_new),
        cmocka_unit_test(a_large_request_is_edited_as_a_small_one),
        cmocka_unit_test(a_small_request_of_metrics_does_not_overtake_a_large_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
