/* SPDX-License-Identifier: Apache-2.0 */
/* transform's functions that make one data point of several, and percentiles of histograms, from
 * YAML to JSON. The results are those of the Go collector, but for the order of points, which is
 * random there. */
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

enum { SECTION_MAX = 1024, JSON_MAX = 8192 };

#define METRICS_OF(metrics)                                                                        \
    "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[" metrics \
    "]}]}]}"
#define TEXT(key, value)   "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define NUMBER(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"

struct row {
    const char *statement;
    const char *given;
    const char *expected;
};

static void compare(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char section[SECTION_MAX];
        char given[JSON_MAX];
        char expected[JSON_MAX];
        snprintf(section, sizeof(section),
                 "{metric_statements: [{context: metric, statements: ['%s']}]}", rows[i].statement);
        snprintf(given, sizeof(given), METRICS_OF("%s"), rows[i].given);
        snprintf(expected, sizeof(expected), METRICS_OF("%s"), rows[i].expected);
        record_compare("transform", section, METRICS, given, expected);
    }
}

#define COMPARE(rows) compare(rows, sizeof(rows) / sizeof((rows)[0]))

/* Points of a gauge, or of a sum with its other fields. */
#define GAUGE(points) "{\"name\":\"a\",\"gauge\":{\"dataPoints\":[" points "]}}"
#define SUM(points, temporality)                                                                   \
    "{\"name\":\"a\",\"sum\":{\"dataPoints\":[" points "],\"aggregationTemporality\":" temporality \
    ",\"isMonotonic\":true}}"
#define INTEGER(start, value, attributes)                                                          \
    "{\"startTimeUnixNano\":\"" start "\",\"timeUnixNano\":\"7\",\"asInt\":\"" value               \
    "\",\"attributes\":[" attributes "]}"
#define REAL(value, attributes)                                                                    \
    "{\"timeUnixNano\":\"7\",\"asDouble\":" value ",\"attributes\":[" attributes "]}"
#define AT(time, value)    "{\"timeUnixNano\":\"" time "\",\"asInt\":\"" value "\"}"
#define MERGED_REAL(value) REAL(value, TEXT("k", "x"))
#define FOUR(function)                                                                             \
    "aggregate_on_attributes(\"" function "\", [\"k\"])",                                          \
        GAUGE(INTEGER("3", "9", TEXT("k", "x") "," TEXT("h", "1")) "," INTEGER(                    \
            "2", "4", TEXT("k", "x")) "," INTEGER("5", "-3", TEXT("h", "2") "," TEXT("k", "x")))
#define THREE(function)                                                                            \
    "aggregate_on_attributes(\"" function "\")",                                                   \
        GAUGE(REAL("2.5", TEXT("k", "x")) "," REAL("-1", TEXT("k", "x")) "," REAL("8",             \
                                                                                  TEXT("k", "x")))

