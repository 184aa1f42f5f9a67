/* SPDX-License-Identifier: Apache-2.0 */
/* Writes request heads. As in Go's client, headers of the user override ours, including Host, but
 * never the framing headers. Pure functions; any thread. */
#include "src/net/client/http_post.h"

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/net/syntax/http1_chars.h"
#include "src/net/syntax/http_url.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool request_headers_check(const struct http_client_settings *settings, struct error *error)
{
    for (size_t i = 0; i < settings->headers_count; i++) {
        const struct config_pair *header = &settings->headers[i];
        if (!http1_is_token(slice_of_text(header->key)))
            return error_set(
                error, "headers: \"%s\" is not a header name; expected letters, digits and dashes",
                header->key);
        if (!http1_is_all(slice_of_text(header->value), HTTP1_VALUE))
            return error_set(
                error,
                "headers: the value of \"%s\" contains a line break or another control "
                "character; a file read with ${file:…} keeps its final newline",
                header->key);
    }
    return true;
}

bool request_header_is_replaced(const struct http_client_settings *settings, const char *name)
{
    return settings->credentials.name != NULL && strcasecmp(settings->credentials.name, name) == 0;
}

const char *request_header_find(const struct http_client_settings *settings, const char *name)
{
    if (request_header_is_replaced(settings, name))
        return "";
    for (size_t i = 0; i < settings->headers_count; i++)
        if (strcasecmp(settings->headers[i].key, name) == 0)
            return settings->headers[i].value;
    return NULL;
}

bool request_header_is_framing(const char *name)
{
    return strcasecmp(name, "Host") == 0 || strcasecmp(name, "Content-Length") == 0 ||
           strcasecmp(name, "Transfer-Encoding") == 0 || strcasecmp(name, "Trailer") == 0;
}

const char *request_method(const struct http_client_settings *settings)
{
    return settings->is_get ? "GET" : "POST";
}

char *request_head_text(const struct http_client_settings *settings, const struct http_url *url)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    const char *host = request_header_find(settings, "Host");
    fprintf(out, "%s %s HTTP/1.1\r\nHost: %s\r\n", request_method(settings), url->target,
            host != NULL && host[0] != '\0' ? host : url->authority);
    if (request_header_find(settings, "User-Agent") == NULL)
        fprintf(out, "User-Agent: %s\r\n", settings->user_agent);
    if (url->credentials != NULL && request_header_find(settings, "Authorization") == NULL) {
        char *value = http_url_basic_auth(url->credentials);
        fprintf(out, "Authorization: %s\r\n", value);
        mem_free(value);
    }
    if (!settings->has_keep_alive)
        fputs("Connection: close\r\n", out);
    for (size_t i = 0; i < settings->headers_count; i++)
        if (!request_header_is_framing(settings->headers[i].key) &&
            !request_header_is_replaced(settings, settings->headers[i].key))
            fprintf(out, "%s: %s\r\n", settings->headers[i].key, settings->headers[i].value);
    int failed = fclose(out);
    assert(failed == 0);
    char *copy = mem_copy_text(text);
    free(text);
    return copy;
}

char *request_head_credentials(const struct http_client_settings *settings)
{
    const struct request_credentials *credentials = &settings->credentials;
    if (credentials->name == NULL)
        return NULL;
    const char *value = credentials->value(credentials->arg);
    size_t size = strlen(credentials->name) + strlen(value) + sizeof(": \r\n");
    char *text = mem_alloc(size);
    snprintf(text, size, "%s: %s\r\n", credentials->name, value);
    return text;
}

size_t request_head_tail(const struct http_client_settings *settings, const struct http_post *post,
                         char tail[REQUEST_HEAD_TAIL_MAX])
{
    static const struct config_pair none = {.key = "", .value = ""};
    const struct config_pair *more = post->header != NULL ? post->header : &none;
    bool has_type = request_header_find(settings, "Content-Type") == NULL;
    bool has_encoding =
        post->content_encoding != NULL && request_header_find(settings, "Content-Encoding") == NULL;
    assert(strlen(more->key) + strlen(more->value) <= HTTP_POST_HEADER_BYTES_MAX);
    if (settings->is_get)
        return (size_t)snprintf(tail, REQUEST_HEAD_TAIL_MAX, "%s%s%s%s\r\n", more->key,
                                post->header != NULL ? ": " : "", more->value,
                                post->header != NULL ? "\r\n" : "");
    int size = snprintf(tail, REQUEST_HEAD_TAIL_MAX,
                        "%s%s%s%s%s%s%s%s%s%sContent-Length: %" PRIu64 "\r\n\r\n",
                        has_type ? "Content-Type: " : "", has_type ? post->content_type : "",
                        has_type ? "\r\n" : "", has_encoding ? "Content-Encoding: " : "",
                        has_encoding ? post->content_encoding : "", has_encoding ? "\r\n" : "",
                        more->key, post->header != NULL ? ": " : "", more->value,
                        post->header != NULL ? "\r\n" : "", post->bytes);
    assert(size > 0);
    assert(size < REQUEST_HEAD_TAIL_MAX);
    return (size_t)size;
}
