/* SPDX-License-Identifier: Apache-2.0 */
/* How the gRPC client connects, reconnects, backs off and finds dead peers: a scripted back-end on
 * loopback, a fake clock, one hand-turned lane. */
#include "src/net/client/grpc_client.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/core/batch.h"
#include "src/net/client/grpc_target.h"
#include "tests/support/grpc_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Real time that a test may take before it counts as hung. */
enum { TEST_SECONDS_MAX = 20 };
#define SECONDS(count) ((uint64_t)(count)*NS_PER_S)

static const struct grpc_backend_step ok[] = {{.status = "0"}};
static const struct grpc_backend_step held[] = {{.is_held = true, .status = "0"}};

struct fixture {
    struct lane *lane;
    struct grpc_backend *backend;
    struct grpc_target target;
    struct grpc_client_settings settings;
    struct grpc_client *client;
    struct buffer *buffer;
    struct batch_part part;
    unsigned done;
    enum status_code code;
    char message[1024];
    bool is_closed;
};

static void on_done(const struct grpc_result *result, void *arg)
{
    struct fixture *fixture = arg;
    fixture->done++;
    fixture->code = result->code;
    snprintf(fixture->message, sizeof(fixture->message), "%s", result->message);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

/* Turns the lane until the condition holds; the fake clock stands still. */
#define turn_until(fixture, condition)                                                             \
    do {                                                                                           \
        time_t end = time(NULL) + TEST_SECONDS_MAX;                                                \
        while (!(condition)) {                                                                     \
            lane_turn((fixture)->lane);                                                            \
            if (time(NULL) > end)                                                                  \
                fail_msg("nothing happened for %d seconds", TEST_SECONDS_MAX);                     \
        }                                                                                          \
    } while (0)

static void pass(struct fixture *fixture, uint64_t ns)
{
    clock_fake_advance(ns);
    for (int i = 0; i < 50; i++)
        lane_turn(fixture->lane);
}

static void set_up(struct fixture *fixture, const struct grpc_backend_settings *settings,
                   const struct grpc_backend_step *step)
{
    char endpoint[64];
    struct error error;
    clock_fake_start(SECONDS(1000), SECONDS(1136214245));
    random_fix(0.5); /* no jitter */
    memset(fixture, 0, sizeof(*fixture));
    fixture->lane = lane_create(0);
    fixture->backend = grpc_backend_create(fixture->lane, settings, step, 1);
    fixture->buffer = buffer_create(NULL, 16);
    memset(fixture->buffer->data, 'x', 16);
    fixture->part = (struct batch_part){fixture->buffer, slice_of(fixture->buffer->data, 16)};
    snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", grpc_backend_port(fixture->backend));
    assert_true(grpc_target_parse(endpoint, &fixture->target, &error));
    fixture->settings = (struct grpc_client_settings){.lane = fixture->lane,
                                                      .target = &fixture->target,
                                                      .authority = "back-end",
                                                      .user_agent = "test/1",
                                                      .timeout_ns = SECONDS(5)};
}

static void open_client(struct fixture *fixture)
{
    fixture->client = grpc_client_create(&fixture->settings);
}

static void tear_down(struct fixture *fixture)
{
    grpc_client_close(fixture->client, on_closed, &fixture->is_closed);
    turn_until(fixture, fixture->is_closed);
    grpc_client_destroy(fixture->client);
    grpc_backend_destroy(fixture->backend);
    buffer_unref(fixture->buffer);
    lane_destroy(fixture->lane);
    random_fix(-1);
    clock_fake_stop();
}

static void post(struct fixture *fixture)
{
    grpc_client_post(fixture->client, &(struct grpc_post){.path = "/s/m",
                                                          .parts = &fixture->part,
                                                          .parts_count = 1,
                                                          .bytes = 16,
                                                          .done = on_done,
                                                          .arg = fixture});
}

static void call(struct fixture *fixture)
{
    unsigned before = fixture->done;
    post(fixture);
    turn_until(fixture, fixture->done > before);
}

static void it_connects_before_anybody_calls(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, &(struct grpc_backend_settings){0}, ok);
    open_client(&fixture);
    turn_until(&fixture, grpc_backend_connections(fixture.backend) == 1);
    call(&fixture);
    assert_int_equal(fixture.code, STATUS_OK);
    assert_int_equal(grpc_backend_connections(fixture.backend), 1);
    tear_down(&fixture);
}

