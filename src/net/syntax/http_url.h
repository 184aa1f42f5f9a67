/* SPDX-License-Identifier: Apache-2.0 */
/* URLs (RFC 3986) of HTTP back-ends: parsed, joined, resolved, and shown without their secrets.
 * Pure functions; any thread. */
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

/* On success the caller owns *ret_url: free it with http_url_clear. The error never contains the
 * userinfo. */
bool http_url_parse(const char *text, struct http_url *ret_url, struct error *error);
/* A no-op for a cleared or zeroed URL. */
void http_url_clear(struct http_url *url);
/* Appends suffix ("/v1/traces") to the path of base, with one slash between them; keeps the query,
 * drops the fragment. Free with mem_free. */
char *http_url_join(const char *base, const char *suffix);
/* Resolves the Location header of a response to a request of target at base (RFC 3986 §5.2),
 * without its fragment; blanks and bytes beyond ASCII are escaped, as in Go. Parse the result
 * before use. Free with mem_free. */
char *http_url_resolve(const struct http_url *base, const char *target, const char *location);
/* Same scheme, host and port (RFC 6454 §5). */
bool http_url_is_same_origin(const struct http_url *one, const struct http_url *other);
/* The Authorization header "Basic …" (RFC 7617) for "user:password". Free with mem_free. */
char *http_url_basic_auth(const char *credentials);
