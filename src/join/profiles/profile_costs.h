/* SPDX-License-Identifier: Apache-2.0 */
/* Counts samples and CPU time for the traces of the spans that samples name, for policies of
 * tail_sampling. A request that is refused and comes again counts again. One owner, one thread at a
 * time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct profile_links;

/* links: opened and resolved. False: the budget has no memory, and nothing is counted. */
bool profile_costs_tell(struct profile_links *links, uint64_t now_ns);
