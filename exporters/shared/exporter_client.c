/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of exporters. Runs on the exporter's lane. */
#include "exporters/shared/exporter_client.h"

#include "exporters/shared/exporter_auth.h"
#include "src/config/shared/tls_config.h"
#include "src/core/component.h"
#include "src/net/client/http_client.h"

const char *exporter_client_user_agent(void)
{
#if defined(__aarch64__)
    return "spanflame/" SPANFLAME_VERSION " (linux/arm64)";
#else
    return "spanflame/" SPANFLAME_VERSION " (linux/amd64)";
#endif
}

struct http_client *exporter_client_create(struct component *exporter,
                                           struct http_client_settings *settings,
                                           const struct tls_client_config *tls,
                                           struct authenticator *authenticator, struct error *error)
{
    settings->lane = exporter->lane;
    settings->user_agent = exporter_client_user_agent();
    settings->credentials = exporter_auth_credentials(authenticator);
    settings->tls = tls;
    return tls_client_check_files(tls, error) ? http_client_create(settings, error) : NULL;
}

void exporter_client_closed(void *arg)
{
    component_stopped(arg);
}

void exporter_client_stop(struct component *exporter, struct http_client *client)
{
    if (client == NULL)
        component_stopped(exporter);
    else
        http_client_close(client, exporter_client_closed, exporter);
}
