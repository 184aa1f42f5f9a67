/* SPDX-License-Identifier: Apache-2.0 */
/* What the store keeps, and what a snapshot of it holds. Only for metric_store.c, metric_sort.c and
 * metric_snapshot.c. Counts of references are guarded by the lock of the store; names, help texts
 * and labels never change. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/prometheus/label_shape.h"
#include "exporters/prometheus/metric_distribution.h"
#include "exporters/prometheus/metric_labels.h"
#include "src/prometheus/exposition.h"

struct budget;

/* A metric as Prometheus has it: a name, a help text, a type. */
struct family {
    unsigned refs; /* series */
    uint64_t hash;
    enum exposition_type type;
    struct slice name; /* in the same block */
    struct slice help;
    size_t live; /* series that are not removed */
};

/* A process that sends, with the labels of its target_info. */
struct resource {
    unsigned refs; /* series, and snapshots */
    uint32_t walk; /* see struct series */
    size_t live;
    struct metric_hash hash;
    struct metric_hash target; /* of job and instance */
    bool has_target;           /* it has both */
    bool has_plain_labels;
    uint64_t updated_ns;
    struct slice labels; /* in the same block */
};

struct series {
    unsigned refs;  /* the store, and snapshots */
    uint32_t place; /* in the order of the last scrape; PLACE_NONE: not yet */
    struct metric_hash hash;
    uint32_t form; /* of unit and temporality: another one makes another series of it */
    uint32_t values_bytes;
    struct family *family; /* NULL: it is not shown */
    union {
        struct label_shape *shape; /* shown */
        const char *unusable;      /* why it is not */
    };
    struct resource *resource;
    struct metric_distribution *distribution; /* NULL: only a number */
    uint64_t updated_ns;
    uint64_t time_ns; /* Unix time; of one that is not shown, when it came first (clock_now_ns) */
    uint64_t start_ns;
    union {
        int64_t integer;
        double real;
    };
    bool is_integer;
    bool is_removed;  /* a snapshot alone has it */
    bool has_escapes; /* values that are not as in the text format */
    uint32_t walk;    /* the snapshot that has seen it last, or the one before it came */
    uint8_t values[]; /* its own, see label_shape.h */
};

static inline struct label_values series_values(const struct series *series)
{
    return (struct label_values){.shape = series->shape,
                                 .own = slice_of(series->values, series->values_bytes),
                                 .has_escapes = series->has_escapes};
}

/* Series lie anywhere in memory: walks over many ask for those that come so much later. */
enum { SERIES_AHEAD = 12 };
static inline void series_prefetch(const struct series *series)
{
    __builtin_prefetch(series);
    __builtin_prefetch((const char *)series + 64);
    __builtin_prefetch((const char *)series + 128);
}

#define PLACE_NONE UINT32_MAX

/* Of one series, copied. */
struct shown {
    struct series *series;
    struct metric_distribution *distribution;
    uint64_t updated_ns;
    uint64_t time_ns;
    uint64_t start_ns;
    double value;
};

/* The resource of a target_info, with what lanes may change meanwhile. */
struct shown_resource {
    struct resource *resource;
    uint64_t updated_ns;
};

/* A snapshot is taken and released piece by piece. */
enum snapshot_stage {
    SNAPSHOT_ORDER,     /* takes what the last one has shown, */
    SNAPSHOT_NEWS,      /* what came since, */
    SNAPSHOT_RESOURCES, /* and the resources */
    SNAPSHOT_TAKEN,
    SNAPSHOT_FORGET_ORDER, /* of the last one */
    SNAPSHOT_RELEASE,      /* the series, in the order that the next one begins with */
    SNAPSHOT_RELEASE_RESOURCES,
    SNAPSHOT_RELEASED,
};

struct metric_snapshot {
    size_t bytes; /* charged */
    enum snapshot_stage stage;
    size_t at;         /* in the list or the table of the stage */
    size_t capacity;   /* of the table */
    unsigned passes;   /* over it */
    uint64_t since_ns; /* what came before that has expired */
    bool keeps_order;
    struct series **order; /* to be kept by the store; NULL: none is */
    bool has_timestamps;
    const char *target_name; /* the store's */
    size_t resources_count;
    struct shown_resource *resources;
    size_t count;
    size_t sorted_count; /* so many, the first ones, are in order */
    bool is_sorted;      /* all are */
    bool has_news;       /* they were not when it was made */
    struct shown *shown;
    size_t text_bytes;   /* about, of what is shown once */
    uint64_t line_bytes; /* about, of all lines of what was taken */
};

/* Puts the series in order, in memory that is charged to the budget (NULL: to none). False: no
 * memory. */
bool metric_snapshot_sort(struct metric_snapshot *snapshot, struct budget *budget);
