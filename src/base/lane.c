/* SPDX-License-Identifier: Apache-2.0 */
/* A lane: thread, uv loop, timers, inbox, end-of-turn jobs and helper thread. Everything belongs
 * to the lane's thread, except the inbox, which other threads reach through lane_post under its
 * mutex. */
#include "src/base/lane.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

struct lane {
    unsigned index;
    uv_loop_t loop;
    uv_async_t doorbell;
    uv_prepare_t prepare; /* before the loop sleeps: jobs, and the next timer */
    uv_timer_t alarm;
    uv_idle_t idle; /* running while jobs are left over, so that the loop does not sleep */
    struct timers timers;
    struct lane_job jobs;  /* ring with a sentinel */
    bool is_hurried;       /* lane_hurry: jobs run before the end of the turn */
    bool has_run;          /* a job, in this turn */
    bool is_resting;       /* the jobs wait for the next turn */
    uint64_t done_count;   /* tasks, jobs and timers run so far */
    uint64_t began_ns;     /* when the task, job or timer at hand began */
    struct helper *helper; /* NULL: not needed yet */
    _Atomic bool is_running;
    _Atomic bool is_spawned;
    pthread_t runner; /* the thread inside lane_run; written before is_running */
    pthread_t thread; /* of lane_spawn, for lane_join */
    pthread_mutex_t inbox_lock;
    struct lane_task *inbox_first;
    struct lane_task **inbox_last;
    struct lane_task *taken; /* out of the inbox, and not run yet */
};

/* A thread beside a lane, for work that would hold the lane too long. Its queue is guarded by a
 * mutex: a lane has few works, each worth milliseconds. They run one at a time, in order. */
struct helper {
    struct lane *lane;
    unsigned works; /* on the lane: started and not done yet */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct helper_work *first; /* under the lock, as is everything below */
    struct helper_work **last;
    bool is_ending;
};

static void on_work_done(struct lane_task *task)
{
    struct helper_work *work =
        (struct helper_work *)((char *)task - offsetof(struct helper_work, task));
    assert(work->helper->works > 0);
    work->helper->works--;
    work->done(work);
}

static void *helper_main(void *arg)
{
    struct helper *helper = arg;
    for (;;) {
        pthread_mutex_lock(&helper->lock);
        while (helper->first == NULL && !helper->is_ending)
            pthread_cond_wait(&helper->changed, &helper->lock);
        struct helper_work *work = helper->first;
        if (work != NULL) {
            helper->first = work->next;
            if (helper->first == NULL)
                helper->last = &helper->first;
        }
        pthread_mutex_unlock(&helper->lock);
        if (work == NULL)
            return NULL;
        work->run(work);
        lane_post(helper->lane, &work->task);
    }
}

static struct lane_task *take_inbox(struct lane *lane)
{
    pthread_mutex_lock(&lane->inbox_lock);
    struct lane_task *first = lane->inbox_first;
    lane->inbox_first = NULL;
    lane->inbox_last = &lane->inbox_first;
    pthread_mutex_unlock(&lane->inbox_lock);
    return first;
}

/* Runs what was left, else what is in the inbox now, for so long. False: there may be more. */
static bool run_inbox(struct lane *lane, uint64_t turn_ns)
{
    const uint64_t first_ns = clock_now_ns();
    const bool was_left = lane->taken != NULL;
    if (!was_left)
        lane->taken = take_inbox(lane);
    lane->began_ns = first_ns;
    while (lane->taken != NULL && lane->began_ns - first_ns < turn_ns) {
        struct lane_task *task = lane->taken;
        lane->taken = task->next;
        lane->done_count++;
        task->fn(task);
        lane->began_ns = clock_now_ns();
    }
    return lane->taken == NULL && !was_left;
}

static void on_doorbell(uv_async_t *handle)
{
    if (!run_inbox(handle->data, LANE_JOB_NS))
        uv_async_send(handle);
}

static void unlink_job(struct lane_job *job)
{
    assert(job->is_queued);
    job->prev->next = job->next;
    job->next->prev = job->prev;
    job->is_queued = false;
}

/* One job runs in a turn though the lane rests, if this is the turn's end. */
static void run_jobs(struct lane *lane, bool is_end)
{
    uint64_t first_ns = 0;
    lane->is_hurried = false;
    for (unsigned i = 0; i < LANE_JOBS_PER_TURN_MAX && lane->jobs.next != &lane->jobs; i++) {
        lane->began_ns = clock_now_ns();
        if (i == 0)
            first_ns = lane->began_ns;
        lane->is_resting |= lane->began_ns - first_ns >= LANE_JOB_NS;
        if (lane->is_resting && (lane->has_run || !is_end))
            break;
        lane->is_hurried = false;
        struct lane_job *job = lane->jobs.next;
        unlink_job(job);
        lane->done_count++;
        lane->has_run = true;
        job->fn(job->arg);
    }
}

