/* SPDX-License-Identifier: Apache-2.0 */
/* One kept connection to a cleartext HTTP/1.1 back-end, with at most one exchange on it: connects,
 * writes head and body parts without copying them, reads the answer. Its owner decides what to send
 * and whether to keep it. Runs on the owner's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

#include "src/base/timer.h"
#include "src/net/client/http_answer.h"

struct http1_connection;
struct lane;

struct http1_connection_events {
    /* result: 0, or a libuv error. */
    void (*on_connected)(struct http1_connection *connection, int result);
    /* `answer` is whole, or its head is (is_cut) and no more comes. */
    void (*on_answer)(struct http1_connection *connection);
    /* The exchange failed before the head of an answer was whole; or, on an idle connection, the
     * peer closed it. reason lives for the call. */
    void (*on_broken)(struct http1_connection *connection, const char *reason);
    /* An idle connection reached its time. */
    void (*on_idle_end)(struct http1_connection *connection);
    /* Its handle is closed; it is freed after this. */
    void (*on_closed)(struct http1_connection *connection);
};

enum http1_connection_state { HTTP1_CONNECTING, HTTP1_IDLE, HTTP1_BUSY, HTTP1_CLOSING };

struct http1_connection {
    /* the owner's */
    struct http1_connection *next;
    struct http1_connection *prev;
    void *owner;
    void *exchange;
    /* may be read */
    enum http1_connection_state state;
    bool is_reused;  /* an exchange was finished on it before this one */
    bool is_written; /* the whole request is out */
    bool has_heard;  /* a byte of this exchange's answer came */
    struct http_answer answer;
    /* private */
    const struct http1_connection_events *events;
    struct lane *lane;
    uv_tcp_t tcp;
    uv_connect_t connect;
    int connect_error;
    uv_write_t write;
    struct timer timer; /* connecting, reading a body, idle */
};

/* Begins to connect; every failure comes to on_connected, later. */
struct http1_connection *http1_connection_create(struct lane *lane, const struct sockaddr *address,
                                                 const struct http1_connection_events *events);
/* Sends a request over a connected, unused connection. What the buffers point to stays until the
 * answer is whole or the connection closed; the buffers themselves are used up. */
int http1_connection_send(struct http1_connection *connection, uv_buf_t *buffers, size_t count);
/* After an answer that keeps_alive: waits for the next exchange. timeout_ns 0: for ever. */
void http1_connection_rest(struct http1_connection *connection, uint64_t timeout_ns);
/* Nothing but on_closed follows, later. Closing twice is once. */
void http1_connection_close(struct http1_connection *connection);
