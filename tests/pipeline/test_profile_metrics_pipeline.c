/* SPDX-License-Identifier: Apache-2.0 */
/* profile_metrics between two pipelines: what samples of each profiler's types add up to, by which
 * attributes, when it is sent, what lanes share, and what is refused. */
#include "tests/support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/otlp/json/json_write.h"
#include "src/pipeline/pipeline_limits.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"
#include "tests/support/profile_sketch.h"
#include "tests/support/telemetry_bytes.h"

#define WITH(keys)                                                                                 \
    "connectors: {profile_metrics: {" keys "}}\n"                                                  \
    "exporters: {test/a: {sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}}\n" \
    "service: {pipelines: {profiles: {receivers: [test], exporters: [profile_metrics]},"           \
    " metrics: {receivers: [profile_metrics], exporters: [test/a]}}}\n"

enum { INTERVAL_S = 60 };

static void send_profile(struct harness *h, unsigned lane, const struct sketch_profile *profile,
                         const char *service)
{
    const struct sketch sketch = {
        .resource = {service, "host.name=h1"}, .profiles_count = 1, .profiles = profile};
    struct slice bytes = sketch_request(&sketch);
    struct test_request *request =
        harness_offer_bytes(h, lane, PROFILES, bytes, profile->samples_count);
    assert_true(request->is_resolved);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    mem_free((void *)(uintptr_t)bytes.data);
}

/* One sample without a stack. */
static void send_one(struct harness *h, const char *type, const char *unit, int64_t value,
                     const char *attribute)
{
    const struct sketch_sample sample = {
        .values_count = 1, .values = {value}, .attributes = {attribute}};
    const struct sketch_profile profile = {
        .type = {type, unit}, .samples_count = 1, .samples = &sample};
    send_profile(h, 0, &profile, "service.name=shop");
}

static struct test_exporter *holder(const struct harness *h)
{
    struct test_exporter *exporter = harness_exporter_on(h, "test/a", 0, METRICS);
    exporter->has_own_items = true;
    exporter->result = RESULT_HOLD;
    return exporter;
}

/* The requests that the exporter gets, and takes, until there are no more, as JSON. The caller
 * frees it. */
static char *exported(struct harness *h, struct test_exporter *exporter)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    while (exporter->held_count > 0) {
        for (size_t i = 0; i < exporter->held_count; i++) {
            struct buffer *json = json_write_batch(exporter->held[i].batch, NULL);
            assert_non_null(json);
            fwrite(json->data, 1, json->size, out);
            buffer_unref(json);
        }
        test_exporter_release(exporter, RESULT_OK);
        exporter->result = RESULT_HOLD;
        harness_turn(h);
    }
    fclose(out);
    return text;
}

/* Those of a flush. */
static char *flushed(struct harness *h, struct test_exporter *exporter)
{
    harness_advance(h, (uint64_t)INTERVAL_S * S);
    return exported(h, exporter);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

static void expect(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("%s\nlacks\n%s", text, part);
}

/* Of what batch has acknowledged: it would be lost otherwise. */
static void acknowledged_profiles_may_use_the_margin(void **state)
{
    const struct sketch_sample sample = {.values_count = 1, .values = {7}};
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = 1, .samples = &sample};
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1s}}\nconnectors: {profile_metrics: {}}\n"
        "exporters: {test/a: {sending_queue: {enabled: false}}}\n"
        "service: {budget_mib: 8, pipelines: {profiles: {receivers: [test], processors: [batch], "
        "exporters: [profile_metrics]}, metrics: {receivers: [profile_metrics], exporters: "
        "[test/a]}}}\n");
    struct budget *budget = &h->service->budget;
    harness_exporter_on(h, "test/a", 0, METRICS)->has_own_items = true;
    send_profile(h, 0, &profile, "service.name=shop");
    const uint64_t others = budget_limit(budget) - budget_used(budget);
    budget_take(budget, others);
    harness_advance(h, 2 * DOWNSTREAM_SHUT_IN_MAX_NS);
    budget_return(budget, others);
    assert_int_equal(harness_totals(h, PROFILES).dropped, 0);
    assert_int_equal(harness_totals(h, PROFILES).delivered, 1);
    harness_destroy(h);
}

/* A data point has that value: attributes follow it, or nothing. */
static void expect_number(const char *text, const char *value)
{
    size_t size = strlen(value);
    for (const char *at = text; (at = strstr(at, value)) != NULL; at++)
        if (at[size] == ',' || at[size] == '}')
            return;
    fail_msg("%s\nlacks\n%s", text, value);
}

