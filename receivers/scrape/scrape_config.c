/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables and rules of what scrapes. Constants and pure functions. */
#include "receivers/scrape/scrape_config.h"

#include "receivers/scrape/scrape_duration.h"
#include "src/base/arena.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/net/syntax/http_url.h"

#include <stdio.h>
#include <string.h>

/* Tables */

static const char *const tls_versions[] = {"", "TLS10", "TLS11", "TLS12", "TLS13", NULL};

const char *scrape_tls_version(int index)
{
    static const char *const versions[] = {"", "1.0", "1.1", "1.2", "1.3"};
    return versions[index];
}

const struct config_field scrape_static_fields[] = {
    CONFIG_TEXTS(struct scrape_static_config, targets, "targets", NULL, "Each is host:port."),
    CONFIG_PAIRS(struct scrape_static_config, labels, "labels", "Labels of their series."),
    CONFIG_END,
};

#define DEFAULT_REGEX "(.*)"
#define OWNER         struct scrape_relabel_config
const struct config_field scrape_relabel_fields[] = {
    CONFIG_TEXTS(OWNER, source_labels, "source_labels", NULL,
                 "Labels whose values, joined, the regex is matched against."),
    CONFIG_TEXT(OWNER, separator, "separator", ";", "Between those values."),
    CONFIG_TEXT(OWNER, regex, "regex", DEFAULT_REGEX, "Matches the whole value."),
    CONFIG_COUNT(OWNER, modulus, "modulus", "0", 0, INT64_MAX, "Of action hashmod."),
    CONFIG_TEXT(OWNER, target_label, "target_label", "", "The label that is written."),
    CONFIG_TEXT(OWNER, replacement, "replacement", "$1",
                "What is written; in this file a dollar is written twice: $$1."),
    CONFIG_TEXT(OWNER, action, "action", "replace",
                "replace, keep, drop, keepequal, dropequal, hashmod, labelmap, labeldrop, "
                "labelkeep, lowercase or uppercase."),
    CONFIG_END,
};
#undef OWNER

const struct config_field scrape_basic_auth_fields[] = {
    CONFIG_TEXT(struct scrape_basic_auth_config, username, "username", "", "User."),
    CONFIG_TEXT(struct scrape_basic_auth_config, username_file, "username_file", "",
                "File with the user."),
    CONFIG_SECRET(struct scrape_basic_auth_config, password, "password", "Password."),
    CONFIG_TEXT(struct scrape_basic_auth_config, password_file, "password_file", "",
                "File with the password."),
    CONFIG_END,
};

const struct config_field scrape_authorization_fields[] = {
    CONFIG_TEXT(struct scrape_authorization_config, type, "type", "Bearer",
                "What precedes the credentials."),
    CONFIG_SECRET(struct scrape_authorization_config, credentials, "credentials", "Credentials."),
    CONFIG_TEXT(struct scrape_authorization_config, credentials_file, "credentials_file", "",
                "File with the credentials."),
    CONFIG_END,
};

#define OWNER struct scrape_tls_config
const struct config_field scrape_tls_fields[] = {
    CONFIG_TEXT(OWNER, ca_file, "ca_file", "", "Certificates of authorities."),
    CONFIG_TEXT(OWNER, ca_pem, "ca", "", "The same, as text."),
    CONFIG_TEXT(OWNER, cert_file, "cert_file", "", "Our certificate."),
    CONFIG_TEXT(OWNER, cert_pem, "cert", "", "The same, as text."),
    CONFIG_TEXT(OWNER, key_file, "key_file", "", "Its key."),
    CONFIG_SECRET(OWNER, key_pem, "key", "The same, as text."),
    CONFIG_TEXT(OWNER, server_name, "server_name", "", "Name that the target's certificate has."),
    CONFIG_BOOL(OWNER, insecure_skip_verify, "insecure_skip_verify", "false",
                "Accept any certificate."),
    CONFIG_CHOICE(OWNER, min_version, "min_version", "", tls_versions, "Lowest version of TLS."),
    CONFIG_CHOICE(OWNER, max_version, "max_version", "", tls_versions, "Highest version of TLS."),
    CONFIG_END,
};
#undef OWNER

const struct config_field scrape_file_sd_fields[] = {
    CONFIG_TEXTS(struct scrape_file_sd_config, files, "files", NULL,
                 "Paths that end in .json, .yml or .yaml; the last part may have a *. Required."),
    CONFIG_TEXT(struct scrape_file_sd_config, refresh_interval, "refresh_interval", "",
                "Time after which files are read again, should a change have been missed. Default "
                "5m."),
    CONFIG_END,
};

