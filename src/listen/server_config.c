/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables and checks of servers. Keys of missing features are accepted where they change
 * nothing, and refused where they would. Constants and pure functions, on the main thread while it
 * loads the configuration. */
#include "src/listen/server_config.h"

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/component.h"
#include "src/listen/authenticator.h"
#include "src/net/socket/endpoint.h"
#include "src/net/syntax/http1_chars.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const struct config_field server_middleware_fields[] = {
    CONFIG_TEXT(struct server_middleware_config, id, "id", NULL, "Extension id."),
    CONFIG_END,
};

#define AUTHENTICATOR_ROW                                                                          \
    CONFIG_EXTENSION(struct server_auth_config, authenticator, "authenticator", "authenticator",   \
                     authenticator_accepts_server, "Id of an authenticator extension.")

const struct config_field server_auth_fields[] = {
    AUTHENTICATOR_ROW,
    CONFIG_END,
};

const struct config_field server_auth_http_fields[] = {
    AUTHENTICATOR_ROW,
    CONFIG_TEXTS(struct server_auth_config, params, "request_params", NULL,
                 "Query parameters that the authenticator gets as headers."),
    CONFIG_END,
};

const struct config_field server_dialer_fields[] = {
    CONFIG_IGNORED_DURATION("timeout", "Unused on servers."),
    CONFIG_END,
};

static const struct config_field server_parameters_fields[] = {
    CONFIG_DURATION_OR_NEGATIVE(struct grpc_lifetime_config, idle_max_ns, "max_connection_idle",
                                "0",
                                "Close connections without calls after this long. 0: 5 minutes."),
    CONFIG_DURATION_OR_NEGATIVE(struct grpc_lifetime_config, age_max_ns, "max_connection_age", "0",
                                "Close connections after this long, ±10 %. 0: never."),
    CONFIG_DURATION_OR_NEGATIVE(struct grpc_lifetime_config, age_grace_ns,
                                "max_connection_age_grace", "0",
                                "After that, how long calls may take to finish. 0: no limit."),
    CONFIG_IGNORED_DURATION("time", "Server pings are not sent: deadlines find dead connections."),
    CONFIG_IGNORED_DURATION("timeout", "See time."),
    CONFIG_END,
};

static const struct config_field enforcement_policy_fields[] = {
    CONFIG_DURATION_OR_NEGATIVE(
        struct grpc_ping_config, interval_min_ns, "min_time", "0",
        "Clients that ping faster and send no calls are closed. 0: 10 seconds."),
    CONFIG_IGNORED_BOOL("permit_without_stream", "Pings without calls are always permitted."),
    CONFIG_END,
};

const struct config_field grpc_keepalive_fields[] = {
    CONFIG_OPTIONAL(struct grpc_keepalive_config, lifetime, struct grpc_lifetime_config,
                    has_lifetime, CONFIG_NULL_IS_OFF, "server_parameters", server_parameters_fields,
                    NULL, "How long connections live."),
    CONFIG_OPTIONAL(struct grpc_keepalive_config, ping, struct grpc_ping_config, has_ping,
                    CONFIG_NULL_IS_OFF, "enforcement_policy", enforcement_policy_fields, NULL,
                    "How often clients may ping."),
    CONFIG_END,
};

const struct config_field server_cors_fields[] = {
    CONFIG_TEXTS(struct server_cors_config, allowed_origins, "allowed_origins", NULL,
                 "Allowed origins of pages; one * in each matches any string. None: CORS is off."),
    CONFIG_TEXTS(struct server_cors_config, allowed_headers, "allowed_headers", NULL,
                 "Headers that pages may send, * for all; unset: accept, content-type and "
                 "x-requested-with."),
    CONFIG_TEXTS(struct server_cors_config, exposed_headers, "exposed_headers", NULL,
                 "Headers of responses that pages may read."),
    CONFIG_INT(struct server_cors_config, max_age_s, "max_age", "0", INT32_MIN, INT32_MAX,
               "Seconds that browsers may cache these permissions; 0: their default, less: 0."),
    CONFIG_END,
};

bool server_config_check(const struct server_config *listen, struct error *error)
{
    static const char *const supported[] = {"tcp", "tcp4", "tcp6", "unix"};
    bool is_supported = false;
    for (size_t i = 0; i < sizeof(supported) / sizeof(supported[0]); i++)
        is_supported |= strcmp(listen->transport, supported[i]) == 0;
    if (!is_supported)
        return error_set(error,
                         "unsupported transport type \"%s\", expected tcp, tcp4, tcp6 or unix",
                         listen->transport) ||
               error_at(error, "transport");
    if (listen->middlewares.count > 0)
        return error_set(error, "middlewares are not supported by this build: remove the key") ||
               error_unsupported(error) || error_at(error, "middlewares");
    struct endpoint endpoint;
    struct endpoint_address address;
    if (strcmp(listen->transport, "unix") == 0)
        return endpoint_of_path(listen->endpoint, &address, error) || error_at(error, "endpoint");
    if (!endpoint_parse(listen->endpoint, &endpoint, error))
        return error_at(error, "endpoint");
    size_t digits = strspn(endpoint.port, "0123456789");
    if (endpoint.port[digits] == '\0' && strtoul(endpoint.port, NULL, 10) > UINT16_MAX)
        return error_set(error, "found port %s in \"%s\", expected at most %d", endpoint.port,
                         listen->endpoint, UINT16_MAX) ||
               error_at(error, "endpoint");
    return true;
}

