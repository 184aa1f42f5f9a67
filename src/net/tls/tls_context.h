/* SPDX-License-Identifier: Apache-2.0 */
/* What the TLS connections of one listener or client share: certificates, authorities, versions,
 * suites, protocols. Made from a tls section, which must outlive it. Certificates are reloaded
 * according to reload_interval and client_ca_file_reload. One lane's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct tls_client_config;
struct tls_context;
struct tls_server_config;
struct ssl_st;

struct tls_context_settings {
    /* ALPN protocols, best first: {"h2", "http/1.1", NULL}. A server refuses clients that offer
     * only others. */
    const char *const *protocols;
    /* Optional: changed files were reloaded (error NULL), or cannot be used, and the old ones stay.
     */
    void (*on_reload)(void *arg, const struct error *error);
    /* Optional, servers: a handshake failed; peer is the client's address. */
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
/* For tls_channel.c: the SSL of a new connection, after reloading certificates that are due.
 * server_name: as for tls_channel_create. NULL: out of memory. */
struct ssl_st *tls_context_connection(struct tls_context *context, const char *server_name);
/* Calls on_handshake_failed. */
void tls_context_handshake_failed(const struct tls_context *context, const char *peer,
                                  const char *reason);
/* Open channels may outlive it. NULL is a no-op. */
void tls_context_destroy(struct tls_context *context);

/* For libcurl: makes an SSL_CTX trust the system's authorities, too. */
bool tls_trust_system(void *ssl_context);
