/* SPDX-License-Identifier: Apache-2.0 */
/* Checks every index of a profiles request, layout 1.10, and says which Profile messages are broken
 * and whether the request should be written anew before it goes on. The request has passed
 * otlp_check. Pure function; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/profiles/otlp/profile_measure.h"

struct arena;

struct profile_findings {
    uint64_t profiles; /* Profile messages */
    uint64_t broken_profiles;
    uint64_t samples;        /* and uploads (opaque_profile.h) */
    uint64_t broken_samples; /* samples of broken profiles */
    uint8_t *broken;         /* one bit per Profile message; in the arena */
    /* It has broken profiles or entries, or what back-ends stumble over: references instead of
     * texts, tables without zero element, profiles without types. */
    bool needs_rewriting;
    struct profile_measure measure; /* for writing it anew */
    char reason[256];               /* what is wrong with the first broken profile */
};

enum profile_checked {
    PROFILES_CHECKED,
    PROFILES_NO_MEMORY, /* within the arena's cap, or its budget */
};

enum profile_checked profile_check(struct slice request, struct arena *arena,
                                   struct profile_findings *ret_findings);
