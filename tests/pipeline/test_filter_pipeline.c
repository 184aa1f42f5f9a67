/* SPDX-License-Identifier: Apache-2.0 */
/* The oldest keys of filter, include and exclude, from YAML to JSON: what they keep, what is
 * counted, and which mistakes are reported. What is kept is what the Go collector keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buffer.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "tests/support/harness.h"
#include "tests/support/record_case.h"
#include "tests/support/test_components.h"

enum { SECTION_MAX = 1024 };

#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"

struct row {
    const char *section;
    bool is_kept;
};

static void compare_rows(const struct row *rows, size_t count, const char *key,
                         enum signal_kind signal, const char *json)
{
    for (size_t i = 0; i < count; i++) {
        char section[SECTION_MAX];
        snprintf(section, sizeof(section), "{%s: {%s}}", key, rows[i].section);
        record_compare("filter", section, signal, json, rows[i].is_kept ? json : "");
    }
}

static void include_and_exclude_choose_spans(void **state)
{
    static const char json[] = "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" TEXT(
        "service.name",
        "shop") "]},\"scopeSpans\":[{\"scope\":{\"name\":\"lib\",\"version\":\"1\"},\"spans\":[{"
                "\"name\":\"pay\",\"kind\":2,\"attributes\":[" TEXT(
                    "k", "v") ",{\"key\":\"n\",\"value\":{\"intValue\":\"5\"}}],\"status\":{}}"
                              "]}]}]}";
    static const struct row rows[] = {
        {"include: {match_type: strict, services: [shop, x]}", true},
        {"include: {match_type: strict, services: [sho]}", false},
        {"include: {match_type: regexp, services: [sho]}", true},
        {"exclude: {match_type: regexp, services: [sho]}", false},
        {"include: {match_type: strict, span_names: [pay]}", true},
        {"include: {match_type: strict, span_names: [pay], span_kinds: [SPAN_KIND_CLIENT]}", false},
        {"exclude: {match_type: strict, span_names: [pay], span_kinds: [SPAN_KIND_CLIENT]}", true},
        {"exclude: {match_type: strict, span_names: [pay], span_kinds: [SPAN_KIND_SERVER]}", false},
        {"include: {match_type: strict, attributes: [{key: k, value: v}, {key: n}]}", true},
        {"include: {match_type: strict, attributes: [{key: n, value: 5}]}", true},
        {"include: {match_type: strict, attributes: [{key: n, value: '5'}]}", false},
        {"include: {match_type: regexp, attributes: [{key: n, value: '5'}]}", true},
        {"exclude: {match_type: strict, attributes: [{key: k, value: v}, {key: none}]}", true},
        {"include: {match_type: strict, resources: [{key: service.name, value: shop}]}", true},
        {"exclude: {match_type: strict, resources: [{key: service.name, value: shop}]}", false},
        {"include: {match_type: strict, libraries: [{name: lib, version: '1'}]}", true},
        {"include: {match_type: strict, libraries: [{name: lib, version: '2'}]}", false},
        {"exclude: {match_type: strict, libraries: [{name: lib}]}", false},
        {"include: {match_type: strict, services: [shop]}, "
         "exclude: {match_type: strict, span_names: [pay]}",
         false},
        {"include: {match_type: strict, services: [shop]}, "
         "exclude: {match_type: strict, span_names: [other]}",
         true},
    };
    (void)state;
    compare_rows(rows, sizeof(rows) / sizeof(rows[0]), "spans", TRACES, json);
    /* Conditions alone count. */
    record_compare("filter",
                   "{trace_conditions: ['span.name == \"a\"'], spans: {include: {match_type: "
                   "strict, services: [none]}}}",
                   TRACES, json, json);
}

