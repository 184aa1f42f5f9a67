/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP/2 connection of a client (RFC 9113, prior knowledge or ALPN): several requests in
 * flight, bodies sent from where they lie, keepalive pings, GOAWAY. Its owner decides what goes on
 * it and when to open another one. Runs on the owner's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <nghttp2/nghttp2.h>

#include "src/base/slice.h"

struct batch_part;
struct http2_client;
struct http2_client_stream;
struct lane;
struct tls_context;

struct http2_keepalive {
    uint64_t time_ns;    /* silence after which a ping asks whether the peer lives; 0: never */
    uint64_t timeout_ns; /* what then may pass until a byte comes */
    bool permit_without_stream;
};

/* Any of these may submit, cancel and close. */
struct http2_client_events {
    /* The peer's SETTINGS came: requests may be submitted. */
    void (*on_ready)(struct http2_client *client);
    /* A stream ended, or the peer allows more of them. */
    void (*on_room)(struct http2_client *client);
    /* GOAWAY: requests under way may finish, new ones are not taken. */
    void (*on_draining)(struct http2_client *client, bool has_too_many_pings);
    /* It could not be connected, or it broke, or it is drained. All its streams have ended. reason
     * lives for the call. Comes once. */
    void (*on_end)(struct http2_client *client, const char *reason);
    /* It is freed after this. */
    void (*on_closed)(struct http2_client *client);
};

struct http2_client_settings {
    struct lane *lane;
    const struct sockaddr *address;
    uint64_t connect_timeout_ns; /* up to the stream, and again up to the peer's SETTINGS */
    struct tls_context *tls;     /* NULL: cleartext */
    const char *server_name;     /* with TLS: whom the server must prove to be */
    struct http2_keepalive keepalive;
    const struct http2_client_events *events;
};

/* Fields of its owner's own. */
struct http2_client_owner {
    struct http2_client *next;
    struct http2_client *prev;
    void *arg;
    void *place;
};

enum http2_stream_end {
    HTTP2_STREAM_COMPLETE,    /* the answer is whole */
    HTTP2_STREAM_RESET,       /* by the peer, or by us for a breach of protocol */
    HTTP2_STREAM_UNPROCESSED, /* the peer has not looked at it: it may be sent again */
    HTTP2_STREAM_BROKEN,      /* the connection went away below it */
};

struct http2_stream_events {
    void (*on_header)(void *arg, struct slice name, struct slice value);
    /* A block of headers is whole: the first is the answer's, the second its trailers. */
    void (*on_headers_end)(void *arg);
    void (*on_data)(void *arg, struct slice data);
    /* code: of RST_STREAM. reason: of a broken connection, for the call. Nothing follows. */
    void (*on_end)(void *arg, enum http2_stream_end end, uint32_t code, const char *reason);
};

enum { HTTP2_REQUEST_PREFIX_MAX = 8 };

struct http2_request {
    const nghttp2_nv *headers; /* copied */
    size_t headers_count;
    struct slice prefix;            /* copied; stands before the parts */
    const struct batch_part *parts; /* copied, with references to their owners */
    size_t parts_count;
    const struct http2_stream_events *events;
    void *arg;
};

/* Begins to connect; every failure comes to on_end, later. */
struct http2_client *http2_client_create(const struct http2_client_settings *settings);
struct http2_client_owner *http2_client_owner(struct http2_client *client);
/* Whether a request can be submitted now: it is ready, not draining, and the peer allows one more.
 */
bool http2_client_has_room(const struct http2_client *client);
/* Only with room. NULL when there is no memory. */
struct http2_client_stream *http2_client_submit(struct http2_client *client,
                                                const struct http2_request *request);
/* Resets the stream; nothing follows, neither on_end. */
void http2_client_cancel(struct http2_client_stream *stream);
/* Asks with a ping whether the peer lives, unless one is on its way; ends the connection if not. */
void http2_client_probe(struct http2_client *client);
/* Takes no new requests and ends when those under way have; at once when it is not ready yet. */
void http2_client_drain(struct http2_client *client);
/* Ends all streams (HTTP2_STREAM_BROKEN with reason); only on_closed follows, later. Closing twice
 * is once. */
void http2_client_close(struct http2_client *client, const char *reason);
