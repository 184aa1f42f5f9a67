/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions and statements over requests in OTLP/JSON. Expected is what contrib 0.155 (pkg/ottl,
 * filterprocessor, transformprocessor) makes of them. */
#include "src/ottl/ottl_runner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <uv.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"
#include "tests/support/random_otlp.h"

enum { STATEMENTS_MAX = 6, TEXT_MAX = 4096, CUT_PLACES = 3 };

/* A span with something of everything; %s are its attributes. */
#define SPAN                                                                                       \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"r\",\"value\":{\"stringValue\"" \
    ":\"R\"}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"S\"},\"spans\":[{\"traceId\":"              \
    "\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"0102030405060708\",\"name\":\"N\","         \
    "\"kind\":2,\"startTimeUnixNano\":\"1000000000\",\"endTimeUnixNano\":\"3500000000\","          \
    "\"attributes\":[%s],\"events\":[{\"timeUnixNano\":\"5\",\"name\":\"E\"}],\"status\":{"        \
    "\"message\":\"M\",\"code\":1}}]}]}]}"

#define A      "{\"key\":\"a\",\"value\":{\"stringValue\":\"x\"}}"
#define B      "{\"key\":\"b\",\"value\":{\"intValue\":\"2\"}}"
#define C      "{\"key\":\"c\",\"value\":{\"doubleValue\":2}}"
#define T(key) "{\"key\":\"" key "\",\"value\":{\"boolValue\":true}}"
#define LIST                                                                                       \
    "{\"key\":\"l\",\"value\":{\"arrayValue\":{\"values\":[{\"stringValue\":\"x\"},{\"intValue\":" \
    "\"7\"}]}}}"
#define MAP(text) "{\"key\":\"m\",\"value\":{\"kvlistValue\":{\"values\":[" text "]}}}"
#define EMPTY     "{\"key\":\"e\",\"value\":{}}"

struct failures {
    unsigned count;
    char last[OTTL_ERROR_BYTES_MAX];
};

static void on_failure(void *arg, const char *text, const char *error)
{
    struct failures *failures = arg;
    (void)text;
    failures->count++;
    snprintf(failures->last, sizeof(failures->last), "%s", error);
}

/* The request, in one part (cut 0) or cut into two. */
static struct batch *batch_of(enum signal_kind signal, const char *json, size_t cut)
{
    char reason[JSON_REASON_BYTES_MAX];
    struct buffer *encoded;
    struct otlp_figures figures;
    const char *failure;
    struct batch *batch;
    if (json_read(otlp_request(signal), slice_of_text(json), NULL, &encoded, reason) != JSON_READ)
        fail_msg("%s: %s", json, reason);
    assert_true(otlp_check(signal, buffer_slice(encoded), &figures, &failure));
    if (cut > 0) {
        batch = two_parts(signal, buffer_slice(encoded), encoded->size * cut / (CUT_PLACES + 1));
    } else {
        batch = batch_create(signal, 1);
        batch_append(batch, encoded, buffer_slice(encoded));
    }
    batch->items = figures.items;
    buffer_unref(encoded);
    return batch;
}

static void json_of(const struct batch *batch, char text[TEXT_MAX])
{
    struct buffer *json = json_write_batch(batch, NULL);
    assert_non_null(json);
    assert_true(json->size < TEXT_MAX);
    memcpy(text, json->data, json->size);
    text[json->size] = '\0';
    buffer_unref(json);
}

static struct ottl_plan *plan_of(enum signal_kind signal, enum ottl_context context,
                                 const char *const *texts, bool are_statements,
                                 enum ottl_error_mode mode)
{
    struct ottl_plan *plan =
        ottl_plan_create(signal, are_statements ? OTTL_FOR_TRANSFORM : OTTL_FOR_FILTER);
    struct ottl_group group = {.context = context,
                               .paths = context == OTTL_CONTEXTS ? OTTL_PATHS_FULL
                                                                 : OTTL_PATHS_OF_CONTEXT,
                               .error_mode = mode};
    struct error error;
    size_t count = 0;
    while (count < STATEMENTS_MAX && texts[count] != NULL)
        count++;
    *(are_statements ? &group.statements : &group.conditions) = texts;
    *(are_statements ? &group.statements_count : &group.conditions_count) = count;
    if (!ottl_plan_add(plan, &group, true, &error))
        fail_msg("%s: %s", texts[0], error.text);
    ottl_plan_finish(plan);
    return plan;
}

/* What statements make of a request, whole and cut, and how often they fail. */
static void expect_run(enum signal_kind signal, enum ottl_context context,
                       const char *const *statements, const char *before, const char *after,
                       unsigned failures_expected)
{
    for (size_t cut = 0; cut <= CUT_PLACES; cut++) {
        struct ottl_plan *plan = plan_of(signal, context, statements, true, OTTL_IGNORE);
        struct batch *batch = batch_of(signal, before, cut);
        struct batch *expected = batch_of(signal, after, 0);
        struct failures failures = {.count = 0};
        struct ottl_runner runner;
        char found[TEXT_MAX], wanted[TEXT_MAX];
        ottl_runner_init(&runner, plan, NULL);
        runner.on_failure = on_failure;
        runner.arg = &failures;
        /* Twice: nothing is left over from the first. */
        for (unsigned i = 0; i < 2; i++) {
            failures.count = 0;
            struct ottl_result result = ottl_runner_run(&runner, batch);
            assert_int_equal(result.verdict, OTTL_PASSED);
            json_of(result.batch, found);
            json_of(expected, wanted);
            assert_string_equal(found, wanted);
            assert_int_equal(result.batch->items, batch->items);
            if (strcmp(before, after) == 0)
                assert_ptr_equal(result.batch, batch);
            batch_unref(result.batch);
        }
        if (failures.count != failures_expected)
            fail_msg("%u failures of %s, the last: %s", failures.count, statements[0],
                     failures.last);
        ottl_runner_fini(&runner);
        ottl_plan_destroy(plan);
        batch_unref(batch);
        batch_unref(expected);
    }
}

static void expect_attributes(const char *statement, const char *before, const char *after,
                              unsigned failures)
{
    const char *const statements[STATEMENTS_MAX] = {statement};
    char from[TEXT_MAX], to[TEXT_MAX];
    snprintf(from, sizeof(from), SPAN, before);
    snprintf(to, sizeof(to), SPAN, after);
    expect_run(TRACES, OTTL_SPAN, statements, from, to, failures);
}

/* The condition holds for the span, or fails, or neither. */
static void expect_condition(const char *condition, const char *attributes, bool holds, bool fails)
{
    char json[TEXT_MAX];
    const char *const conditions[STATEMENTS_MAX] = {condition};
    snprintf(json, sizeof(json), SPAN, attributes);
    for (size_t cut = 0; cut <= CUT_PLACES; cut++) {
        struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, conditions, false, OTTL_PROPAGATE);
        struct batch *batch = batch_of(TRACES, json, cut);
        struct ottl_runner runner;
        ottl_runner_init(&runner, plan, NULL);
        runner.prunes = true;
        struct ottl_result result = ottl_runner_run(&runner, batch);
        enum ottl_verdict expected = fails ? OTTL_REFUSED : holds ? OTTL_EMPTIED : OTTL_PASSED;
        if (result.verdict != expected)
            fail_msg("%s: verdict %d, %s", condition, result.verdict, runner.run.error);
        assert_int_equal(result.dropped, holds);
        if (result.batch != NULL)
            assert_ptr_equal(result.batch, batch);
        batch_unref(result.batch);
        ottl_runner_fini(&runner);
        ottl_plan_destroy(plan);
        batch_unref(batch);
    }
}

static void test_comparisons(void **state)
{
    (void)state;
    static const char *const hold[] = {
        "attributes[\"a\"] == \"x\"",
        "\"x\" == attributes[\"a\"]",
        "attributes[\"a\"] < \"y\"",
        "\"w\" < attributes[\"a\"]",
        "attributes[\"b\"] == 2",
        "attributes[\"b\"] == 2.0",
        "attributes[\"c\"] == attributes[\"b\"]",
        "attributes[\"b\"] != \"2\"",
        "attributes[\"z\"] == nil",
        "nil == attributes[\"e\"]",
        "attributes[\"z\"] <= nil and nil >= nil",
        "not (attributes[\"a\"] == nil)",
        "attributes[\"z\"] != \"x\"",
        "attributes[\"z\"] != 2 and attributes[\"e\"] != 2 and attributes[\"e\"] != \"\"",
        "not (attributes[\"z\"] == 2 or attributes[\"z\"] < 2 or attributes[\"z\"] >= 2)",
        "not (attributes[\"z\"] == \"\" or attributes[\"z\"] <= \"x\")",
        "not (attributes[\"z\"] == true)",
        "attributes[\"b\"] < 3 and attributes[\"b\"] >= 2 and attributes[\"b\"] <= 2",
        "not (attributes[\"b\"] > 2 or attributes[\"b\"] < 2 or attributes[\"b\"] != 2)",
        "trace_state == \"\" and trace_state != \"N\" and name != \"n\" and name != \"NN\"",
        "name > \"M\" and name <= \"N\" and not (name < \"N\") and \"M\" < name",
        "kind <= 2 and kind > 1 and kind != 3 and 3 > kind and not (kind >= 3)",
        "cache[\"a\"] == nil and cache[\"a\"][\"b\"] == nil and IsMap(cache)",
        "attributes[\"l\"] == [\"x\", 7]",
        "attributes[\"l\"][1] == 7",
        "attributes[\"m\"][\"a\"] == \"x\"",
        "attributes[\"m\"][\"z\"] == nil",
        "attributes[\"m\"] == {\"a\": \"x\"}",
        "attributes[\"l\"] != {\"a\": \"x\"}",
        "1/0 == 1 or true",
        "attributes[\"b\"] + 1.5 == 3.5",
        "attributes[\"b\"] * -3 == -6 and 7 / attributes[\"b\"] == 3",
        "9223372036854775807 + attributes[\"b\"] < 0",
        "end_time - start_time == end_time - start_time and end_time > start_time",
        "end_time_unix_nano - start_time_unix_nano == 2500000000",
        "name == \"N\" and kind == SPAN_KIND_SERVER and kind.string == \"Server\"",
        "kind.deprecated_string == \"SPAN_KIND_SERVER\"",
        "status.code == STATUS_CODE_OK and status.message == \"M\"",
        "trace_id.string == \"0102030405060708090a0b0c0d0e0f10\" and span_id == span_id",
        "trace_id != span_id and trace_id != 0x0102030405060708090a0b0c0d0e0f10",
        "parent_span_id.string == \"0000000000000000\" and IsRootSpan()",
        "resource.attributes[\"r\"] == \"R\" and scope.name == \"S\"",
        "instrumentation_scope.name == \"S\"",
        "IsMatch(name, \"^N$\") and not IsMatch(attributes[\"z\"], \".*\")",
        "IsMatch(attributes[\"b\"], \"2\") and IsMatch(attributes[\"m\"], \"\\\"a\\\":\")",
        "IsString(attributes[\"a\"]) and IsInt(attributes[\"b\"]) and IsDouble(attributes[\"c\"])",
        "IsMap(attributes[\"m\"]) and not IsBool(attributes[\"a\"])",
        "Concat([name, nil, attributes[\"b\"], true], \"-\") == \"N-<nil>-2-true\"",
        "Int(\"12\") == 12 and Int(\"x\") == nil and Double(\"1.5\") == 1.5 and Bool(1) == true",
        "String(attributes[\"c\"]) == \"2\" and String(attributes[\"e\"]) == nil",
        "attributes[attributes[\"k\"]] == \"x\"",
    };
    static const char *const fail[] = {
        "attributes[\"a\"] + 1 == 2",    "attributes[\"b\"] / 0 == 2",
        "attributes[\"l\"][2] == 7",     "attributes[\"l\"][\"x\"] == 7",
        "attributes[\"a\"][\"x\"] == 7", "attributes[attributes[\"b\"]] == nil",
        "-attributes[\"a\"] == 1",       "IsMatch(name, attributes[\"b\"])",
        "Int(attributes[\"m\"]) == 1",   "Concat([name], \"\") and Int(attributes[\"b\"])",
    };
    const char *attributes =
        A "," B "," C "," EMPTY "," LIST "," MAP(A) ",{\"key\":\"k\",\"value\":{\"stringValue\":"
                                                    "\"a\"}},{\"key\":\"a\",\"value\":{"
                                                    "\"stringValue\":\"second\"}}";
    for (size_t i = 0; i < sizeof(hold) / sizeof(hold[0]); i++) {
        char negated[TEXT_MAX];
        expect_condition(hold[i], attributes, true, false);
        snprintf(negated, sizeof(negated), "not (%s)", hold[i]);
        expect_condition(negated, attributes, false, false);
    }
    for (size_t i = 0; i < sizeof(fail) / sizeof(fail[0]); i++)
        expect_condition(fail[i], attributes, false, true);
}

static void test_set(void **state)
{
    (void)state;
    expect_attributes("set(attributes[\"b\"], 2)", A, A "," B, 0);
    expect_attributes("set(attributes[\"b\"], 2)", "", B, 0);
    expect_attributes("set(attributes[\"b\"], 2)",
                      A ","
                        "{\"key\":\"b\",\"value\":{\"stringValue\":\"long enough\"}}"
                        "," C,
                      A "," B "," C, 0);
    expect_attributes("set(attributes[\"c\"], Double(attributes[\"b\"]))", B, B "," C, 0);
    expect_attributes("set(attributes[\"b\"], nil)", A, A, 0);
    expect_attributes("set(attributes[\"b\"], attributes[\"z\"])", A, A, 0);
    expect_attributes("set(attributes[\"m\"][\"a\"], \"x\")", "", MAP(A), 0);
    expect_attributes("set(attributes[\"m\"][\"b\"], 2)", MAP(A), MAP(A "," B), 0);
    expect_attributes("set(attributes[\"m\"], {\"a\": attributes[\"a\"]})", A, A "," MAP(A), 0);
    expect_attributes("set(attributes[\"l\"], [attributes[\"a\"], 7])", A, A "," LIST, 0);
    expect_attributes("set(attributes[\"l\"][1], 7)",
                      "{\"key\":\"l\",\"value\":{\"arrayValue\":{\"values\":[{\"stringValue\":"
                      "\"x\"},{\"boolValue\":true}]}}}",
                      LIST, 0);
    expect_attributes("set(attributes, {\"b\": 2})", A "," C, B, 0);
    expect_attributes("set(attributes[\"t\"], true) where name == \"N\"", A, A "," T("t"), 0);
    expect_attributes("set(attributes[\"t\"], true) where name == \"n\"", A, A, 0);
    /* Values that attributes do not hold leave an empty one. */
    expect_attributes("set(attributes[\"e\"], trace_id)", A, A "," EMPTY, 1);
    expect_attributes("set(attributes[\"a\"][\"b\"], 1)", A, A, 1);
    /* Whole maps see what was set by key before, and the other way round. */
    expect_attributes("set(attributes[\"b\"], 2) where attributes[\"a\"] == \"x\"", A "," C,
                      A "," C "," B, 0);
    expect_attributes("set(attributes[\"m\"], attributes)", A,
                      A "," MAP(A ","
                                  "{\"key\":\"m\",\"value\":{\"kvlistValue\":{}}}"),
                      0);
}

