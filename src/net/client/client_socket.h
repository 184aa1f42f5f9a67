/* SPDX-License-Identifier: Apache-2.0 */
/* One outgoing byte stream, TCP or Unix, in cleartext or TLS (for HTTP/2): connects, writes parts
 * without copying, reads. The owner speaks the protocol. On the owner's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct batch_part;
struct budget;
struct client_socket;
struct lane;
struct tls_context;

/* owner is the one of client_socket_settings. Any of these may call client_socket_close. */
struct client_socket_events {
    void (*on_connected)(void *owner);
    void (*on_bytes)(void *owner, const uint8_t *data, size_t size);
    /* The waiting bytes are written; called only after a write that returned false. */
    void (*on_drained)(void *owner);
    /* Connecting failed, the connection broke, or the peer closed it. Called once; reason is valid
     * during the call. Only on_closed follows, after client_socket_close. */
    void (*on_end)(void *owner, const char *reason);
    /* The handle is closed; the socket is freed after this. */
    void (*on_closed)(void *owner);
};

struct client_socket_settings {
    struct lane *lane;
    struct budget *budget;          /* ciphertext that waits is charged to it; NULL: it is not */
    const struct sockaddr *address; /* AF_INET, AF_INET6 or AF_UNIX; copied where needed */
    uint64_t connect_timeout_ns;    /* including the TLS handshake */
    struct tls_context *tls;        /* NULL: cleartext */
    const char *server_name;        /* with TLS: the name in the server's certificate */
    const struct client_socket_events *events;
    void *owner;
};

/* Starts to connect; failures are reported by on_end, later. */
struct client_socket *client_socket_create(const struct client_socket_settings *settings);
/* Once connected. Bytes that wait keep a reference to their part's owner; without owner they are
 * copied. False: some bytes wait; write no more until on_drained. */
bool client_socket_write(struct client_socket *socket, const struct batch_part *parts,
                         size_t count);
/* Only on_closed is called after this, later. Idempotent. */
void client_socket_close(struct client_socket *socket);

/* As Go prints it: "dial tcp 127.0.0.1:4317: connect: connection refused". */
void client_socket_dial_error(const struct sockaddr *address, int error, char *text, size_t size);
