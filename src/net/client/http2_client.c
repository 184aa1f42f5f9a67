/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of an HTTP/2 client: feeds nghttp2, writes its output once per turn, asks silent
 * peers with pings whether they live, and ends. Closing is in two phases, so that nothing is freed
 * below a callback. Runs on the owner's lane. */
#include "src/net/client/http2_client.h"

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/client/http2_client_state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { WORDS_MAX = 512 };

/* All streams end, then the owner knows. */
static void end(struct http2_client *client, const char *reason)
{
    assert(reason != NULL);
    if (client->state >= HTTP2_CLIENT_ENDED)
        return;
    client->state = HTTP2_CLIENT_ENDED;
    lane_timer_stop(client->lane, &client->timer);
    struct http2_client_stream *next = NULL;
    for (struct http2_client_stream *stream = client->streams; stream != NULL; stream = next) {
        next = stream->next;
        http2_client_stream_finish(stream,
                                   stream->is_sent ? HTTP2_STREAM_BROKEN : HTTP2_STREAM_UNPROCESSED,
                                   NGHTTP2_NO_ERROR, reason);
    }
    if (client->state == HTTP2_CLIENT_ENDED)
        client->events->on_end(client, reason);
}

void http2_client_flush_later(struct http2_client *client)
{
    lane_defer(client->lane, &client->job);
}

static bool is_talking(const struct http2_client *client)
{
    return client->state == HTTP2_CLIENT_GREETING || client->state == HTTP2_CLIENT_READY ||
           client->state == HTTP2_CLIENT_DRAINING;
}

/* False when nghttp2 has failed. */
static bool write_output(struct http2_client *client)
{
    assert(client->nghttp2 != NULL);
    struct http2_output *output = mem_alloc(sizeof(*output));
    int result = 0;
    while (result == 0 && !client->is_blocked) {
        result = http2_client_output_gather(client, output);
        if (output->parts_count == 0)
            break;
        client->is_blocked =
            !client_socket_write(client->socket, output->parts, output->parts_count);
    }
    mem_free(output);
    return result == 0;
}

static void flush(void *arg)
{
    struct http2_client *client = arg;
    assert(lane_is_current(client->lane));
    if (!is_talking(client))
        return;
    if (!write_output(client)) {
        end(client, "out of memory");
        return;
    }
    if (client->has_news && client->state == HTTP2_CLIENT_READY) {
        client->has_news = false;
        client->events->on_room(client);
    }
    if (client->is_blocked || !is_talking(client))
        return;
    if (client->failure != NULL) {
        char words[WORDS_MAX];
        snprintf(words, sizeof(words), "the peer broke the HTTP/2 protocol: %s", client->failure);
        end(client, words);
    } else if (!nghttp2_session_want_read(client->nghttp2) ||
               (client->state == HTTP2_CLIENT_DRAINING && client->streams_count == 0)) {
        end(client, "the server closed the connection gracefully");
    }
}

static void on_connected(void *owner)
{
    struct http2_client *client = owner;
    assert(client->state == HTTP2_CLIENT_CONNECTING);
    client->state = HTTP2_CLIENT_GREETING;
    lane_timer_start(client->lane, &client->timer, client->greeting_timeout_ns);
    http2_client_flush_later(client);
}

static void start_keepalive(struct http2_client *client)
{
    assert(client->asked_ns == 0);
    if (client->keepalive.time_ns > 0)
        lane_timer_start(client->lane, &client->timer, client->keepalive.time_ns);
    else
        lane_timer_stop(client->lane, &client->timer);
}

/* A byte is an answer to every question whether the peer lives. */
static void note_life(struct http2_client *client)
{
    client->has_heard = true;
    client->heard_ns = clock_now_ns();
    if (client->asked_ns == 0)
        return;
    client->asked_ns = 0;
    start_keepalive(client);
}

