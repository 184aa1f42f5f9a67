/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that exporters over HTTP share. Pure functions; any thread. */
#include "exporters/http_settings.h"

#include "src/net/http_client.h"
#include "src/tls_client_config.h"

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
    settings->ca_file = tls->common.ca_file;
    settings->ca_pem = tls->common.ca_pem;
    settings->cert_file = tls->common.cert_file;
    settings->cert_pem = tls->common.cert_pem;
    settings->key_file = tls->common.key_file;
    settings->key_pem = tls->common.key_pem;
    settings->server_name_override = tls->server_name_override;
    settings->min_version = tls->common.min_version;
    settings->max_version = tls->common.max_version;
    settings->skips_verify = tls->insecure_skip_verify;
    settings->adds_system_ca = tls->common.include_system_ca_certs_pool;
}
