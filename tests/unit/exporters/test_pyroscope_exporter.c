/* SPDX-License-Identifier: Apache-2.0 */
/* pyroscope against a strict stand-in: labels, types and values, limits, times, and what is sent
 * again after failures. With PYROSCOPE_URL set, also against a real server. */
#include "exporters/pyroscope/pyroscope_attempt.h"
#include "exporters/pyroscope/pyroscope_config.h"
#include "exporters/pyroscope/pyroscope_walk.h"
#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/config.h"
#include "src/core/client_info.h"
#include "src/profiles/pprof/pprof_reader.h"
#include "src/profiles/pprof/pprof_writer.h"
#include "src/profiles/pyroscope/series.h"
#include "src/profiles/pyroscope/series_otlp.h"
#include "tests/support/skip.h"
#include "tests/unit/exporters/pyroscope_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TRACE_ID "\x5b\x8a\xa5\xa2\xd2\xc8\x72\xe8\x32\x1c\xf3\x73\x08\xd6\x9d\xf2"
#define SPAN_ID  "\x05\x1a\x1b\x6c\x44\x1a\xcd\x00"

static const struct sketch_sample one_sample[] = {
    {.stack = "work;main", .values_count = 1, .values = {3}},
};

#define CPU_PROFILE                                                                                \
    {                                                                                              \
        .type = {"cpu", "nanoseconds"}, .period_type = {"cpu", "nanoseconds"}, .period = 10,       \
        .time_ns = NOW_NS, .duration_ns = 5, .samples_count = 1, .samples = one_sample             \
    }

static const struct sketch_profile one_profile[] = {CPU_PROFILE};
static const struct sketch_profile three_profiles[] = {
    CPU_PROFILE,
    {.type = {"wall", "ns"}, .time_ns = NOW_NS, .samples_count = 1, .samples = one_sample},
    {.type = {"off_cpu", "nanoseconds"},
     .time_ns = NOW_NS,
     .samples_count = 1,
     .samples = one_sample},
};

static const struct sketch plain = {
    .resource = {"service.name=shop"}, .profiles_count = 1, .profiles = one_profile};
static const struct sketch three = {
    .resource = {"service.name=shop"}, .profiles_count = 3, .profiles = three_profiles};

struct labels_case {
    const char *name;
    const char *options;
    const char *resource[8];
    const char *labels;
};

#define BASE "{__delta__=\"false\", __name__=\"process_cpu\""

static const struct labels_case labels_cases[] = {
    {"service.name", "", {"service.name=shop"}, BASE ", service_name=\"shop\"}"},
    {"none", "", {NULL}, BASE ", service_name=\"unknown_service\"}"},
    {"executable",
     "",
     {"process.executable.name=java"},
     BASE ", service_name=\"unknown_service:java\"}"},
    {"both spellings", "", {"service_name=b", "service.name=a"}, BASE ", service_name=\"a\"}"},
    {"one spelling", "", {"service_name=b"}, BASE ", service_name=\"b\"}"},
    {"allow-list",
     "",
     {"service.name=a", "host.name=h", "process.pid=#7", "secret=x"},
     BASE ", host_name=\"h\", service_name=\"a\"}"},
    {"own allow-list",
     "labels: {allow: [secret, n]}",
     {"service.name=a", "host.name=h", "secret=x", "n=#5"},
     BASE ", n=\"5\", secret=\"x\", service_name=\"a\"}"},
    {"dots",
     "labels: {dots_to_underscores: false}",
     {"service.name=a", "host.name=h"},
     BASE ", host.name=\"h\", service_name=\"a\"}"},
    {"names and add",
     "labels: {names: {tier.x: tier}, add: {env: prod}}",
     {"service.name=a", "tier.x=web"},
     BASE ", env=\"prod\", service_name=\"a\", tier=\"web\"}"},
    {"internal",
     "labels: {allow: [__session_id__, x]}",
     {"service.name=a", "__session_id__=1", "x=y"},
     BASE ", service_name=\"a\", x=\"y\"}"},
    {"collision",
     "labels: {allow: [a.b, a_b]}",
     {"service.name=a", "a.b=1", "a_b=2"},
     BASE ", a_b=\"1\", service_name=\"a\"}"},
    {"empty value", "labels: {allow: [a]}", {"service.name=a", "a="}, BASE ", service_name=\"a\"}"},
    {"no UTF-8",
     "labels: {allow: [a]}",
     {"service.name=a", "a=x\xffy"},
     BASE ", a=\"x?y\", service_name=\"a\"}"},
};

static void labels_follow_the_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(labels_cases) / sizeof(labels_cases[0]); i++) {
        const struct labels_case *row = &labels_cases[i];
        struct fixture fixture;
        struct sketch sketch = {.profiles_count = 1, .profiles = one_profile};
        memcpy(sketch.resource, row->resource, sizeof(row->resource));
        set_up(&fixture, row->options);
        print_message("   %s\n", row->name);
        export_sketch(&fixture, &sketch);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        assert_string_equal(fixture.server->last_error, "");
        assert_int_equal(fixture.server->stored_count, 1);
        assert_string_equal(fixture.server->stored[0].labels, row->labels);
        tear_down(&fixture);
    }
}

/* A URL for each trace would be a series for each. */
static void attributes_of_profiles_are_no_labels(void **state)
{
    struct sketch_profile linked = one_profile[0];
    const struct sketch sketch = {
        .resource = {"service.name=shop"}, .profiles_count = 1, .profiles = &linked};
    struct fixture fixture;
    (void)state;
    linked.attributes[0] = "trace.url=http://grafana/t/1";
    set_up(&fixture, "labels: {allow: [trace.url]}");
    export_sketch(&fixture, &sketch);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.server->stored_count, 1);
    assert_string_equal(fixture.server->stored[0].labels, BASE ", service_name=\"shop\"}");
    tear_down(&fixture);
}

static const struct sketch_sample odd_samples[] = {
    {.stack = "a;main", .values_count = 2, .values = {3, 4}, .timestamps_count = 2},
    {.stack = "b;main", .timestamps_count = 5},
    {.stack = "c;main", .values_count = 1, .values = {0}},
    {.stack = "d;main", .values_count = 1, .values = {-7}},
    {.stack = "e;main",
     .values_count = 1,
     .values = {9},
     .attributes = {"thread.id=#4", "http.route=/x", "__session_id__=8", "retries=#2"},
     .trace_id = TRACE_ID,
     .span_id = SPAN_ID},
};

