/* SPDX-License-Identifier: Apache-2.0 */
/* One block of memory each, with its arrays behind it. */
#include "exporters/prometheus/metric_distribution.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "src/base/mem.h"

size_t metric_distribution_bytes(const struct metric_distribution_sizes *sizes)
{
    return sizeof(struct metric_distribution) +
           sizes->exemplars * sizeof(struct exposition_exemplar) +
           sizes->quantiles * sizeof(struct metric_quantile) +
           (sizes->bounds + sizes->counts + sizes->positive + sizes->negative) * sizeof(uint64_t);
}

static struct metric_distribution *create(enum metric_kind kind,
                                          const struct metric_distribution_sizes *sizes)
{
    const size_t bytes = metric_distribution_bytes(sizes);
    struct metric_distribution *distribution = mem_try_zalloc(bytes);
    if (distribution == NULL)
        return NULL;
    distribution->refs = 1;
    distribution->kind = kind;
    distribution->bytes = bytes;
    distribution->exemplars = (struct exposition_exemplar *)(distribution + 1);
    distribution->quantiles.list =
        (struct metric_quantile *)(distribution->exemplars + sizes->exemplars);
    distribution->bounds = (double *)(distribution->quantiles.list + sizes->quantiles);
    distribution->counts = (uint64_t *)(distribution->bounds + sizes->bounds);
    distribution->positive.counts = distribution->counts + sizes->counts;
    distribution->negative.counts = distribution->positive.counts + sizes->positive;
    return distribution;
}

static size_t items_count(struct slice message, uint32_t number)
{
    struct metric_items items = metric_items_of(message, number);
    struct slice bytes;
    size_t count = 0;
    while (metric_items_next(&items, &bytes))
        count++;
    return count;
}

static size_t read_counts(struct metric_numbers numbers, uint64_t *counts)
{
    size_t count = 0;
    while (metric_numbers_next(&numbers, &counts[count]))
        count++;
    return count;
}

static void read_exemplars(struct metric_distribution *distribution,
                           const struct metric_point *point)
{
    struct metric_items items = metric_items_of(point->bytes, metric_point_exemplars(point->kind));
    struct slice bytes;
    while (metric_point_exemplars(point->kind) > 0 && metric_items_next(&items, &bytes)) {
        struct metric_exemplar read = metric_exemplar_read(bytes);
        struct exposition_exemplar *exemplar =
            &distribution->exemplars[distribution->exemplars_count++];
        static const uint8_t none[sizeof(exemplar->trace_id)];
        exemplar->value = read.value;
        exemplar->time_ns = read.time_ns;
        if (read.trace_id.size > 0)
            memcpy(exemplar->trace_id, read.trace_id.data, read.trace_id.size);
        if (read.span_id.size > 0)
            memcpy(exemplar->span_id, read.span_id.data, read.span_id.size);
        exemplar->has_trace_id = memcmp(exemplar->trace_id, none, sizeof(exemplar->trace_id)) != 0;
        exemplar->has_span_id = memcmp(exemplar->span_id, none, sizeof(exemplar->span_id)) != 0;
    }
}

struct metric_distribution_sizes metric_distribution_measure(const struct metric_point *point)
{
    struct metric_distribution_sizes sizes = {.exemplars = 0};
    /* One more: reading writes behind the last. */
    if (point->kind == METRIC_HISTOGRAM) {
        sizes.bounds = metric_numbers_count(metric_bounds(point)) + 1;
        sizes.counts = metric_numbers_count(metric_counts(point)) + 1;
    } else if (point->kind == METRIC_EXPONENTIAL) {
        sizes.positive = metric_numbers_count(metric_buckets_counts(point->positive)) + 1;
        sizes.negative = metric_numbers_count(metric_buckets_counts(point->negative)) + 1;
    } else if (point->kind == METRIC_SUMMARY) {
        sizes.quantiles = items_count(point->bytes, 6);
    }
    if (metric_point_exemplars(point->kind) > 0)
        sizes.exemplars = items_count(point->bytes, metric_point_exemplars(point->kind));
    return sizes;
}

struct metric_distribution *metric_distribution_of(const struct metric_point *point,
                                                   const struct metric_distribution_sizes *sizes)
{
    bool is_histogram = point->kind == METRIC_HISTOGRAM;
    bool is_exponential = point->kind == METRIC_EXPONENTIAL;
    struct metric_distribution *distribution = create(point->kind, sizes);
    if (distribution == NULL)
        return NULL;
    distribution->count = point->count;
    distribution->sum = point->sum;
    distribution->has_sum = point->has_sum;
    if (is_histogram) {
        distribution->counts_count = read_counts(metric_counts(point), distribution->counts);
        struct metric_numbers bounds = metric_bounds(point);
        uint64_t bits;
        while (metric_numbers_next(&bounds, &bits))
            memcpy(&distribution->bounds[distribution->bounds_count++], &bits, sizeof(bits));
    } else if (is_exponential) {
        distribution->scale = point->scale;
        distribution->zero_count = point->zero_count;
        distribution->zero_threshold = point->zero_threshold;
        struct metric_buckets *positive = &distribution->positive;
        struct metric_buckets *negative = &distribution->negative;
        positive->offset = metric_buckets_offset(point->positive);
        positive->count = read_counts(metric_buckets_counts(point->positive), positive->counts);
        negative->offset = metric_buckets_offset(point->negative);
        negative->count = read_counts(metric_buckets_counts(point->negative), negative->counts);
    } else if (point->kind == METRIC_SUMMARY) {
        struct metric_items items = metric_items_of(point->bytes, 6);
        struct slice bytes;
        while (metric_items_next(&items, &bytes))
            distribution->quantiles.list[distribution->quantiles.count++] =
                metric_quantile_read(bytes);
    }
    read_exemplars(distribution, point);
    return distribution;
}

