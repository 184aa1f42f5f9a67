/* SPDX-License-Identifier: Apache-2.0 */
/* Option table and rules of a client's tls section. Constants and pure functions but for the look
 * at its files; the main thread runs them. */
#include "src/config/shared/tls_client_config.h"

#include "src/base/error.h"

#include <assert.h>

const struct config_field tls_client_fields[] = {
    CONFIG_BOOL(struct tls_client_config, insecure, "insecure", "false",
                "Connect in cleartext. An https URL uses TLS all the same."),
    CONFIG_BOOL(struct tls_client_config, insecure_skip_verify, "insecure_skip_verify", "false",
                "Accept any certificate of the server."),
    CONFIG_TEXT(struct tls_client_config, server_name_override, "server_name_override", NULL,
                "Name that the server's certificate is checked for, instead of the URL's host."),
    CONFIG_TEXT(struct tls_client_config, common.ca_file, "ca_file", NULL,
                "File with the certificates of the authorities that are trusted; the system's when "
                "unset."),
    CONFIG_TEXT(struct tls_client_config, common.ca_pem, "ca_pem", NULL, "The same as PEM text."),
    CONFIG_BOOL(struct tls_client_config, common.include_system_ca_certs_pool,
                "include_system_ca_certs_pool", "false",
                "Trust the system's authorities beside ca_file or ca_pem."),
    TLS_ROWS(struct tls_client_config, common),
    CONFIG_DURATION_OR_NEGATIVE(
        struct tls_client_config, common.reload_interval_ns, "reload_interval", "0",
        "How often certificate and key may be read again. HTTP reads them for each "
        "connection."),
    CONFIG_END,
};

bool tls_client_check(const void *section, struct error *error)
{
    const struct tls_client_config *tls = section;
    assert(tls != NULL);
    return tls_config_check(&tls->common, error);
}

bool tls_client_check_files(const struct tls_client_config *tls, struct error *error)
{
    assert(tls != NULL);
    return tls_config_check_file("ca_file", tls->common.ca_file, error) &&
           tls_config_check_file("cert_file", tls->common.cert_file, error) &&
           tls_config_check_file("key_file", tls->common.key_file, error);
}
