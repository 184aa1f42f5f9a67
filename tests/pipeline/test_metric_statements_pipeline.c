/* SPDX-License-Identifier: Apache-2.0 */
/* transform's functions that make metrics of metrics, from YAML to JSON; what is new is received
 * where it is made. The results are those of the Go collector. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/core/batch.h"
#include "tests/support/harness.h"
#include "tests/support/record_case.h"
#include "tests/support/test_components.h"

enum { SECTION_MAX = 1024, JSON_MAX = 4096 };

#define METRICS_OF(metrics)                                                                        \
    "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[" metrics \
    "]}]}]}"
#define SUM(name, value)                                                                           \
    "{\"name\":\"" name "\",\"unit\":\"s\",\"sum\":{\"dataPoints\":[{\"timeUnixNano\":\"7\","      \
    "\"asInt\":\"" value "\"}],\"aggregationTemporality\":2,\"isMonotonic\":true}}"
#define HISTOGRAM                                                                                  \
    "{\"name\":\"h\",\"unit\":\"s\",\"histogram\":{\"dataPoints\":[{\"timeUnixNano\":\"7\","       \
    "\"count\":\"6\",\"sum\":2.5,\"bucketCounts\":[\"1\",\"2\",\"3\"],\"explicitBounds\":[1,2]}]," \
    "\"aggregationTemporality\":1}}"
#define SUMMARY                                                                                    \
    "{\"name\":\"y\",\"summary\":{\"dataPoints\":[{\"timeUnixNano\":\"7\",\"count\":\"3\","        \
    "\"sum\":4.5,\"quantileValues\":[{\"quantile\":0.5,\"value\":2}]}]}}"

#define TWO_POINTS(name)                                                                           \
    "{\"name\":\"" name                                                                            \
    "\",\"summary\":{\"dataPoints\":[{\"timeUnixNano\":\"7\",\"count\":\"3\"},{"                   \
    "\"timeUnixNano\":\"8\",\"count\":\"4\"}]}}"
#define TWO_COUNTS(name)                                                                           \
    "{\"name\":\"" name "\",\"sum\":{\"dataPoints\":[{\"timeUnixNano\":\"7\",\"asInt\":\"3\"},{"   \
    "\"timeUnixNano\":\"8\",\"asInt\":\"4\"}],\"aggregationTemporality\":1,\"isMonotonic\":true}}"

static void functions_make_the_metrics_of_the_go_collector(void **state)
{
    static const struct {
        const char *context;
        const char *statements;
        const char *given;
        const char *expected;
    } rows[] = {
        {"metric", "convert_sum_to_gauge()", SUM("a", "5"),
         "{\"name\":\"a\",\"unit\":\"s\",\"gauge\":{\"dataPoints\":[{\"timeUnixNano\":\"7\","
         "\"asInt\":\"5\"}]}}"},
        {"metric", "convert_sum_to_gauge()', 'convert_gauge_to_sum(\"cumulative\", true)",
         SUM("a", "5"), SUM("a", "5")},
        {"metric", "convert_sum_to_gauge() where name == \"b\"", SUM("a", "5"), SUM("a", "5")},
        {"metric", "extract_sum_metric(true) where name == \"h\"", HISTOGRAM,
         HISTOGRAM
         ",{\"name\":\"h_sum\",\"unit\":\"s\",\"sum\":{\"dataPoints\":[{\"timeUnixNano\":\"7\","
         "\"asDouble\":2.5}],\"aggregationTemporality\":1,\"isMonotonic\":true}}"},
        {"metric", "extract_count_metric(false, \".n\") where name == \"h\"", HISTOGRAM,
         HISTOGRAM
         ",{\"name\":\"h.n\",\"unit\":\"1\",\"sum\":{\"dataPoints\":[{\"timeUnixNano\":\"7\","
         "\"asInt\":\"6\"}],\"aggregationTemporality\":1}}"},
        /* It fails, is passed over, and what was done before stays. */
        {"metric", "extract_count_metric(false)", SUM("a", "5"), SUM("a", "5")},
        /* The statements run on what they append, too. */
        {"metric",
         "set(unit, \"s\")', 'copy_metric(name = \"b\") where name == \"a\"', "
         "'copy_metric(name = \"c\", unit = \"ms\") where name == \"b\"",
         SUM("a", "5"), SUM("a", "5") "," SUM("b", "5") "," SUM("c", "5")},
        {"metric", "scale_metric(2.0, \"s\")", SUM("a", "5"), SUM("a", "10")},
        {"metric", "set(name, \"z\")', 'scale_metric(2.0)', 'set(name, \"a\")", SUM("a", "5"),
         SUM("a", "10")},
        {"metric", "convert_summary_quantile_val_to_gauge(\"q\")", SUMMARY,
         SUMMARY
         ",{\"name\":\"y.quantiles\",\"gauge\":{\"dataPoints\":[{\"timeUnixNano\":\"7\","
         "\"asDouble\":2,\"attributes\":[{\"key\":\"q\",\"value\":{\"doubleValue\":0.5}}]}]}}"},
        {"metric", "convert_exponential_histogram_to_histogram(\"upper\", [0.0, 1.5, 9.0])",
         "{\"name\":\"e\",\"exponentialHistogram\":{\"dataPoints\":[{\"timeUnixNano\":\"7\","
         "\"count\":\"9\",\"zeroCount\":\"2\",\"positive\":{\"offset\":1,\"bucketCounts\":[\"3\","
         "\"4\"]}}],\"aggregationTemporality\":1}}",
         "{\"name\":\"e\",\"histogram\":{\"dataPoints\":[{\"timeUnixNano\":\"7\",\"count\":\"9\","
         "\"sum\":0,\"bucketCounts\":[\"2\",\"7\",\"0\"],\"explicitBounds\":[0,1.5,9],\"min\":0,"
         "\"max\":0}],\"aggregationTemporality\":1}}"},
        {"metric", "convert_exponential_histogram_to_histogram(\"upper\", [0.0, 1.5, 9.0])",
         "{\"name\":\"e\",\"exponentialHistogram\":{\"dataPoints\":[{\"timeUnixNano\":\"7\","
         "\"count\":\"3\",\"scale\":-2147483648,\"positive\":{\"offset\":1,\"bucketCounts\":["
         "\"3\"]}}],\"aggregationTemporality\":1}}",
         "{\"name\":\"e\",\"histogram\":{\"dataPoints\":[{\"timeUnixNano\":\"7\",\"count\":\"3\","
         "\"sum\":0,\"bucketCounts\":[\"0\",\"0\",\"3\"],\"explicitBounds\":[0,1.5,9],\"min\":0,"
         "\"max\":0}],\"aggregationTemporality\":1}}"},
        {"datapoint", "convert_summary_count_val_to_sum(\"delta\", true)", SUMMARY,
         SUMMARY
         ",{\"name\":\"y_count\",\"sum\":{\"dataPoints\":[{\"timeUnixNano\":\"7\",\"asInt\":"
         "\"3\"}],\"aggregationTemporality\":1,\"isMonotonic\":true}}"},
        /* Once for each point, each time as the metric is then. */
        {"datapoint",
         "convert_summary_count_val_to_sum(\"delta\", true)', 'set(metric.name, \"z\") where "
         "metric.name == \"y\"",
         TWO_POINTS("y"), TWO_POINTS("z") "," TWO_COUNTS("y_count") "," TWO_COUNTS("z_count")},
        {"datapoint", "convert_summary_count_val_to_sum(\"delta\", true)", TWO_POINTS("y"),
         TWO_POINTS("y") "," TWO_COUNTS("y_count") "," TWO_COUNTS("y_count")},
        {"datapoint", "convert_summary_sum_val_to_sum(\"cumulative\", false, \"_s\")", SUMMARY,
         SUMMARY ",{\"name\":\"y_s\",\"sum\":{\"dataPoints\":[{\"timeUnixNano\":\"7\",\"asDouble\":"
                 "4.5}],\"aggregationTemporality\":2}}"},
        {"datapoint", "merge_histogram_buckets(1)", HISTOGRAM,
         "{\"name\":\"h\",\"unit\":\"s\",\"histogram\":{\"dataPoints\":[{"
         "\"timeUnixNano\":\"7\",\"count\":\"6\",\"sum\":2.5,\"bucketCounts\":[\"3\","
         "\"3\"],\"explicitBounds\":[2]}],\"aggregationTemporality\":1}}"},
        {"datapoint", "merge_histogram_buckets(1, \"limit_buckets\")", HISTOGRAM,
         "{\"name\":\"h\",\"unit\":\"s\",\"histogram\":{\"dataPoints\":[{\"timeUnixNano\":\"7\","
         "\"count\":\"6\",\"sum\":2.5,\"bucketCounts\":[\"6\"]}],\"aggregationTemporality\":1}}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char section[SECTION_MAX];
        char given[JSON_MAX];
        char expected[JSON_MAX];
        snprintf(section, sizeof(section),
                 "{metric_statements: [{context: %s, statements: ['%s']}]}", rows[i].context,
                 rows[i].statements);
        snprintf(given, sizeof(given), METRICS_OF("%s"), rows[i].given);
        snprintf(expected, sizeof(expected), METRICS_OF("%s"), rows[i].expected);
        record_compare("transform", section, METRICS, given, expected);
    }
}

