/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, each with values, nil, values of wrong types and other mistakes. Expected is what
 * contrib 0.155 (pkg/ottl/ottlfuncs) gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/core/batch.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/schema.h"
#include "src/ottl/ottl_runner.h"

/* a is "Hello World", i 7, d 2.5, t true, e empty, l ["c","a","b"], n [3,1,2], m
 * {"x":1,"y":{"z":"q"}}, y bytes. */
#define SPAN                                                                                       \
    "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{\"traceId\":"  \
    "\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"0102030405060708\",\"name\":\"N\","         \
    "\"kind\":2,\"startTimeUnixNano\":\"1700000000123456789\",\"attributes\":["                    \
    "{\"key\":\"a\",\"value\":{\"stringValue\":\"Hello World\"}},"                                 \
    "{\"key\":\"i\",\"value\":{\"intValue\":\"7\"}},"                                              \
    "{\"key\":\"d\",\"value\":{\"doubleValue\":2.5}},"                                             \
    "{\"key\":\"t\",\"value\":{\"boolValue\":true}},{\"key\":\"e\",\"value\":{}},"                 \
    "{\"key\":\"l\",\"value\":{\"arrayValue\":{\"values\":[{\"stringValue\":\"c\"},"               \
    "{\"stringValue\":\"a\"},{\"stringValue\":\"b\"}]}}},"                                         \
    "{\"key\":\"n\",\"value\":{\"arrayValue\":{\"values\":[{\"intValue\":\"3\"},"                  \
    "{\"intValue\":\"1\"},{\"intValue\":\"2\"}]}}},"                                               \
    "{\"key\":\"m\",\"value\":{\"kvlistValue\":{\"values\":[{\"key\":\"x\",\"value\":{"            \
    "\"intValue\":\"1\"}},{\"key\":\"y\",\"value\":{\"kvlistValue\":{\"values\":[{\"key\":\"z\","  \
    "\"value\":{\"stringValue\":\"q\"}}]}}}]}}},"                                                  \
    "{\"key\":\"y\",\"value\":{\"bytesValue\":\"AQID\"}},"                                         \
    "{\"key\":\"maps\",\"value\":{\"arrayValue\":{\"values\":[{\"kvlistValue\":{\"values\":["      \
    "{\"key\":\"k\",\"value\":{\"stringValue\":\"one\"}},{\"key\":\"v\",\"value\":{\"intValue\":"  \
    "\"1\"}}]}}]}}}]}]}]}]}"

static struct batch *span(void)
{
    char reason[JSON_REASON_BYTES_MAX];
    struct buffer *encoded;
    struct batch *batch = batch_create(TRACES, 1);
    if (json_read(otlp_request(TRACES), slice_of_text(SPAN), NULL, &encoded, reason) != JSON_READ)
        fail_msg("%s", reason);
    batch_append(batch, encoded, buffer_slice(encoded));
    batch->items = 1;
    buffer_unref(encoded);
    return batch;
}

/* NULL: refused, and the error is set. */
static struct ottl_plan *plan_of(const char *text, bool is_statement, struct error *error)
{
    struct ottl_plan *plan =
        ottl_plan_create(TRACES, is_statement ? OTTL_FOR_TRANSFORM : OTTL_FOR_FILTER);
    struct ottl_group group = {
        .context = OTTL_SPAN, .paths = OTTL_PATHS_OF_CONTEXT, .error_mode = OTTL_PROPAGATE};
    *(is_statement ? &group.statements : &group.conditions) = &text;
    *(is_statement ? &group.statements_count : &group.conditions_count) = 1;
    if (ottl_plan_add(plan, &group, true, error)) {
        ottl_plan_finish(plan);
        return plan;
    }
    ottl_plan_destroy(plan);
    return NULL;
}

/* Runs it on a batch, which it takes. failure: the end of the expected error; NULL: none. */
static struct ottl_result run(const char *text, bool is_statement, struct batch *batch,
                              const char *failure)
{
    struct error error;
    struct ottl_runner runner;
    struct ottl_plan *plan = plan_of(text, is_statement, &error);
    if (plan == NULL)
        fail_msg("%s: %s", text, error.text);
    ottl_runner_init(&runner, plan, NULL);
    runner.prunes = !is_statement;
    struct ottl_result result = ottl_runner_run(&runner, batch);
    if ((result.verdict == OTTL_REFUSED) != (failure != NULL))
        fail_msg("%s: verdict %d, %s", text, result.verdict, runner.run.error);
    if (failure != NULL && strstr(runner.run.error, failure) == NULL)
        fail_msg("%s: found \"%s\", expected \"%s\"", text, runner.run.error, failure);
    batch_unref(batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    return result;
}

static void expect_holds(const char *condition, struct batch *batch, const char *of)
{
    struct ottl_result result = run(condition, false, batch, NULL);
    if (result.verdict != OTTL_EMPTIED)
        fail_msg("%s %s: does not hold", of, condition);
}

/* Behind the statement the condition holds. */
static void expect_edit(const char *statement, const char *condition)
{
    struct ottl_result result = run(statement, true, span(), NULL);
    assert_int_equal(result.verdict, OTTL_PASSED);
    expect_holds(condition, result.batch, statement);
}

static void expect_refused(const char *text, bool is_statement, const char *reason)
{
    struct error error = {.text = ""};
    struct ottl_plan *plan = plan_of(text, is_statement, &error);
    if (plan != NULL || strstr(error.text, reason) == NULL)
        fail_msg("%s: found \"%s\", expected \"%s\"", text, error.text, reason);
}

#define HOLD(...)                                                                                  \
    static const char *const hold[] = {__VA_ARGS__};                                               \
    for (size_t i = 0; i < sizeof(hold) / sizeof(hold[0]); i++)                                    \
    expect_holds(hold[i], span(), "")

struct pair {
    const char *text;
    const char *expected;
};

#define EACH(function, ...)                                                                        \
    do {                                                                                           \
        static const struct pair rows[] = {__VA_ARGS__};                                           \
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)                                \
            function(rows[i].text, rows[i].expected);                                              \
    } while (0)