/* 1 s, then times 1.6, up to 120 s. */
static void attempts_to_connect_back_off(void **state)
{
    static const double waits[] = {1,       1.6,     2.56,    4.096,  6.5536, 10.48576, 16.77,
                                   26.8435, 42.9496, 68.7194, 109.95, 120,    120};
    struct fixture fixture;
    unsigned connections = 1;
    (void)state;
    set_up(&fixture, &(struct grpc_backend_settings){.greeting = "SSH-2.0-server\r\n"}, ok);
    open_client(&fixture);
    turn_until(&fixture, grpc_backend_connections(fixture.backend) == 1);
    pass(&fixture, 0);
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        uint64_t wait_ns = (uint64_t)(waits[i] * NS_PER_S);
        pass(&fixture, wait_ns - 50 * (uint64_t)NS_PER_MS);
        assert_int_equal(grpc_backend_connections(fixture.backend), connections);
        pass(&fixture, 100 * (uint64_t)NS_PER_MS);
        turn_until(&fixture, grpc_backend_connections(fixture.backend) == ++connections);
        pass(&fixture, 0);
    }
    tear_down(&fixture);
}

static void calls_fail_at_once_while_the_port_is_closed(void **state)
{
    struct fixture fixture;
    char expected[256];
    (void)state;
    set_up(&fixture, &(struct grpc_backend_settings){0}, ok);
    grpc_backend_listen(fixture.backend, false);
    open_client(&fixture);
    call(&fixture);
    snprintf(expected, sizeof(expected),
             "connection error: desc = \"transport: Error while dialing: dial tcp 127.0.0.1:%u: "
             "connect: connection refused\"",
             grpc_backend_port(fixture.backend));
    assert_int_equal(fixture.code, STATUS_UNAVAILABLE);
    assert_string_equal(fixture.message, expected);
    grpc_backend_listen(fixture.backend, true);
    pass(&fixture, SECONDS(1) - 1);
    call(&fixture);
    assert_int_equal(fixture.code, STATUS_UNAVAILABLE);
    pass(&fixture, 1);
    turn_until(&fixture, grpc_backend_connections(fixture.backend) == 1);
    pass(&fixture, 0);
    call(&fixture);
    assert_int_equal(fixture.code, STATUS_OK);
    tear_down(&fixture);
}

static void calls_may_wait_for_a_connection(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, &(struct grpc_backend_settings){0}, ok);
    fixture.settings.waits_for_ready = true;
    grpc_backend_listen(fixture.backend, false);
    open_client(&fixture);
    post(&fixture);
    pass(&fixture, 0);
    post(&fixture);
    pass(&fixture, 0);
    assert_int_equal(fixture.done, 0);
    grpc_backend_listen(fixture.backend, true);
    pass(&fixture, SECONDS(1));
    turn_until(&fixture, fixture.done == 2);
    assert_int_equal(fixture.code, STATUS_OK);
    tear_down(&fixture);
}

static void a_call_that_waits_ends_with_its_timeout(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, &(struct grpc_backend_settings){0}, ok);
    fixture.settings.waits_for_ready = true;
    grpc_backend_listen(fixture.backend, false);
    open_client(&fixture);
    post(&fixture);
    for (int i = 0; i < 5; i++)
        pass(&fixture, SECONDS(1));
    assert_int_equal(fixture.done, 1);
    assert_int_equal(fixture.code, STATUS_DEADLINE_EXCEEDED);
    assert_non_null(strstr(fixture.message, "connection refused"));
    tear_down(&fixture);
}

static void a_lost_connection_is_replaced_at_once(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, &(struct grpc_backend_settings){0}, ok);
    open_client(&fixture);
    call(&fixture);
    pass(&fixture, SECONDS(10));
    grpc_backend_hang_up(fixture.backend);
    turn_until(&fixture, grpc_backend_connections(fixture.backend) == 2);
    call(&fixture);
    assert_int_equal(fixture.code, STATUS_OK);
    tear_down(&fixture);
}

