/* SPDX-License-Identifier: Apache-2.0 */
/* The server side of HTTP/2 on one connection (RFC 9113), through nghttp2. http_connection.c calls
 * it with what was read; http2_frames.c checks the order of frames before nghttp2 sees them, and
 * http2_guard.c limits abuse. In this order: the data, streams (each is a request), input,
 * nghttp2's callbacks, output, deadlines, and the operations of the protocol.
 *
 * While output waits for the client, nothing is read: else the client could make us queue more.
 * Complete requests that came together and take long wait for later turns, after other connections.
 * Callbacks of nghttp2 only set flags: the session must not be ended, nor fed again, from inside
 * one. Output is written once, at the end of a turn. Closing has two phases (http_connection.h), so
 * that nothing is freed below a callback. On the connection's lane. */
#include "src/net/server/http_connection.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/net/server/http2_frames.h"
#include "src/net/server/http2_guard.h"
#include "src/net/server/http_exchange.h"
#include "src/net/socket/socket_part.h"
#include "src/net/syntax/nghttp2_session.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include <nghttp2/nghttp2.h>

enum {
    FRAME_BYTES_MAX = HTTP2_HEAD_BYTES + 16384,
    SETTINGS_ID_BYTES = 2,
    /* nghttp2 ends the connection of a client that opens one stream too many; we reset the stream
     * (stream_create), as RFC 9113 §5.1.2 allows and grpc-go does. So nghttp2 gets a limit that
     * is never reached, and the client gets the real one (flush). */
    STREAMS_UNLIMITED = INT32_MAX,
    JITTER_PERCENT = 10,
};

enum {
    PSEUDO_METHOD,
    PSEUDO_PATH,
    PSEUDO_AUTHORITY,
    PSEUDO_SCHEME,
    /* RFC 9113 §6.5.2: added to the size of each field of a header list. */
    HEADER_OVERHEAD_BYTES = 32,
    /* :status, Date, Content-Length, the handler's headers, the common headers, and the trailers
     * of a response without a body. */
    REPLY_FIELDS_MAX = 3 + HTTP_RESPONSE_HEADERS_MAX + HTTP_COMMON_HEADERS_MAX + 4,
};

static const char *const pseudo_names[] = {
    [PSEUDO_METHOD] = ":method",
    [PSEUDO_PATH] = ":path",
    [PSEUDO_AUTHORITY] = ":authority",
    [PSEUDO_SCHEME] = ":scheme",
};

/* Of reads into place. */
enum {
    FRAMES_MAX = 32,
    /* Room after the frames, for whatever follows, such as the next request. */
    TAIL_BYTES = 16 * 1024,
    /* Below this, reading into the lane's buffer and copying is cheaper. */
    PLACED_BYTES_MIN = 4096,
    ROWS_MAX = 1 + 2 * FRAMES_MAX + 1,
};

enum {
    HEADER_BYTES_INLINE = 768,     /* in the stream itself */
    HEADER_BYTES_ALLOCATED = 2048, /* the first allocation */
    HEADERS_INLINE = 16,
    TRAILERS_MAX = 4,
    EARLY_BYTES_FIRST = 16 * 1024,
};

struct http2_session;

/* Offsets into the stream's header_bytes, which move when they grow. */
struct http2_header {
    uint16_t name_at;
    uint16_t name_size;
    uint16_t value_at;
    uint16_t value_size;
};

struct http2_stream {
    struct http_request base;
    struct http2_session *session;
    int32_t id;                /* 0 once the stream has closed */
    struct http2_stream *next; /* in session->open, until the exchange ends */
    struct http2_stream *prev;
    bool is_refused;      /* we reset it; the rest of its frames is ignored */
    bool has_begun;       /* the handler has the request */
    bool has_ended_input; /* END_STREAM was received */
    bool has_reply;       /* its response is counted in session->replies */
    bool is_sent;         /* the whole response is written */
    bool is_paused;       /* a stream without a piece: nghttp2 does not ask for data */
    bool is_due;          /* the handler needs no more of it; it waits in session->due_first */
    struct http2_stream *due_next;
    struct http2_stream *due_prev;
    uint64_t reading_ns; /* start of reading the body */
    uint64_t discard_ns; /* start of discarding the rest of a body after the response; 0: none */
    size_t discarded;
    uint64_t reply_ns; /* start of the response */
    uint64_t flow_ns;  /* when it last made progress */
    unsigned headers_count;
    unsigned headers_capacity;
    struct http2_header *headers; /* headers_inline, or allocated */
    size_t header_size;
    size_t header_capacity;
    uint8_t *header_bytes; /* names and values; header_bytes_inline, or allocated */
    struct http2_header pseudo[4];
    uint64_t charged_bytes; /* to the session's budget: the stream, its headers and reply */
    uint8_t *reply;         /* body, then the names and values of trailers, in one allocation; the
                               body alone if base.release is set, which then frees it */
    size_t reply_size;
    size_t reply_sent;
    struct buffer *early; /* data that came while the request is held; NULL: none */
    bool is_full;         /* … and is as much as is kept: see session->full */
    nghttp2_nv trailers[TRAILERS_MAX];
    size_t trailers_count;
    struct http2_header headers_inline[HEADERS_INLINE];
    uint8_t header_bytes_inline[HEADER_BYTES_INLINE];
};

/* Consecutive DATA frames of one stream. */
struct http2_data_run {
    int32_t stream_id;
    uint32_t frame_left;      /* of the newest frame; UINT32_MAX: it is padded */
    uint32_t frame_size;      /* of the largest frame so far, of any stream */
    unsigned frames;          /* in this run, including an incomplete one */
    unsigned frames_before;   /* in the previous run */
    const uint8_t *input_end; /* of the bytes that nghttp2 is processing */
    bool is_last;             /* the last byte received belongs to a DATA frame */
    bool ends_stream;         /* the newest frame does */
};

struct http2_session {
    struct http_connection *connection;
    struct lane *lane;
    struct budget *budget;    /* NULL: nothing is charged */
    nghttp2_session *nghttp2; /* NULL once the connection has closed */
    struct http2_frames frames;
    struct http2_guard guard;
    struct http2_data_run data_run;
    struct http2_frame_buffer frame_buffer;
    enum http2_abuse abuse;    /* set by callbacks of nghttp2 */
    uint64_t charged_bytes;    /* to the budget: the session and its tables of header fields */
    struct lane_job flush_job; /* writes the output at the end of the turn */
    struct lane_job due_job;   /* goes on with complete requests */
    struct http2_stream *due_first;
    struct http2_stream *due_last;
    uint64_t turn_until_ns;      /* for complete requests; 0: nothing is being read */
    struct http2_stream *recent; /* of the newest frame; NULL: it has closed */
    struct http2_stream *open;   /* streams whose exchange has not ended */
    unsigned requests;           /* including those that only the pipeline still holds */
    unsigned replies;            /* responses not yet written */
    unsigned waiting_charged;    /* frames, see charge_waiting */
    bool is_crowded;             /* many refusals wait: nghttp2 is to pause, and they are written */
    bool has_paused;             /* … and it has */
    unsigned full;               /* held requests whose data is not read on before they go on */
    bool is_greeted;             /* the client's SETTINGS were received */
    bool has_advertised;         /* our own SETTINGS are written */
    bool wants_drain;            /* set by callbacks of nghttp2, like wants_final */
    bool wants_final;
    bool is_draining;  /* the first GOAWAY is sent, streams may finish */
    bool is_aged;      /* it drains because of its age */
    bool is_final;     /* the GOAWAY that names the last stream is sent */
    bool is_doomed;    /* the client broke a rule: its input is ignored */
    bool is_rested;    /* the frame buffer's pages are released, and nothing was written since */
    bool is_lingering; /* half-closed, waiting for the client to close */
    uint64_t now_ns;   /* start of this turn: the clock is not read per frame */
    uint64_t begun_ns;
    uint64_t read_until_ns;   /* deadline of bodies and responses while the server stops; 0: none */
    uint64_t headers_ns;      /* start of an incomplete header block; 0: none */
    size_t unread_bytes;      /* of the newest header block, in fields that nobody reads */
    uint64_t idle_ns;         /* when the last stream closed */
    uint64_t idle_default_ns; /* with jitter */
    uint64_t age_ns;          /* when the connection is too old, with jitter; UINT64_MAX: never */
    uint64_t drain_ns;        /* start of draining */
    uint64_t stall_ns;        /* since when responses wait for window; 0: none waits */
    uint64_t resumed_ns;      /* when input was last read on: the client's windows come with it */
    uint64_t linger_ns;
};

