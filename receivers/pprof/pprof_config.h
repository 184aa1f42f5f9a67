/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the pprof receiver: jobs and targets as the prometheus receiver has them,
 * profiles as Alloy's pyroscope.scrape (profiling_config). Constants and pure functions; the main
 * thread runs the rules while it loads the configuration. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receivers/scrape/scrape_config.h"
#include "src/config/field.h"

struct error;

/* By the names of their sections, "profile.process_cpu" and so on. */
enum pprof_kind {
    PPROF_PROCESS_CPU,
    PPROF_MEMORY,
    PPROF_GOROUTINE,
    PPROF_MUTEX,
    PPROF_BLOCK,
    PPROF_FGPROF,
    PPROF_GODELTAPROF_MEMORY,
    PPROF_GODELTAPROF_MUTEX,
    PPROF_GODELTAPROF_BLOCK,
    PPROF_KINDS,
};

struct pprof_profile_config {
    bool enabled;
    const char *path;
    bool delta; /* the target makes the profile of the next seconds */
};

struct pprof_custom_config {
    const char *name;
    struct pprof_profile_config profile;
};

struct pprof_profiling_config {
    const char *path_prefix;
    struct pprof_profile_config kinds[PPROF_KINDS];
    struct config_sections custom; /* struct pprof_custom_config */
};

struct pprof_job_config {
    const char *job_name;
    const char *interval; /* Prometheus's durations; "": the default */
    const char *timeout;
    const char *delta_duration;
    int scheme; /* 0: http, 1: https */
    const struct config_value *params;
    uint64_t body_bytes_max;
    uint64_t targets_max; /* 0: no limit */
    struct pprof_profiling_config profiling;
    struct scrape_http_config http;
    struct config_sections relabel_configs; /* struct scrape_relabel_config */
    struct scrape_discovery_config discovery;
};

struct pprof_receiver_config {
    struct config_sections scrape_configs; /* struct pprof_job_config */
};

extern const struct config_field pprof_receiver_fields[];
/* Rules across the fields; config is a struct pprof_receiver_config. */
bool pprof_receiver_check(const void *config, struct error *error);

/* The times of a job. */
struct pprof_times {
    uint64_t interval_ns;
    uint64_t timeout_ns; /* beyond the seconds of the profile */
    uint64_t seconds;    /* of profiles with delta */
};
/* False: error has the reason, at the key. */
bool pprof_times_of(const struct pprof_job_config *job, struct pprof_times *ret_times,
                    struct error *error);
/* What the label __name__ of a profile is: of godeltaprof's, that of the profile that it is. */
const char *pprof_kind_name(enum pprof_kind kind);
