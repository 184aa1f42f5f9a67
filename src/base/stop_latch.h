/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for several parties to report that they have stopped. Owned and used by one lane. */
#pragma once

#include <assert.h>

struct stop_latch {
    unsigned pending;
    void (*fn)(void *arg); /* called when the last has stopped; may free the latch */
    void *arg;
};

static inline void stop_latch_hold(struct stop_latch *latch)
{
    latch->pending++;
}

static inline void stop_latch_release(struct stop_latch *latch)
{
    assert(latch->pending > 0);
    if (--latch->pending == 0)
        latch->fn(latch->arg);
}