static void include_and_exclude_choose_log_records(void **state)
{
    static const char json[] = "{\"resourceLogs\":[{\"resource\":{\"attributes\":[" TEXT(
        "host", "a") "]},\"scopeLogs\":[{\"scope\":{},\"logRecords\":[{\"severityNumber\":9,"
                     "\"severityText\":\"INFO\",\"body\":{\"intValue\":\"42\"},"
                     "\"attributes\":[" TEXT("k", "v") "]}]}]}]}";
    static const struct row rows[] = {
        {"include: {match_type: strict, bodies: ['42']}", true},
        {"include: {match_type: strict, bodies: ['4']}", false},
        {"include: {match_type: regexp, bodies: ['4']}", true},
        {"exclude: {match_type: strict, severity_texts: [INFO]}", false},
        {"include: {match_type: strict, resource_attributes: [{key: host, value: a}]}", true},
        {"exclude: {match_type: strict, resource_attributes: [{key: host, value: b}]}", true},
        {"exclude: {match_type: strict, record_attributes: [{key: k, value: v}]}", false},
        {"include: {severity_number: {min: info}}", true},
        {"include: {severity_number: {min: '9'}}", true},
        {"include: {severity_number: {min: INFO2}}", false},
        {"exclude: {severity_number: {min: warn, match_undefined: true}}", true},
        {"include: {severity_number: {match_undefined: true}}", true},
        /* Nothing is asked for. */
        {"include: {match_type: strict}, exclude: {}", true},
    };
    (void)state;
    compare_rows(rows, sizeof(rows) / sizeof(rows[0]), "logs", LOGS, json);
    static const char undefined[] = "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":"
                                    "{},\"logRecords\":[{\"body\":{"
                                    "\"stringValue\":\"x\"}}]}]}]}";
    record_compare("filter", "{logs: {include: {severity_number: {min: INFO}}}}", LOGS, undefined,
                   "");
    record_compare("filter",
                   "{logs: {include: {severity_number: {min: INFO, match_undefined: true}}}}", LOGS,
                   undefined, undefined);
}

#define METRICS_OF(metrics)                                                                        \
    "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" TEXT(                                  \
        "host", "a") "]},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[" metrics "]}]}]}"
#define EMPTY_SCOPE                                                                                \
    "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" TEXT(                                  \
        "host", "a") "]},"                                                                         \
                     "\"scopeMetrics\":[{\"scope\":{}}]}]}"
#define METRIC(name) "{\"name\":\"" name "\",\"gauge\":{\"dataPoints\":[{\"asInt\":\"1\"}]}}"

static void a_resource_or_a_name_excludes_metrics(void **state)
{
    static const char json[] = METRICS_OF(METRIC("m"));
    static const struct row rows[] = {
        {"include: {match_type: strict, metric_names: [m]}", true},
        {"include: {match_type: strict, metric_names: [n]}", false},
        {"exclude: {match_type: regexp, metric_names: [.]}", false},
        {"include: {match_type: strict, resource_attributes: [{key: host, value: a}]}", true},
        {"include: {match_type: strict, resource_attributes: [{key: host, value: b}]}", false},
        {"exclude: {match_type: strict, resource_attributes: [{key: host, value: a}]}", false},
        {"include: {match_type: strict, resource_attributes: [{key: host}], metric_names: [n]}",
         false},
        {"exclude: {match_type: strict, resource_attributes: [{key: host}], metric_names: [n]}",
         false},
        {"exclude: {match_type: strict, resource_attributes: [{key: x}], metric_names: [m]}",
         false},
        {"exclude: {match_type: strict, resource_attributes: [{key: x}], metric_names: [n]}", true},
        {"exclude: {match_type: expr, metric_names: [m]}", true},
        {"include: {}, regexp: {cacheenabled: true}", true},
    };
    (void)state;
    compare_rows(rows, sizeof(rows) / sizeof(rows[0]), "metrics", METRICS, json);
    record_compare("filter", "{metrics: {exclude: {match_type: strict, metric_names: [n]}}}",
                   METRICS, METRICS_OF(METRIC("n") "," METRIC("m") "," METRIC("n")),
                   METRICS_OF(METRIC("m")));
    /* A metric without points is no item, but stays. */
    record_compare("filter", "{metrics: {exclude: {match_type: strict, metric_names: [n]}}}",
                   METRICS, METRICS_OF(METRIC("n") ",{\"name\":\"m\",\"gauge\":{}}"),
                   METRICS_OF("{\"name\":\"m\",\"gauge\":{}}"));
    /* Resources alone leave empty scopes where they are; names do not. */
    record_compare("filter",
                   "{metrics: {include: {match_type: strict, resource_attributes: [{key: host}]}}}",
                   METRICS, EMPTY_SCOPE, EMPTY_SCOPE);
    record_compare("filter", "{metrics: {include: {match_type: strict, metric_names: [m]}}}",
                   METRICS, EMPTY_SCOPE, "");
}

#define POINT(attributes)   "{\"asInt\":\"1\",\"attributes\":[" attributes "]}"
#define GAUGE(name, points) "{\"name\":\"" name "\",\"gauge\":{\"dataPoints\":[" points "]}}"

