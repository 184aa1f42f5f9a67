/* SPDX-License-Identifier: Apache-2.0 */
/* Strict and bounded parser of HTTP/1.1 responses (RFC 9112), fed with bytes in any pieces. Keeps
 * the headers that exporters need, and the first RESPONSE_BYTES_MAX bytes of the body. One owner,
 * one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/net/client/response_body.h"
#include "src/net/client/response_notes.h"

enum http1_response_state {
    RESPONSE_STATUS_LINE,
    RESPONSE_HEADERS,
    RESPONSE_LENGTH_BODY,
    RESPONSE_CLOSE_BODY, /* until the peer closes */
    RESPONSE_CHUNK_SIZE,
    RESPONSE_CHUNK_DATA,
    RESPONSE_CHUNK_END,
    RESPONSE_TRAILERS,
    RESPONSE_DONE,
    RESPONSE_FAILED,
};

enum { RETRY_AFTER_BYTES_MAX = 64, CONTENT_TYPE_BYTES_MAX = 256, CONTENT_ENCODING_BYTES_MAX = 32 };

struct http1_response {
    enum http1_response_state state;
    const char *failure; /* the reason, once FAILED; static */
    unsigned status;     /* 0 until the final (not 1xx) head is complete */
    bool keeps_alive;    /* DONE, and the connection may carry another exchange */
    bool is_cut;         /* the body is longer than what is kept, or incomplete */
    bool has_retry_after;
    char retry_after[RETRY_AFTER_BYTES_MAX]; /* "" when longer */
    char content_type[CONTENT_TYPE_BYTES_MAX];
    char content_encoding[CONTENT_ENCODING_BYTES_MAX];
    char *location;              /* of a redirect, as sent; NULL: none. Valid until reset */
    struct response_sink sink;   /* gets the body of a response with status 2xx; set after reset */
    struct response_notes notes; /* begun after reset, for more headers */
    /* private: */
    unsigned line_status;
    bool is_http11;
    bool has_length;
    bool is_chunked;
    bool is_closing;   /* Connection: close, or HTTP/1.0 without keep-alive */
    uint64_t left;     /* of the body or chunk */
    size_t head_bytes; /* of status lines, headers, chunk sizes and trailers */
    char *line;
    size_t line_size;
    size_t line_capacity;
    struct response_body body;
};

/* budget: what is kept of large responses is charged to it; NULL: nothing is. */
void http1_response_init(struct http1_response *response, struct budget *budget);
/* Forgets the last response, keeps small buffers. */
void http1_response_reset(struct http1_response *response);
void http1_response_fini(struct http1_response *response);
/* Returns how many bytes belong to this response: fewer than size once it is DONE or FAILED. */
size_t http1_response_feed(struct http1_response *response, const uint8_t *data, size_t size);
/* The peer closed: the end of a body without length, a failure anywhere else. */
void http1_response_end(struct http1_response *response);
/* The kept part of the body. Valid until reset. */
struct slice http1_response_body(const struct http1_response *response);
