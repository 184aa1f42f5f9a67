/* SPDX-License-Identifier: Apache-2.0 */
/* The gRPC client against a scripted back-end on loopback, both on one hand-turned lane. */
#include "src/net/client/grpc_client.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/config/field.h"
#include "src/core/batch.h"
#include "src/net/client/grpc_target.h"
#include "src/net/client/request_edits.h"
#include "tests/support/grpc_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Real time that a test may take before it counts as hung. */
enum { TEST_SECONDS_MAX = 20, SEEN_MAX = 32, PARTS_MAX = 4 };

static const char path[] = "/pkg.Service/Method";

struct seen {
    unsigned done;
    struct grpc_result last; /* its slices are gone */
    char message[1200];
    char details[64];
    size_t body_size;
    uint8_t body[RESPONSE_BYTES_MAX + 1];
    unsigned order[SEEN_MAX]; /* numbers of calls as they ended */
};

struct posted {
    struct seen *seen;
    unsigned number;
    struct batch_part parts[PARTS_MAX];
};

struct fixture {
    struct lane *lane;
    struct grpc_backend *backend;
    struct grpc_target target;
    struct grpc_client_settings settings;
    struct grpc_client *client;
    struct buffer *buffer; /* behind every part */
    unsigned posted;
    struct seen seen;
    bool is_closed;
};

static void on_done(const struct grpc_result *result, void *arg)
{
    struct posted *posted = arg;
    struct seen *seen = posted->seen;
    seen->last = *result;
    snprintf(seen->message, sizeof(seen->message), "%s", result->message);
    snprintf(seen->details, sizeof(seen->details), "%.*s", (int)result->details.size,
             (const char *)result->details.data);
    assert_true(result->body.size <= RESPONSE_BYTES_MAX);
    seen->body_size = result->body.size;
    if (result->body.size > 0)
        memcpy(seen->body, result->body.data, result->body.size);
    if (seen->done < SEEN_MAX)
        seen->order[seen->done] = posted->number;
    seen->done++;
    mem_free(posted);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void turn_some(struct fixture *fixture)
{
    for (int i = 0; i < 50; i++)
        lane_turn(fixture->lane);
}

/* Turns the lane until count is reached; the fake clock stands still. */
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
    turn_some(fixture);
}

static void set_up_with(struct fixture *fixture, const struct grpc_backend_settings *settings,
                        const struct grpc_backend_step *steps, size_t count)
{
    char endpoint[64];
    struct error error;
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 1136214245 * (uint64_t)NS_PER_S);
    random_fix(0.5);
    memset(fixture, 0, sizeof(*fixture));
    fixture->lane = lane_create(0);
    fixture->backend = grpc_backend_create(fixture->lane, settings, steps, count);
    fixture->buffer = buffer_create(NULL, 1 << 20);
    fixture->buffer->size = fixture->buffer->capacity;
    for (size_t i = 0; i < fixture->buffer->size; i++)
        fixture->buffer->data[i] = (uint8_t)(i * 31 + i / 4096);
    memcpy(fixture->buffer->data, "hello", 5);
    snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", grpc_backend_port(fixture->backend));
    assert_true(grpc_target_parse(endpoint, &fixture->target, &error));
    fixture->settings = (struct grpc_client_settings){.lane = fixture->lane,
                                                      .target = &fixture->target,
                                                      .authority = "back-end:4317",
                                                      .user_agent = "test/1",
                                                      .timeout_ns = 5 * (uint64_t)NS_PER_S};
}

static void set_up(struct fixture *fixture, const struct grpc_backend_step *steps, size_t count)
{
    set_up_with(fixture, &(struct grpc_backend_settings){0}, steps, count);
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
    assert_int_equal(fixture->buffer->refs, 1);
    buffer_unref(fixture->buffer);
    grpc_backend_destroy(fixture->backend);
    lane_destroy(fixture->lane);
    random_fix(-1);
    clock_fake_stop();
}