static void test_editors(void **state)
{
    (void)state;
    /* The last attribute moves into the gap. */
    expect_attributes("delete_key(attributes, \"a\")", A "," B "," C, C "," B, 0);
    expect_attributes("delete_key(attributes, \"c\")", A "," B "," C, A "," B, 0);
    expect_attributes("delete_key(attributes, \"z\")", A "," B, A "," B, 0);
    expect_attributes("delete_key(attributes, \"a\")", A, "", 0);
    expect_attributes("delete_key(attributes[\"m\"], \"a\")", MAP(A "," B), MAP(B), 0);
    expect_attributes("delete_key(attributes[\"z\"], \"a\")", A, A, 1);
    expect_attributes("keep_keys(attributes, [\"c\", \"a\"])", A "," B "," C, A "," C, 0);
    expect_attributes("keep_matching_keys(attributes, \"[ac]\")", A "," B "," C, A "," C, 0);
    expect_attributes("delete_matching_keys(attributes, \"^[ac]$\")", A "," B "," C, B, 0);
    expect_attributes("merge_maps(attributes, {\"a\": 1, \"b\": 2}, \"insert\")", A, A "," B, 0);
    expect_attributes("merge_maps(attributes, {\"a\": \"x\", \"b\": 2}, \"update\")",
                      "{\"key\":\"a\",\"value\":{\"intValue\":\"5\"}}", A, 0);
    expect_attributes("merge_maps(attributes, attributes[\"m\"], \"upsert\")",
                      MAP(B) ","
                             "{\"key\":\"b\",\"value\":{}}",
                      MAP(B) "," B, 0);
}

#define FIELDS(name, kind, start, status)                                                          \
    "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{\"name\":"     \
    "\"" name "\",\"kind\":" kind ",\"startTimeUnixNano\":\"" start "\",\"status\":" status        \
    "}]}]}]}"

