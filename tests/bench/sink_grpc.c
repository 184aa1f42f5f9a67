/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC into the sink: nghttp2 finds the frames, each message is gathered and handed over. */
#include "tests/bench/sink_grpc.h"

#include "tests/bench/h2_frame.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>
#include <sys/socket.h>

enum {
    GRPC_PREFIX_BYTES = 5,
    STREAM_WINDOW = 8 << 20,
    CONNECTION_WINDOW = 24 << 20,
    READ_BYTES = 256 * 1024,
};
static uint8_t read_bytes[READ_BYTES];

struct sink_grpc {
    int fd;
    nghttp2_session *session;
    struct byte_buffer output;
    sink_grpc_fn take;
    void *arg;
};

#define FIELD(name, value)                                                                         \
    {                                                                                              \
        (uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), sizeof(name) - 1,             \
            sizeof(value) - 1, NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE        \
    }

static const nghttp2_nv reply_head[] = {FIELD(":status", "200"),
                                        FIELD("content-type", "application/grpc")};
static const nghttp2_nv ok_trailer[] = {FIELD("grpc-status", "0")};

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    (void)arg;
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
                                                allocate(sizeof(struct byte_buffer)));
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t size, void *arg)
{
    struct byte_buffer *bytes = nghttp2_session_get_stream_user_data(session, stream);

    (void)flags;
    (void)arg;
    assert(bytes != NULL);
    if (bytes->size == 0 && size >= GRPC_PREFIX_BYTES)
        byte_buffer_reserve(bytes, GRPC_PREFIX_BYTES + (size_t)h2_get_u32(data + 1));
    byte_buffer_append(bytes, data, size);
    return 0;
}

/* The empty response message, then the trailer. */
static ssize_t on_reply_body(nghttp2_session *session, int32_t stream, uint8_t *data, size_t size,
                             uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    (void)source;
    (void)arg;
    assert(size >= GRPC_PREFIX_BYTES);
    memset(data, 0, GRPC_PREFIX_BYTES);
    *flags = NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    nghttp2_submit_trailer(session, stream, ok_trailer, 1);
    return GRPC_PREFIX_BYTES;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct sink_grpc *grpc = arg;
    nghttp2_data_provider reply = {.read_callback = on_reply_body};
    struct byte_buffer *bytes = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0 || bytes == NULL)
        return 0;
    if (bytes->size < GRPC_PREFIX_BYTES)
        die("a gRPC request without a message");
    grpc->take(grpc->arg,
               (struct bytes){bytes->data + GRPC_PREFIX_BYTES, bytes->size - GRPC_PREFIX_BYTES},
               bytes->data[0] == 1, bytes->size);
    return nghttp2_submit_response(session, frame->hd.stream_id, reply_head, 2, &reply);
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *arg)
{
    struct byte_buffer *bytes = nghttp2_session_get_stream_user_data(session, stream);

    (void)code;
    (void)arg;
    if (bytes != NULL)
        byte_buffer_free(bytes);
    free(bytes);
    return 0;
}

/* Responses are few bytes: a socket that cannot take them belongs to a peer that has gone. */
static bool flush(struct sink_grpc *grpc)
{
    const uint8_t *data;
    ssize_t size;

    grpc->output.size = 0;
    while ((size = nghttp2_session_mem_send(grpc->session, &data)) > 0)
        byte_buffer_append(&grpc->output, data, (size_t)size);
    if (grpc->output.size == 0)
        return true;
    return send(grpc->fd, grpc->output.data, grpc->output.size, MSG_NOSIGNAL) ==
           (ssize_t)grpc->output.size;
}

static nghttp2_session *open_session(struct sink_grpc *grpc)
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
    if (nghttp2_session_server_new(&session, callbacks, grpc) != 0)
        die("nghttp2 cannot start");
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 2);
    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
    return session;
}

bool sink_grpc_is_next(int fd)
{
    char text[4];

    return recv(fd, text, sizeof text, MSG_PEEK) == sizeof text && memcmp(text, "PRI ", 4) == 0;
}

struct sink_grpc *sink_grpc_open(int fd, sink_grpc_fn take, void *arg)
{
    struct sink_grpc *grpc = allocate(sizeof *grpc);

    assert(take != NULL);
    *grpc = (struct sink_grpc){.fd = fd, .take = take, .arg = arg};
    grpc->session = open_session(grpc);
    return grpc;
}

bool sink_grpc_receive(struct sink_grpc *grpc)
{
    ssize_t size = recv(grpc->fd, read_bytes, READ_BYTES, 0);

    if (size < 0 && errno == EAGAIN)
        return true;
    if (size <= 0 || nghttp2_session_mem_recv(grpc->session, read_bytes, (size_t)size) != size)
        return false;
    return flush(grpc);
}

void sink_grpc_close(struct sink_grpc *grpc)
{
    if (grpc == NULL)
        return;
    /* Messages that had only half come are the rig's to lose. */
    nghttp2_session_del(grpc->session);
    byte_buffer_free(&grpc->output);
    free(grpc);
}
