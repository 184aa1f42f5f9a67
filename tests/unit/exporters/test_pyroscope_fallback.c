/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that a Pyroscope server's OTLP endpoint cannot name, sent to it by otlp_http: against
 * the server's stand-in, and against other back-ends. */
#include "exporters/otlp_http/pyroscope_fallback.h"

#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/config/config.h"
#include "src/core/component.h"
#include "tests/support/profile_sketch.h"
#include "tests/support/pyroscope_server.h"
#include "tests/support/scripted_backend.h"
#include "tests/unit/exporters/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

extern const struct component_factory otlp_http_exporter_factory;

#define NOW_NS  ((uint64_t)1790000000 * NS_PER_S)
#define OTLP_OF "otlp 1790000000000000000, 1 samples"
#define NO_NAME "invalid metric name"

static const struct sketch_sample one_sample[] = {
    {.stack = "work;main", .values_count = 1, .values = {3}},
};

/* As async-profiler writes it: neither period type, nor period, nor service. */
#define BARE_PROFILE                                                                               \
    {                                                                                              \
        .type = {"itimer", "count"}, .time_ns = NOW_NS, .duration_ns = 5, .samples_count = 1,      \
        .samples = one_sample                                                                      \
    }

static const struct sketch_profile profiles[] = {
    BARE_PROFILE,
    {.type = {"cpu", "nanoseconds"},
     .period_type = {"cpu", "nanoseconds"},
     .period = 10,
     .time_ns = NOW_NS,
     .duration_ns = 5,
     .samples_count = 1,
     .samples = one_sample},
};
static const struct sketch bare = {.profiles_count = 1, .profiles = profiles};
static const struct sketch named = {.profiles_count = 1, .profiles = profiles + 1};
static const struct sketch both = {.profiles_count = 2, .profiles = profiles};

struct fixture {
    struct lane *lane;
    struct pyroscope_server *server;
    struct exporter_fixture exporter;
};

static void set_up(struct fixture *fixture, const char *options)
{
    char yaml[512];
    clock_fake_start(1000 * (uint64_t)NS_PER_S, NOW_NS);
    fixture->lane = lane_create(0);
    fixture->server = pyroscope_server_create(fixture->lane);
    snprintf(yaml, sizeof(yaml), "{endpoint: '%s'%s}", fixture->server->url, options);
    exporter_open(&fixture->exporter, fixture->lane, &otlp_http_exporter_factory, yaml, PROFILES);
}

static void tear_down(struct fixture *fixture)
{
    exporter_close(&fixture->exporter);
    pyroscope_server_destroy(fixture->server);
    lane_destroy(fixture->lane);
    clock_fake_stop();
}

static void export_sketch(struct exporter_fixture *exporter, const struct sketch *sketch)
{
    struct slice request = sketch_request(sketch);
    exporter->message[0] = '\0';
    exporter_export(exporter, request, sketch->profiles_count);
    mem_free((void *)(uintptr_t)request.data);
}

static bool has_stored(const struct pyroscope_server *server, const char *labels, const char *text)
{
    for (size_t i = 0; i < server->stored_count; i++)
        if (strstr(server->stored[i].labels, labels) != NULL &&
            strstr(server->stored[i].profile, text) != NULL)
            return true;
    return false;
}

static void expect_all_stored(const struct fixture *fixture)
{
    assert_int_equal(fixture->exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture->exporter.outcome.rejected_items, 0);
    assert_int_equal(fixture->server->stored_count, 2);
    assert_true(has_stored(fixture->server, "__name__=\"cpu\"", OTLP_OF));
    assert_true(has_stored(fixture->server,
                           "__name__=\"process_cpu\", service_name=\"unknown_service\"", "work"));
}

static void what_otlp_cannot_name_goes_by_push(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    export_sketch(&fixture.exporter, &both);
    expect_all_stored(&fixture);
    assert_int_equal(fixture.server->requests, 2); /* one is stored of the first, then a Push */
    clock_fake_advance(NS_PER_S);
    export_sketch(&fixture.exporter, &bare);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.server->requests, 3); /* it is known by now */
    assert_string_equal(fixture.server->path, "/push.v1.PusherService/Push");
    export_sketch(&fixture.exporter, &named);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_string_equal(fixture.server->path, "/v1development/profiles");
    tear_down(&fixture);
}

