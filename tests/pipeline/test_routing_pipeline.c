/* SPDX-License-Identifier: Apache-2.0 */
/* routing between pipelines, from YAML to bytes and ledger: which items each pipeline gets, what
 * the client gets, and that every item is accounted for, whoever refuses its part. */
#include "tests/support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"

/* The pipelines a and b, and d by default, of one signal. */
#define SERVICE(signal)                                                                            \
    "exporters: {test/a: " NO_QUEUE ", test/b: " NO_QUEUE ", test/d: " NO_QUEUE "}\n"              \
    "service: {pipelines: {" signal "/in: {receivers: [test], exporters: [routing]}, " signal      \
    "/a: {receivers: [routing], exporters: [test/a]}, " signal                                     \
    "/b: {receivers: [routing], exporters: [test/b]}, " signal                                     \
    "/d: {receivers: [routing], exporters: [test/d]}}}\n"
#define NO_QUEUE "{sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}"
#define TABLE(entries)                                                                             \
    "connectors: {routing: {default_pipelines: [traces/d], table: [" entries                       \
    "]}}\n" SERVICE("traces")

#define SPAN(name)        "{\"name\":\"" name "\",\"status\":{}}"
#define SCOPE(name, list) "{\"scope\":{\"name\":\"" name "\"},\"spans\":[" list "]}"
#define RESOURCE(name, scopes)                                                                     \
    "{\"resource\":{\"attributes\":[{\"key\":\"env\",\"value\":{\"stringValue\":\"" name           \
    "\"}}]},\"scopeSpans\":[" scopes "]}"
#define REQUEST(list) "{\"resourceSpans\":[" list "]}"
/* Four spans. */
#define FOUR                                                                                       \
    REQUEST(RESOURCE("prod", SCOPE("x", SPAN("p1") "," SPAN("p2")) "," SCOPE(                      \
                                 "y", SPAN("p1"))) "," RESOURCE("dev", SCOPE("x", SPAN("d1"))))

enum { TEXT_MAX = 4096 };

static const char *const exporters[] = {"test/a", "test/b", "test/d"};
enum { EXPORTERS = 3 };

static struct buffer *encode(enum signal_kind signal, const char *json)
{
    char reason[JSON_REASON_BYTES_MAX];
    struct buffer *encoded = NULL;
    if (json_read(otlp_request(signal), slice_of_text(json), NULL, &encoded, reason) != JSON_READ)
        fail_msg("%s", reason);
    return encoded;
}

/* Builds; every exporter keeps what it gets. */
static struct harness *build(const char *yaml, enum signal_kind signal)
{
    struct harness *h = harness_create(yaml);
    for (unsigned i = 0; i < EXPORTERS; i++) {
        struct test_exporter *exporter = harness_exporter_on(h, exporters[i], 0, signal);
        exporter->result = RESULT_HOLD;
        exporter->has_own_items = true;
    }
    return h;
}

static struct test_request *offer(struct harness *h, enum signal_kind signal, const char *json,
                                  uint64_t items)
{
    struct buffer *encoded = encode(signal, json);
    struct test_request *request = harness_offer_bytes(h, 0, signal, buffer_slice(encoded), items);
    buffer_unref(encoded);
    return request;
}

/* What the exporter holds, in one request; NULL: nothing. */
static void expect_held(struct harness *h, enum signal_kind signal, const char *id,
                        const char *expected, uint64_t items)
{
    const struct test_exporter *exporter = harness_exporter_on(h, id, 0, signal);
    char text[TEXT_MAX];
    assert_int_equal(exporter->held_count, expected != NULL);
    if (expected == NULL)
        return;
    assert_int_equal(exporter->held[0].batch->items, items);
    struct buffer *json = json_write_batch(exporter->held[0].batch, NULL);
    assert_non_null(json);
    assert_true(json->size < sizeof(text));
    memcpy(text, json->data, json->size);
    text[json->size] = '\0';
    assert_string_equal(text, expected);
    buffer_unref(json);
}