/* Posts "hello" in three parts. */
static void post(struct fixture *fixture)
{
    struct posted *posted = mem_zalloc(sizeof(*posted));
    uint8_t *data = fixture->buffer->data;
    *posted = (struct posted){.seen = &fixture->seen,
                              .number = fixture->posted++,
                              .parts = {{fixture->buffer, slice_of(data, 3)},
                                        {fixture->buffer, slice_of(data, 0)},
                                        {fixture->buffer, slice_of(data + 3, 2)}}};
    grpc_client_post(fixture->client, &(struct grpc_post){.path = path,
                                                          .parts = posted->parts,
                                                          .parts_count = 3,
                                                          .bytes = 5,
                                                          .done = on_done,
                                                          .arg = posted});
}

static void post_size(struct fixture *fixture, size_t size)
{
    struct posted *posted = mem_zalloc(sizeof(*posted));
    *posted = (struct posted){.seen = &fixture->seen,
                              .number = fixture->posted++,
                              .parts = {{fixture->buffer, slice_of(fixture->buffer->data, size)}}};
    grpc_client_post(fixture->client, &(struct grpc_post){.path = path,
                                                          .parts = posted->parts,
                                                          .parts_count = 1,
                                                          .bytes = size,
                                                          .done = on_done,
                                                          .arg = posted});
}

static void call(struct fixture *fixture)
{
    unsigned before = fixture->seen.done;
    post(fixture);
    assert_int_equal(fixture->seen.done, before);
    turn_until(fixture, fixture->seen.done > before);
}

static void a_call_arrives_with_its_headers_and_one_message(void **state)
{
    static const struct grpc_backend_step steps[] = {{.status = "0"}};
    static const struct config_pair headers[] = {{"X-Scope-OrgID", "tenant"},
                                                 {"trace-bin", "\x01\x02"},
                                                 {"user-agent", "mine"},
                                                 {"grpc-timeout", "1S"}};
    struct fixture fixture;
    size_t size;
    (void)state;
    set_up(&fixture, steps, 1);
    fixture.settings.headers = headers;
    fixture.settings.headers_count = 4;
    open_client(&fixture);
    call(&fixture);
    assert_int_equal(fixture.seen.last.code, STATUS_OK);
    assert_false(fixture.seen.last.is_cut);
    assert_int_equal(fixture.seen.body_size, 0);
    assert_string_equal(grpc_backend_headers(fixture.backend),
                        ":method: POST\n:scheme: http\n:path: /pkg.Service/Method\n"
                        ":authority: back-end:4317\ncontent-type: application/grpc\n"
                        "user-agent: test/1\nte: trailers\ngrpc-accept-encoding: gzip\n"
                        "grpc-timeout: 5000000u\nx-scope-orgid: tenant\ntrace-bin: AQI\n");
    const uint8_t *body = grpc_backend_body(fixture.backend, &size);
    assert_int_equal(size, 10);
    assert_memory_equal(body, "\0\0\0\0\5hello", 10);
    tear_down(&fixture);
}

struct response_case {
    const char *name;
    struct grpc_backend_step step;
    enum status_code code;
    unsigned wire_code; /* 0: as code */
    bool is_cut;
    const char *message;
    const char *body;
};

