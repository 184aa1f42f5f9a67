/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the HTTP server: a server, its accepted connections, and what a protocol does for a
 * connection. The first bytes, or ALPN, choose between HTTP/1 (http1_server.c) and HTTP/2
 * (http2_server.c). Only for src/net/server. On the server's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <sys/socket.h>
#include <uv.h>

#include "src/base/lane.h"
#include "src/base/timer.h"
#include "src/net/server/http_server.h"
#include "src/net/socket/listener.h"

struct budget;
struct http_connection;
struct plain_rest;
struct tls_channel;

enum {
    PEER_TEXT_MAX = 64, /* INET6_ADDRSTRLEN and a zone */
    /* So much of a response is written at once, and by a connection before others get their turn:
     * what the socket does not take is copied, and with TLS all of it is encrypted. */
    HTTP_PIECE_BYTES = 256 << 10,
    HTTP_TURN_BYTES = 1 << 20,
    HTTP_DATE_SIZE = 30,
};

struct http_server {
    struct http_server_settings settings;
    struct listener_member member;
    struct http_connection *connections;
    struct http_server_figures figures;
    uint8_t *read_buffer; /* LANE_READ_BYTES, shared by all connections; allocated for the first */
    uint8_t *cipher_buffer;     /* TLS_READ_BYTES, the same for those with TLS */
    uint64_t handshakes_charge; /* to the budget, of connections whose handshake is not done */
    unsigned held;              /* requests that are held */
    time_t date_second;         /* of date_text */
    char date_text[HTTP_DATE_SIZE];
    bool is_stopping;
    bool is_done;
    struct lane_job done_job;
    void (*done)(void *arg);
    void *done_arg;
};

/* Counts a connection closed because of its peer, and a stream reset with an error. */
void http_server_count_abort(struct http_server *server);
void http_server_count_reset(struct http_server *server);
/* A request is not held any more. */
void http_server_release(struct http_server *server);
/* The value of the Date header; formatted once per second. */
const char *http_server_date(struct http_server *server);

/* What a protocol does. Once the connection is closing only closed and destroy are called. Each may
 * call http_connection_close. */
struct http_protocol {
    /* The state of a new connection; NULL: no memory, or no budget. */
    void *(*create)(struct http_connection *connection);
    /* Optional: where to read to; *ret_size 0 means the lane's shared buffer. */
    void (*room)(void *state, uint8_t **ret_data, size_t *ret_size);
    /* Optional: true when the protocol is to read itself, because it knows of more than one place
     * for the next bytes. Returns their number, 0 at the end of input, or a negative errno. */
    bool (*expects)(const void *state);
    ssize_t (*read_expected)(void *state, int fd);
    /* Bytes were read, to room or to the lane's buffer (HTTP/2: including the preface). */
    void (*receive)(void *state, const uint8_t *data, size_t size);
    /* The peer has half-closed; reading has stopped. */
    void (*end_of_input)(void *state);
    /* All waiting output is written; called only after http_connection_write returned false. */
    void (*written)(void *state);
    /* The deadline of http_connection_set_deadline has passed. */
    void (*expire)(void *state);
    /* The server stops: close once idle. */
    void (*stop)(void *state);
    /* The connection is closed: call http_exchange_end for every request that has not ended. */
    void (*closed)(void *state);
    /* No request refers to the connection any more. */
    void (*destroy)(void *state);
};

extern const struct http_protocol http1_protocol; /* http1_server.c */
extern const struct http_protocol http2_protocol; /* http2_server.c */

struct http_connection {
    uv_tcp_t tcp;
    struct http_server *server; /* NULL once closed */
    struct budget *budget;      /* the server's, charged for this; NULL: none */
    struct http_connection *next;
    struct http_connection *prev;
    const struct http_protocol *protocol; /* NULL until the first bytes have chosen it */
    void *state;
    struct tls_channel *tls;    /* NULL: cleartext */
    struct lane_job tls_job;    /* continues with input that the channel holds */
    uint64_t tls_charge;        /* to the server's budget */
    uint64_t tls_input;         /* bytes received during the handshake */
    struct plain_rest *rest;    /* plaintext that waits for the socket; NULL: none */
    struct timer timer;         /* fires at the earlier deadline, or before */
    uint64_t deadline_ns;       /* UINT64_MAX: none */
    uint64_t write_deadline_ns; /* while writes wait */
    uint64_t write_until_ns;    /* of a response in several writes; UINT64_MAX: none */
    size_t write_waiting_bytes; /* when write_deadline_ns was set */
    unsigned writes_waiting;
    unsigned refs;        /* one for the socket, one for each request */
    uint8_t preface_size; /* bytes of the HTTP/2 preface received so far */
    bool is_reading;      /* not paused; with TLS the socket may have to wait for kept input */
    bool is_stopping;     /* after reading what is in the socket */
    bool is_closing;
    char peer[PEER_TEXT_MAX];
};

