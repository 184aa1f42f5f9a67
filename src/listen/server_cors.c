/* SPDX-License-Identifier: Apache-2.0 */
/* CORS headers, the same as those of rs/cors 1.11. On the server's lane. */
#include "src/listen/server_cors.h"

#include "src/base/mem.h"
#include "src/listen/server_config.h"
#include "src/net/server/http_server.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { EMPTY_ELEMENTS_MAX = 16, NO_CONTENT = 204 };

static const char any[] = "*";

void server_cors_init(struct server_cors *cors, const struct server_cors_config *config)
{
    assert(cors->config == NULL);
    if (config->allowed_origins.count == 0)
        return;
    cors->config = config;
    if (config->exposed_headers.count > 0) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        for (size_t i = 0; i < config->exposed_headers.count; i++) {
            /* The canonical form of Go: "X-Trace-Id" for "x-trace-id". */
            bool begins_word = true;
            fputs(i > 0 ? ", " : "", out);
            for (const char *at = config->exposed_headers.texts[i]; *at != '\0'; at++) {
                unsigned char letter = (unsigned char)*at;
                fputc(begins_word ? toupper(letter) : tolower(letter), out);
                begins_word = letter == '-';
            }
        }
        int failed = fclose(out);
        assert(failed == 0);
        char *copy = mem_copy_text(text);
        free(text);
        cors->exposed_headers = copy;
    }
    if (config->max_age_s != 0)
        snprintf(cors->max_age, sizeof(cors->max_age), "%lld",
                 config->max_age_s > 0 ? (long long)config->max_age_s : 0);
}

void server_cors_fini(struct server_cors *cors)
{
    mem_free(cors->exposed_headers);
    cors->exposed_headers = NULL;
    cors->config = NULL;
}

static bool allows_origin(const struct server_cors *cors, struct slice origin)
{
    const struct config_texts *origins = &cors->config->allowed_origins;
    const char *origin_text = (const char *)origin.data;
    assert(origin.size > 0);
    for (size_t i = 0; i < origins->count; i++) {
        /* One "*" matches any string, also an empty one. */
        const char *pattern = origins->texts[i];
        const char *star = strchr(pattern, '*');
        size_t before = star == NULL ? strlen(pattern) : (size_t)(star - pattern);
        size_t after = star == NULL ? 0 : strlen(star + 1);
        bool has_size = star == NULL ? origin.size == before : origin.size >= before + after;
        if (has_size && strncasecmp(pattern, origin_text, before) == 0 &&
            (star == NULL || strncasecmp(star + 1, origin_text + origin.size - after, after) == 0))
            return true;
    }
    return false;
}

static bool allows_method(struct slice method)
{
    static const char *const methods[] = {"GET", "POST", "HEAD", "OPTIONS"};
    assert(method.data != NULL || method.size == 0);
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (slice_equal_text(method, methods[i]))
            return true;
    return false;
}

static bool allows_header(const struct server_cors *cors, struct slice name)
{
    static const char *const standard[] = {"accept", "content-type", "x-requested-with"};
    const struct config_texts *own = &cors->config->allowed_headers;
    const char *const *names = own->count > 0 ? own->texts : standard;
    size_t count = own->count > 0 ? own->count : sizeof(standard) / sizeof(standard[0]);
    assert(name.size > 0);
    /* Browsers send names in lower case; the configured ones may have any. */
    for (size_t i = 0; i < name.size; i++)
        if (isupper(name.data[i]))
            return false;
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == name.size &&
            strncasecmp(names[i], (const char *)name.data, name.size) == 0)
            return true;
    return false;
}

