/* SPDX-License-Identifier: Apache-2.0 */
/* Counts exceptions by service, span name, kind, status and dimensions, and writes the counts as
 * metrics. One for all lanes; its user holds a lock around each call but exception_point.
 * Everything is charged to the budget. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connectors/exceptions/exception_reader.h"
#include "connectors/shared/metric_flush.h"
#include "src/base/arena.h"
#include "src/base/hash_table.h"
#include "src/base/scratch.h"
#include "src/base/slice.h"

struct batch;
struct budget;

enum {
    EXCEPTION_TEXT_BYTES_MAX = 4096, /* longer names and values are cut */
    EXCEPTION_EXEMPLARS_MAX = 8,     /* of a series and flush; the last ones stay */
};

/* Where an exception counts: what tells series apart, and their attributes. */
struct exception_point {
    struct slice key;
    uint64_t hash;
    struct slice attributes; /* encoded KeyValues, as for metric_writer_put_integer */
    struct slice trace_id;
    struct slice span_id;
};

struct exception_series;

struct exception_store {
    struct budget *budget;
    uint64_t seed;
    uint64_t series_max; /* without the overflow series; 0: no limit */
    bool has_exemplars;
    uint64_t start_ns; /* Unix time */
    struct hash_table table;
    struct exception_series **list; /* all of them, in the order in which they came */
    size_t count;
    size_t capacity;
    struct exception_series *overflow; /* one of them, or NULL */
};

void exception_store_init(struct exception_store *store, uint64_t series_max, bool has_exemplars,
                          struct budget *budget);
/* Forgets everything and frees all memory; it can be used again. */
void exception_store_clear(struct exception_store *store);

/* Texts of a span's, event's or resource's values, made once for all its exceptions. */
struct exception_texts {
    uint64_t number;                     /* which span or resource; 0: not known */
    uint64_t has;                        /* a bit for each dimension whose text was asked for */
    struct slice list[WANTED_NAMES_MAX]; /* no data: there was no memory for it */
    struct arena arena;                  /* those that are no strings */
};

/* Where points are made, from one batch; one user at a time. */
struct exception_bench {
    struct scratch point;
    struct exception_texts span;
    struct exception_texts event;
    struct exception_texts resource;
};
void exception_bench_init(struct exception_bench *bench, struct budget *budget);
void exception_bench_fini(struct exception_bench *bench);

/* Makes the point of an exception, which is valid until the next one. Any thread, without the lock.
 * False: no memory. */
bool exception_point_make(const struct exception_store *store, const struct exception_keys *keys,
                          const struct exception *exception, struct exception_bench *bench,
                          struct exception_point *ret_point);
/* Counts it. False: no memory. */
bool exception_store_add(struct exception_store *store, const struct exception_point *point);
/* Writes the next series from *at on, which begins as 0, as one request. */
enum metric_piece exception_store_write(struct exception_store *store, uint64_t wall_ns, size_t *at,
                                        struct batch **ret_batch);
