/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the Go collector's HTTP client (confighttp), for exporters that have them at the
 * top of their section: rows, rules, and what they mean for http_client. Constants and pure
 * functions; the main thread runs them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporters/shared/exporter_auth.h"
#include "src/codec/codec.h"
#include "src/config/field.h"
#include "src/config/shared/tls_config.h"
#include "src/listen/server_config.h"

struct error;
struct http_client_settings;

struct http_compression_config {
    int64_t level;
};

struct http_cookies_config {
    bool is_unused;
};

struct http_client_config {
    int compression;
    struct http_compression_config compression_params;
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
    struct http_cookies_config cookies;
    struct exporter_auth_config auth;
    struct config_sections middlewares; /* struct server_middleware_config */
};

extern const struct config_field http_compression_fields[];
extern const struct config_field http_cookies_fields[];
extern const char *const http_compressions[];

/* The rows for a struct http_client_config that is a member of owner. standard_timeout and
 * standard_compression: the exporter's own defaults. */
#define HTTP_CLIENT_ROWS(owner, member, standard_timeout, standard_compression)                    \
    CONFIG_CHOICE(owner, member.compression, "compression", standard_compression,                  \
                  http_compressions, "How bodies are compressed; none or \"\": not at all."),      \
        CONFIG_SECTION(owner, member.compression_params, struct http_compression_config,           \
                       "compression_params", http_compression_fields, NULL,                        \
                       "Parameters of the compression."),                                          \
        CONFIG_HEADERS(owner, member.headers, "headers",                                           \
                       "Headers of every request; they win over ours, Host included."),            \
        CONFIG_DURATION_OR_NEGATIVE(                                                               \
            owner, member.timeout_ns, "timeout", standard_timeout,                                 \
            "Limit of one attempt, from connecting to the end of the response; 0: none."),         \
        TLS_CLIENT_ROW(owner, member.tls),                                                         \
        CONFIG_TEXT(owner, member.proxy_url, "proxy_url", NULL,                                    \
                    "Proxy for every request; HTTP_PROXY, HTTPS_PROXY and NO_PROXY when unset."),  \
        CONFIG_INT(owner, member.max_idle_conns, "max_idle_conns", "100", INT64_MIN, INT64_MAX,    \
                   "Most idle connections that are kept; 0: no limit, less: none are kept."),      \
        CONFIG_INT(owner, member.max_idle_conns_per_host, "max_idle_conns_per_host", "0",          \
                   INT64_MIN, INT64_MAX,                                                           \
                   "The same for one host; 0: as max_idle_conns, less: none are kept."),           \
        CONFIG_INT(owner, member.max_conns_per_host, "max_conns_per_host", "0", INT64_MIN,         \
                   INT64_MAX,                                                                      \
                   "Most connections of a lane; more requests wait. 0 or less: no limit."),        \
        CONFIG_DURATION_OR_NEGATIVE(owner, member.idle_conn_timeout_ns, "idle_conn_timeout",       \
                                    "90s", "An idle connection is closed after this; 0: never."),  \
        CONFIG_BOOL(owner, member.disable_keep_alives, "disable_keep_alives", "false",             \
                    "Use each connection for one request only."),                                  \
        CONFIG_BOOL(owner, member.force_attempt_http2, "force_attempt_http2", "true",              \
                    "Offer HTTP/2 to https servers."),                                             \
        CONFIG_UNUSED_OPTIONAL(owner, member.cookies, struct http_cookies_config,                  \
                               member.has_cookies, CONFIG_NULL_IS_OFF, "cookies",                  \
                               http_cookies_fields,                                                \
                               "Cookies that back-ends set are not sent back to them."),           \
        EXPORTER_AUTH_ROW(owner, member.auth),                                                     \
        CONFIG_SECTIONS(owner, member.middlewares, struct server_middleware_config, "middlewares", \
                        server_middleware_fields, NULL, "Not supported yet."),                     \
        CONFIG_IGNORED_INT("read_buffer_size", "Responses are small; the buffer is ours."),        \
        CONFIG_IGNORED_INT("write_buffer_size", "Bodies are sent without a buffer."),              \
        CONFIG_IGNORED_DURATION("http2_read_idle_timeout",                                         \
                                "Requests have a timeout of their own."),                          \
        CONFIG_IGNORED_DURATION("http2_ping_timeout", "Requests have a timeout of their own.")

/* The rules across them. */
bool http_client_config_check(const struct http_client_config *config, struct error *error);

/* "gzip", "none" …, as in Content-Encoding but for none. */
const char *http_client_config_encoding(const struct http_client_config *config);
/* CODEC_NONE: bodies are not compressed. */
enum codec http_client_config_codec(const struct http_client_config *config);
/* As struct codec_input has it. */
int http_client_config_level(const struct http_client_config *config);
/* What the options say. URL, lane and credentials are the exporter's. */
struct http_client_settings http_client_config_settings(const struct http_client_config *config);

/* A warning about an endpoint without a scheme, for its row; NULL: it has one. */
const char *exporter_url_warning(const char *text);
/* An endpoint with its scheme: http, where none is configured. Freed with mem_free. */
char *exporter_url(const char *text);
/* Whether the value of that key is a URL, or empty. */
bool exporter_url_check(const char *key, const char *text, struct error *error);
