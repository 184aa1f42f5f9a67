/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a piece of work holds at most, to compare with what it was charged. Counts every
 * allocation that passes src/base/mem.h; the executable is linked with memory_watch
 * (CMakeLists.txt), which stands between. One thread. */
#pragma once

#include <stdint.h>

/* Counts from here. */
void memory_watch_begin(void);
/* The most bytes that were held at a time since _begin, beside what was held then. */
uint64_t memory_watch_peak(void);
