/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizes a profiles request before anything else reads it: detects its layout and converts it
 * to 1.10, checks it and every index, removes broken Profile messages and broken entries of the
 * dictionary (whether or not anything refers to them), and replaces references by their strings.
 * Afterwards every index is inside its table. A request that needs none of this stays as it is.
 * Pure function; any thread. */
#pragma once

#include <stdint.h>

#include "src/base/slice.h"
#include "src/profiles/otlp/profile_layout.h"

struct budget;
struct buffer;

enum profile_verdict {
    PROFILES_TAKEN,     /* perhaps not all of them */
    PROFILES_REFUSED,   /* see reason */
    PROFILES_TOO_LARGE, /* for the limits, on every attempt; see reason */
    PROFILES_BUSY,      /* no memory at the moment */
};

struct profile_normalized {
    enum profile_layout layout;
    struct buffer *owner; /* a reference: to the given buffer, or to a new one */
    struct slice request;
    uint64_t profiles;
    uint64_t samples;
    uint64_t rejected_profiles;
    uint64_t rejected_samples;
    uint64_t dropped_attributes; /* whose references are outside of the string table */
    char reason[256]; /* REFUSED, TOO_LARGE: why; TAKEN: why the first profile was rejected */
};

/* layout: PROFILE_LAYOUTS to detect it. message lies in owner. On TAKEN the caller releases
 * ret_normalized->owner; the layout is set in any case. */
enum profile_verdict profile_normalize(struct buffer *owner, struct slice message,
                                       enum profile_layout layout, struct budget *budget,
                                       struct profile_normalized *ret_normalized);
