/* SPDX-License-Identifier: Apache-2.0 */
/* The series of one request while it is translated, found by their labels, with samples, native
 * histograms and exemplars; then written as requests of a bounded size, of remote write 1.0
 * (prometheus/prompb, remote.proto and types.proto) or 2.0 (io/prometheus/write/v2/types.proto).
 * One owner; any thread, one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/hash_table.h"
#include "src/base/slice.h"

struct budget;
struct buffer;

/* A string of version 2.0, there once in the set, and once in each request that needs it. */
struct remote_write_symbol {
    struct slice text;
    struct remote_write_symbol *next; /* in its request */
    uint32_t request;                 /* the last request that it is in; 0: none */
    uint32_t place;                   /* there, from 0 */
};

struct remote_write_sample {
    struct remote_write_sample *next;
    int64_t time_ms;
    double value;
};

/* An encoded message. */
struct remote_write_message {
    struct remote_write_message *next;
    size_t size;
    uint8_t bytes[];
};

/* Of version 2.0. */
struct remote_write_exemplar {
    struct remote_write_exemplar *next;
    double value;
    int64_t time_ms;
    size_t count; /* of symbols: names and values of labels by turns */
    struct remote_write_symbol *symbols[];
};

struct remote_write_series {
    struct remote_write_series *next; /* in the order in which they came */
    /* 1.0: encoded as field 1 of TimeSeries. 2.0: pointers to symbols, names and values by turns.
     */
    struct slice labels;
    struct remote_write_sample *samples, *last_sample;
    struct remote_write_message *exemplars, *last_exemplar;  /* 1.0 */
    struct remote_write_exemplar *samplings, *last_sampling; /* 2.0: its exemplars */
    struct remote_write_message *histograms, *last_histogram;
    struct remote_write_symbol *help, *unit; /* 2.0, with its type */
    unsigned type;
    size_t bytes;    /* of the encoded TimeSeries; 2.0: of its samples and histograms */
    size_t whole;    /* 2.0: of all in the request at hand */
    uint64_t points; /* data points of which this is the first series */
    bool is_unsorted;
};

struct remote_write_set {
    struct budget *budget; /* NULL: not charged */
    struct arena arena;
    struct hash_table table;
    struct hash_table symbols;
    struct remote_write_symbol empty; /* the first of each request */
    bool is_v2;                       /* chosen before the first series */
    size_t charged;                   /* for the table */
    uint64_t seed;
    size_t bytes_max; /* of all that is kept and will be written */
    size_t bytes;     /* of encoded series and metadata */
    size_t count;
    struct remote_write_series *first, *last;
    struct remote_write_message *metadata, *last_metadata;
    bool is_full; /* sticky: more than bytes_max, or more work than it may cost */
    bool has_no_memory;
};

void remote_write_set_init(struct remote_write_set *set, size_t bytes_max, struct budget *budget);
void remote_write_set_fini(struct remote_write_set *set);

/* The symbol of that text, which is copied. NULL: no memory, or it is full. */
struct remote_write_symbol *remote_write_set_symbol(struct remote_write_set *set,
                                                    struct slice text);
/* The series with those labels, which are copied. NULL: no memory, or it is full. */
struct remote_write_series *remote_write_set_series(struct remote_write_set *set,
                                                    struct slice labels);
/* time_ms: Unix time. These keep nothing when memory is short or the set is full. */
void remote_write_set_sample(struct remote_write_set *set, struct remote_write_series *series,
                             double value, int64_t time_ms);
/* Room for an encoded Histogram, or of version 1.0 an Exemplar or MetricMetadata, which the caller
 * fills: NULL as above. series NULL: metadata. */
enum remote_write_kind { REMOTE_WRITE_EXEMPLAR, REMOTE_WRITE_HISTOGRAM, REMOTE_WRITE_METADATA };
uint8_t *remote_write_set_message(struct remote_write_set *set, struct remote_write_series *series,
                                  enum remote_write_kind kind, size_t bytes);

/* An exemplar of version 2.0 with room for so many symbols, which the caller fills. NULL as above.
 */
struct remote_write_exemplar *remote_write_set_exemplar(struct remote_write_set *set,
                                                        struct remote_write_series *series,
                                                        size_t count);

/* Where the writing of requests stands. */
struct remote_write_cursor {
    struct remote_write_set *set;
    struct remote_write_series *series; /* the next one */
    const struct remote_write_message *metadata;
    uint32_t request; /* 2.0: of so many requests, the last one */
    size_t written;   /* 2.0: bytes of them */
};

enum remote_write_next {
    REMOTE_WRITE_REQUEST,
    REMOTE_WRITE_NO_MORE,
    REMOTE_WRITE_NO_BUDGET,
    /* 2.0: all requests would be more than the set's bytes_max, since each repeats its symbols. */
    REMOTE_WRITE_TOO_MUCH,
};

/* The set's samples are put in order meanwhile. */
struct remote_write_cursor remote_write_cursor_of(struct remote_write_set *set);
/* The next request: series whose encoded bytes are below bytes_max together (2.0: with their
 * symbols), or one larger one; 1.0: metadata comes last, in requests of its own. The buffer is the
 * caller's. */
enum remote_write_next remote_write_cursor_next(struct remote_write_cursor *cursor,
                                                struct budget *budget, size_t bytes_max,
                                                struct buffer **ret_request, uint64_t *ret_points);
