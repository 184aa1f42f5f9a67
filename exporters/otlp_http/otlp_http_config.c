/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables and rules of the otlp_http exporter. Constants and pure functions; the main thread
 * runs them while it loads the configuration. */
#include "exporters/otlp_http/otlp_http_config.h"

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/slice.h"
#include "src/listen/server_config.h"
#include "src/net/syntax/http_url.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* In the order of enum otlp_http_encoding. */
static const char *const encodings[] = {"proto", "json", NULL};

/* In the order of enum otlp_http_proto_version. */
static const char *const proto_versions[] = {"1.10", "1.9", NULL};

/* Also the names in Content-Encoding, but for none. */
static const char *const compressions[] = {
    "gzip", "none", "", "zstd", "snappy", "x-snappy-framed", "zlib", "deflate", "lz4", NULL};

static const struct config_field compression_params_fields[] = {
    CONFIG_INT(struct otlp_http_compression_config, level, "level", "0", INT32_MIN, INT32_MAX,
               "How hard to compress; gzip, zlib and deflate: 1 fastest to 9 smallest, zstd: its "
               "own levels, of which 1, 3, 7 and 11 are told apart. 0: the standard."),
    CONFIG_END,
};

static const struct config_field cookies_fields[] = {CONFIG_END};

/* As Go parses URLs: what has no "://" may still be "scheme:rest", and then its first part must
 * look like a scheme, which 127.0.0.1 does not; everything else is a path. */
static bool lacks_scheme(const char *text)
{
    assert(text != NULL);
    if (strncmp(text, "//", 2) == 0)
        return true;
    size_t first = strcspn(text, ":/?#");
    bool is_name =
        isalpha((unsigned char)text[0]) &&
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.") == first;
    if (text[first] == ':')
        return is_name && strncmp(text + first, "://", 3) != 0;
    return first > 0;
}

static const char *warn_of_scheme(const char *text)
{
    return lacks_scheme(text) ? "found a URL without a scheme, which is taken for http; write "
                                "http:// or https:// before it"
                              : NULL;
}

