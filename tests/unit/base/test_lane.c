/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: order of what is posted, jobs at the end of the turn, timers on the fake clock, threads.
 */
#include "src/base/lane.h"

#include "src/base/clock.h"
#include "src/base/limits.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { TASKS = 1000, POSTERS = 3 };

static void settle(struct lane *lane)
{
    while (lane_turn(lane)) {
    }
}

struct numbered_task {
    struct lane_task task;
    struct lane *lane;
    unsigned poster;
    unsigned number;
};

static unsigned next_number[POSTERS];
static unsigned tasks_left;

static void on_task(struct lane_task *task)
{
    struct numbered_task *own = (struct numbered_task *)task;
    assert_true(lane_is_current(own->lane));
    assert_int_equal(own->number, next_number[own->poster]++);
    if (--tasks_left == 0)
        lane_end(own->lane);
}

struct poster {
    pthread_t thread;
    struct numbered_task tasks[TASKS];
};

static void *post_all(void *arg)
{
    struct poster *poster = arg;
    for (size_t i = 0; i < TASKS; i++)
        lane_post(poster->tasks[i].lane, &poster->tasks[i].task);
    return NULL;
}

static void tasks_of_one_sender_run_in_order(void **state)
{
    (void)state;
    static struct poster posters[POSTERS];
    struct lane *lane = lane_create(0);
    tasks_left = POSTERS * TASKS;
    for (unsigned i = 0; i < POSTERS; i++) {
        for (unsigned j = 0; j < TASKS; j++)
            posters[i].tasks[j] = (struct numbered_task){
                .task = {.fn = on_task}, .lane = lane, .poster = i, .number = j};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, post_all, &posters[i]), 0);
    }
    lane_run(lane);
    assert_int_equal(tasks_left, 0);
    for (unsigned i = 0; i < POSTERS; i++)
        pthread_join(posters[i].thread, NULL);
    lane_destroy(lane);
}

struct counted {
    struct lane *lane;
    struct lane_job job;
    unsigned runs;
    bool repeats;
};

static void on_job(void *arg)
{
    struct counted *counted = arg;
    counted->runs++;
    if (counted->repeats)
        lane_defer(counted->lane, &counted->job);
}

struct resting {
    struct lane *lane;
    struct lane_job job;
    struct lane_task task;
    char *order;
    char letter;
};

static void note(struct resting *resting)
{
    char letter[] = {resting->letter, '\0'};
    strcat(resting->order, letter);
}

static void on_resting_job(void *arg)
{
    struct resting *resting = arg;
    note(resting);
    if (resting->letter == 'a')
        lane_rest(resting->lane);
}

static void on_resting_task(struct lane_task *task)
{
    note((struct resting *)((char *)task - offsetof(struct resting, task)));
}

/* What came from outside is looked at before the next job. */
static void a_job_that_did_much_lets_the_loop_turn(void **state)
{
    char order[8] = "";
    (void)state;
    struct lane *lane = lane_create(0);
    struct resting rows[] = {{.letter = 'a'}, {.letter = 'b'}, {.letter = 't'}};
    for (size_t i = 0; i < 3; i++) {
        rows[i].lane = lane;
        rows[i].order = order;
        rows[i].job = (struct lane_job){.fn = on_resting_job, .arg = &rows[i]};
        rows[i].task = (struct lane_task){.fn = on_resting_task};
    }
    lane_defer(lane, &rows[0].job);
    lane_defer(lane, &rows[1].job);
    lane_post(lane, &rows[2].task);
    settle(lane);
    assert_string_equal(order, "atb");
    lane_destroy(lane);
}

static void on_long_job(void *arg)
{
    struct resting *resting = arg;
    assert_int_equal(lane_held_ns(resting->lane), 0);
    note(resting);
    clock_fake_advance(LANE_JOB_NS - 1 + (resting->letter == 'b'));
    assert_int_equal(lane_held_ns(resting->lane), LANE_JOB_NS - 1 + (resting->letter == 'b'));
}

/* So do jobs that took long, by the clock. */
static void jobs_that_took_long_let_the_loop_turn(void **state)
{
    char order[8] = "";
    (void)state;
    clock_fake_start(NS_PER_S, NS_PER_S);
    struct lane *lane = lane_create(0);
    struct resting rows[] = {{.letter = 'a'}, {.letter = 'b'}, {.letter = 'c'}, {.letter = 't'}};
    for (size_t i = 0; i < 4; i++) {
        rows[i].lane = lane;
        rows[i].order = order;
        rows[i].job = (struct lane_job){.fn = on_long_job, .arg = &rows[i]};
        rows[i].task = (struct lane_task){.fn = on_resting_task};
        if (i < 3)
            lane_defer(lane, &rows[i].job);
    }
    lane_post(lane, &rows[3].task);
    settle(lane);
    assert_string_equal(order, "abtc");
    lane_destroy(lane);
    clock_fake_stop();
}

