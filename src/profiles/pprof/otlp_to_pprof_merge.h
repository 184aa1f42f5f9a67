/* SPDX-License-Identifier: Apache-2.0 */
/* Converts whole OTLP requests to one pprof profile: every type becomes a column, nothing of a
 * sample is dropped that pprof can hold. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/pprof/otlp_to_pprof.h"
#include "src/profiles/pprof/pprof_merge.h"

struct error;

/* A request in layout 1.10 that has passed otlp_check and profile_normalize, and which of it is
 * wanted. */
struct otlp_to_pprof_merge_source {
    struct slice request;
    /* NULL: all resources, all samples. */
    bool (*takes)(void *arg, const struct profile_resource *resource);
    bool (*picks)(void *arg, const struct profile_dictionary *dictionary,
                  const struct profile *profile, const struct profile_sample *sample);
    void *arg;
};

/* Adds to *figures, and to *resources how many had attributes, which pprof cannot hold. */
bool otlp_to_pprof_merge(struct pprof_merge *merge, const struct otlp_to_pprof_merge_source *source,
                         struct otlp_to_pprof_figures *figures, uint64_t *resources,
                         struct error *error);
/* Adds a pprof profile, uncompressed. */
bool pprof_merge_bytes(struct pprof_merge *merge, struct slice bytes, struct error *error);
