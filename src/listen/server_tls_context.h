/* SPDX-License-Identifier: Apache-2.0 */
/* The TLS context of a server, with its logs and metrics. On the lane of the component's instance.
 */
#pragma once

#include <stdbool.h>

#include "src/base/counter.h"

struct error;
struct server_config;
struct logger;
struct tls_context;

struct server_tls_counters {
    counter handshakes_failed;
    counter reloads_failed;
};

/* Rows of a table of counters; field is a struct server_tls_counters of owner. */
#define SERVER_TLS_COUNTERS(owner, field)                                                          \
    COUNTER(owner, field.handshakes_failed, COUNTER_SUM,                                           \
            "spanflame_receiver_tls_handshakes_failed",                                            \
            "Number of connections whose TLS handshake failed or took too long."),                 \
        COUNTER(owner, field.reloads_failed, COUNTER_SUM, "spanflame_receiver_tls_reloads_failed", \
                "Number of times that changed certificate files could not be used.")

/* Embedded by its component, one per server. */
struct server_tls_context {
    struct tls_context *context; /* NULL: cleartext */
    const struct logger *logger;
    struct server_tls_counters *counters; /* NULL: logged only */
};

/* Reads the certificates, if config has TLS. has_http1: besides HTTP/2. The caller has set all
 * fields but context. */
bool server_tls_context_init(struct server_tls_context *tls, const struct server_config *config,
                             bool has_http1, struct error *error);
/* A no-op on a zeroed struct. */
void server_tls_context_fini(struct server_tls_context *tls);
