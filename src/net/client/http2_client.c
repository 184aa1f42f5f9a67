/* SPDX-License-Identifier: Apache-2.0 */
/* The client side of HTTP/2 on one connection (RFC 9113), through nghttp2. In this order: the data,
 * output (one write per turn; bodies are pointed to where they are), streams and nghttp2's
 * callbacks, and the connection: keepalive pings, GOAWAY, the end. Closing has two phases, and a
 * callback frees no more than a stream that nghttp2 forgets. On the owner's lane. */
#include "src/net/client/http2_client.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/net/client/client_socket.h"
#include "src/net/syntax/nghttp2_session.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    ERROR_BYTES_MAX = 512,
    FRAME_HEAD_BYTES = 9,
    FRAME_BYTES_MAX = FRAME_HEAD_BYTES + 16384, /* larger limits of peers are not used */
    OUTPUT_BYTES = 4 * FRAME_BYTES_MAX,
    OUTPUT_PARTS = 256,
    COPY_BYTES_MAX = 256,      /* shorter parts are copied, not pointed to */
    FIELD_OVERHEAD_BYTES = 32, /* RFC 9113 §6.5.2 */
};

/* One write: frame headers and small parts in bytes, large parts where they are. */
struct http2_output {
    size_t used; /* of bytes */
    size_t parts_count;
    bool is_full; /* a DATA frame waits for the next write */
    struct batch_part parts[OUTPUT_PARTS];
    uint8_t bytes[OUTPUT_BYTES];
};

struct http2_client_stream {
    struct http2_client *client;
    int32_t id;
    struct http2_client_stream *next; /* in client->streams, until nghttp2 forgets it */
    struct http2_client_stream *prev;
    const struct http2_stream_events
        *events; /* NULL: on_end was called, or the stream is cancelled */
    void *arg;
    bool is_sent;        /* its HEADERS are sent: the peer may have processed it */
    size_t unread_bytes; /* in fields that nobody reads any more */
    uint64_t left;       /* bytes of the body not yet written */
    size_t at;           /* the part with the next byte … */
    size_t offset;       /* … and its offset there */
    size_t parts_count;
    struct batch_part *parts;
    uint8_t prefix[HTTP2_REQUEST_PREFIX_MAX];
};

enum http2_client_state {
    HTTP2_CLIENT_CONNECTING,
    HTTP2_CLIENT_GREETING, /* connected, waiting for the peer's SETTINGS */
    HTTP2_CLIENT_READY,
    HTTP2_CLIENT_DRAINING,
    HTTP2_CLIENT_ENDED, /* on_end was called */
    HTTP2_CLIENT_CLOSING,
};

struct http2_client {
    struct http2_client_owner owner;
    struct lane *lane;
    const struct http2_client_events *events;
    struct http2_keepalive keepalive;
    uint64_t greeting_timeout_ns;
    enum http2_client_state state;
    struct client_socket *socket;
    nghttp2_session *nghttp2;
    struct http2_client_stream *streams;
    size_t streams_count;
    struct http2_output *output;         /* only while output is gathered */
    struct http2_client_stream *stalled; /* has a DATA frame that waits for room */
    struct http2_client_stream *gone;    /* closed while the output at hand may have their bytes */
    struct lane_job job;                 /* writes the output of this turn */
    struct timer timer;                  /* greeting, then keepalive */
    uint64_t heard_ns;                   /* when the last byte was received */
    uint64_t ping_ns;                    /* when the unanswered ping was sent; 0: none */
    const char *failure;                 /* why nghttp2 failed; a constant string */
    bool is_blocked;                     /* a write is waiting */
    bool has_too_many_pings;             /* reported by the peer in GOAWAY */
    bool has_goaway;                     /* set by callbacks of nghttp2, like has_news */
    bool has_news;                       /* a stream ended, or SETTINGS were received */
    bool is_secure;                      /* over TLS */
    bool has_heard;
};

static void flush_later(struct http2_client *client)
{
    lane_defer(client->lane, &client->job);
}

