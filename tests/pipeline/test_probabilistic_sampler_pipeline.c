/* SPDX-License-Identifier: Apache-2.0 */
/* The probabilistic_sampler, from YAML to JSON: which spans and log records it keeps, what they
 * carry on, and what is counted. The expected decisions are those of the Go collector. */
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

#define SPANS(spans)     "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[" spans "]}]}]}"
#define SPAN(id, state)  "{\"traceId\":\"" id "\",\"traceState\":\"" state "\",\"name\":\"" id "\"}"
#define LOGS_OF(records) "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[" records "]}]}]}"
#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"

/* Their last seven bytes are the randomness. */
#define LOW  "000000000000000001200000000000a1"
#define HIGH "0000000000000000aaf0000000000001"
#define NONE "00000000000000000000000000000000"

/* The tracestate of a span with that id and tracestate once it has passed; "-": it is dropped. */
static void spans_are_kept_as_the_go_collector_keeps_them(void **state)
{
    static const struct {
        const char *section;
        const char *id;
        const char *before;
        const char *after;
    } rows[] = {
        /* The trace id decides. */
        {"{sampling_percentage: 50, mode: equalizing}", HIGH, "", "ot=th:8"},
        {"{sampling_percentage: 50, mode: equalizing}", LOW, "", "-"},
        {"{sampling_percentage: 100, mode: equalizing}", LOW, "", "ot=th:0"},
        {"{sampling_percentage: 300, mode: equalizing}", LOW, "", "ot=th:0"},
        {"{sampling_percentage: 0, mode: equalizing}", HIGH, "", "-"},
        {"{}", HIGH, "", "-"},
        {"{sampling_percentage: 33.3333, mode: equalizing}", HIGH, "", "ot=th:aaab"},
        {"{sampling_percentage: 33.3333, mode: equalizing, sampling_precision: 1}", HIGH, "",
         "ot=th:b"},
        {"{sampling_percentage: 33.3333, mode: equalizing, sampling_precision: 14}", HIGH, "",
         "ot=th:aaaab"},
        /* rv beats it; th of before counts; other members stay, after ot. */
        {"{sampling_percentage: 50, mode: equalizing}", LOW, "ot=rv:ff000000000000",
         "ot=rv:ff000000000000;th:8"},
        {"{sampling_percentage: 50, mode: equalizing}", HIGH, "x=y,ot=a:b;th:c,z=1",
         "ot=th:c;a:b,x=y,z=1"},
        {"{sampling_percentage: 50, mode: equalizing}", HIGH, "x=y , ot=a:b;th:4,z=1",
         "ot=th:8;a:b,x=y,z=1"},
        {"{sampling_percentage: 80, mode: equalizing}", HIGH, "ot=th:8", "ot=th:8"},
        {"{sampling_percentage: 50, mode: proportional}", LOW, "ot=rv:ff000000000000;th:8",
         "ot=rv:ff000000000000;th:c"},
        {"{sampling_percentage: 50, mode: proportional}", HIGH, "ot=th:8", "ot=th:c"},
        /* A broken tracestate, a contradiction, no randomness. */
        {"{sampling_percentage: 50, mode: equalizing}", HIGH, "ot=th:xyz", "-"},
        {"{sampling_percentage: 50, mode: equalizing, fail_closed: false}", HIGH, "ot=th:xyz",
         "ot=th:xyz"},
        {"{sampling_percentage: 50, mode: equalizing, fail_closed: false}", HIGH, "ot=th:ff",
         "ot=th:0"},
        {"{sampling_percentage: 50, mode: equalizing}", NONE, "", "-"},
        {"{sampling_percentage: 50, mode: equalizing, fail_closed: false}", NONE, "", "ot=th:0"},
        {"{sampling_percentage: 0, fail_closed: false}", HIGH, "ot=th:xyz", "ot=th:0"},
        /* The hash: rv and th are left for the samplers behind. */
        {"{sampling_percentage: 50}", HIGH, "", "ot=rv:9f0c24721ed83c;th:8"},
        {"{sampling_percentage: 50, hash_seed: 1}", LOW, "", "-"},
        {"{sampling_percentage: 50, hash_seed: 3, mode: hash_seed}", LOW, "",
         "ot=rv:f12c378de003b4;th:8"},
        {"{sampling_percentage: 90, mode: hash_seed}", HIGH, "ot=rv:ff000000000000", "-"},
        {"{sampling_percentage: 90, mode: hash_seed, fail_closed: false}", HIGH,
         "ot=rv:ff000000000000", "ot=rv:ff000000000000"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char input[1024];
        char expected[1024] = "";
        snprintf(input, sizeof(input), SPANS(SPAN("%s", "%s")), rows[i].id, rows[i].before,
                 rows[i].id);
        if (strcmp(rows[i].after, "-") != 0)
            snprintf(expected, sizeof(expected), "\"traceState\":\"%s\"", rows[i].after);
        struct harness *h = record_harness("probabilistic_sampler", rows[i].section, TRACES);
        const struct test_request *request = record_send(h, TRACES, input);
        char *found = record_output(h, TRACES);
        bool is_expected = expected[0] != '\0' ? strstr(found, expected) != NULL : found[0] == '\0';
        if (!is_expected) {
            print_error("%s, \"%s\": expected %s, found\n", rows[i].section, rows[i].before,
                        rows[i].after);
            print_error("%s\n", found);
            fail();
        }
        assert_int_equal(request->outcome.verdict, ACCEPTED);
        free(found);
        harness_destroy(h);
    }
}

/* sampling.priority, as a number or a string. */
static void a_span_may_have_its_own_priority(void **state)
{
    static const struct {
        const char *value;
        bool kept[2]; /* at 100 and at 0 percent */
    } rows[] = {
        {"{\"intValue\":\"0\"}", {false, false}},  {"{\"intValue\":\"1\"}", {true, true}},
        {"{\"intValue\":\"-1\"}", {true, false}},  {"{\"doubleValue\":0}", {false, false}},
        {"{\"doubleValue\":0.5}", {true, true}},   {"{\"stringValue\":\"0\"}", {false, false}},
        {"{\"stringValue\":\"2\"}", {true, true}}, {"{\"stringValue\":\"x\"}", {true, false}},
        {"{\"boolValue\":true}", {true, false}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int is_never = 0; is_never < 2; is_never++) {
            char input[512];
            snprintf(input, sizeof(input),
                     SPANS("{\"traceId\":\"" LOW
                           "\",\"attributes\":[{\"key\":\"sampling.priority\",\"value\":%s}]}"),
                     rows[i].value);
            struct harness *h = record_harness(
                "probabilistic_sampler", is_never ? "{}" : "{sampling_percentage: 100}", TRACES);
            record_send(h, TRACES, input);
            char *found = record_output(h, TRACES);
            if ((found[0] != '\0') != rows[i].kept[is_never])
                fail_msg("%s", input);
            free(found);
            harness_destroy(h);
        }
}

static void log_records_carry_it_in_attributes(void **state)
{
    static const struct {
        const char *section;
        const char *attributes;
        const char *after; /* NULL: dropped */
    } rows[] = {
        {"{sampling_percentage: 50, mode: equalizing}", "", TEXT("sampling.threshold", "8")},
        {"{sampling_percentage: 50, mode: proportional}",
         TEXT("sampling.randomness", "f0000000000000") "," TEXT("sampling.threshold", "8"),
         TEXT("sampling.randomness", "f0000000000000") "," TEXT("sampling.threshold", "c")},
        {"{sampling_percentage: 50}", "",
         TEXT("sampling.randomness", "9f0c24721ed83c") "," TEXT("sampling.threshold", "8")},
        {"{sampling_percentage: 50, attribute_source: record}", TEXT("id", "abc"), NULL},
        {"{sampling_percentage: 50, attribute_source: record, from_attribute: id}",
         TEXT("id", "cde"),
         TEXT("id", "cde") "," TEXT("sampling.randomness",
                                    "89a8361e84dd95") "," TEXT("sampling.threshold", "8")},
        {"{sampling_percentage: 50, attribute_source: record, from_attribute: id}",
         TEXT("id", "bcd"), NULL},
        {"{sampling_percentage: 0, sampling_priority: p}",
         "{\"key\":\"p\",\"value\":{\"intValue\":\"75\"}}",
         "{\"key\":\"p\",\"value\":{\"intValue\":\"75\"}}," TEXT("sampling.threshold", "4")},
        {"{sampling_percentage: 100, sampling_priority: p}",
         "{\"key\":\"p\",\"value\":{\"stringValue\":\"0\"}}",
         "{\"key\":\"p\",\"value\":{\"stringValue\":\"0\"}}," TEXT(
             "sampling.randomness", "9f0c24721ed83c") "," TEXT("sampling.threshold", "0")},
        /* A lie goes, and the last attribute comes to its place. */
        {"{sampling_percentage: 50, mode: equalizing, fail_closed: false}",
         TEXT("sampling.threshold", "ff") "," TEXT("a", "1") "," TEXT("b", "2"),
         TEXT("b", "2") "," TEXT("a", "1") "," TEXT("sampling.threshold", "0")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char input[1024];
        char expected[1024] = "";
        snprintf(input, sizeof(input), LOGS_OF("{\"traceId\":\"" HIGH "\",\"attributes\":[%s]}"),
                 rows[i].attributes);
        if (rows[i].after != NULL)
            snprintf(expected, sizeof(expected), "\"attributes\":[%s]", rows[i].after);
        struct harness *h = record_harness("probabilistic_sampler", rows[i].section, LOGS);
        record_send(h, LOGS, input);
        char *found = record_output(h, LOGS);
        bool is_expected = expected[0] != '\0' ? strstr(found, expected) != NULL : found[0] == '\0';
        if (!is_expected) {
            print_error("%s: expected %s, found\n", rows[i].section, expected);
            print_error("%s\n", found);
            fail();
        }
        free(found);
        harness_destroy(h);
    }
}

/* Containers without records go, too; what is dropped counts as unwanted, once the rest has
 * arrived. */
static void what_is_dropped_is_counted(void **state)
{
    (void)state;
    struct harness *h = record_harness("probabilistic_sampler",
                                       "{sampling_percentage: 50, mode: equalizing}", TRACES);
    struct test_exporter *exporter = harness_exporter(h, "test");
    record_send(h, TRACES,
                "{\"resourceSpans\":[{\"scopeSpans\":[{\"scope\":{\"name\":\"empty\"}},{\"spans\":"
                "[" SPAN(LOW, "") "]}]},{\"scopeSpans\":[{\"scope\":{\"name\":\"gone\"},\"spans\":"
                                  "[" SPAN(LOW, "") "]},{\"spans\":[" SPAN(LOW, "") "," SPAN(
                                      HIGH, "") "]}]}]}");
    assert_int_equal(exporter->held_count, 1);
    assert_int_equal(exporter->held[0].batch->items, 1);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_UNWANTED], 0);
    char *found = record_output(h, TRACES);
    assert_string_equal(found, "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},"
                               "\"spans\":[{\"traceId\":\"" HIGH "\",\"traceState\":\"ot=th:8\","
                               "\"name\":\"" HIGH "\",\"status\":{}}]}]}]}");
    free(found);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_UNWANTED], 3);
    /* Nothing is left: the client gets its OK at once. */
    const struct test_request *request = record_send(h, TRACES, SPANS(SPAN(LOW, "")));
    assert_true(request->is_resolved);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_totals(h, TRACES).dropped, 4);
    char *metrics = harness_metrics(h);
    assert_non_null(
        strstr(metrics, "otelcol_processor_probabilistic_sampler_count_traces_sampled"));
    assert_non_null(strstr(metrics, "policy=\"trace_id_w3c\",sampled=\"false\"} 4"));
    assert_non_null(strstr(metrics, "policy=\"trace_id_w3c\",sampled=\"true\"} 1"));
    free(metrics);
    harness_destroy(h);
}

