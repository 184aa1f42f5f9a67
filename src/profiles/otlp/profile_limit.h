/* SPDX-License-Identifier: Apache-2.0 */
/* Enforces limits on a profiles request, layout 1.10, and removes what must not leave the host:
 * replaces names, drops frames, cuts deep stacks, and removes what nothing refers to any more. Pure
 * functions; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct batch;
struct budget;
struct buffer;
struct pattern;
struct pattern_replacement;

/* These replace frames that were cut, and label values beyond the limit. */
#define PROFILE_CUT_FRAME   "[truncated]"
#define PROFILE_OTHER_VALUE "other"

struct profile_rename {
    struct pattern *pattern;
    struct pattern_replacement *replacement;
};

/* A limit of 0 is none. */
struct profile_limit_rules {
    uint64_t depth_max;        /* locations of a stack, the marker included; leaves are cut */
    uint64_t samples_max;      /* of each Profile; the first ones are kept */
    uint64_t bytes_max;        /* of the request */
    uint64_t label_values_max; /* of each key of sample attributes in the request */
    const struct profile_rename *renames; /* of functions and files, applied in order */
    size_t renames_count;
    struct pattern *const *drops; /* frames of functions whose original name matches one */
    size_t drops_count;
};

struct profile_limit_figures {
    uint64_t cut_stacks;
    uint64_t dropped_frames; /* lines of locations in the dictionary */
    uint64_t renamed;        /* strings in the dictionary */
    uint64_t other_values;   /* attributes in the dictionary */
    uint64_t samples;        /* that are kept */
    uint64_t names_bytes;    /* what longer names take, if there was no room for them; else 0 */
};

/* What profile_limit holds before it merges: reserve it together with what merging takes. */
uint64_t profile_limit_bytes(struct slice request);
/* Returns a new request, charged beyond the budget's limit if need be; without bytes when nothing
 * is left. The request is normalized. NULL: its index takes more than PROFILE_INDEX_BYTES_MAX, its
 * names grow by more than PROFILE_NAMES_GROWTH_MAX or than batch_has_room for, or the result has
 * 4 GiB or more. batch is what the request is from; NULL: the budget alone decides about names. */
struct buffer *profile_limit(const struct profile_limit_rules *rules, struct slice request,
                             const struct batch *batch, struct budget *budget,
                             struct profile_limit_figures *ret_figures);
