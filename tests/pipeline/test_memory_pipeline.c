/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: the memory_limiter's soft and hard limits over the byte budget, and what happens when the
 * allocator refuses, once at each place where it may. */
#include "tests/support/harness.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/machine.h"
#include "src/base/mem.h"
#include "src/core/client_info.h"
#include "src/otlp/wire.h"
#include "src/pipeline/pipeline_limits.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PIPELINE                                                                                   \
    "service: {pipelines: {traces: {receivers: [test], processors: [memory_limiter], "             \
    "exporters: [test]}}}\n"
#define LIMITED(keys)                                                                              \
    "processors: {memory_limiter: {check_interval: 1s, " keys "}}\nexporters: {test: "             \
    "{}}\n" PIPELINE

static void above_the_soft_limit_requests_are_refused_until_it_is_below(void **state)
{
    (void)state;
    struct harness *h = harness_create(LIMITED("limit_mib: 10, spike_limit_mib: 4"));
    struct budget *budget = &h->service->budget;
    assert_int_equal(budget_limit(budget), 10 * MIB);
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    budget_take(budget, 6 * MIB);
    struct test_request *refused = harness_send_now(h, 2);
    assert_int_equal(refused->outcome.verdict, REFUSED);
    assert_int_equal(refused->outcome.code, STATUS_UNAVAILABLE);
    assert_false(refused->outcome.is_permanent);
    assert_true(refused->outcome.retry_after_ns > 0);
    assert_string_equal(refused->text, "data refused due to high memory usage");
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_MEMORY], 2);
    budget_return(budget, 1 * MIB);
    assert_int_equal(harness_send_now(h, 3)->outcome.verdict, ACCEPTED);
    budget_return(budget, 5 * MIB);
    char *page = harness_metrics(h);
    assert_non_null(strstr(
        page, "otelcol_processor_memory_limiter_accepted_spans{processor=\"memory_limiter\"} 4\n"));
    assert_non_null(strstr(
        page, "otelcol_processor_memory_limiter_refused_spans{processor=\"memory_limiter\"} 2\n"));
    free(page);
    harness_destroy(h);
}

/* Behind batch nobody can be asked to send later. */
static void acknowledged_requests_pass_above_the_soft_limit(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1s}, memory_limiter: {check_interval: 1s, limit_mib: 10}}\n"
        "exporters: {test: {}}\nservice: {pipelines: {traces: {receivers: [test], "
        "processors: [batch, memory_limiter], exporters: [test]}}}\n");
    struct budget *budget = &h->service->budget;
    assert_int_equal(harness_send_now(h, 3)->outcome.verdict, ACCEPTED);
    budget_take(budget, 9 * MIB);
    harness_advance(h, NS_PER_S);
    assert_int_equal(harness_totals(h, TRACES).delivered, 3);
    budget_return(budget, 9 * MIB);
    harness_destroy(h);
}

#define LONG_QUEUE                                                                                 \
    "exporters: {test: {sending_queue: {queue_size: 1000000, num_consumers: 1}}}\n"                \
    "service: {budget_mib: 1, pipelines: {traces: {receivers: [test], "

