/* SPDX-License-Identifier: Apache-2.0 */
/* What an upload to /ingest is a profile of: for pprof the name of the metric out of its sample
 * types, for texts everything out of the ending of the application's name, by the server's tables.
 * Pure functions; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"
#include "src/profiles/pyroscope/stack_profile.h"

struct error;
struct pprof;

/* display_names: the part sample_type_config, JSON; no data: the server's own. False: it is no such
 * JSON. */
bool ingest_type_of_pprof(const struct pprof *pprof, struct slice display_names,
                          struct slice *ret_metric, struct error *error);

struct ingest_text_type {
    struct slice app;   /* without the ending */
    const char *metric; /* __name__ */
    struct stack_profile_head head;
};

/* sample_rate: per second. False: the ending is none that is known. */
bool ingest_type_of_text(struct slice app, uint64_t sample_rate, struct ingest_text_type *ret_type,
                         struct error *error);
