/* SPDX-License-Identifier: Apache-2.0 */
/* What nghttp2 tells us, frame by frame, turned into streams and flags of the session. Nothing here
 * ends the connection: that is done after nghttp2 has returned. On the connection's lane. */
#include "src/net/server/http2_session.h"

#include "src/base/limits.h"
#include "src/net/server/http_connection.h"
#include "src/net/server/http_server_state.h"
#include "src/net/syntax/http2_memory.h"

#include <assert.h>

/* Most calls are for the stream of the call before. */
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

/* The failure of this callback makes nghttp2 stop at once. */
static int on_begin_frame(nghttp2_session *nghttp2, const nghttp2_frame_hd *head, void *arg)
{
    struct http2_session *session = arg;
    (void)nghttp2;
    assert(session->abuse == HTTP2_NO_ABUSE);
    assert(!session->is_doomed);
    session->headers_ns = 0;
    if (head->type == NGHTTP2_DATA)
        http2_input_begin(&session->data_run, head);
    session->abuse = http2_guard_frame(&session->guard, head, session->now_ns);
    return session->abuse == HTTP2_NO_ABUSE ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin_headers(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *arg)
{
    struct http2_session *session = arg;
    assert(session->nghttp2 == nghttp2);
    session->headers_ns = session->now_ns;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    int32_t id = frame->hd.stream_id;
    struct http2_stream *stream = http2_stream_create(session, id);
    if (stream == NULL)
        nghttp2_submit_rst_stream(nghttp2, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
    else
        nghttp2_session_set_stream_user_data(nghttp2, id, stream);
    if (id / 2 + 1 >= HTTP2_STREAMS_PER_CONNECTION_MAX)
        session->wants_drain = true;
    return 0;
}

static int on_header(nghttp2_session *nghttp2, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *arg)
{
    assert(name != NULL && value != NULL);
    struct http2_session *session = arg;
    struct http2_stream *stream = find_stream(session, frame->hd.stream_id);
    (void)flags;
    /* Trailers of a request mean nothing to us. */
    if (stream == NULL || stream->is_refused || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    uint32_t code =
        http2_stream_add_header(stream, slice_of(name, name_size), slice_of(value, value_size));
    if (code == NGHTTP2_NO_ERROR)
        return 0;
    stream->is_refused = true;
    nghttp2_submit_rst_stream(nghttp2, NGHTTP2_FLAG_NONE, frame->hd.stream_id, code);
    return 0;
}

static void take_headers(struct http2_session *session, struct http2_stream *stream,
                         const nghttp2_frame *frame)
{
    assert(frame->hd.type == NGHTTP2_HEADERS);
    bool is_last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    session->headers_ns = 0;
    if (stream == NULL || stream->is_refused)
        return;
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        http2_stream_begin(stream, !is_last);
    else if (is_last)
        http2_stream_end_input(stream);
}

static int on_frame(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *arg)
{
    struct http2_session *session = arg;
    assert(session->nghttp2 == nghttp2);
    struct http2_stream *stream = find_stream(session, frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_HEADERS)
        take_headers(session, stream, frame);
    else if (frame->hd.type == NGHTTP2_SETTINGS)
        session->is_greeted = true;
    else if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0 &&
             session->is_draining)
        session->wants_final = true;
    else if (frame->hd.type == NGHTTP2_DATA && stream != NULL &&
             (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
        http2_stream_end_input(stream);
    return 0;
}

/* Frames of unknown types are ignored, but through here, so that they are counted like the rest. */
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

static int on_data(nghttp2_session *nghttp2, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t size, void *arg)
{
    assert(data != NULL || size == 0);
    struct http2_session *session = arg;
    struct http2_stream *stream = find_stream(session, id);
    (void)nghttp2;
    (void)flags;
    http2_input_take(&session->data_run, data, size);
    /* What nobody reads is credited like the rest, so that neighbours keep their window. */
    if (stream != NULL && !stream->is_refused)
        http2_stream_receive(stream, data, size);
    return 0;
}

static int on_frame_sent(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *arg)
{
    struct http2_session *session = arg;
    assert(session->nghttp2 == nghttp2);
    struct http2_stream *stream = find_stream(session, frame->hd.stream_id);
    /* A failure here would make nghttp2 send the frame again: the flag is enough. */
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
    if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 && stream != NULL)
        http2_stream_answer_sent(stream);
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
    http2_stream_end(stream);
    if (session->open == NULL)
        session->idle_ns = session->now_ns;
    return 0;
}

static void fill_callbacks(nghttp2_session_callbacks *callbacks)
{
    assert(callbacks != NULL);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    nghttp2_session_callbacks_set_on_extension_chunk_recv_callback(callbacks, on_extension_data);
    nghttp2_session_callbacks_set_unpack_extension_callback(callbacks, on_extension);
}

static void fill_option(nghttp2_option *option)
{
    assert(option != NULL);
    /* Streams that closed are not kept for a priority tree that nobody uses. */
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_settings(option, HTTP2_SETTINGS_ENTRIES_MAX);
    nghttp2_option_set_max_continuations(option, HTTP2_CONTINUATIONS_MAX);
    for (unsigned type = NGHTTP2_CONTINUATION + 1; type <= UINT8_MAX; type++)
        nghttp2_option_set_user_recv_extension_type(option, (uint8_t)type);
}

int http2_callbacks_attach(struct http2_session *session)
{
    assert(session->nghttp2 == NULL);
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    int result = nghttp2_session_callbacks_new(&callbacks);
    if (result == 0)
        result = nghttp2_option_new(&option);
    if (result == 0) {
        fill_callbacks(callbacks);
        fill_option(option);
        nghttp2_mem memory = http2_memory_with(&session->frame_buffer);
        result =
            nghttp2_session_server_new3(&session->nghttp2, callbacks, session, option, &memory);
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return result;
}
