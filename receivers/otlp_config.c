/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables and rules of the otlp receiver. Keys whose feature is not built in are accepted
 * where they change nothing, and refused in clear words where they would. Constants and pure
 * functions; the main thread runs them while it loads the configuration. */
#include "receivers/otlp_config.h"

#include "src/error.h"
#include "src/mem.h"
#include "src/net/endpoint.h"
#include "src/net/http_path.h"
#include "src/slice.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MIB_MAX = 4095, BODY_BYTES_DEFAULT = 20971520 };

static const struct config_field middleware_fields[] = {
    CONFIG_TEXT(struct otlp_middleware_config, id, "id", NULL, "Extension id."),
    CONFIG_END,
};

static const struct config_field auth_fields[] = {
    CONFIG_TEXT(struct otlp_auth_config, authenticator, "authenticator", NULL,
                "Extension id. Not supported by this build."),
    CONFIG_IGNORED("request_params", "Query parameters for the authenticator."),
    CONFIG_END,
};

static const struct config_field tls_fields[] = {
    CONFIG_IGNORED("ca_file", "CA certificates."),
    CONFIG_IGNORED("ca_pem", "CA certificates, in place."),
    CONFIG_IGNORED("include_system_ca_certs_pool", "The system's CA certificates too."),
    CONFIG_IGNORED("cert_file", "Certificate."),
    CONFIG_IGNORED("cert_pem", "Certificate, in place."),
    CONFIG_IGNORED("key_file", "Private key."),
    CONFIG_IGNORED("key_pem", "Private key, in place."),
    CONFIG_IGNORED("min_version", "Lowest TLS version."),
    CONFIG_IGNORED("max_version", "Highest TLS version."),
    CONFIG_IGNORED("cipher_suites", "Cipher suites."),
    CONFIG_IGNORED("include_insecure_cipher_suites", "Weak cipher suites too."),
    CONFIG_IGNORED("curve_preferences", "Curves."),
    CONFIG_IGNORED("reload_interval", "How often files are read again."),
    CONFIG_IGNORED("tpm", "Key in a TPM."),
    CONFIG_IGNORED("client_ca_file", "CA of client certificates."),
    CONFIG_IGNORED("client_ca_file_reload", "Reads that file again."),
    CONFIG_END,
};

static const struct config_field dialer_fields[] = {
    CONFIG_IGNORED("timeout", "Unused on servers."),
    CONFIG_END,
};

static const struct config_field server_parameters_fields[] = {
    CONFIG_DURATION(struct otlp_lifetime_config, idle_max_ns, "max_connection_idle", "0", 0,
                    INT64_MAX, "Close connections without calls after this long. 0: 5 minutes."),
    CONFIG_DURATION(struct otlp_lifetime_config, age_max_ns, "max_connection_age", "0", 0,
                    INT64_MAX, "Close connections after this long, ±10 %. 0: never."),
    CONFIG_DURATION(struct otlp_lifetime_config, age_grace_ns, "max_connection_age_grace", "0", 0,
                    INT64_MAX, "Then calls may finish for this long. 0: for ever."),
    CONFIG_IGNORED("time", "Server pings are not sent: deadlines find dead connections."),
    CONFIG_IGNORED("timeout", "See time."),
    CONFIG_END,
};

static const struct config_field enforcement_policy_fields[] = {
    CONFIG_DURATION(struct otlp_ping_config, interval_min_ns, "min_time", "0", 0, INT64_MAX,
                    "Clients that ping faster and send no calls are closed. 0: 10 seconds."),
    CONFIG_IGNORED("permit_without_stream", "Pings without calls are always permitted."),
    CONFIG_END,
};

static const struct config_field keepalive_fields[] = {
    CONFIG_SECTION(struct otlp_keepalive_config, lifetime, struct otlp_lifetime_config,
                   "server_parameters", server_parameters_fields, NULL,
                   "How long connections live."),
    CONFIG_SECTION(struct otlp_keepalive_config, ping, struct otlp_ping_config,
                   "enforcement_policy", enforcement_policy_fields, NULL,
                   "How often clients may ping."),
    CONFIG_END,
};

