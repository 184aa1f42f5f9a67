/* SPDX-License-Identifier: Apache-2.0 */
/* exceptions between pipelines: log records and whose outcome they have, counts once a second,
 * large requests, and which configurations are refused. */
#include "tests/support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/base/stop_latch.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/otlp/check.h"
#include "src/otlp/metrics/metric_reader.h"
#include "src/otlp/wire.h"
#include "src/pipeline/pipeline_limits.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"
#include "tests/support/random_otlp.h"
#include "tests/support/telemetry_bytes.h"

#define PLAIN "{sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}"
#define CONFIG(keys, pipelines)                                                                    \
    "connectors: {exceptions: {" keys "}}\n"                                                       \
    "exporters: {test/a: " PLAIN "}\n"                                                             \
    "service: {pipelines: {traces: {receivers: [test], exporters: [exceptions]}" pipelines "}}\n"
#define LOGS_OUT    ", logs: {receivers: [exceptions], exporters: [test/a]}"
#define METRICS_OUT ", metrics: {receivers: [exceptions], exporters: [test/a]}"

/* A span with an attribute of that size and so many exceptions; freed by mem_free. */
static struct slice request_of(size_t attribute_bytes, unsigned exceptions)
{
    static const uint8_t ids[] = "\x0a\x10"
                                 "0123456789abcdef"
                                 "\x12\x08"
                                 "01234567"
                                 "\x2a\x03GET";
    static const uint8_t event[] = "\x5a\x0d\x12\x09"
                                   "exception"
                                   "\x1a\x00";
    static const uint8_t service[] = "\x0a\x16\x0a\x0cservice.name\x12\x06\x0a\x04shop";
    size_t value = wire_field_size(1, attribute_bytes);
    size_t attribute = wire_field_size(1, 3) + wire_field_size(2, value);
    size_t span =
        sizeof(ids) - 1 + wire_field_size(9, attribute) + (size_t)exceptions * (sizeof(event) - 1);
    size_t scope = wire_field_size(2, span);
    size_t message = wire_field_size(1, sizeof(service) - 1) + wire_field_size(2, scope);
    size_t size = wire_field_size(1, message);
    uint8_t *room = mem_zalloc(size);
    uint8_t *text = mem_zalloc(attribute_bytes + 1);
    memset(text, 'x', attribute_bytes);
    struct wire_writer out = wire_writer_of(room, size);
    wire_write_header(&out, 1, message);
    wire_write_bytes(&out, 1, slice_of(service, sizeof(service) - 1));
    wire_write_header(&out, 2, scope);
    wire_write_header(&out, 2, span);
    wire_write_raw(&out, slice_of(ids, sizeof(ids) - 1));
    wire_write_header(&out, 9, attribute);
    wire_write_bytes(&out, 1, slice_of_text("big"));
    wire_write_header(&out, 2, value);
    wire_write_bytes(&out, 1, slice_of(text, attribute_bytes));
    for (unsigned i = 0; i < exceptions; i++)
        wire_write_raw(&out, slice_of(event, sizeof(event) - 1));
    assert_false(out.has_failed);
    assert_int_equal(wire_written(&out).size, size);
    mem_free(text);
    return slice_of(room, size);
}

static struct test_request *send_span(struct harness *h, unsigned lane, size_t attribute_bytes,
                                      unsigned exceptions)
{
    struct slice bytes = request_of(attribute_bytes, exceptions);
    struct test_request *request = harness_offer_bytes(h, lane, TRACES, bytes, 1);
    mem_free((void *)(uintptr_t)bytes.data);
    return request;
}

static struct test_exporter *holder(const struct harness *h, unsigned lane, enum signal_kind signal)
{
    struct test_exporter *exporter = harness_exporter_on(h, "test/a", lane, signal);
    exporter->has_own_items = true;
    exporter->result = RESULT_HOLD;
    return exporter;
}

