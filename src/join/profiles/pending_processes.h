/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a profiles request that may have a single trace which is not known yet: batch jobs
 * whose first profile arrives before their first span. Most processes without spans never send any,
 * so the join waits for new ones only. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/join/index/single_trace.h"

struct join_store;
struct profile_links;

struct pending_process {
    struct process_names names;
    uint64_t from_ns; /* when its profiles were taken */
    uint64_t until_ns;
};

struct pending_processes {
    struct pending_process *items;
    uint32_t count;
};

/* Collects those of an opened request whose profilers name no spans. `pending` must be empty. */
void pending_processes_collect(struct pending_processes *pending, const struct profile_links *links,
                               uint64_t now_ns);
/* Removes those whose state is known by now. True: none is left. */
bool pending_processes_are_over(struct pending_processes *pending, struct join_store *store,
                                uint64_t now_ns);
void pending_processes_fini(struct pending_processes *pending);
