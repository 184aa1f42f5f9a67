/* SPDX-License-Identifier: Apache-2.0 */
/* What trace_profile_join counts; each instance has its own. */
#pragma once

#include "src/base/counter.h"

/* Why a profile goes on that has waited. */
enum release { RELEASE_COMPLETE, RELEASE_TIMEOUT, RELEASE_PRESSURE, RELEASE_STOP, RELEASES };

struct join_counters {
    counter incoming[SIGNAL_KINDS];
    counter outgoing[SIGNAL_KINDS];
    counter indexed;
    counter skipped;
    counter evicted;
    counter late;
    counter marked;
    counter unmarked;
    counter hits;
    counter unknown_services;
    counter absent;
    counter ambiguous;
    counter enriched;
    counter timed;
    counter other_values;
    counter repaired;
    counter labelled;
    counter copied;
    counter uncopied;
    counter unwanted;
    counter held_profiles;
    counter held_bytes;
    counter released[RELEASES];
};

extern const struct counter_row join_counters[];
