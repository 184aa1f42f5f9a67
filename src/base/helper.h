/* SPDX-License-Identifier: Apache-2.0 */
/* A thread beside a lane, for work on one request that would hold the lane too long: reading what
 * is large. The lane goes on with other requests meanwhile. Works run one at a time, in order. */
#pragma once

#include "src/base/lane.h"

struct helper;

/* Embedded by its user, who keeps it alive until done runs. While run is under way, the lane leaves
 * alone what it reads and writes. */
struct helper_work {
    void (*run)(struct helper_work *work);  /* on the helper's thread */
    void (*done)(struct helper_work *work); /* on the lane, later */
    /* of the helper */
    struct lane_task task;
    struct helper *helper;
    struct helper_work *next;
};

/* For lane, which outlives it. NULL when the system gives no thread. */
struct helper *helper_create(struct lane *lane);
/* All works have been done. NULL is tolerated. */
void helper_destroy(struct helper *helper);
/* On the lane. */
void helper_start(struct helper *helper, struct helper_work *work);
/* On the lane: works that are not done yet. */
unsigned helper_works(const struct helper *helper);
