/* SPDX-License-Identifier: Apache-2.0 */
/* Merges and splits profiles requests, layout 1.10: samples are taken from requests one after the
 * other into a new request, up to a limit. Its dictionary has what they use, once, and nothing
 * else; references become texts. A Profile message stays whole unless it is larger than the limit
 * by itself; pieces of one have no profile_id and no original payload, which would belie them.
 * Unknown fields are left behind. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/otlp/split.h"
#include "src/profiles/otlp/profile_groups.h"
#include "src/profiles/otlp/profile_remap.h"
#include "src/profiles/otlp/profile_view.h"

struct batch;
struct budget;
struct buffer;

/* The request that is being built. */
struct profile_merge {
    struct profile_tables tables;
    struct profile_groups groups;
    uint64_t items;       /* samples, and uploads (opaque_profile.h) */
    uint64_t profiles;    /* Profile messages, pieces included */
    bool may_have_unused; /* entries: whole dictionaries were copied */
};

/* Everything that it holds is charged to budget, beyond its limit if need be. */
void profile_merge_init(struct profile_merge *merge, struct budget *budget);
void profile_merge_fini(struct profile_merge *merge);

#define SOURCE_NOT_GROUPED UINT32_MAX

/* A request that samples are taken from. Its indices have been checked but for the profiles that
 * are named as broken. */
struct profile_source {
    struct profile_remap remap;
    const uint8_t *broken; /* one bit per Profile message, or NULL: those are left out */
    uint64_t seen;         /* Profile messages */
    struct wire_reader resources;
    struct wire_reader scopes;
    struct wire_reader profiles;
    struct wire_reader samples;
    struct profile_resource resource;
    struct profile_scope scope;
    struct profile profile;
    enum { SOURCE_REQUEST, SOURCE_RESOURCE, SOURCE_SCOPE, SOURCE_PROFILE } level;
    uint32_t resource_group; /* of resource in the groups; SOURCE_NOT_GROUPED: not looked up yet */
    uint32_t scope_group;    /* of scope; the same */
    uint64_t samples_left;   /* of the profile */
    bool is_cut;             /* the profile */
    bool is_begun;
    bool is_copied; /* all that its samples refer to is known, and all of it fits */
};

/* request stays where it is until _close. False when there is no memory for its index. */
bool profile_source_open(struct profile_source *source, struct slice request,
                         struct profile_merge *merge);
void profile_source_close(struct profile_source *source);

/* Takes from source what the limit allows; at least one sample if nothing was taken before. True:
 * the source is used up; false: the limit (PROFILE_MERGED_BYTES_MAX if it names no bytes)
 * is reached, and the next thing is _finish. */
bool profile_merge_take(struct profile_merge *merge, struct profile_source *source,
                        struct otlp_limit limit);
/* What was taken, as an encoded request; NULL: nothing. Then merge is empty again, and `source`,
 * which is the one that goes on, knows it; it may be NULL. */
struct buffer *profile_merge_finish(struct profile_merge *merge, struct profile_source *source);
/* The same as parts of batch, without a copy of large tables. False: nothing was taken. */
bool profile_merge_hand_out(struct profile_merge *merge, struct profile_source *source,
                            struct batch *batch);
