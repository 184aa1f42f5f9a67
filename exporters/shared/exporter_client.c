/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of exporters. Runs on the exporter's lane. */
#include "exporters/shared/exporter_client.h"

#include "exporters/shared/exporter_auth.h"
#include "src/base/stop_latch.h"
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
    settings->budget = exporter->budget;
    settings->user_agent = exporter_client_user_agent();
    settings->credentials = exporter_auth_credentials(authenticator);
    settings->tls = tls;
    return tls_client_check_files(tls, error) ? http_client_create(settings, error) : NULL;
}

void exporter_client_closed(void *arg)
{
    component_stopped(arg);
}

void exporter_client_users(struct component *exporter, struct stop_latch *ret_users)
{
    *ret_users = (struct stop_latch){.fn = exporter_client_closed, .arg = exporter, .pending = 1};
}

static void release(void *arg)
{
    stop_latch_release(arg);
}

void exporter_client_stop(struct component *exporter, struct http_client *client,
                          struct stop_latch *users)
{
    if (client == NULL)
        component_stopped(exporter);
    else
        http_client_close(client, release, users);
}
