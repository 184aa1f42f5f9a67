/* SPDX-License-Identifier: Apache-2.0 */
/* What OTLP exporters leave out of profiles, and in which layout the rest leaves. */
#include "exporters/shared/profile_outgoing.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/config/config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_merge.h"
#include "src/profiles/otlp/profile_transcode.h"
#include "tests/support/profile_sketch.h"
#include "tests/support/scripted_backend.h"
#include "tests/unit/exporters/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

extern const struct component_factory otlp_http_exporter_factory;

static const struct backend_step ok[] = {
    {.response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}};

struct fixture {
    struct lane *lane;
    struct scripted_backend *backend;
    struct exporter_fixture exporter;
};

static void set_up_with(struct fixture *fixture, const struct backend_step *steps, size_t count,
                        const char *options)
{
    char yaml[512];
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 1790000000 * (uint64_t)NS_PER_S);
    fixture->lane = lane_create(0);
    fixture->backend = scripted_backend_create(fixture->lane, steps, count);
    snprintf(yaml, sizeof(yaml), "{endpoint: '%s', compression: none%s}",
             scripted_backend_url(fixture->backend), options);
    exporter_open(&fixture->exporter, fixture->lane, &otlp_http_exporter_factory, yaml, PROFILES);
}

static void set_up(struct fixture *fixture, const char *options)
{
    set_up_with(fixture, ok, 1, options);
}

static void tear_down(struct fixture *fixture)
{
    exporter_close(&fixture->exporter);
    scripted_backend_destroy(fixture->backend);
    lane_destroy(fixture->lane);
    clock_fake_stop();
}

static const struct sketch_sample samples[] = {
    {.stack = "work;main",
     .values_count = 2,
     .values = {3, 4},
     .attributes = {"a=b", "c=#5"},
     .trace_id = "0123456789abcdef",
     .span_id = "01234567"},
    {.stack = "idle;main", .values_count = 1, .values = {9}},
};
static const struct sketch_profile profile = {
    .type = {"cpu", "nanoseconds"}, .time_ns = 7, .samples_count = 2, .samples = samples};
static const struct sketch plain = {
    .resource = {"service.name=s"}, .profiles_count = 1, .profiles = &profile};

static const struct opaque_profile_pair labels[] = {
    {{(const uint8_t *)"service.name", 12}, {(const uint8_t *)"shop", 4}},
    {{(const uint8_t *)"region", 6}, {(const uint8_t *)"eu", 2}},
};
static const struct opaque_profile upload = {.format = {(const uint8_t *)"jfr", 3},
                                             .payload = {(const uint8_t *)"FLR", 3},
                                             .labels = labels,
                                             .labels_count = 2};

/* The plain request followed by so many files, or the files without it. */
static struct buffer *request_with(unsigned uploads, bool has_plain)
{
    struct slice first = sketch_request(&plain);
    struct buffer *file = opaque_profile_write(&upload, NULL);
    struct profile_merge merge;
    profile_merge_init(&merge, NULL);
    for (unsigned i = has_plain ? 0 : 1; i <= uploads; i++) {
        struct profile_source source;
        assert_true(profile_source_open(&source, i == 0 ? first : buffer_slice(file), &merge));
        assert_true(profile_merge_take(&merge, &source, (struct otlp_limit){.items_max = 0}));
        profile_source_close(&source);
    }
    struct buffer *request = profile_merge_finish(&merge, NULL);
    profile_merge_fini(&merge);
    buffer_unref(file);
    mem_free((void *)(uintptr_t)first.data);
    return request;
}

static void check_sent(const struct fixture *fixture, const struct buffer *expected)
{
    size_t size;
    const char *body = scripted_backend_body(fixture->backend, &size);
    assert_int_equal(size, expected->size);
    assert_memory_equal(body, expected->data, size);
}

static void files_of_jfr_are_left_out_and_counted(void **state)
{
    struct buffer *mixed = request_with(2, true);
    struct buffer *rest = request_with(0, true);
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    exporter_export(&fixture.exporter, buffer_slice(mixed), 4);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 2);
    assert_int_equal(fixture.exporter.outcome.invalid_items, 2);
    assert_int_equal(scripted_backend_requests(fixture.backend), 1);
    check_sent(&fixture, rest);
    tear_down(&fixture);
    buffer_unref(rest);
    buffer_unref(mixed);
}

