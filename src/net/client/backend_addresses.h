/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of one back-end: a literal, or what getaddrinfo says, believed for a short time.
 * Embedded by its user; runs on the user's lane (the look-up itself on libuv's pool). */
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
    size_t good; /* the one that answered last: tried first */
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
/* Looks the host up; done is called once, from a later turn of the loop, unless this returns an
 * error. One look-up at a time. */
int backend_addresses_resolve(struct backend_addresses *addresses, backend_resolved_fn done,
                              void *arg);
/* The tried-th address to try, counted from the good one; tried < count. */
const struct sockaddr *backend_address(const struct backend_addresses *addresses, size_t tried);
/* It answered: the next connection begins with it. */
void backend_address_is_good(struct backend_addresses *addresses, size_t tried);
/* None answered: look up again next time. */
void backend_addresses_forget(struct backend_addresses *addresses);
