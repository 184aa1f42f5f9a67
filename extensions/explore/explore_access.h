/* SPDX-License-Identifier: Apache-2.0 */
/* Who may ask the explore page: names that a Host header may have (against DNS rebinding), origins,
 * and beyond loopback a token that is exchanged once for a cookie. On lane 0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

struct http_request;

enum { ACCESS_SECRET_BYTES = 16, ACCESS_SECRET_TEXT = 2 * ACCESS_SECRET_BYTES, SESSIONS_MAX = 16 };

struct explore_access {
    const char *endpoint; /* as configured */
    bool is_token_required;
    char token[ACCESS_SECRET_TEXT + 1];
    char sessions[SESSIONS_MAX][ACCESS_SECRET_TEXT + 1]; /* "": free */
    size_t sessions_next;
};

/* Whether the endpoint can be reached from other machines. */
bool explore_access_is_open(const char *endpoint);
/* endpoint outlives it. False: the system has no random numbers. */
bool explore_access_init(struct explore_access *access, const char *endpoint,
                         bool is_token_required);

/* NULL, or why the request is refused, with its status. */
const char *explore_access_refuse(const struct explore_access *access,
                                  const struct http_request *request, bool is_data,
                                  unsigned *ret_status);
/* Whether the request has the cookie of a session. */
bool explore_access_has_session(const struct explore_access *access,
                                const struct http_request *request);
/* Exchanges the request's token: writes the cookie, and makes a new token. False: it is not the
 * token. */
enum { ACCESS_COOKIE_BYTES = 128 };
bool explore_access_exchange(struct explore_access *access, const struct http_request *request,
                             char ret_cookie[ACCESS_COOKIE_BYTES]);
