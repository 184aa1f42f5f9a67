/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines behind pipelines: what goes through a connector, what the client gets, what the ledger
 * says, and that a stop loses nothing. */
#include "tests/support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/limits.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"

#define NO_QUEUE "{sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}"
#define ONE      "{sending_queue: {queue_size: 1}}"
/* One pipeline, a connector, one pipeline. */
#define LINE                                                                                       \
    "connectors: {forward: }\n"                                                                    \
    "service: {pipelines: {traces/in: {receivers: [test], exporters: [forward]},"                  \
    " traces/out: {receivers: [forward], exporters: [test/a]}}}\n"
/* One pipeline, a connector, two pipelines. */
#define FORK                                                                                       \
    "connectors: {forward: }\n"                                                                    \
    "service: {pipelines: {traces/in: {receivers: [test], exporters: [forward]},"                  \
    " traces/a: {receivers: [forward], exporters: [test/a]},"                                      \
    " traces/b: {receivers: [forward], exporters: [test/b]}}}\n"

static void items_pass_and_are_counted_once(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test/a: {}}\n" LINE);
    assert_int_equal(harness_send_now(h, 5)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_exporter(h, "test/a")->delivered_items, 5);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.received, 5);
    assert_int_equal(totals.delivered, 5);
    harness_destroy(h);
}

static void each_pipeline_behind_gets_every_item(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test/a: {}, test/b: " NO_QUEUE "}\n" FORK);
    harness_exporter(h, "test/b")->result = RESULT_HOLD;
    struct test_request *request = harness_send_now(h, 5);
    assert_false(request->is_resolved); /* the slower exporter is still at it */
    assert_int_equal(harness_totals(h, TRACES).received, 10);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 5);
    test_exporter_release(harness_exporter(h, "test/b"), RESULT_OK);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_exporter(h, "test/a")->delivered_items, 5);
    assert_int_equal(harness_exporter(h, "test/b")->delivered_items, 5);
    harness_destroy(h);
}

static void two_pipelines_join_into_one(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("connectors: {forward: }\nexporters: {test/a: {}}\n"
                       "service: {pipelines: {traces/x: {receivers: [test], exporters: [forward]},"
                       " traces/y: {receivers: [test], exporters: [forward]},"
                       " traces/out: {receivers: [forward], exporters: [test/a]}}}\n");
    assert_int_equal(harness_send_now(h, 3)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_exporter(h, "test/a")->delivered_items, 6);
    assert_int_equal(harness_exporter(h, "test/a")->doubled_items, 3);
    assert_int_equal(harness_totals(h, TRACES).received, 6);
    harness_destroy(h);
}

static void signals_stay_apart(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("connectors: {forward: }\nexporters: {test/a: {}, test/b: {}}\n"
                       "service: {pipelines: {traces/in: {receivers: [test], exporters: [forward]},"
                       " logs/in: {receivers: [test], exporters: [forward]},"
                       " profiles/in: {receivers: [test], exporters: [forward]},"
                       " traces/out: {receivers: [forward], exporters: [test/a]},"
                       " profiles/out: {receivers: [forward], exporters: [test/a]},"
                       " logs/out: {receivers: [forward], exporters: [test/b]}}}\n");
    harness_send_now(h, 2);
    harness_offer(h, (struct harness_offer){.signal = LOGS, .items = 3});
    harness_turn(h);
    harness_offer_bytes(h, 0, PROFILES, slice_of("\n\0", 2), 4);
    assert_int_equal(harness_exporter_on(h, "test/a", 0, TRACES)->delivered_items, 2);
    assert_int_equal(harness_exporter_on(h, "test/b", 0, LOGS)->delivered_items, 3);
    assert_int_equal(harness_exporter_on(h, "test/a", 0, PROFILES)->delivered_items, 4);
    char *page = harness_metrics(h);
    assert_non_null(strstr(page, "spanflame_connector_consumed_spans{connector=\"forward\"} 2"));
    assert_non_null(
        strstr(page, "spanflame_connector_consumed_log_records{connector=\"forward\"} 3"));
    assert_non_null(strstr(page, "spanflame_items_received{signal=\"traces\"} 2"));
    free(page);
    harness_destroy(h);
}

