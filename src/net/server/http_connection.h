/* SPDX-License-Identifier: Apache-2.0 */
/* One accepted connection, whatever it speaks: the socket, its reads, writes, deadlines and its
 * closing in two phases. The first bytes decide between HTTP/1.1 and HTTP/2, whose state hangs
 * below. On the server's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>
#include <uv.h>

#include "src/base/lane.h"
#include "src/base/timer.h"

struct http_connection;
struct http_server;
struct tls_channel;

enum { HTTP_PREFACE_SIZE = 24, PEER_TEXT_MAX = 64 /* of INET6_ADDRSTRLEN and a zone */ };

/* A protocol: http1_protocol, http2_protocol. None of these calls comes once the connection is
 * closing, but closed and destroy. Each may call http_connection_close. */
struct http_protocol {
    /* The state of a fresh connection, or NULL when it cannot be had. */
    void *(*create)(struct http_connection *connection);
    /* Optional: room for the next read; *ret_size 0 means the lane's shared buffer. */
    void (*room)(void *state, uint8_t **ret_data, size_t *ret_size);
    /* Optional: true when the next bytes belong to more than one place, known already, so that the
     * protocol is to read them itself; what came, 0 at the end of the input, a negative errno. */
    bool (*expects)(const void *state);
    ssize_t (*read_expected)(void *state, int fd);
    /* Bytes came, in the room that was offered or in the lane's buffer (HTTP/2: with the preface).
     */
    void (*receive)(void *state, const uint8_t *data, size_t size);
    /* The peer sends no more; reading has stopped. */
    void (*end_of_input)(void *state);
    /* Everything that was handed to http_connection_write has been written; comes only after a
     * write that returned false. */
    void (*written)(void *state);
    /* The deadline of http_connection_set_deadline has passed. */
    void (*expire)(void *state);
    /* The server stops: end when idle. */
    void (*stop)(void *state);
    /* The connection is closed: http_exchange_end for every request that has not ended. */
    void (*closed)(void *state);
    /* No request refers to the connection any more. */
    void (*destroy)(void *state);
};

extern const struct http_protocol http1_protocol; /* http1_server.c */
extern const struct http_protocol http2_protocol; /* http2_server.c */

struct http_connection {
    uv_tcp_t tcp;
    struct http_server *server; /* NULL once closed */
    struct http_connection *next;
    struct http_connection *prev;
    const struct http_protocol *protocol; /* NULL while the first bytes are awaited */
    void *state;
    struct tls_channel *tls;    /* NULL: cleartext */
    struct lane_job tls_job;    /* reads on what the channel holds */
    uint64_t tls_charge;        /* what of the budget is held for it */
    uint64_t tls_input;         /* bytes that came until hands were shaken */
    struct timer timer;         /* fires at the earlier deadline, or before */
    uint64_t deadline_ns;       /* UINT64_MAX: none */
    uint64_t write_deadline_ns; /* while writes wait */
    size_t write_waiting_bytes; /* when write_deadline_ns was set */
    unsigned writes_waiting;
    unsigned refs; /* one for the socket, one for each request */
    uint8_t preface[HTTP_PREFACE_SIZE];
    uint8_t preface_size;
    bool is_reading;
    bool is_stopping; /* once what the socket holds already is read */
    bool is_closing;
    char peer[PEER_TEXT_MAX];
};

/* Takes over an accepted socket. On failure the socket is closed. */
void http_connection_open(struct http_server *server, int fd, const struct sockaddr *peer);
const struct http_server_settings *http_connection_settings(
    const struct http_connection *connection);

/* Writes what the socket takes at once and copies the rest for later. False: some of it waits, and
 * written() will come; stop producing until then. */
bool http_connection_write(struct http_connection *connection, uv_buf_t *parts, unsigned count);
/* True while a write waits for the peer. */
bool http_connection_is_blocked(const struct http_connection *connection);
/* Half-closes: the peer reads the end of input after what was written. No write may be waiting. */
void http_connection_shutdown(struct http_connection *connection);
/* Idempotent; a read that is under way ends when its callback returns. */
void http_connection_pause(struct http_connection *connection);
void http_connection_resume(struct http_connection *connection);
/* expire() comes this long from now, unless set anew; UINT64_MAX: never. Cheap when the deadline
 * only moves away. */
void http_connection_set_deadline(struct http_connection *connection, uint64_t delay_ns);
/* The server stops: what is idle ends. A request that is here, but not read yet, is answered first:
 * closing over it would reset the connection, and its sender could not know what became of it. */
void http_connection_stop(struct http_connection *connection);
/* Begins to close; closed() and the rest come from a later turn of the loop. Idempotent, legal
 * inside every callback. */
void http_connection_close(struct http_connection *connection);
/* The same for a peer that broke a rule: counted. */
void http_connection_abort(struct http_connection *connection);
bool http_connection_is_closing(const struct http_connection *connection);

/* Creates the protocol's state; false: the connection is closed instead. */
bool http_connection_choose(struct http_connection *connection,
                            const struct http_protocol *protocol);
/* For http_secure, which stands between the socket and the protocol. Where plaintext goes: */
void http_connection_room(struct http_connection *connection, uv_buf_t *ret_room);
/* Plaintext came, in that room; or no more comes. */
void http_connection_take(struct http_connection *connection, const uint8_t *data, size_t size);
void http_connection_end_input(struct http_connection *connection);
/* The end of each callback that gave input: stops what was only waiting for it. */
void http_connection_input_taken(struct http_connection *connection);
/* Hands are shaken: requests may come. protocol is what ALPN chose, or NULL: the first bytes do. */
void http_connection_begin(struct http_connection *connection,
                           const struct http_protocol *protocol);
/* http_connection_write for bytes that are what the socket gets. */
bool http_connection_send(struct http_connection *connection, uv_buf_t *parts, unsigned count);

/* For http_exchange: one reference per request. */
void http_connection_ref(struct http_connection *connection);
void http_connection_unref(struct http_connection *connection);
