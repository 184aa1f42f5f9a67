/* SPDX-License-Identifier: Apache-2.0 */
/* The one clock: the kernel's, or in tests a hand-turned one. Any thread. */
#include "src/base/clock.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

static _Atomic bool is_fake;
static _Atomic uint64_t fake_now_ns;
static _Atomic uint64_t fake_wall_ns;

static uint64_t read_clock(clockid_t id)
{
    struct timespec now;
    int failed = clock_gettime(id, &now);
    assert(failed == 0);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t clock_now_ns(void)
{
    return atomic_load_explicit(&is_fake, memory_order_relaxed) ? atomic_load(&fake_now_ns)
                                                                : read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_wall_ns(void)
{
    return atomic_load_explicit(&is_fake, memory_order_relaxed) ? atomic_load(&fake_wall_ns)
                                                                : read_clock(CLOCK_REALTIME);
}

void clock_fake_start(uint64_t now_ns, uint64_t wall_ns)
{
    atomic_store(&fake_now_ns, now_ns);
    atomic_store(&fake_wall_ns, wall_ns);
    atomic_store(&is_fake, true);
}

void clock_fake_advance(uint64_t by_ns)
{
    assert(atomic_load(&is_fake));
    atomic_fetch_add(&fake_now_ns, by_ns);
    atomic_fetch_add(&fake_wall_ns, by_ns);
}

void clock_fake_stop(void)
{
    atomic_store(&is_fake, false);
}
