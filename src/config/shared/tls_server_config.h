/* SPDX-License-Identifier: Apache-2.0 */
/* The tls section of everything that listens: its struct, option table and rules. Constants and
 * pure functions; the main thread runs them while it loads the configuration. */
#pragma once

#include <stdbool.h>

#include "src/config/field.h"
#include "src/config/shared/tls_config.h"

struct tls_server_config {
    struct tls_config common;
    const char *client_ca_file; /* set: clients must have a certificate of these authorities */
    bool client_ca_file_reload;
};

extern const struct config_field tls_server_fields[];

/* Rules across the fields; section is a struct tls_server_config. */
bool tls_server_check(const void *section, struct error *error);

/* flag is a bool field of owner: is TLS on? */
#define TLS_SERVER_ROW(owner, field, flag)                                                         \
    CONFIG_OPTIONAL(owner, field, struct tls_server_config, flag, CONFIG_NULL_IS_OFF, "tls",       \
                    tls_server_fields, tls_server_check,                                           \
                    "TLS towards clients; cleartext when "                                         \
                    "unset.")
