/* SPDX-License-Identifier: Apache-2.0 */
/* Option table and rules of the otlp_grpc exporter, with the Go collector's defaults. Constants and
 * pure functions; the main thread runs them. */
#include "exporters/otlp_grpc/otlp_grpc_config.h"

#include "src/base/error.h"
#include "src/listen/server_config.h"
#include "src/net/client/grpc_metadata.h"
#include "src/net/client/grpc_target.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum compression {
    COMPRESSION_GZIP,
    COMPRESSION_SNAPPY,
    COMPRESSION_ZSTD,
    COMPRESSION_NONE,
    COMPRESSION_EMPTY
};
static const char *const compressions[] = {"gzip", "snappy", "zstd", "none", "", NULL};

static const struct config_field keepalive_fields[] = {
    CONFIG_DURATION_OR_NEGATIVE(
        struct otlp_grpc_keepalive_config, time_ns, "time", "10s",
        "Silence after which the back-end is pinged; at least 10s, 0: never."),
    CONFIG_DURATION_OR_NEGATIVE(
        struct otlp_grpc_keepalive_config, timeout_ns, "timeout", "10s",
        "How long the answer may take before the connection is given up; 0: 20s."),
    CONFIG_BOOL(struct otlp_grpc_keepalive_config, permit_without_stream, "permit_without_stream",
                "false", "Ping while no request is under way, too."),
    CONFIG_END,
};

const struct config_field otlp_grpc_fields[] = {
    CONFIG_TEXT(struct otlp_grpc_config, endpoint, "endpoint", NULL,
                "host:port, bare or behind http://, https:// (which forces TLS), dns:/// or "
                "passthrough:///; or unix:///path."),
    CONFIG_CHOICE(struct otlp_grpc_config, compression, "compression", "gzip", compressions,
                  "Of messages: gzip, snappy, zstd or none."),
    TLS_CLIENT_ROW(struct otlp_grpc_config, tls),
    CONFIG_HEADERS(struct otlp_grpc_config, headers, "headers",
                   "Metadata of every request; values of names that end in -bin are sent in "
                   "base64."),
    CONFIG_TEXT(struct otlp_grpc_config, balancer_name, "balancer_name", "round_robin",
                "round_robin: a connection to each address of the endpoint; pick_first: one."),
    CONFIG_OPTIONAL(struct otlp_grpc_config, keepalive, struct otlp_grpc_keepalive_config,
                    has_keepalive, CONFIG_NULL_ENABLES, "keepalive", keepalive_fields, NULL,
                    "Pings that find out whether a silent back-end lives."),
    CONFIG_BOOL(struct otlp_grpc_config, wait_for_ready, "wait_for_ready", "false",
                "While no connection can be had, attempts wait for their timeout instead of "
                "failing at once."),
    CONFIG_TEXT(struct otlp_grpc_config, authority, "authority", NULL,
                "The :authority of requests, instead of the endpoint's host:port."),
    CONFIG_TEXT(struct otlp_grpc_config, user_agent, "user_agent", NULL,
                "The user agent, instead of ours."),
    EXPORTER_AUTH_ROW(struct otlp_grpc_config, auth),
    CONFIG_SECTIONS(struct otlp_grpc_config, middlewares, struct server_middleware_config,
                    "middlewares", server_middleware_fields, NULL, "Not supported yet."),
    CONFIG_DURATION(struct otlp_grpc_config, timeout_ns, "timeout", "5s", 0, INT64_MAX,
                    "Limit of one attempt; 0: none."),
    CONFIG_IGNORED_INT("read_buffer_size", "Answers are small; the buffer is ours."),
    CONFIG_IGNORED_INT("write_buffer_size", "Messages are sent from where they lie."),
    SENDING_QUEUE_ROW(struct otlp_grpc_config, CONFIG_DEFAULT_ON),
    RETRY_ROW(struct otlp_grpc_config),
    CONFIG_END,
};

static bool is_printable(const char *text)
{
    assert(text != NULL);
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

static bool texts_check(const struct otlp_grpc_config *config, struct error *error)
{
    assert(error != NULL);
    if (!is_printable(config->user_agent))
        return error_set(error, "user_agent holds a line end or another character that is no "
                                "printable ASCII") ||
               error_at(error, "user_agent");
    if (!is_printable(config->authority) || strchr(config->authority, ' ') != NULL)
        return error_set(error, "\"%s\" is no host:port", config->authority) ||
               error_at(error, "authority");
    return true;
}

static bool balancer_check(const char *name, struct error *error)
{
    assert(name != NULL);
    if (name[0] == '\0' || strcasecmp(name, "round_robin") == 0 ||
        strcasecmp(name, "pick_first") == 0)
        return true;
    return error_set(error, "invalid balancer_name: %s; round_robin or pick_first is expected",
                     name) ||
           error_at(error, "balancer_name");
}

bool otlp_grpc_config_check(const void *section, struct error *error)
{
    const struct otlp_grpc_config *config = section;
    assert(config != NULL);
    struct grpc_target target;
    if (!grpc_target_parse(config->endpoint, &target, error))
        return error_at(error, "endpoint");
    if (!balancer_check(config->balancer_name, error) || !texts_check(config, error))
        return false;
    if (!grpc_metadata_check(config->headers.pairs, config->headers.count, error))
        return error_at(error, "headers");
    if (exporter_auth_is_on(&config->auth) && !otlp_grpc_config_has_tls(config, target.is_https))
        return error_set(error, "the credentials require transport level security: expected tls "
                                "without insecure") ||
               error_at(error, "auth");
    if (config->middlewares.count > 0)
        return error_set(error,
                         "middlewares are not supported by this build yet; remove the key") ||
               error_at(error, "middlewares");
    return true;
}

enum codec otlp_grpc_config_codec(const struct otlp_grpc_config *config)
{
    switch ((enum compression)config->compression) {
    case COMPRESSION_GZIP:
        return CODEC_GZIP;
    case COMPRESSION_SNAPPY:
        /* What gRPC calls snappy is the framed format. */
        return CODEC_SNAPPY_FRAMED;
    case COMPRESSION_ZSTD:
        return CODEC_ZSTD;
    case COMPRESSION_NONE:
    case COMPRESSION_EMPTY:
    default:
        return CODEC_NONE;
    }
}

const char *otlp_grpc_config_encoding(const struct otlp_grpc_config *config)
{
    assert(config != NULL);
    return config->compression < COMPRESSION_NONE ? compressions[config->compression] : NULL;
}

bool otlp_grpc_config_is_pick_first(const struct otlp_grpc_config *config)
{
    assert(config != NULL);
    return strcasecmp(config->balancer_name, "pick_first") == 0;
}

bool otlp_grpc_config_has_tls(const struct otlp_grpc_config *config, bool is_https)
{
    const struct tls_client_config *tls = &config->tls;
    bool has_authority = tls->common.ca_file[0] != '\0' || tls->common.ca_pem[0] != '\0';
    return is_https || has_authority || !tls->insecure;
}
