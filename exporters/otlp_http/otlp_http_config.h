/* SPDX-License-Identifier: Apache-2.0 */
/* The otlp_http exporter's settings, as its option tables fill them. Constant once loaded; any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporters/otlp_http/pyroscope_road.h"
#include "exporters/shared/exporter_auth.h"
#include "src/base/signal_kind.h"
#include "src/codec/codec.h"
#include "src/config/field.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/config/shared/tls_config.h"

struct error;

struct otlp_http_compression_config {
    int64_t level;
};

struct otlp_http_cookies_config {
    bool is_unused;
};

struct otlp_http_config {
    struct exporter_queue_config exporter_queue;
    const char *endpoint;
    const char *endpoints[SIGNAL_KINDS];
    int encoding;
    int proto_version; /* of profiles: enum otlp_http_proto_version */
    int compression;
    struct otlp_http_compression_config compression_params;
    struct config_pairs headers;
    uint64_t timeout_ns;
    struct tls_client_config tls;
    const char *proxy_url;
    int64_t max_idle_conns;
    int64_t max_idle_conns_per_host;
    int64_t max_conns_per_host;
    uint64_t idle_conn_timeout_ns;
    bool disable_keep_alives;
    bool force_attempt_http2;
    bool has_cookies;
    struct otlp_http_cookies_config cookies;
    struct exporter_auth_config auth;
    struct config_sections middlewares; /* struct server_middleware_config */
    bool has_pyroscope;
    struct pyroscope_road_config pyroscope;
};

enum otlp_http_encoding { OTLP_HTTP_PROTO, OTLP_HTTP_JSON };
enum otlp_http_proto_version { OTLP_HTTP_1_10, OTLP_HTTP_1_9 };

extern const struct config_field otlp_http_config_fields[];
/* Rules across the fields. */
bool otlp_http_config_check(const void *section, struct error *error);
/* True: the advice names a better exporter for that signal. */
bool otlp_http_config_advise(const void *section, enum signal_kind signal, struct error *advice);
/* How bodies are compressed, and what Content-Encoding calls it. */
enum codec otlp_http_config_codec(const struct otlp_http_config *config);
/* An endpoint with its scheme: http, where none was written. To be freed. */
char *otlp_http_config_url(const char *text);
const char *otlp_http_config_encoding(const struct otlp_http_config *config);
