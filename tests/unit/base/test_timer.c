/* SPDX-License-Identifier: Apache-2.0 */
/* Timers against a model that scans all of them each time. */
#include "src/base/timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/base/clock.h"
#include "src/base/limits.h"

enum { TIMERS = 100, STEPS = 20000 };

static uint64_t fired_deadlines[TIMERS];
static size_t fired_count;

static void on_timer(struct timer *timer, void *arg)
{
    assert_ptr_equal(arg, timer);
    assert_false(timer_is_running(timer));
    fired_deadlines[fired_count++] = timer->deadline_ns;
}

static uint64_t model_next(const struct timer *timers, size_t *ret_running)
{
    uint64_t next = UINT64_MAX;
    *ret_running = 0;
    for (size_t i = 0; i < TIMERS; i++) {
        if (!timer_is_running(&timers[i]))
            continue;
        next = timers[i].deadline_ns < next ? timers[i].deadline_ns : next;
        ++*ret_running;
    }
    return next;
}

static void the_heap_agrees_with_a_model(void **state)
{
    (void)state;
    struct timers heap;
    struct timer timers[TIMERS];
    uint64_t now = 0;
    size_t running;
    timers_init(&heap);
    srandom(1);
    for (size_t i = 0; i < TIMERS; i++)
        timer_init(&timers[i], on_timer, &timers[i]);
    for (unsigned step = 0; step < STEPS; step++) {
        struct timer *timer = &timers[random() % TIMERS];
        if (random() % 3 > 0)
            timer_start(&heap, timer, now + (uint64_t)(random() % 50));
        else
            timer_stop(&heap, timer);
        uint64_t next = model_next(timers, &running);
        assert_int_equal(timers_next_ns(&heap), next);
        assert_int_equal(heap.count, running);
        now += (uint64_t)(random() % 3);
        fired_count = 0;
        size_t fired = timers_fire(&heap, now);
        assert_int_equal(fired, fired_count);
        for (size_t i = 0; i < fired_count; i++) {
            assert_true(fired_deadlines[i] <= now);
            assert_true(i == 0 || fired_deadlines[i - 1] <= fired_deadlines[i]);
        }
        assert_true(model_next(timers, &running) > now);
    }
    for (size_t i = 0; i < TIMERS; i++)
        timer_stop(&heap, &timers[i]);
    timers_fini(&heap);
}

struct chain {
    struct timers *heap;
    struct timer self;
    struct timer other;
    unsigned fired;
};

static void on_restart(struct timer *timer, void *arg)
{
    struct chain *chain = arg;
    chain->fired++;
    timer_start(chain->heap, timer, 10);
}

static void a_timer_that_restarts_itself_for_now_waits_for_the_next_turn(void **state)
{
    (void)state;
    struct timers heap;
    struct chain chain = {.heap = &heap};
    timers_init(&heap);
    timer_init(&chain.self, on_restart, &chain);
    timer_start(&heap, &chain.self, 10);
    assert_int_equal(timers_fire(&heap, 10), 1);
    assert_int_equal(timers_fire(&heap, 10), 1);
    assert_int_equal(chain.fired, 2);
    timer_stop(&heap, &chain.self);
    timers_fini(&heap);
}

static void on_stop_other(struct timer *timer, void *arg)
{
    struct chain *chain = arg;
    assert_ptr_equal(timer, &chain->self);
    chain->fired++;
    timer_stop(chain->heap, &chain->other);
}

static void a_callback_may_stop_another_that_is_due(void **state)
{
    (void)state;
    struct timers heap;
    struct chain chain = {.heap = &heap};
    timers_init(&heap);
    timer_init(&chain.self, on_stop_other, &chain);
    timer_init(&chain.other, on_restart, &chain);
    timer_start(&heap, &chain.self, 1);
    timer_start(&heap, &chain.other, 2);
    assert_int_equal(timers_fire(&heap, 5), 1);
    assert_int_equal(chain.fired, 1);
    assert_int_equal(timers_next_ns(&heap), UINT64_MAX);
    timers_fini(&heap);
}

static void on_long_work(struct timer *timer, void *arg)
{
    (void)timer;
    ++*(unsigned *)arg;
    clock_fake_advance(TIMERS_TURN_NS / 4);
}

static void many_that_are_due_at_once_share_the_turns(void **state)
{
    (void)state;
    struct timers heap;
    struct timer timers[TIMERS];
    unsigned fired = 0;
    timers_init(&heap);
    for (size_t i = 0; i < TIMERS; i++) {
        timer_init(&timers[i], on_long_work, &fired);
        timer_start(&heap, &timers[i], i);
    }
    assert_int_equal(timers_fire(&heap, clock_now_ns()), 4);
    assert_int_equal(timers_next_ns(&heap), 4);
    for (unsigned turn = 1; turn < TIMERS / 4; turn++)
        assert_int_equal(timers_fire(&heap, clock_now_ns()), 4);
    assert_int_equal(fired, TIMERS);
    assert_int_equal(timers_next_ns(&heap), UINT64_MAX);
    timers_fini(&heap);
}

/* Else a busy machine would end turns. */
static int stop_time(void **state)
{
    (void)state;
    clock_fake_start(NS_PER_S, NS_PER_S);
    return 0;
}

static int let_time_pass(void **state)
{
    (void)state;
    clock_fake_stop();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_heap_agrees_with_a_model),
        cmocka_unit_test(a_timer_that_restarts_itself_for_now_waits_for_the_next_turn),
        cmocka_unit_test(a_callback_may_stop_another_that_is_due),
        cmocka_unit_test(many_that_are_due_at_once_share_the_turns),
    };
    return cmocka_run_group_tests(tests, stop_time, let_time_pass);
}
