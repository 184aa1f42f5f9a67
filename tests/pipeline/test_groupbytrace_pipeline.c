/* SPDX-License-Identifier: Apache-2.0 */
/* The groupbytrace processor, from YAML to JSON: what comes out together, when, and what is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/wire.h"
#include "src/pipeline/pipeline_limits.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"
#include "tests/support/record_case.h"

#define A                "0000000000000000000000000000000a"
#define B                "0000000000000000000000000000000b"
#define C                "0000000000000000000000000000000c"
#define D                "0000000000000000000000000000000d"
#define TRACE(resources) "{\"resourceSpans\":[" resources "]}"
#define RESOURCE(r, scopes)                                                                        \
    "{\"resource\":{\"attributes\":[{\"key\":\"r\",\"value\":{\"stringValue\":\"" r                \
    "\"}}]},\"scopeSpans\":[" scopes "],\"schemaUrl\":\"u\"}"
#define SCOPE(s, spans) "{\"scope\":{\"name\":\"" s "\"},\"spans\":[" spans "],\"schemaUrl\":\"v\"}"
#define SPAN(id, name)  "{\"traceId\":\"" id "\",\"name\":\"" name "\",\"status\":{}}"
#define ONE(id, name)   TRACE(RESOURCE("1", SCOPE("s", SPAN(id, name))))

#define PIPELINE(section)                                                                          \
    "processors: {groupbytrace: " section "}\nexporters: {test: {sending_queue: {enabled: "        \
    "false}}}\nservice: {pipelines: {traces: {receivers: [test], processors: [groupbytrace], "     \
    "exporters: [test]}}}\n"

#define R1(s, spans) RESOURCE("1", SCOPE(s, spans))
#define R2(s, spans) RESOURCE("2", SCOPE(s, spans))

static void expect(struct harness *h, const char *expected)
{
    char *found = record_output(h, TRACES);
    if (strcmp(found, expected) != 0) {
        print_error("expected\n%s\nfound\n", expected);
        print_error("%s\n", found);
        fail();
    }
    free(found);
}

static void spans_come_out_trace_by_trace(void **state)
{
    (void)state;
    struct harness *h = record_harness("groupbytrace", "{wait_duration: 2s}", TRACES);
    const struct test_request *request = record_send(
        h, TRACES,
        TRACE(RESOURCE("1", SCOPE("s", SPAN(A, "1") "," SPAN(B, "2") "," SPAN(A, "3")) "," SCOPE(
                                "t", SPAN(A, "4"))) "," RESOURCE("2", SCOPE("s", SPAN(A, "5")))));
    assert_true(request->is_resolved);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    harness_advance(h, 1 * S);
    expect(h, "");
    record_send(h, TRACES, ONE(B, "6"));
    record_send(h, TRACES, ONE(C, "7"));
    harness_advance(h, 1 * S);
    /* Later spans postpone nothing. */
    expect(h, TRACE(R1("s", SPAN(A, "1") "," SPAN(A, "3")) "," R1("t", SPAN(A, "4")) "," R2(
                  "s", SPAN(A, "5"))) "\n" TRACE(R1("s", SPAN(B, "2")) "," R1("s", SPAN(B, "6"))));
    /* What comes after that is another one. */
    record_send(h, TRACES, ONE(A, "8"));
    harness_advance(h, 1 * S);
    expect(h, ONE(C, "7"));
    harness_advance(h, 1 * S);
    expect(h, ONE(A, "8"));
    char *metrics = harness_metrics(h);
    assert_non_null(strstr(metrics, "otelcol_processor_groupbytrace_traces_released"));
    assert_non_null(strstr(metrics, "otelcol_processor_groupbytrace_conf_num_traces"));
    free(metrics);
    harness_destroy(h);
}

/* The oldest of num_traces is dropped, and counted. */
static void too_many_traces_evict_the_oldest(void **state)
{
    (void)state;
    struct harness *h = record_harness("groupbytrace", "{num_traces: 2}", TRACES);
    record_send(h, TRACES, ONE(A, "1"));
    record_send(h, TRACES, ONE(B, "2"));
    record_send(h, TRACES, ONE(A, "3"));
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    record_send(h, TRACES, ONE(C, "4"));
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_BUSY], 2);
    assert_int_equal(harness_totals(h, TRACES).dropped, 2);
    harness_advance(h, 1 * S);
    expect(h, ONE(B, "2") "\n" ONE(C, "4"));
    harness_destroy(h);
}

