/* SPDX-License-Identifier: Apache-2.0 */
/* Creates authenticators from the extensions of a service. */
#include "src/listen/authenticator.h"

#include <assert.h>

#include "src/base/error.h"
#include "src/config/component_set.h"
#include "src/core/component.h"
#include "src/net/client/request_edits.h"

static bool accepts(const struct config_component *extension, enum auth_side side,
                    struct error *error)
{
    static const char *const sides[] = {[AUTH_SERVER] = "server", [AUTH_CLIENT] = "client"};
    const struct authenticator_ops *ops = extension->factory->authenticator;
    if (ops != NULL && ops->serves(extension->config, side))
        return true;
    return error_set(
        error, "requested authenticator is not a %s authenticator: the extension \"%s\" %s",
        sides[side], extension->id,
        ops == NULL ? "is not an authenticator" : "is configured for the other side only");
}

bool authenticator_accepts_server(const struct config_component *extension, struct error *error)
{
    return accepts(extension, AUTH_SERVER, error);
}

bool authenticator_accepts_client(const struct config_component *extension, struct error *error)
{
    return accepts(extension, AUTH_CLIENT, error);
}

struct authenticator *authenticator_create(const struct component *user, const char *id,
                                           enum auth_side side, struct error *error)
{
    const struct service_view *view = user->service;
    const struct config_component *extension =
        view != NULL && view->extension != NULL ? view->extension(view, id) : NULL;
    if (extension == NULL) {
        error_set(error, "failed to resolve authenticator \"%s\": authenticator not found", id);
        return NULL;
    }
    if (!accepts(extension, side, error))
        return NULL;
    const struct authenticator_ops *ops = extension->factory->authenticator;
    struct authenticator *authenticator = ops->create(extension->config, user, error);
    if (authenticator == NULL) {
        config_component_locate(extension, error);
        error->steps_count = 0;
        error_prefix(error, "extension \"%s\"", id);
        return NULL;
    }
    authenticator->ops = ops;
    assert(authenticator->config == extension->config);
    return authenticator;
}

void authenticator_destroy(struct authenticator *authenticator)
{
    if (authenticator == NULL)
        return;
    authenticator->ops->destroy(authenticator);
}

enum auth_verdict authenticator_check(struct authenticator *authenticator,
                                      const struct auth_request *request,
                                      struct auth_result *ret_result)
{
    *ret_result = (struct auth_result){.reason = NULL};
    enum auth_verdict verdict =
        authenticator->ops->authenticate(authenticator, request, ret_result);
    assert(verdict == AUTH_GRANTED || verdict == AUTH_PENDING || ret_result->reason != NULL);
    return verdict;
}

struct auth_header authenticator_credentials(struct authenticator *authenticator)
{
    assert(authenticator->ops->credentials != NULL);
    return authenticator->ops->credentials(authenticator);
}

void authenticator_ask(struct authenticator *authenticator, struct credentials_request *request)
{
    const struct authenticator_ops *ops = authenticator->ops;
    if (ops->ask != NULL) {
        ops->ask(authenticator, request);
        return;
    }
    struct auth_header header = ops->credentials(authenticator);
    request_edits_begin(&request->edits, request->is_grpc);
    request_edits_add(&request->edits, EDIT_UPSERT, header.name, header.value);
    request->done(request, NULL);
}

void authenticator_forget(struct authenticator *authenticator, struct credentials_request *request)
{
    if (authenticator->ops->forget != NULL)
        authenticator->ops->forget(authenticator, request);
}

void authenticator_close(struct authenticator *authenticator, void (*closed)(void *arg), void *arg)
{
    if (authenticator->ops->close != NULL)
        authenticator->ops->close(authenticator, closed, arg);
    else
        closed(arg);
}

bool authenticator_check_clients(const struct component *user, const char *id, bool *ret_needs_tls,
                                 struct error *error)
{
    const struct service_view *view = user->service;
    const char *next = id;
    *ret_needs_tls = false;
    for (unsigned i = 0; next != NULL && next[0] != '\0'; i++) {
        const struct config_component *extension =
            view != NULL && view->extension != NULL ? view->extension(view, next) : NULL;
        if (extension == NULL)
            return error_set(
                error, "failed to resolve authenticator \"%s\": authenticator not found", next);
        if (i == AUTH_CHAIN_MAX)
            return error_set(error,
                             "the additional_auth of \"%s\" leads to more than %d authenticators, "
                             "or back to itself; expected a chain with an end",
                             id, AUTH_CHAIN_MAX);
        if (!accepts(extension, AUTH_CLIENT, error))
            return false;
        const struct authenticator_ops *ops = extension->factory->authenticator;
        *ret_needs_tls |= ops->needs_tls;
        next = ops->chains_to != NULL ? ops->chains_to(extension->config) : NULL;
    }
    return true;
}