static void release(struct harness *h, enum signal_kind signal)
{
    for (unsigned i = 0; i < EXPORTERS; i++)
        test_exporter_release(harness_exporter_on(h, exporters[i], 0, signal), RESULT_OK);
    harness_turn(h);
}

/* received, delivered, dropped as unwanted. */
static void expect_totals(struct harness *h, enum signal_kind signal, uint64_t received,
                          uint64_t delivered, uint64_t unwanted)
{
    struct harness_totals totals = harness_totals(h, signal);
    assert_int_equal(totals.received, received);
    assert_int_equal(totals.delivered, delivered);
    assert_int_equal(totals.by_reason[LOSS_UNWANTED], unwanted);
    assert_int_equal(totals.in_flight, 0);
}

struct division {
    const char *yaml;
    enum signal_kind signal;
    const char *json;
    uint64_t items;
    const char *held[EXPORTERS];
    uint64_t held_items[EXPORTERS];
    uint64_t received; /* with surplus copies */
    uint64_t unwanted;
};

static void expect_division(const struct division *division)
{
    const enum signal_kind signal = division->signal;
    struct harness *h = build(division->yaml, signal);
    struct test_request *request = offer(h, signal, division->json, division->items);
    uint64_t delivered = 0;
    for (unsigned i = 0; i < EXPORTERS; i++) {
        expect_held(h, signal, exporters[i], division->held[i], division->held_items[i]);
        delivered += division->held_items[i];
    }
    assert_int_equal(request->is_resolved, delivered == 0);
    release(h, signal);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    expect_totals(h, signal, division->received, delivered, division->unwanted);
    harness_destroy(h);
}

static void whole_resources_go_to_the_pipelines_of_the_first_entry_that_matches(void **state)
{
    (void)state;
    const struct division division = {
        .yaml = TABLE("{condition: 'resource.attributes[\"env\"] == \"prod\"', pipelines: "
                      "[traces/a]}, {condition: 'resource.attributes[\"env\"] != \"\"', "
                      "pipelines: [traces/b, traces/d]}"),
        .signal = TRACES,
        .json = FOUR,
        .items = 4,
        .held = {REQUEST(RESOURCE(
                     "prod", SCOPE("x", SPAN("p1") "," SPAN("p2")) "," SCOPE("y", SPAN("p1")))),
                 REQUEST(RESOURCE("dev", SCOPE("x", SPAN("d1")))),
                 REQUEST(RESOURCE("dev", SCOPE("x", SPAN("d1"))))},
        .held_items = {3, 1, 1},
        .received = 12,
        .unwanted = 7,
    };
    expect_division(&division);
}

static void spans_take_their_resource_and_scope_with_them(void **state)
{
    (void)state;
    const struct division division = {
        .yaml = TABLE("{context: span, statement: 'route() where name == \"p1\"', pipelines: "
                      "[traces/a]}, {condition: 'span.name == \"d1\"', action: move, pipelines: "
                      "[traces/b]}"),
        .signal = TRACES,
        .json = FOUR,
        .items = 4,
        .held = {REQUEST(RESOURCE("prod", SCOPE("x", SPAN("p1")) "," SCOPE("y", SPAN("p1")))),
                 REQUEST(RESOURCE("dev", SCOPE("x", SPAN("d1")))),
                 REQUEST(RESOURCE("prod", SCOPE("x", SPAN("p2"))))},
        .held_items = {2, 1, 1},
        .received = 12,
        .unwanted = 8,
    };
    expect_division(&division);
}

