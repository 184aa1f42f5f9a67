/* SPDX-License-Identifier: Apache-2.0 */
/* A gRPC back-end on loopback that responds to its n-th call with the n-th step of a script (the
 * last step again and again). It lives on the loop of the lane under test, so that a test turns
 * both by hand. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct grpc_backend;
struct lane;

enum { GRPC_BACKEND_TEXT_MAX = 4096 };

struct grpc_backend_step {
    const char *http_status;  /* NULL: 200 */
    const char *content_type; /* NULL: application/grpc; "": none */
    const char *encoding;     /* grpc-encoding; NULL: none */
    const void *data;         /* with its prefix; NULL: an empty message, unless trailers only */
    size_t data_size;
    size_t data_repeated;  /* data is sent so often in all; 0: once */
    const char *status;    /* grpc-status; NULL: none is sent */
    const char *message;   /* grpc-message */
    const char *details;   /* grpc-status-details-bin */
    size_t headers_flood;  /* so many more headers of 1 KiB each */
    bool is_trailers_only; /* one block of headers ends the stream */
    bool is_held;          /* until grpc_backend_release */
    bool resets;           /* RST_STREAM with reset_code, instead of a response */
    bool responds_at_head; /* before the message was read */
    bool hangs_up;         /* closes the connection, instead of a response */
    uint32_t reset_code;
    bool says_goaway; /* before the response, as if this call were … */
    bool is_beyond;   /* … not processed any more */
};

struct grpc_backend_settings {
    uint32_t streams_max;  /* 0: not limited */
    uint32_t window_bytes; /* of a stream, and of the connection if that is more; 0: 65535 */
    const char *greeting;  /* bytes that are sent instead of speaking HTTP/2, before closing */
    bool is_mute;          /* accepts, and never sends a byte */
};

struct grpc_backend *grpc_backend_create(struct lane *lane,
                                         const struct grpc_backend_settings *settings,
                                         const struct grpc_backend_step *steps, size_t count);
uint16_t grpc_backend_port(const struct grpc_backend *backend);
/* Since the beginning. */
unsigned grpc_backend_calls(const struct grpc_backend *backend);
unsigned grpc_backend_connections(const struct grpc_backend *backend);
unsigned grpc_backend_pings(const struct grpc_backend *backend);
/* Streams that the client reset, and with what the last time. */
unsigned grpc_backend_resets(const struct grpc_backend *backend, uint32_t *ret_code);
/* Most calls at the same time. */
unsigned grpc_backend_calls_at_once(const struct grpc_backend *backend);
/* Headers of the last whole call as "name: value\n" lines, and its body. */
const char *grpc_backend_headers(const struct grpc_backend *backend);
const uint8_t *grpc_backend_body(const struct grpc_backend *backend, size_t *ret_size);
/* Calls that are held. */
unsigned grpc_backend_held(const struct grpc_backend *backend);
/* Responds to every held call with its step. */
void grpc_backend_release(struct grpc_backend *backend);
/* GOAWAY on every connection, for calls that have not come yet. */
void grpc_backend_goaway(struct grpc_backend *backend, uint32_t code, const char *text);
void grpc_backend_limit_streams(struct grpc_backend *backend, uint32_t streams_max);
/* Reads no more and sends no more, not even replies to pings. */
void grpc_backend_freeze(struct grpc_backend *backend);
/* Closes every open connection, keeps listening. */
void grpc_backend_hang_up(struct grpc_backend *backend);
/* Stops to listen, or listens again on the same port. */
void grpc_backend_listen(struct grpc_backend *backend, bool listens);
/* Turns the lane until everything is closed. */
void grpc_backend_destroy(struct grpc_backend *backend);
