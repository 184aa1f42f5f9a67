/* SPDX-License-Identifier: Apache-2.0 */
/* What tells series of exceptions apart, their limit, exemplars, and memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "connectors/exceptions/exception_series.h"
#include "src/base/budget.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/metrics/metric_reader.h"
#include "tests/support/random_otlp.h"

#define WALL ((uint64_t)1700000000 * NS_PER_S)

struct fixture {
    struct budget budget;
    struct exception_store store;
    struct exception_keys keys;
    struct exception_bench bench;
    struct wanted_values resource;
    struct wanted_values span;
    struct wanted_values event;
};

static struct fixture *fixture_create(uint64_t series_max, bool has_exemplars)
{
    static struct fixture fixture;
    fixture = (struct fixture){.resource = {.has = 0}};
    clock_fake_start(1, WALL);
    budget_init(&fixture.budget, UINT64_MAX);
    exception_store_init(&fixture.store, series_max, has_exemplars, &fixture.budget);
    exception_keys_init(&fixture.keys);
    assert_true(exception_keys_add(&fixture.keys, "exception.type", NULL));
    assert_true(exception_keys_add(&fixture.keys, "zone", "none"));
    exception_bench_init(&fixture.bench, &fixture.budget);
    return &fixture;
}

static void fixture_destroy(struct fixture *f)
{
    exception_bench_fini(&f->bench);
    exception_store_clear(&f->store);
    assert_int_equal(budget_used(&f->budget), 0);
    budget_fini(&f->budget);
    clock_fake_stop();
}

static struct exception exception_of(const struct fixture *f, const char *service, const char *span)
{
    static const uint8_t trace[16] = {1};
    static const uint8_t id[8] = {2};
    return (struct exception){
        .service = slice_of_text(service),
        .span_name = slice_of_text(span),
        .kind = "SPAN_KIND_SERVER",
        .status = "STATUS_CODE_ERROR",
        .trace_id = slice_of(trace, sizeof(trace)),
        .span_id = slice_of(id, sizeof(id)),
        .resource_values = &f->resource,
        .span_values = &f->span,
        .event_values = &f->event,
    };
}

/* value: an encoded AnyValue. */
static void set(struct wanted_values *values, const struct fixture *f, size_t dimension,
                struct slice value)
{
    uint8_t place = f->keys.dimensions[dimension].place;
    values->encoded[place] = value;
    values->has |= (uint64_t)1 << place;
}

static bool count(struct fixture *f, const struct exception *exception)
{
    struct exception_point point;
    bool is_counted = exception_point_make(&f->store, &f->keys, exception, &f->bench, &point) &&
                      exception_store_add(&f->store, &point);
    return is_counted;
}

/* All that is written, as one request; freed by mem_free. */
static struct slice written(struct fixture *f)
{
    struct otlp_figures figures;
    struct batch *batch;
    const char *reason;
    size_t at = 0;
    assert_int_equal(exception_store_write(&f->store, WALL + 5, &at, &batch), PIECE_WRITTEN);
    struct slice bytes = joined_parts(batch);
    assert_true(otlp_check(METRICS, bytes, &figures, &reason));
    assert_int_equal(figures.items, batch->items);
    batch_unref(batch);
    assert_int_equal(exception_store_write(&f->store, WALL + 5, &at, &batch), PIECE_END);
    return bytes;
}

/* The nth data point of what is written; *ret_point borrows. */
static struct slice nth_point(struct slice request, unsigned n)
{
    struct slice found = request;
    static const uint32_t path[] = {1, 2, 2};
    for (size_t i = 0; i < 3; i++) {
        struct metric_items items = metric_items_of(found, path[i]);
        assert_true(metric_items_next(&items, &found));
    }
    struct metric metric = metric_read(found);
    assert_true(slice_equal_text(metric.name, "exceptions"));
    assert_int_equal(metric.kind, METRIC_SUM);
    assert_true(metric.is_monotonic);
    assert_int_equal(metric.temporality, TEMPORALITY_CUMULATIVE);
    struct metric_items points = metric_items_of(metric.data, 1);
    for (unsigned i = 0; i <= n; i++)
        assert_true(metric_items_next(&points, &found));
    return found;
}

