/* SPDX-License-Identifier: Apache-2.0 */
/* The groupbyattrs processor, from YAML to JSON: what moves to resources, and what comes together
 * in each signal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/pipeline/pipeline_limits.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"
#include "tests/support/record_case.h"

#define TEXT(key, value)        "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define WITH(attributes)        "\"attributes\":[" attributes "]"
#define SPAN(name, rest)        "{\"name\":\"" name "\"" rest ",\"status\":{}}"
#define HOST(h)                 "," WITH(TEXT("host", h))
#define SCOPE(name, rest)       "{\"scope\":{\"name\":\"" name "\"},\"spans\":[" rest "]}"
#define SPANS(resource, scopes) "{\"resource\":{" resource "},\"scopeSpans\":[" scopes "]}"
#define TRACE(resources)        "{\"resourceSpans\":[" resources "]}"

static void attributes_move_to_their_resources(void **state)
{
    (void)state;
    record_compare(
        "groupbyattrs", "{keys: [host]}", TRACES,
        TRACE(SPANS(
            WITH(TEXT("r", "1")),
            SCOPE("s",
                  SPAN("a", "," WITH(TEXT("host", "x") "," TEXT("k", "v") "," TEXT(
                                "l", "w"))) "," SPAN("b",
                                                     HOST("y")) "," SPAN("c",
                                                                         "") "," SPAN("d",
                                                                                      HOST("x"))))),
        TRACE(SPANS(
            WITH(TEXT("r", "1") "," TEXT("host", "x")),
            SCOPE("s",
                  SPAN("a", "," WITH(TEXT("l", "w") "," TEXT("k", "v"))) "," SPAN(
                      "d", ""))) "," SPANS(WITH(TEXT("r", "1") "," TEXT("host", "y")),
                                           SCOPE("s",
                                                 SPAN("b", ""))) "," SPANS(WITH(TEXT("r", "1")),
                                                                           SCOPE("s",
                                                                                 SPAN("c", "")))));
}

/* A record's value counts more than its resource's, and may be what another resource has. */
static void moved_values_replace_those_of_the_resource(void **state)
{
    (void)state;
    record_compare(
        "groupbyattrs", "{keys: [host, k]}", TRACES,
        TRACE(SPANS(WITH(TEXT("host", "x") "," TEXT("r", "1")),
                    SCOPE("s", SPAN("a", HOST("y")) "," SPAN(
                                   "b", ""))) "," SPANS(WITH(TEXT("r", "1") "," TEXT("host", "y")),
                                                        SCOPE("s", SPAN("c", "")))),
        TRACE(SPANS(WITH(TEXT("host", "y") "," TEXT("r", "1")),
                    SCOPE("s", SPAN("a", "") "," SPAN(
                                   "c", ""))) "," SPANS(WITH(TEXT("host", "x") "," TEXT("r", "1")),
                                                        SCOPE("s", SPAN("b", "")))));
}

/* Equal whatever the order of attributes is; different when a value has another type. */
static void without_keys_equal_resources_and_scopes_come_together(void **state)
{
    (void)state;
#define ONE "{\"key\":\"a\",\"value\":{\"intValue\":\"1\"}}"
    record_compare(
        "groupbyattrs", "{}", TRACES,
        TRACE(SPANS(WITH(ONE "," TEXT("b", "2")), SCOPE("s", SPAN("a", ""))) "," SPANS(
            WITH(TEXT("b", "2") "," ONE),
            SCOPE("t", SPAN("b", "")) "," SCOPE("s", SPAN("c", "")) "," SCOPE(
                "u", "")) "," SPANS(WITH(TEXT("b", "2") "," TEXT("a", "1")),
                                    SCOPE("s", SPAN("d", "")))),
        TRACE(SPANS(WITH(ONE "," TEXT("b", "2")),
                    SCOPE("s", SPAN("a", "") "," SPAN("c", "")) "," SCOPE(
                        "t", SPAN("b", ""))) "," SPANS(WITH(TEXT("b", "2") "," TEXT("a", "1")),
                                                       SCOPE("s", SPAN("d", "")))));
}

