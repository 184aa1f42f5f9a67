/* SPDX-License-Identifier: Apache-2.0 */
/* The ring: order, growth at every position of its start, memory that is given back, figures that
 * another thread reads. */
#include "src/base/ring.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void *item(uintptr_t number)
{
    return (void *)(number + 1);
}

static void items_leave_in_the_order_in_which_they_came(void **state)
{
    (void)state;
    struct ring *ring = ring_create();
    assert_null(ring_pop(ring));
    assert_null(ring_first(ring));
    for (uintptr_t i = 0; i < 1000; i++) {
        ring_push(ring, item(2 * i));
        ring_push(ring, item(2 * i + 1));
        assert_ptr_equal(ring_first(ring), item(2 * i));
        assert_ptr_equal(ring_pop(ring), item(2 * i));
        assert_ptr_equal(ring_pop(ring), item(2 * i + 1));
    }
    assert_null(ring_pop(ring));
    assert_int_equal(ring_figures(ring).high_water, 2);
    ring_destroy(ring);
    ring_destroy(NULL);
}

/* Grows from 16 to 64 places when the oldest item is at each of the 16. */
static void growing_keeps_the_order_wherever_the_ring_begins(void **state)
{
    (void)state;
    for (uintptr_t before = 0; before < 16; before++) {
        struct ring *ring = ring_create();
        for (uintptr_t i = 0; i < before; i++) {
            ring_push(ring, item(i));
            assert_ptr_equal(ring_pop(ring), item(i));
        }
        for (uintptr_t i = 0; i < 40; i++)
            ring_push(ring, item(i));
        struct ring_figures figures = ring_figures(ring);
        assert_int_equal(figures.depth, 40);
        assert_int_equal(figures.capacity, 64);
        for (uintptr_t i = 0; i < 40; i++)
            assert_ptr_equal(ring_pop(ring), item(i));
        assert_null(ring_pop(ring));
        ring_destroy(ring);
    }
}

static void an_empty_ring_gives_much_memory_back(void **state)
{
    (void)state;
    static const struct {
        uintptr_t pushed;
        size_t grown;
        size_t kept;
    } rows[] = {{1, 16, 16}, {1024, 1024, 1024}, {1025, 2048, 0}, {100000, 131072, 0}};
    struct ring *ring = ring_create();
    assert_int_equal(ring_figures(ring).capacity, 0);
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        for (uintptr_t i = 0; i < rows[row].pushed; i++)
            ring_push(ring, item(i));
        assert_int_equal(ring_depth(ring), rows[row].pushed);
        assert_int_equal(ring_figures(ring).capacity, rows[row].grown);
        for (uintptr_t i = 0; i < rows[row].pushed; i++)
            assert_ptr_equal(ring_pop(ring), item(i));
        struct ring_figures figures = ring_figures(ring);
        assert_int_equal(figures.depth, 0);
        assert_int_equal(figures.high_water, rows[row].pushed);
        assert_int_equal(figures.capacity, rows[row].kept);
        assert_int_equal(figures.refusals, 0);
    }
    ring_destroy(ring);
}

struct reader {
    const struct ring *ring;
    _Atomic bool is_over;
    size_t highest;
};

static void *read_figures(void *arg)
{
    struct reader *reader = arg;
    do {
        struct ring_figures figures = ring_figures(reader->ring);
        if (figures.depth > reader->highest)
            reader->highest = figures.depth;
    } while (!atomic_load(&reader->is_over));
    return NULL;
}

static void another_thread_may_read_the_figures(void **state)
{
    (void)state;
    struct ring *ring = ring_create();
    struct reader reader = {.ring = ring};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_figures, &reader), 0);
    for (uintptr_t round = 0; round < 50; round++) {
        for (uintptr_t i = 0; i < 2000; i++)
            ring_push(ring, item(i));
        while (ring_pop(ring) != NULL) {
        }
    }
    atomic_store(&reader.is_over, true);
    pthread_join(thread, NULL);
    assert_true(reader.highest <= 2000);
    ring_destroy(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_leave_in_the_order_in_which_they_came),
        cmocka_unit_test(growing_keeps_the_order_wherever_the_ring_begins),
        cmocka_unit_test(an_empty_ring_gives_much_memory_back),
        cmocka_unit_test(another_thread_may_read_the_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
