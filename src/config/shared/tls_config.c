/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of tls sections. Constants and pure functions but for the look at a file; the main thread
 * runs them. */
#include "src/config/shared/tls_config.h"

#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/shared/tls_names.h"

#include <assert.h>
#include <string.h>

const struct config_field tls_tpm_fields[] = {
    CONFIG_BOOL(struct tls_tpm_config, enabled, "enabled", "false",
                "Not supported: true is an error."),
    CONFIG_UNUSED_TEXT(struct tls_tpm_config, path, "path", "Path of the TPM device."),
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
    assert(text != NULL);
    if (strncmp(text, "1.", 2) != 0 || text[2] < '0' || text[2] > '3' || text[3] != '\0')
        return -1;
    return text[2] - '0' + 1;
}

static bool versions_check(const struct tls_config *tls, struct error *error)
{
    assert(error != NULL);
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
    return true;
}

/* The key of the one that is set. */
static const char *given(const char *file, const char *file_key, const char *pem_key)
{
    return is_set(file) ? file_key : pem_key;
}

static bool sources_check(const struct tls_config *tls, struct error *error)
{
    assert(error != NULL);
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
    return true;
}

static bool names_check(const struct tls_config *tls, struct error *error)
{
    assert(error != NULL);
    char list[TLS_LIST_BYTES_MAX];
    if (!tls_suites_translate(&tls->cipher_suites, tls->include_insecure_cipher_suites, list,
                              error))
        return error_at(error, "cipher_suites");
    int max = tls_config_version(tls->max_version);
    if (tls->cipher_suites.count > 0 && list[0] == '\0' && max != 0 && max < 4)
        return error_set(error,
                         "all of them are of TLS 1.3, which max_version \"%s\" forbids; name "
                         "suites of TLS 1.2, or remove the key",
                         tls->max_version) ||
               error_at(error, "cipher_suites");
    if (!tls_curves_translate(&tls->curve_preferences, list, error))
        return error_at(error, "curve_preferences");
    return true;
}

bool tls_config_check(const struct tls_config *tls, struct error *error)
{
    assert(tls != NULL);
    if (!sources_check(tls, error) || !versions_check(tls, error) || !names_check(tls, error))
        return false;
    if (tls->tpm.enabled)
        return error_set(error, "tpm is not supported; keep the key in key_file") ||
               error_at(error, "enabled") || error_at(error, "tpm");
    return true;
}

bool tls_config_check_file(const char *key, const char *path, struct error *error)
{
    assert(key != NULL);
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
