/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping: the order of it, what each stage still lets through, that each queued request is tried
 * once, and that a dead back-end cannot hold it up. */
#include "tests/support/harness.h"

#include "src/base/error.h"
#include "src/service/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PIPELINE "service: {pipelines: {traces: {receivers: [test], exporters: [test]}}}\n"
#define BATCH_PIPELINE                                                                             \
    "service: {pipelines: {traces: {receivers: [test], processors: [batch], exporters: "           \
    "[test]}}}\n"

static void stop_now(struct harness *h)
{
    harness_stop(h);
    harness_turn(h);
    assert_true(h->has_stopped);
    assert_false(h->was_forced);
}

static void starts_go_back_to_front_and_stops_front_to_back(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {pass/1: , pass/2: }\nexporters: {test: {}}\n"
        "service: {pipelines: {traces: {receivers: [test], processors: [pass/1, pass/2], "
        "exporters: [test]}}}\n");
    assert_string_equal(test_events(), "start exporter test\nstart processor pass/2\n"
                                       "start processor pass/1\nstart receiver test\n");
    test_events_clear();
    stop_now(h);
    assert_string_equal(test_events(), "stop receiver test\nstop processor pass/1\n"
                                       "stop processor pass/2\nstop exporter test\n");
    harness_destroy(h);
}

static void an_idle_service_stops_at_once(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test: {}}\n" PIPELINE);
    stop_now(h);
    harness_destroy(h);
}

static void what_was_offered_before_the_stop_goes_all_the_way(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("processors: {batch: {timeout: 1h}}\nexporters: {test: "
                       "{sending_queue: {batch: {flush_timeout: 1h}}}}\n" BATCH_PIPELINE);
    struct test_exporter *exporter = harness_exporter(h, "test");
    harness_send_now(h, 3);
    struct test_request *last = harness_send(h, 4); /* still in the ring */
    stop_now(h);
    assert_int_equal(last->outcome.verdict, ACCEPTED);
    assert_int_equal(exporter->delivered_items, 7);
    harness_destroy(h);
}

static void queued_requests_of_a_dead_back_end_are_tried_once_each(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "exporters: {test: {sending_queue: {queue_size: 50, num_consumers: 2}}}\n" PIPELINE);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_BUSY;
    for (int i = 0; i < 50; i++)
        harness_send_now(h, 1);
    assert_int_equal(exporter->attempts_count, 2);
    stop_now(h);
    assert_int_equal(exporter->attempts_count, 2 + 50);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_SHUTDOWN], 50);
    harness_destroy(h);
}

static void a_full_queue_of_a_dead_back_end_does_not_hold_up_the_batch(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 0s}}\n"
        "exporters: {test: {sending_queue: {queue_size: 3, num_consumers: 1}}}\n" BATCH_PIPELINE);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_BUSY;
    for (int i = 0; i < 5; i++)
        harness_send_now(h, 1);
    harness_stop(h);
    harness_advance(h, 1 * S);
    assert_true(h->has_stopped);
    assert_false(h->was_forced);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_SHUTDOWN], 4);
    assert_int_equal(exporter->attempts_count, 1 + 4);
    harness_destroy(h);
}

static void a_blocked_fan_out_before_a_dead_back_end_does_not_either(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test: {sending_queue: {queue_size: 1, "
                                       "block_on_overflow: true}}}\n" PIPELINE);
    harness_exporter(h, "test")->result = RESULT_BUSY;
    struct test_request *requests[4];
    for (int i = 0; i < 4; i++)
        requests[i] = harness_send_now(h, 1);
    harness_stop(h);
    harness_advance(h, 1 * S);
    assert_true(h->has_stopped);
    assert_false(h->was_forced);
    for (int i = 0; i < 4; i++)
        assert_int_equal(requests[i]->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_SHUTDOWN], 4);
    harness_destroy(h);
}

struct waiting_case {
    const char *name;
    const char *yaml;
};

static const struct waiting_case waiting_cases[] = {
    {"without a queue", "exporters: {test: {sending_queue: {enabled: false}}}\n" PIPELINE},
    {"waiting for the result of a queue",
     "exporters: {test: {sending_queue: {wait_for_result: true}}}\n" PIPELINE},
    {"waiting behind batch",
     "processors: {batch: {timeout: 0s, wait_for_result: true}}\n"
     "exporters: {test: {sending_queue: {enabled: false}}}\n" BATCH_PIPELINE},
};

static void what_waits_for_a_retry_is_tried_once_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(waiting_cases) / sizeof(waiting_cases[0]); i++) {
        print_message("  %s\n", waiting_cases[i].name);
        struct harness *h = harness_create(waiting_cases[i].yaml);
        struct test_exporter *exporter = harness_exporter(h, "test");
        exporter->result = RESULT_BUSY;
        struct test_request *request = harness_send_now(h, 1);
        assert_false(request->is_resolved);
        stop_now(h);
        assert_int_equal(exporter->attempts_count, 2);
        assert_int_equal(request->outcome.verdict, LOST);
        assert_int_equal(request->outcome.code, STATUS_UNAVAILABLE);
        assert_int_equal(harness_totals(h, TRACES).rejected, 1);
        harness_destroy(h);
    }
}

