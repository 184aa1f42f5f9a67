/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server of one lane. Its handler sees no difference between HTTP/1.1 (RFC 9112) and
 * HTTP/2 (RFC 9113; over TLS, or in cleartext with prior knowledge). The handler gets a request
 * when its headers are complete; the body is charged to the budget before it is read. Implemented
 * in http_connection.c (the server) and http_exchange.c (requests). On the server's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/counter.h"
#include "src/base/slice.h"

struct buffer;
struct budget;
struct error;
struct http_server;
struct http_request;
struct lane;
struct tls_context;

/* Why a body could not be completed. The handler responds, in the form of its protocol. */
enum http_failure {
    HTTP_BODY_TOO_LARGE, /* more than max_bytes, declared or sent */
    HTTP_BODY_NO_BUDGET, /* the byte budget is exhausted: respond "try again later" */
    HTTP_BODY_MALFORMED, /* broken framing */
    HTTP_BODY_TOO_SLOW,  /* under the minimum rate, or past its deadline */
};

struct http_handler {
    /* The headers are complete. Calls http_request_read_body or http_respond, now or later; HTTP/2
     * data that arrives before that is refused (RST_STREAM with REFUSED_STREAM). */
    void (*on_request)(struct http_request *request, void *arg);
    /* The body is complete: http_request_body. Calls http_respond, now or later. */
    void (*on_body)(struct http_request *request, void *arg);
    /* The body failed. Calls http_respond before it returns. */
    void (*on_body_failed)(struct http_request *request, enum http_failure failure, void *arg);
    /* Optional, always the last call: response written, or client gone. The request is freed when
     * it returns. While the handler owns the request (from on_request, on_body or on_body_failed to
     * http_request_read_body or http_respond) a lost client is not reported; http_respond then only
     * calls on_end. */
    void (*on_end)(struct http_request *request, void *arg);
};

/* Of the servers of one lane. */
struct http_server_counters {
    counter connections_refused;
    counter connections_aborted;
    counter streams_reset;
};

/* Rows of a table of counters; field is a struct http_server_counters of owner. */
#define HTTP_SERVER_COUNTERS(owner, field)                                                         \
    COUNTER(owner, field.connections_refused, COUNTER_SUM,                                         \
            "spanflame_receiver_connections_refused",                                              \
            "Number of connections that were closed at once because too many were open, or no "    \
            "file descriptor or memory was left."),                                                \
        COUNTER(owner, field.connections_aborted, COUNTER_SUM,                                     \
                "spanflame_receiver_connections_aborted",                                          \
                "Number of connections that were closed because of malformed framing, abuse of "   \
                "the protocol or slowness."),                                                      \
        COUNTER(owner, field.streams_reset, COUNTER_SUM, "spanflame_receiver_streams_reset",       \
                "Number of HTTP/2 streams that were reset because of a malformed request, a "      \
                "header list that is too large, or one stream too many.")

struct http_server_settings {
    struct lane *lane;
    struct budget *budget;
    bool has_http1;
    bool has_http2;
    bool has_keep_alive;              /* HTTP/1.1: false closes after each response */
    uint64_t header_deadline_ns;      /* whole header block; 0: HTTP_HEADER_DEADLINE_NS */
    uint64_t read_deadline_ns;        /* whole request; 0: none but the minimum rate */
    uint64_t write_deadline_ns;       /* 0: WRITE_STALL_NS without progress */
    uint64_t idle_ns;                 /* HTTP/1.1, between requests; 0: HTTP1_IDLE_NS */
    uint64_t streams_max;             /* HTTP/2, per connection */
    uint64_t connection_idle_max_ns;  /* HTTP/2: without streams, then GOAWAY; 0: HTTP2_IDLE_NS */
    uint64_t connection_age_max_ns;   /* HTTP/2: GOAWAY after so long, ±10 %; 0: never */
    uint64_t connection_age_grace_ns; /* then the streams have so long; 0: for ever */
    uint64_t ping_interval_min_ns;    /* HTTP/2: faster pings are strikes */
    struct tls_context *tls; /* NULL: cleartext; of the server's lane, outlives the server */
    struct http_server_counters *counters; /* NULL: not counted */
    const struct http_handler *handler;
    void *arg;
};

struct http_server *http_server_create(const struct http_server_settings *settings);
/* Must have stopped, or never had a connection. NULL is a no-op. */
void http_server_destroy(struct http_server *server);
/* Listens on endpoint ("localhost:4318", ":4318", "0.0.0.0:0", "[::1]:4318" for the transports
 * "tcp", "tcp4", "tcp6"; a path for "unix") and distributes connections round robin to the servers,
 * one per lane; servers[0], on the calling lane, owns the listener. The error names endpoint and
 * reason as Go does: "listen tcp 127.0.0.1:4317: bind: address already in use". */
bool http_server_listen(struct http_server *const *servers, size_t count, const char *transport,
                        const char *endpoint, struct error *error);
/* "127.0.0.1:4318": the bound address (port 0 resolved). Valid while listening. */
const char *http_server_address(const struct http_server *server);
/* Stops accepting, closes idle connections (GOAWAY on HTTP/2), lets exchanges finish, then calls
 * done(arg) once, in a later turn of the loop. Allowed without having listened. */
