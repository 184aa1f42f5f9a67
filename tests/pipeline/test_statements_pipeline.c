/* SPDX-License-Identifier: Apache-2.0 */
/* filter and transform in a pipeline, from YAML to bytes and ledger: what filter drops is a drop
 * once the rest is accepted, and nothing at all while the rest is refused. */
#include "tests/support/harness.h"
#include "tests/support/record_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"

#define PIPELINE(name)                                                                             \
    "exporters: {test: {sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}}\n"   \
    "service: {pipelines: {traces: {receivers: [test], processors: [" name                         \
    "], exporters: [test]}}}\n"

#define SPANS(first, second)                                                                       \
    "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{\"name\":"     \
    "\"" first "\",\"status\":{}},{\"name\":\"" second "\",\"status\":{}}]}]}]}"

enum { TEXT_MAX = 2048 };

static struct buffer *encode(const char *json)
{
    char reason[JSON_REASON_BYTES_MAX];
    struct buffer *encoded = NULL;
    if (json_read(otlp_request(TRACES), slice_of_text(json), NULL, &encoded, reason) != JSON_READ)
        fail_msg("%s", reason);
    return encoded;
}

static struct test_request *offer(struct harness *h, const char *json)
{
    struct buffer *encoded = encode(json);
    struct test_request *request = harness_offer_bytes(h, 0, TRACES, buffer_slice(encoded), 2);
    buffer_unref(encoded);
    return request;
}

static void expect_json(const struct batch *batch, const char *expected)
{
    struct buffer *json = json_write_batch(batch, NULL);
    char text[TEXT_MAX];
    assert_non_null(json);
    assert_true(json->size < sizeof(text));
    memcpy(text, json->data, json->size);
    text[json->size] = '\0';
    assert_string_equal(text, expected);
    buffer_unref(json);
}

static struct test_exporter *holding_exporter(struct harness *h)
{
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, TRACES);
    exporter->result = RESULT_HOLD;
    exporter->has_own_items = true;
    return exporter;
}

static void what_filter_drops_is_dropped_in_the_ledger_once_the_rest_is_accepted(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {filter: {trace_conditions: ['span.name == \"a\"']}}\n" PIPELINE("filter"));
    struct test_exporter *exporter = holding_exporter(h);
    struct test_request *request = offer(h, SPANS("a", "b"));
    assert_int_equal(exporter->held_count, 1);
    assert_int_equal(exporter->held[0].batch->items, 1);
    expect_json(exporter->held[0].batch,
                "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{"
                "\"name\":\"b\",\"status\":{}}]}]}]}");
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.received, 2);
    assert_int_equal(totals.delivered, 1);
    assert_int_equal(totals.by_reason[LOSS_UNWANTED], 1);
    char *metrics = harness_metrics(h);
    assert_non_null(strstr(metrics, "otelcol_processor_filter_spans_filtered"));
    free(metrics);
    harness_destroy(h);
}

static void a_request_that_is_dropped_whole_is_accepted(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {filter: {traces: {span: ['name != \"\"']}}}\n" PIPELINE("filter"));
    struct test_request *request = offer(h, SPANS("a", "b"));
    assert_true(request->is_resolved);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.received, 2);
    assert_int_equal(totals.delivered, 0);
    assert_int_equal(totals.dropped, 2);
    harness_destroy(h);
}

static void a_request_that_fails_is_rejected_with_what_was_dropped(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {filter: {traces: {span: ['name == \"a\"']}}}\n" PIPELINE("filter"));
    harness_exporter_on(h, "test", 0, TRACES)->result = RESULT_BUSY;
    struct test_request *request = offer(h, SPANS("a", "b"));
    assert_true(request->is_resolved);
    assert_int_not_equal(request->outcome.verdict, ACCEPTED);
    struct harness_totals totals = harness_totals(h, TRACES);
    /* What filter drops is rejected with the rest: the client may send it again. */
    assert_int_equal(totals.rejected, 2);
    assert_int_equal(totals.by_reason[LOSS_UNWANTED], 1);
    harness_destroy(h);
}

