/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a pprof profile to an OTLP profiles request, layout 1.10: one Profile for each sample
 * type; ids of traces and spans move from labels to links. Pure function; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"

struct budget;
struct buffer;
struct pprof;

/* More sample types than any profiler has. */
enum { PPROF_TO_OTLP_TYPES_MAX = 64, PPROF_TO_OTLP_ATTRIBUTES_MAX = 64 };

struct pprof_to_otlp_attribute {
    struct slice key;
    struct slice value; /* encoded AnyValue */
};

struct pprof_to_otlp_source {
    const struct pprof *pprof;
    struct slice resource; /* encoded Resource; no data: none */
    /* of every Profile, at most PPROF_TO_OTLP_ATTRIBUTES_MAX */
    const struct pprof_to_otlp_attribute *attributes;
    size_t attributes_count;
};

/* The caller owns *ret_request, which is empty when the profile has no samples. False: no memory,
 * more sample types than allowed, or *ret_is_too_large (unless NULL): long texts that the profile
 * has once would stand in too many attributes, whatever the memory. */
bool pprof_to_otlp(const struct pprof_to_otlp_source *source, struct budget *budget,
                   struct buffer **ret_request, bool *ret_is_too_large);