static const struct response_case responses[] = {
    {.name = "a message",
     .step = {.status = "0", .data = "\0\0\0\0\2ab", .data_size = 7},
     .body = "ab"},
    {.name = "a response without message counts, and is odd",
     .step = {.status = "0", .data = "", .data_size = 0},
     .is_cut = true},
    {.name = "OK in trailers only",
     .step = {.status = "0", .is_trailers_only = true},
     .is_cut = true},
    {.name = "a torn message",
     .step = {.status = "0", .data = "\0\0\0\0\3ab", .data_size = 7},
     .is_cut = true},
    {.name = "an unknown flag",
     .step = {.status = "0", .data = "\2\0\0\0\2ab", .data_size = 7},
     .is_cut = true},
    {.name = "a status behind a message",
     .step = {.status = "14", .message = "later%20%25%E2%82%AC%zz"},
     .code = STATUS_UNAVAILABLE,
     .message = "later %\xe2\x82\xac%zz"},
    {.name = "trailers only",
     .step = {.status = "8", .message = "full", .is_trailers_only = true},
     .code = STATUS_RESOURCE_EXHAUSTED,
     .message = "full"},
    {.name = "a content type with a suffix",
     .step = {.status = "7", .content_type = "application/grpc+proto"},
     .code = STATUS_PERMISSION_DENIED},
    {.name = "an unknown status",
     .step = {.status = "42", .message = "?"},
     .code = STATUS_UNKNOWN,
     .wire_code = 42,
     .message = "?"},
    {.name = "no trailers",
     .step = {.data = "\0\0\0\0\2ab", .data_size = 7},
     .code = STATUS_INTERNAL,
     .message = "server closed the stream without sending trailers"},
    {.name = "gRPC's status wins over HTTP's",
     .step = {.http_status = "503", .status = "3", .is_trailers_only = true},
     .code = STATUS_INVALID_ARGUMENT},
    {.name = "HTTP 503 of a proxy",
     .step = {.http_status = "503", .content_type = "text/html"},
     .code = STATUS_UNAVAILABLE,
     .message = "unexpected HTTP status code received from server: 503; transport: received "
                "unexpected content-type \"text/html\""},
    {.name = "HTTP 401 without content type",
     .step = {.http_status = "401", .content_type = ""},
     .code = STATUS_UNAUTHENTICATED,
     .message = "unexpected HTTP status code received from server: 401; malformed header: missing "
                "HTTP content-type"},
    {.name = "HTTP 400 of a gRPC server",
     .step = {.http_status = "400"},
     .code = STATUS_INTERNAL,
     .message = "unexpected HTTP status code received from server: 400"},
    {.name = "HTTP 403", .step = {.http_status = "403"}, .code = STATUS_PERMISSION_DENIED},
    {.name = "HTTP 404", .step = {.http_status = "404"}, .code = STATUS_UNIMPLEMENTED},
    {.name = "HTTP 429", .step = {.http_status = "429"}, .code = STATUS_UNAVAILABLE},
    {.name = "HTTP 502", .step = {.http_status = "502"}, .code = STATUS_UNAVAILABLE},
    {.name = "HTTP 504", .step = {.http_status = "504"}, .code = STATUS_UNAVAILABLE},
    {.name = "HTTP 500", .step = {.http_status = "500"}, .code = STATUS_UNKNOWN},
    {.name = "another content type with 200",
     .step = {.content_type = "application/json", .status = "0"},
     .code = STATUS_UNKNOWN,
     .message = "transport: received unexpected content-type \"application/json\""},
    {.name = "RST_STREAM NO_ERROR", .step = {.resets = true}, .code = STATUS_INTERNAL},
    {.name = "RST_STREAM PROTOCOL_ERROR",
     .step = {.resets = true, .reset_code = 1},
     .code = STATUS_INTERNAL,
     .message = "stream terminated by RST_STREAM with error code: PROTOCOL_ERROR"},
    {.name = "RST_STREAM 2", .step = {.resets = true, .reset_code = 2}, .code = STATUS_INTERNAL},
    {.name = "RST_STREAM 3",
     .step = {.resets = true, .reset_code = 3},
     .code = STATUS_RESOURCE_EXHAUSTED},
    {.name = "RST_STREAM 4", .step = {.resets = true, .reset_code = 4}, .code = STATUS_INTERNAL},
    {.name = "RST_STREAM 5", .step = {.resets = true, .reset_code = 5}, .code = STATUS_INTERNAL},
    {.name = "RST_STREAM 6", .step = {.resets = true, .reset_code = 6}, .code = STATUS_INTERNAL},
    {.name = "RST_STREAM 7", .step = {.resets = true, .reset_code = 7}, .code = STATUS_UNAVAILABLE},
    {.name = "RST_STREAM 8", .step = {.resets = true, .reset_code = 8}, .code = STATUS_CANCELLED},
    {.name = "RST_STREAM 9", .step = {.resets = true, .reset_code = 9}, .code = STATUS_INTERNAL},
    {.name = "RST_STREAM 10", .step = {.resets = true, .reset_code = 10}, .code = STATUS_INTERNAL},
    {.name = "RST_STREAM 11",
     .step = {.resets = true, .reset_code = 11},
     .code = STATUS_RESOURCE_EXHAUSTED},
    {.name = "RST_STREAM 12",
     .step = {.resets = true, .reset_code = 12},
     .code = STATUS_PERMISSION_DENIED},
    {.name = "RST_STREAM 13", .step = {.resets = true, .reset_code = 13}, .code = STATUS_INTERNAL},
    {.name = "RST_STREAM unknown",
     .step = {.resets = true, .reset_code = 99},
     .code = STATUS_UNKNOWN},
    {.name = "a response before the message was read",
     .step = {.status = "16", .responds_at_head = true, .is_trailers_only = true},
     .code = STATUS_UNAUTHENTICATED},
    {.name = "a connection that is closed instead",
     .step = {.hangs_up = true},
     .code = STATUS_UNAVAILABLE,
     .message = "error reading from server: EOF"},
    {.name = "more headers than we take",
     .step = {.status = "0", .headers_flood = 70},
     .code = STATUS_INTERNAL},
    {.name = "a message larger than we keep",
     .step = {.status = "0", .data = "\0\0\2\0\0", .data_size = 5, .data_repeated = 20000},
     .is_cut = true},
    {.name = "a message without end",
     .step = {.status = "0", .data = "\0\xff\0\0\0", .data_size = 5, .data_repeated = 1000000},
     .code = STATUS_RESOURCE_EXHAUSTED},
};

