/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential histograms: bucket i holds values in (base^i, base^(i + 1)], base = 2^(2^-scale). The
 * scale begins at its maximum and falls whenever the buckets in use would be more than allowed.
 * Runs on the owner's thread. */
#include "src/otlp/metrics/exponential_histogram.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"

enum {
    SIGNIFICAND_BITS = 52,
    EXPONENT_BIAS = 1023,
    EXPONENT_NORMAL_MIN = -1022,
    EXPONENT_MASK = 0x7ff,
    WIDTH_MAX = sizeof(uint64_t),
};

#define NORMAL_MIN 0x1p-1022

void exponential_histogram_init(struct exponential_histogram *histogram)
{
    *histogram = (struct exponential_histogram){.scale = EXPONENTIAL_SCALE_MAX};
}

static void free_counts(struct exponential_histogram *histogram, struct budget *budget)
{
    if (histogram->allocated == 0)
        return;
    if (budget != NULL)
        budget_return(budget, histogram->allocated);
    mem_free(histogram->counts.many);
}

void exponential_histogram_fini(struct exponential_histogram *histogram, struct budget *budget)
{
    free_counts(histogram, budget);
    exponential_histogram_init(histogram);
}

static const void *ring(const struct exponential_histogram *histogram)
{
    return histogram->allocated > 0 ? histogram->counts.many : histogram->counts.few;
}

static void *ring_to_write(struct exponential_histogram *histogram)
{
    return histogram->allocated > 0 ? histogram->counts.many : histogram->counts.few;
}

static uint64_t count_at(const void *counts, uint8_t width, size_t place)
{
    switch (width) {
    case 1:
        return ((const uint8_t *)counts)[place];
    case 2:
        return ((const uint16_t *)counts)[place];
    case 4:
        return ((const uint32_t *)counts)[place];
    default:
        return ((const uint64_t *)counts)[place];
    }
}

static void set_count(void *counts, uint8_t width, size_t place, uint64_t count)
{
    switch (width) {
    case 1:
        ((uint8_t *)counts)[place] = (uint8_t)count;
        break;
    case 2:
        ((uint16_t *)counts)[place] = (uint16_t)count;
        break;
    case 4:
        ((uint32_t *)counts)[place] = (uint32_t)count;
        break;
    default:
        ((uint64_t *)counts)[place] = count;
    }
}

static size_t place_of(const struct exponential_histogram *histogram, int64_t index)
{
    int64_t place = index - histogram->base;
    return (size_t)(place < 0 ? place + histogram->capacity : place);
}

/* The bucket of a value above 0. */
static int32_t index_of(double value, int scale)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    int32_t exponent = (int32_t)(bits >> SIGNIFICAND_BITS & EXPONENT_MASK) - EXPONENT_BIAS;
    bool is_power = (bits & ((UINT64_C(1) << SIGNIFICAND_BITS) - 1)) == 0;
    if (scale <= 0) {
        int shift = -scale;
        if (value < NORMAL_MIN)
            return (EXPONENT_NORMAL_MIN >> shift) - (shift < 2);
        return (exponent - is_power) >> shift;
    }
    if (value <= NORMAL_MIN)
        return EXPONENT_NORMAL_MIN * (1 << scale) - 1;
    if (is_power)
        return exponent * (1 << scale) - 1;
    int32_t highest = (int32_t)(((int64_t)(EXPONENT_BIAS + 1) << scale) - 1);
    /* Multiplied by a power of two, which is exact; below 2^31 in size: rounded down without calls.
     */
    const double index = log(value) * (M_LOG2E * (double)(1 << scale));
    const int32_t whole = (int32_t)index;
    const int32_t below = whole - (index < whole);
    return below >= highest ? highest : below;
}

/* The buckets that a ring must hold, `steps` scales below the present one. */
struct shape {
    int steps;
    int64_t first;
    int64_t last;
};

static struct shape shape_with(const struct exponential_histogram *histogram, int64_t index)
{
    bool is_empty = histogram->width == 0;
    bool is_below = is_empty || index < histogram->first;
    bool is_above = is_empty || index > histogram->last;
    return (struct shape){.first = is_below ? index : histogram->first,
                          .last = is_above ? index : histogram->last};
}