static void on_long_task(struct lane_task *task)
{
    struct resting *resting = (struct resting *)((char *)task - offsetof(struct resting, task));
    assert_int_equal(lane_held_ns(resting->lane), 0);
    note(resting);
    clock_fake_advance(LANE_JOB_NS - 1 + (resting->letter == 'b'));
    lane_defer(resting->lane, &resting->job);
}

/* And so do tasks, whose order stays. */
static void tasks_that_took_long_let_the_loop_turn(void **state)
{
    char order[16] = "";
    (void)state;
    clock_fake_start(NS_PER_S, NS_PER_S);
    struct lane *lane = lane_create(0);
    struct resting rows[] = {{.letter = 'a'}, {.letter = 'b'}, {.letter = 'c'}, {.letter = 'd'}};
    for (size_t i = 0; i < 4; i++) {
        rows[i].lane = lane;
        rows[i].order = order;
        rows[i].job = (struct lane_job){.fn = on_resting_job, .arg = &rows[i]};
        rows[i].task = (struct lane_task){.fn = on_long_task};
        lane_post(lane, &rows[i].task);
    }
    settle(lane);
    assert_string_equal(order, "ababcdcd"); /* as tasks, then as jobs */
    lane_post(lane, &rows[1].task);
    lane_post(lane, &rows[2].task);
    lane_turn(lane);
    lane_post(lane, &rows[0].task);
    lane_destroy(lane);
    assert_string_equal(order + 8, "bbcaca");
    clock_fake_stop();
}

static void on_tiring_task(struct lane_task *task)
{
    struct resting *resting = (struct resting *)((char *)task - offsetof(struct resting, task));
    note(resting);
    lane_rest(resting->lane);
    if (strlen(resting->order) < 3)
        lane_post(resting->lane, &resting->task);
}

/* Work from outside may end each turn: jobs go on nevertheless, one by one. */
static void jobs_go_on_beside_sockets_that_bring_much(void **state)
{
    char order[8] = "";
    (void)state;
    struct lane *lane = lane_create(0);
    struct resting rows[] = {{.letter = 't'}, {.letter = 'b'}};
    for (size_t i = 0; i < 2; i++) {
        rows[i].lane = lane;
        rows[i].order = order;
        rows[i].job = (struct lane_job){.fn = on_resting_job, .arg = &rows[i]};
        rows[i].task = (struct lane_task){.fn = on_tiring_task};
    }
    lane_post(lane, &rows[0].task);
    lane_rest(lane);
    lane_defer(lane, &rows[1].job);
    settle(lane);
    assert_string_equal(order, "btt");
    lane_destroy(lane);
}

/* The last one that was put in front runs first. */
static void a_job_may_go_before_the_others(void **state)
{
    char order[8] = "";
    (void)state;
    struct lane *lane = lane_create(0);
    struct resting rows[] = {{.letter = 'b'}, {.letter = 'c'}, {.letter = 'd'}};
    for (size_t i = 0; i < 3; i++) {
        rows[i].lane = lane;
        rows[i].order = order;
        rows[i].job = (struct lane_job){.fn = on_resting_job, .arg = &rows[i]};
        lane_defer(lane, &rows[i].job);
    }
    lane_defer_first(lane, &rows[2].job);
    settle(lane);
    assert_string_equal(order, "dbc");
    lane_destroy(lane);
}

static void a_job_runs_once_however_often_it_is_deferred(void **state)
{
    (void)state;
    struct lane *lane = lane_create(0);
    struct counted first = {.lane = lane, .job = {.fn = on_job, .arg = &first}};
    struct counted second = {.lane = lane, .job = {.fn = on_job, .arg = &second}};
    lane_defer(lane, &first.job);
    lane_defer(lane, &first.job);
    lane_defer(lane, &second.job);
    lane_defer_cancel(lane, &second.job);
    lane_defer_cancel(lane, &second.job);
    assert_int_equal(first.runs, 0);
    settle(lane);
    assert_int_equal(first.runs, 1);
    assert_int_equal(second.runs, 0);
    lane_defer(lane, &first.job);
    settle(lane);
    assert_int_equal(first.runs, 2);
    lane_destroy(lane);
}

static void jobs_run_between_sockets_when_somebody_is_in_a_hurry(void **state)
{
    (void)state;
    struct lane *lane = lane_create(0);
    struct counted counted = {.lane = lane, .job = {.fn = on_job, .arg = &counted}};
    lane_defer(lane, &counted.job);
    lane_catch_up(lane);
    assert_int_equal(counted.runs, 0);
    lane_hurry(lane);
    assert_int_equal(counted.runs, 0);
    lane_catch_up(lane);
    assert_int_equal(counted.runs, 1);
    lane_defer(lane, &counted.job);
    lane_catch_up(lane); /* the hurry is over */
    assert_int_equal(counted.runs, 1);
    settle(lane);
    assert_int_equal(counted.runs, 2);
    lane_destroy(lane);
}

