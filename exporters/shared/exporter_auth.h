/* SPDX-License-Identifier: Apache-2.0 */
/* The `auth` section of exporters: an authenticator extension whose header each request carries.
 * The table is constant; the rest runs on the exporter's lane. */
#pragma once

#include <stdbool.h>

#include "src/config/field.h"
#include "src/net/client/request_credentials.h"

struct authenticator;
struct component;
struct error;

struct exporter_auth_config {
    bool is_on;
    const char *authenticator;
};

extern const struct config_field exporter_auth_fields[];

/* The row for a struct exporter_auth_config that is a member of owner. */
#define EXPORTER_AUTH_ROW(owner, member)                                                           \
    CONFIG_OPTIONAL(owner, member, struct exporter_auth_config, member.is_on, CONFIG_NULL_IS_OFF,  \
                    "auth", exporter_auth_fields, NULL,                                            \
                    "Credentials for the back-end; they win over a header of the same name.")

bool exporter_auth_is_on(const struct exporter_auth_config *config);
/* Refuses credentials that gRPC must not send in cleartext. */
bool exporter_auth_check_cleartext(const struct component *exporter,
                                   const struct exporter_auth_config *config, struct error *error);
/* *ret_authenticator is NULL when the section is off. False: the error says why. */
bool exporter_auth_create(const struct component *exporter,
                          const struct exporter_auth_config *config,
                          struct authenticator **ret_authenticator, struct error *error);
/* For the client's settings; NULL gives none. Valid as long as the authenticator. */
struct request_credentials exporter_auth_credentials(struct authenticator *authenticator);
