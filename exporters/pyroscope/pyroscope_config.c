/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the pyroscope exporter. Constants and pure functions; the main thread runs them. */
#include "exporters/pyroscope/pyroscope_config.h"

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/net/syntax/http_url.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

static const char *const modes[] = {"push", "ingest", "otlp", NULL};
static const char *const compressions[] = {"gzip", "none", NULL};
static const char *const switches[] = {"on", "off", NULL};
static const char *const versions[] = {"2.1", "2.0", "1", NULL};

static const char allowed_by_default[] =
    "service.namespace,service.version,deployment.environment,deployment.environment.name,"
    "host.name,container.name,k8s.cluster.name,k8s.namespace.name,k8s.node.name,k8s.pod.name,"
    "k8s.container.name,k8s.deployment.name,k8s.statefulset.name,k8s.daemonset.name,cloud.region,"
    "trace_id,root_span_id";

static const char dropped_by_default[] =
    "thread.id,thread.name,cpu.logical_number,process.pid,process.executable.path,"
    "process.command_line,process.environment_variables";

static const struct config_field auth_fields[] = {
    CONFIG_TEXT(struct pyroscope_auth_config, username, "username", NULL,
                "User; the stack's number at Grafana Cloud."),
    CONFIG_SECRET(struct pyroscope_auth_config, password, "password", "Password or token."),
    CONFIG_END,
};

const struct config_field pyroscope_labels_fields[] = {
    CONFIG_TEXTS(struct pyroscope_labels_config, allow, "allow", allowed_by_default,
                 "Attributes of resource and scope that become labels of the series."),
    CONFIG_TEXTS(struct pyroscope_labels_config, drop, "drop", dropped_by_default,
                 "Attributes of samples that do not become labels. Each value of the others makes "
                 "a series of its own."),
    CONFIG_VALUE(struct pyroscope_labels_config, names, "names",
                 "Map of attributes to labels: other names than their own. They are allowed then."),
    CONFIG_VALUE(struct pyroscope_labels_config, add, "add", "Map of further labels and values."),
    CONFIG_BOOL(struct pyroscope_labels_config, dots_to_underscores, "dots_to_underscores", "true",
                "service.namespace becomes service_namespace, which selectors take unquoted."),
    CONFIG_COUNT(struct pyroscope_labels_config, max_names, "max_names", "30", 10, 100,
                 "Most labels of a series, with those of its samples; a third is kept for these."),
    CONFIG_COUNT(struct pyroscope_labels_config, max_value_bytes, "max_value_bytes", "2048", 32,
                 65535, "Longer values are cut."),
    CONFIG_END,
};

const struct config_field pyroscope_limits_fields[] = {
    CONFIG_COUNT(struct pyroscope_limits_config, max_samples, "max_samples", "16000", 1, INT32_MAX,
                 "Most samples of a profile; larger ones are sent in parts."),
    CONFIG_COUNT(
        struct pyroscope_limits_config, max_bytes, "max_bytes", "2097152", 131072, 1 << 30,
        "Most bytes of a profile, uncompressed, with 64 KiB for its labels; larger ones are "
        "sent in parts. The server's rate limiter never admits more than its burst."),
    CONFIG_COUNT(struct pyroscope_limits_config, max_stack_depth, "max_stack_depth", "1000", 1,
                 100000, "Deeper stacks lose their leaves."),
    CONFIG_DURATION(struct pyroscope_limits_config, max_age_ns, "max_age", "1h", 0, INT64_MAX,
                    "Older profiles are dropped, as the server would refuse them; 0: never."),
    CONFIG_DURATION(struct pyroscope_limits_config, max_future_ns, "max_future", "10m", 0,
                    INT64_MAX, "Profiles that are further in the future are dropped; 0: never."),
    CONFIG_DURATION(struct pyroscope_limits_config, max_future_ns, "max_ahead", "10m", 0, INT64_MAX,
                    "The old name of max_future."),
    CONFIG_END,
};