static void numbers_of_equal_attributes_become_one(void **state)
{
    static const struct row rows[] = {
        {FOUR("sum"), GAUGE(INTEGER("2", "10", TEXT("k", "x")))},
        {FOUR("mean"), GAUGE(INTEGER("2", "3", TEXT("k", "x")))},
        {FOUR("min"), GAUGE(INTEGER("2", "-3", TEXT("k", "x")))},
        {FOUR("max"), GAUGE(INTEGER("2", "9", TEXT("k", "x")))},
        {FOUR("median"), GAUGE(INTEGER("2", "4", TEXT("k", "x")))},
        {FOUR("count"), GAUGE(INTEGER("2", "3", TEXT("k", "x")))},
        {THREE("sum"), GAUGE(MERGED_REAL("9.5"))},
        {THREE("mean"), GAUGE(MERGED_REAL("3.1666666666666665"))},
        {THREE("min"), GAUGE(MERGED_REAL("-1"))},
        {THREE("max"), GAUGE(MERGED_REAL("8"))},
        {THREE("median"), GAUGE(MERGED_REAL("2.5"))},
        {THREE("count"), GAUGE(MERGED_REAL("3"))},
        /* Two: the middle of both. */
        {"aggregate_on_attributes(\"median\")", GAUGE(AT("7", "2") "," AT("7", "5")),
         GAUGE(AT("7", "3"))},
        /* A point without others keeps its value, though it is counted. */
        {"aggregate_on_attributes(\"count\")", GAUGE(AT("7", "2")), GAUGE(AT("7", "2"))},
        /* Other times, other points. */
        {"aggregate_on_attributes(\"sum\", [])", GAUGE(AT("7", "2") "," AT("8", "5")),
         GAUGE(AT("7", "2") "," AT("8", "5"))},
        /* An integer and a double are the same attribute, as in JSON; text is another. */
        {"aggregate_on_attributes(\"sum\")",
         GAUGE(INTEGER("1", "2", NUMBER("k", "1")) "," INTEGER(
             "1", "3",
             "{\"key\":\"k\",\"value\":{\"doubleValue\":1}}") "," INTEGER("1", "4",
                                                                          TEXT("k", "1"))),
         GAUGE(INTEGER("1", "5", NUMBER("k", "1")) "," INTEGER("1", "4", TEXT("k", "1")))},
        /* Deltas that began at other times are not one. */
        {"aggregate_on_attributes(\"sum\", [])",
         SUM(INTEGER("1", "2", TEXT("k", "x")) "," INTEGER("2", "5", TEXT("k", "x")), "1"),
         SUM("{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"7\",\"asInt\":\"2\"},"
             "{\"startTimeUnixNano\":\"2\",\"timeUnixNano\":\"7\",\"asInt\":\"5\"}",
             "1")},
        {"aggregate_on_attributes(\"sum\", [])",
         SUM(INTEGER("1", "2", TEXT("k", "x")) "," INTEGER("2", "5", TEXT("k", "x")), "2"),
         SUM("{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"7\",\"asInt\":\"7\"}", "2")},
        /* Sums run over. */
        {"aggregate_on_attributes(\"sum\")", GAUGE(AT("7", "9223372036854775807") "," AT("7", "1")),
         GAUGE(AT("7", "-9223372036854775808"))},
    };
    (void)state;
    COMPARE(rows);
}

static void values_of_an_attribute_become_one(void **state)
{
    static const struct row rows[] = {
        {"aggregate_on_attribute_value(\"sum\", \"k\", [\"x\", \"y\"], \"new\")",
         GAUGE(INTEGER("1", "2", TEXT("k", "x")) "," INTEGER("1", "3", TEXT("k", "z")) "," INTEGER(
             "1", "4", TEXT("k", "y"))),
         GAUGE(INTEGER("1", "6", TEXT("k", "new")) "," INTEGER("1", "3", TEXT("k", "z")))},
        /* What is no text counts as "". */
        {"aggregate_on_attribute_value(\"sum\", \"k\", [\"\"], \"none\")",
         GAUGE(INTEGER("1", "2", NUMBER("k", "5") "," TEXT("l", "x"))),
         GAUGE(INTEGER("1", "2", TEXT("k", "none") "," TEXT("l", "x")))},
        /* A summary loses its points, as in the Go collector. */
        {"aggregate_on_attribute_value(\"sum\", \"k\", [\"\"], \"none\")",
         "{\"name\":\"a\",\"summary\":{\"dataPoints\":[{\"timeUnixNano\":\"7\",\"count\":\"3\"}]}}",
         "{\"name\":\"a\",\"summary\":{}}"},
    };
    (void)state;
    COMPARE(rows);
}

#define HISTOGRAM(points)                                                                          \
    "{\"name\":\"h\",\"histogram\":{\"dataPoints\":[" points "],\"aggregationTemporality\":2}}"
#define EXPONENTIAL(points)                                                                        \
    "{\"name\":\"e\",\"exponentialHistogram\":{\"dataPoints\":[" points                            \
    "],\"aggregationTemporality\":2}}"