static bool has_room(const struct http2_output *output)
{
    return OUTPUT_BYTES - output->used >= FRAME_BYTES_MAX && output->parts_count + 2 < OUTPUT_PARTS;
}

/* Extends the last part if that is a copy, too. */
static void append_copy(struct http2_output *output, const uint8_t *data, size_t size)
{
    assert(size <= OUTPUT_BYTES - output->used);
    uint8_t *room = output->bytes + output->used;
    memcpy(room, data, size);
    output->used += size;
    size_t count = output->parts_count;
    if (count > 0 && output->parts[count - 1].owner == NULL) {
        output->parts[count - 1].bytes.size += size;
        return;
    }
    assert(count < OUTPUT_PARTS);
    output->parts[output->parts_count++] = (struct batch_part){.bytes = slice_of(room, size)};
}

static struct http2_client_stream *find_stream(nghttp2_session *nghttp2, int32_t id)
{
    return id == 0 ? NULL : nghttp2_session_get_stream_user_data(nghttp2, id);
}

static void release_parts(struct http2_client_stream *stream)
{
    for (size_t i = 0; i < stream->parts_count; i++)
        buffer_unref(stream->parts[i].owner);
    mem_free(stream->parts);
    stream->parts = NULL;
    stream->parts_count = 0;
}

static void stream_finish(struct http2_client_stream *stream, enum http2_stream_end end,
                          uint32_t code, const char *reason)
{
    const struct http2_stream_events *events = stream->events;
    stream->events = NULL;
    if (events != NULL)
        events->on_end(stream->arg, end, code, reason);
}

static void stream_free(struct http2_client_stream *stream)
{
    struct http2_client *client = stream->client;
    assert(stream->events == NULL);
    assert(client->streams_count > 0);
    *(stream->prev == NULL ? &client->streams : &stream->prev->next) = stream->next;
    if (stream->next != NULL)
        stream->next->prev = stream->prev;
    client->streams_count--;
    if (client->output != NULL) {
        stream->next = client->gone;
        client->gone = stream;
        return;
    }
    release_parts(stream);
    mem_free(stream);
}

/* The output has been written, or the socket has references. */
static void free_gone(struct http2_client *client)
{
    while (client->gone != NULL) {
        struct http2_client_stream *stream = client->gone;
        client->gone = stream->next;
        release_parts(stream);
        mem_free(stream);
    }
}

void http2_client_cancel(struct http2_client_stream *stream)
{
    struct http2_client *client = stream->client;
    stream->events = NULL;
    /* A peer that reads nothing keeps the stream, but not its body. */
    if (client->stalled != stream) {
        stream->left = 0;
        release_parts(stream);
    }
    if (client->state >= HTTP2_CLIENT_ENDED)
        return;
    nghttp2_submit_rst_stream(client->nghttp2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
    flush_later(client);
}

static int pass_over_field(struct http2_client *client, struct http2_client_stream *stream,
                           size_t name_size, size_t value_size)
{
    if (stream == NULL)
        return 0;
    stream->unread_bytes += name_size + value_size + FIELD_OVERHEAD_BYTES;
    if (stream->unread_bytes <= HTTP2_UNREAD_FIELDS_BYTES_MAX)
        return 0;
    client->failure = "too many header fields";
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* A field with characters that are not allowed, which nghttp2 leaves out. */
static int on_invalid_header(nghttp2_session *nghttp2, const nghttp2_frame *frame,
                             const uint8_t *name, size_t name_size, const uint8_t *value,
                             size_t value_size, uint8_t flags, void *arg)
{
    (void)name;
    (void)value;
    (void)flags;
    return pass_over_field(arg, find_stream(nghttp2, frame->hd.stream_id), name_size, value_size);
}

static int on_header(nghttp2_session *nghttp2, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *arg)
{
    struct http2_client_stream *stream = find_stream(nghttp2, frame->hd.stream_id);
    (void)flags;
    if (stream == NULL || stream->events == NULL)
        return pass_over_field(arg, stream, name_size, value_size);
    stream->events->on_header(stream->arg, slice_of(name, name_size), slice_of(value, value_size));
    return 0;
}

static int on_frame(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *arg)
{
    struct http2_client *client = arg;
    assert(client->nghttp2 == nghttp2);
    struct http2_client_stream *stream = find_stream(nghttp2, frame->hd.stream_id);
    if (frame->hd.stream_id == 0) {
        if (frame->hd.type == NGHTTP2_GOAWAY) {
            client->has_goaway = true;
            client->has_too_many_pings |=
                frame->goaway.error_code == NGHTTP2_ENHANCE_YOUR_CALM &&
                slice_equal_text(slice_of(frame->goaway.opaque_data, frame->goaway.opaque_data_len),
                                 "too_many_pings");
        }
        if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) {
            if (client->state == HTTP2_CLIENT_GREETING)
                client->state = HTTP2_CLIENT_READY;
            client->has_news = true;
        }
    }
    if (stream == NULL || stream->events == NULL)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS)
        stream->events->on_headers_end(stream->arg);
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 && stream->events != NULL) {
        /* The response is complete. The peer does not want the rest of the request. */
        if (stream->left > 0)
            nghttp2_submit_rst_stream(client->nghttp2, NGHTTP2_FLAG_NONE, stream->id,
                                      NGHTTP2_CANCEL);
        stream_finish(stream, HTTP2_STREAM_COMPLETE, NGHTTP2_NO_ERROR, "");
    }
    return 0;
}