void http_server_stop(struct http_server *server, void (*done)(void *arg), void *arg);
/* Closes every connection now; done of http_server_stop is still called, in a later turn. */
void http_server_abort(struct http_server *server);
/* Totals since the server was created. */
struct http_server_figures {
    uint64_t connections;
    uint64_t connections_total;
    uint64_t refused_total; /* over CONNECTIONS_MAX, or no file descriptor left */
    uint64_t requests_total;
    uint64_t handshakes_failed_total;
    uint64_t aborted_total; /* closed because of abuse, slowness or malformed framing */
    uint64_t reset_total;   /* HTTP/2 streams reset by us with an error */
};
struct http_server_figures http_server_figures(const struct http_server *server);

/* The request line. Slices are valid until http_respond. */
struct slice http_request_method(const struct http_request *request);
/* Path without query, as sent. */
struct slice http_request_path(const struct http_request *request);
struct slice http_request_query(const struct http_request *request);
/* The first header of that lower-case name; data is NULL if there is none. */
struct slice http_request_header(const struct http_request *request, const char *name);
/* The index-th header in order, without pseudo-headers, its name in lower case; false after the
 * last. */
bool http_request_header_at(const struct http_request *request, size_t index,
                            struct slice *ret_name, struct slice *ret_value);
struct slice http_request_host(const struct http_request *request);
/* Content-Length, or UINT64_MAX if it is not known. */
uint64_t http_request_size_declared(const struct http_request *request);
/* "127.0.0.1", or "" for a unix socket. */
const char *http_request_peer_address(const struct http_request *request);
bool http_request_is_http2(const struct http_request *request);
/* True once the client has gone. */
bool http_request_is_gone(const struct http_request *request);
void http_request_set_context(struct http_request *request, void *context);
void *http_request_context(const struct http_request *request);

/* How to read the body into one buffer, charged before it is read (its declared size, or growing
 * with the input). */
struct http_body_plan {
    uint64_t max_bytes;
    struct budget *budget; /* NULL: the server's */
    /* Optional: on_peek gets the first peek_bytes and returns the size of the whole body that they
     * announce (0: unknown), or calls http_respond. */
    size_t peek_bytes;
    uint64_t (*on_peek)(struct http_request *request, const uint8_t *data, void *arg);
};
/* In on_request, for what has to be known first: keeps the request, until http_request_again calls
 * on_request again, or ends it if its client has gone. Of HTTP/2, data that arrives meanwhile is
 * kept, charged to the budget, and more than HTTP2_EARLY_BYTES waits in the socket. The server does
 * not stop before. */
struct http_server *http_request_hold(struct http_request *request);
/* From the loop, with the server that http_request_hold has returned. */
void http_request_again(struct http_request *request, struct http_server *server);
/* May call on_body or on_body_failed, and end the request, before it returns. */
void http_request_read_body(struct http_request *request, const struct http_body_plan *plan);
/* The body, from on_body until http_respond; take a reference to keep it longer. */
struct buffer *http_request_body(const struct http_request *request);

struct http_header {
    const char *name; /* lower case */
    const char *value;
};

enum { HTTP_RESPONSE_HEADERS_MAX = 18, HTTP_COMMON_HEADERS_MAX = 64 };

/* Headers that all responses of a server have: at most HTTP_COMMON_HEADERS_MAX. */
struct http_common_headers {
    const struct http_header *rows;
    size_t count;
};

struct http_response {
    unsigned status;
    struct http_header headers[HTTP_RESPONSE_HEADERS_MAX]; /* up to the first without name */
    struct http_common_headers common; /* those not in headers; Vary, a list, in any case */
    struct slice body;                 /* copied, unless it has a release */
    /* Optional, for a long body: it is not copied but read, piece by piece, as the client takes it,
     * and then released, once: on the lane, also if nothing was sent, maybe before http_respond
     * returns. Without trailers. */
    void (*release)(void *arg);
    void *release_arg;
    struct http_header trailers[4]; /* HTTP/2 only; without a body: gRPC's "trailers-only" */
    bool closes;                    /* HTTP/1.1: close the connection afterwards */
    bool is_stream; /* the body has no end yet and is sent in pieces, by http_stream_send */
};
/* Sends the response, exactly once; do not use the request afterwards, except in on_end. The server
 * adds Content-Length, Date and Connection. The rest of an unread body is discarded up to a limit,
 * else the connection closes. A stream stays the handler's until http_stream_end; a lost client is
 * not reported before that. The method is not HEAD, and body and trailers are empty. */
void http_respond(struct http_request *request, const struct http_response *response);
/* Sends a piece of a stream. False: nothing is sent, since the client has gone, or has not yet
 * taken the pieces before: so no more than one waits. The piece is copied; it is not empty. */
bool http_stream_send(struct http_request *request, struct slice piece)
    __attribute__((warn_unused_result));
/* Ends a stream, and the request as http_respond does: as a whole response, or (when the client is
 * too slow to take its end) by closing it. */
void http_stream_end(struct http_request *request, bool is_whole);