static void a_refusal_downstream_reaches_the_client(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test/a: " ONE "}\n" LINE);
    struct test_exporter *a = harness_exporter(h, "test/a");
    a->result = RESULT_HOLD;
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    struct test_request *request = harness_send_now(h, 2);
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_int_equal(request->outcome.code, STATUS_UNAVAILABLE);
    assert_string_equal(request->text, "sending queue is full");
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.received, 3);
    assert_int_equal(totals.rejected, 2);
    assert_int_equal(totals.by_reason[LOSS_BUSY], 2);
    test_exporter_release(a, RESULT_OK);
    harness_destroy(h);
}

static void what_a_back_end_refuses_for_good_is_lost_once(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test/a: " NO_QUEUE "}\n" LINE);
    harness_exporter(h, "test/a")->result = RESULT_PERMANENT;
    struct test_request *request = harness_send_now(h, 2);
    assert_int_equal(request->outcome.verdict, LOST);
    assert_int_equal(request->outcome.code, STATUS_INVALID_ARGUMENT);
    assert_string_equal(request->text, "back-end says no");
    assert_int_equal(harness_totals(h, TRACES).rejected, 2);
    harness_exporter(h, "test/a")->result = RESULT_PARTIAL;
    request = harness_send_now(h, 4);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(request->outcome.rejected_items, 1);
    harness_destroy(h);
}

/* Nobody knows whether they rejected the same items. */
static void two_pipelines_reject_no_more_than_was_sent(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("exporters: {test/a: " NO_QUEUE ", test/b: " NO_QUEUE "}\n" FORK);
    harness_exporter(h, "test/a")->result = RESULT_PARTIAL;
    harness_exporter(h, "test/b")->result = RESULT_PARTIAL;
    assert_int_equal(harness_send_now(h, 3)->outcome.rejected_items, 2);
    assert_int_equal(harness_send_now(h, 1)->outcome.rejected_items, 1);
    assert_int_equal(harness_totals(h, TRACES).rejected, 4);
    harness_destroy(h);
}

static void what_one_pipeline_refuses_is_lost_when_another_took_it(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test/a: {}, test/b: " ONE "}\n" FORK);
    struct test_exporter *b = harness_exporter(h, "test/b");
    b->result = RESULT_HOLD;
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    struct test_request *request = harness_send_now(h, 2);
    assert_int_equal(request->outcome.verdict, LOST);
    assert_int_equal(request->outcome.code, STATUS_UNAVAILABLE);
    assert_int_equal(harness_exporter(h, "test/a")->delivered_items, 3);
    assert_int_equal(harness_totals(h, TRACES).rejected, 2);
    test_exporter_release(b, RESULT_OK);
    harness_destroy(h);
}

static void what_all_pipelines_refuse_is_refused_as_a_whole(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test/a: " ONE ", test/b: " ONE "}\n" FORK);
    struct test_exporter *a = harness_exporter(h, "test/a");
    struct test_exporter *b = harness_exporter(h, "test/b");
    a->result = b->result = RESULT_HOLD;
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_send_now(h, 2)->outcome.verdict, REFUSED);
    assert_int_equal(harness_totals(h, TRACES).rejected, 4);
    a->result = b->result = RESULT_OK;
    test_exporter_release(a, RESULT_OK);
    test_exporter_release(b, RESULT_OK);
    harness_turn(h);
    assert_int_equal(harness_send_now(h, 2)->outcome.verdict, ACCEPTED);
    assert_int_equal(a->doubled_items + b->doubled_items, 0);
    harness_destroy(h);
}

#define BESIDE                                                                                     \
    "connectors: {forward: }\n"                                                                    \
    "service: {pipelines: {traces/in: {receivers: [test], exporters: [test/a, forward]},"          \
    " traces/out: {receivers: [forward], exporters: [test/b]}}}\n"

