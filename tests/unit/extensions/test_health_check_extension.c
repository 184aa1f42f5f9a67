/* SPDX-License-Identifier: Apache-2.0 */
/* health_check before, while and after the service is ready, over a real socket. */
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/stop_latch.h"
#include "src/config/field.h"
#include "src/core/component.h"
#include "tests/support/loopback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GET(path)      "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define COUNT_OF(rows) (sizeof(rows) / sizeof((rows)[0]))

extern const struct component_factory health_check_extension_factory;

static const uint64_t ready_wall_ns = (uint64_t)784111777 * NS_PER_S;
static bool service_is_ready;

static bool is_ready(const struct service_view *view)
{
    assert_non_null(view);
    return service_is_ready;
}

static uint64_t ready_since(const struct service_view *view)
{
    assert_non_null(view);
    return ready_wall_ns;
}

static const struct service_view service = {.is_ready = is_ready,
                                            .ready_since_wall_ns = ready_since};

/* One instance with the string defaults of its option table, listening on a free port. */
struct rig {
    struct lane *lane;
    struct budget budget;
    void *config;
    struct component *component;
    struct stop_latch latch;
    bool has_stopped;
    char address[32];
};

static const struct config_field *find_field(const char *key)
{
    const struct config_field *field = health_check_extension_factory.fields;
    while (field->key != NULL && strcmp(field->key, key) != 0)
        field++;
    assert_non_null(field->key);
    return field;
}

static void *field_of(void *config, const char *key)
{
    return (char *)config + find_field(key)->offset;
}

static void set_text(void *config, const char *key, const char *text)
{
    *(const char **)field_of(config, key) = text;
}

static void *make_config(void)
{
    void *config = mem_zalloc(health_check_extension_factory.config_size);
    for (const struct config_field *field = health_check_extension_factory.fields;
         field->key != NULL; field++)
        if (field->type == CONFIG_TYPE_TEXT)
            set_text(config, field->key, field->default_text);
    *(bool *)field_of(config, "keep_alives_enabled") = true;
    return config;
}

static void set_bodies(void *config, const char *healthy, const char *unhealthy)
{
    const struct config_field *section = find_field("response_body");
    *(bool *)((char *)config + section->enabled_offset) = true;
    const char **bodies = (const char **)((char *)config + section->offset);
    bodies[0] = healthy;
    bodies[1] = unhealthy;
}

static int start_with(void **state, void (*adjust)(void *config))
{
    struct rig *rig = mem_zalloc(sizeof(*rig));
    clock_fake_start(NS_PER_S, ready_wall_ns);
    service_is_ready = false;
    rig->lane = lane_create(0);
    budget_init(&rig->budget, 1 << 20);
    rig->config = make_config();
    loopback_find_port(rig->address);
    set_text(rig->config, "endpoint", rig->address);
    if (adjust != NULL)
        adjust(rig->config);
    rig->component = mem_zalloc(health_check_extension_factory.instance_size);
    *rig->component = (struct component){
        .factory = &health_check_extension_factory,
        .id = "health_check",
        .config = rig->config,
        .lane = rig->lane,
        .budget = &rig->budget,
        .service = &service,
    };
    struct error error;
    assert_true(health_check_extension_factory.check(rig->config, &error));
    assert_true(health_check_extension_factory.create(rig->component, &error));
    if (!health_check_extension_factory.start(rig->component, &error))
        fail_msg("%s", error.text);
    *state = rig;
    return 0;
}

static int start(void **state)
{
    return start_with(state, NULL);
}

static void add_headers(void *config)
{
    static const struct config_pair pairs[] = {{"X-Probe", "yes"}, {"cache-control", "no-store"}};
    *(struct config_pairs *)field_of(config, "response_headers") =
        (struct config_pairs){.count = 2, .pairs = pairs};
}

static int start_with_headers(void **state)
{
    return start_with(state, add_headers);
}

static void on_stopped(void *arg)
{
    struct rig *rig = arg;
    rig->has_stopped = true;
}

static int finish(void **state)
{
    struct rig *rig = *state;
    rig->latch = (struct stop_latch){.fn = on_stopped, .arg = rig};
    stop_latch_hold(&rig->latch);
    rig->component->stopping = &rig->latch;
    health_check_extension_factory.stop(rig->component);
    loopback_turn_until(rig->lane, &rig->has_stopped);
    health_check_extension_factory.destroy(rig->component);
    mem_free(rig->component);
    mem_free(rig->config);
    lane_destroy(rig->lane);
    assert_int_equal(budget_used(&rig->budget), 0);
    budget_fini(&rig->budget);
    mem_free(rig);
    clock_fake_stop();
    return 0;
}

static void expect(struct rig *rig, const char *request, const char *status, const char *body)
{
    struct loopback *client = loopback_connect(rig->lane, rig->address);
    loopback_send(client, request);
    loopback_expect(client, status);
    loopback_expect(client, body);
    loopback_close(client);
}

