/* SPDX-License-Identifier: Apache-2.0 */
/* Options of libcurl's easy handles. A failing setopt would mean a libcurl built without the
 * option; the floor of version 7.88 has them all, so results are not looked at one by one. Runs on
 * the client's lane. */
#include "src/net/client/curl_options.h"

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/config/shared/tls_config.h"
#include "src/net/client/curl_tls.h"
#include "src/net/client/http_client.h"
#include "src/net/client/http_request_head.h"
#include "src/net/client/proxy.h"
#include "src/net/syntax/http_url.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* One copy of a large body into the upload buffer is cheapest when there are few of them. */
enum { UPLOAD_BYTES_MAX = 1 << 20, UPLOAD_BYTES_MIN = 64 * 1024 };

static long to_ms(uint64_t ns)
{
    uint64_t ms = (ns + NS_PER_MS - 1) / NS_PER_MS;
    return ms > LONG_MAX ? LONG_MAX : (long)ms;
}

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static const char *name_override(const struct http_client_settings *settings)
{
    assert(settings != NULL);
    return settings->tls == NULL ? NULL : settings->tls->server_name_override;
}

static void apply_connection(const struct curl_library *library, CURL *easy,
                             const struct http_client_settings *settings,
                             const struct http_url *url)
{
    assert(url->host != NULL);
    const char *proxy = proxy_find(url, settings->proxy_url);
    long idle_s = to_ms(settings->idle_timeout_ns) / 1000;
    library->easy_setopt(easy, CURLOPT_PROXY, proxy == NULL ? "" : proxy);
    library->easy_setopt(easy, CURLOPT_NOPROXY, "");
    /* What a proxy says to CONNECT is no answer of the back-end. */
    library->easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    library->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    library->easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    library->easy_setopt(easy, CURLOPT_TIMEOUT_MS, to_ms(settings->timeout_ns));
    library->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, to_ms(CONNECT_TIMEOUT_NS));
    library->easy_setopt(easy, CURLOPT_MAXAGE_CONN, idle_s);
    library->easy_setopt(easy, CURLOPT_FORBID_REUSE, settings->has_keep_alive ? 0L : 1L);
    library->easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    library->easy_setopt(easy, CURLOPT_HTTP_VERSION,
                         settings->forbids_http2 ? (long)CURL_HTTP_VERSION_1_1
                                                 : (long)CURL_HTTP_VERSION_2TLS);
}

static void apply_url(const struct curl_library *library, CURL *easy,
                      const struct http_client_settings *settings, const struct http_url *url,
                      const char *target)
{
    assert(target[0] == '/');
    char *text = NULL;
    int size;
    if (url->is_https && is_set(name_override(settings)))
        size = asprintf(&text, "https://%s:%u%s", name_override(settings), (unsigned)url->port,
                        target);
    else
        size =
            asprintf(&text, "%s://%s%s", url->is_https ? "https" : "http", url->authority, target);
    assert(size > 0);
    library->easy_setopt(easy, CURLOPT_URL, text);
    free(text);
}

void curl_options_apply(const struct curl_library *library, CURL *easy,
                        const struct http_client_settings *settings, const struct http_url *url,
                        const char *target)
{
    assert(library != NULL);
    assert(easy != NULL);
    apply_url(library, easy, settings, url, target != NULL ? target : url->target);
    library->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    /* http_client.c follows them: it knows which headers may go where. */
    library->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    apply_connection(library, easy, settings, url);
    curl_tls_apply(library, easy, settings->tls);
}

static void __attribute__((format(printf, 3, 4)))
add_header(const struct curl_library *library, struct curl_slist **list, const char *format, ...)
{
    char *line = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&line, format, arguments);
    va_end(arguments);
    assert(size >= 0);
    struct curl_slist *longer = library->slist_append(*list, line);
    free(line);
    assert(longer != NULL);
    *list = longer;
}

static void add_own_headers(const struct curl_library *library, struct curl_slist **list,
                            const struct http_client_settings *settings, const struct http_url *url)
{
    assert(settings->user_agent != NULL);
    if (request_header_find(settings, "User-Agent") == NULL)
        add_header(library, list, "User-Agent: %s", settings->user_agent);
    if (is_set(name_override(settings)) && request_header_find(settings, "Host") == NULL)
        add_header(library, list, "Host: %s", url->authority);
    if (url->credentials != NULL && request_header_find(settings, "Authorization") == NULL) {
        char *value = http_url_basic_auth(url->credentials);
        add_header(library, list, "Authorization: %s", value);
        mem_free(value);
    }
    /* A name without a value takes libcurl's own header away. */
    add_header(library, list, "Expect:");
    if (request_header_find(settings, "Accept") == NULL)
        add_header(library, list, "Accept:");
}

static void add_user_headers(const struct curl_library *library, struct curl_slist **list,
                             const struct http_client_settings *settings)
{
    assert(settings->headers != NULL || settings->headers_count == 0);
    for (size_t i = 0; i < settings->headers_count; i++) {
        const struct config_pair *header = &settings->headers[i];
        bool is_host = strcasecmp(header->key, "Host") == 0;
        if (request_header_is_framing(header->key) && !(is_host && is_set(header->value)))
            continue;
        if (request_header_is_replaced(settings, header->key))
            continue;
        if (is_set(header->value))
            add_header(library, list, "%s: %s", header->key, header->value);
        else
            add_header(library, list, "%s;", header->key);
    }
}

struct curl_slist *curl_options_headers(const struct curl_library *library, CURL *easy,
                                        const struct http_client_settings *settings,
                                        const struct http_url *url, const struct http_post *post)
{
    assert(settings != NULL);
    assert(url != NULL);
    assert(post->content_type != NULL);
    struct curl_slist *list = NULL;
    uint64_t upload = post->bytes > UPLOAD_BYTES_MAX ? UPLOAD_BYTES_MAX : post->bytes;
    if (request_header_find(settings, "Content-Type") == NULL)
        add_header(library, &list, "Content-Type: %s", post->content_type);
    if (post->content_encoding != NULL && request_header_find(settings, "Content-Encoding") == NULL)
        add_header(library, &list, "Content-Encoding: %s", post->content_encoding);
    if (post->header != NULL)
        add_header(library, &list, "%s: %s", post->header->key, post->header->value);
    add_own_headers(library, &list, settings, url);
    add_user_headers(library, &list, settings);
    if (settings->credentials.name != NULL)
        add_header(library, &list, "%s: %s", settings->credentials.name,
                   settings->credentials.value(settings->credentials.arg));
    library->easy_setopt(easy, CURLOPT_HTTPHEADER, list);
    library->easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE,
                         upload < UPLOAD_BYTES_MIN ? (long)UPLOAD_BYTES_MIN : (long)upload);
    return list;
}

struct curl_slist *curl_options_connect_to(const struct curl_library *library, CURL *easy,
                                           const struct http_client_settings *settings,
                                           const struct http_url *url)
{
    assert(library != NULL);
    if (!url->is_https || !is_set(name_override(settings)))
        return NULL;
    bool is_v6 = strchr(url->host, ':') != NULL;
    struct curl_slist *list = NULL;
    add_header(library, &list, "%s:%u:%s%s%s:%u", name_override(settings), (unsigned)url->port,
               is_v6 ? "[" : "", url->host, is_v6 ? "]" : "", (unsigned)url->port);
    library->easy_setopt(easy, CURLOPT_CONNECT_TO, list);
    return list;
}
