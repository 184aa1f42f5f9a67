/* SPDX-License-Identifier: Apache-2.0 */
/* The cumulativetodelta processor, from YAML to JSON: what becomes of the points of one stream, one
 * request after another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/record_case.h"

enum { STEPS_MAX = 5 };
#define METRIC(name, data)                                                                         \
    "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[{"        \
    "\"name\":\"" name "\"," data "}]}]}]}"
#define SUM(points, temporality)                                                                   \
    METRIC("m", "\"sum\":{\"dataPoints\":[" points "],\"aggregationTemporality\":" temporality     \
                ",\"isMonotonic\":true}")
#define INT(start, time, value)                                                                    \
    "{\"startTimeUnixNano\":\"" start "\",\"timeUnixNano\":\"" time "\",\"asInt\":\"" value "\"}"
#define HISTOGRAM(points, temporality)                                                             \
    METRIC("m", "\"histogram\":{\"dataPoints\":[" points                                           \
                "],\"aggregationTemporality\":" temporality "}")
/* After the fake clock's start. */
#define LATER "1800000000000000000"

/* Requests in turn, and what comes out; "": nothing. */
struct story {
    const char *section;
    const char *steps[STEPS_MAX];
    const char *results[STEPS_MAX];
};

static void play(const struct story *story)
{
    struct harness *h = record_harness("cumulativetodelta", story->section, METRICS);
    for (size_t i = 0; i < STEPS_MAX && story->steps[i] != NULL; i++) {
        record_send(h, METRICS, story->steps[i]);
        char *found = record_output(h, METRICS);
        if (strcmp(found, story->results[i]) != 0) {
            print_error("step %zu of %s: expected\n%s\n", i, story->section, story->results[i]);
            print_error("found\n%s\n", found);
            fail();
        }
        free(found);
    }
    harness_destroy(h);
}