static void readiness_is_reported_as_json(void **state)
{
    struct rig *rig = *state;
    static const char not_available[] = "Content-Type: application/json\r\n"
                                        "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                                        "Content-Length: 78\r\n\r\n"
                                        "{\"status\":\"Server not available\","
                                        "\"upSince\":\"0001-01-01T00:00:00Z\",\"uptime\":\"\"}";
    expect(rig, GET("/"), "HTTP/1.1 503 Service Unavailable\r\n", not_available);
    service_is_ready = true;
    clock_fake_advance((uint64_t)62300 * NS_PER_MS);
    expect(rig, GET("/"), "HTTP/1.1 200 OK\r\n",
           "{\"status\":\"Server available\",\"upSince\":\"1994-11-06T08:49:37Z\","
           "\"uptime\":\"1m2.3s\"}");
    expect(rig, "POST /any HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
           "HTTP/1.1 200 OK\r\n", "Server available");
    service_is_ready = false;
    expect(rig, GET("/"), "HTTP/1.1 503 ", "Server not available");
}

static void uptime_is_printed_as_go_prints_it(void **state)
{
    struct rig *rig = *state;
    static const struct {
        uint64_t at_ns;
        const char *text;
    } rows[] = {
        {0, "\"0ms\""},
        {1500 * NS_PER_US, "\"1.5ms\""},
        {NS_PER_S, "\"1s\""},
        {(uint64_t)60 * NS_PER_S, "\"1m0s\""},
        {(uint64_t)3600 * NS_PER_S, "\"1h0m0s\""},
        {(uint64_t)3661 * NS_PER_S + 500 * NS_PER_MS, "\"1h1m1.5s\""},
        {(uint64_t)90000 * NS_PER_S, "\"25h0m0s\""},
    };
    uint64_t now_ns = 0;
    service_is_ready = true;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        clock_fake_advance(rows[i].at_ns - now_ns);
        now_ns = rows[i].at_ns;
        expect(rig, GET("/"), "200 OK", rows[i].text);
    }
}

static void fixed_bodies_replace_the_json(void **state)
{
    struct rig *rig = *state;
    set_bodies(rig->config, "I'm OK", "I'm not");
    expect(rig, GET("/"), "503 ", "Content-Type: text/plain; charset=utf-8\r\n");
    expect(rig, GET("/"), "503 ", "\r\n\r\nI'm not");
    service_is_ready = true;
    expect(rig, GET("/"), "200 ", "\r\n\r\nI'm OK");
}

static void a_path_of_its_own_leaves_404_for_others(void **state)
{
    struct rig *rig = *state;
    service_is_ready = true;
    set_text(rig->config, "path", "/health");
    expect(rig, GET("/health"), "200 ", "Server available");
    expect(rig, GET("/health?full=1"), "200 ", "Server available");
    expect(rig, GET("/health/x"), "404 ", "404 page not found");
    expect(rig, GET("/"), "404 ", "404 page not found");
    expect(rig, GET("/"), "404 ", "X-Content-Type-Options: nosniff");
    set_text(rig->config, "path", "/health/");
    expect(rig, GET("/health/x"), "200 ", "Server available");
}

static void it_responds_when_the_budget_is_exhausted(void **state)
{
    struct rig *rig = *state;
    service_is_ready = true;
    const uint64_t others = budget_limit(&rig->budget) * 2;
    budget_take(&rig->budget, others);
    expect(rig, GET("/"), "200 OK", "Server available");
    assert_true(budget_used(&rig->budget) <= others + HTTP_PROBES_BYTES);
    budget_return(&rig->budget, others);
}

static void headers_of_the_user_are_sent(void **state)
{
    struct rig *rig = *state;
    expect(rig, GET("/"), "X-Probe: yes\r\n", "Cache-Control: no-store\r\n");
}

static void wrong_settings_are_named(void **state)
{
    static const struct {
        const char *key;
        const char *text;
        const char *error;
    } rows[] = {
        {"endpoint", "", "missing, expected host:port"},
        {"path", "health", "found \"health\", expected a path that starts with /"},
        {"transport", "udp", "unsupported transport type \"udp\", expected tcp, tcp4, tcp6"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        void *config = make_config();
        struct error error;
        set_text(config, rows[i].key, rows[i].text);
        assert_false(health_check_extension_factory.check(config, &error));
        assert_non_null(strstr(error.text, rows[i].error));
        mem_free(config);
    }
}

static void a_taken_port_fails_the_start(void **state)
{
    struct rig *rig = *state;
    struct component *second = mem_zalloc(health_check_extension_factory.instance_size);
    *second = *rig->component;
    struct error error;
    assert_true(health_check_extension_factory.create(second, &error));
    assert_false(health_check_extension_factory.start(second, &error));
    char wanted[192];
    snprintf(wanted, sizeof(wanted),
             "failed to bind to address %s: listen tcp %s: bind: address already in use",
             rig->address, rig->address);
    assert_string_equal(error.text, wanted);
    health_check_extension_factory.destroy(second);
    mem_free(second);
}

#define LIVE(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE(readiness_is_reported_as_json),
        LIVE(uptime_is_printed_as_go_prints_it),
        LIVE(fixed_bodies_replace_the_json),
        LIVE(a_path_of_its_own_leaves_404_for_others),
        LIVE(it_responds_when_the_budget_is_exhausted),
        cmocka_unit_test_setup_teardown(headers_of_the_user_are_sent, start_with_headers, finish),
        cmocka_unit_test(wrong_settings_are_named),
        LIVE(a_taken_port_fails_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
