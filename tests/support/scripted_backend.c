/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted back-end: reads requests with Content-Length, plays its steps. Runs on the lane
 * under test. */
#include "tests/support/scripted_backend.h"

#include "src/base/lane.h"
#include "src/base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peer {
    struct scripted_backend *backend;
    uv_tcp_t tcp;
    struct peer *next;
    struct peer *prev;
    char *input;
    size_t input_size;
    size_t input_capacity;
    bool has_responded; /* to the request under way, at its head */
};

struct scripted_backend {
    struct lane *lane;
    const struct backend_step *steps;
    size_t steps_count;
    uv_tcp_t listener;
    struct peer *peers;
    unsigned handles;
    unsigned requests;
    unsigned connections;
    char url[64];
    char *head;
    char *body;
    size_t body_size;
};

struct response {
    uv_write_t write;
    struct peer *peer;
    const struct backend_step *step;
    char *bytes;
};

static void on_peer_closed(uv_handle_t *handle)
{
    struct peer *peer = handle->data;
    peer->backend->handles--;
    mem_free(peer->input);
    mem_free(peer);
}

static void peer_close(struct peer *peer, bool resets)
{
    if (uv_is_closing((uv_handle_t *)&peer->tcp))
        return;
    *(peer->prev == NULL ? &peer->backend->peers : &peer->prev->next) = peer->next;
    if (peer->next != NULL)
        peer->next->prev = peer->prev;
    if (!resets || uv_tcp_close_reset(&peer->tcp, on_peer_closed) != 0)
        uv_close((uv_handle_t *)&peer->tcp, on_peer_closed);
}

static void on_responded(uv_write_t *write, int status)
{
    struct response *response = write->data;
    if (status != 0 || response->step->closes || response->step->resets)
        peer_close(response->peer, response->step->resets);
    mem_free(response->bytes);
    mem_free(response);
}

static void play(struct peer *peer, const struct backend_step *step)
{
    if (step->response == NULL)
        return;
    size_t size = step->response_size > 0 ? step->response_size : strlen(step->response);
    struct response *response = mem_zalloc(sizeof(*response));
    response->bytes = mem_alloc(size * (step->repeated + 1));
    for (size_t i = 0; i <= step->repeated; i++)
        memcpy(response->bytes + i * size, step->response, size);
    response->peer = peer;
    response->step = step;
    response->write.data = response;
    uv_buf_t buffer = {.base = response->bytes, .len = size * (step->repeated + 1)};
    int failed = uv_write(&response->write, (uv_stream_t *)&peer->tcp, &buffer, 1, on_responded);
    assert(failed == 0);
}

static const struct backend_step *next_step(const struct scripted_backend *backend)
{
    size_t index = backend->requests;
    return &backend->steps[index < backend->steps_count ? index : backend->steps_count - 1];
}

static void keep_request(struct scripted_backend *backend, const struct peer *peer,
                         size_t head_size, size_t body_size)
{
    mem_free(backend->head);
    mem_free(backend->body);
    backend->head = mem_alloc(head_size + 1);
    memcpy(backend->head, peer->input, head_size);
    backend->head[head_size] = '\0';
    backend->body = mem_copy(peer->input + head_size, body_size);
    backend->body_size = body_size;
    backend->requests++;
}

