/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted gRPC back-end: nghttp2's server side over sockets of the lane under test. */
#include "tests/support/grpc_backend.h"

#include "src/base/lane.h"
#include "src/base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <nghttp2/nghttp2.h>
#include <uv.h>

enum { READ_BYTES = 65536, FLOOD_VALUE_BYTES = 1024, FIELDS_MAX = 192, TRAILERS_MAX = 3 };

struct call {
    struct peer *peer;
    int32_t id;
    struct call *next; /* of the peer */
    const struct grpc_backend_step *step;
    char headers[GRPC_BACKEND_TEXT_MAX];
    uint8_t *body;
    size_t size;
    size_t sent; /* of the response */
    bool is_whole;
    bool is_held;
    bool has_responded;
};

struct peer {
    struct grpc_backend *backend;
    uv_tcp_t tcp;
    struct peer *next;
    nghttp2_session *nghttp2; /* NULL: it does not speak HTTP/2 */
    struct call *calls;
    char input[READ_BYTES];
    bool is_closing;
};

struct grpc_backend {
    struct lane *lane;
    struct grpc_backend_settings settings;
    const struct grpc_backend_step *steps;
    size_t steps_count;
    uv_tcp_t listener;
    bool listens;
    bool has_listener; /* until its handle is closed */
    bool is_frozen;
    uint16_t port;
    struct peer *peers;
    unsigned handles;
    unsigned begun;
    unsigned calls;
    unsigned open_calls;
    unsigned calls_at_once;
    unsigned connections;
    unsigned pings;
    unsigned resets;
    uint32_t reset_code;
    char headers[GRPC_BACKEND_TEXT_MAX];
    uint8_t *body;
    size_t body_size;
};

struct output {
    uv_write_t write;
    uint8_t bytes[];
};

static const uint8_t empty_message[5];
static char flood_value[FLOOD_VALUE_BYTES];

static void on_written(uv_write_t *write, int status)
{
    (void)status;
    mem_free(write);
}

static void write_bytes(struct peer *peer, const void *data, size_t size)
{
    struct output *output = mem_alloc(sizeof(*output) + size);
    memcpy(output->bytes, data, size);
    uv_buf_t buffer = uv_buf_init((char *)output->bytes, (unsigned)size);
    if (uv_write(&output->write, (uv_stream_t *)&peer->tcp, &buffer, 1, on_written) != 0)
        mem_free(output);
}

static void flush(struct peer *peer)
{
    const uint8_t *data;
    ssize_t size;
    if (peer->is_closing || peer->nghttp2 == NULL || peer->backend->is_frozen)
        return;
    while ((size = nghttp2_session_mem_send(peer->nghttp2, &data)) > 0)
        write_bytes(peer, data, (size_t)size);
}

static void call_free(struct call *call)
{
    struct call **place = &call->peer->calls;
    while (*place != call)
        place = &(*place)->next;
    *place = call->next;
    call->peer->backend->open_calls--;
    mem_free(call->body);
    mem_free(call);
}

static void on_peer_closed(uv_handle_t *handle)
{
    struct peer *peer = handle->data;
    peer->backend->handles--;
    nghttp2_session_del(peer->nghttp2);
    while (peer->calls != NULL)
        call_free(peer->calls);
    mem_free(peer);
}

static void peer_close(struct peer *peer)
{
    struct peer **place = &peer->backend->peers;
    if (peer->is_closing)
        return;
    peer->is_closing = true;
    while (*place != peer)
        place = &(*place)->next;
    *place = peer->next;
    uv_close((uv_handle_t *)&peer->tcp, on_peer_closed);
}

static nghttp2_nv field(const char *name, const char *value, size_t size)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .namelen = strlen(name),
                        .value = (uint8_t *)(uintptr_t)value,
                        .valuelen = size};
}

static size_t add_status(const struct grpc_backend_step *step, nghttp2_nv *fields, size_t count)
{
    if (step->status != NULL)
        fields[count++] = field("grpc-status", step->status, strlen(step->status));
    if (step->message != NULL)
        fields[count++] = field("grpc-message", step->message, strlen(step->message));
    if (step->details != NULL)
        fields[count++] = field("grpc-status-details-bin", step->details, strlen(step->details));
    return count;
}

