/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that have no key of their own in the configuration and that several folders use; others
 * are in a header of their folder. Sizes in bytes, times in nanoseconds. */
#pragma once

#include "src/base/clock.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

/* lanes */
enum {
    LANES_MAX = 64,
    LANE_JOBS_PER_TURN_MAX = 10000,
    /* After a stage has processed a request of this size, the lane serves its sockets first. */
    LANE_REST_BYTES_MIN = 256 * 1024,
    /* Requests that inflate to more than this are read by the lane's helper: the worst of them
     * would hold the lane for about 30 ms. */
    HELPED_BYTES_MIN = 1024 * 1024,
    HELPED_PROFILES_BYTES_MIN = 512 * 1024,
    /* Of Zipkin's and Jaeger's spans, of which each may be a byte that takes 300 ns. */
    HELPED_SPANS_BYTES_MIN = 64 * 1024,
    /* So are compressed requests of more than this: the slowest input takes 130 ns per byte, in
     * tables for blocks without content. */
    HELPED_CODED_BYTES_MAX = 128 * 1024,
    /* A request of more messages than this, on average this short, goes through the pipelines in
     * pieces of that many messages, one per turn. Real requests have 40 bytes per message. */
    DENSE_MESSAGES_MAX = 65536,
    DENSE_MESSAGE_BYTES_MAX = 16,
    /* The same for Profile messages. */
    DENSE_PROFILES_MAX = 8192,
    DENSE_PROFILE_BYTES_MAX = 64,
};
#define DENSE_REST_NS ((uint64_t)1 * NS_PER_MS) /* between the pieces */
/* Jobs, or tasks, that have held the lane for so long leave the next ones, and what is left of
 * their own work, for the next turn. A pipeline looks at the clock after so many bytes. */
#define LANE_JOB_NS     ((uint64_t)5 * NS_PER_MS)
#define LANE_LOOK_BYTES (16 * KIB)
/* An edit that still runs then leaves the request to the lane's helper, which begins it anew. */
#define LANE_EDIT_NS ((uint64_t)10 * NS_PER_MS)
/* Work of timers in one turn of the loop, after which sockets have theirs. */
#define TIMERS_TURN_NS ((uint64_t)5 * NS_PER_MS)

/* HTTP/1.1 and HTTP/2 servers */
enum {
    HTTP_HEADERS_MAX = 100,
    HTTP_HEADER_BYTES_MAX = 8192,
    HTTP_HEADER_BLOCK_BYTES_MAX = 16384,
    HTTP_TRAILER_BYTES_MAX = 4096,
    HTTP_CHUNK_EXTENSION_BYTES_MAX = 256,
    /* Rest of a body after its response: up to this, HTTP/1.1 keeps the connection, HTTP/2 the
     * stream. */
    HTTP_DISCARD_BYTES_MAX = 64 * 1024,
    HTTP1_LINGER_BYTES_MAX = 64 << 20,
    HTTP2_STREAMS_MAX = 100,
    HTTP2_STREAM_WINDOW_BYTES = 8 << 20,
    HTTP2_CONNECTION_WINDOW_BYTES = 24 << 20,
    HTTP2_REPLY_FREE_BYTES = 4096, /* a longer response is 503 if the budget has no room for it */
    HTTP2_EARLY_BYTES = 1 << 20,   /* of a held request; with more, its connection is not read */
    HTTP2_STREAMS_PER_CONNECTION_MAX = 1000000,
    HTTP2_RESETS_BURST = 200,
    HTTP2_RESETS_PER_S = 33,
    HTTP2_GLITCHES_BURST = 1000,
    HTTP2_GLITCHES_PER_S = 100,
    HTTP2_PING_STRIKES_MAX = 5,
    HTTP2_SETTINGS_BURST = 100,
    HTTP2_SETTINGS_PER_S = 10,
    HTTP2_SETTINGS_ENTRIES_MAX = 32,
    /* Frames of ours that may wait beside those of open requests. A few are free; refusals of
     * streams are written when half of them wait, so that streams that are refused together for
     * lack of budget do not end the connection. Then as many more, charged in steps, as the bursts
     * of resets and SETTINGS together can cause, and some. */
    HTTP2_WAITING_FREE = 32,
    HTTP2_WAITING_MAX = 512,
    HTTP2_WAITING_STEP = 64,
    HTTP2_WAITING_PER_REQUEST = 3, /* WINDOW_UPDATE, HEADERS, RST_STREAM */
    HTTP2_CONTINUATIONS_MAX = 8,
    /* Of a header block, in fields that nobody reads (of refused streams, trailers): with HPACK a
     * byte stands for a field of 4 KiB. More of them end the connection, also of a client. */
    HTTP2_UNREAD_FIELDS_BYTES_MAX = 64 * 1024,
    /* Charged per byte of a table of header fields, as RFC 7541 §4.1 counts them: of the client's
     * fields (one with a name of a byte and no value counts 33 and takes nghttp2 224), and of
     * responses, which are longer. */
    HTTP2_TABLE_FACTOR = 7,
    HTTP2_OWN_TABLE_FACTOR = 4,
    CONNECTIONS_MAX = 10000,
    LANE_READ_BYTES = 256 * 1024,      /* one read buffer per lane */
    HTTP1_HEAD_READ_BYTES = 16 * 1024, /* the part for HTTP/1.1 request heads */
    BODY_RATE_MIN_BYTES_PER_S = 1024,
};
/* Charged per connection: its struct, and HTTP/1's with one exchange and the receiver's; for
 * HTTP/2, nghttp2's session and ours (10 KiB), and the page of its frame buffer that is in use. */
