/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client against a scripted back-end on loopback, both on one hand-turned lane. */
#include "src/net/client/http_client.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/core/batch.h"
#include "src/net/client/request_edits.h"
#include "tests/support/scripted_backend.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Real time that a test may take before it counts as hung. */
enum { TEST_SECONDS_MAX = 20 };

struct seen {
    unsigned done;
    unsigned status;
    char error[256];
    bool is_permanent;
    bool is_cut;
    bool has_retry_after;
    uint64_t retry_after_ns;
    size_t body_size;
    char body[RESPONSE_BYTES_MAX + 1];
    char content_type[128];
};

struct fixture {
    struct lane *lane;
    struct scripted_backend *backend;
    struct http_client_settings settings;
    struct http_client *client;
    const struct config_pair *header; /* of each request; NULL: none */
    struct seen seen;
    bool is_closed;
};

static void on_done(const struct http_result *result, void *arg)
{
    struct seen *seen = arg;
    seen->done++;
    seen->status = result->status;
    snprintf(seen->error, sizeof(seen->error), "%s", result->error == NULL ? "" : result->error);
    seen->is_permanent = result->is_permanent;
    seen->is_cut = result->is_cut;
    seen->has_retry_after = result->has_retry_after;
    seen->retry_after_ns = result->retry_after_ns;
    seen->body_size = result->body.size;
    assert_true(result->body.size <= RESPONSE_BYTES_MAX);
    if (result->body.size > 0)
        memcpy(seen->body, result->body.data, result->body.size);
    seen->body[result->body.size] = '\0';
    snprintf(seen->content_type, sizeof(seen->content_type), "%.*s", (int)result->content_type.size,
             (const char *)result->content_type.data);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

/* Turns the lane until *flag; the fake clock stands still. */
static void turn_until(struct lane *lane, const unsigned *count, unsigned wanted)
{
    time_t end = time(NULL) + TEST_SECONDS_MAX;
    while (*count < wanted) {
        lane_turn(lane);
        if (time(NULL) > end)
            fail_msg("nothing happened for %d seconds", TEST_SECONDS_MAX);
    }
}

static void turn_some(struct lane *lane)
{
    for (int i = 0; i < 50; i++)
        lane_turn(lane);
}

static void set_up(struct fixture *fixture, const struct backend_step *steps, size_t count)
{
    static char url[128];
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 1136214245 * (uint64_t)NS_PER_S);
    memset(fixture, 0, sizeof(*fixture));
    fixture->lane = lane_create(0);
    fixture->backend = scripted_backend_create(fixture->lane, steps, count);
    snprintf(url, sizeof(url), "%s/v1/traces", scripted_backend_url(fixture->backend));
    fixture->settings = (struct http_client_settings){.lane = fixture->lane,
                                                      .url = url,
                                                      .user_agent = "test/1",
                                                      .timeout_ns = 30 * (uint64_t)NS_PER_S,
                                                      .idle_connections_max = 2,
                                                      .idle_timeout_ns = 90 * (uint64_t)NS_PER_S,
                                                      .has_keep_alive = true};
}

static void open_client(struct fixture *fixture)
{
    struct error error;
    fixture->client = http_client_create(&fixture->settings, &error);
    if (fixture->client == NULL)
        fail_msg("%s", error.text);
}

static void tear_down(struct fixture *fixture)
{
    time_t end = time(NULL) + TEST_SECONDS_MAX;
    http_client_close(fixture->client, on_closed, &fixture->is_closed);
    while (!fixture->is_closed && time(NULL) <= end)
        lane_turn(fixture->lane);
    assert_true(fixture->is_closed);
    http_client_destroy(fixture->client);
    scripted_backend_destroy(fixture->backend);
    lane_destroy(fixture->lane);
    clock_fake_stop();
}

static void post_to(struct fixture *fixture, const char *target, const struct batch_part *parts,
                    size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += parts[i].bytes.size;
    const struct http_post post = {.parts = parts,
                                   .parts_count = count,
                                   .bytes = bytes,
                                   .content_type = "application/x-protobuf",
                                   .header = fixture->header,
                                   .target = target,
                                   .done = on_done,
                                   .arg = &fixture->seen};
    http_client_post(fixture->client, &post);
}

static void post_parts(struct fixture *fixture, const struct batch_part *parts, size_t count)
{
    post_to(fixture, NULL, parts, count);
}

static const struct batch_part hello[] = {
    {.bytes = {.data = (const uint8_t *)"hel", .size = 3}},
    {.bytes = {.data = (const uint8_t *)"", .size = 0}},
    {.bytes = {.data = (const uint8_t *)"lo", .size = 2}},
};

static void post_hello(struct fixture *fixture)
{
    unsigned before = fixture->seen.done;
    post_parts(fixture, hello, 3);
    assert_int_equal(fixture->seen.done, before);
    turn_until(fixture->lane, &fixture->seen.done, before + 1);
}

#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

