/* SPDX-License-Identifier: Apache-2.0 */
/* URLs (RFC 3986) of HTTP back-ends: taken apart for the writers, joined for the exporters, shown
 * without their secrets. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;

enum { HTTP_URL_BYTES_MAX = 8192 };

struct http_url {
    bool is_https;
    uint16_t port;
    char *host;        /* without brackets */
    char *authority;   /* host and port as written: the Host header */
    char *target;      /* path and query as requested, at least "/" */
    char *credentials; /* "user:password", decoded; NULL without userinfo */
    char *shown; /* without userinfo, query and fragment, which may hold secrets: for messages */
};

/* ret_url is owned by the caller, freed with http_url_clear, and set on success only. The error
 * says what was found and what was expected, never the userinfo. */
bool http_url_parse(const char *text, struct http_url *ret_url, struct error *error);
/* A cleared or zeroed one is tolerated. */
void http_url_clear(struct http_url *url);
/* base with suffix ("/v1/traces") after its path: one slash between them, before a query, without
 * a fragment. Freed with mem_free. */
char *http_url_join(const char *base, const char *suffix);
/* What a Location header of the answer to a request of `target` at base means (RFC 3986 §5.2): the
 * whole URL, without a fragment; blanks and bytes beyond ASCII are escaped, as Go does. It is to be
 * parsed before it is trusted. Freed with mem_free. */
char *http_url_resolve(const struct http_url *base, const char *target, const char *location);
/* Same scheme, host and port (RFC 6454 §5). */
bool http_url_is_same_origin(const struct http_url *one, const struct http_url *other);
/* The value of an Authorization header, "Basic …" (RFC 7617), of "user:password". Freed with
 * mem_free. */
char *http_url_basic_auth(const char *credentials);
