/* SPDX-License-Identifier: Apache-2.0 */
/* Writes request heads. As in Go's client, headers of the user override ours, including Host, but
 * never the framing headers. Pure functions; any thread. */
#include "src/net/client/http_post.h"

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/config/field.h"
#include "src/net/client/request_edits.h"
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

void request_rows_init(struct request_rows *rows, const struct http_client_settings *settings,
                       const struct http_url *url, const struct http_post *post)
{
    enum { OWN_MAX = 5 };
    size_t edits = post->edits != NULL ? post->edits->count : 0;
    size_t count = 0;
    struct config_pair *row = mem_alloc((OWN_MAX + settings->headers_count + edits) * sizeof(*row));
    *rows = (struct request_rows){.rows = row};
    if (request_header_find(settings, "User-Agent") == NULL)
        row[count++] = (struct config_pair){.key = "User-Agent", .value = settings->user_agent};
    if (url->credentials != NULL && request_header_find(settings, "Authorization") == NULL) {
        rows->authorization = http_url_basic_auth(url->credentials);
        row[count++] = (struct config_pair){.key = "Authorization", .value = rows->authorization};
    }
    for (size_t i = 0; i < settings->headers_count; i++)
        row[count++] = settings->headers[i];
    if (!settings->is_get && request_header_find(settings, "Content-Type") == NULL)
        row[count++] = (struct config_pair){.key = "Content-Type", .value = post->content_type};
    if (post->content_encoding != NULL && request_header_find(settings, "Content-Encoding") == NULL)
        row[count++] =
            (struct config_pair){.key = "Content-Encoding", .value = post->content_encoding};
    if (post->header != NULL)
        row[count++] = *post->header;
    assert(count <= OWN_MAX + settings->headers_count);
    if (post->edits != NULL)
        count = request_edits_apply(post->edits, false, row, count);
    for (size_t i = 0; i < count; i++)
        if (!request_header_is_framing(row[i].key))
            row[rows->count++] = row[i];
}

void request_rows_fini(struct request_rows *rows)
{
    mem_free(rows->rows);
    secret_free(rows->authorization);
}

char *request_head_edited(const struct http_client_settings *settings, const struct http_url *url,
                          const struct http_post *post)
{
    char *text = NULL;
    size_t size = 0;
    struct request_rows rows;
    FILE *out = open_memstream(&text, &size);
    const char *host = request_header_find(settings, "Host");
    request_rows_init(&rows, settings, url, post);
    fprintf(out, "%s %s HTTP/1.1\r\nHost: %s\r\n", request_method(settings),
            post->target != NULL ? post->target : url->target,
            host != NULL && host[0] != '\0' ? host : url->authority);
    if (!settings->has_keep_alive)
        fputs("Connection: close\r\n", out);
    for (size_t i = 0; i < rows.count; i++)
        fprintf(out, "%s: %s\r\n", rows.rows[i].key, rows.rows[i].value);
    if (!settings->is_get)
        fprintf(out, "Content-Length: %" PRIu64 "\r\n", post->bytes);
    fputs("\r\n", out);
    request_rows_fini(&rows);
    int failed = fclose(out);
    assert(failed == 0);
    char *copy = mem_copy_text(text);
    explicit_bzero(text, size);
    free(text);
    return copy;
}

uint64_t request_timeout_ns(const struct http_client_settings *settings,
                            const struct http_post *post)
{
    if (settings->timeout_ns == 0)
        return 0;
    return post->spent_ns < settings->timeout_ns ? settings->timeout_ns - post->spent_ns : 1;
}
