/* SPDX-License-Identifier: Apache-2.0 */
/* From what a target responded to a request: reads its samples, gives them the target's labels,
 * relabels them, marks series that have ended, and reports how the scrape went (up and the like),
 * as prometheus/prometheus 0.312 does (scrape/scrape_append_v2.go). Runs on the lane's helper, one
 * scrape of a target at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receivers/prometheus/scrape_job.h"
#include "receivers/prometheus/series_set.h"
#include "receivers/scrape/scrape_target.h"
#include "src/base/slice.h"

struct budget;
struct buffer;
struct codec_box;

/* What is kept of a target between its scrapes: which series the last one had, and its body, which
 * has their labels should they end. */
struct scrape_memory {
    struct series_set series;
    size_t good_count;   /* of series, after the last scrape that did not fail */
    struct buffer *body; /* compressed; NULL: there is none, or its series have ended already */
    uint64_t body_bytes; /* before compression */
    enum exposition_protocol protocol;
};

void scrape_memory_init(struct scrape_memory *memory, struct budget *budget);
void scrape_memory_fini(struct scrape_memory *memory);

enum { SCRAPE_FAILURE_BYTES_MAX = 512 };

struct scrape_walk {
    /* Given. */
    const struct scrape_job *job;
    const struct scrape_target *target;
    const struct config_pairs *external_labels;
    struct scrape_memory *memory;
    struct relabel_labels *labels; /* to work with */
    struct codec_box *codecs;
    struct budget *budget;
    struct slice body; /* not compressed */
    enum exposition_protocol protocol;
    bool trims_suffixes;
    int64_t time_ms; /* when the scrape began, Unix time */
    uint64_t duration_ns;
    int64_t body_bytes; /* for the report; -1: more than allowed */
    bool is_end;        /* the target is gone: all its series end, up and the like too */
    /* Given, and set by _run: why the scrape failed; "": it did not. */
    char failure[SCRAPE_FAILURE_BYTES_MAX];
    /* Set by _run. */
    struct buffer *request; /* the caller's; NULL: no memory even for the report */
    uint64_t points;
    uint64_t duplicates; /* samples that the body has twice */
};

/* Inflates what the target responded with in gzip, to at most so many bytes. *ret_body is the
 * caller's. False: walk->failure says why not, and body_bytes is set. */
bool scrape_walk_inflate(struct scrape_walk *walk, struct slice response, uint64_t bytes_max,
                         struct buffer **ret_body);
/* With a failure the body is not read: all series end, and the report says so. With is_end neither
 * is there a report. */
void scrape_walk_run(struct scrape_walk *walk);