static void a_connector_stands_beside_exporters(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test/a: " ONE ", test/b: " ONE "}\n" BESIDE);
    struct test_exporter *a = harness_exporter(h, "test/a");
    struct test_exporter *b = harness_exporter(h, "test/b");
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    b->result = RESULT_HOLD;
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    /* Behind the connector there is no room; beside it there is. */
    assert_int_equal(harness_send_now(h, 4)->outcome.verdict, LOST);
    assert_int_equal(harness_totals(h, TRACES).rejected, 4);
    a->result = RESULT_HOLD;
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, LOST);
    /* Now nowhere. */
    assert_int_equal(harness_send_now(h, 8)->outcome.verdict, REFUSED);
    assert_int_equal(harness_totals(h, TRACES).rejected, 5 + 16);
    test_exporter_release(b, RESULT_OK);
    harness_turn(h);
    /* No queue beside it, but one behind it. */
    b->result = RESULT_OK;
    assert_int_equal(harness_send_now(h, 2)->outcome.verdict, LOST);
    assert_int_equal(harness_totals(h, TRACES).rejected, 5 + 16 + 2);
    assert_int_equal(b->delivered_items, 1 + 1 + 2);
    test_exporter_release(a, RESULT_OK);
    harness_destroy(h);
}

static void batches_that_are_refused_behind_are_offered_again(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "connectors: {forward: }\nprocessors: {batch: {timeout: 0s}}\n"
        "exporters: {test/a: " ONE "}\n"
        "service: {pipelines: {traces/in: {receivers: [test], processors: [batch], exporters: "
        "[forward]}, traces/out: {receivers: [forward], exporters: [test/a]}}}\n");
    struct test_exporter *a = harness_exporter(h, "test/a");
    a->result = RESULT_HOLD;
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_send_now(h, 2)->outcome.verdict, ACCEPTED);
    harness_advance(h, 1 * S);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 3);
    a->result = RESULT_OK;
    test_exporter_release(a, RESULT_OK);
    harness_advance(h, 1 * S);
    assert_int_equal(a->delivered_items, 3);
    assert_int_equal(harness_totals(h, TRACES).rejected + harness_totals(h, TRACES).dropped, 0);
    harness_destroy(h);
}

/* A request that waits for room holds back those behind it, through the connector, and none is
 * refused. */
static void a_slow_back_end_holds_back_the_pipelines_before_it(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "exporters: {test/a: {sending_queue: {queue_size: 2, num_consumers: 1, block_on_overflow: "
        "true}}}\n" LINE);
    struct test_exporter *a = harness_exporter(h, "test/a");
    struct test_request *requests[100];
    a->result = RESULT_HOLD;
    unsigned resolved = 0;
    for (size_t i = 0; i < 100; i++) {
        requests[i] = harness_send_now(h, 1);
        resolved += requests[i]->is_resolved;
    }
    assert_int_equal(resolved, 2);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 100);
    harness_let_go(h);
    harness_advance(h, 1 * S);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(requests[i]->outcome.verdict, ACCEPTED);
    assert_int_equal(a->delivered_items, 100);
    assert_int_equal(a->doubled_items, 0);
    harness_destroy(h);
}

#define CHAIN                                                                                      \
    "connectors: {forward/x: , forward/y: }\n"                                                     \
    "processors: {batch: {timeout: 10s}, pass: {}, pass/2: {}, pass/3: {}}\n"                      \
    "service: {pipelines: {"                                                                       \
    " traces/c: {receivers: [forward/y], processors: [batch, pass/3], exporters: [test/a]},"       \
    " traces/b: {receivers: [forward/x], processors: [pass/2, batch], exporters: [forward/y]},"    \
    " traces/a: {receivers: [test], processors: [batch, pass], exporters: [forward/x, test/b]}"    \
    "}}\n"