/* A condition that fails. */
static void expect_failure(const char *condition, const char *failure)
{
    run(condition, false, span(), failure);
}

static void expect_edit_failure(const char *statement, const char *failure)
{
    run(statement, true, span(), failure);
}

static void expect_refused_condition(const char *condition, const char *reason)
{
    expect_refused(condition, false, reason);
}

static void expect_refused_statement(const char *statement, const char *reason)
{
    expect_refused(statement, true, reason);
}

static void test_strings(void **state)
{
    (void)state;
    HOLD("Substring(attributes[\"a\"], 6, 5) == \"World\"",
         "Substring(\"a\xc3\xa9z\", 0, 2, true) == \"a\"",
         "Substring(\"a\xc3\xa9z\", 2, 2, true) == \"z\"",
         "Split(\"a,b,,c\", \",\")[2] == \"\" and Len(Split(\"a,b,,c\", \",\")) == 4",
         "Split(\"a\xc3\xa9\", \"\")[1] == \"\xc3\xa9\"", "Len(Split(\"\", \",\")) == 1",
         "Len(Split(\"\", \"\")) == 0", "ConvertCase(\"Some Name\", \"lower\") == \"some name\"",
         "ConvertCase(\"stra\xc3\x9f"
         "e \xc3\xa9\", \"upper\") == \"STRA\xc3\x9f"
         "E \xc3\x89\"",
         "ConvertCase(\"someHTTPName2x\", \"snake\") == \"some_http_name_2_x\"",
         "ConvertCase(\"some_name-x y.2z\", \"camel\") == \"SomeNameXY2Z\"",
         "ToLowerCase(\"AB\") == \"ab\" and ToUpperCase(\"ab\") == \"AB\"",
         "ToSnakeCase(\" aB \") == \"a_b\" and ToCamelCase(\"HTTP\") == \"Http\"",
         "HasPrefix(attributes[\"a\"], \"Hello\") and not HasPrefix(\"a\", \"ab\")",
         "HasSuffix(attributes[\"a\"], \"World\") and not HasSuffix(\"b\", \"ab\")",
         "TrimPrefix(\"aab\", \"a\") == \"ab\" and TrimSuffix(\"abb\", \"b\") == \"ab\"",
         "TrimPrefix(\"b\", \"a\") == \"b\" and TrimSuffix(\"a\", \"ab\") == \"a\"",
         "Trim(\"  a b \") == \"a b\" and Trim(\"xyaxy\", \"yx\") == \"a\"",
         "Trim(\"\xc3\xa9"
         "a\xc3\xa9\", \"\xc3\xa9\") == \"a\" and Trim(\"aaa\", \"a\") == \"\"");
    EACH(
        expect_failure,
        {"Substring(attributes[\"a\"], 6, 6) == \"\"",
         "cannot be greater than the length of target string(11)"},
        {"Substring(attributes[\"a\"], attributes[\"i\"] - 8, 1) == \"\"", "-1 cannot be negative"},
        {"Substring(\"a\", 0, 0) == \"\"", "0 cannot be negative or zero"},
        {"Substring(attributes[\"e\"], 0, 1) == \"\"", "expected string but got nil"},
        {"Split(attributes[\"i\"], \",\") == \"\"", "expected string but got int64"},
        {"ToLowerCase(attributes[\"e\"]) == \"\"", "expected string but got nil"},
        {"Trim(attributes[\"d\"]) == \"\"", "expected string but got float64"},
        {"HasPrefix(\"a\", attributes[\"t\"])", "expected string but got bool"});
    EACH(expect_refused_condition, {"ConvertCase(\"a\", \"title\") == \"\"", "invalid case: title"},
         {"ToLowerCase(1) == \"\"", "a string"},
         {"Substring(\"a\", 0, 1, 1) == \"\"", "true or false"},
         {"Trim(\"a\", name) == \"\"", "a string literal"},
         {"Split(\"a\") == \"\"", "takes 2 arguments"});
}