#define FAR_APART                                                                                  \
    "{\"timeUnixNano\":\"7\",\"count\":\"2\",\"positive\":{},\"negative\":{\"bucketCounts\":["     \
    "\"2\"]}},{\"timeUnixNano\":\"7\",\"count\":\"1\",\"positive\":{},\"negative\":{\"offset\":"   \
    "2000000000,\"bucketCounts\":[\"1\"]}}"

#define TOO_MANY                                                                                   \
    "{\"timeUnixNano\":\"7\",\"count\":\"2\",\"positive\":{\"bucketCounts\":["                     \
    "\"18446744073709551615\"]},\"negative\":{}},{\"timeUnixNano\":\"7\",\"count\":\"1\","         \
    "\"positive\":{\"bucketCounts\":[\"1\"]},\"negative\":{}}"

static void histograms_add_their_buckets_up(void **state)
{
    static const struct row rows[] = {
        {"aggregate_on_attributes(\"sum\")",
         HISTOGRAM("{\"timeUnixNano\":\"7\",\"count\":\"3\",\"sum\":2.5,\"bucketCounts\":[\"1\","
                   "\"2\"],\"explicitBounds\":[1],\"min\":0.5,\"max\":4},"
                   "{\"timeUnixNano\":\"7\",\"count\":\"5\",\"sum\":3,\"bucketCounts\":[\"5\","
                   "\"0\"],\"explicitBounds\":[1],\"exemplars\":[{\"timeUnixNano\":\"6\"}],"
                   "\"min\":0.25,\"max\":0.75},"
                   /* Nothing counted: nothing of it is left. */
                   "{\"timeUnixNano\":\"7\",\"sum\":9,\"bucketCounts\":[\"0\",\"0\"],"
                   "\"explicitBounds\":[1],\"exemplars\":[{\"timeUnixNano\":\"5\"}],\"min\":0,"
                   "\"max\":99},"
                   "{\"timeUnixNano\":\"7\",\"count\":\"5\",\"bucketCounts\":[\"5\",\"0\"],"
                   "\"explicitBounds\":[2],\"min\":0,\"max\":1}"),
         HISTOGRAM("{\"timeUnixNano\":\"7\",\"count\":\"8\",\"sum\":5.5,\"bucketCounts\":[\"6\","
                   "\"2\"],\"explicitBounds\":[1],\"exemplars\":[{\"timeUnixNano\":\"6\"}],"
                   "\"min\":0.25,\"max\":4},"
                   "{\"timeUnixNano\":\"7\",\"count\":\"5\",\"bucketCounts\":[\"5\",\"0\"],"
                   "\"explicitBounds\":[2],\"min\":0,\"max\":1}")},
        /* It fails and is passed over: as many bounds, but not as many buckets. */
        {"aggregate_on_attributes(\"sum\")",
         HISTOGRAM("{\"timeUnixNano\":\"7\",\"count\":\"1\",\"bucketCounts\":[\"1\"]},"
                   "{\"timeUnixNano\":\"7\",\"count\":\"1\",\"bucketCounts\":[\"1\",\"0\"]}"),
         HISTOGRAM("{\"timeUnixNano\":\"7\",\"count\":\"1\",\"bucketCounts\":[\"1\"]},"
                   "{\"timeUnixNano\":\"7\",\"count\":\"1\",\"bucketCounts\":[\"1\",\"0\"]}")},
        {"aggregate_on_attributes(\"sum\")",
         EXPONENTIAL("{\"timeUnixNano\":\"7\",\"count\":\"3\",\"zeroCount\":\"1\",\"positive\":{"
                     "\"offset\":2,\"bucketCounts\":[\"1\",\"1\"]}},"
                     "{\"timeUnixNano\":\"7\",\"count\":\"6\",\"zeroCount\":\"2\",\"positive\":{"
                     "\"offset\":4,\"bucketCounts\":[\"3\",\"0\",\"1\"]}}"),
         EXPONENTIAL("{\"timeUnixNano\":\"7\",\"count\":\"9\",\"sum\":0,\"zeroCount\":\"3\","
                     "\"positive\":{\"offset\":2,\"bucketCounts\":[\"1\",\"1\",\"3\",\"0\","
                     "\"1\"]},\"negative\":{}}")},
        /* Lower buckets come in front; higher ones may lie too far away. */
        {"aggregate_on_attributes(\"sum\")",
         EXPONENTIAL("{\"timeUnixNano\":\"7\",\"count\":\"2\",\"negative\":{\"offset\":2,"
                     "\"bucketCounts\":[\"2\"]}},"
                     "{\"timeUnixNano\":\"7\",\"count\":\"1\",\"negative\":{\"offset\":1,"
                     "\"bucketCounts\":[\"1\"]}}"),
         EXPONENTIAL(
             "{\"timeUnixNano\":\"7\",\"count\":\"3\",\"sum\":0,"
             "\"positive\":{},\"negative\":{\"offset\":1,\"bucketCounts\":[\"1\",\"2\"]}}")},
        {"aggregate_on_attributes(\"sum\")", EXPONENTIAL(FAR_APART), EXPONENTIAL(FAR_APART)},
        /* What is empty in front is cut off, also before and between others. */
        {"aggregate_on_attributes(\"sum\")",
         EXPONENTIAL("{\"timeUnixNano\":\"7\",\"count\":\"1\",\"positive\":{\"offset\":2,"
                     "\"bucketCounts\":[\"0\",\"0\"]}},"
                     "{\"timeUnixNano\":\"7\",\"count\":\"2\",\"positive\":{\"offset\":9,"
                     "\"bucketCounts\":[\"0\",\"3\",\"0\",\"1\"]}}"),
         EXPONENTIAL("{\"timeUnixNano\":\"7\",\"count\":\"3\",\"sum\":0,\"positive\":{"
                     "\"offset\":2,\"bucketCounts\":[\"3\",\"0\",\"1\"]},\"negative\":{}}")},
        /* It fails and is passed over: the sum has more than 64 bits. */
        {"aggregate_on_attributes(\"sum\")", EXPONENTIAL(TOO_MANY), EXPONENTIAL(TOO_MANY)},
    };
    (void)state;
    COMPARE(rows);
}

