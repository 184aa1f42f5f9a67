/* SPDX-License-Identifier: Apache-2.0 */
/* One request of the pyroscope exporter, its target and its body: for Push, for /ingest as
 * multipart form (RFC 7578), or OTLP. One owner, on the exporter's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/core/batch.h"

struct budget;
struct buffer;
struct gzip;
struct pyroscope_series;
struct pyroscope_walk;

enum { PYROSCOPE_FORM_PARTS_MAX = 5, PYROSCOPE_CONTENT_TYPE_MAX = 96 };

struct pyroscope_form {
    struct budget *budget;
    struct gzip *gzip; /* NULL: nothing is compressed */
    struct batch_part parts[PYROSCOPE_FORM_PARTS_MAX];
    size_t parts_count;
    uint64_t plain_bytes;  /* of what was compressed; 0: nothing was */
    struct buffer *target; /* NULL: the client's URL */
    char content_type[PYROSCOPE_CONTENT_TYPE_MAX];
    const char *content_encoding; /* NULL: none */
    bool has_failed;              /* no memory; unusable */
};

void pyroscope_form_init(struct pyroscope_form *form, struct budget *budget, struct gzip *gzip);
void pyroscope_form_fini(struct pyroscope_form *form);
uint64_t pyroscope_form_bytes(const struct pyroscope_form *form);

/* Push: takes over the profile. False: no memory. */
bool pyroscope_form_push(struct pyroscope_form *form, const struct pyroscope_series *series,
                         struct buffer *profile);
/* OTLP: borrows the request. False: no memory. */
bool pyroscope_form_otlp(struct pyroscope_form *form, struct slice request);

struct pyroscope_ingest {
    const char *path; /* of /ingest on the server */
    const struct pyroscope_series *series;
    const struct pyroscope_walk *walk; /* positioned at what is sent */
    uint64_t time_ns;                  /* of it; 0, of a file: its own */
};
/* /ingest: takes over the profile. The server makes a name of the profile's types; the form tells
 * it the canonical one. *changed as for pyroscope_query_target. False: no memory. */
bool pyroscope_form_ingest(struct pyroscope_form *form, const struct pyroscope_ingest *ingest,
                           struct buffer *profile, uint64_t *changed);
/* The same for a file of JFR, which is borrowed, with the part of labels that came with it. */
bool pyroscope_form_upload(struct pyroscope_form *form, const struct pyroscope_ingest *ingest,
                           uint64_t *changed);