static void cpu_time_adds_up_by_service_span_and_route(void **state)
{
    (void)state;
    static const struct sketch_sample samples[] = {
        {.stack = "a;b",
         .values_count = 2,
         .values = {1000000000, 500000000},
         .attributes = {"span_name=checkout", "http.route=/pay", "thread=1"}},
        {.stack = "c;b",
         .values_count = 1,
         .values = {500000000},
         .attributes = {"thread=2", "http.route=/pay", "span_name=checkout"}},
        {.stack = "a;b",
         .values_count = 1,
         .values = {250000000},
         .attributes = {"span_name=list"}},
        {.stack = "a", .values_count = 1, .values = {-7}, .attributes = {"span_name=never"}},
        {.stack = "a", .values_count = 1, .values = {125000000}},
    };
    static const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = 5, .samples = samples};
    struct harness *h = harness_create(WITH(""));
    struct test_exporter *a = holder(h);
    uint64_t begin_ns = clock_wall_ns();
    send_profile(h, 0, &profile, "service.name=shop");
    char *text = flushed(h, a);
    char start[64];
    expect(text, "{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":"
                 "{\"stringValue\":\"shop\"}}]}");
    expect(text, "\"name\":\"profile.cpu.time\"");
    expect(text, "\"unit\":\"s\",\"sum\":{\"dataPoints\":[{");
    expect(text, "\"asDouble\":2,\"attributes\":[{\"key\":\"span_name\",\"value\":"
                 "{\"stringValue\":\"checkout\"}},{\"key\":\"http.route\",\"value\":"
                 "{\"stringValue\":\"/pay\"}}]");
    expect_number(text, "\"asDouble\":2");
    expect_number(text, "\"asDouble\":0.25");
    expect_number(text, "\"asDouble\":0.125");
    expect(text, "\"aggregationTemporality\":2,\"isMonotonic\":true");
    assert_int_equal(count_of(text, "asDouble"), 3);
    assert_null(strstr(text, "never"));
    assert_null(strstr(text, "host.name"));
    snprintf(start, sizeof(start), "\"startTimeUnixNano\":\"%llu\"", (unsigned long long)begin_ns);
    expect(text, start);
    free(text);
    send_profile(h, 0, &profile, "service.name=shop"); /* cumulative */
    text = flushed(h, a);
    expect_number(text, "\"asDouble\":4");
    expect(text, start);
    free(text);
    struct harness_totals totals = harness_totals(h, PROFILES);
    assert_int_equal(totals.received, 10);
    assert_int_equal(totals.delivered, 10);
    harness_destroy(h);
}

static void each_profilers_types_are_known(void **state)
{
    (void)state;
    struct harness *h = harness_create(WITH("namespace: p"));
    struct test_exporter *a = holder(h);
    /* What is no measure of ours. */
    send_one(h, "samples", "count", 1, NULL);
    send_one(h, "inuse_space", "bytes", 1, NULL);
    send_one(h, "alloc_objects", "count", 1, NULL);
    send_one(h, "wall", "nanoseconds", 1, NULL);
    send_one(h, "contentions", "count", 1, NULL);
    send_one(h, "cpu_root", "nanoseconds", 1, NULL); /* by the join: samples counted once more */
    send_one(h, "alloc_space_root", "bytes", 1, NULL);
    char *text = flushed(h, a);
    assert_string_equal(text, "");
    free(text);
    send_one(h, "itimer", "nanoseconds", 3000000000, NULL);
    send_one(h, "alloc_space", "bytes", 5, NULL);
    send_one(h, "alloc_in_new_tlab_bytes", "bytes", 7, NULL);
    send_one(h, "delay", "nanoseconds", 1500000000, NULL);
    const struct sketch_sample sample = {.values_count = 1, .values = {4}};
    struct sketch_profile profile = {.type = {"delay", "nanoseconds"},
                                     .period_type = {"block", "count"},
                                     .samples_count = 1,
                                     .samples = &sample};
    const struct sketch_sample long_sample = {.values_count = 1, .values = {6000000000}};
    profile.samples = &long_sample;
    send_profile(h, 0, &profile, "service.name=shop");
    /* Samples of a known period, as of OpenTelemetry's eBPF profiler. */
    profile = (struct sketch_profile){.type = {"samples", "count"},
                                      .period_type = {"cpu", "nanoseconds"},
                                      .period = 50000000,
                                      .samples_count = 1,
                                      .samples = &sample};
    send_profile(h, 0, &profile, "service.name=shop");
    /* Each timestamp is a sample. */
    const struct sketch_sample timed_sample = {.timestamps_count = 6};
    profile.samples = &timed_sample;
    send_profile(h, 0, &profile, "service.name=shop");
    text = flushed(h, a);
    expect(text, "\"name\":\"p.cpu.time\"");
    expect_number(text, "\"asDouble\":3.5");
    expect(text, "\"name\":\"p.memory.allocated\"");
    expect(text, "\"unit\":\"By\"");
    expect_number(text, "\"asInt\":\"12\"");
    expect(text, "\"name\":\"p.lock.wait\"");
    expect_number(text, "\"asDouble\":1.5");
    expect(text, "\"name\":\"p.block.wait\"");
    expect_number(text, "\"asDouble\":6");
    free(text);
    harness_destroy(h);
}

