/* SPDX-License-Identifier: Apache-2.0 */
/* Retries on the fake clock with fixed jitter: when each attempt comes, when it ends, and what the
 * ledger shows then. */
#include "tests/support/harness.h"

#include "src/base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PIPELINE "service: {pipelines: {traces: {receivers: [test], exporters: [test]}}}\n"

enum { ATTEMPTS_MAX = 8 };

struct retry_case {
    const char *name;
    const char *retry; /* keys of retry_on_failure */
    double random;
    uint64_t hint_ms;                /* of the back-end's Retry-After; 0: none */
    uint64_t waits_ms[ATTEMPTS_MAX]; /* between the attempts; ends at the first 0 */
    enum loss_reason reason;
};

static const struct retry_case retry_cases[] = {
    {"the wait grows by the multiplier",
     "initial_interval: 1s, multiplier: 2, max_elapsed_time: 30s, max_interval: 30s",
     0.5,
     0,
     {1000, 2000, 4000, 8000},
     LOSS_RETRIES_OVER},
    {"and no further than max_interval",
     "initial_interval: 1s, multiplier: 10, max_interval: 3s, max_elapsed_time: 11s",
     0.5,
     0,
     {1000, 3000, 3000, 3000},
     LOSS_RETRIES_OVER},
    {"the lowest jitter halves it",
     "initial_interval: 4s, multiplier: 1, max_elapsed_time: 5s, max_interval: 4s",
     0,
     0,
     {2000, 2000},
     LOSS_RETRIES_OVER},
    {"jitter is switched off",
     "initial_interval: 4s, multiplier: 1, randomization_factor: 0, max_elapsed_time: 9s, "
     "max_interval: 4s",
     0,
     0,
     {4000, 4000},
     LOSS_RETRIES_OVER},
    {"a hint lengthens the wait, past max_interval too",
     "initial_interval: 1s, multiplier: 1, max_interval: 2s, max_elapsed_time: 25s",
     0.5,
     10000,
     {10000, 10000},
     LOSS_RETRIES_OVER},
    {"a hint never shortens it",
     "initial_interval: 3s, multiplier: 1, max_interval: 3s, max_elapsed_time: 7s",
     0.5,
     1000,
     {3000, 3000},
     LOSS_RETRIES_OVER},
    {"a hint beyond max_elapsed_time ends it at once",
     "initial_interval: 1s, max_interval: 2s, max_elapsed_time: 5s",
     0.5,
     6000,
     {0},
     LOSS_RETRIES_OVER},
    {"switched off, one failure is enough", "enabled: false", 0.5, 0, {0}, LOSS_RETRIES_OVER},
};

static void waits_are_as_configured(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(retry_cases) / sizeof(retry_cases[0]); i++) {
        const struct retry_case *row = &retry_cases[i];
        char yaml[512];
        print_message("  %s\n", row->name);
        snprintf(yaml, sizeof(yaml), "exporters: {test: {retry_on_failure: {%s}}}\n" PIPELINE,
                 row->retry);
        struct harness *h = harness_create(yaml);
        struct test_exporter *exporter = harness_exporter(h, "test");
        random_fix(row->random);
        exporter->result = RESULT_HINT;
        exporter->hint_ns = row->hint_ms * MS;
        harness_send_now(h, 3);
        harness_advance(h, 120 * S);
        size_t waits = 0;
        for (; row->waits_ms[waits] > 0; waits++)
            assert_int_equal(exporter->attempts[waits + 1].at_ns - exporter->attempts[waits].at_ns,
                             row->waits_ms[waits] * MS);
        assert_int_equal(exporter->attempts_count, waits + 1);
        assert_int_equal(harness_totals(h, TRACES).dropped, 3);
        assert_int_equal(harness_totals(h, TRACES).by_reason[row->reason], 3);
        harness_destroy(h);
    }
}

static void max_elapsed_time_0_never_gives_up(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test: {retry_on_failure: {initial_interval: "
                                       "1s, multiplier: 1, max_elapsed_time: 0}}}\n" PIPELINE);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_BUSY;
    harness_send_now(h, 3);
    harness_advance(h, 3600 * S);
    assert_int_equal(exporter->attempts_count, 3601);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 3);
    exporter->result = RESULT_OK;
    harness_advance(h, 1 * S);
    assert_int_equal(harness_totals(h, TRACES).delivered, 3);
    harness_destroy(h);
}

static void a_permanent_error_is_not_repeated(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test: {}}\n" PIPELINE);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->script[0] = RESULT_BUSY;
    exporter->script[1] = RESULT_PERMANENT;
    exporter->script_count = 2;
    harness_send_now(h, 2);
    harness_advance(h, 60 * S);
    assert_int_equal(exporter->attempts_count, 2);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_PERMANENT], 2);
    harness_destroy(h);
}

static void a_repeated_request_is_delivered_once(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test: {}}\n" PIPELINE);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->script[0] = RESULT_BUSY;
    exporter->script[1] = RESULT_BUSY;
    exporter->script_count = 2;
    harness_send_now(h, 4);
    harness_advance(h, 60 * S);
    assert_int_equal(exporter->delivered_items, 4);
    assert_int_equal(exporter->doubled_items, 0);
    char *page = harness_metrics(h);
    assert_non_null(
        strstr(page, "\nspanflame_exporter_retries{data_type=\"traces\",exporter=\"test\"} 2\n"));
    free(page);
    harness_destroy(h);
}

static void a_waiting_retry_keeps_its_consumer(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("exporters: {test: {sending_queue: {num_consumers: 1}}}\n" PIPELINE);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->script[0] = RESULT_BUSY;
    exporter->script_count = 1;
    harness_send_now(h, 1);
    harness_send_now(h, 1);
    harness_advance(h, 4999 * MS);
    assert_int_equal(exporter->attempts_count, 1);
    harness_advance(h, 1 * MS);
    assert_int_equal(exporter->attempts_count, 3);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_as_configured),
        cmocka_unit_test(max_elapsed_time_0_never_gives_up),
        cmocka_unit_test(a_permanent_error_is_not_repeated),
        cmocka_unit_test(a_repeated_request_is_delivered_once),
        cmocka_unit_test(a_waiting_retry_keeps_its_consumer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
