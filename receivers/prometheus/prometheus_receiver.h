/* SPDX-License-Identifier: Apache-2.0 */
/* The instance of the prometheus receiver, which prometheus_simple has as its first member. On its
 * lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "receivers/prometheus/prometheus_config.h"
#include "receivers/prometheus/scrape_job.h"
#include "receivers/prometheus/scrape_job_list.h"
#include "receivers/scrape/scrape_http.h"
#include "receivers/scrape/scrape_pool.h"
#include "src/base/counter.h"
#include "src/core/component.h"
#include "src/prometheus/relabel.h"

struct codec_box;
struct error;

struct prometheus_receiver_counters {
    struct scrape_counters scrape;
    counter duplicates;
};

extern const struct counter_row prometheus_receiver_counter_rows[];

struct prometheus_receiver {
    struct component base;
    const struct prometheus_receiver_config *config;
    struct scrape_job_list list;
    /* One of each for each of them. */
    struct scrape_job **jobs;
    struct target_job *targets;
    struct scrape_http *https;
    size_t jobs_count;
    struct scrape_pool pool;
    struct relabel_labels labels; /* of the walks */
    struct codec_box *codecs;     /* of the walks */
};

/* The slot create with that configuration, which is borrowed. */
bool prometheus_receiver_open(struct component *base,
                              const struct prometheus_receiver_config *config, struct error *error);
bool prometheus_receiver_start(struct component *base, struct error *error);
void prometheus_receiver_stop(struct component *base);
void prometheus_receiver_destroy(struct component *base);
