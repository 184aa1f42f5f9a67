/* SPDX-License-Identifier: Apache-2.0 */
/* A pprof profile of a series as an OTLP profiles request, such that an exporter can restore the
 * series: an application's labels are resource attributes, "service_name" under OTLP's name for it,
 * and named in PROFILE_LABEL_NAMES; labels that begin with "__" are attributes of each Profile,
 * SERIES_PRIVATE_PREFIX before their name. Pure function; any thread. */
#pragma once

#include <stdbool.h>

struct budget;
struct buffer;
struct pprof;
struct series;

#define SERIES_PRIVATE_PREFIX "pyroscope.label."

/* The labels have been checked. *ret_request is owned by the caller and has no bytes when the
 * profile has no values. False: no memory, or more sample types than PPROF_TO_OTLP_TYPES_MAX. */
bool series_to_otlp(const struct series *series, const struct pprof *pprof, struct budget *budget,
                    struct buffer **ret_request);
