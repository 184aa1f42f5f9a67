/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 against slow and idle clients: every wait of the server ends, and ordinary slowness is
 * tolerated. Real sockets, a clock that stands still. */
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/net/server/http_server.h"
#include "tests/support/http_fixture.h"
#include "tests/support/loopback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#define HOST "Host: a\r\n"

enum { BUDGET_BYTES = 16 << 20 };

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

static void slow_heads_end_after_ten_seconds_in_all(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    static const char head[] = "GET /echo HTTP/1.1\r\n" HOST "X-Slow: ";
    loopback_send(client, head);
    loopback_settle(client);
    for (int second = 0; second < 9; second++) {
        clock_fake_advance(NS_PER_S);
        loopback_send(client, "a");
        loopback_settle(client);
        assert_int_equal(client->size, 0);
    }
    clock_fake_advance(NS_PER_S);
    loopback_expect(client, "HTTP/1.1 408 Request Timeout\r\n");
    loopback_expect_end(client);
    loopback_close(client);
    assert_int_equal(fixture->requests, 0);
}

static void idle_connections_end_quietly(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *fresh = http_fixture_connect(fixture);
    struct loopback *kept = http_fixture_connect(fixture);
    loopback_send(kept, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    loopback_expect(kept, "200 OK");
    http_fixture_expect_connections(fixture, 2);
    clock_fake_advance(HTTP_HEADER_DEADLINE_NS);
    loopback_expect_end(fresh);
    clock_fake_advance(HTTP1_IDLE_NS - HTTP_HEADER_DEADLINE_NS - 1);
    loopback_settle(kept);
    assert_false(kept->has_ended);
    clock_fake_advance(1);
    loopback_expect_end(kept);
    assert_int_equal(fresh->size, 0);
    loopback_close(fresh);
    loopback_close(kept);
}

static void slow_bodies_fall_under_the_minimum_rate(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    char kilobytes[2049] = {0};
    memset(kilobytes, 'k', 2048);
    loopback_send(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 200000\r\n\r\n");
    http_fixture_expect_requests(fixture, 1);
    for (int second = 0; second < 30; second++) {
        clock_fake_advance(NS_PER_S);
        loopback_send(client, kilobytes);
        loopback_settle(client);
        assert_int_equal(fixture->failures, 0);
    }
    for (int second = 0; second < 11; second++) {
        clock_fake_advance(NS_PER_S);
        loopback_send(client, "k");
        loopback_settle(client);
    }
    loopback_expect(client, "HTTP/1.1 408 ");
    assert_int_equal(fixture->failure, HTTP_BODY_TOO_SLOW);
    loopback_close(client);
}

static void a_slow_body_does_not_hold_up_a_stop(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    char kilobytes[2049] = {0};
    memset(kilobytes, 'k', 2048);
    loopback_send(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 200000\r\n\r\n");
    http_fixture_expect_requests(fixture, 1);
    http_fixture_stop(fixture);
    for (unsigned second = 0; second + 1 < HTTP_STOP_READ_NS / NS_PER_S; second++) {
        clock_fake_advance(NS_PER_S);
        loopback_send(client, kilobytes);
        loopback_settle(client);
        assert_int_equal(fixture->failures, 0);
    }
    clock_fake_advance(NS_PER_S);
    loopback_expect(client, "HTTP/1.1 408 ");
    loopback_close(client);
    loopback_turn_until(fixture->lane, &fixture->has_stopped);
}

static void a_client_that_does_not_read_is_cut_off(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    http_fixture_expect_requests(fixture, 1);
    for (int turn = 0; turn < 20; turn++)
        lane_turn(fixture->lane);
    assert_int_equal(fixture->ends, 0);
    clock_fake_advance(WRITE_STALL_NS + 1);
    http_fixture_expect_connections(fixture, 0);
    assert_int_equal(fixture->ends, 1);
    assert_int_equal(http_server_figures(fixture->server).aborted_total, 1);
    loopback_close(client);
}

static void a_client_that_does_not_read_does_not_hold_up_a_stop(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    http_fixture_expect_requests(fixture, 1);
    for (int turn = 0; turn < 20; turn++)
        lane_turn(fixture->lane);
    http_fixture_stop(fixture);
    clock_fake_advance(HTTP_STOP_WRITE_NS - 1);
    lane_turn(fixture->lane);
    assert_int_equal(fixture->ends, 0);
    clock_fake_advance(1);
    loopback_turn_until(fixture->lane, &fixture->has_stopped);
    assert_int_equal(fixture->ends, 1);
    loopback_close(client);
}

/* As much as there is room for: the server writes on once the kernel holds much less. */
static void read_much(struct loopback *client)
{
    enum { TRIES_MAX = 1000 };
    for (int i = 0; i < TRIES_MAX && client->size < LOOPBACK_TEXT_MAX; i++)
        loopback_settle(client);
    assert_int_equal(client->size, LOOPBACK_TEXT_MAX);
}

static void a_client_that_reads_slowly_does_not_hold_up_a_stop(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    const int room = LOOPBACK_TEXT_MAX / 4;
    setsockopt(client->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    loopback_send(client, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    http_fixture_expect_requests(fixture, 1);
    loopback_settle(client);
    http_fixture_stop(fixture);
    size_t total = client->size;
    for (uint64_t passed = 0; passed < HTTP_STOP_READ_NS; passed += HTTP_STOP_WRITE_NS - NS_PER_S) {
        loopback_forget(client);
        read_much(client);
        total += client->size;
        assert_int_equal(fixture->ends, 0);
        clock_fake_advance(HTTP_STOP_WRITE_NS - NS_PER_S);
    }
    assert_true(total < LARGE_RESPONSE_BYTES);
    loopback_forget(client);
    loopback_settle(client);
    loopback_turn_until(fixture->lane, &fixture->has_stopped);
    assert_int_equal(fixture->ends, 1);
    loopback_close(client);
}

static void what_waits_for_a_reader_is_charged(void **state)
{
    struct http_fixture *fixture = *state;
    enum { READERS = 16 };
    struct loopback *readers[READERS];
    for (unsigned i = 0; i < READERS; i++) {
        readers[i] = http_fixture_connect(fixture);
        loopback_send(readers[i], "GET /large HTTP/1.1\r\n" HOST "\r\n");
        http_fixture_expect_requests(fixture, i + 1);
        assert_true(budget_used(&fixture->budget) <= BUDGET_BYTES + BUDGET_BYTES / 8);
    }
    assert_true(budget_used(&fixture->budget) > BUDGET_BYTES / 4);
    /* Those for whom there was no room are cut off, and nobody else. */
    uint64_t open = http_server_figures(fixture->server).connections;
    assert_in_range(open, 1, READERS - 1);
    for (unsigned i = 0; i < READERS; i++)
        loopback_close(readers[i]);
    http_fixture_expect_connections(fixture, 0);
}

static void a_slow_reader_gets_all_of_a_large_response(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    size_t total = 0;
    while (total < LARGE_RESPONSE_BYTES) {
        loopback_settle(client);
        total += client->size;
        loopback_forget(client);
        clock_fake_advance(NS_PER_S);
        assert_false(client->has_ended);
    }
    http_fixture_expect_ends(fixture, 1);
    loopback_close(client);
}

static void impatient(struct http_server_settings *settings)
{
    settings->read_deadline_ns = (uint64_t)5 * NS_PER_S;
    settings->write_deadline_ns = (uint64_t)5 * NS_PER_S;
    settings->has_keep_alive = false;
}

static int start_impatient(void **state)
{
    clock_fake_start(NS_PER_S, NS_PER_S);
    *state = http_fixture_create_with(BUDGET_BYTES, impatient);
    return 0;
}

static void keep_alive_can_be_switched_off(void **state)
{
    struct loopback *client = http_fixture_connect(*state);
    loopback_send(client, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    loopback_expect(client, "Connection: close\r\n");
    loopback_expect_end(client);
    loopback_close(client);
}

static void a_read_timeout_is_for_the_whole_request(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    char kilobytes[2049] = {0};
    memset(kilobytes, 'k', 2048);
    loopback_send(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 200000\r\n\r\n");
    http_fixture_expect_requests(fixture, 1);
    for (int second = 0; second < 5; second++) {
        assert_int_equal(fixture->failures, 0);
        clock_fake_advance(NS_PER_S);
        loopback_send(client, kilobytes);
        loopback_settle(client);
    }
    loopback_expect(client, "HTTP/1.1 408 ");
    loopback_close(client);
}

static void a_read_timeout_is_for_the_first_head_too(void **state)
{
    struct loopback *client = http_fixture_connect(*state);
    loopback_send(client, "POST /echo HTTP/1.1\r\n");
    loopback_settle(client);
    clock_fake_advance((uint64_t)5 * NS_PER_S);
    loopback_expect(client, "HTTP/1.1 408 ");
    loopback_close(client);
}

static void a_write_timeout_is_for_the_whole_response(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    http_fixture_expect_requests(fixture, 1);
    for (int second = 0; second < 5; second++) {
        loopback_settle(client);
        clock_fake_advance(NS_PER_S);
    }
    http_fixture_expect_connections(fixture, 0);
    assert_int_equal(http_server_figures(fixture->server).aborted_total, 1);
    loopback_close(client);
}

/* Also of one that is sent in pieces, the last of which begins to wait before the end. */
static void a_write_timeout_is_for_all_of_a_lent_response(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "GET /lent HTTP/1.1\r\n" HOST "\r\n");
    http_fixture_expect_requests(fixture, 1);
    for (int second = 0; second < 4; second++) {
        clock_fake_advance(NS_PER_S);
        loopback_settle(client);
    }
    http_fixture_expect_connections(fixture, 1);
    assert_int_equal(fixture->releases, 0);
    clock_fake_advance(NS_PER_S + 1);
    http_fixture_expect_connections(fixture, 0);
    assert_int_equal(http_server_figures(fixture->server).aborted_total, 1);
    assert_int_equal(fixture->releases, 1);
    loopback_close(client);
}

#define LIVE(test)      cmocka_unit_test_setup_teardown(test, start, finish)
#define IMPATIENT(test) cmocka_unit_test_setup_teardown(test, start_impatient, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE(slow_heads_end_after_ten_seconds_in_all),
        LIVE(idle_connections_end_quietly),
        LIVE(slow_bodies_fall_under_the_minimum_rate),
        LIVE(a_slow_body_does_not_hold_up_a_stop),
        LIVE(a_client_that_does_not_read_is_cut_off),
        LIVE(a_client_that_does_not_read_does_not_hold_up_a_stop),
        LIVE(a_client_that_reads_slowly_does_not_hold_up_a_stop),
        LIVE(what_waits_for_a_reader_is_charged),
        LIVE(a_slow_reader_gets_all_of_a_large_response),
        IMPATIENT(keep_alive_can_be_switched_off),
        IMPATIENT(a_read_timeout_is_for_the_whole_request),
        IMPATIENT(a_read_timeout_is_for_the_first_head_too),
        IMPATIENT(a_write_timeout_is_for_the_whole_response),
        IMPATIENT(a_write_timeout_is_for_all_of_a_lent_response),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