static void copies_stay_for_later_entries_and_a_pipeline_may_get_items_twice(void **state)
{
    (void)state;
    const struct division division = {
        .yaml = TABLE("{condition: 'span.name == \"p1\"', action: copy, pipelines: [traces/a]}, "
                      "{condition: 'resource.attributes[\"env\"] == \"prod\"', action: copy, "
                      "pipelines: [traces/a]}"),
        .signal = TRACES,
        .json = FOUR,
        .items = 4,
        .held =
            {REQUEST(
                 RESOURCE("prod", SCOPE("x", SPAN("p1")) "," SCOPE("y", SPAN("p1"))) "," RESOURCE(
                     "prod", SCOPE("x", SPAN("p1") "," SPAN("p2")) "," SCOPE("y", SPAN("p1")))),
             NULL, FOUR},
        .held_items = {5, 0, 4},
        .received = 13,
        .unwanted = 4,
    };
    expect_division(&division);
}

#define BARE(scopes) "{\"resource\":{},\"scopeSpans\":[" scopes "]}"

static void statements_edit_what_they_match(void **state)
{
    (void)state;
    static const struct division divisions[] = {
        {
            .yaml = TABLE("{statement: 'delete_key(resource.attributes, \"env\") where "
                          "resource.attributes[\"env\"] == \"dev\"', pipelines: [traces/a]}"),
            .held = {REQUEST(BARE(SCOPE("x", SPAN("d1")))), NULL,
                     REQUEST(RESOURCE("prod", SCOPE("x", SPAN("p1") "," SPAN("p2")) "," SCOPE(
                                                  "y", SPAN("p1"))))},
            .held_items = {1, 0, 3},
            .received = 12,
            .unwanted = 8,
        },
        /* The others of the Resource are without the key, too. */
        {
            .yaml = TABLE("{statement: 'delete_matching_keys(resource.attributes, \"^e\") where "
                          "span.name == \"p2\"', pipelines: [traces/a]}"),
            .held = {REQUEST(BARE(SCOPE("x", SPAN("p2")))), NULL,
                     REQUEST(BARE(SCOPE("x", SPAN("p1")) "," SCOPE("y", SPAN("p1"))) "," RESOURCE(
                         "dev", SCOPE("x", SPAN("d1"))))},
            .held_items = {1, 0, 3},
            .received = 12,
            .unwanted = 8,
        },
        /* Later entries and the default see the copy's edit. */
        {
            .yaml = TABLE("{statement: 'delete_key(resource.attributes, \"env\")', action: copy, "
                          "pipelines: [traces/a]}, {condition: 'resource.attributes[\"env\"] != "
                          "nil', pipelines: [traces/b]}"),
            .held = {REQUEST(BARE(SCOPE("x", SPAN("p1") "," SPAN("p2")) "," SCOPE(
                         "y", SPAN("p1"))) "," BARE(SCOPE("x", SPAN("d1")))),
                     NULL,
                     REQUEST(BARE(SCOPE("x", SPAN("p1") "," SPAN("p2")) "," SCOPE(
                         "y", SPAN("p1"))) "," BARE(SCOPE("x", SPAN("d1"))))},
            .held_items = {4, 0, 4},
            .received = 12,
            .unwanted = 4,
        },
        /* One that fails matches nothing: env is no map. */
        {
            .yaml =
                TABLE("{statement: 'delete_key(resource.attributes[\"env\"], \"k\") where "
                      "span.name != nil', pipelines: [traces/a]}, {context: otelcol, statement: "
                      "'delete_key(otelcol.client.metadata, \"k\")', pipelines: [traces/b]}"),
            .held = {NULL, NULL, FOUR},
            .held_items = {0, 0, 4},
            .received = 12,
            .unwanted = 8,
        },
    };
    for (size_t i = 0; i < sizeof(divisions) / sizeof(divisions[0]); i++) {
        struct division division = divisions[i];
        division.signal = TRACES;
        division.json = FOUR;
        division.items = 4;
        expect_division(&division);
    }
}

static void what_nobody_wants_is_accepted_and_dropped(void **state)
{
    (void)state;
    const struct division division = {
        .yaml = "connectors: {routing: {table: [{condition: 'span.name == \"none\"', pipelines: "
                "[traces/a]}, {context: log, condition: 'body == 1', pipelines: "
                "[traces/b]}]}}\n" SERVICE("traces"),
        .signal = TRACES,
        .json = FOUR,
        .items = 4,
        .received = 12,
        .unwanted = 12,
    };
    expect_division(&division);
}

