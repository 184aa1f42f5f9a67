/* SPDX-License-Identifier: Apache-2.0 */
/* What a series keeps of a data point besides a number: buckets, quantiles, exemplars. Counted,
 * under the lock of the store that it lies in; with more than one reference it never changes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/otlp/metrics/metric_reader.h"
#include "src/prometheus/exposition.h"

/* Buckets of an exponential histogram that lie side by side. */
struct metric_buckets {
    int32_t offset; /* index of the first */
    size_t count;
    uint64_t *counts;
};

struct metric_quantiles {
    size_t count;
    struct metric_quantile *list;
};

struct metric_distribution {
    unsigned refs;
    enum metric_kind kind;
    size_t bytes; /* allocated */
    uint64_t count;
    double sum;
    bool has_sum;
    size_t bounds_count; /* histogram */
    double *bounds;
    size_t counts_count;
    uint64_t *counts;
    int32_t scale; /* exponential histogram */
    uint64_t zero_count;
    double zero_threshold;
    struct metric_buckets positive;
    struct metric_buckets negative;
    struct metric_quantiles quantiles; /* summary */
    size_t exemplars_count;
    struct exposition_exemplar *exemplars;
};

/* Lengths of the arrays. */
struct metric_distribution_sizes {
    size_t bounds;
    size_t counts;
    size_t positive;
    size_t negative;
    size_t quantiles;
    size_t exemplars;
};

/* What a distribution of the point needs, and the bytes of memory for it, which the caller charges
 * before. */
struct metric_distribution_sizes metric_distribution_measure(const struct metric_point *point);
size_t metric_distribution_bytes(const struct metric_distribution_sizes *sizes);
/* Reads what the point has. sizes: those measured. NULL: no memory. */
struct metric_distribution *metric_distribution_of(const struct metric_point *point,
                                                   const struct metric_distribution_sizes *sizes);
/* A point of a delta series of (exponential) histograms is added to what was before; exemplars are
 * not kept. Without equal bounds the later counts count alone. */
/* Whether that leaves what was before as it is. Takes time for `after` alone. */
bool metric_distribution_stays(const struct metric_distribution *before,
                               const struct metric_distribution *after, bool is_after_newer);
/* What the sum needs, in constant time; charged as above. False: more than METRIC_BUCKETS_MAX
 * buckets. */
bool metric_distribution_measure_sum(const struct metric_distribution *before,
                                     const struct metric_distribution *after, bool is_after_newer,
                                     struct metric_distribution_sizes *ret_sizes);
/* Adds in place, if what was before has the scale, the threshold and the buckets of the sum, which
 * has a measure. before: with one reference. Takes time for `after` alone. False: nothing was
 * added. */
bool metric_distribution_add(struct metric_distribution *before,
                             const struct metric_distribution *after);
/* Takes time for both. sizes: those measured. NULL: no memory. */
struct metric_distribution *metric_distribution_sum(const struct metric_distribution *before,
                                                    const struct metric_distribution *after,
                                                    bool is_after_newer,
                                                    const struct metric_distribution_sizes *sizes);
/* NULL is a no-op. */
void metric_distribution_free(struct metric_distribution *distribution);

/* Of sums of exponential histograms, on each side. */
enum { METRIC_BUCKETS_MAX = 16384 };