static size_t response_size(const struct grpc_backend_step *step)
{
    size_t times = step->data_repeated > 0 ? step->data_repeated : 1;
    return step->data == NULL ? sizeof(empty_message) : step->data_size * times;
}

static ssize_t on_response_due(nghttp2_session *nghttp2, int32_t id, uint8_t *room, size_t size,
                               uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct call *call = source->ptr;
    const struct grpc_backend_step *step = call->step;
    const uint8_t *data = step->data == NULL ? empty_message : step->data;
    size_t period = step->data == NULL ? sizeof(empty_message) : step->data_size;
    size_t used = 0;
    (void)arg;
    while (used < size && call->sent < response_size(step))
        room[used++] = data[call->sent++ % period];
    if (call->sent < response_size(step))
        return (ssize_t)used;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (step->status != NULL) {
        nghttp2_nv trailers[TRAILERS_MAX];
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(nghttp2, id, trailers, add_status(step, trailers, 0));
    }
    return (ssize_t)used;
}

static void respond(struct call *call)
{
    const struct grpc_backend_step *step = call->step;
    nghttp2_session *nghttp2 = call->peer->nghttp2;
    nghttp2_nv fields[FIELDS_MAX];
    size_t count = 0;
    const char *status = step->http_status != NULL ? step->http_status : "200";
    const char *type = step->content_type != NULL ? step->content_type : "application/grpc";
    call->has_responded = true;
    if (step->resets) {
        nghttp2_submit_rst_stream(nghttp2, NGHTTP2_FLAG_NONE, call->id, step->reset_code);
        return;
    }
    fields[count++] = field(":status", status, strlen(status));
    if (type[0] != '\0')
        fields[count++] = field("content-type", type, strlen(type));
    if (step->encoding != NULL)
        fields[count++] = field("grpc-encoding", step->encoding, strlen(step->encoding));
    for (size_t i = 0; i < step->headers_flood; i++)
        fields[count++] = field("x-flood", flood_value, sizeof(flood_value));
    if (step->is_trailers_only) {
        count = add_status(step, fields, count);
        nghttp2_submit_headers(nghttp2, NGHTTP2_FLAG_END_STREAM, call->id, NULL, fields, count,
                               NULL);
        return;
    }
    const nghttp2_data_provider body = {.source.ptr = call, .read_callback = on_response_due};
    nghttp2_submit_response(nghttp2, call->id, fields, count, &body);
}

static void play(struct call *call)
{
    struct peer *peer = call->peer;
    const struct grpc_backend_step *step = call->step;
    if (call->has_responded)
        return;
    if (step->says_goaway)
        nghttp2_submit_goaway(peer->nghttp2, NGHTTP2_FLAG_NONE,
                              step->is_beyond ? call->id - 2 : call->id, NGHTTP2_NO_ERROR, NULL, 0);
    if (step->hangs_up)
        peer_close(peer);
    else if (!step->says_goaway || !step->is_beyond)
        respond(call);
}

static void take_whole_call(struct call *call)
{
    struct grpc_backend *backend = call->peer->backend;
    mem_free(backend->body);
    backend->body = mem_copy(call->body, call->size);
    backend->body_size = call->size;
    strcpy(backend->headers, call->headers);
    backend->calls++;
    call->is_whole = true;
    call->is_held = call->step->is_held;
    if (!call->is_held)
        play(call);
}

static int on_begin_headers(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *arg)
{
    struct peer *peer = arg;
    struct grpc_backend *backend = peer->backend;
    struct call *call = mem_zalloc(sizeof(*call));
    size_t index = backend->begun++;
    call->peer = peer;
    call->id = frame->hd.stream_id;
    call->body = mem_alloc(1);
    call->step = &backend->steps[index < backend->steps_count ? index : backend->steps_count - 1];
    call->next = peer->calls;
    peer->calls = call;
    backend->open_calls++;
    if (backend->open_calls > backend->calls_at_once)
        backend->calls_at_once = backend->open_calls;
    nghttp2_session_set_stream_user_data(nghttp2, call->id, call);
    return 0;
}

static int on_header(nghttp2_session *nghttp2, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *arg)
{
    struct call *call = nghttp2_session_get_stream_user_data(nghttp2, frame->hd.stream_id);
    size_t used = strlen(call->headers);
    (void)flags;
    (void)arg;
    snprintf(call->headers + used, sizeof(call->headers) - used, "%.*s: %.*s\n", (int)name_size,
             name, (int)value_size, value);
    return 0;
}

