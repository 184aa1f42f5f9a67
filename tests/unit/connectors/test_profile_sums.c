/* SPDX-License-Identifier: Apache-2.0 */
/* What sums of profiles may take: a part of the budget, and labels in proportion to a request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "connectors/profile_metrics/sample_sums.h"
#include "connectors/profile_metrics/sum_store.h"
#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "tests/support/profile_sketch.h"

static void begin_store(struct sum_store *store, struct budget *budget, uint64_t limit)
{
    budget_init(budget, limit);
    sum_store_init(store, budget);
    for (size_t i = 0; i < MEASURES; i++)
        store->names[i] = "measure";
}

static void end_store(struct sum_store *store, struct budget *budget)
{
    sum_store_clear(store);
    assert_int_equal(store->bytes, 0);
    assert_int_equal(budget_used(budget), 0);
    budget_fini(budget);
}

static void series_take_a_quarter_of_the_budget(void **state)
{
    enum { LIMIT = 1 << 20, SERIES = 5000 };
    struct sum_store store;
    struct budget budget;
    uint64_t total = 0;
    (void)state;
    begin_store(&store, &budget, LIMIT);
    for (unsigned i = 0; i < SERIES; i++) {
        char labels[128];
        memset(labels, 'x', sizeof(labels));
        snprintf(labels, sizeof(labels), "%u", i);
        const struct sample_sum sum = {.resource = slice_of_text("r"),
                                       .labels = slice_of(labels, sizeof(labels)),
                                       .values = {[MEASURE_CPU] = 1}};
        sum_store_begin(&store);
        sum_store_add(&store, &sum, 1, 1);
        assert_true(budget_used(&budget) <= LIMIT / SUM_BUDGET_PART);
    }
    assert_in_range(store.count, SERIES / 10, SERIES - 1);
    total = store.count + store.overflow[MEASURE_CPU];
    assert_int_equal(total, SERIES);
    end_store(&store, &budget);
}

static void long_resources_count_as_overflow(void **state)
{
    enum { BYTES = SUM_RESOURCE_BYTES_MAX + 1 };
    static uint8_t text[BYTES];
    struct sum_store store;
    struct budget budget;
    (void)state;
    begin_store(&store, &budget, UINT64_MAX);
    for (size_t size = BYTES - 1; size <= BYTES; size++) {
        const struct sample_sum sum = {.resource = slice_of(text, size),
                                       .labels = slice_of_text("l"),
                                       .values = {[MEASURE_CPU] = 1}};
        sum_store_add(&store, &sum, 1, 1);
    }
    assert_int_equal(store.count, 1);
    assert_int_equal(store.overflow[MEASURE_CPU], 1);
    end_store(&store, &budget);
}

/* Few bytes of samples repeat the labels of their resource. */
static void labels_are_in_proportion_to_the_request(void **state)
{
    enum { SAMPLES = 4000, LABEL = 1000, RESOURCE = 4 };
    static struct sketch_sample samples[SAMPLES];
    static char routes[SAMPLES][32];
    static char labels[RESOURCE][LABEL + 8];
    const struct sum_names names = {.dimensions_count = 5,
                                    .dimensions = {slice_of_text("a"), slice_of_text("b"),
                                                   slice_of_text("c"), slice_of_text("d"),
                                                   slice_of_text("http.route")}};
    struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = SAMPLES, .samples = samples};
    struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    struct sample_sums sums;
    struct budget budget;
    size_t bytes = 0;
    uint64_t values = 0;
    (void)state;
    for (size_t i = 0; i < RESOURCE; i++) {
        memset(labels[i], 'x', LABEL);
        labels[i][0] = (char)('a' + i);
        labels[i][1] = '=';
        sketch.resource[i] = labels[i];
    }
    for (size_t i = 0; i < SAMPLES; i++) {
        snprintf(routes[i], sizeof(routes[i]), "http.route=%zu", i);
        samples[i] =
            (struct sketch_sample){.values_count = 1, .values = {1}, .attributes = {routes[i]}};
    }
    struct slice request = sketch_request(&sketch);
    budget_init(&budget, UINT64_MAX);
    sample_sums_init(&sums, &names, &budget);
    assert_true(sample_sums_read(&sums, request));
    assert_int_equal(sums.count, SAMPLES);
    for (size_t i = 0; i < sums.count; i++) {
        struct sample_sum sum = sample_sums_at(&sums, i);
        assert_true(!sum.is_overflow || sum.labels.size == 0);
        bytes += sum.labels.size;
        values += sum.values[MEASURE_CPU];
    }
    assert_int_equal(values, SAMPLES);
    assert_in_range(bytes, SUM_LABELS_BYTES_MIN,
                    request.size + SUM_LABELS_BYTES_MIN + RESOURCE * (LABEL + 64));
    assert_false(sample_sums_at(&sums, 0).is_overflow);
    assert_true(sample_sums_at(&sums, SAMPLES - 1).is_overflow);
    mem_free((void *)(uintptr_t)request.data);
    sample_sums_fini(&sums);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_take_a_quarter_of_the_budget),
        cmocka_unit_test(long_resources_count_as_overflow),
        cmocka_unit_test(labels_are_in_proportion_to_the_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
