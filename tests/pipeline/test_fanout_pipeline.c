/* SPDX-License-Identifier: Apache-2.0 */
/* Several exporters behind one pipeline and several pipelines behind one receiver: which gets what,
 * and what the client gets. */
#include "tests/support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TWO_EXPORTERS                                                                              \
    "service: {pipelines: {traces: {receivers: [test], exporters: [test/a, test/b]}}}\n"
#define TWO_PIPELINES                                                                              \
    "service: {pipelines: {traces/a: {receivers: [test], exporters: [test/a]},"                    \
    " traces/b: {receivers: [test], exporters: [test/b]}}}\n"
#define NO_QUEUE "{sending_queue: {enabled: false}}"

/* Each waits for the queue that the other one has room in: neither wakes the other. */
static void two_pipelines_wait_for_two_full_queues(void **state)
{
    enum { BYTES = 1000 };
    static uint8_t wide[BYTES];
    (void)state;
    struct harness *h = harness_create(
        "receivers: {test/two: {}}\n"
        "exporters: {test/a: {sending_queue: {queue_size: 8, sizer: items, block_on_overflow: "
        "true}}, test/b: {sending_queue: {queue_size: 1010, sizer: bytes, block_on_overflow: "
        "true}}}\n"
        "service: {pipelines: {traces/one: {receivers: [test], exporters: [test/a, test/b]},"
        " traces/two: {receivers: [test/two], exporters: [test/a, test/b]}}}\n");
    struct test_exporter *a = harness_exporter(h, "test/a");
    struct test_exporter *b = harness_exporter(h, "test/b");
    a->result = b->result = RESULT_HOLD;
    a->has_own_items = b->has_own_items = true;
    harness_offer(h, (struct harness_offer){.receiver = "test/two", .items = 4});
    harness_turn(h);
    struct test_request *one = harness_offer_bytes(h, 0, TRACES, slice_of(wide, BYTES), 1);
    struct test_request *two =
        harness_offer(h, (struct harness_offer){.receiver = "test/two", .items = 5});
    harness_turn(h);
    assert_false(one->is_resolved);
    assert_false(two->is_resolved);
    a->result = b->result = RESULT_OK;
    test_exporter_release(a, RESULT_OK);
    test_exporter_release(b, RESULT_OK);
    harness_turn(h);
    assert_int_equal(one->outcome.verdict, ACCEPTED);
    assert_int_equal(two->outcome.verdict, ACCEPTED);
    assert_int_equal(a->delivered_items + b->delivered_items, 2 * (4 + 1 + 5));
    harness_destroy(h);
}

static void every_exporter_gets_every_item(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("exporters: {test/a: {}, test/b: " NO_QUEUE "}\n" TWO_EXPORTERS);
    assert_int_equal(harness_send_now(h, 5)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_exporter(h, "test/a")->delivered_items, 5);
    assert_int_equal(harness_exporter(h, "test/b")->delivered_items, 5);
    assert_int_equal(harness_totals(h, TRACES).received, 10);
    harness_destroy(h);
}

static void a_full_queue_refuses_for_itself_alone(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "exporters: {test/a: {}, test/b: {sending_queue: {queue_size: 1}}}\n" TWO_EXPORTERS);
    struct test_exporter *a = harness_exporter(h, "test/a");
    struct test_exporter *b = harness_exporter(h, "test/b");
    b->result = RESULT_HOLD;
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    struct test_request *request = harness_send_now(h, 2);
    assert_int_equal(request->outcome.verdict, LOST);
    assert_int_equal(request->outcome.code, STATUS_UNAVAILABLE);
    assert_int_equal(a->delivered_items, 3);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.rejected, 2);
    assert_int_equal(totals.by_reason[LOSS_BUSY], 2);
    test_exporter_release(b, RESULT_OK);
    harness_destroy(h);
}

