/* SPDX-License-Identifier: Apache-2.0 */
/* Strict decoder of a chunked body (RFC 9112 §7.1). Extensions and trailers are checked and
 * dropped. Allocates nothing; the payload stays in the input. One owner, any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/net/server/http1_parser.h"

enum http1_chunk_state {
    CHUNK_SIZE,           /* hexadecimal digits */
    CHUNK_EXTENSION_NAME, /* right after ';' */
    CHUNK_EXTENSION,      /* the rest of it */
    CHUNK_SIZE_LF,        /* after the CR of the size line */
    CHUNK_DATA,           /* left bytes of payload */
    CHUNK_DATA_CR,        /* behind the payload */
    CHUNK_DATA_LF,        /* … */
    CHUNK_TRAILER,        /* at the start of a trailer line, or of the empty last one */
    CHUNK_TRAILER_NAME,   /* up to its colon */
    CHUNK_TRAILER_VALUE,
    CHUNK_TRAILER_LF, /* after the CR of a trailer line */
    CHUNK_LAST_LF,    /* after the CR of the empty line */
    CHUNK_END,
};

struct http1_chunks {
    enum http1_chunk_state state;
    unsigned digits;        /* of this chunk's size */
    size_t extension_bytes; /* of the whole body */
    size_t trailer_bytes;
    uint64_t left; /* payload of this chunk not received yet */
    const char *reason;
};

void http1_chunks_init(struct http1_chunks *chunks);
/* Takes bytes up to the end of a piece of payload (*ret_payload, may be empty), of the body, or of
 * data; *ret_used is their number. Call again with the rest while HTTP1_MORE. */
enum http1_result http1_chunks_feed(struct http1_chunks *chunks, const uint8_t *data, size_t size,
                                    size_t *ret_used, struct slice *ret_payload);
