/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a configuration: those of scrape_configs, and those in the files that
 * scrape_config_files names (prometheus/prometheus 0.312, config.GetScrapeConfigs). Main thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "receivers/prometheus/prometheus_config.h"

struct error;
struct section_file;

enum { SCRAPE_CONFIG_FILES_MAX = 1024 };

struct scrape_job_list {
    const struct scrape_job_config **jobs; /* those of the configuration first */
    size_t count;
    struct section_file *files;
    size_t files_count;
};

/* Reads and checks them all. False: error has the reason, for the section config. Either way free
 * the list. config must outlive it. */
bool scrape_job_list_read(struct scrape_job_list *list, const struct prometheus_config *config,
                          struct error *error);
/* A no-op for an all-zero struct. */
void scrape_job_list_free(struct scrape_job_list *list);
