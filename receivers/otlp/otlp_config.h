/* SPDX-License-Identifier: Apache-2.0 */
/* The otlp receiver's settings, as its option tables fill them. Constant once loaded; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/signal_kind.h"
#include "src/config/field.h"
#include "src/listen/server_config.h"

struct error;

struct otlp_lifetime_config {
    uint64_t idle_max_ns;
    uint64_t age_max_ns;
    uint64_t age_grace_ns;
};

struct otlp_ping_config {
    uint64_t interval_min_ns;
};

/* A section that is off may hold anything. */
struct otlp_keepalive_config {
    bool has_lifetime;
    bool has_ping;
    struct otlp_lifetime_config lifetime;
    struct otlp_ping_config ping;
};

struct otlp_grpc_config {
    struct server_config listen;
    uint64_t message_mib_max;
    uint64_t streams_max;
    bool has_keepalive;
    struct otlp_keepalive_config keepalive;
};

struct otlp_http_config {
    struct http_server_config server;
    const char *url_paths[SIGNAL_KINDS];
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
/* 0: not set. */
uint64_t otlp_config_message_bytes_max(const struct otlp_grpc_config *grpc);
uint64_t otlp_config_body_bytes_max(const struct otlp_http_config *http);
/* The path of a *_url_path key as requests are compared with it; to be freed. NULL when it is no
 * URL. */
char *otlp_config_url_path(const char *text);
