/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP/2 connection of a client (RFC 9113, prior knowledge or ALPN): several requests in
 * flight, bodies sent without copying, keepalive pings, GOAWAY. Its owner decides what to send and
 * when to open another connection. Runs on the owner's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <nghttp2/nghttp2.h>

#include "src/base/slice.h"

struct batch_part;
struct budget;
struct http2_client;
struct http2_client_stream;
struct lane;
struct tls_context;

struct http2_keepalive {
    uint64_t time_ns;    /* silence after which a ping is sent; 0: never */
    uint64_t timeout_ns; /* from the ping to the next byte received */
    bool permit_without_stream;
};

/* Any of these may submit, cancel and close. */
struct http2_client_events {
    /* The peer's SETTINGS were received: requests may be submitted. */
    void (*on_ready)(struct http2_client *client);
    /* A stream ended, or the peer allows more streams. */
    void (*on_room)(struct http2_client *client);
    /* GOAWAY: requests under way may finish, new ones are refused. */
    void (*on_draining)(struct http2_client *client, bool has_too_many_pings);
    /* Connecting failed, or the connection broke or is drained. All its streams have ended. Called
     * once; reason is valid during the call. */
    void (*on_end)(struct http2_client *client, const char *reason);
    /* The client is freed after this. */
    void (*on_closed)(struct http2_client *client);
};

struct http2_client_settings {
    struct lane *lane;
    struct budget *budget; /* as the socket has it */
    const struct sockaddr *address;
    uint64_t connect_timeout_ns; /* for connecting, and again for the peer's SETTINGS */
    struct tls_context *tls;     /* NULL: cleartext */
    const char *server_name;     /* with TLS: the name in the server's certificate */
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
    HTTP2_STREAM_COMPLETE,    /* the response is complete */
    HTTP2_STREAM_RESET,       /* by the peer, or by us for a protocol error */
    HTTP2_STREAM_UNPROCESSED, /* the peer has not processed it: it may be sent again */
    HTTP2_STREAM_BROKEN,      /* the connection broke */
};

struct http2_stream_events {
    void (*on_header)(void *arg, struct slice name, struct slice value);
    /* A header block is complete: the first is the response's, the second its trailers. */
    void (*on_headers_end)(void *arg);
    void (*on_data)(void *arg, struct slice data);
    /* The last call. code is of RST_STREAM; reason, of a broken connection, is valid during the
     * call. */
    void (*on_end)(void *arg, enum http2_stream_end end, uint32_t code, const char *reason);
};

enum { HTTP2_REQUEST_PREFIX_MAX = 8 };

struct http2_request {
    const nghttp2_nv *headers; /* copied */
    size_t headers_count;
    struct slice prefix;            /* copied; sent before the parts */
    const struct batch_part *parts; /* copied, with references to their owners */
    size_t parts_count;
    const struct http2_stream_events *events;
    void *arg;
};

/* Starts to connect; failures are reported by on_end, later. NULL: no memory. */
struct http2_client *http2_client_create(const struct http2_client_settings *settings);
struct http2_client_owner *http2_client_owner(struct http2_client *client);
/* Whether a request can be submitted: ready, not draining, and the peer allows one more stream. */
bool http2_client_has_room(const struct http2_client *client);
/* Requires http2_client_has_room. NULL: no memory. */
struct http2_client_stream *http2_client_submit(struct http2_client *client,
                                                const struct http2_request *request);
/* Resets the stream; none of its events is called any more. */
void http2_client_cancel(struct http2_client_stream *stream);
/* Sends a ping unless one is under way; ends the connection if no ACK arrives. */
void http2_client_probe(struct http2_client *client);
/* Takes no new requests, and ends after those under way; at once if not ready yet. */
void http2_client_drain(struct http2_client *client);
/* Ends all streams (HTTP2_STREAM_BROKEN with reason); then only on_closed is called, later.
 * Idempotent. */
void http2_client_close(struct http2_client *client, const char *reason);
