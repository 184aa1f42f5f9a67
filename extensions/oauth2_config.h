/* SPDX-License-Identifier: Apache-2.0 */
/* The options of oauth2client, as its option table fills them. */
#pragma once

#include <stdint.h>

#include "src/config/field.h"
#include "src/config/shared/tls_config.h"

#define OAUTH2_GRANT_CLIENT "client_credentials"
#define OAUTH2_GRANT_JWT    "urn:ietf:params:oauth:grant-type:jwt-bearer" /* RFC 7523 */

struct oauth2_config {
    const char *client_id;
    const char *client_id_file;
    const char *client_secret;
    const char *client_secret_file;
    const char *client_certificate_key_id;
    const char *client_certificate_key;
    const char *client_certificate_key_file;
    const char *grant_type;
    const char *signature_algorithm; /* "": RS256 */
    const char *iss;
    const char *audience;
    const struct config_value *claims;          /* a map; NULL: none */
    const struct config_value *endpoint_params; /* a map of strings or of lists; NULL: none */
    const char *token_url;
    struct config_texts scopes;
    struct tls_client_config tls;
    uint64_t timeout_ns; /* 0: none */
    uint64_t expiry_buffer_ns;
};
