/* SPDX-License-Identifier: Apache-2.0 */
/* The tls section of everything that connects to somebody: its struct, option table and rules.
 * Constants and pure functions; the main thread runs them while it loads the configuration. */
#pragma once

#include <stdbool.h>

#include "src/config/field.h"
#include "src/config/shared/tls_config.h"

struct tls_client_config {
    struct tls_config common;
    bool insecure; /* cleartext; an https URL uses TLS all the same */
    bool insecure_skip_verify;
    const char *server_name_override;
};

extern const struct config_field tls_client_fields[];

/* Rules across the fields; section is a struct tls_client_config. */
bool tls_client_check(const void *section, struct error *error);
/* Whether the files that it names can be read now: at start, where it can still be said well. */
bool tls_client_check_files(const struct tls_client_config *tls, struct error *error);

#define TLS_CLIENT_ROW(owner, field)                                                               \
    CONFIG_SECTION(owner, field, struct tls_client_config, "tls", tls_client_fields,               \
                   tls_client_check, "TLS towards the server.")