static void points_of_one_metric_are_grouped_one_by_one(void **state)
{
    (void)state;
#define POINT(host, value) "{" WITH(TEXT("host", host)) ",\"asInt\":\"" value "\"}"
#define METRICS_OF(resource, metrics)                                                              \
    "{\"resource\":{" resource "},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[" metrics "]}]}"
#define SUM(name, points)                                                                          \
    "{\"name\":\"" name "\",\"unit\":\"By\",\"sum\":{\"dataPoints\":[" points                      \
    "],\"aggregationTemporality\":2,\"isMonotonic\":true}}"
#define GAUGE(name, points) "{\"name\":\"" name "\",\"gauge\":{\"dataPoints\":[" points "]}}"
    struct harness *h = record_harness("groupbyattrs", "{keys: [host]}", METRICS);
    record_send(
        h, METRICS,
        "{\"resourceMetrics\":[" METRICS_OF(
            "",
            SUM("m", POINT("x", "1") "," POINT("y", "2") ",{\"asInt\":\"3\"}") "," GAUGE(
                "m", POINT("x", "4")) "," SUM("m", POINT("x", "5")) "," GAUGE("none", "")) "]}");
    char *found = record_output(h, METRICS);
    static const char *const parts[] = {
        "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" TEXT("host", "x") "]}",
        "{\"resource\":{\"attributes\":[" TEXT("host", "y") "]}",
        "{\"resource\":{},",
    };
    const char *at = found;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const char *next = strstr(at, parts[i]);
        if (next == NULL)
            fail_msg("no %s in %s", parts[i], at);
        at = next;
    }
    assert_non_null(strstr(found, "\"dataPoints\":[{\"asInt\":\"1\"},{\"asInt\":\"5\"}]"));
    assert_non_null(strstr(found, "\"gauge\":{\"dataPoints\":[{\"asInt\":\"4\"}]}"));
    assert_non_null(strstr(found, "\"dataPoints\":[{\"asInt\":\"2\"}]"));
    assert_non_null(strstr(found, "\"dataPoints\":[{\"asInt\":\"3\"}]"));
    assert_null(strstr(found, "none"));
    free(found);
    char *metrics = harness_metrics(h);
    assert_non_null(strstr(metrics, "otelcol_processor_groupbyattrs_num_grouped_metrics"));
    assert_non_null(strstr(metrics, "otelcol_processor_groupbyattrs_metric_groups"));
    free(metrics);
    harness_destroy(h);
}

static bool is_held(void *arg)
{
    return ((const struct test_exporter *)arg)->held_count == 1;
}

/* The helper groups what becomes large. */
static void groups_that_become_large_are_written_once(void **state)
{
    enum { SPANS_COUNT = 400, RESOURCE_BYTES = 8 << 10 };
    (void)state;
    struct harness *h = record_harness("groupbyattrs", "{keys: [host]}", TRACES);
    char *json = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&json, &size);
    fprintf(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"r\","
                 "\"value\":{\"stringValue\":\"");
    for (size_t i = 0; i < RESOURCE_BYTES; i++)
        fputc('r', out);
    fprintf(out, "\"}}]},\"scopeSpans\":[{\"spans\":[");
    for (unsigned i = 0; i < SPANS_COUNT; i++)
        fprintf(out, "%s{\"attributes\":[{\"key\":\"host\",\"value\":{\"stringValue\":\"%u\"}}]}",
                i > 0 ? "," : "", i);
    fprintf(out, "]}]}]}");
    fclose(out);
    record_send(h, TRACES, json);
    harness_await(h, is_held, harness_exporter_on(h, "test", 0, TRACES), "it comes out");
    char *found = record_output(h, TRACES);
    size_t resources = 0;
    for (const char *at = found; (at = strstr(at, "\"resource\":")) != NULL; at++)
        resources++;
    assert_int_equal(resources, SPANS_COUNT);
    assert_true(strlen(found) > (size_t)SPANS_COUNT * RESOURCE_BYTES);
    free(found);
    free(json);
    harness_destroy(h);
}

/* Of what batch has acknowledged: it would be lost otherwise. */
static void acknowledged_requests_may_use_the_margin(void **state)
{
    enum { EXCESS_KIB = 16 };
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1s}, groupbyattrs: {keys: [host]}}\nexporters: {test: "
        "{sending_queue: {enabled: false}}}\nservice: {budget_mib: 8, pipelines: {traces: "
        "{receivers: [test], processors: [batch, groupbyattrs], exporters: [test]}}}\n");
    struct budget *budget = &h->service->budget;
    harness_exporter_on(h, "test", 0, TRACES)->has_own_items = true;
    const char *json = TRACE(SPANS(WITH(TEXT("r", "1")), SCOPE("s", SPAN("a", HOST("x")))));
    assert_int_equal(record_send(h, TRACES, json)->outcome.verdict, ACCEPTED);
    const uint64_t others = budget_limit(budget) - budget_used(budget) + (EXCESS_KIB << 10);
    budget_take(budget, others);
    harness_advance(h, 2 * DOWNSTREAM_SHUT_IN_MAX_NS);
    budget_return(budget, others);
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    assert_int_equal(harness_totals(h, TRACES).delivered, 1);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_move_to_their_resources),
        cmocka_unit_test(moved_values_replace_those_of_the_resource),
        cmocka_unit_test(without_keys_equal_resources_and_scopes_come_together),
        cmocka_unit_test(points_of_one_metric_are_grouped_one_by_one),
        cmocka_unit_test(groups_that_become_large_are_written_once),
        cmocka_unit_test(acknowledged_requests_may_use_the_margin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
