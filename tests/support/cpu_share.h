/* SPDX-License-Identifier: Apache-2.0 */
/* How much of what the process does is done by the calling thread, in CPU time: whether a lane
 * leaves work to its helper. */
#pragma once

#include <stdint.h>
#include <time.h>

struct cpu_share {
    uint64_t thread_ns;
    uint64_t process_ns;
};

static inline uint64_t cpu_share_clock(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static inline struct cpu_share cpu_share_begin(void)
{
    return (struct cpu_share){.thread_ns = cpu_share_clock(CLOCK_THREAD_CPUTIME_ID),
                              .process_ns = cpu_share_clock(CLOCK_PROCESS_CPUTIME_ID)};
}

/* Since then, in percent. */
static inline unsigned cpu_share_percent(const struct cpu_share *begin)
{
    uint64_t thread_ns = cpu_share_clock(CLOCK_THREAD_CPUTIME_ID) - begin->thread_ns;
    uint64_t process_ns = cpu_share_clock(CLOCK_PROCESS_CPUTIME_ID) - begin->process_ns;
    return (unsigned)(thread_ns * 100 / (process_ns > 0 ? process_ns : 1));
}
