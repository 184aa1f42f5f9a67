/* SPDX-License-Identifier: Apache-2.0 */
/* Collects jobs. Main thread, when the configuration is checked and when instances are created. */
#include "receivers/prometheus/scrape_job_list.h"

#include <glob.h>
#include <string.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/config/section_file.h"

static void add(struct scrape_job_list *list, const struct config_sections *sections)
{
    const struct scrape_job_config *jobs = sections->items;
    list->jobs = (const struct scrape_job_config **)mem_resize(
        list->jobs, (list->count + sections->count + 1) * sizeof(const struct scrape_job_config *));
    for (size_t i = 0; i < sections->count; i++)
        list->jobs[list->count++] = &jobs[i];
}

/* What needs global, or the other jobs. */
static bool check(const struct scrape_job_list *list, size_t place,
                  const struct prometheus_config *config, struct error *error)
{
    const struct scrape_job_config *job = list->jobs[place];
    struct scrape_settings settings;
    if (!scrape_settings_of(&config->global.limits, job, &settings, error) ||
        !scrape_rules_check("relabel_configs", &job->relabel_configs, settings.names, error) ||
        !scrape_rules_check("metric_relabel_configs", &job->metric_relabel_configs, settings.names,
                            error))
        return false;
    for (size_t i = 0; i < place; i++)
        if (strcmp(list->jobs[i]->job_name, job->job_name) == 0) {
            error_set(error, "there are two jobs \"%s\"", job->job_name);
            return error_at(error, "job_name");
        }
    return true;
}

static void set_directory(const struct config_sections *sections, const char *path,
                          struct arena *arena)
{
    struct scrape_job_config *jobs = sections->items;
    const char *slash = strrchr(path, '/');
    size_t size = slash != NULL ? (size_t)(slash - path) : 0;
    const char *directory = slash != NULL ? arena_copy_text(arena, path, size) : ".";
    for (size_t i = 0; i < sections->count; i++) {
        scrape_http_set_directory(&jobs[i].http, directory, arena);
        scrape_discovery_set_directory(&jobs[i].discovery, directory, arena);
    }
}

static bool read_file(struct scrape_job_list *list, const char *path,
                      const struct prometheus_config *config, struct error *error)
{
    struct scrape_jobs_file jobs = {.scrape_configs = {.count = 0}};
    if (list->files_count == SCRAPE_CONFIG_FILES_MAX)
        return error_set(error, "these are more than %d files: merge some",
                         SCRAPE_CONFIG_FILES_MAX);
    list->files = mem_resize(list->files, (list->files_count + 1) * sizeof(struct section_file));
    struct section_file *file = &list->files[list->files_count++];
    if (!section_file_read(file, path, &scrape_jobs_file_field, &jobs, error))
        return false;
    set_directory(&jobs.scrape_configs, path, &file->arena);
    size_t before = list->count;
    add(list, &jobs.scrape_configs);
    for (size_t i = before; i < list->count; i++)
        if (!check(list, i, config, error)) {
            /* The keys are those of the file. */
            error->steps_count = 0;
            return error_prefix(error, "%s: job %s", path, list->jobs[i]->job_name);
        }
    return true;
}

static bool read_pattern(struct scrape_job_list *list, const char *pattern,
                         const struct prometheus_config *config, struct error *error)
{
    glob_t found = {.gl_pathc = 0};
    bool is_read = true;
    if (glob(pattern, GLOB_PERIOD, NULL, &found) == 0)
        for (size_t i = 0; is_read && i < found.gl_pathc; i++)
            is_read = read_file(list, found.gl_pathv[i], config, error);
    globfree(&found);
    return is_read;
}

bool scrape_job_list_read(struct scrape_job_list *list, const struct prometheus_config *config,
                          struct error *error)
{
    *list = (struct scrape_job_list){.count = 0};
    add(list, &config->scrape_configs);
    for (size_t i = 0; i < list->count; i++)
        if (!check(list, i, config, error)) {
            error_at_index(error, i);
            return error_at(error, "scrape_configs");
        }
    for (size_t i = 0; i < config->scrape_config_files.count; i++)
        if (!read_pattern(list, config->scrape_config_files.texts[i], config, error)) {
            bool is_unsupported = error->is_unsupported;
            error_at_index(error, i);
            error_at(error, "scrape_config_files");
            return is_unsupported ? error_unsupported(error) : false;
        }
    return true;
}

void scrape_job_list_free(struct scrape_job_list *list)
{
    for (size_t i = 0; i < list->files_count; i++)
        section_file_free(&list->files[i]);
    mem_free(list->files);
    mem_free(list->jobs);
    *list = (struct scrape_job_list){.count = 0};
}
