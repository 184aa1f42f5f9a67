/* SPDX-License-Identifier: Apache-2.0 */
/* One pprof file as it was uploaded: inflated when it is gzip, read into tables, all of it charged
 * to the budget while it is open. One owner. */
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
    PPROF_UPLOAD_BUSY,    /* no memory; later there may be */
};

struct pprof_upload {
    struct budget *budget;
    uint64_t charged;
    struct buffer *plain; /* NULL: it was no gzip */
    struct arena arena;   /* of the tables; who edits them has room here */
    struct pprof pprof;
    uint64_t plain_bytes; /* that were read, or inflated at most before it was refused */
    uint64_t negative;    /* samples that were left out, since one of their values is below zero */
};

/* bytes stay where they are until _close. bytes_max: inflated. */
enum pprof_upload_verdict pprof_upload_open(struct pprof_upload *upload, struct gzip *gzip,
                                            struct budget *budget, struct slice bytes,
                                            uint64_t bytes_max, struct error *error);
/* Only after it was opened. */
void pprof_upload_close(struct pprof_upload *upload);
/* How many samples it makes in OTLP, where each value that is not 0 is one. */
uint64_t pprof_upload_items(const struct pprof_upload *upload);
