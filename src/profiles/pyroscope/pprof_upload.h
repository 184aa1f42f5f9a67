/* SPDX-License-Identifier: Apache-2.0 */
/* An uploaded pprof file, inflated if it is gzip and read into tables. Charged to the budget while
 * it is open. One owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/slice.h"
#include "src/profiles/pprof/pprof.h"

struct budget;
struct buffer;
struct error;
struct gzip;

enum pprof_upload_verdict {
    PPROF_UPLOAD_OPEN,
    PPROF_UPLOAD_REFUSED, /* the error says why */
    PPROF_UPLOAD_BUSY,    /* no memory; retry later */
};

struct pprof_upload {
    struct budget *budget;
    bool is_open;
    struct buffer *plain; /* NULL: it was not gzip */
    struct arena arena;   /* of the tables and their edits */
    struct pprof pprof;
    uint64_t plain_bytes; /* read, or at most inflated before it was refused */
    uint64_t negative;    /* samples left out because of a negative value */
};

/* bytes must stay valid until _close. bytes_max: inflated. */
enum pprof_upload_verdict pprof_upload_open(struct pprof_upload *upload, struct gzip *gzip,
                                            struct budget *budget, struct slice bytes,
                                            uint64_t bytes_max, struct error *error);
/* Whether its arena has refused memory that the budget may have room for later. */
bool pprof_upload_is_busy(const struct pprof_upload *upload);
/* Only after it was opened. */
void pprof_upload_close(struct pprof_upload *upload);
/* The number of samples in OTLP, where each value other than 0 is one. */
uint64_t pprof_upload_items(const struct pprof_upload *upload);
