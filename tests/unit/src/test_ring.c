/* SPDX-License-Identifier: Apache-2.0 */
/* The ring: order, refusals, figures, many rounds, and four producers on threads. */
#include "src/ring.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void *item(uintptr_t number)
{
    return (void *)(number + 1);
}

static void capacity_is_rounded_up_to_a_power_of_two(void **state)
{
    (void)state;
    static const size_t rows[][2] = {{0, 2}, {1, 2}, {2, 2}, {3, 4}, {256, 256}, {257, 512}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ring *ring = ring_create(rows[i][0]);
        assert_int_equal(ring_figures(ring).capacity, rows[i][1]);
        ring_destroy(ring);
    }
    ring_destroy(NULL);
}

static void items_leave_in_the_order_in_which_they_came(void **state)
{
    (void)state;
    struct ring *ring = ring_create(4);
    assert_null(ring_try_pop(ring));
    for (uintptr_t i = 0; i < 1000; i++) {
        assert_true(ring_try_push(ring, item(2 * i)));
        assert_true(ring_try_push(ring, item(2 * i + 1)));
        assert_ptr_equal(ring_try_pop(ring), item(2 * i));
        assert_ptr_equal(ring_try_pop(ring), item(2 * i + 1));
    }
    assert_null(ring_try_pop(ring));
    ring_destroy(ring);
}

static void a_full_ring_refuses_and_counts(void **state)
{
    (void)state;
    struct ring *ring = ring_create(4);
    for (uintptr_t i = 0; i < 4; i++)
        assert_true(ring_try_push(ring, item(i)));
    assert_false(ring_try_push(ring, item(9)));
    assert_false(ring_try_push(ring, item(9)));
    struct ring_figures figures = ring_figures(ring);
    assert_int_equal(figures.depth, 4);
    assert_int_equal(figures.high_water, 4);
    assert_int_equal(figures.refusals, 2);
    assert_ptr_equal(ring_try_pop(ring), item(0));
    assert_true(ring_try_push(ring, item(4)));
    for (uintptr_t i = 1; i <= 4; i++)
        assert_ptr_equal(ring_try_pop(ring), item(i));
    figures = ring_figures(ring);
    assert_int_equal(figures.depth, 0);
    assert_int_equal(figures.high_water, 4);
    ring_destroy(ring);
}

enum { PRODUCERS = 4, ITEMS_EACH = 20000 };

struct producer {
    struct ring *ring;
    uintptr_t number;
    pthread_t thread;
};

static void *produce(void *arg)
{
    struct producer *producer = arg;
    for (uintptr_t i = 0; i < ITEMS_EACH; i++)
        while (!ring_try_push(producer->ring, item(producer->number << 32 | i)))
            sched_yield();
    return NULL;
}

static void four_producers_lose_nothing_and_keep_their_order(void **state)
{
    (void)state;
    struct ring *ring = ring_create(64);
    struct producer producers[PRODUCERS];
    uintptr_t next[PRODUCERS] = {0};
    for (uintptr_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){.ring = ring, .number = i};
        assert_int_equal(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
    }
    for (size_t got = 0; got < PRODUCERS * ITEMS_EACH;) {
        uintptr_t value = (uintptr_t)ring_try_pop(ring);
        if (value == 0) {
            sched_yield();
            continue;
        }
        uintptr_t number = (value - 1) >> 32;
        assert_true(number < PRODUCERS);
        assert_int_equal((value - 1) & UINT32_MAX, next[number]++);
        got++;
    }
    for (size_t i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i].thread, NULL);
    assert_null(ring_try_pop(ring));
    assert_true(ring_figures(ring).high_water <= 64);
    ring_destroy(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capacity_is_rounded_up_to_a_power_of_two),
        cmocka_unit_test(items_leave_in_the_order_in_which_they_came),
        cmocka_unit_test(a_full_ring_refuses_and_counts),
        cmocka_unit_test(four_producers_lose_nothing_and_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