/* Go's places are a ring: a free place of a younger trace is of no use. */
static void places_are_used_in_turn(void **state)
{
    (void)state;
    struct harness *h =
        record_harness("groupbytrace", "{num_traces: 2, wait_duration: 1s}", TRACES);
    record_send(h, TRACES, ONE(A, "1"));
    harness_advance(h, 500 * MS);
    record_send(h, TRACES, ONE(B, "2"));
    harness_advance(h, 500 * MS);
    expect(h, ONE(A, "1"));
    record_send(h, TRACES, ONE(C, "3"));
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    record_send(h, TRACES, ONE(D, "4"));
    assert_int_equal(harness_totals(h, TRACES).dropped, 1);
    harness_advance(h, 2 * S);
    expect(h, ONE(C, "3") "\n" ONE(D, "4"));
    harness_destroy(h);
}

/* Unlike Go, nothing is lost at the stop. */
static void held_traces_go_out_at_the_stop(void **state)
{
    (void)state;
    struct harness *h = record_harness("groupbytrace", "{wait_duration: 1h}", TRACES);
    record_send(h, TRACES, ONE(A, "1"));
    record_send(h, TRACES, ONE(B, "2"));
    harness_stop(h);
    harness_turn(h);
    expect(h, ONE(A, "1") "\n" ONE(B, "2"));
    harness_destroy(h);
}

/* Whatever lane its spans come to. */
static void a_trace_belongs_to_one_lane(void **state)
{
    enum { LANES = 3, TRACES_COUNT = 24 };
    (void)state;
    for (int is_stop = 0; is_stop < 2; is_stop++) {
        struct harness *h = harness_create_on(PIPELINE(""), LANES);
        unsigned lanes_used = 0;
        for (unsigned lane = 0; lane < LANES; lane++) {
            struct test_exporter *exporter = harness_exporter_on(h, "test", lane, TRACES);
            exporter->result = RESULT_HOLD;
            exporter->has_own_items = true;
            for (unsigned i = 0; i < TRACES_COUNT; i++) {
                char json[256];
                snprintf(
                    json, sizeof(json),
                    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":\"%032x\"}]}]"
                    "}]}",
                    i + 1);
                const struct test_request *request = record_send_on(h, lane, TRACES, json);
                assert_int_equal(request->outcome.verdict, ACCEPTED);
            }
        }
        if (is_stop)
            harness_stop(h);
        harness_advance(h, is_stop ? 0 : 1 * S);
        size_t batches = 0;
        for (unsigned lane = 0; lane < LANES; lane++) {
            struct test_exporter *exporter = harness_exporter_on(h, "test", lane, TRACES);
            lanes_used += exporter->held_count > 0;
            for (size_t i = 0; i < exporter->held_count; i++, batches++)
                assert_int_equal(exporter->held[i].batch->items, LANES);
            exporter->result = RESULT_OK;
            test_exporter_release(exporter, RESULT_OK);
        }
        harness_turn(h);
        assert_int_equal(batches, TRACES_COUNT);
        assert_int_equal(lanes_used, LANES);
        assert_int_equal(harness_totals(h, TRACES).delivered, LANES * TRACES_COUNT);
        harness_destroy(h);
    }
}

/* Spans without an id are one trace. */
static void traces_without_an_id_are_one(void **state)
{
    (void)state;
    struct harness *h = record_harness("groupbytrace", "{wait_duration: 0s}", TRACES);
    record_send(
        h, TRACES,
        TRACE(RESOURCE("1", SCOPE("s", "{\"name\":\"1\"}," SPAN(A, "2") ",{\"name\":\"3\"}"))));
    expect(h, TRACE(RESOURCE("1", SCOPE("s", "{\"name\":\"1\",\"status\":{}},{\"name\":\"3\","
                                             "\"status\":{}}"))) "\n" ONE(A, "2"));
    harness_destroy(h);
}

enum { LARGE_TRACES = 3000, LARGE_SPANS = 30000 };

/* The lane's helper cuts it, and the lane takes it over several turns. */
static struct batch *large_request(void)
{
    char *json = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&json, &size);
    fprintf(out, "{\"resourceSpans\":[");
    for (unsigned i = 0; i < LARGE_SPANS; i++) {
        const char *before = i == 0 ? "{\"scopeSpans\":[{\"spans\":[" : ",";
        if (i > 0 && i % LARGE_TRACES == 0)
            before = "]}]},{\"scopeSpans\":[{\"spans\":[";
        fprintf(out, "%s{\"traceId\":\"%032x\",\"name\":\"a name of some length %u\"}", before,
                i % LARGE_TRACES + 1, i);
    }
    fprintf(out, "]}]}]}");
    fclose(out);
    struct batch *batch = record_batch(TRACES, json, false);
    assert_true(batch->bytes >= HELPED_BYTES_MIN);
    free(json);
    return batch;
}

