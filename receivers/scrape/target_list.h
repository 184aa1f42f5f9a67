/* SPDX-License-Identifier: Apache-2.0 */
/* The targets of all jobs of a receiver as they are at one time, each dealt to a lane. Made on one
 * thread, constant afterwards, and shared by the lanes. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "receivers/scrape/scrape_target.h"
#include "src/base/hash_table.h"
#include "src/prometheus/relabel.h"

struct budget;
struct logger;
struct scrape_discovery_config;

enum {
    SCRAPE_TARGETS_MAX = 100000, /* of a receiver */
    TARGETS_LOGGED_MAX = 10,     /* that are left out, of one list */
};

/* A job: one of scrape_configs. Borrowed, constant. */
struct target_job {
    const char *name;
    const struct scrape_discovery_config *discovery;
    const struct scrape_start *starts; /* each address becomes a target for each of them */
    size_t starts_count;
    uint64_t targets_max; /* target_limit; 0: none */
};

struct scrape_target_list {
    _Atomic unsigned refs;
    struct budget *budget;
    size_t bytes;
    struct scrape_target **targets; /* a reference to each; none of one job and start twice */
    size_t count;
    bool *has_too_many; /* by job: target_limit is exceeded */
    size_t jobs_count;
};

struct scrape_target_list *scrape_target_list_ref(struct scrape_target_list *list);
/* NULL is a no-op. */
void scrape_target_list_unref(struct scrape_target_list *list);

struct target_list_builder {
    const struct target_job *jobs;
    size_t jobs_count;
    struct budget *budget;
    const struct logger *logger; /* of targets that are left out */
    struct hash_table former;    /* of the last list, by hash: what stays is kept, with its lane */
    struct hash_table known;     /* of this list */
    struct relabel_labels labels;
    size_t *loads; /* targets of each lane */
    unsigned lanes;
    size_t *counts; /* targets of each job */
    struct scrape_target **targets;
    size_t count;
    size_t room;
    size_t left_out;
    bool has_failed; /* no memory */
};

/* former: the last list, which must outlive the builder; NULL: none. */
void target_list_begin(struct target_list_builder *builder, const struct target_job *jobs,
                       size_t jobs_count, unsigned lanes, const struct scrape_target_list *former,
                       struct budget *budget, const struct logger *logger);
/* Adds the targets of a group to those of the job at that place. */
void target_list_add(struct target_list_builder *builder, size_t job,
                     const struct target_group *group);
/* Adds what static_configs of the job has. */
void target_list_add_static(struct target_list_builder *builder, size_t job);
/* Ends the builder. The list with one reference; NULL: no memory. */
struct scrape_target_list *target_list_end(struct target_list_builder *builder);