/* Of what batch has acknowledged: it would be lost otherwise. */
static void logs_of_acknowledged_requests_may_use_the_margin(void **state)
{
    enum { EXCEPTIONS = 3, EXCESS_KIB = 16 };
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1s}}\nconnectors: {exceptions: {}}\nexporters: "
        "{test/a: " PLAIN
        "}\nservice: {budget_mib: 8, pipelines: {traces: {receivers: [test], processors: [batch], "
        "exporters: [exceptions]}" LOGS_OUT "}}\n");
    struct budget *budget = &h->service->budget;
    harness_exporter_on(h, "test/a", 0, LOGS)->has_own_items = true;
    assert_int_equal(send_span(h, 0, 10, EXCEPTIONS)->outcome.verdict, ACCEPTED);
    const uint64_t others = budget_limit(budget) - budget_used(budget) + (EXCESS_KIB << 10);
    budget_take(budget, others);
    harness_advance(h, 2 * DOWNSTREAM_SHUT_IN_MAX_NS);
    budget_return(budget, others);
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    assert_int_equal(harness_totals(h, LOGS).delivered, EXCEPTIONS);
    harness_destroy(h);
}

static void counts_of_acknowledged_requests_may_use_the_margin(void **state)
{
    enum { EXCESS_KIB = 16 };
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1s}}\nconnectors: {exceptions: {}}\nexporters: "
        "{test/a: " PLAIN
        "}\nservice: {budget_mib: 8, pipelines: {traces: {receivers: [test], processors: [batch], "
        "exporters: [exceptions]}" METRICS_OUT "}}\n");
    struct budget *budget = &h->service->budget;
    holder(h, 0, METRICS);
    assert_int_equal(send_span(h, 0, 10, 2)->outcome.verdict, ACCEPTED);
    const uint64_t others = budget_limit(budget) - budget_used(budget) + (EXCESS_KIB << 10);
    budget_take(budget, others);
    harness_advance(h, 2 * DOWNSTREAM_SHUT_IN_MAX_NS);
    budget_return(budget, others);
    assert_int_equal(harness_totals(h, TRACES).delivered, 1);
    char *page = harness_metrics(h);
    assert_non_null(strstr(page, "spanflame_exceptions_uncounted{connector=\"exceptions\"} 0"));
    free(page);
    harness_destroy(h);
}

static void a_request_has_the_outcome_of_its_logs(void **state)
{
    (void)state;
    struct harness *h = harness_create(CONFIG("", LOGS_OUT));
    struct test_exporter *a = holder(h, 0, LOGS);
    struct test_request *request = send_span(h, 0, 10, 3);
    assert_false(request->is_resolved);
    assert_int_equal(a->held_count, 1);
    assert_int_equal(a->held[0].batch->items, 3);
    struct otlp_figures figures;
    const char *reason;
    struct slice bytes = joined_parts(a->held[0].batch);
    assert_true(otlp_check(LOGS, bytes, &figures, &reason));
    assert_int_equal(figures.items, 3);
    mem_free((void *)(uintptr_t)bytes.data);
    test_exporter_release(a, RESULT_OK);
    harness_turn(h);
    assert_true(request->is_resolved);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_totals(h, TRACES).delivered, 1);
    assert_int_equal(harness_totals(h, LOGS).delivered, 3);
    /* One that is not taken. */
    request = send_span(h, 0, 10, 1);
    test_exporter_release(a, RESULT_PERMANENT);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_int_equal(request->outcome.code, STATUS_INVALID_ARGUMENT);
    assert_int_equal(harness_totals(h, TRACES).rejected, 1);
    assert_int_equal(harness_totals(h, LOGS).rejected, 1);
    /* A part of the records is not about spans. */
    request = send_span(h, 0, 10, 2);
    test_exporter_release(a, RESULT_PARTIAL);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(request->outcome.rejected_items, 0);
    /* Without exceptions there is nothing to wait for. */
    assert_int_equal(send_span(h, 0, 10, 0)->outcome.verdict, ACCEPTED);
    assert_int_equal(a->held_count, 0);
    harness_destroy(h);
}

