/* SPDX-License-Identifier: Apache-2.0 */
/* Takes what a cumulative profile of the same process had before off its values: Go's heap, mutex
 * and block profiles count since the start of the process. As Alloy's pyroscope.scrape does it,
 * alloc_objects, alloc_space, contentions and delay become differences; other values
 * (inuse_objects, inuse_space) stay. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct budget;
struct pprof;

enum {
    PPROF_DELTA_TYPES_MAX = 4,        /* sample types with differences */
    PPROF_DELTA_STACKS_MAX = 1 << 20, /* different ones, with their labels, of a profile */
};

/* What the last profile had, by hash of stack and labels. All zero: there was none. */
struct pprof_delta {
    struct budget *budget; /* is charged; NULL: not */
    uint64_t *entries; /* a power of two of them: the hash (0: free), then a value for each type */
    size_t capacity;
    size_t count;
    size_t types_count;
    uint64_t types_hash; /* of their names: others are another profile */
    int64_t time_ns;
    bool has_profile;
};

void pprof_delta_init(struct pprof_delta *delta, struct budget *budget);
void pprof_delta_fini(struct pprof_delta *delta);

enum pprof_delta_result {
    PPROF_DELTA_TAKEN, /* a profile without such sample types is as it was */
    /* There was no profile before, or the process is another one by now: values that would be
     * differences are 0. */
    PPROF_DELTA_FIRST,
    PPROF_DELTA_NO_MEMORY, /* or too many stacks: the profile is not to be used */
};

/* Edits the profile, whose values are not below 0: equal stacks with equal labels are summed into
 * the first, samples without a value are left out, and the time becomes that of the last profile.
 * New values are in arena, which must live as long as the profile. */
enum pprof_delta_result pprof_delta_take(struct pprof_delta *delta, struct pprof *pprof,
                                         struct arena *arena);