/* Whatever a queue's limit, what holds its requests is charged beside their few bytes. */
static void requests_in_a_queue_are_charged(void **state)
{
    enum { MANY = HARNESS_REQUESTS_MAX - 1, REQUEST_BYTES_MIN = 600 };
    (void)state;
    struct harness *h = harness_create(LONG_QUEUE "exporters: [test]}}}\n");
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_HOLD;
    uint64_t taken = 0;
    for (struct test_request *request; taken < MANY; taken++) {
        request = harness_send_now(h, 1);
        if (request == NULL || request->outcome.verdict == REFUSED)
            break;
    }
    assert_true(taken > 1000);
    assert_true(taken * REQUEST_BYTES_MIN <= MIB);
    harness_let_go(h);
    harness_turn(h);
    assert_int_equal(harness_totals(h, TRACES).delivered, taken);
    struct test_request *request = harness_send(h, 1);
    budget_take(&h->service->budget, 2 * MIB);
    harness_turn(h);
    budget_return(&h->service->budget, 2 * MIB);
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_int_equal(request->outcome.code, STATUS_UNAVAILABLE);
    assert_false(request->outcome.is_permanent);
    assert_true(harness_totals(h, TRACES).by_reason[LOSS_MEMORY] >= 1);
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

/* One request becomes many. */
static void pieces_wait_for_memory_in_front_of_a_queue(void **state)
{
    enum { PIECES = 900 };
    (void)state;
    struct harness *h =
        harness_create("processors: {batch: {timeout: 0s, send_batch_size: 1, send_batch_max_size: "
                       "1}}\n" LONG_QUEUE "processors: [batch], exporters: [test]}}}\n");
    struct test_exporter *exporter = harness_exporter(h, "test");
    const struct budget *budget = &h->service->budget;
    exporter->result = RESULT_HOLD;
    assert_int_equal(harness_send_now(h, PIECES)->outcome.verdict, ACCEPTED);
    harness_advance(h, 30 * S);
    assert_int_equal(harness_totals(h, TRACES).in_flight, PIECES);
    assert_true(harness_budget_used(h) > MIB);
    harness_let_go(h);
    harness_advance(h, 30 * S);
    assert_int_equal(harness_totals(h, TRACES).delivered, PIECES);
    assert_true(atomic_load(&budget->high_water) <= MIB / 100 * 115);
    harness_destroy(h);
}

/* Requests that are to be sent again for ever hold their memory as long as that takes, and what
 * waits for it is kept as if the queue itself were full. */
static void pieces_wait_as_long_as_the_back_end_is_away(void **state)
{
    enum { PIECES = 900 };
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 0s, send_batch_size: 1, send_batch_max_size: 1}}\n"
        "exporters: {test: {sending_queue: {queue_size: 1000000, num_consumers: 1}, "
        "retry_on_failure: {max_elapsed_time: 0s}}}\n"
        "service: {budget_mib: 1, pipelines: {traces: {receivers: [test], processors: [batch], "
        "exporters: [test]}}}\n");
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_BUSY;
    assert_int_equal(harness_send_now(h, PIECES)->outcome.verdict, ACCEPTED);
    harness_advance(h, 3 * DOWNSTREAM_KEPT_OUT_MAX_NS);
    assert_true(harness_budget_used(h) > MIB / 100 * 95);
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    harness_let_go(h);
    harness_advance(h, 60 * S);
    assert_int_equal(harness_totals(h, TRACES).delivered, PIECES);
    harness_destroy(h);
}

/* A back-end that is away keeps out only what its requests leave no room for: what waits for
 * others, or never fits, is not kept for ever. */
static void a_back_end_that_is_away_keeps_no_batch_that_waits_for_others(void **state)
{
    enum { REQUESTS = 150 };
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1s}}\n"
        "exporters: {test/a: {sending_queue: {queue_size: 1000000}, "
        "retry_on_failure: {max_elapsed_time: 0s}}, test/b: {}}\n"
        "service: {budget_mib: 1, pipelines: {traces/a: {receivers: [test], exporters: [test/a]}, "
        "traces/b: {receivers: [test], processors: [batch], exporters: [test/b]}}}\n");
    struct budget *budget = &h->service->budget;
    harness_exporter(h, "test/a")->result = RESULT_BUSY;
    for (int i = 0; i < REQUESTS; i++)
        assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    assert_true(budget_is_leaving(budget));
    budget_take(budget, 2 * MIB);
    harness_advance(h, 3 * DOWNSTREAM_KEPT_OUT_MAX_NS);
    budget_return(budget, 2 * MIB);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_MEMORY], REQUESTS);
    harness_let_go(h);
    harness_advance(h, 60 * S);
    assert_int_equal(harness_totals(h, TRACES).delivered, REQUESTS);
    harness_destroy(h);
}

/* Edits of what can be refused no more go beyond the limit, but only so far. */
static void edits_wait_while_the_budget_is_overdrawn(void **state)
{
    static const char *const editors[] = {"attributes", "resource"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char yaml[1024];
        snprintf(yaml, sizeof(yaml),
                 "processors: {batch: {timeout: 1s}, %s: {%s: [{key: k, action: "
                 "delete}]}, memory_limiter: {check_interval: 1s, limit_mib: 16}}\n"
                 "exporters: {test: {}}\nservice: {pipelines: {traces: {receivers: [test], "
                 "processors: [memory_limiter, batch, %s], exporters: [test]}}}\n",
                 editors[i], i == 0 ? "actions" : "attributes", editors[i]);
        struct harness *h = harness_create(yaml);
        struct budget *budget = &h->service->budget;
        assert_int_equal(harness_send_now(h, 3)->outcome.verdict, ACCEPTED);
        budget_take(budget, 16 * MIB);
        harness_advance(h, NS_PER_S);
        assert_int_equal(harness_totals(h, TRACES).delivered, 3);
        budget_return(budget, 16 * MIB);
        assert_int_equal(harness_send_now(h, 2)->outcome.verdict, ACCEPTED);
        budget_take(budget, 18 * MIB);
        harness_advance(h, NS_PER_S);
        assert_int_equal(harness_totals(h, TRACES).delivered, 3);
        budget_return(budget, 18 * MIB);
        harness_advance(h, NS_PER_S);
        assert_int_equal(harness_totals(h, TRACES).delivered, 5);
        harness_destroy(h);
    }
}