static int on_data(nghttp2_session *nghttp2, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t size, void *arg)
{
    struct http2_client_stream *stream = find_stream(nghttp2, id);
    assert(data != NULL || size == 0);
    (void)flags;
    (void)arg;
    if (stream != NULL && stream->events != NULL)
        stream->events->on_data(stream->arg, slice_of(data, size));
    return 0;
}

static int on_frame_sent(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *arg)
{
    struct http2_client *client = arg;
    assert(client->nghttp2 == nghttp2);
    struct http2_client_stream *stream = find_stream(nghttp2, frame->hd.stream_id);
    if (stream != NULL && frame->hd.type == NGHTTP2_HEADERS)
        stream->is_sent = true;
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR)
        client->failure = nghttp2_http2_strerror(frame->goaway.error_code);
    return 0;
}

static int on_stream_closed(nghttp2_session *nghttp2, int32_t id, uint32_t code, void *arg)
{
    struct http2_client *client = arg;
    struct http2_client_stream *stream = find_stream(nghttp2, id);
    if (stream == NULL)
        return 0;
    assert(stream->client == client);
    bool is_unprocessed = !stream->is_sent || code == NGHTTP2_REFUSED_STREAM;
    stream_finish(stream, is_unprocessed ? HTTP2_STREAM_UNPROCESSED : HTTP2_STREAM_RESET, code, "");
    nghttp2_session_set_stream_user_data(nghttp2, id, NULL);
    stream_free(stream);
    client->has_news = true;
    flush_later(client);
    return 0;
}

static ssize_t on_body_due(nghttp2_session *nghttp2, int32_t id, uint8_t *room, size_t size,
                           uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    const struct http2_client_stream *stream = source->ptr;
    assert(stream->id == id);
    (void)nghttp2;
    (void)id;
    (void)room;
    (void)arg;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (stream->left <= size)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)(stream->left < size ? stream->left : size);
}

