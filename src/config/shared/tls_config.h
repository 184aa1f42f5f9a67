/* SPDX-License-Identifier: Apache-2.0 */
/* What the tls sections of servers and clients have in common: struct, option rows and rules.
 * Constants and pure functions; the main thread runs them while it loads the configuration. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/config/field.h"

struct tls_tpm_config {
    bool enabled;
    const char *path;
};

struct tls_config {
    const char *ca_file;
    const char *ca_pem;
    bool include_system_ca_certs_pool;
    const char *cert_file;
    const char *cert_pem;
    const char *key_file;
    const char *key_pem;
    const char *min_version; /* "" for the default */
    const char *max_version;
    struct config_texts cipher_suites; /* by Go's names */
    bool include_insecure_cipher_suites;
    struct config_texts curve_preferences;
    uint64_t reload_interval_ns; /* 0: never */
    struct tls_tpm_config tpm;
};

extern const struct config_field tls_tpm_fields[];

/* The rows of a table that fills owner, whose member field is a struct tls_config. */
#define TLS_ROWS(owner, field)                                                                     \
    CONFIG_TEXT(owner, field.cert_file, "cert_file", NULL, "File with our certificate."),          \
        CONFIG_TEXT(owner, field.cert_pem, "cert_pem", NULL, "The same as PEM text."),             \
        CONFIG_TEXT(owner, field.key_file, "key_file", NULL,                                       \
                    "File with the key of our certificate."),                                      \
        CONFIG_SECRET(owner, field.key_pem, "key_pem", "The same as PEM text."),                   \
        CONFIG_TEXT(owner, field.min_version, "min_version", NULL,                                 \
                    "Lowest version: \"1.0\" to \"1.3\"; \"1.2\" when unset."),                    \
        CONFIG_TEXT(owner, field.max_version, "max_version", NULL,                                 \
                    "Highest version; \"1.3\" when unset."),                                       \
        CONFIG_TEXTS(owner, field.cipher_suites, "cipher_suites", NULL,                            \
                     "Suites up to TLS 1.2 by Go's names, best first; unset: Go's safe ones. "     \
                     "Those of TLS 1.3 are always on."),                                           \
        CONFIG_BOOL(owner, field.include_insecure_cipher_suites, "include_insecure_cipher_suites", \
                    "false", "Let cipher_suites name insecure suites too."),                       \
        CONFIG_TEXTS(owner, field.curve_preferences, "curve_preferences", NULL,                    \
                     "Curves of the key exchange, best first: P256, P384, P521, X25519, "          \
                     "X25519MLKEM768 (from OpenSSL 3.5)."),                                        \
        CONFIG_SECTION(owner, field.tpm, struct tls_tpm_config, "tpm", tls_tpm_fields, NULL,       \
                       "Not supported.")

/* Rules across the fields: certificate and key together, file or PEM, versions, known names. */
bool tls_config_check(const struct tls_config *tls, struct error *error);
/* Whether the file that key names can be read and holds PEM: at start, where it can still be said
 * well. "" is fine. */
bool tls_config_check_file(const char *key, const char *path, struct error *error);
/* 0 for "" and NULL, 1 to 4 for "1.0" to "1.3", -1 for anything else. */
int tls_config_version(const char *text);
