/* SPDX-License-Identifier: Apache-2.0 */
/* oauth2client: exporters send a token that an OAuth 2.0 server gives for the client's id and
 * secret (RFC 6749 §4.4), or for an assertion that the client signs (RFC 7523). The tokens are
 * those of oauth2_source.h: one set for all users of an extension on a lane. */
#include "extensions/oauth2_config.h"
#include "extensions/oauth2_jwt.h"
#include "extensions/oauth2_source.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/core/component.h"
#include "src/listen/authenticator.h"
#include "src/net/syntax/http_url.h"

#include <assert.h>
#include <string.h>

#define OWNER struct oauth2_config
static const struct config_field oauth2client_fields[] = {
    CONFIG_TEXT(OWNER, client_id, "client_id", NULL, "The client's id."),
    CONFIG_TEXT(OWNER, client_id_file, "client_id_file", NULL,
                "File with the client's id; wins over client_id. Read for each token."),
    CONFIG_SECRET(OWNER, client_secret, "client_secret", "The client's secret."),
    CONFIG_TEXT(OWNER, client_secret_file, "client_secret_file", NULL,
                "File with the secret; wins over client_secret. Read for each token."),
    CONFIG_TEXT(OWNER, client_certificate_key_id, "client_certificate_key_id", NULL,
                "The id (kid) of the key that signs assertions."),
    CONFIG_SECRET(OWNER, client_certificate_key, "client_certificate_key",
                  "RSA private key, in PEM, that signs assertions."),
    CONFIG_TEXT(OWNER, client_certificate_key_file, "client_certificate_key_file", NULL,
                "File with that key; wins over client_certificate_key. Read for each token."),
    CONFIG_TEXT(OWNER, grant_type, "grant_type", NULL,
                "client_credentials (also when empty), or " OAUTH2_GRANT_JWT "."),
    CONFIG_TEXT(OWNER, signature_algorithm, "signature_algorithm", NULL,
                "Of assertions: RS256 (also when empty), RS384 or RS512."),
    CONFIG_TEXT(OWNER, iss, "iss", NULL, "Issuer of assertions; empty: the client's id."),
    CONFIG_TEXT(OWNER, audience, "audience", NULL, "Audience of assertions; empty: token_url."),
    CONFIG_VALUE(OWNER, claims, "claims", "Further claims of assertions; they win over ours."),
    CONFIG_VALUE(OWNER, endpoint_params, "endpoint_params",
                 "Further parameters of requests for a token: strings (split at commas), or lists "
                 "of strings."),
    CONFIG_TEXT(OWNER, token_url, "token_url", NULL, "URL of the token endpoint."),
    CONFIG_TEXTS(OWNER, scopes, "scopes", NULL, "Scopes to ask for."),
    TLS_CLIENT_ROW(OWNER, tls),
    CONFIG_DURATION_OR_NEGATIVE(OWNER, timeout_ns, "timeout", "0s",
                                "Limit of a request for a token; 0: a minute."),
    CONFIG_DURATION_OR_NEGATIVE(OWNER, expiry_buffer_ns, "expiry_buffer", "5m",
                                "A token is replaced so long before it expires."),
    CONFIG_END,
};
#undef OWNER

static bool is_set(const char *text)
{
    return text[0] != '\0';
}

static bool is_jwt(const struct oauth2_config *config)
{
    return strcmp(config->grant_type, OAUTH2_GRANT_JWT) == 0;
}

static bool is_texts(const struct config_value *value)
{
    for (size_t i = 0; value->type == CONFIG_VALUE_LIST && i < value->count; i++)
        if (value->items[i].type != CONFIG_VALUE_TEXT)
            return false;
    return value->type == CONFIG_VALUE_LIST || value->type == CONFIG_VALUE_TEXT ||
           value->type == CONFIG_VALUE_NULL;
}

static bool check_params(const struct oauth2_config *config, struct error *error)
{
    const struct config_value *params = config->endpoint_params;
    if (params == NULL || params->type == CONFIG_VALUE_NULL)
        return true;
    if (params->type != CONFIG_VALUE_MAP)
        return error_set(error, "expected a map of parameters") ||
               error_at(error, "endpoint_params");
    for (size_t i = 0; i < params->count; i++) {
        const char *key = params->keys[i];
        bool is_ours = (strcmp(key, "scope") == 0 && config->scopes.count > 0) ||
                       (strcmp(key, "assertion") == 0 && is_jwt(config));
        if (!is_texts(&params->items[i]))
            return error_set(error,
                             "the parameter \"%s\" is neither a string nor a list of strings (put "
                             "numbers in quotes)",
                             key) ||
                   error_at(error, "endpoint_params");
        if (is_ours)
            return error_set(error, "oauth2: cannot overwrite parameter \"%s\"", key) ||
                   error_at(error, "endpoint_params");
    }
    return true;
}

