/* SPDX-License-Identifier: Apache-2.0 */
/* Binary heap of timers. Runs on its lane's thread. */
#include "src/base/timer.h"

#include <assert.h>

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

enum { TIMERS_CAPACITY_FIRST = 16 };

void timers_init(struct timers *timers)
{
    *timers = (struct timers){0};
}

void timers_fini(struct timers *timers)
{
    assert(timers->count == 0);
    mem_free(timers->heap);
    timers->heap = NULL;
}

uint64_t timers_next_ns(const struct timers *timers)
{
    return timers->count > 0 ? timers->heap[0]->deadline_ns : UINT64_MAX;
}

void timer_init(struct timer *timer, timer_fn fn, void *arg)
{
    *timer = (struct timer){.fn = fn, .arg = arg};
}

static void place(struct timers *timers, size_t index, struct timer *timer)
{
    assert(index < timers->count);
    timers->heap[index] = timer;
    timer->slot = index + 1;
}

static void sift_up(struct timers *timers, size_t index)
{
    assert(index < timers->count);
    struct timer *moving = timers->heap[index];
    while (index > 0) {
        size_t parent = (index - 1) / 2;
        if (timers->heap[parent]->deadline_ns <= moving->deadline_ns)
            break;
        place(timers, index, timers->heap[parent]);
        index = parent;
    }
    place(timers, index, moving);
}

static void sift_down(struct timers *timers, size_t index)
{
    assert(index < timers->count);
    struct timer *moving = timers->heap[index];
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= timers->count)
            break;
        if (child + 1 < timers->count &&
            timers->heap[child + 1]->deadline_ns < timers->heap[child]->deadline_ns)
            child++;
        if (timers->heap[child]->deadline_ns >= moving->deadline_ns)
            break;
        place(timers, index, timers->heap[child]);
        index = child;
    }
    place(timers, index, moving);
}

void timer_start(struct timers *timers, struct timer *timer, uint64_t deadline_ns)
{
    timer_stop(timers, timer);
    assert(timers->count <= timers->capacity);
    if (timers->count >= timers->capacity) {
        timers->capacity = timers->capacity > 0 ? 2 * timers->capacity : TIMERS_CAPACITY_FIRST;
        timers->heap = (struct timer **)mem_resize((void *)timers->heap,
                                                   timers->capacity * sizeof(*timers->heap));
    }
    timer->deadline_ns = deadline_ns;
    timers->count++;
    place(timers, timers->count - 1, timer);
    sift_up(timers, timers->count - 1);
}

void timer_stop(struct timers *timers, struct timer *timer)
{
    if (timer->slot == 0)
        return;
    size_t index = timer->slot - 1;
    assert(index < timers->count && timers->heap[index] == timer);
    timer->slot = 0;
    timers->count--;
    if (index == timers->count)
        return;
    place(timers, index, timers->heap[timers->count]);
    sift_up(timers, index);
    sift_down(timers, timers->heap[index]->slot - 1);
}

size_t timers_fire(struct timers *timers, uint64_t now_ns)
{
    size_t fired = 0;
    /* A timer that a callback starts for "now" waits for the next turn: one that restarts itself
     * cannot hold the lane. */
    size_t at_most = timers->count;
    uint64_t until_ns = clock_now_ns() + TIMERS_TURN_NS;
    while (fired < at_most && timers_next_ns(timers) <= now_ns) {
        struct timer *due = timers->heap[0];
        timer_stop(timers, due);
        fired++;
        due->fn(due, due->arg);
        if (clock_now_ns() >= until_ns)
            break;
    }
    return fired;
}
