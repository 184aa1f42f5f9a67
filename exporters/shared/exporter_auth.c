/* SPDX-License-Identifier: Apache-2.0 */
/* Authenticators of exporters. On the exporter's lane. */
#include "exporters/shared/exporter_auth.h"

#include "src/base/error.h"
#include "src/core/component.h"
#include "src/listen/authenticator.h"

const struct config_field exporter_auth_fields[] = {
    CONFIG_EXTENSION(struct exporter_auth_config, authenticator, "authenticator", "authenticator",
                     authenticator_accepts_client, "Id of an authenticator extension."),
    CONFIG_END,
};

bool exporter_auth_is_on(const struct exporter_auth_config *config)
{
    return config->is_on && config->authenticator[0] != '\0';
}

bool exporter_auth_check_cleartext(const struct component *exporter,
                                   const struct exporter_auth_config *config, struct error *error)
{
    bool needs_tls;
    if (!exporter_auth_is_on(config))
        return true;
    if (!authenticator_check_clients(exporter, config->authenticator, &needs_tls, error))
        return error_at(error, "authenticator") || error_at(error, "auth");
    if (!needs_tls)
        return true;
    return error_set(error, "the credentials require transport level security: expected tls "
                            "without insecure") ||
           error_at(error, "auth");
}

bool exporter_auth_create(const struct component *exporter,
                          const struct exporter_auth_config *config,
                          struct authenticator **ret_authenticator, struct error *error)
{
    bool needs_tls;
    if (!config->is_on)
        return true;
    if (exporter_auth_is_on(config) &&
        !authenticator_check_clients(exporter, config->authenticator, &needs_tls, error))
        return error_at(error, "authenticator") || error_at(error, "auth");
    if (component_is_rehearsed(exporter))
        return true;
    *ret_authenticator = authenticator_create(exporter, config->authenticator, AUTH_CLIENT, error);
    return *ret_authenticator != NULL || error_prefix(error, "auth");
}

static const char *value_of(void *arg)
{
    struct authenticator *authenticator = arg;
    return authenticator_credentials(authenticator).value;
}

static void ask(void *arg, struct credentials_request *request)
{
    authenticator_ask(arg, request);
}

static void forget(void *arg, struct credentials_request *request)
{
    authenticator_forget(arg, request);
}

static void close_it(void *arg, void (*closed)(void *closed_arg), void *closed_arg)
{
    authenticator_close(arg, closed, closed_arg);
}

struct request_credentials exporter_auth_credentials(struct authenticator *authenticator)
{
    if (authenticator == NULL)
        return (struct request_credentials){.name = NULL};
    if (authenticator->ops->ask != NULL)
        return (struct request_credentials){
            .ask = ask, .forget = forget, .close = close_it, .arg = authenticator};
    return (struct request_credentials){
        .name = authenticator_credentials(authenticator).name,
        .value = value_of,
        .arg = authenticator,
    };
}