static void test_replacements(void **state)
{
    (void)state;
    EACH(expect_edit,
         {"replace_pattern(attributes[\"a\"], \"o\", \"0\")",
          "attributes[\"a\"] == \"Hell0 W0rld\""},
         {"replace_pattern(attributes[\"a\"], \"(?P<x>l+)(o)\", \"${x}-$2$$$3\")",
          "attributes[\"a\"] == \"Hell-o$ World\""},
         {"replace_pattern(attributes[\"a\"], \"^|d*$\", \"_\")",
          "attributes[\"a\"] == \"_Hello Worl_\""},
         {"replace_pattern(attributes[\"a\"], \"x*\", \"-\")",
          "attributes[\"a\"] == \"-H-e-l-l-o- -W-o-r-l-d-\""},
         {"replace_pattern(attributes[\"a\"], \"W(.*)\", \"$1\", ToUpperCase, \"<%s>\")",
          "attributes[\"a\"] == \"Hello <ORLD>\""},
         {"replace_pattern(attributes[\"i\"], \"7\", \"8\")", "attributes[\"i\"] == 7"},
         {"replace_pattern(attributes[\"e\"], \"\", \"8\")", "attributes[\"e\"] == nil"},
         {"replace_pattern(name, attributes[\"l\"][0], \"8\")", "name == \"N\""},
         {"replace_all_patterns(attributes[\"m\"][\"y\"], \"value\", \"q\", \"r$0\")",
          "attributes[\"m\"][\"y\"] == {\"z\": \"rq\"}"},
         {"replace_all_patterns(attributes[\"m\"], \"key\", \"^.$\", \"k\")",
          "attributes[\"m\"] == {\"k\": {\"z\": \"q\"}}"},
         {"replace_all_patterns(attributes, \"key\", \"^a$\", \"b\")",
          "attributes[\"a\"] == nil and attributes[\"b\"] == \"Hello World\""},
         {"replace_all_patterns(attributes, \"key\", \"^a$\", \"b$0\", ToUpperCase)",
          "attributes[\"BA\"] == \"Hello World\""},
         {"replace_match(attributes[\"a\"], \"H?llo*{x,World}\", \"y\")",
          "attributes[\"a\"] == \"y\""},
         {"replace_match(attributes[\"a\"], \"[!H]*\", \"y\")",
          "attributes[\"a\"] == \"Hello World\""},
         {"replace_match(attributes[\"a\"], \"[G-I]*\", \"y\", ToUpperCase)",
          "attributes[\"a\"] == \"Y\""},
         {"replace_all_matches(attributes[\"m\"][\"y\"], \"?\", \"w\")",
          "attributes[\"m\"][\"y\"][\"z\"] == \"w\""});
    EACH(expect_edit_failure,
         {"replace_pattern(name, \"N\", attributes[\"e\"])", "expected string but got nil"},
         {"replace_pattern(name, attributes[\"i\"], \"\")", "expected string but got int64"},
         {"replace_pattern(name, \"N\", \"\", ToUpperCase, \"%d\")",
          "replacementFormat must be format string"},
         {"replace_all_patterns(attributes[\"a\"], \"key\", \"a\", \"b\")",
          "expected pcommon.Map but got string"},
         {"replace_all_matches(attributes[\"e\"], \"a\", \"b\")",
          "expected pcommon.Map but got nil"},
         {"replace_match(name, attributes[\"i\"], \"\")", "expected string but got int64"});
    EACH(expect_refused_statement,
         {"replace_pattern(name, \"(\", \"\")", "the pattern is not valid"},
         {"replace_all_patterns(attributes, \"both\", \"a\", \"b\")",
          "must be either 'key' or 'value'"},
         {"replace_match(name, \"[\", \"b\")", "is not valid"},
         {"replace_match(name, \"[z-a]\", \"b\")", "should be greater than lo"},
         {"replace_pattern(name, \"a\", \"b\", Len)", "one that takes one string"},
         {"replace_pattern(\"x\", \"a\", \"b\")", "a path"});
}

static void test_maps(void **state)
{
    (void)state;
    EACH(
        expect_edit,
        {"limit(attributes, 2, [\"m\"])",
         "attributes == {\"a\": \"Hello World\", \"m\": attributes[\"m\"]}"},
        {"limit(attributes, 100, [])", "Len(attributes) == 10"},
        {"limit(attributes, 0, [])", "Len(attributes) == 0"},
        {"truncate_all(attributes, 4)", "attributes[\"a\"] == \"Hell\" and attributes[\"i\"] == 7"},
        {"truncate_all(attributes, 0)", "attributes[\"a\"] == \"\""},
        {"stringify_all(attributes)", "attributes[\"i\"] == \"7\" and attributes[\"d\"] == \"2.5\" "
                                      "and attributes[\"e\"] == \"\" and "
                                      "attributes[\"y\"] == \"AQID\" and attributes[\"l\"] == "
                                      "\"[\\\"c\\\",\\\"a\\\",\\\"b\\\"]\""},
        {"flatten(attributes[\"m\"])", "attributes[\"m\"] == {\"x\": 1, \"y.z\": \"q\"}"},
        {"flatten(attributes[\"m\"], \"p\", 1)", "attributes[\"m\"][\"p.y.z\"] == \"q\""},
        {"flatten(attributes)",
         "attributes[\"l.0\"] == \"c\" and attributes[\"m.y.z\"] == \"q\" and "
         "attributes[\"maps.0.k\"] == \"one\" and attributes[\"a\"] == \"Hello World\""},
        {"flatten(attributes, resolveConflicts=true)",
         "attributes[\"l\"] == \"c\" and attributes[\"l.0\"] == \"a\" and attributes[\"l.1\"] == "
         "\"b\""},
        {"flatten(attributes, depth=1)", "attributes[\"maps.0\"] == {\"k\": \"one\", \"v\": 1}"});
    struct ottl_result result =
        run("merge_maps(attributes, {\"u\": \"a\xc3\xa9\"}, \"insert\")", true, span(), NULL);
    result = run("truncate_all(attributes, 2)", true, result.batch, NULL);
    expect_holds("attributes[\"u\"] == \"a\"", result.batch, "");
    HOLD("Keys(attributes[\"m\"]) == [\"x\", \"y\"]", "Len(Values(attributes[\"m\"])) == 2",
         "Values(attributes[\"m\"][\"y\"]) == [\"q\"]");
    EACH(expect_edit_failure,
         {"limit(attributes[\"a\"], 2, [])", "expected pcommon.Map but got string"},
         {"truncate_all(attributes[\"e\"], 2)", "expected pcommon.Map but got nil"},
         {"flatten(attributes[\"l\"])", "expected pcommon.Map but got"},
         {"set(attributes[\"o\"], Keys(attributes[\"i\"]))", "expected pcommon.Map but got int64"});
    EACH(expect_refused_statement, {"limit(attributes, -1, [])", "an int literal"},
         {"limit(attributes, 1, [\"a\", \"b\"])",
          "cannot be less than number of priority attributes 2"},
         {"truncate_all(attributes, -1)", "an int literal"},
         {"flatten(attributes, depth=0)", "must be greater than 0"});
}

