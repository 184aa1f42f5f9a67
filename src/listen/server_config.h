/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that servers of all components share, and the rows of their option tables: endpoint,
 * TLS, authentication, and those of HTTP servers. Constant once loaded; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/codec/codec.h"
#include "src/config/field.h"
#include "src/config/shared/tls_config.h"
#include "src/net/server/http_server.h"

struct component;
struct error;

/* Names and values in response_headers; in HTTP/2 the headers of a response are one block of at
 * most 64 KiB. */
enum { RESPONSE_HEADERS_BYTES_MAX = 32768 };

struct server_middleware_config {
    const char *id;
};

struct server_auth_config {
    const char *authenticator;
    struct config_texts params;
};

/* For sections whose keys have no effect. */
struct server_unused_config {
    bool unused;
};

/* Of every server. */
struct server_config {
    const char *endpoint;
    const char *transport;
    bool include_metadata;
    bool has_tls;
    bool has_auth;
    struct tls_server_config tls;
    struct server_unused_config dialer;
    struct server_auth_config auth;
    struct config_sections middlewares;
};

struct server_cors_config {
    struct config_texts allowed_origins;
    struct config_texts allowed_headers;
    struct config_texts exposed_headers;
    int64_t max_age_s;
};

/* Of HTTP servers. */
struct http_server_config {
    struct server_config listen;
    int64_t body_bytes_max; /* 0 or less: the default of the receiver */
    struct config_texts compressions;
    uint64_t read_timeout_ns;
    uint64_t read_header_timeout_ns;
    uint64_t write_timeout_ns;
    uint64_t idle_timeout_ns;
    bool has_keep_alive;
    struct config_pairs response_headers;
    bool has_cors;
    struct server_cors_config cors;
};

struct grpc_lifetime_config {
    uint64_t idle_max_ns;
    uint64_t age_max_ns;
    uint64_t age_grace_ns;
};

struct grpc_ping_config {
    uint64_t interval_min_ns;
};

/* Of gRPC servers. A section that is off may hold anything. */
struct grpc_keepalive_config {
    bool has_lifetime;
    bool has_ping;
    struct grpc_lifetime_config lifetime;
    struct grpc_ping_config ping;
};

struct grpc_server_config {
    struct server_config listen;
    uint64_t message_mib_max;
    uint64_t streams_max;
    bool has_keepalive;
    struct grpc_keepalive_config keepalive;
};

extern const struct config_field server_middleware_fields[];
extern const struct config_field server_auth_fields[];
extern const struct config_field server_auth_http_fields[];
extern const struct config_field server_dialer_fields[];
extern const struct config_field server_cors_fields[];
extern const struct config_field grpc_keepalive_fields[];

/* Rows for a struct server_config member of owner. */
#define SERVER_ROWS(owner, member, address)                                                        \
    CONFIG_TEXT(owner, member.endpoint, "endpoint", address,                                       \
                "Where to listen: host:port (without host on all addresses), or the path of a "    \
                "unix socket."),                                                                   \
        CONFIG_TEXT(owner, member.transport, "transport", "tcp", "tcp, tcp4, tcp6 or unix."),      \
        CONFIG_SECTION(owner, member.dialer, struct server_unused_config, "dialer",                \
                       server_dialer_fields, NULL, "Unused on servers."),                          \
        TLS_SERVER_ROW(owner, member.tls, member.has_tls),                                         \
        CONFIG_BOOL(owner, member.include_metadata, "include_metadata", "false",                   \
                    "Keep the headers of requests for processors and exporters that use them."),   \
        CONFIG_SECTIONS(owner, member.middlewares, struct server_middleware_config, "middlewares", \
                        server_middleware_fields, NULL, "Not supported by this build.")

#define SERVER_AUTH_ROW(owner, member, fields)                                                     \
    CONFIG_OPTIONAL(owner, member.auth, struct server_auth_config, member.has_auth,                \
                    CONFIG_NULL_IS_OFF, "auth", fields, NULL,                                      \
                    "Authentication; without it all requests are accepted.")