static void samples_are_summed_counted_linked_and_dropped(void **state)
{
    static const struct sketch_profile profile = {.type = {"samples", "count"},
                                                  .period_type = {"cpu", "nanoseconds"},
                                                  .period = 1000,
                                                  .time_ns = NOW_NS,
                                                  .samples_count = 5,
                                                  .samples = odd_samples};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    export_sketch(&fixture, &sketch);
    assert_string_equal(fixture.server->last_error, "");
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 1);
    assert_int_equal(fixture.exporter.outcome.invalid_items, 1);
    assert_int_equal(fixture.server->stored_count, 1);
    assert_string_equal(
        fixture.server->stored[0].profile,
        "cpu:nanoseconds period cpu:nanoseconds 1000 time 1790000000000000000 duration 0\n"
        "+0/a::7:0;+0/main::7:0;[7000]\n"
        "+0/b::7:0;+0/main::7:0;[5000]\n"
        "+0/e::7:0;+0/main::7:0;[9000] http_route=/x retries=2 span_id=051a1b6c441acd00 "
        "trace_id=5b8aa5a2d2c872e8321cf37308d69df2");
    assert_int_equal(counter_read(&counters(&fixture)->zero), 1);
    assert_int_equal(counter_read(&counters(&fixture)->negative), 1);
    tear_down(&fixture);
}

/* As labels of any other name they would be a series for each request. */
static void ids_in_any_spelling_are_the_two_labels_that_make_no_series(void **state)
{
    static const struct {
        struct sketch_sample sample;
        const char *labels;
    } rows[] = {
        {{.attributes = {"process.context.label.trace_id=5b8aa5a2d2c872e8321cf37308d69df2",
                         "process.context.label.span_id=051a1b6c441acd00", "x=y"}},
         " span_id=051a1b6c441acd00 trace_id=5b8aa5a2d2c872e8321cf37308d69df2 x=y"},
        {{.attributes = {"otel.traceid=5B8AA5A2D2C872E8321CF37308D69DF2"}},
         " trace_id=5b8aa5a2d2c872e8321cf37308d69df2"},
        {{.attributes = {"span id=367636471397141760", "local root span id=5"}},
         " span_id=051a1b6c441acd00"},
        {{.attributes = {"profile_id=051a1b6c441acd00"}}, " span_id=051a1b6c441acd00"},
        {{.attributes = {"spanid=1111111111111111"}, .trace_id = TRACE_ID, .span_id = SPAN_ID},
         " span_id=051a1b6c441acd00 trace_id=5b8aa5a2d2c872e8321cf37308d69df2"},
        {{.attributes = {"trace.id=of another kind"}}, " trace_id=of another kind"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sketch_sample sample = rows[i].sample;
        const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                               .time_ns = NOW_NS,
                                               .samples_count = 1,
                                               .samples = &sample};
        const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
        struct fixture fixture;
        sample.stack = "main";
        sample.values_count = 1;
        sample.values[0] = 9;
        set_up(&fixture, "");
        export_sketch(&fixture, &sketch);
        const char *stored = fixture.server->stored[0].profile;
        assert_non_null(strstr(stored, "[9]"));
        assert_string_equal(strstr(stored, "[9]") + 3, rows[i].labels);
        tear_down(&fixture);
    }
}

static void any_number_of_values_leaves_room_for_other_labels(void **state)
{
    enum { SAMPLES = 200, TEXT_BYTES = 1024 };
    static char texts[SAMPLES][TEXT_BYTES];
    static struct sketch_sample samples[SAMPLES + 1];
    const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                           .time_ns = NOW_NS,
                                           .samples_count = SAMPLES + 1,
                                           .samples = samples};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    struct fixture fixture;
    (void)state;
    for (int i = 0; i <= SAMPLES; i++)
        samples[i] = (struct sketch_sample){.stack = "main", .values_count = 1, .values = {9}};
    for (int i = 0; i < SAMPLES; i++) {
        snprintf(texts[i], TEXT_BYTES, "%01000d=%d", 7, i);
        samples[i].attributes[0] = texts[i];
    }
    samples[SAMPLES].attributes[0] = "http.route=/x";
    set_up(&fixture, "");
    export_sketch(&fixture, &sketch);
    assert_int_equal(fixture.server->stored_count, 1);
    assert_non_null(strstr(fixture.server->stored[0].profile, "0007=199"));
    assert_non_null(strstr(fixture.server->stored[0].profile, "http_route=/x"));
    tear_down(&fixture);
}

static void trace_ids_can_be_left_out(void **state)
{
    static const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                                  .time_ns = NOW_NS,
                                                  .samples_count = 1,
                                                  .samples = &odd_samples[4]};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "trace_id: off");
    export_sketch(&fixture, &sketch);
    assert_non_null(strstr(fixture.server->stored[0].profile, "span_id=051a1b6c441acd00"));
    assert_null(strstr(fixture.server->stored[0].profile, "trace_id"));
    tear_down(&fixture);
}

static void each_service_of_the_samples_has_its_series(void **state)
{
    static const struct sketch_sample samples[] = {
        {.stack = "a", .values_count = 1, .values = {1}, .attributes = {"service.name=one"}},
        {.stack = "b", .values_count = 1, .values = {2}},
        {.stack = "c", .values_count = 1, .values = {4}, .attributes = {"service.name=two"}},
        {.stack = "d", .values_count = 1, .values = {8}, .attributes = {"service.name=one"}},
    };
    static const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .time_ns = NOW_NS, .samples_count = 4, .samples = samples};
    static const struct {
        const char *label;
        int64_t sum;
    } expected[] = {{"\"host\"", 2}, {"\"one\"", 9}, {"\"two\"", 4}};
    const struct sketch sketch = {
        .resource = {"service.name=host"}, .profiles_count = 1, .profiles = &profile};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "concurrency: 1");
    export_sketch(&fixture, &sketch);
    assert_int_equal(fixture.server->stored_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(strstr(fixture.server->stored[i].labels, expected[i].label));
        assert_int_equal(fixture.server->stored[i].sum, expected[i].sum);
    }
    tear_down(&fixture);
}

