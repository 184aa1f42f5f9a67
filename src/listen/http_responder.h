/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of components that respond to HTTP requests without bodies: one server on lane 0
 * with the keys that all HTTP servers have. It authenticates requests and handles CORS; the
 * component writes the responses. An instance begins with struct http_responder. */
#pragma once

#include <stdbool.h>

#include "src/base/budget.h"
#include "src/base/slice.h"
#include "src/core/component.h"
#include "src/listen/server_front.h"

struct http_request;
struct http_response;

/* Responds to an authorized request. */
typedef void (*http_responder_fn)(struct component *base, struct http_request *request);

struct http_responder {
    struct component base;
    const struct http_server_config *config;
    http_responder_fn respond;
    const char *start_message;
    struct server_front front;
    unsigned pending;        /* requests between http_responder_begin and _end */
    bool has_stopped;        /* the server has */
    bool must_respond;       /* however full the budget is; set before http_responder_prepare */
    struct budget allowance; /* then: for HTTP_PROBES_BYTES beyond the budget */
};

/* Option rows for the member of owner that is a struct http_server_config. */
#define HTTP_RESPONDER_ROWS(owner, member, address, keep_alive)                                    \
    SERVER_ROWS(owner, member.listen, address), HTTP_SERVER_ROWS(owner, member, "0", keep_alive)

/* Rules across the fields; example is an endpoint. */
bool http_responder_check(const struct http_server_config *config, const char *example,
                          struct error *error);
/* In create. config must outlive the component; start_message is logged with the address. */
bool http_responder_prepare(struct component *base, const struct http_server_config *config,
                            http_responder_fn respond, const char *start_message,
                            struct error *error);
/* Slots of the factory. */
bool http_responder_start(struct component *base, struct error *error);
void http_responder_stop(struct component *base);
void http_responder_destroy(struct component *base);
/* A request is responded to later, for which the component needs its memory; and that has happened.
 * The client may leave meanwhile, and the server stop: the component stops when both are done. The
 * last call may end the component's stop, so make it at the end. */
void http_responder_begin(struct component *base);
void http_responder_end(struct component *base);
/* Sends the response with the headers that all responses of the server have. */
void http_responder_respond(struct component *base, struct http_request *request,
                            struct http_response *response);
/* The same with a body whose type browsers must not guess. */
void http_responder_respond_body(struct component *base, struct http_request *request,
                                 unsigned status, const char *type, struct slice body);
/* The same with plain text. */
void http_responder_respond_text(struct component *base, struct http_request *request,
                                 unsigned status, const char *text);
/* The command line of the process with a NUL after each argument, in text. Returns its bytes; 0: it
 * cannot be read. It has no secrets that `ps` would not show. */
enum { COMMAND_BYTES_MAX = 4096 };
size_t http_responder_read_command(char text[COMMAND_BYTES_MAX]);