#define LISTEN_FIELDS(owner, address)                                                              \
    CONFIG_TEXT(owner, listen.endpoint, "endpoint", address,                                       \
                "Where to listen: host:port. Without host on all addresses."),                     \
        CONFIG_TEXT(owner, listen.transport, "transport", "tcp", "tcp, tcp4 or tcp6."),            \
        CONFIG_SECTION(owner, listen.dialer, struct otlp_unused_config, "dialer", dialer_fields,   \
                       NULL, "Unused on servers."),                                                \
        CONFIG_OPTIONAL(owner, listen.tls, struct otlp_unused_config, listen.has_tls,              \
                        CONFIG_NULL_IS_OFF, "tls", tls_fields, NULL,                               \
                        "Not supported by this build."),                                           \
        CONFIG_OPTIONAL(owner, listen.auth, struct otlp_auth_config, listen.has_auth,              \
                        CONFIG_NULL_IS_OFF, "auth", auth_fields, NULL,                             \
                        "Not supported by this build."),                                           \
        CONFIG_BOOL(owner, listen.include_metadata, "include_metadata", "false",                   \
                    "Keep the headers of requests for processors and exporters that use them."),   \
        CONFIG_SECTIONS(owner, listen.middlewares, struct otlp_middleware_config, "middlewares",   \
                        middleware_fields, NULL, "Not supported by this build.")

static const struct config_field grpc_fields[] = {
    LISTEN_FIELDS(struct otlp_grpc_config, "localhost:4317"),
    CONFIG_COUNT(struct otlp_grpc_config, message_mib_max, "max_recv_msg_size_mib", "0", 0,
                 MESSAGE_MIB_MAX, "Largest message in MiB, after decompression. 0: 4."),
    CONFIG_COUNT(struct otlp_grpc_config, streams_max, "max_concurrent_streams", "0", 0, UINT32_MAX,
                 "Calls at once on one connection. 0: 100."),
    CONFIG_COUNT(struct otlp_grpc_config, unused_bytes, "read_buffer_size", "524288", 0, INT32_MAX,
                 "Has no effect: connections share one buffer."),
    CONFIG_COUNT(struct otlp_grpc_config, unused_bytes, "write_buffer_size", "0", 0, INT32_MAX,
                 "Has no effect."),
    CONFIG_SECTION(struct otlp_grpc_config, keepalive, struct otlp_keepalive_config, "keepalive",
                   keepalive_fields, NULL, "Lifetime and pings of connections."),
    CONFIG_END,
};

static const struct config_field cors_fields[] = {
    CONFIG_TEXTS(struct otlp_cors_config, allowed_origins, "allowed_origins", NULL,
                 "Not supported by this build."),
    CONFIG_IGNORED("allowed_headers", "Has no effect without allowed_origins."),
    CONFIG_IGNORED("exposed_headers", "Has no effect without allowed_origins."),
    CONFIG_IGNORED("max_age", "Has no effect without allowed_origins."),
    CONFIG_END,
};

