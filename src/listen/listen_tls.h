/* SPDX-License-Identifier: Apache-2.0 */
/* TLS of a servers: their contexts, and what is told of them in logs and metrics. On the
 * lane of the component's instance. */
#pragma once

#include <stdbool.h>

#include "src/base/counter.h"

struct error;
struct listen_config;
struct logger;
struct tls_context;

struct listen_tls_counters {
    counter handshakes_failed;
    counter reloads_failed;
};

/* Rows of a table of counters; field is a struct listen_tls_counters of owner. */
#define LISTEN_TLS_COUNTERS(owner, field)                                                          \
    COUNTER(owner, field.handshakes_failed, COUNTER_SUM,                                           \
            "spanflame_receiver_tls_handshakes_failed",                                            \
            "Number of connections whose TLS handshake failed or took too long."),                 \
        COUNTER(owner, field.reloads_failed, COUNTER_SUM, "spanflame_receiver_tls_reloads_failed", \
                "Number of times that changed certificate files could not be used.")

/* Embedded by its component, one per server. */
struct listen_tls {
    struct tls_context *context; /* NULL: cleartext */
    const struct logger *logger;
    struct listen_tls_counters *counters; /* NULL: logged only */
};

/* Reads the certificates when the configuration has them. has_http1: beside HTTP/2. The fields but
 * context are set by the caller before. */
bool listen_tls_init(struct listen_tls *tls, const struct listen_config *config, bool has_http1,
                     struct error *error);
/* Legal without init, on what is all zero. */
void listen_tls_fini(struct listen_tls *tls);
