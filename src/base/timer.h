/* SPDX-License-Identifier: Apache-2.0 */
/* Timers of one lane: a binary heap over the clock, so that a fake clock drives them in tests.
 * Embedded by its user, never allocated. On the thread of the lane that owns the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer;
typedef void (*timer_fn)(struct timer *timer, void *arg);

struct timer {
    uint64_t deadline_ns;
    timer_fn fn;
    void *arg;
    size_t slot; /* index in the heap plus one; 0: not running */
};

struct timers {
    struct timer **heap;
    size_t count;
    size_t capacity;
};

void timers_init(struct timers *timers);
/* All timers must have been stopped. */
void timers_fini(struct timers *timers);
/* Deadline of the next one, or UINT64_MAX. */
uint64_t timers_next_ns(const struct timers *timers);
/* Fires the timers due at now_ns, oldest deadline first; a callback may start and stop any timer.
 * After TIMERS_TURN_NS the rest wait for the next call: many may be due at once, as retries are at
 * a stop. Returns the number fired. */
size_t timers_fire(struct timers *timers, uint64_t now_ns);

void timer_init(struct timer *timer, timer_fn fn, void *arg);
/* (Re)starts it; deadline_ns is on clock_now_ns's scale. */
void timer_start(struct timers *timers, struct timer *timer, uint64_t deadline_ns);
/* Stopping a stopped timer is a no-op. */
void timer_stop(struct timers *timers, struct timer *timer);
static inline bool timer_is_running(const struct timer *timer)
{
    return timer->slot != 0;
}
