/* SPDX-License-Identifier: Apache-2.0 */
/* The one clock. All time is uint64_t nanoseconds. Any thread. Tests replace it before lanes run.
 */
#pragma once

#include <stdint.h>

enum { NS_PER_US = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

/* Monotonic: for deadlines, ages and intervals. */
uint64_t clock_now_ns(void);
/* Unix time: for time stamps that leave the process. */
uint64_t clock_wall_ns(void);

/* Tests only: from now on time stands still at these values; only clock_fake_advance moves it. */
void clock_fake_start(uint64_t now_ns, uint64_t wall_ns);
void clock_fake_advance(uint64_t by_ns);
void clock_fake_stop(void);
