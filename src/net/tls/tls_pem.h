/* SPDX-License-Identifier: Apache-2.0 */
/* Loads PEM texts into an SSL_CTX. Errors have what was found and expected; callers add where. Any
 * thread, one at a time per context. */
#pragma once

#include <stdbool.h>

#include "src/net/tls/tls_library.h"

/* The first certificate is ours, the others are its chain. */
bool tls_pem_use_certificate(const struct tls_library *library, SSL_CTX *context, const char *text,
                             struct error *error);
/* The key of the certificate that was loaded before. */
bool tls_pem_use_key(const struct tls_library *library, SSL_CTX *context, const char *text,
                     struct error *error);
/* Trusts every certificate in text; a server sends their names to its clients. */
bool tls_pem_trust(const struct tls_library *library, SSL_CTX *context, const char *text,
                   bool is_server, struct error *error);