/* Else a server that greets and hangs up would be asked as fast as both can. */
static void a_short_connection_is_replaced_a_second_later(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, &(struct grpc_backend_settings){0}, ok);
    open_client(&fixture);
    call(&fixture);
    grpc_backend_hang_up(fixture.backend);
    pass(&fixture, 0);
    pass(&fixture, SECONDS(1) - 1);
    assert_int_equal(grpc_backend_connections(fixture.backend), 1);
    post(&fixture);
    pass(&fixture, 1);
    turn_until(&fixture, fixture.done == 2);
    assert_int_equal(fixture.code, STATUS_OK);
    assert_int_equal(grpc_backend_connections(fixture.backend), 2);
    tear_down(&fixture);
}

static void goaway_on_an_idle_connection_opens_another(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, &(struct grpc_backend_settings){0}, ok);
    open_client(&fixture);
    call(&fixture);
    pass(&fixture, SECONDS(10));
    grpc_backend_goaway(fixture.backend, 0, "max_age");
    turn_until(&fixture, grpc_backend_connections(fixture.backend) == 2);
    call(&fixture);
    assert_int_equal(fixture.code, STATUS_OK);
    tear_down(&fixture);
}

static void silence_leads_to_a_ping(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, &(struct grpc_backend_settings){0}, held);
    fixture.settings.timeout_ns = 0;
    fixture.settings.keepalive =
        (struct http2_keepalive){.time_ns = SECONDS(30), .timeout_ns = SECONDS(10)};
    open_client(&fixture);
    turn_until(&fixture, grpc_backend_connections(fixture.backend) == 1);
    pass(&fixture, 0);
    pass(&fixture, SECONDS(40));
    assert_int_equal(grpc_backend_pings(fixture.backend), 0); /* no calls under way */
    post(&fixture);
    pass(&fixture, 0);
    pass(&fixture, SECONDS(30));
    turn_until(&fixture, grpc_backend_pings(fixture.backend) == 1);
    pass(&fixture, 0);
    pass(&fixture, SECONDS(20));
    assert_int_equal(grpc_backend_pings(fixture.backend), 1);
    pass(&fixture, SECONDS(10));
    turn_until(&fixture, grpc_backend_pings(fixture.backend) == 2);
    pass(&fixture, 0);
    assert_int_equal(fixture.done, 0);
    grpc_backend_freeze(fixture.backend);
    pass(&fixture, SECONDS(30));
    pass(&fixture, SECONDS(10) - 1);
    assert_int_equal(fixture.done, 0);
    pass(&fixture, 1);
    assert_int_equal(fixture.done, 1);
    assert_int_equal(fixture.code, STATUS_UNAVAILABLE);
    assert_string_equal(fixture.message, "error reading from server: keepalive ping failed to "
                                         "receive ACK within timeout");
    tear_down(&fixture);
}

static void pings_may_go_out_without_calls(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, &(struct grpc_backend_settings){0}, ok);
    fixture.settings.keepalive = (struct http2_keepalive){
        .time_ns = SECONDS(10), .timeout_ns = SECONDS(10), .permit_without_stream = true};
    open_client(&fixture);
    turn_until(&fixture, grpc_backend_connections(fixture.backend) == 1);
    pass(&fixture, 0);
    pass(&fixture, SECONDS(10));
    turn_until(&fixture, grpc_backend_pings(fixture.backend) == 1);
    tear_down(&fixture);
}

static void after_too_many_pings_it_pings_half_as_often(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, &(struct grpc_backend_settings){0}, ok);
    fixture.settings.keepalive = (struct http2_keepalive){
        .time_ns = SECONDS(10), .timeout_ns = SECONDS(10), .permit_without_stream = true};
    open_client(&fixture);
    turn_until(&fixture, grpc_backend_connections(fixture.backend) == 1);
    pass(&fixture, 0);
    pass(&fixture, SECONDS(2));
    grpc_backend_goaway(fixture.backend, 11, "too_many_pings");
    turn_until(&fixture, grpc_backend_connections(fixture.backend) == 2);
    pass(&fixture, 0);
    pass(&fixture, SECONDS(19));
    assert_int_equal(grpc_backend_pings(fixture.backend), 0);
    pass(&fixture, SECONDS(1));
    turn_until(&fixture, grpc_backend_pings(fixture.backend) == 1);
    tear_down(&fixture);
}

