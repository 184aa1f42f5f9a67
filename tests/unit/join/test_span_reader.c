/* SPDX-License-Identifier: Apache-2.0 */
/* Marks are larger than small spans: they are made within the budget, and spans for which it has no
 * room continue without. Steps of a large batch see what has changed since the last one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/join/spans/span_reader.h"
#include "src/otlp/wire.h"
#include "tests/support/memory_watch.h"

enum { SPANS = 50000, SPAN_BYTES = 2 + 18 + 10, SLACK_BYTES = 64 * 1024 };

/* Spans with nothing but their ids. */
static struct batch *small_spans(void)
{
    const size_t scope = (size_t)SPANS * SPAN_BYTES;
    struct buffer *buffer = buffer_create(NULL, scope + 64);
    struct wire_writer out = wire_writer_of(buffer->data, buffer->capacity);
    wire_write_header(&out, 1, wire_field_size(2, scope));
    wire_write_header(&out, 2, scope);
    for (uint64_t i = 1; i <= SPANS; i++) {
        uint64_t trace[2] = {1, i};
        wire_write_header(&out, 2, SPAN_BYTES - 2);
        wire_write_bytes(&out, 1, slice_of(trace, sizeof(trace)));
        wire_write_bytes(&out, 2, slice_of(&i, sizeof(i)));
    }
    assert_false(out.has_failed);
    buffer->size = wire_written(&out).size;
    struct batch *batch = batch_create(TRACES, 1);
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = SPANS;
    buffer_unref(buffer);
    return batch;
}

static uint64_t mark_within(uint64_t limit, struct batch *batch)
{
    const struct join_settings settings = {
        .attributes = {{JOIN_SPAN_NAME, slice_of_text("span_name")}},
        .attributes_count = 1,
        .values_max = 1000,
        .index_entries = 1000,
        .index_bytes = 4 * MIB,
        .mark = JOIN_MARK_ALL,
        .repairs_identity = true,
    };
    struct join_store *store = join_store_create(&settings, 1);
    struct span_figures figures;
    struct span_reader reader;
    struct budget budget;
    budget_init(&budget, limit);
    memory_watch_begin();
    span_reader_init(&reader, store, 0, &budget);
    struct batch *marked = span_reader_read(&reader, batch, 1, &figures);
    uint64_t charged = atomic_load(&budget.high_water);
    assert_int_equal(figures.marked + figures.unmarked, SPANS);
    assert_int_equal(marked->items, SPANS);
    assert_true(charged <= limit + SLACK_BYTES);
    assert_true(memory_watch_peak() <= charged + SLACK_BYTES);
    batch_unref(marked);
    span_reader_fini(&reader);
    join_store_destroy(store);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    return figures.marked;
}

static void marks_stay_within_the_budget(void **state)
{
    struct batch *batch = small_spans();
    (void)state;
    assert_int_equal(mark_within(1 * MIB, batch), 0); /* the batch is larger */
    assert_in_range(mark_within(8 * MIB, batch), 1000, SPANS - 1);
    assert_int_equal(mark_within(256 * MIB, batch), SPANS);
    batch_unref(batch);
}

/* Between the steps of a large batch others take the room that there was for it with its marks. */
static void a_batch_that_has_no_room_at_the_end_continues_without_marks(void **state)
{
    const struct join_settings settings = {
        .values_max = 1000,
        .index_entries = 1000,
        .index_bytes = 4 * MIB,
        .mark = JOIN_MARK_ALL,
        .repairs_identity = true,
    };
    struct join_store *store = join_store_create(&settings, 1);
    struct batch *batch = small_spans();
    struct span_figures figures;
    struct span_reader reader;
    struct budget budget;
    (void)state;
    budget_init(&budget, 256 * MIB);
    span_reader_init(&reader, store, 0, &budget);
    span_reader_begin(&reader, batch);
    assert_true(span_reader_step(&reader, UINT64_MAX, 1));
    assert_int_equal(reader.figures.marked, SPANS);
    uint64_t others = budget_limit(&budget) - budget_used(&budget) - MIB;
    assert_true(budget_try_take(&budget, others));
    struct batch *read = span_reader_end(&reader, &figures);
    assert_ptr_equal(read, batch);
    assert_int_equal(figures.marked, 0);
    assert_int_equal(figures.unmarked, SPANS);
    assert_true(atomic_load(&budget.high_water) <= budget_limit(&budget));
    budget_return(&budget, others);
    batch_unref(read);
    batch_unref(batch);
    span_reader_fini(&reader);
    join_store_destroy(store);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void each_step_is_read_at_its_own_time(void **state)
{
    enum { STEP = 100 };
    const struct join_settings settings = {
        .values_max = 1000,
        .index_entries = 1000,
        .index_bytes = 4 * MIB,
    };
    const uint64_t first_profile_ns = 2 * NS_PER_S;
    struct join_store *store = join_store_create(&settings, 1);
    struct batch *batch = small_spans();
    struct span_figures figures;
    struct span_reader reader;
    (void)state;
    span_reader_init(&reader, store, 0, NULL);
    span_reader_begin(&reader, batch);
    assert_false(span_reader_step(&reader, STEP, NS_PER_S));
    assert_int_equal(reader.figures.skipped, 0);
    service_set_add(&store->services, 100, false, first_profile_ns);
    assert_false(span_reader_step(&reader, STEP, first_profile_ns + 1));
    assert_int_equal(reader.figures.skipped, 0); /* another service may have profiles soon */
    uint64_t indexed = reader.figures.indexed;
    assert_true(indexed > STEP);
    assert_true(span_reader_step(&reader, UINT64_MAX, first_profile_ns + JOIN_WARM_UP_NS));
    struct batch *read = span_reader_end(&reader, &figures);
    assert_int_equal(figures.indexed, indexed);
    assert_int_equal(figures.skipped, SPANS - indexed);
    batch_unref(read);
    batch_unref(batch);
    span_reader_fini(&reader);
    join_store_destroy(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_stay_within_the_budget),
        cmocka_unit_test(a_batch_that_has_no_room_at_the_end_continues_without_marks),
        cmocka_unit_test(each_step_is_read_at_its_own_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
