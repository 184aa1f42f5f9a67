/* SPDX-License-Identifier: Apache-2.0 */
/* Who sent a request: address and, with include_metadata, its headers. Counted, immutable once
 * made. Any thread. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

struct client_metadata {
    const char *key;   /* lower case */
    const char *value; /* one row per value; a key may occur in several rows */
};

struct client_info {
    _Atomic unsigned refs;
    char *address; /* without port */
    size_t metadata_count;
    struct client_metadata *metadata; /* strings live in the same allocation */
    size_t auth_count;
    struct client_metadata *auth; /* what its authenticator knows of it */
};

/* Copies everything, and has one holder; rows may be NULL when count is 0. */
struct client_info *client_info_create(const char *address, const struct client_metadata *rows,
                                       size_t count);
/* A copy of info that has the rows of an authenticator, and one holder. */
struct client_info *client_info_with_auth(const struct client_info *info,
                                          const struct client_metadata *auth, size_t auth_count);
/* Who shares a server with others names himself in this header, as Pyroscope, Tempo and Mimir have
 * it. */
#define CLIENT_TENANT_HEADER "x-scope-orgid"
enum { CLIENT_TENANT_BYTES_MAX = 150 }; /* as these servers have it */
/* Its value; NULL: none, or info is NULL. */
const char *client_info_tenant(const struct client_info *info);
/* One more holder. Returns info. */
struct client_info *client_info_ref(struct client_info *info);
/* The last one frees it. NULL is tolerated. */
void client_info_unref(struct client_info *info);
