/* SPDX-License-Identifier: Apache-2.0 */
/* In the steps of the Go collector, whose results are the same; each takes time in proportion to
 * the buckets that there are, whatever their offsets and scales. Pure functions; any thread. */
#include "src/records/exponential_sum.h"

#include <math.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/otlp/wire.h"
#include "src/records/metric_values.h"

enum {
    BUCKETS_MAX = 160,
    BUCKETS_SUM_MAX = BUCKETS_MAX + 2, /* those at the ends may be halves */
    /* Halving an offset or a number of buckets more often changes nothing. */
    HALVINGS_MAX = 128,
};

uint64_t exponential_sum_bytes_max(void)
{
    /* The sum as it was and as it is, one that begins, and each bucket as a varint. */
    enum { SIDES = 2, COPIES = 3 };
    return SIDES * BUCKETS_SUM_MAX * (COPIES * sizeof(uint64_t) + WIRE_VARINT_BYTES_MAX);
}

static int64_t lower_of(const struct metric_buckets *buckets)
{
    return buckets->offset;
}

static int64_t upper_of(const struct metric_buckets *buckets)
{
    return buckets->offset + (int64_t)buckets->count;
}

static uint64_t count_at(const struct metric_buckets *buckets, int64_t index)
{
    int64_t place = index - buckets->offset;
    return place >= 0 && place < (int64_t)buckets->count ? buckets->counts[place] : 0;
}

/* Halves the resolution; the places that fall free at the end are zero. `used` are the first places
 * that may not be zero. */
static void halve(struct metric_buckets *buckets, size_t *used)
{
    bool is_odd = (buckets->offset & 1) != 0;
    size_t size = (*used + is_odd + 1) / 2;
    buckets->offset = (buckets->offset - is_odd) / 2;
    if (*used == 0)
        return;
    for (size_t i = 0; i < size; i++) {
        uint64_t sum = 0;
        for (size_t k = 2 * i; k < 2 * i + 2; k++)
            if (k >= is_odd && k - is_odd < *used)
                sum += buckets->counts[k - is_odd];
        buckets->counts[i] = sum;
    }
    for (size_t i = size; i < *used; i++)
        buckets->counts[i] = 0;
    *used = size < *used ? size : *used;
}

static void downscale(struct metric_buckets *buckets, int64_t by)
{
    size_t used = buckets->count;
    for (int64_t i = 0; i < by && i < HALVINGS_MAX; i++)
        halve(buckets, &used);
}

/* The indices of the first bucket that is not empty, and behind the last one. */
static void trim(const struct metric_buckets *a, const struct metric_buckets *b, int64_t *ret_lower,
                 int64_t *ret_upper)
{
    const struct metric_buckets *const both[] = {a, b};
    int64_t lower = lower_of(a) < lower_of(b) ? lower_of(a) : lower_of(b);
    int64_t upper = upper_of(a) > upper_of(b) ? upper_of(a) : upper_of(b);
    int64_t first = upper;
    int64_t behind = lower;
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < both[i]->count; k++) {
            int64_t index = both[i]->offset + (int64_t)k;
            if (both[i]->counts[k] == 0)
                continue;
            first = index < first ? index : first;
            behind = index + 1 > behind ? index + 1 : behind;
        }
    *ret_lower = first < upper ? first : upper;
    *ret_upper = behind > *ret_lower ? behind : upper;
}

/* The scale at which both together have few enough buckets. */
static int64_t limit_scale(int64_t scale, const struct metric_buckets *a,
                           const struct metric_buckets *b)
{
    int64_t lower;
    int64_t upper;
    trim(a, b, &lower, &upper);
    for (; upper - lower > BUCKETS_MAX; scale--) {
        lower /= 2;
        upper /= 2;
    }
    return scale;
}

