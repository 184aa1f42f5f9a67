/* SPDX-License-Identifier: Apache-2.0 */
/* The series of profile_metrics: what samples have measured since each series began. New series
 * beyond a number or a part of the budget, or for which there is no memory, count in one overflow
 * series. Charged to the budget. The store's user holds a lock around each call. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "connectors/profile_metrics/sample_sums.h"
#include "connectors/shared/metric_flush.h"
#include "src/base/hash_table.h"

struct batch;
struct budget;

enum { SUM_PIECE_SERIES = 256, SUM_PIECE_BYTES = 128 * 1024 }; /* of one request */
/* The part of the budget's limit that all series may take; the rest is for requests. */
enum { SUM_BUDGET_PART = 4 };
/* A resource with more counts as overflow: each request of a flush repeats it. */
enum { SUM_RESOURCE_BYTES_MAX = 64 * 1024 };

struct sum_series {
    struct sum_series *next; /* of its resource */
    const struct sum_resource *resource;
    uint64_t hash;
    uint64_t start_ns; /* Unix time */
    uint64_t seen_ns;  /* clock_now_ns */
    uint64_t values[MEASURES];
    uint32_t labels_bytes;
    uint8_t labels[]; /* encoded KeyValues as field 1 */
};

struct sum_resource {
    struct sum_resource *next;
    uint64_t hash;
    struct sum_series *series;
    struct sum_series **end;
    uint32_t attributes_bytes;
    uint8_t attributes[];
};

struct sum_store {
    struct budget *budget;
    uint64_t series_max;    /* 0: no limit */
    uint64_t expiration_ns; /* 0: never */
    const char *names[MEASURES];
    uint64_t seed;
    struct hash_table resources_table;
    struct hash_table series_table;
    struct sum_resource *resources;
    struct sum_resource **end;
    /* The resource of the sum before, in a run of sums. NULL: it has none. */
    struct slice last_attributes;
    struct sum_resource *last;
    bool has_last;
    uint64_t bytes;             /* charged for resources and series */
    uint64_t count;             /* of series */
    uint64_t overflow_start_ns; /* Unix time; 0: nothing is in it */
    uint64_t overflow[MEASURES];
    /* Where a flush is; NULL: at its end. */
    struct sum_resource **resource_at;
    struct sum_series **series_at;
    bool has_overflow_left;
};

void sum_store_init(struct sum_store *store, struct budget *budget);
/* Frees all series. The store can be used again. */
void sum_store_clear(struct sum_store *store);
/* Before a run of sums of one request, which are added under one lock. */
void sum_store_begin(struct sum_store *store);
/* wall_ns: Unix time now. */
void sum_store_add(struct sum_store *store, const struct sample_sum *sum, uint64_t now_ns,
                   uint64_t wall_ns);
/* Writes the next series of a flush as one request, and forgets those that expired. *ret_batch is
 * NULL where all that it looked at did. */
enum metric_piece sum_store_write(struct sum_store *store, bool is_first, uint64_t now_ns,
                                  uint64_t wall_ns, struct batch **ret_batch);