static void each_combination_is_a_series(void **state)
{
    (void)state;
    static const uint8_t integer[] = {3 << 3, 5};
    struct fixture *f = fixture_create(0, false);
    struct exception exception = exception_of(f, "shop", "GET");
    assert_true(count(f, &exception));
    assert_true(count(f, &exception));
    exception.span_name = slice_of_text("PUT");
    assert_true(count(f, &exception));
    exception.kind = "SPAN_KIND_CLIENT";
    assert_true(count(f, &exception));
    exception.status = "STATUS_CODE_OK";
    assert_true(count(f, &exception));
    assert_int_equal(f->store.count, 4);
    set(&f->event, f, 0, slice_of_text("\n\0015"));
    assert_true(count(f, &exception));
    set(&f->event, f, 0, slice_of(integer, sizeof(integer))); /* the same text */
    assert_true(count(f, &exception));
    assert_int_equal(f->store.count, 5);
    set(&f->event, f, 0, slice_of(NULL, 0)); /* empty, which is not absent */
    assert_true(count(f, &exception));
    assert_int_equal(f->store.count, 6);
    struct slice request = written(f);
    struct slice point = nth_point(request, 0);
    struct metric_point read = metric_point_read(METRIC_SUM, point);
    assert_int_equal(read.integer, 2);
    assert_int_equal(read.start_ns, WALL);
    assert_int_equal(read.time_ns, WALL + 5);
    static const char standard[] = "\n\004zone\022\006\n\004none";
    assert_non_null(memmem(point.data, point.size, standard, sizeof(standard) - 1));
    assert_int_equal(metric_point_read(METRIC_SUM, nth_point(request, 4)).integer, 2);
    mem_free((void *)(uintptr_t)request.data);
    fixture_destroy(f);
}

static void values_are_those_of_the_span_before_the_event_before_the_resource(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(0, false);
    struct exception exception = exception_of(f, "shop", "GET");
    struct slice value;
    assert_int_equal(exception_dimension_value(&f->keys, &exception, 0, &value), EXCEPTION_ABSENT);
    assert_int_equal(exception_dimension_value(&f->keys, &exception, 1, &value),
                     EXCEPTION_STANDARD);
    set(&f->resource, f, 1, slice_of_text("\n\001r"));
    assert_int_equal(exception_dimension_value(&f->keys, &exception, 1, &value),
                     EXCEPTION_OF_RESOURCE);
    assert_true(slice_equal_text(value, "\n\001r"));
    set(&f->event, f, 1, slice_of_text("\n\001e"));
    exception_dimension_value(&f->keys, &exception, 1, &value);
    assert_true(slice_equal_text(value, "\n\001e"));
    set(&f->span, f, 1, slice_of_text("\n\001s"));
    exception_dimension_value(&f->keys, &exception, 1, &value);
    assert_true(slice_equal_text(value, "\n\001s"));
    fixture_destroy(f);
}

static void each_span_and_resource_has_values_of_its_own(void **state)
{
    (void)state;
    static const uint8_t five[] = {3 << 3, 5};
    static const uint8_t six[] = {3 << 3, 6};
    struct fixture *f = fixture_create(0, false);
    struct exception exception = exception_of(f, "shop", "GET");
    exception.resource_number = exception.span_number = 1;
    set(&f->span, f, 0, slice_of(five, sizeof(five)));
    set(&f->resource, f, 1, slice_of(five, sizeof(five)));
    assert_true(count(f, &exception));
    assert_true(count(f, &exception));
    assert_int_equal(f->store.count, 1);
    exception.span_number++;
    set(&f->span, f, 0, slice_of(six, sizeof(six)));
    assert_true(count(f, &exception));
    assert_int_equal(f->store.count, 2);
    exception.resource_number++;
    set(&f->resource, f, 1, slice_of(six, sizeof(six)));
    assert_true(count(f, &exception));
    assert_int_equal(f->store.count, 3);
    fixture_destroy(f);
}

static void series_beyond_the_limit_are_counted_in_one(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(3, false);
    char name[16];
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < 10; i++) {
            snprintf(name, sizeof(name), "span %u", i);
            struct exception exception = exception_of(f, "shop", name);
            assert_true(count(f, &exception));
        }
    assert_int_equal(f->store.count, 4);
    struct slice request = written(f);
    struct slice point = nth_point(request, 3);
    assert_int_equal(metric_point_read(METRIC_SUM, point).integer, 14);
    static const char overflow[] = "\n\024otel.metric.overflow\022\002\020\001";
    assert_non_null(memmem(point.data, point.size, overflow, sizeof(overflow) - 1));
    mem_free((void *)(uintptr_t)request.data);
    fixture_destroy(f);
}

