/* SPDX-License-Identifier: Apache-2.0 */
/* Parser of an HTTP/1.0 or 1.1 request head (RFC 9112), strict: what two servers could read
 * differently is refused. The bytes of the head may arrive in any pieces and move between calls:
 * the parser stores offsets, and allocates nothing. One owner, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/limits.h"

enum http1_result { HTTP1_MORE, HTTP1_COMPLETE, HTTP1_REFUSED };

/* A piece of the head. */
struct http1_span {
    uint16_t at;
    uint16_t size;
};

struct http1_header {
    struct http1_span name;
    struct http1_span value; /* without white space around it */
};

struct http1_parser {
    size_t position; /* bytes seen; after HTTP1_COMPLETE the size of the head */
    size_t line_at;  /* where the current line begins */
    bool has_cr;     /* the byte before position is a CR */
    bool has_request_line;
    /* the request */
    struct http1_span method;
    struct http1_span path;  /* "*" for OPTIONS *; empty for "http://host" */
    struct http1_span query; /* after '?'; may be empty */
    struct http1_span host;
    unsigned version_minor;  /* of HTTP/1 */
    uint64_t content_length; /* 0 when there is none */
    bool has_authority;      /* the target named the host */
    bool has_host;
    bool has_content_length;
    bool is_chunked;
    bool wants_close;
    bool wants_keep_alive;
    bool expects_continue;
    /* after HTTP1_REFUSED: the status to respond with, and why */
    unsigned status;
    const char *reason;
    size_t header_count;
    struct http1_header headers[HTTP_HEADERS_MAX];
};

void http1_parser_init(struct http1_parser *parser);
/* data is the head from its first byte, size how much of it was received (never less than before).
 * Parses new bytes only; may be called again only after HTTP1_MORE. */
enum http1_result http1_parser_feed(struct http1_parser *parser, const uint8_t *data, size_t size);
