/* SPDX-License-Identifier: Apache-2.0 */
/* A target: what is scraped, with the labels that relabeling leaves (prometheus/prometheus 0.312,
 * scrape/target.go). Constant once made, and shared by lanes; any thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/config/field.h"
#include "src/prometheus/prometheus_label.h"
#include "src/prometheus/relabel.h"

struct budget;
struct error;

/* Labels that a target begins with, unless its discovery has set them. */
enum { SCRAPE_PRESETS_MAX = 6 };

/* What all targets of a job begin with. Borrowed, constant. */
struct scrape_start {
    const char *job_name;
    const struct relabel_rules *rules; /* NULL: none */
    const struct config_value *params; /* of the URL; NULL: none */
    uint64_t interval_ns;
    uint64_t timeout_ns;
    uint64_t more_timeout_ns; /* beyond the label __scrape_timeout__ */
    struct config_pair presets[SCRAPE_PRESETS_MAX];
    size_t presets_count;
    /* The labels whose values, joined, are the path of the URL; NULL: not used. */
    const char *path_prefix_label;
    const char *path_label;
};

/* Targets with the same labels, as a discovery gives them. */
struct target_group {
    const struct slice *targets; /* "host:port" */
    size_t targets_count;
    const struct prometheus_label *labels;
    size_t labels_count;
};

struct scrape_target {
    _Atomic unsigned refs;
    struct budget *budget; /* of its bytes; NULL: not charged */
    size_t bytes;
    size_t job; /* place of its job, and of its start among the job's */
    size_t start;
    unsigned lane;                   /* that scrapes it */
    struct prometheus_label *labels; /* of each of its series; sorted by name */
    size_t labels_count;
    struct slice job_name; /* its labels job and instance */
    struct slice instance;
    char *url;
    char *shown; /* the URL without its secrets, for messages */
    uint64_t interval_ns;
    uint64_t timeout_ns;
    uint64_t hash;  /* of labels, URL and times */
    uint64_t place; /* the same in each process: where in the interval it is scraped */
};

/* With one reference. NULL: relabeling drops it, which leaves error's text empty; or error says why
 * it is no target. */
struct scrape_target *scrape_target_create(const struct scrape_start *start, struct slice address,
                                           const struct prometheus_label *labels,
                                           size_t labels_count, struct relabel_labels *work,
                                           struct budget *budget, struct error *error);
struct scrape_target *scrape_target_ref(struct scrape_target *target);
/* NULL is a no-op. */
void scrape_target_unref(struct scrape_target *target);
/* A label's value; of size 0: there is none. */
struct slice scrape_target_label(const struct scrape_target *target, const char *name);
