/* SPDX-License-Identifier: Apache-2.0 */
/* What every profiles request passes before anybody else reads it: its layout is found out and
 * brought to 1.10, it is walked, every index is checked, broken Profile messages and broken entries
 * of the dictionary are taken out, whether or not anything refers to them, and references become
 * texts. Behind the door every index is inside of its table. A request that needs none of this
 * stays as it is. Pure function; any thread. */
#pragma once

#include <stdint.h>

#include "src/base/slice.h"
#include "src/profiles/otlp/profile_layout.h"

struct budget;
struct buffer;

enum profile_verdict {
    PROFILES_TAKEN,     /* perhaps not all of them */
    PROFILES_REFUSED,   /* the reason says why */
    PROFILES_TOO_LARGE, /* with what they refer to, for ever; the reason says why */
    PROFILES_BUSY,      /* no memory; later there may be */
};

struct profile_passed {
    enum profile_layout layout;
    struct buffer *owner; /* a reference: to the buffer that came in, or to a new one */
    struct slice request;
    uint64_t profiles;
    uint64_t samples;
    uint64_t rejected_profiles;
    uint64_t rejected_samples;
    uint64_t dropped_attributes; /* whose references lead nowhere */
    char
        reason[256]; /* REFUSED, TOO_LARGE: why; TAKEN: why the first profile was rejected, or "" */
};

/* layout: PROFILE_LAYOUTS to find it out. message lies in owner. On TAKEN the caller gives back
 * ret_passed->owner; the layout is there in any case. */
enum profile_verdict profile_door(struct buffer *owner, struct slice message,
                                  enum profile_layout layout, struct budget *budget,
                                  struct profile_passed *ret_passed);
