/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 on real loopback sockets, on a lane turned by hand and a clock that stands still. */
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/server/http_server.h"
#include "tests/support/http_fixture.h"
#include "tests/support/loopback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))
#define HOST            "Host: a\r\n"

enum { BUDGET_BYTES = 4 << 20 };

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

/* Sends, expects, closes. */
static void exchange(struct http_fixture *fixture, const char *request, const char *response)
{
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, request);
    loopback_expect(client, response);
    loopback_close(client);
}

static void an_echo_request_gets_its_body_back(void **state)
{
    exchange(
        *state, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        "Content-Length: 5\r\n\r\nhello");
    exchange(*state, "POST /echo HTTP/1.1\r\n" HOST "\r\n", "Content-Length: 0\r\n\r\n");
}

static void the_connection_is_kept_as_the_client_asks(void **state)
{
    static const struct {
        const char *head;
        const char *header; /* in the response */
        bool is_kept;
    } rows[] = {
        {"GET /echo HTTP/1.1\r\n" HOST, "Content-Length: 0\r\n\r\n", true},
        {"GET /echo HTTP/1.1\r\n" HOST "Connection: close\r\n", "Connection: close\r\n", false},
        {"GET /bye HTTP/1.1\r\n" HOST, "Connection: close\r\n", false},
        {"GET /echo HTTP/1.0\r\n", "Connection: close\r\n", false},
        {"GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n", "Connection: keep-alive\r\n", true},
    };
    struct http_fixture *fixture = *state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct loopback *client = http_fixture_connect(fixture);
        loopback_send(client, rows[i].head);
        loopback_send(client, "\r\n");
        loopback_expect(client, rows[i].header);
        if (rows[i].is_kept) {
            loopback_forget(client);
            loopback_send(client, "GET /early HTTP/1.1\r\n" HOST "\r\n");
            loopback_expect(client, "early");
        } else {
            loopback_expect_end(client);
            assert_false(client->was_reset);
        }
        loopback_close(client);
    }
}

static void bytes_may_come_one_by_one(void **state)
{
    static const char request[] =
        "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
        "3;x\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n"
        "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nfgh";
    struct loopback *client = http_fixture_connect(*state);
    for (size_t i = 0; i < sizeof(request) - 1; i++) {
        loopback_send_bytes(client, request + i, 1);
        lane_turn(client->lane);
    }
    loopback_expect(client, "\r\n\r\nabcde");
    loopback_expect(client, "\r\n\r\nfgh");
    loopback_close(client);
}

static void large_bodies_come_whole(void **state)
{
    struct http_fixture *fixture = *state;
    static const char *const framings[] = {"Content-Length: 200000\r\n\r\n",
                                           "Transfer-Encoding: chunked\r\n\r\n30D40\r\n"};
    char *body = malloc(200000);
    for (size_t i = 0; i < 200000; i++)
        body[i] = (char)('a' + i % 23);
    for (size_t i = 0; i < COUNT_OF(framings); i++) {
        struct loopback *client = http_fixture_connect(fixture);
        loopback_send(client, "POST /echo HTTP/1.1\r\n" HOST);
        loopback_send(client, framings[i]);
        loopback_send_bytes(client, body, 200000);
        loopback_send(client, i == 1 ? "\r\n0\r\n\r\n" : "");
        loopback_expect(client, "\r\n\r\n");
        size_t head_size = (size_t)(strstr(client->text, "\r\n\r\n") + 4 - client->text);
        while (client->size < head_size + 200000)
            loopback_settle(client);
        assert_memory_equal(client->text + head_size, body, 200000);
        loopback_close(client);
    }
    free(body);
}

