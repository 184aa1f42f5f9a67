/* SPDX-License-Identifier: Apache-2.0 */
/* Authenticates the requests of a server, once their headers are complete and before anything else.
 * One per server, on its lane. */
#pragma once

#include <stdbool.h>

#include "src/listen/authenticator.h"

struct client_info;
struct component;
struct error;
struct grpc_call;
struct http_request;
struct server_auth_config;
struct server_config;

struct server_auth {
    const struct server_auth_config *config;
    struct authenticator *authenticator; /* NULL: all requests are accepted */
};

/* An auth section without authenticator is an error: the server must not be open by mistake. */
bool server_auth_init(struct server_auth *auth, const struct component *receiver,
                      const struct server_config *config, struct error *error);
/* A no-op on a zeroed struct. */
void server_auth_fini(struct server_auth *auth);
/* Of a handler, in on_request. What *result points to is valid until the next call. AUTH_PENDING:
 * the request is held, and on_request is called again: return at once. */
enum auth_verdict server_auth_ask(const struct server_auth *auth, struct http_request *request,
                                  struct auth_result *result);
/* The same for a gRPC call. False: it has responded, or the call is held. */
bool server_auth_admits_call(const struct server_auth *auth, struct http_request *request,
                             const struct grpc_call *call, struct auth_result *ret_result);
/* The client for pipelines: info with the attributes of result; the caller owns it. NULL: nothing
 * is known. */
struct client_info *server_auth_client(const struct auth_result *result,
                                       const struct client_info *info);
