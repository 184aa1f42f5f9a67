/* SPDX-License-Identifier: Apache-2.0 */
/* The store of series: limits, eviction, merging, and memory that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "connectors/span_metrics/span_series.h"
#include "src/base/budget.h"
#include "src/base/mem.h"

static const double bounds[] = {1, 10, 100};
static const struct series_time first_time = {1000, 10};

static struct series_settings settings_of(struct budget *budget)
{
    return (struct series_settings){.histogram = HISTOGRAM_EXPLICIT,
                                    .has_common_labels = true,
                                    .bounds = bounds,
                                    .bounds_count = 3,
                                    .max_size = 160,
                                    .exemplars_max = 2,
                                    .resources_max = 3,
                                    .bytes_max = UINT64_MAX,
                                    .budget = budget};
}

static struct text_hash key_of(uint64_t number)
{
    return (struct text_hash){number * 7919, number};
}

static struct series_resource *resource_of(struct series_store *store, uint64_t number)
{
    struct series_resource *resource = span_series_resource_get(store, key_of(number), 5);
    return resource != NULL
               ? resource
               : span_series_resource_add(store, key_of(number), slice_of_text("attributes"), 5);
}

/* As the aggregation does it. */
static bool add(struct series_store *store, struct series_resource *resource, uint64_t number,
                uint64_t times)
{
    const struct series_labels labels = {.service = slice_of_text("shop"),
                                         .name = slice_of_text("GET /")};
    struct series *series = span_series_find(resource, SERIES_CALLS, key_of(number));
    if (series == NULL && span_series_has_room(store, resource, SERIES_CALLS, key_of(number)))
        series =
            span_series_add(store, resource, SERIES_CALLS, key_of(number), &labels, first_time);
    if (series == NULL)
        series = span_series_overflow(store, resource, SERIES_CALLS, first_time);
    if (series == NULL)
        return false;
    span_series_observe(store->settings, SERIES_CALLS, series, (double)number, times);
    span_series_exemplify(store->settings, series, &(struct point_exemplar){.value = 1});
    return true;
}

static uint64_t sum(const struct series_store *store)
{
    uint64_t count = 0;
    const struct series_resource *resource = store->first;
    for (; resource != NULL; resource = resource->next)
        for (const struct series *series = resource->sets[SERIES_CALLS].first; series != NULL;
             series = series->next) {
            struct explicit_histogram *histogram =
                span_series_explicit((struct series *)(uintptr_t)series);
            uint64_t counts = 0;
            for (unsigned i = 0; i < 4; i++)
                counts += histogram->counts[i];
            assert_true(counts == series->count);
            count += series->count;
        }
    return count;
}