static void test_fields(void **state)
{
    (void)state;
    static const struct {
        const char *statements[STATEMENTS_MAX];
        const char *before;
        const char *after;
        unsigned failures;
    } rows[] = {
        {{"set(name, \"longer than before\")"},
         FIELDS("N", "2", "1", "{}"),
         FIELDS("longer than before", "2", "1", "{}"),
         0},
        {{"set(name, \"\")"}, FIELDS("N", "2", "1", "{}"), FIELDS("", "2", "1", "{}"), 0},
        {{"set(kind, SPAN_KIND_CLIENT)", "set(start_time_unix_nano, 0)"},
         FIELDS("N", "2", "1", "{}"),
         FIELDS("N", "3", "0", "{}"),
         0},
        {{"set(kind.string, \"Consumer\")", "set(start_time, end_time)"},
         FIELDS("N", "2", "1", "{}"),
         FIELDS("N", "5", "0", "{}"),
         0},
        {{"set(kind.string, \"nothing\")", "set(name, 1)"},
         FIELDS("N", "2", "1", "{}"),
         FIELDS("N", "2", "1", "{}"),
         2},
        {{"set(status.code, STATUS_CODE_ERROR)", "set(status.message, name)"},
         FIELDS("N", "2", "1", "{}"),
         FIELDS("N", "2", "1", "{\"message\":\"N\",\"code\":2}"),
         0},
        {{"set(cache[\"n\"], name)", "set(name, \"M\")", "set(status.message, cache[\"n\"])"},
         FIELDS("N", "2", "1", "{}"),
         FIELDS("M", "2", "1", "{\"message\":\"N\"}"),
         0},
        {{"set(name, \"M\") where cache[\"n\"] != nil"},
         FIELDS("N", "2", "1", "{}"),
         FIELDS("N", "2", "1", "{}"),
         0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_run(TRACES, OTTL_SPAN, rows[i].statements, rows[i].before, rows[i].after,
                   rows[i].failures);
}

#define TWO_SPANS(resource, scope, first, second)                                                  \
    "{\"resourceSpans\":[{" resource "\"scopeSpans\":[{" scope "\"spans\":[{\"name\":\"" first     \
    "\"},{\"name\":\"" second "\"}]}]}]}"
#define RESOURCE(attributes) "\"resource\":{\"attributes\":[" attributes "]},"

/* What inner records change around them is seen by the records that follow. */
static void test_outer_records(void **state)
{
    (void)state;
    static const struct {
        const char *statements[STATEMENTS_MAX];
        const char *before;
        const char *after;
    } rows[] = {
        {{"set(resource.attributes[\"a\"], \"x\") where span.name == \"1\"",
          "set(span.name, resource.attributes[\"a\"]) where span.name == \"2\""},
         TWO_SPANS("", "", "1", "2"),
         TWO_SPANS(RESOURCE(A), "", "1", "x")},
        {{"set(resource.attributes[\"a\"], Concat([resource.attributes[\"a\"], span.name], \"\"))"},
         TWO_SPANS(RESOURCE(A), "\"scope\":{\"name\":\"S\"},", "1", "2"),
         TWO_SPANS(RESOURCE("{\"key\":\"a\",\"value\":{\"stringValue\":\"x12\"}}"),
                   "\"scope\":{\"name\":\"S\"},", "1", "2")},
        {{"set(scope.name, span.name)", "set(scope.schema_url, \"u\")",
          "set(resource.schema_url, \"v\")", "set(span.name, \"s\")"},
         TWO_SPANS("", "", "1", "2"),
         TWO_SPANS("\"schemaUrl\":\"v\",", "\"scope\":{\"name\":\"2\"},\"schemaUrl\":\"u\",", "s",
                   "s")},
        /* Text that a span made outlives it. */
        {{"set(resource.attributes[\"a\"], Concat([span.name, \"!\"], \"\")) where span.name == "
          "\"1\"",
          "set(span.name, Concat([\"zzzz\", span.name], \"\")) where span.name == \"2\""},
         TWO_SPANS("", "", "1", "2"),
         TWO_SPANS(RESOURCE("{\"key\":\"a\",\"value\":{\"stringValue\":\"1!\"}}"), "", "1",
                   "zzzz2")},
        {{"delete_key(resource.attributes, \"a\")", "set(span.name, \"\")"},
         TWO_SPANS(RESOURCE(A "," B), "", "1", "2"),
         TWO_SPANS(RESOURCE(B), "", "", "")},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_run(TRACES, OTTL_CONTEXTS, rows[i].statements, rows[i].before, rows[i].after, 0);
}

static void test_slots_and_maps(void **state)
{
    (void)state;
    static const char *const statements[STATEMENTS_MAX] = {
        "set(attributes[\"b\"], 2)", "set(attributes[\"n\"], true)",
        "delete_key(attributes, \"c\")", "set(attributes[\"a\"], \"x\")",
        "set(attributes[\"m\"][\"a\"], attributes[\"a\"])"};
    char from[TEXT_MAX], to[TEXT_MAX];
    snprintf(from, sizeof(from), SPAN,
             C "," T("o") ",{\"key\":\"b\",\"value\":{\"intValue\":\"1\"}}," MAP(B));
    snprintf(to, sizeof(to), SPAN, T("n") "," T("o") "," B "," MAP(B "," A) "," A);
    expect_run(TRACES, OTTL_SPAN, statements, from, to, 0);
}

/* An attribute that statements have made takes the place of one that they delete, and both keep
 * their slots, until all attributes are read. */
static void test_slots_that_take_a_place(void **state)
{
    (void)state;
    static const char *const rows[][STATEMENTS_MAX] = {
        /* What took the place can be set, and deleted, again. */
        {"set(attributes[\"n\"], true)", "delete_key(attributes, \"a\")",
         "set(attributes[\"c\"], attributes[\"n\"])", "delete_key(attributes, \"n\")",
         "set(attributes[\"n\"], true) where attributes[\"a\"] == nil"},
        /* The last one, and the only new one. */
        {"set(attributes[\"n\"], true)", "delete_key(attributes, \"n\")",
         "delete_key(attributes, \"a\")", "set(attributes[\"c\"], true)",
         "set(attributes[\"n\"], true)"},
        /* All attributes are read afterwards. */
        {"set(attributes[\"n\"], true)", "set(attributes[\"c\"], true)",
         "delete_key(attributes, \"a\")", "keep_keys(attributes, [\"b\", \"c\", \"n\"])",
         "set(attributes[\"c\"], true)"},
    };
    static const char *const after[] = {T("c") "," B "," T("n"), B "," T("c") "," T("n"),
                                        T("c") "," B "," T("n")};
    char from[TEXT_MAX], to[TEXT_MAX];
    snprintf(from, sizeof(from), SPAN, A "," B);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(to, sizeof(to), SPAN, after[i]);
        expect_run(TRACES, OTTL_SPAN, rows[i], from, to, 0);
    }
    /* Of a key that comes twice the next one is found. */
    static const char *const twice[STATEMENTS_MAX] = {
        "set(attributes[\"n\"], true)", "delete_key(attributes, \"a\")",
        "set(attributes[\"b\"], 2) where attributes[\"a\"] == \"x\""};
    snprintf(from, sizeof(from), SPAN, T("a") "," A);
    snprintf(to, sizeof(to), SPAN, T("n") "," A "," B);
    expect_run(TRACES, OTTL_SPAN, twice, from, to, 0);
}

/* Keys of one size with the same last letter have one mark; an empty one has a mark of its own. */
static void test_keys_of_one_mark(void **state)
{
    (void)state;
    static const char *const statements[STATEMENTS_MAX] = {
        "set(attributes[\"one.x\"], true)", "set(attributes[\"two.x\"], true)",
        "delete_key(attributes, \"six.x\")", "set(attributes[\"\"], true)"};
    char from[TEXT_MAX], to[TEXT_MAX];
    snprintf(from, sizeof(from), SPAN, T("ten.x") "," T("six.x") "," T("two.x"));
    snprintf(to, sizeof(to), SPAN,
             T("ten.x") "," T("one.x") "," T("two.x") ",{\"value\":{\"boolValue\":true}}");
    expect_run(TRACES, OTTL_SPAN, statements, from, to, 0);
}

/* A key of a path may read all attributes, which moves those with slots. */
static void test_keys_that_load_attributes(void **state)
{
    (void)state;
    expect_attributes("set(attributes[\"n\"][Keys(attributes)[0]], 1)", T("z") "," A,
                      T("z") "," A ",{\"key\":\"n\",\"value\":{\"kvlistValue\":{\"values\":[{"
                             "\"key\":\"z\",\"value\":{\"intValue\":\"1\"}}]}}}",
                      0);
    expect_attributes("set(attributes[\"e\"][Keys(attributes)[0]], 1)", A "," EMPTY,
                      A ",{\"key\":\"e\",\"value\":{\"kvlistValue\":{\"values\":[{"
                        "\"key\":\"a\",\"value\":{\"intValue\":\"1\"}}]}}}",
                      0);
}

/* What moves into a gap keeps its slot; of a key that comes twice the next one is found. */
static void test_slots_that_move(void **state)
{
    (void)state;
    static const char *const moved[STATEMENTS_MAX] = {
        "delete_key(attributes, \"a\")", "set(attributes[\"c\"], attributes[\"b\"])",
        "set(attributes[\"n\"], true) where attributes[\"a\"] == nil",
        "delete_key(attributes, \"b\")", "set(attributes[\"a\"], \"x\")"};
    static const char *const twice[STATEMENTS_MAX] = {
        "delete_key(attributes, \"a\")",
        "set(attributes[\"n\"], true) where attributes[\"a\"] == 7",
        "set(attributes[\"a\"], \"x\")", "delete_key(attributes, \"b\")"};
    char from[TEXT_MAX], to[TEXT_MAX];
    snprintf(from, sizeof(from), SPAN, A "," B "," C);
    snprintf(to, sizeof(to), SPAN, "{\"key\":\"c\",\"value\":{\"intValue\":\"2\"}}," T("n") "," A);
    expect_run(TRACES, OTTL_SPAN, moved, from, to, 0);
    snprintf(from, sizeof(from), SPAN,
             A "," B ",{\"key\":\"a\",\"value\":{\"intValue\":\"7\"}}," C);
    snprintf(to, sizeof(to), SPAN, C "," T("n") "," A);
    expect_run(TRACES, OTTL_SPAN, twice, from, to, 0);
}

/* Constants are written as they were encoded when the statements were read, but not once another
 * value has taken their place. */
static void test_constants(void **state)
{
    (void)state;
    static const char *const statements[STATEMENTS_MAX] = {
        "set(attributes[\"a\"], \"first\")", "set(attributes[\"a\"], attributes[\"o\"])",
        "set(attributes[\"b\"], 7)", "set(attributes[\"b\"], 1 + 1)",
        "set(attributes[\"n\"], true) where attributes[\"b\"] == 2"};
    char from[TEXT_MAX], to[TEXT_MAX];
    snprintf(from, sizeof(from), SPAN, "{\"key\":\"o\",\"value\":{\"stringValue\":\"x\"}}");
    snprintf(to, sizeof(to), SPAN,
             "{\"key\":\"o\",\"value\":{\"stringValue\":\"x\"}}," A "," B "," T("n"));
    expect_run(TRACES, OTTL_SPAN, statements, from, to, 0);
}

static void test_events(void **state)
{
    (void)state;
    static const char *const statements[STATEMENTS_MAX] = {
        "set(spanevent.attributes[\"a\"], span.name)",
        "set(span.attributes[\"b\"], 2)",
        "set(span.name, Concat([span.name, spanevent.name], \"\"))",
    };
    expect_run(TRACES, OTTL_CONTEXTS, statements,
               "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"x\",\"events\":[{"
               "\"name\":\"1\"},{\"name\":\"2\"}]}]}]}]}",
               "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"x12\",\"attributes\":["
               "{\"key\":\"b\",\"value\":{\"intValue\":\"2\"}}],\"events\":[{\"name\":\"1\","
               "\"attributes\":[{\"key\":\"a\",\"value\":{\"stringValue\":\"x\"}}]},{\"name\":"
               "\"2\",\"attributes\":[{\"key\":\"a\",\"value\":{\"stringValue\":\"x1\"}}]}]}]}]}]}",
               0);
}

#define LOG(body, attributes)                                                                      \
    "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"severityNumber\":9,\"body\":" body     \
    ",\"attributes\":[" attributes "]}]}]}]}"

static void test_logs(void **state)
{
    (void)state;
    static const struct {
        const char *statements[STATEMENTS_MAX];
        const char *before;
        const char *after;
        unsigned failures;
    } rows[] = {
        {{"set(attributes[\"a\"], body)"},
         LOG("{\"stringValue\":\"x\"}", ""),
         LOG("{\"stringValue\":\"x\"}", A),
         0},
        {{"set(body, attributes[\"a\"])", "set(severity_text, \"T\") where severity_number == "
                                          "SEVERITY_NUMBER_INFO2"},
         LOG("{\"intValue\":\"1\"}", A),
         LOG("{\"stringValue\":\"x\"}", A),
         0},
        {{"set(body[\"b\"], 2)"},
         LOG("{\"kvlistValue\":{\"values\":[" A "]}}", ""),
         LOG("{\"kvlistValue\":{\"values\":[" A "," B "]}}", ""),
         0},
        {{"set(body[\"b\"], 2)"},
         LOG("{\"stringValue\":\"x\"}", ""),
         LOG("{\"stringValue\":\"x\"}", ""),
         1},
        {{"set(attributes[\"a\"], body.string)"},
         LOG("{\"arrayValue\":{\"values\":[{\"intValue\":\"1\"}]}}", ""),
         LOG("{\"arrayValue\":{\"values\":[{\"intValue\":\"1\"}]}}",
             "{\"key\":\"a\",\"value\":{\"stringValue\":\"[1]\"}}"),
         0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_run(LOGS, OTTL_LOG, rows[i].statements, rows[i].before, rows[i].after,
                   rows[i].failures);
}

#define METRIC(data)                                                                               \
    "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"N\"," data "}]}]}]}"
#define SUM(more, points)                                                                          \
    METRIC("\"sum\":{\"aggregationTemporality\":2," more "\"dataPoints\":[" points "]}")
#define POINT(attributes, value)                                                                   \
    "{\"attributes\":[" attributes "],\"timeUnixNano\":\"5\"," value "}"

static void test_metrics(void **state)
{
    (void)state;
    static const struct {
        enum ottl_context context;
        const char *statements[STATEMENTS_MAX];
        const char *before;
        const char *after;
        unsigned failures;
    } rows[] = {
        {OTTL_METRIC,
         {"set(aggregation_temporality, AGGREGATION_TEMPORALITY_DELTA)", "set(is_monotonic, true)",
          "set(unit, \"s\") where type == METRIC_DATA_TYPE_SUM"},
         SUM("", POINT("", "\"asInt\":\"1\"")),
         METRIC("\"unit\":\"s\",\"sum\":{\"aggregationTemporality\":1,\"isMonotonic\":true,"
                "\"dataPoints\":[" POINT("", "\"asInt\":\"1\"") "]}"),
         0},
        {OTTL_METRIC,
         {"set(is_monotonic, true)", "set(aggregation_temporality, 1)", "set(type, 5)"},
         METRIC("\"gauge\":{}"),
         METRIC("\"gauge\":{}"),
         0},
        /* as_double and as_int exclude each other; zero is a value. */
        {OTTL_DATA_POINT,
         {"set(value_double, 0.0) where value_int == 1", "set(attributes[\"a\"], metric.name)",
          "set(metric.name, \"M\")"},
         SUM("", POINT("", "\"asInt\":\"1\"") "," POINT(B, "\"asDouble\":1")),
         METRIC("\"name\":\"M\",\"sum\":{\"aggregationTemporality\":2,\"dataPoints\":[" POINT(
             "{\"key\":\"a\",\"value\":{\"stringValue\":\"N\"}}",
             "\"asDouble\":0") "," POINT(B ",{\"key\":\"a\",\"value\":{\"stringValue\":\"M\"}}",
                                         "\"asDouble\":1") "]}"),
         0},
        {OTTL_DATA_POINT,
         {"set(value_int, 7)", "set(value_double, 2.5)", "set(value_int, 8)"},
         SUM("", POINT("", "\"asDouble\":1")),
         SUM("", POINT("", "\"asInt\":\"8\"")),
         0},
        {OTTL_DATA_POINT,
         {"set(sum, 0.0)", "set(bucket_counts, [3, 4])", "set(explicit_bounds, [2.5])",
          "set(value_int, 1)", "set(count, 7)"},
         METRIC("\"histogram\":{\"dataPoints\":[{\"count\":\"3\",\"bucketCounts\":[\"1\",\"2\"],"
                "\"explicitBounds\":[1]}]}"),
         METRIC("\"histogram\":{\"dataPoints\":[{\"count\":\"7\",\"sum\":0,\"bucketCounts\":[\"3\","
                "\"4\"],\"explicitBounds\":[2.5]}]}"),
         1},
        {OTTL_DATA_POINT,
         {"set(scale, scale - 3)", "set(positive.offset, -2)", "set(zero_count, 1)",
          "set(attributes[\"b\"], count)"},
         METRIC("\"exponentialHistogram\":{\"dataPoints\":[{\"count\":\"2\",\"scale\":1,"
                "\"positive\":{\"offset\":1,\"bucketCounts\":[\"2\"]}}]}"),
         METRIC("\"exponentialHistogram\":{\"dataPoints\":[{\"attributes\":[" B "],\"count\":\"2\","
                "\"scale\":-2,\"zeroCount\":\"1\",\"positive\":{\"offset\":-2,\"bucketCounts\":["
                "\"2\"]}}]}"),
         0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_run(METRICS, rows[i].context, rows[i].statements, rows[i].before, rows[i].after,
                   rows[i].failures);
}

/* Points that are dropped take the metric with them when they were the last. */
static void test_drop_points(void **state)
{
    (void)state;
    static const char *const conditions[STATEMENTS_MAX] = {"value_int > 1"};
    struct ottl_plan *plan = plan_of(METRICS, OTTL_DATA_POINT, conditions, false, OTTL_PROPAGATE);
    struct batch *batch =
        batch_of(METRICS,
                 "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":["
                 "{\"name\":\"a\",\"gauge\":{\"dataPoints\":[{\"asInt\":\"2\"}]}},"
                 "{\"name\":\"b\"},"
                 "{\"name\":\"c\",\"gauge\":{\"dataPoints\":[{\"asInt\":\"2\"},{\"asInt\":\"1\"},{"
                 "\"asInt\":\"3\"}]}},"
                 "{\"name\":\"d\",\"gauge\":{\"dataPoints\":[{\"asInt\":\"4\"}]}}]}]}]}",
                 0);
    struct batch *expected =
        batch_of(METRICS,
                 "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"b\"},"
                 "{\"name\":\"c\",\"gauge\":{\"dataPoints\":[{\"asInt\":\"1\"}]}}]}]}]}",
                 0);
    struct ottl_runner runner;
    char found[TEXT_MAX], wanted[TEXT_MAX];
    ottl_runner_init(&runner, plan, NULL);
    runner.prunes = true;
    struct ottl_result result = ottl_runner_run(&runner, batch);
    assert_int_equal(result.verdict, OTTL_PASSED);
    assert_int_equal(result.dropped, 4);
    assert_int_equal(result.batch->items, 1);
    json_of(result.batch, found);
    json_of(expected, wanted);
    assert_string_equal(found, wanted);
    batch_unref(result.batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(expected);
    batch_unref(batch);
}

/* Items of whole messages that go, and in data that later data of the metric replaces, are counted
 * as the receiver counts them. */
static void test_dropped_items(void **state)
{
    (void)state;
    static const struct {
        enum signal_kind signal;
        enum ottl_context context;
        const char *condition;
        const char *json; /* NULL: two gauges and a sum in one metric */
        uint64_t items;
        uint64_t dropped;
        enum ottl_verdict verdict;
    } rows[] = {
        {TRACES, OTTL_SPAN, "name != \"3\"",
         "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"1\"}]}]},"
         "{\"scopeSpans\":[{\"spans\":[{\"name\":\"2\"}]}]}]}",
         2, 2, OTTL_EMPTIED},
        {TRACES, OTTL_SPAN, "name == \"2\"",
         "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"1\"}]}]},"
         "{\"scopeSpans\":[{\"spans\":[{\"name\":\"2\"}]}]}]}",
         2, 1, OTTL_PASSED},
        {TRACES, OTTL_RESOURCE, "attributes[\"a\"] == nil",
         "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"2\"},{}]}]}]}", 2, 2,
         OTTL_EMPTIED},
        {METRICS, OTTL_RESOURCE, "attributes[\"a\"] == nil",
         "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"gauge\":{"
         "\"dataPoints\":[{},{}]}}]}]}]}",
         2, 2, OTTL_EMPTIED},
        {METRICS, OTTL_METRIC, "name == \"\"", NULL, 3, 3, OTTL_EMPTIED},
        {METRICS, OTTL_DATA_POINT, "value_int == 0", NULL, 3, 3, OTTL_EMPTIED},
        {METRICS, OTTL_DATA_POINT, "value_int == 1", NULL, 3, 0, OTTL_PASSED},
    };
    /* A metric of 12 bytes: gauge (5), gauge, sum (7), each with a point that has no fields. */
    static const uint8_t doubled[] = {0x0a, 0x10, 0x12, 0x0e, 0x12, 0x0c, 0x2a, 0x02, 0x0a,
                                      0x00, 0x2a, 0x02, 0x0a, 0x00, 0x3a, 0x02, 0x0a, 0x00};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const conditions[STATEMENTS_MAX] = {rows[i].condition};
        struct ottl_plan *plan =
            plan_of(rows[i].signal, rows[i].context, conditions, false, OTTL_IGNORE);
        struct batch *batch;
        if (rows[i].json != NULL) {
            batch = batch_of(rows[i].signal, rows[i].json, 0);
        } else {
            struct buffer *bytes = buffer_create(NULL, sizeof(doubled));
            struct otlp_figures figures;
            const char *failure;
            memcpy(bytes->data, doubled, sizeof(doubled));
            bytes->size = sizeof(doubled);
            assert_true(otlp_check(METRICS, buffer_slice(bytes), &figures, &failure));
            batch = batch_create(METRICS, 1);
            batch_append(batch, bytes, buffer_slice(bytes));
            batch->items = figures.items;
            buffer_unref(bytes);
        }
        assert_int_equal(batch->items, rows[i].items);
        struct ottl_runner runner;
        ottl_runner_init(&runner, plan, NULL);
        runner.prunes = true;
        struct ottl_result result = ottl_runner_run(&runner, batch);
        assert_int_equal(result.verdict, rows[i].verdict);
        assert_int_equal(result.dropped, rows[i].dropped);
        if (result.batch != NULL)
            assert_int_equal(result.batch->items, rows[i].items - rows[i].dropped);
        batch_unref(result.batch);
        ottl_runner_fini(&runner);
        ottl_plan_destroy(plan);
        batch_unref(batch);
    }
}

/* Maps of many entries find theirs as small ones do: the first of a key, also after changes. */
static void test_many_keys(void **state)
{
    (void)state;
    enum { KEYS = 500, KEY_BYTES = 16 };
    struct ottl_memory memory;
    ottl_memory_init(&memory, 1 << 20, NULL);
    struct ottl_map *map = ottl_map_create(&memory);
    static char names[KEYS][KEY_BYTES];
    assert_non_null(map);
    for (int i = 0; i < KEYS; i++) {
        const struct ottl_value value = ottl_int(i);
        snprintf(names[i], KEY_BYTES, "key%d", i);
        assert_true(ottl_map_put(map, slice_of_text(names[i]), &value));
        assert_int_equal(map->count, i + 1);
        assert_ptr_equal(ottl_map_find(map, slice_of_text(names[i / 2])), &map->entries[i / 2]);
    }
    struct ottl_entry *second = ottl_map_append(map, slice_of_text("key7"));
    assert_non_null(second);
    assert_ptr_equal(ottl_map_find(map, slice_of_text("key7")), &map->entries[7]);
    ottl_map_remove(map, &map->entries[7]); /* the second takes its place */
    assert_ptr_equal(ottl_map_find(map, slice_of_text("key7")), &map->entries[7]);
    ottl_map_remove(map, &map->entries[7]);
    assert_null(ottl_map_find(map, slice_of_text("key7")));
    assert_ptr_equal(ottl_map_find(map, slice_of_text("key499")), &map->entries[7]);
    assert_null(ottl_map_find(map, slice_of_text("key")));
    ottl_memory_fini(&memory);
}

/* A Resource that comes in two fields is one. */
static void test_split_resource(void **state)
{
    (void)state;
    static const char *const statements[STATEMENTS_MAX] = {
        "set(resource.attributes[\"c\"], 2.0) where resource.attributes[\"b\"] == 2",
        "delete_key(resource.attributes, \"a\")"};
    struct batch *first = batch_of(TRACES, TWO_SPANS(RESOURCE(A), "", "1", "2"), 0);
    struct batch *second =
        batch_of(TRACES, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" B "]}}]}", 0);
    struct batch *expected = batch_of(TRACES, TWO_SPANS(RESOURCE(C "," B), "", "1", "2"), 0);
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, statements, true, OTTL_PROPAGATE);
    struct ottl_runner runner;
    char found[TEXT_MAX], wanted[TEXT_MAX];
    /* The contents of both Resource… messages in one. */
    enum { HEADER = 2 };
    struct slice a = first->parts[0].bytes;
    struct slice b = second->parts[0].bytes;
    assert_true(a.data[1] < 0x80 && b.data[1] < 0x80 && a.size + b.size < 0x80);
    struct buffer *buffer = buffer_create(NULL, a.size + b.size - HEADER);
    memcpy(buffer->data, a.data, a.size);
    memcpy(buffer->data + a.size, b.data + HEADER, b.size - HEADER);
    buffer->size = a.size + b.size - HEADER;
    buffer->data[1] = (uint8_t)(buffer->size - HEADER);
    struct batch *batch = batch_create(TRACES, 1);
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = 2;
    buffer_unref(buffer);
    ottl_runner_init(&runner, plan, NULL);
    struct ottl_result result = ottl_runner_run(&runner, batch);
    assert_int_equal(result.verdict, OTTL_PASSED);
    json_of(result.batch, found);
    json_of(expected, wanted);
    assert_string_equal(found, wanted);
    batch_unref(result.batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(batch);
    batch_unref(expected);
    batch_unref(second);
    batch_unref(first);
}

/* Drops what conditions of each context say, and what is empty then. */
static void test_drop(void **state)
{
    (void)state;
    static const struct {
        enum ottl_context context;
        const char *condition;
        const char *after; /* NULL: nothing is left */
        uint64_t dropped;
    } rows[] = {
        {OTTL_SPAN, "name == \"1\"",
         "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" A "]},\"scopeSpans\":[{\"spans\":[{"
         "\"name\":\"2\"}]},{\"spans\":[{\"name\":\"3\"}]}]}]}",
         1},
        {OTTL_SPAN, "name != \"3\"",
         "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" A "]},\"scopeSpans\":[{\"spans\":[{"
         "\"name\":\"3\"}]}]}]}",
         2},
        {OTTL_SPAN, "resource.attributes[\"a\"] == \"x\"", NULL, 3},
        {OTTL_RESOURCE, "attributes[\"a\"] == \"x\"", NULL, 3},
        {OTTL_SCOPE, "name == \"none\"",
         "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" A "]},\"scopeSpans\":[{\"spans\":[{"
         "\"name\":\"1\"},{\"name\":\"2\"}]},{\"spans\":[{\"name\":\"3\"}]}]}]}",
         0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const conditions[STATEMENTS_MAX] = {rows[i].condition};
        struct ottl_plan *plan =
            plan_of(TRACES, rows[i].context, conditions, false, OTTL_PROPAGATE);
        struct batch *batch =
            batch_of(TRACES,
                     "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" A
                     "]},\"scopeSpans\":[{\"spans\":["
                     "{\"name\":\"1\"},{\"name\":\"2\"}]},{\"spans\":[{\"name\":\"3\"}]}]}]}",
                     i % (CUT_PLACES + 1));
        struct ottl_runner runner;
        char found[TEXT_MAX], wanted[TEXT_MAX];
        ottl_runner_init(&runner, plan, NULL);
        runner.prunes = true;
        struct ottl_result result = ottl_runner_run(&runner, batch);
        assert_int_equal(result.verdict, rows[i].after == NULL ? OTTL_EMPTIED : OTTL_PASSED);
        assert_int_equal(result.dropped, rows[i].dropped);
        if (rows[i].after != NULL) {
            struct batch *expected = batch_of(TRACES, rows[i].after, 0);
            json_of(result.batch, found);
            json_of(expected, wanted);
            assert_string_equal(found, wanted);
            assert_int_equal(result.batch->items, expected->items);
            batch_unref(expected);
        }
        batch_unref(result.batch);
        ottl_runner_fini(&runner);
        ottl_plan_destroy(plan);
        batch_unref(batch);
    }
}

/* The first point that has the key decides. */
static void test_attributes_of_points(void **state)
{
    (void)state;
#define ONE_METRIC(data)                                                                           \
    "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"m\"" data "}]}]}]}"
#define POINTS_OF(data)                                                                            \
    ONE_METRIC(",\"" data "\":{\"dataPoints\":[{\"count\":\"1\"},{\"attributes\":[" B "," A        \
               "]},{\"attributes\":[{\"key\":\"a\",\"value\":{\"stringValue\":\"z\"}}]}]}")
    static const struct {
        const char *condition;
        const char *metric;
        enum ottl_verdict verdict;
    } rows[] = {
        {"HasAttrKeyOnDatapoint(\"a\")", POINTS_OF("histogram"), OTTL_EMPTIED},
        {"HasAttrKeyOnDatapoint(\"b\")", POINTS_OF("exponentialHistogram"), OTTL_EMPTIED},
        {"HasAttrKeyOnDatapoint(\"c\")", POINTS_OF("summary"), OTTL_PASSED},
        {"HasAttrOnDatapoint(\"a\", \"x\")", POINTS_OF("summary"), OTTL_EMPTIED},
        {"HasAttrOnDatapoint(\"a\", \"z\")", POINTS_OF("histogram"), OTTL_PASSED},
        {"HasAttrOnDatapoint(\"b\", \"\")", POINTS_OF("histogram"), OTTL_EMPTIED},
        {"HasAttrOnDatapoint(\"c\", \"\")", POINTS_OF("histogram"), OTTL_PASSED},
        {"HasAttrKeyOnDatapoint(\"a\")", ONE_METRIC(",\"gauge\":{}"), OTTL_PASSED},
        {"HasAttrKeyOnDatapoint(\"a\")", ONE_METRIC(""), OTTL_REFUSED},
    };
#undef POINTS_OF
#undef ONE_METRIC
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const conditions[STATEMENTS_MAX] = {rows[i].condition};
        struct ottl_plan *plan = plan_of(METRICS, OTTL_METRIC, conditions, false, OTTL_PROPAGATE);
        struct batch *batch = batch_of(METRICS, rows[i].metric, 0);
        struct ottl_runner runner;
        ottl_runner_init(&runner, plan, NULL);
        runner.prunes = true;
        struct ottl_result result = ottl_runner_run(&runner, batch);
        if (result.verdict != rows[i].verdict)
            fail_msg("%s of %s: verdict %d", rows[i].condition, rows[i].metric, result.verdict);
        batch_unref(result.batch);
        ottl_runner_fini(&runner);
        ottl_plan_destroy(plan);
        batch_unref(batch);
    }
}

/* Spans that follow one another go together, whatever their sizes. */
static void test_drop_neighbours(void **state)
{
    (void)state;
    static const char *const conditions[STATEMENTS_MAX] = {"IsMatch(name, \"^drop\")"};
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, conditions, false, OTTL_PROPAGATE);
    struct batch *batch =
        batch_of(TRACES,
                 "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"1\"},{\"name\":"
                 "\"drop this one\"},{\"name\":\"drop\"},{\"name\":\"2\"},{\"name\":\"drop the "
                 "third\"},{\"name\":\"3\"},{\"name\":\"drop 4\"},{\"name\":\"drop 50\"}]}]}]}",
                 0);
    struct batch *expected =
        batch_of(TRACES,
                 "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"1\"},{"
                 "\"name\":\"2\"},{\"name\":\"3\"}]}]}]}",
                 0);
    struct ottl_runner runner;
    char found[TEXT_MAX], wanted[TEXT_MAX];
    ottl_runner_init(&runner, plan, NULL);
    struct ottl_result result = ottl_runner_run(&runner, batch);
    assert_int_equal(result.verdict, OTTL_PASSED);
    assert_int_equal(result.dropped, 5);
    json_of(result.batch, found);
    json_of(expected, wanted);
    assert_string_equal(found, wanted);
    batch_unref(result.batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(expected);
    batch_unref(batch);
}

static void expect_trace_state(const char *statement, const char *before, const char *after,
                               unsigned failures)
{
    const char *const statements[STATEMENTS_MAX] = {statement};
    char from[TEXT_MAX], to[TEXT_MAX];
#define FORM                                                                                       \
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceState\":\"%s\",\"name\":\"n\"}]}]}]" \
    "}"
    snprintf(from, sizeof(from), FORM, before);
    snprintf(to, sizeof(to), FORM, after);
#undef FORM
    expect_run(TRACES, OTTL_SPAN, statements, from, to, failures);
}

/* A member that is set comes first; what is malformed is left alone. */
static void test_trace_state(void **state)
{
    (void)state;
    char many[512] = "m0=0";
    char fewer[512] = "k=v,m0=0";
    for (unsigned i = 1; i < 32; i++) {
        size_t used = strlen(many);
        snprintf(many + used, sizeof(many) - used, ",m%u=%u", i, i);
        if (i < 31)
            snprintf(fewer + 4 + used, sizeof(fewer) - 4 - used, ",m%u=%u", i, i);
    }
    expect_trace_state("set(trace_state[\"k\"], \"v\")", "", "k=v", 0);
    expect_trace_state("set(trace_state[\"k\"], \"v\")", "a=b", "k=v,a=b", 0);
    expect_trace_state("set(trace_state[\"k\"], \"v\")", " a=b ,,k=w,c=d", "k=v,a=b,c=d", 0);
    expect_trace_state("set(trace_state[\"t@s\"], \"v\")", "a=b", "t@s=v,a=b", 0);
    expect_trace_state("set(trace_state[\"k\"], \"v\")", many, fewer, 0);
    expect_trace_state("set(trace_state[\"K\"], \"v\")", "a=b", "a=b", 0);
    expect_trace_state("set(trace_state[\"k\"], \"v,\")", "a=b", "a=b", 0);
    expect_trace_state("set(trace_state[\"k\"], \"\")", "a=b", "a=b", 0);
    expect_trace_state("set(trace_state[\"k\"], \"v\")", "a=b,a=c", "a=b,a=c", 0);
    expect_trace_state("set(trace_state[\"k\"], \"v\")", "a", "a", 0);
    expect_trace_state("set(trace_state[\"k\"], 1)", "a=b", "a=b", 1);
    expect_trace_state("set(trace_state[0], \"v\")", "a=b", "a=b", 1);
    expect_trace_state("set(trace_state, trace_state[\"c\"])", "a=b,c=d", "d", 0);
    expect_trace_state("set(trace_state, \"nil\") where trace_state[\"a\"] == nil", "A=b", "nil",
                       0);
}

/* What a condition says of one Resource is not said of the next. */
static void test_two_resources(void **state)
{
    (void)state;
    static const char *const conditions[STATEMENTS_MAX] = {
        "resource.attributes[\"a\"] == \"x\" and name != \"\""};
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, conditions, false, OTTL_PROPAGATE);
    struct batch *batch = batch_of(
        TRACES,
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" A "]},\"scopeSpans\":[{\"spans\":[{"
        "\"name\":\"1\"}]}]},{\"resource\":{\"attributes\":[" B "]},\"scopeSpans\":[{\"spans\":[{"
        "\"name\":\"2\"}]}]},{\"resource\":{\"attributes\":[" A "]},\"scopeSpans\":[{\"spans\":[{"
        "\"name\":\"3\"}]}]}]}",
        0);
    struct batch *expected =
        batch_of(TRACES,
                 "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" B "]},\"scopeSpans\":[{"
                 "\"spans\":[{\"name\":\"2\"}]}]}]}",
                 0);
    struct ottl_runner runner;
    char found[TEXT_MAX], wanted[TEXT_MAX];
    ottl_runner_init(&runner, plan, NULL);
    runner.prunes = true;
    struct ottl_result result = ottl_runner_run(&runner, batch);
    assert_int_equal(result.verdict, OTTL_PASSED);
    assert_int_equal(result.dropped, 2);
    json_of(result.batch, found);
    json_of(expected, wanted);
    assert_string_equal(found, wanted);
    batch_unref(result.batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(batch);
    batch_unref(expected);
}

static void expect_first(struct ottl_map *map, struct slice key)
{
    const struct ottl_entry *expected = NULL;
    for (uint32_t i = map->count; i-- > 0;)
        if (slice_equal(map->entries[i].key, key))
            expected = &map->entries[i];
    assert_ptr_equal(ottl_map_find(map, key), expected);
}

/* Whatever comes and goes, the first of a key is found; every key_count-th comes twice. */
static void test_map_index(void **state)
{
    (void)state;
    enum { KEYS = 300, STEPS = 3000, KEY_BYTES = 8 };
    static char texts[KEYS][KEY_BYTES];
    struct slice keys[KEYS];
    for (size_t i = 0; i < KEYS; i++) {
        snprintf(texts[i], KEY_BYTES, "k%zu", i);
        keys[i] = slice_of_text(texts[i]);
    }
    for (unsigned twice = 0; twice < 2; twice++) {
        struct ottl_memory memory;
        ottl_memory_init(&memory, OTTL_RECORD_BYTES_MAX, NULL);
        struct ottl_map *map = ottl_map_create(&memory);
        uint32_t seed = 7;
        for (unsigned step = 0; step < STEPS; step++) {
            seed = seed * 1664525 + 1013904223;
            const struct slice key = keys[(seed >> 8) % KEYS];
            const struct ottl_value value = ottl_int(step);
            struct ottl_entry *entry = ottl_map_find(map, key);
            if (step % 2 == 0 && twice == 1)
                assert_non_null(ottl_map_append(map, key));
            else if (step % 2 == 0)
                assert_true(ottl_map_put(map, key, &value));
            else if (step % 8 == 1 && entry != NULL)
                ottl_map_remove(map, entry);
            else if (step % 8 == 3 && map->count > 0)
                ottl_map_remove(map, &map->entries[(seed >> 4) % map->count]);
            expect_first(map, key);
            expect_first(map, keys[(seed >> 20) % KEYS]);
            if (step > STEPS / 2 && map->count > KEYS / 3)
                ottl_map_remove(map, &map->entries[0]);
        }
        assert_true(map->count > KEYS / 4);
        ottl_memory_fini(&memory);
    }
}

/* Without an index each lookup of many would look at all entries. */
static void test_refused_index(void **state)
{
    (void)state;
    enum { KEYS = 100, KEY_BYTES = 8 };
    char texts[KEYS][KEY_BYTES];
    struct ottl_memory memory;
    const struct ottl_value value = ottl_int(1);
    unsigned put = 0;
    ottl_memory_init(&memory, KEYS * sizeof(struct ottl_entry), NULL);
    struct ottl_map map = {.base.memory = &memory};
    assert_true(ottl_map_reserve(&map, KEYS));
    for (bool is_put = true; is_put && put < KEYS; put += is_put) {
        snprintf(texts[put], KEY_BYTES, "k%u", put);
        is_put = ottl_map_put(&map, slice_of_text(texts[put]), &value);
    }
    assert_in_range(put, 1, KEYS - 1);
    assert_true(memory.has_met_limit);
    ottl_memory_fini(&memory);
}

/* The first goes, then the next, each time for another span; other keys stand between. */
static void test_removed_duplicates(void **state)
{
    (void)state;
    static const char *const statements[STATEMENTS_MAX] = {
        "delete_key(resource.attributes, \"a\") where name != \"1\"",
        "delete_key(resource.attributes, \"b\") where name == \"2\"",
        "set(attributes[\"a\"], resource.attributes[\"a\"])",
        "set(attributes[\"b\"], resource.attributes[\"b\"])"};
#define INT(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"
#define OF(resource, first, second, third)                                                         \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" resource                                 \
    "]},\"scopeSpans\":[{\"spans\":[{\"name\":\"0\"" first "},{\"name\":\"1\"" second              \
    "},{\"name\":\"2\"" third "}]}]}]}"
#define GOT(attributes) ",\"attributes\":[" attributes "]"
    expect_run(TRACES, OTTL_SPAN, statements,
               OF(INT("a", "1") "," INT("b", "2") "," INT("a", "3") "," INT("b", "4") "," INT(
                      "c", "5") "," INT("a", "6") "," INT("b", "7"),
                  "", "", ""),
               OF(INT("c", "5") "," INT("b", "2") "," INT("a", "6") "," INT("b", "4"),
                  GOT(INT("a", "3") "," INT("b", "7")), GOT(INT("a", "3") "," INT("b", "7")),
                  GOT(INT("a", "6") "," INT("b", "2"))),
               0);
}

/* Resources that change after their spans have: what is noted last stands first. */
static void test_many_resources(void **state)
{
    (void)state;
    enum { RESOURCES = 24, PIECE = 160 };
    static const char *const statements[STATEMENTS_MAX] = {
        "set(resource.attributes[\"a\"], \"x\")", "set(name, Concat([name, \"-\"], \"\"))"};
    char before[TEXT_MAX] = "{\"resourceSpans\":[";
    char after[TEXT_MAX] = "{\"resourceSpans\":[";
    for (unsigned i = 0; i < RESOURCES; i++) {
        static const char format[] = "%s{\"resource\":{%s},\"scopeSpans\":[{\"spans\":[{"
                                     "\"name\":\"%u%s\"}]}]}";
        const char *comma = i > 0 ? "," : "";
        char piece[PIECE];
        snprintf(piece, sizeof(piece), format, comma, "", i, "");
        strcat(before, piece);
        snprintf(piece, sizeof(piece), format, comma, "\"attributes\":[" A "]", i, "-");
        strcat(after, piece);
    }
    strcat(before, "]}");
    strcat(after, "]}");
    expect_run(TRACES, OTTL_SPAN, statements, before, after, 0);
}

#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define TWO(value)                                                                                 \
    "{\"arrayValue\":{\"values\":[{\"stringValue\":\"" value "\"},{\"stringValue\":\"-\"}]}}"
#define RESOURCES_OF(x, y)                                                                         \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" TEXT(                                    \
        "a", "x -") "]},\"scopeSpans\":["                                                          \
                    "{\"spans\":[{" x "},{" x "}]},{\"spans\":[{" x                                \
                    "}]}]},{\"resource\":{\"attributes\":[" TEXT(                                  \
                        "a", "y -") "]},\"scopeSpans\":[{\"spans\":[{" y "}]}]}]}"
