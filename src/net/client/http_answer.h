/* SPDX-License-Identifier: Apache-2.0 */
/* Parser of HTTP/1.1 answers (RFC 9112), strict and bounded: bytes are fed as they come, in any
 * pieces. Of the headers it keeps what exporters ask for; of the body its first RESPONSE_BYTES_MAX
 * bytes. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

enum http_answer_state {
    ANSWER_STATUS_LINE,
    ANSWER_HEADERS,
    ANSWER_LENGTH_BODY,
    ANSWER_CLOSE_BODY, /* until the peer closes */
    ANSWER_CHUNK_SIZE,
    ANSWER_CHUNK_DATA,
    ANSWER_CHUNK_END,
    ANSWER_TRAILERS,
    ANSWER_DONE,
    ANSWER_FAILED,
};

enum { ANSWER_RETRY_AFTER_MAX = 64, ANSWER_CONTENT_TYPE_MAX = 128 };

struct http_answer {
    enum http_answer_state state;
    const char *failure; /* what is wrong, once FAILED; static */
    unsigned status;     /* 0 until the final (not 1xx) head is whole, then it counts */
    bool keeps_alive;    /* DONE, and the connection may carry another exchange */
    bool is_cut;         /* more body came than is kept, or it broke off */
    bool has_retry_after;
    char retry_after[ANSWER_RETRY_AFTER_MAX]; /* "" when longer */
    char content_type[ANSWER_CONTENT_TYPE_MAX];
    char *location; /* of a redirect, as it was sent; NULL: none. Valid until reset */
    /* private: */
    unsigned line_status;
    bool is_http11;
    bool has_length;
    bool is_chunked;
    bool is_closing; /* Connection: close, or HTTP/1.0 without keep-alive */
    uint64_t left;   /* of the body or chunk */
    uint64_t body_seen;
    size_t head_bytes; /* of status lines, headers, chunk sizes and trailers */
    char *line;
    size_t line_size;
    size_t line_capacity;
    uint8_t *body;
    size_t body_size;
    size_t body_capacity;
};

void http_answer_init(struct http_answer *answer);
/* Forgets the last answer, keeps small buffers. */
void http_answer_reset(struct http_answer *answer);
void http_answer_fini(struct http_answer *answer);
/* Returns how many bytes belong to this answer: fewer than size once it is DONE or FAILED. */
size_t http_answer_feed(struct http_answer *answer, const uint8_t *data, size_t size);
/* The peer closed: ends a body that has no other end, and is a failure anywhere else. */
void http_answer_end(struct http_answer *answer);
/* What is kept of the body. Valid until reset. */
struct slice http_answer_body(const struct http_answer *answer);
