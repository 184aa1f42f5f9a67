/* SPDX-License-Identifier: Apache-2.0 */
/* The assertion of the grant urn:ietf:params:oauth:grant-type:jwt-bearer (RFC 7523): a JSON Web
 * Token (RFC 7519) signed with an RSA key. Signing takes milliseconds. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct oauth2_config;

/* Whether it is RS256, RS384, RS512 or "". */
bool oauth2_jwt_knows(const char *algorithm);
/* Says that client_id wants a token. key: PEM. Free with secret_free. NULL: the error says why. */
char *oauth2_jwt_create(const struct oauth2_config *config, const char *client_id, const char *key,
                        uint64_t now_wall_ns, struct error *error);
