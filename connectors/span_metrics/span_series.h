/* SPDX-License-Identifier: Apache-2.0 */
/* The series of span_metrics: by resource, then by metric, found by the hash of their labels. Each
 * holds a count, and the calls' or the durations' series a histogram. New series beyond the
 * configured number per resource and metric, or for which there is no memory, count in one overflow
 * series. Everything is charged to the budget.
 *
 * The store has one owner, a lane. Each lane adds to a store of its own; see
 * span_metrics_connector.c. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connectors/span_metrics/dimensions.h"
#include "src/base/hash_table.h"
#include "src/base/slice.h"
#include "src/otlp/metrics/exponential_histogram.h"
#include "src/otlp/metrics/metric_writer.h"

struct budget;

/* A series of SERIES_CALLS also has the durations when calls and durations have the same labels;
 * then SERIES_DURATION is empty. */
enum series_set { SERIES_CALLS, SERIES_DURATION, SERIES_EVENTS, SERIES_SETS };

/* All series of a connector may take this part of the budget; overflow series, which are few, may
 * exceed it. */
enum { SERIES_BUDGET_PART = 4 };
/* Labels of one series at most; what has more counts as overflow. */
enum { SERIES_LABELS_BYTES_MAX = 64 * 1024 };

enum series_histogram { HISTOGRAM_NONE, HISTOGRAM_EXPLICIT, HISTOGRAM_EXPONENTIAL };

/* With several lanes: the series that the main store had at the last flush, as bits at their keys,
 * so that a lane that sees many new series takes known ones for themselves. Written by lane 0 while
 * the other set is read by all lanes; sets that are too full let a few others pass. */
enum { KNOWN_BITS = 1 << 20 };

struct series_known {
    _Atomic unsigned current;
    _Atomic uint64_t sets[2][KNOWN_BITS / 64];
};

/* Shared by the stores of all lanes. */
struct series_settings {
    enum series_histogram histogram;
    bool has_common_labels; /* calls and durations have the same */
    const double *bounds;   /* explicit */
    size_t bounds_count;
    uint32_t max_size;    /* exponential */
    size_t exemplars_max; /* per series; 0: none */
    uint64_t series_max;  /* per resource and set; 0: no limit */
    uint64_t resources_max;
    uint64_t bytes_max;
    struct series_known *known; /* NULL: there is one lane, or no limit */
    _Atomic uint64_t bytes;     /* of all stores */
    struct budget *budget;
};

struct series_exemplars {
    size_t count;
    struct point_exemplar items[]; /* exemplars_max of them */
};

/* Behind it lie the histogram and the labels. */
struct series {
    struct series *next; /* of its resource and set */
    struct text_hash key;
    uint64_t start_ns; /* Unix time: when its first span came */
    uint64_t seen_ns;  /* clock_now_ns: when its last one came */
    uint64_t count;
    struct series_exemplars *exemplars; /* NULL: none so far */
    uint32_t zero_flush;                /* the flush that sent its zero; 0: none did */
    uint32_t service_bytes;             /* of the labels … */
    uint32_t name_bytes;
    uint32_t others_bytes; /* encoded KeyValues as field 1 */
    uint8_t kind;          /* as in Span; above 5: unknown */
    uint8_t status;        /* as in Status; above 2: unknown */
    bool is_overflow;
    uint32_t born; /* the store's flush at that time */
    uint64_t content[];
};

struct explicit_histogram {
    double sum;
    uint64_t counts[]; /* bounds_count + 1 */
};

struct series_list {
    struct series *first;
    struct series **end;
    uint64_t count;
    struct series *overflow; /* one of them, or NULL */
    struct hash_table table;
};

struct series_resource {
    struct text_hash key;
    struct series_resource *newer; /* by last use; evicted ones are not in that list */
    struct series_resource *older;
    struct series_resource *next; /* by creation */
    struct series_resource *prev;
    uint64_t seen_ns;
    bool is_evicted; /* sent once more, then forgotten unless it comes again */
    bool is_pinned;  /* a request is being added to it: it is not freed */
    struct series_list sets[SERIES_SETS];
    uint32_t attributes_bytes;
    uint8_t attributes[]; /* encoded KeyValues as field 1 */
};