#define RESULTS(big, small)                                                                        \
    "\"attributes\":[" TEXT("t", big) ",{\"key\":\"l\",\"value\":" TWO("0") "},{\"key\":\"m\","    \
                                                                            "\"value\":" TWO(      \
                                                                                small) "}]"

/* What depends on the Resource alone is made once for it, and each span has its own. */
static void test_outer_values(void **state)
{
    (void)state;
    static const char *const statements[STATEMENTS_MAX] = {
        "set(attributes[\"t\"], ToUpperCase(resource.attributes[\"a\"]))",
        "set(attributes[\"l\"], Split(resource.attributes[\"a\"], \" \"))",
        "set(attributes[\"l\"][0], \"0\")",
        "set(attributes[\"m\"], Split(resource.attributes[\"a\"], \" \"))",
        "set(attributes[\"n\"], ParseJSON(resource.attributes[\"a\"]))"};
    static const char *const written[STATEMENTS_MAX] = {
        "set(resource.attributes[\"a\"], Concat([resource.attributes[\"a\"], name], \"\"))",
        "set(name, ToUpperCase(resource.attributes[\"a\"]))"};
    expect_run(TRACES, OTTL_SPAN, statements, RESOURCES_OF("", ""),
               RESOURCES_OF(RESULTS("X -", "x"), RESULTS("Y -", "y")), 4);
    expect_run(
        TRACES, OTTL_SPAN, written,
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" TEXT(
            "a", "x") "]},"
                      "\"scopeSpans\":[{\"spans\":[{\"name\":\"1\"},{\"name\":\"2\"}]}]}]}",
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" TEXT(
            "a", "x12") "]},"
                        "\"scopeSpans\":[{\"spans\":[{\"name\":\"X1\"},{\"name\":\"X12\"}]}]}]}",
        0);
}

