/* SPDX-License-Identifier: Apache-2.0 */
/* The server as a whole: listening, spreading connections over lanes, choosing a protocol,
 * stopping, aborting. */
#include "src/net/server/http_server.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/net/server/http_connection.h"
#include "tests/support/http_fixture.h"
#include "tests/support/loopback.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))
#define HOST            "Host: a\r\n"
#define EARLY           "GET /early HTTP/1.1\r\n" HOST "\r\n"
#define PREFACE         "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

enum { BUDGET_BYTES = 1 << 20, TURNS_MAX = 5000 };

/* Responds with the peer's address. */
static void on_request(struct http_request *request, void *arg)
{
    (void)arg;
    http_respond(request, &(struct http_response){
                              .status = 200,
                              .body = slice_of_text(http_request_peer_address(request)),
                          });
}

static const struct http_handler peer_handler = {.on_request = on_request};

static struct http_server *create_server(struct lane *lane, struct budget *budget)
{
    return http_server_create(&(struct http_server_settings){
        .lane = lane,
        .budget = budget,
        .has_http1 = true,
        .has_keep_alive = true,
        .handler = &peer_handler,
    });
}

static void on_done(void *arg)
{
    bool *is_done = arg;
    assert_false(*is_done);
    *is_done = true;
}

static void stop_and_destroy(struct lane *lane, struct http_server *server)
{
    bool is_done = false;
    http_server_stop(server, on_done, &is_done);
    assert_false(is_done);
    loopback_turn_until(lane, &is_done);
    http_server_destroy(server);
}

static int start(void **state)
{
    clock_fake_start(NS_PER_S, (uint64_t)784111777 * NS_PER_S);
    *state = http_fixture_create(BUDGET_BYTES);
    return 0;
}

static int finish(void **state)
{
    http_fixture_destroy(*state);
    clock_fake_stop();
    return 0;
}

static void a_listening_error_names_endpoint_and_reason(void **state)
{
    struct http_fixture *fixture = *state;
    char taken[128];
    snprintf(taken, sizeof(taken), "listen tcp %s: bind: address already in use", fixture->address);
    const struct {
        const char *endpoint;
        const char *error;
    } rows[] = {
        {fixture->address, taken},
        {"192.0.2.1:0", "listen tcp 192.0.2.1:0: bind: cannot assign requested address"},
        {"nowhere", "listen tcp: address nowhere: missing port in address"},
        {"localhost:99999", "listen tcp: address 99999: invalid port"},
    };
    struct http_server *server = create_server(fixture->lane, &fixture->budget);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct error error;
        assert_false(http_server_listen(&server, 1, "tcp", rows[i].endpoint, &error));
        assert_string_equal(error.text, rows[i].error);
    }
    http_server_destroy(server);
}

static void expect_peer(struct lane *lane, const char *address, const char *peer)
{
    char body[64];
    struct loopback *client = loopback_connect(lane, address);
    loopback_send(client, EARLY);
    snprintf(body, sizeof(body), "\r\n\r\n%s", peer);
    loopback_expect(client, body);
    loopback_close(client);
}

static void every_kind_of_endpoint_is_reachable(void **state)
{
    static const struct {
        const char *transport;
        const char *endpoint;
        bool has_ipv4;
        bool has_ipv6;
    } rows[] = {
        {"tcp", "localhost:0", true, false}, {"tcp4", ":0", true, false},
        {"tcp", "[::1]:0", false, true},     {"tcp6", ":0", false, true},
        {"tcp", ":0", true, true},           {"tcp", "0.0.0.0:0", true, true},
    };
    struct http_fixture *fixture = *state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct http_server *server = create_server(fixture->lane, &fixture->budget);
        struct error error;
        if (!http_server_listen(&server, 1, rows[i].transport, rows[i].endpoint, &error))
            fail_msg("%s", error.text);
        const char *port = strrchr(http_server_address(server), ':');
        char ipv4[32];
        char ipv6[32];
        snprintf(ipv4, sizeof(ipv4), "127.0.0.1%s", port);
        snprintf(ipv6, sizeof(ipv6), "[::1]%s", port);
        if (rows[i].has_ipv4)
            expect_peer(fixture->lane, ipv4, "127.0.0.1");
        if (rows[i].has_ipv6)
            expect_peer(fixture->lane, ipv6, "::1");
        stop_and_destroy(fixture->lane, server);
    }
}

