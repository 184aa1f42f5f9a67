/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a profiles request that may have one trace, of which nobody knows yet: batch jobs
 * whose first profile comes before their first span. What waits for them may do so in vain, since
 * most processes without spans never have any; so only those are waited for that are new. One
 * owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/join/index/lone_trace.h"

struct join_store;
struct profile_links;

struct awaited {
    struct lone_names names;
    uint64_t from_ns; /* when its profiles were taken */
    uint64_t until_ns;
};

struct profile_awaits {
    struct awaited *items;
    uint32_t count;
};

/* Those of a request, opened, whose profilers name no spans. awaits has none. */
void profile_awaits_collect(struct profile_awaits *awaits, const struct profile_links *links,
                            uint64_t now_ns);
/* Strikes out those of which is known by now what they have; true: there are none left. */
bool profile_awaits_are_over(struct profile_awaits *awaits, struct join_store *store,
                             uint64_t now_ns);
void profile_awaits_fini(struct profile_awaits *awaits);
