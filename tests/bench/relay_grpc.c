/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC into the relay: nghttp2 finds the frames, each message is copied once into its job. */
#include "tests/bench/h2_frame.h"
#include "tests/bench/relay.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { GRPC_PREFIX_BYTES = 5, STREAM_WINDOW = 8 << 20, CONNECTION_WINDOW = 24 << 20 };

struct grpc_front {
    struct source source;
    struct relay *relay;
    nghttp2_session *session;
    struct turn_end turn_end; /* all responses of a turn leave together */
    struct byte_buffer output;
    unsigned jobs;
    bool is_gone;
};

#define FIELD(name, value)                                                                         \
    {                                                                                              \
        (uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), sizeof(name) - 1,             \
            sizeof(value) - 1, NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE        \
    }

static const nghttp2_nv reply_head[] = {FIELD(":status", "200"),
                                        FIELD("content-type", "application/grpc")};
static const nghttp2_nv ok_trailer[] = {FIELD("grpc-status", "0")};
static const nghttp2_nv busy_trailer[] = {FIELD("grpc-status", "14")};

static void close_front(struct grpc_front *front)
{
    assert(front->jobs == 0);
    nghttp2_session_del(front->session);
    byte_buffer_free(&front->output);
    free(front);
}

static void lose_front(struct grpc_front *front)
{
    epoll_ctl(relay_epoll(front->relay), EPOLL_CTL_DEL, front->source.fd, NULL);
    close(front->source.fd);
    front->is_gone = true;
    relay_at_turn_end(front->relay, &front->turn_end);
}

static struct grpc_front *front_of(struct turn_end *end)
{
    return (struct grpc_front *)((char *)end - offsetof(struct grpc_front, turn_end));
}

/* Responses are few bytes; what the socket does not take at once stays for the next turn. */
static void on_turn_end(struct turn_end *end)
{
    struct grpc_front *front = front_of(end);
    const uint8_t *data;
    ssize_t size;

    assert(!end->is_due);
    if (front->is_gone) {
        if (front->jobs == 0)
            close_front(front);
        return;
    }
    while ((size = nghttp2_session_mem_send(front->session, &data)) > 0)
        byte_buffer_append(&front->output, data, (size_t)size);
    if (front->output.size == 0)
        return;
    ssize_t sent = send(front->source.fd, front->output.data, front->output.size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
        lose_front(front);
        return;
    }
    front->output.size -= sent > 0 ? (size_t)sent : 0;
    memmove(front->output.data, front->output.data + (sent > 0 ? sent : 0), front->output.size);
    if (front->output.size > 0)
        relay_at_turn_end(front->relay, end);
}

/* The empty response message, then the trailer. */
static ssize_t on_reply_body(nghttp2_session *session, int32_t stream, uint8_t *data, size_t size,
                             uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    (void)arg;
    assert(size >= GRPC_PREFIX_BYTES);
    memset(data, 0, GRPC_PREFIX_BYTES);
    *flags = NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    nghttp2_submit_trailer(session, stream, source->ptr, 1);
    return GRPC_PREFIX_BYTES;
}

static void on_response(struct job *job, bool is_ok)
{
    struct grpc_front *front = job->front;
    nghttp2_data_provider body = {.read_callback = on_reply_body};

    body.source.ptr = (void *)(uintptr_t)(is_ok ? ok_trailer : busy_trailer);
    if (!front->is_gone)
        nghttp2_submit_response(front->session, job->stream, reply_head, 2, &body);
    assert(front->jobs > 0);
    front->jobs--;
    relay_job_free(front->relay, job);
    relay_at_turn_end(front->relay, &front->turn_end);
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct grpc_front *front = arg;
    struct job *job = relay_job(front->relay);

    job->front = front;
    job->stream = frame->hd.stream_id;
    job->on_response = on_response;
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, job);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t size, void *arg)
{
    struct job *job = nghttp2_session_get_stream_user_data(session, stream);
    struct byte_buffer *bytes = &job->bytes;

    (void)flags;
    (void)arg;
    assert(job != NULL);
    if (bytes->size == 0 && size >= GRPC_PREFIX_BYTES)
        byte_buffer_reserve(bytes, GRPC_PREFIX_BYTES + (size_t)h2_get_u32(data + 1));
    byte_buffer_append(bytes, data, size);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct grpc_front *front = arg;
    struct job *job = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0 || job == NULL)
        return 0;
    if (job->bytes.size < GRPC_PREFIX_BYTES)
        die("a gRPC request without a message");
    job->body =
        (struct bytes){job->bytes.data + GRPC_PREFIX_BYTES, job->bytes.size - GRPC_PREFIX_BYTES};
    front->jobs++;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, NULL);
    relay_submit(front->relay, job);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *arg)
{
    struct grpc_front *front = arg;
    struct job *job = nghttp2_session_get_stream_user_data(session, stream);

    (void)code;
    if (job != NULL)
        relay_job_free(front->relay, job);
    return 0;
}

static void on_ready(struct source *source, uint32_t events)
{
    struct grpc_front *front = (struct grpc_front *)source;

    assert(events != 0);
    ssize_t size = recv(source->fd, relay_read_bytes, RELAY_READ_BYTES, 0);
    if (size < 0 && errno == EAGAIN)
        return;
    if (size <= 0 ||
        nghttp2_session_mem_recv(front->session, relay_read_bytes, (size_t)size) != size) {
        lose_front(front);
        return;
    }
    relay_at_turn_end(front->relay, &front->turn_end);
}

static nghttp2_session *open_session(struct grpc_front *front)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100},
    };
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *session;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        die("nghttp2 cannot start");
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    if (nghttp2_session_server_new(&session, callbacks, front) != 0)
        die("nghttp2 cannot start");
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 2);
    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
    return session;
}

void relay_front_grpc(struct relay *relay, int fd)
{
    struct grpc_front *front = allocate(sizeof *front);

    front->source = (struct source){.on_ready = on_ready, .fd = fd};
    front->relay = relay;
    front->turn_end.fn = on_turn_end;
    front->session = open_session(front);
    watch(relay_epoll(relay), fd, EPOLLIN, front);
    relay_at_turn_end(relay, &front->turn_end);
}