/* Rows for the other members of struct http_server_config. */
#define HTTP_SERVER_ROWS(owner, member, body_default, keep_alive)                                  \
    SERVER_AUTH_ROW(owner, member.listen, server_auth_http_fields),                                \
        CONFIG_INT(                                                                                \
            owner, member.body_bytes_max, "max_request_body_size", body_default, INT64_MIN,        \
            INT64_MAX,                                                                             \
            "Largest body in bytes, both as sent and decompressed. 0 or less: the default. More "  \
            "than 4 GiB is 4 GiB."),                                                               \
        CONFIG_TEXTS_WARNED(                                                                       \
            owner, member.compressions, "compression_algorithms",                                  \
            "['', gzip, zstd, zlib, snappy, deflate, lz4, x-snappy-framed]",                       \
            server_config_warn_of_coding,                                                          \
            "Accepted Content-Encodings, \"\" for none. []: bodies are taken as they are, "        \
            "whatever the header says."),                                                          \
        CONFIG_DURATION_OR_NEGATIVE(owner, member.read_timeout_ns, "read_timeout", "0",            \
                                    "For a whole request. 0: a minimum rate instead."),            \
        CONFIG_DURATION_OR_NEGATIVE(owner, member.read_header_timeout_ns, "read_header_timeout",   \
                                    "0", "For its headers. 0: 10 seconds."),                       \
        CONFIG_DURATION_OR_NEGATIVE(owner, member.write_timeout_ns, "write_timeout", "0",          \
                                    "For a response. 0: 30 seconds without progress."),            \
        CONFIG_DURATION_OR_NEGATIVE(owner, member.idle_timeout_ns, "idle_timeout", "0",            \
                                    "Between requests. 0: 1 minute."),                             \
        CONFIG_BOOL(owner, member.has_keep_alive, "keep_alives_enabled", keep_alive,               \
                    "Take more than one request per connection."),                                 \
        CONFIG_HEADERS(owner, member.response_headers, "response_headers",                         \
                       "Headers of every response."),                                              \
        CONFIG_OPTIONAL(owner, member.cors, struct server_cors_config, member.has_cors,            \
                        CONFIG_NULL_IS_OFF, "cors", server_cors_fields, NULL,                      \
                        "Requests from browsers.")

/* Rows for the other members of struct grpc_server_config, which is owner. default_help: what 0 MiB
 * means. */
#define GRPC_SERVER_ROWS(owner, default_help)                                                      \
    CONFIG_COUNT(owner, message_mib_max, "max_recv_msg_size_mib", "0", 0, INT64_MAX / (1 << 20),   \
                 "Largest message in MiB, after decompression. " default_help),                    \
        CONFIG_COUNT(owner, streams_max, "max_concurrent_streams", "0", 0, UINT32_MAX,             \
                     "Calls at once on one connection. 0: 100."),                                  \
        CONFIG_IGNORED_SIZE("read_buffer_size", "Connections share one buffer."),                  \
        CONFIG_IGNORED_SIZE("write_buffer_size", "Responses are sent without a copy."),            \
        CONFIG_OPTIONAL(owner, keepalive, struct grpc_keepalive_config, has_keepalive,             \
                        CONFIG_NULL_IS_OFF, "keepalive", grpc_keepalive_fields, NULL,              \
                        "Lifetime and pings of connections.")

/* What is wrong with an element of compression_algorithms, or NULL. */
const char *server_config_warn_of_coding(const char *name);
/* Rules across the fields. */
bool server_config_check(const struct server_config *listen, struct error *error);
bool http_server_config_check(const struct http_server_config *http, struct error *error);
/* max_request_body_size, or standard if it is 0. */
uint64_t http_server_config_body_max(const struct http_server_config *http, uint64_t standard);
/* The codec for a Content-Encoding ("": none); CODECS: it is not accepted. */
enum codec http_server_config_codec(const struct http_server_config *http, struct slice encoding);
/* Settings for a server of component, the arg of its handlers; without handler and TLS. */
struct http_server_settings http_server_config_settings(const struct http_server_config *http,
                                                        struct component *component);
/* The same for gRPC. */
struct http_server_settings grpc_server_config_settings(const struct grpc_server_config *grpc,
                                                        struct component *component);
/* max_recv_msg_size_mib in bytes; 0: not set. */
uint64_t grpc_server_config_message_max(const struct grpc_server_config *grpc);
/* The response_headers with names in lower case, as HTTP/2 requires; the values are borrowed. */
struct http_common_headers http_server_config_headers(const struct http_server_config *http);
void http_server_config_free_headers(struct http_common_headers *headers);
/* Whether bodies with this Content-Encoding ("": none) are accepted. */
bool http_server_config_takes(const struct http_server_config *http, const char *encoding);
