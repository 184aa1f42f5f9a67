/* SPDX-License-Identifier: Apache-2.0 */
/* The series of one request while it is translated, found by their labels, with samples, native
 * histograms and exemplars; then written as WriteRequests of a bounded size (prometheus/prompb,
 * remote.proto and types.proto). One owner; any thread, one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/hash_table.h"
#include "src/base/slice.h"

struct budget;
struct buffer;
struct remote_write_sample;
struct remote_write_message;

struct remote_write_series {
    struct remote_write_series *next; /* in the order in which they came */
    struct slice labels;              /* encoded as field 1 of TimeSeries */
    struct remote_write_sample *samples, *last_sample;
    struct remote_write_message *exemplars, *last_exemplar;
    struct remote_write_message *histograms, *last_histogram;
    size_t bytes;    /* of the encoded TimeSeries */
    uint64_t points; /* data points of which this is the first series */
    bool is_unsorted;
};

struct remote_write_set {
    struct budget *budget; /* NULL: not charged */
    struct arena arena;
    struct hash_table table;
    size_t charged; /* for the table */
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

/* The series with those labels, which are copied. NULL: no memory, or it is full. */
struct remote_write_series *remote_write_set_series(struct remote_write_set *set,
                                                    struct slice labels);
/* time_ms: Unix time. These keep nothing when memory is short or the set is full. */
void remote_write_set_sample(struct remote_write_set *set, struct remote_write_series *series,
                             double value, int64_t time_ms);
/* Room for an encoded Exemplar, Histogram or MetricMetadata, which the caller fills: NULL as
 * above. series NULL: metadata. */
enum remote_write_kind { REMOTE_WRITE_EXEMPLAR, REMOTE_WRITE_HISTOGRAM, REMOTE_WRITE_METADATA };
uint8_t *remote_write_set_message(struct remote_write_set *set, struct remote_write_series *series,
                                  enum remote_write_kind kind, size_t bytes);

/* Where the writing of WriteRequests stands. */
struct remote_write_cursor {
    struct remote_write_series *series; /* the next one */
    const struct remote_write_message *metadata;
};

enum remote_write_next { REMOTE_WRITE_REQUEST, REMOTE_WRITE_NO_MORE, REMOTE_WRITE_NO_BUDGET };

struct remote_write_cursor remote_write_cursor_of(const struct remote_write_set *set);
/* The next WriteRequest: series whose encoded bytes are below bytes_max together, or one larger
 * one; metadata comes last, in requests of its own. The buffer is the caller's. */
enum remote_write_next remote_write_cursor_next(struct remote_write_cursor *cursor,
                                                struct budget *budget, size_t bytes_max,
                                                struct buffer **ret_request, uint64_t *ret_points);