static void a_batch_that_no_queue_has_room_for_is_refused_as_a_whole(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("exporters: {test/a: {sending_queue: {queue_size: 1}},"
                       " test/b: {sending_queue: {queue_size: 1}}}\n" TWO_EXPORTERS);
    struct test_exporter *a = harness_exporter(h, "test/a");
    struct test_exporter *b = harness_exporter(h, "test/b");
    a->result = b->result = RESULT_HOLD;
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_send_now(h, 2)->outcome.verdict, REFUSED);
    assert_int_equal(harness_totals(h, TRACES).rejected, 4); /* twice two: once for each exporter */
    a->result = b->result = RESULT_OK;
    test_exporter_release(a, RESULT_OK);
    test_exporter_release(b, RESULT_OK);
    harness_turn(h);
    assert_int_equal(harness_send_now(h, 2)->outcome.verdict, ACCEPTED);
    assert_int_equal(a->doubled_items + b->doubled_items, 0);
    harness_destroy(h);
}

static void a_dead_exporter_without_queue_fails_the_client_and_not_the_other(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "exporters: {test/good: " NO_QUEUE ", test/dead: {sending_queue: {enabled: false}, "
        "retry_on_failure: {enabled: false}}}\n"
        "service: {pipelines: {traces: {receivers: [test], exporters: [test/dead, test/good]}}}\n");
    harness_exporter(h, "test/dead")->result = RESULT_BUSY;
    struct test_request *request = harness_send_now(h, 3);
    assert_int_equal(request->outcome.verdict, LOST);
    assert_int_equal(request->outcome.code, STATUS_UNAVAILABLE);
    assert_int_equal(harness_exporter(h, "test/good")->delivered_items, 3);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.delivered, 3);
    assert_int_equal(totals.rejected, 3);
    harness_destroy(h);
}

static void a_dead_exporter_with_a_queue_does_not_disturb_the_other(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test/a: {}, test/b: {}}\n" TWO_EXPORTERS);
    harness_exporter(h, "test/b")->result = RESULT_BUSY;
    for (int i = 0; i < 100; i++)
        assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_exporter(h, "test/a")->delivered_items, 100);
    harness_advance(h, 400 * S);
    assert_true(harness_totals(h, TRACES).by_reason[LOSS_RETRIES_OVER] > 0);
    harness_destroy(h);
}

static void the_client_gets_the_worst_outcome_of_several_exporters(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("exporters: {test/a: " NO_QUEUE ", test/b: " NO_QUEUE "}\n" TWO_EXPORTERS);
    harness_exporter(h, "test/a")->result = RESULT_HOLD;
    harness_exporter(h, "test/b")->result = RESULT_PERMANENT;
    struct test_request *request = harness_send_now(h, 1);
    assert_false(request->is_resolved);
    test_exporter_release(harness_exporter(h, "test/a"), RESULT_OK);
    assert_true(request->is_resolved);
    assert_int_equal(request->outcome.code, STATUS_INVALID_ARGUMENT);
    assert_string_equal(request->text, "back-end says no");
    harness_destroy(h);
}

static void two_blocking_queues_are_waited_for_in_turn(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "exporters: {test/a: {sending_queue: {queue_size: 1, block_on_overflow: true}},"
        " test/b: {sending_queue: {queue_size: 1, block_on_overflow: true}}}\n" TWO_EXPORTERS);
    struct test_exporter *a = harness_exporter(h, "test/a");
    struct test_exporter *b = harness_exporter(h, "test/b");
    a->result = b->result = RESULT_HOLD;
    harness_send_now(h, 1);
    struct test_request *request = harness_send_now(h, 1);
    test_exporter_release(a, RESULT_OK);
    harness_turn(h);
    assert_false(request->is_resolved);
    assert_int_equal(a->attempts_count, 1);
    test_exporter_release(b, RESULT_OK);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(a->attempts_count, 2);
    assert_int_equal(b->attempts_count, 2);
    harness_destroy(h);
}

