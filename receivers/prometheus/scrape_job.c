/* SPDX-License-Identifier: Apache-2.0 */
/* Makes jobs ready. Runs on the lane that creates them. */
#include "receivers/prometheus/scrape_job.h"

#include "src/base/error.h"
#include "src/base/mem.h"

#include <stdio.h>
#include <string.h>

static char *accept_header(const struct scrape_settings *settings)
{
    static const char *const types[SCRAPE_PROTOCOLS] = {
        [SCRAPE_PROTOBUF] = "", /* not read, so not asked for */
        [SCRAPE_TEXT_0_0_4] = "text/plain;version=0.0.4",
        [SCRAPE_TEXT_1_0_0] = "text/plain;version=1.0.0",
        [SCRAPE_OPENMETRICS_0_0_1] = "application/openmetrics-text;version=0.0.1",
        [SCRAPE_OPENMETRICS_1_0_0] = "application/openmetrics-text;version=1.0.0",
    };
    static const char *const escapings[] = {"allow-utf-8", "allow-utf-8", "underscores", "dots",
                                            "values"};
    enum { ENTRY_BYTES_MAX = 160 };
    size_t room = (SCRAPE_PROTOCOLS + 1) * (size_t)ENTRY_BYTES_MAX;
    char *header = mem_alloc(room);
    size_t size = 0;
    size_t weight = SCRAPE_PROTOCOLS + 1;
    for (size_t i = 0; i < settings->protocols_count; i++) {
        enum scrape_protocol protocol = settings->protocols[i];
        if (protocol == SCRAPE_PROTOBUF)
            continue;
        bool has_escaping = protocol == SCRAPE_TEXT_1_0_0 || protocol == SCRAPE_OPENMETRICS_1_0_0;
        size += (size_t)snprintf(header + size, room - size, "%s%s%s;q=0.%zu,", types[protocol],
                                 has_escaping ? ";escaping=" : "",
                                 has_escaping ? escapings[settings->limits.name_escaping] : "",
                                 weight--);
    }
    snprintf(header + size, room - size, "*/*;q=0.%zu", weight);
    return header;
}

static void prepare_start(struct scrape_job *job)
{
    job->start = (struct scrape_start){
        .job_name = job->config->job_name,
        .rules = job->rules,
        .params = job->config->params,
        .interval_ns = job->settings.interval_ns,
        .timeout_ns = job->settings.timeout_ns,
        .presets = {{.key = "__metrics_path__", .value = job->config->metrics_path},
                    {.key = "__scheme__", .value = job->config->scheme == 0 ? "http" : "https"}},
        .presets_count = 2,
        .path_label = "__metrics_path__",
    };
}

struct scrape_job *scrape_job_create(const struct scrape_global_config *global,
                                     const struct scrape_job_config *config, struct error *error)
{
    struct scrape_job *job = mem_zalloc(sizeof(*job));
    job->config = config;
    if (!scrape_settings_of(&global->limits, config, &job->settings, error) ||
        !scrape_rules_create("relabel_configs", &config->relabel_configs, job->settings.names,
                             &job->rules, error) ||
        !scrape_rules_create("metric_relabel_configs", &config->metric_relabel_configs,
                             job->settings.names, &job->metric_rules, error)) {
        scrape_job_destroy(job);
        return NULL;
    }
    bool is_openmetrics = strncmp(config->fallback_protocol, "OpenMetrics", 11) == 0;
    job->fallback = is_openmetrics ? EXPOSITION_PROTOCOL_OPENMETRICS : EXPOSITION_PROTOCOL_TEXT;
    job->accept = accept_header(&job->settings);
    prepare_start(job);
    return job;
}

void scrape_job_destroy(struct scrape_job *job)
{
    if (job == NULL)
        return;
    relabel_rules_destroy(job->rules);
    relabel_rules_destroy(job->metric_rules);
    mem_free(job->accept);
    mem_free(job);
}
