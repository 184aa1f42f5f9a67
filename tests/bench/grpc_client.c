/* SPDX-License-Identifier: Apache-2.0 */
/* A gRPC connection of the load generator. Frames are written by hand and bodies leave from where
 * they lie, so that the generator costs far less than what it measures; the replies' heads are
 * read by nghttp2's HPACK decoder. */
#include "tests/bench/client.h"
#include "tests/bench/h2_frame.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCRATCH_BYTES = 256 * 1024,
    SCRATCH_PER_FRAME = 4096, /* a request's head, a frame's head, a copied body */
    COPIED_BYTES_MAX = 2048,
    SEGMENTS_MAX = 512,
    RECEIVED_BYTES = 64 * 1024,
    REPLY_WINDOW_STEP = 16384,
    GRPC_PREFIX_BYTES = 5,
};

/* Settings, RFC 9113 §6.5.2, and codes of gRPC and HTTP/2 that mean "again". */
enum { HEADER_TABLE_SIZE = 1, MAX_STREAMS = 3, INITIAL_WINDOW = 4, MAX_FRAME = 5 };
enum { GRPC_OK = 0, GRPC_RESOURCE_EXHAUSTED = 8, GRPC_UNAVAILABLE = 14, GRPC_MISSING = 99 };
enum { H2_REFUSED_STREAM = 7, H2_CANCEL = 8 };

struct stream {
    struct exchange *exchange; /* NULL: the slot is free */
    uint32_t id;               /* 0: not begun */
    size_t sent;               /* of prefix and body */
    int64_t window;
    unsigned grpc_status;
};

struct grpc_client {
    struct client base;
    bool is_ready; /* the peer's SETTINGS have come */
    bool has_sent_head;
    uint32_t next_id;
    int64_t window;
    int64_t stream_window;
    size_t frame_bytes_max;
    size_t table_bytes;
    unsigned streams_max;
    unsigned streams_begun;
    uint32_t reply_bytes;       /* received, and not yet returned to the peer's window */
    struct byte_buffer control; /* frames that wait for their turn */
    nghttp2_hd_inflater *inflater;
    size_t scratch_size;
    size_t received_size;
    unsigned segments_count;
    unsigned segment_at;
    struct iovec segments[SEGMENTS_MAX];
    uint8_t scratch[SCRATCH_BYTES];
    uint8_t received[RECEIVED_BYTES];
    struct stream streams[];
};

static struct grpc_client *grpc_client_of(struct client *base)
{
    assert(base->type == &grpc_client_type);
    return (struct grpc_client *)base;
}

static void put_control(struct grpc_client *client, struct h2_frame frame, const uint8_t *payload)
{
    uint8_t head[H2_FRAME_HEAD_BYTES];

    h2_frame_write(head, &frame);
    byte_buffer_append(&client->control, head, sizeof head);
    byte_buffer_append(&client->control, payload, frame.size);
    client->base.has_output = true;
}

static void put_window_update(struct grpc_client *client, uint32_t increment)
{
    uint8_t payload[4];

    assert(increment > 0);
    h2_put_u32(payload, increment);
    put_control(client, (struct h2_frame){.size = sizeof payload, .type = H2_WINDOW_UPDATE},
                payload);
}

static struct client *grpc_client_create(const struct client_options *options)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    size_t size = sizeof(struct grpc_client) + options->slots * sizeof(struct stream);
    struct grpc_client *client = allocate(size);

    assert(options->slots > 0);
    client->base = (struct client){
        .type = &grpc_client_type,
        .options = *options,
        .channel = channel_open(options->port, options->is_tls ? "h2" : NULL),
        .is_writable = true,
    };
    client->next_id = 1;
    client->window = H2_DEFAULT_WINDOW;
    client->stream_window = H2_DEFAULT_WINDOW;
    client->frame_bytes_max = H2_DEFAULT_FRAME_BYTES;
    client->table_bytes = H2_HPACK_TABLE_BYTES;
    client->streams_max = UINT32_MAX;
    if (nghttp2_hd_inflate_new(&client->inflater) != 0)
        die("nghttp2 cannot start");
    byte_buffer_append(&client->control, preface, sizeof preface - 1);
    put_control(client, (struct h2_frame){.type = H2_SETTINGS}, (const uint8_t *)"");
    put_window_update(client, 1 << 24);
    return &client->base;
}

