/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the explore extension of a running daemon, one blocking request after the other (http and
 * https, by libcurl, without proxies). Main thread of a command. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"

struct buffer;
struct error;

/* Texts are the caller's; NULL: none. */
struct explore_client {
    const char *url; /* of the page; its fragment may hold the token, as the start prints it */
    const char *token;
    const char *user;      /* NAME:PASSWORD */
    const char *authority; /* file of certificates */
    bool is_unverified;    /* takes any certificate */
    char session[256];     /* that the token has been exchanged for; "": none */
};

/* GET of a path below /api/v1/ with a query, "" for none. Where a token is asked for it is
 * exchanged for a session, once, and stderr says how to go on with it. The body is the caller's;
 * NULL: error says what the daemon answered. */
struct buffer *explore_client_get(struct explore_client *client, const char *path,
                                  const char *query, struct error *error);
