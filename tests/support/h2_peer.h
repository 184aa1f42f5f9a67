/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 client for tests: nghttp2 over a non-blocking loopback socket, turned by hand between
 * turns of the lane under test. Raw frames may be mixed in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

enum { H2_RESPONSES_MAX = 512, H2_TEXT_MAX = 2048, H2_BODY_MAX = 1 << 16 };

/* What came back on one stream. Headers are kept as "name: value\n" lines. */
struct h2_response {
    int32_t stream_id;
    bool is_closed;
    uint32_t close_code;
    unsigned status;
    unsigned header_blocks;
    char headers[H2_TEXT_MAX];
    char trailers[H2_TEXT_MAX];
    size_t body_size;
    uint8_t body[H2_BODY_MAX];
};

struct h2_upload {
    uint8_t *data;
    size_t size;
    size_t sent;
    bool is_complete; /* ends the stream behind the last byte */
};

struct h2_peer {
    int fd;
    nghttp2_session *nghttp2; /* NULL: raw frames only */
    bool is_deaf;             /* does not read */
    bool has_ended;           /* the server closed */
    bool has_goaway;
    uint32_t goaway_code;
    int32_t goaway_last_id;
    char goaway_text[64];
    unsigned responses_count;
    struct h2_response *responses[H2_RESPONSES_MAX];
    struct h2_upload uploads[H2_RESPONSES_MAX];
    uint8_t *raw_input; /* without nghttp2: what came */
    size_t raw_size;
    uint8_t *raw_output; /* what the socket has not taken yet */
    size_t raw_output_size;
};

/* address is "127.0.0.1:port". With window_bytes > 0 that is the client's stream window. */
struct h2_peer *h2_peer_connect(const char *address, uint32_t window_bytes);
/* The same without nghttp2: nothing is sent or understood on its own. */
struct h2_peer *h2_peer_connect_raw(const char *address);
void h2_peer_close(struct h2_peer *peer);
/* Moves bytes both ways as far as they go. */
void h2_peer_turn(struct h2_peer *peer);
/* fields: name, value, name, value, …, NULL. body may be NULL. Returns the stream's number. */
int32_t h2_peer_request(struct h2_peer *peer, const char *const *fields, const void *body,
                        size_t size, bool is_complete);
struct h2_response *h2_peer_response(struct h2_peer *peer, int32_t stream_id);
/* Queues bytes behind what was queued raw; for raw peers, or on top of nghttp2's output. */
void h2_peer_write(struct h2_peer *peer, const void *data, size_t size);
/* Queues one frame. */
void h2_peer_frame(struct h2_peer *peer, unsigned type, unsigned flags, uint32_t stream_id,
                   const void *payload, size_t size);
/* Queues the preface and an empty SETTINGS frame. */
void h2_peer_greet(struct h2_peer *peer);
/* The first frame of that type in a raw peer's input: its payload, or NULL. */
const uint8_t *h2_peer_find_frame(const struct h2_peer *peer, unsigned type, uint32_t *ret_size,
                                  uint32_t *ret_stream_id);