#define POINT(value)       "{\"asInt\":\"" value "\"}"
#define METRIC(name, data) "{\"name\":\"" name "\"" data "}"
#define GAUGE(points)      ",\"gauge\":{\"dataPoints\":[" points "]}"
#define METRICS_OF(list)                                                                           \
    "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[" list    \
    "]}]}]}"
#define METRIC_TABLE(entries)                                                                      \
    "connectors: {routing: {default_pipelines: [metrics/d], table: [" entries                      \
    "]}}\n" SERVICE("metrics")

static void data_points_are_divided_within_a_metric(void **state)
{
    (void)state;
    const struct division division = {
        .yaml = METRIC_TABLE("{condition: 'datapoint.value_int == 1', pipelines: [metrics/a]}, "
                             "{condition: 'metric.name == \"g\"', pipelines: [metrics/b]}"),
        .signal = METRICS,
        .json = METRICS_OF(METRIC("g", GAUGE(POINT("1") "," POINT("2"))) "," METRIC(
            "n", "") "," METRIC("h", GAUGE(POINT("1")))),
        .items = 3,
        .held = {METRICS_OF(METRIC("g", GAUGE(POINT("1"))) "," METRIC("h", GAUGE(POINT("1")))),
                 METRICS_OF(METRIC("g", GAUGE(POINT("2")))), METRICS_OF(METRIC("n", ""))},
        .held_items = {2, 1, 0},
        .received = 9,
        .unwanted = 6,
    };
    expect_division(&division);
}

static void log_records_are_routed(void **state)
{
    (void)state;
#define RECORDS(list)                                                                              \
    "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":{},\"logRecords\":[" list       \
    "]}]}]}"
    const struct division division = {
        .yaml = "connectors: {routing: {default_pipelines: [logs/d], table: [{condition: "
                "'log.severity_number == 17', pipelines: [logs/a]}]}}\n" SERVICE("logs"),
        .signal = LOGS,
        .json = RECORDS("{\"severityNumber\":17,\"body\":{}},{\"severityNumber\":9,\"body\":{}}"),
        .items = 2,
        .held = {RECORDS("{\"severityNumber\":17,\"body\":{}}"), NULL,
                 RECORDS("{\"severityNumber\":9,\"body\":{}}")},
        .held_items = {1, 0, 1},
        .received = 6,
        .unwanted = 4,
    };
    expect_division(&division);
}

/* Strings: 1 cpu, 2 wall, 3 thread, 4 main. The profile of CPU has the attribute thread="main". */
#define PROFILE(type, attributes)                                                                  \
    "{\"sampleType\":{\"typeStrindex\":" type                                                      \
    "},\"samples\":[{\"values\":[\"5\"]}],\"periodType\":"                                         \
    "{}" attributes "}"
#define CPU ",\"attributeIndices\":[1]"
#define OF_RESOURCE(list)                                                                          \
    "{\"resource\":{},\"scopeProfiles\":[{\"scope\":{},\"profiles\":[" list "]}]}"
#define PROFILES_OF(list)                                                                          \
    "{\"resourceProfiles\":[" list "],\"dictionary\":{\"stringTable\":[\"\",\"cpu\",\"wall\","     \
    "\"thread\",\"main\"],\"attributeTable\":[{\"value\":{}},{\"keyStrindex\":3,\"value\":"        \
    "{\"stringValue\":\"main\"}}]}}"

