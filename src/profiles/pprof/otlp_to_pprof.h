/* SPDX-License-Identifier: Apache-2.0 */
/* Converts an OTLP Profile to one or more pprof profiles within limits. Use:
 *     otlp_to_pprof_begin(&conversion, &source);
 *     while (otlp_to_pprof_fill(&conversion))
 *         output = otlp_to_pprof_take(&conversion, time_ns);
 * The request has passed otlp_check; its indices may be wrong. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/profiles/otlp/profile_view.h"
#include "src/profiles/pprof/otlp_labels.h"
#include "src/profiles/pprof/otlp_symbols.h"
#include "src/profiles/pprof/pprof_writer.h"
#include "src/profiles/pprof/profile_type.h"

struct budget;
struct buffer;

/* Most services that samples of one Profile may name; others count as none. */
enum { OTLP_SERVICES_MAX = 32 };
/* Attributes of a Profile that become its comments and the like. */
enum { OTLP_TEXTS_MAX = 16 };

struct otlp_to_pprof_rules {
    struct otlp_label_rules labels;
    uint64_t samples_max; /* of one pprof profile */
    uint64_t bytes_max;   /* the same, uncompressed; below 4 GiB */
    size_t depth_max;     /* deeper stacks lose their leaves */
};

struct otlp_to_pprof_source {
    const struct profile *profile;
    const struct profile_type *type;
    size_t service; /* only samples of that service; see otlp_to_pprof_services */
    /* Whether a sample is written; the others are not counted. NULL: all. */
    bool (*picks)(void *arg, const struct profile *profile, const struct profile_sample *sample);
    void *arg;
};

/* Counts of samples since init. */
struct otlp_to_pprof_figures {
    uint64_t written;
    uint64_t zero;
    uint64_t negative;
    uint64_t too_large; /* its stack does not fit into any part, or work is beyond work_max */
    uint64_t cut;       /* written without the leaves of its stack */
};

/* The state at the start of a part. */
struct otlp_to_pprof_mark {
    struct wire_reader reader;
    struct profile_sample pending;
    bool has_pending;
    struct otlp_to_pprof_figures figures;
};

struct otlp_to_pprof {
    const struct otlp_to_pprof_rules *rules;
    const struct profile_dictionary *dictionary;
    struct budget *budget;
    struct otlp_symbols symbols;
    struct otlp_labels labels;
    struct pprof_writer writer;
    struct scratch stack;                        /* ids of one */
    struct scratch large_stacks;                 /* a byte by index: does not fit into any part */
    struct scratch roots;                        /* struct stack_root by index */
    struct slice services[OTLP_SERVICES_MAX];    /* the first has no data: samples without one */
    uint32_t service_numbers[OTLP_SERVICES_MAX]; /* otlp_labels_service; of the first 0 */
    size_t services_count;
    struct profile_index texts[OTLP_TEXTS_MAX]; /* attributes of the profile, see OTLP_TEXTS_MAX */
    size_t texts_count;
    struct otlp_to_pprof_figures figures;
    struct otlp_to_pprof_source source;
    struct wire_reader reader;     /* over the samples */
    struct profile_sample pending; /* read, but not written */
    bool has_pending;
    uint64_t samples;                 /* in this part */
    uint64_t samples_max;             /* of a part, if less than that of the rules; 0: not set */
    uint64_t work;                    /* bytes for samples that were looked at, since init */
    uint64_t work_max;                /* later samples count as too large; see _bound */
    uint64_t texts_work;              /* for the texts of each part */
    struct otlp_to_pprof_mark before; /* this part */
};

/* rules and dictionary outlive the conversion; budget may be NULL. */
void otlp_to_pprof_init(struct otlp_to_pprof *conversion, const struct otlp_to_pprof_rules *rules,
                        const struct profile_dictionary *dictionary, struct budget *budget);
void otlp_to_pprof_fini(struct otlp_to_pprof *conversion);
/* Bounds the work for a request of that size, whose profiles may all name the same entries. */
void otlp_to_pprof_bound(struct otlp_to_pprof *conversion, size_t request_bytes);
/* Work that was done since init, in bytes. */
uint64_t otlp_to_pprof_work(const struct otlp_to_pprof *conversion);
/* Switches to other rules from the next _services or _begin on. They outlive the conversion. */
void otlp_to_pprof_set_rules(struct otlp_to_pprof *conversion,
                             const struct otlp_to_pprof_rules *rules);
/* Collects the services that samples of a profile name, into services; the first stands for samples
 * that name none. Returns their number. */
size_t otlp_to_pprof_services(struct otlp_to_pprof *conversion, const struct profile *profile);
/* What source points to must stay valid until the last part. */
void otlp_to_pprof_begin(struct otlp_to_pprof *conversion,
                         const struct otlp_to_pprof_source *source);
/* Collects the samples of the next part. False: there are no more, or has_failed. */
bool otlp_to_pprof_fill(struct otlp_to_pprof *conversion);
/* Discards the current part: the next one begins where it began. */
void otlp_to_pprof_rewind(struct otlp_to_pprof *conversion);
/* Returns the part, with that time. The caller owns it. NULL: has_failed. */
struct buffer *otlp_to_pprof_take(struct otlp_to_pprof *conversion, uint64_t time_ns);
/* No memory: the part is unusable. */
bool otlp_to_pprof_has_failed(const struct otlp_to_pprof *conversion);