static void what_no_statement_changes_goes_on_as_it_came(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("processors: {transform: {trace_statements: ['set(span.name, \"c\") where "
                       "span.name == \"z\"']}}\n" PIPELINE("transform"));
    struct test_exporter *exporter = holding_exporter(h);
    struct buffer *encoded = encode(SPANS("a", "b"));
    harness_offer_bytes(h, 0, TRACES, buffer_slice(encoded), 2);
    assert_int_equal(exporter->held_count, 1);
    assert_int_equal(exporter->held[0].batch->parts_count, 1);
    assert_true(slice_equal(exporter->held[0].batch->parts[0].bytes, buffer_slice(encoded)));
    buffer_unref(encoded);
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    harness_destroy(h);
}

/* Groups run one after the other over the whole request: what the second of these reads of the
 * resource was written by the last span of the first. */
static void groups_run_in_order(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("processors: {transform: {trace_statements: [{context: span, statements: "
                       "['set(resource.attributes[\"n\"], name)']},{context: span, statements: "
                       "['set(name, resource.attributes[\"n\"])']},{context: resource, statements: "
                       "['delete_key(attributes, \"n\")']}]}}\n" PIPELINE("transform"));
    struct test_exporter *exporter = holding_exporter(h);
    offer(h, SPANS("a", "b"));
    assert_int_equal(exporter->held_count, 1);
    expect_json(exporter->held[0].batch,
                "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{"
                "\"name\":\"b\",\"status\":{}},{\"name\":\"b\",\"status\":{}}]}]}]}");
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    harness_destroy(h);
}