#define HTTP_CONNECTION_BYTES (5 * KIB / 2)
#define HTTP2_SESSION_BYTES   (14 * KIB)
/* A server of probes may take so much beyond an exhausted budget: some twenty clients with TLS, or
 * a hundred without. */
#define HTTP_PROBES_BYTES MIB
/* Charged per stream beside its struct: memory of nghttp2 and the handler. */
#define HTTP2_STREAM_OTHER_BYTES (5 * KIB)
/* A waiting RST_STREAM and the stream that nghttp2 keeps with it. */
#define HTTP2_WAITING_BYTES        ((uint64_t)768)
#define HTTP_HEADER_DEADLINE_NS    ((uint64_t)10 * NS_PER_S)
#define HTTP1_IDLE_NS              ((uint64_t)60 * NS_PER_S)
#define HTTP_TURN_NS               ((uint64_t)5 * NS_PER_MS) /* for requests that came together */
#define HTTP1_LINGER_NS            ((uint64_t)1 * NS_PER_S) /* half-closed: for the peer to close */
#define HTTP1_LINGER_BODY_NS       ((uint64_t)5 * NS_PER_S) /* … while it still sends a body */
#define HTTP2_IDLE_NS              ((uint64_t)300 * NS_PER_S)
#define BODY_GRACE_NS              ((uint64_t)10 * NS_PER_S)
#define HTTP_STOP_READ_NS          ((uint64_t)10 * NS_PER_S) /* for bodies, once the server stops */
#define WRITE_STALL_NS             ((uint64_t)30 * NS_PER_S)
#define HTTP_STOP_WRITE_NS         ((uint64_t)5 * NS_PER_S) /* the same, once the server stops */
#define HTTP2_PING_INTERVAL_MIN_NS ((uint64_t)10 * NS_PER_S)
#define HTTP2_WINDOW_STALL_NS      ((uint64_t)5 * NS_PER_S) /* responses wait for window */
#define HTTP2_DRAIN_PING_NS        ((uint64_t)1 * NS_PER_S) /* for the ACK after GOAWAY */
#define HTTP2_DISCARD_NS           ((uint64_t)1 * NS_PER_S) /* for the rest of a body */
#define HTTP2_REST_NS              ((uint64_t)1 * NS_PER_S) /* idle, then memory is returned */
#define HTTP2_LINGER_NS            ((uint64_t)1 * NS_PER_S) /* half-closed: for the last bytes */

