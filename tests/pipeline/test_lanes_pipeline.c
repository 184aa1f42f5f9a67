/* SPDX-License-Identifier: Apache-2.0 */
/* Services on several lanes: what they share (queue_size, num_consumers), how they stop together,
 * and the same on real threads, where the thread sanitizer looks on. */
#include "tests/support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/core/batch.h"
#include "tests/support/pumps.h"
#include "tests/support/telemetry_bytes.h"

#define PIPELINE "service: {pipelines: {traces: {receivers: [test], exporters: [test]}}}\n"
#define BATCH_PIPELINE                                                                             \
    "service: {pipelines: {traces: {receivers: [test], processors: [batch], exporters: "           \
    "[test]}}}\n"

static struct test_request *send_on(struct harness *h, unsigned lane)
{
    struct test_request *request =
        harness_offer(h, (struct harness_offer){.lane = lane, .items = 1});
    harness_turn(h);
    return request;
}

static struct test_exporter *exporter_on(struct harness *h, unsigned lane)
{
    return harness_exporter_on(h, "test", lane, TRACES);
}

static void queue_size_is_a_total_over_the_lanes(void **state)
{
    (void)state;
    struct harness *h =
        harness_create_on("exporters: {test: {sending_queue: {queue_size: 3}}}\n" PIPELINE, 2);
    exporter_on(h, 0)->result = RESULT_HOLD;
    exporter_on(h, 1)->result = RESULT_HOLD;
    assert_int_equal(send_on(h, 0)->outcome.verdict, ACCEPTED);
    assert_int_equal(send_on(h, 1)->outcome.verdict, ACCEPTED);
    assert_int_equal(send_on(h, 1)->outcome.verdict, ACCEPTED);
    assert_int_equal(send_on(h, 0)->outcome.verdict, REFUSED);
    test_exporter_release(exporter_on(h, 1), RESULT_OK);
    harness_turn(h);
    assert_int_equal(send_on(h, 0)->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

static void a_consumer_that_one_lane_frees_serves_the_other(void **state)
{
    (void)state;
    struct harness *h =
        harness_create_on("exporters: {test: {sending_queue: {num_consumers: 1}}}\n" PIPELINE, 2);
    exporter_on(h, 0)->result = RESULT_HOLD;
    send_on(h, 0);
    send_on(h, 1);
    assert_int_equal(exporter_on(h, 1)->attempts_count, 0);
    test_exporter_release(exporter_on(h, 0), RESULT_OK);
    harness_turn(h);
    assert_int_equal(exporter_on(h, 1)->delivered_items, 1);
    harness_destroy(h);
}

static void room_that_one_lane_frees_unblocks_the_other(void **state)
{
    (void)state;
    struct harness *h = harness_create_on("exporters: {test: {sending_queue: {queue_size: 1, "
                                          "block_on_overflow: true}}}\n" PIPELINE,
                                          2);
    exporter_on(h, 0)->result = RESULT_HOLD;
    send_on(h, 0);
    struct test_request *blocked = send_on(h, 1);
    assert_false(blocked->is_resolved);
    test_exporter_release(exporter_on(h, 0), RESULT_OK);
    harness_turn(h);
    assert_int_equal(blocked->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

static void a_lane_that_is_blocked_by_another_is_let_go_by_the_stop(void **state)
{
    (void)state;
    struct harness *h = harness_create_on("exporters: {test: {sending_queue: {queue_size: 1, "
                                          "block_on_overflow: true}}}\n" PIPELINE,
                                          2);
    exporter_on(h, 0)->result = RESULT_BUSY;
    exporter_on(h, 1)->result = RESULT_BUSY;
    send_on(h, 0);
    struct test_request *blocked = send_on(h, 1);
    harness_stop(h);
    harness_turn(h);
    assert_true(h->has_stopped);
    assert_true(blocked->is_resolved);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_SHUTDOWN], 2);
    harness_destroy(h);
}

static void lanes_are_summed_on_the_metrics_page(void **state)
{
    (void)state;
    struct harness *h = harness_create_on("exporters: {test: {}}\n" PIPELINE, 3);
    for (unsigned lane = 0; lane < 3; lane++)
        send_on(h, lane);
    char *page = harness_metrics(h);
    assert_non_null(strstr(page, "otelcol_exporter_sent_spans{exporter=\"test\"} 3\n"));
    assert_non_null(strstr(page, "spanflame_items_delivered{signal=\"traces\"} 3\n"));
    assert_non_null(strstr(page, "otelcol_exporter_queue_capacity{data_type=\"traces\","
                                 "exporter=\"test\"} 1000\n"));
    free(page);
    harness_destroy(h);
}

enum { PUMP_REQUESTS = 2000, PUMP_BURST = 20 };

static void offer_one(struct component *receiver, unsigned lane, size_t round,
                      struct test_request *request)
{
    uint64_t item = (uint64_t)lane * PUMP_REQUESTS + round;
    struct batch *batch = numbered_request(receiver->budget, TRACES, item, 1);
    assert_non_null(batch);
    test_receiver_offer(receiver, batch, request);
    batch_unref(batch);
}

static const char *const thread_yamls[] = {
    ("exporters: {test: {sending_queue: {queue_size: 8, num_consumers: 2}, retry_on_failure: "
     "{initial_interval: 1ms, max_interval: 2ms}}}\n" PIPELINE),
    ("exporters: {test: {sending_queue: {queue_size: 2, num_consumers: 1, block_on_overflow: "
     "true}}}\n" PIPELINE),
    ("processors: {batch: {timeout: 1ms, send_batch_size: 50}}\n"
     "exporters: {test: {sending_queue: {queue_size: 2, num_consumers: 1, "
     "batch: {min_size: 30, max_size: 60, flush_timeout: 1ms}}}}\n" BATCH_PIPELINE),
    ("exporters: {test: {sending_queue: {enabled: false}}}\n" PIPELINE),
    ("processors: {batch: {timeout: 1ms, send_batch_size: 50}}\nconnectors: {forward: }\n"
     "exporters: {test: {sending_queue: {queue_size: 2, num_consumers: 1}}}\n"
     "service: {pipelines: {traces: {receivers: [test], processors: [batch], exporters: "
     "[forward]}, traces/out: {receivers: [forward], exporters: [test]}}}\n"),
    ("processors: {groupbytrace: {wait_duration: 1ms}}\n"
     "exporters: {test: {sending_queue: {enabled: false}}}\nservice: {pipelines: {traces: "
     "{receivers: [test], processors: [groupbytrace], exporters: [test]}}}\n"),
};

static void run_on_threads(const char *yaml)
{
    static const struct pump_plan plan = {
        .rounds = PUMP_REQUESTS, .burst = PUMP_BURST, .round_requests = 1, .offer = offer_one};
    bool is_retried = strstr(yaml, "retry") != NULL;
    struct harness *h = harness_create_on(yaml, PUMPS);
    for (unsigned i = 0; i < PUMPS; i++) {
        struct test_exporter *exporter = exporter_on(h, i);
        exporter->script_count = TEST_SCRIPT_MAX;
        for (size_t j = 0; j < TEST_SCRIPT_MAX; j++)
            exporter->script[j] = is_retried ? RESULT_BUSY : RESULT_OK;
    }
    pumps_run(h, &plan);
    harness_check(h);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.received, PUMPS * PUMP_REQUESTS);
    /* What still waits for a retry when the stop comes may get one more "busy". */
    uint64_t dropped = is_retried ? totals.dropped : 0;
    assert_int_equal(totals.delivered + totals.rejected + dropped, PUMPS * PUMP_REQUESTS);
    assert_true(totals.delivered > 0);
    assert_int_equal(exporter_on(h, 0)->doubled_items + exporter_on(h, 1)->doubled_items, 0);
    assert_int_equal(harness_budget_used(h), 0);
    harness_discard(h);
}

static void threads_share_queues_and_lose_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(thread_yamls) / sizeof(thread_yamls[0]); i++) {
        print_message("  %s", thread_yamls[i]);
        run_on_threads(thread_yamls[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_size_is_a_total_over_the_lanes),
        cmocka_unit_test(a_consumer_that_one_lane_frees_serves_the_other),
        cmocka_unit_test(room_that_one_lane_frees_unblocks_the_other),
        cmocka_unit_test(a_lane_that_is_blocked_by_another_is_let_go_by_the_stop),
        cmocka_unit_test(lanes_are_summed_on_the_metrics_page),
        cmocka_unit_test(threads_share_queues_and_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
