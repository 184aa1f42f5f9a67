/* SPDX-License-Identifier: Apache-2.0 */
/* The tls sections of everything that connects or listens: structs, option tables and rules.
 * Constants and pure functions; the main thread runs them while it loads the configuration. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
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

struct tls_client_config {
    struct tls_config common;
    bool insecure; /* cleartext; an https URL uses TLS all the same */
    bool insecure_skip_verify;
    const char *server_name_override;
};

extern const struct config_field tls_client_fields[];
/* The same, but that insecure is true by default. */
extern const struct config_field tls_client_cleartext_fields[];

/* Rules across the fields; section is a struct tls_client_config. */
bool tls_client_check(const void *section, struct error *error);
/* False: a file that it names cannot be read now, or holds no PEM. Checked at start, where the
 * error still has its place in the configuration. */
bool tls_client_check_files(const struct tls_client_config *tls, struct error *error);

#define TLS_CLIENT_ROW(owner, field)                                                               \
    CONFIG_SECTION(owner, field, struct tls_client_config, "tls", tls_client_fields,               \
                   tls_client_check, "TLS towards the server.")

struct tls_server_config {
    struct tls_config common;
    const char *client_ca_file; /* set: clients must have a certificate of these authorities */
    bool client_ca_file_reload;
};

extern const struct config_field tls_server_fields[];

/* Rules across the fields; section is a struct tls_server_config. */
bool tls_server_check(const void *section, struct error *error);

/* flag is a bool field of owner that says whether TLS is on. */
#define TLS_SERVER_ROW(owner, field, flag)                                                         \
    CONFIG_OPTIONAL(owner, field, struct tls_server_config, flag, CONFIG_NULL_IS_OFF, "tls",       \
                    tls_server_fields, tls_server_check,                                           \
                    "TLS towards clients; cleartext when "                                         \
                    "unset.")

/* False: the file, the value of key, cannot be read or holds no PEM block. "" is fine. */
bool tls_config_check_file(const char *key, const char *path, struct error *error);
/* 0 for "" and NULL, 1 to 4 for "1.0" to "1.3", -1 for anything else. */
int tls_config_version(const char *text);

enum { TLS_LIST_BYTES_MAX = 1024 }; /* room for all names, once each */

/* Cipher suites up to TLS 1.2 by Go's names as OpenSSL and libcurl read them, in the order written:
 * "ECDHE-RSA-AES128-GCM-SHA256:…"; for an empty list all safe ones. Suites of TLS 1.3 are accepted
 * and left out, since they cannot be chosen: "" when there are no others. */
bool tls_suites_translate(const struct config_texts *names, bool takes_insecure,
                          char ret_list[TLS_LIST_BYTES_MAX], struct error *error);
/* The same for curves: "X25519:P-256:…"; for an empty list those of Go but for X25519MLKEM768. */
bool tls_curves_translate(const struct config_texts *names, char ret_list[TLS_LIST_BYTES_MAX],
                          struct error *error);