/* What is behind the histogram. */
#define WITH_GAUGE(histogram, name, description, value)                                            \
    histogram ",{\"name\":\"" name "\",\"description\":\"" description                             \
              "\",\"gauge\":{\"dataPoints\":[{\"timeUnixNano\":\"7\",\"asDouble\":" value "}]}}"
#define SIDE "\"offset\":1,\"bucketCounts\":[\"2\",\"2\"]"
#define OF_SIDES(positive, negative)                                                               \
    EXPONENTIAL("{\"timeUnixNano\":\"7\",\"count\":\"4\",\"positive\":{" positive                  \
                "},\"negative\":{" negative "}}")
#define ZEROS                                                                                      \
    EXPONENTIAL("{\"timeUnixNano\":\"7\",\"count\":\"4\",\"zeroCount\":\"4\",\"positive\":{},"     \
                "\"negative\":{},\"zeroThreshold\":0.5}")
#define ONE_BUCKET(rest)                                                                           \
    HISTOGRAM("{\"timeUnixNano\":\"7\",\"count\":\"4\",\"bucketCounts\":[\"4\"]" rest "}")
#define COUNTED(count, counts, bounds, rest)                                                       \
    HISTOGRAM("{\"timeUnixNano\":\"7\",\"count\":\"" count "\",\"bucketCounts\":[" counts          \
              "],\"explicitBounds\":[" bounds "]" rest "}")