/* So many samples with stacks of their own. */
static struct sketch_sample *many_samples(size_t count, const char *prefix)
{
    struct sketch_sample *samples = calloc(count, sizeof(samples[0]));
    for (size_t i = 0; i < count; i++) {
        char *stack = malloc(strlen(prefix) + 64);
        sprintf(stack, "%s%zu;main", prefix, i);
        samples[i] =
            (struct sketch_sample){.stack = stack, .values_count = 1, .values = {(int64_t)i + 1}};
    }
    return samples;
}

static void free_samples(struct sketch_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)samples[i].stack);
    free(samples);
}

struct split_case {
    const char *options;
    size_t samples;
    size_t parts_min;
    size_t samples_max;
    size_t bytes_max;
};

static const struct split_case split_cases[] = {
    {"", 100, 1, 16000, 2 << 20},
    {"limits: {max_samples: 7}", 100, 15, 7, 2 << 20},
    {"limits: {max_samples: 100}", 100, 1, 100, 2 << 20},
    {"limits: {max_bytes: 131072}", 3000, 4, 16000, 65536},
};

static void large_profiles_leave_in_parts_with_times_of_their_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(split_cases) / sizeof(split_cases[0]); i++) {
        const struct split_case *row = &split_cases[i];
        struct sketch_sample *samples = many_samples(row->samples, "com.example.some.function_");
        const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                               .time_ns = NOW_NS,
                                               .samples_count = row->samples,
                                               .samples = samples};
        const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
        struct fixture fixture;
        int64_t sum = 0;
        set_up(&fixture, row->options);
        export_sketch(&fixture, &sketch);
        assert_string_equal(fixture.server->last_error, "");
        assert_true(fixture.server->stored_count >= row->parts_min);
        assert_true(fixture.server->stored_count <= 2 * row->parts_min);
        for (size_t k = 0; k < fixture.server->stored_count; k++) {
            const struct pyroscope_stored *stored = &fixture.server->stored[k];
            assert_true(stored->samples <= row->samples_max);
            assert_true(stored->bytes <= row->bytes_max);
            assert_int_equal(stored->time_ns, (int64_t)NOW_NS + (int64_t)k);
            sum += stored->sum;
        }
        assert_int_equal(sum, row->samples * (row->samples + 1) / 2);
        tear_down(&fixture);
        free_samples(samples, row->samples);
    }
}

enum { LARGE_PROFILES = 4, LARGE_SAMPLES = 300, LARGE_NAME_BYTES = 500 };

/* Profiles of a batch that the lane's helper converts. */
struct large {
    struct sketch_sample *samples[LARGE_PROFILES];
    struct sketch_profile profiles[LARGE_PROFILES];
    struct sketch sketch;
};

static void large_init(struct large *large)
{
    large->sketch = (struct sketch){.resource = {"service.name=shop"},
                                    .profiles_count = LARGE_PROFILES,
                                    .profiles = large->profiles};
    for (unsigned i = 0; i < LARGE_PROFILES; i++) {
        char prefix[LARGE_NAME_BYTES + 32];
        snprintf(prefix, sizeof(prefix), "%0*u_", LARGE_NAME_BYTES, i);
        large->samples[i] = many_samples(LARGE_SAMPLES, prefix);
        large->profiles[i] = (struct sketch_profile){.type = {"cpu", "nanoseconds"},
                                                     .time_ns = NOW_NS + i,
                                                     .samples_count = LARGE_SAMPLES,
                                                     .samples = large->samples[i]};
    }
}

static void large_fini(struct large *large)
{
    for (unsigned i = 0; i < LARGE_PROFILES; i++)
        free_samples(large->samples[i], LARGE_SAMPLES);
}

/* Without a turn of the lane: what the helper converts has not been posted yet. */
static void offer_large(struct fixture *fixture, const struct large *large)
{
    struct slice request = sketch_request(&large->sketch);
    assert_true(request.size >= HELPED_PROFILES_BYTES_MIN);
    exporter_offer(&fixture->exporter, request, LARGE_PROFILES * LARGE_SAMPLES);
    assert_int_equal(counter_read(&counters(fixture)->posts), 0);
    mem_free((void *)(uintptr_t)request.data);
}

static void a_large_batch_arrives_as_its_profiles_do_alone(void **state)
{
    static const char *const options[] = {"mode: push, concurrency: 1",
                                          "mode: ingest, concurrency: 1"};
    struct large large;
    (void)state;
    large_init(&large);
    for (size_t i = 0; i < 2; i++) {
        struct fixture whole;
        struct fixture alone;
        set_up(&whole, options[i]);
        offer_large(&whole, &large);
        exporter_wait(&whole.exporter, 1);
        set_up(&alone, options[i]);
        for (unsigned k = 0; k < LARGE_PROFILES; k++) {
            const struct sketch one = {.resource = {"service.name=shop"},
                                       .profiles_count = 1,
                                       .profiles = &large.profiles[k]};
            export_sketch(&alone, &one);
        }
        assert_int_equal(whole.exporter.outcome.verdict, ACCEPTED);
        assert_int_equal(whole.exporter.outcome.rejected_items, 0);
        assert_string_equal(whole.server->last_error, "");
        assert_int_equal(whole.server->stored_count, LARGE_PROFILES);
        assert_int_equal(alone.server->stored_count, LARGE_PROFILES);
        for (unsigned k = 0; k < LARGE_PROFILES; k++) {
            const struct pyroscope_stored *stored = &whole.server->stored[k];
            assert_string_equal(stored->labels, alone.server->stored[k].labels);
            assert_string_equal(stored->profile, alone.server->stored[k].profile);
            assert_int_equal(stored->samples, LARGE_SAMPLES);
            assert_int_equal(stored->sum, LARGE_SAMPLES * (LARGE_SAMPLES + 1) / 2);
        }
        tear_down(&alone);
        tear_down(&whole);
    }
    large_fini(&large);
}

