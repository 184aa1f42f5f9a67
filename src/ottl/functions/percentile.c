/* SPDX-License-Identifier: Apache-2.0 */
/* extract_percentile_metric, an editor of transform: a gauge of percentiles that are interpolated
 * within a histogram's buckets (contrib 0.155, processor/transformprocessor/internal/metrics). Runs
 * on the processor's thread. */
#include <math.h>

#include "src/base/error.h"
#include "src/ottl/functions/go_text.h"
#include "src/ottl/functions/metric_bytes.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/ottl_rewrite.h"

enum { HISTOGRAM_MIN = 11, HISTOGRAM_MAX = 12 };
/* "_p" or "p" and the shortest digits of a double. */
enum { PERCENTILE_TEXT_MAX = 40 };

/* The numbers of a histogram's data point, of which the last field of each counts. */
struct limits {
    bool has_min;
    bool has_max;
    double min;
    double max;
};

enum outcome { FOUND, SKIPPED, FAILED };

static struct limits read_limits(struct slice bytes)
{
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    struct limits limits = {.has_min = false};
    while (wire_next_field(&reader, &field)) {
        if (field.type == WIRE_FIXED64 && field.number == HISTOGRAM_MIN) {
            limits.has_min = true;
            limits.min = double_of_bits(field.number_value);
        } else if (field.type == WIRE_FIXED64 && field.number == HISTOGRAM_MAX) {
            limits.has_max = true;
            limits.max = double_of_bits(field.number_value);
        }
    }
    return limits;
}

/* The rank that is looked for, from 1. */
static uint64_t rank_of(uint64_t count, double percentile)
{
    const double rank = ceil((double)count * (percentile / 100.0));
    return rank < 0x1p64 ? (uint64_t)rank : UINT64_MAX;
}

static enum outcome interpolate_evenly(struct ottl_call *call, double lower, double upper,
                                       double ratio, double *ret)
{
    if (ratio < 0 || ratio > 1) {
        ottl_fail(call, "linear interpolation: invalid ratio %.6f, must be between 0 and 1", ratio);
        return FAILED;
    }
    *ret = lower + ratio * (upper - lower);
    return FOUND;
}

static enum outcome interpolate_by_logarithm(struct ottl_call *call, double lower, double upper,
                                             double ratio, double *ret)
{
    if (ratio < 0 || ratio > 1) {
        ottl_fail(call, "logarithmic interpolation: invalid ratio %.6f, must be between 0 and 1",
                  ratio);
        return FAILED;
    }
    if (lower <= 0 || upper <= 0) {
        ottl_fail(call,
                  "logarithmic interpolation: bounds must be positive, got lowerBound=%.6f, "
                  "upperBound=%.6f",
                  lower, upper);
        return FAILED;
    }
    *ret = exp2(log2(lower) + (log2(upper) - log2(lower)) * ratio);
    return FOUND;
}

/* ---- Histograms with explicit bounds ---- */

/* Within the bucket between two bounds; NULL: there is none on that side. */
static enum outcome interpolate_bucket(struct ottl_call *call, const struct limits *limits,
                                       const double *below, const double *above, double ratio,
                                       double *ret)
{
    double lower = below != NULL ? *below : 0;
    double upper = above != NULL ? *above : limits->max;
    if (below == NULL && limits->has_min && limits->min < upper) {
        lower = limits->min;
    } else if (below == NULL && upper < 0) {
        *ret = upper;
        return FOUND;
    }
    if (above == NULL && (!limits->has_max || limits->max <= lower)) {
        *ret = lower;
        return FOUND;
    }
    return interpolate_evenly(call, lower, upper, ratio, ret);
}

