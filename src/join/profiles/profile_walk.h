/* SPDX-License-Identifier: Apache-2.0 */
/* Iterates over the Resources and Profiles of a profiles request that is being spliced, and keeps
 * the lengths of the messages around them right. The request is normalized (profile_normalize) and
 * contiguous. One owner. */
#pragma once

#include "src/join/splice.h"
#include "src/otlp/wire.h"

struct profile_walk {
    /* What the last _next found. */
    bool is_resource;        /* a Resource; else a Profile, whose message is not opened yet */
    struct wire_field field; /* the whole field */
    uint64_t at;             /* its place in the request */
    struct slice around;     /* content of the ResourceProfiles that it is in */

    size_t additions_placed; /* bytes of the additions that were inserted */

    /* The walk's own. */
    struct splice_list *splices;
    const struct profile_bytes *additions;
    struct slice request;
    const uint8_t *dictionary; /* where the last one begins; NULL: there is none */
    const uint8_t *resource;   /* the same of the ResourceProfiles at hand */
    struct wire_reader readers[3];
    struct slice contents[3];
    size_t opened[3];
    unsigned level;
};

/* additions: fields that the dictionary gets, NULL: none. They are inserted as far as they exist
 * when the walk passes the end of the last dictionary (several count as one, in their order), or in
 * a new one at the end of a request without one. */
struct profile_walk profile_walk_of(struct splice_list *splices, struct slice request,
                                    const struct profile_bytes *additions);
/* The next Resource or Profile in the order of the request. False: the walk has ended. */
bool profile_walk_next(struct profile_walk *walk);
