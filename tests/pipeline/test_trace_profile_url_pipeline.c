/* SPDX-License-Identifier: Apache-2.0 */
/* links in pipelines: URLs that lead from a span to its profile, and from a profile to its trace.
 */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/limits.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/join/join_limits.h"
#include "src/otlp/wire.h"

#define URL "http://g/a?s={service_name}&id={span_id}&t={trace_id}&f={from_ms}&u={until_ms}"

static struct test_exporter *offer_spans(struct harness *h, const struct sketch_span *spans,
                                         size_t count)
{
    static const char *const resource[] = {"service.name", "my shop", NULL};
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, TRACES);
    exporter->result = RESULT_HOLD;
    join_offer_spans(h, 0, resource, spans, count);
    assert_int_equal(exporter->held_count, 1);
    return exporter;
}

static void a_marked_span_leads_to_its_profile(void **state)
{
    static const struct sketch_span spans[] = {
        {.trace_id = TRACE_A,
         .span_id = "span---1",
         .name = "root",
         .start_ns = 100 * S,
         .end_ns = 101 * S},
        {.trace_id = TRACE_A, .span_id = "span---2", .parent_id = "span---1", .name = "child"},
    };
    (void)state;
    struct harness *h = join_start(JOIN("links: {profile: \"" URL "\"}"));
    struct test_exporter *exporter = offer_spans(h, spans, 2);
    assert_int_equal(join_count(exporter, "pyroscope.profile.url"), 1);
    assert_int_equal(join_count(exporter, "pyroscope.profile.id"), 1);
    assert_int_equal(join_count(exporter, "http://g/a?s=my%20shop&id=7370616e2d2d2d31"
                                          "&t=41414141414141414141414141414141&f=70000&u=131000"),
                     1);
    join_let_go(exporter);
    harness_destroy(h);
}

static void what_a_span_has_already_stays(void **state)
{
    static const struct {
        const char *attributes[4];
        const char *url; /* NULL: none */
    } rows[] = {
        {{"pyroscope.profile.id", "0123456789abcdef"}, "id=0123456789abcdef&t"},
        {{"pyroscope.profile.url", "http://own"}, "http://own"},
        {{"pyroscope.profile.id", "0123", "pyroscope.profile.url", "http://own"}, "http://own"},
        {{"pyroscope.profile.id", ""}, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct harness *h = join_start(JOIN("links: {profile: \"" URL "\"}"));
        struct sketch_span span = {.trace_id = TRACE_A, .span_id = "span---1", .name = "root"};
        memcpy(span.attributes, rows[i].attributes, sizeof(span.attributes));
        struct test_exporter *exporter = offer_spans(h, &span, 1);
        assert_int_equal(join_count(exporter, "pyroscope.profile.id"), 1);
        assert_int_equal(join_count(exporter, "pyroscope.profile.url"), rows[i].url != NULL);
        if (rows[i].url != NULL)
            assert_int_equal(join_count(exporter, rows[i].url), 1);
        assert_int_equal(join_metric(h, JOIN_METRIC "marked_spans{"), i == 1);
        join_let_go(exporter);
        harness_destroy(h);
    }
}

static void spans_that_are_not_marked_get_none(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("mark: off, links: {profile: \"" URL "\"}"));
    struct test_exporter *exporter = offer_spans(h, &join_checkout, 1);
    assert_int_equal(join_count(exporter, "pyroscope.profile"), 0);
    join_let_go(exporter);
    harness_destroy(h);
}

#define TRACE_URL "http://g/t/{trace_id}?n={service_name}&y={profile_type}&f={from_ms}"

/* Sends a profile with these samples, and what came out of it. */
static struct test_exporter *offer_profile(struct harness *h, const struct sketch_sample *samples,
                                           size_t count)
{
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_samples(h, 0, "service.name=shop", samples, count);
    harness_advance(h, 7 * S);
    assert_int_equal(exporter->held_count, 1);
    return exporter;
}

