/* SPDX-License-Identifier: Apache-2.0 */
/* Checks profiles requests, layout 1.10. profile_fast_check recognises in one pass the requests
 * that need no change, which are nearly all; profile_check examines the others. Pure functions; any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/profiles/otlp/profile_measure.h"

struct arena;

struct profile_fast_figures {
    uint64_t profiles;
    uint64_t samples;
};

/* True: the request has layout 1.10, is well-formed, encoded in the order of field numbers, every
 * index is inside its table, and profile_check would not rewrite it. False says nothing. Allocates
 * nothing; accepts any bytes. */
bool profile_fast_check(struct slice request, struct profile_fast_figures *ret_figures);

struct profile_findings {
    uint64_t profiles; /* Profile messages */
    uint64_t broken_profiles;
    uint64_t samples;        /* and opaque profiles */
    uint64_t broken_samples; /* of broken profiles */
    uint8_t *broken;         /* one bit per Profile message; in the arena */
    /* It has broken profiles or entries, what back-ends do not accept (references instead of
     * strings, tables without zero element, profiles without types), or what is costly to read:
     * entries with many fields, attributes of a Profile in more than one. */
    bool needs_rewriting;
    struct profile_measure measure; /* for rewriting it */
    char reason[256];               /* what is wrong with the first broken profile */
};

enum profile_checked {
    PROFILES_CHECKED,
    PROFILES_NO_MEMORY, /* within the arena's cap, or its budget */
};

/* Checks every index, and whether the request must be rewritten before it goes on. The request has
 * passed otlp_check. */
enum profile_checked profile_check(struct slice request, struct arena *arena,
                                   struct profile_findings *ret_findings);
