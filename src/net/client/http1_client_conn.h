/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to a cleartext HTTP/1.1 back-end, with at most one exchange at a time: connects,
 * writes the parts of head and body without copying, reads the response. The owner decides what to
 * send and whether to keep the connection. On the owner's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

#include "src/base/timer.h"
#include "src/net/client/http1_response_parser.h"

struct budget;
struct http1_client_conn;
struct lane;

struct http1_client_conn_events {
    /* result: 0, or a libuv error. */
    void (*on_connected)(struct http1_client_conn *connection, int result);
    /* The response is complete, or its head is and the body was cut (is_cut). */
    void (*on_response)(struct http1_client_conn *connection);
    /* The exchange failed before the head of a response was complete; or the peer closed an idle
     * connection. reason is valid during the call. */
    void (*on_broken)(struct http1_client_conn *connection, const char *reason);
    /* The idle timeout has passed. */
    void (*on_idle_end)(struct http1_client_conn *connection);
    /* The handle is closed; the connection is freed after this. */
    void (*on_closed)(struct http1_client_conn *connection);
};

enum http1_client_conn_state { HTTP1_CONNECTING, HTTP1_IDLE, HTTP1_BUSY, HTTP1_CLOSING };

struct http1_client_conn {
    /* the owner's */
    struct http1_client_conn *next;
    struct http1_client_conn *prev;
    void *owner;
    void *exchange;
    /* may be read */
    enum http1_client_conn_state state;
    bool is_reused;  /* this is not the first exchange */
    bool is_written; /* the whole request is written */
    bool has_heard;  /* a byte of the response was received */
    struct http1_response response;
    /* private */
    const struct http1_client_conn_events *events;
    struct lane *lane;
    uv_tcp_t tcp;
    uv_connect_t connect;
    int connect_error;
    uv_write_t write;
    struct timer timer; /* connecting, reading a body, idle */
};

/* Starts to connect; failures are reported by on_connected, later. budget: as http1_response_init
 * has it. */
struct http1_client_conn *http1_client_conn_create(struct lane *lane, struct budget *budget,
                                                   const struct sockaddr *address,
                                                   const struct http1_client_conn_events *events);
/* Sends a request on a connected, idle connection. What the buffers point to must stay until the
 * response is complete or the connection closed; the array of buffers is modified. sink gets the
 * body of a response with status 2xx, for which there is no deadline but the exchange's then.
 * noted: headers of the response that are noted (response_notes.h); NULL: none. Returns 0, or a
 * libuv error. */
int http1_client_conn_send(struct http1_client_conn *connection, uv_buf_t *buffers, size_t count,
                           const struct response_sink *sink, const char *const *noted);
/* After a response that keeps_alive: idles until the next exchange. timeout_ns 0: for ever. */
void http1_client_conn_rest(struct http1_client_conn *connection, uint64_t timeout_ns);
/* Only on_closed is called after this, later. Idempotent. */
void http1_client_conn_close(struct http1_client_conn *connection);