static uint64_t counted(const struct fixture *fixture, const char *name)
{
    const struct component *exporter = fixture->exporter.component;
    for (const struct counter_row *row = exporter->factory->counters; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return counter_read(
                (const counter *)(const void *)((const char *)exporter->counters + row->offset));
    fail_msg("no counter %s", name);
    return 0;
}

static void retries_count_files_once(void **state)
{
    static const struct backend_step busy[] = {
        {.response = "HTTP/1.1 503 S\r\nContent-Length: 0\r\n\r\n"},
        {.response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}};
    struct buffer *mixed = request_with(2, true);
    struct fixture fixture;
    (void)state;
    set_up_with(&fixture, busy, 2, "");
    exporter_export(&fixture.exporter, buffer_slice(mixed), 4);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    exporter_export(&fixture.exporter, buffer_slice(mixed), 4);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 2);
    assert_int_equal(counted(&fixture, "spanflame_exporter_unconvertible_profiles"), 2);
    tear_down(&fixture);
    buffer_unref(mixed);
}

static void a_request_of_files_alone_is_not_sent(void **state)
{
    struct buffer *files = request_with(3, false);
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    exporter_export(&fixture.exporter, buffer_slice(files), 3);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 3);
    assert_int_equal(fixture.exporter.outcome.invalid_items, 3);
    assert_int_equal(scripted_backend_requests(fixture.backend), 0);
    tear_down(&fixture);
    buffer_unref(files);
}

static void everything_else_leaves_as_it_came(void **state)
{
    struct buffer *request = request_with(0, true);
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    exporter_export(&fixture.exporter, buffer_slice(request), 2);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 0);
    check_sent(&fixture, request);
    tear_down(&fixture);
    buffer_unref(request);
}

static void profiles_leave_in_the_layout_that_is_asked_for(void **state)
{
    struct buffer *mixed = request_with(1, true);
    struct buffer *rest = request_with(0, true);
    struct fixture fixture;
    size_t size;
    (void)state;
    set_up(&fixture, ", proto_version: '1.9'");
    exporter_export(&fixture.exporter, buffer_slice(mixed), 3);
    const char *body = scripted_backend_body(fixture.backend, &size);
    assert_int_equal(profile_layout_of(slice_of(body, size)), LAYOUT_1_9);
    struct buffer *back = profile_transcode(LAYOUT_1_9, slice_of(body, size), NULL);
    assert_int_equal(back->size, rest->size);
    assert_memory_equal(back->data, rest->data, rest->size);
    buffer_unref(back);
    tear_down(&fixture);
    buffer_unref(rest);
    buffer_unref(mixed);
}

static void a_short_budget_is_a_reason_to_try_again(void **state)
{
    struct buffer *mixed = request_with(1, true);
    struct fixture fixture;
    (void)state;
    set_up(&fixture, ", proto_version: '1.9'");
    uint64_t limit = budget_limit(&fixture.exporter.budget);
    uint64_t all = limit + limit / BUDGET_MARGIN_PART;
    budget_take(&fixture.exporter.budget, all + limit / BUDGET_EXPORT_PART);
    exporter_export(&fixture.exporter, buffer_slice(mixed), 3);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_false(fixture.exporter.outcome.is_permanent);
    budget_return(&fixture.exporter.budget, limit / BUDGET_EXPORT_PART);
    exporter_wait_for_memory(&fixture.exporter);
    exporter_export(&fixture.exporter, buffer_slice(mixed), 3);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    budget_return(&fixture.exporter.budget, all);
    tear_down(&fixture);
    buffer_unref(mixed);
}

static void json_knows_only_the_newest_layout(void **state)
{
    struct config *config;
    char problems[1024];
    (void)state;
    assert_false(
        exporter_try_load(&otlp_http_exporter_factory,
                          "{profiles_endpoint: 'http://h/', encoding: json, proto_version: '1.9'}",
                          &config, problems, sizeof(problems)));
    assert_non_null(strstr(problems, "proto_version"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_jfr_are_left_out_and_counted),
        cmocka_unit_test(retries_count_files_once),
        cmocka_unit_test(a_request_of_files_alone_is_not_sent),
        cmocka_unit_test(everything_else_leaves_as_it_came),
        cmocka_unit_test(profiles_leave_in_the_layout_that_is_asked_for),
        cmocka_unit_test(a_short_budget_is_a_reason_to_try_again),
        cmocka_unit_test(json_knows_only_the_newest_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