static void expressions_choose_metrics_by_their_points(void **state)
{
    static const char json[] =
        METRICS_OF(GAUGE("m", POINT(TEXT("a", "x")) "," POINT(TEXT("a", "y") "," TEXT("b", "z"))));
    static const struct row rows[] = {
        {"include: {match_type: expr, expressions: ['Label(\"a\") == \"x\"']}", true},
        {"include: {match_type: expr, expressions: ['Label(\"a\") == \"y\"']}", true},
        /* The expression holds for a point as a whole. */
        {"include: {match_type: expr, expressions: ['Label(\"a\") == \"x\" and HasLabel(\"b\")']}",
         false},
        {"include: {match_type: expr, expressions: ['Label(\"a\") == \"y\" and HasLabel(\"b\")']}",
         true},
        {"include: {match_type: expr, expressions: ['false', 'MetricName == \"m\"']}", true},
        {"exclude: {match_type: expr, expressions: ['MetricType in [\"Gauge\"]']}", false},
        {"exclude: {match_type: expr, expressions: ['MetricType in [\"Sum\"]']}", true},
        {"exclude: {match_type: expr, expressions: ['lower(\"M\") == MetricName']}", false},
        {"include: {match_type: expr, expressions: ['HasLabel(\"a\")']}, "
         "exclude: {match_type: expr, expressions: ['not HasLabel(\"b\")']}",
         false},
        {"include: {match_type: expr, expressions: ['HasLabel(\"a\")'], metric_names: [n]}", true},
        {"include: {match_type: expr, expressions: ['true'], resource_attributes: [{key: x}]}",
         false},
        {"include: {match_type: strict, metric_names: [m], expressions: ['1 +']}", true},
    };
    (void)state;
    compare_rows(rows, sizeof(rows) / sizeof(rows[0]), "metrics", METRICS, json);
    /* Of a metric without points nothing is true. */
    static const char empty[] = METRICS_OF("{\"name\":\"m\",\"gauge\":{}}");
    record_compare("filter", "{metrics: {exclude: {match_type: expr, expressions: ['true']}}}",
                   METRICS, empty, empty);
    record_compare("filter", "{metrics: {include: {match_type: expr, expressions: ['true']}}}",
                   METRICS, empty, "");
}

/* A name that is read for each of many points: up to 32 MiB and 64 times the request. */
static void long_names_are_not_read_for_many_points(void **state)
{
    enum { NAME_BYTES = 1 << 20, FEW = 90, MANY = 100, JSON_BYTES = NAME_BYTES + MANY * 64 };
    char *json = malloc(JSON_BYTES);
    (void)state;
    for (int count = FEW; count <= MANY; count += MANY - FEW) {
        struct harness *h = record_harness(
            "filter",
            "{metrics: {exclude: {match_type: expr, expressions: ['HasLabel(\"a\") and "
            "len(MetricName) > 0']}}}",
            METRICS);
        int size =
            snprintf(json, JSON_BYTES,
                     "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"%0*d\","
                     "\"gauge\":{\"dataPoints\":[{}",
                     NAME_BYTES, 0);
        for (int i = 1; i < count; i++)
            size += snprintf(json + size, JSON_BYTES - (size_t)size, ",{}");
        snprintf(json + size, JSON_BYTES - (size_t)size, "]}}]}]}]}");
        const struct test_request *request = record_send(h, METRICS, json);
        harness_turn(h);
        free(record_output(h, METRICS));
        harness_turn(h);
        assert_true(request->is_resolved);
        assert_int_equal(request->outcome.verdict, count == FEW ? ACCEPTED : REFUSED);
        assert_int_equal(request->outcome.is_permanent, count == MANY);
        harness_destroy(h);
    }
    free(json);
}

static void what_is_dropped_is_counted(void **state)
{
    (void)state;
    struct harness *h = record_harness(
        "filter", "{metrics: {exclude: {match_type: strict, metric_names: [n]}}}", METRICS);
    record_send(h, METRICS, METRICS_OF(METRIC("n") "," METRIC("m") "," METRIC("n")));
    char *output = record_output(h, METRICS);
    char *metrics = harness_metrics(h);
    assert_non_null(strstr(metrics, "otelcol_processor_filter_datapoints_filtered"));
    assert_non_null(strstr(metrics, "} 2"));
    free(metrics);
    free(output);
    harness_destroy(h);
}