static void parts_arrive_as_one_body_with_our_headers(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    static const struct config_pair headers[] = {
        {"X-Token", "t"}, {"host", "other.example"}, {"Content-Length", "999"}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    fixture.settings.headers = headers;
    fixture.settings.headers_count = 3;
    open_client(&fixture);
    post_hello(&fixture);
    assert_int_equal(fixture.seen.status, 200);
    size_t size;
    const char *body = scripted_backend_body(fixture.backend, &size);
    assert_int_equal(size, 5);
    assert_memory_equal(body, "hello", 5);
    assert_string_equal(scripted_backend_head(fixture.backend),
                        "POST /v1/traces HTTP/1.1\r\nHost: other.example\r\nUser-Agent: test/1\r\n"
                        "X-Token: t\r\nContent-Type: application/x-protobuf\r\n"
                        "Content-Length: 5\r\n\r\n");
    tear_down(&fixture);
}

/* Its dependencies would cost a sidecar more memory than all of ours. */
static void cleartext_never_loads_libcurl(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    open_client(&fixture);
    post_hello(&fixture);
    assert_null(dlopen("libcurl.so.4", RTLD_NOW | RTLD_NOLOAD));
    tear_down(&fixture);
}

static void thousands_of_parts_and_megabytes_are_written_whole(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    enum { PARTS = 5000, PART_BYTES = 2000 };
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    open_client(&fixture);
    uint8_t *bytes = mem_alloc(PARTS * PART_BYTES);
    struct batch_part *parts = mem_zalloc(PARTS * sizeof(*parts));
    for (size_t i = 0; i < PARTS * PART_BYTES; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 4096);
    for (size_t i = 0; i < PARTS; i++)
        parts[i].bytes = slice_of(bytes + i * PART_BYTES, PART_BYTES);
    post_parts(&fixture, parts, PARTS);
    turn_until(fixture.lane, &fixture.seen.done, 1);
    size_t size;
    const char *body = scripted_backend_body(fixture.backend, &size);
    assert_int_equal(fixture.seen.status, 200);
    assert_int_equal(size, PARTS * PART_BYTES);
    assert_memory_equal(body, bytes, size);
    post_hello(&fixture);
    assert_int_equal(scripted_backend_connections(fixture.backend), 1);
    tear_down(&fixture);
    mem_free(bytes);
    mem_free(parts);
}

struct response_case {
    const char *name;
    struct backend_step step;
    unsigned status;
    bool is_cut;
    bool is_kept;           /* a second exchange uses the same connection */
    uint64_t retry_after_s; /* 0: none */
    const char *body;
    const char *error;
};

static const struct response_case responses[] = {
    {"200 with a body",
     {.response = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi"},
     .status = 200,
     .is_kept = true,
     .body = "hi"},
    {"lower-case headers, no reason, bare line ends",
     {.response = "HTTP/1.1 200\ncontent-length:2\n\nhi"},
     .status = 200,
     .is_kept = true,
     .body = "hi"},
    {"interim responses",
     {.response = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                  "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"},
     .status = 202,
     .is_kept = true,
     .body = ""},
    {"chunked with extension and trailer",
     {.response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n3\r\n yo\r\n"
                  "0\r\nX: y\r\n\r\n"},
     .status = 200,
     .is_kept = true,
     .body = "hi yo"},
    {"until close",
     {.response = "HTTP/1.1 200 OK\r\n\r\nhi", .closes = true},
     .status = 200,
     .body = "hi"},
    {"HTTP/1.0",
     {.response = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi"},
     .status = 200,
     .body = "hi"},
    {"HTTP/1.0 keep-alive",
     {.response = "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nhi"},
     .status = 200,
     .is_kept = true,
     .body = "hi"},
    {"Connection: close",
     {.response = "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nhi"},
     .status = 200,
     .body = "hi"},
    {"204",
     {.response = "HTTP/1.1 204 No Content\r\n\r\n"},
     .status = 204,
     .is_kept = true,
     .body = ""},
    {"pipelined garbage",
     {.response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 500 Surprise\r\n\r\n"},
     .status = 200,
     .body = "hi"},
    {"503 with seconds",
     {.response = "HTTP/1.1 503 S\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"},
     .status = 503,
     .is_kept = true,
     .retry_after_s = 7,
     .body = ""},
    {"Retry-After after that of an interim response",
     {.response = "HTTP/1.1 103 E\r\nRetry-After: 120\r\n\r\n"
                  "HTTP/1.1 503 S\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"},
     .status = 503,
     .is_kept = true,
     .retry_after_s = 7,
     .body = ""},
    {"429 with a date ten seconds on",
     {.response = "HTTP/1.1 429 T\r\nRetry-After: Mon, 02 Jan 2006 15:04:15 GMT\r\n"
                  "Content-Length: 0\r\n\r\n"},
     .status = 429,
     .is_kept = true,
     .retry_after_s = 10,
     .body = ""},
    {"502 ignores the hint",
     {.response = "HTTP/1.1 502 B\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"},
     .status = 502,
     .is_kept = true,
     .body = ""},
    {"413 before the body",
     {.response = "HTTP/1.1 413 L\r\nContent-Length: 0\r\n\r\n", .responds_at_head = true},
     .status = 413,
     .is_kept = true,
     .body = ""},
    {"closed after the head",
     {.response = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", .closes = true},
     .status = 200,
     .is_cut = true,
     .body = "hi"},
    {"reset after the head",
     {.response = "HTTP/1.1 500 E\r\nContent-Length: 9\r\n\r\n", .resets = true},
     .status = 500,
     .is_cut = true,
     .body = ""},
    {"both lengths",
     {.response = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "2\r\nhi\r\n0\r\n\r\n"},
     .status = 200,
     .body = "hi"},
    {"closed in the head",
     {.response = "HTTP/1.1 200 OK\r\nContent-", .closes = true},
     .error = "EOF"},
    {"no HTTP",
     {.response = "SSH-2.0-OpenSSH_9.2\r\n"},
     .error = "the response does not begin with HTTP/1.0 or HTTP/1.1 and a status"},
    {"contradicting lengths",
     {.response = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n"},
     .error = "two Content-Length headers contradict each other"},
    {"negative length",
     {.response = "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n"},
     .error = "Content-Length is not a number"},
    {"unknown coding",
     {.response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
     .error = "found a Transfer-Encoding other than one \"chunked\" in an HTTP/1.1 response"},
    {"folded header",
     {.response = "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"},
     .error = "a header line has no valid name before its colon"},
    {"endless headers",
     {.response = "HTTP/1.1 100 C\r\n\r\n", .repeated = 10000},
     .error = "the response's headers are larger than 64 KiB"},
    {"broken chunk",
     {.response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
     .status = 200,
     .is_cut = true,
     .body = ""},
};

static void check_response(const struct response_case *row)
{
    const struct backend_step steps[] = {row->step, {.response = OK_EMPTY}};
    struct fixture fixture;
    set_up(&fixture, steps, 2);
    open_client(&fixture);
    post_hello(&fixture);
    print_message("   %s\n", row->name);
    assert_int_equal(fixture.seen.status, row->status);
    assert_string_equal(fixture.seen.error, row->error == NULL ? "" : row->error);
    assert_int_equal(fixture.seen.is_cut, row->is_cut);
    assert_int_equal(fixture.seen.retry_after_ns, row->retry_after_s * NS_PER_S);
    if (row->body != NULL)
        assert_string_equal(fixture.seen.body, row->body);
    post_hello(&fixture);
    assert_int_equal(fixture.seen.status, 200);
    assert_int_equal(scripted_backend_connections(fixture.backend), row->is_kept ? 1 : 2);
    tear_down(&fixture);
}

static void responses_are_read_strictly_and_connections_kept_when_clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(responses) / sizeof(responses[0]); i++)
        check_response(&responses[i]);
}

static void large_responses_are_cut_but_count(void **state)
{
    enum { BODY = 70 * 1024 };
    struct fixture fixture;
    (void)state;
    static char response[BODY + 128];
    int head =
        snprintf(response, sizeof(response), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BODY);
    memset(response + head, 'x', BODY);
    const struct backend_step steps[] = {
        {.response = response, .response_size = (size_t)head + BODY}, {.response = OK_EMPTY}};
    set_up(&fixture, steps, 2);
    open_client(&fixture);
    post_hello(&fixture);
    assert_int_equal(fixture.seen.status, 200);
    assert_true(fixture.seen.is_cut);
    assert_int_equal(fixture.seen.body_size, RESPONSE_BYTES_MAX);
    post_hello(&fixture);
    assert_int_equal(scripted_backend_connections(fixture.backend), 1);
    tear_down(&fixture);
}

static void check_endless(bool is_through_proxy)
{
    static char piece[64 * 1024];
    static const char head[] = "HTTP/1.1 200 OK\r\n\r\n";
    struct fixture fixture;
    memset(piece, 'x', sizeof(piece));
    memcpy(piece, head, sizeof(head) - 1);
    const struct backend_step steps[] = {
        {.response = piece, .response_size = sizeof(piece), .repeated = 512},
        {.response = OK_EMPTY}};
    set_up(&fixture, steps, 2);
    if (is_through_proxy)
        fixture.settings.proxy_url = scripted_backend_url(fixture.backend);
    open_client(&fixture);
    post_hello(&fixture);
    assert_int_equal(fixture.seen.status, 200);
    assert_true(fixture.seen.is_cut);
    assert_int_equal(fixture.seen.body_size, RESPONSE_BYTES_MAX);
    post_hello(&fixture);
    assert_int_equal(fixture.seen.status, 200);
    assert_int_equal(scripted_backend_connections(fixture.backend), 2);
    tear_down(&fixture);
}

static void endless_response_is_given_up_after_4_mib(void **state)
{
    (void)state;
    check_endless(false);
    check_endless(true);
}

static void silent_backend_ends_at_the_timeout(void **state)
{
    static const struct backend_step steps[] = {{.response = NULL}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    open_client(&fixture);
    post_parts(&fixture, hello, 3);
    turn_some(fixture.lane);
    assert_int_equal(scripted_backend_requests(fixture.backend), 1);
    clock_fake_advance(29 * (uint64_t)NS_PER_S);
    turn_some(fixture.lane);
    assert_int_equal(fixture.seen.done, 0);
    clock_fake_advance(2 * (uint64_t)NS_PER_S);
    turn_until(fixture.lane, &fixture.seen.done, 1);
    assert_int_equal(fixture.seen.status, 0);
    assert_string_equal(fixture.seen.error, "context deadline exceeded (Client.Timeout exceeded "
                                            "while awaiting headers)");
    tear_down(&fixture);
}

static void slow_body_does_not_undo_a_200(void **state)
{
    static const struct backend_step steps[] = {
        {.response = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi"}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    open_client(&fixture);
    post_parts(&fixture, hello, 3);
    turn_some(fixture.lane);
    assert_int_equal(fixture.seen.done, 0);
    clock_fake_advance(RESPONSE_BODY_DEADLINE_NS + 1);
    turn_until(fixture.lane, &fixture.seen.done, 1);
    assert_int_equal(fixture.seen.status, 200);
    assert_true(fixture.seen.is_cut);
    tear_down(&fixture);
}

static void kept_connection_closed_by_its_peer_is_noticed(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    open_client(&fixture);
    post_hello(&fixture);
    scripted_backend_hang_up(fixture.backend);
    turn_some(fixture.lane);
    post_hello(&fixture);
    assert_int_equal(fixture.seen.status, 200);
    assert_int_equal(scripted_backend_connections(fixture.backend), 2);
    assert_int_equal(scripted_backend_requests(fixture.backend), 2);
    tear_down(&fixture);
}

static void stale_connection_is_replaced_once_without_the_caller_noticing(void **state)
{
    static const struct backend_step steps[] = {
        {.response = OK_EMPTY}, {.closes_unheard = true}, {.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 3);
    open_client(&fixture);
    post_hello(&fixture);
    post_hello(&fixture);
    assert_int_equal(fixture.seen.status, 200);
    assert_int_equal(scripted_backend_connections(fixture.backend), 2);
    tear_down(&fixture);
}

static void fresh_connection_that_breaks_is_an_error(void **state)
{
    static const struct backend_step steps[] = {{.closes_unheard = true}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    open_client(&fixture);
    post_hello(&fixture);
    assert_int_equal(fixture.seen.status, 0);
    assert_true(strlen(fixture.seen.error) > 0);
    assert_false(fixture.seen.is_permanent);
    assert_int_equal(scripted_backend_requests(fixture.backend), 1);
    tear_down(&fixture);
}

static void refused_connection_names_the_address(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    char expected[128];
    (void)state;
    set_up(&fixture, steps, 1);
    open_client(&fixture);
    const char *port = strrchr(scripted_backend_url(fixture.backend), ':') + 1;
    snprintf(expected, sizeof(expected), "dial tcp 127.0.0.1:%s: connect: connection refused",
             port);
    struct scripted_backend *other = scripted_backend_create(fixture.lane, steps, 1);
    scripted_backend_destroy(fixture.backend);
    fixture.backend = other;
    post_hello(&fixture);
    assert_string_equal(fixture.seen.error, expected);
    tear_down(&fixture);
}

static void host_names_are_looked_up_and_all_addresses_tried(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    char url[128];
    (void)state;
    set_up(&fixture, steps, 1);
    /* localhost may be ::1 first, where nothing listens. */
    snprintf(url, sizeof(url), "http://localhost%s/",
             strrchr(scripted_backend_url(fixture.backend), ':'));
    fixture.settings.url = url;
    open_client(&fixture);
    post_hello(&fixture);
    post_hello(&fixture);
    assert_int_equal(fixture.seen.status, 200);
    assert_int_equal(scripted_backend_connections(fixture.backend), 1);
    tear_down(&fixture);
}

static void max_connections_makes_requests_wait_for_each_other(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    fixture.settings.connections_max = 2;
    open_client(&fixture);
    for (int i = 0; i < 10; i++)
        post_parts(&fixture, hello, 3);
    turn_until(fixture.lane, &fixture.seen.done, 10);
    assert_int_equal(scripted_backend_connections(fixture.backend), 2);
    tear_down(&fixture);
}

static void keep_alive_off_and_idle_timeout_close_connections(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    open_client(&fixture);
    post_hello(&fixture);
    clock_fake_advance(91 * (uint64_t)NS_PER_S);
    turn_some(fixture.lane);
    post_hello(&fixture);
    assert_int_equal(scripted_backend_connections(fixture.backend), 2);
    tear_down(&fixture);
    set_up(&fixture, steps, 1);
    fixture.settings.has_keep_alive = false;
    open_client(&fixture);
    post_hello(&fixture);
    post_hello(&fixture);
    assert_non_null(strstr(scripted_backend_head(fixture.backend), "Connection: close\r\n"));
    assert_int_equal(scripted_backend_connections(fixture.backend), 2);
    tear_down(&fixture);
}

static void closing_fails_what_is_under_way(void **state)
{
    static const struct backend_step steps[] = {{.response = NULL}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    fixture.settings.connections_max = 1;
    open_client(&fixture);
    post_parts(&fixture, hello, 3);
    post_parts(&fixture, hello, 3);
    turn_some(fixture.lane);
    tear_down(&fixture);
    assert_int_equal(fixture.seen.done, 2);
    assert_string_equal(fixture.seen.error, "the client is shutting down");
}

static void userinfo_becomes_basic_authorisation(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    char url[128];
    (void)state;
    set_up(&fixture, steps, 1);
    snprintf(url, sizeof(url), "http://us%%65r:pass@%s/x?y=z#f",
             scripted_backend_url(fixture.backend) + strlen("http://"));
    fixture.settings.url = url;
    open_client(&fixture);
    post_hello(&fixture);
    assert_non_null(
        strstr(scripted_backend_head(fixture.backend), "Authorization: Basic dXNlcjpwYXNz\r\n"));
    assert_non_null(strstr(scripted_backend_head(fixture.backend), "POST /x?y=z HTTP/1.1\r\n"));
    tear_down(&fixture);
}

static void headers_that_smuggle_are_refused(void **state)
{
    static const struct config_pair headers[] = {{"X", "a\r\nY: b"}};
    struct lane *lane = lane_create(0);
    struct error error;
    (void)state;
    const struct http_client_settings settings = {.lane = lane,
                                                  .url = "http://127.0.0.1:1",
                                                  .user_agent = "t",
                                                  .headers = headers,
                                                  .headers_count = 1};
    assert_null(http_client_create(&settings, &error));
    assert_non_null(strstr(error.text, "control character"));
    lane_destroy(lane);
}

struct redirect_case {
    const char *name;
    unsigned code;
    const char *location; /* NULL: none */
    bool is_absolute;     /* the back-end's own URL goes before location */
    unsigned status;
    bool is_permanent;
    unsigned requests;
    const char *target; /* of the last request */
};

static const struct redirect_case redirects[] = {
    {"307", 307, "/b?c=d", true, 200, false, 2, "/b?c=d"},
    {"308 to a path", 308, "/b", false, 200, false, 2, "/b"},
    {"301", 301, "/b", true, 200, false, 2, "/b"},
    {"302 to a relative path", 302, "../v2/logs#x", false, 200, false, 2, "/v2/logs"},
    {"303", 303, "/b c", true, 200, false, 2, "/b%20c"},
    {"300 names choices", 300, "/b", false, 300, false, 1, "/v1/traces"},
    {"foreign scheme", 307, "file:///etc/passwd", false, 0, true, 1, "/v1/traces"},
    {"no address", 307, "http://:99999/", false, 0, true, 1, "/v1/traces"},
    {"307 without location", 307, NULL, false, 307, false, 1, "/v1/traces"},
    {"301 without location", 301, NULL, false, 301, false, 1, "/v1/traces"},
};

/* With a proxy, libcurl is the writer from the start; it gets the same requests. */
static void check_redirect(const struct redirect_case *row, bool has_proxy)
{
    static const char other[] = "http://backend.example:4318";
    char response[512];
    char line[256];
    struct fixture fixture;
    struct backend_step steps[] = {{.response = response}, {.response = OK_EMPTY}};
    set_up(&fixture, steps, 2);
    const char *base = has_proxy ? other : scripted_backend_url(fixture.backend);
    snprintf(response, sizeof(response), "HTTP/1.1 %u T\r\n%s%s%s%sContent-Length: 0\r\n\r\n",
             row->code, row->location != NULL ? "Location: " : "", row->is_absolute ? base : "",
             row->location != NULL ? row->location : "", row->location != NULL ? "\r\n" : "");
    if (has_proxy) {
        fixture.settings.proxy_url = scripted_backend_url(fixture.backend);
        fixture.settings.url = "http://backend.example:4318/v1/traces";
    }
    open_client(&fixture);
    print_message("   %s%s\n", row->name, has_proxy ? ", through a proxy" : "");
    post_hello(&fixture);
    assert_int_equal(fixture.seen.status, row->status);
    assert_int_equal(fixture.seen.is_permanent, row->is_permanent);
    assert_int_equal(scripted_backend_requests(fixture.backend), row->requests);
    snprintf(line, sizeof(line), "POST %s%s HTTP/1.1\r\n", has_proxy ? base : "", row->target);
    assert_memory_equal(scripted_backend_head(fixture.backend), line, strlen(line));
    size_t size;
    assert_memory_equal(scripted_backend_body(fixture.backend, &size), "hello", 5);
    assert_int_equal(size, 5);
    tear_down(&fixture);
}

static void redirects_are_followed_with_the_body(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(redirects) / sizeof(redirects[0]); i++) {
        check_redirect(&redirects[i], false);
        check_redirect(&redirects[i], true);
    }
}

static void redirect_loops_are_permanent(void **state)
{
    static const struct backend_step steps[] = {
        {.response = "HTTP/1.1 307 T\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n"}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    open_client(&fixture);
    post_hello(&fixture);
    assert_int_equal(fixture.seen.status, 0);
    assert_true(fixture.seen.is_permanent);
    assert_string_equal(fixture.seen.error, "stopped after 10 redirects");
    assert_int_equal(scripted_backend_requests(fixture.backend), BACKEND_REQUESTS_MAX);
    tear_down(&fixture);
}

/* What is configured for one host, or goes with one request, stays there; it comes along to another
 * path of the same. */
static void secrets_do_not_follow_to_another_origin(void **state)
{
    static const struct config_pair headers[] = {{"X-Api-Key", "secret"},
                                                 {"Authorization", "Bearer secret"}};
    static const struct config_pair tenant = {"X-Scope-OrgID", "acme"};
    (void)state;
    for (int is_foreign = 0; is_foreign < 2; is_foreign++) {
        char response[256];
        char back[256];
        struct fixture fixture;
        struct backend_step steps[] = {{.response = response}, {.response = OK_EMPTY}};
        const struct backend_step elsewhere_steps[] = {{.response = back}};
        set_up(&fixture, steps, 2);
        struct scripted_backend *elsewhere =
            scripted_backend_create(fixture.lane, elsewhere_steps, 1);
        snprintf(response, sizeof(response), "HTTP/1.1 307 T\r\nLocation: %s/b\r\n\r\n",
                 scripted_backend_url(is_foreign ? elsewhere : fixture.backend));
        snprintf(back, sizeof(back),
                 "HTTP/1.1 307 T\r\nLocation: %s/c\r\nContent-Length: 0\r\n\r\n",
                 scripted_backend_url(fixture.backend));
        steps[0].closes = true;
        fixture.settings.headers = headers;
        fixture.settings.headers_count = 2;
        fixture.header = &tenant;
        open_client(&fixture);
        post_hello(&fixture);
        assert_int_equal(fixture.seen.status, 200);
        assert_int_equal(scripted_backend_requests(elsewhere), is_foreign);
        assert_int_equal(scripted_backend_requests(fixture.backend), 2);
        const char *last = scripted_backend_head(fixture.backend);
        assert_int_equal(strstr(last, "secret") == NULL, is_foreign);
        assert_int_equal(strstr(last, "X-Scope-OrgID: acme\r\n") == NULL, is_foreign);
        if (is_foreign) {
            assert_null(strstr(scripted_backend_head(elsewhere), "secret"));
            assert_null(strcasestr(scripted_backend_head(elsewhere), "X-Scope-OrgID"));
        }
        assert_non_null(strstr(last, is_foreign ? "POST /c " : "POST /b "));
        scripted_backend_destroy(elsewhere);
        tear_down(&fixture);
    }
}

struct broken_case {
    const char *response;
    unsigned status; /* 0: an error that may pass */
};

static const struct broken_case broken_responses[] = {
    {"", 0},
    {"garbage\r\n\r\n", 0},
    {"\x15\x03\x01\x02\x02\x46", 0}, /* a TLS alert */
    {"SSH-2.0-OpenSSH_9.6\r\n", 0},
    {"HTTP/1.1 2x0 OK\r\n\r\n", 0},
    {"HTTP/1.1 OK\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nContent-Le", 0},
    {"HTTP/1.1 100 Continue\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 200},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 200},
};

/* What is no response says nothing about the request, which may be retried. A whole head of a 2xx
 * says that the request was taken, whatever becomes of its body. */
static void broken_responses_are_transport_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(broken_responses) / sizeof(broken_responses[0]); i++) {
        const struct broken_case *row = &broken_responses[i / 2];
        const struct backend_step steps[] = {{.response = row->response, .closes = true}};
        struct fixture fixture;
        set_up(&fixture, steps, 1);
        if (i % 2 == 1) {
            fixture.settings.proxy_url = scripted_backend_url(fixture.backend);
            fixture.settings.url = "http://backend.example:4318/v1/traces";
        }
        open_client(&fixture);
        post_hello(&fixture);
        print_message("   %zu: %s\n", i, fixture.seen.error);
        assert_int_equal(fixture.seen.status, row->status);
        assert_false(fixture.seen.is_permanent);
        assert_int_equal(fixture.seen.error[0] == '\0', row->status != 0);
        tear_down(&fixture);
    }
}

static void proxies_get_the_absolute_form(void **state)
{
    static const struct backend_step steps[] = {
        {.response = "HTTP/1.1 503 S\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nno"}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    fixture.settings.proxy_url = scripted_backend_url(fixture.backend);
    fixture.settings.url = "http://backend.example:4318/v1/traces";
    open_client(&fixture);
    post_hello(&fixture);
    assert_int_equal(fixture.seen.status, 503);
    assert_int_equal(fixture.seen.retry_after_ns, 3 * (uint64_t)NS_PER_S);
    assert_string_equal(fixture.seen.body, "no");
    assert_non_null(strstr(scripted_backend_head(fixture.backend),
                           "POST http://backend.example:4318/v1/traces HTTP/1.1\r\n"));
    assert_non_null(strstr(scripted_backend_head(fixture.backend), "User-Agent: test/1\r\n"));
    assert_null(strstr(scripted_backend_head(fixture.backend), "Accept:"));
    tear_down(&fixture);
}

/* Both writers put a request's own target in the place of the URL's, for that request alone. */
static void a_request_can_have_a_target_of_its_own(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    static const char *const urls[] = {NULL, "http://backend.example:4318"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const char *base = urls[i] != NULL ? urls[i] : "";
        struct fixture fixture;
        char line[256];
        set_up(&fixture, steps, 1);
        if (urls[i] != NULL) {
            fixture.settings.proxy_url = scripted_backend_url(fixture.backend);
            fixture.settings.url = "http://backend.example:4318/v1/traces";
        }
        open_client(&fixture);
        post_to(&fixture, "/ingest?name=a%7Bb%3Dc%7D&from=1", hello, 3);
        turn_until(fixture.lane, &fixture.seen.done, 1);
        snprintf(line, sizeof(line),
                 "POST %s/ingest?name=a%%7Bb%%3Dc%%7D&from=1 HTTP/1.1\r\nHost: ", base);
        assert_memory_equal(scripted_backend_head(fixture.backend), line, strlen(line));
        post_hello(&fixture);
        snprintf(line, sizeof(line), "POST %s/v1/traces HTTP/1.1\r\nHost: ", base);
        assert_memory_equal(scripted_backend_head(fixture.backend), line, strlen(line));
        tear_down(&fixture);
    }
}

struct taken {
    uint64_t bytes;
    uint64_t most; /* then no more is wanted */
    bool is_done;
};

static bool take(struct slice bytes, void *arg)
{
    struct taken *taken = arg;
    assert_false(taken->is_done);
    taken->bytes += bytes.size;
    return taken->bytes <= taken->most;
}

static void get(struct fixture *fixture, struct taken *taken)
{
    unsigned before = fixture->seen.done;
    const struct http_post request = {
        .sink = {.take = take, .arg = taken}, .done = on_done, .arg = &fixture->seen};
    http_client_post(fixture->client, &request);
    turn_until(fixture->lane, &fixture->seen.done, before + 1);
    taken->is_done = true;
}

/* Of any size, over both clients; the own one keeps its connection. */
static void a_get_hands_over_the_body_as_it_comes(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        static const struct backend_step steps[] = {
            {.response = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n"
                         "Content-Length: 5\r\n\r\nhello"},
            {.response = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n0123456789abcdef",
             .repeated = 1 << 16,
             .closes = true},
            {.response = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone"},
        };
        const struct config_pair header = {.key = "Accept", .value = "text/plain"};
        struct fixture fixture;
        set_up(&fixture, steps, 3);
        fixture.settings.is_get = true;
        fixture.settings.headers = &header;
        fixture.settings.headers_count = 1;
        if (i == 1)
            fixture.settings.proxy_url = scripted_backend_url(fixture.backend);
        if (i == 1)
            fixture.settings.url = "http://target.example:9100/metrics?a=b";
        open_client(&fixture);
        struct taken taken = {.most = UINT64_MAX};
        get(&fixture, &taken);
        assert_int_equal(fixture.seen.status, 200);
        assert_int_equal(taken.bytes, 5);
        assert_int_equal(fixture.seen.body_size, 0);
        const char *head = scripted_backend_head(fixture.backend);
        assert_memory_equal(head, "GET ", 4);
        assert_null(strstr(head, "Content-"));
        assert_non_null(strstr(head, "Accept: text/plain\r\n"));
        taken = (struct taken){.most = UINT64_MAX};
        get(&fixture, &taken);
        assert_int_equal(fixture.seen.status, 200);
        assert_true(taken.bytes > (uint64_t)1 << 20);
        assert_false(fixture.seen.is_cut);
        taken = (struct taken){.most = UINT64_MAX};
        get(&fixture, &taken);
        assert_int_equal(fixture.seen.status, 404);
        assert_int_equal(taken.bytes, 0);
        assert_string_equal(fixture.seen.body, "gone");
        tear_down(&fixture);
    }
}

static void a_body_that_is_not_wanted_ends_the_request(void **state)
{
    static const struct backend_step steps[] = {
        {.response = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n0123456789abcdef",
         .repeated = 1 << 20,
         .closes = true}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fixture fixture;
        set_up(&fixture, steps, 1);
        fixture.settings.is_get = true;
        if (i == 1)
            fixture.settings.proxy_url = scripted_backend_url(fixture.backend);
        if (i == 1)
            fixture.settings.url = "http://target.example:9100/metrics";
        open_client(&fixture);
        struct taken taken = {.most = 1000};
        get(&fixture, &taken);
        assert_true(fixture.seen.is_cut);
        assert_true(taken.bytes > 1000 && taken.bytes < (uint64_t)1 << 20);
        tear_down(&fixture);
    }
}

static void redirects_can_be_forbidden(void **state)
{
    static const struct backend_step steps[] = {
        {.response = "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n"},
        {.response = OK_EMPTY}};
    (void)state;
    for (int forbids = 0; forbids < 2; forbids++) {
        struct fixture fixture;
        set_up(&fixture, steps, 2);
        fixture.settings.is_get = true;
        fixture.settings.forbids_redirects = forbids == 1;
        open_client(&fixture);
        struct taken taken = {.most = UINT64_MAX};
        get(&fixture, &taken);
        assert_int_equal(fixture.seen.status, forbids == 1 ? 302 : 200);
        if (forbids == 0)
            assert_memory_equal(scripted_backend_head(fixture.backend), "GET /other ", 11);
        tear_down(&fixture);
    }
}

/* Credentials that the test gives when it wants to. */
struct desk {
    struct credentials_request *request; /* the last that asked; NULL: none */
    unsigned asked;
    unsigned forgotten;
    bool gives_at_once;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void desk_give(struct desk *desk, const char *value)
{
    struct credentials_request *request = desk->request;
    desk->request = NULL;
    request_edits_begin(&request->edits, request->is_grpc);
    request_edits_add(&request->edits, EDIT_UPSERT, "Authorization", value);
    request_edits_add(&request->edits, EDIT_DELETE, "user-agent", "");
    request_edits_add(&request->edits, EDIT_UPDATE, "X-Token", "new");
    request_edits_add(&request->edits, EDIT_UPSERT, "Host", "never");
    request->done(request, NULL);
}

static void desk_ask(void *arg, struct credentials_request *request)
{
    struct desk *desk = arg;
    desk->asked++;
    desk->request = request;
    if (desk->gives_at_once)
        desk_give(desk, "Bearer at-once");
}

static void desk_forget(void *arg, struct credentials_request *request)
{
    struct desk *desk = arg;
    assert_ptr_equal(desk->request, request);
    desk->request = NULL;
    desk->forgotten++;
}

static void desk_close(void *arg, void (*closed)(void *closed_arg), void *closed_arg)
{
    struct desk *desk = arg;
    desk->closed = closed;
    desk->closed_arg = closed_arg;
}

static void open_desk(struct fixture *fixture, struct desk *desk)
{
    static const struct config_pair headers[] = {{"X-Token", "old"}};
    *desk = (struct desk){.asked = 0};
    fixture->settings.headers = headers;
    fixture->settings.headers_count = 1;
    fixture->settings.credentials = (struct request_credentials){
        .ask = desk_ask, .forget = desk_forget, .close = desk_close, .arg = desk};
    open_client(fixture);
}

static void tear_down_desk(struct fixture *fixture, struct desk *desk)
{
    http_client_close(fixture->client, on_closed, &fixture->is_closed);
    turn_some(fixture->lane);
    assert_false(fixture->is_closed);
    assert_non_null(desk->closed);
    desk->closed(desk->closed_arg);
    turn_some(fixture->lane);
    assert_true(fixture->is_closed);
    http_client_destroy(fixture->client);
    scripted_backend_destroy(fixture->backend);
    lane_destroy(fixture->lane);
    clock_fake_stop();
}

static void a_request_waits_for_the_edits_of_its_headers(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    struct desk desk;
    (void)state;
    set_up(&fixture, steps, 1);
    open_desk(&fixture, &desk);
    post_parts(&fixture, hello, 3);
    turn_some(fixture.lane);
    assert_int_equal(scripted_backend_connections(fixture.backend), 0);
    assert_int_equal(desk.asked, 1);
    desk_give(&desk, "Bearer late");
    turn_until(fixture.lane, &fixture.seen.done, 1);
    assert_int_equal(fixture.seen.status, 200);
    assert_string_equal(scripted_backend_head(fixture.backend) +
                            strcspn(scripted_backend_head(fixture.backend), "X"),
                        "X-Token: new\r\nContent-Type: application/x-protobuf\r\n"
                        "Authorization: Bearer late\r\nContent-Length: 5\r\n\r\n");
    desk.gives_at_once = true;
    post_hello(&fixture);
    assert_non_null(strstr(scripted_backend_head(fixture.backend), "Bearer at-once"));
    assert_int_equal(scripted_backend_connections(fixture.backend), 1);
    tear_down_desk(&fixture, &desk);
}

static void the_timeout_covers_the_wait_for_credentials(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY},
                                                {.response = "HTTP/1.1 200 OK\r\n"}};
    struct fixture fixture;
    struct desk desk;
    (void)state;
    set_up(&fixture, steps, 2);
    open_desk(&fixture, &desk);
    post_parts(&fixture, hello, 3);
    clock_fake_advance(29 * (uint64_t)NS_PER_S);
    turn_some(fixture.lane);
    assert_int_equal(fixture.seen.done, 0);
    clock_fake_advance(1 * (uint64_t)NS_PER_S);
    turn_until(fixture.lane, &fixture.seen.done, 1);
    assert_non_null(strstr(fixture.seen.error, "context deadline exceeded"));
    assert_int_equal(desk.forgotten, 1);
    desk.gives_at_once = true;
    post_hello(&fixture);
    /* What the credentials take is missing later. */
    desk.gives_at_once = false;
    post_parts(&fixture, hello, 3);
    clock_fake_advance(20 * (uint64_t)NS_PER_S);
    desk_give(&desk, "Bearer late");
    turn_some(fixture.lane);
    assert_int_equal(fixture.seen.done, 2);
    clock_fake_advance(11 * (uint64_t)NS_PER_S);
    turn_until(fixture.lane, &fixture.seen.done, 3);
    assert_non_null(strstr(fixture.seen.error, "context deadline exceeded"));
    tear_down_desk(&fixture, &desk);
}

static void refused_and_unfit_credentials_fail_the_request(void **state)
{
    static const struct backend_step steps[] = {{.response = OK_EMPTY}};
    struct fixture fixture;
    struct desk desk;
    (void)state;
    set_up(&fixture, steps, 1);
    open_desk(&fixture, &desk);
    post_parts(&fixture, hello, 3);
    desk.request->done(desk.request, "no token today");
    assert_int_equal(fixture.seen.done, 0);
    turn_until(fixture.lane, &fixture.seen.done, 1);
    assert_string_equal(fixture.seen.error, "no token today");
    assert_false(fixture.seen.is_permanent);
    post_parts(&fixture, hello, 3);
    desk_give(&desk, "Bearer a\r\nX-Injected: b");
    turn_until(fixture.lane, &fixture.seen.done, 2);
    assert_non_null(strstr(fixture.seen.error, "\"Authorization\" cannot be sent"));
    char *large = mem_alloc(REQUEST_EDITS_BYTES_MAX + 1);
    memset(large, 'x', REQUEST_EDITS_BYTES_MAX);
    large[REQUEST_EDITS_BYTES_MAX] = '\0';
    post_parts(&fixture, hello, 3);
    desk_give(&desk, large);
    mem_free(large);
    turn_until(fixture.lane, &fixture.seen.done, 3);
    assert_non_null(strstr(fixture.seen.error, "cannot be sent"));
    assert_int_equal(scripted_backend_connections(fixture.backend), 0);
    /* Closing ends those that wait. */
    post_parts(&fixture, hello, 3);
    tear_down_desk(&fixture, &desk);
    assert_int_equal(fixture.seen.done, 4);
    assert_string_equal(fixture.seen.error, "the client is shutting down");
    assert_int_equal(desk.forgotten, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_arrive_as_one_body_with_our_headers),
        cmocka_unit_test(cleartext_never_loads_libcurl),
        cmocka_unit_test(thousands_of_parts_and_megabytes_are_written_whole),
        cmocka_unit_test(responses_are_read_strictly_and_connections_kept_when_clean),
        cmocka_unit_test(large_responses_are_cut_but_count),
        cmocka_unit_test(endless_response_is_given_up_after_4_mib),
        cmocka_unit_test(silent_backend_ends_at_the_timeout),
        cmocka_unit_test(slow_body_does_not_undo_a_200),
        cmocka_unit_test(kept_connection_closed_by_its_peer_is_noticed),
        cmocka_unit_test(stale_connection_is_replaced_once_without_the_caller_noticing),
        cmocka_unit_test(fresh_connection_that_breaks_is_an_error),
        cmocka_unit_test(refused_connection_names_the_address),
        cmocka_unit_test(host_names_are_looked_up_and_all_addresses_tried),
        cmocka_unit_test(max_connections_makes_requests_wait_for_each_other),
        cmocka_unit_test(keep_alive_off_and_idle_timeout_close_connections),
        cmocka_unit_test(closing_fails_what_is_under_way),
        cmocka_unit_test(userinfo_becomes_basic_authorisation),
        cmocka_unit_test(headers_that_smuggle_are_refused),
        cmocka_unit_test(redirects_are_followed_with_the_body),
        cmocka_unit_test(redirect_loops_are_permanent),
        cmocka_unit_test(secrets_do_not_follow_to_another_origin),
        cmocka_unit_test(broken_responses_are_transport_errors),
        cmocka_unit_test(proxies_get_the_absolute_form),
        cmocka_unit_test(a_request_can_have_a_target_of_its_own),
        cmocka_unit_test(a_get_hands_over_the_body_as_it_comes),
        cmocka_unit_test(a_body_that_is_not_wanted_ends_the_request),
        cmocka_unit_test(redirects_can_be_forbidden),
        cmocka_unit_test(a_request_waits_for_the_edits_of_its_headers),
        cmocka_unit_test(the_timeout_covers_the_wait_for_credentials),
        cmocka_unit_test(refused_and_unfit_credentials_fail_the_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
