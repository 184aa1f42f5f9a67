/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what is known of spans into the profiles that were taken in them: links instead of labels,
 * attributes of samples, the service of a process. Nothing else changes, no time stamp in
 * particular, and bytes that do not change are shared; but where labels became links, the request
 * is written anew without what nothing refers to any longer. One owner, one thread at a time. */
#pragma once

#include <stdint.h>

#include "src/join/profiles/profile_additions.h"
#include "src/join/profiles/profile_links.h"
#include "src/join/profiles/profile_resource.h"
#include "src/join/profiles/profile_url.h"
#include "src/join/splice.h"

struct batch;

struct enrich_figures {
    uint64_t hits;             /* distinct spans of the request that were in the index */
    uint64_t unknown_services; /* that were not: no span of such a service has been seen */
    uint64_t absent;           /* … the trace is not sampled, or its span has not come yet */
    uint64_t ambiguous;        /* … no trace id, and several traces have such a span */
    uint64_t enriched_samples;
    uint64_t other_values; /* beyond the cap */
    uint64_t repaired;     /* resources */
    uint64_t labelled;     /* … that got the only trace of their process */
};

struct profile_enricher {
    struct profile_links links;
    struct splice_list splices;
    struct profile_additions additions;
    struct profile_urls urls;
    struct profile_resources resources;
    struct enrich_figures figures;
    struct named_reader named; /* samples that are yet to be edited */
    bool changes_samples;      /* some of them, perhaps */
    bool has_orphans; /* entries of the dictionary that samples do not refer to any longer */
};

void profile_enricher_init(struct profile_enricher *enricher, struct join_store *store,
                           struct budget *budget);
void profile_enricher_fini(struct profile_enricher *enricher);
/* The batch, which is the request of enricher->links (opened and resolved) in one part, or a
 * changed one; a new reference. */
struct batch *profile_enrich(struct profile_enricher *enricher, struct batch *batch,
                             uint64_t now_ns, struct enrich_figures *ret_figures);