static bool is_delivered(void *arg)
{
    return harness_totals(arg, TRACES).delivered == LARGE_SPANS;
}

/* Also when the stop comes before all is taken: no lane ends while others may send it spans. */
static void a_large_request_is_grouped_as_a_small_one(void **state)
{
    enum { LANES = 2 };
    (void)state;
    for (int is_early = 0; is_early < 2; is_early++) {
        struct harness *h = harness_create_on(PIPELINE("{wait_duration: 1h}"), LANES);
        struct batch *batch = large_request();
        struct test_request request = {.items = batch->items};
        for (unsigned lane = 0; lane < LANES; lane++)
            harness_exporter_on(h, "test", lane, TRACES)->has_own_items = true;
        test_receiver_offer(harness_receiver(h, "test", 1), batch, &request);
        batch_unref(batch);
        if (!is_early)
            harness_turn(h);
        harness_stop(h);
        harness_await(h, is_delivered, h, "all are delivered");
        assert_true(request.is_resolved);
        for (unsigned lane = 0; lane < LANES; lane++)
            assert_true(harness_exporter_on(h, "test", lane, TRACES)->delivered_items > 0);
        harness_destroy(h);
    }
}

enum { FEW_TRACES = 400 };

/* As many traces as one resource of that size has. */
static struct test_request *send_one_resource(struct harness *h, size_t resource_bytes)
{
    char *json = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&json, &size);
    fprintf(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"r\","
                 "\"value\":{\"stringValue\":\"");
    for (size_t i = 0; i < resource_bytes; i++)
        fputc('r', out);
    fprintf(out, "\"}}]},\"scopeSpans\":[{\"spans\":[");
    for (unsigned i = 1; i <= FEW_TRACES; i++)
        fprintf(out, "%s{\"traceId\":\"%032x\"}", i > 1 ? "," : "", i);
    fprintf(out, "]}]}]}");
    fclose(out);
    struct test_request *request = record_send(h, TRACES, json);
    free(json);
    return request;
}

static bool is_resolved(void *arg)
{
    return ((const struct test_request *)arg)->is_resolved;
}

/* The helper cuts what becomes large; what becomes many times larger is refused for good. */
static void a_resource_is_repeated_within_limits(void **state)
{
    (void)state;
    struct harness *h = record_harness("groupbytrace", "{wait_duration: 1h}", TRACES);
    struct test_request *request = send_one_resource(h, 8 << 10);
    harness_await(h, is_resolved, request, "it is cut");
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    request = send_one_resource(h, 64 << 10);
    harness_await(h, is_resolved, request, "it is refused");
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_true(outcome_is_too_large(&request->outcome));
    assert_int_equal(harness_totals(h, TRACES).in_flight, FEW_TRACES);
    harness_destroy(h);
}

static void empty_scopes_take_no_memory(void **state)
{
    enum { SCOPES = 500000, EMPTY_BYTES = 2, BUDGET_MIB = 16 };
    static const uint8_t span_scope[] = {2 << 3 | 2, 2, 2 << 3 | 2, 0};
    const size_t content = SCOPES * EMPTY_BYTES + sizeof(span_scope);
    const size_t size = wire_field_size(1, content);
    uint8_t *room = mem_alloc(size);
    struct wire_writer writer = wire_writer_of(room, size);
    (void)state;
    wire_write_header(&writer, 1, content);
    for (unsigned i = 0; i < SCOPES; i++)
        wire_write_bytes(&writer, 2, slice_of(NULL, 0));
    wire_write_raw(&writer, slice_of(span_scope, sizeof(span_scope)));
    struct harness *h = harness_create(
        "processors: {groupbytrace: {wait_duration: 1s}}\nexporters: {test: {sending_queue: "
        "{enabled: false}}}\nservice: {budget_mib: 16, pipelines: {traces: {receivers: [test], "
        "processors: [groupbytrace], exporters: [test]}}}\n");
    harness_exporter_on(h, "test", 0, TRACES)->has_own_items = true;
    struct test_request *request = harness_put_bytes(h, 0, TRACES, wire_written(&writer), 1);
    harness_await(h, is_resolved, request, "the request is taken");
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_true(harness_budget_peak(h) < (uint64_t)BUDGET_MIB / 2 << 20);
    mem_free(room);
    harness_destroy(h);
}

