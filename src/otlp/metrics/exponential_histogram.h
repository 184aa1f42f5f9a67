/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms that values are added to: exponential ones (opentelemetry.io/docs/specs/otel/metrics/
 * data-model, "ExponentialHistogram"; the same scale and buckets as lightstep/go-expohisto, which
 * the Go collector uses), and the bucket of an explicit one. One owner, one thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct budget;

enum {
    EXPONENTIAL_SIZE_MIN = 2,
    EXPONENTIAL_SIZE_MAX = 16384,
    EXPONENTIAL_SIZE_DEFAULT = 160,
    EXPONENTIAL_SCALE_MAX = 20,
    EXPONENTIAL_SCALE_MIN = -10, /* where two buckets hold every value */
    EXPONENTIAL_INLINE_BYTES = 16,
};

/* The counts are a ring of buckets of 1, 2, 4 or 8 bytes, in the struct while they are few. */
struct exponential_histogram {
    uint64_t count;
    uint64_t zero_count;
    double sum;
    double min; /* of all values, zeros too, if count > 0 */
    double max;
    int32_t first; /* indices of the lowest and the highest bucket in use … */
    int32_t last;
    int32_t base;       /* … and of the one at the begin of the ring */
    uint32_t allocated; /* bytes of counts.many, charged; 0: counts.few is used */
    uint16_t capacity;  /* buckets of the ring */
    int8_t scale;
    uint8_t width; /* bytes of a bucket; 0: none is in use */
    union {
        uint8_t few[EXPONENTIAL_INLINE_BYTES];
        void *many;
    } counts;
};

void exponential_histogram_init(struct exponential_histogram *histogram);
/* budget may be NULL, but is always the same for a histogram. */
void exponential_histogram_fini(struct exponential_histogram *histogram, struct budget *budget);
/* Adds the value `times` times. What is not above 0, NaN too, counts as 0. max_size: buckets at
 * most, from EXPONENTIAL_SIZE_MIN to _MAX; when more were needed, neighbours are merged. Where the
 * budget or the allocator refuses memory, the buckets become wider instead: no value is lost. */
void exponential_histogram_add(struct exponential_histogram *histogram, double value,
                               uint64_t times, uint32_t max_size, struct budget *budget);
/* Adds all that the other has. */
void exponential_histogram_merge(struct exponential_histogram *histogram,
                                 const struct exponential_histogram *other, uint32_t max_size,
                                 struct budget *budget);

/* As a data point has them; without values above 0 the scale is 0, and there are no buckets. */
int32_t exponential_histogram_scale(const struct exponential_histogram *histogram);
int32_t exponential_histogram_offset(const struct exponential_histogram *histogram);
uint32_t exponential_histogram_buckets(const struct exponential_histogram *histogram);
uint64_t exponential_histogram_bucket(const struct exponential_histogram *histogram, uint32_t i);

/* The bucket of an explicit histogram: the first whose upper bound is not below the value; the last
 * is unbounded. Of bounds without order it is the one that Go's sort.SearchFloat64s gives. */
static inline size_t explicit_bucket(const double *bounds, size_t count, double value)
{
    size_t from = 0;
    size_t to = count;
    while (from < to) {
        size_t middle = (from + to) / 2;
        if (bounds[middle] >= value)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}
