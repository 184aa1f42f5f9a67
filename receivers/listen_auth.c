/* SPDX-License-Identifier: Apache-2.0 */
/* Asks authenticators about requests. On the server's lane. */
#include "receivers/listen_auth.h"

#include "receivers/listen_config.h"
#include "src/client_info.h"
#include "src/component.h"
#include "src/limits.h"
#include "src/net/http_path.h"
#include "src/net/http_server.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

/* An auth_request over an http_request: headers, and the query parameters that count as such. */
struct asked {
    struct auth_request base;
    const struct http_request *request;
    const struct config_texts *params;
    char value[HTTP_PATH_MAX]; /* of the parameter that was asked for last */
};

bool listen_auth_init(struct listen_auth *auth, const struct component *receiver,
                      const struct listen_config *config, struct error *error)
{
    assert(auth->authenticator == NULL);
    auth->config = &config->auth;
    if (!config->has_auth || config->auth.authenticator[0] == '\0' ||
        component_is_rehearsed(receiver))
        return true;
    auth->authenticator =
        authenticator_create(receiver, config->auth.authenticator, AUTH_SERVER, error);
    return auth->authenticator != NULL;
}

void listen_auth_fini(struct listen_auth *auth)
{
    assert(auth != NULL);
    authenticator_destroy(auth->authenticator);
    auth->authenticator = NULL;
}

/* The value of "name=value", undecoded; data is NULL when the query has no such parameter. */
static struct slice find_parameter(struct slice query, const char *name)
{
    size_t size = strlen(name);
    assert(size > 0);
    while (query.size > 0) {
        const uint8_t *end = memchr(query.data, '&', query.size);
        struct slice pair =
            slice_of(query.data, end != NULL ? (size_t)(end - query.data) : query.size);
        if (pair.size >= size && memcmp(pair.data, name, size) == 0 &&
            (pair.size == size || pair.data[size] == '='))
            return pair.size == size ? slice_of("", 0)
                                     : slice_of(pair.data + size + 1, pair.size - size - 1);
        query = end != NULL ? slice_of(end + 1, query.size - pair.size - 1) : slice_of(NULL, 0);
    }
    return (struct slice){.data = NULL};
}

/* "+" is a blank in a query. */
static struct slice decode_parameter(struct asked *asked, struct slice value)
{
    char blanks[HTTP_PATH_MAX];
    assert(value.data != NULL);
    if (value.size >= sizeof(blanks))
        return (struct slice){.data = NULL};
    for (size_t i = 0; i < value.size; i++)
        blanks[i] = value.data[i] == '+' ? ' ' : (char)value.data[i];
    if (!http_path_decode(slice_of(blanks, value.size), asked->value))
        return (struct slice){.data = NULL};
    return slice_of_text(asked->value);
}

/* The query wins over the header. */
static struct slice find_header(const struct auth_request *base, const char *name)
{
    struct asked *asked = (struct asked *)(uintptr_t)base;
    assert(asked->request != NULL);
    for (size_t i = 0; i < asked->params->count; i++) {
        if (strcasecmp(asked->params->texts[i], name) != 0)
            continue;
        struct slice value =
            find_parameter(http_request_query(asked->request), asked->params->texts[i]);
        if (value.data != NULL)
            return decode_parameter(asked, value);
    }
    return http_request_header(asked->request, name);
}

enum auth_verdict listen_auth_ask(const struct listen_auth *auth,
                                  const struct http_request *request, struct auth_answer *answer)
{
    assert(request != NULL);
    *answer = (struct auth_answer){.reason = NULL};
    if (auth->authenticator == NULL)
        return AUTH_GRANTED;
    struct asked asked = {
        .base = {.header = find_header}, .request = request, .params = &auth->config->params};
    return authenticator_check(auth->authenticator, &asked.base, answer);
}

struct client_info *listen_auth_client(const struct auth_answer *answer,
                                       const struct client_info *info)
{
    struct client_metadata rows[AUTH_ATTRIBUTES_MAX];
    assert(answer->attributes_count <= AUTH_ATTRIBUTES_MAX);
    for (size_t i = 0; i < answer->attributes_count; i++)
        rows[i] = (struct client_metadata){answer->attributes[i].name, answer->attributes[i].value};
    return client_info_with_auth(info, rows, answer->attributes_count);
}
