/* SPDX-License-Identifier: Apache-2.0 */
/* Requests from browsers (CORS, the Fetch standard), answered as github.com/rs/cors does for the Go
 * collector. Constant once made; one per HTTP server, on its lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct http_request;
struct http_response;
struct listen_cors_config;

/* Where values stand that an answer's headers point to, until it is sent. */
struct listen_cors_room {
    char origin[1024];
    char method[64];
    char headers[2048];
};

struct listen_cors {
    const struct listen_cors_config *config; /* NULL: off */
    char *exposed_headers;                   /* NULL: none */
    char max_age[24];                        /* "": none */
};

/* Legal to destroy without having been made, when it is all zero. */
void listen_cors_init(struct listen_cors *cors, const struct listen_cors_config *config);
void listen_cors_fini(struct listen_cors *cors);
/* Whether the request only asks what would be allowed. *response is then complete, but for what
 * every answer has besides. Nothing else is looked at: such requests carry no credentials. */
bool listen_cors_preflight(const struct listen_cors *cors, const struct http_request *request,
                           struct listen_cors_room *room, struct http_response *response);
/* Adds what the answer to any other request says. */
void listen_cors_add(const struct listen_cors *cors, const struct http_request *request,
                     struct listen_cors_room *room, struct http_response *response);