static void a_stop_drains_a_chain_front_to_back(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test/a: {}, test/b: {}}\n" CHAIN);
    for (int i = 0; i < 7; i++)
        assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    /* All of it is in the first batch; two more wait behind. */
    assert_int_equal(harness_totals(h, TRACES).in_flight, 14);
    harness_stop(h);
    harness_advance(h, 1 * S);
    assert_true(h->has_stopped);
    assert_false(h->was_forced);
    assert_int_equal(harness_exporter(h, "test/a")->delivered_items, 7);
    assert_int_equal(harness_exporter(h, "test/b")->delivered_items, 7);
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    assert_non_null(strstr(test_events(), "stop processor pass\nstop processor pass/2\n"
                                          "stop processor pass/3\n"));
    harness_destroy(h);
}

static void pipelines_start_back_to_front(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test/a: {}, test/b: {}}\n" CHAIN);
    assert_non_null(strstr(test_events(), "start processor pass/3\nstart processor pass/2\n"
                                          "start processor pass\nstart receiver test\n"));
    harness_destroy(h);
}

static void a_forced_stop_counts_what_is_left(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test/a: {}, test/b: {}}\n" FORK);
    harness_exporter(h, "test/a")->result = RESULT_HOLD;
    harness_send_now(h, 3);
    harness_stop(h);
    harness_advance(h, 40 * S);
    assert_true(h->was_forced);
    assert_int_equal(service_abandoned_items(h->service), 3);
    assert_int_equal(harness_totals(h, TRACES).dropped, 3);
    harness_abandon(h);
}

static void lanes_have_connectors_of_their_own(void **state)
{
    (void)state;
    struct harness *h = harness_create_on("exporters: {test/a: {}, test/b: {}}\n" CHAIN, 2);
    for (unsigned i = 0; i < 10; i++)
        harness_offer(h, (struct harness_offer){.lane = i % 2, .items = 1 + i % 2});
    harness_turn(h);
    harness_stop(h);
    harness_advance(h, 1 * S);
    assert_true(h->has_stopped);
    for (unsigned lane = 0; lane < 2; lane++)
        assert_int_equal(harness_exporter_on(h, "test/a", lane, TRACES)->delivered_items,
                         5 * (1 + lane));
    harness_destroy(h);
}

static void a_drop_on_the_way_counts_for_all_exporters_behind(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "connectors: {forward: }\nexporters: {test/a: {}, test/b: {}}\n"
        "processors: {memory_limiter: {check_interval: 1s, limit_mib: 10, spike_limit_mib: 4}}\n"
        "service: {pipelines: {traces/in: {receivers: [test], exporters: [forward]},"
        " traces/out: {receivers: [forward], processors: [memory_limiter], exporters: [test/a, "
        "test/b]}}}\n");
    budget_take(&h->service->budget, 7 * MIB);
    struct test_request *request = harness_send_now(h, 3);
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_MEMORY], 6);
    assert_int_equal(harness_totals(h, TRACES).received, 6);
    budget_return(&h->service->budget, 7 * MIB);
    harness_destroy(h);
}

/* The budget refuses at the first pipeline alone: what it admitted goes all the way. */
static void a_budget_that_is_used_up_refuses_nothing_behind(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("exporters: {test/a: " NO_QUEUE ", test/b: " NO_QUEUE "}\n" FORK);
    struct budget *budget = &h->service->budget;
    struct test_request *request = harness_send(h, 3); /* in the ring of traces/in */
    uint64_t left = budget_limit(budget) - budget_used(budget);
    budget_take(budget, left);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.delivered, 6);
    budget_return(budget, left);
    harness_destroy(h);
}

#define COUNTED                                                                                    \
    "connectors: {test_count: }\nexporters: {test/a: {}, test/b: {}}\n"                            \
    "service: {pipelines: {traces: {receivers: [test], exporters: [test_count, test/a]},"          \
    " logs: {receivers: [test_count], exporters: [test/b]}}}\n"

