/* SPDX-License-Identifier: Apache-2.0 */
/* The tls sections of clients and servers: names of cipher suites and curves, option tables, rules.
 * Pure functions, but tls_client_check_files and tls_config_check_file read files. Main thread. */
#include "src/config/shared/tls_config.h"

#include <assert.h>
#include <string.h>

#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

struct tls_name {
    const char *go;
    const char *openssl; /* "": TLS 1.3, always on; NULL: known, but not available */
    bool is_insecure;
};

static const struct tls_name suites[] = {
    {"TLS_AES_128_GCM_SHA256", "", false},
    {"TLS_AES_256_GCM_SHA384", "", false},
    {"TLS_CHACHA20_POLY1305_SHA256", "", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256", false},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384", false},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384", false},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305", false},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA", false},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA", false},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA-AES128-SHA256", true},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256", true},
    {"TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256", true},
    {"TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384", true},
    {"TLS_RSA_WITH_AES_128_CBC_SHA256", "AES128-SHA256", true},
    {"TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA", true},
    {"TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA", true},
    {"TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", NULL, true},
    {"TLS_RSA_WITH_3DES_EDE_CBC_SHA", NULL, true},
    {"TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", NULL, true},
    {"TLS_ECDHE_RSA_WITH_RC4_128_SHA", NULL, true},
    {"TLS_RSA_WITH_RC4_128_SHA", NULL, true},
    {.go = NULL},
};

static const struct tls_name curves[] = {
    {"P256", "P-256", false},
    {"P384", "P-384", false},
    {"P521", "P-521", false},
    {"X25519", "X25519", false},
    {"X25519MLKEM768", "X25519MLKEM768", false},
    {.go = NULL},
};

/* OpenSSL's default has finite fields, too, by which one ClientHello takes 180 ms (ffdhe8192). */
static const char curves_default[] = "X25519:P-256:P-384:P-521";

static const struct tls_name *find_name(const struct tls_name *table, const char *name)
{
    for (const struct tls_name *row = table; row->go != NULL; row++)
        if (strcmp(row->go, name) == 0)
            return row;
    return NULL;
}

/* Adds a name unless the list has it, so that a list is never longer than the table. */
static void append_name(char list[TLS_LIST_BYTES_MAX], const char *name)
{
    size_t size = strlen(name);
    size_t used = strlen(list);
    assert(size > 0);
    for (const char *at = list; *at != '\0'; at += strspn(at, ":")) {
        size_t length = strcspn(at, ":");
        if (length == size && memcmp(at, name, size) == 0)
            return;
        at += length;
    }
    assert(used + 1 + size < TLS_LIST_BYTES_MAX);
    if (used > 0)
        list[used++] = ':';
    memcpy(list + used, name, size + 1);
}

