/* SPDX-License-Identifier: Apache-2.0 */
/* A bearer token may be the secret of an `auth` extension, the one-time token that the start
 * prints, or the session that this was exchanged for: it is sent as all of them. */
#include "src/cli/explore/explore_client.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/cli/explore/json_part.h"
#include "src/explore/explore_limits.h"
#include "src/net/client/curl_library.h"

enum {
    URL_BYTES_MAX = EXPLORE_QUERY_BYTES_MAX + 1024,
    HEADER_BYTES_MAX = 4096,
    TOKEN_BYTES_MAX = 1024,
    BODY_BYTES_FIRST = 64 * 1024,
    CONNECT_MS = 5000,
    WHOLE_MS = 60000,
};

#define COOKIE  "spanflame_session="
#define API     "/api/v1/"
#define TOKEN   "#token="
#define SESSION "session"

/* An answer that is being received. */
struct answer {
    struct buffer *body;
    bool is_too_large;
    struct explore_client *client;
};

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct answer *answer = arg;
    size_t bytes = size * count;
    struct buffer *body = answer->body;
    if (body->size + bytes > EXPLORE_RESPONSE_BYTES_MAX) {
        answer->is_too_large = true;
        return 0;
    }
    if (body->size + bytes > body->capacity) {
        body = buffer_try_grow(body, 2 * (body->size + bytes));
        if (body == NULL)
            return 0;
        answer->body = body;
    }
    memcpy(body->data + body->size, data, bytes);
    body->size += bytes;
    return bytes;
}

/* Takes the session from "set-cookie: spanflame_session=…;". */
static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    static const char name[] = "set-cookie:";
    struct answer *answer = arg;
    struct slice line = slice_of(data, size * count);
    if (line.size <= sizeof(name) - 1 ||
        !slice_equal_nocase(slice_of(line.data, sizeof(name) - 1), name))
        return size * count;
    struct slice value =
        slice_trim(slice_of(line.data + sizeof(name) - 1, line.size - (sizeof(name) - 1)));
    if (!slice_begins_with(value, COOKIE))
        return size * count;
    value = slice_of(value.data + sizeof(COOKIE) - 1, value.size - (sizeof(COOKIE) - 1));
    const uint8_t *end = memchr(value.data, ';', value.size);
    size_t length = end != NULL ? (size_t)(end - value.data) : value.size;
    if (length < sizeof(answer->client->session)) {
        memcpy(answer->client->session, value.data, length);
        answer->client->session[length] = '\0';
    }
    return size * count;
}

/* The token of the flag, or that of the URL's fragment; "": none. */
static void find_token(const struct explore_client *client, char token[TOKEN_BYTES_MAX])
{
    const char *fragment = strstr(client->url, TOKEN);
    const char *found = client->token != NULL ? client->token
                        : fragment != NULL    ? fragment + sizeof(TOKEN) - 1
                                              : "";
    snprintf(token, TOKEN_BYTES_MAX, "%s", found);
}

/* "http://host:4620/#token=…" without what is behind the path, and the request. */
static bool make_url(const struct explore_client *client, const char *path, const char *query,
                     char url[URL_BYTES_MAX], struct error *error)
{
    size_t size = strcspn(client->url, "?#");
    while (size > 0 && client->url[size - 1] == '/')
        size--;
    bool has_scheme = strncmp(client->url, "http://", strlen("http://")) == 0 ||
                      strncmp(client->url, "https://", strlen("https://")) == 0;
    int written = snprintf(url, URL_BYTES_MAX, "%.*s" API "%s%s%s", (int)size, client->url, path,
                           query[0] != '\0' ? "?" : "", query);
    if (!has_scheme)
        return error_set(error, "--url: found \"%s\", expected http://host:port/ or https://…",
                         client->url);
    return (written > 0 && written < URL_BYTES_MAX) ||
           error_set(error, "the question is longer than %d bytes: ask for less",
                     EXPLORE_QUERY_BYTES_MAX);
}