/* Go's CPU profiles have both: the time counts, the samples of the same period do not. */
static void samples_beside_cpu_time_do_not_count_twice(void **state)
{
    (void)state;
    static const struct sketch_sample count = {.values_count = 1, .values = {3}};
    static const struct sketch_sample time = {.values_count = 1, .values = {30000000}};
    static const struct sketch_profile profiles[] = {
        {.type = {"samples", "count"},
         .period_type = {"cpu", "nanoseconds"},
         .period = 10000000,
         .samples_count = 1,
         .samples = &count},
        {.type = {"cpu", "nanoseconds"},
         .period_type = {"cpu", "nanoseconds"},
         .period = 10000000,
         .samples_count = 1,
         .samples = &time},
    };
    const struct sketch sketch = {
        .resource = {"service.name=shop"}, .profiles_count = 2, .profiles = profiles};
    struct harness *h = harness_create(WITH(""));
    struct test_exporter *a = holder(h);
    struct slice bytes = sketch_request(&sketch);
    harness_offer_bytes(h, 0, PROFILES, bytes, 2);
    mem_free((void *)(uintptr_t)bytes.data);
    char *text = flushed(h, a);
    expect_number(text, "\"asDouble\":0.03");
    free(text);
    harness_destroy(h);
}

static void dimensions_come_from_samples_then_profiles_then_resources(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        WITH("dimensions: [zone, host.name, zone], resource_attributes: [host.name]"));
    struct test_exporter *a = holder(h);
    const struct sketch_sample samples[] = {
        {.values_count = 1, .values = {1000000000}, .attributes = {"zone=s"}},
        {.values_count = 1, .values = {2000000000}},
        {.values_count = 1, .values = {4000000000}, .attributes = {"zone=#5"}},
    };
    const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                           .samples_count = 3,
                                           .samples = samples,
                                           .attributes = {"zone=p"}};
    send_profile(h, 0, &profile, "zone=r");
    char *text = flushed(h, a);
    expect(text, "{\"resource\":{\"attributes\":[{\"key\":\"host.name\",\"value\":"
                 "{\"stringValue\":\"h1\"}}]}");
    expect(text, "\"asDouble\":1,\"attributes\":[{\"key\":\"zone\",\"value\":"
                 "{\"stringValue\":\"s\"}},{\"key\":\"host.name\",\"value\":"
                 "{\"stringValue\":\"h1\"}}]");
    expect(text, "{\"stringValue\":\"p\"}}");
    expect(text, "{\"stringValue\":\"5\"}}");
    assert_int_equal(count_of(text, "asDouble"), 3);
    free(text);
    const struct sketch_profile plain = {
        .type = {"cpu", "nanoseconds"}, .samples_count = 1, .samples = &samples[1]};
    send_profile(h, 0, &plain, "zone=r");
    text = flushed(h, a);
    expect(text, "{\"stringValue\":\"r\"}}");
    assert_int_equal(count_of(text, "asDouble"), 4);
    free(text);
    harness_destroy(h);
}

static void lanes_share_the_series(void **state)
{
    (void)state;
    const struct sketch_sample sample = {.values_count = 1, .values = {1000000000}};
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = 1, .samples = &sample};
    struct harness *h = harness_create_on(WITH(""), 3);
    struct test_exporter *a = holder(h);
    for (unsigned lane = 0; lane < 3; lane++)
        send_profile(h, lane, &profile, "service.name=shop");
    char *text = flushed(h, a);
    expect_number(text, "\"asDouble\":3");
    assert_int_equal(count_of(text, "asDouble"), 1);
    free(text);
    harness_destroy(h);
}