const char *server_config_warn_of_coding(const char *name)
{
    return codec_of_http(slice_of_text(name)) != CODECS
               ? NULL
               : "an unknown Content-Encoding, which has no effect; expected any of \"\", "
                 "gzip, zstd, zlib, snappy, deflate, lz4 and x-snappy-framed";
}

bool http_server_config_check(const struct http_server_config *http, struct error *error)
{
    if (!server_config_check(&http->listen, error))
        return false;
    size_t bytes = 0;
    for (size_t i = 0; i < http->response_headers.count; i++)
        bytes += strlen(http->response_headers.pairs[i].key) +
                 strlen(http->response_headers.pairs[i].value);
    if (http->response_headers.count > HTTP_COMMON_HEADERS_MAX ||
        bytes > RESPONSE_HEADERS_BYTES_MAX)
        return error_set(error,
                         "found %zu headers of %zu bytes in total, expected at most %d headers of "
                         "%d bytes",
                         http->response_headers.count, bytes, HTTP_COMMON_HEADERS_MAX,
                         RESPONSE_HEADERS_BYTES_MAX) ||
               error_at(error, "response_headers");
    for (size_t i = 0; i < http->response_headers.count; i++)
        if (!http1_is_token(slice_of_text(http->response_headers.pairs[i].key)))
            return error_set(error, "\"%s\" is not a header name",
                             http->response_headers.pairs[i].key) ||
                   error_at_index(error, i) || error_at(error, "response_headers");
    return true;
}

struct http_server_settings http_server_config_settings(const struct http_server_config *http,
                                                        struct component *component)
{
    return (struct http_server_settings){
        .lane = component->lane,
        .budget = component->budget,
        .has_http1 = true,
        .has_http2 = true,
        .has_keep_alive = http->has_keep_alive,
        .header_deadline_ns = http->read_header_timeout_ns,
        .read_deadline_ns = http->read_timeout_ns,
        .write_deadline_ns = http->write_timeout_ns,
        .idle_ns = http->idle_timeout_ns,
        .arg = component,
    };
}

struct http_server_settings grpc_server_config_settings(const struct grpc_server_config *grpc,
                                                        struct component *component)
{
    /* Sections that are absent or off are all 0. */
    struct grpc_keepalive_config keepalive = {.has_ping = false};
    if (grpc->has_keepalive && grpc->keepalive.has_lifetime)
        keepalive.lifetime = grpc->keepalive.lifetime;
    if (grpc->has_keepalive && grpc->keepalive.has_ping)
        keepalive.ping = grpc->keepalive.ping;
    return (struct http_server_settings){
        .lane = component->lane,
        .budget = component->budget,
        .has_http2 = true,
        .has_keep_alive = true,
        .streams_max = grpc->streams_max,
        .connection_idle_max_ns = keepalive.lifetime.idle_max_ns,
        .connection_age_max_ns = keepalive.lifetime.age_max_ns,
        .connection_age_grace_ns = keepalive.lifetime.age_grace_ns,
        .ping_interval_min_ns = keepalive.ping.interval_min_ns,
        .arg = component,
    };
}

uint64_t grpc_server_config_message_max(const struct grpc_server_config *grpc)
{
    /* gRPC counts a message's bytes in 32 bits. */
    enum { MESSAGE_MIB_MAX = 4095 };
    uint64_t mib = grpc->message_mib_max;
    return (mib < MESSAGE_MIB_MAX ? mib : MESSAGE_MIB_MAX) * MIB;
}

uint64_t http_server_config_body_max(const struct http_server_config *http, uint64_t standard)
{
    assert(standard > 0);
    if (http->body_bytes_max <= 0)
        return standard;
    return http->body_bytes_max < UINT32_MAX ? (uint64_t)http->body_bytes_max : UINT32_MAX;
}

struct http_common_headers http_server_config_headers(const struct http_server_config *http)
{
    const struct config_pairs *pairs = &http->response_headers;
    assert(pairs->count <= HTTP_COMMON_HEADERS_MAX);
    struct http_header *rows = mem_alloc(pairs->count * sizeof(*rows));
    for (size_t i = 0; i < pairs->count; i++) {
        char *name = mem_copy_text(pairs->pairs[i].key);
        for (char *at = name; *at != '\0'; at++)
            *at = (char)tolower((unsigned char)*at);
        rows[i] = (struct http_header){name, pairs->pairs[i].value};
    }
    return (struct http_common_headers){.rows = rows, .count = pairs->count};
}

void http_server_config_free_headers(struct http_common_headers *headers)
{
    for (size_t i = 0; i < headers->count; i++)
        mem_free((char *)(uintptr_t)headers->rows[i].name);
    mem_free((void *)(uintptr_t)headers->rows);
    *headers = (struct http_common_headers){.rows = NULL};
}

/* With an empty list bodies stay as they are, as in Go. */
enum codec http_server_config_codec(const struct http_server_config *http, struct slice encoding)
{
    assert(encoding.data != NULL || encoding.size == 0);
    for (size_t i = 0; i < http->compressions.count; i++)
        if (slice_equal_text(encoding, http->compressions.texts[i]))
            return codec_of_http(encoding);
    return http->compressions.count == 0 ? CODEC_NONE : CODECS;
}

bool http_server_config_takes(const struct http_server_config *http, const char *encoding)
{
    for (size_t i = 0; i < http->compressions.count; i++)
        if (strcmp(http->compressions.texts[i], encoding) == 0)
            return true;
    return http->compressions.count == 0;
}