/* A message with one field; content lies in room, and so does the result. */
static struct slice wrap(uint32_t number, struct slice content, uint8_t *room, size_t size)
{
    struct wire_writer writer = wire_writer_of(room, size);
    wire_write_bytes(&writer, number, content);
    assert_false(writer.has_failed);
    return wire_written(&writer);
}

/* Hashes are many times as long as what they replace. What becomes of a request that nobody would
 * send again has the margin at most. */
static void redaction_grows_no_further_than_the_margin(void **state)
{
    enum { SPANS = 10000, VALUE_BYTES = 10, ROOM = 64, PATH = 3 };
    static const uint32_t path[PATH] = {1, 2, 9}; /* AnyValue, attribute, Span */
    static uint8_t rooms[PATH + 1][ROOM];
    static uint8_t spans[SPANS * ROOM];
    static uint8_t scope[SPANS * ROOM + 64];
    static uint8_t request[SPANS * ROOM + 128];
    struct wire_writer writer = wire_writer_of(spans, sizeof(spans));
    (void)state;
    memset(rooms[PATH], 'x', VALUE_BYTES);
    struct slice part = slice_of(rooms[PATH], VALUE_BYTES);
    for (size_t i = 0; i < PATH; i++)
        part = wrap(path[i], part, rooms[i], ROOM);
    for (size_t i = 0; i < SPANS; i++)
        wire_write_bytes(&writer, 2, part);
    part = wrap(2, wire_written(&writer), scope, sizeof(scope));
    part = wrap(1, part, request, sizeof(request));
    for (uint64_t mib = 4; mib <= 64; mib += 60) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml),
                 "processors: {batch: {timeout: 1s}, redaction: {allow_all_keys: true, "
                 "blocked_values: [x], hash_function: sha3}}\nexporters: {test: {}}\n"
                 "service: {budget_mib: %d, pipelines: {traces: {receivers: [test], "
                 "processors: [batch, redaction], exporters: [test]}}}\n",
                 (int)mib);
        struct harness *h = harness_create(yaml);
        harness_exporter(h, "test")->has_own_items = true;
        harness_offer_bytes(h, 0, TRACES, part, SPANS);
        harness_advance(h, 2 * S);
        harness_turn_helped(h, 0);
        assert_int_equal(harness_totals(h, TRACES).delivered, mib == 64 ? SPANS : 0);
        harness_destroy(h);
    }
}

/* What is edited on its way to a queue takes memory beside what it was, and only what waits in
 * front of the queue holds the rest. */
static void edited_batches_get_past_a_full_budget_into_a_queue(void **state)
{
    enum { TENANTS = 8, ITEMS = 7900 };
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1s, send_batch_size: 100000, metadata_keys: [tenant]}, "
        "attributes: {actions: [{key: k, action: insert, value: abcdefghijklmnop}]}}\n"
        "exporters: {test: {sending_queue: {queue_size: 1000}}}\n"
        "service: {budget_mib: 1, pipelines: {traces: {receivers: [test], "
        "processors: [batch, attributes], exporters: [test]}}}\n");
    uint64_t taken = 0;
    harness_exporter(h, "test")->has_own_items = true;
    for (int i = 0; i < TENANTS; i++) {
        char tenant[24];
        snprintf(tenant, sizeof(tenant), "%d", i);
        struct client_metadata row = {"tenant", tenant};
        struct client_info *client = client_info_create("10.0.0.1", &row, 1);
        struct test_request *request =
            harness_offer(h, (struct harness_offer){.items = ITEMS, .client = client});
        client_info_unref(client);
        if (request == NULL)
            break;
        harness_turn(h);
        taken += request->outcome.verdict == ACCEPTED ? ITEMS : 0;
    }
    harness_advance(h, 2 * S);
    harness_advance(h, 120 * S);
    assert_int_equal(harness_totals(h, TRACES).delivered, taken);
    harness_destroy(h);
}

/* Of two fan-outs behind a connector, the first may take what was left of the memory: what batch
 * has told its clients is accepted is then lost to the second. */