static bool oauth2client_check(const void *section, struct error *error)
{
    const struct oauth2_config *config = section;
    struct http_url url;
    if (!is_set(config->client_id) && !is_set(config->client_id_file))
        return error_set(error, "no ClientID provided in the OAuth2 exporter configuration: "
                                "expected client_id or client_id_file");
    if (is_jwt(config)) {
        if (!is_set(config->client_certificate_key) && !is_set(config->client_certificate_key_file))
            return error_set(error, "no ClientCertificateKey provided in the OAuth2 exporter "
                                    "configuration: expected client_certificate_key or "
                                    "client_certificate_key_file");
        if (!oauth2_jwt_knows(config->signature_algorithm))
            return error_set(error,
                             "invalid signature algorithm \"%s\": expected RS256, RS384 or RS512",
                             config->signature_algorithm) ||
                   error_at(error, "signature_algorithm");
    } else if (!is_set(config->client_secret) && !is_set(config->client_secret_file)) {
        return error_set(error, "no ClientSecret provided in OAuth Client Credentials "
                                "configuration: expected client_secret or client_secret_file");
    }
    if (!is_set(config->token_url))
        return error_set(error,
                         "no TokenURL provided in OAuth Client Credentials configuration: expected "
                         "token_url");
    if (is_set(config->grant_type) && !is_jwt(config) &&
        strcmp(config->grant_type, OAUTH2_GRANT_CLIENT) != 0)
        return error_set(error, "unknown grant type \"%s\": expected %s or %s", config->grant_type,
                         OAUTH2_GRANT_CLIENT, OAUTH2_GRANT_JWT) ||
               error_at(error, "grant_type");
    if (!http_url_parse(config->token_url, &url, error))
        return error_at(error, "token_url");
    http_url_clear(&url);
    if (config->claims != NULL && config->claims->type != CONFIG_VALUE_MAP &&
        config->claims->type != CONFIG_VALUE_NULL)
        return error_set(error, "expected a map of claims") || error_at(error, "claims");
    return check_params(config, error);
}

struct oauth2client {
    struct authenticator base;
    struct oauth2_source *source;
};

static struct oauth2client *oauth2client_of(struct authenticator *base)
{
    return (struct oauth2client *)base;
}

static void oauth2client_destroy(struct authenticator *base)
{
    oauth2_source_release(oauth2client_of(base)->source);
    mem_free(base);
}

static struct authenticator *oauth2client_create(const void *section, const struct component *user,
                                                 struct error *error)
{
    const struct oauth2_config *config = section;
    if (!tls_client_check_files(&config->tls, error)) {
        error_at(error, "tls");
        return NULL;
    }
    struct oauth2client *self = mem_zalloc(sizeof(*self));
    self->base = (struct authenticator){.config = config, .logger = &user->logger};
    self->source = oauth2_source_acquire(config, user);
    return &self->base;
}

static bool oauth2client_serves(const void *config, enum auth_side side)
{
    (void)config;
    return side == AUTH_CLIENT;
}

static void oauth2client_ask(struct authenticator *base, struct credentials_request *request)
{
    oauth2_source_ask(oauth2client_of(base)->source, request);
}

static void oauth2client_forget(struct authenticator *base, struct credentials_request *request)
{
    oauth2_source_forget(oauth2client_of(base)->source, request);
}

static void oauth2client_close(struct authenticator *base, void (*closed)(void *arg), void *arg)
{
    oauth2_source_close(oauth2client_of(base)->source, closed, arg);
}

static const struct authenticator_ops oauth2client_ops = {
    .serves = oauth2client_serves,
    .needs_tls = true,
    .create = oauth2client_create,
    .destroy = oauth2client_destroy,
    .ask = oauth2client_ask,
    .forget = oauth2client_forget,
    .close = oauth2client_close,
};

const struct component_factory oauth2client_extension_factory = {
    .type = "oauth2client",
    .kind = EXTENSION,
    .stability = "beta",
    .instance_size = sizeof(struct component),
    .config_size = sizeof(struct oauth2_config),
    .fields = oauth2client_fields,
    .check = oauth2client_check,
    .authenticator = &oauth2client_ops,
};
