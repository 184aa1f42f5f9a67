/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the client's socket share: the socket (client_socket.c) and the TLS that may
 * stand before it (client_secure.c). On the owner's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <uv.h>

#include "src/base/lane.h"
#include "src/net/client/client_socket.h"

struct tls_channel;

enum client_socket_state {
    SOCKET_CONNECTING,
    SOCKET_SHAKING, /* hands, for TLS */
    SOCKET_OPEN,
    SOCKET_ENDED, /* on_end was called */
    SOCKET_CLOSING,
};

struct client_socket {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    };
    struct lane *lane;
    const struct client_socket_events *events;
    void *owner;
    enum client_socket_state state;
    uv_connect_t connect;
    int connect_error; /* found at once, told later */
    struct sockaddr_storage address;
    struct timer timer;      /* while it connects and shakes hands */
    bool is_writing;         /* libuv has bytes that wait */
    bool has_waiting_writer; /* the owner was told to wait */
    struct tls_context *tls; /* NULL: cleartext */
    const char *server_name;
    struct tls_channel *channel;
    bool has_heard; /* a byte of the handshake came */
};

/* Gives the kernel what it takes and leaves the rest to libuv. False: some of it waits. */
bool client_socket_send(struct client_socket *socket, const struct batch_part *parts, size_t count);
/* Tells the owner, once. */
void client_socket_end(struct client_socket *socket, const char *reason);
/* The stream is there: the owner may write. */
void client_socket_opened(struct client_socket *socket);

/* Begins to shake hands over a connected socket. */
void client_secure_begin(struct client_socket *socket);
/* Ciphertext came. */
void client_secure_receive(struct client_socket *socket, struct slice ciphertext);
/* As client_socket_write. */
bool client_secure_write(struct client_socket *socket, const struct batch_part *parts,
                         size_t count);
/* Gives the socket the ciphertext that waits. False: some of it waits still. */
bool client_secure_flush(struct client_socket *socket);
/* The server closed, or sent nothing, while hands were shaken. */
void client_secure_give_up(struct client_socket *socket, const char *reason);
/* close_notify goes out if it can; the channel is gone then. */
void client_secure_close(struct client_socket *socket);