/* The client gets an error for all of it. */
static void what_fails_is_rejected_as_a_whole(void **state)
{
    (void)state;
    struct harness *h = record_harness("probabilistic_sampler",
                                       "{sampling_percentage: 50, mode: equalizing}", TRACES);
    struct test_exporter *exporter = harness_exporter(h, "test");
    const struct test_request *request =
        record_send(h, TRACES, SPANS(SPAN(LOW, "") "," SPAN(HIGH, "")));
    test_exporter_release(exporter, RESULT_PERMANENT);
    harness_turn(h);
    assert_true(request->is_resolved);
    assert_int_not_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_totals(h, TRACES).rejected, 2);
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    harness_destroy(h);
}

static void mistakes_are_refused_in_the_words_of_the_go_collector(void **state)
{
    static const struct {
        const char *section;
        const char *expected;
    } rows[] = {
        {"{sampling_percentage: -1}", "sampling rate is negative: -1.000000%"},
        {"{sampling_percentage: .inf}", "sampling rate is invalid: "},
        {"{sampling_percentage: 1e-16}", "sampling rate is too small: 1e-16%"},
        {"{sampling_precision: 0}", "invalid sampling precision: 0"},
        {"{sampling_precision: 15}", "sampling precision is too great, should be <= 14: 15"},
        {"{attribute_source: body}", "invalid attribute source: body. Expected: traceID or record"},
        {"{mode: fast}", "mode"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        record_refused("probabilistic_sampler", rows[i].section, TRACES, rows[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_kept_as_the_go_collector_keeps_them),
        cmocka_unit_test(a_span_may_have_its_own_priority),
        cmocka_unit_test(log_records_carry_it_in_attributes),
        cmocka_unit_test(what_is_dropped_is_counted),
        cmocka_unit_test(what_fails_is_rejected_as_a_whole),
        cmocka_unit_test(mistakes_are_refused_in_the_words_of_the_go_collector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
