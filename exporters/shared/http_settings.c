/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that exporters over HTTP share. Pure functions; any thread. */
#include "exporters/shared/http_settings.h"

#include "src/config/shared/tls_config.h"
#include "src/net/client/http_client.h"

#include <assert.h>

const char *http_settings_user_agent(void)
{
#if defined(__aarch64__)
    return "spanflame/" SPANFLAME_VERSION " (linux/arm64)";
#else
    return "spanflame/" SPANFLAME_VERSION " (linux/amd64)";
#endif
}

void http_settings_add_tls(struct http_client_settings *settings,
                           const struct tls_client_config *tls)
{
    assert(settings != NULL);
    assert(tls != NULL);
    settings->tls = tls;
}
