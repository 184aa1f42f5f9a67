/* SPDX-License-Identifier: Apache-2.0 */
/* The server side of the tests of src/net: a handler whose behaviour the path selects. */
#include "tests/support/http_fixture.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/support/loopback.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { TURNS_MAX = 5000 };

static bool has_path(const struct http_request *request, const char *path)
{
    return slice_equal_text(http_request_path(request), path);
}

static void respond(struct http_request *request, unsigned status, struct slice body)
{
    http_respond(request, &(struct http_response){
                              .status = status,
                              .headers = {{"content-type", "text/plain"}},
                              .body = body,
                              .closes = has_path(request, "/bye"),
                          });
}

static uint64_t on_peek(struct http_request *request, const uint8_t *data, void *arg)
{
    (void)arg;
    if (memcmp(data, "stop", 4) == 0)
        respond(request, 400, slice_of_text("stopped"));
    return memcmp(data, "huge", 4) == 0 ? FIXTURE_BODY_MAX + 1 : 0;
}

static void read_body(struct http_request *request)
{
    struct http_body_plan plan = {.max_bytes = FIXTURE_BODY_MAX};
    if (has_path(request, "/peek")) {
        plan.peek_bytes = 4;
        plan.on_peek = on_peek;
    }
    http_request_read_body(request, &plan);
}

static void respond_large(struct http_request *request)
{
    uint8_t *body = mem_alloc(LARGE_RESPONSE_BYTES);
    memset(body, 'x', LARGE_RESPONSE_BYTES);
    respond(request, 200, slice_of(body, LARGE_RESPONSE_BYTES));
    mem_free(body);
}

static uint8_t lent[LARGE_RESPONSE_BYTES];

static void on_release(void *arg)
{
    struct http_fixture *fixture = arg;
    fixture->releases++;
}

/* Each 4 KiB differ from those before. */
static void respond_lent(struct http_fixture *fixture, struct http_request *request)
{
    for (size_t i = 0; i < sizeof(lent); i++)
        lent[i] = (uint8_t)('a' + i / 4096 % 23);
    http_respond(request, &(struct http_response){
                              .status = 200,
                              .headers = {{"content-type", "text/plain"}},
                              .body = slice_of(lent, sizeof(lent)),
                              .release = on_release,
                              .release_arg = fixture,
                          });
}

static void begin_stream(struct http_fixture *fixture, struct http_request *request)
{
    fixture->held = request;
    http_respond(request, &(struct http_response){
                              .status = 200,
                              .headers = {{"content-type", "text/event-stream"}},
                              .is_stream = true,
                          });
}

static void on_request(struct http_request *request, void *arg)
{
    struct http_fixture *fixture = arg;
    fixture->requests++;
    http_request_set_context(request, fixture);
    if (has_path(request, "/slow"))
        clock_fake_advance(HTTP_TURN_NS + 1);
    if (has_path(request, "/ask") && !fixture->has_asked) {
        fixture->held = request;
        fixture->has_asked = true;
        fixture->asks = http_request_hold(request);
    } else if (has_path(request, "/hold"))
        fixture->held = request;
    else if (has_path(request, "/early") || has_path(request, "/slow"))
        respond(request, 200, slice_of_text("early"));
    else if (has_path(request, "/large"))
        respond_large(request);
    else if (has_path(request, "/lent"))
        respond_lent(fixture, request);
    else if (has_path(request, "/stream"))
        begin_stream(fixture, request);
    else
        read_body(request);
}

static void on_body(struct http_request *request, void *arg)
{
    struct http_fixture *fixture = arg;
    fixture->bodies++;
    if (has_path(request, "/keep"))
        fixture->held = request;
    else
        respond(request, 200, buffer_slice(http_request_body(request)));
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    static const unsigned statuses[] = {
        [HTTP_BODY_TOO_LARGE] = 413,
        [HTTP_BODY_NO_BUDGET] = 503,
        [HTTP_BODY_MALFORMED] = 400,
        [HTTP_BODY_TOO_SLOW] = 408,
    };
    struct http_fixture *fixture = arg;
    fixture->failures++;
    fixture->failure = failure;
    respond(request, statuses[failure], slice_of_text("failed"));
}