/* A SETTINGS frame, type 4, is the first thing that an HTTP/2 server says. */
static void expect_settings(struct loopback *client)
{
    for (int turn = 0; turn < TURNS_MAX && client->size < 9; turn++)
        loopback_settle(client);
    assert_true(client->size >= 9);
    assert_int_equal(client->text[3], 4);
}

static void the_first_bytes_choose_the_protocol(void **state)
{
    struct http_fixture *fixture = *state;
    for (size_t cut = 0; cut < sizeof(PREFACE); cut++) {
        struct loopback *client = http_fixture_connect(fixture);
        loopback_send_bytes(client, PREFACE, cut);
        loopback_settle(client);
        if (cut < sizeof(PREFACE) - 1)
            assert_int_equal(client->size, 0);
        loopback_send(client, &PREFACE[cut]);
        loopback_send_bytes(client, "\0\0\0\4\0\0\0\0\0", 9);
        expect_settings(client);
        loopback_close(client);
    }
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "P");
    loopback_settle(client);
    loopback_send(client, "OST /early HTTP/1.1\r\n" HOST "\r\n");
    loopback_expect(client, "early");
    loopback_close(client);
}

static void only_http1(struct http_server_settings *settings)
{
    settings->has_http2 = false;
}

static void only_http2(struct http_server_settings *settings)
{
    settings->has_http1 = false;
}

static void a_server_of_one_protocol_refuses_the_other(void **state)
{
    (void)state;
    struct http_fixture *fixture = http_fixture_create_with(BUDGET_BYTES, only_http1);
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, PREFACE);
    loopback_expect(client, "HTTP/1.1 400 ");
    loopback_expect_end(client);
    loopback_close(client);
    http_fixture_destroy(fixture);

    fixture = http_fixture_create_with(BUDGET_BYTES, only_http2);
    client = http_fixture_connect(fixture);
    loopback_send(client, EARLY EARLY);
    loopback_expect_end(client);
    assert_null(strstr(client->text, "HTTP/1.1"));
    loopback_close(client);
    http_fixture_destroy(fixture);
}

