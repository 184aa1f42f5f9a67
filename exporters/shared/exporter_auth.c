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

bool exporter_auth_create(const struct component *exporter,
                          const struct exporter_auth_config *config,
                          struct authenticator **ret_authenticator, struct error *error)
{
    if (!config->is_on || component_is_rehearsed(exporter))
        return true;
    *ret_authenticator = authenticator_create(exporter, config->authenticator, AUTH_CLIENT, error);
    return *ret_authenticator != NULL || error_prefix(error, "auth");
}

static const char *value_of(void *arg)
{
    struct authenticator *authenticator = arg;
    return authenticator_credentials(authenticator).value;
}

struct request_credentials exporter_auth_credentials(struct authenticator *authenticator)
{
    if (authenticator == NULL)
        return (struct request_credentials){.name = NULL};
    return (struct request_credentials){
        .name = authenticator_credentials(authenticator).name,
        .value = value_of,
        .arg = authenticator,
    };
}