/* Responds to the request at the front of the input; false when it is not whole yet. */
static bool take_request(struct peer *peer)
{
    struct scripted_backend *backend = peer->backend;
    const struct backend_step *step = next_step(backend);
    const char *end = memmem(peer->input, peer->input_size, "\r\n\r\n", 4);
    if (end == NULL)
        return false;
    size_t head_size = (size_t)(end - peer->input) + 4;
    const char *length = memmem(peer->input, head_size, "Content-Length: ", 16);
    size_t body_size = length == NULL ? 0 : strtoul(length + 16, NULL, 10);
    if (step->responds_at_head && !peer->has_responded) {
        peer->has_responded = true;
        play(peer, step);
    }
    if (peer->input_size < head_size + body_size)
        return false;
    keep_request(backend, peer, head_size, body_size);
    peer->input_size -= head_size + body_size;
    memmove(peer->input, peer->input + head_size + body_size, peer->input_size);
    if (!peer->has_responded)
        play(peer, step);
    peer->has_responded = false;
    return true;
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    struct peer *peer = handle->data;
    if (peer->input_capacity - peer->input_size < suggested) {
        peer->input_capacity = (peer->input_size + suggested) * 2;
        peer->input = mem_resize(peer->input, peer->input_capacity);
    }
    *ret_buffer = uv_buf_init(peer->input + peer->input_size, (unsigned)suggested);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct peer *peer = stream->data;
    (void)buffer;
    if (size < 0) {
        peer_close(peer, false);
        return;
    }
    peer->input_size += (size_t)size;
    if (size > 0 && next_step(peer->backend)->closes_unheard) {
        peer->backend->requests++;
        peer_close(peer, false);
        return;
    }
    while (!uv_is_closing((uv_handle_t *)&peer->tcp) && take_request(peer))
        continue;
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct scripted_backend *backend = stream->data;
    assert(status == 0);
    struct peer *peer = mem_zalloc(sizeof(*peer));
    peer->backend = backend;
    uv_tcp_init(lane_loop(backend->lane), &peer->tcp);
    peer->tcp.data = peer;
    peer->next = backend->peers;
    if (peer->next != NULL)
        peer->next->prev = peer;
    backend->peers = peer;
    backend->handles++;
    backend->connections++;
    int failed = uv_accept(stream, (uv_stream_t *)&peer->tcp);
    assert(failed == 0);
    failed = uv_read_start((uv_stream_t *)&peer->tcp, on_allocate, on_read);
    assert(failed == 0);
}

struct scripted_backend *scripted_backend_create(struct lane *lane,
                                                 const struct backend_step *steps, size_t count)
{
    struct scripted_backend *backend = mem_zalloc(sizeof(*backend));
    struct sockaddr_in address;
    int size = sizeof(address);
    backend->lane = lane;
    backend->steps = steps;
    backend->steps_count = count;
    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_init(lane_loop(lane), &backend->listener);
    backend->listener.data = backend;
    backend->handles = 1;
    int failed = uv_tcp_bind(&backend->listener, (struct sockaddr *)&address, 0);
    assert(failed == 0);
    failed = uv_listen((uv_stream_t *)&backend->listener, 64, on_connection);
    assert(failed == 0);
    failed = uv_tcp_getsockname(&backend->listener, (struct sockaddr *)&address, &size);
    assert(failed == 0);
    snprintf(backend->url, sizeof(backend->url), "http://127.0.0.1:%u",
             (unsigned)ntohs(address.sin_port));
    return backend;
}

const char *scripted_backend_url(const struct scripted_backend *backend)
{
    return backend->url;
}

unsigned scripted_backend_requests(const struct scripted_backend *backend)
{
    return backend->requests;
}

unsigned scripted_backend_connections(const struct scripted_backend *backend)
{
    return backend->connections;
}

const char *scripted_backend_head(const struct scripted_backend *backend)
{
    return backend->head == NULL ? "" : backend->head;
}

const char *scripted_backend_body(const struct scripted_backend *backend, size_t *ret_size)
{
    *ret_size = backend->body_size;
    return backend->body;
}

void scripted_backend_hang_up(struct scripted_backend *backend)
{
    while (backend->peers != NULL)
        peer_close(backend->peers, false);
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct scripted_backend *backend = handle->data;
    backend->handles--;
}

void scripted_backend_destroy(struct scripted_backend *backend)
{
    scripted_backend_hang_up(backend);
    uv_close((uv_handle_t *)&backend->listener, on_listener_closed);
    while (backend->handles > 0)
        lane_turn(backend->lane);
    mem_free(backend->head);
    mem_free(backend->body);
    mem_free(backend);
}
