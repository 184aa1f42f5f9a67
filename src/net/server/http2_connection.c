/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 on one connection (RFC 9113): feeds nghttp2, writes its output once per turn, keeps the
 * deadlines, drains and closes. Closing is in two phases (http_connection.h), so that nothing is
 * freed below a callback. On the server's lane. */
#include "src/net/server/http2_connection.h"

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/net/server/http2_session.h"
#include "src/net/server/http_server_state.h"

#include <assert.h>
#include <string.h>

enum {
    FRAME_HEAD_BYTES = 9,
    FRAME_BYTES_MAX = FRAME_HEAD_BYTES + 16384,
    SETTINGS_ID_BYTES = 2,
    /* nghttp2 ends the connection of a client that opens one stream too many; we reset the stream
     * (http2_stream_create), as RFC 9113 §5.1.2 allows and grpc-go does. So it is told a number
     * that it never reaches, and the wire has the true one. */
    STREAMS_UNLIMITED = INT32_MAX,
    JITTER_PERCENT = 10,
};

/* Says goodbye and reads no more. Not from inside a callback of nghttp2: it must not be fed again
 * once it was told to end (CVE-2026-27135). */
static void doom(struct http2_session *session, uint32_t code, const char *reason)
{
    assert(reason != NULL);
    assert(!session->is_doomed);
    session->is_doomed = true;
    nghttp2_submit_goaway(session->nghttp2, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session->nghttp2), code,
                          (const uint8_t *)reason, strlen(reason));
    http2_session_flush_later(session);
}

/* First of two GOAWAYs: streams that are on their way still count; the ping shows when the client
 * knows (RFC 9113 §6.8). */
static void drain(struct http2_session *session)
{
    assert(session->nghttp2 != NULL);
    if (session->is_draining || session->is_doomed)
        return;
    session->is_draining = true;
    session->drain_ns = clock_now_ns();
    nghttp2_submit_shutdown_notice(session->nghttp2);
    nghttp2_submit_ping(session->nghttp2, NGHTTP2_FLAG_NONE, NULL);
    http2_session_flush_later(session);
}

static void finish_drain(struct http2_session *session)
{
    assert(session->nghttp2 != NULL);
    assert(session->is_draining);
    if (session->is_final || session->is_doomed)
        return;
    session->is_final = true;
    nghttp2_submit_goaway(session->nghttp2, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session->nghttp2),
                          NGHTTP2_NO_ERROR, NULL, 0);
    http2_session_flush_later(session);
}

/* MAX_CONCURRENT_STREAMS comes first: advertise() looks for it there. */
static int submit_settings(struct http2_session *session)
{
    assert(session->nghttp2 != NULL);
    const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_UNLIMITED},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEADER_BLOCK_BYTES_MAX},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    int result = nghttp2_submit_settings(session->nghttp2, NGHTTP2_FLAG_NONE, entries,
                                         sizeof(entries) / sizeof(entries[0]));
    if (result != 0)
        return result;
    return nghttp2_session_set_local_window_size(session->nghttp2, NGHTTP2_FLAG_NONE, 0,
                                                 HTTP2_CONNECTION_WINDOW_BYTES);
}