/* The header fields of a response. */
struct reply_fields {
    nghttp2_nv rows[REPLY_FIELDS_MAX];
    size_t count;
    char status[4];
    char length[21];
};

/* Where the next bytes are read to: the rest of an incomplete frame, the header and content of each
 * expected frame, and the tail. */
struct placed_read {
    struct iovec rows[ROWS_MAX];
    unsigned count;
    size_t size;
    uint8_t heads[FRAMES_MAX][HTTP2_HEAD_BYTES];
};

static void flush_later(struct http2_session *session)
{
    if (session->nghttp2 != NULL && !http_connection_is_closing(session->connection))
        lane_defer(session->lane, &session->flush_job);
}

static struct http2_stream *stream_of(const struct http_request *request)
{
    return (struct http2_stream *)(uintptr_t)request;
}

static struct slice header_slice(const struct http2_stream *stream, uint16_t at, uint16_t size)
{
    assert((size_t)at + size <= stream->header_size);
    return slice_of(stream->header_bytes + at, size);
}

/* Charges memory beyond bodies, within the budget's margin. */
static bool charge_memory(struct budget *budget, uint64_t bytes)
{
    return budget == NULL || budget_try_take_margin(budget, bytes);
}

static bool charge(struct http2_stream *stream, size_t bytes)
{
    struct http2_session *session = stream->session;
    if (!charge_memory(session->budget, bytes))
        return false;
    stream->charged_bytes += bytes;
    return true;
}

static uint16_t append_bytes(struct http2_stream *stream, struct slice bytes)
{
    assert(stream->header_size + bytes.size <= stream->header_capacity);
    uint16_t at = (uint16_t)stream->header_size;
    if (bytes.size > 0)
        memcpy(stream->header_bytes + at, bytes.data, bytes.size);
    stream->header_size += bytes.size;
    return at;
}

static struct slice pseudo_value(const struct http2_stream *stream, unsigned which)
{
    assert(which <= PSEUDO_SCHEME);
    const struct http2_header *header = &stream->pseudo[which];
    return header_slice(stream, header->value_at, header->value_size);
}

/* nghttp2 has checked that it is a number, and compares it with the bytes received. */
static uint64_t size_declared(const struct http_request *request)
{
    struct slice length = http_request_header(request, "content-length");
    uint64_t size = 0;
    if (length.data == NULL)
        return HTTP_SIZE_UNKNOWN;
    for (size_t i = 0; i < length.size; i++) {
        unsigned digit = (unsigned)(length.data[i] - '0');
        if (digit > 9 || size > (HTTP_SIZE_UNKNOWN - 10) / 10)
            return HTTP_SIZE_UNKNOWN;
        size = size * 10 + digit;
    }
    return size;
}

static bool stream_header_at(const struct http_request *request, size_t index,
                             struct slice *ret_name, struct slice *ret_value)
{
    const struct http2_stream *stream = stream_of(request);
    if (index >= stream->headers_count)
        return false;
    const struct http2_header *header = &stream->headers[index];
    *ret_name = header_slice(stream, header->name_at, header->name_size);
    *ret_value = header_slice(stream, header->value_at, header->value_size);
    return true;
}

/* Whether this turn has time for another request that can have its response; else it is due in a
 * later one. */
static bool may_go_on(struct http2_stream *stream)
{
    struct http2_session *session = stream->session;
    assert(!stream->is_due);
    bool is_over = session->turn_until_ns != 0 && clock_now_ns() > session->turn_until_ns;
    if (session->due_first == NULL && !lane_is_resting(session->lane) && !is_over)
        return true;
    stream->is_due = true;
    stream->due_next = NULL;
    stream->due_prev = session->due_last;
    if (session->due_last != NULL)
        session->due_last->due_next = stream;
    else
        session->due_first = stream;
    session->due_last = stream;
    if (is_over)
        lane_rest(session->lane);
    lane_defer(session->lane, &session->due_job);
    return false;
}

static void drop_due(struct http2_stream *stream)
{
    struct http2_session *session = stream->session;
    if (!stream->is_due)
        return;
    stream->is_due = false;
    if (stream->due_prev != NULL)
        stream->due_prev->due_next = stream->due_next;
    else
        session->due_first = stream->due_next;
    if (stream->due_next != NULL)
        stream->due_next->due_prev = stream->due_prev;
    else
        session->due_last = stream->due_prev;
}

static void finish_body(struct http2_stream *stream)
{
    assert(stream->has_ended_input);
    if (may_go_on(stream))
        http_exchange_finish_body(&stream->base);
}

static void begin_request(struct http2_stream *stream)
{
    assert(!stream->has_begun);
    stream->has_begun = true;
    http_exchange_begin(&stream->base);
}

static void on_due_job(void *arg)
{
    struct http2_session *session = arg;
    uint64_t until_ns = clock_now_ns() + HTTP_TURN_NS;
    while (session->due_first != NULL && !http_connection_is_closing(session->connection)) {
        struct http2_stream *stream = session->due_first;
        drop_due(stream);
        if (!stream->has_begun)
            begin_request(stream);
        else if (stream->base.is_reading)
            http_exchange_finish_body(&stream->base);
        if (session->due_first == NULL)
            return;
        bool is_over = clock_now_ns() > until_ns;
        if (is_over)
            lane_rest(session->lane);
        if (is_over || lane_is_hurried(session->lane)) {
            lane_defer(session->lane, &session->due_job);
            return;
        }
    }
}

static void resume_reading(struct http2_session *session)
{
    if (session->full > 0 || http_connection_is_blocked(session->connection))
        return;
    session->resumed_ns = clock_now_ns();
    http_connection_resume(session->connection);
}

/* The request is held no longer, or has ended. */
static void leave_full(struct http2_stream *stream)
{
    if (!stream->is_full)
        return;
    assert(stream->session->full > 0);
    stream->is_full = false;
    stream->session->full--;
    resume_reading(stream->session);
}

static void stream_read_body(struct http_request *request)
{
    struct http2_stream *stream = stream_of(request);
    struct buffer *early = stream->early;
    bool has_ended = stream->has_ended_input;
    assert(stream->has_begun);
    leave_full(stream);
    stream->reading_ns = clock_now_ns();
    /* The body has a deadline from now on. Within a read, follow_up sets it, behind the jobs that
     * the read makes: one flush writes their responses. */
    if (stream->session->turn_until_ns == 0)
        flush_later(stream->session);
    stream->early = NULL;
    bool goes_on = early == NULL || http_exchange_receive(request, early->data, early->size);
    buffer_unref(early);
    if (goes_on && has_ended)
        finish_body(stream);
}

static nghttp2_nv field_of(const char *name, const char *value)
{
    return (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name,
        .value = (uint8_t *)(uintptr_t)value,
        .namelen = strlen(name),
        .valuelen = strlen(value),
        .flags = NGHTTP2_NV_FLAG_NONE,
    };
}

static void add_field(struct reply_fields *fields, const char *name, const char *value)
{
    assert(fields->count < REPLY_FIELDS_MAX);
    fields->rows[fields->count++] = field_of(name, value);
}

static size_t count_rows(const struct http_header *rows, size_t max)
{
    size_t count = 0;
    while (count < max && rows[count].name != NULL)
        count++;
    return count;
}

/* Whether a response, or a piece of a stream, waits to be written. */
static void count_reply(struct http2_stream *stream, bool waits)
{
    struct http2_session *session = stream->session;
    if (stream->has_reply == waits)
        return;
    assert(waits || session->replies > 0);
    session->replies = waits ? session->replies + 1 : session->replies - 1;
    stream->has_reply = waits;
}

static ssize_t on_reply_data(nghttp2_session *nghttp2, int32_t id, uint8_t *room, size_t size,
                             uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct http2_stream *stream = source->ptr;
    assert(stream->reply_sent <= stream->reply_size);
    size_t left = stream->reply_size - stream->reply_sent;
    size_t taken = left < size ? left : size;
    (void)arg;
    if (taken > 0)
        memcpy(room, stream->reply + stream->reply_sent, taken);
    stream->reply_sent += taken;
    if (taken < left)
        return (ssize_t)taken;
    if (stream->base.is_streaming && taken > 0)
        return (ssize_t)taken;
    if (stream->base.is_streaming) {
        stream->is_paused = true;
        count_reply(stream, false);
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->trailers_count > 0) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(nghttp2, id, stream->trailers, stream->trailers_count) != 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)taken;
}

/* Charges the copy of body and trailers that waits until the client has taken them. A short one is
 * never refused: the response ends the request, which frees more. */
