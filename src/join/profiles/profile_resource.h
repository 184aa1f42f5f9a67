/* SPDX-License-Identifier: Apache-2.0 */
/* What a Resource of profiles gets: the service of its process, if it does not say one, and the
 * only trace of it, if there is one. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/join/index/resource_facts.h"

struct join_store;
struct process_found;
struct profile_dictionary;
struct splice_list;
struct wire_field;

struct profile_resources {
    struct join_store *store;
    const struct profile_dictionary *from; /* of the request; borrowed */
    struct splice_list *splices;           /* the same */
    uint64_t now_ns;
    bool has_links; /* some samples of the request name spans */
    uint64_t repaired;
    uint64_t labelled;
};

/* What a resource is to say of its service, each an encoded KeyValue; no data: what it says. */
struct resource_identity {
    struct slice key_values[RESOURCE_IDENTITY_KEYS];
};

/* That of the service which runs in its process, as far as the resource lacks it; ret_found has the
 * bytes. False: it has a service, nobody knows one, or it is to stay as it is. */
bool profile_resource_identity(const struct join_store *store, const struct resource_facts *facts,
                               uint64_t now_ns, struct process_found *ret_found,
                               struct resource_identity *ret_identity);
/* Whether the resource, an encoded one, has neither the trace's id nor that of its root, or only
 * one of them. */
bool profile_resource_may_get_trace(struct slice resource);
/* From when to when the profiles of a ResourceProfiles with that content were taken. False: there
 * are none that say it. */
bool profile_resource_window(struct slice content, uint64_t *ret_from_ns, uint64_t *ret_until_ns);
/* The Resource field, whose tag is at `at` in the batch, of the ResourceProfiles with that content.
 */
void profile_resource_edit(struct profile_resources *resources, const struct wire_field *field,
                           uint64_t at, struct slice content);