/* A piece is copied while it waits for the client, but not the rest. */
static void lent_bodies_are_sent_in_pieces(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "GET /lent HTTP/1.1\r\n" HOST "\r\n");
    loopback_expect(client, "Content-Length: 8388608\r\n\r\n");
    assert_true(budget_used(&fixture->budget) < 512 * 1024);
    size_t at = client->size - (size_t)(strstr(client->text, "\r\n\r\n") + 4 - client->text);
    const char *from = strstr(client->text, "\r\n\r\n") + 4;
    for (size_t taken = 0;; taken += at, from = client->text, at = client->size) {
        for (size_t i = 0; i < at; i++)
            if (from[i] != (char)('a' + (taken + i) / 4096 % 23))
                fail_msg("byte %zu", taken + i);
        if (taken + at == LARGE_RESPONSE_BYTES)
            break;
        assert_false(client->has_ended);
        loopback_forget(client);
        loopback_settle(client);
    }
    http_fixture_expect_ends(fixture, 1);
    assert_int_equal(fixture->releases, 1);
    /* The connection goes on; to HEAD the body is not sent; and a client may leave before. */
    loopback_forget(client);
    loopback_send(client, "HEAD /lent HTTP/1.1\r\n" HOST "\r\n");
    loopback_expect(client, "Content-Length: 8388608\r\n\r\n");
    http_fixture_expect_ends(fixture, 2);
    assert_int_equal(fixture->releases, 2);
    loopback_send(client, "GET /lent HTTP/1.1\r\n" HOST "\r\n");
    http_fixture_expect_requests(fixture, 3);
    loopback_reset(client);
    http_fixture_expect_ends(fixture, 3);
    assert_int_equal(fixture->releases, 3);
}

static void pipelined_requests_get_responses_in_order(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nA"
                          "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nB"
                          "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nC"
                          "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nD");
    http_fixture_expect_requests(fixture, 1);
    loopback_settle(client);
    assert_int_equal(fixture->requests, 1);
    assert_int_equal(client->size, 0);
    http_fixture_release(fixture);
    loopback_expect(client, "\r\n\r\nA");
    loopback_expect(client, "\r\n\r\nB");
    http_fixture_expect_requests(fixture, 3);
    http_fixture_release(fixture);
    loopback_expect(client, "\r\n\r\nC");
    loopback_expect(client, "\r\n\r\nD");
    assert_true(strstr(client->text, "A") < strstr(client->text, "\r\n\r\nB"));
    loopback_close(client);
}

static void a_half_closed_client_gets_its_response(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nA");
    loopback_shutdown(client);
    http_fixture_expect_requests(fixture, 1);
    loopback_settle(client);
    http_fixture_release(fixture);
    loopback_expect(client, "\r\n\r\nA");
    loopback_expect_end(client);
    loopback_close(client);
}

static void expectations_are_met_only_when_the_body_is_wanted(void **state)
{
    static const struct {
        const char *request;
        const char *response;
        bool continues;
    } rows[] = {
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
         "HTTP/1.1 100 Continue\r\n\r\n", true},
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 204801\r\nExpect: 100-continue\r\n\r\n",
         "HTTP/1.1 413 ", false},
        {"POST /early HTTP/1.1\r\n" HOST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
         "HTTP/1.1 200 OK", false},
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\nExpect: 200-maybe\r\n\r\n",
         "HTTP/1.1 417 ", false},
        {"POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n", "HTTP/1.1 200 OK", true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct loopback *client = http_fixture_connect(*state);
        loopback_send(client, rows[i].request);
        loopback_expect(client, rows[i].response);
        assert_memory_equal(client->text, rows[i].response, strlen(rows[i].response));
        if (!rows[i].continues)
            loopback_expect_end(client);
        else if (i == 0) {
            loopback_send(client, "hello");
            loopback_expect(client, "\r\n\r\nhello");
        }
        loopback_close(client);
    }
}

