/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the head of an HTTP/1.1 answer. No allocation unless the headers are unusually long. Any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/net/server/http_server.h"

enum { HTTP1_RESPONSE_FIRST_BYTES = 1024 };

struct http1_response {
    char *text; /* first, or allocated */
    size_t size;
    size_t capacity;
    char first[HTTP1_RESPONSE_FIRST_BYTES];
};

struct http1_response_facts {
    const char *date;
    const char *connection; /* "close", "keep-alive", or NULL for none */
    size_t body_size;       /* for Content-Length */
};

/* Bytes in header values that could end a line become spaces. */
void http1_response_init(struct http1_response *text, const struct http_response *response,
                         const struct http1_response_facts *facts);
void http1_response_fini(struct http1_response *text);
/* True for answers that never have a body: 204 and 304. */
bool http1_response_is_bodiless(unsigned status);
/* "Not Found"; "" for a status without a name. */
const char *http1_response_reason(unsigned status);
