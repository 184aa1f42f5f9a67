/* SPDX-License-Identifier: Apache-2.0 */
/* pprof over a real socket: its pages, and that they take no memory which the budget does not have.
 */
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/base/stop_latch.h"
#include "src/config/field.h"
#include "src/core/component.h"
#include "tests/support/loopback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

extern const struct component_factory pprof_extension_factory;

struct rig {
    struct lane *lane;
    struct budget budget;
    void *config;
    struct component *component;
    struct stop_latch latch;
    bool has_stopped;
    char address[32];
};

/* The string defaults of its option table, on a free port. */
static void *make_config(const char *address)
{
    void *config = mem_zalloc(pprof_extension_factory.config_size);
    for (const struct config_field *field = pprof_extension_factory.fields; field->key != NULL;
         field++)
        if (field->type == CONFIG_TYPE_TEXT)
            *(const char **)((char *)config + field->offset) =
                strcmp(field->key, "endpoint") == 0 ? address : field->default_text;
    return config;
}

static int start(void **state)
{
    struct rig *rig = mem_zalloc(sizeof(*rig));
    struct error error;
    clock_fake_start(NS_PER_S, NS_PER_S);
    rig->lane = lane_create(0);
    budget_init(&rig->budget, 1 << 20);
    loopback_find_port(rig->address);
    rig->config = make_config(rig->address);
    rig->component = mem_zalloc(pprof_extension_factory.instance_size);
    *rig->component = (struct component){
        .factory = &pprof_extension_factory,
        .id = "pprof",
        .config = rig->config,
        .lane = rig->lane,
        .budget = &rig->budget,
    };
    assert_true(pprof_extension_factory.create(rig->component, &error));
    if (!pprof_extension_factory.start(rig->component, &error))
        fail_msg("%s", error.text);
    *state = rig;
    return 0;
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
    pprof_extension_factory.stop(rig->component);
    loopback_turn_until(rig->lane, &rig->has_stopped);
    pprof_extension_factory.destroy(rig->component);
    mem_free(rig->component);
    mem_free(rig->config);
    lane_destroy(rig->lane);
    assert_int_equal(budget_used(&rig->budget), 0);
    budget_fini(&rig->budget);
    mem_free(rig);
    clock_fake_stop();
    return 0;
}

static void pages_are_served_or_named(void **state)
{
    static const struct {
        const char *request;
        const char *status;
    } rows[] = {
        {GET("/debug/pprof/"), "HTTP/1.1 200 "},
        {GET("/debug/pprof/cmdline"), "HTTP/1.1 200 "},
        {GET("/debug/pprof/goroutine"), "HTTP/1.1 404 "},
    };
    struct rig *rig = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct loopback *client = loopback_connect(rig->lane, rig->address);
        loopback_send(client, rows[i].request);
        loopback_expect(client, rows[i].status);
        loopback_close(client);
    }
}

/* Unlike health_check's. */
static void an_exhausted_budget_is_not_exceeded(void **state)
{
    struct rig *rig = *state;
    uint64_t taken = 0;
    while (budget_try_take_margin(&rig->budget, 1024))
        taken += 1024;
    struct loopback *client = loopback_connect(rig->lane, rig->address);
    loopback_expect_end(client);
    assert_int_equal(budget_used(&rig->budget), taken);
    loopback_close(client);
    budget_return(&rig->budget, taken);
    client = loopback_connect(rig->lane, rig->address);
    loopback_send(client, GET("/debug/pprof/"));
    loopback_expect(client, "HTTP/1.1 200 ");
    loopback_close(client);
}

#define LIVE(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE(pages_are_served_or_named),
        LIVE(an_exhausted_budget_is_not_exceeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
