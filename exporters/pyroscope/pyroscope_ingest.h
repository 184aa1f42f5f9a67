/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for POST /ingest: form and query of a profile or of a file that is passed on as it came.
 * Pure functions; on the exporter's lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buffer;
struct pyroscope_form;
struct pyroscope_series;
struct pyroscope_walk;

struct pyroscope_ingest {
    const char *path; /* of /ingest at the server */
    const struct pyroscope_series *series;
    const struct pyroscope_walk *walk; /* at what is to be sent */
    uint64_t time_ns;                  /* of it; 0: as it came */
};

/* Takes over the profile. False: no memory. *changed as for pyroscope_query_target. */
bool pyroscope_ingest_profile(struct pyroscope_form *form, const struct pyroscope_ingest *ingest,
                              struct buffer *profile, uint64_t *changed);
bool pyroscope_ingest_upload(struct pyroscope_form *form, const struct pyroscope_ingest *ingest,
                             uint64_t *changed);
