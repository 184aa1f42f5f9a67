/* SPDX-License-Identifier: Apache-2.0 */
/* The deltatocumulative processor, from YAML to JSON: what becomes of the points of one stream, one
 * request after another. The expected sums are those of the Go collector. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "tests/support/record_case.h"

enum { STEPS_MAX = 5 };
#define METRIC(name, data)                                                                         \
    "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[{"        \
    "\"name\":\"" name "\"," data "}]}]}]}"
#define SUM(points, temporality)                                                                   \
    METRIC("m", "\"sum\":{\"dataPoints\":[" points "],\"aggregationTemporality\":" temporality "}")
#define INT(start, time, value)                                                                    \
    "{\"startTimeUnixNano\":\"" start "\",\"timeUnixNano\":\"" time "\",\"asInt\":\"" value "\"}"
#define OF(a, time, value)                                                                         \
    "{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"" time "\",\"asInt\":\"" value                \
    "\",\"attributes\":[{\"key\":\"a\",\"value\":{\"stringValue\":\"" a "\"}}]}"
#define HISTOGRAM(points, temporality)                                                             \
    METRIC("m", "\"histogram\":{\"dataPoints\":[" points                                           \
                "],\"aggregationTemporality\":" temporality "}")
#define POINT(time, count, counts, bound, more)                                                    \
    "{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"" time "\",\"count\":\"" count                \
    "\",\"sum\":2.5,\"bucketCounts\":[" counts "],\"explicitBounds\":[" bound "]" more "}"

/* Requests in turn, and what comes out; "": nothing. */
struct story {
    const char *section;
    const char *steps[STEPS_MAX];
    const char *results[STEPS_MAX];
};

