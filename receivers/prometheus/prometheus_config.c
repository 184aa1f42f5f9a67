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

/* Tables */

static const char *const schemes[] = {"http", "https", NULL};
static const char *const name_validations[] = {"", "utf8", "legacy", NULL};
static const char *const name_escapings[] = {"",     "allow-utf-8", "underscores",
                                             "dots", "values",      NULL};
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
    SCRAPE_HTTP_ROWS(OWNER, http),
    CONFIG_SECTIONS(OWNER, relabel_configs, struct scrape_relabel_config, "relabel_configs",
                    scrape_relabel_fields, NULL, "Rules for the labels of targets."),
    CONFIG_SECTIONS(OWNER, metric_relabel_configs, struct scrape_relabel_config,
                    "metric_relabel_configs", scrape_relabel_fields, NULL,
                    "Rules for the labels of samples."),
    SCRAPE_DISCOVERY_ROWS(OWNER, discovery),
    CONFIG_IGNORED("native_histogram_bucket_limit", "Native histograms are not scraped."),
    CONFIG_IGNORED("native_histogram_min_bucket_factor", "Native histograms are not scraped."),
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
    CONFIG_TEXTS(OWNER, scrape_config_files, "scrape_config_files", NULL,
                 "Files with more scrape_configs; the last part of a path may have a *. In them a "
                 "dollar is written once."),
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

#define OWNER struct scrape_jobs_file
static const struct config_field jobs_file_fields[] = {
    CONFIG_SECTIONS(OWNER, scrape_configs, struct scrape_job_config, "scrape_configs", job_fields,
                    job_check, "What is scraped."),
    CONFIG_END,
};
#undef OWNER
struct jobs_file_owner {
    struct scrape_jobs_file file;
};
const struct config_field scrape_jobs_file_field =
    CONFIG_SECTION(struct jobs_file_owner, file, struct scrape_jobs_file, "file", jobs_file_fields,
                   NULL, "A file of scrape_config_files.");

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
    if (!scrape_duration_take("scrape_interval", global->interval, DEFAULT_INTERVAL_NS,
                              &global_interval_ns, error) ||
        !scrape_duration_take("scrape_timeout", global->timeout,
                              global_interval_ns < DEFAULT_TIMEOUT_NS ? global_interval_ns
                                                                      : DEFAULT_TIMEOUT_NS,
                              &global_timeout_ns, error) ||
        !scrape_duration_take("scrape_interval", own->interval, global_interval_ns, interval_ns,
                              error) ||
        !scrape_duration_take("scrape_timeout", own->timeout,
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
    return scrape_discovery_check(&job->discovery, job->relabel_configs.count > 0, error) &&
           scrape_http_check(&job->http, error) && scrape_params_check(job->params, error);
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
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (keys[i].is_set) {
            error_set(error, "the prometheus receiver does not support this: %s", keys[i].instead);
            error_unsupported(error);
            return error_at(error, keys[i].key);
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
    return check_unsupported(prometheus, error) || error_at(error, "config");
}