static void memory_for_one_of_two_pipelines_is_enough_for_none(void **state)
{
    enum { REQUESTS = 600, GIVEN_BACK = 700 };
    static const char *const services[] = {
        "traces: {receivers: [test], processors: [batch], exporters: [forward]}, "
        "traces/a: {receivers: [forward], exporters: [test/a]}, "
        "traces/b: {receivers: [forward], exporters: [test/b]}",
        "traces: {receivers: [test], processors: [batch], exporters: [forward, test/b]}, "
        "traces/a: {receivers: [forward], exporters: [test/a]}"};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        char yaml[1024];
        snprintf(yaml, sizeof(yaml),
                 "connectors: {forward: }\nprocessors: {batch: {timeout: 0s}}\n"
                 "exporters: {test/a: {sending_queue: {queue_size: 1000000, num_consumers: 1}}, "
                 "test/b: {sending_queue: {queue_size: 1000000, num_consumers: 1}}}\n"
                 "service: {budget_mib: 1, pipelines: {%s}}\n",
                 services[k]);
        struct harness *h = harness_create(yaml);
        struct budget *budget = &h->service->budget;
        uint64_t others = budget_limit(budget) - 200 * KIB;
        uint64_t accepted = 0;
        harness_exporter(h, "test/a")->result = RESULT_HOLD;
        harness_exporter(h, "test/b")->result = RESULT_HOLD;
        budget_take(budget, others);
        for (int i = 0; i < REQUESTS; i++) {
            const struct test_request *request = harness_send_now(h, 1);
            if (request == NULL)
                break;
            accepted += request->outcome.verdict == ACCEPTED;
            if (i % 7 == 0) { /* others give a little back now and then */
                budget_return(budget, GIVEN_BACK);
                others -= GIVEN_BACK;
            }
            harness_advance(h, 20 * MS);
        }
        budget_return(budget, others);
        harness_let_go(h);
        harness_advance(h, 2 * S);
        const struct harness_totals totals = harness_totals(h, TRACES);
        assert_int_equal(totals.dropped, 0);
        assert_int_equal(totals.delivered, 2 * accepted);
        harness_destroy(h);
    }
}

struct limit_case {
    const char *keys;
    uint64_t soft_mib; /* of a hard limit of 10 MiB; 0: the configuration is wrong */
};

static const struct limit_case limit_cases[] = {
    {"limit_mib: 10", 8},
    {"limit_mib: 10, spike_limit_mib: 3", 7},
    {"limit_mib: 10, limit_percentage: 100, spike_limit_percentage: 90", 8},
    {"limit_mib: 10, spike_limit_mib: 10", 0},
    {"limit_percentage: 50, spike_limit_percentage: 50", 0},
    {"limit_percentage: 101", 0},
    {"limit_mib: 0", 0},
    {"limit_mib: 10, check_interval: 0s", 0},
    {"limit_mib: 10, min_gc_interval_when_soft_limited: 1s, "
     "min_gc_interval_when_hard_limited: 2s",
     0},
};

static void limits_are_taken_as_configured(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(limit_cases) / sizeof(limit_cases[0]); i++) {
        const struct limit_case *row = &limit_cases[i];
        const char *interval = strstr(row->keys, "check_interval") ? "" : "check_interval: 1s, ";
        char yaml[512];
        print_message("  %s\n", row->keys);
        snprintf(yaml, sizeof(yaml),
                 "processors: {memory_limiter: {%s%s}}\nexporters: {test: {}}\n" PIPELINE, interval,
                 row->keys);
        struct harness *h = harness_try_build(yaml, 1);
        assert_true((h != NULL) == (row->soft_mib > 0));
        if (h == NULL)
            continue;
        harness_discard(h);
        h = harness_create(yaml);
        budget_take(&h->service->budget, row->soft_mib * MIB - 4096);
        assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
        budget_take(&h->service->budget, 4096);
        assert_int_equal(harness_send_now(h, 1)->outcome.verdict, REFUSED);
        budget_return(&h->service->budget, row->soft_mib * MIB);
        harness_destroy(h);
    }
}

static void percentages_are_of_the_memory_there_is(void **state)
{
    (void)state;
    struct harness *h = harness_create("processors: {memory_limiter: {check_interval: 1s, "
                                       "limit_percentage: 40, spike_limit_percentage: 10}}\n"
                                       "exporters: {test: {}}\n" PIPELINE);
    assert_int_equal(budget_limit(&h->service->budget), machine_memory_bytes() / 100 * 40);
    uint64_t soft = machine_memory_bytes() / 100 * 30;
    budget_take(&h->service->budget, soft - 4096);
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    budget_take(&h->service->budget, 4096);
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, REFUSED);
    budget_return(&h->service->budget, soft);
    harness_destroy(h);
}

