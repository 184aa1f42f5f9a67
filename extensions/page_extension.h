/* SPDX-License-Identifier: Apache-2.0 */
/* What extensions that show pages have in common: one HTTP/1.1 server on lane 0, whose requests
 * have no bodies. An instance begins with struct page_extension. */
#pragma once

#include <stdbool.h>

#include "src/component.h"
#include "src/slice.h"

struct http_handler;
struct http_request;
struct http_server;

struct page_extension {
    struct component base;
    struct http_server *server;
};

/* In create: the handler gets the instance as its argument. */
void page_extension_prepare(struct component *base, const struct http_handler *handler);
/* In start: listens, and logs message with the address. */
bool page_extension_listen(struct component *base, const char *transport, const char *endpoint,
                           const char *message, struct error *error);
/* Slots of the factory. */
void page_extension_stop(struct component *base);
void page_extension_destroy(struct component *base);
/* Answers with a page whose type browsers are not to guess. */
void page_respond(struct http_request *request, unsigned status, const char *type,
                  struct slice body);