/* The same although an outer context comes first, and comes again. */
static void groups_of_several_contexts_run_in_order(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {transform: {trace_statements: [{context: resource, "
        "statements: ['set(attributes[\"n\"], \"first\")']},{context: span, "
        "statements: ['set(resource.attributes[\"n\"], name)']},{context: span, "
        "statements: ['set(name, resource.attributes[\"n\"])']},{context: resource, "
        "statements: ['set(attributes[\"n\"], \"last\")']},{context: span, "
        "statements: ['set(kind, 2)']},{context: resource, statements: "
        "['set(attributes[\"n\"], \"end\")']},{context: span, statements: "
        "['set(kind, 3) where resource.attributes[\"n\"] == \"last\"']}]}}\n" PIPELINE(
            "transform"));
    struct test_exporter *exporter = holding_exporter(h);
    offer(h, SPANS("a", "b"));
    assert_int_equal(exporter->held_count, 1);
    expect_json(exporter->held[0].batch,
                "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"n\",\"value\":{"
                "\"stringValue\":\"end\"}}]},\"scopeSpans\":[{\"scope\":{},\"spans\":[{"
                "\"name\":\"b\",\"kind\":2,\"status\":{}},{\"name\":\"b\",\"kind\":2,"
                "\"status\":{}}]}]}]}");
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    harness_destroy(h);
}

/* What a group reads of the resource is not what a later group makes of it. */
static void later_groups_are_not_seen_early(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {transform: {trace_statements: [{context: resource, statements: "
        "['set(attributes[\"n\"], \"first\")']},{context: span, statements: ['set(name, "
        "resource.attributes[\"n\"])']},{context: span, statements: "
        "['set(resource.attributes[\"n\"], \"late\")']},{context: resource, statements: "
        "['delete_key(attributes, \"n\")']}]}}\n" PIPELINE("transform"));
    struct test_exporter *exporter = holding_exporter(h);
    offer(h, SPANS("a", "b"));
    assert_int_equal(exporter->held_count, 1);
    expect_json(exporter->held[0].batch,
                "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{"
                "\"name\":\"first\",\"status\":{}},{\"name\":\"first\",\"status\":{}}]}]}]}");
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    harness_destroy(h);
}

static void a_group_runs_only_where_a_condition_of_it_holds(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {transform: {trace_statements: [{context: span, conditions: ['name == \"x\"', "
        "'name == \"b\"'], statements: ['set(name, \"c\")']}]}}\n" PIPELINE("transform"));
    struct test_exporter *exporter = holding_exporter(h);
    offer(h, SPANS("a", "b"));
    expect_json(exporter->held[0].batch,
                "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{"
                "\"name\":\"a\",\"status\":{}},{\"name\":\"c\",\"status\":{}}]}]}]}");
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    harness_destroy(h);
}

static void errors_refuse_the_request_if_they_propagate(void **state)
{
    static const char *const modes[] = {"ignore", "silent", "PROPAGATE"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char yaml[TEXT_MAX];
        snprintf(yaml, sizeof(yaml),
                 "processors: {transform: {error_mode: %s, trace_statements: ['set(span.name, "
                 "1)']}}\n" PIPELINE("transform"),
                 modes[i]);
        struct harness *h = harness_create(yaml);
        struct test_exporter *exporter = holding_exporter(h);
        struct test_request *request = offer(h, SPANS("a", "b"));
        assert_int_equal(exporter->held_count, i < 2);
        if (i < 2)
            test_exporter_release(exporter, RESULT_OK);
        harness_turn(h);
        assert_true(request->is_resolved);
        assert_int_equal(request->outcome.verdict, i < 2 ? ACCEPTED : REFUSED);
        assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_INVALID], i < 2 ? 0 : 2);
        harness_destroy(h);
    }
}

/* Who has taken a request gives it up when it would be refused for ever: what comes behind it has
 * to pass. */
static void a_batch_that_always_fails_holds_up_no_others(void **state)
{
    static const struct {
        const char *before;
        const char *failing; /* for spans named "b" */
    } rows[] = {
        {"batch: {timeout: 0s}", "transform: {error_mode: propagate, trace_statements: "
                                 "['set(span.name, 1) where span.name == \"b\"']}"},
        {"batch: {timeout: 0s}", "filter: {error_mode: propagate, trace_conditions: "
                                 "['span.name == \"b\" and Int(span.attributes) == 1']}"},
        {"groupbytrace: {wait_duration: 1s}",
         "transform: {error_mode: propagate, trace_statements: "
         "['set(span.name, 1) where span.name == \"b\"']}"},
        {"tail_sampling: {decision_wait: 1s, policies: [{name: all, type: always_sample}]}",
         "transform: {error_mode: propagate, trace_statements: "
         "['set(span.name, 1) where span.name == \"b\"']}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[TEXT_MAX];
        snprintf(yaml, sizeof(yaml), "processors: {%s, %s}\n" PIPELINE("%.*s, %.*s"),
                 rows[i].before, rows[i].failing, (int)strcspn(rows[i].before, ":"), rows[i].before,
                 (int)strcspn(rows[i].failing, ":"), rows[i].failing);
        struct harness *h = harness_create(yaml);
        harness_exporter(h, "test")->has_own_items = true;
        offer(h, SPANS("b", "b"));
        harness_advance(h, 3 * S);
        offer(h, SPANS("a", "c"));
        harness_advance(h, 3 * S);
        const struct harness_totals totals = harness_totals(h, TRACES);
        assert_int_equal(totals.in_flight, 0);
        assert_int_equal(totals.by_reason[LOSS_INVALID], 2);
        assert_int_equal(totals.dropped, 2);
        assert_int_equal(totals.delivered, 2);
        harness_destroy(h);
    }
}

/* A batch behind an acknowledgement, and what becomes of it and of the next one. */
static void expect_drop(const char *processor, const char *json, enum loss_reason reason)
{
    char yaml[TEXT_MAX];
    snprintf(yaml, sizeof(yaml),
             "processors: {batch: {timeout: 0s}, %s}\n"
             "exporters: {test: {}}\n"
             "service: {budget_mib: 2, pipelines: {traces: {receivers: [test], processors: [batch, "
             "%.*s], exporters: [test]}}}\n",
             processor, (int)strcspn(processor, ":"), processor);
    struct harness *h = harness_create(yaml);
    const struct budget *budget = &h->service->budget;
    harness_exporter(h, "test")->has_own_items = true;
    assert_int_equal(offer(h, json)->outcome.verdict, ACCEPTED);
    harness_advance(h, 1 * S);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.in_flight, 0);
    assert_int_equal(totals.dropped, 2);
    assert_int_equal(totals.by_reason[reason], 2);
    assert_true(atomic_load(&budget->high_water) <= budget_limit(budget) / 100 * 115);
    offer(h, SPANS("a", "b"));
    harness_advance(h, 1 * S);
    assert_int_equal(harness_totals(h, TRACES).delivered, 2);
    harness_destroy(h);
}

/* What has got its OK is charged as well: statements that make more of it than the budget has lose
 * it, and no more. */
static void acknowledged_batches_stay_within_the_budget(void **state)
{
    enum { LONG = 500 * 1000 };
    static const char setting[] = "transform: {trace_statements: ["
                                  "'set(span.attributes[\"a\"], resource.attributes[\"r\"])', "
                                  "'set(span.attributes[\"b\"], resource.attributes[\"r\"])']}";
    static const char matching[] =
        "filter: {traces: {span: ['IsMatch(resource.attributes, \"zzz\")']}}";
    char *json = mem_alloc(LONG + TEXT_MAX);
    (void)state;
    int used = sprintf(json, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"r\","
                             "\"value\":{\"stringValue\":\"");
    memset(json + used, '<', LONG); /* JSON needs six bytes for one */
    sprintf(json + used + LONG, "\"}}]},\"scopeSpans\":[{\"spans\":[{\"name\":\"a\"},"
                                "{\"name\":\"b\"}]}]}]}");
    expect_drop(setting, json, LOSS_TOO_LARGE);
    expect_drop(matching, json, LOSS_TOO_LARGE);
    mem_free(json);
}

#define NARROW                                                                                     \
    "processors: {batch: {timeout: 0s}, transform: {trace_statements: ['set(span.name, "           \
    "\"c\")']}}\nexporters: {test: {}, test/slow: {}}\nservice: {budget_mib: 1, pipelines: {"      \
    "traces: {receivers: [test], processors: [batch, transform], exporters: [test]}, "             \
    "logs: {receivers: [test], exporters: [test/slow]}}}\n"

/* Two spans behind an acknowledgement; so much of the budget is gone once they have it. */
static void send_two(struct harness *h, uint64_t taken)
{
    struct buffer *encoded = encode(SPANS("a", "b"));
    struct test_request *request = harness_put_bytes(h, 0, TRACES, buffer_slice(encoded), 2);
    buffer_unref(encoded);
    budget_take(&h->service->budget, taken);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
}

/* What exporters hold comes free, however long a back-end takes. */
static void a_batch_waits_for_what_exporters_hold(void **state)
{
    static const uint8_t large[MIB / 8];
    (void)state;
    struct harness *h = harness_create(NARROW);
    struct budget *budget = &h->service->budget;
    struct test_exporter *slow = harness_exporter_on(h, "test/slow", 0, LOGS);
    harness_exporter(h, "test")->has_own_items = slow->has_own_items = true;
    budget_take(budget, MIB / 2);
    for (unsigned i = 0; i < 2; i++) {
        slow->result = RESULT_HOLD;
        harness_offer_bytes(h, 0, LOGS, slice_of(large, sizeof(large)), 1);
        send_two(h, 2 * MIB);
        harness_advance(h, i == 0 ? 500 * S : 700 * S);
        assert_int_equal(harness_totals(h, TRACES).in_flight, i == 0 ? 2 : 0);
        budget_return(budget, 2 * MIB);
        test_exporter_release(slow, RESULT_OK);
        harness_advance(h, 1 * S);
        const struct harness_totals totals = harness_totals(h, TRACES);
        assert_int_equal(totals.in_flight, 0);
        assert_int_equal(totals.delivered, 2);
        assert_int_equal(totals.by_reason[LOSS_MEMORY], i == 0 ? 0 : 2);
    }
    budget_return(budget, MIB / 2);
    harness_destroy(h);
}

/* Whoever else holds the memory may be waiting for the batch. */
static void a_batch_waits_for_other_stages_within_bounds(void **state)
{
    (void)state;
    struct harness *h = harness_create(NARROW);
    struct budget *budget = &h->service->budget;
    harness_exporter(h, "test")->has_own_items = true;
    send_two(h, 2 * MIB);
    harness_advance(h, 50 * S);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 2);
    harness_advance(h, 20 * S);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_MEMORY], 2);
    /* The next one does not wait as long to find out the same … */
    budget_return(budget, 2 * MIB);
    send_two(h, 2 * MIB);
    harness_advance(h, 1 * S);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_MEMORY], 4);
    budget_return(budget, 2 * MIB);
    send_two(h, 0);
    harness_advance(h, 1 * S);
    assert_int_equal(harness_totals(h, TRACES).delivered, 2);
    /* … until one was taken. */
    send_two(h, 2 * MIB);
    harness_advance(h, 50 * S);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 2);
    budget_return(budget, 2 * MIB);
    harness_advance(h, 1 * S);
    assert_int_equal(harness_totals(h, TRACES).delivered, 4);
    harness_destroy(h);
}

/* The lane's helper does it. */
static void a_large_request_is_edited_as_a_small_one(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {transform: {trace_statements: ['set(span.name, \"c\")']}}\n" PIPELINE(
            "transform"));
    struct test_exporter *exporter = holding_exporter(h);
    size_t size = HELPED_BYTES_MIN;
    char *json = mem_alloc(size + TEXT_MAX);
    char *at = json + sprintf(json, "{\"resourceSpans\":[{\"schemaUrl\":\"");
    memset(at, 'u', size);
    sprintf(at + size, "\",\"scopeSpans\":[{\"spans\":[{\"name\":\"a\"},{\"name\":\"b\"}]}]}]}");
    struct test_request *request = offer(h, json);
    mem_free(json);
    assert_false(request->is_resolved);
    assert_int_equal(exporter->held_count, 1);
    assert_int_equal(exporter->held[0].batch->items, 2);
    assert_true(exporter->held[0].batch->parts_count > 1);
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

/* The helper has gone on to the next one when the lane hears of the first. */
static void each_request_gets_the_error_of_its_own(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("processors: {transform: {error_mode: propagate, trace_statements: "
                       "['set(span.name, ParseJSON(span.name))']}}\n" PIPELINE("transform"));
    struct buffer *encoded[2];
    struct slice bytes[2];
    char texts[2][HARNESS_TEXT_MAX];
    char *json = mem_alloc(HELPED_BYTES_MIN + TEXT_MAX);
    for (unsigned i = 0; i < 2; i++) {
        sprintf(json,
                "{\"resourceSpans\":[{\"schemaUrl\":\"%0*d\",\"scopeSpans\":[{\"spans\":[{"
                "\"name\":\"%c\"}]}]}]}",
                HELPED_BYTES_MIN, 0, "st"[i]);
        encoded[i] = encode(json);
        bytes[i] = buffer_slice(encoded[i]);
    }
    harness_refuse_two(h, harness_processor(h, "transform", TRACES), bytes, texts);
    assert_non_null(strstr(texts[0], "found s"));
    assert_non_null(strstr(texts[1], "found t"));
    for (unsigned i = 0; i < 2; i++)
        buffer_unref(encoded[i]);
    mem_free(json);
    harness_destroy(h);
}

/* It has a Resource that is read for each of its spans: the helper does it then, all of it. */
static void a_request_that_takes_long_is_edited_as_others(void **state)
{
    (void)state;
    enum { TEXT_BYTES = 200 * 1024, SPANS = 100, SPAN_BYTES = 32 };
    struct harness *h = harness_create(
        "processors: {transform: {trace_statements: ['set(span.attributes[\"n\"], "
        "Len(Concat([resource.attributes[\"a\"], span.name], \"\")))']}}\n" PIPELINE("transform"));
    struct test_exporter *exporter = holding_exporter(h);
    char *json = mem_alloc(TEXT_BYTES + SPANS * SPAN_BYTES + TEXT_MAX);
    char *at =
        json + sprintf(json,
                       "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"a\","
                       "\"value\":{\"stringValue\":\"%0*d\"}}]},\"scopeSpans\":[{\"spans\":[",
                       TEXT_BYTES, 0);
    for (size_t i = 0; i < SPANS; i++)
        at += sprintf(at, "%s{\"name\":\"b\"}", i > 0 ? "," : "");
    sprintf(at, "]}]}]}");
    struct test_request *request = offer(h, json);
    mem_free(json);
    assert_false(request->is_resolved);
    assert_int_equal(exporter->held_count, 1);
    struct buffer *found = json_write_batch(exporter->held[0].batch, NULL);
    static const char value[] = "\"intValue\":\"204801\"";
    unsigned edited = 0;
    for (size_t i = 0; i + sizeof(value) <= found->size; i++)
        edited += memcmp(found->data + i, value, sizeof(value) - 1) == 0;
    assert_int_equal(edited, SPANS);
    buffer_unref(found);
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

static void wrong_settings_are_reported(void **state)
{
    static const char *const rows[][3] = {
        {"filter", "{error_mode: x}", "error_mode: unknown error mode \"x\""},
        {"filter", "{traces: {span: [name]}}", "traces::span::0: column 5: the text ends here"},
        {"filter", "{traces: {spanevent: ['name == \"a\"', 'x == 1']}}",
         "traces::spanevent::1: column 1: a spanevent has no path \"x\""},
        {"filter", "{trace_conditions: ['span.name == \"a\"', {context: span}]}",
         "trace_conditions::1: conditions and groups {context, conditions} cannot be mixed"},
        {"filter", "{trace_conditions: [{context: log, conditions: ['true']}]}",
         "trace_conditions::0::context: unknown context \"log\" for traces"},
        {"filter", "{trace_conditions: [{context: span, conditions: ['true', 'nam == 1']}]}",
         "trace_conditions::0::conditions::1: column 1: a span has no path \"nam\""},
        {"filter", "{trace_conditions: [{context: span, condition: ['true']}]}",
         "trace_conditions::0: unknown key \"condition\""},
        {"filter", "{trace_conditions: ['span.name == \"a\"', 'span.nam == \"a\"']}",
         "trace_conditions::1: column 1: a span has no path \"nam\""},
        {"filter", "{trace_conditions: ['span.name == \"a\"'], traces: {span: ['true']}}",
         "trace_conditions: cannot be used together with traces"},
        {"filter", "{metric_conditions: ['metric.nam == \"a\"']}",
         "metric_conditions::0: column 1: a metric has no path \"nam\""},
        {"filter", "{profiles: {profile: ['perod == 1']}}",
         "profiles::profile::0: column 1: a profile has no path \"perod\""},
        {"transform", "{trace_statements: ['set(span.name, \"a\")', {context: span}]}",
         "trace_statements::1: a group behind statements"},
        {"transform", "{trace_statements: [{context: span, statements: ['set(name, 1']}]}",
         "trace_statements::0::statements::0: column 12: the text ends here"},
        {"transform",
         "{trace_statements: [{context: span, conditions: ['x == 1'], statements: ['set(name, "
         "\"\")']}]}",
         "trace_statements::0::conditions::0: column 1: a span has no path \"x\""},
        {"transform",
         "{trace_statements: [{context: span, statements: ['set(name, \"\")']}, 'set(span.nam, "
         "1)']}",
         "trace_statements::1: column 5: a span has no path \"nam\""},
        {"transform", "{flatten_data: true}", "flatten_data: 'flatten_data' requires"},
        /* The scope's older name is for paths of what is inside it. */
        {"transform", "{log_statements: ['set(instrumentation_scope.name, \"a\")']}",
         "log_statements: \"scope\" is no context of this list; write scope instead"},
        {"filter", "{trace_conditions: ['instrumentation_scope.name == \"a\" and IsRootSpan()']}",
         "write scope instead of instrumentation_scope"},
        {"transform", "{trace_statements: ['set(scope.version, instrumentation_scope.name)']}",
         "column 20: \"instrumentation_scope\" is no context of a scope"},
        {"transform", "{profile_statements: ['set(profile.perod, 1)']}",
         "a profile has no path \"perod\" (did you mean \"period\"?)"},
        {"transform", "{log_statements: ['set(log.body, 1)', 'set(log.bodi, 1)']}",
         "log_statements::1: column 5: a log has no path \"bodi\" (did you mean \"body\"?)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[TEXT_MAX];
        snprintf(yaml, sizeof(yaml),
                 "processors: {%s: %s}\nexporters: {test: }\nservice: {pipelines: {traces: "
                 "{receivers: [test], processors: [%s], exporters: [test]}}}\n",
                 rows[i][0], rows[i][1], rows[i][0]);
        if (!harness_is_wrong(yaml, rows[i][2]))
            fail_msg("%s: %s: not found: %s", rows[i][0], rows[i][1], rows[i][2]);
    }
}

/* Gates of both processors: without them what fails refuses the request. */
static void gates_decide_what_failures_do(void **state)
{
    static const struct {
        const char *gates;
        const char *name;
        const char *section;
        bool is_refused;
    } rows[] = {
        {NULL, "transform", "{trace_statements: ['set(span.name, ParseJSON(span.name))']}", false},
        {"-processor.filter.defaultErrorModeIgnore", "transform",
         "{trace_statements: ['set(span.name, ParseJSON(span.name))']}", false},
        {"-processor.transform.defaultErrorModeIgnore", "transform",
         "{trace_statements: ['set(span.name, ParseJSON(span.name))']}", true},
        {"-processor.transform.defaultErrorModeIgnore", "transform",
         "{error_mode: silent, trace_statements: ['set(span.name, ParseJSON(span.name))']}", false},
        {NULL, "filter", "{trace_conditions: ['ParseJSON(span.name) == nil']}", false},
        {"-processor.filter.defaultErrorModeIgnore", "filter",
         "{trace_conditions: ['ParseJSON(span.name) == nil']}", true},
        {"filter.filterspan.useOTTLBridge,-processor.transform.defaultErrorModeIgnore", "filter",
         "{trace_conditions: ['ParseJSON(span.name) == nil']}", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        harness_set_gates(rows[i].gates);
        struct harness *h = record_harness(rows[i].name, rows[i].section, TRACES);
        record_send(h, TRACES,
                    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"s\"}]}]}]}");
        char *output = record_output(h, TRACES);
        assert_int_equal(output[0] == '\0', rows[i].is_refused);
        free(output);
        harness_destroy(h);
    }
    harness_set_gates(NULL);
}

/* Editors of a span's attributes that run once for each of its events see what they have made. */
static void groups_of_events_change_their_span(void **state)
{
#define SPAN_WITH(key)                                                                             \
    "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{\"name\":"     \
    "\"s\",\"attributes\":[{\"key\":\"" key "\",\"value\":{\"stringValue\":\"v\"}},{\"key\":"      \
    "\"b\",\"value\":{\"stringValue\":\"w\"}}],\"events\":[{\"name\":\"1\"},{\"name\":\"2\"}],"    \
    "\"status\":{}}]}]}]}"
    static const char *const rows[][2] = {
        {"replace_all_patterns(span.attributes, \"key\", \"^k\", \"z\")", SPAN_WITH("z1")},
        {"replace_all_patterns(span.attributes, \"key\", \"1$\", \"11\")", SPAN_WITH("k111")},
        {"replace_all_matches(span.attributes, \"x*\", \"y\")", SPAN_WITH("k1")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char section[TEXT_MAX];
        snprintf(section, sizeof(section),
                 "{trace_statements: [{context: spanevent, statements: ['%s']}]}", rows[i][0]);
        record_compare("transform", section, TRACES, SPAN_WITH("k1"), rows[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_filter_drops_is_dropped_in_the_ledger_once_the_rest_is_accepted),
        cmocka_unit_test(a_request_that_is_dropped_whole_is_accepted),
        cmocka_unit_test(a_request_that_fails_is_rejected_with_what_was_dropped),
        cmocka_unit_test(what_no_statement_changes_goes_on_as_it_came),
        cmocka_unit_test(groups_run_in_order),
        cmocka_unit_test(groups_of_several_contexts_run_in_order),
        cmocka_unit_test(later_groups_are_not_seen_early),
        cmocka_unit_test(a_group_runs_only_where_a_condition_of_it_holds),
        cmocka_unit_test(errors_refuse_the_request_if_they_propagate),
        cmocka_unit_test(a_batch_that_always_fails_holds_up_no_others),
        cmocka_unit_test(acknowledged_batches_stay_within_the_budget),
        cmocka_unit_test(a_batch_waits_for_what_exporters_hold),
        cmocka_unit_test(a_batch_waits_for_other_stages_within_bounds),
        cmocka_unit_test(a_large_request_is_edited_as_a_small_one),
        cmocka_unit_test(each_request_gets_the_error_of_its_own),
        cmocka_unit_test(a_request_that_takes_long_is_edited_as_others),
        cmocka_unit_test(wrong_settings_are_reported),
        cmocka_unit_test(gates_decide_what_failures_do),
        cmocka_unit_test(groups_of_events_change_their_span),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