static void malformed_requests_get_400_and_the_end(void **state)
{
    static const struct {
        const char *request;
        const char *response;
    } rows[] = {
        {"GET\r\n", "HTTP/1.1 400 Bad Request\r\n"},
        {"GET / HTTP/1.1\r\n\r\n", "400 Bad Request: missing Host"},
        {"GET / HTTP/3.0\r\n" HOST "\r\n", "HTTP/1.1 505 HTTP Version Not Supported\r\n"},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 501 "},
        {"PRI * HTTP/2.0\r\n\r\nSN", "HTTP/1.1 400 "},
        {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
         "HTTP/1.1 400 Bad Request\r\n"},
        {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nab",
         "HTTP/1.1 400 Bad Request\r\n"},
    };
    struct http_fixture *fixture = *state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct loopback *client = http_fixture_connect(fixture);
        loopback_send(client, rows[i].request);
        loopback_expect(client, rows[i].response);
        loopback_expect(client, "Connection: close\r\n");
        /* What comes behind is never taken for a request. */
        unsigned requests = fixture->requests;
        loopback_send(client, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
        loopback_expect_end(client);
        assert_false(client->was_reset);
        assert_int_equal(fixture->requests, requests);
        loopback_close(client);
    }
    assert_int_equal(http_server_figures(fixture->server).aborted_total, COUNT_OF(rows));
}

static void options_star_does_not_reach_the_handler(void **state)
{
    struct http_fixture *fixture = *state;
    exchange(fixture, "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200 OK\r\n");
    assert_int_equal(fixture->requests, 0);
}

static void head_has_the_length_but_no_body(void **state)
{
    struct loopback *client = http_fixture_connect(*state);
    loopback_send(client, "HEAD /early HTTP/1.1\r\n" HOST "\r\n");
    loopback_expect(client, "Content-Length: 5\r\n\r\n");
    loopback_settle(client);
    assert_null(strstr(client->text, "early"));
    loopback_close(client);
}

/* A small rest is dropped and the connection kept; a large one ends it, and the client still reads
 * the response. */
static void unread_bodies_are_dropped_within_bounds(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "POST /early HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n01234");
    loopback_expect(client, "early");
    loopback_forget(client);
    loopback_send(client, "56789POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok");
    loopback_expect(client, "\r\n\r\nok");
    loopback_close(client);

    client = http_fixture_connect(fixture);
    loopback_send(client, "POST /early HTTP/1.1\r\n" HOST "Content-Length: 3000000\r\n\r\n");
    char *body = calloc(1, 1000000);
    for (int i = 0; i < 3; i++)
        loopback_send_bytes(client, body, 1000000);
    free(body);
    loopback_expect(client, "Connection: close\r\n\r\nearly");
    loopback_expect_end(client);
    assert_false(client->was_reset);
    loopback_close(client);
}

static void bodies_over_the_limit_are_refused(void **state)
{
    struct http_fixture *fixture = *state;
    exchange(fixture, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 204801\r\n\r\n",
             "HTTP/1.1 413 ");
    assert_int_equal(fixture->failure, HTTP_BODY_TOO_LARGE);
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client,
                  "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n32001\r\n");
    char *body = calloc(1, FIXTURE_BODY_MAX + 1);
    loopback_send_bytes(client, body, FIXTURE_BODY_MAX + 1);
    free(body);
    loopback_expect(client, "HTTP/1.1 413 ");
    assert_int_equal(fixture->failures, 2);
    loopback_close(client);
}