static void test_lists(void **state)
{
    (void)state;
    EACH(expect_edit,
         {"append(attributes[\"l\"], \"d\")", "attributes[\"l\"] == [\"c\", \"a\", \"b\", \"d\"]"},
         {"append(attributes[\"o\"], values=[1, \"x\"])", "attributes[\"o\"] == [1, \"x\"]"},
         {"append(attributes[\"i\"], 8)", "attributes[\"i\"] == [7, 8]"},
         {"append(attributes[\"n\"], [4])", "Len(attributes[\"n\"]) == 4"},
         {"delete_index(attributes[\"l\"], 1)", "attributes[\"l\"] == [\"c\", \"b\"]"},
         {"delete_index(attributes[\"l\"], 1, 3)", "attributes[\"l\"] == [\"c\"]"},
         {"delete_index(attributes[\"l\"], 0, 3)", "Len(attributes[\"l\"]) == 0"},
         {"delete_index(attributes[\"l\"], 1, 1)", "Len(attributes[\"l\"]) == 3"});
    HOLD("IsList(attributes[\"l\"]) and not IsList(attributes[\"m\"]) and not IsList(nil)",
         "Len(attributes[\"a\"]) == 11 and Len(attributes[\"m\"]) == 2 and Len(attributes[\"y\"]) "
         "== 3",
         "Coalesce([attributes[\"e\"], nil, 0, \"x\"]) == 0 and Coalesce([nil]) == nil",
         "ContainsValue(attributes[\"n\"], 2) and not ContainsValue(attributes[\"n\"], \"2\")",
         "Index(attributes[\"a\"], \"o\") == 4 and Index(\"a\", \"b\") == -1 and Index(\"a\", "
         "\"\") == 0",
         "Index(attributes[\"l\"], \"b\") == 2 and Index(attributes[\"l\"], 1) == -1",
         "Sort(attributes[\"l\"]) == [\"a\", \"b\", \"c\"]",
         "Sort(attributes[\"n\"], \"desc\") == [3, 2, 1]", "Sort([2.5, 1, 2]) == [1, 2, 2.5]",
         "Sort([true, \"a\", 1]) == [1, \"a\", true]",
         "SliceToMap(attributes[\"l\"]) == {\"0\": \"c\", \"1\": \"a\", \"2\": \"b\"}",
         "SliceToMap(attributes[\"maps\"], [\"k\"], [\"v\"]) == {\"one\": 1}");
    EACH(expect_failure, {"Len(attributes[\"i\"]) == 1", "Len: unsupported target type int64"},
         {"Len(nil) == 1", "Len: unsupported target type <nil>"},
         {"ContainsValue(attributes[\"a\"], 1)", "expected pcommon.Slice but got string"},
         {"Index(attributes[\"a\"], 1) == 1", "value must be a string"},
         {"Index(nil, 1) == 1", "expected pcommon.Slice but got nil"},
         {"Sort(attributes[\"m\"]) == 1", "Target is not a list"},
         {"SliceToMap(attributes[\"l\"], [\"k\"]) == 1",
          "could not cast element of type `Str` to a map"},
         {"SliceToMap(attributes[\"maps\"], [\"x\"]) == 1", "does not contain the path"},
         {"SliceToMap(attributes[\"maps\"], [\"v\"]) == 1", "is not of type string, got \"Int\""},
         {"SliceToMap([1, start_time]) == 1", "<Invalid value type time.Time>"},
         {"SliceToMap([trace_id]) == 1", "<Invalid value type pcommon.TraceID>"});
    EACH(expect_edit_failure,
         {"append(attributes[\"l\"], attributes[\"m\"])", "<Invalid value type pcommon.Map>"},
         {"delete_index(attributes[\"l\"], 3)", "startIndex 3 out of bounds for slice of length 3"},
         {"delete_index(attributes[\"l\"], 1, 0)", "endIndex 0 cannot be less than startIndex 1"},
         {"delete_index(attributes[\"l\"], 1, 4)", "deletion range [1:4] out of bounds"});
    EACH(expect_refused_statement, {"append(attributes[\"l\"])", "must be provided"},
         {"set(attributes[\"o\"], Coalesce([]))", "requires at least one argument"},
         {"set(attributes[\"o\"], Sort([], \"up\"))", "Order should be either"});
}