static void a_profile_of_one_trace_leads_to_it(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("links: {trace: \"" TRACE_URL "\"}"));
    const struct sketch_sample samples[] = {join_work, {.stack = "main", .values_count = 1}};
    struct test_exporter *exporter = offer_profile(h, samples, 2);
    assert_int_equal(join_count(exporter, "trace.url"), 1);
    assert_int_equal(join_count(exporter,
                                "http://g/t/41414141414141414141414141414141?n=shop&y="
                                "process_cpu%3Acpu%3Ananoseconds%3Acpu%3Ananoseconds&f=0"),
                     1);
    assert_true(join_says(exporter, 0, 0, "trace.url"));
    join_let_go(exporter);
    harness_destroy(h);
}

static void a_profile_leads_to_the_service_that_it_is_given(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("links: {trace: \"" TRACE_URL "\"}"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    join_offer_samples(h, 0, "container.id=c1", &join_work, 1);
    assert_int_equal(exporter->held_count, 1);
    assert_int_equal(join_count(exporter, "41?n=shop&y="), 1);
    join_let_go(exporter);
    harness_destroy(h);
}

static void a_profile_of_several_traces_gets_only_what_is_true_of_all(void **state)
{
    static const struct {
        const char *yaml;
        unsigned urls;
    } rows[] = {
        {JOIN("links: {trace: \"http://g/{trace_id}\"}"), 0},
        {JOIN("links: {trace: \"http://g/{span_id}\"}"), 0},
        {JOIN("links: {trace: \"http://g/{service_name}\"}"), 1},
        {JOIN(""), 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct harness *h = join_start(rows[i].yaml);
        struct sketch_sample samples[] = {join_work, join_work};
        samples[1].trace_id = TRACE_B;
        samples[1].span_id = "span---2";
        struct test_exporter *exporter = offer_profile(h, samples, 2);
        assert_int_equal(join_count(exporter, "trace.url"), rows[i].urls);
        join_let_go(exporter);
        harness_destroy(h);
    }
}

/* A Profile without samples needs no dictionary; its URL does. */
static void a_request_without_a_dictionary_gets_one(void **state)
{
    static const uint8_t request[] = {0x0a, 0x04, 0x12, 0x02, 0x12, 0x00};
    (void)state;
    struct harness *h = join_start(JOIN("links: {trace: \"http://g/explore\"}"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    harness_offer_bytes(h, 0, PROFILES, slice_of(request, sizeof(request)), 0);
    assert_int_equal(exporter->held_count, 1);
    assert_true(join_says(exporter, 0, 0, "http://g/explore"));
    join_let_go(exporter);
    harness_destroy(h);
}

/* Empty ones have two bytes each. */
static void of_very_many_profiles_the_first_get_urls(void **state)
{
    enum { PROFILES_COUNT = JOIN_URLS_MAX + 1000, URL_BYTES = 2, OTHER_BYTES_MAX = 200 };
    static uint8_t profiles[2 * PROFILES_COUNT];
    static uint8_t rooms[2][sizeof(profiles) + 16];
    struct wire_writer resource = wire_writer_of(rooms[0], sizeof(rooms[0]));
    struct wire_writer request = wire_writer_of(rooms[1], sizeof(rooms[1]));
    (void)state;
    for (size_t i = 0; i < PROFILES_COUNT; i++)
        profiles[2 * i] = 0x12;
    wire_write_bytes(&resource, 2, slice_of(profiles, sizeof(profiles)));
    wire_write_bytes(&request, 1, wire_written(&resource));
    struct harness *h = join_start(JOIN("links: {trace: \"http://g/explore\"}"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    harness_offer_bytes(h, 0, PROFILES, wire_written(&request), 0);
    assert_int_equal(exporter->held_count, 1);
    uint64_t more = exporter->held[0].batch->bytes - wire_written(&request).size;
    assert_in_range(more, URL_BYTES * JOIN_URLS_MAX, URL_BYTES * JOIN_URLS_MAX + OTHER_BYTES_MAX);
    join_let_go(exporter);
    harness_destroy(h);
}

/* Each URL has the name of the service, which a sender may choose. */
static void long_urls_of_many_profiles_are_bounded(void **state)
{
    enum {
        PROFILES_COUNT = JOIN_URLS_MAX,
        NAME_BYTES = 600, /* each takes three in a URL */
        PROFILE_BYTES = 18,
        TIME_AT = 7, /* in the field of a profile */
    };
    static const uint8_t profile[2 + PROFILE_BYTES] = {
        0x12, PROFILE_BYTES,        0x0a, 0x00, 0x2a, 0x00,
        0x19, [TIME_AT + 8] = 0x12, 0x03, 0x22, 0x01, 0x01};
    static uint8_t profiles[sizeof(profile) * PROFILES_COUNT];
    static uint8_t rooms[6][sizeof(profiles) + 4096];
    static char name[NAME_BYTES];
    struct wire_writer writers[6];
    (void)state;
    for (size_t i = 0; i < 6; i++)
        writers[i] = wire_writer_of(rooms[i], sizeof(rooms[i]));
    memset(name, '\xc3', sizeof(name));
    for (size_t i = 1; i < NAME_BYTES; i += 2)
        name[i] = '\xa9';
    wire_write_bytes(&writers[0], 1, slice_of(name, sizeof(name))); /* AnyValue */
    wire_write_bytes(&writers[1], 1, slice_of_text("service.name"));
    wire_write_bytes(&writers[1], 2, wire_written(&writers[0]));
    wire_write_bytes(&writers[2], 1, wire_written(&writers[1]));
    for (uint64_t i = 0; i < PROFILES_COUNT; i++) {
        uint8_t *at = profiles + i * sizeof(profile);
        uint64_t time_ns = (i + 1000000) * MS;
        memcpy(at, profile, sizeof(profile));
        memcpy(at + TIME_AT, &time_ns, sizeof(time_ns));
    }
    wire_write_bytes(&writers[3], 1, wire_written(&writers[2]));
    wire_write_bytes(&writers[3], 2, slice_of(profiles, sizeof(profiles)));
    wire_write_bytes(&writers[4], 1, wire_written(&writers[3]));
    struct harness *h = join_start(
        "processors: {trace_profile_join: {hold: 0s, links: {trace: "
        "\"http://g/?s={service_name}&f={from_ms}\"}, index: {bytes: 1MiB}}}\n"
        "exporters: {test: {sending_queue: {enabled: false}}}\n"
        "service: {budget_mib: 64, pipelines: {traces: {receivers: [test], processors: "
        "[trace_profile_join], exporters: [test]}, profiles: {receivers: [test], processors: "
        "[trace_profile_join], exporters: [test]}}}\n");
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    const uint64_t limit = budget_limit(harness_receiver(h, "test", 0)->budget);
    harness_offer_bytes(h, 0, PROFILES, wire_written(&writers[4]), PROFILES_COUNT);
    assert_int_equal(exporter->held_count, 1);
    uint64_t more = exporter->held[0].batch->bytes - wire_written(&writers[4]).size;
    assert_in_range(more, 1 * MIB, 9 * MIB);
    assert_in_range(harness_budget_peak(h), 0, limit + limit / BUDGET_MARGIN_PART);
    join_let_go(exporter);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_marked_span_leads_to_its_profile),
        cmocka_unit_test(what_a_span_has_already_stays),
        cmocka_unit_test(spans_that_are_not_marked_get_none),
        cmocka_unit_test(a_profile_of_one_trace_leads_to_it),
        cmocka_unit_test(a_profile_leads_to_the_service_that_it_is_given),
        cmocka_unit_test(a_profile_of_several_traces_gets_only_what_is_true_of_all),
        cmocka_unit_test(a_request_without_a_dictionary_gets_one),
        cmocka_unit_test(of_very_many_profiles_the_first_get_urls),
        cmocka_unit_test(long_urls_of_many_profiles_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