const struct config_field pyroscope_fields[] = {
    CONFIG_TEXT(struct pyroscope_config, endpoint, "endpoint", NULL,
                "Base URL of the server, http://pyroscope:4040."),
    CONFIG_CHOICE(
        struct pyroscope_config, mode, "mode", "push", modes,
        "push: the Push API, one request for each series. ingest: the older /ingest, the "
        "same way; the server then makes names of its own for types with \"cpu\" in them, "
        "off_cpu among these. otlp: OTLP as it is. JFR files go to /ingest in any mode."),
    CONFIG_CHOICE(struct pyroscope_config, compression, "compression", "gzip", compressions,
                  "gzip or none."),
    CONFIG_CHOICE(struct pyroscope_config, trace_id, "trace_id", "on", switches,
                  "Whether samples carry their trace id as well as their span id; off for servers "
                  "before 2.1, where each trace would be a series."),
    CONFIG_CHOICE(struct pyroscope_config, min_server_version, "min_server_version", "2.1",
                  versions,
                  "The oldest version of the server that must take what is sent: 2.1 and later; "
                  "2.0, for which samples have no trace id; or 1, for which label names also have "
                  "only letters, digits and underscores."),
    CONFIG_CHOICE(struct pyroscope_config, min_server_version, "min_pyroscope", "2.1", versions,
                  "The old name of min_server_version."),
    CONFIG_TEXT(struct pyroscope_config, tenant, "tenant", NULL,
                "Tenant of a server with several, sent as X-Scope-OrgID."),
    CONFIG_BOOL(
        struct pyroscope_config, forward_tenant, "forward_tenant", "true",
        "If tenant is not set: send on for the same tenant what came with an X-Scope-OrgID. "
        "The pyroscope receiver always keeps it, the otlp receiver with include_metadata; "
        "profiles of different tenants are never merged."),
    CONFIG_HEADERS(struct pyroscope_config, headers, "headers",
                   "Headers of every request; they win over ours."),
    CONFIG_OPTIONAL(struct pyroscope_config, basic_auth, struct pyroscope_auth_config,
                    has_basic_auth, CONFIG_NULL_IS_OFF, "basic_auth", auth_fields, NULL,
                    "User and password."),
    CONFIG_SECRET(struct pyroscope_config, bearer_token, "bearer_token",
                  "Token, sent as Authorization: Bearer."),
    EXPORTER_AUTH_ROW(struct pyroscope_config, auth),
    CONFIG_DURATION(struct pyroscope_config, timeout_ns, "timeout", "30s", 0, INT64_MAX,
                    "Limit of one request, from connecting to the end of the response; 0: none."),
    CONFIG_COUNT(
        struct pyroscope_config, concurrency, "concurrency", "16", 1, 256,
        "Concurrent requests for each batch. A server responds after it has written, which "
        "takes time."),
    TLS_CLIENT_ROW(struct pyroscope_config, tls),
    CONFIG_TEXT(struct pyroscope_config, proxy_url, "proxy_url", NULL,
                "Proxy for every request; HTTP_PROXY, HTTPS_PROXY and NO_PROXY when unset."),
    CONFIG_SECTION(struct pyroscope_config, labels, struct pyroscope_labels_config, "labels",
                   pyroscope_labels_fields, NULL, "Which attributes become labels."),
    CONFIG_SECTION(struct pyroscope_config, limits, struct pyroscope_limits_config, "limits",
                   pyroscope_limits_fields, NULL,
                   "What the server accepts; its defaults are ours."),
    SENDING_QUEUE_ROW(struct pyroscope_config, CONFIG_DEFAULT_ON),
    RETRY_ROW(struct pyroscope_config),
    CONFIG_END,
};

