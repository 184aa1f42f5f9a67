/* SPDX-License-Identifier: Apache-2.0 */
/* What a Resource of profiles gets: the service of its process if it names none, and the only trace
 * of the process if there is one. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/join/index/resource_facts.h"

struct join_store;
struct process_found;
struct profile_dictionary;
struct profile_walk;
struct splice_list;

struct profile_resources {
    struct join_store *store;
    const struct profile_dictionary *from; /* of the request; borrowed */
    struct splice_list *splices;           /* borrowed */
    uint64_t now_ns;
    bool has_links; /* some samples of the request name spans */
    uint64_t added_bytes;
    uint64_t repaired;
    uint64_t labelled;
};

/* What a resource is to say of its service, each an encoded KeyValue; no data: what it says. */
struct resource_identity {
    struct slice key_values[RESOURCE_IDENTITY_KEYS];
};

/* The identity of the service that runs in the resource's process, as far as the resource lacks it;
 * ret_found has the bytes. False: the resource has a service, none is known, or repairs are off. */
bool profile_resource_identity(const struct join_store *store, const struct resource_facts *facts,
                               uint64_t now_ns, struct process_found *ret_found,
                               struct resource_identity *ret_identity);
/* Whether the encoded resource lacks the trace's id or that of its root. */
bool profile_resource_may_get_trace(struct slice resource);
/* When the profiles of a ResourceProfiles with that content were taken. False: none of them says.
 */
bool profile_resource_window(struct slice content, uint64_t *ret_from_ns, uint64_t *ret_until_ns);
/* Edits the Resource that the walk has reached. */
void profile_resource_edit(struct profile_resources *resources, const struct profile_walk *walk);