static bool charge_reply(struct http2_stream *stream, size_t size)
{
    if (size > HTTP2_REPLY_FREE_BYTES)
        return charge(stream, size);
    if (stream->session->budget != NULL)
        budget_take(stream->session->budget, size);
    stream->charged_bytes += size;
    return true;
}

static void stream_respond(struct http_request *request, const struct http_response *response)
{
    struct http2_stream *stream = stream_of(request);
    struct http2_session *session = stream->session;
    struct reply_fields fields;
    assert(stream->id > 0);
    assert(response->status >= 200);
    leave_full(stream);
    size_t headers = count_rows(response->headers, HTTP_RESPONSE_HEADERS_MAX);
    size_t trailers = count_rows(response->trailers, TRAILERS_MAX);
    bool has_body = response->body.size > 0 && !slice_equal_text(request->method, "HEAD");
    const bool is_lent = has_body && request->release != NULL;
    size_t kept_size = has_body && !is_lent ? response->body.size : 0;
    for (size_t i = 0; i < trailers && has_body; i++)
        kept_size += strlen(response->trailers[i].name) + strlen(response->trailers[i].value);
    if (!charge_reply(stream, kept_size)) {
        static const char text[] = "no memory left in the budget for the response\n";
        stream_respond(request, &(struct http_response){
                                    .status = 503,
                                    .headers = {{"content-type", "text/plain; charset=utf-8"}},
                                    .common = response->common,
                                    .body = slice_of_text(text),
                                });
        return;
    }
    fields.count = 0;
    /* Three digits, for every response: snprintf takes 700 instructions. */
    fields.status[0] = (char)('0' + response->status / 100 % 10);
    fields.status[1] = (char)('0' + response->status / 10 % 10);
    fields.status[2] = (char)('0' + response->status % 10);
    fields.status[3] = '\0';
    add_field(&fields, ":status", fields.status);
    /* A response with trailers is gRPC's, which has neither length nor date. */
    if (trailers == 0) {
        add_field(&fields, "date", http_server_date(stream->base.connection->server));
        snprintf(fields.length, sizeof(fields.length), "%zu", response->body.size);
        if (response->status != 204 && response->status != 304 && !response->is_stream)
            add_field(&fields, "content-length", fields.length);
    }
    for (size_t i = 0; i < headers; i++)
        add_field(&fields, response->headers[i].name, response->headers[i].value);
    for (size_t i = 0; i < response->common.count; i++)
        if (http_response_sends_common(response, i))
            add_field(&fields, response->common.rows[i].name, response->common.rows[i].value);
    for (size_t i = 0; i < trailers && response->body.size == 0; i++)
        add_field(&fields, response->trailers[i].name, response->trailers[i].value);
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = on_reply_data};
    if (is_lent) {
        stream->reply = (uint8_t *)(uintptr_t)response->body.data;
        stream->reply_size = response->body.size;
    } else if (has_body) {
        stream->reply = mem_alloc(kept_size);
        stream->reply_size = response->body.size;
        memcpy(stream->reply, response->body.data, response->body.size);
        uint8_t *end = stream->reply + response->body.size;
        for (size_t i = 0; i < trailers; i++) {
            nghttp2_nv *kept = &stream->trailers[i];
            *kept = field_of(response->trailers[i].name, response->trailers[i].value);
            kept->name = memcpy(end, kept->name, kept->namelen);
            kept->value = memcpy(end + kept->namelen, kept->value, kept->valuelen);
            end += kept->namelen + kept->valuelen;
        }
        stream->trailers_count = trailers;
    }
    count_reply(stream, true);
    stream->reply_ns = stream->flow_ns = clock_now_ns();
    http2_guard_progress(&session->guard);
    if (nghttp2_submit_response(session->nghttp2, stream->id, fields.rows, fields.count,
                                has_body || response->is_stream ? &provider : NULL) != 0)
        nghttp2_submit_rst_stream(session->nghttp2, NGHTTP2_FLAG_NONE, stream->id,
                                  NGHTTP2_INTERNAL_ERROR);
    flush_later(session);
}

/* nghttp2 asks for data again. */
static void resume_stream(struct http2_stream *stream)
{
    count_reply(stream, true);
    stream->flow_ns = clock_now_ns();
    if (stream->is_paused)
        nghttp2_session_resume_data(stream->session->nghttp2, stream->id);
    stream->is_paused = false;
    flush_later(stream->session);
}

static bool stream_send(struct http_request *request, struct slice piece)
{
    struct http2_stream *stream = stream_of(request);
    assert(stream->id > 0);
    if (stream->reply_sent < stream->reply_size)
        return false;
    /* Never refused, and small: one piece at a time. */
    uint64_t before = stream->reply_size;
    if (stream->session->budget != NULL) {
        budget_take(stream->session->budget, piece.size);
        budget_return(stream->session->budget, before);
    }
    stream->charged_bytes += piece.size - before;
    mem_free(stream->reply);
    stream->reply = mem_copy(piece.data, piece.size);
    stream->reply_size = piece.size;
    stream->reply_sent = 0;
    resume_stream(stream);
    return true;
}

static void stream_finish(struct http_request *request, bool is_whole)
{
    struct http2_stream *stream = stream_of(request);
    assert(stream->id > 0);
    if (!is_whole || stream->reply_sent < stream->reply_size)
        nghttp2_submit_rst_stream(stream->session->nghttp2, NGHTTP2_FLAG_NONE, stream->id,
                                  NGHTTP2_CANCEL);
    resume_stream(stream);
}

static void stream_destroy(struct http_request *request)
{
    struct http2_stream *stream = stream_of(request);
    assert(stream->id == 0);
    assert(stream->session->requests > 0);
    stream->session->requests--;
    if (stream->headers != stream->headers_inline)
        mem_free(stream->headers);
    if (stream->header_bytes != stream->header_bytes_inline)
        mem_free(stream->header_bytes);
    if (request->release == NULL)
        mem_free(stream->reply);
    buffer_unref(stream->early);
    if (stream->session->budget != NULL)
        budget_return(stream->session->budget, stream->charged_bytes);
    mem_free(stream);
}

static const struct http_request_ops http2_request_ops = {
    .is_http2 = true,
    .header_at = stream_header_at,
    .read_body = stream_read_body,
    .respond = stream_respond,
    .stream_send = stream_send,
    .stream_end = stream_finish,
    .destroy = stream_destroy,
};

/* A stream whose headers begin. NULL: the client has too many requests open, or the budget has no
 * room. */
static struct http2_stream *stream_create(struct http2_session *session, int32_t id)
{
    assert(id > 0);
    uint64_t limit = http_connection_settings(session->connection)->streams_max;
    if (session->requests >= (limit == 0 ? HTTP2_STREAMS_MAX : limit))
        return NULL;
    const uint64_t bytes = sizeof(struct http2_stream) + HTTP2_STREAM_OTHER_BYTES;
    if (!charge_memory(session->budget, bytes))
        return NULL;
    struct http2_stream *stream = mem_try_alloc(sizeof(*stream));
    if (stream == NULL) {
        if (session->budget != NULL)
            budget_return(session->budget, bytes);
        return NULL;
    }
    memset(stream, 0, offsetof(struct http2_stream, headers_inline));
    http_exchange_init(&stream->base, &http2_request_ops, session->connection);
    stream->session = session;
    stream->id = id;
    stream->charged_bytes = bytes;
    stream->headers = stream->headers_inline;
    stream->headers_capacity = HEADERS_INLINE;
    stream->header_bytes = stream->header_bytes_inline;
    stream->header_capacity = HEADER_BYTES_INLINE;
    stream->next = session->open;
    if (stream->next != NULL)
        stream->next->prev = stream;
    session->open = stream;
    session->requests++;
    return stream;
}

/* NGHTTP2_NO_ERROR, or the code to reset the stream with: ENHANCE_YOUR_CALM for headers over our
 * limits, REFUSED_STREAM when the budget has no room. */