/* Of another signal: what goes in ends there, what comes out is new. */
static void a_connector_may_make_something_else(void **state)
{
    (void)state;
    struct harness *h = harness_create(COUNTED);
    struct test_connector *count =
        (struct test_connector *)harness_connector(h, "test_count", TRACES, LOGS);
    assert_int_equal(harness_send_now(h, 3)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_send_now(h, 4)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_totals(h, TRACES).received, 14);
    assert_int_equal(harness_totals(h, TRACES).delivered, 14);
    count->refuses = true;
    struct test_request *request = harness_send_now(h, 5);
    assert_int_equal(request->outcome.verdict, LOST);
    assert_string_equal(request->text, "connector is busy");
    assert_int_equal(harness_totals(h, TRACES).rejected, 5);
    /* It tells at its stop, when the pipeline behind it still takes it. */
    harness_stop(h);
    harness_advance(h, 1 * S);
    assert_int_equal(harness_exporter_on(h, "test/b", 0, LOGS)->delivered_items, 2);
    assert_int_equal(harness_totals(h, LOGS).received, 2);
    harness_destroy(h);
}

static void a_pipeline_that_is_alone_may_refuse(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("connectors: {test_count: }\nexporters: {test/b: {}}\n"
                       "service: {pipelines: {traces: {receivers: [test], exporters: [test_count]},"
                       " logs: {receivers: [test_count], exporters: [test/b]}}}\n");
    struct test_connector *count =
        (struct test_connector *)harness_connector(h, "test_count", TRACES, LOGS);
    assert_int_equal(harness_send_now(h, 3)->outcome.verdict, ACCEPTED);
    count->refuses = true;
    assert_int_equal(harness_send_now(h, 5)->outcome.verdict, REFUSED);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.received, 8);
    assert_int_equal(totals.delivered, 3);
    assert_int_equal(totals.rejected, 5);
    harness_destroy(h);
}

static void a_start_that_fails_can_be_stopped(void **state)
{
    (void)state;
    assert_null(harness_try_build("exporters: {test/a: {fails_to: create}}\n" LINE, 2));
    assert_true(harness_is_wrong("connectors: {forward: }\nexporters: {test/a: }\n"
                                 "service: {pipelines: {traces: {receivers: [test], exporters: "
                                 "[test/a, forward]}}}\n",
                                 "connector \"forward\" used as exporter in [traces] pipeline"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_pass_and_are_counted_once),
        cmocka_unit_test(each_pipeline_behind_gets_every_item),
        cmocka_unit_test(two_pipelines_join_into_one),
        cmocka_unit_test(signals_stay_apart),
        cmocka_unit_test(a_refusal_downstream_reaches_the_client),
        cmocka_unit_test(what_a_back_end_refuses_for_good_is_lost_once),
        cmocka_unit_test(two_pipelines_reject_no_more_than_was_sent),
        cmocka_unit_test(what_one_pipeline_refuses_is_lost_when_another_took_it),
        cmocka_unit_test(what_all_pipelines_refuse_is_refused_as_a_whole),
        cmocka_unit_test(a_connector_stands_beside_exporters),
        cmocka_unit_test(batches_that_are_refused_behind_are_offered_again),
        cmocka_unit_test(a_slow_back_end_holds_back_the_pipelines_before_it),
        cmocka_unit_test(a_stop_drains_a_chain_front_to_back),
        cmocka_unit_test(pipelines_start_back_to_front),
        cmocka_unit_test(a_forced_stop_counts_what_is_left),
        cmocka_unit_test(lanes_have_connectors_of_their_own),
        cmocka_unit_test(a_drop_on_the_way_counts_for_all_exporters_behind),
        cmocka_unit_test(a_budget_that_is_used_up_refuses_nothing_behind),
        cmocka_unit_test(a_connector_may_make_something_else),
        cmocka_unit_test(a_pipeline_that_is_alone_may_refuse),
        cmocka_unit_test(a_start_that_fails_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
