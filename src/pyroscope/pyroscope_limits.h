/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of what Pyroscope's clients may send and how long they may wait that have no key in the
 * configuration. Sizes in bytes, times in nanoseconds. */
#pragma once

#include "src/limits.h"

/* Clients do not come back, so that a request waits for room a while: the first look comes so long
 * after, each pause is twice the last; so many of them wait, with so many bytes in all, on a lane.
 */
enum { PYROSCOPE_WAITING_MAX = 256 };
#define PYROSCOPE_WAITING_BYTES_MAX (64 * MIB)
#define PYROSCOPE_PATIENCE_NS       ((uint64_t)5 * NS_PER_S)
#define PYROSCOPE_LOOK_NS           ((uint64_t)50 * NS_PER_MS)