static void on_end(struct http_request *request, void *arg)
{
    struct http_fixture *fixture = arg;
    assert_ptr_equal(http_request_context(request), fixture);
    fixture->ends++;
}

static const struct http_handler handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = on_body_failed,
    .on_end = on_end,
};

struct http_fixture *http_fixture_create_with(uint64_t budget_bytes,
                                              void (*adjust)(struct http_server_settings *))
{
    struct http_fixture *fixture = mem_zalloc(sizeof(*fixture));
    fixture->lane = lane_create(0);
    assert_non_null(fixture->lane);
    budget_init(&fixture->budget, budget_bytes);
    struct http_server_settings settings = {
        .lane = fixture->lane,
        .budget = &fixture->budget,
        .has_http1 = true,
        .has_http2 = true,
        .has_keep_alive = true,
        .handler = &handler,
        .arg = fixture,
    };
    if (adjust != NULL)
        adjust(&settings);
    fixture->server = http_server_create(&settings);
    struct error error;
    if (!http_server_listen(&fixture->server, 1, "tcp", "127.0.0.1:0", &error))
        fail_msg("%s", error.text);
    fixture->address = http_server_address(fixture->server);
    return fixture;
}

struct http_fixture *http_fixture_create(uint64_t budget_bytes)
{
    return http_fixture_create_with(budget_bytes, NULL);
}

static void on_stopped(void *arg)
{
    struct http_fixture *fixture = arg;
    fixture->stops++;
    fixture->has_stopped = true;
}

void http_fixture_stop(struct http_fixture *fixture)
{
    fixture->is_stopping = true;
    http_server_stop(fixture->server, on_stopped, fixture);
}

void http_fixture_destroy(struct http_fixture *fixture)
{
    if (!fixture->has_stopped) {
        if (!fixture->is_stopping)
            http_fixture_stop(fixture);
        http_server_abort(fixture->server);
        loopback_turn_until(fixture->lane, &fixture->has_stopped);
    }
    if (fixture->held != NULL)
        http_fixture_release(fixture);
    assert_int_equal(fixture->stops, 1);
    assert_int_equal(fixture->requests, fixture->ends);
    assert_int_equal(http_server_figures(fixture->server).connections, 0);
    http_server_destroy(fixture->server);
    lane_destroy(fixture->lane);
    assert_int_equal(budget_used(&fixture->budget), 0);
    budget_fini(&fixture->budget);
    mem_free(fixture);
}

struct loopback *http_fixture_connect(struct http_fixture *fixture)
{
    return loopback_connect(fixture->lane, fixture->address);
}

void http_fixture_release(struct http_fixture *fixture)
{
    struct http_request *held = fixture->held;
    assert_non_null(held);
    fixture->held = NULL;
    if (fixture->asks != NULL) {
        struct http_server *server = fixture->asks;
        fixture->asks = NULL;
        fixture->requests -= !http_request_is_gone(held); /* it is counted again */
        http_request_again(held, server);
    } else if (has_path(held, "/hold"))
        read_body(held);
    else
        respond(held, 200, buffer_slice(http_request_body(held)));
}

static void turn_until(struct http_fixture *fixture, const unsigned *count, unsigned wanted)
{
    for (int turn = 0; turn < TURNS_MAX && *count < wanted; turn++) {
        lane_turn(fixture->lane);
        poll(NULL, 0, turn < 10 ? 0 : 1);
    }
    assert_int_equal(*count, wanted);
}

void http_fixture_expect_ends(struct http_fixture *fixture, unsigned ends)
{
    turn_until(fixture, &fixture->ends, ends);
}

void http_fixture_expect_requests(struct http_fixture *fixture, unsigned requests)
{
    turn_until(fixture, &fixture->requests, requests);
}

void http_fixture_expect_connections(struct http_fixture *fixture, uint64_t connections)
{
    for (int turn = 0; turn < TURNS_MAX; turn++) {
        if (http_server_figures(fixture->server).connections == connections)
            return;
        lane_turn(fixture->lane);
        poll(NULL, 0, turn < 10 ? 0 : 1);
    }
    assert_int_equal(http_server_figures(fixture->server).connections, connections);
}
