/* SPDX-License-Identifier: Apache-2.0 */
/* The series of an upload to /ingest, as the server names it: the metric out of a pprof's sample
 * types or the ending of the application's name, the labels, and what it corrects in pprof files.
 * Pure functions; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"
#include "src/profiles/pyroscope/stack_profile.h"

struct error;
struct ingest_query;
struct pprof;
struct pprof_upload;
struct series;

/* The metric of a pprof file. display_names: the part sample_type_config, JSON; no data: the
 * server's own. False: it is not such JSON. */
bool ingest_type_of_pprof(const struct pprof *pprof, struct slice display_names,
                          struct slice *ret_metric, struct error *error);

struct ingest_text_type {
    struct slice app;   /* without the ending */
    const char *metric; /* __name__ */
    struct stack_profile_head head;
};

/* sample_rate: per second. False: an unknown ending. */
bool ingest_type_of_text(struct slice app, uint64_t sample_rate, struct ingest_text_type *ret_type,
                         struct error *error);

/* Corrects what old clients send: times of 1970 become the upload's; function names of scripting
 * languages get their file; in types of .NET '-' becomes '_'. False: no memory. */
bool ingest_pprof_mend(struct pprof_upload *upload, const struct ingest_query *query);

struct ingest_series {
    struct slice metric;
    struct slice service; /* of the application, when the labels name none */
    struct slice app;     /* as a label of its own, when they do; no data: none */
};
/* Fills the labels of the series. False: too many. */
bool ingest_series_fill(struct series *series, const struct ingest_query *query,
                        const struct ingest_series *what);
