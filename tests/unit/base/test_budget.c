/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets: all or nothing, the figures, and waiting: once, on the waiter's lane, never after it was
 * cancelled, never forgotten. */
#include "src/base/budget.h"

#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct call {
    struct budget_waiter waiter;
    unsigned times;
};

static void on_room(void *arg)
{
    ((struct call *)arg)->times++;
}

static struct call call_on(struct lane *lane)
{
    return (struct call){.waiter = {.lane = lane, .fn = on_room}};
}

static void settle(struct lane *lane)
{
    while (lane_turn(lane)) {
    }
}

static void an_allowance_goes_beyond_the_limit_and_no_further(void **state)
{
    struct budget whole;
    struct budget allowance;
    (void)state;
    budget_init(&whole, 1000);
    budget_init_allowance(&allowance, &whole, 100);
    assert_int_equal(budget_limit(&allowance), 1000);
    /* Within the limit it is not the allowance that bounds. */
    assert_true(budget_try_take(&allowance, 900));
    assert_int_equal(budget_used(&whole), 900);
    assert_false(budget_try_take(&allowance, 101));
    budget_return(&allowance, 900);
    budget_take(&whole, 1000);
    assert_true(budget_try_take(&allowance, 60));
    assert_false(budget_try_take(&allowance, 41));
    assert_true(budget_try_take(&allowance, 40));
    assert_int_equal(budget_used(&whole), 1100);
    assert_false(budget_try_take(&allowance, 1));
    /* What was returned can be taken again. */
    budget_return(&allowance, 40);
    assert_true(budget_try_take_margin(&allowance, 40));
    budget_take(&allowance, 1);
    budget_return(&allowance, 101);
    assert_int_equal(budget_used(&allowance), 0);
    budget_return(&whole, 1000);
    assert_int_equal(budget_used(&whole), 0);
    budget_fini(&allowance);
    budget_fini(&whole);
}