static const struct config_field http_fields[] = {
    LISTEN_FIELDS(struct otlp_http_config, "localhost:4318"),
    CONFIG_TEXT(struct otlp_http_config, url_paths[TRACES], "traces_url_path", "/v1/traces",
                "Path of traces."),
    CONFIG_TEXT(struct otlp_http_config, url_paths[METRICS], "metrics_url_path", "/v1/metrics",
                "Path of metrics."),
    CONFIG_TEXT(struct otlp_http_config, url_paths[LOGS], "logs_url_path", "/v1/logs",
                "Path of logs."),
    CONFIG_TEXT(struct otlp_http_config, url_paths[PROFILES], "profiles_url_path",
                "/v1development/profiles", "Path of profiles. Not a key of the Go collector."),
    CONFIG_INT(struct otlp_http_config, body_bytes_max, "max_request_body_size", "20971520",
               INT64_MIN, UINT32_MAX,
               "Largest body in bytes, both as sent and decompressed. 0 or less: the default."),
    CONFIG_TEXTS(struct otlp_http_config, compressions, "compression_algorithms", NULL,
                 "Content-Encodings that are taken, \"\" for none at all; of these, \"\" and gzip "
                 "are supported. Unset: both."),
    CONFIG_DURATION(struct otlp_http_config, read_timeout_ns, "read_timeout", "0", 0, INT64_MAX,
                    "For a whole request. 0: a minimum rate instead."),
    CONFIG_DURATION(struct otlp_http_config, read_header_timeout_ns, "read_header_timeout", "0", 0,
                    INT64_MAX, "For its headers. 0: 10 seconds."),
    CONFIG_DURATION(struct otlp_http_config, write_timeout_ns, "write_timeout", "0", 0, INT64_MAX,
                    "For an answer. 0: 30 seconds without progress."),
    CONFIG_DURATION(struct otlp_http_config, idle_timeout_ns, "idle_timeout", "0", 0, INT64_MAX,
                    "Between requests. 0: 1 minute."),
    CONFIG_BOOL(struct otlp_http_config, has_keep_alive, "keep_alives_enabled", "true",
                "Take more than one request per connection."),
    CONFIG_HEADERS(struct otlp_http_config, response_headers, "response_headers",
                   "Headers of every answer."),
    CONFIG_SECTION(struct otlp_http_config, cors, struct otlp_cors_config, "cors", cors_fields,
                   NULL, "Requests from browsers."),
    CONFIG_END,
};

static bool check_supported(const struct otlp_listen_config *listen, struct error *error)
{
    assert(error != NULL);
    if (listen->has_tls)
        return error_set(error, "tls is not supported by this build: remove the section and put a "
                                "TLS proxy in front");
    if (listen->has_auth && listen->auth.authenticator[0] != '\0')
        return error_set(error,
                         "auth is not supported by this build: found authenticator \"%s\", "
                         "which would not be asked; remove the section",
                         listen->auth.authenticator);
    if (listen->middlewares.count > 0)
        return error_set(error, "middlewares are not supported by this build: remove the key");
    return true;
}

static bool check_endpoint(const char *text, struct error *error)
{
    assert(text != NULL);
    struct endpoint endpoint;
    if (!endpoint_parse(text, &endpoint, error))
        return false;
    size_t digits = strspn(endpoint.port, "0123456789");
    if (endpoint.port[digits] == '\0' && strtoul(endpoint.port, NULL, 10) > UINT16_MAX)
        return error_set(error, "endpoint: found port %s in \"%s\", expected at most %d",
                         endpoint.port, text, UINT16_MAX);
    return true;
}

static bool check_listen(const struct otlp_listen_config *listen, struct error *error)
{
    assert(listen->transport != NULL);
    static const char *const supported[] = {"tcp", "tcp4", "tcp6"};
    bool is_supported = false;
    for (size_t i = 0; i < sizeof(supported) / sizeof(supported[0]); i++)
        is_supported |= strcmp(listen->transport, supported[i]) == 0;
    if (!is_supported)
        return error_set(error, "unsupported transport type \"%s\", expected tcp, tcp4 or tcp6",
                         listen->transport);
    return check_supported(listen, error) && check_endpoint(listen->endpoint, error);
}

static bool check_grpc(const void *section, struct error *error)
{
    assert(section != NULL);
    const struct otlp_grpc_config *grpc = section;
    return check_listen(&grpc->listen, error);
}