static void every_response_means_what_grpc_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(responses) / sizeof(responses[0]); i++) {
        const struct response_case *row = &responses[i];
        struct fixture fixture;
        set_up(&fixture, &row->step, 1);
        open_client(&fixture);
        call(&fixture);
        const struct seen *seen = &fixture.seen;
        if (seen->last.code != row->code || seen->last.is_cut != row->is_cut ||
            seen->last.wire_code != (row->wire_code > 0 ? row->wire_code : row->code))
            fail_msg("%s: code %d (wire %u), cut %d: %s", row->name, (int)seen->last.code,
                     seen->last.wire_code, seen->last.is_cut, seen->message);
        if (row->message != NULL && strcmp(row->message, seen->message) != 0)
            fail_msg("%s: \"%s\"", row->name, seen->message);
        if (row->body != NULL)
            assert_memory_equal(seen->body, row->body, strlen(row->body));
        tear_down(&fixture);
    }
}

static void details_are_decoded_padded_or_not(void **state)
{
    static const struct grpc_backend_step steps[] = {{.status = "14", .details = "YWJjZA"},
                                                     {.status = "14", .details = "YWJjZA=="},
                                                     {.status = "14", .details = "not!base64"}};
    static const char *const expected[] = {"abcd", "abcd", ""};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 3);
    open_client(&fixture);
    for (size_t i = 0; i < 3; i++) {
        call(&fixture);
        assert_int_equal(fixture.seen.last.code, STATUS_UNAVAILABLE);
        assert_string_equal(fixture.seen.details, expected[i]);
    }
    tear_down(&fixture);
}

static void a_refused_stream_is_sent_once_more(void **state)
{
    static const struct grpc_backend_step steps[] = {{.resets = true, .reset_code = 7},
                                                     {.status = "0"}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 2);
    open_client(&fixture);
    call(&fixture);
    assert_int_equal(fixture.seen.last.code, STATUS_OK);
    assert_int_equal(grpc_backend_calls(fixture.backend), 2);
    assert_int_equal(grpc_backend_connections(fixture.backend), 1);
    tear_down(&fixture);
}

static void goaway_lets_calls_finish_and_moves_others(void **state)
{
    static const struct grpc_backend_step steps[] = {
        {.is_held = true, .status = "0"},
        {.says_goaway = true, .is_beyond = true},
        {.status = "0"},
    };
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 3);
    open_client(&fixture);
    post(&fixture);
    turn_until(&fixture, grpc_backend_held(fixture.backend) == 1);
    pass(&fixture, 2 * (uint64_t)NS_PER_S);
    post(&fixture);
    turn_until(&fixture, fixture.seen.done == 1);
    assert_int_equal(fixture.seen.order[0], 1);
    assert_int_equal(fixture.seen.last.code, STATUS_OK);
    assert_int_equal(grpc_backend_connections(fixture.backend), 2);
    grpc_backend_release(fixture.backend);
    turn_until(&fixture, fixture.seen.done == 2);
    assert_int_equal(fixture.seen.last.code, STATUS_OK);
    assert_int_equal(grpc_backend_calls(fixture.backend), 3);
    tear_down(&fixture);
}