static void a_short_budget_refuses_before_the_body_is_read(void **state)
{
    struct http_fixture *fixture = *state;
    assert_true(budget_try_take(&fixture->budget, BUDGET_BYTES - 1000));
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2000\r\n\r\n");
    loopback_expect(client, "HTTP/1.1 503 ");
    assert_int_equal(fixture->failure, HTTP_BODY_NO_BUDGET);
    budget_return(&fixture->budget, BUDGET_BYTES - 1000);
    /* The small rest is dropped, so the same connection can try again. */
    loopback_forget(client);
    char body[2001] = {0};
    memset(body, 'b', 2000);
    loopback_send(client, body);
    loopback_send(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2000\r\n\r\n");
    loopback_send(client, body);
    loopback_expect(client, body);
    loopback_close(client);
}

static void connections_are_charged(void **state)
{
    struct http_fixture *fixture = *state;
    const uint64_t margin = BUDGET_BYTES / 16 + 256 * KIB;
    struct loopback *client = http_fixture_connect(fixture);
    http_fixture_expect_connections(fixture, 1);
    uint64_t used = budget_used(&fixture->budget);
    assert_true(used >= 2 * KIB);
    assert_true(budget_try_take_margin(&fixture->budget, BUDGET_BYTES + margin - used));
    struct loopback *refused = http_fixture_connect(fixture);
    loopback_expect_end(refused);
    http_fixture_expect_connections(fixture, 1);
    budget_return(&fixture->budget, BUDGET_BYTES + margin - used);
    loopback_close(refused);
    loopback_close(client);
    http_fixture_expect_connections(fixture, 0);
    assert_int_equal(budget_used(&fixture->budget), 0);
}

static void a_peek_may_respond_or_announce_too_much(void **state)
{
    struct http_fixture *fixture = *state;
    exchange(fixture, "POST /peek HTTP/1.1\r\n" HOST "Content-Length: 6\r\n\r\nstopXX", "stopped");
    exchange(fixture, "POST /peek HTTP/1.1\r\n" HOST "Content-Length: 6\r\n\r\nhugeXX",
             "HTTP/1.1 413 ");
    exchange(fixture, "POST /peek HTTP/1.1\r\n" HOST "Content-Length: 6\r\n\r\ngoodXX",
             "\r\n\r\ngoodXX");
    exchange(fixture, "POST /peek HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", "\r\n\r\nabc");
    assert_int_equal(fixture->failures, 1);
}

/* The client goes after each byte of the request, by FIN or by RST, and the request that was kept
 * gets its response after that. */
static void a_client_may_vanish_at_every_byte(void **state)
{
    static const char request[] =
        "POST /keep HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    struct http_fixture *fixture = *state;
    for (size_t size = 0; size < sizeof(request); size++) {
        for (int is_reset = 0; is_reset < 2; is_reset++) {
            struct loopback *client = http_fixture_connect(fixture);
            loopback_send_bytes(client, request, size);
            loopback_settle(client);
            if (is_reset)
                loopback_reset(client);
            else
                loopback_close(client);
            for (int turn = 0; turn < 4; turn++)
                lane_turn(fixture->lane);
            if (fixture->held != NULL)
                http_fixture_release(fixture);
            http_fixture_expect_connections(fixture, 0);
            assert_int_equal(fixture->requests, fixture->ends);
        }
    }
    assert_int_equal(fixture->bodies, 2);
}

static void a_response_after_the_client_has_gone_does_nothing(void **state)
{
    static const char *const requests[] = {
        "POST /hold HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n",
        "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nA",
    };
    struct http_fixture *fixture = *state;
    for (unsigned i = 0; i < COUNT_OF(requests); i++) {
        struct loopback *client = http_fixture_connect(fixture);
        loopback_send(client, requests[i]);
        http_fixture_expect_requests(fixture, i + 1);
        loopback_settle(client);
        loopback_reset(client);
        http_fixture_expect_connections(fixture, 0);
        assert_int_equal(fixture->ends, i);
        assert_true(http_request_is_gone(fixture->held));
        http_fixture_release(fixture);
        assert_int_equal(fixture->ends, i + 1);
    }
}

static void a_request_that_is_held_goes_on_or_ends(void **state)
{
    enum { GOES_ON, IS_RESET, IS_CLOSED, CASES };
    static const char head[] = "POST /ask HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n";
    struct http_fixture *fixture = *state;
    for (unsigned i = 0; i < CASES; i++) {
        struct loopback *client = http_fixture_connect(fixture);
        fixture->has_asked = false;
        loopback_send(client, head);
        if (i == GOES_ON)
            loopback_send(client, "helloGET /early HTTP/1.1\r\n" HOST "\r\n");
        loopback_settle(client);
        assert_non_null(fixture->asks);
        assert_int_equal(client->size, 0);
        if (i == IS_RESET)
            loopback_reset(client);
        else if (i == IS_CLOSED)
            loopback_close(client);
        if (i == IS_RESET) /* a client that has half-closed may still read */
            http_fixture_expect_connections(fixture, 0);
        http_fixture_release(fixture);
        if (i == GOES_ON) {
            loopback_expect(client, "\r\n\r\nhello");
            loopback_expect(client, "\r\n\r\nearly");
            loopback_close(client);
        }
        http_fixture_expect_connections(fixture, 0);
        assert_int_equal(budget_used(&fixture->budget), 0);
    }
    assert_int_equal(fixture->bodies, 1);
}

/* What came with its head waits in the budget's margin. */
static void a_request_that_is_held_at_a_full_budget_is_refused_in_words(void **state)
{
    enum { BODY_BYTES = 8000 };
    static const char head[] = "POST /ask HTTP/1.1\r\n" HOST "Content-Length: 8000\r\n\r\n";
    struct http_fixture *fixture = *state;
    char request[sizeof(head) + BODY_BYTES];
    memcpy(request, head, sizeof(head) - 1);
    memset(request + sizeof(head) - 1, 'b', BODY_BYTES);
    request[sizeof(head) - 1 + BODY_BYTES] = '\0';
    assert_true(budget_try_take(&fixture->budget, BUDGET_BYTES));
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, request);
    loopback_settle(client);
    assert_non_null(fixture->asks);
    assert_false(client->has_ended);
    http_fixture_release(fixture);
    loopback_expect(client, "HTTP/1.1 503 ");
    assert_int_equal(fixture->failure, HTTP_BODY_NO_BUDGET);
    loopback_close(client);
    http_fixture_expect_connections(fixture, 0);
    budget_return(&fixture->budget, BUDGET_BYTES);
}