static void grpc_client_send(struct client *base, struct exchange *exchange)
{
    struct grpc_client *client = grpc_client_of(base);
    struct stream *stream = client->streams;

    assert(base->in_flight < base->options.slots);
    while (stream->exchange != NULL)
        stream++;
    *stream = (struct stream){.exchange = exchange, .grpc_status = GRPC_MISSING};
    base->in_flight++;
    base->has_output = true;
}

static void add_segment(struct grpc_client *client, void *data, size_t size)
{
    assert(client->segments_count < SEGMENTS_MAX);
    client->segments[client->segments_count++] = (struct iovec){data, size};
}

/* Bytes of scratch that follow each other leave as one segment. */
static void add_copy(struct grpc_client *client, const void *data, size_t size)
{
    uint8_t *copy = client->scratch + client->scratch_size;

    assert(client->scratch_size + size <= SCRATCH_BYTES);
    memcpy(copy, data, size);
    client->scratch_size += size;
    if (client->segments_count > 0) {
        struct iovec *last = &client->segments[client->segments_count - 1];
        if ((uint8_t *)last->iov_base + last->iov_len == copy) {
            last->iov_len += size;
            return;
        }
    }
    add_segment(client, copy, size);
}

static void add_frame_head(struct grpc_client *client, struct h2_frame frame)
{
    uint8_t head[H2_FRAME_HEAD_BYTES];

    h2_frame_write(head, &frame);
    add_copy(client, head, sizeof head);
}

static void begin_stream(struct grpc_client *client, struct stream *stream)
{
    uint8_t block[H2_REQUEST_HEAD_BYTES_MAX];
    size_t size = h2_request_head(block, client->base.options.coding, !client->has_sent_head,
                                  client->table_bytes);

    assert(stream->id == 0);
    stream->id = client->next_id;
    stream->window = client->stream_window;
    client->next_id += 2;
    client->streams_begun++;
    client->has_sent_head = true;
    add_frame_head(client, (struct h2_frame){
                               .size = (uint32_t)size,
                               .type = H2_HEADERS,
                               .flags = H2_END_HEADERS,
                               .stream = stream->id,
                           });
    add_copy(client, block, size);
}

static size_t left_of(const struct stream *stream)
{
    assert(stream->exchange != NULL);
    return GRPC_PREFIX_BYTES + stream->exchange->body.size - stream->sent;
}

static size_t smaller(size_t a, int64_t b)
{
    return b <= 0 ? 0 : (size_t)b < a ? (size_t)b : a;
}

/* One DATA frame of the message: the gRPC prefix first, then the body. */
static void add_data(struct grpc_client *client, struct stream *stream, size_t size)
{
    struct bytes body = stream->exchange->body;
    uint8_t prefix[GRPC_PREFIX_BYTES] = {client->base.options.coding != NULL};
    size_t in_prefix = stream->sent == 0 ? GRPC_PREFIX_BYTES : 0;

    assert(size >= in_prefix);
    add_frame_head(client, (struct h2_frame){
                               .size = (uint32_t)size,
                               .type = H2_DATA,
                               .flags = size == left_of(stream) ? H2_END_STREAM : 0,
                               .stream = stream->id,
                           });
    h2_put_u32(prefix + 1, (uint32_t)body.size);
    add_copy(client, prefix, in_prefix);
    const uint8_t *from = body.data + stream->sent + in_prefix - GRPC_PREFIX_BYTES;
    if (size - in_prefix <= COPIED_BYTES_MAX)
        add_copy(client, from, size - in_prefix);
    else
        add_segment(client, (void *)(uintptr_t)from, size - in_prefix);
    stream->sent += size;
    stream->window -= (int64_t)size;
    client->window -= (int64_t)size;
}

static bool has_room(const struct grpc_client *client)
{
    return client->segments_count + 3 <= SEGMENTS_MAX &&
           client->scratch_size + SCRATCH_PER_FRAME <= SCRATCH_BYTES;
}

static void add_stream(struct grpc_client *client, struct stream *stream)
{
    if (stream->id == 0 && client->streams_begun < client->streams_max)
        begin_stream(client, stream);
    while (stream->id != 0 && left_of(stream) > 0 && has_room(client)) {
        size_t size = smaller(left_of(stream), (int64_t)client->frame_bytes_max);
        size = smaller(size, stream->window);
        size = smaller(size, client->window);
        if (size == 0 || (stream->sent == 0 && size < GRPC_PREFIX_BYTES))
            return;
        add_data(client, stream, size);
    }
}