/* Lowers the scale until that many buckets suffice. */
static void shape_fit(struct shape *shape, int64_t buckets)
{
    for (; shape->last - shape->first >= buckets; shape->steps++) {
        shape->first >>= 1;
        shape->last >>= 1;
    }
}

/* Adds up the counts that become bucket `index` of the shape; *at is the next old index. */
static uint64_t merged_count(const struct exponential_histogram *histogram,
                             const struct shape *shape, int64_t index, int64_t *at)
{
    uint64_t count = 0;
    for (; histogram->width > 0 && *at <= histogram->last && *at >> shape->steps == index; (*at)++)
        count += count_at(ring(histogram), histogram->width, place_of(histogram, *at));
    return count;
}

/* Bytes that the largest count takes, once `times` has been added to bucket added. */
static uint8_t width_needed(const struct exponential_histogram *histogram,
                            const struct shape *shape, int64_t added, uint64_t times)
{
    uint64_t most = 0;
    int64_t at = histogram->first;
    for (int64_t index = shape->first; index <= shape->last; index++) {
        uint64_t count = merged_count(histogram, shape, index, &at) + (index == added ? times : 0);
        most = count > most ? count : most;
    }
    uint8_t width = histogram->width > 0 ? histogram->width : 1;
    while (width < WIDTH_MAX && most >> width * 8u != 0)
        width *= 2;
    return width;
}

static size_t capacity_for(const struct shape *shape, uint8_t width, uint32_t max_size)
{
    size_t capacity = (size_t)EXPONENTIAL_INLINE_BYTES / width;
    while ((int64_t)capacity <= shape->last - shape->first)
        capacity *= 2;
    return capacity < max_size ? capacity : max_size;
}

/* Without more memory: the counts stay where they are, in fewer and wider buckets. */
static void squeeze(struct exponential_histogram *histogram, struct shape shape, int64_t added,
                    uint64_t times, uint32_t max_size)
{
    enum { BUCKETS_MAX = 256 };
    uint64_t merged[BUCKETS_MAX];
    size_t bytes =
        histogram->allocated > 0 ? histogram->allocated : (size_t)EXPONENTIAL_INLINE_BYTES;
    size_t capacity = bytes / sizeof(merged[0]);
    capacity = capacity < max_size ? capacity : max_size;
    capacity = capacity < BUCKETS_MAX ? capacity : BUCKETS_MAX;
    int steps = shape.steps;
    shape_fit(&shape, (int64_t)capacity);
    size_t count = (size_t)(shape.last - shape.first + 1);
    int64_t at = histogram->first;
    for (size_t i = 0; i < count; i++)
        merged[i] = merged_count(histogram, &shape, shape.first + (int64_t)i, &at);
    merged[(added >> (shape.steps - steps)) - shape.first] += times;
    uint8_t *counts = ring_to_write(histogram);
    memcpy(counts, merged, count * sizeof(merged[0]));
    memset(counts + count * sizeof(merged[0]), 0, bytes - count * sizeof(merged[0]));
    histogram->capacity = (uint16_t)capacity;
    histogram->width = sizeof(merged[0]);
    histogram->first = (int32_t)shape.first;
    histogram->last = (int32_t)shape.last;
    histogram->base = histogram->first;
    histogram->scale = (int8_t)(histogram->scale - shape.steps);
}

/* Adds to bucket `index`, which the ring has no room for, or whose count would not fit. */
static void reshape(struct exponential_histogram *histogram, struct shape shape, int64_t index,
                    uint64_t times, uint32_t max_size, struct budget *budget)
{
    int steps = shape.steps;
    shape_fit(&shape, max_size);
    int64_t added = index >> (shape.steps - steps);
    uint8_t width = width_needed(histogram, &shape, added, times);
    size_t capacity = capacity_for(&shape, width, max_size);
    size_t bytes = capacity * width;
    struct exponential_histogram new = *histogram;
    new.allocated = 0;
    memset(&new.counts, 0, sizeof(new.counts));
    if (bytes > EXPONENTIAL_INLINE_BYTES) {
        bool is_given = budget == NULL || budget_try_take(budget, bytes);
        new.counts.many = is_given ? mem_try_zalloc(bytes) : NULL;
        if (new.counts.many == NULL) {
            if (is_given && budget != NULL)
                budget_return(budget, bytes);
            squeeze(histogram, shape, added, times, max_size);
            return;
        }
        new.allocated = (uint32_t)bytes;
    }
    new.capacity = (uint16_t)capacity;
    new.width = width;
    new.first = (int32_t)shape.first;
    new.last = (int32_t)shape.last;
    new.base = new.first;
    new.scale = (int8_t)(histogram->scale - shape.steps);
    int64_t at = histogram->first;
    for (int64_t i = shape.first; i <= shape.last; i++)
        set_count(ring_to_write(&new), width, (size_t)(i - shape.first),
                  merged_count(histogram, &shape, i, &at) + (i == added ? times : 0));
    free_counts(histogram, budget);
    *histogram = new;
}

