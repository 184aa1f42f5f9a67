/* SPDX-License-Identifier: Apache-2.0 */
/* What exporters share: the settings of their client, its start and its end. On the exporter's
 * lane. */
#pragma once

#include <stdbool.h>

struct authenticator;
struct component;
struct error;
struct http_client;
struct http_client_settings;
struct stop_latch;
struct tls_client_config;

/* "spanflame/1.2.3 (linux/amd64)". */
const char *exporter_client_user_agent(void);
/* Fills in the settings that all HTTP exporters share and creates the client. tls must outlive it;
 * authenticator may be NULL. NULL: the error says why. */
struct http_client *exporter_client_create(struct component *exporter,
                                           struct http_client_settings *settings,
                                           const struct tls_client_config *tls,
                                           struct authenticator *authenticator,
                                           struct error *error);
/* The latch reports that the exporter has stopped. The client holds it from now on, and the
 * exporter while the lane's helper works on one of its requests. */
void exporter_client_users(struct component *exporter, struct stop_latch *ret_users);
/* Closes the client, then releases the latch. client may be NULL: the exporter has stopped. */
void exporter_client_stop(struct component *exporter, struct http_client *client,
                          struct stop_latch *users);
/* Reports it; for the close of other clients. arg is the component. */
void exporter_client_closed(void *arg);