static void a_refusal_beside_a_blocking_queue_counts_when_it_stands(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "exporters: {test/a: {sending_queue: {queue_size: 1, block_on_overflow: true}},"
        " test/b: {sending_queue: {queue_size: 1}}}\n" TWO_EXPORTERS);
    struct test_exporter *a = harness_exporter(h, "test/a");
    struct test_exporter *b = harness_exporter(h, "test/b");
    a->result = b->result = RESULT_HOLD;
    harness_send_now(h, 1);
    struct test_request *request = harness_send_now(h, 2);
    assert_false(request->is_resolved);
    char *page = harness_metrics(h);
    assert_non_null(strstr(page, "otelcol_exporter_enqueue_failed_spans{exporter=\"test/b\"} 0\n"));
    free(page);
    test_exporter_release(a, RESULT_OK);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, LOST);
    page = harness_metrics(h);
    assert_non_null(strstr(page, "otelcol_exporter_enqueue_failed_spans{exporter=\"test/a\"} 0\n"));
    assert_non_null(strstr(page, "otelcol_exporter_enqueue_failed_spans{exporter=\"test/b\"} 2\n"));
    free(page);
    test_exporter_release(a, RESULT_OK);
    test_exporter_release(b, RESULT_OK);
    harness_destroy(h);
}

static void two_pipelines_on_one_receiver_both_get_it(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test/a: {}, test/b: {}}\n" TWO_PIPELINES);
    assert_int_equal(harness_send_now(h, 4)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_exporter(h, "test/a")->delivered_items, 4);
    assert_int_equal(harness_exporter(h, "test/b")->delivered_items, 4);
    harness_destroy(h);
}

static void one_refusing_pipeline_refuses_for_both(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "exporters: {test/a: {}, test/b: {sending_queue: {queue_size: 1}}}\n" TWO_PIPELINES);
    harness_exporter(h, "test/b")->result = RESULT_HOLD;
    harness_send_now(h, 1);
    struct test_request *request = harness_send_now(h, 1);
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_int_equal(request->outcome.code, STATUS_UNAVAILABLE);
    assert_int_equal(harness_exporter(h, "test/a")->delivered_items, 2);
    assert_int_equal(harness_totals(h, TRACES).rejected, 1);
    harness_destroy(h);
}

static void one_exporter_of_two_pipelines_has_one_queue(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("exporters: {test: {sending_queue: {queue_size: 2}}}\n"
                       "service: {pipelines: {traces/a: {receivers: [test], exporters: [test]},"
                       " traces/b: {receivers: [test], exporters: [test]}}}\n");
    harness_exporter(h, "test")->result = RESULT_HOLD;
    assert_int_equal(harness_send_now(h, 3)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_send_now(h, 3)->outcome.verdict, REFUSED);
    assert_int_equal(harness_exporter(h, "test")->attempts_count, 2);
    harness_destroy(h);
}

static void signals_do_not_share_an_exporters_queue(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("exporters: {test: {sending_queue: {queue_size: 1}}}\n"
                       "service: {pipelines: {traces: {receivers: [test], exporters: [test]},"
                       " logs: {receivers: [test], exporters: [test]}}}\n");
    harness_exporter(h, "test")->result = RESULT_HOLD;
    harness_send_now(h, 1);
    struct test_request *request =
        harness_offer(h, (struct harness_offer){.signal = LOGS, .items = 6});
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_exporter_on(h, "test", 0, LOGS)->delivered_items, 6);
    assert_int_equal(harness_totals(h, LOGS).delivered, 6);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_exporter_gets_every_item),
        cmocka_unit_test(two_pipelines_wait_for_two_full_queues),
        cmocka_unit_test(a_full_queue_refuses_for_itself_alone),
        cmocka_unit_test(a_batch_that_no_queue_has_room_for_is_refused_as_a_whole),
        cmocka_unit_test(a_dead_exporter_without_queue_fails_the_client_and_not_the_other),
        cmocka_unit_test(a_dead_exporter_with_a_queue_does_not_disturb_the_other),
        cmocka_unit_test(the_client_gets_the_worst_outcome_of_several_exporters),
        cmocka_unit_test(two_blocking_queues_are_waited_for_in_turn),
        cmocka_unit_test(a_refusal_beside_a_blocking_queue_counts_when_it_stands),
        cmocka_unit_test(two_pipelines_on_one_receiver_both_get_it),
        cmocka_unit_test(one_refusing_pipeline_refuses_for_both),
        cmocka_unit_test(one_exporter_of_two_pipelines_has_one_queue),
        cmocka_unit_test(signals_do_not_share_an_exporters_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
