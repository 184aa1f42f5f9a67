/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of one back-end: a literal, or the results of getaddrinfo, kept for a short time.
 * Embedded by its user, on the user's lane (the look-up itself on libuv's pool). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <uv.h>

#include "src/base/limits.h"

struct lane;

/* result: 0, or a libuv error. May free the owner of the addresses. */
typedef void (*backend_resolved_fn)(int result, void *arg);

struct backend_addresses {
    struct lane *lane;
    const char *host; /* borrowed */
    uint16_t port;
    size_t count;
    size_t good; /* the last one that was reachable: tried first */
    struct sockaddr_storage list[BACKEND_ADDRESSES_MAX];
    uint64_t expires_ns;
    bool is_resolving;
    uv_getaddrinfo_t request;
    backend_resolved_fn done;
    void *arg;
};

void backend_addresses_init(struct backend_addresses *addresses, struct lane *lane,
                            const char *host, uint16_t port);
bool backend_addresses_are_fresh(const struct backend_addresses *addresses);
/* Looks up the host. Returns 0 and calls done once, in a later turn of the loop; or returns a libuv
 * error. One look-up at a time. */
int backend_addresses_resolve(struct backend_addresses *addresses, backend_resolved_fn done,
                              void *arg);
/* The tried-th address, counted from the good one; tried < count. */
const struct sockaddr *backend_address(const struct backend_addresses *addresses, size_t tried);
/* It was reachable: the next connection starts with it. */
void backend_address_is_good(struct backend_addresses *addresses, size_t tried);
/* None was reachable: look up again next time. */
void backend_addresses_forget(struct backend_addresses *addresses);
