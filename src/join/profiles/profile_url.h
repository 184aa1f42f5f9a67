/* SPDX-License-Identifier: Apache-2.0 */
/* URLs that lead from the Profiles of a request to the trace that they are of. An attribute of the
 * Profile, not of samples: no exporter makes a label of it. One owner, one thread at a time. */
#pragma once

#include <stdint.h>

#include "src/join/profiles/profile_additions.h"

struct profile_urls {
    uint32_t *indices; /* in the attribute table, by Profile, of the first ones; 0: none */
    uint32_t count;
    uint32_t capacity;
    uint32_t next; /* which Profile is asked for next */
};

void profile_urls_fini(struct profile_urls *urls);
/* Makes them for the request of links (resolved). Where the template wants a trace or a span, only
 * for Profiles whose samples name one and no other; a Profile that has one keeps it. Beyond
 * JOIN_URLS_MAX, which are more than anybody sends, Profiles get none. */
void profile_urls_collect(struct profile_urls *urls, const struct profile_links *links,
                          struct profile_additions *additions, uint64_t now_ns);
/* Of the next Profile, in the order of the request. */
uint32_t profile_urls_next(struct profile_urls *urls);