bool tls_suites_translate(const struct config_texts *names, bool takes_insecure,
                          char ret_list[TLS_LIST_BYTES_MAX], struct error *error)
{
    ret_list[0] = '\0';
    for (const struct tls_name *row = suites; names->count == 0 && row->go != NULL; row++)
        if (!row->is_insecure && row->openssl[0] != '\0')
            append_name(ret_list, row->openssl);
    for (size_t i = 0; i < names->count; i++) {
        const struct tls_name *suite = find_name(suites, names->texts[i]);
        if (suite == NULL)
            return error_set(error,
                             "invalid TLS cipher suite: \"%s\"; Go's names are expected, such as "
                             "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                             names->texts[i]) ||
                   error_at_index(error, i);
        if (suite->is_insecure && !takes_insecure)
            return error_set(error,
                             "invalid TLS cipher suite: \"%s\" is insecure; remove it, or set "
                             "include_insecure_cipher_suites: true",
                             names->texts[i]) ||
                   error_at_index(error, i);
        if (suite->openssl == NULL)
            return error_set(error,
                             "invalid TLS cipher suite: OpenSSL has no \"%s\" any more; remove it",
                             names->texts[i]) ||
                   error_at_index(error, i);
        if (suite->openssl[0] != '\0')
            append_name(ret_list, suite->openssl);
    }
    return true;
}

bool tls_curves_translate(const struct config_texts *names, char ret_list[TLS_LIST_BYTES_MAX],
                          struct error *error)
{
    ret_list[0] = '\0';
    if (names->count == 0)
        memcpy(ret_list, curves_default, sizeof(curves_default));
    for (size_t i = 0; i < names->count; i++) {
        const struct tls_name *curve = find_name(curves, names->texts[i]);
        if (curve == NULL)
            return error_set(error,
                             "invalid curve type: \"%s\"; P256, P384, P521, X25519 or "
                             "X25519MLKEM768 are expected",
                             names->texts[i]) ||
                   error_at_index(error, i);
        append_name(ret_list, curve->openssl);
    }
    return true;
}

static const struct config_field tls_tpm_fields[] = {
    CONFIG_BOOL(struct tls_tpm_config, enabled, "enabled", "false",
                "Not supported: true is an error."),
    CONFIG_UNUSED_TEXT(struct tls_tpm_config, path, "path", NULL, "Path of the TPM device."),
    CONFIG_IGNORED_SECRET("auth", "Authorisation of the TPM."),
    CONFIG_IGNORED_SECRET("owner_auth", "Owner authorisation of the TPM."),
    CONFIG_END,
};

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

int tls_config_version(const char *text)
{
    if (!is_set(text))
        return 0;
    if (strncmp(text, "1.", 2) != 0 || text[2] < '0' || text[2] > '3' || text[3] != '\0')
        return -1;
    return text[2] - '0' + 1;
}

/* Names the key that is set. */
static const char *given(const char *file, const char *file_key, const char *pem_key)
{
    return is_set(file) ? file_key : pem_key;
}

static bool check_common(const struct tls_config *tls, struct error *error)
{
    bool has_cert = is_set(tls->cert_file) || is_set(tls->cert_pem);
    bool has_key = is_set(tls->key_file) || is_set(tls->key_pem);
    if (is_set(tls->ca_file) && is_set(tls->ca_pem))
        return error_set(error,
                         "provide either a CA file or the PEM-encoded string, but not both") ||
               error_at(error, "ca_pem");
    if (is_set(tls->cert_file) && is_set(tls->cert_pem))
        return error_set(error, "provide either certificate file or PEM, but not both") ||
               error_at(error, "cert_pem");
    if (is_set(tls->key_file) && is_set(tls->key_pem))
        return error_set(error, "provide either key file or PEM, but not both") ||
               error_at(error, "key_pem");
    if (has_cert != has_key)
        return error_set(error, "TLS configuration must include both certificate and key "
                                "(CertFile/CertPem and KeyFile/KeyPem)") ||
               error_at(error, has_cert ? given(tls->cert_file, "cert_file", "cert_pem")
                                        : given(tls->key_file, "key_file", "key_pem"));
    int min = tls_config_version(tls->min_version);
    int max = tls_config_version(tls->max_version);
    if (min < 0)
        return error_set(error,
                         "invalid TLS min_version: unsupported TLS version: \"%s\"; \"1.0\" to "
                         "\"1.3\" are expected",
                         tls->min_version) ||
               error_at(error, "min_version");
    if (max < 0)
        return error_set(error,
                         "invalid TLS max_version: unsupported TLS version: \"%s\"; \"1.0\" to "
                         "\"1.3\" are expected",
                         tls->max_version) ||
               error_at(error, "max_version");
    if (max != 0 && (min == 0 ? 3 : min) > max)
        return error_set(error,
                         "invalid TLS configuration: min_version (\"%s\") cannot be greater "
                         "than max_version (\"%s\")",
                         min == 0 ? "1.2" : tls->min_version, tls->max_version) ||
               error_at(error, min == 0 ? "max_version" : "min_version");
    char list[TLS_LIST_BYTES_MAX];
    if (!tls_suites_translate(&tls->cipher_suites, tls->include_insecure_cipher_suites, list,
                              error))
        return error_at(error, "cipher_suites");
    if (tls->cipher_suites.count > 0 && list[0] == '\0' && max != 0 && max < 4)
        return error_set(error,
                         "all of them are of TLS 1.3, which max_version \"%s\" forbids; name "
                         "suites of TLS 1.2, or remove the key",
                         tls->max_version) ||
               error_at(error, "cipher_suites");
    if (!tls_curves_translate(&tls->curve_preferences, list, error))
        return error_at(error, "curve_preferences");
    if (tls->tpm.enabled)
        return error_set(error, "tpm is not supported; keep the key in key_file") ||
               error_unsupported(error) || error_at(error, "enabled") || error_at(error, "tpm");
    return true;
}

bool tls_config_check_file(const char *key, const char *path, struct error *error)
{
    char *text;
    size_t size;
    if (!is_set(path))
        return true;
    int result = file_read_whole(path, TLS_FILE_BYTES_MAX, &text, &size);
    if (result < 0)
        return error_set(error, "tls::%s: cannot read %s: %s", key, path, strerror(-result)) ||
               error_at(error, key) || error_at(error, "tls");
    bool is_pem = memmem(text, size, "-----BEGIN ", strlen("-----BEGIN ")) != NULL;
    explicit_bzero(text, size);
    mem_free(text);
    if (!is_pem)
        return error_set(error, "tls::%s: %s holds no PEM block (-----BEGIN …)", key, path) ||
               error_at(error, key) || error_at(error, "tls");
    return true;
}

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

/* standard: of insecure. */
#define TLS_CLIENT_ROWS(standard)                                                                  \
    CONFIG_BOOL(struct tls_client_config, insecure, "insecure", standard,                          \
                "Connect in cleartext. An https URL uses TLS all the same."),                      \
        CONFIG_BOOL(struct tls_client_config, insecure_skip_verify, "insecure_skip_verify",        \
                    "false", "Accept any certificate of the server."),                             \
        CONFIG_TEXT(                                                                               \
            struct tls_client_config, server_name_override, "server_name_override", NULL,          \
            "Name that the server's certificate is checked for, instead of the URL's host."),      \
        CONFIG_TEXT(                                                                               \
            struct tls_client_config, common.ca_file, "ca_file", NULL,                             \
            "File with the certificates of the authorities that are trusted; the system's when "   \
            "unset."),                                                                             \
        CONFIG_TEXT(struct tls_client_config, common.ca_pem, "ca_pem", NULL,                       \
                    "The same as PEM text."),                                                      \
        CONFIG_BOOL(struct tls_client_config, common.include_system_ca_certs_pool,                 \
                    "include_system_ca_certs_pool", "false",                                       \
                    "Trust the system's authorities beside ca_file or ca_pem."),                   \
        TLS_ROWS(struct tls_client_config, common),                                                \
        CONFIG_DURATION_OR_NEGATIVE(                                                               \
            struct tls_client_config, common.reload_interval_ns, "reload_interval", "0",           \
            "How often certificate and key may be re-read. HTTP reads them for each connection.")

const struct config_field tls_client_fields[] = {TLS_CLIENT_ROWS("false"), CONFIG_END};
const struct config_field tls_client_cleartext_fields[] = {TLS_CLIENT_ROWS("true"), CONFIG_END};

bool tls_client_check(const void *section, struct error *error)
{
    const struct tls_client_config *tls = section;
    return check_common(&tls->common, error);
}

bool tls_client_check_files(const struct tls_client_config *tls, struct error *error)
{
    return tls_config_check_file("ca_file", tls->common.ca_file, error) &&
           tls_config_check_file("cert_file", tls->common.cert_file, error) &&
           tls_config_check_file("key_file", tls->common.key_file, error);
}

const struct config_field tls_server_fields[] = {
    TLS_ROWS(struct tls_server_config, common),
    CONFIG_DURATION_OR_NEGATIVE(struct tls_server_config, common.reload_interval_ns,
                                "reload_interval", "0",
                                "The first connection after this interval re-reads certificate and "
                                "key; an invalid pair is ignored. 0: never."),
    CONFIG_TEXT(struct tls_server_config, client_ca_file, "client_ca_file", NULL,
                "File with certificates of authorities: clients must have a certificate of one."),
    CONFIG_BOOL(struct tls_server_config, client_ca_file_reload, "client_ca_file_reload", "false",
                "On new connections, at most once a second, check whether that file changed."),
    CONFIG_UNUSED_TEXT(struct tls_server_config, common.ca_file, "ca_file", NULL,
                       "Servers have client_ca_file for this."),
    CONFIG_UNUSED_TEXT(struct tls_server_config, common.ca_pem, "ca_pem", NULL,
                       "Servers have client_ca_file for this."),
    CONFIG_IGNORED_BOOL("include_system_ca_certs_pool", "Of servers only client_ca_file counts."),
    CONFIG_END,
};

bool tls_server_check(const void *section, struct error *error)
{
    const struct tls_server_config *tls = section;
    const struct tls_config *common = &tls->common;
    bool has_any = is_set(common->cert_file) || is_set(common->cert_pem) ||
                   is_set(common->key_file) || is_set(common->key_pem);
    if (!has_any)
        return error_set(error, "TLS configuration must include both certificate and key for "
                                "server connections");
    return check_common(common, error);
}
