/* SPDX-License-Identifier: Apache-2.0 */
/* The client of a request: address and, with include_metadata, its headers. Counted, immutable once
 * made. Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct budget;

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
    struct client_metadata *auth; /* from its authenticator */
    size_t bytes;                 /* that it takes */
    struct budget *budget;        /* they are charged to it; NULL: they are not */
};

/* Copies everything; returns one reference. rows may be NULL when count is 0. */
struct client_info *client_info_create(const char *address, const struct client_metadata *rows,
                                       size_t count);
/* Returns a copy of info with the rows of an authenticator, and one reference. */
struct client_info *client_info_with_auth(const struct client_info *info,
                                          const struct client_metadata *auth, size_t auth_count);
/* Charges what it takes, unless that is an address alone, until its last reference is released; may
 * use the budget's margin. Returns info; NULL: there is no room, and it is released. The caller has
 * the only reference. */
struct client_info *client_info_charge(struct client_info *info, struct budget *budget)
    __attribute__((warn_unused_result));
/* The tenant's header, as in Pyroscope, Tempo and Mimir. */
#define CLIENT_TENANT_HEADER "x-scope-orgid"
enum { CLIENT_TENANT_BYTES_MAX = 150 }; /* as in these servers */
/* Its value; NULL: none, or info is NULL. */
const char *client_info_tenant(const struct client_info *info);
/* As bytes, to be kept with a request: the address and the metadata, without credentials (keys that
 * end in authorization, cookie, token, api-key, apikey, secret or password) and without what the
 * authenticator said. 0 bytes for NULL. */
size_t client_info_bytes(const struct client_info *info);
void client_info_write(const struct client_info *info, uint8_t *to);
/* NULL: there is nothing, or it cannot be read. */
struct client_info *client_info_read(struct slice bytes);
/* Takes a reference. Returns info. */
struct client_info *client_info_ref(struct client_info *info);
/* Releases a reference; the last one frees it. NULL is a no-op. */
void client_info_unref(struct client_info *info);
