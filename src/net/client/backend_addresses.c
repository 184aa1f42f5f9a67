/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up hosts through libuv and keeps the result for BACKEND_ADDRESSES_KEEP_NS. On its user's
 * lane. */
#include "src/net/client/backend_addresses.h"

#include "src/base/clock.h"
#include "src/base/lane.h"

#include <assert.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

static void on_addresses(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct backend_addresses *addresses = request->data;
    assert(addresses->is_resolving);
    addresses->is_resolving = false;
    if (status == 0) {
        size_t count = 0;
        for (const struct addrinfo *at = found; at != NULL && count < BACKEND_ADDRESSES_MAX;
             at = at->ai_next)
            if (at->ai_addrlen <= sizeof(addresses->list[0]))
                memcpy(&addresses->list[count++], at->ai_addr, at->ai_addrlen);
        if (count > 0) {
            addresses->count = count;
            addresses->good = 0;
            addresses->expires_ns = clock_now_ns() + BACKEND_ADDRESSES_KEEP_NS;
        } else {
            /* The old addresses stay: a connection to one of them may be under way. */
            status = UV_EAI_NODATA;
        }
    }
    uv_freeaddrinfo(found);
    addresses->done(status, addresses->arg);
}

void backend_addresses_init(struct backend_addresses *addresses, struct lane *lane,
                            const char *host, uint16_t port)
{
    *addresses = (struct backend_addresses){.lane = lane, .host = host, .port = port};
    /* An IP address needs no look-up. */
    struct sockaddr_storage *address = &addresses->list[0];
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)address) != 0 &&
        uv_ip6_addr(host, port, (struct sockaddr_in6 *)address) != 0)
        return;
    addresses->count = 1;
    addresses->expires_ns = UINT64_MAX;
}

bool backend_addresses_are_fresh(const struct backend_addresses *addresses)
{
    return addresses->count > 0 && clock_now_ns() < addresses->expires_ns;
}

int backend_addresses_resolve(struct backend_addresses *addresses, backend_resolved_fn done,
                              void *arg)
{
    assert(!addresses->is_resolving);
    char service[sizeof("65535")];
    snprintf(service, sizeof(service), "%u", (unsigned)addresses->port);
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    addresses->done = done;
    addresses->arg = arg;
    addresses->request.data = addresses;
    int result = uv_getaddrinfo(lane_loop(addresses->lane), &addresses->request, on_addresses,
                                addresses->host, service, &hints);
    addresses->is_resolving = result == 0;
    return result;
}

const struct sockaddr *backend_address(const struct backend_addresses *addresses, size_t tried)
{
    assert(tried < addresses->count);
    size_t index = (addresses->good + tried) % addresses->count;
    return (const struct sockaddr *)&addresses->list[index];
}

void backend_address_is_good(struct backend_addresses *addresses, size_t tried)
{
    if (addresses->count > 0)
        addresses->good = (addresses->good + tried) % addresses->count;
}

void backend_addresses_forget(struct backend_addresses *addresses)
{
    if (addresses->expires_ns != UINT64_MAX)
        addresses->expires_ns = 0;
}
