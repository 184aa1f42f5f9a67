/* SPDX-License-Identifier: Apache-2.0 */
/* A client's side of an HTTP/2 connection (RFC 9113), written in advance: the server's windows are
 * known to be large. Frames can be spoilt. One thread. */
#pragma once

#include "tests/attack/body.h"

struct http2_writer {
    struct world *world;
    struct bytes_out *out;
    bool spoils;    /* asked to */
    bool is_spoilt; /* has done so: responses are not certain any more */
    uint32_t stream;
};

enum { HTTP2_FRAME_HEAD_BYTES = 9 };

/* The preface and our settings. */
void http2_begin(struct http2_writer *writer);
void http2_request(struct http2_writer *writer, const struct body *body);
/* Very many of what a client may send: streams that are reset, or that stay open with large headers
 * and a byte of their body; pings; requests whose responses have no room in our windows. */
void http2_crowd(struct http2_writer *writer, const struct body *body);
void http2_end(struct http2_writer *writer);

/* Counts responses in what a server sends: streams that it ended or reset. */
struct http2_responses {
    uint8_t head[HTTP2_FRAME_HEAD_BYTES];
    size_t head_size;
    size_t payload_left;
    unsigned ended;
    bool has_goaway;
};
void http2_count(struct http2_responses *responses, const uint8_t *data, size_t size);