static void profiles_keep_their_dictionary_in_each_part(void **state)
{
    (void)state;
#define PROFILE_TABLE(entries)                                                                     \
    "connectors: {routing: {default_pipelines: [profiles/d], table: [" entries                     \
    "]}}\n" SERVICE("profiles")
    struct division division = {
        .yaml = PROFILE_TABLE("{condition: 'profile.sample_type.type == \"cpu\"', pipelines: "
                              "[profiles/a]}"),
        .signal = PROFILES,
        .json = PROFILES_OF(OF_RESOURCE(PROFILE("1", CPU) "," PROFILE("2", ""))),
        .items = 2,
        .held = {PROFILES_OF(OF_RESOURCE(PROFILE("1", CPU))), NULL,
                 PROFILES_OF(OF_RESOURCE(PROFILE("2", "")))},
        .held_items = {1, 0, 1},
        .received = 6,
        .unwanted = 4,
    };
    expect_division(&division);
    /* From two entries and the default: one request, with one dictionary. */
    division.yaml = PROFILE_TABLE(
        "{statement: 'delete_key(profile.attributes, \"thread\") where profile.sample_type.type == "
        "\"cpu\"', action: copy, pipelines: [profiles/d, profiles/b]}, {condition: "
        "'profile.sample_type.type == \"wall\"', action: copy, pipelines: [profiles/d]}");
    division.held[0] = NULL;
    division.held[1] = PROFILES_OF(OF_RESOURCE(PROFILE("1", "")));
    division.held[2] = PROFILES_OF(OF_RESOURCE(PROFILE("1", "")) "," OF_RESOURCE(
        PROFILE("2", "")) "," OF_RESOURCE(PROFILE("1", "") "," PROFILE("2", "")));
    division.held_items[0] = 0;
    division.held_items[1] = 1;
    division.held_items[2] = 4;
    division.received = 8;
    division.unwanted = 3;
    expect_division(&division);
}

static void expect_routed_by_client(const char *table)
{
    struct harness *h = build(table, TRACES);
    static const char *const tenants[] = {"acme", "other", NULL};
    for (unsigned i = 0; i < EXPORTERS; i++) {
        const struct client_metadata row = {"x-tenant", tenants[i]};
        struct client_info *client = client_info_create("1.2.3.4", &row, tenants[i] != NULL);
        harness_offer(h, (struct harness_offer){.signal = TRACES, .items = 2, .client = client});
        client_info_unref(client);
        harness_turn(h);
        assert_int_equal(harness_exporter(h, exporters[i])->held_count, 1);
        release(h, TRACES);
    }
    expect_totals(h, TRACES, 18, 6, 12);
    harness_destroy(h);
}

static void requests_are_routed_by_the_metadata_of_their_client(void **state)
{
    (void)state;
    expect_routed_by_client(
        TABLE("{context: request, condition: 'request[\"X-Tenant\"] == \"acme\"', pipelines: "
              "[traces/a]}, {context: request, condition: 'request[\"X-Tenant\"] != "
              "\"acme\"', pipelines: [traces/b]}"));
    expect_routed_by_client(TABLE(
        "{context: otelcol, condition: 'otelcol.client.metadata[\"X-Tenant\"][0] == \"acme\"', "
        "pipelines: [traces/a]}, {context: otelcol, condition: "
        "'otelcol.client.metadata[\"X-Tenant\"] != nil', pipelines: [traces/b]}"));
}

#define BY_NAME                                                                                    \
    TABLE("{condition: 'span.name == \"p1\"', pipelines: [traces/a]}, "                            \
          "{condition: 'span.name == \"p2\"', pipelines: [traces/b]}")

static void what_one_pipeline_refuses_is_lost_when_another_took_its_part(void **state)
{
    (void)state;
    struct harness *h = build(BY_NAME, TRACES);
    harness_exporter(h, "test/a")->result = RESULT_PERMANENT;
    struct test_request *request = offer(h, TRACES, FOUR, 4);
    assert_false(request->is_resolved);
    release(h, TRACES);
    assert_int_equal(request->outcome.verdict, LOST);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.received, 12);
    assert_int_equal(totals.delivered, 2);
    assert_int_equal(totals.rejected, 10); /* two by the back-end, eight unwanted */
    assert_int_equal(totals.by_reason[LOSS_UNWANTED], 8);
    harness_destroy(h);
}