const struct config_field otlp_http_config_fields[] = {
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoint, "endpoint", NULL, warn_of_scheme,
                       "Base URL; /v1/traces and so on are put behind its path."),
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoints[TRACES], "traces_endpoint", NULL,
                       warn_of_scheme, "Whole URL for traces, instead of endpoint."),
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoints[METRICS], "metrics_endpoint", NULL,
                       warn_of_scheme, "Whole URL for metrics, instead of endpoint."),
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoints[LOGS], "logs_endpoint", NULL,
                       warn_of_scheme, "Whole URL for logs, instead of endpoint."),
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoints[PROFILES], "profiles_endpoint", NULL,
                       warn_of_scheme, "Whole URL for profiles, instead of endpoint."),
    CONFIG_CHOICE(struct otlp_http_config, encoding, "encoding", "proto", encodings,
                  "Form of the body: protobuf, or OTLP/JSON."),
    CONFIG_CHOICE(struct otlp_http_config, proto_version, "proto_version", "1.10", proto_versions,
                  "Layout of profiles; \"1.9\", in quotes, for Pyroscope 1.18 and 1.19 and Go "
                  "collectors up to 0.147."),
    CONFIG_CHOICE(struct otlp_http_config, compression, "compression", "gzip", compressions,
                  "How bodies are compressed; none or \"\": not at all."),
    CONFIG_SECTION(struct otlp_http_config, compression_params, struct otlp_http_compression_config,
                   "compression_params", compression_params_fields, NULL,
                   "Parameters of the compression."),
    CONFIG_HEADERS(struct otlp_http_config, headers, "headers",
                   "Headers of every request; they win over ours, Host included."),
    CONFIG_DURATION_OR_NEGATIVE(
        struct otlp_http_config, timeout_ns, "timeout", "30s",
        "Limit of one attempt, from connecting to the end of the answer; 0: none."),
    TLS_CLIENT_ROW(struct otlp_http_config, tls),
    CONFIG_TEXT(struct otlp_http_config, proxy_url, "proxy_url", NULL,
                "Proxy for every request; HTTP_PROXY, HTTPS_PROXY and NO_PROXY when unset."),
    CONFIG_INT(struct otlp_http_config, max_idle_conns, "max_idle_conns", "100", INT64_MIN,
               INT64_MAX, "Most idle connections that are kept; 0: no limit, less: none are kept."),
    CONFIG_INT(struct otlp_http_config, max_idle_conns_per_host, "max_idle_conns_per_host", "0",
               INT64_MIN, INT64_MAX,
               "The same for one host; 0: as max_idle_conns, less: none are kept."),
    CONFIG_INT(struct otlp_http_config, max_conns_per_host, "max_conns_per_host", "0", INT64_MIN,
               INT64_MAX,
               "Most connections of a lane; further requests wait. 0 or less: no limit."),
    CONFIG_DURATION_OR_NEGATIVE(struct otlp_http_config, idle_conn_timeout_ns, "idle_conn_timeout",
                                "90s", "An idle connection is closed after this; 0: never."),
    CONFIG_BOOL(struct otlp_http_config, disable_keep_alives, "disable_keep_alives", "false",
                "Use each connection for one request only."),
    CONFIG_BOOL(struct otlp_http_config, force_attempt_http2, "force_attempt_http2", "true",
                "Offer HTTP/2 to https servers."),
    CONFIG_UNUSED_OPTIONAL(struct otlp_http_config, cookies, struct otlp_http_cookies_config,
                           has_cookies, CONFIG_NULL_IS_OFF, "cookies", cookies_fields,
                           "Cookies that back-ends set are not sent back to them."),
    CONFIG_OPTIONAL(struct otlp_http_config, pyroscope, struct pyroscope_road_config, has_pyroscope,
                    CONFIG_DEFAULT_ON, "pyroscope", pyroscope_road_fields, NULL,
                    "When the server behind profiles turns out to be a Pyroscope: send profiles "
                    "that its OTLP endpoint refuses by its Push API."),
    EXPORTER_AUTH_ROW(struct otlp_http_config, auth),
    CONFIG_SECTIONS(struct otlp_http_config, middlewares, struct server_middleware_config,
                    "middlewares", server_middleware_fields, NULL, "Not supported yet."),
    CONFIG_IGNORED_INT("read_buffer_size", "Answers are small; the buffer is ours."),
    CONFIG_IGNORED_INT("write_buffer_size", "Bodies are sent from where they lie."),
    CONFIG_IGNORED_DURATION("http2_read_idle_timeout", "Requests have a timeout of their own."),
    CONFIG_IGNORED_DURATION("http2_ping_timeout", "Requests have a timeout of their own."),
    SENDING_QUEUE_ROW(struct otlp_http_config, CONFIG_DEFAULT_ON),
    RETRY_ROW(struct otlp_http_config),
    CONFIG_END,
};

const char *otlp_http_config_encoding(const struct otlp_http_config *config)
{
    assert(compressions[config->compression] != NULL);
    return compressions[config->compression];
}

enum codec otlp_http_config_codec(const struct otlp_http_config *config)
{
    const char *name = otlp_http_config_encoding(config);
    assert(name != NULL);
    return strcmp(name, "none") == 0 ? CODEC_NONE : codec_of_http(slice_of_text(name));
}

static const char *const endpoint_keys[SIGNAL_KINDS] = {
    [TRACES] = "traces_endpoint",
    [METRICS] = "metrics_endpoint",
    [LOGS] = "logs_endpoint",
    [PROFILES] = "profiles_endpoint",
};