/* At once, or while a post waits for its response and the helper looks for the next one. */
static void stopping_waits_for_the_helper(void **state)
{
    struct large large;
    (void)state;
    large_init(&large);
    for (unsigned posts = 0; posts < 3; posts++) {
        struct fixture fixture;
        set_up(&fixture, "concurrency: 4");
        offer_large(&fixture, &large);
        while (counter_read(&counters(&fixture)->posts) < posts)
            lane_turn(fixture.lane);
        exporter_close(&fixture.exporter);
        assert_int_equal(fixture.exporter.results, 1);
        assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
        assert_false(fixture.exporter.outcome.is_permanent);
        pyroscope_server_destroy(fixture.server);
        lane_destroy(fixture.lane);
        clock_fake_stop();
    }
    large_fini(&large);
}

static void limits_are_those_of_a_server_as_it_comes(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "compression: none");
    const struct pyroscope_config *config = fixture.exporter.component->config;
    assert_int_equal(config->limits.max_samples, 16000);
    assert_int_equal(config->limits.max_bytes, 2 << 20);
    assert_int_equal(config->limits.max_stack_depth, 1000);
    assert_int_equal(config->limits.max_age_ns, 3600 * (uint64_t)NS_PER_S);
    assert_int_equal(config->limits.max_future_ns, 600 * (uint64_t)NS_PER_S);
    tear_down(&fixture);
}

static void deep_stacks_lose_their_leaves(void **state)
{
    static const struct sketch_sample sample = {
        .stack = "leaf;b;a;main", .values_count = 1, .values = {1}};
    static const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .time_ns = NOW_NS, .samples_count = 1, .samples = &sample};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "limits: {max_stack_depth: 2}");
    export_sketch(&fixture, &sketch);
    assert_non_null(strstr(fixture.server->stored[0].profile, "\n+0/a::7:0;+0/main::7:0;[1]"));
    assert_int_equal(counter_read(&counters(&fixture)->cut_stacks), 1);
    tear_down(&fixture);
}

/* No program has such stacks: their samples are dropped, not walked. */
static void endless_stacks_are_dropped_and_counted(void **state)
{
    enum { FRAMES = 20000 };
    char *endless = calloc(2 * FRAMES, 1);
    for (size_t i = 0; i < FRAMES; i++)
        memcpy(endless + 2 * i, i + 1 < FRAMES ? "f;" : "f", i + 1 < FRAMES ? 2 : 1);
    const struct sketch_sample samples[] = {
        {.stack = endless, .values_count = 1, .values = {1}},
        {.stack = "work;main", .values_count = 1, .values = {2}},
        {.stack = endless, .values_count = 1, .values = {4}},
    };
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .time_ns = NOW_NS, .samples_count = 3, .samples = samples};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    export_sketch(&fixture, &sketch);
    assert_int_equal(fixture.server->stored_count, 1);
    assert_int_equal(fixture.server->stored[0].sum, 2);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 2);
    assert_int_equal(fixture.exporter.outcome.too_large_items, 2);
    assert_int_equal(counter_read(&counters(&fixture)->too_large), 2);
    tear_down(&fixture);
    free(endless);
}

static void equal_times_of_a_series_are_moved_apart(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    for (size_t i = 0; i < 5; i++) {
        export_sketch(&fixture, &plain);
        clock_fake_advance(1);
    }
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(fixture.server->stored[i].time_ns, (int64_t)(NOW_NS + i));
    assert_int_equal(counter_read(&counters(&fixture)->moved), 4);
    tear_down(&fixture);
}

struct window_case {
    const char *options;
    int64_t offset_s;
    bool is_sent;
};

static const struct window_case window_cases[] = {
    {"", 0, true},
    {"", -3599, true},
    {"", -3601, false},
    {"", 599, true},
    {"", 601, false},
    {"limits: {max_age: 10s}", -11, false},
    {"limits: {max_age: 10s}", -9, true},
    {"limits: {max_ahead: 10s}", 11, false}, /* the old name */
    {"limits: {max_future: 10s}", 11, false},
};

static void times_that_the_server_would_refuse_are_not_sent(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(window_cases) / sizeof(window_cases[0]); i++) {
        const struct window_case *row = &window_cases[i];
        struct sketch_profile profile = CPU_PROFILE;
        const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
        struct fixture fixture;
        profile.time_ns = (uint64_t)((int64_t)NOW_NS + row->offset_s * NS_PER_S);
        set_up(&fixture, row->options);
        export_sketch(&fixture, &sketch);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        assert_int_equal(fixture.exporter.outcome.rejected_items, row->is_sent ? 0 : 1);
        assert_int_equal(fixture.exporter.outcome.invalid_items, row->is_sent ? 0 : 1);
        assert_int_equal(fixture.server->stored_count, row->is_sent ? 1 : 0);
        assert_int_equal(counter_read(&counters(&fixture)->too_old) +
                             counter_read(&counters(&fixture)->too_new),
                         row->is_sent ? 0 : 1);
        tear_down(&fixture);
    }
}

static void a_profile_without_a_time_gets_that_of_its_arrival(void **state)
{
    struct sketch_profile profile = CPU_PROFILE;
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    struct fixture fixture;
    (void)state;
    profile.time_ns = 0;
    set_up(&fixture, "limits: {max_age: 0s}");
    export_sketch(&fixture, &sketch);
    assert_true(fixture.server->requests == 1);
    tear_down(&fixture);
}

static void a_retry_sends_only_what_was_not_settled(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "concurrency: 1");
    fixture.server->steps[1] = 503;
    export_sketch(&fixture, &three);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_false(fixture.exporter.outcome.is_permanent);
    assert_int_equal(fixture.server->requests, 2);
    assert_int_equal(fixture.server->stored_count, 1);
    export_sketch(&fixture, &three);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.server->requests, 4);
    assert_int_equal(fixture.server->stored_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(fixture.server->stored[i].time_ns, (int64_t)NOW_NS);
    assert_int_equal(counter_read(&counters(&fixture)->repeated), 1);
    /* Settled as a whole: the same request is a new one from now on. */
    export_sketch(&fixture, &plain);
    assert_int_equal(fixture.server->stored_count, 4);
    tear_down(&fixture);
}

