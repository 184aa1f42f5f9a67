/* SPDX-License-Identifier: Apache-2.0 */
/* TLS contexts. In this order: the data, the SSL_CTX built from it, and its PEM texts, which are
 * read from files or given in place, and read again later. Files are read on the lane, when a
 * connection begins: they are small, local, and checked rarely.
 *
 * Sessions are never resumed: a resumed session would outlive the client certificate, or the
 * authority, that allowed it, and senders of telemetry keep their connections anyway. One lane's.
 */
#include "src/net/tls/tls_context.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/shared/tls_config.h"
#include "src/net/tls/tls_library.h"
#include "src/net/tls/tls_pem.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The PEM texts in ssl; owned. NULL: none. */
struct tls_texts {
    char *certificate;
    char *key;
    char *authorities;
};

struct tls_context {
    const struct tls_library *library;
    struct tls_context_settings settings;
    const struct tls_config *config;
    bool is_server;
    bool skips_verify;
    const char *server_name_override; /* clients; "" or NULL: none */
    const char *client_ca_file;       /* servers; "" or NULL: clients need no certificate */
    bool reloads_client_ca;
    SSL_CTX *ssl;
    struct tls_texts texts;
    uint64_t pair_due_ns; /* when to read certificate and key again; UINT64_MAX: never */
    uint64_t client_ca_due_ns;
};

/* As in Go: 80 bits, that is RSA from 1024 bits and no SHA-1 signatures. Versions before 1.2 need
 * SHA-1. */
enum { SECURITY_LEVEL = 1, SECURITY_LEVEL_OLD = 0, PROTOCOLS_BYTES_MAX = 64 };