void metric_distribution_free(struct metric_distribution *distribution)
{
    mem_free(distribution);
}

/* Histograms with equal bounds; the others cannot be added. */
static bool have_equal_bounds(const struct metric_distribution *a,
                              const struct metric_distribution *b)
{
    bool is_equal = a->bounds_count == b->bounds_count && a->counts_count == b->counts_count;
    for (size_t i = 0; is_equal && i < a->bounds_count; i++)
        is_equal = a->bounds[i] == b->bounds[i];
    return is_equal;
}

static struct metric_distribution *sum_histograms(const struct metric_distribution *before,
                                                  const struct metric_distribution *after,
                                                  bool is_after_newer,
                                                  const struct metric_distribution_sizes *sizes)
{
    const struct metric_distribution *newer = is_after_newer ? after : before;
    const struct metric_distribution *older = is_after_newer ? before : after;
    struct metric_distribution *sum = create(METRIC_HISTOGRAM, sizes);
    const bool is_equal = have_equal_bounds(older, newer);
    if (sum == NULL)
        return NULL;
    sum->has_sum = true;
    sum->count = newer->count + (is_equal ? older->count : 0);
    sum->sum = newer->sum + (is_equal ? older->sum : 0);
    sum->bounds_count = newer->bounds_count;
    sum->counts_count = newer->counts_count;
    for (size_t i = 0; i < newer->bounds_count; i++)
        sum->bounds[i] = newer->bounds[i];
    for (size_t i = 0; i < newer->counts_count; i++)
        sum->counts[i] = newer->counts[i] + (is_equal ? older->counts[i] : 0);
    return sum;
}

/* Buckets at a coarser scale, and without those that zero swallows. */
struct side {
    int64_t offset;
    size_t count;
    const uint64_t *counts;
    unsigned shift; /* index >> shift is the one at the common scale */
    int64_t from;   /* at the common scale; what is below counts as zero */
};

static int64_t side_index(const struct side *side, size_t place)
{
    return (side->offset + (int64_t)place) >> side->shift;
}

static struct side side_of(const struct metric_buckets *buckets, int32_t scale, int32_t target)
{
    int64_t shift = (int64_t)scale - target;
    return (struct side){.offset = buckets->offset,
                         .count = buckets->count,
                         .counts = buckets->counts,
                         .shift = shift > 40 ? 40 : (unsigned)shift,
                         .from = INT64_MIN};
}

/* Leaves those out that the threshold swallows. As in the Go collector, a bucket's upper bound is
 * taken for 2^(scale + index + 1), whose exponent wraps. */
static void side_raise(struct side *side, int32_t scale, double threshold)
{
    int above; /* the least exponent of a bound above the threshold */
    if (threshold <= 0 || side->count == 0)
        return;
    if (!isfinite(threshold)) {
        side->from = INT64_MAX;
        return;
    }
    (void)frexp(threshold, &above);
    const int64_t first = side_index(side, 0);
    const int32_t exponent = (int32_t)(scale + first + 1);
    if (exponent < above)
        side->from = first + above - exponent;
}

/* What counts as zero. */
static uint64_t side_zeros(const struct side *side)
{
    uint64_t zeros = 0;
    for (size_t i = 0; i < side->count && side_index(side, i) < side->from; i++)
        zeros += side->counts[i];
    return zeros;
}

/* The sum of two exponential histograms, before its counts. */
struct sides {
    int32_t scale;
    double threshold;
    struct side positive[2];
    struct side negative[2];
    int64_t positive_first;
    int64_t negative_first;
    struct metric_distribution_sizes sizes;
};

/* Of how many buckets both are. */
static size_t sides_span(const struct side *sides, int64_t *ret_first)
{
    int64_t span_first = 0;
    int64_t span_last = -1;
    for (size_t i = 0; i < 2; i++) {
        if (sides[i].count == 0)
            continue;
        int64_t first = side_index(&sides[i], 0);
        int64_t last = side_index(&sides[i], sides[i].count - 1);
        const bool is_any = span_first <= span_last;
        first = first > sides[i].from ? first : sides[i].from;
        if (first > last)
            continue;
        span_first = is_any && span_first < first ? span_first : first;
        span_last = is_any && span_last > last ? span_last : last;
    }
    *ret_first = span_first;
    return (size_t)(span_last - span_first + 1);
}