static int on_data(nghttp2_session *nghttp2, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t size, void *arg)
{
    struct call *call = nghttp2_session_get_stream_user_data(nghttp2, id);
    (void)flags;
    (void)arg;
    call->body = mem_resize(call->body, call->size + size);
    memcpy(call->body + call->size, data, size);
    call->size += size;
    return 0;
}

static int on_frame(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *arg)
{
    struct peer *peer = arg;
    struct call *call = frame->hd.stream_id == 0
                            ? NULL
                            : nghttp2_session_get_stream_user_data(nghttp2, frame->hd.stream_id);
    bool is_ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
    if (frame->hd.type == NGHTTP2_PING && !is_ack)
        peer->backend->pings++;
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
        peer->backend->resets++;
        peer->backend->reset_code = frame->rst_stream.error_code;
    }
    if (call == NULL || call->is_whole)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && call->step->responds_at_head)
        play(call);
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
        take_whole_call(call);
    return 0;
}

static int on_stream_closed(nghttp2_session *nghttp2, int32_t id, uint32_t code, void *arg)
{
    struct call *call = nghttp2_session_get_stream_user_data(nghttp2, id);
    (void)code;
    (void)arg;
    if (call != NULL)
        call_free(call);
    return 0;
}

static void submit_settings(struct peer *peer)
{
    const struct grpc_backend_settings *settings = &peer->backend->settings;
    nghttp2_settings_entry entries[2];
    size_t count = 0;
    if (settings->streams_max > 0)
        entries[count++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
                                                    settings->streams_max};
    if (settings->window_bytes > 0)
        entries[count++] =
            (nghttp2_settings_entry){NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, settings->window_bytes};
    nghttp2_submit_settings(peer->nghttp2, NGHTTP2_FLAG_NONE, entries, count);
    if (settings->window_bytes > NGHTTP2_INITIAL_CONNECTION_WINDOW_SIZE)
        nghttp2_session_set_local_window_size(peer->nghttp2, NGHTTP2_FLAG_NONE, 0,
                                              (int32_t)settings->window_bytes);
}