static uint32_t stream_add_header(struct http2_stream *stream, struct slice name,
                                  struct slice value)
{
    assert(!stream->has_begun);
    assert(!stream->is_refused);
    size_t weight = stream->header_size + stream->headers_count * HEADER_OVERHEAD_BYTES;
    if (name.size + value.size > HTTP_HEADER_BYTES_MAX ||
        weight + name.size + value.size + HEADER_OVERHEAD_BYTES > HTTP_HEADER_BLOCK_BYTES_MAX)
        return NGHTTP2_ENHANCE_YOUR_CALM;
    struct http2_header *header = NULL;
    if (name.size > 0 && name.data[0] == ':')
        for (size_t i = 0; i < sizeof(pseudo_names) / sizeof(pseudo_names[0]); i++)
            if (slice_equal_text(name, pseudo_names[i]))
                header = &stream->pseudo[i];
    if (header == NULL && stream->headers_count == HTTP_HEADERS_MAX)
        return NGHTTP2_ENHANCE_YOUR_CALM;
    size_t wanted = stream->header_size + name.size + value.size;
    if (wanted > stream->header_capacity) {
        /* A power of two, as the allocator rounds up to one. */
        size_t capacity = HEADER_BYTES_ALLOCATED;
        while (capacity < wanted)
            capacity *= 2;
        bool is_inline = stream->header_bytes == stream->header_bytes_inline;
        if (!charge(stream, capacity - (is_inline ? 0 : stream->header_capacity)))
            return NGHTTP2_REFUSED_STREAM;
        stream->header_bytes =
            is_inline ? memcpy(mem_alloc(capacity), stream->header_bytes, stream->header_size)
                      : mem_resize(stream->header_bytes, capacity);
        stream->header_capacity = capacity;
    }
    if (header == NULL && stream->headers_count == stream->headers_capacity) {
        size_t size = HTTP_HEADERS_MAX * sizeof(struct http2_header);
        if (!charge(stream, size))
            return NGHTTP2_REFUSED_STREAM;
        struct http2_header *larger = mem_alloc(size);
        memcpy(larger, stream->headers, stream->headers_count * sizeof(*larger));
        stream->headers = larger;
        stream->headers_capacity = HTTP_HEADERS_MAX;
    }
    if (header == NULL)
        header = &stream->headers[stream->headers_count++];
    header->name_at = append_bytes(stream, name);
    header->name_size = (uint16_t)name.size;
    header->value_at = append_bytes(stream, value);
    header->value_size = (uint16_t)value.size;
    return NGHTTP2_NO_ERROR;
}

/* Tells the client to stop sending the body (RFC 9113 §8.1). */
static void end_discard(struct http2_stream *stream)
{
    assert(stream->is_sent);
    assert(!stream->has_ended_input);
    stream->discard_ns = 0;
    stream->is_refused = true;
    nghttp2_submit_rst_stream(stream->session->nghttp2, NGHTTP2_FLAG_NONE, stream->id,
                              NGHTTP2_NO_ERROR);
    flush_later(stream->session);
}

/* END_STREAM was received after a body. */
static void stream_end_input(struct http2_stream *stream)
{
    assert(!stream->has_ended_input);
    stream->has_ended_input = true;
    if (stream->base.is_reading)
        finish_body(stream);
}

/* nghttp2 has forgotten the stream, or the connection is closed. */
static void stream_end(struct http2_stream *stream)
{
    struct http2_session *session = stream->session;
    assert(stream->id > 0);
    stream->id = 0;
    drop_due(stream);
    leave_full(stream);
    if (session->recent == stream)
        session->recent = NULL;
    if (stream->prev != NULL)
        stream->prev->next = stream->next;
    else
        session->open = stream->next;
    if (stream->next != NULL)
        stream->next->prev = stream->prev;
    /* A response sent while the connection was closing is not counted. */
    if (stream->has_reply && !stream->is_sent) {
        assert(session->replies > 0);
        session->replies--;
    }
    if (stream->has_begun) {
        http_exchange_end(&stream->base);
        return;
    }
    /* The handler never got it, so on_end must not be called. */
    stream_destroy(&stream->base);
    http_connection_unref(session->connection);
}

/* Sends GOAWAY and ignores further input. Not from inside a callback of nghttp2: it must not be fed
 * again after that (CVE-2026-27135). */
static void doom(struct http2_session *session, uint32_t code, const char *reason)
{
    assert(!session->is_doomed);
    session->is_doomed = true;
    nghttp2_submit_goaway(session->nghttp2, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session->nghttp2), code,
                          (const uint8_t *)reason, strlen(reason));
    flush_later(session);
}

static void return_waiting(struct http2_session *session)
{
    if (session->waiting_charged > 0 && session->budget != NULL)
        budget_return(session->budget, session->waiting_charged * HTTP2_WAITING_BYTES);
    session->waiting_charged = 0;
}

/* nghttp2 queues frames without limit, and with each RST_STREAM a stream. Charges those that open
 * requests do not pay for, until all is written. Abuse: there are too many, or the budget has no
 * room. */
static enum http2_abuse charge_waiting(struct http2_session *session)
{
    size_t waiting = nghttp2_session_get_outbound_queue_size(session->nghttp2);
    size_t paid = (size_t)session->requests * HTTP2_WAITING_PER_REQUEST + HTTP2_WAITING_FREE +
                  session->waiting_charged;
    if (waiting <= paid)
        return HTTP2_NO_ABUSE;
    if (session->waiting_charged >= HTTP2_WAITING_MAX ||
        !charge_memory(session->budget, HTTP2_WAITING_STEP * HTTP2_WAITING_BYTES))
        return HTTP2_TOO_MUCH_WAITS;
    session->waiting_charged += HTTP2_WAITING_STEP;
    return HTTP2_NO_ABUSE;
}

/* Writes nghttp2's output by way of room, which holds FRAME_BYTES_MAX or more. True: the socket has
 * taken all of it; false: some waits, perhaps for the connection's next turn. */
