/* SPDX-License-Identifier: Apache-2.0 */
/* A lane: one thread, one uv loop, its timers and its inbox. Everything that runs on a lane belongs
 * to it alone. lane_post is the only call that other threads may make. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "src/base/timer.h"

struct helper;
struct lane;

/* Work posted from another thread; embedded by its sender, who keeps it alive until fn runs. */
struct lane_task {
    void (*fn)(struct lane_task *task);
    struct lane_task *next;
};

/* Work of this lane for the end of this turn of the loop; embedded by its user. */
struct lane_job {
    void (*fn)(void *arg);
    void *arg;
    struct lane_job *next;
    struct lane_job *prev;
    bool is_queued;
};

/* Work for the lane's helper thread: on one request that would hold the lane too long. Embedded by
 * its user, who keeps it alive until done runs. While run is under way, the lane leaves alone what
 * it reads and writes. */
struct helper_work {
    void (*run)(struct helper_work *work);  /* on the helper's thread */
    void (*done)(struct helper_work *work); /* on the lane, later */
    /* of the lane */
    struct lane_task task;
    struct helper *helper;
    struct helper_work *next;
};

/* index 0 is the lane of the main thread. NULL when the system gives no loop. */
struct lane *lane_create(unsigned index);
/* The loop must have ended. NULL is tolerated. */
void lane_destroy(struct lane *lane);
unsigned lane_index(const struct lane *lane);
/* Both stay the lane's; for use on it. */
uv_loop_t *lane_loop(struct lane *lane);
struct timers *lane_timers(struct lane *lane);

/* Runs the lane on the calling thread until lane_end. */
void lane_run(struct lane *lane);
/* Runs it on a thread of its own; lane_join waits for its end. 0, or a negative errno. */
int lane_spawn(struct lane *lane);
void lane_join(struct lane *lane);
/* Ends lane_run after this turn. On the lane. */
void lane_end(struct lane *lane);
/* Tests: one turn that does not block but for the helper (due timers, ready sockets, jobs, the end
 * of a helper's work). Returns true while anything was done. */
bool lane_turn(struct lane *lane);

/* True on the lane's thread, and everywhere while it has not been started. */
bool lane_is_current(const struct lane *lane);
/* Any thread. Tasks of one sender run in order. */
void lane_post(struct lane *lane, struct lane_task *task);
/* On the lane: runs fn(arg) at the end of this turn, before the loop sleeps. Queueing twice is
 * once. */
void lane_defer(struct lane *lane, struct lane_job *job);
/* After this returns, fn will not be called. Cancelling what is not queued does nothing. */
void lane_defer_cancel(struct lane *lane, struct lane_job *job);
/* On the lane: jobs that are queued run at the next lane_catch_up rather than at the end of this
 * turn, in which other sockets may bring much more. */
void lane_hurry(struct lane *lane);
/* On the lane: called when a socket has been read and nothing below the caller is under way, as at
 * the end of a turn. Runs the jobs if somebody is in a hurry. */
void lane_catch_up(struct lane *lane);
/* On the lane: runs the work on the lane's helper, a thread that is made when it is first needed,
 * and then its done on the lane: from the loop, never from inside this call. Without a thread to be
 * had both run on the lane. */
void lane_help(struct lane *lane, struct helper_work *work);
/* On the lane: (re)starts a timer that fires delay_ns from now; never when that is beyond the end
 * of time. */
void lane_timer_start(struct lane *lane, struct timer *timer, uint64_t delay_ns);
/* On the lane. Stopping a timer that does not run does nothing. */
void lane_timer_stop(struct lane *lane, struct timer *timer);
