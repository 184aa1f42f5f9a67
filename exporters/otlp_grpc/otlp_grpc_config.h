/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of the otlp_grpc exporter: its struct, option table and rules. Constants and pure
 * functions; the main thread runs them while it loads the configuration. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporters/shared/exporter_auth.h"
#include "src/codec/codec.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/config/shared/tls_config.h"

struct otlp_grpc_keepalive_config {
    uint64_t time_ns;
    uint64_t timeout_ns;
    bool permit_without_stream;
};

struct otlp_grpc_config {
    struct exporter_queue_config exporter_queue;
    const char *endpoint;
    int compression; /* index into names; see otlp_grpc_config_codec */
    struct tls_client_config tls;
    struct config_pairs headers;
    const char *balancer_name;
    bool has_keepalive;
    struct otlp_grpc_keepalive_config keepalive;
    bool wait_for_ready;
    const char *authority;
    const char *user_agent;
    struct exporter_auth_config auth;
    struct config_sections middlewares; /* struct server_middleware_config */
    uint64_t timeout_ns;
};

extern const struct config_field otlp_grpc_fields[];

/* Rules across the fields; config is a struct otlp_grpc_config. */
bool otlp_grpc_config_check(const void *config, struct error *error);

/* What messages are compressed with, and its name in grpc-encoding; NULL for CODEC_NONE. */
enum codec otlp_grpc_config_codec(const struct otlp_grpc_config *config);
const char *otlp_grpc_config_encoding(const struct otlp_grpc_config *config);
/* One connection instead of one per address. */
bool otlp_grpc_config_is_pick_first(const struct otlp_grpc_config *config);
/* insecure is ignored when an authority is given, and overruled by https://. */
bool otlp_grpc_config_has_tls(const struct otlp_grpc_config *config, bool is_https);
