/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of the prometheus receiver: what one of scrape_configs says, made ready. Constant once
 * made; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receivers/prometheus/prometheus_config.h"
#include "receivers/scrape/scrape_target.h"
#include "src/prometheus/exposition_reader.h"
#include "src/prometheus/relabel.h"

struct error;

struct scrape_job {
    const struct scrape_job_config *config;
    struct scrape_settings settings;
    struct relabel_rules *rules;        /* of targets; NULL: none */
    struct relabel_rules *metric_rules; /* of samples; NULL: none */
    enum exposition_protocol fallback;
    char *accept;              /* the value of that header */
    struct scrape_start start; /* of its targets */
};

/* NULL: error has the reason. config must outlive the job. */
struct scrape_job *scrape_job_create(const struct scrape_global_config *global,
                                     const struct scrape_job_config *config, struct error *error);
/* NULL is a no-op. */
void scrape_job_destroy(struct scrape_job *job);
