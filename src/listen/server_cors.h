/* SPDX-License-Identifier: Apache-2.0 */
/* CORS (the Fetch standard) as github.com/rs/cors does it for the Go collector. Constant once
 * created; one per HTTP server, on its lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct http_request;
struct http_response;
struct server_cors_config;

/* Values that a response's headers point to, until it is sent. */
struct server_cors_room {
    char origin[1024];
    char method[64];
    char headers[2048];
};

struct server_cors {
    const struct server_cors_config *config; /* NULL: off */
    char *exposed_headers;                   /* NULL: none */
    char max_age[24];                        /* "": none */
};

/* cors must be zeroed. */
void server_cors_init(struct server_cors *cors, const struct server_cors_config *config);
void server_cors_fini(struct server_cors *cors);
/* Whether this is a preflight request: *response is then complete, except for common headers.
 * Authentication is skipped: such requests carry no credentials. */
bool server_cors_preflight(const struct server_cors *cors, const struct http_request *request,
                           struct server_cors_room *room, struct http_response *response);
/* Adds the headers for any other request. */
void server_cors_add(const struct server_cors *cors, const struct http_request *request,
                     struct server_cors_room *room, struct http_response *response);
