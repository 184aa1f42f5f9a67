/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the HTTP/2 client share: the connection (http2_client.c), its streams with
 * nghttp2's callbacks (http2_client_stream.c) and what goes out next (http2_client_output.c). On
 * the owner's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/lane.h"
#include "src/core/batch.h"
#include "src/net/client/client_socket.h"
#include "src/net/client/http2_client.h"

enum {
    HTTP2_FRAME_HEAD_BYTES = 9,
    HTTP2_FRAME_BYTES_MAX = HTTP2_FRAME_HEAD_BYTES + 16384, /* no peer's larger limit is used */
    HTTP2_OUTPUT_BYTES = 4 * HTTP2_FRAME_BYTES_MAX,
    HTTP2_OUTPUT_PARTS = 256,
    HTTP2_COPY_BYTES_MAX = 256, /* less is cheaper to copy than to point to */
};

/* One write: frame heads and small parts in `bytes`, large parts where they lie. */
struct http2_output {
    size_t used; /* of bytes */
    size_t parts_count;
    bool is_full; /* a DATA frame has to wait for the next write */
    struct batch_part parts[HTTP2_OUTPUT_PARTS];
    uint8_t bytes[HTTP2_OUTPUT_BYTES];
};

struct http2_client_stream {
    struct http2_client *client;
    int32_t id;
    struct http2_client_stream *next; /* in client->streams, until nghttp2 forgets it */
    struct http2_client_stream *prev;
    const struct http2_stream_events *events; /* NULL: its end has been told, or nobody cares */
    void *arg;
    bool is_sent;  /* its HEADERS have left us: the peer may know it */
    uint64_t left; /* bytes of the body that have not been written */
    size_t at;     /* the part that holds the next of them … */
    size_t offset; /* … and where in it */
    size_t parts_count;
    struct batch_part *parts;
    uint8_t prefix[HTTP2_REQUEST_PREFIX_MAX];
};

enum http2_client_state {
    HTTP2_CLIENT_CONNECTING,
    HTTP2_CLIENT_GREETING, /* connected, the peer's SETTINGS are awaited */
    HTTP2_CLIENT_READY,
    HTTP2_CLIENT_DRAINING,
    HTTP2_CLIENT_ENDED, /* on_end was called */
    HTTP2_CLIENT_CLOSING,
};

struct http2_client {
    struct http2_client_owner owner;
    struct lane *lane;
    const struct http2_client_events *events;
    struct http2_keepalive keepalive;
    uint64_t greeting_timeout_ns;
    enum http2_client_state state;
    struct client_socket *socket;
    nghttp2_session *nghttp2;
    struct http2_client_stream *streams;
    size_t streams_count;
    struct http2_output *output;         /* while nghttp2 is asked for it */
    struct http2_client_stream *stalled; /* nghttp2 has begun a frame of it that waits for room */
    struct lane_job job;                 /* writes what this turn has produced */
    struct timer timer;                  /* greeting, then keepalive */
    uint64_t heard_ns;                   /* when a byte last came */
    uint64_t asked_ns;       /* when the ping that waits for one was sent; 0: none waits */
    const char *failure;     /* why nghttp2 gives up; constant text */
    bool is_blocked;         /* the socket takes no more for now */
    bool has_too_many_pings; /* the peer says so in GOAWAY */
    bool has_goaway;         /* noted inside a callback of nghttp2 */
    bool has_news;           /* a stream ended, or SETTINGS came: told once nghttp2 has returned */
    bool is_secure;          /* over TLS */
    bool has_heard;
};

/* Makes client->nghttp2. 0, or an error of nghttp2. */
int http2_client_session_create(struct http2_client *client);
/* Tells the stream's end, once. */
void http2_client_stream_finish(struct http2_client_stream *stream, enum http2_stream_end end,
                                uint32_t code, const char *reason);
/* nghttp2 has forgotten the stream, or is gone. */
void http2_client_stream_free(struct http2_client_stream *stream);
/* Something was submitted: it is written at the end of this turn. */
void http2_client_flush_later(struct http2_client *client);

/* Fills the output with what nghttp2 has to say. 0, or a fatal error of nghttp2. */
int http2_client_output_gather(struct http2_client *client, struct http2_output *output);
/* nghttp2's send_data callback: one DATA frame of the stream's body. */
int http2_client_output_data(struct http2_client_stream *stream, const uint8_t *head, size_t size);
