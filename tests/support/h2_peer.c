/* SPDX-License-Identifier: Apache-2.0 */
/* The client side of the HTTP/2 tests. */
#include "tests/support/h2_peer.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FRAME_HEAD_BYTES = 9, READ_BYTES = 65536, FIELDS_MAX = 120 };

static int connect_to(const char *address)
{
    const char *colon = strrchr(address, ':');
    struct sockaddr_in target = {.sin_family = AF_INET};
    assert(colon != NULL);
    target.sin_port = htons((uint16_t)atoi(colon + 1));
    target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert(fd >= 0);
    int failed = connect(fd, (struct sockaddr *)&target, sizeof(target));
    assert(failed == 0);
    /* Else a second small write waits for the ACK of the first, which takes real time. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void append_line(char *text, const uint8_t *name, size_t name_size, const uint8_t *value,
                        size_t value_size)
{
    size_t used = strlen(text);
    snprintf(text + used, H2_TEXT_MAX - used, "%.*s: %.*s\n", (int)name_size, name, (int)value_size,
             value);
}

static int on_begin_headers(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *arg)
{
    (void)nghttp2;
    h2_peer_response(arg, frame->hd.stream_id)->header_blocks++;
    return 0;
}

static int on_header(nghttp2_session *nghttp2, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *arg)
{
    struct h2_response *response = h2_peer_response(arg, frame->hd.stream_id);
    (void)nghttp2;
    (void)flags;
    if (name_size == 7 && memcmp(name, ":status", 7) == 0)
        response->status = (unsigned)atoi((const char *)value);
    else
        append_line(response->header_blocks > 1 ? response->trailers : response->headers, name,
                    name_size, value, value_size);
    return 0;
}

static int on_data(nghttp2_session *nghttp2, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t size, void *arg)
{
    struct h2_response *response = h2_peer_response(arg, id);
    (void)nghttp2;
    (void)flags;
    assert(response->body_size + size <= H2_BODY_MAX);
    memcpy(response->body + response->body_size, data, size);
    response->body_size += size;
    return 0;
}

static int on_frame(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *arg)
{
    struct h2_peer *peer = arg;
    (void)nghttp2;
    if (frame->hd.type != NGHTTP2_GOAWAY)
        return 0;
    peer->has_goaway = true;
    peer->goaway_code = frame->goaway.error_code;
    peer->goaway_last_id = frame->goaway.last_stream_id;
    snprintf(peer->goaway_text, sizeof(peer->goaway_text), "%.*s",
             (int)frame->goaway.opaque_data_len, (const char *)frame->goaway.opaque_data);
    return 0;
}

static int on_stream_closed(nghttp2_session *nghttp2, int32_t id, uint32_t code, void *arg)
{
    struct h2_response *response = h2_peer_response(arg, id);
    (void)nghttp2;
    response->is_closed = true;
    response->close_code = code;
    return 0;
}

static ssize_t on_upload(nghttp2_session *nghttp2, int32_t id, uint8_t *room, size_t size,
                         uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct h2_upload *upload = source->ptr;
    size_t left = upload->size - upload->sent;
    size_t taken = left < size ? left : size;
    (void)nghttp2;
    (void)id;
    (void)arg;
    if (left == 0 && !upload->is_complete)
        return NGHTTP2_ERR_DEFERRED;
    if (taken > 0)
        memcpy(room, upload->data + upload->sent, taken);
    upload->sent += taken;
    if (taken == left && upload->is_complete)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)taken;
}

struct h2_peer *h2_peer_connect_raw(const char *address)
{
    struct h2_peer *peer = calloc(1, sizeof(*peer));
    assert(peer != NULL);
    peer->fd = connect_to(address);
    return peer;
}

struct h2_peer *h2_peer_connect(const char *address, uint32_t window_bytes)
{
    struct h2_peer *peer = h2_peer_connect_raw(address);
    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    nghttp2_session_client_new(&peer->nghttp2, callbacks, peer);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window_bytes};
    nghttp2_submit_settings(peer->nghttp2, NGHTTP2_FLAG_NONE, &entry, window_bytes > 0);
    return peer;
}

void h2_peer_close(struct h2_peer *peer)
{
    close(peer->fd);
    nghttp2_session_del(peer->nghttp2);
    for (unsigned i = 0; i < peer->responses_count; i++) {
        free(peer->uploads[i].data);
        free(peer->responses[i]);
    }
    free(peer->raw_input);
    free(peer->raw_output);
    free(peer);
}

struct h2_response *h2_peer_response(struct h2_peer *peer, int32_t stream_id)
{
    for (unsigned i = 0; i < peer->responses_count; i++)
        if (peer->responses[i]->stream_id == stream_id)
            return peer->responses[i];
    assert(peer->responses_count < H2_RESPONSES_MAX);
    struct h2_response *response = calloc(1, sizeof(*response));
    assert(response != NULL);
    response->stream_id = stream_id;
    peer->responses[peer->responses_count++] = response;
    return response;
}

int32_t h2_peer_request(struct h2_peer *peer, const char *const *fields, const void *body,
                        size_t size, bool is_complete)
{
    nghttp2_nv rows[FIELDS_MAX];
    size_t count = 0;
    for (; fields[2 * count] != NULL; count++) {
        assert(count < FIELDS_MAX);
        rows[count] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)fields[2 * count],
                                   .namelen = strlen(fields[2 * count]),
                                   .value = (uint8_t *)(uintptr_t)fields[2 * count + 1],
                                   .valuelen = strlen(fields[2 * count + 1])};
    }
    struct h2_upload *upload = &peer->uploads[peer->responses_count];
    upload->data = malloc(size + 1);
    assert(upload->data != NULL);
    if (size > 0)
        memcpy(upload->data, body, size);
    upload->size = size;
    upload->is_complete = is_complete;
    nghttp2_data_provider provider = {.source.ptr = upload, .read_callback = on_upload};
    bool has_body = body != NULL || !is_complete;
    int32_t id =
        nghttp2_submit_request(peer->nghttp2, NULL, rows, count, has_body ? &provider : NULL, NULL);
    assert(id > 0);
    h2_peer_response(peer, id);
    return id;
}

void h2_peer_write(struct h2_peer *peer, const void *data, size_t size)
{
    peer->raw_output = realloc(peer->raw_output, peer->raw_output_size + size);
    assert(peer->raw_output != NULL);
    memcpy(peer->raw_output + peer->raw_output_size, data, size);
    peer->raw_output_size += size;
}

void h2_peer_frame(struct h2_peer *peer, unsigned type, unsigned flags, uint32_t stream_id,
                   const void *payload, size_t size)
{
    uint8_t head[FRAME_HEAD_BYTES] = {
        (uint8_t)(size >> 16),
        (uint8_t)(size >> 8),
        (uint8_t)size,
        (uint8_t)type,
        (uint8_t)flags,
        (uint8_t)(stream_id >> 24),
        (uint8_t)(stream_id >> 16),
        (uint8_t)(stream_id >> 8),
        (uint8_t)stream_id,
    };
    h2_peer_write(peer, head, sizeof(head));
    if (size > 0)
        h2_peer_write(peer, payload, size);
}

void h2_peer_greet(struct h2_peer *peer)
{
    h2_peer_write(peer, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    h2_peer_frame(peer, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

static void collect_output(struct h2_peer *peer)
{
    const uint8_t *data;
    ssize_t size;
    if (peer->nghttp2 == NULL || peer->raw_output_size > 0)
        return;
    while ((size = nghttp2_session_mem_send(peer->nghttp2, &data)) > 0)
        h2_peer_write(peer, data, (size_t)size);
}

static void push_output(struct h2_peer *peer)
{
    if (peer->raw_output_size == 0)
        return;
    ssize_t sent = send(peer->fd, peer->raw_output, peer->raw_output_size, MSG_NOSIGNAL);
    if (sent <= 0) {
        if (errno != EAGAIN)
            peer->raw_output_size = 0; /* the server has closed; the reading side sees it */
        return;
    }
    peer->raw_output_size -= (size_t)sent;
    memmove(peer->raw_output, peer->raw_output + sent, peer->raw_output_size);
}