static void an_export_under_way_is_awaited(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test: {}}\n" PIPELINE);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_HOLD;
    harness_send_now(h, 1);
    harness_stop(h);
    harness_advance(h, 10 * S);
    assert_false(h->has_stopped);
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_true(h->has_stopped);
    assert_int_equal(harness_totals(h, TRACES).delivered, 1);
    harness_destroy(h);
}

static void expect_forced(struct harness *h, uint64_t items)
{
    assert_true(h->has_stopped);
    assert_true(h->was_forced);
    assert_int_equal(service_abandoned_items(h->service), items);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.in_flight, 0);
    assert_int_equal(totals.by_reason[LOSS_SHUTDOWN], items);
    assert_int_equal(totals.received, totals.delivered + totals.rejected + totals.dropped);
    harness_abandon(h);
}

static void the_drain_ends_at_its_deadline(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("exporters: {test: {}}\n"
                       "service: {drain_timeout: 3s, "
                       "pipelines: {traces: {receivers: [test], exporters: [test]}}}\n");
    harness_exporter(h, "test")->result = RESULT_HOLD;
    harness_send_now(h, 5);
    harness_stop(h);
    harness_advance(h, 2999 * MS);
    assert_false(h->has_stopped);
    harness_advance(h, 1 * MS);
    expect_forced(h, 5);
}

static void a_second_signal_ends_the_drain(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test: {}}\n" PIPELINE);
    harness_exporter(h, "test")->result = RESULT_HOLD;
    harness_send_now(h, 5);
    harness_stop(h);
    harness_turn(h);
    assert_false(h->has_stopped);
    service_force(h->service);
    service_force(h->service);
    harness_turn(h);
    expect_forced(h, 5);
}

static void a_service_that_never_started_stops_and_goes(void **state)
{
    (void)state;
    struct harness *h = harness_try_build("exporters: {test: {}}\n" PIPELINE, 2);
    assert_non_null(h);
    stop_now(h);
    assert_string_equal(test_events(), "");
    harness_discard(h);
    h = harness_try_build("exporters: {test: {}}\n" PIPELINE, 1);
    assert_non_null(h);
    harness_discard(h);
}

static const char two_exporters_yaml[] =
    "processors: {batch: }\nexporters: {test/good: , test/bad: {fails_to: %s}}\n"
    "service: {pipelines: {traces: {receivers: [test], processors: [batch], exporters: [test/good, "
    "test/bad]}}}\n";

static void what_cannot_be_built_leaves_nothing_behind(void **state)
{
    (void)state;
    char yaml[512];
    snprintf(yaml, sizeof(yaml), two_exporters_yaml, "create");
    assert_null(harness_try_build(yaml, 1));
    assert_null(harness_try_build(yaml, 3));
}

static void a_failed_start_names_the_component_and_stops_the_others(void **state)
{
    (void)state;
    char yaml[512];
    struct error error = {.text = ""};
    snprintf(yaml, sizeof(yaml), two_exporters_yaml, "start");
    struct harness *h = harness_try_build(yaml, 2);
    assert_non_null(h);
    assert_false(service_start(h->service, &error));
    assert_string_equal(
        error.text,
        "cannot start pipelines: failed to start \"test/bad\" exporter: configured to fail");
    stop_now(h);
    assert_string_equal(test_events(), "start exporter test/good\nstart exporter test/bad\n"
                                       "stop exporter test/good\nstop exporter test/bad\n");
    harness_discard(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_go_back_to_front_and_stops_front_to_back),
        cmocka_unit_test(an_idle_service_stops_at_once),
        cmocka_unit_test(what_was_offered_before_the_stop_goes_all_the_way),
        cmocka_unit_test(queued_requests_of_a_dead_back_end_are_tried_once_each),
        cmocka_unit_test(a_full_queue_of_a_dead_back_end_does_not_hold_up_the_batch),
        cmocka_unit_test(a_blocked_fan_out_before_a_dead_back_end_does_not_either),
        cmocka_unit_test(what_waits_for_a_retry_is_tried_once_more),
        cmocka_unit_test(an_export_under_way_is_awaited),
        cmocka_unit_test(the_drain_ends_at_its_deadline),
        cmocka_unit_test(a_second_signal_ends_the_drain),
        cmocka_unit_test(a_service_that_never_started_stops_and_goes),
        cmocka_unit_test(what_cannot_be_built_leaves_nothing_behind),
        cmocka_unit_test(a_failed_start_names_the_component_and_stops_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
