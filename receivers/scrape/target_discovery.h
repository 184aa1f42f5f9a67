/* SPDX-License-Identifier: Apache-2.0 */
/* Discovers targets as Prometheus does: in files (file_sd_configs; discovery/file) and from servers
 * (http_sd_configs; discovery/http). One for all lanes, on lane 0. Files and responses are read on
 * that lane's helper, which also makes the targets: it alone touches the groups. What cannot be
 * read is logged and counted, and the targets it had stay. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "receivers/scrape/target_list.h"
#include "src/base/counter.h"

struct budget;
struct error;
struct lane;
struct logger;
struct target_discovery;

enum {
    DISCOVERY_FILES_MAX = 1024, /* of one of file_sd_configs */
    DISCOVERY_FOLDERS_MAX = 64, /* watched for one of file_sd_configs */
};
/* After a file has changed, for the rest of the change. */
#define DISCOVERY_SETTLE_NS ((uint64_t)100 * NS_PER_MS)
/* Between changes of files at least. */
#define DISCOVERY_REST_NS ((uint64_t)1 * NS_PER_S)

struct target_discovery_settings {
    struct lane *lane;
    unsigned lanes; /* to which targets are dealt */
    struct budget *budget;
    const struct logger *logger;
    const struct target_job *jobs;
    size_t jobs_count;
    bool is_rehearsed;
    counter *file_errors;   /* files that could not be read */
    counter *http_failures; /* requests that brought no list */
    /* The targets are others now; takes the list. Never from inside a function here. */
    void (*changed)(struct scrape_target_list *list, void *arg);
    void *arg;
};

/* Copies settings, and opens the files of logins. NULL: error has the reason, at a key of
 * the job at place error->steps' last index. */
struct target_discovery *target_discovery_create(const struct target_discovery_settings *settings,
                                                 struct error *error);
/* Begins to discover. Returns the list of static targets; NULL: no memory. */
struct scrape_target_list *target_discovery_start(struct target_discovery *discovery);
/* Calls stopped(arg) once nothing runs any longer, perhaps at once. */
void target_discovery_stop(struct target_discovery *discovery, void (*stopped)(void *arg),
                           void *arg);
/* NULL is a no-op. */
void target_discovery_destroy(struct target_discovery *discovery);