static bool check_url_paths(const struct otlp_http_config *http, struct error *error)
{
    assert(error != NULL);
    char *paths[SIGNAL_KINDS] = {NULL};
    bool is_fine = true;
    for (enum signal_kind signal = TRACES; is_fine && signal < SIGNAL_KINDS; signal++) {
        paths[signal] = otlp_config_url_path(http->url_paths[signal]);
        if (paths[signal] == NULL)
            is_fine = error_set(error, "invalid HTTP URL path set for signal: found \"%s\" for %s",
                                http->url_paths[signal], signal_name(signal));
        for (enum signal_kind other = TRACES; is_fine && other < signal; other++)
            if (strcmp(paths[signal], paths[other]) == 0)
                is_fine = error_set(error,
                                    "%s and %s have the same URL path \"%s\": give each its "
                                    "own",
                                    signal_name(other), signal_name(signal), paths[signal]);
    }
    for (enum signal_kind signal = TRACES; signal < SIGNAL_KINDS; signal++)
        mem_free(paths[signal]);
    return is_fine;
}

static bool check_http(const void *section, struct error *error)
{
    assert(section != NULL);
    const struct otlp_http_config *http = section;
    if (!check_listen(&http->listen, error))
        return false;
    if (http->cors.allowed_origins.count > 0)
        return error_set(error, "cors is not supported by this build: remove allowed_origins");
    if (http->response_headers.count > OTLP_RESPONSE_HEADERS_MAX)
        return error_set(error, "response_headers: found %zu headers, expected at most %d",
                         http->response_headers.count, OTLP_RESPONSE_HEADERS_MAX);
    return check_url_paths(http, error);
}

static const struct config_field protocols_fields[] = {
    CONFIG_OPTIONAL(struct otlp_protocols_config, grpc, struct otlp_grpc_config, has_grpc,
                    CONFIG_NULL_ENABLES, "grpc", grpc_fields, check_grpc, "OTLP over gRPC."),
    CONFIG_OPTIONAL(struct otlp_protocols_config, http, struct otlp_http_config, has_http,
                    CONFIG_NULL_ENABLES, "http", http_fields, check_http,
                    "OTLP over HTTP/1.1 and cleartext HTTP/2."),
    CONFIG_END,
};

/* "auto", then in the order of enum profile_layout. */
static const char *const profiles_layouts[] = {"auto", "1.10", "1.9", "1.8", "1.7", NULL};

const struct config_field otlp_receiver_fields[] = {
    CONFIG_SECTION(struct otlp_receiver_config, protocols, struct otlp_protocols_config,
                   "protocols", protocols_fields, NULL, "Each protocol has a listener of its own."),
    CONFIG_CHOICE(struct otlp_receiver_config, profiles_layout, "profiles_layout", "auto",
                  profiles_layouts,
                  "OTLP version that profiles are laid out in, when it is not to be found out from "
                  "each request; 1.10 is also that of 1.11. In quotes: YAML takes it for a number. "
                  "Not a key of the Go collector."),
    CONFIG_END,
};

bool otlp_config_check(const void *section, struct error *error)
{
    assert(section != NULL);
    const struct otlp_receiver_config *config = section;
    if (config->protocols.has_grpc || config->protocols.has_http)
        return true;
    return error_set(error, "must specify at least one protocol when using the OTLP receiver: "
                            "found none, expected grpc or http under protocols");
}

uint64_t otlp_config_body_bytes_max(const struct otlp_http_config *http)
{
    assert(http != NULL);
    return http->body_bytes_max > 0 ? (uint64_t)http->body_bytes_max : BODY_BYTES_DEFAULT;
}

char *otlp_config_url_path(const char *text)
{
    char path[HTTP_PATH_MAX];
    char whole[HTTP_PATH_MAX + 1];
    assert(text != NULL);
    const char *begin = text;
    const char *authority = strstr(text, "://");
    if (authority != NULL)
        begin = authority + 3 + strcspn(authority + 3, "/?#");
    if (!http_path_decode(slice_of(begin, strcspn(begin, "?#")), path))
        return NULL;
    for (const char *at = path; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return NULL;
    snprintf(whole, sizeof(whole), "%s%s", path[0] == '/' ? "" : "/", path);
    return mem_copy_text(whole);
}