static void one_stream_at_a_time_serves_calls_in_order(void **state)
{
    static const struct grpc_backend_step steps[] = {{.status = "0"}};
    struct fixture fixture;
    (void)state;
    set_up_with(&fixture, &(struct grpc_backend_settings){.streams_max = 1}, steps, 1);
    open_client(&fixture);
    for (unsigned i = 0; i < 8; i++)
        post(&fixture);
    turn_until(&fixture, fixture.seen.done == 8);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(fixture.seen.order[i], i);
    assert_int_equal(grpc_backend_calls_at_once(fixture.backend), 1);
    assert_int_equal(grpc_backend_connections(fixture.backend), 1);
    tear_down(&fixture);
}

static void calls_share_a_connection(void **state)
{
    static const struct grpc_backend_step steps[] = {{.is_held = true, .status = "0"}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    open_client(&fixture);
    for (unsigned i = 0; i < 10; i++)
        post(&fixture);
    turn_until(&fixture, grpc_backend_held(fixture.backend) == 10);
    grpc_backend_release(fixture.backend);
    turn_until(&fixture, fixture.seen.done == 10);
    assert_int_equal(grpc_backend_connections(fixture.backend), 1);
    tear_down(&fixture);
}

static void a_peer_may_change_its_limit(void **state)
{
    static const struct grpc_backend_step steps[] = {{.is_held = true, .status = "0"}};
    struct fixture fixture;
    (void)state;
    set_up_with(&fixture, &(struct grpc_backend_settings){.streams_max = 2}, steps, 1);
    open_client(&fixture);
    for (unsigned i = 0; i < 6; i++)
        post(&fixture);
    turn_until(&fixture, grpc_backend_held(fixture.backend) == 2);
    turn_some(&fixture);
    assert_int_equal(grpc_backend_held(fixture.backend), 2);
    grpc_backend_limit_streams(fixture.backend, 4);
    turn_until(&fixture, grpc_backend_held(fixture.backend) == 4);
    grpc_backend_limit_streams(fixture.backend, 1);
    turn_some(&fixture);
    grpc_backend_release(fixture.backend);
    turn_until(&fixture, fixture.seen.done == 4);
    turn_until(&fixture, grpc_backend_held(fixture.backend) == 1);
    turn_some(&fixture);
    assert_int_equal(grpc_backend_held(fixture.backend), 1);
    tear_down(&fixture);
}

static void large_messages_pass_small_windows_whole(void **state)
{
    static const struct grpc_backend_step steps[] = {{.status = "0"}};
    static const uint32_t windows[] = {0, 100, 4000, 1 << 20};
    (void)state;
    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        struct fixture fixture;
        size_t size;
        set_up_with(&fixture, &(struct grpc_backend_settings){.window_bytes = windows[i]}, steps,
                    1);
        open_client(&fixture);
        size_t wanted = windows[i] == 100 ? 20000 : 1 << 20;
        post_size(&fixture, wanted);
        turn_until(&fixture, fixture.seen.done == 1);
        assert_int_equal(fixture.seen.last.code, STATUS_OK);
        const uint8_t *body = grpc_backend_body(fixture.backend, &size);
        assert_int_equal(size, wanted + 5);
        assert_memory_equal(body + 5, fixture.buffer->data, wanted);
        tear_down(&fixture);
    }
}

enum { LARGE_PARTS = 16, LARGE_PART_BYTES = 1 << 20 };

struct large_call {
    bool is_done;
    struct batch_part parts[LARGE_PARTS];
};

static void on_large_done(const struct grpc_result *result, void *arg)
{
    struct large_call *call = arg;
    assert_int_equal(result->code, 16);
    for (size_t i = 0; i < LARGE_PARTS; i++)
        buffer_unref(call->parts[i].owner);
    call->is_done = true;
}

/* The peer does not want the rest, of which a frame waits for the socket: that is written, and then
 * RST_STREAM, after which nobody else holds the bytes. */