char *otlp_http_config_url(const char *text)
{
    bool is_bare = lacks_scheme(text);
    const char *rest = is_bare && text[0] == '/' ? text + 2 : text;
    char *url = mem_alloc(strlen("http://") + strlen(rest) + 1);
    sprintf(url, "%s%s", is_bare ? "http://" : "", rest);
    return url;
}

static bool url_check(const char *key, const char *text, struct error *error)
{
    struct http_url url;
    if (text[0] == '\0')
        return true;
    char *whole = otlp_http_config_url(text);
    bool is_fine = http_url_parse(whole, &url, error);
    mem_free(whole);
    if (!is_fine)
        return error_prefix(error, "%s must be a valid URL", key) || error_at(error, key);
    http_url_clear(&url);
    return true;
}

static bool endpoints_check(const struct otlp_http_config *config, struct error *error)
{
    bool has_any = config->endpoint[0] != '\0';
    if (!url_check("endpoint", config->endpoint, error))
        return false;
    for (unsigned signal = 0; signal < SIGNAL_KINDS; signal++) {
        has_any |= config->endpoints[signal][0] != '\0';
        if (!url_check(endpoint_keys[signal], config->endpoints[signal], error))
            return false;
    }
    return has_any || error_set(error, "at least one endpoint must be specified");
}

static bool compression_check(const struct otlp_http_config *config, struct error *error)
{
    enum { LEVEL_MIN = -2, LEVEL_MAX = 9 };
    int64_t level = config->compression_params.level;
    enum codec codec = otlp_http_config_codec(config);
    assert(codec != CODECS);
    if (codec == CODEC_NONE || codec == CODEC_ZSTD || level == 0)
        return true;
    bool has_levels = codec == CODEC_GZIP || codec == CODEC_ZLIB;
    if (has_levels && level >= LEVEL_MIN && level <= LEVEL_MAX)
        return true;
    return error_set(error,
                     "unsupported parameters {Level:%" PRId64
                     "} for compression type \"%s\": expected %s",
                     level, compressions[config->compression],
                     has_levels ? "a level of -2 to 9" : "no level") ||
           error_at(error, "level") || error_at(error, "compression_params");
}

static bool proxy_check(const struct otlp_http_config *config, struct error *error)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://", "socks5h://"};
    if (config->proxy_url[0] == '\0')
        return true;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (strncasecmp(config->proxy_url, schemes[i], strlen(schemes[i])) == 0)
            return true;
    return error_set(error, "proxy_url does not begin with http://, https://, socks5:// or "
                            "socks5h://; write the scheme, as in http://proxy:3128") ||
           error_at(error, "proxy_url");
}

bool otlp_http_config_check(const void *section, struct error *error)
{
    const struct otlp_http_config *config = section;
    assert(config != NULL);
    if (!endpoints_check(config, error) || !compression_check(config, error) ||
        !proxy_check(config, error))
        return false;
    if (config->proto_version == OTLP_HTTP_1_9 && config->encoding == OTLP_HTTP_JSON)
        return error_set(error, "proto_version \"1.9\" needs encoding: proto") ||
               error_at(error, "proto_version");
    if (config->middlewares.count > 0)
        return error_set(error,
                         "middlewares are not supported by this build yet; remove the key") ||
               error_at(error, "middlewares");
    return true;
}

bool otlp_http_config_advise(const void *section, enum signal_kind signal, struct error *advice)
{
    const struct otlp_http_config *config = section;
    const char *own = config->endpoints[PROFILES];
    char *url = otlp_http_config_url(own[0] != '\0' ? own : config->endpoint);
    bool is_pyroscope = signal == PROFILES && pyroscope_road_is_likely(url);
    mem_free(url);
    if (!is_pyroscope)
        return false;
    error_set(advice,
              "its endpoint looks like a Pyroscope server, for which the pyroscope exporter "
              "is the better choice: it names profiles as the server's own SDKs do, keeps "
              "the server's limits and passes files of JFR on");
    return true;
}
