/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the samples of one scrape into a request: OpenTelemetry specification, "Prometheus and
 * OpenMetrics Compatibility", with the details of the Go collector's prometheus receiver 0.155.
 * Samples of one family (foo_bucket, foo_sum, foo_count) become data points of one metric. One
 * owner, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/hash_table.h"
#include "src/base/slice.h"
#include "src/prometheus/exposition_reader.h"
#include "src/prometheus/relabel.h"

struct budget;
struct buffer;

struct scraped_settings {
    /* Of the target, for samples that have no job or instance of their own. */
    struct slice job;
    struct slice instance;
    struct slice scheme; /* "http" */
    bool trims_suffixes; /* unit and "_total" are taken off the names of metrics */
};

struct scraped_resource;
struct scraped_family;

struct scraped_metrics {
    struct scraped_settings settings;
    struct arena arena;                 /* of everything below */
    struct hash_table metadata;         /* by family's name */
    struct hash_table found_resources;  /* by job and instance */
    struct hash_table scopes;           /* by resource and labels */
    struct hash_table families;         /* by scope and name */
    struct hash_table groups;           /* by family and attributes */
    struct hash_table attributes;       /* of resources and scopes, by list and key */
    uint64_t lists;                     /* of attributes, so far */
    struct scraped_resource *resources; /* in order of appearance */
    struct scraped_resource *last_resource;
    struct scraped_family *family; /* of the last sample */
    struct slice family_metric;    /* the name of that sample */
    uint64_t points;               /* that write will write; set by it */
    bool is_former;                /* metadata is that of an earlier scrape */
    bool has_failed;               /* sticky: no memory */
};

enum scraped_result {
    SCRAPED,         /* it is in a data point; its series can become stale */
    SCRAPED_ELSE,    /* it went into the resource or the scope */
    SCRAPED_UNUSABLE /* it contradicts other samples of its family */
};

/* Takes memory from budget, at most max_bytes. What settings points to is borrowed until _fini. */
void scraped_metrics_init(struct scraped_metrics *metrics, const struct scraped_settings *settings,
                          size_t max_bytes, struct budget *budget);
void scraped_metrics_fini(struct scraped_metrics *metrics);

/* Takes in a line TYPE, HELP or UNIT, which holds for later samples. */
void scraped_metrics_describe(struct scraped_metrics *metrics,
                              const struct exposition_entry *entry);
/* From now on they are those of an earlier scrape: they count only where this one said nothing. */
void scraped_metrics_begin_former(struct scraped_metrics *metrics);

struct scraped_sample {
    const struct relabel_labels *labels;             /* __name__ is one of them */
    double value;                                    /* EXPOSITION_STALE_BITS: the series ends */
    int64_t time_ms;                                 /* Unix time */
    const struct exposition_read_exemplar *exemplar; /* NULL: none */
};

/* Copies what it keeps. */
enum scraped_result scraped_metrics_add(struct scraped_metrics *metrics,
                                        const struct scraped_sample *sample);
/* Writes the request, an encoded ExportMetricsServiceRequest, charged to budget. False: no memory.
 * An empty *ret_request: there are no points. The caller owns it. */
bool scraped_metrics_write(struct scraped_metrics *metrics, struct budget *budget,
                           struct buffer **ret_request);
