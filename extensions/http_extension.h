/* SPDX-License-Identifier: Apache-2.0 */
/* What extensions that answer requests have in common: one HTTP server on lane 0 with the keys that
 * all HTTP servers have, whose requests have no bodies. It lets in whom it should and speaks CORS;
 * the extension writes the answers. An instance begins with struct http_extension. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"
#include "src/core/component.h"
#include "src/listen/server_auth.h"
#include "src/listen/server_config.h"
#include "src/listen/server_cors.h"
#include "src/listen/server_tls_context.h"

struct http_request;
struct http_response;
struct http_server;

/* Answers a request that may be answered, by http_extension_respond or http_extension_respond_text.
 */
typedef void (*http_extension_fn)(struct component *base, struct http_request *request);

struct http_extension {
    struct component base;
    const struct http_server_config *config;
    http_extension_fn answer;
    struct http_server *server;
    struct server_tls_context tls;
    struct server_auth auth;
    struct server_cors cors;
    struct http_common_headers response_headers;
};

/* Rows for a struct http_server_config that is the member of owner. */
#define HTTP_EXTENSION_ROWS(owner, member, address, keep_alive)                                    \
    SERVER_ROWS(owner, member.listen, address), HTTP_SERVER_ROWS(owner, member, "0", keep_alive)

/* Rules across the fields; example is an endpoint. */
bool http_extension_check(const struct http_server_config *config, const char *example,
                          struct error *error);
/* In create; config lives as long as the component. */
bool http_extension_prepare(struct component *base, const struct http_server_config *config,
                            http_extension_fn answer, struct error *error);
/* In start: listens, and logs message with the address. */
bool http_extension_listen(struct component *base, const char *message, struct error *error);
/* Slots of the factory. */
void http_extension_stop(struct component *base);
void http_extension_destroy(struct component *base);
/* The answer, which is complete but for what every answer of the server has. */
void http_extension_respond(struct component *base, struct http_request *request,
                            struct http_response *response);
/* A page whose type browsers are not to guess. */
void http_extension_respond_body(struct component *base, struct http_request *request,
                                 unsigned status, const char *type, struct slice body);
/* A plain text. */
void http_extension_respond_text(struct component *base, struct http_request *request,
                                 unsigned status, const char *text);