/* Queues of one request, which hold one. */
static void a_request_that_all_refuse_is_refused_whole(void **state)
{
    (void)state;
    struct harness *h = build(
        "connectors: {routing: {table: [{condition: 'span.name == \"p1\"', action: copy, "
        "pipelines: [traces/a]}, {condition: 'span.name != \"\"', action: copy, pipelines: "
        "[traces/a]}]}}\n"
        "exporters: {test/a: {sending_queue: {queue_size: 1}}, test/b: {}, test/d: {}}\n"
        "service: {pipelines: {traces/in: {receivers: [test], exporters: [routing]}, "
        "traces/a: {receivers: [routing], exporters: [test/a]}, traces/b: {receivers: [routing], "
        "exporters: [test/b, test/d]}}}\n",
        TRACES);
    assert_int_equal(offer(h, TRACES, FOUR, 4)->outcome.verdict, ACCEPTED);
    struct test_request *request = offer(h, TRACES, FOUR, 4);
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_string_equal(request->text, "sending queue is full");
    struct harness_totals totals = harness_totals(h, TRACES);
    /* Three destinations, and two more spans for a, twice. */
    assert_int_equal(totals.received, 28);
    assert_int_equal(totals.by_reason[LOSS_BUSY], 14);
    assert_int_equal(totals.by_reason[LOSS_UNWANTED], 8);
    assert_int_equal(totals.in_flight, 6);
    release(h, TRACES);
    expect_totals(h, TRACES, 28, 6, 8);
    harness_destroy(h);
}

static void a_condition_that_fails_matches_nothing_or_refuses_the_request(void **state)
{
    (void)state;
#define FAILING                                                                                    \
    "table: [{condition: 'resource.attributes[\"env\"][\"x\"] == 1', pipelines: "                  \
    "[traces/a]}]}}\n" SERVICE("traces")
    struct harness *h =
        build("connectors: {routing: {default_pipelines: [traces/d], " FAILING, TRACES);
    offer(h, TRACES, FOUR, 4);
    expect_held(h, TRACES, "test/d", FOUR, 4);
    harness_destroy(h);
    h = build(
        "connectors: {routing: {error_mode: Propagate, default_pipelines: [traces/d], " FAILING,
        TRACES);
    struct test_request *request = offer(h, TRACES, FOUR, 4);
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_INVALID], 12);
    harness_destroy(h);
    harness_set_gates("-connector.routing.defaultErrorModeIgnore");
    h = build("connectors: {routing: {" FAILING, TRACES);
    harness_set_gates(NULL);
    assert_int_equal(offer(h, TRACES, FOUR, 4)->outcome.verdict, REFUSED);
    harness_destroy(h);
}

/* The request is the client's again: nothing of it stays charged. */
static void a_condition_on_the_client_that_fails_keeps_nothing_of_the_request(void **state)
{
    (void)state;
    struct harness *h = build(
        "connectors: {routing: {error_mode: propagate, default_pipelines: [traces/d], table: "
        "[{context: otelcol, condition: 'ParseJSON(otelcol.client.metadata[\"k\"][0]) != nil', "
        "pipelines: [traces/a]}]}}\n" SERVICE("traces"),
        TRACES);
    const struct client_metadata row = {"k", "{"};
    struct client_info *client = client_info_create("1.2.3.4", &row, 1);
    const uint64_t before = harness_budget_used(h);
    const struct test_request *request =
        harness_offer(h, (struct harness_offer){.signal = TRACES, .items = 2, .client = client});
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_int_equal(harness_budget_used(h), before);
    client_info_unref(client);
    harness_destroy(h);
}