static void a_message_outlives_its_call_until_it_is_written(void **state)
{
    static const struct grpc_backend_step steps[] = {
        {.status = "16", .responds_at_head = true, .is_trailers_only = true}};
    const struct grpc_backend_settings settings = {.window_bytes = LARGE_PARTS * LARGE_PART_BYTES};
    struct fixture fixture;
    struct large_call large = {.is_done = false};
    uint32_t code;
    (void)state;
    set_up_with(&fixture, &settings, steps, 1);
    open_client(&fixture);
    call(&fixture); /* the windows are known */
    const unsigned before = grpc_backend_resets(fixture.backend, &code);
    for (size_t i = 0; i < LARGE_PARTS; i++) {
        struct buffer *buffer = buffer_create(NULL, LARGE_PART_BYTES);
        memset(buffer->data, 'x', LARGE_PART_BYTES);
        buffer->size = LARGE_PART_BYTES;
        large.parts[i] = (struct batch_part){buffer, buffer_slice(buffer)};
    }
    grpc_client_post(fixture.client, &(struct grpc_post){.path = path,
                                                         .parts = large.parts,
                                                         .parts_count = LARGE_PARTS,
                                                         .bytes = LARGE_PARTS * LARGE_PART_BYTES,
                                                         .done = on_large_done,
                                                         .arg = &large});
    turn_until(&fixture,
               large.is_done && grpc_backend_resets(fixture.backend, &code) == before + 1);
    tear_down(&fixture);
}

static void thousands_of_parts_are_written_whole(void **state)
{
    static const struct grpc_backend_step steps[] = {{.status = "0"}};
    enum { PARTS = 5000 };
    struct fixture fixture;
    size_t size;
    size_t bytes = 0;
    (void)state;
    set_up(&fixture, steps, 1);
    open_client(&fixture);
    struct batch_part *parts = mem_zalloc(PARTS * sizeof(*parts));
    struct posted *posted = mem_zalloc(sizeof(*posted));
    posted->seen = &fixture.seen;
    for (size_t i = 0; i < PARTS; i++) {
        size_t step = i * 37 % 400;
        parts[i] =
            (struct batch_part){fixture.buffer, slice_of(fixture.buffer->data + bytes, step)};
        bytes += step;
    }
    grpc_client_post(fixture.client, &(struct grpc_post){.path = path,
                                                         .parts = parts,
                                                         .parts_count = PARTS,
                                                         .bytes = bytes,
                                                         .done = on_done,
                                                         .arg = posted});
    turn_until(&fixture, fixture.seen.done == 1);
    const uint8_t *body = grpc_backend_body(fixture.backend, &size);
    assert_int_equal(size, bytes + 5);
    assert_memory_equal(body + 5, fixture.buffer->data, bytes);
    mem_free(parts);
    tear_down(&fixture);
}

static void a_late_response_resets_the_stream(void **state)
{
    static const struct grpc_backend_step steps[] = {{.is_held = true, .status = "0"},
                                                     {.status = "0"}};
    struct fixture fixture;
    uint32_t code;
    (void)state;
    set_up(&fixture, steps, 2);
    open_client(&fixture);
    post(&fixture);
    turn_until(&fixture, grpc_backend_held(fixture.backend) == 1);
    pass(&fixture, 5 * (uint64_t)NS_PER_S - 1);
    assert_int_equal(fixture.seen.done, 0);
    pass(&fixture, 1);
    assert_int_equal(fixture.seen.last.code, STATUS_DEADLINE_EXCEEDED);
    assert_string_equal(fixture.seen.message, "context deadline exceeded");
    turn_until(&fixture, grpc_backend_resets(fixture.backend, &code) == 1);
    assert_int_equal(code, 8);
    call(&fixture);
    assert_int_equal(fixture.seen.last.code, STATUS_OK);
    assert_int_equal(grpc_backend_connections(fixture.backend), 1);
    tear_down(&fixture);
}

/* Far more headers than are read of a response: no more of them are decoded. */
static void a_flood_of_headers_ends_the_connection(void **state)
{
    static const struct grpc_backend_step steps[] = {{.status = "0", .headers_flood = 70},
                                                     {.status = "0"},
                                                     {.status = "0", .headers_flood = 140},
                                                     {.status = "0"}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 4);
    open_client(&fixture);
    call(&fixture);
    assert_int_equal(fixture.seen.last.code, STATUS_INTERNAL);
    call(&fixture);
    assert_int_equal(fixture.seen.last.code, STATUS_OK);
    assert_int_equal(grpc_backend_connections(fixture.backend), 1);
    call(&fixture);
    assert_int_equal(fixture.seen.last.code, STATUS_INTERNAL);
    pass(&fixture, NS_PER_S);
    call(&fixture);
    assert_int_equal(fixture.seen.last.code, STATUS_OK);
    assert_int_equal(grpc_backend_connections(fixture.backend), 2);
    tear_down(&fixture);
}

