/* SPDX-License-Identifier: Apache-2.0 */
/* One outgoing byte stream, TCP or Unix, in cleartext or TLS (for HTTP/2): connects, writes parts
 * from where they lie, reads. What is spoken over it is its owner's. Runs on the owner's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct batch_part;
struct client_socket;
struct lane;
struct tls_context;

/* owner is the one of client_socket_settings. Any of these may call client_socket_close. */
struct client_socket_events {
    void (*on_connected)(void *owner);
    void (*on_bytes)(void *owner, const uint8_t *data, size_t size);
    /* What had to wait is written; comes only after a write that returned false. */
    void (*on_drained)(void *owner);
    /* It could not be connected, or it broke, or the peer closed it: reason says so and lives for
     * the call. Comes once; nothing but on_closed follows, and that only after a close. */
    void (*on_end)(void *owner, const char *reason);
    /* The handle is closed; the socket is freed after this. */
    void (*on_closed)(void *owner);
};

struct client_socket_settings {
    struct lane *lane;
    const struct sockaddr *address; /* AF_INET, AF_INET6 or AF_UNIX; copied where needed */
    uint64_t connect_timeout_ns;    /* TLS handshake included */
    struct tls_context *tls;        /* NULL: cleartext */
    const char *server_name;        /* with TLS: whom the server must prove to be */
    const struct client_socket_events *events;
    void *owner;
};

/* Begins to connect; every failure comes to on_end, later. */
struct client_socket *client_socket_create(const struct client_socket_settings *settings);
/* Once connected. A part's owner is kept for as long as its bytes have to wait; the bytes of a part
 * without owner are copied then. False: some wait, and on_drained will come; write no more until
 * then. */
bool client_socket_write(struct client_socket *socket, const struct batch_part *parts,
                         size_t count);
/* Nothing but on_closed follows, later. Closing twice is once. */
void client_socket_close(struct client_socket *socket);

/* "dial tcp 127.0.0.1:4317: connect: connection refused", as Go says it. */
void client_socket_dial_words(const struct sockaddr *address, int error, char *text, size_t size);
