/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and resolves endpoints to listen on ("host:port", or the path of a unix socket) like the
 * Go collector. Name look-ups block: for start-up only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>

struct error;

enum {
    ENDPOINT_HOST_MAX = 256,
    ENDPOINT_PORT_MAX = 32,
    ENDPOINT_PATH_MAX = 107,     /* of a unix socket, unix(7) */
    ENDPOINT_TEXT_MAX = 112,     /* a path, or an IPv6 address, brackets, zone and port */
    ENDPOINT_HOST_TEXT_MAX = 64, /* an IPv6 address and zone */
};

struct endpoint {
    char host[ENDPOINT_HOST_MAX]; /* without brackets; "" for every address */
    char port[ENDPOINT_PORT_MAX];
};

struct endpoint_address {
    struct sockaddr_storage address;
    socklen_t size;
    bool is_dual;                 /* an IPv6 wildcard that takes IPv4 too */
    char text[ENDPOINT_TEXT_MAX]; /* as Go prints it in errors: ":4318", "127.0.0.1:4318" */
};

/* "localhost:4318", ":4318", "[::1]:4318", or "" for a random port. */
bool endpoint_parse(const char *text, struct endpoint *ret_endpoint, struct error *error);
/* transport is "tcp", "tcp4" or "tcp6". A name with several addresses resolves to the first IPv4
 * one; a wildcard to IPv6 and IPv4 together, unless transport names one. */
bool endpoint_resolve(const struct endpoint *endpoint, const char *transport,
                      struct endpoint_address *ret_address, struct error *error);
/* The address of a unix socket. "@name" is an abstract one, without a file, as in Go. */
bool endpoint_of_path(const char *path, struct endpoint_address *ret_address, struct error *error);
/* After listening has ended: removes the file of a unix socket. */
void endpoint_forget(const char *transport, const char *endpoint);
/* "127.0.0.1:4318", "[::1]:4318"; an IPv4-mapped address prints as IPv4. */
void endpoint_print(const struct sockaddr *address, char text[ENDPOINT_TEXT_MAX]);
/* The same without port and brackets; "" for other families. */
void endpoint_print_host(const struct sockaddr *address, char text[ENDPOINT_HOST_TEXT_MAX]);