static void a_call_without_limit_says_no_timeout(void **state)
{
    static const struct grpc_backend_step steps[] = {{.status = "0"}};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, steps, 1);
    fixture.settings.timeout_ns = 0;
    open_client(&fixture);
    call(&fixture);
    assert_null(strstr(grpc_backend_headers(fixture.backend), "grpc-timeout"));
    tear_down(&fixture);
}

static void on_slow_done(const struct grpc_result *result, void *arg)
{
    clock_fake_advance(6 * (uint64_t)NS_PER_S);
    on_done(result, arg);
}

/* Its turn and its deadline come in the same turn of the lane. */
static void a_call_is_not_sent_after_its_deadline(void **state)
{
    static const struct grpc_backend_step steps[] = {{.status = "0"}};
    struct fixture fixture;
    struct posted *posted = mem_zalloc(sizeof(*posted));
    (void)state;
    set_up_with(&fixture, &(struct grpc_backend_settings){.streams_max = 1}, steps, 1);
    open_client(&fixture);
    *posted = (struct posted){.seen = &fixture.seen};
    grpc_client_post(fixture.client, &(struct grpc_post){.path = path,
                                                         .parts = posted->parts,
                                                         .parts_count = 0,
                                                         .bytes = 0,
                                                         .done = on_slow_done,
                                                         .arg = posted});
    post(&fixture);
    turn_until(&fixture, fixture.seen.done == 2);
    turn_some(&fixture);
    assert_int_equal(fixture.seen.last.code, STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(grpc_backend_calls(fixture.backend), 1);
    tear_down(&fixture);
}

static void closing_ends_what_is_under_way(void **state)
{
    static const struct grpc_backend_step steps[] = {{.is_held = true, .status = "0"}};
    struct fixture fixture;
    (void)state;
    set_up_with(&fixture, &(struct grpc_backend_settings){.streams_max = 1}, steps, 1);
    open_client(&fixture);
    post(&fixture);
    post_size(&fixture, 1 << 20);
    turn_until(&fixture, grpc_backend_held(fixture.backend) == 1);
    tear_down(&fixture);
    assert_int_equal(fixture.seen.done, 2);
    assert_int_equal(fixture.seen.last.code, STATUS_CANCELLED);
}

/* Credentials that the test gives when it wants to. */
struct desk {
    struct credentials_request *request; /* the last that asked; NULL: none */
    unsigned forgotten;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void desk_ask(void *arg, struct credentials_request *request)
{
    struct desk *desk = arg;
    assert_true(request->is_grpc);
    desk->request = request;
}

static void desk_give(struct desk *desk, const char *name, const char *value)
{
    struct credentials_request *request = desk->request;
    desk->request = NULL;
    request_edits_begin(&request->edits, true);
    request_edits_add(&request->edits, EDIT_UPSERT, name, value);
    request_edits_add(&request->edits, EDIT_UPDATE, "not-there", "x");
    request_edits_add(&request->edits, EDIT_UPSERT, "user-agent", "x");
    request->done(request, NULL);
}

static void desk_refuse(struct desk *desk, bool is_temporary)
{
    struct credentials_request *request = desk->request;
    desk->request = NULL;
    request->is_temporary = is_temporary;
    request->done(request, "no token today");
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

static void calls_wait_for_the_edits_of_their_metadata(void **state)
{
    static const struct grpc_backend_step steps[] = {{.status = "0"}};
    static const struct config_pair headers[] = {{"X-Scope-OrgID", "tenant"}, {"other", "o"}};
    struct fixture fixture;
    struct desk desk = {.request = NULL};
    (void)state;
    set_up(&fixture, steps, 1);
    fixture.settings.headers = headers;
    fixture.settings.headers_count = 2;
    fixture.settings.credentials = (struct request_credentials){
        .ask = desk_ask, .forget = desk_forget, .close = desk_close, .arg = &desk};
    open_client(&fixture);
    post(&fixture);
    turn_some(&fixture);
    assert_int_equal(grpc_backend_calls(fixture.backend), 0);
    desk_give(&desk, "X-SCOPE-OrgID", "mine");
    turn_until(&fixture, fixture.seen.done == 1);
    assert_int_equal(fixture.seen.last.code, STATUS_OK);
    const char *sent = strstr(grpc_backend_headers(fixture.backend), "x-scope");
    assert_non_null(sent);
    assert_string_equal(sent, "x-scope-orgid: mine\nother: o\n");

    post(&fixture);
    desk_give(&desk, "x-bin", "\x01\x02");
    turn_until(&fixture, fixture.seen.done == 2);
    assert_non_null(strstr(grpc_backend_headers(fixture.backend), "x-bin: AQI\n"));

    /* Refusals: for now, for good, and of what cannot be sent. */
    post(&fixture);
    desk_refuse(&desk, true);
    assert_int_equal(fixture.seen.done, 2);
    turn_until(&fixture, fixture.seen.done == 3);
    assert_int_equal(fixture.seen.last.code, STATUS_UNAVAILABLE);
    assert_string_equal(fixture.seen.message,
                        "transport: per-RPC creds failed due to error: no token today");
    post(&fixture);
    desk_refuse(&desk, false);
    turn_until(&fixture, fixture.seen.done == 4);
    assert_int_equal(fixture.seen.last.code, STATUS_UNAUTHENTICATED);
    post(&fixture);
    desk_give(&desk, "x", "a\nb");
    turn_until(&fixture, fixture.seen.done == 5);
    assert_int_equal(fixture.seen.last.code, STATUS_UNAUTHENTICATED);

    /* As much as is allowed goes, more does not, and other calls do not suffer. */
    char *large = mem_alloc(REQUEST_EDITS_BYTES_MAX + 1);
    memset(large, 'x', REQUEST_EDITS_BYTES_MAX);
    large[REQUEST_EDITS_BYTES_MAX] = '\0';
    for (unsigned i = 0; i < 2; i++) {
        post(&fixture);
        desk_give(&desk, "x", large + (1 - i) * 64);
        turn_until(&fixture, fixture.seen.done == 6 + i);
        assert_int_equal(fixture.seen.last.code, i == 0 ? STATUS_OK : STATUS_UNAUTHENTICATED);
    }
    mem_free(large);

    /* The deadline covers the wait, and closing ends it. */
    post(&fixture);
    pass(&fixture, 5 * (uint64_t)NS_PER_S);
    assert_int_equal(fixture.seen.done, 8);
    assert_int_equal(fixture.seen.last.code, STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(desk.forgotten, 1);
    post(&fixture);
    grpc_client_close(fixture.client, on_closed, &fixture.is_closed);
    turn_some(&fixture);
    assert_int_equal(fixture.seen.done, 9);
    assert_int_equal(fixture.seen.last.code, STATUS_CANCELLED);
    assert_false(fixture.is_closed);
    desk.closed(desk.closed_arg);
    turn_until(&fixture, fixture.is_closed);
    grpc_client_destroy(fixture.client);
    buffer_unref(fixture.buffer);
    grpc_backend_destroy(fixture.backend);
    lane_destroy(fixture.lane);
    random_fix(-1);
    clock_fake_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_arrives_with_its_headers_and_one_message),
        cmocka_unit_test(every_response_means_what_grpc_says),
        cmocka_unit_test(details_are_decoded_padded_or_not),
        cmocka_unit_test(a_refused_stream_is_sent_once_more),
        cmocka_unit_test(goaway_lets_calls_finish_and_moves_others),
        cmocka_unit_test(one_stream_at_a_time_serves_calls_in_order),
        cmocka_unit_test(calls_share_a_connection),
        cmocka_unit_test(a_peer_may_change_its_limit),
        cmocka_unit_test(large_messages_pass_small_windows_whole),
        cmocka_unit_test(a_message_outlives_its_call_until_it_is_written),
        cmocka_unit_test(thousands_of_parts_are_written_whole),
        cmocka_unit_test(a_late_response_resets_the_stream),
        cmocka_unit_test(a_flood_of_headers_ends_the_connection),
        cmocka_unit_test(a_call_without_limit_says_no_timeout),
        cmocka_unit_test(a_call_is_not_sent_after_its_deadline),
        cmocka_unit_test(closing_ends_what_is_under_way),
        cmocka_unit_test(calls_wait_for_the_edits_of_their_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