const struct http_server_settings *http_connection_settings(
    const struct http_connection *connection);

/* Writes what the socket takes at once and copies the rest for later. False: some of it waits; stop
 * producing output until written() is called. */
bool http_connection_write(struct http_connection *connection, uv_buf_t *parts, unsigned count);
/* True while a write waits for the peer. */
bool http_connection_is_blocked(const struct http_connection *connection);
/* Half-closes the connection. No write may be waiting. */
void http_connection_shutdown(struct http_connection *connection);
/* Idempotent; a read under way ends when its callback returns. */
void http_connection_pause(struct http_connection *connection);
void http_connection_resume(struct http_connection *connection);
/* Calls expire() after delay_ns unless set again; UINT64_MAX: never. Cheap when the deadline only
 * moves later. */
void http_connection_set_deadline(struct http_connection *connection, uint64_t delay_ns);
/* Starts to close; closed() and the rest follow in a later turn of the loop. Idempotent, allowed in
 * every callback. */
void http_connection_close(struct http_connection *connection);
/* The same, counted, for a peer that broke a rule. */
void http_connection_abort(struct http_connection *connection);
bool http_connection_is_closing(const struct http_connection *connection);
/* One reference per request, for http_exchange. */
void http_connection_ref(struct http_connection *connection);
void http_connection_unref(struct http_connection *connection);

/* server_tls.c sits between the socket and the protocol, and calls these. Where plaintext is to go:
 */
void http_connection_room(struct http_connection *connection, uv_buf_t *ret_room);
/* Plaintext is in that room; or the input has ended. */
void http_connection_take(struct http_connection *connection, const uint8_t *data, size_t size);
void http_connection_end_input(struct http_connection *connection);
/* At the end of each callback with input: stops a connection that only had to read this first. */
void http_connection_input_taken(struct http_connection *connection);
/* Begins to read requests. protocol is ALPN's choice; NULL: the first bytes choose. */
void http_connection_begin(struct http_connection *connection,
                           const struct http_protocol *protocol);
/* Reads the socket, which may be read already. May close the connection. */
void http_connection_read_on(struct http_connection *connection);
/* http_connection_write without encryption. */
bool http_connection_send(struct http_connection *connection, uv_buf_t *parts, unsigned count);

/* TLS of a connection, in server_tls.c. */

/* Starts the handshake. May close the connection. Memory is charged to the server's budget; all
 * unauthenticated handshakes share TLS_HANDSHAKES_PART of it. */
void server_tls_begin(struct http_connection *connection);
/* Ciphertext was read. */
void server_tls_receive(struct http_connection *connection, const uint8_t *data, size_t size);
/* Like http_connection_write. Encrypts as much as the socket takes, and keeps the rest: charged,
 * and only while a write waits. */
bool server_tls_write(struct http_connection *connection, uv_buf_t *parts, unsigned count);
/* Writes waiting ciphertext, then plaintext. False: some still waits, or the connection is closing.
 */
bool server_tls_flush(struct http_connection *connection);
/* Sends close_notify. Returns the same. */
bool server_tls_end(struct http_connection *connection);
/* Reading continues: decrypts what was read before the pause, and then reads on. False: there is
 * none. */
bool server_tls_resume(struct http_connection *connection);
bool server_tls_has_input(const struct http_connection *connection);
/* The deadline passed before the protocol was known. */
void server_tls_expire(struct http_connection *connection);
/* The socket is closed: frees the channel and its charge. A no-op in cleartext. */
void server_tls_closed(struct http_connection *connection);
/* The socket is about to close: sends close_notify if it can be written at once. */
void server_tls_close(struct http_connection *connection);