/* Every allocation that may be refused is refused once: the client gets a response or a closed
 * connection. */
static void refused_memory_ends_in_a_response_or_a_close(void **state)
{
    struct http_fixture *fixture = *state;
    bool was_refused = true;
    for (uint64_t n = 1; was_refused; n++) {
        assert_true(n < 100);
        struct loopback *client = http_fixture_connect(fixture);
        uint64_t before = mem_tries();
        mem_refuse_nth(n);
        loopback_send(client, "POST /keep HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
        loopback_settle(client);
        loopback_send(client, "3\r\nabc\r\n0\r\n\r\nGET /bye HTTP/1.1\r\n" HOST "\r\n");
        loopback_settle(client);
        if (fixture->held != NULL)
            http_fixture_release(fixture);
        loopback_expect_end(client);
        was_refused = mem_tries() - before >= n;
        mem_refuse_nth(0);
        if (!was_refused)
            assert_non_null(strstr(client->text, "\r\n\r\nabcHTTP/1.1 200 OK"));
        loopback_close(client);
        http_fixture_expect_connections(fixture, 0);
        assert_int_equal(fixture->requests, fixture->ends);
        assert_int_equal(budget_used(&fixture->budget), 0);
    }
}

/* The request that /stream has begun. */
static struct http_request *begin_stream(struct http_fixture *fixture, struct loopback *client,
                                         const char *version)
{
    char request[64];
    snprintf(request, sizeof(request), "GET /stream HTTP/%s\r\n" HOST "\r\n", version);
    loopback_send(client, request);
    loopback_expect(client, "\r\n\r\n");
    struct http_request *stream = fixture->held;
    assert_non_null(stream);
    fixture->held = NULL;
    return stream;
}

static void a_stream_is_sent_in_pieces_and_ends_whole(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    struct http_request *stream = begin_stream(fixture, client, "1.1");
    assert_non_null(strstr(client->text, "Transfer-Encoding: chunked\r\n\r\n"));
    assert_null(strstr(client->text, "Content-Length"));
    assert_true(http_stream_send(stream, slice_of_text("id: 1\n\n")));
    loopback_expect(client, "\r\n\r\n7\r\nid: 1\n\n\r\n");
    assert_true(http_stream_send(stream, slice_of_text("0123456789abcdef")));
    loopback_expect(client, "\r\n10\r\n0123456789abcdef\r\n");
    assert_int_equal(fixture->ends, 0);
    http_stream_end(stream, true);
    loopback_expect(client, "abcdef\r\n0\r\n\r\n");
    http_fixture_expect_ends(fixture, 1);
    /* The connection is kept. */
    loopback_send(client, "GET /early HTTP/1.1\r\n" HOST "\r\n");
    loopback_expect(client, "\r\n\r\nearly");
    loopback_close(client);
}

static void the_end_of_the_connection_ends_a_stream_to_an_old_client(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    struct http_request *stream = begin_stream(fixture, client, "1.0");
    assert_null(strstr(client->text, "Transfer-Encoding"));
    assert_true(http_stream_send(stream, slice_of_text("id: 1\n\n")));
    http_stream_end(stream, true);
    loopback_expect_end(client);
    assert_non_null(strstr(client->text, "\r\n\r\nid: 1\n\n"));
    loopback_close(client);
    http_fixture_expect_ends(fixture, 1);
}

static void a_stream_whose_client_goes_is_gone(void **state)
{
    struct http_fixture *fixture = *state;
    for (unsigned i = 0; i < 2; i++) {
        struct loopback *client = http_fixture_connect(fixture);
        struct http_request *stream = begin_stream(fixture, client, "1.1");
        if (i == 0)
            loopback_close(client);
        else
            loopback_reset(client);
        http_fixture_expect_connections(fixture, 0);
        assert_true(http_request_is_gone(stream));
        assert_false(http_stream_send(stream, slice_of_text("id: 1\n\n")));
        assert_int_equal(fixture->ends, i);
        http_stream_end(stream, i == 0);
        http_fixture_expect_ends(fixture, i + 1);
    }
}

static void a_client_that_takes_nothing_gets_no_more_than_one_piece(void **state)
{
    enum { PIECE_BYTES = 64 * 1024, PIECES_MAX = 4096 };
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    struct http_request *stream = begin_stream(fixture, client, "1.1");
    uint8_t *piece = mem_zalloc(PIECE_BYTES);
    unsigned sent = 0;
    while (sent < PIECES_MAX && http_stream_send(stream, slice_of(piece, PIECE_BYTES)))
        sent++;
    assert_in_range(sent, 1, PIECES_MAX - 1);
    assert_false(http_stream_send(stream, slice_of_text("id: 1\n\n")));
    http_stream_end(stream, true); /* which it cannot take */
    http_fixture_expect_ends(fixture, 1);
    http_fixture_expect_connections(fixture, 0);
    loopback_close(client);
    mem_free(piece);
}

#define LIVE(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE(an_echo_request_gets_its_body_back),
        LIVE(the_connection_is_kept_as_the_client_asks),
        LIVE(bytes_may_come_one_by_one),
        LIVE(large_bodies_come_whole),
        LIVE(lent_bodies_are_sent_in_pieces),
        LIVE(pipelined_requests_get_responses_in_order),
        LIVE(a_half_closed_client_gets_its_response),
        LIVE(expectations_are_met_only_when_the_body_is_wanted),
        LIVE(malformed_requests_get_400_and_the_end),
        LIVE(options_star_does_not_reach_the_handler),
        LIVE(head_has_the_length_but_no_body),
        LIVE(unread_bodies_are_dropped_within_bounds),
        LIVE(bodies_over_the_limit_are_refused),
        LIVE(a_short_budget_refuses_before_the_body_is_read),
        LIVE(connections_are_charged),
        LIVE(a_peek_may_respond_or_announce_too_much),
        LIVE(a_client_may_vanish_at_every_byte),
        LIVE(a_response_after_the_client_has_gone_does_nothing),
        LIVE(a_request_that_is_held_goes_on_or_ends),
        LIVE(a_request_that_is_held_at_a_full_budget_is_refused_in_words),
        LIVE(a_stream_is_sent_in_pieces_and_ends_whole),
        LIVE(the_end_of_the_connection_ends_a_stream_to_an_old_client),
        LIVE(a_stream_whose_client_goes_is_gone),
        LIVE(a_client_that_takes_nothing_gets_no_more_than_one_piece),
        LIVE(refused_memory_ends_in_a_response_or_a_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