static void beyond_the_limit_one_series_has_the_rest(void **state)
{
    (void)state;
    struct harness *h = harness_create(WITH("aggregation_cardinality_limit: 2"));
    struct test_exporter *a = holder(h);
    send_one(h, "cpu", "nanoseconds", 1000000000, "span_name=a");
    send_one(h, "cpu", "nanoseconds", 1000000000, "span_name=b");
    send_one(h, "cpu", "nanoseconds", 1000000000, "span_name=c");
    send_one(h, "cpu", "nanoseconds", 2000000000, "span_name=d");
    send_one(h, "alloc_space", "bytes", 9, "span_name=d");
    send_one(h, "cpu", "nanoseconds", 4000000000, "span_name=a");
    char *text = flushed(h, a);
    expect_number(text, "\"asDouble\":5");
    expect(text, "[{\"key\":\"otel.metric.overflow\",\"value\":{\"boolValue\":true}}]");
    expect_number(text, "\"asDouble\":3");
    expect_number(text, "\"asInt\":\"9\"");
    assert_int_equal(count_of(text, "asDouble"), 3);
    free(text);
    harness_destroy(h);
}

static void series_without_samples_expire_and_begin_anew(void **state)
{
    (void)state;
    struct harness *h = harness_create(WITH("metrics_expiration: 90s"));
    struct test_exporter *a = holder(h);
    static struct sketch_sample samples[600]; /* more than one piece */
    static char names[600][32];
    for (int i = 0; i < 600; i++) {
        snprintf(names[i], sizeof(names[i]), "span_name=%d", i);
        samples[i] = (struct sketch_sample){
            .values_count = 1, .values = {1000000000}, .attributes = {names[i]}};
    }
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = 600, .samples = samples};
    send_profile(h, 0, &profile, "service.name=shop");
    char *text = flushed(h, a);
    assert_int_equal(count_of(text, "asDouble"), 600);
    free(text);
    send_one(h, "cpu", "nanoseconds", 1000000000, "span_name=7");
    text = flushed(h, a);
    assert_int_equal(count_of(text, "asDouble"), 1);
    expect_number(text, "\"asDouble\":2");
    free(text);
    harness_advance(h, (uint64_t)INTERVAL_S * S);
    test_exporter_release(a, RESULT_OK);
    a->result = RESULT_HOLD;
    text = flushed(h, a);
    assert_string_equal(text, "");
    free(text);
    send_one(h, "cpu", "nanoseconds", 1000000000, "span_name=7");
    text = flushed(h, a);
    expect_number(text, "\"asDouble\":1");
    free(text);
    harness_destroy(h);
}

static void a_stop_sends_what_is_there(void **state)
{
    (void)state;
    struct harness *h = harness_create_on(WITH(""), 2);
    struct test_exporter *a = holder(h);
    send_one(h, "cpu", "nanoseconds", 1000000000, "span_name=a");
    assert_int_equal(a->held_count, 0);
    harness_stop(h);
    harness_turn(h);
    assert_int_equal(a->held_count, 1);
    assert_int_equal(a->held[0].batch->items, 1);
    assert_false(h->has_stopped);
    harness_destroy(h);
}

/* A request that a connector has. */
struct taken {
    struct receipt receipt;
    struct component *connector;
    uint64_t items;
    bool is_accepted;
};

static void on_taken(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct taken *taken = arg;
    assert_ptr_equal(receipt, &taken->receipt);
    taken->is_accepted = outcome->verdict == ACCEPTED;
    ledger_deliver(taken->connector->ledger, PROFILES, taken->items);
}

/* So many samples of 4 ms. The caller frees its bytes. */
static struct slice request_of(size_t count)
{
    struct sketch_sample *samples = mem_zalloc(count * sizeof(*samples));
    for (size_t i = 0; i < count; i++)
        samples[i] = (struct sketch_sample){.values_count = 4,
                                            .values = {1000000, 1000000, 1000000, 1000000}};
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = count, .samples = samples};
    const struct sketch sketch = {
        .resource = {"service.name=shop"}, .profiles_count = 1, .profiles = &profile};
    struct slice request = sketch_request(&sketch);
    mem_free(samples);
    return request;
}

