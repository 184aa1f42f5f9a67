/* SPDX-License-Identifier: Apache-2.0 */
/* Options of HTTP clients. Constants and pure functions; the main thread runs them. */
#include "exporters/shared/http_client_config.h"

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/net/client/http_client.h"
#include "src/net/syntax/http_url.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Also the names in Content-Encoding, but for none. */
const char *const http_compressions[] = {
    "gzip", "none", "", "zstd", "snappy", "x-snappy-framed", "zlib", "deflate", "lz4", NULL};

const struct config_field http_compression_fields[] = {
    CONFIG_INT(struct http_compression_config, level, "level", "0", INT32_MIN, INT32_MAX,
               "How hard to compress; gzip, zlib and deflate: 1 fastest to 9 smallest, zstd: its "
               "own levels, of which only 1, 3, 7 and 11 differ. 0: the default."),
    CONFIG_END,
};

const struct config_field http_cookies_fields[] = {CONFIG_END};

const char *http_client_config_encoding(const struct http_client_config *config)
{
    return http_compressions[config->compression];
}

enum codec http_client_config_codec(const struct http_client_config *config)
{
    const char *name = http_client_config_encoding(config);
    return strcmp(name, "none") == 0 ? CODEC_NONE : codec_of_http(slice_of_text(name));
}

int http_client_config_level(const struct http_client_config *config)
{
    int level = (int)config->compression_params.level;
    return level == 0 ? -1 : level;
}

bool http_client_config_check(const struct http_client_config *config, struct error *error)
{
    enum { LEVEL_MIN = -2, LEVEL_MAX = 9 };
    static const char *const schemes[] = {"http://", "https://", "socks5://", "socks5h://"};
    int64_t level = config->compression_params.level;
    enum codec codec = http_client_config_codec(config);
    bool has_any_level = codec == CODEC_NONE || codec == CODEC_ZSTD || level == 0;
    bool has_levels = codec == CODEC_GZIP || codec == CODEC_ZLIB;
    if (!has_any_level && !(has_levels && level >= LEVEL_MIN && level <= LEVEL_MAX))
        return error_set(error,
                         "unsupported parameters {Level:%" PRId64
                         "} for compression type \"%s\": expected %s",
                         level, http_client_config_encoding(config),
                         has_levels ? "a level of -2 to 9" : "no level") ||
               error_at(error, "level") || error_at(error, "compression_params");

    bool has_scheme = config->proxy_url[0] == '\0';
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        has_scheme |= strncasecmp(config->proxy_url, schemes[i], strlen(schemes[i])) == 0;
    if (!has_scheme)
        return error_set(error, "proxy_url does not begin with http://, https://, socks5:// or "
                                "socks5h://; write the scheme, as in http://proxy:3128") ||
               error_at(error, "proxy_url");
    if (config->middlewares.count > 0)
        return error_set(error,
                         "middlewares are not supported by this build yet; remove the key") ||
               error_unsupported(error) || error_at(error, "middlewares");
    return true;
}

struct http_client_settings http_client_config_settings(const struct http_client_config *config)
{
    int64_t total = config->max_idle_conns;
    int64_t per_host = config->max_idle_conns_per_host;
    uint64_t idle_max = total == 0 ? UINT64_MAX : (uint64_t)total;
    if (per_host != 0 && (uint64_t)per_host < idle_max)
        idle_max = (uint64_t)per_host;
    if (total < 0 || per_host < 0)
        idle_max = 0;
    return (struct http_client_settings){
        .headers = config->headers.pairs,
        .headers_count = config->headers.count,
        .timeout_ns = config->timeout_ns,
        .connections_max =
            config->max_conns_per_host > 0 ? (uint64_t)config->max_conns_per_host : 0,
        .idle_connections_max = idle_max,
        .idle_timeout_ns = config->idle_conn_timeout_ns,
        .has_keep_alive = !config->disable_keep_alives && idle_max > 0,
        .forbids_http2 = !config->force_attempt_http2,
        .proxy_url = config->proxy_url,
    };
}

/* As Go parses URLs: one without "://" may still be "scheme:rest", if its first part looks like a
 * scheme, which 127.0.0.1 does not; everything else is a path. */
static bool lacks_scheme(const char *text)
{
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

const char *exporter_url_warning(const char *text)
{
    return lacks_scheme(text) ? "found a URL without a scheme, so http is used; write "
                                "http:// or https:// before it"
                              : NULL;
}

char *exporter_url(const char *text)
{
    bool is_bare = lacks_scheme(text);
    const char *rest = is_bare && text[0] == '/' ? text + 2 : text;
    char *url = mem_alloc(strlen("http://") + strlen(rest) + 1);
    sprintf(url, "%s%s", is_bare ? "http://" : "", rest);
    return url;
}

bool exporter_url_check(const char *key, const char *text, struct error *error)
{
    struct http_url url;
    if (text[0] == '\0')
        return true;
    char *whole = exporter_url(text);
    bool is_valid = http_url_parse(whole, &url, error);
    mem_free(whole);
    if (!is_valid)
        return error_prefix(error, "%s must be a valid URL", key) || error_at(error, key);
    http_url_clear(&url);
    return true;
}
