/* SPDX-License-Identifier: Apache-2.0 */
/* Flushes for which the budget has no room: what is sent is sound, and the next flush has the
 * rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "connectors/span_metrics/series_export.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/wire.h"

enum { RESOURCES = 120, SERIES = 8 };

static const double bounds[] = {1, 10};

static const struct export_settings settings_of[2] = {
    {.has_resource = true,
     .has_name = true,
     .calls = "calls",
     .duration = "duration",
     .events = "events",
     .unit = "ms"},
    {.is_delta = true,
     .has_resource = true,
     .has_name = true,
     .calls = "calls",
     .duration = "duration",
     .events = "events",
     .unit = "ms"},
};

static void fill(struct series_store *store)
{
    for (uint64_t i = 1; i <= RESOURCES; i++) {
        struct text_hash key = {i, i};
        struct series_resource *resource =
            span_series_resource_add(store, key, (struct slice){0}, 1);
        assert_non_null(resource);
        for (uint64_t j = 0; j < SERIES; j++) {
            char name[32];
            snprintf(name, sizeof(name), "GET /%d", (int)j);
            const struct series_labels labels = {.name = slice_of_text(name)};
            struct series *series = span_series_add(store, resource, SERIES_CALLS,
                                                    (struct text_hash){i * SERIES + j, j}, &labels,
                                                    (struct series_time){1, 1});
            assert_non_null(series);
            span_series_observe(store->settings, SERIES_CALLS, series, 5, 1 + j);
        }
    }
}

/* Reads field after field down to the data points; adds up what sums have. */
static uint64_t sum_of(struct slice message, unsigned depth)
{
    enum { METRIC = 3, SUM = 7, POINTS = 4, AS_INT = 6 };
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    uint64_t sum = 0;
    while (wire_next_field(&reader, &field)) {
        bool is_inner =
            field.type == WIRE_BYTES && (depth == 0        ? field.number == 1
                                         : depth <= 2      ? field.number == 2
                                         : depth == METRIC ? field.number == SUM
                                                           : depth == POINTS && field.number == 1);
        if (is_inner)
            sum += sum_of(field.bytes, depth + 1);
        else if (depth == POINTS + 1 && field.number == AS_INT)
            sum += field.number_value;
    }
    return sum;
}

/* Adds up the points of the flush, too. */
static uint64_t flush(struct series_export *export, uint64_t time_ns, uint64_t *points)
{
    uint64_t sum = 0;
    struct batch *batch;
    *points = 0;
    series_export_begin(export, time_ns, time_ns);
    while ((batch = series_export_next(export)) != NULL) {
        struct otlp_figures figures;
        const char *reason;
        struct batch_part whole;
        assert_true(batch_join(batch, NULL, &whole));
        assert_true(otlp_check(METRICS, whole.bytes, &figures, &reason));
        assert_true(figures.items == batch->items);
        *points += batch->items;
        sum += sum_of(whole.bytes, 0);
        buffer_unref(whole.owner);
        batch_unref(batch);
    }
    return sum;
}

static void what_is_refused_comes_with_the_next_flush(void **state)
{
    const uint64_t all = (uint64_t)RESOURCES * SERIES * (SERIES + 1) / 2;
    unsigned partial = 0;
    (void)state;
    for (unsigned kind = 0; kind < 2; kind++)
        for (uint64_t room = 0; room < 1000000; room += 37000) {
            struct budget budget;
            budget_init(&budget, UINT64_MAX);
            struct series_settings series = {.histogram = HISTOGRAM_EXPLICIT,
                                             .has_common_labels = true,
                                             .bounds = bounds,
                                             .bounds_count = 2,
                                             .resources_max = 1000,
                                             .bytes_max = UINT64_MAX,
                                             .budget = &budget};
            struct series_store store;
            struct delta_times times;
            struct series_export export;
            uint64_t points;
            span_series_store_init(&store, &series);
            fill(&store);
            delta_times_init(&times, 10000, &budget);
            series_export_init(&export, &settings_of[kind], &store, &times, &budget);
            atomic_store(&budget.limit, budget_used(&budget) + room);
            uint64_t first = flush(&export, 10, &points);
            partial += points > 0 && export.has_failed;
            assert_true(points == 2 * RESOURCES * SERIES || export.has_failed);
            atomic_store(&budget.limit, UINT64_MAX);
            uint64_t second = flush(&export, 20, &points);
            assert_false(export.has_failed);
            if (settings_of[kind].is_delta) {
                assert_true(first + second == all);
                assert_int_equal(store.series, 0);
                assert_null(store.first);
            } else {
                /* Zeros come first, once. */
                assert_int_equal(first, 0);
                assert_int_equal(points, 2 * RESOURCES * SERIES);
                assert_true(flush(&export, 30, &points) == all);
            }
            series_export_fini(&export);
            delta_times_fini(&times);
            span_series_store_fini(&store);
            assert_int_equal(budget_used(&budget), 0);
            budget_fini(&budget);
        }
    assert_true(partial >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_refused_comes_with_the_next_flush),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