static void percentiles_are_interpolated(void **state)
{
    static const struct row rows[] = {
        {"extract_percentile_metric(50.0) where name == \"h\"",
         COUNTED("4", "\"1\",\"2\",\"1\"", "10,20", ""),
         WITH_GAUGE(COUNTED("4", "\"1\",\"2\",\"1\"", "10,20", ""), "h_p50", "p50", "15")},
        {"extract_percentile_metric(99.9, \".q\") where name == \"h\"",
         COUNTED("4", "\"1\",\"2\",\"1\"", "10,20", ",\"max\":30"),
         WITH_GAUGE(COUNTED("4", "\"1\",\"2\",\"1\"", "10,20", ",\"max\":30"), "h.q", "p99.9",
                    "30")},
        /* Without a maximum: the last bound; without a minimum, and below 0: the first. */
        {"extract_percentile_metric(99.9) where name == \"h\"",
         COUNTED("4", "\"1\",\"2\",\"1\"", "10,20", ""),
         WITH_GAUGE(COUNTED("4", "\"1\",\"2\",\"1\"", "10,20", ""), "h_p99.9", "p99.9", "20")},
        {"extract_percentile_metric(1.0) where name == \"h\"",
         COUNTED("4", "\"1\",\"2\",\"1\"", "-10,20", ""),
         WITH_GAUGE(COUNTED("4", "\"1\",\"2\",\"1\"", "-10,20", ""), "h_p1", "p1", "-10")},
        /* One bucket needs both ends. */
        {"extract_percentile_metric(50.0) where name == \"h\"", ONE_BUCKET(",\"min\":2,\"max\":4"),
         WITH_GAUGE(ONE_BUCKET(",\"min\":2,\"max\":4"), "h_p50", "p50", "3")},
        {"extract_percentile_metric(50.0) where name == \"h\"", ONE_BUCKET(""), ONE_BUCKET("")},
        /* They fail and are passed over: the buckets do not fit the bounds, or the count. */
        {"extract_percentile_metric(50.0)", COUNTED("4", "\"4\"", "1", ""),
         COUNTED("4", "\"4\"", "1", "")},
        {"extract_percentile_metric(50.0)", COUNTED("40", "\"4\",\"1\"", "1", ""),
         COUNTED("40", "\"4\",\"1\"", "1", "")},
        {"extract_percentile_metric(75.0) where name == \"e\"", OF_SIDES(SIDE, ""),
         WITH_GAUGE(OF_SIDES(SIDE, ""), "e_p75", "p75", "5.656854249492381")},
        {"extract_percentile_metric(25.0) where name == \"e\"", OF_SIDES("", SIDE),
         WITH_GAUGE(OF_SIDES("", SIDE), "e_p25", "p25", "-5.656854249492381")},
        {"extract_percentile_metric(50.0) where name == \"e\"", ZEROS,
         WITH_GAUGE(ZEROS, "e_p50", "p50", "0")},
    };
    (void)state;
    COMPARE(rows);
}

/* The harness adds the ledger up after each turn. */
static void merged_points_are_booked_as_dropped(void **state)
{
    (void)state;
    struct harness *h = record_harness("transform",
                                       "{metric_statements: [{context: metric, statements: "
                                       "['aggregate_on_attributes(\"sum\")']}]}",
                                       METRICS);
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, METRICS);
    const struct test_request *request =
        record_send(h, METRICS, METRICS_OF(GAUGE(AT("7", "2") "," AT("7", "5") "," AT("8", "1"))));
    assert_int_equal(exporter->held[0].batch->items, 2);
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_true(request->is_resolved);
    harness_destroy(h);
}

static void wrong_arguments_are_refused(void **state)
{
    static const char *const rows[][3] = {
        {"metric", "aggregate_on_attributes(\"avg\")",
         "valid options: sum, mean, min, max, median, count"},
        {"metric", "extract_percentile_metric(100.0)",
         "percentile must be greater than 0 and less than 100, got 100"},
        {"metric", "extract_percentile_metric(0.0)", "got 0"},
        {"datapoint", "extract_percentile_metric(50.0)", "extract_percentile_metric"},
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
        cmocka_unit_test(numbers_of_equal_attributes_become_one),
        cmocka_unit_test(values_of_an_attribute_become_one),
        cmocka_unit_test(histograms_add_their_buckets_up),
        cmocka_unit_test(percentiles_are_interpolated),
        cmocka_unit_test(merged_points_are_booked_as_dropped),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
