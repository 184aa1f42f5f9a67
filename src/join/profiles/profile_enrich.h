/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what is known of spans into the profiles that were taken in them: links instead of labels,
 * attributes of samples, the service of a process, URLs of traces. Nothing else changes, timestamps
 * in particular, and bytes that do not change are shared; but where labels became links, the
 * request is rewritten without the entries that nothing refers to any longer. One owner, one thread
 * at a time. */
#pragma once

#include <stdint.h>

#include "src/join/profiles/profile_additions.h"
#include "src/join/profiles/profile_links.h"
#include "src/join/profiles/profile_resource.h"
#include "src/join/splice.h"

struct batch;

struct enrich_figures {
    uint64_t hits;             /* distinct spans of the request that were in the index */
    uint64_t unknown_services; /* not in it: no span of such a service has been seen */
    uint64_t absent;           /* not in it: not sampled, or not arrived yet */
    uint64_t ambiguous;        /* no trace id, and several traces have such a span */
    uint64_t enriched_samples;
    uint64_t unenriched_samples; /* the budget had no room */
    uint64_t other_values;       /* beyond the cap */
    uint64_t repaired;           /* resources */
    uint64_t labelled;           /* resources that got the only trace of their process */
};

/* URLs of the first Profiles of the request. */
struct profile_urls {
    uint32_t *indices; /* in the attribute table; 0: none */
    uint32_t count;
    uint32_t capacity;
    uint32_t next;    /* Profile to be edited */
    uint32_t own_key; /* of URLs that arrived, in the string table; 0: none */
    size_t begin;     /* of all URLs, in the additions */
};

struct profile_enricher {
    struct profile_links links;
    struct splice_list splices;
    struct profile_additions additions;
    struct profile_urls urls;
    struct profile_resources resources;
    struct enrich_figures figures;
    struct named_reader named; /* samples that are yet to be edited */
    bool changes_samples;      /* some of them may change */
    bool has_unused;           /* some entries of the dictionary may have no reference left */
};

void profile_enricher_init(struct profile_enricher *enricher, struct join_store *store,
                           struct budget *budget);
void profile_enricher_fini(struct profile_enricher *enricher);
/* The batch is the request of enricher->links (opened and resolved) in one part. Returns a new
 * reference: to it, or to a changed one. */
struct batch *profile_enrich(struct profile_enricher *enricher, struct batch *batch,
                             uint64_t now_ns, struct enrich_figures *ret_figures);
