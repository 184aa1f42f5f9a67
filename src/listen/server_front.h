/* SPDX-License-Identifier: Apache-2.0 */
/* A server of a component, with what stands in front of its handler: TLS, login and, for HTTP, CORS
 * and the headers of all responses. Embedded by the component's instance, one per protocol and
 * lane; on that lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/listen/server_auth.h"
#include "src/listen/server_config.h"
#include "src/listen/server_cors.h"
#include "src/listen/server_tls_context.h"
#include "src/net/server/http_server.h"

struct budget;
struct component;
struct error;

/* Zeroed: the protocol is off. */
struct server_front {
    struct http_server *server;
    struct server_tls_context tls;
    struct server_auth auth;
    struct server_cors cors;                     /* off for gRPC */
    struct http_common_headers response_headers; /* none for gRPC */
};

struct server_front_settings {
    struct component *component;              /* the arg of the handler */
    const struct http_handler *handler;       /* outlives the server */
    struct server_tls_counters *tls_counters; /* NULL: not counted */
    struct http_server_counters *counters;    /* NULL: not counted */
    struct budget *budget;                    /* NULL: the component's; outlives the server */
    const char *place; /* in errors: the section that has the server's keys; NULL: the component */
};

/* The configuration outlives the front, which is to be destroyed after a failure, too. */
bool server_front_create_http(struct server_front *front, const struct http_server_config *config,
                              const struct server_front_settings *settings, struct error *error);
bool server_front_create_grpc(struct server_front *front, const struct grpc_server_config *config,
                              const struct server_front_settings *settings, struct error *error);
/* Opens one listener for the servers of all lanes that have one, as lane 0 has. Called with the
 * instance there; offset: of the front in each instance. */
bool server_front_listen(const struct component *first, size_t offset,
                         const struct server_config *config, struct error *error);
/* After the server has stopped. A no-op on a zeroed struct. */
void server_front_destroy(struct server_front *front);