static void records_have_what_the_span_has(void **state)
{
    (void)state;
    struct harness *h =
        harness_create(CONFIG("dimensions: [{name: big}, {name: zone, default: eu}]", LOGS_OUT));
    struct test_exporter *a = holder(h, 0, LOGS);
    send_span(h, 0, 3, 1);
    struct slice bytes = joined_parts(a->held[0].batch);
    static const char *const parts[] = {
        "\x10\x11\x1a\x05"
        "ERROR",
        "big\x12\x05\n\x03xxx",
        "\n\tspan.name\x12\x05\n\x03GET",
        "span.kind\x12\x17\n\x15SPAN_KIND_UNSPECIFIED",
        "status.code\x12\x13\n\x11STATUS_CODE_UNSET",
        "service.name\x12\x06\n\x04shop",
        "zone\x12\x04\n\x02"
        "eu",
        "J\x10"
        "0123456789abcdefR\x08"
        "01234567",
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        assert_non_null(memmem(bytes.data, bytes.size, parts[i], strlen(parts[i])));
    static const char stack[] = "exception.stacktrace\x12\x02\n\x00";
    assert_non_null(memmem(bytes.data, bytes.size, stack, sizeof(stack) - 1));
    mem_free((void *)(uintptr_t)bytes.data);
    harness_destroy(h);
}

static void counts_come_once_a_second(void **state)
{
    (void)state;
    struct harness *h = harness_create_on(CONFIG("", METRICS_OUT), 2);
    struct test_exporter *a = holder(h, 0, METRICS);
    harness_advance(h, 5 * S);
    assert_int_equal(a->held_count, 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(send_span(h, i % 2, 1, 2)->outcome.verdict, ACCEPTED);
    assert_int_equal(a->held_count, 0);
    harness_advance(h, 1 * S);
    assert_int_equal(a->held_count, 1);
    assert_int_equal(a->held[0].batch->items, 1);
    struct slice bytes = joined_parts(a->held[0].batch);
    const uint8_t eight[] = {0x31, 8, 0, 0, 0, 0, 0, 0, 0}; /* as_int */
    assert_non_null(memmem(bytes.data, bytes.size, eight, sizeof(eight)));
    mem_free((void *)(uintptr_t)bytes.data);
    test_exporter_release(a, RESULT_OK);
    harness_advance(h, 5 * S); /* nothing new */
    assert_int_equal(a->held_count, 0);
    send_span(h, 1, 1, 0); /* which keeps the series alive downstream */
    harness_advance(h, 1 * S);
    assert_int_equal(a->held_count, 1);
    test_exporter_release(a, RESULT_OK);
    send_span(h, 1, 1, 1);
    harness_stop(h);
    harness_turn(h);
    assert_int_equal(a->held_count, 1); /* the last ones, at the stop */
    harness_destroy(h);
}

static void count_taken(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    const struct component *connector = arg;
    assert_non_null(receipt);
    assert_int_equal(outcome->verdict, ACCEPTED);
    ledger_deliver(connector->ledger, TRACES, 1);
}

/* A flush is under way at the stop, and a request is with the helper for which nobody waits, as in
 * a pipeline with a journal. */
static void a_stop_waits_for_the_flush_and_for_the_helper(void **state)
{
    (void)state;
    struct harness *h = harness_create(CONFIG("", METRICS_OUT));
    struct test_exporter *a = holder(h, 0, METRICS);
    struct component *connector = harness_connector(h, "exceptions", TRACES, METRICS);
    send_span(h, 0, 1, 1);
    harness_advance(h, 1 * S);
    assert_int_equal(a->held_count, 1);
    struct slice bytes = request_of(1 << 18, 200000);
    struct batch *batch = plain_request(NULL, TRACES, bytes, 1);
    struct receipt receipt;
    receipt_init(&receipt, count_taken, connector);
    harness_stop(h);
    ledger_receive(connector->ledger, batch, 1);
    component_consume(connector, batch, &receipt);
    for (unsigned i = 0; i < 1000 && connector->stopping == NULL; i++)
        lane_turn(h->lanes[0]);
    assert_non_null(connector->stopping);
    test_exporter_release(a, RESULT_OK);
    assert_non_null(connector->stopping); /* the helper has not done */
    harness_turn(h);
    assert_int_equal(a->held_count, 1); /* what that one brought */
    test_exporter_release(a, RESULT_OK);
    harness_turn(h);
    assert_true(h->has_stopped);
    harness_destroy(h);
    batch_unref(batch);
    mem_free((void *)(uintptr_t)bytes.data);
}

static void on_both_stopped(void *arg)
{
    *(bool *)arg = true;
}

/* The same of a request that is with the helper of another lane: its counts are sent, too. */
static void a_stop_waits_for_the_helpers_of_all_lanes(void **state)
{
    (void)state;
    struct harness *h = harness_create_on(CONFIG("", METRICS_OUT), 2);
    struct test_exporter *a = holder(h, 0, METRICS);
    struct component *first = harness_connector(h, "exceptions", TRACES, METRICS);
    struct component *second = first->next_lane;
    struct slice bytes = request_of(1 << 18, 2000);
    struct batch *batch = plain_request(NULL, TRACES, bytes, 1);
    struct receipt receipt;
    bool have_stopped = false;
    struct stop_latch latch = {.fn = on_both_stopped, .arg = &have_stopped, .pending = 2};
    struct harness_gate gate;
    harness_close_gate(h, 1, &gate);
    receipt_init(&receipt, count_taken, second);
    ledger_receive(second->ledger, batch, 1);
    component_consume(second, batch, &receipt);
    first->stopping = second->stopping = &latch;
    first->factory->stop(first);
    second->factory->stop(second);
    assert_int_equal(latch.pending, 2);
    harness_open_gate(&gate);
    harness_turn(h);
    assert_int_equal(a->held_count, 1);
    assert_false(have_stopped);
    test_exporter_release(a, RESULT_OK);
    harness_turn(h);
    assert_true(have_stopped);
    assert_true(harness_totals(h, METRICS).delivered > 0);
    harness_destroy(h);
    batch_unref(batch);
    mem_free((void *)(uintptr_t)bytes.data);
}

static void one_connector_can_do_both(void **state)
{
    (void)state;
    struct harness *h = harness_create(CONFIG("exemplars: {enabled: true}", LOGS_OUT METRICS_OUT));
    struct test_exporter *metrics = holder(h, 0, METRICS);
    harness_exporter_on(h, "test/a", 0, LOGS)->has_own_items = true;
    assert_int_equal(send_span(h, 0, 1, 3)->outcome.verdict, ACCEPTED);
    harness_advance(h, 1 * S);
    assert_int_equal(metrics->held_count, 1);
    assert_int_equal(harness_totals(h, LOGS).delivered, 3);
    harness_destroy(h);
}

static void large_requests_go_through_the_helper_in_pieces(void **state)
{
    (void)state;
    struct harness *h = harness_create(CONFIG("", LOGS_OUT));
    struct test_exporter *a = holder(h, 0, LOGS);
    struct test_request *request = send_span(h, 0, 1200 * 1024, 3);
    assert_int_equal(a->held_count, 3); /* each record is more than a piece */
    assert_false(request->is_resolved);
    test_exporter_release(a, RESULT_OK);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

static void records_take_sixteen_times_the_request_at_most(void **state)
{
    (void)state;
    struct harness *h = harness_create(CONFIG("", LOGS_OUT));
    struct test_exporter *a = holder(h, 0, LOGS);
    struct test_request *request = send_span(h, 0, 1 << 18, 1000);
    uint64_t bytes = 0;
    uint64_t records = 0;
    for (size_t i = 0; i < a->held_count; i++) {
        bytes += a->held[i].batch->bytes;
        records += a->held[i].batch->items;
    }
    assert_in_range(bytes, 16 << 18, (16 << 18) + (3 << 20));
    assert_in_range(records, 16, 24);
    char text[100];
    snprintf(text, sizeof(text), "spanflame_exceptions_unlogged{connector=\"exceptions\"} %u",
             1000 - (unsigned)records);
    char *page = harness_metrics(h);
    assert_non_null(strstr(page, text));
    free(page);
    test_exporter_release(a, RESULT_OK);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

static void a_full_budget_refuses_what_makes_logs(void **state)
{
    (void)state;
    struct harness *h = harness_create(CONFIG("", LOGS_OUT METRICS_OUT));
    struct budget *budget = &h->service->budget;
    harness_exporter_on(h, "test/a", 0, LOGS)->has_own_items = true;
    struct test_exporter *metrics = holder(h, 0, METRICS);
    struct slice bytes = request_of(100000, 2);
    struct test_request *request = harness_put_bytes(h, 0, TRACES, bytes, 1);
    uint64_t taken = budget_limit(budget) - budget_used(budget);
    budget_take(budget, taken);
    harness_turn(h);
    budget_return(budget, taken);
    mem_free((void *)(uintptr_t)bytes.data);
    assert_true(request->is_resolved);
    assert_int_not_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(request->outcome.code, STATUS_UNAVAILABLE);
    assert_int_equal(harness_totals(h, LOGS).received, 0);
    char *page = harness_metrics(h);
    assert_non_null(strstr(page, "spanflame_exceptions_uncounted{connector=\"exceptions\"} 2"));
    free(page);
    harness_advance(h, 1 * S);
    assert_int_equal(metrics->held_count, 0);
    harness_destroy(h);
}

static bool is_resolved(void *arg)
{
    return ((const struct test_request *)arg)->is_resolved;
}

/* Its client would send it again for ever, and batch would keep what follows waiting. */
static void what_never_fits_is_refused_for_good(void **state)
{
    enum { ATTRIBUTE = 700 << 10, EXCEPTIONS = 20 };
    (void)state;
    for (unsigned is_batched = 0; is_batched < 2; is_batched++) {
        char yaml[1024];
        snprintf(yaml, sizeof(yaml),
                 "processors: {batch: {timeout: 0s}}\nconnectors: {exceptions: {}}\nexporters: "
                 "{test/a: " PLAIN "}\nservice: {budget_mib: 8, pipelines: {traces: {receivers: "
                 "[test], processors: [%s], exporters: [exceptions]}" LOGS_OUT "}}\n",
                 is_batched ? "batch" : "");
        struct harness *h = harness_create(yaml);
        struct test_request *request = send_span(h, 0, ATTRIBUTE, EXCEPTIONS);
        harness_await(h, is_resolved, request, "it is refused, or batched");
        harness_turn_helped(h, 0);
        if (is_batched)
            assert_int_equal(harness_totals(h, TRACES).dropped, 1);
        else
            assert_true(outcome_is_too_large(&request->outcome));
        harness_destroy(h);
    }
}

static void wrong_configurations_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {CONFIG("dimensions: [{name: a}, {name: a}]", LOGS_OUT),
         "dimensions::1::name: duplicate dimension name \"a\""},
        {CONFIG("dimensions: [{name: span.kind}]", LOGS_OUT),
         "dimensions::0::name: duplicate dimension name \"span.kind\""},
        {CONFIG("dimensions: [{name: service.name}]", METRICS_OUT),
         "duplicate dimension name \"service.name\""},
        {CONFIG("dimensions: [{name: a, default: 5}]", LOGS_OUT),
         "dimensions::0::default: expected a string"},
        {CONFIG("exemplars: true", LOGS_OUT), "exemplars"},
        {CONFIG("dimension: []", LOGS_OUT), "dimension"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_true(harness_is_wrong(wrong[i][0], wrong[i][1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_of_acknowledged_requests_may_use_the_margin),
        cmocka_unit_test(counts_of_acknowledged_requests_may_use_the_margin),
        cmocka_unit_test(a_request_has_the_outcome_of_its_logs),
        cmocka_unit_test(records_have_what_the_span_has),
        cmocka_unit_test(counts_come_once_a_second),
        cmocka_unit_test(a_stop_waits_for_the_flush_and_for_the_helper),
        cmocka_unit_test(a_stop_waits_for_the_helpers_of_all_lanes),
        cmocka_unit_test(one_connector_can_do_both),
        cmocka_unit_test(large_requests_go_through_the_helper_in_pieces),
        cmocka_unit_test(records_take_sixteen_times_the_request_at_most),
        cmocka_unit_test(a_full_budget_refuses_what_makes_logs),
        cmocka_unit_test(what_never_fits_is_refused_for_good),
        cmocka_unit_test(wrong_configurations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