static void test_parsers(void **state)
{
    (void)state;
    HOLD(
        "ParseJSON(\"{\\\"a\\\": [1, true, null, \\\"\\\\u00e9\\\\n\\\"], \\\"a\\\": {}}\") == "
        "{\"a\": {}}",
        "ParseJSON(\"[1.5e1, \\\"x\\\"]\") == [15.0, \"x\"]", "Len(ParseJSON(\" {} \")) == 0",
        "ParseKeyValue(\"k1=v1 k2='v 2' k1=v3\") == {\"k1\": \"v3\", \"k2\": \"v 2\"}",
        "ParseKeyValue(\"a:1,b:2,,\", \":\", \",\") == {\"a\": \"1\", \"b\": \"2\"}",
        "ToKeyValueString({\"b\": 1, \"a\": \"x y\"}, sort_output=true) == \"a=\\\"x y\\\" b=1\"",
        "ToKeyValueString(attributes[\"m\"][\"y\"], \":\", \",\") == \"z:q\"",
        "ParseCSV(\"1,\\\"x,\\\"\\\"y\\\",\", \"a,b,c\") == {\"a\": \"1\", \"b\": \"x,\\\"y\", "
        "\"c\": \"\"}",
        "ParseCSV(\"1;2\\n3;4\", \"a,b,c\", \";\", \",\") == {\"a\": \"1\", \"b\": \"2\\n3\", "
        "\"c\": \"4\"}",
        "ParseCSV(\"a\\\"b,\\\"c\\\" d\", \"x,y\", mode=\"lazyQuotes\") == {\"x\": \"a\\\"b\", "
        "\"y\": \"c\\\" d\"}",
        "ParseCSV(\"\\\"a,b\\\"\", \"x,y\", mode=\"ignoreQuotes\") == {\"x\": \"\\\"a\", \"y\": "
        "\"b\\\"\"}",
        "ParseInt(\"-7f\", 16) == -127 and ParseInt(\"0x1_0\", 0) == 16 and ParseInt(\"017\", 0) "
        "== 15",
        "ExtractPatterns(attributes[\"a\"], \"(?P<first>\\\\w+) (?P<rest>.*)\") == {\"first\": "
        "\"Hello\", \"rest\": \"World\"}",
        "Len(ExtractPatterns(\"x\", \"(?P<a>y)\")) == 0",
        "ParseSeverity(404, {\"warn\": [{\"range\": \"4xx\"}, {\"equals\": [\"w\"]}]}) == \"warn\"",
        "ParseSeverity(attributes[\"i\"], {\"info\": [{\"range\": {\"min\": 1, \"max\": 7}}]}) == "
        "\"info\"");
    EACH(expect_failure,
         {"ParseJSON(\"1\") == 1", "could not convert parsed value of type float64"},
         {"ParseJSON(\"{\\\"a\\\":1}x\") == 1", "expected the end"},
         {"ParseJSON(\"{\\\"a\\\" 1}\") == 1", "expected ':'"},
         {"ParseJSON(\"[1,]\") == 1", "expected a value"},
         {"ParseJSON(\"\") == 1", "expected a value"},
         {"ParseJSON(\"[\\\"\\\\x\\\"]\") == 1", "the rest of a string"},
         {"ParseJSON(\"[1e999]\") == 1", "range of doubles"},
         {"ParseJSON(\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\") == 1", "nested more than 28 deep"},
         {"ParseJSON(attributes[\"e\"]) == 1", "expected string but got nil"},
         {"ParseKeyValue(\"a\") == 1", "cannot split \"a\" into 2 items"},
         {"ParseKeyValue(\"a='b\") == 1", "never reached the end of a quoted value"},
         {"ParseKeyValue(\"\") == 1", "cannot parse from empty target"},
         {"ParseCSV(\"a\", \"\") == 1", "headers must not be an empty string"},
         {"ParseCSV(\"a\", \"x,y\") == 1", "wrong number of fields: expected 2, found 1"},
         {"ParseCSV(\"\", \"x\") == 1", "no csv lines found"},
         {"ParseCSV(\"a\\\"\", \"x\") == 1", "quotation mark"},
         {"ParseInt(\"8\", 8) == 1", "invalid syntax"},
         {"ParseInt(\"9223372036854775808\", 10) == 1", "value out of range"},
         {"ParseInt(\"1\", 37) == 1", "invalid base 37"},
         {"ParseInt(\"\", 10) == 1", "target cannot be empty"},
         {"ExtractPatterns(\"a\", \"(a)\") == 1", "at least 1 named capture group"},
         {"ParseSeverity(nil, {\"a\": [{\"equals\": [\"x\"]}]}) == 1",
          "unsupported value type: <nil>"},
         {"ParseSeverity(1, {\"a\": [{\"range\": \"9xx\"}]}) == 1",
          "unknown range placeholder: 9xx"},
         {"ParseSeverity(1, attributes[\"m\"]) == 1", "severity mapping must be a literal PMap"});
    EACH(expect_refused_condition,
         {"ParseKeyValue(\"a\", \"\") == 1", "delimiter cannot be set to an empty string"},
         {"ParseKeyValue(\"a\", \" \") == 1", "cannot be equal to delimiter"},
         {"ParseCSV(\"a\", \"b\", \"xy\") == 1", "delimiter must be a single character"},
         {"ParseCSV(\"a\", \"b\", mode=\"x\") == 1", "unknown mode: x"},
         {"ExtractPatterns(\"a\", \"(\") == 1", "the pattern is not valid"});
}

