/* SPDX-License-Identifier: Apache-2.0 */
/* Where the explore exporters of all lanes, the explore extension and the explore worker meet. The
 * worker, a thread of low priority, owns the store. Lanes give it references to batches through
 * bounded rings, one per lane, and never wait; it indexes them when it has time, and drops the
 * oldest when it has not. Queries are jobs in a bounded queue; their answers come back to the lane
 * that asked. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/explore/explore_job.h"

struct batch;
struct error;
struct explore_hub;

/* The hub of that id in a service, which `scope` stands for; made when it is first asked for. Main
 * thread, as is _release. */
struct explore_hub *explore_hub_get(const void *scope, const char *id);
void explore_hub_release(struct explore_hub *hub);

/* Starts and ends the worker. The settings' pointers stay valid in between. While it does not run,
 * nothing is kept. */
bool explore_hub_start(struct explore_hub *hub, const struct explore_settings *settings,
                       struct error *error);
/* On the lane, after the last job is done: tells the worker to end, and runs the task on that lane
 * once it has; what it has no time to index is counted as lost. */
void explore_hub_end(struct explore_hub *hub, struct lane *lane, struct lane_task *task);
/* The same, and waits for it unless the worker has ended. What the store has is left for the next
 * one during a reload. */
void explore_hub_stop(struct explore_hub *hub);

/* On a lane, which is `lane` of the service: takes a reference to the batch unless the ring is
 * full. */
void explore_hub_offer(struct explore_hub *hub, unsigned lane, struct batch *batch);
/* On a lane: false: too many wait. */
bool explore_hub_ask(struct explore_hub *hub, struct explore_job *job)
    __attribute__((warn_unused_result));

/* Whether this one is to report the hub's counters: the first to ask. In create. */
bool explore_hub_claim(struct explore_hub *hub, const void *reporter);

/* Any thread. */
struct explore_figures {
    uint64_t lost[EXPLORE_LOSSES]; /* items */
    uint64_t newest;               /* number of the newest trace */
    uint64_t used_bytes;
    uint64_t traces;
    uint64_t spans;
};
struct explore_figures explore_hub_figures(const struct explore_hub *hub);