static void play(const struct story *story)
{
    struct harness *h = record_harness("deltatocumulative", story->section, METRICS);
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

static void sums_add_up(void **state)
{
    static const struct story stories[] = {
        {"{}",
         {SUM(INT("1", "10", "5"), "1"), SUM(INT("10", "20", "4"), "1"),
          /* Out of order; of an older series; another stream. */
          SUM(INT("10", "20", "4"), "1"), SUM(INT("0", "30", "4"), "1"),
          SUM(OF("x", "30", "1") "," INT("20", "30", "-2"), "1")},
         {SUM(INT("1", "10", "5"), "2"), SUM(INT("1", "20", "9"), "2"), "", "",
          SUM(OF("x", "30", "1") "," INT("1", "30", "7"), "2")}},
        /* A number of another type begins from 0; none adds nothing. */
        {"{}",
         {SUM(INT("1", "10", "5"), "1"),
          SUM("{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"11\",\"asDouble\":1.5}", "1"),
          SUM("{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"12\"}", "1")},
         {SUM(INT("1", "10", "5"), "2"),
          SUM("{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"11\",\"asDouble\":1.5}", "2"),
          SUM("{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"12\",\"asDouble\":1.5}", "2")}},
        /* What is no delta passes. */
        {"{}", {SUM(INT("1", "10", "5"), "2")}, {SUM(INT("1", "10", "5"), "2")}},
        {"{}",
         {METRIC("g", "\"gauge\":{\"dataPoints\":[{\"asInt\":\"1\"}]}")},
         {METRIC("g", "\"gauge\":{\"dataPoints\":[{\"asInt\":\"1\"}]}")}},
        {"{max_streams: 1}",
         {SUM(OF("x", "10", "1") "," OF("y", "10", "1"), "1"), SUM(OF("y", "20", "1"), "1"),
          SUM(OF("x", "20", "1"), "1")},
         {SUM(OF("x", "10", "1"), "2"), "", SUM(OF("x", "20", "2"), "2")}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++)
        play(&stories[i]);
}

static void histograms_add_up(void **state)
{
    static const struct story stories[] = {
        {"{}",
         {HISTOGRAM(POINT("10", "3", "\"1\",\"2\"", "2", ",\"min\":1,\"max\":5"), "1"),
          HISTOGRAM(POINT("20", "4", "\"3\",\"1\"", "2", ",\"min\":0.5,\"max\":4"), "1"),
          /* Without extremes there are none from then on. */
          HISTOGRAM(POINT("30", "1", "\"1\",\"0\"", "2", ""), "1"),
          /* With other bounds it begins anew. */
          HISTOGRAM(POINT("40", "1", "\"1\",\"0\"", "3", ""), "1")},
         {HISTOGRAM(POINT("10", "3", "\"1\",\"2\"", "2", ",\"min\":1,\"max\":5"), "2"),
          HISTOGRAM(
              "{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"20\",\"count\":\"7\",\"sum\":"
              "5,\"bucketCounts\":[\"4\",\"3\"],\"explicitBounds\":[2],\"min\":0.5,\"max\":5}",
              "2"),
          HISTOGRAM("{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"30\",\"count\":\"8\",\"sum\":"
                    "7.5,\"bucketCounts\":[\"5\",\"3\"],\"explicitBounds\":[2]}",
                    "2"),
          HISTOGRAM(POINT("40", "1", "\"1\",\"0\"", "3", ""), "2")}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++)
        play(&stories[i]);
}

/* With the coarser scale, and the wider zero bucket. */
static void exponential_histograms_add_up(void **state)
{
#define EXPONENTIAL(points, temporality)                                                           \
    METRIC("m", "\"exponentialHistogram\":{\"dataPoints\":[" points                                \
                "],\"aggregationTemporality\":" temporality "}")
#define BUCKETS(time, count, scale, offset, counts, more)                                          \
    "{\"timeUnixNano\":\"" time "\",\"count\":\"" count "\"," scale "\"positive\":{" offset        \
    "\"bucketCounts\":[" counts "]},\"negative\":{}" more "}"
    static const struct story stories[] = {
        {"{}",
         {EXPONENTIAL(BUCKETS("10", "6", "\"scale\":1,", "\"offset\":3,", "\"1\",\"2\",\"3\"", ""),
                      "1"),
          EXPONENTIAL(BUCKETS("20", "9", "", "\"offset\":-1,", "\"4\",\"5\"", ""), "1"),
          EXPONENTIAL(BUCKETS("30", "1", "", "\"offset\":2,", "\"1\"", ",\"zeroThreshold\":1"),
                      "1")},
         {EXPONENTIAL(BUCKETS("10", "6", "\"scale\":1,", "\"offset\":3,", "\"1\",\"2\",\"3\"", ""),
                      "2"),
          EXPONENTIAL(BUCKETS("20", "15", "", "\"offset\":-1,", "\"4\",\"5\",\"1\",\"5\"", ""),
                      "2"),
          EXPONENTIAL(BUCKETS("30", "16", "\"zeroCount\":\"4\",", "", "\"5\",\"1\",\"6\"",
                              ",\"zeroThreshold\":1"),
                      "2")}},
        /* The coarsest scale there can be. */
        {"{}",
         {EXPONENTIAL(BUCKETS("10", "1", "\"scale\":-2147483648,", "", "\"1\"", ""), "1"),
          EXPONENTIAL(
              BUCKETS("20", "1", "\"scale\":-2147483648,", "", "\"1\"", ",\"zeroThreshold\":0.5"),
              "1")},
         {EXPONENTIAL(BUCKETS("10", "1", "\"scale\":-2147483648,", "", "\"1\"", ""), "2"),
          EXPONENTIAL(BUCKETS("20", "2", "\"scale\":-2147483648,", "", "\"2\"", ""), "2")}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++)
        play(&stories[i]);
}

/* Two buckets far apart: the scale falls until there are few enough between. */
static void few_buckets_span_any_distance(void **state)
{
    (void)state;
    struct harness *h = record_harness("deltatocumulative", "{}", METRICS);
    record_send(
        h, METRICS,
        EXPONENTIAL(BUCKETS("10", "1", "\"scale\":20,", "\"offset\":-2147483648,", "\"1\"", ""),
                    "1"));
    free(record_output(h, METRICS));
    record_send(
        h, METRICS,
        EXPONENTIAL(BUCKETS("20", "1", "\"scale\":20,", "\"offset\":2147483000,", "\"1\"", ""),
                    "1"));
    char *found = record_output(h, METRICS);
    assert_non_null(strstr(found, "\"count\":\"2\",\"scale\":-5,"));
    assert_non_null(strstr(found, "\"offset\":-64,"));
    free(found);
    /* A scale that is absurd takes no longer. */
    record_send(h, METRICS,
                EXPONENTIAL(BUCKETS("30", "1", "\"scale\":-2147483648,", "", "\"1\"", ""), "1"));
    found = record_output(h, METRICS);
    assert_non_null(strstr(found, "\"count\":\"3\",\"scale\":-2147483648,"));
    free(found);
    harness_destroy(h);
}

static void stale_streams_are_forgotten(void **state)
{
    (void)state;
    struct harness *h = record_harness("deltatocumulative", "{max_stale: 3m}", METRICS);
    record_send(h, METRICS, SUM(INT("1", "10", "5"), "1"));
    free(record_output(h, METRICS));
    harness_advance(h, 150 * S);
    record_send(h, METRICS, SUM(INT("1", "20", "5"), "1"));
    char *found = record_output(h, METRICS);
    assert_non_null(strstr(found, "\"asInt\":\"10\""));
    free(found);
    char *metrics = harness_metrics(h);
    assert_non_null(strstr(metrics, "otelcol_deltatocumulative_streams_tracked"));
    assert_non_null(strstr(metrics, "otelcol_deltatocumulative_streams_max_stale"));
    free(metrics);
    harness_advance(h, 300 * S);
    record_send(h, METRICS, SUM(INT("1", "30", "5"), "1"));
    found = record_output(h, METRICS);
    assert_non_null(strstr(found, "\"asInt\":\"5\""));
    free(found);
    harness_destroy(h);
}

static void note_outcome(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    assert_non_null(receipt);
    *(unsigned *)arg += outcome->verdict == ACCEPTED;
}

/* Sends points in two requests, with so many bytes more, before the helper begins with the first.
 * All are added to sums. */
static void expect_added(const char *const points[static 2], const int more[static 2],
                         const char *counted)
{
    enum { TEXT_MAX = 1024 };
    struct harness *h = record_harness("deltatocumulative", "{}", METRICS);
    struct component *stage = harness_processor(h, "deltatocumulative", METRICS);
    struct harness_gate gate;
    struct receipt receipts[2];
    unsigned accepted = 0;
    char *json = mem_alloc(HELPED_BYTES_MIN + TEXT_MAX);
    harness_close_gate(h, 0, &gate);
    for (size_t i = 0; i < 2; i++) {
        snprintf(
            json, HELPED_BYTES_MIN + TEXT_MAX,
            "{\"resourceMetrics\":[{\"schemaUrl\":\"%0*d\",\"scopeMetrics\":[{\"metrics\":["
            "{\"name\":\"m\",\"sum\":{\"dataPoints\":[%s],\"aggregationTemporality\":1}}]}]}]}",
            more[i], 0, points[i]);
        struct batch *batch = record_batch(METRICS, json, false);
        receipt_init(&receipts[i], note_outcome, &accepted);
        ledger_receive(stage->ledger, batch, component_exporters(stage, batch));
        component_consume(stage, batch, &receipts[i]);
        batch_unref(batch);
    }
    mem_free(json);
    harness_open_gate(&gate);
    harness_turn_helped(h, 0);
    free(record_output(h, METRICS));
    assert_int_equal(accepted, 2);
    char *metrics = harness_metrics(h);
    assert_non_null(strstr(metrics, counted));
    free(metrics);
    harness_destroy(h);
}

/* The helper has gone on to the second when the lane hears of the first. */
static void points_of_each_large_request_are_counted(void **state)
{
    static const char *const points[] = {OF("x", "10", "1"),
                                         OF("y", "10", "1") "," OF("z", "10", "1")};
    (void)state;
    expect_added(points, (const int[]){HELPED_BYTES_MIN, HELPED_BYTES_MIN},
                 "deltatocumulative_datapoints{processor=\"deltatocumulative\"} 3\n");
}

static void a_small_request_does_not_overtake_a_large_one(void **state)
{
    static const char *const points[] = {OF("x", "10", "1"), OF("x", "20", "1")};
    (void)state;
    expect_added(points, (const int[]){HELPED_BYTES_MIN, 1},
                 "deltatocumulative_datapoints{processor=\"deltatocumulative\"} 2\n");
}

static void mistakes_are_refused_in_the_words_of_the_go_collector(void **state)
{
    (void)state;
    record_refused("deltatocumulative", "{max_stale: 0s}", METRICS,
                   "max_stale must be a positive duration (got 0s)");
    record_refused("deltatocumulative", "{max_streams: -1}", METRICS,
                   "max_streams must be a positive number (got -1)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_add_up),
        cmocka_unit_test(histograms_add_up),
        cmocka_unit_test(exponential_histograms_add_up),
        cmocka_unit_test(few_buckets_span_any_distance),
        cmocka_unit_test(stale_streams_are_forgotten),
        cmocka_unit_test(points_of_each_large_request_are_counted),
        cmocka_unit_test(a_small_request_does_not_overtake_a_large_one),
        cmocka_unit_test(mistakes_are_refused_in_the_words_of_the_go_collector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
