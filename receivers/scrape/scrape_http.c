/* SPDX-License-Identifier: Apache-2.0 */
/* Client settings of what is scraped. Runs on the lane of the receiver. */
#include "receivers/scrape/scrape_http.h"

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/secret.h"
#include "src/net/client/http_client.h"

#include <string.h>

enum { HEADER_FILE_BYTES_MAX = 8192, BODY_BYTES_FIRST = 16 * 1024 };

void scrape_http_add_header(struct scrape_http *http, const char *name, const char *value)
{
    if (http->headers_count < SCRAPE_HEADERS_MAX)
        http->headers[http->headers_count++] = (struct config_pair){.key = name, .value = value};
}

/* The content of a file as the value of a header, read once. */
static bool add_header_file(struct scrape_http *http, const char *name, const char *path,
                            bool is_rehearsed, struct error *error)
{
    char *text;
    size_t size;
    if (is_rehearsed || http->texts_count == SCRAPE_HEADERS_MAX)
        return true;
    int failed = file_read_whole(path, HEADER_FILE_BYTES_MAX, &text, &size);
    if (failed < 0)
        return error_set(error, "cannot read %s: %s", path, strerror(-failed));
    struct slice trimmed = slice_trim(slice_of(text, size));
    memmove(text, trimmed.data, trimmed.size);
    text[trimmed.size] = '\0';
    http->texts[http->texts_count++] = text;
    scrape_http_add_header(http, name, text);
    return true;
}

static bool add_values(struct scrape_http *http, const char *name, const char *key,
                       const struct config_value *values, bool is_rehearsed, struct error *error)
{
    bool is_files = strcmp(key, "files") == 0;
    bool is_valid = values->type == CONFIG_VALUE_LIST &&
                    (is_files || strcmp(key, "values") == 0 || strcmp(key, "secrets") == 0);
    for (size_t i = 0; is_valid && i < values->count; i++)
        is_valid = values->items[i].type == CONFIG_VALUE_TEXT;
    if (!is_valid)
        return error_set(error,
                         "each header is a map of values, secrets and files, which are lists");
    for (size_t i = 0; i < values->count; i++)
        if (!is_files)
            scrape_http_add_header(http, name, values->items[i].text);
        else if (!add_header_file(http, name, values->items[i].text, is_rehearsed, error))
            return false;
    return true;
}

/* {name: {values: [...], secrets: [...], files: [...]}} */
static bool add_configured_headers(struct scrape_http *http, bool is_rehearsed, struct error *error)
{
    const struct config_value *map = http->config->http_headers;
    if (map == NULL || map->type == CONFIG_VALUE_NULL)
        return true;
    bool is_valid =
        map->type == CONFIG_VALUE_MAP || error_set(error, "a map of headers is expected");
    for (size_t i = 0; is_valid && i < map->count; i++) {
        const struct config_value *header = &map->items[i];
        is_valid = header->type == CONFIG_VALUE_MAP ||
                   error_set(error, "each header is a map of values, secrets and files");
        for (size_t k = 0; is_valid && k < header->count; k++)
            is_valid = add_values(http, map->keys[i], header->keys[k], &header->items[k],
                                  is_rehearsed, error);
    }
    if (is_valid && http->headers_count >= SCRAPE_HEADERS_MAX)
        is_valid = error_set(error, "too many headers");
    return is_valid || error_at(error, "http_headers");
}

static void take_tls(struct scrape_http *http)
{
    const struct scrape_tls_config *from = &http->config->tls;
    http->tls = (struct tls_client_config){
        .common =
            {
                .ca_file = from->ca_file,
                .ca_pem = from->ca_pem,
                .cert_file = from->cert_file,
                .cert_pem = from->cert_pem,
                .key_file = from->key_file,
                .key_pem = from->key_pem,
                .min_version = scrape_tls_version(from->min_version),
                .max_version = scrape_tls_version(from->max_version),
            },
        .insecure_skip_verify = from->insecure_skip_verify,
        .server_name_override = from->server_name,
    };
}

bool scrape_http_open(struct scrape_http *http, const struct scrape_http_config *config,
                      bool is_rehearsed, struct error *error)
{
    *http = (struct scrape_http){.config = config};
    take_tls(http);
    return add_configured_headers(http, is_rehearsed, error) &&
           scrape_login_open(&http->login, config, is_rehearsed, error) &&
           (is_rehearsed || tls_client_check_files(&http->tls, error));
}

void scrape_http_close(struct scrape_http *http)
{
    scrape_login_close(&http->login);
    for (size_t i = 0; i < http->texts_count; i++)
        secret_free(http->texts[i]);
    http->texts_count = 0;
}

void scrape_http_fill(struct scrape_http *http, struct http_client_settings *settings)
{
    *settings = (struct http_client_settings){
        .user_agent = "spanflame/" SPANFLAME_VERSION,
        .headers = http->headers,
        .headers_count = http->headers_count,
        .credentials = scrape_login_credentials(&http->login),
        .connections_max = 1,
        .idle_connections_max = 1,
        .has_keep_alive = true,
        .proxy_url = http->config->proxy_url,
        .tls = &http->tls,
        .forbids_http2 = !http->config->enable_http2,
        .is_get = true,
        .forbids_redirects = !http->config->follow_redirects,
    };
}

bool scrape_body_append(struct buffer **body, struct budget *budget, struct slice bytes)
{
    size_t size = *body != NULL ? (*body)->size : 0;
    size_t needed = size + bytes.size;
    if (*body == NULL) {
        *body = buffer_try_create(budget,
                                  needed > BODY_BYTES_FIRST ? needed : (size_t)BODY_BYTES_FIRST);
        if (*body == NULL)
            return false;
    } else if (needed > (*body)->capacity) {
        size_t capacity = (*body)->capacity * 2;
        struct buffer *grown = buffer_try_grow(*body, capacity > needed ? capacity : needed);
        if (grown == NULL)
            return false;
        *body = grown;
    }
    memcpy((*body)->data + size, bytes.data, bytes.size);
    (*body)->size = needed;
    return true;
}
