/* SPDX-License-Identifier: Apache-2.0 */
/* What a context is made of, for the files of src/net that build on it. One lane's. */
#pragma once

#include "src/config/shared/tls_config.h"
#include "src/net/tls/tls_context.h"
#include "src/net/tls/tls_library.h"

/* The PEM texts that ssl was made with; owned. NULL: none. */
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
    uint64_t pair_due_ns; /* when certificate and key are read again; UINT64_MAX: never */
    uint64_t client_ca_due_ns;
};

/* Reads again what is due. What cannot be used changes nothing but when it is tried next. */
void tls_context_refresh(struct tls_context *context);
/* Makes the SSL_CTX of a context from its settings and these texts. */
SSL_CTX *tls_context_build(const struct tls_context *context, const struct tls_texts *texts,
                           struct error *error);
