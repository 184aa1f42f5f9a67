/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables and rules of the prometheus receiver. Constants and pure functions; the main thread
 * runs them while it loads the configuration. */
#include "receivers/prometheus/prometheus_config.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_INTERVAL_NS ((uint64_t)60 * NS_PER_S)
#define DEFAULT_TIMEOUT_NS  ((uint64_t)10 * NS_PER_S)

/* Durations (prometheus/common, model.ParseDuration) */

static const struct {
    const char *unit;
    uint64_t ms;
    bool is_exact; /* printed only when nothing is left */
} duration_units[] = {
    {"y", (uint64_t)365 * 24 * 3600 * 1000, true},
    {"w", (uint64_t)7 * 24 * 3600 * 1000, true},
    {"d", (uint64_t)24 * 3600 * 1000, false},
    {"h", (uint64_t)3600 * 1000, false},
    {"m", (uint64_t)60 * 1000, false},
    {"s", 1000, false},
    {"ms", 1, false},
};
enum { DURATION_UNITS = sizeof(duration_units) / sizeof(duration_units[0]) };

bool scrape_duration_parse(const char *text, uint64_t *ret_ns)
{
    *ret_ns = 0;
    if (strcmp(text, "0") == 0)
        return true;
    size_t unit = 0;
    uint64_t ms = 0;
    const char *at = text;
    while (*at != '\0') {
        size_t digits = strspn(at, "0123456789");
        size_t letters = strspn(at + digits, "abcdefghijklmnopqrstuvwxyz");
        if (digits == 0 || digits > 18 || letters == 0)
            return false;
        while (unit < DURATION_UNITS &&
               (strlen(duration_units[unit].unit) != letters ||
                strncmp(duration_units[unit].unit, at + digits, letters) != 0))
            unit++;
        uint64_t part;
        if (unit == DURATION_UNITS ||
            __builtin_mul_overflow(strtoull(at, NULL, 10), duration_units[unit].ms, &part) ||
            __builtin_add_overflow(ms, part, &ms))
            return false;
        unit++; /* each unit once, in descending order */
        at += digits + letters;
    }
    if (at == text || ms > INT64_MAX / NS_PER_MS)
        return false;
    *ret_ns = ms * NS_PER_MS;
    return true;
}

void scrape_duration_print(uint64_t duration_ns, char text[SCRAPE_DURATION_BYTES_MAX])
{
    uint64_t ms = duration_ns / NS_PER_MS;
    size_t size = 0;
    snprintf(text, SCRAPE_DURATION_BYTES_MAX, "0s");
    for (size_t i = 0; i < DURATION_UNITS; i++) {
        uint64_t unit = duration_units[i].ms;
        if (ms < unit || (duration_units[i].is_exact && ms % unit != 0))
            continue;
        size += (size_t)snprintf(text + size, SCRAPE_DURATION_BYTES_MAX - size, "%llu%s",
                                 (unsigned long long)(ms / unit), duration_units[i].unit);
        ms %= unit;
    }
}

/* Tables */

static const char *const schemes[] = {"http", "https", NULL};
static const char *const name_validations[] = {"", "utf8", "legacy", NULL};
static const char *const name_escapings[] = {"",     "allow-utf-8", "underscores",
                                             "dots", "values",      NULL};
const char *const scrape_tls_versions[] = {"", "TLS10", "TLS11", "TLS12", "TLS13", NULL};

const char *scrape_tls_version(int index)
{
    static const char *const versions[] = {"", "1.0", "1.1", "1.2", "1.3"};
    return versions[index];
}

static const struct config_field static_fields[] = {
    CONFIG_TEXTS(struct scrape_static_config, targets, "targets", NULL, "Each is host:port."),
    CONFIG_PAIRS(struct scrape_static_config, labels, "labels", "Labels of their series."),
    CONFIG_END,
};

