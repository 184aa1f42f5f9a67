/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that receivers which scrape have in common, as Prometheus has them (prometheus/prometheus
 * 0.312, config/config.go; prometheus/common, config/http_config.go): static targets, discoveries,
 * relabeling, and how a server is asked. Constants and pure functions; the main thread runs the
 * rules while it loads the configuration. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/clock.h"
#include "src/config/field.h"
#include "src/prometheus/relabel.h"

struct arena;
struct error;

struct scrape_static_config {
    struct config_texts targets; /* "host:port" */
    struct config_pairs labels;
};
extern const struct config_field scrape_static_fields[];

struct scrape_relabel_config {
    struct config_texts source_labels;
    const char *separator;
    const char *regex;
    uint64_t modulus;
    const char *target_label;
    const char *replacement;
    const char *action;
};
extern const struct config_field scrape_relabel_fields[];

struct scrape_basic_auth_config {
    const char *username;
    const char *username_file;
    const char *password;
    const char *password_file;
};
extern const struct config_field scrape_basic_auth_fields[];

struct scrape_authorization_config {
    const char *type;
    const char *credentials;
    const char *credentials_file;
};
extern const struct config_field scrape_authorization_fields[];

struct scrape_tls_config {
    const char *ca_file;
    const char *ca_pem;
    const char *cert_file;
    const char *cert_pem;
    const char *key_file;
    const char *key_pem;
    const char *server_name;
    bool insecure_skip_verify;
    int min_version; /* 0: unset, 1 to 4: TLS 1.0 to 1.3 */
    int max_version;
};
extern const struct config_field scrape_tls_fields[];

/* "" or "1.0" to "1.3": a version as the rest of the configuration writes it. */
const char *scrape_tls_version(int index);

/* How a server is asked. */
struct scrape_http_config {
    struct scrape_basic_auth_config basic_auth;
    bool has_basic_auth;
    struct scrape_authorization_config authorization;
    bool has_authorization;
    const char *bearer_token;
    const char *bearer_token_file;
    struct scrape_tls_config tls;
    const char *proxy_url;
    bool follow_redirects;
    bool enable_http2;
    const struct config_value *http_headers;
    const struct config_value *oauth2;
};

/* The rows of a struct scrape_http_config, a field of owner. */
#define SCRAPE_HTTP_ROWS(owner, http)                                                              \
    CONFIG_OPTIONAL(owner, http.basic_auth, struct scrape_basic_auth_config, http.has_basic_auth,  \
                    CONFIG_NULL_IS_OFF, "basic_auth", scrape_basic_auth_fields, NULL,              \
                    "User and password."),                                                         \
        CONFIG_OPTIONAL(owner, http.authorization, struct scrape_authorization_config,             \
                        http.has_authorization, CONFIG_NULL_IS_OFF, "authorization",               \
                        scrape_authorization_fields, NULL, "The header Authorization."),           \
        CONFIG_SECRET(owner, http.bearer_token, "bearer_token",                                    \
                      "The same as authorization::credentials."),                                  \
        CONFIG_TEXT(owner, http.bearer_token_file, "bearer_token_file", "",                        \
                    "The same as authorization::credentials_file."),                               \
        CONFIG_SECTION(owner, http.tls, struct scrape_tls_config, "tls_config", scrape_tls_fields, \
                       NULL, "TLS towards the server."),                                           \
        CONFIG_TEXT(owner, http.proxy_url, "proxy_url", "", "Proxy; none by default."),            \
        CONFIG_IGNORED_TEXT("no_proxy", "Set NO_PROXY in the environment."),                       \
        CONFIG_IGNORED_BOOL("proxy_from_environment", "It is, without proxy_url."),                \
        CONFIG_IGNORED("proxy_connect_header", "Not sent."),                                       \
        CONFIG_BOOL(owner, http.follow_redirects, "follow_redirects", "true",                      \
                    "Follow redirects."),                                                          \
        CONFIG_BOOL(owner, http.enable_http2, "enable_http2", "true", "Use HTTP/2 over TLS."),     \
        CONFIG_VALUE(owner, http.http_headers, "http_headers",                                     \
                     "More headers: a map of {values: […], secrets: […], files: […]}."),           \
        CONFIG_VALUE(owner, http.oauth2, "oauth2", "Not supported.")

bool scrape_http_check(const struct scrape_http_config *http, struct error *error);