static enum outcome find_in_histogram(struct ottl_call *call, const struct metric_point *point,
                                      double percentile, double *ret)
{
    struct metric_numbers counts = metric_counts(point);
    struct metric_numbers bounds = metric_bounds(point);
    const size_t counts_count = metric_numbers_count(counts);
    const size_t bounds_count = metric_numbers_count(bounds);
    const uint64_t rank = rank_of(point->count, percentile);
    const struct limits limits = read_limits(point->bytes);
    uint64_t count;
    uint64_t below_count = 0;
    uint64_t bits;
    double below = 0;
    double above = 0;
    if (point->count == 0 || counts_count == 0)
        return SKIPPED;
    if (counts_count != bounds_count + 1) {
        ottl_fail(call,
                  "calculating histogram percentile: malformed data: bucketCounts length (%zu) != "
                  "explicitBounds length (%zu) + 1",
                  counts_count, bounds_count);
        return FAILED;
    }
    if (counts_count == 1) {
        metric_numbers_next(&counts, &count);
        return limits.has_min && limits.has_max
                   ? interpolate_evenly(call, limits.min, limits.max, (double)rank / (double)count,
                                        ret)
                   : SKIPPED;
    }
    for (size_t i = 0; metric_numbers_next(&counts, &count); i++) {
        const bool has_above = metric_numbers_next(&bounds, &bits);
        above = has_above ? double_of_bits(bits) : 0;
        if (below_count + count >= rank)
            return interpolate_bucket(call, &limits, i > 0 ? &below : NULL,
                                      has_above ? &above : NULL,
                                      (double)(rank - below_count) / (double)count, ret);
        below_count += count;
        below = above;
    }
    ottl_fail(call,
              "calculating histogram percentile: malformed data: cumulative count doesn't reach "
              "target count corresponding to percentile. targetCount=%llu, total count=%llu",
              (unsigned long long)rank, (unsigned long long)below_count);
    return FAILED;
}

/* ---- Exponential histograms ---- */

static double bucket_bound(int64_t index, int32_t scale)
{
    if (scale > 0)
        return exp((double)index * ldexp(M_LN2, -scale));
    /* As Go shifts: bits that run over are lost. */
    const int64_t exponent = scale > -64 ? (int64_t)((uint64_t)index << -scale) : 0;
    return ldexp(1, exponent > 4096 ? 4096 : exponent < -4096 ? -4096 : (int)exponent);
}

/* Counts of negative values are read from the last, the smallest value, on. */
static bool read_counts(struct ottl_call *call, struct slice buckets, uint64_t **ret,
                        size_t *ret_count)
{
    struct metric_numbers numbers = metric_buckets_counts(buckets);
    *ret_count = metric_numbers_count(numbers);
    *ret = ottl_alloc(call, *ret_count * sizeof(**ret));
    for (size_t i = 0; *ret != NULL && i < *ret_count; i++)
        metric_numbers_next(&numbers, *ret + i);
    return *ret != NULL;
}

static enum outcome find_among_negative(struct ottl_call *call, const struct metric_point *point,
                                        int64_t index, double ratio, double *ret)
{
    const double lower = bucket_bound(index, point->scale);
    const double upper = bucket_bound(index + 1, point->scale);
    if (lower >= upper) {
        ottl_fail(call,
                  "calculating exponential histogram percentile: malformed negative bucket bounds: "
                  "absLowerBound (%.6f) >= absUpperBound (%.6f) at histogramIndex=%lld, scale=%d",
                  lower, upper, (long long)index, point->scale);
        return FAILED;
    }
    enum outcome outcome = interpolate_by_logarithm(call, lower, upper, 1 - ratio, ret);
    *ret = -*ret;
    return outcome;
}

static enum outcome find_in_exponential(struct ottl_call *call, const struct metric_point *point,
                                        double percentile, double *ret)
{
    const uint64_t rank = rank_of(point->count, percentile);
    struct metric_numbers positive = metric_buckets_counts(point->positive);
    const size_t positive_count = metric_numbers_count(positive);
    uint64_t *negative;
    size_t negative_count;
    uint64_t below = 0;
    uint64_t count;
    *ret = 0;
    if (!read_counts(call, point->negative, &negative, &negative_count))
        return FAILED;
    if (point->count == 0 || (negative_count == 0 && positive_count == 0 && point->zero_count == 0))
        return SKIPPED;
    for (size_t i = negative_count; i-- > 0; below += negative[i])
        if (below + negative[i] >= rank)
            return find_among_negative(call, point,
                                       metric_buckets_offset(point->negative) + (int64_t)i,
                                       (double)(rank - below) / (double)negative[i], ret);
    if (below + point->zero_count >= rank) {
        /* Zeros have the sign of the others. */
        const double threshold = point->zero_threshold;
        const bool is_positive = negative_count == 0 && positive_count > 0;
        const bool is_negative = positive_count == 0 && negative_count > 0;
        return interpolate_evenly(call, is_positive ? 0 : -threshold, is_negative ? 0 : threshold,
                                  (double)(rank - below) / (double)point->zero_count, ret);
    }
    below += point->zero_count;
    for (int64_t i = metric_buckets_offset(point->positive); metric_numbers_next(&positive, &count);
         i++, below += count)
        if (below + count >= rank)
            return interpolate_by_logarithm(call, bucket_bound(i, point->scale),
                                            bucket_bound(i + 1, point->scale),
                                            (double)(rank - below) / (double)count, ret);
    ottl_fail(call,
              "calculating exponential histogram percentile: malformed data: cumulative count "
              "doesn't reach target count corresponding to percentile. targetCount=%llu, total "
              "count=%llu",
              (unsigned long long)rank, (unsigned long long)below);
    return FAILED;
}