/* Without keepalive a vanished peer would cost every call its timeout, until TCP gives up. */
static void a_peer_that_lets_calls_expire_is_pinged(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, &(struct grpc_backend_settings){0}, held);
    open_client(&fixture);
    turn_until(&fixture, grpc_backend_connections(fixture.backend) == 1);
    pass(&fixture, 0);
    post(&fixture);
    pass(&fixture, 0);
    pass(&fixture, SECONDS(5));
    assert_int_equal(fixture.code, STATUS_DEADLINE_EXCEEDED);
    turn_until(&fixture, grpc_backend_pings(fixture.backend) == 1);
    pass(&fixture, SECONDS(60));
    assert_int_equal(grpc_backend_connections(fixture.backend), 1);
    grpc_backend_freeze(fixture.backend);
    post(&fixture);
    pass(&fixture, 0);
    pass(&fixture, SECONDS(5));
    pass(&fixture, SECONDS(20));
    turn_until(&fixture, grpc_backend_connections(fixture.backend) == 2);
    tear_down(&fixture);
}

struct foreign_case {
    struct grpc_backend_settings settings;
    uint64_t wait_ns;
    const char *words;
};

static const struct foreign_case foreign[] = {
    {{.greeting = "HTTP/1.1 400 Bad Request\r\n\r\n"}, 0, "the server speaks HTTP/1.1"},
    {{.greeting = "\x15\x03\x01"}, 0, "the server expects TLS"},
    {{.greeting = "SSH-2.0-OpenSSH\r\n"}, 0, "connection error: desc = \""},
    {{.is_mute = true}, SECONDS(20), "timed out waiting for server handshake"},
};

static void servers_of_other_protocols_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        struct fixture fixture;
        set_up(&fixture, &foreign[i].settings, ok);
        fixture.settings.timeout_ns = SECONDS(100);
        open_client(&fixture);
        turn_until(&fixture, grpc_backend_connections(fixture.backend) == 1);
        pass(&fixture, 0);
        pass(&fixture, foreign[i].wait_ns);
        call(&fixture);
        assert_int_equal(fixture.code, STATUS_UNAVAILABLE);
        if (strstr(fixture.message, foreign[i].words) == NULL)
            fail_msg("%s", fixture.message);
        tear_down(&fixture);
    }
}

static void an_unknown_host_is_named(void **state)
{
    struct fixture fixture;
    struct error error;
    (void)state;
    set_up(&fixture, &(struct grpc_backend_settings){0}, ok);
    assert_true(grpc_target_parse("no-such-host.invalid:1", &fixture.target, &error));
    fixture.settings.timeout_ns = 0;
    open_client(&fixture);
    call(&fixture);
    assert_int_equal(fixture.code, STATUS_UNAVAILABLE);
    assert_non_null(strstr(fixture.message, "lookup no-such-host.invalid: "));
    tear_down(&fixture);
}

/* localhost may have two addresses; the back-end listens on one of them. */
static void any_address_of_a_host_will_do(void **state)
{
    (void)state;
    for (int is_pick_first = 0; is_pick_first < 2; is_pick_first++) {
        struct fixture fixture;
        set_up(&fixture, &(struct grpc_backend_settings){0}, ok);
        strcpy(fixture.target.host, "localhost");
        fixture.settings.is_pick_first = is_pick_first == 1;
        open_client(&fixture);
        for (int i = 0; i < 4; i++) {
            call(&fixture);
            assert_int_equal(fixture.code, STATUS_OK);
        }
        assert_int_equal(grpc_backend_connections(fixture.backend), 1);
        tear_down(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_connects_before_anybody_calls),
        cmocka_unit_test(attempts_to_connect_back_off),
        cmocka_unit_test(calls_fail_at_once_while_the_port_is_closed),
        cmocka_unit_test(calls_may_wait_for_a_connection),
        cmocka_unit_test(a_call_that_waits_ends_with_its_timeout),
        cmocka_unit_test(a_lost_connection_is_replaced_at_once),
        cmocka_unit_test(a_short_connection_is_replaced_a_second_later),
        cmocka_unit_test(goaway_on_an_idle_connection_opens_another),
        cmocka_unit_test(silence_leads_to_a_ping),
        cmocka_unit_test(pings_may_go_out_without_calls),
        cmocka_unit_test(after_too_many_pings_it_pings_half_as_often),
        cmocka_unit_test(a_peer_that_lets_calls_expire_is_pinged),
        cmocka_unit_test(servers_of_other_protocols_are_named),
        cmocka_unit_test(an_unknown_host_is_named),
        cmocka_unit_test(any_address_of_a_host_will_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