static void many_series_go_side_by_side_and_all_arrive(void **state)
{
    enum { PROFILES_COUNT = 40 };
    struct sketch_profile profiles[PROFILES_COUNT];
    const struct sketch sketch = {
        .resource = {"service.name=shop"}, .profiles_count = PROFILES_COUNT, .profiles = profiles};
    struct fixture fixture;
    (void)state;
    for (size_t i = 0; i < PROFILES_COUNT; i++)
        profiles[i] = (struct sketch_profile)CPU_PROFILE;
    set_up(&fixture, "concurrency: 8");
    for (size_t i = 5; i < 20; i++)
        fixture.server->steps[i] = 429;
    export_sketch(&fixture, &sketch);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_int_equal(fixture.exporter.outcome.code, STATUS_RESOURCE_EXHAUSTED);
    for (unsigned i = 0; i < 20 && fixture.exporter.outcome.verdict != ACCEPTED; i++)
        export_sketch(&fixture, &sketch);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.server->stored_count, PROFILES_COUNT);
    for (size_t i = 0; i < PROFILES_COUNT; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(fixture.server->stored[i].time_ns != fixture.server->stored[k].time_ns);
    tear_down(&fixture);
}

static void a_series_refused_for_good_costs_only_itself(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "concurrency: 1");
    fixture.server->steps[1] = 422;
    export_sketch(&fixture, &three);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 1);
    assert_int_equal(fixture.exporter.outcome.invalid_items, 0);
    assert_int_equal(fixture.server->stored_count, 2);
    assert_int_equal(counter_read(&counters(&fixture)->refused), 1);
    tear_down(&fixture);
}

struct status_case {
    unsigned status;
    enum status_code code;
    bool is_permanent;
};

static const struct status_case status_cases[] = {
    {400, STATUS_INVALID_ARGUMENT, true},  {401, STATUS_UNAUTHENTICATED, true},
    {403, STATUS_PERMISSION_DENIED, true}, {404, STATUS_UNIMPLEMENTED, true},
    {413, STATUS_INVALID_ARGUMENT, true},  {415, STATUS_UNKNOWN, true},
    {422, STATUS_UNKNOWN, true},           {429, STATUS_RESOURCE_EXHAUSTED, false},
    {500, STATUS_UNAVAILABLE, false},      {502, STATUS_UNAVAILABLE, false},
    {503, STATUS_UNAVAILABLE, false},      {504, STATUS_UNAVAILABLE, false},
};

static void statuses_are_classified(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(status_cases) / sizeof(status_cases[0]); i++) {
        struct fixture fixture;
        char expected[64];
        set_up(&fixture, "");
        fixture.server->steps[0] = status_cases[i].status;
        export_sketch(&fixture, &plain);
        assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
        assert_int_equal(fixture.exporter.outcome.code, status_cases[i].code);
        assert_int_equal(fixture.exporter.outcome.is_permanent, status_cases[i].is_permanent);
        snprintf(expected, sizeof(expected), "HTTP Status Code %u: {\"code\"",
                 status_cases[i].status);
        assert_non_null(strstr(fixture.exporter.message, expected));
        tear_down(&fixture);
    }
}

/* Of 429 and 503 alone, in both forms of RFC 9110 §10.2.3. */
static void the_hint_of_the_server_is_kept(void **state)
{
    static const struct {
        unsigned status;
        const char *retry_after;
        uint64_t hint_s;
    } rows[] = {
        {429, "7", 7},  {503, "Mon, 21 Sep 2026 14:13:50 GMT", 30},
        {503, NULL, 0}, {503, "soon", 0},
        {502, "7", 0},  {400, "7", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        set_up(&fixture, "");
        fixture.server->steps[0] = rows[i].status;
        fixture.server->step_retry_after = rows[i].retry_after;
        export_sketch(&fixture, &plain);
        assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
        assert_int_equal(fixture.exporter.outcome.retry_after_ns, rows[i].hint_s * NS_PER_S);
        tear_down(&fixture);
    }
}

struct header_case {
    const char *options;
    const char *authorization;
    const char *tenant;
};

static const struct header_case header_cases[] = {
    {"compression: none", "", ""},
    {"tenant: team-a", "", "team-a"},
    {"basic_auth: {username: user, password: 'pass:word'}", "Basic dXNlcjpwYXNzOndvcmQ=", ""},
    {"bearer_token: t0ken", "Bearer t0ken", ""},
    {"headers: {Authorization: mine, x-scope-orgid: b}", "mine", "b"},
};

static void credentials_and_tenant_go_along(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(header_cases) / sizeof(header_cases[0]); i++) {
        struct fixture fixture;
        set_up(&fixture, header_cases[i].options);
        export_sketch(&fixture, &plain);
        assert_int_equal(fixture.server->stored_count, 1);
        assert_string_equal(fixture.server->authorization, header_cases[i].authorization);
        assert_string_equal(fixture.server->tenant, header_cases[i].tenant);
        tear_down(&fixture);
    }
}

