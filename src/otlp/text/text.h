/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry as text that people read, in the forms of the Go collector's debug exporter. Input has
 * passed otlp_check; output is bounded. Plain values, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/signal_kind.h"
#include "src/base/slice.h"

struct budget;
struct profile_dictionary;

enum {
    TEXT_BYTES_MAX = 4 << 20,
    TEXT_READ_BYTES_MAX = 16 << 20, /* of entries of a dictionary, each time they are read */
    TEXT_SPANS_MAX = 20,            /* of a request of profiles */
    TEXT_SPAN_ROWS_MAX = 1 << 18,   /* samples that are looked at for them */
};

/* Text that grows, up to TEXT_BYTES_MAX or what memory allows; then it ends in a line that says so.
 */
struct text {
    char *data; /* with a terminator */
    size_t size;
    size_t capacity;
    struct budget *budget; /* NULL: not charged */
    bool is_cut;
    size_t read_bytes; /* of entries that may be read again and again, with nothing to write */
    const struct profile_dictionary *dictionary; /* of the profiles that are written */
};

/* budget may be NULL. */
void text_init(struct text *text, struct budget *budget);
void text_fini(struct text *text);
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_slice(struct text *text, struct slice bytes);

struct otlp_text_figures {
    uint64_t resources;
    uint64_t metrics; /* METRICS only */
};
struct otlp_text_figures otlp_text_count(enum signal_kind signal, struct slice request);
/* About one line per item, or every field of it. Profiles are normalized (profile_normalize). */
void otlp_text_write(struct text *text, enum signal_kind signal, struct slice request,
                     bool is_detailed);
/* The spans that the samples of a request of profiles belong to, the busiest first, each with the
 * functions_max functions that took most by themselves. Nothing where no sample has a link. */
void otlp_text_write_spans(struct text *text, struct slice request, size_t functions_max);
