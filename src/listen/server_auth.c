/* SPDX-License-Identifier: Apache-2.0 */
/* Passes requests to authenticators. On the server's lane. */
#include "src/listen/server_auth.h"

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/client_info.h"
#include "src/core/component.h"
#include "src/listen/server_config.h"
#include "src/net/server/grpc.h"
#include "src/net/server/http_server.h"
#include "src/net/syntax/http_path.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

/* An auth_request for an http_request: its headers, and the query parameters that count as headers.
 */
struct http_auth_request {
    struct auth_request base;
    struct http_request *request;
    const struct config_texts *params;
    char value[HTTP_PATH_MAX]; /* of the last parameter */
};

/* A request whose verdict is not known yet. */
struct held_request {
    struct auth_waiter base;
    struct http_request *request;
    struct http_server *server;
};

bool server_auth_init(struct server_auth *auth, const struct component *receiver,
                      const struct server_config *config, struct error *error)
{
    assert(auth->authenticator == NULL);
    auth->config = &config->auth;
    if (!config->has_auth || component_is_rehearsed(receiver))
        return true;
    auth->authenticator =
        authenticator_create(receiver, config->auth.authenticator, AUTH_SERVER, error);
    return auth->authenticator != NULL;
}

void server_auth_fini(struct server_auth *auth)
{
    authenticator_destroy(auth->authenticator);
    auth->authenticator = NULL;
}

/* "+" is a blank in a query. */
static bool decode(struct slice text, char to[HTTP_PATH_MAX])
{
    char blanks[HTTP_PATH_MAX];
    if (text.size >= sizeof(blanks))
        return false;
    for (size_t i = 0; i < text.size; i++)
        blanks[i] = text.data[i] == '+' ? ' ' : (char)text.data[i];
    return http_percent_decode(slice_of(blanks, text.size), to);
}

/* The first parameter of this name. */
static bool find_parameter(struct http_auth_request *auth_request, const char *name)
{
    struct slice query = http_request_query(auth_request->request);
    while (query.size > 0) {
        const uint8_t *end = memchr(query.data, '&', query.size);
        size_t size = end != NULL ? (size_t)(end - query.data) : query.size;
        struct slice pair = slice_of(query.data, size);
        const uint8_t *equals = memchr(pair.data, '=', pair.size);
        size_t name_size = equals != NULL ? (size_t)(equals - pair.data) : pair.size;
        struct slice value =
            equals != NULL ? slice_of(equals + 1, pair.size - name_size - 1) : slice_of("", 0);
        if (memchr(pair.data, ';', pair.size) == NULL &&
            decode(slice_of(pair.data, name_size), auth_request->value) &&
            strcmp(auth_request->value, name) == 0 && decode(value, auth_request->value))
            return true;
        query = end != NULL ? slice_of(end + 1, query.size - size - 1) : slice_of(NULL, 0);
    }
    return false;
}

/* The parameters whose names are, or are not, in the canonical form of Go: X-Scope-Orgid. */
static bool find_among_parameters(struct http_auth_request *auth_request, const char *name,
                                  bool canonical)
{
    for (size_t i = 0; i < auth_request->params->count; i++) {
        const char *param = auth_request->params->texts[i];
        if (strcasecmp(param, name) != 0)
            continue;
        bool is_canonical = true;
        bool begins = true;
        for (const char *at = param; *at != '\0'; at++) {
            unsigned char letter = (unsigned char)*at;
            is_canonical &= begins ? !islower(letter) : !isupper(letter);
            begins = letter == '-';
        }
        if (is_canonical == canonical && find_parameter(auth_request, param))
            return true;
    }
    return false;
}

/* A query parameter overrides the header if request_params has its name in canonical form, else the
 * header overrides it: Go stores both as spelled, and authenticators look up the canonical form
 * first. */
static struct slice find_header(const struct auth_request *base, const char *name)
{
    struct http_auth_request *auth_request = (struct http_auth_request *)(uintptr_t)base;
    if (find_among_parameters(auth_request, name, true))
        return slice_of_text(auth_request->value);
    struct slice header = http_request_header(auth_request->request, name);
    if (header.data == NULL && find_among_parameters(auth_request, name, false))
        return slice_of_text(auth_request->value);
    return header;
}

static void on_verdict(struct auth_waiter *waiter)
{
    struct held_request held = *(struct held_request *)waiter;
    mem_free(waiter);
    http_request_again(held.request, held.server);
}

static struct auth_waiter *hold(const struct auth_request *base)
{
    const struct http_auth_request *auth_request = (const struct http_auth_request *)base;
    struct held_request *held = mem_zalloc(sizeof(*held));
    held->base.fn = on_verdict;
    held->request = auth_request->request;
    held->server = http_request_hold(auth_request->request);
    return &held->base;
}

enum auth_verdict server_auth_ask(const struct server_auth *auth, struct http_request *request,
                                  struct auth_result *result)
{
    *result = (struct auth_result){.reason = NULL};
    if (auth->authenticator == NULL)
        return AUTH_GRANTED;
    struct http_auth_request auth_request = {.base = {.header = find_header, .wait = hold},
                                             .request = request,
                                             .params = &auth->config->params};
    return authenticator_check(auth->authenticator, &auth_request.base, result);
}

bool server_auth_admits_call(const struct server_auth *auth, struct http_request *request,
                             const struct grpc_call *call, struct auth_result *ret_result)
{
    enum auth_verdict verdict = server_auth_ask(auth, request, ret_result);
    bool is_busy = verdict == AUTH_BUSY;
    if (verdict == AUTH_GRANTED)
        return true;
    if (verdict == AUTH_PENDING)
        return false;
    grpc_respond_status(request, call,
                        &(struct rpc_status){
                            .code = is_busy ? STATUS_UNAVAILABLE : STATUS_UNAUTHENTICATED,
                            .message = ret_result->reason,
                            .retry_after_ns = is_busy ? RETRY_AFTER_BUSY_NS : 0,
                        });
    return false;
}

struct client_info *server_auth_client(const struct auth_result *result,
                                       const struct client_info *info)
{
    struct client_metadata rows[AUTH_ATTRIBUTES_MAX];
    assert(result->attributes_count <= AUTH_ATTRIBUTES_MAX);
    for (size_t i = 0; i < result->attributes_count; i++)
        rows[i] = (struct client_metadata){result->attributes[i].name, result->attributes[i].value};
    return client_info_with_auth(info, rows, result->attributes_count);
}
