/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus_simple: scrapes one target. A short configuration in front of the prometheus receiver,
 * as the Go collector's simpleprometheusreceiver 0.155 has it. Runs on its lane. */
#include <stdio.h>
#include <string.h>

#include "receivers/prometheus/prometheus_receiver.h"
#include "receivers/scrape/scrape_duration.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/config/shared/tls_config.h"

/* Deprecated; the section tls has taken its place. */
struct simple_tls_config {
    const char *ca_file;
    const char *cert_file;
    const char *key_file;
    bool insecure_skip_verify;
};

struct prometheus_simple_config {
    const char *endpoint;
    uint64_t collection_interval_ns;
    const char *metrics_path;
    const struct config_value *params;
    struct config_pairs labels;
    const char *job_name;
    bool use_service_account;
    bool trim_metric_suffixes;
    struct tls_client_config tls;
    bool tls_enabled;
    struct simple_tls_config old_tls;
};

static const struct config_field old_tls_fields[] = {
    CONFIG_TEXT(struct simple_tls_config, ca_file, "ca_file", "", "As tls::ca_file."),
    CONFIG_TEXT(struct simple_tls_config, cert_file, "cert_file", "", "As tls::cert_file."),
    CONFIG_TEXT(struct simple_tls_config, key_file, "key_file", "", "As tls::key_file."),
    CONFIG_BOOL(struct simple_tls_config, insecure_skip_verify, "insecure_skip_verify", "false",
                "As tls::insecure_skip_verify."),
    CONFIG_END,
};

#define NOT_USED "Not used, as in the Go collector."
#define OWNER    struct prometheus_simple_config
static const struct config_field prometheus_simple_fields[] = {
    CONFIG_TEXT(OWNER, endpoint, "endpoint", "localhost:9090", "The target, host:port."),
    CONFIG_DURATION(OWNER, collection_interval_ns, "collection_interval", "10s", NS_PER_MS,
                    INT64_MAX, "Time between scrapes, and for one."),
    CONFIG_TEXT(OWNER, metrics_path, "metrics_path", "/metrics", "Path of the URL."),
    CONFIG_VALUE(OWNER, params, "params", "Parameters of the URL: a map of lists."),
    CONFIG_PAIRS(OWNER, labels, "labels", "Labels of the series."),
    CONFIG_TEXT(OWNER, job_name, "job_name", "",
                "The label job. Default prometheus_simple/<endpoint>."),
    CONFIG_BOOL(OWNER, use_service_account, "use_service_account", "false",
                "Send the token of the pod's service account."),
    CONFIG_BOOL(OWNER, trim_metric_suffixes, "trim_metric_suffixes", "false",
                "Take units and _total off the names of metrics."),
    CONFIG_SECTION(OWNER, tls, struct tls_client_config, "tls", tls_client_cleartext_fields,
                   tls_client_check, "TLS towards the target, with insecure: false or a ca_file."),
    CONFIG_BOOL(OWNER, tls_enabled, "tls_enabled", "false", "Deprecated: use tls."),
    CONFIG_SECTION(OWNER, old_tls, struct simple_tls_config, "tls_config", old_tls_fields, NULL,
                   "Deprecated, with tls_enabled: use tls."),
    CONFIG_IGNORED_TEXT("proxy_url", NOT_USED),
    CONFIG_IGNORED("headers", NOT_USED),
    CONFIG_IGNORED("auth", NOT_USED),
    CONFIG_IGNORED_DURATION("timeout", NOT_USED),
    CONFIG_IGNORED_TEXT("compression", NOT_USED),
    CONFIG_IGNORED_MAP("compression_params", NOT_USED),
    CONFIG_IGNORED_INT("read_buffer_size", NOT_USED),
    CONFIG_IGNORED_INT("write_buffer_size", NOT_USED),
    CONFIG_IGNORED_INT("max_idle_conns", NOT_USED),
    CONFIG_IGNORED_INT("max_idle_conns_per_host", NOT_USED),
    CONFIG_IGNORED_INT("max_conns_per_host", NOT_USED),
    CONFIG_IGNORED_DURATION("idle_conn_timeout", NOT_USED),
    CONFIG_IGNORED_BOOL("disable_keep_alives", NOT_USED),
    CONFIG_IGNORED_BOOL("force_attempt_http2", NOT_USED),
    CONFIG_IGNORED_DURATION("http2_read_idle_timeout", NOT_USED),
    CONFIG_IGNORED_DURATION("http2_ping_timeout", NOT_USED),
    CONFIG_IGNORED("cookies", NOT_USED),
    CONFIG_IGNORED_LIST("middlewares", NOT_USED),
    CONFIG_END,
};
#undef OWNER