static void test_hashes(void **state)
{
    (void)state;
    HOLD("MD5(\"hello world\") == \"5eb63bbbe01eeed093cb22bb8f5acdc3\"",
         "SHA1(\"hello world\") == \"2aae6c35c94fcfb415dbe95f408b9ce91ee846ed\"",
         "SHA256(\"\") == \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"",
         "HasPrefix(SHA512(\"\"), \"cf83e1357eefb8bdf1542850d66d8007\") and Len(SHA512(\"\")) == "
         "128",
         "FNV(\"hello world\") == 8618312879776256743",
         "XXH3(\"hello world\") == \"d447b1ea40e6988b\"",
         "XXH128(\"hello world\") == \"df8d09e93f874900a99b8775cc15b6c7\"",
         "Murmur3Hash(\"Hello World\") == \"ce837619\"",
         "Murmur3Hash128(\"Hello World\") == \"dbc2a0c1ab26631a27b4c09fcf1fe683\"");
    EACH(expect_failure, {"MD5(attributes[\"i\"]) == \"\"", "expected string but got int64"},
         {"FNV(attributes[\"e\"]) == 1", "expected string but got nil"});
}

static void test_ids_and_encodings(void **state)
{
    (void)state;
    HOLD("TraceID(0x0102030405060708090a0b0c0d0e0f10) == trace_id",
         "SpanID(\"0102030405060708\") == span_id and SpanID(\"abcdefgh\") != span_id",
         "Hex(attributes[\"y\"]) == \"010203\" and Hex(1) == \"0000000000000001\" and Hex(nil) == "
         "\"\"",
         "IsMatch(UUID(), "
         "\"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$\")",
         "IsMatch(UUIDv7(), \"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]\") and UUIDv7() < "
         "UUIDv7()",
         "UUID() != UUID()",
         "Base64Encode(\"a?>\") == \"YT8+\" and Base64Encode(\"a\") == \"YQ==\"",
         "Base64Encode(\"a?>\", \"base64-url\") == \"YT8-\" and Base64Encode(\"a\", "
         "\"base64-raw\") == \"YQ\"",
         "Base64Decode(\"YT\\n8+\") == \"a?>\" and Base64Decode(\"\") == \"\"",
         "Decode(\"YT8-\", \"base64-url\") == \"a?>\" and Decode(\"YQ\", \"base64-raw-url\") == "
         "\"a\"",
         "Decode(0x41003dd800de, \"utf-16\") == \"A\xf0\x9f\x98\x80\"",
         "Decode(0xe980, \"windows-1252\") == \"\xc3\xa9\xe2\x82\xac\"",
         "Decode(0x41ff, \"utf-8\") == \"A\xef\xbf\xbd\"",
         "Decode(name, trace_state) == \"N\"", /* of an empty name */
         "Log(1) == 0.0 and Log(\"2.718281828459045\") == 1.0",
         "IsValidLuhn(\"7992 7398 713\") and not IsValidLuhn(79927398714) and not "
         "IsValidLuhn(\"\")");
    EACH(expect_failure, {"SpanID(attributes[\"a\"]) == nil", "expected 8 or 16 bytes, got 11"},
         {"TraceID(attributes[\"m\"]) == nil", "unsupported"},
         {"Base64Decode(\"YQ\") == \"\"", "illegal base64 data"},
         {"Base64Encode(\"a\", \"x\") == \"\"", "unsupported base64 variant: x"},
         {"Decode(attributes[\"i\"], \"utf-8\") == \"\"",
          "unsupported type provided to Decode function: int64"},
         {"Log(attributes[\"e\"]) == 1.0", "invalid input: <nil>"},
         {"Log(0) == 1.0", "greater than zero but got 0"},
         {"IsValidLuhn(\"1x\")", "invalid syntax"}, {"IsValidLuhn(nil)", "invalid input: <nil>"});
    EACH(expect_refused_condition, {"SpanID(\"abc\") == nil", "expected 8 or 16 bytes, got 3"},
         {"SpanID(\"0102030405060g08\") == nil", "invalid byte: 0x67"},
         {"Decode(\"a\", \"ebcdic\") == nil", "unsupported encoding 'ebcdic'"});
}

