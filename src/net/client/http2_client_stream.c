/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of an HTTP/2 client, as nghttp2's callbacks see them. Nothing is freed below a
 * callback but a stream that nghttp2 forgets. On the owner's lane. */
#include "src/net/client/http2_client_state.h"

#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/syntax/http2_memory.h"

#include <assert.h>
#include <string.h>

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

void http2_client_stream_finish(struct http2_client_stream *stream, enum http2_stream_end end,
                                uint32_t code, const char *reason)
{
    const struct http2_stream_events *events = stream->events;
    assert(reason != NULL);
    stream->events = NULL;
    if (events != NULL)
        events->on_end(stream->arg, end, code, reason);
}

void http2_client_stream_free(struct http2_client_stream *stream)
{
    struct http2_client *client = stream->client;
    assert(stream->events == NULL);
    assert(client->streams_count > 0);
    *(stream->prev == NULL ? &client->streams : &stream->prev->next) = stream->next;
    if (stream->next != NULL)
        stream->next->prev = stream->prev;
    client->streams_count--;
    release_parts(stream);
    mem_free(stream);
}

void http2_client_cancel(struct http2_client_stream *stream)
{
    struct http2_client *client = stream->client;
    assert(stream->events != NULL);
    stream->events = NULL;
    /* A peer that reads nothing keeps the stream, but not its bytes, alive. */
    if (client->stalled != stream) {
        stream->left = 0;
        release_parts(stream);
    }
    if (client->state >= HTTP2_CLIENT_ENDED)
        return;
    nghttp2_submit_rst_stream(client->nghttp2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
    http2_client_flush_later(client);
}

static int on_header(nghttp2_session *nghttp2, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *arg)
{
    struct http2_client_stream *stream = find_stream(nghttp2, frame->hd.stream_id);
    assert(name != NULL && value != NULL);
    (void)flags;
    (void)arg;
    if (stream != NULL && stream->events != NULL)
        stream->events->on_header(stream->arg, slice_of(name, name_size),
                                  slice_of(value, value_size));
    return 0;
}

/* The peer has said all. What it has not read of the request it does not want. */
static void complete(struct http2_client_stream *stream)
{
    struct http2_client *client = stream->client;
    assert(stream->events != NULL);
    if (stream->left > 0)
        nghttp2_submit_rst_stream(client->nghttp2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
    http2_client_stream_finish(stream, HTTP2_STREAM_COMPLETE, NGHTTP2_NO_ERROR, "");
}

static bool says_too_many_pings(const nghttp2_goaway *goaway)
{
    return goaway->error_code == NGHTTP2_ENHANCE_YOUR_CALM &&
           slice_equal_text(slice_of(goaway->opaque_data, goaway->opaque_data_len),
                            "too_many_pings");
}

static void take_connection_frame(struct http2_client *client, const nghttp2_frame *frame)
{
    assert(frame->hd.stream_id == 0);
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        client->has_goaway = true;
        client->has_too_many_pings |= says_too_many_pings(&frame->goaway);
    }
    if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) {
        bool is_first = client->state == HTTP2_CLIENT_GREETING;
        if (is_first)
            client->state = HTTP2_CLIENT_READY;
        client->has_news = true;
    }
}

static int on_frame(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *arg)
{
    struct http2_client *client = arg;
    assert(client->nghttp2 == nghttp2);
    struct http2_client_stream *stream = find_stream(nghttp2, frame->hd.stream_id);
    if (frame->hd.stream_id == 0)
        take_connection_frame(client, frame);
    if (stream == NULL || stream->events == NULL)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS)
        stream->events->on_headers_end(stream->arg);
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 && stream->events != NULL)
        complete(stream);
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
    http2_client_stream_finish(
        stream, is_unprocessed ? HTTP2_STREAM_UNPROCESSED : HTTP2_STREAM_RESET, code, "");
    nghttp2_session_set_stream_user_data(nghttp2, id, NULL);
    http2_client_stream_free(stream);
    client->has_news = true;
    http2_client_flush_later(client);
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

static int on_body_frame(nghttp2_session *nghttp2, nghttp2_frame *frame, const uint8_t *head,
                         size_t size, nghttp2_data_source *source, void *arg)
{
    assert(frame->data.padlen == 0);
    (void)nghttp2;
    (void)frame;
    (void)arg;
    return http2_client_output_data(source->ptr, head, size);
}

static void fill_callbacks(nghttp2_session_callbacks *callbacks)
{
    assert(callbacks != NULL);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_body_frame);
}

static void fill_option(nghttp2_option *option)
{
    assert(option != NULL);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_settings(option, HTTP2_SETTINGS_ENTRIES_MAX);
    nghttp2_option_set_max_continuations(option, HTTP2_CONTINUATIONS_MAX);
}

int http2_client_session_create(struct http2_client *client)
{
    assert(client->nghttp2 == NULL);
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    int result = nghttp2_session_callbacks_new(&callbacks);
    if (result == 0)
        result = nghttp2_option_new(&option);
    if (result == 0) {
        fill_callbacks(callbacks);
        fill_option(option);
        result =
            nghttp2_session_client_new3(&client->nghttp2, callbacks, client, option, &http2_memory);
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return result;
}

/* The prefix becomes the first part. */
static void copy_body(struct http2_client_stream *stream, const struct http2_request *request)
{
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
    copy_body(stream, request);
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
    http2_client_flush_later(client);
    return stream;
}