/* Browsers send the names sorted, each once; other lists are refused. */
static bool allows_headers(const struct server_cors *cors, struct slice list)
{
    struct slice last = {.size = 0};
    unsigned empty = 0;
    for (size_t i = 0; i < cors->config->allowed_headers.count; i++)
        if (strcmp(cors->config->allowed_headers.texts[i], any) == 0)
            return true;
    for (bool has_more = list.size > 0; has_more;) {
        const uint8_t *comma = memchr(list.data, ',', list.size);
        struct slice name =
            slice_of(list.data, comma != NULL ? (size_t)(comma - list.data) : list.size);
        has_more = comma != NULL;
        list = has_more ? slice_of(comma + 1, list.size - name.size - 1) : list;
        /* At most one blank on either side. */
        if (name.size > 0 && (name.data[0] == ' ' || name.data[0] == '\t'))
            name = slice_of(name.data + 1, name.size - 1);
        if (name.size > 0 && (name.data[name.size - 1] == ' ' || name.data[name.size - 1] == '\t'))
            name.size--;
        if (name.size != 0 && (isspace(name.data[0]) || isspace(name.data[name.size - 1])))
            return false;
        if (name.size == 0) {
            if (++empty > EMPTY_ELEMENTS_MAX)
                return false;
            has_more = has_more && list.size > 0;
            continue;
        }
        if (!allows_header(cors, name))
            return false;
        /* In byte order; a prefix precedes the longer name. */
        size_t size = name.size < last.size ? name.size : last.size;
        int order = size > 0 ? memcmp(name.data, last.data, size) : 0;
        if (order <= 0 && (order != 0 || name.size <= last.size))
            return false;
        last = name;
    }
    return true;
}

static void add(struct http_response *response, const char *name, const char *value)
{
    size_t used = 0;
    while (response->headers[used].name != NULL)
        used++;
    assert(used + 1 < sizeof(response->headers) / sizeof(response->headers[0]));
    response->headers[used] = (struct http_header){name, value};
}

/* False: text does not fit. */
static bool put(char *room, size_t size, struct slice text)
{
    assert(size > 0);
    if (text.size >= size)
        return false;
    if (text.size > 0)
        memcpy(room, text.data, text.size);
    room[text.size] = '\0';
    return true;
}

static void add_origin(const struct server_cors *cors, const struct server_cors_room *room,
                       struct http_response *response)
{
    const struct config_texts *origins = &cors->config->allowed_origins;
    bool allows_any = false;
    for (size_t i = 0; i < origins->count; i++)
        allows_any |= strcmp(origins->texts[i], any) == 0;
    add(response, "access-control-allow-origin", allows_any ? any : room->origin);
}

bool server_cors_preflight(const struct server_cors *cors, const struct http_request *request,
                           struct server_cors_room *room, struct http_response *response)
{
    struct slice method = http_request_header(request, "access-control-request-method");
    if (cors->config == NULL || method.size == 0 ||
        !slice_equal_text(http_request_method(request), "OPTIONS"))
        return false;
    *response = (struct http_response){.status = NO_CONTENT};
    add(response, "vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
    struct slice origin = http_request_header(request, "origin");
    struct slice headers = http_request_header(request, "access-control-request-headers");
    bool is_allowed = origin.size > 0 && allows_origin(cors, origin) && allows_method(method) &&
                      allows_headers(cors, headers) &&
                      put(room->origin, sizeof(room->origin), origin) &&
                      put(room->method, sizeof(room->method), method) &&
                      put(room->headers, sizeof(room->headers), headers);
    if (!is_allowed)
        return true;
    add_origin(cors, room, response);
    add(response, "access-control-allow-methods", room->method);
    if (headers.size > 0)
        add(response, "access-control-allow-headers", room->headers);
    add(response, "access-control-allow-credentials", "true");
    if (cors->max_age[0] != '\0')
        add(response, "access-control-max-age", cors->max_age);
    return true;
}

void server_cors_add(const struct server_cors *cors, const struct http_request *request,
                     struct server_cors_room *room, struct http_response *response)
{
    if (cors->config == NULL)
        return;
    add(response, "vary", "Origin");
    struct slice origin = http_request_header(request, "origin");
    if (origin.size == 0 || !allows_origin(cors, origin) ||
        !allows_method(http_request_method(request)) ||
        !put(room->origin, sizeof(room->origin), origin))
        return;
    add_origin(cors, room, response);
    if (cors->exposed_headers != NULL)
        add(response, "access-control-expose-headers", cors->exposed_headers);
    add(response, "access-control-allow-credentials", "true");
}
