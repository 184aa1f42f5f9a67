/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables and rules of the otlp receiver. Constants and pure functions; the main thread runs
 * them while it loads the configuration. */
#include "receivers/otlp/otlp_receiver.h"

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/slice.h"
#include "src/net/syntax/http_path.h"

#include <stdio.h>
#include <string.h>

/* gRPC counts a message's bytes in 32 bits. */
enum { MESSAGE_MIB_MAX = 4095, BODY_BYTES_DEFAULT = 20971520 };

static const struct config_field server_parameters_fields[] = {
    CONFIG_DURATION_OR_NEGATIVE(struct otlp_lifetime_config, idle_max_ns, "max_connection_idle",
                                "0",
                                "Close connections without calls after this long. 0: 5 minutes."),
    CONFIG_DURATION_OR_NEGATIVE(struct otlp_lifetime_config, age_max_ns, "max_connection_age", "0",
                                "Close connections after this long, ±10 %. 0: never."),
    CONFIG_DURATION_OR_NEGATIVE(struct otlp_lifetime_config, age_grace_ns,
                                "max_connection_age_grace", "0",
                                "After that, how long calls may take to finish. 0: no limit."),
    CONFIG_IGNORED_DURATION("time", "Server pings are not sent: deadlines find dead connections."),
    CONFIG_IGNORED_DURATION("timeout", "See time."),
    CONFIG_END,
};

static const struct config_field enforcement_policy_fields[] = {
    CONFIG_DURATION_OR_NEGATIVE(
        struct otlp_ping_config, interval_min_ns, "min_time", "0",
        "Clients that ping faster and send no calls are closed. 0: 10 seconds."),
    CONFIG_IGNORED_BOOL("permit_without_stream", "Pings without calls are always permitted."),
    CONFIG_END,
};

static const struct config_field keepalive_fields[] = {
    CONFIG_OPTIONAL(struct otlp_keepalive_config, lifetime, struct otlp_lifetime_config,
                    has_lifetime, CONFIG_NULL_IS_OFF, "server_parameters", server_parameters_fields,
                    NULL, "How long connections live."),
    CONFIG_OPTIONAL(struct otlp_keepalive_config, ping, struct otlp_ping_config, has_ping,
                    CONFIG_NULL_IS_OFF, "enforcement_policy", enforcement_policy_fields, NULL,
                    "How often clients may ping."),
    CONFIG_END,
};

static const struct config_field grpc_fields[] = {
    SERVER_ROWS(struct otlp_grpc_protocol, listen, "localhost:4317"),
    SERVER_AUTH_ROW(struct otlp_grpc_protocol, listen, server_auth_fields),
    CONFIG_COUNT(
        struct otlp_grpc_protocol, message_mib_max, "max_recv_msg_size_mib", "0", 0,
        INT64_MAX / (1 << 20),
        "Largest message in MiB, after decompression. 0: 4, and 64 for profiles. More than "
        "4095 is 4095."),
    CONFIG_COUNT(struct otlp_grpc_protocol, streams_max, "max_concurrent_streams", "0", 0,
                 UINT32_MAX, "Calls at once on one connection. 0: 100."),
    CONFIG_IGNORED_SIZE("read_buffer_size", "Connections share one buffer."),
    CONFIG_IGNORED_SIZE("write_buffer_size", "Responses are sent without a copy."),
    CONFIG_OPTIONAL(struct otlp_grpc_protocol, keepalive, struct otlp_keepalive_config,
                    has_keepalive, CONFIG_NULL_IS_OFF, "keepalive", keepalive_fields, NULL,
                    "Lifetime and pings of connections."),
    CONFIG_END,
};