/* A Resource that is too long to be read for each of so many spans: what reads it fails in the end,
 * the other statements go on. */
static void test_outer_limit(void **state)
{
    (void)state;
    enum { TEXT_BYTES = 1 << 20, SPANS = 200, JSON_BYTES = TEXT_BYTES + SPANS * 64 };
    static const char *const statements[STATEMENTS_MAX] = {
        "set(attributes[\"n\"], Len(Concat([resource.attributes[\"a\"], name], \"\")))",
        "set(attributes[\"own\"], true)"};
    char *json = mem_alloc(JSON_BYTES);
    size_t size =
        (size_t)snprintf(json, JSON_BYTES,
                         "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"a\","
                         "\"value\":{\"stringValue\":\"%0*d\"}}]},\"scopeSpans\":[{\"spans\":[",
                         TEXT_BYTES, 0);
    for (size_t i = 0; i < SPANS; i++)
        size += (size_t)snprintf(json + size, JSON_BYTES - size, "%s{\"name\":\"n\"}",
                                 i > 0 ? "," : "");
    snprintf(json + size, JSON_BYTES - size, "]}]}]}");
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, statements, true, OTTL_IGNORE);
    struct batch *batch = batch_of(TRACES, json, 0);
    struct ottl_runner runner;
    mem_free(json);
    ottl_runner_init(&runner, plan, NULL);
    runner.on_failure = on_failure;
    for (unsigned i = 0; i < 2; i++) {
        struct failures failures = {.count = 0};
        runner.arg = &failures;
        struct ottl_result result = ottl_runner_run(&runner, batch);
        assert_int_equal(result.verdict, OTTL_PASSED);
        /* 32 MiB, and 64 times the request. */
        assert_in_range(failures.count, SPANS - 32 - 64 - 2, SPANS - 32 - 64);
        assert_non_null(strstr(failures.last, "more than 64 times the request's bytes"));
        struct buffer *found = json_write_batch(result.batch, NULL);
        unsigned own = 0;
        for (size_t at = 0; at + 5 < found->size; at++)
            own += memcmp(found->data + at, "\"own\"", 5) == 0;
        assert_int_equal(own, SPANS);
        buffer_unref(found);
        batch_unref(result.batch);
    }
    /* On a lane another runner is to do it. */
    struct failures failures = {.count = 0};
    runner.arg = &failures;
    clock_fake_start(0, NS_PER_S);
    struct lane *lane = lane_create(0);
    runner.lane = lane;
    struct ottl_result result = ottl_runner_run(&runner, batch);
    assert_int_equal(result.verdict, OTTL_TOO_LONG);
    assert_null(result.batch);
    assert_int_equal(failures.count, 0);
    lane_destroy(lane);
    clock_fake_stop();
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(batch);
}

/* A sample that names an attribute with a long key so often that it takes seconds. */
static void test_shared_keys_have_an_end(void **state)
{
    (void)state;
    enum { KEY_BYTES = 256 * 1024, NAMED = 32 * 1024, JSON_BYTES = KEY_BYTES + 2 * NAMED + 512 };
    static const char *const statements[STATEMENTS_MAX] = {"delete_key(attributes, \"k\")"};
    char *json = mem_alloc(JSON_BYTES);
    size_t size = (size_t)snprintf(
        json, JSON_BYTES,
        "{\"dictionary\":{\"stringTable\":[\"\",\"%0*d\"],"
        "\"attributeTable\":[{},{\"keyStrindex\":1,\"value\":{\"stringValue\":\"v\"}}]},"
        "\"resourceProfiles\":[{\"scopeProfiles\":[{"
        "\"profiles\":[{\"samples\":[{\"values\":[\"1\"],\"attributeIndices\":[1",
        KEY_BYTES, 0);
    for (size_t i = 1; i < NAMED; i++)
        size += (size_t)snprintf(json + size, JSON_BYTES - size, ",1");
    snprintf(json + size, JSON_BYTES - size, "]}]}]}]}]}");
    struct ottl_plan *plan = plan_of(PROFILES, OTTL_PROFILE_SAMPLE, statements, true, OTTL_IGNORE);
    struct batch *batch = batch_of(PROFILES, json, 0);
    struct failures failures = {.count = 0};
    struct ottl_runner runner;
    mem_free(json);
    ottl_runner_init(&runner, plan, NULL);
    runner.on_failure = on_failure;
    runner.arg = &failures;
    struct ottl_result result = ottl_runner_run(&runner, batch);
    assert_int_equal(result.verdict, OTTL_PASSED);
    assert_int_equal(failures.count, 1);
    assert_non_null(strstr(failures.last, "more than 64 times the request's bytes"));
    batch_unref(result.batch);
    /* What a statement on a lane cannot end is another runner's. */
    clock_fake_start(0, NS_PER_S);
    struct lane *lane = lane_create(0);
    runner.lane = lane;
    result = ottl_runner_run(&runner, batch);
    assert_int_equal(result.verdict, OTTL_TOO_LONG);
    assert_int_equal(failures.count, 1);
    lane_destroy(lane);
    clock_fake_stop();
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(batch);
}

/* Entries that repeat a long prefix, in several records: each of them may have only so much, and so
 * have all of them. */
static void test_copied_prefixes_have_an_end(void **state)
{
    (void)state;
    enum { RECORDS = 4, KEY_BYTES = 8000, ENTRIES = 4000, JSON_BYTES = RECORDS * 32 * 1024 };
    static const char *const statements[STATEMENTS_MAX] = {"flatten(attributes)",
                                                           "set(severity_text, \"own\")"};
    char *json = mem_alloc(JSON_BYTES);
    size_t size =
        (size_t)snprintf(json, JSON_BYTES, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[");
    for (size_t i = 0; i < RECORDS; i++) {
        size += (size_t)snprintf(json + size, JSON_BYTES - size,
                                 "%s{\"attributes\":[{\"key\":\"%0*d\",\"value\":{\"kvlistValue\":"
                                 "{\"values\":[{}",
                                 i > 0 ? "," : "", KEY_BYTES, 0);
        for (size_t k = 1; k < ENTRIES; k++)
            size += (size_t)snprintf(json + size, JSON_BYTES - size, ",{}");
        size += (size_t)snprintf(json + size, JSON_BYTES - size, "]}}}]}");
    }
    snprintf(json + size, JSON_BYTES - size, "]}]}]}");
    struct ottl_plan *plan = plan_of(LOGS, OTTL_LOG, statements, true, OTTL_IGNORE);
    struct batch *batch = batch_of(LOGS, json, 0);
    struct failures failures = {.count = 0};
    struct ottl_runner runner;
    mem_free(json);
    ottl_runner_init(&runner, plan, NULL);
    runner.on_failure = on_failure;
    runner.arg = &failures;
    struct ottl_result result = ottl_runner_run(&runner, batch);
    assert_int_equal(result.verdict, OTTL_PASSED);
    assert_int_equal(failures.count, RECORDS);
    assert_non_null(strstr(failures.last, "more than 64 times the request's bytes"));
    assert_true(result.batch->bytes > batch->bytes);
    batch_unref(result.batch);
    clock_fake_start(0, NS_PER_S);
    struct lane *lane = lane_create(0);
    runner.lane = lane;
    result = ottl_runner_run(&runner, batch);
    assert_int_equal(result.verdict, OTTL_TOO_LONG);
    assert_int_equal(failures.count, RECORDS);
    lane_destroy(lane);
    clock_fake_stop();
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(batch);
}

/* Spans named after their number below 10, with patterns made of their own. */
static struct batch *batch_with_patterns(const char *pattern, unsigned spans, bool is_distinct)
{
    enum { SPAN_BYTES = 256 };
    const size_t room = (size_t)SPAN_BYTES * (spans + 1);
    char *json = mem_alloc(room);
    size_t size = (size_t)snprintf(json, room, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[");
    for (unsigned i = 0; i < spans; i++)
        size += (size_t)snprintf(json + size, room - size,
                                 "%s{\"name\":\"%u\",\"attributes\":[{\"key\":\"p\",\"value\":{"
                                 "\"stringValue\":\"%s%u\"}}]}",
                                 i > 0 ? "," : "", i % 10, pattern, is_distinct ? i : 0);
    snprintf(json + size, room - size, "]}]}]}");
    struct batch *batch = batch_of(TRACES, json, 0);
    mem_free(json);
    return batch;
}

/* Patterns that spans have: equal ones are compiled once, of others only so many. */
static void test_patterns_of_records_have_an_end(void **state)
{
    (void)state;
    enum { SPANS = 200 };
    static const char *const all[][STATEMENTS_MAX] = {
        {"set(attributes[\"is\"], IsMatch(name, attributes[\"p\"]))"},
        {"set(attributes[\"is\"], IsMatch(IsMatch(name, attributes[\"p\"]), attributes[\"p\"]))"},
        {"set(status.message, \"x\") where IsMatch(name, attributes[\"p\"])"},
        {"replace_pattern(name, attributes[\"p\"], \"x\")"},
        {"replace_all_patterns(attributes, \"key\", attributes[\"p\"], \"x\")"},
        {"delete_matching_keys(attributes, attributes[\"p\"])"},
        {"set(attributes[\"is\"], ExtractPatterns(name, Concat([attributes[\"p\"], \"(?P<a>)\"], "
         "\"\")))"},
    };
    /* Each is worth 1.8 ms. */
    struct batch *equal = batch_with_patterns("x{0,1000}", SPANS, false);
    struct batch *distinct = batch_with_patterns("x{0,1000}", SPANS, true);
    clock_fake_start(0, NS_PER_S);
    struct lane *lane = lane_create(0);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, all[i], true, OTTL_IGNORE);
        struct failures failures = {.count = 0};
        struct ottl_runner runner;
        ottl_runner_init(&runner, plan, NULL);
        runner.on_failure = on_failure;
        runner.arg = &failures;
        struct ottl_result result = ottl_runner_run(&runner, equal);
        assert_int_equal(result.verdict, OTTL_PASSED);
        assert_int_equal(failures.count, 0);
        batch_unref(result.batch);
        result = ottl_runner_run(&runner, distinct);
        assert_int_equal(result.verdict, OTTL_PASSED);
        assert_in_range(failures.count, SPANS - 40, SPANS - 10);
        assert_non_null(strstr(failures.last, "more than 64 times the request's bytes"));
        batch_unref(result.batch);
        runner.lane = lane;
        result = ottl_runner_run(&runner, distinct);
        assert_int_equal(result.verdict, OTTL_TOO_LONG);
        ottl_runner_fini(&runner);
        ottl_plan_destroy(plan);
    }
    lane_destroy(lane);
    clock_fake_stop();
    batch_unref(equal);
    batch_unref(distinct);
}

/* A plain text that a record has may be replaced any number of times. */
static void test_plain_texts_of_records_are_searched_once(void **state)
{
    (void)state;
    enum { COMMAS = 10000 };
    static const char *const statements[STATEMENTS_MAX] = {
        "replace_pattern(name, attributes[\"p\"], \"x\")"};
    char *json = mem_alloc(COMMAS + 200);
    char commas[COMMAS + 1];
    memset(commas, ',', COMMAS);
    commas[COMMAS] = '\0';
    snprintf(json, COMMAS + 200,
             "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"%s\",\"attributes\":["
             "{\"key\":\"p\",\"value\":{\"stringValue\":\",\"}}]}]}]}]}",
             commas);
    struct batch *batch = batch_of(TRACES, json, 0);
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, statements, true, OTTL_PROPAGATE);
    struct ottl_runner runner;
    ottl_runner_init(&runner, plan, NULL);
    struct ottl_result result = ottl_runner_run(&runner, batch);
    assert_int_equal(result.verdict, OTTL_PASSED);
    struct slice bytes = joined_parts(result.batch);
    assert_null(memmem(bytes.data, bytes.size, ",,", 2));
    mem_free((void *)(uintptr_t)bytes.data);
    batch_unref(result.batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(batch);
    mem_free(json);
}

/* Each request has a share of its own, however many came before. */
static void test_requests_have_their_own_share(void **state)
{
    (void)state;
    enum { REQUESTS = 25, TERMS = 30 };
    /* Each pattern is worth 1.5 ms. */
    static const char term[] = "IsMatch(\"y\", Concat([\"x{0,1000}%zu$\"], \"\"))%s";
    char condition[TERMS * sizeof(term)];
    const char *conditions[STATEMENTS_MAX] = {condition};
    struct batch *batch = batch_of(TRACES, "{\"resourceSpans\":[{}]}", 0);
    clock_fake_start(0, NS_PER_S);
    struct lane *lane = lane_create(0);
    for (size_t terms = 1; terms <= TERMS; terms += TERMS - 1) {
        struct failures failures = {.count = 0};
        struct ottl_runner runner;
        size_t size = 0;
        for (size_t i = 0; i < terms; i++)
            size += (size_t)snprintf(condition + size, sizeof(condition) - size, term, i,
                                     i + 1 < terms ? " or " : "");
        struct ottl_plan *plan = plan_of(TRACES, OTTL_OTELCOL, conditions, false, OTTL_IGNORE);
        ottl_runner_init(&runner, plan, NULL);
        runner.on_failure = on_failure;
        runner.arg = &failures;
        const unsigned requests = terms == 1 ? REQUESTS : 1;
        for (unsigned i = 0; i < requests; i++)
            assert_int_equal(ottl_runner_test_request(&runner, batch), OTTL_FALSE);
        assert_int_equal(failures.count, terms == 1 ? 0 : 1);
        runner.lane = lane;
        assert_int_equal(ottl_runner_test_request(&runner, batch),
                         terms == 1 ? OTTL_FALSE : OTTL_FAILED);
        assert_int_equal(runner.is_too_long, terms > 1);
        ottl_runner_fini(&runner);
        ottl_plan_destroy(plan);
    }
    lane_destroy(lane);
    clock_fake_stop();
    batch_unref(batch);
}

/* Globs are other patterns than the same text, and are kept, too. */
static void test_globs_of_records(void **state)
{
    (void)state;
    static const char *const statements[STATEMENTS_MAX] = {
        "set(attributes[\"is\"], IsMatch(name, attributes[\"p\"]))",
        "replace_match(name, attributes[\"p\"], \"glob\")",
        "replace_all_matches(attributes, attributes[\"p\"], \"glob\")"};
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, statements, true, OTTL_IGNORE);
    struct batch *batch = batch_with_patterns("*", 20, false);
    struct failures failures = {.count = 0};
    struct ottl_runner runner;
    ottl_runner_init(&runner, plan, NULL);
    runner.on_failure = on_failure;
    runner.arg = &failures;
    struct ottl_result result = ottl_runner_run(&runner, batch);
    assert_int_equal(result.verdict, OTTL_PASSED);
    assert_int_equal(failures.count, 20);
    assert_non_null(strstr(failures.last, "no argument for repetition operator"));
    struct buffer *found = json_write_batch(result.batch, NULL);
    assert_non_null(memmem(found->data, found->size, "{\"name\":\"glob\"", 14));
    buffer_unref(found);
    batch_unref(result.batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(batch);
}

/* A pattern that has many instructions for each byte of a text. */
static void test_searches_have_an_end(void **state)
{
    (void)state;
    enum { TEXT_BYTES = 60000, KEY_BYTES = 15000, JSON_BYTES = 2 * TEXT_BYTES + KEY_BYTES + 2048 };
    static const char *const statements[][STATEMENTS_MAX] = {
        {"set(attributes[\"is\"], IsMatch(name, attributes[\"p\"]))"},
        {"replace_pattern(name, attributes[\"q\"], \"x\")"},
        {"replace_all_patterns(attributes, \"value\", attributes[\"q\"], \"x\")"},
        {"replace_all_patterns(attributes, \"key\", attributes[\"q\"], \"x\")"},
        {"replace_match(name, attributes[\"g\"], \"x\")"},
        {"replace_all_matches(attributes, attributes[\"g\"], \"x\")"},
    };
    char *json = mem_alloc(JSON_BYTES);
    char glob[1001];
    memset(glob, 'a', 1000);
    glob[1000] = 0;
    glob[0] = '*';
    size_t size =
        (size_t)snprintf(json, JSON_BYTES,
                         "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"%0*d\","
                         "\"attributes\":[{\"key\":\"p\",\"value\":{\"stringValue\":"
                         "\"(?:0|1)*0(?:0|1){900}2\"}},{\"key\":\"q\",\"value\":{\"stringValue\":"
                         "\"0.*1|0\"}},{\"key\":\"g\",\"value\":{\"stringValue\":\"%s\"}},"
                         "{\"key\":\"%0*d\",\"value\":{\"stringValue\":\"%0*d\"}}]}]}]}]}",
                         TEXT_BYTES, 0, glob, KEY_BYTES, 0, TEXT_BYTES, 0);
    assert_true(size < JSON_BYTES);
    struct batch *batch = batch_of(TRACES, json, 0);
    mem_free(json);
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
        struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, statements[i], true, OTTL_IGNORE);
        struct failures failures = {.count = 0};
        struct ottl_runner runner;
        ottl_runner_init(&runner, plan, NULL);
        runner.on_failure = on_failure;
        runner.arg = &failures;
        struct ottl_result result = ottl_runner_run(&runner, batch);
        assert_int_equal(result.verdict, OTTL_PASSED);
        assert_int_equal(failures.count, 1);
        assert_non_null(strstr(failures.last, "more than 64 times the request's bytes"));
        batch_unref(result.batch);
        ottl_runner_fini(&runner);
        ottl_plan_destroy(plan);
    }
    batch_unref(batch);
}