static void a_take_is_all_or_nothing(void **state)
{
    (void)state;
    static const struct {
        uint64_t used, amount;
        bool is_granted;
    } rows[] = {
        {0, 0, true},   {0, 10, true},          {0, 11, false},
        {4, 6, true},   {4, 7, false},          {10, 0, true},
        {10, 1, false}, {4, UINT64_MAX, false}, {1, UINT64_MAX - 1, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct budget budget;
        budget_init(&budget, 10);
        budget_take(&budget, rows[i].used);
        assert_true(budget_try_take(&budget, rows[i].amount) == rows[i].is_granted);
        uint64_t expected = rows[i].used + (rows[i].is_granted ? rows[i].amount : 0);
        assert_int_equal(budget_used(&budget), expected);
        assert_int_equal(atomic_load(&budget.refusals), !rows[i].is_granted);
        assert_int_equal(atomic_load(&budget.high_water), expected);
        budget_fini(&budget);
    }
}

static void the_last_bytes_may_go_beyond_the_limit(void **state)
{
    (void)state;
    struct budget budget;
    budget_init(&budget, 10);
    budget_take(&budget, 15);
    assert_int_equal(budget_used(&budget), 15);
    assert_false(budget_try_take(&budget, 0));
    budget_return(&budget, 15);
    assert_true(budget_try_take(&budget, 10));
    assert_int_equal(atomic_load(&budget.high_water), 15);
    budget_fini(&budget);
}

static void late_work_has_a_sixteenth_more(void **state)
{
    (void)state;
    struct budget budget;
    budget_init(&budget, 160);
    budget_take(&budget, 160);
    assert_false(budget_has_room(&budget, 1));
    budget_begin_late();
    assert_true(budget_has_room(&budget, 10));
    assert_false(budget_has_room(&budget, 11));
    assert_false(budget_try_take(&budget, 11));
    assert_true(budget_try_take(&budget, 10));
    budget_begin_late();
    budget_end_late();
    budget_return(&budget, 1);
    assert_true(budget_try_take(&budget, 1));
    budget_return(&budget, 1);
    budget_end_late();
    assert_false(budget_try_take(&budget, 1));
    budget_return(&budget, 169);
    budget_fini(&budget);
}

/* On the fake clock: 160 bytes, all in use when an export asks for one. */
static void refuse_export(struct budget *budget)
{
    clock_fake_start(NS_PER_S, NS_PER_S);
    budget_init(budget, 160);
    budget_take(budget, 160);
    budget_begin_export();
    assert_false(budget_has_room(budget, 1));
    budget_end_export();
}

static void exports_have_a_quarter_more_once_they_were_refused(void **state)
{
    (void)state;
    struct budget budget;
    refuse_export(&budget);
    clock_fake_advance(BUDGET_EXPORT_WAIT_NS - 1);
    budget_begin_export();
    assert_false(budget_try_take(&budget, 1));
    clock_fake_advance(1);
    assert_true(budget_has_room(&budget, 40));
    assert_false(budget_try_take(&budget, 41));
    budget_begin_export();
    assert_true(budget_try_take(&budget, 1));
    budget_end_export();
    clock_fake_advance(BUDGET_EXPORT_SPELL_NS);
    assert_true(budget_try_take(&budget, 39));
    assert_false(budget_try_take(&budget, 1));
    /* The spell is over, and the next has to wait again. */
    budget_return(&budget, 40);
    clock_fake_advance(1);
    assert_false(budget_try_take(&budget, 1));
    clock_fake_advance(BUDGET_EXPORT_NEED_NS);
    assert_true(budget_has_room(&budget, 1));
    clock_fake_advance(1);
    assert_false(budget_has_room(&budget, 1));
    budget_end_export();
    budget_return(&budget, 160);
    assert_false(budget_try_take(&budget, 161));
    budget_fini(&budget);
    clock_fake_stop();
}

static void exports_have_no_more_while_a_back_end_is_away(void **state)
{
    (void)state;
    struct budget budget;
    refuse_export(&budget);
    budget_note_put_off(&budget, clock_now_ns() + NS_PER_S);
    clock_fake_advance(BUDGET_EXPORT_WAIT_NS);
    budget_begin_export();
    assert_false(budget_has_room(&budget, 1));
    clock_fake_advance(NS_PER_S - 1);
    assert_false(budget_has_room(&budget, 1));
    clock_fake_advance(1);
    assert_true(budget_has_room(&budget, 40));
    budget_end_export();
    budget_return(&budget, 160);
    budget_fini(&budget);
    clock_fake_stop();
}

/* For what others may take, and for those who wait for it. */
static void an_eighth_is_left_to_exporters_that_hold_more_than_half(void **state)
{
    (void)state;
    struct lane *lane = lane_create(0);
    struct call call = call_on(lane);
    struct budget budget;
    call.waiter.arg = &call;
    budget_init(&budget, 160);
    budget_take(&budget, 130);
    budget_note_leaving(&budget, 80);
    assert_true(budget_has_room(&budget, 30));
    budget_note_leaving(&budget, 1);
    assert_false(budget_has_room(&budget, 11));
    assert_false(budget_try_take(&budget, 11));
    assert_true(budget_try_take(&budget, 10));
    budget_begin_export();
    assert_true(budget_has_room(&budget, 20));
    budget_end_export();
    budget_begin_late();
    assert_true(budget_has_room(&budget, 30));
    budget_end_late();
    budget_wait(&budget, &call.waiter, 1);
    settle(lane);
    assert_int_equal(call.times, 0);
    budget_note_left(&budget, 1);
    settle(lane);
    assert_int_equal(call.times, 1);
    assert_true(budget_has_room(&budget, 20));
    budget_note_left(&budget, 80);
    budget_return(&budget, 140);
    budget_fini(&budget);
    lane_destroy(lane);
}

static void the_limit_is_only_ever_lowered(void **state)
{
    (void)state;
    struct budget budget;
    budget_init(&budget, 10);
    budget_lower(&budget, 20);
    assert_int_equal(budget_limit(&budget), 10);
    budget_lower(&budget, 5);
    assert_int_equal(budget_limit(&budget), 5);
    budget_fini(&budget);
}

static void a_waiter_is_called_once_and_never_from_inside_the_return(void **state)
{
    (void)state;
    struct lane *lane = lane_create(0);
    struct call call = call_on(lane);
    struct budget budget;
    call.waiter.arg = &call;
    budget_init(&budget, 10);
    budget_take(&budget, 10);
    budget_wait(&budget, &call.waiter, 5);
    budget_wait(&budget, &call.waiter, 5);
    settle(lane);
    assert_int_equal(call.times, 0);
    budget_return(&budget, 1);
    assert_int_equal(call.times, 0);
    settle(lane);
    assert_int_equal(call.times, 1);
    budget_return(&budget, 9);
    settle(lane);
    assert_int_equal(call.times, 1);
    budget_fini(&budget);
    lane_destroy(lane);
}

static void a_waiter_for_bytes_that_are_free_by_now_is_called_soon(void **state)
{
    (void)state;
    struct lane *lane = lane_create(0);
    struct call call = call_on(lane);
    struct budget budget;
    call.waiter.arg = &call;
    budget_init(&budget, 10);
    budget_wait(&budget, &call.waiter, 10);
    assert_int_equal(call.times, 0);
    settle(lane);
    assert_int_equal(call.times, 1);
    budget_fini(&budget);
    lane_destroy(lane);
}

static void a_return_calls_waiters_of_all_lanes(void **state)
{
    (void)state;
    struct lane *lanes[] = {lane_create(0), lane_create(1)};
    struct call calls[] = {call_on(lanes[0]), call_on(lanes[1]), call_on(lanes[1])};
    struct budget budget;
    budget_init(&budget, 1);
    budget_take(&budget, 1);
    for (size_t i = 0; i < 3; i++) {
        calls[i].waiter.arg = &calls[i];
        budget_wait(&budget, &calls[i].waiter, 1);
    }
    budget_return(&budget, 1);
    settle(lanes[0]);
    assert_int_equal(calls[0].times + calls[1].times + calls[2].times, 1);
    settle(lanes[1]);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(calls[i].times, 1);
    budget_fini(&budget);
    lane_destroy(lanes[0]);
    lane_destroy(lanes[1]);
}

static void a_cancelled_waiter_is_not_called(void **state)
{
    (void)state;
    struct lane *lane = lane_create(0);
    struct call calls[] = {call_on(lane), call_on(lane), call_on(lane)};
    struct budget budget;
    budget_init(&budget, 1);
    budget_take(&budget, 1);
    for (size_t i = 0; i < 3; i++) {
        calls[i].waiter.arg = &calls[i];
        budget_wait(&budget, &calls[i].waiter, 1);
    }
    budget_wait_cancel(&budget, &calls[1].waiter); /* before the return */
    budget_wait_cancel(&budget, &calls[1].waiter);
    budget_return(&budget, 1);
    budget_wait_cancel(&budget, &calls[0].waiter); /* its call is on the way already */
    settle(lane);
    assert_int_equal(calls[0].times, 0);
    assert_int_equal(calls[1].times, 0);
    assert_int_equal(calls[2].times, 1);
    budget_take(&budget, 1);
    budget_wait(&budget, &calls[0].waiter, 1); /* and may wait again */
    budget_return(&budget, 1);
    settle(lane);
    assert_int_equal(calls[0].times, 1);
    budget_fini(&budget);
    lane_destroy(lane);
}

enum { WORKERS = 3, ROUNDS = 3000 };

/* Takes one unit at a time, gives it back at the end of the turn, and waits when there is none. */
struct worker {
    struct lane *lane;
    struct budget *budget;
    struct budget_waiter waiter;
    struct lane_job give_back;
    struct lane_job take;
    unsigned rounds;
};

static void work(void *arg)
{
    struct worker *worker = arg;
    if (worker->rounds == ROUNDS) {
        lane_end(worker->lane);
        return;
    }
    if (!budget_try_take(worker->budget, 1)) {
        budget_wait(worker->budget, &worker->waiter, 1);
        if (worker->rounds % 7 == 0) {
            budget_wait_cancel(worker->budget, &worker->waiter);
            budget_wait(worker->budget, &worker->waiter, 1);
        }
        return;
    }
    worker->rounds++;
    lane_defer(worker->lane, &worker->give_back);
}

static void give_back(void *arg)
{
    struct worker *worker = arg;
    budget_return(worker->budget, 1);
    lane_defer(worker->lane, &worker->take);
}

/* A wake-up that got lost would leave a lane asleep for ever. */
static void no_wake_up_is_lost_between_threads(void **state)
{
    (void)state;
    struct budget budget;
    struct worker workers[WORKERS];
    budget_init(&budget, 1);
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *worker = &workers[i];
        *worker = (struct worker){.lane = lane_create(i), .budget = &budget};
        worker->waiter = (struct budget_waiter){.lane = worker->lane, .fn = work, .arg = worker};
        worker->take = (struct lane_job){.fn = work, .arg = worker};
        worker->give_back = (struct lane_job){.fn = give_back, .arg = worker};
        lane_defer(worker->lane, &worker->take);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(lane_spawn(workers[i].lane), 0);
    for (unsigned i = 0; i < WORKERS; i++)
        lane_join(workers[i].lane);
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(workers[i].rounds, ROUNDS);
    assert_int_equal(budget_used(&budget), 0);
    assert_int_equal(atomic_load(&budget.high_water), 1);
    for (unsigned i = 0; i < WORKERS; i++)
        lane_destroy(workers[i].lane);
    budget_fini(&budget);
}

static void a_reserve_is_drawn_from_and_given_back(void **state)
{
    struct budget budget;
    struct budget other;
    struct budget_reserve outer;
    struct budget_reserve inner;
    (void)state;
    budget_init(&budget, 100);
    budget_init(&other, 100);
    assert_int_equal(budget_reserve(&outer, &budget, 101), BUDGET_TOO_SMALL);
    assert_true(budget_try_take(&budget, 30));
    assert_int_equal(budget_reserve(&outer, &budget, 80), BUDGET_FULL);
    assert_int_equal(budget_used(&budget), 30);
    assert_int_equal(budget_reserve(&outer, &budget, 60), BUDGET_GIVEN);
    assert_int_equal(budget_used(&budget), 90);
    budget_take(&budget, 50);
    budget_take(&other, 5);
    assert_int_equal(budget_used(&budget), 90);
    assert_int_equal(budget_used(&other), 5);
    /* Ten are left of it, and ten of the budget. */
    assert_int_equal(budget_reserve(&inner, &budget, 20), BUDGET_GIVEN);
    assert_false(budget_try_take(&budget, 21));
    assert_true(budget_try_take(&budget, 20));
    budget_return(&budget, 20);
    budget_release(&inner);
    assert_false(budget_reserve_more(&outer, 1));
    budget_return(&budget, 50);
    assert_int_equal(budget_used(&budget), 90);
    assert_true(budget_reserve_more(&outer, 10));
    assert_int_equal(budget_used(&budget), 100);
    assert_int_equal(atomic_load(&budget.high_water), 100);
    budget_release(&outer);
    assert_int_equal(budget_used(&budget), 30);
    budget_return(&budget, 30);
    budget_fini(&budget);
    budget_fini(&other);
    assert_int_equal(budget_reserve(&outer, NULL, UINT64_MAX), BUDGET_GIVEN);
    assert_true(budget_reserve_more(&outer, UINT64_MAX));
    budget_release(&outer);
}

static void the_margin_is_small(void **state)
{
    enum { LIMIT = 64 << 20, MARGIN = LIMIT / 16 + 256 * 1024 };
    struct budget budget;
    (void)state;
    budget_init(&budget, LIMIT);
    budget_take(&budget, LIMIT);
    assert_false(budget_try_take(&budget, 1));
    assert_false(budget_try_take_margin(&budget, MARGIN + 1));
    assert_true(budget_try_take_margin(&budget, MARGIN));
    assert_false(budget_try_take_margin(&budget, 1));
    budget_return(&budget, LIMIT + MARGIN);
    budget_fini(&budget);
    budget_init(&budget, UINT64_MAX);
    assert_true(budget_try_take_margin(&budget, MARGIN));
    budget_return(&budget, MARGIN);
    budget_fini(&budget);
}

/* Freed pages may stay resident until they and what is in use pass the limit together. */
static void freed_bytes_count_until_they_are_given_back(void **state)
{
    enum { LIMIT = 1 << 20, SMALL = 1024, LARGE = 400 * 1024 };
    struct budget budget;
    struct budget_reserve reserve;
    (void)state;
    budget_init(&budget, LIMIT);
    budget_count_memory(&budget);
    budget_take(&budget, SMALL);
    budget_return(&budget, SMALL); /* shares its page with others */
    assert_int_equal(atomic_load(&budget.retired), 0);
    budget_take(&budget, LARGE);
    budget_return(&budget, LARGE);
    assert_int_equal(atomic_load(&budget.retired), LARGE);
    assert_true(budget_try_take(&budget, LARGE)); /* both fit: the pages are used again */
    assert_int_equal(atomic_load(&budget.retired), LARGE);
    assert_true(budget_try_take(&budget, LARGE)); /* three do not */
    assert_in_range(atomic_load(&budget.retired), 0, LIMIT - 2 * LARGE);
    budget_return(&budget, LARGE);
    assert_int_equal(budget_reserve(&reserve, &budget, LARGE), BUDGET_GIVEN);
    budget_take(&budget, LARGE); /* out of the reserve */
    budget_return(&budget, LARGE);
    assert_true(atomic_load(&budget.retired) >= LARGE);
    budget_take(&budget, LARGE);
    assert_in_range(atomic_load(&budget.retired), 0, LIMIT - 2 * LARGE);
    budget_return(&budget, LARGE);
    budget_release(&reserve);
    budget_return(&budget, LARGE);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

/* Close to the limit the allocator keeps no freed pages; with more room it keeps them again. */
static void freed_pages_are_kept_only_far_from_the_limit(void **state)
{
    enum { LIMIT = 1 << 20, PART = LIMIT / 8 };
    struct budget budget;
    (void)state;
    budget_init(&budget, LIMIT);
    budget_count_memory(&budget);
    budget_take(&budget, 4 * PART);
    assert_false(atomic_load(&budget.is_tight));
    budget_take(&budget, PART);
    assert_true(atomic_load(&budget.is_tight));
    budget_return(&budget, 2 * PART);
    budget_take(&budget, PART); /* as much as before it became tight */
    assert_true(atomic_load(&budget.is_tight));
    budget_return(&budget, 3 * PART);
    budget_take(&budget, PART);
    assert_false(atomic_load(&budget.is_tight));
    budget_return(&budget, 2 * PART);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void a_budget_of_requests_frees_no_pages(void **state)
{
    struct budget budget;
    (void)state;
    budget_init(&budget, UINT64_MAX);
    budget_take(&budget, 1 << 20);
    budget_return(&budget, 1 << 20);
    assert_int_equal(atomic_load(&budget.retired), 0);
    budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_take_is_all_or_nothing),
        cmocka_unit_test(an_allowance_goes_beyond_the_limit_and_no_further),
        cmocka_unit_test(the_last_bytes_may_go_beyond_the_limit),
        cmocka_unit_test(late_work_has_a_sixteenth_more),
        cmocka_unit_test(exports_have_a_quarter_more_once_they_were_refused),
        cmocka_unit_test(exports_have_no_more_while_a_back_end_is_away),
        cmocka_unit_test(an_eighth_is_left_to_exporters_that_hold_more_than_half),
        cmocka_unit_test(the_limit_is_only_ever_lowered),
        cmocka_unit_test(a_waiter_is_called_once_and_never_from_inside_the_return),
        cmocka_unit_test(a_waiter_for_bytes_that_are_free_by_now_is_called_soon),
        cmocka_unit_test(a_return_calls_waiters_of_all_lanes),
        cmocka_unit_test(a_cancelled_waiter_is_not_called),
        cmocka_unit_test(no_wake_up_is_lost_between_threads),
        cmocka_unit_test(a_reserve_is_drawn_from_and_given_back),
        cmocka_unit_test(the_margin_is_small),
        cmocka_unit_test(freed_bytes_count_until_they_are_given_back),
        cmocka_unit_test(freed_pages_are_kept_only_far_from_the_limit),
        cmocka_unit_test(a_budget_of_requests_frees_no_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