static const struct config_field http_fields[] = {
    SERVER_ROWS(struct otlp_http_protocol, server.listen, "localhost:4318"),
    CONFIG_TEXT(struct otlp_http_protocol, url_paths[TRACES], "traces_url_path", "/v1/traces",
                "Path of traces."),
    CONFIG_TEXT(struct otlp_http_protocol, url_paths[METRICS], "metrics_url_path", "/v1/metrics",
                "Path of metrics."),
    CONFIG_TEXT(struct otlp_http_protocol, url_paths[LOGS], "logs_url_path", "/v1/logs",
                "Path of logs."),
    CONFIG_TEXT(struct otlp_http_protocol, url_paths[PROFILES], "profiles_url_path",
                "/v1development/profiles", "Path of profiles. Not a key of the Go collector."),
    HTTP_SERVER_ROWS(struct otlp_http_protocol, server, "20971520", "true"),
    CONFIG_END,
};

static bool check_grpc(const void *section, struct error *error)
{
    const struct otlp_grpc_protocol *grpc = section;
    return server_config_check(&grpc->listen, error);
}

static const char *const url_path_keys[SIGNAL_KINDS] = {
    [TRACES] = "traces_url_path",
    [METRICS] = "metrics_url_path",
    [LOGS] = "logs_url_path",
    [PROFILES] = "profiles_url_path",
};

static bool check_http(const void *section, struct error *error)
{
    const struct otlp_http_protocol *http = section;
    char *paths[SIGNAL_KINDS] = {NULL};
    bool is_fine = http_server_config_check(&http->server, error);
    for (enum signal_kind signal = TRACES; is_fine && signal < SIGNAL_KINDS; signal++) {
        paths[signal] = otlp_config_url_path(http->url_paths[signal]);
        if (paths[signal] == NULL)
            is_fine = error_set(error, "invalid HTTP URL path set for signal: found \"%s\" for %s",
                                http->url_paths[signal], signal_name(signal)) ||
                      error_at(error, url_path_keys[signal]);
        for (enum signal_kind other = TRACES; is_fine && other < signal; other++)
            if (strcmp(paths[signal], paths[other]) == 0)
                is_fine = error_set(error,
                                    "%s and %s have the same URL path \"%s\": give each its "
                                    "own",
                                    signal_name(other), signal_name(signal), paths[signal]) ||
                          error_at(error, url_path_keys[signal]);
    }
    for (enum signal_kind signal = TRACES; signal < SIGNAL_KINDS; signal++)
        mem_free(paths[signal]);
    return is_fine;
}

static const struct config_field protocols_fields[] = {
    CONFIG_OPTIONAL(struct otlp_protocols_config, grpc, struct otlp_grpc_protocol, has_grpc,
                    CONFIG_NULL_ENABLES, "grpc", grpc_fields, check_grpc, "OTLP over gRPC."),
    CONFIG_OPTIONAL(struct otlp_protocols_config, http, struct otlp_http_protocol, has_http,
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
                  "OTLP version whose layout profiles have; auto: detected in each request. 1.11 "
                  "has the layout of 1.10. Write it in quotes: YAML takes it for a number. Not a "
                  "key of the Go collector."),
    CONFIG_END,
};

bool otlp_config_check(const void *section, struct error *error)
{
    const struct otlp_receiver_config *config = section;
    if (config->protocols.has_grpc || config->protocols.has_http)
        return true;
    return error_set(error, "must specify at least one protocol when using the OTLP receiver: "
                            "found none, expected grpc or http under protocols") ||
           error_at(error, "protocols");
}

uint64_t otlp_config_body_bytes_max(const struct otlp_http_protocol *http)
{
    return http_server_config_body_max(&http->server, BODY_BYTES_DEFAULT);
}

uint64_t otlp_config_message_bytes_max(const struct otlp_grpc_protocol *grpc)
{
    uint64_t mib = grpc->message_mib_max;
    return (mib < MESSAGE_MIB_MAX ? mib : MESSAGE_MIB_MAX) * MIB;
}

char *otlp_config_url_path(const char *text)
{
    char path[HTTP_PATH_MAX];
    char whole[HTTP_PATH_MAX + 1];
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