static void large_requests_are_divided_by_the_helper(void **state)
{
    (void)state;
    static const char begin[] =
        "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},"
        "\"spans\":[{\"name\":\"";
    static const char end[] = "\",\"status\":{}},{\"name\":\"p1\",\"status\":{}}]}]}]}";
    char *json = mem_zalloc(HELPED_BYTES_MIN + sizeof(begin) + sizeof(end));
    memcpy(json, begin, sizeof(begin) - 1);
    memset(json + sizeof(begin) - 1, 'n', HELPED_BYTES_MIN);
    memcpy(json + sizeof(begin) - 1 + HELPED_BYTES_MIN, end, sizeof(end));
    struct harness *h = build(BY_NAME, TRACES);
    struct test_request *request = offer(h, TRACES, json, 2);
    assert_int_equal(harness_exporter(h, "test/a")->held_count, 1);
    assert_int_equal(harness_exporter(h, "test/a")->held[0].batch->items, 1);
    assert_int_equal(harness_exporter(h, "test/d")->held[0].batch->items, 1);
    release(h, TRACES);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    expect_totals(h, TRACES, 6, 2, 4);
    harness_destroy(h);
    mem_free(json);
}

/* They have a Resource that is read for each span: the helper begins anew. */
static void requests_that_take_long_are_divided_by_the_helper(void **state)
{
    (void)state;
    enum { TEXT_BYTES = 200 * 1024, SPANS = 100, SPAN_BYTES = 32, HEAD_BYTES = 256 };
    struct harness *h = build(
        TABLE("{condition: 'span.name == \"p1\"', action: copy, pipelines: [traces/b]}, "
              "{condition: 'Len(Concat([resource.attributes[\"a\"], span.name], \"\")) == 204802', "
              "pipelines: [traces/a]}"),
        TRACES);
    char *json = mem_zalloc(TEXT_BYTES + SPANS * SPAN_BYTES + HEAD_BYTES);
    char *at =
        json + sprintf(json,
                       "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"a\","
                       "\"value\":{\"stringValue\":\"%0*d\"}}]},\"scopeSpans\":[{\"spans\":[",
                       TEXT_BYTES, 0);
    for (size_t i = 0; i < SPANS; i++)
        at += sprintf(at, "%s{\"name\":\"%s\"}", i > 0 ? "," : "", i % 4 == 0 ? "p1" : "n");
    sprintf(at, "]}]}]}");
    struct test_request *request = offer(h, TRACES, json, SPANS);
    assert_int_equal(harness_exporter(h, "test/b")->held[0].batch->items, SPANS / 4);
    assert_int_equal(harness_exporter(h, "test/a")->held[0].batch->items, SPANS / 4);
    assert_int_equal(harness_exporter(h, "test/d")->held[0].batch->items, SPANS - SPANS / 4);
    release(h, TRACES);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    harness_destroy(h);
    mem_free(json);
}

static void the_same_condition_again_is_ignored(void **state)
{
    (void)state;
    const struct division division = {
        .yaml = TABLE("{condition: 'span.name == \"p2\"', action: copy, pipelines: [traces/a]}, "
                      "{context: span, statement: 'route() where name == \"p2\"', pipelines: "
                      "[traces/b]}"),
        .signal = TRACES,
        .json = FOUR,
        .items = 4,
        .held = {REQUEST(RESOURCE("prod", SCOPE("x", SPAN("p2")))), NULL, FOUR},
        .held_items = {1, 0, 4},
        .received = 12,
        .unwanted = 7,
    };
    expect_division(&division);
}