static void test_times(void **state)
{
    (void)state;
    const uint64_t wall_ns = (uint64_t)1767225600 * NS_PER_S; /* 2026-01-01 */
    clock_fake_start(1, wall_ns);
    setenv("TZ", "UTC", 1);
    HOLD(
        "UnixSeconds(Now()) == 1767225600",
        "Time(\"2023-11-14T22:13:20.123456789Z\", \"%Y-%m-%dT%H:%M:%S.%s%z\") == start_time",
        "UnixSeconds(Time(\"14/Nov/2023:23:13:20 +0100\", \"%d/%b/%Y:%H:%M:%S %z\")) == 1700000000",
        "UnixSeconds(Time(\"2023-07-01 12:00\", \"%F %R\", \"Europe/Berlin\")) == 1688205600",
        "UnixSeconds(Time(\"2060-07-01 12:00\", \"%F %R\", \"America/New_York\")) == 2855923200",
        "Hour(Time(\"2023-07-01 12:00 EST\", \"%F %R %Z\", \"America/New_York\")) == 13",
        "UnixSeconds(Time(\"Dec 31 23:59:59\", \"%b %d %H:%M:%S\")) == 1767225599",
        "UnixSeconds(Time(\"Jan 5 00:00:00\", \"%b %e %H:%M:%S\")) == 1767571200",
        "UnixSeconds(Time(\"2/29/24 3:04:05 PM\", \"%x %I:%M:%S %p\")) == 1709219045",
        "FormatTime(start_time, \"%Y-%m-%dT%H:%M:%S.%LZ %a %j\") == \"2023-11-14T22:13:20.123Z Tue "
        "+00:00\"",
        "FormatTime(Unix(0), \"%B %e, %l %P%z.%f\") == \"January  1, 12 amZ\"",
        "Year(start_time) == 2023 and Month(start_time) == 11 and Day(start_time) == 14",
        "Hour(start_time) == 22 and Minute(start_time) == 13 and Second(start_time) == 20",
        "Nanosecond(start_time) == 123456789 and Weekday(start_time) == 2",
        "UnixMilli(start_time) == 1700000000123 and UnixMicro(start_time) == 1700000000123456",
        "UnixNano(start_time) == 1700000000123456789 and UnixNano(Unix(1, -1)) == 999999999",
        "TruncateTime(start_time, Duration(\"1h\")) == Unix(1699999200)",
        "TruncateTime(start_time, Duration(\"0\")) == start_time",
        "Hours(Duration(\"90m\")) == 1.5 and Minutes(Duration(\"90s\")) == 1.5",
        "Seconds(Duration(\"1.5s\")) == 1.5 and Milliseconds(Duration(\"1.5s\")) == 1500",
        "Microseconds(Duration(\"-1ms\")) == -1000 and Nanoseconds(Duration(\"1us\")) == 1000");
    EACH(expect_failure, {"Time(\"x\", \"%Y\") == nil", "text that is not as the format"},
         {"Time(\"2023x\", \"%Y\") == nil", "extra text behind the time"},
         {"Time(\"2023-02-30\", \"%F\") == nil", "a day that the month does not have"},
         {"Time(\"1 XYZ\", \"%d %Z\") == nil", "time zone that is not known"},
         {"Time(\"\", \"%Y\") == nil", "time cannot be nil"},
         {"Time(attributes[\"i\"], \"%Y\") == nil", "expected string but got int64"},
         {"Year(attributes[\"i\"]) == 1", "expected time but got int64"},
         {"Hours(attributes[\"e\"]) == 1", "expected duration but got nil"},
         {"Duration(\"1d\") == nil", "unknown unit"},
         {"Unix(attributes[\"d\"]) == nil", "expected int64 but got float64"});
    EACH(expect_refused_condition, {"Time(\"a\", \"\") == nil", "format cannot be nil"},
         {"Time(\"a\", \"%Y 1\") == nil", "should not contain decimals"},
         {"Time(\"a\", \"%Q\") == nil", "%Q"},
         {"Time(\"a\", \"%S%L\") == nil", "must be preceded with"},
         {"Time(\"a\", \"%Y\", \"Nowhere/Else\") == nil", "failed to load location Nowhere/Else"},
         {"Time(\"a\", \"%Y\", locale=\"fr\") == nil", "locale"},
         {"FormatTime(start_time, \"%1\") == nil", "decimals"});
    clock_fake_stop();
}

/* Summer time is by the year of 400 that the time would be in. */
static void test_far_times(void **state)
{
    (void)state;
    setenv("TZ", "Europe/Berlin", 1);
    HOLD("FormatTime(Unix(1688205600), \"%z\") == \"+0200\"",
         "FormatTime(Unix(1688205600 + 12622780800 * 1000), \"%z\") == \"+0200\"",
         "FormatTime(Unix(1700000000 + 12622780800 * 1000), \"%z\") == \"+0100\"",
         "FormatTime(Unix(9223372036854775807), \"%z\") != \"\"",
         "FormatTime(Unix(-9223372036854775807), \"%z\") != \"\"");
    setenv("TZ", "UTC", 1);
}

