/* SPDX-License-Identifier: Apache-2.0 */
/* A lane: one thread, one uv loop, its timers and its inbox. Everything that runs on a lane belongs
 * to it alone. Only lane_post may be called from other threads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "src/base/timer.h"

struct helper;
struct lane;

/* Work posted from another thread; embedded by the sender, which keeps it alive until fn runs. */
struct lane_task {
    void (*fn)(struct lane_task *task);
    struct lane_task *next;
};

/* Work of this lane for the end of the current loop turn; embedded by its user. */
struct lane_job {
    void (*fn)(void *arg);
    void *arg;
    struct lane_job *next;
    struct lane_job *prev;
    bool is_queued;
};

/* Work for the lane's helper thread: processing of one request that would hold the lane too long.
 * Embedded by its user, which keeps it alive until done runs. While run is under way, the lane does
 * not touch what run reads and writes. */
struct helper_work {
    void (*run)(struct helper_work *work);  /* on the helper's thread */
    void (*done)(struct helper_work *work); /* on the lane, later */
    /* of the lane */
    struct lane_task task;
    struct helper *helper;
    struct helper_work *next;
};

/* index 0 is the main thread's lane. NULL when the system has no resources for a loop. */
struct lane *lane_create(unsigned index);
/* The loop must have ended. NULL is a no-op. */
void lane_destroy(struct lane *lane);
unsigned lane_index(const struct lane *lane);
/* Owned by the lane; for use on it. */
uv_loop_t *lane_loop(struct lane *lane);
struct timers *lane_timers(struct lane *lane);

/* Runs the lane on the calling thread until lane_end. */
void lane_run(struct lane *lane);
/* Runs it on its own thread; lane_join waits for its end. Returns 0 or a negative errno. */
int lane_spawn(struct lane *lane);
void lane_join(struct lane *lane);
/* Ends lane_run after this turn. On the lane. */
void lane_end(struct lane *lane);
/* Tests: one turn that blocks only for the helper (due timers, ready sockets, jobs, finished helper
 * work). Returns true if anything ran. */
bool lane_turn(struct lane *lane);

/* True on the lane's thread, and on every thread before it starts. */
bool lane_is_current(const struct lane *lane);
/* Any thread. Tasks of one sender run in order. */
void lane_post(struct lane *lane, struct lane_task *task);
/* On the lane: runs fn(arg) at the end of this turn, before the loop sleeps. A job that is queued
 * already stays queued once. */
void lane_defer(struct lane *lane, struct lane_job *job);
/* The same, but before all that are queued. */
void lane_defer_first(struct lane *lane, struct lane_job *job);
/* fn is not called after this returns. Cancelling a job that is not queued is a no-op. */
void lane_defer_cancel(struct lane *lane, struct lane_job *job);
/* On the lane: queued jobs run at the next lane_catch_up instead of at the end of this turn, since
 * further sockets of this turn may bring much more work. */
void lane_hurry(struct lane *lane);
/* Whether it was called since the job that runs has begun, or since jobs ran: a job that makes work
 * for others leaves the rest of it for later. */
bool lane_is_hurried(const struct lane *lane);
/* On the lane: this turn has done much work, as it has after LANE_JOB_NS of jobs. Queued jobs, but
 * for one if none has run, run in the next turn of the loop, after its sockets; lane_is_resting is
 * true until then. */
void lane_rest(struct lane *lane);
bool lane_is_resting(const struct lane *lane);
/* On the lane: how long the job, task or timer that runs now has held it. */
uint64_t lane_held_ns(const struct lane *lane);
/* On the lane: call it when a socket has been read and no caller further up the stack is half-way
 * through its work, as at the end of a turn. Runs the jobs if lane_hurry was called. */
void lane_catch_up(struct lane *lane);
/* On the lane: runs work->run on the lane's helper thread, which starts on first use, and then
 * work->done on the lane, from the loop and never from inside this call. If no thread can be
 * started, both run on the lane. */
void lane_help(struct lane *lane, struct helper_work *work);
/* On the lane: (re)starts a timer to fire delay_ns from now; never if that overflows. */
void lane_timer_start(struct lane *lane, struct timer *timer, uint64_t delay_ns);
/* On the lane. Stopping a stopped timer is a no-op. */
void lane_timer_stop(struct lane *lane, struct timer *timer);