static void mistakes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *entry;
        const char *text;
    } mistakes[] = {
        {"", "the routing table is empty"},
        {"{pipelines: [traces/a]}", "no condition or statement provided"},
        {"{condition: 'true', statement: 'route()', pipelines: [traces/a]}",
         "both condition and statement provided"},
        {"{condition: 'span.name == \"\"'}", "no pipelines defined"},
        {"{condition: 'span.name == \"\"', pipelines: [traces/none]}",
         "missing consumer: \"traces/none\""},
        {"{condition: 'span.name == \"\"', pipelines: [traces/in]}",
         "missing consumer: \"traces/in\""},
        {"{condition: 'span.name == \"\"', action: Copy, pipelines: [traces/a]}",
         "invalid Action string: Copy"},
        {"{condition: 'span.name == \"\"', context: Span, pipelines: [traces/a]}",
         "invalid context: Span"},
        {"{condition: 'span.name ==', pipelines: [traces/a]}", "condition"},
        {"{condition: 'spam.name == 1', pipelines: [traces/a]}", "spam"},
        {"{statement: 'set(span.name, \"x\")', pipelines: [traces/a]}", "set"},
        {"{statement: 'keep_keys(resource.attributes, [\"x\"])', pipelines: [traces/a]}",
         "does not have \"keep_keys\""},
        {"{context: otelcol, condition: 'resource.schema_url == \"\"', pipelines: [traces/a]}",
         "otelcol"},
        {"{condition: 'scope.name == \"x\"', pipelines: [traces/a]}", "scope"},
        {"{context: request, statement: 'route()', pipelines: [traces/a]}",
         "requires a 'condition'"},
        {"{context: request, condition: 'request[\"a\"] > \"b\"', pipelines: [traces/a]}",
         "does not contain a valid comparator"},
        {"{context: request, condition: 'request[\"a\"] == \"b\" == \"c\"', pipelines: [traces/a]}",
         "multiple comparators"},
        {"{context: request, condition: 'attributes[\"a\"] == \"b\"', pipelines: [traces/a]}",
         "condition must have format"},
        {"{context: request, condition: 'request[\"a\"] == b', pipelines: [traces/a]}",
         "condition must have format"},
        {"{condition: 'true', match_once: true, pipelines: [traces/a]}", "match_once"},
    };
    char yaml[TEXT_MAX];
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        snprintf(yaml, sizeof(yaml), "connectors: {routing: {table: [%s]}}\n" SERVICE("traces"),
                 mistakes[i].entry);
        if (!harness_is_wrong(yaml, mistakes[i].text))
            fail_msg("accepted, or refused for another reason: %s", mistakes[i].entry);
    }
    assert_true(
        harness_is_wrong("connectors: {routing: {default_pipelines: [logs/a], table: "
                         "[{condition: 'true', pipelines: [traces/a]}]}}\n" SERVICE("traces"),
                         "missing consumer: \"logs/a\""));
    assert_true(harness_is_wrong("connectors: {routing: {error_mode: loud, table: [{condition: "
                                 "'true', pipelines: [traces/a]}]}}\n" SERVICE("traces"),
                                 "unknown error mode"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_resources_go_to_the_pipelines_of_the_first_entry_that_matches),
        cmocka_unit_test(spans_take_their_resource_and_scope_with_them),
        cmocka_unit_test(copies_stay_for_later_entries_and_a_pipeline_may_get_items_twice),
        cmocka_unit_test(statements_edit_what_they_match),
        cmocka_unit_test(what_nobody_wants_is_accepted_and_dropped),
        cmocka_unit_test(data_points_are_divided_within_a_metric),
        cmocka_unit_test(log_records_are_routed),
        cmocka_unit_test(profiles_keep_their_dictionary_in_each_part),
        cmocka_unit_test(requests_are_routed_by_the_metadata_of_their_client),
        cmocka_unit_test(what_one_pipeline_refuses_is_lost_when_another_took_its_part),
        cmocka_unit_test(a_request_that_all_refuse_is_refused_whole),
        cmocka_unit_test(a_condition_that_fails_matches_nothing_or_refuses_the_request),
        cmocka_unit_test(a_condition_on_the_client_that_fails_keeps_nothing_of_the_request),
        cmocka_unit_test(large_requests_are_divided_by_the_helper),
        cmocka_unit_test(requests_that_take_long_are_divided_by_the_helper),
        cmocka_unit_test(the_same_condition_again_is_ignored),
        cmocka_unit_test(mistakes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
