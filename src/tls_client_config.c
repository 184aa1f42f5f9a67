/* SPDX-License-Identifier: Apache-2.0 */
/* Option table and rules of a client's tls section. Constants and pure functions but for the look
 * at its files; the main thread runs them. */
#include "src/tls_client_config.h"

#include "src/error.h"
#include "src/fileops.h"
#include "src/mem.h"

#include <assert.h>
#include <string.h>

enum { TLS_FILE_BYTES_MAX = 4 << 20 };

static const struct config_field tpm_fields[] = {
    CONFIG_TEXT(struct tls_tpm_config, path, "path", NULL, "Path of the TPM device."),
    CONFIG_IGNORED("auth", "Authorisation of the TPM."),
    CONFIG_IGNORED("owner_auth", "Owner authorisation of the TPM."),
    CONFIG_END,
};

const struct config_field tls_client_fields[] = {
    CONFIG_BOOL(struct tls_client_config, insecure, "insecure", "false",
                "Connect in cleartext. An https URL uses TLS all the same."),
    CONFIG_BOOL(struct tls_client_config, insecure_skip_verify, "insecure_skip_verify", "false",
                "Accept any certificate of the server."),
    CONFIG_TEXT(struct tls_client_config, server_name_override, "server_name_override", NULL,
                "Name that the server's certificate is checked for, instead of the URL's host."),
    CONFIG_TEXT(struct tls_client_config, ca_file, "ca_file", NULL,
                "File with the certificates of the authorities that are trusted; the system's when "
                "unset."),
    CONFIG_TEXT(struct tls_client_config, ca_pem, "ca_pem", NULL, "The same as PEM text."),
    CONFIG_BOOL(struct tls_client_config, include_system_ca_certs_pool,
                "include_system_ca_certs_pool", "false",
                "Trust the system's authorities beside ca_file or ca_pem."),
    CONFIG_TEXT(struct tls_client_config, cert_file, "cert_file", NULL,
                "File with our certificate, read anew for each connection."),
    CONFIG_TEXT(struct tls_client_config, cert_pem, "cert_pem", NULL, "The same as PEM text."),
    CONFIG_TEXT(struct tls_client_config, key_file, "key_file", NULL,
                "File with the key of our certificate."),
    CONFIG_SECRET(struct tls_client_config, key_pem, "key_pem", "The same as PEM text."),
    CONFIG_TEXT(struct tls_client_config, min_version, "min_version", NULL,
                "Lowest version: \"1.0\" to \"1.3\"; \"1.2\" when unset."),
    CONFIG_TEXT(struct tls_client_config, max_version, "max_version", NULL,
                "Highest version; \"1.3\" when unset."),
    CONFIG_TEXTS(struct tls_client_config, cipher_suites, "cipher_suites", NULL,
                 "Not supported yet: the library's safe defaults are used."),
    CONFIG_TEXTS(struct tls_client_config, curve_preferences, "curve_preferences", NULL,
                 "Not supported yet: the library's defaults are used."),
    CONFIG_IGNORED("include_insecure_cipher_suites", "Insecure cipher suites are never offered."),
    CONFIG_IGNORED("reload_interval", "Certificates are read anew for each connection."),
    CONFIG_OPTIONAL(struct tls_client_config, tpm, struct tls_tpm_config, has_tpm,
                    CONFIG_NULL_IS_OFF, "tpm", tpm_fields, NULL, "Not supported."),
    CONFIG_END,
};

static bool is_set(const char *text)
{
    assert(text != NULL);
    return text[0] != '\0';
}

/* 0 for "", 1 to 4 for "1.0" to "1.3", -1 for anything else. */
static int version_of(const char *text)
{
    assert(text != NULL);
    if (text[0] == '\0')
        return 0;
    if (strncmp(text, "1.", 2) != 0 || text[2] < '0' || text[2] > '3' || text[3] != '\0')
        return -1;
    return text[2] - '0' + 1;
}

static bool versions_check(const struct tls_client_config *tls, struct error *error)
{
    assert(error != NULL);
    int min = version_of(tls->min_version);
    int max = version_of(tls->max_version);
    if (min < 0)
        return error_set(error,
                         "invalid TLS min_version: unsupported TLS version: \"%s\"; \"1.0\" to "
                         "\"1.3\" are expected",
                         tls->min_version);
    if (max < 0)
        return error_set(error,
                         "invalid TLS max_version: unsupported TLS version: \"%s\"; \"1.0\" to "
                         "\"1.3\" are expected",
                         tls->max_version);
    if (max != 0 && (min == 0 ? 3 : min) > max)
        return error_set(error,
                         "invalid TLS configuration: min_version (\"%s\") cannot be greater "
                         "than max_version (\"%s\")",
                         min == 0 ? "1.2" : tls->min_version, tls->max_version);
    return true;
}

static bool sources_check(const struct tls_client_config *tls, struct error *error)
{
    assert(error != NULL);
    bool has_cert = is_set(tls->cert_file) || is_set(tls->cert_pem);
    bool has_key = is_set(tls->key_file) || is_set(tls->key_pem);
    if (is_set(tls->ca_file) && is_set(tls->ca_pem))
        return error_set(error, "provide either a CA file or the PEM-encoded string, but not both");
    if (is_set(tls->cert_file) && is_set(tls->cert_pem))
        return error_set(error, "provide either certificate file or PEM, but not both");
    if (is_set(tls->key_file) && is_set(tls->key_pem))
        return error_set(error, "provide either key file or PEM, but not both");
    if (has_cert != has_key)
        return error_set(error, "TLS configuration must include both certificate and key "
                                "(CertFile/CertPem and KeyFile/KeyPem)");
    return true;
}

bool tls_client_check(const void *section, struct error *error)
{
    const struct tls_client_config *tls = section;
    assert(tls != NULL);
    if (!sources_check(tls, error) || !versions_check(tls, error))
        return false;
    if (tls->cipher_suites.count > 0)
        return error_set(error, "cipher_suites is not supported by this build yet; without the key "
                                "only safe suites are offered");
    if (tls->curve_preferences.count > 0)
        return error_set(error, "curve_preferences is not supported by this build yet; without the "
                                "key the library's order is used");
    if (tls->has_tpm)
        return error_set(error, "tpm is not supported; keep the key in key_file");
    return true;
}

static bool file_check(const char *key, const char *path, struct error *error)
{
    assert(key != NULL);
    char *text;
    size_t size;
    if (!is_set(path))
        return true;
    int result = file_read_whole(path, TLS_FILE_BYTES_MAX, &text, &size);
    if (result < 0)
        return error_set(error, "tls::%s: cannot read %s: %s", key, path, strerror(-result));
    bool is_pem = memmem(text, size, "-----BEGIN ", strlen("-----BEGIN ")) != NULL;
    explicit_bzero(text, size);
    mem_free(text);
    if (!is_pem)
        return error_set(error, "tls::%s: %s holds no PEM block (-----BEGIN …)", key, path);
    return true;
}

bool tls_client_check_files(const struct tls_client_config *tls, struct error *error)
{
    assert(tls != NULL);
    return file_check("ca_file", tls->ca_file, error) &&
           file_check("cert_file", tls->cert_file, error) &&
           file_check("key_file", tls->key_file, error);
}
