/* SPDX-License-Identifier: Apache-2.0 */
/* One request of the pyroscope exporter: where it goes, what its body is. For Push, for /ingest as
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
struct profile_type;
struct pyroscope_query;
struct pyroscope_series;

enum { PYROSCOPE_FORM_PARTS_MAX = 5, PYROSCOPE_CONTENT_TYPE_MAX = 96 };

struct pyroscope_form {
    struct budget *budget;
    struct gzip *gzip; /* NULL: nothing is packed */
    struct batch_part parts[PYROSCOPE_FORM_PARTS_MAX];
    size_t parts_count;
    uint64_t plain_bytes;  /* of what was packed; 0: nothing was */
    struct buffer *target; /* NULL: the client's URL */
    char content_type[PYROSCOPE_CONTENT_TYPE_MAX];
    const char *content_encoding; /* NULL: none */
    bool has_failed;              /* no memory: of no use */
};

void pyroscope_form_init(struct pyroscope_form *form, struct budget *budget, struct gzip *gzip);
void pyroscope_form_fini(struct pyroscope_form *form);
uint64_t pyroscope_form_bytes(const struct pyroscope_form *form);

/* These take over the profile, and return false when there is no memory. */
bool pyroscope_form_push(struct pyroscope_form *form, const struct pyroscope_series *series,
                         struct buffer *profile);
/* The server makes a name out of the profile's types; the form tells it the canonical one. */
bool pyroscope_form_profile(struct pyroscope_form *form, const struct profile_type *type,
                            struct buffer *profile);
/* The request is borrowed. */
bool pyroscope_form_otlp(struct pyroscope_form *form, struct slice request);
/* A JFR file and, if it has data, the part that tells its labels. Both are borrowed. */
bool pyroscope_form_upload(struct pyroscope_form *form, struct slice file, struct slice labels);

/* The form goes to that target. *changed as for pyroscope_query_target. False: no memory. */
bool pyroscope_form_address(struct pyroscope_form *form, const struct pyroscope_query *query,
                            uint64_t *changed);