/* Puts a DATA frame into the output; large parts are pointed to, not copied. */
static int on_body_frame(nghttp2_session *nghttp2, nghttp2_frame *frame, const uint8_t *head,
                         size_t size, nghttp2_data_source *source, void *arg)
{
    struct http2_client_stream *stream = source->ptr;
    struct http2_output *output = stream->client->output;
    assert(frame->data.padlen == 0);
    assert(size <= stream->left);
    (void)nghttp2;
    (void)frame;
    (void)arg;
    if (!has_room(output)) {
        output->is_full = true;
        stream->client->stalled = stream;
        return NGHTTP2_ERR_WOULDBLOCK;
    }
    stream->client->stalled = NULL;
    append_copy(output, head, FRAME_HEAD_BYTES);
    stream->left -= size;
    while (size > 0) {
        const struct batch_part *part = &stream->parts[stream->at];
        assert(stream->at < stream->parts_count);
        size_t left = part->bytes.size - stream->offset;
        size_t step = left < size ? left : size;
        const uint8_t *data = part->bytes.data + stream->offset;
        bool has_parts = output->parts_count + 2 < OUTPUT_PARTS;
        if (part->owner != NULL && step > COPY_BYTES_MAX && has_parts)
            output->parts[output->parts_count++] =
                (struct batch_part){.owner = part->owner, .bytes = slice_of(data, step)};
        else if (step > 0)
            append_copy(output, data, step);
        size -= step;
        stream->offset += step;
        if (step == left) {
            stream->at++;
            stream->offset = 0;
        }
    }
    return 0;
}

static void fill_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_body_frame);
}

struct http2_client_stream *http2_client_submit(struct http2_client *client,
                                                const struct http2_request *request)
{
    assert(http2_client_has_room(client));
    assert(request->prefix.size > 0);
    struct http2_client_stream *stream = mem_zalloc(sizeof(*stream));
    stream->client = client;
    stream->events = request->events;
    stream->arg = request->arg;
    /* The body: the prefix is its first part. */
    assert(request->prefix.size <= sizeof(stream->prefix));
    memcpy(stream->prefix, request->prefix.data, request->prefix.size);
    stream->parts = mem_alloc((request->parts_count + 1) * sizeof(*stream->parts));
    stream->parts[0] = (struct batch_part){.bytes = slice_of(stream->prefix, request->prefix.size)};
    stream->parts_count = request->parts_count + 1;
    stream->left = request->prefix.size;
    for (size_t i = 0; i < request->parts_count; i++) {
        stream->parts[i + 1] = request->parts[i];
        buffer_ref(request->parts[i].owner);
        stream->left += request->parts[i].bytes.size;
    }
    const nghttp2_data_provider body = {.source.ptr = stream, .read_callback = on_body_due};
    stream->id = nghttp2_submit_request(client->nghttp2, NULL, request->headers,
                                        request->headers_count, &body, stream);
    if (stream->id < 0) {
        release_parts(stream);
        mem_free(stream);
        return NULL;
    }
    stream->next = client->streams;
    if (stream->next != NULL)
        stream->next->prev = stream;
    client->streams = stream;
    client->streams_count++;
    flush_later(client);
    return stream;
}

/* Ends all streams, then calls on_end. */
static void end(struct http2_client *client, const char *reason)
{
    if (client->state >= HTTP2_CLIENT_ENDED)
        return;
    client->state = HTTP2_CLIENT_ENDED;
    lane_timer_stop(client->lane, &client->timer);
    struct http2_client_stream *next = NULL;
    for (struct http2_client_stream *stream = client->streams; stream != NULL; stream = next) {
        next = stream->next;
        stream_finish(stream, stream->is_sent ? HTTP2_STREAM_BROKEN : HTTP2_STREAM_UNPROCESSED,
                      NGHTTP2_NO_ERROR, reason);
    }
    if (client->state == HTTP2_CLIENT_ENDED)
        client->events->on_end(client, reason);
}

static bool is_talking(const struct http2_client *client)
{
    return client->state == HTTP2_CLIENT_GREETING || client->state == HTTP2_CLIENT_READY ||
           client->state == HTTP2_CLIENT_DRAINING;
}

static void end_broken(struct http2_client *client)
{
    char message[ERROR_BYTES_MAX];
    snprintf(message, sizeof(message), "the peer broke the HTTP/2 protocol: %s", client->failure);
    end(client, message);
}

