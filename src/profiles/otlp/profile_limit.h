/* SPDX-License-Identifier: Apache-2.0 */
/* Brings a profiles request, layout 1.10, within limits and takes out of it what must not leave the
 * host: names are replaced, frames dropped, deep stacks cut, and what nothing refers to any more is
 * gone. Pure functions; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct budget;
struct buffer;
struct pattern;
struct pattern_replacement;

/* What stands for frames that were cut, and for values of labels beyond the limit. */
#define PROFILE_CUT_FRAME   "[truncated]"
#define PROFILE_OTHER_VALUE "other"

struct profile_rename {
    struct pattern *pattern;
    struct pattern_replacement *replacement;
};

/* Limits that are 0 do not limit. */
struct profile_limit_rules {
    uint64_t depth_max;        /* locations of a stack, the marker included; its root stays */
    uint64_t samples_max;      /* of each Profile; the first ones stay */
    uint64_t bytes_max;        /* of the request */
    uint64_t label_values_max; /* of each key of sample attributes in the request */
    const struct profile_rename *renames; /* of functions and files, applied in order */
    size_t renames_count;
    struct pattern *const *drops; /* functions whose name, as it came, matches one are left out */
    size_t drops_count;
};

struct profile_limit_figures {
    uint64_t cut_stacks;
    uint64_t dropped_frames; /* lines of locations in the dictionary */
    uint64_t renamed;        /* texts in the dictionary */
    uint64_t other_values;   /* attributes in the dictionary */
    uint64_t samples;        /* that are left */
};

/* What _shape holds before it merges: to be reserved with what merging takes. */
uint64_t profile_limit_bytes(struct slice request);
/* A new request, never refused by the budget; without bytes when nothing is left. The request has
 * been through profile_normalize. NULL: its index takes more than PROFILE_INDEX_BYTES_MAX, its
 * names grow by more than PROFILE_NAMES_GROWTH_MAX, or it has 4 GiB or more in the end. */
struct buffer *profile_limit(const struct profile_limit_rules *rules, struct slice request,
                             struct budget *budget, struct profile_limit_figures *ret_figures);
