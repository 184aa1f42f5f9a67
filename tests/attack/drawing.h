/* SPDX-License-Identifier: Apache-2.0 */
/* Text put together at random, for the parts of setup.c. One thread. */
#pragma once

#include "tests/attack/tree.h"
#include "tests/support/random_otlp.h"

struct drawing {
    struct random_source random;
    struct bytes_out *out;
};

static inline uint64_t drawn_below(struct drawing *drawing, uint64_t bound)
{
    return random_below(&drawing->random, bound);
}

static inline void put(struct drawing *drawing, const char *text)
{
    bytes_add_text(drawing->out, text);
}

#define PUT_ONE_OF(drawing, ...)                                                                   \
    do {                                                                                           \
        static const char *const texts[] = {__VA_ARGS__};                                          \
        put(drawing, texts[drawn_below(drawing, sizeof(texts) / sizeof(texts[0]))]);               \
    } while (0)

/* Each line with a chance of `of` in `among`, in their order; one at least when needs_one. */
void put_lines(struct drawing *drawing, const char *const *lines, unsigned of, unsigned among,
               bool needs_one);

/* Sections of the configuration; their keys have two spaces before them. */
void put_statement_processors(struct drawing *drawing); /* filter, transform: OTTL */
void put_tail_sampling(struct drawing *drawing);
void put_record_processors(struct drawing *drawing); /* of single records, and of series */
void put_metric_exporters(struct drawing *drawing);  /* prometheus and its remote write */
void put_guarded_receivers(struct drawing *drawing); /* otlp/guarded, otlp/tls */
void put_authenticators(struct drawing *drawing);
void put_file_exporter(struct drawing *drawing);
void put_connectors(struct drawing *drawing);
/* Behind them, for traces, metrics or logs: routing/SIGNAL to SIGNAL/routed0 and so on. */
enum { ROUTED_PIPELINES = 3 };
void put_routing(struct drawing *drawing, const char *signal);