static void what_is_beyond_the_limit_counts_as_overflow(void **state)
{
    struct budget budget;
    (void)state;
    budget_init(&budget, UINT64_MAX);
    struct series_settings settings = settings_of(&budget);
    struct series_store store;
    settings.series_max = 3;
    span_series_store_init(&store, &settings);
    struct series_resource *resource = resource_of(&store, 1);
    for (uint64_t i = 0; i < 10; i++)
        assert_true(add(&store, resource, i, 1));
    assert_true(add(&store, resource, 1, 5));
    const struct series_list *list = &resource->sets[SERIES_CALLS];
    assert_int_equal(list->count, 4);
    assert_int_equal(list->overflow->count, 7);
    assert_true(list->overflow->is_overflow);
    assert_null(list->overflow->exemplars);
    assert_int_equal(span_series_find(resource, SERIES_CALLS, key_of(1))->count, 6);
    assert_int_equal(sum(&store), 15);
    assert_int_equal(store.series, 4);

    /* One that goes makes room only below the limit, which the overflow series counts for. */
    span_series_remove(&store, resource, SERIES_CALLS, &resource->sets[SERIES_CALLS].first);
    assert_false(span_series_has_room(&store, resource, SERIES_CALLS, key_of(99)));
    span_series_remove(&store, resource, SERIES_CALLS, &resource->sets[SERIES_CALLS].first);
    assert_true(span_series_has_room(&store, resource, SERIES_CALLS, key_of(99)));
    span_series_store_fini(&store);
    assert_int_equal(settings.bytes, 0);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void the_longest_unused_resource_goes(void **state)
{
    struct series_settings settings = settings_of(NULL);
    struct series_store store;
    (void)state;
    span_series_store_init(&store, &settings);
    for (uint64_t i = 1; i <= 3; i++)
        resource_of(&store, i);
    resource_of(&store, 1);
    resource_of(&store, 4);
    assert_int_equal(store.kept, 3);
    assert_int_equal(store.evicted, 1);
    /* Number 2 was evicted; it comes again, and number 3 goes. */
    struct series_resource *second = span_series_resource_get(&store, key_of(2), 6);
    assert_non_null(second);
    assert_false(second->is_evicted);
    assert_int_equal(second->seen_ns, 6);
    assert_int_equal(store.evicted, 1);
    /* Evicted ones are as many as the others at most, the oldest go for good; not a pinned one. */
    struct series_resource *pinned = store.first;
    while (!pinned->is_evicted)
        pinned = pinned->next;
    pinned->is_pinned = true;
    for (uint64_t i = 10; i < 20; i++)
        resource_of(&store, i);
    assert_int_equal(store.kept, 3);
    assert_int_equal(store.evicted, 3);
    assert_ptr_equal(span_series_resource_get(&store, key_of(3), 7), pinned);
    assert_null(span_series_resource_get(&store, key_of(10), 7));
    span_series_store_fini(&store);
}

static void long_labels_count_as_overflow(void **state)
{
    static char text[SERIES_LABELS_BYTES_MAX + 1];
    struct series_settings settings = settings_of(NULL);
    struct series_store store;
    (void)state;
    span_series_store_init(&store, &settings);
    struct series_resource *resource = resource_of(&store, 1);
    struct series_labels labels = {.name = slice_of(text, sizeof(text))};
    assert_null(span_series_add(&store, resource, SERIES_CALLS, key_of(1), &labels, first_time));
    labels.name.size--;
    assert_non_null(
        span_series_add(&store, resource, SERIES_CALLS, key_of(1), &labels, first_time));
    span_series_store_fini(&store);
}

static void merging_adds_up(void **state)
{
    struct budget budget;
    (void)state;
    budget_init(&budget, UINT64_MAX);
    struct series_settings settings = settings_of(&budget);
    struct series_store into;
    struct series_store from;
    uint64_t lost = 0;
    settings.series_max = 5;
    span_series_store_init(&into, &settings);
    span_series_store_init(&from, &settings);
    for (uint64_t i = 0; i < 4; i++)
        add(&into, resource_of(&into, 1), i, 10);
    for (uint64_t i = 2; i < 9; i++)
        add(&from, resource_of(&from, 1), i, 1);
    add(&from, resource_of(&from, 2), 1, 1);
    unsigned pieces = 1;
    while (span_series_store_merge(&into, &from, 2, &lost))
        pieces++;
    assert_true(pieces >= 4);
    assert_int_equal(lost, 0);
    assert_null(from.first);
    assert_int_equal(from.series, 0);
    assert_int_equal(sum(&into), 48);
    struct series_resource *resource = resource_of(&into, 1);
    assert_int_equal(span_series_find(resource, SERIES_CALLS, key_of(2))->count, 11);
    assert_int_equal(span_series_find(resource, SERIES_CALLS, key_of(2))->exemplars->count, 2);
    assert_int_equal(span_series_find(resource, SERIES_CALLS, key_of(4))->count, 1);
    assert_int_equal(resource->sets[SERIES_CALLS].overflow->count, 4);
    assert_int_equal(span_series_find(resource_of(&into, 2), SERIES_CALLS, key_of(1))->count, 1);
    span_series_store_fini(&into);
    span_series_store_fini(&from);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

/* What a lane has counted takes no more memory in the other store. */
static void merging_loses_nothing_when_the_budget_is_full(void **state)
{
    struct budget budget;
    (void)state;
    for (unsigned by_share = 0; by_share < 2; by_share++) {
        budget_init(&budget, 1 << 20);
        struct series_settings settings = settings_of(&budget);
        struct series_store into;
        struct series_store from;
        uint64_t lost = 0;
        span_series_store_init(&into, &settings);
        span_series_store_init(&from, &settings);
        for (uint64_t i = 0; i < 3; i++)
            assert_true(add(&from, resource_of(&from, 1), i, 10));
        const uint64_t others = by_share ? 0 : budget_limit(&budget) - budget_used(&budget);
        settings.bytes_max = by_share ? settings.bytes : settings.bytes_max;
        budget_take(&budget, others);
        while (span_series_store_merge(&into, &from, 2, &lost))
            continue;
        assert_int_equal(lost, 0);
        assert_int_equal(sum(&into), 30);
        budget_return(&budget, others);
        span_series_store_fini(&into);
        span_series_store_fini(&from);
        assert_int_equal(settings.bytes, 0);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
}

static void without_memory_spans_still_count(void **state)
{
    struct budget budget;
    (void)state;
    for (uint64_t limit = 0; limit < 6000; limit += 100) {
        budget_init(&budget, limit);
        struct series_settings settings = settings_of(&budget);
        settings.bytes_max = limit % 300 == 0 ? limit / 2 : UINT64_MAX;
        struct series_store store;
        span_series_store_init(&store, &settings);
        struct series_resource *resource = resource_of(&store, 1);
        for (uint64_t i = 0; resource != NULL && i < 20; i++)
            assert_true(add(&store, resource, i, 1));
        assert_int_equal(sum(&store), resource != NULL ? 20 : 0);
        span_series_store_fini(&store);
        assert_int_equal(settings.bytes, 0);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 60; n++) {
        struct budget budget;
        budget_init(&budget, UINT64_MAX);
        struct series_settings settings = settings_of(&budget);
        struct series_store store;
        struct series_store other;
        uint64_t counted = 0;
        uint64_t lost = 0;
        settings.histogram = n % 2 ? HISTOGRAM_EXPLICIT : HISTOGRAM_NONE;
        span_series_store_init(&store, &settings);
        span_series_store_init(&other, &settings);
        mem_refuse_nth(n);
        for (uint64_t i = 0; i < 40; i++) {
            struct series_store *to = i % 3 ? &store : &other;
            struct series_resource *resource = resource_of(to, i % 2);
            counted += resource != NULL && add(to, resource, i / 2, 1);
        }
        while (span_series_store_merge(&store, &other, 3, &lost))
            ;
        mem_refuse_nth(0);
        if (settings.histogram == HISTOGRAM_EXPLICIT)
            assert_int_equal(sum(&store) + lost, counted);
        assert_true(counted >= 38);
        span_series_store_fini(&store);
        span_series_store_fini(&other);
        assert_int_equal(settings.bytes, 0);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_beyond_the_limit_counts_as_overflow),
        cmocka_unit_test(the_longest_unused_resource_goes),
        cmocka_unit_test(long_labels_count_as_overflow),
        cmocka_unit_test(merging_adds_up),
        cmocka_unit_test(merging_loses_nothing_when_the_budget_is_full),
        cmocka_unit_test(without_memory_spans_still_count),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