static void the_tenant_of_the_client_goes_along(void **state)
{
    static const struct {
        const char *options;
        const char *client;
        const char *tenant;
    } rows[] = {
        {"compression: gzip", "team-b", "team-b"},
        {"mode: ingest", "team-b", "team-b"},
        {"mode: otlp", "team-b", "team-b"},
        {"compression: gzip", "", ""},
        {"forward_tenant: false", "team-b", ""},
        {"tenant: team-a", "team-b", "team-a"},
        {"headers: {X-Scope-OrgID: team-c}", "team-b", "team-c"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        const struct client_metadata row = {.key = "x-scope-orgid", .value = rows[i].client};
        set_up(&fixture, rows[i].options);
        fixture.exporter.client = client_info_create("10.0.0.1", &row, 1);
        export_sketch(&fixture, &plain);
        assert_int_equal(fixture.server->requests, 1);
        assert_string_equal(fixture.server->tenant, rows[i].tenant);
        client_info_unref(fixture.exporter.client);
        tear_down(&fixture);
    }
}

static void a_tenant_that_no_server_takes_is_refused(void **state)
{
    char name[152];
    const struct client_metadata row = {.key = "x-scope-orgid", .value = name};
    struct fixture fixture;
    (void)state;
    memset(name, 'a', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    set_up(&fixture, "compression: gzip");
    fixture.exporter.client = client_info_create("10.0.0.1", &row, 1);
    export_sketch(&fixture, &plain);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_true(fixture.exporter.outcome.is_permanent);
    assert_int_equal(fixture.server->requests, 0);
    client_info_unref(fixture.exporter.client);
    tear_down(&fixture);
}

static void otlp_goes_as_it_is(void **state)
{
    static const struct {
        unsigned status;
        enum verdict verdict;
        bool is_permanent;
    } rows[] = {{200, ACCEPTED, false}, {400, REFUSED, true}, {503, REFUSED, false}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        set_up(&fixture, "mode: otlp, tenant: t");
        fixture.server->steps[0] = rows[i].status;
        export_sketch(&fixture, &three);
        assert_string_equal(fixture.server->path, "/v1development/profiles");
        assert_string_equal(fixture.server->content_type, "application/x-protobuf");
        assert_string_equal(fixture.server->tenant, "t");
        assert_int_equal(fixture.server->requests, 1);
        assert_int_equal(fixture.exporter.outcome.verdict, rows[i].verdict);
        assert_int_equal(fixture.exporter.outcome.is_permanent, rows[i].is_permanent);
        tear_down(&fixture);
    }
}

/* An attempt holds it as long as the server takes. */
static void the_index_of_the_dictionary_is_charged(void **state)
{
    enum { HEADER_BYTES = 3, STRINGS = 5000, STRINGS_BYTES = 2 * STRINGS };
    static uint8_t bytes[HEADER_BYTES + STRINGS_BYTES] = {0x12, (STRINGS_BYTES & 0x7f) | 0x80,
                                                          STRINGS_BYTES >> 7};
    static const struct pyroscope_config config = {.endpoint = ""};
    static const struct otlp_to_pprof_rules rules = {
        .labels = {.names_max = 1}, .samples_max = 1, .bytes_max = 65536, .depth_max = 1};
    const struct slice request = slice_of(bytes, sizeof(bytes));
    const uint64_t least = STRINGS * sizeof(uint32_t);
    (void)state;
    for (size_t i = 0; i < STRINGS; i++)
        bytes[HEADER_BYTES + 2 * i] = 0x2a; /* an empty string */
    for (uint64_t limit = least / 2; limit <= 1 << 20; limit *= 64) {
        struct budget budget;
        struct pyroscope_walk walk;
        budget_init(&budget, limit);
        bool is_open = pyroscope_walk_open(&walk, &config, &rules, request, &budget);
        assert_int_equal(is_open, limit > least);
        assert_true(!is_open || budget_used(&budget) >= least);
        pyroscope_walk_close(&walk);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
}

/* Profiles of one sample each, all of the same stack and with the same attribute (NULL: none). */
static struct slice profiles_of_one_stack(const char *stack, const char *attribute, size_t count)
{
    const struct sketch_sample sample = {
        .stack = stack, .values_count = 1, .values = {1}, .attributes = {attribute}};
    struct sketch_profile *profiles = mem_alloc(count * sizeof(profiles[0]));
    for (size_t i = 0; i < count; i++)
        profiles[i] = (struct sketch_profile){.type = {"cpu", "nanoseconds"},
                                              .time_ns = NOW_NS + i,
                                              .samples_count = 1,
                                              .samples = &sample};
    const struct sketch sketch = {
        .resource = {"service.name=shop"}, .profiles_count = count, .profiles = profiles};
    struct slice request = sketch_request(&sketch);
    mem_free(profiles);
    return request;
}

/* Each post repeats what its profile needs of the dictionary. */
static void what_profiles_repeat_is_bounded(void **state)
{
    enum { LONG_BYTES = 100000, ATTRIBUTE_BYTES = 3900, FUNCTIONS = 200, FUNCTION_BYTES = 40 };
    static char long_name[LONG_BYTES + 1];
    static char long_attribute[ATTRIBUTE_BYTES + 1];
    static char many_names[FUNCTIONS * FUNCTION_BYTES + 1];
    static const struct pyroscope_config config = {.endpoint = ""};
    static const struct number_set uncut;
    const struct otlp_to_pprof_rules rules = {.labels = {.names_max = 1, .value_bytes_max = 100},
                                              .samples_max = 16000,
                                              .bytes_max = 2 * MIB,
                                              .depth_max = 1000};
    const struct {
        const char *stack;
        const char *attribute;
        size_t profiles;
        bool is_taken;
    } rows[] = {{many_names, NULL, 2000, true},
                {"main", long_attribute, 2000, true},
                {long_name, NULL, 10, true},
                {long_name, NULL, 300, false}};
    (void)state;
    memset(long_name, 'x', LONG_BYTES);
    memset(long_attribute, 'x', ATTRIBUTE_BYTES);
    memcpy(long_attribute, "note=", 5);
    for (size_t i = 0; i < FUNCTIONS; i++)
        snprintf(many_names + i * FUNCTION_BYTES, FUNCTION_BYTES + 1, "%0*zu;", FUNCTION_BYTES - 1,
                 i);
    many_names[FUNCTIONS * FUNCTION_BYTES - 1] = '\0';
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pyroscope_walk walk;
        struct slice request =
            profiles_of_one_stack(rows[i].stack, rows[i].attribute, rows[i].profiles);
        uint64_t found = 0;
        assert_true(request.size < 1 * MIB); /* they share it */
        clock_fake_start(NOW_NS, NOW_NS);
        assert_true(pyroscope_walk_open(&walk, &config, &rules, request, NULL));
        while (pyroscope_walk_next(&walk, &uncut) == PYROSCOPE_PART)
            found += walk.items;
        assert_true((found == rows[i].profiles) == rows[i].is_taken);
        assert_int_equal(found + walk.conversion.figures.too_large, rows[i].profiles);
        pyroscope_walk_close(&walk);
        clock_fake_stop();
        mem_free((void *)(uintptr_t)request.data);
    }
}

static void a_small_batch_of_large_posts_gives_others_their_turn(void **state)
{
    enum { FUNCTIONS = 30, FUNCTION_BYTES = 3000, PROFILES_COUNT = 10 };
    static char names[FUNCTIONS * FUNCTION_BYTES + 1];
    struct fixture fixture;
    (void)state;
    memset(names, 'x', sizeof(names) - 1);
    for (size_t i = 1; i < FUNCTIONS; i++)
        snprintf(names + i * FUNCTION_BYTES, 4, ";%02zu", i);
    for (size_t i = 1; i < FUNCTIONS; i++)
        names[i * FUNCTION_BYTES + 3] = 'x';
    struct slice request = profiles_of_one_stack(names, NULL, PROFILES_COUNT);
    assert_true(request.size < HELPED_PROFILES_BYTES_MIN);
    set_up(&fixture, "concurrency: 16");
    exporter_offer(&fixture.exporter, request, PROFILES_COUNT);
    assert_true(counter_read(&counters(&fixture)->posts) < PROFILES_COUNT / 2);
    exporter_wait(&fixture.exporter, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(counter_read(&counters(&fixture)->posts), PROFILES_COUNT);
    tear_down(&fixture);
    mem_free((void *)(uintptr_t)request.data);
}

/* What the frames of a stack share is written once, and counts once. */
static void recursive_stacks_of_long_names_arrive(void **state)
{
    enum { NAME_BYTES = 3000, DEPTH = 900, STACK_BYTES = DEPTH * (NAME_BYTES + 1) };
    struct fixture fixture;
    char *stack = mem_alloc(STACK_BYTES);
    (void)state;
    memset(stack, 'x', STACK_BYTES);
    for (size_t i = 1; i < DEPTH; i++)
        stack[i * (NAME_BYTES + 1) - 1] = ';';
    stack[STACK_BYTES - 1] = '\0';
    struct slice request = profiles_of_one_stack(stack, NULL, 1);
    assert_true(request.size < 10 * NAME_BYTES);
    set_up(&fixture, "");
    exporter_export(&fixture.exporter, request, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(counter_read(&counters(&fixture)->too_large), 0);
    assert_int_equal(counter_read(&counters(&fixture)->posts), 1);
    tear_down(&fixture);
    mem_free((void *)(uintptr_t)request.data);
    mem_free(stack);
}

/* As SDKs push it, a number may have any string as its unit. */
static void a_unit_larger_than_a_post_holds_nothing_up(void **state)
{
    enum { UNIT_BYTES = 3 * MIB };
    struct fixture fixture;
    struct pprof_writer writer;
    struct arena arena;
    struct pprof pprof;
    struct error error = {.text = ""};
    struct series series = {.count = 0};
    struct buffer *request = NULL;
    const int64_t value = 1;
    char *unit = mem_alloc(UNIT_BYTES);
    (void)state;
    memset(unit, 'x', UNIT_BYTES);
    pprof_writer_init(&writer, NULL, 64 * MIB);
    uint32_t key = pprof_writer_string(&writer, slice_of_text("allocated"));
    const struct pprof_label label = {
        .key = key, .number = 64, .unit = pprof_writer_string(&writer, slice_of(unit, UNIT_BYTES))};
    const struct pprof_sample sample = {.values = &value, .labels = &label, .labels_count = 1};
    pprof_writer_value_type(&writer, PPROF_SAMPLE_TYPE, (struct pprof_value_type){key, key});
    pprof_writer_sample(&writer, &sample, 1);
    struct buffer *bytes = pprof_writer_take(&writer);
    arena_init(&arena, 64 * MIB);
    assert_true(pprof_read(&arena, buffer_slice(bytes), &pprof, &error));
    assert_true(series_add(&series, slice_of_text("__name__"), slice_of_text("process_cpu")));
    assert_true(series_add(&series, slice_of_text("service_name"), slice_of_text("shop")));
    assert_true(series_to_otlp(&series, &pprof, NULL, &request, NULL));
    set_up(&fixture, "");
    exporter_export(&fixture.exporter, buffer_slice(request), 1);
    assert_int_equal(counter_read(&counters(&fixture)->posts), 1);
    /* The stand-in takes no numbers as labels, which a server ignores. */
    assert_true(fixture.exporter.outcome.is_permanent);
    tear_down(&fixture);
    buffer_unref(request);
    buffer_unref(bytes);
    pprof_writer_fini(&writer);
    arena_clear(&arena);
    mem_free(unit);
}

static void a_short_budget_is_a_reason_to_try_again(void **state)
{
    unsigned refusals = 0;
    (void)state;
    for (uint64_t left = 0; left < 64 * 1024; left += 1000) {
        struct fixture fixture;
        set_up(&fixture, "concurrency: 1");
        struct budget *budget = &fixture.exporter.budget;
        const uint64_t limit = budget_limit(budget);
        uint64_t taken = limit - left;
        budget_take(budget, taken);
        export_sketch(&fixture, &three);
        if (fixture.exporter.outcome.verdict != ACCEPTED) {
            assert_false(fixture.exporter.outcome.is_permanent);
            refusals++;
        }
        budget_return(budget, taken);
        export_sketch(&fixture, &three);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        tear_down(&fixture);
    }
    assert_true(refusals > 5);
    assert_true(refusals < 60);
}

/* With a small request there may be thousands. */
static void what_an_attempt_takes_is_charged(void **state)
{
    enum { LEAST = 20000 }; /* its lists of labels are most of it */
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    struct slice body = sketch_request(&three);
    struct budget *budget = &fixture.exporter.budget;
    const uint64_t before = budget_used(budget);
    exporter_offer(&fixture.exporter, body, 3);
    assert_in_range(budget_used(budget) - before, LEAST, UINT64_MAX);
    exporter_wait(&fixture.exporter, 1);
    assert_int_equal(budget_used(budget), before);
    tear_down(&fixture);
    mem_free((void *)(uintptr_t)body.data);
}

/* Else nothing that waits would ever come free. */
static void a_budget_that_the_queue_fills_does_not_keep_it_waiting(void **state)
{
    static const char *const options[] = {"concurrency: 1", "mode: ingest", "mode: otlp"};
    (void)state;
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        struct fixture fixture;
        set_up(&fixture, options[i]);
        fixture.server->steps[0] = 200;
        struct budget *budget = &fixture.exporter.budget;
        uint64_t all = budget_limit(budget) + budget_limit(budget) / BUDGET_MARGIN_PART;
        budget_take(budget, all);
        export_sketch(&fixture, &three);
        exporter_wait_for_memory(&fixture.exporter);
        export_sketch(&fixture, &three);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        budget_return(budget, all);
        tear_down(&fixture);
    }
}

struct config_case {
    const char *yaml;
    const char *problem; /* part of it; NULL: it loads */
};

static const struct config_case config_cases[] = {
    {"{endpoint: 'http://h:4040'}", NULL},
    {"{endpoint: 'http://h', mode: otlp, trace_id: off, tenant: a, timeout: 1s, concurrency: 2,"
     " tls: {insecure: true}, limits: {max_age: 0s}, labels: {allow: [], drop: [a]},"
     " compression: none, sending_queue: {queue_size: 5}, retry_on_failure: {enabled: false}}",
     NULL},
    {"{}", "endpoint must be specified"},
    {"{endpoint: 'h:4040'}", "endpoint must be a valid URL"},
    {"{endpoint: 'http://h', mode: ingest, labels: {add: {a: b}}, min_server_version: '1'}", NULL},
    {"{endpoint: 'http://h', min_pyroscope: 1.19}", "min_pyroscope"},
    {"{endpoint: 'http://h', mode: jfr}", "jfr"},
    {"{endpoint: 'http://h', mode: otlp, labels: {add: {a: b}}}", "need mode: push or ingest"},
    {"{endpoint: 'http://h', labels: {add: {__x: b}}}", "which is reserved for the server"},
    {"{endpoint: 'http://h', labels: {names: {a: service_name}}}", "service_name is set from"},
    {"{endpoint: 'http://h', labels: {add: [a]}}", "must be a map"},
    {"{endpoint: 'http://h', labels: {add: {a: 5}}}", "put it in quotes"},
    {"{endpoint: 'http://h', basic_auth: {password: x}}", "needs a username"},
    {"{endpoint: 'http://h', basic_auth: {username: a}, bearer_token: b}", "exclude each other"},
    {"{endpoint: 'http://h', tenant: a, headers: {x-scope-orgid: b}}", "exclude each other"},
    {"{endpoint: 'http://h', concurrency: 0}", "concurrency"},
};

static void configurations_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(config_cases) / sizeof(config_cases[0]); i++) {
        char problems[4096];
        struct config *config;
        bool is_loaded = exporter_try_load(&pyroscope_exporter_factory, config_cases[i].yaml,
                                           &config, problems, sizeof(problems));
        print_message("   %s\n", is_loaded ? config_cases[i].yaml : problems);
        assert_int_equal(is_loaded, config_cases[i].problem == NULL);
        if (config_cases[i].problem != NULL)
            assert_non_null(strstr(problems, config_cases[i].problem));
        config_destroy(config);
    }
}

static void a_real_server_stores_what_is_sent(void **state)
{
    const char *url = getenv("PYROSCOPE_URL");
    struct exporter_fixture exporter;
    char yaml[512];
    (void)state;
    if (url == NULL)
        skip_because("PYROSCOPE_URL is not set");
    struct lane *lane = lane_create(0);
    struct sketch_profile profiles[3];
    memcpy(profiles, three_profiles, sizeof(profiles));
    for (size_t i = 0; i < 3; i++)
        profiles[i].time_ns = clock_wall_ns();
    const struct sketch sketch = {
        .resource = {"service.name=spanflame-test"}, .profiles_count = 3, .profiles = profiles};
    struct slice request = sketch_request(&sketch);
    snprintf(yaml, sizeof(yaml), "{endpoint: '%s'}", url);
    exporter_open(&exporter, lane, &pyroscope_exporter_factory, yaml, PROFILES);
    exporter_export(&exporter, request, 3);
    print_message("   %s\n", exporter.message);
    assert_int_equal(exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(exporter.outcome.rejected_items, 0);
    exporter_close(&exporter);
    lane_destroy(lane);
    mem_free((void *)(uintptr_t)request.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_follow_the_rules),
        cmocka_unit_test(attributes_of_profiles_are_no_labels),
        cmocka_unit_test(samples_are_summed_counted_linked_and_dropped),
        cmocka_unit_test(ids_in_any_spelling_are_the_two_labels_that_make_no_series),
        cmocka_unit_test(any_number_of_values_leaves_room_for_other_labels),
        cmocka_unit_test(trace_ids_can_be_left_out),
        cmocka_unit_test(each_service_of_the_samples_has_its_series),
        cmocka_unit_test(large_profiles_leave_in_parts_with_times_of_their_own),
        cmocka_unit_test(a_large_batch_arrives_as_its_profiles_do_alone),
        cmocka_unit_test(stopping_waits_for_the_helper),
        cmocka_unit_test(limits_are_those_of_a_server_as_it_comes),
        cmocka_unit_test(deep_stacks_lose_their_leaves),
        cmocka_unit_test(endless_stacks_are_dropped_and_counted),
        cmocka_unit_test(equal_times_of_a_series_are_moved_apart),
        cmocka_unit_test(times_that_the_server_would_refuse_are_not_sent),
        cmocka_unit_test(a_profile_without_a_time_gets_that_of_its_arrival),
        cmocka_unit_test(a_retry_sends_only_what_was_not_settled),
        cmocka_unit_test(many_series_go_side_by_side_and_all_arrive),
        cmocka_unit_test(a_series_refused_for_good_costs_only_itself),
        cmocka_unit_test(statuses_are_classified),
        cmocka_unit_test(the_hint_of_the_server_is_kept),
        cmocka_unit_test(credentials_and_tenant_go_along),
        cmocka_unit_test(the_tenant_of_the_client_goes_along),
        cmocka_unit_test(a_tenant_that_no_server_takes_is_refused),
        cmocka_unit_test(otlp_goes_as_it_is),
        cmocka_unit_test(the_index_of_the_dictionary_is_charged),
        cmocka_unit_test(what_profiles_repeat_is_bounded),
        cmocka_unit_test(a_small_batch_of_large_posts_gives_others_their_turn),
        cmocka_unit_test(recursive_stacks_of_long_names_arrive),
        cmocka_unit_test(a_unit_larger_than_a_post_holds_nothing_up),
        cmocka_unit_test(a_short_budget_is_a_reason_to_try_again),
        cmocka_unit_test(what_an_attempt_takes_is_charged),
        cmocka_unit_test(a_budget_that_the_queue_fills_does_not_keep_it_waiting),
        cmocka_unit_test(configurations_are_checked),
        cmocka_unit_test(a_real_server_stores_what_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