static void the_hard_limit_is_the_budgets(void **state)
{
    (void)state;
    struct harness *h = harness_create(LIMITED("limit_mib: 1, spike_limit_mib: 0"));
    struct budget *budget = &h->service->budget;
    struct buffer *buffer = buffer_try_create(budget, (size_t)MIB - 512);
    assert_non_null(buffer);
    assert_null(harness_send(h, 1000));
    buffer_unref(buffer);
    assert_int_equal(harness_send_now(h, 1000)->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

static void the_budget_is_charged_until_the_export_has_ended(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test: {}}\nservice: {pipelines: {traces: "
                                       "{receivers: [test], exporters: [test]}}}\n");
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_HOLD;
    harness_send_now(h, 100);
    uint64_t used = harness_budget_used(h);
    assert_true(used >= 100 * 12);
    harness_advance(h, 60 * S);
    assert_int_equal(harness_budget_used(h), used);
    test_exporter_release(exporter, RESULT_OK);
    assert_int_equal(harness_budget_used(h), 0);
    harness_destroy(h);
}

/* Everything that the pipeline can do with memory: gathering, cutting, queueing, retrying. */
static const char torture_yaml[] =
    "processors: {batch: {timeout: 100ms, send_batch_size: 7, send_batch_max_size: 7}}\n"
    "exporters: {test/a: {sending_queue: {queue_size: 4, batch: {min_size: 5, max_size: 5}}},"
    " test/b: {sending_queue: {enabled: false}}}\n"
    "service: {pipelines: {traces: {receivers: [test], processors: [batch], exporters: [test/a]},"
    " traces/direct: {receivers: [test], exporters: [test/b]}}}\n";

/* True when the service could be built at all. */
static bool run_scenario(void)
{
    struct harness *h = harness_try_build(torture_yaml, 1);
    if (h == NULL)
        return false;
    struct error error = {.text = ""};
    assert_true(service_start(h->service, &error));
    harness_exporter(h, "test/a")->script[0] = RESULT_BUSY;
    harness_exporter(h, "test/a")->script[1] = RESULT_PERMANENT;
    harness_exporter(h, "test/a")->script_count = 2;
    harness_exporter(h, "test/b")->script[0] = RESULT_BUSY;
    harness_exporter(h, "test/b")->script_count = 1;
    for (uint64_t i = 0; i < 12; i++) {
        struct test_request *request = harness_send(h, 1 + i % 5);
        if (request != NULL)
            harness_advance(h, 40 * MS);
    }
    harness_advance(h, 10 * S);
    assert_int_equal(harness_exporter(h, "test/a")->doubled_items, 0);
    assert_int_equal(harness_exporter(h, "test/b")->doubled_items, 0);
    harness_destroy(h);
    return true;
}

static void an_allocation_refused_anywhere_loses_nothing_silently(void **state)
{
    (void)state;
    uint64_t before = mem_tries();
    assert_true(run_scenario());
    uint64_t tries = mem_tries() - before;
    assert_true(tries >= 12); /* one body each, and what a processor may try */
    for (uint64_t n = 1; n <= tries; n++) {
        mem_refuse_nth(n);
        run_scenario();
    }
    mem_refuse_nth(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(above_the_soft_limit_requests_are_refused_until_it_is_below),
        cmocka_unit_test(acknowledged_requests_pass_above_the_soft_limit),
        cmocka_unit_test(requests_in_a_queue_are_charged),
        cmocka_unit_test(pieces_wait_for_memory_in_front_of_a_queue),
        cmocka_unit_test(pieces_wait_as_long_as_the_back_end_is_away),
        cmocka_unit_test(a_back_end_that_is_away_keeps_no_batch_that_waits_for_others),
        cmocka_unit_test(edits_wait_while_the_budget_is_overdrawn),
        cmocka_unit_test(redaction_grows_no_further_than_the_margin),
        cmocka_unit_test(edited_batches_get_past_a_full_budget_into_a_queue),
        cmocka_unit_test(memory_for_one_of_two_pipelines_is_enough_for_none),
        cmocka_unit_test(limits_are_taken_as_configured),
        cmocka_unit_test(percentages_are_of_the_memory_there_is),
        cmocka_unit_test(the_hard_limit_is_the_budgets),
        cmocka_unit_test(the_budget_is_charged_until_the_export_has_ended),
        cmocka_unit_test(an_allocation_refused_anywhere_loses_nothing_silently),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