/* Patterns of records may be less than literals. */
static void test_limits_of_patterns_of_records(void **state)
{
    (void)state;
    static const char *const statements[STATEMENTS_MAX] = {
        "set(attributes[\"is\"], IsMatch(name, attributes[\"p\"]))"};
    char text[1026];
    memset(text, 'a', 1025);
    text[1025] = 0;
    const struct {
        const char *pattern;
        const char *error; /* NULL: none */
    } rows[] = {{"[\\\\pL\\\\pN]+", NULL},
                {"\\\\pL{100}", "pattern too large"},
                {text + 1, NULL},
                {text, "a pattern of more than 1024 bytes"}};
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, statements, true, OTTL_IGNORE);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char json[2048];
        struct failures failures = {.count = 0};
        struct ottl_runner runner;
        snprintf(json, sizeof(json),
                 "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"1\",\"attributes\":["
                 "{\"key\":\"p\",\"value\":{\"stringValue\":\"%s\"}}]}]}]}]}",
                 rows[i].pattern);
        struct batch *batch = batch_of(TRACES, json, 0);
        ottl_runner_init(&runner, plan, NULL);
        runner.on_failure = on_failure;
        runner.arg = &failures;
        struct ottl_result result = ottl_runner_run(&runner, batch);
        assert_int_equal(result.verdict, OTTL_PASSED);
        assert_int_equal(failures.count, rows[i].error != NULL);
        if (rows[i].error != NULL)
            assert_non_null(strstr(failures.last, rows[i].error));
        batch_unref(result.batch);
        batch_unref(batch);
        ottl_runner_fini(&runner);
    }
    ottl_plan_destroy(plan);
}

/* Whatever the time: a long record is for another runner. */
static void test_long_records_on_a_lane(void **state)
{
    (void)state;
    enum { AROUND = 64, JSON_BYTES = OTTL_LANE_RECORD_BYTES_MAX + 2 * AROUND };
    static const char *const statements[STATEMENTS_MAX] = {"set(name, \"new\")"};
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, statements, true, OTTL_IGNORE);
    char *json = mem_alloc(JSON_BYTES);
    clock_fake_start(0, NS_PER_S);
    struct lane *lane = lane_create(0);
    for (int i = 0; i < 2; i++) {
        /* With the name's tag and length of three bytes. */
        snprintf(json, JSON_BYTES,
                 "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"%0*d\"}]}]}]}",
                 OTTL_LANE_RECORD_BYTES_MAX - 4 + i, 0);
        struct batch *batch = batch_of(TRACES, json, 0);
        struct ottl_runner runner;
        ottl_runner_init(&runner, plan, NULL);
        runner.lane = lane;
        struct ottl_result result = ottl_runner_run(&runner, batch);
        assert_int_equal(result.verdict, i == 1 ? OTTL_TOO_LONG : OTTL_PASSED);
        batch_unref(result.batch);
        ottl_runner_fini(&runner);
        batch_unref(batch);
    }
    lane_destroy(lane);
    clock_fake_stop();
    mem_free(json);
    ottl_plan_destroy(plan);
}

/* By the clock: another runner does what a lane has no more time for. */
static void test_lane_that_is_held_long(void **state)
{
    (void)state;
    enum { SPANS = 64, JSON_BYTES = SPANS * 64 };
    static const char *const statements[STATEMENTS_MAX] = {"set(name, \"new\")"};
    char json[JSON_BYTES] = "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}";
    for (size_t i = 1; i < SPANS; i++)
        strcat(json, ",{}");
    strcat(json, "]}]}]}");
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, statements, true, OTTL_IGNORE);
    struct batch *batch = batch_of(TRACES, json, 0);
    clock_fake_start(NS_PER_S, NS_PER_S);
    struct lane *lane = lane_create(0);
    for (uint64_t held_ns = LANE_EDIT_NS - 1; held_ns <= LANE_EDIT_NS; held_ns++) {
        struct ottl_runner runner;
        ottl_runner_init(&runner, plan, NULL);
        runner.lane = lane;
        clock_fake_stop();
        clock_fake_start(held_ns, NS_PER_S);
        struct ottl_result result = ottl_runner_run(&runner, batch);
        assert_int_equal(result.verdict, held_ns == LANE_EDIT_NS ? OTTL_TOO_LONG : OTTL_PASSED);
        batch_unref(result.batch);
        ottl_runner_fini(&runner);
    }
    lane_destroy(lane);
    clock_fake_stop();
    ottl_plan_destroy(plan);
    batch_unref(batch);
}

static void expect_mistake(enum ottl_context context, const char *statement, const char *expected)
{
    struct ottl_plan *plan = ottl_plan_create(TRACES, OTTL_FOR_TRANSFORM);
    struct error error;
    const struct ottl_group group = {.context = context,
                                     .paths = context == OTTL_CONTEXTS ? OTTL_PATHS_FULL
                                                                       : OTTL_PATHS_OF_CONTEXT,
                                     .statements = &statement,
                                     .statements_count = 1};
    if (ottl_plan_add(plan, &group, true, &error))
        fail_msg("%s: accepted", statement);
    assert_string_equal(error.text, expected);
    ottl_plan_destroy(plan);
}

static void test_mistakes(void **state)
{
    (void)state;
    expect_mistake(OTTL_SPAN, "set(nam, 1)",
                   "column 5: a span has no path \"nam\" (did you mean \"name\"?)");
    expect_mistake(OTTL_SPAN, "set(status.cod, 1)",
                   "column 5: a span has no path \"status.cod\" (did you mean \"status.code\"?)");
    expect_mistake(OTTL_SPAN, "set(name[\"a\"], 1)",
                   "column 9: \"name\" is no map or list; it cannot be indexed");
    expect_mistake(OTTL_SPAN, "set(trace_state[\"a\"][\"b\"], 1)",
                   "column 21: \"trace_state\" takes exactly one key");
    expect_mistake(OTTL_SPAN, "set(attributes[\"a\"].b, 1)",
                   "column 5: only the last part of a path may be indexed");
    expect_mistake(OTTL_SPAN, "set(\"a\", 1)", "column 5: the argument Target must be a path");
    expect_mistake(OTTL_SPAN, "set(name)", "column 1: set takes 2 arguments, found 1");
    expect_mistake(OTTL_SPAN, "set(name, valu=1)",
                   "column 11: set has no parameter \"valu\" (did you mean \"Value\"?)");
    expect_mistake(OTTL_SPAN, "set(target=name, 1)",
                   "column 18: an argument without a name behind one with a name");
    expect_mistake(OTTL_SPAN, "st(name, 1)",
                   "column 1: undefined function \"st\" (did you mean \"set\"?)");
    expect_mistake(OTTL_SPAN, "set(kind, SPAN_KIND_SERVR)",
                   "column 11: a span has no enum symbol \"SPAN_KIND_SERVR\" (did you mean "
                   "\"SPAN_KIND_SERVER\"?)");
    expect_mistake(OTTL_SPAN, "delete_key(attributes, 1)",
                   "column 24: the argument Key must be a string: expected string");
    expect_mistake(OTTL_SPAN, "keep_keys(attributes, \"a\")",
                   "column 23: the argument Keys must be a list, each item a string");
    expect_mistake(OTTL_SPAN, "keep_keys(attributes, [1])",
                   "column 24: the argument Keys must be a list, each item a string: expected "
                   "string");
    expect_mistake(OTTL_SPAN, "set(name, Bool(\"yes\"))",
                   "column 16: the argument Target must be a value that becomes a bool: "
                   "strconv.ParseBool: invalid syntax");
    expect_mistake(OTTL_SPAN, "merge_maps(attributes, attributes, \"x\")",
                   "column 1: merge_maps: invalid value for strategy, \"x\", must be 'insert', "
                   "'update' or 'upsert'");
    expect_mistake(OTTL_SPAN, "delete_matching_keys(attributes, \"(\")",
                   "column 1: delete_matching_keys: the pattern is not valid: invalid pattern "
                   "\"(\": missing ): (");
    expect_mistake(
        OTTL_SPAN, "set(resource.cache[\"a\"], 1)",
        "column 5: the cache is that of the span the statement is for; write span.cache");
    expect_mistake(OTTL_SPAN_EVENT, "set(name, \"a\") where IsRootSpan()",
                   "column 22: the function \"IsRootSpan\" is not for the context spanevent");
    expect_mistake(OTTL_SPAN, "set(name, (a) => a)",
                   "column 11: lambdas need the feature gate ottl.functions.enableLambda, which is "
                   "off; no function takes one yet");
    expect_mistake(OTTL_CONTEXTS, "set(name, \"a\")",
                   "no path says which context this is for: begin one with the context's name, as "
                   "in span.attributes[\"a\"], or give the context with {context: …}");
    expect_mistake(OTTL_CONTEXTS, "set(spam.name, \"a\")",
                   "\"spam\" is no context; a path begins with one, as in span.attributes[\"a\"]");
    expect_mistake(OTTL_CONTEXTS, "set(span.name, name)",
                   "column 16: the path \"name\" does not begin with a context; expected one of: "
                   "resource., scope., span., otelcol.");
    expect_mistake(OTTL_CONTEXTS, "set(span.name, log.body)", "\"log\" is no context of this list");
}

