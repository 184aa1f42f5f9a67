/* SPDX-License-Identifier: Apache-2.0 */
/* Turns settings into an SSL_CTX. No session is ever resumed: a resumed one would outlive the
 * client certificate, or the authority, that let it begin, and senders of telemetry keep their
 * connections anyway. One lane's. */
#include "src/net/tls/tls_context_state.h"

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/config/shared/tls_config.h"
#include "src/net/tls/tls_pem.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As Go accepts them: 80 bits, so RSA from 1024 bits and no SHA-1 in signatures. The versions
 * before 1.2 cannot do without SHA-1. */
enum { SECURITY_LEVEL = 1, SECURITY_LEVEL_OLD = 0, PROTOCOLS_BYTES_MAX = 64 };

/* Go's order where the processor has AES. */
static const char suites_1_3[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

/* Where distributions keep the authorities that they trust; OpenSSL's own default is a folder of
 * hashed names, which images from scratch do not have. */
static const char *const system_bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static bool name_is(const unsigned char *name, size_t size, const char *text)
{
    assert(name != NULL);
    return strlen(text) == size && memcmp(name, text, size) == 0;
}

static bool is_offered(const unsigned char *offer, unsigned size, const char *protocol,
                       const unsigned char **ret_name)
{
    assert(protocol != NULL);
    for (unsigned at = 0; at < size; at += 1U + offer[at]) {
        if (at + 1 + offer[at] > size || !name_is(offer + at + 1, offer[at], protocol))
            continue;
        *ret_name = offer + at + 1;
        return true;
    }
    return false;
}

/* Our best one that is offered, as in Go; who knows only HTTP/1.1 is let in without a protocol
 * where HTTP/2 is spoken, and anything else refused (RFC 7301 §3.2). */
static int on_protocols_offered(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_size,
                                const unsigned char *offer, unsigned size, void *arg)
{
    const char *const *protocols = arg;
    const unsigned char *name = NULL;
    assert(protocols != NULL);
    (void)ssl;
    bool has_http2 = false;
    for (; *protocols != NULL; protocols++) {
        has_http2 |= strcmp(*protocols, "h2") == 0;
        if (!is_offered(offer, size, *protocols, &name))
            continue;
        *ret_name = name;
        *ret_size = (unsigned char)strlen(*protocols);
        return SSL_TLSEXT_ERR_OK;
    }
    bool falls_back = has_http2 && is_offered(offer, size, "http/1.1", &name);
    return falls_back ? SSL_TLSEXT_ERR_NOACK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void offer_protocols(const struct tls_context *context, SSL_CTX *ssl)
{
    unsigned char wire[PROTOCOLS_BYTES_MAX];
    unsigned used = 0;
    for (const char *const *name = context->settings.protocols; *name != NULL; name++) {
        size_t size = strlen(*name);
        assert(used + 1 + size <= sizeof(wire));
        wire[used] = (unsigned char)size;
        memcpy(wire + used + 1, *name, size);
        used += 1 + (unsigned)size;
    }
    int failed = context->library->SSL_CTX_set_alpn_protos(ssl, wire, used);
    assert(failed == 0);
    (void)failed;
}

static void set_protocols(const struct tls_context *context, SSL_CTX *ssl)
{
    assert(ssl != NULL);
    if (context->settings.protocols == NULL)
        return;
    if (context->is_server)
        context->library->SSL_CTX_set_alpn_select_cb(
            ssl, on_protocols_offered, (void *)(uintptr_t)context->settings.protocols);
    else
        offer_protocols(context, ssl);
}

static void set_versions(const struct tls_context *context, SSL_CTX *ssl, bool needs_1_3)
{
    static const long versions[] = {0, TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION,
                                    TLS1_3_VERSION};
    int min = tls_config_version(context->config->min_version);
    int max = tls_config_version(context->config->max_version);
    assert(min >= 0 && max >= 0);
    long lowest = needs_1_3 ? TLS1_3_VERSION : min == 0 ? TLS1_2_VERSION : versions[min];
    context->library->SSL_CTX_ctrl(ssl, SSL_CTRL_SET_MIN_PROTO_VERSION, lowest, NULL);
    context->library->SSL_CTX_ctrl(ssl, SSL_CTRL_SET_MAX_PROTO_VERSION, versions[max], NULL);
    context->library->SSL_CTX_set_security_level(ssl, lowest < TLS1_2_VERSION ? SECURITY_LEVEL_OLD
                                                                              : SECURITY_LEVEL);
}

static bool set_suites(const struct tls_context *context, SSL_CTX *ssl, struct error *error)
{
    const struct tls_library *library = context->library;
    const struct tls_config *config = context->config;
    char list[TLS_LIST_BYTES_MAX];
    assert(ssl != NULL);
    if (!tls_suites_translate(&config->cipher_suites, config->include_insecure_cipher_suites, list,
                              error))
        return error_prefix(error, "tls::cipher_suites");
    set_versions(context, ssl, list[0] == '\0');
    library->SSL_CTX_set_ciphersuites(ssl, suites_1_3);
    if (list[0] != '\0' && library->SSL_CTX_set_cipher_list(ssl, list) != 1)
        return error_set(error, "tls::cipher_suites: %s has none of %s",
                         library->OpenSSL_version(OPENSSL_VERSION), list);
    if (!tls_curves_translate(&config->curve_preferences, list, error))
        return error_prefix(error, "tls::curve_preferences");
    if (list[0] != '\0' && library->SSL_CTX_ctrl(ssl, SSL_CTRL_SET_GROUPS_LIST, 0, list) != 1)
        return error_set(error, "tls::curve_preferences: %s does not know all of %s",
                         library->OpenSSL_version(OPENSSL_VERSION), list);
    return true;
}

static void trust_system(const struct tls_library *library, SSL_CTX *ssl)
{
    assert(ssl != NULL);
    bool is_told = getenv("SSL_CERT_FILE") != NULL || getenv("SSL_CERT_DIR") != NULL;
    for (size_t i = 0; !is_told && i < sizeof(system_bundles) / sizeof(system_bundles[0]); i++)
        if (access(system_bundles[i], R_OK) == 0 &&
            library->SSL_CTX_load_verify_file(ssl, system_bundles[i]) == 1)
            return;
    library->SSL_CTX_set_default_verify_paths(ssl);
    library->ERR_clear_error();
}

bool tls_trust_system(void *ssl_context)
{
    struct error ignored;
    const struct tls_library *library = tls_library_load(&ignored);
    assert(ssl_context != NULL);
    if (library != NULL)
        trust_system(library, ssl_context);
    return library != NULL;
}

/* Names the text's key and, if it has one, its file. */
static bool say_where(struct error *error, const char *key, const char *file)
{
    assert(key != NULL);
    if (is_set(file))
        return error_prefix(error, "tls::%s_file: %s", key, file);
    return error_prefix(error, "tls::%s_pem", key);
}

static bool set_trust(const struct tls_context *context, SSL_CTX *ssl,
                      const struct tls_texts *texts, struct error *error)
{
    const struct tls_library *library = context->library;
    bool has_own = texts->authorities != NULL;
    bool is_checked = context->is_server ? is_set(context->client_ca_file) : !context->skips_verify;
    const char *file = context->is_server ? context->client_ca_file : context->config->ca_file;
    if (has_own && !tls_pem_trust(library, ssl, texts->authorities, context->is_server, error))
        return say_where(error, context->is_server ? "client_ca" : "ca", file);
    if (!context->is_server && (!has_own || context->config->include_system_ca_certs_pool))
        trust_system(library, ssl);
    library->SSL_CTX_set_verify_depth(ssl, TLS_DEPTH_MAX);
    library->SSL_CTX_set_verify(
        ssl, is_checked ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_NONE,
        NULL);
    /* As in Go, each certificate that is trusted ends a chain, signed by itself or not, and only
     * the names that are meant for it (not the subject) name a host. */
    X509_VERIFY_PARAM *rules = library->SSL_CTX_get0_param(ssl);
    library->X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_PARTIAL_CHAIN);
    library->X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                                        X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return true;
}

static bool set_pair(const struct tls_context *context, SSL_CTX *ssl, const struct tls_texts *texts,
                     struct error *error)
{
    assert((texts->certificate == NULL) == (texts->key == NULL));
    if (texts->certificate == NULL)
        return true;
    if (!tls_pem_use_certificate(context->library, ssl, texts->certificate, error))
        return say_where(error, "cert", context->config->cert_file);
    if (!tls_pem_use_key(context->library, ssl, texts->key, error))
        return say_where(error, "key", context->config->key_file);
    return true;
}

static void set_manners(const struct tls_library *library, SSL_CTX *ssl)
{
    assert(ssl != NULL);
    library->SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                          SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                          SSL_OP_PRIORITIZE_CHACHA);
    library->SSL_CTX_set_num_tickets(ssl, 0);
    library->SSL_CTX_ctrl(ssl, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    /* An idle connection gives its two buffers of 17 KB back. */
    library->SSL_CTX_ctrl(ssl, SSL_CTRL_MODE,
                          SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
}

SSL_CTX *tls_context_build(const struct tls_context *context, const struct tls_texts *texts,
                           struct error *error)
{
    const struct tls_library *library = context->library;
    assert(library != NULL);
    assert(texts != NULL);
    library->ERR_clear_error();
    SSL_CTX *ssl = library->SSL_CTX_new(context->is_server ? library->TLS_server_method()
                                                           : library->TLS_client_method());
    if (ssl == NULL) {
        error_set(error, "tls: OpenSSL gives no context; is its configuration broken?");
        return NULL;
    }
    set_manners(library, ssl);
    set_protocols(context, ssl);
    bool is_fine = set_suites(context, ssl, error) && set_trust(context, ssl, texts, error) &&
                   set_pair(context, ssl, texts, error);
    library->ERR_clear_error();
    if (is_fine)
        return ssl;
    library->SSL_CTX_free(ssl);
    return NULL;
}
