/* SPDX-License-Identifier: Apache-2.0 */
/* The scrapes of a receiver on one lane: a timer and a client for each target that is the lane's.
 * Targets come and go while the receiver runs (prometheus/prometheus 0.312, scrape/scrape.go): one
 * that stays keeps its place in the interval and its memory, one that goes is given up two
 * intervals later, after its receiver has marked its end. The pool of lane 0 discovers targets and
 * hands the list to the others. On the lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receivers/scrape/scrape_http.h"
#include "receivers/scrape/target_list.h"
#include "src/base/counter.h"
#include "src/base/hash_table.h"
#include "src/base/lane.h"
#include "src/base/signal_kind.h"
#include "src/base/stop_latch.h"
#include "src/base/timer.h"
#include "src/core/receipt.h"
#include "src/net/client/http_post.h"

struct buffer;
struct component;
struct error;
struct http_client;
struct scrape_pool;
struct target_discovery;

enum {
    SCRAPE_TIMEOUT_TEXT_BYTES_MAX = 32,
    SCRAPE_SYNC_TARGETS_MAX = 256,  /* in one turn */
    SCRAPE_CLIENT_BYTES = 8 * 1024, /* charged for a scrape beside its struct */
};
/* Until scrapes that the budget refused are tried again. */
#define SCRAPE_RETRY_NS ((uint64_t)10 * NS_PER_S)

/* Of a receiver that scrapes. */
struct scrape_counters {
    counter accepted[SIGNAL_KINDS];
    counter refused[SIGNAL_KINDS];
    counter scrapes;
    counter failures;
    counter targets;
    counter file_errors;
    counter http_failures;
};
/* Rows of a table of counters; field is a struct scrape_counters of owner, prefix begins the names
 * of our own counters. */
#define SCRAPE_COUNTERS(owner, field, signals, prefix)                                             \
    COUNTER_BY_SIGNAL(owner, field.accepted, COUNTER_SUM, "otelcol_receiver_accepted_%s", signals, \
                      "transport", "http",                                                         \
                      "Number of items successfully pushed into the pipeline."),                   \
        COUNTER_BY_SIGNAL(owner, field.refused, COUNTER_SUM, "otelcol_receiver_refused_%s",        \
                          signals, "transport", "http",                                            \
                          "Number of items that could not be pushed into the pipeline."),          \
        COUNTER(owner, field.targets, COUNTER_GAUGE, prefix "_targets",                            \
                "Number of targets that are scraped."),                                            \
        COUNTER(owner, field.scrapes, COUNTER_SUM, prefix "_target_scrapes",                       \
                "Number of scrapes of targets."),                                                  \
        COUNTER(owner, field.failures, COUNTER_SUM, prefix "_target_failures",                     \
                "Number of scrapes that failed."),                                                 \
        COUNTER(owner, field.file_errors, COUNTER_SUM, "prometheus_sd_file_read_errors",           \
                "The number of File-SD read errors."),                                             \
        COUNTER(owner, field.http_failures, COUNTER_SUM, "prometheus_sd_http_failures",            \
                "Number of HTTP service discovery refresh failures.")

/* A target of this lane. First member of what the receiver keeps of it. */
struct scrape {
    struct scrape_pool *pool;
    struct scrape_target *target; /* a reference */
    struct http_client *client;
    struct config_pair *headers;
    char timeout_text[SCRAPE_TIMEOUT_TEXT_BYTES_MAX]; /* of a header */
    struct timer timer;
    uint64_t due_ns; /* when the timer fires, on clock_now_ns's scale */
    uint64_t generation;
    struct scrape *next;
    struct scrape *previous;
    bool has_begun;       /* it was scraped once */
    bool is_running;      /* from due or leave to scrape_ended */
    bool is_leaving;      /* the target is gone */
    bool has_missed;      /* … and a scrape was due since: stale_ns is set */
    bool is_ending;       /* its receiver marks its end */
    bool is_closing;      /* not in the table any longer */
    bool is_asking;       /* the response is awaited */
    bool is_cut;          /* the client closes, since the receiver stops */
    bool has_no_client;   /* it has closed */
    struct lane_job last; /* the end of a scrape that outlives its client */
    uint64_t stale_ns;    /* Unix time of the first scrape that it has missed */
    /* of the scrape under way */
    uint64_t started_ns;
    uint64_t limit;      /* of the body; UINT64_MAX: none */
    struct buffer *body; /* NULL: nothing came yet */
    bool is_too_large;
    bool has_no_room; /* the budget refused the body */
    struct receipt receipt;
    uint64_t offered; /* items */
};