static void take_input(struct h2_peer *peer, const uint8_t *data, size_t size)
{
    if (peer->nghttp2 != NULL) {
        nghttp2_session_mem_recv(peer->nghttp2, data, size);
        return;
    }
    peer->raw_input = realloc(peer->raw_input, peer->raw_size + size);
    assert(peer->raw_input != NULL);
    memcpy(peer->raw_input + peer->raw_size, data, size);
    peer->raw_size += size;
}

void h2_peer_turn(struct h2_peer *peer)
{
    static uint8_t room[READ_BYTES];
    collect_output(peer);
    push_output(peer);
    while (!peer->is_deaf && !peer->has_ended) {
        ssize_t got = recv(peer->fd, room, sizeof(room), 0);
        if (got < 0 && errno == EAGAIN)
            break;
        if (got <= 0)
            peer->has_ended = true;
        else
            take_input(peer, room, (size_t)got);
    }
    collect_output(peer);
    push_output(peer);
}

const uint8_t *h2_peer_find_frame(const struct h2_peer *peer, unsigned type, uint32_t *ret_size,
                                  uint32_t *ret_stream_id)
{
    size_t at = 0;
    while (at + FRAME_HEAD_BYTES <= peer->raw_size) {
        const uint8_t *head = peer->raw_input + at;
        uint32_t size = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
        at += FRAME_HEAD_BYTES + size;
        if (head[3] != type || at > peer->raw_size)
            continue;
        *ret_size = size;
        *ret_stream_id =
            (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
        return head + FRAME_HEAD_BYTES;
    }
    return NULL;
}