/* Any lane's; also one that its helper has when lane 0 stops. */
static void large_requests_go_through_the_helper(void **state)
{
    enum { SMALL = 1000, LARGE = 20000, LARGE_BYTES_MIN = 256 * 1024 };
    (void)state;
    struct harness *h = harness_create_on(WITH(""), 2);
    struct test_exporter *a = holder(h);
    struct component *connector = harness_connector(h, "profile_metrics", PROFILES, METRICS);
    const struct slice requests[] = {request_of(SMALL), request_of(LARGE)};
    assert_true(requests[1].size >= LARGE_BYTES_MIN);
    for (size_t i = 0; i < 2; i++) {
        struct taken taken = {.connector = connector, .items = i == 0 ? SMALL : LARGE};
        struct batch *batch = plain_request(NULL, PROFILES, requests[i], taken.items);
        receipt_init(&taken.receipt, on_taken, &taken);
        ledger_receive(connector->ledger, batch, 1);
        component_consume(connector, batch, &taken.receipt);
        assert_int_equal(taken.is_accepted, i == 0);
        harness_turn(h);
        assert_true(taken.is_accepted);
        batch_unref(batch);
    }
    harness_put_bytes(h, 1, PROFILES, requests[1], LARGE);
    harness_put_bytes(h, 0, PROFILES, requests[1], LARGE);
    harness_stop(h);
    harness_turn(h);
    assert_int_equal(h->requests[0]->outcome.verdict, ACCEPTED);
    assert_int_equal(h->requests[1]->outcome.verdict, ACCEPTED);
    char *text = exported(h, a);
    expect_number(text, "\"asDouble\":244");
    free(text);
    assert_true(h->has_stopped);
    for (size_t i = 0; i < 2; i++)
        mem_free((void *)(uintptr_t)requests[i].data);
    harness_destroy(h);
}

static void wrong_configurations_are_refused(void **state)
{
    (void)state;
    assert_true(harness_is_wrong(WITH("metrics_flush_interval: 0s"), "metrics_flush_interval"));
    assert_true(harness_is_wrong(WITH("dimension: [a]"), "dimensions"));
    assert_true(harness_is_wrong(
        WITH("dimensions: [a01, a02, a03, a04, a05, a06, a07, a08, a09, a10, a11, a12, a13, a14, "
             "a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, "
             "a31, a32, a33]"),
        "expected at most 32"));
}

/* A request for which there is no memory is refused as a whole, retryably, and counts nowhere. */
static void without_memory_requests_are_refused_whole(void **state)
{
    (void)state;
    struct harness *h = harness_create(WITH(""));
    struct test_exporter *a = holder(h);
    const struct sketch_sample samples[] = {
        {.values_count = 1, .values = {1000000000}, .attributes = {"span_name=a"}},
        {.values_count = 1, .values = {1000000000}, .attributes = {"span_name=b"}},
    };
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = 2, .samples = samples};
    const struct sketch sketch = {
        .resource = {"service.name=shop"}, .profiles_count = 1, .profiles = &profile};
    struct slice bytes = sketch_request(&sketch);
    unsigned accepted = 0;
    unsigned refused = 0;
    uint64_t tries = UINT64_MAX;
    for (uint64_t nth = 1; tries >= nth; nth++) {
        uint64_t before = mem_tries();
        mem_refuse_nth(nth);
        struct test_request *request = harness_offer_bytes(h, 0, PROFILES, bytes, 2);
        tries = mem_tries() - before;
        assert_true(request->is_resolved);
        bool is_accepted = request->outcome.verdict == ACCEPTED;
        assert_true(is_accepted || !request->outcome.is_permanent);
        accepted += is_accepted;
        refused += !is_accepted;
    }
    mem_refuse_nth(0);
    assert_true(refused > 0);
    mem_free((void *)(uintptr_t)bytes.data);
    char *text = flushed(h, a);
    char value[64];
    double sum = 0;
    for (const char *at = text; (at = strstr(at, "\"asDouble\":")) != NULL; at++)
        sum += strtod(at + strlen("\"asDouble\":"), NULL);
    snprintf(value, sizeof(value), "%g of %u", sum, 2 * accepted);
    if (sum != 2.0 * accepted) /* what had no room for a series is in the overflow's */
        fail_msg("%s", value);
    free(text);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acknowledged_profiles_may_use_the_margin),
        cmocka_unit_test(cpu_time_adds_up_by_service_span_and_route),
        cmocka_unit_test(each_profilers_types_are_known),
        cmocka_unit_test(samples_beside_cpu_time_do_not_count_twice),
        cmocka_unit_test(dimensions_come_from_samples_then_profiles_then_resources),
        cmocka_unit_test(lanes_share_the_series),
        cmocka_unit_test(beyond_the_limit_one_series_has_the_rest),
        cmocka_unit_test(series_without_samples_expire_and_begin_anew),
        cmocka_unit_test(a_stop_sends_what_is_there),
        cmocka_unit_test(large_requests_go_through_the_helper),
        cmocka_unit_test(wrong_configurations_are_refused),
        cmocka_unit_test(without_memory_requests_are_refused_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
