/* SPDX-License-Identifier: Apache-2.0 */
/* Cipher suites and curves by the names that Go gives them, turned into the lists that OpenSSL and
 * libcurl read. Constants and pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct config_texts;
struct error;

enum { TLS_LIST_BYTES_MAX = 1024 }; /* room for every name there is, once each */

/* The suites up to TLS 1.2, in the order written: "ECDHE-RSA-AES128-GCM-SHA256:…"; of an empty list
 * all that are safe. Those of TLS 1.3 are accepted and left out, since nobody lets them be chosen:
 * "" when there are no others. */
bool tls_suites_translate(const struct config_texts *names, bool takes_insecure,
                          char ret_list[TLS_LIST_BYTES_MAX], struct error *error);
/* "X25519:P-256:…"; "" of an empty list. */
bool tls_curves_translate(const struct config_texts *names, char ret_list[TLS_LIST_BYTES_MAX],
                          struct error *error);
