/* SPDX-License-Identifier: Apache-2.0 */
/* A pprof profile of a series as an OTLP profiles request, such that an exporter can restore the
 * series: the application's labels are resource attributes, "service_name" under OTLP's name for
 * it, and listed in PROFILE_LABEL_NAMES; labels that begin with "__" are attributes of each
 * Profile, with SERIES_PRIVATE_PREFIX before their name. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/scratch.h"
#include "src/profiles/otlp/profile_view.h"
#include "src/profiles/pyroscope/series.h"

struct budget;
struct buffer;
struct pprof;
struct profile_dictionary;

#define SERIES_PRIVATE_PREFIX "pyroscope.label."

/* The labels have been checked. The caller owns *ret_request, which is empty when the profile has
 * no values. False: as pprof_to_otlp. */
bool series_to_otlp(const struct series *series, const struct pprof *pprof, struct budget *budget,
                    struct buffer **ret_request, bool *ret_is_too_large);

/* The labels that begin with "__", of one Profile after the other. An attribute is checked once,
 * however many Profiles of the request have it. One owner. */
struct series_privates {
    const struct profile_dictionary *dictionary;
    struct budget *budget;
    struct scratch marks; /* of the attributes that were checked, by index */
    uint32_t profile_no;  /* of the last Profile, for the marks */
    struct series_label labels[SERIES_LABELS_MAX]; /* of that, each attribute once */
    size_t count;
    uint64_t left_out; /* attributes beyond those */
    bool has_failed;   /* no memory */
};

/* dictionary outlives it; budget may be NULL. */
void series_privates_init(struct series_privates *privates,
                          const struct profile_dictionary *dictionary, struct budget *budget);
void series_privates_fini(struct series_privates *privates);
void series_privates_read(struct series_privates *privates, const struct profile *profile);
/* The value of the label __name__; no data: the Profile did not come as a series. */
struct slice series_private_name(const struct series_privates *privates);
