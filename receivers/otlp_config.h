/* SPDX-License-Identifier: Apache-2.0 */
/* The otlp receiver's settings, as its option tables fill them. Constant once loaded; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/config/field.h"
#include "src/signal_kind.h"

struct error;

enum { OTLP_RESPONSE_HEADERS_MAX = 7 };

struct otlp_middleware_config {
    const char *id;
};

struct otlp_auth_config {
    const char *authenticator;
};

/* Of sections that only hold keys without effect. */
struct otlp_unused_config {
    bool unused;
};

/* Settings that both protocols have. */
struct otlp_listen_config {
    const char *endpoint;
    const char *transport;
    bool include_metadata;
    bool has_tls;
    bool has_auth;
    struct otlp_unused_config tls;
    struct otlp_unused_config dialer;
    struct otlp_auth_config auth;
    struct config_sections middlewares;
};

struct otlp_lifetime_config {
    uint64_t idle_max_ns;
    uint64_t age_max_ns;
    uint64_t age_grace_ns;
};

struct otlp_ping_config {
    uint64_t interval_min_ns;
};

struct otlp_keepalive_config {
    struct otlp_lifetime_config lifetime;
    struct otlp_ping_config ping;
};

struct otlp_grpc_config {
    struct otlp_listen_config listen;
    uint64_t message_mib_max;
    uint64_t streams_max;
    uint64_t unused_bytes;
    struct otlp_keepalive_config keepalive;
};

struct otlp_cors_config {
    struct config_texts allowed_origins;
};

struct otlp_http_config {
    struct otlp_listen_config listen;
    const char *url_paths[SIGNAL_KINDS];
    int64_t body_bytes_max;
    struct config_texts compressions;
    uint64_t read_timeout_ns;
    uint64_t read_header_timeout_ns;
    uint64_t write_timeout_ns;
    uint64_t idle_timeout_ns;
    bool has_keep_alive;
    struct config_pairs response_headers;
    struct otlp_cors_config cors;
};

struct otlp_protocols_config {
    bool has_grpc;
    bool has_http;
    struct otlp_grpc_config grpc;
    struct otlp_http_config http;
};

struct otlp_receiver_config {
    struct otlp_protocols_config protocols;
    int profiles_layout; /* 0: found out; else enum profile_layout, plus one */
};

extern const struct config_field otlp_receiver_fields[];
bool otlp_config_check(const void *section, struct error *error);
uint64_t otlp_config_body_bytes_max(const struct otlp_http_config *http);
/* The path of a *_url_path key as requests are compared with it; to be freed. NULL when it is no
 * URL. */
char *otlp_config_url_path(const char *text);
