/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoint of a gRPC client, parsed like the Go collector's otlp_grpc exporter does. Pure
 * functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/net/socket/endpoint.h"

struct error;

enum { GRPC_TARGET_PATH_MAX = 108 }; /* of struct sockaddr_un */

struct grpc_target {
    bool is_https;       /* TLS, whatever tls::insecure is */
    bool is_passthrough; /* one connection, even to several addresses */
    uint16_t port;
    char host[ENDPOINT_HOST_MAX];
    char path[GRPC_TARGET_PATH_MAX];                        /* of a Unix socket; "": TCP */
    char authority[ENDPOINT_HOST_MAX + sizeof("[]:65535")]; /* "host:port"; "localhost" */
};

/* "host:port", optionally after http://, https://, dns:/// or passthrough:///; or "unix:///path".
 */
bool grpc_target_parse(const char *text, struct grpc_target *ret_target, struct error *error);