/* index: at the histogram's scale. */
static void add_at(struct exponential_histogram *histogram, int64_t index, uint64_t times,
                   uint32_t max_size, struct budget *budget)
{
    struct shape shape = shape_with(histogram, index);
    if (shape.last - shape.first < histogram->capacity) {
        size_t place = place_of(histogram, index);
        uint64_t count = count_at(ring(histogram), histogram->width, place) + times;
        if (histogram->width == WIDTH_MAX || count >> histogram->width * 8u == 0) {
            set_count(ring_to_write(histogram), histogram->width, place, count);
            histogram->first = (int32_t)shape.first;
            histogram->last = (int32_t)shape.last;
            return;
        }
    }
    reshape(histogram, shape, index, times, max_size, budget);
}

static void add_range(struct exponential_histogram *histogram, double min, double max,
                      uint64_t count)
{
    if (count == 0)
        return;
    bool is_first = histogram->count == 0;
    histogram->min = is_first || min < histogram->min ? min : histogram->min;
    histogram->max = is_first || max > histogram->max ? max : histogram->max;
    histogram->count += count;
}

void exponential_histogram_add(struct exponential_histogram *histogram, double value,
                               uint64_t times, uint32_t max_size, struct budget *budget)
{
    assert(max_size >= EXPONENTIAL_SIZE_MIN && max_size <= EXPONENTIAL_SIZE_MAX);
    bool is_zero = !(value > 0);
    double counted = is_zero ? 0 : value;
    add_range(histogram, counted, counted, times);
    if (is_zero) {
        histogram->zero_count += times;
    } else if (times > 0) {
        histogram->sum += value * (double)times;
        add_at(histogram, index_of(value, histogram->scale), times, max_size, budget);
    }
}

/* To a lower scale, which the buckets of another histogram have. */
static void lower_scale(struct exponential_histogram *histogram, int steps, uint32_t max_size,
                        struct budget *budget)
{
    struct shape shape = {steps, histogram->first >> steps, histogram->last >> steps};
    if (histogram->width > 0)
        reshape(histogram, shape, shape.first, 0, max_size, budget);
    else
        histogram->scale = (int8_t)(histogram->scale - steps);
}

void exponential_histogram_merge(struct exponential_histogram *histogram,
                                 const struct exponential_histogram *other, uint32_t max_size,
                                 struct budget *budget)
{
    add_range(histogram, other->min, other->max, other->count);
    histogram->zero_count += other->zero_count;
    histogram->sum += other->sum;
    if (other->width > 0 && histogram->scale > other->scale)
        lower_scale(histogram, histogram->scale - other->scale, max_size, budget);
    for (int64_t index = other->first; other->width > 0 && index <= other->last; index++) {
        uint64_t count = count_at(ring(other), other->width, place_of(other, index));
        if (count > 0)
            add_at(histogram, index >> (other->scale - histogram->scale), count, max_size, budget);
    }
}

int32_t exponential_histogram_scale(const struct exponential_histogram *histogram)
{
    return histogram->width > 0 ? histogram->scale : 0;
}

int32_t exponential_histogram_offset(const struct exponential_histogram *histogram)
{
    return histogram->width > 0 ? histogram->first : 0;
}

uint32_t exponential_histogram_buckets(const struct exponential_histogram *histogram)
{
    return histogram->width > 0 ? (uint32_t)(histogram->last - histogram->first + 1) : 0;
}

uint64_t exponential_histogram_bucket(const struct exponential_histogram *histogram, uint32_t i)
{
    assert(i < exponential_histogram_buckets(histogram));
    return count_at(ring(histogram), histogram->width,
                    place_of(histogram, (int64_t)histogram->first + i));
}