/* names: the values are labels; add: the keys are. */
static bool check_map(const struct config_value *map, const char *key, bool values_are_labels,
                      struct error *error)
{
    if (map == NULL || map->type == CONFIG_VALUE_NULL)
        return true;
    if (map->type != CONFIG_VALUE_MAP)
        return error_set(error, "labels::%s must be a map", key) || error_at(error, key) ||
               error_at(error, "labels");
    for (size_t i = 0; i < map->count; i++) {
        if (map->items[i].type != CONFIG_VALUE_TEXT || map->items[i].text[0] == '\0')
            return error_set(error, "labels::%s::%s must be a string; put it in quotes", key,
                             map->keys[i]) ||
                   error_at_index(error, i) || error_at(error, key) || error_at(error, "labels");
        const char *label = values_are_labels ? map->items[i].text : map->keys[i];
        if (label[0] == '\0' || strncmp(label, "__", 2) == 0)
            return error_set(error,
                             "labels::%s: \"%s\" is not a valid label name: it is empty or begins "
                             "with \"__\", which is reserved for the server",
                             key, label) ||
                   error_at_index(error, i) || error_at(error, key) || error_at(error, "labels");
        if (strcmp(label, "service_name") == 0)
            return error_set(error,
                             "labels::%s: service_name is set from the resource's "
                             "service.name; use the resource processor to change that",
                             key) ||
                   error_at_index(error, i) || error_at(error, key) || error_at(error, "labels");
    }
    return true;
}

bool pyroscope_labels_check(const void *section, struct error *error)
{
    const struct pyroscope_labels_config *labels = section;
    return check_map(labels->names, "names", true, error) &&
           check_map(labels->add, "add", false, error);
}

bool pyroscope_config_check(const void *section, struct error *error)
{
    const struct pyroscope_config *config = section;
    const struct pyroscope_labels_config *labels = &config->labels;
    struct http_url url;
    if (config->endpoint[0] == '\0')
        return error_set(error, "endpoint must be specified, as in http://pyroscope:4040") ||
               error_at(error, "endpoint");
    if (!http_url_parse(config->endpoint, &url, error))
        return error_prefix(error, "endpoint must be a valid URL") || error_at(error, "endpoint");
    http_url_clear(&url);
    /* At most one kind of credentials, and each of them well-formed. */
    bool has_bearer = config->bearer_token[0] != '\0';
    bool has_header = false;
    bool has_tenant = false;
    for (size_t i = 0; i < config->headers.count; i++) {
        has_header |= strcasecmp(config->headers.pairs[i].key, "Authorization") == 0;
        has_tenant |= strcasecmp(config->headers.pairs[i].key, "X-Scope-OrgID") == 0;
    }
    bool has_authenticator = exporter_auth_is_on(&config->auth);
    if (config->has_basic_auth + has_bearer + has_header + has_authenticator > 1)
        return error_set(error, "basic_auth, bearer_token, auth and an Authorization header "
                                "exclude each other; keep one") ||
               error_at(error, config->has_basic_auth ? "basic_auth"
                               : has_bearer           ? "bearer_token"
                                                      : "auth");
    if (config->has_basic_auth && config->basic_auth.username[0] == '\0')
        return error_set(error, "basic_auth needs a username") || error_at(error, "username") ||
               error_at(error, "basic_auth");
    if (config->has_basic_auth && strchr(config->basic_auth.username, ':') != NULL)
        return error_set(error, "the username must not contain a colon") ||
               error_at(error, "username") || error_at(error, "basic_auth");
    bool is_bearer_broken = strpbrk(config->bearer_token, "\r\n") != NULL;
    if (is_bearer_broken || strpbrk(config->tenant, "\r\n") != NULL)
        return error_set(error, "bearer_token and tenant must not contain line breaks") ||
               error_at(error, is_bearer_broken ? "bearer_token" : "tenant");
    if (config->tenant[0] != '\0' && has_tenant)
        return error_set(error,
                         "tenant and an X-Scope-OrgID header exclude each other; keep one") ||
               error_at(error, "tenant");
    if (!pyroscope_labels_check(labels, error))
        return false;
    if (config->mode == PYROSCOPE_OTLP && (labels->add != NULL || labels->names != NULL))
        return error_set(error,
                         "labels::add and labels::names need mode: push or ingest; with otlp the "
                         "server makes the labels") ||
               error_at(error, "mode");
    return true;
}

const char *pyroscope_config_find(const struct config_value *map, const char *key, size_t size)
{
    if (map == NULL || map->type != CONFIG_VALUE_MAP)
        return NULL;
    for (size_t i = 0; i < map->count; i++)
        if (strlen(map->keys[i]) == size && memcmp(map->keys[i], key, size) == 0)
            return map->items[i].text;
    return NULL;
}