const struct config_field scrape_http_sd_fields[] = {
    CONFIG_TEXT(struct scrape_http_sd_config, url, "url", "",
                "Where the list is, as http://host:port/path. Required."),
    CONFIG_TEXT(struct scrape_http_sd_config, refresh_interval, "refresh_interval", "",
                "Time between requests, and for each. Default 1m."),
    SCRAPE_HTTP_ROWS(struct scrape_http_sd_config, http),
    CONFIG_END,
};

/* Rules */

/* As Prometheus's pattern for paths: * only in the last part, and a known ending. */
static bool is_targets_path(const char *path)
{
    static const char *const endings[] = {".json", ".yml", ".yaml", ".JSON", ".YML", ".YAML"};
    const char *star = strchr(path, '*');
    size_t size = strlen(path);
    if (star != NULL && strchr(star, '/') != NULL)
        return false;
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t ending = strlen(endings[i]);
        if (size >= ending && strcmp(path + size - ending, endings[i]) == 0)
            return true;
    }
    return false;
}

bool scrape_file_sd_check(const void *section, struct error *error)
{
    const struct scrape_file_sd_config *config = section;
    uint64_t interval_ns;
    if (config->files.count == 0) {
        error_set(error, "at least one path is needed");
        return error_at(error, "files");
    }
    for (size_t i = 0; i < config->files.count; i++)
        if (!is_targets_path(config->files.texts[i])) {
            error_set(error,
                      "\"%s\" is no path of such a file: it ends in .json, .yml or .yaml, and only "
                      "its last part may have a *",
                      config->files.texts[i]);
            error_at_index(error, i);
            return error_at(error, "files");
        }
    return scrape_duration_take("refresh_interval", config->refresh_interval, 0, &interval_ns,
                                error);
}

bool scrape_http_sd_check(const void *section, struct error *error)
{
    const struct scrape_http_sd_config *config = section;
    struct http_url url;
    uint64_t interval_ns;
    if (!http_url_parse(config->url, &url, error)) {
        error_prefix(error, "the list of targets needs a URL, http://host:port/path");
        return error_at(error, "url");
    }
    http_url_clear(&url);
    return scrape_duration_take("refresh_interval", config->refresh_interval, 0, &interval_ns,
                                error) &&
           scrape_http_check(&config->http, error);
}

/* Free with mem_free. */
static struct relabel_config *relabel_configs(const struct config_sections *sections)
{
    const struct scrape_relabel_config *from = sections->items;
    struct relabel_config *configs = mem_zalloc((sections->count + 1) * sizeof(*configs));
    for (size_t i = 0; i < sections->count; i++) {
        configs[i] = (struct relabel_config){
            .source_labels = from[i].source_labels.texts,
            .source_labels_count = from[i].source_labels.count,
            .separator = from[i].separator,
            .regex = strcmp(from[i].regex, DEFAULT_REGEX) != 0 ? from[i].regex : NULL,
            .modulus = from[i].modulus,
            .target_label = from[i].target_label,
            .replacement = from[i].replacement,
            .action = from[i].action,
        };
    }
    return configs;
}

bool scrape_rules_check(const char *key, const struct config_sections *sections,
                        enum relabel_names names, struct error *error)
{
    struct relabel_config *configs = relabel_configs(sections);
    bool is_valid = relabel_configs_check(configs, sections->count, names, error);
    mem_free(configs);
    return is_valid || error_at(error, key);
}

bool scrape_rules_create(const char *key, const struct config_sections *sections,
                         enum relabel_names names, struct relabel_rules **ret_rules,
                         struct error *error)
{
    *ret_rules = NULL;
    if (sections->count == 0)
        return true;
    struct relabel_config *configs = relabel_configs(sections);
    *ret_rules = relabel_rules_create(configs, sections->count, names, error);
    mem_free(configs);
    return *ret_rules != NULL || error_at(error, key);
}

static bool check_targets(const struct scrape_discovery_config *discovery, bool has_rules,
                          struct error *error)
{
    const struct scrape_static_config *sets = discovery->static_configs.items;
    for (size_t i = 0; i < discovery->static_configs.count; i++)
        for (size_t k = 0; k < sets[i].targets.count; k++) {
            const char *target = sets[i].targets.texts[k];
            if (has_rules || strchr(target, '/') == NULL)
                continue;
            error_set(error,
                      "\"%s\" is no address: write host:port; scheme and metrics_path are keys of "
                      "their own",
                      target);
            error_at_index(error, k);
            error_at(error, "targets");
            error_at_index(error, i);
            return error_at(error, "static_configs");
        }
    return true;
}

