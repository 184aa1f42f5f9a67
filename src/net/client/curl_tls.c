/* SPDX-License-Identifier: Apache-2.0 */
/* Options of libcurl that mean what the tls section means in the Go collector. A failing setopt
 * would mean a libcurl built without the option; the floor of version 7.88 has them all. On the
 * client's lane. */
#include "src/net/client/curl_tls.h"

#include "src/base/error.h"
#include "src/config/shared/tls_config.h"
#include "src/net/tls/tls_context.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static void apply_versions(const struct curl_library *library, CURL *easy,
                           const struct tls_config *tls, bool needs_1_3)
{
    static const long lowest[] = {CURL_SSLVERSION_TLSv1_2, CURL_SSLVERSION_TLSv1_0,
                                  CURL_SSLVERSION_TLSv1_1, CURL_SSLVERSION_TLSv1_2,
                                  CURL_SSLVERSION_TLSv1_3};
    static const long highest[] = {CURL_SSLVERSION_MAX_DEFAULT, CURL_SSLVERSION_MAX_TLSv1_0,
                                   CURL_SSLVERSION_MAX_TLSv1_1, CURL_SSLVERSION_MAX_TLSv1_2,
                                   CURL_SSLVERSION_MAX_TLSv1_3};
    int min = needs_1_3 ? 4 : tls_config_version(tls->min_version);
    int max = tls_config_version(tls->max_version);
    assert(min >= 0 && max >= 0);
    library->easy_setopt(easy, CURLOPT_SSLVERSION, lowest[min] | highest[max]);
}

/* The same suites, curves and strength as everywhere else (tls_build.c). */
static void apply_suites(const struct curl_library *library, CURL *easy,
                         const struct tls_config *tls)
{
    struct error error;
    char list[TLS_LIST_BYTES_MAX];
    char with_level[TLS_LIST_BYTES_MAX + 16];
    int min = tls_config_version(tls->min_version);
    bool is_fine = tls_suites_translate(&tls->cipher_suites, tls->include_insecure_cipher_suites,
                                        list, &error);
    assert(is_fine && "the configuration was checked");
    apply_versions(library, easy, tls, list[0] == '\0');
    snprintf(with_level, sizeof(with_level), "%s:@SECLEVEL=%d", list, min == 1 || min == 2 ? 0 : 1);
    if (list[0] != '\0')
        library->easy_setopt(easy, CURLOPT_SSL_CIPHER_LIST, with_level);
    is_fine = tls_curves_translate(&tls->curve_preferences, list, &error);
    assert(is_fine && "the configuration was checked");
    (void)is_fine;
    if (list[0] != '\0')
        library->easy_setopt(easy, CURLOPT_SSL_EC_CURVES, list);
}

static void set_blob(const struct curl_library *library, CURL *easy, CURLoption option,
                     const char *pem)
{
    assert(pem != NULL);
    struct curl_blob blob = {
        .data = (void *)(uintptr_t)pem, .len = strlen(pem), .flags = CURL_BLOB_NOCOPY};
    library->easy_setopt(easy, option, &blob);
}

static CURLcode on_context(CURL *easy, void *ssl, void *arg)
{
    assert(ssl != NULL);
    (void)easy;
    (void)arg;
    return tls_trust_system(ssl) ? CURLE_OK : CURLE_SSL_CACERT_BADFILE;
}

/* As in Go, a CA of the user's replaces the system's, unless both are asked for; without one,
 * SSL_CERT_FILE and SSL_CERT_DIR do. */
static void apply_authorities(const struct curl_library *library, CURL *easy,
                              const struct tls_config *tls)
{
    const char *file = getenv("SSL_CERT_FILE");
    const char *folder = getenv("SSL_CERT_DIR");
    assert(library != NULL);
    if (is_set(tls->ca_file))
        library->easy_setopt(easy, CURLOPT_CAINFO, tls->ca_file);
    else if (is_set(tls->ca_pem))
        set_blob(library, easy, CURLOPT_CAINFO_BLOB, tls->ca_pem);
    else if (is_set(file))
        library->easy_setopt(easy, CURLOPT_CAINFO, file);
    if (is_set(tls->ca_file) || is_set(tls->ca_pem)) {
        library->easy_setopt(easy, CURLOPT_CAPATH, NULL);
        if (tls->include_system_ca_certs_pool)
            library->easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_context);
    } else if (is_set(folder)) {
        library->easy_setopt(easy, CURLOPT_CAPATH, folder);
    }
}

static void apply_pair(const struct curl_library *library, CURL *easy, const struct tls_config *tls)
{
    assert(library != NULL);
    if (is_set(tls->cert_file))
        library->easy_setopt(easy, CURLOPT_SSLCERT, tls->cert_file);
    else if (is_set(tls->cert_pem))
        set_blob(library, easy, CURLOPT_SSLCERT_BLOB, tls->cert_pem);
    if (is_set(tls->key_file))
        library->easy_setopt(easy, CURLOPT_SSLKEY, tls->key_file);
    else if (is_set(tls->key_pem))
        set_blob(library, easy, CURLOPT_SSLKEY_BLOB, tls->key_pem);
}

void curl_tls_apply(const struct curl_library *library, CURL *easy,
                    const struct tls_client_config *tls)
{
    static const struct tls_client_config defaults;
    assert(library != NULL);
    if (tls == NULL)
        tls = &defaults;
    apply_authorities(library, easy, &tls->common);
    apply_suites(library, easy, &tls->common);
    apply_pair(library, easy, &tls->common);
    library->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, tls->insecure_skip_verify ? 0L : 1L);
    library->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, tls->insecure_skip_verify ? 0L : 2L);
}

/* A context of our own, made and thrown away, finds every fault of files and names. */
bool curl_tls_check(const struct tls_client_config *tls, struct error *error)
{
    assert(tls != NULL);
    struct tls_context *context =
        tls_context_create_client(tls, &(struct tls_context_settings){.protocols = NULL}, error);
    tls_context_destroy(context);
    return context != NULL;
}