struct scrape_pool_ops {
    size_t scrape_size; /* of the struct that begins with a struct scrape; zeroed at first */
    bool sends_timeout; /* X-Prometheus-Scrape-Timeout-Seconds */
    void (*open)(struct scrape *scrape);
    /* It is time: calls scrape_get or not, and scrape_ended at the end, now or later. */
    void (*due)(struct scrape *scrape);
    /* After scrape_get. */
    void (*responded)(struct scrape *scrape, const struct http_result *result);
    /* The target is gone since scrape->stale_ns: calls scrape_ended at the end. NULL: nothing is
     * to be done. */
    void (*leave)(struct scrape *scrape);
    void (*close)(struct scrape *scrape);
};

struct scrape_pool_settings {
    struct component *component;
    enum signal_kind signal; /* of what scrapes bring */
    const struct scrape_pool_ops *ops;
    /* One of each for a job, borrowed. */
    const struct target_job *jobs;
    struct scrape_http *https;
    size_t jobs_count;
    uint64_t initial_offset_ns;
    bool scrapes_at_stop;
    struct scrape_counters *counters;
    /* The pool of the same component on another lane. */
    struct scrape_pool *(*pool_of)(struct component *component);
};

struct scrape_pool {
    struct scrape_pool_settings settings;
    struct lane *lane;
    struct hash_table table; /* of scrapes, by hash of the target */
    struct scrape *first;
    struct target_discovery *discovery; /* lane 0: not NULL */
    struct scrape_target_list *list;    /* the current one; NULL: none yet */
    size_t position;                    /* of the targets that were looked at */
    struct scrape *unswept;             /* then: the next that the list may lack; NULL: none */
    uint64_t generation;                /* of the list */
    bool is_short;                      /* the budget refused a scrape */
    struct timer turn;
    struct stop_latch users;
    bool is_stopping;
};

/* False: error has the reason, for the list of jobs; _fini is still due. */
bool scrape_pool_init(struct scrape_pool *pool, const struct scrape_pool_settings *settings,
                      struct error *error);
/* Begins to discover and scrape. Lane 0 is the last one that starts. */
bool scrape_pool_start(struct scrape_pool *pool, struct error *error);
/* Ends the scrapes, then calls component_stopped. */
void scrape_pool_stop(struct scrape_pool *pool);
void scrape_pool_fini(struct scrape_pool *pool);

/* Sends the request; the body is taken up to limit. */
void scrape_get(struct scrape *scrape, uint64_t limit);
/* Frees the body. */
void scrape_drop_body(struct scrape *scrape);
/* Offers what the scrape brought to the pipelines, and calls scrape_ended when they have it. Takes
 * the request over. */
void scrape_offer(struct scrape *scrape, struct buffer *request, uint64_t items);
/* What began with due or leave is over. */
void scrape_ended(struct scrape *scrape);
/* Whether target_limit of its job is exceeded. */
bool scrape_has_too_many(const struct scrape *scrape);
/* A response that was cut off because the receiver stops. */
bool scrape_is_cut_off(const struct scrape *scrape, const struct http_result *result);
/* Why the exchange is no response that could be read; false: it is one. */
bool scrape_judge(const struct scrape *scrape, const struct http_result *result, char *failure,
                  size_t failure_bytes);