/* Discoveries that Prometheus has and this build has not. */
#define SCRAPE_UNSUPPORTED(X, owner, discovery)                                                    \
    X(owner, discovery, aws)                                                                       \
    X(owner, discovery, azure)                                                                     \
    X(owner, discovery, consul)                                                                    \
    X(owner, discovery, digitalocean)                                                              \
    X(owner, discovery, dns)                                                                       \
    X(owner, discovery, docker)                                                                    \
    X(owner, discovery, dockerswarm)                                                               \
    X(owner, discovery, ec2)                                                                       \
    X(owner, discovery, ecs)                                                                       \
    X(owner, discovery, elasticache)                                                               \
    X(owner, discovery, eureka)                                                                    \
    X(owner, discovery, gce)                                                                       \
    X(owner, discovery, hetzner)                                                                   \
    X(owner, discovery, ionos)                                                                     \
    X(owner, discovery, kubernetes)                                                                \
    X(owner, discovery, kuma)                                                                      \
    X(owner, discovery, lightsail)                                                                 \
    X(owner, discovery, linode)                                                                    \
    X(owner, discovery, marathon)                                                                  \
    X(owner, discovery, msk)                                                                       \
    X(owner, discovery, nerve)                                                                     \
    X(owner, discovery, nomad)                                                                     \
    X(owner, discovery, openstack)                                                                 \
    X(owner, discovery, ovhcloud)                                                                  \
    X(owner, discovery, puppetdb)                                                                  \
    X(owner, discovery, rds)                                                                       \
    X(owner, discovery, scaleway)                                                                  \
    X(owner, discovery, serverset)                                                                 \
    X(owner, discovery, stackit)                                                                   \
    X(owner, discovery, triton)                                                                    \
    X(owner, discovery, uyuni)                                                                     \
    X(owner, discovery, vultr)                                                                     \
    X(owner, discovery, xds)
#define SCRAPE_UNSUPPORTED_PLACE(owner, discovery, name) SCRAPE_SD_##name,
enum { SCRAPE_UNSUPPORTED(SCRAPE_UNSUPPORTED_PLACE, , ) SCRAPE_SD_UNSUPPORTED };
#define SCRAPE_UNSUPPORTED_ROW(owner, discovery, name)                                             \
    CONFIG_VALUE(owner, discovery.unsupported[SCRAPE_SD_##name], #name "_sd_configs",              \
                 "Of a discovery that spanflame does not have."),

struct scrape_file_sd_config {
    struct config_texts files; /* the last part of a path may have "*" */
    const char *refresh_interval;
};
extern const struct config_field scrape_file_sd_fields[];
bool scrape_file_sd_check(const void *section, struct error *error);

struct scrape_http_sd_config {
    const char *url;
    const char *refresh_interval;
    struct scrape_http_config http;
};
extern const struct config_field scrape_http_sd_fields[];
bool scrape_http_sd_check(const void *section, struct error *error);

#define SCRAPE_FILE_REFRESH_NS ((uint64_t)300 * NS_PER_S)
#define SCRAPE_HTTP_REFRESH_NS ((uint64_t)60 * NS_PER_S)

/* Where targets come from. */
struct scrape_discovery_config {
    struct config_sections static_configs;  /* struct scrape_static_config */
    struct config_sections file_sd_configs; /* struct scrape_file_sd_config */
    struct config_sections http_sd_configs; /* struct scrape_http_sd_config */
    const struct config_value *unsupported[SCRAPE_SD_UNSUPPORTED];
};

/* The rows of a struct scrape_discovery_config, a field of owner; without a comma at the end. */
#define SCRAPE_DISCOVERY_ROWS(owner, discovery)                                                    \
    SCRAPE_UNSUPPORTED(SCRAPE_UNSUPPORTED_ROW, owner, discovery)                                   \
    CONFIG_SECTIONS(owner, discovery.file_sd_configs, struct scrape_file_sd_config,                \
                    "file_sd_configs", scrape_file_sd_fields, scrape_file_sd_check,                \
                    "Targets in files of JSON or YAML."),                                          \
        CONFIG_SECTIONS(owner, discovery.http_sd_configs, struct scrape_http_sd_config,            \
                        "http_sd_configs", scrape_http_sd_fields, scrape_http_sd_check,            \
                        "Targets that servers list, in JSON."),                                    \
        CONFIG_SECTIONS(owner, discovery.static_configs, struct scrape_static_config,              \
                        "static_configs", scrape_static_fields, NULL, "Targets.")

/* has_rules: relabel_configs may still make addresses of what is none. */
bool scrape_discovery_check(const struct scrape_discovery_config *discovery, bool has_rules,
                            struct error *error);

/* Parameters of a URL: a map of lists. */
bool scrape_params_check(const struct config_value *params, struct error *error);

/* Whether the rules, a list of struct scrape_relabel_config, can be made. */
bool scrape_rules_check(const char *key, const struct config_sections *sections,
                        enum relabel_names names, struct error *error);
/* The rules; *ret_rules is NULL without any. False: error has the reason. */
bool scrape_rules_create(const char *key, const struct config_sections *sections,
                         enum relabel_names names, struct relabel_rules **ret_rules,
                         struct error *error);

/* Relative paths of files become those below the directory; the texts are the arena's. */
void scrape_http_set_directory(struct scrape_http_config *http, const char *directory,
                               struct arena *arena);
void scrape_discovery_set_directory(struct scrape_discovery_config *discovery,
                                    const char *directory, struct arena *arena);

/* Unset (""), or 0: fallback. False: error has the reason, at key. */
bool scrape_duration_take(const char *key, const char *text, uint64_t fallback_ns, uint64_t *ret_ns,
                          struct error *error);