static void fill(struct grpc_client *client)
{
    assert(client->segment_at == client->segments_count);
    client->segments_count = client->segment_at = 0;
    client->scratch_size = 0;
    if (client->control.size > 0) {
        assert(client->control.size <= SCRATCH_BYTES / 2);
        add_copy(client, client->control.data, client->control.size);
        client->control.size = 0;
    }
    for (unsigned i = 0; client->is_ready && i < client->base.options.slots; i++)
        if (client->streams[i].exchange != NULL && has_room(client))
            add_stream(client, &client->streams[i]);
}

/* Forgets what the socket has taken. */
static void advance(struct grpc_client *client, size_t count)
{
    while (client->segment_at < client->segments_count) {
        struct iovec *segment = &client->segments[client->segment_at];
        if (count < segment->iov_len) {
            segment->iov_base = (uint8_t *)segment->iov_base + count;
            segment->iov_len -= count;
            return;
        }
        count -= segment->iov_len;
        client->segment_at++;
    }
    assert(count == 0);
}

static bool grpc_client_write(struct client *base)
{
    struct grpc_client *client = grpc_client_of(base);

    if (!base->has_output || !base->is_writable)
        return true;
    for (;;) {
        if (client->segment_at == client->segments_count)
            fill(client);
        unsigned left = client->segments_count - client->segment_at;
        if (left == 0) {
            base->has_output = false;
            return true;
        }
        ssize_t count = channel_write(&base->channel, &client->segments[client->segment_at], left);
        if (count < 0) {
            base->is_writable = false;
            return errno == EAGAIN;
        }
        advance(client, (size_t)count);
    }
}

static enum outcome outcome_of(unsigned grpc_status)
{
    if (grpc_status == GRPC_OK)
        return OUTCOME_OK;
    return grpc_status == GRPC_RESOURCE_EXHAUSTED || grpc_status == GRPC_UNAVAILABLE
               ? OUTCOME_REFUSED
               : OUTCOME_REJECTED;
}

static void finish(struct grpc_client *client, struct stream *stream, enum outcome outcome)
{
    struct exchange *exchange = stream->exchange;

    assert(exchange != NULL);
    client->streams_begun -= stream->id != 0;
    stream->exchange = NULL;
    client->base.in_flight--;
    client->base.has_output = true;
    client->base.options.on_done(client->base.options.arg, exchange, outcome);
}

static struct stream *find_stream(struct grpc_client *client, uint32_t id)
{
    assert(id != 0);
    for (unsigned i = 0; i < client->base.options.slots; i++)
        if (client->streams[i].exchange != NULL && client->streams[i].id == id)
            return &client->streams[i];
    return NULL;
}

static bool read_headers(struct grpc_client *client, const struct h2_frame *frame,
                         const uint8_t *payload)
{
    struct stream *stream = find_stream(client, frame->stream);
    unsigned status;

    if ((frame->flags & H2_END_HEADERS) == 0)
        die("the peer sends CONTINUATION frames, which bench_load cannot read");
    status = stream != NULL ? stream->grpc_status : GRPC_MISSING;
    if (!h2_read_grpc_status(client->inflater, frame, payload, &status))
        return false;
    if (stream != NULL)
        stream->grpc_status = status;
    return true;
}

static void read_settings(struct grpc_client *client, const uint8_t *payload, size_t size)
{
    for (size_t i = 0; i + 6 <= size; i += 6) {
        unsigned name = (unsigned)payload[i] << 8 | payload[i + 1];
        uint32_t value = h2_get_u32(payload + i + 2);
        if (name == HEADER_TABLE_SIZE && value < client->table_bytes && !client->has_sent_head)
            client->table_bytes = value;
        if (name == MAX_STREAMS)
            client->streams_max = value;
        if (name == MAX_FRAME)
            client->frame_bytes_max = value;
        if (name != INITIAL_WINDOW)
            continue;
        for (unsigned s = 0; s < client->base.options.slots; s++)
            client->streams[s].window += (int64_t)value - client->stream_window;
        client->stream_window = value;
    }
    put_control(client, (struct h2_frame){.type = H2_SETTINGS, .flags = H2_ACK},
                (const uint8_t *)"");
    client->is_ready = true;
}