/* What holds a trace is larger than a small span of it, and requests are shared out over turns. */
static void held_traces_stay_within_the_budget(void **state)
{
    enum { REQUESTS = 12, TRACES_EACH = 500, SPAN_BYTES = 18, BUDGET_MIB = 2 };
    const size_t content = TRACES_EACH * (SPAN_BYTES + 2);
    const size_t size = wire_field_size(1, wire_field_size(2, content));
    uint8_t *room = mem_alloc(size);
    unsigned accepted = 0;
    uint32_t id = 0;
    (void)state;
    struct harness *h = harness_create(
        "processors: {groupbytrace: {wait_duration: 1h}}\nexporters: {test: {sending_queue: "
        "{enabled: false}}}\nservice: {budget_mib: 2, pipelines: {traces: {receivers: [test], "
        "processors: [groupbytrace], exporters: [test]}}}\n");
    harness_exporter_on(h, "test", 0, TRACES)->has_own_items = true;
    struct test_request *requests[REQUESTS];
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct wire_writer writer = wire_writer_of(room, size);
        wire_write_header(&writer, 1, wire_field_size(2, content));
        wire_write_header(&writer, 2, content);
        for (unsigned j = 0; j < TRACES_EACH; j++) {
            uint8_t span[SPAN_BYTES] = {1 << 3 | 2, 16};
            id++;
            memcpy(span + 2, &id, sizeof(id));
            wire_write_bytes(&writer, 2, slice_of(span, sizeof(span)));
        }
        requests[i] = harness_put_bytes(h, 0, TRACES, wire_written(&writer), TRACES_EACH);
    }
    for (unsigned i = 0; i < REQUESTS; i++) {
        harness_await(h, is_resolved, requests[i], "the request is taken or refused");
        accepted += requests[i]->outcome.verdict == ACCEPTED;
    }
    harness_turn(h);
    assert_in_range(accepted, 1, REQUESTS - 1);
    assert_int_equal(harness_totals(h, TRACES).in_flight, accepted * TRACES_EACH);
    assert_true(harness_budget_peak(h) <= ((uint64_t)BUDGET_MIB << 20) / 100 * 115);
    mem_free(room);
    harness_destroy(h);
}

/* What others take meanwhile is not of the room that fragments have on their way. */
static void traces_that_go_to_other_lanes_keep_their_charge(void **state)
{
    enum { LANES = 2, SPANS = 1500, SPAN_BYTES = 18 };
    const size_t content = SPANS * (SPAN_BYTES + 2);
    const size_t size = wire_field_size(1, wire_field_size(2, content));
    uint8_t *room = mem_alloc(size);
    struct wire_writer writer = wire_writer_of(room, size);
    (void)state;
    wire_write_header(&writer, 1, wire_field_size(2, content));
    wire_write_header(&writer, 2, content);
    for (uint32_t id = 1; id <= SPANS; id++) {
        uint8_t span[SPAN_BYTES] = {1 << 3 | 2, 16};
        memcpy(span + 2, &id, sizeof(id));
        wire_write_bytes(&writer, 2, slice_of(span, sizeof(span)));
    }
    struct harness *h = harness_create_on(
        "processors: {groupbytrace: {wait_duration: 1h}}\nexporters: {test: {sending_queue: "
        "{enabled: false}}}\nservice: {budget_mib: 8, pipelines: {traces: {receivers: [test], "
        "processors: [groupbytrace], exporters: [test]}}}\n",
        LANES);
    struct budget *budget = &h->service->budget;
    for (unsigned lane = 0; lane < LANES; lane++)
        harness_exporter_on(h, "test", lane, TRACES)->has_own_items = true;
    struct test_request *request = harness_put_bytes(h, 0, TRACES, wire_written(&writer), SPANS);
    while (!request->is_resolved)
        lane_turn(h->lanes[0]);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    const uint64_t others = budget_limit(budget) - budget_used(budget);
    budget_take(budget, others);
    harness_turn(h);
    assert_true(harness_budget_peak(h) <= budget_limit(budget));
    budget_return(budget, others);
    assert_int_equal(harness_totals(h, TRACES).in_flight, SPANS);
    mem_free(room);
    harness_destroy(h);
}