/* Reads no counts. */
static struct sides sides_of(const struct metric_distribution *before,
                             const struct metric_distribution *after)
{
    const int32_t scale = before->scale < after->scale ? before->scale : after->scale;
    struct sides sides = {
        .scale = scale,
        .threshold = fmax(before->zero_threshold, after->zero_threshold),
        .positive = {side_of(&before->positive, before->scale, scale),
                     side_of(&after->positive, after->scale, scale)},
        .negative = {side_of(&before->negative, before->scale, scale),
                     side_of(&after->negative, after->scale, scale)},
    };
    if (sides.threshold > before->zero_threshold)
        side_raise(&sides.positive[0], scale, sides.threshold);
    if (sides.threshold > after->zero_threshold)
        side_raise(&sides.positive[1], scale, sides.threshold);
    sides.sizes.positive = sides_span(sides.positive, &sides.positive_first);
    sides.sizes.negative = sides_span(sides.negative, &sides.negative_first);
    return sides;
}

/* first: the index of the first of the buckets, whose offset may be too narrow for it. */
static void side_add(const struct side *side, int64_t first, struct metric_buckets *buckets)
{
    for (size_t i = 0; i < side->count; i++) {
        int64_t index = side_index(side, i);
        if (index >= side->from)
            buckets->counts[index - first] += side->counts[i];
    }
}

static struct metric_distribution *sum_exponential(const struct metric_distribution *before,
                                                   const struct metric_distribution *after,
                                                   const struct metric_distribution_sizes *sizes)
{
    const struct sides sides = sides_of(before, after);
    assert(sizes->positive == sides.sizes.positive && sizes->negative == sides.sizes.negative);
    struct metric_distribution *sum = create(METRIC_EXPONENTIAL, sizes);
    if (sum == NULL)
        return NULL;
    sum->scale = sides.scale;
    sum->zero_threshold = sides.threshold;
    sum->zero_count = before->zero_count + after->zero_count + side_zeros(&sides.positive[0]) +
                      side_zeros(&sides.positive[1]);
    sum->count = before->count + after->count;
    sum->has_sum = before->has_sum && after->has_sum;
    sum->sum = sum->has_sum ? before->sum + after->sum : 0;
    sum->positive.offset = (int32_t)sides.positive_first;
    sum->positive.count = sizes->positive;
    sum->negative.offset = (int32_t)sides.negative_first;
    sum->negative.count = sizes->negative;
    for (size_t i = 0; i < 2; i++) {
        side_add(&sides.positive[i], sides.positive_first, &sum->positive);
        side_add(&sides.negative[i], sides.negative_first, &sum->negative);
    }
    return sum;
}

bool metric_distribution_add(struct metric_distribution *before,
                             const struct metric_distribution *after)
{
    assert(before->kind == after->kind && before->refs == 1);
    if (before->kind != METRIC_EXPONENTIAL || before->exemplars_count > 0)
        return false;
    const struct sides sides = sides_of(before, after);
    if (sides.scale != before->scale || sides.threshold != before->zero_threshold ||
        sides.positive_first != before->positive.offset ||
        sides.sizes.positive != before->positive.count ||
        sides.negative_first != before->negative.offset ||
        sides.sizes.negative != before->negative.count)
        return false;
    before->zero_count += after->zero_count + side_zeros(&sides.positive[1]);
    before->count += after->count;
    before->has_sum = before->has_sum && after->has_sum;
    before->sum = before->has_sum ? before->sum + after->sum : 0;
    side_add(&sides.positive[1], sides.positive_first, &before->positive);
    side_add(&sides.negative[1], sides.negative_first, &before->negative);
    return true;
}

bool metric_distribution_stays(const struct metric_distribution *before,
                               const struct metric_distribution *after, bool is_after_newer)
{
    assert(before->kind == after->kind);
    return before->kind == METRIC_HISTOGRAM && !is_after_newer && before->exemplars_count == 0 &&
           !have_equal_bounds(before, after);
}

bool metric_distribution_measure_sum(const struct metric_distribution *before,
                                     const struct metric_distribution *after, bool is_after_newer,
                                     struct metric_distribution_sizes *ret_sizes)
{
    assert(before->kind == after->kind);
    if (before->kind == METRIC_HISTOGRAM) {
        const struct metric_distribution *newer = is_after_newer ? after : before;
        *ret_sizes = (struct metric_distribution_sizes){.bounds = newer->bounds_count,
                                                        .counts = newer->counts_count};
        return true;
    }
    *ret_sizes = sides_of(before, after).sizes;
    return ret_sizes->positive <= METRIC_BUCKETS_MAX && ret_sizes->negative <= METRIC_BUCKETS_MAX;
}

struct metric_distribution *metric_distribution_sum(const struct metric_distribution *before,
                                                    const struct metric_distribution *after,
                                                    bool is_after_newer,
                                                    const struct metric_distribution_sizes *sizes)
{
    assert(before->kind == after->kind);
    return before->kind == METRIC_EXPONENTIAL
               ? sum_exponential(before, after, sizes)
               : sum_histograms(before, after, is_after_newer, sizes);
}