/* Before and after other scopes and metrics. */
static void what_is_appended_stays_in_its_scope(void **state)
{
    static const char given[] =
        "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{\"name\":\"1\"},"
        "\"metrics\":[" SUM("a", "1") "," SUM("b", "2") "]},{\"scope\":{\"name\":\"2\"},"
                                                        "\"metrics\":[" SUM(
                                                            "b", "3") "],\"schemaUrl\":\"u\"}]}]}";
    static const char expected[] =
        "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{\"name\":\"1\"},"
        "\"metrics\":[" SUM("a", "1") "," SUM("d", "2") "," SUM(
            "c", "1") "]},{\"scope\":{"
                      "\"name\":\"2\"},\"metrics\":[" SUM("d", "3") "],\"schemaUrl\":\"u\"}]}]}";
    (void)state;
    record_compare("transform",
                   "{metric_statements: [{context: metric, statements: ['copy_metric(name = "
                   "\"c\") where name == \"a\"', 'set(name, \"d\") where name == \"b\"']}]}",
                   METRICS, given, expected);
}

/* The harness adds the ledger up after each turn. */
static void what_is_made_is_received(void **state)
{
    static const enum test_result results[] = {RESULT_OK, RESULT_PERMANENT};
    (void)state;
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        struct harness *h =
            record_harness("transform",
                           "{metric_statements: [{context: metric, statements: ['copy_metric(name "
                           "= \"c\") where name != \"c\"']}]}",
                           METRICS);
        struct test_exporter *exporter = harness_exporter_on(h, "test", 0, METRICS);
        const struct test_request *request =
            record_send(h, METRICS, METRICS_OF(SUM("a", "1") "," SUM("b", "1")));
        assert_int_equal(exporter->held[0].batch->items, 4);
        test_exporter_release(exporter, results[i]);
        harness_turn(h);
        assert_true(request->is_resolved);
        harness_destroy(h);
    }
}

