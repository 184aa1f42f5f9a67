/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of whole messages, and the contexts exemplar, otelcol, profile and profilesample. Expected
 * is what contrib 0.155 (pkg/ottl/contexts) makes of them. */
#include "src/ottl/ottl_runner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"
#include "tests/support/random_otlp.h"

enum { TEXT_MAX = 4096, CUT_PLACES = 3 };

static char last_error[OTTL_ERROR_BYTES_MAX];

static void on_failure(void *arg, const char *text, const char *error)
{
    (void)arg;
    (void)text;
    snprintf(last_error, sizeof(last_error), "%s", error);
}

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

/* What a statement, or a condition that drops, makes of a request, whole and cut. after NULL:
 * nothing is left. error: what fails, NULL: nothing. */
static void expect(enum signal_kind signal, bool is_condition, const char *text, const char *before,
                   const char *after, const char *error)
{
    for (size_t cut = 0; cut <= CUT_PLACES; cut++) {
        struct ottl_plan *plan =
            ottl_plan_create(signal, is_condition ? OTTL_FOR_FILTER : OTTL_FOR_TRANSFORM);
        struct ottl_group group = {
            .context = OTTL_CONTEXTS, .paths = OTTL_PATHS_FULL, .error_mode = OTTL_IGNORE};
        struct error mistake;
        struct ottl_runner runner;
        char found[TEXT_MAX], wanted[TEXT_MAX];
        *(is_condition ? &group.conditions : &group.statements) = &text;
        *(is_condition ? &group.conditions_count : &group.statements_count) = 1;
        if (!ottl_plan_add(plan, &group, true, &mistake))
            fail_msg("%s: %s", text, mistake.text);
        ottl_plan_finish(plan);
        ottl_runner_init(&runner, plan, NULL);
        runner.prunes = is_condition;
        runner.on_failure = on_failure;
        struct batch *batch = batch_of(signal, before, cut);
        last_error[0] = '\0';
        struct ottl_result result = ottl_runner_run(&runner, batch);
        assert_string_equal(last_error, error != NULL ? error : "");
        assert_int_equal(result.verdict, after != NULL ? OTTL_PASSED : OTTL_EMPTIED);
        if (after != NULL) {
            struct batch *expected = batch_of(signal, after, 0);
            json_of(result.batch, found);
            json_of(expected, wanted);
            assert_string_equal(found, wanted);
            assert_int_equal(result.batch->items, expected->items);
            batch_unref(expected);
        } else {
            assert_int_equal(result.dropped, batch->items);
        }
        batch_unref(result.batch);
        batch_unref(batch);
        ottl_runner_fini(&runner);
        ottl_plan_destroy(plan);
    }
}

#define SPAN(fields)                                                                               \
    "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{" fields       \
    "\"events\":[{\"name\":\"E\"},{\"name\":\"F\"}]}]}]}]}"

