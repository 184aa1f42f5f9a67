/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the headers of a client's frames before nghttp2 gets them, and finds faults that nghttp2
 * misses once it has forgotten a stream: frames after the stream's end, decreasing stream ids,
 * PRIORITY on stream 0 or on itself (RFC 9113 §5.1, §5.1.1, §6.3; RFC 7540 §5.3.1). It knows only
 * what the client has sent, so that frames that cross our RST_STREAM are not faults. On the
 * connection's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP2_HEAD_BYTES = 9,
    HTTP2_PRIORITY_BYTES = 5,
    /* The stream id at the start of a PRIORITY frame's payload is read with the header. */
    HTTP2_HEAD_BYTES_MAX = HTTP2_HEAD_BYTES + 4,
    /* The newest streams, whose state is known. Frames of older ones are not checked. */
    HTTP2_STREAMS_REMEMBERED = 256,
};

struct http2_frames {
    uint32_t skip;     /* bytes up to the next frame: the preface, the rest of a payload */
    bool is_block;     /* the newest frame has header fields … */
    bool is_continued; /* … and CONTINUATION follows */
    uint8_t head_size;
    uint8_t head[HTTP2_HEAD_BYTES_MAX];
    uint32_t newest; /* number of the newest stream, (id + 1) / 2; 0: none yet */
    uint64_t states[HTTP2_STREAMS_REMEMBERED / 32]; /* a ring, two bits for each stream */
};

/* What is wrong with a frame; nothing if code is 0. */
struct http2_fault {
    uint32_t code;      /* of RFC 9113 §7 */
    uint32_t stream_id; /* 0: a fault of the connection */
    const char *reason; /* for GOAWAY */
};

void http2_frames_init(struct http2_frames *frames);
/* Checks the next bytes. Returns how many of them nghttp2 may get. After a fault of the connection
 * no more may follow; after a fault of a stream, call again for the rest. */
size_t http2_frames_read(struct http2_frames *frames, const uint8_t *data, size_t size,
                         struct http2_fault *ret_fault);
/* Whether a header block is incomplete. */
bool http2_frames_in_block(const struct http2_frames *frames);
