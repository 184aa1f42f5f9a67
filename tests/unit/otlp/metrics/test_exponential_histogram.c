/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential histograms against a model that keeps every value, and under refused memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/otlp/metrics/exponential_histogram.h"
#include "tests/support/random_otlp.h"

enum { VALUES_MAX = 3000, ROUNDS = 200, BUDGET_BYTES = 1 << 20 };

struct model {
    double values[VALUES_MAX];
    uint64_t times[VALUES_MAX];
    size_t count;
};

static double random_value(struct random_source *random, unsigned spread)
{
    double part = (double)random_below(random, 1 << 20) / (1 << 20);
    switch (random_below(random, 8)) {
    case 0:
        return 0;
    case 1:
        return ldexp(1, (int)random_below(random, spread) - (int)(spread / 2));
    default:
        return ldexp(1 + part, (int)random_below(random, spread) - (int)(spread / 2));
    }
}

/* (base^i, base^(i + 1)], for normal numbers. */
static int64_t model_index(double value, int scale)
{
    int exponent;
    double significand = frexp(value, &exponent);
    if (significand == 0.5)
        return scale >= 0 ? (exponent - 1) * (INT64_C(1) << scale) - 1
                          : ((int64_t)exponent - 2) >> -scale;
    double index = floor((exponent + log2(significand)) * ldexp(1, 20));
    return (int64_t)index >> (20 - scale);
}

static int model_scale(const struct model *model, uint32_t max_size, int64_t *ret_first,
                       int64_t *ret_last)
{
    for (int scale = EXPONENTIAL_SCALE_MAX;; scale--) {
        int64_t first = INT64_MAX;
        int64_t last = INT64_MIN;
        for (size_t i = 0; i < model->count; i++) {
            if (model->values[i] == 0)
                continue;
            int64_t index = model_index(model->values[i], scale);
            first = index < first ? index : first;
            last = index > last ? index : last;
        }
        *ret_first = first;
        *ret_last = last;
        if (first > last)
            return 0;
        if (last - first < max_size)
            return scale;
    }
}

static uint64_t model_bucket(const struct model *model, int scale, int64_t index)
{
    uint64_t count = 0;
    for (size_t i = 0; i < model->count; i++)
        if (model->values[i] != 0 && model_index(model->values[i], scale) == index)
            count += model->times[i];
    return count;
}

static void assert_is_model(const struct exponential_histogram *histogram,
                            const struct model *model, uint32_t max_size)
{
    int64_t first;
    int64_t last;
    int scale = model_scale(model, max_size, &first, &last);
    uint64_t count = 0;
    uint64_t zeros = 0;
    double sum = 0;
    double min = DBL_MAX;
    double max = 0;
    for (size_t i = 0; i < model->count; i++) {
        count += model->times[i];
        zeros += model->values[i] == 0 ? model->times[i] : 0;
        sum += model->values[i] * (double)model->times[i];
        min = fmin(min, model->values[i]);
        max = fmax(max, model->values[i]);
    }
    assert_true(histogram->count == count);
    assert_true(histogram->zero_count == zeros);
    assert_true(fabs(histogram->sum - sum) <= 1e-9 * sum);
    if (count > 0) {
        assert_true(histogram->min == min);
        assert_true(histogram->max == max);
    }
    assert_int_equal(exponential_histogram_scale(histogram), scale);
    if (first > last) {
        assert_int_equal(exponential_histogram_buckets(histogram), 0);
        return;
    }
    assert_int_equal(exponential_histogram_offset(histogram), first);
    assert_int_equal(exponential_histogram_buckets(histogram), last - first + 1);
    for (uint32_t i = 0; i < exponential_histogram_buckets(histogram); i++)
        assert_true(exponential_histogram_bucket(histogram, i) ==
                    model_bucket(model, scale, first + i));
}

static void add_random(struct exponential_histogram *histogram, struct model *model,
                       struct random_source *random, uint32_t max_size, struct budget *budget)
{
    static const uint64_t most[] = {1, 3, 300, 100000, UINT64_C(1) << 40};
    unsigned spread = 1 + (unsigned)random_below(random, random_below(random, 2) ? 4 : 300);
    size_t count = random_below(random, 60);
    for (size_t i = 0; i < count && model->count < VALUES_MAX; i++) {
        double value = random_value(random, spread);
        uint64_t times = 1 + random_below(random, most[random_below(random, 5)]);
        exponential_histogram_add(histogram, value, times, max_size, budget);
        model->values[model->count] = value;
        model->times[model->count++] = times;
    }
}

static const uint32_t sizes[] = {2, 3, 7, 16, 17, 20, 160};

