/* SPDX-License-Identifier: Apache-2.0 */
/* Scrapes that take several turns, and clients that do not wait for them. What a scrape shows is
 * tested in test_metric_store.c. */
#include "src/base/buffer.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/config/config.h"
#include "src/core/component.h"
#include "src/listen/http_responder.h"
#include "src/net/server/http_server.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/schema.h"
#include "support.h"
#include "tests/support/loopback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

extern const struct component_factory prometheus_exporter_factory;

/* So many series take several turns; FEW, one. */
enum { SERIES = 20000, FEW = 10, CLIENTS = 64, TURNS_MAX = 10000 };

static const char get[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

static struct http_server *server_of(const struct exporter_fixture *fixture)
{
    return ((struct http_responder *)fixture->component)->front.server;
}

static void open_with_series(struct exporter_fixture *fixture, struct lane *lane, unsigned series)
{
    static const char head[] = "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":"
                               "\"g\",\"gauge\":{\"dataPoints\":[";
    enum { POINT_BYTES = 128 };
    char *json = mem_alloc(sizeof(head) + series * POINT_BYTES + 16);
    size_t size = (size_t)sprintf(json, "%s", head);
    for (unsigned i = 0; i < series; i++)
        size += (size_t)snprintf(json + size, POINT_BYTES,
                                 "%s{\"timeUnixNano\":\"1\",\"asInt\":\"1\",\"attributes\":["
                                 "{\"key\":\"k\",\"value\":{\"stringValue\":\"%u\"}}]}",
                                 i == 0 ? "" : ",", i);
    size += (size_t)sprintf(json + size, "]}}]}]}]}");
    struct buffer *encoded;
    char reason[JSON_REASON_BYTES_MAX] = "";
    assert_int_equal(json_read(otlp_request(METRICS), slice_of(json, size), NULL, &encoded, reason),
                     JSON_READ);
    mem_free(json);
    exporter_open(fixture, lane, &prometheus_exporter_factory, "{endpoint: 127.0.0.1:0}", METRICS);
    exporter_export(fixture, buffer_slice(encoded), series);
    assert_int_equal(fixture->outcome.verdict, ACCEPTED);
    buffer_unref(encoded);
}

static void on_stopped(void *arg)
{
    *(bool *)arg = true;
}

/* As exporter_close, but the series are in the budget until the end. */
static void close_with_series(struct exporter_fixture *fixture)
{
    struct component *component = fixture->component;
    fixture->stopping = (struct stop_latch){.fn = on_stopped, .arg = &fixture->has_stopped};
    component->stopping = &fixture->stopping;
    stop_latch_hold(&fixture->stopping);
    component->factory->stop(component);
    loopback_turn_until(fixture->lane, &fixture->has_stopped);
    component->factory->destroy(component);
    assert_int_equal(budget_used(&fixture->budget), 0);
    mem_free(component->counters);
    mem_free(component);
    budget_fini(&fixture->budget);
    config_destroy(fixture->config);
}

/* The scrapes, which nobody waits for any more, end before the exporter does. */
static void clients_may_leave_before_a_stop(void **state)
{
    struct exporter_fixture fixture;
    struct loopback *clients[CLIENTS];
    struct lane *lane = lane_create(0);
    (void)state;
    open_with_series(&fixture, lane, SERIES);
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = loopback_connect(lane, http_server_address(server_of(&fixture)));
        loopback_send(clients[i], get);
    }
    for (unsigned i = 0; i < TURNS_MAX; i++)
        if (http_server_figures(server_of(&fixture)).requests_total < CLIENTS)
            lane_turn(lane);
    assert_int_equal(http_server_figures(server_of(&fixture)).requests_total, CLIENTS);
    for (unsigned i = 0; i < CLIENTS; i++)
        loopback_reset(clients[i]);
    close_with_series(&fixture);
    lane_destroy(lane);
}

/* Those that wait for theirs get it, or a 503 in its place. */
static void a_stop_responds_to_every_scrape(void **state)
{
    struct exporter_fixture fixture;
    struct lane *lane = lane_create(0);
    (void)state;
    open_with_series(&fixture, lane, SERIES);
    struct loopback *client = loopback_connect(lane, http_server_address(server_of(&fixture)));
    loopback_send(client, get);
    for (unsigned i = 0; i < TURNS_MAX; i++)
        if (http_server_figures(server_of(&fixture)).requests_total < 1)
            lane_turn(lane);
    close_with_series(&fixture);
    loopback_expect(client, "HTTP/1.1 ");
    loopback_close(client);
    lane_destroy(lane);
}

/* Else nothing that waits would ever come free. */
static void a_budget_that_the_queue_fills_does_not_keep_it_waiting(void **state)
{
    static const uint8_t request[] = {0x0a, 4, 0x12, 2, 0x12, 0, 0x0a, 4, 0x12, 2, 0x12, 0};
    struct exporter_fixture fixture;
    struct lane *lane = lane_create(0);
    (void)state;
    exporter_open(&fixture, lane, &prometheus_exporter_factory, "{endpoint: 127.0.0.1:0}", METRICS);
    fixture.has_two_parts = true;
    const uint64_t limit = budget_limit(&fixture.budget);
    const uint64_t all = limit + limit / BUDGET_MARGIN_PART;
    budget_take(&fixture.budget, all);
    exporter_export(&fixture, slice_of(request, sizeof(request)), 2);
    exporter_wait_for_memory(&fixture);
    exporter_export(&fixture, slice_of(request, sizeof(request)), 2);
    assert_int_equal(fixture.outcome.verdict, ACCEPTED);
    budget_return(&fixture.budget, all);
    close_with_series(&fixture);
    lane_destroy(lane);
}

/* Small ones, too: sockets of the same turn come first. */
static void scrapes_that_come_together_take_turns(void **state)
{
    enum { SCRAPES_PER_TURN = 3 }; /* lane_turn runs jobs up to three times */
    struct exporter_fixture fixture;
    struct loopback *clients[CLIENTS];
    struct lane *lane = lane_create(0);
    uint64_t before = 0;
    uint64_t most = 0;
    (void)state;
    open_with_series(&fixture, lane, FEW);
    const struct http_responder *responder = (struct http_responder *)fixture.component;
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = loopback_connect(lane, http_server_address(server_of(&fixture)));
        loopback_send(clients[i], get);
    }
    for (unsigned i = 0; i < TURNS_MAX && before < CLIENTS; i++) {
        lane_turn(lane);
        const uint64_t requests = http_server_figures(server_of(&fixture)).requests_total;
        assert_true(responder->pending + SCRAPES_PER_TURN >= requests - before);
        most = requests - before > most ? requests - before : most;
        before = requests;
    }
    assert_true(most > SCRAPES_PER_TURN);
    for (unsigned i = 0; i < CLIENTS; i++) {
        loopback_expect(clients[i], "HTTP/1.1 200 OK");
        loopback_close(clients[i]);
    }
    close_with_series(&fixture);
    lane_destroy(lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_may_leave_before_a_stop),
        cmocka_unit_test(a_stop_responds_to_every_scrape),
        cmocka_unit_test(scrapes_that_come_together_take_turns),
        cmocka_unit_test(a_budget_that_the_queue_fills_does_not_keep_it_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