/* ---- The metric ---- */

/* "p99.9", with text before and after. */
static struct slice percentile_text(struct ottl_call *call, const char *before, double percentile,
                                    const char *after)
{
    char text[PERCENTILE_TEXT_MAX];
    char *at = stpcpy(text, before);
    at += go_shortest_double(percentile, at);
    at = stpcpy(at, after);
    return metric_joined(call, slice_of(text, (size_t)(at - text)), slice_of(NULL, 0));
}

static bool write_gauge(struct ottl_call *call, const struct metric *metric, double percentile,
                        struct slice data)
{
    struct metric gauge = *metric;
    struct slice suffix = slice_of(NULL, 0);
    struct slice bytes;
    if (ottl_has(call, 1) && !ottl_get_string(call, 1, &suffix))
        return false;
    if (suffix.size == 0)
        suffix = percentile_text(call, "_p", percentile, "");
    const bool is_described = metric->description.size > 0;
    const struct slice note = is_described ? percentile_text(call, " (p", percentile, ")")
                                           : percentile_text(call, "p", percentile, "");
    if (suffix.data == NULL || note.data == NULL)
        return false;
    gauge.name = metric_joined(call, metric->name, suffix);
    gauge.description = metric_joined(call, metric->description, note);
    return gauge.name.data != NULL && gauge.description.data != NULL &&
           metric_write(call, &gauge, METRIC_GAUGE, data, &bytes) &&
           ottl_metric_append(call->run, bytes);
}

static bool extract_percentile(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice bytes;
    struct metric metric;
    struct wire_writer writer;
    double percentile;
    size_t size = 0;
    (void)ret;
    if (!ottl_get_double(call, 0, &percentile) || !metric_read_current(call, &bytes, &metric))
        return false;
    if (metric.kind != METRIC_HISTOGRAM && metric.kind != METRIC_EXPONENTIAL)
        return true;
    struct metric_items points = metric_items_of(metric.data, DATA_POINTS);
    while (metric_items_next(&points, &bytes))
        size +=
            NUMBER_POINT_MAX + metric_attributes_size(bytes, metric_point_attributes(metric.kind));
    if (!metric_room(call, size, &writer))
        return false;
    points = metric_items_of(metric.data, DATA_POINTS);
    while (metric_items_next(&points, &bytes)) {
        const struct metric_point point = metric_point_read(metric.kind, bytes);
        double value;
        const enum outcome outcome = metric.kind == METRIC_HISTOGRAM
                                         ? find_in_histogram(call, &point, percentile, &value)
                                         : find_in_exponential(call, &point, percentile, &value);
        if (outcome == FAILED)
            return false;
        if (outcome == FOUND)
            metric_put_number(&writer, &point, NUMBER_AS_DOUBLE, double_bits(value),
                              slice_of(NULL, 0));
    }
    const struct slice data = wire_written(&writer);
    return data.size == 0 || write_gauge(call, &metric, percentile, data);
}

static bool check_percentile(const struct ottl_preparation *preparation, void **ret_state,
                             struct error *error)
{
    struct ottl_value percentile;
    *ret_state = NULL;
    return !ottl_is_constant(preparation, 0, &percentile) ||
           (percentile.real > 0 && percentile.real < 100) ||
           error_set(error, "percentile must be greater than 0 and less than 100, got %f",
                     percentile.real);
}

static const struct ottl_parameter percentile_parameters[] = {
    {"Percentile", OTTL_DOUBLE_LITERAL, false, false},
    {"Suffix", OTTL_TEXT_LITERAL, true, false},
    {.name = NULL}};

const struct ottl_function ottl_percentile_functions[] = {
    {.name = "extract_percentile_metric",
     .parameters = percentile_parameters,
     .evaluate = extract_percentile,
     .prepare = check_percentile,
     .users = OTTL_FOR_TRANSFORM,
     .contexts = OTTL_CONTEXT_BIT(OTTL_METRIC),
     .makes_metrics = true},
    {.name = NULL},
};