#define DEFAULT_REGEX "(.*)"
#define OWNER         struct scrape_relabel_config
static const struct config_field relabel_fields[] = {
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

static const struct config_field basic_auth_fields[] = {
    CONFIG_TEXT(struct scrape_basic_auth_config, username, "username", "", "User."),
    CONFIG_TEXT(struct scrape_basic_auth_config, username_file, "username_file", "",
                "File with the user."),
    CONFIG_SECRET(struct scrape_basic_auth_config, password, "password", "Password."),
    CONFIG_TEXT(struct scrape_basic_auth_config, password_file, "password_file", "",
                "File with the password."),
    CONFIG_END,
};

static const struct config_field authorization_fields[] = {
    CONFIG_TEXT(struct scrape_authorization_config, type, "type", "Bearer",
                "What precedes the credentials."),
    CONFIG_SECRET(struct scrape_authorization_config, credentials, "credentials", "Credentials."),
    CONFIG_TEXT(struct scrape_authorization_config, credentials_file, "credentials_file", "",
                "File with the credentials."),
    CONFIG_END,
};

#define OWNER struct scrape_tls_config
static const struct config_field tls_fields[] = {
    CONFIG_TEXT(OWNER, ca_file, "ca_file", "", "Certificates of authorities."),
    CONFIG_TEXT(OWNER, ca_pem, "ca", "", "The same, as text."),
    CONFIG_TEXT(OWNER, cert_file, "cert_file", "", "Our certificate."),
    CONFIG_TEXT(OWNER, cert_pem, "cert", "", "The same, as text."),
    CONFIG_TEXT(OWNER, key_file, "key_file", "", "Its key."),
    CONFIG_SECRET(OWNER, key_pem, "key", "The same, as text."),
    CONFIG_TEXT(OWNER, server_name, "server_name", "", "Name that the target's certificate has."),
    CONFIG_BOOL(OWNER, insecure_skip_verify, "insecure_skip_verify", "false",
                "Accept any certificate."),
    CONFIG_CHOICE(OWNER, min_version, "min_version", "", scrape_tls_versions,
                  "Lowest version of TLS."),
    CONFIG_CHOICE(OWNER, max_version, "max_version", "", scrape_tls_versions,
                  "Highest version of TLS."),
    CONFIG_END,
};
#undef OWNER

/* The keys that global and each of scrape_configs have. */
#define LIMITS_ROWS(owner, limits)                                                                 \
    CONFIG_TEXT(owner, limits.interval, "scrape_interval", "",                                     \
                "Time between scrapes. Default 1m."),                                              \
        CONFIG_TEXT(owner, limits.timeout, "scrape_timeout", "",                                   \
                    "Time for one scrape. Default 10s, and not more than the interval."),          \
        CONFIG_TEXTS(owner, limits.protocols, "scrape_protocols", NULL,                            \
                     "Formats to ask for, the best first: OpenMetricsText1.0.0, "                  \
                     "OpenMetricsText0.0.1, PrometheusText1.0.0, PrometheusText0.0.4."),           \
        CONFIG_BYTES(owner, limits.body_bytes_max, "body_size_limit", "0", 0, INT64_MAX,           \
                     "Larger responses fail. 0: no limit but the memory budget."),                 \
        CONFIG_COUNT(owner, limits.samples_max, "sample_limit", "0", 0, INT64_MAX,                 \
                     "A scrape with more samples fails. 0: no limit."),                            \
        CONFIG_COUNT(owner, limits.targets_max, "target_limit", "0", 0, INT64_MAX,                 \
                     "With more targets than this all scrapes of the job fail. 0: no limit."),     \
        CONFIG_COUNT(owner, limits.labels_max, "label_limit", "0", 0, INT64_MAX,                   \
                     "A scrape of a sample with more labels fails. 0: no limit."),                 \
        CONFIG_COUNT(owner, limits.label_name_bytes_max, "label_name_length_limit", "0", 0,        \
                     INT64_MAX, "The same for longer names of labels."),                           \
        CONFIG_COUNT(owner, limits.label_value_bytes_max, "label_value_length_limit", "0", 0,      \
                     INT64_MAX, "The same for longer values of labels."),                          \
        CONFIG_CHOICE(owner, limits.name_validation, "metric_name_validation_scheme", "",          \
                      name_validations, "Names that samples may have: utf8 (default) or legacy."), \
        CONFIG_CHOICE(owner, limits.name_escaping, "metric_name_escaping_scheme", "",              \
                      name_escapings, "How targets are asked to escape names."),                   \
        CONFIG_BOOL(owner, limits.extra_scrape_metrics, "extra_scrape_metrics", "false",           \
                    "Report limits and the size of each scrape, too."),                            \
        CONFIG_IGNORED("keep_dropped_targets", "Dropped targets are not kept."),                   \
        CONFIG_IGNORED_BOOL("scrape_native_histograms",                                            \
                            "Native histograms are not scraped; classic ones are."),               \
        CONFIG_IGNORED_BOOL("convert_classic_histograms_to_nhcb",                                  \
                            "Classic histograms become histograms of OTLP in any case."),          \
        CONFIG_IGNORED_BOOL("always_scrape_classic_histograms", "They are."),                      \
        CONFIG_IGNORED_TEXT("scrape_failure_log_file", "Failures are in the log.")

#define OWNER struct scrape_global_config
static const struct config_field global_fields[] = {
    LIMITS_ROWS(OWNER, limits),
    CONFIG_PAIRS(OWNER, external_labels, "external_labels", "Labels of every series."),
    CONFIG_IGNORED_TEXT("evaluation_interval", "There are no rules."),
    CONFIG_IGNORED_TEXT("rule_query_offset", "There are no rules."),
    CONFIG_IGNORED_TEXT("query_log_file", "There are no queries."),
    CONFIG_END,
};
#undef OWNER

#define DISCOVERY(place, name)                                                                     \
    CONFIG_VALUE(struct scrape_job_config, unsupported[place], name,                               \
                 "Of a discovery that "                                                            \
                 "spanflame does not have.")
#define OWNER struct scrape_job_config
static const struct config_field job_fields[] = {
    CONFIG_TEXT(OWNER, job_name, "job_name", "", "The label job of its series. Required."),
    LIMITS_ROWS(OWNER, limits),
    CONFIG_BOOL(OWNER, honor_labels, "honor_labels", "false",
                "Labels of the target win over ours; otherwise they become exported_…"),
    CONFIG_BOOL(OWNER, honor_timestamps, "honor_timestamps", "true",
                "Take the times that the target gives."),
    CONFIG_BOOL(OWNER, track_timestamps_staleness, "track_timestamps_staleness", "false",
                "Mark series with times of their own when they end."),
    CONFIG_VALUE(OWNER, params, "params", "Parameters of the URL: a map of lists."),
    CONFIG_TEXT(OWNER, fallback_protocol, "fallback_scrape_protocol", "",
                "Format of responses whose type is missing or unknown. Default "
                "PrometheusText0.0.4."),
    CONFIG_TEXT(OWNER, metrics_path, "metrics_path", "/metrics", "Path of the URL."),
    CONFIG_CHOICE(OWNER, scheme, "scheme", "http", schemes, "http or https."),
    CONFIG_BOOL(OWNER, enable_compression, "enable_compression", "true", "Ask for gzip."),
    CONFIG_OPTIONAL(OWNER, basic_auth, struct scrape_basic_auth_config, has_basic_auth,
                    CONFIG_NULL_IS_OFF, "basic_auth", basic_auth_fields, NULL,
                    "User and password."),
    CONFIG_OPTIONAL(OWNER, authorization, struct scrape_authorization_config, has_authorization,
                    CONFIG_NULL_IS_OFF, "authorization", authorization_fields, NULL,
                    "The header Authorization."),
    CONFIG_SECRET(OWNER, bearer_token, "bearer_token", "The same as authorization::credentials."),
    CONFIG_TEXT(OWNER, bearer_token_file, "bearer_token_file", "",
                "The same as authorization::credentials_file."),
    CONFIG_SECTION(OWNER, tls, struct scrape_tls_config, "tls_config", tls_fields, NULL,
                   "TLS towards targets."),
    CONFIG_TEXT(OWNER, proxy_url, "proxy_url", "", "Proxy; none by default."),
    CONFIG_IGNORED_TEXT("no_proxy", "Set NO_PROXY in the environment."),
    CONFIG_IGNORED_BOOL("proxy_from_environment", "It is, without proxy_url."),
    CONFIG_IGNORED("proxy_connect_header", "Not sent."),
    CONFIG_BOOL(OWNER, follow_redirects, "follow_redirects", "true", "Follow redirects."),
    CONFIG_BOOL(OWNER, enable_http2, "enable_http2", "true", "Use HTTP/2 over TLS."),
    CONFIG_VALUE(OWNER, http_headers, "http_headers",
                 "More headers: a map of {values: […], secrets: […]}."),
    CONFIG_VALUE(OWNER, oauth2, "oauth2", "Not supported."),
    CONFIG_SECTIONS(OWNER, relabel_configs, struct scrape_relabel_config, "relabel_configs",
                    relabel_fields, NULL, "Rules for the labels of targets."),
    CONFIG_SECTIONS(OWNER, metric_relabel_configs, struct scrape_relabel_config,
                    "metric_relabel_configs", relabel_fields, NULL,
                    "Rules for the labels of samples."),
    CONFIG_SECTIONS(OWNER, static_configs, struct scrape_static_config, "static_configs",
                    static_fields, NULL, "Targets."),
    CONFIG_IGNORED("native_histogram_bucket_limit", "Native histograms are not scraped."),
    CONFIG_IGNORED("native_histogram_min_bucket_factor", "Native histograms are not scraped."),
    DISCOVERY(0, "aws_sd_configs"),
    DISCOVERY(1, "azure_sd_configs"),
    DISCOVERY(2, "consul_sd_configs"),
    DISCOVERY(3, "digitalocean_sd_configs"),
    DISCOVERY(4, "dns_sd_configs"),
    DISCOVERY(5, "docker_sd_configs"),
    DISCOVERY(6, "dockerswarm_sd_configs"),
    DISCOVERY(7, "ec2_sd_configs"),
    DISCOVERY(8, "ecs_sd_configs"),
    DISCOVERY(9, "elasticache_sd_configs"),
    DISCOVERY(10, "eureka_sd_configs"),
    DISCOVERY(11, "gce_sd_configs"),
    DISCOVERY(12, "hetzner_sd_configs"),
    DISCOVERY(13, "http_sd_configs"),
    DISCOVERY(14, "ionos_sd_configs"),
    DISCOVERY(15, "kubernetes_sd_configs"),
    DISCOVERY(16, "kuma_sd_configs"),
    DISCOVERY(17, "lightsail_sd_configs"),
    DISCOVERY(18, "linode_sd_configs"),
    DISCOVERY(19, "marathon_sd_configs"),
    DISCOVERY(20, "msk_sd_configs"),
    DISCOVERY(21, "nerve_sd_configs"),
    DISCOVERY(22, "nomad_sd_configs"),
    DISCOVERY(23, "openstack_sd_configs"),
    DISCOVERY(24, "ovhcloud_sd_configs"),
    DISCOVERY(25, "puppetdb_sd_configs"),
    DISCOVERY(26, "rds_sd_configs"),
    DISCOVERY(27, "scaleway_sd_configs"),
    DISCOVERY(28, "serverset_sd_configs"),
    DISCOVERY(29, "stackit_sd_configs"),
    DISCOVERY(30, "triton_sd_configs"),
    DISCOVERY(31, "uyuni_sd_configs"),
    DISCOVERY(32, "vultr_sd_configs"),
    DISCOVERY(33, "xds_sd_configs"),
    DISCOVERY(34, "file_sd_configs"),
    CONFIG_END,
};
#undef OWNER

static bool job_check(const void *section, struct error *error);

#define OWNER struct prometheus_config
static const struct config_field config_fields[] = {
    CONFIG_SECTION(OWNER, global, struct scrape_global_config, "global", global_fields, NULL,
                   "Standards of scrape_configs."),
    CONFIG_SECTIONS(OWNER, scrape_configs, struct scrape_job_config, "scrape_configs", job_fields,
                    job_check, "What is scraped."),
    CONFIG_TEXTS(OWNER, scrape_config_files, "scrape_config_files", NULL, "Not supported."),
    CONFIG_TEXTS(OWNER, rule_files, "rule_files", NULL, "Not supported."),
    CONFIG_VALUE(OWNER, alerting, "alerting", "Not supported."),
    CONFIG_VALUE(OWNER, remote_write, "remote_write", "Not supported."),
    CONFIG_VALUE(OWNER, remote_read, "remote_read", "Not supported."),
    CONFIG_IGNORED_MAP("runtime", "Of Go's runtime."),
    CONFIG_IGNORED_MAP("storage", "Nothing is stored."),
    CONFIG_IGNORED_MAP("tracing", "Scrapes are not traced."),
    CONFIG_IGNORED_MAP("otlp", "Of Prometheus's own OTLP receiver."),
    CONFIG_END,
};
#undef OWNER

static const struct config_field api_server_fields[] = {
    CONFIG_BOOL(struct prometheus_api_server_config, enabled, "enabled", "false",
                "Not supported: zpages shows targets."),
    CONFIG_VALUE(struct prometheus_api_server_config, server_config, "server_config",
                 "Where it would listen."),
    CONFIG_END,
};

#define OWNER struct prometheus_receiver_config
const struct config_field prometheus_receiver_fields[] = {
    CONFIG_SECTION(OWNER, prometheus, struct prometheus_config, "config", config_fields, NULL,
                   "As in prometheus.yml."),
    CONFIG_BOOL(OWNER, trim_metric_suffixes, "trim_metric_suffixes", "false",
                "Take units and _total off the names of metrics."),
    CONFIG_BOOL(OWNER, scrape_on_shutdown, "scrape_on_shutdown", "false",
                "Scrape once more before the end."),
    CONFIG_IGNORED_BOOL("discovery_reload_on_startup", "Targets are known from the start."),
    CONFIG_DURATION(OWNER, initial_scrape_offset_ns, "initial_scrape_offset", "0", 0, INT64_MAX,
                    "Wait so long before the first scrapes."),
    CONFIG_VALUE(OWNER, target_allocator, "target_allocator", "Not supported."),
    CONFIG_SECTION(OWNER, api_server, struct prometheus_api_server_config, "api_server",
                   api_server_fields, NULL, "Prometheus's API."),
    CONFIG_END,
};
#undef OWNER

/* Rules */

static const char *const protocol_names[SCRAPE_PROTOCOLS] = {
    [SCRAPE_PROTOBUF] = "PrometheusProto",
    [SCRAPE_TEXT_0_0_4] = "PrometheusText0.0.4",
    [SCRAPE_TEXT_1_0_0] = "PrometheusText1.0.0",
    [SCRAPE_OPENMETRICS_0_0_1] = "OpenMetricsText0.0.1",
    [SCRAPE_OPENMETRICS_1_0_0] = "OpenMetricsText1.0.0",
};

static enum scrape_protocol protocol_of(const char *name)
{
    size_t i = 0;
    while (i < SCRAPE_PROTOCOLS && strcmp(protocol_names[i], name) != 0)
        i++;
    return (enum scrape_protocol)i;
}

static bool take_protocols(const struct config_texts *names, struct scrape_settings *settings,
                           struct error *error)
{
    static const enum scrape_protocol standard[] = {
        SCRAPE_OPENMETRICS_1_0_0, SCRAPE_OPENMETRICS_0_0_1, SCRAPE_TEXT_1_0_0, SCRAPE_TEXT_0_0_4};
    settings->protocols_count = 0;
    if (names->texts == NULL) {
        memcpy(settings->protocols, standard, sizeof(standard));
        settings->protocols_count = sizeof(standard) / sizeof(standard[0]);
        return true;
    }
    if (names->count == 0)
        return error_set(error, "the list is empty: leave the key out, or name a format");
    for (size_t i = 0; i < names->count; i++) {
        enum scrape_protocol protocol = protocol_of(names->texts[i]);
        if (protocol == SCRAPE_PROTOCOLS) {
            error_set(error,
                      "unknown format \"%s\": use OpenMetricsText1.0.0, OpenMetricsText0.0.1, "
                      "PrometheusText1.0.0 or PrometheusText0.0.4",
                      names->texts[i]);
            return error_at_index(error, i);
        }
        for (size_t k = 0; k < settings->protocols_count; k++)
            if (settings->protocols[k] == protocol) {
                error_set(error, "\"%s\" is listed twice", names->texts[i]);
                return error_at_index(error, i);
            }
        settings->protocols[settings->protocols_count++] = protocol;
    }
    return true;
}

/* Unset: fallback. */
static bool take_duration(const char *key, const char *text, uint64_t fallback_ns, uint64_t *ret_ns,
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

static uint64_t first_of(uint64_t own, uint64_t global)
{
    return own != 0 ? own : global;
}

static bool take_names(const struct scrape_limits_config *global,
                       const struct scrape_limits_config *own, struct scrape_settings *settings,
                       struct error *error)
{
    enum { UNSET, UTF8, LEGACY, ALLOW_UTF8 = 1, UNDERSCORES = 2 };
    int validation = own->name_validation != UNSET ? own->name_validation : global->name_validation;
    settings->names = validation == LEGACY ? RELABEL_NAMES_LEGACY : RELABEL_NAMES_UTF8;
    int escaping = own->name_escaping;
    if (escaping == UNSET && own->name_validation == UNSET)
        escaping = global->name_escaping;
    if (escaping == UNSET)
        escaping = validation == LEGACY ? UNDERSCORES : ALLOW_UTF8;
    settings->limits.name_escaping = escaping;
    if (escaping == ALLOW_UTF8 && validation == LEGACY) {
        error_set(error, "allow-utf-8 contradicts metric_name_validation_scheme: legacy");
        return error_at(error, "metric_name_escaping_scheme");
    }
    return true;
}

bool scrape_settings_of(const struct scrape_limits_config *global,
                        const struct scrape_job_config *job, struct scrape_settings *ret_settings,
                        struct error *error)
{
    const struct scrape_limits_config *own = &job->limits;
    struct scrape_limits_config *limits = &ret_settings->limits;
    *ret_settings = (struct scrape_settings){.limits = *own};
    limits->body_bytes_max = first_of(own->body_bytes_max, global->body_bytes_max);
    limits->samples_max = first_of(own->samples_max, global->samples_max);
    limits->targets_max = first_of(own->targets_max, global->targets_max);
    limits->labels_max = first_of(own->labels_max, global->labels_max);
    limits->label_name_bytes_max =
        first_of(own->label_name_bytes_max, global->label_name_bytes_max);
    limits->label_value_bytes_max =
        first_of(own->label_value_bytes_max, global->label_value_bytes_max);
    limits->extra_scrape_metrics = own->extra_scrape_metrics || global->extra_scrape_metrics;
    uint64_t global_interval_ns;
    uint64_t global_timeout_ns;
    uint64_t *interval_ns = &ret_settings->interval_ns;
    uint64_t *timeout_ns = &ret_settings->timeout_ns;
    if (!take_duration("scrape_interval", global->interval, DEFAULT_INTERVAL_NS,
                       &global_interval_ns, error) ||
        !take_duration("scrape_timeout", global->timeout,
                       global_interval_ns < DEFAULT_TIMEOUT_NS ? global_interval_ns
                                                               : DEFAULT_TIMEOUT_NS,
                       &global_timeout_ns, error) ||
        !take_duration("scrape_interval", own->interval, global_interval_ns, interval_ns, error) ||
        !take_duration("scrape_timeout", own->timeout,
                       global_timeout_ns < *interval_ns ? global_timeout_ns : *interval_ns,
                       timeout_ns, error))
        return false;
    if (*timeout_ns > *interval_ns) {
        error_set(error, "the timeout is longer than scrape_interval: a scrape ends before the "
                         "next one begins");
        return error_at(error, "scrape_timeout");
    }
    const struct config_texts *protocols =
        own->protocols.texts != NULL ? &own->protocols : &global->protocols;
    return (take_protocols(protocols, ret_settings, error) ||
            error_at(error, "scrape_protocols")) &&
           take_names(global, own, ret_settings, error);
}

struct relabel_config *scrape_relabel_configs(const struct config_sections *sections)
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

static bool check_rules(const char *key, const struct config_sections *sections,
                        enum relabel_names names, struct error *error)
{
    struct relabel_config *configs = scrape_relabel_configs(sections);
    bool is_valid = relabel_configs_check(configs, sections->count, names, error);
    mem_free(configs);
    return is_valid || error_at(error, key);
}

static bool check_targets(const struct scrape_job_config *job, struct error *error)
{
    const struct scrape_static_config *sets = job->static_configs.items;
    for (size_t i = 0; i < job->static_configs.count; i++)
        for (size_t k = 0; k < sets[i].targets.count; k++) {
            const char *target = sets[i].targets.texts[k];
            if (job->relabel_configs.count > 0 || strchr(target, '/') == NULL)
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

static bool check_discoveries(const struct scrape_job_config *job, struct error *error)
{
    for (const struct config_field *field = job_fields; field->key != NULL; field++) {
        const void *value = (const char *)job + field->offset;
        size_t first = offsetof(struct scrape_job_config, unsupported);
        if (field->type != CONFIG_TYPE_VALUE || field->offset < first ||
            *(const struct config_value *const *)value == NULL)
            continue;
        error_set(error,
                  "spanflame does not discover targets this way: list them in static_configs");
        error_unsupported(error);
        return error_at(error, field->key);
    }
    return true;
}

static bool check_params(const struct scrape_job_config *job, struct error *error)
{
    if (job->params == NULL || job->params->type == CONFIG_VALUE_NULL)
        return true;
    bool is_valid = job->params->type == CONFIG_VALUE_MAP;
    for (size_t i = 0; is_valid && i < job->params->count; i++) {
        const struct config_value *list = &job->params->items[i];
        is_valid = list->type == CONFIG_VALUE_LIST;
        for (size_t k = 0; is_valid && k < list->count; k++)
            is_valid = list->items[k].type == CONFIG_VALUE_TEXT;
    }
    if (is_valid)
        return true;
    error_set(error, "each parameter has a list of strings: module: [http_2xx]");
    return error_at(error, "params");
}

static bool check_login(const struct scrape_job_config *job, struct error *error)
{
    bool has_token = job->bearer_token[0] != '\0' || job->bearer_token_file[0] != '\0';
    if (job->oauth2 != NULL) {
        error_set(error, "oauth2 is not supported for scrapes: use authorization with a "
                         "credentials_file that something else keeps current");
        error_unsupported(error);
        return error_at(error, "oauth2");
    }
    if (job->has_basic_auth + job->has_authorization + has_token <= 1)
        return true;
    error_set(error, "at most one of basic_auth, authorization and bearer_token can be set");
    return error_at(error, job->has_basic_auth ? "basic_auth" : "authorization");
}

static bool job_check(const void *section, struct error *error)
{
    const struct scrape_job_config *job = section;
    if (job->job_name[0] == '\0') {
        error_set(error, "a name is required: it becomes the label job");
        return error_at(error, "job_name");
    }
    if (job->fallback_protocol[0] != '\0' &&
        protocol_of(job->fallback_protocol) == SCRAPE_PROTOCOLS) {
        error_set(error, "unknown format \"%s\": PrometheusText0.0.4 is the usual one",
                  job->fallback_protocol);
        return error_at(error, "fallback_scrape_protocol");
    }
    return check_discoveries(job, error) && check_login(job, error) && check_params(job, error) &&
           check_targets(job, error);
}

static bool check_unsupported(const struct prometheus_config *config, struct error *error)
{
    const struct {
        const char *key;
        bool is_set;
        const char *instead;
    } keys[] = {
        {"remote_write", config->remote_write != NULL, "use an exporter of the collector"},
        {"remote_read", config->remote_read != NULL, "nothing is stored here"},
        {"alerting", config->alerting != NULL, "alert where the metrics are stored"},
        {"rule_files", config->rule_files.count > 0, "evaluate rules where metrics are stored"},
        {"scrape_config_files", config->scrape_config_files.count > 0,
         "list the jobs in scrape_configs"},
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (keys[i].is_set) {
            error_set(error, "the prometheus receiver does not support this: %s", keys[i].instead);
            error_unsupported(error);
            return error_at(error, keys[i].key);
        }
    return true;
}

static bool check_jobs(const struct prometheus_config *config, struct error *error)
{
    const struct scrape_job_config *jobs = config->scrape_configs.items;
    for (size_t i = 0; i < config->scrape_configs.count; i++) {
        struct scrape_settings settings;
        bool is_valid =
            scrape_settings_of(&config->global.limits, &jobs[i], &settings, error) &&
            check_rules("relabel_configs", &jobs[i].relabel_configs, settings.names, error) &&
            check_rules("metric_relabel_configs", &jobs[i].metric_relabel_configs, settings.names,
                        error);
        for (size_t k = 0; is_valid && k < i; k++)
            if (strcmp(jobs[k].job_name, jobs[i].job_name) == 0) {
                error_set(error, "there are two jobs \"%s\"", jobs[i].job_name);
                is_valid = error_at(error, "job_name");
            }
        if (is_valid)
            continue;
        error_at_index(error, i);
        return error_at(error, "scrape_configs");
    }
    return true;
}

bool prometheus_receiver_check(const void *config, struct error *error)
{
    const struct prometheus_receiver_config *receiver = config;
    const struct prometheus_config *prometheus = &receiver->prometheus;
    if (receiver->target_allocator != NULL &&
        receiver->target_allocator->type != CONFIG_VALUE_NULL) {
        error_set(error, "target allocators are not supported: list the targets in scrape_configs");
        error_unsupported(error);
        return error_at(error, "target_allocator");
    }
    if (receiver->api_server.enabled) {
        error_set(error, "the API is not supported: leave the section out");
        error_unsupported(error);
        return error_at(error, "api_server");
    }
    if (prometheus->scrape_configs.count == 0 && prometheus->scrape_config_files.count == 0) {
        error_set(error, "no scrape_configs: there is nothing to scrape");
        return error_at(error, "config");
    }
    return (check_unsupported(prometheus, error) && check_jobs(prometheus, error)) ||
           error_at(error, "config");
}
