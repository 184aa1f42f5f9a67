/* SPDX-License-Identifier: Apache-2.0 */
/* What the server mends of pprof files that came to /ingest, and the labels of their series. Pure
 * functions; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"

struct error;
struct ingest_query;
struct pprof_upload;
struct series;

/* Times of 1970, which old clients send, become the upload's; names of functions of scripting
 * languages get their file; types of .NET lose their '-'. False: no room for it. */
bool ingest_pprof_mend(struct pprof_upload *upload, const struct ingest_query *query);

/* service: of the application, when the labels name none. app: as a label of its own when they do;
 * no data: not. False: too many labels. */
struct ingest_series {
    struct slice metric;
    struct slice service;
    struct slice app;
};
bool ingest_series_fill(struct series *series, const struct ingest_query *query,
                        const struct ingest_series *what);
