/* SPDX-License-Identifier: Apache-2.0 */
/* What the TLS connections of one listener or client have in common: certificates, authorities,
 * versions, suites, protocols. Made from a tls section, which must outlive it. Certificates are
 * read again as reload_interval and client_ca_file_reload say. One lane's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct tls_client_config;
struct tls_context;
struct tls_server_config;

struct tls_context_settings {
    /* Protocols for ALPN, best first, NULL-ended: {"h2", "http/1.1", NULL}. A server refuses
     * clients that offer only others. */
    const char *const *protocols;
    /* Optional: the files changed and were read anew (error NULL), or could not be used, and what
     * was there before goes on. */
    void (*on_reload)(void *arg, const struct error *error);
    /* Optional, servers: a client could not shake hands; peer is its address. */
    void (*on_handshake_failed)(void *arg, const char *peer, const char *reason);
    void *arg;
};

/* Loads the TLS library and the files. NULL: the error names the key, the file and the reason. */
struct tls_context *tls_context_create_server(const struct tls_server_config *config,
                                              const struct tls_context_settings *settings,
                                              struct error *error);
struct tls_context *tls_context_create_client(const struct tls_client_config *config,
                                              const struct tls_context_settings *settings,
                                              struct error *error);
/* For the owner of the sockets: tells the owner of the context. */
void tls_context_handshake_failed(const struct tls_context *context, const char *peer,
                                  const char *reason);
/* Channels that are open may outlive it. NULL is tolerated. */
void tls_context_destroy(struct tls_context *context);

/* For libcurl's connections: has an SSL_CTX trust the system's authorities too. */
bool tls_trust_system(void *ssl_context);
