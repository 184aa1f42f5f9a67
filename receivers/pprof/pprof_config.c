/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables and rules of the pprof receiver. Constants and pure functions. */
#include "receivers/pprof/pprof_config.h"

#include "receivers/scrape/scrape_duration.h"
#include "src/base/clock.h"
#include "src/base/error.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_INTERVAL_NS ((uint64_t)15 * NS_PER_S)
#define DEFAULT_TIMEOUT_NS  ((uint64_t)10 * NS_PER_S)

static const char *const schemes[] = {"http", "https", NULL};

/* A profile's table, with its defaults. */
#define PROFILE_ROWS(owner, profile, on, standard_path, makes_delta)                               \
    CONFIG_BOOL(owner, profile.enabled, "enabled", on, "Scrape it."),                              \
        CONFIG_TEXT(owner, profile.path, "path", standard_path, "Path of the URL."),               \
        CONFIG_BOOL(owner, profile.delta, "delta", makes_delta,                                    \
                    "The target makes a profile of the next seconds, delta_profiling_duration.")
struct pprof_profile_owner {
    struct pprof_profile_config profile;
};
#define PROFILE_TABLE(table, on, standard_path, makes_delta)                                       \
    static const struct config_field table[] = {                                                   \
        PROFILE_ROWS(struct pprof_profile_owner, profile, on, standard_path, makes_delta),         \
        CONFIG_END,                                                                                \
    }
PROFILE_TABLE(process_cpu_fields, "true", "/debug/pprof/profile", "true");
PROFILE_TABLE(memory_fields, "true", "/debug/pprof/allocs", "false");
PROFILE_TABLE(goroutine_fields, "true", "/debug/pprof/goroutine", "false");
PROFILE_TABLE(mutex_fields, "true", "/debug/pprof/mutex", "false");
PROFILE_TABLE(block_fields, "true", "/debug/pprof/block", "false");
PROFILE_TABLE(fgprof_fields, "false", "/debug/fgprof", "true");
PROFILE_TABLE(godeltaprof_memory_fields, "false", "/debug/pprof/delta_heap", "false");
PROFILE_TABLE(godeltaprof_mutex_fields, "false", "/debug/pprof/delta_mutex", "false");
PROFILE_TABLE(godeltaprof_block_fields, "false", "/debug/pprof/delta_block", "false");

static const struct config_field custom_fields[] = {
    CONFIG_TEXT(struct pprof_custom_config, name, "name", "", "The label __name__. Required."),
    PROFILE_ROWS(struct pprof_custom_config, profile, "true", "", "false"),
    CONFIG_END,
};

#define PROFILE(kind, name, table, text)                                                           \
    CONFIG_SECTION(struct pprof_profiling_config, kinds[kind], struct pprof_profile_config,        \
                   "profile." name, table, NULL, text)
static const struct config_field profiling_fields[] = {
    CONFIG_TEXT(struct pprof_profiling_config, path_prefix, "path_prefix", "",
                "Before the path of each profile."),
    PROFILE(PPROF_PROCESS_CPU, "process_cpu", process_cpu_fields, "CPU time."),
    PROFILE(PPROF_MEMORY, "memory", memory_fields,
            "Allocations, as differences between scrapes, and what is in use."),
    PROFILE(PPROF_GOROUTINE, "goroutine", goroutine_fields, "Goroutines."),
    PROFILE(PPROF_MUTEX, "mutex", mutex_fields,
            "Contention of mutexes, as differences between scrapes."),
    PROFILE(PPROF_BLOCK, "block", block_fields,
            "Waits of goroutines, as differences between scrapes."),
    PROFILE(PPROF_FGPROF, "fgprof", fgprof_fields, "Wall time, of the library fgprof."),
    PROFILE(PPROF_GODELTAPROF_MEMORY, "godeltaprof_memory", godeltaprof_memory_fields,
            "Allocations, of the library godeltaprof."),
    PROFILE(PPROF_GODELTAPROF_MUTEX, "godeltaprof_mutex", godeltaprof_mutex_fields,
            "Contention of mutexes, of the library godeltaprof."),
    PROFILE(PPROF_GODELTAPROF_BLOCK, "godeltaprof_block", godeltaprof_block_fields,
            "Waits, of the library godeltaprof."),
    CONFIG_SECTIONS(struct pprof_profiling_config, custom, struct pprof_custom_config,
                    "profile.custom", custom_fields, NULL, "More profiles."),
    CONFIG_END,
};

#define OWNER struct pprof_job_config
static const struct config_field job_fields[] = {
    CONFIG_TEXT(OWNER, job_name, "job_name", "",
                "The label job, and service.name unless targets have a label service_name. "
                "Required."),
    CONFIG_TEXT(OWNER, interval, "scrape_interval", "", "Time between scrapes. Default 15s."),
    CONFIG_TEXT(OWNER, timeout, "scrape_timeout", "",
                "Time for one scrape, beyond the seconds that are profiled. Default 10s."),
    CONFIG_TEXT(OWNER, delta_duration, "delta_profiling_duration", "",
                "Seconds that profiles with delta cover. Default: a second less than "
                "scrape_interval."),
    CONFIG_CHOICE(OWNER, scheme, "scheme", "http", schemes, "http or https."),
    CONFIG_VALUE(OWNER, params, "params", "Parameters of the URL: a map of lists."),
    CONFIG_BYTES(OWNER, body_bytes_max, "body_size_limit", "64MiB", 1, 1 << 30,
                 "Larger profiles fail, as they come or inflated."),
    CONFIG_COUNT(OWNER, targets_max, "target_limit", "0", 0, INT64_MAX,
                 "With more targets than this, each profile counting as one, all scrapes of the "
                 "job fail. 0: no limit."),
    CONFIG_SECTION(OWNER, profiling, struct pprof_profiling_config, "profiling_config",
                   profiling_fields, NULL, "What is scraped."),
    SCRAPE_HTTP_ROWS(OWNER, http),
    CONFIG_SECTIONS(OWNER, relabel_configs, struct scrape_relabel_config, "relabel_configs",
                    scrape_relabel_fields, NULL,
                    "Rules for the labels of targets. __name__ is the profile, __profile_path__ "
                    "its path."),
    SCRAPE_DISCOVERY_ROWS(OWNER, discovery),
    CONFIG_END,
};
#undef OWNER

