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

enum { BODY_BYTES_DEFAULT = 20971520 };

static const struct config_field grpc_fields[] = {
    SERVER_ROWS(struct grpc_server_config, listen, "localhost:4317"),
    SERVER_AUTH_ROW(struct grpc_server_config, listen, server_auth_fields),
    GRPC_SERVER_ROWS(struct grpc_server_config,
                     "0: 4, and 64 for profiles. More than 4095 is 4095."),
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
    const struct grpc_server_config *grpc = section;
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
    CONFIG_OPTIONAL(struct otlp_protocols_config, grpc, struct grpc_server_config, has_grpc,
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
