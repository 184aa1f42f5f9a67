/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the prometheus receiver: below `config` it is Prometheus's own
 * (prometheus/prometheus 0.312, config/config.go). Constants and pure functions; the main thread
 * runs the rules while it loads the configuration. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/config/field.h"
#include "src/prometheus/relabel.h"

struct error;

enum {
    DISCOVERIES_UNSUPPORTED = 35,
};

struct scrape_static_config {
    struct config_texts targets; /* "host:port" */
    struct config_pairs labels;
};

struct scrape_relabel_config {
    struct config_texts source_labels;
    const char *separator;
    const char *regex;
    uint64_t modulus;
    const char *target_label;
    const char *replacement;
    const char *action;
};

struct scrape_basic_auth_config {
    const char *username;
    const char *username_file;
    const char *password;
    const char *password_file;
};

struct scrape_authorization_config {
    const char *type;
    const char *credentials;
    const char *credentials_file;
};

struct scrape_tls_config {
    const char *ca_file;
    const char *ca_pem;
    const char *cert_file;
    const char *cert_pem;
    const char *key_file;
    const char *key_pem;
    const char *server_name;
    bool insecure_skip_verify;
    int min_version; /* index into scrape_tls_versions */
    int max_version;
};

/* "", TLS10 to TLS13; and as the rest of the configuration writes them. */
extern const char *const scrape_tls_versions[];
const char *scrape_tls_version(int index);

/* Keys that global and each of scrape_configs have. */
struct scrape_limits_config {
    const char *interval; /* "": not set */
    const char *timeout;
    struct config_texts protocols;
    uint64_t body_bytes_max; /* 0: no limit, here and below */
    uint64_t samples_max;
    uint64_t targets_max;
    uint64_t labels_max;
    uint64_t label_name_bytes_max;
    uint64_t label_value_bytes_max;
    int name_validation; /* 0: not set, 1: utf8, 2: legacy */
    int name_escaping;   /* 0: not set, else enum prometheus_escaping + 1 */
    bool extra_scrape_metrics;
};

struct scrape_job_config {
    const char *job_name;
    struct scrape_limits_config limits;
    bool honor_labels;
    bool honor_timestamps;
    bool track_timestamps_staleness;
    const struct config_value *params;
    const char *fallback_protocol;
    const char *metrics_path;
    int scheme; /* 0: http, 1: https */
    bool enable_compression;
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
    struct config_sections relabel_configs;        /* struct scrape_relabel_config */
    struct config_sections metric_relabel_configs; /* the same */
    struct config_sections static_configs;         /* struct scrape_static_config */
    const struct config_value *unsupported[DISCOVERIES_UNSUPPORTED];
};

struct scrape_global_config {
    struct scrape_limits_config limits;
    struct config_pairs external_labels;
};

struct prometheus_config {
    struct scrape_global_config global;
    struct config_sections scrape_configs; /* struct scrape_job_config */
    struct config_texts scrape_config_files;
    const struct config_value *remote_write;
    const struct config_value *remote_read;
    const struct config_value *alerting;
    struct config_texts rule_files;
};

struct prometheus_api_server_config {
    bool enabled;
    const struct config_value *server_config;
};

struct prometheus_receiver_config {
    struct prometheus_config prometheus;
    bool trim_metric_suffixes;
    bool scrape_on_shutdown;
    uint64_t initial_scrape_offset_ns;
    const struct config_value *target_allocator;
    struct prometheus_api_server_config api_server;
};

extern const struct config_field prometheus_receiver_fields[];

/* Rules across the fields; config is a struct prometheus_receiver_config. */
bool prometheus_receiver_check(const void *config, struct error *error);

enum scrape_protocol {
    SCRAPE_PROTOBUF,
    SCRAPE_TEXT_0_0_4,
    SCRAPE_TEXT_1_0_0,
    SCRAPE_OPENMETRICS_0_0_1,
    SCRAPE_OPENMETRICS_1_0_0,
    SCRAPE_PROTOCOLS
};

/* What holds for one of scrape_configs once global is taken in. */
struct scrape_settings {
    uint64_t interval_ns;
    uint64_t timeout_ns;
    enum scrape_protocol protocols[SCRAPE_PROTOCOLS]; /* in order of preference */
    size_t protocols_count;
    struct scrape_limits_config limits;
    enum relabel_names names;
};

/* False: error has the reason, at the key. */
bool scrape_settings_of(const struct scrape_limits_config *global,
                        const struct scrape_job_config *job, struct scrape_settings *ret_settings,
                        struct error *error);
/* The rules as src/prometheus/relabel.h takes them; free with mem_free. Borrows from sections. */
struct relabel_config *scrape_relabel_configs(const struct config_sections *sections);

/* A duration as Prometheus writes it ("1d12h", "500ms", "0"). False: it is none. */
bool scrape_duration_parse(const char *text, uint64_t *ret_ns);
enum { SCRAPE_DURATION_BYTES_MAX = 64 };
void scrape_duration_print(uint64_t duration_ns, char text[SCRAPE_DURATION_BYTES_MAX]);