/* TLS */
enum {
    TLS_FILE_BYTES_MAX = 4 << 20, /* a file of certificates */
    TLS_CHAIN_MAX = 16,           /* certificates that we send */
    TLS_AUTHORITIES_MAX = 10000,  /* certificates of one file of authorities */
    TLS_DEPTH_MAX = 8,            /* authorities between a peer's certificate and a trusted one */
    TLS_READ_BYTES = 64 * 1024,   /* ciphertext per read */
    TLS_FLIGHT_BYTES_MAX = 256 * 1024, /* our side of a handshake, certificates included */
    TLS_REPLIES_BYTES_MAX =
        16 * 1024,                   /* then, to KeyUpdate, waiting for a peer that does not read */
    TLS_WRITE_BYTES = 64 * 1024,     /* encrypted at a time, when the socket has taken the last */
    TLS_IDLE_BYTES_MAX = 64 * 1024,  /* records without data (KeyUpdate) between two with data */
    TLS_IDLE_RECORDS_PER_TURN = 256, /* … that are read in one turn; each takes 6 µs */
    TLS_HANDSHAKE_INPUT_MAX = 64 * 1024, /* from a client, before the handshake is complete */
    TLS_HANDSHAKES_PART = 4              /* all handshakes of a server share 1/4 of the budget */
};
#define TLS_CONNECTION_BYTES (32 * KIB) /* charged for OpenSSL's memory, half a record included */
#define TLS_HANDSHAKE_BYTES  (48 * KIB) /* the same during the handshake, plus its input */
#define TLS_HANDSHAKE_NS     ((uint64_t)10 * NS_PER_S)
#define TLS_CLIENT_CA_LOOK_NS                                                                      \
    ((uint64_t)1 * NS_PER_S) /* between checks of files of authorities                             \
                              */

/* inflating: at most RATIO : 1 beyond FREE bytes of output, which the Go collector accepts by
 * default, so that higher limits do not make small inputs expensive. zstd windows as in RFC 9659
 * (8 MiB) */
enum { INFLATE_RATIO_MAX = 200, ZSTD_WINDOW_LOG_MAX = 23 };
#define INFLATE_RATIO_FREE_BYTES (20 * MIB)

/* exporters */
enum {
    RESPONSE_BYTES_MAX = 64 * 1024,
    RESPONSE_HEADER_BYTES_MAX = 64 * 1024,
    /* Of each response's body, and its longest header, not charged to the budget: usual ones are
     * kept however full it is. */
    RESPONSE_FREE_BYTES = 4096
};
/* How much of a response body is discarded, and for how long, before its connection is closed. */
#define RESPONSE_DRAIN_BYTES_MAX  (4 * MIB)
#define RESPONSE_BODY_DEADLINE_NS ((uint64_t)10 * NS_PER_S)
#define CONNECT_TIMEOUT_NS        ((uint64_t)5 * NS_PER_S)
#define GRPC_CONNECT_TIMEOUT_NS   ((uint64_t)20 * NS_PER_S) /* until the back-end's SETTINGS */
#define HTTP2_PROBE_NS            ((uint64_t)20 * NS_PER_S) /* for a silent connection to respond */
/* Addresses of a back-end that are tried, and how long they are cached. */
enum { BACKEND_ADDRESSES_MAX = 16, BACKEND_REQUESTS_MAX = 10 };
#define BACKEND_ADDRESSES_KEEP_NS ((uint64_t)30 * NS_PER_S)

/* operation */
#define RETRY_AFTER_BUSY_NS ((uint64_t)1 * NS_PER_S)
#define SIGNAL_AGAIN_NS     ((uint64_t)1 * NS_PER_S) /* a signal repeated sooner is ignored */
#define DRAIN_DEADLINE_NS   ((uint64_t)30 * NS_PER_S)