static bool write_frames(struct http2_session *session, uint8_t *room, size_t size)
{
    struct http2_frame_buffer *buffer = &session->frame_buffer;
    size_t written = 0;
    bool is_written = true;
    while (is_written) {
        if (written >= HTTP_TURN_BYTES) {
            flush_later(session);
            return false;
        }
        /* As many frames as fit. */
        size_t used = 0;
        while (used + FRAME_BYTES_MAX <= size) {
            const uint8_t *data = NULL;
            ssize_t count = nghttp2_session_mem_send(session->nghttp2, &data);
            if (count <= 0)
                break;
            assert((size_t)count <= FRAME_BYTES_MAX);
            session->is_rested = false;
            /* The first frame shows whether nghttp2_session.c guessed the right allocation. */
            if (buffer->data != NULL &&
                (data < buffer->data || data >= buffer->data + buffer->size))
                buffer->data = NULL;
            memcpy(room + used, data, (size_t)count);
            used += (size_t)count;
        }
        if (used == 0)
            break;
        if (!session->has_advertised) {
            /* Writes the real limit into the SETTINGS frame that begins our output. */
            uint64_t limit = http_connection_settings(session->connection)->streams_max;
            uint8_t *value = room + HTTP2_HEAD_BYTES + SETTINGS_ID_BYTES;
            if (limit == 0)
                limit = HTTP2_STREAMS_MAX;
            assert(used >= HTTP2_HEAD_BYTES + SETTINGS_ID_BYTES + sizeof(uint32_t));
            assert(value[-1] == NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
            for (unsigned i = 0; i < sizeof(uint32_t); i++)
                value[i] = (uint8_t)(limit >> (24 - 8 * i));
            session->has_advertised = true;
        }
        uv_buf_t part = socket_part(room, used);
        is_written = http_connection_write(session->connection, &part, 1);
        written += used;
    }
    return is_written;
}

/* A client may open many streams at once for which there is no room. To write the refusals while
 * nghttp2 has paused takes less memory than to queue them, and other streams go on. */
static void note_refusal(struct http2_session *session)
{
    session->is_crowded =
        nghttp2_session_get_outbound_queue_size(session->nghttp2) >= HTTP2_WAITING_FREE / 2 &&
        !http_connection_is_blocked(session->connection);
}

static void write_refusals(struct http2_session *session)
{
    enum { ROOM_BYTES = 2 * FRAME_BYTES_MAX };
    uint8_t *room = mem_try_alloc(ROOM_BYTES);
    if (room != NULL && write_frames(session, room, ROOM_BYTES))
        return_waiting(session);
    mem_free(room);
}

static const char no_table_memory[] = "no memory for header fields";

/* Charges what the tables of header fields have grown by. False: the budget has no room. */
static bool charge_tables(struct http2_session *session)
{
    nghttp2_session *nghttp2 = session->nghttp2;
    uint64_t bytes = HTTP2_SESSION_BYTES;
    bytes += HTTP2_TABLE_FACTOR * nghttp2_session_get_hd_inflate_dynamic_table_size(nghttp2);
    bytes += HTTP2_OWN_TABLE_FACTOR * nghttp2_session_get_hd_deflate_dynamic_table_size(nghttp2);
    if (bytes <= session->charged_bytes)
        return true;
    if (!charge_memory(session->budget, bytes - session->charged_bytes))
        return false;
    session->charged_bytes = bytes;
    return true;
}

/* Gives nghttp2 the input, and writes refusals where it pauses for that. Returns what nghttp2 did
 * last. */
static ssize_t receive_frames(struct http2_session *session, const uint8_t *data, size_t size)
{
    ssize_t taken;
    do {
        session->has_paused = false;
        taken = nghttp2_session_mem_recv(session->nghttp2, data, size);
        if (!session->has_paused || taken < 0 || http_connection_is_closing(session->connection))
            break;
        write_refusals(session);
        /* Also when no byte is left: nghttp2 may have paused at the last field of a block. */
        data += taken;
        size -= (size_t)taken;
    } while (session->abuse == HTTP2_NO_ABUSE && !session->is_doomed &&
             !http_connection_is_closing(session->connection));
    return taken;
}

/* Passes input to nghttp2, after checking it with http2_frames. False: no more input is taken. */
static bool feed(struct http2_session *session, const uint8_t *data, size_t size)
{
    session->data_run.is_last = false;
    session->data_run.input_end = data + size;
    while (size > 0) {
        struct http2_fault fault;
        size_t sound = http2_frames_read(&session->frames, data, size, &fault);
        ssize_t taken = receive_frames(session, data, sound);
        if (http_connection_is_closing(session->connection) || session->is_doomed)
            return false;
        if (taken < 0) {
            /* nghttp2 failed, or one of our callbacks made it fail. */
            bool is_flooded = taken == NGHTTP2_ERR_FLOODED;
            if (taken == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS)
                session->abuse = HTTP2_TOO_MANY_CONTINUATIONS;
            if (taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
                http_connection_abort(session->connection);
            else if (session->abuse != HTTP2_NO_ABUSE)
                doom(session, NGHTTP2_ENHANCE_YOUR_CALM, http2_abuse_text(session->abuse));
            else
                doom(session, is_flooded ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_INTERNAL_ERROR, "");
            return false;
        }
        if (fault.code != NGHTTP2_NO_ERROR && fault.stream_id == 0) {
            doom(session, fault.code, fault.reason);
            return false;
        }
        if (fault.code != NGHTTP2_NO_ERROR && session->abuse == HTTP2_NO_ABUSE) {
            nghttp2_submit_rst_stream(session->nghttp2, NGHTTP2_FLAG_NONE, (int32_t)fault.stream_id,
                                      fault.code);
            /* nghttp2 does not get this frame, so on_begin_frame does not see it. */
            session->abuse = charge_waiting(session);
        }
        if (session->abuse != HTTP2_NO_ABUSE) {
            doom(session, NGHTTP2_ENHANCE_YOUR_CALM, http2_abuse_text(session->abuse));
            return false;
        }
        /* nghttp2 does not tell of blocks whose stream it has forgotten, as after a refusal. */
        if (!http2_frames_in_block(&session->frames))
            session->headers_ns = 0;
        /* At once: later in the turn others may have taken the room. */
        if (!charge_tables(session)) {
            doom(session, NGHTTP2_ENHANCE_YOUR_CALM, no_table_memory);
            return false;
        }
        data += sound;
        size -= sound;
    }
    return true;
}

/* Large bodies are read straight into their buffers. Once a stream's DATA frames come one after the
 * other, the next ones are likely to do so, too: one readv puts the content of each into the body's
 * buffer, and the frame headers between them aside. nghttp2 gets each piece in turn; the content is
 * in its place already. If the input is not as expected, it is first copied back into one piece. */

static void add_row(struct placed_read *plan, uint8_t *data, size_t size)
{
    assert(plan->count < ROWS_MAX);
    plan->rows[plan->count++] = (struct iovec){.iov_base = data, .iov_len = size};
    plan->size += size;
}

/* False when too little is expected. All of it fits into the lane's buffer, where the tail comes
 * after everything that may have to be copied there. */
static bool plan_read(const struct http2_session *session, struct placed_read *ret_plan)
{
    const struct http2_data_run *run = &session->data_run;
    ret_plan->count = 0;
    ret_plan->size = 0;
    if (!run->is_last || session->is_doomed || session->is_lingering ||
        session->abuse != HTTP2_NO_ABUSE)
        return false;
    struct http2_stream *stream =
        nghttp2_session_get_stream_user_data(session->nghttp2, run->stream_id);
    if (stream == NULL || stream->is_refused || stream->has_ended_input ||
        !stream->base.is_reading || !http_body_is_announced(&stream->base.body))
        return false;
    size_t left;
    uint8_t *room = http_body_room(&stream->base.body, &left);
    if (run->frame_left > left)
        return false;
    add_row(ret_plan, room, run->frame_left);
    room += run->frame_left;
    left -= run->frame_left;
    /* As many frames as have followed so far, or as in the run before; none after the one that ends
     * the stream. */
    assert(run->frames > 0);
    unsigned as_seen = run->frames - 1;
    unsigned as_before = run->frames_before > run->frames ? run->frames_before - run->frames : 0;
    unsigned frames = as_seen > as_before ? as_seen : as_before;
    if (run->ends_stream)
        frames = 0;
    for (unsigned i = 0; i < frames && i < FRAMES_MAX && left > 0; i++) {
        size_t size = left < run->frame_size ? left : run->frame_size;
        if (ret_plan->size + HTTP2_HEAD_BYTES + size + TAIL_BYTES > LANE_READ_BYTES)
            break;
        add_row(ret_plan, ret_plan->heads[i], HTTP2_HEAD_BYTES);
        add_row(ret_plan, room, size);
        room += size;
        left -= size;
    }
    if (ret_plan->size < PLACED_BYTES_MIN)
        return false;
    size_t placed = ret_plan->size;
    uint8_t *buffer = session->connection->server->read_buffer;
    add_row(ret_plan, buffer + placed,
            placed < LANE_READ_BYTES / 2 ? LANE_READ_BYTES - placed : TAIL_BYTES);
    return true;
}

/* Whether the next bytes most likely belong to a body that has room for them. */
static bool expects(const void *state)
{
    struct placed_read plan;
    return plan_read(state, &plan);
}

/* Usually the stream of the previous call. */
static struct http2_stream *find_stream(struct http2_session *session, int32_t id)
{
    struct http2_stream *stream = session->recent;
    if (id == 0)
        return NULL;
    if (stream != NULL && stream->id == id)
        return stream;
    stream = nghttp2_session_get_stream_user_data(session->nghttp2, id);
    assert(stream == NULL || stream->id == id);
    session->recent = stream;
    return stream;
}

/* An error here makes nghttp2 stop at once. */
static int on_begin_frame(nghttp2_session *nghttp2, const nghttp2_frame_hd *head, void *arg)
{
    struct http2_session *session = arg;
    (void)nghttp2;
    assert(session->abuse == HTTP2_NO_ABUSE);
    assert(!session->is_doomed);
    /* A block keeps its deadline, however many frames it has. */
    if (head->type != NGHTTP2_CONTINUATION)
        session->headers_ns = 0;
    if (head->type == NGHTTP2_DATA) {
        struct http2_data_run *run = &session->data_run;
        bool is_padded = (head->flags & NGHTTP2_FLAG_PADDED) != 0;
        if (run->stream_id != head->stream_id) {
            run->frames_before = run->frames;
            run->frames = 0;
        }
        run->frames++;
        run->stream_id = head->stream_id;
        run->ends_stream = (head->flags & NGHTTP2_FLAG_END_STREAM) != 0;
        run->frame_left = is_padded ? UINT32_MAX : (uint32_t)head->length;
        if (head->length > run->frame_size)
            run->frame_size = (uint32_t)head->length;
    }
    session->abuse = http2_guard_frame(&session->guard, head, session->now_ns);
    if (session->abuse == HTTP2_NO_ABUSE)
        session->abuse = charge_waiting(session);
    return session->abuse == HTTP2_NO_ABUSE ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin_headers(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *arg)
{
    struct http2_session *session = arg;
    assert(session->nghttp2 == nghttp2);
    session->headers_ns = session->now_ns;
    session->unread_bytes = 0;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    int32_t id = frame->hd.stream_id;
    struct http2_stream *stream = stream_create(session, id);
    if (stream == NULL) {
        nghttp2_submit_rst_stream(nghttp2, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
        note_refusal(session);
    } else {
        nghttp2_session_set_stream_user_data(nghttp2, id, stream);
    }
    if (id / 2 + 1 >= HTTP2_STREAMS_PER_CONNECTION_MAX)
        session->wants_drain = true;
    return 0;
}

static int pass_over_field(struct http2_session *session, size_t name_size, size_t value_size)
{
    session->unread_bytes += name_size + value_size + HEADER_OVERHEAD_BYTES;
    if (session->unread_bytes <= HTTP2_UNREAD_FIELDS_BYTES_MAX)
        return 0;
    session->abuse = HTTP2_TOO_MANY_FIELDS;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* Of a stream that is refused: lets nghttp2 pause when refusals are to be written. */
static int pass_over_refused(struct http2_session *session, size_t name_size, size_t value_size)
{
    int result = pass_over_field(session, name_size, value_size);
    if (result != 0 || !session->is_crowded)
        return result;
    session->is_crowded = false;
    session->has_paused = true;
    return NGHTTP2_ERR_PAUSE;
}

/* A field with characters that are not allowed, which nghttp2 leaves out. */
static int on_invalid_header(nghttp2_session *nghttp2, const nghttp2_frame *frame,
                             const uint8_t *name, size_t name_size, const uint8_t *value,
                             size_t value_size, uint8_t flags, void *arg)
{
    (void)nghttp2;
    (void)frame;
    (void)name;
    (void)value;
    (void)flags;
    return pass_over_field(arg, name_size, value_size);
}

static int on_header(nghttp2_session *nghttp2, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *arg)
{
    struct http2_session *session = arg;
    struct http2_stream *stream = find_stream(session, frame->hd.stream_id);
    (void)flags;
    /* Trailers of a request are ignored. */
    if (stream == NULL || stream->is_refused || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return pass_over_refused(session, name_size, value_size);
    uint32_t code =
        stream_add_header(stream, slice_of(name, name_size), slice_of(value, value_size));
    if (code == NGHTTP2_NO_ERROR)
        return 0;
    stream->is_refused = true;
    nghttp2_submit_rst_stream(nghttp2, NGHTTP2_FLAG_NONE, frame->hd.stream_id, code);
    note_refusal(session);
    return 0;
}

static int on_frame(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *arg)
{
    struct http2_session *session = arg;
    assert(session->nghttp2 == nghttp2);
    struct http2_stream *stream = find_stream(session, frame->hd.stream_id);
    bool is_last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_HEADERS) {
        session->headers_ns = 0;
        if (stream == NULL || stream->is_refused)
            return 0;
        if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
            /* The header block is complete: the request begins. */
            assert(!stream->has_begun);
            struct http_request *request = &stream->base;
            struct slice path = pseudo_value(stream, PSEUDO_PATH);
            const uint8_t *mark = path.size == 0 ? NULL : memchr(path.data, '?', path.size);
            request->method = pseudo_value(stream, PSEUDO_METHOD);
            request->path = path;
            if (mark != NULL) {
                request->path.size = (size_t)(mark - path.data);
                request->query = slice_of(mark + 1, path.size - request->path.size - 1);
            }
            request->host = pseudo_value(stream, PSEUDO_AUTHORITY);
            if (request->host.size == 0)
                request->host = http_request_header(request, "host");
            request->size_declared = is_last ? 0 : size_declared(request);
            stream->has_ended_input = is_last;
            bool takes_body = !is_last && request->handler->on_body != NULL;
            if (takes_body || may_go_on(stream))
                begin_request(stream);
        } else if (is_last) {
            stream_end_input(stream);
        }
    } else if (frame->hd.type == NGHTTP2_SETTINGS) {
        session->is_greeted = true;
    } else if (frame->hd.type == NGHTTP2_PING) {
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0 && session->is_draining)
            session->wants_final = true;
    } else if (frame->hd.type == NGHTTP2_DATA && stream != NULL && is_last) {
        stream_end_input(stream);
    }
    return 0;
}

/* Frames of unknown types are ignored; with these callbacks nghttp2 still reports them to
 * on_begin_frame, which counts them. */
static int on_extension_data(nghttp2_session *nghttp2, const nghttp2_frame_hd *head,
                             const uint8_t *data, size_t size, void *arg)
{
    (void)nghttp2;
    (void)head;
    (void)data;
    (void)size;
    (void)arg;
    return NGHTTP2_ERR_CANCEL;
}

static int on_extension(nghttp2_session *nghttp2, void **payload, const nghttp2_frame_hd *head,
                        void *arg)
{
    (void)nghttp2;
    (void)payload;
    (void)head;
    (void)arg;
    return NGHTTP2_ERR_CANCEL;
}

/* Keeps data of a request that is held. Once there is much, the connection waits with it: nghttp2
 * grants window for what it has passed on, and the client would send more. False: the request is
 * not held, or there is no memory. */
static bool keep_early(struct http2_stream *stream, const uint8_t *data, size_t size)
{
    struct buffer *early = stream->early;
    size_t wanted = (early != NULL ? early->size : 0) + size;
    size_t capacity = early != NULL ? early->capacity : EARLY_BYTES_FIRST;
    if (!stream->base.is_held)
        return false;
    while (capacity < wanted)
        capacity *= 2;
    if (early == NULL)
        early = buffer_try_create(stream->session->budget, capacity);
    else if (capacity > early->capacity)
        early = buffer_try_grow(early, capacity);
    if (early == NULL)
        return false;
    if (size > 0)
        memcpy(early->data + early->size, data, size);
    early->size = wanted;
    stream->early = early;
    if (wanted > HTTP2_EARLY_BYTES && !stream->is_full) {
        stream->is_full = true;
        stream->session->full++;
        http_connection_pause(stream->session->connection);
    }
    return true;
}

static int on_data(nghttp2_session *nghttp2, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t size, void *arg)
{
    assert(data != NULL || size == 0);
    struct http2_session *session = arg;
    struct http2_stream *stream = find_stream(session, id);
    (void)nghttp2;
    (void)flags;
    struct http2_data_run *run = &session->data_run;
    bool is_padded = run->frame_left == UINT32_MAX;
    run->is_last = data + size == run->input_end && !is_padded;
    assert(size <= run->frame_left);
    if (!is_padded)
        run->frame_left -= (uint32_t)size;
    /* Ignored data is credited, too, so that other streams keep their window. */
    if (stream == NULL || stream->is_refused)
        return 0;
    if (stream->base.is_reading) {
        /* False: the response is sent; further data is discarded below. */
        if (!http_exchange_receive(&stream->base, data, size))
            return 0;
    } else if (stream->discard_ns > 0) {
        stream->discarded += size;
        if (stream->discarded > HTTP_DISCARD_BYTES_MAX)
            end_discard(stream);
    } else if (stream->base.is_with_handler && !keep_early(stream, data, size)) {
        /* The body has no charged buffer yet; the client may retry. */
        stream->is_refused = true;
        nghttp2_submit_rst_stream(session->nghttp2, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
        flush_later(session);
    }
    return 0;
}

static int on_frame_sent(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *arg)
{
    struct http2_session *session = arg;
    assert(session->nghttp2 == nghttp2);
    struct http2_stream *stream = find_stream(session, frame->hd.stream_id);
    /* An error here would make nghttp2 send the frame again, so only the flag is set. */
    bool is_reset =
        frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR;
    if (is_reset)
        http_server_count_reset(session->connection->server);
    if (is_reset && session->abuse == HTTP2_NO_ABUSE)
        session->abuse = http2_guard_reset(&session->guard, session->now_ns);
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR)
        session->is_doomed = true;
    if (frame->hd.type == NGHTTP2_DATA)
        session->stall_ns = 0;
    if (frame->hd.type == NGHTTP2_DATA && stream != NULL)
        stream->flow_ns = session->now_ns;
    if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 && stream != NULL) {
        /* The response is written. A short rest of the body is read and dropped, unless the
         * connection drains: some clients that are reset while they send lose the response, and
         * nghttp2 still checks that the request is well-formed. */
        assert(stream->base.has_responded);
        assert(!stream->is_sent);
        assert(stream->session->replies > 0);
        uint64_t declared = stream->base.size_declared;
        stream->session->replies--;
        stream->is_sent = true;
        if (!stream->has_ended_input) {
            http_body_clear(&stream->base.body);
            stream->discard_ns = stream->session->now_ns;
            bool is_long = declared != HTTP_SIZE_UNKNOWN && declared > HTTP_DISCARD_BYTES_MAX;
            if (is_long || stream->session->is_draining)
                end_discard(stream);
        }
    }
    return 0;
}

static int on_stream_closed(nghttp2_session *nghttp2, int32_t id, uint32_t code, void *arg)
{
    struct http2_session *session = arg;
    struct http2_stream *stream = find_stream(session, id);
    (void)code;
    if (stream == NULL)
        return 0;
    assert(stream->session == session);
    nghttp2_session_set_stream_user_data(nghttp2, id, NULL);
    stream_end(stream);
    if (session->open == NULL)
        session->idle_ns = session->now_ns;
    return 0;
}

static void fill_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    nghttp2_session_callbacks_set_on_extension_chunk_recv_callback(callbacks, on_extension_data);
    nghttp2_session_callbacks_set_unpack_extension_callback(callbacks, on_extension);
}

/* Sends the first of two GOAWAYs: streams under way are still accepted. The ping's ACK shows that
 * the client has read it (RFC 9113 §6.8). */
static void drain(struct http2_session *session)
{
    if (session->is_draining || session->is_doomed)
        return;
    session->is_draining = true;
    session->drain_ns = clock_now_ns();
    nghttp2_submit_shutdown_notice(session->nghttp2);
    nghttp2_submit_ping(session->nghttp2, NGHTTP2_FLAG_NONE, NULL);
    flush_later(session);
}

static void finish_drain(struct http2_session *session)
{
    assert(session->is_draining);
    if (session->is_final || session->is_doomed)
        return;
    session->is_final = true;
    nghttp2_submit_goaway(session->nghttp2, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session->nghttp2),
                          NGHTTP2_NO_ERROR, NULL, 0);
    flush_later(session);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t idle_deadline(const struct http2_session *session)
{
    uint64_t idle_max_ns = http_connection_settings(session->connection)->connection_idle_max_ns;
    if (session->open != NULL)
        return UINT64_MAX;
    return session->idle_ns + (idle_max_ns > 0 ? idle_max_ns : session->idle_default_ns);
}

/* When the frame buffer's pages are to be released. */
static uint64_t rest_deadline(const struct http2_session *session)
{
    bool is_idle = session->open == NULL && session->replies == 0 && session->has_advertised;
    if (!is_idle || session->is_rested || session->frame_buffer.data == NULL)
        return UINT64_MAX;
    return session->idle_ns + HTTP2_REST_NS;
}

static uint64_t drain_deadline(const struct http2_session *session)
{
    assert(session->is_draining);
    uint64_t grace_ns = http_connection_settings(session->connection)->connection_age_grace_ns;
    if (!session->is_final)
        return session->drain_ns + HTTP2_DRAIN_PING_NS;
    return session->is_aged && grace_ns > 0 ? session->drain_ns + grace_ns : UINT64_MAX;
}

/* Of a response that waits: for its own window, which other responses do not need, and for all of
 * it, with a configured deadline or while the server stops. */
static uint64_t reply_deadline(const struct http2_stream *stream)
{
    const struct http2_session *session = stream->session;
    uint64_t write_ns = http_connection_settings(session->connection)->write_deadline_ns;
    uint64_t due_ns = UINT64_MAX;
    if (!stream->has_reply || stream->is_sent || stream->is_refused)
        return UINT64_MAX;
    if (write_ns > 0 && !stream->base.is_streaming)
        due_ns = stream->reply_ns + write_ns;
    if (session->read_until_ns > 0 && !stream->base.is_streaming)
        due_ns = earlier(due_ns, session->read_until_ns > stream->reply_ns + HTTP_STOP_WRITE_NS
                                     ? session->read_until_ns
                                     : stream->reply_ns + HTTP_STOP_WRITE_NS);
    bool is_read = session->full == 0 && !http_connection_is_blocked(session->connection);
    if (is_read && nghttp2_session_get_stream_remote_window_size(session->nghttp2, stream->id) <= 0)
        due_ns = earlier(due_ns, (stream->flow_ns > session->resumed_ns ? stream->flow_ns
                                                                        : session->resumed_ns) +
                                     HTTP2_WINDOW_STALL_NS);
    return due_ns;
}

/* Alone: other responses of the connection go on. */
static void end_reply(struct http2_stream *stream)
{
    assert(!stream->is_refused);
    stream->is_refused = true;
    nghttp2_submit_rst_stream(stream->session->nghttp2, NGHTTP2_FLAG_NONE, stream->id,
                              NGHTTP2_CANCEL);
}

static uint64_t next_deadline(const struct http2_session *session, uint64_t now_ns)
{
    const struct http_server_settings *settings = http_connection_settings(session->connection);
    if (session->is_lingering)
        return session->linger_ns + HTTP2_LINGER_NS;
    uint64_t due_ns = UINT64_MAX;
    for (const struct http2_stream *stream = session->open; stream != NULL; stream = stream->next) {
        if (stream->discard_ns > 0)
            due_ns = earlier(due_ns, stream->discard_ns + HTTP2_DISCARD_NS);
        if (session->replies > 0)
            due_ns = earlier(due_ns, reply_deadline(stream));
        if (!stream->base.is_reading || stream->is_due)
            continue;
        uint64_t first_ns = stream->reading_ns + BODY_GRACE_NS + NS_PER_S;
        due_ns = earlier(due_ns, first_ns > now_ns ? first_ns : now_ns + NS_PER_S);
        if (settings->read_deadline_ns > 0)
            due_ns = earlier(due_ns, stream->reading_ns + settings->read_deadline_ns);
        if (session->read_until_ns > 0)
            due_ns = earlier(due_ns, session->read_until_ns);
    }
    if (!session->is_greeted)
        due_ns = earlier(due_ns, session->begun_ns + settings->header_deadline_ns);
    if (session->headers_ns > 0)
        due_ns = earlier(due_ns, session->headers_ns + settings->header_deadline_ns);
    if (session->stall_ns > 0)
        due_ns = earlier(due_ns, session->stall_ns + HTTP2_WINDOW_STALL_NS);
    if (session->is_draining)
        return earlier(due_ns, drain_deadline(session));
    due_ns = earlier(due_ns, rest_deadline(session));
    return earlier(due_ns, earlier(idle_deadline(session), session->age_ns));
}

/* Writes output and sets the next deadline, at the end of a turn. */
static void flush(void *arg)
{
    struct http2_session *session = arg;
    assert(lane_is_current(session->lane));
    if (http_connection_is_closing(session->connection))
        return;
    session->now_ns = clock_now_ns();
    if (!session->is_doomed && !session->is_lingering && !charge_tables(session))
        doom(session, NGHTTP2_ENHANCE_YOUR_CALM, no_table_memory);
    /* True: the socket has taken all of nghttp2's output. */
    bool is_written = !session->is_lingering && !http_connection_is_blocked(session->connection);
    /* The read buffer is free to use: nothing is read at the end of a turn. */
    is_written = is_written &&
                 write_frames(session, session->connection->server->read_buffer, LANE_READ_BYTES);
    if (is_written)
        return_waiting(session);
    else if (http_connection_is_blocked(session->connection) &&
             !http_connection_is_closing(session->connection))
        http_connection_pause(session->connection);
    if (session->abuse != HTTP2_NO_ABUSE && !session->is_doomed) {
        doom(session, NGHTTP2_ENHANCE_YOUR_CALM, http2_abuse_text(session->abuse));
    } else if (is_written) {
        if (session->is_doomed || !nghttp2_session_want_read(session->nghttp2)) {
            /* Half-closes after the last byte, and gives the client time to read it: closing a
             * socket with unread input resets the connection, and GOAWAY would be lost. */
            assert(!session->is_lingering);
            session->is_lingering = true;
            session->linger_ns = clock_now_ns();
            http_connection_shutdown(session->connection);
        }
        /* All that the windows allow is written: the rest waits for the client. */
        if (session->replies == 0)
            session->stall_ns = 0;
        else if (session->stall_ns == 0)
            session->stall_ns = session->now_ns;
    }
    if (!http_connection_is_closing(session->connection)) {
        uint64_t due_ns = next_deadline(session, session->now_ns);
        if (due_ns != UINT64_MAX)
            due_ns = due_ns > session->now_ns ? due_ns - session->now_ns : 0;
        http_connection_set_deadline(session->connection, due_ns);
    }
}

/* Up to JITTER_PERCENT of delay_ns: connections that began together should not end together. */
static uint64_t jitter(uint64_t delay_ns)
{
    return (uint64_t)(random_uniform() * (double)(delay_ns / 100 * JITTER_PERCENT));
}

static void *create(struct http_connection *connection)
{
    const struct http_server_settings *settings = http_connection_settings(connection);
    uint64_t now_ns = clock_now_ns();
    if (!charge_memory(settings->budget, HTTP2_SESSION_BYTES))
        return NULL;
    struct http2_session *session = mem_zalloc(sizeof(*session));
    session->connection = connection;
    session->lane = settings->lane;
    session->budget = settings->budget;
    session->flush_job.fn = flush;
    session->flush_job.arg = session;
    session->charged_bytes = HTTP2_SESSION_BYTES;
    session->due_job.fn = on_due_job;
    session->due_job.arg = session;
    session->begun_ns = now_ns;
    session->idle_ns = now_ns;
    session->idle_default_ns = HTTP2_IDLE_NS + jitter(HTTP2_IDLE_NS);
    session->age_ns = UINT64_MAX;
    if (settings->connection_age_max_ns > 0) {
        uint64_t age_ns = settings->connection_age_max_ns;
        session->age_ns = now_ns + age_ns - age_ns / 100 * JITTER_PERCENT + 2 * jitter(age_ns);
    }
    http2_frames_init(&session->frames);
    http2_guard_init(&session->guard,
                     settings->ping_interval_min_ns > 0 ? settings->ping_interval_min_ns
                                                        : HTTP2_PING_INTERVAL_MIN_NS,
                     now_ns);
    /* MAX_CONCURRENT_STREAMS comes first: flush() looks for it there. */
    const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_UNLIMITED},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEADER_BLOCK_BYTES_MAX},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    if (http2_session_create(&session->nghttp2, fill_callbacks, &session->frame_buffer, session) !=
            0 ||
        nghttp2_submit_settings(session->nghttp2, NGHTTP2_FLAG_NONE, entries,
                                sizeof(entries) / sizeof(entries[0])) != 0 ||
        nghttp2_session_set_local_window_size(session->nghttp2, NGHTTP2_FLAG_NONE, 0,
                                              HTTP2_CONNECTION_WINDOW_BYTES) != 0) {
        nghttp2_session_del(session->nghttp2);
        if (session->budget != NULL)
            budget_return(session->budget, HTTP2_SESSION_BYTES);
        mem_free(session);
        return NULL;
    }
    flush_later(session);
    return session;
}

