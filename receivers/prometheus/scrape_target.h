/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs and targets of the prometheus receiver: what one of scrape_configs says, made ready, and
 * each target that its discoveries find, with the labels that relabeling leaves
 * (prometheus/prometheus 0.312, scrape/target.go). Constant once made; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receivers/prometheus/prometheus_config.h"
#include "src/config/shared/tls_config.h"
#include "src/prometheus/exposition_reader.h"
#include "src/prometheus/relabel.h"

struct error;

enum { SCRAPE_HEADERS_MAX = 64 };

struct scrape_job {
    const struct scrape_job_config *config;
    struct scrape_settings settings;
    struct relabel_rules *rules;        /* of targets; NULL: none */
    struct relabel_rules *metric_rules; /* of samples; NULL: none */
    enum exposition_protocol fallback;
    struct tls_client_config tls;
    /* Accept and the like, and http_headers; but for the timeout, which targets may change. */
    struct config_pair headers[SCRAPE_HEADERS_MAX];
    size_t headers_count;
    char *accept; /* the value of that header */
    char *basic_auth;
};

/* NULL: error has the reason. config must outlive the job. */
struct scrape_job *scrape_job_create(const struct scrape_global_config *global,
                                     const struct scrape_job_config *config, struct error *error);
/* NULL is a no-op. */
void scrape_job_destroy(struct scrape_job *job);

struct scrape_target {
    const struct scrape_job *job;
    struct prometheus_label *labels; /* of each of its series; sorted by name */
    size_t labels_count;
    struct slice job_name; /* its labels job and instance */
    struct slice instance;
    struct slice scheme;
    char *url;
    uint64_t interval_ns;
    uint64_t timeout_ns;
    uint64_t hash; /* of labels and URL */
};

/* NULL: relabeling drops it, which leaves error's text empty; or error says why it is no target. */
struct scrape_target *scrape_target_create(const struct scrape_job *job, const char *address,
                                           const struct config_pairs *labels,
                                           struct relabel_labels *work, struct error *error);
/* NULL is a no-op. */
void scrape_target_destroy(struct scrape_target *target);
