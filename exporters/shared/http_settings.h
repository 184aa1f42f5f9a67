/* SPDX-License-Identifier: Apache-2.0 */
/* What exporters over HTTP tell their client in the same way. Pure functions; any thread. */
#pragma once

struct http_client_settings;
struct tls_client_config;

/* "spanflame/1.2.3 (linux/amd64)". */
const char *http_settings_user_agent(void);
/* Borrows what tls points to. */
void http_settings_add_tls(struct http_client_settings *settings,
                           const struct tls_client_config *tls);