static bool refuse(const char *key, struct error *error)
{
    error_set(error, "spanflame does not discover targets this way: list them in static_configs, "
                     "or let something else write them to files for file_sd_configs or serve them "
                     "for http_sd_configs");
    error_unsupported(error);
    return error_at(error, key);
}

bool scrape_discovery_check(const struct scrape_discovery_config *discovery, bool has_rules,
                            struct error *error)
{
#define KEY(owner, unused, name) #name "_sd_configs",
    static const char *const keys[] = {SCRAPE_UNSUPPORTED(KEY, , )};
#undef KEY
    for (size_t i = 0; i < SCRAPE_SD_UNSUPPORTED; i++)
        if (discovery->unsupported[i] != NULL)
            return refuse(keys[i], error);
    return check_targets(discovery, has_rules, error);
}

bool scrape_params_check(const struct config_value *params, struct error *error)
{
    if (params == NULL || params->type == CONFIG_VALUE_NULL)
        return true;
    bool is_valid = params->type == CONFIG_VALUE_MAP;
    for (size_t i = 0; is_valid && i < params->count; i++) {
        const struct config_value *list = &params->items[i];
        is_valid = list->type == CONFIG_VALUE_LIST;
        for (size_t k = 0; is_valid && k < list->count; k++)
            is_valid = list->items[k].type == CONFIG_VALUE_TEXT;
    }
    if (is_valid)
        return true;
    error_set(error, "each parameter has a list of strings: module: [http_2xx]");
    return error_at(error, "params");
}

bool scrape_http_check(const struct scrape_http_config *http, struct error *error)
{
    bool has_token = http->bearer_token[0] != '\0' || http->bearer_token_file[0] != '\0';
    if (http->oauth2 != NULL) {
        error_set(error, "oauth2 is not supported for scrapes: use authorization with a "
                         "credentials_file that something else keeps current");
        error_unsupported(error);
        return error_at(error, "oauth2");
    }
    if (http->has_basic_auth + http->has_authorization + has_token <= 1)
        return true;
    error_set(error, "at most one of basic_auth, authorization and bearer_token can be set");
    return error_at(error, http->has_basic_auth ? "basic_auth" : "authorization");
}

bool scrape_duration_take(const char *key, const char *text, uint64_t fallback_ns, uint64_t *ret_ns,
                          struct error *error)
{
    *ret_ns = fallback_ns;
    uint64_t duration_ns;
    if (text[0] == '\0')
        return true;
    if (!scrape_duration_parse(text, &duration_ns)) {
        error_set(error, "\"%s\" is no duration: write it as 15s, 1m30s or 500ms", text);
        return error_at(error, key);
    }
    if (duration_ns != 0)
        *ret_ns = duration_ns;
    return true;
}

/* Directories */

static const char *below(const char *directory, const char *path, struct arena *arena)
{
    if (path == NULL || path[0] == '\0' || path[0] == '/')
        return path;
    size_t room = strlen(directory) + 1 + strlen(path) + 1;
    char *joined = arena_alloc(arena, room);
    snprintf(joined, room, "%s/%s", directory, path);
    return joined;
}

void scrape_http_set_directory(struct scrape_http_config *http, const char *directory,
                               struct arena *arena)
{
    const char **const paths[] = {
        &http->basic_auth.username_file,
        &http->basic_auth.password_file,
        &http->authorization.credentials_file,
        &http->bearer_token_file,
        &http->tls.ca_file,
        &http->tls.cert_file,
        &http->tls.key_file,
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        *paths[i] = below(directory, *paths[i], arena);
}

void scrape_discovery_set_directory(struct scrape_discovery_config *discovery,
                                    const char *directory, struct arena *arena)
{
    struct scrape_file_sd_config *files = discovery->file_sd_configs.items;
    struct scrape_http_sd_config *servers = discovery->http_sd_configs.items;
    for (size_t i = 0; i < discovery->file_sd_configs.count; i++) {
        size_t count = files[i].files.count;
        const char **paths = (const char **)arena_alloc(arena, (count + 1) * sizeof(const char *));
        for (size_t k = 0; k < count; k++)
            paths[k] = below(directory, files[i].files.texts[k], arena);
        files[i].files.texts = paths;
    }
    for (size_t i = 0; i < discovery->http_sd_configs.count; i++)
        scrape_http_set_directory(&servers[i].http, directory, arena);
}