static void fire_timers(struct lane *lane)
{
    lane->began_ns = clock_now_ns();
    lane->done_count += timers_fire(&lane->timers, lane->began_ns);
}

static void on_alarm(uv_timer_t *handle)
{
    struct lane *lane = handle->data;
    assert(lane_is_current(lane));
    fire_timers(lane);
}

/* Keeps the loop from blocking while jobs are queued. */
static void on_idle(uv_idle_t *handle)
{
    (void)handle;
}

static void on_prepare(uv_prepare_t *handle)
{
    struct lane *lane = handle->data;
    assert(lane_is_current(lane));
    /* One runs also after sockets that have brought much work, as they may in each turn. */
    run_jobs(lane, true);
    lane->is_resting = lane->has_run = false;
    /* Rounds up to whole milliseconds: a timer may fire late, not early. */
    uint64_t due_ns = timers_next_ns(&lane->timers);
    if (due_ns == UINT64_MAX) {
        uv_timer_stop(&lane->alarm);
    } else {
        uint64_t now_ns = clock_now_ns();
        uint64_t delay_ms = due_ns > now_ns ? (due_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
        uv_timer_start(&lane->alarm, on_alarm, delay_ms, 0);
    }
    if (lane->jobs.next != &lane->jobs)
        uv_idle_start(&lane->idle, on_idle);
    else
        uv_idle_stop(&lane->idle);
}

struct lane *lane_create(unsigned index)
{
    assert(index < LANES_MAX);
    struct lane *lane = mem_zalloc(sizeof(*lane));
    if (uv_loop_init(&lane->loop) != 0) {
        mem_free(lane);
        return NULL;
    }
    lane->index = index;
    lane->jobs.next = &lane->jobs;
    lane->jobs.prev = &lane->jobs;
    lane->inbox_last = &lane->inbox_first;
    pthread_mutex_init(&lane->inbox_lock, NULL);
    timers_init(&lane->timers);
    int failed = uv_async_init(&lane->loop, &lane->doorbell, on_doorbell);
    assert(failed == 0);
    uv_prepare_init(&lane->loop, &lane->prepare);
    uv_timer_init(&lane->loop, &lane->alarm);
    uv_idle_init(&lane->loop, &lane->idle);
    lane->doorbell.data = lane;
    lane->prepare.data = lane;
    lane->alarm.data = lane;
    lane->idle.data = lane;
    uv_prepare_start(&lane->prepare, on_prepare);
    return lane;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void lane_destroy(struct lane *lane)
{
    if (lane == NULL)
        return;
    assert(!atomic_load(&lane->is_running));
    if (lane->helper != NULL) {
        assert(lane->helper->works == 0);
        pthread_mutex_lock(&lane->helper->lock);
        lane->helper->is_ending = true;
        pthread_cond_signal(&lane->helper->changed);
        pthread_mutex_unlock(&lane->helper->lock);
        pthread_join(lane->helper->thread, NULL);
        pthread_cond_destroy(&lane->helper->changed);
        pthread_mutex_destroy(&lane->helper->lock);
        mem_free(lane->helper);
    }
    while (!run_inbox(lane, UINT64_MAX)) {
    }
    run_jobs(lane, false);
    uv_walk(&lane->loop, close_handle, NULL);
    uv_run(&lane->loop, UV_RUN_DEFAULT);
    int busy = uv_loop_close(&lane->loop);
    assert(busy == 0);
    timers_fini(&lane->timers);
    pthread_mutex_destroy(&lane->inbox_lock);
    mem_free(lane);
}

unsigned lane_index(const struct lane *lane)
{
    return lane->index;
}

uv_loop_t *lane_loop(struct lane *lane)
{
    return &lane->loop;
}

struct timers *lane_timers(struct lane *lane)
{
    return &lane->timers;
}

void lane_run(struct lane *lane)
{
    assert(!atomic_load(&lane->is_running));
    lane->runner = pthread_self();
    atomic_store(&lane->is_running, true);
    uv_run(&lane->loop, UV_RUN_DEFAULT);
    atomic_store(&lane->is_running, false);
}

static void *thread_main(void *arg)
{
    lane_run(arg);
    return NULL;
}

int lane_spawn(struct lane *lane)
{
    assert(!atomic_load(&lane->is_spawned));
    int failed = pthread_create(&lane->thread, NULL, thread_main, lane);
    if (failed == 0)
        atomic_store(&lane->is_spawned, true);
    return -failed;
}

void lane_join(struct lane *lane)
{
    if (!atomic_load(&lane->is_spawned))
        return;
    int failed = pthread_join(lane->thread, NULL);
    assert(failed == 0);
    atomic_store(&lane->is_spawned, false);
}

void lane_end(struct lane *lane)
{
    assert(lane_is_current(lane));
    uv_stop(&lane->loop);
}

bool lane_turn(struct lane *lane)
{
    assert(lane_is_current(lane));
    uint64_t before = lane->done_count;
    fire_timers(lane);
    run_jobs(lane, false);
    bool is_helped = lane->helper != NULL && lane->helper->works > 0;
    bool waits = is_helped && lane->done_count == before;
    do /* the alarm may end a wait, by the clock that is not faked */
        uv_run(&lane->loop, waits ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    while (waits && lane->done_count == before);
    run_jobs(lane, true);
    lane->is_resting = lane->has_run = false;
    return lane->done_count != before;
}

bool lane_is_current(const struct lane *lane)
{
    return !atomic_load_explicit(&lane->is_running, memory_order_acquire) ||
           pthread_equal(lane->runner, pthread_self());
}

void lane_post(struct lane *lane, struct lane_task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&lane->inbox_lock);
    *lane->inbox_last = task;
    lane->inbox_last = &task->next;
    /* Under the lock: a lane that has emptied its inbox for the last time cannot be signalled any
     * more. */
    uv_async_send(&lane->doorbell);
    pthread_mutex_unlock(&lane->inbox_lock);
}

void lane_defer(struct lane *lane, struct lane_job *job)
{
    assert(lane_is_current(lane));
    if (job->is_queued)
        return;
    job->next = &lane->jobs;
    job->prev = lane->jobs.prev;
    job->prev->next = job;
    lane->jobs.prev = job;
    job->is_queued = true;
}

void lane_defer_first(struct lane *lane, struct lane_job *job)
{
    assert(lane_is_current(lane));
    if (job->is_queued)
        unlink_job(job);
    job->next = lane->jobs.next;
    job->prev = &lane->jobs;
    job->next->prev = job;
    lane->jobs.next = job;
    job->is_queued = true;
}

void lane_defer_cancel(struct lane *lane, struct lane_job *job)
{
    assert(lane_is_current(lane));
    if (job->is_queued)
        unlink_job(job);
}

void lane_hurry(struct lane *lane)
{
    assert(lane_is_current(lane));
    lane->is_hurried = true;
}

bool lane_is_hurried(const struct lane *lane)
{
    assert(lane_is_current(lane));
    return lane->is_hurried;
}

void lane_rest(struct lane *lane)
{
    assert(lane_is_current(lane));
    lane->is_resting = true;
}

bool lane_is_resting(const struct lane *lane)
{
    assert(lane_is_current(lane));
    return lane->is_resting;
}

uint64_t lane_held_ns(const struct lane *lane)
{
    const uint64_t now_ns = clock_now_ns();
    return now_ns > lane->began_ns ? now_ns - lane->began_ns : 0;
}

void lane_catch_up(struct lane *lane)
{
    assert(lane_is_current(lane));
    if (lane->is_hurried)
        run_jobs(lane, false);
}

static void run_here(struct lane_task *task)
{
    struct helper_work *work =
        (struct helper_work *)((char *)task - offsetof(struct helper_work, task));
    work->run(work);
    work->done(work);
}

void lane_help(struct lane *lane, struct helper_work *work)
{
    assert(lane_is_current(lane));
    if (lane->helper == NULL) {
        struct helper *helper = mem_zalloc(sizeof(*helper));
        helper->lane = lane;
        helper->last = &helper->first;
        pthread_mutex_init(&helper->lock, NULL);
        pthread_cond_init(&helper->changed, NULL);
        /* Signals go to the main thread. */
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        if (pthread_create(&helper->thread, NULL, helper_main, helper) == 0) {
            lane->helper = helper;
        } else {
            pthread_cond_destroy(&helper->changed);
            pthread_mutex_destroy(&helper->lock);
            mem_free(helper);
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    struct helper *helper = lane->helper;
    if (helper == NULL) {
        work->task = (struct lane_task){.fn = run_here};
        lane_post(lane, &work->task);
        return;
    }
    work->helper = helper;
    work->next = NULL;
    work->task = (struct lane_task){.fn = on_work_done};
    helper->works++;
    pthread_mutex_lock(&helper->lock);
    *helper->last = work;
    helper->last = &work->next;
    pthread_cond_signal(&helper->changed);
    pthread_mutex_unlock(&helper->lock);
}

void lane_timer_start(struct lane *lane, struct timer *timer, uint64_t delay_ns)
{
    assert(lane_is_current(lane));
    uint64_t now_ns = clock_now_ns();
    timer_start(&lane->timers, timer,
                delay_ns < UINT64_MAX - now_ns ? now_ns + delay_ns : UINT64_MAX);
}

void lane_timer_stop(struct lane *lane, struct timer *timer)
{
    assert(lane_is_current(lane));
    timer_stop(&lane->timers, timer);
}