/* Of what batch has acknowledged: it would be lost otherwise. */
static void acknowledged_requests_may_use_the_margin(void **state)
{
    enum { EXCESS_KIB = 16 };
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1s}, groupbytrace: {}}\nexporters: {test: {sending_queue: "
        "{enabled: false}}}\nservice: {budget_mib: 8, pipelines: {traces: {receivers: [test], "
        "processors: [batch, groupbytrace], exporters: [test]}}}\n");
    struct budget *budget = &h->service->budget;
    harness_exporter_on(h, "test", 0, TRACES)->has_own_items = true;
    assert_int_equal(record_send(h, TRACES, ONE(A, "1"))->outcome.verdict, ACCEPTED);
    const uint64_t others = budget_limit(budget) - budget_used(budget) + (EXCESS_KIB << 10);
    budget_take(budget, others);
    harness_advance(h, 2 * DOWNSTREAM_SHUT_IN_MAX_NS);
    budget_return(budget, others);
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    assert_int_equal(harness_totals(h, TRACES).delivered, 1);
    harness_destroy(h);
}

static void send_large_span(struct harness *h, size_t name_bytes)
{
    char *json = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&json, &size);
    fprintf(out,
            "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":\"" A "\",\"name\":\"");
    for (size_t i = 0; i < name_bytes; i++)
        fputc('n', out);
    fprintf(out, "\"}]}]}]}");
    fclose(out);
    struct test_request *request = record_send(h, TRACES, json);
    free(json);
    harness_await(h, is_resolved, request, "the request is taken");
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    harness_turn(h);
}

/* It goes on in several batches, one after the other, or is evicted with all of them. */
static void a_large_trace_goes_on_in_parts(void **state)
{
    enum { BATCH_BYTES = 4 << 20, SPANS = 6, PARTS = 3 };
    (void)state;
    for (unsigned is_evicted = 0; is_evicted < 2; is_evicted++) {
        struct harness *h = harness_create(PIPELINE("{num_traces: 1}"));
        struct test_exporter *exporter = harness_exporter_on(h, "test", 0, TRACES);
        exporter->result = RESULT_HOLD;
        exporter->has_own_items = true;
        for (size_t i = 0; i < SPANS; i++)
            send_large_span(h, MIB + MIB / 2);
        assert_int_equal(exporter->held_count, 0);
        if (is_evicted) {
            record_send(h, TRACES, ONE(B, "1"));
            assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_BUSY], SPANS);
        }
        harness_advance(h, 1 * S);
        assert_int_equal(exporter->held_count, is_evicted ? 1 : PARTS);
        for (unsigned i = 0; !is_evicted && i < PARTS; i++) {
            assert_int_equal(exporter->held[i].batch->items, SPANS / PARTS);
            assert_in_range(exporter->held[i].batch->bytes, BATCH_BYTES / 2, BATCH_BYTES);
        }
        test_exporter_release(exporter, RESULT_OK);
        harness_turn(h);
        assert_int_equal(harness_totals(h, TRACES).delivered, is_evicted ? 1 : SPANS);
        exporter->result = RESULT_OK;
        harness_destroy(h);
    }
}

static void mistakes_are_refused(void **state)
{
    static const struct {
        const char *section;
        const char *expected;
    } rows[] = {
        {"{store_on_disk: true}", "option 'disk storage' not supported in this release"},
        {"{discard_orphans: true}", "option 'discard orphans' not supported in this release"},
        {"{num_workers: 0}", "num_workers: found 0, expected 1 or more"},
        {"{num_traces: 3, num_workers: 4}", "num_traces: found 3, expected num_workers or more"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        record_refused("groupbytrace", rows[i].section, TRACES, rows[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_come_out_trace_by_trace),
        cmocka_unit_test(too_many_traces_evict_the_oldest),
        cmocka_unit_test(places_are_used_in_turn),
        cmocka_unit_test(held_traces_go_out_at_the_stop),
        cmocka_unit_test(a_trace_belongs_to_one_lane),
        cmocka_unit_test(traces_without_an_id_are_one),
        cmocka_unit_test(a_large_request_is_grouped_as_a_small_one),
        cmocka_unit_test(a_resource_is_repeated_within_limits),
        cmocka_unit_test(empty_scopes_take_no_memory),
        cmocka_unit_test(held_traces_stay_within_the_budget),
        cmocka_unit_test(traces_that_go_to_other_lanes_keep_their_charge),
        cmocka_unit_test(acknowledged_requests_may_use_the_margin),
        cmocka_unit_test(a_large_trace_goes_on_in_parts),
        cmocka_unit_test(mistakes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
