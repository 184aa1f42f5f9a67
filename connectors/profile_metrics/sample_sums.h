/* SPDX-License-Identifier: Apache-2.0 */
/* Sums the values of a request's samples by what they measure, by resource and by the values of
 * chosen attributes. Work and memory grow with the bytes of the request. One owner, one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/scratch.h"
#include "src/base/slice.h"
#include "src/otlp/nested_output.h"

struct budget;

/* What is measured, whatever the profiler calls it (profile_type.h). */
enum measure {
    MEASURE_CPU,       /* ns on a CPU */
    MEASURE_ALLOCATED, /* bytes, freed ones too */
    MEASURE_LOCK,      /* ns that others waited for a mutex */
    MEASURE_BLOCKED,   /* ns blocked, on locks (Java) or on channels and the like (Go) */
    MEASURES,
};

enum { SUM_NAMES_MAX = 32, SUM_LABEL_BYTES_MAX = 1024 };
/* Labels of all sums of a request, beyond its own bytes: samples of a few bytes repeat the labels
 * of their resource. As many as 10000 series have with 800 bytes each. */
enum { SUM_LABELS_BYTES_MIN = 8 << 20 };

/* Constant. */
struct sum_names {
    size_t dimensions_count;
    size_t resources_count;
    struct slice dimensions[SUM_NAMES_MAX]; /* attributes that become labels */
    struct slice resources[SUM_NAMES_MAX];  /* attributes that the metrics' resources get */
};

/* Encoded KeyValues as field 1. */
struct sample_sum {
    struct slice resource;
    struct slice labels;
    bool is_overflow; /* its labels are beyond what the request may have */
    uint64_t values[MEASURES];
};

struct sample_sums {
    const struct sum_names *names;
    struct budget *budget;
    uint64_t seed;              /* of hashes, so that clients cannot choose samples that collide */
    struct nested_output texts; /* of all sums */
    struct scratch groups;
    struct scratch places; /* the hash table of groups */
    size_t places_count;
    size_t count;
    struct scratch values; /* of labels: texts, by their ids */
    size_t values_count;
    struct scratch ids; /* of the dictionary's attributes */
    struct scratch resources;
    size_t resources_count;
};

/* budget may be NULL. */
void sample_sums_init(struct sample_sums *sums, const struct sum_names *names,
                      struct budget *budget);
void sample_sums_fini(struct sample_sums *sums);
/* Reads a normalized request. False: no memory. The sums, the texts they point to included, are
 * valid until the next call. */
bool sample_sums_read(struct sample_sums *sums, struct slice request);
/* Frees what a large request took. */
void sample_sums_clear(struct sample_sums *sums);
struct sample_sum sample_sums_at(const struct sample_sums *sums, size_t i);
