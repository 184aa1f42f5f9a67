/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the prometheus receiver: below `config` it is Prometheus's own
 * (prometheus/prometheus 0.312, config/config.go). Constants and pure functions; the main thread
 * runs the rules while it loads the configuration. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receivers/scrape/scrape_config.h"
#include "src/config/field.h"
#include "src/prometheus/relabel.h"

struct error;

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
    struct scrape_http_config http;
    struct config_sections relabel_configs;        /* struct scrape_relabel_config */
    struct config_sections metric_relabel_configs; /* the same */
    struct scrape_discovery_config discovery;
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

/* A file of scrape_config_files, and the row by which it is decoded. */
struct scrape_jobs_file {
    struct config_sections scrape_configs; /* struct scrape_job_config */
};
extern const struct config_field scrape_jobs_file_field;

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

/* Rules across the fields, but for those of scrape_job_list.h; config is a struct
 * prometheus_receiver_config. */
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