static unsigned exemplars_of(struct slice point, double *ret_last)
{
    struct metric_items items = metric_items_of(point, metric_point_exemplars(METRIC_SUM));
    struct slice encoded;
    unsigned count = 0;
    while (metric_items_next(&items, &encoded)) {
        struct metric_exemplar exemplar = metric_exemplar_read(encoded);
        assert_int_equal(exemplar.trace_id.size, 16);
        assert_int_equal(exemplar.trace_id.data[0], 1);
        assert_int_equal(exemplar.span_id.data[0], 2);
        assert_int_equal(exemplar.time_ns, WALL + 5);
        *ret_last = exemplar.value;
        count++;
    }
    return count;
}

static void the_last_exemplars_stay_until_they_are_written(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(0, true);
    struct exception exception = exception_of(f, "shop", "GET");
    double last = 0;
    for (unsigned i = 0; i < EXCEPTION_EXEMPLARS_MAX + 3; i++)
        assert_true(count(f, &exception));
    struct slice request = written(f);
    assert_int_equal(exemplars_of(nth_point(request, 0), &last), EXCEPTION_EXEMPLARS_MAX);
    assert_true(last == EXCEPTION_EXEMPLARS_MAX + 3);
    mem_free((void *)(uintptr_t)request.data);
    exception.trace_id = slice_of(NULL, 0); /* without a trace there is none */
    assert_true(count(f, &exception));
    request = written(f);
    assert_int_equal(exemplars_of(nth_point(request, 0), &last), 0);
    mem_free((void *)(uintptr_t)request.data);
    fixture_destroy(f);
}

static void long_values_are_cut(void **state)
{
    (void)state;
    static uint8_t value[3 * EXCEPTION_TEXT_BYTES_MAX];
    struct fixture *f = fixture_create(0, false);
    char *name = mem_zalloc(2 * EXCEPTION_TEXT_BYTES_MAX + 1);
    memset(name, 'x', 2 * EXCEPTION_TEXT_BYTES_MAX);
    memset(value, 'y', sizeof(value));
    static const uint8_t head[] = {1 << 3 | 2, 0x80, 0x60}; /* 12288 bytes of text */
    memcpy(value, head, sizeof(head));
    set(&f->event, f, 0, slice_of(value, sizeof(value)));
    struct exception exception = exception_of(f, name, name);
    f->event.encoded[f->keys.dimensions[0].place].size = sizeof(value);
    value[1] = 0xfd; /* … that fit */
    value[2] = 0x5f;
    assert_true(count(f, &exception));
    struct slice request = written(f);
    assert_in_range(request.size, 3 * EXCEPTION_TEXT_BYTES_MAX, 3 * EXCEPTION_TEXT_BYTES_MAX + 500);
    mem_free((void *)(uintptr_t)request.data);
    mem_free(name);
    fixture_destroy(f);
}

static uint64_t work_through(struct fixture *f)
{
    uint64_t lost = 0;
    char name[16];
    for (unsigned i = 0; i < 60; i++) {
        snprintf(name, sizeof(name), "span %u", i % 50);
        struct exception exception = exception_of(f, "shop", name);
        lost += !count(f, &exception);
    }
    struct batch *batch;
    size_t at = 0;
    if (exception_store_write(&f->store, WALL, &at, &batch) == PIECE_WRITTEN)
        batch_unref(batch);
    return lost;
}

static void without_memory_exceptions_are_lost_and_nothing_else(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(0, true);
    uint64_t tries = mem_tries();
    assert_int_equal(work_through(f), 0);
    tries = mem_tries() - tries;
    fixture_destroy(f);
    uint64_t lost = 0;
    for (uint64_t n = 1; n <= tries; n++) {
        f = fixture_create(0, true);
        mem_refuse_nth(n);
        lost += work_through(f);
        mem_refuse_nth(0);
        fixture_destroy(f);
    }
    assert_true(lost > 0);
    lost = 1;
    for (uint64_t limit = 0; lost > 0; limit += 4 * KIB) {
        f = fixture_create(0, true);
        atomic_store(&f->budget.limit, limit);
        lost = work_through(f);
        assert_true(atomic_load(&f->budget.high_water) <= limit);
        fixture_destroy(f);
        assert_true(limit < 1 * MIB);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_combination_is_a_series),
        cmocka_unit_test(values_are_those_of_the_span_before_the_event_before_the_resource),
        cmocka_unit_test(each_span_and_resource_has_values_of_its_own),
        cmocka_unit_test(series_beyond_the_limit_are_counted_in_one),
        cmocka_unit_test(the_last_exemplars_stay_until_they_are_written),
        cmocka_unit_test(long_values_are_cut),
        cmocka_unit_test(without_memory_exceptions_are_lost_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