static void sums_become_deltas(void **state)
{
    static const struct story stories[] = {
        /* The first point is dropped when the stream is older than the process. */
        {"{}",
         {SUM(INT("1", "10", "5"), "2"), SUM(INT("1", "20", "9"), "2"),
          SUM(INT("1", "30", "9"), "2"), SUM(INT("1", "40", "3"), "2"),
          SUM(INT("1", "50", "4"), "2")},
         {"", SUM(INT("10", "20", "4"), "1"), SUM(INT("20", "30", "0"), "1"), "",
          SUM(INT("40", "50", "1"), "1")}},
        {"{}",
         {SUM(INT(LATER, "1900000000000000000", "5"), "2")},
         {SUM(INT(LATER, "1900000000000000000", "5"), "1")}},
        {"{}", {SUM(INT(LATER, LATER, "5"), "2")}, {""}},
        {"{initial_value: keep}",
         {SUM(INT("1", "10", "5"), "2"), SUM(INT("1", "20", "9"), "2")},
         {SUM("{\"timeUnixNano\":\"10\",\"asInt\":\"5\"}", "1"), SUM(INT("10", "20", "4"), "1")}},
        {"{initial_value: drop}",
         {SUM(INT(LATER, "1900000000000000000", "5"), "2"),
          SUM(INT(LATER, "1900000000000000001", "7"), "2")},
         {"", SUM(INT("1900000000000000000", "1900000000000000001", "2"), "1")}},
        /* Another start is another stream; what has no value goes. */
        {"{}",
         {SUM(INT("1", "10", "5") "," INT("2", "10", "7"), "2"),
          SUM(INT("2", "20", "8") ",{\"timeUnixNano\":\"30\",\"flags\":1}", "2")},
         {"", SUM(INT("10", "20", "1"), "1")}},
        /* Deltas, other sums, gauges and what is excluded pass. */
        {"{}", {SUM(INT("1", "10", "5"), "1")}, {SUM(INT("1", "10", "5"), "1")}},
        {"{}",
         {METRIC("m", "\"sum\":{\"dataPoints\":[{\"asInt\":\"1\"}],"
                      "\"aggregationTemporality\":2}")},
         {METRIC("m",
                 "\"sum\":{\"dataPoints\":[{\"asInt\":\"1\"}],\"aggregationTemporality\":2}")}},
        {"{exclude: {match_type: strict, metrics: [m]}}",
         {SUM(INT("1", "10", "5"), "2")},
         {SUM(INT("1", "10", "5"), "2")}},
        {"{include: {match_type: regexp, metrics: [^n]}}",
         {SUM(INT("1", "10", "5"), "2")},
         {SUM(INT("1", "10", "5"), "2")}},
        {"{include: {metric_types: [Histogram]}}",
         {SUM(INT("1", "10", "5"), "2")},
         {SUM(INT("1", "10", "5"), "2")}},
        {"{exclude: {metric_types: [Histogram]}}", {SUM(INT("1", "10", "5"), "2")}, {""}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++)
        play(&stories[i]);
}

static void histograms_become_deltas(void **state)
{
#define POINT(time, count, sum, counts, more)                                                      \
    "{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"" time "\",\"count\":\"" count                \
    "\",\"sum\":" sum ",\"bucketCounts\":[" counts "],\"explicitBounds\":[2]" more "}"
#define DELTA(start, time, count, sum, counts)                                                     \
    "{\"startTimeUnixNano\":\"" start "\",\"timeUnixNano\":\"" time "\",\"count\":\"" count        \
    "\",\"sum\":" sum ",\"bucketCounts\":[" counts "],\"explicitBounds\":[2]}"
    static const struct story stories[] = {
        {"{}",
         {HISTOGRAM(POINT("10", "3", "1.5", "\"1\",\"2\"", ",\"min\":1,\"max\":9"), "2"),
          HISTOGRAM(POINT("20", "5", "4", "\"1\",\"4\"", ",\"min\":1,\"max\":9"), "2"),
          /* A reset: all of it is new. */
          HISTOGRAM(POINT("30", "1", "1", "\"1\",\"0\"", ""), "2"),
          /* Other buckets. */
          HISTOGRAM("{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"40\",\"count\":\"2\","
                    "\"bucketCounts\":[\"2\"]}",
                    "2"),
          HISTOGRAM("{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"50\",\"count\":\"3\","
                    "\"bucketCounts\":[\"3\"]}",
                    "2")},
         {"", HISTOGRAM(DELTA("10", "20", "2", "2.5", "\"0\",\"2\""), "1"),
          HISTOGRAM(DELTA("20", "30", "1", "1", "\"1\",\"0\""), "1"), "",
          HISTOGRAM("{\"startTimeUnixNano\":\"40\",\"timeUnixNano\":\"50\",\"count\":\"1\","
                    "\"bucketCounts\":[\"1\"]}",
                    "1")}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++)
        play(&stories[i]);
}

/* The older one is made coarser first, and its small buckets go into the zero bucket. */
static void exponential_histograms_become_deltas(void **state)
{
#define EXPONENTIAL(points, temporality)                                                           \
    METRIC("m", "\"exponentialHistogram\":{\"dataPoints\":[" points                                \
                "],\"aggregationTemporality\":" temporality "}")
#define BUCKETS(start, time, count, scale, zeros, offset, counts, more)                            \
    "{" start "\"timeUnixNano\":\"" time "\",\"count\":\"" count "\"," scale zeros                 \
    "\"positive\":{\"offset\":" offset ",\"bucketCounts\":[" counts "]},\"negative\":{}" more "}"
    static const struct story stories[] = {
        {"{}",
         {EXPONENTIAL(BUCKETS("", "10", "6", "\"scale\":1,", "", "2", "\"1\",\"2\",\"3\"", ""),
                      "2"),
          EXPONENTIAL(BUCKETS("", "20", "9", "", "", "1", "\"4\",\"5\"", ""), "2"),
          /* A finer scale is a reset. */
          EXPONENTIAL(BUCKETS("", "30", "9", "\"scale\":1,", "", "1", "\"4\",\"5\"", ""), "2"),
          EXPONENTIAL(BUCKETS("", "40", "10", "", "", "1", "\"4\",\"6\"", ""), "2")},
         {"",
          EXPONENTIAL(
              BUCKETS("\"startTimeUnixNano\":\"10\",", "20", "3", "", "", "1", "\"1\",\"2\"", ""),
              "1"),
          "",
          EXPONENTIAL(BUCKETS("\"startTimeUnixNano\":\"20\",", "40", "1", "", "", "2", "\"1\"", ""),
                      "1")}},
        {"{}",
         {EXPONENTIAL(BUCKETS("", "10", "6", "", "", "-2", "\"1\",\"2\",\"3\"", ""), "2"),
          EXPONENTIAL(BUCKETS("", "20", "7", "", "\"zeroCount\":\"4\",", "0", "\"3\"",
                              ",\"zeroThreshold\":1"),
                      "2")},
         {"", EXPONENTIAL("{\"startTimeUnixNano\":\"10\",\"timeUnixNano\":\"20\",\"count\":\"1\","
                          "\"zeroCount\":\"1\",\"positive\":{},\"negative\":{},"
                          "\"zeroThreshold\":1}",
                          "1")}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++)
        play(&stories[i]);
}

/* Whatever lane the points come to, and each pipeline for itself. */
static void streams_are_of_all_lanes_and_one_pipeline(void **state)
{
    static const char *const values[] = {"1", "4"};
    (void)state;
    struct harness *h = harness_create_on(
        "processors: {cumulativetodelta: }\nexporters: {test/a: {sending_queue: {enabled: "
        "false}}, test/b: {sending_queue: {enabled: false}}}\nservice: {pipelines: {metrics/a: "
        "{receivers: [test], processors: [cumulativetodelta], exporters: [test/a]}, metrics/b: "
        "{receivers: [test], processors: [cumulativetodelta], exporters: [test/b]}}}\n",
        2);
    for (unsigned lane = 0; lane < 2; lane++) {
        static const char *const ids[] = {"test/a", "test/b"};
        char json[1024];
        snprintf(json, sizeof(json), SUM(INT("1", "%u", "%s"), "2"), lane + 1, values[lane]);
        for (size_t i = 0; i < 2; i++) {
            struct test_exporter *exporter = harness_exporter_on(h, ids[i], lane, METRICS);
            exporter->has_own_items = true;
        }
        record_send_on(h, lane, METRICS, json);
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(harness_exporter_on(h, ids[i], lane, METRICS)->attempts_count, lane);
    }
    harness_destroy(h);
}

/* Go compares the time of the last point with the clock. */
static void stale_streams_are_forgotten(void **state)
{
#define NOW "1700000000000000001"
    (void)state;
    struct harness *h =
        record_harness("cumulativetodelta", "{max_staleness: 10m, initial_value: keep}", METRICS);
    record_send(h, METRICS, SUM(INT("1", NOW, "5"), "2"));
    free(record_output(h, METRICS));
    harness_advance(h, 11 * 60 * S);
    record_send(h, METRICS, SUM(INT("1", "1700000600000000000", "7"), "2"));
    char *found = record_output(h, METRICS);
    assert_non_null(strstr(found, "\"asInt\":\"2\""));
    free(found);
    harness_advance(h, 20 * 60 * S);
    record_send(h, METRICS, SUM(INT("1", "1700001800000000000", "9"), "2"));
    found = record_output(h, METRICS);
    assert_non_null(strstr(found, "\"asInt\":\"9\""));
    free(found);
    char *metrics = harness_metrics(h);
    assert_non_null(strstr(metrics, "otelcol_cumulativetodelta_streams_tracked"));
    assert_non_null(strstr(metrics, "otelcol_cumulativetodelta_datapoints{"));
    free(metrics);
    harness_destroy(h);
}

/* Of senders whose clock is ahead: nothing else would ever remove them. */
static void streams_of_the_future_are_forgotten_too(void **state)
{
    (void)state;
    struct harness *h =
        record_harness("cumulativetodelta", "{max_staleness: 10m, initial_value: keep}", METRICS);
    record_send(h, METRICS, SUM(INT("1", LATER, "5"), "2"));
    free(record_output(h, METRICS));
    harness_advance(h, 30 * 60 * S);
    char *metrics = harness_metrics(h);
    assert_non_null(strstr(metrics, "otelcol_cumulativetodelta_streams_tracked{processor="
                                    "\"cumulativetodelta\"} 0"));
    free(metrics);
    harness_destroy(h);
}

static void mistakes_are_refused_in_the_words_of_the_go_collector(void **state)
{
    static const struct {
        const char *section;
        const char *expected;
    } rows[] = {
        {"{include: {metrics: [a]}}",
         "include::metrics: match_type must be set if metrics are supplied"},
        {"{exclude: {match_type: strict}}",
         "exclude::match_type: metrics must be supplied if match_type is set"},
        {"{include: {metric_types: [sum, gauge]}}",
         "include::metric_types::1: found invalid metric type in include.metric_types: gauge. "
         "Valid values are [sum histogram exponentialhistogram]"},
        {"{include: {match_type: regexp, metrics: [(]}}", "include::metrics::0: "},
        {"{initial_value: none}", "initial_value"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        record_refused("cumulativetodelta", rows[i].section, METRICS, rows[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_become_deltas),
        cmocka_unit_test(histograms_become_deltas),
        cmocka_unit_test(exponential_histograms_become_deltas),
        cmocka_unit_test(streams_are_of_all_lanes_and_one_pipeline),
        cmocka_unit_test(stale_streams_are_forgotten),
        cmocka_unit_test(streams_of_the_future_are_forgotten_too),
        cmocka_unit_test(mistakes_are_refused_in_the_words_of_the_go_collector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