static void test_semconv_span_name(void **state)
{
    (void)state;
    EACH(expect_edit, {"set_semconv_span_name(\"1.37.0\")", "name == \"N\""},
         {"set_semconv_span_name(\"1.43.0\", \"old\")",
          "name == \"N\" and attributes[\"old\"] == nil"});
    struct ottl_result result = run("merge_maps(attributes, {\"http.request.method\": \"GET\", "
                                    "\"http.route\": \"/x\"}, \"insert\")",
                                    true, span(), NULL);
    result = run("set_semconv_span_name(\"1.37.0\", \"old\")", true, result.batch, NULL);
    expect_holds("name == \"GET /x\" and attributes[\"old\"] == \"N\"", result.batch, "");
    EACH(expect_refused_statement,
         {"set_semconv_span_name(\"1.36.0\")", "must be between 1.37.0 and 1.43.0"},
         {"set_semconv_span_name(\"1.43.1\")", "must be between 1.37.0 and 1.43.0"},
         {"set_semconv_span_name(\"x\")", "failed to parse semconv version"},
         {"set_semconv_span_name(\"1.37.0\", \"\")", "cannot be an empty string"});
}

static void test_network(void **state)
{
    (void)state;
    HOLD(
        "IsInCIDR(\"10.1.2.3\", [\"192.168.0.0/16\", \"10.0.0.0/8\"])",
        "not IsInCIDR(\"11.1.2.3\", [\"10.0.0.0/8\"]) and not IsInCIDR(\"x\", [\"10.0.0.0/8\"])",
        "IsInCIDR(\"2001:db8::5\", [\"2001:db8::/32\"]) and not IsInCIDR(\"10.1.1.1\", [\"::/0\"])",
        "CommunityID(\"128.232.110.120\", 34855, \"66.35.250.204\", 80) == "
        "\"1:LQU9qZlK+B5F3KDmev6m5PMibrg=\"",
        "CommunityID(\"66.35.250.204\", 80, \"128.232.110.120\", 34855, \"TCP\", 0) == "
        "\"1:LQU9qZlK+B5F3KDmev6m5PMibrg=\"",
        "URL(\"https://u:p%40w@example.com:8443/a/b.html?x=1#top\") == {\"url.original\": "
        "\"https://u:p%40w@example.com:8443/a/b.html?x=1#top\", \"url.domain\": \"example.com\", "
        "\"url.port\": 8443, \"url.scheme\": \"https\", \"url.path\": \"/a/b.html\", "
        "\"url.extension\": \"html\", \"url.query\": \"x=1\", \"url.fragment\": \"top\", "
        "\"url.user_info\": \"u:p%40w\", \"url.username\": \"u\", \"url.password\": \"p@w\"}",
        "URL(\"?a=1&a=%32&b\") == {\"query\": {\"a\": [\"1\", \"2\"], \"b\": [\"\"]}}");
    EACH(expect_failure, {"URL(\"\") == 1", "url cannot be empty"},
         {"URL(\"http://a:b\") == 1", "invalid port \":b\" after host"},
         {"URL(\"/%zz\") == 1", "invalid URL escape \"%zz\""},
         {"URL(\"a:b:/c\") == nil or URL(\":\") == 1", "missing protocol scheme"},
         {"URL(attributes[\"i\"]) == 1", "expected string but got int64"},
         {"CommunityID(\"x\", 1, \"1.1.1.1\", 1) == 1", "invalid source IP: x"},
         {"CommunityID(\"1.1.1.1\", 65536, \"1.1.1.1\", 1) == 1",
          "source port must be between 0 and 65535, got 65536"},
         {"CommunityID(\"1.1.1.1\", 1, \"1.1.1.1\", 1, \"x\") == 1", "unsupported protocol: x"},
         {"IsInCIDR(\"1.1.1.1\", [name])", "invalid CIDR address: N"});
    EACH(expect_refused_condition,
         {"IsInCIDR(\"1.1.1.1\", [\"10.0.0.0/33\"])", "invalid CIDR address: 10.0.0.0/33"});
}

static void test_format(void **state)
{
    (void)state;
    HOLD("Format(\"%s-%03d|%5.2f|%-4v|%t %%\", [\"a\", 7, 2.5, true, false]) == \"a-007| "
         "2.50|true|false %\"",
         "Format(\"%x %X %q %v\", [255, \"hi\", \"a\\\"b\", nil]) == \"ff 6869 \\\"a\\\\\\\"b\\\" "
         "<nil>\"",
         "Format(\"%d\", [\"x\"]) == \"%!d(string=x)\" and Format(\"%d\", []) == \"%!d(MISSING)\"",
         "Format(\"a\", [1]) == \"a%!(EXTRA int64=1)\" and Format(\"%\", []) == \"%!(NOVERB)\"",
         "Format(\"%v %v\", [1000000.0, 0.5]) == \"1e+06 0.5\"");
    EACH(expect_refused_condition, {"Format(\"%*d\", [1, 2]) == nil", "are not supported"},
         {"Format(name, []) == nil", "a string literal"});
}

static void test_unsupported(void **state)
{
    (void)state;
    EACH(expect_refused_condition, {"ParseXML(name) == nil", "this function is not supported"},
         {"ExtractGrokPatterns(name, \"%{IP:ip}\") == nil", "ExtractPatterns"},
         {"UserAgent(name) == nil", "this function is not supported"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_replacements),
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_parsers),
        cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_ids_and_encodings),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_far_times),
        cmocka_unit_test(test_semconv_span_name),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_unsupported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