static void flush(void *arg)
{
    struct http2_client *client = arg;
    assert(lane_is_current(client->lane));
    if (!is_talking(client))
        return;
    struct http2_output *output = mem_alloc(sizeof(*output));
    int result = 0;
    while (result == 0 && !client->is_blocked) {
        output->used = 0;
        output->parts_count = 0;
        output->is_full = false;
        client->output = output;
        ssize_t size = 1;
        while (size > 0 && has_room(output)) {
            const uint8_t *data = NULL;
            size = nghttp2_session_mem_send(client->nghttp2, &data);
            if (size > 0)
                append_copy(output, data, (size_t)size);
        }
        client->output = NULL;
        result = size < 0 ? (int)size : 0;
        if (output->parts_count == 0)
            break;
        client->is_blocked =
            !client_socket_write(client->socket, output->parts, output->parts_count);
        free_gone(client);
    }
    free_gone(client);
    mem_free(output);
    if (result != 0) {
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
        end_broken(client);
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
    flush_later(client);
}

static void start_keepalive(struct http2_client *client)
{
    assert(client->ping_ns == 0);
    if (client->keepalive.time_ns > 0)
        lane_timer_start(client->lane, &client->timer, client->keepalive.time_ns);
    else
        lane_timer_stop(client->lane, &client->timer);
}

static void on_bytes(void *owner, const uint8_t *data, size_t size)
{
    struct http2_client *client = owner;
    assert(size > 0);
    if (!is_talking(client))
        return;
    bool was_greeting = client->state == HTTP2_CLIENT_GREETING;
    bool is_first = !client->has_heard;
    /* Any byte counts as the ACK of a keepalive ping. */
    client->has_heard = true;
    client->heard_ns = clock_now_ns();
    if (client->ping_ns != 0) {
        client->ping_ns = 0;
        start_keepalive(client);
    }
    /* Servers of other protocols are recognised by their first bytes. */
    if (is_first && size >= 5 && memcmp(data, "HTTP/", 5) == 0) {
        end(client, "the server speaks HTTP/1.1 where gRPC (HTTP/2) is expected: is this the port "
                    "of OTLP over HTTP (4318)? Its exporter is otlp_http");
        return;
    }
    if (is_first && size >= 2 && data[0] == 0x15 && data[1] == 0x03) {
        end(client, "the server expects TLS, and tls::insecure is true: remove that key, and give "
                    "tls::ca_file when its certificate is your own");
        return;
    }
    ssize_t taken = nghttp2_session_mem_recv(client->nghttp2, data, size);
    if (taken == NGHTTP2_ERR_CALLBACK_FAILURE) {
        end_broken(client);
    } else if (taken < 0) {
        end(client, nghttp2_strerror((int)taken));
    } else if (is_talking(client)) {
        /* Handles what nghttp2's callbacks have noted. */
        if (was_greeting && client->state == HTTP2_CLIENT_READY) {
            start_keepalive(client);
            client->events->on_ready(client);
        }
        if (client->has_goaway && client->state == HTTP2_CLIENT_READY) {
            client->state = HTTP2_CLIENT_DRAINING;
            client->events->on_draining(client, client->has_too_many_pings);
        }
        client->has_goaway = false;
        if (is_talking(client))
            flush_later(client);
    }
}

static void on_drained(void *owner)
{
    struct http2_client *client = owner;
    assert(client->is_blocked);
    client->is_blocked = false;
    flush_later(client);
}

static void on_socket_end(void *owner, const char *reason)
{
    struct http2_client *client = owner;
    char message[ERROR_BYTES_MAX];
    bool is_greeting = client->state == HTTP2_CLIENT_GREETING;
    bool is_mute = is_greeting && !client->has_heard && !client->is_secure;
    snprintf(message, sizeof(message), "%s%s%s",
             is_greeting ? "error reading server preface: " : "", reason,
             is_mute ? ": the server hung up on cleartext HTTP/2; if it expects TLS, remove "
                       "tls::insecure"
                     : "");
    end(client, message);
}

static void on_socket_closed(void *owner)
{
    struct http2_client *client = owner;
    assert(client->state == HTTP2_CLIENT_CLOSING);
    lane_defer_cancel(client->lane, &client->job);
    nghttp2_session_del(client->nghttp2);
    while (client->streams != NULL)
        stream_free(client->streams);
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

static void send_ping(struct http2_client *client, uint64_t timeout_ns)
{
    assert(client->ping_ns == 0);
    client->ping_ns = clock_now_ns();
    nghttp2_submit_ping(client->nghttp2, NGHTTP2_FLAG_NONE, NULL);
    lane_timer_start(client->lane, &client->timer, timeout_ns);
    flush_later(client);
}

static void on_timer(struct timer *timer, void *arg)
{
    struct http2_client *client = arg;
    assert(timer == &client->timer);
    uint64_t now_ns = clock_now_ns();
    uint64_t due_ns = client->heard_ns + client->keepalive.time_ns;
    if (client->state == HTTP2_CLIENT_GREETING)
        end(client, "timed out waiting for server handshake: the server took the connection and "
                    "sent no HTTP/2 SETTINGS");
    else if (client->ping_ns > 0)
        end(client, "keepalive ping failed to receive ACK within timeout");
    else if (now_ns < due_ns)
        lane_timer_start(client->lane, &client->timer, due_ns - now_ns);
    else if (client->streams_count == 0 && !client->keepalive.permit_without_stream)
        start_keepalive(client);
    else
        send_ping(client, client->keepalive.timeout_ns);
}

struct http2_client *http2_client_create(const struct http2_client_settings *settings)
{
    assert(lane_is_current(settings->lane));
    struct http2_client *client = mem_zalloc(sizeof(*client));
    client->lane = settings->lane;
    client->events = settings->events;
    client->is_secure = settings->tls != NULL;
    client->keepalive = settings->keepalive;
    client->greeting_timeout_ns = settings->connect_timeout_ns;
    client->job = (struct lane_job){.fn = flush, .arg = client};
    timer_init(&client->timer, on_timer, client);
    const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, RESPONSE_HEADER_BYTES_MAX},
    };
    if (http2_session_create(&client->nghttp2, fill_callbacks, NULL, client) != 0 ||
        nghttp2_submit_settings(client->nghttp2, NGHTTP2_FLAG_NONE, entries,
                                sizeof(entries) / sizeof(entries[0])) != 0) {
        nghttp2_session_del(client->nghttp2);
        mem_free(client);
        return NULL;
    }
    client->socket = client_socket_create(&(struct client_socket_settings){
        .lane = settings->lane,
        .budget = settings->budget,
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
    return &client->owner;
}

bool http2_client_has_room(const struct http2_client *client)
{
    return client->state == HTTP2_CLIENT_READY &&
           client->streams_count < nghttp2_session_get_remote_settings(
                                       client->nghttp2, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) &&
           nghttp2_session_check_request_allowed(client->nghttp2) != 0;
}

void http2_client_probe(struct http2_client *client)
{
    bool is_greeted = client->state == HTTP2_CLIENT_READY || client->state == HTTP2_CLIENT_DRAINING;
    if (is_greeted && client->ping_ns == 0)
        send_ping(client, HTTP2_PROBE_NS);
}

void http2_client_drain(struct http2_client *client)
{
    if (client->state < HTTP2_CLIENT_READY) {
        end(client, "the connection is no longer needed");
    } else if (client->state == HTTP2_CLIENT_READY) {
        client->state = HTTP2_CLIENT_DRAINING;
        flush_later(client);
    }
}

void http2_client_close(struct http2_client *client, const char *reason)
{
    if (client->state == HTTP2_CLIENT_CLOSING)
        return;
    bool has_ended = client->state == HTTP2_CLIENT_ENDED;
    client->state = HTTP2_CLIENT_CLOSING;
    lane_timer_stop(client->lane, &client->timer);
    for (struct http2_client_stream *stream = client->streams; !has_ended && stream != NULL;) {
        struct http2_client_stream *next = stream->next;
        stream_finish(stream, HTTP2_STREAM_BROKEN, NGHTTP2_NO_ERROR, reason);
        stream = next;
    }
    client_socket_close(client->socket);
}