static void take_goaway(struct http2_client *client)
{
    client->has_goaway = false;
    if (client->state != HTTP2_CLIENT_READY)
        return;
    client->state = HTTP2_CLIENT_DRAINING;
    client->events->on_draining(client, client->has_too_many_pings);
}

/* What nghttp2's callbacks noted. */
static void take_news(struct http2_client *client, bool was_greeting)
{
    if (was_greeting && client->state == HTTP2_CLIENT_READY) {
        start_keepalive(client);
        client->events->on_ready(client);
    }
    if (client->has_goaway)
        take_goaway(client);
    if (is_talking(client))
        http2_client_flush_later(client);
}

/* In the place of SETTINGS: a server that is none of ours, named for who configured it. */
static const char *foreign_words(const uint8_t *data, size_t size)
{
    assert(data != NULL);
    if (size >= 5 && memcmp(data, "HTTP/", 5) == 0)
        return "the server speaks HTTP/1.1 where gRPC (HTTP/2) is expected: is this the port of "
               "OTLP over HTTP (4318)? Its exporter is otlp_http";
    if (size >= 2 && data[0] == 0x15 && data[1] == 0x03)
        return "the server expects TLS, and tls::insecure is true: remove that key, and give "
               "tls::ca_file when its certificate is your own";
    return NULL;
}

static void on_bytes(void *owner, const uint8_t *data, size_t size)
{
    struct http2_client *client = owner;
    assert(size > 0);
    if (!is_talking(client))
        return;
    bool was_greeting = client->state == HTTP2_CLIENT_GREETING;
    const char *foreign = client->has_heard ? NULL : foreign_words(data, size);
    note_life(client);
    if (foreign != NULL) {
        end(client, foreign);
        return;
    }
    ssize_t taken = nghttp2_session_mem_recv(client->nghttp2, data, size);
    if (taken < 0)
        end(client, nghttp2_strerror((int)taken));
    else if (is_talking(client))
        take_news(client, was_greeting);
}

static void on_drained(void *owner)
{
    struct http2_client *client = owner;
    assert(client->is_blocked);
    client->is_blocked = false;
    http2_client_flush_later(client);
}

static void on_socket_end(void *owner, const char *reason)
{
    struct http2_client *client = owner;
    char words[WORDS_MAX];
    bool is_greeting = client->state == HTTP2_CLIENT_GREETING;
    bool is_mute = is_greeting && !client->has_heard && !client->is_secure;
    snprintf(words, sizeof(words), "%s%s%s", is_greeting ? "error reading server preface: " : "",
             reason,
             is_mute ? ": the server hung up on cleartext HTTP/2; if it expects TLS, remove "
                       "tls::insecure"
                     : "");
    end(client, words);
}

static void on_socket_closed(void *owner)
{
    struct http2_client *client = owner;
    assert(client->state == HTTP2_CLIENT_CLOSING);
    lane_defer_cancel(client->lane, &client->job);
    nghttp2_session_del(client->nghttp2);
    while (client->streams != NULL)
        http2_client_stream_free(client->streams);
    client->events->on_closed(client);
    mem_free(client);
}

static const struct client_socket_events socket_events = {
    .on_connected = on_connected,
    .on_bytes = on_bytes,
    .on_drained = on_drained,
    .on_end = on_socket_end,
    .on_closed = on_socket_closed,
};

static void ask(struct http2_client *client, uint64_t patience_ns)
{
    assert(client->asked_ns == 0);
    client->asked_ns = clock_now_ns();
    nghttp2_submit_ping(client->nghttp2, NGHTTP2_FLAG_NONE, NULL);
    lane_timer_start(client->lane, &client->timer, patience_ns);
    http2_client_flush_later(client);
}

static void check_silence(struct http2_client *client)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t due_ns = client->heard_ns + client->keepalive.time_ns;
    assert(client->keepalive.time_ns > 0);
    if (now_ns < due_ns)
        lane_timer_start(client->lane, &client->timer, due_ns - now_ns);
    else if (client->streams_count == 0 && !client->keepalive.permit_without_stream)
        start_keepalive(client);
    else
        ask(client, client->keepalive.timeout_ns);
}

