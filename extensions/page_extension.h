/* SPDX-License-Identifier: Apache-2.0 */
/* What extensions that answer requests have in common: one HTTP server on lane 0 with the keys that
 * all HTTP servers have, whose requests have no bodies. It lets in whom it should and speaks CORS;
 * the extension writes the answers. An instance begins with struct page_extension. */
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

/* Answers a request that may be answered, by page_respond or page_respond_text. */
typedef void (*page_answer_fn)(struct component *base, struct http_request *request);

struct page_extension {
    struct component base;
    const struct http_server_config *config;
    page_answer_fn answer;
    struct http_server *server;
    struct server_tls_context tls;
    struct server_auth auth;
    struct server_cors cors;
    struct http_common_headers response_headers;
};

/* Rows for a struct http_server_config that is the member of owner. */
#define PAGE_ROWS(owner, member, address, keep_alive)                                              \
    SERVER_ROWS(owner, member.listen, address), HTTP_SERVER_ROWS(owner, member, "0", keep_alive)

/* Rules across the fields; example is an endpoint. */
bool page_extension_check(const struct http_server_config *config, const char *example,
                          struct error *error);
/* In create; config lives as long as the component. */
bool page_extension_prepare(struct component *base, const struct http_server_config *config,
                            page_answer_fn answer, struct error *error);
/* In start: listens, and logs message with the address. */
bool page_extension_listen(struct component *base, const char *message, struct error *error);
/* Slots of the factory. */
void page_extension_stop(struct component *base);
void page_extension_destroy(struct component *base);
/* The answer, which is complete but for what every answer of the server has. */
void page_respond(struct component *base, struct http_request *request,
                  struct http_response *response);
/* A page whose type browsers are not to guess. */
void page_respond_typed(struct component *base, struct http_request *request, unsigned status,
                        const char *type, struct slice body);
/* A plain text. */
void page_respond_text(struct component *base, struct http_request *request, unsigned status,
                       const char *text);