/* The innermost context that a path names, or one inside that has what the statement needs. */
static void test_inference(void **state)
{
    (void)state;
    static const struct {
        const char *statement;
        enum ottl_context context;
    } rows[] = {
        {"set(resource.attributes[\"a\"], 1)", OTTL_RESOURCE},
        {"set(scope.name, resource.schema_url)", OTTL_SCOPE},
        {"set(resource.attributes[\"a\"], span.name)", OTTL_SPAN},
        {"set(span.name, spanevent.name)", OTTL_SPAN_EVENT},
        {"set(resource.attributes[\"a\"], 1) where IsRootSpan()", OTTL_SPAN},
        {"set(resource.attributes[\"a\"], SPAN_KIND_SERVER)", OTTL_SPAN_EVENT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const statements[STATEMENTS_MAX] = {rows[i].statement};
        struct ottl_plan *plan = plan_of(TRACES, OTTL_CONTEXTS, statements, true, OTTL_IGNORE);
        assert_int_equal(plan->contexts, OTTL_CONTEXT_BIT(rows[i].context));
        ottl_plan_destroy(plan);
    }
}

/* Every allocation that may fail does: the batch is refused as a whole, and nothing is lost. */
static void test_memory(void **state)
{
    (void)state;
    static const char *const statements[STATEMENTS_MAX] = {
        "set(attributes[\"m\"], {\"a\": attributes, \"l\": [name, 1]})",
        "set(resource.attributes[\"n\"], attributes[\"m\"])",
        "delete_key(attributes, \"a\")",
        "set(name, Concat([name, name], \"-\"))",
    };
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, statements, true, OTTL_IGNORE);
    char json[TEXT_MAX];
    snprintf(json, sizeof(json), SPAN, A "," B "," LIST "," MAP(A));
    struct batch *batch = batch_of(TRACES, json, 1);
    struct budget budget;
    bool has_passed = false;
    budget_init(&budget, 1 << 20);
    for (uint64_t nth = 1; !has_passed; nth++) {
        struct ottl_runner runner;
        ottl_runner_init(&runner, plan, &budget);
        mem_refuse_nth(nth);
        struct ottl_result result = ottl_runner_run(&runner, batch);
        mem_refuse_nth(0);
        has_passed = result.verdict == OTTL_PASSED;
        assert_true(has_passed || result.verdict == OTTL_NO_MEMORY);
        assert_true(has_passed == (result.batch != NULL));
        assert_false(result.never_fits);
        batch_unref(result.batch);
        ottl_runner_fini(&runner);
        assert_int_equal(budget_used(&budget), 0);
        assert_true(nth < 100);
    }
    batch_unref(batch);
    ottl_plan_destroy(plan);
    budget_fini(&budget);
}

/* The same when the budget ends anywhere in a long value that is written anew. As nothing will come
 * free, the batch is said not to fit at all. */
static void test_memory_of_long_values(void **state)
{
    enum { LONG = 2000, LIMIT_MAX = 32 * 1024, STEP = 32 };
    static const char *const statements[STATEMENTS_MAX] = {
        "set(attributes[\"c\"], attributes[\"a\"])",
        "set(resource.attributes[\"d\"], attributes[\"a\"])",
    };
    char json[TEXT_MAX], attribute[TEXT_MAX / 2];
    unsigned refusals = 0;
    bool has_passed = false;
    (void)state;
    snprintf(attribute, sizeof(attribute), "{\"key\":\"a\",\"value\":{\"stringValue\":\"%0*d\"}}",
             LONG, 0);
    snprintf(json, sizeof(json), SPAN, attribute);
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, statements, true, OTTL_IGNORE);
    struct batch *batch = batch_of(TRACES, json, 0);
    for (uint64_t limit = 2 * batch->bytes; limit < LIMIT_MAX; limit += STEP) {
        struct budget budget;
        struct ottl_runner runner;
        budget_init(&budget, limit);
        budget_take(&budget, batch->bytes); /* nobody else holds any */
        ottl_runner_init(&runner, plan, &budget);
        struct ottl_result result = ottl_runner_run(&runner, batch);
        has_passed = result.verdict == OTTL_PASSED;
        assert_true(has_passed || (result.verdict == OTTL_NO_MEMORY && result.never_fits));
        refusals += !has_passed;
        batch_unref(result.batch);
        ottl_runner_fini(&runner);
        budget_return(&budget, batch->bytes);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
    assert_true(has_passed && refusals > 10);
    batch_unref(batch);
    ottl_plan_destroy(plan);
}

/* One Resource with an attribute of so many bytes, and spans or log records that are each those
 * bytes, or a Metric, in one part. */
static struct batch *one_resource(enum signal_kind signal, size_t attribute_bytes,
                                  struct slice item, size_t items)
{
    const size_t value = wire_field_size(1, attribute_bytes);
    const size_t attribute = wire_field_size(1, 1) + wire_field_size(2, value);
    const size_t resource = wire_field_size(1, attribute);
    const size_t scope = items * wire_field_size(2, item.size);
    const size_t all = wire_field_size(1, resource) + wire_field_size(2, scope);
    const size_t whole = wire_field_size(1, all);
    struct buffer *buffer = buffer_create(NULL, whole);
    struct wire_writer writer = wire_writer_of(buffer->data, whole);
    struct batch *batch = batch_create(signal, 1);
    wire_write_header(&writer, 1, all);
    wire_write_header(&writer, 1, resource);
    wire_write_header(&writer, 1, attribute);
    wire_write_bytes(&writer, 1, slice_of_text("r"));
    wire_write_header(&writer, 2, value);
    wire_write_header(&writer, 1, attribute_bytes);
    memset(writer.at, 'v', attribute_bytes);
    writer.at += attribute_bytes;
    wire_write_header(&writer, 2, scope);
    for (size_t i = 0; i < items; i++)
        wire_write_bytes(&writer, 2, item);
    assert_ptr_equal(writer.at, writer.end);
    buffer->size = whole;
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = items;
    buffer_unref(buffer);
    return batch;
}

static struct ottl_result run_once(const struct ottl_plan *plan, struct batch *batch,
                                   struct budget *budget)
{
    struct ottl_runner runner;
    struct failures failures = {.count = 0};
    ottl_runner_init(&runner, plan, budget);
    runner.on_failure = on_failure;
    runner.arg = &failures;
    struct ottl_result result = ottl_runner_run(&runner, batch);
    if (failures.count > 0)
        fail_msg("%s", failures.last);
    ottl_runner_fini(&runner);
    return result;
}

/* What each record gets of what they have in common grows by both: it is refused for good. */
static void test_growth(void **state)
{
    enum { SHARED = 40000 };
    static const char *const statements[STATEMENTS_MAX] = {
        "set(attributes[\"r\"], resource.attributes[\"r\"])"};
    const size_t most = OTTL_GROWTH_BYTES_MIN / SHARED;
    (void)state;
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, statements, true, OTTL_IGNORE);
    for (size_t i = 0; i < 2; i++) {
        const size_t spans = i == 0 ? most : most + most / 2;
        struct batch *batch = one_resource(TRACES, SHARED, slice_of_text("\x2a\x01N"), spans);
        struct ottl_result result = run_once(plan, batch, NULL);
        assert_int_equal(result.verdict, i == 0 ? OTTL_PASSED : OTTL_NO_MEMORY);
        assert_int_equal(result.never_fits, i == 1);
        if (i == 0)
            assert_true(result.batch->bytes > spans * SHARED);
        batch_unref(result.batch);
        batch_unref(batch);
    }
    ottl_plan_destroy(plan);
}

/* Memory that doubles is more than what is put there: what asks for more than the whole budget does
 * so each time. */
static void test_doubling(void **state)
{
    enum { SHARED = 600 * 1000, LIMIT = 4 * SHARED };
    static const char *const statements[STATEMENTS_MAX] = {
        "set(attributes[\"r\"], resource.attributes[\"r\"])"};
    unsigned refusals = 0;
    (void)state;
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, statements, true, OTTL_IGNORE);
    for (uint64_t limit = SHARED + SHARED / 8; limit < LIMIT; limit += SHARED / 8) {
        struct batch *batch = one_resource(TRACES, SHARED, slice_of_text("\x2a\x01N"), 1);
        struct budget budget;
        budget_init(&budget, limit);
        budget_take(&budget, batch->bytes);
        struct ottl_result result = run_once(plan, batch, &budget);
        refusals += result.verdict == OTTL_NO_MEMORY;
        assert_true(result.verdict == OTTL_PASSED || result.never_fits);
        batch_unref(result.batch);
        budget_return(&budget, batch->bytes);
        batch_unref(batch);
        budget_fini(&budget);
    }
    assert_true(refusals > 1 && refusals < 24);
    ottl_plan_destroy(plan);
}

/* Acknowledged batches are charged, too, with a margin. */
static void test_charge_of_acknowledged(void **state)
{
    enum { SHARED = 4000, SPANS = 400, LIMIT = 2000 * 1000, MARGIN = LIMIT / 16 };
    static const char *const statements[STATEMENTS_MAX] = {
        "set(attributes[\"r\"], resource.attributes[\"r\"])"};
    static const struct {
        size_t spans;
        uint64_t others; /* bytes that other requests hold */
        enum ottl_verdict verdict;
        bool never_fits;
    } rows[] = {
        {SPANS / 8, 0, OTTL_PASSED, false},
        {SPANS / 8, LIMIT - 100, OTTL_NO_MEMORY, false},
        {SPANS / 100, LIMIT - 100, OTTL_PASSED, false},
        {SPANS, 0, OTTL_NO_MEMORY, true},
    };
    (void)state;
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, statements, true, OTTL_IGNORE);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct batch *batch =
            one_resource(TRACES, SHARED, slice_of_text("\x2a\x01N"), rows[i].spans);
        struct budget budget;
        batch->is_acknowledged = true;
        budget_init(&budget, LIMIT);
        budget_take(&budget, rows[i].others);
        struct ottl_result result = run_once(plan, batch, &budget);
        assert_int_equal(result.verdict, rows[i].verdict);
        assert_int_equal(result.never_fits, rows[i].never_fits);
        assert_true(atomic_load(&budget.high_water) <= LIMIT + MARGIN);
        batch_unref(result.batch);
        batch_unref(batch);
        assert_int_equal(budget_used(&budget), rows[i].others);
        budget_return(&budget, rows[i].others);
        budget_fini(&budget);
    }
    ottl_plan_destroy(plan);
}

/* A log record whose body is a map with one text of so many bytes. */
static struct buffer *log_of(uint8_t byte, size_t bytes)
{
    enum { BODY = 5, MAP_VALUE = 6 };
    const size_t value = wire_field_size(1, bytes);
    const size_t entry = wire_field_size(1, 1) + wire_field_size(2, value);
    const size_t list = wire_field_size(1, entry);
    const size_t body = wire_field_size(MAP_VALUE, list);
    const size_t whole = wire_field_size(BODY, body);
    struct buffer *buffer = buffer_create(NULL, whole);
    struct wire_writer writer = wire_writer_of(buffer->data, whole);
    wire_write_header(&writer, BODY, body);
    wire_write_header(&writer, MAP_VALUE, list);
    wire_write_header(&writer, 1, entry);
    wire_write_bytes(&writer, 1, slice_of_text("a"));
    wire_write_header(&writer, 2, value);
    wire_write_header(&writer, 1, bytes);
    memset(writer.at, byte, bytes);
    assert_ptr_equal(writer.at + bytes, writer.end);
    buffer->size = whole;
    return buffer;
}

/* Fields that come again and again, those of the higher number first: their edits stand in no
 * order.
 */
static void test_repeated_fields(void **state)
{
    enum { TIMES = 1000, PAIR = 6 };
    static const char *const statements[STATEMENTS_MAX] = {
        "set(severity_number, SEVERITY_NUMBER_INFO)", "set(severity_text, \"INFO\")"};
    uint8_t record[TIMES * PAIR];
    char text[TEXT_MAX];
    (void)state;
    for (size_t i = 0; i < TIMES; i++) {
        memcpy(record + 2 * i, "\x1a\x00", 2);
        memcpy(record + 2 * TIMES + 4 * i, i % 2 == 0 ? "\x38\x00\x10\x01" : "\x10\x01\x38\x00", 4);
    }
    struct ottl_plan *plan = plan_of(LOGS, OTTL_LOG, statements, true, OTTL_IGNORE);
    struct batch *batch = one_resource(LOGS, 1, slice_of(record, sizeof(record)), 1);
    struct ottl_result result = run_once(plan, batch, NULL);
    assert_int_equal(result.verdict, OTTL_PASSED);
    assert_int_equal(result.batch->bytes, batch->bytes - 4 * TIMES + 2 + 6);
    json_of(result.batch, text);
    assert_non_null(strstr(text, "\"severityNumber\":9,\"severityText\":\"INFO\""));
    batch_unref(result.batch);
    batch_unref(batch);
    ottl_plan_destroy(plan);
}

