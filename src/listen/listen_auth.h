/* SPDX-License-Identifier: Apache-2.0 */
/* Who may send to a server: its authenticator, asked about each request when its headers
 * are there and before anything else is looked at. One per server, on its lane. */
#pragma once

#include <stdbool.h>

#include "src/listen/authenticator.h"

struct client_info;
struct component;
struct error;
struct http_request;
struct listen_auth_config;
struct listen_config;

struct listen_auth {
    const struct listen_auth_config *config;
    struct authenticator *authenticator; /* NULL: everybody may */
};

/* A section without a name is an error: what was meant to be closed must not stand open. */
bool listen_auth_init(struct listen_auth *auth, const struct component *receiver,
                      const struct listen_config *config, struct error *error);
/* Legal without init, on what is all zero. */
void listen_auth_fini(struct listen_auth *auth);
/* What the answer points to lives until the next call. */
enum auth_verdict listen_auth_ask(const struct listen_auth *auth,
                                  const struct http_request *request, struct auth_answer *answer);
/* Who that was, when pipelines can ask for it: info with the answer's attributes, and one holder.
 * NULL: nothing is known. */
struct client_info *listen_auth_client(const struct auth_answer *answer,
                                       const struct client_info *info);
