/* SPDX-License-Identifier: Apache-2.0 */
/* A pprof profile of a series as an OTLP profiles request, such that an exporter can restore the
 * series: the application's labels are resource attributes, "service_name" under OTLP's name for
 * it, and listed in PROFILE_LABEL_NAMES; labels that begin with "__" are attributes of each
 * Profile, with SERIES_PRIVATE_PREFIX before their name. Pure functions; any thread. */
#pragma once

#include <stdbool.h>

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

/* The next label that begins with "__"; reader is over the Profile's attributes. False: there are
 * no more. */
bool series_next_private(const struct profile_dictionary *dictionary,
                         struct profile_indices_reader *reader, struct series_label *ret_label);
/* The value of the label __name__; no data: the Profile did not come as a series. */
struct slice series_private_name(const struct profile_dictionary *dictionary,
                                 const struct profile *profile);