/* Large records are no failure while the budget has room, nor do they wait for room for ever. */
static void test_large_records(void **state)
{
    enum { MAX = 400 << 20 };
    static const struct {
        const char *statement;
        size_t bytes;
        uint8_t byte;
        bool is_cut;
    } rows[] = {
        {"set(severity_text, \"x\") where IsMatch(body, \"zzz\")", 750 * 1000, 1, false},
        {"set(severity_text, \"x\") where IsMatch(body.string, \"zzz\")", 5 << 20, 'v', false},
        {"set(severity_text, String(body)) where false", 5 << 20, 'v', false},
        {"set(attributes[\"b\"], ToKeyValueString(body)) where false", 5 << 20, 'v', false},
        {"set(body[\"b\"], 1)", 9 << 20, 'v', false},
        {"set(severity_text, \"x\")", 17 << 20, 'v', true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const statements[STATEMENTS_MAX] = {rows[i].statement};
        struct ottl_plan *plan = plan_of(LOGS, OTTL_LOG, statements, true, OTTL_IGNORE);
        struct buffer *log = log_of(rows[i].byte, rows[i].bytes);
        struct batch *batch = one_resource(LOGS, 1, buffer_slice(log), 1);
        buffer_unref(log);
        if (rows[i].is_cut) {
            struct batch *whole = batch;
            batch = two_parts(LOGS, whole->parts[0].bytes, (size_t)whole->bytes / 2);
            batch->items = 1;
            batch_unref(whole);
        }
        /* By halves. */
        bool has_passed = true;
        for (uint64_t limit = MAX; limit > batch->bytes; limit /= 2) {
            struct budget budget;
            budget_init(&budget, limit);
            budget_take(&budget, batch->bytes);
            struct ottl_result result = run_once(plan, batch, &budget);
            has_passed = result.verdict == OTTL_PASSED;
            assert_true(has_passed || (result.verdict == OTTL_NO_MEMORY && result.never_fits));
            assert_true(has_passed || limit < MAX);
            batch_unref(result.batch);
            budget_return(&budget, batch->bytes);
            budget_fini(&budget);
        }
        batch_unref(batch);
        ottl_plan_destroy(plan);
    }
}

/* Each point has a key of its own, though it is hardly there itself. */
static void test_many_points(void **state)
{
    enum { POINTS = 70 * 1000 };
    static const char *const statements[STATEMENTS_MAX] = {
        "aggregate_on_attributes(\"sum\", [\"host\"])"};
    const size_t data = POINTS * 2;
    const size_t whole = wire_field_size(5, data);
    struct buffer *metric = buffer_create(NULL, whole);
    struct wire_writer writer = wire_writer_of(metric->data, whole);
    struct budget budget;
    (void)state;
    wire_write_header(&writer, 5, data);
    for (unsigned i = 0; i < POINTS; i++)
        wire_write_header(&writer, 1, 0);
    metric->size = whole;
    struct ottl_plan *plan = plan_of(METRICS, OTTL_METRIC, statements, true, OTTL_IGNORE);
    struct batch *batch = one_resource(METRICS, 1, buffer_slice(metric), 1);
    batch->items = POINTS;
    budget_init(&budget, 256 << 20);
    struct ottl_result result = run_once(plan, batch, &budget);
    assert_int_equal(result.verdict, OTTL_PASSED);
    assert_int_equal(result.batch->items, 1);
    batch_unref(result.batch);
    budget_fini(&budget);
    batch_unref(batch);
    buffer_unref(metric);
    ottl_plan_destroy(plan);
}

/* A record that grows without end meets its limit: the statements that go beyond it fail. */
static void test_limit(void **state)
{
    (void)state;
    enum { DOUBLINGS = 40 };
    const char *statements[DOUBLINGS];
    struct ottl_plan *plan = ottl_plan_create(TRACES, OTTL_FOR_TRANSFORM);
    for (size_t i = 0; i < DOUBLINGS; i++)
        statements[i] = "set(name, Concat([name, name], \"\"))";
    const struct ottl_group group = {.context = OTTL_SPAN,
                                     .paths = OTTL_PATHS_OF_CONTEXT,
                                     .error_mode = OTTL_IGNORE,
                                     .statements = statements,
                                     .statements_count = DOUBLINGS};
    struct error error;
    struct ottl_runner runner;
    char json[TEXT_MAX];
    assert_true(ottl_plan_add(plan, &group, true, &error));
    ottl_plan_finish(plan);
    snprintf(json, sizeof(json), SPAN, "");
    struct batch *batch = batch_of(TRACES, json, 0);
    ottl_runner_init(&runner, plan, NULL);
    struct failures failures = {.count = 0};
    runner.on_failure = on_failure;
    runner.arg = &failures;
    struct ottl_result result = ottl_runner_run(&runner, batch);
    assert_int_equal(result.verdict, OTTL_PASSED);
    assert_true(result.batch->bytes < OTTL_RECORD_BYTES_MAX);
    assert_true(failures.count > 0);
    assert_string_equal(failures.last, "the record becomes larger than statements may make it");
    batch_unref(result.batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(batch);
}

/* Whatever statements nest, receivers can read it: a data point's attributes lie deepest. */
static void test_nesting(void **state)
{
    enum { ROUNDS = 80 };
    static const struct {
        const char *statements[STATEMENTS_MAX];
        unsigned deepest; /* rounds without a failure */
    } rows[] = {
        {{"set(attributes[\"x\"][\"b\"], attributes[\"a\"])",
          "set(attributes[\"a\"], attributes[\"x\"])"},
         OTTL_VALUE_LEVELS_MAX / OTTL_MAP_LEVELS - 1},
        {{"set(attributes[\"a\"], [attributes[\"a\"]])"},
         (OTTL_VALUE_LEVELS_MAX - OTTL_MAP_LEVELS) / OTTL_LIST_LEVELS},
        {{"set(attributes[\"a\"], {\"b\": {\"c\": attributes[\"a\"]}})"},
         (OTTL_VALUE_LEVELS_MAX / OTTL_MAP_LEVELS - 1) / 2},
        {{"set(attributes[\"x\"][0][\"b\"], attributes[\"a\"])",
          "set(attributes[\"a\"], attributes[\"x\"])"},
         (OTTL_VALUE_LEVELS_MAX - OTTL_MAP_LEVELS) / (OTTL_LIST_LEVELS + OTTL_MAP_LEVELS)},
    };
    static const char json[] =
        "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"gauge\":{\"dataPoints\":[{"
        "\"attributes\":[{\"key\":\"a\",\"value\":{\"kvlistValue\":{\"values\":[{\"key\":\"b\","
        "\"value\":{\"intValue\":\"1\"}}]}}}]}]}}]}]}]}";
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ottl_plan *plan =
            plan_of(METRICS, OTTL_DATA_POINT, rows[i].statements, true, OTTL_IGNORE);
        struct ottl_runner runner;
        struct failures failures = {.count = 0};
        struct batch *batch = batch_of(METRICS, json, 0);
        unsigned deepest = 0;
        ottl_runner_init(&runner, plan, NULL);
        runner.on_failure = on_failure;
        runner.arg = &failures;
        for (unsigned round = 1; round <= ROUNDS; round++) {
            struct otlp_figures figures;
            const char *reason;
            struct batch_part whole;
            struct ottl_result result = ottl_runner_run(&runner, batch);
            batch_unref(batch);
            batch = result.batch;
            assert_true(batch_join(batch, NULL, &whole));
            if (!otlp_check(METRICS, whole.bytes, &figures, &reason))
                fail_msg("%s, round %u: %s", rows[i].statements[0], round, reason);
            buffer_unref(whole.owner);
            if (failures.count == 0)
                deepest = round;
        }
        assert_int_equal(deepest, rows[i].deepest);
        assert_string_equal(failures.last,
                            "the value is nested more than 28 lists or 18 maps deep");
        batch_unref(batch);
        ottl_runner_fini(&runner);
        ottl_plan_destroy(plan);
    }
}

/* A plan and its constants, read by two threads at once: for the thread sanitizer. */
enum { SHARED_RUNS = 200 };

struct shared_run {
    struct ottl_plan *plan;
    struct batch *batch;
    unsigned passed;
};

static void run_shared(void *arg)
{
    struct shared_run *shared = arg;
    struct ottl_runner runner;
    ottl_runner_init(&runner, shared->plan, NULL);
    for (unsigned i = 0; i < SHARED_RUNS; i++) {
        struct ottl_result result = ottl_runner_run(&runner, shared->batch);
        shared->passed += result.verdict == OTTL_PASSED && result.batch != shared->batch;
        batch_unref(result.batch);
    }
    ottl_runner_fini(&runner);
}

static void test_shared_plan(void **state)
{
    enum { KEYS = 40 };
    char statement[4096];
    char json[TEXT_MAX];
    (void)state;
    size_t size = (size_t)snprintf(
        statement, sizeof(statement),
        "set(attributes[\"found\"], String({\"a\": [{\"b\": 1}]})) where attributes[\"b\"] == 2");
    /* Both ways: a constant with an index on either side. */
    for (unsigned side = 0; side < 2; side++) {
        for (unsigned map = 0; map < 2; map++) {
            size += (size_t)snprintf(statement + size, sizeof(statement) - size, "%s{",
                                     map == 0 ? " and " : " != ");
            for (unsigned i = 0; i < KEYS; i++)
                size += (size_t)snprintf(statement + size, sizeof(statement) - size,
                                         "%s\"k%u\": %s", i > 0 ? ", " : "", i,
                                         i + 1 == KEYS && map == side ? "attributes[\"b\"]" : "0");
            size += (size_t)snprintf(statement + size, sizeof(statement) - size, "}");
        }
    }
    const char *const statements[STATEMENTS_MAX] = {statement};
    snprintf(json, sizeof(json), SPAN, B);
    struct shared_run first = {
        .plan = plan_of(TRACES, OTTL_SPAN, statements, true, OTTL_PROPAGATE),
        .batch = batch_of(TRACES, json, 0),
    };
    struct shared_run second = first;
    uv_thread_t thread;
    assert_int_equal(uv_thread_create(&thread, run_shared, &second), 0);
    run_shared(&first);
    assert_int_equal(uv_thread_join(&thread), 0);
    assert_int_equal(first.passed, SHARED_RUNS);
    assert_int_equal(second.passed, SHARED_RUNS);
    batch_unref(first.batch);
    ottl_plan_destroy(first.plan);
}

#define NEST  "{\\\"a\\\":{\\\"a\\\":{\\\"a\\\":{\\\"a\\\":{\\\"a\\\":"
#define CLOSE "}}}}}"

/* Statements put values into each other only as deep as every later stage can read them. */
static void statements_nest_values_in_bounds(void **state)
{
    static const struct {
        const char *statements[STATEMENTS_MAX];
        const char *attribute; /* of the span at first */
    } rows[] = {
        {{"set(attributes[\"m\"][\"m\"], attributes[\"n\"])",
          "set(attributes[\"n\"], attributes[\"m\"])"},
         MAP(B)},
        {{"set(attributes[\"l\"][0], attributes[\"n\"])",
          "set(attributes[\"n\"], attributes[\"l\"])"},
         LIST},
        {{"set(attributes[\"m\"][\"a\"][\"b\"][\"c\"][\"d\"][\"e\"], attributes[\"n\"])",
          "set(attributes[\"n\"], attributes[\"m\"])"},
         MAP(B)},
        {{"set(cache[\"x\"][\"y\"], attributes[\"m\"])", "set(attributes[\"m\"], cache)"}, MAP(B)},
        {{"merge_maps(attributes, ParseJSON(\"" NEST NEST NEST NEST "1" CLOSE CLOSE CLOSE CLOSE
          "\"), \"upsert\")"},
         A},
    };
    enum { RUNS = 70 };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, rows[i].statements, true, OTTL_IGNORE);
        struct failures failures = {.count = 0};
        struct ottl_runner runner;
        char before[TEXT_MAX];
        snprintf(before, sizeof(before), SPAN, rows[i].attribute);
        struct batch *batch = batch_of(TRACES, before, 0);
        ottl_runner_init(&runner, plan, NULL);
        runner.on_failure = on_failure;
        runner.arg = &failures;
        for (unsigned run = 0; run < RUNS; run++) {
            struct ottl_result result = ottl_runner_run(&runner, batch);
            struct otlp_figures figures;
            const char *failure = "";
            struct batch_part whole;
            assert_int_equal(result.verdict, OTTL_PASSED);
            assert_true(batch_join(result.batch, NULL, &whole));
            if (!otlp_check(TRACES, whole.bytes, &figures, &failure))
                fail_msg("row %zu, run %u: %s", i, run, failure);
            struct buffer *json = json_write_batch(result.batch, NULL);
            assert_non_null(json);
            buffer_unref(json);
            buffer_unref(whole.owner);
            batch_unref(batch);
            batch = result.batch;
        }
        if (failures.count == 0)
            fail_msg("row %zu nests without end", i);
        assert_string_equal(failures.last,
                            "the value is nested more than 28 lists or 18 maps deep");
        batch_unref(batch);
        ottl_runner_fini(&runner);
        ottl_plan_destroy(plan);
    }
}

/* What tests span by span need is charged beyond the budget's limit, and freed at rest. */
static void test_charge_of_spans(void **state)
{
    enum { ATTRIBUTES = 2000, ATTRIBUTE_BYTES = 2 + 2 + 5 };
    static const char *const conditions[STATEMENTS_MAX] = {"Len(attributes) == 2000"};
    static uint8_t span[ATTRIBUTES * ATTRIBUTE_BYTES];
    struct wire_writer writer = wire_writer_of(span, sizeof(span));
    struct budget budget;
    struct ottl_runner runner;
    (void)state;
    for (unsigned i = 0; i < ATTRIBUTES; i++) {
        char key[8];
        snprintf(key, sizeof(key), "k%04u", i);
        wire_write_header(&writer, 9, ATTRIBUTE_BYTES - 2);
        wire_write_bytes(&writer, 1, slice_of_text(key));
    }
    struct ottl_plan *plan = plan_of(TRACES, OTTL_SPAN, conditions, false, OTTL_PROPAGATE);
    budget_init(&budget, 1000);
    ottl_runner_init(&runner, plan, &budget);
    assert_true(ottl_runner_enter(&runner, OTTL_RESOURCE, slice_of(NULL, 0)));
    assert_true(ottl_runner_enter(&runner, OTTL_SCOPE, slice_of(NULL, 0)));
    assert_int_equal(ottl_runner_test_span(&runner, wire_written(&writer)), OTTL_TRUE);
    assert_true(budget_used(&budget) > ATTRIBUTES * sizeof(struct ottl_entry));
    assert_true(budget_used(&budget) < OTTL_RECORD_BYTES_MAX);
    ottl_runner_rest(&runner);
    assert_int_equal(budget_used(&budget), 0);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comparisons),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_editors),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_outer_records),
        cmocka_unit_test(test_slots_and_maps),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_logs),
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_inference),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_dropped_items),
        cmocka_unit_test(test_drop_points),
        cmocka_unit_test(test_two_resources),
        cmocka_unit_test(test_many_resources),
        cmocka_unit_test(test_outer_values),
        cmocka_unit_test(test_outer_limit),
        cmocka_unit_test(test_lane_that_is_held_long),
        cmocka_unit_test(test_shared_keys_have_an_end),
        cmocka_unit_test(test_copied_prefixes_have_an_end),
        cmocka_unit_test(test_patterns_of_records_have_an_end),
        cmocka_unit_test(test_plain_texts_of_records_are_searched_once),
        cmocka_unit_test(test_requests_have_their_own_share),
        cmocka_unit_test(test_globs_of_records),
        cmocka_unit_test(test_searches_have_an_end),
        cmocka_unit_test(test_limits_of_patterns_of_records),
        cmocka_unit_test(test_long_records_on_a_lane),
        cmocka_unit_test(test_map_index),
        cmocka_unit_test(test_refused_index),
        cmocka_unit_test(test_removed_duplicates),
        cmocka_unit_test(test_split_resource),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_of_long_values),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_doubling),
        cmocka_unit_test(test_charge_of_acknowledged),
        cmocka_unit_test(test_repeated_fields),
        cmocka_unit_test(test_large_records),
        cmocka_unit_test(test_many_points),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_shared_plan),
        cmocka_unit_test(test_keys_that_load_attributes),
        cmocka_unit_test(test_slots_that_move),
        cmocka_unit_test(test_slots_that_take_a_place),
        cmocka_unit_test(test_keys_of_one_mark),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_trace_state),
        cmocka_unit_test(test_drop_neighbours),
        cmocka_unit_test(test_attributes_of_points),
        cmocka_unit_test(statements_nest_values_in_bounds),
        cmocka_unit_test(test_charge_of_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
