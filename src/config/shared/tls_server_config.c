/* SPDX-License-Identifier: Apache-2.0 */
/* Option table and rules of a server's tls section. Constants and pure functions; the main thread
 * runs them. */
#include "src/config/shared/tls_server_config.h"

#include "src/base/error.h"

#include <assert.h>

const struct config_field tls_server_fields[] = {
    TLS_ROWS(struct tls_server_config, common),
    CONFIG_DURATION_OR_NEGATIVE(
        struct tls_server_config, common.reload_interval_ns, "reload_interval", "0",
        "The first connection after this long reads certificate and key again; a pair "
        "that is no good changes nothing. 0: never."),
    CONFIG_TEXT(struct tls_server_config, client_ca_file, "client_ca_file", NULL,
                "File with certificates of authorities: clients must have a certificate of one."),
    CONFIG_BOOL(struct tls_server_config, client_ca_file_reload, "client_ca_file_reload", "false",
                "Look once a second at most, when somebody connects, whether that file changed."),
    CONFIG_UNUSED_TEXT(struct tls_server_config, common.ca_file, "ca_file",
                       "Servers have client_ca_file for this."),
    CONFIG_UNUSED_TEXT(struct tls_server_config, common.ca_pem, "ca_pem",
                       "Servers have client_ca_file for this."),
    CONFIG_IGNORED_BOOL("include_system_ca_certs_pool", "Of servers only client_ca_file counts."),
    CONFIG_END,
};

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

bool tls_server_check(const void *section, struct error *error)
{
    const struct tls_server_config *tls = section;
    assert(tls != NULL);
    const struct tls_config *common = &tls->common;
    bool has_any = is_set(common->cert_file) || is_set(common->cert_pem) ||
                   is_set(common->key_file) || is_set(common->key_pem);
    if (!has_any)
        return error_set(error, "TLS configuration must include both certificate and key for "
                                "server connections");
    return tls_config_check(common, error);
}