static void test_span_messages(void **state)
{
    static const struct {
        const char *statement;
        const char *after; /* NULL: as before */
        const char *error;
    } rows[] = {
        {"set(span.name, \"two\") where Len(span.events) == 2", SPAN("\"name\":\"two\","), NULL},
        {"set(span.name, \"none\") where Len(span.links) == 0", SPAN("\"name\":\"none\","), NULL},
        {"set(span.name, \"same\") where span.events == span.events", SPAN("\"name\":\"same\","),
         NULL},
        {"set(span.name, \"x\") where span.events == span.links or span.events == nil", NULL, NULL},
        {"set(span.links, span.events)", NULL,
         "expects ptrace.SpanLinkSlice but got ptrace.SpanEventSlice"},
        {"set(span.attributes[\"a\"], span.events)",
         SPAN("\"attributes\":[{\"key\":\"a\",\"value\":{}}],"),
         "unsupported type ptrace.SpanEventSlice for set operation; current value type is Empty"},
        {"set(span.events, span.events)", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect(TRACES, false, rows[i].statement, SPAN(""),
               rows[i].after != NULL ? rows[i].after : SPAN(""), rows[i].error);
}

#define POINT(data, fields)                                                                        \
    "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[{"        \
    "\"name\":\"m\",\"" data "\":{\"dataPoints\":[{" fields "}]}}]}]}]}"
#define POSITIVE "\"positive\":{\"offset\":-1,\"bucketCounts\":[\"1\",\"300\"]}"
#define EXEMPLARS(fields)                                                                          \
    POINT("gauge", "\"timeUnixNano\":\"1\",\"exemplars\":[{\"asInt\":\"1\"},{\"asInt\":"           \
                   "\"2\"" fields "}]")

static void test_metric_messages(void **state)
{
    static const struct {
        const char *statement;
        const char *before;
        const char *after;
        const char *error;
    } rows[] = {
        {"set(datapoint.positive.bucket_counts, [2, 128])", POINT("exponentialHistogram", POSITIVE),
         POINT("exponentialHistogram",
               "\"positive\":{\"offset\":-1,\"bucketCounts\":[\"2\",\"128\"]}"),
         NULL},
        {"set(datapoint.positive.bucket_counts, [])", POINT("exponentialHistogram", POSITIVE),
         POINT("exponentialHistogram", "\"positive\":{\"offset\":-1}"), NULL},
        {"set(datapoint.negative, datapoint.positive)", POINT("exponentialHistogram", POSITIVE),
         POINT("exponentialHistogram",
               POSITIVE ",\"negative\":{\"offset\":-1,\"bucketCounts\":[\"1\",\"300\"]}"),
         NULL},
        {"set(datapoint.scale, Len(datapoint.positive.bucket_counts))",
         POINT("exponentialHistogram", POSITIVE),
         POINT("exponentialHistogram", "\"scale\":2," POSITIVE), NULL},
        {"delete_index(datapoint.positive.bucket_counts, 0)",
         POINT("exponentialHistogram", POSITIVE),
         POINT("exponentialHistogram", "\"positive\":{\"offset\":-1,\"bucketCounts\":[\"300\"]}"),
         NULL},
        {"set(datapoint.positive.bucket_counts, [\"x\"])", POINT("exponentialHistogram", POSITIVE),
         POINT("exponentialHistogram", POSITIVE),
         "invalid value type provided for a slice of uint64: string, expected int64"},
        {"append(datapoint.positive.bucket_counts, 1)", POINT("exponentialHistogram", POSITIVE),
         POINT("exponentialHistogram", POSITIVE), "<Invalid value type []uint64>"},
        {"set(datapoint.negative, 1)", POINT("exponentialHistogram", POSITIVE),
         POINT("exponentialHistogram", POSITIVE),
         "expects pmetric.ExponentialHistogramDataPointBuckets but got int64"},
        {"set(datapoint.count, Len(datapoint.quantile_values))",
         POINT("summary", "\"quantileValues\":[{\"quantile\":0.5,\"value\":1},{\"value\":2}]"),
         POINT("summary",
               "\"count\":\"2\",\"quantileValues\":[{\"quantile\":0.5,\"value\":1},{\"value\":2}]"),
         NULL},
        {"set(datapoint.value_int, Len(datapoint.exemplars))", EXEMPLARS(""),
         POINT("gauge", "\"asInt\":\"2\",\"timeUnixNano\":\"1\",\"exemplars\":[{\"asInt\":\"1\"},{"
                        "\"asInt\":\"2\"}]"),
         NULL},
        {"set(metric.name, \"one\") where Len(metric.data_points) == 2", EXEMPLARS(""),
         EXEMPLARS(""), NULL},
        {"set(metric.data_points, 1)", EXEMPLARS(""), EXEMPLARS(""),
         "expects pmetric.NumberDataPointSlice but got int64"},
        {"set(exemplar.filtered_attributes[\"m\"], metric.name) where exemplar.int_value == 2",
         EXEMPLARS(""),
         EXEMPLARS(",\"filteredAttributes\":[{\"key\":\"m\",\"value\":{\"stringValue\":\"m\"}}]"),
         NULL},
        {"set(exemplar.trace_id.string, \"0102030405060708090a0b0c0d0e0f10\") where "
         "exemplar.int_value > 1",
         EXEMPLARS(""), EXEMPLARS(",\"traceId\":\"0102030405060708090a0b0c0d0e0f10\""), NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect(METRICS, false, rows[i].statement, rows[i].before, rows[i].after, rows[i].error);
    expect(METRICS, true, "exemplar.int_value == 2", EXEMPLARS(""),
           POINT("gauge", "\"timeUnixNano\":\"1\",\"exemplars\":[{\"asInt\":\"1\"}]"), NULL);
}

/* Strings: 1 cpu, 2 ns, 3 a, 4 x. Attributes: 1 a="x" with a unit, 2 a="y". */
#define PROFILE(fields, indices, strings, attributes)                                              \
    "{\"resourceProfiles\":[{\"resource\":{},\"scopeProfiles\":[{\"scope\":{},\"profiles\":[{"     \
    "\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2},\"samples\":[{\"values\":[\"5\"],"     \
    "\"attributeIndices\":[1]}]" fields ",\"attributeIndices\":" indices "}]}]}],\"dictionary\":{" \
    "\"linkTable\":[{}],\"stringTable\":[\"\",\"cpu\",\"ns\",\"a\",\"x\"" strings                  \
    "],\"attributeTable\":[{},{\"keyStrindex\":3,\"value\":{\"stringValue\":\"x\"},"               \
    "\"unitStrindex\":2},{\"keyStrindex\":3,\"value\":{\"stringValue\":\"y\"}}" attributes "]}}"
#define BEFORE PROFILE("", "[1]", "", "")

static void test_profiles(void **state)
{
    static const struct {
        const char *statement;
        const char *after;
        const char *error;
    } rows[] = {
        /* An entry that is there is used; one with a unit is another. */
        {"set(profile.attributes[\"a\"], \"y\")", PROFILE("", "[2]", "", ""), NULL},
        {"set(profile.attributes[\"a\"], \"x\")",
         PROFILE("", "[3]", "", ",{\"keyStrindex\":3,\"value\":{\"stringValue\":\"x\"}}"), NULL},
        {"set(profile.attributes[\"b\"], 1)",
         PROFILE("", "[1,3]", ",\"b\"", ",{\"keyStrindex\":5,\"value\":{\"intValue\":\"1\"}}"),
         NULL},
        {"set(profile.attributes[\"cpu\"], profile.sample_type.unit)",
         PROFILE("", "[1,3]", "", ",{\"keyStrindex\":1,\"value\":{\"stringValue\":\"ns\"}}"), NULL},
        {"delete_key(profile.attributes, \"a\")", PROFILE("", "[]", "", ""), NULL},
        {"set(profile.attributes, {\"a\": \"y\"})", PROFILE("", "[2]", "", ""), NULL},
        {"set(profile.attributes, 1)", BEFORE, "failed to convert type int64 into pcommon.Map"},
        {"limit(profile.attributes, 1, [])", BEFORE, NULL},
        {"set(profile.period_type, profile.sample_type)",
         PROFILE(",\"periodType\":{\"typeStrindex\":1,\"unitStrindex\":2}", "[1]", "", ""), NULL},
        {"set(profile.period_type.type, \"wall\")",
         PROFILE(",\"periodType\":{\"typeStrindex\":5}", "[1]", ",\"wall\"", ""), NULL},
        {"set(profile.duration, 7) where profile.attributes[\"a\"] == \"x\"",
         PROFILE(",\"durationNano\":\"7\"", "[1]", "", ""), NULL},
        {"set(profile.duration_unix_nano, -1)", BEFORE, "duration_unix_nano must be non-negative"},
        {"set(profile.profile_id, ProfileID(0x00000000000000000000000000000000))", BEFORE,
         "profile ids must not be empty"},
        {"set(profile.profile_id.string, \"0102030405060708090a0b0c0d0e0f10\")",
         PROFILE(",\"profileId\":\"0102030405060708090a0b0c0d0e0f10\"", "[1]", "", ""), NULL},
        {"set(profile.attribute_indices, [2, 1])", PROFILE("", "[2,1]", "", ""), NULL},
        {"set(profile.attribute_indices, [9])", BEFORE,
         "the index 9 is outside of the request's dictionary"},
        {"set(profilesample.link_index, 1)", BEFORE,
         "the index 1 is outside of the request's dictionary"},
        {"set(profile.sample, 1)", BEFORE, "expects pprofile.SampleSlice but got int64"},
        {"set(resource.schema_url, otelcol.client.addr) where profile.period > 1", BEFORE, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect(PROFILES, false, rows[i].statement, BEFORE, rows[i].after, rows[i].error);
    expect(PROFILES, true, "profile.sample_type.type == \"cpu\"", BEFORE, NULL, NULL);
    expect(PROFILES, true, "profilesample.attributes[\"a\"] == \"x\"", BEFORE, NULL, NULL);
    expect(PROFILES, true, "profilesample.attributes[\"a\"] == \"y\"", BEFORE, BEFORE, NULL);
    expect(PROFILES, true, "resource.attributes[\"a\"] == nil", BEFORE, NULL, NULL);
}

/* A dictionary is made where there is none. */
static void test_missing_dictionary(void **state)
{
    (void)state;
    expect(PROFILES, false, "set(profile.attributes[\"\"], 1)",
           "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{}]}]}]}",
           "{\"dictionary\":{\"stringTable\":[\"\"],\"attributeTable\":[{\"value\":{\"intValue\":"
           "\"1\"}}]},\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{"
           "\"attributeIndices\":[0]}]}]}]}",
           NULL);
}

/* Whether a condition holds for a request of that client. */
static bool holds(const char *condition, struct client_info *client, const char *error)
{
    struct ottl_plan *plan = ottl_plan_create(TRACES, OTTL_FOR_FILTER);
    struct ottl_group group = {.context = OTTL_SPAN,
                               .paths = OTTL_PATHS_OF_CONTEXT,
                               .error_mode = OTTL_IGNORE,
                               .conditions = &condition,
                               .conditions_count = 1};
    struct error mistake;
    struct ottl_runner runner;
    if (!ottl_plan_add(plan, &group, true, &mistake))
        fail_msg("%s: %s", condition, mistake.text);
    ottl_plan_finish(plan);
    ottl_runner_init(&runner, plan, NULL);
    runner.prunes = true;
    runner.on_failure = on_failure;
    struct batch *batch = batch_of(TRACES, SPAN(""), 0);
    batch->client = client != NULL ? client_info_ref(client) : NULL;
    last_error[0] = '\0';
    struct ottl_result result = ottl_runner_run(&runner, batch);
    assert_string_equal(last_error, error != NULL ? error : "");
    batch_unref(result.batch);
    batch_unref(batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    return result.verdict == OTTL_EMPTIED;
}

static void test_client(void **state)
{
    static const struct client_metadata rows[] = {
        {"x-tenant", "acme"}, {"multi", "one"}, {"multi", "two"}};
    static const struct client_metadata auth[] = {{"user", "u"}};
    static const struct {
        const char *condition;
        bool holds;
        const char *error;
    } cases[] = {
        {"otelcol.client.addr == \"10.0.0.1\"", true, NULL},
        {"otelcol.client.metadata[\"X-Tenant\"][0] == \"acme\"", true, NULL},
        {"otelcol.client.metadata[\"multi\"] == [\"one\", \"two\"]", true, NULL},
        {"otelcol.client.metadata[\"none\"] == nil", true, NULL},
        {"Len(otelcol.client.metadata) == 2", true, NULL},
        {"otelcol.client.metadata[\"multi\"][2] == \"x\"", false, "index 2 out of bounds"},
        {"otelcol.client.metadata[\"multi\"][0][0] == \"x\"", false,
         "cannot index into string slice more than once"},
        {"otelcol.client.auth.attributes[\"user\"] == \"u\"", true, NULL},
        {"otelcol.client.auth.attributes[\"user\"][0] == \"u\"", false,
         "attribute \"user\" value is not indexable: Str"},
        {"otelcol.grpc.metadata[\"x-tenant\"] != nil", false, NULL},
    };
    (void)state;
    struct client_info *anonymous = client_info_create("10.0.0.1", rows, 3);
    struct client_info *client = client_info_with_auth(anonymous, auth, 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(holds(cases[i].condition, client, cases[i].error), cases[i].holds);
    assert_true(
        holds("otelcol.client.addr == nil and Len(otelcol.client.metadata) == 0", NULL, NULL));
    client_info_unref(client);
    client_info_unref(anonymous);
    expect(TRACES, false, "set(otelcol.client.addr, span.name)", SPAN(""), SPAN(""),
           "\"otelcol.client.addr\" is read-only and cannot be modified");
}

/* What is remembered of a client does not outlast its request. */
static void test_next_client(void **state)
{
    const char *condition = "otelcol.client.addr == \"10.0.0.1\"";
    struct ottl_plan *plan = ottl_plan_create(TRACES, OTTL_FOR_FILTER);
    struct ottl_group group = {.context = OTTL_SPAN,
                               .paths = OTTL_PATHS_OF_CONTEXT,
                               .conditions = &condition,
                               .conditions_count = 1};
    struct error mistake;
    struct ottl_runner runner;
    (void)state;
    assert_true(ottl_plan_add(plan, &group, true, &mistake));
    ottl_plan_finish(plan);
    ottl_runner_init(&runner, plan, NULL);
    runner.prunes = true;
    for (unsigned i = 0; i < 4; i++) {
        struct batch *batch = batch_of(TRACES, SPAN(""), 0);
        batch->client = client_info_create(i % 2 == 0 ? "10.0.0.1" : "10.0.0.2", NULL, 0);
        struct ottl_result result = ottl_runner_run(&runner, batch);
        assert_int_equal(result.verdict, i % 2 == 0 ? OTTL_EMPTIED : OTTL_PASSED);
        batch_unref(result.batch);
        batch_unref(batch);
    }
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_span_messages), cmocka_unit_test(test_metric_messages),
        cmocka_unit_test(test_profiles),      cmocka_unit_test(test_missing_dictionary),
        cmocka_unit_test(test_client),        cmocka_unit_test(test_next_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