static bool job_check(const void *section, struct error *error);

const struct config_field pprof_receiver_fields[] = {
    CONFIG_SECTIONS(struct pprof_receiver_config, scrape_configs, struct pprof_job_config,
                    "scrape_configs", job_fields, job_check, "What is scraped."),
    CONFIG_END,
};

const char *pprof_kind_name(enum pprof_kind kind)
{
    static const char *const names[PPROF_KINDS] = {"process_cpu", "memory", "goroutine",
                                                   "mutex",       "block",  "fgprof",
                                                   "memory",      "mutex",  "block"};
    return names[kind];
}

/* Rules */

static bool has_delta(const struct pprof_profiling_config *profiling)
{
    const struct pprof_custom_config *custom = profiling->custom.items;
    bool found = false;
    for (size_t i = 0; i < PPROF_KINDS; i++)
        found |= profiling->kinds[i].enabled && profiling->kinds[i].delta;
    for (size_t i = 0; i < profiling->custom.count; i++)
        found |= custom[i].profile.enabled && custom[i].profile.delta;
    return found;
}

bool pprof_times_of(const struct pprof_job_config *job, struct pprof_times *ret_times,
                    struct error *error)
{
    uint64_t duration_ns;
    *ret_times = (struct pprof_times){.seconds = 0};
    if (!scrape_duration_take("scrape_interval", job->interval, DEFAULT_INTERVAL_NS,
                              &ret_times->interval_ns, error) ||
        !scrape_duration_take("scrape_timeout", job->timeout,
                              ret_times->interval_ns < DEFAULT_TIMEOUT_NS ? ret_times->interval_ns
                                                                          : DEFAULT_TIMEOUT_NS,
                              &ret_times->timeout_ns, error))
        return false;
    if (ret_times->timeout_ns > ret_times->interval_ns) {
        error_set(error, "the timeout is longer than scrape_interval: a scrape ends before the "
                         "next one begins");
        return error_at(error, "scrape_timeout");
    }
    if (!has_delta(&job->profiling))
        return true;
    if (ret_times->interval_ns < 2 * NS_PER_S) {
        error_set(error, "scrape_interval must be at least 2 seconds when using delta profiling");
        return error_at(error, "scrape_interval");
    }
    if (!scrape_duration_take("delta_profiling_duration", job->delta_duration,
                              ret_times->interval_ns - NS_PER_S, &duration_ns, error))
        return false;
    ret_times->seconds = duration_ns / NS_PER_S;
    if (ret_times->seconds >= 1 && duration_ns <= ret_times->interval_ns - NS_PER_S)
        return true;
    error_set(error, "delta_profiling_duration must be at least 1 second, and at least 1 second "
                     "smaller than scrape_interval");
    return error_at(error, "delta_profiling_duration");
}

static bool check_profile(const struct pprof_profile_config *profile, struct error *error)
{
    if (!profile->enabled || profile->path[0] != '\0')
        return true;
    error_set(error, "a path is required");
    return error_at(error, "path");
}

static bool check_profiling(const struct pprof_profiling_config *profiling, struct error *error)
{
    const struct pprof_custom_config *custom = profiling->custom.items;
    for (size_t i = 0; i < profiling->custom.count; i++) {
        bool is_valid = check_profile(&custom[i].profile, error);
        if (is_valid && custom[i].name[0] == '\0') {
            error_set(error, "a name is required: it becomes the label __name__");
            is_valid = error_at(error, "name");
        }
        if (!is_valid) {
            error_at_index(error, i);
            return error_at(error, "profile.custom");
        }
    }
    return true;
}

static bool job_check(const void *section, struct error *error)
{
    const struct pprof_job_config *job = section;
    struct pprof_times times;
    if (job->job_name[0] == '\0') {
        error_set(error, "a name is required: it becomes the label job");
        return error_at(error, "job_name");
    }
    return (check_profiling(&job->profiling, error) || error_at(error, "profiling_config")) &&
           pprof_times_of(job, &times, error) &&
           scrape_discovery_check(&job->discovery, job->relabel_configs.count > 0, error) &&
           scrape_http_check(&job->http, error) && scrape_params_check(job->params, error) &&
           scrape_rules_check("relabel_configs", &job->relabel_configs, RELABEL_NAMES_UTF8, error);
}

bool pprof_receiver_check(const void *config, struct error *error)
{
    const struct pprof_receiver_config *receiver = config;
    const struct pprof_job_config *jobs = receiver->scrape_configs.items;
    if (receiver->scrape_configs.count == 0) {
        error_set(error, "no scrape_configs: there is nothing to scrape");
        return error_at(error, "scrape_configs");
    }
    for (size_t i = 0; i < receiver->scrape_configs.count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(jobs[k].job_name, jobs[i].job_name) == 0) {
                error_set(error, "there are two jobs \"%s\"", jobs[i].job_name);
                error_at(error, "job_name");
                error_at_index(error, i);
                return error_at(error, "scrape_configs");
            }
    return true;
}