struct series_store {
    struct series_settings *settings;
    struct hash_table resources;
    struct series_resource *first; /* by creation */
    struct series_resource *last;
    struct series_resource *newest; /* by last use */
    struct series_resource *oldest;
    uint64_t kept; /* resources that are not evicted */
    uint64_t evicted;
    uint64_t series;
    bool is_main;                     /* the one that is flushed */
    uint32_t flush;                   /* number of the last flush; 0: none so far */
    struct series_resource *flushing; /* moves on when that resource is freed … */
    bool has_moved_on;                /* … which is noted here */
};

void span_series_store_init(struct series_store *store, struct series_settings *settings);
void span_series_store_fini(struct series_store *store);

/* The resource with that key, now the last used; NULL: there is none. */
struct series_resource *span_series_resource_get(struct series_store *store, struct text_hash key,
                                                 uint64_t now_ns);
/* The caller knows that there is none. The longest unused one is evicted when there are too many.
 * NULL: no memory. */
struct series_resource *span_series_resource_add(struct series_store *store, struct text_hash key,
                                                 struct slice attributes, uint64_t now_ns);
/* It is not pinned. */
void span_series_resource_free(struct series_store *store, struct series_resource *resource);
/* It goes with the next flush but one. */
void span_series_resource_evict(struct series_store *store, struct series_resource *resource);

struct series *span_series_find(struct series_resource *resource, enum series_set set,
                                struct text_hash key);

/* Times of the present request. */
struct series_time {
    uint64_t wall_ns;
    uint64_t now_ns;
};

struct series_labels {
    struct slice service;
    struct slice name;
    struct slice others;
    uint8_t kind;
    uint8_t status;
};

/* Whether they are short enough for a series. */
bool span_series_fit(const struct series_labels *labels);
/* Whether there is room for a new one with that key, by number: for one that is known to the main
 * store twice as much. */
bool span_series_has_room(const struct series_store *store, const struct series_resource *resource,
                          enum series_set set, struct text_hash key);
/* The caller knows that there is none with that key. NULL: the labels are too long, or no memory.
 */
struct series *span_series_add(struct series_store *store, struct series_resource *resource,
                               enum series_set set, struct text_hash key,
                               const struct series_labels *labels, struct series_time time);
/* NULL: the allocator has no memory. */
struct series *span_series_overflow(struct series_store *store, struct series_resource *resource,
                                    enum series_set set, struct series_time time);
/* Frees *link, which is in that list of the resource. */
void span_series_remove(struct series_store *store, struct series_resource *resource,
                        enum series_set set, struct series **link);

bool span_series_has_histogram(const struct series_settings *settings, enum series_set set);
struct explicit_histogram *span_series_explicit(struct series *series);
struct exponential_histogram *span_series_exponential(struct series *series);
const uint8_t *span_series_labels_of(const struct series_settings *settings, enum series_set set,
                                     const struct series *series);
/* Adds spans of that duration. */
void span_series_observe(const struct series_settings *settings, enum series_set set,
                         struct series *series, double duration, uint64_t times);
/* The first ones of an interval stay. */
void span_series_exemplify(struct series_settings *settings, struct series *series,
                           const struct point_exemplar *exemplar);

/* Moves that many series into the other store, emptying this one, which gets no more spans. Spans
 * for which the other has no memory at all are added to *lost. False: this one is empty. */
bool span_series_store_merge(struct series_store *into, struct series_store *from, size_t most,
                             uint64_t *lost);

/* Lane 0: what the main store has is noted anew, and then counts. */
void span_series_known_begin(struct series_known *known);
void span_series_known_add(struct series_known *known, struct text_hash key);
void span_series_known_end(struct series_known *known);