/* Else a batch would be lost that the server can have. */
static void a_budget_that_the_queue_fills_does_not_hide_names(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    fixture.exporter.has_two_parts = true;
    struct budget *budget = &fixture.exporter.budget;
    uint64_t all = budget_limit(budget) + budget_limit(budget) / BUDGET_MARGIN_PART;
    budget_take(budget, all);
    export_sketch(&fixture.exporter, &both);
    exporter_wait_for_memory(&fixture.exporter);
    export_sketch(&fixture.exporter, &both);
    expect_all_stored(&fixture);
    clock_fake_advance(NS_PER_S);
    export_sketch(&fixture.exporter, &bare);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_string_equal(fixture.server->path, "/push.v1.PusherService/Push");
    budget_return(budget, all);
    tear_down(&fixture);
}

/* A panic in the server, say: then its response to an empty Push decides. */
static void a_server_whose_words_do_not_tell_is_asked(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, ", compression: none");
    fixture.server->steps[0] = 500;
    export_sketch(&fixture.exporter, &both);
    expect_all_stored(&fixture);
    assert_int_equal(fixture.server->requests, 4);
    tear_down(&fixture);
}

static void older_servers_get_all_of_it_by_push(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, ", proto_version: '1.9'");
    fixture.server->steps[0] = 500;
    export_sketch(&fixture.exporter, &both);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.server->stored_count, 2);
    assert_false(has_stored(fixture.server, "", "otlp"));
    tear_down(&fixture);
}

static void what_push_may_take_later_is_sent_again(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    fixture.server->steps[1] = 503;
    export_sketch(&fixture.exporter, &both);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_false(fixture.exporter.outcome.is_permanent);
    export_sketch(&fixture.exporter, &both);
    expect_all_stored(&fixture);
    tear_down(&fixture);
}

static void the_road_can_be_switched_off(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, ", pyroscope: {enabled: false}");
    export_sketch(&fixture.exporter, &bare);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_true(fixture.exporter.outcome.is_permanent);
    assert_non_null(strstr(fixture.exporter.message, NO_NAME));
    assert_int_equal(fixture.server->requests, 1);
    tear_down(&fixture);
}

/* It is probed once, and its first refusal counts. */
static void other_back_ends_are_left_alone(void **state)
{
    static const struct backend_step steps[] = {
        {.response = "HTTP/1.1 400 B\r\nContent-Length: 9\r\n\r\nno thanks"},
        {.response = "HTTP/1.1 404 N\r\nContent-Length: 7\r\n\r\nno page"},
        {.response = "HTTP/1.1 400 B\r\nContent-Length: 9\r\n\r\nno thanks"},
    };
    struct exporter_fixture exporter;
    char yaml[256];
    (void)state;
    clock_fake_start(1000 * (uint64_t)NS_PER_S, NOW_NS);
    struct lane *lane = lane_create(0);
    struct scripted_backend *backend = scripted_backend_create(lane, steps, 3);
    snprintf(yaml, sizeof(yaml), "{endpoint: '%s'}", scripted_backend_url(backend));
    exporter_open(&exporter, lane, &otlp_http_exporter_factory, yaml, PROFILES);
    for (unsigned i = 0; i < 2; i++) {
        export_sketch(&exporter, &bare);
        assert_int_equal(exporter.outcome.verdict, REFUSED);
        assert_int_equal(exporter.outcome.code, STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(exporter.message, "no thanks"));
        assert_int_equal(scripted_backend_requests(backend), i == 0 ? 2 : 3);
    }
    exporter_close(&exporter);
    scripted_backend_destroy(backend);
    lane_destroy(lane);
    clock_fake_stop();
}

static void urls_of_pyroscope_are_known_by_their_looks(void **state)
{
    static const struct {
        const char *url;
        bool is_likely;
    } rows[] = {
        {"http://localhost:4040", true},
        {"http://pyroscope-distributor.svc:80/v1development/profiles", true},
        {"https://profiles-prod-001.grafana.net", true},
        {"http://localhost:4318", false},
        {"https://otlp.example.com/pyroscope", false},
        {"no URL", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (pyroscope_fallback_is_likely(rows[i].url) != rows[i].is_likely)
            fail_msg("%s", rows[i].url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_otlp_cannot_name_goes_by_push),
        cmocka_unit_test(a_budget_that_the_queue_fills_does_not_hide_names),
        cmocka_unit_test(a_server_whose_words_do_not_tell_is_asked),
        cmocka_unit_test(older_servers_get_all_of_it_by_push),
        cmocka_unit_test(what_push_may_take_later_is_sent_again),
        cmocka_unit_test(the_road_can_be_switched_off),
        cmocka_unit_test(other_back_ends_are_left_alone),
        cmocka_unit_test(urls_of_pyroscope_are_known_by_their_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
