/* SPDX-License-Identifier: Apache-2.0 */
/* The state of HTTP/1 on one connection, shared by its reading (http1_protocol.c) and its answering
 * (http1_answer.c). On the connection's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/lane.h"
#include "src/net/server/http1_chunks.h"
#include "src/net/server/http_server.h"

struct buffer;
struct http1_exchange;
struct http_connection;

enum http1_state {
    HTTP1_HEAD,      /* idle without an exchange, else its head is coming */
    HTTP1_HELD,      /* the handler has the request, its body has not been asked for */
    HTTP1_BODY,      /* the body is coming */
    HTTP1_ANSWERING, /* all of the request is here; the answer, or its writing, is awaited */
    HTTP1_DISCARD,   /* answered; the rest of a body is dropped */
    HTTP1_LINGER,    /* answered for the last time; waits for the peer to close */
};

struct http1 {
    struct http_connection *connection;
    struct lane *lane;
    struct http1_exchange *exchange; /* NULL: idle, discarding, lingering */
    enum http1_state state;
    bool is_writing;        /* the answer waits for the socket */
    bool is_stopping;       /* the server is */
    bool closes;            /* after this answer */
    bool is_chunked;        /* the present body */
    bool has_continued;     /* 100 Continue was sent, or is not expected */
    bool has_ended;         /* the peer sends no more */
    bool has_served;        /* this is not the first request */
    uint64_t body_left;     /* without chunks */
    uint64_t dropped_bytes; /* while lingering */
    uint64_t read_until_ns; /* the whole request must be here; UINT64_MAX: no such limit */
    uint64_t body_due_ns;   /* moves away as bytes come */
    struct http1_chunks chunks;
    struct buffer *stash;
    size_t stash_at;
    struct lane_job stash_job;
};

/* Is some of the present body still to come? */
bool http1_has_rest(const struct http1 *http1);
/* After the state has changed: goes on with what was stashed, from the end of the turn; reads only
 * when nothing is stashed; gives up when more is needed and none will come. */
void http1_settle(struct http1 *http1);
void http1_drop_stash(struct http1 *http1);
/* A request is over, answered, and its body gone. */
void http1_go_idle(struct http1 *http1);
/* Frees the exchange, by way of its handler if that has heard of it. */
void http1_end_exchange(struct http1_exchange *exchange);
/* Sends the answer to the present exchange and goes on from there. */
void http1_answer(struct http1 *http1, const struct http_response *response);
/* Answers what the handler does not hear of, a broken or late head, and closes. */
void http1_answer_plain(struct http1 *http1, unsigned status, const char *reason);
/* The answer has been written. */
void http1_finish_answer(struct http1 *http1);
