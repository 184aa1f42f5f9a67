/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through a profiles request that is being spliced: who changes it gets resources and Profiles
 * one by one, and the lengths of the messages around them are seen to. The request has passed
 * profile_door and lies in one piece. Runs on the caller's thread. */
#pragma once

#include "src/join/splice.h"
#include "src/otlp/wire.h"

/* A field with a Resource, and where it stands in the request; around: the content of the
 * ResourceProfiles that it is in. */
typedef void (*profile_walk_resource_fn)(void *arg, const struct wire_field *field, uint64_t at,
                                         struct slice around);
/* A field with a Profile, and where it stands in the request. It is not opened yet. */
typedef void (*profile_walk_profile_fn)(void *arg, const struct wire_field *field, uint64_t at);

struct profile_walk {
    struct splice_list *splices;
    profile_walk_resource_fn on_resource; /* NULL: nobody wants them */
    profile_walk_profile_fn on_profile;
    void *arg;
    const struct profile_bytes *additions; /* to the dictionary; NULL: none */
    size_t additions_placed;               /* bytes of these that it has got */
};

/* Calls in the order of the request. Additions come last in the last dictionary (several are one,
 * in their order), as far as they are there when it is passed; where there is none, in a new one.
 */
void profile_walk_request(struct profile_walk *walk, struct slice request);