/* Copies of copies end where they are more than 16 times the request. */
static void copies_of_copies_have_an_end(void **state)
{
    (void)state;
    struct harness *h = record_harness(
        "transform", "{metric_statements: [{context: metric, statements: ['copy_metric()']}]}",
        METRICS);
    record_send(h, METRICS, METRICS_OF(SUM("a", "1")));
    char *output = record_output(h, METRICS);
    assert_true(strlen(output) > 64 * 1024);
    assert_true(strlen(output) < 1024 * 1024);
    free(output);
    harness_destroy(h);
}

static void wrong_arguments_are_refused(void **state)
{
    static const char *const rows[][3] = {
        {"metric", "convert_gauge_to_sum(\"x\", true)", "unknown aggregation temporality: x"},
        {"datapoint", "convert_summary_sum_val_to_sum(\"\", true)",
         "unknown aggregation temporality: "},
        {"metric", "convert_exponential_histogram_to_histogram(\"x\", [1.0])",
         "invalid conversion function: x, must be one of [upper, midpoint, random, uniform]"},
        {"metric", "convert_exponential_histogram_to_histogram(\"upper\", [])",
         "explicit bounds cannot be empty: []"},
        {"datapoint", "convert_sum_to_gauge()", "convert_sum_to_gauge"},
        {"datapoint", "merge_histogram_buckets(1, \"x\")", "unsupported method \"x\""},
        {"datapoint", "merge_histogram_buckets(0, \"limit_buckets\")",
         "target_value must be a positive integer when method is \"limit_buckets\", got 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char section[SECTION_MAX];
        snprintf(section, sizeof(section),
                 "{metric_statements: [{context: %s, statements: ['%s']}]}", rows[i][0],
                 rows[i][1]);
        record_refused("transform", section, METRICS, rows[i][2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_make_the_metrics_of_the_go_collector),
        cmocka_unit_test(what_is_appended_stays_in_its_scope),
        cmocka_unit_test(what_is_made_is_received),
        cmocka_unit_test(copies_of_copies_have_an_end),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