static void a_job_that_defers_itself_does_not_hold_the_lane(void **state)
{
    (void)state;
    struct lane *lane = lane_create(0);
    struct counted counted = {.lane = lane, .repeats = true};
    counted.job = (struct lane_job){.fn = on_job, .arg = &counted};
    lane_defer(lane, &counted.job);
    assert_true(lane_turn(lane));
    assert_true(counted.runs <= 3 * LANE_JOBS_PER_TURN_MAX);
    counted.repeats = false;
    settle(lane);
    lane_destroy(lane);
}

static void on_timer(struct timer *timer, void *arg)
{
    assert_non_null(timer);
    ++*(unsigned *)arg;
}

static void timers_follow_the_fake_clock(void **state)
{
    (void)state;
    unsigned fired = 0;
    struct timer timer;
    clock_fake_start(5000, 0);
    struct lane *lane = lane_create(0);
    timer_init(&timer, on_timer, &fired);
    lane_timer_start(lane, &timer, 100);
    settle(lane);
    clock_fake_advance(99);
    settle(lane);
    assert_int_equal(fired, 0);
    clock_fake_advance(1);
    settle(lane);
    assert_int_equal(fired, 1);
    lane_timer_start(lane, &timer, UINT64_MAX); /* beyond the end of time */
    settle(lane);
    assert_int_equal(fired, 1);
    lane_timer_stop(lane, &timer);
    lane_destroy(lane);
    clock_fake_stop();
}

static void on_timer_end(struct timer *timer, void *arg)
{
    assert_false(timer_is_running(timer));
    lane_end(arg);
}

static void a_running_lane_wakes_for_its_timer_and_belongs_to_its_thread(void **state)
{
    (void)state;
    struct timer timer;
    struct lane *lane = lane_create(3);
    assert_int_equal(lane_index(lane), 3);
    assert_true(lane_is_current(lane));
    timer_init(&timer, on_timer_end, lane);
    uint64_t before_ns = clock_now_ns();
    lane_timer_start(lane, &timer, 2 * NS_PER_MS);
    assert_int_equal(lane_spawn(lane), 0);
    lane_join(lane);
    lane_join(lane);
    assert_true(clock_now_ns() - before_ns >= 2 * NS_PER_MS);
    assert_true(lane_is_current(lane));
    lane_destroy(lane);
    lane_destroy(NULL);
}

struct numbered_work {
    struct helper_work work; /* first */
    struct lane *lane;
    unsigned number;
    pthread_t thread; /* that ran it */
};

static unsigned works_run; /* by the helper, one at a time */
static unsigned works_done;

static void on_work(struct helper_work *work)
{
    struct numbered_work *own = (struct numbered_work *)work;
    own->thread = pthread_self();
    assert_int_equal(own->number, works_run++);
}

static void on_work_done(struct helper_work *work)
{
    struct numbered_work *own = (struct numbered_work *)work;
    assert_true(lane_is_current(own->lane));
    assert_int_equal(own->number, works_done++);
}

static void the_helper_works_beside_the_lane(void **state)
{
    enum { WORKS = 100 };
    static struct numbered_work works[WORKS];
    (void)state;
    struct lane *lane = lane_create(0);
    works_run = 0;
    works_done = 0;
    for (unsigned i = 0; i < WORKS; i++) {
        works[i] = (struct numbered_work){
            .work = {.run = on_work, .done = on_work_done}, .lane = lane, .number = i};
        lane_help(lane, &works[i].work);
    }
    assert_int_equal(works_done, 0);
    settle(lane);
    assert_int_equal(works_done, WORKS);
    for (unsigned i = 0; i < WORKS; i++) {
        assert_false(pthread_equal(works[i].thread, pthread_self()));
        assert_true(pthread_equal(works[i].thread, works[0].thread));
    }
    lane_destroy(lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_of_one_sender_run_in_order),
        cmocka_unit_test(a_job_that_did_much_lets_the_loop_turn),
        cmocka_unit_test(jobs_that_took_long_let_the_loop_turn),
        cmocka_unit_test(tasks_that_took_long_let_the_loop_turn),
        cmocka_unit_test(jobs_go_on_beside_sockets_that_bring_much),
        cmocka_unit_test(a_job_may_go_before_the_others),
        cmocka_unit_test(a_job_runs_once_however_often_it_is_deferred),
        cmocka_unit_test(jobs_run_between_sockets_when_somebody_is_in_a_hurry),
        cmocka_unit_test(a_job_that_defers_itself_does_not_hold_the_lane),
        cmocka_unit_test(timers_follow_the_fake_clock),
        cmocka_unit_test(a_running_lane_wakes_for_its_timer_and_belongs_to_its_thread),
        cmocka_unit_test(the_helper_works_beside_the_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