static void histograms_equal_a_model_of_all_values(void **state)
{
    struct random_source random = {1};
    struct budget budget;
    (void)state;
    budget_init(&budget, UINT64_MAX);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t max_size = sizes[round % 7];
        struct model *model = calloc(1, sizeof(*model));
        struct exponential_histogram histogram;
        assert_non_null(model);
        exponential_histogram_init(&histogram);
        for (unsigned i = 0; i < 4; i++) {
            add_random(&histogram, model, &random, max_size, &budget);
            assert_is_model(&histogram, model, max_size);
        }
        exponential_histogram_fini(&histogram, &budget);
        free(model);
    }
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void merged_histograms_equal_a_model_of_both(void **state)
{
    struct random_source random = {2};
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t max_size = sizes[round % 7];
        struct model *model = calloc(1, sizeof(*model));
        struct exponential_histogram into;
        struct exponential_histogram from;
        assert_non_null(model);
        exponential_histogram_init(&into);
        exponential_histogram_init(&from);
        add_random(&into, model, &random, max_size, NULL);
        add_random(&from, model, &random, max_size, NULL);
        exponential_histogram_merge(&into, &from, max_size, NULL);
        assert_is_model(&into, model, max_size);
        exponential_histogram_fini(&into, NULL);
        exponential_histogram_fini(&from, NULL);
        free(model);
    }
}

static uint64_t bucket_sum(const struct exponential_histogram *histogram)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < exponential_histogram_buckets(histogram); i++)
        sum += exponential_histogram_bucket(histogram, i);
    return sum;
}

static void refused_memory_costs_resolution_and_no_count(void **state)
{
    struct random_source random = {3};
    struct budget budget;
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct model *model = calloc(1, sizeof(*model));
        struct exponential_histogram histogram;
        assert_non_null(model);
        budget_init(&budget, round % 2 ? random_below(&random, 400) : UINT64_MAX);
        exponential_histogram_init(&histogram);
        for (unsigned i = 0; i < 6; i++) {
            mem_refuse_nth(round % 2 ? 0 : 1 + i);
            add_random(&histogram, model, &random, 160, &budget);
            mem_refuse_nth(0);
            assert_true(bucket_sum(&histogram) + histogram.zero_count == histogram.count);
            assert_true(exponential_histogram_buckets(&histogram) <= 160);
            for (size_t j = 0; j < model->count; j++) {
                int64_t index = model->values[j] == 0
                                    ? 0
                                    : model_index(model->values[j], histogram.scale) -
                                          exponential_histogram_offset(&histogram);
                if (model->values[j] != 0)
                    assert_true(index >= 0 &&
                                exponential_histogram_bucket(&histogram, (uint32_t)index) > 0);
            }
        }
        exponential_histogram_fini(&histogram, &budget);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
        free(model);
    }
}

static void extreme_values_have_buckets(void **state)
{
    static const double values[] = {DBL_MAX, DBL_MIN, 4.9406564584124654e-324, 0x1p-1030, 0x1p1023};
    struct exponential_histogram histogram;
    (void)state;
    exponential_histogram_init(&histogram);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        exponential_histogram_add(&histogram, values[i], 1, EXPONENTIAL_SIZE_MIN, NULL);
    assert_int_equal(exponential_histogram_scale(&histogram), EXPONENTIAL_SCALE_MIN);
    assert_int_equal(exponential_histogram_offset(&histogram), -1);
    assert_int_equal(exponential_histogram_bucket(&histogram, 0), 3);
    assert_int_equal(exponential_histogram_bucket(&histogram, 1), 2);
    exponential_histogram_add(&histogram, -1, 2, EXPONENTIAL_SIZE_MIN, NULL);
    exponential_histogram_add(&histogram, NAN, 1, EXPONENTIAL_SIZE_MIN, NULL);
    assert_int_equal(histogram.zero_count, 3);
    assert_true(histogram.min == 0);
    exponential_histogram_fini(&histogram, NULL);
}

static void values_on_a_bound_belong_below_it(void **state)
{
    static const double bounds[] = {2, 4, 6, 8.5};
    (void)state;
    assert_int_equal(explicit_bucket(bounds, 4, 0), 0);
    assert_int_equal(explicit_bucket(bounds, 4, 2), 0);
    assert_int_equal(explicit_bucket(bounds, 4, nextafter(2, 3)), 1);
    assert_int_equal(explicit_bucket(bounds, 4, 8.5), 3);
    assert_int_equal(explicit_bucket(bounds, 4, 9), 4);
    assert_int_equal(explicit_bucket(NULL, 0, 9), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histograms_equal_a_model_of_all_values),
        cmocka_unit_test(merged_histograms_equal_a_model_of_both),
        cmocka_unit_test(refused_memory_costs_resolution_and_no_count),
        cmocka_unit_test(extreme_values_have_buckets),
        cmocka_unit_test(values_on_a_bound_belong_below_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
