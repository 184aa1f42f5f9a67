/* SPDX-License-Identifier: Apache-2.0 */
/* PEM texts, put into an SSL_CTX. Errors say what was found and what was expected; their callers
 * say where. Any thread, one at a time per context. */
#pragma once

#include <stdbool.h>

#include "src/net/tls/tls_library.h"

/* The first certificate is ours, the others are its chain. */
bool tls_pem_use_certificate(const struct tls_library *library, SSL_CTX *context, const char *text,
                             struct error *error);
/* The key of the certificate that is there already. */
bool tls_pem_use_key(const struct tls_library *library, SSL_CTX *context, const char *text,
                     struct error *error);
/* Every certificate is trusted from now on; a server names them to its clients. */
bool tls_pem_trust(const struct tls_library *library, SSL_CTX *context, const char *text,
                   bool is_server, struct error *error);