/* Go's order where the processor has AES. */
static const char suites_1_3[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

/* Where distributions keep their trusted authorities. OpenSSL's own default is a folder of hashed
 * names, which minimal images do not have. */
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

static bool is_offered(const unsigned char *offer, unsigned size, const char *protocol,
                       const unsigned char **ret_name)
{
    for (unsigned at = 0; at < size; at += 1U + offer[at]) {
        if (at + 1 + offer[at] > size)
            continue;
        if (strlen(protocol) != offer[at] || memcmp(offer + at + 1, protocol, offer[at]) != 0)
            continue;
        *ret_name = offer + at + 1;
        return true;
    }
    return false;
}

/* Selects our first protocol that is offered, as Go does. A client that offers only HTTP/1.1 to a
 * server with HTTP/2 is accepted without a protocol; others are refused (RFC 7301 §3.2). */
static int on_protocols_offered(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_size,
                                const unsigned char *offer, unsigned size, void *arg)
{
    const char *const *protocols = arg;
    const unsigned char *name = NULL;
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

static bool set_suites(const struct tls_context *context, SSL_CTX *ssl, struct error *error)
{
    const struct tls_library *library = context->library;
    const struct tls_config *config = context->config;
    char list[TLS_LIST_BYTES_MAX];
    if (!tls_suites_translate(&config->cipher_suites, config->include_insecure_cipher_suites, list,
                              error))
        return error_prefix(error, "tls::cipher_suites");
    static const long versions[] = {0, TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION,
                                    TLS1_3_VERSION};
    int min = tls_config_version(context->config->min_version);
    int max = tls_config_version(context->config->max_version);
    assert(min >= 0 && max >= 0);
    long lowest = (list[0] == '\0') ? TLS1_3_VERSION : min == 0 ? TLS1_2_VERSION : versions[min];
    context->library->SSL_CTX_ctrl(ssl, SSL_CTRL_SET_MIN_PROTO_VERSION, lowest, NULL);
    context->library->SSL_CTX_ctrl(ssl, SSL_CTRL_SET_MAX_PROTO_VERSION, versions[max], NULL);
    context->library->SSL_CTX_set_security_level(ssl, lowest < TLS1_2_VERSION ? SECURITY_LEVEL_OLD
                                                                              : SECURITY_LEVEL);
    library->SSL_CTX_set_ciphersuites(ssl, suites_1_3);
    if (list[0] != '\0' && library->SSL_CTX_set_cipher_list(ssl, list) != 1)
        return error_set(error, "tls::cipher_suites: %s supports none of %s",
                         library->OpenSSL_version(OPENSSL_VERSION), list);
    if (!tls_curves_translate(&config->curve_preferences, list, error))
        return error_prefix(error, "tls::curve_preferences");
    if (library->SSL_CTX_ctrl(ssl, SSL_CTRL_SET_GROUPS_LIST, 0, list) != 1)
        return error_set(error, "tls::curve_preferences: %s does not support all of %s",
                         library->OpenSSL_version(OPENSSL_VERSION), list);
    return true;
}

static void trust_system(const struct tls_library *library, SSL_CTX *ssl)
{
    bool is_configured = getenv("SSL_CERT_FILE") != NULL || getenv("SSL_CERT_DIR") != NULL;
    for (size_t i = 0; !is_configured && i < sizeof(system_bundles) / sizeof(system_bundles[0]);
         i++)
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
    if (library != NULL)
        trust_system(library, ssl_context);
    return library != NULL;
}

/* Prefixes the key of the text and, if it has one, its file. */
static bool name_key(struct error *error, const char *key, const char *file)
{
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
        return name_key(error, context->is_server ? "client_ca" : "ca", file);
    if (!context->is_server && (!has_own || context->config->include_system_ca_certs_pool))
        trust_system(library, ssl);
    library->SSL_CTX_set_verify_depth(ssl, TLS_DEPTH_MAX);
    library->SSL_CTX_set_verify(
        ssl, is_checked ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_NONE,
        NULL);
    /* As in Go, each trusted certificate ends a chain, self-signed or not, and only subject
     * alternative names (not the subject) name a host. */
    X509_VERIFY_PARAM *rules = library->SSL_CTX_get0_param(ssl);
    library->X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_PARTIAL_CHAIN);
    library->X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                                        X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return true;
}

/* Uses these texts from now on. False: they cannot be used, and the old ones stay. */
static bool adopt(struct tls_context *context, const struct tls_texts *texts, struct error *error)
{
    const struct tls_library *library = context->library;
    library->ERR_clear_error();
    SSL_CTX *ssl = library->SSL_CTX_new(context->is_server ? library->TLS_server_method()
                                                           : library->TLS_client_method());
    if (ssl == NULL)
        return error_set(error,
                         "tls: OpenSSL cannot create a context; is its configuration broken?");
    library->SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                          SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                          SSL_OP_PRIORITIZE_CHACHA);
    library->SSL_CTX_set_num_tickets(ssl, 0);
    library->SSL_CTX_ctrl(ssl, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    /* An idle connection frees its two buffers of 17 KB. */
    library->SSL_CTX_ctrl(ssl, SSL_CTRL_MODE,
                          SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
    /* Each record without data ends a call of SSL_read, so that they can be counted. */
    library->SSL_CTX_ctrl(ssl, SSL_CTRL_CLEAR_MODE, SSL_MODE_AUTO_RETRY, NULL);
    if (context->settings.protocols != NULL) {
        if (context->is_server) {
            library->SSL_CTX_set_alpn_select_cb(ssl, on_protocols_offered,
                                                (void *)(uintptr_t)context->settings.protocols);
        } else {
            unsigned char wire[PROTOCOLS_BYTES_MAX];
            unsigned used = 0;
            for (const char *const *name = context->settings.protocols; *name != NULL; name++) {
                size_t size = strlen(*name);
                assert(used + 1 + size <= sizeof(wire));
                wire[used] = (unsigned char)size;
                memcpy(wire + used + 1, *name, size);
                used += 1 + (unsigned)size;
            }
            int failed = library->SSL_CTX_set_alpn_protos(ssl, wire, used);
            assert(failed == 0);
        }
    }
    bool is_fine = set_suites(context, ssl, error) && set_trust(context, ssl, texts, error);
    assert((texts->certificate == NULL) == (texts->key == NULL));
    if (is_fine && texts->certificate != NULL) {
        if (!tls_pem_use_certificate(library, ssl, texts->certificate, error))
            is_fine = name_key(error, "cert", context->config->cert_file);
        else if (!tls_pem_use_key(library, ssl, texts->key, error))
            is_fine = name_key(error, "key", context->config->key_file);
    }
    library->ERR_clear_error();
    if (!is_fine) {
        library->SSL_CTX_free(ssl);
        return false;
    }
    library->SSL_CTX_free(context->ssl);
    context->ssl = ssl;
    return true;
}

static void free_text(char **text)
{
    if (*text != NULL)
        explicit_bzero(*text, strlen(*text));
    mem_free(*text);
    *text = NULL;
}

static bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* The text of a file or, without one, the PEM given in place; *ret_text is NULL if there is
 * neither. */
static bool read_text(const char *key, const char *file, const char *pem, char **ret_text,
                      struct error *error)
{
    size_t size;
    *ret_text = NULL;
    if (is_set(pem))
        *ret_text = mem_copy_text(pem);
    if (!is_set(file))
        return true;
    int result = file_read_whole(file, TLS_FILE_BYTES_MAX, ret_text, &size);
    if (result == 0)
        return true;
    *ret_text = NULL;
    return error_set(error, "tls::%s: cannot read %s: %s", key, file, strerror(-result));
}

static bool read_pair(const struct tls_context *context, struct tls_texts *texts,
                      struct error *error)
{
    const struct tls_config *config = context->config;
    assert(texts->certificate == NULL && texts->key == NULL);
    if (!read_text("cert_file", config->cert_file, config->cert_pem, &texts->certificate, error))
        return false;
    if (read_text("key_file", config->key_file, config->key_pem, &texts->key, error))
        return true;
    free_text(&texts->certificate);
    return false;
}

static bool read_authorities(const struct tls_context *context, char **ret_text,
                             struct error *error)
{
    const struct tls_config *config = context->config;
    if (context->is_server)
        return read_text("client_ca_file", context->client_ca_file, NULL, ret_text, error);
    return read_text("ca_file", config->ca_file, config->ca_pem, ret_text, error);
}

/* Reads the pair or the authorities again, and adopts them when they have changed. False: they are
 * broken, and the old ones stay. */
static bool refresh(struct tls_context *context, bool is_pair)
{
    struct error error;
    struct tls_texts fresh = context->texts;
    bool is_fine;
    bool is_new;
    if (is_pair) {
        fresh.certificate = NULL;
        fresh.key = NULL;
        is_fine = read_pair(context, &fresh, &error);
        is_new = is_fine && (!same(fresh.certificate, context->texts.certificate) ||
                             !same(fresh.key, context->texts.key));
    } else {
        is_fine = read_authorities(context, &fresh.authorities, &error);
        is_new = is_fine && !same(fresh.authorities, context->texts.authorities);
    }
    if (is_new)
        is_fine = adopt(context, &fresh, &error);
    if (is_new && is_fine) {
        struct tls_texts old = context->texts;
        context->texts = fresh;
        fresh = old;
    }
    /* Frees what is replaced, or was read in vain. */
    if (is_pair) {
        free_text(&fresh.certificate);
        free_text(&fresh.key);
    } else {
        free_text(&fresh.authorities);
    }
    if ((is_new || !is_fine) && context->settings.on_reload != NULL)
        context->settings.on_reload(context->settings.arg, is_fine ? NULL : &error);
    return is_fine;
}

SSL *tls_context_connection(struct tls_context *context, const char *server_name)
{
    assert(context->is_server == (server_name == NULL));
    const struct tls_library *library = context->library;
    uint64_t now_ns = clock_now_ns();
    if (now_ns >= context->pair_due_ns) {
        /* A broken file may be half-written: it is read again soon. */
        uint64_t delay_ns = context->config->reload_interval_ns;
        assert(delay_ns > 0);
        if (!refresh(context, true) && delay_ns > TLS_CLIENT_CA_LOOK_NS)
            delay_ns = TLS_CLIENT_CA_LOOK_NS;
        context->pair_due_ns = now_ns + delay_ns;
    }
    if (now_ns >= context->client_ca_due_ns) {
        (void)refresh(context, false);
        context->client_ca_due_ns = now_ns + TLS_CLIENT_CA_LOOK_NS;
    }
    SSL *ssl = library->SSL_new(context->ssl);
    if (ssl == NULL || context->is_server)
        return ssl;
    /* The name that the server's certificate must have; SNI carries names only (RFC 6066 §3). */
    const char *name =
        is_set(context->server_name_override) ? context->server_name_override : server_name;
    X509_VERIFY_PARAM *rules = library->SSL_get0_param(ssl);
    struct in6_addr address;
    bool is_named;
    if (inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1)
        is_named = library->X509_VERIFY_PARAM_set1_ip_asc(rules, name) == 1;
    else
        is_named = library->X509_VERIFY_PARAM_set1_host(rules, name, 0) == 1 &&
                   library->SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                                     (char *)(uintptr_t)name) == 1;
    if (is_named)
        return ssl;
    library->SSL_free(ssl);
    return NULL;
}

/* Copies settings to the heap. */
static struct tls_context *create(const struct tls_context *settings, struct error *error)
{
    struct tls_context *context = mem_copy(settings, sizeof(*settings));
    context->library = tls_library_load(error);
    if (context->library == NULL || !read_pair(context, &context->texts, error) ||
        !read_authorities(context, &context->texts.authorities, error) ||
        !adopt(context, &context->texts, error)) {
        tls_context_destroy(context);
        return NULL;
    }
    const struct tls_config *config = context->config;
    uint64_t now_ns = clock_now_ns();
    bool rereads = config->reload_interval_ns > 0 &&
                   config->reload_interval_ns < UINT64_MAX - now_ns &&
                   context->texts.certificate != NULL;
    assert(context->texts.authorities != NULL || !is_set(context->client_ca_file));
    context->pair_due_ns = rereads ? now_ns + config->reload_interval_ns : UINT64_MAX;
    context->client_ca_due_ns = context->reloads_client_ca && is_set(context->client_ca_file)
                                    ? now_ns + TLS_CLIENT_CA_LOOK_NS
                                    : UINT64_MAX;
    return context;
}

struct tls_context *tls_context_create_server(const struct tls_server_config *config,
                                              const struct tls_context_settings *settings,
                                              struct error *error)
{
    /* Checked although it has no effect on servers, as in Go. */
    if (!tls_config_check_file("ca_file", config->common.ca_file, error))
        return NULL;
    return create(&(struct tls_context){.settings = *settings,
                                        .config = &config->common,
                                        .is_server = true,
                                        .client_ca_file = config->client_ca_file,
                                        .reloads_client_ca = config->client_ca_file_reload},
                  error);
}

struct tls_context *tls_context_create_client(const struct tls_client_config *config,
                                              const struct tls_context_settings *settings,
                                              struct error *error)
{
    return create(&(struct tls_context){.settings = *settings,
                                        .config = &config->common,
                                        .skips_verify = config->insecure_skip_verify,
                                        .server_name_override = config->server_name_override},
                  error);
}

void tls_context_handshake_failed(const struct tls_context *context, const char *peer,
                                  const char *reason)
{
    assert(context->is_server);
    if (context->settings.on_handshake_failed != NULL)
        context->settings.on_handshake_failed(context->settings.arg, peer, reason);
}

void tls_context_destroy(struct tls_context *context)
{
    if (context == NULL)
        return;
    if (context->ssl != NULL)
        context->library->SSL_CTX_free(context->ssl);
    free_text(&context->texts.certificate);
    free_text(&context->texts.key);
    free_text(&context->texts.authorities);
    mem_free(context);
}