/* Sends one request. The status; 0: error says why there is none. */
static long perform(const struct curl_library *library, struct answer *answer, const char *url,
                    struct error *error)
{
    const struct explore_client *client = answer->client;
    char token[TOKEN_BYTES_MAX];
    char bearer[HEADER_BYTES_MAX];
    char cookie[HEADER_BYTES_MAX];
    long status = 0;
    CURL *easy = library->easy_init();
    if (easy == NULL) {
        error_set(error, "not enough memory to ask");
        return 0;
    }
    find_token(client, token);
    snprintf(bearer, sizeof(bearer), "Authorization: Bearer %s", token);
    snprintf(cookie, sizeof(cookie), COOKIE "%s",
             client->session[0] != '\0' ? client->session : token);
    struct curl_slist *headers = NULL;
    if (token[0] != '\0' && client->user == NULL)
        headers = library->slist_append(NULL, bearer);
    library->easy_setopt(easy, CURLOPT_URL, url);
    library->easy_setopt(easy, CURLOPT_PROXY, "");
    library->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    library->easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
    library->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    library->easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)WHOLE_MS);
    library->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    library->easy_setopt(easy, CURLOPT_WRITEDATA, answer);
    library->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    library->easy_setopt(easy, CURLOPT_HEADERDATA, answer);
    library->easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    if (token[0] != '\0')
        library->easy_setopt(easy, CURLOPT_COOKIE, cookie);
    if (client->user != NULL)
        library->easy_setopt(easy, CURLOPT_USERPWD, client->user);
    if (client->authority != NULL)
        library->easy_setopt(easy, CURLOPT_CAINFO, client->authority);
    library->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, client->is_unverified ? 0L : 1L);
    library->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, client->is_unverified ? 0L : 2L);
    CURLcode code = library->easy_perform(easy);
    if (code == CURLE_OK)
        library->easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    else
        error_set(error, "no answer from %.*s: %s; is a daemon with the explore extension there?",
                  (int)strcspn(url, "?"), url,
                  answer->is_too_large ? "it is larger than 64 MiB" : library->easy_strerror(code));
    library->easy_cleanup(easy);
    library->slist_free_all(headers);
    return status;
}

static long ask(const struct curl_library *library, struct explore_client *client, const char *path,
                const char *query, struct buffer **ret_body, struct error *error)
{
    char url[URL_BYTES_MAX];
    struct answer answer = {.client = client};
    *ret_body = NULL;
    if (!make_url(client, path, query, url, error))
        return 0;
    answer.body = buffer_create(NULL, BODY_BYTES_FIRST);
    long status = perform(library, &answer, url, error);
    *ret_body = answer.body;
    return status;
}

/* The daemon's words, which are trusted as little as other text. */
static void describe(struct error *error, long status, const struct buffer *body)
{
    char *words = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&words, &size);
    if (out == NULL) {
        error_set(error, "the daemon answers with status %ld", status);
        return;
    }
    json_part_print(out, json_part(buffer_slice(body), "error"));
    fclose(out);
    error_set(error, "the daemon answers with status %ld%s%s", status, size > 0 ? ": " : "",
              words != NULL ? words : "");
    free(words);
}

struct buffer *explore_client_get(struct explore_client *client, const char *path,
                                  const char *query, struct error *error)
{
    enum { OK = 200, UNAUTHORIZED = 401 };
    char token[TOKEN_BYTES_MAX];
    struct buffer *body;
    const struct curl_library *library = curl_library_load(error);
    if (library == NULL)
        return NULL;
    long status = ask(library, client, path, query, &body, error);
    find_token(client, token);
    if (status == UNAUTHORIZED && token[0] != '\0' && client->session[0] == '\0') {
        struct buffer *session;
        if (ask(library, client, SESSION, "", &session, error) == OK &&
            client->session[0] != '\0') {
            fprintf(stderr,
                    "The token is used up. For the next commands: export "
                    "SPANFLAME_EXPLORE_TOKEN=%s\n",
                    client->session);
            buffer_unref(body);
            status = ask(library, client, path, query, &body, error);
        }
        buffer_unref(session);
    }
    if (status == OK)
        return body;
    if (status != 0)
        describe(error, status, body);
    buffer_unref(body);
    return NULL;
}