/* After all input of a read: acts on what the callbacks have noted. */
static void follow_up(struct http2_session *session)
{
    session->turn_until_ns = 0;
    if (http_connection_is_closing(session->connection))
        return;
    if (session->wants_drain)
        drain(session);
    if (session->wants_final)
        finish_drain(session);
    flush_later(session);
}

static void receive(void *state, const uint8_t *data, size_t size)
{
    struct http2_session *session = state;
    if (session->is_doomed || session->is_lingering || session->abuse != HTTP2_NO_ABUSE)
        return;
    session->now_ns = clock_now_ns();
    session->turn_until_ns = session->now_ns + HTTP_TURN_NS;
    (void)feed(session, data, size);
    follow_up(session);
}

static ssize_t read_expected(void *state, int fd)
{
    struct http2_session *session = state;
    session->now_ns = clock_now_ns();
    session->turn_until_ns = session->now_ns + HTTP_TURN_NS;
    struct placed_read plan;
    bool is_planned = plan_read(session, &plan);
    assert(is_planned);
    ssize_t size;
    do
        size = readv(fd, plan.rows, (int)plan.count);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        size = -errno;
    /* Passes what was read to nghttp2, piece by piece, until it takes no more. */
    const struct iovec *row = plan.rows;
    const struct iovec *tail = row + plan.count - 1;
    size_t placed = plan.size - tail->iov_len;
    size_t left = size > 0 ? (size_t)size : 0;
    size_t tail_size = left > placed ? left - placed : 0;
    bool goes_on = true;
    for (left -= tail_size; goes_on && left > 0; row++) {
        bool is_head = (row - plan.rows) % 2 == 1;
        if (is_head && left < HTTP2_HEAD_BYTES)
            break;
        if (is_head) {
            /* The content must be of the expected size and stream. Only the last frame may end the
             * stream: that hands the body to the handler. */
            const uint8_t *head = row->iov_base;
            size_t length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
            uint32_t id = (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 |
                          (uint32_t)head[7] << 8 | head[8];
            unsigned flags = NGHTTP2_FLAG_PADDED | (row + 2 == tail ? 0 : NGHTTP2_FLAG_END_STREAM);
            if (length != row[1].iov_len || head[3] != NGHTTP2_DATA || (head[4] & flags) != 0 ||
                id != (uint32_t)session->data_run.stream_id)
                break;
        }
        size_t piece = left < row->iov_len ? left : row->iov_len;
        goes_on = piece == 0 || feed(session, row->iov_base, piece);
        left -= piece;
    }
    /* The rest is not as expected: it is copied into one piece. */
    uint8_t *buffer = session->connection->server->read_buffer;
    for (size_t joined = 0; goes_on && joined < left; row++) {
        size_t piece = left - joined < row->iov_len ? left - joined : row->iov_len;
        memcpy(buffer + joined, row->iov_base, piece);
        joined += piece;
    }
    goes_on = goes_on && (left == 0 || feed(session, buffer, left));
    if (goes_on && tail_size > 0)
        (void)feed(session, tail->iov_base, tail_size);
    follow_up(session);
    return size;
}

static void close_for_good(struct http2_session *session)
{
    if (session->is_doomed)
        http_connection_abort(session->connection);
    else
        http_connection_close(session->connection);
}

static void end_of_input(void *state)
{
    /* Responses cannot be read any more; complete requests are still processed. */
    close_for_good(state);
}

static void written(void *state)
{
    struct http2_session *session = state;
    resume_reading(session);
    flush_later(session);
}

static void expire(void *state)
{
    struct http2_session *session = state;
    uint64_t now_ns = clock_now_ns();
    if (session->is_lingering) {
        close_for_good(session);
        return;
    }
    uint64_t header_deadline_ns = http_connection_settings(session->connection)->header_deadline_ns;
    if ((!session->is_greeted && now_ns >= session->begun_ns + header_deadline_ns) ||
        (session->headers_ns > 0 && now_ns >= session->headers_ns + header_deadline_ns) ||
        (session->stall_ns > 0 && now_ns >= session->stall_ns + HTTP2_WINDOW_STALL_NS) ||
        (session->is_final && now_ns >= drain_deadline(session))) {
        http_connection_abort(session->connection);
        return;
    }
    /* Responses are written, and streams end, later in this turn. */
    uint64_t read_deadline_ns = http_connection_settings(session->connection)->read_deadline_ns;
    for (struct http2_stream *stream = session->open; stream != NULL; stream = stream->next) {
        uint64_t waited_ns = now_ns - stream->reading_ns;
        uint64_t graced_ns = waited_ns > BODY_GRACE_NS ? waited_ns - BODY_GRACE_NS : 0;
        bool is_slow =
            http_body_size(&stream->base.body) < graced_ns / NS_PER_S * BODY_RATE_MIN_BYTES_PER_S;
        bool is_late = (session->read_until_ns > 0 && now_ns >= session->read_until_ns) ||
                       (read_deadline_ns > 0 && waited_ns >= read_deadline_ns);
        if (stream->base.is_reading && !stream->is_due && (is_slow || is_late))
            http_exchange_fail_body(&stream->base, HTTP_BODY_TOO_SLOW);
        else if (stream->discard_ns > 0 && now_ns >= stream->discard_ns + HTTP2_DISCARD_NS)
            end_discard(stream);
        else if (now_ns >= reply_deadline(stream))
            end_reply(stream);
    }
    if (now_ns >= rest_deadline(session)) {
        /* Releases the pages of the frame buffer, which is empty between frames. */
        assert(session->open == NULL);
        if (nghttp2_session_want_write(session->nghttp2) == 0)
            mem_rest_pages(session->frame_buffer.data, session->frame_buffer.size);
        session->is_rested = true;
    }
    if (session->is_draining) {
        if (now_ns >= drain_deadline(session))
            finish_drain(session);
    } else if (now_ns >= session->age_ns || now_ns >= idle_deadline(session)) {
        session->is_aged = now_ns >= session->age_ns;
        drain(session);
    }
    flush_later(session);
}

static void stop(void *state)
{
    struct http2_session *session = state;
    assert(session->read_until_ns == 0);
    session->read_until_ns = clock_now_ns() + HTTP_STOP_READ_NS;
    drain(session);
    flush_later(session);
}

static void closed(void *state)
{
    struct http2_session *session = state;
    lane_defer_cancel(session->lane, &session->flush_job);
    lane_defer_cancel(session->lane, &session->due_job);
    nghttp2_session_del(session->nghttp2);
    session->nghttp2 = NULL;
    while (session->open != NULL)
        stream_end(session->open);
}

static void destroy(void *state)
{
    struct http2_session *session = state;
    assert(session->nghttp2 == NULL);
    assert(session->requests == 0);
    return_waiting(session);
    if (session->budget != NULL)
        budget_return(session->budget, session->charged_bytes);
    mem_free(session);
}

const struct http_protocol http2_protocol = {
    .create = create,
    .expects = expects,
    .read_expected = read_expected,
    .receive = receive,
    .end_of_input = end_of_input,
    .written = written,
    .expire = expire,
    .stop = stop,
    .closed = closed,
    .destroy = destroy,
};