/* What Kubernetes gives to each pod. */
#define SERVICE_ACCOUNT_TOKEN "/var/run/secrets/kubernetes.io/serviceaccount/token"

struct prometheus_simple_receiver {
    struct prometheus_receiver receiver; /* first */
    struct prometheus_receiver_config config;
    struct scrape_job_config job;
    struct scrape_static_config target;
    char *job_name;
    char interval[SCRAPE_DURATION_BYTES_MAX];
    struct tls_client_config tls;
};

static bool prometheus_simple_check(const void *section, struct error *error)
{
    const struct prometheus_simple_config *config = section;
    return scrape_params_check(config->params, error);
}

/* As configtls: cleartext unless insecure is false or there is an authority. */
static bool has_tls(const struct prometheus_simple_config *config)
{
    const struct tls_config *common = &config->tls.common;
    bool has_authority = (common->ca_file != NULL && common->ca_file[0] != '\0') ||
                         (common->ca_pem != NULL && common->ca_pem[0] != '\0');
    return config->tls_enabled || !config->tls.insecure || has_authority;
}

static void take_old_tls(struct prometheus_simple_receiver *self,
                         const struct prometheus_simple_config *config)
{
    self->tls = (struct tls_client_config){
        .common = {.ca_file = config->old_tls.ca_file,
                   .cert_file = config->old_tls.cert_file,
                   .key_file = config->old_tls.key_file},
        .insecure_skip_verify = config->old_tls.insecure_skip_verify,
    };
}

/* The configuration that the prometheus receiver would have. */
static void derive(struct prometheus_simple_receiver *self,
                   const struct prometheus_simple_config *config)
{
    size_t room = sizeof("prometheus_simple/") + strlen(config->endpoint);
    self->job_name = mem_alloc(room);
    snprintf(self->job_name, room, "prometheus_simple/%s", config->endpoint);
    scrape_duration_print(config->collection_interval_ns, self->interval);
    self->target = (struct scrape_static_config){
        .targets = {.count = 1, .texts = &config->endpoint},
        .labels = config->labels,
    };
    self->job = (struct scrape_job_config){
        .job_name = config->job_name[0] != '\0' ? config->job_name : self->job_name,
        .limits = {.interval = self->interval, .timeout = self->interval},
        .honor_timestamps = true,
        .params = config->params,
        .fallback_protocol = "",
        .metrics_path = config->metrics_path,
        .scheme = has_tls(config),
        .http = {.bearer_token = "",
                 .bearer_token_file = config->use_service_account ? SERVICE_ACCOUNT_TOKEN : "",
                 .proxy_url = ""},
        .discovery = {.static_configs = {.count = 1, .items = &self->target}},
    };
    self->config = (struct prometheus_receiver_config){
        .prometheus = {.global = {.limits = {.interval = "", .timeout = ""}},
                       .scrape_configs = {.count = 1, .items = &self->job}},
        .trim_metric_suffixes = config->trim_metric_suffixes,
    };
    self->tls = config->tls;
    if (config->tls_enabled)
        take_old_tls(self, config);
}

static bool prometheus_simple_create(struct component *base, struct error *error)
{
    struct prometheus_simple_receiver *self = (struct prometheus_simple_receiver *)base;
    const struct prometheus_simple_config *config = base->config;
    derive(self, config);
    if (config->tls_enabled && lane_index(base->lane) == 0)
        log_warn(&base->logger, "the `tls_config` and 'tls_enabled' settings are deprecated, "
                                "please use `tls` instead");
    if (!prometheus_receiver_open(base, &self->config, error)) {
        /* The keys are those of the derived configuration. */
        error->steps_count = 0;
        return config->use_service_account ? error_at(error, "use_service_account") : false;
    }
    self->receiver.https[0].tls = self->tls;
    return component_is_rehearsed(base) || tls_client_check_files(&self->tls, error);
}

static void prometheus_simple_destroy(struct component *base)
{
    struct prometheus_simple_receiver *self = (struct prometheus_simple_receiver *)base;
    prometheus_receiver_destroy(base);
    mem_free(self->job_name);
}

const struct component_factory prometheus_simple_receiver_factory = {
    .type = "prometheus_simple",
    .kind = RECEIVER,
    .stability = "beta",
    .signals = SIGNAL_METRICS,
    .instance_size = sizeof(struct prometheus_simple_receiver),
    .config_size = sizeof(struct prometheus_simple_config),
    .fields = prometheus_simple_fields,
    .counters_size = sizeof(struct prometheus_receiver_counters),
    .counters = prometheus_receiver_counter_rows,
    .check = prometheus_simple_check,
    .create = prometheus_simple_create,
    .start = prometheus_receiver_start,
    .stop = prometheus_receiver_stop,
    .destroy = prometheus_simple_destroy,
};