static void stopping_ends_idle_connections_and_awaits_the_rest(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *fresh = http_fixture_connect(fixture);
    struct loopback *idle = http_fixture_connect(fixture);
    loopback_send(idle, EARLY);
    loopback_expect(idle, "early");
    struct loopback *half_sent = http_fixture_connect(fixture);
    loopback_send(half_sent, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nha");
    http_fixture_expect_requests(fixture, 2);
    struct loopback *kept = http_fixture_connect(fixture);
    loopback_send(kept, "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nK");
    http_fixture_expect_requests(fixture, 3);
    http_fixture_expect_connections(fixture, 4);

    http_fixture_stop(fixture);
    loopback_expect_end(fresh);
    loopback_expect_end(idle);
    assert_false(fixture->has_stopped);
    loopback_send(half_sent, "lf");
    loopback_expect(half_sent, "Connection: close\r\n\r\nhalf");
    loopback_expect_end(half_sent);
    loopback_close(half_sent);
    loopback_settle(kept);
    assert_false(fixture->has_stopped);
    http_fixture_release(fixture);
    loopback_expect(kept, "Connection: close\r\n\r\nK");
    loopback_expect_end(kept);
    loopback_close(kept);
    loopback_turn_until(fixture->lane, &fixture->has_stopped);
    assert_int_equal(fixture->stops, 1);
    loopback_close(fresh);
    loopback_close(idle);
}

static void requests_that_came_before_a_stop_get_responses(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *fresh = http_fixture_connect(fixture);
    struct loopback *kept = http_fixture_connect(fixture);
    loopback_send(kept, EARLY);
    loopback_expect(kept, "early");
    http_fixture_expect_connections(fixture, 2);

    loopback_send(fresh, EARLY);
    loopback_send(kept, EARLY EARLY);
    http_fixture_stop(fixture);
    loopback_expect(fresh, "early");
    loopback_expect_end(fresh);
    loopback_expect_end(kept);
    assert_non_null(strstr(strstr(kept->text, "early") + 1, "early"));
    loopback_turn_until(fixture->lane, &fixture->has_stopped);
    loopback_close(fresh);
    loopback_close(kept);
}

static void a_half_sent_body_delays_a_stop_for_its_deadline_at_most(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nha");
    http_fixture_expect_requests(fixture, 1);
    http_fixture_stop(fixture);
    loopback_settle(client);
    assert_false(fixture->has_stopped);
    clock_fake_advance(BODY_GRACE_NS + 1);
    loopback_expect(client, "HTTP/1.1 408 ");
    loopback_settle(client);
    clock_fake_advance(HTTP1_LINGER_BODY_NS + 1);
    loopback_turn_until(fixture->lane, &fixture->has_stopped);
    loopback_close(client);
}

static void aborting_closes_everything_and_the_stop_still_ends(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *kept = http_fixture_connect(fixture);
    loopback_send(kept, "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nK");
    http_fixture_expect_requests(fixture, 1);
    struct loopback *half_sent = http_fixture_connect(fixture);
    loopback_send(half_sent, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nha");
    http_fixture_expect_requests(fixture, 2);
    http_fixture_stop(fixture);
    http_server_abort(fixture->server);
    assert_false(fixture->has_stopped);
    loopback_turn_until(fixture->lane, &fixture->has_stopped);
    loopback_expect_end(half_sent);
    loopback_expect_end(kept);
    /* The request that the handler has outlives the connection. */
    assert_int_equal(fixture->ends, 1);
    http_fixture_release(fixture);
    assert_int_equal(fixture->ends, 2);
    loopback_close(kept);
    loopback_close(half_sent);
}

static void connections_beyond_the_descriptors_are_refused_not_left_hanging(void **state)
{
    enum { WAITING = 3 };
    struct http_fixture *fixture = *state;
    struct loopback *clients[WAITING];
    for (int i = 0; i < WAITING; i++)
        clients[i] = http_fixture_connect(fixture);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next_fd = dup(0);
    close(next_fd);
    struct rlimit none = {.rlim_cur = (rlim_t)next_fd, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < WAITING; i++)
        loopback_expect_end(clients[i]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(http_server_figures(fixture->server).refused_total, WAITING);
    for (int i = 0; i < WAITING; i++)
        loopback_close(clients[i]);
    struct loopback *later = http_fixture_connect(fixture);
    loopback_send(later, EARLY);
    loopback_expect(later, "early");
    loopback_close(later);
}

/* A server on a lane of its own thread, stopped by tasks that are posted there. */
struct remote {
    struct lane *lane;
    struct http_server *server;
    struct lane_task task;
    _Atomic bool is_done;
};

static struct remote *remote_of(struct lane_task *task)
{
    return (struct remote *)((char *)task - offsetof(struct remote, task));
}

static void on_remote_done(void *arg)
{
    struct remote *remote = arg;
    atomic_store(&remote->is_done, true);
}

static void stop_remote(struct lane_task *task)
{
    struct remote *remote = remote_of(task);
    http_server_stop(remote->server, on_remote_done, remote);
}

static void end_remote(struct lane_task *task)
{
    lane_end(remote_of(task)->lane);
}

static void post(struct remote *remote, void (*fn)(struct lane_task *))
{
    remote->task.fn = fn;
    lane_post(remote->lane, &remote->task);
}

static void turn_until_done(struct lane *lane, struct remote *remote)
{
    for (int turn = 0; turn < TURNS_MAX && !atomic_load(&remote->is_done); turn++) {
        lane_turn(lane);
        poll(NULL, 0, 1);
    }
    assert_true(atomic_load(&remote->is_done));
}

static void connections_are_dealt_round_robin_to_lanes(void **state)
{
    (void)state;
    struct budget budget;
    budget_init(&budget, BUDGET_BYTES);
    struct lane *lane = lane_create(0);
    struct remote remote = {.lane = lane_create(1)};
    struct http_server *servers[2] = {create_server(lane, &budget)};
    servers[1] = remote.server = create_server(remote.lane, &budget);
    struct error error;
    assert_true(http_server_listen(servers, 2, "tcp", "127.0.0.1:0", &error));
    assert_int_equal(lane_spawn(remote.lane), 0);
    for (int i = 0; i < 8; i++)
        expect_peer(lane, http_server_address(servers[0]), "127.0.0.1");
    /* The other lane's server leaves first; then all connections come to this one. */
    post(&remote, stop_remote);
    turn_until_done(lane, &remote);
    for (int i = 0; i < 3; i++)
        expect_peer(lane, http_server_address(servers[0]), "127.0.0.1");
    post(&remote, end_remote);
    lane_join(remote.lane);
    assert_int_equal(http_server_figures(servers[0]).connections_total, 4 + 3);
    assert_int_equal(http_server_figures(servers[1]).connections_total, 4);
    http_server_destroy(servers[1]);
    stop_and_destroy(lane, servers[0]);
    lane_destroy(remote.lane);
    lane_destroy(lane);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void set_flag(void *arg)
{
    *(bool *)arg = true;
}

/* It is on its way from the lane of the listener when the server of its lane stops. */
static void a_connection_that_is_dealt_at_a_stop_gets_its_response(void **state)
{
    (void)state;
    struct lane *lanes[2] = {lane_create(0), lane_create(1)};
    struct http_server *servers[2] = {create_server(lanes[0], NULL), create_server(lanes[1], NULL)};
    struct loopback *clients[2];
    struct error error;
    bool is_done = false;
    assert_true(http_server_listen(servers, 2, "tcp", "127.0.0.1:0", &error));
    for (size_t i = 0; i < 2; i++) {
        clients[i] = loopback_connect(lanes[0], http_server_address(servers[0]));
        loopback_send(clients[i], EARLY);
        loopback_settle(clients[i]);
    }
    loopback_expect(clients[0], "127.0.0.1");
    assert_int_equal(servers[1]->member.open_count, 1);
    assert_int_equal(clients[1]->size, 0);
    http_server_stop(servers[1], set_flag, &is_done);
    for (int turn = 0; turn < TURNS_MAX && !clients[1]->has_ended; turn++) {
        lane_turn(lanes[1]);
        loopback_settle(clients[1]);
    }
    assert_false(clients[1]->was_reset);
    assert_non_null(strstr(clients[1]->text, "200 OK"));
    for (size_t i = 0; i < 2; i++)
        loopback_close(clients[i]);
    for (int turn = 0; turn < TURNS_MAX && !is_done; turn++) {
        lane_turn(lanes[0]);
        lane_turn(lanes[1]);
    }
    assert_true(is_done);
    http_server_destroy(servers[1]);
    stop_and_destroy(lanes[0], servers[0]);
    for (size_t i = 0; i < 2; i++)
        lane_destroy(lanes[i]);
}

static void a_listener_outlives_its_first_member(void **state)
{
    (void)state;
    struct lane *lane = lane_create(0);
    struct http_server *servers[2] = {create_server(lane, NULL), create_server(lane, NULL)};
    struct error error;
    assert_true(http_server_listen(servers, 2, "tcp", "127.0.0.1:0", &error));
    stop_and_destroy(lane, servers[0]);
    stop_and_destroy(lane, servers[1]);
    lane_destroy(lane);
}

static void a_server_that_never_listened_stops_too(void **state)
{
    struct http_fixture *fixture = *state;
    http_server_destroy(create_server(fixture->lane, &fixture->budget));
    stop_and_destroy(fixture->lane, create_server(fixture->lane, &fixture->budget));
    http_server_destroy(NULL);
}

#define LIVE(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE(a_listening_error_names_endpoint_and_reason),
        LIVE(every_kind_of_endpoint_is_reachable),
        LIVE(the_first_bytes_choose_the_protocol),
        cmocka_unit_test(a_server_of_one_protocol_refuses_the_other),
        LIVE(stopping_ends_idle_connections_and_awaits_the_rest),
        LIVE(requests_that_came_before_a_stop_get_responses),
        LIVE(a_half_sent_body_delays_a_stop_for_its_deadline_at_most),
        LIVE(aborting_closes_everything_and_the_stop_still_ends),
        LIVE(connections_beyond_the_descriptors_are_refused_not_left_hanging),
        cmocka_unit_test(connections_are_dealt_round_robin_to_lanes),
        cmocka_unit_test(a_connection_that_is_dealt_at_a_stop_gets_its_response),
        cmocka_unit_test(a_listener_outlives_its_first_member),
        LIVE(a_server_that_never_listened_stops_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