static void session_create(struct peer *peer)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_option_new(&option);
    nghttp2_option_set_max_send_header_block_length(option, 1 << 20);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    int failed = nghttp2_session_server_new2(&peer->nghttp2, callbacks, peer, option);
    assert(failed == 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    submit_settings(peer);
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    struct peer *peer = handle->data;
    (void)suggested;
    *ret_buffer = uv_buf_init(peer->input, READ_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct peer *peer = stream->data;
    if (size < 0) {
        peer_close(peer);
        return;
    }
    if (peer->nghttp2 == NULL || peer->backend->is_frozen)
        return;
    ssize_t taken =
        nghttp2_session_mem_recv(peer->nghttp2, (const uint8_t *)buffer->base, (size_t)size);
    if (taken == size)
        flush(peer);
    else
        peer_close(peer); /* it does not speak HTTP/2 */
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct grpc_backend *backend = listener->data;
    struct peer *peer = mem_zalloc(sizeof(*peer));
    assert(status == 0);
    peer->backend = backend;
    peer->tcp.data = peer;
    uv_tcp_init(lane_loop(backend->lane), &peer->tcp);
    uv_accept(listener, (uv_stream_t *)&peer->tcp);
    uv_tcp_nodelay(&peer->tcp, 1);
    backend->handles++;
    backend->connections++;
    peer->next = backend->peers;
    backend->peers = peer;
    if (backend->settings.greeting != NULL)
        write_bytes(peer, backend->settings.greeting, strlen(backend->settings.greeting));
    else if (!backend->settings.is_mute)
        session_create(peer);
    uv_read_start((uv_stream_t *)&peer->tcp, on_allocate, on_read);
    flush(peer);
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct grpc_backend *backend = handle->data;
    backend->handles--;
    backend->has_listener = false;
}

void grpc_backend_listen(struct grpc_backend *backend, bool listens)
{
    struct sockaddr_in address;
    int size = sizeof(address);
    assert(listens != backend->listens);
    backend->listens = listens;
    if (!listens) {
        uv_close((uv_handle_t *)&backend->listener, on_listener_closed);
        while (backend->has_listener)
            lane_turn(backend->lane);
        return;
    }
    uv_tcp_init(lane_loop(backend->lane), &backend->listener);
    backend->listener.data = backend;
    backend->handles++;
    backend->has_listener = true;
    uv_ip4_addr("127.0.0.1", backend->port, &address);
    int failed = uv_tcp_bind(&backend->listener, (struct sockaddr *)&address, 0);
    assert(failed == 0);
    failed = uv_listen((uv_stream_t *)&backend->listener, 64, on_connection);
    assert(failed == 0);
    uv_tcp_getsockname(&backend->listener, (struct sockaddr *)&address, &size);
    backend->port = ntohs(address.sin_port);
}

struct grpc_backend *grpc_backend_create(struct lane *lane,
                                         const struct grpc_backend_settings *settings,
                                         const struct grpc_backend_step *steps, size_t count)
{
    struct grpc_backend *backend = mem_zalloc(sizeof(*backend));
    assert(count > 0);
    memset(flood_value, 'f', sizeof(flood_value));
    backend->lane = lane;
    backend->settings = *settings;
    backend->steps = steps;
    backend->steps_count = count;
    backend->body = mem_alloc(1);
    grpc_backend_listen(backend, true);
    return backend;
}

uint16_t grpc_backend_port(const struct grpc_backend *backend)
{
    return backend->port;
}

unsigned grpc_backend_calls(const struct grpc_backend *backend)
{
    return backend->calls;
}

unsigned grpc_backend_connections(const struct grpc_backend *backend)
{
    return backend->connections;
}

unsigned grpc_backend_pings(const struct grpc_backend *backend)
{
    return backend->pings;
}

unsigned grpc_backend_resets(const struct grpc_backend *backend, uint32_t *ret_code)
{
    *ret_code = backend->reset_code;
    return backend->resets;
}

unsigned grpc_backend_calls_at_once(const struct grpc_backend *backend)
{
    return backend->calls_at_once;
}

const char *grpc_backend_headers(const struct grpc_backend *backend)
{
    return backend->headers;
}

const uint8_t *grpc_backend_body(const struct grpc_backend *backend, size_t *ret_size)
{
    *ret_size = backend->body_size;
    return backend->body;
}

unsigned grpc_backend_held(const struct grpc_backend *backend)
{
    unsigned held = 0;
    for (const struct peer *peer = backend->peers; peer != NULL; peer = peer->next)
        for (const struct call *call = peer->calls; call != NULL; call = call->next)
            held += call->is_held;
    return held;
}

void grpc_backend_release(struct grpc_backend *backend)
{
    struct peer *next_peer;
    for (struct peer *peer = backend->peers; peer != NULL; peer = next_peer) {
        next_peer = peer->next;
        for (struct call *call = peer->calls; call != NULL; call = call->next) {
            if (call->is_held)
                play(call);
            call->is_held = false;
        }
        flush(peer);
    }
}

void grpc_backend_goaway(struct grpc_backend *backend, uint32_t code, const char *text)
{
    for (struct peer *peer = backend->peers; peer != NULL; peer = peer->next) {
        nghttp2_submit_goaway(peer->nghttp2, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(peer->nghttp2), code,
                              (const uint8_t *)text, strlen(text));
        flush(peer);
    }
}

void grpc_backend_limit_streams(struct grpc_backend *backend, uint32_t streams_max)
{
    const nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams_max};
    for (struct peer *peer = backend->peers; peer != NULL; peer = peer->next) {
        nghttp2_submit_settings(peer->nghttp2, NGHTTP2_FLAG_NONE, &entry, 1);
        flush(peer);
    }
}

void grpc_backend_freeze(struct grpc_backend *backend)
{
    backend->is_frozen = true;
}

void grpc_backend_hang_up(struct grpc_backend *backend)
{
    backend->is_frozen = false;
    while (backend->peers != NULL)
        peer_close(backend->peers);
}

void grpc_backend_destroy(struct grpc_backend *backend)
{
    grpc_backend_hang_up(backend);
    if (backend->listens)
        grpc_backend_listen(backend, false);
    while (backend->handles > 0)
        lane_turn(backend->lane);
    mem_free(backend->body);
    mem_free(backend);
}
