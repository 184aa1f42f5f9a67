/* SPDX-License-Identifier: Apache-2.0 */
/* TLS of an outgoing stream: moves bytes between the socket, the TLS channel and the owner. While
 * the socket takes no more, ciphertext waits in the channel. On the owner's lane. */
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/net/client/client_socket_state.h"
#include "src/net/tls/tls_channel.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    RECORD_BYTES = 16 * 1024, /* the largest record of TLS */
    WORDS_MAX = 512,
    RECORD_ALERT = 21,
    RECORD_HANDSHAKE = 22,
};

static void fail_handshake(struct client_socket *socket, const char *reason, const char *advice)
{
    char words[WORDS_MAX];
    assert(socket->state == SOCKET_SHAKING);
    snprintf(words, sizeof(words), "transport: authentication handshake failed: %s%s", reason,
             advice);
    client_socket_end(socket, words);
}

void client_secure_give_up(struct client_socket *socket, const char *reason)
{
    fail_handshake(socket, reason,
                   socket->has_heard
                       ? ""
                       : ": the server does not shake hands; if it speaks cleartext, set tls: "
                         "{insecure: true}");
}

bool client_secure_flush(struct client_socket *socket)
{
    assert(socket->channel != NULL);
    if (socket->is_writing)
        return false;
    struct slice output = tls_channel_output(socket->channel);
    if (output.size == 0)
        return true;
    const struct batch_part part = {.bytes = output};
    bool is_sent = client_socket_send(socket, &part, 1);
    tls_channel_sent(socket->channel, output.size);
    return is_sent;
}

void client_secure_begin(struct client_socket *socket)
{
    struct error error;
    assert(socket->channel == NULL);
    socket->state = SOCKET_SHAKING;
    socket->channel = tls_channel_create(socket->tls, socket->server_name, &error);
    if (socket->channel == NULL)
        fail_handshake(socket, error.text, "");
    else
        client_secure_flush(socket);
}

static void finish_handshake(struct client_socket *socket)
{
    assert(socket->state == SOCKET_SHAKING);
    if (strcmp(tls_channel_protocol(socket->channel), "h2") == 0)
        client_socket_opened(socket);
    else
        fail_handshake(socket, "credentials: cannot check peer: missing selected ALPN property",
                       ": the server speaks TLS, but not HTTP/2, which gRPC needs");
}

static void pump(struct client_socket *socket)
{
    uint8_t *room = mem_alloc(RECORD_BYTES);
    ptrdiff_t count = 1;
    while (count > 0 && (socket->state == SOCKET_SHAKING || socket->state == SOCKET_OPEN)) {
        count = tls_channel_read(socket->channel, room, RECORD_BYTES);
        if (socket->state == SOCKET_SHAKING && tls_channel_is_open(socket->channel))
            finish_handshake(socket);
        if (count > 0 && socket->state == SOCKET_OPEN)
            socket->events->on_bytes(socket->owner, room, (size_t)count);
    }
    mem_free(room);
    if (socket->state >= SOCKET_ENDED)
        return;
    client_secure_flush(socket);
    if (count == TLS_CLOSED)
        client_socket_end(socket, "EOF");
    else if (count == TLS_FAILED && socket->state == SOCKET_SHAKING)
        fail_handshake(socket, tls_channel_error(socket->channel), "");
    else if (count == TLS_FAILED)
        client_socket_end(socket, tls_channel_error(socket->channel));
    else if (!tls_channel_keep(socket->channel))
        client_socket_end(socket, "no memory left for TLS");
}

void client_secure_receive(struct client_socket *socket, struct slice ciphertext)
{
    assert(ciphertext.size > 0);
    bool is_record = socket->has_heard || ciphertext.data[0] == RECORD_HANDSHAKE ||
                     ciphertext.data[0] == RECORD_ALERT;
    socket->has_heard = true;
    if (!is_record) {
        fail_handshake(socket, "tls: first record does not look like a TLS handshake",
                       ": the server speaks cleartext; to send to it without TLS, set tls: "
                       "{insecure: true}");
        return;
    }
    tls_channel_feed(socket->channel, ciphertext);
    pump(socket);
}

/* Records are filled, whatever the parts' sizes. */
bool client_secure_write(struct client_socket *socket, const struct batch_part *parts, size_t count)
{
    uint8_t *room = mem_alloc(RECORD_BYTES);
    size_t used = 0;
    bool is_well = true;
    assert(socket->state == SOCKET_OPEN);
    for (size_t i = 0; i < count && is_well; i++) {
        struct slice left = parts[i].bytes;
        while (left.size > 0 && is_well) {
            size_t step = RECORD_BYTES - used < left.size ? RECORD_BYTES - used : left.size;
            memcpy(room + used, left.data, step);
            left = slice_of(left.data + step, left.size - step);
            used += step;
            if (used < RECORD_BYTES)
                continue;
            is_well = tls_channel_write(socket->channel, slice_of(room, used));
            used = 0;
        }
    }
    if (is_well && used > 0)
        is_well = tls_channel_write(socket->channel, slice_of(room, used));
    mem_free(room);
    /* A channel that has failed is told by the reading side. */
    return client_secure_flush(socket) && is_well;
}

void client_secure_close(struct client_socket *socket)
{
    if (socket->channel == NULL)
        return;
    tls_channel_end(socket->channel);
    struct slice output = tls_channel_output(socket->channel);
    uv_buf_t part = uv_buf_init((char *)(uintptr_t)output.data, (unsigned)output.size);
    if (output.size > 0 && !socket->is_writing)
        (void)uv_try_write(&socket->stream, &part, 1);
}
