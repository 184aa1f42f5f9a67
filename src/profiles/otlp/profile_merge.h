/* SPDX-License-Identifier: Apache-2.0 */
/* Merges and splits profiles requests, layout 1.10: takes samples from requests one after the other
 * into a new request, up to a limit. Its dictionary has what they use, without duplicates, and
 * nothing else; references become strings. A Profile message stays whole unless it is larger than
 * the limit by itself; its pieces have no profile_id and no original payload, which would no longer
 * be true. Drops unknown fields. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/otlp/split.h"
#include "src/profiles/otlp/dictionary_copy.h"
#include "src/profiles/otlp/profile_groups.h"
#include "src/profiles/otlp/profile_view.h"

struct batch;
struct budget;
struct buffer;

/* The request that is being built. */
struct profile_merge {
    struct profile_tables tables;
    struct profile_groups groups;
    uint64_t items;       /* samples and opaque profiles */
    uint64_t profiles;    /* Profile messages, pieces included */
    bool may_have_unused; /* entries, as whole dictionaries were copied */
};

/* Charges everything to budget, beyond its limit if need be. */
void profile_merge_init(struct profile_merge *merge, struct budget *budget);
void profile_merge_fini(struct profile_merge *merge);

#define SOURCE_NOT_GROUPED UINT32_MAX

/* A request that samples are taken from. Its indices have been checked, but for the broken
 * profiles. */
struct profile_source {
    struct dictionary_copy copy;
    const uint8_t *broken; /* one bit per Profile message, or NULL: these are skipped */
    uint64_t seen;         /* Profile messages so far */
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
    size_t attributes_bytes; /* of the profile, with new indices */
    uint64_t oversize_bytes; /* taken so far in pieces above the limit */
    bool is_cut;             /* the profile is taken in pieces */
    bool is_begun;           /* by _take */
    bool is_copied;          /* its whole dictionary is copied, and all of it fits */
};

/* request must stay in place until _close. False when there is no memory for its index. */
bool profile_source_open(struct profile_source *source, struct slice request,
                         struct profile_merge *merge);
void profile_source_close(struct profile_source *source);

/* Takes from source what the limit allows; at least one sample if nothing was taken before. True:
 * all of the source was taken; false: the limit (PROFILE_MERGED_BYTES_MAX bytes if it names none)
 * is reached, and the next call is _finish. Bytes are no longer limited once samples that are too
 * large by themselves have taken many times those of the request (profile_bounds.h). */
bool profile_merge_take(struct profile_merge *merge, struct profile_source *source,
                        struct otlp_limit limit);
/* Returns what was taken as an encoded request; NULL: nothing was. Empties merge; `source` is the
 * one to go on with, or NULL. */
struct buffer *profile_merge_finish(struct profile_merge *merge, struct profile_source *source);
/* The same as parts of batch, sharing large tables instead of copying them. False: nothing was
 * taken. */
bool profile_merge_hand_out(struct profile_merge *merge, struct profile_source *source,
                            struct batch *batch);

/* Rewrites one request without the profiles whose bits are set in `broken` (NULL: none); without
 * bytes when none is left. *ret_dropped (if not NULL): attributes whose references are outside of
 * the string table. What it takes has been reserved (profile_measure.h). NULL when there is no
 * memory for the request's index. */
struct buffer *profile_rewrite(struct slice request, const uint8_t *broken, struct budget *budget,
                               uint64_t *ret_dropped);