static void read_window(struct grpc_client *client, uint32_t id, uint32_t increment)
{
    struct stream *stream = id == 0 ? NULL : find_stream(client, id);

    if (id == 0)
        client->window += increment;
    else if (stream != NULL)
        stream->window += increment;
    client->base.has_output = true;
}

/* A response may come before the end of the request, which is then not sent to its end. */
static void end_stream(struct grpc_client *client, uint32_t id)
{
    struct stream *stream = find_stream(client, id);
    uint8_t code[4];

    if (stream == NULL)
        return;
    if (left_of(stream) > 0) {
        h2_put_u32(code, H2_CANCEL);
        put_control(client,
                    (struct h2_frame){.size = sizeof code, .type = H2_RST_STREAM, .stream = id},
                    code);
    }
    finish(client, stream, outcome_of(stream->grpc_status));
}

static void read_reset(struct grpc_client *client, uint32_t id, uint32_t code)
{
    struct stream *stream = find_stream(client, id);

    if (stream != NULL)
        finish(client, stream, code == H2_REFUSED_STREAM ? OUTCOME_REFUSED : OUTCOME_REJECTED);
}

static void count_reply(struct grpc_client *client, uint32_t size)
{
    client->reply_bytes += size;
    if (client->reply_bytes < REPLY_WINDOW_STEP)
        return;
    put_window_update(client, client->reply_bytes);
    client->reply_bytes = 0;
}

static bool read_frame(struct grpc_client *client, const struct h2_frame *frame,
                       const uint8_t *payload)
{
    bool is_ack = (frame->flags & H2_ACK) != 0;

    if (frame->type == H2_HEADERS && !read_headers(client, frame, payload))
        return false;
    if (frame->type == H2_DATA)
        count_reply(client, frame->size);
    if ((frame->type == H2_HEADERS || frame->type == H2_DATA) &&
        (frame->flags & H2_END_STREAM) != 0)
        end_stream(client, frame->stream);
    if (frame->type == H2_SETTINGS && !is_ack)
        read_settings(client, payload, frame->size);
    if (frame->type == H2_PING && !is_ack)
        put_control(client, (struct h2_frame){.size = 8, .type = H2_PING, .flags = H2_ACK},
                    payload);
    if (frame->type == H2_WINDOW_UPDATE)
        read_window(client, frame->stream, h2_get_u32(payload));
    if (frame->type == H2_RST_STREAM)
        read_reset(client, frame->stream, h2_get_u32(payload));
    return frame->type != H2_GOAWAY;
}

/* False: the peer breaks the protocol or says good-bye. */
static bool read_frames(struct grpc_client *client)
{
    size_t at = 0;

    while (client->received_size - at >= H2_FRAME_HEAD_BYTES) {
        struct h2_frame frame = h2_frame_read(client->received + at);
        size_t whole = H2_FRAME_HEAD_BYTES + frame.size;
        if (whole > RECEIVED_BYTES)
            return false;
        if (client->received_size - at < whole)
            break;
        if (!read_frame(client, &frame, client->received + at + H2_FRAME_HEAD_BYTES))
            return false;
        at += whole;
    }
    client->received_size -= at;
    memmove(client->received, client->received + at, client->received_size);
    return true;
}

/* A short read means that the socket is empty. */
static bool grpc_client_read(struct client *base)
{
    struct grpc_client *client = grpc_client_of(base);

    for (;;) {
        size_t space = RECEIVED_BYTES - client->received_size;
        uint8_t *room = client->received + client->received_size;
        ssize_t count = channel_read(&base->channel, room, space);
        if (count <= 0)
            return count < 0 && errno == EAGAIN;
        client->received_size += (size_t)count;
        if (!read_frames(client))
            return false;
        if ((size_t)count < space)
            return true;
    }
}

static void grpc_client_destroy(struct client *base)
{
    struct grpc_client *client = grpc_client_of(base);

    for (unsigned i = 0; i < base->options.slots; i++)
        if (client->streams[i].exchange != NULL)
            finish(client, &client->streams[i], OUTCOME_BROKEN);
    nghttp2_hd_inflate_del(client->inflater);
    byte_buffer_free(&client->control);
    channel_close(&base->channel);
    free(client);
}

const struct client_type grpc_client_type = {
    .create = grpc_client_create,
    .send = grpc_client_send,
    .write = grpc_client_write,
    .read = grpc_client_read,
    .destroy = grpc_client_destroy,
};