static bool merge(struct arena *arena, struct metric_buckets *sum,
                  const struct metric_buckets *more)
{
    int64_t lower;
    int64_t upper;
    if (more->count == 0)
        return true;
    if (sum->count == 0 && more->count <= BUCKETS_MAX) {
        *sum = *more;
        return true;
    }
    trim(sum, more, &lower, &upper);
    size_t count = (size_t)(upper - lower);
    uint64_t *counts = arena_try_alloc(arena, (count > 0 ? count : 1) * sizeof(counts[0]));
    if (counts == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        counts[i] = count_at(sum, lower + (int64_t)i) + count_at(more, lower + (int64_t)i);
    *sum = (struct metric_buckets){(int32_t)lower, count, counts};
    return true;
}

/* Buckets of a scale lower by so much, without empty ones at the ends. */
static bool coarsen(struct arena *arena, struct metric_buckets *buckets, int64_t by)
{
    const struct metric_buckets fine = *buckets;
    const unsigned shift = by < HALVINGS_MAX / 2 ? (unsigned)by : HALVINGS_MAX / 2 - 1;
    int64_t lower;
    int64_t upper;
    trim(&fine, &fine, &lower, &upper);
    const int64_t first = lower >> shift;
    const size_t count = upper > lower ? (size_t)(((upper - 1) >> shift) - first + 1) : 0;
    uint64_t *counts = arena_try_alloc(arena, (count + 1) * sizeof(counts[0]));
    if (counts == NULL)
        return false;
    memset(counts, 0, count * sizeof(counts[0]));
    for (int64_t i = lower; i < upper; i++)
        counts[(i >> shift) - first] += count_at(&fine, i);
    *buckets = (struct metric_buckets){(int32_t)first, count, counts};
    return true;
}

bool exponential_limit(struct arena *arena, const struct metric_values *values,
                       struct metric_values *ret_values)
{
    *ret_values = *values;
    if (values->positive.count <= BUCKETS_MAX && values->negative.count <= BUCKETS_MAX)
        return true;
    int64_t positive = limit_scale(values->scale, &values->positive, &values->positive);
    int64_t negative = limit_scale(values->scale, &values->negative, &values->negative);
    int64_t to = positive < negative ? positive : negative;
    int64_t by = values->scale - to;
    ret_values->scale = to >= INT32_MIN ? (int32_t)to : INT32_MIN;
    return coarsen(arena, &ret_values->positive, by) && coarsen(arena, &ret_values->negative, by);
}

/* The largest bucket inside of that width. */
static int64_t bucket_of(double width, int32_t scale)
{
    int exponent;
    if (frexp(width, &exponent) == 0.5) {
        int64_t index = exponent - 1;
        if (scale >= 0)
            return scale < 40 ? index * ((int64_t)1 << scale) - 1 : -1;
        return (index >> (scale > -63 ? -scale : 63)) - 1;
    }
    double place = floor(log(width) * ldexp(M_LOG2E, scale));
    return place >= -0x1p62 && place <= 0x1p62 ? (int64_t)place : -((int64_t)1 << 62);
}

static void widen_side(struct metric_values *values, struct metric_buckets *buckets, int64_t zero)
{
    int64_t from = zero + 1 > lower_of(buckets) ? zero + 1 : lower_of(buckets);
    if (from > upper_of(buckets))
        from = upper_of(buckets);
    size_t gone = (size_t)(from - buckets->offset);
    for (size_t i = 0; i < gone; i++)
        values->zero_count += buckets->counts[i];
    if (gone > 0)
        buckets->counts += gone;
    buckets->count -= gone;
    buckets->offset = (int32_t)from;
}

static void widen_zero(struct metric_values *values, double width)
{
    enum { SCALE_MIN = -4096 }; /* here and below a bucket is infinitely wide */
    int64_t zero = bucket_of(width, values->scale);
    const int by = values->scale > SCALE_MIN ? -values->scale : -SCALE_MIN;
    widen_side(values, &values->positive, zero);
    widen_side(values, &values->negative, zero);
    values->zero_threshold = exp((double)(zero + 1) * ldexp(M_LN2, by));
}

/* Not a number is less than all numbers. */
static bool is_less(double a, double b)
{
    return (isnan(a) && !isnan(b)) || a < b;
}

bool exponential_add(struct arena *arena, struct metric_values *sum, struct metric_values *more)
{
    if (sum->scale != more->scale) {
        struct metric_values *high = sum->scale < more->scale ? more : sum;
        const struct metric_values *low = sum->scale < more->scale ? sum : more;
        int64_t by = (int64_t)high->scale - low->scale;
        downscale(&high->positive, by);
        downscale(&high->negative, by);
        high->scale = low->scale;
    }
    int64_t positive = limit_scale(sum->scale, &sum->positive, &more->positive);
    int64_t negative = limit_scale(sum->scale, &sum->negative, &more->negative);
    int64_t to = positive < negative ? positive : negative;
    if (to != sum->scale) {
        int64_t by = sum->scale - to;
        downscale(&sum->positive, by);
        downscale(&sum->negative, by);
        downscale(&more->positive, by);
        downscale(&more->negative, by);
        sum->scale = more->scale = to >= INT32_MIN ? (int32_t)to : INT32_MIN;
    }
    if (sum->zero_threshold != more->zero_threshold) {
        bool is_sum_low = is_less(sum->zero_threshold, more->zero_threshold);
        widen_zero(is_sum_low ? sum : more,
                   is_sum_low ? more->zero_threshold : sum->zero_threshold);
    }
    if (!merge(arena, &sum->positive, &more->positive) ||
        !merge(arena, &sum->negative, &more->negative))
        return false;
    sum->count += more->count;
    sum->zero_count += more->zero_count;
    return true;
}
