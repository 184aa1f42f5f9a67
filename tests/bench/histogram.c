/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies in logarithmic buckets: see the header. */
#include "tests/bench/histogram.h"

#include <assert.h>
#include <stddef.h>

enum { STEP_BITS = 6 };
static_assert(1 << STEP_BITS == HISTOGRAM_STEPS, "one bit pattern per step");

/* Below HISTOGRAM_STEPS a value is its own bucket; above, its six leading bits choose it. */
static size_t bucket_of(uint64_t value)
{
    if (value < HISTOGRAM_STEPS)
        return (size_t)value;
    unsigned shift = 63 - (unsigned)__builtin_clzll(value) - STEP_BITS;
    return (size_t)(shift + 1) * HISTOGRAM_STEPS + (size_t)((value >> shift) - HISTOGRAM_STEPS);
}

static uint64_t upper_end(size_t bucket)
{
    if (bucket < HISTOGRAM_STEPS)
        return bucket;
    unsigned shift = (unsigned)(bucket / HISTOGRAM_STEPS) - 1;
    return (((uint64_t)(bucket % HISTOGRAM_STEPS) + HISTOGRAM_STEPS + 1) << shift) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    size_t bucket = bucket_of(value);

    assert(bucket < HISTOGRAM_BUCKETS);
    histogram->buckets[bucket]++;
    histogram->count++;
    if (value > histogram->max)
        histogram->max = value;
}

uint64_t histogram_quantile(const struct histogram *histogram, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)histogram->count);
    uint64_t seen = 0;

    assert(share >= 0 && share <= 1);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > wanted || (seen == histogram->count && seen > 0))
            return upper_end(i) < histogram->max ? upper_end(i) : histogram->max;
    }
    return 0;
}