/* Puts the true limit into the SETTINGS frame that begins our output. */
static void advertise(struct http2_session *session, uint8_t *output, size_t size)
{
    uint64_t limit = http_connection_settings(session->connection)->streams_max;
    uint8_t *value = output + FRAME_HEAD_BYTES + SETTINGS_ID_BYTES;
    if (limit == 0)
        limit = HTTP2_STREAMS_MAX;
    assert(size >= FRAME_HEAD_BYTES + SETTINGS_ID_BYTES + sizeof(uint32_t));
    assert(value[-1] == NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    for (unsigned i = 0; i < sizeof(uint32_t); i++)
        value[i] = (uint8_t)(limit >> (24 - 8 * i));
    session->has_advertised = true;
}

/* Whether what was allocated as the frame buffer is one shows at the first frame. */
static void forget_other_buffer(struct http2_session *session, const uint8_t *frame)
{
    struct http2_frame_buffer *buffer = &session->frame_buffer;
    if (buffer->data != NULL && (frame < buffer->data || frame >= buffer->data + buffer->size))
        buffer->data = NULL;
}

/* Copies as many frames as fit into the lane's buffer; returns their bytes. */
static size_t gather(struct http2_session *session, uint8_t *room)
{
    assert(room != NULL);
    size_t used = 0;
    while (used + FRAME_BYTES_MAX <= LANE_READ_BYTES) {
        const uint8_t *data = NULL;
        ssize_t size = nghttp2_session_mem_send(session->nghttp2, &data);
        if (size <= 0)
            break;
        assert((size_t)size <= FRAME_BYTES_MAX);
        session->is_rested = false;
        forget_other_buffer(session, data);
        memcpy(room + used, data, (size_t)size);
        used += (size_t)size;
    }
    return used;
}

/* Returns true when all that nghttp2 had to say is with the socket. */
static bool write_output(struct http2_session *session)
{
    assert(session->nghttp2 != NULL);
    /* Nothing is being read: this is the end of a turn. */
    uint8_t *room = session->connection->server->read_buffer;
    bool is_taken = !http_connection_is_blocked(session->connection);
    while (is_taken) {
        size_t used = gather(session, room);
        if (used == 0)
            break;
        if (!session->has_advertised)
            advertise(session, room, used);
        uv_buf_t part = uv_buf_init((char *)room, (unsigned)used);
        is_taken = http_connection_write(session->connection, &part, 1);
    }
    return is_taken;
}

/* The last bytes are written: half-closes, and gives the peer a moment to read them before the
 * socket goes (a socket closed with unread input resets, and GOAWAY would be lost). */
static void linger(struct http2_session *session)
{
    assert(!session->is_lingering);
    session->is_lingering = true;
    session->linger_ns = clock_now_ns();
    http_connection_shutdown(session->connection);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* When the slowest body has to be looked at. */
static uint64_t body_deadline(const struct http2_session *session, uint64_t now_ns)
{
    assert(session->connection != NULL);
    uint64_t read_deadline_ns = http_connection_settings(session->connection)->read_deadline_ns;
    uint64_t due_ns = UINT64_MAX;
    for (const struct http2_stream *stream = session->open; stream != NULL; stream = stream->next) {
        if (stream->discard_ns > 0)
            due_ns = earlier(due_ns, stream->discard_ns + HTTP2_DISCARD_NS);
        if (!stream->base.is_reading)
            continue;
        uint64_t first_ns = stream->reading_ns + BODY_GRACE_NS + NS_PER_S;
        due_ns = earlier(due_ns, first_ns > now_ns ? first_ns : now_ns + NS_PER_S);
        if (read_deadline_ns > 0)
            due_ns = earlier(due_ns, stream->reading_ns + read_deadline_ns);
        if (session->read_until_ns > 0)
            due_ns = earlier(due_ns, session->read_until_ns);
    }
    return due_ns;
}

static uint64_t idle_deadline(const struct http2_session *session)
{
    assert(session->idle_default_ns > 0);
    const struct http_server_settings *settings = http_connection_settings(session->connection);
    uint64_t idle_max_ns = settings->connection_idle_max_ns;
    if (session->open != NULL)
        return UINT64_MAX;
    return session->idle_ns + (idle_max_ns > 0 ? idle_max_ns : session->idle_default_ns);
}

/* When the frame buffer's pages are better with the system. */
static uint64_t rest_deadline(const struct http2_session *session)
{
    bool is_idle = session->open == NULL && session->replies == 0 && session->has_advertised;
    if (!is_idle || session->is_rested || session->frame_buffer.data == NULL)
        return UINT64_MAX;
    return session->idle_ns + HTTP2_REST_NS;
}

/* Between frames the buffer holds nothing. */
static void rest(struct http2_session *session)
{
    assert(session->open == NULL);
    if (nghttp2_session_want_write(session->nghttp2) == 0)
        mem_rest_pages(session->frame_buffer.data, session->frame_buffer.size);
    session->is_rested = true;
}

static uint64_t drain_deadline(const struct http2_session *session)
{
    assert(session->is_draining);
    uint64_t grace_ns = http_connection_settings(session->connection)->connection_age_grace_ns;
    if (!session->is_final)
        return session->drain_ns + HTTP2_DRAIN_PING_NS;
    return session->is_aged && grace_ns > 0 ? session->drain_ns + grace_ns : UINT64_MAX;
}

static uint64_t next_deadline(const struct http2_session *session, uint64_t now_ns)
{
    assert(session->nghttp2 != NULL);
    const struct http_server_settings *settings = http_connection_settings(session->connection);
    if (session->is_lingering)
        return session->linger_ns + HTTP2_LINGER_NS;
    uint64_t due_ns = body_deadline(session, now_ns);
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

static void update_deadline(struct http2_session *session)
{
    assert(session->now_ns > 0);
    uint64_t due_ns = next_deadline(session, session->now_ns);
    if (due_ns != UINT64_MAX)
        due_ns = due_ns > session->now_ns ? due_ns - session->now_ns : 0;
    http_connection_set_deadline(session->connection, due_ns);
}

/* The end of a turn in which something happened. */
static void flush(void *arg)
{
    struct http2_session *session = arg;
    assert(lane_is_current(session->lane));
    if (http_connection_is_closing(session->connection))
        return;
    session->now_ns = clock_now_ns();
    bool is_written = !session->is_lingering && write_output(session);
    if (session->abuse != HTTP2_NO_ABUSE && !session->is_doomed) {
        doom(session, NGHTTP2_ENHANCE_YOUR_CALM, http2_abuse_text(session->abuse));
    } else if (is_written) {
        if (session->is_doomed || !nghttp2_session_want_read(session->nghttp2))
            linger(session);
        /* All is written that the windows allow: what is left waits for the peer. */
        if (session->replies == 0)
            session->stall_ns = 0;
        else if (session->stall_ns == 0)
            session->stall_ns = session->now_ns;
    }
    if (!http_connection_is_closing(session->connection))
        update_deadline(session);
}

static void expire_bodies(struct http2_session *session, uint64_t now_ns)
{
    assert(session->nghttp2 != NULL);
    struct http2_stream *next = NULL;
    for (struct http2_stream *stream = session->open; stream != NULL; stream = next) {
        /* The answer is written, and the stream ended, later in this turn. */
        next = stream->next;
        http2_stream_expire(stream, now_ns);
    }
}

static bool is_stuck(const struct http2_session *session, uint64_t now_ns)
{
    assert(now_ns >= session->begun_ns);
    uint64_t header_deadline_ns = http_connection_settings(session->connection)->header_deadline_ns;
    if (!session->is_greeted && now_ns >= session->begun_ns + header_deadline_ns)
        return true;
    if (session->headers_ns > 0 && now_ns >= session->headers_ns + header_deadline_ns)
        return true;
    return session->stall_ns > 0 && now_ns >= session->stall_ns + HTTP2_WINDOW_STALL_NS;
}

/* Up to JITTER_PERCENT of it, so that connections that began together do not end together. */
static uint64_t jitter(uint64_t delay_ns)
{
    return (uint64_t)(random_uniform() * (double)(delay_ns / 100 * JITTER_PERCENT));
}

static void uncharge(struct budget *budget)
{
    if (budget != NULL)
        budget_return(budget, HTTP2_SESSION_BYTES);
}

static void *create(struct http_connection *connection)
{
    assert(connection != NULL);
    const struct http_server_settings *settings = http_connection_settings(connection);
    uint64_t now_ns = clock_now_ns();
    if (!http2_charge(connection, settings->budget, HTTP2_SESSION_BYTES))
        return NULL;
    struct http2_session *session = mem_zalloc(sizeof(*session));
    session->connection = connection;
    session->lane = settings->lane;
    session->budget = settings->budget;
    session->flush_job.fn = flush;
    session->flush_job.arg = session;
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
    if (http2_callbacks_attach(session) != 0 || submit_settings(session) != 0) {
        nghttp2_session_del(session->nghttp2);
        uncharge(session->budget);
        mem_free(session);
        return NULL;
    }
    http2_session_flush_later(session);
    return session;
}

/* nghttp2 has given up, or a callback of ours made it. */
static void fail(struct http2_session *session, ssize_t error)
{
    assert(error < 0);
    if (error == NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
        http_connection_abort(session->connection);
        return;
    }
    if (error == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS)
        session->abuse = HTTP2_TOO_MANY_CONTINUATIONS;
    if (session->abuse != HTTP2_NO_ABUSE)
        doom(session, NGHTTP2_ENHANCE_YOUR_CALM, http2_abuse_text(session->abuse));
    else
        doom(session,
             error == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_INTERNAL_ERROR, "");
}

/* Gives nghttp2 bytes in which http2_frames found no fault. */
static bool feed_sound(struct http2_session *session, const uint8_t *data, size_t size)
{
    ssize_t taken = nghttp2_session_mem_recv(session->nghttp2, data, size);
    if (http_connection_is_closing(session->connection))
        return false;
    if (taken < 0)
        fail(session, taken);
    return taken >= 0;
}

bool http2_session_feed(struct http2_session *session, const uint8_t *data, size_t size)
{
    assert(session->nghttp2 != NULL);
    session->data_run.is_last = false;
    session->data_run.input_end = data + size;
    while (size > 0) {
        struct http2_fault fault;
        size_t sound = http2_frames_read(&session->frames, data, size, &fault);
        if (!feed_sound(session, data, sound))
            return false;
        if (fault.code != NGHTTP2_NO_ERROR && fault.stream_id == 0) {
            doom(session, fault.code, fault.reason);
            return false;
        }
        if (fault.code != NGHTTP2_NO_ERROR)
            nghttp2_submit_rst_stream(session->nghttp2, NGHTTP2_FLAG_NONE, (int32_t)fault.stream_id,
                                      fault.code);
        data += sound;
        size -= sound;
    }
    return true;
}

/* The end of each reception. */
static void follow_up(struct http2_session *session)
{
    assert(session->nghttp2 != NULL);
    if (http_connection_is_closing(session->connection))
        return;
    if (session->wants_drain)
        drain(session);
    if (session->wants_final)
        finish_drain(session);
    http2_session_flush_later(session);
}

static void receive(void *state, const uint8_t *data, size_t size)
{
    struct http2_session *session = state;
    assert(session->nghttp2 != NULL);
    if (session->is_doomed || session->is_lingering || session->abuse != HTTP2_NO_ABUSE)
        return;
    session->now_ns = clock_now_ns();
    (void)http2_session_feed(session, data, size);
    follow_up(session);
}

static ssize_t read_expected(void *state, int fd)
{
    struct http2_session *session = state;
    assert(session->nghttp2 != NULL);
    session->now_ns = clock_now_ns();
    ssize_t size = http2_input_read(session, fd);
    follow_up(session);
    return size;
}

static void close_for_good(struct http2_session *session)
{
    assert(session->connection != NULL);
    if (session->is_doomed)
        http_connection_abort(session->connection);
    else
        http_connection_close(session->connection);
}

static void end_of_input(void *state)
{
    struct http2_session *session = state;
    assert(session->nghttp2 != NULL);
    /* Who has gone takes no answers; requests that came whole are processed all the same. */
    close_for_good(session);
}

static void written(void *state)
{
    assert(state != NULL);
    http2_session_flush_later(state);
}

static void expire(void *state)
{
    struct http2_session *session = state;
    assert(session->nghttp2 != NULL);
    uint64_t now_ns = clock_now_ns();
    if (session->is_lingering) {
        close_for_good(session);
        return;
    }
    if (is_stuck(session, now_ns) || (session->is_final && now_ns >= drain_deadline(session))) {
        http_connection_abort(session->connection);
        return;
    }
    expire_bodies(session, now_ns);
    if (now_ns >= rest_deadline(session))
        rest(session);
    if (session->is_draining) {
        if (now_ns >= drain_deadline(session))
            finish_drain(session);
    } else if (now_ns >= session->age_ns || now_ns >= idle_deadline(session)) {
        session->is_aged = now_ns >= session->age_ns;
        drain(session);
    }
    http2_session_flush_later(session);
}

static void stop(void *state)
{
    struct http2_session *session = state;
    assert(session->read_until_ns == 0);
    session->read_until_ns = clock_now_ns() + HTTP_STOP_READ_NS;
    drain(session);
    http2_session_flush_later(session);
}

static void closed(void *state)
{
    struct http2_session *session = state;
    assert(session->nghttp2 != NULL);
    lane_defer_cancel(session->lane, &session->flush_job);
    nghttp2_session_del(session->nghttp2);
    session->nghttp2 = NULL;
    while (session->open != NULL)
        http2_stream_end(session->open);
}

static void destroy(void *state)
{
    struct http2_session *session = state;
    assert(session->nghttp2 == NULL);
    assert(session->requests == 0);
    uncharge(session->budget);
    mem_free(session);
}

void http2_session_flush_later(struct http2_session *session)
{
    assert(session != NULL);
    if (session->nghttp2 != NULL && !http_connection_is_closing(session->connection))
        lane_defer(session->lane, &session->flush_job);
}

const struct http_protocol http2_protocol = {
    .create = create,
    .expects = http2_input_is_expected,
    .read_expected = read_expected,
    .receive = receive,
    .end_of_input = end_of_input,
    .written = written,
    .expire = expire,
    .stop = stop,
    .closed = closed,
    .destroy = destroy,
};