static void mistakes_are_refused_in_the_words_of_the_go_collector(void **state)
{
    static const struct {
        enum signal_kind signal;
        const char *section;
        const char *expected;
    } rows[] = {
        {TRACES, "{spans: {include: {match_type: strict}}}",
         "spans::include: at least one of \"attributes\", \"libraries\",  or \"resources\""},
        {TRACES, "{spans: {exclude: {match_type: bad, services: [a]}}}",
         "spans::exclude::match_type: error creating service name filters: unrecognized "
         "match_type: 'bad', valid types are: [regexp strict]"},
        {TRACES, "{spans: {include: {match_type: strict, log_bodies: [a]}}}",
         "spans::include::log_bodies: log_bodies should not be specified for trace spans"},
        {TRACES, "{traces: {span: ['true']}, spans: {include: {match_type: strict}}}",
         "spans::include: cannot use \"traces.resource\", \"traces.span\", \"traces.spanevent\" "
         "and the span settings \"spans.include\", \"spans.exclude\" at the same time"},
        {LOGS, "{logs: {include: {match_type: regexp, bodies: ['(']}}}",
         "logs::include::bodies::0: failed to build skip matcher: error creating log record body "
         "filters: "},
        {LOGS, "{logs: {exclude: {match_type: strict, record_attributes: [{value: 1}]}}}",
         "logs::exclude::record_attributes::0::key: failed to build skip matcher: error creating "
         "attribute filters: can't have empty key in the list of attributes"},
        {LOGS, "{logs: {exclude: {severity_number: {min: bad}}}}",
         "logs::exclude::severity_number::min: 'bad' is not a valid severity: not a valid "
         "severity"},
        {LOGS, "{logs: {log_record: ['true'], include: {}}}",
         "logs::include: cannot use \"logs.resource\", \"logs.log\" and the settings"},
        {LOGS, "{log_conditions: ['log.body == 1'], logs: {exclude: {}}}",
         "log_conditions: cannot be used together with logs::exclude"},
        {METRICS, "{metrics: {include: {match_type: x, metric_names: [a]}}}",
         "metrics::include::match_type: unrecognized match_type: 'x'"},
        {METRICS,
         "{metrics: {include: {match_type: regexp, resource_attributes: [{key: a, value: 1}]}}}",
         "metrics::include::resource_attributes::0::value: match_type=regexp for \"a\" only "
         "supports Str, but found Int"},
        {METRICS,
         "{metrics: {include: {match_type: expr, expressions: ['HasLabel(\"a\")', "
         "'attributes[\"a\"] == 1']}}}",
         "metrics::include::expressions::1: column 1: expected MetricName, MetricType, Label"},
        {METRICS, "{metrics: {exclude: {match_type: expr, expressions: ['MetricName']}}}",
         "metrics::exclude::expressions::0: column 1: expected a condition"},
        {METRICS,
         "{metrics: {include: {match_type: expr, expressions: ['true'], "
         "resource_attributes: [{key: a, value: b}]}}}",
         "metrics::include::match_type: unrecognized match_type: 'expr'"},
        {METRICS, "{metrics: {metric: ['true'], include: {}}}",
         "metrics::include: cannot use \"metrics.resource\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        record_refused("filter", rows[i].section, rows[i].signal, rows[i].expected);
}

/* A statement before it leaves the profile in several parts. */
static void a_file_that_was_edited_is_dropped_as_one_item(void **state)
{
    static const uint8_t recording[256 * 1024]; /* more than is copied into one part */
    (void)state;
    struct harness *h = harness_create(
        "processors: {transform: {profile_statements: ['set(profile.attributes[\"tag\"], "
        "\"x\")']}, "
        "filter: {profile_conditions: ['resource.attributes[\"none\"] == nil']}}\n"
        "exporters: {test: {}}\n"
        "service: {pipelines: {profiles: {receivers: [test], processors: [transform, filter], "
        "exporters: [test]}}}\n");
    const struct opaque_profile upload = {.format = slice_of_text(OPAQUE_PROFILE_JFR),
                                          .payload = slice_of(recording, sizeof(recording))};
    struct buffer *request = opaque_profile_write(&upload, NULL);
    assert_non_null(request);
    harness_offer_bytes(h, 0, PROFILES, buffer_slice(request), 1);
    struct harness_totals totals = harness_totals(h, PROFILES);
    assert_int_equal(totals.received, 1);
    assert_int_equal(totals.dropped, 1);
    assert_int_equal(totals.in_flight, 0);
    buffer_unref(request);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(include_and_exclude_choose_spans),
        cmocka_unit_test(include_and_exclude_choose_log_records),
        cmocka_unit_test(a_resource_or_a_name_excludes_metrics),
        cmocka_unit_test(expressions_choose_metrics_by_their_points),
        cmocka_unit_test(what_is_dropped_is_counted),
        cmocka_unit_test(long_names_are_not_read_for_many_points),
        cmocka_unit_test(mistakes_are_refused_in_the_words_of_the_go_collector),
        cmocka_unit_test(a_file_that_was_edited_is_dropped_as_one_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