static void on_timer(struct timer *timer, void *arg)
{
    struct http2_client *client = arg;
    assert(timer == &client->timer);
    (void)timer;
    if (client->state == HTTP2_CLIENT_GREETING)
        end(client, "timed out waiting for server handshake: the server took the connection and "
                    "sent no HTTP/2 SETTINGS");
    else if (client->asked_ns > 0)
        end(client, "keepalive ping failed to receive ACK within timeout");
    else
        check_silence(client);
}

static int submit_settings(struct http2_client *client)
{
    assert(client->nghttp2 != NULL);
    const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, RESPONSE_HEADER_BYTES_MAX},
    };
    return nghttp2_submit_settings(client->nghttp2, NGHTTP2_FLAG_NONE, entries,
                                   sizeof(entries) / sizeof(entries[0]));
}

struct http2_client *http2_client_create(const struct http2_client_settings *settings)
{
    assert(settings->events != NULL);
    assert(lane_is_current(settings->lane));
    struct http2_client *client = mem_zalloc(sizeof(*client));
    client->lane = settings->lane;
    client->events = settings->events;
    client->is_secure = settings->tls != NULL;
    client->keepalive = settings->keepalive;
    client->greeting_timeout_ns = settings->connect_timeout_ns;
    client->job = (struct lane_job){.fn = flush, .arg = client};
    timer_init(&client->timer, on_timer, client);
    if (http2_client_session_create(client) != 0 || submit_settings(client) != 0) {
        nghttp2_session_del(client->nghttp2);
        mem_free(client);
        return NULL;
    }
    client->socket = client_socket_create(&(struct client_socket_settings){
        .lane = settings->lane,
        .address = settings->address,
        .connect_timeout_ns = settings->connect_timeout_ns,
        .tls = settings->tls,
        .server_name = settings->server_name,
        .events = &socket_events,
        .owner = client,
    });
    return client;
}

struct http2_client_owner *http2_client_owner(struct http2_client *client)
{
    assert(client != NULL);
    return &client->owner;
}

bool http2_client_has_room(const struct http2_client *client)
{
    assert(client->nghttp2 != NULL);
    return client->state == HTTP2_CLIENT_READY &&
           client->streams_count < nghttp2_session_get_remote_settings(
                                       client->nghttp2, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) &&
           nghttp2_session_check_request_allowed(client->nghttp2) != 0;
}

void http2_client_probe(struct http2_client *client)
{
    assert(client != NULL);
    bool is_greeted = client->state == HTTP2_CLIENT_READY || client->state == HTTP2_CLIENT_DRAINING;
    if (is_greeted && client->asked_ns == 0)
        ask(client, HTTP2_PROBE_NS);
}

void http2_client_drain(struct http2_client *client)
{
    assert(client != NULL);
    if (client->state < HTTP2_CLIENT_READY) {
        end(client, "the connection is not needed any more");
    } else if (client->state == HTTP2_CLIENT_READY) {
        client->state = HTTP2_CLIENT_DRAINING;
        http2_client_flush_later(client);
    }
}

void http2_client_close(struct http2_client *client, const char *reason)
{
    assert(reason != NULL);
    if (client->state == HTTP2_CLIENT_CLOSING)
        return;
    bool has_ended = client->state == HTTP2_CLIENT_ENDED;
    client->state = HTTP2_CLIENT_CLOSING;
    lane_timer_stop(client->lane, &client->timer);
    for (struct http2_client_stream *stream = client->streams; !has_ended && stream != NULL;) {
        struct http2_client_stream *next = stream->next;
        http2_client_stream_finish(stream, HTTP2_STREAM_BROKEN, NGHTTP2_NO_ERROR, reason);
        stream = next;
    }
    client_socket_close(client->socket);
}
