/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the heads of a client's frames ahead of nghttp2 and finds what nghttp2 lets pass once it
 * has forgotten a stream: frames behind the stream's end, stream ids that go backwards, PRIORITY on
 * stream 0 or on itself (RFC 9113 §5.1, §5.1.1, §6.3; RFC 7540 §5.3.1). It knows only what the
 * client itself sent, so that frames that cross our own RST_STREAM are never a fault. On the
 * connection's lane. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    HTTP2_HEAD_BYTES = 9,
    HTTP2_PRIORITY_BYTES = 5,
    /* The stream id at the front of a PRIORITY frame's payload is read as part of the head. */
    HTTP2_HEAD_BYTES_MAX = HTTP2_HEAD_BYTES + 4,
    /* Streams below the newest whose state is known. Of older ones nothing is judged here. */
    HTTP2_STREAMS_REMEMBERED = 256,
};

struct http2_frames {
    uint32_t skip; /* bytes up to the next head: the preface, the rest of a payload */
    uint8_t head_size;
    uint8_t head[HTTP2_HEAD_BYTES_MAX];
    uint32_t newest; /* number of the newest stream, (id + 1) / 2; 0: there was none */
    uint64_t states[HTTP2_STREAMS_REMEMBERED / 32]; /* a ring, two bits for each stream */
};

/* What a frame did wrong. Without a code: nothing. */
struct http2_fault {
    uint32_t code;      /* of RFC 9113 §7 */
    uint32_t stream_id; /* whose fault it is; 0: the connection's */
    const char *reason; /* for GOAWAY */
};

void http2_frames_init(struct http2_frames *frames);
/* Reads the bytes that follow. Returns how many of them nghttp2 may have. With a fault of the
 * connection, no more may follow. With a fault of a stream, the call is repeated for the rest. */
size_t http2_frames_read(struct http2_frames *frames, const uint8_t *data, size_t size,
                         struct http2_fault *ret_fault);
