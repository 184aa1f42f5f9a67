/* SPDX-License-Identifier: Apache-2.0 */
/* What samples measure, in numbers that can be added up. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_view.h"
#include "src/profiles/pprof/profile_type.h"

/* The types of a profile; strings that the dictionary lacks are empty. */
struct profile_type_texts profile_type_texts_of(const struct profile_dictionary *dictionary,
                                                const struct profile *profile);
/* Whether a profile of the scope is of cpu time itself, so that a count of samples beside it is a
 * count (profile_type_canonical). */
bool profile_scope_has_cpu_time(const struct profile_dictionary *dictionary,
                                const struct profile_scope *scope);
/* ns of a unit; 0: it is no unit of time. */
uint64_t profile_unit_ns(const char *unit);
/* ns of CPU time that each 1 of the profile's values is; 0: it measures something else. */
uint64_t profile_cpu_factor(const struct profile_type *type, int64_t period);
/* The values of a sample times factor, at most UINT64_MAX. Negative values count as 0; without
 * values each timestamp counts 1. */
uint64_t profile_sample_total(const struct profile_sample *sample, uint64_t factor);
